// SPDX-License-Identifier: GPL-2.0-only
#include "profile/from_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "profile/image_name.h"

/* User addresses end below it, kernel addresses begin at or above it. */
#define KERNEL_START 0x8000000000000000ULL

struct builder {
	struct profile *p;
	const struct capture_image *images;
	size_t image_count;
	uint32_t *image_ids; /* of the capture's images in the profile; PROFILE_NONE: not yet */
	uint32_t kernel_mapping;
	struct index mapping_index;
};

static int image_id(struct builder *b, uint32_t number, uint32_t *id)
{
	const struct capture_image *image = &b->images[number];
	struct profile_image *added;

	if (b->image_ids[number] == PROFILE_NONE) {
		if (profile_add_image(b->p, image->path, image->build_id, image->build_id_size,
				      &b->image_ids[number]))
			return -ENOMEM;
		added = &b->p->images[b->image_ids[number]];
		if (added->fd < 0 && image->fd >= 0)
			added->fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);
	}
	*id = b->image_ids[number];
	return 0;
}

static bool mapping_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_mapping *a = (const struct profile_mapping *)array + id, *b = key;

	return a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->image == b->image;
}

/* The same place of the same file in several processes is one mapping. */
static int mapping_id(struct builder *b, const struct capture_mapping *mapping, uint32_t *id)
{
	struct profile_mapping key = {
		.start = mapping->start,
		.limit = mapping->limit,
		.offset = mapping->offset,
	};
	uint64_t hash;

	if (image_id(b, mapping->image, &key.image))
		return -ENOMEM;
	hash = hash_u64(key.start, key.limit) ^ hash_u64(key.offset, key.image);
	*id = index_find(&b->mapping_index, hash, mapping_equal, b->p->mappings, &key);
	if (*id != INDEX_NONE)
		return 0;
	if (profile_add_mapping(b->p, key.start, key.limit, key.offset, key.image, id))
		return -ENOMEM;
	return index_add(&b->mapping_index, hash, *id);
}

static int add_mapping(const struct capture_mapping *mapping, void *context)
{
	uint32_t id;

	return mapping_id(context, mapping, &id);
}

/* All of the kernel's half is one mapping: kernel, modules and BPF programs are in kallsyms. */
static int kernel_mapping_id(struct builder *b, uint32_t *id)
{
	uint32_t image;

	if (b->kernel_mapping == PROFILE_NONE &&
	    (profile_add_image(b->p, IMAGE_KERNEL, NULL, 0, &image) ||
	     profile_add_mapping(b->p, KERNEL_START, UINT64_MAX, KERNEL_START, image,
				 &b->kernel_mapping)))
		return -ENOMEM;
	*id = b->kernel_mapping;
	return 0;
}

static int location_id(struct builder *b, const struct capture_frame *frame, bool caller,
		       uint32_t *id)
{
	uint32_t mapping = PROFILE_NONE;
	int err = 0;

	if (frame->mapping)
		err = mapping_id(b, frame->mapping, &mapping);
	else if (frame->pc >= KERNEL_START)
		err = kernel_mapping_id(b, &mapping);
	return err ?: profile_add_location(b->p, frame->pc - caller, mapping, id);
}

static int add_sample(const struct capture_sample *sample, void *context)
{
	struct builder *b = context;
	struct profile_labels labels = {
		.pid = sample->pid,
		.tid = sample->tid,
		.comm = sample->comm,
		.kernel = sample->kernel,
	};
	int64_t values[] = { sample->count, 0 };
	uint32_t locations[2 * CAPTURE_DEPTH_MAX], label;
	int err = 0;

	for (uint32_t i = 0; i < sample->depth && !err; i++)
		err = location_id(b, &sample->frames[i], i > 0, &locations[i]);
	if (__builtin_mul_overflow(values[0], (int64_t)b->p->period_ns, &values[1]))
		values[1] = INT64_MAX;
	err = err ?: profile_add_labels(b->p, &labels, &label);
	return err ?: profile_add_sample(b->p, locations, sample->depth, label, values);
}

static int add_totals(struct profile *p, const struct capture_totals *from)
{
	struct profile_totals *t = &p->totals;

	t->known = true;
	t->ticks = from->ticks;
	t->counted = from->counted;
	t->out_of_range = from->out_of_range;
	t->excluded = from->excluded;
	t->kernel = from->kernel;
	t->cpu_ns = from->cpu_ns;
	t->bpf_ns_per_tick = from->bpf_ns_per_tick;
	t->interrupt_ns = from->interrupt_ns;
	p->time_ns = from->start_time_ns;
	p->duration_ns = from->duration_ns;
	if (from->no_cell && profile_add_lost(p, "no_cell", from->no_cell))
		return -ENOMEM;
	return profile_add_lost(p, "ring_full", from->ring_full);
}

static int build(struct builder *b, struct capture *c)
{
	struct profile *p = b->p;
	struct capture_totals totals;
	struct utsname machine;
	int err;

	capture_totals(c, &totals);
	uname(&machine); /* fails for a bad pointer only */
	p->period_ns = capture_period_ns(c);
	p->bits = capture_bits(c);
	err = profile_string(p, capture_event_name(c), &p->event);
	err = err ?: profile_string(p, machine.nodename, &p->host);
	err = err ?: profile_add_value_type(p, "samples", "count");
	err = err ?: profile_add_value_type(p, "cpu", "nanoseconds");
	err = err ?: add_totals(p, &totals);
	err = err ?: capture_each_mapping(c, add_mapping, b);
	return err ?: capture_each_sample(c, add_sample, b);
}

int profile_from_capture(struct capture *c, struct profile **p, struct error *e)
{
	struct builder b = { .kernel_mapping = PROFILE_NONE };
	int err = -ENOMEM;

	b.p = profile_new();
	b.images = capture_images(c, &b.image_count);
	b.image_ids = malloc((b.image_count ?: 1) * sizeof(*b.image_ids));
	for (size_t i = 0; b.image_ids && i < b.image_count; i++)
		b.image_ids[i] = PROFILE_NONE;
	if (b.p && b.image_ids)
		err = build(&b, c);
	free(b.image_ids);
	index_free(&b.mapping_index);
	if (err) {
		profile_free(b.p);
		return error_no_memory(e);
	}
	*p = b.p;
	return 0;
}
