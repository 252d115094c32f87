// SPDX-License-Identifier: GPL-2.0-only
#include "capture/requirements.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/perf_event.h"
#include "capture/program.h"
#include "capture/target.h"
#include "util/clock.h"
#include "util/elf_header.h"
#include "util/file.h"
#include "util/proc.h"

#define SECCOMP_FILTER 2 /* of /proc/PID/status, see proc(5) */

#define TRIAL_HZ 999
/* Bound: pace. */
#define TRIAL_NS     (NS_PER_S / 20)
#define TRIAL_NS_MAX NS_PER_S /* where the machine stands still */

static int read_sysctl(const char *name)
{
	char path[128], text[32];
	int value;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	if (file_read_line(path, text, sizeof(text)) || sscanf(text, "%d", &value) != 1)
		return SYSCTL_UNKNOWN;
	return value;
}

void requirements_gather(struct requirement_facts *f)
{
	const struct bpf_insn smallest[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	/* Of the type that samples. */
	int program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "check", "GPL", smallest,
				    sizeof(smallest) / sizeof(*smallest), NULL);
	FILE *symbols = fdopen(file_open_kallsyms(), "r");
	struct proc_status own;
	uint64_t address = 0;
	struct utsname name;
	struct rlimit limit;
	ssize_t length;

	*f = (struct requirement_facts){ 0 };
	if (uname(&name) == 0) {
		snprintf(f->release, sizeof(f->release), "%.64s", name.release);
		snprintf(f->machine, sizeof(f->machine), "%.64s", name.machine);
	}
	length = readlink("/proc/self/exe", f->program, sizeof(f->program) - 1);
	if (length < 0)
		snprintf(f->program, sizeof(f->program), "PROGRAM");
	proc_read_status(AT_FDCWD, "/proc/self/status", &own);
	f->effective = own.effective;
	f->bounding = own.bounding;
	f->seccomp = own.seccomp == SECCOMP_FILTER;
	f->user_namespace = proc_own_namespace("ns/user");
	f->bpf_code = program < 0 ? -program : 0;
	file_close(program);
	f->perf_code = -perf_event_try(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	f->cycles = perf_event_try(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES) == 0;
	f->btf = access(KERNEL_BTF, R_OK) == 0;
	/* Not zeros: */
	f->kernel_addresses = symbols && fscanf(symbols, "%" SCNx64, &address) == 1 && address;
	file_close_stream(symbols);
	file_read_line("/sys/kernel/security/lockdown", f->lockdown, sizeof(f->lockdown));
	f->paranoid = read_sysctl("perf_event_paranoid");
	f->unprivileged_bpf = read_sysctl("unprivileged_bpf_disabled");
	f->kptr_restrict = read_sysctl("kptr_restrict");
	f->sample_rate = read_sysctl("perf_event_max_sample_rate");
	f->stack_depth = read_sysctl("perf_event_max_stack");
	f->open_files = getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_max;
}

/* --- A trial --- */

static struct requirement *add_failure(struct requirements *r, const char *name,
				       const struct error *e)
{
	struct requirement *q = requirement_add(r, name, REQUIREMENT_NO, "%s", "");

	q->finding = *e;
	return q;
}

/* Adds whether the states of threads can be recorded, and for what they wait. */
static void try_wall(struct requirements *r)
{
	const pid_t self = getpid();
	struct capture_options options = {
		.pids = &self,
		.pid_count = 1,
		.frequency = TRIAL_HZ,
		.stacks = CAPTURE_STACKS_FP, /* reads no files */
		.wall = true,
		.waits = true,
	};
	struct capture *c = NULL;
	struct requirement *q;
	struct error e;

	if (capture_start(&options, &c, &e)) {
		add_failure(r, "wall time", &e)->state = REQUIREMENT_LIMITED;
		return;
	}
	requirement_add(r, "wall time", REQUIREMENT_OK,
			"record --wall works: how long each thread was on a CPU, runnable and "
			"blocked");
	if (capture_no_waits(c)) {
		q = requirement_add(r, "waits", REQUIREMENT_LIMITED,
				    "for what threads are blocked, and where, is unknown: %s",
				    capture_no_waits(c));
		error_hint(&q->finding, "boot Linux 5.18 or newer");
	} else {
		requirement_add(r, "waits", REQUIREMENT_OK,
				"for what threads are blocked, and where, is recorded, too");
	}
	capture_free(c);
}

int requirements_try(const struct requirement_facts *f, struct requirements *r, struct error *e)
{
	const pid_t self = getpid();
	struct capture_options options = {
		.pids = &self,
		.pid_count = 1,
		.frequency =
			f->sample_rate > 0 && f->sample_rate < TRIAL_HZ ? f->sample_rate : TRIAL_HZ,
	};
	struct capture_totals totals;
	const struct requirement *cause = NULL;
	struct capture *c = NULL, *tick = NULL;
	uint64_t start_ns, used_ns = 0;
	struct error why;
	int err;

	/* The recording fails at the first requirement that is not met, too. */
	for (size_t i = 0; i < r->count && !cause; i++)
		if (r->list[i].state == REQUIREMENT_NO)
			cause = &r->list[i];
	err = capture_start(&options, &c, e);
	/* Uses CPU time until there was a tick: on a busy machine it takes longer. */
	start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (!err && (used_ns < TRIAL_NS || (!capture_ticks(c) && used_ns < TRIAL_NS_MAX)))
		used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	if (!err && !capture_ticks(c)) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "the program is loaded, but there are no ticks");
		error_hint(e, "try another clock: -e cpu-clock");
		err = -ENODATA;
	}
	err = err ?: capture_stop(c, e);
	if (err) {
		struct requirement *q = add_failure(r, "recording", e);

		if (cause) /* its hint is more precise */
			error_hint(&q->finding, "%s", cause->finding.hint);
	} else {
		capture_totals(c, &totals);
		requirement_add(r, "recording", REQUIREMENT_OK,
				"works: %" PRIu64 " ticks of this process in %.2f s, %" PRIu64
				" ns each",
				totals.ticks, totals.duration_ns / 1e9, totals.bpf_ns_per_tick);
		/* Whether the scheduler's tick works as the clock. */
		options.event = CAPTURE_TICK;
		options.frequency = 0;
		if (capture_start(&options, &tick, &why))
			add_failure(r, "tick", &why)->state = REQUIREMENT_LIMITED;
		else
			requirement_add(r, "tick", REQUIREMENT_OK,
					"-e tick works: %.0f Hz, no interrupt of its own",
					(double)NS_PER_S / capture_tick_ns(tick));
		capture_free(tick);
		if (capture_knows_waiting(c))
			requirement_add(r, "delay", REQUIREMENT_OK,
					"ticks know how many threads wait for their CPU");
		else
			error_hint(&requirement_add(r, "delay", REQUIREMENT_LIMITED,
						    "ticks do not know how many threads wait for "
						    "their CPU: the kernel was built without "
						    "CONFIG_FAIR_GROUP_SCHED")
					    ->finding,
				   "boot a kernel of a distribution, or one built with "
				   "CONFIG_FAIR_GROUP_SCHED=y");
		try_wall(r);
	}
	capture_free(c);
	return err;
}

