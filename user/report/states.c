// SPDX-License-Identifier: GPL-2.0-only
#include "report/states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/columns.h"
#include "report/row_fields.h"
#include "report/text.h"
#include "util/sum.h"

/* Narrower terminals have no image beside the function. */
#define NARROW 100

/* As --by wait, of waits alone, and by whom they were for, or else by who ended them. */
static const struct row_view view = { "wait", "rows",
				      ROW_STATE | ROW_FUNCTION | ROW_IMAGE | ROW_OF_TAG(TAG_PEER) |
					      ROW_OF_TAG(TAG_WAKER) };

struct waits {
	struct rows rows;
	const struct row **list; /* the largest first, behind them those that are idle */
	size_t count;
	int64_t sum;	   /* of all states */
	bool has_no_image; /* there is no room for it */
};

bool states_are_first(const struct profile *p, const struct rows_options *rows)
{
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);

	return wall < p->value_type_count && !rows->view && !rows->value && !rows->image &&
	       profile_value(p, NULL) != wall && profile_total(p, PROFILE_WALL_TYPE) > 0;
}

static enum thread_state state_of(const struct row *row)
{
	const char *reason;
	size_t size;

	return thread_state_of(row->key->state ?: "", &reason, &size);
}

static int compare_waits(const void *one, const void *other)
{
	const struct row *a = *(const struct row *const *)one;
	const struct row *b = *(const struct row *const *)other;
	int order = (state_of(a) == THREAD_IDLE) - (state_of(b) == THREAD_IDLE);

	return order ?: rows_compare(a, b);
}

/* Returns 0 or -ENOMEM; call free_waits() in any case. */
static int collect_waits(struct waits *w, const struct profile *p,
			 const struct report_table_options *o)
{
	const struct rows_options options = {
		.view = &view,
		.value = PROFILE_WALL_TYPE,
		.filtered = o->rows.filtered,
	};
	int err = rows_collect(&w->rows, p, &options);

	w->sum = profile_total(p, PROFILE_WALL_TYPE);
	w->list = err ? NULL : calloc(w->rows.count + 1, sizeof(const struct row *));
	if (!w->list)
		return -ENOMEM;
	for (size_t i = 0; i < w->rows.count; i++) {
		const struct row *row = &w->rows.rows[i];

		if (row->key->state && row->counts->self > 0 &&
		    (double)row->counts->self * 100 >= (double)w->sum * o->percent)
			w->list[w->count++] = row;
	}
	qsort(w->list, w->count, sizeof(*w->list), compare_waits);
	return 0;
}

static void free_waits(struct waits *w)
{
	free(w->list);
	rows_free(&w->rows);
}

static void wait_columns(struct columns *c, const void *context, size_t number)
{
	const struct waits *w = context;
	const struct row *row = number < w->count ? w->list[number] : NULL;
	const unsigned int text = COLUMN_NAMES | COLUMN_TEXT;

	LOOKS(c, .hot = state_of(row) != THREAD_IDLE && table_is_hot(row->counts->self, w->sum));
	COLUMN(c, "wall s", "wall_ns", COLUMN_NS, row->counts->self);
	COLUMN(c, "wall%", "wall_percent", COLUMN_HOT, column_share(row->counts->self, w->sum));
	row_state_columns(c, row);
	COLUMN(c, "function", "function", text, row->name);
	COLUMN(c, w->has_no_image ? NULL : "image", "image", text | COLUMN_PATH,
	       c->json ? row->key->image : text_basename(row->key->image));
	COLUMN(c, "who", "who", text, row->comm);
}

/* Where the CPU time was: "88 % of the samples in burn". Returns 0 or -ENOMEM. */
static int print_busiest(const struct profile *p, const struct rows_options *o, FILE *out)
{
	const struct rows_options functions = { .filtered = o->filtered };
	struct rows r;
	int err = rows_collect(&r, p, &functions);

	if (!err && r.count && r.rows->counts->self) {
		fprintf(out, "%.0f %% of the samples in ",
			(double)r.rows->counts->self * 100 / (double)r.columns->samples);
		text_print(r.rows->name, out);
	}
	rows_free(&r);
	return err;
}

static int compare_reasons(const void *a, const void *b, void *state)
{
	const struct thread_reason *x = a, *y = b;

	return compare_u64(y->states[*(int *)state], x->states[*(int *)state]);
}

