// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture.h"
#include "profile/from_capture.h"
#include "symbol/symbol.h"
#include "tool/tool.h"
#include "util/file.h"
#include "util/number.h"

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

#define LOOK_MS	   100 /* how often the capture is looked at when nothing happens */
#define MOST_PIDS  1024
#define MOST_HZ	   100000
#define DEFAULT_HZ 99 /* not a divisor of the usual clocks, so as not to march in step */

struct record_options {
	pid_t pids[MOST_PIDS];
	size_t pid_count;
	pid_t tid;
	bool all;
	enum capture_event event;
	unsigned int frequency;
	uint64_t duration_ns; /* 0: until the end */
	const char *format;
	const char *output;
	bool no_inherit, user, kernel;
	bool json, quiet, verbose;
	long limit;
};

static int parse_pids(const char *value, void *member, struct error *e)
{
	struct record_options *o = member;
	char *copy = strdup(value), *rest = copy, *word;
	uint64_t pid;
	int err = 0;

	if (!copy)
		return error_no_memory(e);
	while (!err && (word = strsep(&rest, ","))) {
		if (number_parse(word, 1, INT32_MAX, &pid))
			err = error_set(e, 0, "-p takes process numbers, not \"%s\"", word);
		else if (o->pid_count == MOST_PIDS)
			err = error_set(e, 0, "-p takes %d processes at most", MOST_PIDS);
		else
			o->pids[o->pid_count++] = pid;
	}
	free(copy);
	return err;
}

static int parse_tid(const char *value, void *member, struct error *e)
{
	uint64_t tid;

	if (number_parse(value, 1, INT32_MAX, &tid))
		return error_set(e, 0, "-t takes a thread number, not \"%s\"", value);
	*(pid_t *)member = tid;
	return 0;
}

static int parse_frequency(const char *value, void *member, struct error *e)
{
	uint64_t frequency;

	if (number_parse(value, 1, MOST_HZ, &frequency))
		return error_set(e, 0,
				 "-F takes a frequency from 1 to %d Hz, not \"%s\" (the kernel's "
				 "own limit: sysctl kernel.perf_event_max_sample_rate)",
				 MOST_HZ, value);
	*(unsigned int *)member = frequency;
	return 0;
}

static int parse_duration(const char *value, void *member, struct error *e)
{
	uint64_t duration;

	if (number_parse_seconds(value, &duration) || !duration)
		return error_set(e, 0, "-d takes seconds above 0, as 10 or 0.5, not \"%s\"", value);
	*(uint64_t *)member = duration;
	return 0;
}

static int parse_event(const char *value, void *member, struct error *e)
{
	static const char *const names[] = {
		[CAPTURE_AUTO] = "auto",
		[CAPTURE_TASK_CLOCK] = "task-clock",
		[CAPTURE_CPU_CLOCK] = "cpu-clock",
		[CAPTURE_CYCLES] = "cycles",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(value, names[i]) == 0) {
			*(enum capture_event *)member = i;
			return 0;
		}
	return error_set(e, 0, "-e takes auto, task-clock, cpu-clock or cycles, not \"%s\"", value);
}

#define MEMBER(name) offsetof(struct record_options, name)

static const struct option_spec options[] = {
	{ "pid", 'p', "PID[,PID...]", "profile these processes", parse_pids, 0 },
	{ "tid", 't', "TID", "profile this thread alone", parse_tid, MEMBER(tid) },
	{ "all", 'a', NULL, "profile the whole machine", NULL, MEMBER(all) },
	{ "frequency", 'F', "HZ", "ticks per second of CPU time, 1 to 100000 (99)", parse_frequency,
	  MEMBER(frequency) },
	{ "duration", 'd', "SECONDS", "stop after SECONDS; fractions allowed", parse_duration,
	  MEMBER(duration_ns) },
	{ "event", 'e', "EVENT", "auto, task-clock, cpu-clock or cycles (auto)", parse_event,
	  MEMBER(event) },
	{ "output", 'o', "FILE", "write the profile to FILE; - is standard output", option_text,
	  MEMBER(output) },
	{ "format", 'f', "FORMAT", "pprof or gperftools (by FILE's extension, else pprof)",
	  option_text, MEMBER(format) },
	{ "no-inherit", 0, NULL, "leave out child processes", NULL, MEMBER(no_inherit) },
	{ "user", 0, NULL, "count only ticks in user mode", NULL, MEMBER(user) },
	{ "kernel", 0, NULL, "count only ticks in the kernel, at the kernel's pc", NULL,
	  MEMBER(kernel) },
	{ "limit", 'n', "ROWS", "print the busiest ROWS functions; 0: all", tool_option_limit,
	  MEMBER(limit) },
	{ "json", 0, NULL, "print the account and the table as JSON", NULL, MEMBER(json) },
	{ "quiet", 'q', NULL, "print no progress and no summary", NULL, MEMBER(quiet) },
	{ "verbose", 'v', NULL, "say more of what happens", NULL, MEMBER(verbose) },
	{ 0 },
};

/* --- What is to be recorded --- */

