// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader. It follows the "Callgrind Format Specification" in valgrind's manual, and real
 * writers and readers where they differ from it. Functions that return int return 0, or -errno with
 * r->e set, unless their comment says otherwise.
 */
#include "format/callgrind/callgrind.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "profile/build_id.h"
#include "util/scan.h"
#include "util/sum.h"
#include "util/table.h"

#define PAGE_SIZE UINT64_C(4096)

/*
 * Both counted and derived events. KCachegrind supports 200.
 * Bound: files: events of a file; then: it is refused.
 */
#define EVENTS_MAX 100

/* Deviations from the format that get a warning: other readers accept them, too. */
enum oversight {
	OVERSIGHT_BLANKS,
	OVERSIGHT_LINE,
	OVERSIGHT_UNDEFINED,
	OVERSIGHT_REDEFINED,
	OVERSIGHT_DUPLICATE_EVENT,
	OVERSIGHT_COSTS,
	OVERSIGHT_NEGATIVE,
	OVERSIGHT_FRACTION,
	OVERSIGHT_RELATIVE,
	OVERSIGHT_OVERFLOW,
	OVERSIGHT_POSITION,
	OVERSIGHT_NO_FUNCTION,
	OVERSIGHT_NO_CALLEE,
	OVERSIGHT_NO_COSTS,
	OVERSIGHT_COUNT
};

/* Names of one kind by the numbers that a file gives them: "(1) main", later "(1)". */
struct name {
	uint64_t number;
	const char *text;
	uint32_t part; /* the part of the file that defines it */
};
struct names {
	TABLE(struct name) table; /* by number */
};

/* An event. Texts are interned; NULL: not in the file so far. */
struct event {
	const char *name;
	const char *title;
	const char *formula;
	const char *unit;
	uint64_t period;
	bool counted;	/* in an "events:" line: cost lines have its costs */
	uint32_t value; /* its value type; PROFILE_NONE: none yet */
	enum {
		FORMULA_UNSEEN,
		FORMULA_OPEN, /* being expanded */
		FORMULA_EXPANDED,
		FORMULA_BROKEN /* cyclic, or refers to unknown events */
	} state;
	int64_t factors[EVENTS_MAX]; /* of each value type, when FORMULA_EXPANDED */
};

struct events {
	struct event list[EVENTS_MAX];
	size_t count;
	bool changed;		      /* since settle_events() */
	uint32_t columns[EVENTS_MAX]; /* value type of each cost; PROFILE_NONE: ignored */
	size_t column_count;
};

/* The subpositions of a line */
enum subposition {
	POSITION_INSTR,
	POSITION_BB,
	POSITION_LINE,
	POSITION_COUNT
};

struct position {
	uint64_t at[POSITION_COUNT];
};

/* A "summary:" or "totals:" line. */
struct claim {
	uint64_t line; /* 0: the part has none */
	int64_t costs[EVENTS_MAX];
	size_t count;
};

/* Where costs were counted, except for the position. Texts are interned; NULL: not in the file. */
struct place {
	uint32_t mapping; /* of the object; PROFILE_NONE: unknown */
	bool has_object;
	const char *file;     /* source file of the line */
	const char *function; /* name */
	const char *home;     /* source file of the function */
	uint32_t id;	      /* its number in the profile; PROFILE_NONE: not looked up yet */
};

/* A call or jump whose position and costs are in the next cost line. */
struct association {
	bool waits; /* for that line */
	struct profile_arc arc;
	struct position target;
};

struct reader {
	struct input *in;
	struct profile *p;
	struct error *e;

	struct names objects, files, functions; /* by number */
	struct index mapping_index;		/* by path */
	struct index function_index;		/* by name and file */
	struct events events;
	size_t width;	  /* number of value types in samples so far */
	uint64_t tick_ns; /* 0: not given */

	bool has_creator; /* a "creator:" line */

	/* The current part of the file: a header and a body */
	uint32_t part;
	bool in_body;
	enum subposition positions[POSITION_COUNT];
	size_t position_count;
	struct claim summary, totals;
	int64_t sums[EVENTS_MAX]; /* of the part's costs, by value type */
	uint32_t pid, tid;
	uint32_t labels; /* of pid and tid; PROFILE_NONE: not added yet */

	/* The current line */
	struct place here;   /* file: of fl=, fi= or fe= */
	const char *fl;	     /* file of the last fl=; NULL: none */
	struct place callee; /* of the next call or jump */
	struct position last;
	struct association association;
	int64_t values[EVENTS_MAX];
	int64_t last_costs[EVENTS_MAX]; /* by column */

	struct {
		uint64_t count;
		uint64_t first; /* line */
	} oversights[OVERSIGHT_COUNT];
	char mismatch[256]; /* warning of the first total that differs; "": none */
};

static void overlook(struct reader *r, enum oversight what)
{
	if (r->oversights[what].count++ == 0)
		r->oversights[what].first = r->in->line;
}

/* A decimal number, or a hexadecimal one with the prefix 0x. */
static bool take_any_number(struct text *t, uint64_t *value)
{
	return take(t, "0x") ? take_number(t, 16, value) : take_number(t, 10, value);
}

/* --- Names --- */

/* Sets *interned to the profile's copy of `t`. */
static int intern(struct reader *r, struct text t, const char **interned)
{
	return profile_string_n(r->p, t.at, t.end - t.at, interned);
}

