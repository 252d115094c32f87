// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/dcpi.h"

#include <inttypes.h>

#include "daemon/log.h"
#include "format/dcpi/dcpi.h"
#include "util/clock.h"

#define NS_PER_MINUTE (60 * NS_PER_S)
#define NS_PER_DAY    (86400 * NS_PER_S)

static int add_to_epoch(const char *directory, uint64_t epoch_ns, struct profile *p,
			struct state *state, struct error *e)
{
	uint64_t began_ns = p->time_ns;
	struct format_dropped dropped;
	struct error loss;
	int err;

	p->time_ns = epoch_ns; /* the epoch's name */
	err = dcpi_write_directory(p, &(struct format_options){ 0 }, directory, e);
	p->time_ns = began_ns;
	if (err)
		return err;
	dcpi_dropped_images(p, &dropped);
	if (!dropped.samples)
		return 0;
	state->dcpi_dropped += dropped.samples;
	error_set(&loss, 0,
		  "%s: %" PRIu64 " samples of %.512s%s are dropped: DCPI files cannot hold %s",
		  directory, dropped.samples, dropped.image, dropped.others ? " and others" : "",
		  format_dcpi.cannot_hold_in_image);
	log_problem(&loss);
	return 0;
}

void dcpi_add_window(const char *directory, uint64_t *epoch_ns, struct profile *p,
		     struct state *state)
{
	struct error e;

	/* All windows of a day share an epoch. */
	if (p->time_ns / NS_PER_DAY != *epoch_ns / NS_PER_DAY)
		*epoch_ns = p->time_ns;
	if (add_to_epoch(directory, *epoch_ns, p, state, &e) == 0)
		return;
	/*
	 * A window that cannot be added begins another epoch: without an image's file, its
	 * addresses are no longer those in the epoch's file. An epoch is named by its minute, which
	 * may not be over when windows are short.
	 */
	*epoch_ns += NS_PER_MINUTE;
	if (*epoch_ns < p->time_ns)
		*epoch_ns = p->time_ns;
	if (add_to_epoch(directory, *epoch_ns, p, state, &e) == 0)
		return;
	state->dcpi_failed++;
	log_problem(&e);
}

void dcpi_drop(const char *directory, const char *host, uint64_t before_s, const char *why)
{
	size_t dropped;
	struct error e;

	if (dcpi_drop_epochs(directory, host, before_s, &dropped, &e))
		log_problem(&e);
	if (dropped)
		log_note("removed %zu epochs from %s: %s", dropped, directory, why);
}

int dcpi_measure(void *context, uint64_t *bytes, uint64_t *oldest_end_s, struct error *e)
{
	const struct dcpi_part *part = context;
	int err = dcpi_measure_epochs(part->directory, part->host, bytes, oldest_end_s, e);

	if (!err && *oldest_end_s == UINT64_MAX && part->most_bytes && *bytes > part->most_bytes)
		part->state->dcpi_epoch_ns = 0;
	return err;
}

void dcpi_drop_before(void *context, uint64_t end_s)
{
	const struct dcpi_part *part = context;

	dcpi_drop(part->directory, part->host, end_s,
		  "with the windows, they were over --retain-bytes or --keep-free");
}
