/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the files of libprofil(3) for tests/profil/files.sh, which compiles it in several ways:
 * files HOW DIRECTORY. What was counted is printed, as "NAME COUNT" lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <profil.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char __executable_start[], etext[];

#define CELLS(bytes) (((bytes) + 1) / 2 * sizeof(unsigned short))

static int failed;

/* What every call leaves alone. */
struct state {
	sigset_t signals;
	int next_fd;
};

static int lowest_free(void)
{
	int fd = open("/", O_RDONLY);

	close(fd);
	return fd;
}

static struct state look(void)
{
	struct state s = { .next_fd = lowest_free() };

	sigprocmask(SIG_BLOCK, NULL, &s.signals);
	errno = 4321;
	return s;
}

static void compare(const struct state *before)
{
	sigset_t signals, pending;
	int code = errno;

	sigprocmask(SIG_BLOCK, NULL, &signals);
	sigpending(&pending);
	for (int i = 1; i < 65; i++)
		if (sigismember(&signals, i) != sigismember(&before->signals, i) ||
		    sigismember(&pending, i)) {
			printf("signal %d is another\n", i);
			failed = 1;
		}
	if (code != 4321 || lowest_free() != before->next_fd) {
		printf("errno %d, descriptor %d instead of %d\n", code, lowest_free(),
		       before->next_fd);
		failed = 1;
	}
}

static void result(const char *name, int err)
{
	if (!err)
		return;
	printf("%s: %s: %s\n", name, strerrorname_np(-err), profil_error());
	failed = 1;
}

