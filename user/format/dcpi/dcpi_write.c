// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "dcpi/body.h"
#include "dcpi/database.h"
#include "dcpi/describe.h"
#include "dcpi/header.h"
#include "format/dcpi/dcpi.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "profile/tags.h"
#include "util/array.h"
#include "util/cpu.h"
#include "util/proc_maps.h"
#include "util/table.h"

/* The samples of one DCPI file: one event in one image with one label. */
struct group {
	uint32_t image; /* PROFILE_NONE: samples outside of any image */
	uint32_t value; /* value type */
	enum dcpi_addresses addresses;
	/*
	 * The upper 32 bits of memory addresses: those of one file are offsets of 32 bits. 0 for
	 * other addresses.
	 */
	uint32_t window;
	const char *label; /* NULL: none */

	struct dcpi_count *counts; /* folded */
	size_t count, count_room;
	uint64_t start, size; /* of the text: contains all counts */
	uint64_t dropped;     /* samples too far from its start for a file */
};

/* The bytes of a group's key. */
#define GROUP_KEY offsetof(struct group, counts)

struct writer {
	const struct profile *p;
	size_t value; /* that the account counts */
	TABLE(struct group) groups;
	uint32_t *images; /* build_id_firsts(): a program in several containers has several paths */
	struct dcpi_file *files; /* one for each group */
	/* Linked lists of extras: one for each image, the last for extras without an image. */
	uint32_t *first_extra, *next_extra;
	/* Ticks counted by all groups but the first, which accounts for the rest. */
	uint64_t other_ticks;
	bool accounted;	  /* the account can be split over the files */
	uint64_t cpu_mhz; /* 0: unknown */
	struct dcpi_texts texts;
};

/* --- Groups: samples by the file that they go to --- */

/* The kind of address that locations of this mapping have. */
static enum dcpi_addresses addresses_of(const struct profile_mapping *m,
					const struct profile_image *image)
{
	if (image_is_kernel(image->path))
		return DCPI_MEMORY;
	if (m->linked || image->text_size)
		return DCPI_OWN;
	return dcpi_is_memory(image->path) ? DCPI_MEMORY : DCPI_FILE;
}

static const char *label_of(const struct profile_labels *labels)
{
	const struct profile_tag *tag = profile_find_tag(labels, PROFILE_LABEL_KEY);

	return tag ? tag->text : NULL;
}

static int add_sample(struct writer *w, size_t number, uint32_t value)
{
	const struct profile *p = w->p;
	const struct profile_sample *sample = &p->samples[number];
	const struct profile_location *l = NULL;
	struct group key = { .image = PROFILE_NONE, .value = value }, *group;
	int64_t count = p->values[number * p->value_type_count + value];
	uint64_t address = 0;
	uint32_t id;

	if (count <= 0)
		return 0;
	key.label = label_of(&p->labels[sample->labels]);
	if (sample->depth)
		l = &p->locations[p->frames[sample->first_frame]];
	if (l && l->mapping != PROFILE_NONE) {
		const struct profile_mapping *m = &p->mappings[l->mapping];

		key.image = w->images[m->image];
		key.addresses = addresses_of(m, &p->images[m->image]);
		address = key.addresses == DCPI_OWN    ? l->image_address
			  : key.addresses == DCPI_FILE ? l->address - m->start + m->offset
						       : l->address;
		key.window = key.addresses == DCPI_MEMORY ? l->address >> 32 : 0;
	}
	if (table_add(&w->groups, &key, GROUP_KEY, &id))
		return -ENOMEM;
	group = &w->groups.all[id];
	return array_add(group->counts, group->count, group->count_room,
			 (struct dcpi_count){ address, count });
}

/* Sets the group's range: the text, extended to the pages of all samples that are not dropped. */
static void find_range(struct group *g, const struct profile *p)
{
	const struct profile_image *image;
	uint64_t start = UINT64_MAX, limit = 0;

	if (g->image == PROFILE_NONE) {
		g->size = 1;
		return;
	}
	if (g->count)
		g->size = 0;
	image = &p->images[g->image];
	if (g->addresses == DCPI_OWN) {
		g->start = image->text_start;
		g->size = image->text_size;
		/* Else the range of its linked mappings. */
		for (size_t i = 0; i < p->mapping_count && !image->text_size; i++) {
			const struct profile_mapping *m = &p->mappings[i];

			if (m->image != g->image || !m->linked || m->start >= m->limit)
				continue;
			start = MIN(m->start, start);
			limit = MAX(m->limit, limit);
			g->start = start;
			g->size = limit - start;
		}
	}
	g->dropped = dcpi_fit_range(g->counts, &g->count, &g->start, &g->size);
}

