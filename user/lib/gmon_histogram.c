// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The histogram: from the kernel, through a session of libprofil, which has all threads and does
 * not overflow. Where there are no sessions, from libc's profil(), as libc's own runtime has it.
 */
#include "lib/gmon.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/*
 * gprof reckons in units of 2 bytes and shares out a cell among the functions that it covers, so
 * that only cells of 2 bytes are exact for functions which are not aligned. More cells than these
 * are more memory than it is worth: 8 bytes of the kernel's for each. Cells get larger then.
 */
#define MOST_CELLS (1 << 23)

/* Of profil(), for cells that stand for 1 byte. */
#define SCALE_OF_BYTES 0x20000

int profil__histogram_open(struct gmon_histogram *h, const struct gmon_range *range)
{
	size_t cell_size = 2, count;
	void *memory;

	*h = (struct gmon_histogram){ .range = *range };
	while ((range->high - range->low) / cell_size > MOST_CELLS)
		cell_size *= 2;
	h->range.low &= -cell_size;
	h->range.high += -h->range.high & (cell_size - 1);
	count = (h->range.high - h->range.low) / cell_size;
	h->mapped_size = count * (2 * sizeof(*h->counts) + sizeof(*h->buffer));
	/* What is not used stays unmapped. */
	memory = mmap(NULL, h->mapped_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	h->counts = memory;
	h->cell_size = cell_size;
	h->cell_count = count;
	h->hz = getauxval(AT_CLKTCK); /* libc's; a session tells its own */
	return 0;
}

/* --- With a session --- */

/* The true rate, what was lost, and what was due. */
static void take_totals(struct gmon_histogram *h, int sign)
{
	struct profil_totals totals;

	if (profil_read_totals(h->session, &totals, sizeof(totals)))
		return;
	h->lost += sign * totals.lost;
	h->ticks += sign * totals.ticks;
	h->cpu_ns += sign * totals.cpu_ns;
	if (totals.period_ns) {
		h->period_ns = totals.period_ns;
		h->hz = (1000000000 + totals.period_ns / 2) / totals.period_ns;
	}
}

/*
 * A session goes on while the histogram is paused, for to begin another takes much longer, and with
 * the kernel module it would lose what is left of each thread's period. So what it has counted is
 * taken away when the pause ends, and is added when the next one begins.
 */
static void take_counts(struct gmon_histogram *h, int sign)
{
	uint64_t *latest = h->counts + h->cell_count;

	take_totals(h, sign);
	if (profil_read(h->session, 0, latest, h->cell_count))
		return;
	for (size_t i = 0; i < h->cell_count; i++)
		if (latest[i])
			h->counts[i] += sign * latest[i];
}

static int start_session(struct gmon_histogram *h)
{
	const struct profil_region region = {
		.offset = h->range.low,
		.bufsiz = h->cell_count * sizeof(unsigned short),
		.scale = SCALE_OF_BYTES / h->cell_size,
	};
	int err = profil_attach(&h->session, 0, &region, 1, sizeof(region), 0);

	if (err)
		h->session = NULL;
	return err;
}

/* --- Without --- */

/* Of all back ends, libc's profil() alone has no sessions. */
static bool is_libc(void)
{
	const char *name = profil_backend();

	return name && strcmp(name, "libc") == 0;
}

static int start_profil(struct gmon_histogram *h)
{
	unsigned short *buffer = (unsigned short *)(h->counts + 2 * h->cell_count);

	if (profil(buffer, h->cell_count * sizeof(*buffer), h->range.low,
		   SCALE_OF_BYTES / h->cell_size))
		return -errno;
	h->buffer = buffer;
	return 0;
}

static void stop_profil(struct gmon_histogram *h)
{
	profil(NULL, 0, 0, 0);
	for (size_t i = 0; i < h->cell_count; i++)
		if (h->buffer[i]) {
			h->counts[i] += h->buffer[i];
			h->buffer[i] = 0;
		}
	h->buffer = NULL;
}

/* --- Either --- */

int profil__histogram_start(struct gmon_histogram *h)
{
	int err = 0;

	if (h->counting)
		return 0;
	if (h->session)
		take_counts(h, -1);
	else
		err = start_session(h);
	if (err == -ENOTSUP && is_libc())
		err = start_profil(h);
	h->counting = !err;
	return err;
}

void profil__histogram_pause(struct gmon_histogram *h)
{
	if (!h->counting)
		return;
	if (h->session)
		take_counts(h, 1);
	else
		stop_profil(h);
	h->counting = false;
}

void profil__histogram_close(struct gmon_histogram *h)
{
	profil__histogram_pause(h);
	profil_session_free(h->session);
	if (h->counts)
		munmap(h->counts, h->mapped_size);
	*h = (struct gmon_histogram){ 0 };
}
