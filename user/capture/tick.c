// SPDX-License-Identifier: GPL-2.0-only
#include "capture/tick.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/events.h"
#include "capture/privilege.h"
#include "tick.skel.h"
#include "util/clock.h"
#include "util/file.h"

/* The clock that does as well, and asks less of the kernel. */
static const char *other_clock(const struct capture_options *options)
{
	return events_are_of_cpus(options) ? "cpu-clock" : "task-clock";
}

static int refuse_group(const struct tick *tick, struct error *e)
{
	error_set_kind(e, ERROR_USAGE, 0, "-e tick cannot tell the processes of a control group");
	error_mend(e, "use -e %s", other_clock(tick->options));
	return -EINVAL;
}

static uint64_t resolution_ns(clockid_t clock)
{
	struct timespec resolution;

	clock_getres(clock, &resolution); /* fails for a bad clock only */
	return resolution.tv_sec * NS_PER_S + resolution.tv_nsec;
}

/* Where a variable lies in the section of those that each CPU has. */
static int find_cpu_variable(const struct btf *btf, const char *name, int64_t *offset)
{
	int section = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	int variable = btf__find_by_name_kind(btf, name, BTF_KIND_VAR);
	const struct btf_type *type = btf__type_by_id(btf, section);

	for (int i = 0; section > 0 && variable > 0 && i < btf_vlen(type); i++)
		if (btf_var_secinfos(type)[i].type == (uint32_t)variable) {
			*offset = btf_var_secinfos(type)[i].offset;
			return 0;
		}
	return -ENOENT;
}

static int find_variables(struct tick *tick, struct error *e)
{
	struct btf *btf = btf__parse_raw("/sys/kernel/btf/vmlinux");
	int64_t bases;
	int err = btf ? 0 : -errno;

	err = err ?: find_cpu_variable(btf, "hrtimer_bases", &bases);
	err = err ?: find_cpu_variable(btf, "tick_cpu_sched", &tick->timer_distance);
	err = err ?: find_cpu_variable(btf, "__irq_regs", &tick->regs_distance);
	btf__free(btf);
	if (err) {
		error_set_kind(e, ERROR_KERNEL_LACKS, -err,
			       "cannot find the scheduler's tick (hrtimer_bases, tick_cpu_sched, "
			       "__irq_regs in the kernel's BTF)");
		error_mend(e, "it takes CONFIG_DEBUG_INFO_BTF; use -e %s",
			   other_clock(tick->options));
		return err;
	}
	tick->timer_distance -= bases;
	tick->regs_distance -= bases;
	return 0;
}

int tick_prepare(struct tick *tick, const struct capture_options *options, struct error *e)
{
	unsigned int hz;

	/* Coarse clocks go forward at each tick. */
	tick->period_ns = resolution_ns(CLOCK_MONOTONIC_COARSE);
	tick->options = options;
	if (options->target == CAPTURE_CGROUP)
		return refuse_group(tick, e);
	hz = (NS_PER_S + tick->period_ns / 2) / tick->period_ns;
	if (options->frequency && options->frequency != hz) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "-e tick goes with the kernel's own tick, at %u Hz, not %u", hz,
			       options->frequency);
		error_mend(e, "leave out -F, or use -e %s", other_clock(options));
		return -EINVAL;
	}
	if (resolution_ns(CLOCK_MONOTONIC) >= tick->period_ns) {
		error_set_kind(
			e, ERROR_KERNEL_LACKS, 0,
			"the tick of this kernel is no timer that could be traced: it has no "
			"high-resolution timers");
		error_mend(e, "boot without highres=off, or use -e %s", other_clock(options));
		return -EOPNOTSUPP;
	}
	return find_variables(tick, e);
}

void capture_tickless_cpus(char *list, size_t size)
{
	/* A kernel that can have such CPUs, but was not told to, says "(null)". */
	if (file_read_line("/sys/devices/system/cpu/nohz_full", list, size) ||
	    !isdigit((unsigned char)list[0]))
		list[0] = '\0';
}

/* --- Programs --- */

static bool has_members(const struct tick *tick)
{
	return tick->options->target != CAPTURE_SYSTEM;
}

