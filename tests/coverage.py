#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""coverage.py BUILD: how many lines of user/ were run by what was built there with --coverage: for each
file, the least first, each layer, and all."""

import collections
import json
import os
import subprocess
import sys


def counts_of(directory):
    """Whether each line of each source was run, from all objects beside which counts were left."""
    run = collections.defaultdict(dict)
    notes = []
    for top, _, files in os.walk(os.path.join(directory, "user")):
        notes += [os.path.join(top, f) for f in files if f.endswith(".gcno")]
    if not notes:
        sys.exit(f"coverage.py: nothing in {directory} was built with --coverage: make coverage does")
    out = subprocess.run(["gcov", "--json-format", "--stdout", *notes], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    for line in out.splitlines():
        for source in json.loads(line)["files"]:
            name = os.path.normpath(source["file"])
            if name.startswith("user/"):
                for at in source["lines"]:
                    lines = run[name]
                    number = at["line_number"]
                    lines[number] = lines.get(number, False) or at["count"] > 0
    return run


def show(name, lines):
    done = sum(lines)
    print(f"{100 * done / len(lines):6.1f} % {done:6} of {len(lines):6}  {name}")


def main():
    run = counts_of(sys.argv[1])
    files = {name: list(lines.values()) for name, lines in run.items() if lines}
    layers = collections.defaultdict(list)
    for name, lines in files.items():
        layers["/".join(name.split("/")[:2])] += lines
    for table in files, layers:
        for name, lines in sorted(table.items(), key=lambda item: sum(item[1]) / len(item[1])):
            show(name, lines)
        print()
    show("user", [line for lines in files.values() for line in lines])


main()
