// SPDX-License-Identifier: GPL-2.0-only
#include "report/totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/json_writer.h"
#include "report/rows.h"
#include "report/text.h"
#include "symbol/runtime.h"
#include "util/sum.h"

bool cost_has_interrupt(const struct profile *p)
{
	return profile_has_clock(p) && strcmp(p->event, "tick") != 0;
}

bool cost_cpu_percent(const struct profile *p, double *percent)
{
	const struct profile_totals *t = &p->totals;
	double per_tick_ns;

	if (!t->known || !t->bpf_ns_per_tick || !t->cpu_ns ||
	    (!t->interrupt_ns && cost_has_interrupt(p)))
		return false;
	per_tick_ns =
		(double)t->bpf_ns_per_tick + (profile_has_clock(p) ? (double)t->interrupt_ns : 0);
	*percent = (double)t->ticks * per_tick_ns / (double)t->cpu_ns * 100;
	return true;
}

bool cost_own_percent(const struct profile *p, double *percent)
{
	const struct profile_totals *t = &p->totals;

	if (!t->known || !t->own_ns || !t->cpu_ns)
		return false;
	*percent = (double)t->own_ns / (double)t->cpu_ns * 100;
	return true;
}

bool cost_target_is_idle(const struct profile *p)
{
	uint64_t duration_ns = p->all_duration_ns ?: p->duration_ns;

	return p->totals.cpu_ns < duration_ns / 20;
}

bool cost_machine_percent(const struct profile *p, double *percent)
{
	const struct profile_totals *t = &p->totals;

	if (!t->known || !t->bpf_ns_per_tick || !t->machine_ns ||
	    (cost_has_interrupt(p) && (!t->interrupt_ns || !t->interrupts)))
		return false;
	*percent = ((double)t->ticks * (double)t->bpf_ns_per_tick +
		    (double)t->interrupts * (double)t->interrupt_ns + (double)t->own_ns) /
		   (double)t->machine_ns * 100;
	return true;
}

struct cause {
	const char *name; /* as in profile_stack_end */
	const char *text; /* printed before " in IMAGE" */
	const char *hint; /* or "" */
};

static const struct cause causes[] = {
	{ "no_frame_information", "no call frame information",
	  "build it with -fasynchronous-unwind-tables or -fno-omit-frame-pointer; code that is "
	  "made at run time needs frame pointers" },
	{ "unread_frame_information", "call frame information that could not be read",
	  "a warning of the recording says why" },
	{ "late_frame_information", "call frame information that was not read yet", "" },
	{ "no_room", "no room in the unwind tables for the call frame information",
	  "record with a larger --unwind-memory" },
	{ "gap", "code without call frame information",
	  "C code needs -fasynchronous-unwind-tables, assembly .cfi directives" },
	{ "unsupported", "unsupported call frame information", "" },
	{ "bad_frame", "wrong call frame information", "" },
	{ "unreadable", "the stack could not be read", "" },
	{ "process_unknown", "the process is so new that its mappings were unknown", "" },
	{ "mapping_unknown", "return addresses outside all known mappings", "" },
	{ "walk_too_long", "the walks of the process's stacks took more than a tenth of its time",
	  "record with a lower --frequency" },
	{ "32_bit", "32-bit processes are walked by frame pointers",
	  "build them with -fno-omit-frame-pointer" },
};

#define CAUSES (sizeof(causes) / sizeof(*causes))

static const struct cause *find_cause(const char *name)
{
	for (size_t i = 0; i < CAUSES; i++)
		if (strcmp(causes[i].name, name) == 0)
			return &causes[i];
	return NULL;
}

/* How to make such stacks whole; or "". */
static const char *hint_of(const struct profile *p, const struct cause *cause, const char *image)
{
	const char *hint = NULL;

	if (cause == causes) /* code made at run time, if no runtime is found */
		hint = runtime_frame_hint(p, image);
	return hint ?: cause ? cause->hint : "";
}