/* Lists those that are needed, that on the tick last; returns how many. */
static size_t choose(const struct tick *tick, struct bpf_program *programs[TICK_PROGRAMS])
{
	const struct capture_options *options = tick->options;
	size_t count = 0;

	if (has_members(tick))
		programs[count++] = tick->bpf->progs.forget;
	if (has_members(tick) && options->target != CAPTURE_THREAD && options->inherit)
		programs[count++] = tick->bpf->progs.follow;
	if (options->target == CAPTURE_COMMAND)
		programs[count++] = tick->bpf->progs.begin_at_exec;
	programs[count++] = options->stacks ? tick->bpf->progs.tick_stacks : tick->bpf->progs.tick;
	return count;
}

/* program.load */
static int load(struct program *program, unsigned int generation)
{
	struct tick *tick = (struct tick *)program;
	struct bpf_program *programs[TICK_PROGRAMS];
	struct tick_bpf *bpf = tick_bpf__open();
	size_t count;
	int err;

	(void)generation;
	if (!bpf)
		return -errno;
	tick->bpf = bpf;
	bpf->rodata->sides = tick->sample->sides;
	bpf->rodata->pid_namespace = sample_program_pid_namespace();
	bpf->rodata->tick_cpu_sched = tick->timer_distance;
	bpf->rodata->irq_regs = tick->regs_distance;
	bpf->rodata->everyone = !has_members(tick);
	bpf->rodata->one_thread = tick->options->target == CAPTURE_THREAD;
	count = choose(tick, programs);
	for (size_t i = 0; i < count; i++)
		bpf_program__set_autoload(programs[i], true);
	err = program_share_maps(bpf->obj, sample_program_object(tick->sample))
		      ?: tick_bpf__load(bpf);
	return err ?: bpf_program__fd(programs[count - 1]);
}

int tick_load(struct tick *tick, const struct sample_program *sample, struct error *e)
{
	int fd;

	tick->sample = sample;
	tick->program.load = load;
	fd = program_fd(&tick->program, 0, e);
	if (fd < 0 && e->kind == ERROR_KERNEL_LACKS)
		error_mend(e, "-e tick takes Linux 5.15 or later with BTF; use -e %s",
			   other_clock(tick->options));
	return fd < 0 ? fd : 0;
}

static int attach(struct tick *tick, const struct bpf_program *program, struct error *e)
{
	/* Of what it traces, the program itself knows the name. */
	int fd = bpf_raw_tracepoint_open(NULL, bpf_program__fd(program));

	if (fd >= 0) {
		tick->links[tick->link_count++] = fd;
		return 0;
	}
	if (fd == -EPERM || fd == -EACCES)
		return privilege_error(e, -fd, "cannot trace the scheduler's tick");
	error_set_kind(e, ERROR_KERNEL_LACKS, -fd, "cannot trace the scheduler's tick (%s)",
		       bpf_program__section_name(program));
	error_mend(e, "use -e %s", other_clock(tick->options));
	return fd;
}

int tick_begin(struct tick *tick, struct error *e)
{
	struct bpf_program *programs[TICK_PROGRAMS];
	size_t count = choose(tick, programs);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = attach(tick, programs[i], e);
	return err;
}

int tick_add(struct tick *tick, pid_t pid, struct error *e)
{
	uint32_t number = pid;
	uint32_t member = tick->options->target == CAPTURE_COMMAND ? TICK_FROM_EXEC : TICK_COUNTS;
	int err = bpf_map_update_elem(bpf_map__fd(tick->bpf->maps.members), &number, &member,
				      BPF_ANY);

	return err ? error_set(e, -err, "cannot have the ticks of process %d counted", pid) : 0;
}

void tick_remove(struct tick *tick, pid_t pid)
{
	uint32_t number = pid;

	bpf_map_delete_elem(bpf_map__fd(tick->bpf->maps.members), &number);
}

void tick_end(struct tick *tick)
{
	if (!tick->link_count)
		return;
	while (tick->link_count)
		close(tick->links[--tick->link_count]);
	/* Waits until all interrupts that were being served have ended: their ticks are counted. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

void tick_free(struct tick *tick)
{
	tick_end(tick);
	tick_bpf__destroy(tick->bpf);
	*tick = (struct tick){ 0 };
}
