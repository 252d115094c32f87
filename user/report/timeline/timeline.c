// SPDX-License-Identifier: GPL-2.0-only
#include "report/timeline/timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "profile/tags.h"
#include "report/json_writer.h"
#include "report/table.h"
#include "report/text.h"
#include "report/totals_json.h"
#include "util/clock.h"

#define MOST_SLOTS 60

struct slot {
	uint64_t start_ns;
	uint64_t samples;
	uint64_t recorded_ns; /* how much of it */
};

struct timeline {
	const struct profile *p;
	const struct timeline_options *o;
	struct slot *slots;
	size_t count;
};

uint64_t timeline_step(const struct time_interval *interval)
{
	static const uint64_t steps_ms[] = {
		10,    20,    50,    100,    200,    500,     1000,    2000,	    5000,
		10000, 30000, 60000, 300000, 600000, 1800000, 3600000, 6 * 3600000, 24 * 3600000,
	};
	const size_t count = sizeof(steps_ms) / sizeof(*steps_ms);
	uint64_t length_ms = (interval->until_ns - interval->since_ns) / NS_PER_MS;
	size_t i = 0;

	while (i + 1 < count && length_ms > MOST_SLOTS * steps_ms[i])
		i++;
	return steps_ms[i] * NS_PER_MS;
}

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

static int make_slots(struct timeline *t)
{
	const struct timeline_options *o = t->o;
	const struct time_interval *last = &o->spans[o->span_count - 1];
	uint64_t first = o->spans[0].since_ns / o->step_ns, end = first;
	size_t kept = 0;
	int err;

	if (last->until_ns > o->spans[0].since_ns)
		end = (last->until_ns - 1) / o->step_ns + 1;
	if (end - first > TIMELINE_SLOTS_MAX)
		return -E2BIG;
	t->count = end - first;
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
			uint64_t part_ns = (until_ns < limit_ns ? until_ns : limit_ns) - since_ns;

			slot->recorded_ns += part_ns;
			since_ns += part_ns;
		}
	}
	for (size_t i = 0; i < t->p->ticks.count; i++)
		count_ticks(t, t->p->ticks.times[i], 1);
	err = count_untimed(t);
	for (size_t i = 0; i < t->count; i++)
		if (t->slots[i].samples || t->slots[i].recorded_ns)
			t->slots[kept++] = t->slots[i];
	t->count = o->limit && o->limit < kept ? o->limit : kept;
	return err;
}

static double cpu_s(const struct timeline *t, const struct slot *slot)
{
	return (double)slot->samples * (double)t->p->period_ns / 1e9;
}

static double busy_cpus(const struct timeline *t, const struct slot *slot)
{
	return cpu_s(t, slot) * 1e9 / (double)(slot->recorded_ns ?: t->o->step_ns);
}

/* Writes when a slot began, as precisely as slots need. utc: as in JSON. */
static const char *slot_time(const struct timeline *t, const struct slot *slot, bool utc,
			     char buffer[TABLE_CELL_SIZE])
{
	time_t time = slot->start_ns / NS_PER_S;
	bool seconds = t->o->step_ns % (60 * NS_PER_S), ms = t->o->step_ns % NS_PER_S;
	char zone[8];
	struct tm tm;
	size_t used;

	if (!(utc ? gmtime_r(&time, &tm) : localtime_r(&time, &tm)))
		return "";
	used = strftime(buffer, TABLE_CELL_SIZE,
			utc	  ? "%Y-%m-%dT%H:%M:%S"
			: seconds ? "%Y-%m-%d %H:%M:%S"
				  : "%Y-%m-%d %H:%M",
			&tm);
	if (ms)
		used += snprintf(buffer + used, TABLE_CELL_SIZE - used, ".%03u",
				 (unsigned int)(slot->start_ns % NS_PER_S / NS_PER_MS));
	if (utc || !strftime(zone, sizeof(zone), "%Z", &tm))
		snprintf(buffer + used, TABLE_CELL_SIZE - used, "%s", utc ? "Z" : "");
	else
		snprintf(buffer + used, TABLE_CELL_SIZE - used, " %s", zone);
	return buffer;
}

enum column {
	SAMPLES,
	CPU_TIME,
	CPUS,
	TIME,
};

static const char *slot_cell(const void *context, size_t number, size_t column,
			     char buffer[TABLE_CELL_SIZE])
{
	const struct timeline *t = context;
	const struct slot *slot = &t->slots[number];
	uint64_t ms = (uint64_t)(cpu_s(t, slot) * 1000 + 0.5);

	/* Without a period, the time follows the samples. */
	switch (column && !t->p->period_ns ? TIME : (enum column)column) {
	case SAMPLES:
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64, slot->samples);
		return buffer;
	case CPU_TIME:
		/* The locale may have another decimal point. */
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64 ".%03" PRIu64, ms / 1000, ms % 1000);
		return buffer;
	case CPUS:
		text_decimal(buffer, busy_cpus(t, slot));
		return buffer;
	case TIME:
		break;
	}
	return slot_time(t, slot, false, buffer);
}

int timeline_print(const struct profile *p, const struct timeline_options *o, FILE *out)
{
	static const struct table_column with_period[] = {
		[SAMPLES] = { .title = "samples" },
		[CPU_TIME] = { .title = "cpu s" },
		[CPUS] = { .title = "CPUs" },
		[TIME] = { .title = "time", .is_text = true },
	};
	static const struct table_column without[] = {
		{ .title = "samples" },
		{ .title = "time", .is_text = true },
	};
	struct timeline t = { .p = p, .o = o };
	int err = make_slots(&t);
	struct table table = {
		.columns = p->period_ns ? with_period : without,
		.column_count = p->period_ns ? 4 : 2,
		.row_count = t.count,
		.cell = slot_cell,
		.context = &t,
		.width = o->width,
		.color = o->color,
	};

	err = err ?: table_print(&table, out);
	free(t.slots);
	return err;
}

static struct json_object *slot_object(const struct timeline *t, const struct slot *slot)
{
	struct json_object *object = json_object_new_object();
	char buffer[TABLE_CELL_SIZE];
	int err = json_add_text(object, "time", slot_time(t, slot, true, buffer));

	err = err ?: json_add(object, "samples", json_object_new_uint64(slot->samples));
	if (!err && t->p->period_ns) {
		err = json_add(object, "cpu_s", json_decimal(cpu_s(t, slot), 3));
		err = err ?: json_add(object, "cpus", json_decimal(busy_cpus(t, slot), 2));
	}
	return json_checked(object, err);
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
	json_begin_list(&w, "rows");
	for (size_t i = 0; i < t.count && !w.err; i++)
		json_element(&w, slot_object(&t, &t.slots[i]));
	json_end_list(&w);
	free(t.slots);
	return json_end(&w);
}
