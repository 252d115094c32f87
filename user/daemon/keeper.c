// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/capabilities.h"
#include "daemon/dcpi.h"
#include "daemon/log.h"
#include "push/push.h"
#include "util/clock.h"

/*
 * Bound: machine: time for which the end waits for the keeper; then: it is killed: what it wrote at
 * last is incomplete, and left to the next start; again: at the next start; share: none; seen: not
 * seen.
 */
#define STOP_MS 5000 /* how long keeper_stop() waits */
/* Bound: pace. */
#define IDLE_MS 60000 /* between two looks at the limits when no window comes */

struct work {
	const struct continuous_options *o;
	const char *host;
	struct state *state;
	int pipe;
	pid_t recorder;
	struct push *push;   /* NULL: nothing is sent */
	struct state before; /* as earlier keepers left it */
	struct archive_tidied tidied;
	/*
	 * Reasons for which this tidying, and the one before, kept files: the clock may be wrong.
	 */
	bool keeps[ARCHIVE_REASONS], kept[ARCHIVE_REASONS];
};

static const char *const reasons[] = {
	[ARCHIVE_OVER_BYTES] = "they were over --retain-bytes",
	[ARCHIVE_OVER_DAYS] = "they were over --retain-days",
	[ARCHIVE_NO_SPACE] = "less than --keep-free was free",
};

static void format_time(uint64_t time_ns, const char *format, char text[static 32])
{
	time_t time = (time_t)(time_ns / NS_PER_S);
	struct tm tm;

	if (!gmtime_r(&time, &tm) || !strftime(text, 32, format, &tm))
		strcpy(text, "?");
}

/* Reports files that were removed; of those kept although they are over a limit only the first. */
static void note_dropped(const struct archive_dropped *dropped, void *context)
{
	struct work *w = context;
	char from[32], until[32];
	struct error e;

	switch (dropped->reason) {
	case ARCHIVE_CLOCK_JUMPED:
		w->keeps[dropped->reason] = true;
		if (w->kept[dropped->reason])
			return;
		format_time(dropped->first_ns, "%F %T", from);
		format_time(dropped->limit_ns, "%F %T", until);
		log_note("the clock is at %s UTC, and what was recorded before ended at %s UTC: "
			 "until an hour is recorded, no files are merged, or removed for their age",
			 until, from);
		return;
	case ARCHIVE_MOST_OLD:
		w->keeps[dropped->reason] = true;
		if (w->kept[dropped->reason])
			return;
		error_set(&e, 0,
			  "%" PRIu64 " files, %" PRIu64
			  " bytes, are over --retain-days and not removed: they are "
			  "most of what was recorded, and the clock may be wrong",
			  dropped->count, dropped->bytes);
		format_time(dropped->limit_ns, "%F", until);
		error_hint(&e,
			   "if it is right: cd '%s' && for day in [0-9]*-*-*; do "
			   "[ $day \\> %s ] || rm -r $day; done",
			   dropped->path, until);
		log_problem(&e);
		return;
	case ARCHIVE_DAMAGED:
		w->state->damaged++;
		error_set(&e, 0, "%s cannot be read, and is renamed to .damaged: %s", dropped->path,
			  dropped->why);
		log_problem(&e);
		return;
	default:
		w->state->dropped += dropped->count;
		w->state->dropped_bytes += dropped->bytes;
		log_note("removed the oldest %" PRIu64 " files, %" PRIu64 " bytes: %s",
			 dropped->count, dropped->bytes, reasons[dropped->reason]);
	}
}

static void report_push(enum push_report kind, const struct error *e, void *context)
{
	(void)context;
	if (kind == PUSH_NOTE)
		log_note("%s", e->what);
	else
		log_error(e);
}

/* Whether the recorder waits for the end. */
static bool is_stopped(void *context)
{
	const struct work *w = context;
	struct pollfd fd = { .fd = w->pipe };

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP;
}

/* Sends what waits, and counts it. Returns the milliseconds until the next time. */
static int push_windows(struct work *w)
{
	const struct push_counters *c;
	struct state *s = w->state;
	uint64_t next_ms = IDLE_MS;
	struct error e;

	if (!w->push)
		return IDLE_MS;
	if (push_step(w->push, &next_ms, &e))
		log_problem(&e);
	c = push_counters(w->push);
	s->pushed = w->before.pushed + c->sent;
	s->refused = w->before.refused + c->refused + c->unreadable;
	s->rejected = w->before.rejected + c->rejected;
	s->retried = w->before.retried + c->retried;
	s->push_dropped = w->before.push_dropped + c->dropped;
	s->pushed_bytes = w->before.pushed_bytes + c->bytes;
	s->push_waiting = c->waiting;
	return next_ms < IDLE_MS ? next_ms : IDLE_MS;
}

/* The lines "NAME: NUMBER kB" of /proc/PID/status: what is resident, and what was at most. */
static void add_memory(pid_t pid, uint64_t *resident, uint64_t *most)
{
	char path[64], line[256];
	uint64_t kib;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "VmRSS: %" SCNu64, &kib) == 1)
			*resident += kib * 1024;
		else if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1)
			*most += kib * 1024;
	if (in)
		fclose(in);
}

