// SPDX-License-Identifier: GPL-2.0-only
#include "report/totals_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/cost.h"
#include "report/rows.h"
#include "report/stack_ends.h"

/* {cause: n}: causes that are told twice are one key. */
static struct json_object *lost_object(const struct profile_totals *t)
{
	struct json_object *object = json_object_new_object(), *known;

	for (size_t i = 0; object && i < t->lost_count; i++) {
		struct json_object *key = json_text(t->lost[i].cause);
		const char *cause = key ? json_object_get_string(key) : "";
		uint64_t count = t->lost[i].count;

		if (json_object_object_get_ex(object, cause, &known))
			count += json_object_get_uint64(known);
		if (!key || json_add(object, cause, json_object_new_uint64(count))) {
			json_object_put(object);
			object = NULL;
		}
		json_object_put(key);
	}
	return object;
}

static struct json_object *cost_object(const struct profile *p)
{
	struct json_object *object = json_object_new_object();
	uint64_t bpf_ns = p->totals.bpf_ns_per_tick;
	double percent;

	if (!object)
		return NULL;
	if (json_add(object, "bpf_ns_per_tick", json_object_new_uint64(bpf_ns)) ||
	    (cost_cpu_percent(p, &percent) &&
	     json_add(object, "cpu_percent", json_decimal(percent, 2))) ||
	    (cost_machine_percent(p, &percent) &&
	     json_add(object, "machine_percent", json_decimal(percent, 2)))) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

/* Where the kernel has followed frame pointers, nobody knows how stacks have ended. */
static struct json_object *stacks_object(const struct profile *p)
{
	const struct profile_totals *t = &p->totals;
	struct json_object *object = json_object_new_object();
	bool ends = strcmp(p->stacks, "cfi") == 0;

	if (!object)
		return NULL;
	if ((*p->stacks && json_add(object, "method", json_text(p->stacks))) ||
	    json_add(object, "limit", json_object_new_uint64(t->stack_limit)) ||
	    json_add(object, "truncated", json_object_new_uint64(t->stacks_truncated)) ||
	    json_add(object, "user", json_object_new_uint64(t->stacks_user)) ||
	    (ends && json_add(object, "complete", json_object_new_uint64(t->stacks_complete))) ||
	    (ends && json_add(object, "ends", stack_ends_json(t)))) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

void totals_json(struct json_writer *w, const struct profile *p)
{
	const struct profile_totals *t = &p->totals;

	if (!t->known)
		return;
	json_member(w, "ticks", json_object_new_uint64(t->ticks));
	json_member(w, "counted", json_object_new_uint64(t->counted));
	json_member(w, "out_of_range", json_object_new_uint64(t->out_of_range));
	json_member(w, "excluded", json_object_new_uint64(t->excluded));
	json_member(w, "lost", lost_object(t));
	json_member(w, "kernel", json_object_new_uint64(t->kernel));
	if (profile_due(p))
		json_member(w, "due", json_object_new_uint64(profile_due(p)));
	if (t->bpf_ns_per_tick)
		json_member(w, "cost", cost_object(p));
	if (t->stack_limit)
		json_member(w, "stacks", stacks_object(p));
}

void recording_json(struct json_writer *w, const struct profile *p)
{
	char *value = rows_title(p, profile_count_value(p));

	json_member(w, "value", value ? json_text(value) : NULL);
	free(value);
	if (p->event[0])
		json_member(w, "event", json_text(p->event));
	if (p->period_ns)
		json_member(w, "period_ns", json_object_new_uint64(p->period_ns));
	if (p->duration_ns)
		json_member(w, "duration_s", json_decimal((double)p->duration_ns / 1e9, 3));
	totals_json(w, p);
}
