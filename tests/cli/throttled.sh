#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# --wall reports for how long quotas of control groups stopped threads: what the groups' own cpu.stat has.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

# shellcheck source=SCRIPTDIR/../control_group.sh
. "$top/tests/control_group.sh"

if ! make_quota_group; then
	skip "quotas of control groups" "no control group with a quota can be made here"
	finish
fi

# The quota is the parent's: 5 ms in 100, for beside others a program has no more of a CPU than that. It is in a group
# without one.
in=$group/in
mkdir "$in"
set_quota "$group" 5000 100000

cat >"$work/enter" <<'EOF_SH'
#!/bin/sh
echo $$ >"$1/cgroup.procs" && shift && exec "$@"
EOF_SH
chmod 755 "$work/enter"

# stat MEMBER: prints one of the group's cpu.stat; throttled: in ns, of both versions of control groups.
stat_of() {
	awk -v key="$1" 'key == "throttled" && $1 == "throttled_time" { print $2 }
		key == "throttled" && $1 == "throttled_usec" { print $2 * 1000 }
		$1 == key { print $2 }' "$group/cpu.stat"
}

# is_throttled_again N: the group was stopped in more than N periods so far.
is_throttled_again() {
	[ "$(stat_of nr_throttled)" -gt "$1" ]
}

# record_throttled NAME OPTION...: records until the group was stopped 10 times, and notes what its cpu.stat had before
# and after both ends of the recording.
record_throttled() {
	local name=$1 before begun ending
	shift
	before=$(stat_of throttled)
	record_begin "$name" record --wall --json "$@"
	begun=$(stat_of throttled) periods=$(stat_of nr_throttled)
	wait_for is_throttled_again $((periods + 10))
	ending=$(stat_of throttled)
	kill -INT "$recorder"
	wait "$recorder"
	least=$((ending - begun)) most=$(($(stat_of throttled) - before))
}

# throttled EXPRESSION FILE: a Python expression about the JSON in a file: its wall times `w`, the group of the test `g`,
# and what cpu.stat allows, `least` and `most`, in ns.
throttled() {
	python3 - "$1" "$2" "$least" "$most" "$(basename "$group")" <<'EOF2'
import json, sys
w = json.load(open(sys.argv[2]))["wall"]
least, most = (int(v) for v in sys.argv[3:5])
g = [g for g in w["throttled"] if g["cgroup"].endswith("/" + sys.argv[5])]
ok = len(g) == 1
if ok:
	g = g[0]
	# cgroup v2 has microseconds.
	between = least - 1000 <= g["throttled_ns"] <= most + 1000
	ok = eval(sys.argv[1])
if not ok:
	print(least, most, w)
sys.exit(not ok)
EOF2
}

begin spin "$work/enter" "$in" "$progs/waits" spin
program=$pid
record_throttled process -p "$program" -o "$work/process.pb.gz"
check "a process is throttled as long as its parent group's cpu.stat says" \
	throttled 'between and 0 < g["throttled_ns"] == w["throttled_ns"]' "$work/process.json"
check "in as many periods as were throttled, of those that there were" \
	throttled '10 <= g["throttled_periods"] <= g["periods"]' "$work/process.json"
check "the quota is named, as cpu.max has it" \
	throttled '(g["quota_us"], g["period_us"]) == (5000, 100000)' "$work/process.json"
check "a group without a quota is not named" throttled 'len(w["throttled"]) == 1' "$work/process.json"
# The first time that the group is stopped may have begun before.
check "a throttled thread waits for a CPU" \
	throttled 'w["runnable_ns"] > 0.5 * g["throttled_ns"]' "$work/process.json"

