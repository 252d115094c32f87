// SPDX-License-Identifier: GPL-2.0-only
#include "report/timeline/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "profile/tags.h"
#include "profile/thread_state.h"
#include "report/columns.h"
#include "report/json_writer.h"
#include "report/text.h"
#include "report/time_slot.h"
#include "report/totals.h"
#include "util/clock.h"

struct slot {
	uint64_t start_ns;
	uint64_t samples;
	uint64_t recorded_ns;		  /* how much of it */
	uint64_t waits_ns[THREAD_STATES]; /* by state */
};

struct timeline {
	const struct profile *p;
	const struct timeline_options *o;
	struct slot *slots;
	size_t count;	  /* those that are printed */
	size_t all_count; /* those that have something */
};

static void count_ticks(struct timeline *t, uint64_t time_ns, uint64_t ticks)
{
	uint64_t first_ns = t->slots[0].start_ns;

	if (time_ns >= first_ns && (time_ns - first_ns) / t->o->step_ns < t->count)
		add_u64(&t->slots[(time_ns - first_ns) / t->o->step_ns].samples, ticks);
}

/* Counts the ticks without a time in the slot of their window. Returns 0 or -ENOMEM. */
static int count_untimed(struct timeline *t)
{
	const struct profile *p = t->p;
	uint64_t *timed = calloc(p->sample_count + 1, sizeof(*timed));

	if (!timed)
		return -ENOMEM;
	for (size_t i = 0; i < p->ticks.count; i++)
		timed[p->ticks.numbers[i]]++;
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_labels *l = &p->labels[p->samples[i].labels];
		const struct profile_tag *tag = profile_find_tag(l, tag_kinds[TAG_TIME].key);
		uint64_t ticks = magnitude(p->values[i * p->value_type_count + PROFILE_SAMPLES]);

		if (tag && !tag->text && tag->number > 0 && ticks > timed[i])
			count_ticks(t, tag->number * NS_PER_S, ticks - timed[i]);
	}
	free(timed);
	return 0;
}

/*
 * Adds each wait to the slots that it lasts in: a part to the first and the last one; how many last
 * all the time in those between is summed up at the end, as a file may have long waits by the
 * million. Returns 0 or -ENOMEM.
 */
static int add_waits(struct timeline *t)
{
	const struct profile *p = t->p;
	uint64_t step_ns = t->o->step_ns, begin_ns = t->slots[0].start_ns;
	uint64_t end_ns = begin_ns + t->count * step_ns;
	struct {
		int64_t states[THREAD_STATES];
	} *changes = calloc(t->count + 1, sizeof(*changes)), whole = { 0 };

	if (!changes)
		return -ENOMEM;
	for (size_t i = 0; i < p->waits.count; i++) {
		const struct timed_wait *wait = &p->waits.waits[i];
		uint64_t since_ns = wait->since_ns, until_ns = since_ns + wait->length_ns;
		uint64_t first, last;
		const char *reason;
		size_t size;
		enum thread_state state =
			profile_sample_state(p, &p->samples[wait->sample], &reason, &size);

		since_ns = MAX(since_ns, begin_ns);
		until_ns = MIN(until_ns, end_ns);
		if (since_ns >= until_ns)
			continue;
		first = (since_ns - begin_ns) / step_ns;
		last = (until_ns - 1 - begin_ns) / step_ns;
		for (uint64_t k = first; k <= last; k += last > first ? last - first : 1) {
			struct slot *slot = &t->slots[k];
			uint64_t from = MAX(since_ns, slot->start_ns);
			uint64_t to = slot->start_ns + step_ns;

			to = MIN(to, until_ns);
			add_u64(&slot->waits_ns[state], to - from);
		}
		if (last > first) {
			changes[first + 1].states[state]++;
			changes[last].states[state]--;
		}
	}
	for (size_t k = 0; k < t->count; k++)
		for (int state = 0; state < THREAD_STATES; state++) {
			uint64_t ns;

			whole.states[state] += changes[k].states[state];
			if (__builtin_mul_overflow(whole.states[state], step_ns, &ns))
				ns = UINT64_MAX;
			add_u64(&t->slots[k].waits_ns[state], ns);
		}
	free(changes);
	return 0;
}

static bool has_waits(const struct slot *slot)
{
	for (int state = 0; state < THREAD_STATES; state++)
		if (slot->waits_ns[state])
			return true;
	return false;
}