/* Sets *name to the interned name that `t` stands for: "(1) name", "(1)" or "name". */
static int take_name(struct reader *r, struct names *names, struct text t, const char **name)
{
	struct name new = { .part = r->part }, *known;
	struct text rest;
	uint32_t id;
	int err;

	take_blanks(&t);
	rest = t;
	if (!take(&rest, "(") || !take_any_number(&rest, &new.number) || !take(&rest, ")"))
		return intern(r, t, name);
	take_blanks(&rest);
	if (is_empty(&rest)) {
		id = table_find(&names->table, &new.number, sizeof(new.number));
		if (id == INDEX_NONE) {
			overlook(r, OVERSIGHT_UNDEFINED);
			return intern(r, t, name);
		}
		*name = names->table.all[id].text;
		return 0;
	}
	err = intern(r, rest, name);
	if (err)
		return err;
	new.text = *name;
	if (table_add(&names->table, &new, sizeof(new.number), &id))
		return -ENOMEM;
	/* Each part may define all numbers again. */
	known = &names->table.all[id];
	if (known->part == r->part && known->text != *name)
		overlook(r, OVERSIGHT_REDEFINED);
	*known = new;
	return 0;
}

static bool mapping_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile *p = array;

	return p->images[p->mappings[id].image].path == key;
}

/* Sets *mapping to the one mapping of the object with this path; PROFILE_NONE if path is "". */
static int find_object(struct reader *r, const char *path, const uint8_t *build_id,
		       size_t build_id_size, uint32_t *mapping)
{
	struct profile *p = r->p;
	uint64_t hash = hash_u64((uintptr_t)path, 0);
	uint32_t image;

	*mapping = PROFILE_NONE;
	if (!*path)
		return 0;
	*mapping = index_find(&r->mapping_index, hash, mapping_equal, p, path);
	if (*mapping != INDEX_NONE)
		return 0;
	if (profile_add_image(p, path, build_id, build_id_size, &image) ||
	    profile_add_mapping(p, 0, 0, 0, image, mapping) ||
	    index_add(&r->mapping_index, hash, *mapping))
		return -ENOMEM;
	p->mappings[*mapping].linked = true;
	return 0;
}

EQUAL(function_equal, struct profile_function, struct profile_function, SAME(name) && SAME(file))

/* --- Events --- */

/* Sets *event to the event with this name, which is added if it is new. */
static int find_event(struct reader *r, struct text name, struct event **event)
{
	struct events *events = &r->events;
	const char *interned;
	int err = intern(r, name, &interned);

	if (err)
		return err;
	for (size_t i = 0; i < events->count; i++) {
		*event = &events->list[i];
		if ((*event)->name == interned)
			return 0;
	}
	if (events->count == EVENTS_MAX)
		return input_line_error(r->in, r->e, "the file has more than %d events",
					EVENTS_MAX);
	*event = &events->list[events->count++];
	**event = (struct event){ .name = interned, .value = PROFILE_NONE };
	return 0;
}

/* Reads the value of an "event:" line: NAME [= FORMULA] [: TITLE]. */
static int read_event(struct reader *r, struct text value)
{
	struct text name = value, formula, title;
	struct event *event;
	int err;

	while (!is_empty(&value) && !is_blank(*value.at) && *value.at != '=' && *value.at != ':')
		value.at++;
	name.end = value.at;
	if (is_empty(&name)) {
		overlook(r, OVERSIGHT_LINE);
		return 0;
	}
	err = find_event(r, name, &event);
	take_blanks(&value);
	if (!err && take(&value, "=")) {
		take_blanks(&value);
		formula = value;
		while (!is_empty(&value) && *value.at != ':')
			value.at++;
		formula.end = value.at;
		trim_end(&formula);
		if (!event->formula && !is_empty(&formula))
			err = intern(r, formula, &event->formula);
		r->events.changed = true;
	}
	if (!err && take(&value, ":")) {
		take_blanks(&value);
		title = value;
		trim_end(&title);
		err = intern(r, title, &event->title);
	}
	return err;
}

/*
 * "ns" is CPU time, as callgrind_write.c names it. Go's pprof and Xdebug have the unit in the name:
 * "cpu(ms)", "Time_(10ns)".
 */
static int add_value_type(struct reader *r, struct event *event)
{
	struct text name = text_of(event->name);
	const char *bracket = strchr(name.at, '('), *type = event->name, *unit = "count";
	int err = 0;

	if (strcmp(event->name, "ns") == 0) {
		type = "cpu";
		unit = "nanoseconds";
	} else if (bracket && bracket > name.at && name.end[-1] == ')' && name.end - bracket > 2) {
		err = intern(r, (struct text){ bracket + 1, name.end - 1 }, &unit);
		if (!err)
			err = intern(r, (struct text){ name.at, bracket }, &type);
	}
	if (err)
		return err;
	event->value = r->p->value_type_count;
	return profile_add_value_type(r->p, type, unit);
}

/*
 * Reads the value of an "events:" line: sets the columns of the part's cost lines, and adds events
 * that no earlier part has.
 */
static int read_events(struct reader *r, struct text value)
{
	struct events *events = &r->events;

	events->column_count = 0;
	events->changed = true;
	while (take_blanks(&value), !is_empty(&value)) {
		struct event *event;
		uint32_t column;
		int err;

		if (events->column_count == EVENTS_MAX)
			return input_line_error(r->in, r->e, "the line has more than %d events",
						EVENTS_MAX);
		err = find_event(r, take_token(&value), &event);
		if (!err && event->value == PROFILE_NONE)
			err = add_value_type(r, event);
		if (err)
			return err;
		event->counted = true;
		column = event->value;
		for (size_t i = 0; i < events->column_count && column != PROFILE_NONE; i++)
			if (events->columns[i] == column)
				column = PROFILE_NONE;
		if (column == PROFILE_NONE)
			overlook(r, OVERSIGHT_DUPLICATE_EVENT);
		events->columns[events->column_count++] = column;
	}
	if (!events->column_count)
		return input_line_error(r->in, r->e, "events: lists no event");
	return 0;
}

/* a >= 0 */
static int64_t multiply_i64(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? (b < 0 ? INT64_MIN : INT64_MAX) : product;
}

