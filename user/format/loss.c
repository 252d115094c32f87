// SPDX-License-Identifier: GPL-2.0-only
#include "format/loss.h"

#include <stdio.h>
#include <string.h>

static const char *const names[ASPECT_COUNT] = {
#define ASPECT_NAME(aspect, name) name,
	FORMAT_ASPECTS(ASPECT_NAME)
#undef ASPECT_NAME
};

const char *aspect_name(enum format_aspect aspect)
{
	return names[aspect];
}

unsigned int loss_aspects(const struct profile *p)
{
	unsigned int found = 0;
	size_t width = p->value_type_count, delay = profile_find_sum(p, PROFILE_SUM_DELAY);

	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		found |= l->address ? KEEPS(ADDRESSES) : 0;
		if (l->mapping != PROFILE_NONE && *profile_location_image(p, i)->path)
			found |= KEEPS(IMAGES);
		found |= l->line_count ? KEEPS(NAMES) : 0;
		found |= l->line_count > 1 ? KEEPS(INLINED) : 0;
		for (uint32_t j = 0; j < l->line_count; j++)
			found |= p->lines[l->first_line + j].line ? KEEPS(LINES) : 0;
	}
	for (size_t i = 0; i < p->label_count; i++) {
		const struct profile_labels *l = &p->labels[i];

		found |= l->pid || l->tid || *l->comm ? KEEPS(THREADS) : 0;
		found |= l->kernel ? KEEPS(MODE) : 0;
		for (uint32_t j = 0; j < l->tag_count; j++) {
			const struct profile_tag *tag = &l->tags[j];
			bool is_label = tag->text && strcmp(tag->key, PROFILE_LABEL_KEY) == 0;

			found |= is_label ? KEEPS(LABEL) : KEEPS(TAGS);
		}
	}

	for (size_t i = 0; i < p->sample_count && delay < width; i++)
		if (p->values[i * width + delay])
			found |= KEEPS(DELAY);
	for (size_t i = 0; i < p->sample_count; i++)
		if (p->samples[i].depth > 1)
			found |= KEEPS(STACKS);
	for (size_t i = 0; i < p->image_count; i++)
		if (p->images[i].build_id_size)
			found |= KEEPS(BUILD_IDS);
	for (size_t i = 0; i < p->mapping_count; i++)
		if (!p->mappings[i].linked && p->mappings[i].start)
			found |= KEEPS(MAPPINGS);
	for (size_t i = 0; i < p->arc_count; i++)
		found |= p->arcs[i].kind == PROFILE_CALL ? KEEPS(CALLS) : KEEPS(JUMPS);
	for (size_t i = 0; i < p->arc_count * width; i++)
		if (p->arc_values[i])
			found |= KEEPS(COSTS);
	for (size_t i = 0; i < p->value_type_count; i++)
		width -= i == delay || profile_value_ns(p, i) == 1;
	found |= width > 1 ? KEEPS(VALUES) : 0;
	for (size_t i = 0; i < p->value_type_count; i++)
		if (p->value_types[i].period)
			found |= KEEPS(EVENT_PERIOD);
	found |= *p->event ? KEEPS(EVENT) : 0;
	found |= profile_tick_ns(p) ? KEEPS(PERIOD) : 0;
	found |= p->time_ns ? KEEPS(TIME) : 0;
	found |= p->ticks.count || p->waits.count || p->calls.count ? KEEPS(TICK_TIMES) : 0;
	found |= p->duration_ns ? KEEPS(DURATION) : 0;
	found |= *p->host ? KEEPS(HOST) : 0;
	found |= *p->command ? KEEPS(COMMAND) : 0;
	found |= p->wall_count || p->totals.throttled_count ? KEEPS(WALL) : 0;
	found |= p->totals.known ? KEEPS(ACCOUNT) : 0;
	for (int i = 0; p->totals.known && i < ACCOUNT_COUNT; i++)
		if (!account_counters[i].basic && p->totals.account.values[i])
			found |= KEEPS(COUNTERS);
	found |= p->comment_count ? KEEPS(COMMENTS) : 0;
	return found;
}

bool loss_list(const struct profile *p, unsigned int aspects, const struct format *format,
	       const struct format_options *options, char *text, size_t size)
{
	unsigned int values = KEEPS(VALUES) | KEEPS(DELAY), lost = aspects & ~format->keeps;
	const char *extras = NULL; /* another format whose extras the profile has */

	*text = '\0';
	if (lost & KEEPS(ACCOUNT))
		lost &= ~KEEPS(COUNTERS);
	if (lost & KEEPS(DELAY) && !(format->keeps & KEEPS(VALUES)) && p->value_type_count > 1 &&
	    profile_value(p, options->value) == profile_find_sum(p, PROFILE_SUM_DELAY))
		lost = (lost & ~values) | KEEPS(VALUES); /* the others are lost */
	for (size_t i = 0; i < p->extra_count && !extras; i++)
		if (strcmp(p->extras[i].format, format->name) != 0)
			extras = p->extras[i].format;
	for (unsigned int i = 0; i < ASPECT_COUNT; i++) {
		if (!(lost & 1U << i))
			continue;
		text_append(text, size, lost >> i == 1 && !extras ? " and " : ", ", "%s", names[i]);
		if (i == ASPECT_VALUES && p->value_type_count)
			text_append(text, size, " ", "(%.100s is written)",
				    p->value_types[profile_value(p, options->value)].type);
	}
	if (extras)
		text_append(text, size, " and ", "what only %s has", extras);
	return lost || extras;
}
