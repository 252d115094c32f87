#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prints how long functions are, and how many are doors: static, and named once elsewhere in their file.

functions.py [FILE...]: of these C files, by default all of bpf/, kmod/ and user/. There is no limit on any of these
numbers; CONTRIBUTING.md says when a function is worth its door.
"""
import collections
import glob
import os
import re
import statistics
import sys

top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START = re.compile(r"^(?!(?:typedef|struct|enum|union|extern)\b[^(]*[{;=])(\w[\w\s*(),]*?)\b(\w+)\(", re.M)


def without_comments(text):
	"""The text with comments and strings blanked, lines kept."""
	pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
	return pattern.sub(lambda m: '""' if m[0][0] in "\"'" else re.sub(r"[^\n]", " ", m[0]), text)


def functions(text):
	"""(name, is static, number of lines between its braces) of each function that is defined at the start of a line."""
	lines = text.split("\n")
	i = 0
	while i < len(lines):
		if lines[i] != "{":
			i += 1
			continue
		first = i
		while first and lines[first - 1].strip() and not lines[first - 1].rstrip().endswith((";", "}")) and \
				not lines[first - 1].startswith(("#", "}")):
			first -= 1
		end = i
		while end < len(lines) and not lines[end].startswith("}"):
			end += 1
		head = " ".join(lines[first:i])
		name = re.search(r"\b(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:__\w+\S*)?\s*$", head)
		if name and "=" not in head:
			yield name[1], "static" in head.split("(")[0], end - i - 1
		i = end + 1


def main():
	os.chdir(top)
	files = sys.argv[1:] or [f for d in ("bpf", "kmod", "user") for f in sorted(
		glob.glob(d + "/**/*.[ch]", recursive=True)) if not f.endswith("vmlinux.h")]
	lengths, doors, lines, called = [], collections.Counter(), 0, 0
	for path in files:
		text = without_comments(open(path, encoding="utf-8").read())
		lines += sum(1 for line in text.split("\n") if line.strip())
		for name, static, length in functions(text):
			lengths.append(length)
			if static and len(re.findall(r"\b%s\b" % name, text)) == 2:
				doors[os.path.dirname(path)] += 1
				called += len(re.findall(r"\b%s\(" % name, text)) == 2
	lengths.sort()
	print("functions %d, lines in their braces: median %d, mean %.1f, p90 %d; code lines a function %.1f" % (
		len(lengths), statistics.median(lengths), statistics.mean(lengths), lengths[len(lengths) * 9 // 10],
		lines / len(lengths)))
	print("static and named once elsewhere in their file: %d (%d %%), to be called: %d; in tables and as callbacks: %d" % (
		sum(doors.values()), 100 * sum(doors.values()) // len(lengths), called, sum(doors.values()) - called))
	for directory, count in doors.most_common():
		print("%6d  %s" % (count, directory))


if __name__ == "__main__":
	main()
