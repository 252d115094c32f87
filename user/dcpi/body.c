// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "dcpi/body.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/order.h"
#include "util/sum.h"

#define WORD	     ((size_t)4)
#define CHUNK_WORDS  ((size_t)2) /* offset and number */
#define FOOTER_WORDS ((size_t)2)
/* Bound: format. */
#define STRIDE_MAX 64 /* no machine's instructions are longer */

struct reader {
	const struct input *in;
	struct error *e;
	uint64_t tstart, tsize, stride;
	size_t words;	   /* before the footer */
	uint64_t end;	   /* of the previous chunk, as an offset from tstart */
	uint64_t previous; /* the previous chunk's offset */
	uint64_t addresses, total;
};

static uint32_t word_at(const struct input *in, size_t number)
{
	const uint8_t *b = in->bytes + number * WORD;

	return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t file_offset(const struct reader *r, size_t word)
{
	return r->in->offset + word * WORD;
}

/* offset and number have 64 bits, so that no sum wraps. */
static int check_chunk(struct reader *r, size_t at, uint64_t offset, uint64_t number)
{
	uint64_t left = r->words - at - CHUNK_WORDS;
	uint64_t end = offset + (number - 1) * r->stride + 1;

	if (number == 0)
		return input_error(r->in, file_offset(r, at + 1), r->e, "a chunk without counts");
	if (number > left)
		return input_error(r->in, file_offset(r, at + 1), r->e,
				   "a chunk of %" PRIu64 " counts, where only %" PRIu64
				   " stand in front of the footer: it is truncated or corrupt",
				   number, left);
	if (at && offset <= r->previous)
		return input_error(r->in, file_offset(r, at), r->e,
				   "a chunk's offset 0x%" PRIx64 " is not above 0x%" PRIx64
				   ", that of the chunk before: they are not sorted",
				   offset, r->previous);
	if (offset < r->end)
		return input_error(r->in, file_offset(r, at), r->e,
				   "a chunk begins at offset 0x%" PRIx64
				   ", before the end of the one before at 0x%" PRIx64
				   ": they overlap",
				   offset, r->end);
	if (end > r->tsize)
		return input_error(r->in, file_offset(r, at), r->e,
				   "a chunk reaches to offset 0x%" PRIx64
				   ", outside of the text of %" PRIu64 " bytes",
				   end, r->tsize);
	r->previous = offset;
	r->end = offset + number * r->stride;
	return 0;
}

/* Reads the chunk at word *at, and moves *at behind it. */
static int read_chunk(struct reader *r, size_t *at,
		      int (*each)(const struct dcpi_count *count, void *context), void *context)
{
	uint64_t offset, number;
	int err;

	if (r->words - *at <= CHUNK_WORDS)
		return input_error(r->in, file_offset(r, *at), r->e,
				   "a chunk runs into the footer: it is truncated or corrupt");
	offset = word_at(r->in, *at);
	number = word_at(r->in, *at + 1);
	err = check_chunk(r, *at, offset, number);
	*at += CHUNK_WORDS;
	for (uint64_t i = 0; i < number && !err; i++, ++*at) {
		struct dcpi_count c = { r->tstart + offset + i * r->stride, word_at(r->in, *at) };

		if (c.count && each(&c, context))
			return error_no_memory(r->e);
		r->addresses += c.count != 0;
		r->total += c.count;
	}
	return err;
}

int dcpi_body_read(const struct input *in, const struct dcpi_header *h,
		   int (*each)(const struct dcpi_count *count, void *context), void *context,
		   struct error *e)
{
	const struct dcpi_field *stride = &h->fields[DCPI_STRIDE];
	struct reader r = {
		.in = in,
		.e = e,
		.tstart = h->fields[DCPI_TSTART].number,
		.tsize = h->fields[DCPI_TSIZE].number,
	};
	uint32_t addresses, total;
	int err = 0;

	/* The file's own line overrides the user's option. */
	r.stride = stride->given ? stride->number : in->options.stride ?: 1;
	if (!r.stride || r.stride > STRIDE_MAX)
		return input_line_error(in, e, "a stride of %" PRIu64 " bytes", r.stride);
	if (in->size < FOOTER_WORDS * WORD)
		return input_error(in, in->offset + in->size, e,
				   "the file ends before its footer of 8 bytes: it is truncated");
	if (in->size % WORD)
		return input_error(
			in, in->offset + in->size, e,
			"a body of %zu bytes, which is no multiple of 4: it is truncated "
			"or corrupt",
			in->size);
	r.words = in->size / WORD - FOOTER_WORDS;
	for (size_t at = 0; !err && at < r.words;)
		err = read_chunk(&r, &at, each, context);
	if (err)
		return err;
	addresses = word_at(in, r.words);
	total = word_at(in, r.words + 1);
	if (addresses != r.addresses)
		return input_error(in, file_offset(&r, r.words), e,
				   "the footer has %" PRIu32
				   " addresses with samples, but there are %" PRIu64,
				   addresses, r.addresses);
	if (total != r.total)
		return input_error(in, file_offset(&r, r.words + 1), e,
				   "the footer has %" PRIu32 " samples, but the counts add up "
				   "to %" PRIu64 "%s",
				   total, r.total,
				   total == (uint32_t)r.total ? ": it has wrapped" : "");
	return 0;
}

ORDER(by_address, struct dcpi_count, LEAST(address))

size_t dcpi_body_fold(struct dcpi_count *counts, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(counts, count, sizeof(*counts), by_address);
	for (size_t i = 0; i < count; i++) {
		if (kept && counts[kept - 1].address == counts[i].address)
			add_u64(&counts[kept - 1].count, counts[i].count);
		else
			counts[kept++] = counts[i];
	}
	return kept;
}

size_t dcpi_body_check(const struct dcpi_count *counts, size_t count, uint64_t tstart)
{
	size_t i = 0;

	while (i < count && counts[i].count <= UINT32_MAX &&
	       counts[i].address - tstart <= UINT32_MAX)
		i++;
	return i;
}

uint64_t dcpi_body_total(const struct dcpi_count *counts, size_t count)
{
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++)
		add_u64(&total, counts[i].count);
	return total;
}

static void write_word(uint32_t word, FILE *out)
{
	const uint8_t bytes[WORD] = { word, word >> 8, word >> 16, word >> 24 };

	fwrite(bytes, WORD, 1, out);
}

void dcpi_body_write(const struct dcpi_count *counts, size_t count, uint64_t tstart, FILE *out)
{
	for (size_t i = 0, run; i < count; i += run) {
		/* A chunk has the counts of adjacent addresses. */
		run = 1;
		while (i + run < count && counts[i + run].address == counts[i].address + run)
			run++;
		write_word(counts[i].address - tstart, out);
		write_word(run, out);
		for (size_t j = i; j < i + run; j++)
			write_word(counts[j].count, out);
	}
	write_word(count, out);
	write_word(dcpi_body_total(counts, count), out);
}
