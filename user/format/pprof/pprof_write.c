// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "format/gzip.h"
#include "format/message.h"
#include "format/pprof/pprof.h"
#include "format/wire.h"
#include "profile/build_id.h"
#include "util/array.h"
#include "util/order.h"
#include "util/radix_sort.h"
#include "util/table.h"

/* Bytes per call of zlib */
#define BUFFER_SIZE ((size_t)262144)

/* Largest size of a tag with a length or number, and of a Label. Bound: format. */
#define HEAD_MAX  (1 + WIRE_VARINT_MAX)
#define LABEL_MAX (5 * (size_t)HEAD_MAX)

/* A function with another source file: for lines of it that are in that file. */
struct variant {
	uint64_t function;
	const char *file;
};

/* Texts of an image's extras; NULL: none */
struct image_extras {
	const char *build_id;
	const char *relocation;
};

struct writer_tick {
	uint64_t units; /* since time_ns, of TIME_UNIT_NS */
	uint32_t sample;
};

struct writer_wait {
	uint64_t since, length; /* in units */
	uint32_t sample;
	uint32_t cpu; /* number + 1; 0: unknown */
};

struct writer {
	const struct profile *p;
	const struct format_options *options;
	struct error *e;
	int err; /* the first error; nothing is written after it */
	struct gzip_writer gzip;
	uint8_t *buffer; /* output before compression */
	size_t size, room;

	/* The string table so far. Its strings are the profile's, constant, or `owned`. */
	TABLE(const char *) strings;
	char **owned;
	size_t owned_count, owned_room;

	const char *thread_key, *default_type; /* of extras; NULL: none */
	struct image_extras *image_extras;     /* of each image */
	uint32_t *mapping_ids;		       /* of each mapping; 0: not written */
	bool *location_used, *function_used;
	TABLE(struct variant) variants; /* ids follow those of the functions */

	uint8_t *labels; /* encoded, of the last sample */
	size_t label_size, label_room;
	uint32_t label_number;

	struct writer_tick *ticks; /* in order of time */
	size_t tick_count;
	uint32_t *order;  /* samples, in the order in which they are written */
	uint32_t *places; /* the reverse */
	uint8_t *times;	  /* the numbers of a field of times */
	size_t times_size, times_room;

	Profil__Pprof__Line *lines;
	size_t line_room;
	Profil__Pprof__Line **line_pointers;
	size_t line_pointer_room;
};

static void fail(struct writer *w, int err)
{
	w->err = w->err ?: err;
}

/* Makes room for `need` elements. False: w->err is set. */
#define RESERVE(w, array, array_room, need)                                                  \
	((array_reserve(&(w)->array, &(w)->array_room, (need), sizeof(*(w)->array)) == 0) || \
	 (fail((w), error_no_memory((w)->e)), false))

/* --- Strings --- */

/* The text's number in the string table, which is written last. `text` must outlive the writer. */
static uint32_t string_number(struct writer *w, const char *text)
{
	uint32_t number;

	if (table_add(&w->strings, &text, TABLE_TEXT, &number))
		fail(w, error_no_memory(w->e));
	return number;
}

/* The same; copies the text. */
static uint32_t string_number_copied(struct writer *w, const char *text)
{
	char *copy;

	if (!RESERVE(w, owned, owned_room, w->owned_count + 1))
		return 0;
	copy = strdup(text);
	if (!copy) {
		fail(w, error_no_memory(w->e));
		return 0;
	}
	w->owned[w->owned_count++] = copy;
	return string_number(w, copy);
}

/* --- Fields --- */

/* Room for `size` bytes of output, to be followed by written(); NULL: w->err is set. */
static uint8_t *reserve(struct writer *w, size_t size)
{
	if (w->size + size > BUFFER_SIZE && !w->err) {
		fail(w, gzip_write(&w->gzip, w->buffer, w->size, w->e));
		w->size = 0;
	}
	return !w->err && RESERVE(w, buffer, room, w->size + size) ? w->buffer + w->size : NULL;
}

static void written(struct writer *w, const uint8_t *end)
{
	w->size = end - w->buffer;
}

