// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/command.h"
#include "cli/capabilities.h"
#include "format/loss.h"
#include "record/from_capture.h"
#include "record/function.h"
#include "record/live_files.h"
#include "script/context.h"
#include "tool/executable.h"
#include "tool/recording.h"
#include "tool/service.h"
#include "tool/target.h"
#include "tool/tool.h"
#include "tool/waits.h"
#include "util/number.h"

/* Of a thread: TASK_COMM_LEN. */
#define VICTIM_NAME_SIZE 16

struct record_options {
	struct tool_target target;
	uint64_t duration_ns; /* 0: until the end */
	const char *format;
	const char *output;
	uint32_t scale; /* 0: exact pcs */
	struct offset {
		uint64_t address;
		bool given;
	} offset;
	uint64_t bufsiz; /* 0: not given */
	struct victim {
		enum capture_victim kind;
		const char *text; /* as given; NULL: all that wait */
		const char *name;
		pid_t pid;
	} victim;
	struct tool_naming naming;
	bool no_inline, no_times, wall, chains;
	const char *span;      /* [IMAGE:]FUNCTION; NULL: none */
	unsigned int overhead; /* percent */
	bool json, quiet, verbose;
	long limit;
};

static int parse_victim(const char *value, void *member, struct error *e)
{
	struct victim *victim = &((struct record_options *)member)->victim;
	const char *name = strchr(value, ':');
	uint64_t pid;

	*victim = (struct victim){ .text = value, .name = name ? name + 1 : "" };
	if (strncmp(value, "pid:", 4) == 0 && number_parse(victim->name, 1, INT32_MAX, &pid) == 0) {
		victim->kind = CAPTURE_VICTIM_PID;
		victim->pid = pid;
	} else if (strncmp(value, "comm:", 5) == 0 && *victim->name &&
		   strlen(victim->name) < VICTIM_NAME_SIZE) {
		victim->kind = CAPTURE_VICTIM_COMM;
	} else if (strncmp(value, "cgroup:", 7) == 0 && *victim->name) {
		victim->kind = CAPTURE_VICTIM_CGROUP;
	} else {
		return error_set(e, 0,
				 "--victim takes pid:PID, comm:NAME (a thread's, of %d bytes at "
				 "most) or cgroup:PATH, not \"%s\"",
				 VICTIM_NAME_SIZE - 1, value);
	}
	return 0;
}

static int parse_scale(const char *value, void *member, struct error *e)
{
	uint64_t scale;

	if (number_parse_hex(value, 2, UINT32_MAX, &scale))
		return error_set(e, 0,
				 "--scale takes a number from 2 to 0xffffffff, as 0x10000 for "
				 "cells of 2 bytes, not \"%s\"",
				 value);
	*(uint32_t *)member = scale;
	return 0;
}

static int parse_offset(const char *value, void *member, struct error *e)
{
	struct offset *offset = member;

	if (number_parse_hex(value, 0, UINT64_MAX, &offset->address))
		return error_set(e, 0, "--offset takes an address, as 0x401000, not \"%s\"", value);
	offset->given = true;
	return 0;
}

static int parse_bufsiz(const char *value, void *member, struct error *e)
{
	if (number_parse_hex(value, 2, UINT64_MAX, member))
		return error_set(e, 0, "--bufsiz takes a number of bytes, 2 or more, not \"%s\"",
				 value);
	return 0;
}

static int parse_overhead(const char *value, void *member, struct error *e)
{
	uint64_t percent;

	if (number_parse(value, 0, 100, &percent))
		return error_set(
			e, 0, "--max-overhead takes a percentage from 0 to 100, not \"%s\"", value);
	*(unsigned int *)member = percent;
	return 0;
}

#define MEMBER(name) offsetof(struct record_options, name)

