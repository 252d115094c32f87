// SPDX-License-Identifier: GPL-2.0-only
/* profild: see profild(8). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/histogram.h"
#include "cli/capabilities.h"
#include "cli/options.h"
#include "daemon/account.h"
#include "daemon/continuous.h"
#include "daemon/continuous_options.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/record_server.h"
#include "daemon/record_worker.h"
#include "daemon/server.h"
#include "daemon/state.h"
#include "lib/protocol.h"
#include "record/service.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/number.h"
#include "util/signals.h"

/* --- The command line --- */

/* What profild is to do. */
struct command_line {
	/* At most one of these; none: serve clients that call profil(2). */
	bool is_continuous; /* record the machine into an archive */
	bool is_record;	    /* record processes on behalf of their users */
	bool is_status;	    /* print what the process that records does */
	bool is_printed;    /* help or version is printed, and no more to be done */
	const char *socket;
	struct limits limits;
	const char *record_socket;
	struct record_limits record;
	struct continuous_options continuous;
	bool json;	   /* of the status */
	char *config_text; /* what texts of --config point into; the caller frees it */
};

#define MIB (1024 * 1024)
#define GIB (1024ULL * MIB)

#define DEFAULT_HZ 97 /* no divisor of what other clocks do */

/* Bound: pace. */
#define DEFAULT_WATCH_NS (3600 * NS_PER_S)
/* Bound: caller: seconds between two looks for changes; then: the option is refused. */
#define WATCH_MOST_S (7 * 24 * 3600)

static int take_number(const char *value, uint64_t least, uint64_t most, uint64_t *number,
		       struct error *e)
{
	if (number_parse(value, least, most, number))
		return error_set(e, 0, "takes a number from %llu to %llu, not \"%s\"",
				 (unsigned long long)least, (unsigned long long)most, value);
	return 0;
}

/* Defines a parser of numbers in units, for members of this type. */
#define NUMBER(name, type, least, most, unit)                              \
	static int name(const char *value, void *member, struct error *e)  \
	{                                                                  \
		uint64_t number = 0;                                       \
		int err = take_number(value, (least), (most), &number, e); \
                                                                           \
		*(type *)member = number * (unit);                         \
		return err;                                                \
	}

NUMBER(take_count, size_t, 1, 1000000, 1)
NUMBER(take_mib, size_t, 1, 1000000, MIB)
NUMBER(take_ticks, size_t, 1, 1000000000, 1)
/* Percent of a CPU's time, as ticks per second. */
NUMBER(take_share, size_t, 1, 100, NS_PER_S / TICK_NS / 100)
NUMBER(take_frequency, unsigned int, 1, 10000, 1)
NUMBER(take_seconds, uint64_t, 1, 3600, NS_PER_S)
NUMBER(take_some_seconds, uint64_t, 0, 300, NS_PER_S)
NUMBER(take_long, uint64_t, 1, 7 * 24 * 3600, NS_PER_S)
NUMBER(take_days, uint64_t, 0, 36500, 1)
NUMBER(take_per_hour, unsigned int, 1, TRIGGERS_HOUR_MAX, 1)

static int take_event(const char *value, void *member, struct error *e)
{
	enum capture_event *event = member;

	*event = CAPTURE_CPU_CLOCK;
	if (strcmp(value, capture_event_names[CAPTURE_TICK]) == 0)
		*event = CAPTURE_TICK;
	else if (strcmp(value, capture_event_names[CAPTURE_CPU_CLOCK]) != 0)
		return error_set(e, 0, "--event takes cpu-clock or tick, not \"%s\"", value);
	return 0;
}

/* Bytes: a number with K, M, G or T behind it, for powers of 1024. */
static int take_size(const char *value, void *member, struct error *e)
{
	static const char units[] = "KMGT";
	size_t size = strlen(value);
	const char *unit = size ? strchr(units, value[size - 1]) : NULL;
	int shift = unit ? 10 * (unit - units + 1) : 0;
	uint64_t *bytes = member;
	char number[32];

	snprintf(number, sizeof(number), "%.*s", (int)(unit ? size - 1 : size), value);
	if (size >= sizeof(number) || number_parse(number, 0, UINT64_MAX >> shift, bytes))
		return error_set(e, 0, "takes a size, such as 500M or 2G, not \"%s\"", value);
	*bytes <<= shift;
	return 0;
}

