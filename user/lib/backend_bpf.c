// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* eBPF in this process, by a module that is installed beside the library: bpf_module.h. */
#include "lib/backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/bpf_module.h"
#include "lib/last_error.h"
#include "lib/service_thread.h"
#include "lib/session.h"

#define MODULE "/profil/libprofil-bpf.so.1"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF	    39
#endif

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

#define STRING_OF(name) #name
#define SYMBOL(name)	STRING_OF(name)

/* The library's own file, without symbolic links; "" when unknown. */
static char library[PATH_MAX];

/* When the library is loaded: its path may be relative to a directory that the program leaves. */
__attribute__((constructor)) static void locate_library(void)
{
	int code = errno;
	Dl_info info;

	if (!*library && dladdr(&profil__backend_bpf, &info) && info.dli_fname &&
	    !realpath(info.dli_fname, library))
		library[0] = '\0';
	errno = code;
}

/* Whether only root and the owner of the library can have written the file or directory. */
static bool is_safe(const char *path, uid_t owner, mode_t type)
{
	struct stat status;

	return lstat(path, &status) == 0 && (status.st_mode & S_IFMT) == type &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (status.st_uid == 0 || status.st_uid == owner);
}

/* Sets `path` to the module's file. Returns 0 or a negative errno. */
static int find_module(char *path, size_t size)
{
	struct stat status;
	char *end;
	bool safe;

	locate_library();
	if (getauxval(AT_SECURE))
		return profil__error(ENOTSUP, "a program with more privileges than its user loads "
					      "no module");
	if (sizeof(void *) < 8)
		return profil__error(ENOTSUP, "not in a 32-bit program: profild counts for it");
	if (!*library || stat(library, &status))
		return profil__error(ENOTSUP, "cannot find the library's file");
	end = strrchr(library, '/');
	if ((size_t)snprintf(path, size, "%.*s" MODULE, (int)(end - library), library) >= size)
		return profil__error(ENAMETOOLONG, "the path of the module is too long");
	if (access(path, F_OK))
		return profil__system_error("%s", path);
	safe = is_safe(path, status.st_uid, S_IFREG);
	*strrchr(path, '/') = '\0';
	safe = safe && is_safe(path, status.st_uid, S_IFDIR);
	path[strlen(path)] = '/';
	if (!safe)
		return profil__error(EPERM,
				     "%s: users other than root and the library's "
				     "owner can write to it or its directory",
				     path);
	return 0;
}

static const struct bpf_module *module;
static const char *load_error; /* of the first attempt; NULL: none failed */

static int load_module(void)
{
	const struct bpf_module *loaded;
	char path[PATH_MAX];
	void *handle;
	int err = find_module(path, sizeof(path));

	if (err)
		return err;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return profil__error(ENOTSUP, "%s", dlerror());
	loaded = dlsym(handle, SYMBOL(PROFIL_BPF_MODULE));
	if (!loaded) {
		dlclose(handle);
		return profil__error(ENOTSUP, "%s is of another version", path);
	}
	__atomic_store_n(&module, loaded, __ATOMIC_RELEASE);
	return 0;
}

/* Without libcap: the library links libc alone. */
static bool has_privileges(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	unsigned int needed = CAP_TO_MASK(CAP_BPF) | CAP_TO_MASK(CAP_PERFMON);

	return syscall(SYS_capget, &header, data) == 0 && (data[1].effective & needed) == needed;
}

