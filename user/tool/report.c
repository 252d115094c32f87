// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "tool/tool.h"

struct report_options {
	struct tool_view view;
	struct tool_reading reading;
	int code; /* the command's */
};

static const struct option_spec options[] = {
	TOOL_VIEW_OPTIONS(struct report_options, view),
	TOOL_READING_OPTIONS(struct report_options, reading),
	{ 0 },
};

static int print(struct profile *p, const char *name, struct tool_view *view, struct error *e)
{
	struct symbol_extent *extents;
	int err = tool_find_extents(p, view, &extents, e);

	err = err ?: tool_print(p, view, e);
	if (!err && (report_summary(p, TOOL_PREFIX, name, stderr) ||
		     report_unnamed(p, TOOL_PREFIX, stderr)))
		err = error_no_memory(e);
	free(extents);
	return err;
}

static int report(char *const *paths, int count, struct report_options *o, struct error *e)
{
	char name[32];
	struct profile *p;
	int err = tool_read_all(paths, count, &o->reading, &p, e);

	if (err)
		return err;
	snprintf(name, sizeof(name), "%d profiles", count);
	err = tool_choose_value(p, o->view.value, e);
	if (!err && !tool_has_image(p, o->view.rows.image))
		err = tool_no_image(o->view.rows.image, e);
	err = err ?: print(p, count == 1 ? paths[0] : name, &o->view, e);
	o->code = tool_done(p);
	profile_free(p);
	return err;
}

static int run(int argc, char **argv)
{
	struct report_options o = { .view.limit = -1 };
	struct error e;
	int first, code = tool_options(&report_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (first == argc) {
		error_set_kind(&e, ERROR_USAGE, 0, "report takes a profile");
		error_mend(&e, "profiltool report FILE...");
		return tool_fail(&e);
	}
	if (o.view.by_image)
		o.view.rows.view = row_view_by_name("image");
	return report(argv + first, argc - first, &o, &e) ? tool_fail(&e) : o.code;
}

const struct tool_command report_command = {
	.name = "report",
	.arguments = "[OPTION...] FILE...",
	.help = "Prints where the samples of profiles fell, busiest first; sums several of them "
		"up.",
	.options = options,
	.run = run,
};
