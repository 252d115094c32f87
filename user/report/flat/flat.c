// SPDX-License-Identifier: GPL-2.0-only
#include "report/flat/flat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/json_writer.h"
#include "report/row_fields.h"
#include "report/table.h"
#include "report/text.h"
#include "report/totals_json.h"

/* Columns of numbers for the first column of the rows; the others have two each. Bound: size. */
#define NUMBERS_MAX 12

/* Terminals with fewer columns have no numbers of samples beside seconds. */
#define NARROW 100

/* The contents of a column of numbers. */
enum content {
	SELF,
	SELF_PERCENT,
	CUMULATIVE_PERCENT,
	TOTAL,
	TOTAL_PERCENT,
	SECONDS,
	TOTAL_SECONDS,
	CPU_SECONDS,
	CPU_TOTAL_SECONDS,
	CPU_PERCENT,
	WALL,
	RAN,
	WAITED,
	BLOCKED,
	UNKNOWN,
};

struct flat_column {
	enum content content;
	size_t column; /* of the rows */
};

struct flat {
	const struct rows *r;
	struct flat_column *contents; /* of each column of numbers */
	struct table_column *columns; /* of the table: those of numbers, then the fields */
	size_t numbers;
	double cpu_seconds; /* that 1 of the first column stands for; 0: unknown */
	double duration_s;  /* that percentages of a CPU are of; 0: none */
};

/* How long was recorded; 0: unknown, or rows are of parts of it. */
static double row_duration(const struct rows *r, const struct profile *p)
{
	if (r->view->fields & (ROW_OF_TAG(TAG_TIME) | ROW_OF_TAG(TAG_HOST)))
		return 0;
	return (double)p->duration_ns / 1e9;
}

static const char *flat_cell(const void *context, size_t number, size_t column,
			     char buffer[TABLE_CELL_SIZE])
{
	const struct flat *f = context;
	const struct row *row = &f->r->rows[number];
	const struct callgraph_cost *count;
	const struct flat_column *c;
	double all;

	if (column >= f->numbers)
		return row_field_text(f->r->view, row, column - f->numbers, buffer);
	c = &f->contents[column];
	if (c->content >= WALL) {
		const uint64_t ns[] = { row->wall->wall_ns, row->wall->ran_ns,
					row->wall->runnable_ns, row->wall->blocked_ns,
					row->wall->unknown_ns };

		snprintf(buffer, TABLE_CELL_SIZE, "%.3f", (double)ns[c->content - WALL] / 1e9);
		return buffer;
	}
	count = &row->counts[c->column];
	all = f->r->columns[c->column].samples;
	switch (c->content) {
	case SELF:
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRId64, count->self);
		break;
	case SELF_PERCENT:
		text_percent(buffer, count->self, all);
		break;
	case CUMULATIVE_PERCENT:
		text_percent(buffer, row->cumulative, all);
		break;
	case TOTAL:
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRId64, count->total);
		break;
	case TOTAL_PERCENT:
		text_percent(buffer, count->total, all);
		break;
	case SECONDS:
		snprintf(buffer, TABLE_CELL_SIZE, "%.3f", count->self / 1e9);
		break;
	case TOTAL_SECONDS:
		snprintf(buffer, TABLE_CELL_SIZE, "%.3f", count->total / 1e9);
		break;
	case CPU_SECONDS:
		snprintf(buffer, TABLE_CELL_SIZE, "%.3f", (double)count->self * f->cpu_seconds);
		break;
	case CPU_TOTAL_SECONDS:
		snprintf(buffer, TABLE_CELL_SIZE, "%.3f", (double)count->total * f->cpu_seconds);
		break;
	case CPU_PERCENT:
		/* Where nothing is called, both are the same. */
		text_percent(buffer, (double)count->total * f->cpu_seconds, f->duration_s);
		break;
	default:
		break;
	}
	return buffer;
}

static bool is_row_hot(const void *context, size_t number)
{
	const struct rows *r = ((const struct flat *)context)->r;

	return table_is_hot(r->rows[number].counts->self, r->columns->samples);
}

static void add_column(struct flat *f, enum content content, size_t column, const char *title)
{
	f->contents[f->numbers] = (struct flat_column){ .content = content, .column = column };
	f->columns[f->numbers++] = (struct table_column){
		.title = title,
		.is_hot = content == SELF_PERCENT && column == 0,
		.is_optional = (column > 0 && column != f->r->delay && column != f->r->doubt) ||
			       content == RAN,
	};
}

