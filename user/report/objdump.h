/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_OBJDUMP_H
#define PROFIL_REPORT_OBJDUMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * A running objdump(1) of binutils. It reads untrusted files, so its time, its memory (4 GiB) and
 * its output are limited.
 */
struct objdump {
	pid_t pid;
	int out;
	int messages;	   /* its stderr: a file in memory, of limited size */
	uint64_t deadline; /* of now_ns() */
	char *buffer;
	size_t begin, end; /* of what was read into it but not returned */
};

/* arguments[0]: "objdump". Returns 0, or a negative errno with e set. */
int objdump_start(struct objdump *o, char *const *arguments, unsigned int seconds, struct error *e);

/*
 * Returns the next line without its newline, valid until the next call. Lines longer than 64 KiB
 * are split. Returns NULL at the end, with *err 0, and on errors: -ETIMEDOUT after the deadline.
 */
char *objdump_read_line(struct objdump *o, int *err);

/*
 * Waits for its end, or kills it if err, an error that reading returned, is not 0. Returns 0, or a
 * negative errno with e set to the reason why `path` could not be disassembled.
 */
int objdump_finish(struct objdump *o, const char *path, int err, struct error *e);

#endif
