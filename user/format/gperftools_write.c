// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/address_space.h"
#include "format/gperftools.h"
#include "format/image_name.h"
#include "util/array.h"

/* gperftools itself records no more; the frames towards the root are cut. */
#define DEPTH_MAX 254

/* A count that needs more 32-bit records than this is written in 64 bits instead. */
#define SPLITS_MAX 256

/* go's pprof rejects a file with a line of 64 KiB. */
#define PATH_WIDTH 4096

struct record {
	size_t first_pc; /* in writer.pcs */
	uint32_t depth;
	uint32_t leaf_copies; /* how often the leaf is repeated: see guard_callers() */
	uint64_t count;
};

struct writer {
	const struct profile *p;
	FILE *out;
	unsigned int bits;
	struct address_space space;
	struct record *records;
	size_t record_count, record_room;
	uint64_t *pcs;
	size_t pc_count, pc_room;
	struct index stacks;
	struct index seconds;
};

/* Not enough bits: the caller tries again with 64. */
#define TOO_NARROW (-ERANGE)

static bool same_stack(const void *array, uint32_t id, const void *key)
{
	const struct writer *w = array;
	const struct record *a = &w->records[id], *b = key;

	return a->depth == b->depth &&
	       memcmp(w->pcs + a->first_pc, w->pcs + b->first_pc, a->depth * sizeof(*w->pcs)) == 0;
}

/* As the file holds it: readers take 1 from all pcs but the leaf's. */
static uint64_t file_pc(const struct writer *w, uint32_t location, bool leaf)
{
	return address_space_address(&w->space, location) + !leaf;
}

/* Appends the sample's pcs behind w->pc_count, without a 0: some readers stop at one. */
static int gather_pcs(struct writer *w, const struct profile_sample *sample, struct record *r)
{
	const uint32_t *frames = w->p->frames + sample->first_frame;

	*r = (struct record){ .first_pc = w->pc_count };
	if (array_reserve(&w->pcs, &w->pc_room, w->pc_count + DEPTH_MAX, sizeof(*w->pcs)))
		return -ENOMEM;
	for (uint32_t i = 0; i < sample->depth && r->depth < DEPTH_MAX; i++) {
		uint64_t pc = file_pc(w, frames[i], r->depth == 0);

		if (w->bits == 32 && pc > UINT32_MAX)
			return TOO_NARROW;
		if (pc)
			w->pcs[w->pc_count + r->depth++] = pc;
	}
	return 0;
}

static int add_record(struct writer *w, const struct record *r)
{
	if (array_reserve(&w->records, &w->record_room, w->record_count + 1, sizeof(*w->records)))
		return -ENOMEM;
	w->records[w->record_count++] = *r;
	return 0;
}

/* Adds a sample to the record of its stack: labels do not tell stacks apart in the file. */
static int gather_sample(struct writer *w, const struct profile_sample *sample, uint64_t count)
{
	struct record r;
	uint64_t hash;
	uint32_t id;
	int err = gather_pcs(w, sample, &r);

	if (err || r.depth == 0)
		return err;
	r.count = count;
	hash = hash_bytes(w->pcs + r.first_pc, r.depth * sizeof(*w->pcs), 0);
	id = index_find(&w->stacks, hash, same_stack, w, &r);
	if (id != INDEX_NONE) {
		if (__builtin_add_overflow(w->records[id].count, count, &w->records[id].count))
			w->records[id].count = UINT64_MAX;
		return 0;
	}
	w->pc_count += r.depth;
	err = index_add(&w->stacks, hash, w->record_count);
	return err ? err : add_record(w, &r);
}

/* Appends records for what a 32-bit slot cannot hold of a count. */
static int split_counts(struct writer *w)
{
	size_t count = w->record_count;

	if (w->bits != 32)
		return 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t rest = w->records[i].count;

		if (rest / UINT32_MAX > SPLITS_MAX)
			return TOO_NARROW;
		while (rest > UINT32_MAX) {
			struct record part = w->records[i];

			part.count = UINT32_MAX;
			rest -= UINT32_MAX;
			if (add_record(w, &part))
				return -ENOMEM;
		}
		w->records[i].count = rest;
	}
	return 0;
}

/* A pc that is second in some stacks, and in how many. */
struct second {
	uint64_t pc;
	size_t count;
};

static bool same_pc(const void *array, uint32_t id, const void *key)
{
	const struct second *seconds = array;
	const uint64_t *pc = key;

	return seconds[id].pc == *pc;
}

static int commonest_second(struct writer *w, struct second *commonest)
{
	struct second *seconds = calloc(w->record_count + 1, sizeof(*seconds));
	size_t used = 0;
	int err = 0;

	*commonest = (struct second){ 0 };
	if (!seconds)
		return -ENOMEM;
	for (size_t i = 0; i < w->record_count && !err; i++) {
		uint64_t pc, hash;
		uint32_t id;

		if (w->records[i].depth < 2)
			continue;
		pc = w->pcs[w->records[i].first_pc + 1];
		hash = hash_u64(pc, 0);
		id = index_find(&w->seconds, hash, same_pc, seconds, &pc);
		if (id == INDEX_NONE) {
			id = used++;
			seconds[id].pc = pc;
			err = index_add(&w->seconds, hash, id);
		}
		if (++seconds[id].count > commonest->count)
			*commonest = seconds[id];
	}
	free(seconds);
	return err;
}

