// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for the reader of one format, FUZZ_FORMAT. Whatever a file holds, reading it
 * ends with an error or with a profile that is whole in itself, which every writer can take.
 */
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the profile is not whole: %s\n", what);
	abort();
}

static void check_locations(const struct profile *p)
{
	for (size_t i = 0; i < p->mapping_count; i++)
		require(p->mappings[i].image < p->image_count, "a mapping's image");
	for (size_t i = 0; i < p->line_count; i++)
		require(p->lines[i].function < p->function_count, "a line's function");
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		require(l->mapping == PROFILE_NONE || l->mapping < p->mapping_count,
			"a location's mapping");
		require((uint64_t)l->first_line + l->line_count <= p->line_count,
			"a location's lines");
	}
}

static void check_samples(const struct profile *p)
{
	require(p->value_type_count > 0 || p->sample_count == 0, "samples without a value");
	require(profile_count_value(p) < (p->value_type_count ?: 1), "the value that is shown");
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];

		require(s->labels < p->label_count, "a sample's labels");
		require(s->first_frame + s->depth <= p->frame_count, "a sample's frames");
	}
	for (size_t i = 0; i < p->frame_count; i++)
		require(p->frames[i] < p->location_count, "a frame's location");
	for (size_t i = 0; i < p->arc_count; i++)
		require(p->arcs[i].from < p->location_count && p->arcs[i].to < p->location_count,
			"an arc's ends");
	for (size_t i = 0; i < p->extra_count; i++)
		require(p->extras[i].image == PROFILE_NONE || p->extras[i].image < p->image_count,
			"an extra's image");
}

/* An error is fine: not every profile can be written in every format. */
static void write_all(const struct profile *p)
{
	static FILE *nowhere;
	static const struct format_options options = { .instr_positions = true };
	struct error e;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (!nowhere)
		abort();
	for (const struct format *const *f = format_all; *f; f++)
		if ((*f)->write)
			(*f)->write(p, &options, nowhere, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct format *format = format_by_name(FUZZ_FORMAT);
	struct input in = { .path = "input", .bytes = bytes, .size = size };
	struct error e = { 0 };
	struct profile *p = profile_new();

	if (!format || !p)
		abort();
	if (size && format->detect(&in)) {
		/* What was read before an error is kept by --salvage: it has to be whole, too. */
		format->read(&in, p, &e);
		check_locations(p);
		check_samples(p);
		write_all(p);
	}
	profile_free(p);
	return 0;
}
