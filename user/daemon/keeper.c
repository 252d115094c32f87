// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/capabilities.h"
#include "daemon/log.h"
#include "daemon/state.h"
#include "format/dcpi/dcpi.h"
#include "format/format.h"
#include "profile/profile.h"
#include "push/push.h"
#include "util/array.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file_open.h"

/* --- --dcpi DIR: the counts of all windows are also added to a DCPI database --- */

/*
 * It is what archive_tidy() finds beside the windows: a host's part of the database. Where it has
 * more than half of the limit in one epoch, windows begin another one.
 */
struct dcpi_part {
	const char *directory, *host;
	uint64_t most_bytes; /* half of the limit; 0: there is none */
	struct state *state;
};

#define NS_PER_MINUTE (60 * NS_PER_S)
#define NS_PER_DAY    (86400 * NS_PER_S)

static int add_to_epoch(const char *directory, uint64_t epoch_ns, struct profile *p,
			struct state *state, struct error *e)
{
	uint64_t began_ns = p->time_ns;
	struct format_dropped dropped;
	struct error loss;
	int err;

	p->time_ns = epoch_ns; /* the epoch's name */
	err = dcpi_write_directory(p, &(struct format_options){ 0 }, directory, e);
	p->time_ns = began_ns;
	if (err)
		return err;
	dcpi_dropped_images(p, &dropped);
	if (!dropped.samples)
		return 0;
	state->dcpi_dropped += dropped.samples;
	error_set(&loss, 0,
		  "%s: %" PRIu64 " samples of %.512s%s are lost: DCPI files cannot hold %s",
		  directory, dropped.samples, dropped.image, dropped.others ? " and others" : "",
		  format_dcpi.cannot_hold_in_image);
	log_problem(&loss);
	return 0;
}

/*
 * Adds a window to the database `directory`, and counts losses and failures in `state`; both are
 * logged. *epoch_ns is the caller's, 0 at first: when the epoch began that windows are added to.
 */
static void dcpi_add_window(const char *directory, uint64_t *epoch_ns, struct profile *p,
			    struct state *state)
{
	struct error e;

	/* All windows of a day share an epoch. */
	if (p->time_ns / NS_PER_DAY != *epoch_ns / NS_PER_DAY)
		*epoch_ns = p->time_ns;
	if (add_to_epoch(directory, *epoch_ns, p, state, &e) == 0)
		return;
	/*
	 * A window that cannot be added begins another epoch: without an image's file, its
	 * addresses are no longer those in the epoch's file. An epoch is named by its minute, which
	 * may not be over when windows are short.
	 */
	*epoch_ns += NS_PER_MINUTE;
	if (*epoch_ns < p->time_ns)
		*epoch_ns = p->time_ns;
	if (add_to_epoch(directory, *epoch_ns, p, state, &e) == 0)
		return;
	state->dcpi_failed++;
	log_problem(&e);
}

/* Removes what the host has in epochs that began before a time, and logs it with the reason. */
static void dcpi_drop(const char *directory, const char *host, uint64_t before_s, const char *why)
{
	size_t dropped;
	struct error e;

	if (dcpi_drop_epochs(directory, host, before_s, &dropped, &e))
		log_problem(&e);
	if (dropped)
		log_note("removed %zu epochs from %s: %s", dropped, directory, why);
}

static int dcpi_measure(void *context, uint64_t *bytes, uint64_t *oldest_end_s, struct error *e)
{
	const struct dcpi_part *part = context;
	int err = dcpi_measure_epochs(part->directory, part->host, bytes, oldest_end_s, e);

	if (!err && *oldest_end_s == UINT64_MAX && part->most_bytes && *bytes > part->most_bytes)
		part->state->dcpi_epoch_ns = 0;
	return err;
}

static void dcpi_drop_before(void *context, uint64_t end_s)
{
	const struct dcpi_part *part = context;

	dcpi_drop(part->directory, part->host, end_s,
		  "with the windows, they were over --retain-bytes or --keep-free");
}

/* --- The keeper --- */

/* Bound: pace. */
#define IDLE_MS 60000 /* between two looks at the limits when no window comes */

/* The CPU time that waking takes shows the recorder that it is not stuck. Bound: pace. */
#define WAKE_MS 10000

/* After its work is done: how long it waits for what the recorder has next. Bound: pace. */
#define NEXT_MS 20

