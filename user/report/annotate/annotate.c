// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/annotate/code_loops.h"
#include "report/annotation.h"
#include "report/columns.h"
#include "report/json_writer.h"
#include "report/rows.h"
#include "report/text.h"
#include "util/array.h"

/* What listings of instructions and of source lines share: columns of counts, then of texts. */

/*
 * Instructions, and lines, at this distance from one with samples are shown too: the instruction
 * that took the time can precede the interrupted one.
 */
#define NEAR 2

struct listing_line {
	enum listing_kind {
		LISTING_COUNTED,
		LISTING_PLAIN, /* without counts */
		LISTING_TEXT,  /* only `text` */
	} kind;
	size_t number; /* COUNTED: index of tallies; PLAIN: for `describe` */
	char *text;    /* of the last column; NULL: by `describe` */
};

struct listing {
	const struct annotation *a;
	const struct tallies *tallies;
	/* Describes the columns after the counts. */
	void (*describe)(struct columns *c, const struct listing *l,
			 const struct listing_line *line);
	const void *context; /* for `describe` */

	struct listing_line *lines;
	size_t count, room;
};

/* Adds a line. Takes over `text`, even on errors. Both return 0 or -ENOMEM. */
static int listing_add(struct listing *l, enum listing_kind kind, size_t number, char *text)
{
	if (array_add(l->lines, l->count, l->room, (struct listing_line){ kind, number, text })) {
		free(text);
		return -ENOMEM;
	}
	return 0;
}

/* Adds "... 12 lines". what: "lines" or "instructions", which are omitted. */
static int listing_add_omitted(struct listing *l, size_t count, const char *what)
{
	char *text;

	if (asprintf(&text, "... %zu %s", count, what) < 0)
		return -ENOMEM;
	return listing_add(l, LISTING_TEXT, 0, text);
}

/* The columns: the first value, its total with stacks, %, the other values, and those of l. */
static void listing_columns(struct columns *c, const void *view, size_t row)
{
	static const struct listing_line none;
	const struct listing *l = view;
	const struct annotation *a = l->a;
	const struct listing_line *line = row < l->count ? &l->lines[row] : &none;
	const bool counted = line->kind == LISTING_COUNTED;
	const size_t number = counted ? line->number : 0;
	const int64_t *self = &l->tallies->self[number * a->value_count];
	const double total = a->stacks ? l->tallies->total[number] : self[0];
	const double all = a->stacks ? a->total_weight : a->samples_weight;

	LOOKS(c, .hot = counted && table_is_hot(total, all),
	      .faint = counted && annotation_is_quiet(a, l->tallies, number),
	      .is_line = line->text);
	c->is_blank = !counted;
	COLUMN(c, a->stacks ? "self" : a->titles[0], NULL, COLUMN_HOT, self[0]);
	if (a->stacks)
		COLUMN(c, "total", NULL, COLUMN_HOT, l->tallies->total[number]);
	COLUMN(c, "%", NULL, COLUMN_HOT, column_share(total, all));
	for (size_t i = 1; i < a->value_count; i++)
		COLUMN(c, a->titles[i], NULL, 0, self[i]);
	l->describe(c, l, line);
}

/* Prints the listing unless err, and frees it. Returns err, or -ENOMEM. */
static int listing_end(struct listing *l, int err, const struct report_listing_options *o,
		       FILE *out)
{
	err = err ?: table_print(listing_columns, l, l->count, o->width, o->color, out);
	for (size_t i = 0; i < l->count; i++)
		free(l->lines[i].text);
	free(l->lines);
	return err;
}

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
static int add_omitted_lines(struct listing *l, const struct part *part, uint64_t next,
			     size_t *omitted)
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
		err = add_omitted_lines(l, part, number, &omitted);
		err = err ?: add_plain(l, part, number);
	}
	return err ?: add_omitted_lines(l, part, end, &omitted);
}

