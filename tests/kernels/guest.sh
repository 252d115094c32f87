#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The /init of the virtual machines that kernels.sh starts, run by busybox. The run NAME writes NAME.json,
# NAME.err, NAME.status and NAME.out, the output of its target, to /results, which is sent as an archive to
# the serial line $port; the console shows the progress. $machine has the functions to call, separated by "+".
# Both are from the kernel's command line.

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
cd /results || exit 1

# begin NAME COMMAND...: starts a target, $target, which prints "ready" and waits for an order.
begin() {
	name=$1
	shift
	mkfifo "/run/$name"
	"$@" <>"/run/$name" >"$name.out" 2>&1 &
	target=$!
	until grep -q ready "$name.out" || ! kill -0 "$target"; do
		usleep 10000
	done
}

# ended NAME STATUS: of a run.
ended() {
	echo "$2" >"$1.status"
	echo "$1: exit status $2, after $(cut -d' ' -f1 /proc/uptime) s"
}

# run NAME COMMAND...: from its start to its end.
run() {
	name=$1
	shift
	"$@" >"$name.json" 2>"$name.err"
	ended "$name" $?
}

# record NAME "OPTION...": records while the target that was begun by that name works.
record() {
	name=$1
	# shellcheck disable=SC2086 # a list of words
	profiltool record -F 997 --json -v $2 >"$name.json" 2>"$name.err" &
	recorder=$!
	until grep -q poll /proc/$recorder/wchan || ! kill -0 $recorder; do
		usleep 10000
	done 2>/dev/null
	echo go >"/run/$name"
	wait $recorder
	ended "$name" $?
}

# record_for MS NAME "OPTION...": records for so long while the target, and $stranger if there is one, work, and runs
# $beside meanwhile. They rest while the kernel verifies the programs and while names are found: both take seconds
# here, and twice as many beside them.
record_for() {
	ms=$1
	name=$2
	# shellcheck disable=SC2086 # lists of words
	kill -STOP "$target" $stranger
	# shellcheck disable=SC2086
	profiltool record -F 997 --json -v $3 >"$name.json" 2>"$name.err" &
	recorder=$!
	until grep -q poll /proc/$recorder/wchan || ! kill -0 $recorder; do
		usleep 10000
	done 2>/dev/null
	# shellcheck disable=SC2086
	kill -CONT "$target" $stranger
	[ ! -e "/run/$name" ] || echo go >"/run/$name"
	[ -z "$beside" ] || (run "$beside" "$beside")
	usleep "${ms}000"
	# shellcheck disable=SC2086
	kill -STOP "$target" $stranger
	kill -INT $recorder
	wait $recorder
	ended "$name" $?
}

# attach NAME "OPTION..." COMMAND...: records a target by its PID from before it works.
attach() {
	name=$1
	options=$2
	shift 2
	begin "$name" "$@"
	record "$name" "-p $target $options"
}

# On one CPU, whose time is counted in instructions: nothing that the host does is seen in here. What needs no
# two CPUs may follow one another in one machine; exact and the parts of the module after basics and module.
basics() {
	attach pid "-o pid.pb.gz" shares 2 0.7 wait
	run pid-dump profiltool dump --json pid.pb.gz
	begin stacks chains kernel
	record_for 400 stacks "-g -p $target"
	beside=neighbour
	record_for 400 wall "--wall -a"
	beside=
	record_for 400 tick-stacks "-g -e tick -F 250 -p $target"
	kill -KILL "$target"
	attach tick "-e tick -F 250 -o tick.pb.gz" shares 2 0.7 wait
}

exact() {
	attach fork "-o fork.prof" family fork 0.4
	run fork-dump profiltool dump --json fork.prof
	echo go | run command profiltool record -F 997 --json -o command.pb.gz -- \
		sh -c "exec family exec 0.3 shares 2 0.3 >command.out"
	begin all shares 2 0 wait
	record_for 1000 all -a
	kill -KILL "$target"
}

