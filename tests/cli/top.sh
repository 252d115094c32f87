#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# top: tables in a pipe, compared with what the programs do; and the screen, in a separate tmux, with every
# key, sizes of the terminal, signals and ends.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# A name that would clear the terminal, with a character of two bytes.
hostile=$'h\e[2J\xc3\xa9'
cp "$progs/shares" "$work/$hostile"
start_ready "$progs/shares" 1 0 stay lazy
shares=$pid
# It has the thread that burns, and the first, which waits.
for thread in "/proc/$shares/task"/*; do
	[ "${thread##*/}" = "$shares" ] || burner=${thread##*/}
done

top() {
	"$profiltool" top "$@"
}

# --- Tables ---

# tables EXPRESSION COMMAND...: Python over `t`, the printed tables, each a list of rows of words.
tables() {
	local expression=$1
	shift
	"$@" >"$work/out" 2>"$work/err"
	python3 -c '
import sys
t = [[line.split() for line in table.splitlines()[3:]] for table in
     open(sys.argv[2]).read().split("\n\n") if table]
def column(table, title):
	return [row[table[0].index(title)] for row in table[1:] if row[0] != "..."]
value = eval(sys.argv[1])
if not value:
	print(*map(str, t), sep="\n")
sys.exit(not value)' "$expression" "$work/out" || {
		cat "$work/err"
		return 1
	}
}

check "a table for each time" tables \
	'len(t) == 3 and all(column(x, "function")[0] == "burn_sixty" for x in t)' \
	top -p "$shares" --tables 3 -d 1 -F 9999
check "the rows are in the order of the program's functions" tables \
	'column(t[0], "function")[:2] == ["burn_sixty", "burn_thirty"]' \
	top -p "$shares" --tables 1 -d 1 -F 3999
# If tables counted what was before them, too, ten would have the ticks of several times the CPU time that the program
# used in all.
of_cpu_time() {
	local used
	used=$(cpu_ms "$shares")
	exits 0 top -p "$shares" --json --tables 10 -d 0.2 -F 499 || return
	used=$(($(cpu_ms "$shares") - used))
	python3 -c '
import json, sys
counts = [json.loads(line)["samples"] for line in open(sys.argv[1])]
print(counts, sys.argv[2], "ms")
sys.exit(len(counts) != 10 or not 0 < sum(counts) <= 1.75 * .499 * int(sys.argv[2]) + 3)' "$work/out" "$used"
}
check "each table counts its own time alone" of_cpu_time
check "rows are left out and reported" tables \
	'len(t[0]) == 3 and t[0][2][0] == "..." and t[0][2][2:4] == ["more", "functions,"]' \
	top -p "$shares" --tables 1 -d 1 -F 3999 -E 1 --user
check "by thread" tables 't[0][0][3:] == ["runnable%", "pid", "tid", "comm"] and t[0][1][5:] == ["'"$burner"'", "shares"]' \
	top -p "$shares" --tables 1 -d 1 -F 3999 --by thread
check "sorted by name" tables 'column(t[0], "function") == sorted(column(t[0], "function"))' \
	top -p "$shares" --tables 1 -d 0.5 --sort name
check "one thread" tables 'column(t[0], "function")[0] == "burn_sixty"' \
	top -t "$burner" --tables 1 -d 1 -F 3999
check "the whole machine is the default" tables '"burn_sixty" in column(t[0], "function")' \
	top --tables 1 -d 2 -F 999 -E 0

json_lines() {
	exits 0 top -p "$shares" --json --tables 2 -d 1 -F 9999 -E 1 && python3 -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == 2, lines
# After one that came late the next is shorter.
assert sum(j["seconds"] for j in lines) > 1.99, lines
for j in lines:
	assert j["rows"][0]["name"] == "burn_sixty" and len(j["rows"]) == 1, j
	assert j["by"] == "function" and 0 < j["seconds"] and j["lost"] == 0, j
	assert 0 < j["rows"][0]["cpu_percent"] <= j["cpu_percent"] <= 150, j' "$work/out"
}
check "a line of JSON for each time" json_lines

