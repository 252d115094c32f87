// SPDX-License-Identifier: GPL-2.0-only
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "profile/thread_state.h"
#include "report/chance.h"
#include "report/totals.h"
#include "report/rows.h"
#include "report/states.h"
#include "report/text.h"
#include "symbol/package.h"
#include "symbol/runtime.h"
#include "symbol/symbol.h"
#include "util/order.h"
#include "util/sum.h"

/* An interpreter gets a line if it has at least 1 in this many samples. Bound: pace. */
#define INTERPRETER_SHARE 10

/*
 * Images that get a line: on a whole machine many more have code without names.
 * Bound: files: images with code without names that get a line; then: the others are summed.
 */
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

/* Begins a line by the target, for how long it was recorded, and with `cpu` its CPU time. */
static void print_lengths(const struct profile *p, const char *prefix, const char *target, bool cpu,
			  struct line *line)
{
	uint64_t duration_ns = p->all_duration_ns ?: p->duration_ns;

	text_printf(line->out, "%s%s", prefix, target ?: "");
	if (target)
		line->gap = ": ";
	if (duration_ns) {
		begin_part(line);
		fprintf(line->out, "%.2f s", in_seconds(duration_ns));
	}
	if (cpu && p->totals.cpu_ns) {
		begin_part(line);
		fprintf(line->out, "%.2f s of CPU", in_seconds(p->totals.cpu_ns));
	}
}

/*
 * True if the ticks are not those that this rate would have in the target's CPU time, by more than
 * chance: as if each nanosecond had one with the same probability.
 */
static bool rate_is_missed(const struct profile_totals *t, double hz)
{
	if (!t->known || t->cpu_ns <= t->ticks || hz <= 0 || hz >= 1e9)
		return false;
	return chance_of_counts(t->ticks, t->cpu_ns - t->ticks, hz / 1e9).p <= CHANCE_LEVEL;
}

/* Prints how long was recorded, and at which rate. */
static void print_run(const struct profile *p, const char *prefix, const char *target, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	uint64_t duration_ns = p->all_duration_ns ?: p->duration_ns;
	struct line line = { out, "" };
	double hz = profile_hz(p), whole = (double)(uint64_t)(hz + 0.5);
	bool is_whole = hz - whole < 0.05 && whole - hz < 0.05;

	if (!duration_ns && !t->cpu_ns && !p->event[0] && !profile_tick_ns(p))
		return;
	print_lengths(p, prefix, target, true, &line);
	if (duration_ns || t->cpu_ns)
		line.gap = "; ";
	if (p->event[0]) {
		begin_part(&line);
		text_print(p->event, out);
	}
	if (hz > 0) {
		begin_part(&line);
		fprintf(out, "%.*f Hz asked", is_whole ? 0 : 1, hz);
	}
	if (t->known && t->cpu_ns && profile_has_clock(p)) {
		begin_part(&line);
		if (hz > 0 && !rate_is_missed(t, hz))
			fputs("reached within chance", out);
		else
			fprintf(out, "%.1f Hz reached", (double)t->ticks / in_seconds(t->cpu_ns));
	}
	fputc('\n', out);
}

/* Prints "12 (ring_full 12)". */
static void print_lost(const struct profile *p, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	struct line line = { out, " (" };
	bool any = false;

	fprintf(out, "%" PRIu64, profile_lost(p));
	for (size_t i = 0; i < t->lost_count; i++) {
		if (!t->lost[i].count)
			continue;
		begin_part(&line);
		text_printf(out, "%s %" PRIu64, t->lost[i].cause, t->lost[i].count);
		any = true;
	}
	fputs(any ? ")" : "", out);
}

/* What is in the account: a clock's ticks, or events. */
static const char *tick_word(const struct profile *p)
{
	return profile_has_clock(p) ? "tick" : "event";
}

static void print_account(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	uint64_t lost = profile_lost(p);
	bool exact = t->ticks == t->counted + t->out_of_range + t->excluded + lost;

	if (!t->known)
		return;
	fprintf(out,
		"%s%ss %" PRIu64 " %s counted %" PRIu64 " + out_of_range %" PRIu64
		" + excluded %" PRIu64 " + lost ",
		prefix, tick_word(p), t->ticks, exact ? "=" : "!=", t->counted, t->out_of_range,
		t->excluded);
	print_lost(p, out);
	fprintf(out, "; %" PRIu64 " of the counted in the kernel\n", t->kernel);
	account_say(&t->account, false, prefix, out);
}

