// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "profile/latency.h"
#include "report/calls/call_view.h"
#include "report/diff/moment.h"
#include "tool/tool.h"

/* Percent of all samples that a line of a call tree has at least. */
#define TREE_PERCENT 1

struct report_options {
	struct tool_view view;
	struct tool_reading reading;
	struct profile_filter filter;
	struct profile_filtered filtered;
	bool tree, for_perf, verbose, latency;
	const char *callers, *callees; /* functions */
	const char *against;	       /* what the interval is compared with */
};

/* What the account of threads has, as --sort takes it. */
static const struct {
	const char *name;
	size_t member;
} wall_sorts[] = {
	{ "wall", offsetof(struct profile_wall, wall_ns) },
	{ "on-cpu", offsetof(struct profile_wall, on_cpu_ns) },
	{ "runnable", offsetof(struct profile_wall, runnable_ns) },
	{ "blocked", offsetof(struct profile_wall, blocked_ns) },
	{ "idle", offsetof(struct profile_wall, idle_ns) },
	{ "unknown", offsetof(struct profile_wall, unknown_ns) },
};

static int parse_sort(const char *value, void *member, struct error *e)
{
	struct rows_options *rows = member;
	const struct row_view *view = tool_view_of_keys(value);

	if (view) {
		rows->view = view;
		return 0;
	}
	rows->by_wall = 0;
	for (size_t i = 0; i < sizeof(wall_sorts) / sizeof(*wall_sorts); i++)
		if (strcmp(value, wall_sorts[i].name) == 0)
			rows->by_wall = wall_sorts[i].member;
	if (!rows->by_wall && strcmp(value, "self") != 0 && strcmp(value, "total") != 0)
		return error_set(
			e, 0,
			"--sort takes self, total, of threads wall, on-cpu, runnable, blocked, "
			"idle or unknown, or of perf's keys one of " TOOL_SORT_KEYS
			", or several as comm,dso,sym, not \"%s\"",
			value);
	rows->by_total = strcmp(value, "total") == 0;
	return 0;
}

static int set_false(const char *value, void *member, struct error *e)
{
	(void)value;
	(void)e;
	*(bool *)member = false;
	return 0;
}

static const struct option_spec options[] = {
	{ "tree", 0, NULL, "the call tree, from the outermost functions on", NULL,
	  offsetof(struct report_options, tree) },
	{ "callers", 0, "FUNCTION", "who calls a function, as a tree", option_text,
	  offsetof(struct report_options, callers) },
	{ "callees", 0, "FUNCTION", "what a function calls, as a tree", option_text,
	  offsetof(struct report_options, callees) },
	{ "against", 0, "OTHER",
	  "what differs in the interval from another one: before, rest, TIME..TIME", option_text,
	  offsetof(struct report_options, against) },
	{ "percent", 0, "PERCENT", "leave out what has less of all samples; trees: 1",
	  tool_option_percent, offsetof(struct report_options, view.percent) },
	{ "percent-limit", 0, "PERCENT", "the same as --percent", tool_option_percent,
	  offsetof(struct report_options, view.percent) },
	{ "sort", 's', "KEY",
	  "order rows by self (default) or total, of threads by wall, on-cpu, runnable, blocked "
	  "or idle; or what rows are, by perf's keys: " TOOL_SORT_KEYS,
	  parse_sort, offsetof(struct report_options, view.rows) },
	{ "children", 0, NULL, "the same as --sort total", NULL,
	  offsetof(struct report_options, view.rows.by_total) },
	{ "no-children", 0, NULL, "the same as --sort self", set_false,
	  offsetof(struct report_options, view.rows.by_total) },
	{ "show-nr-samples", 'n', NULL, "for those who know perf: numbers are always shown", NULL,
	  offsetof(struct report_options, for_perf) },
	{ "stdio", 0, NULL, "for those who know perf: the output is always text", NULL,
	  offsetof(struct report_options, for_perf) },
	{ "cpu-time", 0, NULL, "columns of CPU seconds and percent of a CPU, of functions, too",
	  NULL, offsetof(struct report_options, view.cpu_time) },
	{ "delay", 0, NULL, "columns of how long others were runnable meanwhile", NULL,
	  offsetof(struct report_options, view.rows.delay) },
	{ "latency", 0, NULL,
	  "what made it take long: divide each tick by how many threads ran then", NULL,
	  offsetof(struct report_options, latency) },
	TOOL_INPUT_OPTION(struct report_options, reading),
	TOOL_QUERY_OPTIONS(struct report_options, reading.query),
	TOOL_FILTER_OPTIONS(struct report_options, filter),
	TOOL_VIEW_OPTIONS(struct report_options, view),
	TOOL_READING_OPTIONS(struct report_options, reading),
	{ "verbose", 'v', NULL, "print all of the summary, on a terminal, too", NULL,
	  offsetof(struct report_options, verbose) },
	{ 0 },
};

