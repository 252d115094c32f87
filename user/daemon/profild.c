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
#include "daemon/server.h"

/* Exit codes are documented in profild(8) and never change. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_NOT_RUNNING = 3, /* --status: as for init scripts (LSB) */
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 5,
	EXIT_KERNEL_LACKS = 6,
};

/* Before the first client is served: loads and attaches the eBPF program, which may fail. */
static int open_histograms(struct histograms **histograms, struct error *e)
{
	int err = histograms_open(PROFIL_CLIENTS, true, histograms, e);

	if (!err && *histograms_without_events(*histograms))
		log_note("the scheduler's tick is the clock, whatever rate is requested: %s",
			 histograms_without_events(*histograms));
	return err;
}

static int serve(const struct command_line *o, struct error *e)
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
	err = err ?: open_histograms(&histograms, e);
	if (!err) {
		log_detail("ready");
		err = server_run(listener.fd, signals, histograms, &o->limits, e);
	}
	histograms_close(histograms);
	listener_close(&listener);
	close(signals);
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

static int fail(const struct error *e)
{
	static const int codes[] = {
		[ERROR_FAILED] = EXIT_FAILED,
		[ERROR_USAGE] = EXIT_USAGE,
		[ERROR_NOT_PERMITTED] = EXIT_NOT_PERMITTED,
		[ERROR_KERNEL_LACKS] = EXIT_KERNEL_LACKS,
	};

	log_error(e);
	return codes[e->kind];
}

static int run(const struct command_line *c, int *code, struct error *e)
{
	bool runs = false;
	int err;

	if (c->is_printed)
		return 0;
	if (c->is_continuous)
		return continuous_run(&c->continuous, e);
	if (!c->is_status)
		return serve(c, e);
	err = continuous_status(c->continuous.directory, c->json, &runs, e);
	*code = runs ? EXIT_DONE : EXIT_NOT_RUNNING;
	return err;
}

int main(int argc, char **argv)
{
	struct command_line c = { 0 };
	struct error e;
	int err, code = EXIT_DONE;

	if (fill_standard_descriptors())
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN); /* nobody reads the messages any more: no reason to end */
	umask(0077);
	err = command_line_read(argc, argv, &c, &e) ?: run(&c, &code, &e);
	free(c.config_text);
	if (err)
		return fail(&e);
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : code;
}