static const struct option_spec options[] = {
	TOOL_TARGET_OPTIONS(struct record_options, target),
	{ "unit", 0, "UNIT", "profile this systemd unit: nginx, x.scope", option_text,
	  MEMBER(target.unit) },
	{ "container", 0, "NAME", "profile this container: its name, or the beginning of its ID",
	  option_text, MEMBER(target.container) },
	TOOL_SAMPLING_OPTIONS(struct record_options, target),
	{ "duration", 'd', "SECONDS", "stop after SECONDS; fractions allowed", tool_option_duration,
	  MEMBER(duration_ns) },
	{ "output", 'o', "FILE",
	  "write the profile to FILE, for some formats a directory; - is standard output",
	  option_text, MEMBER(output) },
	{ "format", 'f', "FORMAT", "what to write; else by FILE's name: x.pb.gz, x.prof, ...",
	  option_text, MEMBER(format) },
	{ "wall", 0, NULL, "account for each thread's time: on CPU, runnable, blocked, idle", NULL,
	  MEMBER(wall) },
	{ "chains", 0, NULL,
	  "as --wall, and keep the time of each wait, for profiltool why: 4 to 8 bytes of FILE",
	  NULL, MEMBER(chains) },
	{ "span", 0, "FUNCTION",
	  "with --chains: keep when FUNCTION, or IMAGE:FUNCTION, was called, for why --span",
	  option_text, MEMBER(span) },
	{ "max-overhead", 0, "PERCENT",
	  "with --wall: stacks of waits may take this much of the CPUs (2); 0: any", parse_overhead,
	  MEMBER(overhead) },
	{ "victim", 0, "WHO", "delay is of these threads alone: pid:PID, comm:NAME or cgroup:PATH",
	  parse_victim, 0 },
	TOOL_CONTEXT_OPTIONS(struct record_options, target),
	{ "scale", 0, "S", "count in cells of profil(2), not at each pc", parse_scale,
	  MEMBER(scale) },
	{ "offset", 0, "ADDRESS", "with --scale: where the first cell begins (the text)",
	  parse_offset, MEMBER(offset) },
	{ "bufsiz", 0, "BYTES", "with --scale: 2 for each cell (as the text needs)", parse_bufsiz,
	  MEMBER(bufsiz) },
	{ "debuginfod", 0, NULL, "fetch symbols that are not here from servers: DEBUGINFOD_URLS",
	  NULL, MEMBER(naming.debuginfod) },
	{ "inline", 0, NULL,
	  "resolve source lines and inlined functions: the default with -o and a format that holds "
	  "them",
	  NULL, MEMBER(naming.lines) },
	{ "no-inline", 0, NULL, "do not: name functions by symbol tables only", NULL,
	  MEMBER(no_inline) },
	TOOL_NO_TIMES_OPTION(MEMBER(no_times)),
	{ "limit", 'E', "ROWS", "print the busiest ROWS functions; 0: all", tool_option_limit,
	  MEMBER(limit) },
	{ "json", 0, NULL, "print the account and the table as JSON", NULL, MEMBER(json) },
	{ "quiet", 'q', NULL, "print no progress and no summary", NULL, MEMBER(quiet) },
	{ "verbose", 'v', NULL, "print all of the summary, and more details", NULL,
	  MEMBER(verbose) },
	{ 0 },
};

/* Nothing is said that the table answers. */
static bool is_brief(const struct record_options *o)
{
	return o->quiet || (isatty(STDERR_FILENO) && !o->verbose);
}

/*
 * Checks that there is one target, finds it by its name, and checks that its command can be run,
 * and the options of the histogram. Returns 0 or -errno with e set.
 */
static int check_target(struct record_options *o, char **command, struct error *e)
{
	static const char *const methods[] = { "auto", "cfi", "fp", "none", "dwarf", "lbr" };
	int kinds = tool_target_kinds(&o->target) + (command != NULL);
	struct executable program;
	bool stacks = o->target.stacks && o->target.stacks != CAPTURE_STACKS_SCRIPTS;
	const char *why = NULL;
	char path[PATH_MAX];
	int err;

	/* perf takes the method of -g as a word of its own. Here, a command begins there. */
	for (size_t i = 0; i < 6 && command && stacks; i++)
		if (strcmp(command[0], methods[i]) == 0) {
			error_set_kind(e, ERROR_USAGE, 0, "\"%s\" would be the command to record",
				       command[0]);
			return error_hint(e, "-g alone means auto; or --call-graph=%s",
					  strcmp(command[0], "lbr") == 0 ? "auto" : command[0]);
		}
	if (kinds != 1)
		return error_usage(e,
				   "profiltool -p PID, or profiltool record -- COMMAND; "
				   "see profiltool record --help",
				   kinds ? TARGET_KINDS ", and a command, exclude each other"
					 : "nothing to profile is named");
	err = tool_find_target(&o->target, is_brief(o), e);
	if (err)
		return err;
	if (command) {
		err = executable_find(command[0], path, e);
		err = err ?: executable_read_program(path, &program, e);
		if (err)
			return err;
	}
	if (!o->scale && (o->offset.given || o->bufsiz))
		why = "--offset and --bufsiz need --scale";
	else if (o->scale && o->offset.given != (o->bufsiz > 0))
		why = "--offset and --bufsiz need each other";
	else if (o->scale && o->target.pid_count != 1)
		why = "--scale takes the histogram of one process, with -p";
	else if (o->scale && (o->target.user || o->target.kernel))
		why = "--scale counts every tick, at its pc in user space: it excludes --user "
		      "and --kernel";
	else if (o->scale && o->victim.kind)
		why = "--scale keeps no delay: it excludes --victim";
	else if (o->scale && stacks)
		why = "--scale counts pcs alone: it excludes --call-graph";
	if (!why)
		return 0;
	return error_usage(e,
			   "profiltool record --scale 0x10000 -p PID; see profiltool record --help",
			   "%s", why);
}

