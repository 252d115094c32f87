// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/listing.h"

#include <errno.h>
#include <stdlib.h>

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

int listing_print(const struct listing *l, const struct report_listing_options *o, FILE *out)
{
	const struct table t = {
		.describe = listing_columns,
		.context = l,
		.row_count = l->count,
		.width = o->width,
		.color = o->color,
	};

	return table_print(&t, out);
}

void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->lines[i].text);
	free(l->lines);
	l->lines = NULL;
	l->count = l->room = 0;
}
