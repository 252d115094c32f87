#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Names of functions, files and threads with escapes, newlines, markup, bidirectional characters and invalid
# UTF-8: none of these reach a terminal, a browser or another column.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

hostile=$top/tests/cli/hostile_names.py
functions=13 # that it makes
export NO_COLOR=1

directory=$work/$'dir\e[31m\n"<b>\xe2\x80\xae\xff;'
mkdir "$directory"
check "a program with such names" python3 "$hostile" make "$directory/"$'s\e[31m\n<i>".c' "$directory/"$'prog\e[0m'
check "it runs" start_ready "$directory/"$'prog\e[0m'
target=$pid

# clean NAME EXPECTED-STATUS COMMAND...: keeps what it prints on both streams, which is to be fit for
# a terminal: see the end.
mkdir "$work/printed"
clean() {
	local name=$1 code=$2
	shift 2
	check "$name: succeeds" exits "$code" "$@"
	cp "$work/out" "$work/printed/$name, output"
	cp "$work/err" "$work/printed/$name, messages"
}

# In the table, each function has one line and stands before its image.
rows() {
	[ "$(grep -cE '^ *[0-9]+ +[0-9.]+ .*  prog.x1b\[0m$' "$work/out")" -ge "$functions" ]
}

profile=$work/hostile.pb.gz
clean "record" 0 until_used "$target" 600 "$profiltool" -p "$target" -F 4999 -g -o "$profile"
check "record: a line for each function" rows
clean "record --json" 0 until_used "$target" 600 "$profiltool" -p "$target" -F 4999 --json
check "record --json: can be read" json 'len(j["functions"]) >= 13' "$work/out"
clean "check -p" 0 "$profiltool" check -p "$target"
clean "check -p --json" 0 "$profiltool" check -p "$target" --json
check "check -p --json: can be read" json 'len(j) > 15' "$work/out"
kill -CONT "$target"
clean "top" 0 "$profiltool" top -p "$target" -F 4999 -d 0.5 --tables 2
clean "top --json" 0 "$profiltool" top -p "$target" -F 4999 -d 1 --tables 2 --json
first_object() {
	head -n 1 "$work/out" >"$work/object" && json 'len(j["rows"]) > 0' "$work/object"
}
check "top --json: can be read" first_object
stop "$target"

for by in function image address source line thread process; do
	clean "report --by $by" 0 "$profiltool" report --by $by "$profile"
	clean "report --by $by --json" 0 "$profiltool" report --by $by --json "$profile"
	check "report --by $by --json: can be read" json 'len(j.get("rows", j.get("functions"))) > 0' "$work/out"
done
clean "report --inline" 0 "$profiltool" report --inline "$profile"
# JSON has each name as it is, and one for each function.
check "report --json" exits 0 "$profiltool" report --json "$profile"
check "report --json: names are whole" json \
	'{"\x1b[31mescape\x1b[0m\x1b]0;title\x07", "folded;a;b 100\nc;d 200"} < {f["name"] for f in j["functions"]}' \
	"$work/out"
name=$'\e[31mescape\e[0m\e]0;title\a'
clean "report --tree" 0 "$profiltool" report --tree "$profile"
clean "report --callers" 0 "$profiltool" report --callers "$name" "$profile"
clean "report --callees" 0 "$profiltool" report --callees run "$profile"
clean "report --focus" 0 "$profiltool" report --focus escape "$profile"
clean "report --focus of what is not there" 4 "$profiltool" report --focus $'\e\\[2J\nno' "$profile"
clean "report --callers of what is not there" 1 "$profiltool" report --callers $'\e[2J\nno\xff' "$profile"
clean "dump" 0 "$profiltool" dump "$profile"
clean "dump --json" 0 "$profiltool" dump --json "$profile"
check "dump --json: can be read" json 'len(j["stacks"]) > 0' "$work/out"
clean "diff" 0 "$profiltool" diff "$profile" "$profile"
clean "diff --json" 0 "$profiltool" diff --json "$profile" "$profile"
check "diff --json: can be read" json 'len(j) > 0' "$work/out"
clean "annotate" 0 "$profiltool" annotate "$name" "$profile"
clean "annotate --json" 0 "$profiltool" annotate --json "$name" "$profile"
check "annotate --json: can be read" json 'len(j) > 0' "$work/out"
clean "annotate of what is not there" 1 "$profiltool" annotate $'\e[2J\nno\xff' "$profile"
clean "a file that is not there" 1 "$profiltool" report $'\e[2J\nno\xff'
clean "an option that there is not" 2 "$profiltool" report $'--\e[2J\nno\xff'
clean "a command that there is not" 2 "$profiltool" $'\e[2J\nno\xff'