/* Adds the group of an image without samples: its file's header is information, too. */
static int add_empty(struct writer *w, uint32_t image)
{
	const struct profile *p = w->p;
	struct group key = { .image = image, .value = w->value };
	const struct profile_mapping *m = p->mappings, *end = p->mappings + p->mapping_count;
	uint32_t id;

	while (m < end && m->image != image)
		m++;
	if (m < end) {
		key.addresses = addresses_of(m, &p->images[image]);
		key.start = m->start;
		key.size = m->limit - m->start;
	}
	/* The label, if the profile has one alone. */
	for (size_t i = 0; i < p->label_count && !p->sample_count; i++) {
		const char *label = label_of(&p->labels[i]);

		if (key.label && label && label != key.label) {
			key.label = NULL;
			break;
		}
		key.label = label ?: key.label;
	}
	return table_add(&w->groups, &key, GROUP_KEY, &id);
}

/* True if a value is a time that is beside the samples, which is no event that a file counts. */
static bool is_time(const struct profile *p, size_t value)
{
	enum profile_sum sum = profile_sum(p, value);

	return profile_is_clock_time(p, value) || sum == PROFILE_SUM_DELAY ||
	       (profile_is_recording(p) && sum > PROFILE_SUM_DELAY);
}

/* Makes the groups of all samples, at least one. Returns 0 or -ENOMEM. */
static int gather_groups(struct writer *w)
{
	const struct profile *p = w->p;
	const struct group none = { .image = PROFILE_NONE, .value = w->value };
	bool from_dcpi = p->format && strcmp(p->format, DCPI_NAME) == 0;
	bool *seen = calloc(p->image_count + 1, sizeof(*seen));
	uint32_t id;
	int err;

	w->images = build_id_firsts(p);
	err = seen && w->images ? 0 : -ENOMEM;
	for (uint32_t value = 0; value < p->value_type_count; value++) {
		if (is_time(p, value))
			continue;
		for (size_t i = 0; i < p->sample_count && !err; i++)
			err = add_sample(w, i, value);
	}
	/* DCPI files without samples, which the profile was read from, are written again. */
	for (size_t i = 0; i < w->groups.count && !err; i++)
		if (w->groups.all[i].image != PROFILE_NONE)
			seen[w->groups.all[i].image] = true;
	for (size_t i = 0; i < p->image_count && from_dcpi && !err; i++)
		err = seen[i] ? 0 : add_empty(w, i);
	free(seen);
	if (!err && !w->groups.count)
		err = table_add(&w->groups, &none, GROUP_KEY, &id);
	for (size_t i = 0; i < w->groups.count && !err; i++) {
		struct group *g = &w->groups.all[i];

		g->count = dcpi_body_fold(g->counts, g->count);
		find_range(g, p);
	}
	return err;
}

/* --- The image --- */

static struct dcpi_image image_of(const struct group *g, const struct profile_image *image,
				  char id[static BUILD_ID_TEXT_SIZE])
{
	build_id_format(image->build_id, image->build_id_size, id);
	return (struct dcpi_image){
		.path = image->path,
		.path_size = proc_path_size(image->path),
		.id = id,
		.addresses = g->addresses,
		.window = g->window,
		/* The kernel and its modules are in the highest 4 GiB. */
		.main_window = image_is_kernel(image->path) ? UINT32_MAX : 0,
	};
}

/* --- The recording --- */

/*
 * The period of a clock's counts, from the time beside them in a sample of this event alone: a
 * profile of several events has no period for each. 0: unknown.
 */
static uint64_t period_by_time(const struct profile *p, uint32_t value)
{
	size_t time = 0;

	while (time < p->value_type_count && strcmp(p->value_types[time].unit, "nanoseconds") != 0)
		time++;
	if (time == p->value_type_count || !dcpi_is_clock(p->value_types[value].type))
		return 0;
	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *values = p->values + i * p->value_type_count;
		size_t others = 0;

		for (size_t j = 0; j < p->value_type_count; j++)
			others += j != value && j != time && values[j];
		if (!others && values[value] > 0 && values[time] > 0)
			return values[time] / values[value];
	}
	return 0;
}

