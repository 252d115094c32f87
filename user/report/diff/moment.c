// SPDX-License-Identifier: GPL-2.0-only
#include "report/diff/moment.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "profile/thread_state.h"
#include "report/json_writer.h"
#include "report/rows.h"
#include "report/text.h"
#include "util/array.h"

/* Adds a difference if there are enough samples that it may be one. Returns 0 or -ENOMEM. */
static int test_row(struct moment *m, size_t *room, const struct moment_difference *candidate,
		    const int64_t *counts)
{
	double all_ns =
		(double)m->profiles[OLD]->duration_ns + (double)m->profiles[NEW]->duration_ns;
	struct moment_difference *d;
	struct chance chance = chance_of_counts(magnitude(counts[OLD]), magnitude(counts[NEW]),
						(double)m->profiles[OLD]->duration_ns / all_ns);

	/* This depends on the sum of both alone: the correction need not count the others. */
	if (chance.least > CHANCE_LEVEL)
		return 0;
	if (array_add(m->differences, m->count, *room, *candidate))
		return -ENOMEM;
	d = &m->differences[m->count - 1];
	d->chance = chance;
	for (int side = 0; side < SIDES; side++)
		d->percent[side] = (double)counts[side] *
				   (double)profile_tick_ns(m->profiles[side]) * 100 /
				   (double)m->profiles[side]->duration_ns;
	return 0;
}

/* Tests the rows of a view. */
static int test_view(struct moment *m, size_t *room, struct rows *rows,
		     const struct rows_options *o)
{
	int err = rows_begin(rows, o, SIDES);

	for (int side = 0; side < SIDES && !err; side++)
		err = rows_add(rows, m->profiles[side], o, PROFILE_SAMPLES, side);
	err = err ?: rows_finish(rows);
	for (size_t i = 0; i < rows->count && !err; i++) {
		const struct row *row = &rows->rows[i];
		const struct callgraph_cost *c = row->counts;
		struct moment_difference candidate = {
			.view = rows->view,
			.view_number = rows - m->rows,
			.row = row,
		};

		err = test_row(m, room, &candidate, (const int64_t[]){ c[OLD].self, c[NEW].self });
		candidate.total = true;
		/* Where nothing is called, both are the same. */
		if (!err && rows->stacks &&
		    (c[OLD].total != c[OLD].self || c[NEW].total != c[NEW].self))
			err = test_row(m, room, &candidate,
				       (const int64_t[]){ c[OLD].total, c[NEW].total });
	}
	return err;
}

/* Waits that chance cannot judge are shown from this difference on, in percent of a thread. */
#define UNJUDGED_PERCENT 10

static bool has_waits(const struct moment *m)
{
	for (int side = 0; side < SIDES; side++)
		if (profile_find_sum(m->profiles[side], PROFILE_SUM_WALL) ==
		    m->profiles[side]->value_type_count)
			return false;
	return true;
}

/* Tests the waits in rows by states. idle: also those of threads without work. */
static int test_waits(struct moment *m, size_t *room, struct rows *rows,
		      const struct rows_options *o, bool idle)
{
	const double duration_ns[] = { (double)m->profiles[OLD]->duration_ns,
				       (double)m->profiles[NEW]->duration_ns };
	int err = rows_begin(rows, o, WAIT_ROWS_COLUMNS);

	for (int side = 0; side < SIDES && !err; side++)
		err = wait_rows_add(rows, m->profiles[side], o, side);
	err = err ?: rows_finish(rows);
	for (size_t i = 0; i < rows->count && !err; i++) {
		const struct row *row = &rows->rows[i];
		struct moment_difference d = {
			.view = rows->view,
			.view_number = rows - m->rows,
			.row = row,
			.is_wait = true,
			.chance = wait_rows_chance(row, false, duration_ns),
		};
		const char *reason;
		size_t size;

		if (!row->key->state ||
		    (!idle && thread_state_of(row->key->state, &reason, &size) == THREAD_IDLE))
			continue;
		for (int side = 0; side < SIDES; side++)
			d.percent[side] = (double)row->counts[side].self * 100 / duration_ns[side];
		if (d.chance.least > CHANCE_LEVEL &&
		    fabs(d.percent[NEW] - d.percent[OLD]) < UNJUDGED_PERCENT)
			continue;
		err = array_add(m->differences, m->count, *room, d);
	}
	return err;
}

