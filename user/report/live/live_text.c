// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/json_writer.h"
#include "report/live/live.h"
#include "report/row_fields.h"
#include "report/table.h"
#include "report/text.h"
#include "report/totals_json.h"

static double percent(double part, double whole)
{
	return whole > 0 ? part * 100 / whole : 0;
}

/* True if what is counted is CPU time of samples of one clock, and for how long is known. */
static bool is_cpu_time(const struct live *l)
{
	return !l->recorded || (l->value == PROFILE_CPU && l->elapsed_ns > 0 &&
				profile_is_clock_time(l->p, PROFILE_CPU));
}

static bool is_in_ns(const struct live *l)
{
	return l->value < l->p->value_type_count &&
	       strcmp(l->p->value_types[l->value].unit, "nanoseconds") == 0;
}

const char *live_number(const struct live *l, int64_t value, char text[TABLE_CELL_SIZE])
{
	if (l->value == PROFILE_CPU && profile_value_ns(l->p, PROFILE_CPU) == 1)
		snprintf(text, TABLE_CELL_SIZE, "%" PRId64, value / (int64_t)profile_tick_ns(l->p));
	else if (is_in_ns(l))
		snprintf(text, TABLE_CELL_SIZE, "%.3f", (double)value / 1e9);
	else
		snprintf(text, TABLE_CELL_SIZE, "%" PRId64, value);
	return text;
}

const char *live_title(const struct live *l)
{
	static const char *const times[] = {
		[PROFILE_SUM_DELAY] = "delay s",     [PROFILE_SUM_WALL] = "wall s",
		[PROFILE_SUM_WOKE] = "woke s",	     [PROFILE_SUM_SPAN] = "span s",
		[PROFILE_SUM_LATENCY] = "latency s",
	};
	const struct profile_value_type *type;

	if (!l->recorded || l->value >= l->p->value_type_count ||
	    (l->value == PROFILE_CPU && profile_is_clock_time(l->p, PROFILE_CPU)))
		return "samples";
	type = &l->p->value_types[l->value];
	if (is_in_ns(l))
		return times[profile_sum(l->p, l->value)] ?: "s";
	return *type->type ? type->type : "samples";
}

static void print_target_line(const struct live *l, const struct live_status *s, FILE *out)
{
	char now[16];
	time_t seconds = time(NULL);
	struct tm local;

	strftime(now, sizeof(now), "%H:%M:%S", localtime_r(&seconds, &local));
	fprintf(out, "%s%s%s", l->recorded ? "" : now, l->recorded ? "" : "  ", s->target);
	if (l->p->event[0] && profile_tick_ns(l->p))
		fprintf(out, ": %s, %.0f Hz", l->p->event, 1e9 / profile_tick_ns(l->p));
}

/*
 * CPU time in percent of the time that passed. A tick stands for the period before it, so an
 * interval may have one more on each CPU than it has periods: CPUs are never busier than all the
 * time.
 */
static double cpu_percent(const struct live *l, double ns)
{
	double excess = l->machine_ns > 0 ? l->sum / l->machine_ns : 0;

	return percent(excess > 1 ? ns / excess : ns, l->elapsed_ns);
}

static void print_numbers_line(const struct live *l, const struct live_status *s, FILE *out)
{
	double period = profile_tick_ns(l->p) ?: 1, seconds = l->elapsed_ns / 1e9;
	char all[TABLE_CELL_SIZE];

	if (is_cpu_time(l)) {
		fprintf(out, "CPU %.1f %%, kernel %.1f %%, %.0f samples/s", cpu_percent(l, l->sum),
			cpu_percent(l, l->kernel), seconds > 0 ? l->sum / period / seconds : 0);
	} else {
		live_number(l, l->sum, all);
		fprintf(out, "%s %s", all, live_title(l));
		if (l->kernel)
			fprintf(out, ", kernel %.1f %%", percent(l->kernel, l->sum));
		if (seconds > 0)
			fprintf(out, ", in %.3f s", seconds);
	}
	if (!l->recorded || l->p->totals.known)
		fprintf(out, ", %" PRIu64 " lost", s->lost);
	if (s->bpf_ns_per_tick)
		fprintf(out, "; BPF %" PRIu64 " ns/tick", s->bpf_ns_per_tick);
	if (!l->recorded)
		fprintf(out, ", top %.1f %%", s->own_percent);
}

static void print_view_line(const struct live *l, const struct live_status *s, FILE *out)
{
	fprintf(out, "%s by %s", l->view->plural, live_sort_names[l->sort]);
	if (l->half_life_ns)
		fprintf(out, ", fading by half in %g s", l->half_life_ns / 1e9);
	for (size_t i = 0; i < l->zoom_count; i++)
		fprintf(out, ", only %s", l->zooms[i].text);
	if (l->pattern)
		fprintf(out, ", only %s", l->pattern);
	if (s->frozen)
		fputs(", FROZEN", out);
}