static bool is_tree(const struct report_options *o)
{
	return o->tree || o->callers || o->callees;
}

static int print_tree(const struct profile *p, const struct report_options *o, struct error *e)
{
	const struct report_table_options table = tool_table_options(&o->view);
	struct call_view_style style = { .width = table.width, .color = table.color };
	locale_t locale = newlocale(LC_CTYPE_MASK, "", 0);
	const struct row_view *by = o->view.rows.view;
	struct call_view_options what = {
		.roots = CALL_TREE_FUNCTIONS,
		.function = o->callers ?: o->callees,
		.image = o->view.rows.image,
		.callers = o->callers,
		.percent = o->view.percent < 0 ? TREE_PERCENT : o->view.percent,
		.limit = MAX(o->view.limit, 0),
		.value = o->view.rows.value,
		.filtered = &o->filtered,
	};
	struct call_view v;
	int err;

	/* Lines can be drawn where the terminal is of the locale's codeset. */
	style.utf8 = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
	if (locale)
		freelocale(locale);
	if (by && by->fields & ROW_THREAD)
		what.roots = CALL_TREE_THREADS;
	else if (by && by->fields & ROW_PROCESS)
		what.roots = CALL_TREE_PROCESSES;
	err = call_view_make(&v, p, &what, e);
	if (!err &&
	    (o->view.json ? call_view_json(&v, p, stdout) : call_view_print(&v, &style, stdout)))
		err = error_no_memory(e);
	call_view_free(&v);
	tool_flush();
	return err;
}

/*
 * True if there is nothing to print. Recorded calls and the account of threads are printed even
 * without samples; but not where a filter, which chooses samples, found none.
 */
static bool is_empty(const struct profile *p, const struct report_options *o)
{
	const struct row_view *by = o->view.rows.view;
	bool of_code = is_tree(o) || !by || by->fields & ROW_CODE;

	return !profile_magnitude(p, o->view.rows.value) && !(is_tree(o) && p->arc_count) &&
	       !(p->wall_count && !(of_code && o->filtered.values)) &&
	       !rows_count_calls(p, &o->view.rows);
}

static int check_options(const struct report_options *o, int first, char **argv, struct error *e)
{
	const struct rows_options *rows = &o->view.rows;
	const struct row_view *by = rows->view;
	bool only_self = by && !(by->fields & ROW_CODE) && rows->by_total;
	bool by_time = by && by->fields & ROW_OF_TAG(TAG_TIME);
	/* Samples and their CPU time are what every view shows. */
	bool other_value = rows->value && strcmp(rows->value, "samples") != 0 &&
			   strcmp(rows->value, "cpu") != 0;
	const struct tool_ignored ignored[] = {
		{ is_tree(o), "trees", "delay", "--value delay" },
		{ is_tree(o), "trees", "cpu-time against", "leave it out, or the tree" },
		{ o->tree, "trees", "image", "--callers, --callees and tables take it" },
		{ o->latency, "--latency, which is a value of its own", "value cpu-time delay",
		  NULL },
		{ o->latency, "--latency, of ticks on a CPU", "state reason idle waker", NULL },
		{ o->against, "--against, which compares samples, and waits", "latency", NULL },
		{ by_time, "--by time, which counts samples", "latency", NULL },
		{ o->against && other_value, "--against, which compares samples, and waits",
		  "value", "--state and --reason choose waits" },
		{ o->against, "--against, which compares samples, and waits", "waker delay",
		  "profiltool diff --since TIME --until TIME --value wall takes it" },
		{ o->against, "--against, which chooses its rows by chance",
		  "percent percent-limit cpu-time children", NULL },
		{ o->against && (rows->by_total || rows->by_wall), "--against, which compares both",
		  "sort", NULL },
		{ rows->by_wall, "--sort by times of threads", "percent percent-limit", NULL },
		{ by_time && other_value, "--by time, which counts samples", "value",
		  "--state and --reason choose waits; --by function and others take it" },
		{ by_time, "--by time", "image delay percent percent-limit",
		  "leave it out, or use --by function" },
		{ only_self, "rows that are no code: they call nothing", "children", NULL },
		{ only_self, "rows that are no code: they call nothing", "sort", NULL },
		{ o->reading.naming.quiet, "-q, which prints no summary", "verbose", NULL },
	};

	if (o->tree + !!o->callers + !!o->callees > 1)
		error_set_kind(e, ERROR_USAGE, 0,
			       "--tree, --callers and --callees are three views");
	else if (is_tree(o) && by && by != row_views &&
		 (!o->tree || !(by->fields & ROW_PROCESS) || by->fields & ROW_CODE))
		error_set_kind(e, ERROR_USAGE, 0,
			       o->tree ? "--by %s is not for trees: only process and thread are"
				       : "--by %s is not for callers and callees",
			       by->name);
	else if (is_tree(o) && (rows->by_total || rows->by_wall))
		error_set_kind(e, ERROR_USAGE, 0, "--sort is not for trees: they are by total");
	else if (rows->by_wall && (!by || by->fields & ROW_WITHOUT_WALL))
		error_set_kind(e, ERROR_USAGE, 0,
			       "%s have no times of threads to sort by: --by thread, process, "
			       "unit and others do",
			       by ? by->plural : "functions");
	else if (o->against && !is_tree(o) && !query_has_interval(&o->reading.query))
		error_set_kind(e, ERROR_USAGE, 0, "--against needs an interval: --around TIME");
	else if (o->against && by && by->fields & (ROW_ADDRESS | ROW_SOURCE | ROW_OF_TAG(TAG_TIME)))
		error_set_kind(e, ERROR_USAGE, 0, "--by %s is not for --against", by->name);
	else
		return tool_check_ignored(&report_command, ignored,
					  sizeof(ignored) / sizeof(*ignored), first, argv, e);
	return error_hint(e, "see profiltool report --help");
}

