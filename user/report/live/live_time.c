// SPDX-License-Identifier: GPL-2.0-only
#include "report/live/live_time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/filter.h"
#include "report/text.h"
#include "report/time_slot.h"
#include "util/clock.h"

int live_time_make(struct live_time *t, const struct live *l, struct error *e)
{
	const struct profile *p = l->p;
	uint64_t begin_ns;

	*t = (struct live_time){ .all = profile_recorded(p) };
	if (!p->ticks.count || t->all.since_ns >= t->all.until_ns) {
		error_set(e, 0, "it is not known when the ticks of this profile came");
		return -ENODATA;
	}
	for (size_t i = 0; i < l->zoom_count; i++)
		if (l->zooms[i].kind == LIVE_TIME)
			t->all = l->zooms[i].interval;
	t->step_ns = time_slot_step(&t->all);
	t->count = time_slot_count(&t->all, t->step_ns);
	t->ticks = calloc(t->count + 1, sizeof(*t->ticks));
	if (!t->ticks)
		return error_no_memory(e);
	begin_ns = t->all.since_ns / t->step_ns * t->step_ns;
	for (size_t i = 0; i < p->ticks.count; i++) {
		uint64_t time_ns = p->ticks.times[i];

		if (time_ns >= t->all.since_ns && time_ns < t->all.until_ns &&
		    (!l->weights || l->weights[p->ticks.numbers[i]]))
			t->ticks[(time_ns - begin_ns) / t->step_ns]++;
	}
	return 0;
}

void live_time_free(struct live_time *t)
{
	free(t->ticks);
	*t = (struct live_time){ 0 };
}

static struct time_interval slot_of(const struct live_time *t, size_t number)
{
	struct time_interval slot = {
		.since_ns = (t->all.since_ns / t->step_ns + number) * t->step_ns,
	};

	slot.until_ns = slot.since_ns + t->step_ns;
	if (slot.since_ns < t->all.since_ns)
		slot.since_ns = t->all.since_ns;
	if (slot.until_ns > t->all.until_ns)
		slot.until_ns = t->all.until_ns;
	return slot;
}

struct time_interval live_time_slot(const struct live_time *t)
{
	return slot_of(t, t->cursor);
}

static double cpus_of(const struct live_time *t, const struct live *l, size_t number)
{
	struct time_interval slot = slot_of(t, number);

	return (double)profile_ticks_ns(l->p, t->ticks[number]) /
	       (double)(slot.until_ns - slot.since_ns);
}

int live_time_print(const struct live_time *t, const struct live *l, size_t first, size_t count,
		    unsigned int width, FILE *out)
{
	char *title = NULL, *visible, length[TABLE_CELL_SIZE];
	size_t size, used;
	FILE *line = open_memstream(&title, &size);
	double most = 0;

	if (!line)
		return -ENOMEM;
	if (t->step_ns < NS_PER_S)
		snprintf(length, sizeof(length), "%" PRIu64 " ms", t->step_ns / NS_PER_MS);
	else
		snprintf(length, sizeof(length), "%" PRIu64 " s", t->step_ns / NS_PER_S);
	fprintf(line, "CPUs busy over time, in slots of %s", length);
	for (size_t i = 0; i < l->zoom_count; i++)
		fprintf(line, ", only %s", l->zooms[i].text);
	visible = fclose(line) ? NULL : text_visible(title);
	free(title);
	if (!visible)
		return -ENOMEM;
	text_shorten_line(visible, width > 4 ? width : 4);
	fprintf(out, "%s\n", visible);
	free(visible);
	for (size_t i = 0; i < t->count; i++)
		most = cpus_of(t, l, i) > most ? cpus_of(t, l, i) : most;
	fprintf(out, "%7s  %7s  time\n", "samples", "CPUs");
	for (size_t i = first; i < t->count && i - first < count; i++) {
		char buffer[TABLE_CELL_SIZE];
		const char *time =
			time_slot_text(slot_of(t, i).since_ns, t->step_ns, false, buffer);
		double cpus = cpus_of(t, l, i), bar;

		/* In a narrow terminal without the date. */
		if (width < 50 && strlen(time) > 11)
			time += 11;
		fprintf(out, "%7" PRIu64 "  %7.2f  %s  ", t->ticks[i], cpus, time);
		used = 7 + 2 + 7 + 2 + strlen(time) + 2;
		bar = width > used + 2 && most > 0 ? cpus / most * (double)(width - used - 1) : 0;
		for (size_t j = 0; j < (size_t)bar; j++)
			fputs("\u2588", out);
		if (bar - (double)(size_t)bar >= 0.5)
			fputs("\u258c", out);
		putc('\n', out);
	}
	return 0;
}
