// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture.h"
#include "cli/capabilities.h"
#include "format/loss.h"
#include "record/from_capture.h"
#include "record/live_files.h"
#include "report/why.h"
#include "tool/recording.h"
#include "tool/service.h"
#include "tool/target.h"
#include "tool/tool.h"
#include "util/clock.h"

/* What is read of an archive before an interval, where its causes may be. Bound: pace. */
#define CAUSES_NS (60 * NS_PER_S)
/* Turns of an archive are of the last ten minutes. */
#define ARCHIVE_SINCE "-10m"

/* Of what is printed. */
#define LEAST_PERCENT 1
#define SLOWEST_TURNS 10

struct why_command {
	const char *thread, *process, *without, *span;
	const char *by, *query;	     /* the label of turns, and which of them */
	const char *output, *format; /* of the sum */
	uint64_t duration_ns;	     /* of a recording: 0: until Ctrl-C */
	struct tool_view view;
	struct tool_reading reading;
};

static const struct option_spec options[] = {
	{ "thread", 't', "THREAD", "why threads took so long: a name or TID", option_text,
	  offsetof(struct why_command, thread) },
	{ "pid", 'p', "PROCESS", "why all threads of processes did: a name or PID", option_text,
	  offsetof(struct why_command, process) },
	{ "span", 0, "FUNCTION", "why calls of this function did: of record --span", option_text,
	  offsetof(struct why_command, span) },
	{ "by", 0, "LABEL", "turns with one label together, those that took most first: query",
	  option_text, offsetof(struct why_command, by) },
	{ "query", 0, "PATTERN",
	  "only turns of this query, as --by query prints it: a shell pattern", option_text,
	  offsetof(struct why_command, query) },
	{ "duration", 'd', "SECONDS", "without FILE: record for SECONDS, not until Ctrl-C",
	  tool_option_duration, offsetof(struct why_command, duration_ns) },
	{ "output", 'o', "FILE", "write a profile of what all blocked time was for to FILE, or -",
	  option_text, offsetof(struct why_command, output) },
	{ "format", 'f', "FORMAT", "what to write; else by FILE's name: x.folded, x.pb.gz, ...",
	  option_text, offsetof(struct why_command, format) },
	TOOL_TIME_OPTIONS(struct why_command, reading.query),
	{ "percent", 0, "P", "sum up parts under P % of the whole (1)", tool_option_percent,
	  offsetof(struct why_command, view.percent) },
	{ "limit", 'E', "TURNS", "print the slowest TURNS turns (10); 0: all", tool_option_limit,
	  offsetof(struct why_command, view.limit) },
	{ "without", 0, "WHAT",
	  "also what it would take at best without WHAT: runnable, a reason, a thread, a function",
	  option_text, offsetof(struct why_command, without) },
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(struct why_command, view.json) },
	TOOL_READING_OPTIONS(struct why_command, reading),
	{ 0 },
};

/*
 * Records what the threads of a target may wait for: the whole machine, or through profild its own
 * processes, until o->duration_ns or a signal. name: of the target, in messages. Returns 0 or a
 * negative errno with e set.
 */
static int record_now(const struct why_command *o, struct tool_target *t, const char *name,
		      struct profile **p, struct error *e)
{
	const char *path = service_path(), *no_waits;
	struct service service = { .socket = -1 };
	struct recording r = { .duration_ns = o->duration_ns,
			       .target = name,
			       .quiet = o->reading.naming.quiet };
	struct capture_options c;
	int err;

	if (path && !o->process) {
		error_set_kind(e, ERROR_NOT_PERMITTED, 0,
			       "you may not record: profild records your own processes for you, "
			       "but not a thread");
		error_hint(e, "profiltool why -p PROCESS");
		return -ENOTSUP;
	}
	r.signals = recording_open_signals(e);
	if (r.signals < 0)
		return r.signals;
	t->stacks = CAPTURE_STACKS_AUTO;
	t->all = !path;
	c = tool_capture_options(t);
	c.wall = c.waits = c.every_wait = true;
	if (path) {
		r.service = &service;
		err = service_start(&service, path, &c, 0, r.signals, e);
		no_waits = *service.no_waits ? service.no_waits : NULL;
	} else {
		capabilities_raise();
		err = tool_start_capture(&c, &r.capture, e);
		no_waits = err ? NULL : capture_no_waits(r.capture);
	}
	if (!err && no_waits)
		err = error_set_kind(e, ERROR_KERNEL_LACKS, 0,
				     "waits are not recorded, which needs Linux 5.18: %s",
				     no_waits);
	if (!err && !o->reading.naming.quiet)
		tool_warn("recording %s%s", path ? "your processes through profild, at " : "",
			  path ?: "the whole machine, for what it waits for");
	err = err ?: recording_run(&r, e);
	if (path) {
		err = err ?: service_take(&service, true, p, e);
		if (!err && live_files_open(*p))
			err = error_no_memory(e);
		service_close(&service);
	} else {
		err = err ?: capture_stop(r.capture, e) ?: profile_from_capture(r.capture, p, e);
		capture_free(r.capture);
		capabilities_lower();
	}
	err = err ?: tool_name(*p, &o->reading.naming, recording_signal_came, &r.signals, e);
	recording_release_signals();
	close(r.signals);
	return err;
}