/* Samples of the first `shown` rows. */
static int64_t shown_samples(const struct rows *r, size_t shown)
{
	return shown ? r->rows[shown - 1].cumulative : 0;
}

/*
 * Whether a value is the wall time, the woken time or the delay of a recording, of which a
 * millisecond is little. Other files may have times of a few nanoseconds.
 */
static bool is_recorded_time(const struct profile *p, size_t value)
{
	return profile_is_recording(p) &&
	       (value == profile_delay(p) || value == profile_find_value(p, PROFILE_WALL_TYPE) ||
		value == profile_find_value(p, PROFILE_WOKE_TYPE));
}

/* Whether 1 % or more is in doubt. Less, as of the first ticks, is in the summary and in JSON. */
static bool is_doubt_shown(const struct rows *r)
{
	magnitude_sum all = 0, doubt = 0;

	for (size_t i = 0; i < r->count; i++) {
		all += magnitude(r->rows[i].counts[0].self);
		doubt += magnitude(r->rows[i].counts[r->doubt].self);
	}
	return doubt && doubt * 100 >= all;
}

int report_table(const struct profile *p, const struct report_table_options *o, FILE *out)
{
	struct flat f = { 0 };
	struct table t = {
		.cell = flat_cell,
		.is_hot = is_row_hot,
		.context = &f,
		.width = o->width,
		.color = o->color,
	};
	bool narrow = false, is_of_code, is_time;
	struct rows r;
	size_t most;
	int err = rows_collect(&r, p, &o->rows);

	if (err)
		goto out;
	is_of_code = !(r.view->fields & (ROW_COMM | ROW_TAGS));
	/* The account of threads has the CPU time that they really used. */
	if ((o->cpu_time || !is_of_code) && !r.walls && !rows_count_calls(p, &o->rows)) {
		f.cpu_seconds = (double)profile_value_ns(p, profile_value(p, o->rows.value)) / 1e9;
		f.duration_s = row_duration(&r, p);
		narrow = f.cpu_seconds > 0 && o->width && o->width < NARROW;
	}
	is_time = is_recorded_time(p, profile_value(p, o->rows.value));
	most = NUMBERS_MAX + 2 * r.column_count + ROW_FIELDS_MAX;
	f.r = &r;
	f.contents = calloc(most, sizeof(*f.contents));
	f.columns = calloc(most, sizeof(*f.columns));
	if (!f.contents || !f.columns) {
		err = -ENOMEM;
		goto out;
	}
	if (r.stacks) {
		if (!narrow)
			add_column(&f, is_time ? SECONDS : SELF, 0, is_time ? "self/s" : "self");
		add_column(&f, SELF_PERCENT, 0, "self%");
		if (f.cpu_seconds > 0)
			add_column(&f, CPU_SECONDS, 0, "self/s");
		if (!narrow)
			add_column(&f, is_time ? TOTAL_SECONDS : TOTAL, 0,
				   is_time ? "total/s" : "total");
		add_column(&f, TOTAL_PERCENT, 0, "total%");
		if (f.cpu_seconds > 0)
			add_column(&f, CPU_TOTAL_SECONDS, 0, "total/s");
	} else {
		add_column(&f, SELF, 0, r.columns->title);
		add_column(&f, SELF_PERCENT, 0, "%");
		if (!r.walls)
			add_column(&f, CUMULATIVE_PERCENT, 0, "cum%");
		if (f.cpu_seconds > 0)
			add_column(&f, CPU_SECONDS, 0, "cpu/s");
	}
	if (f.cpu_seconds > 0 && f.duration_s > 0)
		add_column(&f, CPU_PERCENT, 0, "cpu%");
	if (r.walls) {
		add_column(&f, WALL, 0, "wall/s");
		add_column(&f, RAN, 0, "ran/s");
		add_column(&f, WAITED, 0, "waited/s");
		add_column(&f, BLOCKED, 0, "blocked/s");
		if (profile_wall_sum(p).unknown_ns >= REPORT_UNKNOWN_NS)
			add_column(&f, UNKNOWN, 0, "unknown/s");
	}
	for (size_t i = 1; i < r.column_count; i++) {
		bool delay = i == r.delay, doubt = i == r.doubt;

		if (doubt && !is_doubt_shown(&r))
			continue;
		add_column(&f, delay || (doubt && is_time) ? SECONDS : SELF, i,
			   delay ? "delay s" : r.columns[i].title);
		if (!doubt)
			add_column(&f, SELF_PERCENT, i, delay ? "delay%" : "%");
	}
	t.columns = f.columns;
	t.column_count = f.numbers + row_field_columns(r.view, f.columns + f.numbers);
	if (o->rows.value)
		rows_drop_zero(&r);
	t.row_count = rows_shown(&r, o->limit, o->percent);
	err = table_print(&t, out);
	if (!err)
		row_print_rest(r.view, r.count - t.row_count,
			       (double)shown_samples(&r, r.count) -
				       (double)shown_samples(&r, t.row_count),
			       r.columns->samples, o->fits, out);
out:
	free(f.contents);
	free(f.columns);
	rows_free(&r);
	return err;
}

