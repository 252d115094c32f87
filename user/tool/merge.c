// SPDX-License-Identifier: GPL-2.0-only
#include "tool/tool.h"

struct merge_options {
	const char *format;
	const char *output;
	bool no_times;
	struct tool_reading reading;
};

static const struct option_spec options[] = {
	{ "output", 'o', "OUT", "write the sum to OUT; - is standard output", option_text,
	  offsetof(struct merge_options, output) },
	{ "format", 'f', "FORMAT", "what to write; else by OUT's name: x.pb.gz, x.prof, ...",
	  option_text, offsetof(struct merge_options, format) },
	TOOL_NO_TIMES_OPTION(offsetof(struct merge_options, no_times)),
	TOOL_READING_OPTIONS(struct merge_options, reading),
	{ 0 },
};

static int run_merge(int argc, char **argv)
{
	struct merge_options o = { 0 };
	struct tool_inputs in;
	int first, code = tool_options(&merge_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	tool_find_inputs(argv + first, argc - first, NULL, &in);
	o.output = tool_output_place(o.format, o.output);
	if (!in.count || !o.output)
		return tool_misuse("profiltool merge [-f FORMAT] FILE... -o OUT",
				   "merge takes files, and -o OUT");
	return tool_rewrite(&(struct tool_rewrite){
		.in = in.paths,
		.count = in.count,
		.out = o.output,
		.format = o.format,
		.reading = &o.reading,
		.writing.no_times = o.no_times,
	});
}

const struct tool_command merge_command = {
	.name = "merge",
	.arguments = "[OPTION...] FILE... -o OUT",
	.help = "Adds up profiles of any formats and writes the sum.",
	.purpose = TOOL_EXCHANGE,
	.summary = "the sum of several profiles",
	.options = options,
	.run = run_merge,
};