static uint8_t *put_number(uint8_t *to, unsigned int field, uint64_t value)
{
	*to++ = field << 3 | WIRE_VARINT;
	return wire_put_varint(to, value);
}

static void emit_number(struct writer *w, enum pprof_field field, uint64_t value)
{
	uint8_t *to = value ? reserve(w, HEAD_MAX) : NULL;

	if (to)
		written(w, put_number(to, field, value));
}

static void emit_raw(struct writer *w, const void *bytes, size_t size)
{
	uint8_t *to = reserve(w, size);

	if (to && size)
		written(w, (uint8_t *)memcpy(to, bytes, size) + size);
}

static void emit_message(struct writer *w, enum pprof_field field, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *to = reserve(w, HEAD_MAX + size);

	if (!to)
		return;
	to = wire_put_head(to, field, size);
	written(w, to + protobuf_c_message_pack(message, to));
}

/* --- The header --- */

static void write_value_type(struct writer *w, enum pprof_field field, const char *type,
			     const char *unit)
{
	Profil__Pprof__ValueType message = PROFIL__PPROF__VALUE_TYPE__INIT;

	message.type = string_number(w, type);
	message.unit = string_number(w, unit);
	emit_message(w, field, &message.base);
}

static void write_period_of(struct writer *w, const char *type, const char *unit, uint64_t period)
{
	write_value_type(w, PPROF_PERIOD_TYPE, type, unit);
	emit_number(w, PPROF_PERIOD, period);
}

/*
 * Writes the file's one period; extra: the period that the file had, or NULL. Returns the value
 * type that it is of; SIZE_MAX: none.
 */
static size_t write_period(struct writer *w, const char *extra)
{
	const struct profile *p = w->p;
	uint64_t tick_ns = profile_tick_ns(p);

	if (extra) {
		const char *type = extra + strlen(extra) + 1, *unit = type + strlen(type) + 1;
		uint64_t ns = pprof_unit_ns(unit), period = strtoull(extra + 1, NULL, 10);
		bool is_clock = ns && (ns > 1 || period != 1);

		/* Otherwise the profile has a period in nanoseconds by now. */
		if (is_clock || !tick_ns) {
			write_period_of(w, type, unit, is_clock ? tick_ns / ns : period);
			return SIZE_MAX;
		}
	}
	if (tick_ns) {
		write_period_of(w, "cpu", "nanoseconds", tick_ns);
		return SIZE_MAX;
	}
	for (size_t i = 0; i < p->value_type_count; i++) {
		const struct profile_value_type *t = &p->value_types[i];

		if (!t->period)
			continue;
		write_period_of(w, t->type, t->unit, t->period);
		return i;
	}
	return SIZE_MAX;
}

/*
 * Readers show the last type by default. They should show the same type as profiltool, or the time
 * of these samples; for a file by another writer, the same as before unless the user chose one.
 * A recording names the CPU time, as delay is the last.
 */
static void write_default_type(struct writer *w)
{
	const struct profile *p = w->p;
	bool from_pprof = p->format && strcmp(p->format, PPROF_NAME) == 0;
	const char *type = w->default_type;
	size_t shown = profile_value(p, w->options->value);
	size_t last = p->value_type_count ? p->value_type_count - 1 : 0;

	if (w->options->value || p->names_default ||
	    (shown < last && shown != pprof_default_value(p)) ||
	    (!from_pprof && shown < last && !profile_is_clock_time(p, last)))
		type = p->value_types[shown].type;
	if (shown == PROFILE_SAMPLES && !w->options->value && last > PROFILE_CPU &&
	    profile_is_recording(p))
		type = p->value_types[PROFILE_CPU].type;
	if (type)
		emit_number(w, PPROF_DEFAULT_SAMPLE_TYPE, string_number(w, type));
}

static int write_comment(void *context, const char *text)
{
	struct writer *w = context;

	emit_number(w, PPROF_COMMENT, string_number_copied(w, text));
	return w->err;
}

