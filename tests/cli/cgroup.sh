#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# --cgroup counts all processes in a control group and below it, of any user, running and new ones, and no
# others. Errors name the cause.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

# shellcheck source=SCRIPTDIR/../control_group.sh
. "$top/tests/control_group.sh"

if ! make_control_group; then
	skip "control groups" "no control group can be made here"
	finish
fi

in=$group/in
# Their names are those of a unit of systemd and of a container of podman.
unit=unit-$$.service
id=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
below=$group/in/below/$unit
contained=$group/in/libpod-$id.scope
outside=$group/outside
mkdir -p "$below" "$contained" "$outside" "$group/empty"

# enter GROUP COMMAND...: becomes the command, in that group.
cat >"$work/enter" <<'EOF_SH'
#!/bin/sh
echo $$ >"$1/cgroup.procs" && shift && exec "$@"
EOF_SH
chmod 755 "$work" "$work/enter"
# Copies of the program, so that each process has another name.
for name in stays comes born leaves stranger; do
	cp "$progs/shares" "$work/$name"
done

# --- What is counted ---

# of NAME: an expression for what was counted in images of this name.
of() {
	echo "sum(f['self'] for f in j['functions'] if f['image'].endswith('$1'))"
}

usage_us() {
	sed -n 's/^usage_usec //p' "$in/cpu.stat"
}

begin stranger "$work/enter" "$outside" "$work/stranger" 1 0 stay lazier
stranger=$pid
begin stays "$work/enter" "$in" "$work/stays" 2 0.6 wait stay
stays=$pid
begin family "$work/enter" "$below" "$progs/family" fork 0.4
family=$pid
begin comes "$work/enter" "$outside" "$work/comes" 1 0.5 wait stay
comes=$pid
begin leaves "$work/enter" "$in" "$progs/family" exec 0.4 "$work/enter" "$outside" \
	"$work/leaves" 1 0.3 stay
leaves=$pid

[ -e "$in/cpu.stat" ] && used=$(usage_us)
record_begin all --cgroup "$in" -F 999 --json -o "$work/all.pb.gz"
everything=$recorder
record_begin tick --cgroup "$in" -e tick --json
for name in stays family leaves; do
	send_line $name go
done
echo "$comes" >"$in/cgroup.procs"
send_line comes go
begin born "$work/enter" "$contained" setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$work/born" 1 0.4 stay
for target in "$stays" "$family" "$comes" "$leaves" "$pid"; do
	wait "$target"
done
[ -e "$in/cpu.stat" ] && used=$(($(usage_us) - used))
kill -INT "$recorder"
wait "$recorder"
check "a group, by the scheduler's tick: succeeds" test $? -eq 0
kill -INT "$everything"
wait "$everything"
check "a group: succeeds" test $? -eq 0
check "a group: nothing came from outside" recorded "whole and not $(of stranger)" "$work/all.json"
check "all functions of a process in the group have samples" recorded \
	"ran('burn_sixty', 'burn_thirty', 'burn_ten')" "$work/all.json"
check "the scheduler's tick finds the group's functions, and nothing from outside" recorded "\
	ran('burn_sixty', 'burn_thirty') and \
	not $(of stranger)" "$work/tick.json"
check "two threads of a process" recorded "$(of /stays) > 0" "$work/all.json"
for function in burn_parent burn_thread burn_child; do
	check "groups below it: $function" recorded "ran('$function')" "$work/all.json"
done
check "a process that comes later" recorded "$(of /comes) > 0" "$work/all.json"
check "one that starts there, of another user" recorded "$(of /born) > 0" \
	"$work/all.json"
check "one that leaves: until then" recorded "ran('burn_before')" "$work/all.json"
check "one that leaves: and no more" recorded "not $(of /leaves)" "$work/all.json"
check "all of the test's own programs have names" recorded "not [f for f in rows('0x*') if
	f['image'].startswith(('$work/', '$progs/'))]" "$work/all.json"