static int compare_differences(const void *one, const void *other)
{
	const struct moment_difference *a = one, *b = other;
	/* As printed: rows of the same ticks are not to be ordered by errors of rounding. */
	double x = round(100 * fabs(a->percent[NEW] - a->percent[OLD]));
	double y = round(100 * fabs(b->percent[NEW] - b->percent[OLD]));
	int order = (x < y) - (x > y);

	/* Processes and threads before functions, and these by self first. */
	order = order ?: (int)a->view_number - (int)b->view_number;
	return order ?: (a->total - b->total ?: rows_compare(a->row, b->row));
}

int moment_make(struct moment *m, const struct profile *other, const struct profile *moment,
		const struct rows_options *o)
{
	static const char *const names[] = { "process", "thread", "function" };
	const bool of_states = o->view && o->view->fields & ROW_STATE;
	struct rows_options options = *o;
	size_t room = 0, kept = 0, views = o->view ? 1 : sizeof(names) / sizeof(*names);
	double **p = NULL;
	int err;

	*m = (struct moment){ .profiles = { other, moment } };
	m->rows = calloc(views + 1, sizeof(*m->rows));
	err = m->rows ? 0 : -ENOMEM;
	for (size_t i = 0; i < views && !err; i++) {
		options.view = o->view ?: row_view_by_name(names[i]);
		err = test_view(m, &room, &m->rows[m->view_count++], &options);
	}
	if (!err && has_waits(m) && (of_states || !o->view || o->view->fields & ROW_FUNCTION)) {
		options.view = of_states ? o->view : row_view_by_name("wait");
		err = test_waits(m, &room, &m->rows[m->view_count++], &options, of_states);
	}
	if (!err) {
		p = calloc(m->count + 1, sizeof(*p));
		err = p ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < m->count && !err; i++) {
		if (m->differences[i].chance.least <= CHANCE_LEVEL)
			p[m->tested++] = &m->differences[i].chance.p;
		else
			m->unjudged++;
	}
	if (!err)
		chance_correct(p, m->tested);
	for (size_t i = 0; i < m->count && !err; i++) {
		const struct chance *chance = &m->differences[i].chance;

		if (chance->p <= CHANCE_LEVEL || chance->least > CHANCE_LEVEL)
			m->differences[kept++] = m->differences[i];
	}
	m->count = kept;
	if (m->count)
		qsort(m->differences, m->count, sizeof(*m->differences), compare_differences);
	free(p);
	return err;
}

void moment_free(struct moment *m)
{
	for (size_t i = 0; i < m->view_count; i++)
		rows_free(&m->rows[i]);
	free(m->rows);
	free(m->differences);
	*m = (struct moment){ 0 };
}

struct moment_table {
	const struct moment *m;
	const char *title; /* of the first column */
};

static const char *place_of(const struct moment_difference *d, char buffer[TABLE_CELL_SIZE])
{
	const struct callgraph_key *key = d->row->key;

	if (d->view->fields & ROW_FUNCTION)
		return text_basename(key->image);
	if (!(d->view->fields & ROW_PROCESS) || !key->pid)
		return "";
	if (d->view->fields & ROW_THREAD)
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu32 "/%" PRIu32, key->pid, key->tid);
	else
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu32, key->pid);
	return buffer;
}

