// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Writes counts to a DCPI database: a file for each image, by the code of user/dcpi/. */
#include "lib/profil.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "dcpi/database.h"
#include "dcpi/describe.h"
#include "lib/last_error.h"
#include "lib/export.h"
#include "lib/segments.h"
#include "lib/maps.h"
#include "lib/samples.h"
#include "util/array.h"
#include "util/cpu.h"
#include "util/order.h"

#define NONE SIZE_MAX

/* An image: a file that the process has mapped, or memory without one. */
struct mapped {
	bool known; /* elf was read */
	struct image elf;
	size_t file; /* number of the last DCPI file with its counts; NONE */
};

/* The fields of a DCPI file's header that tell files apart. */
struct target {
	uint32_t image; /* an index of maps.all; unless it is unattributed */
	bool unattributed;
	enum dcpi_addresses addresses;
	uint32_t window;
	uint64_t bucket;
};

struct writer {
	const struct samples *samples;
	struct maps maps;
	struct mapped *images; /* indexed by their first mapping in maps.all */
	struct dcpi_file *files;
	struct target *targets; /* one for each file */
	size_t count, file_room, target_room;
	size_t unattributed; /* the DCPI file of addresses in no image; NONE */
	struct dcpi_texts texts;
	struct utsname machine;
	uint64_t cpu_mhz;
};

/* Finds the target of an address, which becomes the address to count at in that file. */
static int find_target(struct writer *w, uint64_t *address, struct target *target)
{
	const struct proc_map *map = profil__maps_find(&w->maps, *address);
	uint64_t offset;
	int err = 0;

	*target = (struct target){ .unattributed = true };
	if (map) {
		uint32_t image = w->maps.images[map - w->maps.all];
		struct mapped *m = &w->images[image];

		if (!m->known)
			err = profil__image_read(&m->elf, w->samples->pid, &w->maps, image);
		if (err)
			return err;
		m->known = true;
		offset = *address - map->start + map->offset;
		*target = (struct target){ .image = image };
		if (m->elf.segment_count) {
			target->addresses = DCPI_OWN;
			if (profil__image_address(&m->elf, offset, address))
				return 0;
			target->unattributed = true;
		} else if (dcpi_is_memory(map->path)) {
			target->addresses = DCPI_MEMORY;
			target->window = *address >> 32;
		} else {
			target->addresses = DCPI_FILE;
			*address = offset;
		}
	}
	if (target->unattributed)
		*address = 0;
	return 0;
}

/* --- Files --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Returns the file of another copy of the image: copies of one file have one name in a database.
 * NONE: there is none.
 */
static size_t find_copy(const struct writer *w, uint32_t image)
{
	const char *id = w->images[image].elf.id, *name = base_name(w->maps.all[image].path);

	for (size_t i = 0; *id && i < w->count; i++) {
		uint32_t other = w->targets[i].image;

		if (!w->targets[i].unattributed && strcmp(w->images[other].elf.id, id) == 0 &&
		    strcmp(base_name(w->maps.all[other].path), name) == 0)
			return i;
	}
	return NONE;
}

static int add_file(struct writer *w, const struct target *target, size_t *number)
{
	if (array_reserve(&w->files, &w->file_room, w->count + 1, sizeof(*w->files)) ||
	    array_reserve(&w->targets, &w->target_room, w->count + 1, sizeof(*w->targets)))
		return -ENOMEM;
	w->targets[w->count] = *target;
	*number = w->count++;
	return 0;
}

static int add_sample(struct writer *w, const struct sample *sample)
{
	struct dcpi_count count = { sample->address, sample->count };
	struct target target;
	struct dcpi_file *file;
	size_t *last;
	int err = find_target(w, &count.address, &target);

	if (err)
		return err;
	/* Addresses ascend, so only the last file of an image can be the target's. */
	last = target.unattributed ? &w->unattributed : &w->images[target.image].file;
	if (*last == NONE && !target.unattributed)
		*last = find_copy(w, target.image);
	if (*last == NONE || w->targets[*last].window != target.window)
		err = add_file(w, &target, last);
	if (err)
		return err;
	file = &w->files[*last];
	if (array_add(file->counts, file->count, file->room, count))
		return -ENOMEM;
	w->targets[*last].bucket = MAX(w->targets[*last].bucket, sample->bucket);
	return 0;
}

ORDER(by_address, struct sample, LEAST(address))

/* --- Headers --- */

