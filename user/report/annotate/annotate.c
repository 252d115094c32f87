// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/annotate/annotate_source.h"
#include "report/annotate/code_loops.h"
#include "report/annotate/listing.h"
#include "report/rows.h"
#include "report/text.h"

/*
 * Instructions so near to one with samples are shown, too: what took the time may be before the one
 * that was interrupted.
 */
#define NEAR 2

/* Columns behind the counts. */
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

static const char *cell(const struct listing *l, const struct listing_line *line, size_t column,
			char buffer[TABLE_CELL_SIZE])
{
	const struct instruction *i = &l->a->code.instructions[line->number];
	const struct code_loops *loops = l->context;

	switch (column) {
	case ADDRESS:
		snprintf(buffer, TABLE_CELL_SIZE, "0x%" PRIx64, i->address);
		return buffer;
	case TARGET:
		snprintf(buffer, TABLE_CELL_SIZE, "%s%s%s",
			 i->is_target	? ":"
			 : loops->depth ? " "
					: "",
			 loops->depth ? " " : "", loops->marks[line->number]);
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
	n = expanded ? asprintf(&whole, "%s:%" PRIu32 "%s%s%s%s%s", text_basename(name), number,
				line->inlined ? " (inlined " : "", line->inlined ?: "",
				line->inlined ? ")" : "", *expanded ? "  " : "",
				expanded + strspn(expanded, " "))
		     : -1;
	free(expanded);
	return n < 0 ? -ENOMEM : listing_add(l, LISTING_TEXT, 0, whole);
}

static bool is_same(const struct source_line *a, const struct source_line *b)
{
	return a->number == b->number && a->inlined == b->inlined &&
	       a->inlined_number == b->inlined_number && strcmp(a->file, b->file) == 0;
}

static bool is_shown(const struct listing *l, size_t instruction)
{
	size_t from = instruction > NEAR ? instruction - NEAR : 0;

	for (size_t i = from; i <= instruction + NEAR && i < l->a->code.count; i++)
		if (!listing_is_quiet(l, i))
			return true;
	return false;
}

/* Those before instruction `next`. One is shown, for no more room than it takes to say so. */
static int add_left_out(struct listing *l, size_t next, size_t *left_out)
{
	size_t count = *left_out;

	*left_out = 0;
	if (count == 1)
		return listing_add(l, LISTING_COUNTED, next - 1, NULL);
	return count ? listing_add_left_out(l, count, "instructions") : 0;
}

static int add_lines(struct listing *l, struct annotation *a, bool all)
{
	struct source_line shown = { .file = "" };
	size_t left_out = 0;
	int err = 0;

	for (size_t i = 0; i < a->code.count && !err; i++) {
		struct source_line line = shown;

		if (!all && !is_shown(l, i)) {
			left_out++;
			continue;
		}
		err = add_left_out(l, i, &left_out);
		if (a->code_places)
			line = source_line_inlined(a->code_places, i);
		if (!err && !is_same(&line, &shown))
			err = add_source(l, &a->files, &line);
		shown = line;
		err = err ?: listing_add(l, LISTING_COUNTED, i, NULL);
	}
	return err ?: add_left_out(l, a->code.count, &left_out);
}

static int list_code(struct annotation *a, const struct report_listing_options *o, FILE *out)
{
	struct code_loops loops;
	struct listing l = {
		.a = a,
		.tallies = &a->code_counts,
		.columns = columns,
		.column_count = COLUMNS,
		.cell = cell,
		.context = &loops,
	};
	int err = code_loops_draw(&loops, &a->code);

	err = err ?: add_lines(&l, a, o->all);
	err = err ?: listing_print(&l, o, out);
	listing_free(&l);
	code_loops_free(&loops);
	return err;
}

int report_listing(struct annotation *a, const struct report_listing_options *o, FILE *out)
{
	return o->source || !a->code.count ? annotate_source(a, o, out) : list_code(a, o, out);
}

int report_listing_title(const struct annotation *a, const char *prefix, FILE *out)
{
	const char *image = a->image == PROFILE_NONE ? row_unknown : a->p->images[a->image].path;
	char *counted = rows_title(a->p, a->values[0]);
	char percent[TEXT_PERCENT_SIZE];

	if (!counted)
		return -ENOMEM;
	fputs(prefix, out);
	if (a->function)
		text_print(a->function, out);
	else
		fprintf(out, "0x%" PRIx64, a->extent.start);
	fputs(" in ", out);
	text_print(image, out);
	text_percent(percent, a->samples, a->all_samples);
	fprintf(out, ": %" PRIu64 " ", a->samples);
	text_print(counted, out);
	fprintf(out, ", %s %% of all", percent);
	if (a->stacks) {
		text_percent(percent, a->total, a->all_samples);
		fprintf(out, "; with what it calls %" PRIu64 ", %s %%", a->total, percent);
	}
	fputc('\n', out);
	free(counted);
	return 0;
}

/* A line of notes: prefix, what precedes the name, the name, what follows it. */
static void print_note(const char *prefix, const char *before, const char *name, const char *after,
		       FILE *out)
{
	fprintf(out, "%s%s", prefix, before);
	text_print(name, out);
	fprintf(out, "%s\n", after);
}

/* One line for all files of a kind, by the first of them. */
static void print_files(const char *prefix, const char *before, const struct source_file *first,
			size_t count, const char *after, FILE *out)
{
	if (!count)
		return;
	fprintf(out, "%s%s", prefix, before);
	text_print(first->name, out);
	if (count > 1)
		fprintf(out, " and %zu more", count - 1);
	fprintf(out, "%s\n", after);
}

/* About the files that were wanted: all that have been looked for by now. */
static void print_file_notes(const struct annotation *a, const char *prefix, FILE *out)
{
	const char *image = a->image == PROFILE_NONE ? "" : a->p->images[a->image].path;
	const struct source_file *missing = NULL, *changed = NULL, *large = NULL;
	size_t missing_count = 0, changed_count = 0, large_count = 0;
	struct stat status;
	bool has_image = *image == '/' && stat(image, &status) == 0;

	for (size_t i = 0; i < a->files.count; i++) {
		const struct source_file *f = a->files.files[i];

		if (f->too_large) {
			large = large ?: f;
			large_count++;
		} else if (*f->name && !f->text) {
			missing = missing ?: f;
			missing_count++;
		} else if (f->text && has_image && f->changed > status.st_mtime) {
			changed = changed ?: f;
			changed_count++;
		}
	}
	print_files(prefix, "not here: the source file ", missing, missing_count,
		    "; --source-path tells where to look", out);
	print_files(prefix, "not read: the source file ", large, large_count,
		    ": all together may have 64 MiB", out);
	print_files(prefix, "changed since the program was built: ", changed, changed_count,
		    "; lines may be off", out);
}

void report_listing_notes(const struct annotation *a, const char *prefix, FILE *out)
{
	if (!a->code.count)
		print_note(prefix, "no instructions: ", a->no_code.what, "", out);
	if (!a->code.count && a->no_code.mend[0])
		print_note(prefix, "  ", a->no_code.mend, "", out);
	if (a->code_places && !annotation_has_lines(a))
		print_note(prefix, "no source lines: ", a->p->images[a->image].path,
			   " has no debug information for it; install its -dbgsym package, or "
			   "build it with -g",
			   out);
	for (size_t i = 0; a->code_places && i < a->code_places->warning_count; i++)
		print_note(prefix, "", a->code_places->warnings[i], "", out);
	print_file_notes(a, prefix, out);
}
