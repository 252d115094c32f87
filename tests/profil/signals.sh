#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Signals, timers and blocking system calls, as the program and as strace see them.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

gcc -shared -fPIC -O1 -o "$tree/lib/forbid_malloc.so" "$top/tests/forbid_malloc.c" || exit
lib=$tree/lib/forbid_malloc.so:$lib

check "profild" start_profild
rows profil_signals

# traced BACKEND OPTION NAME: the row under strace, whose record is $work/tmp/trace.
traced() {
	rm -f "$work/tmp/trace"
	with "$1" env -u LD_PRELOAD strace -f -qq -o "$work/tmp/trace" "$2" \
		-E LD_PRELOAD="$lib" "$tree/progs/profil_signals" "$3"
}

# Children of the program end, and that is all.
no_signal() {
	traced "$1" -etrace=none "threads, children and pauses" || return
	! grep -e '--- SIG' -e '+++ killed' "$work/tmp/trace" | grep -v SIGCHLD
}

no_interruption() {
	traced "$1" -etrace=all "no call that waits is interrupted" || return
	grep -q nanosleep "$work/tmp/trace" || return
	! grep -e EINTR -e ERESTART "$work/tmp/trace"
}

for backend in $backends; do
	check "$backend: strace sees no signal" no_signal "$backend"
	check "$backend: strace sees no call interrupted" no_interruption "$backend"
done
finish
