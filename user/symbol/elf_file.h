/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_ELF_FILE_H
#define PROFIL_SYMBOL_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "util/error.h"
#include "util/read_budget.h"

/* The bytes of a file, to be copied as a value: its owner keeps it open. */
struct elf_source {
	int fd;			    /* -1: in memory */
	const uint8_t *memory;	    /* NULL: in fd */
	uint64_t size;		    /* when it was opened */
	struct read_budget *budget; /* NULL: no limit */
};

/*
 * Reads up to `size` bytes: all that is read of untrusted files. Returns their number, less at the
 * file's end, on an error, or if the budget is exceeded.
 */
size_t elf_source_read(const struct elf_source *source, void *to, size_t size, uint64_t at);

#define ELF_STRING_TABLES 2

/*
 * An untrusted ELF file: any user may have written it, to attack the profiler, which may be root,
 * and may write to it now.
 *
 * It is read, never mapped: mapped, a file that its owner truncates is a SIGBUS. libelf sees a copy
 * of the headers and of the sections' names, which was read once and is checked: sizes that libelf
 * would trust, and allocate memory by. All else is read by elf_source_read(), mostly by windows
 * (symbol/section.h).
 *
 * Why this is libelf and not libdwfl, which would take less code: libdwfl (elfutils 0.188) maps
 * debug files, blocks on a FIFO that a debug link names, decompresses .gnu_debugdata without a
 * limit, and uses the network if DEBUGINFOD_URLS is set.
 */
struct elf_file {
	Elf *elf; /* NULL: not open. Of its data only sections' names can be read */
	struct elf_source source;
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	size_t build_id_size; /* GNU's; 0: none */

	/* private to elf_file.c */
	void *headers; /* what libelf sees of the file in fd */
	void *memory;  /* the file from malloc(), or NULL */
	/* private to symbol_table.c: of .symtab and .dynsym; freed with the file */
	char *strings[ELF_STRING_TABLES];
};

/*
 * Opens a program or shared library. Takes over fd, also on failure. The caller keeps *budget while
 * the file is open. Returns 0, or a negative errno and sets e, to libelf's own message if there is
 * one.
 */
int elf_file_open(struct elf_file *f, int fd, struct read_budget *budget, struct error *e);

/* The same; also accepts object files, such as .dwo files and those of dwz(1). */
int elf_object_open(struct elf_file *f, int fd, struct read_budget *budget, struct error *e);

/* The same for a file in memory from malloc(), which it takes over. */
int elf_file_open_memory(struct elf_file *f, void *memory, size_t size, struct read_budget *budget,
			 struct error *e);
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
 * From now on, opener() is asked for such files: for a process without a file system, which does
 * nothing but read the files of one caller. It returns as elf_open_companion().
 */
typedef int elf_opener(void *context, int root, const char *path);
void elf_open_companions_by(elf_opener *opener, void *context);

/*
 * Opens the copy that perf record made of a file with this build ID, in the caller's cache:
 * ~/.debug. Root or the caller owns it. Returns a descriptor or a negative errno.
 */
int elf_open_cached(const uint8_t *id, size_t size);

/*
 * Copies this process's vDSO, which all processes of the same architecture share, to a file in
 * memory. Returns a descriptor or a negative errno.
 */
int elf_open_vdso(void);

/* Whether the file has this build ID. */
bool elf_has_build_id(const struct elf_file *f, const uint8_t *id, size_t size);

/*
 * Sets the path at which distributions install the debug file of a build ID. Returns false if the
 * ID has less than two bytes, which leaves no file name.
 */
#define ELF_DEBUG_ROOT	    "/usr/lib/debug"
#define ELF_DEBUG_PATH_SIZE (sizeof(ELF_DEBUG_ROOT "/.build-id//.debug") + 2 * PROFILE_BUILD_ID_MAX)
bool elf_debug_path(const uint8_t *id, size_t size, char path[ELF_DEBUG_PATH_SIZE]);

/* The first section with this name that has bytes in the file; sets its header. Or NULL. */
Elf_Scn *elf_find_section(Elf *elf, const char *name, GElf_Shdr *section);

/*
 * The bytes of the section with this name, to be free()d; sets *size. NULL: none, above size_max,
 * or they cannot be read.
 */
void *elf_section_bytes(const struct elf_file *f, const char *name, size_t size_max, size_t *size);

/* The first section of this type; sets its header. Or NULL. */
Elf_Scn *elf_find_type(Elf *elf, GElf_Word type, GElf_Shdr *section);

/*
 * Finds the next segment of this type from number *i on, and sets *i behind it. Returns false if
 * there is none.
 */
bool elf_next_segment(Elf *elf, size_t *i, GElf_Word type, GElf_Phdr *segment);

/*
 * Finds the bytes that a program has at an ELF virtual address. Returns how many the file has from
 * there to the segment's end, and sets their offset; 0: none.
 */
uint64_t elf_address_bytes(Elf *elf, uint64_t address, uint64_t *offset);

/* The lowest ELF virtual address of code; UINT64_MAX: no code. */
uint64_t elf_code_start(Elf *elf);

struct elf_range {
	uint64_t start;
	uint64_t limit;
	size_t section; /* its number */
};

/*
 * Finds the ELF virtual addresses of the PLT, which the linker generates: .plt, .plt.got, .plt.sec,
 * .plt.bnd; of `max` sections at most. Returns their number.
 */
size_t elf_plt_ranges(Elf *elf, struct elf_range *ranges, size_t max);

#endif
