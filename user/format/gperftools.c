// SPDX-License-Identifier: GPL-2.0-only
#include "format/gperftools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/mapping_index.h"
#include "util/array.h"

#define HEADER_WORDS_MIN 3
#define HEADER_WORDS_MAX 65535

enum version {
	VERSION_NATIVE = 0,
	VERSION_JAVA = 1
};

struct reader {
	const struct input *in;
	struct profile *p;
	struct error *e;
	size_t slot; /* bytes: 4 or 8 */
	bool big_endian;
	uint64_t version;
	size_t records; /* offset of the first record */
	size_t text;	/* offset of the memory map */
	bool trailer;
	struct mapping_index mappings;
	uint32_t *frames;
	size_t frame_room;
	/* What was overlooked */
	uint64_t zero_counts;
	uint64_t zero_pcs;
	uint64_t no_pcs;
};

struct record {
	uint64_t count;
	uint32_t depth;
	size_t pcs; /* offset */
};

static uint64_t slot_at(const struct reader *r, size_t offset)
{
	const uint8_t *bytes = r->in->bytes + offset;
	uint64_t value = 0;

	for (size_t i = 0; i < r->slot; i++)
		value = value << 8 | bytes[r->big_endian ? i : r->slot - 1 - i];
	return value;
}

/* Width and byte order are those in which the first two slots make sense. */
static bool identify(struct reader *r)
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

/* What google-pprof --raw writes: names in text, then the profile with addresses converted. */
static bool is_symbolized(const struct input *in)
{
	static const char head[] = "--- symbol";

	return in->size >= strlen(head) && memcmp(in->bytes, head, strlen(head)) == 0;
}

static bool gperftools_detect(const struct input *in)
{
	struct reader r = { .in = in };

	return is_symbolized(in) || identify(&r);
}

static uint64_t multiply_saturating(uint64_t a, uint64_t b, uint64_t max)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) || product > max ? max : product;
}

static int read_header(struct reader *r)
{
	uint64_t words = slot_at(r, r->slot);
	uint64_t period_us;

	r->records = (2 + words) * r->slot;
	if (r->records > r->in->size)
		return input_error(r->in, r->in->size, r->e,
				   "the file ends in its header of %zu bytes", r->records);
	r->version = slot_at(r, 2 * r->slot);
	if (r->version > VERSION_JAVA)
		return input_error(r->in, 2 * r->slot, r->e,
				   "version %" PRIu64 " of the format: only 0 and 1 are known",
				   r->version);
	period_us = slot_at(r, 3 * r->slot);
	r->p->period_ns = multiply_saturating(period_us, 1000, UINT64_MAX);
	r->p->bits = r->slot * 8;
	r->p->big_endian = r->big_endian;
	r->p->return_addresses = r->version == VERSION_NATIVE;
	if (period_us == 0 && profile_warn(r->p, "the header has a sampling period of 0: times "
						 "are not known"))
		return error_no_memory(r->e);
	if (slot_at(r, 4 * r->slot) != 0 &&
	    profile_warn(r->p, "the header's padding is not 0: other readers reject the file"))
		return error_no_memory(r->e);
	if (words > HEADER_WORDS_MIN &&
	    profile_warn(r->p, "the header has %" PRIu64 " more words than are known", words - 3))
		return error_no_memory(r->e);
	if (profile_add_value_type(r->p, "samples", "count") ||
	    profile_add_value_type(r->p, "cpu", "nanoseconds"))
		return error_no_memory(r->e);
	return 0;
}

/* No record can stand here: text where the trailer was forgotten is fine, all else is not. */
static int no_record(struct reader *r, size_t offset, uint64_t depth, size_t left)
{
	if (gperftools_maps_begin(r->in, offset))
		return 0;
	if (left < 2)
		return input_error(r->in, offset, r->e,
				   "the file ends within a record: it is truncated");
	return input_error(r->in, offset, r->e,
			   "a record of %" PRIu64 " pcs, where only %zu fit in the file: it is "
			   "truncated or corrupt",
			   depth, left - 2);
}

static bool is_trailer(const struct reader *r, size_t offset)
{
	return r->in->size - offset >= 3 * r->slot && slot_at(r, offset) == 0 &&
	       slot_at(r, offset + r->slot) == 1 && slot_at(r, offset + 2 * r->slot) == 0;
}

/*
 * Reads the record at *offset and moves behind it. Returns 1, or 0 when the records are over
 * (*offset is then where the text begins), or a negative errno.
 */