static int make_slots(struct timeline *t)
{
	const struct timeline_options *o = t->o;
	const struct time_interval all = { o->spans[0].since_ns,
					   o->spans[o->span_count - 1].until_ns };
	uint64_t first = all.since_ns / o->step_ns;
	size_t kept = 0;
	int err;

	t->count = time_slot_count(&all, o->step_ns);
	if (t->count > TIMELINE_SLOTS_MAX)
		return -E2BIG;
	t->slots = calloc(t->count + 1, sizeof(*t->slots));
	if (!t->slots)
		return -ENOMEM;
	for (size_t i = 0; i <= t->count; i++)
		t->slots[i].start_ns = (first + i) * o->step_ns;
	for (size_t i = 0; i < o->span_count; i++) {
		uint64_t since_ns = o->spans[i].since_ns, until_ns = o->spans[i].until_ns;

		while (since_ns < until_ns) {
			struct slot *slot = &t->slots[since_ns / o->step_ns - first];
			uint64_t limit_ns = slot->start_ns + o->step_ns;
			uint64_t part_ns = MIN(until_ns, limit_ns) - since_ns;

			slot->recorded_ns += part_ns;
			since_ns += part_ns;
		}
	}
	for (size_t i = 0; i < t->p->ticks.count; i++)
		count_ticks(t, t->p->ticks.times[i], 1);
	err = count_untimed(t) ?: add_waits(t);
	for (size_t i = 0; i < t->count; i++)
		if (t->slots[i].samples || t->slots[i].recorded_ns || has_waits(&t->slots[i]))
			t->slots[kept++] = t->slots[i];
	t->all_count = kept;
	t->count = o->limit && o->limit < kept ? o->limit : kept;
	return err;
}

static double cpu_s(const struct timeline *t, const struct slot *slot)
{
	return (double)profile_ticks_ns(t->p, slot->samples) / 1e9;
}

static void slot_columns(struct columns *c, const void *view, size_t number)
{
	const struct timeline *t = view;
	const struct slot *slot = &t->slots[number];

	COLUMN(c, "time", "time", COLUMN_NAMES | COLUMN_TEXT,
	       time_slot_text(slot->start_ns, t->o->step_ns, c->json, c->buffer));
	COLUMN(c, "samples", "samples", 0, slot->samples);
	if (profile_tick_ns(t->p)) {
		COLUMN(c, "cpu s", "cpu_s", 3, cpu_s(t, slot));
		COLUMN(c, "CPUs", "cpus", 2,
		       cpu_s(t, slot) * 1e9 / (double)(slot->recorded_ns ?: t->o->step_ns));
	}
	if (t->p->waits.count) {
		COLUMN(c, "runnable s", "runnable_ns", COLUMN_NS, slot->waits_ns[THREAD_RUNNABLE]);
		COLUMN(c, "blocked s", "blocked_ns", COLUMN_NS, slot->waits_ns[THREAD_BLOCKED]);
		COLUMN(c, "idle s", "idle_ns", COLUMN_NS, slot->waits_ns[THREAD_IDLE]);
	}
}

int timeline_print(const struct profile *p, const struct timeline_options *o, FILE *out)
{
	struct timeline t = { .p = p, .o = o };
	char percent[TEXT_PERCENT_SIZE];
	uint64_t all = 0, rest = 0;
	int err = make_slots(&t);

	err = err ?: table_print(slot_columns, &t, t.count, o->width, o->color, out);
	if (!err && t.count < t.all_count) {
		for (size_t i = 0; i < t.all_count; i++) {
			all += t.slots[i].samples;
			rest += i < t.count ? 0 : t.slots[i].samples;
		}
		text_percent(percent, rest, all);
		fprintf(out, "... %zu more slot%s, %s %%\n", t.all_count - t.count,
			t.all_count - t.count == 1 ? "" : "s", percent);
	}
	free(t.slots);
	return err;
}

int timeline_json(const struct profile *p, const struct timeline_options *o, FILE *out)
{
	struct timeline t = { .p = p, .o = o };
	struct json_writer w;
	int err = make_slots(&t);

	if (err) {
		free(t.slots);
		return err;
	}
	json_begin(&w, out);
	recording_json(&w, p, "samples");
	json_member(&w, "by", json_text("time"));
	json_member(&w, "step_s", json_decimal((double)o->step_ns / 1e9, 3));
	columns_list(&w, "rows", slot_columns, &t, t.count);
	free(t.slots);
	return json_end(&w);
}
