/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the walk reads of PHP's structures. tests/cli/php_layout.sh compares it, and the versions of
 * user/script/php_layouts.h, with PHP's headers. Includes nothing: see language.h.
 */
#ifndef PROFIL_BPF_PHP_LAYOUT_H
#define PROFIL_BPF_PHP_LAYOUT_H

/*
 * Where PHP keeps what the walk reads: ELF virtual addresses, and offsets in bytes. The names are
 * PHP's.
 */
struct php_layout {
	unsigned long long globals;	       /* of executor_globals */
	unsigned long long function;	       /* of execute_ex(), the interpreter's function */
	unsigned long long cold;	       /* of its part that the compiler has put elsewhere */
	unsigned long long generator;	       /* of zend_ce_generator */
	unsigned long long frameless;	       /* of zend_flf_functions; 0: before 8.4 */
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
#define PHP_STRING_HASH	       8   /* in zend_string; 0: not yet; its size follows */
#define PHP_STRING_TEXT	       24  /* in zend_string */
#define PHP_GENERATOR_FRAME    56  /* in zend_generator: execute_data */
#define PHP_GENERATOR_PARENT   152 /* node.parent: which delegates to it; 0: none */

/* What a code object of PHP is: `kind` of struct language_code. */
enum php_kind {
	PHP_FUNCTION,
	PHP_MAIN,     /* code outside of functions: of the file that PHP was started with */
	PHP_INCLUDED, /* code outside of functions: of another file */
	PHP_EVAL,     /* code of a text */
};

#endif