/* Tries once. Keeps the error for the service thread, which reports it in start. */
static void bpf_prepare(void)
{
	const char *none = NULL;
	char *text;

	if (__atomic_load_n(&module, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&load_error, __ATOMIC_ACQUIRE) || !has_privileges() || !load_module())
		return;
	text = strdup(profil__error_text());
	if (!__atomic_compare_exchange_n(&load_error, &none, text, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		free(text);
}

/*
 * A forked child counts by the BPF program and the clocks of its parent, whose descriptors are in
 * the service thread's table, which the child does not inherit. So the service thread sends them
 * through a socket pair, which the thread that forks has open meanwhile.
 */
static struct {
	int in, out; /* -1: closed */
} fork_socket = { -1, -1 };

/* In the service thread: returns a copy of a descriptor of the program, or -1. */
static int copy_descriptor(int fd)
{
	int process = syscall(SYS_pidfd_open, getpid(), 0), copy;

	if (process < 0)
		return -1;
	copy = syscall(SYS_pidfd_getfd, process, fd, 0);
	close(process);
	return copy;
}

static int share_with_child(struct profil_session *s)
{
	int fd = copy_descriptor(fork_socket.in), err;

	(void)s;
	if (fd < 0)
		return -EPERM;
	err = module->share(fd);
	close(fd);
	return err;
}

static void close_fork_socket(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void bpf_after_fork(void)
{
	close_fork_socket(&fork_socket.in);
	close_fork_socket(&fork_socket.out);
}

/* If this fails, the child loads a BPF program and opens clocks of its own. */
static void bpf_before_fork(struct profil_session *s)
{
	int ends[2];

	if (fork_socket.out >= 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	fork_socket.in = ends[0];
	fork_socket.out = ends[1];
	if (profil__service_call(share_with_child, s))
		bpf_after_fork();
	else
		close_fork_socket(&fork_socket.in);
	profil__error_clear();
}

static void bpf_stop(struct profil_session *s)
{
	module->stop(s->handle);
}

static bool bpf_has_target(const struct profil_session *s)
{
	return module->counts(s->handle);
}

static void bpf_release(struct profil_session *s)
{
	module->free(s->handle);
	s->handle = NULL;
}

static int bpf_check_privileges(void)
{
	if (!has_privileges())
		return profil__error(EPERM, "CAP_BPF and CAP_PERFMON are needed");
	return 0;
}

static bool bpf_is_open(void)
{
	return module && module->is_open();
}

static void bpf_look(void)
{
	if (module)
		module->look();
}

static void bpf_release_kept(void)
{
	if (module)
		module->close();
}

static int bpf_start(struct profil_session *s)
{
	struct bpf_request request = {
		.pid = s->pid ? s->pid : getpid(),
		.except = s->pid ? 0 : profil__service_tid(),
		.frequency = s->hz,
		.ranges = s->plan.ranges,
		.range_count = s->plan.range_count,
		.cell_count = s->plan.cell_count,
		.inherited = -1,
	};
	size_t pages = profil_pages(s->plan.range_count, s->plan.cell_count);
	struct bpf_counts counts;
	struct histogram *h;
	char why[ERROR_SIZE];
	int err;

	if (bpf_check_privileges())
		return -EPERM;
	if (!module)
		return profil__error(ENOTSUP, "%s", load_error ? load_error : "no module");
	if (fork_socket.out >= 0)
		request.inherited = copy_descriptor(fork_socket.out);
	err = module->start(&request, &h, &counts, why, sizeof(why));
	if (request.inherited >= 0)
		close(request.inherited);
	if (err)
		return profil__error(-err, "%s", why);
	s->handle = h;
	/* The memory is the module's: a forked child must not count in it. */
	if (madvise(counts.state, pages * PROFIL_PAGE_BYTES, MADV_DONTFORK)) {
		err = profil__system_error("cannot keep the counts from forked children");
		bpf_release(s);
		return err;
	}
	s->state = counts.state;
	s->cells = counts.cells;
	s->counting.tick_ns = counts.tick_ns;
	return 0;
}

const struct backend profil__backend_bpf = {
	.name = "bpf",
	.prepare = bpf_prepare,
	.start = bpf_start,
	.before_fork = bpf_before_fork,
	.after_fork = bpf_after_fork,
	.has_target = bpf_has_target,
	.check_privileges = bpf_check_privileges,
	.look = bpf_look,
	.release_kept = bpf_release_kept,
	.is_open = bpf_is_open,
	.stop = bpf_stop,
	.release = bpf_release,
};
