// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/symbol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/build_id.h"
#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "symbol/batch.h"
#include "symbol/elf/debuginfod.h"
#include "symbol/file_limits.h"
#include "symbol/jit.h"
#include "symbol/parser.h"
#include "symbol/runtime.h"
#include "util/order.h"

/*
 * Addresses are resolved in groups, the hottest first: one group per image, and one, number
 * image_count, for the kernel with its modules, whose symbols come from a single file.
 */
struct group {
	uint32_t image;
	uint32_t order;
	double heat; /* samples, each counted for every frame in the group */
};

struct work {
	struct profile *p;
	const bool *wanted;	       /* by location; NULL: all */
	struct symbol_extent *extents; /* to be set instead of names; or NULL */
	struct group *groups;	       /* image_count + 1 */
	uint32_t *same_code;	       /* build_id_circles() */
	uint64_t checksum_bytes;
	struct batch_address *addresses;
	size_t count;
	struct runtimes *runtimes;     /* NULL: not made yet */
	double total;		       /* all samples */
	struct debuginfod *debuginfod; /* NULL: do not ask */
	struct file_limits limits;
};

/* The group of a location; PROFILE_NONE: no file is known for it. */
static uint32_t group_of(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_image *image = profile_location_image(p, location);

	if (image && image_is_in_kernel(image->path))
		return p->image_count;
	/* The vsyscall page belongs to the user, although its address is negative. */
	if (l->address >> 63 && !(image && image_kind(image->path) == IMAGE_VSYSCALL))
		return p->image_count;
	return l->mapping == PROFILE_NONE ? PROFILE_NONE : p->mappings[l->mapping].image;
}

ORDER(by_heat, struct group *const,
      COMPARE((*b)->heat, (*a)->heat) ?: COMPARE((*a)->image, (*b)->image))

static int make_groups(struct work *w)
{
	const struct profile *p = w->p;
	size_t count = p->image_count + 1, value = profile_value(p, NULL);
	struct group **sorted = calloc(count, sizeof(*sorted));

	w->groups = calloc(count, sizeof(*w->groups));
	if (!sorted || !w->groups) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		w->groups[i].image = i;
		sorted[i] = &w->groups[i];
	}
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		const uint32_t *frames = p->frames + sample->first_frame;
		double samples = p->values[i * p->value_type_count + value];

		w->total += samples;
		for (uint32_t depth = 0; depth < sample->depth; depth++) {
			uint32_t group = group_of(p, frames[depth]);

			if (group != PROFILE_NONE)
				w->groups[group].heat += samples;
		}
	}
	qsort(sorted, count, sizeof(*sorted), by_heat);
	for (size_t i = 0; i < count; i++)
		sorted[i]->order = i;
	free(sorted);
	return 0;
}

/* batch_address.group is the group's order here. */
ORDER(by_order, struct batch_address, LEAST(group) ?: LEAST(location))

static int collect_addresses(struct work *w)
{
	const struct profile *p = w->p;

	w->addresses = calloc(p->location_count + 1, sizeof(*w->addresses));
	if (!w->addresses)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->location_count; i++) {
		uint32_t group = group_of(p, i);

		if (group == PROFILE_NONE || (w->wanted && !w->wanted[i]))
			continue;
		/* A line of a script has its name, and its file has no symbols. */
		if (!w->extents && profile_is_script(p, i))
			continue;
		/* Kernel locations need a name only; others also need their image_address. */
		if (group == p->image_count && (w->extents || p->locations[i].line_count))
			continue;
		w->addresses[w->count++] = (struct batch_address){
			.address = p->locations[i].address,
			.location = i,
			.group = w->groups[group].order,
		};
	}
	qsort(w->addresses, w->count, sizeof(*w->addresses), by_order);
	return 0;
}

static bool is_unnamed(const struct work *w, uint32_t location)
{
	const struct profile_location *l = &w->p->locations[location];

	return (w->extents || !profile_is_named(w->p, location)) && l->mapping != PROFILE_NONE;
}

/*
 * Sets image.unnamed of those addresses that got no name. image: the one whose runtime can write
 * names: hints are added; or PROFILE_NONE.
 */
static int explain_unnamed(struct work *w, const struct batch_address *addresses, size_t count,
			   const char *why, uint32_t image)
{
	struct profile *p = w->p;
	char *hints = NULL;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		uint32_t mapping = p->locations[addresses[i].location].mapping;

		if (!is_unnamed(w, addresses[i].location))
			continue;
		if (image != PROFILE_NONE && !hints) {
			w->runtimes = w->runtimes ?: runtimes_new(p);
			hints = w->runtimes ? runtimes_hints(w->runtimes, image, why) : NULL;
			err = hints ? 0 : -ENOMEM;
		}
		err = err
			      ?: profile_string(p, hints ?: why,
						&p->images[p->mappings[mapping].image].unnamed);
	}
	free(hints);
	return err;
}