# As many different pcs as ticks: the profile has to be compacted, more than once. While the host stops the machine all
# ticks are of one pc.
start_ready "$progs/spread" 1000000 1 0
check "top goes on with many samples" tables \
	'len(t) == 8 and any(len(x) > 1 for x in t) and all(float(x[1][1]) < 50 or int(x[1][0]) < 9
		for x in t if len(x) > 1)' \
	top -p "$pid" -F 10000 --tables 8 -d 0.5 -E 1
check "top goes on with many samples, and loses none" grep -q ' 0 lost' "$work/out"
stop "$pid"

# New processes, each too short for a tick, while top shows the whole machine.
begin swarm "$progs/family" swarm 0.17 0.01 # 17000 of them
swarm=$pid
: >"$work/start.out"
start "$profiltool" top --json -d 0.2 -a
watcher=$pid
check "it watches all" wait_for grep -q '"rows"' "$work/start.out"
send_line swarm go
wait "$swarm"
lines=$(wc -l <"$work/start.out")
more_lines() {
	[ "$(wc -l <"$work/start.out")" -gt $((lines + 1)) ]
}
check "top goes on after 17000 new processes" wait_for more_lines
stop "$watcher"

begin hostile "$work/$hostile" 1 0.5 wait
record_begin asked top -p "$pid" --tables 1000 -d 0.2
send_line hostile go
wait "$recorder"
check "a target that ends: what was asked for is incomplete" test $? -eq 3
check "a target that ends: what was asked for is incomplete: reported" grep -q "has ended" "$work/asked.err"
check "hostile names are made visible" \
	grep -qF $'h\\x1b[2J\xc3\xa9' "$work/asked.json"
begin brief "$progs/shares" 1 0.5 wait
record_begin unasked top -p "$pid" -d 0.2
send_line brief go
check "a target that ends, without --tables" wait "$recorder"
start sleep 100
wait_for grep -q nanosleep "/proc/$pid/wchan"
check "no samples" exits 4 top -p "$pid" --tables 2 -d 0.1
check "no samples: reported" says "no tick fell into sleep (PID $pid), which used"
check "no samples: what it does instead" says "s: it waits in $(cat "/proc/$pid/wchan")"
check "no such process" exits 1 top -p 999999999 --tables 1
check "two kinds of target" exits 2 top -p 1 -a --tables 1
check "a file that is not there" exits 1 top "$work/x.pb.gz"
check "a file besides a target" exits 2 top -a "$work/x.pb.gz"
check "a delay of nothing" exits 2 top -d 0
check "no such order" exits 2 top --sort size
check "--sort wait is an older name of runnable" exits 0 top -p "$shares" --by thread --tables 1 -d 0.2 --sort wait
check "--sort wait is an older name of runnable" grep -q 'threads by runnable' "$work/out"
check "no such rows" exits 2 top --by size
check "no such rows: those that there are" says "process, comm, application, container, cpu, database, query, reason, role, route, title, unit, user, wait, or a name of --label, not \"size\""
check "rows of an archive" exits 2 top --by host
check "rows of an archive: where" says "profiltool report --since TIME --by host"
to_head() {
	top -p "$shares" -d 0.1 | head -n 1 | grep -q shares
}
check "a reader that leaves ends it" to_head

ended() {
	"$profiltool" top -p "$shares" -d 0.2 >"$work/out" &
	note_started $!
	wait_for grep -q burn_sixty "$work/out"
	kill -TERM $!
	wait $!
}
check "SIGTERM ends it with status 0" ended

# --- The screen ---

if ! command -v tmux >/dev/null; then
	skip "the screen" "no tmux"
	finish
fi
has_terminals "the screen" || finish

# shellcheck source=SCRIPTDIR/../screen.sh
. "$(dirname "$0")/../screen.sh"

# run_top OPTION...: types the command at the shell's prompt.
run_top() {
	tm send-keys -l "clear; $environment $profiltool top $*; echo status \$?"
	tm send-keys Enter
}

environment=
screen_begin 100 30
tm send-keys -l "stty -a >$work/before" \; send-keys Enter
wait_for test -s "$work/before"

run_top -p "$shares" -d 0.2
check "the hot function is on top" shows '^ *[456][0-9]\.[0-9]+ +[0-9.]+ +burn_sixty +shares'
check "what is profiled is reported" shows "shares \(PID $shares\)"
check "what is profiled is reported: what the rows are" \
	shows '^functions by self, fading by half in 5 s'