static char *below(const char *directory, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

/* --- Sessions --- */

__attribute__((noinline)) static void own_code(void)
{
	for (volatile int i = 0; i < 1000000; i++)
		;
}

static void c_library(void)
{
	static char a[1 << 16], b[1 << 16];

	for (int i = 0; i < 200; i++)
		memmove(a + i, b, sizeof(a) - 200);
}

/* `dec ecx; jnz`, in memory without a file; the same for 32 and 64 bits. */
static void made_code(void *code)
{
	unsigned int rounds = 2000000;

	__asm__ volatile("call *%1" : "+c"(rounds) : "r"(code) : "cc", "memory");
}

static void *make_code(void)
{
	static const unsigned char loop[] = { 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, loop, sizeof(loop));
	return code;
}

static struct profil_region region(uintptr_t start, uintptr_t limit, unsigned int scale)
{
	return (struct profil_region){ .offset = start,
				       .bufsiz = CELLS((uint64_t)(limit - start) * scale >> 16),
				       .scale = scale };
}

/* The code of the file that has memmove(), where there is one. */
static void find_library(struct profil_region *found)
{
	struct profil_text_range *ranges;
	size_t count;
	int err = profil_text_ranges(0, &ranges, &count, sizeof(*ranges));

	result("text ranges", err);
	for (size_t i = 0; !err && i < count; i++)
		if (strstr(ranges[i].path, "/libc."))
			*found = region(ranges[i].start, ranges[i].end, 0x8000);
	if (!err)
		free(ranges);
}

static uint64_t sum(struct profil_session *s, size_t number, const struct profil_region *r)
{
	size_t n = r->bufsiz / 2;
	uint64_t *counts = calloc(n, sizeof(*counts)), total = 0;

	profil_read(s, number, counts, n);
	for (size_t i = 0; i < n; i++)
		total += counts[i];
	free(counts);
	return total;
}

static void write_session(struct profil_session *s, const char *directory)
{
	struct state before = look();
	char *prof = below(directory, "prof"), *dcpi = below(directory, "dcpi");

	result("gperftools", profil_write_gperftools(s, prof));
	result("dcpi", profil_write_dcpi(s, dcpi));
	compare(&before);
}

/* Counts until each region has some. */
static void count_session(const char *directory)
{
	void *code = make_code();
	struct profil_region regions[] = {
		region((uintptr_t)__executable_start, (uintptr_t)etext, 0x10000),
		region((uintptr_t)code, (uintptr_t)code + 16, 0x10000),
		region((uintptr_t)code + 4096, (uintptr_t)code + 4098, 0x10000),
	};
	static const char *const names[] = { "own", "made", "library" };
	struct profil_session *s;
	struct profil_totals t;
	uint64_t counts[3];

	find_library(&regions[2]);
	result("attach", profil_attach(&s, 0, regions, 3, sizeof(*regions), 1000));
	if (failed)
		return;
	do {
		for (int i = 0; i < 20; i++) {
			own_code();
			c_library();
			made_code(code);
		}
		for (int i = 0; i < 3; i++)
			counts[i] = sum(s, i, &regions[i]);
		/* A static program has no library. */
	} while (counts[0] < 20 || counts[1] < 20 || (regions[2].bufsiz > 4 && counts[2] < 20));
	profil_detach(s);
	for (int i = 0; i < 3; i++)
		printf("%s %llu\n", names[i], (unsigned long long)sum(s, i, &regions[i]));
	profil_read_totals(s, &t, sizeof(t));
	printf("ticks %llu\n", (unsigned long long)t.ticks);
	write_session(s, directory);
	profil_session_free(s);
}

/* Another process, a copy of this one, which has ended when the files are written. */
static void count_other(const char *directory)
{
	struct profil_region r = region((uintptr_t)__executable_start, (uintptr_t)etext, 0x10000);
	struct profil_session *s;
	pid_t child = fork();

	if (!child)
		for (;;)
			own_code();
	result("attach", profil_attach(&s, child, &r, 1, sizeof(r), 1000));
	while (!failed && sum(s, 0, &r) < 50)
		usleep(10000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (failed)
		return;
	printf("own %llu\n", (unsigned long long)sum(s, 0, &r));
	write_session(s, directory);
	profil_session_free(s);
}

/* --- Buffers --- */

static unsigned short buffer[1 << 16];

static void write_buffer(const char *directory, unsigned int scale)
{
	struct state before = look();
	size_t offset = (size_t)__executable_start;
	char *prof = below(directory, "prof"), *dcpi = below(directory, "dcpi");

	result("gperftools",
	       profil_write_gperftools_buffer(buffer, sizeof(buffer), offset, scale, prof));
	result("dcpi", profil_write_dcpi_buffer(buffer, sizeof(buffer), offset, scale, dcpi));
	compare(&before);
}

static unsigned long buffer_sum(void)
{
	unsigned long total = 0;

	for (size_t i = 0; i < sizeof(buffer) / sizeof(*buffer); i++)
		total += buffer[i];
	return total;
}

static void count_buffer(const char *directory)
{
	unsigned int scale = 0x4000;

	if (profil(buffer, sizeof(buffer), (size_t)__executable_start, scale))
		result("profil", -errno);
	while (!failed && buffer_sum() < 50)
		own_code();
	/* While it counts it cannot be compared: this only must work. */
	write_buffer(below(directory, "on"), scale);
	profil(NULL, 0, 0, 0);
	printf("buffer %lu\n", buffer_sum());
	write_buffer(directory, scale);
}

/* Known counts, at code of this program: 1 + 2 + ... + 10. */
static void made_up(const char *directory)
{
	size_t at = (size_t)own_code - (size_t)__executable_start;

	for (int i = 0; i < 10; i++)
		buffer[at / 2 + 7 * i] = i + 1;
	write_buffer(directory, 0x10000);
}

static void expect(const char *name, int err, int expected)
{
	if (err == expected && *profil_error())
		return;
	printf("%s: %d instead of %d, \"%s\"\n", name, err, expected, profil_error());
	failed = 1;
}

static void wrong(const char *directory)
{
	char *pipe = below(directory, "pipe");

	expect("scale 1", profil_write_dcpi_buffer(buffer, sizeof(buffer), 0, 1, directory),
	       -EINVAL);
	expect("no size", profil_write_dcpi_buffer(buffer, 1, 0, 0x10000, directory), -EINVAL);
	expect("no buffer",
	       profil_write_gperftools_buffer(NULL, sizeof(buffer), 0, 0x10000, directory),
	       -EINVAL);
	expect("a file", profil_write_dcpi_buffer(buffer, 64, 0, 0x10000, "/etc/passwd"), -ENOTDIR);
	expect("no directory for a file",
	       profil_write_gperftools_buffer(buffer, 64, 0, 0x10000, "/nowhere/file"), -ENOENT);
	expect("NULL as a directory", profil_write_dcpi_buffer(buffer, 64, 0, 0x10000, NULL),
	       -EINVAL);
	expect("\"\" as a directory", profil_write_dcpi_buffer(buffer, 64, 0, 0x10000, ""),
	       -EINVAL);
	expect("NULL as a file", profil_write_gperftools_buffer(buffer, 64, 0, 0x10000, NULL),
	       -EINVAL);
	expect("\"\" as a file", profil_write_gperftools_buffer(buffer, 64, 0, 0x10000, ""),
	       -EINVAL);
	if (mkfifo(pipe, 0600))
		expect("mkfifo", -errno, 0);
	expect("a pipe without a reader",
	       profil_write_gperftools_buffer(buffer, 64, 0, 0x10000, pipe), -ENXIO);
	expect("/proc", profil_write_dcpi_buffer(buffer, 64, 0, 0x10000, "/proc/nowhere"), -ENOENT);
}

/* With no more room than for half of the DCPI file. */
static void limited(const char *directory)
{
	struct rlimit limit = { 100, RLIM_INFINITY };

	setrlimit(RLIMIT_FSIZE, &limit);
	made_up(directory);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*function)(const char *directory);
	} all[] = {
		{ "session", count_session }, { "other", count_other }, { "buffer", count_buffer },
		{ "made-up", made_up },	      { "wrong", wrong },	{ "limited", limited },
	};

	setvbuf(stdout, NULL, _IONBF, 0);
	/* A deleted program is still the one whose build ID it was. */
	if (getenv("FILES_DELETE"))
		unlink(arguments[0]);
	for (size_t i = 0; count == 3 && i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(arguments[1], all[i].name) != 0)
			continue;
		all[i].function(arguments[2]);
		return failed;
	}
	return 2;
}
