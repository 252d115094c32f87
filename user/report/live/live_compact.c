// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/live/live.h"
#include "util/array.h"

struct copier {
	struct profile *from, *to;
	uint32_t *images, *mappings; /* of each of `from`, its number in `to` + 1; 0: not copied */
	uint32_t *locations;	     /* of each of `from`, its number in `to` */
	struct profile_line *lines;  /* scratch: those of one location */
	size_t line_room;
	uint32_t *frames; /* scratch: one stack */
	size_t frame_room;
};

/*
 * Stores the number in `to` of a mapping of `from`, which may be PROFILE_NONE; copies it, and its
 * image with the open files, the first time. Returns 0 or -ENOMEM.
 */
static int copy_mapping(struct copier *c, uint32_t number, uint32_t *id)
{
	struct profile_image *from, *image;
	struct profile_mapping m;
	const char *path;
	uint32_t image_id;

	*id = number == PROFILE_NONE ? PROFILE_NONE : c->mappings[number] - 1;
	if (number == PROFILE_NONE || c->mappings[number])
		return 0;
	m = c->from->mappings[number];
	image_id = c->images[m.image] - 1;
	if (!c->images[m.image]) {
		from = &c->from->images[m.image];
		if (profile_add_image_like(c->to, from, &image_id))
			return -ENOMEM;
		c->images[m.image] = image_id + 1;
		image = &c->to->images[image_id];
		path = image->path;
		*image = *from;
		image->path = path;
		image->unnamed = NULL;
		from->fd = from->root = -1; /* the copy owns them now */
		if (from->unnamed && profile_string(c->to, from->unnamed, &image->unnamed))
			return -ENOMEM;
	}
	if (profile_add_mapping(c->to, m.start, m.limit, m.offset, image_id, id))
		return -ENOMEM;
	c->to->mappings[*id].linked = m.linked;
	c->mappings[number] = *id + 1;
	return 0;
}

static int copy_location(struct copier *c, uint32_t number)
{
	const struct profile_location *from = &c->from->locations[number];
	uint32_t mapping, *id = &c->locations[number];

	if (copy_mapping(c, from->mapping, &mapping) ||
	    profile_add_location(c->to, from->address, mapping, id))
		return -ENOMEM;
	c->to->locations[*id].image_address = from->image_address;
	c->to->locations[*id].folded = from->folded;
	if (!from->line_count)
		return 0;
	if (array_reserve(&c->lines, &c->line_room, from->line_count, sizeof(*c->lines)))
		return -ENOMEM;
	for (uint32_t i = 0; i < from->line_count; i++) {
		struct profile_line *line = &c->lines[i];

		*line = c->from->lines[from->first_line + i];
		if (profile_add_function(c->to, &c->from->functions[line->function],
					 &line->function))
			return -ENOMEM;
	}
	return profile_set_lines(c->to, *id, c->lines, from->line_count);
}

static bool has_faded(const struct profile *p, size_t sample)
{
	return p->values[sample * p->value_type_count + PROFILE_CPU] <= 0;
}

int live_compact(struct live *l)
{
	struct profile *p = l->p;
	struct copier c = { .from = p, .to = profile_new() };
	uint32_t tried = l->tried;
	int err = -ENOMEM;

	c.images = calloc(p->image_count + 1, sizeof(*c.images));
	c.mappings = calloc(p->mapping_count + 1, sizeof(*c.mappings));
	c.locations = calloc(p->location_count + 1, sizeof(*c.locations));
	if (c.to && c.images && c.mappings && c.locations) {
		c.to->bits = p->bits;
		err = profile_string(c.to, p->event, &c.to->event);
		err = err ?: profile_string(c.to, p->host, &c.to->host);
	}
	for (size_t i = 0; i < p->value_type_count && !err; i++)
		err = profile_add_value_like(c.to, &p->value_types[i]);
	for (size_t i = 0; i < p->sample_count && !err; i++)
		for (uint32_t j = 0; j < p->samples[i].depth && !has_faded(p, i); j++)
			c.locations[p->frames[p->samples[i].first_frame + j]] = PROFILE_NONE;
	/* In their order, so that locations that were looked up stay before the others. */
	for (uint32_t i = 0; i < p->location_count && !err; i++) {
		if (c.locations[i] == PROFILE_NONE)
			err = copy_location(&c, i);
		if (i + 1 == tried)
			l->tried = c.to->location_count;
	}
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *sample = &p->samples[i];
		uint32_t labels;

		if (has_faded(p, i))
			continue;
		err = array_reserve(&c.frames, &c.frame_room, sample->depth, sizeof(*c.frames));
		err = err ?: profile_add_labels(c.to, &p->labels[sample->labels], &labels);
		for (uint32_t j = 0; j < sample->depth && !err; j++)
			c.frames[j] = c.locations[p->frames[sample->first_frame + j]];
		if (!err)
			err = profile_add_sample(c.to, c.frames, sample->depth, labels,
						 &p->values[i * p->value_type_count]);
	}
	for (size_t i = 0; i < p->wall_count && !err; i++) {
		struct profile_wall wall = p->walls[i];

		err = profile_add_labels(c.to, &p->labels[wall.labels], &wall.labels);
		err = err ?: profile_add_wall(c.to, &wall);
	}
	rows_free(&l->rows);
	l->shown_count = 0;
	l->selected = false;
	profile_free(p);
	l->p = c.to;
	free(c.images);
	free(c.mappings);
	free(c.locations);
	free(c.lines);
	free(c.frames);
	return err;
}
