// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/gzip.h"
#include "format/pprof.h"
#include "profile.pb-c.h"
#include "util/array.h"

/* What pprof shows behind the number of a label; with a unit, it keeps a 0 too. */
#define LABEL_UNIT "id"

struct writer {
	const struct profile *p;
	struct error *e;
	struct gzip_writer gzip;

	/* The string table so far. The strings are the profile's, constant, or `owned`. */
	const char **strings;
	size_t string_count, string_room;
	char **owned;
	size_t owned_count, owned_room;
	struct index string_index;

	uint32_t *mapping_ids; /* of each mapping: 0 when it is not written */
	bool *location_used;

	uint8_t *packed;
	size_t packed_room;
	uint64_t *location_ids;
	size_t location_id_room;
	Profil__Pprof__Line *lines;
	size_t line_room;
	Profil__Pprof__Line **line_pointers;
	size_t line_pointer_room;
};

static bool string_equal(const void *array, uint32_t id, const void *key)
{
	const char *const *strings = array;

	return strcmp(strings[id], key) == 0;
}

/* The text's number in the string table, which is written last. `text` outlives the writer. */
static int string_number(struct writer *w, const char *text, int64_t *number)
{
	uint64_t hash;
	uint32_t id;

	text = text ? text : "";
	hash = hash_bytes(text, strlen(text), 0);
	id = index_find(&w->string_index, hash, string_equal, w->strings, text);
	if (id == INDEX_NONE) {
		id = w->string_count;
		if (array_reserve(&w->strings, &w->string_room, id + 1, sizeof(*w->strings)) ||
		    index_add(&w->string_index, hash, id))
			return error_no_memory(w->e);
		w->strings[w->string_count++] = text;
	}
	*number = id;
	return 0;
}

/* The same for a text that does not outlive the call. */
static int string_number_copied(struct writer *w, const char *text, int64_t *number)
{
	char *copy;

	if (array_reserve(&w->owned, &w->owned_room, w->owned_count + 1, sizeof(*w->owned)))
		return error_no_memory(w->e);
	copy = strdup(text);
	if (!copy)
		return error_no_memory(w->e);
	w->owned[w->owned_count++] = copy;
	return string_number(w, copy, number);
}

static size_t put_varint(uint8_t *bytes, uint64_t value)
{
	size_t size = 0;

	for (; value > 0x7f; value >>= 7)
		bytes[size++] = value | 0x80;
	bytes[size++] = value;
	return size;
}

static int emit_number(struct writer *w, enum pprof_field field, uint64_t value)
{
	uint8_t bytes[1 + 10] = { field << 3 | PPROF_VARINT };

	if (value == 0)
		return 0;
	return gzip_write(&w->gzip, bytes, 1 + put_varint(bytes + 1, value), w->e);
}

static int emit_bytes(struct writer *w, enum pprof_field field, const void *bytes, size_t size)
{
	uint8_t head[1 + 10] = { field << 3 | PPROF_BYTES };
	int err = gzip_write(&w->gzip, head, 1 + put_varint(head + 1, size), w->e);

	return err ? err : gzip_write(&w->gzip, bytes, size, w->e);
}

static int emit_message(struct writer *w, enum pprof_field field, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	if (array_reserve(&w->packed, &w->packed_room, size + 1, 1))
		return error_no_memory(w->e);
	protobuf_c_message_pack(message, w->packed);
	return emit_bytes(w, field, w->packed, size);
}

static int write_value_type(struct writer *w, enum pprof_field field, const char *type,
			    const char *unit)
{
	Profil__Pprof__ValueType message = PROFIL__PPROF__VALUE_TYPE__INIT;
	int err = string_number(w, type, &message.type);

	if (!err)
		err = string_number(w, unit, &message.unit);
	return err ? err : emit_message(w, field, &message.base);
}

/* Readers show the last type unless told otherwise: time is what they should show. */
static int write_default_type(struct writer *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i + 1 < p->value_type_count; i++) {
		int64_t number;
		int err;

		if (strcmp(p->value_types[i].type, "cpu") != 0)
			continue;
		err = string_number(w, "cpu", &number);
		return err ? err : emit_number(w, PPROF_DEFAULT_SAMPLE_TYPE, number);
	}
	return 0;
}

static int write_header(struct writer *w)
{
	const struct profile *p = w->p;
	int err = 0;

	for (size_t i = 0; i < p->value_type_count && !err; i++)
		err = write_value_type(w, PPROF_SAMPLE_TYPE, p->value_types[i].type,
				       p->value_types[i].unit);
	if (!err)
		err = write_value_type(w, PPROF_PERIOD_TYPE, "cpu", "nanoseconds");
	if (!err)
		err = emit_number(w, PPROF_PERIOD, p->period_ns);
	if (!err)
		err = emit_number(w, PPROF_TIME_NANOS, p->time_ns);
	if (!err)
		err = emit_number(w, PPROF_DURATION_NANOS, p->duration_ns);
	return err ? err : write_default_type(w);
}

