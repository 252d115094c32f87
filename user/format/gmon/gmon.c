// SPDX-License-Identifier: GPL-2.0-only
#include "format/gmon/gmon.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "profile/pc_name.h"
#include "util/clock.h"

/* The version in files of ld.so's LD_PROFILE, which have another layout. */
#define SHARED_OBJECT_VERSION 0x1ffff

/* The version in files of 4.4BSD: see <sys/gmon.h> there. */
#define BSD_VERSION 0x51879

/* The layout of a file's numbers. */
struct layout {
	bool bsd; /* a header with the histogram, then arcs: no tags */
	bool big_endian;
	unsigned int address;	  /* bytes */
	unsigned int block_count; /* bytes: a long from glibc, an int from gprof */
	bool padded_counts;	  /* those of arcs have 4 bytes, and 4 more that nobody has set */
};

struct record {
	enum gmon_kind kind;
	uint64_t from, to; /* range of a histogram; caller and callee of an arc */
	uint64_t count;	   /* of bins, of calls, of basic blocks */
	const uint8_t *bins;
	unsigned int bin_size;
	uint64_t bins_there; /* less than count if the file is truncated */
	uint32_t rate;	     /* per unit of the dimension */
	const uint8_t *dimension;
};

struct cursor {
	const struct layout *layout;
	const uint8_t *at;
	const uint8_t *end;
};

/* What a first pass over the records finds, up to one that is invalid in this layout. */
struct survey {
	struct layout layout;
	const uint8_t *end;    /* of the valid records */
	uint64_t lowest, last; /* addresses */
	bool any;	       /* there is an address */
	struct record first;   /* first histogram; .dimension NULL: none */
};

struct reader {
	const struct input *in;
	struct profile *p;
	struct error *e;
	struct survey survey;
	uint32_t mapping;
	uint32_t labels;
	/* For warnings */
	uint64_t blocks;
	uint64_t other_rates;
};

static uint64_t number_at(const uint8_t *bytes, unsigned int size, bool big_endian)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < size; i++)
		value = value << 8 | bytes[big_endian ? i : size - 1 - i];
	return value;
}

static size_t left(const struct cursor *c)
{
	return c->end - c->at;
}

static const uint8_t *take_bytes(struct cursor *c, size_t size)
{
	const uint8_t *bytes = c->at;

	if (size > left(c))
		return NULL;
	c->at += size;
	return bytes;
}

static bool take_sized(struct cursor *c, unsigned int size, uint64_t *value)
{
	const uint8_t *bytes = take_bytes(c, size);

	if (bytes)
		*value = number_at(bytes, size, c->layout->big_endian);
	return bytes;
}

static bool take_address(struct cursor *c, uint64_t *value)
{
	return take_sized(c, c->layout->address, value);
}

static bool take_u32(struct cursor *c, uint32_t *value)
{
	uint64_t wide = 0;
	bool taken = take_sized(c, 4, &wide);

	*value = wide;
	return taken;
}

/* Moves *c to the end of the bins, unless the header is invalid: the layout may be wrong. */
static const char *take_bins(struct cursor *c, const struct cursor *behind, struct record *r)
{
	if (r->from > r->to)
		return "the histogram ends before it begins";
	if (r->count > r->to - r->from)
		return "the histogram has more bins than bytes of code";
	*c = *behind;
	r->bins = c->at;
	r->bins_there = left(c) / r->bin_size;
	if (r->bins_there < r->count)
		return "the histogram is longer than the rest of the file: truncated or corrupt";
	r->bins_there = r->count;
	c->at += r->count * r->bin_size;
	return NULL;
}

static const char *take_histogram(struct cursor *c, struct record *r)
{
	struct cursor header = *c;
	uint32_t bins;

	if (!take_address(&header, &r->from) || !take_address(&header, &r->to) ||
	    !take_u32(&header, &bins) || !take_u32(&header, &r->rate))
		return "the histogram's header is truncated";
	r->dimension = take_bytes(&header, GMON_DIMENSION_SIZE + 1);
	if (!r->dimension)
		return "the histogram's header is truncated";
	r->count = bins;
	r->bin_size = 2;
	return take_bins(c, &header, r);
}

