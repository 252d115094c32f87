// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod_cost [OPTION...] COMMAND ARG...: measures the cost of profil.ko, for tests/bench/kmod.sh.
 * Prints lines of NAME=NUMBER; those in ns are real time, because interrupts and the kernel's own
 * threads cost time, too. Without one of these, nothing is profiled:
 *
 *   -d           by /dev/profil
 *   -p           by profil(2) or sprofil(2) of libprofil, which is preloaded
 *
 * PROFIL_HZ is the rate then, and these options apply:
 *
 *   -e           the regions have none of this program's code (elsewhere)
 *   -r REGIONS   the number of regions
 *   -w           cells have 32 bits
 *   -a           as root: no other process runs (alone)
 *
 * The commands:
 *
 *   tick loop|memory|kernel           fixed work: instructions without memory; with 2 MiB of
 *                                     memory; mostly in the kernel
 *
 *   onoff THREADS TIMES               SET and OFF, once, and then TIMES again
 *
 *   crowd PROCESSES THREADS TURNS     processes with THREADS threads, each with its own SET; then
 *                                     each spins for TURNS turns
 *
 *   family TIMES                      fork, fork and exec, and new threads, TIMES times each
 *
 *   switch threads|processes TURNS    two that send a byte to and fro over pipes; each process is
 *                                     profiled
 */
#include "kmod_device.h"

#include <inttypes.h>
#include <sched.h>

#include "tests/bench/work.h"

extern char __executable_start[]; /* of the program; from the linker */

static struct {
	bool device, profil, elsewhere, wide, alone;
	unsigned int regions;
} options = { .regions = 1 };

static unsigned long number_of(const char *word)
{
	char *end;
	unsigned long number = strtoul(word, &end, 10);

	errno = EINVAL;
	need(*word && !*end, word);
	return number;
}

static void give(const char *prefix, const char *name, int64_t number)
{
	printf("%s%s=%" PRId64 "\n", prefix, name, number);
}

/* Before what else there is, kernel threads too. */
static void be_alone(void)
{
	struct sched_param param = { .sched_priority = 1 };

	if (options.alone)
		need(sched_setscheduler(0, SCHED_FIFO, &param) == 0, "sched_setscheduler");
}

/*
 * The kernel's own ticks, of which there are up to 1000 in a second, come at the same times then.
 */
static void wait_for_round_time(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC) / 100000000 * 100000000 + 200500000;
	struct timespec time = { now / 1000000000, now % 1000000000 };

	need(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == 0, "clock_nanosleep");
}

/* --- tick --- */

#define REGION_CODE  (256U << 10) /* bytes */
#define REGION_CELLS 4096U	  /* bytes */
#define SCALE	     (0x10000U / (REGION_CODE / REGION_CELLS))

static struct prof *make_regions(size_t middle, unsigned int count)
{
	struct prof *regions = calloc(count, sizeof(*regions));

	need(regions, "calloc");
	middle -= REGION_CODE / 2; /* in the middle of a region */
	if (options.elsewhere)
		middle = (size_t)(count / 2 + 1) * REGION_CODE;
	for (unsigned int i = 0; i < count; i++) {
		regions[i] = (struct prof){
			.pr_base = malloc(REGION_CELLS),
			.pr_size = REGION_CELLS,
			.pr_off = middle + (size_t)i * REGION_CODE -
				  (size_t)(count / 2) * REGION_CODE,
			.pr_scale = SCALE,
		};
		need(regions[i].pr_base, "malloc");
		memset(regions[i].pr_base, 0, REGION_CELLS); /* it is there when a tick comes */
	}
	return regions;
}

