// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user's program whose files or memory stop answering: stalls MODE USER DIRECTORY, as root. It
 * mounts a FUSE file system on DIRECTORY as fusermount3(1) does for that user, in a mount namespace
 * of its own, and serves it; its child, which is that user's, too, uses it, prints "ready PID" once
 * nothing is answered any more, and then burns a little CPU. Ending this process ends the child:
 * the kernel answers what waits once nobody serves the file system.
 *
 *   read     the child runs code of a file, whose other pages are never read
 *   open     the same; the file is never opened again
 *   getattr  the same; nobody gets its attributes
 *   lookup   the same; no path leads to it
 *   tmp      DIRECTORY is the child's /tmp, where profilers look for names of code made at run
 * time: no path leads there stack    threads of the child sleep in pages of a file that are never
 * read; others have their callers there uffd     the same by userfaultfd(2), as where users may
 * have one: without a file system
 *
 * Exit status 77: this machine has none of that.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_HERE   77
#define FILE_INODE 2
#define LONG	   3600 /* seconds for which the kernel need not ask again */
#define STACK_SIZE (256 << 10)
#define STACKS	   8

static const struct mode {
	const char *name;
	unsigned int never; /* the request that is not answered */
	void (*use)(const char *file);
} * mode;

static pid_t child;
static int device = -1;
static volatile bool *silent; /* both processes see it */
static char content[4 << 20]; /* of the file: this program, and zeros */

/* --- The file system --- */

static void fill_attributes(struct fuse_attr *attr, uint64_t inode)
{
	*attr = (struct fuse_attr){
		.ino = inode,
		.mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755,
		.nlink = 1,
		.size = inode == FUSE_ROOT_ID ? 0 : sizeof(content),
		.blksize = 4096,
	};
}

/* Returns the size of the reply, which is in out, or a negative error. */
static int answer(const struct fuse_in_header *in, void *out, size_t room)
{
	union {
		struct fuse_init_out init;
		struct fuse_attr_out attr;
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} *reply = out;
	const struct fuse_read_in *wanted = (const void *)(in + 1);
	size_t size;

	memset(reply, 0, sizeof(*reply));
	switch (in->opcode) {
	case FUSE_INIT:
		reply->init.major = FUSE_KERNEL_VERSION;
		reply->init.minor = 31;
		reply->init.max_write = 4096;
		return sizeof(reply->init);
	case FUSE_GETATTR:
		reply->attr.attr_valid = mode->never == FUSE_GETATTR ? 0 : LONG;
		fill_attributes(&reply->attr.attr, in->nodeid);
		return sizeof(reply->attr);
	case FUSE_LOOKUP:
		if (strcmp((const char *)wanted, "file") != 0)
			return -ENOENT;
		reply->entry.nodeid = FILE_INODE;
		reply->entry.entry_valid = mode->never == FUSE_LOOKUP ? 0 : LONG;
		reply->entry.attr_valid = mode->never == FUSE_GETATTR ? 0 : LONG;
		fill_attributes(&reply->entry.attr, FILE_INODE);
		return sizeof(reply->entry);
	case FUSE_OPEN:
		return sizeof(reply->open);
	case FUSE_READ:
		size = wanted->offset < sizeof(content) ? sizeof(content) - wanted->offset : 0;
		size = size < wanted->size ? size : wanted->size;
		size = size < room ? size : room;
		memcpy(out, content + wanted->offset, size);
		return size;
	default:
		return -ENOSYS;
	}
}

static void serve(void)
{
	static char request[1 << 16] __attribute__((aligned(8)));
	static struct {
		struct fuse_out_header head;
		char data[1 << 16];
	} reply;
	const struct fuse_in_header *in = (const void *)request;
	int size;

	for (;;) {
		if (read(device, request, sizeof(request)) < 0) {
			if (errno == EINTR || errno == ENOENT) /* the request was withdrawn */
				continue;
			return;
		}
		if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
		    in->opcode == FUSE_INTERRUPT || (*silent && in->opcode == mode->never))
			continue;
		size = answer(in, reply.data, sizeof(reply.data));
		reply.head.error = size < 0 ? size : 0;
		reply.head.len = sizeof(reply.head) + (size < 0 ? 0 : size);
		reply.head.unique = in->unique;
		if (write(device, &reply, reply.head.len) < 0 && errno != ENOENT)
			warn("reply to %u", in->opcode);
	}
}

