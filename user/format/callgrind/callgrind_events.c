// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>

#include "format/callgrind/callgrind_read.h"
#include "util/sum.h"

int callgrind_find_event(struct callgrind_reader *r, struct text name,
			 struct callgrind_event **event)
{
	struct callgrind_events *events = &r->events;
	const char *interned;
	int err = callgrind_intern(r, name, &interned);

	if (err)
		return err;
	for (size_t i = 0; i < events->count; i++) {
		*event = &events->list[i];
		if ((*event)->name == interned)
			return 0;
	}
	if (events->count == CALLGRIND_EVENTS_MAX)
		return input_line_error(r->in, r->e, "the file has more than %d events",
					CALLGRIND_EVENTS_MAX);
	*event = &events->list[events->count++];
	**event = (struct callgrind_event){ .name = interned, .value = PROFILE_NONE };
	return 0;
}

/* NAME [= FORMULA] [: TITLE] */
int callgrind_read_event(struct callgrind_reader *r, struct text value)
{
	struct text name = value, formula, title;
	struct callgrind_event *event;
	int err;

	while (!is_empty(&value) && !is_blank(*value.at) && *value.at != '=' && *value.at != ':')
		value.at++;
	name.end = value.at;
	if (is_empty(&name)) {
		callgrind_overlook(r, OVERSIGHT_LINE);
		return 0;
	}
	err = callgrind_find_event(r, name, &event);
	take_blanks(&value);
	if (!err && take(&value, "=")) {
		take_blanks(&value);
		formula = value;
		while (!is_empty(&value) && *value.at != ':')
			value.at++;
		formula.end = value.at;
		trim_end(&formula);
		if (!event->formula && !is_empty(&formula))
			err = callgrind_intern(r, formula, &event->formula);
		r->events.changed = true;
	}
	if (!err && take(&value, ":")) {
		take_blanks(&value);
		title = value;
		trim_end(&title);
		err = callgrind_intern(r, title, &event->title);
	}
	return err;
}

/*
 * "ns" is CPU time, as callgrind_write.c names it. Go's pprof and Xdebug have the unit in the name:
 * "cpu(ms)", "Time_(10ns)".
 */
static int add_value_type(struct callgrind_reader *r, struct callgrind_event *event)
{
	struct text name = text_of(event->name);
	const char *bracket = strchr(name.at, '('), *type = event->name, *unit = "count";
	int err = 0;

	if (strcmp(event->name, "ns") == 0) {
		type = "cpu";
		unit = "nanoseconds";
	} else if (bracket && bracket > name.at && name.end[-1] == ')' && name.end - bracket > 2) {
		err = callgrind_intern(r, (struct text){ bracket + 1, name.end - 1 }, &unit);
		if (!err)
			err = callgrind_intern(r, (struct text){ name.at, bracket }, &type);
	}
	if (err)
		return err;
	event->value = r->p->value_type_count;
	return profile_add_value_type(r->p, type, unit) ? error_no_memory(r->e) : 0;
}

static bool has_column(const struct callgrind_events *events, uint32_t value)
{
	for (size_t i = 0; i < events->column_count; i++)
		if (events->columns[i] == value)
			return true;
	return false;
}

/* Sets the columns of the part's cost lines; adds events that no earlier part has. */
int callgrind_read_events(struct callgrind_reader *r, struct text value)
{
	struct callgrind_events *events = &r->events;

	events->column_count = 0;
	events->changed = true;
	while (take_blanks(&value), !is_empty(&value)) {
		struct callgrind_event *event;
		int err;

		if (events->column_count == CALLGRIND_EVENTS_MAX)
			return input_line_error(r->in, r->e, "the line has more than %d events",
						CALLGRIND_EVENTS_MAX);
		err = callgrind_find_event(r, take_token(&value), &event);
		if (!err && event->value == PROFILE_NONE)
			err = add_value_type(r, event);
		if (err)
			return err;
		event->counted = true;
		if (has_column(events, event->value)) {
			callgrind_overlook(r, OVERSIGHT_DUPLICATE_EVENT);
			events->columns[events->column_count++] = PROFILE_NONE;
		} else {
			events->columns[events->column_count++] = event->value;
		}
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

	if (!is_empty(t) && digit_value(*t->at) < 10 && !callgrind_take_number(t, &number))
		return false;
	take_blanks(t);
	if (take(t, "*"))
		take_blanks(t);
	name->at = t->at;
	while (!is_empty(t) && !is_blank(*t->at) && *t->at != '+')
		t->at++;
	name->end = t->at;
	take_blanks(t);
	*factor = number > INT64_MAX ? INT64_MAX : (int64_t)number;
	return !is_empty(name) && (is_empty(t) || (take(t, "+") && (take_blanks(t), !is_empty(t))));
}

static struct callgrind_event *known_event(struct callgrind_events *events, struct text name)
{
	for (size_t i = 0; i < events->count; i++)
		if (text_is(&name, events->list[i].name))
			return &events->list[i];
	return NULL;
}

/* Sets event->factors: the counted events whose sum the event is. False: the formula is invalid. */
static bool expand(struct callgrind_events *events, struct callgrind_event *event)
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
		struct callgrind_event *of;

		if (!take_term(&t, &factor, &name) || !(of = known_event(events, name)) ||
		    (!of->counted && !expand(events, of))) {
			event->state = FORMULA_BROKEN;
			return false;
		}
		for (size_t i = 0; i < CALLGRIND_EVENTS_MAX; i++) {
			int64_t inherited = of->counted ? i == of->value : of->factors[i];

			add_i64(&event->factors[i], multiply_i64(factor, inherited));
		}
	}
	event->state = FORMULA_EXPANDED;
	return true;
}

int callgrind_settle_events(struct callgrind_reader *r)
{
	struct callgrind_events *events = &r->events;
	int err = 0;

	events->changed = false;
	/* Events that were unknown before may be known now. */
	for (size_t i = 0; i < events->count; i++)
		if (events->list[i].state == FORMULA_BROKEN)
			events->list[i].state = FORMULA_UNSEEN;
	for (size_t i = 0; i < events->count && !err; i++) {
		struct callgrind_event *event = &events->list[i];

		if (!event->counted && expand(events, event) && event->value == PROFILE_NONE)
			err = add_value_type(r, event);
	}
	if (!err && profile_widen_values(r->p, r->width))
		err = error_no_memory(r->e);
	r->width = r->p->value_type_count;
	return err;
}

static void set_value_type(struct profile *p, const struct callgrind_event *event)
{
	struct profile_value_type *type = &p->value_types[event->value];

	if (event->title)
		type->title = event->title;
	if (event->unit)
		type->unit = event->unit;
	if (event->formula && !event->counted)
		type->formula = event->formula;
	type->period = event->period;
}

static void compute(const struct callgrind_event *event, size_t value_types, int64_t *values,
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

int callgrind_finish_events(struct callgrind_reader *r)
{
	struct profile *p = r->p;
	int err = r->events.changed ? callgrind_settle_events(r) : 0;

	for (size_t i = 0; i < r->events.count && !err; i++) {
		const struct callgrind_event *event = &r->events.list[i];

		if (event->value == PROFILE_NONE) {
			if (event->formula && profile_warn(p,
							   "the event %s is dropped: \"%s\" is "
							   "cyclic, or not a sum of events",
							   event->name, event->formula))
				return error_no_memory(r->e);
			continue;
		}
		set_value_type(p, event);
		if (event->counted)
			continue;
		compute(event, p->value_type_count, p->values, p->sample_count);
		compute(event, p->value_type_count, p->arc_values, p->arc_count);
	}
	return err;
}
