#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kmod.sh [MEASURE...]: measures the cost of profil.ko, compared with its goals, in virtual machines with
# Debian's kernels: tick, switch, onoff, crowd, share, family; all by default. All but share have one CPU
# whose clock counts instructions, one for each nanosecond: no caches, no noise; they also measure the eBPF
# back end. Fails only if something could not be measured.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/kernels/debian.sh
. "$top/tests/kernels/debian.sh"
# shellcheck source=tests/kernels/machine.sh
. "$top/tests/kernels/machine.sh"

# --- Machines ---

prepare() {
	local more=$work/more

	make_initramfs && build_helper empty && mkdir -p "$more" || return
	install -D "$helpers/empty" "$more/bin/empty" &&
		install "$here/kmod_guest.sh" "$more/bin/bench" || return
	# The kernel unpacks one archive after the other.
	(cd "$more" && find . | cpio --quiet -o -H newc) >>"$work/initramfs"
}

prepare_series() {
	series=$1
	get_kernel "$series" || return
	module=$kernels/$series.module/kmod/profil.ko
	build_module "$headers" "$kernels/$series.module" >"$work/measure.err" 2>&1
}

# of NAME RUN: a number that it printed.
of() { sed -n "s/^$1=//p" "$results/$2"; }

# all_ended: whether each run did what it should; says what one had to say that did not.
all_ended() {
	local run failed=0

	for run in "$results"/*.status; do
		[ "$(cat "$run" 2>/dev/null)" = 0 ] && continue
		echo "${run##*/}: $(cat "$run")" && cat "${run%.status}"{,.err}
		failed=1
	done >"$work/measure.err"
	return "$failed"
}

# in_machines MEASURE QEMU-OPTION...: what the function MEASURE of kmod_guest.sh does, and then
# what show_MEASURE tells of it, in each kernel.
in_machines() {
	local measure=$1
	shift
	for series in 6.1 6.12; do
		prepare_series "$series" || not_measured "$measure, $series" "${why:-profil.ko}" || continue
		longest=600 append="measure=$measure"
		boot bench "$@" >"$work/measure.err" 2>&1 && all_ended ||
			not_measured "$measure, $series" "in the machine" || continue
		row "Linux $series" "" "" ""
		"show_$measure"
	done
}

# shellcheck disable=SC2054 # the comma is of one word
counted_time=(-smp 1 -icount shift=0,sleep=off)

# --- tick: instructions of a tick, from the timer's interrupt to the end of it ---

# per_tick RUN BASE HZ [TIME]: what a tick adds to some work. There is one in each period of all of it.
per_tick() {
	local time

	time=$(of "${4:-work_ns}" "$1")
	calculate "($time - $(of "${4:-work_ns}" "$2")) / ($time * $3 / 1e9)"
}

# judge_tick NAME KIND BASE HZ EMPTY: profil.ko's beside the eBPF program's, and what is of both. A run
# may have one more of the kernel's own ticks than another, some 5000 instructions.
judge_tick() {
	local kmod bpf empty limit

	kmod=$(per_tick "kmod-$2" "$3" "$4")
	bpf=$(per_tick "bpf-$2" "$3" "$4")
	empty=$(per_tick "$5" "$3" "$4")
	limit=$(calculate "$bpf + 5000 / ($(of work_ns "$3") * $4 / 1e9)")
	judge "tick: $1" "$kmod" "$(printf '%.0f beside %.0f; empty %.0f' "$kmod" "$bpf" "$empty")" \
		"$(printf %.0f "$limit")" instr
}

show_tick() {
	local hz kind

	for kind in loop memory; do
		for hz in 1000 10000; do
			judge_tick "$kind, $hz Hz" "$kind-$hz" "base-$kind" "$hz" "empty-$kind-$hz"
		done
	done
	judge_tick "512 regions" regions base-loop 10000 empty-loop-10000
	judge_tick "32-bit cells" wide base-loop 10000 empty-loop-10000
	judge_tick "out of range" elsewhere base-loop 10000 empty-loop-10000
	row "tick: in someone else's process" "$(printf '%.0f instructions' \
		"$(per_tick kmod-beside base-loop 10000)")" "" ""
	judge_tick "in the kernel" kernel base-kernel 10000 empty-kernel
	judge_tick "with libprofil's thread" live base-live 10000 empty-loop-10000
}

measure_tick() { in_machines tick "${counted_time[@]}"; }

# --- switch: two that hand a byte to and fro, which is two switches ---

