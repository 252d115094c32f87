/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_UNWIND_ROWS_H
#define PROFIL_CAPTURE_UNWIND_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "bpf/script/language.h"
#include "bpf/unwind_table.h"
#include "capture/context.h"
#include "util/error.h"
#include "util/read_budget.h"

struct unwind_address {
	uint64_t address; /* ELF virtual address */
	uint16_t rule;
};

/* An executable PT_LOAD segment of a file. */
struct unwind_segment {
	uint64_t offset, size; /* in the file */
	uint64_t address;      /* ELF virtual address */
};

/*
 * The difference of an address in a mapping, which begins at this offset of the file, and its ELF
 * virtual address.
 */
static inline uint64_t unwind_bias(const struct unwind_segment *segments, size_t count,
				   uint64_t start, uint64_t limit, uint64_t offset)
{
	for (size_t i = 0; i < count; i++) {
		const struct unwind_segment *s = &segments[i];

		if (s->offset < offset + (limit - start) && offset < s->offset + s->size)
			return start - offset + s->offset - s->address;
	}
	return start - offset;
}

/* Bound: files: executable segments of an image; then: further ones have no rows. */
#define UNWIND_SEGMENTS_MAX 8
/* Bound: format. */
#define UNWIND_BUILD_ID_MAX 20 /* as in the kernel's mmap2 records */

/* An image's rules for finding callers. Zero-initialised is empty. */
struct unwind_rows {
	/*
	 * Sorted by address, from the start of the first function to the end of the last one, where
	 * a gap begins. Adjacent rows have different rules.
	 */
	struct unwind_address *rows;
	size_t count, room;
	struct unwind_rule *rules; /* no two are equal; at most 65536 */
	size_t rule_count, rule_room;
	struct unwind_segment segments[UNWIND_SEGMENTS_MAX];
	size_t segment_count;
	uint8_t build_id[UNWIND_BUILD_ID_MAX];
	size_t build_id_size; /* 0: the file has none */
	struct language_image language;
	struct context_image context;
	uint64_t cost_ns; /* CPU time that another process has used to read them */
};

/* Frees rows and rules. Segments and build ID stay. */
static inline void unwind_rows_free(struct unwind_rows *rows)
{
	free(rows->rows);
	free(rows->rules);
	rows->rows = NULL;
	rows->rules = NULL;
	rows->count = rows->room = rows->rule_count = rows->rule_room = 0;
}

/*
 * Reads the rows of an image. parser: the process that does it; NULL: this one. fd: its file, open
 * for reading, owned by the caller; -1: `path` is "[vdso]". user: who chose what the file holds; 0:
 * root. wishes: which variables to find; NULL: none. budget: what reading may cost; NULL: no limit.
 * Returns 0 (with count 0 if there is no call
 * frame information), or a negative errno with *e set.
 */
struct parser;
typedef int unwind_reader(struct parser *parser, int fd, const char *path, uint32_t user,
			  const struct context_wishes *wishes, struct read_budget *budget,
			  struct unwind_rows *rows, struct error *e);

#endif
