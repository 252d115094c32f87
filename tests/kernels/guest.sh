#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# All of user space in the virtual machines that kernels.sh starts: their /init, run by busybox.
# The run NAME leaves NAME.json, NAME.err, NAME.status and what its target printed, NAME.out, in
# /results, which goes as an archive to the second serial line; the first shows how far it came.
# $machine comes from the kernel's command line.

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
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

# attach NAME "OPTION..." COMMAND...: records a target by its PID from before it works.
attach() {
	name=$1
	options=$2
	shift 2
	begin "$name" "$@"
	record "$name" "-p $target $options"
}

# One CPU, whose time is counted in instructions: nothing that the host does is seen in here.
exact() {
	attach pid "-o pid.pb.gz" shares 2 0.7 wait
	run pid-dump profiltool dump --json pid.pb.gz
	attach fork "-o fork.prof" family fork 0.4
	run fork-dump profiltool dump --json fork.prof
	echo go | run command profiltool record -F 997 --json -o command.pb.gz -- \
		sh -c "exec family exec 0.3 shares 2 0.3 >command.out"
	begin all shares 2 0 wait
	record all "-a -d 0.7"
	kill -KILL "$target"
	begin thread shares 2 0 wait
	for thread in "/proc/$target/task"/*; do
		:
	done
	record thread "-t ${thread##*/} -d 0.7 -o thread.pb.gz"
	kill -KILL "$target"
	begin stacks chains kernel
	run stacks profiltool record -g -p "$target" -d 0.4 -F 997 --json
	kill -KILL "$target"
}

# Two CPUs at once.
parallel() {
	attach pid "" shares 2 0.5 wait stay
	attach no-inherit --no-inherit family fork 0.3
	attach kernel --kernel halves 0.5 wait
	begin all shares 3 0 wait
	record all "-a -d 0.5"
	kill -KILL "$target"
	begin churn churn 4 30
	run threads profiltool -p "$target" -d 0.5 -F 997 --json
	kill -KILL "$target"
	begin tree chains tree
	run tree profiltool record -g -p "$target" -d 1 -F 997 --json
	kill -KILL "$target"
	run cycles profiltool record -e cycles -- true
}

# rows BACKEND PROGRAM...: what each of their rows says and how it ends (tests/progs/profil_row.h).
rows() {
	backend=$1
	shift
	for program; do
		# Time passes otherwise in here: a timer of the program, what calls cost.
		"$program" list | grep -vE 'ITIMER_PROF|many calls' | while read -r _ row; do
			LD_PRELOAD=/lib/profil/libprofil.so.1 PROFIL_BACKEND="$backend" \
				PROFIL_HZ=1000 PROFIL_SOCKET=/run/profild \
				timeout 20 "$program" "$row" >/run/row 2>&1 </dev/null
			echo "$? $program $row"
			sed 's/^/  /' /run/row
		done
	done >"$backend.rows"
	ended "$backend.rows" "$(grep -c '^[1-9]' "$backend.rows")"
}

# profil(2): all that is judged where the kernel counts and that no clock decides.
legacy() {
	rows bpf profil_calls profil_buffers profil_regions profil_family profil_signals
	# Debian's kernels begin with 3, and then want CAP_SYS_ADMIN for every perf event.
	run closed profild --socket /run/profild
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	profild --socket /run/profild 2>profild.err &
	until [ -S /run/profild ] || ! kill -0 $!; do
		usleep 10000
	done
	rows daemon profil_calls profil_family
	kill $!
}

# shellcheck disable=SC2154
"$machine"
dmesg >/results/dmesg
stty -F /dev/ttyS1 raw
tar -cz ./* >/dev/ttyS1
poweroff -f