/* Makes two records of the only one, or a file of one tick that go's two passes leave alone. */
static int guard_only_record(struct writer *w)
{
	struct record copy = w->records[0];

	if (copy.count == 1) {
		w->records[0].leaf_copies = 2;
		return 0;
	}
	w->records[0].count--;
	copy.count = 1;
	copy.leaf_copies = 1;
	return add_record(w, &copy);
}

/*
 * Readers take a caller that is second in (nearly) all records for the profiler's own frame and
 * strip it: go's pprof when it is in all but one of 32 of them, google-pprof in all. Both take a
 * repeated leaf for what it is, so that repeating it in just enough records saves the caller.
 */
static int guard_callers(struct writer *w)
{
	size_t enough = w->record_count - w->record_count / 32;
	struct second second;
	size_t repeat;
	int err = commonest_second(w, &second);

	if (err || second.count == 0 || second.count < enough)
		return err;
	if (w->record_count == 1)
		return guard_only_record(w);
	repeat = second.count - enough + 1;
	for (size_t i = w->record_count; i-- > 0 && repeat;) {
		struct record *r = &w->records[i];

		if (r->depth >= 2 && w->pcs[r->first_pc + 1] == second.pc) {
			r->leaf_copies = 1;
			repeat--;
		}
	}
	return 0;
}

static int gather(struct writer *w)
{
	const struct profile *p = w->p;
	size_t value = profile_count_value(p);
	int err = address_space_init(&w->space, p, w->bits);

	if (err)
		return err == -ENOSPC ? TOO_NARROW : err;
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		int64_t count = p->values[i * p->value_type_count + value];

		if (count > 0)
			err = gather_sample(w, &p->samples[i], count);
	}
	if (!err)
		err = split_counts(w);
	return err ? err : guard_callers(w);
}

static void discard(struct writer *w)
{
	address_space_free(&w->space);
	index_free(&w->stacks);
	index_free(&w->seconds);
	free(w->records);
	free(w->pcs);
	*w = (struct writer){ .p = w->p, .out = w->out, .bits = w->bits };
}

static void put_slot(const struct writer *w, uint64_t value)
{
	unsigned int size = w->bits / 8;
	uint8_t bytes[8];

	for (unsigned int i = 0; i < size; i++)
		bytes[w->p->big_endian ? size - 1 - i : i] = value >> 8 * i;
	fwrite(bytes, 1, size, w->out);
}

static void put_header(const struct writer *w)
{
	uint64_t period_us = w->p->period_ns / 1000 + (w->p->period_ns % 1000 >= 500);

	if (period_us == 0)
		period_us = 1;
	if (w->bits == 32 && period_us > UINT32_MAX)
		period_us = UINT32_MAX;
	put_slot(w, 0);
	put_slot(w, 3);
	put_slot(w, 0);
	put_slot(w, period_us);
	put_slot(w, 0);
}

static void put_record(const struct writer *w, const struct record *r)
{
	uint32_t depth = r->depth + r->leaf_copies;

	if (depth > DEPTH_MAX)
		depth = DEPTH_MAX;
	put_slot(w, r->count);
	put_slot(w, depth);
	for (uint32_t i = 0; i < depth; i++)
		put_slot(w, w->pcs[r->first_pc + (i < r->leaf_copies ? 0 : i - r->leaf_copies)]);
}

/* As the kernel does: a newline in a path would end the line. */
static void put_path(const struct writer *w, const char *path)
{
	if (image_is_kernel(path))
		path = IMAGE_KERNEL "_text";
	for (size_t i = 0; path[i] && i < PATH_WIDTH; i++) {
		if (path[i] == '\n')
			fputs("\\012", w->out);
		else
			fputc(path[i], w->out);
	}
}

static void put_mapping(const struct writer *w, uint32_t id)
{
	const struct profile_mapping *m = &w->p->mappings[id];
	uint64_t start = w->space.start[id];

	if (m->start >= m->limit || w->space.home[id] != id)
		return;
	fprintf(w->out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0%21s", start,
		start + (m->limit - m->start), m->offset, "");
	put_path(w, w->p->images[m->image].path);
	fputc('\n', w->out);
}

static void put_all(const struct writer *w)
{
	put_header(w);
	for (size_t i = 0; i < w->record_count; i++)
		put_record(w, &w->records[i]);
	put_slot(w, 0);
	put_slot(w, 1);
	put_slot(w, 0);
	for (size_t i = 0; i < w->p->mapping_count; i++)
		put_mapping(w, i);
}

int gperftools_write(const struct profile *p, FILE *out, struct error *e)
{
	struct writer w = { .p = p, .out = out, .bits = p->bits == 32 ? 32 : 64 };
	int err = gather(&w);

	if (err == TOO_NARROW) {
		discard(&w);
		w.bits = 64;
		err = gather(&w);
	}
	if (!err)
		put_all(&w);
	discard(&w);
	if (err)
		return error_no_memory(e);
	if (ferror(out))
		return error_set(e, errno, "cannot write");
	return 0;
}
