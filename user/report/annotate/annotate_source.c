// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/annotate/listing.h"
#include "report/text.h"

/* Lines at this distance from one with samples are shown too. */
#define NEAR 2

/*
 * A start line further before the first line with samples is implausible.
 * Bound: files: lines from a function's start to its first samples; then: they are not shown; seen:
 * not seen.
 */
#define FUNCTION_MAX 100000

/* listing_line.number: an index of a->lines if counted, else the line number. */
static void source_columns(struct columns *c, const struct listing *l,
			   const struct listing_line *line)
{
	const struct source_line *s =
		line->kind == LISTING_COUNTED ? &l->a->lines.lines[line->number] : NULL;

	c->is_blank = line->kind == LISTING_TEXT || (s && s->inlined);
	COLUMN(c, "line", NULL, COLUMN_KNOWN, (uint64_t)(s ? s->number : line->number));
	c->is_blank = false;
	COLUMN(c, "source", NULL, COLUMN_TEXT | COLUMN_HOT, line->text ?: "");
}

/* The text of a line, "" if it is unknown; to be free()d, or NULL. */
static char *line_text(const struct source_file *file, uint64_t number)
{
	return text_expand_tabs(source_file_line(file, number) ?: "");
}

/* The shown part of a file: its lines in a->lines, and the text around them. */
struct part {
	struct annotation *a;
	const struct source_file *file;
	size_t from, to;      /* indices of a->lines */
	uint32_t first, last; /* lines of the function; 0: unknown */
	uint32_t start;	      /* the line where it starts; 0: unknown */
};

/* Adds a line with counts; the innermost one of inlined functions as "> f at x.h:12  text". */
static int add_counted(struct listing *l, struct part *part, size_t number)
{
	struct source_line *s = &part->a->lines.lines[number];
	const struct source_file *file;
	char *text, *whole;
	int n;

	if (!s->inlined) {
		text = s->number ? line_text(part->file, s->number) : strdup("[no line]");
		return text ? listing_add(l, LISTING_COUNTED, number, text) : -ENOMEM;
	}
	if (source_files_find(&part->a->files, s->inlined_file, &file))
		return -ENOMEM;
	text = line_text(file, s->inlined_number);
	if (!text)
		return -ENOMEM;
	n = asprintf(&whole, "> %s at %s:%" PRIu32 "%s%s", s->inlined,
		     text_basename(s->inlined_file), s->inlined_number, *text ? "  " : "",
		     text + strspn(text, " "));
	free(text);
	return n < 0 ? -ENOMEM : listing_add(l, LISTING_COUNTED, number, whole);
}

static int add_plain(struct listing *l, const struct part *part, uint64_t number)
{
	char *text = line_text(part->file, number);

	return text ? listing_add(l, LISTING_PLAIN, number, text) : -ENOMEM;
}

/* Ends a run of omitted lines. A single one is shown: a note would take as much room. */
static int add_omitted(struct listing *l, const struct part *part, uint64_t next, size_t *omitted)
{
	size_t count = *omitted;

	*omitted = 0;
	if (count == 1)
		return add_plain(l, part, next - 1);
	return count ? listing_add_omitted(l, count, "lines") : 0;
}

/* Adds lines without counts from `number` to before `end`; the counted line `next` follows. */
static int add_gap(struct listing *l, const struct part *part, size_t next, uint64_t number,
		   uint64_t end, bool all)
{
	const struct source_line *lines = part->a->lines.lines;
	size_t omitted = 0;
	int err = 0;

	for (; number < end && !err; number++) {
		bool is_near = number == part->start ||
			       (next < part->to && lines[next].number - number <= NEAR) ||
			       (next > part->from && lines[next - 1].number &&
				number - lines[next - 1].number <= NEAR);

		if (!all && !is_near) {
			omitted++;
			continue;
		}
		err = add_omitted(l, part, number, &omitted);
		err = err ?: add_plain(l, part, number);
	}
	return err ?: add_omitted(l, part, end, &omitted);
}

static void widen_part(struct part *part, uint32_t number)
{
	if (!number)
		return;
	if (!part->first || number < part->first)
		part->first = number;
	if (number > part->last)
		part->last = number;
}

/* The line where the function starts, if that is in this file; else 0. */
static uint32_t start_line(const struct annotation *a, const char *file)
{
	const struct profile *p = a->line_places;

	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct profile_function *f;

		if (a->lines.own[i] == PROFILE_NONE || !l->line_count)
			continue;
		f = &p->functions[p->lines[l->first_line + l->line_count - 1].function];
		if (f->start_line && strcmp(f->file, file) == 0)
			return f->start_line;
	}
	return 0;
}

/* Sets first, last and start: the lines with samples, and those of the function's code. */
static void find_range(struct part *part)
{
	const struct annotation *a = part->a;
	const char *name = part->file->name;
	uint32_t start;

	for (size_t i = part->from; i < part->to; i++)
		widen_part(part, a->lines.lines[i].number);
	if (part->from > 0)
		return; /* a file that the function's own includes */
	start = start_line(a, name);
	for (uint32_t i = 0; a->code_places && i < a->code_places->location_count; i++) {
		struct source_line line = source_line_of(a->code_places, i);

		if (strcmp(line.file, name) == 0)
			widen_part(part, line.number);
	}
	if (start < part->first && part->first - start <= FUNCTION_MAX) {
		part->start = start;
		widen_part(part, start);
	}
}

int annotate_source(struct annotation *a, const struct report_listing_options *o, FILE *out)
{
	const struct source_line *lines = a->lines.lines;
	struct listing l = {
		.a = a,
		.tallies = &a->line_counts,
		.describe = source_columns,
	};
	size_t from = 0, to, line_count;
	uint64_t number, limit;
	int err = 0;

	for (; from < a->lines.count && !err; from = to) {
		struct part part = { .a = a, .from = from };
		const char *name = lines[from].file;
		char *heading;

		for (to = from + 1; to < a->lines.count; to++)
			if (strcmp(lines[to].file, name) != 0)
				break;
		part.to = to;
		err = source_files_find(&a->files, name, &part.file);
		if (err)
			break;
		heading = strdup(*name ? name : "[no source file]");
		err = heading ? listing_add(&l, LISTING_TEXT, 0, heading) : -ENOMEM;
		if (err)
			break;
		find_range(&part);
		line_count = part.file->line_count;
		number = part.first ?: 1;
		limit = (part.last < line_count ? part.last : line_count) + 1;
		for (size_t i = from; i < to && !err; i++) {
			uint64_t next = lines[i].number;

			if (next && !lines[i].inlined) {
				err = add_gap(&l, &part, i, number, next < limit ? next : limit,
					      o->all);
				number = next + 1;
			}
			err = err ?: add_counted(&l, &part, i);
		}
		if (part.first)
			err = err ?: add_gap(&l, &part, to, number, limit, o->all);
	}
	err = err ?: listing_print(&l, o, out);
	listing_free(&l);
	return err;
}
