/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DEBUG_FILE_H
#define PROFIL_SYMBOL_DEBUG_FILE_H

#include "symbol/elf_file.h"

/*
 * The separate file that the symbols of a stripped one were moved to: by build ID under
 * /usr/lib/debug/.build-id, else by the name in .gnu_debuglink, beside `path`, in .debug/ there,
 * and under /usr/lib/debug. Only a file with the same build ID is taken, or with the checksum of
 * .gnu_debuglink when the stripped one has no build ID. root: the folder that path and those are
 * in, when it is not our root (a container's), else -1; by build ID, ours is searched as well.
 * Returns whether one was found; close it with elf_file_close().
 *
 * Why this is not libdwfl's own search: that goes on to ask debuginfod servers whenever
 * DEBUGINFOD_URLS is set, with no way to turn it off but to change the environment. Nothing here
 * ever uses the network.
 */
bool debug_file_find(Elf *stripped, int root, const char *path, struct elf_file *debug);

/* The symbols in .gnu_debugdata (Fedora's "mini debuginfo": an ELF file in an xz stream). */
bool debug_data_unpack(Elf *stripped, struct elf_file *debug);

#endif
