#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Processes that get the number of one that has ended: each is a process of its own.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

if ! unshare -pf --mount-proc true 2>/dev/null; then
	skip "processes of one number" "unshare is not permitted"
	finish
fi

# In a PID namespace of its own nobody else takes the number. Without random addresses, and by the
# same file, ticks of all three come at the same pcs.
cp "$progs/shares" "$work/first"
cp "$progs/shares" "$work/second"
cat >"$work/inside" <<'EOT'
. "$1/tests/lib.sh"
out=$2
number=0
# run NAME SECONDS: by the number that the first had.
run() {
	if [ $number -gt 0 ]; then
		echo $((number - 1)) >/proc/sys/kernel/ns_last_pid
	fi
	"${leash[@]}" setarch -R "$out/$1" 1 "$2" stay >>"$out/$1.cpu" &
	note_started $!
	: $((number = number ? number : $!))
	echo $! >>"$out/numbers"
	wait $!
}
share_buffers # which processes there were is known by the records of forks
record_begin all -a -F 997 -q --json -o "$out/all.pb.gz"
run first 0.3
run second 0.9
run first 0.6
kill -INT "$recorder"
wait "$recorder"
free_buffers
EOT

records_all() {
	unshare -pf --mount-proc bash "$work/inside" "$top" "$work" </dev/null
}
check "a recording of the whole machine" records_all
check "three processes, one after the other, had one number" test \
	"$(uniq -c <"$work/numbers" | awk '{ print $1 }')" = 3

# rows EXPRESSION [OPTION...]: of `report --by process`, with rows(NAME): the counts of those of the
# number with that name; and cpu(NAME): the CPU time that these told, in nanoseconds.
rows() {
	local expression=$1
	shift
	"$profiltool" report --by process --json -q "$@" 2>"$work/err" >"$work/report.json" || return
	python3 -c '
import json, sys
work, number = sys.argv[2], int(sys.argv[3])
j = json.load(open(work + "/report.json"))
period = 1e9 / 997
def rows(name):
	return [r["self"] for r in j["rows"] if r.get("pid") == number and r["name"] == name]
def cpu(name):
	return [int(l.split()[1]) for l in open(work + "/" + name + ".cpu") if "cpu_ns" in l]
def fits(counts, times):
	return len(counts) == len(times) and all(
		t / 4 <= c * period <= 1.75 * t # as in recorded() of lib.sh
		for c, t in zip(sorted(counts), sorted(times)))
print(j["rows"])
sys.exit(not eval(sys.argv[1]))' "$expression" "$work" "$(head -n 1 "$work/numbers")"
}
check "--by process: each is a row, with its own name and ticks" \
	rows "fits(rows('first'), cpu('first')) and fits(rows('second'), cpu('second'))" \
	"$work/all.pb.gz"
# Before its exec a process has another name.
check "dump: says which of the processes of a number a stack is of" test "$("$profiltool" dump \
	"$work/all.pb.gz" | grep -o "\[$(head -n 1 "$work/numbers")/[^]]*" | cut -d' ' -f 2- |
	sed 's/ kernel$//' | grep -vE '(bash|setarch)$' | sort -u | paste -sd,)" = "first,generation 1 second,generation 2 first"

# The same, where all records of the first one's end and the second one's begin are lost.
cat >"$work/lost" <<'EOT'
. "$1/tests/lib.sh"
out=$2
record_begin lost -a -F 997 -q --json -o "$out/lost.pb.gz" &&
	begin first setarch -R "$out/first" 1 0.4 wait stay || exit
echo "$pid" >"$out/numbers"
flood_buffers
kill -STOP "$recorder"
fill_buffers
send_line first go
wait "$pid"
echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
setarch -R "$out/second" 1 1.2 stay >"$work/second.out" &
pid=$!
note_started "$pid"
echo "$pid" >>"$out/numbers"
wait_for has_used "$pid" 400
kill -CONT "$recorder"
wait "$pid"
kill -INT "$recorder"
wait "$recorder"
free_buffers
for name in first second; do
	grep cpu_ns "$work/$name.out" >"$out/$name.cpu"
done
EOT
records_lost() {
	unshare -pf --mount-proc bash "$work/lost" "$top" "$work" </dev/null
}
check "the fork of a process with the number of an earlier one is lost: recorded" records_lost
check "both had one number" test "$(uniq -c <"$work/numbers" | awk '{ print $1 }')" = 2
check "each is a row, with its own name and ticks" \
	rows "fits(rows('first'), cpu('first')) and fits(rows('second'), cpu('second'))" \
	"$work/lost.pb.gz"

# In a PID namespace, a thread that exits loses its number before its last tick. All threads outside have none.
cp "$progs/churn" "$work/outside"
cat >"$work/threads" <<'EOT'
. "$1/tests/lib.sh"
record_begin churn -a -F 9973 -q --json -o "$2/churn.pb.gz"
timeout 4 "$progs/churn" 2 1 >/dev/null
kill -INT "$recorder"
wait "$recorder"
EOT
records_threads() {
	start "$work/outside" 1 1
	unshare -pf --mount-proc bash "$work/threads" "$top" "$work" </dev/null
	stop "$pid"
	"$profiltool" dump "$work/churn.pb.gz" >"$work/dump"
	grep -q '\[[1-9][0-9]*/0 ' "$work/dump"
}
check "threads that exit in a PID namespace, and others outside of it" records_threads
named_right() {
	! grep '\[[1-9][0-9]*/0 ' "$work/dump" | grep -v churn
}
check "those inside are not named as those outside" named_right
finish
