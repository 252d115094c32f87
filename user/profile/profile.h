/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_PROFILE_H
#define PROFIL_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "util/index.h"

/*
 * The profile in memory. Every reader makes one, every writer takes one, every report works on
 * one. Elements are numbered from 0 in their arrays and refer to each other by number, so that
 * arrays may grow. Strings are interned: equal strings are the same pointer, and live as long
 * as the profile. One thread at a time.
 *
 * Addresses: the leaf's is its pc; a caller's lies inside its call instruction, which is the
 * return address - 1. Readers and writers of formats that hold return addresses convert.
 */

#define PROFILE_NONE	     UINT32_MAX
#define PROFILE_BUILD_ID_MAX 32

/* A file, or a part of memory with a name, that holds code. */
struct profile_image {
	const char *path; /* or [vdso], [kernel.kallsyms], [anon]; never NULL, may be "" */
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	unsigned int build_id_size; /* 0: not known */
	int fd; /* the open file, which may be deleted; -1: none. The profile closes it */
	const char *unnamed; /* why addresses in it have no name; NULL: not tried, or they have */
};

/* Where a part of an image stood in memory: [start, limit) is the file from offset on. */
struct profile_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint32_t image;
};

struct profile_function {
	const char *name;	 /* as shown: demangled; never empty */
	const char *system_name; /* as in the symbol table */
	const char *file;	 /* source file, "" when not known */
	uint32_t start_line;	 /* 0: not known */
};

/* What stands at a location: one line, or several for inlined functions, innermost first. */
struct profile_line {
	uint32_t function;
	uint32_t line; /* 0: not known */
};

struct profile_location {
	uint64_t address;
	/*
	 * The same in the image's own numbering: what `addr2line -e image` takes, once the symbol
	 * layer has seen the ELF file; until then the offset in the file; the address itself
	 * when no mapping is known.
	 */
	uint64_t image_address;
	uint32_t mapping;    /* PROFILE_NONE: in none that is known */
	uint32_t first_line; /* its lines are profile.lines[first_line .. + line_count] */
	uint32_t line_count; /* 0: no name */
};

/* What is the same for all samples of one thread and mode. */
struct profile_labels {
	uint32_t pid; /* 0: not known */
	uint32_t tid;
	const char *comm; /* "" when not known */
	bool kernel;	  /* the ticks came while the thread was in the kernel */
};

struct profile_sample {
	size_t first_frame; /* its stack is profile.frames[first_frame .. + depth], leaf first */
	uint32_t depth;	    /* 0 is possible: counted without a pc */
	uint32_t labels;
};

struct profile_value_type {
	const char *type; /* samples, cpu, ... */
	const char *unit; /* count, nanoseconds, ... */
};

struct profile_lost {
	const char *cause;
	uint64_t count;
};

/* The account of the recording: ticks = counted + out_of_range + excluded + all that is lost. */
struct profile_totals {
	bool known; /* false: the file did not carry it */
	uint64_t ticks;
	uint64_t counted;
	uint64_t out_of_range;
	uint64_t excluded;
	uint64_t kernel; /* how many of the counted came in the kernel */
	struct profile_lost *lost;
	size_t lost_count;
	size_t lost_room;
	uint64_t cpu_ns;	  /* CPU time of the target, by the kernel's account */
	uint64_t bpf_ns_per_tick; /* 0: not measured */
	uint64_t interrupt_ns;	  /* what one tick's interrupt costs without the program */
};

struct profile {
	/* What was recorded */
	const char *event;    /* task-clock, cycles, ...; "" when not known */
	uint64_t period_ns;   /* 0: not known */
	uint64_t time_ns;     /* when recording began, since the epoch; 0: not known */
	uint64_t duration_ns; /* 0: not known */
	struct profile_totals totals;

	/* What the file it was read from looked like, for dump; 0 and NULL when recorded here */
	const char *format;
	unsigned int bits; /* 32 or 64: the target's address size */
	bool big_endian;
	bool return_addresses; /* the file holds callers as return addresses */

