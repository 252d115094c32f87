// SPDX-License-Identifier: GPL-2.0-only
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "profile/thread_state.h"
#include "report/cost.h"
#include "report/rows.h"
#include "report/stack_ends.h"
#include "report/text.h"
#include "symbol/runtime.h"
#include "util/sum.h"

/* An interpreter gets a line if it has at least 1 in this many samples. */
#define INTERPRETER_SHARE 10

/* Images that get a line: on a whole machine many more have code without names. */
#define UNNAMED_MAX 10

/* A line of several parts, of which unknown ones are omitted. */
struct line {
	FILE *out;
	const char *gap; /* printed before the next part */
};

static void begin_part(struct line *line)
{
	fputs(line->gap, line->out);
	line->gap = ", ";
}

static double in_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* Prints how long was recorded, and at which rate. */
static void print_run(const struct profile *p, const char *prefix, const char *target, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	uint64_t duration_ns = p->all_duration_ns ?: p->duration_ns;
	struct line line = { out, "" };
	double hz, whole;
	bool is_whole;

	if (!duration_ns && !t->cpu_ns && !p->event[0] && !p->period_ns)
		return;
	fputs(prefix, out);
	if (target) {
		text_print(target, out);
		line.gap = ": ";
	}
	if (duration_ns) {
		begin_part(&line);
		fprintf(out, "%.2f s", in_seconds(duration_ns));
	}
	if (t->cpu_ns) {
		begin_part(&line);
		fprintf(out, "%.2f s of CPU", in_seconds(t->cpu_ns));
	}
	if (duration_ns || t->cpu_ns)
		line.gap = "; ";
	if (p->event[0]) {
		begin_part(&line);
		text_print(p->event, out);
	}
	if (p->period_ns) {
		/*
		 * The period only approximates the frequency that was asked for
		 * (user/capture/period.h), but many profiles hold no more.
		 */
		hz = p->frequency ? (double)p->frequency : 1e9 / (double)p->period_ns;
		whole = (double)(uint64_t)(hz + 0.5);
		is_whole = hz - whole < 0.05 && whole - hz < 0.05;
		begin_part(&line);
		fprintf(out, "%.*f Hz asked", is_whole ? 0 : 1, hz);
	}
	if (t->known && t->cpu_ns) {
		begin_part(&line);
		fprintf(out, "%.1f Hz reached", (double)t->ticks / in_seconds(t->cpu_ns));
	}
	fputc('\n', out);
}

static void print_account(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	uint64_t lost = profile_lost(p);
	bool exact = t->ticks == t->counted + t->out_of_range + t->excluded + lost;
	struct line line = { out, " (" };
	bool any = false;

	if (!t->known)
		return;
	fprintf(out,
		"%sticks %" PRIu64 " %s counted %" PRIu64 " + out_of_range %" PRIu64
		" + excluded %" PRIu64 " + lost %" PRIu64,
		prefix, t->ticks, exact ? "=" : "!=", t->counted, t->out_of_range, t->excluded,
		lost);
	for (size_t i = 0; i < t->lost_count; i++) {
		if (!t->lost[i].count)
			continue;
		begin_part(&line);
		text_print(t->lost[i].cause, out);
		fprintf(out, " %" PRIu64, t->lost[i].count);
		any = true;
	}
	fprintf(out, "%s; %" PRIu64 " of the counted in the kernel\n", any ? ")" : "", t->kernel);
	if (t->times_lost)
		fprintf(out, "%stimes: %" PRIu64 " of the counted have none: there was no room\n",
			prefix, t->times_lost);
	if (t->in_doubt)
		fprintf(out,
			"%sin doubt: %" PRIu64
			" of the counted: their function, thread or program may "
			"have changed by then, but records or times were lost\n",
			prefix, t->in_doubt);
}

/*
 * wall: 12 threads, 36.012 s = ran 10.000 s + waited for a CPU 1.000 s + blocked 25.012 s
 * A part is of the sum that the samples before it are of: it has no prefix "in all".
 */
static int compare_reasons(const void *a, const void *b, void *state)
{
	uint64_t x = ((const struct thread_reason *)a)->states[*(const int *)state];
	uint64_t y = ((const struct thread_reason *)b)->states[*(const int *)state];

	return (x < y) - (x > y);
}

