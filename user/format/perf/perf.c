// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "format/format.h"
#include "format/perf/perf_values.h"
#include "profile/image_name.h"
#include "profile/profile.h"
#include "profile/tags.h"
#include "symbol/cfi/copied_stack.h"
#include "symbol/zstd.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file_open.h"
#include "util/index.h"
#include "util/input.h"
#include "util/order.h"
#include "util/sum.h"
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

/* Processes, threads and mappings at the time of the sample that is being read. */

/* A part of a mapping: what later mappings have left of it. */
struct perf_map {
	uint64_t start, limit;
	uint32_t mapping;  /* of the profile */
	uint32_t function; /* all of it is this function; PROFILE_NONE: it has many */
};

/* An address space. A child shares its parent's until one of them changes. */
struct perf_space {
	uint32_t users;
	uint64_t stamp;	       /* another one after each change; equal ones have equal mappings */
	struct perf_map *maps; /* sorted, without overlap */
	size_t count, room;
};

struct perf_process {
	uint32_t pid, generation;
	bool is_old; /* another process has the PID now */
	const char *comm;
	struct perf_space *space; /* NULL: empty */
};

struct perf_thread {
	uint32_t tid;
	uint32_t process;
	bool is_old;
	const char *comm;
	/* The labels of the last sample in user and in kernel mode, and what they were made of */
	struct perf_labels {
		const char *comm, *process_comm; /* NULL: there was no sample */
		uint32_t cpu;
		uint64_t cgroup;
		uint32_t labels;
	} labels[2];
};

struct perf_tasks {
	struct profile *p;
	struct perf_process *processes;
	size_t process_count, process_room;
	struct index process_index;
	struct perf_thread *threads;
	size_t thread_count, thread_room;
	struct index thread_index;
	struct perf_space kernel;
	uint64_t stamp;
	uint64_t map_records; /* so far */
	uint64_t moved;	      /* mappings that were copied or moved so far */
	uint32_t last;	      /* number of the thread found last */
};

/*
 * The functions return 0, -ENOMEM, or -E2BIG: the file has more changes of mappings than a
 * recording would have. Numbers are those of the arrays, which may move.
 */

/* The header's size in a file, and in a pipe. */
#define FILE_HEADER_SIZE 104
#define PIPE_HEADER_SIZE 16

#define ATTR_SIZE_MIN 64 /* PERF_ATTR_SIZE_VER0 */

/* Bits of the header, and numbers of PERF_DATA_FEATURE */
enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOST = 3,
	FEATURE_RELEASE = 4,
	FEATURE_ARCHITECTURE = 6,
	FEATURE_COMMAND = 11,
	FEATURE_EVENTS = 12,
	FEATURE_DIRECTORY = 24,
	FEATURE_CLOCK = 29,
	FEATURES = 256
};

/* perf_event_header.misc of a build ID that is shorter than 20 bytes: its size is stored */
#define MISC_BUILD_ID_SIZE (1U << 15)

#define EVENT_UPDATE_NAME 2

/* Bound on decompressed records, as on what gzip inflates to. */
#define INFLATED_MIN   ((uint64_t)64 << 20)
#define INFLATED_TIMES 256
/* Bound: size. */
#define INFLATE_PART ((size_t)1 << 20)

/* Sets e: the reason is at f->at. */
static int fail(const struct perf_file *f, const char *reason)
{
	return input_error(f->in, f->at, f->e, "%s", reason);
}

/* A string up to its NUL, or to the end; interned. Returns 0 or -ENOMEM. */
static int perf_string(struct profile *p, const struct perf_bytes *b, const char **text)
{
	return profile_string_n(p, (const char *)b->at, strnlen((const char *)b->at, perf_left(b)),
				text);
}

/* --- Events --- */

/* The number of the attribute of an ID; attr_count: none. */
static uint32_t find_attr(const struct perf_file *f, uint64_t id)
{
	uint32_t number = table_find(&f->ids, &id, sizeof(id));

	return number == INDEX_NONE ? f->attr_count : f->ids.all[number].attr;
}

/* The IDs of the last attribute; of one that has been there, the first. */
static int add_ids(struct perf_file *f, struct perf_bytes ids)
{
	uint32_t number;

	while (perf_left(&ids) >= sizeof(uint64_t)) {
		const struct perf_id id = { perf_take_u64(&ids), f->attr_count - 1 };

		if (table_add(&f->ids, &id, sizeof(id.id), &number))
			return -ENOMEM;
	}
	return 0;
}

/* The attribute has the bytes. Of a longer one, of a later kernel, the rest is unknown here. */
static int add_attr(struct perf_file *f, struct perf_bytes bytes)
{
	struct perf_attr *a;

	if (array_add(f->attrs, f->attr_count, f->attr_room, (struct perf_attr){ 0 }))
		return -ENOMEM;
	a = &f->attrs[f->attr_count - 1];
	memcpy(&a->attr, bytes.at,
	       perf_left(&bytes) < sizeof(a->attr) ? perf_left(&bytes) : sizeof(a->attr));
	f->asks_build_ids |= a->attr.build_id;
	return 0;
}

/* Sets *section to the part of the input; NULL: it is outside. */
static const char *take_section(struct perf_file *f, struct perf_bytes *header,
				struct perf_bytes *section)
{
	uint64_t offset = perf_take_u64(header), size = perf_take_u64(header);

	if (offset > f->in->size || size > f->in->size - offset)
		return "a section is beyond the end of the file";
	*section = (struct perf_bytes){ f->in->bytes + offset, f->in->bytes + offset + size };
	return NULL;
}

/* Attributes of attr_size bytes, each with the section of its IDs. */
static int read_attrs(struct perf_file *f, struct perf_bytes attrs, uint64_t entry_size)
{
	while (perf_left(&attrs)) {
		struct perf_bytes section = { attrs.at, attrs.at }, ids;
		const char *reason;

		f->at = attrs.at - f->in->bytes;
		if (perf_left(&attrs) < entry_size)
			return fail(f, "an event's attributes are truncated");
		section.end = attrs.at + entry_size;
		attrs.at = section.end;
		if (add_attr(f, (struct perf_bytes){ section.at, section.end - 16 }))
			return -ENOMEM;
		section.at = section.end - 16;
		reason = take_section(f, &section, &ids);
		if (reason)
			return fail(f, reason);
		if (add_ids(f, ids))
			return -ENOMEM;
	}
	return 0;
}

/* --- Features --- */

/* The build ID that the file has for a path, or NULL. */
static const struct perf_build_id *perf_find_build_id(const struct perf_file *f, const char *path)
{
	uint32_t id = table_find(&f->build_ids, &path, sizeof(path));

	return id == INDEX_NONE ? NULL : &f->build_ids.all[id];
}

/* The body of a build ID's record: a PID, 24 bytes, and the path. */
static int read_build_id(struct perf_file *f, uint16_t misc, struct perf_bytes b)
{
	struct perf_build_id id = { .size = sizeof(id.bytes) };
	const uint8_t *bytes = b.at + sizeof(uint32_t);
	uint32_t number;

	if (!perf_skip(&b, sizeof(uint32_t) + 24))
		return 0;
	memcpy(id.bytes, bytes, sizeof(id.bytes));
	if (misc & MISC_BUILD_ID_SIZE && bytes[20] < id.size)
		id.size = bytes[20];
	return perf_string(f->p, &b, &id.path)
		       ?: table_add(&f->build_ids, &id, sizeof(id.path), &number);
}

/* Takes a string with its length before it. False: it is truncated. */
static bool take_string(struct perf_bytes *b, struct perf_bytes *text)
{
	uint32_t size = perf_take_u32(b);

	*text = (struct perf_bytes){ b->at, b->at };
	if (!perf_skip(b, size))
		return false;
	text->end = text->at + size;
	return true;
}

/* The arguments of perf record, as they were typed but for quotes. */
static int read_command(struct perf_file *f, struct perf_bytes b)
{
	uint32_t count = perf_take_u32(&b);
	size_t size = 0, room = perf_left(&b) + 1;
	char *command = malloc(room);
	struct perf_bytes word;
	int err;

	if (!command)
		return -ENOMEM;
	/* Each has 4 bytes for its length: with a blank between them they fit. */
	for (uint32_t i = 0; i < count && perf_left(&b) && take_string(&b, &word); i++) {
		size_t length = strnlen((const char *)word.at, perf_left(&word));

		if (size)
			command[size++] = ' ';
		memcpy(command + size, word.at, length);
		size += length;
	}
	err = profile_string_n(f->p, command, size, &f->p->command);
	free(command);
	return err;
}