/*
 * Prints for what threads waited:
 * waits: blocked 1.2 s (child 1.1, disk 0.1); idle 20.0 s (poll 20.0)
 * and what it cost to follow them.
 */
static void print_waits(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	const struct profile_wall wall = profile_wall_sum(p);
	const uint64_t slept_ns = wall.blocked_ns + wall.idle_ns;
	struct thread_times times;
	uint64_t told_ns = 0;
	const char *before = "waits: ";
	char percent[TEXT_PERCENT_SIZE];

	if (!profile_thread_times(p, &times))
		return;
	fputs(prefix, out);
	for (int state = THREAD_BLOCKED; state < THREAD_STATES; state++) {
		const char *gap = " (";

		fprintf(out, "%s%s %.3f s", before, thread_state_names[state],
			in_seconds(times.states[state]));
		told_ns += times.states[state];
		before = "; ";
		thread_times_sort(&times, state);
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
	/* Of a selection it is not known. */
	if (!p->all_samples && slept_ns > told_ns && slept_ns - told_ns > slept_ns / 100) {
		text_percent(percent, slept_ns - told_ns, slept_ns);
		fprintf(out,
			"%s%s %% of the time asleep has no reason: it is in no wait that was "
			"followed, or interrupts or the host of a virtual machine took it\n",
			prefix, percent);
	}
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
			"%s%s %% of the waits have a reason, but no stack: there was no room for "
			"so many different ones\n",
			prefix, percent);
	}
}

/*
 * wall: 12 threads, 36.012 s = on CPU 10.000 s + runnable 1.000 s + blocked 5.012 s + idle 20.000 s
 * A part is of the sum that the samples before it are of: it has no prefix "in all".
 */
static void print_wall(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_wall sum = profile_wall_sum(p);

	if (!p->wall_count)
		return;
	fprintf(out,
		"%swall: %" PRIu64 " thread%s, %.3f s = on CPU %.3f s + runnable %.3f s + "
		"blocked %.3f s + idle %.3f s",
		prefix, sum.threads, sum.threads == 1 ? "" : "s", in_seconds(sum.wall_ns),
		in_seconds(sum.on_cpu_ns), in_seconds(sum.runnable_ns), in_seconds(sum.blocked_ns),
		in_seconds(sum.idle_ns));
	if (sum.unknown_ns >= REPORT_UNKNOWN_NS)
		fprintf(out, " + unknown %.3f s", in_seconds(sum.unknown_ns));
	fputc('\n', out);
}

ORDER(compare_throttled, struct profile_throttled *const,
      COMPARE((*b)->throttled_ns, (*a)->throttled_ns) ?: strcmp((*a)->cgroup, (*b)->cgroup))

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
		text_printf(out,
			    "%sthrottled by quota: %.3f s in %" PRIu64 " of %" PRIu64
			    " periods, %s",
			    prefix, in_seconds(g->throttled_ns), g->throttled_periods, g->periods,
			    g->cgroup);
		if (g->quota_ns)
			fprintf(out, " (cpu.max %" PRIu64 " %" PRIu64 ")\n", g->quota_ns / 1000,
				g->every_ns / 1000);
		else
			fputs(" (it has no quota any more)\n", out);
	}
	if (t->throttled_count > THROTTLED_SHOWN)
		fprintf(out, "%sthrottled by quota: %.3f s in %zu other control groups\n", prefix,
			in_seconds(rest_ns), t->throttled_count - THROTTLED_SHOWN);
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
	double percent, own;

	if (!t->known || !t->bpf_ns_per_tick)
		return;
	fprintf(out, "%scost: ", prefix);
	print_ns(t->bpf_ns_per_tick, out);
	fputs(" BPF", out);
	if (t->interrupt_ns && profile_has_clock(p)) {
		fputs(" + ", out);
		print_ns(t->interrupt_ns, out);
		fputs(" interrupt", out);
	}
	fprintf(out, " per %s", tick_word(p));
	if (profile_has_clock(p) && !cost_has_interrupt(p))
		fputs(", of an interrupt that comes anyway", out);
	else if (cost_has_interrupt(p) && !t->interrupt_ns)
		fputs(", and that of the interrupt, which could not be measured", out);
	if (cost_target_is_idle(p) && cost_machine_percent(p, &percent)) {
		fprintf(out, "; with the recorder's own %.2f s %.2f %% of the machine's CPUs\n",
			in_seconds(t->own_ns), percent);
		return;
	}
	if (cost_cpu_percent(p, &percent)) {
		fprintf(out, ", %.2f %% of the target's CPU", percent);
		if (cost_own_percent(p, &own))
			fprintf(out, "; with the recorder's own %.2f s %.2f %%", t->own_ns / 1e9,
				percent + own);
	}
	if (cost_machine_percent(p, &percent))
		fprintf(out, ", %.2f %% of the machine's", percent);
	fputc('\n', out);
}

