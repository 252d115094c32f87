// SPDX-License-Identifier: GPL-2.0-only
#include "capture/calls.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bpf/call.h"
#include "bpf/member.h"
#include "capture/capture.h"
#include "capture/perf_event.h"
#include "capture/program.h"
#include "sample.skel.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/number.h"

/*
 * When calls were may take 1 / this of the memory until the recording ends.
 * Bound: users: the part of the memory that is free at the start which calls of the function may
 * take; then: further ones are not recorded; again: never in this recording; share: none; seen:
 * calls_lost.
 */
#define CALLS_SHARE 8

void calls_choose(struct sample_bpf *bpf, bool wanted)
{
	bpf_map__set_autocreate(bpf->maps.call_tasks, wanted);
	bpf_map__set_autocreate(bpf->maps.call_ring, wanted);
	bpf_program__set_autoload(bpf->progs.enter_function, wanted);
	bpf_program__set_autoload(bpf->progs.leave_function, wanted);
	bpf_program__set_autoload(bpf->progs.exit_function, wanted);
}

/*
 * Runs a BPF program of type kprobe whenever a thread of the machine comes to the instruction at
 * this offset of an open file; the program chooses whose it wants. Returns a descriptor that the
 * caller closes, which ends it; or a negative errno with e set.
 *
 * There is nothing like it for returns: the kernel would replace the return address on the stack
 * (uretprobe), at which the unwinding of a C++ exception terminates the program.
 */
static int uprobe_attach(int file, uint64_t offset, int program, struct error *e)
{
	char path[64];
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.uprobe_path = (uintptr_t)path,
	};
	int fd, err = perf_event_uprobe(&attr, offset, e);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	/* On whatever CPU it is opened, the program runs on all. */
	fd = perf_event_open(&attr, -1, 0);
	if (fd < 0)
		return perf_event_error(e, -fd, "calls of a function (uprobe)");
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		int code = errno;

		close(fd);
		return perf_event_error(e, code, "calls of a function (uprobe)");
	}
	return fd;
}

int calls_attach(struct calls *calls, const struct sample_bpf *bpf,
		 const struct capture_function *function, struct error *e)
{
	int fd = program_attach(bpf->progs.exit_function);

	calls->max = memory_available() / CALLS_SHARE / sizeof(struct timed_wait);
	calls->fds = calloc(function->return_count + 2, sizeof(*calls->fds));
	if (fd < 0)
		return error_set(e, -fd, "cannot follow the ends of threads");
	if (!calls->fds) {
		close(fd);
		return error_no_memory(e);
	}
	calls->fds[calls->fd_count++] = fd;
	/* The entry last: each call that is seen to begin is to be seen to end. */
	for (size_t i = 0; i <= function->return_count; i++) {
		bool enters = i == function->return_count;

		fd = uprobe_attach(function->file, enters ? function->offset : function->returns[i],
				   bpf_program__fd(enters ? bpf->progs.enter_function
							  : bpf->progs.leave_function),
				   e);
		if (fd < 0)
			return fd;
		calls->fds[calls->fd_count++] = fd;
	}
	return 0;
}

int calls_take(void *context, void *data, size_t size)
{
	const struct call_record *record = data;
	struct calls *calls = context;
	struct counted call = { .waiting = 1, .user_depth = 1 };
	uint64_t pc;
	uint32_t number;
	int err;

	if (size < sizeof(*record))
		return 0;
	if (calls->counts.waits.count == calls->max) {
		calls->lost++;
		return 0;
	}
	pc = record->pc;
	call.id = record->id;
	call.first_ns = record->since_ns;
	call.count = record->until_ns - record->since_ns ?: 1;
	err = counts_add(&calls->counts, &call, &pc, &number);
	return err
		       ?: wait_list_add(&calls->counts.waits, number, call.first_ns, call.count,
					WAIT_NO_CPU);
}

void calls_stop(struct calls *calls)
{
	while (calls->fd_count)
		close(calls->fds[--calls->fd_count]);
	free(calls->fds);
	calls->fds = NULL;
}

void calls_free(struct calls *calls)
{
	calls_stop(calls);
	counts_free(&calls->counts);
	*calls = (struct calls){ 0 };
}