/*
 * Prints for what threads waited:
 * waits: blocked 1.2 s (child 1.1, disk 0.1); idle 20.0 s (poll 20.0); undecided 0.6 s (lock 0.6)
 * and what it cost to follow them.
 */
static void print_waits(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	struct thread_times times;
	const char *before = "waits: ";
	char percent[TEXT_PERCENT_SIZE];

	if (!profile_thread_times(p, &times))
		return;
	fputs(prefix, out);
	for (int state = THREAD_BLOCKED; state < THREAD_STATES; state++) {
		const char *gap = " (";

		fprintf(out, "%s%s %.3f s", before, thread_state_names[state],
			in_seconds(times.states[state]));
		before = "; ";
		qsort_r(times.reasons, times.reason_count, sizeof(*times.reasons), compare_reasons,
			&state);
		for (size_t i = 0; i < times.reason_count && times.reasons[i].states[state]; i++) {
			const struct thread_reason *r = &times.reasons[i];

			fprintf(out, "%s%.*s %.3f", gap, (int)r->size, r->name,
				in_seconds(r->states[state]));
			gap = ", ";
		}
		if (*gap == ',')
			fputc(')', out);
	}
	fputc('\n', out);
	if (t->waits && t->waits_cost_ns && t->machine_ns) {
		text_percent(percent, t->waits_cost_ns, t->machine_ns);
		fprintf(out, "%scost of waits: %" PRIu64 " followed, %s %% of the machine's CPUs\n",
			prefix, t->waits, percent);
	}
	if (t->waits_user_ns) {
		text_percent(percent, t->waits_complete_ns, t->waits_user_ns);
		fprintf(out, "%s%s %% of their time has a stack that reaches the program's start\n",
			prefix, percent);
	}
	if (t->waits_spared) {
		text_percent(percent, t->waits_spared, t->waits);
		fprintf(out,
			"%s%s %% of the waits have a reason, but no stack, which would have cost "
			"more than --max-overhead\n",
			prefix, percent);
	}
	if (t->waits_no_room) {
		text_percent(percent, t->waits_no_room, t->waits);
		fprintf(out,
			"%s%s %% of the waits have a reason, but neither stack nor thread: there "
			"was no room for so many different ones\n",
			prefix, percent);
	}
	if (t->waits_lost)
		fprintf(out, "%s%" PRIu64 " waits are in no reason, for want of memory\n", prefix,
			t->waits_lost);
	if (t->wakers_lost)
		fprintf(out, "%s%" PRIu64 " waits have no waker, for want of room\n", prefix,
			t->wakers_lost);
}

static void print_wall(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_wall sum = profile_wall_sum(p);
	uint64_t lost = p->totals.wall_lost;

	if (!p->wall_count)
		return;
	fprintf(out,
		"%swall: %" PRIu64 " thread%s, %.3f s = ran %.3f s + waited for a CPU %.3f s + "
		"blocked %.3f s",
		prefix, sum.threads, sum.threads == 1 ? "" : "s", in_seconds(sum.wall_ns),
		in_seconds(sum.ran_ns), in_seconds(sum.runnable_ns), in_seconds(sum.blocked_ns));
	if (sum.unknown_ns >= REPORT_UNKNOWN_NS)
		fprintf(out, " + unknown %.3f s", in_seconds(sum.unknown_ns));
	fputc('\n', out);
	if (lost)
		fprintf(out,
			"%s%" PRIu64 " thread%s ended unseen, as there was no room for so many at "
			"once: what is known of their time is \"unknown\", the rest is missing\n",
			prefix, lost, lost == 1 ? "" : "s");
}

static int compare_throttled(const void *one, const void *other)
{
	const struct profile_throttled *const *a = one, *const *b = other;

	return compare_u64((*b)->throttled_ns, (*a)->throttled_ns)
		       ?: strcmp((*a)->cgroup, (*b)->cgroup);
}

/* The control groups that are named, at most. */
#define THROTTLED_SHOWN 5

/*
 * throttled by quota: 3.200 s in 36 of 40 periods, /system.slice/foo.service (cpu.max 50000 100000)
 * Returns 0 or -ENOMEM.
 */
