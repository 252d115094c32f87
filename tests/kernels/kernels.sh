#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Debian's kernels, and one of Ubuntu's, booted in qemu without KVM: each loads our eBPF programs, and the account is right.
# guest.sh runs inside; this script checks its results.
# Time limit: 3600 s

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# shellcheck source=SCRIPTDIR/debian.sh
. "$top/tests/kernels/debian.sh"
# shellcheck source=SCRIPTDIR/machine.sh
. "$top/tests/kernels/machine.sh"
# shellcheck source=SCRIPTDIR/arm64.sh
. "$top/tests/kernels/arm64.sh"

# --- What was recorded in it ---

# found RUN EXPRESSION: it ran well, and its account is whole and as the expression says.
found() {
	ran "$1" && recorded "whole and ($2)" "$results/$1.json"
}

# closes: the account of wall time adds up, and there are waits.
closes() {
	cat "$results/wall.err"
	ran wall && json "(lambda w: w['wall_ns'] == w['on_cpu_ns'] + w['runnable_ns'] + w['blocked_ns'] + w['idle_ns'] + w['unknown_ns'] and
		w['idle_by']['kernel'] > 0 and sum(w['blocked_by'].values()) >= w['blocked_ns'])(j['wall'])" \
		"$results/wall.json"
}

closes_without_reasons() {
	complains wall 0 "without reasons and stacks of waits, which need Linux 5.18" &&
		json "(lambda w: w['wall_ns'] == w['on_cpu_ns'] + w['runnable_ns'] + w['blocked_ns'] + w['idle_ns'] + w['unknown_ns'] and
			w['threads'] > 10 and w['blocked_ns'] > 0 and not any(w.get('blocked_by', {}).values()))(j['wall'])" \
			"$results/wall.json"
}

# near A B PERCENT: an expression: A is within so much of B. For a clock that is exact, so that there is
# no chance about it.
near() {
	echo "abs(($1) - ($2)) <= ($2) * $3 / 100"
}

# has NAME PERCENT: an expression: a function has this share of all ticks, to 8 points.
has() {
	echo "abs(100 * samples('$1') / j['counted'] - $2) < 8"
}

# shares: an expression: all ticks, in the three functions.
shares() {
	echo "$(has burn_sixty 60) and $(has burn_thirty 30) and $(has burn_ten 10)"
}

# The same where much else is counted.
rough_shares="samples('burn_*') > 0.5 * j['counted'] > 0 and \
	ranks('burn_sixty', 'burn_thirty', 'burn_ten')"

# no_more NS FACTOR: an expression: no more ticks than that CPU time makes, to a tenth.
no_more() {
	echo "ticked <= 1.1 * $1 * $2 + 3 * j['period_ns']"
}

# cpu_ns RUN: the kernel's account, as the profile has it; 0 without one.
cpu_ns() {
	local ns

	[ -e "$results/$1.pb.gz" ] && ns=$(dumped cpu_ns "$results/$1.pb.gz")
	echo "${ns:-0}"
}

# told_ns RUN: the target's own account, 0 without one.
told_ns() {
	local ns

	[ -e "$results/$1.out" ] && ns=$(sed -n 's/^cpu_ns //p' "$results/$1.out")
	echo "${ns:-0}"
}

# counted RUN: how many ticks it counted.
counted() {
	sed -n 's/^ *"counted": \([0-9]*\),$/\1/p' "$results/$1.json"
}

# read_back RUN FORMAT PROGRAM: what it dumped is what it had counted.
read_back() {
	ran "$1-dump" && json "j['format'] == '$2' and j['bits'] == 64 and j['samples'] == \
		sum(s['count'] for s in j['stacks']) == $(counted "$1") and \
		any(m['path'] == '/bin/$3' for m in j['mappings'])" "$results/$1-dump.json"
}

