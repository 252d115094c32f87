// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/fold.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/count.h"
#include "lib/last_error.h"
#include "lib/session.h"

/* How many cells one system call reads or writes. Bound: size. */
#define BATCH 64

/*
 * Cells in the caller's buffers, and what is to be added to them. The kernel reads and writes them
 * for us, so that an unmapped buffer is an error and no signal.
 */
struct batch {
	size_t limit, count;
	size_t width; /* bytes of a cell */
	struct iovec cells[BATCH];
	uint64_t counts[BATCH];
};

static int flush_batch(struct batch *batch)
{
	uint32_t values[BATCH];
	uint16_t *narrow = (uint16_t *)values;
	struct iovec local = { .iov_base = values, .iov_len = batch->count * batch->width };
	ssize_t size = local.iov_len;
	pid_t self = syscall(SYS_gettid); /* not the PID: the first thread may have ended */

	if (!batch->count)
		return 0;
	if (process_vm_readv(self, &local, 1, batch->cells, batch->count, 0) != size)
		return -EFAULT;
	for (size_t i = 0; i < batch->count; i++)
		if (batch->width == sizeof(*values))
			values[i] += batch->counts[i];
		else
			narrow[i] += batch->counts[i];
	if (process_vm_writev(self, &local, 1, batch->cells, batch->count, 0) != size)
		return -EFAULT;
	batch->count = 0;
	return 0;
}

/* Moves the counts of the cells [first, end). */
static int fold_cells(struct profil_session *s, struct batch *batch, uint32_t first, uint32_t end)
{
	int err = 0;

	for (uint32_t cell = first; cell < end && !err; cell++) {
		const struct region *region;
		uint64_t count;

		if (!count_load(&s->cells[cell]))
			continue;
		count = count_take(&s->cells[cell]);
		s->in_range += count;
		if (s->counts) {
			s->counts[cell] += count;
			continue;
		}
		region = profil__plan_region(&s->plan, cell);
		batch->cells[batch->count] = (struct iovec){
			.iov_base = region->buffer + (cell - region->base) * batch->width,
			.iov_len = batch->width,
		};
		batch->counts[batch->count++] = count;
		if (batch->count == batch->limit)
			err = flush_batch(batch);
	}
	return err;
}

int profil__fold(struct profil_session *s)
{
	struct batch batch = { .limit = BATCH, .width = s->plan.wide ? 4 : 2 };
	unsigned int shift;
	int err = 0;

	if (!s->state)
		return 0;
	/* One cell at a time, so that none is read before the last write to it. */
	if (s->plan.buffers_overlap)
		batch.limit = 1;
	shift = s->state->dirty_shift & 31;
	for (unsigned int word = 0; word < PROFIL_DIRTY_WORDS && !err; word++) {
		uint64_t dirty = 0;

		if (count_load(&s->state->dirty[word]))
			dirty = count_take(&s->state->dirty[word]);
		for (; dirty && !err; dirty &= dirty - 1) {
			uint64_t first = (uint64_t)(word * 64 + __builtin_ctzll(dirty)) << shift;
			uint64_t end = first + (1ULL << shift);

			if (end > s->plan.cell_count)
				end = s->plan.cell_count;
			if (first < end)
				err = fold_cells(s, &batch, first, end);
		}
	}
	err = err ?: flush_batch(&batch);
	s->latest_out_of_range = count_load(&s->state->out_of_range);
	s->latest_lost = count_load(&s->state->lost);
	return err;
}

bool profil__fold_pending(const struct profil_session *s)
{
	uint64_t dirty = 0;

	if (!s->state)
		return false;
	for (unsigned int word = 0; word < PROFIL_DIRTY_WORDS; word++)
		dirty |= count_load(&s->state->dirty[word]);
	return dirty;
}

int profil__fold_check(struct profil_session *s)
{
	char from = 0, to;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };
	pid_t self = syscall(SYS_gettid);

	if (s->counts)
		return 0;
	if (process_vm_readv(self, &local, 1, &remote, 1, 0) != 1)
		return profil__system_error("process_vm_readv(2) on the process itself");
	if (process_vm_writev(self, &local, 1, &remote, 1, 0) != 1)
		return profil__system_error("process_vm_writev(2) on the process itself");
	return 0;
}
