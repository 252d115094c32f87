// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/samples.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/cell.h"
#include "lib/backend.h"
#include "lib/backends.h"
#include "lib/last_error.h"
#include "lib/proc.h"
#include "lib/rate.h"
#include "lib/session.h"
#include "lib/sessions.h"
#include "lib/state.h"
#include "util/clock.h"

#define BYTE_SCALE (UINT64_C(1) << 17) /* the scale at which a cell stands for one byte */

static int add_cell(struct bytes *samples, const struct region *region, uint32_t cell,
		    uint64_t count)
{
	const struct sample sample = {
		.address = region->offset + (cell ? cell_last_delta(cell, region->scale) + 1 : 0),
		.count = count,
		.bucket = (BYTE_SCALE + region->scale / 2) / region->scale,
	};

	return profil__bytes_add(samples, &sample, sizeof(sample));
}

static void keep_cells(struct samples *samples, const struct bytes *cells)
{
	samples->all = (struct sample *)cells->data;
	samples->count = cells->size / sizeof(*samples->all);
}

/*
 * Sets the mappings: those of the running process, or `earlier` if it has ended. If there are none,
 * the file has addresses without images. Returns 0 or -ENOMEM.
 */
static int take_maps(struct samples *samples, const struct bytes *earlier)
{
	struct bytes *maps = &samples->maps;

	if (profil__proc_maps(maps, samples->pid) == -ENOMEM)
		return -ENOMEM;
	profil__error_clear();
	return maps->size ? 0 : profil__bytes_add(maps, earlier->data, earlier->size);
}

static int samples_of_session(struct samples *samples, struct profil_session *s)
{
	struct bytes cells = { 0 };
	struct guard guard;
	int err;

	*samples = (struct samples){
		.pid = s->pid,
		.counting = s->counting,
		.is_tick = s->backend && strcmp(s->backend->name, "kmod") == 0,
	};
	err = profil__enter(&guard);
	if (err)
		return err;
	profil__session_update(s);
	for (size_t i = 0; i < s->plan.region_count && !err; i++) {
		const struct region *region = &s->plan.regions[i];
		const uint64_t *counts = s->counts + region->base;

		for (uint32_t cell = 0; cell < region->cell_count && !err; cell++)
			if (counts[cell])
				err = add_cell(&cells, region, cell, counts[cell]);
	}
	keep_cells(samples, &cells);
	samples->accounted = true;
	samples->out_of_range = s->out_of_range + s->latest_out_of_range;
	samples->lost = s->lost + s->latest_lost;
	profil__leave(&guard);
	return err ?: take_maps(samples, &s->maps);
}

/* Set by the last profil() or sprofil() that turned profiling on; 0 before the first. */
static struct counting latest;

void profil__samples_note_profil(const struct counting *counting)
{
	latest = *counting;
}

static int samples_of_buffer(struct samples *samples, const unsigned short *buffer, size_t bufsiz,
			     size_t offset, unsigned int scale)
{
	const struct region region = { offset, bufsiz, scale, (char *)buffer, 0, 0 };
	const struct bytes none = { 0 };
	struct bytes cells = { 0 };
	struct plan plan = { 0 };
	const char *backend;
	struct guard guard;
	unsigned int hz;
	int err;

	*samples = (struct samples){ 0 };
	if (!buffer || bufsiz < sizeof(*buffer) || scale < 2)
		return profil__error(EINVAL,
				     "a buffer of %zu bytes with scale %#x: profil() would be off",
				     buffer ? bufsiz : 0, scale);
	err = profil__enter(&guard);
	if (err)
		return err;
	samples->counting = latest;
	/* A program may have filled the buffer without profil(): then the usual rate, and now. */
	if (!latest.tick_ns) {
		err = profil__rate(false, &hz);
		samples->counting.start_ns = clock_ns(CLOCK_REALTIME);
		samples->counting.tick_ns = err ? 0 : NS_PER_S / hz;
	}
	err = err ?: profil__plan_make(&plan, &region, 1, false);
	if (!err)
		profil__sessions_update();
	for (uint32_t cell = 0; !err && cell < plan.regions[0].cell_count; cell++) {
		unsigned short count = __atomic_load_n(&buffer[cell], __ATOMIC_RELAXED);

		if (count)
			err = add_cell(&cells, &region, cell, count);
	}
	keep_cells(samples, &cells);
	profil__plan_free(&plan);
	backend = profil__backends_name();
	samples->is_tick = backend && strcmp(backend, "kmod") == 0;
	profil__leave(&guard);
	return err ?: take_maps(samples, &none);
}

/*
 * Writes the samples, unless `err` says that they could not be taken, and frees them. A thread that
 * is cancelled would leave temporary files and a database's lock behind.
 */
static int write_and_free(struct samples *samples, int err, samples_writer *write, const char *path)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = err ?: write(samples, path);
	pthread_setcancelstate(cancel, NULL);
	free(samples->all);
	free(samples->maps.data);
	return err;
}

static int check_path(const char *path)
{
	profil__error_clear();
	return path && *path ? 0 : profil__error(EINVAL, "no path to write to");
}

int profil__samples_write_session(struct profil_session *session, samples_writer *write,
				  const char *path)
{
	struct samples samples = { 0 };
	int code = errno, err;

	err = check_path(path) ?: samples_of_session(&samples, session);
	err = write_and_free(&samples, err, write, path);
	errno = code;
	return err;
}

int profil__samples_write_buffer(const unsigned short *buffer, size_t bufsiz, size_t offset,
				 unsigned int scale, samples_writer *write, const char *path)
{
	struct samples samples = { 0 };
	int code = errno, err;

	err = check_path(path) ?: samples_of_buffer(&samples, buffer, bufsiz, offset, scale);
	err = write_and_free(&samples, err, write, path);
	errno = code;
	return err;
}
