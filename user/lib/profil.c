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
#include "util/clock.h"

#define ALL_SPROFIL_FLAGS (PROF_USHORT | PROF_UINT | PROF_FAST)

/* The session of profil() and sprofil(), which have no handle for it. NULL: off. */
static struct profil_session *current;

/* Scale 1 turns profiling off, too: profil(2), NOTICES. */
static bool is_off(size_t bufsiz, unsigned long scale)
{
	return bufsiz == 0 || scale <= 1;
}

static void turn_off(void)
{
	if (!current)
		return;
	profil__session_stop(current);
	profil__session_free(current);
	current = NULL;
}

/*
 * With the lock. If the request cannot be met whatever the back end is, what was on stays on; if
 * the back end fails, profiling is off.
 */
static int replace(const struct region *regions, size_t count, bool wide, unsigned int hz)
{
	struct profil_session *s = NULL;
	int err = 0;

	if (count)
		err = profil__session_make(&s, regions, count, wide);
	if (err)
		return err;
	if (!count && !current) /* profil(3): to be rid of the thread at once */
		profil__sessions_end_idle_thread();
	turn_off();
	if (!s || !s->plan.range_count) { /* no address can be counted */
		if (s)
			profil__session_free(s);
		return 0;
	}
	s->hz = hz;
	err = profil__session_start(s);
	if (err) {
		profil__session_free(s);
		return err;
	}
	current = s;
	profil__samples_note_profil(s->period_ns, s->start_ns);
	return 0;
}

/* Sets *period_ns if profiling is on afterwards. */
static int set(const struct region *regions, size_t count, bool wide, unsigned int hz,
	       uint64_t *period_ns)
{
	struct guard guard;
	int err;

	if (count)
		profil__prepare(false);
	err = profil__enter(&guard);
	if (err)
		return err;
	err = replace(regions, count, wide, hz);
	if (!err && current)
		*period_ns = current->period_ns;
	profil__leave(&guard);
	return err;
}

/* The return value of both functions. */
static int result(int err)
{
	if (!err)
		return 0;
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
	uint64_t period_ns;
	int err;

	profil__error_clear();
	err = on ? profil__rate(false, &hz) : 0;
	return result(err ?: set(&region, on, false, hz, &period_ns));
}

/* Whether the entry's first cell counts the ticks that are in no other region. */
static bool is_overflow(const struct prof *entry)
{
	return entry->pr_off == 0 && entry->pr_scale == 2;
}

/* Adds the region of an entry, unless it counts nothing. Returns the new number of regions. */
static size_t add_region(struct region *regions, size_t count, const struct prof *entry, bool wide)
{
	size_t bufsiz = entry->pr_size, cell = wide ? 4 : 2;

	if (!entry->pr_base || is_off(bufsiz, entry->pr_scale))
		return count;
	if (is_overflow(entry))
		bufsiz = bufsiz < cell ? 0 : cell;
	regions[count] = (struct region){
		.offset = entry->pr_off,
		.bufsiz = bufsiz,
		.scale = is_overflow(entry) ? 0 : entry->pr_scale,
		.buffer = entry->pr_base,
	};
	return count + 1;
}

/* The overflow region has all addresses, so it comes last, whatever its place in the array. */
static int set_entries(const struct prof *entries, size_t count, unsigned int flags,
		       uint64_t *period_ns)
{
	struct region *regions = profil__memory_make(count * sizeof(*regions));
	bool wide = flags & PROF_UINT;
	size_t region_count = 0;
	unsigned int hz = 0;
	int err;

	if (!regions)
		return profil__error(ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		if (!is_overflow(&entries[i]))
			region_count = add_region(regions, region_count, &entries[i], wide);
	for (size_t i = 0; i < count; i++)
		if (is_overflow(&entries[i]))
			region_count = add_region(regions, region_count, &entries[i], wide);
	err = region_count ? profil__rate(flags & PROF_FAST, &hz) : 0; /* 0: turns it off */
	err = err ?: set(regions, region_count, wide, hz, period_ns);
	profil__memory_free(regions);
	return err;
}

static int check_entries(const struct prof *entries, int count, unsigned int flags)
{
	if (flags & ~ALL_SPROFIL_FLAGS)
		return profil__error(EINVAL, "unknown flags of sprofil(): %#x", flags);
	if (count < 0 || count > MOST_REGIONS)
		return profil__error(EINVAL, "%d regions: must be 0 to %d", count, MOST_REGIONS);
	for (int i = 0; i < count; i++)
		if (entries[i].pr_scale > UINT_MAX)
			return profil__error(EINVAL, "scale %#lx: must fit into 32 bits",
					     entries[i].pr_scale);
	return 0;
}

EXPORT int sprofil(struct prof *entries, int count, struct timeval *period, unsigned int flags)
{
	uint64_t ns = 0;
	int err;

	profil__error_clear();
	err = check_entries(entries, count, flags);
	err = err ?: set_entries(entries, count, flags, &ns);
	if (!err && period && ns)
		*period = (struct timeval){ ns / NS_PER_S, (ns + 500) / 1000 % 1000000 };
	return result(err);
}
