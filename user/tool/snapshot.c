// SPDX-License-Identifier: GPL-2.0-only
#include "tool/tool.h"

struct snapshot_options {
	const char *format;
	const char *output;
	struct tool_reading reading;
};

static const struct option_spec options[] = {
	{ "output", 'o', "OUT", "write the file OUT; - is standard output", option_text,
	  offsetof(struct snapshot_options, output) },
	{ "format", 'f', "FORMAT", "what to write; else by OUT's name: x.pb.gz, x.callgrind, ...",
	  option_text, offsetof(struct snapshot_options, format) },
	TOOL_QUERY_OPTIONS(struct snapshot_options, reading.query),
	TOOL_READING_OPTIONS(struct snapshot_options, reading),
	{ 0 },
};

static int run_snapshot(int argc, char **argv)
{
	struct snapshot_options o = { 0 };
	struct tool_query *q = &o.reading.query;
	struct tool_inputs in;
	int first, code = tool_options(&snapshot_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	tool_find_inputs(argv + first, argc - first, q, &in);
	o.output = tool_output_place(o.format, o.output);
	if (argc - first > 1 || !(q->since || q->around || (q->until && q->for_ns)) || !o.output)
		return tool_misuse("profiltool snapshot --since TIME [--until TIME] -o OUT.pb.gz",
				   "snapshot takes --since TIME, and -o OUT");
	q->by_host = q->fine = q->times = true;
	return tool_rewrite(&(struct tool_rewrite){
		.in = in.paths,
		.count = in.count,
		.out = o.output,
		.format = o.format,
		.reading = &o.reading,
	});
}

const struct tool_command snapshot_command = {
	.name = "snapshot",
	.arguments = "--since TIME [OPTION...] [ARCHIVE] -o OUT",
	.help = "Writes an interval of the archive of profild --continuous, or of a profile, into "
		"one file: for a ticket.",
	.purpose = TOOL_RECORD,
	.summary = "an interval of the archive of profild --continuous, into a file",
	.options = options,
	.run = run_snapshot,
};
