// SPDX-License-Identifier: GPL-2.0-only
#include "report/states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/columns.h"
#include "report/rows.h"
#include "report/text.h"
#include "report/work.h"
#include "util/order.h"
#include "util/sum.h"

/* Narrower terminals have no image beside the function. */
#define NARROW	   100
#define ROWS_LEAST 3 /* rows of each of two tables, even in a window of few lines */

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

struct work_table {
	const struct profile *p;
	struct work work;
	int64_t sum; /* of all states */
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

ORDER(compare_waits, struct row *const,
      COMPARE(state_of(*a) == THREAD_IDLE, state_of(*b) == THREAD_IDLE) ?: rows_compare(*a, *b))

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

	if (!err && r.count && r.rows->counts->self)
		text_printf(out, "%.0f %% of the samples in %s",
			    (double)r.rows->counts->self * 100 / (double)r.columns->samples,
			    r.rows->name);
	rows_free(&r);
	return err;
}

/* The function that has most of what threads waited for a reason, in this state; or NULL. */
static const char *main_place(const struct waits *w, int state, const struct thread_reason *r)
{
	const char *reason;
	size_t size;

	for (size_t i = 0; i < w->count; i++) {
		const struct row *row = w->list[i];

		if ((int)thread_state_of(row->key->state, &reason, &size) == state && reason &&
		    size == r->size && strncmp(reason, r->name, size) == 0)
			return row->name[0] != '[' &&
					       row->counts->self > (int64_t)(r->states[state] / 2)
				       ? row->name
				       : NULL;
	}
	return NULL;
}

/* For what threads waited in a state, and where most: "lock 2.97 (reserve), sleep 1.20". */
static void print_reasons(const struct waits *w, struct thread_times *times, int state, FILE *out)
{
	const char *gap = "";

	thread_times_sort(times, state);
	for (size_t i = 0; i < times->reason_count; i++) {
		const struct thread_reason *r = &times->reasons[i];
		const char *place = i ? NULL : main_place(w, state, r);

		/* Less is 0.00, or no help. */
		if (r->states[state] < 5000000 || r->states[state] < times->states[state] / 100)
			break;
		fprintf(out, "%s%.*s %.2f", gap, (int)r->size, r->name,
			(double)r->states[state] / 1e9);
		if (place) {
			fputs(" (", out);
			text_print(place, out);
			fputc(')', out);
		}
		gap = ", ";
	}
}

static int print_state(const char *name, uint64_t ns, uint64_t all_ns, char *about,
		       unsigned int width, FILE *out)
{
	char percent[TEXT_PERCENT_SIZE], *visible = text_visible(about);
	unsigned int columns, room;

	if (!visible)
		return -ENOMEM;
	text_percent(percent, (double)ns, (double)all_ns);
	columns = fprintf(out, "%-8s  %9.3f s  %6s %%", name, (double)ns / 1e9, percent);
	room = width > columns + 6 ? width - columns - 2 : 4;
	if (width)
		text_shorten_list(visible, room);
	fprintf(out, "%s%s\n", *visible ? "  " : "", visible);
	free(visible);
	return 0;
}

/* A line for each state. By the account of threads, which is exact, if there is one. */
static int print_states(const struct profile *p, const struct report_table_options *o,
			const struct waits *w, FILE *out)
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
			print_reasons(w, &times, state, text);
		if (fclose(text))
			err = -ENOMEM;
		err = err
			      ?: print_state(thread_state_names[state], times.states[state], all_ns,
					     about, o->width, out);
		free(about);
	}
	if (!err && wall.unknown_ns >= REPORT_UNKNOWN_NS)
		err = print_state("unknown", wall.unknown_ns, all_ns, "", o->width, out);
	return err;
}

static void work_columns(struct columns *c, const void *context, size_t number)
{
	const struct work_table *t = context;
	const struct work_row *row = number < t->work.count ? &t->work.rows[number] : NULL;
	const unsigned int text = COLUMN_NAMES | COLUMN_TEXT;

	LOOKS(c, .hot = table_is_hot(row->ns, t->sum));
	COLUMN(c, "wall s", NULL, COLUMN_NS, row->ns);
	COLUMN(c, "wall%", NULL, COLUMN_HOT, column_share(row->ns, t->sum));
	COLUMN(c, "function", NULL, text, t->p->functions[row->function].name);
	COLUMN(c, "image", NULL, text | COLUMN_PATH | COLUMN_OPTIONAL, text_basename(row->image));
	COLUMN(c, "states", NULL, text | COLUMN_WHOLE, row->states);
}

/* A table of the first rows and what the others have. Returns 0 or -ENOMEM. */
static int print_work(const struct work_table *w, const struct report_table_options *o,
		      size_t count, FILE *out)
{
	int64_t rest = 0;

	for (size_t i = count; i < w->work.count; i++)
		add_i64(&rest, w->work.rows[i].ns);
	if (!count)
		return 0;
	if (table_print(work_columns, w, count, o->width, o->color, out))
		return -ENOMEM;
	row_print_rest(row_views, w->work.count - count, (double)rest, (double)w->sum, o->fits,
		       out);
	fputc('\n', out);
	return 0;
}

int states_print(const struct profile *p, const struct report_table_options *o, FILE *out)
{
	struct waits w = { .has_no_image = o->width && o->width < NARROW };
	struct work_table work = { .p = p };
	/* Of a terminal, without four lines of states, one between, and the second table's header.
	 */
	const size_t all = o->limit > 7 + 2 * ROWS_LEAST ? o->limit - 7 : 2 * ROWS_LEAST;
	size_t rows = o->limit ?: SIZE_MAX, shown;
	int64_t rest = 0;
	int err = collect_waits(&w, p, o) ?: work_collect(&work.work, p, o->width / 2);

	work.sum = w.sum;
	err = err ?: print_states(p, o, &w, out);
	while (work.work.count &&
	       (double)work.work.rows[work.work.count - 1].ns * 100 < (double)w.sum * o->percent)
		free(work.work.rows[--work.work.count].states);
	/* What one table does not need is for the other. */
	if (!err && o->fits && o->limit)
		rows = w.count < all / 2 ? all - w.count : all / 2;
	rows = MIN(rows, work.work.count);
	err = err ?: print_work(&work, o, rows, out);
	if (err || !w.count)
		goto out;
	shown = o->limit ?: w.count;
	if (o->fits && o->limit)
		shown = all - rows;
	shown = MIN(shown, w.count);
	err = table_print(wait_columns, &w, shown, o->width, o->color, out);
	for (size_t i = shown; i < w.count; i++)
		add_i64(&rest, w.list[i]->counts->self);
	if (!err)
		row_print_rest(&view, w.count - shown, (double)rest, (double)w.sum, o->fits, out);
out:
	work_free(&work.work);
	free_waits(&w);
	return err;
}

int states_json(const struct profile *p, const struct report_table_options *o,
		struct json_writer *w)
{
	struct waits waits = { 0 };
	int err = collect_waits(&waits, p, o);

	if (!err)
		columns_list(w, "waits", wait_columns, &waits, report_rows(o, waits.count));
	free_waits(&waits);
	return err;
}
