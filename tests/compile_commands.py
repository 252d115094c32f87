#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prints compile_commands.json, for clangd and clang-tidy, from what `make --dry-run` prints."""

import json
import os
import shlex
import sys

commands = []
for line in sys.stdin.read().replace("\\\n", " ").splitlines():
    try:
        words = shlex.split(line)
    except ValueError:  # not a command: a line of text with one apostrophe
        continue
    sources = [word for word in words if word.endswith(".c") and os.path.exists(word)]
    if len(sources) != 1 or "-o" not in words[:-1]:
        continue
    commands.append({
        "directory": os.getcwd(),
        "file": sources[0],
        "output": words[words.index("-o") + 1],
        "arguments": words,
    })
if not commands:
    sys.exit("compile_commands.py: make printed no command that compiles")
json.dump(commands, sys.stdout, indent=1)
