// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/filter.h"
#include "profile/thread_state.h"
#include "report/columns.h"
#include "report/json_writer.h"
#include "report/live/live.h"
#include "report/report.h"
#include "report/rows.h"
#include "report/text.h"
#include "report/time_slot.h"
#include "report/totals.h"
#include "util/clock.h"
#include "util/sum.h"

static double percent(double part, double whole)
{
	return whole > 0 ? part * 100 / whole : 0;
}

/* True if what is counted is CPU time of samples of one clock, and for how long is known. */
static bool is_cpu_time(const struct live *l)
{
	return (!l->recorded && !l->waits) || (l->value == PROFILE_CPU && l->elapsed_ns > 0 &&
					       profile_is_clock_time(l->p, PROFILE_CPU));
}

static bool is_in_ns(const struct live *l)
{
	return l->value < l->p->value_type_count &&
	       strcmp(l->p->value_types[l->value].unit, "nanoseconds") == 0;
}

static bool is_wall(const struct live *l)
{
	return l->value < l->p->value_type_count && profile_sum(l->p, l->value) == PROFILE_SUM_WALL;
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

	if (l->value >= l->p->value_type_count || (!l->recorded && l->value == PROFILE_CPU) ||
	    (l->value == PROFILE_CPU && profile_is_clock_time(l->p, PROFILE_CPU)))
		return "samples";
	type = &l->p->value_types[l->value];
	if (is_in_ns(l))
		return times[profile_sum(l->p, l->value)] ?: "s";
	return *type->type ? type->type : "samples";
}

