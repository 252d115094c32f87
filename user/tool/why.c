// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "report/why/why.h"
#include "tool/tool.h"

/* Of what is printed. */
#define LEAST_PERCENT 1
#define SLOWEST_TURNS 10

struct why_command {
	const char *thread, *process, *without;
	struct tool_view view;
	struct tool_reading reading;
};

static const struct option_spec options[] = {
	{ "thread", 't', "THREAD", "why threads took so long: a name or TID", option_text,
	  offsetof(struct why_command, thread) },
	{ "pid", 'p', "PROCESS", "why all threads of processes did: a name or PID", option_text,
	  offsetof(struct why_command, process) },
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

/* Prints it of a profile with waits. Returns an exit code, or -errno with e set. */
static int print_why(const struct why_command *o, const struct segments *s, const char *path,
		     struct error *e)
{
	struct report_table_options table = tool_table_options(&o->view);
	const struct why_options why = {
		.percent = o->view.percent,
		.limit = o->view.limit,
		.without = o->without,
		.width = table.width,
		.json = o->view.json,
	};
	const char *name = o->thread ?: o->process;
	struct query_interval interval;
	struct why_threads threads;
	size_t turns = 1;
	int err = why_select(s, name, !o->thread, &threads) ? error_no_memory(e) : 0;

	if (!err && !threads.count) {
		err = error_set(e, 0, "%s has no %s \"%s\"", path, o->thread ? "thread" : "process",
				name);
		error_hint(e, "profiltool report --by %s %s lists them",
			   o->thread ? "thread" : "process", path);
	}
	if (!err && query_has_interval(&o->reading.query)) {
		err = query_interval(&o->reading.query, &s->recorded, &interval, e);
		if (!err && why_print_interval(s, &threads, &interval.asked, &why, stdout))
			err = error_no_memory(e);
	} else if (!err && why_print_turns(s, &threads, &why, &turns, stdout)) {
		err = error_no_memory(e);
	}
	free(threads.list);
	tool_flush();
	if (err || turns)
		return err;
	tool_warn("%s: no thread of \"%s\" was idle twice, or began or ended: it has no turns; "
		  "--around TIME --for DURATION takes any interval",
		  path, name);
	return EXIT_NO_SAMPLES;
}

static int run_why(int argc, char **argv)
{
	struct why_command o = { .view.percent = LEAST_PERCENT, .view.limit = SLOWEST_TURNS };
	struct tool_reading reading;
	struct segments s = { 0 };
	struct tool_inputs in;
	struct profile *p = NULL;
	struct error e;
	int first, code = tool_options(&why_command, &o, argc, argv, false, &first);
	int err;

	if (code >= 0)
		return code;
	tool_find_inputs(argv + first, argc - first, NULL, &in);
	if (in.count != 1 || !o.thread == !o.process)
		return tool_misuse("profiltool why FILE {--thread THREAD | -p PROCESS} [--around "
				   "TIME --for DURATION]",
				   "%s",
				   in.count == 1 ? "why takes a thread, --thread, or a process, -p"
						 : "why takes one profile");
	reading = o.reading; /* the causes of an interval may be before it */
	query_clear_interval(&reading.query);
	err = tool_read_all(in.paths, 1, &reading, &p, &e);
	if (!err && !p->waits.count) {
		err = error_set(&e, 0, "%s does not have when threads waited", in.paths[0]);
		error_hint(&e, "profiltool record -a --chains -o FILE.pb.gz");
	}
	if (!err && !p->waits.complete)
		tool_warn("%s: waits under 10 ms are summed up, and their wakers have no TID: "
			  "record --chains keeps each",
			  in.paths[0]);
	if (!err && segments_make(p, &s))
		err = error_no_memory(&e);
	err = err ?: print_why(&o, &s, in.paths[0], &e);
	code = err < 0 ? tool_fail(&e) : err ?: tool_done(p);
	segments_free(&s);
	profile_free(p);
	return code;
}

const struct tool_command why_command = {
	.name = "why",
	.arguments = "{--thread THREAD | -p PROCESS} [OPTION...] FILE",
	.help = "Prints why a thread took so long: what the threads did that it waited for, and so "
		"on.",
	.purpose = TOOL_LOOK,
	.summary = "why a moment, or the slowest turns, took so long",
	.options = options,
	.run = run_why,
};
