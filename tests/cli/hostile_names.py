# SPDX-License-Identifier: GPL-2.0-only
"""For hostile_names.sh.

make SOURCE PROGRAM: makes a program whose functions have hostile names, and a thread that has one.
clean FILE: whether the file is text that nobody can hide in: UTF-8, one line where it says so.
"""
import os
import subprocess
import sys

NAMES = [
	b"\x1b[31mescape\x1b[0m\x1b]0;title\x07",
	b"newline\nsamples  %\r99 100.00\x08\ttab\x0b\x0c\x7f",
	b"quotes\"'`\\;<script>alert(1)</script>&amp;<!--]]>-->",
	"bidi\u202e\u2066evil\u2069\u200b\ufeff\u2028\u061c\u00ad".encode(),
	b"wrong\xff\xfe\xc0\x80\xed\xa0\x80\xf8\x88\x80\x80\x80\xe2\x80",
	b"controls\xc2\x9b31m\x9b31m\xc2\x85\x01\x1f",
	b"fn=(1) calls=3 +4\nfn=(2)",
	b"folded;a;b 100\nc;d 200",
	b" %s%n%99999999s $(x) @0x1-0x2 [unknown] ",
	"\u20ac wide \U0001f600 \u4e2d\u6587 e\u0301".encode(),
	b"_ZN" + b"1a" * 5000 + b"Ev",
	b"_Z1fI" + b"P" * 200000 + b"iEvv",
	(b"long\x1b[2J" + b"x" * 97 + "\u20ac".encode()) * 10000,
]
THREAD = b"\x1b[31m\n\xff\"<b>;\xe2\x80\xae"

# As user/util/utf8.c
HIDDEN = [(0, 8), (0xb, 0x1f), (0x7f, 0x9f), (0xad, 0xad), (0x61c, 0x61c), (0x180e, 0x180e),
	  (0x200b, 0x200f), (0x2028, 0x202e), (0x2060, 0x206f), (0xfeff, 0xfeff),
	  (0xfff9, 0xfffb), (0xe0000, 0xe0fff)]


def write_source(path, places):
	with open(path, "w") as out:
		out.write("#include <pthread.h>\n#include <stdio.h>\n#include <sys/prctl.h>\n"
			  "volatile unsigned long sink;\n")
		for i, place in enumerate(places):
			out.write('__attribute__((noinline)) void f%d(void) __asm__("%s");\n'
				  "void f%d(void)\n{\n\tsink += (long)__builtin_frame_address(0);\n"
				  "\tfor (int i = 0; i < 20000; i++)\n\t\tsink += i;\n}\n"
				  % (i, place.decode(), i))
		out.write("static void *run(void *name)\n{\n\tprctl(PR_SET_NAME, name);\n"
			  '\tputs("ready");\n\tfflush(stdout);\n\tfor (;;) {\n')
		out.write("".join("\t\tf%d();\n" % i for i in range(len(places))))
		out.write("\t}\n}\nint main(void)\n{\n\tpthread_t thread;\n\n"
			  '\tpthread_create(&thread, NULL, run, "%s");\n'
			  "\tpthread_join(thread, NULL);\n}\n"
			  % "".join("\\%03o" % byte for byte in THREAD))


def make(source, program):
	"""The compiler takes names of as many letters; then they are put in their places."""
	places = [(b"HOSTILE_%02d_" % i).ljust(len(name), b"z") for i, name in enumerate(NAMES)]
	write_source(source, places)
	subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", program,
			os.path.basename(source)], cwd=os.path.dirname(source), check=True)
	with open(program, "rb") as file:
		data = file.read()
	for place, name in zip(places, NAMES):
		assert place in data
		data = data.replace(place, name)
	with open(program, "wb") as file:
		file.write(data)


def clean(path):
	with open(path, "rb") as file:
		text = file.read().decode() # fails when it is no UTF-8
	found = {c for c in text if any(a <= ord(c) <= b for a, b in HIDDEN)}
	for c in found:
		at = text.index(c)
		print("%s: %r in %r" % (path, c, text[max(0, at - 30):at + 30]))
	return not found


if sys.argv[1] == "make":
	make(os.fsencode(sys.argv[2]), os.fsencode(sys.argv[3]))
else:
	sys.exit(not all([clean(path) for path in sys.argv[2:]]))
