// SPDX-License-Identifier: GPL-2.0-only
#include "report/function_search.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "report/rows.h"
#include "report/text.h"
#include "util/number.h"
#include "util/sum.h"

/*
 * Functions of one name that an error message can list; "and more" stands for others.
 * Bound: caller: functions of one name that a message lists; then: "and more".
 */
#define CANDIDATES_MAX 16

struct search {
	struct profile *p;
	const char *function; /* the argument, or the busiest row's */
	const char *image;    /* the argument, the busiest row's, or IMAGE of IMAGE+0xADDRESS */
	const char *value;    /* what is counted */
	bool by_busiest;
	bool by_address;
	uint64_t address;
	bool *reached;	  /* of each location: it is in the stack of a sample */
	int64_t *samples; /* of each location: those whose leaf it is */
	bool *wanted;	  /* of each location: the function may be there */
	struct symbol_extent *extents;
	struct found_function candidates[CANDIDATES_MAX];
	size_t count; /* of candidates */
	bool more;    /* there are more than CANDIDATES_MAX */
};

/*
 * Marks the locations in functions that match; with `inlined`, also where these are inlined.
 * Returns false if there are none.
 */
static bool mark_wanted(struct search *s, bool inlined)
{
	const struct profile *p = s->p;
	bool any = false;

	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct profile_line *lines = &p->lines[l->first_line];
		bool match = s->by_address;

		/* The last line is the function's own, those before it are of inlined ones. */
		for (uint32_t j = 0; j < l->line_count && !match && s->reached[i]; j++)
			if (inlined || j + 1 == l->line_count)
				match = row_function_is(&p->functions[lines[j].function],
							s->function);
		s->wanted[i] =
			match && s->reached[i] && row_image_is(row_image_path(p, i), s->image);
		any |= s->wanted[i];
	}
	return any;
}

static uint32_t image_of(const struct search *s, uint32_t location)
{
	uint32_t mapping = s->p->locations[location].mapping;

	return mapping == PROFILE_NONE ? PROFILE_NONE : s->p->mappings[mapping].image;
}

/* Adds the function at a location to the candidates, unless the wanted address is not in it. */
static void add_candidate(struct search *s, uint32_t location)
{
	const struct profile_location *l = &s->p->locations[location];
	struct symbol_extent extent = s->extents[location];
	uint64_t address = l->image_address;
	uint32_t image = image_of(s, location);
	size_t i = 0;

	if (s->by_address && extent.limit)
		address = s->address;
	else if (s->by_address)
		extent = (struct symbol_extent){ s->address, s->address + FUNCTION_WINDOW };
	if (s->by_address && (address < extent.start || address >= extent.limit))
		return;
	while (i < s->count &&
	       (s->candidates[i].image != image || s->candidates[i].extent.start != extent.start))
		i++;
	if (i == CANDIDATES_MAX) {
		s->more = true;
		return;
	}
	if (i == s->count)
		s->candidates[s->count++] =
			(struct found_function){ .image = image, .extent = extent };
	if (l->line_count) {
		uint32_t outermost = l->first_line + l->line_count - 1;

		s->candidates[i].name = s->p->functions[s->p->lines[outermost].function].name;
	}
	add_i64(&s->candidates[i].samples, s->samples[location]);
}

static int explain_ambiguous(const struct search *s, struct error *e)
{
	char list[800] = "";
	size_t used = 0, i;
	bool same_image = true;

	for (i = 0; i < s->count; i++) {
		const struct found_function *c = &s->candidates[i];
		const char *path =
			c->image == PROFILE_NONE ? row_unknown : s->p->images[c->image].path;
		size_t size = snprintf(list + used, sizeof(list) - used,
				       "%s0x%" PRIx64 " in %s, %" PRId64 " sample%s",
				       used ? "; " : "", c->extent.start, text_basename(path),
				       c->samples, c->samples == 1 ? "" : "s");

		same_image &= c->image == s->candidates[0].image;
		if (size >= sizeof(list) - used)
			break;
		used += size;
	}
	error_set(e, 0, "%s is ambiguous: %.*s%s", s->function, (int)used, list,
		  i < s->count || s->more ? "; and more" : "");
	error_hint(e, "%sgive one of these addresses",
		   same_image ? "" : "name the image with --image, or ");
	return -EINVAL;
}

static int explain_none(const struct search *s, struct error *e)
{
	if (s->by_busiest)
		error_set(e, 0, "no sample is in a function of a file");
	else
		error_set(e, 0, "no sample is in %s%s%s", s->function, s->image ? " of " : "",
			  s->image ?: "");
	error_hint(e, "profiltool report lists the functions that have samples, "
		      "report --by address the addresses");
	return -ENOENT;
}

