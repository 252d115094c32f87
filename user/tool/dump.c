// SPDX-License-Identifier: GPL-2.0-only
#include "report/dump/dump.h"
#include "tool/tool.h"

struct dump_options {
	bool json;
	struct tool_reading reading;
};

static const struct option_spec options[] = {
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(struct dump_options, json) },
	TOOL_TIME_OPTIONS(struct dump_options, reading.query),
	TOOL_READING_OPTIONS(struct dump_options, reading),
	{ 0 },
};

static int run_dump(int argc, char **argv)
{
	struct dump_options o = { 0 };
	struct tool_inputs in;
	struct error e;
	int first, code;

	code = tool_options(&dump_command, &o, argc, argv, false, &first);
	if (code >= 0)
		return code;
	o.reading.query.fine = o.reading.query.times = true;
	tool_find_inputs(argv + first, argc - first, &o.reading.query, &in);
	if (!in.count)
		return tool_misuse("profiltool dump FILE...", "dump takes a profile file");
	code = EXIT_DONE;
	for (int i = 0; i < in.count; i++) {
		bool interval = query_has_interval(&o.reading.query);
		struct profile *p;
		int err;

		if (interval && query_is_archive(in.paths[i]))
			err = query_read(in.paths[i], &o.reading.query, o.reading.naming.quiet, &p,
					 &e);
		else
			err = tool_read_selected(in.paths[i], &o.reading, &p, &e);
		if (err)
			return tool_fail(&e);
		code = code ?: tool_done(p);
		err = o.json ? report_dump_json(p, stdout) : report_dump(p, stdout);
		profile_free(p);
		if (err) {
			error_no_memory(&e);
			return tool_fail(&e);
		}
	}
	return code;
}

const struct tool_command dump_command = {
	.name = "dump",
	.arguments = "[OPTION...] FILE...",
	.help = "Prints all that a profile holds: header, mappings, every stack and call with its "
		"count.",
	.purpose = TOOL_EXCHANGE,
	.summary = "all that a profile holds, as text or JSON",
	.options = options,
	.run = run_dump,
};
