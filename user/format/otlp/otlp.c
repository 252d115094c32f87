// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fields of the outer messages are appended to buffers one by one: their order is free, and the sum
 * of all messages as objects would take several times the memory.
 */
#include "format/otlp/otlp.h"

#include <stdbool.h>
#include <string.h>

#include "format/wire.h"
#include "otlp.pb-c.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "profile/service.h"
#include "util/tick_list.h"
#include "util/array.h"
#include "util/table.h"

enum {
	REQUEST_RESOURCE_PROFILES = 1,
	REQUEST_DICTIONARY = 2
};
enum {
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE = 2
};
enum {
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILE = 2
};
enum {
	PROFILE_SAMPLE = 2
};
enum {
	TABLE_MAPPING = 1,
	TABLE_LOCATION,
	TABLE_FUNCTION,
	TABLE_LINK,
	TABLE_STRING,
	TABLE_ATTRIBUTE,
	TABLE_STACK,
	TABLES
};

/* Elements of the dictionary, in the order of their numbers from 1 on */
struct text_key {
	size_t offset, size; /* of its bytes in the dictionary's */
};

/* A mapping or a location */
struct element_key {
	size_t offset, size; /* of its bytes in the dictionary's, with the table's number */
	uint32_t number;
};

struct attribute {
	int64_t number;
	uint64_t key, text, unit; /* text 0: it is a number */
};

struct function {
	uint64_t function;
	const char *file; /* NULL: the function's own */
};

/* The attributes of all samples with one set of labels; known: they have been made. */
struct label_attributes {
	size_t first, count;
	uint32_t link; /* to the span that they worked for; 0: none */
	bool known;
};

/* Labels that become a link */
#define TRACE_KEY  "trace_id"
#define SPAN_KEY   "span_id"
#define TRACE_SIZE 16
#define SPAN_SIZE  8

struct writer {
	const struct profile *p;
	struct error *e;
	int err; /* the first error; nothing is written after it */
	struct message_bytes dictionary;
	uint32_t counts[TABLES];

	struct text_key *texts;
	TABLE(struct attribute) attributes; /* from number 1 on */
	TABLE(struct function) functions;
	struct element_key *elements;
	size_t element_count, element_room, text_room;
	struct index text_index, element_index;

	struct tick_groups ticks; /* by sample; NULL: no times are known, or the value is no tick */
	uint32_t *mappings, *locations; /* the numbers of the profile's; 0: not written */
	struct label_attributes *labels;
	int32_t *label_attributes;
	size_t label_attribute_count, label_attribute_room;

	Profil__Otlp__Line *lines;
	Profil__Otlp__Line **line_pointers;
	int32_t *stack;
	size_t line_room, line_pointer_room, frame_room;
};

static void fail(struct writer *w)
{
	w->err = w->err ?: error_no_memory(w->e);
}

/* Makes room for `need` elements. False: w->err is set. */
#define RESERVE(w, array, array_room, need)                                                  \
	((array_reserve(&(w)->array, &(w)->array_room, (need), sizeof(*(w)->array)) == 0) || \
	 (fail(w), false))

/* Returns room for a field's head and `size` bytes; NULL: w->err is set. */
static uint8_t *reserve(struct writer *w, struct message_bytes *b, size_t size)
{
	if (w->err)
		return NULL;
	if (array_reserve(&b->at, &b->room, b->size + 1 + WIRE_VARINT_MAX + size, 1)) {
		fail(w);
		return NULL;
	}
	return b->at + b->size;
}

static void put_bytes(struct writer *w, struct message_bytes *b, unsigned int field,
		      const void *bytes, size_t size)
{
	uint8_t *to = reserve(w, b, size);

	if (!to)
		return;
	to = wire_put_head(to, field, size);
	if (size)
		memcpy(to, bytes, size);
	b->size = to + size - b->at;
}

static void put_message(struct writer *w, struct message_bytes *b, unsigned int field,
			const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *to = reserve(w, b, size);

	if (!to)
		return;
	to = wire_put_head(to, field, size);
	b->size = to + protobuf_c_message_pack(message, to) - b->at;
}

