// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/live/live.h"
#include "report/report.h"
#include "report/row_fields.h"
#include "report/text.h"
#include "report/totals_json.h"
#include "util/sum.h"

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
__attribute__((format(printf, 3, 4))) static int print_line(unsigned int width, FILE *out,
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
		text_shorten_line(line, width > 4 ? width : 4);
	fprintf(out, "%s\n", line);
	free(line);
	return 0;
}

static int compare_reasons(const void *one, const void *other)
{
	const struct thread_reason *a = one, *b = other;

	return compare_u64(b->states[THREAD_BLOCKED], a->states[THREAD_BLOCKED]);
}

/* Prints the account of all rows, and for what they waited if that was recorded. */
static int print_sum(const struct live *l, const struct states *s, unsigned int width, FILE *out)
{
	struct profile_wall sum = { 0 };
	struct thread_times times;
	char unknown[64] = "", waits[1024] = "";
	size_t used = 0;
	int err;

	for (size_t i = 0; i < s->count; i++)
		profile_sum_wall(&sum, s->rows.rows[s->order[i]].wall);
	if (sum.unknown_ns >= REPORT_UNKNOWN_NS)
		snprintf(unknown, sizeof(unknown), " + unknown %.3f s",
			 (double)sum.unknown_ns / 1e9);
	err = print_line(width, out,
			 "%" PRIu64 " thread%s, %.3f s = on CPU %.3f s + runnable %.3f s + "
			 "blocked %.3f s + idle %.3f s%s",
			 sum.threads, sum.threads == 1 ? "" : "s", (double)sum.wall_ns / 1e9,
			 (double)sum.on_cpu_ns / 1e9, (double)sum.runnable_ns / 1e9,
			 (double)sum.blocked_ns / 1e9, (double)sum.idle_ns / 1e9, unknown);
	if (err || !profile_thread_times(l->p, &times))
		return err;
	qsort(times.reasons, times.reason_count, sizeof(*times.reasons), compare_reasons);
	for (size_t i = 0; i < times.reason_count && times.reasons[i].states[THREAD_BLOCKED] &&
			   used < sizeof(waits);
	     i++)
		used += snprintf(waits + used, sizeof(waits) - used, "%s%.*s %.3f s",
				 used ? ", " : "", (int)times.reasons[i].size,
				 times.reasons[i].name,
				 (double)times.reasons[i].states[THREAD_BLOCKED] / 1e9);
	return print_line(width, out, "blocked by: %s", waits);
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
	struct table t = {
		.describe = states_columns,
		.is_live = width > 0,
		.context = &s,
		.width = width,
		.color = color,
	};
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
		err = print_line(width, out,
				 "States of %s in %.3f s, longest runnable (no free CPU) first",
				 view->plural, (double)l->wall_ns / 1e9);
		err = err ?: print_sum(l, &s, width, out);
	}
	t.row_count = s.count < count ? s.count : count;
	err = err ?: table_print(&t, out);
	if (!err)
		row_print_more(view, s.count - t.row_count, "", out);
	rows_free(&s.rows);
	free(s.order);
	return err;
}
