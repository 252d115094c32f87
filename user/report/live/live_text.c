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

/* Widths on a screen, where columns that change with every text would be hard to follow. */
#define NUMBER_WIDTH 6
#define LAST_WIDTH   16

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

void live_number(const struct live *l, int64_t value, char text[TABLE_CELL_SIZE])
{
	if (l->value == PROFILE_CPU && profile_value_ns(l->p, PROFILE_CPU) == 1)
		snprintf(text, TABLE_CELL_SIZE, "%" PRId64, value / (int64_t)profile_tick_ns(l->p));
	else if (is_in_ns(l))
		snprintf(text, TABLE_CELL_SIZE, "%.3f", (double)value / 1e9);
	else
		snprintf(text, TABLE_CELL_SIZE, "%" PRId64, value);
}

const char *live_title(const struct live *l)
{
	static const struct {
		const char *type, *title;
	} times[] = {
		{ PROFILE_DELAY_TYPE, "delay s" },
		{ PROFILE_WALL_TYPE, "wall s" },
		{ PROFILE_WOKE_TYPE, "woke s" },
	};
	const struct profile_value_type *type;

	if (!l->recorded || l->value >= l->p->value_type_count ||
	    (l->value == PROFILE_CPU && profile_is_clock_time(l->p, PROFILE_CPU)))
		return "samples";
	type = &l->p->value_types[l->value];
	for (size_t i = 0; i < sizeof(times) / sizeof(*times) && is_in_ns(l); i++)
		if (strcmp(type->type, times[i].type) == 0)
			return times[i].title;
	if (is_in_ns(l))
		return "s";
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
	char *raw = NULL, *visible;
	size_t size;
	FILE *line = open_memstream(&raw, &size);

	if (!line)
		return -ENOMEM;
	print(l, s, line);
	visible = fclose(line) ? NULL : text_visible(raw);
	if (visible && width && text_columns(raw) > width)
		text_shorten(visible, width > 4 ? width : 4);
	if (visible)
		fprintf(out, "%s\n", visible);
	free(raw);
	free(visible);
	return visible ? 0 : -ENOMEM;
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

/* The contents of a column of numbers. */
enum content {
	SAMPLES,
	SELF,
	TOTAL,
	CPU,
	WAIT,
	DELAY,
	NUMBERS_MAX
};

struct live_columns {
	const struct live *l;
	size_t first;
	struct table_column columns[NUMBERS_MAX + ROW_FIELDS_MAX]; /* numbers, then the fields */
	enum content contents[NUMBERS_MAX];
	size_t numbers;
};

static const struct row *row_at(const struct live *l, size_t shown)
{
	return &l->rows.rows[l->shown[shown]];
}

static const char *live_cell(const void *context, size_t number, size_t column,
			     char buffer[TABLE_CELL_SIZE])
{
	const struct live_columns *c = context;
	const struct live *l = c->l;
	const struct row *row = row_at(l, c->first + number);
	double self = row->counts->self;

	if (column >= c->numbers)
		return row_field_text(l->view, row, column - c->numbers, buffer);
	switch (c->contents[column]) {
	case SAMPLES:
		live_number(l, row->counts->self, buffer);
		break;
	case SELF:
		text_percent(buffer, self, l->rows.columns->samples);
		break;
	case TOTAL:
		text_percent(buffer, row->counts->total, l->rows.columns->samples);
		break;
	case CPU:
		snprintf(buffer, TABLE_CELL_SIZE, "%.1f", cpu_percent(l, self));
		break;
	case WAIT:
		snprintf(buffer, TABLE_CELL_SIZE, "%.1f",
			 percent(row->wall->runnable_ns, l->wall_ns));
		break;
	case DELAY:
		snprintf(buffer, TABLE_CELL_SIZE, "%.1f",
			 percent(row->counts[l->rows.delay].self, l->elapsed_ns));
		break;
	case NUMBERS_MAX:
		return "";
	}
	return buffer;
}

static bool is_row_hot(const void *context, size_t number)
{
	const struct live_columns *c = context;

	return table_is_hot(row_at(c->l, c->first + number)->counts->self,
			    c->l->rows.columns->samples);
}

static void add_number(struct live_columns *c, enum content content, const char *title)
{
	c->contents[c->numbers] = content;
	c->columns[c->numbers++] = (struct table_column){
		.title = title,
		.is_hot = content == SELF,
		.width = NUMBER_WIDTH,
	};
}

int live_table(const struct live *l, const struct live_table_options *o, FILE *out)
{
	size_t left = o->first < l->shown_count ? l->shown_count - o->first : 0;
	size_t count = o->count < left ? o->count : left;
	struct live_columns c = { .l = l, .first = o->first };
	struct table t = {
		.columns = c.columns,
		.row_count = count,
		.cell = live_cell,
		.is_hot = is_row_hot,
		.context = &c,
		.width = o->width,
		.color = o->color,
	};
	uint64_t rest = 0;
	size_t fields;
	int err;

	if (!l->half_life_ns)
		add_number(&c, SAMPLES, live_title(l));
	add_number(&c, SELF, l->rows.stacks ? "self%" : "%");
	if (l->rows.stacks)
		add_number(&c, TOTAL, "total%");
	if (is_cpu_time(l))
		add_number(&c, CPU, "cpu%");
	if (l->rows.walls)
		add_number(&c, WAIT, "wait%");
	if (l->sort == LIVE_BY_DELAY && l->rows.delay)
		add_number(&c, DELAY, "delay%");
	fields = row_field_columns(l->view, c.columns + c.numbers);
	t.column_count = c.numbers + fields;
	/* The text before the last takes all remaining columns. */
	if (o->width && fields > 1 && c.columns[t.column_count - 2].is_text) {
		c.columns[t.column_count - 2].width = o->width;
		c.columns[t.column_count - 1].width = LAST_WIDTH;
	}
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
	struct json_object *row;
	int err = json_add(object, "time", json_object_new_int64(time(NULL)));

	err = err ?: json_add(object, "seconds", json_decimal(l->elapsed_ns / 1e9, 3));
	err = err ?: json_add(object, "target", json_text(s->target));
	err = err ?: json_add(object, "event", json_text(l->p->event));
	err = err ?: json_add(object, "samples", json_object_new_uint64(sum / period));
	err = err ?: json_add(object, "kernel", json_object_new_uint64(kernel / period));
	err = err ?: json_add(object, "lost", json_object_new_uint64(s->lost));
	err = err ?: json_add(object, "cpu_percent", json_decimal(cpu_percent(l, sum), 1));
	if (!err && l->rows.delay) {
		double delay = l->rows.columns[l->rows.delay].samples;

		err = json_add(object, "delay_percent",
			       json_decimal(percent(delay, l->elapsed_ns), 1));
	}
	if (!err && l->p->wall_count) {
		const struct profile_wall wall = profile_wall_sum(l->p);

		err = json_add(object, "wall", wall_json(&wall));
	}
	err = err ?: json_add(object, "by", json_text(l->view->name));
	for (size_t i = 0; i < l->shown_count && i < count && !err; i++) {
		const struct row *r = row_at(l, i);
		double self = r->counts->self, total = r->counts->total;
		double all = l->rows.columns->samples, cpu = cpu_percent(l, self);

		row = json_object_new_object();
		err = row_fields_json(l->view, r, row);
		err = err ?: json_add(row, "self_percent", json_decimal(percent(self, all), 2));
		err = err ?: json_add(row, "total_percent", json_decimal(percent(total, all), 2));
		err = err ?: json_add(row, "cpu_percent", json_decimal(cpu, 1));
		if (!err && r->wall)
			err = json_add(row, "wait_percent",
				       json_decimal(percent(r->wall->runnable_ns, l->wall_ns), 1));
		if (!err && r->wall)
			err = json_add(row, "wall", wall_json(r->wall));
		if (!err && l->rows.delay) {
			double delay = r->counts[l->rows.delay].self;

			err = json_add(row, "delay_percent",
				       json_decimal(percent(delay, l->elapsed_ns), 1));
		}
		err = json_append(rows, json_checked(row, err));
	}
	err = json_add(object, "rows", json_checked(rows, err));
	err = json_print(json_checked(object, err), JSON_C_TO_STRING_PLAIN, out);
	if (!err)
		fputc('\n', out);
	return err;
}
