// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The histogram: by a session of libprofil, which counts all threads and does not overflow; or, if
 * no back end has sessions, by libc's profil(), as in libc's own runtime.
 */
#include "lib/gmon.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "lib/end_signals.h"

/*
 * Cells cover 4 bytes of code, as those of libc's runtime, with which gprof adds up files only if
 * range and number of cells are the same. Above this number of cells, which take 8 bytes of kernel
 * memory each, cells are larger.
 */
#define CELL_SIZE  4
#define MOST_CELLS (1 << 23)

int profil__histogram_open(struct gmon_histogram *h, const struct gmon_range *range)
{
	size_t cell_size = CELL_SIZE, count, text, bytes;
	void *memory;

	*h = (struct gmon_histogram){ .range = *range };
	while ((range->high - range->low) / cell_size > MOST_CELLS)
		cell_size *= 2;
	h->range.low &= -cell_size;
	h->range.high += -h->range.high & (cell_size - 1);
	text = h->range.high - h->range.low;
	bytes = text / cell_size * sizeof(*h->buffer);
	if (cell_size == CELL_SIZE)
		bytes += -bytes & (sizeof(long) - 1); /* glibc 2.38, and updates of older ones */
	count = bytes / sizeof(*h->buffer);
	/* As libc computes it: a few cells too many make all of them a little smaller. */
	h->scale = (float)bytes / text * 0x10000;
	h->mapped_size = count * (2 * sizeof(*h->counts) + sizeof(*h->buffer));
	/* Pages that are not used take no memory. */
	memory = mmap(NULL, h->mapped_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	h->counts = memory;
	h->cell_count = count;
	h->hz = getauxval(AT_CLKTCK); /* libc's rate; a session has its own */
	return 0;
}

/* --- With a session --- */

/* Adds the session's totals (sign 1) or subtracts them (-1), and takes the true rate. */
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
 * The session continues while the histogram is paused: starting another one takes much longer, and
 * with the kernel module would lose the rest of each thread's period. So the session's counts are
 * subtracted (sign -1) when a pause ends, and added (1) when the next one starts.
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
		.scale = h->scale,
	};
	int err = profil_attach(&h->session, 0, &region, 1, sizeof(region), 0);

	if (err)
		h->session = NULL;
	return err;
}

/* --- Without a session --- */

/* The back end "libc" is the only one without sessions. */
static bool is_libc(void)
{
	const char *name = profil_backend();

	return name && strcmp(name, "libc") == 0;
}

static int start_profil(struct gmon_histogram *h)
{
	unsigned short *buffer = (unsigned short *)(h->counts + 2 * h->cell_count);

	if (profil(buffer, h->cell_count * sizeof(*buffer), h->range.low, h->scale))
		return -errno;
	h->buffer = buffer;
	return 0;
}

/*
 * Preloaded, libprofil comes after libc in the order in which symbols are looked up, so that
 * profil() is libc's own, which leaves a pending SIGPROF to end the program.
 */
static void stop_profil(struct gmon_histogram *h)
{
	/* libc declares it nonnull, but NULL turns it off. */
	unsigned short *volatile none = NULL;

	profil__end_signals();
	profil(none, 0, 0, 0);
	for (size_t i = 0; i < h->cell_count; i++)
		if (h->buffer[i]) {
			h->counts[i] += h->buffer[i];
			h->buffer[i] = 0;
		}
	h->buffer = NULL;
}

/* --- Start and pause --- */

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