/* Makes a file's header. */
static int describe_file(struct writer *w, const struct target *t, struct dcpi_file *file)
{
	const struct samples *s = w->samples;
	const struct text no_cause = { "", "" };
	struct dcpi_header *h = &file->header;
	uint64_t start = 0, size = 0, ticks, dropped; /* ticks that the file cannot hold */
	bool first = file == w->files;
	int err;

	if (t->unattributed) {
		size = 1;
	} else if (t->addresses == DCPI_OWN) {
		start = w->images[t->image].elf.text_start;
		size = w->images[t->image].elf.text_size;
	}
	dropped = dcpi_fit_range(file->counts, &file->count, &start, &size);
	dcpi_set_number(h, DCPI_TSTART, start);
	dcpi_set_number(h, DCPI_TSIZE, size);
	err = dcpi_set_text(&w->texts, h, DCPI_PLATFORM, w->machine.nodename, DCPI_UNKNOWN);
	if (!err)
		err = dcpi_set_text(&w->texts, h, DCPI_EVENT, s->is_tick ? "tick" : "cpu-clock",
				    NULL);
	dcpi_set_number(h, DCPI_PERIOD, s->counting.tick_ns);
	dcpi_set_start(h, s->counting.start_ns);
	if (t->bucket > 1)
		dcpi_set_number(h, DCPI_BUCKET, t->bucket);
	err = err ?: dcpi_set_dropped(h, dropped);
	/*
	 * Each file has the ticks of its own counts; the first one also those that no file counts.
	 */
	if (!err && s->accounted) {
		ticks = dcpi_body_total(file->counts, file->count) + dropped;
		if (first)
			ticks += s->out_of_range + s->lost;
		dcpi_set_number(h, DCPI_TICKS, ticks);
		if (first)
			dcpi_set_nonzero(h, DCPI_OUT_OF_RANGE, s->out_of_range);
		if (first && s->lost)
			err = dcpi_header_add_lost(h, &no_cause, s->lost);
	}
	if (!err && t->unattributed) {
		err = dcpi_set_unattributed(&w->texts, h);
	} else if (!err) {
		const struct image *elf = &w->images[t->image].elf;
		const char *path = w->maps.all[t->image].path;
		const struct dcpi_image image = {
			.path = path,
			.path_size = strlen(path),
			.id = elf->id,
			.addresses = t->addresses,
			.window = t->window,
		};

		err = dcpi_set_image(&w->texts, h, &image);
		if (!err && !h->fields[DCPI_IMAGE].given)
			err = dcpi_make_id(&w->texts, h, &image, elf->mtime);
	}
	dcpi_complete(h, w->cpu_mhz);
	return err;
}

/* Makes the files; at least one, for the totals. */
static int make_files(struct writer *w)
{
	const struct target none = { .unattributed = true };
	const struct samples *s = w->samples;
	int err = profil__maps_parse(&w->maps, &s->maps);

	w->images = calloc(w->maps.count ?: 1, sizeof(*w->images));
	if (err || !w->images)
		return -ENOMEM;
	for (size_t i = 0; i < w->maps.count; i++)
		w->images[i].file = NONE;
	if (s->count)
		qsort(s->all, s->count, sizeof(*s->all), by_address);
	for (size_t i = 0; i < s->count && !err; i++)
		err = add_sample(w, &s->all[i]);
	if (!err && !w->count)
		err = add_file(w, &none, &w->unattributed);
	for (size_t i = 0; i < w->count && !err; i++) {
		struct dcpi_file *file = &w->files[i];

		file->count = dcpi_body_fold(file->counts, file->count);
		err = describe_file(w, &w->targets[i], file);
	}
	return err;
}

static int write_samples(const struct samples *samples, const char *directory)
{
	struct writer w = { .samples = samples, .unattributed = NONE, .cpu_mhz = cpu_mhz() };
	struct error e = { 0 };
	int err;

	if (uname(&w.machine))
		*w.machine.nodename = '\0';
	err = make_files(&w) ? error_no_memory(&e) : 0;
	err = err ?: dcpi_database_write(directory, w.files, w.count, &e);
	for (size_t i = 0; w.images && i < w.maps.count; i++)
		profil__image_free(&w.images[i].elf);
	free(w.images);
	profil__maps_free(&w.maps);
	for (size_t i = 0; i < w.count; i++)
		dcpi_file_free(&w.files[i]);
	free(w.files);
	free(w.targets);
	dcpi_texts_free(&w.texts);
	if (err)
		profil__error(-err, "%s%s%s", e.what, *e.hint ? "; " : "", e.hint);
	return err;
}

EXPORT int profil_write_dcpi(struct profil_session *session, const char *directory)
{
	return profil__samples_write_session(session, write_samples, directory);
}

EXPORT int profil_write_dcpi_buffer(const unsigned short *buffer, size_t bufsiz, size_t offset,
				    unsigned int scale, const char *directory)
{
	return profil__samples_write_buffer(buffer, bufsiz, offset, scale, write_samples,
					    directory);
}