/* Ends a line with the values that could be shown instead. */
static void print_others(const struct profile *p, size_t shown, FILE *out)
{
	struct line others = { out, "; --value takes " };

	for (size_t i = 0; i < p->value_type_count; i++)
		if (i != shown) {
			begin_part(&others);
			text_print(p->value_types[i].type, out);
		}
	fputs(p->value_type_count > 1 ? ", too\n" : "\n", out);
}

/*
 * Prints which value is shown, unless it is "samples", as readers expect, or has no name; and the
 * sum of each event, if there are several. Returns 0 or -ENOMEM.
 */
static int print_values(const struct profile *p, const char *value, const char *prefix, FILE *out)
{
	size_t *values = calloc(p->value_type_count + 1, sizeof(*values)), count;
	struct line events = { out, "events: " };
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
		text_printf(out, "%svalue: %s", prefix, title);
		free(title);
		print_others(p, shown, out);
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
		text_printf(out, "%s %" PRId64, type->type, sum);
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
			" frames: %s outer callers are unknown\n",
			all, t->stacks_truncated, t->stacks_truncated == 1 ? "" : "s", percent,
			t->stacks_truncated == 1 ? "was" : "were", t->stack_limit,
			t->stacks_truncated == 1 ? "its" : "their");
	}
	stack_ends_print(p, all, out);
	if (profile_find_sum(p, PROFILE_SUM_DELAY) < p->value_type_count &&
	    profile_total(p, PROFILE_DELAY_TYPE) > 0)
		fprintf(out, "%sdelay to others: they were runnable %.3f s while this ran\n",
			prefix, in_seconds(profile_total(p, PROFILE_DELAY_TYPE)));
	return print_values(p, value, prefix, out);
}

struct unnamed {
	const struct profile_image *image;
	uint64_t samples; /* without a name */
	uint64_t all;
};

/* If equal, in the profile's order. */
ORDER(compare_unnamed, struct unnamed, MOST(samples) ?: LEAST(image))

/* Texts of a profile are interned: equal ones are the same pointer. */
ORDER(compare_image_names, struct unnamed,
      LEAST(image->path) ?: LEAST(image->unnamed) ?: LEAST(image))

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
	if (!is_count && strcmp(t->unit, "nanoseconds") != 0)
		text_printf(l->out, " %s", t->unit);
	if (!is_samples)
		text_printf(l->out, " of %s", t->type);
	fprintf(l->out, " (%s %%) %s", percent, what);
}

