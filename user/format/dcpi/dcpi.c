// SPDX-License-Identifier: GPL-2.0-only
#include "format/dcpi/dcpi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dcpi/body.h"
#include "dcpi/header.h"
#include "profile/build_id.h"
#include "util/directory.h"

/* Opens the stream of a directory. fd: or -errno. Returns NULL with errno set. */
static DIR *open_stream(int fd)
{
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		errno = -fd;
	else if (!directory)
		close(fd);
	return directory;
}

/*
 * Removes the host's files in the epoch. *dropped: whether there were any and all of them are
 * removed. Returns 0, or -errno: not all of them could be removed.
 */
static int drop_epoch(int database, const char *epoch, const char *host, bool *dropped)
{
	DIR *directory = open_stream(directory_open_in(database, epoch, false)), *files;
	const struct dirent *entry;
	int err = 0;

	*dropped = false;
	if (!directory)
		return 0;
	files = open_stream(directory_open_in(dirfd(directory), host, false));
	if (files) {
		while ((entry = readdir(files)))
			unlinkat(dirfd(files), entry->d_name, 0); /* not directories */
		closedir(files);
		err = unlinkat(dirfd(directory), host, AT_REMOVEDIR) ? -errno : 0;
		*dropped = !err;
	}
	closedir(directory);
	if (*dropped)
		unlinkat(database, epoch, AT_REMOVEDIR); /* others may have files in it */
	return err;
}

int dcpi_drop_epochs(const char *path, const char *host, uint64_t before_s, size_t *dropped,
		     struct error *e)
{
	char oldest[DCPI_EPOCH_SIZE], name[NAME_MAX + 1];
	DIR *database = open_stream(directory_open(path));
	const struct dirent *entry;
	int err = 0;

	*dropped = 0;
	if (!database)
		return errno == ENOENT ? 0 : error_set(e, errno, "cannot read %s", path);
	dcpi_epoch_text(before_s, oldest);
	snprintf(name, sizeof(name), "%s", host);
	directory_clean_name(name);
	while ((entry = readdir(database))) {
		const char *epoch = entry->d_name;
		size_t digits = strspn(epoch, "0123456789");
		bool removed;
		int remove_err;

		if (epoch[digits] || digits != strlen(oldest) || strcmp(epoch, oldest) >= 0)
			continue;
		remove_err = drop_epoch(dirfd(database), epoch, name, &removed);
		*dropped += removed;
		if (remove_err)
			err = error_set(e, -remove_err, "cannot remove the old epoch %s/%s/%s",
					path, epoch, name);
	}
	closedir(database);
	return err;
}