/* [NUMBER [*]] NAME [+] */
static bool take_term(struct text *t, int64_t *factor, struct text *name)
{
	uint64_t number = 1;

	if (!is_empty(t) && digit_value(*t->at) < 10 && !take_any_number(t, &number))
		return false;
	take_blanks(t);
	if (take(t, "*"))
		take_blanks(t);
	name->at = t->at;
	while (!is_empty(t) && !is_blank(*t->at) && *t->at != '+')
		t->at++;
	name->end = t->at;
	take_blanks(t);
	*factor = saturate_i64(number);
	return !is_empty(name) && (is_empty(t) || (take(t, "+") && (take_blanks(t), !is_empty(t))));
}

static struct event *known_event(struct events *events, struct text name)
{
	for (size_t i = 0; i < events->count; i++)
		if (text_is(&name, events->list[i].name))
			return &events->list[i];
	return NULL;
}

/* Sets event->factors: the counted events whose sum the event is. False: the formula is invalid. */
static bool expand(struct events *events, struct event *event)
{
	struct text t = { event->formula, NULL }, name;
	int64_t factor;

	if (!event->formula || event->state == FORMULA_OPEN || event->state == FORMULA_BROKEN)
		return false;
	if (event->state == FORMULA_EXPANDED)
		return true;
	t.end = t.at + strlen(t.at);
	event->state = FORMULA_OPEN;
	memset(event->factors, 0, sizeof(event->factors));
	while (!is_empty(&t)) {
		struct event *of;

		if (!take_term(&t, &factor, &name) || !(of = known_event(events, name)) ||
		    (!of->counted && !expand(events, of))) {
			event->state = FORMULA_BROKEN;
			return false;
		}
		for (size_t i = 0; i < EVENTS_MAX; i++) {
			int64_t inherited = of->counted ? i == of->value : of->factors[i];

			add_i64(&event->factors[i], multiply_i64(factor, inherited));
		}
	}
	event->state = FORMULA_EXPANDED;
	return true;
}

/*
 * Adds value types for new events to the profile. To be called before costs are read if
 * events.changed.
 */
static int settle_events(struct reader *r)
{
	struct events *events = &r->events;
	int err = 0;

	events->changed = false;
	/* Events that were unknown before may be known now. */
	for (size_t i = 0; i < events->count; i++)
		if (events->list[i].state == FORMULA_BROKEN)
			events->list[i].state = FORMULA_UNSEEN;
	for (size_t i = 0; i < events->count && !err; i++) {
		struct event *event = &events->list[i];

		if (!event->counted && expand(events, event) && event->value == PROFILE_NONE)
			err = add_value_type(r, event);
	}
	err = err ?: profile_widen_values(r->p, r->width);
	r->width = r->p->value_type_count;
	return err;
}

/* Sets the value of a derived event in each row of values. */
static void compute_event(const struct event *event, size_t value_types, int64_t *values,
			  size_t rows)
{
	for (size_t i = 0; i < rows; i++, values += value_types) {
		int64_t sum = 0;

		for (size_t j = 0; j < value_types; j++)
			if (event->factors[j])
				add_i64(&sum, multiply_i64(event->factors[j], values[j]));
		values[event->value] = sum;
	}
}

/* At the end of the file: sets titles and formulas of value types, and computes derived values. */
static int finish_events(struct reader *r)
{
	struct profile *p = r->p;
	int err = r->events.changed ? settle_events(r) : 0;

	for (size_t i = 0; i < r->events.count && !err; i++) {
		const struct event *event = &r->events.list[i];
		struct profile_value_type *type;

		if (event->value == PROFILE_NONE) {
			if (event->formula && profile_warn(p,
							   "the event %s is lost: \"%s\" is "
							   "cyclic, or not a sum of events",
							   event->name, event->formula))
				return -ENOMEM;
			continue;
		}
		type = &p->value_types[event->value];
		if (event->title)
			type->title = event->title;
		if (event->unit)
			type->unit = event->unit;
		type->period = event->period;
		if (event->counted)
			continue;
		if (event->formula)
			type->formula = event->formula;
		compute_event(event, p->value_type_count, p->values, p->sample_count);
		compute_event(event, p->value_type_count, p->arc_values, p->arc_count);
	}
	if (r->tick_ns)
		profile_set_tick_ns(p, r->tick_ns);
	return err;
}

/*
 * --- The body of a part: "key=value" lines, which name object, file and function, and cost lines.
 * A cost line is a sample of one frame; after "calls=" it belongs to an arc. ---
 */

static const char unknown[] = "???";

/* Ends a call or jump, whose names of a callee are valid for it alone. */
static void end_association(struct reader *r)
{
	r->association.waits = false;
	r->callee = (struct place){ .mapping = PROFILE_NONE, .id = PROFILE_NONE };
}

/* Drops a call or jump that still waits for its cost line. */
static void drop_association(struct reader *r)
{
	if (!r->association.waits)
		return;
	overlook(r, OVERSIGHT_NO_COSTS);
	end_association(r);
}

static int take_object(struct reader *r, struct text value, struct place *place)
{
	const char *path;
	int err = take_name(r, &r->objects, value, &path);

	if (err)
		return err;
	place->has_object = true;
	if (strcmp(path, unknown) == 0)
		path = "";
	return find_object(r, path, NULL, 0, &place->mapping);
}

static int take_file(struct reader *r, struct text value, struct place *place)
{
	int err = take_name(r, &r->files, value, &place->file);

	if (!err && strcmp(place->file, unknown) == 0)
		err = intern(r, (struct text){ unknown, unknown }, &place->file);
	return err;
}

static int take_function(struct reader *r, struct text value, struct place *place)
{
	int err = take_name(r, &r->functions, value, &place->function);

	if (!err && !*place->function)
		err = intern(r, text_of(unknown), &place->function);
	place->id = PROFILE_NONE;
	return err;
}

