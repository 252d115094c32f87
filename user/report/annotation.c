// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotation.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "report/rows.h"
#include "report/text.h"
#include "util/number.h"
#include "util/sum.h"

#define CANDIDATES_MAX 16

/* Bytes of code that are shown where no symbol tells how long the function is. */
#define WINDOW 256

/* A function that may be meant. */
struct candidate {
	uint32_t image;
	const char *name; /* or NULL */
	struct symbol_extent extent;
	uint64_t samples;
};

struct search {
	struct profile *p;
	const struct annotation_options *o;
	const char *image; /* as --image, or as the address is told in; NULL: any */
	bool by_address;
	uint64_t address;
	uint64_t *samples; /* of each location, as a leaf */
	bool *wanted;	   /* locations */
	struct symbol_extent *extents;
	struct candidate candidates[CANDIDATES_MAX];
	size_t count; /* of candidates; those past the last are not kept */
};

/* "work" is "work(int, char)", too. */
static bool is_name(const char *name, const char *wanted)
{
	size_t size = strlen(wanted);

	return strncmp(name, wanted, size) == 0 && (!name[size] || name[size] == '(');
}

static bool is_function(const struct profile *p, uint32_t function, const char *wanted)
{
	return is_name(p->functions[function].name, wanted) ||
	       is_name(p->functions[function].system_name, wanted);
}

/* Whether a location's code is the function's own, or with `inlined`, the function's at all. */
static bool has_name(const struct search *s, uint32_t location, bool inlined)
{
	const struct profile_location *l = &s->p->locations[location];
	uint32_t first = inlined || !l->line_count ? 0 : l->line_count - 1;

	for (uint32_t i = first; i < l->line_count; i++)
		if (is_function(s->p, s->p->lines[l->first_line + i].function, s->o->function))
			return true;
	return false;
}

static bool is_in_image(const struct search *s, uint32_t location)
{
	const struct profile_image *image = profile_location_image(s->p, location);

	return row_image_is(image ? image->path : row_unknown, s->image);
}

/* Marks the locations whose functions may be meant. Returns whether there are any. */
static bool mark_wanted(struct search *s, bool inlined)
{
	bool any = false;

	for (uint32_t i = 0; i < s->p->location_count; i++) {
		s->wanted[i] = s->samples[i] && is_in_image(s, i) &&
			       (s->by_address || has_name(s, i, inlined));
		any |= s->wanted[i];
	}
	return any;
}

/* The code that is to be shown for a location; false: it is not meant. */
static bool choose_extent(const struct search *s, uint32_t location, struct symbol_extent *extent)
{
	uint64_t address = s->p->locations[location].image_address;

	*extent = s->extents[location];
	if (!s->by_address)
		return true;
	if (!extent->limit)
		*extent = (struct symbol_extent){ s->address, s->address + WINDOW };
	else
		address = s->address;
	return address >= extent->start && address < extent->limit;
}

static void add_candidate(struct search *s, uint32_t location, const struct symbol_extent *extent)
{
	const struct profile_location *l = &s->p->locations[location];
	uint32_t mapping = l->mapping;
	uint32_t image = mapping == PROFILE_NONE ? PROFILE_NONE : s->p->mappings[mapping].image;
	size_t i;

	for (i = 0; i < s->count; i++)
		if (s->candidates[i].image == image &&
		    s->candidates[i].extent.start == extent->start)
			break;
	if (i == CANDIDATES_MAX)
		return;
	if (i == s->count)
		s->candidates[s->count++] = (struct candidate){ .image = image, .extent = *extent };
	if (l->line_count) {
		uint32_t outermost = l->first_line + l->line_count - 1;

		s->candidates[i].name = s->p->functions[s->p->lines[outermost].function].name;
	}
	add_u64(&s->candidates[i].samples, s->samples[location]);
}

static const char *image_path(const struct search *s, uint32_t image)
{
	return image == PROFILE_NONE ? row_unknown : s->p->images[image].path;
}

static int explain_ambiguous(const struct search *s, struct error *e)
{
	char list[800] = "";
	size_t used = 0;

	for (size_t i = 0; i < s->count && used < sizeof(list); i++) {
		const struct candidate *c = &s->candidates[i];

		used += snprintf(list + used, sizeof(list) - used,
				 "%s0x%" PRIx64 " in %s, %" PRIu64 " sample%s", used ? "; " : "",
				 c->extent.start, text_basename(image_path(s, c->image)),
				 c->samples, c->samples == 1 ? "" : "s");
	}
	error_set(e, 0, "%s is ambiguous: %s", s->o->function, list);
	error_mend(e, "name the image with --image, or give one of these addresses");
	return -EINVAL;
}

static int explain_none(const struct search *s, struct error *e)
{
	error_set(e, 0, "no sample fell into %s%s%s", s->o->function, s->o->image ? " of " : "",
		  s->o->image ?: "");
	error_mend(e, "profiltool report tells the functions that have samples, "
		      "report --by address the addresses");
	return -ENOENT;
}