/* Names of events, with their IDs. */
static int read_events(struct perf_file *f, struct perf_bytes b)
{
	uint32_t count = perf_take_u32(&b), attr_size = perf_take_u32(&b);

	for (uint32_t i = 0; i < count && perf_left(&b); i++) {
		struct perf_bytes name;
		uint32_t ids, number = f->attr_count;

		if (attr_size < ATTR_SIZE_MIN || !perf_skip(&b, attr_size))
			return 0;
		ids = perf_take_u32(&b);
		if (!take_string(&b, &name))
			return 0;
		for (uint32_t j = 0; j < ids && perf_left(&b) >= sizeof(uint64_t); j++)
			number = find_attr(f, perf_take_u64(&b));
		/* Without IDs they are in the order of the attributes. */
		if (number == f->attr_count && i < f->attr_count)
			number = i;
		if (number < f->attr_count && perf_string(f->p, &name, &f->attrs[number].name))
			return -ENOMEM;
	}
	return 0;
}

static int read_feature(struct perf_file *f, unsigned int feature, struct perf_bytes b)
{
	struct profile *p = f->p;
	const char *text = "";
	struct perf_bytes string;
	struct perf_event_header h;
	struct utsname here;
	char comment[128];

	switch (feature) {
	case FEATURE_BUILD_ID:
		while (perf_left(&b) >= sizeof(h)) {
			struct perf_bytes body = b;

			memcpy(&h, b.at, sizeof(h));
			if (h.size < sizeof(h) || !perf_skip(&b, h.size))
				break;
			body = (struct perf_bytes){ body.at + sizeof(h), b.at };
			if (read_build_id(f, h.misc, body))
				return -ENOMEM;
		}
		break;
	case FEATURE_HOST:
		return take_string(&b, &string) ? perf_string(p, &string, &p->host) : 0;
	case FEATURE_RELEASE:
		if (!take_string(&b, &string))
			return 0;
		if (perf_string(p, &string, &text))
			return -ENOMEM;
		snprintf(comment, sizeof(comment), "kernel=%s", text);
		return profile_add_comment(p, comment);
	case FEATURE_ARCHITECTURE:
		if (!take_string(&b, &string))
			return 0;
		f->is_foreign = uname(&here) == 0 &&
				(perf_left(&string) < strlen(here.machine) ||
				 memcmp(string.at, here.machine, strlen(here.machine)) != 0);
		/* i686, armv7l; all others that perf runs on: x86_64, aarch64, riscv64, ... */
		p->bits = perf_left(&string) && (*string.at == 'i' ||
						 memmem(string.at, perf_left(&string), "armv", 4))
				  ? 32
				  : 64;
		break;
	case FEATURE_COMMAND:
		return read_command(f, b);
	case FEATURE_EVENTS:
		return read_events(f, b);
	case FEATURE_CLOCK: /* version, clock, wall time, time by the clock */
		if (perf_left(&b) < 24)
			break;
		perf_take_u64(&b);
		f->wall_ns = perf_take_u64(&b);
		f->clock_ns = perf_take_u64(&b);
		f->has_clock = true;
		break;
	default:
		break;
	}
	return 0;
}

/* The features of a file: their sections are listed behind the data. */
static int read_features(struct perf_file *f, const uint8_t *bits, struct perf_bytes list)
{
	struct perf_bytes sections[FEATURES] = { { 0 } };
	int err = 0;

	for (unsigned int i = 1; i < FEATURES && perf_left(&list); i++)
		if (bits[i / 8] & 1U << i % 8 && take_section(f, &list, &sections[i]))
			return fail(f, "a feature is beyond the end of the file");
	if (bits[FEATURE_DIRECTORY / 8] & 1U << FEATURE_DIRECTORY % 8) {
		error_set(f->e, 0, "%s is a part of a recording that is a directory", f->in->path);
		return error_hint(f->e, "perf record without --threads writes one file");
	}
	for (unsigned int i = 1; i < FEATURES && !err; i++)
		if (sections[i].at)
			err = read_feature(f, i, sections[i]);
	return err;
}

/* --- Records --- */

/* The bytes at perf_entry.at. */
static const uint8_t *bytes_at(const struct perf_file *f, uint64_t at)
{
	return at < f->in->size ? f->in->bytes + at : f->inflated + (at - f->in->size);
}

/* The record at perf_entry.at: a struct perf_event_header, and the rest. */
static struct perf_bytes perf_record(const struct perf_file *f, uint64_t at,
				     struct perf_event_header *header)
{
	const uint8_t *bytes = bytes_at(f, at);

	memcpy(header, bytes, sizeof(*header));
	return (struct perf_bytes){ bytes + sizeof(*header), bytes + header->size };
}

/*
 * Takes what sample_id_all adds off the end of another record, and sets *time to its time, or 0;
 * and *attr to its attribute.
 */
static void take_sample_id(const struct perf_file *f, struct perf_bytes *b, uint64_t *time,
			   uint32_t *attr)
{
	uint64_t type, all = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			     PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	struct perf_bytes id;
	size_t size;

	*time = 0;
	*attr = 0;
	if (!f->attr_count || !f->attrs[0].attr.sample_id_all)
		return;
	if (f->attrs[0].attr.sample_type & PERF_SAMPLE_IDENTIFIER && perf_left(b) >= 8) {
		id = (struct perf_bytes){ b->end - 8, b->end };
		*attr = find_attr(f, perf_take_u64(&id));
	}
	type = f->attrs[*attr < f->attr_count ? *attr : 0].attr.sample_type & all;
	size = 8 * __builtin_popcountll(type);
	if (perf_left(b) < size)
		return;
	b->end -= size;
	id = (struct perf_bytes){ b->end, b->end + size };
	perf_skip(&id, type & PERF_SAMPLE_TID ? 8 : 0);
	if (type & PERF_SAMPLE_TIME)
		*time = perf_take_u64(&id);
	if (type & PERF_SAMPLE_ID && !(type & PERF_SAMPLE_IDENTIFIER))
		*attr = find_attr(f, perf_take_u64(&id));
	/* perf's own records, made of /proc, have none. */
	*time = *time == UINT64_MAX ? 0 : *time;
}

static int add_entry(struct perf_file *f, uint64_t at, uint64_t time, uint32_t attr)
{
	return array_add(f->entries, f->entry_count, f->entry_room,
			 (struct perf_entry){ time, at, attr });
}

static int read_records(struct perf_file *f, uint64_t *at, uint64_t end, bool inflated);

/* Decompresses a record, and reads the records that are whole now. */
static int inflate_records(struct perf_file *f, struct perf_bytes b, uint64_t *next)
{
	struct zstd_in in = { b.at, perf_left(&b), 0 };
	struct zstd_out out;
	int err = f->zstd.stream ? 0 : zstd_begin(&f->zstd);

	if (err == -ENOTSUP) {
		error_set(f->e, 0, "%s is compressed with zstd, whose library is missing",
			  f->in->path);
		error_hint(f->e, "install libzstd.so.1, or record without -z");
	}
	f->deflated_size += in.size;
	do {
		err = err
			      ?: array_reserve(&f->inflated, &f->inflated_room,
					       f->inflated_size + INFLATE_PART, 1);
		if (err)
			return err;
		out = (struct zstd_out){ f->inflated + f->inflated_size,
					 f->inflated_room - f->inflated_size, 0 };
		if (!zstd_decompress(&f->zstd, &out, &in))
			return fail(f, "compressed records are corrupt");
		f->inflated_size += out.used;
		if (f->inflated_size > INFLATED_MIN &&
		    f->inflated_size / INFLATED_TIMES > f->deflated_size)
			return fail(f, "compressed records are more than any recording's");
	} while (in.used < in.size || out.used == out.size);
	return read_records(f, next, f->in->size + f->inflated_size, true);
}

/*
 * Reads one record, whose header is h; what follows it in the file is up to `end`. Sets *more to
 * the size of data that is not in the record.
 */
static int read_record(struct perf_file *f, uint64_t at, const struct perf_event_header *h,
		       struct perf_bytes b, uint64_t *more)
{
	struct perf_bytes rest;
	uint64_t time, id, type;
	uint32_t attr;
	size_t size;

