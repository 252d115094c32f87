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

/* Unpacked, messages may be many times as large: no more than of a location with inlined functions
 */
#define MESSAGE_MAX ((size_t)1 << 20)

int pprof_fail(struct pprof_reader *r, const uint8_t *at, const char *format, ...)
{
	char reason[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return input_error(r->in, r->in->offset + (at - r->in->bytes), r->e, "%s", reason);
}

/* Whether to go on all the same: what is corrupt is left out when there is something to salvage. */
static int salvage(struct pprof_reader *r, int err)
{
	if (err != -EINVAL || !r->in->options.salvage)
		return err;
	if (!r->left_out && profile_warn(r->p, "left out what is corrupt: %s", r->e->what))
		return error_no_memory(r->e);
	r->left_out = r->p->salvaged = true;
	return 0;
}

/* --- Ids and strings --- */

static bool same_id(const void *array, uint32_t entry, const void *key)
{
	const struct pprof_id *ids = array;
	const uint64_t *id = key;

	return ids[entry].id == *id;
}

uint32_t pprof_find_id(const struct pprof_ids *ids, uint64_t id)
{
	uint32_t entry;

	if (id - 1 < ids->dense)
		return ids->ids[id - 1].number;
	entry = index_find(&ids->index, hash_u64(id, 0), same_id, ids->ids, &id);
	return entry == INDEX_NONE ? PROFILE_NONE : ids->ids[entry].number;
}

static int add_id(struct pprof_reader *r, struct pprof_ids *ids, uint64_t id, uint32_t number)
{
	bool dense = ids->dense == ids->count && id == ids->count + 1;

	if (array_reserve(&ids->ids, &ids->room, ids->count + 1, sizeof(*ids->ids)) ||
	    (!dense && index_add(&ids->index, hash_u64(id, 0), ids->count)))
		return error_no_memory(r->e);
	ids->ids[ids->count++] = (struct pprof_id){ id, number };
	ids->dense += dense;
	return 0;
}

static void free_ids(struct pprof_ids *ids)
{
	free(ids->ids);
	index_free(&ids->index);
}

static int check_id(struct pprof_reader *r, const uint8_t *at, const struct pprof_ids *ids,
		    uint64_t id, const char *what)
{
	if (id == 0)
		return pprof_fail(r, at, "the %s has the id 0", what);
	if (pprof_find_id(ids, id) != PROFILE_NONE)
		return pprof_fail(r, at, "the %s's id %" PRIu64 " is taken", what, id);
	return 0;
}

int pprof_string(struct pprof_reader *r, const uint8_t *at, uint64_t number, const char **text)
{
	struct pprof_text *entry;

	if (number >= r->string_count) {
		*text = "";
		if (pprof_does_without(r))
			return 0;
		return pprof_fail(r, at, "string %" PRId64 ", where the file has only %zu",
				  (int64_t)number, r->string_count);
	}
	entry = &r->strings[number];
	if (!entry->interned && profile_string_n(r->p, (const char *)entry->bytes.at,
						 wire_left(&entry->bytes), &entry->interned))
		return error_no_memory(r->e);
	*text = entry->interned;
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

static int keep_extra(struct pprof_reader *r, enum pprof_extra kind, uint32_t image,
		      const char *text)
{
	char *bytes;
	int size = asprintf(&bytes, "%c%s", kind, text);
	int err;

	if (size < 0)
		return error_no_memory(r->e);
	err = profile_add_extra(r->p, format_pprof.name, image, bytes, size);
	free(bytes);
	return err ? error_no_memory(r->e) : 0;
}

/* --- The fields of Profile --- */

/* Times are signed in the file; before 1970 means as little as 0. */
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

/* Reads what needs nothing else; of all others, notes where they are. */
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
					  "a second start time: several profiles, one behind the "
					  "other");
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

typedef int field_reader(struct pprof_reader *r, const struct wire_field *f);

/* Reads all fields of one kind. */
static int for_each(struct pprof_reader *r, enum pprof_field id, field_reader *read)
{
	struct wire w = { r->ranges[id].start, r->ranges[id].end };
	int err = 0;

	while (wire_left(&w) && !err) {
		struct wire_field f;

		wire_take_field(&w, &f);
		if (f.id == id && wire_fits(&profil__pprof__profile__descriptor, &f))
			err = salvage(r, read(r, &f));
	}
	return err;
}

/* The field's message, to be freed by free_message(); NULL when it is corrupt. */
static void *unpack(struct pprof_reader *r, const struct wire_field *f,
		    const ProtobufCMessageDescriptor *descriptor)
{
	size_t size = wire_left(&f->content);
	ProtobufCMessage *message;

	if (size > MESSAGE_MAX) {
		pprof_fail(r, f->start, "the %s has more than %zu bytes: it is taken for corrupt",
			   descriptor->short_name, MESSAGE_MAX);
		return NULL;
	}
	message = protobuf_c_message_unpack(descriptor, NULL, size, f->content.at);
	if (message)
		r->unknown_inside |= message->n_unknown_fields;
	else
		pprof_fail(r, f->start, "the %s is corrupt", descriptor->short_name);
	return message;
}

static void free_message(void *message)
{
	protobuf_c_message_free_unpacked(message, NULL);
}

static int get_value_type(struct pprof_reader *r, const struct wire_field *f, const char **type,
			  const char **unit)
{
	Profil__Pprof__ValueType *message = unpack(r, f, &profil__pprof__value_type__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = pprof_string(r, f->start, message->type, type);
	err = err ?: pprof_string(r, f->start, message->unit, unit);
	free_message(message);
	return err;
}

static int read_sample_type(struct pprof_reader *r, const struct wire_field *f)
{
	const char *type, *unit;
	int err = get_value_type(r, f, &type, &unit);

	if (err)
		return err;
	return profile_add_value_type(r->p, type, unit) ? error_no_memory(r->e) : 0;
}

static int read_period_type(struct pprof_reader *r, const struct wire_field *f)
{
	return get_value_type(r, f, &r->period_type, &r->period_unit);
}

static int keep_period(struct pprof_reader *r, const char *type, const char *unit)
{
	char *bytes;
	int size = asprintf(&bytes, "%c%" PRIu64 "%c%s%c%s", EXTRA_PERIOD, r->period, 0, type, 0,
			    unit);
	int err;

	if (size < 0)
		return error_no_memory(r->e);
	err = profile_add_extra(r->p, format_pprof.name, PROFILE_NONE, bytes, size);
	free(bytes);
	return err ? error_no_memory(r->e) : 0;
}

/* Whether one of the values has this period. */
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

/* What the period is of: CPU time, some other time, one of the values, or neither. */
static int settle_period(struct pprof_reader *r)
{
	const char *type = r->period_type ?: "", *unit = r->period_unit ?: "";
	uint64_t ns = pprof_unit_ns(unit);

	if (!r->period && !r->period_type)
		return 0;
	if (ns && __builtin_mul_overflow(r->period, ns, &r->p->period_ns))
		r->p->period_ns = UINT64_MAX;
	if (ns ? r->period && ns == 1 && strcmp(type, "cpu") == 0 : set_value_period(r, type, unit))
		return 0;
	return keep_period(r, type, unit);
}

static int read_text(struct pprof_reader *r, const struct wire_field *f)
{
	static const enum pprof_extra kinds[PPROF_FIELD_UNKNOWN] = {
		[PPROF_DROP_FRAMES] = EXTRA_DROP_FRAMES,
		[PPROF_KEEP_FRAMES] = EXTRA_KEEP_FRAMES,
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
	return keep_extra(r, kinds[f->id], PROFILE_NONE, text);
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

static int add_image(struct pprof_reader *r, const char *path, const char *hex, uint32_t *image)
{
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	size_t size = build_id_parse(hex, strlen(hex), build_id);
	const char *symbol = image_is_kernel(path) ? path + strlen(IMAGE_KERNEL) : "";
	int err = 0;

	if (profile_add_image(r->p, *symbol ? IMAGE_KERNEL : path, build_id, size, image))
		return error_no_memory(r->e);
	if (*symbol)
		err = keep_extra(r, EXTRA_RELOCATION, *image, symbol);
	if (*hex && !size && !err)
		err = keep_extra(r, EXTRA_BUILD_ID, *image, hex);
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

static int add_mapping(struct pprof_reader *r, const uint8_t *at, const Profil__Pprof__Mapping *m)
{
	const char *path, *hex;
	uint32_t image, number;
	int err = check_id(r, at, &r->mappings, m->id, "mapping");

	err = err ?: pprof_string(r, at, m->filename, &path);
	err = err ?: pprof_string(r, at, m->build_id, &hex);
	err = err ?: add_image(r, path, hex, &image);
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
	return add_id(r, &r->mappings, m->id, number);
}

static int read_mapping(struct pprof_reader *r, const struct wire_field *f)
{
	Profil__Pprof__Mapping *message = unpack(r, f, &profil__pprof__mapping__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = add_mapping(r, f->start, message);
	free_message(message);
	return err;
}

/* Line numbers outside of 32 bits are not known. */
static uint32_t line_number(int64_t line)
{
	return line < 0 || line > UINT32_MAX ? 0 : line;
}

static int add_function(struct pprof_reader *r, const uint8_t *at, const Profil__Pprof__Function *m)
{
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
	return add_id(r, &r->functions, m->id, number);
}

static int read_function(struct pprof_reader *r, const struct wire_field *f)
{
	Profil__Pprof__Function *message = unpack(r, f, &profil__pprof__function__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = add_function(r, f->start, message);
	free_message(message);
	return err;
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
		else if (!pprof_does_without(r))
			return pprof_fail(r, at,
					  "the location names function %" PRIu64
					  ", which the file does not have",
					  line->function_id);
	}
	return 0;
}

/* Other readers overlook a mapping that is not there. */
static int find_mapping(struct pprof_reader *r, uint64_t id, uint32_t *mapping)
{
	*mapping = pprof_find_id(&r->mappings, id);
	if (*mapping == PROFILE_NONE && id &&
	    profile_warn(r->p, "%s has locations in mappings that are not in the file",
			 r->in->path))
		return error_no_memory(r->e);
	return 0;
}

static int add_location(struct pprof_reader *r, const uint8_t *at, const Profil__Pprof__Location *m)
{
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
	return add_id(r, &r->locations, m->id, number);
}

static int read_location(struct pprof_reader *r, const struct wire_field *f)
{
	Profil__Pprof__Location *message = unpack(r, f, &profil__pprof__location__descriptor);
	int err;

	if (!message)
		return -EINVAL;
	err = add_location(r, f->start, message);
	free_message(message);
	return err;
}

/* --- All of it --- */

static int choose_thread_key(struct pprof_reader *r)
{
	r->thread_key = PPROF_COMM;
	if (has_string(r, PPROF_COMM) || !has_string(r, PPROF_THREAD))
		return 0;
	r->thread_key = PPROF_THREAD;
	return keep_extra(r, EXTRA_THREAD_KEY, PROFILE_NONE, PPROF_THREAD);
}

static int choose_value(struct pprof_reader *r)
{
	const char *type = r->default_type;

	r->p->default_value = pprof_default_value(r->p) + 1;
	if (!type || !profile_choose_value(r->p, type))
		return 0;
	return keep_extra(r, EXTRA_DEFAULT_TYPE, PROFILE_NONE, type);
}

/* What is left to be done when all, or all that there is, has been read. */
static int finish(struct pprof_reader *r)
{
	r->p->salvaged |= r->missing;
	if (r->missing &&
	    profile_warn(r->p,
			 "left out: texts, functions or locations that it refers to and lacks"))
		return error_no_memory(r->e);
	if (r->unknown_inside &&
	    profile_warn(r->p, "fields that are not known here are inside of others: lost"))
		return error_no_memory(r->e);
	if (r->unknown_size &&
	    profile_add_extra(r->p, format_pprof.name, PROFILE_NONE, r->unknown, r->unknown_size))
		return error_no_memory(r->e);
	if (r->p->value_type_count == 0 && profile_add_value_type(r->p, "samples", "count"))
		return error_no_memory(r->e);
	return choose_value(r);
}

/* Messages refer to each other in any order in the file; here each kind after what it needs. */
static int read_all(struct pprof_reader *r)
{
	static const struct {
		enum pprof_field id;
		field_reader *read;
	} passes[] = {
		{ PPROF_DROP_FRAMES, read_text },	  { PPROF_KEEP_FRAMES, read_text },
		{ PPROF_DEFAULT_SAMPLE_TYPE, read_text }, { PPROF_DOC_URL, read_text },
		{ PPROF_MAPPING, read_mapping },	  { PPROF_COMMENT, read_comment },
		{ PPROF_FUNCTION, read_function },	  { PPROF_LOCATION, read_location },
		{ PPROF_SAMPLE, pprof_read_sample },
	};
	int err = scan(r);

	err = err ?: choose_thread_key(r);
	err = err ?: for_each(r, PPROF_SAMPLE_TYPE, read_sample_type);
	err = err ?: for_each(r, PPROF_PERIOD_TYPE, read_period_type);
	err = err ?: settle_period(r);
	for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && !err; i++)
		err = for_each(r, passes[i].id, passes[i].read);
	return err ?: finish(r);
}

int pprof_read(struct input *in, struct profile *p, struct error *e)
{
	struct pprof_reader r = { .in = in, .p = p, .e = e };
	int err;

	p->bits = 64;
	err = read_all(&r);
	free_ids(&r.mappings);
	free_ids(&r.functions);
	free_ids(&r.locations);
	free(r.strings);
	free(r.unknown);
	free(r.lines);
	free(r.frames);
	free(r.values);
	free(r.tags);
	return err;
}