# --- On a terminal: the same, at every width ---

narrow() {
	terminal "$1" "$profiltool" report "$profile" >"$work/out" &&
		cp "$work/out" "$work/printed/terminal of $1 columns" &&
		python3 -c 'import sys
width, path = int(sys.argv[1]), sys.argv[2]
long = [line for line in open(path) if len(line.rstrip("\n")) > width]
print(long)
sys.exit(bool(long))' "$1" "$work/out"
}
for width in 40 80 200; do
	check "a terminal of $width columns: no line is longer" narrow $width
done

# --- Flame graphs ---

for format in svg html; do
	clean "flamegraph: $format" 0 "$profiltool" flamegraph "$profile" -o "$work/flame.$format"
	cp "$work/flame.$format" "$work/printed"
	check "flamegraph: $format: no script of theirs" \
		test "$(grep -c '<script>alert' "$work/flame.$format")" -eq 0
done
check "flamegraph: svg: well-formed" python3 -c '
import sys, xml.etree.ElementTree
xml.etree.ElementTree.parse(sys.argv[1])' "$work/flame.svg"

# --- Other formats: text is as clean, and readers agree about the counts ---

self_counts() {
	"$profiltool" report --json "$1" 2>/dev/null | python3 -c '
import json, sys
print(sorted(f["self"] for f in json.load(sys.stdin)["functions"] if f["self"]))'
}
same_counts() {
	local here there

	here=$(self_counts "$profile") there=$(self_counts "$1")
	[ -n "$here" ] && [ "$here" = "$there" ] && return
	printf '%s\n' "$here" "$there"
	return 1
}
for format in callgrind folded; do
	clean "convert -f $format" 0 "$profiltool" convert -f $format "$profile" "$work/as.$format"
	cp "$work/as.$format" "$work/printed"
	check "convert -f $format: the same counts" same_counts "$work/as.$format"
	clean "report of $format" 0 "$profiltool" report "$work/as.$format"
	clean "dump of $format" 0 "$profiltool" dump "$work/as.$format"
done
for format in speedscope firefox; do
	clean "convert -f $format" 0 "$profiltool" convert -f $format "$profile" "$work/as.$format"
	cp "$work/as.$format" "$work/printed"
	check "convert -f $format: can be read" json 'len(j) > 3' "$work/as.$format"
done
check "folded: names are whole" exits 0 "$profiltool" report --json "$work/as.folded"
check "folded: as they were" json \
	'{"\x1b[31mescape\x1b[0m\x1b]0;title\x07", "folded;a;b 100\nc;d 200"} < {f["name"] for f in j["functions"]}' \
	"$work/out"
for format in pprof gperftools dcpi gmon; do
	clean "convert -f $format" 0 "$profiltool" convert -f $format "$profile" "$work/as.$format"
	clean "report of $format" 0 "$profiltool" report "$work/as.$format"
	clean "dump of $format" 0 "$profiltool" dump "$work/as.$format"
done
check "pprof: the same counts" same_counts "$work/as.pprof"

samples=$("$profiltool" dump --json "$profile" | python3 -c '
import json, sys
print(json.load(sys.stdin)["samples"])')
if command -v callgrind_annotate >/dev/null; then
	annotated() {
		callgrind_annotate --threshold=100 "$work/as.callgrind" >"$work/out" 2>"$work/err" &&
			grep -q 'PROGRAM TOTALS' "$work/out" && cp "$work/out" "$work/printed/callgrind_annotate"
	}
	check "callgrind_annotate: reads it" annotated
else
	skip "callgrind_annotate: reads it" "there is no valgrind here"
fi
if command -v go >/dev/null; then
	counted() {
		HOME=$work go tool pprof -raw "$work/as.pprof" >"$work/out" 2>"$work/err" || return
		[ "$(sed -n '/^Samples:/,/^Locations/s/^ *\([0-9]*\) .*: .*/\1/p' "$work/out" |
			awk '{ sum += $1 } END { print sum }')" = "$samples" ]
	}
	check "go tool pprof: counts the same" counted
else
	skip "go tool pprof: counts the same" "there is no go here"
fi

check "what was printed is kept" test "$(find "$work/printed" -type f -size +0 | wc -l)" -gt 70
check "nothing raw in all that was printed" python3 "$hostile" clean "$work/printed/"*

finish