static void widen_part(struct part *part, uint32_t number)
{
	if (!number)
		return;
	if (!part->first || number < part->first)
		part->first = number;
	part->last = MAX(part->last, number);
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

/* report_listing() of source lines. */
static int annotate_source(struct annotation *a, const struct report_listing_options *o, FILE *out)
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
		limit = MIN(part.last, line_count) + 1;
		for (size_t i = from; i < to && !err; i++) {
			uint64_t next = lines[i].number;

			if (next && !lines[i].inlined) {
				err = add_gap(&l, &part, i, number, MIN(next, limit), o->all);
				number = next + 1;
			}
			err = err ?: add_counted(&l, &part, i);
		}
		if (part.first)
			err = err ?: add_gap(&l, &part, to, number, limit, o->all);
	}
	return listing_end(&l, err, o, out);
}

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
static int add_omitted_instructions(struct listing *l, size_t next, size_t *omitted)
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
		err = add_omitted_instructions(&l, i, &omitted);
		if (a->code_places)
			line = source_line_inlined(a->code_places, i);
		if (!err && (line.number != shown.number || line.inlined != shown.inlined ||
			     line.inlined_number != shown.inlined_number ||
			     strcmp(line.file, shown.file) != 0))
			err = add_source(&l, &a->files, &line);
		shown = line;
		err = err ?: listing_add(&l, LISTING_COUNTED, i, NULL);
	}
	err = err ?: add_omitted_instructions(&l, count, &omitted);
	err = listing_end(&l, err, o, out);
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
	text_percent(percent, a->samples, a->all_samples);
	text_printf(out, " in %s: %" PRId64 " %s, %s %% of all", image, a->samples, a->titles[0],
		    percent);
	if (a->stacks) {
		text_percent(percent, a->total, a->all_samples);
		fprintf(out, "; with what it calls %" PRId64 ", %s %%", a->total, percent);
	}
	fputc('\n', out);
}

static void add_counts(struct json_object **object, const struct annotation *a,
		       const struct tallies *t, size_t number)
{
	const int64_t *self = &t->self[number * a->value_count];
	struct json_object *values;

	json_add(object, "self", json_object_new_int64(self[0]));
	if (a->stacks)
		json_add(object, "total", json_object_new_int64(t->total[number]));
	if (a->value_count == 1)
		return;
	values = json_object_new_object();
	for (size_t i = 0; i < a->value_count; i++)
		json_add_named(&values, a->titles[i], json_object_new_int64(self[i]));
	json_add(object, "values", values);
}

static void add_place(struct json_object **object, const struct source_line *s)
{
	json_add_text(object, "file", s->file);
	json_add_number(object, "line", s->number);
	if (!s->inlined)
		return;
	json_add_text(object, "inlined", s->inlined);
	json_add_text(object, "inlined_file", s->inlined_file);
	json_add_number(object, "inlined_line", s->inlined_number);
}

int report_listing_json(struct annotation *a, FILE *out)
{
	const struct source_file *file = NULL;
	struct json_object *object;
	struct json_writer w;

	json_begin(&w, out);
	if (a->function)
		json_member(&w, "function", json_text(a->function));
	if (a->image != PROFILE_NONE)
		json_member(&w, "image", json_text(a->p->images[a->image].path));
	if (a->extent.limit) {
		json_member(&w, "start", json_hex(a->extent.start));
		json_member(&w, "limit", json_hex(a->extent.limit));
	}
	json_member(&w, "self", json_object_new_int64(a->samples));
	if (a->stacks)
		json_member(&w, "total", json_object_new_int64(a->total));
	json_begin_list(&w, "instructions");
	for (size_t i = 0; i < a->code.count && !w.err; i++) {
		const struct instruction *instruction = &a->code.instructions[i];
		bool is_target = instruction->is_target;
		struct source_line s = { .file = "" };

		if (a->code_places)
			s = source_line_inlined(a->code_places, i);
		object = json_object_new_object();
		json_add(&object, "address", json_hex(instruction->address));
		json_add(&object, "target", json_object_new_boolean(is_target));
		json_add(&object, "instruction", json_text(instruction->text));
		add_place(&object, &s);
		add_counts(&object, a, &a->code_counts, i);
		json_element(&w, object);
	}
	json_end_list(&w);
	json_begin_list(&w, "lines");
	for (size_t i = 0; i < a->lines.count && !w.err; i++) {
		const struct source_line *s = &a->lines.lines[i];
		uint32_t number = s->inlined ? s->inlined_number : s->number;

		object = json_object_new_object();
		add_place(&object, s);
		if (source_files_find(&a->files, s->inlined ? s->inlined_file : s->file, &file))
			json_add(&object, "source", NULL);
		else
			json_add_text(&object, "source", source_file_line(file, number));
		add_counts(&object, a, &a->line_counts, i);
		json_element(&w, object);
	}
	json_end_list(&w);
	return json_end(&w);
}
