// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "report/diff/comparison.h"
#include "tool/tool.h"

struct diff_options {
	struct tool_view view;
	struct tool_reading reading;
	enum comparison_amount amount;
	bool significant;
	const char *before; /* an interval */
};

static int parse_normalize(const char *value, void *member, struct error *e)
{
	enum comparison_amount *amount = member;

	if (strcmp(value, "share") == 0)
		*amount = AMOUNT_SHARE;
	else if (strcmp(value, "time") == 0)
		*amount = AMOUNT_TIME;
	else if (strcmp(value, "rate") == 0)
		*amount = AMOUNT_RATE;
	else
		return error_set(e, 0, "--normalize takes share, time or rate, not \"%s\"", value);
	return 0;
}

static int parse_sort(const char *value, void *member, struct error *e)
{
	const struct row_view *view = tool_view_of_keys(value);

	if (!view)
		return error_set(e, 0,
				 "--sort takes " TOOL_SORT_KEYS
				 ", or several as comm,dso,sym, not \"%s\"",
				 value);
	*(const struct row_view **)member = view;
	return 0;
}

static const struct option_spec options[] = {
	{ "normalize", 0, "rate|share|time",
	  "compare each row's share of all samples, its time, or its time per second",
	  parse_normalize, offsetof(struct diff_options, amount) },
	{ "children", 0, NULL, "compare functions with what they call", NULL,
	  offsetof(struct diff_options, view.rows.by_total) },
	{ "sort", 's', "KEY", "what rows are, by perf's keys: " TOOL_SORT_KEYS, parse_sort,
	  offsetof(struct diff_options, view.rows.view) },
	{ "significant", 0, NULL, "only rows that differ by more than chance", NULL,
	  offsetof(struct diff_options, significant) },
	{ "before", 0, "TIME..TIME",
	  "compare with this interval, not with the one just before; or with the rest: rest",
	  option_text, offsetof(struct diff_options, before) },
	TOOL_QUERY_OPTIONS(struct diff_options, reading.query),
	TOOL_VIEW_OPTIONS(struct diff_options, view),
	TOOL_READING_OPTIONS(struct diff_options, reading),
	{ 0 },
};

static const char *compared_value(const struct comparison *c, enum comparison_side side)
{
	const struct profile *p = c->profiles[side];

	return p->value_type_count ? p->value_types[profile_value(p, c->value)].type : "";
}

/* Prints the differences of two profiles. Returns an exit code. */
static int diff_profiles(const struct profile *earlier, const struct profile *later,
			 const char *const *names, const struct diff_options *o)
{
	struct comparison_options what = {
		.rows = o->view.rows,
		.amount = o->amount,
		.significant = o->significant,
	};
	const char *value = o->view.rows.value, *image = o->view.rows.image;
	struct report_table_options table = tool_table_options(&o->view);
	struct comparison c = { 0 };
	const char *calls = "";
	struct error e;
	int err, code;

	err = tool_check_value(earlier, value, &e) ?: tool_check_value(later, value, &e);
	if (!err && o->view.rows.view && o->view.rows.view->fields & ROW_STATE)
		err = tool_check_tag(earlier, o->view.rows.view, &e);
	err = err ?: tool_check_tag(later, o->view.rows.view, &e);
	if (!err && !tool_has_image(earlier, image) && !tool_has_image(later, image))
		err = tool_no_image(image, &e);
	if (!err && !profile_magnitude(earlier, value) && !profile_magnitude(later, value)) {
		if (earlier->arc_count || later->arc_count)
			calls = "; profiltool report shows the calls that they have";
		else if (profile_find_sum(later, PROFILE_SUM_WALL) < later->value_type_count)
			calls = "; --value wall compares their waits";
		tool_warn("neither profile has samples to compare%s", calls);
		return EXIT_NO_SAMPLES;
	}
	err = err ?: comparison_make(&c, earlier, later, &what, &e);
	if (!err &&
	    (o->view.json ? report_diff_json(&c, &table, stdout) : report_diff(&c, &table, stdout)))
		err = error_no_memory(&e);
	tool_flush();
	if (err) {
		code = tool_fail(&e);
		goto out;
	}
	if (!o->reading.naming.quiet)
		report_diff_summary(&c, names, TOOL_PREFIX, stderr);
	if (strcmp(compared_value(&c, OLD), compared_value(&c, NEW)) != 0)
		tool_warn("the profiles count different things: %s and %s", compared_value(&c, OLD),
			  compared_value(&c, NEW));
	if (earlier->event[0] && later->event[0] && strcmp(earlier->event, later->event) != 0)
		tool_warn("the profiles are of different clocks: %s and %s", earlier->event,
			  later->event);
	if (earlier->host[0] && later->host[0] && strcmp(earlier->host, later->host) != 0)
		tool_warn("the profiles are of different machines: %s and %s", earlier->host,
			  later->host);
	code = tool_done(earlier) ?: tool_done(later);
out:
	comparison_free(&c);
	return code;
}

