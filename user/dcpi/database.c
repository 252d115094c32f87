// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "dcpi/database.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dcpi/describe.h"
#include "util/array.h"
#include "util/directory.h"
#include "util/index.h"
#include "util/input.h"

/*
 * The longest ID, event or label in a file's name.
 * Bound: files: bytes of an ID, an event or a label in a file's name; then: it is cut; files with
 * one name get numbers.
 */
#define PART_MAX 64

struct writer {
	const char *path;
	struct dcpi_file *files;
	size_t count;
	char **names;	   /* of the files, relative to path */
	uint32_t *numbers; /* by file: the last number given to others that would have its name */
};

/* --- Names --- */

/* A part of a file's name, without characters that a name must not have. */
struct part {
	char text[NAME_MAX + 1];
};

static struct part make_part(const struct text *t, size_t most)
{
	struct part part = { "" };
	size_t size = t->end - t->at;

	if (size)
		memcpy(part.text, t->at, MIN(size, most));
	directory_clean_name(part.text);
	return part;
}

/*
 * IMAGE[-CHECKSUM][-NUMBER]. The checksum is that of a name that was cleaned or truncated: it
 * depends on the image alone, so that the image has the same file each time.
 */
static struct part name_image(const struct dcpi_header *h, uint32_t number, size_t most)
{
	struct text base = h->fields[DCPI_PATH].text;
	const char *slash = last_of(&base, '/');
	char suffix[32] = "";
	struct part part;
	size_t size = 0;

	if (slash && slash + 1 < base.end)
		base.at = slash + 1;
	if (is_empty(&base))
		base = text_of("unnamed");
	part = make_part(&base, most);
	if (!text_is(&base, part.text))
		size = snprintf(suffix, sizeof(suffix), "-%08" PRIx32,
				dcpi_checksum(base.at, base.end - base.at));
	if (number)
		size += snprintf(suffix + size, sizeof(suffix) - size, "-%" PRIu32, number);
	part = make_part(&base, most - size);
	memcpy(part.text + strlen(part.text), suffix, size + 1);
	return part;
}

/* EPOCH/HOST/IMAGE.ID[_LABEL]_EVENT. `number` is 0 for none. Returns 0 or -ENOMEM. */
static int name_file(const struct dcpi_header *h, uint32_t number, char **name)
{
	const struct dcpi_field *f = h->fields;
	struct part host = make_part(&f[DCPI_PLATFORM].text, NAME_MAX);
	struct part id = make_part(&f[DCPI_IMAGE].text, PART_MAX);
	struct part event = make_part(&f[DCPI_EVENT].text, PART_MAX);
	struct part label = make_part(&f[DCPI_LABEL].text, PART_MAX);
	size_t rest = strlen(id.text) + strlen(event.text) + strlen(label.text) +
		      strlen("._"
			     "_");
	struct part base = name_image(h, number, NAME_MAX - rest);
	char epoch[DCPI_EPOCH_SIZE];

	dcpi_epoch_text(f[DCPI_EPOCH].number, epoch);
	if (asprintf(name, "%s/%s/%s.%s%s%s_%s", epoch, host.text, base.text, id.text,
		     *label.text ? "_" : "", label.text, event.text) >= 0)
		return 0;
	*name = NULL;
	return -ENOMEM;
}

EQUAL(name_equal, char *const, char, strcmp(*a, b) == 0)

/*
 * Two files must not have one name: parts of names are truncated and cleaned, and a program chooses
 * them. All but the first get a number: one program must not keep the others' images from being
 * written. Returns 0 or -ENOMEM.
 */
static int name_next(struct writer *w, struct index *index, size_t i)
{
	uint32_t first = INDEX_NONE, number = 0;

	for (;;) {
		int err = name_file(&w->files[i].header, number, &w->names[i]);
		const char *name = w->names[i];
		uint64_t hash = err ? 0 : hash_bytes(name, strlen(name), 0);
		uint32_t same = INDEX_NONE;

		if (!err)
			same = index_find(index, hash, name_equal, w->names, name);
		if (same == INDEX_NONE)
			return err ?: index_add(index, hash, i);
		if (first == INDEX_NONE)
			first = same;
		number = ++w->numbers[first] + 1;
		free(w->names[i]);
	}
}

/* --- Files --- */

