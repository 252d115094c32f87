// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff/diff.h"
#include "tool/tool.h"
#include "tool/when.h"

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
	{ "sort", 's', "KEY", "what rows are, by perf's keys: " TOOL_SORT_KEYS, parse_sort,
	  offsetof(struct diff_options, view.rows.view) },
	{ "significant", 0, NULL, "only rows that differ by more than chance", NULL,
	  offsetof(struct diff_options, significant) },
	{ "before", 0, "TIME..TIME",
	  "compare with this interval of the archive, not with the one before --since", option_text,
	  offsetof(struct diff_options, before) },
	TOOL_QUERY_OPTIONS(struct diff_options, reading.query),
	TOOL_VIEW_OPTIONS(struct diff_options, view),
	TOOL_READING_OPTIONS(struct diff_options, reading),
	{ 0 },
};

static int read_checked(char *path, const struct tool_reading *reading,
			const struct diff_options *o, struct profile **p, struct error *e)
{
	int err = tool_read_all(&path, 1, reading, p, e);

	if (err)
		return err;
	err = tool_check_value(*p, o->view.rows.value, e);
	if (err) {
		profile_free(*p);
		*p = NULL;
	}
	return err;
}

static const char *compared_value(const struct comparison *c, enum comparison_side side)
{
	const struct profile *p = c->profiles[side];

	return p->value_type_count ? p->value_types[profile_value(p, c->value)].type : "";
}

/*
 * Reads two profiles and prints their differences. how: options for reading the first profile;
 * o->reading is for the second. names: titles of both for the summary. Returns an exit code.
 */
static int diff_profiles(char *const *paths, const char *const *names,
			 const struct tool_reading *how, const struct diff_options *o)
{
	struct comparison_options what = { o->view.rows, o->amount, o->significant };
	const char *value = o->view.rows.value, *image = o->view.rows.image;
	struct report_table_options table = tool_table_options(&o->view);
	struct profile *earlier, *later = NULL;
	struct comparison c = { 0 };
	const char *calls = "";
	struct error e;
	int err, code;

	if (read_checked(paths[0], how, o, &earlier, &e))
		return tool_fail(&e);
	err = read_checked(paths[1], &o->reading, o, &later, &e);
	err = err ?: tool_check_tag(later, o->view.rows.view, &e);
	if (!err && !tool_has_image(earlier, image) && !tool_has_image(later, image))
		err = tool_no_image(image, &e);
	if (!err && !profile_magnitude(earlier, value) && !profile_magnitude(later, value)) {
		if (earlier->arc_count || later->arc_count)
			calls = "; profiltool report shows the calls that they have";
		tool_warn("neither profile has samples to compare%s", calls);
		code = EXIT_NO_SAMPLES;
		goto out;
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
	profile_free(earlier);
	profile_free(later);
	return code;
}

/*
 * Compares an archive's interval with that of --before, or else with the one of equal length before
 * it. Returns an exit code.
 */
static int diff_intervals(char *archive, struct diff_options *o)
{
	struct tool_reading how = o->reading;
	struct tool_query *before = &how.query, *after = &o->reading.query;
	char *const paths[] = { archive, archive };
	char names[2][QUERY_NAME_SIZE], *copy, *dots;
	struct error e;
	uint64_t length;
	int err;

	if (query_interval(after, &after->since_s, &after->until_s, &e))
		return tool_fail(&e);
	after->since = after->until = NULL;
	before->since = before->until = NULL;
	if (!o->before) {
		length = after->until_s - after->since_s;
		before->until_s = after->since_s;
		before->since_s = length < after->since_s ? after->since_s - length : 1;
	} else {
		copy = strdup(o->before);
		if (!copy) {
			error_no_memory(&e);
			return tool_fail(&e);
		}
		dots = strstr(copy, "..");
		err = -EINVAL;
		if (dots) {
			*dots = '\0';
			before->since = copy;
			before->until = dots + 2;
			before->since_s = before->until_s = 0;
			err = query_interval(before, &before->since_s, &before->until_s, &e);
			before->since = before->until = NULL;
		}
		free(copy);
		if (err) {
			error_set_kind(&e, ERROR_USAGE, 0, "--before takes TIME..TIME, not \"%s\"",
				       o->before);
			error_hint(&e, "--before \"yesterday 03:00..yesterday 04:00\"");
			return tool_fail(&e);
		}
	}
	query_name(before, names[0]);
	query_name(after, names[1]);
	return diff_profiles(paths, (const char *const[]){ names[0], names[1] }, &how, o);
}

static int run_diff(int argc, char **argv)
{
	struct diff_options o = { .view.limit = -1 };
	const struct tool_query *q = &o.reading.query;
	const char *wrong = NULL;
	char **paths;
	struct error e;
	bool intervals;
	int count;
	int first, code = tool_options(&diff_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (o.view.by_image)
		o.view.rows.view = row_view_by_name("image");
	if (o.view.rows.view && o.view.rows.view->fields & ROW_SOURCE)
		o.reading.naming.lines = true;
	query_set_rows(&o.reading.query, o.view.rows.view, true);
	paths = argv + first;
	count = argc - first;
	intervals = o.before || q->since || q->until;
	if (intervals && count > 1)
		wrong = "--since, --until and --before are for an archive, not for two profiles";
	else if (intervals && !q->since)
		wrong = "--until and --before need --since";
	else if (!intervals && count != 2)
		wrong = "diff takes two profiles, or an interval of an archive";
	if (wrong) {
		error_set_kind(&e, ERROR_USAGE, 0, "%s", wrong);
		error_hint(&e, "profiltool diff OLD NEW, or profiltool diff --since TIME");
		return tool_fail(&e);
	}
	if (intervals)
		return diff_intervals(count ? paths[0] : (char *)query_archive(), &o);
	return diff_profiles(paths, (const char *const *)paths, &o.reading, &o);
}

const struct tool_command diff_command = {
	.name = "diff",
	.arguments = "[OPTION...] OLD NEW | --since TIME [OPTION...]",
	.help = "Compares two profiles, or an interval of the archive with the one before it: "
		"where time is spent now and was not before, most first.",
	.options = options,
	.run = run_diff,
};
