#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A recording without an end while the time of day is set: of profild alone, by a library that it loads first.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip "a recording without an end while the clock is set" "recording needs root"
	finish
fi

cat >"$work/shift.c" <<'EOF'
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The file of CLOCK_SHIFT is as long as the number of hours by which the time of day is ahead. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int fd = -1;
	int err = syscall(SYS_clock_gettime, clock, time);

	if (fd < 0)
		fd = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);
	if (clock == CLOCK_REALTIME && fd >= 0)
		time->tv_sec += 3600 * lseek(fd, 0, SEEK_END);
	return err;
}
EOF
gcc -std=gnu11 -D_GNU_SOURCE -shared -fPIC -o "$work/shift.so" "$work/shift.c" || exit
: >"$work/hours"

"${pdeathsig[@]}" env LD_PRELOAD="$work/shift.so" CLOCK_SHIFT="$work/hours" "$build/profild" --continuous --verbose \
	--directory "$work/archive" --window 3600 2>"$work/daemon.err" &
daemon=$!
note_started "$daemon"
check "a daemon records" wait_for grep -q "records .* into" "$work/daemon.err"
printf 12 >"$work/hours"
check "the clock is set: another window begins" wait_for grep -q "the clock was set" "$work/daemon.err"
kill -TERM "$daemon"
wait "$daemon"
check "the daemon ends" [ $? -eq 0 ]
check "the clock is set: once" test "$(grep -c "the clock was set" "$work/daemon.err")" -eq 1

# apart: whether there are two windows, and the times of their begins are as far apart as the clock was set.
apart() {
	find "$work/archive" -name '*.pb.gz' | sort | python3 -c '
import datetime, sys
names = [name.strip()[-len("2026-11-21/031500.pb.gz"):] for name in sys.stdin]
begin, *_, end = (datetime.datetime.strptime(name, "%Y-%m-%d/%H%M%S.pb.gz") for name in names)
print(begin, end)
sys.exit(not 7200 <= (end - begin).total_seconds() < 9000)'
}
check "each of the two windows has its own time" apart
finish
