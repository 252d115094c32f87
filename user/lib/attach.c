// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The public functions of sessions. */
#include "lib/profil.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/backends.h"
#include "lib/export.h"
#include "lib/last_error.h"
#include "lib/memory.h"
#include "lib/proc.h"
#include "lib/rate.h"
#include "lib/session.h"
#include "lib/sessions.h"
#include "lib/state.h"
#include "lib/version.h"

#define REGION_FIRST_SIZE SIZE_UP_TO(struct profil_region, unused)
#define TOTALS_FIRST_SIZE SIZE_UP_TO(struct profil_totals, cpu_ns)

/* Makes a session of the caller's regions, structs of `size` bytes. */
static int make_session(struct profil_session **session, const struct profil_region *regions,
			size_t count, size_t size)
{
	const char *element = (const char *)regions;
	struct region *copies;
	int err = profil__struct_check(size, REGION_FIRST_SIZE, "profil_region");

	if (err)
		return err;
	if (!count || count > MOST_REGIONS)
		return profil__error(EINVAL, "%zu regions: must be 1 to %d", count, MOST_REGIONS);
	copies = profil__memory_make(count * sizeof(*copies));
	if (!copies)
		return profil__error(ENOMEM, "out of memory");
	for (size_t i = 0; i < count && !err; i++, element += size) {
		struct profil_region r;

		err = profil__struct_read(&r, sizeof(r), element, size, "profil_region");
		if (err)
			break;
		if (r.bufsiz < 2)
			err = profil__error(EINVAL,
					    "region %zu: bufsiz %llu has no cell: 2 or more", i,
					    (unsigned long long)r.bufsiz);
		else if (r.scale < 2)
			err = profil__error(EINVAL, "region %zu: scale %u: 2 or more", i, r.scale);
		else if (r.unused)
			err = profil__error(EINVAL, "region %zu: unused is %#x: it must be 0", i,
					    r.unused);
		copies[i] = (struct region){
			.offset = r.offset,
			.bufsiz = r.bufsiz,
			.scale = r.scale,
		};
	}
	err = err ?: profil__session_make(session, copies, count, false);
	profil__memory_free(copies);
	return err;
}

EXPORT int profil_attach(struct profil_session **session, pid_t pid,
			 const struct profil_region *regions, size_t count, size_t size,
			 unsigned int hz)
{
	struct profil_session *s;
	struct guard guard;
	int err;

	profil__error_clear();
	err = profil__proc_check(pid); /* first: without it, other reasons mislead */
	if (err)
		return err;
	if (pid == getpid())
		pid = 0;
	err = hz ? profil__rate_check(hz, "hz") : profil__rate(false, &hz);
	if (err)
		return err;
	profil__prepare(pid);
	err = profil__enter(&guard);
	if (err)
		return err;
	err = make_session(&s, regions, count, size);
	if (!err) {
		s->pid = pid;
		s->hz = hz;
		err = profil__session_start(s);
		if (err)
			profil__session_free(s);
		else
			*session = s;
	}
	/*
	 * For files that are written after the process has ended, which lack names if this fails.
	 */
	if (!err && pid) {
		profil__proc_maps(&s->maps, pid);
		profil__error_clear();
	}
	profil__leave(&guard);
	return err;
}

EXPORT int profil_read(struct profil_session *session, size_t region, uint64_t *counts, size_t n)
{
	const struct region *of;
	struct guard guard;
	int err;

	profil__error_clear();
	if (region >= session->plan.region_count)
		return profil__error(EINVAL, "region %zu of %zu", region,
				     session->plan.region_count);
	err = profil__enter(&guard);
	if (err)
		return err;
	profil__session_update(session);
	of = &session->plan.regions[region];
	if (of->cell_count < n)
		n = of->cell_count;
	if (n) /* else there may be no memory */
		memcpy(counts, session->counts + of->base, n * sizeof(*counts));
	profil__leave(&guard);
	return 0;
}

EXPORT int profil_read_totals(struct profil_session *session, struct profil_totals *totals,
			      size_t size)
{
	struct profil_totals known;
	struct guard guard;
	int err;

	profil__error_clear();
	err = profil__struct_check(size, TOTALS_FIRST_SIZE, "profil_totals");
	err = err ?: profil__enter(&guard);
	if (err)
		return err;
	profil__session_look_at_target(session);
	profil__session_update(session);
	profil__session_account(session);
	known = (struct profil_totals){
		.in_range = session->in_range,
		.out_of_range = session->out_of_range + session->latest_out_of_range,
		.lost = session->lost + session->latest_lost,
		.period_ns = session->counting.tick_ns,
		.cpu_ns = session->cpu_ns,
		.target = session->target,
	};
	profil__leave(&guard);
	known.ticks = known.in_range + known.out_of_range + known.lost;
	profil__struct_write(totals, size, &known, sizeof(known));
	return 0;
}

EXPORT int profil_detach(struct profil_session *session)
{
	struct guard guard;
	int err;

	profil__error_clear();
	err = profil__enter(&guard);
	if (err)
		return err;
	profil__session_stop(session);
	profil__leave(&guard);
	return 0;
}

EXPORT void profil_session_free(struct profil_session *session)
{
	struct guard guard;

	profil__error_clear();
	if (!session || profil__enter(&guard))
		return;
	profil__session_stop(session);
	profil__session_free(session);
	profil__leave(&guard);
}

EXPORT const char *profil_backend(void)
{
	static unsigned short cell;
	const struct region region = { .bufsiz = 2, .scale = 2, .buffer = (char *)&cell };
	struct profil_session *s;
	struct guard guard;
	const char *name;
	unsigned int hz;

	profil__error_clear();
	profil__prepare(false);
	if (profil__enter(&guard))
		return NULL;
	/* Has one chosen, by a session of one cell that counts nothing. */
	if (!profil__backends_name() && profil__rate(false, &hz) == 0 &&
	    profil__session_make(&s, &region, 1, false) == 0) {
		s->hz = hz;
		s->trial = true;
		if (profil__session_start(s) == 0)
			profil__session_stop(s);
		profil__session_free(s);
	}
	name = profil__backends_name();
	profil__leave(&guard);
	return name;
}
