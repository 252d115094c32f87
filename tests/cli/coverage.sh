#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ticks come of short-lived threads and processes, none is lost, and the account of them adds up; profiltool's own account
# of their CPU time is the kernel's; and processes that ended have names. That each tick is counted,
# tests/unit/test_sample_program.c holds by perf's own records of them.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2016,SC2317 # "$" is for the inner shell; functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../postgres.sh
. "$top/tests/postgres.sh"

# shellcheck source=SCRIPTDIR/../control_group.sh
. "$top/tests/control_group.sh"

make_control_group

# covers SPENT FILE [COUNT [NAME]]: whether the ticks (or COUNT) in record's JSON are about the CPU time that spends wrote
# to SPENT, of all or of NAME. These are the live rows.
covers() {
	recorded "takes($(spent "$1" "${4:-}"), ${3:-None})" "$2"
}

# of_process NAME FILE: the samples of all processes of that name in a profile.
of_process() {
	"$profiltool" report -q --by process --json "$2" | python3 -c '
import json, sys
print(sum(row["self"] for row in json.load(sys.stdin)["rows"] if row["comm"] == sys.argv[1]))' "$1"
}

# spent FILE [NAME]: the nanoseconds that spends wrote there, those of NAME added up.
spent() {
	awk -v name="${2:-}" 'name == "" || $1 == name { ns += $3 } END { printf "%.0f\n", ns }' "$1"
}

# same_account NS FILE: whether profiltool's own account of the CPU time, in a profile, is within 2 %
# of that; /proc, where it may be from, has it in steps of 10 ms. Of each of $ends processes or threads the
# profile has what it used after others were told of its end, too.
same_account() {
	awk -v kernel="$1" -v ours="$(dumped cpu_ns "$2")" -v ends="${ends:-0}" 'BEGIN {
		bound = kernel * 0.02 + 20e6
		print "account " ours ", kernel " kernel
		exit !(ours >= kernel - bound && ours <= kernel + bound + ends * 100e3) }'
}

# judge NAME FILE [WHAT]: rows about the recording NAME of what spends wrote FILE about.
judge() {
	check "${3:-$1}: the account of the ticks adds up, and none is lost" recorded \
		"whole and j['ticks'] > 0 and not any(j['lost'].values())" "$work/$1.json"
	check "${3:-$1}: profiltool's own account is the kernel's CPU time" \
		same_account "$(spent "$2")" "$work/$1.pb.gz"
}

# command_covered NAME HZ COMMAND...: record -- COMMAND, in rows.
command_covered() {
	local name=$1-$2 hz=$2 what="-- $1, $2 Hz"
	shift 2
	check "$what: succeeds" \
		exits 0 "$profiltool" record -F "$hz" --json -o "$work/$name.pb.gz" -- \
		"$progs/spends" "$work/$name.cpu" "$@"
	mv "$work/out" "$work/$name.json"
	judge "$name" "$work/$name.cpu" "$what"
}

# process_covered NAME "HZ..." COMMAND...: record -p of a process before it starts the command, at
# several rates at once: all of them see all of it. The command is sent a line as well.
process_covered() {
	local name=$1 rates=$2 hz
	local -A recorders
	shift 2
	begin "$name" "$progs/spends" -w "$work/$name.cpu" "$@" || return
	for hz in $rates; do
		record_begin "$name-$hz" -p "$pid" -F "$hz" --json -o "$work/$name-$hz.pb.gz"
		recorders[$hz]=$recorder
	done
	send_line "$name" $'go\ngo'
	for hz in $rates; do
		wait "${recorders[$hz]}"
		check "-p $name, $hz Hz: succeeds" test $? -eq 0
	done
	for hz in $rates; do
		judge "$name-$hz" "$work/$name.cpu" "-p $name, $hz Hz"
	done
}

# --- A shell script of short commands ---

cat >"$work/commands" <<'EOF_SH'
i=0
while [ $i -lt "$1" ]; do
	/bin/true
	/bin/echo "$i" >/dev/null
	/usr/bin/expr "$i" + 1 >/dev/null
	i=$((i + 1))
done
EOF_SH
ends=450 command_covered commands 99 sh "$work/commands" 150
ends=450 command_covered commands 4999 sh "$work/commands" 150
check "the ticks of 450 short processes make up their CPU time" covers "$work/commands-4999.cpu" "$work/commands-4999.json"

# --- A build ---

# Sources that take gcc some 20 ms each, of which cc1 has most.
mkdir "$work/build"
for i in {0..39}; do
	printf '#include <stdio.h>\n#include <stdlib.h>\nint part%d(int n)\n{\n\treturn printf("%%d", n);\n}\n' "$i" \
		>"$work/build/part$i.c"
done
# gcc runs cc1 and as through spends, which adds up their time.
cat >"$work/build/Makefile" <<EOF_MAKE
all: $(echo part{0..39}.o)
%.o: %.c
	gcc -wrapper $progs/spends,-a,$work/build/cpu -O1 -c -o \$@ \$<
EOF_MAKE
ends=200 process_covered make "99 4999" make -s -B -j2 -C "$work/build"
check "of a build the compiler has the ticks of its CPU time" covers \
	"$work/build/cpu" "$work/make-4999.json" "$(of_process cc1 "$work/make-4999.pb.gz")" cc1
