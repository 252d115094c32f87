// SPDX-License-Identifier: GPL-2.0-only
#include "format/dcpi_write.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "format/dcpi.h"
#include "format/dcpi_gather.h"
#include "format/directory.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/cpu.h"

/* Of a file's name, whose parts come from anywhere. */
#define PART_MAX 64

struct writer {
	const struct profile *p;
	const char *path;
	struct dcpi_groups groups;
	char **names; /* of the files, below the path */
	/* The extras of each image, and last of those that have none, as linked lists. */
	uint32_t *first_extra, *next_extra;
	/* What is not accounted for by the counts of the other groups stands in the first. */
	uint64_t other_ticks;
	bool accounted;
	uint64_t cpu_mhz; /* 0: not known */
	char **texts;	  /* that were made for the headers */
	size_t text_count, text_room;
};

/* --- Values --- */

/* Keeps a text that malloc() gave, or asprintf(). Returns 0 or -ENOMEM. */
static int own_text(struct writer *w, char *text)
{
	if (!text ||
	    array_reserve(&w->texts, &w->text_room, w->text_count + 1, sizeof(*w->texts))) {
		free(text);
		return -ENOMEM;
	}
	w->texts[w->text_count++] = text;
	return 0;
}

/* Sets *t to the text as it can stand in a line: begun by no blank, and without a newline. */
static int line_text(struct writer *w, const char *text, size_t size, struct text *t)
{
	char *copy;

	*t = (struct text){ text, text + size };
	if (size == 0 || (!is_blank(*text) && !memchr(text, '\n', size)))
		return 0;
	copy = strndup(text, size);
	if (own_text(w, copy))
		return -ENOMEM;
	if (is_blank(*copy))
		*copy = '?';
	for (char *newline = strchr(copy, '\n'); newline; newline = strchr(newline, '\n'))
		*newline = '?';
	*t = text_of(copy);
	return 0;
}

/* Nothing when the text is empty, and `unknown` is NULL. */
static int set_text(struct writer *w, struct dcpi_header *h, enum dcpi_keyword k, const char *text,
		    const char *unknown)
{
	struct dcpi_field *f = &h->fields[k];

	text = *text || !unknown ? text : unknown;
	f->given = *text;
	return line_text(w, text, strlen(text), &f->text);
}

static void set_number(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number)
{
	h->fields[k] = (struct dcpi_field){ .given = true, .number = number };
}

/* Zeros go without saying. */
static void set_nonzero(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number)
{
	if (number)
		set_number(h, k, number);
}

/* --- The image --- */

static int hex_id(struct writer *w, const uint8_t *bytes, size_t size, struct dcpi_field *f)
{
	char hex[BUILD_ID_TEXT_SIZE], *text;

	build_id_format(bytes, size, hex);
	text = strdup(hex);
	f->given = true;
	f->text = (struct text){ text, text ? text + 2 * size : NULL };
	return own_text(w, text);
}

/* The kernel and its modules are in one window; 0 means that there is no file. */
static bool is_main_window(const struct dcpi_group *g, const struct profile_image *image)
{
	return image_is_kernel(image->path) ? g->window == UINT32_MAX : g->window == 0;
}

/* The ids that need no file: those of DCPI_MEMORY tell its windows apart. */
static int set_id(struct writer *w, const struct dcpi_group *g, struct dcpi_field *f)
{
	const struct profile_image *image = &w->p->images[g->image];
	const uint8_t window[] = { g->window >> 24, g->window >> 16, g->window >> 8, g->window };

	if (g->addresses == DCPI_MEMORY && !is_main_window(g, image))
		return hex_id(w, window, sizeof(window), f);
	if (image->build_id_size)
		return hex_id(w, image->build_id, image->build_id_size, f);
	f->given = g->addresses == DCPI_MEMORY || !*image->path;
	f->text = text_of("0");
	return 0;
}

