#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Code without symbols: a function described by call frame information is one row, named by its start, in
# every output; the reason why it has no name is still reported.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for other shells
. "$(dirname "$0")/../lib.sh"

# Each function has a name of its own in the file that keeps its symbols. `bare` has no call frame
# information; several instructions of each are sampled.
mkdir "$work/full" "$work/bin"
cat >"$work/parts.c" <<'END'
#define BURN(name, constant)                                                           \
	static __attribute__((noinline)) unsigned name(unsigned n, unsigned x)         \
	{                                                                              \
		for (unsigned i = 0; i < n; i++)                                       \
			x = (x ^ i) * constant / (x | 3) + (x >> 3) % (i | 7);         \
		return x;                                                              \
	}
BURN(lib_often, 7)
BURN(lib_seldom, 11)
unsigned exported(unsigned n, unsigned x);
unsigned exported(unsigned n, unsigned x)
{
	for (unsigned i = 0; i < n; i++)
		x = (x ^ i) * 13 / (x | 3) + (x >> 3) % (i | 7);
	return x;
}
unsigned parts(unsigned n, unsigned x);
unsigned parts(unsigned n, unsigned x)
{
	return lib_often(2 * n, x) + lib_seldom(n, x) + exported(n, x);
}
END
cat >"$work/program.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
unsigned parts(unsigned n, unsigned x);
#ifdef __x86_64__
unsigned bare(unsigned n);
__asm__(".text\nbare:\nmov %edi, %eax\n1: imul $7, %eax\nadd $3, %eax\nxor $5, %eax\n"
	"imul $9, %eax\nsub $1, %edi\njne 1b\nret\n.skip 32, 0x90\n");
#else
static unsigned bare(unsigned n) { return n; }
#endif
static __attribute__((noinline)) unsigned own(unsigned n, unsigned x)
{
	for (unsigned i = 0; i < n; i++)
		x = (x ^ i) * 7 / (x | 3) + (x >> 3) % (i | 7);
	return x;
}
int main(void)
{
	unsigned x = 1;

	puts("ready");
	fflush(stdout);
	/* Ticks fall into step with rounds of equal length: not all functions have their share then. */
	for (;;) {
		unsigned n = 5000 + rand() % 10000;

		x += parts(n, x) + own(2 * n, x) + bare(5 * n);
	}
	return (int)x;
}
END
compile() {
	gcc -O1 -fomit-frame-pointer -fPIC -shared -Wl,--build-id,-soname,libparts.so.1 \
		"$work/parts.c" -o "$work/full/libparts.so.1.2" &&
		gcc -O1 -fomit-frame-pointer -Wl,--build-id "$work/program.c" \
			"$work/full/libparts.so.1.2" -Wl,-rpath,"$work/bin" -o "$work/full/program" &&
		ln -s libparts.so.1.2 "$work/bin/libparts.so.1" &&
		strip -o "$work/bin/libparts.so.1.2" "$work/full/libparts.so.1.2" &&
		strip -o "$work/bin/program" "$work/full/program"
}
check "there is a stripped program" compile

# start_of FUNCTION FILE: FILE+0xADDRESS, where it begins.
start_of() {
	nm "$work/full/$2" | awk -v name="$1" -v file="$2" \
		'$3 == name { sub(/^0*/, "", $1); print file "+0x" $1 }'
}
own=$(start_of own program)
often=$(start_of lib_often libparts.so.1.2)
seldom=$(start_of lib_seldom libparts.so.1.2)

# rows FILE: of a table in JSON, "NAME IMAGE" of our images' functions that have 1 % and more.
rows() {
	python3 - "$1" <<-'END'
		import json, os, sys
		for f in json.load(open(sys.argv[1]))["functions"]:
		    image = os.path.basename(f["image"])
		    if image in ("program", "libparts.so.1.2") and f["self_percent"] >= 1:
		        print(f["name"], image)
	END
}
# What no call frame information describes is a row, too: its instructions say where it begins.
bare=$(start_of bare program)
printf '%s\n' "$own program" "$often libparts.so.1.2" "$seldom libparts.so.1.2" ${bare:+"$bare program"} \
	"exported libparts.so.1.2" | sort >"$work/expected"