/*
 * Sets *format, checks that the profile can be written, and chooses source lines for a file whose
 * format holds them: it may be read where the program and its debug information are missing.
 */
static int check_output(struct record_options *o, const struct format **format, struct error *e)
{
	int err = 0;

	*format = tool_output_format(o->format, o->output, e);
	if (!*format)
		return -EINVAL;
	if (!o->output && o->format)
		return error_usage(e, "see profiltool record --help",
				   "-f needs -o: nothing would be written");
	if (o->output && strcmp(o->output, "-") == 0 && o->json)
		return error_usage(e, "write the profile to a file: -o FILE",
				   "--json and -o - both want standard output");
	if (o->output)
		err = tool_check_output(*format, o->output, e);
	if (err)
		return err;
	if (o->naming.lines && o->no_inline)
		return error_usage(e, "give only one of them",
				   "--inline and --no-inline exclude each other");
	/* Without names, addresses of the interpreter are more than none. */
	if (o->output && !((*format)->keeps & KEEPS(NAMES))) {
		o->target.native = true;
		if (o->target.stacks == CAPTURE_STACKS_SCRIPTS)
			o->target.stacks = CAPTURE_NO_STACKS;
	}
	o->naming.lines |= o->output && (*format)->keeps & KEEPS(LINES) && !o->no_inline;
	return 0;
}

static int check_ignored(const struct record_options *o, const struct format *format, int first,
			 char **argv, struct error *e)
{
	enum capture_stacks stacks = o->target.stacks;
	const struct tool_ignored ignored[] = {
		{ !o->wall && !o->chains, "a recording without --wall", "max-overhead",
		  "add --wall" },
		{ !o->chains, "a recording without --chains", "span", "add --chains" },
		{ !capture_is_clock(o->target.event.kind), "events, which measure no time",
		  "frequency wall chains victim", NULL },
		{ o->scale, "--scale, which counts pcs alone",
		  "wall chains native unwind-memory ask-runtimes label literal", NULL },
		{ stacks == CAPTURE_NO_STACKS, "recordings without stacks",
		  "native unwind-memory label literal", NULL },
		{ stacks == CAPTURE_STACKS_FP, "--call-graph=fp", "unwind-memory label literal",
		  NULL },
		{ !o->output, "a recording that is not written", "no-times chains",
		  "add -o FILE.pb.gz" },
		{ o->no_times, "--no-times", "chains", NULL },
	};

	if (o->output && o->no_times && tool_check_no_times(format, e))
		return -EINVAL;
	return tool_check_ignored(&record_command, ignored, sizeof(ignored) / sizeof(*ignored),
				  first, argv, e);
}

/*
 * Warns of stacks that could not be walked; with -v, prints details, as which users were refused
 * what the account sums up.
 */
