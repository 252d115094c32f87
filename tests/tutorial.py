#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The commands of a page, and what it shows that they print.

tutorial.py split DIRECTORY <PAGE
        PAGE is a manual page as text. Its indented lines that begin with "# " are commands. Makes a
        directory DIRECTORY/SECTION/COMMAND for each, both numbers of two digits, with the files
        `command` and `shown`: the lines below the command. DIRECTORY/SECTION/title is the section's
        heading.
tutorial.py compare SECTION...
        For each command of these directories, in which is a file `printed` now, makes `differences`. It is
        empty if all lines in `shown` are in `printed`, in this order. Numbers, addresses and the lines
        of a tree are not compared, nor is a column "in doubt", which a busy machine adds, and two rows
        of a table may have another order if their numbers are within a factor of ten: on a busy
        machine, caches change shares. A line "..." is skipped, and one that ends in " ..." is the
        beginning of a line.
"""
import glob, os, re, subprocess, sys

INDENT = " " * 11 # of .Bd -literal -offset indent
NUMBER = re.compile(r"[<~+-]?(0x[0-9a-f]+|\d+([.,]\d+)*(e[+-]\d+)?)")
LAZY = re.compile(r"\bLazyCompile:(\S+ \S+:\d+)") # Node.js up to 18, without a column
UNIT = re.compile(r"\b[mnuT]s\b")
DOUBT = re.compile(r"\bin doubt\b")

def is_complete(command):
	document = re.search(r"<<'(\w+)'", command)
	if document:
		return command.endswith("\n" + document[1])
	return not command.endswith("\\") and subprocess.run(["bash", "-n"], input=command, text=True,
		stderr=subprocess.DEVNULL).returncode == 0

def write(name, text):
	os.makedirs(os.path.dirname(name), exist_ok=True)
	with open(name, "w") as file:
		file.write(text)

def split(directory):
	section = number = 0
	command = None # the one that is being read
	for line in sys.stdin.read().splitlines():
		if line and line[0] != " ":
			section += 1
			number = 0
			write(f"{directory}/{section:02}/title", line + "\n")
			continue
		text = line[len(INDENT):]
		if command is not None:
			command += "\n" + text
		elif line.startswith(INDENT + "# "):
			number += 1
			command = text[2:]
		elif number and line.startswith(INDENT):
			with open(f"{directory}/{section:02}/{number:02}/shown", "a") as file:
				file.write(text + "\n")
		if command is not None and is_complete(command):
			write(f"{directory}/{section:02}/{number:02}/command", command + "\n")
			write(f"{directory}/{section:02}/{number:02}/shown", "")
			command = None
	if command is not None:
		sys.exit(f"this command has no end: {command}")

# What is compared of a line.
def plain(line):
	line = DOUBT.sub("", LAZY.sub(r"JS:\1:0", line))
	words = UNIT.sub("s", NUMBER.sub("#", line)).split()
	return " ".join(word for word in words if word not in "#+|`")

# The number of a table's row, which begins with two numbers.
def row_number(line):
	match = re.match(r"\s*(\d+(?:\.\d+)?)\s+[<~+-]?\d", line)
	return float(match[1]) if match else None

# Whether the first of two shown lines has to come first in what was printed.
def is_ordered(first, second):
	a, b = row_number(first), row_number(second)
	return a is None or b is None or a >= 10 * b

def is_line(wanted, line):
	return line == wanted or wanted.endswith(" ...") and line.startswith(wanted[:-4])

# The first of the shown lines that is not printed; None if all are.
def first_missing(shown, printed):
	printed = [plain(line) for line in printed]
	places = []
	for i, line in enumerate(shown):
		behind = max([places[j] for j in range(i) if is_ordered(shown[j], line)], default=-1)
		place = next((at for at in range(behind + 1, len(printed))
			if at not in places and is_line(plain(line), printed[at])), None)
		if place is None:
			return line
		places.append(place)
	return None

def lines_of(name):
	with open(name, errors="replace") as file:
		return file.read().splitlines()

def compare(directory):
	shown = [line for line in lines_of(f"{directory}/shown") if line.strip() not in ("", "...")]
	printed = lines_of(f"{directory}/printed")
	missing = first_missing(shown, printed)
	write(f"{directory}/differences", "" if missing is None else
		f"not printed, or not behind the lines above it: {missing}\nprinted:\n" +
		"".join(line + "\n" for line in printed))

if len(sys.argv) == 3 and sys.argv[1] == "split":
	split(sys.argv[2])
elif len(sys.argv) > 2 and sys.argv[1] == "compare":
	for section in sys.argv[2:]:
		for step in glob.glob(f"{section}/*/"):
			compare(step)
else:
	sys.exit(__doc__)
