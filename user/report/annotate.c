// SPDX-License-Identifier: GPL-2.0-only
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/json_writer.h"
#include "report/table.h"
#include "report/text.h"
#include "util/array.h"

#define HOT_PERCENT 5

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

struct line {
	enum line_kind {
		CODE,
		SOURCE,
		LEFT_OUT
	} kind;
	size_t number; /* of the instruction, or the source line */
};

struct listing {
	const struct annotation *a;
	struct line *lines;
	size_t count, room;
	size_t shown_source; /* the last */
};

static uint64_t first_count(const struct annotation *a, size_t instruction)
{
	return a->counts[instruction * a->value_count];
}

static bool is_quiet(const struct annotation *a, size_t instruction)
{
	for (size_t i = 0; i < a->value_count; i++)
		if (a->counts[instruction * a->value_count + i])
			return false;
	return true;
}

static int add_line(struct listing *l, enum line_kind kind, size_t number)
{
	if (array_reserve(&l->lines, &l->room, l->count + 1, sizeof(*l->lines)))
		return -ENOMEM;
	l->lines[l->count++] = (struct line){ kind, number };
	return 0;
}

/* The source lines that begin at it, or that which it belongs to if another one was shown last. */
static int add_sources(struct listing *l, const struct instruction *i)
{
	size_t first = i->new_source;
	int err = 0;

	if (i->source == NO_SOURCE || i->source == l->shown_source)
		return 0;
	if (first > i->source)
		first = i->source;
	for (size_t j = first; j <= i->source && !err; j++)
		err = add_line(l, SOURCE, j);
	l->shown_source = i->source;
	return err;
}

static bool is_shown(const struct annotation *a, size_t instruction)
{
	size_t from = instruction > NEAR ? instruction - NEAR : 0;

	for (size_t i = from; i <= instruction + NEAR && i < a->code.count; i++)
		if (!is_quiet(a, i))
			return true;
	return false;
}

static int add_lines(struct listing *l, bool all)
{
	bool left_out = false;
	int err = 0;

	for (size_t i = 0; i < l->a->code.count && !err; i++) {
		bool shown = all || is_shown(l->a, i);

		if (shown) {
			err = add_sources(l, &l->a->code.instructions[i]);
			err = err ?: add_line(l, CODE, i);
		} else if (!left_out) {
			err = add_line(l, LEFT_OUT, 0);
		}
		left_out = !shown;
	}
	return err;
}

static const char *code_cell(const struct annotation *a, size_t number, size_t column,
			     char buffer[TABLE_CELL_SIZE])
{
	const struct instruction *i = &a->code.instructions[number];

	if (column < a->value_count) {
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64,
			 a->counts[number * a->value_count + column]);
		return buffer;
	}
	switch (column - a->value_count) {
	case ADDRESS:
		snprintf(buffer, TABLE_CELL_SIZE, "0x%" PRIx64, i->address);
		return buffer;
	case TARGET:
		return i->is_target ? ":" : "";
	default:
		return i->text;
	}
}

static const char *cell(const void *context, size_t row, size_t column,
			char buffer[TABLE_CELL_SIZE])
{
	const struct listing *l = context;
	const struct line *line = &l->lines[row];

	if (line->kind == CODE)
		return code_cell(l->a, line->number, column, buffer);
	if (column != l->a->value_count + INSTRUCTION)
		return "";
	return line->kind == LEFT_OUT ? "..." : l->a->code.sources[line->number];
}

static bool is_hot(const void *context, size_t row)
{
	const struct listing *l = context;
	const struct line *line = &l->lines[row];

	return line->kind == CODE &&
	       (double)first_count(l->a, line->number) * 100 >= (double)l->a->samples * HOT_PERCENT;
}