static int read_fl(struct reader *r, struct text value, struct place *here)
{
	int err = take_file(r, value, here);

	r->fl = here->file;
	return err;
}

/* Goes back to the file of fl=, unless the writer uses fi= only. */
static int read_fn(struct reader *r, struct text value, struct place *here)
{
	drop_association(r);
	if (r->fl)
		here->file = r->fl;
	here->home = here->file;
	return take_function(r, value, here);
}

static int read_cfn(struct reader *r, struct text value, struct place *callee)
{
	drop_association(r);
	return take_function(r, value, callee);
}

/* --- Numbers --- */

static bool is_digit(const struct text *t)
{
	return !is_empty(t) && digit_value(*t->at) < 10;
}

/*
 * Takes a cost from *t. One that is negative, has a fraction or more than 63 bits gets a warning.
 * False: it is not a number.
 */
static bool take_cost(struct reader *r, struct text *t, int64_t *cost)
{
	bool negative = take(t, "-");
	uint64_t number;

	if (!is_digit(t))
		return false;
	if (!take_any_number(t, &number) || number > INT64_MAX) {
		overlook(r, OVERSIGHT_OVERFLOW);
		number = INT64_MAX;
	}
	while (is_digit(t))
		t->at++;
	if (take(t, ".")) {
		overlook(r, OVERSIGHT_FRACTION);
		while (is_digit(t))
			t->at++;
	}
	*cost = negative ? -(int64_t)number : (int64_t)number;
	return is_empty(t) || is_blank(*t->at);
}

/* Takes a subposition, which may be relative to `last`, that of the last cost line. */
static bool take_subposition(struct reader *r, struct text *t, uint64_t last, uint64_t *at)
{
	bool up, down;

	if (take(t, "*")) {
		*at = last;
		return is_empty(t) || is_blank(*t->at);
	}
	up = take(t, "+");
	down = !up && take(t, "-");
	if (!take_any_number(t, at))
		return false;
	if ((up && __builtin_add_overflow(last, *at, at)) ||
	    (down && __builtin_sub_overflow(last, *at, at)))
		overlook(r, OVERSIGHT_POSITION);
	return is_empty(t) || is_blank(*t->at);
}

/* --- Calls and jumps --- */

/*
 * Takes the target's position, which may be missing. Relative ones by Go's pprof are wrong: they
 * refer to another line. Its files have call counts of 0 and no "creator:" line.
 */
static void take_target(struct reader *r, struct text t)
{
	struct association *a = &r->association;

	a->target = (struct position){ 0 };
	for (size_t i = 0; i < r->position_count && (take_blanks(&t), !is_empty(&t)); i++) {
		enum subposition what = r->positions[i];
		bool relative = !is_digit(&t);

		if (!take_subposition(r, &t, r->last.at[what], &a->target.at[what]))
			return;
		if (relative && !a->arc.count && !r->has_creator)
			a->target.at[what] = 0;
	}
}

static int begin_association(struct reader *r, enum profile_arc_kind kind, struct text *value)
{
	struct association *a = &r->association;
	int64_t count;

	drop_association(r);
	a->waits = true;
	a->arc = (struct profile_arc){ .kind = kind };
	if (!take_cost(r, value, &count))
		return input_line_error(r->in, r->e, "the count is not a number");
	if (count < 0)
		overlook(r, OVERSIGHT_NEGATIVE);
	a->arc.count = MAX(count, 0);
	return 0;
}

static int read_calls(struct reader *r, struct text value, struct place *callee)
{
	int err = begin_association(r, PROFILE_CALL, &value);

	(void)callee;
	if (!err)
		take_target(r, value);
	return err;
}

static int read_jump(struct reader *r, struct text value, struct place *callee)
{
	int err = begin_association(r, PROFILE_JUMP, &value);

	(void)callee;
	if (!err)
		take_target(r, value);
	return err;
}

/* FOLLOWED/EXECUTED TARGET by callgrind, EXECUTED FOLLOWED TARGET by its manual. */
static int read_jcnd(struct reader *r, struct text value, struct place *callee)
{
	struct profile_arc *arc = &r->association.arc;
	struct text first = take_token(&value);
	const char *slash = memchr(first.at, '/', first.end - first.at);
	int64_t second;
	int err;

	(void)callee;
	if (slash) {
		value.at = slash + 1;
		first.end = slash;
	}
	err = begin_association(r, PROFILE_CONDITIONAL_JUMP, &first);
	if (err)
		return err;
	take_blanks(&value);
	if (!take_cost(r, &value, &second))
		return input_line_error(r->in, r->e, "the count is not a number");
	if (second < 0) {
		overlook(r, OVERSIGHT_NEGATIVE);
		second = 0;
	}
	arc->executed = slash ? (uint64_t)second : arc->count;
	arc->count = slash ? arc->count : (uint64_t)second;
	take_target(r, value);
	return 0;
}

/* --- Costs --- */

static int add_location(struct reader *r, struct place *place, const struct position *position,
			uint32_t *location)
{
	uint64_t number = position->at[POSITION_LINE];
	struct profile_line line = { .line = number <= UINT32_MAX ? number : 0 };
	const struct profile_function f = { place->function, place->function, place->home, 0 };
	uint64_t hash = hash_u64((uintptr_t)f.name, (uintptr_t)f.file);
	int err = 0;

	/* Each call names its callee: an index by interned texts is faster than the profile's. */
	if (place->id == PROFILE_NONE)
		place->id =
			index_find(&r->function_index, hash, function_equal, r->p->functions, &f);
	if (place->id == PROFILE_NONE)
		err = profile_add_function(r->p, &f, &place->id)
			      ?: index_add(&r->function_index, hash, place->id);
	line.function = place->id;
	if (place->file != place->home)
		line.file = place->file;
	return err
		       ?: profile_add_line_location(r->p, position->at[POSITION_INSTR],
						    place->mapping, &line, 1, location);
}