	struct profile_value_type *value_types; /* at least one */
	size_t value_type_count, value_type_room;
	struct profile_image *images;
	size_t image_count, image_room;
	struct profile_mapping *mappings; /* the main executable's first, when known */
	size_t mapping_count, mapping_room;
	struct profile_function *functions;
	size_t function_count, function_room;
	struct profile_line *lines;
	size_t line_count, line_room;
	struct profile_location *locations;
	size_t location_count, location_room;
	struct profile_labels *labels;
	size_t label_count, label_room;
	uint32_t *frames; /* locations: all stacks, one behind the other */
	size_t frame_count, frame_room;
	struct profile_sample *samples;
	size_t sample_count, sample_room;
	int64_t *values;   /* sample i's are values[i * value_type_count .. + value_type_count] */
	size_t value_room; /* in samples' worth of value_type_count */

	const char **comments; /* free text that the format carried */
	size_t comment_count, comment_room;
	const char **warnings; /* what a reader had to overlook: one sentence each */
	size_t warning_count, warning_room;

	/* private to profile.c */
	char **strings;
	size_t string_count, string_room;
	struct index string_index, image_index, location_index, function_index, label_index,
		sample_index;
};

/* An empty profile, or NULL when memory runs out. Free it with profile_free(). */
struct profile *profile_new(void);
void profile_free(struct profile *p);

/*
 * All below return 0 or -ENOMEM. `id` receives the number of the element, which is an existing
 * one when an equal one is there (except for mappings). Strings are copied.
 */
int profile_string(struct profile *p, const char *text, const char **interned);
int profile_string_n(struct profile *p, const char *text, size_t size, const char **interned);

/* Before the first sample only. */
int profile_add_value_type(struct profile *p, const char *type, const char *unit);

/* Images are equal when path and build ID are. fd is -1 in a new one. */
int profile_add_image(struct profile *p, const char *path, const uint8_t *build_id,
		      size_t build_id_size, uint32_t *id);
int profile_add_mapping(struct profile *p, uint64_t start, uint64_t limit, uint64_t offset,
			uint32_t image, uint32_t *id);
int profile_add_function(struct profile *p, const struct profile_function *f, uint32_t *id);
int profile_add_location(struct profile *p, uint64_t address, uint32_t mapping, uint32_t *id);

/* Gives a location its lines, innermost first; replaces what it had. */
int profile_set_lines(struct profile *p, uint32_t location, const struct profile_line *lines,
		      uint32_t count);
int profile_add_labels(struct profile *p, const struct profile_labels *labels, uint32_t *id);

/*
 * Adds values (value_type_count of them) to the sample with this stack and labels, which is made
 * when it is new. frames: depth location numbers, leaf first. Sums saturate at INT64_MAX.
 */
int profile_add_sample(struct profile *p, const uint32_t *frames, uint32_t depth, uint32_t labels,
		       const int64_t *values);
int profile_add_lost(struct profile *p, const char *cause, uint64_t count);
int profile_add_comment(struct profile *p, const char *text);

/* Notes what a reader overlooked; the same sentence is kept once. */
int profile_warn(struct profile *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The mapping in mappings[from ..] that holds this address, or PROFILE_NONE. */
uint32_t profile_find_mapping(const struct profile *p, uint32_t from, uint64_t address);

/* The number of the value that counts samples: type "samples", else the first. */
size_t profile_count_value(const struct profile *p);

/* Sum of that value over all samples. */
uint64_t profile_total(const struct profile *p);

/* All lost ticks, of every cause. */
uint64_t profile_lost(const struct profile *p);

/* The image that a location lies in, or NULL. */
const struct profile_image *profile_location_image(const struct profile *p, uint32_t location);

/* The pc of frame `depth` (0 is the leaf) as the file it was read from holds it. */
uint64_t profile_file_pc(const struct profile *p, uint32_t location, uint32_t depth);

#endif