/* As DCPI made them: when the file was made, and a checksum, which here is that of its path. */
static int make_id(struct writer *w, const struct profile_image *image, struct dcpi_field *f)
{
	uint32_t sum = crc32(0, (const Bytef *)image->path, image_path_size(image->path));
	char date[32] = "00000000000000", *id;
	struct stat status;
	struct tm tm;

	if ((image->fd >= 0 ? fstat(image->fd, &status) : stat(image->path, &status)) == 0 &&
	    gmtime_r(&status.st_mtime, &tm) && tm.tm_year < 9999 - 1900)
		strftime(date, sizeof(date), "%Y%m%d%H%M%S", &tm);
	if (asprintf(&id, "%s%06" PRIx32, date, sum & 0xffffff) < 0)
		return -ENOMEM;
	f->given = true;
	f->text = text_of(id);
	return own_text(w, id);
}

static int describe_unattributed(struct writer *w, struct dcpi_header *h)
{
	struct text *host = &h->fields[DCPI_PLATFORM].text;
	char *path;

	h->fields[DCPI_IMAGE] = (struct dcpi_field){ .given = true, .text = text_of("0") };
	if (asprintf(&path, DCPI_UNKNOWN_AT "%.*s", (int)(host->end - host->at), host->at) < 0)
		return -ENOMEM;
	h->fields[DCPI_PATH] = (struct dcpi_field){ .given = true, .text = text_of(path) };
	return own_text(w, path);
}

static int describe_image(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	struct dcpi_field *id = &h->fields[DCPI_IMAGE], *path = &h->fields[DCPI_PATH];
	const struct profile_image *image;

	if (g->image == PROFILE_NONE)
		return describe_unattributed(w, h);
	image = &w->p->images[g->image];
	path->given = *image->path;
	if (g->addresses != DCPI_OWN)
		set_number(h, DCPI_ADDRESSES, g->addresses);
	return line_text(w, image->path, image_path_size(image->path), &path->text)
		       ?: set_id(w, g, id);
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
	int err = set_text(w, h, DCPI_EVENT, event, DCPI_SAMPLES);

	if (!period)
		period = period_by_time(w->p, g->value);
	set_number(h, DCPI_PERIOD, period);
	if (!err && is_time && !dcpi_is_clock(event))
		err = set_text(w, h, DCPI_PERIOD_UNIT, "nanoseconds", NULL);
	if (!err && strcmp(t->unit, "count") != 0)
		err = set_text(w, h, DCPI_UNIT, t->unit, NULL);
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
		set_number(h, DCPI_TICKS, first ? t->ticks - w->other_ticks : ticks);
	if (!first)
		return 0;
	set_nonzero(h, DCPI_DURATION, w->p->duration_ns);
	for (size_t i = 0; i < t->lost_count && !err; i++) {
		struct text cause;

		err = line_text(w, t->lost[i].cause, strlen(t->lost[i].cause), &cause);
		if (t->lost[i].count)
			err = err ?: dcpi_header_add_lost(h, &cause, t->lost[i].count);
	}
	if (!w->accounted)
		return err;
	set_nonzero(h, DCPI_OUT_OF_RANGE, t->out_of_range);
	set_nonzero(h, DCPI_EXCLUDED, t->excluded);
	set_nonzero(h, DCPI_KERNEL, t->kernel);
	set_nonzero(h, DCPI_CPU, t->cpu_ns);
	return err;
}

