// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/pprof/pprof_reader.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "util/array.h"

/*
 * Unpacked, a message may be many times as large. The largest valid ones are locations with inlined
 * functions.
 */
#define MESSAGE_MAX ((size_t)1 << 20)

/* Detection looks at so many fields, and accepts an invalid one after DETECT_ENOUGH valid ones. */
#define DETECT_FIELDS 16
#define DETECT_ENOUGH 4

static const ProtobufCMessageDescriptor *const profile_message =
	&profil__pprof__profile__descriptor;

/* --- Detection --- */

/* Whether a message is empty or begins with one of its fields: text hardly ever does. */
static bool message_fits(const ProtobufCMessageDescriptor *message, struct wire content)
{
	struct wire_field f = { 0 };
	bool whole = !wire_left(&content) || !wire_take_field(&content, &f);

	if (!f.id)
		return whole;
	return (whole || f.content.end) && wire_fits(message, &f) &&
	       protobuf_c_message_descriptor_get_field(message, f.id);
}

static bool field_fits(const struct wire_field *f, bool first)
{
	const ProtobufCFieldDescriptor *known =
		protobuf_c_message_descriptor_get_field(profile_message, f->id);

	if (!known)
		return !first;
	if (!wire_fits(profile_message, f))
		return false;
	if (known->type == PROTOBUF_C_TYPE_MESSAGE)
		return message_fits(known->descriptor, f->content);
	return !first || f->id != PPROF_STRING_TABLE || !wire_left(&f->content);
}

/* Whether the window has fields of a Profile. The last may be longer than the window. */
static bool pprof_detect(const struct input *in)
{
	struct wire w = { in->bytes, in->bytes + in->size };
	bool has_messages = false;

	for (int i = 0; i < DETECT_FIELDS && wire_left(&w); i++) {
		struct wire_field f = { 0 };
		const char *reason = wire_take_field(&w, &f);
		bool cut = reason && (f.content.end || !wire_left(&w));

		if (cut && in->size >= INPUT_WINDOW)
			return i > 0 || field_fits(&f, true);
		if (reason || !field_fits(&f, i == 0))
			return i >= DETECT_ENOUGH;
		has_messages |= f.type == WIRE_BYTES;
	}
	return has_messages;
}

/* --- Reading --- */

/* With options.salvage, turns the error into a warning: what is corrupt is dropped. */
static int salvage(struct pprof_reader *r, int err)
{
	if (err == -EINVAL && !r->in->options.salvage)
		error_hint(r->e, "--salvage reads what is not corrupt");
	if (err != -EINVAL || !r->in->options.salvage)
		return err;
	if (!r->dropped &&
	    profile_warn(r->p, "dropped what is corrupt: %s", input_reason(r->in, r->e)))
		return error_no_memory(r->e);
	r->dropped = r->p->salvaged = true;
	return 0;
}

static int check_id(struct pprof_reader *r, const uint8_t *at, const struct pprof_ids *ids,
		    uint64_t id, const char *what)
{
	if (id == 0)
		return pprof_fail(r, at, "the %s has the id 0", what);
	if (pprof_find_id(ids, id) != PROFILE_NONE)
		return pprof_fail(r, at, "two %ss have the id %" PRIu64, what, id);
	return 0;
}

static bool has_string(const struct pprof_reader *r, const char *text)
{
	size_t size = strlen(text);

	for (size_t i = 0; i < r->string_count; i++)
		if (wire_left(&r->strings[i].bytes) == size &&
		    memcmp(r->strings[i].bytes.at, text, size) == 0)
			return true;
	return false;
}

static int add_string(struct pprof_reader *r, const struct wire_field *f)
{
	if (r->string_count == 0 && wire_left(&f->content))
		return pprof_fail(r, f->start, "the first string is not empty");
	if (array_reserve(&r->strings, &r->string_room, r->string_count + 1, sizeof(*r->strings)))
		return error_no_memory(r->e);
	r->strings[r->string_count++].bytes = f->content;
	return 0;
}

/* Adds an extra whose bytes the format gives. */
__attribute__((format(printf, 3, 4))) static int keep_extra(struct pprof_reader *r, uint32_t image,
							    const char *format, ...)
{
	va_list arguments;
	char *bytes;
	int size, err;

	va_start(arguments, format);
	size = vasprintf(&bytes, format, arguments);
	va_end(arguments);
	if (size < 0)
		return error_no_memory(r->e);
	err = profile_add_extra(r->p, PPROF_NAME, image, bytes, size);
	free(bytes);
	return err ? error_no_memory(r->e) : 0;
}