/*
 * So long without any CPU time: it waits for something that does not come.
 * Bound: machine: seconds for which what writes the files may wait for a disk; then: it is ended,
 * and windows wait in memory; again: as soon as it is gone; share: none; seen: keeper_stuck,
 * keeper_away_s, --status, and the log.
 */
#define STUCK_S 30

/* One that has ended starts again with the next window, or after so long. Bound: pace. */
#define AGAIN_NS (60 * NS_PER_S)

/*
 * Of keeper_stop(): how long one may take that goes on, and one that takes no CPU time.
 * Bound: machine: time for which the end waits for what is to be written; then: it is lost; again:
 * at the next start; share: none; seen: the log.
 */
#define STOP_NS (5 * NS_PER_S)
/* Bound: as STOP_NS. */
#define STOP_STUCK_NS (3 * NS_PER_S / 2)

/*
 * Windows that ended so many keepers are lost: they may be the reason.
 * Bound: users: attempts to write a window; then: it is lost; again: the next window is written;
 * share: none; seen: windows_lost.
 */
#define ATTEMPTS_MAX 3

/*
 * How long the start may take to open the archive.
 * Bound: machine: time to open the archive; then: the start fails; again: at the next start; share:
 * none; seen: the log.
 */
#define OPEN_NS (60 * NS_PER_S)

/* From the recorder; with a descriptor if it is a window. */
struct message {
	struct archive_trigger trigger; /* kind 0: it is a window */
	uint64_t time_ns, samples;	/* of a window */
};

/* To the recorder: after the archive was opened, and after each message. */
struct answer {
	int err;
	struct error why;
};

struct keeper_item {
	struct message message;
	int fd; /* -1: none */
	uint64_t bytes;
	unsigned int attempts;
};