static int set_text_label(struct writer *w, Profil__Pprof__Label *label, const char *key,
			  const char *text)
{
	int err = string_number(w, key, &label->key);

	return err ? err : string_number(w, text, &label->str);
}

static int set_number_label(struct writer *w, Profil__Pprof__Label *label, const char *key,
			    uint32_t number)
{
	int err = string_number(w, key, &label->key);

	label->num = number;
	return err ? err : string_number(w, LABEL_UNIT, &label->num_unit);
}

enum {
	LABEL_COUNT_MAX = 4
};

static int set_labels(struct writer *w, const struct profile_labels *from,
		      Profil__Pprof__Label *labels, size_t *count)
{
	int err = 0;

	*count = 0;
	if (from->pid)
		err = set_number_label(w, &labels[(*count)++], "pid", from->pid);
	if (from->tid && !err)
		err = set_number_label(w, &labels[(*count)++], "tid", from->tid);
	if (*from->comm && !err)
		err = set_text_label(w, &labels[(*count)++], "comm", from->comm);
	if (from->kernel && !err)
		err = set_text_label(w, &labels[(*count)++], "mode", "kernel");
	return err;
}

static int write_sample(struct writer *w, size_t i)
{
	const struct profile *p = w->p;
	const struct profile_sample *sample = &p->samples[i];
	Profil__Pprof__Sample message = PROFIL__PPROF__SAMPLE__INIT;
	Profil__Pprof__Label labels[LABEL_COUNT_MAX], *pointers[LABEL_COUNT_MAX];
	int err;

	for (size_t j = 0; j < LABEL_COUNT_MAX; j++) {
		profil__pprof__label__init(&labels[j]);
		pointers[j] = &labels[j];
	}
	err = set_labels(w, &p->labels[sample->labels], labels, &message.n_label);
	if (err)
		return err;
	if (array_reserve(&w->location_ids, &w->location_id_room, sample->depth,
			  sizeof(*w->location_ids)))
		return error_no_memory(w->e);
	for (uint32_t j = 0; j < sample->depth; j++)
		w->location_ids[j] = (uint64_t)p->frames[sample->first_frame + j] + 1;
	message.label = pointers;
	message.n_location_id = sample->depth;
	message.location_id = w->location_ids;
	message.n_value = p->value_type_count;
	message.value = p->values + i * p->value_type_count;
	return emit_message(w, PPROF_SAMPLE, &message.base);
}

/* Notes which locations and mappings samples refer to: no others are written. */
static int find_used(struct writer *w)
{
	const struct profile *p = w->p;
	uint32_t id = 0;

	w->mapping_ids = calloc(p->mapping_count + 1, sizeof(*w->mapping_ids));
	w->location_used = calloc(p->location_count + 1, sizeof(*w->location_used));
	if (!w->mapping_ids || !w->location_used)
		return error_no_memory(w->e);
	for (size_t i = 0; i < p->sample_count; i++)
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			w->location_used[p->frames[p->samples[i].first_frame + j]] = true;
	for (size_t i = 0; i < p->location_count; i++)
		if (w->location_used[i] && p->locations[i].mapping != PROFILE_NONE)
			w->mapping_ids[p->locations[i].mapping] = 1;
	for (size_t i = 0; i < p->mapping_count; i++)
		if (w->mapping_ids[i] || i == 0)
			w->mapping_ids[i] = ++id;
	return 0;
}

/* What is known of the locations in each mapping, by mapping. */
static void note_names(const struct writer *w, Profil__Pprof__Mapping *messages)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		Profil__Pprof__Mapping *m;

		if (!w->location_used[i] || l->mapping == PROFILE_NONE || l->line_count == 0)
			continue;
		m = &messages[l->mapping];
		m->has_functions = true;
		m->has_inline_frames |= l->line_count > 1;
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_line *line = &p->lines[l->first_line + j];

			m->has_line_numbers |= line->line > 0;
			m->has_filenames |= *p->functions[line->function].file != '\0';
		}
	}
}

static int build_id_number(struct writer *w, const struct profile_image *image, int64_t *number)
{
	char hex[2 * PROFILE_BUILD_ID_MAX + 1] = "";

	for (unsigned int i = 0; i < image->build_id_size; i++)
		snprintf(hex + 2 * i, 3, "%02x", image->build_id[i]);
	return string_number_copied(w, hex, number);
}

static int write_mapping(struct writer *w, size_t i, Profil__Pprof__Mapping *message)
{
	const struct profile_mapping *m = &w->p->mappings[i];
	const struct profile_image *image = &w->p->images[m->image];
	int err;

	if (!w->mapping_ids[i])
		return 0;
	message->id = w->mapping_ids[i];
	message->memory_start = m->start;
	message->memory_limit = m->limit;
	message->file_offset = m->offset;
	err = string_number(w, image->path, &message->filename);
	if (!err)
		err = build_id_number(w, image, &message->build_id);
	return err ? err : emit_message(w, PPROF_MAPPING, &message->base);
}

