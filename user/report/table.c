// SPDX-License-Identifier: GPL-2.0-only
#include "report/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/columns.h"
#include "report/text.h"

#define GAP	     2	/* blanks between columns */
#define TEXT_MIN     12 /* columns that a text keeps, even in a narrow terminal */
#define KEY_MIN	     23 /* of the first text, as long as others can be shortened */
#define TEXT_PADDING 60 /* at most, in a pipe: a longer text does not widen its column */
/* Of a live table: columns that change with every text would be hard to follow. */
#define NUMBER_WIDTH 6
#define LAST_WIDTH   16 /* of the last text; the one before it takes all remaining columns */

struct layout {
	const struct table *t;
	const struct table_column *columns;
	size_t count;	/* of columns that are shown */
	size_t *shown;	/* their numbers */
	size_t *widths; /* of each column of t, shown or not */
};

static size_t max(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool is_text(const struct layout *l, size_t i)
{
	return l->columns[l->shown[i]].is_text;
}

/* How wide a column is at least when texts are shortened to `least` columns. */
static size_t least_width(const struct layout *l, size_t i, size_t least)
{
	const size_t width = l->widths[l->shown[i]];

	return is_text(l, i) && !l->columns[l->shown[i]].is_whole ? min(width, least) : width;
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
		if (l->columns[l->shown[i]].is_optional)
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
static void fit_columns(struct layout *l, size_t width)
{
	/* A row's key is cut last. A live table keeps its columns. */
	const size_t key = l->t->is_live ? TEXT_MIN : KEY_MIN;
	size_t *last, *widest;

	while (total_width(l, key, TEXT_MIN) > width && drop_column(l, false))
		;
	while (total_width(l, TEXT_MIN, TEXT_MIN) > width && drop_column(l, true))
		;
	last = &l->widths[l->shown[l->count - 1]];
	if (widest_text(l, l->count - 1, TEXT_MIN))
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
	bool red = looks.hot && l->columns[l->shown[i]].is_hot;
	char *visible = text_visible(raw);

	if (!visible)
		return -ENOMEM;
	if (l->t->width && is_text(l, i) && columns > width) {
		if (looks.is_line)
			text_shorten_line(visible, width);
		else if (l->columns[l->shown[i]].is_path)
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

int table_print(const struct table *t, FILE *out)
{
	struct table_column *columns;
	struct layout l = { .t = t };
	char buffer[TABLE_CELL_SIZE];
	int err = columns_list(t->describe, t->context, &columns, &l.count);
	size_t count = l.count;

	l.columns = columns;
	l.shown = calloc(count + 1, sizeof(*l.shown));
	l.widths = calloc(count + 1, sizeof(*l.widths));
	if (err || !l.shown || !l.widths) {
		err = -ENOMEM;
		goto out;
	}
	/* All columns, each as wide as its header and rows need; then what fits. */
	for (size_t i = 0; i < count; i++) {
		l.shown[i] = i;
		l.widths[i] = max(text_columns(columns[i].title),
				  t->is_live && !columns[i].rank ? NUMBER_WIDTH : 0);
		for (size_t row = 0; row < t->row_count; row++)
			l.widths[i] = max(l.widths[i],
					  text_columns(columns_cell(t->describe, t->context, row,
								    &columns[i], buffer)));
	}
	if (t->is_live && t->width && l.count > 1 && is_text(&l, l.count - 2)) {
		l.widths[l.count - 2] = max(l.widths[l.count - 2], t->width);
		l.widths[l.count - 1] = max(l.widths[l.count - 1], LAST_WIDTH);
	}
	if (t->width)
		fit_columns(&l, t->width);
	for (size_t i = 0; !t->width && i + 1 < l.count; i++)
		if (is_text(&l, i))
			l.widths[i] = min(l.widths[i], TEXT_PADDING);

	fputs(t->color ? TEXT_BOLD : "", out);
	for (size_t i = 0; i < l.count && !err; i++)
		err = print_cell(&l, i, columns[l.shown[i]].title, (struct table_looks){ 0 }, out);
	fputs(t->color ? TEXT_PLAIN "\n" : "\n", out);
	for (size_t row = 0; row < t->row_count && !err; row++) {
		struct table_looks looks = columns_looks(t->describe, t->context, row);

		looks.hot &= t->color;
		looks.faint &= t->color;
		fputs(looks.faint ? TEXT_FAINT : "", out);
		for (size_t i = 0; i < l.count && !err; i++)
			err = print_cell(&l, i,
					 columns_cell(t->describe, t->context, row,
						      &columns[l.shown[i]], buffer),
					 looks, out);
		fputs(looks.faint ? TEXT_PLAIN "\n" : "\n", out);
	}
out:
	free(l.shown);
	free(l.widths);
	free(columns);
	return err;
}
