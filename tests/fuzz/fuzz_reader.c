// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for the reader of one format, FUZZ_FORMAT. For any file, reading ends with an
 * error or with a consistent profile that every writer accepts; so does a part of its time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "format/format.h"
#include "profile/filter.h"
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
