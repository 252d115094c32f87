// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "directory_fixture.h"
#include "util/array.h"
#include "util/elf_header.h"
#include "util/file.h"
#include "util/index.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/proc.h"
#include "util/radix_sort.h"
#include "util/table.h"
#include "util/utf8.h"

struct sorted {
	uint64_t key;
	uint32_t minor, place;
};

static uint64_t sorted_key(const void *element)
{
	return ((const struct sorted *)element)->key;
}

static uint64_t sorted_minor(const void *element)
{
	return ((const struct sorted *)element)->minor;
}

static void test_radix_sort(void **state)
{
	enum {
		COUNT = 5000
	};
	static struct sorted list[COUNT];
	uint64_t random = 1;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		random = hash_u64(random, i);
		/* Short and long numbers, some of them equal. */
		list[i] = (struct sorted){ i % 3 ? random % 100 : random, random >> 33, i };
	}
	assert_int_equal(radix_sort(list, COUNT, sizeof(*list), sorted_minor), 0);
	assert_int_equal(radix_sort(list, COUNT, sizeof(*list), sorted_key), 0);
	for (uint32_t i = 1; i < COUNT; i++) {
		const struct sorted *a = &list[i - 1], *b = &list[i];

		assert_true(a->key < b->key ||
			    (a->key == b->key && (a->minor < b->minor ||
						  (a->minor == b->minor && a->place < b->place))));
	}
}

