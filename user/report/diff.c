// SPDX-License-Identifier: GPL-2.0-only
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/json_writer.h"
#include "report/row_fields.h"
#include "report/table.h"
#include "report/text.h"

#define HOT_PERCENT 5

enum {
	OLD,
	NEW,
	SIDES
};

/* What a column shows of a row. */
enum content {
	OLD_SELF,
	OLD_PERCENT,
	NEW_SELF,
	NEW_PERCENT,
	DIFFERENCE,
	RANGE,
	NUMBERS /* the fields follow */
};

struct diff {
	struct rows r;
	struct table_column columns[NUMBERS + ROW_FIELDS_MAX];
	enum row_field fields[ROW_FIELDS_MAX];
	size_t field_count;
};

static double share(const struct rows *r, const struct row *row, size_t side)
{
	uint64_t all = r->columns[side].samples;

	return all ? (double)row->counts[side].self * 100 / (double)all : 0;
}

/* In percentage points. */
static double difference(const struct rows *r, const struct row *row)
{
	return share(r, row, NEW) - share(r, row, OLD);
}

/* dcpidiff's normalised range: |a - b| / (a + b) of the two shares, in percent. */
static double range(const struct rows *r, const struct row *row)
{
	double sum = share(r, row, NEW) + share(r, row, OLD);

	return sum > 0 ? fabs(difference(r, row)) * 100 / sum : 0;
}

static int compare_effects(const void *one, const void *other, void *context)
{
	double a = fabs(difference(context, one)), b = fabs(difference(context, other));

	return (a < b) - (a > b) ?: rows_compare(one, other);
}

/* Two decimals, whatever the locale; a sign in front of what is not 0. */
static const char *print_signed(double value, char buffer[TABLE_CELL_SIZE])
{
	char text[TEXT_PERCENT_SIZE];

	text_percent(text, (uint64_t)(fabs(value) * 100 + 0.5), 10000);
	snprintf(buffer, TABLE_CELL_SIZE, "%s%s",
		 strcmp(text, "0.00") == 0 ? ""
		 : value < 0		   ? "-"
					   : "+",
		 text);
	return buffer;
}

static const char *cell(const void *context, size_t number, size_t column,
			char buffer[TABLE_CELL_SIZE])
{
	const struct diff *d = context;
	const struct rows *r = &d->r;
	const struct row *row = &r->rows[number];

	switch (column) {
	case OLD_SELF:
	case NEW_SELF:
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64,
			 row->counts[column == OLD_SELF ? OLD : NEW].self);
		return buffer;
	case OLD_PERCENT:
		text_percent(buffer, row->counts[OLD].self, r->columns[OLD].samples);
		return buffer;
	case NEW_PERCENT:
		text_percent(buffer, row->counts[NEW].self, r->columns[NEW].samples);
		return buffer;
	case DIFFERENCE:
		return print_signed(difference(r, row), buffer);
	case RANGE:
		text_percent(buffer, (uint64_t)(range(r, row) * 100 + 0.5), 10000);
		return buffer;
	default:
		return row_field_text(r->view, row, d->fields[column - NUMBERS], buffer);
	}
}

static bool is_hot(const void *context, size_t number)
{
	const struct rows *r = &((const struct diff *)context)->r;

	return fabs(difference(r, &r->rows[number])) >= HOT_PERCENT;
}

static int collect(struct rows *r, const struct profile *const *profiles,
		   const struct rows_options *o)
{
	struct rows_options both = *o;
	int err = rows_begin(r, &both, SIDES);

	both.base_names = true; /* a new build may lie elsewhere */
	for (size_t side = 0; side < SIDES && !err; side++)
		err = rows_add(r, profiles[side], &both, profile_count_value(profiles[side]), side);
	err = err ?: rows_finish(r);
	if (!err && r->count)
		qsort_r(r->rows, r->count, sizeof(*r->rows), compare_effects, r);
	return err;
}

static void name_columns(struct diff *d)
{
	static const char *const titles[] = { "old", "old%", "new", "new%", "diff", "range%" };

	for (size_t i = 0; i < NUMBERS; i++)
		d->columns[i] = (struct table_column){ .title = titles[i] };
	d->columns[DIFFERENCE].is_hot = true;
	d->field_count = row_field_columns(d->r.view, d->columns + NUMBERS, d->fields);
}

int report_diff(const struct profile *earlier, const struct profile *later,
		const struct report_table_options *o, FILE *out)
{
	const struct profile *profiles[SIDES] = { earlier, later };
	struct diff d = { 0 };
	struct table t = {
		.columns = d.columns,
		.cell = cell,
		.is_hot = is_hot,
		.context = &d,
		.width = o->width,
		.color = o->color,
	};
	int err = collect(&d.r, profiles, &o->rows);

	if (!err) {
		name_columns(&d);
		t.column_count = NUMBERS + d.field_count;
		t.row_count = o->limit && o->limit < d.r.count ? o->limit : d.r.count;
		err = table_print(&t, out);
	}
	if (!err && t.row_count < d.r.count)
		fprintf(out, "... %zu more %s\n", d.r.count - t.row_count,
			d.r.count - t.row_count == 1 ? d.r.view->name : d.r.view->plural);
	rows_free(&d.r);
	return err;
}

static struct json_object *row_object(const struct rows *r, const struct row *row)
{
	struct json_object *object = json_object_new_object();
	char text[TABLE_CELL_SIZE];
	double effect = difference(r, row);

	if (!object)
		return NULL;
	print_signed(effect, text);
	if (row_fields_json(r->view, row, object) ||
	    json_add(object, "old", json_object_new_uint64(row->counts[OLD].self)) ||
	    json_add(object, "old_percent", json_decimal(share(r, row, OLD), 2)) ||
	    json_add(object, "new", json_object_new_uint64(row->counts[NEW].self)) ||
	    json_add(object, "new_percent", json_decimal(share(r, row, NEW), 2)) ||
	    json_add(object, "difference",
		     json_object_new_double_s(effect, text + (*text == '+'))) ||
	    json_add(object, "range_percent", json_decimal(range(r, row), 2))) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

int report_diff_json(const struct profile *earlier, const struct profile *later,
		     const struct rows_options *o, FILE *out)
{
	const struct profile *profiles[SIDES] = { earlier, later };
	struct json_writer w;
	struct rows r = { 0 };
	int err = collect(&r, profiles, o);

	if (err) {
		rows_free(&r);
		return err;
	}
	json_begin(&w, out);
	json_member(&w, "old_samples", json_object_new_uint64(r.columns[OLD].samples));
	json_member(&w, "new_samples", json_object_new_uint64(r.columns[NEW].samples));
	json_member(&w, "by", json_text(r.view->name));
	json_begin_list(&w, "rows");
	for (size_t i = 0; i < r.count && !w.err; i++)
		json_element(&w, row_object(&r, &r.rows[i]));
	json_end_list(&w);
	rows_free(&r);
	return json_end(&w);
}
