// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/last_error.h"
#include "lib/memory.h"

static size_t counts_size(const struct profil_session *s)
{
	return s->plan.cell_count * sizeof(*s->counts);
}

/* Pages of cells that never count take no memory. */
static int make_counts(struct profil_session *s)
{
	void *memory;

	if (s->plan.regions[0].buffer || !s->plan.cell_count)
		return 0;
	memory = mmap(NULL, counts_size(s), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return profil__error(ENOMEM, "out of memory for %u cells", s->plan.cell_count);
	s->counts = memory;
	return 0;
}

int profil__session_make(struct profil_session **session, const struct region *regions,
			 size_t count, bool wide)
{
	struct profil_session *s = profil__memory_make(sizeof(*s));
	int err;

	if (!s)
		return profil__error(ENOMEM, "out of memory");
	s->fd = -1;
	err = profil__plan_make(&s->plan, regions, count, wide);
	err = err ?: make_counts(s);
	if (err)
		profil__session_free(s);
	else
		*session = s;
	return err;
}

void profil__session_free(struct profil_session *s)
{
	if (s->counts)
		munmap(s->counts, counts_size(s));
	profil__plan_free(&s->plan);
	free(s->maps.data);
	profil__memory_free(s);
}