static void device_on(const struct prof *from, unsigned int count)
{
	struct profil_device_region *regions = calloc(count, sizeof(*regions));

	need(regions, "calloc");
	for (unsigned int i = 0; i < count; i++)
		regions[i] = (struct profil_device_region){
			.first = from[i].pr_off,
			.last = from[i].pr_off + REGION_CODE - 1,
			.offset = from[i].pr_off,
			.buffer = address(from[i].pr_base),
			.bufsiz = from[i].pr_size,
			.scale = from[i].pr_scale,
		};
	need(set_regions(options.wide ? PROFIL_WIDE : 0, regions, count) == 0, "SET");
	free(regions);
}

static void all_on(size_t middle)
{
	struct prof *regions = make_regions(middle, options.regions);

	if (options.device)
		device_on(regions, options.regions);
	if (options.profil)
		need(sprofil(regions, options.regions, NULL,
			     options.wide ? PROF_UINT : PROF_USHORT) == 0,
		     "sprofil");
}

static char zeros[1 << 20];

static void in_kernel(void)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	need(zero >= 0, "/dev/zero");
	for (int i = 0; i < 100; i++)
		need(read(zero, zeros, sizeof(zeros)) == sizeof(zeros), "read");
	close(zero);
}

static void loop(void)
{
	spin_hot(50000000); /* of two instructions */
}

static void use_memory(void)
{
	work_for(60);
}

static const struct work {
	const char *name;
	void (*run)(void);
	void *code; /* where its instructions are that take the time */
} works[] = {
	{ "loop", loop, __executable_start },
	{ "memory", use_memory, __executable_start },
	{ "kernel", in_kernel, read },
};

static void time_work(const struct work *work)
{
	uint64_t begin;

	work_prepare();
	memset(zeros, 1, sizeof(zeros));
	all_on((size_t)work->code);
	be_alone();
	wait_for_round_time();
	begin = clock_ns(CLOCK_MONOTONIC);
	work->run();
	give("", "work_ns", clock_ns(CLOCK_MONOTONIC) - begin);
	if (options.device)
		give("", "ticks", query().ticks);
}

static void tick(char **args)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (strcmp(args[0], works[i].name) == 0) {
			time_work(&works[i]);
			return;
		}
	errno = EINVAL;
	need(false, args[0]);
}

/* --- onoff --- */

static void *wait_for_end(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void start_waiting(unsigned long threads)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	while (threads--)
		need(pthread_create(&thread, &attributes, wait_for_end, NULL) == 0,
		     "pthread_create");
}

static void on_and_off(const char *which)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), middle, end;

	turn_on(cells32);
	middle = clock_ns(CLOCK_MONOTONIC);
	need(turn_off() == 0, "OFF");
	end = clock_ns(CLOCK_MONOTONIC);
	give(which, "set_ns", middle - begin);
	give(which, "off_ns", end - middle);
}

static void onoff(char **args)
{
	unsigned long times = number_of(args[1]);

	start_waiting(number_of(args[0]) - 1);
	device();
	on_and_off("first_");
	while (times--)
		on_and_off("");
}

/* --- crowd --- */

struct member {
	uint64_t cpu_ns, most_ns; /* of the work alone; with the calls around it */
	uint64_t ticks;		  /* between these, and so for a time between the two */
	uint64_t pinned_kib;
};

/* Each ends when all of the crowd have come so far. */
enum {
	BORN,
	ON,
	DONE,
	PHASES
};

static struct crowd {
	unsigned long processes, threads, turns;
	struct member *members;
	int phases[PHASES][2]; /* pipes that are closed when the phase begins */
	int there[2];	       /* a byte from each that has come to the end of a phase */
} crowd;

/* Of lines "NAME: NUMBER kB" in a file of /proc, the sum. */
static uint64_t sum_kib(const char *path, const char *const *names)
{
	FILE *file = fopen(path, "r");
	char name[64];
	uint64_t sum = 0;
	char line[256];
	unsigned long kib;

	need(file, path);
	while (fgets(line, sizeof(line), file))
		for (size_t i = 0; names[i]; i++)
			if (sscanf(line, "%63[^:]: %lu kB", name, &kib) == 2 &&
			    strcmp(name, names[i]) == 0)
				sum += kib;
	fclose(file);
	return sum;
}