static void warn_of_capture(const struct capture *c, const struct record_options *o)
{
	bool cfi = capture_options(c)->stacks == CAPTURE_STACKS_CFI;
	const struct capture_stack_end *ends;
	const struct capture_image *images;
	struct capture_tables tables;
	const struct refusals *refusals = capture_refusals(c);
	struct capture_totals totals;
	size_t image_count, count;

	capture_totals(c, &totals);
	if (totals.waits_refused)
		tool_warn("%" PRIu64 " waits of user %u have no stack: no user has more different "
			  "ones than are still free, which is half of 32768",
			  totals.waits_refused, totals.waits_refused_uid);

	/* Images in which at least half a percent of the stacks end, as the summary does. */
	images = capture_images(c, &image_count);
	ends = capture_stack_ends(c, &count);
	for (size_t i = 0; i < count; i++) {
		const char *why = NULL;

		if (ends[i].end == UNWIND_NO_ROWS && ends[i].image < image_count &&
		    ends[i].count * 200 >= totals.stacks_user)
			capture_rows(c, ends[i].image, &why);
		if (why)
			tool_warn("stacks end in %s: its call frame information is not used: %s",
				  images[ends[i].image].path, why);
	}
	if ((o->target.stacks == CAPTURE_STACKS_AUTO ||
	     o->target.stacks == CAPTURE_STACKS_SCRIPTS) &&
	    capture_options(c)->stacks == CAPTURE_STACKS_FP)
		tool_warn("call stacks are by frame pointers: this kernel does not take the walk "
			  "by call frame information; --call-graph=cfi says why");
	if (o->target.stacks == CAPTURE_STACKS_SCRIPTS && cfi && !o->wall &&
	    !o->target.event.point && !is_brief(o))
		tool_warn(
			"call stacks were recorded, to name the functions of scripts, or queries; "
			"without: --call-graph=none");
	if (totals.stack_limit && totals.stack_limit < CAPTURE_DEPTH_MAX)
		tool_warn("call stacks have %" PRIu64 " frames%s at most, not %d: sysctl "
			  "kernel.perf_event_max_stack=%d, before recording, lifts that",
			  totals.stack_limit, cfi ? " of the kernel" : "", CAPTURE_DEPTH_MAX,
			  CAPTURE_DEPTH_MAX);
	for (size_t i = 0; i < o->target.wishes.count && cfi; i++)
		if (!capture_has_label(c, i))
			tool_warn("--label %s: no image of what was recorded has a variable %s",
				  o->target.wishes.wishes[i].label,
				  o->target.wishes.wishes[i].symbol);
	for (size_t i = 0; i < image_count && cfi && o->target.wishes.knows_programs; i++) {
		const char *program = images[i].path && images[i].fd >= 0 && !images[i].provider
					      ? context_unknown_version(images[i].fd)
					      : NULL;

		if (program)
			tool_warn(
				"%s: the labels of this version of %s are not read: it is unknown "
				"where they are",
				images[i].path, program);
	}
	if (capture_lacks_thread_locals(c))
		tool_warn("thread-local variables of libraries that were opened at run time have "
			  "no label: it is unknown where their C library keeps them");
	if (!o->verbose)
		return;
	for (size_t i = 0; i < refusals->count; i++)
		tool_warn("user %d: %" PRIu64 " %s", (int)refusals->all[i].uid,
			  refusals->all[i].count,
			  account_counters[refusal_counters[refusals->all[i].cause]].what);
	capture_tables(c, &tables);
	if (tables.images)
		tool_warn("call frame information: %zu images, %zu rows, %zu KiB of %zu; no room "
			  "for %zu images",
			  tables.images, tables.rows, tables.bytes / 1024, tables.room_bytes / 1024,
			  tables.no_room);
	if (capture_tick_ns(c))
		tool_warn("clock %s, period %" PRIu64 " ns, %u-bit target", capture_event_name(c),
			  capture_tick_ns(c), capture_bits(c));
	if (totals.first_tick_ns && capture_tick_ns(c))
		tool_warn("the first tick came %.1f ms after the start",
			  totals.first_tick_ns / 1e6);
	tool_warn("%" PRIu64 " samples came through the ring buffer, the rest through the table",
		  totals.ring);
}

/* Warns of a runtime that did not write the names of its code; with -v, prints what asking took. */
static void warn_of_runtime(const struct asked_runtime *runtime, void *context)
{
	const struct record_options *o = context;

	if (*runtime->why && !runtime->answers)
		tool_warn("%s (PID %d) was asked for the names of its code in vain: %s",
			  runtime->name, runtime->pid, runtime->why);
	else if (*runtime->why)
		tool_warn("%s (PID %d) was asked for the names of its code; the last time, in "
			  "vain: %s",
			  runtime->name, runtime->pid, runtime->why);
	if (runtime->answers && o->verbose)
		tool_warn("%s (PID %d) wrote the names of its code on request, %u times, in "
			  "%.1f ms at most",
			  runtime->name, runtime->pid, runtime->answers, runtime->longest_ns / 1e6);
}

