#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Common to all commands: the width of the terminal, colours, pipes, full disks, locales.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# Before all others, so that it has ticks in any half of a second.
check "a program runs" start_ready chrt -f 1 "$progs/shares" 1 0 stay lazier
target=$pid
profile=$work/profile.pb.gz
check "it is recorded" exits 0 until_used "$target" 250 "$profiltool" -p "$target" -F 999 -g -q -o "$profile"
kill -CONT "$target"
cp "$profile" "$work/again.pb.gz"

# Each command that prints a view: NAME|ARGUMENTS, for eval.
# shellcheck disable=SC2016,SC2154 # expanded then; and so is args
views='
report|report "$profile"
report --by line|report --by line "$profile"
report --by address|report --by address "$profile"
report --by image|report --by image "$profile"
report --tree|report --tree "$profile"
report --callers|report --callers burn_sixty "$profile"
report --callees|report --callees burn_sixty "$profile"
annotate|annotate burn_sixty "$profile"
diff|diff "$profile" "$work/again.pb.gz"
dump|dump "$profile"
check|check
record|-p "$target" -F 4999 -d 0.5
top|top -p "$target" -F 4999 -d 0.5 --tables 1
'
names=() arguments=() args=()
while IFS='|' read -r name line; do
	[ -n "$name" ] || continue
	names+=("$name")
	arguments+=("$line")
done <<<"$views"

# args N: sets `args` to the arguments of a view.
args() {
	eval "args=(${arguments[$1]})"
}

# --- Terminals ---

# screen WIDTH COMMAND...: what is to be seen on a terminal so wide, in $work/screen.
screen() {
	script -qec "stty cols $1 rows 50; exec $(printf '%q ' "${@:2}") 2>/dev/null" /dev/null \
		</dev/null | tr -d '\r' >"$work/screen"
	[ -s "$work/screen" ] || terminal "$1" true # which has the row skipped where there is none
}
# no_longer WIDTH FILE: whether no line is, escapes left out. Commands to be copied stay whole.
no_longer() {
	! sed -e 's/\x1b\[[0-9;]*m//g' -e '/^ *-> /d' "$2" | grep -E "^.{$(($1 + 1)),}"
}
fits() {
	args "$2"
	screen "$1" "$profiltool" "${args[@]}" && no_longer "$1" "$work/screen"
}
# What is indented cannot be as narrow as a table; dump shows what is there.
for n in "${!names[@]}"; do
	case ${names[n]} in
	dump) widths='' ;;
	*--tree | *--call* | check | top) widths='80 200' ;;
	*) widths='40 80 200' ;;
	esac
	for width in $widths; do
		check "${names[n]}: $width columns" fits "$width" "$n"
	done
done
fits_nothing() {
	screen 0 "$profiltool" report "$profile" && grep -q burn_sixty "$work/screen"
}
check "a terminal that does not tell its width" fits_nothing

colored() {
	args "$1"
	screen 100 env TERM=xterm "${@:2}" "$profiltool" "${args[@]}" && grep -q $'\e' "$work/screen"
}
plain() {
	args "$1"
	screen 100 env TERM=xterm "${@:2}" "$profiltool" "${args[@]}" && ! grep -q $'\e' "$work/screen"
}
for n in "${!names[@]}"; do
	case ${names[n]} in
	dump | top) ;;
	*) check "${names[n]}: coloured on a terminal" colored "$n" ;;
	esac
	check "${names[n]}: NO_COLOR" plain "$n" env NO_COLOR=1
done
check "a dumb terminal" plain 0 env TERM=dumb
check "an empty NO_COLOR is none" colored 0 env NO_COLOR=

# --- Pipes ---

in_pipe() {
	args "$1"
	"$profiltool" "${args[@]}" >"$work/out" 2>"$work/err" && [ -s "$work/out" ] &&
		! grep -q $'[\e\r]' "$work/out" "$work/err"
}
# Whoever reads a view gets nothing that is said about it.
no_messages() {
	! grep -q '^profiltool:' "$work/out"
}
# A reader that has enough is no error; what else was to be said is said.
cut_short() {
	local piped

	args "$1"
	"$profiltool" "${args[@]}" 2>"$work/err" | head -n 1 >"$work/line"
	piped=("${PIPESTATUS[@]}")
	[ "${piped[0]}" -eq 0 ] && [ -s "$work/line" ] && ! grep -iE 'pipe|cannot' "$work/err"
}
full() {
	args "$1"
	"$profiltool" "${args[@]}" 2>"$work/err" >/dev/full
	[ $? -eq 1 ] && grep -q 'No space left on device' "$work/err"
}
for n in "${!names[@]}"; do
	check "${names[n]}: in a pipe, no colour" in_pipe "$n"
	check "${names[n]}: messages are on standard error" no_messages
	check "${names[n]} | head -n 1" cut_short "$n"
	check "${names[n]}: to a full disk" full "$n"