/* --- The fields of Profile --- */

/* Times are signed in the file; negative ones are invalid: 0. */
static uint64_t not_negative(uint64_t number)
{
	return number > INT64_MAX ? 0 : number;
}

static int add_unknown(struct pprof_reader *r, const struct wire_field *f, const uint8_t *end)
{
	size_t size = end - f->start;

	if (array_reserve(&r->unknown, &r->unknown_room, r->unknown_size + 1 + size, 1))
		return error_no_memory(r->e);
	if (r->unknown_size == 0)
		r->unknown[r->unknown_size++] = EXTRA_UNKNOWN;
	memcpy(r->unknown + r->unknown_size, f->start, size);
	r->unknown_size += size;
	return 0;
}

/* Reads strings and numbers; notes the range of fields that are read later. */
static int note_field(struct pprof_reader *r, const struct wire_field *f, const uint8_t *end)
{
	struct pprof_range *range;

	if (f->id >= PPROF_FIELD_UNKNOWN)
		return add_unknown(r, f, end);
	range = &r->ranges[f->id];
	range->start = range->start ?: f->start;
	range->end = end;
	switch (f->id) {
	case PPROF_STRING_TABLE:
		return add_string(r, f);
	case PPROF_TIME_NANOS:
		if (r->p->time_ns)
			return pprof_fail(r, f->start,
					  "a second start time: several profiles are concatenated");
		r->p->time_ns = not_negative(f->number);
		return 0;
	case PPROF_DURATION_NANOS:
		r->p->duration_ns = not_negative(f->number);
		return 0;
	case PPROF_PERIOD:
		r->period = not_negative(f->number);
		return 0;
	default:
		return 0;
	}
}

static int scan(struct pprof_reader *r)
{
	struct wire w = { r->in->bytes, r->in->bytes + r->in->size };
	int err = 0;

	while (wire_left(&w) && !err) {
		struct wire_field f;
		const char *reason = wire_take_field(&w, &f);

		if (reason)
			return salvage(r, pprof_fail(r, f.start, "%s", reason));
		if (!wire_fits(&profil__pprof__profile__descriptor, &f))
			err = pprof_fail(r, f.start, "the field has the wrong wire type");
		err = salvage(r, err ?: note_field(r, &f, w.at));
	}
	return err;
}

/* Adds what a message says; `at` is where its field begins. Returns 0 or -errno with r->e set. */
typedef int message_adder(struct pprof_reader *r, const uint8_t *at, const void *message);

/* Unpacks the field's message and has `add` add it. */
static int read_message(struct pprof_reader *r, const struct wire_field *f,
			const ProtobufCMessageDescriptor *descriptor, message_adder *add)
{
	size_t size = wire_left(&f->content);
	ProtobufCMessage *message;
	int err;

	if (size > MESSAGE_MAX)
		return pprof_fail(r, f->start, "the %s has more than %zu bytes: corrupt",
				  descriptor->short_name, MESSAGE_MAX);
	message = protobuf_c_message_unpack(descriptor, NULL, size, f->content.at);
	if (!message)
		return pprof_fail(r, f->start, "the %s is corrupt", descriptor->short_name);
	r->unknown_inside |= message->n_unknown_fields;
	err = add(r, f->start, message);
	protobuf_c_message_free_unpacked(message, NULL);
	return err;
}

/* How the fields of one kind are read: as a message, or by themselves. */
struct field_kind {
	enum pprof_field id;
	const ProtobufCMessageDescriptor *descriptor;
	message_adder *add;
	int (*read)(struct pprof_reader *r, const struct wire_field *f); /* NULL: a message */
};

static int read_fields(struct pprof_reader *r, const struct field_kind *kind)
{
	struct wire w = { r->ranges[kind->id].start, r->ranges[kind->id].end };
	int err = 0;

	while (wire_left(&w) && !err) {
		struct wire_field f;

		wire_take_field(&w, &f);
		if (f.id != kind->id || !wire_fits(&profil__pprof__profile__descriptor, &f))
			continue;
		err = kind->read ? kind->read(r, &f)
				 : read_message(r, &f, kind->descriptor, kind->add);
		err = salvage(r, err);
	}
	return err;
}

static int get_value_type(struct pprof_reader *r, const uint8_t *at,
			  const Profil__Pprof__ValueType *m, const char **type, const char **unit)
{
	return pprof_string(r, at, m->type, type) ?: pprof_string(r, at, m->unit, unit);
}

