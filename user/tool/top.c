// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "report/live/live.h"
#include "tool/recording.h"
#include "tool/target.h"
#include "tool/tool.h"
#include "tool/top_recorded.h"
#include "tool/top_screen.h"
#include "tool/top_terminal.h"
#include "tool/top_watch.h"
#include "util/clock.h"
#include "util/number.h"

/* Bound: caller: the least interval of top; then: the option is refused. */
#define SHORTEST_INTERVAL_NS (100 * NS_PER_MS)

struct top_options {
	struct tool_target target;
	struct recorded show;
	uint64_t interval_ns;
	struct half_life {
		uint64_t ns;
		bool given;
	} half_life;
	long limit;
	const char *query; /* of what runs now; NULL: any */
	uint64_t tables;   /* to print; 0: until the end */
	bool json, plain;
};

static int parse_interval(const char *value, void *member, struct error *e)
{
	uint64_t interval;

	if (number_parse_seconds(value, &interval) || interval < SHORTEST_INTERVAL_NS)
		return error_set(e, 0, "-d takes seconds, 0.1 at least, not \"%s\"", value);
	*(uint64_t *)member = interval;
	return 0;
}

static int parse_half_life(const char *value, void *member, struct error *e)
{
	struct half_life *half_life = member;

	if (number_parse_seconds(value, &half_life->ns))
		return error_set(e, 0, "--half-life takes seconds, not \"%s\"", value);
	half_life->given = true;
	return 0;
}

static int parse_tables(const char *value, void *member, struct error *e)
{
	if (number_parse(value, 1, UINT64_MAX, member))
		return error_set(e, 0, "--tables takes a number above 0, not \"%s\"", value);
	return 0;
}

static int parse_kind(const char *value, void *member, struct error *e)
{
	struct recorded *show = member;
	const struct row_view *view = row_view_find(value, &show->label);
	char names[TOOL_LIST_SIZE];

	/* What runs is of one host, and it is now. Control groups are recorded by perf. */
	if (view &&
	    !(view->fields & (ROW_OF_TAG(TAG_CGROUP) | ROW_OF_TAG(TAG_HOST) | ROW_OF_TAG(TAG_PEER) |
			      ROW_OF_TAG(TAG_TIME) | ROW_OF_TAG(TAG_WAKER)))) {
		show->view = view;
		show->any_label = strchr(value, ':');
		return 0;
	}
	tool_list_kinds(names, sizeof(names));
	error_set(e, 0, "--by takes one of %s, or a label, not \"%s\"", names, value);
	if (view && !(view->fields & ROW_OF_TAG(TAG_CGROUP)))
		error_hint(e, "profiltool report --since TIME --by %s;", value);
	return -EINVAL;
}

#define MEMBER(name) offsetof(struct top_options, name)

static const struct option_spec options[] = {
	TOOL_TARGET_OPTIONS(struct top_options, target),
	TOOL_SAMPLING_OPTIONS(struct top_options, target),
	TOOL_CONTEXT_OPTIONS(struct top_options, target),
	TOOL_INTERVAL_OPTIONS(struct top_options, show.reading.query),
	{ "interval", 'd', "SECONDS", "time between updates (1); fractions allowed", parse_interval,
	  MEMBER(interval_ns) },
	{ "delay", 0, "SECONDS", NULL, parse_interval, MEMBER(interval_ns) }, /* its old name */
	{ "half-life", 0, "SECONDS",
	  "time after which a sample counts half (5; as text 0: each table has only its own "
	  "samples)",
	  parse_half_life, MEMBER(half_life) },
	{ "by", 0, "KIND", "what rows are each (function), or a label", parse_kind, MEMBER(show) },
	TOOL_WAIT_OPTIONS(struct top_options, show.filter),
	RECORDED_SORT_OPTION(MEMBER(show)),
	{ "inline", 0, NULL, "resolve source lines and inlined functions", NULL,
	  MEMBER(show.reading.naming.lines) },
	{ "states", 0, NULL, "show the states of threads: on CPU, runnable, blocked, idle", NULL,
	  MEMBER(show.states) },
	{ "plain", 0, NULL, "print tables one after the other, on a terminal, too", NULL,
	  MEMBER(plain) },
	{ "stdio", 0, NULL, "the same as --plain", NULL, MEMBER(plain) },
	{ "tables", 0, "N", "end after N tables; means --plain", parse_tables, MEMBER(tables) },
	{ "limit", 'E', "ROWS", "rows of a table (20); 0: all; on the whole screen: as fit",
	  tool_option_limit, MEMBER(limit) },
	{ "json", 0, NULL, "print each table as a line of JSON; means --plain", NULL,
	  MEMBER(json) },
	{ 0 },
};