static int check_targets(const struct record_options *o, bool command, struct error *e)
{
	int kinds = (o->pid_count > 0) + (o->tid > 0) + o->all + command;

	if (kinds == 1)
		return 0;
	error_set_kind(e, ERROR_USAGE, 0,
		       kinds ? "-p, -t, -a and a command exclude each other"
			     : "nothing to profile is named");
	error_mend(e, "profiltool -p PID, or profiltool record -- COMMAND; "
		      "see profiltool record --help");
	return -EINVAL;
}

static int check_output(const struct record_options *o, const struct format **format,
			struct error *e)
{
	*format = tool_output_format(o->format, o->output, e);
	if (!*format)
		return -EINVAL;
	if (!o->output)
		return 0;
	if (strcmp(o->output, "-") != 0)
		return file_check_writable(o->output, e);
	if (o->json)
		return error_set_kind(e, ERROR_USAGE, 0,
				      "--json and -o - both want standard output");
	if (isatty(STDOUT_FILENO))
		return error_set_kind(e, ERROR_USAGE, 0,
				      "a profile is binary: it does not go to a terminal");
	return 0;
}

static struct capture_options capture_options(const struct record_options *o, char **command)
{
	struct capture_options c = {
		.target = CAPTURE_PROCESSES,
		.pids = o->pids,
		.pid_count = o->pid_count,
		.event = o->event,
		.frequency = o->frequency,
		.inherit = !o->no_inherit,
		.user = o->user,
		.kernel = o->kernel,
	};

	if (o->tid) {
		c.target = CAPTURE_THREAD;
		c.pids = &o->tid;
		c.pid_count = 1;
	} else if (o->all) {
		c.target = CAPTURE_SYSTEM;
	} else if (command) {
		c.target = CAPTURE_COMMAND;
		c.command = command;
	}
	return c;
}

/* "python3 (PID 1234)", for the progress line and the summary. */
static void describe_target(const struct record_options *o, char **command, char *text, size_t size)
{
	pid_t pid = o->pid_count ? o->pids[0] : o->tid;
	char path[64], comm[64] = "?";

	if (o->all) {
		snprintf(text, size, "the whole machine");
	} else if (command) {
		snprintf(text, size, "%s", command[0]);
	} else {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		file_read_line(path, comm, sizeof(comm));
		snprintf(text, size, "%s (%s %d)", comm, o->tid ? "TID" : "PID", pid);
		if (o->pid_count > 1)
			snprintf(text, size, "%s (PID %d) and %zu more", comm, pid,
				 o->pid_count - 1);
	}
}

/* --- Recording --- */

/*
 * Signals that end a recording come through a descriptor, so that nothing is ever interrupted.
 * A hang-up that is ignored (nohup) stays ignored.
 */
static int open_signals(struct error *e)
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

/* Takes one signal, when one has come. Also the question symbol_resolve() asks. */
static bool signal_came(void *context)
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

enum end {
	END_ASKED,   /* a signal */
	END_TIME,    /* -d is over */
	END_TARGETS, /* they ended */
};

struct recording {
	const struct record_options *options;
	struct capture *capture;
	int signals;
	const char *target;
	uint64_t start_ns, progress_ns;
	bool progress; /* a line of progress is on the terminal */
	enum end end;
};

static void show_progress(struct recording *r, uint64_t now)
{
	struct capture_totals totals;

	if (r->options->quiet || !isatty(STDERR_FILENO) || now < r->progress_ns)
		return;
	capture_totals(r->capture, &totals);
	fprintf(stderr,
		"\r\033[K" TOOL_PREFIX "%s: %" PRIu64 " s, %" PRIu64
		" samples; Ctrl-C ends the recording",
		r->target, (now - r->start_ns) / NS_PER_S, totals.counted);
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
	uint64_t end = r->start_ns + r->options->duration_ns;

	if (!r->options->duration_ns || end - now > LOOK_MS * NS_PER_MS)
		return LOOK_MS;
	return (end - now) / NS_PER_MS + 1;
}

/* Until a signal, the time or the targets end it. */
static int record_until_end(struct recording *r, struct error *e)
{
	struct pollfd fds[] = {
		{ .fd = capture_fd(r->capture), .events = POLLIN },
		{ .fd = r->signals, .events = POLLIN },
	};

	for (;;) {
		uint64_t now = now_ns();
		int err;

		if (r->options->duration_ns && now - r->start_ns >= r->options->duration_ns) {
			r->end = END_TIME;
			return 0;
		}
		if (signal_came(&r->signals)) {
			r->end = END_ASKED;
			return 0;
		}
		if (capture_ended(r->capture)) {
			r->end = END_TARGETS;
			return 0;
		}
		show_progress(r, now);
		if (poll(fds, 2, milliseconds_left(r, now)) < 0 && errno != EINTR)
			return error_set(e, errno, "cannot wait");
		err = capture_handle(r->capture, e);
		if (err)
			return err;
	}
}

