/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_IMAGE_NAME_H
#define PROFIL_PROFILE_IMAGE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What profile_image.path says an image is: the names of proc(5), of perf and of our recordings. */

/* The kernel's name as an image. Files add the symbol it is relocated by: "..._text". */
#define IMAGE_KERNEL "[kernel.kallsyms]"

enum image_kind {
	IMAGE_FILE,	 /* the path of a file, or its name without a folder */
	IMAGE_UNNAMED,	 /* "" */
	IMAGE_IN_KERNEL, /* [kernel.kallsyms] and what else tools call it: [kernel] */
	IMAGE_VDSO,	 /* an ELF image, the same in all processes, but in no file */
	IMAGE_VSYSCALL,	 /* at the same address in all processes */
	IMAGE_JIT, /* [jit PID]: code that this process has made, and told what it is called */
	IMAGE_BRACKETED, /* [heap], [stack], [anon]; a module of the kernel: [nf_tables] */
	IMAGE_ANON,	 /* //anon, as perf has it */
	IMAGE_SHARED,	 /* memory that several processes may have mapped: /memfd:NAME */
};

enum image_kind image_kind(const char *path);

/* Whether it is the kernel by IMAGE_KERNEL, so that what follows that is the symbol. */
static inline bool image_is_kernel(const char *path)
{
	return strncmp(path, IMAGE_KERNEL, strlen(IMAGE_KERNEL)) == 0;
}

/* IMAGE_IN_KERNEL, for what is asked of every frame. */
static inline bool image_is_in_kernel(const char *path)
{
	return strncmp(path, "[kernel", strlen("[kernel")) == 0;
}

/* A name that the kernel or a tool made up, which no file has: IMAGE_IN_KERNEL to _BRACKETED. */
static inline bool image_is_bracketed(const char *path)
{
	return *path == '[';
}

/* A file's name without its folder, or no name at all: what gmon.out has of its program. */
static inline bool image_has_no_folder(const char *path)
{
	return !strchr(path, '/') && !image_is_bracketed(path);
}

/* The size of the path that a file had, without the " (deleted)" that proc(5) adds to it. */
size_t image_path_size(const char *path);

#endif
