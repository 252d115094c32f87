#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profil.ko on a kernel with debugging options: debug.config, built from the newest sources in Debian's
# archive. The module's tests and the fuzzer must cause no report. README.md describes requirements and
# time. FUZZ_SECONDS is the time of the fuzzer.
# Time limit: 14400 s

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/debian.sh
. "$top/tests/kernels/debian.sh"
# shellcheck source=SCRIPTDIR/machine.sh
. "$top/tests/kernels/machine.sh"

config=$top/tests/kernels/debug.config
directory=$kernels/debug
headers=$directory/kernel # where it is built
seconds=${FUZZ_SECONDS:-300}

# --- The kernel ---

# get_source: sets $source. One that an earlier run has unpacked will do.
get_source() {
	local package

	package=$(newest 'linux-source-[0-9.]+')
	source=$directory/${package:-none}
	why="apt offers no linux-source"
	[ -e "$source/Makefile" ] && return
	[ -n "$package" ] && fetch "$package" || return
	unpack "$package" "$work" && mkdir -p "$directory" &&
		tar -xJf "$work/usr/src/$package.tar.xz" -C "$directory" && rm -r "$work"/*.deb "${work:?}/usr"
}

kernel_make() {
	make -s -C "$source" O="$headers" "$@"
}

# configure: only when debug.config is another, for the kernel's build looks at times.
configure() {
	cmp -s "$config" "$headers/asked" && return
	mkdir -p "$headers" && kernel_make tinyconfig && cat "$config" >>"$headers/.config" &&
		kernel_make olddefconfig && cp "$config" "$headers/asked"
}

# has_all: whether the kernel is as debug.config says; prints what is not.
has_all() {
	! grep -oE 'CONFIG_[A-Z0-9_]+(=.*| is not set)' "$config" |
		sed 's/^\(.*\) is not set$/# &/' | grep -vxFf "$headers/.config"
}

# With the list of what it exports, which `modules` makes, although there is none.
build_kernel() {
	kernel_make -j"$(nproc)" bzImage modules
}

# --- What it has found ---

# looked: succeeds if the checkers were on from the beginning to the end.
looked() {
	grep -q 'KernelAddressSanitizer initialized' "$results/dmesg" &&
		grep -qE 'debug_locks: *1' "$results/lockdep_stats" && [ -e "$results/kmemleak" ]
}

no_leak() {
	! grep . "$results/kmemleak"
}

# none_wrong NAME N: there are N rows or more that hold, and none that is wrong. Where a call takes as
# long as a tick does, some have another number of ticks than was due: these end with 4.
none_wrong() {
	[ "$(grep -c '^0 ' "$results/$1.rows")" -ge "$2" ] &&
		! grep -A 5 '^[1-35-9]\|^[0-9][0-9]' "$results/$1.rows"
}

check_faults() {
	check "$1: what looks for faults was on to the end" looked
	check "$1: the kernel complains of nothing" complains_of_nothing
	check "$1: no memory is left that nobody knows of" no_leak
}

# Of guest.sh's `module` and `module_again`, on a machine whose clock counts instructions.
check_one_cpu() {
	local k="$series, one CPU"

	check "$k: it boots and runs all" ends module+module_again
	[ -s "$results/dmesg" ] || return
	check "$k: libprofil through it, as nobody: every row" none_wrong kmod 90
	check "$k: its own tests: every row" none_wrong module 20
	check "$k: loaded, used and unloaded again and again" ran again
	check_faults "$k"
}

# Of its `module_parallel`.
check_two_cpus() {
	local k="$series, two CPUs"

	check "$k: it boots and runs all" ends module_parallel
	[ -s "$results/dmesg" ] || return
	check "$k: its own tests: every row" none_wrong parallel 20
	check "$k: its own tests where memory runs out: every row" none_wrong scarce 6
	check "$k: the fuzzer, for $seconds seconds" ran fuzz
	check "$k: loaded and unloaded while programs use it" ran races
	check "$k: it is unloaded" ran rmmod
	check_faults "$k"
}

run_module() {
	power_on module+module_again -smp 1 -m 2048 -icount shift=3,sleep=off
	check_one_cpu
}

run_module_parallel() {
	power_on module_parallel -smp 2 -m 2048
	check_two_cpus
}

for tool in qemu-system-x86_64 busybox cpio apt-get flex bison bc pahole; do
	command -v "$tool" >/dev/null || missing="${missing:-} $tool"
done
if [ -n "${missing:-}" ]; then
	skip "a kernel that looks for faults" "not found:$missing"
	finish
fi
if ! get_source; then
	skip "a kernel that looks for faults" "$why"
	finish
fi
check "the kernel is configured" configure
check "the kernel has all that was asked for" has_all
check "the kernel is built" build_kernel
check "profil.ko is built" build_module "$headers" "$kernels/debug.module"
check "the machine's files" make_initramfs

series="debug $(basename "$source" | tr -dc '0-9.')"
kernel=$headers/arch/x86/boot/bzImage
module=$kernels/debug.module/kmod/profil.ko
longest=$((seconds + 2400)) # on a quiet machine each takes a third of that
# A call takes longer than a tick there: rows that judge what calls cost, or how many ticks there were meanwhile, say nothing
# of faults, and one that does so in a signal handler takes a quarter of an hour.
append="log_buf_len=4M row_seconds=900 times=4 fuzz_seconds=$seconds \
	also_left_out=.cost:|.covered:|.rate:|a.session:.fork|interrupts.malloc"

[ $# -gt 0 ] || set -- module module_parallel
for machine; do
	"run_$machine"
done
finish
