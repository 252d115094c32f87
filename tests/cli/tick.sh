#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# -e tick: the scheduler's own tick, at the kernel's rate. It comes for all tasks: the eBPF program decides
# which ones count.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# The period in nanoseconds, and the rate. 6 is CLOCK_MONOTONIC_COARSE.
period=$(python3 -c 'import time; print(round(time.clock_getres(6) * 1e9))')
hz=$(((1000000000 + period / 2) / period))

# --- Processes: threads, children, two recordings at once, and no others ---

begin_recorded pid "-e tick" "$progs/shares" 2 1.5 wait stay
shares=$pid
record_begin again -p "$shares" -e tick -F "$hz" -v --json -o "$work/again.pb.gz"
recorder_of[again]=$recorder
begin_recorded kernel "-e tick --kernel" "$progs/halves" 3 wait
begin halves "$progs/halves" 3 wait
record_begin user -p "$pid" -e tick --user --json
recorder_of[user]=$recorder
# programs PID: the numbers of the BPF programs that it holds.
programs() {
	sed -n 's/^prog_id:[[:blank:]]*//p' "/proc/$1/fdinfo/"*
}
loaded=$(for name in pid again kernel user; do programs "${recorder_of[$name]}"; done)
for name in pid kernel halves; do
	send_line "$name" go
done
recordings_end pid again kernel user

thirds="ran('burn_sixty', 'burn_thirty', 'burn_ten')"
check "two threads have ticks in all their functions, and nobody else's ticks are there" recorded "whole and $thirds and \
	j['excluded'] == 0 and not samples('burn_user') and not samples('read_zeros')" "$work/pid.json"
check "their ticks make up their CPU time" recorded "takes($(printed_cpu pid))" "$work/pid.json"
check "the clock and its period are reported" recorded \
	"j['event'] == 'tick' and j['period_ns'] == $period" "$work/pid.json"
check "a second recording at the same time, with -F as it is: the same" recorded \
	"whole and $thirds" "$work/again.json"
check "-v: the clock and its period" grep -qF "clock tick, period $period ns" "$work/again.err"
check "the summary: there is no interrupt more" \
	grep -qE '^profiltool: cost: .* BPF per tick, of an interrupt that comes anyway, [0-9.]+ %' \
	"$work/pid.err"
check "--kernel: at the kernel's pcs, user mode is left out" recorded "whole and \
	j['kernel'] == j['counted'] > 0 and j['excluded'] > 0 and not samples('burn_user') and \
	all('kernel' in f['image'] for f in j['functions'])" "$work/kernel.json"
check "--user excludes the kernel" recorded "whole and j['kernel'] == 0 and \
	j['excluded'] > 0 and ran('burn_user')" "$work/user.json"

check "while they record, programs are loaded" test -n "$loaded"
none_loaded() {
	local id

	for id in $loaded; do
		! bpftool prog show id "$id" || return
	done
}
check "afterwards none of them is" wait_for none_loaded

begin_recorded fork "-e tick" "$progs/family" fork 0.6
begin_recorded alone "-e tick --no-inherit" "$progs/family" fork 0.6
for name in fork alone; do
	send_line "$name" go
done
recordings_end fork alone
check "a thread and a child that start during the recording are counted" recorded "whole and \
	ran('burn_parent', 'burn_thread', 'burn_child')" "$work/fork.json"
check "--no-inherit: the thread counts, the child does not" recorded "whole and \
	samples('burn_child') == 0 and ran('burn_parent', 'burn_thread')" "$work/alone.json"

# A period begins anew with each child where the clock is the task's: 3 ms are hardly ever ticked. How
# many there are cannot be predicted: where the machine is busy, children begin right behind a tick.
begin_recorded swarm "-e tick" "$progs/family" swarm 0.8 3
send_line swarm go
recordings_end swarm
check "children shorter than a period: they are ticked nevertheless" recorded \
	"whole and ran('burn_child')" "$work/swarm.json"

# --- Commands ---

echo go | "$profiltool" record -e tick --json -o "$work/command.pb.gz" -- \
	sh -c "exec $progs/family exec 0.4 $progs/shares 1 0.6 >$work/command.out" \
	>"$work/command.json" 2>"$work/command.err"
