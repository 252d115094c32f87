// SPDX-License-Identifier: GPL-2.0-only
/* profild: see profild(8). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/histogram.h"
#include "cli/capabilities.h"
#include "daemon/command_line.h"
#include "daemon/continuous.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/record_server.h"
#include "daemon/server.h"
#include "daemon/state.h"
#include "util/signals.h"

/* Exit codes are documented in profild(8) and never change. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_NOT_RUNNING = 3, /* --status: as for init scripts (LSB) */
	EXIT_STUCK = 4,	      /* --status: it runs, but does not answer or write */
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 5,
	EXIT_KERNEL_LACKS = 6,
};

/* Serves those who connect to a socket: programs that call profil(2), or users who record. */
static int serve(const struct command_line *o, struct error *e)
{
	/* First, so that a signal leaves no socket behind. SIGCHLD: workers end. */
	const int list[] = { SIGINT, SIGTERM, o->is_record ? SIGCHLD : 0, 0 };
	int err, signals = signals_open(list, e);
	struct histograms *histograms = NULL;
	struct listener listener;

	if (signals < 0)
		return signals;
	err = listener_open(&listener, o->is_record ? o->record_socket : o->socket, e);
	if (err) {
		close(signals);
		return err;
	}
	err = descriptor_limit_raise(e);
	err = err ?: capabilities_keep(o->is_record ? CAPABILITIES_USERS : CAPABILITIES_SERVING, e);
	/* Before the first client is served: attaching the eBPF program may fail. */
	if (!err && !o->is_record)
		err = histograms_open(PROFIL_CLIENTS, true, &histograms, e);
	if (!err && !o->is_record && *histograms_without_events(histograms))
		log_note("the scheduler's tick is the clock, whatever rate is requested: %s",
			 histograms_without_events(histograms));
	if (!err) {
		log_detail("ready");
		err = o->is_record ? record_server_run(listener.fd, signals, &o->record, e)
				   : server_run(listener.fd, signals, histograms, &o->limits, e);
	}
	histograms_close(histograms);
	listener_close(&listener);
	close(signals);
	return err;
}

int main(int argc, char **argv)
{
	static const int codes[] = {
		[ERROR_FAILED] = EXIT_FAILED,
		[ERROR_USAGE] = EXIT_USAGE,
		[ERROR_NOT_PERMITTED] = EXIT_NOT_PERMITTED,
		[ERROR_KERNEL_LACKS] = EXIT_KERNEL_LACKS,
	};
	struct command_line c = { 0 };
	int err, code = EXIT_DONE, fd;
	enum state_health health = STATE_ENDED;
	struct error e;

	/* open(2) would use the number of a standard descriptor that is closed. */
	do
		fd = open("/dev/null", O_RDWR); /* NOLINT(android-cloexec-open): as these are */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0 || close(fd))
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN); /* nobody reads the messages any more: no reason to end */
	umask(0077);
	err = command_line_read(argc, argv, &c, &e);
	if (!err && !c.is_printed) {
		if (c.is_continuous) {
			err = continuous_run(&c.continuous, &e);
		} else if (c.is_status) {
			err = state_print(c.continuous.directory, c.json, &health, &e);
			code = health == STATE_ENDED	 ? EXIT_NOT_RUNNING
			       : health == STATE_RECORDS ? EXIT_DONE
							 : EXIT_STUCK;
		} else {
			err = serve(&c, &e);
		}
	}
	free(c.config_text);
	if (err) {
		log_error(&e);
		return codes[e.kind];
	}
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : code;
}