done
# What it writes ends in one large piece, so that nothing is left to be written at the end.
drawn_to_full() {
	"$profiltool" flamegraph "$profile" -f html -o - 2>"$work/err" >/dev/full
	[ $? -eq 1 ] && says 'No space left on device'
}
drawn_cut_short() {
	"$profiltool" flamegraph "$profile" -f html -o - 2>"$work/err" | head -c 1 >"$work/line"
	[ "${PIPESTATUS[0]}" -eq 0 ] && [ -s "$work/line" ] && ! grep cannot "$work/err"
}
check "flamegraph -o -: to a full disk" drawn_to_full
check "flamegraph -o - | head" drawn_cut_short
if command -v less >/dev/null; then
	paged() {
		"$profiltool" report "$profile" 2>"$work/err" | less -FX >"$work/out"
		[ "${PIPESTATUS[*]}" = "0 0" ] && grep -q burn_sixty "$work/out"
	}
	check "report | less" paged
else
	skip "report | less" "there is no less here"
fi

# --- Wide and combining characters ---

printf '%s\n' 'main;数える 4' 'main;café 3' 'main;😀::smile 2' 'main;plain 1' >"$work/wide.folded"
cat >"$work/wide.report" <<'END'
self  self%  total  total%  function   image
   4  40.00      4   40.00  数える     [unknown]
   3  30.00      3   30.00  café       [unknown]
   2  20.00      2   20.00  😀::smile  [unknown]
   1  10.00      1   10.00  plain      [unknown]
   0   0.00     10  100.00  main       [unknown]
END
aligned_wide() {
	LC_ALL=$1 "$profiltool" report "$work/wide.folded" >"$work/out" && cmp "$work/out" "$work/wide.report"
}
check "columns are those of a terminal, in the locale C" aligned_wide C
check "columns are those of a terminal, in a UTF-8 locale" aligned_wide C.UTF-8

# --- Numbers ---

# Each right-aligned: they end where the title does.
aligned() {
	"$profiltool" report "$profile" 2>"$work/err" | python3 -c '
import re, sys
lines = sys.stdin.read().split("\n")
ends = [m.end() for m in re.finditer(r"\S+", lines[0])]
rows = [line for line in lines[1:] if line and not line.startswith("...")]
numbers = sum(title[-1] == "%" or title in ("samples", "self", "total") for title in lines[0].split())
for row in rows:
	at = [m.end() for m in re.finditer(r"\S+", row)][:numbers]
	if at != ends[:numbers]:
		sys.exit("%s: %s, not %s" % (row, at, ends))
sys.exit(not rows)'
}
check "numbers stand below each other" aligned

# With a decimal comma, where one can be made.
if localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" >/dev/null 2>&1; then
	german() {
		local way

		for way in "" --json; do
			args "$1"
			[ "$way" ] && ! "$profiltool" "${args[0]}" --help | grep -q -- --json && continue
			# shellcheck disable=SC2086 # nothing, or one word
			LOCPATH=$work LC_ALL=de_DE.UTF-8 "$profiltool" "${args[@]}" $way >"$work/out" 2>"$work/err" || return
			grep -E '[0-9],[0-9]+( |$|%)' "$work/out" "$work/err" && return 1
		done
		return 0
	}
	for n in "${!names[@]}"; do
		check "${names[n]}: a locale with a decimal comma changes no number" german "$n"
	done
else
	skip "a locale with a decimal comma" "localedef cannot make one here"
fi

# --- JSON ---

mkdir "$work/json"
for n in "${!names[@]}"; do
	args "$n"
	check "${names[n]} --json: succeeds" exits 0 "$profiltool" "${args[@]}" --json
	cp "$work/out" "$work/json/$n"
done
check "--json: all can be read" python3 -c 'import json, sys
for path in sys.argv[1:]:
	json.load(open(path))' "$work/json/"*

# --- Help ---

narrow_help() {
	"$profiltool" "$@" --help >"$work/out" && no_longer 80 "$work/out"
}
check "--help: 80 columns" narrow_help
check "--help: on one screen" test "$(wc -l <"$work/out")" -le 50
mapfile -t commands < <("$profiltool" --help | sed -nE 's/^  ([a-z]+)  +[^ ].*/\1/p')
for command in "${commands[@]}"; do
	check "$command --help: 80 columns" narrow_help "$command"
done

finish