/* 0xADDRESS, or IMAGE+0xADDRESS, which report prints for code without a name; else a name. */
static void parse_function(struct search *s)
{
	const char *text = s->function, *plus = strrchr(text, '+');

	for (size_t i = 0; plus && i < s->p->image_count; i++) {
		const char *image = text_basename(s->p->images[i].path);
		size_t size = strlen(image);

		if (size != (size_t)(plus - s->function) || memcmp(image, s->function, size) != 0)
			continue;
		s->image = image;
		text = plus + 1;
	}
	s->by_address = strncmp(text, "0x", 2) == 0 &&
			number_parse_hex(text, 0, UINT64_MAX - FUNCTION_WINDOW, &s->address) == 0;
}

/* Searches for the busiest function that is in a file. Returns 0 or -ENOMEM. */
static int take_busiest(struct search *s)
{
	const struct rows_options o = { .image = s->image, .value = s->value };
	struct rows rows;
	int err = rows_collect(&rows, s->p, &o);

	for (size_t i = 0; !err && i < rows.count && !s->function; i++) {
		const struct callgraph_key *key = rows.rows[i].key;
		enum image_kind kind = image_kind(key->image);

		if (!key->function || key->image == row_unknown ||
		    (kind != IMAGE_FILE && kind != IMAGE_SHARED) || !rows.rows[i].counts->self)
			continue;
		s->function = key->function;
		s->image = key->image;
	}
	rows_free(&rows);
	return err;
}

static int search_function(struct search *s, struct found_function *found, struct error *e)
{
	const struct profile *p = s->p;
	size_t value = profile_value(p, s->value);
	bool *locations = found->locations;

	for (size_t i = 0; i < p->sample_count; i++) {
		const uint32_t *frames = p->frames + p->samples[i].first_frame;
		int64_t count = p->values[i * p->value_type_count + value];

		if (p->samples[i].depth)
			add_i64(&s->samples[frames[0]], count);
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			s->reached[frames[j]] |= count != 0;
	}
	if (s->by_busiest && take_busiest(s))
		return error_no_memory(e);
	if (!s->function)
		return explain_none(s, e);
	if (!s->by_busiest)
		parse_function(s);
	if (!mark_wanted(s, false) && !mark_wanted(s, true))
		return explain_none(s, e);
	/*
	 * It held why addresses have no names; symbol_extents() stores why the file cannot be read.
	 */
	for (size_t i = 0; i < p->image_count; i++)
		p->images[i].unnamed = NULL;
	if (symbol_extents(s->p, s->wanted, s->extents, e))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->location_count; i++)
		if (s->wanted[i])
			add_candidate(s, i);
	if (!s->count)
		return explain_none(s, e);
	if (s->count > 1 && !s->by_busiest)
		return explain_ambiguous(s, e);
	*found = s->candidates[0];
	for (size_t i = 1; i < s->count; i++)
		if (magnitude(s->candidates[i].samples) > magnitude(found->samples))
			*found = s->candidates[i];

	/* Mark its locations, those of functions inlined into it included. */
	found->locations = locations;
	for (uint32_t i = 0; i < p->location_count; i++) {
		uint64_t address = p->locations[i].image_address;

		if (image_of(s, i) != found->image)
			continue;
		if (found->extent.limit)
			locations[i] =
				address >= found->extent.start && address < found->extent.limit;
		else
			locations[i] = s->wanted[i] && !s->extents[i].limit;
	}
	return 0;
}

int function_search(struct profile *p, const char *function, const char *image, const char *value,
		    struct found_function *found, struct error *e)
{
	struct search s = {
		.p = p,
		.function = function,
		.image = image,
		.value = value,
		.by_busiest = !function,
	};
	size_t count = p->location_count + 1;
	int err;

	s.reached = calloc(count, sizeof(*s.reached));
	s.samples = calloc(count, sizeof(*s.samples));
	s.wanted = calloc(count, sizeof(*s.wanted));
	s.extents = calloc(count, sizeof(*s.extents));
	*found = (struct found_function){ .locations = calloc(count, sizeof(*found->locations)) };
	if (s.reached && s.samples && s.wanted && s.extents && found->locations)
		err = search_function(&s, found, e);
	else
		err = error_no_memory(e);
	free(s.reached);
	free(s.samples);
	free(s.wanted);
	free(s.extents);
	return err;
}
