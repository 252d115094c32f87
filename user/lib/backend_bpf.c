// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* eBPF in this process, by the module that lies beside the library. */
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/bpf_module.h"
#include "lib/error.h"
#include "lib/live.h"
#include "lib/session.h"

#define MODULE "/profil/libprofil-bpf.so"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF	    39
#endif

#define STRING_OF(name) #name
#define SYMBOL(name)	STRING_OF(name)

/* The library's own file, without symbolic links; "" when unknown. */
static char library[PATH_MAX];

/* When the library is loaded: its name may begin in a folder that the program leaves. */
__attribute__((constructor)) static void locate(void)
{
	int code = errno;
	Dl_info info;

	if (!*library && dladdr(&profil__backend_bpf, &info) && info.dli_fname &&
	    !realpath(info.dli_fname, library))
		library[0] = '\0';
	errno = code;
}

/* --- The module --- */

/* Whether nobody but root, or who could as well change the library, can have put it there. */
static bool is_safe(const char *path, uid_t owner, mode_t type)
{
	struct stat status;

	return lstat(path, &status) == 0 && (status.st_mode & S_IFMT) == type &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (status.st_uid == 0 || status.st_uid == owner);
}

/* The module's file. Returns 0 or a negative errno. */
static int find_module(char *path, size_t size)
{
	struct stat status;
	char *end;
	bool safe;

	locate();
	if (getauxval(AT_SECURE))
		return profil__error(ENOTSUP, "no module is loaded into a program that has more "
					      "privileges than its user");
	if (!*library || stat(library, &status))
		return profil__error(ENOTSUP, "cannot tell where the library's file is");
	end = strrchr(library, '/');
	if ((size_t)snprintf(path, size, "%.*s" MODULE, (int)(end - library), library) >= size)
		return profil__error(ENAMETOOLONG, "the name of the module's file is too long");
	if (access(path, F_OK))
		return profil__system_error("%s", path);
	safe = is_safe(path, status.st_uid, S_IFREG);
	*strrchr(path, '/') = '\0';
	safe = safe && is_safe(path, status.st_uid, S_IFDIR);
	path[strlen(path)] = '/';
	if (!safe)
		return profil__error(EPERM, "%s: others could have put it there", path);
	return 0;
}

static const struct bpf_module *module;
static const char *why_not; /* it was not loaded, the first time */

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

/* libcap is not libc. */
static bool has_privileges(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	unsigned int needed = CAP_TO_MASK(CAP_BPF) | CAP_TO_MASK(CAP_PERFMON);

	return syscall(SYS_capget, &header, data) == 0 && (data[1].effective & needed) == needed;
}

/* --- The back end --- */

/* It is another thread that will have to tell why. */
static void bpf_prepare(void)
{
	const char *none = NULL;
	char *text;

	if (__atomic_load_n(&module, __ATOMIC_ACQUIRE) || !has_privileges() || !load_module())
		return;
	text = strdup(profil__error_text());
	if (!__atomic_compare_exchange_n(&why_not, &none, text, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		free(text);
}

/* The memory is the module's; a forked child must neither have it nor free it. */
static int keep_from_children(struct profil_session *s)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = s->plan.cell_count * sizeof(*s->cells);

	if (madvise(s->state, sizeof(*s->state), MADV_DONTFORK) ||
	    madvise(s->cells, (size + page - 1) / page * page, MADV_DONTFORK))
		return profil__system_error("cannot keep the counts from forked children");
	return 0;
}

static void bpf_stop(struct profil_session *s)
{
	module->stop(s->handle);
}

static void bpf_release(struct profil_session *s)
{
	module->free(s->handle);
	s->handle = NULL;
}

static int bpf_start(struct profil_session *s)
{
	const struct bpf_request request = {
		.pid = s->pid ? s->pid : getpid(),
		.except = s->pid ? 0 : profil__live_tid(),
		.frequency = s->hz,
		.ranges = s->plan.ranges,
		.range_count = s->plan.range_count,
		.cell_count = s->plan.cell_count,
	};
	char why[ERROR_SIZE];
	int err;

	if (!has_privileges())
		return profil__error(EPERM, "it takes CAP_BPF and CAP_PERFMON");
	if (!module)
		return profil__error(ENOTSUP, "%s", why_not ? why_not : "no module");
	err = module->start(&request, &s->handle, &s->state, &s->cells, why, sizeof(why));
	if (err)
		return profil__error(-err, "%s", why);
	err = keep_from_children(s);
	if (err) {
		bpf_release(s);
		s->state = NULL;
		s->cells = NULL;
	}
	return err;
}

static int bpf_rescan(struct profil_session *s)
{
	return module->rescan(s->handle);
}

const struct backend profil__backend_bpf = {
	.name = "bpf",
	.prepare = bpf_prepare,
	.start = bpf_start,
	.rescan = bpf_rescan,
	.stop = bpf_stop,
	.release = bpf_release,
};
