// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lines of a part's body: "key=value" lines, which name object, file and function, and cost
 * lines. A cost line is a sample of one frame; after "calls=" it belongs to an arc.
 */
#include <errno.h>

#include "format/callgrind/callgrind_read.h"
#include "util/sum.h"

static const char unknown[] = "???";

/* The names of a callee are valid for one call or jump. */
static void forget_callee(struct callgrind_reader *r)
{
	r->callee = (struct callgrind_place){ .mapping = PROFILE_NONE, .id = PROFILE_NONE };
}

int callgrind_end_association(struct callgrind_reader *r)
{
	if (!r->association.waits)
		return 0;
	callgrind_overlook(r, OVERSIGHT_NO_COSTS);
	r->association.waits = false;
	forget_callee(r);
	return 0;
}

/* --- Names --- */

static int take_object(struct callgrind_reader *r, struct text value, struct callgrind_place *place)
{
	const char *path;
	int err = callgrind_take_name(r, &r->objects, value, &path);

	if (err)
		return err;
	place->has_object = true;
	if (strcmp(path, unknown) == 0)
		path = "";
	return callgrind_object(r, path, NULL, 0, &place->mapping);
}

static int take_file(struct callgrind_reader *r, struct text value, const char **file)
{
	int err = callgrind_take_name(r, &r->files, value, file);

	if (!err && strcmp(*file, unknown) == 0)
		err = callgrind_intern(r, (struct text){ unknown, unknown }, file);
	return err;
}

static int take_function(struct callgrind_reader *r, struct text value,
			 struct callgrind_place *place)
{
	int err = callgrind_take_name(r, &r->functions, value, &place->function);

	if (!err && !*place->function)
		err = callgrind_intern(r, text_of(unknown), &place->function);
	place->id = PROFILE_NONE;
	return err;
}

static int read_ob(struct callgrind_reader *r, struct text value)
{
	return take_object(r, value, &r->here);
}

static int read_fl(struct callgrind_reader *r, struct text value)
{
	int err = take_file(r, value, &r->fl);

	r->here.file = r->fl;
	return err;
}

static int read_fi(struct callgrind_reader *r, struct text value)
{
	return take_file(r, value, &r->here.file);
}

/* Goes back to the file of fl=, unless the writer uses fi= only. */
static int read_fn(struct callgrind_reader *r, struct text value)
{
	int err = callgrind_end_association(r);

	if (r->fl)
		r->here.file = r->fl;
	r->here.home = r->here.file;
	return err ?: take_function(r, value, &r->here);
}

static int read_cob(struct callgrind_reader *r, struct text value)
{
	return take_object(r, value, &r->callee);
}

static int read_cfl(struct callgrind_reader *r, struct text value)
{
	return take_file(r, value, &r->callee.file);
}

static int read_cfn(struct callgrind_reader *r, struct text value)
{
	int err = callgrind_end_association(r);

	return err ?: take_function(r, value, &r->callee);
}

/* --- Numbers --- */

static int64_t whole_cost(struct callgrind_reader *r, uint64_t number, bool fits, bool negative)
{
	if (!fits || number > INT64_MAX) {
		callgrind_overlook(r, OVERSIGHT_OVERFLOW);
		number = INT64_MAX;
	}
	return negative ? -(int64_t)number : (int64_t)number;
}

static bool is_digit(const struct text *t)
{
	return !is_empty(t) && digit_value(*t->at) < 10;
}

bool callgrind_take_cost(struct callgrind_reader *r, struct text *t, int64_t *cost)
{
	bool negative = take(t, "-"), fits;
	uint64_t number;

	if (!is_digit(t))
		return false;
	fits = callgrind_take_number(t, &number);
	while (is_digit(t))
		t->at++;
	if (take(t, ".")) {
		callgrind_overlook(r, OVERSIGHT_FRACTION);
		while (is_digit(t))
			t->at++;
	}
	*cost = whole_cost(r, number, fits, negative);
	return is_empty(t) || is_blank(*t->at);
}

/* Takes a subposition, which may be relative to `last`, that of the last cost line. */
static bool take_subposition(struct callgrind_reader *r, struct text *t, uint64_t last,
			     uint64_t *at)
{
	bool up, down;

	if (take(t, "*")) {
		*at = last;
		return is_empty(t) || is_blank(*t->at);
	}
	up = take(t, "+");
	down = !up && take(t, "-");
	if (!callgrind_take_number(t, at))
		return false;
	if ((up && __builtin_add_overflow(last, *at, at)) ||
	    (down && __builtin_sub_overflow(last, *at, at)))
		callgrind_overlook(r, OVERSIGHT_POSITION);
	return is_empty(t) || is_blank(*t->at);
}

static uint32_t line_number(const struct callgrind_position *position)
{
	uint64_t line = position->at[POSITION_LINE];

	return line <= UINT32_MAX ? line : 0;
}