static void print_target_line(const struct live *l, const struct live_status *s, FILE *out)
{
	if (!l->recorded)
		fputs(time_text(time(NULL), false, "%H:%M:%S  ").text, out);
	fputs(s->target, out);
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
	if (is_wall(l))
		COLUMN(c, NULL, "wall_ns", 0, row->counts->self);
	else
		COLUMN(c, is_cpu_time(l) ? "cpu%" : NULL, "cpu_percent", 1,
		       cpu_percent(l, row->counts->self));
	if (c->json ? row->wall != NULL : l->rows.walls != NULL)
		COLUMN(c, "runnable%", "runnable_percent", 1,
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
	size_t count = MIN(o->count, left);
	const struct live_rows rows = { l, o->first };
	uint64_t rest = 0;
	int err = table_print(live_row_columns, &rows, count, o->width, o->color | TABLE_LIVE, out);

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
	if (is_wall(l)) {
		json_add(&object, "wall_ns", json_object_new_uint64(sum));
	} else {
		json_add(&object, "samples", json_object_new_uint64(sum / period));
		json_add(&object, "kernel", json_object_new_uint64(kernel / period));
		json_add(&object, "cpu_percent", json_decimal(cpu_percent(l, sum), 1));
	}
	json_add(&object, "lost", json_object_new_uint64(s->lost));
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

struct states {
	struct rows rows;
	size_t *order; /* numbers of rows */
	size_t count;
	bool has_unknown; /* any row has time of which nothing is known */
};

static void states_columns(struct columns *c, const void *view, size_t number)
{
	const struct states *s = view;
	const struct row *row = number < s->count ? &s->rows.rows[s->order[number]] : NULL;

	row_columns(c, s->rows.view, row);
	wall_columns(c, row ? row->wall : NULL, false, s->has_unknown);
}

/* By what was runnable longest, then by what was on a CPU most. */
static int compare_states(const void *one, const void *other, void *context)
{
	const struct rows *rows = context;
	const struct row *a = &rows->rows[*(const size_t *)one];
	const struct row *b = &rows->rows[*(const size_t *)other];
	int order = compare_u64(b->wall->runnable_ns, a->wall->runnable_ns);

	order = order ?: compare_u64(b->wall->on_cpu_ns, a->wall->on_cpu_ns);
	return order ?: rows_compare(a, b);
}

/* Prints a line, of which what does not fit is cut off. Returns 0 or -ENOMEM. */
__attribute__((format(printf, 3, 4))) static int print_shortened(unsigned int width, FILE *out,
								 const char *format, ...)
{
	va_list arguments;
	char *line;
	int size;

	va_start(arguments, format);
	size = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (size < 0)
		return -ENOMEM;
	if (width)
		text_shorten_line(line, MAX(width, 4));
	fprintf(out, "%s\n", line);
	free(line);
	return 0;
}

/* Prints the account of all rows, and for what they waited if that was recorded. */
static int print_sum(const struct live *l, const struct states *s, unsigned int width, FILE *out)
{
	struct profile_wall sum = { 0 };
	struct thread_times times;
	char unknown[64] = "", waits[1024] = "";
	int err;

	for (size_t i = 0; i < s->count; i++)
		profile_sum_wall(&sum, s->rows.rows[s->order[i]].wall);
	if (sum.unknown_ns >= REPORT_UNKNOWN_NS)
		snprintf(unknown, sizeof(unknown), " + unknown %.3f s",
			 (double)sum.unknown_ns / 1e9);
	err = print_shortened(width, out,
			      "%" PRIu64 " thread%s, %.3f s = on CPU %.3f s + runnable %.3f s + "
			      "blocked %.3f s + idle %.3f s%s",
			      sum.threads, sum.threads == 1 ? "" : "s", (double)sum.wall_ns / 1e9,
			      (double)sum.on_cpu_ns / 1e9, (double)sum.runnable_ns / 1e9,
			      (double)sum.blocked_ns / 1e9, (double)sum.idle_ns / 1e9, unknown);
	if (err || !profile_thread_times(l->p, &times))
		return err;
	thread_times_sort(&times, THREAD_BLOCKED);
	for (size_t i = 0; i < times.reason_count && times.reasons[i].states[THREAD_BLOCKED]; i++)
		text_append(waits, sizeof(waits), ", ", "%.*s %.3f s", (int)times.reasons[i].size,
			    times.reasons[i].name,
			    (double)times.reasons[i].states[THREAD_BLOCKED] / 1e9);
	return print_shortened(width, out, "blocked by: %s", waits);
}

int live_states(const struct live *l, const struct row_view *view, unsigned int width, bool color,
		size_t count, FILE *out)
{
	const struct rows_options o = {
		.view = view,
		.labels = l->labels,
		.walls = true,
	};
	struct states s = { 0 };
	size_t shown;
	int err = rows_begin(&s.rows, &o, 1);

	if (!err && l->p->value_type_count)
		err = rows_add(&s.rows, l->p, &o, PROFILE_CPU, 0);
	err = err ?: rows_finish(&s.rows);
	s.order = calloc(s.rows.count + 1, sizeof(*s.order));
	if (!s.order)
		err = -ENOMEM;
	for (size_t i = 0; i < s.rows.count && !err; i++) {
		const struct row *row = &s.rows.rows[i];

		if (!row->wall || !row->wall->wall_ns)
			continue;
		s.has_unknown |= row->wall->unknown_ns >= REPORT_UNKNOWN_NS;
		s.order[s.count++] = i;
	}
	if (!err) {
		qsort_r(s.order, s.count, sizeof(*s.order), compare_states, &s.rows);
		err = print_shortened(
			width, out, "States of %s in %.3f s, longest runnable (no free CPU) first",
			view->plural, (double)l->wall_ns / 1e9);
		err = err ?: print_sum(l, &s, width, out);
	}
	shown = MIN(s.count, count);
	err = err
		      ?: table_print(states_columns, &s, shown, width,
				     color | (width ? TABLE_LIVE : 0), out);
	if (!err)
		row_print_more(view, s.count - shown, "", out);
	rows_free(&s.rows);
	free(s.order);
	return err;
}

int live_time_make(struct live_time *t, const struct live *l, struct error *e)
{
	const struct profile *p = l->p;
	uint64_t begin_ns;

	*t = (struct live_time){ .all = profile_recorded(p) };
	if (!p->ticks.count || t->all.since_ns >= t->all.until_ns) {
		error_set(e, 0, "it is not known when the ticks of this profile came");
		return -ENODATA;
	}
	for (size_t i = 0; i < l->zoom_count; i++)
		if (l->zooms[i].kind == LIVE_TIME)
			t->all = l->zooms[i].interval;
	t->step_ns = time_slot_step(&t->all);
	t->count = time_slot_count(&t->all, t->step_ns);
	t->ticks = calloc(t->count + 1, sizeof(*t->ticks));
	if (!t->ticks)
		return error_no_memory(e);
	begin_ns = t->all.since_ns / t->step_ns * t->step_ns;
	for (size_t i = 0; i < p->ticks.count; i++) {
		uint64_t time_ns = p->ticks.times[i];

		if (time_ns >= t->all.since_ns && time_ns < t->all.until_ns &&
		    (!l->weights || l->weights[p->ticks.numbers[i]]))
			t->ticks[(time_ns - begin_ns) / t->step_ns]++;
	}
	return 0;
}

void live_time_free(struct live_time *t)
{
	free(t->ticks);
	*t = (struct live_time){ 0 };
}

static struct time_interval slot_of(const struct live_time *t, size_t number)
{
	struct time_interval slot = {
		.since_ns = (t->all.since_ns / t->step_ns + number) * t->step_ns,
	};

	slot.until_ns = slot.since_ns + t->step_ns;
	slot.since_ns = MAX(slot.since_ns, t->all.since_ns);
	slot.until_ns = MIN(slot.until_ns, t->all.until_ns);
	return slot;
}

struct time_interval live_time_slot(const struct live_time *t)
{
	return slot_of(t, t->cursor);
}

static double cpus_of(const struct live_time *t, const struct live *l, size_t number)
{
	struct time_interval slot = slot_of(t, number);

	return (double)profile_ticks_ns(l->p, t->ticks[number]) /
	       (double)(slot.until_ns - slot.since_ns);
}

int live_time_print(const struct live_time *t, const struct live *l, size_t first, size_t count,
		    unsigned int width, FILE *out)
{
	char *title = NULL, *visible, length[TABLE_CELL_SIZE];
	size_t size, used;
	FILE *line = open_memstream(&title, &size);
	double most = 0;

	if (!line)
		return -ENOMEM;
	if (t->step_ns < NS_PER_S)
		snprintf(length, sizeof(length), "%" PRIu64 " ms", t->step_ns / NS_PER_MS);
	else
		snprintf(length, sizeof(length), "%" PRIu64 " s", t->step_ns / NS_PER_S);
	fprintf(line, "CPUs busy over time, in slots of %s", length);
	for (size_t i = 0; i < l->zoom_count; i++)
		fprintf(line, ", only %s", l->zooms[i].text);
	visible = fclose(line) ? NULL : text_visible(title);
	free(title);
	if (!visible)
		return -ENOMEM;
	text_shorten_line(visible, MAX(width, 4));
	fprintf(out, "%s\n", visible);
	free(visible);
	for (size_t i = 0; i < t->count; i++)
		most = MAX(cpus_of(t, l, i), most);
	fprintf(out, "%7s  %7s  time\n", "samples", "CPUs");
	for (size_t i = first; i < t->count && i - first < count; i++) {
		char buffer[TABLE_CELL_SIZE];
		const char *time =
			time_slot_text(slot_of(t, i).since_ns, t->step_ns, false, buffer);
		double cpus = cpus_of(t, l, i), bar;

		/* In a narrow terminal without the date. */
		if (width < 50 && strlen(time) > 11)
			time += 11;
		fprintf(out, "%7" PRIu64 "  %7.2f  %s  ", t->ticks[i], cpus, time);
		used = 7 + 2 + 7 + 2 + strlen(time) + 2;
		bar = width > used + 2 && most > 0 ? cpus / most * (double)(width - used - 1) : 0;
		for (size_t j = 0; j < (size_t)bar; j++)
			fputs("\u2588", out);
		if (bar - (double)(size_t)bar >= 0.5)
			fputs("\u258c", out);
		putc('\n', out);
	}
	return 0;
}
