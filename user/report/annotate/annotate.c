// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/annotate/code_loops.h"
#include "report/annotate/listing.h"
#include "report/rows.h"
#include "report/text.h"

/*
 * Instructions at this distance from one with samples are shown too: the one that took the time can
 * precede the interrupted one.
 */
#define NEAR 2

/* Columns after the counts. */
enum {
	ADDRESS,
	TARGET,
	INSTRUCTION,
	COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	[ADDRESS] = { .title = "address" },
	[TARGET] = { .title = "B" },
	[INSTRUCTION] = { .title = "instruction", .is_text = true, .is_hot = true },
};

static const char *instruction_cell(const struct listing *l, const struct listing_line *line,
				    size_t column, char buffer[TABLE_CELL_SIZE])
{
	const struct instruction *i = &l->a->code.instructions[line->number];
	const struct code_loops *loops = l->context;

	switch (column) {
	case ADDRESS:
		snprintf(buffer, TABLE_CELL_SIZE, "0x%" PRIx64, i->address);
		return buffer;
	case TARGET:
		if (loops->depth)
			snprintf(buffer, TABLE_CELL_SIZE, "%c %s", i->is_target ? ':' : ' ',
				 loops->marks[line->number]);
		else
			snprintf(buffer, TABLE_CELL_SIZE, "%s", i->is_target ? ":" : "");
		return buffer;
	default:
		return i->text;
	}
}

/* "x.c:12  text", or "x.h:12 (inlined f)  text". */
static int add_source(struct listing *l, struct source_files *files, const struct source_line *line)
{
	const char *name = line->inlined ? line->inlined_file : line->file, *text;
	uint32_t number = line->inlined ? line->inlined_number : line->number;
	const struct source_file *file;
	char *expanded, *whole;
	int n;

	if (!number)
		return 0;
	if (source_files_find(files, name, &file))
		return -ENOMEM;
	text = source_file_line(file, number) ?: "";
	expanded = text_expand_tabs(text);
	if (!expanded)
		return -ENOMEM;
	n = asprintf(&whole, "%s:%" PRIu32 "%s%s%s%s%s", text_basename(name), number,
		     line->inlined ? " (inlined " : "", line->inlined ?: "",
		     line->inlined ? ")" : "", *expanded ? "  " : "",
		     expanded + strspn(expanded, " "));
	free(expanded);
	return n < 0 ? -ENOMEM : listing_add(l, LISTING_TEXT, 0, whole);
}

/* Ends a run of omitted instructions. A single one is shown: a note would take as much room. */
static int add_omitted(struct listing *l, size_t next, size_t *omitted)
{
	size_t count = *omitted;

	*omitted = 0;
	if (count == 1)
		return listing_add(l, LISTING_COUNTED, next - 1, NULL);
	return count ? listing_add_omitted(l, count, "instructions") : 0;
}

int report_listing(struct annotation *a, const struct report_listing_options *o, FILE *out)
{
	struct source_line shown = { .file = "" };
	size_t omitted = 0, count = a->code.count;
	struct code_loops loops;
	struct listing l = {
		.a = a,
		.tallies = &a->code_counts,
		.columns = columns,
		.column_count = COLUMNS,
		.cell = instruction_cell,
		.context = &loops,
	};
	int err;

	if (o->source || !count)
		return annotate_source(a, o, out);
	err = code_loops_draw(&loops, &a->code);
	for (size_t i = 0; i < count && !err; i++) {
		struct source_line line = shown;
		bool is_shown = o->all;

		for (size_t near = i > NEAR ? i - NEAR : 0; near <= i + NEAR && near < count;
		     near++)
			is_shown |= !listing_is_quiet(&l, near);
		if (!is_shown) {
			omitted++;
			continue;
		}
		err = add_omitted(&l, i, &omitted);
		if (a->code_places)
			line = source_line_inlined(a->code_places, i);
		if (!err && (line.number != shown.number || line.inlined != shown.inlined ||
			     line.inlined_number != shown.inlined_number ||
			     strcmp(line.file, shown.file) != 0))
			err = add_source(&l, &a->files, &line);
		shown = line;
		err = err ?: listing_add(&l, LISTING_COUNTED, i, NULL);
	}
	err = err ?: add_omitted(&l, count, &omitted);
	err = err ?: listing_print(&l, o, out);
	listing_free(&l);
	code_loops_free(&loops);
	return err;
}

