// SPDX-License-Identifier: GPL-2.0-only
/* profild: see profild(8). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/histogram.h"
#include "daemon/capabilities.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/server.h"
#include "lib/protocol.h"
#include "util/number.h"

#define MIB (1024 * 1024)

/* Exit codes are documented in profild(8) and never change. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 5,
	EXIT_KERNEL_LACKS = 6,
};

static const char help[] =
	"profild [OPTION...]\n"
	"  Lets programs count where they spend their CPU time with profil(2), without privileges\n"
	"  of their own.\n"
	"      --socket PATH          listen there (" PROFILD_SOCKET ")\n"
	"      --max-processes N      of one user at once (1024)\n"
	"      --max-memory MIB       of one user's counts (512)\n"
	"      --max-ticks N          of one user, per second (20000): the sum of its rates\n"
	"  -v, --verbose              log every process that is counted\n"
	"  -h, --help                 print this\n"
	"      --version              print the version\n"
	"\n"
	"Exit codes: 0 done, 1 failed, 2 usage, 5 not permitted, 6 the kernel lacks something.\n";

struct options {
	const char *socket;
	struct limits limits;
};

static int parse_limit(const char *name, const char *value, uint64_t most, size_t unit,
		       size_t *limit, struct error *e)
{
	uint64_t number;

	if (number_parse(value, 1, most, &number))
		return error_set_kind(e, ERROR_USAGE, 0,
				      "--%s takes a number from 1 to %llu, not "
				      "\"%s\"",
				      name, (unsigned long long)most, value);
	*limit = number * unit;
	return 0;
}

/*
 * Returns 0 with *o set, 1 when help or version has been printed, or a negative errno with e set.
 */
static int parse_options(int argc, char **argv, struct options *o, struct error *e)
{
	enum {
		SOCKET = 256,
		PROCESSES,
		MEMORY,
		EVENTS,
		TICKS,
		VERSION
	};
	static const struct option longs[] = {
		{ "socket", required_argument, NULL, SOCKET },
		{ "max-processes", required_argument, NULL, PROCESSES },
		{ "max-memory", required_argument, NULL, MEMORY },
		{ "max-events", required_argument, NULL, EVENTS }, /* in units of older versions */
		{ "max-ticks", required_argument, NULL, TICKS },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, VERSION },
		{ 0 },
	};
	int option, index = 0, err = 0;

	opterr = 0;
	while (!err && (option = getopt_long(argc, argv, ":vh", longs, &index)) != -1) {
		switch (option) {
		case SOCKET:
			o->socket = optarg;
			break;
		case PROCESSES:
			err = parse_limit(longs[index].name, optarg, 1000000, 1,
					  &o->limits.processes, e);
			break;
		case MEMORY:
			err = parse_limit(longs[index].name, optarg, 1000000, MIB,
					  &o->limits.memory, e);
			break;
		case EVENTS:
			log_note("--max-events has no effect any more: no perf event is a "
				 "client's own; see --max-ticks");
			break;
		case TICKS:
			err = parse_limit(longs[index].name, optarg, 1000000000, 1,
					  &o->limits.ticks, e);
			break;
		case 'v':
			log_set_verbose(true);
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		case VERSION:
			puts("profild " PROFIL_VERSION);
			return 1;
		case ':':
			err = error_set_kind(e, ERROR_USAGE, 0, "option %s wants a value",
					     argv[optind - 1]);
			break;
		default:
			err = error_set_kind(e, ERROR_USAGE, 0, "not understood: %s",
					     argv[optind - 1]);
		}
	}
	if (!err && optind < argc)
		err = error_set_kind(e, ERROR_USAGE, 0, "not understood: %s", argv[optind]);
	if (err)
		error_hint(e, "see profild --help");
	return err;
}

/* Before the first client is served: loads and attaches the eBPF program, which may fail. */
static int open_histograms(struct histograms **histograms, struct error *e)
{
	int err = histograms_open(PROFIL_CLIENTS, true, histograms, e);

	if (!err && *histograms_without_events(*histograms))
		log_note("the scheduler's tick is the clock, whatever rate is requested: %s",
			 histograms_without_events(*histograms));
	return err;
}

static int serve(const struct options *o, struct error *e)
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
	err = err ?: capabilities_reduce(e);
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

int main(int argc, char **argv)
{
	struct options options = {
		.socket = PROFILD_SOCKET,
		.limits = { .processes = 1024, .memory = 512 * MIB, .ticks = 20000 },
	};
	struct error e;
	int err;

	if (fill_standard_descriptors())
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN); /* nobody reads the messages any more: no reason to end */
	umask(0077);
	err = parse_options(argc, argv, &options, &e);
	if (err > 0)
		return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
	err = err ?: serve(&options, &e);
	return err ? fail(&e) : EXIT_DONE;
}