/* For what threads waited in a state, the longest first: "lock 2.97, sleep 1.20". */
static void print_reasons(struct thread_times *times, int state, FILE *out)
{
	const char *gap = "";

	qsort_r(times->reasons, times->reason_count, sizeof(*times->reasons), compare_reasons,
		&state);
	for (size_t i = 0; i < times->reason_count; i++) {
		const struct thread_reason *r = &times->reasons[i];

		/* Less is 0.00, or no help. */
		if (r->states[state] < 5000000 || r->states[state] < times->states[state] / 100)
			break;
		fprintf(out, "%s%.*s %.2f", gap, (int)r->size, r->name,
			(double)r->states[state] / 1e9);
		gap = ", ";
	}
}

static int print_state(const char *name, uint64_t ns, uint64_t all_ns, char *about,
		       unsigned int width, FILE *out)
{
	char percent[TEXT_PERCENT_SIZE], *visible = text_visible(about), *comma;
	unsigned int columns, room;

	if (!visible)
		return -ENOMEM;
	text_percent(percent, (double)ns, (double)all_ns);
	columns = fprintf(out, "%-8s  %9.3f s  %6s %%", name, (double)ns / 1e9, percent);
	room = width > columns + 6 ? width - columns - 2 : 4;
	if (width && text_columns(visible) > room) {
		/* Without the last reasons. */
		while (text_columns(visible) > room && (comma = strrchr(visible, ',')))
			*comma = '\0';
		text_shorten_line(visible, room);
	}
	fprintf(out, "%s%s\n", *visible ? "  " : "", visible);
	free(visible);
	return 0;
}

/* A line for each state. By the account of threads, which is exact, if there is one. */
static int print_states(const struct profile *p, const struct report_table_options *o,
			size_t *lines, FILE *out)
{
	const struct profile_wall wall = profile_wall_sum(p);
	struct thread_times times;
	uint64_t all_ns = 0;
	int err = 0;

	profile_thread_times(p, &times);
	for (int state = 0; state < THREAD_STATES; state++) {
		const uint64_t known[] = { wall.on_cpu_ns, wall.runnable_ns, wall.blocked_ns,
					   wall.idle_ns };

		if (p->wall_count)
			times.states[state] = known[state];
		add_u64(&all_ns, times.states[state]);
	}
	add_u64(&all_ns, wall.unknown_ns);
	for (int state = 0; state < THREAD_STATES && !err; state++) {
		char *about = NULL;
		size_t size;
		FILE *text = open_memstream(&about, &size);

		if (!text)
			return -ENOMEM;
		if (state == THREAD_ON_CPU)
			err = print_busiest(p, &o->rows, text);
		else if (state == THREAD_RUNNABLE)
			fputs("no free CPU", text);
		else
			print_reasons(&times, state, text);
		if (fclose(text))
			err = -ENOMEM;
		err = err
			      ?: print_state(thread_state_names[state], times.states[state], all_ns,
					     about, o->width, out);
		free(about);
		++*lines;
	}
	if (!err && wall.unknown_ns >= REPORT_UNKNOWN_NS) {
		err = print_state("unknown", wall.unknown_ns, all_ns, "", o->width, out);
		++*lines;
	}
	return err;
}

int states_print(const struct profile *p, const struct report_table_options *o, size_t limit,
		 size_t *lines, FILE *out)
{
	struct waits w = { .has_no_image = o->width && o->width < NARROW };
	struct table t = {
		.describe = wait_columns,
		.context = &w,
		.width = o->width,
		.color = o->color,
	};
	int64_t rest = 0;
	int err = collect_waits(&w, p, o);

	err = err ?: print_states(p, o, lines, out);
	if (err || !w.count)
		goto out;
	t.row_count = limit && limit < w.count ? limit : w.count;
	err = table_print(&t, out);
	for (size_t i = t.row_count; i < w.count; i++)
		add_i64(&rest, w.list[i]->counts->self);
	if (!err)
		row_print_rest(&view, w.count - t.row_count, (double)rest, (double)w.sum, o->fits,
			       out);
	*lines += 1 + t.row_count + (t.row_count < w.count);
out:
	free_waits(&w);
	return err;
}

int states_json(const struct profile *p, const struct report_table_options *o,
		struct json_writer *w)
{
	struct waits waits = { 0 };
	int err = collect_waits(&waits, p, o);

	if (!err) {
		json_begin_list(w, "waits");
		for (size_t i = 0; i < report_rows(o, waits.count) && !w->err; i++)
			json_element(w, columns_json(wait_columns, &waits, i));
		json_end_list(w);
	}
	free_waits(&waits);
	return err;
}