/*
 * A size, hours, or both: "64M", "6h", "64M,6h". What is absent is no limit, but that windows of an
 * hour have no times. 0: none have.
 */
static int take_times(const char *value, void *member, struct error *e)
{
	struct archive_limits *limits = member;
	const uint64_t most = ARCHIVE_10MIN_S / 3600;
	uint64_t bytes = UINT64_MAX, hours = UINT64_MAX;
	char text[64] = "", *rest = text, *part;
	int err = strlen(value) < sizeof(text) ? 0 : -EINVAL;

	if (!err)
		strcpy(text, value);
	while (!err && (part = strsep(&rest, ","))) {
		char *unit = strchr(part, 'h');

		if (unit && !unit[1] && hours == UINT64_MAX) {
			*unit = '\0';
			err = number_parse(part, 0, most, &hours);
		} else {
			err = bytes == UINT64_MAX ? take_size(part, &bytes, e) : -EINVAL;
		}
	}
	if (err)
		return error_set(e, 0,
				 "takes a size, hours (24h at most) or both, such as 64M,6h, not "
				 "\"%s\"",
				 value);
	limits->times_bytes = bytes == UINT64_MAX ? 0 : bytes;
	limits->times_s = bytes ? MIN(hours, most) * 3600 : 0;
	return 0;
}

static int take_context(const char *value, void *member, struct error *e)
{
	struct context_wishes *wishes = member;

	*wishes = (struct context_wishes){ .knows_programs = strcmp(value, "none") != 0,
					   .literal = strcmp(value, "literal") == 0 };
	if (!wishes->knows_programs || wishes->literal || strcmp(value, "normalised") == 0)
		return 0;
	return error_set(e, 0, "--context takes none, normalised or literal, not \"%s\"", value);
}

/* A number with s, m, h or d behind it, up to a week; 0: never. NULL: the default. */
static int take_interval(const char *value, void *member, struct error *e)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 24 * 3600 } };
	size_t size = value ? strlen(value) : 0;
	uint64_t *ns = member, seconds;
	char number[16];

	*ns = DEFAULT_WATCH_NS;
	if (!value)
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!size || size > sizeof(number) || value[size - 1] != units[i].unit)
			continue;
		snprintf(number, size, "%s", value);
		if (number_parse(number, 1, WATCH_MOST_S / units[i].seconds, &seconds))
			break;
		*ns = seconds * units[i].seconds * NS_PER_S;
		return 0;
	}
	*ns = 0;
	if (strcmp(value, "0") == 0)
		return 0;
	return error_set(e, 0, "takes an interval, such as 30m or 1h, or 0, not \"%s\"", value);
}

struct options {
	struct command_line c;
	const char *config;
	bool verbose, version;
};

#define SERVER(member)	   offsetof(struct options, c.member)
#define CONTINUOUS(member) offsetof(struct options, c.continuous.member)

/* clang-format off */
#define COMMON_OPTIONS                                                                            \
	{ "verbose", 'v', NULL, "log every process that is counted, or every file", NULL,          \
	  offsetof(struct options, verbose) },                                                     \
	{ "version", 0, NULL, "print the version", NULL, offsetof(struct options, version) }

#define CONFIG_OPTION                                                                             \
	{ "config", 0, "FILE", "has more options, one on each line", option_text,                  \
	  offsetof(struct options, config) }

#define DIRECTORY_OPTION                                                                          \
	{ "directory", 0, "DIR", "where the files are (" ARCHIVE_DIRECTORY ")", option_text,       \
	  CONTINUOUS(directory) }

