#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The measures of kmod.sh inside a virtual machine, run by tests/kernels/guest.sh: the kernel's command line
# names the $measure. The run NAME writes its output, NAME, and its exit status to /results.

# Real-time threads may take all of the time: what is measured is one then.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
libprofil="env LD_PRELOAD=/lib/profil/libprofil.so.1 PROFIL_BACKEND=bpf"
export PROFIL_HZ=10000

# run NAME COMMAND...
run() {
	name=$1
	shift
	"$@" >"$name" 2>"$name.err"
	echo "$?" >"$name.status"
}

# run_empty NAME COMMAND...: with a tick event that has an empty eBPF program. Children inherit it.
run_empty() {
	empty $$ $((1000000000 / PROFIL_HZ)) &
	until grep -q pause "/proc/$!/wchan" || ! kill -0 $!; do
		usleep 10000
	done
	run "$@"
	kill $!
	wait
}

# run_beside NAME COMMAND...: while another process is on, and asleep.
run_beside() {
	kmod_cost -d stay >/run/stay &
	until grep -q ready /run/stay || ! kill -0 $!; do
		usleep 10000
	done
	run "$@"
	kill $!
	wait
	sleep 1.5
}

# run_all NAME "OPTION..." WORK: on each back end. The module's timers run a second longer.
run_all() {
	# shellcheck disable=SC2086 # lists of words
	{
		run "kmod-$1" kmod_cost -a -d $2 tick "$3"
		sleep 1.5
		run "bpf-$1" $libprofil kmod_cost -a -p $2 tick "$3"
	}
}

tick() {
	for work in loop memory kernel; do
		run "base-$work" kmod_cost -a tick $work
	done
	for PROFIL_HZ in 1000 10000; do
		for work in loop memory; do
			run_empty "empty-$work-$PROFIL_HZ" kmod_cost -a tick $work
			run_all "$work-$PROFIL_HZ" "" $work
		done
	done
	run_all regions "-r 512" loop
	run_all wide -w loop
	run_all elsewhere -e loop
	run_beside kmod-beside kmod_cost -a tick loop
	run_empty empty-kernel kmod_cost -a tick kernel
	run_all kernel "" kernel
	# With the thread that brings the counts to the buffer.
	run base-live kmod_cost tick loop
	# shellcheck disable=SC2086 # a list of words
	run bpf-live $libprofil kmod_cost -p tick loop
	run kmod-live kmod_cost -d tick loop
}

onoff() {
	for threads in 1 10 100 1000; do
		run "onoff-$threads" kmod_cost onoff $threads 20
	done
}

# Ends what was begun before: RCU frees what it holds, and the allocators what they keep.
shrink() {
	sleep 1
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
}

crowd() {
	for on in "" -d; do
		for threads in 1 1001; do
			shrink
			run "memory-$threads$on" kmod_cost $on crowd 1 $threads 0
		done
		shrink
		run "memory-1000$on" kmod_cost $on crowd 1000 1 0
	done
	for processes in 1 1000; do
		turns=$((200000000 / processes))
		shrink
		run "base-$processes" kmod_cost -a crowd $processes 1 $turns
		shrink
		run "kmod-$processes" kmod_cost -a -d crowd $processes 1 $turns
	done
}

# All at once, in turns.
share() {
	for processes in 2 1000; do
		run "kmod-$processes" kmod_cost -d crowd $processes 1 $((500000000 / processes))
	done
}

family() {
	run on kmod_cost -a -d family 100
	run off kmod_cost -a family 100
	rmmod profil
	run unloaded kmod_cost -a family 100
}

# Of the eBPF back end, which is not for processes of others, two threads alone.
switch() {
	for who in threads processes; do
		run "alone-$who" kmod_cost -a switch $who 5000
		for PROFIL_HZ in 100 1000; do
			run "kmod-$who-$PROFIL_HZ" kmod_cost -a -d switch $who 5000
			sleep 1.5
		done
	done
	for PROFIL_HZ in 100 1000; do
		# shellcheck disable=SC2086 # a list of words
		run "bpf-threads-$PROFIL_HZ" $libprofil kmod_cost -a -p switch threads 5000
	done
}

insmod /lib/profil.ko || exit
# shellcheck disable=SC2154
"$measure"
