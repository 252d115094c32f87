#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ctrl-C and other signals end a recording as -d does: with its file and its table.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

begin shares "$progs/shares" 1 0 lazy
target=$pid

# ticked PID: waits until a process has used another 0.1 seconds of CPU time.
ticked() {
	wait_for_use "$1" 100
}

# Each with its own recorder, all at once.
recorders=()
for signal in INT TERM HUP; do
	record_begin "$signal" -p "$target" -F 999 -o "$work/$signal.pb.gz"
	recorders[${#recorders[@]}]=$recorder
done
ticked "$target"
i=0
for signal in INT TERM HUP; do
	kill -"$signal" "${recorders[i]}"
	wait "${recorders[i]}"
	check "SIG$signal: done" test $? -eq 0
	check "SIG$signal: the table is there" grep -q 'burn_sixty  *shares' "$work/$signal.json"
	check "SIG$signal: the account is there" grep -q ' ticks [1-9]' "$work/$signal.err"
	check "SIG$signal: the file is there" exits 0 "$profiltool" report "$work/$signal.pb.gz"
	i=$((i + 1))
done

# A second one while names are looked up: that is cut short, the file is not.
record_begin twice -p "$target" -F 999 -o "$work/twice.pb.gz"
ticked "$target"
kill -INT "$recorder"
for _ in 1 2 3 4 5 6 7 8; do
	kill -INT "$recorder" 2>/dev/null
	sleep 0.003
done
wait "$recorder"
check "SIGINT again and again: done" test $? -eq 0
check "SIGINT again and again: the file is whole" exits 0 "$profiltool" report "$work/twice.pb.gz"
check "SIGINT again and again: with all samples" test "$(dumped ticks "$work/twice.pb.gz")" = \
	"$(dumped samples "$work/twice.pb.gz")"

# Signals must find profiltool and not the shell's child that is to become it.
is_profiltool() {
	[ "/proc/$1/exe" -ef "$profiltool" ]
}

# whole_file STATUS...: whether report ends so.
whole_file() {
	local got
	got=$(status "$profiltool" report "$work/any.pb.gz")
	[[ " $* " == *" $got "* ]]
}

# At any time: either nothing was there yet and it was ended, or all is there. It may be ended between
# the file and the table, too.
good=yes
for delay in 0 0.003 0.01 0.02 0.03 0.05 0.07 0.1 0.15 0.2; do
	rm -f "$work/any.pb.gz"
	"$profiltool" -p "$target" -F 9999 -d 0.1 -o "$work/any.pb.gz" >"$work/out" 2>"$work/err" &
	recorder=$!
	wait_for is_profiltool "$recorder"
	sleep "$delay"
	kill -TERM "$recorder" 2>/dev/null
	wait "$recorder"
	code=$?
	case $code in
	143) [ ! -e "$work/any.pb.gz" ] || whole_file 0 4 || good="half a file after $delay" ;;
	# 4: there are no samples, and report says the same.
	0 | 4) whole_file "$code" || good="no file after $delay" ;;
	*) good="$code after $delay" ;;
	esac
done
check "SIGTERM at any time: all or nothing" test "$good" = yes
check "SIGTERM at any time: no temporary is left" test -z "$(find "$work" -name 'any.pb.gz?*')"

# nohup: the terminal is closed, the recording continues.
nohup "$profiltool" -p "$target" -F 999 -o "$work/nohup.pb.gz" >"$work/nohup.out" 2>"$work/nohup.err" &
recorder=$!
note_started "$recorder"
wait_for records "$recorder"
kill -HUP "$recorder"
kill -HUP "$recorder"
ticked "$target"
check "nohup: SIGHUP does not end it" kill -0 "$recorder"
kill -TERM "$recorder"
wait "$recorder"
check "nohup: SIGTERM does" test $? -eq 0
check "nohup: what came after SIGHUP was counted" test "$(dumped ticks "$work/nohup.pb.gz")" -gt 20

# At a terminal Ctrl-C goes to the whole group: COMMAND gets it, too. A script's background jobs
# ignore it by default.
setsid env --default-signal=INT "$profiltool" record -F 999 -o "$work/group.pb.gz" -- \
	"$progs/shares" 1 60 >"$work/group.out" 2>"$work/group.err" </dev/null &
leader=$!
note_started "$leader" "-$leader"
wait_for grep -q ready "$work/group.out"
wait_for records "$leader"
ticked "$(pgrep -P "$leader")"
kill -INT -- "-$leader"
wait "$leader"
code=$?
group_is_gone() {
	! kill -0 -- "-$leader" 2>/dev/null
}
check "Ctrl-C that goes to a command as well: done" test $code -eq 0
check "Ctrl-C that goes to a command as well: its profile is there" \
	exits 0 "$profiltool" report "$work/group.pb.gz"
check "Ctrl-C that goes to a command as well: it has ended" wait_for group_is_gone

stop "$target"

# One that is killed takes its events with it.
begin killed "$progs/shares" 1
record_begin killed -p "$pid" -F 999
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
check "SIGKILL: the target goes on" kill -0 "$pid"
check "SIGKILL: the next recording of it has its ticks" exits 0 "$profiltool" -p "$pid" -F 4999 -d 1
stop "$pid"

finish
