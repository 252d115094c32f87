// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/fold.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/count.h"
#include "lib/last_error.h"
#include "lib/session.h"

/* How many cells one system call reads or writes. */
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

/* Adds to the values of the cells. */
static void add(const struct batch *batch, void *values)
{
	uint16_t *narrow = values;
	uint32_t *wide = values;

	for (size_t i = 0; i < batch->count; i++)
		if (batch->width == sizeof(*wide))
			wide[i] += batch->counts[i];
		else
			narrow[i] += batch->counts[i];
}

static int flush(struct batch *batch)
{
	uint32_t values[BATCH];
	struct iovec local = { .iov_base = values, .iov_len = batch->count * batch->width };
	ssize_t size = local.iov_len;
	pid_t self = syscall(SYS_gettid); /* not the PID: the first thread may have ended */

	if (!batch->count)
		return 0;
	if (process_vm_readv(self, &local, 1, batch->cells, batch->count, 0) != size)
		return -EFAULT;
	add(batch, values);
	if (process_vm_writev(self, &local, 1, batch->cells, batch->count, 0) != size)
		return -EFAULT;
	batch->count = 0;
	return 0;
}

static int add_to_buffer(struct batch *batch, const struct plan *plan, uint32_t cell,
			 uint64_t count)
{
	const struct region *region = profil__plan_region(plan, cell);

	batch->cells[batch->count] = (struct iovec){
		.iov_base = region->buffer + (cell - region->base) * batch->width,
		.iov_len = batch->width,
	};
	batch->counts[batch->count++] = count;
	return batch->count == batch->limit ? flush(batch) : 0;
}

/* Moves the counts of the cells [first, end). */
static int fold_cells(struct profil_session *s, struct batch *batch, uint32_t first, uint32_t end)
{
	int err = 0;

	for (uint32_t cell = first; cell < end && !err; cell++) {
		uint64_t count;

		if (!count_load(&s->cells[cell]))
			continue;
		count = count_take(&s->cells[cell]);
		if (s->counts) {
			s->counts[cell] += count;
			s->in_range += count;
		} else {
			err = add_to_buffer(batch, &s->plan, cell, count);
		}
	}
	return err;
}

/* Moves the counts of the cells that a word of dirty bits stands for. */
static int fold_word(struct profil_session *s, struct batch *batch, unsigned int word)
{
	unsigned int shift = s->state->dirty_shift & 31;
	uint64_t dirty = 0;
	int err = 0;

	if (count_load(&s->state->dirty[word]))
		dirty = count_take(&s->state->dirty[word]);
	for (; dirty && !err; dirty &= dirty - 1) {
		uint64_t first = (uint64_t)(word * 64 + __builtin_ctzll(dirty)) << shift;
		uint64_t end = first + (1ULL << shift);

		if (first < s->plan.cell_count)
			err = fold_cells(s, batch, first,
					 end < s->plan.cell_count ? end : s->plan.cell_count);
	}
	return err;
}

/* If buffers overlap: one cell at a time, so that none is read before the last write to it. */
static size_t batch_limit(const struct plan *plan)
{
	return plan->buffers_overlap ? 1 : BATCH;
}

int profil__fold(struct profil_session *s)
{
	struct batch batch = { .limit = batch_limit(&s->plan), .width = s->plan.wide ? 4 : 2 };
	int err = 0;

	if (!s->state)
		return 0;
	for (unsigned int word = 0; word < PROFIL_DIRTY_WORDS && !err; word++)
		err = fold_word(s, &batch, word);
	err = err ?: flush(&batch);
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