	*more = 0;
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		attr = 0;
		rest = b;
		type = f->attr_count > 1 ? f->attrs[0].attr.sample_type : 0;
		if (type & PERF_SAMPLE_ID && !(type & PERF_SAMPLE_IDENTIFIER))
			perf_skip(&rest, 8 * __builtin_popcountll(
						     type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
							     PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR)));
		if (type & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER))
			attr = find_attr(f, perf_take_u64(&rest));
		if (attr >= f->attr_count)
			return fail(f, "a sample is of no event of the file");
		type = f->attrs[attr].attr.sample_type;
		perf_skip(&b, 8 * __builtin_popcountll(type & (PERF_SAMPLE_IDENTIFIER |
							       PERF_SAMPLE_IP | PERF_SAMPLE_TID)));
		time = type & PERF_SAMPLE_TIME ? perf_take_u64(&b) : 0;
		f->attrs[attr].samples++;
		if (time && (!f->first_ns || time < f->first_ns))
			f->first_ns = time;
		f->last_ns = MAX(f->last_ns, time);
		return add_entry(f, at, time, attr);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_CGROUP:
		take_sample_id(f, &b, &time, &attr);
		return add_entry(f, at, time, attr);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		take_sample_id(f, &b, &time, &attr);
		if (h->type == PERF_RECORD_LOST) {
			id = perf_take_u64(&b);
			attr = f->attr_count > 1 ? find_attr(f, id) : 0;
		}
		if (attr >= f->attr_count)
			return 0;
		add_u64(h->type == PERF_RECORD_LOST ? &f->attrs[attr].lost
						    : &f->attrs[attr].lost_samples,
			perf_take_u64(&b));
		return 0;
	case PERF_RECORD_THROTTLE:
		f->has_throttled = true;
		return 0;
	case PERF_RECORD_AUX:
		f->has_aux = true;
		return 0;
	case PERF_DATA_AUXTRACE:
		f->has_aux = true;
		*more = perf_take_u64(&b);
		return 0;
	case PERF_DATA_TRACING_DATA:
		*more = (perf_take_u32(&b) + UINT64_C(7)) & ~UINT64_C(7);
		return 0;
	case PERF_DATA_HEADER_ATTR:
		perf_skip(&b, sizeof(uint32_t));
		size = perf_take_u32(&b) ?: ATTR_SIZE_MIN;
		b.at -= 2 * sizeof(uint32_t);
		rest = b;
		if (perf_left(&b) < ATTR_SIZE_MIN || size < ATTR_SIZE_MIN || !perf_skip(&b, size))
			return fail(f, "an event's attributes are truncated");
		return add_attr(f, (struct perf_bytes){ rest.at, b.at }) ?: add_ids(f, b);
	case PERF_DATA_EVENT_UPDATE:
		if (perf_take_u64(&b) != EVENT_UPDATE_NAME)
			return 0;
		attr = find_attr(f, perf_take_u64(&b));
		return attr < f->attr_count ? perf_string(f->p, &b, &f->attrs[attr].name) : 0;
	case PERF_DATA_BUILD_ID:
		return read_build_id(f, h->misc, b);
	case PERF_DATA_FEATURE:
		id = perf_take_u64(&b);
		return id < FEATURES ? read_feature(f, id, b) : 0;
	default: /* what does not concern samples */
		return 0;
	}
}

/* Reads the records from *at on, which moves on, until `end`, where decompressed ones may be cut.
 */
static int read_records(struct perf_file *f, uint64_t *at, uint64_t end, bool inflated)
{
	uint64_t inflated_at = f->in->size, more = 0;
	int err = 0;

	while (!err && *at < end) {
		const uint8_t *bytes = bytes_at(f, *at);
		struct perf_event_header h = { 0 };
		struct perf_bytes b;

		f->at = inflated ? f->at : *at;
		if (end - *at >= sizeof(h))
			memcpy(&h, bytes, sizeof(h));
		if (inflated && (end - *at < sizeof(h) || end - *at < h.size))
			return 0; /* the rest is in the next record */
		if (f->is_unfinished && (end - *at < sizeof(h) || end - *at < h.size || !h.size))
			return 0;
		if (end - *at < sizeof(h))
			return fail(f, "the last record is truncated");
		if (h.size < sizeof(h))
			return input_error(f->in, f->at, f->e, "a record has %u bytes", h.size);
		if (end - *at < h.size)
			return fail(f, "the last record is truncated");
		b = (struct perf_bytes){ bytes + sizeof(h), bytes + h.size };
		if (!inflated &&
		    (h.type == PERF_DATA_COMPRESSED || h.type == PERF_DATA_COMPRESSED_2)) {
			if (h.type == PERF_DATA_COMPRESSED_2) {
				uint64_t size = perf_take_u64(&b);

				b.end = size < perf_left(&b) ? b.at + size : b.end;
			}
			err = inflate_records(f, b, &inflated_at);
		} else {
			err = read_record(f, *at, &h, b, &more);
		}
		*at += h.size;
		if (!err && more > end - *at)
			return fail(f, "the data of a record is truncated");
		*at += more;
		more = 0;
	}
	return err;
}

ORDER(compare_entries, struct perf_entry, LEAST(time) ?: LEAST(at))

/*
 * Finds all records and reads what is not a record of the kernel. The whole input is in the window.
 * Returns 0 or -errno with e set; of a file that is corrupt the records before that are found.
 */
static int perf_file_read(struct perf_file *f)
{
	struct perf_bytes header = { f->in->bytes, f->in->bytes + f->in->size }, attrs;
	uint64_t header_size, attr_size, at, end = f->in->size, data_offset, data_size;
	const char *reason;
	int err = 0;

	/* Most records are samples of 64 bytes and more: pages that stay unused take no memory. */
	if (array_reserve(&f->entries, &f->entry_room, f->in->size / 64, sizeof(*f->entries)))
		return -ENOMEM;
	perf_skip(&header, 8); /* the magic number */
	header_size = perf_take_u64(&header);
	at = header_size;
	if (header_size == FILE_HEADER_SIZE) {
		if (f->in->size < FILE_HEADER_SIZE)
			return fail(f, "the header is truncated");
		attr_size = perf_take_u64(&header);
		if (attr_size < ATTR_SIZE_MIN + 16 || attr_size > f->in->size)
			return input_error(f->in, 16, f->e,
					   "an event's attributes have %" PRIu64 " bytes",
					   attr_size);
		f->at = header.at - f->in->bytes;
		reason = take_section(f, &header, &attrs);
		err = reason ? fail(f, reason) : read_attrs(f, attrs, attr_size);
		if (err)
			return err;
		f->at = header.at - f->in->bytes;
		data_offset = perf_take_u64(&header);
		data_size = perf_take_u64(&header);
		f->is_unfinished = data_size == 0 && data_offset < f->in->size;
		if (f->is_unfinished)
			data_size = f->in->size - data_offset;
		if (data_offset > f->in->size)
			return fail(f, "the records are beyond the end of the file");
		/* Of a truncated file, the records that are there. */
		at = data_offset;
		end = data_size < f->in->size - at ? at + data_size : f->in->size;
		perf_skip(&header, 16); /* event types, of old versions */
		f->at = end;
		if (!f->is_unfinished && data_size == end - data_offset)
			err = read_features(f, header.at,
					    (struct perf_bytes){ f->in->bytes + end,
								 f->in->bytes + f->in->size });
		if (err)
			return err;
		err = read_records(f, &at, end, false);
		if (!err && data_size > end - data_offset)
			err = fail(f, "the records are truncated");
	} else if (header_size == PIPE_HEADER_SIZE) {
		err = read_records(f, &at, end, false);
	} else {
		return input_error(f->in, 8, f->e, "the header has %" PRIu64 " bytes, not %d or %d",
				   header_size, FILE_HEADER_SIZE, PIPE_HEADER_SIZE);
	}
	if (err != -ENOMEM && f->entry_count)
		qsort(f->entries, f->entry_count, sizeof(*f->entries), compare_entries);
	return err;
}

/*
 * Each change of an address space moves the mappings behind it. Files of real systems stay far
 * below these: they bound the time that a malicious one takes to some seconds.
 * Bound: files: mappings of a process, and moves of mappings in all; then: the file is refused.
 */
#define MAPS_MAX	   ((size_t)262144) /* in a process */
#define MOVED_MAX	   (UINT64_C(1) << 28)
#define MOVED_FOR_EACH_MAP 1024 /* so many more for each record of a mapping */

EQUAL(process_equal, struct perf_process, uint32_t, a->pid == *b && !a->is_old)

EQUAL(thread_equal, struct perf_thread, uint32_t, a->tid == *b && !a->is_old)

static uint32_t known_process(const struct perf_tasks *t, uint32_t pid)
{
	return index_find(&t->process_index, hash_u64(pid, 0), process_equal, t->processes, &pid);
}

static uint32_t known_thread(const struct perf_tasks *t, uint32_t tid)
{
	return index_find(&t->thread_index, hash_u64(tid, 0), thread_equal, t->threads, &tid);
}

