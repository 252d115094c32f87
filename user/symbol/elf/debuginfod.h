/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DEBUGINFOD_H
#define PROFIL_SYMBOL_DEBUGINFOD_H

#include "symbol/batch.h"
#include "symbol/elf_file.h"
#include "util/error.h"

/*
 * Debug files from the servers in DEBUGINFOD_URLS. libdebuginfod is loaded on demand, so that it is
 * optional. Files from servers are untrusted, and must have the requested build ID. The library
 * caches them: debuginfod-client-config(7).
 *
 * Time limits: 10 seconds per file, 60 in total. batch_stopped() ends a download.
 */
struct debuginfod;

/* Checks the library and the environment. Returns 0, or a negative errno and sets e. */
int debuginfod_check(struct error *e);

/* The caller closes *d with debuginfod_close(). Returns 0, or a negative errno and sets e. */
int debuginfod_open(struct debuginfod **d, struct error *e);
void debuginfod_close(struct debuginfod *d);

/*
 * Downloads the debug file of a batch's image, by its build ID. Returns whether *debug is open; the
 * caller closes it with elf_file_close(). On failure sets b->why. Does nothing if b->debuginfod is
 * NULL.
 */
bool debuginfod_find(struct batch *b, struct elf_file *debug);

#endif
