#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# libprofil at the end of a program: it does nothing if profiling is off, and little for each of many
# functions registered by atexit(3).

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild

# ends BACKEND LIBRARY HOW: it prints its line and exits with 0.
ends() {
	lib=$tree/lib/$2 with "$1" "$tree/progs/profil_exit" "$3" >"$work/out" 2>&1
	local status=$?

	cat "$work/out"
	[ "$status" -eq 0 ] && [ "$(cat "$work/out")" = well ] && return
	echo "exit status $status"
	return 1
}

for library in libprofil.so.1 libprofil-gmon.so; do
	for how in strict strict-last; do
		check "$library, never on, and a strict filter: $how" ends bpf "$library" "$how"
	done
done
for backend in $backends libc; do
	check "$backend: turned off, and a strict filter" ends "$backend" libprofil.so.1 off
done

# The thread that brings the counts to the buffer is called by tgkill(2). A tick takes 100 ms of CPU
# time here, which is much more than all of these functions.
handlers=2000
few_calls() {
	local calls

	rm -f "$work/tmp/trace"
	hz=10 with "$1" env -u LD_PRELOAD strace -f -qq -e trace=tgkill -o "$work/tmp/trace" \
		-E LD_PRELOAD="$lib" "$tree/progs/profil_exit" handlers "$handlers" >"$work/out" ||
		return
	cat "$work/out"
	calls=$(grep -c 'tgkill(' "$work/tmp/trace")
	echo "$calls calls of the thread"
	grep -qx "$handlers handlers" "$work/out" && [ "$calls" -lt $((handlers / 10)) ]
}
for backend in bpf daemon; do
	check "$backend: $handlers functions at exit" few_calls "$backend"
done
finish