static int new_process(struct perf_tasks *t, uint32_t pid, uint32_t *id)
{
	*id = t->process_count;
	return array_add_indexed(t->processes, t->process_count, t->process_room, &t->process_index,
				 hash_u64(pid, 0), (struct perf_process){ .pid = pid, .comm = "" });
}

static int find_process(struct perf_tasks *t, uint32_t pid, uint32_t *id)
{
	*id = known_process(t, pid);
	return *id == INDEX_NONE ? new_process(t, pid, id) : 0;
}

static int new_thread(struct perf_tasks *t, uint32_t tid, uint32_t process, const char *comm,
		      uint32_t *id)
{
	uint32_t known = known_thread(t, tid);

	if (known != INDEX_NONE) {
		t->threads[known].is_old = true;
		index_remove(&t->thread_index, hash_u64(tid, 0), known);
	}
	*id = t->thread_count;
	return array_add_indexed(
		t->threads, t->thread_count, t->thread_room, &t->thread_index, hash_u64(tid, 0),
		(struct perf_thread){ .tid = tid, .process = process, .comm = comm });
}

/* Sets *thread to the thread with these numbers, which is a new one if there is none. */
static int perf_find_thread(struct perf_tasks *t, uint32_t pid, uint32_t tid, uint32_t *thread)
{
	uint32_t process;
	int err;

	*thread = t->last;
	if (t->last >= t->thread_count || t->threads[t->last].tid != tid ||
	    t->threads[t->last].is_old)
		*thread = known_thread(t, tid);
	if (*thread != INDEX_NONE) {
		const struct perf_process *known = &t->processes[t->threads[*thread].process];

		t->last = *thread;
		if (known->pid == pid && !known->is_old)
			return 0;
	}
	err = find_process(t, pid, &process);
	return err ?: new_thread(t, tid, process, t->processes[process].comm, thread);
}

/* --- Address spaces --- */

static void drop_space(struct perf_process *process)
{
	struct perf_space *space = process->space;

	process->space = NULL;
	if (!space || --space->users)
		return;
	free(space->maps);
	free(space);
}

/* Sets *space to the process's own, which no other one shares. */
static int own_space(struct perf_tasks *t, struct perf_process *process, struct perf_space **space)
{
	struct perf_space *shared = process->space, *own;

	if (shared && shared->users == 1) {
		*space = shared;
		return 0;
	}
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->users = 1;
	if (shared && shared->count) {
		t->moved += shared->count;
		if (array_reserve(&own->maps, &own->room, shared->count, sizeof(*own->maps))) {
			free(own);
			return -ENOMEM;
		}
		memcpy(own->maps, shared->maps, shared->count * sizeof(*own->maps));
		own->count = shared->count;
	}
	drop_space(process);
	process->space = *space = own;
	return 0;
}

/* The number of the first mapping that ends behind the address. */
static size_t first_behind(const struct perf_space *space, uint64_t address)
{
	size_t i;

	FIND_FIRST(i, 0, space->count, space->maps[i].limit <= address);
	return i;
}

/* The mapping of an address, or NULL. space: NULL is an empty one. */
static const struct perf_map *perf_find_map(const struct perf_space *space, uint64_t address)
{
	size_t i = space ? first_behind(space, address) : 0;

	return space && i < space->count && space->maps[i].start <= address ? &space->maps[i]
									    : NULL;
}

/* What lies where the new mapping comes is gone; of the first and last one a part may be left. */
static int insert_map(struct perf_tasks *t, struct perf_space *space, const struct perf_map *map)
{
	size_t first = first_behind(space, map->start), end = first, count = 0;
	struct perf_map parts[3];

	while (end < space->count && space->maps[end].start < map->limit)
		end++;
	if (first < end && space->maps[first].start < map->start) {
		parts[count] = space->maps[first];
		parts[count++].limit = map->start;
	}
	parts[count++] = *map;
	if (first < end && space->maps[end - 1].limit > map->limit) {
		parts[count] = space->maps[end - 1];
		parts[count++].start = map->limit;
	}
	t->moved += space->count - first;
	if (t->moved > MOVED_MAX + t->map_records * MOVED_FOR_EACH_MAP ||
	    space->count + count - (end - first) > MAPS_MAX)
		return -E2BIG;
	if (array_reserve(&space->maps, &space->room, space->count + count, sizeof(*space->maps)))
		return -ENOMEM;
	memmove(space->maps + first + count, space->maps + end,
		(space->count - end) * sizeof(*space->maps));
	memcpy(space->maps + first, parts, count * sizeof(*parts));
	space->count = space->count - (end - first) + count;
	space->stamp = ++t->stamp;
	return 0;
}

/* Puts a mapping into a process, or into the kernel for a pid of UINT32_MAX. */
static int perf_map(struct perf_tasks *t, uint32_t pid, const struct perf_map *map)
{
	struct perf_space *space = &t->kernel;
	uint32_t process;
	int err = 0;

	t->map_records++;
	if (pid != UINT32_MAX) {
		err = find_process(t, pid, &process);
		err = err ?: own_space(t, &t->processes[process], &space);
	}
	return err ?: insert_map(t, space, map);
}

/* --- What tasks do --- */

/* was_running: the record was made of a process that ran before the recording. */
static int perf_fork(struct perf_tasks *t, uint32_t pid, uint32_t tid, uint32_t parent_pid,
		     uint32_t parent_tid, bool was_running)
{
	uint32_t process, parent, thread, known;
	const char *comm = "";
	int err;

	if (pid == parent_pid) {
		err = find_process(t, pid, &process);
		known = known_thread(t, parent_tid);
		comm = known == INDEX_NONE ? t->processes[process].comm : t->threads[known].comm;
		return err ?: new_thread(t, tid, process, comm, &thread);
	}
	known = known_process(t, pid);
	if (known != INDEX_NONE && was_running)
		return 0;
	if (known != INDEX_NONE) {
		t->processes[known].is_old = true;
		index_remove(&t->process_index, hash_u64(pid, 0), known);
		drop_space(&t->processes[known]);
	}
	err = new_process(t, pid, &process);
	if (err)
		return err;
	if (known != INDEX_NONE)
		t->processes[process].generation = t->processes[known].generation + 1;
	parent = known_process(t, parent_pid);
	if (parent != INDEX_NONE && parent_pid) {
		t->processes[process].space = t->processes[parent].space;
		if (t->processes[process].space)
			t->processes[process].space->users++;
		comm = t->processes[parent].comm;
	}
	known = known_thread(t, parent_tid);
	if (known != INDEX_NONE && parent_pid)
		comm = t->threads[known].comm;
	t->processes[process].comm = comm;
	return new_thread(t, tid, process, comm, &thread);
}

static int perf_comm(struct perf_tasks *t, uint32_t pid, uint32_t tid, const char *comm,
		     bool is_exec)
{
	uint32_t thread;
	int err = perf_find_thread(t, pid, tid, &thread);
	struct perf_thread *named;

	if (err)
		return err;
	named = &t->threads[thread];
	named->comm = comm;
	if (pid == tid)
		t->processes[named->process].comm = comm;
	if (is_exec)
		drop_space(&t->processes[named->process]);
	return 0;
}

/*
 * What perf record writes: perf.data, as a file or to a pipe. Described by the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.
 */

static const char magic[] = "PERFILE2";

/* Kernels before 6.0 and 6.8 do not have these. */
#define READ_FORMAT_LOST	 (1U << 4)
#define BRANCH_SAMPLE_COUNTERS	 (UINT64_C(1) << 19)
#define BRANCH_SAMPLE_CALL_STACK (UINT64_C(1) << 11)
/* Of later ones: the rest of the stack is in another record. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)

/*
 * How many mappings are prepared for walks of copied stacks, which is done again where samples of
 * processes alternate: some seconds, of malicious files.
 * Bound: files: mappings that are prepared for walks of copied stacks; then: the file is refused.
 */
#define WALK_MAPS_MAX	   ((uint64_t)1 << 27)
#define WALK_MAPS_FOR_EACH 1024 /* so many more for each sample */

#define MINOR_BITS 20 /* of a device's number, in the kernel */

/* Powers of 2 */
#define CACHED_PCS_MIN 256
/*
 * Bound: files: pcs whose locations are remembered; then: one replaces another, and is searched
 * again; again: at once; seen: not seen, but as CPU time.
 */
#define CACHED_PCS_MAX 65536

/* The location of a pc in an address space of this stamp. Bound: as CACHED_PCS_MAX. */
struct cached_pc {
	uint64_t pc, stamp;
	uint32_t location; /* its number + 1 */
};

