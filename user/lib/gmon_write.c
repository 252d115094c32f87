// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The contents of gmon.out: <sys/gmon_out.h>, in the program's byte order and pointer size, with
 * the image's own addresses. Records have no padding.
 */
#include "lib/gmon.h"

#include <errno.h>
#include <string.h>
#include <sys/gmon_out.h>
#include <unistd.h>

/* A buffer in front of a descriptor. After the first error, further writes do nothing. */
struct output {
	int fd;
	int err;
	size_t used;
	char *buffer;
};

/* Not on the stack, which may be a small one of a signal handler that calls exit(). */
static char output_buffer[1 << 15];

static void flush(struct output *out)
{
	size_t done = 0;

	while (!out->err && done < out->used) {
		ssize_t n = write(out->fd, out->buffer + done, out->used - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			out->err = -errno;
	}
	out->used = 0;
}

static void put(struct output *out, const void *data, size_t size)
{
	if (size > sizeof(output_buffer) - out->used)
		flush(out);
	memcpy(out->buffer + out->used, data, size);
	out->used += size;
}

static void put_tag(struct output *out, unsigned char tag)
{
	put(out, &tag, sizeof(tag));
}

static void put_header(struct output *out)
{
	struct gmon_hdr header = { .cookie = GMON_MAGIC };
	uint32_t version = GMON_VERSION;

	memcpy(header.version, &version, sizeof(header.version));
	put(out, &header, sizeof(header));
}

/* --- Histogram --- */

static void put_histogram_header(struct output *out, const struct gmon_histogram *h)
{
	uintptr_t low = h->range.low - h->range.load_bias;
	uintptr_t high = h->range.high - h->range.load_bias;
	struct gmon_hist_hdr header = { .dimen = "seconds", .dimen_abbrev = 's' };
	uint32_t rate = h->hz, count = h->cell_count;

	memcpy(header.low_pc, &low, sizeof(header.low_pc));
	memcpy(header.high_pc, &high, sizeof(header.high_pc));
	memcpy(header.hist_size, &count, sizeof(header.hist_size));
	memcpy(header.prof_rate, &rate, sizeof(header.prof_rate));
	put_tag(out, GMON_TAG_TIME_HIST);
	put(out, &header, sizeof(header));
}

/* Returns the part of a count for a record of 16-bit cells, behind `records` others of its range.
 */
static uint16_t part_of(uint64_t count, uint64_t records)
{
	uint64_t had = records * UINT16_MAX;

	if (count <= had)
		return 0;
	return count - had < UINT16_MAX ? count - had : UINT16_MAX;
}

/*
 * Writes as many records of the whole range as the largest count needs, and at least one: gprof
 * adds up those of one range, also of several files, and refuses others that overlap with it.
 */
static void put_histogram(struct output *out, const struct gmon_histogram *h)
{
	uint64_t largest = 1, records;

	for (size_t i = 0; i < h->cell_count; i++)
		if (h->counts[i] > largest)
			largest = h->counts[i];
	records = largest / UINT16_MAX + (largest % UINT16_MAX != 0);
	for (uint64_t record = 0; record < records && !out->err; record++) {
		put_histogram_header(out, h);
		for (size_t i = 0; i < h->cell_count; i++) {
			uint16_t cell = part_of(h->counts[i], record);

			put(out, &cell, sizeof(cell));
		}
	}
}

/* --- Call graph --- */

/* Writes as many records as the count needs: readers add them up. */
static void put_arc(struct output *out, uintptr_t from, uintptr_t self, uint64_t calls)
{
	struct gmon_cg_arc_record record;
	uint32_t count;

	memcpy(record.from_pc, &from, sizeof(record.from_pc));
	memcpy(record.self_pc, &self, sizeof(record.self_pc));
	for (; calls && !out->err; calls -= count) {
		count = calls < UINT32_MAX ? calls : UINT32_MAX;
		memcpy(record.count, &count, sizeof(record.count));
		put_tag(out, GMON_TAG_CG_ARC);
		put(out, &record, sizeof(record));
	}
}

/* Drops callees in other images: gprof would find no name for them, or a wrong one. */
static void put_arcs(struct output *out, const struct gmon_arcs *arcs)
{
	const struct gmon_range *range = &arcs->range;

	for (uint32_t i = 1; i < gmon_arcs_end(arcs); i++) {
		const struct gmon_arc *arc = &arcs->arcs[i];
		uint64_t calls = gmon_arcs_calls(arcs, i);

		if (calls && arc->self >= range->image_low && arc->self < range->image_high)
			put_arc(out, arc->from - range->load_bias, arc->self - range->load_bias,
				calls);
	}
}

int profil__gmon_write(int fd, const struct gmon_histogram *h, const struct gmon_arcs *arcs)
{
	struct output out = { .fd = fd, .buffer = output_buffer };

	put_header(&out);
	put_histogram(&out, h);
	put_arcs(&out, arcs);
	flush(&out);
	return out.err;
}