/* Prints a line in its visible form, which print() makes as raw text. */
static int print_line(void (*print)(const struct live *, const struct live_status *, FILE *),
		      const struct live *l, const struct live_status *s, unsigned int width,
		      FILE *out)
{
	char *raw = NULL;
	size_t size;
	FILE *line = open_memstream(&raw, &size);
	int err;

	if (!line)
		return -ENOMEM;
	print(l, s, line);
	err = fclose(line) ? -ENOMEM : text_print_in(raw, width, out);
	fputc('\n', out);
	free(raw);
	return err < 0 ? err : 0;
}

int live_header(const struct live *l, const struct live_status *s, unsigned int lines,
		unsigned int width, FILE *out)
{
	int err = 0;

	if (lines > 0)
		err = print_line(print_target_line, l, s, width, out);
	if (!err && lines > 1)
		err = print_line(print_numbers_line, l, s, width, out);
	if (!err && lines > 2)
		err = print_line(print_view_line, l, s, width, out);
	return err;
}

static const struct row *row_at(const struct live *l, size_t shown)
{
	return shown < l->shown_count ? &l->rows.rows[l->shown[shown]] : NULL;
}

static void live_columns(struct columns *c, const void *view, size_t number)
{
	const struct live *l = view;
	const struct row *row = row_at(l, number);
	const struct row_column *all = l->rows.columns;

	LOOKS(c, .hot = table_is_hot(row->counts->self, all->samples));
	row_columns(c, l->view, row);
	if (!l->half_life_ns)
		COLUMN(c, live_title(l), NULL, 0, live_number(l, row->counts->self, c->buffer));
	COLUMN(c, l->rows.stacks ? "self%" : "%", "self_percent", COLUMN_HOT,
	       column_share(row->counts->self, all->samples));
	COLUMN(c, l->rows.stacks ? "total%" : NULL, "total_percent", 0,
	       column_share(row->counts->total, all->samples));
	COLUMN(c, is_cpu_time(l) ? "cpu%" : NULL, "cpu_percent", 1,
	       cpu_percent(l, row->counts->self));
	if (c->json ? row->wall != NULL : l->rows.walls != NULL)
		COLUMN(c, "runnable%", "wait_percent", 1,
		       percent(row->wall->runnable_ns, l->wall_ns));
	if (c->json && row->wall)
		COLUMN(c, NULL, "wall", 0, wall_json(row->wall));
	if (l->rows.delay)
		COLUMN(c, l->sort == LIVE_BY_DELAY ? "delay%" : NULL, "delay_percent", 1,
		       percent(row->counts[l->rows.delay].self, l->elapsed_ns));
}

/* A table of the rows that are shown from one on. */
struct live_rows {
	const struct live *l;
	size_t first;
};

static void live_row_columns(struct columns *c, const void *view, size_t number)
{
	const struct live_rows *rows = view;

	live_columns(c, rows->l, rows->first + number);
}

int live_table(const struct live *l, const struct live_table_options *o, FILE *out)
{
	size_t left = o->first < l->shown_count ? l->shown_count - o->first : 0;
	size_t count = o->count < left ? o->count : left;
	const struct live_rows rows = { l, o->first };
	struct table t = {
		.describe = live_row_columns,
		.row_count = count,
		.context = &rows,
		.width = o->width,
		.is_live = true,
		.color = o->color,
	};
	uint64_t rest = 0;
	int err;

	err = table_print(&t, out);
	if (err || o->width)
		return err;
	for (size_t i = o->first + count; i < l->shown_count; i++)
		rest += row_at(l, i)->counts->self;
	row_print_rest(l->view, left - count, rest, l->rows.columns->samples, false, out);
	return 0;
}

int live_json(const struct live *l, const struct live_status *s, size_t count, FILE *out)
{
	uint64_t kernel = l->kernel, sum = l->sum, period = profile_tick_ns(l->p) ?: 1;
	struct json_object *object = json_object_new_object(), *rows = json_object_new_array();
	int err;

	json_add(&object, "time", json_object_new_int64(time(NULL)));
	json_add(&object, "seconds", json_decimal(l->elapsed_ns / 1e9, 3));
	json_add(&object, "target", json_text(s->target));
	json_add(&object, "event", json_text(l->p->event));
	json_add(&object, "samples", json_object_new_uint64(sum / period));
	json_add(&object, "kernel", json_object_new_uint64(kernel / period));
	json_add(&object, "lost", json_object_new_uint64(s->lost));
	json_add(&object, "cpu_percent", json_decimal(cpu_percent(l, sum), 1));
	if (l->rows.delay) {
		double delay = l->rows.columns[l->rows.delay].samples;

		json_add(&object, "delay_percent", json_decimal(percent(delay, l->elapsed_ns), 1));
	}
	if (l->p->wall_count) {
		const struct profile_wall wall = profile_wall_sum(l->p);

		json_add(&object, "wall", wall_json(&wall));
	}
	json_add(&object, "by", json_text(l->view->name));
	for (size_t i = 0; i < l->shown_count && i < count; i++)
		json_append(&rows, columns_json(live_columns, l, i));
	json_add(&object, "rows", rows);
	err = json_print(object, JSON_C_TO_STRING_PLAIN, out);
	if (!err)
		fputc('\n', out);
	return err;
}