/* The count of all entries with the cause of entry `first`; 0 if an earlier one has it. */
static uint64_t count_cause(const struct profile_totals *t, size_t first)
{
	uint64_t all = 0;

	for (size_t i = 0; i < t->stack_end_count; i++) {
		if (strcmp(t->stack_ends[i].cause, t->stack_ends[first].cause) != 0)
			continue;
		if (i < first)
			return 0;
		add_u64(&all, t->stack_ends[i].count);
	}
	return all;
}

void stack_ends_print(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	char percent[TEXT_PERCENT_SIZE];
	const struct cause *cause;

	if (!t->stacks_user || strcmp(p->stacks, "cfi"))
		return;
	text_percent(percent, t->stacks_complete, t->stacks_user);
	fprintf(out, "%s%s %% of the user stacks reach the program's start\n", prefix, percent);
	for (size_t i = 0; i < t->stack_end_count; i++) {
		const char *name = t->stack_ends[i].cause, *first = NULL, *hint;
		uint64_t count = count_cause(t, i);
		size_t others = 0;

		if (!count || (double)count * 200 < t->stacks_user) /* half a percent */
			continue;
		text_percent(percent, count, t->stacks_user);
		/* "CAUSE in A and 2 others: HINT", where A is the most frequent image. */
		for (size_t j = 0; j < t->stack_end_count; j++) {
			const struct profile_stack_end *end = &t->stack_ends[j];

			if (strcmp(end->cause, name) != 0 || !*end->image)
				continue;
			others += first != NULL;
			first = first ?: end->image;
		}
		/* Later versions can record further causes: print their names. */
		cause = find_cause(name);
		fprintf(out, "%s  %s %%: ", prefix, percent);
		text_print(cause ? cause->text : name, out);
		if (first)
			text_printf(out, " in %s", text_basename(first));
		if (others)
			fprintf(out, " and %zu other%s", others, others == 1 ? "" : "s");
		hint = hint_of(p, cause, first ?: "");
		if (*hint)
			fprintf(out, ": %s", hint);
		fputc('\n', out);
	}
}

struct json_object *stack_ends_json(const struct profile *p)
{
	const struct profile_totals *t = &p->totals;
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < t->stack_end_count; i++) {
		const struct profile_stack_end *end = &t->stack_ends[i];
		const struct cause *cause = find_cause(end->cause);
		struct json_object *object = json_object_new_object();

		json_add(&object, "cause", json_text(end->cause));
		json_add(&object, "image", json_text(end->image));
		json_add(&object, "count", json_object_new_uint64(end->count));
		json_add(&object, "hint", json_text(hint_of(p, cause, end->image)));
		json_append(&array, object);
	}
	return array;
}

/* {CAUSE: COUNT}. Entries with the same cause become one member. */
static struct json_object *lost_object(const struct profile_totals *t)
{
	struct json_object *object = json_object_new_object(), *known;

	for (size_t i = 0; i < t->lost_count; i++) {
		char *cause = text_utf8(t->lost[i].cause);
		uint64_t count = t->lost[i].count;

		if (cause && json_object_object_get_ex(object, cause, &known))
			count += json_object_get_uint64(known);
		json_add(&object, cause, cause ? json_object_new_uint64(count) : NULL);
		free(cause);
	}
	return object;
}

/* Adds the counters of a group. zeros: also those that are shown when they are 0. */
static void add_counters(struct json_object **object, const struct profile_totals *t,
			 const char *group, bool zeros)
{
	for (int i = 0; i < ACCOUNT_COUNT; i++) {
		const struct account_counter *c = &account_counters[i];

		if (c->group && strcmp(c->group, group) == 0 &&
		    (t->account.values[i] || (zeros && c->zero)))
			json_add(object, c->json ?: c->name,
				 json_object_new_uint64(t->account.values[i]));
	}
}

static struct json_object *cost_object(const struct profile *p)
{
	struct json_object *object = json_object_new_object();
	double percent;

