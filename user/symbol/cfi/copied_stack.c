// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/copied_stack.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/unwind/unwind_copy.h"
#include "symbol/cfi/cfi.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file_open.h"

/*
 * What reading the files may cost, in all: a malicious recording can name any number of them.
 * Bound: files: bytes, CPU time and memory for reading the images of a recording of perf; then:
 * further ones are not read: stacks end in their code; seen: in a warning.
 */
#define READ_BYTES  ((uint64_t)4 << 30)
#define READ_NS	    (6 * NS_PER_S)
#define READ_MEMORY ((size_t)512 << 20)

/* The searches in the tables require addresses below this. Bound: format. */
#define USER_LIMIT (UINT64_C(1) << 63)

struct image {
	bool is_known;
	uint32_t number; /* in the tables */
	struct unwind_segment segments[UNWIND_SEGMENTS_MAX];
	size_t segment_count;
};

struct copied_stacks {
	struct profile *p;
	struct unwind_tables tables;
	struct image *images; /* by their numbers in the profile */
	size_t image_count, image_room;
	struct unwind_space space;
	struct read_budget budget;
	struct unwind_copy copy;
};

/* perf's numbers of the registers, by their numbers in DWARF; the last one is the pc. */
static const uint8_t perf_registers[UNWIND_COPY_REGISTERS] = {
#ifdef UNWIND_X86
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,	PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,	PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
#else
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10,
	11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
	22, 23, 24, 25, 26, 27, 28, 29, 30, 31, PERF_REG_ARM64_PC,
#endif
};

struct copied_stacks *copied_stacks_new(struct profile *p)
{
	struct copied_stacks *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->p = p;
	c->budget = (struct read_budget){
		.bytes = READ_BYTES,
		.until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + READ_NS,
		.memory = READ_MEMORY,
	};
	if (unwind_tables_private(&c->tables)) {
		copied_stacks_free(c);
		return NULL;
	}
	return c;
}

void copied_stacks_free(struct copied_stacks *c)
{
	if (!c)
		return;
	unwind_tables_free(&c->tables);
	free(c->images);
	free(c->space.mappings);
	free(c);
}

bool copied_stacks_gave_up(const struct copied_stacks *c)
{
	return c->budget.exceeded;
}

void copied_stacks_unmap(struct copied_stacks *c)
{
	c->space.count = 0;
}

/* Reads the rows of a file into the tables. False: there are none, or it is another file. */
static bool read_rows(struct copied_stacks *c, int fd, const struct profile_image *from,
		      struct image *image)
{
	struct unwind_rows rows = { 0 };
	struct error ignored;
	bool is_it = !cfi_read(fd, from->path, NULL, &c->budget, &rows, &ignored);

	if (is_it && from->build_id_size)
		is_it = rows.build_id_size == from->build_id_size &&
			memcmp(rows.build_id, from->build_id, rows.build_id_size) == 0;
	is_it = is_it && !unwind_tables_add(&c->tables, &rows, 0, &image->number);
	if (is_it) {
		memcpy(image->segments, rows.segments, sizeof(image->segments));
		image->segment_count = rows.segment_count;
	} else {
		image->number = UNWIND_NO_IMAGE;
	}
	unwind_rows_free(&rows);
	return is_it;
}

static void read_image(struct copied_stacks *c, uint32_t number)
{
	const struct profile_image *from = &c->p->images[number];
	struct image *image = &c->images[number];
	int fds[] = { elf_open_cached(from->build_id, from->build_id_size),
		      file_open_regular(-1, from->path, NULL) };
	bool found = false;

	image->is_known = true;
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		found = found || (fds[i] >= 0 && read_rows(c, fds[i], from, image));
		file_close(fds[i]);
	}
	if (!found && strcmp(from->path, "[vdso]") == 0)
		read_rows(c, -1, from, image);
}

int copied_stacks_map(struct copied_stacks *c, uint64_t start, uint64_t limit, uint32_t mapping)
{
	const struct profile_mapping *m = &c->p->mappings[mapping];
	struct image *image;

	if (limit > USER_LIMIT || c->space.count == UNWIND_PROCESS_MAPPINGS_MAX)
		return 0;
	if (array_reserve(&c->images, &c->image_room, m->image + 1, sizeof(*c->images)) ||
	    array_reserve(&c->space.mappings, &c->space.room, c->space.count + 1,
			  sizeof(*c->space.mappings)))
		return -ENOMEM;
	for (; c->image_count <= m->image; c->image_count++)
		c->images[c->image_count] = (struct image){ .number = UNWIND_NO_IMAGE };
	image = &c->images[m->image];
	if (!image->is_known)
		read_image(c, m->image);
	c->space.mappings[c->space.count++] = (struct unwind_mapping){
		.start = start,
		.limit = limit,
		.bias = unwind_bias(image->segments, image->segment_count, m->start, m->limit,
				    m->offset),
		.image = image->number,
	};
	return 0;
}

uint32_t copied_stacks_walk(struct copied_stacks *c, uint64_t mask, const uint8_t *registers,
			    const uint8_t *bytes, size_t size, uint64_t pcs[COPIED_FRAMES_MAX])
{
	struct unwind_copy *copy = &c->copy;
	struct unwind_found found;

	for (size_t i = 0; i < UNWIND_COPY_REGISTERS; i++) {
		uint64_t bit = UINT64_C(1) << perf_registers[i];

		copy->registers[i] = 0;
		if (mask & bit)
			memcpy(&copy->registers[i],
			       registers + 8 * __builtin_popcountll(mask & (bit - 1)), 8);
		else if (i == UNWIND_REGISTERS || i == UNWIND_SP_NUMBER)
			return 0;
	}
	copy->begin = copy->registers[UNWIND_SP_NUMBER];
	copy->size = MIN(size, UNWIND_COPY_BYTES);
	memcpy(copy->bytes, bytes, copy->size);
	if (unwind_copy_walk(copy, &c->tables, &c->space, NULL, &found))
		return 0;
	memcpy(pcs, found.pcs, found.user_depth * sizeof(*pcs));
	return found.user_depth;
}
