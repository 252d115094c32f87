// SPDX-License-Identifier: GPL-2.0-only
#include "format/gperftools/gperftools.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define HEADER_WORDS_MIN 3
/* Bound: files: words of a header; then: the file is refused. */
#define HEADER_WORDS_MAX 65535

enum version {
	VERSION_NATIVE = 0,
	VERSION_JAVA = 1
};

struct reader {
	struct input *in;
	struct profile *p;
	struct error *e;
	size_t slot; /* bytes: 4 or 8 */
	bool big_endian;
	bool symbolized; /* has names as text */
	uint64_t version;
	bool trailer;
	uint32_t labels;
	uint32_t *frames;
	size_t frame_room;
	/* For warnings */
	uint64_t zero_counts;
	uint64_t zero_pcs;
	uint64_t no_pcs;
};

/* A record at the beginning of the window. */
struct record {
	uint64_t count;
	uint64_t depth;
	size_t size; /* bytes */
};

/* Returns the value of the slot at this offset in the window. */
static uint64_t slot_at(const struct reader *r, size_t offset)
{
	uint32_t narrow;
	uint64_t wide;

	if (r->slot == sizeof(narrow)) {
		memcpy(&narrow, r->in->bytes + offset, sizeof(narrow));
		return r->big_endian ? be32toh(narrow) : le32toh(narrow);
	}
	memcpy(&wide, r->in->bytes + offset, sizeof(wide));
	return r->big_endian ? be64toh(wide) : le64toh(wide);
}

/* Sets the slots' width and byte order: those in which the first two slots are valid. */
static bool identify_slots(struct reader *r)
{
	for (r->slot = 4; r->slot <= 8; r->slot += 4) {
		if (r->in->size < 2 * r->slot)
			return false;
		for (int big = 0; big < 2; big++) {
			uint64_t words;

			r->big_endian = big;
			words = slot_at(r, r->slot);
			if (slot_at(r, 0) == 0 && words >= HEADER_WORDS_MIN &&
			    words <= HEADER_WORDS_MAX)
				return true;
		}
	}
	return false;
}

static bool gperftools_detect(const struct input *in)
{
	struct input window = *in;
	struct reader r = { .in = &window };

	return gperftools_symbols_begin(in) || identify_slots(&r);
}

static uint64_t multiply_saturating(uint64_t a, uint64_t b, uint64_t max)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) || product > max ? max : product;
}

static int read_header(struct reader *r)
{
	const struct profile_labels none = { .comm = "" };
	uint64_t words = slot_at(r, r->slot), period_us, tick_ns = 0;
	size_t size = (2 + words) * r->slot;
	struct profile *p = r->p;
	int err = input_need(r->in, size, r->e);

	if (err)
		return err;
	if (r->in->size < size)
		return input_error(r->in, r->in->offset + r->in->size, r->e,
				   "the header of %zu bytes is truncated", size);
	r->version = slot_at(r, 2 * r->slot);
	if (r->version > VERSION_JAVA)
		return input_error(r->in, r->in->offset + 2 * r->slot, r->e,
				   "version %" PRIu64 " is unsupported: only 0 and 1 are",
				   r->version);
	p->bits = r->slot * 8;
	p->big_endian = r->big_endian;
	p->return_addresses = r->version == VERSION_NATIVE && !r->symbolized;
	/* 1 is "unknown" in files by google-pprof --raw, and in ours: no clock ticks so often. */
	period_us = slot_at(r, 3 * r->slot);
	if (period_us == 0)
		err = profile_warn(p, "the header has a sampling period of 0: times are unknown");
	if (period_us > 1)
		tick_ns = multiply_saturating(period_us, 1000, UINT64_MAX);
	err = err ?: profile_add_clock(p, tick_ns);
	err = err ?: profile_add_labels(p, &none, &r->labels);
	if (!err && slot_at(r, 4 * r->slot) != 0)
		err = profile_warn(p, "the header's padding is not 0: other readers reject the "
				      "file");
	if (!err && words > HEADER_WORDS_MIN)
		err = profile_warn(p, "the header has %" PRIu64 " unknown words",
				   words - HEADER_WORDS_MIN);
	if (!err)
		input_skip(r->in, size);
	return err;
}