static void write_header(struct writer *w)
{
	const struct profile *p = w->p;
	const char *period = NULL;
	size_t period_type;

	for (size_t i = 0; i < p->extra_count; i++) {
		const struct profile_extra *x = &p->extras[i];
		const char *text = x->bytes + 1;

		if (strcmp(x->format, PPROF_NAME) != 0)
			continue;
		if (x->image != PROFILE_NONE) {
			if (*x->bytes == EXTRA_BUILD_ID)
				w->image_extras[x->image].build_id = text;
			else if (*x->bytes == EXTRA_RELOCATION)
				w->image_extras[x->image].relocation = text;
			continue;
		}
		switch (*x->bytes) {
		case EXTRA_DEFAULT_TYPE:
			w->default_type = w->default_type ?: text;
			break;
		case EXTRA_THREAD_KEY:
			w->thread_key = text;
			break;
		case EXTRA_PERIOD:
			period = period ?: x->bytes;
			break;
		case EXTRA_DOC_URL:
			emit_number(w, PPROF_DOC_URL, string_number(w, text));
			break;
		case EXTRA_UNKNOWN:
			emit_raw(w, text, x->size - 1);
			break;
		}
	}
	for (size_t i = 0; i < p->value_type_count; i++)
		write_value_type(w, PPROF_SAMPLE_TYPE, p->value_types[i].type,
				 p->value_types[i].unit);
	period_type = write_period(w, period);
	for (size_t i = 0; i < p->comment_count; i++)
		emit_number(w, PPROF_COMMENT, string_number(w, p->comments[i]));
	if (!w->err && pprof_comment_write(p, period_type, write_comment, w))
		fail(w, error_no_memory(w->e));
	emit_number(w, PPROF_DROP_FRAMES, string_number(w, p->drop_frames));
	emit_number(w, PPROF_KEEP_FRAMES, string_number(w, p->keep_frames));
	emit_number(w, PPROF_TIME_NANOS, p->time_ns);
	emit_number(w, PPROF_DURATION_NANOS, p->duration_ns);
	write_default_type(w);
}

/* --- Samples: encoded here, since there may be millions --- */

/* Appends a Label to w->labels. */
static void add_label(struct writer *w, const struct profile_tag *t)
{
	uint64_t numbers[] = { string_number(w, t->key), t->text ? string_number(w, t->text) : 0,
			       t->text ? 0 : t->number, string_number(w, t->unit ?: "") };
	uint8_t label[LABEL_MAX], *end = label, *to;

	for (unsigned int i = 0; i < 4; i++)
		if (numbers[i])
			end = put_number(end, i + 1, numbers[i]);
	if (!RESERVE(w, labels, label_room, w->label_size + LABEL_MAX))
		return;
	to = wire_put_head(w->labels + w->label_size, 3, end - label);
	memcpy(to, label, end - label);
	w->label_size = to + (end - label) - w->labels;
}

static void set_labels(struct writer *w, const struct profile_labels *from)
{
	w->label_size = 0;
	if (from->pid)
		add_label(w, &(struct profile_tag){ .key = "pid", .number = from->pid });
	if (from->tid)
		add_label(w, &(struct profile_tag){ .key = "tid", .number = from->tid });
	if (from->generation)
		add_label(w, &(struct profile_tag){ .key = PPROF_GENERATION,
						    .number = from->generation });
	if (*from->comm)
		add_label(w, &(struct profile_tag){ .key = w->thread_key ?: PPROF_COMM,
						    .text = from->comm });
	if (from->kernel)
		add_label(w, &(struct profile_tag){ .key = "mode", .text = "kernel" });
	for (uint32_t i = 0; i < from->tag_count; i++)
		add_label(w, &from->tags[i]);
}

static size_t head_size(size_t size)
{
	return 1 + wire_varint_size(size);
}