# One CPU, and a clock that counts instructions, 8 ns for each: every tick comes, however busy the
# host is. An idle CPU's time passes at once.
check_basics() {
	local k="$series, exact clock"

	check "$k: by PID: shares" found pid "$(shares)"
	check "$k: by PID: there is no PMU, auto takes the clock of the CPU" \
		found pid "j['event'] == 'cpu-clock'"
	check "$k: by PID: the ticks make up the kernel's account of its CPU time" \
		found pid "$(near ticked "$(cpu_ns pid)" 1)"
	check "$k: by PID: and what the threads burn" found pid "$(near ticked 1.4e9 4)"
	check "$k: a pprof file is read back" read_back pid pprof shares
	check "$k: call stacks: the kernel's frames above the user's" found stacks "\
		[r['total'] for n in ('main', 'kernel', 'ask', '${system_call}getrandom') for r in rows(n) \
		if r['total'] > 0.95 * j['counted'] > 300][3:]"
	check "$k: call stacks: to the program's start, by call frame information" found stacks "\
		j['stacks']['complete'] == j['stacks']['user'] > 300"
	# No shares: where instructions are the clock, a loop goes in step with a tick at 250 Hz.
	check "$k: the scheduler's tick: CPU time" found tick "j['event'] == 'tick' and \
		samples('burn_*') > 0.9 * j['counted'] and \
		$(near ticked "$(cpu_ns tick)" 4) and $(near ticked 1.4e9 6)"
	if [ -n "${has_reasons:-}" ]; then
		check "$k: the account of wall time closes, and has reasons" closes
	else
		check "$k: the account of wall time closes; that it has no reasons is said" closes_without_reasons
	fi
	check "$k: what another perf session records beside a recording of the machine is its own" ran neighbour
	check "$k: the scheduler's tick: call stacks without its own interrupt" found tick-stacks "\
		[r['total'] for n in ('main', 'kernel', 'ask', '${system_call}getrandom') for r in rows(n) \
		if r['total'] > 0.95 * j['counted'] > 80][3:] and \
		not any('hrtimer_interrupt' in f['name'] for f in j['functions']) and \
		j['stacks']['complete'] == j['stacks']['user']"
}

check_exact() {
	local k="$series, exact clock"

	check "$k: a child and a thread to come: shares and CPU time" found fork "\
		$(has burn_parent 33.3) and $(has burn_thread 33.3) and $(has burn_child 33.3) and $(near ticked 1.2e9 5)"
	check "$k: a gperftools file is read back" read_back fork gperftools family
	check "$k: a command that becomes another program: shares and CPU time" found command "\
		abs(samples('burn_before') * j['period_ns'] - 3e8) < 1e7 and \
		samples('burn_sixty') > samples('burn_thirty') > 0 and \
		abs(samples('burn_*') * j['period_ns'] - 9e8) < 3e7 and \
		images('burn_before') == {'family'} and images('burn_sixty') == {'shares'} and \
		$(near ticked "$(cpu_ns command)" 2)"
	check "$k: the whole machine: shares and clock" found all "j['event'] == 'cpu-clock' and \
		$rough_shares and $(near ticked "1e9 * j['duration_s']" 6)"
}

check_groups() {
	local k="$series, exact clock"

	check "$k: a group of cgroup v1" found old-group "\
		$rough_shares and j['counted'] > 50 and not samples('burn_before')"
	check "$k: two threads in a group, one outside of it" found group "\
		$(shares) and not samples('burn_before') and ticked / 1e9 / j['duration_s'] < 0.73 and \
		$(near ticked "$(cpu_ns group)" 4)"
	check "$k: one thread of two has half the time" found thread \
		"$(shares) and 0.4 < ticked / 1e9 / j['duration_s'] < 0.6 and \
		$(near ticked "$(cpu_ns thread)" 4)"
	check "$k: the scheduler's tick: a command" found tick-command "\
		$(near "samples('burn_before') * j['period_ns']" 3e8 10) and \
		$(near "(samples('burn_*') - samples('burn_before')) * j['period_ns']" 6e8 10)"
}

