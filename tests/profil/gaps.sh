#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a program learns, and how it continues, when its back end ends: profild is replaced, or the program
# gives up its privileges or changes its root directory. And the cost of a family of processes.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

cat >"$work/gaps.c" <<'END'
#include "tests/progs/profil_row.h"

#include <glob.h>
#include <profil.h>
#include <sys/stat.h>

static struct profil_session *session;

static void attach(void)
{
	const struct profil_region all = { .bufsiz = 1 << 20, .scale = 2 };

	need(profil_attach(&session, 0, &all, 1, sizeof(all), 1000) == 0, profil_error());
}

/* How many of the ticks that are due by CPU time were counted, or lost. */
static void print_totals(void)
{
	struct profil_totals t;

	profil_read_totals(session, &t, sizeof(t));
	printf("due %.1f ticks %llu lost %llu period %llu\n",
	       (double)t.cpu_ns / t.period_ns, (unsigned long long)t.ticks,
	       (unsigned long long)t.lost, (unsigned long long)t.period_ns);
}

/* --- One that does as it is told --- */

static void do_as_told(void)
{
	char line[64];

	attach();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		if (strcmp(line, "burn\n") == 0)
			burn_in(spin_hot, ticks_in(1e9));
		print_totals();
		fflush(stdout);
	}
	profil_session_free(session);
}

/* --- Rights and directories --- */

static void expect_counts(const char *when, const char *backend)
{
	memset(cells, 0, sizeof(cells));
	if (!expect(profil_hot(cells) == 0, "%s: on: %s", when, profil_error()))
		return;
	expect(strcmp(profil_backend(), backend) == 0, "%s: by %s, not %s", when, profil_backend(),
	       backend);
	burn_until_counted();
	profil_off();
	expect(sum() > 0, "%s: no tick", when);
}

/* Which closes the process to its user, unless it says that it is open. */
static void drop_rights(void)
{
	need(setgid(65534) == 0 && setuid(65534) == 0, "setuid");
	if (getenv("OPEN"))
		prctl(PR_SET_DUMPABLE, 1);
}

/* A worker that gives up its rights, and whose child is counted by what there still is. */
static void dropped_and_forked(const char *before, const char *after)
{
	pid_t child;

	expect_counts("root", before);
	expect(profil_hot(cells) == 0, "on: %m");
	drop_rights();
	memset(cells, 0, sizeof(cells));
	child = fork();
	if (child == 0) {
		burn_until_counted();
		profil_off();
		expect(sum() > 0, "the child has no tick");
		expect(strcmp(profil_backend(), after) == 0, "the child is counted by %s, not %s",
		       profil_backend(), after);
		exit(wrong);
	}
	expect_well(child, "child");
	profil_off();
}

static void dropped(const char *before, const char *after)
{
	expect_counts("root", before);
	drop_rights();
	expect_counts("a user", after);
}

static void changed_root(const char *before, const char *after)
{
	char empty[4096];

	snprintf(empty, sizeof(empty), "%s/empty-XXXXXX", getenv("TMPDIR"));
	expect_counts("before", before);
	need(mkdtemp(empty) && chdir(empty) == 0 && rmdir(empty) == 0 && chroot(".") == 0, empty);
	expect_counts("in an empty directory", after);
}

/* --- A family --- */

#define WORKERS 20

