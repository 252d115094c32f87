// SPDX-License-Identifier: GPL-2.0-only
#include "tool/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "tool/tool.h"

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

#define LOOK_MS 100 /* how often the capture is looked at when nothing happens */

/*
 * Signals that end a recording come through a descriptor, so that nothing is ever interrupted.
 * A hang-up that is ignored (nohup) stays ignored.
 */
int recording_open_signals(struct error *e)
{
	struct sigaction action;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_set(e, errno, "cannot watch for signals") : fd;
}

bool recording_signal_came(void *context)
{
	struct signalfd_siginfo info;

	return read(*(int *)context, &info, sizeof(info)) == sizeof(info);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void show_progress(struct recording *r, uint64_t now)
{
	if (r->quiet || !isatty(STDERR_FILENO) || now < r->progress_ns)
		return;
	fprintf(stderr,
		"\r\033[K" TOOL_PREFIX "%s: %" PRIu64 " s, %" PRIu64
		" ticks; Ctrl-C ends the recording",
		r->target, (now - r->start_ns) / NS_PER_S, capture_ticks(r->capture));
	r->progress = true;
	r->progress_ns = now + NS_PER_S;
}

static void clear_progress(struct recording *r)
{
	if (r->progress)
		fputs("\r\033[K", stderr);
	r->progress = false;
}

static int milliseconds_left(const struct recording *r, uint64_t now)
{
	uint64_t end = r->start_ns + r->duration_ns;

	if (!r->duration_ns || end - now > LOOK_MS * NS_PER_MS)
		return LOOK_MS;
	return (end - now) / NS_PER_MS + 1;
}

/* Whether the recording is over, and then why. */
static bool is_over(struct recording *r, uint64_t now)
{
	if (r->duration_ns && now - r->start_ns >= r->duration_ns)
		r->end = RECORDING_TIME;
	else if (recording_signal_came(&r->signals))
		r->end = RECORDING_ASKED;
	else if (capture_ended(r->capture))
		r->end = RECORDING_TARGETS;
	else
		return false;
	return true;
}

int recording_run(struct recording *r, struct error *e)
{
	struct pollfd fds[] = {
		{ .fd = capture_fd(r->capture), .events = POLLIN },
		{ .fd = r->signals, .events = POLLIN },
	};
	int err = 0;

	r->start_ns = now_ns();
	while (!err) {
		uint64_t now = now_ns();

		if (is_over(r, now))
			break;
		show_progress(r, now);
		if (poll(fds, 2, milliseconds_left(r, now)) < 0 && errno != EINTR)
			err = error_set(e, errno, "cannot wait for samples");
		err = err ?: capture_handle(r->capture, e);
	}
	clear_progress(r);
	return err;
}