/* --- Calls and jumps --- */

/*
 * Takes the target's position, which may be missing. Relative ones by Go's pprof are wrong: they
 * refer to another line. Its files have call counts of 0 and no "creator:" line.
 */
static void take_target(struct callgrind_reader *r, struct text t)
{
	struct callgrind_association *a = &r->association;

	a->target = (struct callgrind_position){ 0 };
	for (size_t i = 0; i < r->position_count && (take_blanks(&t), !is_empty(&t)); i++) {
		enum callgrind_subposition what = r->positions[i];
		bool relative = !is_digit(&t);

		if (!take_subposition(r, &t, r->last.at[what], &a->target.at[what]))
			return;
		if (relative && !a->arc.count && !r->has_creator)
			a->target.at[what] = 0;
	}
}

static int begin_association(struct callgrind_reader *r, enum profile_arc_kind kind,
			     struct text *value)
{
	struct callgrind_association *a = &r->association;
	int err = callgrind_end_association(r);
	int64_t count;

	a->waits = true;
	a->arc = (struct profile_arc){ .kind = kind };
	if (err)
		return err;
	if (!callgrind_take_cost(r, value, &count))
		return input_line_error(r->in, r->e, "the count is not a number");
	if (count < 0)
		callgrind_overlook(r, OVERSIGHT_NEGATIVE);
	a->arc.count = count < 0 ? 0 : count;
	return 0;
}

static int read_calls(struct callgrind_reader *r, struct text value)
{
	int err = begin_association(r, PROFILE_CALL, &value);

	if (!err)
		take_target(r, value);
	return err;
}

static int read_jump(struct callgrind_reader *r, struct text value)
{
	int err = begin_association(r, PROFILE_JUMP, &value);

	if (!err)
		take_target(r, value);
	return err;
}

/* FOLLOWED/EXECUTED TARGET by callgrind, EXECUTED FOLLOWED TARGET by its manual. */
static int read_jcnd(struct callgrind_reader *r, struct text value)
{
	struct profile_arc *arc = &r->association.arc;
	struct text first = take_token(&value);
	const char *slash = memchr(first.at, '/', first.end - first.at);
	int64_t second;
	int err;

	if (slash) {
		value.at = slash + 1;
		first.end = slash;
	}
	err = begin_association(r, PROFILE_CONDITIONAL_JUMP, &first);
	if (err)
		return err;
	take_blanks(&value);
	if (!callgrind_take_cost(r, &value, &second))
		return input_line_error(r->in, r->e, "the count is not a number");
	if (second < 0) {
		callgrind_overlook(r, OVERSIGHT_NEGATIVE);
		second = 0;
	}
	arc->executed = slash ? (uint64_t)second : arc->count;
	arc->count = slash ? arc->count : (uint64_t)second;
	take_target(r, value);
	return 0;
}

/* --- Costs --- */

static int add_location(struct callgrind_reader *r, struct callgrind_place *place,
			const struct callgrind_position *position, uint32_t *location)
{
	struct profile_line line = { .line = line_number(position) };
	int err = callgrind_function(r, place);

	line.function = place->id;
	if (place->file != place->home)
		line.file = place->file;
	if (!err && profile_add_line_location(r->p, position->at[POSITION_INSTR], place->mapping,
					      &line, 1, location))
		err = error_no_memory(r->e);
	return err;
}

/* Object and file of a callee default to the caller's. */
static int complete_callee(struct callgrind_reader *r)
{
	struct callgrind_place *callee = &r->callee;

	if (!callee->has_object)
		callee->mapping = r->here.mapping;
	if (!callee->file)
		callee->file = r->here.file;
	callee->home = callee->file;
	if (callee->function)
		return 0;
	if (r->association.arc.kind != PROFILE_CALL) {
		/* Without jfn=, a jump stays in the function. */
		callee->function = r->here.function;
		callee->home = r->here.home;
		return 0;
	}
	callgrind_overlook(r, OVERSIGHT_NO_CALLEE);
	return take_function(r, (struct text){ unknown, unknown }, callee);
}

static int add_arc(struct callgrind_reader *r)
{
	struct profile_arc *arc = &r->association.arc;
	int err = add_location(r, &r->here, &r->last, &arc->from);

	if (!err)
		err = complete_callee(r);
	if (!err)
		err = add_location(r, &r->callee, &r->association.target, &arc->to);
	arc->labels = r->labels;
	/* The cost line after a jump has a position only. */
	if (!err && profile_add_arc(r->p, arc, arc->kind == PROFILE_CALL ? r->values : NULL))
		err = error_no_memory(r->e);
	r->association.waits = false;
	forget_callee(r);
	return err;
}

