#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# python.sh [MEASURE...]: a Python program, recorded by profiltool and by another profiler of Python at the same time:
# austin or py-spy, which read the program's memory from outside. By how many standard deviations do the shares of
# functions differ at most, of those with 2 % and more? Prints them all. Needs root, and the other profiler in PATH.
# PYTHON: the interpreter (/usr/bin/python3); ROOT: the directory to run it and the other profiler in, by chroot(1).
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python=${PYTHON:-/usr/bin/python3}
root=${ROOT:-/}
seconds=${PROFIL_BENCH_SECONDS:-20}

# compared NAME COMMAND...: the row of another profiler, which writes its stacks to standard output.
compared() {
	local name=$1 found other
	shift
	if ! [ -x "$root/usr/bin/$1" ] && ! [ -x "$root/usr/local/bin/$1" ]; then
		not_measured "$name" "$1 is not in ${root%/}/usr/bin"
		return
	fi
	mkdir -p "$root/tmp" && cp "$here/python.py" "$root/tmp/profil-bench.py" || return
	start_ready chroot "$root" "$python" /tmp/profil-bench.py work $((seconds + 5))
	chroot "$root" "$@" -p "$pid" >"$work/stacks" 2>"$work/other.err" &
	other=$!
	"$profiltool" record -q -p "$pid" -F 499 -d "$seconds" -o "$work/python.pb.gz" >/dev/null 2>"$work/record.err"
	wait "$other"
	end_target
	rm -f "$root/tmp/profil-bench.py"
	found=$(python3 "$here/python.py" compare "$profiltool" "$work/python.pb.gz" "$work/stacks" 2>"$work/compare.err") ||
		{ not_measured "$name" "$(tail -n 1 "$work/compare.err")"; return; }
	grep '^#' <<<"$found"
	found=$(tail -n 1 <<<"$found")
	judge "$name" "${found%% *}" "${found#* }" 4 deviations
}

measures=(austin pyspy)

measure_austin() {
	compared "functions by austin" austin -i 2ms -x "$seconds" -s
}

measure_pyspy() {
	compared "functions by py-spy" py-spy record -f raw -r 499 -d "$seconds" -o /dev/stdout
}

bench "$@"