/* --against: prints what was different in an interval. Returns an exit code. */
static int report_moment(char *path, struct report_options *o)
{
	const struct report_table_options table = tool_table_options(&o->view);
	const char *other = strstr(o->against, "..") ? "other" : o->against;
	struct profile_filtered filtered = { 0 };
	struct moment m = { 0 };
	struct tool_two two;
	struct error e;
	int err, code;

	o->reading.query.fine = true; /* processes by their numbers */
	if (tool_read_two(path, &o->reading, o->against, "--against", &two, &e))
		return tool_fail(&e);
	code = EXIT_NO_SAMPLES;
	if (!two.p[NEW]->duration_ns || !two.p[OLD]->duration_ns) {
		tool_warn("%s: nothing was recorded from %s", tool_input_name(path),
			  two.names[two.p[NEW]->duration_ns ? OLD : NEW]);
		goto out;
	}
	err = tool_check_tag(two.p[NEW], o->view.rows.view, &e);
	if (!err && (!profile_tick_ns(two.p[OLD]) ||
		     profile_tick_ns(two.p[OLD]) != profile_tick_ns(two.p[NEW])))
		err = error_set(&e, 0, "%s: its samples are not of one clock",
				tool_input_name(path));
	for (int side = 0; side < SIDES && !err; side++)
		err = tool_check_waits(two.p[side], &o->filter, &e)
			      ?: profile_filter(two.p[side], &o->filter, &filtered, &e);
	if (!err && moment_make(&m, two.p[OLD], two.p[NEW], &o->view.rows))
		err = error_no_memory(&e);
	if (!err && (o->view.json ? moment_json(&m, &table, stdout)
				  : moment_print(&m, other, &table, stdout)))
		err = error_no_memory(&e);
	tool_flush();
	if (err) {
		code = tool_fail(&e);
		goto out;
	}
	if (!o->reading.naming.quiet)
		moment_summary(&m, (const char *const[]){ two.names[OLD], two.names[NEW] },
			       TOOL_PREFIX, stderr);
	code = tool_done(two.p[OLD]) ?: tool_done(two.p[NEW]);
out:
	moment_free(&m);
	profile_filtered_free(&filtered);
	profile_free(two.p[OLD]);
	profile_free(two.p[NEW]);
	return code;
}

/* Makes the latency what rows count, before samples are removed. Returns 0 or -errno with e set. */
static int add_latency(struct profile *p, struct rows_options *rows, const char *path,
		       struct error *e)
{
	int err = profile_add_latency(p);

	rows->value = PROFILE_LATENCY_TYPE;
	rows->cpu = true;
	if (err != -EINVAL)
		return err ? error_no_memory(e) : 0;
	error_set(e, 0, "%s does not have when the ticks of a clock came", tool_input_name(path));
	error_hint(e, "profiltool record -o FILE.pb.gz keeps that, without --no-times");
	return err;
}