/* Appends an element to a table of the dictionary. Returns its number. */
static uint32_t put_element(struct writer *w, unsigned int table, const ProtobufCMessage *message)
{
	put_message(w, &w->dictionary, table, message);
	return w->counts[table]++;
}

static bool element_equal(const void *array, uint32_t id, const void *key)
{
	const struct writer *w = array;
	const struct element_key *a = &w->elements[id], *b = key;

	return a->size == b->size &&
	       memcmp(w->dictionary.at + a->offset, w->dictionary.at + b->offset, a->size) == 0;
}

/*
 * The same for elements that the profile may have twice, as when two of its images differ in what
 * is not sent: no element may be in a table twice.
 */
static uint32_t put_unique(struct writer *w, unsigned int table, const ProtobufCMessage *message)
{
	struct element_key key = { .offset = w->dictionary.size };
	uint32_t id;
	uint64_t hash;

	put_message(w, &w->dictionary, table, message);
	if (w->err || !RESERVE(w, elements, element_room, w->element_count + 1))
		return 0;
	key.size = w->dictionary.size - key.offset;
	hash = hash_bytes(w->dictionary.at + key.offset, key.size, 0);
	id = index_find(&w->element_index, hash, element_equal, w, &key);
	if (id != INDEX_NONE) {
		w->dictionary.size = key.offset;
		return w->elements[id].number;
	}
	key.number = w->counts[table]++;
	if (index_add(&w->element_index, hash, w->element_count))
		fail(w);
	w->elements[w->element_count++] = key;
	return key.number;
}

static bool text_key_equal(const void *array, uint32_t id, const void *key)
{
	const struct writer *w = array;
	const struct text_key *text = &w->texts[id];

	return text->size == strlen(key) &&
	       memcmp(w->dictionary.at + text->offset, key, text->size) == 0;
}

/* Returns the number of a text that is UTF-8. */
static uint32_t clean_text_number(struct writer *w, const char *text)
{
	size_t size = strlen(text);
	uint64_t hash = hash_bytes(text, size, 0);
	uint32_t number = index_find(&w->text_index, hash, text_key_equal, w, text);

	if (number != INDEX_NONE)
		return number;
	number = w->counts[TABLE_STRING];
	put_bytes(w, &w->dictionary, TABLE_STRING, text, size);
	if (w->err || !RESERVE(w, texts, text_room, number + 1))
		return 0;
	w->texts[number] = (struct text_key){ w->dictionary.size - size, size };
	if (index_add(&w->text_index, hash, number))
		fail(w);
	return w->counts[TABLE_STRING]++;
}

static uint32_t text_number(struct writer *w, const char *text)
{
	uint32_t number;
	char *clean;

	if (message_is_utf8(text))
		return clean_text_number(w, text);
	clean = message_text(text);
	if (!clean) {
		fail(w);
		return 0;
	}
	number = clean_text_number(w, clean);
	free(clean);
	return number;
}

/* `text` is the one that key->text is the number of; NULL: the value is the number. */
static uint32_t find_or_add_attribute(struct writer *w, const struct attribute *key,
				      const char *text)
{
	uint32_t number, before = w->attributes.count;
	Profil__Otlp__Attribute message = PROFIL__OTLP__ATTRIBUTE__INIT;
	Profil__Otlp__AnyValue value = PROFIL__OTLP__ANY_VALUE__INIT;
	char *clean = NULL;

	if (table_add(&w->attributes, key, sizeof(*key), &number)) {
		fail(w);
		return 0;
	}
	if (number < before)
		return number + 1;
	message.key_strindex = key->key;
	message.unit_strindex = key->unit;
	message.value = &value;
	value.value_case = PROFIL__OTLP__ANY_VALUE__VALUE_INT_VALUE;
	value.int_value = key->number;
	if (text) {
		clean = message_text(text);
		value.value_case = PROFIL__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value.string_value = clean;
	}
	if (text && !clean)
		fail(w);
	else
		put_element(w, TABLE_ATTRIBUTE, &message.base);
	free(clean);
	return number + 1;
}