/*
 * Sets *text to where the kernel of a file had its _text, if that is the running kernel. Returns
 * NULL, or why its addresses have no names.
 */
static const char *find_recorded_kernel(const struct profile *p, uint64_t *text)
{
	uint8_t running[PROFILE_BUILD_ID_MAX];
	size_t size;

	for (size_t i = 0; i < p->mapping_count; i++) {
		const struct profile_image *image = &p->images[p->mappings[i].image];

		*text = p->mappings[i].offset;
		if (!image_is_kernel(image->path) || !image->build_id_size || !(*text >> 63))
			continue;
		size = kallsyms_build_id(running);
		if (size == image->build_id_size && memcmp(running, image->build_id, size) == 0)
			return NULL;
		return "the recorded kernel is not the running one, by its build ID: kernel "
		       "addresses can be named only on the recorded machine";
	}
	/* It changes with each boot where its code is. */
	return "kernel addresses can be named only while recording, on the recorded machine";
}

/* Resolves a batch, whose addresses are all of one group. */
static int resolve_group(struct work *w, struct batch *b)
{
	struct batch_address *addresses = b->addresses;
	uint32_t group = group_of(w->p, addresses[0].location);
	batch_reader *reader = elf_resolve;
	size_t count = b->count;
	const char *why;
	int err;

	if (group == w->p->image_count) {
		for (size_t i = 0; i < count; i++)
			w->p->locations[addresses[i].location].image_address = addresses[i].address;
		why = w->p->format ? find_recorded_kernel(w->p, &b->kernel_text) : NULL;
		if (why)
			return explain_unnamed(w, addresses, count, why, PROFILE_NONE);
		b->image = PROFILE_NONE;
		reader = kallsyms_resolve;
	} else {
		b->image = group;
		if (image_kind(w->p->images[group].path) == IMAGE_JIT)
			reader = jit_resolve;
		/* Waiting for servers is worth it from 1 % of the samples on. */
		if (w->groups[group].heat >= w->total / 100)
			b->debuginfod = w->debuginfod;
	}
	batch_progress(b, 0, NULL);
	err = reader(b);
	if (err || batch_stopped(b) || (w->extents && b->was_read))
		return err;
	return explain_unnamed(w, addresses, count, b->why.what,
			       b->unwritten ? b->image : PROFILE_NONE);
}

static int resolve_all(struct work *w, const struct symbol_options *o)
{
	size_t first = 0, next;
	bool stopped = false;
	int err = 0;

	for (; !err && !stopped && first < w->count; first = next) {
		struct batch b = {
			.p = w->p,
			.addresses = w->addresses + first,
			.extents = w->extents,
			.o = *o,
			.same_code = w->same_code,
			.checksum_bytes = &w->checksum_bytes,
			.limits = o->window_ns ? &w->limits : NULL,
			.done = first,
			.total = w->count,
		};

		for (next = first; next < w->count; next++)
			if (w->addresses[next].group != w->addresses[first].group)
				break;
		b.count = next - first;
		if (!batch_stopped(&b))
			err = resolve_group(w, &b);
		stopped = b.stopped;
	}
	return err;
}

static int resolve(struct work *w, const struct symbol_options *options, struct error *e)
{
	const struct symbol_options none = { 0 }, *o = options ?: &none;
	int err = o->debuginfod ? debuginfod_open(&w->debuginfod, e) : 0;

	if (err)
		return err;
	w->checksum_bytes = SYMBOL_CHECKSUM_BYTES;
	file_limits_init(&w->limits, o->window_ns);
	if (o->parser)
		parser_begin(o->parser, o->window_ns);
	err = make_groups(w);
	w->same_code = build_id_circles(w->p);
	if (!err)
		err = w->same_code ? collect_addresses(w) : -ENOMEM;
	if (!err)
		err = resolve_all(w, o);
	if (o->parser)
		parser_rest(o->parser);
	file_limits_free(&w->limits);
	debuginfod_close(w->debuginfod);
	runtimes_free(w->runtimes);
	free(w->groups);
	free(w->same_code);
	free(w->addresses);
	return err ? error_no_memory(e) : 0;
}

int symbol_check(const struct symbol_options *options, struct error *e)
{
	return options->debuginfod ? debuginfod_check(e) : 0;
}

int symbol_resolve(struct profile *p, const struct symbol_options *options, struct error *e)
{
	struct work w = { .p = p, .wanted = options ? options->wanted : NULL };

	return resolve(&w, options, e);
}

int symbol_extents(struct profile *p, const bool *wanted, struct symbol_extent *extents,
		   struct error *e)
{
	struct work w = { .p = p, .wanted = wanted, .extents = extents };

	return resolve(&w, NULL, e);
}
