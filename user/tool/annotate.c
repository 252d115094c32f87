// SPDX-License-Identifier: GPL-2.0-only
#include "tool/tool.h"

struct annotate_options {
	struct annotation_options what;
	struct tool_reading reading;
	const char *value;
	bool all;
	bool json;
	int code; /* the command's */
};

static const struct option_spec options[] = {
	{ "image", 'p', "IMAGE", "the file that holds the function: its path or base name",
	  option_text, offsetof(struct annotate_options, what.image) },
	{ "value", 0, "TYPE", "what to count, when there are several: an event, cpu, ...",
	  option_text, offsetof(struct annotate_options, value) },
	{ "all", 'a', NULL, "print instructions without a sample, too", NULL,
	  offsetof(struct annotate_options, all) },
	{ "no-source", 0, NULL, "print no source lines", NULL,
	  offsetof(struct annotate_options, what.no_sources) },
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(struct annotate_options, json) },
	TOOL_READING_OPTIONS(struct annotate_options, reading),
	{ 0 },
};

static int print(struct profile *p, const struct annotate_options *o, struct error *e)
{
	struct report_table_options table = tool_table_options(&(struct tool_view){ 0 });
	struct report_listing_options listing = { .width = table.width,
						  .color = table.color,
						  .all = o->all };
	struct annotation a;
	int err = annotation_make(&a, p, &o->what, e);

	if (!err &&
	    (o->json ? report_listing_json(&a, stdout) : report_listing(&a, &listing, stdout)))
		err = error_no_memory(e);
	tool_flush();
	if (!err && report_listing_title(&a, TOOL_PREFIX, stderr))
		err = error_no_memory(e);
	annotation_free(&a);
	return err;
}

static int annotate(char *const *paths, int count, struct annotate_options *o, struct error *e)
{
	struct profile *p;
	int err = tool_read_all(paths, count, &o->reading, &p, e);

	if (err)
		return err;
	err = tool_choose_value(p, o->value, e);
	err = err ?: print(p, o, e);
	o->code = tool_done(p);
	profile_free(p);
	return err;
}

static int run(int argc, char **argv)
{
	struct annotate_options o = { 0 };
	struct error e;
	int first, code = tool_options(&annotate_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (argc - first < 2) {
		error_set_kind(&e, ERROR_USAGE, 0, "annotate takes a function and a profile");
		error_mend(&e, "profiltool annotate FUNCTION FILE...");
		return tool_fail(&e);
	}
	o.what.function = argv[first];
	return annotate(argv + first + 1, argc - first - 1, &o, &e) ? tool_fail(&e) : o.code;
}

const struct tool_command annotate_command = {
	.name = "annotate",
	.arguments = "[OPTION...] {FUNCTION | 0xADDRESS} FILE...",
	.help = "Prints a function's instructions with the samples that fell on each.",
	.options = options,
	.run = run,
};
