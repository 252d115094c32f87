/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_DCPI_BODY_H
#define PROFIL_DCPI_BODY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "dcpi/header.h"
#include "util/input.h"
#include "util/error.h"

/* The counts of a DCPI file: dcpiformat(4), BINARY DATA FOR MAJOR-VERSION 0. */

struct dcpi_count {
	uint64_t address;
	uint64_t count;
};

/*
 * Checks the body, which is all that the window holds, and calls each() for what it counts in the
 * order of addresses; each() returns 0, or -ENOMEM to end it. Returns 0 or -errno: some may have
 * been told then.
 */
int dcpi_body_read(const struct input *in, const struct dcpi_header *h,
		   int (*each)(const struct dcpi_count *count, void *context), void *context,
		   struct error *e);

/*
 * Sorts counts by address and makes one of those that have the same. Returns how many there are
 * then. Sums saturate.
 */
size_t dcpi_body_fold(struct dcpi_count *counts, size_t count);

/*
 * The first of the counts (folded, from tstart on) that has no place in a file: its number or its
 * address does not fit into 32 bits. `count` when all have.
 */
size_t dcpi_body_check(const struct dcpi_count *counts, size_t count, uint64_t tstart);

/* Sum of all; saturates. */
uint64_t dcpi_body_total(const struct dcpi_count *counts, size_t count);

/* Writes counts that are folded and whose total fits into 32 bits. */
void dcpi_body_write(const struct dcpi_count *counts, size_t count, uint64_t tstart, FILE *out);

#endif