static int print_table(struct watch *w, const struct top_options *o, struct error *e)
{
	size_t limit = o->limit ? (size_t)o->limit : SIZE_MAX;
	struct live_table_options table = { .count = limit };
	int err = 0;

	if (o->json) {
		err = live_json(&w->live, &w->status, limit, stdout);
	} else {
		err = live_header(&w->live, &w->status,
				  o->show.states ? LIVE_HEADER_LINES - 1 : LIVE_HEADER_LINES, 0,
				  stdout);
		if (!err && o->show.states)
			err = live_states(&w->live, o->show.view, 0, false, limit, stdout);
		else
			err = err ?: live_table(&w->live, &table, stdout);
		putchar('\n');
	}
	return err ? error_no_memory(e) : 0;
}

/*
 * Prints tables until --tables are printed, a signal comes, the targets have ended, or standard
 * output fails, which main() reports. *complete: no target ended before the last table.
 */
static int print_tables(struct watch *w, const struct top_options *o, int signals, bool *complete,
			struct error *e)
{
	struct pollfd fds[2] = { { .fd = signals, .events = POLLIN } };
	uint64_t next = now_ns(), printed = 0;
	int err = 0;

	while (!err && !w->ended && (!o->tables || printed < o->tables)) {
		next += o->interval_ns;
		err = watch_wait(w, fds, 1, next, e);
		if (err || recording_signal_came(&signals))
			break;
		err = watch_update(w, e) ?: print_table(w, o, e);
		printed++;
		if (tool_flush())
			break;
	}
	if (!err && o->show.view->fields & ROW_LABEL && w->any &&
	    !row_view_has_tag(o->show.view, w->live.p))
		tool_warn("--by %s: no sample has a label %s", o->show.view->name,
			  o->show.view->name);
	*complete = !w->ended || printed >= o->tables;
	return err;
}

static bool chooses_waits(const struct top_options *o)
{
	return o->show.filter.states || o->show.filter.hide_idle || o->show.filter.reason;
}

