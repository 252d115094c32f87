// SPDX-License-Identifier: GPL-2.0-only
#include "format/gmon/gmon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/directory.h"
#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/order.h"
#include "util/sum.h"
#include "util/table.h"

/*
 * A histogram is written in pieces that begin at multiples of this, without those that have no
 * sample: gprof adds up records of the same range, also of several files, and rejects other
 * overlaps.
 */
#define PIECE_SIZE 512
#define PIECE_BINS (PIECE_SIZE / GMON_BIN_SIZE)

/* gprof adds up the samples of a bin in an int. */
#define BIN_MAX INT32_MAX

/*
 * More than 2^32 calls take several records.
 * Bound: caller: records of an arc; then: the file is not written.
 */
#define ARC_RECORDS_MAX 65536

/*
 * Of a file's name, without what makes it unique.
 * Bound: caller: bytes of a file's name; then: it is cut.
 */
#define NAME_MAX_SIZE 200

/* The samples of one bin. */
struct bin {
	uint32_t image;
	uint64_t address;
	uint64_t count;
};

/* The call counts of one image's file. */
struct arc {
	uint32_t image;
	uint64_t from, to;
	uint64_t count;
};

struct file {
	uint32_t image;
	size_t bins, bin_count; /* writer.bins[bins ..] */
	size_t arcs, arc_count;
};

struct writer {
	const struct profile *p;
	size_t value; /* that is written */
	uint32_t rate;
	const char *dimension;
	char abbreviation;
	struct bin *bins; /* in order */
	size_t bin_count;
	struct arc *arcs; /* in order */
	size_t arc_count;
	struct file *files;
	TABLE(char *) names;
	size_t file_count;
};

/* --- Bins, arcs and files --- */

static uint32_t image_of(const struct writer *w, uint32_t location)
{
	return w->p->mappings[w->p->locations[location].mapping].image;
}

/* The size of an address in bytes: gprof expects that of the ELF file. */
static unsigned int address_size(const struct writer *w, uint32_t image)
{
	return (w->p->images[image].bits ?: w->p->bits) == 32 ? 4 : 8;
}

/*
 * True if the file of its image can hold the location: gprof needs an ELF file with the same
 * addresses. Until the symbol layer has read the image, only linked mappings have these. The vdso
 * is in no file.
 */
static bool fits_file(const struct writer *w, uint32_t location)
{
	const struct profile_location *l = &w->p->locations[location];
	const struct profile_mapping *m;
	const struct profile_image *image;
	uint64_t most;

	if (l->mapping == PROFILE_NONE || !l->address)
		return false;
	m = &w->p->mappings[l->mapping];
	image = &w->p->images[m->image];
	if (image_is_bracketed(image->path) || (!m->linked && !image->text_size))
		return false;
	most = address_size(w, m->image) == 4 ? UINT32_MAX : UINT64_MAX;
	return l->image_address < most - PIECE_SIZE;
}

ORDER(compare_bins, struct bin, LEAST(image) ?: LEAST(address))

static int gather_bins(struct writer *w)
{
	const struct profile *p = w->p;
	uint64_t *counts = calloc(p->location_count + 1, sizeof(*counts));
	size_t kept = 0;

	w->bins = calloc(p->location_count + 1, sizeof(*w->bins));
	if (!counts || !w->bins) {
		free(counts);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		int64_t count = p->values[i * p->value_type_count + w->value];

		if (s->depth && count > 0)
			add_u64(&counts[p->frames[s->first_frame]], count);
	}
	for (uint32_t i = 0; i < p->location_count; i++)
		if (counts[i] && fits_file(w, i))
			w->bins[w->bin_count++] = (struct bin){
				.image = image_of(w, i),
				.address = p->locations[i].image_address & -(uint64_t)GMON_BIN_SIZE,
				.count = counts[i],
			};
	free(counts);
	qsort(w->bins, w->bin_count, sizeof(*w->bins), compare_bins);
	/* Adds up bins of one address: an image may have several mappings. */
	for (size_t i = 0; i < w->bin_count; i++) {
		if (kept && compare_bins(&w->bins[kept - 1], &w->bins[i]) == 0)
			add_u64(&w->bins[kept - 1].count, w->bins[i].count);
		else
			w->bins[kept++] = w->bins[i];
	}
	w->bin_count = kept;
	return 0;
}

ORDER(compare_arcs, struct arc, LEAST(image) ?: LEAST(from) ?: LEAST(to))

/* A call into another image is dropped: gprof would find a wrong name or none for its address. */
static bool is_written(const struct writer *w, const struct profile_arc *arc)
{
	return arc->kind == PROFILE_CALL && arc->count && fits_file(w, arc->from) &&
	       fits_file(w, arc->to) && image_of(w, arc->from) == image_of(w, arc->to);
}

