// SPDX-License-Identifier: GPL-2.0-only
/*
 * Burns CPU time where the meaning of an address or a number changes, and prints for each stretch
 *   phase TID NAME START END
 * in ns since the epoch. NAME is a function of the stack, or the thread's name.
 *   changes libraries MS COUNT ONE TWO   in a library, which is loaded for it, in the function
 *                                        that has the file's name without ".so"
 *   changes replaced MS COUNT ONE TWO    the same; each is moved to the same path, ONE.moved, first
 *   changes names MS COUNT ONE TWO       under two names that prctl(2) gives in turn
 *   changes exec MS COUNT FILE...        under the first file's name; then becomes the others
 *   changes thread-exec MS COUNT FILE... the same by a thread that is not the first
 *   changes vfork MS COUNT FILE...       COUNT times in a child of vfork(2), which becomes FILE
 *   changes heat MS COUNT                in COUNT threads, one after the other
 *   changes code MS COUNT FILE           prints "pid PID"; in code that it makes, with its names in
 *                                        /tmp/perf-PID.map; then it becomes FILE and does so again,
 *                                        at the same address
 */
#include <dlfcn.h>
#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t stretch_ns;
static int count;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * 1000000000ULL + used.tv_nsec;
}

/*
 * All that burns ends when the thread has used this much CPU time, so that there are ticks however
 * many others want the CPU: some 100 us of work between two looks at the clock. It takes the times
 * of its start and end itself: whoever loses the CPU before or after it may get it back with a
 * tick.
 */
typedef void burner(uint64_t until_ns, uint64_t times_ns[2]);

burner burn;

static volatile unsigned long sink;

void burn(uint64_t until_ns, uint64_t times_ns[2])
{
	times_ns[0] = now_ns();
	while (cpu_ns() < until_ns)
		for (int i = 0; i < 100000; i++)
			sink += i;
	times_ns[1] = now_ns();
}

/* One write(2): it is whole, whoever else writes. */
static void phase(const char *name, burner *work)
{
	uint64_t times_ns[2];
	char text[256];
	int size;

	work(cpu_ns() + stretch_ns, times_ns);
	size = snprintf(text, sizeof(text), "phase %ld %s %llu %llu\n", syscall(SYS_gettid), name,
			(unsigned long long)times_ns[0], (unsigned long long)times_ns[1]);
	if (write(STDOUT_FILENO, text, size) != size)
		err(1, "write");
}

static void run_libraries(char **files, int replaced)
{
	char names[2][64], path[1024], moved[8192];
	void *library;
	burner *work;

	for (int i = 0; i < 2; i++) {
		const char *slash = strrchr(files[i], '/');

		snprintf(names[i], sizeof(names[i]), "%s", slash ? slash + 1 : files[i]);
		names[i][strcspn(names[i], ".")] = '\0';
	}
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s", files[i % 2]);
		if (replaced) {
			snprintf(path, sizeof(path), "%s.moved", files[0]);
			snprintf(moved, sizeof(moved), "cp %s %s.new && mv %s.new %s", files[i % 2],
				 path, path, path);
			if (system(moved))
				errx(1, "%s", moved);
		}
		library = dlopen(path, RTLD_NOW);
		work = library ? (burner *)dlsym(library, names[i % 2]) : NULL;
		if (!work)
			errx(1, "%s", dlerror());
		phase(names[i % 2], work);
		dlclose(library);
	}
}

static void run_names(char **names)
{
	for (int i = 0; i < count; i++) {
		prctl(PR_SET_NAME, names[i % 2]);
		phase(names[i % 2], burn);
	}
}

static void own_name(char name[static 16])
{
	prctl(PR_GET_NAME, name);
}

/* Arguments: MODE MS COUNT FILE... The next program gets the rest of the files. */
static void *become(void *argv)
{
	char **arguments = argv, *next[64], name[16];
	int i;

	own_name(name);
	phase(name, burn);
	if (!arguments[3])
		exit(0);
	next[0] = arguments[3];
	for (i = 0; i < 3; i++)
		next[i + 1] = arguments[i];
	for (i = 4; arguments[i] && i < 60; i++)
		next[i] = arguments[i];
	next[i] = NULL;
	execv(next[0], next);
	err(1, "%s", next[0]);
}

static void run_thread_exec(char **arguments)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, become, arguments))
		errx(1, "no thread");
	pthread_join(thread, NULL);
}

static void run_vfork(char **arguments)
{
	for (volatile int i = 0; i < count; i++) {
		pid_t child = vfork();

		if (child == 0) {
			char name[16];

			own_name(name);
			phase(name, burn);
			execl(arguments[3], arguments[3], "exec", arguments[1], "1", NULL);
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
}

static void *warm(void *unused)
{
	char name[16];

	(void)unused;
	own_name(name);
	phase(name, burn);
	return NULL;
}

static void run_heat(void)
{
	for (int i = 0; i < count; i++) {
		pthread_t thread;
		char name[32];

		snprintf(name, sizeof(name), "heat-%d", i);
		prctl(PR_SET_NAME, name); /* a thread has the name of who makes it */
		if (pthread_create(&thread, NULL, warm, NULL))
			errx(1, "no thread");
		pthread_join(thread, NULL);
	}
}

static int (*made)(long turns);

/* About so long: a turn takes a nanosecond or less. */
static void burn_made(uint64_t until_ns, uint64_t times_ns[2])
{
	long turns = (long)(until_ns - cpu_ns());

	times_ns[0] = now_ns();
	made(turns);
	times_ns[1] = now_ns();
}

static void run_code(char **arguments)
{
	/* mov rax, rdi; 1: dec rax; jnz 1b; ret */
	static const unsigned char code[] = {
		0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3
	};
	void *at = mmap((void *)0x200000000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	char path[64], name[32];
	FILE *map;

	if (at == MAP_FAILED)
		err(1, "mmap");
	memcpy(at, code, sizeof(code));
	made = (int (*)(long))at;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(name, sizeof(name), "made_%s", arguments[3] ? "first" : "last");
	unlink(path);
	map = fopen(path, "w");
	if (!map)
		err(1, "%s", path);
	fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof(code), name);
	fclose(map);
	printf("pid %d\n", getpid());
	fflush(stdout);
	phase(name, burn_made);
	if (!arguments[3])
		return;
	execl(arguments[3], arguments[3], "code", arguments[1], arguments[2], NULL);
	err(1, "%s", arguments[3]);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[1] : "";

	stretch_ns = argc > 3 ? strtod(argv[2], NULL) * 1e6 : 0;
	count = argc > 3 ? atoi(argv[3]) : 0;
	if (strcmp(mode, "libraries") == 0)
		run_libraries(argv + 4, 0);
	else if (strcmp(mode, "replaced") == 0)
		run_libraries(argv + 4, 1);
	else if (strcmp(mode, "names") == 0)
		run_names(argv + 4);
	else if (strcmp(mode, "exec") == 0)
		become(argv + 1);
	else if (strcmp(mode, "thread-exec") == 0)
		run_thread_exec(argv + 1);
	else if (strcmp(mode, "vfork") == 0)
		run_vfork(argv + 1);
	else if (strcmp(mode, "heat") == 0)
		run_heat();
	else if (strcmp(mode, "code") == 0)
		run_code(argv + 1);
	else
		errx(2, "changes MODE MS COUNT ...");
	return 0;
}