static int add_arc(struct reader *r)
{
	struct profile_arc *arc = &r->association.arc;
	struct place *callee = &r->callee;
	int err = add_location(r, &r->here, &r->last, &arc->from);

	/* Object and file of a callee default to the caller's. */
	if (!callee->has_object)
		callee->mapping = r->here.mapping;
	if (!callee->file)
		callee->file = r->here.file;
	callee->home = callee->file;
	if (!callee->function && arc->kind != PROFILE_CALL) {
		/* Without jfn=, a jump stays in the function. */
		callee->function = r->here.function;
		callee->home = r->here.home;
	} else if (!callee->function && !err) {
		overlook(r, OVERSIGHT_NO_CALLEE);
		err = take_function(r, text_of(unknown), callee);
	}
	if (!err)
		err = add_location(r, callee, &r->association.target, &arc->to);
	arc->labels = r->labels;
	/* The cost line after a jump has a position only. */
	err = err ?: profile_add_arc(r->p, arc, arc->kind == PROFILE_CALL ? r->values : NULL);
	end_association(r);
	return err;
}

/* A line whose costs are all 0 is not a sample. */
static int add_sample(struct reader *r)
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
	return err ?: profile_add_sample(r->p, &location, 1, r->labels, r->values);
}

/*
 * Takes a cost that may be relative to `last`, the previous line's, as positions are: speedscope
 * reads such files. A "-" means that only after a "*" or "+" in the file; otherwise it is a
 * negative cost, which cg_diff and Xdebug write.
 */