static void tell_command_status(const struct capture *c, const char *name)
{
	int status = capture_command_status(c);

	if (status < 0)
		return;
	if (WIFSIGNALED(status))
		tool_warn("%s was ended by signal %d (%s)", name, WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		tool_warn("%s ended with status %d", name, WEXITSTATUS(status));
}

static void tell_details(const struct capture *c)
{
	struct capture_totals totals;

	capture_totals(c, &totals);
	tool_warn("clock %s, period %" PRIu64 " ns, %u-bit target", capture_event_name(c),
		  capture_period_ns(c), capture_bits(c));
	if (totals.first_tick_ns)
		tool_warn("the first tick came %.1f ms after the start",
			  totals.first_tick_ns / 1e6);
	tool_warn("%" PRIu64 " samples came through the ring buffer, the rest through the table",
		  totals.ring);
}

/* --- The result --- */

/*
 * Hours of samples must not be lost for want of room in one folder: they are offered another.
 * Returns the error that the first try met.
 */
static int save_elsewhere(const struct profile *p, const struct format *format,
			  const struct error *first)
{
	const char *folder = getenv("TMPDIR");
	struct error e;
	char path[4096];

	snprintf(path, sizeof(path), "%s/profiltool-%d%s", folder && *folder ? folder : "/tmp",
		 getpid(), format->extensions[0]);
	tool_fail(first);
	if (tool_write(p, format, path, &e))
		tool_fail(&e);
	else
		tool_warn("the profile is kept in %s", path);
	return -EIO;
}

static int write_result(const struct profile *p, const struct record_options *o,
			const struct format *format)
{
	struct error e;

	if (!o->output)
		return 0;
	if (tool_write(p, format, o->output, &e))
		return save_elsewhere(p, format, &e);
	if (format->loses && !o->quiet)
		tool_warn("%s: the %s format does not hold %s", o->output, format->name,
			  format->loses);
	return 0;
}

static int exit_code(const struct recording *r, const struct profile *p)
{
	if (p->totals.counted == 0) {
		tool_warn("no samples: %s used no CPU time%s", r->target,
			  p->totals.excluded ? " on the side that was asked for" : "");
		return EXIT_NO_SAMPLES;
	}
	if (profile_lost(p)) {
		tool_warn("incomplete: %" PRIu64 " samples were lost", profile_lost(p));
		return EXIT_INCOMPLETE;
	}
	if (r->end == END_TARGETS && r->options->duration_ns) {
		tool_warn("incomplete: %s ended after %.2f s", r->target, p->duration_ns / 1e9);
		return EXIT_INCOMPLETE;
	}
	return EXIT_DONE;
}

static int present(struct recording *r, struct profile *p, const struct format *format,
		   struct error *e)
{
	const struct record_options *o = r->options;
	bool print = !o->output || strcmp(o->output, "-") != 0;
	int code, written;

	if (symbol_resolve(p, signal_came, &r->signals, e))
		return tool_fail(e);
	written = write_result(p, o, format);
	if (print && tool_print(p, o->json, o->limit, e))
		return tool_fail(e);
	if (!o->quiet && (report_summary(p, TOOL_PREFIX, r->target, stderr) ||
			  report_unnamed(p, TOOL_PREFIX, stderr))) {
		error_no_memory(e);
		return tool_fail(e);
	}
	code = exit_code(r, p);
	return written ? EXIT_FAILED : code;
}

static int record(struct recording *r, const struct capture_options *what,
		  const struct format *format)
{
	struct error e;
	struct profile *p;
	int code;

	if (capture_start(what, &r->capture, &e))
		return tool_fail(&e);
	r->start_ns = now_ns();
	/* An error while recording ends it; what was counted until then is still shown. */
	code = record_until_end(r, &e) ? tool_fail(&e) : EXIT_DONE;
	clear_progress(r);
	if (capture_stop(r->capture, &e) || profile_from_capture(r->capture, &p, &e)) {
		capture_free(r->capture);
		return tool_fail(&e);
	}
	if (r->options->verbose)
		tell_details(r->capture);
	if (what->target == CAPTURE_COMMAND)
		tell_command_status(r->capture, what->command[0]);
	capture_free(r->capture);
	r->capture = NULL;
	code = present(r, p, format, &e) ?: code;
	profile_free(p);
	return code;
}

static int run(int argc, char **argv)
{
	struct record_options o = { .frequency = DEFAULT_HZ, .limit = -1 };
	struct recording r = { .options = &o };
	struct capture_options c;
	const struct format *format;
	char target[256], **command;
	struct error e;
	int first, code = tool_options(&record_command, &o, argc, argv, true, &first);

	if (code >= 0)
		return code;
	command = first < argc ? argv + first : NULL;
	if (check_targets(&o, command, &e) || check_output(&o, &format, &e))
		return tool_fail(&e);
	r.signals = open_signals(&e);
	if (r.signals < 0)
		return tool_fail(&e);
	c = capture_options(&o, command);
	describe_target(&o, command, target, sizeof(target));
	r.target = target;
	code = record(&r, &c, format);
	close(r.signals);
	return code;
}

const struct tool_command record_command = {
	.name = "record",
	.arguments =
		"{-p PID | -t TID | -a} [OPTION...], or record [OPTION...] -- COMMAND [ARG...]",
	.help = "Records until -d, Ctrl-C or the target's end, then prints its busiest functions.",
	.options = options,
	.run = run,
};