static uint32_t text_attribute(struct writer *w, const char *key, const char *text)
{
	struct attribute a = { 0, text_number(w, key), text_number(w, text), 0 };

	return find_or_add_attribute(w, &a, text);
}

static uint32_t number_attribute(struct writer *w, const char *key, int64_t number,
				 const char *unit)
{
	struct attribute a = { number, text_number(w, key), 0, text_number(w, unit) };

	return find_or_add_attribute(w, &a, NULL);
}

static uint32_t mapping_number(struct writer *w, uint32_t id)
{
	const struct profile_mapping *m = &w->p->mappings[id];
	const struct profile_image *image = &w->p->images[m->image];
	Profil__Otlp__Mapping message = PROFIL__OTLP__MAPPING__INIT;
	char build_id[BUILD_ID_TEXT_SIZE];
	int32_t attribute;

	if (w->mappings[id])
		return w->mappings[id];
	message.memory_start = m->start;
	message.memory_limit = m->limit;
	message.file_offset = m->offset;
	message.filename_strindex = text_number(w, image->path);
	if (image->build_id_size) {
		build_id_format(image->build_id, image->build_id_size, build_id);
		attribute = text_attribute(w, "process.executable.build_id.gnu", build_id);
		message.attribute_indices = &attribute;
		message.n_attribute_indices = 1;
	}
	return w->mappings[id] = put_unique(w, TABLE_MAPPING, &message.base);
}

/* Only functions have source files: a line in another file gets a function of its own. */
static uint32_t function_number(struct writer *w, const struct profile_line *line)
{
	const struct profile_function *f = &w->p->functions[line->function];
	const struct function key = { line->function, line->file };
	uint32_t number, before = w->functions.count;
	Profil__Otlp__Function message = PROFIL__OTLP__FUNCTION__INIT;

	if (table_add(&w->functions, &key, sizeof(key), &number)) {
		fail(w);
		return 0;
	}
	if (number < before)
		return number + 1;
	message.name_strindex = text_number(w, f->name);
	message.system_name_strindex = text_number(w, f->system_name);
	message.filename_strindex = text_number(w, line->file ?: f->file);
	message.start_line = line->file ? 0 : f->start_line;
	return put_element(w, TABLE_FUNCTION, &message.base);
}

/*
 * The well-known value of profile.frame.type of a script's frame, by what its file is called; NULL:
 * unknown.
 */
static const char *script_type(const char *path)
{
	static const char *const types[][2] = {
		{ ".py", "cpython" }, { ".php", "php" }, { ".phtml", "php" },
		{ ".pl", "perl" },    { ".pm", "perl" },
	};
	const char *extension = strrchr(path, '.');

	for (size_t i = 0; extension && i < sizeof(types) / sizeof(*types); i++)
		if (strcmp(extension, types[i][0]) == 0)
			return types[i][1];
	return NULL;
}

/*
 * The well-known value of profile.frame.type, or NULL. Which language generated code was written in
 * is unknown. Of images in brackets, modules are in the kernel's half of the addresses.
 */
static const char *frame_type(const struct profile *p, const struct profile_location *l)
{
	if (l->mapping == PROFILE_NONE)
		return NULL;
	if (profile_is_script(p, l - p->locations))
		return script_type(p->images[p->mappings[l->mapping].image].path);
	switch (image_kind(p->images[p->mappings[l->mapping].image].path)) {
	case IMAGE_IN_KERNEL:
		return "kernel";
	case IMAGE_BRACKETED:
		return l->address >> 63 ? "kernel" : NULL;
	case IMAGE_FILE:
	case IMAGE_VDSO:
	case IMAGE_VSYSCALL:
		return "native";
	default:
		return NULL;
	}
}

