// SPDX-License-Identifier: GPL-2.0-only
#include "format/pprof/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/wire.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "util/array.h"
#include "util/table.h"

/*
 * Unpacked, a message may be many times as large. The largest valid ones are locations with inlined
 * functions.
 * Bound: files: bytes of a message; then: the file is refused.
 */
#define MESSAGE_MAX ((size_t)1 << 20)

/* Detection looks at so many fields, and accepts an invalid one after DETECT_ENOUGH valid ones. */
#define DETECT_FIELDS 16
#define DETECT_ENOUGH 4

/* --- Fields --- */

struct wire_field {
	uint32_t id;
	enum wire_type type;
	uint64_t number;     /* of WIRE_VARINT */
	struct wire content; /* of all others */
	const uint8_t *start;
};

/* Takes a field. Returns NULL, or the error; w->at is then somewhere after f->start. */
static const char *take_field(struct wire *w, struct wire_field *f)
{
	uint64_t tag, size = 0;

	f->start = w->at;
	if (!wire_take_varint(w, &tag))
		return "the field's tag is truncated";
	if (tag >> 3 == 0 || tag >> 32)
		return "invalid field number: corrupt, or not a pprof profile";
	f->id = tag >> 3;
	f->type = tag & 7;
	switch (f->type) {
	case WIRE_VARINT:
		return wire_take_varint(w, &f->number) ? NULL : "the number is truncated";
	case WIRE_BYTES:
		if (!wire_take_varint(w, &size))
			return "the length is truncated";
		break;
	case WIRE_FIXED64:
		size = 8;
		break;
	case WIRE_FIXED32:
		size = 4;
		break;
	default:
		return "unknown wire type: corrupt, or not a pprof profile";
	}
	f->content = (struct wire){ w->at, w->end };
	if (size > wire_left(w))
		return "the field is longer than the rest of the file: truncated or corrupt";
	w->at += size;
	f->content.end = w->at;
	return NULL;
}

/* True if the field has a valid wire type for this message; an unknown field may have any. */
static bool fits_wire_type(const ProtobufCMessageDescriptor *message, const struct wire_field *f)
{
	const ProtobufCFieldDescriptor *known =
		protobuf_c_message_descriptor_get_field(message, f->id);

	if (!known)
		return true;
	if (known->type == PROTOBUF_C_TYPE_MESSAGE || known->type == PROTOBUF_C_TYPE_STRING)
		return f->type == WIRE_BYTES;
	return f->type == WIRE_VARINT ||
	       (f->type == WIRE_BYTES && known->label == PROTOBUF_C_LABEL_REPEATED);
}

static const ProtobufCMessageDescriptor *const profile_message =
	&profil__pprof__profile__descriptor;

/* --- Detection --- */

/* True if a message is empty or begins with one of its fields: text hardly ever does. */
static bool message_fits(const ProtobufCMessageDescriptor *message, struct wire content)
{
	struct wire_field f = { 0 };
	bool whole = !wire_left(&content) || !take_field(&content, &f);

	if (!f.id)
		return whole;
	return (whole || f.content.end) && fits_wire_type(message, &f) &&
	       protobuf_c_message_descriptor_get_field(message, f.id);
}

static bool field_fits(const struct wire_field *f, bool first)
{
	const ProtobufCFieldDescriptor *known =
		protobuf_c_message_descriptor_get_field(profile_message, f->id);

	if (!known)
		return !first;
	if (!fits_wire_type(profile_message, f))
		return false;
	if (known->type == PROTOBUF_C_TYPE_MESSAGE)
		return message_fits(known->descriptor, f->content);
	return !first || f->id != PPROF_STRING_TABLE || !wire_left(&f->content);
}

/* True if the window has fields of a Profile. The last may be longer than the window. */
static bool pprof_detect(const struct input *in)
{
	struct wire w = { in->bytes, in->bytes + in->size };
	bool has_messages = false;

	for (int i = 0; i < DETECT_FIELDS && wire_left(&w); i++) {
		struct wire_field f = { 0 };
		const char *reason = take_field(&w, &f);
		bool cut = reason && (f.content.end || !wire_left(&w));

		if (cut && in->size >= INPUT_WINDOW)
			return i > 0 || field_fits(&f, true);
		if (reason || !field_fits(&f, i == 0))
			return i >= DETECT_ENOUGH;
		has_messages |= f.type == WIRE_BYTES;
	}
	return has_messages;
}

/* --- Value types --- */

uint64_t pprof_unit_ns(const char *unit)
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

/* True if value `time` of each sample is its value `count` multiplied by the period. */
static bool is_time_of(const struct profile *p, size_t time, size_t count)
{
	uint64_t ns = pprof_unit_ns(p->value_types[time].unit), tick_ns = profile_tick_ns(p);

	if (!ns || !tick_ns || strcmp(p->value_types[count].unit, "count") != 0)
		return false;
	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *values = p->values + i * p->value_type_count;

		if ((__int128)values[time] * ns != (__int128)values[count] * tick_ns)
			return false;
	}
	return true;
}

size_t pprof_default_value(const struct profile *p)
{
	size_t last = p->value_type_count - 1;
	bool counted = false;

	/* Only recordings of profiltool have these. */
	if (*p->event || p->totals.known)
		return profile_value(p, NULL);
	/* The last that is not 0 in all samples; the last, if all are. */
	for (size_t value = p->value_type_count; value-- > 0 && !counted;)
		for (size_t i = 0; i < p->sample_count && !counted; i++) {
			counted = p->values[i * p->value_type_count + value];
			last = counted ? value : last;
		}
	for (size_t i = 0; i < last; i++)
		if (is_time_of(p, last, i))
			return i;
	return last;
}

/* --- Errors, strings and ids --- */

struct text {
	const char *interned; /* NULL: not interned yet */
	struct wire bytes;
};

struct id {
	uint64_t id;
	uint32_t number;
};

/* Maps the ids of one kind of message, which may be any numbers, to numbers in the profile. */
struct ids {
	TABLE(struct id) table;
	size_t dense; /* the first ones have the ids 1 to `dense` and are not in the index */
};

/* Labels of samples, by the bytes that they have in the file: few differ. */
struct label_bytes {
	struct wire bytes;
	uint32_t number;
};

/*
 * Which of the locations or functions are needed, with options.stacks. Their ids are their places
 * in the file, from 1 on, as profild numbers them; else all of them are read.
 */
struct wanted {
	const uint8_t **at; /* where each begins */
	size_t count, room;
	bool *is; /* by id; NULL: all are */
	bool all; /* the file is numbered otherwise */
};

/* The part of the file with all fields of one kind. */
struct range {
	const uint8_t *start, *end;
};

