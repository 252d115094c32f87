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
 * Checks the body, which is the rest of the input, and calls each() for every count that is not 0,
 * in the order of addresses; each() returns 0, or -ENOMEM to stop. Returns 0 or -errno with *e set:
 * each() may have been called before.
 */
int dcpi_body_read(const struct input *in, const struct dcpi_header *h,
		   int (*each)(const struct dcpi_count *count, void *context), void *context,
		   struct error *e);

/*
 * Sorts counts by address and adds up those of the same address; sums saturate. Returns the new
 * number of counts.
 */
size_t dcpi_body_fold(struct dcpi_count *counts, size_t count);

/*
 * Returns the index of the first count that a file cannot hold: the count or its offset from tstart
 * does not fit into 32 bits. `count`: it can hold all. The counts are folded, and none is below
 * tstart.
 */
size_t dcpi_body_check(const struct dcpi_count *counts, size_t count, uint64_t tstart);

/* Returns the sum of all counts, which saturates. */
uint64_t dcpi_body_total(const struct dcpi_count *counts, size_t count);

/* Writes the body. The counts are folded, and their total fits into 32 bits. */
void dcpi_body_write(const struct dcpi_count *counts, size_t count, uint64_t tstart, FILE *out);

#endif