/*
 * Saves a profile that could not be written where it was to go (a full file system) in a new
 * directory below TMPDIR; as pprof, if the format cannot hold it. A fixed name could have been
 * prepared by another user.
 */
static void save_elsewhere(const struct profile *p, const struct format *format)
{
	const struct format *const formats[] = { format, format_by_name("pprof") };
	const char *parent = getenv("TMPDIR");
	char directory[4096], path[4096 + 32];
	struct error e;

	snprintf(directory, sizeof(directory), "%s/profiltool.XXXXXX",
		 parent && *parent ? parent : "/tmp");
	if (!mkdtemp(directory)) {
		tool_warn("could not save it elsewhere either: cannot make %s: %s", directory,
			  strerror(errno));
		return;
	}
	for (size_t i = 0; i < 2; i++) {
		if (formats[i]->write_directory)
			snprintf(path, sizeof(path), "%s", directory);
		else
			snprintf(path, sizeof(path), "%s/profile%s", directory,
				 formats[i]->extensions[0]);
		if (tool_write(p, formats[i], &(struct format_options){ 0 }, path, &e) == 0) {
			tool_warn("the profile is saved in %s", path);
			return;
		}
	}
	tool_fail(&e);
	rmdir(directory);
}

/* Warns of missing ticks and samples, and of an early end. Returns the exit code. */
static int warn_of_result(const struct recording *r, const struct profile *p, const char *waits,
			  const struct record_options *o)
{
	struct idleness idle = {
		.event = profile_has_clock(p) ? NULL : p->event,
		.excluded = p->totals.excluded,
		.out_of_range = p->totals.out_of_range,
		.no_cpu_time = o->target.of_user,
		.cpu_ns = p->totals.cpu_ns,
		.duration_ns = p->duration_ns,
	};
	uint64_t due = profile_due(p), ticks = p->totals.ticks;
	double missing = (double)due * 0.98 - (double)ticks;
	uint64_t unmapped = profile_count_unmapped(p);
	bool own_clock = strcmp(p->event, "tick") != 0;

	/*
	 * Ticks that never came are not lost samples, but the rate is lower than requested. The
	 * number of ticks is random, with a standard deviation of at most the square root of those
	 * that were due: warn beyond four of these and 2 %.
	 */
	if (missing > 0 && missing * missing > 16. * (double)due) {
		if (own_clock)
			tool_warn("%" PRIu64 " ticks were due, %" PRIu64
				  " came: the kernel throttled the clock, or charged threads from "
				  "when they were woken, not from when they ran, or the host of "
				  "this virtual machine took the time",
				  due, ticks);
		else
			tool_warn("%" PRIu64 " ticks were due, %" PRIu64
				  " came. Work in step with the tick gets none: then use another "
				  "clock. Else the host of this virtual machine took the time",
				  due, ticks);
	}
	/*
	 * Most lost records do not matter: they are of other processes, or /proc showed the same
	 * mappings later.
	 */
	if (p->totals.mapping_records_lost && unmapped * 200 > p->totals.counted)
		tool_warn("%" PRIu64 " records of mappings, forks and names of all processes "
			  "were lost: %" PRIu64 " of %" PRIu64 " samples are in no known image",
			  p->totals.mapping_records_lost, unmapped, p->totals.counted);
	if (o->quiet)
		account_say(&p->totals.account, true, TOOL_PREFIX, stderr);
	if (p->totals.counted == 0 && !p->wall_count) {
		snprintf(idle.waits, sizeof(idle.waits), "%s", waits);
		waits_warn(r->target, &idle);
		if (idle.event)
			return EXIT_NO_SAMPLES;
		if (*waits)
			tool_warn("  --wall records for what it waits, and where");
		else if (p->totals.cpu_ns && !p->totals.ticks)
			tool_warn("  -F 9999 takes more samples of what is short");
		return EXIT_NO_SAMPLES;
	}
	if (profile_lost(p)) {
		tool_warn("incomplete: %" PRIu64 " samples were lost", profile_lost(p));
		return EXIT_INCOMPLETE;
	}
	if (r->end == RECORDING_TARGETS && r->duration_ns) {
		tool_warn("incomplete: %s ended%s after %.2f s", r->target,
			  o->scale ? " or became another program" : "", p->duration_ns / 1e9);
		return EXIT_INCOMPLETE;
	}
	return EXIT_DONE;
}