/* --- One process --- */

int requirements_of_process(pid_t pid, const struct requirement_facts *f, struct requirements *r,
			    struct error *e)
{
	const struct proc_path exe = proc_path(pid, 0, "exe");
	char line[256], comm[64] = "?", inside[64] = "", program[PATH_MAX] = "";
	int err = target_check(pid, false, false, e), fd;
	struct proc_status status;
	struct requirement *q;

	if (err) {
		if (err == -ESRCH && (kill(pid, 0) == 0 || errno == EPERM) &&
		    access(proc_path(pid, 0, "").text, F_OK)) {
			error_set(e, 0, "process %d exists, but is hidden in /proc", pid);
			error_hint(e, "run it as root, or: mount -o remount,hidepid=0 /proc");
		}
		add_failure(r, "process", e);
		return err;
	}
	file_read_line(proc_path(pid, 0, "comm").text, comm, sizeof(comm));
	proc_read_status(AT_FDCWD, proc_path(pid, 0, "status").text, &status);
	if (status.pid_count > 1)
		snprintf(inside, sizeof(inside), ", in a container, where it is %d",
			 status.own_pid);
	requirement_add(r, "process", REQUIREMENT_OK, "%d (%s)%s", pid, comm, inside);

	err = file_read_line(proc_path(pid, 0, "maps").text, line, sizeof(line));
	if (err == -EACCES || err == -EPERM) {
		q = requirement_add(r, "access", REQUIREMENT_LIMITED,
				    "its mappings cannot be read: its functions get no names");
		requirement_hint(&q->finding, f, CAP_SYS_PTRACE);
	} else {
		requirement_add(r, "access", REQUIREMENT_OK, "its mappings can be read");
	}

	fd = open(exe.text, O_RDONLY | O_CLOEXEC);
	if (readlink(exe.text, program, sizeof(program) - 1) < 0)
		snprintf(program, sizeof(program), "its program");
	if (fd < 0) {
		q = requirement_add(r, "program", REQUIREMENT_LIMITED,
				    "%s cannot be read: its functions get no names", program);
		requirement_hint(&q->finding, f, CAP_SYS_PTRACE);
		return 0;
	}
	requirement_add(r, "program", REQUIREMENT_OK, "%s%s", program,
			elf_bits(fd) == 32 ? ", of 32 bits" : "");
	close(fd);
	return 0;
}