static const struct option_spec server_options[] = {
	{ "socket", 0, "PATH", "listen there (" PROFILD_SOCKET ")", option_text, SERVER(socket) },
	{ "max-processes", 0, "N", "of one user at once (1024)", take_count,
	  SERVER(limits.processes) },
	{ "max-memory", 0, "MIB", "of one user's counts (512)", take_mib, SERVER(limits.memory) },
	{ "max-ticks", 0, "N", "of one user, per second (20000): the sum of its rates",
	  take_ticks, SERVER(limits.ticks) },
	{ "max-rates", 0, "N", "of one user at once (4)", take_count, SERVER(limits.rates) },
	{ "max-share", 0, "PERCENT", "of each CPU for the ticks of all users (20)", take_share,
	  SERVER(limits.all_ticks) },
	COMMON_OPTIONS,
	{ 0 },
};

static const struct option_spec record_options[] = {
	{ "record", 0, NULL, "record processes on behalf of their users", NULL, SERVER(is_record) },
	{ "socket", 0, "PATH", "listen there (" RECORD_SOCKET ")", option_text,
	  SERVER(record_socket) },
	{ "max-recordings", 0, "N", "of one user at once (2)", take_count,
	  SERVER(record.recordings) },
	{ "max-all-recordings", 0, "N", "of all users at once (8); one may have half of what is left",
	  take_count, SERVER(record.all) },
	{ "max-starts", 0, "N", "of recordings that one user begins in a minute (30)", take_count,
	  SERVER(record.starts) },
	{ "max-frequency", 0, "HZ", "the most ticks per second of CPU time (1000)", take_frequency,
	  SERVER(record.frequency) },
	{ "max-duration", 0, "SECONDS", "of one recording (3600)", take_long,
	  SERVER(record.duration_ns) },
	{ "max-memory", 0, "MIB", "of address space for one recording (1024)", take_mib,
	  SERVER(record.memory) },
	COMMON_OPTIONS,
	{ 0 },
};

static const struct option_spec continuous_options[] = {
	{ "continuous", 0, NULL, "record all the time", NULL, SERVER(is_continuous) },
	CONFIG_OPTION,
	DIRECTORY_OPTION,
	{ "frequency", 'F', "HZ", "ticks per second of CPU time (97)", take_frequency,
	  CONTINUOUS(frequency) },
	{ "event", 'e', "EVENT", "cpu-clock, or tick: the scheduler's own, at its rate",
	  take_event, CONTINUOUS(event) },
	{ "unwind-memory", 0, "MIB",
	  "room for call frame information of programs that start later (64)", option_unwind_memory,
	  CONTINUOUS(unwind_mib) },
	{ "chains", 0, NULL,
	  "keep each wait and who ended it, for profiltool why: as long as --retain-times",
	  NULL, CONTINUOUS(chains) },
	{ "context", 0, "WHAT",
	  "label samples with the query, route, service, ... they worked for: none, normalised "
	  "(without constants: the default) or literal",
	  take_context, CONTINUOUS(wishes) },
	{ "window", 0, "SECONDS", "of each file (60)", take_seconds, CONTINUOUS(window_ns) },
	{ "retain-bytes", 0, "SIZE", "remove the oldest files beyond this size (2G); 0: no limit",
	  take_size, CONTINUOUS(limits.bytes) },
	{ "retain-days", 0, "N", "remove older files (30); 0: no limit", take_days,
	  CONTINUOUS(limits.days) },
	{ "retain-times", 0, "LIMITS",
	  "keep the time of each tick in the newest files: so large in all, so many hours (256M,6h); 0: none",
	  take_times, CONTINUOUS(limits) },
	{ "keep-free", 0, "SIZE", "remove the oldest files while less is free on the disk (1G)",
	  take_size, CONTINUOUS(limits.free_bytes) },
	{ "trigger", 0, "WHAT",
	  "keep the seconds around it: pressure:RESOURCE:PERCENT, load:GROUP:PERCENT or "
	  "command:FILE[:SECONDS]; as SIGUSR2 does",
	  trigger_parse, CONTINUOUS(triggers) },
	{ "trigger-before", 0, "SECONDS", "how many before it (10)", take_some_seconds,
	  CONTINUOUS(triggers.before_ns) },
	{ "trigger-after", 0, "SECONDS", "how many after it (10)", take_some_seconds,
	  CONTINUOUS(triggers.after_ns) },
	{ "trigger-limit", 0, "N", "keep at most so many in an hour (6)", take_per_hour,
	  CONTINUOUS(triggers.per_hour) },
	{ "watch", 0, "[=INTERVAL]",
	  "look so often (1h) for services that cost more since a deploy, and log it; 0: never",
	  take_interval, CONTINUOUS(watch_ns) },
	{ "metrics", 0, "FILE", "write counters there, for node_exporter's textfile collector",
	  option_text, CONTINUOUS(metrics) },
	{ "dcpi", 0, "DIR", "add the counts to a DCPI database, too", option_text,
	  CONTINUOUS(dcpi) },
	{ "push", 0, "URL", "send each file to this server", option_text, CONTINUOUS(push.url) },
	{ "push-protocol", 0, "PROTOCOL", "otlp (OpenTelemetry; the default) or pyroscope",
	  option_text, CONTINUOUS(push.protocol) },
	{ "push-token-file", 0, "FILE", "has the bearer token", option_text,
	  CONTINUOUS(push.token_file) },
	{ "push-tenant", 0, "ID", "the server's tenant, for the header X-Scope-OrgID",
	  option_text, CONTINUOUS(push.tenant) },
	{ "push-ca", 0, "FILE", "certificates to trust, instead of the system's", option_text,
	  CONTINUOUS(push.ca) },
	{ "push-certificate", 0, "FILE", "the client's certificate", option_text,
	  CONTINUOUS(push.certificate) },
	{ "push-key", 0, "FILE", "its key", option_text, CONTINUOUS(push.key) },
	{ "push-queue-bytes", 0, "SIZE", "let at most so much wait to be sent (256M)", take_size,
	  CONTINUOUS(push.queue_bytes) },
	COMMON_OPTIONS,
	{ 0 },
};

