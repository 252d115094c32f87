/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TESTS_STACK_FIXTURE_H
#define PROFIL_TESTS_STACK_FIXTURE_H

/* Profiles of stacks that are given by the names of their functions. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "profile/profile.h"

static inline struct profile *new_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	return p;
}

static inline uint32_t mapping_of(struct profile *p, const char *path)
{
	uint32_t image, mapping;

	assert_int_equal(profile_add_image(p, path, NULL, 0, &image), 0);
	for (mapping = 0; mapping < p->mapping_count; mapping++)
		if (p->mappings[mapping].image == image)
			return mapping;
	assert_int_equal(profile_add_mapping(p, 0, UINT64_MAX, 0, image, &mapping), 0);
	return mapping;
}

static inline void set_name(struct profile *p, struct profile_line *line, const char *name)
{
	struct profile_function f = { .name = name, .system_name = name, .file = "" };

	*line = (struct profile_line){ 0 };
	assert_int_equal(profile_add_function(p, &f, &line->function), 0);
}

/*
 * A location, from a text like "IMAGE@NAME<OUTER": NAME, inlined into OUTER, in IMAGE; without
 * IMAGE: in /bin/exe. No NAME: code without one.
 */
static inline uint32_t location_of(struct profile *p, const char *text)
{
	char copy[128], *name = copy, *outer, *path = "/bin/exe";
	struct profile_line lines[2];
	uint64_t address = 0;
	uint32_t location;

	for (const char *c = text; *c; c++)
		address = address * 131 % (1UL << 60) + *c;
	snprintf(copy, sizeof(copy), "%s", text);
	if (strchr(copy, '@')) {
		path = strsep(&name, "@");
		address |= strncmp(path, "/k", 2) ? 0 : 1UL << 63;
	}
	assert_int_equal(profile_add_location(p, address, mapping_of(p, path), &location), 0);
	outer = strchr(name, '<');
	if (outer) {
		*outer = '\0';
		set_name(p, &lines[1], outer + 1);
	}
	if (*name) {
		set_name(p, &lines[0], name);
		assert_int_equal(profile_set_lines(p, location, lines, outer ? 2 : 1), 0);
	}
	return location;
}

static inline void add_labelled(struct profile *p, const struct profile_labels *l,
				const char *stack, int64_t count)
{
	char copy[256], *rest = copy, *word;
	uint32_t frames[32], outermost[32], depth = 0, labels;

	snprintf(copy, sizeof(copy), "%s", stack);
	while ((word = strsep(&rest, " ")))
		if (*word)
			outermost[depth++] = location_of(p, word);
	for (uint32_t i = 0; i < depth; i++)
		frames[i] = outermost[depth - 1 - i];
	assert_int_equal(profile_add_labels(p, l, &labels), 0);
	assert_int_equal(profile_add_sample(p, frames, depth, labels, &count), 0);
}

/* stack: locations as above, from the outermost on. */
static inline void add(struct profile *p, const char *stack, int64_t count)
{
	add_labelled(p, &(struct profile_labels){ .comm = "" }, stack, count);
}

#endif
