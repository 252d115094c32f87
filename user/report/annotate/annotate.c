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

/* ":" if another instruction jumps to it, and the loops that it is in. */
static const char *target_text(const struct code_loops *loops, size_t number, bool is_target,
			       char buffer[TABLE_CELL_SIZE])
{
	if (loops->depth)
		snprintf(buffer, TABLE_CELL_SIZE, "%c %s", is_target ? ':' : ' ',
			 loops->marks[number]);
	else
		snprintf(buffer, TABLE_CELL_SIZE, "%s", is_target ? ":" : "");
	return buffer;
}

static void instruction_columns(struct columns *c, const struct listing *l,
				const struct listing_line *line)
{
	const struct instruction *i = &l->a->code.instructions[line->number];

	c->is_blank = line->kind == LISTING_TEXT;
	COLUMN(c, "address", NULL, 0, text_hex(c->buffer, i->address));
	COLUMN(c, "B", NULL, 0, target_text(l->context, line->number, i->is_target, c->buffer));
	c->is_blank = false;
	COLUMN(c, "instruction", NULL, COLUMN_TEXT | COLUMN_HOT, line->text ?: i->text);
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
		.describe = instruction_columns,
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
			is_shown |= !annotation_is_quiet(a, &a->code_counts, near);
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