same_rows() {
	rows "$1" | sort | diff "$work/expected" -
}

start_ready "$work/bin/program"
check "recorded" exits 0 until_used "$pid" 500 "$profiltool" record -p "$pid" -F 1999 --json -o "$work/a.pb.gz"
cp "$work/out" "$work/a.json"
cp "$work/err" "$work/a.err"
check "one row for each function, and the exported one's name" same_rows "$work/a.json"
check "each function has samples of its own" recorded \
	"ran('$often', '$seldom')" "$work/a.json"
check "the program's reason is said" grep -q \
	"^profiltool: program: .* without symbols: stripped: no symbol table; its debug package" \
	"$work/a.err"
check "the library's reason is said" grep -q \
	"^profiltool: libparts.so.1.2: .* without symbols: stripped: only exported" "$work/a.err"
# All but the exported one's samples
check "their percentage is that of all without a name" python3 - "$work/a.json" "$work/a.err" <<'END'
import json, re, sys
said = float(re.search(r"libparts.so.1.2: .*\((.*) %\)", open(sys.argv[2]).read())[1])
rows = json.load(open(sys.argv[1]))["functions"]
own = sum(f["self_percent"] for f in rows if "libparts" in f["image"] and "+0x" in f["name"])
sys.exit(abs(said - own) > .1 or said < 10)
END
check "recorded again" exits 0 until_used "$pid" 500 "$profiltool" record -p "$pid" -F 1999 -o "$work/b.pb.gz"
stop "$pid"

# --- What is written ---

same_table() {
	"$profiltool" report --json "$1" >"$work/again.json" && same_rows "$work/again.json"
}
check "the file has the same rows" same_table "$work/a.pb.gz"
mv "$work/bin" "$work/away"
check "without the program's files, too" same_table "$work/a.pb.gz"
check "without the program's files, too: has the reason" bash -c '"$0" report "$1" 2>&1 >/dev/null | grep -q "libparts.so.1.2: .*without symbols"' \
	"$profiltool" "$work/a.pb.gz"
for format in callgrind folded; do
	check "$format: written" "$profiltool" convert -f "$format" "$work/a.pb.gz" "$work/a.$format"
	check "$format: names" grep -qF -- "$often" "$work/a.$format"
	check "$format: no other name of the function" bash -c '! grep -o "libparts.so.1.2+0x[0-9a-f]*" "$1" |
		grep -vxF -e "$2" -e "$3" -e "$4"' _ "$work/a.$format" "$often" "$seldom" \
		"$(start_of parts libparts.so.1.2)"
done
check "callgrind: read again, the same rows" same_table "$work/a.callgrind"
if command -v callgrind_annotate >/dev/null; then
	check "callgrind_annotate: a row" bash -c '[ "$(callgrind_annotate "$1" | grep -cF "$2")" = 1 ]' \
		_ "$work/a.callgrind" ":$own "
else
	skip "callgrind_annotate: a row" "it is not installed"
fi
if command -v go >/dev/null; then
	check "go tool pprof: a row" bash -c '[ "$(go tool pprof -top "$1" | grep -cF "$2")" = 1 ]' \
		_ "$work/a.pb.gz" "$often"
else
	skip "go tool pprof: a row" "no go"
fi
check "flame graph" bash -c '"$0" flamegraph -o "$2" "$1" && grep -qF "$3" "$2"' \
	"$profiltool" "$work/a.pb.gz" "$work/a.html" "$own"
check "diff: one row" bash -c '[ "$("$0" diff "$1" "$2" | grep -cF "$3")" = 1 ]' \
	"$profiltool" "$work/a.pb.gz" "$work/b.pb.gz" "$own"
check "merge: one row" bash -c '"$0" merge -o "$3" "$1" "$2"' "$profiltool" "$work/a.pb.gz" \
	"$work/b.pb.gz" "$work/both.pb.gz"
