// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "report/diff/diff.h"
#include "tool/tool.h"

struct diff_options {
	struct tool_view view;
	struct tool_reading reading;
	enum comparison_amount amount;
	bool significant;
	int code; /* the command's */
};

static int option_normalize(const char *value, void *member, struct error *e)
{
	enum comparison_amount *amount = member;

	if (strcmp(value, "share") == 0)
		*amount = AMOUNT_SHARE;
	else if (strcmp(value, "time") == 0)
		*amount = AMOUNT_TIME;
	else
		return error_set(e, 0, "--normalize takes share or time, not \"%s\"", value);
	return 0;
}

static int option_sort(const char *value, void *member, struct error *e)
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
	{ "normalize", 0, "UNIT", "compare each row's share of all samples (default), or its time",
	  option_normalize, offsetof(struct diff_options, amount) },
	{ "sort", 's', "KEY", "what rows are, by perf's keys: " TOOL_SORT_KEYS, option_sort,
	  offsetof(struct diff_options, view.rows.view) },
	{ "significant", 0, NULL, "only rows that differ by more than chance", NULL,
	  offsetof(struct diff_options, significant) },
	TOOL_VIEW_OPTIONS(struct diff_options, view),
	TOOL_READING_OPTIONS(struct diff_options, reading),
	{ 0 },
};

static int read_side(char *path, const struct diff_options *o, struct profile **p, struct error *e)
{
	int err = tool_read_all(&path, 1, &o->reading, p, e);

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

static void warn_of_differences(const struct comparison *c)
{
	const struct profile *earlier = c->profiles[OLD], *later = c->profiles[NEW];

	if (strcmp(compared_value(c, OLD), compared_value(c, NEW)) != 0)
		tool_warn("the profiles count different things: %s and %s", compared_value(c, OLD),
			  compared_value(c, NEW));
	if (earlier->event[0] && later->event[0] && strcmp(earlier->event, later->event) != 0)
		tool_warn("the profiles are of different clocks: %s and %s", earlier->event,
			  later->event);
	if (earlier->host[0] && later->host[0] && strcmp(earlier->host, later->host) != 0)
		tool_warn("the profiles are of different machines: %s and %s", earlier->host,
			  later->host);
}

static int print(const struct profile *earlier, const struct profile *later, char *const *paths,
		 const struct diff_options *o, struct error *e)
{
	struct report_table_options table = tool_table_options(&o->view);
	struct comparison_options what = { o->view.rows, o->amount, o->significant };
	struct comparison c;
	int err = comparison_make(&c, earlier, later, &what, e);

	if (!err &&
	    (o->view.json ? report_diff_json(&c, &table, stdout) : report_diff(&c, &table, stdout)))
		err = error_no_memory(e);
	tool_flush();
	if (!err) {
		report_diff_summary(&c, (const char *const *)paths, TOOL_PREFIX, stderr);
		warn_of_differences(&c);
	}
	comparison_free(&c);
	return err;
}

static int diff(char *const *paths, struct diff_options *o, struct error *e)
{
	struct profile *earlier, *later = NULL;
	int err = read_side(paths[0], o, &earlier, e);

	if (err)
		return err;
	err = read_side(paths[1], o, &later, e);
	if (!err && !tool_has_image(earlier, o->view.rows.image) &&
	    !tool_has_image(later, o->view.rows.image))
		err = tool_no_image(o->view.rows.image, e);
	err = err ?: print(earlier, later, paths, o, e);
	if (!err)
		o->code = tool_done(earlier) ?: tool_done(later);
	profile_free(earlier);
	profile_free(later);
	return err;
}

static int run(int argc, char **argv)
{
	struct diff_options o = { .view.limit = -1 };
	struct error e;
	int first, code = tool_options(&diff_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (argc - first != 2) {
		error_set_kind(&e, ERROR_USAGE, 0, "diff takes two profiles");
		error_hint(&e, "profiltool diff OLD NEW");
		return tool_fail(&e);
	}
	if (o.view.by_image)
		o.view.rows.view = row_view_by_name("image");
	if (o.view.rows.view && o.view.rows.view->fields & ROW_SOURCE)
		o.reading.naming.lines = true;
	return diff(argv + first, &o, &e) ? tool_fail(&e) : o.code;
}

const struct tool_command diff_command = {
	.name = "diff",
	.arguments = "[OPTION...] OLD NEW",
	.help = "Compares two profiles: where time is spent now and was not before, most first.",
	.options = options,
	.run = run,
};
