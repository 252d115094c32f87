// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* profil(2) and sprofil(). */
#include "lib/profil.h"

#include <errno.h>
#include <limits.h>

#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/memory.h"
#include "lib/rate.h"
#include "lib/samples.h"
#include "lib/session.h"
#include "lib/sessions.h"
#include "lib/state.h"
#include "lib/verbose.h"
#include "util/clock.h"

#define ALL_SPROFIL_FLAGS (PROF_USHORT | PROF_UINT | PROF_FAST)

/* The session of profil() and sprofil(), which have no handle for it. NULL: off. */
static struct profil_session *current;

/* Scale 1 turns profiling off, too: profil(2), NOTICES. */
static bool is_off(size_t bufsiz, unsigned long scale)
{
	return bufsiz == 0 || scale <= 1;
}

/*
 * With the lock. If the request cannot be met whatever the back end is, what was on stays on; if
 * the back end fails, profiling is off.
 */
static int replace_current(const struct region *regions, size_t count, bool wide, unsigned int hz)
{
	struct profil_session *s = NULL;
	int err = 0;

	if (count)
		err = profil__session_make(&s, regions, count, wide);
	if (err)
		return err;
	if (!count && !current) /* profil(3): to be rid of the thread at once */
		profil__sessions_end_idle_thread();
	if (current) {
		profil__session_stop(current);
		profil__session_free(current);
		current = NULL;
	}
	if (!s)
		return 0;
	s->hz = hz;
	if (s->plan.range_count) { /* else no address can be counted */
		err = profil__session_start(s);
		if (!err)
			current = s;
	}
	if (current)
		profil__samples_note_profil(&s->counting);
	else
		profil__session_free(s);
	return err;
}

/* Sets *tick_ns if profiling is on afterwards. */
static int set_regions(const struct region *regions, size_t count, bool wide, unsigned int hz,
		       uint64_t *tick_ns)
{
	struct guard guard;
	int err;

	if (count)
		profil__prepare(false);
	err = profil__enter(&guard);
	if (err)
		return err;
	err = replace_current(regions, count, wide, hz);
	if (!err && current)
		*tick_ns = current->counting.tick_ns;
	profil__leave(&guard);
	return err;
}

/* The return value of both functions. */
static int return_value(int err)
{
	if (!err)
		return 0;
	profil__print_failure();
	errno = -err;
	return -1;
}

EXPORT int profil(unsigned short *buffer, size_t bufsiz, size_t offset, unsigned int scale)
{
	/* <unistd.h> declares it as never NULL, so that the compiler would drop the test. */
	void *volatile hidden = buffer;
	const struct region region = {
		.offset = offset,
		.bufsiz = bufsiz,
		.scale = scale,
		.buffer = hidden,
	};
	bool on = region.buffer && !is_off(bufsiz, scale);
	unsigned int hz = 0;
	uint64_t tick_ns;
	int err;

	profil__error_clear();
	err = on ? profil__rate(false, &hz) : 0;
	return return_value(err ?: set_regions(&region, on, false, hz, &tick_ns));
}

EXPORT int sprofil(struct prof *entries, int count, struct timeval *period, unsigned int flags)
{
	bool wide = flags & PROF_UINT;
	struct region *regions;
	size_t region_count = 0;
	unsigned int hz = 0;
	uint64_t ns = 0;
	int err = 0;

	profil__error_clear();
	if (flags & ~ALL_SPROFIL_FLAGS)
		err = profil__error(EINVAL, "unknown flags of sprofil(): %#x", flags);
	else if (count < 0 || count > MOST_REGIONS)
		err = profil__error(EINVAL, "%d regions: must be 0 to %d", count, MOST_REGIONS);
	for (int i = 0; i < count && !err; i++)
		if (entries[i].pr_scale > UINT_MAX)
			err = profil__error(EINVAL, "scale %#lx: must fit into 32 bits",
					    entries[i].pr_scale);
	if (err)
		return return_value(err);
	regions = profil__memory_make(count * sizeof(*regions));
	if (!regions)
		return return_value(profil__error(ENOMEM, "out of memory"));
	/* The overflow region has all addresses, so it comes last, whatever its place. */
	for (int overflow = 0; overflow <= 1; overflow++)
		for (int i = 0; i < count; i++) {
			size_t bufsiz = entries[i].pr_size, cell = wide ? 4 : 2;
			/* Its first cell counts the ticks that are in no other region. */
			bool is_overflow = entries[i].pr_off == 0 && entries[i].pr_scale == 2;

			if (is_overflow != overflow || !entries[i].pr_base ||
			    is_off(bufsiz, entries[i].pr_scale))
				continue;
			if (overflow)
				bufsiz = bufsiz < cell ? 0 : cell;
			regions[region_count++] = (struct region){
				.offset = entries[i].pr_off,
				.bufsiz = bufsiz,
				.scale = overflow ? 0 : entries[i].pr_scale,
				.buffer = entries[i].pr_base,
			};
		}
	if (region_count) /* else it is turned off */
		err = profil__rate(flags & PROF_FAST, &hz);
	err = err ?: set_regions(regions, region_count, wide, hz, &ns);
	profil__memory_free(regions);
	if (!err && period && ns)
		*period = (struct timeval){ ns / NS_PER_S, (ns + 500) / 1000 % 1000000 };
	return return_value(err);
}