static int add_sample_type(struct pprof_reader *r, const uint8_t *at, const void *message)
{
	const char *type, *unit;
	char number[32];
	int err = get_value_type(r, at, message, &type, &unit);

	if (err)
		return err;
	if (r->missing && !*type) { /* a column, and --value, need a name */
		snprintf(number, sizeof(number), "value%zu", r->p->value_type_count + 1);
		type = number;
	}
	return profile_add_value_type(r->p, type, unit) ? error_no_memory(r->e) : 0;
}

static int add_period_type(struct pprof_reader *r, const uint8_t *at, const void *message)
{
	return get_value_type(r, at, message, &r->period_type, &r->period_unit);
}

/* Sets the period of the value type with this type and unit. False: there is none. */
static bool set_value_period(struct pprof_reader *r, const char *type, const char *unit)
{
	for (size_t i = 0; i < r->p->value_type_count && r->period; i++) {
		struct profile_value_type *t = &r->p->value_types[i];

		if (strcmp(t->type, type) != 0 || strcmp(t->unit, unit) != 0)
			continue;
		t->period = r->period;
		return true;
	}
	return false;
}

/*
 * Decides what the period is of: CPU time, some other time, a value type, or neither. One
 * nanosecond is the unit of a value that was measured, not the period of a clock.
 */
static int settle_period(struct pprof_reader *r)
{
	const char *type = r->period_type ?: "", *unit = r->period_unit ?: "";
	uint64_t ns = pprof_unit_ns(unit);

	if (!r->period && !r->period_type)
		return 0;
	if (ns && __builtin_mul_overflow(r->period, ns, &r->p->period_ns))
		r->p->period_ns = UINT64_MAX;
	if (r->p->period_ns == 1)
		r->p->period_ns = 0;
	if (ns ? r->p->period_ns && ns == 1 && strcmp(type, "cpu") == 0
	       : set_value_period(r, type, unit))
		return 0;
	return keep_extra(r, PROFILE_NONE, "%c%" PRIu64 "%c%s%c%s", EXTRA_PERIOD, r->period, 0,
			  type, 0, unit);
}

static int read_text(struct pprof_reader *r, const struct wire_field *f)
{
	static const enum pprof_extra kinds[PPROF_FIELD_UNKNOWN] = {
		[PPROF_DOC_URL] = EXTRA_DOC_URL,
	};
	const char *text;
	int err = pprof_string(r, f->start, f->number, &text);

	if (err || !*text)
		return err;
	if (f->id == PPROF_DEFAULT_SAMPLE_TYPE) {
		r->default_type = text;
		return 0;
	}
	if (f->id == PPROF_DROP_FRAMES || f->id == PPROF_KEEP_FRAMES)
		return profile_string(r->p, text,
				      f->id == PPROF_DROP_FRAMES ? &r->p->drop_frames
								 : &r->p->keep_frames)
			       ? error_no_memory(r->e)
			       : 0;
	return keep_extra(r, PROFILE_NONE, "%c%s", kinds[f->id], text);
}

static int add_comment(struct pprof_reader *r, const uint8_t *at, uint64_t number)
{
	const char *text;
	int err = pprof_string(r, at, number, &text);
	int taken;

	if (err)
		return err;
	taken = pprof_comment_read(r->p, text);
	if (taken < 0 || (taken == 0 && profile_add_comment(r->p, text)))
		return error_no_memory(r->e);
	return 0;
}

static int read_comment(struct pprof_reader *r, const struct wire_field *f)
{
	struct wire packed = f->content;
	int err = 0;

	if (f->type == WIRE_VARINT)
		return add_comment(r, f->start, f->number);
	while (wire_left(&packed) && !err) {
		const uint8_t *at = packed.at;
		uint64_t number;

		if (!wire_take_varint(&packed, &number))
			return pprof_fail(r, at, "the comments are corrupt");
		err = add_comment(r, at, number);
	}
	return err;
}

/* --- Mappings, functions, locations --- */

static int add_image(struct pprof_reader *r, const char *path, const char *hex, uint32_t provider,
		     uint32_t *image)
{
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	size_t size = build_id_parse(hex, strlen(hex), build_id);
	const char *symbol = image_is_kernel(path) ? path + strlen(IMAGE_KERNEL) : "";
	int err = 0;

	if (profile_add_image_of(r->p, *symbol ? IMAGE_KERNEL : path, build_id, size, provider,
				 image))
		return error_no_memory(r->e);
	if (*symbol)
		err = keep_extra(r, *image, "%c%s", EXTRA_RELOCATION, symbol);
	if (*hex && !size && !err)
		err = keep_extra(r, *image, "%c%s", EXTRA_BUILD_ID, hex);
	return err;
}

