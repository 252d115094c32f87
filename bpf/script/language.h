/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interpreted languages: shared by the sample programs and user space. Both include it, so it
 * includes nothing.
 */
#ifndef PROFIL_BPF_LANGUAGE_H
#define PROFIL_BPF_LANGUAGE_H

enum language {
	LANGUAGE_NONE,
	LANGUAGE_PYTHON,
	LANGUAGE_PHP,
	LANGUAGE_PERL,
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

/*
 * Where Python keeps what the walk reads: offsets in bytes. The names are CPython's.
 */
struct python_layout {
	unsigned long long runtime;   /* ELF virtual address of _PyRuntime */
	unsigned long long code_type; /* and of PyCode_Type */
	unsigned short key;	      /* in _PyRuntime: autoTSSkey._key */
	/*
	 * In _PyRuntime, PyInterpreterState and PyThreadState: the lists of interpreters and of
	 * their threads; 0: not known.
	 */
	unsigned short interpreters, interpreter_next, interpreter_threads, thread_next;
	unsigned short thread_id;		      /* in PyThreadState */
	unsigned short cframe;			      /* up to 3.12; 0: none */
	unsigned short cframe_frame, cframe_previous; /* in _PyCFrame */
	unsigned short frame;			      /* in PyThreadState: current_frame */
	unsigned short frame_code, frame_previous, frame_instruction; /* in _PyInterpreterFrame */
	unsigned short frame_entry;				      /* is_entry (3.11) or owner */
	unsigned short entry_owner; /* the least owner of a frame that is no function's; 0: 3.11 */
	unsigned short code_line, code_file, code_name, code_table, code_first;
	unsigned short code_version; /* 32 bits, other ones of each code object; 0: none */
	unsigned short string_text;  /* where the text of an ASCII string begins */
};

/*
 * Where PHP keeps what the walk reads: ELF virtual addresses, and offsets in bytes. The names are
 * PHP's.
 */
struct php_layout {
	unsigned long long globals;   /* of executor_globals */
	unsigned long long function;  /* of execute_ex(), the interpreter's function, */
	unsigned long long cold;      /* and of its part that the compiler has put elsewhere */
	unsigned long long generator; /* of zend_ce_generator */
	unsigned long long frameless; /* of zend_flf_functions; 0: before 8.4 */
	unsigned int function_size, cold_size; /* the latter may be 0 */
	/* In executor_globals: current_execute_data, opline_before_exception. */
	unsigned short current, thrower;
	unsigned short opcodes,
		file; /* in zend_op_array; its first and last line follow the file */
};

/* These are the same in PHP 8.1 to 8.5. zend_execute_data: */
struct php_frame {
	unsigned long long opline, call, return_value;
	unsigned long long function; /* func; 0: a placeholder */
	unsigned long long object;   /* This */
	unsigned int call_info;	     /* the type of This, and flags */
	unsigned int argument_count;
	unsigned long long previous; /* prev_execute_data */
};

#define PHP_CALL_TOP (1U << 17) /* a call of execute_ex() begins with it */

/* The beginning of a zend_function: */
struct php_function {
	unsigned char type, unused[3];
	unsigned int flags;
	unsigned long long name;  /* function_name, a string; 0: none */
	unsigned long long scope; /* the class; 0: none */
};

#define PHP_INTERNAL_FUNCTION 1
#define PHP_USER_FUNCTION     2
#define PHP_EVAL_CODE	      4

/* zend_op, from `result` on: */
struct php_instruction {
	unsigned int result, extended_value, line;
	unsigned char opcode;
};

#define PHP_INSTRUCTION_RESULT 16
#define PHP_HANDLE_EXCEPTION   149
#define PHP_FRAMELESS_CALL     204 /* ZEND_FRAMELESS_ICALL_0, and three more */
#define PHP_OBJECT	       8   /* IS_OBJECT: a type of This */
#define PHP_OBJECT_CLASS       16  /* in zend_object */
#define PHP_CLASS_NAME	       8   /* in zend_class_entry: a string */
#define PHP_STRING_HASH	       8   /* in zend_string; 0: not yet; its size follows, */
#define PHP_STRING_TEXT	       24  /* and its text */
#define PHP_GENERATOR_FRAME    56  /* in zend_generator: execute_data */
#define PHP_GENERATOR_PARENT   152 /* node.parent: which delegates to it; 0: none */

/* What a code object of PHP is: `kind` of struct language_code. */
enum php_kind {
	PHP_FUNCTION,
	PHP_MAIN,     /* the code outside of functions: of the file that PHP was started with, */
	PHP_INCLUDED, /* of another file, */
	PHP_EVAL,     /* of a text */
};

/* A function of the image: its ELF virtual address. */
struct language_function {
	unsigned long long address, size;
};

/* Bound: format. */
#define PERL_CALLERS 3

/* Where Perl's state is, and the functions that run scripts. Else: bpf/script/perl_layout.h. */
struct perl_layout {
	unsigned long long key;				/* ELF virtual address of PL_thr_key */
	struct language_function runops;		/* Perl_runops_standard() */
	struct language_function run;			/* perl_run(), which calls it */
	struct language_function callers[PERL_CALLERS]; /* and those that call a function */
	unsigned int nextstate; /* number of an operation; the next one is dbstate */
};

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
		struct python_layout python;
		struct php_layout php;
		struct perl_layout perl;
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
	unsigned int lines_bytes; /* how many of the line table are in the record, */
	unsigned int lines_at;	  /* from here on; not 0: it has these alone, of a long table */
	unsigned int unused_too;
	unsigned char name[LANGUAGE_NAME_BYTES];
	unsigned char file[LANGUAGE_FILE_BYTES];
	unsigned char lines[LANGUAGE_LINES_BYTES];
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

/* The key of what was sent: bpf/script/code_maps.h. */
struct language_code_key {
	unsigned long long process, code;
};

/*
 * Bound: users: bytes of code objects on their way to user space; then: the code object is not
 * sent; again: at the next tick in it; share: none; read ten times a second; seen: not seen.
 */
#define LANGUAGE_RING_BYTES (1U << 22)
/*
 * Bound: users: code objects that BPF remembers as sent; then: the one that was used least recently
 * is forgotten, and sent again; again: at the next tick in it; share: none; seen: not seen.
 */
#define LANGUAGE_CODES (1U << 15) /* of all processes, whose names user space has */

/*
 * Most functions of a script that one call of the interpreter's function runs, as far as read.
 * Bound: users: functions of a script in one call of its interpreter; then: the callers beyond are
 * missing; again: never; share: each stack's own; seen: not seen.
 */
#define LANGUAGE_FRAMES_MAX 127

#endif
