// SPDX-License-Identifier: GPL-2.0-only
#include "tool/tool.h"

struct dump_options {
	bool json, strict;
};

static const struct option_spec options[] = {
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(struct dump_options, json) },
	{ "strict", 0, NULL, "refuse a file that breaks a rule of its format", NULL,
	  offsetof(struct dump_options, strict) },
	{ 0 },
};

static int dump(const char *path, const struct dump_options *o, struct error *e)
{
	struct profile *p;
	int err = tool_read(path, o->strict, &p, e);

	if (err)
		return err;
	if (o->json ? report_dump_json(p, stdout) : report_dump(p, stdout))
		err = error_no_memory(e);
	profile_free(p);
	return err;
}

static int run(int argc, char **argv)
{
	struct dump_options o = { 0 };
	struct error e;
	int first, code = tool_options(&dump_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (first == argc) {
		error_set_kind(&e, ERROR_USAGE, 0, "dump takes a profile file");
		error_mend(&e, "profiltool dump FILE...");
		return tool_fail(&e);
	}
	for (int i = first; i < argc; i++)
		if (dump(argv[i], &o, &e))
			return tool_fail(&e);
	return EXIT_DONE;
}

const struct tool_command dump_command = {
	.name = "dump",
	.arguments = "[OPTION...] FILE...",
	.help = "Prints all that a profile holds: header, mappings, every stack with its count.",
	.options = options,
	.run = run,
};