static void set_linked(struct profile_mapping *m, const char *path,
		       const Profil__Pprof__Mapping *message)
{
	m->linked =
		pprof_is_whole(m->start, m->limit, m->offset) && *path && !image_is_bracketed(path);
	if (m->linked && message->linked_start < message->linked_limit) {
		m->start = message->linked_start;
		m->limit = message->linked_limit;
	}
}

static int add_mapping(struct pprof_reader *r, const uint8_t *at, const void *message)
{
	const Profil__Pprof__Mapping *m = message;
	const char *path, *hex;
	uint32_t image, number;
	int err = check_id(r, at, &r->mappings, m->id, "mapping");

	err = err ?: pprof_string(r, at, m->filename, &path);
	err = err ?: pprof_string(r, at, m->build_id, &hex);
	err = err ?: add_image(r, path, hex, m->provider, &image);
	if (err)
		return err;
	if (profile_add_mapping(r->p, m->memory_start, m->memory_limit, m->file_offset, image,
				&number))
		return error_no_memory(r->e);
	set_linked(&r->p->mappings[number], path, m);
	if (m->text_size) {
		r->p->images[image].text_start = m->text_start;
		r->p->images[image].text_size = m->text_size;
	}
	return pprof_add_id(r, &r->mappings, m->id, number);
}

/* Line numbers of more than 32 bits are invalid: 0. */
static uint32_t line_number(int64_t line)
{
	return line < 0 || line > UINT32_MAX ? 0 : line;
}

static int add_function(struct pprof_reader *r, const uint8_t *at, const void *message)
{
	const Profil__Pprof__Function *m = message;
	struct profile_function function = { .start_line = line_number(m->start_line) };
	uint32_t number;
	int err = check_id(r, at, &r->functions, m->id, "function");

	err = err ?: pprof_string(r, at, m->name, &function.name);
	err = err ?: pprof_string(r, at, m->system_name, &function.system_name);
	err = err ?: pprof_string(r, at, m->filename, &function.file);
	if (err)
		return err;
	if (!*function.name)
		function.name = *function.system_name ? function.system_name : PPROF_NO_NAME;
	if (profile_add_function(r->p, &function, &number))
		return error_no_memory(r->e);
	return pprof_add_id(r, &r->functions, m->id, number);
}

static int read_lines(struct pprof_reader *r, const uint8_t *at, const Profil__Pprof__Location *m,
		      uint32_t *count)
{
	*count = 0;
	if (array_reserve(&r->lines, &r->line_room, m->n_line, sizeof(*r->lines)))
		return error_no_memory(r->e);
	for (size_t i = 0; i < m->n_line; i++) {
		const Profil__Pprof__Line *line = m->line[i];
		uint32_t function = pprof_find_id(&r->functions, line->function_id);

		r->unknown_inside |= line->base.n_unknown_fields;
		if (function != PROFILE_NONE)
			r->lines[(*count)++] = (struct profile_line){
				.function = function,
				.line = line_number(line->line),
				.column = line_number(line->column),
			};
		else if (!pprof_drops_reference(r))
			return pprof_fail(r, at,
					  "the location has function %" PRIu64
					  ", which is not in the file",
					  line->function_id);
	}
	return 0;
}

/* Other readers ignore a reference to a mapping that is not in the file. */
static int find_mapping(struct pprof_reader *r, uint64_t id, uint32_t *mapping)
{
	*mapping = pprof_find_id(&r->mappings, id);
	if (*mapping == PROFILE_NONE && id &&
	    profile_warn(r->p, "locations are in mappings that are not in the file"))
		return error_no_memory(r->e);
	return 0;
}

static int add_location(struct pprof_reader *r, const uint8_t *at, const void *message)
{
	const Profil__Pprof__Location *m = message;
	uint32_t mapping, count, number;
	int err = check_id(r, at, &r->locations, m->id, "location");

	err = err ?: find_mapping(r, m->mapping_id, &mapping);
	err = err ?: read_lines(r, at, m, &count);
	if (err)
		return err;
	err = count ? profile_add_line_location(r->p, m->address, mapping, r->lines, count, &number)
		    : profile_add_location(r->p, m->address, mapping, &number);
	if (err)
		return error_no_memory(r->e);
	r->p->locations[number].folded |= m->is_folded;
	return pprof_add_id(r, &r->locations, m->id, number);
}

/* --- All of it --- */

