// SPDX-License-Identifier: GPL-2.0-only
#include "tool/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/text.h"
#include "symbol/symbol.h"
#include "util/file.h"
#include "util/number.h"

/* Paths and names of processes are in it: nobody vouches for them. */
static void say(const char *indent, const char *text)
{
	fprintf(stderr, TOOL_PREFIX "%s", indent);
	text_print(text, stderr);
	fputc('\n', stderr);
}

int tool_fail(const struct error *e)
{
	static const int codes[] = {
		[ERROR_FAILED] = EXIT_FAILED,
		[ERROR_USAGE] = EXIT_USAGE,
		[ERROR_NOT_PERMITTED] = EXIT_NOT_PERMITTED,
		[ERROR_KERNEL_LACKS] = EXIT_KERNEL_LACKS,
	};

	say("", e->what);
	if (e->mend[0])
		say("  ", e->mend);
	return codes[e->kind];
}

void tool_warn(const char *format, ...)
{
	char text[4096 + 512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	say("", text);
}

void tool_help(const struct tool_command *command, FILE *out)
{
	fprintf(out, "profiltool %s %s\n  %s\n", command->name, command->arguments, command->help);
	options_print(command->options, out);
}

int tool_options(const struct tool_command *command, void *values, int argc, char **argv, bool stop,
		 int *first)
{
	struct error e;
	bool help = false;

	if (options_parse(command->options, values, argc, argv, stop, first, &help, &e)) {
		error_mend(&e, "see profiltool %s --help", command->name);
		return tool_fail(&e);
	}
	if (!help)
		return -1;
	tool_help(command, stdout);
	return EXIT_DONE;
}

int tool_read(const char *path, bool strict, struct profile **p, struct error *e)
{
	int err = format_read(path, p, e);

	if (err)
		return err;
	if (strict && (*p)->warning_count) {
		err = error_set(e, 0, "%s: %s", path, (*p)->warnings[0]);
		error_mend(e, "without --strict it is read all the same");
		profile_free(*p);
		*p = NULL;
		return err;
	}
	for (size_t i = 0; i < (*p)->warning_count; i++)
		tool_warn("%s: %s", path, (*p)->warnings[i]);
	return 0;
}

/* Without a build ID, all that tells a file that was built anew is that it is too young. */
static void warn_of_younger_images(const struct profile *p, const char *path)
{
	struct stat profile, image;

	if (stat(path, &profile))
		return;
	for (size_t i = 0; i < p->image_count; i++)
		if (!p->images[i].build_id_size && p->images[i].path[0] == '/' &&
		    stat(p->images[i].path, &image) == 0 && image.st_mtime > profile.st_mtime)
			tool_warn("%s has changed since %s was written: its names may be wrong",
				  p->images[i].path, path);
}

int tool_resolve(struct profile *p, const char *path, struct error *e)
{
	warn_of_younger_images(p, path); /* before build IDs are filled in from the files */
	return symbol_resolve(p, NULL, NULL, e);
}

static void list_formats(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (const struct format *const *f = format_all; *f && used < size; f++)
		if ((*f)->write)
			used += snprintf(text + used, size - used, "%s%s", used ? ", " : "",
					 (*f)->name);
}

const struct format *tool_output_format(const char *name, const char *path, struct error *e)
{
	const struct format *format;
	char names[256];

	if (name) {
		format = format_by_name(name);
		if (format && format->write)
			return format;
		list_formats(names, sizeof(names));
		error_set_kind(e, ERROR_USAGE, 0, "no format \"%s\" can be written", name);
		error_mend(e, "the formats are: %s", names);
		return NULL;
	}
	format = path ? format_by_extension(path) : NULL;
	return format && format->write ? format : format_by_name("pprof");
}

int tool_check_output(const char *path, struct error *e)
{
	if (strcmp(path, "-") != 0)
		return file_check_writable(path, e);
	if (!isatty(STDOUT_FILENO))
		return 0;
	error_set_kind(e, ERROR_USAGE, 0, "a profile is binary: it does not go to a terminal");
	error_mend(e, "give a file, or pipe it to a program");
	return -EINVAL;
}

struct write_context {
	const struct profile *p;
	const struct format *format;
};

static int write_profile(FILE *out, void *context, struct error *e)
{
	const struct write_context *w = context;

	return w->format->write(w->p, out, e);
}

int tool_write(const struct profile *p, const struct format *format, const char *path,
	       struct error *e)
{
	struct write_context context = { p, format };
	int err;

	if (strcmp(path, "-") != 0)
		return file_write(path, write_profile, &context, e);
	err = format->write(p, stdout, e);
	if (err)
		return err;
	err = tool_flush();
	return err ? error_set(e, -err, "cannot write to standard output") : 0;
}

/* limit -1: as many rows as a terminal shows. */
static struct report_table_options table_options(long limit)
{
	struct report_table_options options = { .limit = limit < 0 ? 0 : limit };
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return options;
	options.color = !getenv("NO_COLOR") || !*getenv("NO_COLOR");
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return options;
	options.width = size.ws_col;
	/* Room for the header, the line about the rest, the summary and the prompt. */
	if (limit < 0)
		options.limit = size.ws_row > 20 ? size.ws_row - 10 : 10;
	return options;
}

int tool_print(const struct profile *p, bool json, long limit, struct error *e)
{
	struct report_table_options options = table_options(limit);
	int err = json ? report_json(p, stdout) : report_table(p, &options, stdout);

	tool_flush(); /* main() asks how it went */
	return err ? error_no_memory(e) : 0;
}

int tool_flush(void)
{
	static int first_error;

	errno = 0;
	if (fflush(stdout) && !first_error)
		first_error = -errno;
	if (ferror(stdout) && !first_error)
		first_error = -EIO; /* a write before, whose reason is forgotten */
	return first_error;
}

int tool_option_limit(const char *value, void *member, struct error *e)
{
	uint64_t limit;

	if (number_parse(value, 0, 1000000000, &limit))
		return error_set(e, 0, "-n takes a number of rows (0: all), not \"%s\"", value);
	*(long *)member = limit;
	return 0;
}
