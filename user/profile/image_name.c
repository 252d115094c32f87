// SPDX-License-Identifier: GPL-2.0-only
#include "profile/image_name.h"

#include <fnmatch.h>

/* Names without brackets that proc(5) shows for memory without a file. */
static const struct {
	const char *prefix;
	enum image_kind kind;
} memory[] = {
	{ "//anon", IMAGE_ANON },	    { "/memfd:", IMAGE_SHARED },
	{ "/SYSV", IMAGE_SHARED },	    { "/dev/zero", IMAGE_SHARED },
	{ "/anon_hugepage", IMAGE_SHARED },
};

enum image_kind image_kind(const char *path)
{
	if (!*path)
		return IMAGE_UNNAMED;
	if (image_is_bracketed(path)) {
		if (image_is_in_kernel(path))
			return IMAGE_IN_KERNEL;
		if (strcmp(path, "[vdso]") == 0 || strcmp(path, "[vdso32]") == 0)
			return IMAGE_VDSO;
		if (strncmp(path, "[jit ", strlen("[jit ")) == 0)
			return IMAGE_JIT;
		return strcmp(path, "[vsyscall]") == 0 ? IMAGE_VSYSCALL : IMAGE_BRACKETED;
	}
	for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
		if (strncmp(path, memory[i].prefix, strlen(memory[i].prefix)) == 0)
			return memory[i].kind;
	return IMAGE_FILE;
}

bool image_is_libc(const char *path)
{
	static const char *const libraries[] = { "libc.so*", "libc-*", "libpthread*", "ld-musl-*" };
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (fnmatch(libraries[i], slash ? slash + 1 : path, 0) == 0)
			return true;
	return false;
}