# Two CPUs that run at once, in the host's time. Ticks are late or several become one when the host is
# busy, so there cannot be more than the CPU time makes, but any number fewer.
check_parallel() {
	local k="$series, two CPUs"

	check "$k: two threads: shares, no tick twice" found pid \
		"$rough_shares and $(no_more "$(told_ns pid)" 1)"
	check "$k: --no-inherit: a thread to come, but no child" found no-inherit "\
		samples('burn_parent') > 0 and samples('burn_thread') > 0 and \
		samples('burn_child') == 0"
	check "$k: --kernel: functions of the kernel" found kernel "j['excluded'] > 0 and \
		j['kernel'] == j['counted'] > 0 and samples('burn_user') == 0 and \
		images('read_zero*') | images('clear_user*') | images('__arch_clear_user*') == {'[kernel.kallsyms]'} and \
		samples('read_zero*') + samples('clear_user*') + samples('rep_stos*') + \
			samples('__arch_clear_user*') > .4 * j['counted']"
	check "$k: the scheduler's tick: a thread and a child to come" found tick "\
		samples('burn_parent') > 0 and samples('burn_thread') > 0 and \
		samples('burn_child') > 0 and $(no_more "$(told_ns tick)" 1.4)"
	check "$k: the scheduler's tick, --kernel: functions of the kernel" found tick-kernel "\
		j['excluded'] > 0 and j['kernel'] == j['counted'] > 0 and \
		samples('burn_user') == 0 and \
		all('kernel' in f['image'] for f in j['functions'])"
	check "$k: the whole machine: both CPUs, no tick twice" found all \
		"$rough_shares and $(no_more 2e9 "j['duration_s']")"
	check "$k: threads that come and go" found threads "j['ticks'] > 0"
	check "$k: cycles are refused with the reason" complains cycles 6 \
		"this machine has no performance counters"
}

check_tree() {
	check "$series, two CPUs: call stacks" found tree "j['stacks']['method'] == 'cfi' and \
		rows('walk')[0]['total'] > 0.9 * j['counted'] > 0 and not sum(j['lost'].values())"
	check "$series, two CPUs: the account of wall time closes, and has reasons" closes
}

check_hotplug() {
	local k="$series, two CPUs"

	check "$k: a CPU goes: there is one" test "$(cat "$results/hotplug.cpus")" -eq 1
	check "$k: it comes back: what runs there is ticked" found hotplug "samples('burn_*') > 0"
	check "$k: it comes back: for a client of profild, too" \
		json "j['samples'] > 0" "$results/hotplug-daemon.json"
}

# Frames of arm64: call frame information finds their callers, as far as the program's start.
check_unwinding() {
	local k="$series" program kind

	for program in chains frameless chains-signed; do
		for kind in set thread last; do
			check "$k: call stacks: $program $kind: to the program's start" found "$program-$kind" "\
				j['stacks']['complete'] == j['stacks']['user'] > 150 and \
				rows('inner')[0]['total'] > 0.99 * j['counted']"
		done
	done
	check "$k: call stacks: signal handlers, and all other kinds of frames" found frames "\
		j['stacks']['complete'] + j['stacks']['truncated'] > 0.98 * j['stacks']['user'] > 500 and \
		rows('burn')"
}

# A machine with performance counters.
check_cycles() {
	check "$series: cycles are counted" found cycles "j['event'] == 'cycles' and samples('burn_*') > 0"
}

# A user's own processes, by a service of root: whose a process is, the kernel's structures say.
check_owned() {
	local k="$series: a user's own processes"

	check "$k: by PID, with waits: shares" found owned "$(shares) and j['wall']['on_cpu_ns'] > 0"
	check "$k: a command" found owned-command "samples('burn_*') > 100"
	check "$k: root's is refused" complains owned-refused 5 "process 1 is closed to user 65534"
}

check_before_5_17() {
	check "$series: a control group, and none beside it" found group "ran('burn_sixty') and not samples('burn_before')"
	check "$series: --victim is refused with the reason" complains victim 6 "requires Linux 5.17, where BPF programs have loops"
}

# What of the machine makes it one that does less: rows_hold.
check_brief() {
	brief=1
}

# Some of those that are counted are left out.
check_some_rows() {
	every=4
}

check_few_rows() {
	every=8
}

check_legacy() {
	local k="$series, profil(2)"

	check "$k: in process: every row" rows_hold bpf 70
	check "$k: where Debian's kernel refuses events: profild serves by the scheduler's tick" \
		grep -q "the scheduler's tick is the clock" "$results/closed.err"
	check "$k: and a client has ticks" json "j['samples'] > 0" "$results/closed-dump.json"
	check "$k: through profild: every row" rows_hold daemon 25
}

