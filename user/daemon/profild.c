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

static int serve_clients(const struct command_line *o, struct error *e)
{
	int err, signals = server_open_signals(e);
	struct histograms *histograms = NULL;
	struct listener listener;

	if (signals < 0)
		return signals;
	err = listener_open(&listener, o->socket, e);
	if (err) {
		close(signals);
		return err;
	}
	err = descriptor_limit_raise(e);
	err = err ?: capabilities_keep_for_serving(e);
	/* Before the first client is served: attaching the eBPF program may fail. */
	err = err ?: histograms_open(PROFIL_CLIENTS, true, &histograms, e);
	if (!err) {
		if (*histograms_without_events(histograms))
			log_note("the scheduler's tick is the clock, whatever rate is requested: "
				 "%s",
				 histograms_without_events(histograms));
		log_detail("ready");
		err = server_run(listener.fd, signals, histograms, &o->limits, e);
	}
	histograms_close(histograms);
	listener_close(&listener);
	close(signals);
	return err;
}

static int serve_users(const struct command_line *o, struct error *e)
{
	int err, signals =
			 server_open_signals(e); /* blocks them: listener_open() leaves no socket */
	struct listener listener;

	if (signals < 0)
		return signals;
	close(signals);
	err = listener_open(&listener, o->record_socket, e);
	if (err)
		return err;
	err = descriptor_limit_raise(e);
	err = err ?: capabilities_keep_for_users(e);
	if (!err) {
		log_detail("ready");
		err = record_server_run(listener.fd, &o->record, e);
	}
	listener_close(&listener);
	return err;
}

/* open(2) would use the number of a standard descriptor that is closed. */
static int fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR); /* NOLINT(android-cloexec-open): as these are */
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? -errno : close(fd);
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
	int err, code = EXIT_DONE;
	enum state_health health = STATE_ENDED;
	struct error e;

	if (fill_standard_descriptors())
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN); /* nobody reads the messages any more: no reason to end */
	umask(0077);
	err = command_line_read(argc, argv, &c, &e);
	if (!err && !c.is_printed) {
		if (c.is_continuous) {
			err = continuous_run(&c.continuous, &e);
		} else if (c.is_record) {
			err = serve_users(&c, &e);
		} else if (c.is_status) {
			err = continuous_status(c.continuous.directory, c.json, &health, &e);
			code = health == STATE_ENDED	 ? EXIT_NOT_RUNNING
			       : health == STATE_RECORDS ? EXIT_DONE
							 : EXIT_STUCK;
		} else {
			err = serve_clients(&c, &e);
		}
	}
	free(c.config_text);
	if (err) {
		log_error(&e);
		return codes[e.kind];
	}
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : code;
}