/* "[anon]: 3 samples (1.00 %) WHAT: WHY" */
static void print_part(const struct unnamed_lines *l, const struct profile_image *image,
		       uint64_t part, const char *what, const char *why)
{
	text_printf(l->out, "%s%s", l->prefix, text_basename(image->path));
	print_share(l, part, what);
	text_printf(l->out, ": %s\n", why);
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
			print_part(l, images[i].image, images[i].samples, "without symbols",
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
	print_share(l, rest, "without symbols");
	fputc('\n', l->out);
}

/*
 * Counts the samples of each image by leaf. Returns image_count elements, to be free()d, those with
 * most samples without a name first, or NULL. Builds of one file, with the same path and reason,
 * are added up in one of them.
 */
static struct unnamed *count_unnamed(const struct profile *p, size_t value, uint64_t *sum)
{
	struct unnamed *images = calloc(p->image_count + 1, sizeof(*images)), *same;

	*sum = 0;
	if (!images)
		return NULL;
	for (size_t i = 0; i < p->image_count; i++)
		images[i].image = &p->images[i];
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		uint64_t count = magnitude(p->values[i * p->value_type_count + value]);
		struct unnamed *image;
		uint32_t leaf;

		add_u64(sum, count);
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
	return images;
}

/* True if a debug package would give an image's code names. */
static bool lacks_symbols(const struct unnamed *u)
{
	return u->samples && u->image->unnamed && strstr(u->image->unnamed, SYMBOL_DEBUG_HINT);
}

/* The command that installs the debug packages of the images that lack symbols; or "". */
static void find_packages(const struct unnamed *images, size_t count,
			  char command[PACKAGE_COMMAND_SIZE])
{
	const struct profile_image *found[PACKAGE_IMAGES_MAX];
	size_t found_count = 0;

	for (size_t i = 0; i < count && found_count < PACKAGE_IMAGES_MAX; i++)
		if (lacks_symbols(&images[i]))
			found[found_count++] = images[i].image;
	*command = '\0';
	if (found_count)
		package_command(found, found_count, command);
}

int report_unnamed(const struct profile *p, const char *value, bool packages, const char *prefix,
		   FILE *out)
{
	struct unnamed_lines l = { p, profile_value(p, value), 0, prefix, out };
	char command[PACKAGE_COMMAND_SIZE] = "";
	struct unnamed *images;

	if (!p->image_count)
		return 0;
	images = count_unnamed(p, l.value, &l.sum);
	if (!images)
		return -ENOMEM;
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
	if (packages)
		find_packages(images, p->image_count, command);
	if (*command)
		fprintf(out, "%sdebug packages: %s\n", prefix, command);
	free(images);
	return 0;
}

/* --- For a person at a terminal: where the time went, and what is wrong --- */

#define BRIEF_COLUMNS  80 /* of a line, unless one name is longer */
#define TARGET_COLUMNS 32
/*
 * Bound: caller: functions and causes in a summary; then: further ones are left out; seen: not
 * seen.
 */
#define MOSTLY_MAX   9 /* functions that a person would look at */
#define CAUSES_SHOWN 2
/* Bound: as MOSTLY_MAX. */
#define CAUSES_MAX 32
/* Of the samples: what has less is for -v. Bound: pace. */
#define CAUSE_SHARE 0.01

/* An image's part of the samples. */
struct image_share {
	const char *path;
	double self;
	size_t first, functions; /* its rows, in `rows`: most samples first */
};

ORDER(compare_row_images, struct row *const,
      strcmp((*a)->key->image, (*b)->key->image) ?: COMPARE(*a, *b))

ORDER(compare_shares, struct image_share, MOST(self) ?: strcmp(a->path, b->path))

/* How many functions have two thirds of an image's samples: ", mostly 3 functions", ", mostly f".
 */
static int print_functions(const struct row *const *rows, size_t count, double self, FILE *out)
{
	size_t mostly = 0;
	char *name;

	for (double part = 0; mostly < count && part * 3 < self * 2; mostly++)
		part += (double)magnitude(rows[mostly]->counts->self);
	if (mostly > MOSTLY_MAX) {
		fprintf(out, ", spread over %zu functions", count);
		return 0;
	}
	if (mostly > 1) {
		fprintf(out, ", mostly %zu functions", mostly);
		return 0;
	}
	name = text_visible(rows[0]->name);
	if (!name)
		return -ENOMEM;
	text_shorten(name, 24);
	fprintf(out, ", mostly %s", name);
	free(name);
	return 0;
}

/*
 * "74 % in libz.so.1.2.13, mostly 3 functions; 12 % in the kernel", or, where no image has half of
 * the samples: "40 % in a.so, 30 % in b.so, 11 % in the kernel". Nothing above rows that are not of
 * code: no stack is read for them, of an archive.
 */
int report_where(const struct profile *p, const struct rows_options *o, const char *prefix,
		 FILE *out)
{
	struct rows_options functions = *o;
	const char *type = p->value_types[profile_value(p, o->value)].type;
	struct image_share *images = NULL;
	const struct row **rows = NULL;
	size_t count = 0, columns = strlen(prefix);
	double all, sum = 0;
	bool many = false;
	struct rows r;
	int err;

	if (o->view && !(o->view->fields & ROW_CODE))
		return 0;
	functions.view = NULL;
	functions.by_total = functions.delay = functions.cpu = false;
	functions.extents = NULL;
	err = rows_collect(&r, p, &functions);
	if (err || !r.count || rows_count_calls(p, &functions))
		goto out;
	all = r.columns->samples;
	images = calloc(r.count, sizeof(*images));
	rows = calloc(r.count, sizeof(const struct row *));
	if (!images || !rows) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < r.count; i++)
		rows[i] = &r.rows[i];
	qsort(rows, r.count, sizeof(const struct row *), compare_row_images);
	for (size_t i = 0; i < r.count; i++) {
		if (!i || strcmp(rows[i]->key->image, rows[i - 1]->key->image) != 0)
			images[count++] = (struct image_share){
				.path = rows[i]->key->image,
				.first = i,
			};
		images[count - 1].self += (double)magnitude(rows[i]->counts->self);
		images[count - 1].functions++;
	}
	qsort(images, count, sizeof(*images), compare_shares);
	for (size_t i = 0; i < count && i < 3 && !err; i++) {
		const struct image_share *image = &images[i];
		double percent = all > 0 ? image->self * 100 / all : 0;
		const char *name = text_basename(image->path);
		char *part = NULL;
		size_t size;
		FILE *text;

		/* The others only while they matter. */
		if (percent < (i ? 5 : 0.5) || sum >= 90)
			break;
		if (image_is_in_kernel(image->path))
			name = "the kernel";
		else if (!*image->path)
			name = "unknown files";
		for (size_t k = 0; k < count && k < 3; k++)
			if (k != i && strcmp(name, text_basename(images[k].path)) == 0)
				name = image->path;
		sum += percent;
		text = open_memstream(&part, &size);
		if (!text) {
			err = -ENOMEM;
			break;
		}
		fprintf(text, "%s%.0f %%", !i ? "" : i == 1 && many ? "; " : ", ", percent);
		if (!i && strcmp(type, "samples") != 0)
			text_printf(text, " of %s", type);
		text_printf(text, " in %s", name);
		if (!i && percent >= 50) {
			many = true;
			err = print_functions(rows + image->first, image->functions, image->self,
					      text);
		}
		if (fclose(text))
			err = -ENOMEM;
		columns += err ? 0 : text_columns(part);
		if (!err && (!i || columns <= BRIEF_COLUMNS))
			fprintf(out, "%s%s", i ? "" : prefix, part);
		free(part);
	}
	if (sum > 0)
		fputc('\n', out);
out:
	free(images);
	free(rows);
	rows_free(&r);
	return err;
}

