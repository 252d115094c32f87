// SPDX-License-Identifier: GPL-2.0-only
#include "format/projection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/build_id.h"
#include "profile/image_name.h"
#include "profile/tags.h"
#include "util/array.h"
#include "util/table.h"

/* What samples differ in. A format that keeps all of it is no projection: nothing is added up. */
#define DIFFERENCES                                                                        \
	(KEEPS(ADDRESSES) | KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(LINES) | KEEPS(INLINED) | \
	 KEEPS(IMAGES) | KEEPS(THREADS) | KEEPS(MODE) | KEEPS(LABEL) | KEEPS(TAGS))

/* A frame of a script has no address: a format without names cannot hold a sample of one. */
#define SCRIPT 0

/* What the format holds of a frame, or of labels: two that are equal in this are the same for it.
 */
struct part {
	uint64_t key[3];
};

/* The sum of the samples that are equal in their parts. */
struct row {
	uint32_t sample; /* one of them */
	__int128 sum;	 /* of one value; in cancel(), what is left for the rest of them */
};

struct projection {
	const struct profile *p;
	unsigned int keeps;
	uint32_t depth_max;
	TABLE(struct part) parts;
	uint32_t *images;  /* of each image: the first copy of its file */
	uint32_t *first;   /* location i is the frames numbers[first[i]] .. numbers[first[i + 1]) */
	uint32_t *numbers; /* of parts, the innermost first */
	uint32_t *labels;  /* the part of each labels */
	struct row *rows;
	size_t row_count, row_room;
	struct index row_index;
	uint32_t *row_of; /* each sample's */
};

/* Sets *number to that of the part with this key; adds it if there is none. */
static int find_part(struct projection *x, uint64_t a, uint64_t b, uint64_t c, uint32_t *number)
{
	const struct part part = { { a, b, c } };

	return table_add(&x->parts, &part, sizeof(part), number);
}

/* Sets *image and *address to what identifies a location's code in all processes. */
static void find_code(const struct projection *x, const struct profile_location *l, uint64_t *image,
		      uint64_t *address)
{
	const struct profile_mapping *m;
	enum image_kind kind;

	*image = UINT64_MAX;
	*address = l->address;
	if (l->mapping == PROFILE_NONE)
		return;
	m = &x->p->mappings[l->mapping];
	kind = image_kind(x->p->images[m->image].path);
	*image = x->images[m->image];
	if (m->linked || kind == IMAGE_FILE || kind == IMAGE_VDSO)
		*address = l->image_address;
}

/*
 * Finds the parts of all locations: code, where the format has addresses, as names follow from
 * these; else functions in their files, and lines.
 */
static int find_frames(struct projection *x, unsigned int cell)
{
	const struct profile *p = x->p;
	uint64_t image, address;
	size_t count = 0;
	int err = 0;

	for (size_t i = 0; i < p->location_count; i++)
		count += p->locations[i].line_count ?: 1;
	x->first = calloc(p->location_count + 1, sizeof(*x->first));
	x->numbers = malloc((count + 1) * sizeof(*x->numbers));
	/* As in the files of formats with addresses, and in merged profiles. */
	x->images = build_id_firsts(p);
	if (!x->first || !x->numbers || !x->images || find_part(x, 0, 0, 0, &(uint32_t){ SCRIPT }))
		return -ENOMEM;
	count = 0;
	for (uint32_t i = 0; i < p->location_count && !err; i++) {
		const struct profile_location *l = &p->locations[i];
		bool by_code = x->keeps & KEEPS(ADDRESSES) && l->address;

		x->first[i] = count;
		find_code(x, l, &image, &address);
		/* Without mappings, addresses are those in images: others are as no pc. */
		if (by_code && l->mapping == PROFILE_NONE && !(x->keeps & KEEPS(MAPPINGS)))
			continue;
		if (by_code || (x->keeps & KEEPS(NAMES) && !l->line_count)) {
			address -= cell ? address % cell : 0;
			err = find_part(x, 1, image, address, &x->numbers[count++]);
			continue;
		}
		if (!(x->keeps & KEEPS(NAMES))) {
			if (profile_is_script(p, i))
				x->numbers[count++] = SCRIPT;
			continue;
		}
		for (uint32_t j = 0; j < l->line_count && !err; j++) {
			const struct profile_line *line = &p->lines[l->first_line + j];
			const struct profile_function *f = &p->functions[line->function];
			const char *file = line->file ?: f->file;
			uint64_t place = (uint64_t)line->line << 32 | line->column;

			if (!(x->keeps & KEEPS(LINES)))
				place = 0;
			/* Functions without a file differ by their images. */
			err = find_part(x, (uintptr_t)f->name, *file ? (uintptr_t)file : image,
					place, &x->numbers[count++]);
		}
	}
	x->first[p->location_count] = count;
	return err;
}