static void test_number(void **state)
{
	uint64_t number = 7;

	(void)state;
	assert_int_equal(number_parse("0", 0, 9, &number), 0);
	assert_int_equal(number, 0);
	assert_int_equal(number_parse("18446744073709551615", 0, UINT64_MAX, &number), 0);
	assert_true(number == UINT64_MAX);
	number = 7;
	assert_int_equal(number_parse("18446744073709551616", 0, UINT64_MAX, &number), -ERANGE);
	assert_int_equal(number_parse("10", 0, 9, &number), -ERANGE);
	assert_int_equal(number_parse("1", 2, 9, &number), -ERANGE);
	assert_int_equal(number_parse("", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse("0x9", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse(" 1", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse("1 ", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse("-1", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse("+1", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse("1e9", 0, UINT64_MAX, &number), -EINVAL);
	assert_int_equal(number_parse("0x10", 0, 99, &number), -EINVAL);
	assert_int_equal(number, 7); /* unchanged by errors */
}

static void test_hex(void **state)
{
	uint64_t number = 7;

	(void)state;
	assert_int_equal(number_parse_hex("0x10000", 2, UINT32_MAX, &number), 0);
	assert_int_equal(number, 0x10000);
	assert_int_equal(number_parse_hex("0XfFfFfFfFfFfFfFfF", 0, UINT64_MAX, &number), 0);
	assert_true(number == UINT64_MAX);
	assert_int_equal(number_parse_hex("4096", 0, 4096, &number), 0);
	assert_int_equal(number, 4096);
	assert_int_equal(number_parse_hex("0x10000000000000000", 0, UINT64_MAX, &number), -ERANGE);
	assert_int_equal(number_parse_hex("0x", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse_hex("x9", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse_hex("0xg", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse_hex("ff", 0, 999, &number), -EINVAL);
	assert_int_equal(number_parse_hex("0x1 ", 0, 9, &number), -EINVAL);
	assert_int_equal(number_parse_hex("-0x1", 0, 9, &number), -EINVAL);
	assert_int_equal(number, 4096);
}

static void test_seconds(void **state)
{
	uint64_t ns = 7;

	(void)state;
	assert_int_equal(number_parse_seconds("2", &ns), 0);
	assert_int_equal(ns, 2000000000);
	assert_int_equal(number_parse_seconds("0.25", &ns), 0);
	assert_int_equal(ns, 250000000);
	assert_int_equal(number_parse_seconds(".5", &ns), 0);
	assert_int_equal(ns, 500000000);
	assert_int_equal(number_parse_seconds("1.0000000019", &ns), 0);
	assert_int_equal(ns, 1000000001);
	assert_int_equal(number_parse_seconds("1000000000", &ns), 0);
	assert_int_equal(number_parse_seconds("1000000001", &ns), -ERANGE);
	assert_int_equal(number_parse_seconds("", &ns), -EINVAL);
	assert_int_equal(number_parse_seconds(".", &ns), -EINVAL);
	assert_int_equal(number_parse_seconds("1.", &ns), -EINVAL);
	assert_int_equal(number_parse_seconds("-1", &ns), -EINVAL);
	assert_int_equal(number_parse_seconds("1s", &ns), -EINVAL);
	assert_int_equal(number_parse_seconds("nan", &ns), -EINVAL);
}

static bool number_equal(const void *array, uint32_t id, const void *key)
{
	return ((const uint64_t *)array)[id] == *(const uint64_t *)key;
}

/* Many keys, some of which differ in few bits, are all found until they are removed; no others. */
static void test_index(void **state)
{
	enum {
		COUNT = 100000
	};
	uint64_t *numbers = NULL, missing = 1;
	struct index index = { 0 };
	size_t room = 0;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(array_reserve(&numbers, &room, i + 1, sizeof(*numbers)), 0);
		numbers[i] = (uint64_t)i << (i % 3 * 20);
		assert_int_equal(index_add(&index, hash_u64(numbers[i], 0), i), 0);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t id = index_find(&index, hash_u64(numbers[i], 0), number_equal, numbers,
					 &numbers[i]);

		assert_int_equal(id, i);
	}
	missing = UINT64_MAX;
	assert_true(index_find(&index, hash_u64(missing, 0), number_equal, numbers, &missing) ==
		    INDEX_NONE);
	/* First two of three are removed, then all, some of them again. */
	for (uint32_t part = 1; part <= 2; part++) {
		for (uint32_t i = 0; i < COUNT; i++)
			if (part == 2 || i % 3)
				index_remove(&index, hash_u64(numbers[i], 0), i);
		for (uint32_t i = 0; i < COUNT; i++) {
			uint32_t id = index_find(&index, hash_u64(numbers[i], 0), number_equal,
						 numbers, &numbers[i]);

			assert_true(id == (part == 2 || i % 3 ? INDEX_NONE : i));
		}
	}
	assert_int_equal(index.used, 0);
	index_free(&index);
	free(numbers);
}

static void test_table(void **state)
{
	struct pair {
		uint64_t key;
		const char *value;
	};
	TABLE(struct pair) pairs = { 0 };
	TABLE(const char *) texts = { 0 };
	char text[16];
	uint32_t id;

	(void)state;
	for (uint64_t round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 1000; i++) {
			const struct pair pair = { i * i, round ? "second" : "first" };

			assert_int_equal(table_add(&pairs, &pair, sizeof(pair.key), &id), 0);
			assert_int_equal(id, i);
			assert_string_equal(pairs.all[id].value, "first");
		}
	assert_int_equal(pairs.count, 1000);
	assert_int_equal(table_find(&pairs, &(uint64_t){ 25 }, sizeof(uint64_t)), 5);
	assert_true(table_find(&pairs, &(uint64_t){ 26 }, sizeof(uint64_t)) == INDEX_NONE);
	table_free(&pairs);

	/* Texts are compared as such, wherever they are. */
	assert_int_equal(table_add(&texts, &(const char *){ "one" }, TABLE_TEXT, &id), 0);
	assert_int_equal(table_add(&texts, &(const char *){ "two" }, TABLE_TEXT, &id), 0);
	assert_int_equal(id, 1);
	snprintf(text, sizeof(text), "one");
	assert_int_equal(table_find(&texts, &(const char *){ text }, TABLE_TEXT), 0);
	assert_int_equal(texts.count, 2);
	table_free(&texts);
}

static void test_hash_bytes(void **state)
{
	const char text[] = "the same bytes";

	(void)state;
	assert_true(hash_bytes(text, 14, 0) == hash_bytes(text, 14, 0));
	assert_true(hash_bytes(text, 14, 0) != hash_bytes(text, 13, 0));
	assert_true(hash_bytes(text, 14, 0) != hash_bytes(text, 14, 1));
	assert_true(hash_bytes(NULL, 0, 0) == hash_bytes(text, 0, 0));
}

static int compare_halves(const void *x, const void *y)
{
	const uint32_t *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

/*
 * The number of different upper halves, which the index uses, of two pointers that increase
 * together.
 */
static size_t distinct_halves(unsigned int shift)
{
	enum {
		COUNT = 4096
	};
	static uint32_t halves[COUNT];
	size_t distinct = 1;

	for (uint64_t i = 0; i < COUNT; i++)
		halves[i] =
			hash_u64(0x7f0012345670 + (i << shift), 0x7f1000000010 + (i << shift)) >>
			32;
	qsort(halves, COUNT, sizeof(*halves), compare_halves);
	for (size_t i = 1; i < COUNT; i++)
		distinct += halves[i] != halves[i - 1];
	return distinct;
}

/* Value and seed do not cancel out: not when both are pointers, nor when only high bits change. */
static void test_hash_spreads(void **state)
{
	(void)state;
	for (unsigned int shift = 0; shift <= 52; shift++)
		if (distinct_halves(shift) < 4090)
			fail_msg("in steps of 1 << %u: %zu of 4096 differ", shift,
				 distinct_halves(shift));
}

/* --- complete files or none --- */

struct directory {
	char path[64], file[128];
};

static int make_directory(void **state)
{
	struct directory *f = calloc(1, sizeof(*f));

	strcpy(f->path, "/tmp/profil-file.XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	snprintf(f->file, sizeof(f->file), "%s/out", f->path);
	*state = f;
	return 0;
}

static int remove_directory(void **state)
{
	struct directory *f = *state;
	int err;

	unlink(f->file);
	err = rmdir(f->path); /* fails if a temporary file is left */
	free(f);
	return err;
}

static int write_text(FILE *out, void *text, struct error *e)
{
	(void)e;
	fputs(text, out);
	return 0;
}

static int write_half(FILE *out, void *text, struct error *e)
{
	fputs(text, out);
	return error_set(e, 0, "half way");
}

static void test_file_write(void **state)
{
	struct directory *f = *state;
	struct stat status;
	struct error e;
	char line[32];

	assert_int_equal(file_write(f->file, FILE_LIKE_SHELL, write_text, "one\n", &e), 0);
	assert_int_equal(stat(f->file, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(file_write(f->file, FILE_LIKE_SHELL, write_half, "two\n", &e), -EINVAL);
	assert_string_equal(e.what, "half way");
	assert_int_equal(file_read_line(f->file, line, sizeof(line)), 0);
	assert_string_equal(line, "one");
}

/* A link stays a link, and its target is replaced. */
static void test_file_link(void **state)
{
	struct directory *f = *state;
	char link[160], line[32];
	struct stat status;
	struct error e;

	snprintf(link, sizeof(link), "%s/link", f->path);
	assert_int_equal(file_write(f->file, FILE_LIKE_SHELL, write_text, "one\n", &e), 0);
	assert_int_equal(symlink(f->file, link), 0);
	assert_int_equal(file_write(link, FILE_LIKE_SHELL, write_text, "two\n", &e), 0);
	assert_int_equal(lstat(link, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(file_read_line(f->file, line, sizeof(line)), 0);
	assert_string_equal(line, "two");
	unlink(link);
}

static void test_file_errors(void **state)
{
	struct directory *f = *state;
	char missing[160];
	struct error e;

	snprintf(missing, sizeof(missing), "%s/none/out", f->path);
	assert_int_equal(file_check_writable(missing, &e), -ENOENT);
	assert_non_null(strstr(e.what, missing));
	assert_non_null(strstr(e.hint, "mkdir"));
	assert_int_equal(file_write(missing, FILE_LIKE_SHELL, write_text, "x", &e), -ENOENT);
	assert_int_equal(file_check_writable(f->path, &e), -EISDIR);
	assert_int_equal(file_check_writable(f->file, &e), 0);
	assert_int_equal(file_write("/dev/full", FILE_LIKE_SHELL, write_text, "x", &e), -ENOSPC);
	assert_non_null(strstr(e.what, "/dev/full"));
}

/* --- paths in a root --- */

static uint32_t next_random(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

/* A path of odd components. */
static void random_path(uint32_t *seed, char *path, size_t size)
{
	static const char *const components[] = { "..", "..", "..", ".",  "a",	"a",  "b", "f",
						  "l0", "l1", "l2", "l3", "l4", "no", "",  "fifo" };
	uint32_t count = 1 + (next_random(seed) >> 16) % 6;
	size_t length = 0;

	if (next_random(seed) >> 16 & 1)
		path[length++] = '/';
	for (uint32_t i = 0; i < count; i++)
		length += snprintf(path + length, size - length, "%s%s", i ? "/" : "",
				   components[(next_random(seed) >> 16) % 16]);
}

/* A tree of directories a and b, four deep, with files and links in each; and one outside of it. */
static void make_tree(int root, uint32_t *seed, int depth)
{
	char name[8], target[128];

	close(openat(root, "f", O_CREAT | O_WRONLY, 0600));
	mkfifoat(root, "fifo", 0600);
	for (int i = 0; i < 5; i++) {
		random_path(seed, target, sizeof(target));
		snprintf(name, sizeof(name), "l%d", i);
		if (*target)
			assert_int_equal(symlinkat(target, root, name), 0);
	}
	for (int i = 0; i < 2 && depth; i++) {
		int fd;

		assert_int_equal(mkdirat(root, i ? "b" : "a", 0700), 0);
		fd = openat(root, i ? "b" : "a", O_RDONLY | O_DIRECTORY);
		assert_true(fd >= 0);
		make_tree(fd, seed, depth - 1);
		close(fd);
	}
}

struct opened {
	int err;
	dev_t device;
	ino_t inode;
	int flags;
};

static struct opened open_one(int root, const char *path, int flags)
{
	struct opened o = { 0 };
	struct stat status;
	int fd = file_open_in(root, path, flags);

	if (fd < 0) {
		o.err = fd;
		return o;
	}
	assert_int_equal(fstat(fd, &status), 0);
	o.device = status.st_dev;
	o.inode = status.st_ino;
	o.flags = fcntl(fd, F_GETFL) & (O_PATH | O_ACCMODE);
	close(fd);
	return o;
}

static void refuse_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ||
	    syscall(SYS_openat2, -1, NULL, NULL, 0) != -1 || errno != ENOSYS)
		_exit(99);
}

#define PATHS 20000

/* Runs test(context) in a child that has no openat2(2). */
static void without_openat2(void (*test)(void *context), void *context)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		refuse_openat2();
		test(context);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

struct comparison {
	int root;
	struct opened *with;
	size_t found, links;
};

static void compare_ways(void *context)
{
	static const int flags[] = { O_PATH, O_PATH | O_NOFOLLOW, O_PATH | O_DIRECTORY,
				     O_RDONLY | O_NONBLOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK };
	struct comparison *c = context;
	uint32_t seed = 7;
	bool first = c->found == 0;

	for (size_t i = 0; i < PATHS; i++) {
		struct opened o;
		char path[128];

		random_path(&seed, path, sizeof(path));
		o = open_one(c->root, path, flags[i % 5]);
		c->found += !o.err;
		c->links += o.err == -ELOOP;
		if (first)
			c->with[i] = o;
		if (o.err == c->with[i].err && o.inode == c->with[i].inode &&
		    o.device == c->with[i].device && o.flags == c->with[i].flags)
			continue;
		print_error("%s, flags %o: %d, inode %lu; openat2: %d, inode %lu\n", path,
			    flags[i % 5], o.err, o.inode, c->with[i].err, c->with[i].inode);
		_exit(1);
	}
}

static void test_file_in_root(void **state)
{
	struct directory *f = *state;
	struct comparison c = { .with = calloc(PATHS, sizeof(*c.with)) };
	char command[160];
	uint32_t seed = 1;

	assert_non_null(c.with);
	assert_int_equal(mkdir(f->file, 0700), 0);
	c.root = open(f->file, O_PATH | O_DIRECTORY);
	assert_true(c.root >= 0);
	make_tree(c.root, &seed, 4);
	compare_ways(&c);
	assert_true(c.found > PATHS / 20 && c.links > PATHS / 100);
	without_openat2(compare_ways, &c);
	free(c.with);
	close(c.root);
	snprintf(command, sizeof(command), "rm -r %s", f->file);
	assert_int_equal(system(command), 0);
}

/* What only these trees have: chains of links, links of /proc, and too many directories. */
static void check_limits(void *context)
{
	struct directory *f = context;
	struct stat status, proc;
	char name[8], target[8], path[1200] = "/f";
	int root = open(f->file, O_PATH | O_DIRECTORY), system_root = open("/", O_PATH), fd;

	for (int i = 1; i <= 41; i++) {
		snprintf(name, sizeof(name), "%d", i);
		snprintf(target, sizeof(target), "%d", i - 1);
		symlinkat(i == 1 ? "f" : target, root, name);
	}
	fd = file_open_in(root, "40", O_PATH);
	if (fd < 0 || close(fd) || file_open_in(root, "41", O_PATH) != -ELOOP)
		_exit(2);
	/* Magic links would lead out. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", root);
	if (file_open_in(system_root, path, O_PATH) != -EXDEV ||
	    file_open_in(system_root, "/proc/self/root/etc", O_PATH) != -EXDEV)
		_exit(3);
	fd = file_open_in(system_root, "/proc/self/stat", O_PATH);
	if (fd < 0 || fstat(fd, &status) || stat("/proc/self/stat", &proc) ||
	    status.st_ino != proc.st_ino)
		_exit(4);
	memset(path, '.', sizeof(path));
	for (size_t i = 1; i < sizeof(path) - 3; i += 2)
		path[i] = '/';
	strcpy(path + sizeof(path) - 3, "/f");
	fd = file_open_in(root, path, O_PATH);
	if (fd < 0)
		_exit(5);
}

static void test_file_limits(void **state)
{
	struct directory *f = *state;
	char command[160];

	assert_int_equal(mkdir(f->file, 0700), 0);
	snprintf(command, sizeof(command), "touch %s/f", f->file);
	assert_int_equal(system(command), 0);
	check_limits(f);
	snprintf(command, sizeof(command), "cd %s && find . -type l -delete", f->file);
	assert_int_equal(system(command), 0);
	without_openat2(check_limits, f);
	snprintf(command, sizeof(command), "rm -r %s", f->file);
	assert_int_equal(system(command), 0);
}

/* What is below a root stays there while somebody moves the directories that ".." leaves. */
static void race_out(void *context)
{
	struct directory *f = context;
	int root, fd, out = open(f->path, O_PATH | O_DIRECTORY);
	struct stat secret, status;
	pid_t mover;

	mkdirat(out, "out", 0700);
	mkdirat(out, "out/root", 0700);
	mkdirat(out, "out/root/a", 0700);
	mkdirat(out, "out/root/a/b", 0700);
	close(openat(out, "secret", O_CREAT | O_WRONLY, 0600));
	if (fstatat(out, "secret", &secret, 0))
		_exit(2);
	root = openat(out, "out/root", O_PATH | O_DIRECTORY);
	mover = fork();
	while (mover == 0) {
		renameat(out, "out/root/a/b", out, "b");
		renameat(out, "b", out, "out/root/a/b");
	}
	for (int i = 0; i < 20000; i++) {
		fd = file_open_in(root, "a/b/../../../../secret", O_PATH);
		if (fd >= 0 && (fstat(fd, &status) || status.st_ino == secret.st_ino)) {
			kill(mover, SIGKILL);
			_exit(3);
		}
		if (fd >= 0)
			close(fd);
	}
	kill(mover, SIGKILL);
	waitpid(mover, NULL, 0);
}

static void test_file_race(void **state)
{
	struct directory *f = *state;
	char command[160];

	without_openat2(race_out, f);
	snprintf(command, sizeof(command), "cd %s && rm -rf out b secret", f->path);
	assert_int_equal(system(command), 0);
}

/* Answers of the kernel are no files, whatever fstat(2) says. */
static void test_file_answers(void **state)
{
	struct stat status;

	(void)state;
	assert_int_equal(file_open_regular(-1, "/proc/self/stat", &status), -EINVAL);
	assert_int_equal(
		file_open_regular(-1, "/sys/kernel/mm/transparent_hugepage/enabled", NULL) < 0, 1);
	assert_int_equal(file_open_regular(-1, "/dev/null", &status), -EINVAL);
}

static void test_utf8(void **state)
{
	static const char text[] = "a\xc3\xbc\xe2\x80\xae\xe4\xbd\xf0\x9f\x98\x80\xbd\x1b";
	static const char hidden[] = "000111110000"
				     "11";
	uint32_t code = 0;

	(void)state;
	assert_int_equal(utf8_decode("\xf0\x9f\x98\x80", &code), 4);
	assert_int_equal(code, 0x1f600);
	assert_int_equal(utf8_decode("\xc0\x80", &code), 0);	 /* too long */
	assert_int_equal(utf8_decode("\xed\xa0\x80", &code), 0); /* a surrogate */
	assert_int_equal(utf8_decode("\xe4\xbd", &code), 0);
	assert_int_equal(sizeof(text), sizeof(hidden));
	for (size_t i = 0; i + 1 < sizeof(text); i++)
		assert_int_equal(utf8_is_hidden_at(text, i), hidden[i] == '1');
}

/* The tests run with the locale C. */
static void test_utf8_columns(void **state)
{
	(void)state;
	assert_int_equal(utf8_columns('a'), 1);
	assert_int_equal(utf8_columns(0xe9), 1);
	assert_int_equal(utf8_columns(0x3b1), 1);
	assert_int_equal(utf8_columns(0xff71), 1); /* halfwidth katakana */
	assert_int_equal(utf8_columns(0x4e00), 2);
	assert_int_equal(utf8_columns(0xac00), 2);
	assert_int_equal(utf8_columns(0xff21), 2); /* fullwidth A */
	assert_int_equal(utf8_columns(0x1f600), 2);
	assert_int_equal(utf8_columns(0x20000), 2);
	assert_int_equal(utf8_columns(0x301), 0);
	assert_int_equal(utf8_columns(0x3099), 0);
	assert_int_equal(utf8_columns(0xfe0f), 0);
	assert_int_equal(utf8_columns(0x10ffff), 1); /* not a character */
}

/* --- Free memory, by files as those of the kernel --- */

static void set_file(const char *name, const char *text)
{
	FILE *f;

	assert_int_equal(shell("mkdir -p \"$(dirname '%s')\"", name), 0);
	f = fopen(in_directory(name), "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

static uint64_t free_megabytes(void)
{
	return memory_available_below(directory) >> 20;
}

static void test_memory(void **state)
{
	(void)state;
	assert_int_equal(directory_make(), 0);
	assert_int_equal(free_megabytes(), 0);
	set_file("proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1024 kB\n"
				 "MemAvailable:    4194304 kB\nBuffers: 9 kB\n");
	assert_int_equal(free_megabytes(), 4096);
	/* Version 2: the lowest limit of the group and its ancestors. */
	set_file("proc/self/cgroup", "0::/system.slice/ssh.service\n");
	assert_int_equal(free_megabytes(), 4096);
	set_file("sys/fs/cgroup/system.slice/ssh.service/memory.max", "max\n");
	assert_int_equal(free_megabytes(), 4096);
	set_file("sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
	assert_int_equal(free_megabytes(), 1024);
	set_file("sys/fs/cgroup/system.slice/ssh.service/memory.max", "536870912\n");
	assert_int_equal(free_megabytes(), 512);
	set_file("sys/fs/cgroup/system.slice/ssh.service/memory.max", "8589934592\n");
	set_file("sys/fs/cgroup/system.slice/memory.max", "8589934592\n");
	assert_int_equal(free_megabytes(), 4096);
	/* In a container: the group has its name outside, and the directory is its own. */
	set_file("proc/self/cgroup", "0::/docker/0123\n");
	set_file("sys/fs/cgroup/memory.max", "2147483648\n");
	assert_int_equal(free_megabytes(), 2048);
	set_file("sys/fs/cgroup/memory.max", "max\n");
	/* Version 1 */
	set_file("proc/self/cgroup", "5:cpu,cpuacct:/b\n4:memory:/a/b\n3:memory_not:/c\n0::/\n");
	set_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(free_megabytes(), 4096);
	set_file("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576\n");
	set_file("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "3221225472\n");
	assert_int_equal(free_megabytes(), 3072);
	assert_int_equal(directory_remove(), 0);
	/* The files of this machine */
	assert_true(memory_available() > 1024 * 1024);
}

/* An ELF header of 32 bits in the other byte order than x86-64's, cut at each of its bytes. */
static void test_elf_header(void **state)
{
	static const uint8_t bytes[sizeof(Elf32_Ehdr)] = {
		[0] = 0x7f,  'E',	    'L',	   'F',	      ELFCLASS32,
		ELFDATA2MSB, [17] = ET_DYN, [19] = EM_PPC, [31] = 52, /* e_phoff */
		[32] = 1,					      /* e_shoff: 0x01000002 */
		[35] = 2,    [43] = 32,				      /* e_phentsize */
		[45] = 3,    [49] = 4,				      /* e_shnum */
		[51] = 5,
	};
	static const uint8_t segment[sizeof(Elf32_Phdr)] = {
		[3] = PT_NOTE, [7] = 16, [11] = 32, [19] = 48, [27] = PF_X, [31] = 4,
	};
	struct elf_segment s;
	struct elf_header h;

	(void)state;
	assert_false(elf_header_read(&h, bytes, 3));
	assert_false(elf_header_read(&h, bytes + 1, 16));
	assert_true(elf_header_read(&h, bytes, sizeof(bytes)));
	assert_false(h.wide);
	assert_true(h.big_endian);
	assert_int_equal(h.type, ET_DYN);
	assert_int_equal(h.machine, EM_PPC);
	assert_int_equal(h.segments, 52);
	assert_int_equal(h.sections, 0x01000002);
	assert_int_equal(h.segment_size, elf_segment_size(&h));
	assert_int_equal(h.segment_count, 3);
	assert_int_equal(h.section_count, 4);
	assert_int_equal(h.names, 5);
	s = elf_segment_read(&h, segment, sizeof(segment));
	assert_int_equal(s.type, PT_NOTE);
	assert_int_equal(s.offset, 16);
	assert_int_equal(s.address, 32);
	assert_int_equal(s.size, 48);
	assert_int_equal(s.flags, PF_X);
	assert_int_equal(s.align, 4);
	/*
	 * What is not wholly there is 0; a copy of that size shows each byte that is read behind
	 * it.
	 */
	for (size_t size = 4; size < sizeof(bytes); size++) {
		uint8_t *copy = malloc(size);

		memcpy(copy, bytes, size);
		assert_true(elf_header_read(&h, copy, size));
		assert_int_equal(h.names, 0);
		assert_int_equal(h.sections, size < 36 ? 0 : 0x01000002);
		free(copy);
	}
}

static void test_elf_build_id(void **state)
{
	static const uint8_t notes[] = {
		5, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 'O', 't', 'h', 'e', 0,   0, 0, 0, 8, 8,
		0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0,	 0,   'G', 'N', 'U', 0, 7, 8, 9,
	};
	uint8_t ident[EI_NIDENT] = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB }, other[16];
	struct elf_header h;
	const uint8_t *id;
	size_t size = 0;

	(void)state;
	assert_true(elf_header_read(&h, ident, sizeof(ident)));
	id = elf_find_build_id(&h, notes, sizeof(notes), 4, &size);
	assert_ptr_equal(id, notes + sizeof(notes) - 3);
	assert_int_equal(size, 3);
	for (size_t cut = 0; cut < sizeof(notes); cut++)
		assert_null(elf_find_build_id(&h, notes, cut, 4, &size));
	/* Sizes that reach beyond all addresses */
	memcpy(other, notes + 24, sizeof(other));
	memset(other, 0xff, 8);
	assert_null(elf_find_build_id(&h, other, sizeof(other), 8, &size));
	other[0] = 4;
	memset(other + 1, 0, 3);
	assert_null(elf_find_build_id(&h, other, sizeof(other), 1, &size));
}

/* Returns the size of what is read of a file whose program header says that its notes are there. */
static size_t read_id(uint64_t offset, uint64_t size, uint8_t id[4])
{
	static const uint8_t note[] = { 4, 0, 0,   0,	3,   0, 0, 0, 3, 0,
					0, 0, 'G', 'N', 'U', 0, 7, 8, 9, 0 };
	const Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
		.e_phoff = sizeof(header),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {
		.p_type = PT_NOTE, .p_offset = offset, .p_filesz = size, .p_align = 4
	};
	int fd = memfd_create("elf", MFD_CLOEXEC);
	size_t found;

	assert_true(write(fd, &header, sizeof(header)) + write(fd, &segment, sizeof(segment)) +
			    write(fd, note, sizeof(note)) ==
		    sizeof(header) + sizeof(segment) + sizeof(note));
	found = elf_read_build_id(fd, id, 3);
	close(fd);
	return found;
}

static void test_elf_read_build_id(void **state)
{
	const uint64_t offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
	uint8_t id[4] = { 0 };

	(void)state;
	assert_int_equal(read_id(offset, 20, id), 3);
	assert_memory_equal(id, "\7\10\11", 4);
	assert_int_equal(read_id(offset, 21, id), 0); /* beyond the end */
	assert_int_equal(read_id(UINT64_MAX, 20, id), 0);
	assert_int_equal(read_id(offset, 18, id), 0);
	assert_int_equal(elf_read_build_id(-1, id, 3), 0);
}

/* A process chooses its name: no part of it is taken for a field. */
static void test_proc(void **state)
{
	char name[16], status_path[] = "/proc/thread-self/status";
	DIR *tasks = opendir(proc_path(PROC_SELF, 0, "task").text);
	struct proc_status status;
	struct proc_stat stat;

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, name), 0);
	assert_int_equal(prctl(PR_SET_NAME, "x) Z 1 (\nUid:\t"), 0);
	assert_int_equal(proc_read_stat(getpid(), &stat), 0);
	assert_string_equal(stat.comm, "x) Z 1 (\nUid:\t");
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.parent, getppid());
	assert_int_equal(stat.threads, 1);
	assert_int_equal(proc_read_status(AT_FDCWD, status_path, &status), 0);
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
	assert_int_equal(status.process, getpid());
	assert_int_equal(status.uid, geteuid());
	assert_int_equal(status.gid, getegid());
	assert_true(status.resident_kib && status.resident_kib <= status.resident_most_kib);
	assert_int_equal(proc_read_stat(INT32_MAX, &stat), -ESRCH);
	assert_int_equal(proc_next(tasks), getpid());
	assert_int_equal(proc_next(tasks), 0);
	closedir(tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_utf8_columns),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_hex),
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_hash_bytes),
		cmocka_unit_test(test_hash_spreads),
		cmocka_unit_test_setup_teardown(test_file_write, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_file_in_root, make_directory,
						remove_directory),
		cmocka_unit_test_setup_teardown(test_file_limits, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_file_race, make_directory, remove_directory),
		cmocka_unit_test(test_file_answers),
		cmocka_unit_test_setup_teardown(test_file_link, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_file_errors, make_directory, remove_directory),
		cmocka_unit_test(test_radix_sort),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_elf_header),
		cmocka_unit_test(test_elf_build_id),
		cmocka_unit_test(test_elf_read_build_id),
		cmocka_unit_test(test_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
