/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Context: values of variables of a process that say for whom its threads work, such as the query
 * that a PostgreSQL backend runs. The BPF program reads them at a tick, and when a thread leaves
 * its CPU. Shared by it and user space. Both include it, so it includes nothing.
 */
#ifndef PROFIL_BPF_CONTEXT_H
#define PROFIL_BPF_CONTEXT_H

/*
 * Bound: users: variables that are read of one image, and images of a process that have some; then:
 * the others have no labels; again: never; share: the process's own; seen: not seen.
 */
#define CONTEXT_VARIABLES      8
#define CONTEXT_PROCESS_IMAGES 2

enum context_kind {
	CONTEXT_NONE,
	CONTEXT_STRING,	 /* the variable is the text */
	CONTEXT_POINTER, /* the variable points to the text; NULL: there is none */
	CONTEXT_U32,
	CONTEXT_U64,
	CONTEXT_KINDS
};

/* How a text becomes one that others share: bpf/context_text.h. */
enum context_rule {
	CONTEXT_PLAIN,	 /* numbers and quoted strings are replaced by ? */
	CONTEXT_SQL,	 /* so are dollar quotes; comments are removed, quoted names stay */
	CONTEXT_LITERAL, /* nothing is */
	CONTEXT_RULES
};

struct context_variable {
	/* ELF virtual address; if is_thread_local, a distance from the thread pointer. */
	unsigned long long address;
	unsigned short length; /* of a text, in bytes */
	unsigned char kind;    /* enum context_kind */
	unsigned char rule;    /* enum context_rule */
	unsigned char label;   /* the number of its label, below CONTEXT_LABELS */
	unsigned char is_thread_local;
	unsigned short unused;
};

/* What is read of the processes that map an image. */
struct context_image {
	unsigned int count, unused;
	struct context_variable variables[CONTEXT_VARIABLES];
};

/*
 * Images with variables; 0 is none.
 * Bound: users: different images of a recording whose variables are read; then: processes of
 * further ones have no labels; again: never; share: none; seen: not seen.
 */
#define CONTEXT_IMAGES 64

/* Bound: caller: labels of a recording; then: the option is refused. */
#define CONTEXT_LABELS 24

/*
 * Bytes of one text, and of all values of a thread together.
 * Bound: users: bytes of texts; then: the rest is cut off, and "..." follows; again: never; share:
 * each thread's own; seen: by the dots.
 */
#define CONTEXT_TEXT_BYTES  256
#define CONTEXT_VALUE_BYTES 512
#define CONTEXT_VALUE_WORDS (CONTEXT_VALUE_BYTES / 8)

/*
 * The values of a thread: for each variable a byte that says its label, its bytes, which are never
 * 0, and a 0. A number has CONTEXT_NUMBER_BYTES, each with 7 bits of it, the lowest first, and the
 * uppermost bit set. Stored once for all threads that have the same.
 */
struct context_value {
	unsigned long long hash;  /* 0: the entry is free */
	unsigned long long words; /* in use; written last: until then the entry is none */
	unsigned long long bytes[CONTEXT_VALUE_WORDS];
};

#define CONTEXT_NUMBER 0x40 /* in the first byte: a number follows */
/* Bound: format. */
#define CONTEXT_NUMBER_BYTES 10

/*
 * The table of values. Those below CONTEXT_IMAGES have no text: of a process with the variables of
 * the image with this number, what found no room.
 * Bound: users: different values of a recording; then: samples with others are labelled [others];
 * again: never; share: a process and a user have as many as are still free, so half of all; seen:
 * context_others.
 */
#define CONTEXT_VALUES 8192
#define CONTEXT_PROBES 16

/* Counts of values: of all, of users by their hash, and of processes by theirs. Bound: state. */
#define CONTEXT_SHARES 1024

#endif
