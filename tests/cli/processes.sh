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
# same file, ticks of all come at the same pcs. All are of the first thread, which names the process.
cp "$(readlink -f "$(type -P sh)")" "$work/first"
cp "$work/first" "$work/second"
cat >"$work/inside" <<'EOT'
. "$1/tests/lib.sh"
out=$2
number=0
# run NAME: by the number that the first had. Notes when it was there.
run() {
	local begin
	if [ $number -gt 0 ]; then
		echo $((number - 1)) >/proc/sys/kernel/ns_last_pid
	fi
	begin=${EPOCHREALTIME/./}
	"${leash[@]}" setarch -R "$out/$1" -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' &
	note_started $!
	: $((number = number ? number : $!))
	wait $!
	echo "$! $1 $begin ${EPOCHREALTIME/./}" >>"$out/lives"
}
share_buffers # which processes there were is known by the records of forks
record_begin all -a -F 997 -q --json -o "$out/all.pb.gz"
for _ in 1 2 3 4 5; do
	run first
	run second
done
kill -INT "$recorder"
wait "$recorder"
free_buffers
EOT

records_all() {
	unshare -pf --mount-proc bash "$work/inside" "$top" "$work" </dev/null
}
# had_one_number COUNT
had_one_number() {
	cat "$work/lives"
	[ "$(cut -d' ' -f 1 "$work/lives" | uniq -c | awk '{ print $1 }')" = "$1" ]
}
check "a recording of the whole machine" records_all
check "ten processes, one after the other, had one number" had_one_number 10

# has_own FILE MS: each tick of the number is of the process that was there when it came, by generation and, after its
# exec, by name; and each process has some. But for so many milliseconds at the ends of a life.
has_own() {
	"$profiltool" dump --json "$1" >"$work/dump.json" || return
	python3 -c '
import collections, json, sys
lives = [(int(n), name, int(begin) * 1000, int(end) * 1000) for n, name, begin, end in map(str.split, open(sys.argv[2]))]
j = json.load(open(sys.argv[1]))
names = {life[1] for life in lives}
margin = 1e6 * int(sys.argv[3])
own, wrong = collections.Counter(), collections.Counter()
for s in j["stacks"]:
	labels = s.get("labels", {})
	if labels.get("pid") != lives[0][0]:
		continue
	for ns in s["times_ns"]:
		for i, (_, name, begin, end) in enumerate(lives):
			if begin + margin < j["time_ns"] + ns < end - margin:
				started = labels["comm"] in names # not those of before its exec
				right = labels.get("generation", 0) == i and (not started or labels["comm"] == name)
				own[i] += right and started
				wrong[i, str(labels)] += not right
print("own:", own, "wrong:", +wrong)
sys.exit(bool(+wrong) or min(own[i] for i in range(len(lives))) == 0)' "$work/dump.json" "$work/lives" "$2"
}
check "each tick is of the process that was there" has_own "$work/all.pb.gz" 1

# rows_fit FILE: `report --by process` has a row for each of them, and for none else of the number, with all its ticks.
rows_fit() {
	"$profiltool" report --by process --json -q "$1" 2>"$work/err" >"$work/report.json" || return
	python3 -c '
import collections, json, sys
report, dump, lives = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), list(map(str.split, open(sys.argv[3])))
number = int(lives[0][0])
ticks = collections.Counter()
for s in dump["stacks"]:
	if s.get("labels", {}).get("pid") == number:
		ticks[s["labels"].get("generation", 0)] += s["count"]
rows = {r.get("generation", 0): (r["comm"], r["self"]) for r in report["rows"] if r.get("pid") == number}
print(rows, ticks)
sys.exit(rows != {i: (life[1], ticks[i]) for i, life in enumerate(lives)})' "$work/report.json" "$work/dump.json" "$work/lives"
}
check "--by process: each is a row, with its own name and ticks" rows_fit "$work/all.pb.gz"
said_generations() {
	"$profiltool" dump "$work/all.pb.gz" | grep -o "\[$(head -n 1 "$work/lives" | cut -d' ' -f 1)/[^]]*" |
		sed -E 's/( kernel)?( [a-z]+=[^ ]+)*$//' | cut -d' ' -f 2- | sort -u >"$work/said"
	cat "$work/said"
	grep -qx first "$work/said" && grep -qx "generation 1 second" "$work/said" && grep -qx "generation 9 second" "$work/said"
}
check "dump: says which of the processes of a number a stack is of" said_generations

# The same, where all records of the first one's end and the second one's begin are lost.
cat >"$work/lost" <<'EOT'
. "$1/tests/lib.sh"
out=$2
# While it is stopped, the ring of a CPU has room for the times of 8192 ticks: those of 80 s.
record_begin lost -a -F 99 -q --json -o "$out/lost.pb.gz"
begin=${EPOCHREALTIME/./}
begin first setarch -R "$out/first" -c \
	'echo ready; read -r line; i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done' || exit
number=$pid
flood_buffers
kill -STOP "$recorder"
fill_buffers
send_line first go
wait "$pid"
echo "$pid first $begin ${EPOCHREALTIME/./}" >"$out/lives"
echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
begin=${EPOCHREALTIME/./}
setarch -R "$out/second" -c 'while ! [ -e "$1" ]; do :; done' - "$work/enough" &
pid=$!
note_started "$pid"
wait_for has_used "$pid" 400
kill -CONT "$recorder"
# It sees that records were lost when it reads its buffers, and then who is there: it waits between two reads.
waits() {
	awk '$1 == "voluntary_ctxt_switches:" { print $2 }' "/proc/$recorder/status"
}
has_waited() {
	[ "$(waits)" -ge $((before + 20)) ]
}
before=$(waits)
wait_for has_waited
touch "$work/enough"
wait "$pid"
echo "$pid second $begin ${EPOCHREALTIME/./}" >>"$out/lives"
kill -INT "$recorder"
wait "$recorder"
free_buffers
EOT
records_lost() {
	unshare -pf --mount-proc bash "$work/lost" "$top" "$work" </dev/null
}
check "the fork of a process with the number of an earlier one is lost: recorded" records_lost
check "both had one number" had_one_number 2
# /proc has the time of a process's fork in units of 10 ms.
check "each tick is of the process that was there" has_own "$work/lost.pb.gz" 11
check "each is a row, with its own name and ticks" rows_fit "$work/lost.pb.gz"

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
check "those inside are not named as those outside" exits 1 grep '\[[1-9][0-9]*/0 outside[] ]' "$work/dump"
finish