/* Returns an exit code. */
static int show_live(const struct top_options *o, int signals)
{
	struct unrecorded unrecorded = { 0 };
	struct watch w;
	struct error e;
	bool complete = true;
	int err, code;

	unrecorded_list(&unrecorded, &o->target);
	err = watch_start(&w, &o->target, o->half_life.ns, signals, &e);
	if (err) {
		unrecorded_free(&unrecorded);
		watch_free(&w);
		/* What this user lacks is not why profild refused. */
		code = service_path() ? tool_fail(&e) : tool_refuse(&e);
		return err == -EINTR ? EXIT_NO_SAMPLES : code;
	}
	unrecorded_say(&unrecorded);
	tool_warn_of_clock(&o->target);
	if (o->show.sort == LIVE_BY_DELAY &&
	    profile_find_sum(w.live.p, PROFILE_SUM_DELAY) == w.live.p->value_type_count) {
		error_set_kind(&e, ERROR_KERNEL_LACKS, 0,
			       "this kernel does not let ticks know who is runnable");
		error_hint(&e, "it requires CONFIG_FAIR_GROUP_SCHED; or use another --sort");
		unrecorded_free(&unrecorded);
		watch_free(&w);
		return tool_fail(&e);
	}
	if (o->show.states && !w.has_wall) {
		error_set_kind(&e, ERROR_KERNEL_LACKS, 0,
			       "this kernel keeps no account of the states of threads");
		error_hint(&e, "it requires CONFIG_SCHED_INFO and CONFIG_FAIR_GROUP_SCHED: "
			       "profiltool check");
		unrecorded_free(&unrecorded);
		watch_free(&w);
		return tool_fail(&e);
	}
	err = o->query ? live_enter_query(&w.live, o->query, &e) : 0;
	if (!err && chooses_waits(o))
		err = live_enter_states(&w.live, &o->show.filter, &e);
	live_show(&w.live, o->show.view);
	w.live.sort = o->show.sort;
	w.live.lines |= o->show.reading.naming.lines;
	if (err)
		;
	else if (o->plain)
		err = print_tables(&w, o, signals, &complete, &e);
	else
		err = screen_run(&w, signals, o->interval_ns, o->show.states ? 'w' : 0, &e);
	recording_release_signals();
	err = err ?: watch_stop(&w, &e);
	if (err) {
		code = tool_fail(&e);
	} else if (!w.any) {
		waits_warn(w.status.target, &w.idle);
		code = EXIT_NO_SAMPLES;
	} else if (w.status.lost) {
		tool_warn("incomplete: %" PRIu64 " samples were lost", w.status.lost);
		code = EXIT_INCOMPLETE;
	} else {
		if (w.ended)
			tool_warn("%s%s has ended",
				  complete ? "" : "incomplete: ", w.status.target);
		code = complete ? EXIT_DONE : EXIT_INCOMPLETE;
	}
	unrecorded_warn(&unrecorded, w.cpu_ns);
	unrecorded_free(&unrecorded);
	watch_free(&w);
	return code;
}

/* Shows files, or the archive, on the live view's screen. Returns an exit code. */
static int show_recorded(struct top_options *o, char *const *paths, int count, int signals)
{
	struct watch w;
	struct error e;
	int code, err = recorded_open(&o->show, &w, paths, count, &e);

	if (!err && w.any && o->plain)
		err = print_table(&w, o, &e);
	else if (!err && w.any)
		err = screen_run(&w, signals, o->interval_ns, o->show.states ? 'w' : 0, &e);
	recording_release_signals();
	code = err ? tool_fail(&e) : recorded_end(&o->show, &w, paths, count);
	watch_free(&w);
	recorded_free(&o->show);
	return code;
}

static int check_ignored(const struct top_options *o, bool recorded, int first, char **argv,
			 struct error *e)
{
	bool of_code = o->show.view->fields & ROW_CODE;
	const struct tool_ignored ignored[] = {
		{ recorded, "what was recorded before",
		  "frequency event call-graph unwind-memory native ask-runtimes no-ask-runtimes "
		  "children no-inherit user kernel label context no-context literal interval "
		  "delay half-life",
		  "leave it out, or watch what runs now: -p PID" },
		{ !capture_is_clock(o->target.event.kind), "what is no clock: top shows CPU time",
		  "event", "profiltool record -e records it" },
		{ o->show.states && o->show.sort != LIVE_BY_SELF &&
			  o->show.sort != LIVE_BY_RUNNABLE,
		  "--states, which has the longest runnable first", "sort", NULL },
		{ o->show.states && of_code, "--states, whose rows are not code", "by",
		  "--by process, thread, unit, ..." },
		{ o->show.states, "--states, which has all of them", "state reason idle", NULL },
		{ o->show.sort == LIVE_BY_RUNNABLE && of_code, "rows of code", "sort",
		  "--by thread or process has how long they were runnable" },
	};

	return tool_check_ignored(&top_command, ignored, sizeof(ignored) / sizeof(*ignored), first,
				  argv, e);
}

/* Of what runs now, it is not known which labels samples will have: a name may be misspelt. */
static int check_label(const struct top_options *o, struct error *e)
{
	const struct context_wishes *wishes = &o->target.wishes;
	char names[TOOL_LIST_SIZE];

	if (!(o->show.view->fields & ROW_LABEL) || o->show.any_label)
		return 0;
	for (size_t i = 0; i < wishes->count; i++)
		if (strcmp(wishes->wishes[i].label, o->show.view->name) == 0)
			return 0;
	tool_list_kinds(names, sizeof(names));
	return error_usage(e, "--by label:NAME takes any name",
			   "--by takes one of %s, or a name of --label, not \"%s\"", names,
			   o->show.view->name);
}

