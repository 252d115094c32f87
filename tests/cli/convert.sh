#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# convert: a recording in every format, and from each to every other; warnings of losses, --positions,
# pipes, directories, files that cannot be written or read.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

convert() {
	"$profiltool" convert "$@"
}

# --- One recording in every format ---

mapfile -t formats < <(convert --help | tr -s ' \n' ' ' | sed 's/.*FORMAT is one of: //' | grep -oE '^[a-z]+(, [a-z]+)*' |
	sed 's/, /\n/g')
check "--help reports all formats" test "$(printf '%s\n' "${formats[@]}" | sort | xargs)" = \
	"callgrind dcpi firefox folded gmon gperftools otlp pprof speedscope"
# These are only written.
mapfile -t formats < <(printf '%s\n' "${formats[@]}" | grep -vE "speedscope|firefox|otlp")

shares=$progs/shares
check "a program runs" start_ready "$shares" 2
check "it is recorded" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 999 -o "$work/a.pb.gz"
for format in "${formats[@]}"; do
	check "recorded as $format" exits 0 until_used "$pid" 400 "$profiltool" record -p "$pid" -F 4999 -q -E 1 \
		-f "$format" -o "$work/recorded.$format"
	check "recorded as $format: it is read again" \
		grep -q burn_sixty \
		<("$profiltool" report --executable "$shares" "$work/recorded.$format" 2>&1)
done
stop "$pid"

# of_program FILE: prints "SAMPLES FUNCTION" of the program's functions, without the image.
of_program() {
	"$profiltool" report --executable "$shares" --json "$1" 2>/dev/null | python3 -c '
import collections, json, sys
sums = collections.Counter()
for f in json.load(sys.stdin)["functions"]:
	if f["name"].startswith("burn_") and f["self"]:
		sums[f["name"]] += f["self"]
for name, count in sorted(sums.items()):
	print(count, name)'
}

# has_addresses FORMAT: whether names can be found anew in it.
has_addresses() {
	[[ $1 != folded && $1 != callgrind ]]
}

# same_program FILE FILE: whether both have the same samples of the program, and some. gmon.out has
# two bytes of code in a cell: a function that begins at the second is taken for the one before it.
same_program() {
	paste -d ' ' <(of_program "$1") <(of_program "$2") | awk -v gmon="$2" '
		{ print }
		$2 != $4 { bad = 1 }
		$1 != $3 && (gmon !~ /gmon/ || $1 < $3 * 0.9 - 3 || $1 > $3 * 1.1 + 3) { bad = 1 }
		END { exit bad || !NR }'
}

for one in "${formats[@]}"; do
	check "to $one" exits 0 convert -f "$one" "$work/a.pb.gz" "$work/one.$one"
	check "to $one: the same samples" same_program "$work/a.pb.gz" "$work/one.$one"
	for two in "${formats[@]}"; do
		# Names alone make no addresses.
		has_addresses "$one" || ! has_addresses "$two" || [ "$two" = pprof ] || continue
		check "$one to $two" exits 0 convert --executable "$shares" -f "$two" \
			"$work/one.$one" "$work/two.$one.$two"
		check "$one to $two: the same samples" \
			same_program "$work/a.pb.gz" "$work/two.$one.$two"
	done
done

