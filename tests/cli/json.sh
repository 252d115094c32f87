#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What each command prints as JSON is what the schema says, and the commands of user/doc/scripts.md run.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit

schema=$top/user/doc/profiltool.schema.json

# fits VIEW COMMAND...: profiltool's JSON is as the schema has that view.
fits() {
	"$profiltool" "${@:2}" -q >out 2>err || {
		cat err
		return 1
	}
	python3 -S "$top/tests/schema.py" "$schema" "$1" out
}

begin services "$progs/services"
record_begin services record --chains --span request -q -o x.pb.gz -p "$(pgrep -P "$pid" -d ,),$pid"
send_line services go
wait "$pid"
wait "$recorder"
check "functions of a recording with waits" fits report report --json x.pb.gz
check "what was left out" fits report report --json -E 1 x.pb.gz
for by in image address line process thread comm wait reason waker user time; do
	check "rows by $by" fits report report --json --by "$by" x.pb.gz
done
check "slots of time" fits report report --json --by time:100ms x.pb.gz
check "selected samples" fits report report --json --comm back x.pb.gz
check "a value" fits report report --json --value wall x.pb.gz
check "latency" fits report report --json --latency x.pb.gz
check "a tree" fits report report --json --tree x.pb.gz
check "callers" fits report report --json --callers clock_gettime x.pb.gz
check "an interval against the rest" fits against report --json --around +0.5s --for 0.2s --against rest x.pb.gz
check "a function" fits annotate annotate burn --json x.pb.gz
check "two recordings" fits diff diff --json x.pb.gz x.pb.gz
check "their waits" fits diff diff --json --by wait x.pb.gz x.pb.gz
check "turns" fits why why --json -t back x.pb.gz
check "an interval of threads" fits why why --json -t client --around +0.5s --for 0.2s x.pb.gz
check "calls of a function" fits why why --json --span request x.pb.gz
check "all of a file" fits dump dump --json x.pb.gz
for file in callgrind/three-events.cg callgrind/recursion.cg gperftools/basic.prof; do
	check "$file" fits report report --json "$top/tests/data/$file"
	check "$file: all of it" fits dump dump --json "$top/tests/data/$file"
done
check "a recording" fits report record --json -F 999 -- "$progs/shares" 1 0.1
checked() {
	"$profiltool" check --json >out
	python3 -S "$top/tests/schema.py" "$schema" check out
}
check "what check finds" checked
start_ready "$progs/shares" 1 0 lazy
PID=$pid
topped() {
	"$profiltool" top -p "$PID" --json --tables 2 --interval 0.2 >out &&
		python3 -S "$top/tests/schema.py" "$schema" top out
}
check "tables of top" topped
topped_waits() {
	"$profiltool" top --plain --json --by wait x.pb.gz >out && python3 -S "$top/tests/schema.py" "$schema" top out
}
check "of waits" topped_waits

# --- The checker ---

noticed() {
	"$profiltool" report -q --json x.pb.gz | sed "$1" >changed
	! python3 -S "$top/tests/schema.py" "$schema" report changed >out && cat out && grep -q "$2" out
}
check "a key that is not in the schema is noticed" noticed 's/"cpu_ns":/"cpu_nanos":/' 'cpu_nanos is not in the schema'
check "a key that is missing is noticed" noticed 's/"wall_percent": [0-9.]*,//' 'no wall_percent'
check "a value of another kind is noticed" noticed 's/"ticks": [0-9]*/"ticks": "1"/' "'1' is no integer"

# --- The page ---

if command -v jq >/dev/null; then
	cp x.pb.gz old.pb.gz
	export PID PATH=$work/bin:$PATH
	mkdir bin
	ln -s "$profiltool" bin/profiltool
	# As on the page, but for a shorter time; who is asked why has turns.
	sed -n 's/^    \(profiltool .*\)/\1/p' "$top/user/doc/scripts.md" | sed "s/ -d 5 / -d 0.5 /; s/why -q -p .PID/why -q -p back/" >commands
	check "the page has commands for five questions" test "$(wc -l <commands)" -eq 7
	while read -r command; do
		check "scripts.md: $command" exits 0 bash -o pipefail -c "$command"
		[[ $command != *" record "* ]] || cp x.pb.gz a.pb.gz
	done <commands
else
	skip "the commands of user/doc/scripts.md run" "there is no jq"
fi
stop "$PID"

finish