/* The path of a control group by its ID. */
struct cgroup {
	uint64_t id;
	const char *path;
};

struct reader {
	struct perf_file file;
	struct perf_tasks tasks;
	struct profile *p;
	struct error *e;
	struct perf_values values;
	uint32_t *events;  /* by attribute: its number in values; PROFILE_NONE: it is not read */
	uint32_t lead;	   /* in values */
	uint64_t others;   /* samples of events that are not read */
	uint64_t shift_ns; /* from perf's clock to the time since the epoch; may wrap */
	struct tick_choice *choice;
	struct cached_pc *pcs;
	size_t pc_count; /* a power of 2 */
	uint32_t *frames;
	size_t frame_room;
	struct index mapping_index;
	/* Of the kernel, made when the first of its addresses is met */
	uint32_t kernel_image;
	struct perf_map kernel;	 /* as recorded; limit 0: it was not */
	uint64_t kernel_text;	 /* where its symbol _text was: the offset of its mapping */
	uint32_t kernel_mapping; /* of the profile; PROFILE_NONE: not made yet */
	TABLE(struct cgroup) cgroups;
	uint32_t unknown; /* location "[unknown]"; PROFILE_NONE: not met yet */
	uint64_t guests, kernel_samples;
	bool has_deferred, has_unwalked;
	/* Of copied stacks; NULL: there was none yet */
	struct copied_stacks *walks;
	uint64_t walk_stamp;		/* of the address space whose mappings they have */
	uint64_t walk_count, walk_maps; /* so far */
};

/* --- Images and mappings --- */

EQUAL(mapping_equal, struct profile_mapping, struct profile_mapping,
      SAME(start) && SAME(limit) && SAME(offset) && SAME(image))

static int mapping_id(struct reader *r, uint64_t start, uint64_t limit, uint64_t offset,
		      uint32_t image, uint32_t *id)
{
	const struct profile_mapping key = {
		.start = start, .limit = limit, .offset = offset, .image = image
	};
	uint64_t hash = hash_u64(start, hash_u64(offset, image));

	*id = index_find(&r->mapping_index, hash, mapping_equal, r->p->mappings, &key);
	if (*id != INDEX_NONE)
		return 0;
	if (profile_add_mapping(r->p, start, limit, offset, image, id))
		return -ENOMEM;
	return index_add(&r->mapping_index, hash, *id);
}

/* "/lib/modules/6.1/kernel/net/nf-tables.ko.xz" is [nf_tables], as in our recordings. */
static int module_name(struct profile *p, const char **path)
{
	const char *slash = strrchr(*path, '/'), *base = slash ? slash + 1 : *path;
	const char *end = strstr(base, ".ko");
	char name[128];
	int size;

	if (!slash || !end)
		return 0;
	size = snprintf(name, sizeof(name), "[%.*s]", (int)(end - base), base);
	if (size >= (int)sizeof(name))
		return 0;
	for (char *at = name; *at; at++)
		if (*at == '-')
			*at = '_';
	return profile_string(p, name, path);
}

/* Sets *image to that of a mapping's path; the build ID is of size 0 if the record has none. */
static int image_id(struct reader *r, const char *path, bool in_kernel, const uint8_t *build_id,
		    uint32_t size, uint32_t *image)
{
	const struct perf_build_id *known = perf_find_build_id(&r->file, path);

	if (in_kernel && image_is_kernel(path)) {
		/* The feature section names it without the symbol. */
		if (profile_string(r->p, IMAGE_KERNEL, &path))
			return -ENOMEM;
		known = known ?: perf_find_build_id(&r->file, path);
	}
	if (in_kernel && module_name(r->p, &path))
		return -ENOMEM;
	if (!size && known) {
		build_id = known->bytes;
		size = known->size;
	}
	return profile_add_image(r->p, path, build_id, size, image);
}

/*
 * Sets *image to that of the code that a process generated, if it wrote their names to a map and
 * that is still there; else leaves it. The process was of this machine, and root or the caller
 * wrote the file, as perf itself wants it.
 */
static int generated_code(struct reader *r, uint32_t pid, const char *path, uint32_t *image)
{
	char map[64], name[32], host[HOST_NAME_MAX + 1] = "";
	enum image_kind kind = image_kind(path);
	struct stat status;
	int fd, err;

	if ((kind != IMAGE_ANON && kind != IMAGE_SHARED && kind != IMAGE_UNNAMED) ||
	    (*r->p->host && (gethostname(host, HOST_NAME_MAX) || strcmp(host, r->p->host) != 0)))
		return 0;
	snprintf(name, sizeof(name), "[jit %" PRIu32 "]", pid);
	snprintf(map, sizeof(map), "/tmp/perf-%" PRIu32 ".map", pid);
	fd = file_open_regular_by_rules(-1, map, FILE_NO_FOREIGN_LINKS, &status);
	if (fd < 0)
		return 0;
	err = file_is_of(&status, 0) ? profile_add_image(r->p, name, NULL, 0, image) : -EACCES;
	if (!err && r->p->images[*image].fd < 0)
		r->p->images[*image].fd = fd;
	else
		close(fd);
	return err == -ENOMEM ? err : 0;
}

/*
 * The size of the build ID in the record of a mapping, at its union with the device and the inode;
 * 0: it has these. Linux 6.1 marks a record as one with a build ID when an event of another
 * recording asked for it, though it has the device: an event of this file has to have asked, or
 * what would be the device's minor number is none.
 */
static uint32_t mapped_build_id(const struct perf_file *f, const struct perf_event_header *h,
				struct perf_bytes b)
{
	uint32_t size = perf_take_u32(&b), minor = perf_take_u32(&b);

