/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PPROF_READER_H
#define PROFIL_FORMAT_PPROF_READER_H

#include "format/pprof/pprof.h"
#include "format/pprof/pprof_wire.h"

/* What pprof.c and pprof_sample.c share: errors, the string table and ids. */

struct pprof_text {
	const char *interned; /* NULL: not yet */
	struct wire bytes;
};

/* The file's ids may be any numbers. Maps those of one kind of message to our own. */
struct pprof_ids {
	struct pprof_id {
		uint64_t id;
		uint32_t number;
	} * ids;
	size_t count, room;
	size_t dense; /* so many at the beginning have the ids 1, 2, 3, ... and are not in the index
		       */
	struct index index;
};

/* From the first field of one kind to behind the last. */
struct pprof_range {
	const uint8_t *start, *end;
};

struct pprof_reader {
	const struct input *in;
	struct profile *p;
	struct error *e;
	struct pprof_range ranges[PPROF_FIELD_UNKNOWN];
	struct pprof_text *strings;
	size_t string_count, string_room;
	struct pprof_ids mappings, functions, locations;
	uint64_t period;
	const char *period_type, *period_unit; /* NULL: the file does not say */
	const char *default_type;	       /* NULL: the file does not say */
	const char *thread_key;		       /* of the label that names the thread */
	uint8_t *unknown;		       /* fields of Profile */
	size_t unknown_size, unknown_room;
	bool left_out;	     /* that is told once */
	bool missing;	     /* texts, functions or locations that are referred to */
	bool unknown_inside; /* of messages: there were fields that we do not know */

	/* Room for one location's, or one sample's */
	struct profile_line *lines;
	size_t line_room;
	uint32_t *frames;
	size_t frame_count, frame_room;
	int64_t *values;
	size_t value_count, value_room;
	struct profile_tag *tags;
	size_t tag_count, tag_room;
};

/* Sets r->e to what is wrong at this byte. Returns -EINVAL. */
int pprof_fail(struct pprof_reader *r, const uint8_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether to go on without what the file refers to and lacks: it may have been cut off. */
static inline bool pprof_does_without(struct pprof_reader *r)
{
	return r->missing |= r->in->options.salvage;
}

/* Interns the string of this number. */
int pprof_string(struct pprof_reader *r, const uint8_t *at, uint64_t number, const char **text);

/* The number that belongs to the id; PROFILE_NONE: the file has no such id. */
uint32_t pprof_find_id(const struct pprof_ids *ids, uint64_t id);
int pprof_add_id(struct pprof_reader *r, struct pprof_ids *ids, uint64_t id, uint32_t number);
void pprof_free_ids(struct pprof_ids *ids);

/* pprof_sample.c: reads a Sample; all that it refers to has been read. */
int pprof_read_sample(struct pprof_reader *r, const struct wire_field *f);

#endif