static const char *take_bsd_histogram(struct cursor *c, struct record *r)
{
	static const uint8_t seconds[GMON_DIMENSION_SIZE + 1] = "seconds";
	struct cursor header = *c;
	uint32_t size, version, type, spare;
	int32_t bits;

	if (!take_address(&header, &r->from) || !take_address(&header, &r->to) ||
	    !take_u32(&header, &size) || !take_u32(&header, &version) ||
	    !take_u32(&header, &r->rate) || !take_u32(&header, &type) ||
	    !take_u32(&header, &spare) || !take_u32(&header, &spare))
		return "the header is truncated";
	if (size < header.at - c->at)
		return "the histogram is smaller than its header";
	/* BSD kernels may have wider or signed counters. */
	bits = (int32_t)type;
	if (bits < 0 && bits >= -64)
		bits = -bits;
	r->kind = GMON_HISTOGRAM;
	r->dimension = seconds;
	r->bin_size = bits == 8 || bits == 32 || bits == 64 ? bits / 8 : 2;
	r->count = (size - (header.at - c->at)) / r->bin_size;
	return take_bins(c, &header, r);
}

static const char *take_arc(struct cursor *c, struct record *r)
{
	unsigned int count_size = c->layout->bsd ? c->layout->address : 4;

	r->kind = GMON_ARC;
	if (take_address(c, &r->from) && take_address(c, &r->to) &&
	    take_sized(c, count_size, &r->count)) {
		if (c->layout->padded_counts)
			r->count = (uint32_t)r->count;
		return NULL;
	}
	return "the file ends within an arc: it is truncated";
}

/* Takes a record. Returns NULL, or the error; r->bins may then be set, with bins_there of them. */
static const char *take_record(struct cursor *c, const struct input *in, struct record *r)
{
	size_t block = 2 * c->layout->address;

	*r = (struct record){ 0 };
	if (c->layout->bsd)
		return c->at == in->bytes ? take_bsd_histogram(c, r) : take_arc(c, r);
	r->kind = *c->at++;
	switch (r->kind) {
	case GMON_HISTOGRAM:
		return take_histogram(c, r);
	case GMON_ARC:
		return take_arc(c, r);
	case GMON_BLOCKS:
		if (!take_sized(c, c->layout->block_count, &r->count) || r->count > left(c) / block)
			return "the basic-block counts are longer than the rest of the file";
		c->at += r->count * block;
		return NULL;
	default:
		c->at--;
		return "unknown kind of record: corrupt";
	}
}

static struct cursor first_record(const struct input *in, const struct layout *layout)
{
	return (struct cursor){
		.layout = layout,
		.at = in->bytes + (layout->bsd ? 0 : GMON_HEADER_SIZE),
		.end = in->bytes + in->size,
	};
}

static void note_address(struct survey *s, uint64_t address)
{
	if (!s->any || address < s->lowest)
		s->lowest = address;
	if (!s->any || address > s->last)
		s->last = address;
	s->any = true;
}

static struct survey survey_records(const struct input *in, const struct layout *layout)
{
	struct survey s = { .layout = *layout };
	struct cursor c = first_record(in, layout);
	const char *reason = NULL;

	while (!reason && left(&c)) {
		struct record r;
		bool is_histogram;

		reason = take_record(&c, in, &r);
		is_histogram = r.kind == GMON_HISTOGRAM;
		if ((reason && !r.bins) || r.kind == GMON_BLOCKS ||
		    (is_histogram && r.from == r.to))
			continue;
		if (is_histogram && !s.first.dimension)
			s.first = r;
		note_address(&s, r.from);
		note_address(&s, is_histogram ? r.to - 1 : r.to);
	}
	s.end = c.at;
	return s;
}

/*
 * A long has 4 bytes on Windows for x86-64: in files by MinGW-w64, which are like BSD's but for
 * that, padding follows each count of calls, with whatever was on the stack. Nothing in the file
 * says so. It is assumed if, read as BSD's,
 * - there are more calls than one for each nanosecond of the CPU time that the ticks amount to; or
 *   there are several arcs, and each has 2^32 calls or more, even those of what runs once;
 * - and most counts of 2^32 or more are less than 2^24 above a multiple of 2^32: by chance, one of
 *   256 is. None is such a multiple, as there are no arcs without calls.
 */
static bool has_padded_counts(const struct input *in, const struct survey *bsd)
{
	const struct record *ticks = &bsd->first;
	struct cursor c = first_record(in, &bsd->layout);
	uint64_t arcs = 0, large = 0, small_rest = 0;
	double calls = 0, most = 1; /* the tick that was due next */

	if (bsd->layout.address != 8 || bsd->layout.big_endian)
		return false;
	for (uint64_t i = 0; i < ticks->bins_there; i++)
		most += (double)number_at(ticks->bins + i * ticks->bin_size, ticks->bin_size,
					  false);
	most *= (double)NS_PER_S / (ticks->rate ?: 1);
	while (c.at < bsd->end) {
		struct record r;

		if (take_record(&c, in, &r))
			break;
		if (r.kind != GMON_ARC)
			continue;
		arcs++;
		calls += (double)r.count;
		if (r.count <= UINT32_MAX)
			continue;
		if (!(uint32_t)r.count)
			return false;
		large++;
		small_rest += (uint32_t)r.count < 1 << 24;
	}
	return 2 * small_rest > large && (calls > most || (arcs > 1 && large == arcs));
}