static int print_throttled(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	const struct profile_throttled **groups = calloc(t->throttled_count + 1, sizeof(*groups));
	uint64_t rest_ns = 0;

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < t->throttled_count; i++)
		groups[i] = &t->throttled[i];
	qsort(groups, t->throttled_count, sizeof(*groups), compare_throttled);
	for (size_t i = 0; i < t->throttled_count; i++) {
		const struct profile_throttled *g = groups[i];

		if (i >= THROTTLED_SHOWN) {
			add_u64(&rest_ns, g->throttled_ns);
			continue;
		}
		fprintf(out, "%sthrottled by quota: %.3f s in %" PRIu64 " of %" PRIu64 " periods, ",
			prefix, in_seconds(g->throttled_ns), g->throttled_periods, g->periods);
		text_print(g->cgroup, out);
		if (g->quota_ns)
			fprintf(out, " (cpu.max %" PRIu64 " %" PRIu64 ")\n", g->quota_ns / 1000,
				g->period_ns / 1000);
		else
			fputs(" (it has no quota any more)\n", out);
	}
	if (t->throttled_count > THROTTLED_SHOWN)
		fprintf(out, "%sthrottled by quota: %.3f s in %zu other control groups\n", prefix,
			in_seconds(rest_ns), t->throttled_count - THROTTLED_SHOWN);
	if (t->throttled_lost)
		fprintf(out,
			"%sthrottled by quota: more control groups with quotas than are followed "
			"at once; some are missing\n",
			prefix);
	free(groups);
	return 0;
}