cpu_ns=$(dumped cpu_ns "$work/all.pb.gz")
check "the ticks make up the account of its CPU time" recorded \
	"takes($cpu_ns)" "$work/all.json"
if [ -n "${used:-}" ]; then
	check "the account of its CPU time is the kernel's" recorded "abs($cpu_ns - $used * 1000) <= $used * 40" "$work/all.json"
fi
check "the summary names it" grep -qF "control group $in: " "$work/all.err"

# by FIELD EXPRESSION: about the rows of the recording, as a dict of their names and samples.
by() {
	"$profiltool" report --by "$1" --json "$work/all.pb.gz" >"$work/by.json" 2>"$work/err" &&
		json "(lambda rows: $2)({r.get('$1'): r['self'] for r in j['rows']})" "$work/by.json"
}
check "samples have the unit" by unit "rows['$unit'] > 0 and rows['libpod-$id.scope'] > 0"
check "samples have the container" by container "rows['$id'] > 0 and len(rows) == 2"
check "samples have the user" by user "set(rows) == {'$(id -un)', '$(id -un 65534)'}"
# only FUNCTIONS OPTION...: these options select the samples in these functions of the test's programs, those of them that
# had a tick.
only() {
	local functions=$1
	shift
	"$profiltool" report --json "$@" "$work/all.pb.gz" >"$work/only.json" 2>"$work/err" &&
		json "set() < {f['name'] for f in j['functions'] if f['name'].startswith('burn')} <= set('$functions'.split())" \
			"$work/only.json"
}
check "report --unit" only "burn_parent burn_thread burn_child" --unit "$unit"
check "report --user" only "burn_sixty burn_thirty burn_ten burn_cpu" --user "$(id -un 65534)"

check "the root group: all processes" bash -c \
	"'$profiltool' --cgroup / -F 999 -d 2 --json >'$work/root.json' 2>/dev/null"
check "the root group: also other processes" recorded "whole and $(of /stranger) > 0" \
	"$work/root.json"

echo "$stranger" >"$in/cgroup.procs"
check "top" exits 0 "$profiltool" top --cgroup "$in" -F 999 -d 2 --tables 1 -E 3
check "top: the group's functions" grep -q 'burn_sixty  *stranger' "$work/out"
check "top: its name" grep -qF "control group $in" "$work/out"
echo "$stranger" >"$below/cgroup.procs"
taskset -a -c -p 0 "$stranger" >/dev/null # of one CPU, there is one row
for by in unit container user cpu title; do
	case $by in
	unit) row=$unit ;;
	container) row='\[no container\]' ;;
	user) row=$(id -un) ;;
	cpu) row=0 ;;
	title) row=stranger ;;
	esac
	check "top --by $by" exits 0 "$profiltool" top --cgroup "$below" --by $by -F 999 -d 3 --tables 1
	check "top --by $by: its row" bash -c 'grep -F " 100.00 " "$1" | grep -qE " $2\$" || { cat "$1"; exit 1; }' - "$work/out" "$row"
done
stop "$stranger"

# --- Its end ---

mkdir "$group/ends"
begin ends "$work/enter" "$group/ends" "$work/stays" 1 0.3 wait
record_begin ends --cgroup "$group/ends" -F 999
send_line ends go
wait "$pid"
wait_for rmdir "$group/ends"
wait "$recorder"
check "a group that is removed: done" test $? -eq 0
check "a group that is removed: the table is there" grep -q 'burn_sixty  *stays' "$work/ends.json"

mkdir "$group/ends"
record_begin early --cgroup "$group/ends" -F 999 -d 60
rmdir "$group/ends"
wait "$recorder"
check "removed before -d, without a tick" test $? -eq 4

# --- What it does when there are no samples ---

