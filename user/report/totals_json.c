// SPDX-License-Identifier: GPL-2.0-only
#include "report/totals_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/cost.h"
#include "report/rows.h"
#include "report/stack_ends.h"
#include "util/sum.h"
#include "report/text.h"

/* {CAUSE: COUNT}. Entries with the same cause become one member. */
static struct json_object *lost_object(const struct profile_totals *t)
{
	struct json_object *object = json_object_new_object(), *known;
	int err = 0;

	for (size_t i = 0; i < t->lost_count && !err; i++) {
		char *cause = text_utf8(t->lost[i].cause);
		uint64_t count = t->lost[i].count;

		if (cause && json_object_object_get_ex(object, cause, &known))
			count += json_object_get_uint64(known);
		err = cause ? json_add(object, cause, json_object_new_uint64(count)) : -ENOMEM;
		free(cause);
	}
	return json_checked(object, err);
}

static struct json_object *cost_object(const struct profile *p)
{
	struct json_object *object = json_object_new_object();
	uint64_t bpf_ns = p->totals.bpf_ns_per_tick;
	int err = json_add(object, "bpf_ns_per_tick", json_object_new_uint64(bpf_ns));
	double percent;

	if (!err && cost_cpu_percent(p, &percent))
		err = json_add(object, "cpu_percent", json_decimal(percent, 2));
	if (!err && p->totals.own_ns)
		err = json_add(object, "own_s", json_decimal((double)p->totals.own_ns / 1e9, 3));
	if (!err && cost_own_percent(p, &percent))
		err = json_add(object, "own_percent", json_decimal(percent, 2));
	if (!err && cost_machine_percent(p, &percent))
		err = json_add(object, "machine_percent", json_decimal(percent, 2));
	return json_checked(object, err);
}

static struct json_object *stacks_object(const struct profile *p)
{
	const struct profile_totals *t = &p->totals;
	struct json_object *object = json_object_new_object();
	int err = json_add_text(object, "method", p->stacks);

	err = err ?: json_add(object, "limit", json_object_new_uint64(t->stack_limit));
	err = err ?: json_add(object, "truncated", json_object_new_uint64(t->stacks_truncated));
	err = err ?: json_add(object, "user", json_object_new_uint64(t->stacks_user));
	/* How stacks end is unknown when the kernel walks them by frame pointers. */
	if (!err && strcmp(p->stacks, "cfi") == 0) {
		err = json_add(object, "complete", json_object_new_uint64(t->stacks_complete));
		err = err ?: json_add(object, "ends", stack_ends_json(p));
	}
	return json_checked(object, err);
}

/* The samples that were selected, by labels or functions, and their share of all. */
static struct json_object *selected_object(const struct profile *p)
{
	struct profile_amount selected = profile_amount(p);
	double percent = (double)selected.samples * 100 / (double)p->all_samples;
	struct json_object *object = json_object_new_object();
	int err = json_add(object, "samples", json_object_new_uint64(selected.samples));

	err = err ?: json_add(object, "of_samples", json_object_new_uint64(p->all_samples));
	err = err ?: json_add(object, "percent", json_decimal(percent, 2));
	if (!err && p->all_cpu_ns) {
		err = json_add(object, "cpu_s", json_decimal((double)selected.cpu_ns / 1e9, 3));
		if (!err)
			err = json_add(object, "of_cpu_s",
				       json_decimal((double)p->all_cpu_ns / 1e9, 3));
	}
	if (!err && p->all_duration_ns)
		err = json_add(object, "of_duration_s",
			       json_decimal((double)p->all_duration_ns / 1e9, 3));
	return json_checked(object, err);
}

struct json_object *wall_json(const struct profile_wall *wall, uint64_t lost)
{
	struct json_object *object = json_object_new_object();
	int err = json_add(object, "threads", json_object_new_uint64(wall->threads));

	err = err ?: json_add(object, "wall_ns", json_object_new_uint64(wall->wall_ns));
	err = err ?: json_add(object, "ran_ns", json_object_new_uint64(wall->ran_ns));
	err = err ?: json_add(object, "runnable_ns", json_object_new_uint64(wall->runnable_ns));
	err = err ?: json_add(object, "blocked_ns", json_object_new_uint64(wall->blocked_ns));
	err = err ?: json_add(object, "unknown_ns", json_object_new_uint64(wall->unknown_ns));
	if (!err && lost)
		err = json_add(object, "lost", json_object_new_uint64(lost));
	return json_checked(object, err);
}

/* Adds what quotas of control groups did to the account of wall time. */
static int add_throttled(struct json_object *object, const struct profile_totals *t)
{
	struct json_object *list = json_object_new_array();
	uint64_t sum_ns = 0;
	int err = 0;

	for (size_t i = 0; i < t->throttled_count && !err; i++) {
		const struct profile_throttled *g = &t->throttled[i];
		struct json_object *group = json_object_new_object();

		add_u64(&sum_ns, g->throttled_ns);
		err = json_add(group, "cgroup", json_text(g->cgroup));
		err = err
			      ?: json_add(group, "quota_us",
					  json_object_new_uint64(g->quota_ns / 1000));
		err = err
			      ?: json_add(group, "period_us",
					  json_object_new_uint64(g->period_ns / 1000));
		err = err ?: json_add(group, "periods", json_object_new_uint64(g->periods));
		err = err
			      ?: json_add(group, "throttled_periods",
					  json_object_new_uint64(g->throttled_periods));
		err = err
			      ?: json_add(group, "throttled_ns",
					  json_object_new_uint64(g->throttled_ns));
		err = json_append(list, json_checked(group, err));
	}
	err = json_add(object, "throttled", json_checked(list, err));
	err = err ?: json_add(object, "throttled_ns", json_object_new_uint64(sum_ns));
	if (!err && t->throttled_lost)
		err = json_add(object, "throttled_lost", json_object_new_uint64(t->throttled_lost));
	return err;
}