static int choose_thread_key(struct pprof_reader *r)
{
	r->thread_key = PPROF_COMM;
	if (has_string(r, PPROF_COMM) || !has_string(r, PPROF_THREAD))
		return 0;
	r->thread_key = PPROF_THREAD;
	return keep_extra(r, PROFILE_NONE, "%c%s", EXTRA_THREAD_KEY, PPROF_THREAD);
}

static int choose_value(struct pprof_reader *r)
{
	const char *type = r->default_type;

	struct profile *p = r->p;

	p->names_default = type && profile_find_value(p, type) < p->value_type_count;
	p->default_value =
		1 + (p->names_default ? profile_find_value(p, type) : pprof_default_value(p));
	if (!type || p->names_default)
		return 0;
	return keep_extra(r, PROFILE_NONE, "%c%s", EXTRA_DEFAULT_TYPE, type);
}

/* At the end of the file, or of what can be read of it. */
static int finish(struct pprof_reader *r)
{
	r->p->salvaged |= r->missing;
	if (r->missing && profile_warn(r->p, "dropped references to strings, functions or "
					     "locations that are not in the file"))
		return error_no_memory(r->e);
	if (r->unknown_inside && profile_warn(r->p, "unknown fields inside messages are lost"))
		return error_no_memory(r->e);
	if (r->unknown_size &&
	    profile_add_extra(r->p, PPROF_NAME, PROFILE_NONE, r->unknown, r->unknown_size))
		return error_no_memory(r->e);
	if (r->p->value_type_count == 0 && profile_add_value_type(r->p, "samples", "count"))
		return error_no_memory(r->e);
	return choose_value(r);
}

static int read_all(struct pprof_reader *r)
{
	static const struct field_kind sample_types = { PPROF_SAMPLE_TYPE,
							&profil__pprof__value_type__descriptor,
							add_sample_type, NULL },
				       period_type = { PPROF_PERIOD_TYPE,
						       &profil__pprof__value_type__descriptor,
						       add_period_type, NULL };
	/* Messages refer to each other in any order in the file; here each after what it needs. */
	static const struct field_kind kinds[] = {
		{ PPROF_DROP_FRAMES, .read = read_text },
		{ PPROF_KEEP_FRAMES, .read = read_text },
		{ PPROF_DEFAULT_SAMPLE_TYPE, .read = read_text },
		{ PPROF_DOC_URL, .read = read_text },
		{ PPROF_MAPPING, &profil__pprof__mapping__descriptor, add_mapping, NULL },
		{ PPROF_COMMENT, .read = read_comment },
		{ PPROF_FUNCTION, &profil__pprof__function__descriptor, add_function, NULL },
		{ PPROF_LOCATION, &profil__pprof__location__descriptor, add_location, NULL },
		{ PPROF_SAMPLE, .read = pprof_read_sample },
	};
	int err = scan(r);

	err = err ?: choose_thread_key(r);
	err = err ?: read_fields(r, &sample_types);
	err = err ?: read_fields(r, &period_type);
	err = err ?: settle_period(r);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !err; i++)
		err = read_fields(r, &kinds[i]);
	return err ?: finish(r);
}

static int pprof_read(struct input *in, struct profile *p, struct error *e)
{
	struct pprof_reader r = { .in = in, .p = p, .e = e };
	int err;

	p->bits = 64;
	err = read_all(&r);
	pprof_free_ids(&r.mappings);
	pprof_free_ids(&r.functions);
	pprof_free_ids(&r.locations);
	free(r.strings);
	free(r.unknown);
	free(r.lines);
	free(r.frames);
	free(r.values);
	free(r.tags);
	return err;
}

static const char *const extensions[] = { ".pb.gz", ".pb", ".pprof", NULL };

const struct format format_pprof = {
	.name = PPROF_NAME,
	.extensions = extensions,
	.is_gzip = true,
	.is_signed = true,
	.keeps = KEEPS(ADDRESSES) | KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(LINES) | KEEPS(INLINED) |
		 KEEPS(IMAGES) | KEEPS(MAPPINGS) | KEEPS(BUILD_IDS) | KEEPS(THREADS) | KEEPS(MODE) |
		 KEEPS(LABEL) | KEEPS(TAGS) | KEEPS(VALUES) | KEEPS(EVENT) | KEEPS(PERIOD) |
		 KEEPS(EVENT_PERIOD) | KEEPS(TIME) | KEEPS(DURATION) | KEEPS(HOST) |
		 KEEPS(COMMAND) | KEEPS(ACCOUNT) | KEEPS(COMMENTS),
	.detect = pprof_detect,
	.read = pprof_read,
	.write = pprof_write,
};