static void print_ns(uint64_t ns, FILE *out)
{
	if (ns < 1000)
		fprintf(out, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		fprintf(out, "%.1f us", (double)ns / 1e3);
	else
		fprintf(out, "%.1f ms", (double)ns / 1e6);
}

static void print_cost(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	double percent;

	if (!t->known || !t->bpf_ns_per_tick)
		return;
	fprintf(out, "%scost: ", prefix);
	print_ns(t->bpf_ns_per_tick, out);
	fputs(" BPF", out);
	if (t->interrupt_ns) {
		fputs(" + ", out);
		print_ns(t->interrupt_ns, out);
		fputs(" interrupt", out);
	}
	fputs(" per tick", out);
	if (!cost_has_interrupt(p))
		fputs(", of an interrupt that comes anyway", out);
	else if (!t->interrupt_ns)
		fputs(", and that of the interrupt, which could not be measured", out);
	if (cost_cpu_percent(p, &percent))
		fprintf(out, ", %.2f %% of the target's CPU", percent);
	if (cost_machine_percent(p, &percent)) {
		if (t->own_ns)
			fprintf(out, "; with %.2f s of its own CPU", t->own_ns / 1e9);
		fprintf(out, ", %.2f %% of the machine's", percent);
	}
	fputc('\n', out);
}

/*
 * Prints which value is shown, unless it is "samples", as readers expect, or has no name; and the
 * sum of each event, if there are several. Returns 0 or -ENOMEM.
 */
static int print_values(const struct profile *p, const char *value, const char *prefix, FILE *out)
{
	size_t *values = calloc(p->value_type_count + 1, sizeof(*values)), count;
	struct line others = { out, "; --value takes " }, events = { out, "events: " };
	const struct profile_value_type *types = p->value_types;
	size_t shown = profile_value(p, value);
	char *title;

	if (!values)
		return -ENOMEM;
	if (p->value_type_count && *types[shown].type &&
	    strcmp(types[shown].type, "samples") != 0) {
		title = rows_title(p, shown);
		if (!title) {
			free(values);
			return -ENOMEM;
		}
		fprintf(out, "%svalue: ", prefix);
		text_print(title, out);
		free(title);
		for (size_t i = 0; i < p->value_type_count; i++) {
			if (i == shown)
				continue;
			begin_part(&others);
			text_print(types[i].type, out);
		}
		fputs(p->value_type_count > 1 ? ", too\n" : "\n", out);
	}
	count = rows_values(p, value, values);
	if (count > 1)
		fputs(prefix, out);
	for (size_t i = 0; i < count && count > 1; i++) {
		const struct profile_value_type *type = &types[values[i]];
		int64_t sum = 0;

		for (size_t s = 0; s < p->sample_count; s++)
			add_i64(&sum, p->values[s * p->value_type_count + values[i]]);
		begin_part(&events);
		text_print(type->type, out);
		fprintf(out, " %" PRId64, sum);
		if (type->period)
			fprintf(out, " (1 of %" PRIu64 ")", type->period);
	}
	if (count > 1)
		fputc('\n', out);
	free(values);
	return 0;
}

int report_summary(const struct profile *p, const char *value, const char *prefix,
		   const char *target, FILE *out)
{
	struct profile_amount selected = profile_amount(p);
	const struct profile_totals *t = &p->totals;
	char all[256], percent[TEXT_PERCENT_SIZE];

	if (p->all_samples) {
		/* 12 samples, 0.12 s of CPU: 10.00 % of 120 samples, 1.20 s of CPU */
		text_percent(percent, selected.samples, p->all_samples);
		fprintf(out, "%sselected: %" PRIu64 " sample%s", prefix, selected.samples,
			selected.samples == 1 ? "" : "s");
		if (p->all_cpu_ns)
			fprintf(out, ", %.2f s of CPU", in_seconds(selected.cpu_ns));
		if (p->all_duration_ns)
			fprintf(out, " in %.3f s", in_seconds(p->duration_ns));
		fprintf(out, ": %s %% of %" PRIu64 " samples", percent, p->all_samples);
		if (p->all_cpu_ns)
			fprintf(out, ", %.2f s of CPU", in_seconds(p->all_cpu_ns));
		fputc('\n', out);
	}
	/* The other lines are about all that was recorded. */
	snprintf(all, sizeof(all), "%s%s", prefix, p->all_samples ? "in all: " : "");
	print_run(p, all, target, out);
	print_account(p, all, out);
	print_wall(p, prefix, out);
	if (print_throttled(p, all, out))
		return -ENOMEM;
	print_waits(p, prefix, out);
	print_cost(p, all, out);
	if (t->stacks_truncated) {
		text_percent(percent, t->stacks_truncated, t->counted);
		fprintf(out,
			"%s%" PRIu64 " stack%s (%s %%) %s cut off at %" PRIu64
			" frames: their outer callers are unknown\n",
			all, t->stacks_truncated, t->stacks_truncated == 1 ? "" : "s", percent,
			t->stacks_truncated == 1 ? "was" : "were", t->stack_limit);
	}
	stack_ends_print(p, all, out);
	if (profile_delay(p) < p->value_type_count && profile_total(p, PROFILE_DELAY_TYPE) > 0)
		fprintf(out, "%sdelay: threads waited %.3f s for a CPU while this ran\n", prefix,
			in_seconds(profile_total(p, PROFILE_DELAY_TYPE)));
	return print_values(p, value, prefix, out);
}

struct unnamed {
	const struct profile_image *image;
	uint64_t samples; /* without a name */
	uint64_t all;
};

static int compare_unnamed(const void *one, const void *other)
{
	const struct unnamed *a = one, *b = other;

	/* If equal, in the profile's order. */
	return compare_u64(b->samples, a->samples) ?: (a->image > b->image) - (a->image < b->image);
}

/* Texts of a profile are interned: equal ones are the same pointer. */
static int compare_image_names(const void *one, const void *other)
{
	const struct profile_image *a = ((const struct unnamed *)one)->image;
	const struct profile_image *b = ((const struct unnamed *)other)->image;
	int order = compare_u64((uintptr_t)a->path, (uintptr_t)b->path);

	order = order ?: compare_u64((uintptr_t)a->unnamed, (uintptr_t)b->unnamed);
	return order ?: (a > b) - (a < b);
}

/* Arguments of all lines of report_unnamed(). */
struct unnamed_lines {
	const struct profile *p;
	size_t value;
	uint64_t sum; /* of all samples */
	const char *prefix;
	FILE *out;
};

/*
 * ": 3 samples (1.00 %) WHAT"; of other values ": 0.250 s of cpu", ": 512 bytes of inuse_space",
 * ": 7 of cycles".
 */
static void print_share(const struct unnamed_lines *l, uint64_t part, const char *what)
{
	const struct profile_value_type *t = &l->p->value_types[l->value];
	bool is_count = strcmp(t->unit, "count") == 0;
	bool is_samples = is_count && strcmp(t->type, "samples") == 0;
	char percent[TEXT_PERCENT_SIZE];

	text_percent(percent, part, l->sum);
	fputs(": ", l->out);
	if (is_samples)
		fprintf(l->out, "%" PRIu64 " sample%s", part, part == 1 ? "" : "s");
	else if (strcmp(t->unit, "nanoseconds") == 0)
		fprintf(l->out, "%.3f s", part / 1e9);
	else
		fprintf(l->out, "%" PRIu64, part);
	if (!is_count && strcmp(t->unit, "nanoseconds") != 0) {
		fputc(' ', l->out);
		text_print(t->unit, l->out);
	}
	if (!is_samples) {
		fputs(" of ", l->out);
		text_print(t->type, l->out);
	}
	fprintf(l->out, " (%s %%) %s", percent, what);
}

/* "[anon]: 3 samples (1.00 %) WHAT: WHY" */
static void print_part(const struct unnamed_lines *l, const struct profile_image *image,
		       uint64_t part, const char *what, const char *why)
{
	fputs(l->prefix, l->out);
	text_print(text_basename(image->path), l->out);
	print_share(l, part, what);
	fputs(": ", l->out);
	text_print(why, l->out);
	fputc('\n', l->out);
}

/* Prints the first UNNAMED_MAX images with their reasons, and the sum of the others. */
static void print_unnamed(const struct unnamed_lines *l, const struct unnamed *images, size_t count)
{
	uint64_t rest = 0;
	size_t named = 0, more = 0;

	for (size_t i = 0; i < count; i++) {
		if (!images[i].samples || !images[i].image->unnamed)
			continue;
		if (named < UNNAMED_MAX) {
			print_part(l, images[i].image, images[i].samples, "without a name",
				   images[i].image->unnamed);
			named++;
		} else {
			rest += images[i].samples;
			more++;
		}
	}
	if (!more)
		return;
	fprintf(l->out, "%s%zu more image%s", l->prefix, more, more == 1 ? "" : "s");
	print_share(l, rest, "without a name");
	fputc('\n', l->out);
}

int report_unnamed(const struct profile *p, const char *value, const char *prefix, FILE *out)
{
	struct unnamed_lines l = { p, profile_value(p, value), 0, prefix, out };
	struct unnamed *images, *same;

	if (!p->image_count)
		return 0;
	images = calloc(p->image_count, sizeof(*images));
	if (!images)
		return -ENOMEM;
	for (size_t i = 0; i < p->image_count; i++)
		images[i].image = &p->images[i];
	/* Count each sample for the image of its leaf. */
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		uint64_t count = magnitude(p->values[i * p->value_type_count + l.value]);
		struct unnamed *image;
		uint32_t leaf;

		add_u64(&l.sum, count);
		if (!s->depth)
			continue;
		leaf = p->frames[s->first_frame];
		if (p->locations[leaf].mapping == PROFILE_NONE)
			continue;
		image = &images[p->mappings[p->locations[leaf].mapping].image];
		add_u64(&image->all, count);
		if (!profile_is_named(p, leaf))
			add_u64(&image->samples, count);
	}
	/* Add up images with the same path and reason (builds of one file) in the first of them. */
	qsort(images, p->image_count, sizeof(*images), compare_image_names);
	same = images;
	for (struct unnamed *u = images + 1; u < images + p->image_count; u++) {
		if (u->image->path != same->image->path ||
		    u->image->unnamed != same->image->unnamed) {
			same = u;
			continue;
		}
		same->samples += u->samples;
		same->all += u->all;
		u->samples = u->all = 0;
	}
	qsort(images, p->image_count, sizeof(*images), compare_unnamed);
	print_unnamed(&l, images, p->image_count);
	for (size_t i = 0; i < p->image_count; i++) {
		const struct unnamed *u = &images[i];
		const char *why = NULL;
		char hint[RUNTIME_HINT_SIZE];

		if (u->all && u->all >= l.sum / INTERPRETER_SHARE)
			why = runtime_interpreter(p, u->image - p->images, hint);
		if (why)
			print_part(&l, u->image, u->all, "in C functions of the interpreter", why);
	}
	free(images);
	return 0;
}
