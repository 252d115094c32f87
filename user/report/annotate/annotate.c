// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
