/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SYMBOL_DEBUGINFOD_H
#define PROFIL_SYMBOL_DEBUGINFOD_H

#include "symbol/batch.h"
#include "symbol/elf_file.h"
#include "util/error.h"

/*
 * Debug files from the servers in DEBUGINFOD_URLS: a client that is loaded when it is asked for, so
 * that nobody else needs libdebuginfod. What comes from a server is as little trusted as any file,
 * and has to have the build ID that was asked for. The client keeps files in its cache; see
 * debuginfod-client-config(7).
 *
 * One file has 10 seconds, all have 60; batch_stopped() ends it, too.
 */
struct debuginfod;

/* Whether it can be asked at all. Returns 0, or a negative errno and says in e what is missing. */
int debuginfod_check(struct error *e);

/* *d is the caller's, to debuginfod_close(). */
int debuginfod_open(struct debuginfod **d, struct error *e);
void debuginfod_close(struct debuginfod *d);

/*
 * Asks for the debug file of a batch's image, by its build ID. Returns whether it is open in *debug
 * (close it with elf_file_close()); if not, why is in b->why. Does nothing, and says nothing, when
 * b->debuginfod is NULL.
 */
bool debuginfod_find(struct batch *b, struct elf_file *debug);

#endif
