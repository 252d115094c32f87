/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the walk reads of Perl's structures: alike in Perl 5.36 to 5.42 with threads on 64-bit
 * machines. The names are Perl's, without prefixes. tests/cli/perl_layout.sh compares them with
 * Perl's headers. Includes nothing: see language.h.
 */
#ifndef PROFIL_BPF_PERL_LAYOUT_H
#define PROFIL_BPF_PERL_LAYOUT_H

/* A function of the image: its ELF virtual address. */
struct perl_function {
	unsigned long long address, size;
};

/* Bound: format. */
#define PERL_CALLERS 3

/* Where Perl's state is, and the functions that run scripts. */
struct perl_layout {
	unsigned long long key;			    /* ELF virtual address of PL_thr_key */
	struct perl_function runops;		    /* Perl_runops_standard() */
	struct perl_function run;		    /* perl_run(), which calls it */
	struct perl_function callers[PERL_CALLERS]; /* and those that call a function */
	unsigned int nextstate; /* number of an operation; the next one is dbstate */
};

/* What code of Perl is, and what its name is. Its file is a text. */
enum perl_code {
	PERL_SUB,     /* name keys of its package and of itself, PERL_NAME_BYTES each */
	PERL_EVAL,    /* a string: none */
	PERL_REQUIRE, /* a file that is required: a text, its name */
	PERL_PROGRAM, /* the script itself: none */
};

/* Bound: as LANGUAGE_NAME_BYTES. */
#define PERL_NAME_BYTES (LANGUAGE_NAME_BYTES / 2)

/* Bound: format. */
#define PERL_INTERPRETER_BYTES 4096 /* at least those of struct interpreter */
#define PERL_INTERPRETER_OP    8
#define PERL_INTERPRETER_COP   208 /* curcop */
#define PERL_INTERPRETER_STACK 224 /* curstackinfo */

struct perl_stackinfo {
	unsigned long long stack, contexts, prev, next;
	int last; /* index of the last context; < 0: none */
};

/* struct context: a block, and of which kind. */
struct perl_context {
	unsigned char type, gimme;
	unsigned short unused_1;
	int unused_2[3];
	unsigned long long oldcop, unused_3[3];
	unsigned long long retop, unused_4;
	unsigned long long old_namesv; /* of the file that is required; else unused */
	unsigned long long cv;	       /* of a sub or format */
	unsigned long long unused_5[3];
};

#define PERL_CONTEXT_TYPE(type)	 ((type)&15)
#define PERL_CONTEXT_NULL	 0
#define PERL_CONTEXT_SUB	 9
#define PERL_CONTEXT_FORMAT	 10
#define PERL_CONTEXT_EVAL	 11
#define PERL_CONTEXT_DEFER	 13
#define PERL_CONTEXT_MULTICALL	 0x10
#define PERL_CONTEXT_EVAL_BLOCK	 0x40 /* eval {} or try {}, not eval "" or require */
#define PERL_CONTEXT_SUB_RE	 0x40 /* of a sub: code in a regular expression */
#define PERL_CONTEXT_SUB_RE_FAKE 0x80 /* a sub that is on the stack twice: for (?{}) */

/* struct op, and what struct cop has in addition. */
struct perl_cop {
	unsigned long long next, unused_1[3];
	unsigned short type; /* the lower 9 bits */
	unsigned short unused_2;
	unsigned int line;
	unsigned long long stashoff, file; /* the address of its text */
	unsigned int hints, seq;
};

#define PERL_OP_TYPE(type) ((type)&511)

struct perl_sv {
	unsigned long long any; /* the address of its body */
	unsigned int refcnt, flags;
	unsigned long long u; /* of a string: the address of its text */
};

#define PERL_SV_TYPE(flags) ((flags)&255)
#define PERL_SV_CV	    13
#define PERL_SV_FORMAT	    14

/* The body of a sub: struct xpvcv, from `stash` on. */
#define PERL_CV_BODY 32
struct perl_cv {
	unsigned long long stash, start, root;
	unsigned long long gv; /* or a name key (HEK) */
	unsigned long long file, unused_1[2];
	unsigned int unused_2, flags;
};

#define PERL_CV_NAMED	0x8000 /* `gv` is a name key */
#define PERL_CV_LEXICAL 0x10000

/* The body of a glob: struct xpvgv, from there on. */
#define PERL_GV_BODY 32
struct perl_gv {
	unsigned long long name, stash;
};

/* The body of a package: struct xpvhv_with_aux, from there on. */
#define PERL_STASH_BODY 32
struct perl_stash {
	unsigned long long name; /* of a package with several names, an array of them */
	unsigned long long unused_1[2];
	int unused_2, name_count;
};

/* A name key: as long as there is room for its text, then one byte of flags. */
#define PERL_HEK_LEN  4
#define PERL_HEK_KEY  8
#define PERL_HEK_UTF8 1

#endif