static int run_diff(int argc, char **argv)
{
	struct diff_options o = { .view.limit = -1 };
	const struct tool_query *q = &o.reading.query;
	struct tool_ignored ignored = {
		.what = "rows that are no code: they call nothing",
		.options = "children",
	};
	const char *wrong = NULL, *names[SIDES];
	struct tool_two two = { 0 };
	char **paths;
	struct error e;
	bool intervals;
	int count, err = 0;
	int first, code = tool_options(&diff_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (o.view.rows.view && o.view.rows.view->fields & ROW_SOURCE)
		o.reading.naming.lines = true;
	query_set_rows(&o.reading.query, o.view.rows.view, true);
	paths = argv + first;
	count = argc - first;
	intervals = o.before || query_has_interval(q);
	if (intervals && count > 1)
		wrong = "intervals are for an archive or one profile, not for two profiles";
	else if (intervals && !q->since && !q->around && !(q->until && q->for_ns))
		wrong = "--until and --before need --since or --around";
	else if (!intervals && count != 2)
		wrong = "diff takes two profiles, or an interval of an archive or a profile";
	else if (o.view.step_ns)
		wrong = "--by time:DURATION is for report";
	if (wrong)
		return tool_misuse("profiltool diff OLD NEW, or profiltool diff --since TIME", "%s",
				   wrong);
	ignored.applies = o.view.rows.view && !(o.view.rows.view->fields & ROW_CODE);
	if (tool_check_ignored(&diff_command, &ignored, 1, first, argv, &e))
		return tool_fail(&e);
	if (intervals) {
		/* With that of --before, or else with the one of equal length before it. */
		if (tool_read_two(count ? paths[0] : (char *)query_archive(), &o.reading,
				  o.before ?: "before", "--before", &two, &e))
			return tool_fail(&e);
		names[OLD] = two.names[OLD];
		names[NEW] = two.names[NEW];
		/* Of two moments, how much CPU time each took says more than shares of it. */
		if (o.amount == AMOUNT_AUTO)
			o.amount = AMOUNT_RATE;
	} else {
		for (size_t side = 0; side < SIDES && !err; side++) {
			err = tool_read_all(&paths[side], 1, &o.reading, &two.p[side], &e);
			names[side] = paths[side];
		}
	}
	for (size_t side = 0; side < SIDES && !err; side++)
		if (o.view.rows.view && o.view.rows.view->fields & ROW_STATE)
			tool_show_wall(two.p[side]);
	code = err ? tool_fail(&e) : diff_profiles(two.p[OLD], two.p[NEW], names, &o);
	profile_free(two.p[OLD]);
	profile_free(two.p[NEW]);
	return code;
}

const struct tool_command diff_command = {
	.name = "diff",
	.arguments = "[OPTION...] OLD NEW | --since TIME [OPTION...] [FILE]",
	.help = "Compares two profiles, or an interval of a profile or of the archive with the one "
		"before it: where time is spent now and was not before, most first.",
	.purpose = TOOL_COMPARE,
	.summary = "two profiles, or an interval with the one before it",
	.options = options,
	.groups =
		(const struct option_group[]){
			{ "normalize", "How to compare" },
			{ "before", "Which samples" },
			{ "by", "The table" },
			{ "executable", "Reading files" },
			{ 0 },
		},
	.run = run_diff,
};
