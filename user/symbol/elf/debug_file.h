/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DEBUG_FILE_H
#define PROFIL_SYMBOL_DEBUG_FILE_H

#include "symbol/elf_file.h"

/*
 * Finds the separate debug file with the symbols of a stripped file: by build ID under
 * /usr/lib/debug/.build-id, else by the name in .gnu_debuglink, next to `path`, in .debug/ there,
 * and under /usr/lib/debug. The debug file must have the same build ID or, if the stripped file has
 * none, the checksum in .gnu_debuglink, and is opened by elf_open_companion(). root: the directory
 * in which all these paths are resolved (a container's root), or -1; by build ID, the own root is
 * searched too. Returns whether a file was found; the caller closes *debug with elf_file_close().
 *
 * checksum_bytes: how many bytes may be read for checksums; lowered by the size of each file that
 * is read. A malicious program can name large files that are not its debug files.
 *
 * Why this is not libdwfl's own search: that goes on to ask debuginfod servers whenever
 * DEBUGINFOD_URLS is set, and only changing the environment turns it off. This never uses the
 * network.
 */
bool debug_file_find(const struct elf_file *stripped, int root, const char *path,
		     uint64_t *checksum_bytes, struct elf_file *debug);

/* Opens .gnu_debugdata, Fedora's "mini debuginfo": an ELF file with symbols, compressed by xz. */
bool debug_data_unpack(const struct elf_file *stripped, struct elf_file *debug);

#endif