check "what is profiled is reported: keys" shows '^\? help  q quit'
check "s: by name" key s '^functions by name'
in_order() {
	pane | grep -o 'burn_[a-z]*' | head -n 3 | sort -C
}
check "in order" wait_for in_order
check "s: by image" key s '^functions by image'
check "s: by delay" key s '^functions by delay'
check "s: by self again" key s '^functions by self'
check "Space freezes" key Space FROZEN
rows() {
	pane | grep 'burn_'
}
# The time in the first line advances.
clock() {
	pane | sed -n '1s/ .*//p'
}
advances() {
	[ "$(clock)" != "$1" ]
}
wait_for advances "$(clock)" # until then the rows may be half drawn
frozen=$(rows)
stays() {
	wait_for advances "$(clock)" && [ "$(rows)" = "$frozen" ]
}
check "for as long as one likes" stays
tm send-keys Space
check "Space goes on" shows_no_more FROZEN
check "t: threads" key t "^ *100\.00 .* $shares +$burner +shares"
check "Enter: the functions of one" key Enter "only thread $burner"
check "which are there" shows burn_thirty
check "Escape: back" key Escape '^threads by self'
check "t: functions" key t '^functions by self'
check "P: processes" key P '^processes by self'
check "Tab: names" key Tab '^comms by self'
check "Enter: the functions of the threads that have it" key Enter "only threads named shares"
check "which are there, too" shows burn_thirty
check "Escape: back to names" key Escape '^comms by self'
check "Tab: after those, the labels that samples have" key Tab '^(containers|titles|units|users) by self'
check "F: functions, from the beginning" key F '^functions by self'
check "Tab: images" key Tab '^images by self'
check "F: functions" key F '^functions by self'
check "?: help" key '?' 'what calls the function'
check "q: back" key q '^functions by self'
tm send-keys -l '/TEN'
check "/: asks" shows 'rows that match: TEN'
tm send-keys Enter
check "/: asks: shows those rows" shows 'only TEN'
# What is read may be half drawn.
alone() {
	[ "$(rows | wc -l)" -eq 1 ]
}
check "alone" wait_for alone
tm send-keys Escape
check "Escape: all rows" shows burn_sixty
tm send-keys -l '/('
tm send-keys Enter
check "a pattern that is none is reported" shows '^"\(": '

# After a moment without ticks, any of them may be the busiest for a second.
busiest_first() {
	rows | head -n 1 | grep burn_sixty
}
check "the busiest row is the first" wait_for busiest_first
check "Enter: code" key Enter '^burn_sixty in .*shares: [0-9]+ samples'
check "its instructions" shows 'imul '
samples() {
	pane | sed -n 's/^burn_sixty in .*: \([0-9]*\) samples.*/\1/p'
}
before=$(samples)
grows() {
	[ "$(samples)" -gt "$before" ]
}
check "with samples that grow" wait_for grows
check "Down scrolls no further than there is" key Down '^burn_sixty in '
check "q: back" key q '^functions by self'
check "c without stacks: what it needs" key c 'profiltool top -g'
check "w: the states of threads" key w '^States of processes in '
check "with their sums" shows '^2 threads, [0-9.]+ s = on CPU [0-9.]+ s \+ runnable [0-9.]+ s \+ blocked [0-9.]+ s \+ idle [0-9.]+ s'
check "of each process" shows "^ *[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +$shares +shares"
check "t there: of each thread" key t "^ *[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +$shares +$burner +shares"
tm resize-window -x 80 -y 24
check "states in 80 columns" shows '^wall s +on CPU s +runnable s +blocked s +idle s +pid +tid +comm'
tm resize-window -x 40 -y 10
check "states in 40 columns" shows '^on CPU s +runnable s'
tm resize-window -x 100 -y 30
check "P there: of each process" key P '^States of processes in '
check "q there: back" key q '^functions by self'