mkdir -p "$group/idle/below"
start "$work/enter" "$group/idle/below" sleep 1000
wait_for grep -q nanosleep "/proc/$pid/wchan"
check "a group that sleeps" exits 4 "$profiltool" record --cgroup "$group/idle" -d 0.1
check "a group that sleeps: where it waits" says "s: it waits in $(cat "/proc/$pid/wchan")"
check "a group that sleeps: top" exits 4 "$profiltool" top --cgroup "$group/idle" --tables 1 -d 0.1
check "a group that sleeps: top: where it waits" says "s: it waits in $(cat "/proc/$pid/wchan")"
stop "$pid"
check "a group without a process" exits 4 "$profiltool" record --cgroup "$group/idle" -d 0.1
check "a group without a process: reported" says "s: it has no processes"

# --- How it is named ---

finds() {
	exits 4 "$profiltool" --cgroup "$1" -d 0.1 && says "no tick fell into control group $1"
}
name=${group#"$place"/}
check "an absolute path" finds "$group/empty"
check "a path below the mount" finds "$name/empty"
check "the same with a slash in front" finds "/$name/empty"
check "a slash behind" finds "$name/empty/"
cd "$group" || exit
check "a path from the working directory" finds ./empty
cd .. || exit
check "two" finds "./$name/../$name/empty"
cd "$top" || exit

# --- What cannot be ---

# refuses CODE TEXT ARG...
refuses() {
	local code=$1 text=$2
	shift 2
	exits "$code" timeout 60 "$profiltool" record -d 0.1 "$@" && says "$text" && test ! -s "$work/out"
}

check "none of this name" refuses 1 "there is no control group $name/none" --cgroup "$name/none"
check "none of this name: the hint" says "find $place -type d"
check "none of this path" refuses 1 "there is no control group $group/none" --cgroup "$group/none"
check "none here" refuses 1 "there is no control group ./$name" --cgroup "./$name"
check "a directory of another file system" refuses 1 "$work is not a control group" --cgroup "$work"
check "a file" refuses 1 "$in/cgroup.procs: Not a directory" --cgroup "$in/cgroup.procs"
check "an empty argument" refuses 2 "empty" --cgroup ""
check "an argument that is too long" refuses 1 "cannot open the control group /0" --cgroup "/$(printf '%05000d' 0)"

for other in "-p $$" "-t $$" -a "-- true"; do
	# shellcheck disable=SC2086 # several words
	check "with $other" refuses 2 "exclude each other" --cgroup "$in" $other
done
check "with --scale" refuses 2 "of one process, with -p" --cgroup "$in" --scale 0x10000
check "top: with -p" exits 2 "$profiltool" top --cgroup "$in" -p 1 --tables 1
bare=$(awk '$3 == "cgroup" && "," $4 "," !~ /,perf_event,/ { print $2; exit }' /proc/self/mounts)
if [ -n "$bare" ] && bare=$(mktemp -d "$bare/profil-test.XXXXXX"); then
	groups+=("$bare")
	check "a hierarchy without perf_event" refuses 1 "$bare: it is of cgroup v1, without" \
		--cgroup "$bare"
	check "a hierarchy without perf_event: the hint" says "below $place"
fi # else all are cgroup2

cp "$profiltool" "$work/profiltool"
if setpriv --reuid=65534 --regid=65534 --clear-groups "$work/profiltool" --version >/dev/null 2>&1; then
	as_nobody() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$work/profiltool" "$@"
	}
	chmod 700 "$group"
	check "as nobody, in a directory that is closed" \
		exits 5 as_nobody record -d 0.1 --cgroup "$in"
	check "as nobody, in a directory that is closed: why" says "$in: Permission denied"
	chmod 755 "$group"
	check "as nobody" exits 5 as_nobody record -d 0.1 --cgroup "$in"
	check "as nobody: the hint" says "profiltool check has the command"
else
	skip "as nobody" "setpriv cannot become nobody here"
fi

finish