check "a profile keeps it" exits 0 "$profiltool" report --json "$work/process.pb.gz"
check "and report has what was recorded" throttled 'between and w["throttled_ns"] == g["throttled_ns"]' "$work/out"
check "report prints it" exits 0 "$profiltool" report "$work/process.pb.gz"
check "with the group and its quota" grep -Eq \
	"^profiltool: throttled by quota: [0-9.]+ s in [0-9]+ of [0-9]+ periods, .*/${group##*/} \(cpu.max 5000 100000\)$" \
	"$work/err"
check "merge adds it up" exits 0 "$profiltool" merge -o "$work/twice.pb.gz" "$work/process.pb.gz" "$work/process.pb.gz"
"$profiltool" report --json "$work/twice.pb.gz" >"$work/twice.json" 2>/dev/null
check "of one group" python3 - "$work/process.json" "$work/twice.json" <<'EOF2'
import json, sys
one, two = (json.load(open(f))["wall"] for f in sys.argv[1:])
keys = ("throttled_ns", "throttled_periods", "periods")
right = len(two["throttled"]) == 1 and all(2 * one["throttled"][0][k] == two["throttled"][0][k] for k in keys)
if not right:
	print(one, two)
sys.exit(not right)
EOF2

record_throttled all -a
check "of the whole machine, each group is named" throttled 'between' "$work/all.json"

# profild's windows and metrics have it, too.
"$build/profild" --continuous --window 1 --directory "$work/windows" 2>"$work/profild.err" &
profild=$!
note_started "$profild"
written() {
	"$build/profild" --status --json --directory "$work/windows" >"$work/status" 2>/dev/null &&
		json 'j["windows_total"] > 1 and j["wall_throttled_nanoseconds_total"] > 0' "$work/status"
}
wait_for written
kill "$profild"
wait "$profild"
"$build/profild" --status --json --directory "$work/windows" >"$work/status" 2>/dev/null
"$profiltool" report --json "$work/windows" >"$work/windows.json" 2>/dev/null
least=0 most=1000000000000
check "windows of profild have it" throttled 'g["throttled_ns"] > 0' "$work/windows.json"
check "and its metrics the sum" python3 - "$work/status" "$work/windows.json" <<'EOF2'
import json, sys
status, report = (json.load(open(f)) for f in sys.argv[1:])
sums = status["wall_throttled_nanoseconds_total"], report["wall"]["throttled_ns"]
if sums[0] != sums[1]:
	print(sums)
sys.exit(sums[0] != sums[1])
EOF2
stop "$program" 2>/dev/null

# The group is gone when the recording ends.
mkdir "$group/brief"
set_quota "$group/brief" 2000 100000
group=$group/brief
check "a command that enters a group and removes it is recorded" exits 0 "$profiltool" record --wall --json -- sh -c '
	until_throttled() {
		while [ "$(sed -n "s/^nr_throttled //p" "$1/cpu.stat")" -lt 3 ]; do :; done
	}
	"$2" "$1" sh -c "while :; do :; done" &
	until_throttled "$1"
	kill $!
	wait $!
	rmdir "$1"' - "$group" "$work/enter"
least=0 most=1000000000000
check "the time of a group that was removed is kept" \
	throttled 'g["throttled_periods"] >= 3 and g["quota_us"] == 2000 and g["throttled_ns"] > 0' "$work/out"

# --- Without a quota ---

begin free "$progs/waits" spin
check "without a quota nothing is throttled" exits 0 "$profiltool" record --wall --json -d 0.1 -p "$pid"
check "and JSON says so" json 'j["wall"]["throttled"] == [] and j["wall"]["throttled_ns"] == 0' "$work/out"
stop "$pid"

# --- A control group ---

quota=${group%/brief}
if make_control_group; then
	target=$group
	groups+=("$quota")
	group=$quota
	begin both "$work/enter" "$in" "$work/enter" "$target" "$progs/waits" spin
	record_throttled cgroup --cgroup "$target"
	check "--cgroup names the quota that stops its threads" throttled 'between' "$work/cgroup.json"
else
	skip "--cgroup names the quota that stops its threads" "no control group can be made here"
fi

finish