/* Called while names are resolved: a second signal ends that. */
static bool naming_interrupted(void *context)
{
	if (!recording_signal_came(context))
		return false;
	tool_warn("resolving names was interrupted");
	return true;
}

/* Resolves names, writes the profile and prints it. Returns an exit code. */
static int present_profile(struct recording *r, struct profile *p, const struct record_options *o,
			   const struct format *format, const char *waits)
{
	const struct format_options writing = { .no_times = o->no_times };
	struct tool_view view = { .limit = o->limit, .json = o->json };
	bool print = !o->output || strcmp(o->output, "-") != 0;
	int code, write_err = 0;
	char *after = NULL;
	struct error e;

	if (tool_name(p, &o->naming, naming_interrupted, &r->signals, &e))
		return tool_fail(&e);
	if (!print)
		recording_release_signals();
	if (o->output)
		write_err = tool_write(p, format, &writing, o->output, &e);
	if (write_err) {
		tool_fail(&e);
		save_elsewhere(p, format);
	} else if (o->output) {
		tool_warn_of_loss(p, loss_aspects(p), format, &writing, o->output, o->quiet);
	}
	recording_release_signals();
	/* On a terminal, where it would be the last that is seen, an empty table says nothing. */
	view.last = print && tool_table_is_last(&view);
	print &= !view.last || p->sample_count;
	view.last &= print;
	if (print && !view.last && tool_print(p, &view, &e))
		return tool_fail(&e);
	if (!o->quiet &&
	    tool_summarize(p, &view.rows, r->target, o->verbose, view.last ? &after : NULL, &e)) {
		free(after);
		return tool_fail(&e);
	}
	code = warn_of_result(r, p, waits, o);
	if (view.last && tool_print(p, &view, &e))
		code = tool_fail(&e);
	fputs(after ?: "", stderr);
	free(after);
	return write_err ? EXIT_FAILED : code;
}

static int note_victim(struct profile *p, const char *victim)
{
	char *text;
	int err;

	if (asprintf(&text, "victim=%s", victim) < 0)
		return -ENOMEM;
	err = profile_add_comment(p, text);
	free(text);
	return err;
}

/* Stores the command with its arguments as they were given. Returns 0 or -ENOMEM. */
static int note_command(struct profile *p, char *const *command)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; command[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", command[i]);
	err = fclose(out) ? -ENOMEM : profile_string(p, text, &p->command);
	free(text);
	return err;
}