static int open_device(const char *directory)
{
	char path[4096];
	int fd = open("/dev/fuse", O_RDWR);

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s.device", directory);
	if (mknod(path, S_IFCHR | 0600, makedev(10, 229)) || (fd = open(path, O_RDWR)) < 0) {
		warn("no FUSE here");
		exit(NOT_HERE);
	}
	unlink(path);
	return fd;
}

/* Whatever a user's mount may be, this one lets everybody in: user_allow_other of fuse.conf(5). */
static void mount_for(int user, const char *directory)
{
	char options[128];

	device = open_device(directory);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		err(1, "a mount namespace");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", device, user, user);
	if (mount("stalls", strcmp(mode->name, "tmp") ? directory : "/tmp", "fuse",
		  MS_NOSUID | MS_NODEV, options)) {
		warn("mount");
		exit(NOT_HERE);
	}
}

/* --- What uses it --- */

void burn_stalled(unsigned long turns);

/* Needs nothing but its argument, so that a copy runs anywhere. */
__attribute__((noinline)) void burn_stalled(unsigned long turns)
{
	volatile unsigned int x = 1;

	while (turns--)
		x = x * 1664525 + 1013904223;
}

static volatile bool runs = true;

/* 1 to 5 % of a CPU. */
static void burn_a_little(void (*burn)(unsigned long))
{
	while (runs) {
		burn(1000000);
		usleep(100000);
	}
}

static void stop_answering(void (*burn)(unsigned long))
{
	*silent = true;
	printf("ready %d\n", getpid());
	fflush(stdout);
	burn_a_little(burn);
}

static int find_segment(struct dl_phdr_info *info, size_t size, void *result)
{
	uintptr_t pc = (uintptr_t)burn_stalled - info->dlpi_addr;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    pc - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_filesz)
			*(uintptr_t *)result =
				pc - info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_offset;
	return 1; /* the program is the first */
}

static void run_file(const char *file)
{
	uintptr_t offset = 0;
	int fd = open(file, O_RDONLY);
	char *code;
	void (*burn)(unsigned long);

	dl_iterate_phdr(find_segment, &offset);
	code = mmap(NULL, sizeof(content), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (fd < 0 || code == MAP_FAILED)
		err(1, "%s", file);
	burn = (void (*)(unsigned long))(code + offset);
	burn(1); /* its pages are read now */
	stop_answering(burn);
}

static void run_memory(const char *file)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)file;
	if (code == MAP_FAILED)
		err(1, "mmap");
	memcpy(code, (void *)burn_stalled, 256);
	stop_answering((void (*)(unsigned long))code);
}

struct stack {
	char *begin, *end;
	bool burns;
	volatile bool ready, gone;
};

/* Its callers' pages are away; its own stays. */
static __attribute__((noinline)) void burn_above(struct stack *stack)
{
	stack->ready = true;
	while (!stack->gone)
		sched_yield();
	burn_a_little(burn_stalled);
}

static __attribute__((noinline)) void descend(struct stack *stack, int depth)
{
	volatile char room[16 << 10];

	room[0] = depth;
	if (depth)
		descend(stack, depth - 1);
	else
		burn_above(stack);
	room[1] = room[0];
}

static void *sleep_there(void *argument)
{
	struct stack *stack = argument;

	if (stack->burns) {
		descend(stack, 8);
	} else {
		stack->ready = true;
		pause();
	}
	return NULL;
}

