// SPDX-License-Identifier: GPL-2.0-only
#include "format/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/image_name.h"
#include "profile.pb-c.h"
#include "util/array.h"

/* How many fields have to make sense before a file is taken for a profile: for a corrupt one. */
#define DETECT_FIELDS 16
#define DETECT_ENOUGH 4

/* A field of Profile: its varint is in `number`, its bytes are in bytes and size. */
struct field {
	uint32_t id;
	enum pprof_wire wire;
	uint64_t number;
	const uint8_t *bytes;
	size_t size;
	size_t offset; /* of the field in the input */
};

struct text {
	const char *start;
	size_t size;
};

/* The file's ids may be any numbers. Maps those of one kind of message to our own. */
struct id {
	uint64_t id;
	uint32_t number;
};

struct ids {
	struct id *ids;
	size_t count, room;
	struct index index;
};

struct reader {
	const struct input *in;
	struct profile *p;
	struct error *e;
	struct text *strings;
	size_t string_count, string_room;
	struct ids mappings, functions, locations;
	bool time_seen;

	/* Room for one location's, or one sample's */
	struct profile_line *lines;
	size_t line_room;
	uint32_t *frames;
	size_t frame_room;
};

static bool take_varint(const struct input *in, size_t *offset, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && *offset < in->size; shift += 7) {
		uint8_t byte = in->bytes[(*offset)++];

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* What stands at *offset, behind the field's tag. NULL or the reason why it cannot be read. */
static const char *take_content(const struct input *in, size_t *offset, struct field *f)
{
	f->size = 0;
	switch (f->wire) {
	case PPROF_VARINT:
		return take_varint(in, offset, &f->number) ? NULL : "the number is cut off";
	case PPROF_BYTES:
		if (!take_varint(in, offset, &f->number))
			return "the length is cut off";
		f->size = f->number;
		break;
	case PPROF_FIXED64:
		f->size = 8;
		break;
	case PPROF_FIXED32:
		f->size = 4;
		break;
	default:
		return "no such wire type: corrupt, or no pprof profile";
	}
	if (f->size > in->size - *offset)
		return "the field is longer than the rest of the file: truncated or corrupt";
	f->bytes = in->bytes + *offset;
	*offset += f->size;
	return NULL;
}

/* The fields of Profile by our description of it, with unknown ones left to pass. */
static bool wire_fits(const struct field *f)
{
	const ProtobufCFieldDescriptor *known =
		protobuf_c_message_descriptor_get_field(&profil__pprof__profile__descriptor, f->id);

	if (!known)
		return true;
	if (known->type == PROTOBUF_C_TYPE_MESSAGE || known->type == PROTOBUF_C_TYPE_STRING)
		return f->wire == PPROF_BYTES;
	return f->wire == PPROF_VARINT ||
	       (f->wire == PPROF_BYTES && known->label == PROTOBUF_C_LABEL_REPEATED);
}

/* Reads the field at *offset and moves behind it. Returns NULL or why it cannot. */
static const char *take_field(const struct input *in, size_t *offset, struct field *f)
{
	uint64_t tag;

	f->offset = *offset;
	if (!take_varint(in, offset, &tag))
		return "the field's tag is cut off";
	if (tag >> 3 == 0 || tag >> 32)
		return "no such field: corrupt, or no pprof profile";
	f->id = tag >> 3;
	f->wire = tag & 7;
	return wire_fits(f) ? take_content(in, offset, f) : "the field has the wrong wire type";
}

static bool pprof_detect(const struct input *in)
{
	size_t offset = 0;

	for (int i = 0; i < DETECT_FIELDS && offset < in->size; i++) {
		struct field f;

		if (take_field(in, &offset, &f))
			return i >= DETECT_ENOUGH;
		if (i == 0 && f.id >= PPROF_FIELD_UNKNOWN)
			return false;
	}
	return true;
}

typedef int field_reader(struct reader *r, const struct field *f);

/* Reads all fields of one id, or of all when it is 0. */
static int for_each(struct reader *r, uint32_t id, field_reader *read)
{
	size_t offset = 0;

	while (offset < r->in->size) {
		struct field f = { 0 };
		const char *reason = take_field(r->in, &offset, &f);
		int err;

		if (reason)
			return input_error(r->in, f.offset, r->e, "%s", reason);
		if (id && f.id != id)
			continue;
		err = read(r, &f);
		if (err)
			return err;
	}
	return 0;
}

static int fail(struct reader *r, const struct field *f, const char *reason)
{
	return input_error(r->in, f->offset, r->e, "%s", reason);
}

/* The field's message, which is the caller's to free; NULL when it is corrupt. */
static void *unpack(struct reader *r, const struct field *f,
		    const ProtobufCMessageDescriptor *descriptor)
{
	void *message = protobuf_c_message_unpack(descriptor, NULL, f->size, f->bytes);

	if (!message)
		input_error(r->in, f->offset, r->e, "the %s is corrupt", descriptor->short_name);
	return message;
}

static void free_message(void *message)
{
	protobuf_c_message_free_unpacked(message, NULL);
}

static bool same_id(const void *array, uint32_t entry, const void *key)
{
	const struct id *ids = array;
	const uint64_t *id = key;

	return ids[entry].id == *id;
}

/* PROFILE_NONE when there is no such id. */
static uint32_t find_id(const struct ids *ids, uint64_t id)
{
	uint32_t entry = index_find(&ids->index, hash_u64(id, 0), same_id, ids->ids, &id);

	return entry == INDEX_NONE ? PROFILE_NONE : ids->ids[entry].number;
}

static int add_id(struct reader *r, struct ids *ids, uint64_t id, uint32_t number)
{
	if (array_reserve(&ids->ids, &ids->room, ids->count + 1, sizeof(*ids->ids)) ||
	    index_add(&ids->index, hash_u64(id, 0), ids->count))
		return error_no_memory(r->e);
	ids->ids[ids->count++] = (struct id){ id, number };
	return 0;
}

static int check_id(struct reader *r, const struct field *f, const struct ids *ids, uint64_t id,
		    const char *what)
{
	if (id == 0)
		return input_error(r->in, f->offset, r->e, "the %s has the id 0", what);
	if (find_id(ids, id) != PROFILE_NONE)
		return input_error(r->in, f->offset, r->e, "the %s's id %" PRIu64 " is taken", what,
				   id);
	return 0;
}

/* Interns the string of this number. */
static int get_string(struct reader *r, const struct field *f, int64_t number, const char **text)
{
	if (number < 0 || (size_t)number >= r->string_count)
		return input_error(r->in, f->offset, r->e,
				   "string %" PRId64 ", where the file has only %zu", number,
				   r->string_count);
	if (profile_string_n(r->p, r->strings[number].start, r->strings[number].size, text))
		return error_no_memory(r->e);
	return 0;
}

static int read_string(struct reader *r, const struct field *f)
{
	if (r->string_count == 0 && f->size != 0)
		return fail(r, f, "the first string is not empty");
	if (array_reserve(&r->strings, &r->string_room, r->string_count + 1, sizeof(*r->strings)))
		return error_no_memory(r->e);
	r->strings[r->string_count++] = (struct text){ (const char *)f->bytes, f->size };
	return 0;
}

static int get_value_type(struct reader *r, const struct field *f, const char **type,
			  const char **unit)
{
	Profil__Pprof__ValueType *message = unpack(r, f, &profil__pprof__value_type__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = get_string(r, f, message->type, type);
	if (!err)
		err = get_string(r, f, message->unit, unit);
	free_message(message);
	return err;
}

static int read_sample_type(struct reader *r, const struct field *f)
{
	const char *type, *unit;
	int err = get_value_type(r, f, &type, &unit);

	if (err)
		return err;
	return profile_add_value_type(r->p, type, unit) ? error_no_memory(r->e) : 0;
}

/* How many nanoseconds the unit has: 0 when it is none of time. */
static uint64_t unit_ns(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "nanoseconds", 1 },
		{ "microseconds", 1000 },
		{ "milliseconds", 1000000 },
		{ "seconds", 1000000000 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(unit, units[i].name) == 0)
			return units[i].ns;
	return 0;
}

/* Made of the period's number, which may come first, and its unit. */
static int read_period_type(struct reader *r, const struct field *f)
{
	const char *type, *unit;
	int err = get_value_type(r, f, &type, &unit);

	if (!err && __builtin_mul_overflow(r->p->period_ns, unit_ns(unit), &r->p->period_ns))
		r->p->period_ns = UINT64_MAX;
	return err;
}

/* Times are signed in the file; before 1970 means as little as 0. */
static uint64_t not_negative(uint64_t number)
{
	return number > INT64_MAX ? 0 : number;
}

static int add_comment(struct reader *r, const struct field *f, uint64_t number)
{
	const char *text;
	int err = get_string(r, f, number, &text);
	int taken;

	if (err)
		return err;
	taken = pprof_account_read(r->p, text);
	if (taken < 0 || (taken == 0 && profile_add_comment(r->p, text)))
		return error_no_memory(r->e);
	return 0;
}

static int read_comment(struct reader *r, const struct field *f)
{
	const struct input packed = { .bytes = f->bytes, .size = f->size };
	size_t offset = 0;
	int err = 0;

	if (f->wire == PPROF_VARINT)
		return add_comment(r, f, f->number);
	while (offset < packed.size && !err) {
		uint64_t number;

		if (!take_varint(&packed, &offset, &number))
			return fail(r, f, "the comments are corrupt");
		err = add_comment(r, f, number);
	}
	return err;
}

static int read_header_field(struct reader *r, const struct field *f)
{
	switch (f->id) {
	case PPROF_SAMPLE_TYPE:
		return read_sample_type(r, f);
	case PPROF_TIME_NANOS:
		if (r->time_seen)
			return fail(r, f,
				    "a second start time: several profiles, one behind the "
				    "other");
		r->time_seen = true;
		r->p->time_ns = not_negative(f->number);
		return 0;
	case PPROF_DURATION_NANOS:
		r->p->duration_ns = not_negative(f->number);
		return 0;
	case PPROF_PERIOD:
		r->p->period_ns = not_negative(f->number);
		return 0;
	case PPROF_COMMENT:
		return read_comment(r, f);
	default:
		return 0;
	}
}

static size_t parse_build_id(const char *hex, uint8_t *id)
{
	size_t size = strlen(hex);

	if (size % 2 || size / 2 > PROFILE_BUILD_ID_MAX ||
	    strspn(hex, "0123456789abcdefABCDEF") != size)
		return 0;
	for (size_t i = 0; i < size / 2; i++) {
		char digits[] = { hex[2 * i], hex[2 * i + 1], '\0' };

		id[i] = strtoul(digits, NULL, 16);
	}
	return size / 2;
}

static int add_mapping(struct reader *r, const struct field *f, const Profil__Pprof__Mapping *m)
{
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	const char *path, *hex;
	uint32_t image, number;
	int err = check_id(r, f, &r->mappings, m->id, "mapping");

	if (!err)
		err = get_string(r, f, m->filename, &path);
	if (!err)
		err = get_string(r, f, m->build_id, &hex);
	if (err)
		return err;
	if (image_is_kernel(path))
		path = IMAGE_KERNEL;
	if (profile_add_image(r->p, path, build_id, parse_build_id(hex, build_id), &image) ||
	    profile_add_mapping(r->p, m->memory_start, m->memory_limit, m->file_offset, image,
				&number))
		return error_no_memory(r->e);
	return add_id(r, &r->mappings, m->id, number);
}

static int read_mapping(struct reader *r, const struct field *f)
{
	Profil__Pprof__Mapping *message = unpack(r, f, &profil__pprof__mapping__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = add_mapping(r, f, message);
	free_message(message);
	return err;
}

/* Line numbers outside of 32 bits are not known. */
static uint32_t line_number(int64_t line)
{
	return line < 0 || line > UINT32_MAX ? 0 : line;
}

static int add_function(struct reader *r, const struct field *f, const Profil__Pprof__Function *m)
{
	struct profile_function function = { .start_line = line_number(m->start_line) };
	uint32_t number;
	int err = check_id(r, f, &r->functions, m->id, "function");

	if (!err)
		err = get_string(r, f, m->name, &function.name);
	if (!err)
		err = get_string(r, f, m->system_name, &function.system_name);
	if (!err)
		err = get_string(r, f, m->filename, &function.file);
	if (err)
		return err;
	if (!*function.name)
		function.name = *function.system_name ? function.system_name : "??";
	if (profile_add_function(r->p, &function, &number))
		return error_no_memory(r->e);
	return add_id(r, &r->functions, m->id, number);
}

static int read_function(struct reader *r, const struct field *f)
{
	Profil__Pprof__Function *message = unpack(r, f, &profil__pprof__function__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = add_function(r, f, message);
	free_message(message);
	return err;
}

static int read_lines(struct reader *r, const struct field *f, const Profil__Pprof__Location *m)
{
	if (array_reserve(&r->lines, &r->line_room, m->n_line, sizeof(*r->lines)))
		return error_no_memory(r->e);
	for (size_t i = 0; i < m->n_line; i++) {
		uint32_t function = find_id(&r->functions, m->line[i]->function_id);

		if (function == PROFILE_NONE)
			return input_error(r->in, f->offset, r->e,
					   "the location names function %" PRIu64
					   ", which the file does not have",
					   m->line[i]->function_id);
		r->lines[i] = (struct profile_line){ function, line_number(m->line[i]->line) };
	}
	return 0;
}

static bool same_lines(const struct reader *r, uint32_t location, size_t count)
{
	const struct profile_location *l = &r->p->locations[location];

	return l->line_count == count &&
	       (count == 0 ||
		memcmp(r->p->lines + l->first_line, r->lines, count * sizeof(*r->lines)) == 0);
}

/*
 * A location of its own for an address that has one already: profiles of interpreted programs
 * have address 0 everywhere, and differ in their lines.
 */
static int append_location(struct profile *p, uint64_t address, uint32_t mapping, uint32_t *number)
{
	if (array_reserve(&p->locations, &p->location_room, p->location_count + 1,
			  sizeof(*p->locations)))
		return -ENOMEM;
	*number = p->location_count++;
	p->locations[*number] = (struct profile_location){
		.address = address,
		.image_address = address,
		.mapping = mapping,
	};
	if (mapping != PROFILE_NONE)
		p->locations[*number].image_address +=
			p->mappings[mapping].offset - p->mappings[mapping].start;
	return 0;
}

static int store_location(struct reader *r, const Profil__Pprof__Location *m, uint32_t mapping,
			  uint32_t *number)
{
	size_t before = r->p->location_count;

	if (profile_add_location(r->p, m->address, mapping, number))
		return -ENOMEM;
	if (r->p->location_count == before) {
		if (same_lines(r, *number, m->n_line))
			return 0;
		if (append_location(r->p, m->address, mapping, number))
			return -ENOMEM;
	}
	return profile_set_lines(r->p, *number, r->lines, m->n_line);
}

static int add_location(struct reader *r, const struct field *f, const Profil__Pprof__Location *m)
{
	uint32_t mapping = PROFILE_NONE, number;
	int err = check_id(r, f, &r->locations, m->id, "location");

	if (err)
		return err;
	if (m->mapping_id) {
		mapping = find_id(&r->mappings, m->mapping_id);
		if (mapping == PROFILE_NONE)
			return input_error(r->in, f->offset, r->e,
					   "the location is in mapping %" PRIu64
					   ", which the file does not have",
					   m->mapping_id);
	}
	err = read_lines(r, f, m);
	if (err)
		return err;
	if (store_location(r, m, mapping, &number))
		return error_no_memory(r->e);
	return add_id(r, &r->locations, m->id, number);
}

static int read_location(struct reader *r, const struct field *f)
{
	Profil__Pprof__Location *message = unpack(r, f, &profil__pprof__location__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = add_location(r, f, message);
	free_message(message);
	return err;
}

static void set_id_label(uint32_t *id, const Profil__Pprof__Label *label)
{
	if (!label->str && label->num > 0 && label->num <= UINT32_MAX)
		*id = label->num;
}

static int read_label(struct reader *r, const struct field *f, const Profil__Pprof__Label *label,
		      struct profile_labels *labels)
{
	const char *key, *text;
	int err = get_string(r, f, label->key, &key);

	if (!err)
		err = get_string(r, f, label->str, &text);
	if (err)
		return err;
	if (strcmp(key, "pid") == 0)
		set_id_label(&labels->pid, label);
	else if (strcmp(key, "tid") == 0)
		set_id_label(&labels->tid, label);
	else if (strcmp(key, "comm") == 0 || (strcmp(key, "thread") == 0 && !*labels->comm))
		labels->comm = text;
	else if (strcmp(key, "mode") == 0)
		labels->kernel = strcmp(text, "kernel") == 0;
	return 0;
}

static int read_frames(struct reader *r, const struct field *f, const Profil__Pprof__Sample *m)
{
	if (array_reserve(&r->frames, &r->frame_room, m->n_location_id + 1, sizeof(*r->frames)))
		return error_no_memory(r->e);
	for (size_t i = 0; i < m->n_location_id; i++) {
		r->frames[i] = find_id(&r->locations, m->location_id[i]);
		if (r->frames[i] == PROFILE_NONE)
			return input_error(r->in, f->offset, r->e,
					   "the sample has location %" PRIu64
					   ", which the file does not have",
					   m->location_id[i]);
	}
	return 0;
}

static int add_sample(struct reader *r, const struct field *f, const Profil__Pprof__Sample *m)
{
	struct profile_labels labels = { .comm = "" };
	uint32_t number;
	int err = read_frames(r, f, m);

	if (err)
		return err;
	if (r->p->value_type_count == 0)
		return fail(r, f, "a sample, where the file does not say what samples count");
	if (m->n_value != r->p->value_type_count)
		return input_error(r->in, f->offset, r->e,
				   "the sample has %zu values, where the file has %zu types",
				   m->n_value, r->p->value_type_count);
	for (size_t i = 0; i < m->n_label && !err; i++)
		err = read_label(r, f, m->label[i], &labels);
	if (err)
		return err;
	if (profile_add_labels(r->p, &labels, &number) ||
	    profile_add_sample(r->p, r->frames, m->n_location_id, number, m->value))
		return error_no_memory(r->e);
	return 0;
}

static int read_sample(struct reader *r, const struct field *f)
{
	Profil__Pprof__Sample *message = unpack(r, f, &profil__pprof__sample__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = add_sample(r, f, message);
	free_message(message);
	return err;
}

/* Messages refer to each other in any order in the file; here each kind after what it needs. */
static int read_all(struct reader *r)
{
	static const struct {
		uint32_t id;
		field_reader *read;
	} passes[] = {
		{ PPROF_STRING_TABLE, read_string },	 { 0, read_header_field },
		{ PPROF_PERIOD_TYPE, read_period_type }, { PPROF_MAPPING, read_mapping },
		{ PPROF_FUNCTION, read_function },	 { PPROF_LOCATION, read_location },
		{ PPROF_SAMPLE, read_sample },
	};
	int err = 0;

	r->p->bits = 64;
	for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && !err; i++)
		err = for_each(r, passes[i].id, passes[i].read);
	if (err || r->p->value_type_count)
		return err;
	return profile_add_value_type(r->p, "samples", "count") ? error_no_memory(r->e) : 0;
}

static void free_ids(struct ids *ids)
{
	free(ids->ids);
	index_free(&ids->index);
}

static int pprof_read(const struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	int err = read_all(&r);

	free_ids(&r.mappings);
	free_ids(&r.functions);
	free_ids(&r.locations);
	free(r.strings);
	free(r.lines);
	free(r.frames);
	return err;
}

static const char *const extensions[] = { ".pb.gz", ".pb", ".pprof", NULL };

const struct format format_pprof = {
	.name = "pprof",
	.extensions = extensions,
	.loses = NULL,
	.detect = pprof_detect,
	.read = pprof_read,
	.write = pprof_write,
};
