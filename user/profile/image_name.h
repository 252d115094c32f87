/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_IMAGE_NAME_H
#define PROFIL_PROFILE_IMAGE_NAME_H

#include <stdbool.h>
#include <string.h>

/* The kind of an image by profile_image.path: names of proc(5), of perf and of our recordings. */

/* The kernel's name as an image. Files add the symbol it is relocated by: "..._text". */
#define IMAGE_KERNEL "[kernel.kallsyms]"
/* Of what stands for a thread that does not run: [runnable: no free CPU], [blocked: lock]. */
#define IMAGE_OFF_CPU "[off CPU]"

enum image_kind {
	IMAGE_FILE,	 /* the path of a file, or its base name */
	IMAGE_UNNAMED,	 /* "" */
	IMAGE_IN_KERNEL, /* [kernel.kallsyms], or as other tools call it: [kernel] */
	IMAGE_VDSO,	 /* an ELF image, the same in all processes, but in no file */
	IMAGE_VSYSCALL,	 /* at the same address in all processes */
	IMAGE_JIT,	 /* [jit PID]: code that this process generated and published names for */
	IMAGE_BRACKETED, /* [heap], [stack], [anon]; a module of the kernel: [nf_tables] */
	IMAGE_ANON,	 /* //anon, as perf has it */
	IMAGE_SHARED,	 /* memory that several processes may have mapped: /memfd:NAME */
};

enum image_kind image_kind(const char *path);

/* True if a path is that of a C library, all of whose functions wait for others. */
bool image_is_libc(const char *path);

/* True if it is IMAGE_KERNEL, maybe followed by the symbol. */
static inline bool image_is_kernel(const char *path)
{
	return strncmp(path, IMAGE_KERNEL, strlen(IMAGE_KERNEL)) == 0;
}

/* True if it is IMAGE_IN_KERNEL; cheap enough for every frame. */
static inline bool image_is_in_kernel(const char *path)
{
	return strncmp(path, "[kernel", strlen("[kernel")) == 0;
}

/* A made-up name that no file has: IMAGE_IN_KERNEL to IMAGE_BRACKETED. */
static inline bool image_is_bracketed(const char *path)
{
	return *path == '[';
}

/* A base name, or no name: what gmon.out has of its program. */
static inline bool image_has_no_directory(const char *path)
{
	return !strchr(path, '/') && !image_is_bracketed(path);
}

#endif