static int describe_event(struct writer *w, const struct group *g, struct dcpi_header *h)
{
	const struct profile_value_type *t = &w->p->value_types[g->value];
	bool is_samples = strcmp(t->type, "samples") == 0;
	const char *event = is_samples ? w->p->event : t->type;
	bool is_time = profile_tick_ns(w->p) && (is_samples || strcmp(event, w->p->event) == 0);
	uint64_t period = is_time ? profile_tick_ns(w->p) : t->period;
	int err = dcpi_set_text(&w->texts, h, DCPI_EVENT, event, DCPI_SAMPLES);

	if (!period)
		period = period_by_time(w->p, g->value);
	dcpi_set_number(h, DCPI_PERIOD, period);
	if (!err && is_time && !dcpi_is_clock(event))
		err = dcpi_set_text(&w->texts, h, DCPI_PERIOD_UNIT, "nanoseconds", NULL);
	if (!err && strcmp(t->unit, "count") != 0)
		err = dcpi_set_text(&w->texts, h, DCPI_UNIT, t->unit, NULL);
	return err;
}

/* Each file accounts for its own ticks, the first also for ticks that were not counted. */
static int describe_account(struct writer *w, const struct group *g, struct dcpi_header *h)
{
	const struct profile_totals *t = &w->p->totals;
	bool first = g == w->groups.all, counts = g->value == w->value;
	uint64_t ticks = counts ? dcpi_body_total(g->counts, g->count) + g->dropped : 0;
	int err = counts ? dcpi_set_dropped(h, g->dropped) : 0;

	if (w->accounted)
		dcpi_set_number(h, DCPI_TICKS, first ? t->ticks - w->other_ticks : ticks);
	if (!first)
		return err;
	dcpi_set_nonzero(h, DCPI_DURATION, w->p->duration_ns);
	for (size_t i = 0; i < t->lost_count && !err; i++) {
		struct text cause;

		err = dcpi_line_text(&w->texts, t->lost[i].cause, strlen(t->lost[i].cause), &cause);
		if (t->lost[i].count)
			err = err ?: dcpi_header_add_lost(h, &cause, t->lost[i].count);
	}
	if (!w->accounted)
		return err;
	dcpi_set_nonzero(h, DCPI_OUT_OF_RANGE, t->out_of_range);
	dcpi_set_nonzero(h, DCPI_EXCLUDED, t->excluded);
	dcpi_set_nonzero(h, DCPI_KERNEL, t->kernel);
	dcpi_set_nonzero(h, DCPI_CPU, t->cpu_ns);
	return err;
}

/* Fills the header of the group's file. Returns 0 or -ENOMEM. */
static int describe_file(struct writer *w, const struct group *g, struct dcpi_header *h)
{
	const struct profile *p = w->p;
	size_t list = g->image == PROFILE_NONE ? p->image_count : g->image;
	int err;

	*h = (struct dcpi_header){ 0 };
	err = dcpi_set_text(&w->texts, h, DCPI_PLATFORM, p->host, DCPI_UNKNOWN);
	err = err ?: describe_event(w, g, h);
	err = err ?: dcpi_set_text(&w->texts, h, DCPI_COMMAND, p->command, NULL);
	err = err ?: dcpi_set_text(&w->texts, h, DCPI_LABEL, g->label ?: "", NULL);
	dcpi_set_start(h, p->time_ns);
	if (p->bucket > 1)
		dcpi_set_number(h, DCPI_BUCKET, p->bucket);
	err = err ?: describe_account(w, g, h);
	if (g->image == PROFILE_NONE) {
		err = err ?: dcpi_set_unattributed(&w->texts, h);
	} else if (!err) {
		char *hex = malloc(BUILD_ID_TEXT_SIZE);
		struct dcpi_image image;

		err = dcpi_own_text(&w->texts, hex);
		if (!err) {
			image = image_of(g, &p->images[g->image], hex);
			err = dcpi_set_image(&w->texts, h, &image);
		}
	}
	dcpi_set_number(h, DCPI_TSTART, g->start);
	dcpi_set_number(h, DCPI_TSIZE, g->size);
	for (uint32_t i = w->first_extra[list]; i != PROFILE_NONE && !err; i = w->next_extra[i]) {
		const char *bytes = p->extras[i].bytes;

		err = dcpi_header_keep(h, &(struct text){ bytes, bytes + p->extras[i].size });
	}
	/* An image without a build ID, whose extras have no id either, gets one. */
	if (!err && !h->fields[DCPI_IMAGE].given) {
		const struct profile_image *of = &p->images[g->image];
		char id[BUILD_ID_TEXT_SIZE];
		struct dcpi_image image = image_of(g, of, id);
		struct stat status = { 0 };

		if (of->fd >= 0 ? fstat(of->fd, &status) : stat(of->path, &status))
			status.st_mtime = 0;
		err = dcpi_make_id(&w->texts, h, &image, status.st_mtime);
	}
	dcpi_complete(h, w->cpu_mhz);
	return err;
}