static int print(const struct listing *l, const struct report_listing_options *o, FILE *out)
{
	const struct annotation *a = l->a;
	struct table_column *columns = calloc(a->value_count + COLUMNS, sizeof(*columns));
	char **titles = calloc(a->value_count, sizeof(*titles));
	struct table t = {
		.columns = columns,
		.column_count = a->value_count + COLUMNS,
		.row_count = l->count,
		.cell = cell,
		.is_hot = is_hot,
		.context = l,
		.width = o->width,
		.color = o->color,
	};
	int err = columns && titles ? 0 : -ENOMEM;

	for (size_t i = 0; i < a->value_count && !err; i++) {
		titles[i] = rows_title(a->p, a->values[i]);
		columns[i] = (struct table_column){ .title = titles[i], .is_hot = i == 0 };
		err = titles[i] ? 0 : -ENOMEM;
	}
	if (!err) {
		columns[a->value_count + ADDRESS].title = "address";
		columns[a->value_count + TARGET].title = "B";
		columns[a->value_count + INSTRUCTION] = (struct table_column){
			.title = "instruction", .is_text = true, .is_hot = true
		};
		err = table_print(&t, out);
	}
	for (size_t i = 0; titles && i < a->value_count; i++)
		free(titles[i]);
	free(titles);
	free(columns);
	return err;
}

int report_listing(const struct annotation *a, const struct report_listing_options *o, FILE *out)
{
	struct listing l = { .a = a, .shown_source = NO_SOURCE };
	int err = add_lines(&l, o->all);

	err = err ?: print(&l, o, out);
	free(l.lines);
	return err;
}

static struct json_object *sources_array(const struct annotation *a, const struct instruction *i)
{
	struct json_object *array = json_object_new_array();

	for (size_t j = i->new_source; array && i->source != NO_SOURCE && j <= i->source; j++) {
		struct json_object *text = json_text(a->code.sources[j]);

		if (!text || json_object_array_add(array, text)) {
			json_object_put(text);
			json_object_put(array);
			return NULL;
		}
	}
	return array;
}

/* Its count of each event, where the profile has several. */
static int add_values(struct json_object *object, const struct annotation *a, size_t number)
{
	struct json_object *values = json_object_new_object();
	int err = values ? 0 : -ENOMEM;

	for (size_t i = 0; i < a->value_count && !err; i++) {
		uint64_t count = a->counts[number * a->value_count + i];
		char *title = rows_title(a->p, a->values[i]);

		err = title ? json_add(values, title, json_object_new_uint64(count)) : -ENOMEM;
		free(title);
	}
	if (!err)
		return json_add(object, "values", values);
	json_object_put(values);
	return err;
}

static struct json_object *instruction_object(const struct annotation *a, size_t number)
{
	const struct instruction *i = &a->code.instructions[number];
	struct json_object *object = json_object_new_object();

	if (!object)
		return NULL;
	if (json_add(object, "address", json_hex(i->address)) ||
	    json_add(object, "target", json_object_new_boolean(i->is_target)) ||
	    json_add(object, "instruction", json_text(i->text)) ||
	    json_add(object, "source", sources_array(a, i)) ||
	    json_add(object, "self", json_object_new_uint64(first_count(a, number))) ||
	    (a->value_count > 1 && add_values(object, a, number))) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

int report_listing_json(const struct annotation *a, FILE *out)
{
	struct json_writer w;

	json_begin(&w, out);
	if (a->function)
		json_member(&w, "function", json_text(a->function));
	json_member(&w, "image", json_text(a->p->images[a->image].path));
	json_member(&w, "start", json_hex(a->extent.start));
	json_member(&w, "limit", json_hex(a->extent.limit));
	json_member(&w, "self", json_object_new_uint64(a->samples));
	json_begin_list(&w, "instructions");
	for (size_t i = 0; i < a->code.count && !w.err; i++)
		json_element(&w, instruction_object(a, i));
	json_end_list(&w);
	return json_end(&w);
}

int report_listing_title(const struct annotation *a, const char *prefix, FILE *out)
{
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
	text_print(a->p->images[a->image].path, out);
	text_percent(percent, a->samples, a->all_samples);
	fprintf(out, ": %" PRIu64 " ", a->samples);
	text_print(counted, out);
	fprintf(out, ", %s %% of all\n", percent);
	free(counted);
	return 0;
}