static bool take_any_cost(struct reader *r, struct text *t, int64_t last, int64_t *cost)
{
	bool up = take(t, "+"), same = !up && take(t, "*");
	bool down = r->oversights[OVERSIGHT_RELATIVE].count && !up && !same && take(t, "-");

	if (up || same || down)
		overlook(r, OVERSIGHT_RELATIVE);
	if (same) {
		*cost = last;
		return is_empty(t) || is_blank(*t->at);
	}
	if (!take_cost(r, t, cost))
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

static int read_cost_line(struct reader *r, struct text t)
{
	const struct profile_labels labels = { .pid = r->pid, .tid = r->tid, .comm = "" };
	int err = 0;

	r->in_body = true;
	if (!r->events.column_count)
		return input_line_error(r->in, r->e, "a cost line before any \"events:\" line");
	if (r->events.changed)
		err = settle_events(r);
	if (!err && r->labels == PROFILE_NONE)
		err = profile_add_labels(r->p, &labels, &r->labels);
	if (!err && !r->here.function) {
		overlook(r, OVERSIGHT_NO_FUNCTION);
		err = read_fn(r, text_of(unknown), &r->here);
	}
	if (err)
		return err;

	for (size_t i = 0; i < r->position_count; i++) {
		uint64_t *last = &r->last.at[r->positions[i]];

		take_blanks(&t);
		if (!take_subposition(r, &t, *last, last))
			return input_line_error(r->in, r->e, "a position is not a number");
	}

	memset(r->values, 0, r->width * sizeof(*r->values));
	for (size_t i = 0; take_blanks(&t), !is_empty(&t); i++) {
		int64_t cost;

		if (i >= r->events.column_count) {
			overlook(r, OVERSIGHT_COSTS);
			break;
		}
		if (!take_any_cost(r, &t, r->last_costs[i], &cost))
			return input_line_error(r->in, r->e, "a cost is not a number");
		r->last_costs[i] = cost;
		if (r->events.columns[i] != PROFILE_NONE)
			r->values[r->events.columns[i]] = cost;
	}
	return r->association.waits ? add_arc(r) : add_sample(r);
}

/* What the names are of: where costs are counted, or the callee of the next call. */
static const struct {
	const char *key;
	int (*read)(struct reader *r, struct text value, struct place *place);
	bool of_callee;
} keys[] = {
	{ "fn", read_fn, false },     { "fl", read_fl, false },	   { "fi", take_file, false },
	{ "fe", take_file, false },   { "cfn", read_cfn, true },   { "calls", read_calls, true },
	{ "cfi", take_file, true },   { "cfl", take_file, true },  { "ob", take_object, false },
	{ "cob", take_object, true }, { "jcnd", read_jcnd, true }, { "jump", read_jump, true },
	{ "jfi", take_file, true },   { "jfn", read_cfn, true },   { "rcalls", read_calls, true },
};

#define KEY_COUNT (sizeof(keys) / sizeof(*keys))

static size_t find_key(struct text key)
{
	size_t i = 0;

	while (i < KEY_COUNT && !text_is(&key, keys[i].key))
		i++;
	return i;
}

/*
 * --- The header of a part: "key: value". The value of a "desc:" line is again "Key: value": the
 * keys that callgrind_write.c writes set members of the profile, others are kept as extras. ---
 */

static int add_extra(struct reader *r, struct text line)
{
	trim_end(&line);
	return profile_add_extra(r->p, CALLGRIND_NAME, PROFILE_NONE, line.at, line.end - line.at);
}

static int read_version(struct reader *r, struct text value)
{
	uint64_t version;

	if (take_any_number(&value, &version) && version > 1)
		return input_line_error(r->in, r->e,
					"version %" PRIu64 " is unsupported: the only one is 1",
					version);
	return 0;
}

/* An ID that is not a 32-bit number is unknown: 0. */
static void read_id(struct reader *r, struct text value, void *id)
{
	uint64_t number;

	*(uint32_t *)id = take_any_number(&value, &number) && number <= UINT32_MAX ? number : 0;
	r->labels = PROFILE_NONE;
}

static int read_command(struct reader *r, struct text value)
{
	trim_end(&value);
	return *r->p->command ? 0 : intern(r, value, &r->p->command);
}

/* [instr] [bb] [line], in this order */
static int read_positions(struct reader *r, struct text value)
{
	static const char *const words[] = { "instr", "bb", "line" };

	r->position_count = 0;
	while (take_blanks(&value), !is_empty(&value)) {
		struct text word = take_token(&value);
		size_t i = r->position_count ? r->positions[r->position_count - 1] + 1 : 0;

		while (i < POSITION_COUNT && !text_is(&word, words[i]))
			i++;
		if (i == POSITION_COUNT)
			return input_line_error(
				r->in, r->e,
				"positions: has other words than instr, bb and line in this order");
		r->positions[r->position_count++] = i;
	}
	if (!r->position_count)
		return input_line_error(r->in, r->e, "positions: is empty");
	return 0;
}

static void read_claim(struct reader *r, struct text value, void *to)
{
	struct claim *claim = to;

	*claim = (struct claim){ .line = r->in->line };
	while (claim->count < EVENTS_MAX && (take_blanks(&value), !is_empty(&value)) &&
	       take_cost(r, &value, &claim->costs[claim->count]))
		claim->count++;
}

/* --- desc: --- */

/* What is in struct profile, at this offset. */
static const struct member {
	const char *key;
	size_t offset;
} numbers[] = {
	{ "Start", offsetof(struct profile, time_ns) },
	{ "Duration", offsetof(struct profile, duration_ns) },
	{ "All samples", offsetof(struct profile, all_samples) },
	{ "All CPU time", offsetof(struct profile, all_cpu_ns) },
	{ "All duration", offsetof(struct profile, all_duration_ns) },
}, texts[] = {
	{ "Event", offsetof(struct profile, event) },
	{ "Host", offsetof(struct profile, host) },
};

/*
 * Reads the value of a "desc:" line. Sets *taken to false if it is not of the form that this key
 * has in files by callgrind_write.c.
 */
typedef int description_reader(struct reader *r, struct text value, bool *taken);

/* NUMBER ns, or NUMBER EVENT */
static int read_period(struct reader *r, struct text value, bool *taken)
{
	struct event *event;
	uint64_t period;
	int err;

	*taken = take_number(&value, 10, &period) && take_blanks(&value) && !is_empty(&value);
	if (!*taken)
		return 0;
	if (text_is(&value, "ns")) {
		r->tick_ns = period;
		return 0;
	}
	err = find_event(r, value, &event);
	if (!err)
		event->period = period;
	return err;
}

/* EVENT UNIT */
static int read_unit(struct reader *r, struct text value, bool *taken)
{
	struct text name = take_token(&value);
	struct event *event;
	int err;

	take_blanks(&value);
	*taken = !is_empty(&value);
	if (!*taken)
		return 0;
	err = find_event(r, name, &event);
	if (!err)
		err = intern(r, value, &event->unit);
	return err;
}

/* NUMBER CAUSE */
static int read_lost(struct reader *r, struct text value, bool *taken)
{
	const char *cause;
	uint64_t count;

	*taken = take_number(&value, 10, &count) && take_blanks(&value) && !is_empty(&value);
	if (!*taken)
		return 0;
	return intern(r, value, &cause) ?: profile_add_lost(r->p, cause, count);
}

/* HEX PATH */
static int read_build_id(struct reader *r, struct text value, bool *taken)
{
	struct text hex = take_token(&value);
	uint8_t id[PROFILE_BUILD_ID_MAX];
	size_t size = build_id_parse(hex.at, hex.end - hex.at, id);
	const char *path;
	uint32_t mapping;

	take_blanks(&value);
	*taken = size && !is_empty(&value);
	if (!*taken)
		return 0;
	return intern(r, value, &path) ?: find_object(r, path, id, size, &mapping);
}

static const struct {
	const char *key;
	description_reader *read;
} descriptions[] = {
	{ "Period", read_period },
	{ "Unit", read_unit },
	{ "Lost", read_lost },
	{ "Build ID", read_build_id },
};

/* NUMBER, or NUMBER ns */
static bool take_number_ns(struct text value, uint64_t *number)
{
	if (!take_number(&value, 10, number))
		return false;
	take_blanks(&value);
	take(&value, "ns");
	return is_empty(&value);
}

static int read_description(struct reader *r, struct text value, struct text line)
{
	const char *colon = memchr(value.at, ':', value.end - value.at);
	struct text key = { value.at, colon };
	bool taken = false;
	const char *text;
	uint64_t number;
	int err = 0;

	if (!colon)
		return add_extra(r, line);
	value.at = colon + 1;
	take_blanks(&value);
	trim_end(&value);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && !taken; i++) {
		taken = text_is(&key, numbers[i].key) && take_number_ns(value, &number);
		if (taken)
			memcpy((char *)r->p + numbers[i].offset, &number, sizeof(number));
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (!text_is(&key, texts[i].key))
			continue;
		err = intern(r, value, &text);
		memcpy((char *)r->p + texts[i].offset, &text, err ? 0 : sizeof(text));
		return err;
	}
	if (text_is(&key, "Comment"))
		return intern(r, value, &text) ?: profile_add_comment(r->p, text);
	for (int i = 0; i < ACCOUNT_COUNT && !taken; i++) {
		taken = text_is(&key, account_counters[i].callgrind ?: account_counters[i].name) &&
			take_number_ns(value, &number);
		if (taken)
			r->p->totals.account.values[i] = number;
		r->p->totals.known |= taken && i == ACCOUNT_ticks;
	}
	for (size_t i = 0; i < sizeof(descriptions) / sizeof(*descriptions) && !taken; i++) {
		if (!text_is(&key, descriptions[i].key))
			continue;
		taken = true;
		err = descriptions[i].read(r, value, &taken);
	}
	return err || taken ? err : add_extra(r, line);
}

