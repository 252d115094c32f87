// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "tool/tool.h"

struct convert_options {
	const char *format;
	const char *value;
	bool no_times;
	struct positions {
		bool given;
		bool instr;
	} positions;
	struct tool_reading reading;
};

static int parse_positions(const char *value, void *member, struct error *e)
{
	struct positions *positions = member;

	positions->given = true;
	positions->instr = strcmp(value, "instr") == 0;
	if (positions->instr || strcmp(value, "line") == 0)
		return 0;
	return error_set(e, 0, "--positions takes line or instr, not \"%s\"", value);
}

static const struct option_spec options[] = {
	{ "format", 'f', "FORMAT", "what to write; else by OUT's name: x.pb.gz, x.prof, ...",
	  option_text, offsetof(struct convert_options, format) },
	{ "positions", 0, "line|instr",
	  "callgrind: costs of each source line or instruction (line)", parse_positions,
	  offsetof(struct convert_options, positions) },
	TOOL_VALUE_OPTION(offsetof(struct convert_options, value)),
	TOOL_NO_TIMES_OPTION(offsetof(struct convert_options, no_times)),
	TOOL_READING_OPTIONS(struct convert_options, reading),
	{ 0 },
};

static int run_convert(int argc, char **argv)
{
	struct convert_options o = { 0 };
	const struct format *format;
	const char *out;
	struct error e;
	int first, code = tool_options(&convert_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	out = tool_output_place(o.format, argc - first == 1 ? NULL : argv[argc - 1]);
	if (!out || argc - first < 1 || argc - first > 2)
		return tool_misuse("profiltool convert [-f FORMAT] IN OUT",
				   "convert takes two files");
	format = tool_output_format(o.format, out, &e);
	if (!format)
		return tool_fail(&e);
	if (o.positions.given && strcmp(format->name, "callgrind") != 0)
		return tool_misuse("leave it out, or add -f callgrind",
				   "--positions is for callgrind: %s has none", format->name);
	return tool_rewrite(&(struct tool_rewrite){
		.in = argv + first,
		.count = 1,
		.out = out,
		.format = o.format,
		.reading = &o.reading,
		.writing = { .value = o.value,
			     .instr_positions = o.positions.instr,
			     .no_times = o.no_times },
	});
}

const struct tool_command convert_command = {
	.name = "convert",
	.arguments = "[OPTION...] IN OUT",
	.help = "Reads a profile and writes it in another format.",
	.purpose = TOOL_EXCHANGE,
	.summary = "a profile in another format",
	.options = options,
	.run = run_convert,
};