/* status: as of capture_command_status() */
static void warn_of_command(const struct recording *r, const char *command, int status)
{
	/* A Ctrl-C that ends the recording ends the command, too, perhaps after us. */
	if (status < 0 && r->end == RECORDING_TIME)
		tool_warn("%s is still running; recording has stopped", command);
	else if (status >= 0 && WIFSIGNALED(status))
		tool_warn("%s was ended by signal %d (%s)", command, WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (status >= 0 && WEXITSTATUS(status))
		tool_warn("%s ended with status %d", command, WEXITSTATUS(status));
}

/* Has profild record, which listens at `path`: as record_target(). */
static int record_by_service(struct recording *r, const struct record_options *o,
			     const struct capture_options *what, const struct format *format,
			     const char *path)
{
	const char *name = what->target == CAPTURE_COMMAND ? what->command[0] : NULL;
	struct command command = { .go_fd = -1 };
	struct profile *p = NULL;
	char waits[512] = "";
	struct service service;
	struct error e;
	int code = EXIT_DONE, err = 0;

	if (o->scale || o->victim.kind || o->span || o->target.event.point) {
		error_set_kind(&e, ERROR_NOT_PERMITTED, 0,
			       "you may not record: profild records your own processes for you, "
			       "but not with %s",
			       o->scale		       ? "--scale"
			       : o->span	       ? "--span"
			       : o->target.event.point ? "-e"
						       : "--victim");
		return tool_fail(&e);
	}
	if (service_check(&o->target, name != NULL, &e))
		return tool_fail(&e);
	if (name)
		err = command_prepare(&command, what->command, what->command_to_stderr, &e);
	err = err ?: service_start(&service, path, what, command.pid, r->signals, &e);
	if (err) {
		command_release(&command);
		return tool_fail(&e);
	}
	r->service = &service;
	if (!o->quiet)
		tool_warn("recording through profild, at %s", path);
	if (*service.no_waits)
		tool_warn("--wall: without reasons and stacks of waits, which need Linux 5.18: %s",
			  service.no_waits);
	if (name)
		err = command_go(&command, &e);
	err = err ?: recording_run(r, &e);
	err = err ?: service_take(&service, true, &p, &e);
	if (!err && service.end == RECORD_TIME_IS_OVER)
		tool_warn("incomplete: profild records no longer than this");
	if (!err && (live_files_open(p) || (name && note_command(p, what->command))))
		err = error_no_memory(&e);
	if (!err && name)
		warn_of_command(r, name, command_status(&command));
	if (!err && !p->totals.counted) /* before the command is ended */
		waits_describe(&o->target, command.ended ? 0 : command.pid, waits, sizeof(waits));
	service_close(&service);
	r->service = NULL;
	command_release(&command);
	code = err ? tool_fail(&e) : present_profile(r, p, o, format, waits);
	profile_free(p);
	return code;
}

/*
 * Sets *function to that of --span or -e, if there is one: of a process or thread that is recorded,
 * or of the command. Returns 0, or a negative errno with e set.
 */
static int find_function(const struct record_options *o, const char *command,
			 struct capture_function *function, struct error *e)
{
	const char *text = o->span, *point = o->target.event.point;
	pid_t pid = o->target.tid ?: o->target.pid_count ? o->target.pids[0] : 0;
	struct executable program;
	char path[PATH_MAX];
	int err = 0;

	if (point && strncmp(point, FUNCTION_EVENT, strlen(FUNCTION_EVENT)) == 0)
		text = point + strlen(FUNCTION_EVENT);
	if (!text)
		return 0;
	if (command)
		err = executable_find(command, path, e)
			      ?: executable_read_program(path, &program, e);
	return err ?: function_find(text, pid, command ? program.path : NULL, o->span, function, e);
}

/* Records, then writes and prints the profile. Returns an exit code. */
static int record_target(struct recording *r, const struct record_options *o,
			 struct capture_options *what, const struct format *format)
{
	const char *command = what->target == CAPTURE_COMMAND ? what->command[0] : NULL;
	struct capture_function function = { .file = -1 };
	struct capture_point point = { .name = o->target.event.point };
	struct unrecorded unrecorded = { 0 };
	struct profile *p = NULL;
	char waits[512] = "";
	struct error e;
	int err, code;

	capabilities_raise();
	unrecorded_list(&unrecorded, &o->target);
	err = find_function(o, command, &function, &e);
	point.file = function.file;
	point.offset = function.offset;
	what->calls = o->span ? &function : NULL;
	what->point = point.name ? &point : NULL;
	err = err ?: tool_start_capture(what, &r->capture, &e);
	if (function.file >= 0)
		close(function.file);
	if (err) {
		capabilities_lower();
		unrecorded_free(&unrecorded);
		return tool_refuse(&e);
	}
	if (!o->quiet)
		unrecorded_say(&unrecorded);
	tool_warn_of_clock(&o->target);
	if (capture_no_waits(r->capture))
		tool_warn("--wall: without reasons and stacks of waits, which need Linux 5.18: %s",
			  capture_no_waits(r->capture));
	/* An error while recording ends it; what was counted until then is still shown. */
	code = recording_run(r, &e) ? tool_fail(&e) : EXIT_DONE;
	err = capture_stop(r->capture, &e);
	if (r->asker) {
		runtime_asker_finish(r->asker, r->capture);
		err = err ?: capture_find_names(r->capture, &e);
	}
	err = err ?: profile_from_capture(r->capture, &p, &e);
	if (!err && command && note_command(p, what->command))
		err = error_no_memory(&e);
	if (!err && o->victim.text && note_victim(p, o->victim.text))
		err = error_no_memory(&e);
	if (err) {
		code = tool_fail(&e);
		goto out;
	}
	warn_of_capture(r->capture, o);
	if (r->asker)
		runtime_asker_each(r->asker, warn_of_runtime, (void *)o);
	if (command)
		warn_of_command(r, command, capture_command_status(r->capture));
	unrecorded_warn(&unrecorded, p->totals.cpu_ns);
	if (!p->totals.counted) /* before the command is ended */
		waits_describe(&o->target, capture_command_pid(r->capture), waits, sizeof(waits));
out:
	unrecorded_free(&unrecorded);
	capture_free(r->capture);
	capabilities_lower();
	r->capture = NULL;
	if (!err)
		code = present_profile(r, p, o, format, waits) ?: code;
	profile_free(p);
	return code;
}

static int run_record(int argc, char **argv)
{
	struct record_options o = {
		.target.stacks = CAPTURE_STACKS_SCRIPTS,
		.limit = -1,
		.overhead = 2,
		.target.wishes.knows_programs = true,
	};
	struct recording r = { 0 };
	struct capture_options c;
	const struct format *format;
	char target[256], **command;
	const char *service;
	struct error e;
	int first, code = tool_options(&record_command, &o, argc, argv, true, &first);

	if (code >= 0)
		return code;
	if (o.target.event.list)
		return tool_print_events(&e) ? tool_fail(&e) : EXIT_DONE;
	command = first < argc ? argv + first : NULL;
	o.output = tool_output_place(o.format, o.output);
	r.signals = -1;
	if (check_target(&o, command, &e) || check_output(&o, &format, &e) ||
	    check_ignored(&o, format, first, argv, &e) || tool_check_naming(&o.naming, &e)) {
		code = tool_fail(&e);
		goto out;
	}
	tool_skip_targets(&o.target);
	o.naming.quiet = o.quiet;
	service = service_path();
	o.wall |= o.chains;
	if (!o.scale && !service && tool_asker(&o.target, &r.asker, &e)) {
		code = tool_fail(&e);
		goto out;
	}
	r.signals = recording_open_signals(&e);
	if (r.signals < 0) {
		code = tool_fail(&e);
		goto out;
	}
	c = tool_capture_options(&o.target);
	c.victim = o.victim.kind;
	c.victim_pid = o.victim.pid;
	c.victim_name = o.victim.name;
	c.wall = c.waits = o.wall;
	c.every_wait = o.chains;
	c.waits_percent = o.overhead;
	if (o.scale)
		c.stacks = CAPTURE_NO_STACKS;
	else if ((o.wall || o.target.wishes.count) &&
		 (!c.stacks || c.stacks == CAPTURE_STACKS_SCRIPTS))
		c.stacks = CAPTURE_STACKS_AUTO;
	c.scale = o.scale;
	c.offset = o.offset.address;
	c.bufsiz = o.bufsiz;
	if (command) {
		c.target = CAPTURE_COMMAND;
		c.command = command;
		if (c.stacks == CAPTURE_STACKS_SCRIPTS)
			c.stacks = executable_runs_scripts(command, c.is_interpreter)
					   ? CAPTURE_STACKS_AUTO
					   : CAPTURE_NO_STACKS;
		/* Its output would mix with the profile, or with the JSON. */
		c.command_to_stderr = o.json || (o.output && strcmp(o.output, "-") == 0);
	}
	tool_describe_target(&o.target, target, sizeof(target));
	r.target = command ? command[0] : target;
	r.duration_ns = o.duration_ns;
	r.quiet = o.quiet;
	code = service ? record_by_service(&r, &o, &c, format, service)
		       : record_target(&r, &o, &c, format);
out:
	runtime_asker_free(r.asker);
	if (r.signals >= 0)
		close(r.signals);
	tool_target_free(&o.target);
	return code;
}

const struct tool_command record_command = {
	.name = "record",
	.records = true,
	.arguments = "{-p PID|NAME | --pgrep REGEX | -t TID | -a | -u USER | --cgroup PATH | "
		     "--unit UNIT | --container NAME} [OPTION...], or record "
		     "[OPTION...] -- "
		     "COMMAND [ARG...]",
	.help = "Records until -d, Ctrl-C or the target's end, then prints its busiest functions.",
	.purpose = TOOL_RECORD,
	.summary = "a process, a command, a control group or the whole machine",
	.options = options,
	.groups =
		(const struct option_group[]){
			{ "pid", "What to record" },
			{ "frequency", "How to sample" },
			{ "duration", "How long, and what to write" },
			{ "wall", "Waiting" },
			{ "scale", "The histogram of profil(2)" },
			{ "debuginfod", "Names and times" },
			{ "limit", "What to print" },
			{ 0 },
		},
	.run = run_record,
};