static uint32_t location_number(struct writer *w, uint32_t id)
{
	const struct profile_location *l = &w->p->locations[id];
	const char *type = frame_type(w->p, l);
	Profil__Otlp__Location message = PROFIL__OTLP__LOCATION__INIT;
	int32_t attribute;

	if (w->locations[id])
		return w->locations[id];
	if (!RESERVE(w, lines, line_room, l->line_count) ||
	    !RESERVE(w, line_pointers, line_pointer_room, l->line_count))
		return 0;
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *line = &w->p->lines[l->first_line + i];

		profil__otlp__line__init(&w->lines[i]);
		w->lines[i].function_index = function_number(w, line);
		w->lines[i].line = line->line;
		w->lines[i].column = line->column;
		w->line_pointers[i] = &w->lines[i];
	}
	message.address = l->address;
	/* A script's mapping is the name of its file, which the function has. */
	if (l->mapping != PROFILE_NONE && !profile_is_script(w->p, id))
		message.mapping_index = mapping_number(w, l->mapping);
	message.n_lines = l->line_count;
	message.lines = w->line_pointers;
	if (type) {
		attribute = text_attribute(w, "profile.frame.type", type);
		message.attribute_indices = &attribute;
		message.n_attribute_indices = 1;
	}
	return w->locations[id] = put_unique(w, TABLE_LOCATION, &message.base);
}

static void add_label(struct writer *w, struct label_attributes *a, uint32_t attribute)
{
	if (!RESERVE(w, label_attributes, label_attribute_room, a->first + a->count + 1))
		return;
	w->label_attributes[a->first + a->count++] = attribute;
}

/* The number of the link to the span that labels name; 0: they name none. */
static uint32_t link_number(struct writer *w, const struct profile_labels *l)
{
	const struct profile_tag *trace = profile_find_tag(l, TRACE_KEY);
	const struct profile_tag *span = profile_find_tag(l, SPAN_KEY);
	uint8_t trace_id[PROFILE_BUILD_ID_MAX], span_id[PROFILE_BUILD_ID_MAX];
	Profil__Otlp__Link message = PROFIL__OTLP__LINK__INIT;

	if (!trace || !trace->text || !span || !span->text ||
	    build_id_parse(trace->text, strlen(trace->text), trace_id) != TRACE_SIZE ||
	    build_id_parse(span->text, strlen(span->text), span_id) != SPAN_SIZE)
		return 0;
	message.trace_id = (ProtobufCBinaryData){ TRACE_SIZE, trace_id };
	message.span_id = (ProtobufCBinaryData){ SPAN_SIZE, span_id };
	return put_unique(w, TABLE_LINK, &message.base);
}

/* The names of OpenTelemetry's conventions for our tags; others keep theirs. */
static const struct {
	enum profile_tag_number tag;
	const char *attribute;
} conventions[] = {
	{ TAG_CONTAINER_NAME, "container.name" },
	{ TAG_CPU, "cpu.logical_number" },
	{ TAG_THREAD, "thread.name" },
	{ TAG_UNIT, "systemd.unit" },
	{ TAG_USER, "process.owner" },
};

/* Returns the attributes of a set of labels, which are made once. */
static const struct label_attributes *attributes_of(struct writer *w, uint32_t labels)
{
	const struct profile_labels *l = &w->p->labels[labels];
	struct label_attributes *a = &w->labels[labels];

	if (a->known)
		return a;
	a->known = true;
	a->link = link_number(w, l);
	a->first = w->label_attribute_count;
	if (*l->comm)
		add_label(w, a, text_attribute(w, "process.executable.name", l->comm));
	if (l->pid)
		add_label(w, a, number_attribute(w, "process.pid", l->pid, ""));
	if (l->tid)
		add_label(w, a, number_attribute(w, "thread.id", l->tid, ""));
	for (uint32_t i = 0; i < l->tag_count; i++) {
		const struct profile_tag *t = &l->tags[i];
		const char *key = t->key, *unit = t->unit;

		/* The resource has the container, and the link the span. */
		if ((t->text && strcmp(key, tag_kinds[TAG_CONTAINER].key) == 0) ||
		    (a->link && (strcmp(key, TRACE_KEY) == 0 || strcmp(key, SPAN_KEY) == 0)))
			continue;
		for (size_t j = 0; j < sizeof(conventions) / sizeof(*conventions); j++)
			if (strcmp(t->key, tag_kinds[conventions[j].tag].key) == 0) {
				key = conventions[j].attribute;
				unit = "";
			}
		if (t->text)
			add_label(w, a, text_attribute(w, key, t->text));
		else
			add_label(w, a, number_attribute(w, key, t->number, unit));
	}
	w->label_attribute_count += a->count;
	return a;
}