static int check_counts(const struct dcpi_header *h, const struct dcpi_file *file, struct error *e)
{
	const struct text *path = &h->fields[DCPI_PATH].text;
	int size = MIN(path->end - path->at, 512);
	uint64_t start = h->fields[DCPI_TSTART].number;
	uint64_t total = dcpi_body_total(file->counts, file->count);
	size_t bad = dcpi_body_check(file->counts, file->count, start);
	int err;

	if (bad == file->count && total <= UINT32_MAX)
		return 0;
	if (bad == file->count)
		err = error_set(e, EOVERFLOW, "%.*s: %" PRIu64 " samples in all", size, path->at,
				total);
	else if (file->counts[bad].count > UINT32_MAX)
		err = error_set(e, EOVERFLOW, "%.*s: %" PRIu64 " samples at address 0x%" PRIx64,
				size, path->at, file->counts[bad].count, file->counts[bad].address);
	else
		err = error_set(e, EOVERFLOW,
				"%.*s: address 0x%" PRIx64 " is 4 GiB or more above the text's "
				"start at 0x%" PRIx64,
				size, path->at, file->counts[bad].address, start);
	error_hint(e, "a DCPI file counts in 32 bits: write another format, or more often");
	return err;
}

static int append_count(const struct dcpi_count *c, void *context)
{
	struct dcpi_file *file = context;

	return array_add(file->counts, file->count, file->room, *c);
}

/* Reads a whole file. The caller releases *bytes by free(), also on an error. */
static int read_all(int fd, struct input *in, uint8_t **bytes, struct error *e)
{
	struct stat status;
	ssize_t n = 1;

	if (fstat(fd, &status))
		return error_set(e, errno, "cannot read %s", in->path);
	if (status.st_size >= PTRDIFF_MAX || !(*bytes = malloc(status.st_size + 1)))
		return error_no_memory(e);
	while (n && in->size < (size_t)status.st_size) {
		n = read(fd, *bytes + in->size, status.st_size - in->size);
		if (n < 0 && errno != EINTR)
			return error_set(e, errno, "cannot read %s", in->path);
		in->size += MAX(n, 0);
	}
	in->bytes = *bytes;
	return 0;
}

/* Reads the existing file and adds its counts to `file`; *old becomes the header of the sum. */
static int add_to_file(struct input *in, struct dcpi_header *old, struct dcpi_file *file,
		       struct error *e)
{
	const char *differs;
	int err = dcpi_header_read(in, old, e);

	/* The body is read by its own header, which then becomes the sum's. */
	err = err ?: dcpi_body_read(in, old, append_count, file, e);
	if (err)
		return err;
	file->count = dcpi_body_fold(file->counts, file->count);
	err = dcpi_header_add(old, &file->header, &differs);
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (err) {
		error_set(e, 0, "cannot add to %s: its %s differs", in->path, differs);
		error_hint(e, "give another directory");
	}
	return err;
}

static int write_counts(const struct dcpi_header *h, const struct dcpi_file *file, FILE *out,
			struct error *e)
{
	int err = check_counts(h, file, e);

	if (err)
		return err;
	dcpi_header_write(h, out);
	dcpi_body_write(file->counts, file->count, h->fields[DCPI_TSTART].number, out);
	return 0;
}

/* Counts of an image accumulate during an epoch, as dcpid(1) has it. */
static int write_sum(int old, const char *path, struct dcpi_file *file, FILE *out, struct error *e)
{
	struct input in = { .path = path };
	struct dcpi_header header = { 0 };
	uint8_t *bytes = NULL;
	int err;

	if (old == -EINVAL || old == -ELOOP)
		return error_set(e, 0, "cannot add to %s: it is no regular file", path);
	if (old < 0)
		return error_set(e, -old, "cannot open %s", path);
	err = read_all(old, &in, &bytes, e);
	err = err ?: add_to_file(&in, &header, file, e);
	err = err ?: write_counts(&header, file, out, e);
	dcpi_header_free(&header);
	free(bytes);
	return err;
}

static int write_file(FILE *out, size_t number, int old, void *context, struct error *e)
{
	struct writer *w = context;
	struct dcpi_file *file = &w->files[number];
	char *path;
	int err;

	if (asprintf(&path, "%s/%s", w->path, w->names[number]) < 0)
		return error_no_memory(e);
	if (old == -ENOENT)
		err = write_counts(&file->header, file, out, e);
	else
		err = write_sum(old, path, file, out, e);
	free(path);
	return err;
}

int dcpi_database_write(const char *path, struct dcpi_file *files, size_t count, struct error *e)
{
	struct writer w = { .path = path, .files = files, .count = count };
	struct index index = { 0 };
	int err = 0;

	w.names = calloc(count ?: 1, sizeof(*w.names));
	w.numbers = calloc(count ?: 1, sizeof(*w.numbers));
	if (!w.names || !w.numbers)
		err = -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		err = name_next(&w, &index, i);
	index_free(&index);
	if (err)
		error_no_memory(e);
	err = err ?: directory_write(path, w.names, count, write_file, &w, e);
	array_free_texts(w.names, count);
	free(w.numbers);
	return err;
}

void dcpi_file_free(struct dcpi_file *file)
{
	dcpi_header_free(&file->header);
	free(file->counts);
	*file = (struct dcpi_file){ 0 };
}