	if (!(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || size > 20)
		return 0;
	return f->asks_build_ids || minor >> MINOR_BITS ? size : 0;
}

static int read_mapping(struct reader *r, const struct perf_event_header *h, struct perf_bytes b)
{
	uint32_t pid = perf_take_u32(&b), image, mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct perf_map map = { .function = PROFILE_NONE };
	uint64_t offset, size;
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	uint32_t build_id_size = 0;
	const char *path;

	perf_skip(&b, sizeof(uint32_t));
	map.start = perf_take_u64(&b);
	size = perf_take_u64(&b);
	offset = perf_take_u64(&b);
	if (__builtin_add_overflow(map.start, size, &map.limit))
		map.limit = UINT64_MAX;
	if (h->type == PERF_RECORD_MMAP2 && perf_left(&b) >= 32) {
		build_id_size = mapped_build_id(&r->file, h, b);
		memcpy(build_id, b.at + 4, build_id_size);
		perf_skip(&b, 32);
	}
	if (map.start >= map.limit || mode == PERF_RECORD_MISC_GUEST_KERNEL ||
	    mode == PERF_RECORD_MISC_GUEST_USER)
		return 0;
	if (perf_string(r->p, &b, &path) ||
	    image_id(r, path, pid == UINT32_MAX, build_id, build_id_size, &image))
		return -ENOMEM;
	if (pid != UINT32_MAX && generated_code(r, pid, path, &image))
		return -ENOMEM;
	if (pid == UINT32_MAX && image_is_kernel(path)) {
		/* Its mapping is made with its first sample: images of programs come before it. */
		r->kernel_image = image;
		if (!r->kernel.limit)
			r->kernel_text = offset;
		if (!r->kernel.limit)
			r->kernel = map;
		return 0;
	}
	return mapping_id(r, map.start, map.limit, offset, image, &map.mapping)
		       ?: perf_map(&r->tasks, pid, &map);
}

/* Programs of BPF, and what the kernel generates else: each is a function. */
static int read_kernel_symbol(struct reader *r, struct perf_bytes b)
{
	struct profile_function function = { .file = "" };
	struct perf_map map = { .start = perf_take_u64(&b) };
	uint32_t size = perf_take_u32(&b), types = perf_take_u32(&b), image;
	bool is_removed = types >> 16 & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;

	if (__builtin_add_overflow(map.start, size, &map.limit) || !size)
		return 0;
	if (perf_string(r->p, &b, &function.name) ||
	    profile_add_image(r->p, "[bpf]", NULL, 0, &image))
		return -ENOMEM;
	function.system_name = function.name;
	map.function = PROFILE_NONE;
	if (*function.name && !is_removed && profile_add_function(r->p, &function, &map.function))
		return -ENOMEM;
	return mapping_id(r, map.start, map.limit, map.start, image, &map.mapping)
		       ?: perf_map(&r->tasks, UINT32_MAX, &map);
}

/* --- Locations --- */

/* The mapping of the kernel's own code; addresses that perf has in none are taken to be there. */
static int kernel_mapping(struct reader *r, uint64_t address, uint32_t *mapping)
{
	struct profile *p = r->p;

	if (r->kernel_mapping == PROFILE_NONE) {
		if ((!r->kernel.limit &&
		     profile_add_image(p, IMAGE_KERNEL, NULL, 0, &r->kernel_image)) ||
		    mapping_id(r, r->kernel.start, UINT64_MAX, r->kernel_text, r->kernel_image,
			       &r->kernel_mapping))
			return -ENOMEM;
	}
	*mapping = r->kernel_mapping;
	if (address >= r->kernel.start)
		return 0;
	return mapping_id(r, 0, r->kernel.start, 0, r->kernel_image, mapping);
}

/* mode: PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, ... */
static int find_location(struct reader *r, const struct perf_space *space, uint64_t mode,
			 uint64_t pc, uint32_t *location)
{
	bool in_kernel = mode == PERF_CONTEXT_KERNEL;
	uint64_t stamp = in_kernel ? r->tasks.kernel.stamp : space ? space->stamp : 0;
	struct cached_pc *cached = &r->pcs[hash_u64(pc, stamp) & (r->pc_count - 1)];
	const struct perf_map *map;
	struct profile_line line = { 0 };
	uint32_t mapping = PROFILE_NONE;

	switch (mode) {
	case PERF_CONTEXT_KERNEL:
	case PERF_CONTEXT_USER:
		break;
	case PERF_CONTEXT_GUEST:
	case PERF_CONTEXT_GUEST_KERNEL:
		return profile_add_named_location(r->p, "[guest kernel]", PROFILE_NONE, location);
	case PERF_CONTEXT_GUEST_USER:
		return profile_add_named_location(r->p, "[guest]", PROFILE_NONE, location);
	default:
		return profile_add_named_location(r->p, "[hypervisor]", PROFILE_NONE, location);
	}
	if (cached->pc == pc && cached->stamp == stamp && cached->location) {
		*location = cached->location - 1;
		return 0;
	}
	map = perf_find_map(in_kernel ? &r->tasks.kernel : space, pc);
	if (map)
		mapping = map->mapping;
	else if (in_kernel && kernel_mapping(r, pc, &mapping))
		return -ENOMEM;
	/*
	 * Walks along frame pointers go astray in code without them: what they find there is no
	 * code, and different in each stack.
	 */
	if (mapping == PROFILE_NONE) {
		if (r->unknown == PROFILE_NONE &&
		    profile_add_named_location(r->p, "[unknown]", PROFILE_NONE, &r->unknown))
			return -ENOMEM;
		*location = r->unknown;
		return 0;
	}
	if (profile_add_location(r->p, pc, mapping, location))
		return -ENOMEM;
	if (map && map->function != PROFILE_NONE && !r->p->locations[*location].line_count) {
		line.function = map->function;
		if (profile_set_lines(r->p, *location, &line, 1))
			return -ENOMEM;
	}
	*cached = (struct cached_pc){ pc, stamp, *location + 1 };
	return 0;
}

static uint64_t context_of_mode(unsigned int mode)
{
	switch (mode) {
	case PERF_RECORD_MISC_KERNEL:
		return PERF_CONTEXT_KERNEL;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return PERF_CONTEXT_GUEST_KERNEL;
	case PERF_RECORD_MISC_GUEST_USER:
		return PERF_CONTEXT_GUEST_USER;
	case PERF_RECORD_MISC_HYPERVISOR:
		return PERF_CONTEXT_HV;
	default:
		return PERF_CONTEXT_USER;
	}
}

/*
 * Writes the locations of a sample's stack to r->frames. chain: addresses, leaf first, with a
 * marker before those of each context. The leaf's is the sample's own; one after a marker is where
 * its context was left; the others are return addresses.
 */
static int read_stack(struct reader *r, const struct perf_space *space, unsigned int mode,
		      uint64_t ip, bool has_ip, struct perf_bytes chain, uint32_t *depth)
{
	uint64_t leaf = context_of_mode(mode), context = leaf;
	bool after_marker = true, is_first = true;
	int err = 0;

	*depth = 0;
	if (array_reserve(&r->frames, &r->frame_room, perf_left(&chain) / sizeof(uint64_t) + 1,
			  sizeof(*r->frames)))
		return -ENOMEM;
	while (!err && perf_left(&chain)) {
		uint64_t address = perf_take_u64(&chain);

		if (address == CONTEXT_USER_DEFERRED) {
			r->has_deferred = true;
			break;
		}
		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			context = address;
			after_marker = true;
			continue;
		}
		/* A precise sample's pc is not where its stack was taken. */
		if (is_first && has_ip) {
			err = find_location(r, space, leaf, ip, &r->frames[(*depth)++]);
			is_first = false;
			if (context == leaf) {
				after_marker = false;
				continue;
			}
		}
		is_first = false;
		if (!err)
			err = find_location(r, space, context, address - (!after_marker && address),
					    &r->frames[(*depth)++]);
		after_marker = false;
	}
	if (!err && is_first && has_ip)
		err = find_location(r, space, leaf, ip, &r->frames[(*depth)++]);
	return err;
}

/* --- Samples --- */

struct sample {
	uint64_t ip, time, period, cgroup;
	uint32_t pid, tid, cpu;
	struct perf_bytes chain;
	struct perf_bytes registers, stack; /* of user space; empty: none */
};

/* The size of what PERF_SAMPLE_READ adds, at b. */
static uint64_t read_size(const struct perf_event_attr *a, struct perf_bytes b)
{
	uint64_t format = a->read_format, count = 1, fields = 1;

	fields += !!(format & PERF_FORMAT_ID) + !!(format & READ_FORMAT_LOST);
	if (format & PERF_FORMAT_GROUP)
		count = perf_take_u64(&b);
	if (count > UINT16_MAX)
		return UINT64_MAX;
	return 8 * (count * fields + !!(format & PERF_FORMAT_GROUP) +
		    !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		    !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING));
}

/* Returns false if the record is shorter than its fields. */
static bool take_sample(const struct perf_event_attr *a, struct perf_bytes b, struct sample *s)
{
	uint64_t type = a->sample_type, count, branches = a->branch_sample_type;
	uint64_t last = PERF_SAMPLE_IP;

	*s = (struct sample){ .period = a->sample_period, .cpu = UINT32_MAX };
	/* An event that is counted by frequency has no fixed period. */
	if (a->freq)
		s->period = 1;
	if (perf_left(&b) <
	    8 * (size_t)__builtin_popcountll(
			type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)))
		return false;
	if (type & PERF_SAMPLE_IDENTIFIER)
		perf_take_u64(&b);
	if (type & last)
		s->ip = perf_take_u64(&b);
	if (type & PERF_SAMPLE_TID) {
		s->pid = perf_take_u32(&b);
		s->tid = perf_take_u32(&b);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = perf_take_u64(&b);
	perf_skip(&b, 8 * __builtin_popcountll(type & (PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
						       PERF_SAMPLE_STREAM_ID)));
	if (type & PERF_SAMPLE_CPU)
		s->cpu = (uint32_t)perf_take_u64(&b);
	if (type & PERF_SAMPLE_PERIOD)
		s->period = perf_take_u64(&b);
	if (type & PERF_SAMPLE_READ && !perf_skip(&b, read_size(a, b)))
		return false;
	if (type & PERF_SAMPLE_CALLCHAIN) {
		count = perf_take_u64(&b);
		if (count > perf_left(&b) / 8)
			return false;
		s->chain = (struct perf_bytes){ b.at, b.at + count * 8 };
		perf_skip(&b, count * 8);
	}
	if (type & PERF_SAMPLE_RAW)
		perf_skip(&b, perf_take_u32(&b));
	if (type & PERF_SAMPLE_BRANCH_STACK) {
		count = perf_take_u64(&b);
		if (count > UINT16_MAX)
			return false;
		perf_skip(&b, branches & PERF_SAMPLE_BRANCH_HW_INDEX ? 8 : 0);
		perf_skip(&b, count * (branches & BRANCH_SAMPLE_COUNTERS ? 32 : 24));
	}
	if (type & PERF_SAMPLE_REGS_USER) {
		uint64_t abi = perf_take_u64(&b);

		s->registers = (struct perf_bytes){ b.at, b.at };
		if (abi && perf_skip(&b, 8 * __builtin_popcountll(a->sample_regs_user)) &&
		    abi == PERF_SAMPLE_REGS_ABI_64)
			s->registers.end = b.at;
	}
	if (type & PERF_SAMPLE_STACK_USER) {
		count = perf_take_u64(&b);
		s->stack = (struct perf_bytes){ b.at, b.at };
		if (count && perf_skip(&b, count)) {
			uint64_t used = perf_take_u64(&b);

			s->stack.end = s->stack.at + MIN(used, count);
		}
	}
	perf_skip(&b, 8 * (!!(type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) +
			   !!(type & PERF_SAMPLE_DATA_SRC) + !!(type & PERF_SAMPLE_TRANSACTION)));
	if (type & PERF_SAMPLE_REGS_INTR && perf_take_u64(&b))
		perf_skip(&b, 8 * __builtin_popcountll(a->sample_regs_intr));
	perf_skip(&b, type & PERF_SAMPLE_PHYS_ADDR ? 8 : 0);
	s->cgroup = perf_take_u64(&b);
	return true;
}

