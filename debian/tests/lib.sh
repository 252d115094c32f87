# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the tests share. They run in the scratch directory.

set -eu
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
	[ "$status" -ne 5 ] && [ "$status" -ne 6 ] || skip "no recording is possible on this machine"
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

# A program of two functions: busy_most makes nine of ten rounds.
write_program() {
	cat >busy.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <time.h>

		volatile unsigned long sink;

		__attribute__((noinline)) void busy_least(long n)
		{
			for (long i = 0; i < n; i++)
				sink += i;
		}

		__attribute__((noinline)) void busy_most(long n)
		{
			for (long i = 0; i < n; i++)
				sink += i;
		}

		/* For argv[1] seconds of CPU time. */
		int main(int argc, char **argv)
		{
			clock_t end = clock() + (argc > 1 ? atoi(argv[1]) : 600) * CLOCKS_PER_SEC;

		#ifdef PROFIL
			if (start_profile())
				return 1;
		#endif
			puts("ready");
			fflush(stdout);
			while (clock() < end) {
				busy_least(10000);
				busy_most(90000);
			}
		#ifdef PROFIL
			return print_profile();
		#else
			return 0;
		#endif
		}
	END
}
