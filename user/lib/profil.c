// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* profil(2) and sprofil(). */
#include "lib/profil.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "lib/backend.h"
#include "lib/last_error.h"
#include "lib/export.h"
#include "lib/state.h"
#include "lib/rate.h"
#include "lib/session.h"

#define NS_PER_S UINT64_C(1000000000)

#define ALL_SPROFIL_FLAGS (PROF_USHORT | PROF_UINT | PROF_FAST)

/* The histogram of the process: profil() has no handle for it. */
static struct profil_session *current;

/* How profil() or sprofil() counted last; 0: it has not. */
static struct {
	uint64_t period_ns;
	uint64_t start_ns;
} latest;

/* Both scales stand for off: profil(2), NOTICES. */
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

/* With the lock. What was on goes on when this fails for want of a sensible request. */
static int replace(const struct region *regions, size_t count, bool wide, unsigned int hz)
{
	struct profil_session *s = NULL;
	int err = 0;

	if (count)
		err = profil__session_make(&s, regions, count, wide);
	if (err)
		return err;
	turn_off();
	if (!s || !s->plan.range_count) { /* no tick can be counted */
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
	latest.period_ns = s->period_ns;
	latest.start_ns = s->start_ns;
	return 0;
}

int profil__latest(uint64_t *period_ns, uint64_t *start_ns)
{
	unsigned int hz;
	int err = 0;

	*period_ns = latest.period_ns;
	*start_ns = latest.start_ns;
	if (!*period_ns) {
		*start_ns = profil__wall_ns();
		err = profil__rate(false, &hz);
		*period_ns = err ? 0 : NS_PER_S / hz;
	}
	return err;
}

/* *period_ns becomes that of the clock, if it is on then. */
static int set(const struct region *regions, size_t count, bool wide, unsigned int hz,
	       uint64_t *period_ns)
{
	struct guard guard;
	int err;

	if (count) {
		profil__backend_prepare(false);
		profil__be_there_at_exit();
	}
	err = profil__enter(&guard);
	if (err)
		return err;
	err = replace(regions, count, wide, hz);
	if (!err && current)
		*period_ns = current->period_ns;
	profil__leave(&guard);
	return err;
}

/* What both functions return. */
static int result(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

EXPORT int profil(unsigned short *buffer, size_t bufsiz, size_t offset, unsigned int scale)
{
	/* <unistd.h> says that it is never NULL, and the compiler would leave out the test. */
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

/* The entry whose first cell takes the ticks that no region has. */
static bool is_overflow(const struct prof *entry)
{
	return entry->pr_off == 0 && entry->pr_scale == 2;
}

/* Adds the region of an entry, if it has one, to those that there are. */
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

/* The overflow region has all addresses, so it comes last, wherever it stands. */
static int set_entries(const struct prof *entries, size_t count, unsigned int flags,
		       uint64_t *period_ns)
{
	struct region *regions = calloc(count ? count : 1, sizeof(*regions));
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
	err = region_count ? profil__rate(flags & PROF_FAST, &hz) : 0; /* else it is turned off */
	err = err ?: set(regions, region_count, wide, hz, period_ns);
	free(regions);
	return err;
}

static int check_entries(const struct prof *entries, int count, unsigned int flags)
{
	if (flags & ~ALL_SPROFIL_FLAGS)
		return profil__error(EINVAL, "flags of sprofil() that are not known: %#x", flags);
	if (count < 0 || count > MOST_REGIONS)
		return profil__error(EINVAL, "%d regions: 0 to %d are possible", count,
				     MOST_REGIONS);
	for (int i = 0; i < count; i++)
		if (entries[i].pr_scale > UINT_MAX)
			return profil__error(EINVAL, "scale %#lx: at most 32 bits are possible",
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