check "merge: the same rows" same_table "$work/both.pb.gz"
check "--focus finds the image by its path" bash -c \
	'"$0" report --json --focus "/bin/libparts" "$1" | grep -qF "$2"' \
	"$profiltool" "$work/a.pb.gz" "$often"

# --- annotate ---

mv "$work/away" "$work/bin"
check "annotate takes the name" exits 0 "$profiltool" annotate "$often" "$work/a.pb.gz"
cp "$work/out" "$work/annotated"
"$profiltool" annotate --json "$often" "$work/a.pb.gz" >"$work/annotated.json" 2>/dev/null
size=$(nm -S "$work/full/libparts.so.1.2" | awk '$4 == "lib_often" { print $2 }')
check "annotate shows the function from its start to its end" json "
j['function'] == '$often' and j['start'] == '${often##*+}' and len(j['instructions']) > 10 and \\
int(j['limit'], 16) - int(j['start'], 16) == 0x$size" "$work/annotated.json"
busiest=$(rows "$work/a.json" | sed -n 's/ libparts.*//p' | head -n 1)
check "annotate takes the busiest function" bash -c \
	'diff <("$0" annotate -d libparts.so.1.2 "$1") <("$0" annotate "$2" "$1")' \
	"$profiltool" "$work/a.pb.gz" "$busiest"
check "annotate takes an address within it" bash -c \
	'"$0" annotate "$2" "$1" | diff - "$3"' "$profiltool" "$work/a.pb.gz" \
	"${often%+*}+$(printf '%#x' $((${often##*+} + 8)))" "$work/annotated"

# --- Other images ---

# record_one NAME: records $pid for a moment.
record_one() {
	exits 0 until_used "$pid" 500 "$profiltool" record -p "$pid" -F 1999 --json -o "$work/$1.pb.gz" &&
		mv "$work/out" "$work/$1.json"
}
cp "$work/bin/program" "$work/bin/v@1 (x)"
start_ready "$work/bin/v@1 (x)"
rm "$work/bin/v@1 (x)"
check "deleted: recorded" record_one deleted
check "deleted, of an odd name: a row by its start" json \
	"'v@1 (x)+${own##*+}' in [f['name'] for f in j['functions']]" "$work/deleted.json"
check "deleted: the file has it" bash -c '"$0" report "$1" 2>/dev/null | grep -qF "$2"' \
	"$profiltool" "$work/deleted.pb.gz" "v@1 (x)+${own##*+} "
stop "$pid"

if runs_32_bit "32-bit"; then
	gcc -m32 -O1 -fomit-frame-pointer "$work/program.c" "$work/parts.c" -o "$work/full/bits32"
	strip -o "$work/bin/bits32" "$work/full/bits32"
	start_ready "$work/bin/bits32"
	check "32-bit: recorded" record_one bits32
	stop "$pid"
	check "32-bit: a row by its start" json \
		"'$(start_of own bits32)' in [f['name'] for f in j['functions']]" "$work/bits32.json"
fi

# --- Symbols that come later ---

for file in program libparts.so.1.2; do
	cp "$work/full/$file" "$work/bin/$file"
done
printf '%s\n' "bare program" "exported libparts.so.1.2" "lib_often libparts.so.1.2" \
	"lib_seldom libparts.so.1.2" "own program" >"$work/expected"
check "symbols that come later name what was recorded" same_table "$work/a.pb.gz"
check "symbols that come later name what was recorded: are written" \
	"$profiltool" convert "$work/a.pb.gz" "$work/named.pb.gz"
mv "$work/bin" "$work/away"
for files in "a named" "named a"; do
	# shellcheck disable=SC2046,SC2086 # two words
	check "merge: names go before starts: $files" "$profiltool" merge -o "$work/both.pb.gz" \
		$(printf "$work/%s.pb.gz " $files)
	check "merge: their rows: $files" same_table "$work/both.pb.gz"
	check "merge: no other: $files" bash -c '! "$0" report "$1" 2>/dev/null | grep -F -e "$2" -e "$3"' \
		"$profiltool" "$work/both.pb.gz" "$often" "$own"
done

finish