static void publish_state(struct work *w)
{
	uint64_t resident = 0, most = 0, look;
	struct error e;

	add_memory(w->recorder, &resident, &most);
	add_memory(getpid(), &resident, &most);
	look = __atomic_load_n(&w->state->look_pid, __ATOMIC_RELAXED);
	if (look)
		add_memory(look, &resident, &most);
	w->state->resident_bytes = resident;
	w->state->resident_most_bytes = most;
	if (state_write(w->state, w->o->directory, w->host, &e))
		log_problem(&e);
	if (w->o->metrics && state_write_metrics(w->state, w->o->metrics, &e))
		log_problem(&e);
}

static void write_trigger(struct work *w, struct archive_trigger *trigger)
{
	char path[PATH_MAX];
	struct error e;

	if (archive_write_trigger(w->o->directory, w->host, trigger, path, sizeof(path), &e)) {
		w->state->triggers_failed++;
		log_error(&e);
		return;
	}
	w->state->triggers++;
	w->state->last_trigger_s = trigger->time_ns / NS_PER_S;
	w->state->last_trigger_kind = trigger->kind;
	log_note("trigger %s: wrote %s", trigger->what, path);
}

/*
 * Waits for messages of the recorder, at most so long: each is an archive_trigger, which is empty
 * if it is to wake the keeper alone. False: the recorder has closed the pipe.
 */
static bool take_messages(struct work *w, int wait_ms)
{
	struct pollfd fd = { .fd = w->pipe, .events = POLLIN };
	struct archive_trigger message;
	ssize_t size = 1;

	if (poll(&fd, 1, wait_ms) <= 0)
		return true;
	while ((size = read(w->pipe, &message, sizeof(message))) == sizeof(message))
		if (message.kind)
			write_trigger(w, &message);
	return size != 0;
}

/* Runs in the keeper's process, until the recorder closes the pipe. Does not return. */
static void run_keeper(struct work *w)
{
	uint64_t sent_until_ns;
	sigset_t all;
	struct push_options push = w->o->push;
	bool goes_on;
	int next_ms = 0;
	struct error e;

	/* The recorder's end ends it, too, but in order when it closes the pipe. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != w->recorder)
		_exit(1);
	prctl(PR_SET_NAME, "profild-keeper");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* Closes the recorder's descriptors, the archive's lock above all. */
	if (dup2(w->pipe, STDERR_FILENO + 1) < 0)
		_exit(1);
	w->pipe = STDERR_FILENO + 1;
	syscall(SYS_close_range, w->pipe + 1, ~0U, 0);
	if (capabilities_drop(&e))
		log_problem(&e);
	push.directory = w->o->directory;
	push.host = w->host;
	push.since_ns = w->state->start_s * NS_PER_S;
	push.report = report_push;
	push.stopped = is_stopped;
	push.context = w;
	/* The options were checked before the recording began: only memory can be short now. */
	if (push.url && push_new(&push, &w->push, &e))
		log_problem(&e);
	publish_state(w);
	do {
		goes_on = take_messages(w, next_ms);
		/* What waits to be sent is not merged: part of it may have been sent already. */
		sent_until_ns = w->push ? push_sent_until(w->push) + 1 : UINT64_MAX;
		memcpy(w->kept, w->keeps, sizeof(w->kept));
		memset(w->keeps, 0, sizeof(w->keeps));
		if (archive_tidy(w->o->directory, w->host, &w->o->limits, clock_ns(CLOCK_REALTIME),
				 sent_until_ns, note_dropped, w, &w->tidied, &e))
			log_problem(&e);
		if (w->o->dcpi && w->tidied.old_before_ns)
			dcpi_drop_old(w->o->dcpi, w->host, w->tidied.old_before_ns);
		next_ms = push_windows(w);
		publish_state(w);
	} while (goes_on);
	_exit(0);
}

int keeper_start(struct keeper *k, const struct continuous_options *o, const char *host,
		 struct state *state, struct error *e)
{
	struct work w = {
		.o = o,
		.host = host,
		.state = state,
		.recorder = getpid(),
		.before = *state,
	};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return error_set(e, errno, "cannot make a pipe");
	k->pid = fork();
	if (k->pid < 0) {
		int err = error_set(e, errno, "cannot start the process that keeps the files");

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	w.pipe = ends[0];
	if (k->pid == 0)
		run_keeper(&w);
	close(ends[0]);
	k->pipe = ends[1];
	state->keeper_starts++;
	return 0;
}

int keeper_write_trigger(const struct keeper *k, const struct archive_trigger *trigger)
{
	if (k->pid <= 0)
		return -ESRCH;
	/* Whole or not at all: it is shorter than PIPE_BUF. */
	return write(k->pipe, trigger, sizeof(*trigger)) < 0 ? -errno : 0;
}

void keeper_wake(const struct keeper *k)
{
	/* A pipe that is full wakes it as well. */
	keeper_write_trigger(k, &(struct archive_trigger){ 0 });
}

void keeper_stop(struct keeper *k)
{
	siginfo_t info = { 0 };
	struct pollfd fd = { .events = POLLIN };

	if (k->pid <= 0)
		return;
	close(k->pipe);
	fd.fd = syscall(SYS_pidfd_open, k->pid, 0);
	if (fd.fd >= 0)
		poll(&fd, 1, STOP_MS); /* all signals that profild handles are blocked */
	kill(k->pid, SIGKILL);	       /* its child, not waited for yet: nobody else has the PID */
	waitid(P_PID, k->pid, &info, WEXITED);
	if (fd.fd >= 0)
		close(fd.fd);
	k->pid = 0;
}
