// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "dcpi/database.h"
#include "dcpi/describe.h"
#include "format/dcpi/dcpi.h"
#include "format/dcpi/dcpi_gather.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "util/cpu.h"

struct writer {
	const struct profile *p;
	struct dcpi_groups groups;
	struct dcpi_file *files; /* one for each group */
	/* The extras of each image, and last of those that have none, as linked lists. */
	uint32_t *first_extra, *next_extra;
	/* What is not accounted for by the counts of the other groups stands in the first. */
	uint64_t other_ticks;
	bool accounted;
	uint64_t cpu_mhz; /* 0: not known */
	struct dcpi_texts texts;
};

/* --- The image --- */

static struct dcpi_image image_of(const struct dcpi_group *g, const struct profile_image *image,
				  char id[static BUILD_ID_TEXT_SIZE])
{
	build_id_format(image->build_id, image->build_id_size, id);
	return (struct dcpi_image){
		.path = image->path,
		.path_size = image_path_size(image->path),
		.id = id,
		.addresses = g->addresses,
		.window = g->window,
		/* The kernel and its modules are in one. */
		.main_window = image_is_kernel(image->path) ? UINT32_MAX : 0,
	};
}

static int describe_image(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	char *id;
	int err;

	if (g->image == PROFILE_NONE)
		return dcpi_set_unattributed(&w->texts, h);
	id = malloc(BUILD_ID_TEXT_SIZE);
	err = dcpi_own_text(&w->texts, id);
	if (!err) {
		struct dcpi_image image = image_of(g, &w->p->images[g->image], id);

		err = dcpi_set_image(&w->texts, h, &image);
	}
	return err;
}

/* An id where there is no build ID, and none was kept. */
static int make_id(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	const struct profile_image *of = &w->p->images[g->image];
	char id[BUILD_ID_TEXT_SIZE];
	struct dcpi_image image = image_of(g, of, id);
	struct stat status = { 0 };

	if (of->fd >= 0 ? fstat(of->fd, &status) : stat(of->path, &status))
		status.st_mtime = 0;
	return dcpi_make_id(&w->texts, h, &image, status.st_mtime);
}

/* --- The recording --- */

/*
 * Where counts of a clock have the time beside them, that tells its period: for files of several
 * events, of which a profile has no period each.
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

static int describe_event(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	const struct profile_value_type *t = &w->p->value_types[g->value];
	bool is_samples = strcmp(t->type, "samples") == 0;
	const char *event = is_samples ? w->p->event : t->type;
	bool is_time = w->p->period_ns && (is_samples || strcmp(event, w->p->event) == 0);
	uint64_t period = is_time ? w->p->period_ns : t->period;
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

/* Each file accounts for its own counts, and the first for all that is in none. */
static int describe_account(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	const struct profile_totals *t = &w->p->totals;
	bool first = g == w->groups.all, counts = g->value == profile_count_value(w->p);
	uint64_t ticks = counts ? dcpi_body_total(g->counts, g->count) : 0;
	int err = 0;

	if (w->accounted)
		dcpi_set_number(h, DCPI_TICKS, first ? t->ticks - w->other_ticks : ticks);
	if (!first)
		return 0;
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

static int describe_recording(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	const struct profile *p = w->p;
	int err = dcpi_set_text(&w->texts, h, DCPI_PLATFORM, p->host, DCPI_UNKNOWN);

	err = err ?: describe_event(w, g, h);
	err = err ?: dcpi_set_text(&w->texts, h, DCPI_COMMAND, p->command, NULL);
	err = err ?: dcpi_set_text(&w->texts, h, DCPI_LABEL, g->label ?: "", NULL);
	dcpi_set_start(h, p->time_ns);
	if (p->bucket > 1)
		dcpi_set_number(h, DCPI_BUCKET, p->bucket);
	return err ?: describe_account(w, g, h);
}

static int keep_extras(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	const struct profile *p = w->p;
	size_t list = g->image == PROFILE_NONE ? p->image_count : g->image;
	int err = 0;

	for (uint32_t i = w->first_extra[list]; i != PROFILE_NONE && !err; i = w->next_extra[i]) {
		const char *bytes = p->extras[i].bytes;

		err = dcpi_header_keep(h, &(struct text){ bytes, bytes + p->extras[i].size });
	}
	return err;
}

/* The header of the group's file, as if it were a new one. Returns 0 or -ENOMEM. */
static int describe(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	int err;

	*h = (struct dcpi_header){ 0 };
	err = describe_recording(w, g, h);
	err = err ?: describe_image(w, g, h);
	dcpi_set_number(h, DCPI_TSTART, g->start);
	dcpi_set_number(h, DCPI_TSIZE, g->size);
	err = err ?: keep_extras(w, g, h);
	if (!err && !h->fields[DCPI_IMAGE].given)
		err = make_id(w, g, h);
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

/* An account that does not add up to the counts cannot be spread over their files. */
static void settle_account(struct writer *w)
{
	const struct profile_totals *t = &w->p->totals;
	size_t value = profile_count_value(w->p);
	uint64_t counted = 0;

	for (size_t i = 0; i < w->groups.count; i++) {
		const struct dcpi_group *g = &w->groups.all[i];
		uint64_t total = g->value == value ? dcpi_body_total(g->counts, g->count) : 0;

		counted += total;
		w->other_ticks += i ? total : 0;
	}
	w->accounted = t->known && counted == t->counted && t->ticks >= w->other_ticks;
}

/* --- Files --- */

/* The counts move to the file. */
static int make_files(struct writer *w)
{
	int err = 0;

	w->files = calloc(w->groups.count ?: 1, sizeof(*w->files));
	if (!w->files)
		return -ENOMEM;
	for (size_t i = 0; i < w->groups.count && !err; i++) {
		struct dcpi_group *g = &w->groups.all[i];
		struct dcpi_file *file = &w->files[i];

		err = describe(w, g, &file->header);
		file->counts = g->counts;
		file->count = g->count;
		file->room = g->count_room;
		g->counts = NULL;
	}
	return err;
}

static void free_writer(struct writer *w)
{
	for (size_t i = 0; w->files && i < w->groups.count; i++)
		dcpi_file_free(&w->files[i]);
	free(w->files);
	dcpi_texts_free(&w->texts);
	free(w->first_extra);
	free(w->next_extra);
	dcpi_groups_free(&w->groups);
}

/* Of the machine that was recorded, when it is this one. */
static uint64_t recorded_cpu_mhz(const struct profile *p)
{
	struct utsname machine;

	return uname(&machine) == 0 && strcmp(machine.nodename, p->host) == 0 ? cpu_mhz() : 0;
}

int dcpi_write_directory(const struct profile *p, const struct format_options *options,
			 const char *path, struct error *e)
{
	struct writer w = { .p = p, .cpu_mhz = recorded_cpu_mhz(p) };
	int err = dcpi_gather(p, &w.groups, e);

	(void)options;
	if (!err && link_extras(&w))
		err = error_no_memory(e);
	if (!err)
		settle_account(&w);
	if (!err && make_files(&w))
		err = error_no_memory(e);
	err = err ?: dcpi_database_write(path, w.files, w.groups.count, e);
	free_writer(&w);
	return err;
}