static void write_sample(struct writer *w, size_t i)
{
	const struct profile *p = w->p;
	const struct profile_sample *sample = &p->samples[i];
	const uint32_t *frames = p->frames + sample->first_frame;
	const int64_t *values = p->values + i * p->value_type_count;
	size_t id_size = 0, value_size = 0, size;
	uint8_t *to;

	if (sample->labels != w->label_number)
		set_labels(w, &p->labels[w->label_number = sample->labels]);
	for (uint32_t j = 0; j < sample->depth; j++)
		id_size += wire_varint_size((uint64_t)frames[j] + 1);
	for (size_t j = 0; j < p->value_type_count; j++)
		value_size += wire_varint_size(values[j]);
	size = head_size(id_size) + id_size + head_size(value_size) + value_size + w->label_size;
	to = reserve(w, HEAD_MAX + size);
	if (!to)
		return;
	to = wire_put_head(to, PPROF_SAMPLE, size);
	to = wire_put_head(to, 1, id_size);
	for (uint32_t j = 0; j < sample->depth; j++)
		to = wire_put_varint(to, (uint64_t)frames[j] + 1);
	to = wire_put_head(to, 2, value_size);
	for (size_t j = 0; j < p->value_type_count; j++)
		to = wire_put_varint(to, values[j]);
	if (w->label_size)
		memcpy(to, w->labels, w->label_size);
	written(w, to + w->label_size);
}

/* --- Wall times --- */

/* The largest field of Wall but for its labels. Bound: format. */
#define WALL_FIELDS_MAX (6 * (1 + WIRE_VARINT_MAX))

static void write_walls(struct writer *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < p->wall_count && !w->err; i++) {
		const struct profile_wall *wall = &p->walls[i];
		uint8_t fields[WALL_FIELDS_MAX], *end = fields, *to;
		size_t size;

		set_labels(w, &p->labels[wall->labels]);
		w->label_number = wall->labels;
		end = put_number(end, 1, wall->threads);
		end = put_number(end, 2, wall->on_cpu_ns);
		end = put_number(end, 4, wall->runnable_ns);
		end = put_number(end, 5, wall->blocked_ns);
		end = put_number(end, 6, wall->unknown_ns);
		end = put_number(end, 7, wall->idle_ns);
		size = end - fields + w->label_size;
		to = reserve(w, 2 * WIRE_VARINT_MAX + size);
		if (!to)
			return;
		to = wire_put_head(to, PPROF_WALL, size);
		memcpy(to, fields, end - fields);
		to += end - fields;
		if (w->label_size)
			memcpy(to, w->labels, w->label_size);
		written(w, to + w->label_size);
	}
}

/* --- Times of ticks --- */

/*
 * Times are rounded down to this: enough to find a spike of some ms, and easy to compress.
 * Bound: pace.
 */
#define TIME_UNIT_NS 100000ULL

ORDER(earliest_first, struct writer_tick, LEAST(units) ?: LEAST(sample))

/* Sorts the ticks, and the samples by their first tick; those without any are the last. */
static void sort_ticks(struct writer *w)
{
	const struct profile *p = w->p;
	size_t count = w->options->no_times ? 0 : p->ticks.count, numbered = 0;
	bool sorted = true;

	w->ticks = malloc((count + 1) * sizeof(*w->ticks));
	w->order = malloc((p->sample_count + 1) * sizeof(*w->order));
	w->places = malloc((p->sample_count + 1) * sizeof(*w->places));
	if (!w->ticks || !w->order || !w->places) {
		fail(w, error_no_memory(w->e));
		return;
	}
	w->tick_count = count;
	for (size_t i = 0; i < count; i++) {
		uint64_t time_ns = p->ticks.times[i];

		w->ticks[i] = (struct writer_tick){
			.units = time_ns > p->time_ns ? (time_ns - p->time_ns) / TIME_UNIT_NS : 0,
			.sample = p->ticks.numbers[i],
		};
		sorted &= !i || earliest_first(&w->ticks[i - 1], &w->ticks[i]) <= 0;
	}
	if (!sorted)
		qsort(w->ticks, count, sizeof(*w->ticks), earliest_first);
	memset(w->places, 0xff, p->sample_count * sizeof(*w->places));
	for (size_t i = 0; i < count; i++) {
		uint32_t sample = w->ticks[i].sample;

		if (w->places[sample] != PROFILE_NONE)
			continue;
		w->places[sample] = numbered;
		w->order[numbered++] = sample;
	}
	for (size_t i = 0; i < p->sample_count; i++)
		if (w->places[i] == PROFILE_NONE) {
			w->places[i] = numbered;
			w->order[numbered++] = i;
		}
}