/* A line whose costs are all 0 is not a sample. */
static int add_sample(struct callgrind_reader *r)
{
	bool counted = false;
	uint32_t location;
	int err;

	for (size_t i = 0; i < r->width; i++) {
		counted |= r->values[i] != 0;
		add_i64(&r->sums[i], r->values[i]);
	}
	if (!counted)
		return 0;
	err = add_location(r, &r->here, &r->last, &location);
	if (!err && profile_add_sample(r->p, &location, 1, r->labels, r->values))
		err = error_no_memory(r->e);
	return err;
}

/*
 * Takes a cost that may be relative to `last`, the previous line's, as positions are: speedscope
 * reads such files. A "-" means that only after a "*" or "+" in the file; otherwise it is a
 * negative cost, which cg_diff and Xdebug write.
 */
static bool take_any_cost(struct callgrind_reader *r, struct text *t, int64_t last, int64_t *cost)
{
	bool up = take(t, "+"), same = !up && take(t, "*");
	bool down = r->oversights[OVERSIGHT_RELATIVE].count && !up && !same && take(t, "-");

	if (up || same || down)
		callgrind_overlook(r, OVERSIGHT_RELATIVE);
	if (same) {
		*cost = last;
		return is_empty(t) || is_blank(*t->at);
	}
	if (!callgrind_take_cost(r, t, cost))
		return false;
	if (up)
		add_i64(cost, last);
	if (down) {
		int64_t less = -*cost;

		*cost = last;
		add_i64(cost, less);
	}
	return true;
}

static int take_costs(struct callgrind_reader *r, struct text t)
{
	memset(r->values, 0, r->width * sizeof(*r->values));
	for (size_t i = 0; take_blanks(&t), !is_empty(&t); i++) {
		int64_t cost;

		if (i >= r->events.column_count) {
			callgrind_overlook(r, OVERSIGHT_COSTS);
			break;
		}
		if (!take_any_cost(r, &t, r->last_costs[i], &cost))
			return input_line_error(r->in, r->e, "a cost is not a number");
		r->last_costs[i] = cost;
		if (r->events.columns[i] != PROFILE_NONE)
			r->values[r->events.columns[i]] = cost;
	}
	return 0;
}

static int take_position(struct callgrind_reader *r, struct text *t)
{
	for (size_t i = 0; i < r->position_count; i++) {
		uint64_t *last = &r->last.at[r->positions[i]];

		take_blanks(t);
		if (!take_subposition(r, t, *last, last))
			return input_line_error(r->in, r->e, "a position is not a number");
	}
	return 0;
}

static int begin_costs(struct callgrind_reader *r)
{
	const struct profile_labels labels = { .pid = r->pid, .tid = r->tid, .comm = "" };
	int err = 0;

	if (!r->events.column_count)
		return input_line_error(r->in, r->e, "a cost line before any \"events:\" line");
	if (r->events.changed)
		err = callgrind_settle_events(r);
	if (!err && r->labels == PROFILE_NONE && profile_add_labels(r->p, &labels, &r->labels))
		err = error_no_memory(r->e);
	if (err || r->here.function)
		return err;
	callgrind_overlook(r, OVERSIGHT_NO_FUNCTION);
	return read_fn(r, (struct text){ unknown, unknown });
}

int callgrind_read_costs(struct callgrind_reader *r, struct text t)
{
	int err = begin_costs(r);

	r->in_body = true;
	if (!err)
		err = take_position(r, &t);
	if (!err)
		err = take_costs(r, t);
	if (err)
		return err;
	return r->association.waits ? add_arc(r) : add_sample(r);
}

/* --- All lines --- */

static const struct {
	const char *key;
	int (*read)(struct callgrind_reader *r, struct text value);
} keys[] = {
	{ "fn", read_fn },   { "fl", read_fl },	    { "fi", read_fi },
	{ "fe", read_fi },   { "cfn", read_cfn },   { "calls", read_calls },
	{ "cfi", read_cfl }, { "cfl", read_cfl },   { "ob", read_ob },
	{ "cob", read_cob }, { "jcnd", read_jcnd }, { "jump", read_jump },
	{ "jfi", read_cfl }, { "jfn", read_cfn },   { "rcalls", read_calls },
};

#define KEY_COUNT (sizeof(keys) / sizeof(*keys))

static size_t find_key(struct text key)
{
	size_t i = 0;

	while (i < KEY_COUNT && !text_is(&key, keys[i].key))
		i++;
	return i;
}

bool callgrind_is_body(struct text key)
{
	return find_key(key) < KEY_COUNT;
}

int callgrind_read_body(struct callgrind_reader *r, struct text key, struct text value)
{
	size_t i = find_key(key);

	if (i == KEY_COUNT) {
		callgrind_overlook(r, OVERSIGHT_LINE);
		return 0;
	}
	r->in_body = true;
	take_blanks(&value);
	return keys[i].read(r, value);
}
