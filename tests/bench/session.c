// SPDX-License-Identifier: GPL-2.0-only
/*
 * session [-b] [-f] [-o NAME] {-s SECONDS | -w ROUNDS} [PROFILER [ARG...]]: runs a profiler, ends
 * it by SIGINT, and prints what it cost, as name=value lines.
 *
 * Meanwhile it sleeps (-s), or does a fixed amount of work in this very process (-w), whose number
 * replaces an argument "SELF" of the profiler. Without a profiler the work alone is measured.
 * -b has the kernel time BPF programs; -f waits for their first tick. The profiler's output goes
 * to NAME.out and NAME.err.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

#define PATIENCE_NS (20 * NS_PER_S)   /* for a profiler that does not attach */
#define SETTLE_NS   (300 * NS_PER_MS) /* from the first perf event until all surely count */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec time = { ns / NS_PER_S, ns % NS_PER_S };

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

static void die(const char *what)
{
	fprintf(stderr, "session: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t work(unsigned long rounds)
{
	uint64_t start;

	work_prepare();
	start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	work_for(rounds);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* --- Looking at the profiler --- */

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);

	text[length > 0 ? length : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return length > 0;
}

/* Calls visit with the path of each entry of a directory. */
static void each_entry(const char *directory, void (*visit)(const char *path, void *to), void *to)
{
	char path[512];
	struct dirent *entry;
	DIR *dir = opendir(directory);

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		visit(path, to);
	}
	if (dir)
		closedir(dir);
}

static void find_perf_event(const char *path, void *to)
{
	char text[64] = "";

	if (readlink(path, text, sizeof(text) - 1) > 0 &&
	    strcmp(text, "anon_inode:[perf_event]") == 0)
		*(bool *)to = true;
}

struct bpf_cost {
	uint64_t ns, runs;
};

/* proc(5): what bpf_prog_show_fdinfo() writes about a program. */
static void add_program(const char *path, void *to)
{
	struct bpf_cost *cost = to;
	char text[1024];

	if (!read_text(path, text, sizeof(text)) || !strstr(text, "prog_id:"))
		return;
	cost->ns += field(text, "run_time_ns:");
	cost->runs += field(text, "run_cnt:");
}

/* Threads most often have one table of descriptors between them: that with the most runs counts. */
static void look_at_thread(const char *path, void *to)
{
	struct bpf_cost *most = to, cost = { 0 };
	char directory[600];

	snprintf(directory, sizeof(directory), "%s/fdinfo", path);
	each_entry(directory, add_program, &cost);
	if (cost.runs > most->runs)
		*most = cost;
}

static struct bpf_cost bpf_cost(pid_t pid)
{
	struct bpf_cost most = { 0 };
	char directory[64];

	snprintf(directory, sizeof(directory), "/proc/%d/task", pid);
	each_entry(directory, look_at_thread, &most);
	return most;
}

static void add_cpu(const char *path, void *to)
{
	char file[600], text[128];

	snprintf(file, sizeof(file), "%s/schedstat", path);
	if (read_text(file, text, sizeof(text)))
		*(uint64_t *)to += strtoull(text, NULL, 10);
}

static uint64_t cpu_ns(pid_t pid)
{
	uint64_t sum_ns = 0;
	char directory[64];

	snprintf(directory, sizeof(directory), "/proc/%d/task", pid);
	each_entry(directory, add_cpu, &sum_ns);
	return sum_ns;
}

static void enable_bpf_stats(void)
{
	union bpf_attr attr = { .enable_stats.type = BPF_STATS_RUN_TIME };

	/* Until this descriptor is closed: so there is nothing to restore. */
	if (syscall(SYS_bpf, BPF_ENABLE_STATS, &attr, sizeof(attr)) < 0)
		die("BPF_ENABLE_STATS");
}

/* --- The session --- */

static void redirect(int fd, const char *name, const char *extension)
{
	char path[4096] = "/dev/null";
	int file;

	if (name)
		snprintf(path, sizeof(path), "%s.%s", name, extension);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0 || dup2(file, fd) < 0)
		die(path);
}