check "a command: succeeds" test $? -eq 0
check "a command counts from its exec on, and so does what it becomes" recorded "whole and \
	ran('burn_before') and \
	images('burn_sixty') == {'shares'} and \
	not any(f['image'].endswith('profiltool') for f in j['functions'])" "$work/command.json"
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	check "in a pid namespace of its own: succeeds" exits 0 unshare --pid --fork --mount-proc \
		"$profiltool" record -e tick --json -- sh -c "$progs/shares 1 0.4 >/dev/null"
	check "it knows its own" recorded "whole and ran('burn_*')" "$work/out"
else
	skip "in a pid namespace of its own" "unshare does not work here"
fi

# --- One thread, the machine, call stacks, live ---

begin shares "$progs/shares" 2
shares=$pid
for task in "/proc/$shares/task/"*; do
	grep -q '^State:.*Z' "$task/status" || tid=${task##*/}
done
check "-t: succeeds" exits 0 until_used "$tid" 600 "$profiltool" -t "$tid" -e tick --json -o "$work/thread.pb.gz"
check "-t: this thread alone" test "$("$profiltool" dump "$work/thread.pb.gz" |
	sed -n 's/.* \[\([0-9]*\/[0-9]*\) .*/\1/p' | sort -u)" = "$shares/$tid"
check "-t: no tick too many" recorded "whole and at_most(j['duration_s'] * 1e9)" "$work/out"
kill -CONT "$shares"
check "-a: succeeds" exits 0 "$profiltool" -a -e tick -d 1.5 --json -o "$work/all.pb.gz"
check "-a: the ticks are those of which the kernel makes its own account" recorded \
	"whole and takes($(dumped cpu_ns "$work/all.pb.gz"))" "$work/out"
# Where an idle CPU is; the scheduler has other functions with "idle" in their names.
idle="do_idle poll_idle cpu_idle_poll default_idle default_idle_call intel_idle mwait_idle acpi_idle_do_entry \
	cpuidle_enter_state pv_native_safe_halt native_safe_halt cpu_do_idle"
check "-a: who was not named is there, no idle time, no tick too many" recorded "whole and \
	'$progs/shares' in [f['image'] for f in rows('burn_sixty')] and \
	not {f['name'] for f in j['functions']} & set('$idle'.split()) and \
	at_most(j['duration_s'] * 1e9 * $(getconf _NPROCESSORS_ONLN))" "$work/out"
check "top: succeeds" exits 0 "$profiltool" top -p "$shares" -e tick -d 2 --tables 1 --json
check "top: it has its functions" json "j['event'] == 'tick' and j['samples'] > 0 and \
	any(f['name'] == 'burn_sixty' for f in j['rows'])" "$work/out"
stop "$shares"

begin chains "$progs/chains" kernel
check "-g: succeeds" exits 0 until_used "$pid" 600 "$profiltool" -g -p "$pid" -e tick --json
check "-g records stacks of both sides, without the tick's own interrupt" recorded "whole and j['counted'] > 20 and \
	all(map(mostly, ('main', 'kernel', 'ask', '__x64_sys_getrandom'))) and \
	not any('hrtimer_interrupt' in f['name'] or 'apic_timer' in f['name'] for f in j['functions'])" \
	"$work/out"
stop "$pid"

# --- What it cannot do ---

check "another rate is refused" exits 2 "$profiltool" record -e tick -F $((hz + 1)) -- true
check "another rate is refused: with the one that there is" says "has $hz Hz, not $((hz + 1))"
check "another rate is refused: what would do" says "use -e cpu-clock"
check "-a names the clock of CPUs" exits 2 "$profiltool" -a -e tick -F $((hz + 1)) -d 0.1
check "as it is called" says "use -e cpu-clock"
if unshare -m true 2>/dev/null; then
	check "a kernel without BTF" exits 6 unshare -m sh -c \
		"mount -t tmpfs none /sys/kernel/btf && exec '$profiltool' record -e tick -- true"
	check "a kernel without BTF: says what it lacks" says "cannot find the scheduler's tick"
else
	skip "a kernel without BTF" "unshare is not permitted"
fi
check "a clock that there is not" exits 2 "$profiltool" -a -e ticks
check "the error lists the valid values" says "cycles, tick, "
check "and the one that was given" says ", not \"ticks\""

finish
