#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# results.sh [FILE]: runs the benchmarks and writes what they print to FILE (user/doc/RESULTS.md), in the order of what
# people ask. BENCHES="peers bench" runs only these and leaves the rest of FILE as it is; PROFIL_BENCH_ROUNDS and
# PROFIL_BENCH_SECONDS make them shorter. Needs root and a quiet machine.

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

file=${1:-$top/user/doc/RESULTS.md}
chmod 711 "$work" # the benchmarks make their directories in it, and run some programs without privileges
all="peers linked bench unwind legacy clock kmod continuous archive formats intervals flame top names delay changes context"
read -ra benches <<<"${BENCHES:-$all}"

# title NAME: what a benchmark is about, a text for a heading.
declare -A title=(
	[peers]="Work that people run, under profilers"
	[linked]="Beside profilers that a program is linked with, or run by"
	[bench]="The program on the tick, start and end, CPU time beside perf's"
	[unwind]="Call stacks by call frame information"
	[legacy]="profil(2): cost of its back ends"
	[clock]="Clocks, 10,000 threads, profild with 1,000 clients"
	[kmod]="The kernel module"
	[continuous]="profild --continuous: its own CPU time, memory and files"
	[archive]="The archive of a machine that compiles: a day on disk, a week to be asked"
	[formats]="Files: reading and writing"
	[intervals]="Significance: how often an interval holds the truth"
	[flame]="Flame graphs"
	[top]="top"
	[names]="Names of functions and lines"
	[delay]="Delay beside the kernel's run_delay"
	[changes]="changes: what it finds, and what it does not"
	[context]="Labels of what PostgreSQL works for: cost, shares, waits, archive"
)

version() { # NAME COMMAND...: a row, if the command is here
	local text

	text=$("${@:2}" 2>/dev/null | head -n 1) && [ -n "$text" ] && echo "| $1 | ${text//|//} |"
}

# where: the machine, its kernel, and what was measured.
where() {
	local commit

	commit=$(git -C "$top" -c safe.directory='*' describe --always --exclude '*' --abbrev=12 --dirty=" with changes" 2>/dev/null)
	echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs$(
		systemd-detect-virt -q 2>/dev/null || grep -q '^flags.* hypervisor' /proc/cpuinfo && echo ", virtual"), $(
		awk '/^MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo), $(uname -sr), ${commit:+commit }${commit:-no commit}"
}

versions() {
	if [ "${BENCHES:-}" ] && [ -e "$file" ]; then
		sed -n '/^## /q; /^|/p' "$file"
		return
	fi
	echo "| | |"
	echo "|---|---|"
	version System sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release
	version profil "$profiltool" --version
	version perf perf --version
	version bpftrace bpftrace --version
	for package in bpfcc-tools libbpf-tools libgoogle-perftools4 valgrind postgresql redis-server nginx python3 default-jre-headless \
		gcc; do
		# shellcheck disable=SC2016 # dpkg-query expands it
		version "$package" dpkg-query -W -f '${Version}' "$package"
	done
}

failed=0
for name in "${benches[@]}"; do
	printf '%s\n' "$name" >&2
	if [ -x "$here/$name.py" ]; then
		"$here/$name.py" --rounds "${PROFIL_BENCH_ROUNDS:-7}" --seconds "${PROFIL_BENCH_SECONDS:-2}"
	else
		# A table as the benchmarks print it is one of Markdown but for its edges. Why a row could not be measured, after "#",
		# is for who runs this.
		"$here/$name.sh" | sed -n -e 's/^.* | .*/| & |/p' -e '/^# /w /dev/stderr'
		[ "${PIPESTATUS[0]}" -eq 0 ]
	fi >"$work/$name.table" || failed=1
	printf '## %s\n\nMeasured on %s, %s.\n\n' "${title[$name]}" "$(date -u +%F)" "$(where)" |
		cat - "$work/$name.table" >"$work/$name.part"
done

# What was not run stays as the file has it.
for name in $all; do
	[ -e "$work/$name.part" ] || ! [ -e "$file" ] ||
		awk -v heading="## ${title[$name]}" '/^## / { in_part = $0 == heading } in_part' "$file" >"$work/$name.part"
done

{
	sed -n 1p "$top/user/doc/cost.md" # the licence
	echo "# Results"
	echo
	echo "Written by \`make bench\`, which repeats all of it. Profilers take turns in each round, so that they meet the same machine;"
	echo "numbers are medians, in parentheses their 95 % confidence interval, or the quartiles where a goal is beside them. Where an"
	echo "interval contains 1, no difference was seen. A goal that was not met says so."
	grep -LE '^Measured .*, (no )?commit' "$work"/*.part | grep -q . && echo &&
		echo "Parts without CPU and commit are from before both were noted; \`git log\` of this file has the commit that brought each."
	echo
	versions
	for name in $all; do
		[ -s "$work/$name.part" ] || continue
		echo
		cat "$work/$name.part"
	done
} | cat -s >"$work/results.md"
mv "$work/results.md" "$file"
echo "$file" >&2
exit $failed
