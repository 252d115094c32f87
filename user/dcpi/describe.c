// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "dcpi/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/array.h"
#include "util/clock.h"

#define PAGE UINT64_C(4096)

/* --- Values --- */

void dcpi_texts_free(struct dcpi_texts *texts)
{
	array_free_texts(texts->all, texts->count);
	*texts = (struct dcpi_texts){ 0 };
}

int dcpi_own_text(struct dcpi_texts *texts, char *text)
{
	if (text && array_add(texts->all, texts->count, texts->room, text) == 0)
		return 0;
	free(text);
	return -ENOMEM;
}

/* A value does not begin with a blank, and has no newline. */
int dcpi_line_text(struct dcpi_texts *texts, const char *text, size_t size, struct text *t)
{
	char *copy;

	*t = (struct text){ text, text + size };
	if (size == 0 || (!is_blank(*text) && !memchr(text, '\n', size)))
		return 0;
	copy = strndup(text, size);
	if (dcpi_own_text(texts, copy))
		return -ENOMEM;
	if (is_blank(*copy))
		*copy = '?';
	for (char *newline = strchr(copy, '\n'); newline; newline = strchr(newline, '\n'))
		*newline = '?';
	*t = text_of(copy);
	return 0;
}

int dcpi_set_text(struct dcpi_texts *texts, struct dcpi_header *h, enum dcpi_keyword k,
		  const char *text, const char *unknown)
{
	struct dcpi_field *f = &h->fields[k];

	text = *text || !unknown ? text : unknown;
	f->given = *text;
	return dcpi_line_text(texts, text, strlen(text), &f->text);
}

void dcpi_set_number(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number)
{
	h->fields[k] = (struct dcpi_field){ .given = true, .number = number };
}

void dcpi_set_nonzero(struct dcpi_header *h, enum dcpi_keyword k, uint64_t number)
{
	if (number)
		dcpi_set_number(h, k, number);
}

void dcpi_set_start(struct dcpi_header *h, uint64_t ns)
{
	dcpi_set_number(h, DCPI_EPOCH, ns / NS_PER_S / 60 * 60);
	dcpi_set_number(h, DCPI_START, ns);
}

/* --- The image --- */

/*
 * image_kind() knows more kinds. But /memfd: and the like have always been written by their
 * offsets, and counts can be added to an existing file only if its "x-addresses" agrees.
 */
bool dcpi_is_memory(const char *path)
{
	return *path == '[' || !*path || strncmp(path, "//", 2) == 0;
}

/* Sets an ID that needs no file: a window, a build ID, or 0 for none. */
static int set_id(struct dcpi_texts *texts, struct dcpi_field *f, const struct dcpi_image *image)
{
	char *window;

	f->given = true;
	if (image->addresses == DCPI_MEMORY && image->window != image->main_window) {
		if (asprintf(&window, "%08" PRIx32, image->window) < 0)
			return -ENOMEM;
		f->text = text_of(window);
		return dcpi_own_text(texts, window);
	}
	if (*image->id) {
		f->text = text_of(image->id);
		return 0;
	}
	f->given = image->addresses == DCPI_MEMORY || !image->path_size;
	f->text = text_of("0");
	return 0;
}

int dcpi_set_image(struct dcpi_texts *texts, struct dcpi_header *h, const struct dcpi_image *image)
{
	struct dcpi_field *path = &h->fields[DCPI_PATH];

	path->given = image->path_size;
	if (image->addresses != DCPI_OWN)
		dcpi_set_number(h, DCPI_ADDRESSES, image->addresses);
	return dcpi_line_text(texts, image->path, image->path_size, &path->text)
		       ?: set_id(texts, &h->fields[DCPI_IMAGE], image);
}

/* For a few paths, bit by bit is fast enough. */
uint32_t dcpi_checksum(const char *text, size_t size)
{
	uint32_t sum = UINT32_MAX;

	for (size_t i = 0; i < size; i++) {
		sum ^= (unsigned char)text[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
	}
	return ~sum;
}

/* The checksum is that of its path. */
int dcpi_make_id(struct dcpi_texts *texts, struct dcpi_header *h, const struct dcpi_image *image,
		 int64_t mtime)
{
	uint32_t sum = dcpi_checksum(image->path, image->path_size) & 0xffffff;
	struct dcpi_field *f = &h->fields[DCPI_IMAGE];
	char date[32] = "00000000000000", *id;
	time_t time = mtime;
	struct tm tm;

	if (mtime && gmtime_r(&time, &tm) && tm.tm_year < 9999 - 1900)
		strftime(date, sizeof(date), "%Y%m%d%H%M%S", &tm);
	if (asprintf(&id, "%s%06" PRIx32, date, sum) < 0)
		return -ENOMEM;
	f->given = true;
	f->text = text_of(id);
	return dcpi_own_text(texts, id);
}

int dcpi_set_unattributed(struct dcpi_texts *texts, struct dcpi_header *h)
{
	const struct text *host = &h->fields[DCPI_PLATFORM].text;
	char *path;

	h->fields[DCPI_IMAGE] = (struct dcpi_field){ .given = true, .text = text_of("0") };
	if (asprintf(&path, DCPI_UNKNOWN_AT "%.*s", (int)(host->end - host->at), host->at) < 0)
		return -ENOMEM;
	h->fields[DCPI_PATH] = (struct dcpi_field){ .given = true, .text = text_of(path) };
	return dcpi_own_text(texts, path);
}

uint64_t dcpi_fit_range(const struct dcpi_count *counts, size_t *count, uint64_t *start,
			uint64_t *size)
{
	uint64_t last, before = *start;
	size_t kept = *count, all = *count;

	if (!all)
		return 0;
	if (!*size || counts[0].address < before)
		*start = counts[0].address & -PAGE;
	while (kept && counts[kept - 1].address - *start > UINT32_MAX)
		kept--;
	if (*size)
		*size += before - *start;
	last = kept ? counts[kept - 1].address : *start;
	/* Without the end of the last page, which may exceed 64 bits. */
	if (last - *start >= *size)
		*size = (last | (PAGE - 1)) - *start + 1;
	*count = kept;
	return dcpi_body_total(counts + kept, all - kept);
}

int dcpi_set_dropped(struct dcpi_header *h, uint64_t dropped)
{
	const struct text cause = text_of("4 GiB or more above the text's start");

	return dropped ? dcpi_header_add_lost(h, &cause, dropped) : 0;
}

void dcpi_complete(struct dcpi_header *h, uint64_t cpu_mhz)
{
	struct dcpi_field *f = h->fields;

	if (!f[DCPI_VERSION].given)
		dcpi_set_number(h, DCPI_VERSION, DCPI_MINOR);
	if (!f[DCPI_CPUSPEED].given)
		dcpi_set_number(h, DCPI_CPUSPEED, cpu_mhz);
	/* The reader names an image without a path by its ID. */
	if (text_equal(&f[DCPI_PATH].text, &f[DCPI_IMAGE].text))
		f[DCPI_PATH].given = false;
}