check_bits32() {
	local k="$series, 32-bit programs"

	check "$k: by PID: shares" found bits32 "$(shares)"
	check "$k: by PID: reported as of 32 bits" json "j['bits'] == 32" "$results/bits32-dump.json"
	check "$k: by PID: that stacks are walked by frame pointers is said" json \
		"sum(e['count'] for e in j['stacks']['ends'] if e['cause'] == '32_bit') == j['stacks']['user'] > 500" \
		"$results/bits32.json"
	check "$k: profil(2) through profild: every row" rows_hold bits32-calls 20
}

# has_ticks RUN REGEX: what profil_backends printed of so many.
has_ticks() {
	cat "$results/$1.json"
	grep -q "^0 0 kmod $2" "$results/$1.json"
}

check_module_isolated() {
	local k="$series, an isolated CPU"

	check "$k: another CPU has ticks" has_ticks other "[1-9]"
	check "$k: it has none" has_ticks isolated "0 "
	check "$k: with isolated_cpus it has" has_ticks isolated-on "[1-9]"
	check "$k: and none again without" has_ticks isolated-off "0 "
}

for tool in qemu-system-x86_64 busybox cpio apt-get; do
	command -v "$tool" >/dev/null || missing="${missing:-} $tool"
done
if [ -n "${missing:-}" ]; then
	skip "Debian's kernels" "not found:$missing"
	finish
fi

# turn_on SERIES: sets what is of this kernel.
turn_on() {
	series=$1
	kernel=${kernel_of[$1]}
	module=${module_of[$1]}
}

