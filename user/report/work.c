// SPDX-License-Identifier: GPL-2.0-only
#include "report/work.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "profile/thread_state.h"
#include "report/text.h"
#include "util/array.h"
#include "util/order.h"
#include "util/sum.h"
#include "util/table.h"

/*
 * What a function calls is the same work as long as it has so much of the function's time. Bound:
 * pace.
 */
#define SAME_PERCENT 99

/* Bound: caller: states in a row; then: the smaller ones are omitted; seen: not seen. */
#define STATES_SHOWN 3

/* The time of a function that was spent in one leaf: code, or what stands for a state. */
struct part {
	uint32_t function, leaf; /* the key */
	uint32_t location;	 /* one of the function's */
	int64_t ns;
};

struct collector {
	const struct profile *p;
	size_t value;	  /* of the wall time */
	int64_t *ns;	  /* of each function, in whose stacks it is */
	int64_t *row_ns;  /* of each function, as a row */
	uint32_t *last;	  /* of each function: number + 1 of the last sample that had it */
	bool *is_own;	  /* of each location */
	int64_t *self_ns; /* of each function, where none that it calls is own */
	TABLE(struct part) parts;
};

/*
 * True if it is a program's code, not a library's or an interpreter's: by where these are installed
 * and what they are called, as nothing else says so.
 */
static bool image_is_own(const char *path)
{
	static const char *const libraries[] = {
		"*.so",
		"*.so.*",
		"*/lib/python*.py",
		"/usr/share/*.p[lm]",
		"/usr/lib/*.p[lm]",
		"/usr/share/*.php",
		"*/vendor/*.php",
		"*/bin/python*",
		"*/bin/perl*",
		"*/bin/php*",
		"*/sbin/php*",
	};
	const enum image_kind kind = image_kind(path);

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (fnmatch(libraries[i], path, 0) == 0)
			return false;
	return kind == IMAGE_JIT || (kind == IMAGE_FILE && !image_is_libc(path));
}

/* The time of a sample, if its thread had work and did not leave it to others; else 0. */
static int64_t working_ns(const struct collector *c, size_t sample)
{
	const struct profile *p = c->p;
	const int64_t ns = p->values[sample * p->value_type_count + c->value];
	const char *reason;
	size_t size = 0;

	if (ns <= 0 || profile_sample_state(p, &p->samples[sample], &reason, &size) == THREAD_IDLE)
		return 0;
	return size == strlen("join") && strncmp(reason, "join", size) == 0 ? 0 : ns;
}

/* The number of a function that is the program's own at a line of a location, + 1; 0: none is. */
static uint32_t own_function(const struct collector *c, uint32_t location, uint32_t line)
{
	const struct profile *p = c->p;
	const uint32_t function = p->lines[p->locations[location].first_line + line].function;

	/* Which all main threads have outside main(). */
	return c->is_own[location] && strcmp(p->functions[function].name, "_start") ? function + 1
										    : 0;
}

/* Adds a sample to all its own functions. */
static void add_totals(struct collector *c, uint32_t number, int64_t ns)
{
	const struct profile_sample *s = &c->p->samples[number];
	bool has_callee = false;

	for (uint32_t i = 0; i < s->depth; i++) {
		const uint32_t location = c->p->frames[s->first_frame + i];

		for (uint32_t k = 0; k < c->p->locations[location].line_count; k++) {
			const uint32_t own = own_function(c, location, k);

			if (!own || c->last[own - 1] == number + 1)
				continue;
			add_i64(&c->self_ns[own - 1], has_callee ? 0 : ns);
			has_callee = true;
			c->last[own - 1] = number + 1;
			add_i64(&c->ns[own - 1], ns);
		}
	}
}

/*
 * Adds a sample to its row: of its outermost own function, or of one that this calls, if the outer
 * ones only call it and others. Without any of where it waits or what it runs. Returns 0 or
 * -ENOMEM.
 */
static int add_part(struct collector *c, uint32_t number, int64_t ns)
{
	const struct profile *p = c->p;
	const struct profile_sample *s = &p->samples[number];
	const uint32_t *frames = p->frames + s->first_frame;
	const struct profile_location *at;
	struct part part = { 0 };
	bool found = false;
	uint32_t id;

	for (uint32_t i = s->depth; i-- > 0 && !found;)
		for (uint32_t k = p->locations[frames[i]].line_count; k-- > 0 && !found;) {
			const uint32_t own = own_function(c, frames[i], k), outer = part.function;

			if (!own)
				continue;
			part.function = own;
			part.location = frames[i];
			found = c->self_ns[own - 1] >= c->ns[own - 1] / 2 ||
				(outer && (double)c->ns[own - 1] * 100 <
						  (double)c->ns[outer - 1] * SAME_PERCENT);
		}
	if (!part.function && s->depth) {
		part.location = frames[profile_wait_frame(p, s)];
		at = &p->locations[part.location];
		part.function = at->line_count ? p->lines[at->first_line].function + 1 : 0;
		if (part.function == profile_state_function(p, s))
			part.function = 0; /* no stack */
	}
	if (!part.function)
		return 0; /* the states have it, and tables by function */
	at = &p->locations[frames[0]];
	part.leaf = at->line_count ? p->lines[at->first_line].function + 1 : 0;
	add_i64(&c->row_ns[part.function - 1], ns);
	if (table_add(&c->parts, &part, offsetof(struct part, location), &id))
		return -ENOMEM;
	add_i64(&c->parts.all[id].ns, ns);
	return 0;
}

