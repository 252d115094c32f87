/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_OBJDUMP_H
#define PROFIL_REPORT_OBJDUMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * A running objdump(1) of binutils. It reads files that nobody vouches for: what it may take of
 * time and memory (4 GiB), and print, is limited.
 */
struct objdump {
	pid_t pid;
	int out;
	int messages;	   /* a file in memory, of limited size */
	uint64_t deadline; /* of the clock of now_ns() */
	char *buffer;
	size_t begin, end; /* of what is in it and was not told yet */
};

/* arguments[0] is "objdump". Returns 0, or a negative errno with e set. */
int objdump_start(struct objdump *o, char *const *arguments, unsigned int seconds, struct error *e);

/*
 * The next line, without its newline, valid until the next call; NULL with *err 0 at the end. What
 * a line has beyond 64 KiB is another line. *err is -ETIMEDOUT when the time is over.
 */
char *objdump_read_line(struct objdump *o, int *err);

/*
 * Waits for its end, or brings it about when `err` says that something failed. Returns 0, or a
 * negative errno with e set to why `path` could not be disassembled.
 */
int objdump_finish(struct objdump *o, const char *path, int err, struct error *e);

#endif