# check_machine NAME MACHINE: what its parts are to have done.
check_machine() {
	local part k="$series, $1"

	check "$k: it boots and runs all" ends "$2"
	[ -s "$results/dmesg" ] || return
	brief=
	every=1
	for part in ${2//+/ }; do
		"check_$part"
	done
	check "$k: the kernel complains of nothing" complains_of_nothing
}

declare -A kernel_of=() module_of=()

# add_series SERIES FLAVOUR NAME [MAKE-OPTION...]: a kernel, and profil.ko for it, built with these options.
add_series() {
	local name=$3

	if ! get_kernel "$1" "$2"; then
		skip "Linux $name" "$why"
		return
	fi
	shift 3
	all+=("$name")
	kernel_of[$name]=$kernel
	module_of[$name]=$kernels/$name.module/kmod/profil.ko
	check "$name: profil.ko is built, without a warning" \
		build_without_warning "$headers" "$kernels/$name.module" "$@"
}

# `make test` has one row in eight on the oldest kernel, which has least of what we use. `make test-kernels` has all on
# all, and arm64: two emulated CPUs trip over code that the kernel patches when profil.ko is loaded, in one run of three.
parts_of_one_cpu() {
	if [ -n "${PROFIL_TEST_KERNELS:-}" ]; then
		echo "${more_parts}basics+exact+groups+owned+module$with_gcl+module_again+legacy$with_32_bit"
	elif [ "$series" = "${all[0]}" ]; then
		echo "few_rows+basics+exact+owned+module$with_gcl+legacy"
	fi
}

parts_of_two_cpus() {
	if [ -n "${PROFIL_TEST_KERNELS:-}" ]; then
		echo "${more_parts:+brief+}parallel+tree+hotplug+module_parallel"
	fi
}

# run_all: boots each kernel of all.
run_all() {
	local parts

	# One CPU whose time is counted in instructions does not mind another machine beside it; two at
	# once do.
	for series in "${all[@]}"; do
		turn_on "$series"
		parts=$(parts_of_one_cpu)
		[ -z "$parts" ] || power_on "$parts" -smp 1 -icount shift=3,sleep=off
	done
	for series in "${all[@]}"; do
		parts=$(parts_of_one_cpu)
		[ -z "$parts" ] || check_machine "one CPU" "$parts"
	done
	for series in "${all[@]}"; do
		parts=$(parts_of_two_cpus)
		[ -n "$parts" ] || continue
		turn_on "$series"
		power_on "$parts" -smp 2
		check_machine "two CPUs" "$parts"
		[ -n "${PROFIL_TEST_KERNELS:-}" ] || continue
		append="isolcpus=1 $append" power_on module_isolated -smp 2
		check_machine "two CPUs, one of them isolated" module_isolated
	done
}

# run_x86, run_arm64: on this architecture.
run_x86() {
	local sparse=(C=2)

	all=()
	more_parts=
	with_32_bit=
	with_gcl=+module_gcl
	if ! command -v sparse >/dev/null; then
		skip "sparse" "it is not installed"
		sparse=()
	fi
	if ! [ -e "$build/lib32/libprofil.a" ]; then
		skip "32-bit programs" "make lib32 has not been run"
	else
		check "32-bit programs" make_32_bit_programs
		[ ! -e "$root/bin/profil_calls-32" ] || with_32_bit=+bits32
	fi
	check "the machine's files" make_initramfs
	[ -s "$initramfs" ] || return
	add_series 6.1 amd64 6.1 "${sparse[@]}"
	add_series 6.12 amd64 6.12 "${sparse[@]}"
	run_all
}

# run_archive_kernel NAME ARCHIVE SUITE PACKAGE: one that this Debian has not; without profil.ko.
run_archive_kernel() {
	if ! command -v curl >/dev/null; then
		skip "Linux $1" "not found: curl"
		return
	fi
	[ -s "$initramfs" ] || check "the machine's files" make_initramfs
	[ -s "$initramfs" ] || return
	if ! get_archive_kernel "$@"; then
		skip "Linux $1" "$why"
		return
	fi
	series=$1
}

# The oldest that is supported: what needs less than 6.1.
run_oldest() {
	run_archive_kernel 5.15 "${PROFIL_TEST_UBUNTU:-http://archive.ubuntu.com/ubuntu}" jammy-updates \
		'linux-image-unsigned-5\\.15\\.0-[0-9]+-generic' || return
	has_reasons=
	append="no_timer_check $append" power_on basics+before_5_17 -smp 1 -icount shift=3,sleep=off
	check_machine "one CPU" basics+before_5_17
}

# Debian's newest, without and with PREEMPT_RT.
run_newest() {
	local flavour

	for flavour in '' -rt; do
		run_archive_kernel "newest$flavour" "${PROFIL_TEST_DEBIAN:-http://deb.debian.org/debian}" sid \
			"linux-binary-[0-9.]+[+]deb[0-9]+$flavour-amd64" || continue
		power_on basics+exact+groups+owned -smp 1 -icount shift=3,sleep=off
		check_machine "one CPU" basics+exact+groups+owned
		power_on parallel+tree+hotplug -smp 2
		check_machine "two CPUs" parallel+tree+hotplug
	done
}

# 6.1 has pages of 4 KiB, 6.12 of 16 KiB.
run_arm64() {
	local options=(CROSS_COMPILE=aarch64-linux-gnu- CC="$cross_gcc")

	all=()
	with_32_bit=
	with_gcl= # Debian's of arm64 is not in the machine
	more_parts=few_rows+unwinding+ # the machine takes four times as long as one of x86
	if ! command -v qemu-system-aarch64 >/dev/null; then
		skip "arm64" "not found: qemu-system-aarch64"
		return
	fi
	if ! get_sysroot; then
		skip "arm64" "$why"
		return
	fi
	use_arm64
	check "arm64: everything is built by a cross compiler" cross_make all programs
	check "arm64: the machine's files" make_initramfs
	[ -s "$initramfs" ] || return
	for_arm64 add_series 6.1 arm64 6.1-arm64 "${options[@]}"
	for_arm64 add_series 6.12 arm64-16k 6.12-arm64-16k "${options[@]}"
	run_all
	turn_on "${all[0]}"
	power_on cycles -cpu "$arm64_cpu,pmu=on"
	check_machine "performance counters" cycles
}

# PROFIL_TEST_KERNELS: x86, arm64, 5.15 or newest: these alone; all: each, in full. Without it x86, in part.
has_reasons=1
chosen=${PROFIL_TEST_KERNELS:-}
if [[ $chosen != @(|x86|arm64|5.15|newest|all) ]]; then
	echo "PROFIL_TEST_KERNELS takes x86, arm64, 5.15, newest or all, not \"$chosen\"" >&2
	exit 2
fi
[[ $chosen != @(|x86|all) ]] || run_x86
[[ $chosen != @(arm64|all) ]] || run_arm64
[[ $chosen != @(5.15|all) ]] || run_oldest
[[ $chosen != @(newest|all) ]] || run_newest
finish