static int next_record(struct reader *r, size_t *offset, struct record *record)
{
	size_t left = r->in->size - *offset;
	uint64_t depth;

	if (left == 0)
		return 0;
	if (is_trailer(r, *offset)) {
		r->trailer = true;
		*offset += 3 * r->slot;
		return 0;
	}
	left /= r->slot;
	depth = left < 2 ? 0 : slot_at(r, *offset + r->slot);
	if (left < 2 || depth > left - 2)
		return no_record(r, *offset, depth, left);
	record->count = slot_at(r, *offset);
	record->depth = depth;
	record->pcs = *offset + 2 * r->slot;
	*offset = record->pcs + depth * r->slot;
	return 1;
}

/* The map stands behind the records, and they cannot be understood without it. */
static int find_text(struct reader *r)
{
	struct record record;
	int more;

	r->text = r->records;
	do {
		more = next_record(r, &r->text, &record);
	} while (more > 0);
	return more;
}

static int add_frame(struct reader *r, const struct record *record, uint32_t i)
{
	uint64_t address = slot_at(r, record->pcs + i * r->slot);

	if (address == 0)
		r->zero_pcs++;
	if (i > 0 && r->p->return_addresses)
		address--;
	return profile_add_location(r->p, address, mapping_index_find(&r->mappings, address),
				    &r->frames[i]);
}

static int add_record(struct reader *r, const struct record *record, uint32_t labels)
{
	int64_t values[2];

	if (array_reserve(&r->frames, &r->frame_room, record->depth + 1, sizeof(*r->frames)))
		return error_no_memory(r->e);
	for (uint32_t i = 0; i < record->depth; i++)
		if (add_frame(r, record, i))
			return error_no_memory(r->e);
	r->zero_counts += record->count == 0;
	r->no_pcs += record->depth == 0;
	values[0] = record->count > INT64_MAX ? INT64_MAX : record->count;
	values[1] = multiply_saturating(record->count, r->p->period_ns, INT64_MAX);
	if (profile_add_sample(r->p, r->frames, record->depth, labels, values))
		return error_no_memory(r->e);
	return 0;
}

static int read_records(struct reader *r)
{
	const struct profile_labels none = { .comm = "" };
	size_t offset = r->records;
	struct record record;
	uint32_t labels;
	int err;

	if (profile_add_labels(r->p, &none, &labels))
		return error_no_memory(r->e);
	while ((err = next_record(r, &offset, &record)) > 0) {
		err = add_record(r, &record, labels);
		if (err)
			return err;
	}
	return err;
}

static int warn(struct reader *r)
{
	struct profile *p = r->p;

	if ((!r->trailer && profile_warn(p, "the trailer behind the records is missing: the end of "
					    "the file may be lost")) ||
	    (r->zero_counts &&
	     profile_warn(p, "%" PRIu64 " record(s) have a count of 0", r->zero_counts)) ||
	    (r->zero_pcs && profile_warn(p, "%" PRIu64 " pc(s) are 0", r->zero_pcs)) ||
	    (r->no_pcs &&
	     profile_warn(p, "%" PRIu64 " record(s) have a count but no pc", r->no_pcs)))
		return error_no_memory(r->e);
	if (p->mapping_count == 0 && r->version == VERSION_NATIVE &&
	    profile_warn(p, "the file has no map of the memory: addresses cannot be named"))
		return error_no_memory(r->e);
	return 0;
}

static int read_all(struct reader *r)
{
	int err = read_header(r);

	if (!err)
		err = find_text(r);
	if (!err)
		err = gperftools_read_maps(r->in, r->text, r->p, r->e);
	if (err)
		return err;
	if (mapping_index_init(&r->mappings, r->p))
		return error_no_memory(r->e);
	err = read_records(r);
	if (!err && r->version == VERSION_JAVA)
		err = gperftools_read_names(r->in, r->text, r->p, r->e);
	return err ? err : warn(r);
}

static int gperftools_read(const struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	int err;

	if (is_symbolized(in)) {
		error_set(e, 0, "%s: a symbolized profile (of google-pprof --raw) is not read here",
			  in->path);
		error_mend(e, "give the file that google-pprof was given");
		return -EINVAL;
	}
	if (!identify(&r))
		return error_set(e, 0, "%s is not a gperftools profile", in->path);
	err = read_all(&r);
	mapping_index_free(&r.mappings);
	free(r.frames);
	return err;
}

static const char *const extensions[] = { ".prof", ".cpuprofile", NULL };

const struct format format_gperftools = {
	.name = "gperftools",
	.extensions = extensions,
	.loses = "names, lines and build IDs, processes, threads and the account of ticks",
	.detect = gperftools_detect,
	.read = gperftools_read,
	.write = gperftools_write,
};