static uint64_t pinned_kib(void)
{
	static const char *const names[] = { "VmLck", "VmPin", NULL };

	return sum_kib("/proc/self/status", names);
}

static uint64_t locked_kib(void)
{
	static const char *const names[] = { "Mlocked", "Unevictable", NULL };

	return sum_kib("/proc/meminfo", names);
}

static uint64_t used_kib(void)
{
	static const char *const names[] = { "Slab", "Percpu", NULL };

	return sum_kib("/proc/meminfo", names);
}

static void tell_and_wait(int phase)
{
	char byte;

	need(write(crowd.there[1], "", 1) == 1, "write");
	need(read(crowd.phases[phase][0], &byte, 1) == 0, "read");
}

static uint64_t ticks_so_far(void)
{
	return options.device ? query().ticks : 0;
}

static void work_in_crowd(struct member *member)
{
	uint64_t before = 0, cpu = 0, ticks = 0;

	/* Twice, for what these need has to be brought into memory the first time. */
	for (int i = 0; i < 2; i++) {
		before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		ticks = ticks_so_far();
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	spin_hot(crowd.turns);
	member->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	member->ticks = ticks_so_far() - ticks;
	member->most_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	member->pinned_kib = pinned_kib();
}

static void live_in_crowd(struct member *member)
{
	for (int phase = 0; phase < PHASES; phase++)
		close(crowd.phases[phase][1]);
	start_waiting(crowd.threads - 1);
	device();
	be_alone();
	cells32[0] = 0; /* it is there when a tick comes */
	spin_hot(1);
	tell_and_wait(BORN);
	if (options.device)
		turn_on(cells32);
	tell_and_wait(ON);
	work_in_crowd(member);
	tell_and_wait(DONE);
	_exit(wrong);
}

static void wait_for_crowd(void)
{
	char byte;

	for (unsigned long i = 0; i < crowd.processes; i++)
		need(read(crowd.there[0], &byte, 1) == 1, "read");
}

/* Returns how long it took, in ns. */
static uint64_t begin_phase(int phase)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	close(crowd.phases[phase][1]);
	wait_for_crowd();
	return clock_ns(CLOCK_MONOTONIC) - begin;
}

static void make_crowd(void)
{
	crowd.members = shared_memory(crowd.processes * sizeof(*crowd.members));
	need(pipe(crowd.there) == 0, "pipe");
	for (int phase = 0; phase < PHASES; phase++)
		need(pipe(crowd.phases[phase]) == 0, "pipe");
	for (unsigned long i = 0; i < crowd.processes; i++) {
		pid_t child = fork();

		need(child >= 0, "fork");
		if (child == 0)
			live_in_crowd(&crowd.members[i]);
	}
	wait_for_crowd();
}

static void end_crowd(void)
{
	int status;

	close(crowd.phases[DONE][1]);
	while (wait(&status) > 0)
		expect(status == 0, "a process of the crowd: status %#x", status);
}

static void tell_of_crowd(void)
{
	struct member sum = { 0 };

	for (unsigned long i = 0; i < crowd.processes; i++) {
		sum.cpu_ns += crowd.members[i].cpu_ns;
		sum.most_ns += crowd.members[i].most_ns;
		sum.ticks += crowd.members[i].ticks;
		sum.pinned_kib += crowd.members[i].pinned_kib;
	}
	give("", "cpu_ns", sum.cpu_ns);
	give("", "most_ns", sum.most_ns);
	give("", "ticks", sum.ticks);
	give("", "pinned_kib", sum.pinned_kib);
}

static void run_crowd(char **args)
{
	uint64_t locked = locked_kib();
	uint64_t used;

	crowd.processes = number_of(args[0]);
	crowd.threads = number_of(args[1]);
	crowd.turns = number_of(args[2]);
	make_crowd();
	used = used_kib();
	give("", "set_ns", begin_phase(BORN));
	give("", "taken_kib", used_kib() - used);
	begin_phase(ON);
	give("", "locked_kib", locked_kib() - locked);
	tell_of_crowd();
	end_crowd();
}

