// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#endif

/*
 * Addresses take no memory: a reader maps as many as a file has bytes (elf_file.c). Files are those
 * that it writes, in memory.
 * Bound: files: addresses, bytes written and descriptors of a confined process; then: the file is
 * not read.
 */
#define ADDRESSES_MAX	((rlim_t)1 << 40)
#define FILE_MAX	((rlim_t)256 * 1024 * 1024)
#define DESCRIPTORS_MAX 64

/*
 * Unmaps what is shared with the parent: what it maps of perf events and of eBPF maps could be
 * written to.
 */
static int unmap_shared(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, limit;
	char line[512], shared;

	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*3c%c", &start, &limit, &shared) == 3 && shared == 's' &&
		    munmap((void *)start, limit - start))
			break;
	fclose(maps);
	return 0;
}

static int set_limits(size_t memory)
{
	const struct {
		int what;
		rlim_t most;
	} limits[] = {
		{ RLIMIT_DATA, memory },
		{ RLIMIT_AS, ADDRESSES_MAX },
		{ RLIMIT_FSIZE, FILE_MAX },
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_NOFILE, DESCRIPTORS_MAX },
		{ RLIMIT_NPROC, 0 },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		struct rlimit limit;

		if (getrlimit(limits[i].what, &limit))
			return -errno;
		if (limit.rlim_max > limits[i].most)
			limit.rlim_max = limits[i].most;
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(limits[i].what, &limit))
			return -errno;
	}
	return 0;
}

/* Byte offsets of what the filter reads: the lower half of an argument is the one that counts. */
#define CALL_AT	       offsetof(struct seccomp_data, nr)
#define MACHINE_AT     offsetof(struct seccomp_data, arch)
#define ARGUMENT_AT(n) (offsetof(struct seccomp_data, args) + 8 * (n))

#define LOAD(at)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE	     ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW	     ANSWER(SECCOMP_RET_ALLOW)

/* Each of these is three or five instructions: what follows one is reached if it is another call.
 */
#define CALL(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), ALLOW
#define CALL_WITH(call, n, value)                                                    \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), LOAD(ARGUMENT_AT(n)), \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1), ALLOW, REFUSE
#define CALL_WITHOUT(call, n, bits)                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), LOAD(ARGUMENT_AT(n)), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0), ALLOW, REFUSE

#ifdef MACHINE
static int filter_calls(void)
{
	struct sock_filter filter[] = {
		LOAD(MACHINE_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
		ANSWER(SECCOMP_RET_KILL_PROCESS),
		LOAD(CALL_AT),
		CALL(read),
		CALL(pread64),
		CALL(write),
		CALL(pwrite64),
		CALL(ftruncate),
		CALL(fstat),
		CALL_WITH(newfstatat, 3, AT_EMPTY_PATH), /* fstat() of some C libraries */
		CALL(close),
		CALL_WITH(fcntl, 1, F_DUPFD_CLOEXEC),
		CALL(memfd_create),
		CALL_WITHOUT(mmap, 2, PROT_EXEC),
		CALL_WITHOUT(mprotect, 2, PROT_EXEC),
		CALL(munmap),
		CALL(mremap),
		CALL(madvise),
		CALL(brk),
		CALL(sendmsg),
		CALL(recvmsg),
		CALL(ppoll),
		CALL(futex),
		CALL(clock_gettime),
		CALL(getrandom),
		CALL(restart_syscall),
		CALL(rt_sigreturn),
		CALL(geteuid),
		CALL(exit),
		CALL(exit_group),
		REFUSE,
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) ? -errno : 0;
}
#else /* nothing records there */
static int filter_calls(void)
{
	return -ENOSYS;
}
#endif

int confine(size_t memory)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	int err = unmap_shared();
	/*
	 * The directory of a process that has ended, and so without an entry for ever, becomes the
	 * root directory. A process that shares the root directory with this one sets it. It does
	 * not matter if that is not permitted: the filter has no call with a path.
	 */
	pid_t pid = syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(chroot("/proc/self/fdinfo") || chdir("/"));
	if (pid > 0)
		waitpid(pid, NULL, 0);
	/* The bounding set matters to exec alone, which no_new_privs and the filter prevent. */
	if (!err && (syscall(SYS_capset, &header, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		     prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)))
		err = -errno;
	return err ?: set_limits(memory) ?: filter_calls();
}