/* Perf events that a process has open. Libprofil's thread has descriptors of its own. */
static int count_events(pid_t pid)
{
	char pattern[64], target[64];
	glob_t files;
	int count = 0;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/fd/*", pid);
	if (glob(pattern, GLOB_NOSORT, NULL, &files))
		return 0;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		ssize_t length = readlink(files.gl_pathv[i], target, sizeof(target) - 1);

		target[length < 0 ? 0 : length] = '\0';
		count += strstr(target, "perf_event") != NULL;
	}
	globfree(&files);
	return count;
}

/* Waits for a moment in which there are so many: profild keeps those of another rate for a second. */
static void expect_events(const pid_t *pids, size_t pid_count, int expected)
{
	int count = 0;

	for (int tries = 0; tries < 1000; tries++) {
		count = 0;
		for (size_t i = 0; i < pid_count; i++)
			count += count_events(pids[i]);
		if (count == expected)
			return;
		sleep_ms(10);
	}
	expect(false, "%d perf events, not %d", count, expected);
}

static void family(const char *before, const char *unused)
{
	const char *profild = getenv("PROFILD");
	pid_t first = getpid(), pid, pids[2 + 2 * WORKERS] = { first, profild ? atoi(profild) : 0 };
	int go[2], told[2], status;
	unsigned int own;
	char byte;

	(void)unused;
	expect(profil_hot(cells) == 0, "on: %s", profil_error());
	expect(strcmp(profil_backend(), before) == 0, "by %s", profil_backend());
	need(pipe(go) == 0 && pipe(told) == 0, "pipe");
	for (int i = 0; i < WORKERS && getpid() == first; i++)
		if (fork() == 0)
			fork(); /* a grandchild, whose parent has it from its own */
	if (getpid() != first) {
		close(go[1]);
		pid = getpid();
		need(write(told[1], &pid, sizeof(pid)) == sizeof(pid) && read(go[0], &byte, 1) == 0,
		     "pipes");
		memset(cells, 0, sizeof(cells));
		burn(100);
		profil_off();
		own = sum();
		while (waitpid(-1, &status, 0) > 0)
			own = status ? 0 : own;
		_exit(own < 100 && !is_about(own, 100, 100, 2));
	}
	for (int i = 0; i < 2 * WORKERS; i++)
		need(read(told[0], &pids[2 + i], sizeof(pid)) == sizeof(pid), "a worker");
	expect_events(pids, sizeof(pids) / sizeof(*pids), sysconf(_SC_NPROCESSORS_ONLN));
	close(go[1]);
	while (waitpid(-1, &status, 0) > 0)
		expect(status == 0, "a worker was counted too little, or ended by 0x%x", status);
	profil_off();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *before, const char *after);
	} rows[] = {
		{ "dropped", dropped },
		{ "dropped-and-forked", dropped_and_forked },
		{ "changed-root", changed_root },
		{ "family", family },
	};

	if (argc == 2)
		do_as_told();
	for (size_t i = 0; argc == 4 && i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(argv[1], rows[i].name) == 0)
			rows[i].run(argv[2], argv[3]);
	return wrong;
}
END

compile() {
	gcc -D_GNU_SOURCE -O1 -I"$top" -I"$top/user" -I"$top/user/lib" "$work/gaps.c" \
		-L"$tree/lib" -lprofil -Wl,-rpath,"$tree/lib" \
		-pthread -lm -o "$tree/gaps"
}

check "the program" compile

# --- profild is replaced ---

# asked LINE: what the client answers. value NAME: a number in the last answer.
asked() {
	local before
	before=$(wc -l <"$work/client.out")
	send_line client "$1"
	wait_for answered "$before" && tail -n 1 "$work/client.out" >"$work/answer"
}

answered() {
	[ "$(wc -l <"$work/client.out")" -gt "$1" ]
}

value() {
	sed -n "s/.*\<$1 \([0-9.]*\).*/\1/p" "$work/answer"
}

# As the client is served again within a second or two.
is_served() {
	grep -q "is counted" "$work/profild.log"
}

# The CPU time of the gap, a second at least, is lost; and all that is due is accounted for.
gap_is_told() {
	asked totals && [ "$(value lost)" -ge 900 ] && ticks_are_due
}

# ticks_are_due: roughly, whatever else runs.
ticks_are_due() {
	cat "$work/answer"
	awk -v due="$(value due)" -v ticks="$(value ticks)" \
		'BEGIN { exit !(ticks > 0 && ticks >= due / 4 && ticks <= due * 4) }'
}