/*
 * Writes a sample. With `ticks`, a value that counts them: those whose times are known go as these
 * times alone, which readers count: the profiler of OpenTelemetry sends all of its own so. Those of
 * the others are a second Sample.
 */
static void put_sample(struct writer *w, struct message_bytes *to, size_t number, int64_t value,
		       bool ticks)
{
	const struct profile_sample *s = &w->p->samples[number];
	const struct label_attributes *attributes = attributes_of(w, s->labels);
	size_t first = w->ticks.first ? w->ticks.first[number] : 0;
	size_t times = ticks && w->ticks.first ? w->ticks.first[number + 1] - first : 0;
	Profil__Otlp__Sample message = PROFIL__OTLP__SAMPLE__INIT;
	Profil__Otlp__Stack stack = PROFIL__OTLP__STACK__INIT;

	if (s->depth && RESERVE(w, stack, frame_room, s->depth)) {
		for (uint32_t i = 0; i < s->depth; i++)
			w->stack[i] = location_number(w, w->p->frames[s->first_frame + i]);
		stack.n_location_indices = s->depth;
		stack.location_indices = w->stack;
		message.stack_index = put_unique(w, TABLE_STACK, &stack.base);
	}
	message.link_index = attributes->link;
	if (attributes->count) { /* else there may be no array */
		message.n_attribute_indices = attributes->count;
		message.attribute_indices = w->label_attributes + attributes->first;
	}
	if ((uint64_t)value < times) /* the others were taken by what is below 0 */
		times = value;
	if (times) {
		message.n_timestamps_unix_nano = times;
		message.timestamps_unix_nano = w->ticks.times + first;
		put_message(w, to, PROFILE_SAMPLE, &message.base);
		message.n_timestamps_unix_nano = 0;
		value -= times;
		if (!value)
			return;
	}
	message.n_values = 1;
	message.values = &value;
	put_message(w, to, PROFILE_SAMPLE, &message.base);
}

static Profil__Otlp__ValueType value_type(struct writer *w, const char *type, const char *unit)
{
	Profil__Otlp__ValueType message = PROFIL__OTLP__VALUE_TYPE__INIT;

	message.type_strindex = text_number(w, type);
	message.unit_strindex = text_number(w, unit);
	return message;
}

/* The Profiles of a service. */
enum part {
	PART_VALUE, /* the one that was asked for */
	PART_DELAY,
	PART_OFF_CPU,
	PARTS
};

/*
 * Writes the fields of a Profile, except its samples. `number`: of no other in the request. A value
 * that is no clock's has itself as its period's type: engines name a profile by this, and its delay
 * is not its "cpu". off_cpu has none: so it is known (OpenTelemetry, Pyroscope).
 */
static void put_profile_head(struct writer *w, struct message_bytes *to, size_t number,
			     enum part part, size_t value)
{
	const struct profile *p = w->p;
	const struct profile_value_type *t = &p->value_types[value];
	bool is_off_cpu = part == PART_OFF_CPU, is_clock = profile_value_ns(p, value);
	Profil__Otlp__Profile message = PROFIL__OTLP__PROFILE__INIT;
	Profil__Otlp__ValueType type = value_type(w, is_off_cpu ? "off_cpu" : t->type,
						  is_off_cpu ? "nanoseconds" : t->unit);
	Profil__Otlp__ValueType period;
	uint8_t id[MESSAGE_ID_SIZE], *end;
	size_t size;

	message_profile_id(p, number, id);
	message.sample_type = &type;
	message.time_unix_nano = p->time_ns;
	message.duration_nano = p->duration_ns;
	message.profile_id = (ProtobufCBinaryData){ sizeof(id), id };
	if (!is_off_cpu) {
		period = is_clock ? value_type(w, "cpu", "nanoseconds") : type;
		message.period_type = &period;
		message.period = is_clock ? profile_tick_ns(p) : t->period ?: 1;
	}
	size = protobuf_c_message_get_packed_size(&message.base);
	end = reserve(w, to, size);
	if (end)
		to->size += protobuf_c_message_pack(&message.base, end);
}