struct reader {
	const struct input *in;
	struct profile *p;
	struct error *e;
	struct range ranges[PPROF_FIELD_UNKNOWN];
	uint8_t fitting[PPROF_FIELD_UNKNOWN]; /* of each: bits of the types it may have */
	struct text *strings;
	size_t string_count, string_room;
	struct ids mappings, functions, locations;
	uint64_t period;
	const char *period_type, *period_unit; /* NULL: not in the file */
	const char *default_type;	       /* NULL: not in the file */
	const char *thread_key;		       /* key of the label that names the thread */
	uint8_t *unknown;		       /* EXTRA_UNKNOWN */
	size_t unknown_size, unknown_room;
	struct range walls;		/* of PPROF_WALL */
	struct wire_field ticks;	/* PPROF_TICKS; id 0: not in the file */
	struct wire_field waits, calls; /* PPROF_WAITS, PPROF_CALLS; the same */
	uint32_t *samples;		/* the number of each in the profile, or PROFILE_NONE */
	size_t sample_count, sample_room;
	struct label_bytes *labels;
	size_t label_count, label_room;
	struct index label_index;
	/* With options.stacks: of each sample, and what is in the stacks that are kept. */
	struct stack_note {
		uint32_t labels;
		bool kept;
	} * stacks;
	size_t stack_count, stack_room;
	bool scans_stacks; /* read_sample() notes whose they are, and adds none */
	struct wanted wanted_locations, wanted_functions;
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

/* With options.salvage, notes a reference to something that is not in the file and returns true. */
static bool drops_reference(struct reader *r)
{
	return r->missing |= r->in->options.salvage;
}

/* Sets r->e to the error at this byte of the window. Returns -EINVAL. */
#define fail_at(r, at, ...) \
	input_error((r)->in, (r)->in->offset + ((at) - (r)->in->bytes), (r)->e, __VA_ARGS__)

/* Returns the number of the message with this id; PROFILE_NONE: the file has none. */
static uint32_t find_id(const struct ids *ids, uint64_t id)
{
	uint32_t entry;

	if (id - 1 < ids->dense)
		return ids->table.all[id - 1].number;
	entry = table_find(&ids->table, &id, sizeof(id));
	return entry == INDEX_NONE ? PROFILE_NONE : ids->table.all[entry].number;
}

/* As array_reserve(), within the profile's limit. */
static int reserve(struct reader *r, void *array, size_t *room, size_t need, size_t size)
{
	size_t before = *room;

	return array_reserve(array, room, need, size)
		       ?: profile_charge(r->p, (*room - before) * size);
}

static int add_id(struct reader *r, struct ids *ids, uint64_t id, uint32_t number)
{
	const struct id new = { id, number };
	size_t count = ids->table.count;
	uint32_t entry;

	if (reserve(r, &ids->table.all, &ids->table.room, count + 1, sizeof(new)))
		return -ENOMEM;
	if (ids->dense != count || id != count + 1)
		return table_add(&ids->table, &new, sizeof(id), &entry);
	ids->table.all[ids->table.count++] = new;
	ids->dense++;
	return 0;
}

/* Sets *text to the string with this number, interned. at: of the reference. */
static int get_string(struct reader *r, const uint8_t *at, uint64_t number, const char **text)
{
	struct text *entry;

	if (number >= r->string_count) {
		*text = "";
		if (drops_reference(r))
			return 0;
		return fail_at(r, at, "string number %" PRId64 ", but the file has %zu strings",
			       (int64_t)number, r->string_count);
	}
	entry = &r->strings[number];
	if (!entry->interned && profile_string_n(r->p, (const char *)entry->bytes.at,
						 wire_left(&entry->bytes), &entry->interned))
		return -ENOMEM;
	*text = entry->interned;
	return 0;
}

/* With options.salvage, turns the error into a warning: what is corrupt is dropped. */
static int salvage(struct reader *r, int err)
{
	if (err == -EINVAL && !r->in->options.salvage)
		error_hint(r->e, "--salvage reads what is not corrupt");
	if (err != -EINVAL || !r->in->options.salvage)
		return err;
	if (!r->dropped &&
	    profile_warn(r->p, "lost what is corrupt: %s", input_reason(r->in, r->e)))
		return -ENOMEM;
	r->dropped = r->p->salvaged = true;
	return 0;
}

static int check_id(struct reader *r, const uint8_t *at, const struct ids *ids, uint64_t id,
		    const char *what)
{
	if (id == 0)
		return fail_at(r, at, "the %s has the id 0", what);
	if (find_id(ids, id) != PROFILE_NONE)
		return fail_at(r, at, "two %ss have the id %" PRIu64, what, id);
	return 0;
}

static bool has_string(const struct reader *r, const char *text)
{
	size_t size = strlen(text);

	for (size_t i = 0; i < r->string_count; i++)
		if (wire_left(&r->strings[i].bytes) == size &&
		    memcmp(r->strings[i].bytes.at, text, size) == 0)
			return true;
	return false;
}

/* Adds an extra whose bytes the format gives. */
__attribute__((format(printf, 3, 4))) static int keep_extra(struct reader *r, uint32_t image,
							    const char *format, ...)
{
	va_list arguments;
	char *bytes;
	int size, err;

	va_start(arguments, format);
	size = vasprintf(&bytes, format, arguments);
	va_end(arguments);
	if (size < 0)
		return -ENOMEM;
	err = profile_add_extra(r->p, PPROF_NAME, image, bytes, size);
	free(bytes);
	return err;
}

/* --- The fields of Profile --- */

/* Times are signed in the file; negative ones are invalid: 0. */
static uint64_t not_negative(uint64_t number)
{
	return number > INT64_MAX ? 0 : number;
}

/* The locations or functions of which only some are read; NULL: other fields. */
static struct wanted *wanted_of(struct reader *r, uint32_t id)
{
	return id == PPROF_LOCATION   ? &r->wanted_locations
	       : id == PPROF_FUNCTION ? &r->wanted_functions
				      : NULL;
}

/* Of a field that is not pprof's. */
static int note_other_field(struct reader *r, const struct wire_field *f, const uint8_t *end)
{
	struct wire_field *times = f->id == PPROF_TICKS	  ? &r->ticks
				   : f->id == PPROF_WAITS ? &r->waits
				   : f->id == PPROF_CALLS ? &r->calls
							  : NULL;
	size_t size = end - f->start;

	if (times && f->type == WIRE_BYTES) {
		if (times->id)
			return fail_at(r, f->start, "the times of %s are there twice",
				       times == &r->ticks   ? "ticks"
				       : times == &r->waits ? "waits"
							    : "calls");
		*times = *f;
		return 0;
	}
	if (array_reserve(&r->unknown, &r->unknown_room, r->unknown_size + 1 + size, 1))
		return -ENOMEM;
	if (r->unknown_size == 0)
		r->unknown[r->unknown_size++] = EXTRA_UNKNOWN;
	memcpy(r->unknown + r->unknown_size, f->start, size);
	r->unknown_size += size;
	return 0;
}

/* Reads strings and numbers; notes the range of fields that are read later. */
static int note_field(struct reader *r, const struct wire_field *f, const uint8_t *end)
{
	struct wanted *w = r->in->options.stacks ? wanted_of(r, f->id) : NULL;
	struct range *range;

	if (f->id >= PPROF_FIELD_UNKNOWN && f->id != PPROF_WALL)
		return note_other_field(r, f, end);
	if (w) {
		if (w->count == w->room &&
		    reserve(r, &w->at, &w->room, w->count + 1, sizeof(*w->at)))
			return -ENOMEM;
		w->at[w->count++] = f->start;
	}
	range = f->id == PPROF_WALL ? &r->walls : &r->ranges[f->id];
	range->start = range->start ?: f->start;
	range->end = end;
	switch (f->id) {
	case PPROF_STRING_TABLE:
		if (r->string_count == 0 && wire_left(&f->content))
			return fail_at(r, f->start, "the first string is not empty");
		if (r->string_count == r->string_room &&
		    reserve(r, &r->strings, &r->string_room, r->string_count + 1,
			    sizeof(*r->strings)))
			return -ENOMEM;
		r->strings[r->string_count++].bytes = f->content;
		return 0;
	case PPROF_TIME_NANOS:
		if (r->p->time_ns)
			return fail_at(r, f->start,
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

/* As fits_wire_type(), which is asked of every field of the file. */
static bool fits(const struct reader *r, const struct wire_field *f)
{
	return f->id < PPROF_FIELD_UNKNOWN ? r->fitting[f->id] >> f->type & 1
					   : fits_wire_type(profile_message, f);
}

/* The first pass over the file. */
static int scan_fields(struct reader *r)
{
	struct wire w = { r->in->bytes, r->in->bytes + r->in->size };
	int err = 0;

	for (uint32_t id = 0; id < PPROF_FIELD_UNKNOWN; id++)
		for (int type = WIRE_VARINT; type <= WIRE_FIXED32; type++) {
			const struct wire_field f = { .id = id, .type = type };

			r->fitting[id] |= fits_wire_type(profile_message, &f) << type;
		}
	while (wire_left(&w) && !err) {
		struct wire_field f;
		const char *reason = take_field(&w, &f);

		if (reason)
			return salvage(r, fail_at(r, f.start, "%s", reason));
		if (!fits(r, &f))
			err = fail_at(r, f.start, "the field has the wrong wire type");
		err = salvage(r, err ?: note_field(r, &f, w.at));
	}
	return err;
}

/* Adds a message, whose field begins at `at`. Returns 0 or -errno with r->e set. */
typedef int message_adder(struct reader *r, const uint8_t *at, const void *message);

/* Unpacks the field's message and has `add` add it. */
static int read_message(struct reader *r, const struct wire_field *f,
			const ProtobufCMessageDescriptor *descriptor, message_adder *add)
{
	size_t size = wire_left(&f->content);
	ProtobufCMessage *message;
	int err;

	if (size > MESSAGE_MAX)
		return fail_at(r, f->start, "the %s has more than %zu bytes: corrupt",
			       descriptor->short_name, MESSAGE_MAX);
	message = protobuf_c_message_unpack(descriptor, NULL, size, f->content.at);
	if (!message)
		return fail_at(r, f->start, "the %s is corrupt", descriptor->short_name);
	r->unknown_inside |= message->n_unknown_fields;
	err = add(r, f->start, message);
	protobuf_c_message_free_unpacked(message, NULL);
	return err;
}

#define TAG(id, type) ((id) << 3 | (type))

/* Fields of Sample, Location, Line, Function, Label and Wall */
enum {
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LOCATION_IS_FOLDED = 5,
	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	LINE_COLUMN = 3,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	LABEL_NUM_UNIT = 4,
	WALL_THREADS = 1,
	WALL_ON_CPU = 2,
	WALL_LABEL = 3,
	WALL_RUNNABLE = 4,
	WALL_BLOCKED = 5,
	WALL_UNKNOWN = 6,
	WALL_IDLE = 7
};

/* The field of a message that is not a number, but a message that `take` is to read. */
struct nested {
	uint32_t id; /* 0: there is none */
	int (*take)(struct reader *r, const struct wire_field *f, void *context);
	void *context;
};

/*
 * Sets numbers[ID] for the fields 1 to `count` of a message that has nothing but numbers, and
 * perhaps one nested message, in an array of count + 1. Unpacking a message for each would take
 * most of the time of those that a file may have millions of: they are decoded by this.
 */
static int take_numbers(struct reader *r, struct wire w, const char *what, uint64_t *numbers,
			uint32_t count, struct nested nested)
{
	int err = 0;

	while (wire_left(&w) && !err) {
		struct wire_field f;
		const char *reason = take_field(&w, &f);

		if (reason)
			return fail_at(r, f.start, "the %s is corrupt: %s", what, reason);
		if (f.id > count)
			r->unknown_inside = true;
		else if (f.type != (f.id == nested.id ? WIRE_BYTES : WIRE_VARINT))
			return fail_at(r, f.start, "the %s is corrupt", what);
		else if (f.id == nested.id)
			err = nested.take(r, &f, nested.context);
		else
			numbers[f.id] = f.number;
	}
	return err;
}

/*
 * Takes the next number of a repeated field, which may be packed; *at: where it is. False: that was
 * the last; or, with *at before f->content.end, the field is truncated.
 */
static bool take_packed(struct wire_field *f, const uint8_t **at, uint64_t *number)
{
	if (f->type == WIRE_VARINT) {
		*at = f->start;
		*number = f->number;
		f->type = WIRE_BYTES;
		f->content = (struct wire){ 0 };
		return true;
	}
	*at = f->content.at;
	return wire_left(&f->content) && wire_take_varint(&f->content, number);
}

/* How the fields of one kind are read: as a message, or by themselves. */
struct field_kind {
	enum pprof_field id;
	const ProtobufCMessageDescriptor *descriptor;
	message_adder *add;
	int (*read)(struct reader *r, const struct wire_field *f); /* NULL: a message */
};

static int read_field(struct reader *r, const struct field_kind *kind, const struct wire_field *f)
{
	int err = kind->read ? kind->read(r, f) : read_message(r, f, kind->descriptor, kind->add);

	return salvage(r, err);
}

static void take_place(const struct reader *r, const struct wanted *w, size_t id,
		       struct wire_field *f)
{
	struct wire at = { w->at[id - 1], r->in->bytes + r->in->size };

	take_field(&at, f);
}

/* Whether what is needed is where its id says. */
static bool is_in_place(const struct reader *r, const struct wanted *w)
{
	for (size_t id = 1; id <= w->count; id++) {
		struct wire_field f, first;

		if (!w->is[id])
			continue;
		take_place(r, w, id, &f);
		if (!wire_left(&f.content) || take_field(&f.content, &first) || first.id != 1 ||
		    first.type != WIRE_VARINT || first.number != id)
			return false;
	}
	return true;
}

static int read_fields(struct reader *r, const struct field_kind *kind)
{
	const struct range *range = kind->id == PPROF_WALL ? &r->walls : &r->ranges[kind->id];
	struct wire w = { range->start, range->end };
	struct wanted *wanted = wanted_of(r, kind->id);
	struct wire_field f;
	int err = 0;

	if (wanted && wanted->is)
		wanted->all = wanted->all || !is_in_place(r, wanted);
	if (wanted && (!wanted->is || wanted->all))
		wanted = NULL; /* all are read */
	for (size_t id = 1; wanted && id <= wanted->count && !err; id++) {
		if (!wanted->is[id])
			continue;
		take_place(r, wanted, id, &f);
		err = read_field(r, kind, &f);
	}
	while (!wanted && wire_left(&w) && !err) {
		take_field(&w, &f);
		if (f.id == kind->id && fits(r, &f))
			err = read_field(r, kind, &f);
	}
	return err;
}

static int get_value_type(struct reader *r, const uint8_t *at, const Profil__Pprof__ValueType *m,
			  const char **type, const char **unit)
{
	return get_string(r, at, m->type, type) ?: get_string(r, at, m->unit, unit);
}

static int add_sample_type(struct reader *r, const uint8_t *at, const void *message)
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
	return profile_add_value_type(r->p, type, unit);
}

static int add_period_type(struct reader *r, const uint8_t *at, const void *message)
{
	return get_value_type(r, at, message, &r->period_type, &r->period_unit);
}

/*
 * Decides what the period is of: CPU time, some other time, a value type, or neither. One
 * nanosecond is the unit of a value that was measured, not the period of a clock.
 */
static int settle_period(struct reader *r)
{
	const char *type = r->period_type ?: "", *unit = r->period_unit ?: "";
	uint64_t ns = pprof_unit_ns(unit), tick_ns;

	if (!r->period && !r->period_type)
		return 0;
	if (__builtin_mul_overflow(r->period, ns, &tick_ns))
		tick_ns = UINT64_MAX;
	if (tick_ns > 1)
		profile_set_tick_ns(r->p, tick_ns);
	if (tick_ns > 1 && ns == 1 && strcmp(type, "cpu") == 0)
		return 0;
	for (size_t i = 0; !ns && r->period && i < r->p->value_type_count; i++) {
		struct profile_value_type *t = &r->p->value_types[i];

		if (strcmp(t->type, type) != 0 || strcmp(t->unit, unit) != 0)
			continue;
		t->period = r->period;
		return 0;
	}
	return keep_extra(r, PROFILE_NONE, "%c%" PRIu64 "%c%s%c%s", EXTRA_PERIOD, r->period, 0,
			  type, 0, unit);
}

static int read_text(struct reader *r, const struct wire_field *f)
{
	struct profile *p = r->p;
	const char *text, **member;
	int err = get_string(r, f->start, f->number, &text);

	if (err || !*text)
		return err;
	switch (f->id) {
	case PPROF_DEFAULT_SAMPLE_TYPE:
		r->default_type = text;
		return 0;
	case PPROF_DOC_URL:
		return keep_extra(r, PROFILE_NONE, "%c%s", EXTRA_DOC_URL, text);
	default:
		member = f->id == PPROF_DROP_FRAMES ? &p->drop_frames : &p->keep_frames;
		return profile_string(p, text, member);
	}
}

static int read_comment(struct reader *r, const struct wire_field *f)
{
	struct wire_field field = *f;
	const uint8_t *at;
	uint64_t number;
	const char *text;
	bool taken;

	while (take_packed(&field, &at, &number)) {
		int err = get_string(r, at, number, &text);

		err = err ?: pprof_comment_read(r->p, text, &taken);
		err = err ?: taken ? 0 : profile_add_comment(r->p, text);
		if (err)
			return err;
	}
	return at == field.content.end ? 0 : fail_at(r, at, "the comments are corrupt");
}

/* --- Mappings, functions, locations --- */

static int add_mapping(struct reader *r, const uint8_t *at, const void *message)
{
	const Profil__Pprof__Mapping *m = message;
	struct profile_image key = { .provider = m->provider, .file_id = m->file_id };
	const char *path, *hex, *symbol;
	struct profile_mapping *mapping;
	uint32_t image, number;
	int err = check_id(r, at, &r->mappings, m->id, "mapping");

	err = err ?: get_string(r, at, m->filename, &path);
	err = err ?: get_string(r, at, m->build_id, &hex);
	if (err)
		return err;
	symbol = image_is_kernel(path) ? path + strlen(IMAGE_KERNEL) : "";
	key.path = *symbol ? IMAGE_KERNEL : path;
	key.build_id_size = build_id_parse(hex, strlen(hex), key.build_id);
	if (profile_add_image_like(r->p, &key, &image))
		return -ENOMEM;
	if (*symbol)
		err = keep_extra(r, image, "%c%s", EXTRA_RELOCATION, symbol);
	if (*hex && !key.build_id_size && !err)
		err = keep_extra(r, image, "%c%s", EXTRA_BUILD_ID, hex);
	err = err
		      ?: profile_add_mapping(r->p, m->memory_start, m->memory_limit, m->file_offset,
					     image, &number);
	if (err)
		return err;
	mapping = &r->p->mappings[number];
	mapping->linked = pprof_is_whole(mapping->start, mapping->limit, mapping->offset) &&
			  *path && !image_is_bracketed(path);
	if (mapping->linked && m->linked_start < m->linked_limit) {
		mapping->start = m->linked_start;
		mapping->limit = m->linked_limit;
	}
	if (m->text_size) {
		r->p->images[image].text_start = m->text_start;
		r->p->images[image].text_size = m->text_size;
	}
	return add_id(r, &r->mappings, m->id, number);
}

/* Line numbers of more than 32 bits are invalid: 0. */
static uint32_t line_number(int64_t line)
{
	return line < 0 || line > UINT32_MAX ? 0 : line;
}

static int read_function(struct reader *r, const struct wire_field *f)
{
	uint64_t m[FUNCTION_START_LINE + 1] = { 0 };
	struct profile_function function;
	uint32_t number;
	int err = take_numbers(r, f->content, "function", m, FUNCTION_START_LINE,
			       (struct nested){ 0 });

	err = err ?: check_id(r, f->start, &r->functions, m[FUNCTION_ID], "function");
	err = err ?: get_string(r, f->start, m[FUNCTION_NAME], &function.name);
	err = err ?: get_string(r, f->start, m[FUNCTION_SYSTEM_NAME], &function.system_name);
	err = err ?: get_string(r, f->start, m[FUNCTION_FILENAME], &function.file);
	if (err)
		return err;
	function.start_line = line_number(m[FUNCTION_START_LINE]);
	if (!*function.name)
		function.name = *function.system_name ? function.system_name : PPROF_NO_NAME;
	return profile_add_function(r->p, &function, &number)
		       ?: add_id(r, &r->functions, m[FUNCTION_ID], number);
}

/* Adds a line to r->lines; context: how many it has. */
static int add_line(struct reader *r, const struct wire_field *f, void *context)
{
	uint32_t *count = context;
	uint64_t m[LINE_COLUMN + 1] = { 0 };
	uint32_t function;
	int err = take_numbers(r, f->content, "line", m, LINE_COLUMN, (struct nested){ 0 });

	if (err)
		return err;
	function = find_id(&r->functions, m[LINE_FUNCTION_ID]);
	if (function == PROFILE_NONE)
		return drops_reference(r) ? 0
					  : fail_at(r, f->start,
						    "the location has function %" PRIu64
						    ", which is not in the file",
						    m[LINE_FUNCTION_ID]);
	return array_add(r->lines, *count, r->line_room,
			 (struct profile_line){
				 .function = function,
				 .line = line_number(m[LINE_LINE]),
				 .column = line_number(m[LINE_COLUMN]),
			 });
}

static int read_location(struct reader *r, const struct wire_field *f)
{
	uint64_t m[LOCATION_IS_FOLDED + 1] = { 0 };
	uint32_t mapping, count = 0, number;
	int err;

	if (wire_left(&f->content) > MESSAGE_MAX)
		return fail_at(r, f->start, "the location has more than %zu bytes: corrupt",
			       MESSAGE_MAX);
	err = take_numbers(r, f->content, "location", m, LOCATION_IS_FOLDED,
			   (struct nested){ LOCATION_LINE, add_line, &count });
	err = err ?: check_id(r, f->start, &r->locations, m[LOCATION_ID], "location");
	if (err)
		return err;
	mapping = find_id(&r->mappings, m[LOCATION_MAPPING_ID]);
	/* Other readers ignore a reference to a mapping that is not in the file. */
	if (mapping == PROFILE_NONE && m[LOCATION_MAPPING_ID] &&
	    profile_warn(r->p, "locations are in mappings that are not in the file"))
		return -ENOMEM;
	if (count)
		err = profile_add_line_location(r->p, m[LOCATION_ADDRESS], mapping, r->lines, count,
						&number);
	else
		err = profile_add_location(r->p, m[LOCATION_ADDRESS], mapping, &number);
	if (err)
		return err;
	r->p->locations[number].folded |= m[LOCATION_IS_FOLDED] > 0;
	return add_id(r, &r->locations, m[LOCATION_ID], number);
}

/* --- Samples --- */

/* Some writers give pid and tid this unit. */
#define ID_UNIT "id"

static bool is_id(const struct profile_tag *t)
{
	return !t->text && t->number > 0 && t->number <= UINT32_MAX &&
	       (!*t->unit || strcmp(t->unit, ID_UNIT) == 0);
}

/* Sets the member of `labels` for this tag. False: it has none, or it is set already. */
static bool set_label_member(const struct reader *r, struct profile_labels *labels,
			     const struct profile_tag *t)
{
	if (is_id(t) && !labels->pid && strcmp(t->key, "pid") == 0)
		labels->pid = t->number;
	else if (is_id(t) && !labels->tid && strcmp(t->key, "tid") == 0)
		labels->tid = t->number;
	else if (is_id(t) && !labels->generation && strcmp(t->key, PPROF_GENERATION) == 0)
		labels->generation = t->number;
	else if (t->text && !*labels->comm && strcmp(t->key, r->thread_key) == 0)
		labels->comm = t->text;
	else if (t->text && !labels->kernel && strcmp(t->key, "mode") == 0 &&
		 strcmp(t->text, "kernel") == 0)
		labels->kernel = true;
	else
		return false;
	return true;
}

/* context: the struct profile_labels that it is of, unless it becomes one of r->tags. */
static int add_label(struct reader *r, const struct wire_field *f, void *context)
{
	uint64_t m[LABEL_NUM_UNIT + 1] = { 0 }, text, unit;
	struct profile_tag tag = { 0 };
	int err = take_numbers(r, f->content, "label", m, LABEL_NUM_UNIT, (struct nested){ 0 });

	if (err)
		return err;
	text = m[LABEL_STR];
	tag.number = m[LABEL_NUM];
	unit = m[LABEL_NUM_UNIT];
	/* A label with neither text nor number is dropped, as by other readers. */
	if (!text && !tag.number && !unit)
		return 0;
	err = get_string(r, f->start, m[LABEL_KEY], &tag.key);
	if (!err && text)
		err = get_string(r, f->start, text, &tag.text);
	err = err ?: get_string(r, f->start, unit, &tag.unit);
	if (err || set_label_member(r, context, &tag))
		return err;
	return array_add(r->tags, r->tag_count, r->tag_room, tag);
}

EQUAL(same_bytes, struct label_bytes, struct wire,
      wire_left(&a->bytes) == wire_left(b) && memcmp(a->bytes.at, b->at, wire_left(b)) == 0)

/* Adds a Sample; all messages that it refers to have been read. */
static int read_sample(struct reader *r, const struct wire_field *f)
{
	struct profile_labels labels = { .comm = "" };
	size_t types = r->p->value_type_count;
	struct wire w = f->content, tail = { 0 }; /* tail: from the first label on */
	uint32_t number, known = INDEX_NONE;
	size_t label_size = 0; /* bytes of labels in it */
	bool without = r->in->options.no_code || r->scans_stacks ||
		       (r->sample_count < r->stack_count && !r->stacks[r->sample_count].kept);
	size_t frame_bytes = 0;
	uint64_t hash = 0;
	int err = 0;

	if (array_add(r->samples, r->sample_count, r->sample_room, PROFILE_NONE))
		return -ENOMEM;
	if (types == 0)
		return fail_at(r, f->start, "the file has samples but no sample_type");
	if (array_reserve(&r->values, &r->value_room, types, sizeof(*r->values)))
		return -ENOMEM;
	r->frame_count = r->value_count = r->tag_count = 0;
	while (wire_left(&w) && !err) {
		struct wire_field field;
		const char *reason = take_field(&w, &field);
		const uint8_t *at = NULL;
		uint64_t id;
		size_t most = 1;

		if (reason)
			return fail_at(r, field.start, "the sample is corrupt: %s", reason);
		if (field.id == SAMPLE_LOCATION_ID && without) {
			frame_bytes += w.at - field.start;
			continue;
		}
		switch (TAG(field.id, field.type)) {
		case TAG(SAMPLE_LOCATION_ID, WIRE_BYTES):
			most = wire_left(&field.content);
			/* fall through */
		case TAG(SAMPLE_LOCATION_ID, WIRE_VARINT):
			if (array_reserve(&r->frames, &r->frame_room, r->frame_count + most,
					  sizeof(*r->frames)))
				return -ENOMEM;
			while (!err && take_packed(&field, &at, &id)) {
				uint32_t location = find_id(&r->locations, id);

				if (location != PROFILE_NONE)
					r->frames[r->frame_count++] = location;
				else if (!drops_reference(r))
					err = fail_at(r, at,
						      "the sample has location %" PRIu64
						      ", which is not in the file",
						      id);
			}
			break;
		case TAG(SAMPLE_VALUE, WIRE_BYTES):
		case TAG(SAMPLE_VALUE, WIRE_VARINT):
			/* A count that differs is found below. */
			for (; take_packed(&field, &at, &id); r->value_count++)
				if (r->value_count < types)
					r->values[r->value_count] = id;
			break;
		case TAG(SAMPLE_LABEL, WIRE_BYTES):
			if (!tail.at) {
				tail = (struct wire){ field.start, w.end };
				hash = hash_bytes(tail.at, wire_left(&tail), 0);
				known = index_find(&r->label_index, hash, same_bytes, r->labels,
						   &tail);
			}
			if (known != INDEX_NONE) {
				w.at = w.end;
				break;
			}
			label_size += w.at - field.start;
			err = add_label(r, &field, &labels);
			break;
		default:
			if (field.id <= SAMPLE_LABEL)
				return fail_at(r, field.start, "the sample is corrupt");
			r->unknown_inside = true;
		}
		if (!err && at && at != field.content.end)
			err = fail_at(r, at, "the sample is corrupt: a number is truncated");
	}
	if (err)
		return err;
	if (r->value_count != types)
		return fail_at(r, f->start,
			       "the sample has %zu values, but the file has %zu sample types",
			       r->value_count, types);
	if (known != INDEX_NONE) {
		number = r->labels[known].number;
	} else {
		labels.tags = r->tags;
		labels.tag_count = r->tag_count;
		if (profile_add_labels(r->p, &labels, &number))
			return -ENOMEM;
	}
	/* Noted if nothing else is in the tail, which is skipped when it comes again. */
	if (label_size && label_size == wire_left(&tail) &&
	    array_add_indexed(r->labels, r->label_count, r->label_room, &r->label_index, hash,
			      (struct label_bytes){ tail, number }))
		return -ENOMEM;
	if (r->scans_stacks) {
		const struct stack_choice *choice = r->in->options.stacks;

		if (array_reserve(&r->stacks, &r->stack_room, r->sample_count, sizeof(*r->stacks)))
			return -ENOMEM;
		r->stacks[r->sample_count - 1] = (struct stack_note){ number, frame_bytes > 0 };
		r->stack_count = r->sample_count;
		/* Each frame takes two or three bytes. */
		return frame_bytes ? choice->note(choice->context, &r->p->labels[number], number,
						  frame_bytes / 2)
				   : 0;
	}
	if (profile_sample(r->p, r->frames, r->frame_count, number, &number))
		return -ENOMEM;
	profile_add_values(r->p, number, r->values);
	r->samples[r->sample_count - 1] = number;
	return 0;
}

/*
 * Notes that what has an id in this field of a message is wanted; what is corrupt is found when it
 * is read. With `fresh`, adds to it how many of them are not wanted so far, instead.
 */
static void want(struct wanted *w, struct wire message, uint32_t field, size_t *fresh)
{
	struct wire_field f;
	const uint8_t *at;
	uint64_t id;

	while (wire_left(&message) && !take_field(&message, &f)) {
		if (f.id != field || (f.type != WIRE_VARINT && f.type != WIRE_BYTES))
			continue;
		while (take_packed(&f, &at, &id))
			if (fresh)
				*fresh += id <= w->count && !w->is[id];
			else if (id > w->count)
				w->all = true;
			else
				w->is[id] = true;
	}
}

/* A sample of those that were noted: asks whether to keep its stack. */
static int choose_stack(struct reader *r, const struct wire_field *f)
{
	const struct stack_choice *choice = r->in->options.stacks;
	struct stack_note *note = &r->stacks[r->sample_count];
	size_t fresh = 0;

	if (r->sample_count++ >= r->stack_count || !note->kept)
		return 0;
	want(&r->wanted_locations, f->content, SAMPLE_LOCATION_ID, &fresh);
	note->kept = choice->keep(choice->context, note->labels, fresh);
	if (note->kept)
		want(&r->wanted_locations, f->content, SAMPLE_LOCATION_ID, NULL);
	return 0;
}

/* The functions of a location. */
static int want_functions(struct reader *r, const struct wire_field *f)
{
	struct wire message = f->content;
	struct wire_field line;

	while (wire_left(&message) && !take_field(&message, &line))
		if (line.id == LOCATION_LINE && line.type == WIRE_BYTES)
			want(&r->wanted_functions, line.content, LINE_FUNCTION_ID, NULL);
	return 0;
}

/* Finds out which stacks are read, and which locations and functions are in these. */
static int choose_stacks(struct reader *r)
{
	static const struct field_kind note = { PPROF_SAMPLE, .read = read_sample },
				       choose = { PPROF_SAMPLE, .read = choose_stack },
				       want_all = { PPROF_LOCATION, .read = want_functions };
	int err;

	r->wanted_locations.is = calloc(r->wanted_locations.count + 1, 1);
	r->wanted_functions.is = calloc(r->wanted_functions.count + 1, 1);
	if (!r->wanted_locations.is || !r->wanted_functions.is)
		return -ENOMEM;
	r->scans_stacks = true;
	err = read_fields(r, &note);
	r->scans_stacks = false;
	r->sample_count = 0;
	err = err ?: read_fields(r, &choose);
	r->sample_count = 0;
	return err ?: read_fields(r, &want_all);
}

/* Adds a Wall. */
static int read_wall(struct reader *r, const struct wire_field *f)
{
	struct profile_labels labels = { .comm = "" };
	uint64_t m[WALL_IDLE + 1] = { 0 };
	struct profile_wall wall;
	int err;

	r->tag_count = 0;
	err = take_numbers(r, f->content, "wall time", m, WALL_IDLE,
			   (struct nested){ WALL_LABEL, add_label, &labels });
	if (err)
		return err;
	wall = (struct profile_wall){
		.threads = m[WALL_THREADS],
		.wall_ns = m[WALL_ON_CPU],
		.on_cpu_ns = m[WALL_ON_CPU],
		.runnable_ns = m[WALL_RUNNABLE],
		.blocked_ns = m[WALL_BLOCKED],
		.idle_ns = m[WALL_IDLE],
		.unknown_ns = m[WALL_UNKNOWN],
	};
	if (!wall.threads)
		return fail_at(r, f->start, "the wall time is of no thread");
	if (__builtin_add_overflow(wall.wall_ns, wall.runnable_ns, &wall.wall_ns) ||
	    __builtin_add_overflow(wall.wall_ns, wall.blocked_ns, &wall.wall_ns) ||
	    __builtin_add_overflow(wall.wall_ns, wall.idle_ns, &wall.wall_ns) ||
	    __builtin_add_overflow(wall.wall_ns, wall.unknown_ns, &wall.wall_ns) ||
	    wall.wall_ns > INT64_MAX)
		return fail_at(r, f->start, "the wall time is longer than all years");
	labels.tags = r->tags;
	labels.tag_count = r->tag_count;
	return profile_add_labels(r->p, &labels, &wall.labels) ?: profile_add_wall(r->p, &wall);
}

/* What is before the times of a field, of which each has so many numbers. */
struct times_head {
	uint64_t unit, last, count;
	struct wire rest;
};

static int read_times_head(struct reader *r, const struct wire_field *f, size_t numbers,
			   const char *what, struct times_head *head)
{
	*head = (struct times_head){ .rest = f->content };
	if (!f->id)
		return 0;
	if (!wire_take_varint(&head->rest, &head->unit) ||
	    !wire_take_varint(&head->rest, &head->last) ||
	    !wire_take_varint(&head->rest, &head->count) ||
	    head->count > wire_left(&head->rest) / numbers)
		return fail_at(r, f->start, "the times of %s are truncated", what);
	if (!head->unit || head->last > (INT64_MAX - r->p->time_ns) / head->unit)
		return fail_at(r, f->start, "the times of %s are beyond all years", what);
	return 0;
}

/* Moves behind so many numbers. */
static int skip_numbers(struct reader *r, struct wire *w, uint64_t count, const char *what)
{
	uint64_t ignored;

	while (count--)
		if (!wire_take_varint(w, &ignored))
			return fail_at(r, w->at, "the times of %s are truncated", what);
	return 0;
}

/*
 * Adds the times of waits to a list, or those of calls, of samples that have been read. sum: the
 * value that limits those of a sample.
 */
static int read_waits(struct reader *r, const struct times_head *head, struct wait_list *list,
		      enum profile_sum sum)
{
	struct profile *p = r->p;
	size_t limit = profile_find_sum(p, sum);
	const char *what = sum == PROFILE_SUM_SPAN ? "calls" : "waits";
	const char *one = sum == PROFILE_SUM_SPAN ? "call" : "wait";
	struct wire begins = head->rest, lengths = begins, numbers, cpus;
	uint64_t later, length, number, since = 0, cpu = 0;
	uint64_t *left; /* of each sample of the profile: how much of its value has no time */
	int err;

	if (!head->count)
		return 0;
	if (limit == p->value_type_count)
		return fail_at(r, head->rest.at, "there are times of %s, but no value \"%s\"", what,
			       sum == PROFILE_SUM_SPAN ? "span" : PROFILE_WALL_TYPE);
	err = skip_numbers(r, &lengths, head->count, what);
	numbers = lengths;
	err = err ?: skip_numbers(r, &numbers, head->count, what);
	cpus = numbers;
	err = err ?: skip_numbers(r, &cpus, head->count, what);
	if (err)
		return err;
	list->complete = wire_left(&cpus);
	left = calloc(p->sample_count + 1, sizeof(*left));
	list->waits = array_to_fill(head->count, sizeof(*list->waits));
	list->room = list->waits ? head->count : 0;
	if (!left || !list->waits) {
		free(left);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t value = p->values[i * p->value_type_count + limit];

		left[i] = MAX(value, 0);
	}
	for (uint64_t i = 0; i < head->count && !err; i++) {
		const uint8_t *at = numbers.at;
		uint32_t sample = PROFILE_NONE;

		wire_take_varint(&begins, &later);
		wire_take_varint(&lengths, &length);
		if (!wire_take_varint(&numbers, &number))
			err = fail_at(r, at, "the times of %s are truncated", what);
		else if (list->complete && (!wire_take_varint(&cpus, &cpu) || cpu > UINT32_MAX))
			err = fail_at(r, cpus.at, "the CPUs of %s are truncated or invalid", what);
		else if (later > head->last - since || length > head->last - since - later)
			err = fail_at(r, at, "a %s is later than the last one", one);
		else if (!number || number > r->sample_count)
			err = fail_at(r, at, "a %s is of a sample that is not in the file", one);
		else
			sample = r->samples[number - 1];
		since += later;
		if (err || sample == PROFILE_NONE)
			continue;
		if (length * head->unit > left[sample])
			err = fail_at(r, at, "a sample has longer %s than its value", what);
		else
			err = wait_list_add(list, sample, p->time_ns + since * head->unit,
					    length * head->unit, (uint32_t)cpu - 1);
		left[sample] -= length * head->unit;
	}
	free(left);
	return err;
}

/* The same of ticks. */
static int read_ticks(struct reader *r, const struct times_head *head)
{
	struct tick_choice *choice = r->in->options.ticks;
	struct profile *p = r->p;
	uint64_t unit = head->unit, last = head->last, count = head->count, later, code, time = 0;
	struct wire codes = head->rest, w = codes;
	uint32_t *counted; /* of each sample of the profile */
	size_t seen = 0;
	int err;

	if (!head->count)
		return 0;
	/* The samples of all ticks come after the times of all. */
	err = skip_numbers(r, &codes, count, "ticks");
	if (err)
		return err;
	counted = calloc(p->sample_count + 1, sizeof(*counted));
	if (!counted)
		return -ENOMEM;
	for (; count && !err; count--) {
		const uint8_t *at = codes.at;
		uint32_t sample = PROFILE_NONE;

		wire_take_varint(&w, &later);
		if (!wire_take_varint(&codes, &code))
			err = fail_at(r, at, "the times of ticks are truncated");
		else if (later > last - time)
			err = fail_at(r, at, "a tick is later than the last one");
		else if (code > seen || (!code && seen == r->sample_count))
			err = fail_at(r, at, "a tick is of a sample that is not in the file");
		else
			sample = r->samples[code ? code - 1 : seen++];
		time += later;
		if (err || sample == PROFILE_NONE)
			continue;
		if (counted[sample]++ >= UINT32_MAX - 1 ||
		    counted[sample] > p->values[sample * p->value_type_count])
			err = fail_at(r, at, "a sample has more times than ticks");
		err = err ?: tick_list_choose(&p->ticks, choice, sample, p->time_ns + time * unit);
	}
	free(counted);
	return err;
}

/* Reads the times of ticks, or of those that are asked for, and of waits. */
static int read_times(struct reader *r)
{
	struct tick_choice *choice = r->in->options.ticks;
	struct profile *p = r->p;
	struct time_interval recorded = { p->time_ns, p->time_ns };
	struct times_head ticks, waits, calls;
	int err = read_times_head(r, &r->ticks, 2, "ticks", &ticks);

	err = err ?: read_times_head(r, &r->waits, 3, "waits", &waits);
	err = err ?: read_times_head(r, &r->calls, 3, "calls", &calls);
	if (err)
		return err;
	if (choice && (r->ticks.id || r->waits.id)) {
		add_u64(&recorded.until_ns, p->duration_ns);
		if (r->ticks.id)
			interval_extend(&recorded, p->time_ns + ticks.last * ticks.unit);
		if (waits.last * waits.unit > recorded.until_ns - p->time_ns)
			recorded.until_ns = p->time_ns + waits.last * waits.unit;
		choice->choose(choice, &recorded);
	}
	return read_ticks(r, &ticks)
		       ?: read_waits(r, &waits, &p->waits, PROFILE_SUM_WALL)
		       ?: read_waits(r, &calls, &p->calls, PROFILE_SUM_SPAN);
}

/* --- The file --- */

/* At the end of the file, or of what can be read of it. */
static int finish_profile(struct reader *r)
{
	const char *type = r->default_type;
	struct profile *p = r->p;

	p->salvaged |= r->missing;
	if ((r->missing && profile_warn(p, "lost references to strings, functions or "
					   "locations that are not in the file")) ||
	    (r->unknown_inside && profile_warn(p, "unknown fields inside messages are lost")) ||
	    (r->unknown_size &&
	     profile_add_extra(p, PPROF_NAME, PROFILE_NONE, r->unknown, r->unknown_size)) ||
	    (p->value_type_count == 0 && profile_add_sum(p, PROFILE_SUM_SAMPLES)))
		return -ENOMEM;
	/* As write_default_type() writes it for others. */
	if (type && profile_is_recording(p) && p->value_type_count > PROFILE_CPU + 1 &&
	    profile_find_value(p, type) == PROFILE_CPU)
		type = NULL;
	p->names_default = type && profile_find_value(p, type) < p->value_type_count;
	p->default_value =
		1 + (p->names_default ? profile_find_value(p, type) : pprof_default_value(p));
	if (!type || p->names_default)
		return 0;
	return keep_extra(r, PROFILE_NONE, "%c%s", EXTRA_DEFAULT_TYPE, type);
}

static int pprof_read(struct input *in, struct profile *p, struct error *e)
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
		{ PPROF_FUNCTION, .read = read_function },
		{ PPROF_LOCATION, .read = read_location },
		{ PPROF_SAMPLE, .read = read_sample },
		{ PPROF_WALL, .read = read_wall },
	};
	struct reader r = { .in = in, .p = p, .e = e, .thread_key = PPROF_COMM };
	int err;

	p->bits = 64;
	err = scan_fields(&r);
	if (in->options.no_code)
		r.ranges[PPROF_MAPPING] = r.ranges[PPROF_FUNCTION] = r.ranges[PPROF_LOCATION] =
			(struct range){ 0 };
	if (!err && !has_string(&r, PPROF_COMM) && has_string(&r, PPROF_THREAD)) {
		r.thread_key = PPROF_THREAD;
		err = keep_extra(&r, PROFILE_NONE, "%c%s", EXTRA_THREAD_KEY, PPROF_THREAD);
	}
	err = err ?: read_fields(&r, &sample_types);
	err = err ?: read_fields(&r, &period_type);
	err = err ?: settle_period(&r);
	if (!err && in->options.stacks && !in->options.no_code)
		err = choose_stacks(&r);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !err; i++)
		err = read_fields(&r, &kinds[i]);
	err = err ?: salvage(&r, read_times(&r));
	err = err ?: finish_profile(&r);
	table_free(&r.mappings.table);
	table_free(&r.functions.table);
	table_free(&r.locations.table);
	free(r.strings);
	free(r.unknown);
	free(r.lines);
	free(r.frames);
	free(r.values);
	free(r.tags);
	free(r.samples);
	free(r.stacks);
	free(r.wanted_locations.at);
	free(r.wanted_locations.is);
	free(r.wanted_functions.at);
	free(r.wanted_functions.is);
	free(r.labels);
	index_free(&r.label_index);
	return err;
}

const struct format format_pprof = {
	.name = PPROF_NAME,
	.extensions = (const char *const[]){ ".pb.gz", ".pb", ".pprof", NULL },
	.is_gzip = true,
	.is_signed = true,
	.keeps = KEEPS(ADDRESSES) | KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(LINES) | KEEPS(INLINED) |
		 KEEPS(IMAGES) | KEEPS(MAPPINGS) | KEEPS(BUILD_IDS) | KEEPS(THREADS) | KEEPS(MODE) |
		 KEEPS(LABEL) | KEEPS(TAGS) | KEEPS(VALUES) | KEEPS(DELAY) | KEEPS(EVENT) |
		 KEEPS(PERIOD) | KEEPS(EVENT_PERIOD) | KEEPS(TIME) | KEEPS(TICK_TIMES) |
		 KEEPS(DURATION) | KEEPS(WALL) | KEEPS(HOST) | KEEPS(COMMAND) | KEEPS(ACCOUNT) |
		 KEEPS(COUNTERS) | KEEPS(COMMENTS),
	.detect = pprof_detect,
	.read = pprof_read,
	.write = pprof_write,
};