/* Adds for what threads waited to the account of wall time. */
static int add_waits(struct json_object *object, const struct profile *p, uint64_t blocked_ns)
{
	const struct profile_totals *t = &p->totals;
	struct json_object *by = json_object_new_object();
	struct thread_times times;
	uint64_t told = 0;
	int err = 0;

	if (!profile_thread_times(p, &times)) {
		json_object_put(by);
		return 0;
	}
	for (size_t i = 0; i < times.reason_count && !err; i++) {
		const struct thread_reason *r = &times.reasons[i];
		char name[THREAD_STATE_SIZE];
		uint64_t ns = 0;

		for (int state = THREAD_BLOCKED; state < THREAD_STATES; state++)
			ns += r->states[state];
		snprintf(name, sizeof(name), "%.*s", (int)r->size, r->name);
		err = json_add(by, name, json_object_new_uint64(ns));
		told += ns;
	}
	/* Where nothing was selected: what is in the account, and in no wait. */
	if (!err && !p->all_samples && blocked_ns > told)
		err = json_add(by, "unknown", json_object_new_uint64(blocked_ns - told));
	err = json_add(object, "blocked_by", json_checked(by, err));
	err = err ?: json_add(object, "idle_ns", json_object_new_uint64(times.states[THREAD_IDLE]));
	err = err
		      ?: json_add(object, "undecided_ns",
				  json_object_new_uint64(times.states[THREAD_UNDECIDED]));
	err = err ?: json_add(object, "waits", json_object_new_uint64(t->waits));
	err = err ?: json_add(object, "waits_spared", json_object_new_uint64(t->waits_spared));
	err = err ?: json_add(object, "waits_no_room", json_object_new_uint64(t->waits_no_room));
	err = err ?: json_add(object, "waits_lost", json_object_new_uint64(t->waits_lost));
	err = err ?: json_add(object, "waits_user_ns", json_object_new_uint64(t->waits_user_ns));
	err = err
		      ?: json_add(object, "waits_complete_ns",
				  json_object_new_uint64(t->waits_complete_ns));
	err = err ?: json_add(object, "waits_cost_ns", json_object_new_uint64(t->waits_cost_ns));
	return err ?: json_add(object, "wakers_lost", json_object_new_uint64(t->wakers_lost));
}

void totals_json(struct json_writer *w, const struct profile *p)
{
	const struct profile_wall wall = profile_wall_sum(p);
	const struct profile_totals *t = &p->totals;

	if (p->all_samples)
		json_member(w, "selected", selected_object(p));
	if (p->wall_count) {
		struct json_object *object = wall_json(&wall, t->wall_lost);
		int err = add_throttled(object, t) ?: add_waits(object, p, wall.blocked_ns);

		json_member(w, "wall", json_checked(object, err));
	}
	if (profile_delay(p) < p->value_type_count)
		json_member(w, "delay_ns",
			    json_object_new_int64(profile_total(p, PROFILE_DELAY_TYPE)));
	if (!t->known)
		return;
	json_member(w, "ticks", json_object_new_uint64(t->ticks));
	json_member(w, "counted", json_object_new_uint64(t->counted));
	json_member(w, "out_of_range", json_object_new_uint64(t->out_of_range));
	json_member(w, "excluded", json_object_new_uint64(t->excluded));
	json_member(w, "lost", lost_object(t));
	json_member(w, "kernel", json_object_new_uint64(t->kernel));
	json_member_number(w, "times_lost", t->times_lost);
	json_member_number(w, "codes_lost", t->codes_lost);
	json_member_number(w, "in_doubt", t->in_doubt);
	json_member_number(w, "due", profile_due(p));
	if (t->bpf_ns_per_tick)
		json_member(w, "cost", cost_object(p));
	if (t->stack_limit)
		json_member(w, "stacks", stacks_object(p));
}

void recording_json(struct json_writer *w, const struct profile *p, const char *title)
{
	const struct profile_amount amount = profile_amount(p);

	json_member(w, "value", json_text(title));
	json_member_text(w, "event", p->event);
	json_member_number(w, "period_ns", p->period_ns);
	if (p->duration_ns)
		json_member(w, "duration_s", json_decimal((double)p->duration_ns / 1e9, 3));
	/* What the rows are of: of what filters left. */
	if (p->period_ns && amount.samples) {
		double cpu_s = (double)amount.cpu_ns / 1e9;

		json_member(w, "cpu_s", json_decimal(cpu_s, 3));
		if (p->duration_ns)
			json_member(w, "cpu_percent",
				    json_decimal(cpu_s * 1e11 / (double)p->duration_ns, 2));
	}
	totals_json(w, p);
}