static bool is_glibc(const struct input *in)
{
	return in->size >= 8 && memcmp(in->bytes, GMON_MAGIC, strlen(GMON_MAGIC)) == 0 &&
	       memchr(in->bytes + strlen(GMON_MAGIC), '\0', 4); /* in a version; text has none */
}

/* The version is after two addresses and an int. */
static bool find_bsd(const struct input *in, struct layout *layout)
{
	for (int i = 0; i < 4; i++) {
		struct layout l = { .bsd = true, .address = i & 1 ? 4 : 8, .big_endian = i & 2 };
		size_t version = 2 * l.address + 4;

		if (in->size < version + 4 ||
		    number_at(in->bytes + version, 4, l.big_endian) != BSD_VERSION)
			continue;
		*layout = l;
		return number_at(in->bytes, l.address, l.big_endian) <
		       number_at(in->bytes + l.address, l.address, l.big_endian);
	}
	return false;
}

static bool gmon_detect(const struct input *in)
{
	struct layout layout;

	return is_glibc(in) || find_bsd(in, &layout);
}

static uint32_t version_of(const struct input *in, bool big_endian)
{
	return number_at(in->bytes + strlen(GMON_MAGIC), 4, big_endian);
}

/*
 * A file by glibc does not say how wide its addresses are, and version 0, which gprof accepts, does
 * not show the byte order: chooses the layout in which most of the file is valid.
 */
static int find_layout(struct reader *r)
{
	uint32_t version;

	if (r->in->size < GMON_HEADER_SIZE)
		return input_error(r->in, r->in->size, r->e, "the file ends in its header");
	for (int i = 0; i < 8; i++) {
		struct layout l = {
			.address = i & 1 ? 4 : 8,
			.big_endian = i & 2,
			.block_count = i & 4 ? 8 : 4,
		};
		struct survey s;

		if (version_of(r->in, l.big_endian) > GMON_VERSION)
			continue;
		s = survey_records(r->in, &l);
		if (!r->survey.end || s.end > r->survey.end)
			r->survey = s;
	}
	if (r->survey.end)
		return 0;
	version = version_of(r->in, r->in->bytes[strlen(GMON_MAGIC)] == 0);
	input_error(r->in, strlen(GMON_MAGIC), r->e,
		    "version %" PRIu32 " of gmon.out is unsupported: the only one is %d", version,
		    GMON_VERSION);
	if (version == SHARED_OBJECT_VERSION)
		error_hint(r->e, "it is a file of LD_PROFILE: sprof reads it");
	return -EINVAL;
}

static bool is_seconds(const struct record *histogram)
{
	static const char seconds[GMON_DIMENSION_SIZE] = "seconds";

	return memcmp(histogram->dimension, seconds, sizeof(seconds)) == 0;
}

/* Sets the period and value types, and adds the image. Returns 0 or -ENOMEM. */
static int begin_profile(struct reader *r)
{
	static const char extension[] = ".gmon";
	const struct profile_labels none = { .comm = "" };
	const struct survey *s = &r->survey;
	const struct record *first = &s->first;
	const char *base = profile_basename(r->in->path), *name;
	size_t size = strlen(base), tail = strlen(extension);
	struct profile *p = r->p;
	uint64_t tick_ns = 0;
	uint32_t image;

	p->bits = s->layout.address * 8;
	p->big_endian = s->layout.big_endian;
	if (!first->dimension && profile_warn(p, "the file has no histogram, only call counts"))
		return -ENOMEM;
	if (first->dimension && first->rate && is_seconds(first))
		tick_ns = (NS_PER_S + first->rate / 2) / first->rate;
	if (first->dimension && !first->rate &&
	    profile_warn(p, "the histogram's rate is 0: times are unknown"))
		return -ENOMEM;
	if (profile_add_clock(p, tick_ns) || profile_add_labels(p, &none, &r->labels))
		return -ENOMEM;
	if (!s->any)
		return 0;
	/*
	 * The file does not name its program. gmon_write.c names files PROGRAM.gmon, which keeps
	 * the files of one recording apart when they are merged.
	 */
	size = size > tail && strcmp(base + size - tail, extension) == 0 ? size - tail : 0;
	if (profile_string_n(p, base, size, &name) || profile_add_image(p, name, NULL, 0, &image) ||
	    profile_add_mapping(p, s->lowest, s->last == UINT64_MAX ? s->last : s->last + 1, 0,
				image, &r->mapping))
		return -ENOMEM;
	p->mappings[r->mapping].linked = true;
	return 0;
}