static int gather_arcs(struct writer *w)
{
	const struct profile *p = w->p;

	w->arcs = calloc(p->arc_count + 1, sizeof(*w->arcs));
	if (!w->arcs)
		return -ENOMEM;
	for (size_t i = 0; i < p->arc_count; i++)
		if (is_written(w, &p->arcs[i]))
			w->arcs[w->arc_count++] = (struct arc){
				.image = image_of(w, p->arcs[i].from),
				.from = p->locations[p->arcs[i].from].image_address,
				.to = p->locations[p->arcs[i].to].image_address,
				.count = p->arcs[i].count,
			};
	qsort(w->arcs, w->arc_count, sizeof(*w->arcs), compare_arcs);
	return 0;
}

/* Makes a file for each image with bins or arcs. */
static int gather_files(struct writer *w)
{
	size_t bin = 0, arc = 0;

	w->files = calloc(w->p->image_count + 1, sizeof(*w->files));
	if (!w->files)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->p->image_count; i++) {
		struct file *f = &w->files[w->file_count];

		*f = (struct file){ .image = i, .bins = bin, .arcs = arc };
		while (bin < w->bin_count && w->bins[bin].image == i)
			bin++;
		while (arc < w->arc_count && w->arcs[arc].image == i)
			arc++;
		f->bin_count = bin - f->bins;
		f->arc_count = arc - f->arcs;
		w->file_count += f->bin_count || f->arc_count;
	}
	return 0;
}

/* Checks that gprof can read the files, and that there are any. Returns 0 or -errno with e set. */
static int check_files(const struct writer *w, struct error *e)
{
	const char *what = NULL;

	for (size_t i = 0; i < w->bin_count; i++)
		if (w->bins[i].count > BIN_MAX)
			what = "more than 2147483647 samples";
	for (size_t i = 0; i < w->arc_count; i++)
		if (w->arcs[i].count / UINT32_MAX >= ARC_RECORDS_MAX)
			what = "more than 2^48 calls";
	if (what)
		return error_set(e, 0, "%s at one address: more than gprof can count", what);
	if (w->file_count)
		return 0;
	if (!w->p->sample_count)
		return error_set(e, 0, "the profile has no samples");
	error_set(e, 0,
		  "no sample is in a program or library that gprof can read: gmon.out cannot hold "
		  "samples of the kernel, of memory without a file and of files that are not on "
		  "this machine");
	return error_hint(e, "write another format: -f pprof");
}

/* --- File names --- */

/* Names files prog.gmon, or if another file has that name, prog.N.gmon: the Nth file. */
static int name_files(struct writer *w)
{
	for (size_t file = 0; file < w->file_count; file++) {
		const char *path = w->p->images[w->files[file].image].path;
		char name[NAME_MAX_SIZE + 1], *full;

		snprintf(name, sizeof(name), "%s", *path ? profile_basename(path) : "unknown");
		directory_clean_name(name);
		for (size_t i = 1; w->names.count == file;
		     i = i == 1 ? file + 1 : i + w->file_count) {
			int size = i == 1 ? asprintf(&full, "%s.gmon", name)
					  : asprintf(&full, "%s.%zu.gmon", name, i);
			uint32_t id = 0;
			int err = size < 0 ? -ENOMEM : table_add(&w->names, &full, TABLE_TEXT, &id);

			if (size >= 0 && (err || id < file))
				free(full);
			if (err)
				return err;
		}
	}
	return 0;
}

/* --- Writing --- */

/* The file to be written. */
struct output {
	FILE *stream;
	const struct writer *w;
	unsigned int address_size;
};

static void put_number(const struct output *out, uint64_t value, unsigned int size)
{
	uint8_t bytes[8];

	for (unsigned int i = 0; i < size; i++)
		bytes[out->w->p->big_endian ? size - 1 - i : i] = value >> 8 * i;
	fwrite(bytes, 1, size, out->stream);
}

static void put_address(const struct output *out, uint64_t address)
{
	put_number(out, address, out->address_size);
}

/* Writes as many records as the largest count needs, at least one. Clears the counts. */
static void put_piece(const struct output *out, uint64_t start, uint64_t counts[PIECE_BINS])
{
	char dimension[GMON_DIMENSION_SIZE + 1] = "";
	bool more;

	memcpy(dimension, out->w->dimension, strlen(out->w->dimension));
	dimension[GMON_DIMENSION_SIZE] = out->w->abbreviation;
	do {
		more = false;
		fputc(GMON_HISTOGRAM, out->stream);
		put_address(out, start);
		put_address(out, start + PIECE_SIZE);
		put_number(out, PIECE_BINS, 4);
		put_number(out, out->w->rate, 4);
		fwrite(dimension, 1, sizeof(dimension), out->stream);
		for (size_t i = 0; i < PIECE_BINS; i++) {
			uint64_t part = MIN(counts[i], UINT16_MAX);

			put_number(out, part, GMON_BIN_SIZE);
			counts[i] -= part;
			more |= counts[i];
		}
	} while (more);
}