check "profild" start_profild --verbose
begin client env PROFIL_BACKEND=daemon PROFIL_SOCKET="$sock" PROFIL_HZ=1000 "$tree/gaps" told
check "it is counted" asked burn
check "nothing is lost" test "$(value lost)" = 0
stop "$profild"
check "profild has ended: the client goes on" asked burn
check "another profild" start_profild --verbose
check "it goes on with the new one" wait_for is_served
check "it is counted again" asked burn
check "the time without profild is in its account" gap_is_told
send_line client end
check "it ends well" wait "$pid"

# --- Perf events are refused ---

# The kernel's tick, in nanoseconds.
tick_ns() {
	python3 -c 'import time; print(round(time.clock_getres(5) * 1e9))' # CLOCK_MONOTONIC_COARSE
}

start_without_events() {
	rm -f "$sock"
	"${pdeathsig[@]}" strace -f -qq -o /dev/null -e trace=perf_event_open \
		-e inject=perf_event_open:error=EACCES "$build/profild" --socket "$sock" \
		>"$work/profild.log" 2>&1 &
	tracer=$!
	note_started "$tracer"
	wait_for listens "$sock"
}

# by_the_tick OUTPUT: what it says of a second of CPU time.
by_the_tick() {
	[ "$(value period)" = "$(tick_ns)" ] && ticks_are_due
}

if ! strace -o /dev/null -e inject=perf_event_open:error=EACCES true 2>/dev/null; then
	skip "profild without perf events" "strace cannot be used here"
else
	stop "$profild"
	check "profild, where perf events are refused" start_without_events
	check "profild, where perf events are refused: reported" \
		wait_for grep -q "the scheduler's tick is the clock" "$work/profild.log"
	rm "$work/client.in"
	# Before all others: what wakes at a tick and runs for less than a period of it has no tick, and the
	# program that it interrupts has all of them.
	begin client chrt -f 1 env PROFIL_BACKEND=daemon PROFIL_SOCKET="$sock" PROFIL_HZ=1000 \
		"$tree/gaps" told
	check "a client is counted" asked burn
	check "by the scheduler's tick" by_the_tick
	send_line client end
	wait "$pid"
	check "it has said so once" test "$(grep -c "scheduler's tick" "$work/profild.log")" = 1
	pkill -KILL -P "$tracer"
	wait "$tracer" 2>/dev/null
	check "profild" start_profild
fi

# --- Rights, and directories ---

# goes_on ROW BEFORE AFTER [SETTING...]
goes_on() {
	timeout -s KILL 60 env TMPDIR="$work/tmp" PROFIL_HZ=100 "${@:4}" "$tree/gaps" "$1" "$2" "$3"
}

nowhere=PROFIL_SOCKET=$work/nowhere
here=PROFIL_SOCKET=$sock
if [ -e /dev/profil ]; then
	skip "rights and directories" "/dev/profil is the first"
else
	check "rights are dropped, no profild: on by libc" goes_on dropped bpf libc "$nowhere"
	check "rights are dropped and a child forked, no profild: on by libc" \
		goes_on dropped-and-forked bpf libc "$nowhere"
	check "rights are dropped: on by profild" goes_on dropped daemon daemon "$here" OPEN=1
	check "rights are dropped and a child forked: on by profild" \
		goes_on dropped-and-forked daemon daemon "$here" OPEN=1
	check "rights are dropped, closed to profild: on by libc" \
		goes_on dropped daemon libc "$here"
	check "rights are dropped and a child forked, closed to profild: on by libc" \
		goes_on dropped-and-forked daemon libc "$here"
	check "another root directory, no profild" goes_on changed-root bpf bpf "$nowhere"
	check "another root directory, without profild's socket" \
		goes_on changed-root daemon libc "$here"
	# One set of clocks, not one for each.
	check "40 processes of a family: bpf" goes_on family bpf "" "$nowhere" PROFIL_HZ=2000
	check "40 processes of a family: daemon" goes_on family daemon "" "$here" PROFIL_HZ=2000 \
		PROFILD="$profild"
fi
finish
