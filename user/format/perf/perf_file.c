// SPDX-License-Identifier: GPL-2.0-only
#include "format/perf/perf_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "util/array.h"
#include "util/sum.h"

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

int perf_string(struct profile *p, const struct perf_bytes *b, const char **text)
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

	if (array_reserve(&f->attrs, &f->attr_room, f->attr_count + 1, sizeof(*f->attrs)))
		return -ENOMEM;
	a = &f->attrs[f->attr_count++];
	*a = (struct perf_attr){ 0 };
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

const struct perf_build_id *perf_find_build_id(const struct perf_file *f, const char *path)
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
		error_hint(f->e, "perf record without --threads writes one file");
		return -EINVAL;
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

struct perf_bytes perf_record(const struct perf_file *f, uint64_t at,
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
	if (array_reserve(&f->entries, &f->entry_room, f->entry_count + 1, sizeof(*f->entries)))
		return -ENOMEM;
	f->entries[f->entry_count++] = (struct perf_entry){ time, at, attr };
	return 0;
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
		if (time > f->last_ns)
			f->last_ns = time;
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

static int compare_entries(const void *x, const void *y)
{
	const struct perf_entry *a = x, *b = y;

	return compare_u64(a->time, b->time) ?: compare_u64(a->at, b->at);
}

int perf_file_read(struct perf_file *f)
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

void perf_file_free(struct perf_file *f)
{
	free(f->attrs);
	table_free(&f->ids);
	table_free(&f->build_ids);
	free(f->entries);
	zstd_end(&f->zstd);
	free(f->inflated);
}