show_switch() {
	local who hz alone more

	for who in threads processes; do
		alone=$(of turn_ns "alone-$who")
		for hz in 100 1000; do
			more=$(calculate "100 * ($(of turn_ns "kmod-$who-$hz") - $alone) / $alone")
			judge "switch: two $who, $hz Hz" "$more" "$(printf '%.1f %% of %d instructions' \
				"$more" "$alone")" "$((hz == 100 ? 4 : 6))" "%"
		done
	done
	for hz in 100 1000; do
		row "switch: by eBPF, two threads, $hz Hz" "$(calculate "($(of turn_ns \
			"bpf-threads-$hz") / $(of turn_ns alone-threads) - 1) * 100") %" "" ""
	done
}

measure_switch() { in_machines switch "${counted_time[@]}"; }

# --- onoff: SET and OFF ---

# times NAME RUN: makes $work/NAME of what it printed for each.
times() { of "$1_ns" "$2" | awk '{ print $1 / 1000 }' >"$work/$1"; }

show_onoff() {
	local call threads

	for call in set off; do
		for threads in 1 10 100 1000; do
			times "$call" "onoff-$threads"
			judge "$call: $threads threads" "$(median "$work/$call")" \
				"$(summary "$work/$call" 1 us)" 200 us
			row "  first, the memory has no notifier" "$(printf '%.1f us' \
				"$(calculate "$(of "first_${call}_ns" "onoff-$threads") / 1000")")" "" ""
		done
	done
}

measure_onoff() { in_machines onoff "${counted_time[@]}"; }

# --- crowd: memory, and ticks of many processes ---

# taken RUN: the memory that SET took there, in KiB.
taken() { calculate "$(of taken_kib "$1-d") - $(of taken_kib "$1")"; }

show_crowd() {
	local pinned one many

	row "memory of a process with one thread" "$(printf '%.2f KiB' \
		"$(calculate "$(taken memory-1000) / 1000")")" "" ""
	row "memory of each thread more" "$(printf '%.2f KiB' \
		"$(calculate "($(taken memory-1001) - $(taken memory-1)) / 1000")")" "" ""
	pinned=$(calculate "$(of pinned_kib memory-1000-d) + $(of locked_kib memory-1000-d)")
	judge "memory pinned or locked" "$pinned" "$(printf '%.0f KiB of 1000 processes' "$pinned")" \
		0 KiB
	one=$(per_tick kmod-1 base-1 10000 cpu_ns)
	many=$(per_tick kmod-1000 base-1000 10000 cpu_ns)
	row "tick: 1 process" "$(printf '%.0f instructions' "$one")" "" ""
	judge "tick: 1000 processes" "$many" "$(printf '%.0f instructions' "$many")" \
		"$(awk -v one="$one" 'BEGIN { printf "%.0f", one * 1.05 }')" instr
}

measure_crowd() { in_machines crowd "${counted_time[@]}"; }

# --- share: two CPUs that run at once ---

show_share() {
	local processes ticks least most

	for processes in 2 1000; do
		ticks=$(of ticks "kmod-$processes")
		least=$(calculate "$(of cpu_ns "kmod-$processes") / 1e5")
		most=$(calculate "$(of most_ns "kmod-$processes") / 1e5")
		judge "ticks of $processes processes, 2 CPUs" "$(awk -v ticks="$ticks" -v least="$least" \
			-v most="$most" -v parts="$processes" 'BEGIN {
				# A period of the clock begins before the work, or ends behind it.
				least -= parts
				most += parts
				off = ticks < least ? least - ticks : ticks > most ? ticks - most : 0
				print 100 * off / ticks
			}')" "$(printf '%d, due are %.0f to %.0f' "$ticks" "$least" "$most")" 1 "% off"
	done
}

measure_share() { in_machines share -smp 2; }

# --- family: new processes, programs and threads ---

show_family() {
	local what state result

	for what in fork exec thread; do
		result=
		for state in unloaded off on; do
			result+=$(printf '%s%s %.1f' "${result:+, }" "$state" \
				"$(calculate "$(of "${what}_ns" "$state") / 1000")")
		done
		row "$what" "us: $result" "" ""
	done
}

measure_family() { in_machines family "${counted_time[@]}"; }

# --- ---

for tool in qemu-system-x86_64 busybox cpio apt-get; do
	command -v "$tool" >/dev/null && continue
	row "profil.ko" "left out: no $tool here" "" ""
	exit
done
prepare || exit
measures=(tick switch onoff crowd share family)
bench "$@"