struct cause {
	double share; /* of what was recorded */
	char *text;
	size_t size;
};

struct causes {
	struct cause list[CAUSES_MAX];
	size_t count;
	int err;
};

/* Adds a cause, unless it matters too little or there is no room. */
__attribute__((format(printf, 4, 5))) static void add_cause(struct causes *c, double part,
							    double whole, const char *format, ...)
{
	struct cause *cause = &c->list[c->count];
	va_list arguments;
	FILE *out;

	if (!(whole > 0) || part < whole * CAUSE_SHARE || c->count == CAUSES_MAX)
		return;
	*cause = (struct cause){ .share = part / whole };
	out = open_memstream(&cause->text, &cause->size);
	if (!out) {
		c->err = -ENOMEM;
		return;
	}
	c->count++;
	va_start(arguments, format);
	text_vprintf(out, format, arguments);
	va_end(arguments);
	if (fclose(out))
		c->err = -ENOMEM;
}

/* Images without names are one cause if a debug package helps, else one by reason. */
static void add_unnamed(struct causes *c, const struct unnamed *images, size_t count, uint64_t sum)
{
	char command[PACKAGE_COMMAND_SIZE];
	struct unnamed total = { 0 };
	char others_text[48] = "";
	size_t stripped = 0;

	for (size_t i = 0; i < count; i++) {
		const struct unnamed *u = &images[i];
		const char *reason = u->image->unnamed;
		uint64_t samples = 0;
		size_t others = 0;
		bool first = true;

		if (!u->samples || !reason)
			continue;
		if (lacks_symbols(u)) {
			total.image = total.image ?: u->image;
			add_u64(&total.samples, u->samples);
			stripped++;
			continue;
		}
		for (size_t j = 0; j < count; j++) {
			if (!images[j].samples || images[j].image->unnamed != reason)
				continue;
			first = first && j >= i;
			others += j > i;
			add_u64(&samples, images[j].samples);
		}
		snprintf(others_text, sizeof(others_text), " and %zu other%s", others,
			 others == 1 ? "" : "s");
		if (first)
			add_cause(c, samples, sum, "%s%s without symbols: %.0f %%: %s",
				  text_basename(u->image->path), others ? others_text : "",
				  100. * samples / sum, reason);
	}
	if (!stripped || total.samples < sum * CAUSE_SHARE)
		return;
	find_packages(images, count, command);
	snprintf(others_text, sizeof(others_text), "%zu images", stripped);
	add_cause(c, total.samples, sum, "%s without symbols: %.0f %%: %s",
		  stripped == 1 ? text_basename(total.image->path) : others_text,
		  100. * total.samples / sum,
		  *command ? command : "debug packages or --debuginfod have them");
}