/*
 * Reads an interval of an archive, with what was before. *interval receives it. Returns 0 or
 * -errno with e set.
 */
static int read_archive(const struct why_command *o, const char *path,
			struct query_interval *interval, struct profile **p, struct error *e)
{
	struct tool_query query = o->reading.query;

	query.times = query.fine = true;
	query.before_ns = CAUSES_NS;
	if (!query_has_interval(&query))
		query.since = ARCHIVE_SINCE;
	return query_interval(&query, NULL, interval, e)
		       ?: query_read_interval(path, &query, interval, o->reading.naming.quiet, p,
					      e);
}

/* Writes the sum of what the threads were blocked for. Returns 0 or -errno with e set. */
static int write_sum(const struct why_command *o, const struct segments *s,
		     const struct why_threads *threads, const struct time_interval *interval,
		     const struct format *format, struct error *e)
{
	const struct format_options writing = { 0 };
	struct profile *p = NULL;
	int err = why_sum(s, threads, interval, &p) ? error_no_memory(e) : 0;

	err = err ?: tool_write(p, format, &writing, o->output, e);
	if (!err)
		tool_warn_of_loss(p, loss_aspects(p), format, &writing, o->output,
				  o->reading.naming.quiet);
	profile_free(p);
	return err;
}

/*
 * Prints it of a profile with waits, or with `format` writes it. path: its name in messages; t: of
 * a recording, or NULL; archive: the interval of one, or NULL. Returns an exit code, or -errno with
 * e set.
 */
static int print_why(const struct why_command *o, const struct segments *s, const char *path,
		     const struct tool_target *t, const struct query_interval *archive,
		     const struct format *format, struct error *e)
{
	struct report_table_options table = tool_table_options(&o->view);
	const struct why_options why = {
		.percent = o->view.percent,
		.limit = o->view.limit,
		.without = o->without,
		.span = o->span,
		.pattern = o->query,
		.by_label = o->by,
		.width = table.width,
		.json = o->view.json,
	};
	const char *name = o->thread ?: o->process;
	struct query_interval interval = { .asked = s->recorded };
	struct why_threads threads = { 0 };
	size_t turns = 1;
	int err = why_select(s, name, !o->thread, &threads) ? error_no_memory(e) : 0;

	/* A name of -p may be that of the program, or several. */
	for (size_t i = 0, named = threads.count; t && !named && i < t->pid_count && !err; i++) {
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", t->pids[i]);
		err = why_select(s, pid, true, &threads) ? error_no_memory(e) : 0;
	}
	if (!err && !threads.count) {
		err = error_set(e, 0, "%s has no %s \"%s\"", path, o->thread ? "thread" : "process",
				name);
		if (!t)
			error_hint(e, "profiltool report --by %s %s lists them",
				   o->thread ? "thread" : "process", path);
	}
	if (archive)
		interval = *archive;
	else if (!err && query_has_interval(&o->reading.query))
		err = query_interval(&o->reading.query, &s->recorded, &interval, e);
	if (format) {
		err = err ?: write_sum(o, s, &threads, &interval.asked, format, e);
		free(threads.list);
		return err;
	}
	if (!err && !query_has_interval(&o->reading.query) &&
	    why_print_turns(s, &threads, &why, &turns, stdout))
		err = error_no_memory(e);
	if (!err && !turns && o->span) {
		tool_flush();
		tool_warn("%s has no call of \"%s\" that began and ended%s%s: profiltool report "
			  "--value span lists the functions whose calls it has",
			  path, o->span, name ? " in " : "", name ?: "");
		free(threads.list);
		return EXIT_NO_SAMPLES;
	}
	if (!err && !turns) {
		tool_flush();
		tool_warn("%s: no thread of \"%s\" was idle twice, or began or ended: it has no "
			  "turns%s",
			  path, name,
			  why.json ? "; --around TIME --for DURATION takes any interval"
				   : ", and this is all of its time");
	}
	if (!err && (!turns ? !why.json : query_has_interval(&o->reading.query)) &&
	    why_print_interval(s, &threads, &interval.asked, &why, stdout))
		err = error_no_memory(e);
	free(threads.list);
	tool_flush();
	return err ?: (turns || !why.json ? EXIT_DONE : EXIT_NO_SAMPLES);
}

