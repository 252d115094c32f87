// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "report/annotate/annotate.h"
#include "tool/tool.h"

struct annotate_options {
	struct annotation_options what;
	struct report_listing_options listing;
	struct tool_reading reading;
	bool json, for_perf;
};

static const struct option_spec options[] = {
	{ "symbol", 's', "FUNCTION", "the function: the same as FUNCTION alone", option_text,
	  offsetof(struct annotate_options, what.function) },
	{ "image", 'd', "IMAGE", "the file that holds the function: its path or base name",
	  option_text, offsetof(struct annotate_options, what.image) },
	TOOL_VALUE_OPTION(offsetof(struct annotate_options, what.value)),
	{ "all", 'a', NULL, "print instructions and lines without a sample, too", NULL,
	  offsetof(struct annotate_options, listing.all) },
	{ "source-only", 0, NULL, "print the source alone, without instructions", NULL,
	  offsetof(struct annotate_options, listing.source) },
	{ "source-path", 0, "DIRECTORY",
	  "where to look for source files that are not in their place", tool_option_directory,
	  offsetof(struct annotate_options, what.source_path) },
	{ "no-source", 0, NULL, "print no source lines", NULL,
	  offsetof(struct annotate_options, what.no_sources) },
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(struct annotate_options, json) },
	{ "stdio", 0, NULL, "for those who know perf: the output is always text", NULL,
	  offsetof(struct annotate_options, for_perf) },
	TOOL_INPUT_OPTION(struct annotate_options, reading),
	TOOL_QUERY_OPTIONS(struct annotate_options, reading.query),
	TOOL_READING_OPTIONS(struct annotate_options, reading),
	{ 0 },
};

/*
 * True if the first argument is a function. With -i, all arguments are. A single one is a profile,
 * whose busiest function is shown, if it exists, whether or not it can be read, or if it has the
 * name of one. With a slash it is a profile, too, unless there is a default input: functions of Go
 * have slashes.
 */
static bool has_function(const struct annotate_options *o, char *const *arguments, int count)
{
	struct stat status;

	if (count != 1 || o->reading.file)
		return count > 0;
	if (strcmp(arguments[0], "-") == 0 || stat(arguments[0], &status) == 0)
		return false;
	if (format_by_path(arguments[0]))
		return false;
	return !strchr(arguments[0], '/') || tool_has_default_input(&o->reading.query);
}

static int run_annotate(int argc, char **argv)
{
	struct report_table_options table = tool_table_options(&(struct tool_view){ 0 });
	struct tool_ignored ignored[] = {
		{ .what = "--json, which has instructions, too", .options = "source-only" },
		{ .what = "--no-source", .options = "source-path" },
	};
	struct annotate_options o = { 0 };
	struct annotation a = { 0 };
	struct tool_inputs in;
	struct profile *p;
	struct error e;
	int err, first, code = tool_options(&annotate_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	o.reading.query.fine = true;
	if (!o.what.function && has_function(&o, argv + first, argc - first))
		o.what.function = argv[first++];
	if (tool_find_input(&o.reading, argv + first, argc - first, &in, &e))
		return tool_fail(&e);
	if (!in.count) {
		if (o.what.function)
			error_set_kind(&e, ERROR_USAGE, 0,
				       "annotate takes a profile, and there is no file \"%s\"",
				       o.what.function);
		else
			error_set_kind(&e, ERROR_USAGE, 0, "annotate takes a profile");
		error_hint(&e, "profiltool annotate [FUNCTION] FILE...");
		return tool_fail(&e);
	}
	if (o.listing.source && o.what.no_sources)
		return tool_misuse("", "--source-only and --no-source exclude each other");
	ignored[0].applies = o.json;
	ignored[1].applies = o.what.no_sources;
	if (tool_check_ignored(&annotate_command, ignored, 2, first, argv, &e) ||
	    tool_read_all(in.paths, in.count, &o.reading, &p, &e))
		return tool_fail(&e);
	err = tool_check_value(p, o.what.value, &e);
	if (!err && !profile_magnitude(p, o.what.value)) {
		code = tool_no_samples(p, o.what.value, NULL, &o.reading.query, in.paths, in.count);
		goto out;
	}
	o.what.debuginfod = o.reading.naming.debuginfod;
	o.listing.width = table.width;
	o.listing.color = table.color;
	err = err ?: annotation_make(&a, p, &o.what, &e);
	if (!err && o.listing.source && !annotation_has_lines(&a)) {
		error_set(&e, 0,
			  "there are no source lines of %s: %s has no debug information for it",
			  a.function ?: "the address",
			  a.image == PROFILE_NONE ? row_unknown : a.p->images[a.image].path);
		error_hint(&e, "install its -dbgsym package, or build it with -g");
		err = -ENOENT;
	}
	if (!err &&
	    (o.json ? report_listing_json(&a, stdout) : report_listing(&a, &o.listing, stdout)))
		err = error_no_memory(&e);
	tool_flush();
	if (!err) {
		if (!o.reading.naming.quiet)
			report_listing_title(&a, TOOL_PREFIX, stderr);
		annotation_notes(&a, TOOL_PREFIX, stderr);
	}
	code = err ? tool_fail(&e) : tool_done(p);
out:
	annotation_free(&a);
	profile_free(p);
	return code;
}

const struct tool_command annotate_command = {
	.name = "annotate",
	.arguments = "[OPTION...] [FUNCTION | 0xADDRESS] FILE...",
	.help = "Prints a function's instructions and source lines with the samples that fell on "
		"each; of one FILE alone, the busiest function's.",
	.purpose = TOOL_LOOK,
	.summary = "a function's instructions and source lines, with their samples",
	.options = options,
	.run = run_annotate,
};