static int add_histogram(struct reader *r, const struct record *h)
{
	const struct record *first = &r->survey.first;
	uint64_t range = h->to - h->from;

	if (!h->count)
		return 0;
	r->other_rates += h->rate != first->rate || is_seconds(h) != is_seconds(first);
	r->p->bucket = MAX(r->p->bucket, (range + h->count / 2) / h->count);
	for (uint64_t i = 0; i < h->bins_there; i++) {
		uint64_t count = number_at(h->bins + i * h->bin_size, h->bin_size,
					   r->survey.layout.big_endian);
		int64_t values[2] = { 0 };
		/* In files by glibc, a bin need not be a whole number of bytes wide. */
		unsigned __int128 offset = (unsigned __int128)i * range + h->count - 1;
		uint32_t location;

		if (!count)
			continue;
		profile_set_ticks(r->p, count, values);
		if (profile_add_location(r->p, h->from + (uint64_t)(offset / h->count), r->mapping,
					 &location) ||
		    profile_add_sample(r->p, &location, 1, r->labels, values))
			return -ENOMEM;
	}
	return 0;
}

static int read_records(struct reader *r)
{
	struct cursor c = first_record(r->in, &r->survey.layout);

	while (left(&c)) {
		const uint8_t *start = c.at;
		struct record record;
		const char *reason = take_record(&c, r->in, &record);
		struct profile_arc arc = { .labels = r->labels, .kind = PROFILE_CALL };
		int err = 0;

		if ((!reason || record.bins) && record.kind == GMON_HISTOGRAM) {
			err = add_histogram(r, &record);
		} else if (!reason && record.kind == GMON_ARC) {
			/*
			 * 1 is not subtracted from the caller's address, a return address: glibc
			 * has rounded it down, perhaps to the beginning of the function.
			 */
			arc.count = record.count;
			err = profile_add_location(r->p, record.from, r->mapping, &arc.from)
				      ?: profile_add_location(r->p, record.to, r->mapping, &arc.to);
			err = err ?: profile_add_arc(r->p, &arc, NULL);
		} else if (!reason) {
			r->blocks += record.count;
		}
		if (err)
			return err;
		if (reason)
			return input_error(r->in, start - r->in->bytes, r->e, "%s", reason);
	}
	return 0;
}

static int add_warnings(struct reader *r)
{
	if ((r->survey.layout.padded_counts &&
	     profile_warn(r->p, "counts of calls were read as 4 bytes with padding, as in files of "
				"MinGW-w64: with 8 bytes there would be too many calls")) ||
	    (r->blocks &&
	     profile_warn(r->p, "%" PRIu64 " counts of basic blocks were ignored", r->blocks)) ||
	    (r->other_rates &&
	     profile_warn(r->p,
			  "%" PRIu64 " histogram(s) have another rate than the first, whose rate "
			  "is used for all",
			  r->other_rates)))
		return -ENOMEM;
	return 0;
}

static int gmon_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	struct layout bsd;
	int err = 0;

	if (is_glibc(in)) {
		err = find_layout(&r);
	} else if (find_bsd(in, &bsd)) {
		r.survey = survey_records(in, &bsd);
		r.survey.layout.padded_counts = has_padded_counts(in, &r.survey);
	} else {
		err = error_set(e, 0, "%s is not a gmon.out file", in->path);
	}
	err = err ?: begin_profile(&r);
	err = err ?: read_records(&r);
	return err ?: add_warnings(&r);
}

const struct format format_gmon = {
	.name = "gmon",
	.extensions = (const char *const[]){ ".gmon", NULL },
	.files = (const char *const[]){ "gmon.out", "gmon.sum", NULL },
	.keeps = KEEPS(ADDRESSES) | KEEPS(CALLS) | KEEPS(PERIOD),
	.cell = GMON_BIN_SIZE,
	.detect = gmon_detect,
	.read = gmon_read,
	.write_directory = gmon_write_directory,
	.dropped_samples = gmon_dropped_samples,
	.cannot_hold = "the kernel, memory without a file and files that are not on this machine",
	.dropped_calls = gmon_dropped_calls,
	.cannot_hold_calls = "those from one image to another, or not counted",
};