static int run_report(int argc, char **argv)
{
	struct report_options o = { .view.limit = -1, .view.percent = -1 };
	struct rows_options *rows = &o.view.rows;
	struct symbol_extent *extents = NULL;
	char *after = NULL;
	struct tool_inputs in;
	struct profile *p;
	struct error e;
	char several[32];
	const char *name;
	bool of_code;
	int err, first, code = tool_options(&report_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (tool_find_input(&o.reading, argv + first, argc - first, &in, &e))
		return tool_fail(&e);
	if (!in.count)
		return tool_misuse("profiltool report FILE...", "report takes a profile");
	rows->filtered = &o.filtered;
	o.reading.query.step_ns = o.view.step_ns;
	of_code = is_tree(&o) || rows->image || o.filter.focus || o.filter.ignore ||
		  o.filter.states || o.filter.hide_idle || o.filter.reason;
	query_set_rows(&o.reading.query, rows->view, of_code);
	if (rows->view && rows->view->fields & ROW_SOURCE)
		o.reading.naming.lines = true;
	if (check_options(&o, first, argv, &e))
		return tool_fail(&e);
	if (o.against && in.count > 1)
		return tool_misuse("", "--against is for one profile");
	if (o.against)
		return report_moment(in.paths[0], &o);
	if (tool_read_all(in.paths, in.count, &o.reading, &p, &e))
		return tool_fail(&e);

	err = o.latency ? add_latency(p, rows, in.paths[0], &e) : 0;
	err = err ?: tool_check_value(p, rows->value, &e) ?: tool_check_tag(p, rows->view, &e);
	if (!err && rows->view &&
	    rows->view->fields & (ROW_STATE | ROW_OF_TAG(TAG_WAKER) | ROW_OF_TAG(TAG_PEER)))
		tool_show_wall(p);
	if (!err && rows->by_wall && !p->wall_count) {
		err = error_set(&e, 0, "%s has no times of threads to sort by",
				tool_input_name(in.paths[0]));
		error_hint(&e, "profiltool record --wall records them");
	}
	if (!err && rows->delay)
		err = tool_check_value(p, PROFILE_DELAY_TYPE, &e);
	if (!err && !tool_has_image(p, rows->image))
		err = tool_no_image(rows->image, &e);
	err = err ?: tool_filter(p, &o.filter, rows->value, &o.filtered, &e);
	snprintf(several, sizeof(several), "%d profiles", in.count);
	name = in.count > 1 ? several : tool_input_name(in.paths[0]);
	if (!err && !is_tree(&o))
		err = tool_find_extents(p, &o.view, &extents, &e);
	/*
	 * The table, and what is said of it: first, unless a person would see it scroll away. A
	 * tree is longer than a screen: what it comes to is last.
	 */
	o.view.last = tool_table_is_last(&o.view) && !is_tree(&o);
	for (int step = 0; step < 2 && !err; step++) {
		if (step == o.view.last && !is_tree(&o))
			err = tool_print(p, &o.view, &e);
		else if (step == o.view.last && (o.view.json || !is_empty(p, &o)))
			err = print_tree(p, &o, &e);
		if (step == o.view.last || err)
			continue;
		if (!is_tree(&o) && rows_count_calls(p, rows))
			tool_warn("%s: no samples, only calls, which are counted instead", name);
		if (!o.reading.naming.quiet)
			err = tool_summarize(p, rows, name, o.verbose, o.view.last ? &after : NULL,
					     &e);
	}
	fputs(after ?: "", stderr);
	free(after);
	if (err)
		code = tool_fail(&e);
	else if (is_empty(p, &o))
		code = tool_no_samples(p, rows->value, &o.filtered, &o.reading.query, in.paths,
				       in.count);
	else
		code = tool_done(p);
	free(extents);
	profile_filtered_free(&o.filtered);
	profile_free(p);
	return code;
}

const struct tool_command report_command = {
	.name = "report",
	.arguments = "[OPTION...] FILE...",
	.help = "Prints where the samples of profiles fell, busiest first; sums several of them "
		"up.",
	.purpose = TOOL_LOOK,
	.summary = "tables and call trees: by function, thread, line, time, ...",
	.options = options,
	.groups =
		(const struct option_group[]){
			{ "tree", "What to print" },
			{ "input", "Which samples" },
			{ "by", "The table" },
			{ "executable", "Reading files" },
			{ 0 },
		},
	.run = run_report,
};