groups() {
	begin stranger family exec 100 true
	stranger=$target
	echo go >/run/stranger
	mkdir /run/v1
	mount -t cgroup -o perf_event none /run/v1 && mkdir /run/v1/in
	begin old-group sh -c 'echo $$ >/run/v1/in/cgroup.procs && exec shares 1 0 wait'
	record_for 400 old-group "--cgroup in"
	kill -KILL "$target"
	until rmdir /run/v1/in; do
		usleep 10000
	done 2>/dev/null
	umount /run/v1
	mount -t cgroup2 cgroup2 /sys/fs/cgroup && mkdir /sys/fs/cgroup/in
	begin group sh -c 'echo $$ >/sys/fs/cgroup/in/cgroup.procs && exec shares 2 0 wait'
	# Where others have the one CPU, too, a turn of 4 ms may lie between the account and the ticks at either
	# end, which is less than 1 % of this time.
	record_for 1500 group "--cgroup in -o group.pb.gz"
	kill -KILL "$target" "$stranger"
	stranger=
	begin thread shares 2 0 wait
	for thread in "/proc/$target/task"/*; do
		:
	done
	record_for 1500 thread "-t ${thread##*/} -o thread.pb.gz"
	kill -KILL "$target"
	echo go | run tick-command profiltool record -e tick --json -- \
		sh -c "exec family exec 0.3 shares 2 0.3 >tick-command.out"
}

# What users record of their own, on the kernel's word for whose it is.
owned() {
	before=$(cat /proc/sys/kernel/perf_event_paranoid)
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	export PROFIL_RECORD_SOCKET=/run/record
	profild --record --socket /run/record 2>service.err &
	service=$!
	until grep -q " 00010000 .* /run/record$" /proc/net/unix || ! kill -0 $service; do
		usleep 10000
	done
	# shellcheck disable=SC2086 # a list of words
	begin owned $as_nobody shares 2 0 wait
	echo go >/run/owned
	# shellcheck disable=SC2086
	run owned $as_nobody profiltool record -F 997 --wall --json -d 1 -p "$target"
	kill -KILL "$target"
	# shellcheck disable=SC2086
	echo go | run owned-command $as_nobody profiltool record -F 997 --json -- sh -c "shares 1 0.5 >owned-command.out"
	# shellcheck disable=SC2086
	run owned-refused $as_nobody profiltool record -d 1 -p 1
	kill $service
	unset PROFIL_RECORD_SOCKET
	echo "$before" >/proc/sys/kernel/perf_event_paranoid
}

# What a kernel before 5.17 cannot do, and what it does in another way: control groups.
before_5_17() {
	mount -t cgroup2 cgroup2 /sys/fs/cgroup && mkdir /sys/fs/cgroup/in
	begin stranger family exec 100 true
	echo go >/run/stranger
	begin group sh -c 'echo $$ >/sys/fs/cgroup/in/cgroup.procs && exec shares 1 0 wait'
	record group "-g --cgroup in -d 0.4"
	run victim profiltool record -a --victim pid:1 -d 0.2
}

# All kinds of frames.
unwinding() {
	for program in chains frameless chains-signed; do
		for kind in set thread last; do
			begin "$program-$kind" "$program" "$kind"
			run "$program-$kind" profiltool record -g -p "$target" -d 0.2 -F 997 --json
			kill -KILL "$target"
		done
	done
	begin frames frames 20000
	run frames profiltool record -g -p "$target" -d 1 -F 997 --json
	kill -KILL "$target"
}

# Where there are performance counters.
cycles() {
	attach cycles "-e cycles" shares 1 0.5 wait
}

# start_profild NAME: $daemon, which listens (`listens` of lib.sh); its messages are in NAME.err.
start_profild() {
	rm -f /run/profild
	profild --socket /run/profild 2>"$1.err" &
	daemon=$!
	until grep -q " 00010000 .* /run/profild$" /proc/net/unix || ! kill -0 $daemon; do
		usleep 10000
	done
}

gmon_client="env LD_PRELOAD=/lib/profil/libprofil-gmon.so PROFIL_BACKEND=daemon PROFIL_SOCKET=/run/profild"