static int run_why(int argc, char **argv)
{
	struct why_command o = { .view.percent = LEAST_PERCENT, .view.limit = SLOWEST_TURNS };
	struct tool_target target = { .wishes.knows_programs = true };
	const char *path = "the recording", *label;
	const struct format *format = NULL;
	struct query_interval interval = { 0 };
	struct tool_reading reading;
	struct segments s = { 0 };
	struct tool_inputs in;
	struct profile *p = NULL;
	struct error e;
	int first, code = tool_options(&why_command, &o, argc, argv, false, &first);
	bool live, archive;
	int err = 0;

	if (code >= 0)
		return code;
	tool_find_inputs(argv + first, argc - first, &o.reading.query, &in);
	live = !in.count && !o.span;
	archive = in.count && (argc == first || query_is_archive(in.paths[0]));
	if (!(live || in.count == 1) || (o.thread && o.process) ||
	    (!o.thread && !o.process && !o.span) || (in.count && o.duration_ns) ||
	    (o.span && (query_has_interval(&o.reading.query) || o.output)))
		return tool_misuse(
			"profiltool why {--thread THREAD | -p PROCESS} {FILE [--around "
			"TIME --for DURATION] | -d SECONDS}, or --span FUNCTION FILE",
			"%s",
			in.count == 1 && o.duration_ns
				? "--duration is for a recording without FILE"
			: o.span ? "--span takes one profile, all calls of its recording, "
				   "one thread or process at most, and no -o"
			: !o.thread == !o.process ? "why takes a thread, --thread, or a process, -p"
						  : "why takes one profile");
	label = o.by ?: tag_kinds[TAG_QUERY].key;
	if ((o.by || o.query) && query_has_interval(&o.reading.query))
		return tool_misuse("leave out --since, --until, --around and --for",
				   "--by and --query are for turns, not for an interval");
	if (o.query && o.by && strcmp(o.by, tag_kinds[TAG_QUERY].key) != 0)
		return tool_misuse("--by query", "--query excludes --by another label");
	if (o.output || o.format) {
		format = tool_output_format(o.format, o.output, &e);
		if (format && !o.output)
			error_usage(&e, "see profiltool why --help", "-f needs -o");
		if (!format || !o.output || tool_check_output(format, o.output, &e))
			return tool_fail(&e);
	}
	if (live && o.process)
		err = tool_option_pids(o.process, &target, &e)
			      ?: tool_find_target(&target, o.reading.naming.quiet, &e);
	if (live) {
		err = err ?: record_now(&o, &target, o.thread ?: o.process, &p, &e);
	} else if (archive) {
		path = in.paths[0];
		err = read_archive(&o, path, &interval, &p, &e);
	} else {
		path = in.paths[0];
		reading = o.reading; /* the causes of an interval may be before it */
		query_clear_interval(&reading.query);
		err = tool_read_all(in.paths, 1, &reading, &p, &e);
	}
	if (!err && !p->waits.count) {
		err = error_set(&e, 0, "%s does not have when threads waited", path);
		error_hint(&e, archive ? "profild --continuous --chains keeps it, as long as "
					 "--retain-times says"
				       : "profiltool record -a --chains -o FILE.pb.gz");
	}
	if (!err && o.span && profile_find_sum(p, PROFILE_SUM_SPAN) == p->value_type_count) {
		err = error_set(&e, 0, "%s does not have when functions were called", in.paths[0]);
		error_hint(&e, "profiltool record -a --chains --span IMAGE:%s -o FILE.pb.gz",
			   o.span);
	}
	if (!err && !p->waits.complete)
		tool_warn("%s: waits under 10 ms are summed up, and their wakers have no TID: "
			  "record --chains keeps each",
			  path);
	if (!err && segments_make(p, label, &s))
		err = error_no_memory(&e);
	if (!err && (o.by || o.query) && !s.label) {
		err = error_set(&e, 0, "%s: no turn has a label \"%s\"", path, label);
		error_hint(&e, TOOL_LABEL_HINT, (int)strlen(label), label);
	}
	err = err
		      ?: print_why(&o, &s, path, live ? &target : NULL, archive ? &interval : NULL,
				   format, &e);
	if (err < 0)
		code = live && !p ? tool_refuse(&e) : tool_fail(&e);
	else
		code = err ?: tool_done(p);
	segments_free(&s);
	profile_free(p);
	tool_target_free(&target);
	return code;
}

const struct tool_command why_command = {
	.name = "why",
	.records = true,
	.arguments = "{--thread THREAD | -p PROCESS} [OPTION...] [FILE], or why --span FUNCTION "
		     "[OPTION...] FILE",
	.help = "Prints why a thread took so long: what the threads did that it waited for, and so "
		"on. Without FILE it records first, until -d or Ctrl-C.",
	.purpose = TOOL_LOOK,
	.summary = "why a moment, or the slowest turns, took so long",
	.options = options,
	.run = run_why,
};