static const struct option_spec status_options[] = {
	{ "status", 0, NULL, "print the state", NULL, SERVER(is_status) },
	CONFIG_OPTION,
	DIRECTORY_OPTION,
	{ "json", 0, NULL, "print it as JSON", NULL, SERVER(json) },
	COMMON_OPTIONS,
	{ 0 },
};
/* clang-format on */

/* What profild does, by the option that says so. The last is without one. */
static const struct mode {
	const char *option;
	const struct option_spec *options;
} modes[] = {
	{ "--continuous", continuous_options },
	{ "--record", record_options },
	{ "--status", status_options },
	{ NULL, server_options },
};

static const struct mode *find_mode(char **argv)
{
	const struct mode *m;

	for (m = modes; m->option; m++)
		for (char **word = argv + 1; *word; word++)
			if (strcmp(*word, m->option) == 0)
				return m;
	return m;
}

static bool has_option(const struct mode *m, const char *word)
{
	size_t length = strcspn(word, "=");

	for (const struct option_spec *o = m->options; o->name; o++)
		if (strncmp(word, "--", 2) == 0
			    ? strlen(o->name) == length - 2 &&
				      !strncmp(word + 2, o->name, length - 2)
			    : word[0] == '-' && o->letter && word[1] == o->letter)
			return true;
	return false;
}

/* Names an option that goes with another mode, if there is one: it is not simply unknown. */
static void name_other_mode(const struct mode *mode, char **argv, struct error *e)
{
	while (*++argv) {
		const struct mode *other = modes;
		const char *word = *argv;

		while (!has_option(other, word) && other->option)
			other++;
		if (has_option(mode, word) || !has_option(other, word))
			continue;
		if (other->option && strcmp(word, other->option) == 0)
			error_set_kind(e, ERROR_USAGE, 0, "%s and %s exclude each other",
				       mode->option, word);
		else
			error_set_kind(e, ERROR_USAGE, 0,
				       other->option ? "%s goes with %s" : "%s does not go with %s",
				       word, other->option ?: mode->option);
		return;
	}
}

/*
 * Reads the arguments, which *c refers to afterwards, and the file of --config, and prints help and
 * version. Returns 0, or a negative errno with e set. c->config_text is to be freed in any case.
 */
