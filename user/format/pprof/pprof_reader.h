/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PPROF_READER_H
#define PROFIL_FORMAT_PPROF_READER_H

#include "format/pprof/pprof.h"
#include "format/pprof/pprof_wire.h"

/* What pprof.c and pprof_sample.c share: errors, the string table and ids. */

struct pprof_text {
	const char *interned; /* NULL: not interned yet */
	struct wire bytes;
};

/* Maps the ids of one kind of message, which may be any numbers, to numbers in the profile. */
struct pprof_ids {
	struct pprof_id {
		uint64_t id;
		uint32_t number;
	} * ids;
	size_t count, room;
	size_t dense; /* the first ones have the ids 1 to `dense` and are not in the index */
	struct index index;
};

/* The part of the file with all fields of one kind. */
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
	const char *period_type, *period_unit; /* NULL: not in the file */
	const char *default_type;	       /* NULL: not in the file */
	const char *thread_key;		       /* key of the label that names the thread */
	uint8_t *unknown;		       /* EXTRA_UNKNOWN */
	size_t unknown_size, unknown_room;
	bool dropped;	     /* corrupt data was dropped: warned of once */
	bool missing;	     /* references to strings, functions or locations not in the file */
	bool unknown_inside; /* unknown fields inside messages */

	/* Buffers for one location or sample */
	struct profile_line *lines;
	size_t line_room;
	uint32_t *frames;
	size_t frame_count, frame_room;
	int64_t *values;
	size_t value_count, value_room;
	struct profile_tag *tags;
	size_t tag_count, tag_room;
};

/* Sets r->e to the error at this byte of the window. Returns -EINVAL. */
int pprof_fail(struct pprof_reader *r, const uint8_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether to drop a reference to something that is not in the file, which may be truncated. */
static inline bool pprof_drops_reference(struct pprof_reader *r)
{
	return r->missing |= r->in->options.salvage;
}

/* Sets *text to the string with this number, interned. at: of the reference. */
int pprof_string(struct pprof_reader *r, const uint8_t *at, uint64_t number, const char **text);

/* The number of the message with this id; PROFILE_NONE: the file has none. */
uint32_t pprof_find_id(const struct pprof_ids *ids, uint64_t id);
int pprof_add_id(struct pprof_reader *r, struct pprof_ids *ids, uint64_t id, uint32_t number);
void pprof_free_ids(struct pprof_ids *ids);

/* pprof_sample.c: adds a Sample; all messages that it refers to have been read. */
int pprof_read_sample(struct pprof_reader *r, const struct wire_field *f);

#endif
