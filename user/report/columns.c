// SPDX-License-Identifier: GPL-2.0-only
#include "report/columns.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "util/array.h"

struct table_column {
	const char *title;
	unsigned int format;
	size_t number; /* as it is described */
};

bool columns_next(struct columns *c, const char *title, const char *key, unsigned int format)
{
	c->format = format;
	c->key = key;
	if (c->json)
		return key && c->object;
	if (!title)
		return false;
	if (!c->list_room)
		return c->number++ == c->wanted && !c->is_blank;
	if (!c->err)
		c->err = array_add(c->list, c->list_count, c->list_room,
				   (struct table_column){ title, format, c->number++ });
	return false;
}

void columns_json_value(struct columns *c, struct json_object *value)
{
	json_add(&c->object, c->key, value);
}

void columns_text(struct columns *c, const char *raw)
{
	if (c->json)
		json_add_text(&c->object, c->key, raw);
	else
		c->text = raw;
}

void columns_double(struct columns *c, double value)
{
	unsigned int decimals = c->format & COLUMN_DECIMALS;

	if (c->json)
		columns_json_value(c, json_decimal(value, c->format >> 14 ?: decimals));
	else
		c->text = text_number(c->buffer, value, decimals, c->format & COLUMN_SIGNED);
}

void columns_share(struct columns *c, struct column_share value)
{
	if (c->json) {
		columns_json_value(c, json_percent(value.part, value.whole));
		return;
	}
	text_percent(c->buffer, value.part, value.whole);
	c->text = c->buffer;
}

void columns_integer(struct columns *c, __int128 value)
{
	if (!value && (c->format & COLUMN_KNOWN)) {
		c->text = "-";
	} else if (c->json) {
		columns_json_value(c, value > INT64_MAX ? json_object_new_uint64(value)
							: json_object_new_int64(value));
	} else if (c->format & COLUMN_NS) {
		c->text = text_number(c->buffer, (double)value / 1e9, 3, false);
	} else {
		snprintf(c->buffer, TABLE_CELL_SIZE, "%s%" PRIu64, value < 0 ? "-" : "",
			 (uint64_t)(value < 0 ? -value : value));
		c->text = c->buffer;
	}
}

struct json_object *columns_json(columns_function *describe, const void *view, size_t row)
{
	char buffer[TABLE_CELL_SIZE];
	struct columns c = {
		.json = true,
		.object = json_object_new_object(),
		.buffer = buffer,
	};

	describe(&c, view, row);
	return c.object;
}

void columns_list(struct json_writer *w, const char *key, columns_function *describe,
		  const void *view, size_t rows)
{
	json_begin_list(w, key);
	for (size_t i = 0; i < rows && !w->err; i++)
		json_element(w, columns_json(describe, view, i));
	json_end_list(w);
}

/* Stores the columns of a table, to be free()d. Returns 0 or -ENOMEM. */
static int list_columns(columns_function *describe, const void *view, struct table_column **list,
			size_t *count)
{
	struct columns c = { 0 };
	size_t kept = 0;

	c.err = array_reserve(&c.list, &c.list_room, 1, sizeof(*c.list));
	if (!c.err)
		describe(&c, view, 0);
	*list = calloc(c.list_count + 1, sizeof(**list));
	if (!*list)
		c.err = -ENOMEM;
	for (unsigned int rank = 0; rank <= COLUMN_NAMES && !c.err; rank += COLUMN_OWNER)
		for (size_t i = 0; i < c.list_count; i++)
			if ((c.list[i].format & (COLUMN_OWNER | COLUMN_NAMES)) == rank)
				(*list)[kept++] = c.list[i];
	*count = c.list_count;
	free(c.list);
	return c.err;
}

/* --- Tables --- */

#define GAP	     2	/* blanks between columns */
#define TEXT_MIN     12 /* columns that a text keeps, even in a narrow terminal */
#define KEY_MIN	     23 /* of the first text, as long as others can be shortened */
#define TEXT_PADDING 60 /* at most, in a pipe: a longer text does not widen its column */
/* Of a live table: columns that change with every text would be hard to follow. */
#define NUMBER_WIDTH 6
#define LAST_WIDTH   16 /* of the last text; the one before it takes all remaining columns */