	add_counters(&object, &p->totals, "cost", false);
	if (cost_cpu_percent(p, &percent))
		json_add(&object, "cpu_percent", json_decimal(percent, 2));
	if (p->totals.own_ns)
		json_add(&object, "own_s", json_decimal((double)p->totals.own_ns / 1e9, 3));
	if (cost_own_percent(p, &percent))
		json_add(&object, "own_percent", json_decimal(percent, 2));
	if (cost_machine_percent(p, &percent))
		json_add(&object, "machine_percent", json_decimal(percent, 2));
	return object;
}

static struct json_object *stacks_object(const struct profile *p)
{
	struct json_object *object = json_object_new_object();

	json_add_text(&object, "method", p->stacks);
	add_counters(&object, &p->totals, "stacks", true);
	/* How stacks end is unknown when the kernel walks them by frame pointers. */
	if (strcmp(p->stacks, "cfi") != 0) {
		json_object_object_del(object, "complete");
		return object;
	}
	if (!p->totals.stacks_complete)
		json_add(&object, "complete", json_object_new_uint64(0));
	json_add(&object, "ends", stack_ends_json(p));
	return object;
}

/* The samples that were selected, by labels or functions, and their share of all. */
static struct json_object *selected_object(const struct profile *p)
{
	struct profile_amount selected = profile_amount(p);
	double percent = (double)selected.samples * 100 / (double)p->all_samples;
	struct json_object *object = json_object_new_object();

	json_add(&object, "samples", json_object_new_uint64(selected.samples));
	json_add(&object, "of_samples", json_object_new_uint64(p->all_samples));
	json_add(&object, "percent", json_decimal(percent, 2));
	if (p->all_cpu_ns) {
		json_add(&object, "cpu_s", json_decimal((double)selected.cpu_ns / 1e9, 3));
		json_add(&object, "of_cpu_s", json_decimal((double)p->all_cpu_ns / 1e9, 3));
	}
	if (p->all_duration_ns)
		json_add(&object, "of_duration_s",
			 json_decimal((double)p->all_duration_ns / 1e9, 3));
	return object;
}

void wall_columns(struct columns *c, const struct profile_wall *wall, bool has_samples,
		  bool has_unknown)
{
	COLUMN(c, NULL, "threads", 0, wall->threads);
	COLUMN(c, "wall s", "wall_ns", COLUMN_NS | (has_samples ? 0 : COLUMN_OPTIONAL),
	       wall->wall_ns);
	COLUMN(c, "on CPU s", "on_cpu_ns", COLUMN_NS | (has_samples ? COLUMN_OPTIONAL : 0),
	       wall->on_cpu_ns);
	COLUMN(c, "runnable s", "runnable_ns", COLUMN_NS, wall->runnable_ns);
	COLUMN(c, "blocked s", "blocked_ns", COLUMN_NS, wall->blocked_ns);
	COLUMN(c, "idle s", "idle_ns", COLUMN_NS, wall->idle_ns);
	if (has_unknown)
		COLUMN(c, "unknown s", "unknown_ns", COLUMN_NS, wall->unknown_ns);
}

static void wall_members(struct columns *c, const void *wall, size_t row)
{
	(void)row;
	wall_columns(c, wall, false, true);
}

struct json_object *wall_json(const struct profile_wall *wall)
{
	return columns_json(wall_members, wall, 0);
}

/* Adds what quotas of control groups did to the account of wall time. */
static void add_throttled(struct json_object **object, const struct profile_totals *t)
{
	struct json_object *list = json_object_new_array();
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < t->throttled_count; i++) {
		const struct profile_throttled *g = &t->throttled[i];
		struct json_object *group = json_object_new_object();

		add_u64(&sum_ns, g->throttled_ns);
		json_add(&group, "cgroup", json_text(g->cgroup));
		json_add(&group, "quota_us", json_object_new_uint64(g->quota_ns / 1000));
		json_add(&group, "period_us", json_object_new_uint64(g->every_ns / 1000));
		json_add(&group, "periods", json_object_new_uint64(g->periods));
		json_add(&group, "throttled_periods", json_object_new_uint64(g->throttled_periods));
		json_add(&group, "throttled_ns", json_object_new_uint64(g->throttled_ns));
		json_append(&list, group);
	}
	json_add(object, "throttled", list);
	json_add(object, "throttled_ns", json_object_new_uint64(sum_ns));
}