static void find_causes(struct causes *c, const struct profile *p, size_t value)
{
	const struct profile_totals *t = &p->totals;
	const struct profile_throttled *most = NULL;
	size_t delay = profile_find_sum(p, PROFILE_SUM_DELAY);
	uint64_t sum, missing, throttled_ns = 0;
	struct unnamed *images = count_unnamed(p, value, &sum);
	char others[48];

	if (!images) {
		c->err = -ENOMEM;
		return;
	}
	add_unnamed(c, images, p->image_count, sum);
	for (size_t i = 0; i < p->image_count; i++) {
		const struct unnamed *u = &images[i];
		char hint[RUNTIME_HINT_SIZE];
		const char *why = NULL;

		if (u->all && u->all >= sum / INTERPRETER_SHARE)
			why = runtime_interpreter(p, u->image - p->images, hint);
		if (why)
			add_cause(c, u->all, sum,
				  "%s: %.0f %% in C functions of the interpreter: %s",
				  text_basename(u->image->path), 100. * u->all / sum, why);
	}
	free(images);

	missing = t->stacks_user - t->stacks_complete - t->stacks_truncated;
	if (strcmp(p->stacks, "cfi") == 0 &&
	    t->stacks_complete + t->stacks_truncated < t->stacks_user)
		add_cause(
			c, missing, t->stacks_user,
			"%.0f %% of the user stacks end before the program's start: -v says where",
			100. * missing / t->stacks_user);
	add_cause(c, t->stacks_truncated, t->counted,
		  "%.0f %% of the stacks were cut off at %" PRIu64
		  " frames: their outer callers are unknown",
		  100. * t->stacks_truncated / t->counted, t->stack_limit);
	add_cause(c, t->times_lost, t->counted, "%.0f %% of the ticks have no time: no room",
		  100. * t->times_lost / t->counted);
	add_cause(c, t->in_doubt, t->counted,
		  "%.0f %% of the ticks in doubt: function, thread or program may have changed",
		  100. * t->in_doubt / t->counted);
	for (size_t i = 0; i < t->throttled_count; i++) {
		add_u64(&throttled_ns, t->throttled[i].throttled_ns);
		if (!most || t->throttled[i].throttled_ns > most->throttled_ns)
			most = &t->throttled[i];
	}
	snprintf(others, sizeof(others), " and %zu other%s", t->throttled_count - 1,
		 t->throttled_count == 2 ? "" : "s");
	if (most)
		add_cause(c, throttled_ns, t->cpu_ns + throttled_ns,
			  "throttled by quota: %.3f s, %s%s", in_seconds(throttled_ns),
			  most->cgroup, t->throttled_count > 1 ? others : "");
	if (delay < p->value_type_count && t->cpu_ns) {
		int64_t waited_ns = profile_total(p, PROFILE_DELAY_TYPE);

		/* A tenth of the program's own time is worth a line, after what can be fixed. */
		if (waited_ns > 0 && (uint64_t)waited_ns >= t->cpu_ns / 10)
			add_cause(c, CAUSE_SHARE, 1,
				  "delay to others: they were runnable %.3f s while this ran",
				  in_seconds(waited_ns));
	}
}

ORDER(compare_causes, struct cause, MOST(share) ?: strcmp(a->text, b->text))

/* Three digits or so, which nothing beside them needs more of. */
static void print_seconds(uint64_t ns, FILE *out)
{
	double s = in_seconds(ns);

	fprintf(out, "%.*f s", s < 9.995 ? 2 : s < 99.95 ? 1 : 0, s);
}

/* For how long the threads were in each state; what they waited for is known of `waits` alone. */
struct brief_times {
	uint64_t threads, wall_ns; /* 0: unknown */
	uint64_t on_cpu_ns, runnable_ns, blocked_ns, idle_ns, unknown_ns;
	bool waits;
};