/* Appends a number to w->times. */
static void put_time(struct writer *w, uint64_t number)
{
	if (RESERVE(w, times, times_room, w->times_size + WIRE_VARINT_MAX))
		w->times_size = wire_put_varint(w->times + w->times_size, number) - w->times;
}

/* Writes a field of times: what precedes them, and w->times, which is empty then. */
static void emit_times(struct writer *w, enum pprof_field field, uint64_t unit_ns, uint64_t last,
		       uint64_t count)
{
	uint8_t *to = reserve(w, 5 * WIRE_VARINT_MAX);

	if (!to)
		return;
	to = wire_put_head(to, field,
			   wire_varint_size(unit_ns) + wire_varint_size(last) +
				   wire_varint_size(count) + w->times_size);
	to = wire_put_varint(to, unit_ns);
	to = wire_put_varint(to, last);
	written(w, wire_put_varint(to, count));
	emit_raw(w, w->times, w->times_size);
	w->times_size = 0;
}

static void write_ticks(struct writer *w)
{
	uint64_t before = 0;
	uint32_t seen = 0; /* samples that had ticks before */

	if (!w->tick_count)
		return;
	for (size_t i = 0; i < w->tick_count; i++) {
		put_time(w, w->ticks[i].units - before);
		before = w->ticks[i].units;
	}
	/* The number of a sample in the order of their first ticks; 0: the next one. */
	for (size_t i = 0; i < w->tick_count; i++) {
		uint32_t place = w->places[w->ticks[i].sample];

		put_time(w, place < seen ? place + 1 : 0);
		seen += place >= seen;
	}
	emit_times(w, PPROF_TICKS, TIME_UNIT_NS, before, w->tick_count);
}

/* --- Times of waits --- */

/*
 * As short as waits that matter alone; what is left over goes to the sample's next wait. Where each
 * wait is there, they are joined to chains, whose links are as short.
 * Bound: pace.
 */
#define WAIT_UNIT_NS	      10000ULL
#define COMPLETE_WAIT_UNIT_NS 1000ULL
#define CALL_UNIT_NS	      1ULL /* each counts, however short it is */

static uint64_t wait_sample(const void *wait)
{
	return ((const struct writer_wait *)wait)->sample;
}

static uint64_t wait_since(const void *wait)
{
	return ((const struct writer_wait *)wait)->since;
}

/* As write_ticks(). */
static void write_waits(struct writer *w, const struct wait_list *list, enum pprof_field field,
			uint64_t unit_ns)
{
	const struct profile *p = w->p;
	size_t room = w->options->no_times ? 0 : list->count, count = 0;
	struct writer_wait *waits = malloc((room + 1) * sizeof(*waits));
	uint64_t *left_ns = calloc(p->sample_count + 1, sizeof(*left_ns));
	uint64_t before = 0, last = 0;

	if (!waits || !left_ns)
		fail(w, error_no_memory(w->e));
	for (size_t i = 0; i < room && !w->err; i++) {
		const struct timed_wait *from = &list->waits[i];
		uint64_t ns = from->length_ns;
		uint64_t since_ns = from->since_ns > p->time_ns ? from->since_ns - p->time_ns : 0;

		add_u64(&ns, left_ns[from->sample]);
		left_ns[from->sample] = ns % unit_ns;
		if (ns < unit_ns)
			continue;
		waits[count] = (struct writer_wait){ since_ns / unit_ns, ns / unit_ns, from->sample,
						     from->cpu + 1 };
		last = MAX(last, waits[count].since + waits[count].length);
		count++;
	}
	if (w->err || !count)
		goto out;
	if (radix_sort(waits, count, sizeof(*waits), wait_sample) ||
	    radix_sort(waits, count, sizeof(*waits), wait_since)) {
		fail(w, error_no_memory(w->e));
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		put_time(w, waits[i].since - before);
		before = waits[i].since;
	}
	for (size_t i = 0; i < count; i++)
		put_time(w, waits[i].length);
	for (size_t i = 0; i < count; i++)
		put_time(w, w->places[waits[i].sample] + 1);
	for (size_t i = 0; i < count && list->complete; i++)
		put_time(w, waits[i].cpu);
	emit_times(w, field, unit_ns, last, count);
out:
	free(waits);
	free(left_ns);
}