static uint64_t piece_of(uint64_t address)
{
	return address & -(uint64_t)PIECE_SIZE;
}

static int write_file(FILE *stream, size_t number, int old, void *context, struct error *e)
{
	static const char spare[GMON_HEADER_SIZE - 8];
	const struct writer *w = context;
	const struct file *f = &w->files[number];
	const struct output out = { stream, w, address_size(w, f->image) };
	const struct bin *bin = w->bins + f->bins, *end = bin + f->bin_count;

	(void)old;
	fputs(GMON_MAGIC, stream);
	put_number(&out, GMON_VERSION, 4);
	fwrite(spare, 1, sizeof(spare), stream);
	if (!f->bin_count) /* gprof requires a histogram, even an empty one */
		put_piece(&out, piece_of(w->arcs[f->arcs].to), (uint64_t[PIECE_BINS]){ 0 });
	while (bin < end) {
		uint64_t start = piece_of(bin->address), counts[PIECE_BINS] = { 0 };

		for (; bin < end && piece_of(bin->address) == start; bin++)
			counts[(bin->address - start) / GMON_BIN_SIZE] = bin->count;
		put_piece(&out, start, counts);
	}
	for (size_t i = 0; i < f->arc_count; i++) {
		const struct arc *arc = &w->arcs[f->arcs + i];
		uint32_t part;

		for (uint64_t rest = arc->count; rest; rest -= part) {
			part = MIN(rest, UINT32_MAX);
			fputc(GMON_ARC, stream);
			put_address(&out, arc->from);
			put_address(&out, arc->to);
			put_number(&out, part, 4);
		}
	}
	return ferror(stream) ? error_set(e, errno, "cannot write %s", w->names.all[number]) : 0;
}

/*
 * The file's rate is a whole number of samples per second. A clock may be 0.5 % off the requested
 * rate; with any other period, the file has no times, only samples.
 */
static void set_rate(struct writer *w)
{
	uint64_t period = profile_tick_ns(w->p), hz, product;

	w->rate = 1;
	w->dimension = "samples";
	w->abbreviation = '1';
	if (!period || period > NS_PER_S)
		return;
	hz = (NS_PER_S + period / 2) / period;
	product = hz * period;
	if (product > NS_PER_S + NS_PER_S / 200 || product < NS_PER_S - NS_PER_S / 200)
		return;
	w->rate = hz;
	w->dimension = "seconds";
	w->abbreviation = 's';
}

uint64_t gmon_dropped_samples(const struct profile *p, const struct format_options *options)
{
	size_t value = profile_value(p, options->value);
	const struct writer w = { .p = p };
	uint64_t dropped = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		int64_t count = p->values[i * p->value_type_count + value];

		if (count > 0 && !(s->depth && fits_file(&w, p->frames[s->first_frame])))
			dropped += count;
	}
	return dropped;
}

uint64_t gmon_dropped_calls(const struct profile *p)
{
	const struct writer w = { .p = p };
	uint64_t dropped = 0;

	for (size_t i = 0; i < p->arc_count; i++)
		dropped += p->arcs[i].kind == PROFILE_CALL && !is_written(&w, &p->arcs[i]);
	return dropped;
}

static int write_only(FILE *out, void *context, struct error *e)
{
	return write_file(out, 0, -ENOENT, context, e);
}

int gmon_write_directory(const struct profile *p, const struct format_options *options,
			 const char *path, struct error *e)
{
	struct writer w = { .p = p, .value = profile_value(p, options->value) };
	int err;

	set_rate(&w);
	err = gather_bins(&w);
	err = err ?: gather_arcs(&w);
	err = err ?: gather_files(&w);
	err = err ?: name_files(&w);
	err = err ? error_no_memory(e) : check_files(&w, e);
	if (err)
		goto out;
	if (!format_names_file(&format_gmon, path)) {
		err = directory_write(path, w.names.all, w.file_count, write_file, &w, e);
	} else if (w.file_count == 1) {
		err = file_write(path, FILE_LIKE_SHELL, write_only, &w, e);
	} else {
		error_set(e, 0, "%s can hold one image, but the samples are of %zu", path,
			  w.file_count);
		error_hint(e, "write a file for each image to a directory: -f gmon DIRECTORY");
		err = -EINVAL;
	}
out:
	for (size_t i = 0; i < w.names.count; i++)
		free(w.names.all[i]);
	table_free(&w.names);
	free(w.files);
	free(w.bins);
	free(w.arcs);
	return err;
}