static int label_id(struct reader *r, uint32_t number, const struct sample *s, bool in_kernel,
		    uint32_t *id)
{
	struct perf_thread *thread = &r->tasks.threads[number];
	const struct perf_process *process = &r->tasks.processes[thread->process];
	struct perf_labels *known = &thread->labels[in_kernel];
	struct profile_tag tags[3];
	struct profile_labels labels = {
		.pid = process->pid,
		.tid = thread->tid,
		.generation = process->generation,
		.comm = thread->comm,
		.kernel = in_kernel,
		.tags = tags,
	};
	uint32_t group;
	char cpu[16];

	if (known->comm == thread->comm && known->process_comm == process->comm &&
	    known->cpu == s->cpu && known->cgroup == s->cgroup) {
		*id = known->labels;
		return 0;
	}
	/* In the order of their keys */
	group = table_find(&r->cgroups, &s->cgroup, sizeof(s->cgroup));
	if (s->cgroup && group != INDEX_NONE)
		tags[labels.tag_count++] =
			(struct profile_tag){ tag_kinds[TAG_CGROUP].key, r->cgroups.all[group].path,
					      0, "" };
	snprintf(cpu, sizeof(cpu), "%" PRIu32, s->cpu);
	if (s->cpu != UINT32_MAX)
		tags[labels.tag_count++] =
			(struct profile_tag){ tag_kinds[TAG_CPU].key, cpu, 0, "" };
	if (strcmp(thread->comm, process->comm) != 0)
		tags[labels.tag_count++] =
			(struct profile_tag){ tag_kinds[TAG_PROCESS].key, process->comm, 0, "" };
	if (!labels.pid && !labels.tid && !*labels.comm)
		labels.comm = "swapper"; /* perf's name of the idle task */
	if (labels.pid == UINT32_MAX)
		labels.comm = PERF_ENDED;
	labels.pid = labels.pid == UINT32_MAX ? 0 : labels.pid;
	labels.tid = labels.tid == UINT32_MAX ? 0 : labels.tid;
	if (profile_add_labels(r->p, &labels, id))
		return -ENOMEM;
	*known = (struct perf_labels){ thread->comm, process->comm, s->cpu, s->cgroup, *id };
	return 0;
}

/*
 * Appends the callers in user space that are found in the sample's copy of the stack, and its leaf
 * there if the sample came in the kernel.
 */
static int walk_stack(struct reader *r, const struct perf_space *space, unsigned int mode,
		      const struct perf_event_attr *a, const struct sample *s, uint32_t *depth)
{
	uint64_t pcs[COPIED_FRAMES_MAX];
	uint32_t count;
	int err = 0;

	if (!perf_left(&s->registers) || !perf_left(&s->stack) || !space || r->file.is_foreign) {
		r->has_unwalked |= perf_left(&s->registers) && r->file.is_foreign;
		return 0;
	}
	r->walks = r->walks ?: copied_stacks_new(r->p);
	if (!r->walks)
		return -ENOMEM;
	r->walk_count++;
	if (space->stamp != r->walk_stamp) {
		r->walk_stamp = space->stamp;
		r->walk_maps += space->count;
		if (r->walk_maps > WALK_MAPS_MAX + r->walk_count * WALK_MAPS_FOR_EACH)
			return -E2BIG;
		copied_stacks_unmap(r->walks);
		for (size_t i = 0; i < space->count && !err; i++)
			err = copied_stacks_map(r->walks, space->maps[i].start,
						space->maps[i].limit, space->maps[i].mapping);
	}
	if (err || array_reserve(&r->frames, &r->frame_room, *depth + COPIED_FRAMES_MAX,
				 sizeof(*r->frames)))
		return -ENOMEM;
	count = copied_stacks_walk(r->walks, a->sample_regs_user, s->registers.at, s->stack.at,
				   perf_left(&s->stack), pcs);
	for (uint32_t i = mode == PERF_RECORD_MISC_USER && *depth; i < count && !err; i++)
		err = find_location(r, space, PERF_CONTEXT_USER, pcs[i] - (i && pcs[i]),
				    &r->frames[(*depth)++]);
	return err;
}

static int read_sample(struct reader *r, const struct perf_entry *entry,
		       const struct perf_event_header *h, struct perf_bytes b)
{
	unsigned int mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const struct perf_event_attr *a = &r->file.attrs[entry->attr].attr;
	uint32_t thread, labels, depth, number, event = r->events[entry->attr];
	const struct perf_space *space;
	struct profile *p = r->p;
	struct sample s;
	int err;

	if (event == PROFILE_NONE) {
		r->others++;
		return 0;
	}
	if (!take_sample(a, b, &s))
		return -EINVAL;
	err = perf_find_thread(&r->tasks, s.pid, s.tid, &thread);
	err = err ?: label_id(r, thread, &s, mode == PERF_RECORD_MISC_KERNEL, &labels);
	if (err)
		return err;
	space = r->tasks.processes[r->tasks.threads[thread].process].space;
	err = read_stack(r, space, mode, s.ip, a->sample_type & PERF_SAMPLE_IP, s.chain, &depth);
	err = err ?: walk_stack(r, space, mode, a, &s, &depth);
	err = err ?: profile_sample(p, r->frames, depth, labels, &number);
	if (err)
		return err;
	r->guests += mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
	perf_values_add(p, number, event, s.period);
	if (event != r->lead)
		return 0;
	r->kernel_samples += mode == PERF_RECORD_MISC_KERNEL;
	if (!s.time)
		return 0;
	return tick_list_choose(&p->ticks, r->choice, number, s.time + r->shift_ns);
}

static int read_entry(struct reader *r, const struct perf_entry *entry)
{
	struct perf_event_header h;
	struct perf_bytes b = perf_record(&r->file, entry->at, &h);
	uint32_t pid, tid, parent, parent_tid, number;
	struct cgroup group;
	const char *text;

	switch (h.type) {
	case PERF_RECORD_SAMPLE:
		return read_sample(r, entry, &h, b);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return read_mapping(r, &h, b);
	case PERF_RECORD_KSYMBOL:
		return read_kernel_symbol(r, b);
	case PERF_RECORD_CGROUP:
		group.id = perf_take_u64(&b);
		return perf_string(r->p, &b, &group.path)
			       ?: table_add(&r->cgroups, &group, sizeof(group.id), &number);
	case PERF_RECORD_COMM:
		pid = perf_take_u32(&b);
		tid = perf_take_u32(&b);
		return perf_string(r->p, &b, &text)
			       ?: perf_comm(&r->tasks, pid, tid, text,
					    h.misc & PERF_RECORD_MISC_COMM_EXEC);
	case PERF_RECORD_FORK:
		pid = perf_take_u32(&b);
		parent = perf_take_u32(&b);
		tid = perf_take_u32(&b);
		parent_tid = perf_take_u32(&b);
		return perf_fork(&r->tasks, pid, tid, parent, parent_tid, !entry->time);
	default:
		return 0;
	}
}

/* --- The file --- */

static const char *event_name(const struct perf_attr *a)
{
	static const char *const hardware[] = { "cycles",
						"instructions",
						"cache-references",
						"cache-misses",
						"branches",
						"branch-misses",
						"bus-cycles",
						"stalled-cycles-frontend",
						"stalled-cycles-backend",
						"ref-cycles" };
	static const char *const software[] = {
		"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches"
	};
	uint64_t config = a->attr.config & UINT32_MAX;

	if (a->name && *a->name)
		return a->name;
	if (a->attr.type == PERF_TYPE_HARDWARE && config < sizeof(hardware) / sizeof(*hardware))
		return hardware[config];
	if (a->attr.type == PERF_TYPE_SOFTWARE && config < sizeof(software) / sizeof(*software))
		return software[config];
	return a->attr.type == PERF_TYPE_TRACEPOINT ? "tracepoint" : "raw event";
}

