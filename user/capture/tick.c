// SPDX-License-Identifier: GPL-2.0-only
#include "capture/tick.h"

#include <ctype.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/events.h"
#include "capture/program.h"
#include "util/clock.h"
#include "util/file.h"

int tick_prepare(struct tick *tick, unsigned int frequency, struct kernel_types *types,
		 struct error *e)
{
	unsigned int hz;
	int64_t bases;
	int err;

	tick->tick_ns = events_tick_ns();
	hz = tick->tick_ns ? (NS_PER_S + tick->tick_ns / 2) / tick->tick_ns : 0;
	if (frequency && frequency != hz) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "-e tick uses the kernel's own tick, which has %u Hz, not %u", hz,
			       frequency);
		error_hint(e, "omit -F, or use -e cpu-clock");
		return -EINVAL;
	}
	if (clock_resolution_ns(CLOCK_MONOTONIC) >= tick->tick_ns) {
		error_set_kind(
			e, ERROR_KERNEL_LACKS, 0,
			"cannot trace the scheduler's tick: this kernel has no high-resolution "
			"timers");
		error_hint(e, "boot without highres=off, or use -e cpu-clock");
		return -EOPNOTSUPP;
	}
	err = kernel_variable_offset(types, "hrtimer_bases", &bases);
	err = err ?: kernel_variable_offset(types, "tick_cpu_sched", &tick->timer_distance);
	err = err ?: kernel_variable_offset(types, "__irq_regs", &tick->regs_distance);
	if (err) {
		error_set_kind(e, ERROR_KERNEL_LACKS, -err,
			       "cannot find the scheduler's tick (hrtimer_bases, tick_cpu_sched, "
			       "__irq_regs in the kernel's BTF)");
		error_hint(e, "it requires CONFIG_DEBUG_INFO_BTF; or use -e cpu-clock");
		return err;
	}
	tick->timer_distance -= bases;
	tick->regs_distance -= bases;
	return 0;
}

int tick_begin(struct tick *tick, const struct bpf_program *program, struct error *e)
{
	int fd = program_attach(program);

	if (fd >= 0) {
		tick->link = fd;
		return 0;
	}
	if (fd == -EPERM || fd == -EACCES)
		return program_not_permitted(e, -fd, "cannot trace the scheduler's tick");
	error_set_kind(e, ERROR_KERNEL_LACKS, -fd, "cannot trace the scheduler's tick");
	error_hint(e, "use -e cpu-clock");
	return fd;
}

void tick_end(struct tick *tick)
{
	if (!tick->link)
		return;
	close(tick->link);
	tick->link = 0;
	/* Waits for the interrupts in progress: their ticks are still counted. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

void tick_tickless_cpus(char *list, size_t size)
{
	/* "(null)": the kernel supports such CPUs, but none is configured. */
	if (file_read_line("/sys/devices/system/cpu/nohz_full", list, size) ||
	    !isdigit((unsigned char)list[0]))
		list[0] = '\0';
}