tm resize-window -x 50 -y 12
check "a narrow terminal" shows '^ +% +cpu% +function +image'
narrow() {
	shows burn_sixty && [ "$(pane | awk '{ if (length($0) > most) most = length($0) }
		END { print most }')" -le 50 ]
}
check "has lines as narrow" narrow
tm resize-window -x 20 -y 5
check "a tiny terminal" shows '^ *[456][0-9]\.[0-9]+ '
tm resize-window -x 120 -y 40
check "a large one" shows '^functions by self.*'

is_shell() {
	[ "$(tm display-message -p '#{cursor_flag} #{alternate_on}')" = "1 0" ]
}
sane() {
	wait_for is_shell || return
	rm -f "$work/after"
	tm send-keys -l "stty -a >$work/after" \; send-keys Enter
	wait_for test -s "$work/after"
	diff <(sed 's/rows [0-9]*; columns [0-9]*;//' "$work/before") \
		<(sed 's/rows [0-9]*; columns [0-9]*;//' "$work/after")
}

tm send-keys C-c
check "Ctrl-C ends it with status 0" shows 'status 0'
check "Ctrl-C ends it with status 0: leaves a sane terminal" sane
tm resize-window -x 80 -y 24
run_top -p "$shares" -d 0.2
check "it starts again" shows burn_sixty
tm send-keys C-z
check "Ctrl-Z stops it" shows Stopped
check "Ctrl-Z stops it: leaves the cursor" wait_for is_shell
tm send-keys -l fg
check "fg goes on" key Enter '^functions by self'
check "with what is busy" shows burn_sixty

check "q ends it with status 0" key q '^\$ *$'
run_top -p "$shares" -d 0.2
check "q ends it with status 0: again" shows burn_sixty
kill -TERM "$(pgrep -o -f "profiltool top -p $shares -d")" # the oldest: it has children
check "SIGTERM ends it with status 0" shows 'status 0'
check "SIGTERM ends it with status 0: leaves a sane terminal, too" sane
run_top -p "$shares" -d 0.2
check "SIGTERM ends it with status 0: once more" shows burn_sixty
tm send-keys C-\\
check "so does Ctrl-\\, which ends it by its signal" shows 'status 131'
check "on a sane terminal" sane

start "$work/$hostile" 1 0
run_top -p "$pid" -d 0.2
check "hostile names are shown" shows $'h\\\\x1b\\[2J\xc3\xa9'
check "with what is busy" shows 'burn_[a-z]+'
stop "$pid"
check "the target's end is reported" shows 'has ended; q quits'
check "its last picture stays" shows 'burn_[a-z]+'
check "q still quits" key q 'status 0'

run_top -t 999999999
check "errors are printed on a sane terminal" shows 'status 1'
check "which it is" sane

has_color() {
	tm capture-pane -p -e | grep -q $'\e\\[[0-9;]*31m'
}
environment=TERM=xterm-256color
run_top -p "$shares" -d 0.2
check "what is hot is red" wait_for has_color
check "q ends it" key q 'status 0'
environment="NO_COLOR=1 TERM=xterm-256color"
run_top -p "$shares" -d 0.2
check "NO_COLOR: there are rows" shows burn_ten
has_no_color() {
	! tm capture-pane -p -e | grep -q $'\e\\[[0-9;]*3[0-7]m'
}
check "without a colour" has_no_color
check "q ends it, too" key q 'status 0'
environment=TERM=vt100
run_top -p "$shares" -d 0.2
check "a VT100 will do" shows burn_ten
check "q ends that" key q 'status 0'
environment=TERM=dumb
run_top -p "$shares" -F 999 -d 1 --tables 2
check "a dumb terminal gets tables" shows '^samples +%'
check "in lines" shows 'status 0'

# Callers, of known chains.
environment=
start_ready "$progs/chains" deep
run_top -g -p "$pid" -d 0.2
check "with stacks: totals" shows 'self% +total% +cpu% +function'
check "of the one that is always there" shows '^ *0\.00 +100\.00 .*descend'
check "c: callers" key c '^What calls inner'
check "c: callers are listed" shows descend
check "q ends the callers" key q 'functions by self'
tm resize-window -x 100 -y 30 # with a column of samples
check "T: the call tree" key T '^Call tree'
check "G: down to the innermost" key G 'inner$'
check "C closes the tree" key C '^ *[0-9.]+ .* \+ [^ ]'
first_line() {
	pane | sed -n 3p
}
before=$(first_line)
is_updated() {
	[ "$(first_line)" != "$before" ]
}
check "a tree is updated" wait_for is_updated
check "what is closed stays closed" lacks 'inner$'
check "q ends the tree" key q 'functions by self'
check "q ends it all" key q 'status 0'

finish
