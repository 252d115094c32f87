// SPDX-License-Identifier: GPL-2.0-only
/*
 * record_script COMMAND...: writes what test_script_replay.c replays: the registers and the stack
 * of a script that waits, the rows for its native frames, and all memory that the walk reads for
 * its functions. The command writes its call stack, "NAME FILE LINE" for each function and an empty
 * line, and waits in read(2) of standard input. It has no environment. x86-64.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/sample.h"
#include "capture/opener.h"
#include "capture/unwind/unwind_copy.h"
#include "symbol/cfi/cfi.h"

#define IMAGES_MAX   16
#define MAPPINGS_MAX 64
#define READS_MAX    4096

struct range {
	uint64_t from, limit;
};

static pid_t pid;
static struct range reads[READS_MAX];
static size_t read_count;
static struct unwind_tables tables;
static struct unwind_mapping mappings[MAPPINGS_MAX];
static struct unwind_space space = { .mappings = mappings };
static struct image {
	char path[256];
	struct unwind_rows rows;
	uint32_t number;
} images[IMAGES_MAX];
static size_t image_count;
static struct unwind_copy copy;
static struct unwind_found found;

static void fail(const char *what)
{
	perror(what);
	kill(pid, SIGKILL);
	exit(1);
}

static bool read_target(uint64_t from, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* What the walk calls instead of opener_read_memory(): see tests/Makefile. */
ssize_t __wrap_opener_read_memory(const struct opener_memory *m, uint64_t from, void *to,
				  size_t size);
ssize_t __wrap_opener_read_memory(const struct opener_memory *m, uint64_t from, void *to,
				  size_t size)
{
	(void)m;
	if (!read_target(from, to, size))
		return -1;
	if (read_count == READS_MAX)
		fail("too many reads");
	reads[read_count++] = (struct range){ from, from + size };
	return size;
}

/* Starts the command, and prints its stack as "frame" lines. */
static void start(char *argv[])
{
	static char *const nothing[] = { NULL };
	char line[512], path[64], call[8] = "";
	int in[2], out[2], fd;
	FILE *text;

	if (pipe(in) || pipe(out))
		fail("pipe");
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execve(argv[0], argv, nothing);
		_exit(127);
	}
	close(out[1]);
	text = fdopen(out[0], "r");
	while (fgets(line, sizeof(line), text) && *line != '\n')
		printf("frame %s", line);
	/* Until it waits in read(2), which is number 0. */
	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	while (strncmp(call, "0 0x0", 5) != 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, call, sizeof(call)) <= 0)
			fail(path);
		close(fd);
	}
}

static uint32_t image_of(const char *path)
{
	struct image *image = images;
	struct error e;
	int fd;

	for (; image < images + image_count; image++)
		if (strcmp(image->path, path) == 0)
			return image - images;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (image_count == IMAGES_MAX || fd < 0 ||
	    cfi_read(fd, path, NULL, NULL, &image->rows, &e) ||
	    unwind_tables_add(&tables, &image->rows, 0, &image->number))
		fail(path);
	close(fd);
	snprintf(image->path, sizeof(image->path), "%s", path);
	return image_count++;
}

static void read_maps(void)
{
	uint64_t from, limit, offset;
	char line[512], file[256], may[5];
	FILE *maps;

	snprintf(file, sizeof(file), "/proc/%d/maps", pid);
	maps = fopen(file, "r");
	if (!maps)
		fail(file);
	while (fgets(line, sizeof(line), maps)) {
		const struct unwind_rows *rows;
		uint32_t image;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %255s", &from,
			   &limit, may, &offset, file) != 5 ||
		    may[2] != 'x' || file[0] != '/')
			continue;
		image = image_of(file);
		rows = &images[image].rows;
		for (size_t i = 0; i < rows->segment_count && space.count < MAPPINGS_MAX; i++)
			if (rows->segments[i].offset >= offset &&
			    rows->segments[i].offset < offset + limit - from)
				mappings[space.count++] = (struct unwind_mapping){
					.start = from,
					.limit = limit,
					.bias = from - offset + rows->segments[i].offset -
						rows->segments[i].address,
					.image = images[image].number,
				};
	}
	fclose(maps);
}

static void walk(uint64_t thread_pointer)
{
	const struct opener_memory unused = { 0 };
	struct scripts scripts = { 0 };
	const struct unwind_live live = {
		.memory = &unused,
		.thread_pointer = thread_pointer,
		.scripts = &scripts,
		.native = true,
	};

	memset(&found, 0, sizeof(found));
	if (unwind_copy_walk(&copy, &tables, &space, &live, &found))
		fail("walk");
	scripts_free(&scripts);
}