/* Bound: size. */
#define ATTRIBUTES_MAX 3

/*
 * Writes a service's ResourceProfiles, with the Profiles that have bytes. Its attributes are few,
 * and do not use the dictionary.
 */
static void put_service(struct writer *w, struct message_bytes *request, const struct service *s,
			const struct message_bytes profiles[static PARTS])
{
	struct message_bytes resource_profiles = { 0 }, scope_profiles = { 0 };
	Profil__Otlp__Resource resource = PROFIL__OTLP__RESOURCE__INIT;
	Profil__Otlp__Scope scope = PROFIL__OTLP__SCOPE__INIT;
	Profil__Otlp__KeyValue attributes[ATTRIBUTES_MAX], *pointers[ATTRIBUTES_MAX];
	Profil__Otlp__AnyValue values[ATTRIBUTES_MAX];
	const char *texts[ATTRIBUTES_MAX][2] = { { "service.name", s->name },
						 { "host.name", w->p->host } };
	size_t count = *w->p->host ? 2 : 1;

	if (s->container) {
		texts[count][0] =
			service_container_key(s->container, "container.id", "container.name");
		texts[count++][1] = s->container;
	}
	for (size_t i = 0; i < count; i++) {
		profil__otlp__key_value__init(&attributes[i]);
		profil__otlp__any_value__init(&values[i]);
		values[i].value_case = PROFIL__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		values[i].string_value = message_text(texts[i][1]);
		if (!values[i].string_value)
			fail(w);
		attributes[i].key = (char *)texts[i][0];
		attributes[i].value = &values[i];
		pointers[i] = &attributes[i];
	}
	resource.n_attributes = count;
	resource.attributes = pointers;
	if (!w->err)
		put_message(w, &resource_profiles, RESOURCE_PROFILES_RESOURCE, &resource.base);
	for (size_t i = 0; i < count; i++)
		free(values[i].string_value);

	scope.name = (char *)"profil";
	scope.version = (char *)PROFIL_VERSION;
	put_message(w, &scope_profiles, SCOPE_PROFILES_SCOPE, &scope.base);
	for (size_t i = 0; i < PARTS; i++)
		if (profiles[i].size)
			put_bytes(w, &scope_profiles, SCOPE_PROFILES_PROFILE, profiles[i].at,
				  profiles[i].size);
	put_bytes(w, &resource_profiles, RESOURCE_PROFILES_SCOPE, scope_profiles.at,
		  scope_profiles.size);
	put_bytes(w, request, REQUEST_RESOURCE_PROFILES, resource_profiles.at,
		  resource_profiles.size);
	message_bytes_free(&resource_profiles);
	message_bytes_free(&scope_profiles);
}

/* Writes the elements with number 0. */
static void begin_dictionary(struct writer *w)
{
	Profil__Otlp__Mapping mapping = PROFIL__OTLP__MAPPING__INIT;
	Profil__Otlp__Location location = PROFIL__OTLP__LOCATION__INIT;
	Profil__Otlp__Function function = PROFIL__OTLP__FUNCTION__INIT;
	Profil__Otlp__Link link = PROFIL__OTLP__LINK__INIT;
	Profil__Otlp__Attribute attribute = PROFIL__OTLP__ATTRIBUTE__INIT;
	Profil__Otlp__Stack stack = PROFIL__OTLP__STACK__INIT;
	uint8_t zeros[TRACE_SIZE] = { 0 };

	link.trace_id = (ProtobufCBinaryData){ TRACE_SIZE, zeros };
	link.span_id = (ProtobufCBinaryData){ SPAN_SIZE, zeros };
	put_element(w, TABLE_MAPPING, &mapping.base);
	put_element(w, TABLE_LOCATION, &location.base);
	put_element(w, TABLE_FUNCTION, &function.base);
	put_unique(w, TABLE_LINK, &link.base); /* ids may be zeros, too: that is none */
	put_element(w, TABLE_ATTRIBUTE, &attribute.base);
	put_element(w, TABLE_STACK, &stack.base);
	text_number(w, "");
}

