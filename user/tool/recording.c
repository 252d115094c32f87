// SPDX-License-Identifier: GPL-2.0-only
#include "tool/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tool/tool.h"
#include "util/clock.h"

/* Bound: pace. */
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

int recording_run(struct recording *r, struct error *e)
{
	struct pollfd fds[] = {
		{ .fd = r->capture ? capture_fd(r->capture) : r->service->socket,
		  .events = POLLIN },
		{ .fd = r->signals, .events = POLLIN },
	};
	bool shows_progress = !r->quiet && isatty(STDERR_FILENO), shown = false;
	uint64_t start = now_ns(), next_progress = 0;
	int err = 0;

	while (!err) {
		uint64_t now = now_ns(), passed = now - start;
		int timeout = LOOK_MS;

		if (r->duration_ns && passed >= r->duration_ns) {
			r->end = RECORDING_TIME;
			break;
		}
		if (recording_signal_came(&r->signals)) {
			r->end = RECORDING_ASKED;
			break;
		}
		if (r->capture ? capture_ended(r->capture) : service_has_ended(r->service)) {
			r->end = RECORDING_TARGETS;
			break;
		}
		if (shows_progress && now >= next_progress) {
			char ticks[32] = "";

			if (r->capture)
				snprintf(ticks, sizeof(ticks), ", %" PRIu64 " ticks",
					 capture_ticks(r->capture));
			/* What a narrow terminal has no room for is the name's end. */
			tool_progress(TOOL_PREFIX "%" PRIu64
						  " s%s; Ctrl-C ends the recording of %s",
				      passed / NS_PER_S, ticks, r->target);
			shown = true;
			next_progress = now + NS_PER_S;
		}
		if (r->duration_ns && r->duration_ns - passed <= LOOK_MS * NS_PER_MS)
			timeout = (r->duration_ns - passed) / NS_PER_MS + 1;
		if (poll(fds, 2, timeout) < 0 && errno != EINTR)
			err = error_set(e, errno, "cannot wait for samples");
		if (r->capture)
			err = err ?: capture_handle(r->capture, e);
		if (r->capture && r->asker)
			runtime_asker_poll(r->asker, r->capture);
	}
	if (shown)
		tool_progress("%s", "");
	return err;
}