void report_listing_title(const struct annotation *a, const char *prefix, FILE *out)
{
	const char *image = a->image == PROFILE_NONE ? row_unknown : a->p->images[a->image].path;
	char percent[TEXT_PERCENT_SIZE];

	fputs(prefix, out);
	if (a->function)
		text_print(a->function, out);
	else
		fprintf(out, "0x%" PRIx64, a->extent.start);
	fputs(" in ", out);
	text_print(image, out);
	text_percent(percent, a->samples, a->all_samples);
	fprintf(out, ": %" PRId64 " ", a->samples);
	text_print(a->titles[0], out);
	fprintf(out, ", %s %% of all", percent);
	if (a->stacks) {
		text_percent(percent, a->total, a->all_samples);
		fprintf(out, "; with what it calls %" PRId64 ", %s %%", a->total, percent);
	}
	fputc('\n', out);
}

/* Prints a line: prefix, before, the name in its visible form, after. */
static void print_note(const char *prefix, const char *before, const char *name, const char *after,
		       FILE *out)
{
	fprintf(out, "%s%s", prefix, before);
	text_print(name, out);
	fprintf(out, "%s\n", after);
}

/* The source files that one note is about. */
struct noted_files {
	const char *first; /* the name of one */
	size_t count;
};

static void add_file(struct noted_files *files, const struct source_file *f)
{
	files->first = files->first ?: f->name;
	files->count++;
}

static void print_files(const char *prefix, const char *before, const struct noted_files *files,
			const char *after, FILE *out)
{
	char more[128];

	if (!files->count)
		return;
	snprintf(more, sizeof(more), " and %zu more%s", files->count - 1, after);
	print_note(prefix, before, files->first, files->count > 1 ? more : after, out);
}

/*
 * Whether the source of a script has the function's name where it begins. A container that is gone
 * may have had another file of this path. True if that cannot be known.
 */
static bool has_function_line(const struct annotation *a, const struct source_file *f)
{
	const char *name = a->function, *line;
	size_t size;

	/* The last part of "Class.method", "f.<locals>.g", "Package::f" and "Class->method". */
	for (const char *at = name; *at; at++)
		if (strchr(".:>\\", *at))
			name = at + 1;
	size = strcspn(name, "<>({[ ");
	if (!size || name[size])
		return true;
	for (uint32_t i = 0; i < a->p->function_count; i++) {
		const struct profile_function *function = &a->p->functions[i];

		if (!function->start_line || strcmp(function->name, a->function) != 0 ||
		    strcmp(function->file, f->name) != 0)
			continue;
		line = source_file_line(f, function->start_line);
		line = line ? line + strspn(line, " \t") : "";
		/* A decorator is before the name. */
		return strstr(line, name) || *line == '@' || strncmp(line, "#[", 2) == 0;
	}
	return true;
}

void report_listing_notes(const struct annotation *a, const char *prefix, FILE *out)
{
	const char *image = a->image == PROFILE_NONE ? "" : a->p->images[a->image].path;
	struct noted_files missing = { 0 }, changed = { 0 }, edited = { 0 }, large = { 0 },
			   private = { 0 }, other = { 0 };
	struct stat status;
	bool has_image = *image == '/' && stat(image, &status) == 0;

	if (!a->code.count && !a->script)
		print_note(prefix, "no instructions: ", a->no_code.what, "", out);
	if (!a->code.count && !a->script && a->no_code.hint[0])
		print_note(prefix, "  ", a->no_code.hint, "", out);
	if (a->code_places && !annotation_has_lines(a))
		print_note(prefix, "no source lines: ", image,
			   " has no debug information for it; install its -dbgsym package, or "
			   "build it with -g",
			   out);
	for (size_t i = 0; a->code_places && i < a->code_places->warning_count; i++)
		print_note(prefix, "", a->code_places->warnings[i], "", out);
	for (size_t i = 0; i < a->files.count; i++) {
		const struct source_file *f = a->files.files[i];

		if (f->too_large)
			add_file(&large, f);
		else if (f->is_private)
			add_file(&private, f);
		else if (*f->name && !f->text)
			add_file(&missing, f);
		else if (f->text && a->script && !has_function_line(a, f))
			add_file(&other, f);
		else if (f->text && a->script && (uint64_t)f->mtime > a->p->time_ns / 1000000000 &&
			 a->p->time_ns)
			add_file(&edited, f);
		else if (f->text && !a->script && has_image && f->mtime > status.st_mtime)
			add_file(&changed, f);
	}
	print_files(prefix, "source file not found: ", &missing,
		    "; --source-path names its directory", out);
	print_files(prefix, "source file not read: ", &private,
		    ": not all may read it; if it is meant, --source-path names its directory",
		    out);
	print_files(prefix, "source file not read: ", &large,
		    ": all together are limited to 64 MiB", out);
	print_files(prefix, "the function does not begin where it did: ", &other,
		    "; it is another file, or was changed", out);
	print_files(prefix, "changed since the recording began: ", &edited,
		    "; line numbers may be wrong", out);
	print_files(prefix, "changed since the program was built: ", &changed,
		    "; line numbers may be wrong", out);
}
