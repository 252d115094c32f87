/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_ELF_FILE_H
#define PROFIL_SYMBOL_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "util/error.h"

/*
 * An untrusted ELF file: any user may have written it, to attack the profiler, which may be root.
 *
 * It is read, never mapped: mapped, a file that its owner truncates is a SIGBUS. Only the parts
 * needed are read. Sizes that libelf would trust, and allocate memory by, are checked first.
 *
 * Why this is libelf and not libdwfl, which would take less code: libdwfl (elfutils 0.188) maps
 * debug files, blocks on a FIFO that a debug link names, decompresses .gnu_debugdata without a
 * limit, and uses the network if DEBUGINFOD_URLS is set.
 */
struct elf_file {
	Elf *elf;     /* NULL: not open */
	int fd;	      /* -1: in memory */
	void *memory; /* from malloc(), or NULL */
};

/*
 * Opens a program or shared library. Takes over fd, also on failure. Returns 0, or a negative errno
 * and sets e, to libelf's own message if there is one.
 */
int elf_file_open(struct elf_file *f, int fd, struct error *e);

/* The same; also accepts object files, such as .dwo files and those of dwz(1). */
int elf_object_open(struct elf_file *f, int fd, struct error *e);

/* The same for a file in memory from malloc(), which it takes over. */
int elf_file_open_memory(struct elf_file *f, void *memory, size_t size, struct error *e);
void elf_file_close(struct elf_file *f);

/*
 * Opens a file that completes another one, such as its debug file. It must belong to root, to the
 * caller or to the owner of the other file: whoever else provides it, in a mount namespace of his
 * own or in a directory that all may write, could choose the names. fd: the other file, or -1;
 * root: as for file_open_regular(). Returns a descriptor, -EACCES (another owner) or another
 * negative errno.
 */
int elf_open_companion(int fd, int root, const char *path);

/*
 * Copies this process's vDSO, which all processes of the same architecture share, to a file in
 * memory. Returns a descriptor or a negative errno.
 */
int elf_open_vdso(void);

/* Finds the GNU build ID. Returns its size, at most PROFILE_BUILD_ID_MAX; 0: none. */
size_t elf_build_id(Elf *elf, const uint8_t **id);

/* Whether the file has this build ID. */
bool elf_has_build_id(Elf *elf, const uint8_t *id, size_t size);

/*
 * Sets the path at which distributions install the debug file of a build ID. Returns false if the
 * ID has less than two bytes, which leaves no file name.
 */
#define ELF_DEBUG_ROOT	    "/usr/lib/debug"
#define ELF_DEBUG_PATH_SIZE (sizeof(ELF_DEBUG_ROOT "/.build-id//.debug") + 2 * PROFILE_BUILD_ID_MAX)
bool elf_debug_path(const uint8_t *id, size_t size, char path[ELF_DEBUG_PATH_SIZE]);

/* The first section with this name that has bytes in the file; sets its header. Or NULL. */
Elf_Scn *elf_find_section(Elf *elf, const char *name, GElf_Shdr *section);

/* The bytes, as in the file, of the section with this name. NULL: none, or above size_max. */
Elf_Data *elf_section_bytes(Elf *elf, const char *name, size_t size_max);

/* The first section of this type; sets its header. Or NULL. */
Elf_Scn *elf_find_type(Elf *elf, GElf_Word type, GElf_Shdr *section);

/* The lowest ELF virtual address of code; UINT64_MAX: no code. */
uint64_t elf_code_start(Elf *elf);

struct elf_range {
	uint64_t start;
	uint64_t limit;
	size_t section; /* its number */
};

/*
 * Finds the ELF virtual addresses of the sections whose names begin with a prefix, up to `max`.
 * Returns their number.
 */
size_t elf_section_ranges(Elf *elf, const char *prefix, struct elf_range *ranges, size_t max);

#endif
