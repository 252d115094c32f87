// SPDX-License-Identifier: GPL-2.0-only
#include "format/loss.h"

#include <stdio.h>
#include <string.h>

static const char *const names[ASPECT_COUNT] = {
	[ASPECT_ADDRESSES] = "addresses",
	[ASPECT_STACKS] = "call stacks",
	[ASPECT_NAMES] = "names",
	[ASPECT_LINES] = "source lines",
	[ASPECT_INLINED] = "inlined functions",
	[ASPECT_IMAGES] = "images",
	[ASPECT_MAPPINGS] = "mappings",
	[ASPECT_BUILD_IDS] = "build IDs",
	[ASPECT_THREADS] = "processes and threads",
	[ASPECT_MODE] = "the CPU mode of ticks",
	[ASPECT_LABEL] = "the label",
	[ASPECT_TAGS] = "labels",
	[ASPECT_VALUES] = "more than one value",
	[ASPECT_CALLS] = "call counts",
	[ASPECT_COSTS] = "inclusive costs of calls",
	[ASPECT_JUMPS] = "jumps",
	[ASPECT_EVENT] = "the event",
	[ASPECT_PERIOD] = "the period",
	[ASPECT_EVENT_PERIOD] = "the period in events",
	[ASPECT_TIME] = "the start time",
	[ASPECT_DURATION] = "the duration",
	[ASPECT_HOST] = "the host",
	[ASPECT_COMMAND] = "the command",
	[ASPECT_ACCOUNT] = "the account of ticks",
	[ASPECT_COMMENTS] = "comments",
};

const char *aspect_name(enum format_aspect aspect)
{
	return names[aspect];
}

static unsigned int sample_aspects(const struct profile *p)
{
	for (size_t i = 0; i < p->sample_count; i++)
		if (p->samples[i].depth > 1)
			return KEEPS(STACKS);
	return 0;
}

static unsigned int location_aspects(const struct profile *p)
{
	unsigned int found = 0;

	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		if (l->address)
			found |= KEEPS(ADDRESSES);
		if (l->mapping != PROFILE_NONE && *profile_location_image(p, i)->path)
			found |= KEEPS(IMAGES);
		if (l->line_count)
			found |= KEEPS(NAMES);
		if (l->line_count > 1)
			found |= KEEPS(INLINED);
		for (uint32_t j = 0; j < l->line_count; j++)
			if (p->lines[l->first_line + j].line)
				found |= KEEPS(LINES);
	}
	return found;
}

static unsigned int image_aspects(const struct profile *p)
{
	unsigned int found = 0;

	for (size_t i = 0; i < p->image_count; i++)
		if (p->images[i].build_id_size)
			found |= KEEPS(BUILD_IDS);
	for (size_t i = 0; i < p->mapping_count; i++)
		if (!p->mappings[i].linked && p->mappings[i].start)
			found |= KEEPS(MAPPINGS);
	return found;
}

static unsigned int label_aspects(const struct profile *p)
{
	unsigned int found = 0;

	for (size_t i = 0; i < p->label_count; i++) {
		const struct profile_labels *l = &p->labels[i];

		if (l->pid || l->tid || *l->comm)
			found |= KEEPS(THREADS);
		if (l->kernel)
			found |= KEEPS(MODE);
		for (uint32_t j = 0; j < l->tag_count; j++) {
			const struct profile_tag *tag = &l->tags[j];
			bool is_label = tag->text && strcmp(tag->key, PROFILE_DCPI_LABEL) == 0;

			found |= is_label ? KEEPS(LABEL) : KEEPS(TAGS);
		}
	}
	return found;
}

static bool has_cost(const struct profile *p, size_t arc)
{
	for (size_t i = 0; i < p->value_type_count; i++)
		if (p->arc_values[arc * p->value_type_count + i])
			return true;
	return false;
}

static unsigned int arc_aspects(const struct profile *p)
{
	unsigned int found = 0;

	for (size_t i = 0; i < p->arc_count; i++) {
		found |= p->arcs[i].kind == PROFILE_CALL ? KEEPS(CALLS) : KEEPS(JUMPS);
		if (has_cost(p, i))
			found |= KEEPS(COSTS);
	}
	return found;
}

/* CPU time beside samples follows from the period. */
static bool has_several_values(const struct profile *p)
{
	if (p->value_type_count == 2 && p->period_ns)
		return strcmp(p->value_types[1].unit, "nanoseconds") != 0;
	return p->value_type_count > 1;
}

static bool has_event_period(const struct profile *p)
{
	for (size_t i = 0; i < p->value_type_count; i++)
		if (p->value_types[i].period)
			return true;
	return false;
}

static unsigned int header_aspects(const struct profile *p)
{
	const struct {
		unsigned int aspect;
		bool has;
	} fields[] = {
		{ KEEPS(VALUES), has_several_values(p) },
		{ KEEPS(EVENT), *p->event },
		{ KEEPS(PERIOD), p->period_ns },
		{ KEEPS(EVENT_PERIOD), has_event_period(p) },
		{ KEEPS(TIME), p->time_ns },
		{ KEEPS(DURATION), p->duration_ns },
		{ KEEPS(HOST), *p->host },
		{ KEEPS(COMMAND), *p->command },
		{ KEEPS(ACCOUNT), p->totals.known },
		{ KEEPS(COMMENTS), p->comment_count },
	};
	unsigned int found = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		found |= fields[i].has ? fields[i].aspect : 0;
	return found;
}

unsigned int loss_aspects(const struct profile *p)
{
	return sample_aspects(p) | location_aspects(p) | image_aspects(p) | label_aspects(p) |
	       arc_aspects(p) | header_aspects(p);
}

/* Another format whose extras the profile has; NULL: none. */
static const char *lost_extras(const struct profile *p, const struct format *format)
{
	for (size_t i = 0; i < p->extra_count; i++)
		if (strcmp(p->extras[i].format, format->name) != 0)
			return p->extras[i].format;
	return NULL;
}

/* Of several values: " (cpu is written)"; else "". */
static void name_written(const struct profile *p, enum format_aspect aspect,
			 const struct format_options *options, char *text, size_t size)
{
	text[0] = '\0';
	if (aspect == ASPECT_VALUES && p->value_type_count)
		snprintf(text, size, " (%.100s is written)",
			 p->value_types[profile_value(p, options->value)].type);
}

bool loss_list(const struct profile *p, unsigned int aspects, const struct format *format,
	       const struct format_options *options, char *text, size_t size)
{
	const char *extras = lost_extras(p, format);
	unsigned int lost = aspects & ~format->keeps;
	size_t used = 0;

	for (unsigned int i = 0; i < ASPECT_COUNT && used < size; i++) {
		const char *gap = !used ? "" : lost >> i == 1 && !extras ? " and " : ", ";
		char written[128];

		name_written(p, i, options, written, sizeof(written));
		if (lost & 1U << i)
			used += snprintf(text + used, size - used, "%s%s%s", gap, names[i],
					 written);
	}
	if (extras && used < size)
		snprintf(text + used, size - used, "%swhat only %s has", lost ? " and " : "",
			 extras);
	return lost || extras;
}