/* The work stays on the last CPU; the profiler goes where the scheduler likes it. */
static void pin(void)
{
	cpu_set_t set;
	int last = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			last = cpu;
	CPU_ZERO(&set);
	CPU_SET(last, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static pid_t start(char **command, const char *output)
{
	static char self[16];
	pid_t pid;

	snprintf(self, sizeof(self), "%d", getpid());
	for (char **argument = command; *argument; argument++)
		if (strcmp(*argument, "SELF") == 0)
			*argument = self;
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	redirect(STDOUT_FILENO, output, "out");
	redirect(STDERR_FILENO, output, "err");
	/*
	 * A shell gives its background jobs an ignored SIGINT, which is how sessions are ended
	 * here.
	 */
	signal(SIGINT, SIG_DFL);
	execvp(command[0], command);
	die(command[0]);
	return -1;
}

static bool attached(pid_t pid, bool ticked)
{
	bool events = false;
	char directory[64];

	if (ticked)
		return bpf_cost(pid).runs > 0;
	snprintf(directory, sizeof(directory), "/proc/%d/fd", pid);
	each_entry(directory, find_perf_event, &events);
	return events;
}

static void wait_until_attached(pid_t pid, bool ticked)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	while (!attached(pid, ticked)) {
		if (waitpid(pid, NULL, WNOHANG) || clock_ns(CLOCK_MONOTONIC) > end) {
			fprintf(stderr, "session: the profiler ended or did not attach\n");
			kill(pid, SIGKILL);
			exit(1);
		}
		sleep_ns(NS_PER_MS / 2);
	}
}

static void print_ms(const char *name, uint64_t ns)
{
	printf("%s=%.3f\n", name, ns / 1e6);
}

/* The profiler's share of a CPU from one second after its start on, and its memory. */
static void sleep_and_watch(pid_t pid, uint64_t ns)
{
	uint64_t first = ns > 2 * NS_PER_S ? NS_PER_S : ns / 2, begin, cpu;
	char path[64], text[4096];

	sleep_ns(first);
	begin = clock_ns(CLOCK_MONOTONIC);
	cpu = cpu_ns(pid);
	sleep_ns(ns - first);
	cpu = cpu_ns(pid) - cpu;
	printf("cpu_percent=%.4f\n", cpu * 100.0 / (clock_ns(CLOCK_MONOTONIC) - begin));
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	read_text(path, text, sizeof(text));
	printf("hwm_kib=%" PRIu64 "\nanonymous_kib=%" PRIu64 "\n", field(text, "VmHWM:"),
	       field(text, "RssAnon:"));
}

static void stop(pid_t pid)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	struct rusage usage;
	int status;

	kill(pid, SIGINT);
	if (wait4(pid, &status, 0, &usage) != pid)
		die("wait4");
	print_ms("stop_ms", clock_ns(CLOCK_MONOTONIC) - begin);
	print_ms("profiler_cpu_ms",
		 (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
			 (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000);
	printf("max_kib=%ld\n", usage.ru_maxrss);
	/* perf record ends itself by the signal it was ended by. */
	printf("status=%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

int main(int argc, char **argv)
{
	bool ticked = false, usage = false;
	const char *output = NULL;
	unsigned long rounds = 0;
	uint64_t begin, ns = 0;
	pid_t pid = 0;
	int option;

	while ((option = getopt(argc, argv, "+bfo:s:w:")) != -1)
		switch (option) {
		case 'b':
			enable_bpf_stats();
			break;
		case 'f':
			ticked = true;
			break;
		case 'o':
			output = optarg;
			break;
		case 's':
			ns = strtod(optarg, NULL) * NS_PER_S;
			break;
		case 'w':
			rounds = strtoul(optarg, NULL, 10);
			break;
		default:
			usage = true;
		}
	if (usage || !ns == !rounds || (ns && optind == argc)) {
		fprintf(stderr, "usage: session [-b] [-f] [-o NAME] {-s SECONDS | -w ROUNDS} "
				"[PROFILER [ARG...]]\n");
		return 2;
	}
	begin = clock_ns(CLOCK_MONOTONIC);
	if (optind < argc) {
		pid = start(argv + optind, output);
		wait_until_attached(pid, ticked);
		print_ms("first_ms", clock_ns(CLOCK_MONOTONIC) - begin);
		if (!ticked)
			sleep_ns(SETTLE_NS);
	}
	if (rounds) {
		pin();
		print_ms("work_ms", work(rounds));
	} else {
		sleep_and_watch(pid, ns);
	}
	if (pid) {
		struct bpf_cost cost = bpf_cost(pid);

		printf("bpf_runs=%" PRIu64 "\n", cost.runs);
		if (cost.runs)
			printf("bpf_ns=%.1f\n", (double)cost.ns / cost.runs);
		stop(pid);
	}
	return 0;
}