static enum perf_event_kind kind_of(const struct perf_event_attr *a)
{
	if (a->type == PERF_TYPE_SOFTWARE &&
	    (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK))
		return PERF_EVENT_CLOCK;
	/* Machines with two kinds of CPU have the kind in the upper half. */
	if (a->type == PERF_TYPE_HARDWARE && (a->config & UINT32_MAX) == PERF_COUNT_HW_CPU_CYCLES)
		return PERF_EVENT_CYCLES;
	return PERF_EVENT_OTHER;
}

/* Finds the events of the file, and what it says of the recording: of the event that leads. */
static int begin_profile(struct reader *r)
{
	const struct perf_event_attr *attr = NULL;
	struct perf_file *f = &r->file;
	struct profile *p = r->p;

	for (uint32_t i = 0; i < f->attr_count; i++) {
		const struct perf_attr *a = &f->attrs[i];
		struct perf_event *e;

		r->events[i] = PROFILE_NONE;
		if (!a->samples && i)
			continue;
		if (perf_values_find(&r->values, p, event_name(a), kind_of(&a->attr),
				     &r->events[i]))
			return -ENOMEM;
		if (r->events[i] == PROFILE_NONE)
			continue;
		e = &r->values.events[r->events[i]];
		e->has_periods = true;
		e->period = !a->attr.freq ? a->attr.sample_period
			    : e->kind == PERF_EVENT_CLOCK && a->attr.sample_freq
				    ? NS_PER_S / a->attr.sample_freq
				    : 0;
		e->samples += a->samples;
	}
	r->lead = perf_values_lead(&r->values);
	for (uint32_t i = 0; i < f->attr_count && !attr; i++)
		if (r->events[i] == r->lead)
			attr = &f->attrs[i].attr;
	p->bits = p->bits ?: 64;
	if (attr->freq)
		p->frequency = attr->sample_freq;
	if (attr->sample_type & PERF_SAMPLE_STACK_USER && attr->sample_regs_user)
		p->stacks = "cfi";
	else if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && !attr->exclude_callchain_user)
		p->stacks = "fp";
	if (!f->last_ns)
		return 0;
	if (f->has_clock)
		r->shift_ns = f->wall_ns - f->clock_ns;
	else if (f->in->written_ns)
		r->shift_ns = f->in->written_ns - f->last_ns;
	p->time_ns = f->first_ns + r->shift_ns;
	p->duration_ns = f->last_ns - f->first_ns;
	if (r->choice) {
		struct time_interval recorded = { 0 };

		interval_extend(&recorded, p->time_ns);
		interval_extend(&recorded, f->last_ns + r->shift_ns);
		r->choice->choose(r->choice, &recorded);
	}
	return 0;
}

/* Says once what the file has and is not read. */
static int warn_of_unread(struct reader *r)
{
	bool has_call_branches = false, has_branches = false, has_fields = false;
	struct profile *p = r->p;

	for (uint32_t i = 0; i < r->file.attr_count; i++) {
		const struct perf_event_attr *a = &r->file.attrs[i].attr;
		bool branches = a->sample_type & PERF_SAMPLE_BRANCH_STACK;
		bool calls = a->branch_sample_type & BRANCH_SAMPLE_CALL_STACK;

		if (r->events[i] == PROFILE_NONE)
			continue;
		has_call_branches |= branches && calls;
		has_branches |= branches && !calls;
		has_fields |= a->type == PERF_TYPE_TRACEPOINT && a->sample_type & PERF_SAMPLE_RAW;
	}
	const struct {
		bool is_there;
		const char *text;
	} notes[] = {
		{ r->has_unwalked,
		  "callers in user space are not read: the copies of stacks (--call-graph "
		  "dwarf) are of another kind of machine" },
		{ r->walks && copied_stacks_gave_up(r->walks),
		  "some callers in user space are not read: call frame information of all "
		  "images takes too long to read" },
		{ r->has_deferred,
		  "callers in user space are not read: they are in records of their "
		  "own, as the kernel took them later" },
		{ has_call_branches, "callers in user space are not read: they are in branch "
				     "records (--call-graph lbr)" },
		{ has_branches, "branch stacks are not read" },
		{ has_fields, "fields of tracepoints are not read" },
		{ r->file.has_aux, "traces of the hardware (AUX) are not read" },
		{ r->file.has_throttled, "the kernel throttled the event: samples are missing" },
		{ r->guests, "addresses in guests are not read: [guest], [guest kernel]" },
		{ r->file.is_unfinished, "perf record did not finish the file: build IDs and the "
					 "machine's name are missing" },
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
		if (notes[i].is_there && profile_warn(p, "%s", notes[i].text))
			return -ENOMEM;
	return r->others ? profile_warn(p, PERF_OTHERS_WARNING, r->others) : 0;
}

/* The account of the event that leads: of lost records both kinds may be there, which then count
 * the same. */
static int add_account(struct reader *r)
{
	struct profile_totals *t = &r->p->totals;
	uint64_t lost = 0, lost_samples = 0;

	for (uint32_t i = 0; i < r->file.attr_count; i++)
		if (r->events[i] == r->lead) {
			t->counted += r->file.attrs[i].samples;
			add_u64(&lost, r->file.attrs[i].lost);
			add_u64(&lost_samples, r->file.attrs[i].lost_samples);
		}
	lost = MAX(lost, lost_samples);
	t->known = true;
	t->ticks = t->counted;
	add_u64(&t->ticks, lost);
	t->kernel = r->kernel_samples;
	return lost ? profile_add_lost(r->p, "ring_full", lost) : 0;
}

static int perf_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = {
		.file = { .in = in, .p = p, .e = e },
		.tasks = { .p = p, .kernel.stamp = 1, .stamp = 1 },
		.p = p,
		.e = e,
		.choice = in->options.ticks,
		.unknown = PROFILE_NONE,
		.kernel_mapping = PROFILE_NONE,
	};
	int err = perf_file_read(&r.file), read_err = 0;
	struct error ignored;

	/* Of a corrupt file, what comes before that can be salvaged. */
	if (err == -ENOMEM || (err && !r.file.entry_count))
		goto out;
	if (!r.file.attr_count) {
		read_err = input_error(in, 0, e, "the recording has no event");
		goto out;
	}
	r.events = calloc(r.file.attr_count, sizeof(*r.events));
	r.pc_count = CACHED_PCS_MIN;
	while (r.pc_count < CACHED_PCS_MAX && r.pc_count < r.file.entry_count)
		r.pc_count *= 2;
	r.pcs = calloc(r.pc_count, sizeof(*r.pcs));
	if (!r.events || !r.pcs || begin_profile(&r)) {
		read_err = -ENOMEM;
		goto out;
	}
	if (err)
		r.e = &ignored; /* the first error is the one to report */
	for (size_t i = 0; i < r.file.entry_count && !read_err; i++) {
		read_err = read_entry(&r, &r.file.entries[i]);
		if (read_err != -EINVAL && read_err != -E2BIG)
			continue;
		r.file.at = MIN(r.file.entries[i].at, in->size);
		input_error(in, r.file.at, r.e, "%s",
			    read_err == -EINVAL ? "a sample is truncated"
						: "too many changes of mappings");
		read_err = -EINVAL;
	}
	read_err = read_err ?: warn_of_unread(&r) ?: add_account(&r);
	if (read_err != -ENOMEM && perf_values_end(&r.values, p))
		read_err = -ENOMEM;
out:
	free(r.file.attrs);
	table_free(&r.file.ids);
	table_free(&r.file.build_ids);
	free(r.file.entries);
	zstd_end(&r.file.zstd);
	free(r.file.inflated);
	for (size_t i = 0; i < r.tasks.process_count; i++)
		drop_space(&r.tasks.processes[i]);
	free(r.tasks.processes);
	index_free(&r.tasks.process_index);
	free(r.tasks.threads);
	index_free(&r.tasks.thread_index);
	free(r.tasks.kernel.maps);
	free(r.events);
	free(r.pcs);
	free(r.frames);
	index_free(&r.mapping_index);
	copied_stacks_free(r.walks);
	table_free(&r.cgroups);
	return err ?: read_err;
}

static bool perf_detect(const struct input *in)
{
	return in->size >= 16 && memcmp(in->bytes, magic, strlen(magic)) == 0;
}

const struct format format_perf = {
	.name = "perf",
	.extensions = (const char *const[]){ ".perf.data", NULL },
	.files = (const char *const[]){ "perf.data", NULL },
	.detect = perf_detect,
	.read = perf_read,
};
