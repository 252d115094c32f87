// SPDX-License-Identifier: GPL-2.0-only
#include "report/flat/flat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/row_fields.h"
#include "report/table.h"
#include "report/text.h"

#define HOT_PERCENT 5
#define NUMBERS_MAX 4 /* of the first column of rows; the others have two each */

/* What a column of the table shows of a row. */
enum content {
	SELF,
	SELF_PERCENT,
	CUMULATIVE_PERCENT,
	TOTAL,
	TOTAL_PERCENT,
	FIELD,
};

struct flat_column {
	enum content content;
	size_t column; /* of the rows */
	enum row_field field;
};

struct flat {
	const struct rows *r;
	struct flat_column *contents; /* of each of the table's columns */
	struct table_column *columns;
	size_t count;
};

static const char *print_count(uint64_t count, char buffer[TABLE_CELL_SIZE])
{
	snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64, count);
	return buffer;
}

static const char *print_percent(const struct flat *f, size_t column, uint64_t count,
				 char buffer[TABLE_CELL_SIZE])
{
	text_percent(buffer, count, f->r->columns[column].samples);
	return buffer;
}

static const char *cell(const void *context, size_t number, size_t column,
			char buffer[TABLE_CELL_SIZE])
{
	const struct flat *f = context;
	const struct flat_column *c = &f->contents[column];
	const struct row *row = &f->r->rows[number];
	const struct callgraph_cost *count = &row->counts[c->column];

	switch (c->content) {
	case SELF:
		return print_count(count->self, buffer);
	case SELF_PERCENT:
		return print_percent(f, c->column, count->self, buffer);
	case CUMULATIVE_PERCENT:
		return print_percent(f, c->column, row->cumulative, buffer);
	case TOTAL:
		return print_count(count->total, buffer);
	case TOTAL_PERCENT:
		return print_percent(f, c->column, count->total, buffer);
	case FIELD:
		return row_field_text(f->r->view, row, c->field, buffer);
	}
	return "";
}

static bool is_hot(const void *context, size_t number)
{
	const struct rows *r = ((const struct flat *)context)->r;

	/* In double: a count times 100 may not fit 64 bits. */
	return (double)r->rows[number].counts->self * 100 >=
	       (double)r->columns->samples * HOT_PERCENT;
}

static void add_column(struct flat *f, enum content content, size_t column, const char *title)
{
	f->contents[f->count] = (struct flat_column){ .content = content, .column = column };
	f->columns[f->count++] = (struct table_column){
		.title = title,
		.is_hot = content == SELF_PERCENT && column == 0,
		.is_optional = column > 0,
	};
}

static void add_numbers(struct flat *f)
{
	const struct rows *r = f->r;

	if (r->stacks) {
		add_column(f, SELF, 0, "self");
		add_column(f, SELF_PERCENT, 0, "self%");
		add_column(f, TOTAL, 0, "total");
		add_column(f, TOTAL_PERCENT, 0, "total%");
	} else {
		add_column(f, SELF, 0, r->columns->title);
		add_column(f, SELF_PERCENT, 0, "%");
		add_column(f, CUMULATIVE_PERCENT, 0, "cum%");
	}
	for (size_t i = 1; i < r->column_count; i++) {
		add_column(f, SELF, i, r->columns[i].title);
		add_column(f, SELF_PERCENT, i, "%");
	}
}

static void add_fields(struct flat *f)
{
	enum row_field fields[ROW_FIELDS_MAX];
	size_t count = row_field_columns(f->r->view, f->columns + f->count, fields);

	for (size_t i = 0; i < count; i++)
		f->contents[f->count++] =
			(struct flat_column){ .content = FIELD, .field = fields[i] };
}

static void print_rest(const struct rows *r, size_t shown, FILE *out)
{
	size_t rest = r->count - shown;
	uint64_t above = shown ? r->rows[shown - 1].cumulative : 0;
	char percent[TEXT_PERCENT_SIZE];

	if (!rest)
		return;
	text_percent(percent, r->rows[r->count - 1].cumulative - above, r->columns->samples);
	fprintf(out, "... %zu more %s, %s %%\n", rest, rest == 1 ? r->view->name : r->view->plural,
		percent);
}

static int print_rows(const struct rows *r, const struct report_table_options *o, FILE *out)
{
	size_t most = NUMBERS_MAX + 2 * r->column_count + ROW_FIELDS_MAX;
	struct flat f = { .r = r };
	struct table t = {
		.row_count = rows_shown(r, o->limit, o->percent),
		.cell = cell,
		.is_hot = is_hot,
		.context = &f,
		.width = o->width,
		.color = o->color,
	};
	int err = -ENOMEM;

	f.contents = calloc(most, sizeof(*f.contents));
	f.columns = calloc(most, sizeof(*f.columns));
	if (f.contents && f.columns) {
		add_numbers(&f);
		add_fields(&f);
		t.columns = f.columns;
		t.column_count = f.count;
		err = table_print(&t, out);
	}
	if (!err)
		print_rest(r, t.row_count, out);
	free(f.contents);
	free(f.columns);
	return err;
}

int report_table(const struct profile *p, const struct report_table_options *o, FILE *out)
{
	struct rows r;
	int err = rows_collect(&r, p, &o->rows);

	err = err ?: print_rows(&r, o, out);
	rows_free(&r);
	return err;
}