static int command_line_read(int argc, char **argv, struct command_line *c, struct error *e)
{
	struct options o = {
		.c = {
			.socket = PROFILD_SOCKET,
			.limits = {
				.processes = 1024,
				.memory = 512 * MIB,
				.ticks = 20000,
				.rates = 4,
				.all_ticks = 20 * (NS_PER_S / TICK_NS / 100),
			},
			.record_socket = RECORD_SOCKET,
			.record = {
				.recordings = 2,
				.all = 8,
				.starts = 30,
				.frequency = 1000,
				.duration_ns = 3600 * NS_PER_S,
				.memory = 1024 * (size_t)MIB,
			},
			.continuous = {
				.directory = ARCHIVE_DIRECTORY,
				.event = CAPTURE_CPU_CLOCK,
				.window_ns = 60 * NS_PER_S,
				.wishes.knows_programs = true,
				.watch_ns = DEFAULT_WATCH_NS,
				.triggers = {
					.before_ns = 10 * NS_PER_S,
					.after_ns = 10 * NS_PER_S,
					.per_hour = 6,
				},
				.limits = {
					.bytes = 2 * GIB,
					.days = 30,
					.free_bytes = GIB,
					.times_bytes = 256 * MIB,
					.times_s = 6 * 3600,
				},
			},
		},
	};
	static const char *const refused[] = { "continuous", "config", "version", NULL };
	const struct mode *mode = find_mode(argv);
	struct options given = o;
	bool help = false;
	int first = argc,
	    err = options_parse(mode->options, &given, argc, argv, false, &first, &help, e);

	/* The command line goes before the file. */
	if (!err && given.config && !help) {
		err = options_read(continuous_options, refused, &o, given.config, &o.c.config_text,
				   e);
		if (err) {
			if (!*e->hint)
				error_hint(e, "see profild --help");
			c->config_text = o.c.config_text;
			return err;
		}
		err = options_parse(mode->options, &o, argc, argv, false, &first, &help, e);
	} else {
		o = given;
	}
	if (err)
		name_other_mode(mode, argv, e);
	if (!err && !help && first < argc)
		err = error_set_kind(e, ERROR_USAGE, 0, "not understood: %s", argv[first]);
	if (!err && o.c.continuous.event == CAPTURE_TICK && o.c.continuous.frequency)
		err = error_set_kind(e, ERROR_USAGE, 0,
				     "--frequency: the scheduler's tick has its own rate");
	if (err) {
		error_hint(e, "see profild --help");
		return err;
	}
	if (!o.c.continuous.frequency && o.c.continuous.event != CAPTURE_TICK)
		o.c.continuous.frequency = DEFAULT_HZ;
	log_set_verbose(o.verbose);
	if (help) {
		puts("profild [OPTION...]\n"
		     "  Lets programs count where they spend their CPU time with profil(2), "
		     "without\n"
		     "  privileges of their own.");
		options_print(server_options, NULL, stdout);
		puts("\nprofild --record [OPTION...]\n"
		     "  Lets users record their own processes with profiltool, without privileges "
		     "of "
		     "their\n"
		     "  own.");
		options_print(record_options, NULL, stdout);
		puts("\nprofild --continuous [OPTION...]\n"
		     "  Records where the whole machine spends its CPU time, all the time, into "
		     "files,\n"
		     "  which profiltool report --since and other commands read.");
		options_print(continuous_options, NULL, stdout);
		puts("\nprofild --status [OPTION...]\n"
		     "  Prints what the profild that records has done so far.");
		options_print(status_options, NULL, stdout);
		puts("\n  -h, --help                  print this\n"
		     "\n"
		     "Exit codes: 0 done, 1 failed, 2 usage, 3 not running, 4 not answering,\n"
		     "5 not permitted, 6 the kernel lacks something.");
	} else if (o.version) {
		puts("profild " PROFIL_VERSION);
	}
	*c = o.c;
	c->is_printed = help || o.version;
	return 0;
}

/* --- The program --- */

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