/* Adds what the host has in the epoch. Returns whether it has anything. */
static bool measure_epoch(int database, const char *epoch, const char *host, uint64_t *bytes)
{
	DIR *directory = open_stream(directory_open_in(database, epoch, false)), *files;
	const struct dirent *entry;
	struct stat status;

	if (!directory)
		return false;
	files = open_stream(directory_open_in(dirfd(directory), host, false));
	while (files && (entry = readdir(files)))
		if (!fstatat(dirfd(files), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(status.st_mode))
			*bytes += (uint64_t)status.st_blocks * 512;
	if (files)
		closedir(files);
	closedir(directory);
	return files;
}

int dcpi_measure_epochs(const char *path, const char *host, uint64_t *bytes, uint64_t *oldest_end_s,
			struct error *e)
{
	char first[DCPI_EPOCH_SIZE] = "", second[DCPI_EPOCH_SIZE] = "", name[NAME_MAX + 1];
	DIR *database = open_stream(directory_open(path));
	const struct dirent *entry;
	struct tm tm = { 0 };

	*bytes = 0;
	*oldest_end_s = UINT64_MAX;
	if (!database)
		return errno == ENOENT ? 0 : error_set(e, errno, "cannot read %s", path);
	snprintf(name, sizeof(name), "%s", host);
	directory_clean_name(name);
	while ((entry = readdir(database))) {
		const char *epoch = entry->d_name;

		if (strlen(epoch) != strlen("YYMMDDhhmm") || epoch[strspn(epoch, "0123456789")] ||
		    !measure_epoch(dirfd(database), epoch, name, bytes))
			continue;
		if (!*first || strcmp(epoch, first) < 0) {
			strcpy(second, first);
			strcpy(first, epoch);
		} else if (!*second || strcmp(epoch, second) < 0) {
			strcpy(second, epoch);
		}
	}
	closedir(database);
	if (*second && strptime(second, "%y%m%d%H%M", &tm))
		*oldest_end_s = timegm(&tm);
	return 0;
}

struct reader {
	struct input *in;
	struct profile *p;
	struct error *e;
	struct dcpi_header header;
	bool unattributed; /* the file counts samples outside of any image */
	uint32_t image, mapping, labels;
};

static const struct dcpi_field *field(const struct reader *r, enum dcpi_keyword k)
{
	return &r->header.fields[k];
}

static int size_of(const struct text *t)
{
	return t->end - t->at;
}

/* --- The recording --- */

/* Sets *string to the field's text, interned; not if the file has no such field, or `unknown`. */
static int take_string(struct reader *r, enum dcpi_keyword k, const char *unknown,
		       const char **string)
{
	const struct text *t = &field(r, k)->text;

	if (!field(r, k)->given || text_is(t, unknown))
		return 0;
	return profile_string_n(r->p, t->at, size_of(t), string);
}

/* Sets the members about the recording, and adds the value types. Returns 0 or -ENOMEM. */
static int read_recording(struct reader *r)
{
	struct profile *p = r->p;
	const char *unit = "count", *type = "samples";
	bool other_unit = field(r, DCPI_UNIT)->given;
	int err = take_string(r, DCPI_EVENT, DCPI_SAMPLES, &p->event);

	err = err ?: take_string(r, DCPI_PLATFORM, DCPI_UNKNOWN, &p->host);
	err = err ?: take_string(r, DCPI_COMMAND, "", &p->command);
	err = err ?: take_string(r, DCPI_UNIT, "", &unit);
	p->time_ns = dcpi_header_time(&r->header);
	p->duration_ns = field(r, DCPI_DURATION)->number;
	p->bucket = field(r, DCPI_BUCKET)->number;
	p->bits = 64;
	if (!err && other_unit && *p->event)
		type = p->event;
	err = err ?: profile_add_value_type(p, type, unit);
	if (err)
		return err;
	if (!dcpi_is_clock(p->event) && !field(r, DCPI_PERIOD_UNIT)->given) {
		p->value_types[0].period = field(r, DCPI_PERIOD)->number;
		return 0;
	}
	if (!other_unit && profile_add_sum(p, PROFILE_SUM_CPU))
		return -ENOMEM;
	profile_set_tick_ns(p, field(r, DCPI_PERIOD)->number);
	return 0;
}

/* --- The image --- */

/*
 * Parses a build ID. Returns its size, or 0 if no build ID has that size: DCPI's own ids are a date
 * and a checksum, 20 digits.
 */
static size_t build_id(const struct text *digits, uint8_t id[PROFILE_BUILD_ID_MAX])
{
	size_t size = build_id_parse(digits->at, size_of(digits), id);

	return size == 8 || size == 16 || size == 20 || size == 32 ? size : 0;
}

/* Adds the labels, the image and its mapping. Returns 0 or -ENOMEM. */
static int read_image(struct reader *r)
{
	const struct text *digits = &field(r, DCPI_IMAGE)->text, *name = digits;
	const struct dcpi_field *path_field = field(r, DCPI_PATH);
	uint64_t start = field(r, DCPI_TSTART)->number, size = field(r, DCPI_TSIZE)->number, limit;
	bool is_own = field(r, DCPI_ADDRESSES)->number == DCPI_OWN, has_id = false;
	struct profile_labels labels = { .comm = "" };
	struct profile_tag label = { .key = PROFILE_LABEL_KEY };
	struct text path_text = path_field->text;
	uint8_t id[PROFILE_BUILD_ID_MAX];
	const char *path = "";
	int err = take_string(r, DCPI_LABEL, "", &label.text);

	if (label.text) {
		labels.tags = &label;
		labels.tag_count = 1;
	}
	err = err ?: profile_add_labels(r->p, &labels, &r->labels);
	r->image = r->mapping = PROFILE_NONE;
	for (const char *at = digits->at; at < digits->end; at++)
		has_id |= *at != '0';
	/* DCPI counts samples outside of any image in a file of its own. */
	r->unattributed = !has_id && start == 0 && size <= 1 &&
			  (!path_field->given || take(&path_text, DCPI_UNKNOWN_AT));
	if (err || r->unattributed)
		return err;

	/* An image without a path gets its id as its name. */
	if (path_field->given)
		name = &path_field->text;
	if (path_field->given || has_id)
		err = profile_string_n(r->p, name->at, size_of(name), &path);
	err = err ?: profile_add_image(r->p, path, id, build_id(digits, id), &r->image);
	if (err)
		return err;
	if (is_own)
		r->p->images[r->image].text_start = start;
	if (size == 0)
		return 0;
	if (__builtin_add_overflow(start, size, &limit))
		limit = UINT64_MAX;
	if (profile_add_mapping(r->p, start, limit, is_own ? 0 : start, r->image, &r->mapping))
		return -ENOMEM;
	r->p->mappings[r->mapping].linked = is_own;
	if (is_own)
		r->p->images[r->image].text_size = size;
	return 0;
}

/* --- Extras: header lines that the profile cannot represent --- */

/* True if a writer would write the same line from the rest of the profile. */
static bool is_represented(const struct reader *r, enum dcpi_keyword k)
{
	uint8_t id[PROFILE_BUILD_ID_MAX];

	if (k == DCPI_VERSION && field(r, k)->number != DCPI_MINOR)
		return false;
	if (k == DCPI_IMAGE && !r->unattributed && !build_id(&field(r, k)->text, id))
		return false;
	if (k == DCPI_CPUSPEED && field(r, k)->number)
		return false;
	if (k == DCPI_CPUAMASK || k == DCPI_CPUIMPLV || k == DCPI_CPUCOUNT)
		return false;
	return dcpi_header_is_canonical(&r->header, k);
}

static int add_extra(struct reader *r, const struct text *line)
{
	return profile_add_extra(r->p, DCPI_NAME, r->image, line->at, size_of(line));
}

static int add_warnings(struct reader *r)
{
	const struct text *bad = &r->header.malformed;
	uint64_t minor = field(r, DCPI_VERSION)->number;
	bool alpha = field(r, DCPI_CPUAMASK)->given || field(r, DCPI_CPUIMPLV)->given;
	int err = 0;

	if (minor != 6 && minor != 7)
		err = profile_warn(r->p, "version 0.%" PRIu64 " of the format is undocumented",
				   minor);
	/*
	 * The format wants a period. Where it is unknown, or there can be none, the writer has 0:
	 * of samples of an unknown event, and of values in a unit, which is a line of our own.
	 */
	if (!err && field(r, DCPI_PERIOD)->number == 0 && !field(r, DCPI_UNIT)->given &&
	    !text_is(&field(r, DCPI_EVENT)->text, DCPI_SAMPLES))
		err = profile_warn(r->p, "the header has a sampling period of 0");
	if (!err && bad->at)
		err = profile_warn(r->p, "the line \"%.*s\" has an invalid value",
				   size_of(bad) < 64 ? size_of(bad) : 64, bad->at);
	if (!err && alpha && !field(r, DCPI_STRIDE)->given && !r->in->options.stride)
		err = profile_warn(r->p, "the file is from an Alpha: if it has a count for each "
					 "instruction, use --dcpi-stride 4");
	return err;
}

/* --- The samples --- */

static int add_count(const struct dcpi_count *c, void *context)
{
	struct reader *r = context;
	int64_t values[2] = { 0 };
	uint32_t location = PROFILE_NONE;

	profile_set_ticks(r->p, c->count, values);
	r->p->totals.counted += c->count;
	if (r->unattributed)
		return profile_add_sample(r->p, NULL, 0, r->labels, values);
	if (profile_add_location(r->p, c->address, r->mapping, &location))
		return -ENOMEM;
	return profile_add_sample(r->p, &location, 1, r->labels, values);
}

static int read_account(struct reader *r)
{
	struct profile_totals *t = &r->p->totals;
	int err = 0;

	t->known = field(r, DCPI_TICKS)->given;
	t->ticks = field(r, DCPI_TICKS)->number;
	t->out_of_range = field(r, DCPI_OUT_OF_RANGE)->number;
	t->excluded = field(r, DCPI_EXCLUDED)->number;
	t->kernel = field(r, DCPI_KERNEL)->number;
	t->cpu_ns = field(r, DCPI_CPU)->number;
	for (size_t i = 0; i < r->header.lost_count && !err; i++) {
		const struct dcpi_lost *lost = &r->header.lost[i];
		const char *cause = "";

		err = profile_string_n(r->p, lost->cause.at, size_of(&lost->cause), &cause);
		err = err ?: profile_add_lost(r->p, cause, lost->count);
	}
	return err;
}

static int dcpi_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	int err = dcpi_header_read(in, &r.header, e);

	err = err ?: read_recording(&r);
	err = err ?: read_image(&r);
	for (enum dcpi_keyword k = 0; k < DCPI_KEYWORDS && !err; k++)
		if (field(&r, k)->given && k != DCPI_STRIDE && !is_represented(&r, k))
			err = add_extra(&r, &field(&r, k)->line);
	for (size_t i = 0; i < r.header.other_count && !err; i++)
		err = add_extra(&r, &r.header.others[i]);
	err = err ?: add_warnings(&r);
	err = err ?: dcpi_body_read(in, &r.header, add_count, &r, e);
	err = err ?: read_account(&r);
	dcpi_header_free(&r.header);
	return err;
}

const struct format format_dcpi = {
	.name = DCPI_NAME,
	.extensions = (const char *const[]){ ".dcpi", NULL },
	.directory_variable = "DCPIDB",
	.keeps = KEEPS(ADDRESSES) | KEEPS(IMAGES) | KEEPS(BUILD_IDS) | KEEPS(LABEL) |
		 KEEPS(VALUES) | KEEPS(EVENT) | KEEPS(PERIOD) | KEEPS(EVENT_PERIOD) | KEEPS(TIME) |
		 KEEPS(DURATION) | KEEPS(HOST) | KEEPS(COMMAND) | KEEPS(ACCOUNT),
	.detect = dcpi_header_detect,
	.read = dcpi_read,
	.write_directory = dcpi_write_directory,
	.dropped_images = dcpi_dropped_images,
	.cannot_hold_in_image = "addresses 4 GiB or more above the start of an image's text",
};
