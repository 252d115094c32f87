// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "tool/tool.h"

struct diff_options {
	struct tool_view view;
	struct tool_reading reading;
	int code; /* the command's */
};

static const struct option_spec options[] = {
	TOOL_VIEW_OPTIONS(struct diff_options, view),
	TOOL_READING_OPTIONS(struct diff_options, reading),
	{ 0 },
};

static int read_side(char *path, const struct diff_options *o, struct profile **p, struct error *e)
{
	int err = tool_read_all(&path, 1, &o->reading, p, e);

	if (err)
		return err;
	err = tool_choose_value(*p, o->view.value, e);
	if (err) {
		profile_free(*p);
		*p = NULL;
	}
	return err;
}

static const char *shown_value(const struct profile *p)
{
	return p->value_type_count ? p->value_types[profile_count_value(p)].type : "";
}

static int print(const struct profile *earlier, const struct profile *later,
		 const struct tool_view *view, struct error *e)
{
	struct report_table_options table = tool_table_options(view);
	int err = view->json ? report_diff_json(earlier, later, &view->rows, stdout)
			     : report_diff(earlier, later, &table, stdout);

	tool_flush();
	if (err)
		return error_no_memory(e);
	if (strcmp(shown_value(earlier), shown_value(later)) != 0)
		tool_warn("the profiles count different things: %s and %s", shown_value(earlier),
			  shown_value(later));
	return 0;
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
	err = err ?: print(earlier, later, &o->view, e);
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
		error_mend(&e, "profiltool diff OLD NEW");
		return tool_fail(&e);
	}
	if (o.view.by_image)
		o.view.rows.view = row_view_by_name("image");
	return diff(argv + first, &o, &e) ? tool_fail(&e) : o.code;
}

const struct tool_command diff_command = {
	.name = "diff",
	.arguments = "[OPTION...] OLD NEW",
	.help = "Compares two profiles: where the part of the samples has changed, most first.",
	.options = options,
	.run = run,
};