static int write_mappings(struct writer *w)
{
	size_t count = w->p->mapping_count;
	Profil__Pprof__Mapping *messages = calloc(count + 1, sizeof(*messages));
	int err = 0;

	if (!messages)
		return error_no_memory(w->e);
	for (size_t i = 0; i < count; i++)
		profil__pprof__mapping__init(&messages[i]);
	note_names(w, messages);
	for (size_t i = 0; i < count && !err; i++)
		err = write_mapping(w, i, &messages[i]);
	free(messages);
	return err;
}

static int reserve_lines(struct writer *w, uint32_t count)
{
	if (array_reserve(&w->lines, &w->line_room, count, sizeof(*w->lines)) ||
	    array_reserve(&w->line_pointers, &w->line_pointer_room, count,
			  sizeof(*w->line_pointers)))
		return error_no_memory(w->e);
	return 0;
}

static int write_location(struct writer *w, size_t i)
{
	const struct profile_location *l = &w->p->locations[i];
	Profil__Pprof__Location message = PROFIL__PPROF__LOCATION__INIT;
	int err = reserve_lines(w, l->line_count);

	if (err)
		return err;
	for (uint32_t j = 0; j < l->line_count; j++) {
		const struct profile_line *line = &w->p->lines[l->first_line + j];

		profil__pprof__line__init(&w->lines[j]);
		w->lines[j].function_id = (uint64_t)line->function + 1;
		w->lines[j].line = line->line;
		w->line_pointers[j] = &w->lines[j];
	}
	message.id = i + 1;
	message.mapping_id = l->mapping == PROFILE_NONE ? 0 : w->mapping_ids[l->mapping];
	message.address = l->address;
	message.n_line = l->line_count;
	message.line = w->line_pointers;
	return emit_message(w, PPROF_LOCATION, &message.base);
}

static int write_function(struct writer *w, size_t i)
{
	const struct profile_function *f = &w->p->functions[i];
	Profil__Pprof__Function message = PROFIL__PPROF__FUNCTION__INIT;
	int err = string_number(w, f->name, &message.name);

	if (!err)
		err = string_number(w, f->system_name, &message.system_name);
	if (!err)
		err = string_number(w, f->file, &message.filename);
	message.id = i + 1;
	message.start_line = f->start_line;
	return err ? err : emit_message(w, PPROF_FUNCTION, &message.base);
}

static int write_comment(void *context, const char *text)
{
	struct writer *w = context;
	int64_t number;
	int err = string_number_copied(w, text, &number);

	return err ? err : emit_number(w, PPROF_COMMENT, number);
}

static int write_comments(struct writer *w)
{
	int err = 0;

	for (size_t i = 0; i < w->p->comment_count && !err; i++)
		err = write_comment(w, w->p->comments[i]);
	return err ? err : pprof_account_write(w->p, write_comment, w);
}

static int write_strings(struct writer *w)
{
	int err = 0;

	for (size_t i = 0; i < w->string_count && !err; i++)
		err = emit_bytes(w, PPROF_STRING_TABLE, w->strings[i], strlen(w->strings[i]));
	return err;
}

static int write_samples(struct writer *w)
{
	int err = 0;

	for (size_t i = 0; i < w->p->sample_count && !err; i++)
		err = write_sample(w, i);
	return err;
}

static int write_locations(struct writer *w)
{
	int err = 0;

	for (size_t i = 0; i < w->p->location_count && !err; i++)
		if (w->location_used[i])
			err = write_location(w, i);
	for (size_t i = 0; i < w->p->function_count && !err; i++)
		err = write_function(w, i);
	return err;
}

static int write_all(struct writer *w)
{
	int64_t empty;
	int err = string_number(w, "", &empty);

	if (!err)
		err = find_used(w);
	if (!err)
		err = write_header(w);
	if (!err)
		err = write_samples(w);
	if (!err)
		err = write_mappings(w);
	if (!err)
		err = write_locations(w);
	if (!err)
		err = write_comments(w);
	return err ? err : write_strings(w);
}

static void free_writer(struct writer *w)
{
	index_free(&w->string_index);
	free(w->strings);
	for (size_t i = 0; i < w->owned_count; i++)
		free(w->owned[i]);
	free(w->owned);
	free(w->mapping_ids);
	free(w->location_used);
	free(w->packed);
	free(w->location_ids);
	free(w->lines);
	free(w->line_pointers);
	free(w);
}

int pprof_write(const struct profile *p, FILE *out, struct error *e)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return error_no_memory(e);
	w->p = p;
	w->e = e;
	err = gzip_open(&w->gzip, out, e);
	if (!err)
		err = gzip_close(&w->gzip, write_all(w), e);
	free_writer(w);
	return err;
}
