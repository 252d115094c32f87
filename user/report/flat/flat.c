// SPDX-License-Identifier: GPL-2.0-only
#include "report/flat/flat.h"

#include "report/json_writer.h"
#include "report/rows.h"
#include "report/states.h"
#include "report/columns.h"
#include "report/totals.h"

/* Terminals with fewer columns have no numbers of samples beside seconds. */
#define NARROW 100

struct flat {
	const struct rows *r;
	bool is_narrow;
	bool is_time;	     /* the values are times, of which tables have seconds */
	bool is_latency;     /* these times are PROFILE_SUM_LATENCY */
	bool has_doubt;	     /* tables have a column of what is in doubt */
	bool has_unknown;    /* tables have a column of time of which nothing is known */
	char time_title[16]; /* of times in tables without stacks: "wall s" */
	double cpu_seconds;  /* that 1 of the first column stands for; 0: unknown */
	double duration_s;   /* that percentages of a CPU are of; 0: none */
};

/* How long was recorded; 0: unknown, or rows are of parts of it. */
static double row_duration(const struct rows *r, const struct profile *p)
{
	if (r->view->fields & (ROW_OF_TAG(TAG_TIME) | ROW_OF_TAG(TAG_HOST)))
		return 0;
	return (double)p->duration_ns / 1e9;
}

/* How many columns are events. */
static size_t event_count(const struct rows *r)
{
	return r->column_count - (r->cpu > 0) - (r->delay > 0) - (r->doubt > 0);
}

static struct json_object *values_json(const struct rows *r, const struct row *row)
{
	struct json_object *values = json_object_new_object();

	for (size_t i = 0; i < event_count(r); i++)
		json_add_named(&values, r->columns[i].title,
			       json_object_new_int64(row->counts[i].self));
	return values;
}

static void flat_columns(struct columns *c, const void *view, size_t number)
{
	const struct flat *f = view;
	const struct rows *r = f->r;
	const struct row *row = number < r->count ? &r->rows[number] : NULL;
	const unsigned int unit = f->is_latency || f->is_time ? COLUMN_NS : 0;
	const double all = r->columns->samples, duration_s = f->duration_s;
	const bool has_cpu = f->cpu_seconds > 0, has_percent = has_cpu && duration_s > 0;

	LOOKS(c, .hot = table_is_hot(row->counts->self, all));
	row_columns(c, r->view, row);
	COLUMN(c,
	       f->is_latency  ? "latency s"
	       : !r->stacks   ? (f->time_title[0] ? f->time_title : r->columns->title)
	       : f->is_narrow ? NULL
	       : unit	      ? "self s"
			      : "self",
	       "self", unit, row->counts->self);
	COLUMN(c,
	       f->is_latency ? "latency%"
	       : r->stacks   ? "self%"
			     : "%",
	       "self_percent", COLUMN_HOT, column_share(row->counts->self, all));
	if (!r->stacks && !r->walls)
		COLUMN(c, "cum%", NULL, 0, column_share(row->cumulative, all));
	if (r->stacks && has_cpu) /* JSON has it behind the total */
		COLUMN(c, "self s", NULL, 3, row->counts->self * f->cpu_seconds);
	COLUMN(c,
	       !r->stacks || f->is_narrow ? NULL
	       : unit			  ? "total s"
					  : "total",
	       "total", unit, row->counts->total);
	COLUMN(c, r->stacks ? "total%" : NULL, NULL, 0, column_share(row->counts->total, all));
	if (has_cpu)
		COLUMN(c, r->stacks ? NULL : "cpu s", "cpu_s", 3,
		       row->counts->self * f->cpu_seconds);
	if (has_percent)
		COLUMN(c, r->stacks ? NULL : "cpu%", "cpu_percent", 2,
		       column_share(row->counts->self * f->cpu_seconds, duration_s));
	if (has_cpu && r->stacks)
		COLUMN(c, "total s", "total_cpu_s", 3, row->counts->total * f->cpu_seconds);
	if (has_percent && r->stacks)
		COLUMN(c, "cpu%", "total_cpu_percent", 2,
		       column_share(row->counts->total * f->cpu_seconds, duration_s));
	if (c->json && row->wall)
		COLUMN(c, NULL, "wall", 0, wall_json(row->wall));
	if (!c->json && r->walls)
		wall_columns(c, row ? row->wall : NULL, true, f->has_unknown);
	for (size_t i = 1; i < r->column_count; i++) {
		const bool delay = i == r->delay, cpu = i == r->cpu, doubt = i == r->doubt;
		const unsigned int looks = delay || cpu || doubt ? 0 : COLUMN_OPTIONAL;
		const char *title = delay ? "delay s"
				    : cpu ? "cpu s"
					  : r->columns[i].title,
			   *key = NULL;

		if (delay)
			key = "delay_ns";
		else if (cpu)
			key = "cpu_ns";
		else if (doubt && c->json && row->counts[i].self)
			key = "in_doubt";
		COLUMN(c, doubt && !f->has_doubt ? NULL : title, key,
		       looks | (delay || cpu || (doubt && f->is_time) ? COLUMN_NS : 0),
		       row->counts[i].self);
		COLUMN(c,
		       doubt   ? NULL
		       : delay ? "delay%"
		       : cpu   ? "cpu%"
			       : "%",
		       NULL, looks, column_share(row->counts[i].self, r->columns[i].samples));
	}
	if (event_count(r) > 1)
		COLUMN(c, NULL, "values", 0, values_json(r, row));
}