struct layout {
	columns_function *describe;
	const void *view;
	unsigned int width;
	bool is_live;
	struct table_column *columns;
	size_t count;	/* of columns that are shown */
	size_t *shown;	/* their numbers */
	size_t *widths; /* of each column, shown or not */
};

static size_t max(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The raw text of a cell: `buffer`, of TABLE_CELL_SIZE, or a string of the view. */
static const char *cell_text(const struct layout *l, size_t row, size_t column, char *buffer)
{
	struct columns c = { .buffer = buffer, .wanted = l->columns[column].number };

	l->describe(&c, l->view, row);
	return c.text ?: "";
}

static bool is_text(const struct layout *l, size_t i)
{
	return l->columns[l->shown[i]].format & COLUMN_TEXT;
}

/* How wide a column is at least when texts are shortened to `least` columns. */
static size_t least_width(const struct layout *l, size_t i, size_t least)
{
	const size_t width = l->widths[l->shown[i]];

	return is_text(l, i) && !(l->columns[l->shown[i]].format & COLUMN_WHOLE) ? min(width, least)
										 : width;
}

/* The width of the table when the first text is shortened to `key` columns, all others to `least`.
 */
static size_t total_width(const struct layout *l, size_t key, size_t least)
{
	size_t sum = 0;
	bool first = true;

	for (size_t i = 0; i < l->count; i++) {
		sum += least_width(l, i, first ? key : least);
		first &= !is_text(l, i);
	}
	return sum + (l->count - 1) * GAP;
}

/*
 * Omits a column: the last optional one; if there is none, the last text but the first; if there is
 * none and all may go, the last number but the first two. Returns false if none may be omitted.
 */
static bool drop_column(struct layout *l, bool all)
{
	size_t optional = l->count, text = l->count, number = l->count, texts = 0, i;

	for (i = 0; i < l->count; i++) {
		if (l->columns[l->shown[i]].format & COLUMN_OPTIONAL)
			optional = i;
		if (is_text(l, i) && texts++ > 0)
			text = i;
		if (!is_text(l, i) && i > 1)
			number = i;
	}
	i = all ? number : l->count;
	if (all && text < l->count)
		i = text;
	if (optional < l->count)
		i = optional;
	if (i == l->count)
		return false;
	l->count--;
	memmove(&l->shown[i], &l->shown[i + 1], (l->count - i) * sizeof(*l->shown));
	return true;
}

/*
 * The width of the widest text among the first columns that can be shortened, or NULL. The first of
 * them keeps `key` columns.
 */
static size_t *widest_text(const struct layout *l, size_t count, size_t key)
{
	size_t *widest = NULL, least = key;

	for (size_t i = 0; i < count; i++) {
		size_t *width = &l->widths[l->shown[i]];

		if (least_width(l, i, least) < *width && (!widest || *width >= *widest))
			widest = width;
		least = is_text(l, i) ? TEXT_MIN : least;
	}
	return widest;
}

/*
 * Omits columns and narrows texts until the table fits `width` columns. The last of several texts
 * gets at most a third of them.
 */
static void fit_columns(struct layout *l)
{
	const size_t width = l->width;
	/* A row's key is cut last. A live table keeps its columns. */
	const size_t key = l->is_live ? TEXT_MIN : KEY_MIN;
	size_t *last, *widest;

	while (total_width(l, key, TEXT_MIN) > width && drop_column(l, false))
		;
	while (total_width(l, TEXT_MIN, TEXT_MIN) > width && drop_column(l, true))
		;
	last = &l->widths[l->shown[l->count - 1]];
	if (total_width(l, SIZE_MAX, SIZE_MAX) > width && widest_text(l, l->count - 1, TEXT_MIN) &&
	    !(l->columns[l->shown[l->count - 1]].format & COLUMN_WHOLE))
		*last = min(*last, max(width / 3, TEXT_MIN));
	while (total_width(l, SIZE_MAX, SIZE_MAX) > width &&
	       widest_text(l, l->count - 1, TEXT_MIN)) {
		widest = widest_text(l, l->count, key) ?: widest_text(l, l->count, TEXT_MIN);
		--*widest;
	}
	if (total_width(l, SIZE_MAX, SIZE_MAX) > width && is_text(l, l->count - 1)) {
		size_t rest = total_width(l, SIZE_MAX, SIZE_MAX) - *last;

		*last = max(width > rest ? width - rest : 0, min(*last, TEXT_MIN));
	}
}

static void print_blanks(size_t blanks, FILE *out)
{
	fprintf(out, "%*s", (int)blanks, "");
}

static int print_cell(const struct layout *l, size_t i, const char *raw, struct table_looks looks,
		      FILE *out)
{
	size_t width = l->widths[l->shown[i]], columns = text_columns(raw);
	bool red = looks.hot && l->columns[l->shown[i]].format & COLUMN_HOT;
	char *visible = text_visible(raw);

	if (!visible)
		return -ENOMEM;
	if (l->width && is_text(l, i) && columns > width) {
		if (looks.is_line)
			text_shorten_line(visible, width);
		else if (l->columns[l->shown[i]].format & COLUMN_PATH)
			text_shorten_path(visible, width);
		else
			text_shorten(visible, width);
		columns = text_columns(visible);
	}
	if (!is_text(l, i))
		print_blanks(columns < width ? width - columns : 0, out);
	fprintf(out, "%s%s%s", red ? TEXT_RED : "", visible, red ? TEXT_PLAIN : "");
	if (is_text(l, i) && i + 1 < l->count)
		print_blanks(columns < width ? width - columns : 0, out);
	if (i + 1 < l->count)
		print_blanks(GAP, out);
	free(visible);
	return 0;
}

bool table_is_hot(double part, double whole)
{
	return whole > 0 && fabs(part) * 100 >= whole * TABLE_HOT_PERCENT;
}

int table_print(columns_function *describe, const void *view, size_t rows, unsigned int width,
		unsigned int style, FILE *out)
{
	struct layout l = {
		.describe = describe,
		.view = view,
		.width = width,
		.is_live = style & TABLE_LIVE,
	};
	char buffer[TABLE_CELL_SIZE];
	int err = list_columns(describe, view, &l.columns, &l.count);
	size_t count = l.count;
	const bool color = style & TABLE_COLOR;

	l.shown = calloc(count + 1, sizeof(*l.shown));
	l.widths = calloc(count + 1, sizeof(*l.widths));
	if (err || !l.shown || !l.widths) {
		err = -ENOMEM;
		goto out;
	}
	/* All columns, each as wide as its header and rows need; then what fits. */
	for (size_t i = 0; i < count; i++) {
		l.shown[i] = i;
		l.widths[i] =
			max(text_columns(l.columns[i].title),
			    l.is_live && !(l.columns[i].format & (COLUMN_OWNER | COLUMN_NAMES))
				    ? NUMBER_WIDTH
				    : 0);
		for (size_t row = 0; row < rows; row++)
			l.widths[i] = max(l.widths[i], text_columns(cell_text(&l, row, i, buffer)));
	}
	if (l.is_live && width && l.count > 1 && is_text(&l, l.count - 2)) {
		l.widths[l.count - 2] = max(l.widths[l.count - 2], width);
		l.widths[l.count - 1] = max(l.widths[l.count - 1], LAST_WIDTH);
	}
	if (width)
		fit_columns(&l);
	for (size_t i = 0; !width && i + 1 < l.count; i++)
		if (is_text(&l, i))
			l.widths[i] = min(l.widths[i], TEXT_PADDING);

	fputs(color ? TEXT_BOLD : "", out);
	for (size_t i = 0; i < l.count && !err; i++)
		err = print_cell(&l, i, l.columns[l.shown[i]].title, (struct table_looks){ 0 },
				 out);
	fputs(color ? TEXT_PLAIN "\n" : "\n", out);
	for (size_t row = 0; row < rows && !err; row++) {
		struct table_looks looks = { 0 };
		struct columns c = { .looks = &looks, .wanted = SIZE_MAX };

		describe(&c, view, row);
		looks.hot &= color;
		looks.faint &= color;
		fputs(looks.faint ? TEXT_FAINT : "", out);
		for (size_t i = 0; i < l.count && !err; i++)
			err = print_cell(&l, i, cell_text(&l, row, l.shown[i], buffer), looks, out);
		fputs(looks.faint ? TEXT_PLAIN "\n" : "\n", out);
	}
out:
	free(l.shown);
	free(l.widths);
	free(l.columns);
	return err;
}
