// SPDX-License-Identifier: GPL-2.0-only
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/gperftools/address_space.h"
#include "format/gperftools/gperftools.h"
#include "profile/image_name.h"

/*
 * If a count needs more 32-bit records than this, the file gets 64-bit slots.
 * Bound: caller: records of a count in a file of 32 bits; then: the file has 64 bits; seen: not
 * seen.
 */
#define SPLITS_MAX 256

/* Longer paths are truncated: Go's pprof rejects a file with a line of 64 KiB. */
#define PATH_WIDTH 4096

/* 32 bits are too few: the caller tries again with 64. */
#define TOO_NARROW (-ERANGE)

struct writer {
	const struct profile *p;
	FILE *out;
	unsigned int bits;
	size_t value; /* the value type that is written */
	struct address_space space;
	uint64_t records; /* of the file; but put_samples() splits a single one */
	/* See guard_callers() */
	uint64_t second;  /* the pc after the leaf in most records, if there is one */
	uint64_t lead;	  /* its lead in the vote */
	uint64_t guarded; /* records with it that still have to get a second leaf */
};

/* A sample as it is written. */
struct stack {
	uint64_t count;
	uint32_t depth; /* 0: none of it can be written */
	uint64_t pcs[GPERFTOOLS_DEPTH_MAX];
};

/* The file has no address for what a script itself takes, nor is that its native caller's. */
static bool is_in_script(const struct profile *p, const struct profile_sample *sample)
{
	return sample->depth && profile_is_script(p, p->frames[sample->first_frame]);
}

/*
 * Sets *s to the sample, truncated to depth_max. Frames without an address are dropped: some
 * readers stop at a 0. Callers' pcs are return addresses, as readers expect.
 */
static void get_stack(const struct writer *w, size_t number, uint32_t depth_max, struct stack *s)
{
	const struct profile *p = w->p;
	const struct profile_sample *sample = &p->samples[number];
	int64_t count = p->values[number * p->value_type_count + w->value];

	s->count = count;
	s->depth = 0;
	if (is_in_script(p, sample))
		return;
	for (uint32_t i = 0; i < sample->depth && s->depth < depth_max && count > 0; i++) {
		uint32_t location = p->frames[sample->first_frame + i];
		uint64_t pc = 0;

		if (p->locations[location].address)
			pc = address_space_address(&w->space, location) + (s->depth > 0);
		if (pc)
			s->pcs[s->depth++] = pc;
	}
}

static uint64_t second_pc(const struct stack *s)
{
	return s->depth < 2 ? 0 : s->pcs[1];
}

static uint64_t record_count_max(const struct writer *w)
{
	return w->bits == 32 ? UINT32_MAX : UINT64_MAX;
}

/* The records that the stack needs: its count may not fit one slot. */
static uint64_t records_of(const struct writer *w, const struct stack *s)
{
	return s->depth ? (s->count - 1) / record_count_max(w) + 1 : 0;
}

/* The majority vote of Boyer and Moore: a pc with more than half of all votes leads in the end. */
static void vote_second_pc(struct writer *w, uint64_t pc, uint64_t votes)
{
	if (pc == w->second) {
		w->lead += votes;
	} else if (votes <= w->lead) {
		w->lead -= votes;
	} else {
		w->second = pc;
		w->lead = votes - w->lead;
	}
}

/* Counts the records, and finds the second pc of most of them. TOO_NARROW: 32 bits are too few. */
static int count_records(struct writer *w)
{
	for (size_t i = 0; i < w->p->sample_count; i++) {
		uint64_t records, bits = 0;
		struct stack s;

		get_stack(w, i, GPERFTOOLS_DEPTH_MAX, &s);
		records = records_of(w, &s);
		for (uint32_t j = 0; j < s.depth; j++)
			bits |= s.pcs[j];
		if (w->bits == 32 && (bits > UINT32_MAX || records > SPLITS_MAX))
			return TOO_NARROW;
		w->records += records;
		vote_second_pc(w, second_pc(&s), records);
	}
	return 0;
}

static int plan_records(struct writer *w, unsigned int bits)
{
	int err = address_space_init(&w->space, w->p, bits);

	w->bits = bits;
	w->records = w->second = w->lead = 0;
	if (err)
		return err == -ENOSPC ? TOO_NARROW : err;
	err = count_records(w);
	if (err) {
		address_space_free(&w->space);
	} else {
		uint64_t enough = w->records - w->records / 32, found = 0;

		/*
		 * Readers assume that a caller which is second in nearly all records is the
		 * profiler's own frame, and strip it: Go's pprof if it is second in 31 of 32
		 * records, google-pprof in all. Both merge a repeated leaf, so repeating it in just
		 * enough records keeps the caller.
		 */
		for (size_t i = 0; w->second && i < w->p->sample_count; i++) {
			struct stack s;

			get_stack(w, i, 2, &s);
			if (second_pc(&s) == w->second)
				found += records_of(w, &s);
		}
		w->guarded = found && found >= enough ? found - enough + 1 : 0;
	}
	return err;
}