/* --- Mappings, locations, functions --- */

/* Notes the mappings, locations and functions that samples refer to: the others are not written. */
static void find_used(struct writer *w)
{
	const struct profile *p = w->p;
	uint32_t id = 0;

	w->image_extras = calloc(p->image_count + 1, sizeof(*w->image_extras));
	w->mapping_ids = calloc(p->mapping_count + 1, sizeof(*w->mapping_ids));
	w->location_used = calloc(p->location_count + 1, sizeof(*w->location_used));
	w->function_used = calloc(p->function_count + 1, sizeof(*w->function_used));
	if (!w->image_extras || !w->mapping_ids || !w->location_used || !w->function_used)
		return fail(w, error_no_memory(w->e));
	for (size_t i = 0; i < p->sample_count; i++)
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			w->location_used[p->frames[p->samples[i].first_frame + j]] = true;
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		if (!w->location_used[i])
			continue;
		if (l->mapping != PROFILE_NONE)
			w->mapping_ids[l->mapping] = 1;
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_line *line = &p->lines[l->first_line + j];

			w->function_used[line->function] |= !line->file;
		}
	}
	/* The first mapping is the main program's, used or not. */
	for (size_t i = 0; i < p->mapping_count; i++)
		if (w->mapping_ids[i] || i == 0)
			w->mapping_ids[i] = ++id;
}

static void write_mapping(struct writer *w, size_t i, Profil__Pprof__Mapping *message)
{
	const struct profile_mapping *m = &w->p->mappings[i];
	const struct profile_image *image = &w->p->images[m->image];
	const struct image_extras *extras = &w->image_extras[m->image];
	char hex[BUILD_ID_TEXT_SIZE], *path;

	message->id = w->mapping_ids[i];
	message->memory_start = m->start;
	message->memory_limit = m->limit;
	message->file_offset = m->offset;
	if (m->linked) {
		if (!pprof_is_whole(m->start, m->limit, m->offset)) {
			message->linked_start = m->start;
			message->linked_limit = m->limit;
		}
		message->memory_start = 0;
		message->memory_limit = UINT64_MAX;
		message->file_offset = 0;
	}
	message->text_start = image->text_start;
	message->text_size = image->text_size;
	message->provider = image->provider;
	if (!extras->relocation) {
		message->filename = string_number(w, image->path);
	} else if (asprintf(&path, "%s%s", image->path, extras->relocation) < 0) {
		fail(w, error_no_memory(w->e));
	} else {
		message->filename = string_number_copied(w, path);
		free(path);
	}
	if (image->build_id_size) {
		build_id_format(image->build_id, image->build_id_size, hex);
		message->build_id = string_number_copied(w, hex);
	} else {
		message->build_id = string_number(w, extras->build_id ?: "");
		message->file_id = image->file_id;
	}
	emit_message(w, PPROF_MAPPING, &message->base);
}

static void write_mappings(struct writer *w)
{
	const struct profile *p = w->p;
	Profil__Pprof__Mapping *messages = calloc(p->mapping_count + 1, sizeof(*messages));

	if (!messages)
		return fail(w, error_no_memory(w->e));
	for (size_t i = 0; i < p->mapping_count; i++)
		profil__pprof__mapping__init(&messages[i]);
	/* A mapping's message says what names its locations have. */
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
			m->has_filenames |= line->file || *p->functions[line->function].file;
		}
	}
	for (size_t i = 0; i < p->mapping_count && !w->err; i++)
		if (w->mapping_ids[i])
			write_mapping(w, i, &messages[i]);
	free(messages);
}

/* In pprof, only functions have source files: a line in another file gets a variant. */
static uint64_t function_id(struct writer *w, const struct profile_line *line)
{
	const struct variant v = { line->function, line->file };
	uint32_t number;

	if (!line->file)
		return (uint64_t)line->function + 1;
	if (table_add(&w->variants, &v, sizeof(v), &number))
		fail(w, error_no_memory(w->e));
	return w->p->function_count + 1 + number;
}