/* Either is read by a function of its own; or a member of struct reader, by another. */
static const struct header {
	const char *key;
	int (*read)(struct reader *r, struct text value);
	void (*read_member)(struct reader *r, struct text value, void *member);
	size_t member;
	bool anywhere; /* valid in the body, too */
} headers[] = {
	{ "version", read_version, NULL, 0, false },
	{ "creator", NULL, NULL, 0, false },
	{ "pid", NULL, read_id, offsetof(struct reader, pid), false },
	{ "cmd", read_command, NULL, 0, false },
	{ "part", NULL, NULL, 0, false },
	{ "thread", NULL, read_id, offsetof(struct reader, tid), false },
	{ "positions", read_positions, NULL, 0, false },
	{ "event", read_event, NULL, 0, false },
	{ "events", read_events, NULL, 0, false },
	{ "summary", NULL, read_claim, offsetof(struct reader, summary), true },
	{ "totals", NULL, read_claim, offsetof(struct reader, totals), true },
};

static const char description[] = "desc";

static const struct header *find_header(struct text key)
{
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		if (text_is(&key, headers[i].key))
			return &headers[i];
	return NULL;
}

/* Keeps a line that differs from the sums of the costs; with is_sum, that gets a warning. */
static int check_claim(struct reader *r, const char *key, struct claim *claim, bool is_sum)
{
	const struct events *events = &r->events;
	char text[16 + EVENTS_MAX * 20];
	uint64_t line = claim->line;
	uint32_t value = PROFILE_NONE;
	size_t column = 0;
	int size;

	claim->line = 0;
	for (; line && column < claim->count && column < events->column_count; column++) {
		value = events->columns[column];
		if (value != PROFILE_NONE && claim->costs[column] != r->sums[value])
			break;
	}
	if (!line || column == claim->count || column == events->column_count)
		return 0;
	if (is_sum && !*r->mismatch)
		snprintf(r->mismatch, sizeof(r->mismatch),
			 "line %" PRIu64 ": %s says %" PRId64
			 " %.64s, but the sum of the costs is %" PRId64,
			 line, key, claim->costs[column], r->p->value_types[value].type,
			 r->sums[value]);
	size = snprintf(text, sizeof(text), "%s:", key);
	for (size_t i = 0; i < claim->count; i++)
		size += snprintf(text + size, sizeof(text) - size, " %" PRId64, claim->costs[i]);
	return add_extra(r, (struct text){ text, text + size });
}

/* Ends a part: compares its "summary:" and "totals:" with the sums of its costs. */
static int end_part(struct reader *r)
{
	/* Where callgrind writes both, its "summary:" has costs that are in no cost line. */
	bool has_totals = r->totals.line;
	int err;

	drop_association(r);
	err = check_claim(r, "summary", &r->summary, !has_totals)
		      ?: check_claim(r, "totals", &r->totals, true);
	memset(r->sums, 0, sizeof(r->sums));
	return err;
}

/* Reads `line`, which is "key: value". */
static int read_header_line(struct reader *r, struct text key, struct text value, struct text line)
{
	bool is_description = text_is(&key, description);
	const struct header *header = find_header(key);

	if (!header && !is_description) {
		overlook(r, OVERSIGHT_LINE);
		return 0;
	}
	/* A header line in a body begins the next part, which inherits what it does not set. */
	if (r->in_body && (is_description || !header->anywhere)) {
		int err = end_part(r);

		if (err)
			return err;
		r->part++;
		r->in_body = false;
		r->positions[0] = POSITION_LINE;
		r->position_count = 1;
		r->last = (struct position){ 0 };
		r->here.function = NULL;
		r->here.id = PROFILE_NONE;
	}
	take_blanks(&value);
	if (is_description)
		return read_description(r, value, line);
	r->has_creator |= text_is(&key, "creator");
	if (header->read_member)
		header->read_member(r, value, (char *)r + header->member);
	return header->read ? header->read(r, value) : 0;
}

/* Takes "KEY:" or "KEY=", with blanks before the sign. Returns the sign; '\0': neither. */
static char take_key(struct text *t, struct text *key)
{
	key->at = t->at;
	while (!is_empty(t) && (isalnum((unsigned char)*t->at) || *t->at == '_' || *t->at == '-'))
		t->at++;
	key->end = t->at;
	take_blanks(t);
	if (is_empty(key) || is_empty(t) || (*t->at != ':' && *t->at != '='))
		return '\0';
	return *t->at++;
}

/* --- Detection --- */

static bool begins_costs(const struct text *t)
{
	const char *at = t->at;

	if (at < t->end && (*at == '+' || *at == '-'))
		at++;
	return at < t->end && *at >= '0' && *at <= '9';
}

/*
 * New files begin with a magic line. Older files, and other writers, have a header with "events:",
 * then a body, which a long "cmd:" line may push out of the window.
 */
static bool callgrind_detect(const struct input *in)
{
	struct text rest = { (const char *)in->bytes, (const char *)in->bytes + in->size }, line;
	bool events = false;
	unsigned int headers_seen = 0;

	while (take_line(&rest, &line)) {
		bool whole = line.end < rest.end;

		if (line.end > line.at && line.end[-1] == '\r')
			line.end--;
		take_blanks(&line);
		if (take(&line, "# callgrind format"))
			return true;
		/* Xdebug and valgrind write such lines anywhere. */
		if (is_empty(&line) || *line.at == '#' || take(&line, "=="))
			continue;
		if (!begins_costs(&line)) {
			struct text key;
			char sign = take_key(&line, &key);

			if (sign == ':') {
				take_blanks(&line);
				if (text_is(&key, "events") && !is_empty(&line))
					events = true;
				else if (find_header(key) || text_is(&key, description))
					headers_seen++;
				continue;
			}
			if (!sign && !whole && in->size >= INPUT_WINDOW)
				break;
			if (sign != '=' || find_key(key) == KEY_COUNT)
				return false;
		}
		/* This line is in a body. */
		if (events || !whole)
			return events;
	}
	/* Where the window ends before the body, what it has may still have been no other file's.
	 */
	if (in->size >= INPUT_WINDOW)
		return events || headers_seen >= 2;
	return events && headers_seen >= 2;
}