/* Why there is no code to be shown of the only candidate; 0: there is. */
static int check_candidate(const struct search *s, struct error *e)
{
	const struct candidate *c = s->candidates;
	const char *path = image_path(s, c->image), *reason = NULL;

	if (image_is_in_kernel(path))
		reason = "code of the kernel is in no file";
	else if (c->image == PROFILE_NONE)
		reason = "it is in no image that is known";
	else
		reason = s->p->images[c->image].unnamed;
	if (reason)
		return error_set(e, 0, "cannot disassemble %s: %s: %s", s->o->function, path,
				 reason);
	if (c->extent.limit)
		return 0;
	error_set(e, 0, "%s has no symbol %s: nobody knows where it ends", path, s->o->function);
	error_mend(e, "give an address; profiltool report --by address -p %s tells them",
		   text_basename(path));
	return -ENOENT;
}

static int search(struct search *s, struct error *e)
{
	profile_count_leaves(s->p, s->samples);
	if (!mark_wanted(s, false) && !mark_wanted(s, true))
		return explain_none(s, e);
	/* From here on, whether their files can be read. */
	for (size_t i = 0; i < s->p->image_count; i++)
		s->p->images[i].unnamed = NULL;
	if (symbol_extents(s->p, s->wanted, s->extents, e))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->p->location_count; i++) {
		struct symbol_extent extent;

		if (s->wanted[i] && choose_extent(s, i, &extent))
			add_candidate(s, i, &extent);
	}
	if (!s->count)
		return explain_none(s, e);
	return s->count > 1 ? explain_ambiguous(s, e) : check_candidate(s, e);
}

/* 0xADDRESS, or IMAGE+0xADDRESS as report calls what has no name: else it is a name. */
static void parse_function(struct search *s)
{
	const char *text = s->o->function, *plus = strrchr(text, '+');

	s->image = s->o->image;
	for (size_t i = 0; plus && i < s->p->image_count; i++) {
		const char *image = text_basename(s->p->images[i].path);
		size_t size = strlen(image);

		if (size != (size_t)(plus - s->o->function) ||
		    memcmp(image, s->o->function, size) != 0)
			continue;
		s->image = image;
		text = plus + 1;
	}
	s->by_address = strncmp(text, "0x", 2) == 0 &&
			number_parse_hex(text, 0, UINT64_MAX - WINDOW, &s->address) == 0;
}

static int find(struct annotation *a, struct profile *p, const struct annotation_options *o,
		struct error *e)
{
	struct search s = { .p = p, .o = o };
	size_t count = p->location_count + 1;
	int err;

	s.samples = calloc(count, sizeof(*s.samples));
	s.wanted = calloc(count, sizeof(*s.wanted));
	s.extents = calloc(count, sizeof(*s.extents));
	parse_function(&s);
	err = s.samples && s.wanted && s.extents ? search(&s, e) : error_no_memory(e);
	if (!err) {
		a->image = s.candidates->image;
		a->function = s.candidates->name;
		a->extent = s.candidates->extent;
	}
	free(s.samples);
	free(s.wanted);
	free(s.extents);
	return err;
}

/* The instruction that a sample's leaf is in, or SIZE_MAX: it is elsewhere. */
static size_t find_instruction(const struct annotation *a, const struct profile_sample *sample)
{
	const struct profile_location *leaf;

	if (!sample->depth)
		return SIZE_MAX;
	leaf = &a->p->locations[a->p->frames[sample->first_frame]];
	if (leaf->mapping == PROFILE_NONE || a->p->mappings[leaf->mapping].image != a->image ||
	    leaf->image_address < a->extent.start || leaf->image_address >= a->extent.limit)
		return SIZE_MAX;
	return disassembly_find(&a->code, leaf->image_address);
}

static int count(struct annotation *a, struct error *e)
{
	const struct profile *p = a->p;

	a->values = calloc(p->value_type_count + 1, sizeof(*a->values));
	if (!a->values)
		return error_no_memory(e);
	a->value_count = rows_values(p, a->values);
	a->counts = calloc(a->code.count, a->value_count * sizeof(*a->counts));
	if (!a->counts)
		return error_no_memory(e);
	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *values = &p->values[i * p->value_type_count];
		size_t number = find_instruction(a, &p->samples[i]);

		for (size_t j = 0; j < a->value_count && number != SIZE_MAX; j++)
			if (values[a->values[j]] > 0)
				add_u64(&a->counts[number * a->value_count + j],
					values[a->values[j]]);
	}
	for (size_t i = 0; i < a->code.count; i++)
		add_u64(&a->samples, a->counts[i * a->value_count]);
	a->all_samples = profile_total(p);
	return 0;
}

/* The name that a file has which was deleted when it was recorded, and is there all the same. */
static void path_on_disk(char path[PATH_MAX], const char *recorded)
{
	snprintf(path, PATH_MAX, "%s", recorded);
	path[image_path_size(path)] = '\0';
}

int annotation_make(struct annotation *a, struct profile *p, const struct annotation_options *o,
		    struct error *e)
{
	char path[PATH_MAX];
	int err;

	*a = (struct annotation){ .p = p };
	err = find(a, p, o, e);
	if (err)
		return err;
	path_on_disk(path, p->images[a->image].path);
	err = disassemble(&a->code, path, a->extent.start, a->extent.limit, !o->no_sources, e);
	return err ?: count(a, e);
}

void annotation_free(struct annotation *a)
{
	disassembly_free(&a->code);
	free(a->values);
	free(a->counts);
	*a = (struct annotation){ 0 };
}