static int link_extras(struct writer *w)
{
	const struct profile *p = w->p;

	w->first_extra = malloc((p->image_count + 1) * sizeof(*w->first_extra));
	w->next_extra = malloc((p->extra_count + 1) * sizeof(*w->next_extra));
	if (!w->first_extra || !w->next_extra)
		return -ENOMEM;
	for (size_t i = 0; i <= p->image_count; i++)
		w->first_extra[i] = PROFILE_NONE;
	for (size_t i = p->extra_count; i-- > 0;) {
		const struct profile_extra *x = &p->extras[i];
		size_t list = x->image == PROFILE_NONE ? p->image_count : x->image;

		if (strcmp(x->format, DCPI_NAME) != 0)
			continue;
		w->next_extra[i] = w->first_extra[list];
		w->first_extra[list] = i;
	}
	return 0;
}

/* --- Files --- */

static void free_writer(struct writer *w)
{
	for (size_t i = 0; w->files && i < w->groups.count; i++)
		dcpi_file_free(&w->files[i]);
	free(w->files);
	dcpi_texts_free(&w->texts);
	free(w->first_extra);
	free(w->next_extra);
	for (size_t i = 0; i < w->groups.count; i++)
		free(w->groups.all[i].counts);
	table_free(&w->groups);
	free(w->images);
}

int dcpi_write_directory(const struct profile *p, const struct format_options *options,
			 const char *path, struct error *e)
{
	struct writer w = { .p = p, .value = profile_value(p, options->value) };
	struct utsname machine;
	int err = gather_groups(&w);
	const struct profile_totals *t = &w.p->totals;
	uint64_t counted = 0;

	/* The recorded machine's clock rate is known if it is this machine. */
	if (uname(&machine) == 0 && strcmp(machine.nodename, p->host) == 0)
		w.cpu_mhz = cpu_mhz();
	/*
	 * Decides whether the account can be split over the files: only if it agrees with the
	 * counts.
	 */
	for (size_t i = 0; i < w.groups.count; i++) {
		const struct group *g = &w.groups.all[i];
		uint64_t total = 0;

		if (g->value == w.value)
			total = dcpi_body_total(g->counts, g->count) + g->dropped;
		counted += total;
		w.other_ticks += i ? total : 0;
	}
	w.accounted = t->known && counted == t->counted && t->ticks >= w.other_ticks;
	w.files = calloc(w.groups.count ?: 1, sizeof(*w.files));
	err = err ?: w.files ? link_extras(&w) : -ENOMEM;
	for (size_t i = 0; i < w.groups.count && !err; i++) {
		struct group *g = &w.groups.all[i];
		struct dcpi_file *file = &w.files[i];

		err = describe_file(&w, g, &file->header);
		/* The file takes over the group's counts. */
		file->counts = g->counts;
		file->count = g->count;
		file->room = g->count_room;
		g->counts = NULL;
	}
	err = err ? error_no_memory(e) : dcpi_database_write(path, w.files, w.groups.count, e);
	free_writer(&w);
	return err;
}

void dcpi_dropped_images(const struct profile *p, struct format_dropped *dropped)
{
	struct writer w = { .p = p };

	*dropped = (struct format_dropped){ 0 };
	if (gather_groups(&w) == 0)
		for (size_t i = 0; i < w.groups.count; i++) {
			const struct group *g = &w.groups.all[i];
			const char *path;

			if (!g->dropped)
				continue;
			path = p->images[g->image].path;
			dropped->image = dropped->image ?: path;
			dropped->others |= path != dropped->image;
			dropped->samples += g->dropped;
		}
	free_writer(&w);
}
