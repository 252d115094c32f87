/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interpreted languages: shared by the sample programs and user space. Both include it, so it and
 * the layouts include nothing else.
 */
#ifndef PROFIL_BPF_LANGUAGE_H
#define PROFIL_BPF_LANGUAGE_H

#include "perl_layout.h"
#include "php_layout.h"
#include "python_layout.h"

/* The languages whose functions ticks can name. X(NUMBER, name): its files and functions have the
 * name. A word has room for seven. */
#define LANGUAGE_LIST(X)  \
	X(PYTHON, python) \
	X(PHP, php)       \
	X(PERL, perl)

enum language {
	LANGUAGE_NONE,
#define LANGUAGE_ENUM(number, name) LANGUAGE_##number,
	LANGUAGE_LIST(LANGUAGE_ENUM)
#undef LANGUAGE_ENUM
	LANGUAGES
};

/*
 * A frame of a script stands among the pcs of a stack as one word, behind the frame of the
 * interpreter's function that runs it:
 *   bit  63      always 1, which no pc of user space has
 *   bits 62..60  the language
 *   bits 59..43  the instruction in its code, in units of the language; all 1: unknown
 *   bits 42..0   the address of the code object / 16
 */
#define LANGUAGE_INSTRUCTION_BITS    17
#define LANGUAGE_CODE_BITS	     43
#define LANGUAGE_INSTRUCTION_UNKNOWN ((1U << LANGUAGE_INSTRUCTION_BITS) - 1)

static inline unsigned long long language_word(enum language language, unsigned long long code,
					       unsigned long long instruction)
{
	if (instruction > LANGUAGE_INSTRUCTION_UNKNOWN)
		instruction = LANGUAGE_INSTRUCTION_UNKNOWN;
	return 1ULL << 63 | (unsigned long long)language << 60 | instruction << LANGUAGE_CODE_BITS |
	       (code >> 4 & ((1ULL << LANGUAGE_CODE_BITS) - 1));
}

/* LANGUAGE_NONE: it is a pc. */
static inline unsigned int language_of_word(unsigned long long word)
{
	unsigned int language = word >> 60 & 7;

	return word >> 63 && language < LANGUAGES ? language : LANGUAGE_NONE;
}

static inline unsigned int language_instruction(unsigned long long word)
{
	return word >> LANGUAGE_CODE_BITS & LANGUAGE_INSTRUCTION_UNKNOWN;
}

static inline unsigned long long language_code(unsigned long long word)
{
	return (word & ((1ULL << LANGUAGE_CODE_BITS) - 1)) << 4;
}

/* What is known of an image in the tables of the unwinder: of the same number there. */
struct language_image {
	unsigned int language; /* enum language, of which it is the interpreter */
	/*
	 * Of the C library: where a thread keeps its thread-specific data (pthread_setspecific(3)),
	 * in bytes from its thread pointer; 0: it is not the C library.
	 */
	unsigned int thread_specific;
	unsigned int version; /* of the language, such as 0x30b for 3.11 */
	union {
#define LANGUAGE_LAYOUT(number, name) struct name##_layout name;
		LANGUAGE_LIST(LANGUAGE_LAYOUT)
#undef LANGUAGE_LAYOUT
	};
};

/*
 * A code object, as it was when a tick first came to it, or when another one had taken its address.
 * `name`, `file` and `lines` are as the language keeps them: of Python, two string objects and the
 * text of the line table; of PHP, three strings, the last one is the name of the class; of Perl,
 * see enum perl_code.
 * Bound: users: bytes of a function's name, its file and a part of its lines; then: a longer one is
 * cut; again: never; share: the code object's own; seen: not seen.
 */
#define LANGUAGE_NAME_BYTES  320
#define LANGUAGE_FILE_BYTES  512
#define LANGUAGE_LINES_BYTES 8192 /* in a record; a power of two */
#define LANGUAGE_LINES_PARTS 32	  /* of a table: the rest of a longer one is not sent */
/*
 * Bound: users: bytes of a function's line table; then: later lines have the function's name
 * without a line; again: never; share: the code object's own; seen: not seen.
 */
#define LANGUAGE_LINES_MAX ((LANGUAGE_LINES_PARTS - 1) * (LANGUAGE_LINES_BYTES - 1))

struct language_code {
	unsigned long long time_ns;  /* CLOCK_MONOTONIC */
	unsigned long long process;  /* sample_id_make(exec, tgid, 0) */
	unsigned long long code;     /* its address */
	unsigned long long mark;     /* of its content: others have another one */
	unsigned long long since_ns; /* nothing that was sent before is of this process */
	unsigned int uid;	     /* who answers for the process: user_of() in bpf/owner.h */
	unsigned int image;	     /* of the interpreter, in the tables */
	unsigned int line;	     /* where it begins */
	unsigned short language, version;
	unsigned short name_bytes, file_bytes; /* 0: could not be read */
	unsigned short kind;		       /* of code, in a language that has several */
	unsigned short unused;
	unsigned int lines_bytes; /* bytes of the line table in the record */
	unsigned int lines_at; /* offset of these in the table; not 0: the record has nothing else,
				  of a long one */
	unsigned int unused_too;
	unsigned char name[LANGUAGE_NAME_BYTES];
	unsigned char file[LANGUAGE_FILE_BYTES];
	unsigned char lines[LANGUAGE_LINES_BYTES];
};

/* The key of what was sent: bpf/script/code_maps.h. */
struct language_code_key {
	unsigned long long process, code;
};

/*
 * The most; 1 / UNWIND_RING_GROWTH of it until that was half full.
 * Bound: users: bytes of code objects on their way to user space; then: the code object is not
 * sent; again: at the next tick in it; share: none; read ten times a second; seen: not seen.
 */
#define LANGUAGE_RING_BYTES (1U << 21)
/*
 * Bound: users: code objects that BPF remembers as sent; then: the one that was used least recently
 * is forgotten, and sent again; again: at the next tick in it; share: none; seen: not seen.
 */
#define LANGUAGE_CODES (1U << 15) /* of all processes, whose names user space has */
/* Of some processes, 1 / this. Bound: as LANGUAGE_CODES. */
#define LANGUAGE_CODES_PART 4

/*
 * Most functions of a script that one call of the interpreter's function runs, as far as read.
 * Bound: users: functions of a script in one call of its interpreter; then: the callers beyond are
 * missing; again: never; share: each stack's own; seen: not seen.
 */
#define LANGUAGE_FRAMES_MAX 127

#endif