static int run_top(int argc, char **argv)
{
	struct top_options o = {
		.target.stacks = CAPTURE_STACKS_SCRIPTS,
		.target.wishes.knows_programs = true,
		.interval_ns = NS_PER_S,
		.half_life.ns = 5 * NS_PER_S,
		.show.view = row_views,
		.limit = 20,
	};
	struct tool_query *q = &o.show.reading.query;
	bool recorded;
	struct error e;
	int first, signals, kinds, code = tool_options(&top_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	/* Without a time, they are what runs now. */
	if (first == argc && !query_has_interval(q) && !q->host_count) {
		o.target.unit = q->labels.tags[TAG_UNIT];
		o.target.container = q->labels.tags[TAG_CONTAINER];
		o.query = q->labels.tags[TAG_QUERY];
		q->labels.tags[TAG_UNIT] = q->labels.tags[TAG_CONTAINER] = NULL;
		q->labels.tags[TAG_QUERY] = NULL;
	} else {
		q->labels.tags[TAG_USER] = o.target.of_user;
		o.target.of_user = NULL;
	}
	kinds = tool_target_kinds(&o.target);
	if (kinds > 1 || (kinds && first < argc))
		return tool_misuse("profiltool top -p PID; see profiltool top --help",
				   "%s" TARGET_KINDS " exclude each other",
				   first < argc ? "a FILE, " : "");
	if (kinds && query_is_given(q))
		return tool_misuse("select by --unit, --container, --comm or -u, without -p, -t, "
				   "-a and --cgroup",
				   "the archive has all processes");
	recorded = first < argc || query_is_given(q);
	if (check_ignored(&o, recorded, first, argv, &e) || (!recorded && check_label(&o, &e)))
		return tool_fail(&e);
	o.target.all |= kinds == 0;
	o.plain |= o.json || o.tables || !terminal_is_fit();
	o.target.cpus = o.show.view->fields & ROW_OF_TAG(TAG_CPU);
	o.target.waits = !recorded && (o.show.view->fields & ROW_STATE || chooses_waits(&o));
	if (o.show.states && o.show.view->fields & ROW_CODE)
		o.show.view = row_view_by_name("process");
	if ((o.query || o.target.wishes.count || o.target.waits ||
	     o.show.view->fields & ROW_CONTEXT) &&
	    o.target.stacks == CAPTURE_STACKS_SCRIPTS)
		o.target.stacks = CAPTURE_STACKS_AUTO;
	if (o.plain && !o.half_life.given)
		o.half_life.ns = 0;
	if (tool_find_target(&o.target, false, &e)) {
		tool_target_free(&o.target);
		return tool_fail(&e);
	}
	tool_skip_targets(&o.target);
	signals = recording_open_signals(&e);
	if (signals < 0)
		code = tool_fail(&e);
	else if (recorded)
		code = show_recorded(&o, argv + first, argc - first, signals);
	else
		code = show_live(&o, signals);
	if (signals >= 0)
		close(signals);
	tool_target_free(&o.target);
	return code;
}

const struct tool_command top_command = {
	.name = "top",
	.records = true,
	.arguments = "[-p PID|NAME | -t TID | -a | -u USER | --cgroup PATH | FILE...] [OPTION...]",
	.help = "Shows the busiest functions of processes, a thread, a control group or the "
		"machine (default), live; or those of profiles.",
	.purpose = TOOL_LOOK,
	.summary = "the busiest functions, live",
	.options = options,
	.groups =
		(const struct option_group[]){
			{ "pid", "What to watch" },
			{ "frequency", "How to sample" },
			{ "since", "Which samples of FILE" },
			{ "interval", "What to show" },
			{ 0 },
		},
	.run = run_top,
};
