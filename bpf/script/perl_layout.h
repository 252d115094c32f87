/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the walk reads of Perl's structures: alike in Perl 5.36 to 5.42 with threads on 64-bit
 * machines. The names are Perl's, without prefixes. tests/cli/perl_layout.sh compares them with
 * Perl's headers. Includes nothing: the sample programs and tests do.
 */
#ifndef PROFIL_BPF_PERL_LAYOUT_H
#define PROFIL_BPF_PERL_LAYOUT_H

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