static struct brief_times brief_times(const struct profile *p)
{
	const struct profile_totals *t = &p->totals;
	const struct profile_wall wall = profile_wall_sum(p);
	const uint64_t known_ns = t->cpu_ns + t->runnable_ns;
	struct brief_times times = { .on_cpu_ns = t->cpu_ns };

	/* What was selected of them is no part of all. */
	if (p->wall_count && !p->all_samples)
		return (struct brief_times){
			wall.threads,	 wall.wall_ns, wall.on_cpu_ns,	wall.runnable_ns,
			wall.blocked_ns, wall.idle_ns, wall.unknown_ns, t->waits,
		};
	/* Of a sum with recordings that do not have it, it would be less. */
	if (t->wall_ns < known_ns - known_ns / 50)
		return times;
	times.threads = t->threads;
	times.wall_ns = t->wall_ns;
	times.runnable_ns = t->runnable_ns;
	times.blocked_ns = t->wall_ns > known_ns ? t->wall_ns - known_ns : 0;
	return times;
}

/* Prints the states, of one thread in percent, of several in seconds. */
static void print_states(const struct brief_times *t, FILE *out)
{
	const struct {
		const char *name;
		uint64_t ns;
		const char *why;
	} states[] = {
		{ "on CPU", t->on_cpu_ns, "" },
		{ "runnable", t->runnable_ns, " (no free CPU)" },
		{ t->waits ? "blocked" : "sleeping", t->blocked_ns, "" },
		{ "idle", t->idle_ns, "" },
		{ "unknown", t->unknown_ns, "" },
	};
	struct line line = { out, "" };

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		/* Of many threads that sleep, little CPU time is not nothing. */
		if (states[i].ns <= (i || t->threads == 1 ? t->wall_ns / 200 : 0))
			continue;
		begin_part(&line);
		fprintf(out, "%s ", states[i].name);
		if (t->threads == 1)
			fprintf(out, "%.0f %%", 100. * states[i].ns / t->wall_ns);
		else
			print_seconds(states[i].ns, out);
		fputs(states[i].why, out);
	}
}

/*
 * "busy (PID 17113), 1 thread, 4.0 s: on CPU 32 %, runnable 68 % (no free CPU)", in two lines if
 * one is too short; where times of threads are unknown "container web, 4.0 s: on CPU 0.59 s (0.15
 * of 2 CPUs)"; above a table that begins with the states "lockd (PID 17118), 7 threads, 4.0 s (28.1
 * thread seconds)".
 */
static int print_times(const struct profile *p, const char *prefix, const char *target, bool states,
		       FILE *out)
{
	const struct profile_totals *t = &p->totals;
	const struct brief_times times = brief_times(p);
	const double s = in_seconds(p->all_duration_ns ?: p->duration_ns);
	char *texts[2] = { NULL, NULL }, *name = text_visible(target);
	size_t sizes[2];
	FILE *whose = open_memstream(&texts[0], &sizes[0]);
	FILE *what = open_memstream(&texts[1], &sizes[1]);
	int err = name && whose && what ? 0 : -ENOMEM;

	if (!err) {
		text_shorten_path(name, TARGET_COLUMNS);
		fprintf(whose, "%s%s", prefix, name);
		if (times.threads)
			fprintf(whose, ", %" PRIu64 " thread%s", times.threads,
				times.threads == 1 ? "" : "s");
		if (s > 0)
			fprintf(whose, ", %.*f s", s < 0.95 ? 2 : 1, s);
		if (states)
			fprintf(whose, " (%.1f thread seconds)", in_seconds(times.wall_ns));
	}
	if (!err && !states && times.wall_ns) {
		print_states(&times, what);
	} else if (!err && !states && times.on_cpu_ns) {
		fputs("on CPU ", what);
		print_seconds(times.on_cpu_ns, what);
		if (s > 0)
			fprintf(what, " (%.2f", in_seconds(times.on_cpu_ns) / s);
		if (s > 0 && t->machine_ns)
			fprintf(what, " of %.0f", in_seconds(t->machine_ns) / s);
		fputs(s > 0 ? " CPUs)" : "", what);
	}
	if ((whose && fclose(whose)) || (what && fclose(what)))
		err = -ENOMEM;
	if (!err)
		fprintf(out, "%s%s%s\n", texts[0],
			!*texts[1] ? ""
			: text_columns(texts[0]) + strlen(": ") + text_columns(texts[1]) >
					BRIEF_COLUMNS
				? ":\n  "
				: ": ",
			texts[1]);
	free(name);
	free(texts[0]);
	free(texts[1]);
	return err;
}