/* Adds CPU seconds, and percent of a CPU where duration_s is known. */
static int add_cpu(struct json_object *object, const char *const keys[2], double seconds,
		   double duration_s)
{
	int err = json_add(object, keys[0], json_decimal(seconds, 3));

	if (!err && duration_s > 0)
		err = json_add(object, keys[1], json_decimal(seconds * 100 / duration_s, 2));
	return err;
}

static const char *const cpu_keys[] = { "cpu_s", "cpu_percent" };
static const char *const cpu_total_keys[] = { "total_cpu_s", "total_cpu_percent" };

/* cpu_seconds, duration_s: as in struct flat. */
static struct json_object *row_object(const struct rows *r, const struct row *row,
				      double cpu_seconds, double duration_s)
{
	struct json_object *object = json_object_new_object(), *values;
	size_t columns = r->column_count - (r->delay > 0) - (r->doubt > 0);
	int64_t self = row->counts->self;
	int err = row_fields_json(r->view, row, object);

	err = err ?: json_add(object, "self", json_object_new_int64(self));
	err = err ?: json_add(object, "self_percent", json_percent(self, r->columns->samples));
	err = err ?: json_add(object, "total", json_object_new_int64(row->counts->total));
	if (!err && cpu_seconds > 0)
		err = add_cpu(object, cpu_keys, (double)self * cpu_seconds, duration_s);
	if (!err && cpu_seconds > 0 && r->stacks)
		err = add_cpu(object, cpu_total_keys, (double)row->counts->total * cpu_seconds,
			      duration_s);
	if (!err && row->wall)
		err = json_add(object, "wall", wall_json(row->wall));
	if (!err && r->delay)
		err = json_add(object, "delay_ns",
			       json_object_new_int64(row->counts[r->delay].self));
	if (!err && r->doubt && row->counts[r->doubt].self)
		err = json_add(object, "in_doubt",
			       json_object_new_int64(row->counts[r->doubt].self));
	if (err || columns == 1)
		return json_checked(object, err);
	values = json_object_new_object();
	err = json_add(object, "values", values);
	for (size_t i = 0; i < columns && !err; i++)
		err = json_add_named(values, r->columns[i].title,
				     json_object_new_int64(row->counts[i].self));
	return json_checked(object, err);
}

int report_json(const struct profile *p, const struct report_table_options *o, FILE *out)
{
	struct rows_options options = o->rows;
	double cpu_seconds, duration_s;
	struct json_object *rest;
	struct json_writer w;
	size_t shown, i;
	int64_t self = 0;
	struct rows r;
	int err;

	options.delay = true;
	err = rows_collect(&r, p, &options);
	if (err) {
		rows_free(&r);
		return err;
	}
	cpu_seconds = rows_count_calls(p, &options)
			      ? 0
			      : (double)profile_value_ns(p, profile_value(p, options.value)) / 1e9;
	duration_s = row_duration(&r, p);
	json_begin(&w, out);
	recording_json(&w, p, r.columns->title);
	json_member_number(&w, "samples", profile_amount(p).samples);
	if (r.view == row_views) {
		json_begin_list(&w, "functions");
	} else {
		json_member(&w, "by", json_text(r.view->name));
		json_begin_list(&w, "rows");
	}
	shown = rows_shown(&r, o->limit, o->percent);
	for (i = 0; i < shown && !w.err; i++)
		json_element(&w, row_object(&r, &r.rows[i], cpu_seconds, duration_s));
	json_end_list(&w);
	if (shown < r.count) {
		for (i = shown; i < r.count; i++)
			add_i64(&self, r.rows[i].counts->self);
		rest = json_object_new_object();
		err = json_add(rest, "rows", json_object_new_uint64(r.count - shown));
		err = err ?: json_add(rest, "self", json_object_new_int64(self));
		json_member(&w, "left_out", json_checked(rest, err));
	}
	err = json_end(&w);
	rows_free(&r);
	return err;
}