/*
 * Sets *record to the next one, all of which is in the window then. *more: false after the last
 * record, with the window at the text. Returns 0 or -errno with r->e set.
 */
static int next_record(struct reader *r, struct record *record, bool *more)
{
	size_t left;
	int err = input_need(r->in, 3 * r->slot, r->e);

	*more = false;
	if (err || r->in->size == 0)
		return err;
	if (r->in->size >= 3 * r->slot && slot_at(r, 0) == 0 && slot_at(r, r->slot) == 1 &&
	    slot_at(r, 2 * r->slot) == 0) {
		r->trailer = true;
		input_skip(r->in, 3 * r->slot);
		return 0;
	}
	*record = (struct record){ .size = 2 * r->slot };
	if (r->in->size >= record->size) {
		record->count = slot_at(r, 0);
		record->depth = slot_at(r, r->slot);
	}
	record->size += multiply_saturating(record->depth, r->slot, SIZE_MAX - record->size);
	err = input_need(r->in, record->size < INPUT_WINDOW ? record->size : INPUT_WINDOW, r->e);
	if (!err && r->in->size < record->size) {
		/* Without a trailer, the text after the records looks like a very deep stack. */
		if (gperftools_maps_begin(r->in))
			return 0;
		err = input_need(r->in, record->size, r->e);
	}
	if (err)
		return err;
	*more = r->in->size >= record->size;
	if (*more)
		return 0;
	left = r->in->size / r->slot;
	if (left < 2)
		return input_error(r->in, r->in->offset, r->e,
				   "the file ends within a record: it is truncated");
	return input_error(r->in, r->in->offset, r->e,
			   "a record of %" PRIu64 " pcs, but the rest of the file has %zu: it is "
			   "truncated or corrupt",
			   record->depth, left - 2);
}

/* Adds a record. Locations have no mapping yet: the memory map follows the records. */
static int add_record(struct reader *r, const struct record *record)
{
	uint32_t copies = 0; /* of the leaf */
	int64_t values[2];

	/*
	 * A leaf stands twice where readers would else strip a frame of the profiler's own: it is
	 * one frame. That of a call has its return address, which is not that of the leaf.
	 */
	while (r->p->return_addresses && copies + 1 < record->depth &&
	       slot_at(r, (3 + (size_t)copies) * r->slot) == slot_at(r, 2 * r->slot))
		copies++;
	if (array_reserve(&r->frames, &r->frame_room, record->depth + 1, sizeof(*r->frames)))
		return -ENOMEM;
	for (uint32_t i = 0; i < record->depth - copies; i++) {
		uint64_t address = slot_at(r, (2 + (size_t)copies + i) * r->slot);

		r->zero_pcs += address == 0;
		if (i > 0) {
			bool is_return = r->p->return_addresses;

			/*
			 * The address in a caller's call instruction. In symbolized files, pc is
			 * that address; or, in those from a server, a return address, and only the
			 * names have the address in the call.
			 */
			if (r->symbolized)
				is_return = profile_find_location(r->p, address, PROFILE_NONE) ==
						    PROFILE_NONE &&
					    profile_find_location(r->p, address - 1,
								  PROFILE_NONE) != PROFILE_NONE;
			address -= is_return;
		}
		if (profile_add_location(r->p, address, PROFILE_NONE, &r->frames[i]))
			return -ENOMEM;
	}
	r->zero_counts += record->count == 0;
	r->no_pcs += record->depth == 0;
	profile_set_ticks(r->p, record->count, values);
	return profile_add_sample(r->p, r->frames, record->depth - copies, r->labels, values);
}

/* --- Mappings --- */

/* The mappings of a profile in the order of their addresses. */
struct mapping_index {
	struct mapping_entry {
		uint64_t start;
		uint64_t limit;
		uint64_t limit_so_far; /* highest limit up to this entry */
		uint32_t mapping;
	} * entries;
	size_t count;
};

static int compare_start(const void *x, const void *y)
{
	const struct mapping_entry *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* mapping_index_find() searches downwards, and has to find the first in the file. */
	return a->mapping > b->mapping ? -1 : a->mapping < b->mapping;
}

