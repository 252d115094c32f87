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
 * An ELF file that came from anywhere: a user may have written it to harm whoever profiles.
 *
 * It is read, never mapped: a mapped file that its owner truncates meanwhile is a SIGBUS. Only the
 * parts that are asked for are read. What libelf would take on trust, and allocate memory by, is
 * checked first.
 *
 * That is why this is libelf and not libdwfl, which does more for less: libdwfl (elfutils 0.188)
 * maps debug files, waits on a FIFO that a debug link names, unpacks .gnu_debugdata without a
 * limit, and goes to the network when DEBUGINFOD_URLS is set.
 */
struct elf_file {
	Elf *elf; /* NULL: not open */
	int fd;	  /* -1: in memory */
	void *memory;
};

/*
 * Takes over fd, also when it fails. Returns 0, or a negative errno and says in e what is wrong
 * with the file (libelf's own words when it is libelf that complains).
 */
int elf_file_open(struct elf_file *f, int fd, struct error *e);

/* The same when it may be an object file, too, as .dwo files and those of dwz(1) are. */
int elf_object_open(struct elf_file *f, int fd, struct error *e);

/* The same for a file in memory from malloc(), taken over too. */
int elf_file_open_memory(struct elf_file *f, void *memory, size_t size, struct error *e);
void elf_file_close(struct elf_file *f);

/*
 * A copy of our own vDSO, which all processes of our kind have under this kernel: an ELF file in
 * memory. Returns a descriptor or a negative errno.
 */
int elf_open_vdso(void);

/* Its GNU build ID, at most PROFILE_BUILD_ID_MAX bytes of it. Returns the size, 0 without one. */
size_t elf_build_id(Elf *elf, const uint8_t **id);

/* Whether the file has this build ID. */
bool elf_has_build_id(Elf *elf, const uint8_t *id, size_t size);

/*
 * Where distributions keep the debug file of a build ID: below /usr/lib/debug/.build-id. Returns
 * false for an ID of one byte, which leaves no file name.
 */
#define ELF_DEBUG_ROOT	    "/usr/lib/debug"
#define ELF_DEBUG_PATH_SIZE (sizeof(ELF_DEBUG_ROOT "/.build-id//.debug") + 2 * PROFILE_BUILD_ID_MAX)
bool elf_debug_path(const uint8_t *id, size_t size, char path[ELF_DEBUG_PATH_SIZE]);

/* The first section with this name that has bytes in the file, and its header; or NULL. */
Elf_Scn *elf_find_section(Elf *elf, const char *name, GElf_Shdr *section);

/* The section with this name, of at most size_max bytes, and its bytes as in the file; or NULL. */
Elf_Data *elf_section_bytes(Elf *elf, const char *name, size_t size_max);

/* The first section of this type, and its header; or NULL. */
Elf_Scn *elf_find_type(Elf *elf, GElf_Word type, GElf_Shdr *section);

/* Where code begins, by ELF virtual addresses; UINT64_MAX: there is none. */
uint64_t elf_code_start(Elf *elf);

struct elf_range {
	uint64_t start;
	uint64_t limit;
	size_t section; /* its number */
};

/*
 * Where in memory, by ELF virtual addresses, the sections stand whose names begin so: the first
 * `max` of them. Returns their number.
 */
size_t elf_section_ranges(Elf *elf, const char *prefix, struct elf_range *ranges, size_t max);

#endif