static void put_slots(const struct writer *w, const uint64_t *slots, size_t count)
{
	uint8_t bytes[(2 + GPERFTOOLS_DEPTH_MAX) * sizeof(uint64_t)], *end = bytes;
	bool big = w->p->big_endian;

	for (size_t i = 0; i < count; i++) {
		uint32_t narrow = big ? htobe32(slots[i]) : htole32(slots[i]);
		uint64_t wide = big ? htobe64(slots[i]) : htole64(slots[i]);

		if (w->bits == 32)
			end = mempcpy(end, &narrow, sizeof(narrow));
		else
			end = mempcpy(end, &wide, sizeof(wide));
	}
	fwrite(bytes, 1, end - bytes, w->out);
}

static void put_record(const struct writer *w, const struct stack *s, uint64_t count,
		       uint32_t leaf_copies)
{
	uint32_t depth = s->depth + leaf_copies;
	uint64_t slots[2 + GPERFTOOLS_DEPTH_MAX];

	depth = MIN(depth, GPERFTOOLS_DEPTH_MAX);
	slots[0] = count;
	slots[1] = depth;
	for (uint32_t i = 0; i < depth; i++)
		slots[2 + i] = s->pcs[i < leaf_copies ? 0 : i - leaf_copies];
	put_slots(w, slots, 2 + depth);
}

static void put_samples(struct writer *w)
{
	for (size_t i = 0; i < w->p->sample_count; i++) {
		struct stack s;
		uint64_t part;

		get_stack(w, i, GPERFTOOLS_DEPTH_MAX, &s);
		if (!s.depth)
			continue;
		if (w->records == 1 && w->guarded) {
			/*
			 * Splits the only record in two; for a single tick, repeats the leaf twice
			 * for Go's two passes.
			 */
			if (s.count > 1)
				put_record(w, &s, s.count - 1, 0);
			put_record(w, &s, 1, s.count > 1 ? 1 : 2);
			continue;
		}
		for (uint64_t rest = s.count; rest; rest -= part) {
			bool guard = w->guarded && second_pc(&s) == w->second;

			part = MIN(rest, record_count_max(w));
			put_record(w, &s, part, guard);
			w->guarded -= guard;
		}
	}
}

static void put_mapping(const struct writer *w, uint32_t id)
{
	const struct profile_mapping *m = &w->p->mappings[id];
	const char *path = w->p->images[m->image].path;
	uint64_t start = w->space.start[id];

	if (m->start >= m->limit || w->space.home[id] != id)
		return;
	fprintf(w->out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0%21s", start,
		start + (m->limit - m->start), address_space_offset(m), "");
	if (image_is_kernel(path))
		path = IMAGE_KERNEL "_text";
	for (size_t left = PATH_WIDTH; left && *path; left--, path++) {
		/* As the kernel does in /proc/PID/maps. */
		if (*path == '\n')
			fputs("\\012", w->out);
		else
			fputc(*path, w->out);
	}
	fputc('\n', w->out);
}

uint64_t gperftools_dropped_samples(const struct profile *p, const struct format_options *options)
{
	size_t value = profile_value(p, options->value);
	uint64_t dropped = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		int64_t count = p->values[i * p->value_type_count + value];
		uint32_t depth = 0;

		while (depth < s->depth && !p->locations[p->frames[s->first_frame + depth]].address)
			depth++;
		if (count > 0 && (depth == s->depth || is_in_script(p, s)))
			dropped += count;
	}
	return dropped;
}

int gperftools_write(const struct profile *p, const struct format_options *options, FILE *out,
		     struct error *e)
{
	struct writer w = { .p = p, .out = out, .value = profile_value(p, options->value) };
	uint64_t tick_ns = profile_tick_ns(p), period_us = tick_ns / 1000 + (tick_ns % 1000 >= 500);
	int err = plan_records(&w, p->bits == 32 ? 32 : 64);

	if (err == TOO_NARROW)
		err = plan_records(&w, 64);
	if (err)
		return error_no_memory(e);
	if (w.records || !profile_magnitude(p, options->value)) {
		period_us = period_us ?: 1;
		if (w.bits == 32 && period_us > UINT32_MAX)
			period_us = UINT32_MAX;
		put_slots(&w, (uint64_t[]){ 0, 3, 0, period_us, 0 }, 5);
		put_samples(&w);
		put_slots(&w, (uint64_t[]){ 0, 1, 0 }, 3);
		for (size_t i = 0; i < p->mapping_count; i++)
			put_mapping(&w, i);
	} else {
		err = error_set(
			e, 0, "the profile has no addresses, which the gperftools format requires");
		error_hint(e, "write pprof, callgrind or folded instead");
	}
	address_space_free(&w.space);
	if (!err && ferror(out))
		return error_set(e, errno, "cannot write");
	return err;
}