/* Samples of the first `shown` rows. */
static int64_t shown_samples(const struct rows *r, size_t shown)
{
	return shown ? r->rows[shown - 1].cumulative : 0;
}

int report_table(const struct profile *p, const struct report_table_options *o, FILE *out)
{
	size_t value = profile_value(p, o->rows.value);
	magnitude_sum all = 0, doubt = 0;
	struct rows r;
	struct flat f = { .r = &r };
	size_t shown;
	int err;

	if (states_are_first(p, &o->rows))
		return states_print(p, o, out);
	err = rows_collect(&r, p, &o->rows);
	if (err)
		goto out;
	/* The account of threads has the CPU time that they really used. */
	if ((o->cpu_time || (r.view->fields & (ROW_COMM | ROW_TAGS))) && !r.walls &&
	    !rows_count_calls(p, &o->rows)) {
		f.cpu_seconds = (double)profile_value_ns(p, value) / 1e9;
		f.duration_s = row_duration(&r, p);
		f.is_narrow = f.cpu_seconds > 0 && o->width && o->width < NARROW;
	}
	/* Of which a millisecond is little. Other files may have times of a few nanoseconds. */
	f.is_latency = value < p->value_type_count && profile_sum(p, value) == PROFILE_SUM_LATENCY;
	f.is_time = profile_is_recording(p) && profile_sum(p, value) >= PROFILE_SUM_DELAY;
	if (f.is_time) /* beside the account's wall time */
		snprintf(f.time_title, sizeof(f.time_title), "%s s",
			 r.walls ? "self" : p->value_types[value].type);
	/* From 1 % on. Less, as of the first ticks, is in the summary and in JSON. */
	for (size_t i = 0; i < r.count && r.doubt; i++) {
		all += magnitude(r.rows[i].counts[0].self);
		doubt += magnitude(r.rows[i].counts[r.doubt].self);
	}
	f.has_doubt = doubt && doubt * 100 >= all;
	f.has_unknown = r.walls && profile_wall_sum(p).unknown_ns >= REPORT_UNKNOWN_NS;
	if (o->rows.value)
		rows_drop_zero(&r);
	shown = rows_shown(&r, o->limit, o->percent);
	err = table_print(flat_columns, &f, shown, o->width, o->color, out);
	if (!err)
		row_print_rest(r.view, r.count - shown,
			       (double)shown_samples(&r, r.count) -
				       (double)shown_samples(&r, shown),
			       r.columns->samples, o->fits, out);
out:
	rows_free(&r);
	return err;
}

int report_json(const struct profile *p, const struct report_table_options *o, FILE *out)
{
	struct rows_options options = o->rows;
	struct json_object *rest;
	struct json_writer w;
	size_t shown;
	int64_t self = 0;
	struct rows r;
	struct flat f = { .r = &r };
	int err;

	options.delay = true;
	err = rows_collect(&r, p, &options);
	if (err) {
		rows_free(&r);
		return err;
	}
	f.cpu_seconds =
		rows_count_calls(p, &options)
			? 0
			: (double)profile_value_ns(p, profile_value(p, options.value)) / 1e9;
	f.duration_s = row_duration(&r, p);
	json_begin(&w, out);
	recording_json(&w, p, r.columns->title);
	json_member_number(&w, "samples", profile_amount(p).samples);
	if (states_are_first(p, &options))
		err = states_json(p, o, &w);
	if (r.view != row_views)
		json_member(&w, "by", json_text(r.view->name));
	shown = rows_shown(&r, o->limit, o->percent);
	columns_list(&w, r.view == row_views ? "functions" : "rows", flat_columns, &f, shown);
	if (shown < r.count) {
		for (size_t i = shown; i < r.count; i++)
			add_i64(&self, r.rows[i].counts->self);
		rest = json_object_new_object();
		json_add(&rest, "rows", json_object_new_uint64(r.count - shown));
		json_add(&rest, "self", json_object_new_int64(self));
		json_member(&w, "omitted", rest);
	}
	err = json_end(&w) ?: err;
	rows_free(&r);
	return err;
}
