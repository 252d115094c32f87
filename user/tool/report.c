// SPDX-License-Identifier: GPL-2.0-only
#include "tool/tool.h"

struct report_options {
	bool json, strict;
	long limit;
};

static const struct option_spec options[] = {
	{ "json", 0, NULL, "print the account and the table as JSON", NULL,
	  offsetof(struct report_options, json) },
	{ "limit", 'n', "ROWS", "print the busiest ROWS functions; 0: all", tool_option_limit,
	  offsetof(struct report_options, limit) },
	{ "strict", 0, NULL, "refuse a file that breaks a rule of its format", NULL,
	  offsetof(struct report_options, strict) },
	{ 0 },
};

static int report(const char *path, const struct report_options *o, struct error *e)
{
	struct profile *p;
	int err = tool_read(path, o->strict, &p, e);

	if (err)
		return err;
	err = tool_resolve(p, path, e);
	err = err ?: tool_print(p, o->json, o->limit, e);
	if (!err && (report_summary(p, TOOL_PREFIX, path, stderr) ||
		     report_unnamed(p, TOOL_PREFIX, stderr)))
		err = error_no_memory(e);
	profile_free(p);
	return err;
}

static int run(int argc, char **argv)
{
	struct report_options o = { .limit = -1 };
	struct error e;
	int first, code = tool_options(&report_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (argc - first != 1) {
		error_set_kind(&e, ERROR_USAGE, 0, "report takes one profile file");
		error_mend(&e, "profiltool report FILE");
		return tool_fail(&e);
	}
	return report(argv[first], &o, &e) ? tool_fail(&e) : EXIT_DONE;
}

const struct tool_command report_command = {
	.name = "report",
	.arguments = "[OPTION...] FILE",
	.help = "Prints the functions of a profile, busiest first.",
	.options = options,
	.run = run,
};