# The second CPU goes and comes back, and the target is to run there.
turn_cpu_off_and_on() {
	echo 0 >/sys/devices/system/cpu/cpu1/online
	nproc >"$name.cpus"
	echo 1 >/sys/devices/system/cpu/cpu1/online
	until taskset -p 2 "$target" >/run/taskset 2>&1; do # cpusets learn of it a little later
		usleep 1000
	done
}

# What a CPU ticks that has been away, and comes back while all is on. Two looks, a second apart, are needed to
# see that it was: CPUS_LOOK_NS. The targets run for 5.
hotplug() {
	begin hotplug shares 1 5 wait
	profiltool record -a -F 997 --json >hotplug.json 2>hotplug.err &
	recorder=$!
	until grep -q poll /proc/$recorder/wchan || ! kill -0 $recorder; do
		usleep 10000
	done 2>/dev/null
	turn_cpu_off_and_on
	echo go >/run/hotplug
	wait "$target"
	kill -INT $recorder
	wait $recorder
	ended hotplug $?

	echo 2 >/proc/sys/kernel/perf_event_paranoid
	start_profild profild
	# shellcheck disable=SC2086 # a list of words
	begin hotplug-daemon $gmon_client GMON_OUT_PREFIX=hotplug-gmon PROFIL_HZ=997 shares-pg 1 5 wait
	turn_cpu_off_and_on
	echo go >/run/hotplug-daemon
	wait "$target"
	run hotplug-daemon profiltool dump --json hotplug-gmon.*
	kill $daemon
}

# Two CPUs at once.
parallel() {
	attach pid "" shares 2 0.5 wait stay
	attach no-inherit --no-inherit family fork 0.3
	attach kernel --kernel halves 0.5 wait
	attach tick "-e tick -F 250" family fork 0.5
	attach tick-kernel "-e tick -F 250 --kernel" halves 0.5 wait
	begin all shares 3 0 wait
	record all "-a -d ${all_seconds:-0.5}"
	kill -KILL "$target"
	begin churn churn 4 30
	run threads profiltool -p "$target" -d 0.5 -F 997 --json
	kill -KILL "$target"
	run cycles profiltool record -e cycles -- true
}

tree() {
	begin tree chains tree
	record_for 1000 tree "-g -p $target"
	record_for 400 wall "--wall -a"
	kill -KILL "$target"
}

as_nobody="/bin/setpriv --reuid 65534 --regid 65534 --clear-groups"
libprofil="env LD_PRELOAD=/lib/profil/libprofil.so.1 PROFIL_HZ=1000 PROFIL_SOCKET=/run/profild"

# Where instructions are counted time passes otherwise: a timer of the program, what calls and turns
# of many threads cost, and of one that wakes beside.
left_out='^rate |ITIMER_PROF|many calls|100 threads|reads its own counts|reads the counts of another'
left_out="$left_out${also_left_out:+|$also_left_out}"
patience=${row_seconds:-20} # seconds for a row

# row COMMAND...: one row, whose name is the last word.
row() {
	timeout "$patience" "$@" >/run/row 2>&1 </dev/null
}

# rows NAME "COMMAND..." PROGRAM...: what each of their rows, of one in $every, says and how it ends when
# the command runs it (tests/progs/profil_row.h), in NAME.rows.
rows() {
	name=$1
	command=$2
	shift 2
	for program; do
		"$program" list | grep -vE "$left_out" | awk "NR % $every == 0" | while read -r _ row; do
			# shellcheck disable=SC2086 # a list of words
			row $command "$program" "$row"
			echo "$? ${program##*/} $row"
			sed 's/^/  /' /run/row
		done
	done >"$name.rows"
	ended "$name.rows" "$(grep -c '^[1-9]' "$name.rows")"
}

# profil(2): all that is judged where the kernel counts and that no clock decides.
legacy() {
	rows bpf "$libprofil PROFIL_BACKEND=bpf" \
		profil_calls profil_buffers profil_regions profil_family profil_signals
	# Debian's kernels begin with 3, and then want CAP_SYS_ADMIN for every perf event.
	start_profild closed
	$gmon_client GMON_OUT_PREFIX=closed-gmon shares-pg 1 0.5 >closed.out
	run closed-dump profiltool dump --json closed-gmon.*
	kill $daemon
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	start_profild profild
	rows daemon "$libprofil PROFIL_BACKEND=daemon" profil_calls profil_family
	kill $daemon
}