static void print_bytes(const char *what, uint64_t at, const unsigned char *bytes, size_t size)
{
	printf("%s %" PRIx64 " ", what, at);
	for (size_t i = 0; i < size; i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static void print_memory(void)
{
	static unsigned char bytes[1 << 20];

	qsort(reads, read_count, sizeof(*reads), compare_ranges);
	for (size_t i = 0, next; i < read_count; i = next) {
		struct range range = reads[i];

		for (next = i + 1; next < read_count && reads[next].from <= range.limit; next++)
			if (reads[next].limit > range.limit)
				range.limit = reads[next].limit;
		if (range.limit - range.from > sizeof(bytes) ||
		    !read_target(range.from, bytes, range.limit - range.from))
			fail("memory");
		print_bytes("memory", range.from, bytes, range.limit - range.from);
	}
}

/* The rows that the frames used, each with the one behind it, where the replay has a gap. */
static void print_rows(const struct image *image)
{
	const struct unwind_rows *rows = &image->rows;

	for (size_t row = 0; row + 1 < rows->count; row++) {
		const struct unwind_rule *rule = &rows->rules[rows->rows[row].rule];
		bool used = false;

		for (uint32_t i = 0; i < found.user_depth; i++)
			for (size_t m = 0; m < space.count; m++) {
				uint64_t pc = found.pcs[i] - !!i;

				used |= mappings[m].image == image->number &&
					pc >= mappings[m].start && pc < mappings[m].limit &&
					pc - mappings[m].bias >= rows->rows[row].address &&
					pc - mappings[m].bias < rows->rows[row + 1].address;
			}
		if (used)
			printf("row %" PRIx64 " %" PRIx64 " %u %u %u %d %d %d\n",
			       rows->rows[row].address, rows->rows[row + 1].address, rule->cfa,
			       rule->bp, rule->bx, rule->bx_at, rule->bp_at, rule->offset);
	}
}

static void print_image(const struct image *image)
{
	const struct language_image *language = &image->rows.language;

	if (language->language == LANGUAGE_PYTHON)
		printf("image %u %x %" PRIx64 " %" PRIx64 "\n", language->thread_specific,
		       language->version, (uint64_t)language->python.runtime,
		       (uint64_t)language->python.code_type);
	else
		printf("image %u 0 0 0\n", language->thread_specific);
	/* As it is in memory: where this structure changes, a process has to be recorded again. */
	if (language->language != LANGUAGE_NONE && language->language != LANGUAGE_PYTHON)
		print_bytes("layout", language->language, (const unsigned char *)language,
			    sizeof(*language));
	for (size_t i = 0; i < space.count; i++)
		if (mappings[i].image == image->number)
			printf("mapping %llx %llx %llx\n", mappings[i].start, mappings[i].limit,
			       mappings[i].bias);
	print_rows(image);
}

int main(int argc, char *argv[])
{
	struct user_regs_struct r;
	struct unwind_found whole;
	uint32_t least = 0, most;

	if (argc < 2)
		return 2;
	start(argv + 1);
	if (ptrace(PTRACE_ATTACH, pid, 0, 0) || waitpid(pid, NULL, 0) != pid ||
	    ptrace(PTRACE_GETREGS, pid, 0, &r))
		fail("ptrace");
	if (unwind_tables_private(&tables))
		fail("tables");
	read_maps();
	copy = (struct unwind_copy){
		.id = sample_id_make(1, 1, 1),
		.registers = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
			       r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip },
		.begin = r.rsp,
	};
	while (copy.size < UNWIND_COPY_BYTES &&
	       read_target(r.rsp + copy.size, copy.bytes + copy.size, 8))
		copy.size += 8;
	walk(r.fs_base);
	whole = found;
	if (whole.end != UNWIND_COMPLETE)
		fprintf(stderr, "the stack is not complete\n");
	print_memory();
	/* Only as much of the stack as the walk needs: arguments are behind it. */
	for (most = copy.size / 8; least < most;) {
		copy.size = (least + most) / 2 * 8;
		read_count = 0;
		walk(r.fs_base);
		if (memcmp(&whole, &found, sizeof(found)) == 0)
			most = copy.size / 8;
		else
			least = copy.size / 8 + 1;
	}
	found = whole;
	print_bytes("stack", copy.begin, copy.bytes, most * 8);
	print_bytes("registers", r.fs_base, (unsigned char *)copy.registers,
		    sizeof(copy.registers));
	for (size_t i = 0; i < image_count; i++)
		if (images[i].rows.language.language || images[i].rows.language.thread_specific)
			print_image(&images[i]);
	kill(pid, SIGKILL);
	return 0;
}