/* --- The file --- */

static int read_line(struct reader *r, struct text t)
{
	struct text line, key;
	char sign;

	if (take_blanks(&t) && !is_empty(&t))
		overlook(r, OVERSIGHT_BLANKS);
	if (is_empty(&t) || *t.at == '#')
		return 0;
	if (begins_costs(&t) || *t.at == '*')
		return read_cost_line(r, t);
	line = t;
	sign = take_key(&t, &key);
	if (sign == '=') {
		size_t i = find_key(key);

		if (i == KEY_COUNT) {
			overlook(r, OVERSIGHT_LINE);
			return 0;
		}
		r->in_body = true;
		take_blanks(&t);
		return keys[i].read(r, t, keys[i].of_callee ? &r->callee : &r->here);
	}
	if (sign == ':')
		return read_header_line(r, key, t, line);
	overlook(r, OVERSIGHT_LINE);
	return 0;
}

static const char *const oversights[OVERSIGHT_COUNT] = {
	[OVERSIGHT_BLANKS] = "the line begins with a blank",
	[OVERSIGHT_LINE] = "the line is not in the format and is ignored",
	[OVERSIGHT_UNDEFINED] = "the number of a name is not defined",
	[OVERSIGHT_REDEFINED] = "the number of a name is defined again",
	[OVERSIGHT_DUPLICATE_EVENT] = "an event is listed twice: its second costs are ignored",
	[OVERSIGHT_COSTS] = "the line has more costs than there are events",
	[OVERSIGHT_NEGATIVE] = "a number of calls is negative: counted as 0",
	[OVERSIGHT_FRACTION] = "a cost has a fraction, which is ignored",
	[OVERSIGHT_RELATIVE] = "a cost is relative to the previous line's",
	[OVERSIGHT_OVERFLOW] = "a cost has more than 63 bits: counted as 2^63 - 1",
	[OVERSIGHT_POSITION] = "a relative position is below 0, or has more than 64 bits",
	[OVERSIGHT_NO_FUNCTION] = "costs come before any function",
	[OVERSIGHT_NO_CALLEE] = "a call does not name its callee",
	[OVERSIGHT_NO_COSTS] = "no cost line follows the call or jump, which is lost",
};

static int add_warnings(struct reader *r)
{
	int err = *r->mismatch ? profile_warn(r->p, "%s", r->mismatch) : 0;

	for (size_t i = 0; i < OVERSIGHT_COUNT && !err; i++) {
		uint64_t count = r->oversights[i].count, first = r->oversights[i].first;

		if (count == 1)
			err = profile_warn(r->p, "line %" PRIu64 ": %s", first, oversights[i]);
		else if (count)
			err = profile_warn(r->p, "line %" PRIu64 ": %s (and %" PRIu64 " more)",
					   first, oversights[i], count - 1);
	}
	return err;
}

static int callgrind_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader *r = calloc(1, sizeof(*r));
	const char *line;
	size_t size;
	int err, finish_err;

	if (!r)
		return -ENOMEM;
	r->in = in;
	r->p = p;
	r->e = e;
	r->positions[0] = POSITION_LINE;
	r->position_count = 1;
	r->labels = PROFILE_NONE;
	r->here = r->callee = (struct place){ .mapping = PROFILE_NONE, .id = PROFILE_NONE };
	err = intern(r, (struct text){ "", "" }, &r->here.file);
	while (!err && !(err = input_line(in, &line, &size, e)) && line)
		err = read_line(r, (struct text){ line, line + size });
	if (!err && !r->events.column_count)
		err = input_line_error(in, e, "the file has no \"events:\" line");
	err = err ?: end_part(r);
	/* After an error, too: what was read before must be a valid profile. */
	finish_err = finish_events(r) ?: add_warnings(r);
	/* Extends each mapping to the pages of all its locations. */
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		uint64_t start = l->address - l->address % PAGE_SIZE, limit;
		struct profile_mapping *m;

		if (l->mapping == PROFILE_NONE || !l->address)
			continue;
		m = &p->mappings[l->mapping];
		if (__builtin_add_overflow(start, PAGE_SIZE, &limit))
			limit = UINT64_MAX;
		if (!m->limit || start < m->start)
			m->start = start;
		m->limit = MAX(m->limit, limit);
	}
	table_free(&r->objects.table);
	table_free(&r->files.table);
	table_free(&r->functions.table);
	index_free(&r->mapping_index);
	index_free(&r->function_index);
	free(r);
	return err ?: finish_err;
}

const struct format format_callgrind = {
	.name = CALLGRIND_NAME,
	.extensions = (const char *const[]){ ".callgrind", NULL },
	.files = (const char *const[]){ "callgrind.out", "cachegrind.out", NULL },
	.is_signed = true,
	.keeps = KEEPS(NAMES) | KEEPS(LINES) | KEEPS(IMAGES) | KEEPS(BUILD_IDS) | KEEPS(VALUES) |
		 KEEPS(DELAY) | KEEPS(CALLS) | KEEPS(COSTS) | KEEPS(JUMPS) | KEEPS(EVENT) |
		 KEEPS(PERIOD) | KEEPS(EVENT_PERIOD) | KEEPS(TIME) | KEEPS(DURATION) | KEEPS(HOST) |
		 KEEPS(COMMAND) | KEEPS(ACCOUNT) | KEEPS(COUNTERS) | KEEPS(COMMENTS),
	.is_text = true,
	.streams = true,
	.detect = callgrind_detect,
	.read = callgrind_read,
	.write = callgrind_write,
};