/* Finds the parts of all labels. */
static int find_labels(struct projection *x)
{
	const struct profile *p = x->p;

	x->labels = malloc((p->label_count + 1) * sizeof(*x->labels));
	if (!x->labels)
		return -ENOMEM;
	for (size_t i = 0; i < p->label_count; i++) {
		const struct profile_labels *l = &p->labels[i];
		uint64_t key[3] = { 0 };

		if (x->keeps & KEEPS(TAGS)) {
			/* All of them: tags are stored once. */
			key[0] = (uint64_t)l->pid << 32 | l->tid;
			key[1] = (uintptr_t)l->tags;
			key[2] = hash_u64(l->generation, (uintptr_t)l->comm);
			if (x->keeps & KEEPS(MODE))
				key[2] = hash_u64(l->kernel, key[2]);
		} else if (x->keeps & KEEPS(THREADS)) {
			key[0] = (uint64_t)l->generation << 32 | (l->tid ?: l->pid);
		} else if (x->keeps & KEEPS(LABEL)) {
			const struct profile_tag *tag = profile_find_tag(l, PROFILE_LABEL_KEY);

			key[0] = tag ? (uintptr_t)tag->text : 0;
		}
		if (find_part(x, key[0], key[1], key[2], &x->labels[i]))
			return -ENOMEM;
	}
	return 0;
}

/* The frames of a sample from its leaf on, as the format holds them. */
struct walk {
	const struct projection *x;
	const uint32_t *locations;
	uint32_t depth;	  /* how many locations are left */
	uint32_t written; /* so many frames were returned */
	uint32_t inlined; /* so many of the first location */
};

static struct walk begin_walk(const struct projection *x, uint32_t sample)
{
	const struct profile_sample *s = &x->p->samples[sample];
	uint32_t depth = s->depth && !(x->keeps & KEEPS(STACKS)) ? 1 : s->depth;

	return (struct walk){ x, x->p->frames + s->first_frame, depth, 0, 0 };
}

/* Returns the number of the next frame's part; PROFILE_NONE: that was the last. */
static uint32_t next_frame(struct walk *w)
{
	const struct projection *x = w->x;

	while (w->depth && (!x->depth_max || w->written < x->depth_max)) {
		uint32_t at = x->first[*w->locations] + w->inlined;

		if (at < x->first[*w->locations + 1] && (x->numbers[at] != SCRIPT || !w->written)) {
			w->inlined++;
			w->written++;
			w->depth = x->numbers[at] == SCRIPT ? 0 : w->depth;
			return x->numbers[at];
		}
		w->inlined = 0;
		w->locations++;
		w->depth--;
	}
	return PROFILE_NONE;
}

static bool row_equal(const void *array, uint32_t id, const void *key)
{
	const struct projection *x = array;
	uint32_t sample = *(const uint32_t *)key, other = x->rows[id].sample, frame;
	struct walk a = begin_walk(x, sample), b = begin_walk(x, other);

	if (x->labels[x->p->samples[sample].labels] != x->labels[x->p->samples[other].labels])
		return false;
	do {
		frame = next_frame(&a);
		if (frame != next_frame(&b))
			return false;
	} while (frame != PROFILE_NONE);
	return true;
}