for extension in pb.gz pb pprof:pprof prof:gperftools callgrind:callgrind folded:folded \
	collapsed:folded; do
	name=${extension#*:}
	[[ $extension == *:* ]] || name=pprof
	convert "$work/a.pb.gz" "$work/by.${extension%:*}" 2>"$work/err"
	check "the extension .${extension%:*} is $name" test "$(dumped format "$work/by.${extension%:*}")" = "$name"
done

# --- Warnings of losses ---

check "folded: the loss is reported" exits 0 convert -f folded "$work/a.pb.gz" "$work/x"
check "once, with all" says "$work/x: the folded format does not hold addresses, source lines, images, mappings"
check "in one line" test "$(grep -c 'does not hold' "$work/err")" = 1
check "-q: the same file" exits 0 convert -q -f folded "$work/a.pb.gz" "$work/quiet"
check "-q: the same file: it is" cmp "$work/x" "$work/quiet"
check "-q: says nothing" test ! -s "$work/err"
check "pprof to pprof loses nothing" exits 0 convert "$work/a.pb.gz" "$work/x.pb.gz"
check "pprof to pprof loses nothing: says nothing" test ! -s "$work/err"
check "what was looked up is not lost" exits 0 convert -f dcpi "$work/one.gperftools" "$work/looked"
check "names were not in the file" test "$(grep -c names "$work/err")" = 0

# --- Positions ---

check "callgrind: lines by default" exits 0 convert "$work/a.pb.gz" "$work/line.callgrind"
check "in the file" grep -qx "positions: line" "$work/line.callgrind"
check "--positions line" exits 0 convert --positions line "$work/a.pb.gz" "$work/line2.callgrind"
check "--positions line: is the same" cmp "$work/line.callgrind" "$work/line2.callgrind"
check "--positions instr" exits 0 convert --positions instr "$work/a.pb.gz" "$work/instr.callgrind"
check "in the file, too" grep -qx "positions: instr line" "$work/instr.callgrind"
check "addresses are then no loss" test "$(grep -c addresses "$work/err")" = 0
check "--positions of another format" exits 2 convert --positions line "$work/a.pb.gz" "$work/x.prof"
check "says whose they are" says "--positions is for callgrind"
check "--positions of another kind" exits 2 convert --positions byte "$work/a.pb.gz" "$work/x.callgrind"
check "says which there are" says "line or instr"

# --- Pipes ---

check "from a pipe into a pipe" diff <(of_program "$work/a.pb.gz") \
	<(convert -f gperftools - - <"$work/a.pb.gz" 2>/dev/null | convert - - |
		"$profiltool" report --json - 2>/dev/null | python3 -c '
import json, sys
for f in sorted(json.load(sys.stdin)["functions"], key=lambda f: f["name"]):
	if f["name"].startswith("burn_"):
		print(f["self"], f["name"])')
head_of() {
	convert -f folded "$1" - 2>"$work/head.err" | head -n 1 >"$work/head.out"
	[ "${PIPESTATUS[0]}" -eq 0 ] && [ -s "$work/head.out" ] && ! grep -v "does not hold" "$work/head.err"
}
for i in $(seq 20000); do echo "main;function_$i;leaf_$i $i"; done >"$work/many.folded"
check "text into head: no complaint" head_of "$work/many.folded"
check "a full disk" exits 1 convert -f folded "$work/a.pb.gz" /dev/full
check "a full disk: reported" says "No space left on device"
limited() {
	(ulimit -f 16 && "$profiltool" convert "$work/many.folded" "$work/limited.folded" 2>"$work/err")
	[ $? -eq 1 ] && ! compgen -G "$work/limited*" >"$work/listing"
}
check "a limit on the size of files: failed, and nothing is left" limited
check "says so" says "File too large"
full() {
	convert -f "$1" "$work/a.pb.gz" - >/dev/full 2>"$work/full.err"
	[ $? -eq 1 ] && grep -q "cannot write" "$work/full.err"
}
for format in pprof gperftools callgrind folded; do
	check "$format: standard output is full" full "$format"
done
check "binary does not go to a terminal" grep -q "does not go to a terminal" \
	<(script -qec "$profiltool convert $work/a.pb.gz -" /dev/null </dev/null)
check "text does" grep -q "burn_sixty" \
	<(script -qec "$profiltool convert -f folded $work/a.pb.gz -" /dev/null </dev/null)

# --- Where it cannot be written ---

check "a format that does not exist" exits 2 convert -f perf.data "$work/a.pb.gz" "$work/x"
check "says which are" says "pprof, "
check "a directory that does not exist" exits 1 convert "$work/a.pb.gz" "$work/none/x.prof"
check "says how to fix it" says "mkdir -p"
mkdir "$work/directory"
check "a directory in place of a file" exits 1 convert -f pprof "$work/a.pb.gz" "$work/directory"
check "a directory in place of a file: reported" says "Is a directory"
for format in dcpi gmon; do
	check "$format into a file" exits 2 convert -f $format "$work/a.pb.gz" "$work/many.folded"
	check "$format into a file: why" says "one file for each image"
	check "$format into standard output" exits 2 convert -f $format "$work/a.pb.gz" -
	check "$format below a file" exits 1 convert -f $format "$work/a.pb.gz" "$work/many.folded/x"
	check "$format into new directories" exits 0 convert -f $format "$work/a.pb.gz" "$work/new.$format/a/b"
	(cd "$work" && convert -f $format a.pb.gz "relative.$format") 2>"$work/err"
	check "$format into a directory without a slash" test -d "$work/relative.$format"
done
check "two files too few" exits 2 convert "$work/a.pb.gz"
check "one too many" exits 2 convert "$work/a.pb.gz" x y
check "the input was left alone" exits 0 "$profiltool" report "$work/many.folded"

# --- What cannot be read ---

mkdir "$work/empty"
echo "some text" >"$work/empty/README"
check "a directory without profiles" exits 1 convert "$work/empty" "$work/x.pb.gz"
check "names it" says "$work/empty"
check "a database in a directory" exits 0 convert "$work/one.dcpi" "$work/x.pb.gz"
check "an executable that does not exist" exits 1 convert --executable "$work/none" \
	"$work/one.gperftools" "$work/x.pb.gz"
check "an executable that does not exist: reported" says "$work/none: No such file"

# Its last line has a NUL, as a file whose end never came to the disk.
head -c 700000 "$work/many.folded" >"$work/cut.folded"
head -c 100 /dev/zero >>"$work/cut.folded"
check "a cut file is refused" exits 1 convert "$work/cut.folded" "$work/cut.pb.gz"
check "a cut file is refused: with the line" says "$work/cut.folded:"
check "a cut file is refused: the hint" says "--salvage"
check "nothing was written" test ! -e "$work/cut.pb.gz"
check "--salvage: written but incomplete" exits 3 convert --salvage "$work/cut.folded" "$work/cut.pb.gz"
check "--salvage: written but incomplete: says what was not read" \
	says "1 line(s) were not read, the first is line 19820: the line has a NUL"
# The last line is cut within its names.
kept() {
	[ "$("$profiltool" dump "$work/cut.pb.gz" | sed '1,/^stacks:/d' | wc -l)" -eq \
		"$(($(wc -l <"$work/cut.folded")))" ]
}
check "all whole lines were" kept
for command in report dump; do
	check "$command --salvage" exits 3 "$profiltool" $command --salvage "$work/cut.folded"
	check "$command without" exits 1 "$profiltool" $command "$work/cut.folded"
done
check "--salvage of a whole file" exits 0 convert --salvage "$work/many.folded" "$work/x.pb.gz"
head -c 20 "$work/one.gperftools" >"$work/stump"
check "--salvage of nothing" exits 1 convert --salvage "$work/stump" "$work/x.pb.gz"

# --- A signal while it writes ---

awk 'BEGIN { for (i = 0; i < 300000; i++) print "main;f" i % 1000 ";g" i " 1" }' >"$work/big.folded"
# Ends convert when its file is there under another name; a slow host may be too late for that.
ended_while_writing() {
	local converter got

	for _ in 1 2 3 4 5; do
		rm -f "$work/big.callgrind"
		"$profiltool" convert "$work/big.folded" "$work/big.callgrind" 2>"$work/err" &
		converter=$!
		until compgen -G "$work/big.callgrind*" || ! kill -0 "$converter"; do
			:
		done >"$work/out" 2>&1
		kill -TERM "$converter"
		wait "$converter"
		got=$?
		[ "$got" -eq 143 ] && break
	done
	[ "$got" -eq 143 ]
}
alone() {
	[ "$(compgen -G "$work/big.callgrind*")" = "$work/big.callgrind" ]
}
check "it is ended while it writes" ended_while_writing
check "the file is there, and no other" alone
check "the file is there, and no other: it is whole" \
	exits 0 "$profiltool" report -E 1 "$work/big.callgrind"

cp "$profiltool" "$work/profiltool"
chmod 755 "$work" "$work/profiltool"
cp "$work/a.pb.gz" "$work/secret.pb.gz"
chmod 600 "$work/secret.pb.gz"
mkdir -m 755 "$work/locked"
as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$work/profiltool" "$@"
}
if as_nobody --version >/dev/null 2>&1; then
	chmod 644 "$work/many.folded"
	check "as nobody: a file that is not for everyone" exits 5 as_nobody convert "$work/secret.pb.gz" -
	check "as nobody: why" says "Permission denied"
	for format in pprof dcpi; do
		check "as nobody: $format where one may not write" exits 5 as_nobody convert -f $format \
			"$work/many.folded" "$work/locked/x"
		check "as nobody: $format, why" says "Permission denied"
	done
else
	skip "as nobody" "setpriv cannot become nobody here"
fi

finish