/*
 * How many samples there are, what the account has beside them, and the cost:
 * "131 samples at 99 Hz, none lost; cost 1.13 % of its CPU".
 */
static void print_samples(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	const uint64_t lost = profile_lost(p), all = t->out_of_range + t->excluded + lost;
	const uint64_t count = t->known ? t->counted : profile_amount(p).samples;
	const double hz = profile_hz(p);
	const bool events = t->known && !profile_has_clock(p);
	double percent, own;

	/* Why there is no tick is said where that is known. */
	if (t->known ? !t->ticks : hz <= 0)
		return;
	fprintf(out, "%s%" PRIu64 " %s%s", prefix, count, events ? "event" : "sample",
		count == 1 ? "" : "s");
	/* Of a rate that is missed by more than chance and the kernel's account of the time do. */
	if (hz > 0 && t->known && t->cpu_ns && rate_is_missed(t, hz) &&
	    (double)t->ticks / in_seconds(t->cpu_ns) < hz * 0.8)
		fprintf(out, " at %.0f Hz of %.0f", (double)t->ticks / in_seconds(t->cpu_ns), hz);
	else if (hz > 0)
		fprintf(out, " at %.0f Hz", hz);
	if (t->out_of_range)
		fprintf(out, ", %" PRIu64 " out_of_range", t->out_of_range);
	if (t->excluded)
		fprintf(out, ", %" PRIu64 " excluded", t->excluded);
	if (t->known && !lost)
		fputs(", none lost", out);
	if (lost) {
		fputs(", lost ", out);
		print_lost(p, out);
	}
	if (t->known && t->ticks != t->counted + all)
		fprintf(out, ", but %" PRIu64 " %ss", t->ticks, tick_word(p));
	if (cost_target_is_idle(p) && cost_machine_percent(p, &percent))
		fprintf(out, "; cost %.2f %% of the machine's CPUs", percent);
	else if (cost_cpu_percent(p, &percent))
		fprintf(out, "; cost %.2f %% of its CPU",
			percent + (cost_own_percent(p, &own) ? own : 0));
	else if (cost_machine_percent(p, &percent))
		fprintf(out, "; cost %.2f %% of the machine's CPUs", percent);
	fputc('\n', out);
}

int report_brief(const struct profile *p, const struct rows_options *rows, const char *target,
		 bool above, FILE *out, FILE *below)
{
	const size_t value = profile_value(p, rows->value);
	const struct profile_value_type *type = &p->value_types[value];
	const bool has_times = p->duration_ns || p->totals.cpu_ns;
	const char *all = p->all_samples ? "in all: " : "";
	char percent[TEXT_PERCENT_SIZE];
	struct causes c = { 0 };

	if (p->all_samples) {
		const struct profile_amount selected = profile_amount(p);

		text_percent(percent, selected.samples, p->all_samples);
		fprintf(out, "selected: %" PRIu64 " sample%s: %s %% of %" PRIu64 "\n",
			selected.samples, selected.samples == 1 ? "" : "s", percent,
			p->all_samples);
	}
	if (has_times && print_times(p, all, target, above && states_are_first(p, rows), out))
		return -ENOMEM;
	/* A table says so itself. */
	if (!(has_times && above) && report_where(p, rows, "", out))
		return -ENOMEM;
	if (p->value_type_count > 1 && *type->type && strcmp(type->type, "samples") != 0) {
		text_printf(out, "value: %s", type->type);
		print_others(p, value, out);
	}
	print_samples(p, all, below);
	account_say(&p->totals.account, true, all, below);

	find_causes(&c, p, value);
	for (size_t i = 0; i < c.count && !c.err; i++)
		c.err = c.list[i].text ? 0 : -ENOMEM;
	if (!c.err)
		qsort(c.list, c.count, sizeof(*c.list), compare_causes);
	for (size_t i = 0; i < c.count; i++) {
		if (!c.err && i < CAUSES_SHOWN)
			fprintf(below, "%s", c.list[i].text);
		if (!c.err && i + 1 == CAUSES_SHOWN && c.count > CAUSES_SHOWN)
			fprintf(below, "; -v has %zu more", c.count - CAUSES_SHOWN);
		if (!c.err && i < CAUSES_SHOWN)
			fputc('\n', below);
		free(c.list[i].text);
	}
	return c.err;
}