/* Half of them burn. What a burning one needs are the lowest pages that it has touched. */
static void run_stacks(char *memory)
{
	static struct stack stacks[STACKS];
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	for (int i = 0; i < STACKS; i++) {
		stacks[i].begin = memory + i * STACK_SIZE;
		stacks[i].end = stacks[i].begin + STACK_SIZE;
		stacks[i].burns = i % 2 == 0;
		pthread_attr_setstack(&attributes, stacks[i].begin, STACK_SIZE);
		if (pthread_create(&thread, &attributes, sleep_there, &stacks[i]))
			errx(1, "no thread");
	}
	for (int i = 0; i < STACKS; i++)
		while (!stacks[i].ready)
			sched_yield();
	usleep(100000); /* pause() is entered; nothing depends on it but how much is shown */
	*silent = true;
	for (int i = 0; i < STACKS; i++) {
		/* The thread's own data are in the last pages: what runs needs them. */
		char *from = stacks[i].burns ? stacks[i].end - (96 << 10) : stacks[i].begin;
		char *to = stacks[i].burns ? stacks[i].end - (16 << 10) : stacks[i].end;

		madvise(from, to - from, MADV_DONTNEED);
		stacks[i].gone = true;
	}
	stop_answering(burn_stalled);
}

static void run_file_stacks(const char *file)
{
	int fd = open(file, O_RDONLY);
	char *memory = mmap(NULL, STACKS * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (fd < 0 || memory == MAP_FAILED)
		err(1, "%s", file);
	run_stacks(memory);
}

static int uffd = -1;

static void run_uffd_stacks(const char *file)
{
	char *memory = mmap(NULL, STACKS * STACK_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)memory, STACKS * STACK_SIZE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	(void)file;
	if (memory == MAP_FAILED || madvise(memory, STACKS * STACK_SIZE, MADV_NOHUGEPAGE))
		err(1, "mmap");
	memset(memory, 0, STACKS * STACK_SIZE); /* those of now are there */
	if (ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &range))
		err(1, "userfaultfd");
	run_stacks(memory);
}

static const struct mode modes[] = {
	{ "read", FUSE_READ, run_file },       { "open", FUSE_OPEN, run_file },
	{ "getattr", FUSE_GETATTR, run_file }, { "lookup", FUSE_LOOKUP, run_file },
	{ "tmp", FUSE_LOOKUP, run_memory },    { "stack", FUSE_READ, run_file_stacks },
	{ "uffd", 0, run_uffd_stacks },	       { NULL, 0, NULL },
};

/* --- --- */

static void become(int user)
{
	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		err(1, "user %d", user);
	prctl(PR_SET_DUMPABLE, 1); /* the user may look at it, as after exec(2) */
}

/* All that wait for the file system get an error now. The child is reaped, lest others take it for
 * alive. */
static void end(int signal)
{
	(void)signal;
	close(device);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	int user = argc == 4 ? atoi(argv[2]) : 0, status;
	pid_t parent = getppid(), server = getpid();
	char file[4096];
	FILE *self;

	for (mode = modes; mode->name && (argc != 4 || strcmp(mode->name, argv[1]) != 0);)
		mode++;
	if (!mode->name || user <= 0)
		errx(2, "usage: stalls MODE USER DIRECTORY");
	silent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (silent == MAP_FAILED)
		err(1, "mmap");
	self = fopen("/proc/self/exe", "re");
	if (!self || fread(content, 1, sizeof(content), self) == 0)
		err(1, "/proc/self/exe");
	if (mode->use != run_uffd_stacks)
		mount_for(user, argv[3]);
	snprintf(file, sizeof(file), "%s/file", argv[3]);

	switch (child = fork()) {
	case -1:
		err(1, "fork");
	case 0:
		close(device);
		if (mode->use == run_uffd_stacks &&
		    (uffd = syscall(SYS_userfaultfd, O_CLOEXEC)) < 0) {
			warn("userfaultfd");
			return NOT_HERE;
		}
		become(user);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* changing the user takes it back */
		if (getppid() == server)
			mode->use(file);
		return 1;
	}
	become(user);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return 1;
	signal(SIGTERM, end);
	if (device >= 0)
		serve();
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