struct work {
	const struct continuous_options *o;
	const char *host;
	struct state *state;
	struct archive *archive; /* NULL: it publishes the metrics alone */
	int socket;
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

/* Reports files that were removed; of those kept although they are over a limit only the first. */
static void note_dropped(const struct archive_dropped *dropped, void *context)
{
	struct work *w = context;
	uint64_t first_s = dropped->first_ns / NS_PER_S, limit_s = dropped->limit_ns / NS_PER_S;
	struct error e;

	switch (dropped->reason) {
	case ARCHIVE_CLOCK_JUMPED:
		w->keeps[dropped->reason] = true;
		if (w->kept[dropped->reason])
			return;
		log_note("the clock is at %s UTC, and what was recorded before ended at %s UTC: "
			 "until an hour is recorded, no files are merged, or removed for their age",
			 time_text(limit_s, true, "%F %T").text,
			 time_text(first_s, true, "%F %T").text);
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
		error_hint(&e,
			   "if it is right: cd '%s' && for day in [0-9]*-*-*; do "
			   "[ $day \\> %s ] || rm -r $day; done",
			   dropped->path, time_text(limit_s, true, "%F").text);
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
	struct pollfd fd = { .fd = w->socket, .events = POLLRDHUP };

	return poll(&fd, 1, 0) > 0;
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
	return MIN(next_ms, IDLE_MS);
}

static void publish_state(struct work *w)
{
	struct error e;

	/* One may be on another disk than the other. */
	if (w->archive && state_write(w->state, w->o->directory, w->host, &e))
		log_problem(&e);
	if (w->o->metrics && state_write_metrics(w->state, w->o->metrics, &e))
		log_problem(&e);
}

static void write_window(struct work *w, const struct message *m, int fd)
{
	const struct input_options options = { .foreign = true };
	char path[PATH_MAX];
	struct state *s = w->state;
	struct profile *p;
	struct stat status;
	struct error e;
	int err = 0;

	if (archive_write(w->archive, fd, m->time_ns, path, sizeof(path), &e)) {
		s->windows_failed++;
		log_problem(&e);
	} else {
		s->windows++;
		s->last_window_s = m->time_ns / NS_PER_S;
		if (fstat(fd, &status) == 0)
			s->window_bytes += status.st_size;
		log_detail("%s: %" PRIu64 " samples", path, m->samples);
	}
	if (!w->o->dcpi)
		return;
	/* The archive may be on a disk that is full, and the database on another. */
	if (lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0)
		err = error_set(&e, errno, "cannot read a window");
	err = err ?: format_read("-", &options, &p, &e);
	if (err) {
		s->dcpi_failed++;
		log_problem(&e);
		return;
	}
	dcpi_add_window(w->o->dcpi, &s->dcpi_epoch_ns, p, s);
	profile_free(p);
	malloc_trim(0);
}

/*
 * Does what the recorder has sent, after waiting at most so long for it. False: the recorder wants
 * it to end, or has ended.
 */
static bool take_messages(struct work *w, uint64_t wait_ms)
{
	uint64_t until_ns = now_ns() + wait_ms * NS_PER_MS;
	struct archive_trigger *trigger;
	const struct answer done = { 0 };
	struct message m;
	int fds[CHILD_FDS_MAX];
	char path[PATH_MAX];
	struct error e;
	ssize_t size;

	do {
		uint64_t now = now_ns(), wake_ns = now + WAKE_MS * NS_PER_MS;

		size = child_receive(w->socket, &m, sizeof(m), fds,
				     wake_ns < until_ns ? wake_ns : until_ns);
		if (size != sizeof(m))
			continue;
		trigger = &m.trigger;
		if (!trigger->kind) {
			write_window(w, &m, fds[0]);
		} else if (archive_write_trigger(w->o->directory, w->host, trigger, path,
						 sizeof(path), &e)) {
			w->state->triggers_failed++;
			log_error(&e);
		} else {
			w->state->triggers++;
			w->state->last_trigger_s = trigger->time_ns / NS_PER_S;
			w->state->last_trigger_kind = trigger->kind;
			log_note("trigger %s: wrote %s", trigger->what, path);
		}
		file_close(fds[0]);
		child_send(w->socket, &done, sizeof(done), NULL, 0);
		until_ns = now_ns() + NEXT_MS * NS_PER_MS;
	} while (size > 0 || (size == -ETIMEDOUT && now_ns() < until_ns));
	return size == -ETIMEDOUT;
}

/* Runs in the keeper's process, until the recorder shuts the socket. Does not return. */
static void run_keeper(struct work *w, bool metrics)
{
	uint64_t sent_until_ns;
	struct push_options push = w->o->push;
	struct dcpi_part part = {
		.directory = w->o->dcpi,
		.host = w->host,
		.most_bytes = w->o->limits.bytes / 2,
		.state = w->state,
	};
	struct archive_beside beside = {
		.measure = dcpi_measure,
		.drop_before = dcpi_drop_before,
		.context = &part,
	};
	struct stat disks[2];
	struct answer opened = { 0 };
	bool goes_on;
	int next_ms = 0;
	struct error e;

	/* The recorder's end ends it, too, but in order when it shuts the socket. */
	child_enter("profild-keeper", w->recorder, SIGKILL, w->socket);
	w->socket = STDERR_FILENO + 1;
	if (capabilities_keep(CAPABILITIES_NONE, &e))
		log_problem(&e);
	while (metrics) {
		publish_state(w);
		if (!take_messages(w, WAKE_MS))
			_exit(0);
	}
	opened.err = archive_open(w->o->directory, w->host, w->recorder, &w->archive, &opened.why);
	child_send(w->socket, &opened, sizeof(opened), NULL, 0);
	if (opened.err)
		_exit(1);
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
		/* Tidying may take long: this one may be ended before it comes to an end. */
		if (!goes_on)
			publish_state(w);
		/* What waits to be sent is not merged: part of it may have been sent already. */
		sent_until_ns = w->push ? push_sent_until(w->push) + 1 : UINT64_MAX;
		memcpy(w->kept, w->keeps, sizeof(w->kept));
		memset(w->keeps, 0, sizeof(w->keeps));
		beside.other_disk = w->o->dcpi && !stat(w->o->dcpi, &disks[0]) &&
				    !stat(w->o->directory, &disks[1]) &&
				    disks[0].st_dev != disks[1].st_dev;
		if (archive_tidy(w->o->directory, w->host, &w->o->limits,
				 w->o->dcpi ? &beside : NULL, clock_ns(CLOCK_REALTIME),
				 sent_until_ns, note_dropped, w, &w->tidied, &e))
			log_problem(&e);
		if (w->o->dcpi && w->tidied.old_before_ns)
			dcpi_drop(w->o->dcpi, w->host, w->tidied.old_before_ns / NS_PER_S,
				  "they were over --retain-days");
		next_ms = push_windows(w);
		publish_state(w);
	} while (goes_on);
	_exit(0);
}

/* --- In the recorder --- */

/* Forks the process. metrics: it publishes these alone. */
static int fork_keeper(struct keeper *k, bool metrics, struct error *e)
{
	struct work w = {
		.o = k->o,
		.host = k->host,
		.state = k->state,
		.recorder = getpid(),
		.before = *k->state,
	};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return error_set(e, errno, "cannot create a socket");
	k->pid = fork();
	if (k->pid < 0) {
		int err = error_set(e, errno, "cannot start the process that keeps the files");

		k->pid = 0;
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	w.socket = ends[1];
	if (k->pid == 0)
		run_keeper(&w, metrics);
	close(ends[1]);
	k->socket = ends[0];
	k->metrics = metrics;
	k->opened = k->sent = k->ending = k->due = false;
	k->cpu_ns = k->silent_s = 0;
	k->state->keeper_starts += !metrics;
	return 0;
}

/* The process has ended, or was killed. */
static void drop_process(struct keeper *k)
{
	close(k->socket);
	k->pid = 0;
	k->sent = false;
	k->away_ns = k->away_ns ?: now_ns();
}

static void drop_item(struct keeper *k, size_t i)
{
	struct state *s = k->state;

	if (k->items[i].fd >= 0) {
		close(k->items[i].fd);
		k->bytes -= k->items[i].bytes;
		s->windows_waiting--;
		s->waiting_bytes = k->bytes;
	}
	memmove(&k->items[i], &k->items[i + 1], (--k->count - i) * sizeof(*k->items));
}

/* Takes the answers that are there. */
static void take_answers(struct keeper *k)
{
	struct answer a;

	while (k->pid > 0 && child_receive(k->socket, &a, sizeof(a), NULL, 0) == sizeof(a)) {
		if (a.err) {
			log_problem(&a.why);
		} else if (!k->opened) {
			k->opened = true;
			k->away_ns = 0;
		} else if (k->sent) {
			k->sent = false;
			drop_item(k, 0);
		}
	}
}

static void give_work(struct keeper *k)
{
	const struct keeper_item *first = k->items;

	if (k->pid > 0 && k->opened && !k->ending && !k->sent && k->count)
		k->sent = child_send(k->socket, &first->message, sizeof(first->message), &first->fd,
				     first->fd >= 0) == 0;
}

/* Whether it has taken CPU time, or waits for some, since this was asked last. */
static bool goes_on(struct keeper *k)
{
	const struct child process = { .pid = k->pid };
	clockid_t clock;
	uint64_t cpu_ns = 0;
	bool more;

	if (clock_getcpuclockid(k->pid, &clock) == 0)
		cpu_ns = clock_ns(clock);
	more = cpu_ns != k->cpu_ns;
	k->cpu_ns = cpu_ns;
	return more || child_is_running(&process);
}

void keeper_step(struct keeper *k)
{
	uint64_t now = now_ns();
	struct error e;

	take_answers(k);
	give_work(k);
	/* Once a second: how long it has not answered, but for time in which this process stood. */
	if (now >= k->next_look_ns) {
		k->next_look_ns = now + NS_PER_S;
		if (k->pid > 0 && !k->metrics)
			k->silent_s = goes_on(k) ? 0 : k->silent_s + 1;
		if (k->pid > 0 && !k->metrics && k->silent_s >= STUCK_S) {
			log_note("the process that keeps the files has not answered for %d "
				 "seconds, as if its disk hung: it is ended; windows wait in "
				 "memory",
				 STUCK_S);
			k->state->keeper_stuck++;
			kill(k->pid, SIGKILL); /* its child, not waited for yet */
			k->stuck = k->pid;
			k->away_ns = now - STUCK_S * NS_PER_S;
			drop_process(k);
			k->due = true;
		}
		k->due |= k->pid <= 0 && now - k->away_ns >= AGAIN_NS;
		k->state->keeper_away_s = k->away_ns ? (now - k->away_ns) / NS_PER_S : 0;
	}
	if (k->pid > 0 || !k->due || (k->stuck && !k->o->metrics))
		return;
	k->due = false; /* if it fails, again with the next window */
	if (fork_keeper(k, k->stuck, &e))
		log_problem(&e);
}

static void add_item(struct keeper *k, const struct keeper_item *item)
{
	struct state *s = k->state;
	struct error e;

	/* What is its work now cannot be taken back. */
	while ((k->bytes + item->bytes > KEEPER_WAITING_BYTES || k->count >= KEEPER_WAITING_MAX) &&
	       k->count > k->sent) {
		s->windows_lost += k->items[k->sent].fd >= 0;
		drop_item(k, k->sent);
		error_set(&e, 0, "too much waits to be written: the oldest windows are lost");
		log_problem(&e);
	}
	k->due |= k->pid <= 0;
	if (array_add(k->items, k->count, k->room, *item)) {
		s->windows_lost += item->fd >= 0;
		file_close(item->fd);
		return;
	}
	k->bytes += item->bytes;
	s->windows_waiting += item->fd >= 0;
	s->waiting_bytes = k->bytes;
	keeper_step(k);
}

void keeper_write_window(struct keeper *k, int fd, uint64_t time_ns, uint64_t samples)
{
	struct keeper_item item = { .message = { .time_ns = time_ns, .samples = samples },
				    .fd = fd };
	struct stat status;

	if (fstat(fd, &status) == 0)
		item.bytes = status.st_size;
	add_item(k, &item);
}

void keeper_write_trigger(struct keeper *k, const struct archive_trigger *trigger)
{
	add_item(k, &(struct keeper_item){ .message = { .trigger = *trigger }, .fd = -1 });
}

int keeper_start(struct keeper *k, struct error *e)
{
	struct answer a;
	int err = fork_keeper(k, false, e);
	ssize_t size;

	if (err)
		return err;
	size = child_receive(k->socket, &a, sizeof(a), NULL, now_ns() + OPEN_NS);
	if (size == sizeof(a) && !a.err) {
		k->opened = true;
		return 0;
	}
	if (size == sizeof(a)) {
		*e = a.why;
		return a.err;
	}
	return error_set(e, size < 0 ? -size : EIO,
			 "the process that keeps the files does not open %s", k->o->directory);
}

void keeper_wait(struct keeper *k)
{
	int status;

	if (k->stuck && waitpid(k->stuck, NULL, WNOHANG) == k->stuck) {
		log_note("the process that did not answer has ended");
		k->stuck = 0;
		k->due = true;
		if (k->pid > 0 && k->metrics)
			kill(k->pid, SIGKILL); /* its child, not waited for yet */
	}
	if (k->pid <= 0 || waitpid(k->pid, &status, WNOHANG) != k->pid)
		return;
	take_answers(k); /* why it has ended, too */
	if (k->sent && ++k->items[0].attempts >= ATTEMPTS_MAX) {
		k->state->windows_lost += k->items[0].fd >= 0;
		drop_item(k, 0);
	}
	/* With the next window, not now: what ended it may end it again. */
	if (!k->due)
		log_note("the process that keeps the files has ended (status %#x): it starts again "
			 "with the next window",
			 status);
	drop_process(k);
}

void keeper_restart(struct keeper *k)
{
	if (k->pid > 0 && !k->metrics)
		shutdown(k->socket, SHUT_WR);
	k->ending = true;
	k->due = true;
}

/* Has it write what waits, and end. False: it does not. */
static bool finish_work(struct keeper *k, uint64_t until_ns)
{
	uint64_t seen_ns = now_ns(), now;

	for (;;) {
		take_answers(k);
		give_work(k);
		if (!k->count)
			shutdown(k->socket, SHUT_WR);
		if (child_reap(k->pid, 10)) {
			take_answers(k);
			drop_process(k);
			return true;
		}
		now = now_ns();
		if (goes_on(k))
			seen_ns = now;
		if (now >= until_ns || now - seen_ns >= STOP_STUCK_NS)
			return false;
	}
}

/* Kills it. False: it waits for a disk, and is still there. */
static bool end_process(struct keeper *k)
{
	bool ended;

	kill(k->pid, SIGKILL); /* its child, not waited for yet */
	ended = child_reap(k->pid, 100);
	drop_process(k);
	return ended;
}

void keeper_stop(struct keeper *k)
{
	const uint64_t until_ns = now_ns() + STOP_NS;
	struct error e;
	bool ends = true;

	if (k->pid > 0 && k->metrics)
		end_process(k);
	/* One that merges files takes work only afterwards: it is ended for another one. */
	else if (k->pid > 0 && !finish_work(k, until_ns - STOP_NS / 2))
		ends = end_process(k);
	if (k->count && ends && !k->stuck && fork_keeper(k, false, &e) == 0 &&
	    !finish_work(k, until_ns))
		end_process(k);
	if (k->state)
		k->state->windows_lost += k->state->windows_waiting;
	if (k->count && k->state)
		log_note("%" PRIu64 " windows are lost: the process that keeps the files did not "
			 "write them",
			 k->state->windows_waiting);
	while (k->count)
		drop_item(k, k->count - 1);
	free(k->items);
	k->items = NULL;
}