static void write_function(struct writer *w, uint64_t id, const struct profile_function *f,
			   const char *file, uint32_t start_line)
{
	Profil__Pprof__Function message = PROFIL__PPROF__FUNCTION__INIT;

	message.id = id;
	message.name = string_number(w, strcmp(f->name, PPROF_NO_NAME) == 0 ? "" : f->name);
	message.system_name = string_number(w, f->system_name);
	message.filename = string_number(w, file);
	message.start_line = start_line;
	emit_message(w, PPROF_FUNCTION, &message.base);
}

/* Writes locations and functions. */
static void write_locations(struct writer *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < p->location_count && !w->err; i++) {
		const struct profile_location *l = &p->locations[i];
		Profil__Pprof__Location message = PROFIL__PPROF__LOCATION__INIT;

		if (!w->location_used[i])
			continue;
		if (!RESERVE(w, lines, line_room, l->line_count) ||
		    !RESERVE(w, line_pointers, line_pointer_room, l->line_count))
			return;
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_line *line = &p->lines[l->first_line + j];

			profil__pprof__line__init(&w->lines[j]);
			w->lines[j].function_id = function_id(w, line);
			w->lines[j].line = line->line;
			w->lines[j].column = line->column;
			w->line_pointers[j] = &w->lines[j];
		}
		message.id = i + 1;
		message.mapping_id = l->mapping == PROFILE_NONE ? 0 : w->mapping_ids[l->mapping];
		message.address = l->address;
		message.is_folded = l->folded;
		message.n_line = l->line_count;
		message.line = w->line_pointers;
		emit_message(w, PPROF_LOCATION, &message.base);
	}
	for (size_t i = 0; i < p->function_count && !w->err; i++)
		if (w->function_used[i])
			write_function(w, i + 1, &p->functions[i], p->functions[i].file,
				       p->functions[i].start_line);
	for (size_t i = 0; i < w->variants.count && !w->err; i++) {
		const struct variant *v = &w->variants.all[i];

		write_function(w, p->function_count + 1 + i, &p->functions[v->function], v->file,
			       0);
	}
}

/* --- The file --- */

int pprof_write(const struct profile *p, const struct format_options *options, FILE *out,
		struct error *e)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return error_no_memory(e);
	w->p = p;
	w->options = options;
	w->e = e;
	w->label_number = PROFILE_NONE;
	err = gzip_open(&w->gzip, out, e);
	if (!err) {
		string_number(w, "");
		find_used(w);
		if (!w->err)
			write_header(w);
		sort_ticks(w);
		for (size_t i = 0; i < p->sample_count && !w->err; i++)
			write_sample(w, w->order[i]);
		if (!w->err)
			write_ticks(w);
		if (!w->err)
			write_waits(w, &p->waits, PPROF_WAITS,
				    p->waits.complete ? COMPLETE_WAIT_UNIT_NS : WAIT_UNIT_NS);
		if (!w->err)
			write_waits(w, &p->calls, PPROF_CALLS, CALL_UNIT_NS);
		write_walls(w);
		if (!w->err)
			write_mappings(w);
		if (!w->err)
			write_locations(w);
		for (size_t i = 0; i < w->strings.count && !w->err; i++) {
			char *clean = options->utf8 ? message_text(w->strings.all[i]) : NULL;
			const char *text = clean ?: w->strings.all[i];
			uint8_t *to = reserve(w, HEAD_MAX);

			if (options->utf8 && !clean)
				fail(w, error_no_memory(e));
			if (to)
				written(w, wire_put_head(to, PPROF_STRING_TABLE, strlen(text)));
			emit_raw(w, text, strlen(text));
			free(clean);
		}
		if (!w->err)
			fail(w, gzip_write(&w->gzip, w->buffer, w->size, e));
		err = gzip_close(&w->gzip, w->err, e);
	}
	free(w->buffer);
	table_free(&w->strings);
	array_free_texts(w->owned, w->owned_count);
	free(w->image_extras);
	free(w->mapping_ids);
	free(w->location_used);
	free(w->function_used);
	table_free(&w->variants);
	free(w->labels);
	free(w->ticks);
	free(w->order);
	free(w->places);
	free(w->times);
	free(w->lines);
	free(w->line_pointers);
	free(w);
	return err;
}
