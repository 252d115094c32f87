// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>

#include "tool/tool.h"

struct convert_options {
	const char *format;
	bool strict;
};

static const struct option_spec options[] = {
	{ "format", 'f', "FORMAT", "what to write: pprof, gperftools; else by OUT's extension",
	  option_text, offsetof(struct convert_options, format) },
	{ "strict", 0, NULL, "refuse a file that breaks a rule of its format", NULL,
	  offsetof(struct convert_options, strict) },
	{ 0 },
};

static int convert(const char *in, const char *out, const struct convert_options *o,
		   struct error *e)
{
	const struct format *format = tool_output_format(o->format, out, e);
	struct profile *p;
	int err;

	if (!format)
		return -EINVAL;
	err = tool_check_output(out, e);
	err = err ?: tool_read(in, o->strict, &p, e);
	if (err)
		return err;
	/* A file that cannot carry names gains them here, while its images can still be read. */
	err = tool_resolve(p, in, e);
	err = err ?: tool_write(p, format, out, e);
	if (!err && format->loses)
		tool_warn("%s: the %s format does not hold %s", out, format->name, format->loses);
	profile_free(p);
	return err;
}

static int run(int argc, char **argv)
{
	struct convert_options o = { 0 };
	struct error e;
	int first, code = tool_options(&convert_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (argc - first != 2) {
		error_set_kind(&e, ERROR_USAGE, 0, "convert takes two files");
		error_mend(&e, "profiltool convert [-f FORMAT] IN OUT");
		return tool_fail(&e);
	}
	return convert(argv[first], argv[first + 1], &o, &e) ? tool_fail(&e) : EXIT_DONE;
}

const struct tool_command convert_command = {
	.name = "convert",
	.arguments = "[OPTION...] IN OUT",
	.help = "Reads a profile and writes it in another format.",
	.options = options,
	.run = run,
};
