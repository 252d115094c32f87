// SPDX-License-Identifier: GPL-2.0-only
#include "format/pprof/pprof.h"

#include <string.h>

#include "format/pprof/pprof_wire.h"

/* How many fields are looked at, and have to make sense before a corrupt one may come. */
#define DETECT_FIELDS 16
#define DETECT_ENOUGH 4

static const ProtobufCMessageDescriptor *const profile_message =
	&profil__pprof__profile__descriptor;

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

/* Whether each of the values `time` is that of `count` times the period. */
static bool is_time_of(const struct profile *p, size_t time, size_t count)
{
	uint64_t ns = pprof_unit_ns(p->value_types[time].unit);

	if (!ns || !p->period_ns || strcmp(p->value_types[count].unit, "count") != 0)
		return false;
	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *values = p->values + i * p->value_type_count;

		if ((__int128)values[time] * ns != (__int128)values[count] * p->period_ns)
			return false;
	}
	return true;
}

size_t pprof_default_value(const struct profile *p)
{
	size_t last = p->value_type_count - 1;

	/* Other writers know neither our name of the clock nor an account. */
	if (*p->event || p->totals.known)
		return profile_count_value(p);
	for (size_t i = 0; i < last; i++)
		if (is_time_of(p, last, i))
			return i;
	return last;
}

/* Whether a message begins with a field that it has, or is empty: text hardly ever does. */
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

/*
 * Whether the fields in the window are those of a Profile. One may reach beyond the window, if the
 * file does: then its beginning has to do.
 */
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

static const char *const extensions[] = { ".pb.gz", ".pb", ".pprof", NULL };

const struct format format_pprof = {
	.name = "pprof",
	.extensions = extensions,
	.is_gzip = true,
	.keeps = KEEPS(ADDRESSES) | KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(LINES) | KEEPS(INLINED) |
		 KEEPS(IMAGES) | KEEPS(MAPPINGS) | KEEPS(BUILD_IDS) | KEEPS(THREADS) | KEEPS(MODE) |
		 KEEPS(LABEL) | KEEPS(TAGS) | KEEPS(VALUES) | KEEPS(EVENT) | KEEPS(PERIOD) |
		 KEEPS(EVENT_PERIOD) | KEEPS(TIME) | KEEPS(DURATION) | KEEPS(HOST) |
		 KEEPS(COMMAND) | KEEPS(ACCOUNT) | KEEPS(COMMENTS),
	.detect = pprof_detect,
	.read = pprof_read,
	.write = pprof_write,
};