static int describe_recording(struct writer *w, const struct dcpi_group *g, struct dcpi_header *h)
{
	const struct profile *p = w->p;
	int err = set_text(w, h, DCPI_PLATFORM, p->host, DCPI_UNKNOWN);

	err = err ?: describe_event(w, g, h);
	err = err ?: set_text(w, h, DCPI_COMMAND, p->command, NULL);
	err = err ?: set_text(w, h, DCPI_LABEL, g->label ?: "", NULL);
	set_number(h, DCPI_EPOCH, p->time_ns / NS_PER_S / 60 * 60);
	set_number(h, DCPI_START, p->time_ns);
	if (p->bucket > 1)
		set_number(h, DCPI_BUCKET, p->bucket);
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
	set_number(h, DCPI_TSTART, g->start);
	set_number(h, DCPI_TSIZE, g->size);
	err = err ?: keep_extras(w, g, h);
	if (!h->fields[DCPI_VERSION].given)
		set_number(h, DCPI_VERSION, DCPI_MINOR);
	if (!h->fields[DCPI_CPUSPEED].given)
		set_number(h, DCPI_CPUSPEED, w->cpu_mhz);
	if (!err && !h->fields[DCPI_IMAGE].given)
		err = make_id(w, &w->p->images[g->image], &h->fields[DCPI_IMAGE]);
	/* An image without a path was called by its id. */
	if (text_equal(&h->fields[DCPI_PATH].text, &h->fields[DCPI_IMAGE].text))
		h->fields[DCPI_PATH].given = false;
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

		if (strcmp(x->format, format_dcpi.name) != 0)
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

/* --- Names --- */

/* A part of a file's name. */
struct part {
	char text[NAME_MAX + 1];
};

static struct part make_part(const struct text *t, size_t most)
{
	struct part part = { "" };
	size_t size = t->end - t->at;

	if (size)
		memcpy(part.text, t->at, size < most ? size : most);
	directory_clean_name(part.text);
	return part;
}

/* The last part of the image's path. */
static struct part base_name(const struct dcpi_header *h, size_t most)
{
	struct text path = h->fields[DCPI_PATH].text, none = text_of("unnamed");
	const char *slash = last_of(&path, '/');

	if (slash && slash + 1 < path.end)
		path.at = slash + 1;
	return make_part(is_empty(&path) ? &none : &path, most);
}

/* EPOCH/HOST/IMAGE.ID[_LABEL]_EVENT. Returns 0 or -ENOMEM. */
static int name_file(const struct dcpi_header *h, char **name)
{
	const struct dcpi_field *f = h->fields;
	struct part host = make_part(&f[DCPI_PLATFORM].text, NAME_MAX);
	struct part id = make_part(&f[DCPI_IMAGE].text, PART_MAX);
	struct part event = make_part(&f[DCPI_EVENT].text, PART_MAX);
	struct part label = make_part(&f[DCPI_LABEL].text, PART_MAX);
	size_t rest = strlen(id.text) + strlen(event.text) + strlen(label.text) +
		      strlen("._"
			     "_");
	struct part base = base_name(h, NAME_MAX - rest);
	char epoch[DCPI_EPOCH_SIZE];

	dcpi_epoch_text(f[DCPI_EPOCH].number, epoch);
	if (asprintf(name, "%s/%s/%s.%s%s%s_%s", epoch, host.text, base.text, id.text,
		     *label.text ? "_" : "", label.text, event.text) >= 0)
		return 0;
	*name = NULL;
	return -ENOMEM;
}

static bool name_equal(const void *array, uint32_t id, const void *key)
{
	char *const *names = array;

	return strcmp(names[id], key) == 0;
}

/* What would be in one file must be one group: names are cut, and labels may be anything. */
static int check_names(const struct writer *w, struct error *e)
{
	struct index index = { 0 };
	int err = 0;

	for (size_t i = 0; i < w->groups.count && !err; i++) {
		const char *name = w->names[i];
		uint64_t hash = hash_bytes(name, strlen(name), 0);

		if (index_find(&index, hash, name_equal, w->names, name) != INDEX_NONE)
			err = error_set(e, 0, "two images would be the one file %s/%s", w->path,
					name);
		else if (index_add(&index, hash, i))
			err = error_no_memory(e);
	}
	index_free(&index);
	return err;
}

static int name_files(struct writer *w, struct error *e)
{
	int err = 0;

	w->names = calloc(w->groups.count, sizeof(*w->names));
	for (size_t i = 0; w->names && i < w->groups.count && !err; i++) {
		struct dcpi_header h;

		err = describe(w, &w->groups.all[i], &h);
		err = err ?: name_file(&h, &w->names[i]);
		dcpi_header_free(&h);
	}
	return err || !w->names ? error_no_memory(e) : check_names(w, e);
}

/* --- Files --- */

static int too_much(const struct dcpi_header *h, const struct dcpi_group *g, struct error *e)
{
	const struct text *path = &h->fields[DCPI_PATH].text;
	int size = path->end - path->at < 512 ? path->end - path->at : 512;
	uint64_t start = h->fields[DCPI_TSTART].number;
	size_t bad = dcpi_body_check(g->counts, g->count, start);
	int err;

	if (bad == g->count)
		err = error_set(e, EOVERFLOW, "%.*s: %" PRIu64 " samples in all", size, path->at,
				dcpi_body_total(g->counts, g->count));
	else if (g->counts[bad].count > UINT32_MAX)
		err = error_set(e, EOVERFLOW, "%.*s: %" PRIu64 " samples at address 0x%" PRIx64,
				size, path->at, g->counts[bad].count, g->counts[bad].address);
	else
		err = error_set(e, EOVERFLOW,
				"%.*s: address 0x%" PRIx64 " is 4 GiB or more behind the text's "
				"beginning at 0x%" PRIx64,
				size, path->at, g->counts[bad].address, start);
	error_mend(e, "a DCPI file counts in 32 bits: write another format, or more often");
	return err;
}

static int check_counts(const struct dcpi_header *h, const struct dcpi_group *g, struct error *e)
{
	uint64_t start = h->fields[DCPI_TSTART].number;

	if (dcpi_body_check(g->counts, g->count, start) < g->count ||
	    dcpi_body_total(g->counts, g->count) > UINT32_MAX)
		return too_much(h, g, e);
	return 0;
}

static int append_count(const struct dcpi_count *c, void *context)
{
	struct dcpi_group *g = context;

	if (array_reserve(&g->counts, &g->count_room, g->count + 1, sizeof(*g->counts)))
		return -ENOMEM;
	g->counts[g->count++] = *c;
	return 0;
}

/* Reads what is there, and adds the group's to it: *old becomes the header of both. */
static int add_to_file(struct input *in, struct dcpi_header *old, const struct dcpi_header *h,
		       struct dcpi_group *g, struct error *e)
{
	const char *differs;
	int err = input_need_all(in, e);

	err = err ?: dcpi_header_read(in, old, e);
	/* The body is read by its own header, before that becomes another one. */
	err = err ?: dcpi_body_read(in, old, append_count, g, e);
	if (err)
		return err;
	g->count = dcpi_body_fold(g->counts, g->count);
	err = dcpi_header_add(old, h, &differs);
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (err) {
		error_set(e, 0, "cannot add to %s: its %s is another", in->path, differs);
		error_mend(e, "give another directory");
	}
	return err;
}

static void write_group(const struct dcpi_header *h, const struct dcpi_group *g, FILE *out)
{
	dcpi_header_write(h, out);
	dcpi_body_write(g->counts, g->count, h->fields[DCPI_TSTART].number, out);
}

/* The same image in the same epoch accumulates: dcpid(1) adds to the file of both. */
static int write_sum(const char *path, const struct dcpi_header *h, struct dcpi_group *g, FILE *out,
		     struct error *e)
{
	struct dcpi_header old = { 0 };
	struct input in;
	int err = input_open(path, NULL, &in, e);

	if (err)
		return err;
	err = add_to_file(&in, &old, h, g, e);
	err = err ?: check_counts(&old, g, e);
	if (!err)
		write_group(&old, g, out);
	dcpi_header_free(&old);
	input_close(&in);
	return err;
}

static int write_file(FILE *out, size_t number, void *context, struct error *e)
{
	struct writer *w = context;
	struct dcpi_group *g = &w->groups.all[number];
	struct dcpi_header h;
	char *path = NULL;
	int err = describe(w, g, &h);

	if (err || asprintf(&path, "%s/%s", w->path, w->names[number]) < 0)
		err = error_no_memory(e);
	else if (access(path, F_OK) == 0)
		err = write_sum(path, &h, g, out, e);
	else if ((err = check_counts(&h, g, e)) == 0)
		write_group(&h, g, out);
	free(path);
	dcpi_header_free(&h);
	return err;
}

static void free_writer(struct writer *w)
{
	for (size_t i = 0; w->names && i < w->groups.count; i++)
		free(w->names[i]);
	free(w->names);
	for (size_t i = 0; i < w->text_count; i++)
		free(w->texts[i]);
	free(w->texts);
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
	struct writer w = { .p = p, .path = path, .cpu_mhz = recorded_cpu_mhz(p) };
	int err = dcpi_gather(p, &w.groups, e);

	(void)options;
	if (!err && link_extras(&w))
		err = error_no_memory(e);
	if (!err)
		settle_account(&w);
	err = err ?: name_files(&w, e);
	err = err ?: directory_write(path, w.names, w.groups.count, write_file, &w, e);
	free_writer(&w);
	return err;
}