static int mapping_index_init(struct mapping_index *index, const struct profile *p)
{
	uint64_t limit = 0;

	index->count = p->mapping_count;
	index->entries = calloc(index->count + 1, sizeof(*index->entries));
	if (!index->entries)
		return -ENOMEM;
	for (size_t i = 0; i < index->count; i++)
		index->entries[i] = (struct mapping_entry){ .start = p->mappings[i].start,
							    .limit = p->mappings[i].limit,
							    .mapping = i };
	qsort(index->entries, index->count, sizeof(*index->entries), compare_start);
	for (size_t i = 0; i < index->count; i++) {
		if (limit < index->entries[i].limit)
			limit = index->entries[i].limit;
		index->entries[i].limit_so_far = limit;
	}
	return 0;
}

/* Returns the mapping that contains the address, or PROFILE_NONE. */
static uint32_t mapping_index_find(const struct mapping_index *index, uint64_t address)
{
	size_t low = 0, high = index->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low && index->entries[low - 1].limit_so_far > address; low--)
		if (index->entries[low - 1].limit > address)
			return index->entries[low - 1].mapping;
	return PROFILE_NONE;
}

static int add_warnings(struct reader *r)
{
	struct profile *p = r->p;

	/* Files by google-pprof --raw have neither trailer nor map. */
	if ((!r->trailer && !r->symbolized &&
	     profile_warn(p, "the trailer after the records is missing: the file may be "
			     "truncated")) ||
	    (r->zero_counts &&
	     profile_warn(p, "%" PRIu64 " record(s) have a count of 0", r->zero_counts)) ||
	    (r->zero_pcs && profile_warn(p, "%" PRIu64 " pc(s) are 0", r->zero_pcs)) ||
	    (r->no_pcs &&
	     profile_warn(p, "%" PRIu64 " record(s) have a count but no pc", r->no_pcs)) ||
	    (p->mapping_count == 0 && p->return_addresses &&
	     profile_warn(p, "the file has no memory map: addresses cannot be resolved to names")))
		return -ENOMEM;
	return 0;
}

static int gperftools_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	struct mapping_index mappings = { 0 };
	struct record record = { 0 };
	bool more = true;
	int err = 0;

	/* Names as text may precede the slots. */
	if (!identify_slots(&r)) {
		err = gperftools_read_symbols(in, p, &r.symbolized, e);
		err = err ?: input_need(in, 2 * sizeof(uint64_t), e);
		if (!err && !identify_slots(&r))
			err = input_error(in, in->offset, e,
					  "no CPU profile follows the line \"--- profile\"");
	}
	err = err ?: read_header(&r);
	while (!err && more) {
		input_skip(in, record.size);
		err = next_record(&r, &record, &more);
		if (!err && more)
			err = add_record(&r, &record);
	}
	if (!err) {
		/* The text after the records; after an error, as much of it as there is. */
		err = input_need_all(in, e);
		if (gperftools_read_maps(in, p) ||
		    (r.version == VERSION_JAVA && gperftools_read_names(in, p)) ||
		    mapping_index_init(&mappings, p))
			err = -ENOMEM;
		for (size_t i = 0; i < p->location_count && err != -ENOMEM; i++) {
			uint32_t mapping = mapping_index_find(&mappings, p->locations[i].address);

			if (mapping != PROFILE_NONE && profile_place_location(p, i, mapping))
				err = -ENOMEM;
		}
		free(mappings.entries);
	}
	err = err ?: add_warnings(&r);
	free(r.frames);
	return err;
}

const struct format format_gperftools = {
	.name = "gperftools",
	.extensions = (const char *const[]){ ".prof", NULL },
	.keeps = KEEPS(ADDRESSES) | KEEPS(STACKS) | KEEPS(IMAGES) | KEEPS(MAPPINGS) | KEEPS(PERIOD),
	.depth_max = GPERFTOOLS_DEPTH_MAX,
	.streams = true,
	.detect = gperftools_detect,
	.read = gperftools_read,
	.write = gperftools_write,
	.dropped_samples = gperftools_dropped_samples,
	.cannot_hold = "frames without an address",
};
