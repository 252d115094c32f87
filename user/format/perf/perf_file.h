/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PERF_FILE_H
#define PROFIL_FORMAT_PERF_FILE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "profile/profile.h"
#include "symbol/zstd.h"
#include "util/error.h"
#include "util/input.h"
#include "util/table.h"

/* The parts of perf.data around the samples: header, events, features, and where the records are.
 */

/* Records that perf itself adds to the kernel's: tools/lib/perf/include/perf/event.h. */
enum {
	PERF_DATA_HEADER_ATTR = 64,
	PERF_DATA_TRACING_DATA = 66,
	PERF_DATA_BUILD_ID = 67,
	PERF_DATA_AUXTRACE = 71,
	PERF_DATA_EVENT_UPDATE = 78,
	PERF_DATA_FEATURE = 80,
	PERF_DATA_COMPRESSED = 81,
	PERF_DATA_COMPRESSED_2 = 83,
};

/* Bytes of the file. */
struct perf_bytes {
	const uint8_t *at, *end;
};

static inline size_t perf_left(const struct perf_bytes *b)
{
	return b->end - b->at;
}

/* Takes an integer of this size; 0, and nothing is left, if there are fewer bytes. */
static inline void perf_take(struct perf_bytes *b, void *value, size_t size)
{
	if (perf_left(b) < size) {
		memset(value, 0, size);
		b->at = b->end;
		return;
	}
	memcpy(value, b->at, size);
	b->at += size;
}

static inline uint64_t perf_take_u64(struct perf_bytes *b)
{
	uint64_t value;

	perf_take(b, &value, sizeof(value));
	return value;
}

static inline uint32_t perf_take_u32(struct perf_bytes *b)
{
	uint32_t value;

	perf_take(b, &value, sizeof(value));
	return value;
}

/* Moves `at` by `size` bytes. Returns false, and nothing is left, if there are fewer. */
static inline bool perf_skip(struct perf_bytes *b, uint64_t size)
{
	bool enough = size <= perf_left(b);

	b->at = enough ? b->at + size : b->end;
	return enough;
}

/* The kind of event that was recorded, with one attribute for each CPU type that has it. */
struct perf_attr {
	struct perf_event_attr attr;
	const char *name; /* NULL: the file has none */
	uint64_t samples;
	uint64_t lost; /* PERF_RECORD_LOST: records that found the buffer full */
	uint64_t lost_samples;
};

/* A record, in the order of time. */
struct perf_entry {
	uint64_t time;
	uint64_t at; /* see perf_record() */
	uint32_t attr;
};

/* An ID of an event, and its attribute. */
struct perf_id {
	uint64_t id;
	uint32_t attr;
};

/* A build ID of the feature section, or of a record in a pipe. */
struct perf_build_id {
	const char *path; /* a string of the profile */
	uint8_t bytes[20];
	uint32_t size;
};

struct perf_file {
	struct input *in;
	struct profile *p;
	struct error *e;
	struct perf_attr *attrs;
	size_t attr_count, attr_room;
	bool asks_build_ids; /* an event asked for build IDs in the records of mappings */
	TABLE(struct perf_id) ids;
	TABLE(struct perf_build_id) build_ids;
	struct perf_entry *entries;
	size_t entry_count, entry_room;
	uint64_t first_ns, last_ns; /* of the samples, by perf's clock; 0: they have no times */
	bool has_clock;		    /* when clock_ns was, it was wall_ns since the epoch */
	uint64_t clock_ns, wall_ns;
	uint64_t at;	    /* offset of what is being read, for messages */
	bool is_foreign;    /* of another kind of machine than this */
	bool is_unfinished; /* perf did not write the end of the file */
	/* What is not read */
	bool has_aux, has_throttled;
	/* Decompressed records */
	struct zstd zstd;
	uint8_t *inflated;
	size_t inflated_size, inflated_room;
	uint64_t deflated_size; /* of the compressed records so far */
};

/*
 * Finds all records and reads what is not a record of the kernel. The whole input is in the window.
 * Returns 0 or -errno with e set; of a file that is corrupt the records before that are found.
 */
int perf_file_read(struct perf_file *f);
void perf_file_free(struct perf_file *f);

/* The record at perf_entry.at: a struct perf_event_header, and the rest. */
struct perf_bytes perf_record(const struct perf_file *f, uint64_t at,
			      struct perf_event_header *header);

/* The build ID that the file has for a path, or NULL. */
const struct perf_build_id *perf_find_build_id(const struct perf_file *f, const char *path);

/* A string up to its NUL, or to the end; interned. Returns 0 or -ENOMEM. */
int perf_string(struct profile *p, const struct perf_bytes *b, const char **text);

#endif
