// SPDX-License-Identifier: GPL-2.0-only
#include "tool/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "report/text.h"
#include "tool/tool.h"
#include "util/clock.h"

#define LOOK_MS 100 /* between two calls of capture_handle() when nothing happens */

static void take_signals(sigset_t *set)
{
	struct sigaction action;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
}

int recording_open_signals(struct error *e)
{
	sigset_t set;
	int fd;

	take_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_set(e, errno, "cannot watch for signals") : fd;
}

void recording_release_signals(void)
{
	sigset_t set;

	take_signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool recording_signal_came(void *context)
{
	struct signalfd_siginfo info;

	return read(*(int *)context, &info, sizeof(info)) == sizeof(info);
}

static void show_progress(struct recording *r, uint64_t now)
{
	if (r->quiet || !isatty(STDERR_FILENO) || now < r->progress_ns)
		return;
	fputs("\r\033[K" TOOL_PREFIX, stderr);
	text_print(r->target, stderr);
	fprintf(stderr, ": %" PRIu64 " s, %" PRIu64 " ticks; Ctrl-C ends the recording",
		(now - r->start_ns) / NS_PER_S, capture_ticks(r->capture));
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
