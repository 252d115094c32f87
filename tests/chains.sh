# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # shared variables: of lib.sh, and for scripts that source this
# Recordings of known call chains: of tests/progs/chains.c, and of scripts. Source it after lib.sh; use it in $work.

# The outermost frames of a whole stack, of a program and of a thread. Without its debug package libc has no
# names for some; before 2.34 it did not have the second one.
of_libc='libc[^;]*\+0x[0-9a-f]+'
from_start="_start;__libc_start_main[^;]*;((__libc_start_call_main|$of_libc);)?main"
from_thread="(__clone3|clone3?|$of_libc);(start_thread|$of_libc)"

# record_chains NAME KIND OPTION...: records `chains KIND` to NAME.pb.gz, NAME.json and NAME.folded, whose
# lines end with the leaf.
record_chains() {
	local name=$1 kind=$2
	shift 2
	start_ready "${program:-$progs/chains}" "$kind"
	record "$name" -p "$pid" "$@"
	stop "$pid"
}

# record NAME ARGUMENT...: the same for any target, with the options in $clock. A process, -p PID, is recorded
# until it has used $seconds of CPU time, which takes longer on a busy machine; then it rests, until it is ended.
clock=(-F 1999)
seconds=0.3
record() {
	local name=$1 target
	shift
	set -- -g "${clock[@]}" -d 600 --json -o "$name.pb.gz" "$@"
	target=$(sed -nE 's/.* -p ([0-9]+).*/\1/p' <<<" $*")
	share_buffers
	if [ -n "$target" ]; then
		until_used "$target" "$(printf %.0f "${seconds}e3")" "$profiltool" record "$@"
	else
		"$profiltool" record "$@"
	fi >"$name.json" 2>"$name.err" || echo "exit status $?" >>"$name.err"
	free_buffers
	"$profiltool" convert "$name.pb.gz" "$name.folded" 2>/dev/null
}

# record_work NAME COMMAND...: records a command that prints "ready" and works after it has read a line, from then to
# its end, with its children. Options for profiltool are in $options.
options=()
record_work() {
	local name=$1
	shift
	begin "$name" "$@"
	share_buffers
	record_begin "$name" record -g "${clock[@]}" --json -o "$name.pb.gz" -p "$pid" "${options[@]}"
	send_line "$name" go
	wait "$recorder"
	wait "$pid"
	free_buffers
	cp "$name.json" json
	"$profiltool" convert "$name.pb.gz" "$name.folded" 2>/dev/null
}

# agrees chains|shares NAME [TRUTH]: compares a recording of a script with what the script saw (tests/cli/python.py).
agrees() {
	python3 "$top/tests/cli/python.py" "$1" "$profiltool" "$2.pb.gz" "${3:-$2.truth}"
}

# chains_are NAME all|most|some|none PATTERN: succeeds if so many of the samples have a stack that matches a regular
# expression; most: more than 70 %, some: one or more. Which share a chain has of a recording is left to chance.
chains_are() {
	[ -e "$1.folded" ] || cat "$1.err"
	python3 - "$@" <<'END'
import re, sys
name, amount, pattern = sys.argv[1:]
stacks = [line.rsplit(" ", 1) for line in open(name + ".folded")]
others = [(int(count), stack) for stack, count in stacks if not re.fullmatch(pattern, stack)]
whole = sum(int(count) for stack, count in stacks)
found = whole - sum(count for count, stack in others)
for count, stack in sorted(others, reverse=True)[:10]:
	print(count, stack[-300:])
print(found, "of", whole)
holds = {"all": found == whole, "most": found > .7 * whole, "some": found > 0, "none": found == 0}
sys.exit(not (whole and holds[amount]))
END
}
