# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the tests share. They run in the scratch directory.

set -eu
tests=$(cd "$(dirname "$0")" && pwd)
cd "${AUTOPKGTEST_TMP:?is set by autopkgtest}"

# Ends the processes that the test started.
started=()
trap '[ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

# skip WHY: autopkgtest's status for a test that cannot run here.
skip() {
	echo "skipped: $*"
	exit 77
}

# Where eBPF is not allowed, as in most containers, nothing can be recorded.
needs_recording() {
	local status=0

	profiltool check || status=$?
	case $status in 5 | 6) skip "no recording is possible on this machine" ;; esac
	[ "$status" -eq 0 ] || fail "profiltool check: exit status $status"
}

# wait_for COMMAND...: until it succeeds, for at most 20 seconds.
wait_for() {
	local end=$((SECONDS + 20))

	until "$@" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || fail "never succeeded: $*"
		sleep 0.1
	done
}

# build_busy NAME OPTION...: busy.c.
build_busy() {
	local name=$1
	shift
	gcc -O1 -o "$name" "$tests/busy.c" "$@"
}