# 32-bit programs, which some hosts' kernels do not execute.
bits32() {
	attach bits32 "-g -o bits32.pb.gz" shares-32 2 0.7 wait
	run bits32-dump profiltool dump --json bits32.pb.gz
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	start_profild profild
	rows bits32-calls "env PROFIL_HZ=1000 PROFIL_SOCKET=/run/profild PROFIL_BACKEND=daemon" profil_calls-32
	kill $daemon
}

# pg SECONDS [WORD...]: a program of gcc -pg, through /dev/profil.
pg="$as_nobody env LD_PRELOAD=/lib/profil/libprofil-gmon.so PROFIL_BACKEND=kmod PROFIL_HZ=997 \
	shares-pg 1"

# lisp NAME "COMMAND...": GNU Common Lisp with its profiler on. At a round rate, where instructions
# are the clock, ticks fall into step with the interpreter's loop, which takes as many each time.
lisp() {
	# shellcheck disable=SC2086 # a list of words
	run "$1" $2 PROFIL_HZ=733 PROFIL_VERBOSE=1 gcl -batch -load /lib/work.lisp
}

# measure: "NAME COUNT" for each kind of the kernel's objects, and for pages and their uses, once all
# that can be has been given back. Pages of objects are not among the pages: how objects lie in them is
# chance. An idle CPU's time passes at once.
measure() {
	sleep 2
	echo 3 >/proc/sys/vm/drop_caches
	for cache in /sys/kernel/slab/*; do # each counts what a CPU keeps for itself as in use
		[ -L "$cache" ] || echo 1 >"$cache/shrink"
	done
	echo 1 >/proc/sys/vm/compact_memory
	echo >/proc/sys/vm/stat_refresh
	awk '
		FILENAME ~ /slabinfo/ && FNR > 2 { print $1, $2 }
		/^MemTotal:/ { pages += $2 / 4 }
		/^(MemFree|Slab):/ { pages -= $2 / 4 }
		/^(VmallocUsed|Percpu):/ { print $1, $2 / 4 }
		FILENAME ~ /zoneinfo/ && $1 == "count:" { pages -= $2 } # free, but kept for a CPU
		END { print "pages", pages }' /proc/slabinfo /proc/meminfo /proc/zoneinfo
}

# unload: once what a process had that has ended is given back, which takes a moment.
unload() {
	for _ in $(seq 1000); do
		rmmod profil 2>/run/unload && return
		usleep 1000
	done
	cat /run/unload >&2
	return 1
}

# load_use_unload TIMES
load_use_unload() {
	for _ in $(seq "$1"); do
		# shellcheck disable=SC2086 # a list of words
		insmod /lib/profil.ko && $pg 0.003 && unload || return
	done
}

# growing: the names of which there is more after each leg than after the one before, in `left`.
growing() {
	awk '
		$1 in last { fell[$1] += $2 <= last[$1] }
		{ last[$1] = $2 }
		END { for (name in fell) if (!fell[name]) print name }' left
}

# use_again: $times in each leg, with what is in use after each, and before them, in `left`. A leak grows
# with every leg, and what the kernel keeps for a while does so by chance: legs go on, from the fourth,
# until nothing has grown with each.
use_again() {
	for _ in 1 2 3; do # what else ran here is given back by and by
		load_use_unload 4 && measure >/run/measure || return
	done
	echo "times ${times:=8}" >left
	cat /run/measure >>left
	for leg in $(seq 12); do
		load_use_unload "$times" && measure >>left || return
		[ "$leg" -lt 4 ] || [ -n "$(growing)" ] || return 0
	done
}

# One CPU, whose time is counted in instructions.
module() {
	run insmod insmod /lib/profil.ko
	run device stat -c %a /dev/profil
	run check profiltool check
	rm /bin/profil_number # of profild's clock alone: tests/profil/number.sh
	rows kmod "$as_nobody $libprofil PROFIL_BACKEND=kmod" /bin/profil_*
	rows module "" kmod_calls kmod_memory kmod_ticks kmod_clock
	# shellcheck disable=SC2086 # a list of words
	begin pg $pg 1 wait
	run busy rmmod profil
	echo go >/run/pg
	wait "$target"
	ended pg $?
	mv gmon.out gmon.pg
	run rmmod unload
}

module_gcl() {
	insmod /lib/profil.ko
	lisp gcl "$as_nobody $libprofil PROFIL_BACKEND=kmod"
	lisp gcl-bpf "$libprofil PROFIL_BACKEND=bpf"
	run rmmod-gcl unload
}

module_again() {
	run again use_again
}

# load_while_used TIMES: programs begin to use it at any moment, and it is unloaded between two.
load_while_used() {
	touch /run/used
	for _ in 1 2; do
		while [ -e /run/used ]; do
			# Ends with 6 when there is no /dev/profil.
			$pg 0.003 2>/run/null
		done &
	done
	for _ in $(seq "$1"); do
		insmod /lib/profil.ko && unload
		failed=$?
		[ "$failed" -eq 0 ] || break
	done
	rm /run/used
	wait
	return "$failed"
}

# Memory runs out wherever the module asks for some, where a kernel can have it so.
scarce() {
	for kind in failslab fail_page_alloc; do
		echo N >/sys/kernel/debug/$kind/ignore-gfp-wait
		echo 0 >/sys/kernel/debug/$kind/verbose
		echo Y >/sys/kernel/debug/$kind/task-filter
	done
	echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
	echo -1 >/sys/kernel/debug/failslab/times
	echo 5 >/sys/kernel/debug/failslab/probability
	rows scarce "" kmod_scarce
}

# What a debugging kernel has found. kmemleak reports memory that is older than 5 seconds and
# that it has found lost twice.
look_for_leaks() {
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >kmemleak
	cat /proc/lockdep_stats >lockdep_stats
}

# Two CPUs at once; with $brief, what depends on there being two.
module_parallel() {
	programs="kmod_calls kmod_memory kmod_life kmod_family kmod_clock"
	turns=20
	seconds=10
	if [ -n "$brief" ]; then
		programs="kmod_life kmod_family"
		turns=5
		seconds=3
		export PROFIL_TEST_BRIEF=1 # rounds() in tests/kmod/kmod_device.h
	fi
	run insmod insmod /lib/profil.ko
	left_out="^exact ${also_left_out:+|$also_left_out}"
	patience=${row_seconds:-600}
	# shellcheck disable=SC2086 # a list of words
	rows parallel "" $programs
	[ ! -e /proc/self/fail-nth ] || scarce
	run fuzz kmod_fuzz "${fuzz_seconds:-$seconds}"
	run rmmod unload
	run races load_while_used "$turns"
}

# Two CPUs, of which isolcpus=1 isolates the second.
module_isolated() {
	on_cpu="env LD_PRELOAD=/lib/profil/libprofil.so.1 PROFIL_BACKEND=kmod PROFIL_HZ=1000 taskset"
	run insmod insmod /lib/profil.ko
	# shellcheck disable=SC2086 # a list of words
	run other $on_cpu 1 profil_backends which
	# shellcheck disable=SC2086
	run isolated $on_cpu 2 profil_backends which
	echo Y >/sys/module/profil/parameters/isolated_cpus
	# shellcheck disable=SC2086
	run isolated-on $on_cpu 2 profil_backends which
	echo N >/sys/module/profil/parameters/isolated_cpus
	# shellcheck disable=SC2086
	run isolated-off $on_cpu 2 profil_backends which
}

# What the parts after it do less of.
brief() {
	brief=1
}

some_rows() {
	every=3
	times=4
}

few_rows() {
	every=6
	times=4
}

brief=
every=1
stranger=
beside=
# shellcheck disable=SC2154 # these come from the kernel's command line
for part in $(echo "$machine" | tr + ' '); do
	"$part"
done
[ ! -e /sys/kernel/debug/kmemleak ] || look_for_leaks
dmesg >/results/dmesg
# shellcheck disable=SC2154
stty -F "/dev/$port" raw
tar -cz ./* >"/dev/$port"
reboot -f
