// SPDX-License-Identifier: GPL-2.0-only
#include "report/flat/flat.h"

#include <errno.h>
#include <string.h>

#include "report/json_writer.h"
#include "report/row_fields.h"
#include "report/text.h"
#include "report/totals_json.h"

/* A row's count of each event, where the profile has several. */
static int add_values(struct json_object *object, const struct rows *r, const struct row *row)
{
	struct json_object *values = json_object_new_object();
	int err = values ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->column_count && !err; i++) {
		struct json_object *title = json_text(r->columns[i].title);

		err = title ? json_add(values, json_object_get_string(title),
				       json_object_new_uint64(row->counts[i].self))
			    : -ENOMEM;
		json_object_put(title);
	}
	if (!err)
		return json_add(object, "values", values);
	json_object_put(values);
	return err;
}

static struct json_object *row_object(const struct rows *r, const struct row *row)
{
	struct json_object *object = json_object_new_object();
	uint64_t samples = r->columns->samples;
	double percent = (double)row->counts->self * 100 / (double)(samples ?: 1);
	char text[TEXT_PERCENT_SIZE];

	if (!object)
		return NULL;
	text_percent(text, row->counts->self, samples);
	if (row_fields_json(r->view, row, object) ||
	    json_add(object, "self", json_object_new_uint64(row->counts->self)) ||
	    json_add(object, "self_percent", json_object_new_double_s(percent, text)) ||
	    json_add(object, "total", json_object_new_uint64(row->counts->total)) ||
	    (r->column_count > 1 && add_values(object, r, row))) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

/* What is left out behind the rows that are shown. */
static struct json_object *rest_object(const struct rows *r, size_t shown)
{
	struct json_object *object = json_object_new_object();
	uint64_t above = shown ? r->rows[shown - 1].cumulative : 0;
	uint64_t self = r->rows[r->count - 1].cumulative - above;

	if (!object || (!json_add(object, "rows", json_object_new_uint64(r->count - shown)) &&
			!json_add(object, "self", json_object_new_uint64(self))))
		return object;
	json_object_put(object);
	return NULL;
}

static void write_rows(struct json_writer *w, const struct rows *r, size_t shown)
{
	if (r->view == row_views) {
		json_begin_list(w, "functions");
	} else {
		json_member(w, "by", json_text(r->view->name));
		json_begin_list(w, "rows");
	}
	for (size_t i = 0; i < shown && !w->err; i++)
		json_element(w, row_object(r, &r->rows[i]));
	json_end_list(w);
	if (shown < r->count)
		json_member(w, "left_out", rest_object(r, shown));
}

int report_json(const struct profile *p, const struct report_table_options *o, FILE *out)
{
	struct json_writer w;
	struct rows r;
	int err = rows_collect(&r, p, &o->rows);

	if (err) {
		rows_free(&r);
		return err;
	}
	json_begin(&w, out);
	recording_json(&w, p);
	write_rows(&w, &r, rows_shown(&r, o->limit, o->percent));
	rows_free(&r);
	return json_end(&w);
}
