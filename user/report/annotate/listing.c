// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "util/array.h"

int listing_add(struct listing *l, enum listing_kind kind, size_t number, char *text)
{
	if (array_reserve(&l->lines, &l->room, l->count + 1, sizeof(*l->lines))) {
		free(text);
		return -ENOMEM;
	}
	l->lines[l->count++] = (struct listing_line){ kind, number, text };
	return 0;
}

int listing_add_omitted(struct listing *l, size_t count, const char *what)
{
	char *text;

	if (asprintf(&text, "... %zu %s", count, what) < 0)
		return -ENOMEM;
	return listing_add(l, LISTING_TEXT, 0, text);
}

bool listing_is_quiet(const struct listing *l, size_t number)
{
	for (size_t i = 0; i < l->a->value_count; i++)
		if (l->tallies->self[number * l->a->value_count + i])
			return false;
	return !l->tallies->total[number];
}

/* The columns of counts: the values, %, and with stacks the total of the first value. */
static size_t count_columns(const struct annotation *a)
{
	return a->value_count + 1 + a->stacks;
}

static uint64_t all_of(const struct annotation *a)
{
	return a->stacks ? a->total_weight : a->samples_weight;
}

static int64_t shown_total(const struct listing *l, size_t number)
{
	if (l->a->stacks)
		return l->tallies->total[number];
	return l->tallies->self[number * l->a->value_count];
}

/* The columns: the first value, its total with stacks, %, the other values, and those of l. */
static const char *listing_cell(const void *context, size_t row, size_t column,
				char buffer[TABLE_CELL_SIZE])
{
	const struct listing *l = context;
	const struct listing_line *line = &l->lines[row];
	size_t counts = count_columns(l->a), percent = 1u + l->a->stacks;
	const int64_t *self;
	int64_t count;

	if (column >= counts) {
		if (column == counts + l->column_count - 1 && line->text)
			return line->text;
		return line->kind == LISTING_TEXT ? "" : l->cell(l, line, column - counts, buffer);
	}
	if (line->kind != LISTING_COUNTED)
		return "";
	if (column == percent) {
		text_percent(buffer, shown_total(l, line->number), all_of(l->a));
		return buffer;
	}
	self = &l->tallies->self[line->number * l->a->value_count];
	if (column == 0)
		count = self[0];
	else if (column < percent)
		count = shown_total(l, line->number);
	else
		count = self[column - percent];
	snprintf(buffer, TABLE_CELL_SIZE, "%" PRId64, count);
	return buffer;
}

static bool is_row_hot(const void *context, size_t row)
{
	const struct listing *l = context;
	const struct listing_line *line = &l->lines[row];

	return line->kind == LISTING_COUNTED &&
	       table_is_hot(shown_total(l, line->number), all_of(l->a));
}

static bool is_row_faint(const void *context, size_t row)
{
	const struct listing *l = context;
	const struct listing_line *line = &l->lines[row];

	return line->kind == LISTING_COUNTED && listing_is_quiet(l, line->number);
}

/* Source lines have a text of their own; instructions do not. */
static bool is_row_line(const void *context, size_t row)
{
	const struct listing *l = context;

	return l->lines[row].text != NULL;
}

int listing_print(const struct listing *l, const struct report_listing_options *o, FILE *out)
{
	const struct annotation *a = l->a;
	size_t count = count_columns(a) + l->column_count;
	struct table_column *columns = calloc(count, sizeof(*columns)), *c = columns;
	struct table t = {
		.columns = columns,
		.column_count = count,
		.row_count = l->count,
		.cell = listing_cell,
		.is_hot = is_row_hot,
		.is_faint = is_row_faint,
		.is_line = is_row_line,
		.context = l,
		.width = o->width,
		.color = o->color,
	};
	int err;

	if (!columns)
		return -ENOMEM;
	*c++ = (struct table_column){ .title = a->stacks ? "self" : a->titles[0], .is_hot = true };
	if (a->stacks)
		*c++ = (struct table_column){ .title = "total", .is_hot = true };
	*c++ = (struct table_column){ .title = "%", .is_hot = true };
	for (size_t i = 1; i < a->value_count; i++)
		*c++ = (struct table_column){ .title = a->titles[i] };
	memcpy(c, l->columns, l->column_count * sizeof(*c));
	err = table_print(&t, out);
	free(columns);
	return err;
}

void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->lines[i].text);
	free(l->lines);
	l->lines = NULL;
	l->count = l->room = 0;
}