check "of a build the assembler has ticks" test "$(of_process as "$work/make-4999.pb.gz")" -gt 0

# --- Threads ---

ends=150 process_covered "threads-of-5ms" "99 4999" "$progs/brief" threads 150 5000
ends=2000 process_covered "threads-of-0.5ms" "99 4999" "$progs/brief" threads 2000 500
check "the ticks of 2,000 short threads make up their CPU time" covers "$work/threads-of-0.5ms.cpu" \
	"$work/threads-of-0.5ms-4999.json"
ends=100 command_covered "threads-of-5ms" 99 "$progs/brief" threads 100 5000
ends=1000 command_covered "threads-of-0.5ms" 997 "$progs/brief" threads 1000 500
# One thread at a time: it has no more CPU time than there is time, but for what a thread takes to begin
# beside the one that waits for it.
start "$progs/brief" threads 10000000 500
for i in 1 2 3; do
	check "threads that go on: recorded ($i)" \
		exits 0 "$profiltool" record -p "$pid" -F 997 -d 0.5 --json -o "$work/on.pb.gz"
	check "threads that go on: no CPU time from after it ($i)" \
		recorded "j['due'] * j['period_ns'] <= 1.3e9 * j['duration_s'] + j['period_ns']" "$work/out"
done
stop "$pid"
process_covered "eight-threads" "99 4999" "$progs/shares" 8 .1 stay

# --- Processes ---

# Each of 1,200 children of half a millisecond counts from its first instruction to its last. What
# part of its time goes into clock_gettime() depends on the machine.
ends=1200 process_covered "children" "4999" "$progs/family" swarm .6 .5
check "-p children: what they burn in their own code is in it" recorded \
	"takes(.6e9, sum(map(samples, ('burn_child', 'thread_seconds', 'clock_gettime', '__vdso_clock_gettime'))))" \
	"$work/children-4999.json"

# A process that executes another program again and again.
process_covered "execs" "997" "$progs/brief" execs 200 2000

# --- A server ---

# PostgreSQL from its start to its end, with its clients; as many distributions start a server of their
# own when it is installed, it is not asked for.
if [ "$(id -u)" -eq 0 ] && find_postgres && make_postgres; then
	serve() {
		"${postmaster[@]}" &
		wait_for pgbench -i -q
		pgbench -S -n -c 4 -j 1 -T 1
		kill -INT $!
		wait $!
	}
	export work pgdata postgres
	process_covered postgres "99 4999" bash -c "$(declare -p postmaster)
		$(declare -f serve wait_for pgbench)
		serve >'$work/postgres.out' 2>&1"
else
	echo "# PostgreSQL is left out: it is not here, nor does PGBINDIR name its directory"
fi

# --- Names of what is gone ---

# One program under 60 names, each of which is run 50 times for 0.3 ms.
cat >"$work/names" <<'EOF_SH'
i=0
while [ $i -lt 50 ]; do
	for program in "$1"/name*; do
		"$program" once 300
	done
	i=$((i + 1))
done
EOF_SH
mkdir "$work/named"
for i in {1..60}; do
	cp "$progs/brief" "$work/named/name$i"
done
ends=3000 command_covered names 4999 sh "$work/names" "$work/named"
named() {
	recorded "images('burn_brief') == {'name%d' % i for i in range(1, 61)}" "$work/names-4999.json"
}
check "60 names: each has samples" named
# Nor has a tick in execve(2), whose pc is in an image that is not mapped any more.
check "60 names: nothing is without an image" recorded \
	"sum(f['self'] for f in j['functions'] if f['image'] == '[unknown]') <= .005 * j['counted']" "$work/names-4999.json"

# --- A storm of other processes ---

begin target "$progs/spends" -w "$work/target.cpu" "$progs/shares" 1 1
target=$pid
flood_buffers
for i in 1 2; do
	begin "storm$i" "$progs/brief" storm
	storms[i]=$pid
done
record_begin target -p "$target" -F 997 --json -o "$work/target.pb.gz"
send_line target go
wait "$recorder"
check "beside a fork storm: succeeds" test $? -eq 0
for i in 1 2; do
	stop "${storms[i]}"
done
free_buffers
judge target "$work/target.cpu" "beside a fork storm"
check "beside a fork storm: no sample is lost" test \
	"$(grep -c 'samples were lost' "$work/target.err")" -eq 0
check "beside a fork storm: its functions have their names" recorded \
	"ran('burn_sixty') and images('burn_sixty') == {'shares'}" "$work/target.json"

# --- A control group ---

if [ -n "$group" ]; then
	for hz in 997 4999; do
		record_begin "group-$hz" --cgroup "$group" -F "$hz" --json -o "$work/group-$hz.pb.gz"
		recorders[hz]=$recorder
	done
	check "a control group: commands run in it" sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group" \
		"$progs/spends" "$work/group.cpu" sh "$work/commands" 400
	for hz in 997 4999; do
		kill -INT "${recorders[hz]}"
		wait "${recorders[hz]}"
		check "a control group, $hz Hz: succeeds" test $? -eq 0
		ends=1200 judge "group-$hz" "$work/group.cpu" "a control group, $hz Hz"
	done
else
	skip "a control group" "no control group can be made here"
fi

finish