int otlp_encode(const struct profile *p, const char *type, struct message_bytes *request,
		struct error *e)
{
	size_t value = profile_value(p, type), delay = profile_find_sum(p, PROFILE_SUM_DELAY);
	struct services services = { 0 };
	struct writer w = { .p = p, .e = e };
	struct message_bytes(*profiles)[PARTS] = NULL; /* of each service */

	w.err = services_find(p, value, &services, e);
	w.mappings = calloc(p->mapping_count + 1, sizeof(*w.mappings));
	w.locations = calloc(p->location_count + 1, sizeof(*w.locations));
	w.labels = calloc(p->label_count + 1, sizeof(*w.labels));
	profiles = calloc(services.count + 1, sizeof(*profiles));
	if (!w.mappings || !w.locations || !w.labels || !profiles)
		fail(&w);
	if (p->ticks.count && value == PROFILE_SAMPLES &&
	    tick_list_group(&p->ticks, p->sample_count, &w.ticks))
		fail(&w);
	if (w.err)
		goto out;
	begin_dictionary(&w);
	for (size_t i = 0; i < p->sample_count && !w.err; i++) {
		const int64_t *values = &p->values[i * p->value_type_count];
		const int64_t parts[PARTS] = {
			[PART_VALUE] = values[value],
			[PART_DELAY] =
				delay < p->value_type_count && delay != value ? values[delay] : 0,
			[PART_OFF_CPU] = value == PROFILE_SAMPLES ? profile_off_cpu(p, i) : 0,
		};
		size_t service = services.of_sample[i];

		for (size_t part = 0; part < PARTS; part++) {
			struct message_bytes *to = &profiles[service][part];

			if (parts[part] <= 0)
				continue;
			if (!to->size)
				put_profile_head(&w, to, part * services.count + service, part,
						 part == PART_DELAY ? delay : value);
			put_sample(&w, to, i, parts[part], part == PART_VALUE);
		}
	}
	for (size_t i = 0; i < services.count; i++)
		if (profiles[i][PART_VALUE].size || profiles[i][PART_DELAY].size ||
		    profiles[i][PART_OFF_CPU].size)
			put_service(&w, request, &services.items[i], profiles[i]);
	put_bytes(&w, request, REQUEST_DICTIONARY, w.dictionary.at, w.dictionary.size);
out:
	for (size_t i = 0; profiles && i < services.count; i++)
		for (size_t part = 0; part < PARTS; part++)
			message_bytes_free(&profiles[i][part]);
	free(profiles);
	services_free(&services);
	message_bytes_free(&w.dictionary);
	free(w.texts);
	table_free(&w.attributes);
	table_free(&w.functions);
	free(w.elements);
	index_free(&w.text_index);
	index_free(&w.element_index);
	tick_groups_free(&w.ticks);
	free(w.mappings);
	free(w.locations);
	free(w.labels);
	free(w.label_attributes);
	free(w.lines);
	free(w.line_pointers);
	free(w.stack);
	return w.err;
}

static int otlp_write(const struct profile *p, const struct format_options *options, FILE *out,
		      struct error *e)
{
	struct message_bytes message = { 0 };
	int err = otlp_encode(p, options->value, &message, e);

	if (!err)
		fwrite(message.at, 1, message.size, out);
	message_bytes_free(&message);
	return err;
}

const struct format format_otlp = {
	.name = "otlp",
	.extensions = (const char *const[]){ ".otlp", NULL },
	.keeps = KEEPS(ADDRESSES) | KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(LINES) | KEEPS(INLINED) |
		 KEEPS(IMAGES) | KEEPS(MAPPINGS) | KEEPS(BUILD_IDS) | KEEPS(THREADS) |
		 KEEPS(LABEL) | KEEPS(TAGS) | KEEPS(DELAY) | KEEPS(PERIOD) | KEEPS(EVENT_PERIOD) |
		 KEEPS(TIME) | KEEPS(TICK_TIMES) | KEEPS(DURATION) | KEEPS(HOST),
	.write = otlp_write,
};
