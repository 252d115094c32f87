// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for the reader of one format, FUZZ_FORMAT. For any file, reading ends with an
 * error or with a consistent profile that every writer accepts; so does a part of its time. Chains
 * of its waits have nodes that are the sum of their parts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"
#include "profile/filter.h"
#include "report/chain.h"
#include "whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

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

/* Explains what the first threads did all the time. */
static void follow_waits(const struct profile *p)
{
	struct segments s;
	struct chain c;
	int err = segments_make(p, "query", &s);

	for (uint32_t i = 0; i < s.thread_count && i < 8 && !err; i++) {
		if (chain_begin(&c, &s, i % 2) || chain_add(&c, i, &s.recorded) || chain_end(&c, 0))
			abort();
		for (size_t k = 0; k < c.count; k++) {
			uint32_t child = c.nodes[k].first_child;
			uint64_t sum = 0;

			for (; child != CHAIN_NONE; child = c.nodes[child].next)
				sum += c.nodes[child].ns[0];
			if (c.nodes[k].first_child != CHAIN_NONE && sum != c.nodes[k].ns[0])
				abort();
		}
		chain_free(&c);
	}
	segments_free(&s);
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
		check_ticks(p);
		check_waits(p);
		write_all(p);
		follow_waits(p);
		/* The first half of what was recorded, or what is outside of it. */
		if (p->ticks.count || p->waits.count) {
			struct time_interval half = profile_recorded(p);

			half.until_ns = half.since_ns + (half.until_ns - half.since_ns) / 2;
			if (profile_filter_times(p, &half, size % 2))
				abort();
			check_samples(p);
			check_ticks(p);
			check_waits(p);
			write_all(p);
		}
	}
	profile_free(p);
	return 0;
}