/* Makes the rows, and finds the one of each sample. */
static int find_rows(struct projection *x)
{
	const struct profile *p = x->p;

	x->row_of = malloc((p->sample_count + 1) * sizeof(*x->row_of));
	if (!x->row_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->sample_count; i++) {
		struct walk w = begin_walk(x, i);
		uint64_t hash = x->labels[p->samples[i].labels];

		for (uint32_t frame; (frame = next_frame(&w)) != PROFILE_NONE;)
			hash = hash_u64(frame, hash);
		x->row_of[i] = index_find(&x->row_index, hash, row_equal, x, &i);
		if (x->row_of[i] != INDEX_NONE)
			continue;
		x->row_of[i] = x->row_count;
		if (array_add_indexed(x->rows, x->row_count, x->row_room, &x->row_index, hash,
				      (struct row){ .sample = i }))
			return -ENOMEM;
	}
	return 0;
}

/* Replaces a value of all samples by what is left when those below 0 are taken from the others. */
static void cancel(struct projection *x, int64_t *values, size_t width, magnitude_sum *dropped)
{
	for (size_t i = 0; i < x->row_count; i++)
		x->rows[i].sum = 0;
	for (size_t i = 0; i < x->p->sample_count; i++)
		x->rows[x->row_of[i]].sum += values[i * width];
	for (size_t i = 0; i < x->row_count; i++)
		if (x->rows[i].sum < 0) {
			*dropped -= x->rows[i].sum;
			x->rows[i].sum = 0;
		}
	for (size_t i = 0; i < x->p->sample_count; i++) {
		int64_t *value = &values[i * width];
		__int128 *left = &x->rows[x->row_of[i]].sum;

		*value = *value < 0 ? 0 : *value < *left ? *value : (int64_t)*left;
		*left -= *value;
	}
}

int projection_make(const struct profile *p, const struct format *format,
		    const struct format_options *options, struct profile *view,
		    magnitude_sum *below, struct error *e)
{
	struct projection x = { .p = p, .keeps = format->keeps, .depth_max = format->depth_max };
	size_t width = p->value_type_count, shown = profile_value(p, options->value);
	int err = 0;

	*view = *p;
	*below = 0;
	if ((format->keeps & DIFFERENCES) == DIFFERENCES)
		return 0;
	for (size_t value = 0; value < width && !err; value++) {
		magnitude_sum all = 0, dropped = 0;
		bool any = false;

		/*
		 * Beside the one that was chosen. Formats without a sign that have several values
		 * count events, and no times.
		 */
		bool is_written = format->keeps & KEEPS(VALUES)
					  ? format->is_signed || !profile_is_clock_time(p, value)
					  : format->keeps & KEEPS(DELAY) &&
						    value == profile_find_sum(p, PROFILE_SUM_DELAY);

		if (value != shown && !is_written)
			continue;
		for (size_t i = 0; i < p->sample_count && !format->is_signed && !any; i++)
			any = p->values[i * width + value] < 0;
		if (any && !x.row_of) {
			size_t size = p->sample_count * width * sizeof(*p->values);

			view->values = malloc(size);
			err = view->values ? find_frames(&x, format->cell) : -ENOMEM;
			err = err ?: find_labels(&x);
			err = err ?: find_rows(&x);
			if (!err)
				memcpy(view->values, p->values, size);
		}
		if (any && !err)
			cancel(&x, view->values + value, width, &dropped);
		*below = *below ?: dropped;
		for (size_t i = 0; i < p->sample_count && !err; i++)
			all += magnitude(view->values[i * width + value]);
		if (all > INT64_MAX) {
			err = error_set(e, 0,
					"the values of \"%s\" add up to more than 2^63 - 1, which "
					"readers of this format cannot hold",
					p->value_types[value].type);
			error_hint(e, "write pprof, which keeps each sample as it is");
		}
	}
	table_free(&x.parts);
	index_free(&x.row_index);
	free(x.images);
	free(x.first);
	free(x.numbers);
	free(x.labels);
	free(x.rows);
	free(x.row_of);
	if (err)
		projection_free(p, view);
	return err == -ENOMEM ? error_no_memory(e) : err;
}

void projection_free(const struct profile *p, struct profile *view)
{
	if (view->values != p->values)
		free(view->values);
	view->values = NULL;
}