/* --- family --- */

static void fork_once(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void exec_once(void)
{
	pid_t child = fork();

	if (child == 0) {
		/* It fails in a process that is no other than before, but for this. */
		execl("/proc/self/exe", "kmod_cost", "nothing", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

static void *do_nothing(void *unused)
{
	return unused;
}

static void thread_once(void)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, do_nothing, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
}

/* The first ones are not like those that follow. */
static void time_each(const char *name, unsigned long times, void (*once)(void))
{
	uint64_t begin = 0;

	for (unsigned long i = 0; i < times + 5; i++) {
		if (i == 5)
			begin = clock_ns(CLOCK_MONOTONIC);
		once();
	}
	give(name, "_ns", (clock_ns(CLOCK_MONOTONIC) - begin) / times);
}

static void family(char **args)
{
	unsigned long times = number_of(args[0]);

	all_on((size_t)__executable_start);
	time_each("fork", times, fork_once);
	time_each("exec", times, exec_once);
	time_each("thread", times, thread_once);
}

/* --- switch --- */

static int there[2], back[2];

static void *answer(void *unused)
{
	char byte;

	while (read(there[0], &byte, 1) == 1)
		need(write(back[1], &byte, 1) == 1, "write");
	return unused;
}

static void start_answering(const char *who)
{
	pthread_t thread;

	need(pipe(there) == 0 && pipe(back) == 0, "pipe");
	if (strcmp(who, "threads") == 0) {
		start_threads(&thread, 1, answer);
	} else if (fork() == 0) {
		close(there[1]);
		all_on((size_t)__executable_start);
		answer(NULL);
		_exit(0);
	}
}

static void switch_tasks(char **args)
{
	unsigned long turns = number_of(args[1]);
	uint64_t begin = 0;
	char byte = 0;

	be_alone();
	start_answering(args[0]);
	all_on((size_t)__executable_start);
	for (unsigned long i = 0; i < turns + 100; i++) {
		if (i == 100)
			begin = clock_ns(CLOCK_MONOTONIC);
		need(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "a pipe");
	}
	give("", "turn_ns", (clock_ns(CLOCK_MONOTONIC) - begin) / turns);
}

/* --- --- */

/* For others to run beside. */
static void stay(char **args)
{
	(void)args;
	all_on((size_t)__executable_start);
	puts("ready");
	fflush(stdout);
	pause();
}

static void nothing(char **args)
{
	(void)args;
}

static const struct command {
	const char *name;
	int args;
	void (*run)(char **args);
} commands[] = {
	{ "tick", 1, tick },	 { "onoff", 2, onoff },		{ "crowd", 3, run_crowd },
	{ "family", 1, family }, { "switch", 2, switch_tasks }, { "nothing", 0, nothing },
	{ "stay", 0, stay },
};

static bool parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "adepr:w")) != -1)
		switch (option) {
		case 'a':
			options.alone = true;
			break;
		case 'd':
			options.device = true;
			break;
		case 'e':
			options.elsewhere = true;
			break;
		case 'p':
			options.profil = true;
			break;
		case 'r':
			options.regions = number_of(optarg);
			break;
		case 'w':
			options.wide = true;
			break;
		default:
			return false;
		}
	return true;
}

int main(int argc, char **argv)
{
	if (parse(argc, argv))
		for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
			if (argc > optind && strcmp(argv[optind], commands[i].name) == 0 &&
			    argc - optind == commands[i].args + 1) {
				commands[i].run(argv + optind + 1);
				return wrong;
			}
	fprintf(stderr, "usage: kmod_cost [-adepw] [-r REGIONS] "
			"tick WORK | onoff THREADS TIMES | crowd PROCESSES THREADS TURNS | "
			"family TIMES | switch WHO TURNS | stay\n");
	return 2;
}