static void difference_columns(struct columns *c, const void *view, size_t number)
{
	static const char *const keys[][SIDES] = { { "other_cpu_percent", "cpu_percent" },
						   { "other_wait_percent", "wait_percent" } };
	const struct moment_table *t = view;
	const struct moment_difference *d = &t->m->differences[number];
	const bool is_function = d->view->fields & ROW_FUNCTION;
	const unsigned int text = COLUMN_NAMES | COLUMN_TEXT;
	const char *amount = d->total ? "total" : "self";

	LOOKS(c, .hot = d->percent[NEW] > d->percent[OLD]);
	COLUMN(c, NULL, "what", 0, d->is_wait ? "wait" : d->view->name);
	COLUMN(c, NULL, is_function && !d->is_wait ? "amount" : NULL, 0, amount);
	COLUMN(c, "what", NULL, text | COLUMN_WHOLE,
	       d->is_wait     ? thread_state_text(d->row->key->state, c->buffer)
	       : !is_function ? d->view->name
	       : d->total     ? "function, total"
			      : "function, self");
	COLUMN(c, "name", NULL, text,
	       d->row->name || d->is_wait      ? d->row->name
	       : !(d->view->fields & ROW_COMM) ? row_first_text(d->view, d->row, c->buffer)
	       : d->row->comm[0]	       ? d->row->comm
					       : row_unknown);
	COLUMN(c, "where", NULL, text | COLUMN_PATH, place_of(d, c->buffer));
	if (c->json)
		row_columns(c, d->view, d->row);
	for (int side = 0; side < SIDES; side++) {
		const struct callgraph_cost *cost = &d->row->counts[side];

		if (d->is_wait)
			COLUMN(c, NULL, side == NEW ? "waits" : "other_waits", 0,
			       wait_rows_count(d->row, side));
		else
			COLUMN(c, NULL, side == NEW ? "samples" : "other_samples", 0,
			       d->total ? cost->total : cost->self);
		COLUMN(c, side == NEW ? "moment%" : t->title, keys[d->is_wait][side], 2,
		       d->percent[side]);
	}
	COLUMN(c, "diff", "difference", 2 | COLUMN_SIGNED | COLUMN_HOT,
	       d->percent[NEW] - d->percent[OLD]);
	COLUMN(c, "p", NULL, 0, chance_text(&d->chance, c->buffer, TABLE_CELL_SIZE));
	if (!c->json || d->chance.least <= CHANCE_LEVEL)
		COLUMN(c, NULL, "p", 6, d->chance.p);
}

int moment_print(const struct moment *m, const char *name_of_other,
		 const struct report_table_options *o, FILE *out)
{
	char title[TABLE_CELL_SIZE];
	const struct moment_table shown = { m, title };
	size_t rows = report_rows(o, m->count);
	int err;

	if (!m->count) {
		fputs(CHANCE_NOTHING "\n", out);
		return 0;
	}
	snprintf(title, sizeof(title), "%s%%", name_of_other);
	err = table_print(difference_columns, &shown, rows, o->width, o->color, out);
	if (!err && rows < m->count)
		fprintf(out, "... %zu more\n", m->count - rows);
	return err;
}

int moment_json(const struct moment *m, const struct report_table_options *o, FILE *out)
{
	const struct moment_table t = { .m = m };
	size_t shown = report_rows(o, m->count);
	struct json_writer w;

	json_begin(&w, out);
	for (int side = SIDES - 1; side >= 0; side--) {
		const struct profile *p = m->profiles[side];
		struct json_object *object = json_object_new_object();

		json_add(&object, "start_ns", json_object_new_uint64(p->time_ns));
		json_add(&object, "duration_s", json_decimal((double)p->duration_ns / 1e9, 3));
		json_add(&object, "samples", json_object_new_uint64(profile_amount(p).samples));
		json_member(&w, side == NEW ? "moment" : "other", object);
	}
	json_member(&w, "tested", json_object_new_uint64(m->tested));
	columns_list(&w, "rows", difference_columns, &t, shown);
	json_member_number(&w, "omitted", m->count - shown);
	return json_end(&w);
}

void moment_summary(const struct moment *m, const char *const *names, const char *prefix, FILE *out)
{
	for (int side = SIDES - 1; side >= 0; side--) {
		const struct profile *p = m->profiles[side];
		struct profile_amount amount = profile_amount(p);

		fprintf(out, "%s%s: %s: %" PRIu64 " samples, %.3f s of CPU in %.3f s\n", prefix,
			side == NEW ? "moment" : "other", names[side], amount.samples,
			(double)amount.cpu_ns / 1e9, (double)p->duration_ns / 1e9);
	}
	fputs(prefix, out);
	chance_print(m->count - m->unjudged, m->tested, "rows", out);
	if (m->unjudged)
		fprintf(out,
			"%s%zu row%s of waits that are too few for chance to judge (p ~): it may "
			"be "
			"one long wait\n",
			prefix, m->unjudged, m->unjudged == 1 ? " is" : "s are");
}