/*
 * Adds an object with the time that threads spent in a state by reason. What `all_ns` has beyond
 * these is in the account, and in no wait: its reason is unknown.
 */
static void add_reasons(struct json_object **object, const char *key,
			const struct thread_times *times, enum thread_state state, uint64_t all_ns)
{
	struct json_object *by = json_object_new_object();

	for (size_t i = 0; i < times->reason_count; i++) {
		const struct thread_reason *r = &times->reasons[i];
		char name[THREAD_STATE_SIZE];

		if (!r->states[state])
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)r->size, r->name);
		json_add(&by, name, json_object_new_uint64(r->states[state]));
	}
	if (all_ns > times->states[state])
		json_add(&by, "unknown", json_object_new_uint64(all_ns - times->states[state]));
	json_add(object, key, by);
}

/* Adds for what threads waited, and the counters, to the account of wall time. */
static void add_waits(struct json_object **object, const struct profile *p, uint64_t blocked_ns)
{
	struct thread_times times;
	bool known = profile_thread_times(p, &times);

	if (known) {
		add_reasons(object, "blocked_by", &times, THREAD_BLOCKED,
			    p->all_samples ? 0 : blocked_ns);
		add_reasons(object, "idle_by", &times, THREAD_IDLE, 0);
	}
	add_counters(object, &p->totals, "wall", known);
}

void totals_json(struct json_writer *w, const struct profile *p, const char *stacks)
{
	const struct profile_wall wall = profile_wall_sum(p);
	const struct profile_totals *t = &p->totals;

	if (p->all_samples)
		json_member(w, "selected", selected_object(p));
	if (p->wall_count || t->waits || t->wall_lost) {
		struct json_object *object = wall_json(&wall);

		add_throttled(&object, t);
		add_waits(&object, p, wall.blocked_ns);
		json_member(w, "wall", object);
	}
	if (profile_find_sum(p, PROFILE_SUM_DELAY) < p->value_type_count)
		json_member(w, "delay_ns",
			    json_object_new_int64(profile_total(p, PROFILE_DELAY_TYPE)));
	if (!t->known)
		return;
	for (int i = 0; i < ACCOUNT_COUNT; i++) {
		const struct account_counter *c = &account_counters[i];

		if (!c->group && (t->account.values[i] || c->zero))
			json_member(w, c->name, json_object_new_uint64(t->account.values[i]));
	}
	json_member(w, "lost", lost_object(t));
	json_member_number(w, "due", profile_due(p));
	if (t->bpf_ns_per_tick)
		json_member(w, "cost", cost_object(p));
	if (t->stack_limit)
		json_member(w, stacks, stacks_object(p));
}

void recording_json(struct json_writer *w, const struct profile *p, const char *title)
{
	const struct profile_amount amount = profile_amount(p);

	json_member(w, "value", json_text(title));
	json_member_text(w, "event", p->event);
	json_member_number(w, "period_ns", profile_tick_ns(p));
	if (p->duration_ns)
		json_member(w, "duration_s", json_decimal((double)p->duration_ns / 1e9, 3));
	/* What the rows are of: of what filters left. */
	if (profile_tick_ns(p) && amount.samples) {
		double cpu_s = (double)amount.cpu_ns / 1e9;

		json_member(w, "cpu_s", json_decimal(cpu_s, 3));
		if (p->duration_ns)
			json_member(w, "cpu_percent",
				    json_decimal(cpu_s * 1e11 / (double)p->duration_ns, 2));
	}
	totals_json(w, p, "stacks");
}