static int compare_parts(const void *one, const void *other, void *row_ns)
{
	const struct part *a = one, *b = other;
	const int64_t *ns = row_ns;

	return COMPARE(ns[b->function - 1], ns[a->function - 1])
		       ?: COMPARE(a->function, b->function)
		       ?: COMPARE(b->ns, a->ns) ?: COMPARE(a->leaf, b->leaf);
}

static const char *leaf_name(const struct profile *p, const struct part *part)
{
	return part->leaf ? p->functions[part->leaf - 1].name : "";
}

/* Describes the states of `count` parts of one row. */
static void print_states(const struct profile *p, const struct part *parts, size_t count,
			 int64_t all_ns, FILE *out)
{
	const struct part *busiest = NULL;
	int64_t on_cpu_ns = 0;
	const char *gap = "", *reason;
	size_t size, shown = 0;

	for (size_t i = 0; i < count; i++) {
		if (thread_state_of(leaf_name(p, &parts[i]), &reason, &size) != THREAD_ON_CPU)
			continue;
		busiest = busiest ?: &parts[i];
		add_i64(&on_cpu_ns, parts[i].ns);
	}
	/* The states are in order; all that is on a CPU is one of them. */
	for (size_t i = 0; i <= count && shown < STATES_SHOWN; i++) {
		const enum thread_state state =
			i < count ? thread_state_of(leaf_name(p, &parts[i]), &reason, &size)
				  : THREAD_ON_CPU;
		const int64_t ns = i < count ? parts[i].ns : 0;

		if (on_cpu_ns >= ns && on_cpu_ns >= all_ns / 100 && on_cpu_ns > 0) {
			fprintf(out, "%son CPU %.2f", gap, (double)on_cpu_ns / 1e9);
			if (busiest->leaf && busiest->leaf != busiest->function &&
			    busiest->ns >= on_cpu_ns / 2) {
				fputs(" (", out);
				text_print(leaf_name(p, busiest), out);
				fputc(')', out);
			}
			on_cpu_ns = 0;
			gap = ", ";
			if (++shown == STATES_SHOWN)
				break;
		}
		if (state == THREAD_ON_CPU || ns < all_ns / 100)
			continue;
		fprintf(out, "%s%.*s %.2f", gap, reason ? (int)size : (int)strlen("runnable"),
			reason ?: "runnable", (double)ns / 1e9);
		gap = ", ";
		shown++;
	}
}

/* Makes the rows of the parts. Returns 0 or -ENOMEM. */
static int make_rows(struct collector *c, struct work *w, size_t columns)
{
	const struct part *parts = c->parts.all;

	qsort_r(c->parts.all, c->parts.count, sizeof(*parts), compare_parts, c->row_ns);
	for (size_t i = 0, next; i < c->parts.count; i = next) {
		const struct profile_image *image = profile_location_image(c->p, parts[i].location);
		struct work_row row = {
			.function = parts[i].function - 1,
			.image = image ? image->path : "",
			.ns = c->row_ns[parts[i].function - 1],
		};
		size_t size;
		FILE *out = open_memstream(&row.states, &size);

		for (next = i; next < c->parts.count && parts[next].function == parts[i].function;)
			next++;
		if (!out)
			return -ENOMEM;
		print_states(c->p, parts + i, next - i, row.ns, out);
		if (fclose(out) || array_add(w->rows, w->count, w->room, row)) {
			free(row.states);
			return -ENOMEM;
		}
		if (columns)
			text_shorten_list(row.states, columns);
	}
	return 0;
}

int work_collect(struct work *w, const struct profile *p, size_t columns)
{
	struct collector c = {
		.p = p,
		.value = profile_find_sum(p, PROFILE_SUM_WALL),
		.ns = calloc(p->function_count + 1, sizeof(*c.ns)),
		.self_ns = calloc(p->function_count + 1, sizeof(*c.self_ns)),
		.row_ns = calloc(p->function_count + 1, sizeof(*c.row_ns)),
		.last = calloc(p->function_count + 1, sizeof(*c.last)),
		.is_own = calloc(p->location_count + 1, sizeof(*c.is_own)),
	};
	int err = c.ns && c.self_ns && c.row_ns && c.last && c.is_own ? 0 : -ENOMEM;

	*w = (struct work){ 0 };
	for (uint32_t i = 0; i < p->location_count && !err; i++) {
		const struct profile_image *image = profile_location_image(p, i);

		c.is_own[i] = image && image_is_own(image->path);
	}
	for (size_t i = 0; i < p->sample_count && !err; i++)
		add_totals(&c, i, working_ns(&c, i));
	for (size_t i = 0; i < p->sample_count && !err; i++)
		err = working_ns(&c, i) ? add_part(&c, i, working_ns(&c, i)) : 0;
	err = err ?: make_rows(&c, w, columns);
	free(c.ns);
	free(c.self_ns);
	free(c.row_ns);
	free(c.last);
	free(c.is_own);
	table_free(&c.parts);
	return err;
}

void work_free(struct work *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->rows[i].states);
	free(w->rows);
	*w = (struct work){ 0 };
}
