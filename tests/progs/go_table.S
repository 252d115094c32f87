// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program with a table of Go's runtime, made by hand for each layout: gcc -nostdlib -DLAYOUT=2,
 * 16, 18, 20, 26 or 27 (Go 1.LAYOUT and later). What a macro below sets, a test may set otherwise.
 * Its code is 0x80 bytes:
 *
 * 0x00 main.first, first.go:10; from 0x10 on line 12
 * 0x20 main.second, second.go:20; at 0x28 main.outer is inlined, second.go:30, called at line 21;
 *      and at 0x2c in that main.inner, first.go:40, called at line 31
 * 0x50 main.last, whose code ends at 0x54
 * 0x70 in_c, which is not of Go
 */
#ifndef LAYOUT
#define LAYOUT 20
#endif
#ifndef MAGIC
#if LAYOUT >= 20
#define MAGIC 0xfffffff1
#elif LAYOUT == 18
#define MAGIC 0xfffffff0
#elif LAYOUT == 16
#define MAGIC 0xfffffffa
#else
#define MAGIC 0xfffffffb
#endif
#endif
#ifndef POINTER
#define POINTER 8
#endif
#ifndef QUANTUM
#define QUANTUM 1
#endif
#ifndef COUNT
#define COUNT 3
#endif
#ifndef TEXT /* in the header, up to 1.25 */
#if LAYOUT >= 26
#define TEXT 0
#else
#define TEXT text
#endif
#endif
#ifndef NAMES
#define NAMES names - table
#endif
#ifndef UNITS
#define UNITS units - table
#endif
#ifndef INFOS
#define INFOS infos - table
#endif
#ifndef SECOND_AT /* its offset in the index */
#define SECOND_AT second - text
#endif
#ifndef SECOND_NAME
#define SECOND_NAME name_second - NAMES_BASE
#endif
#ifndef SECOND_LINES
#define SECOND_LINES second_lines - PROGRAMS_BASE
#endif
#ifndef INNER_NAME
#define INNER_NAME name_inner - NAMES_BASE
#endif
#ifndef INNER_CALLER /* where main.inner is called, in main.second: in main.outer */
#define INNER_CALLER 10
#endif
#ifndef MODULE /* what the module begins with */
#define MODULE table
#endif
#ifndef NOTE
#define NOTE ".note.go.buildid"
#endif
#ifndef SECTION
#define SECTION ".gopclntab"
#endif
#ifndef FLAGS
#define FLAGS "a"
#endif
#ifndef TAIL /* behind the programs */
#define TAIL
#endif
#ifndef NO_LINES /* a program of a function without lines */
#define NO_LINES .byte 0
#endif

	.text
	.globl _start, in_c
	.type in_c, @function
	.size in_c, 16
_start:
text:
first:
	.skip 0x20, 0x90
second:
	.skip 0x30, 0x90
last:
	.skip 0x20, 0x90
end:
in_c:
	.skip 0x10, 0x90

	.section SECTION, FLAGS, @progbits
	.balign 32
#ifdef JUNK /* looks like the header of a table */
	.long 0xfffffff1
	.byte 0, 0, 1, 8
	.quad 1, 1, 0, 64, 64, 64, 64, 64
	.skip 56
#endif
table:
	.long MAGIC
	.byte 0, 0, QUANTUM, POINTER
	.quad COUNT
#if LAYOUT >= 16
	.quad 2
#if LAYOUT >= 18
	.quad TEXT
#endif
	.quad NAMES, UNITS, files - table, programs - table, INFOS
#define NAMES_BASE names
#define PROGRAMS_BASE programs
#define FILES_BASE files
#else
#define NAMES_BASE table
#define PROGRAMS_BASE table
#define FILES_BASE table
	.quad first, info_first - table, second, info_second - table, last, info_last - table, end
	.long units - table
#endif
names:
name_first:
	.asciz "main.first"
name_second:
	.asciz "main.second"
name_outer:
	.asciz "main.outer"
name_inner:
	.asciz "main.inner"
name_last:
	.asciz "main.last"
	.balign 4
units:
#if LAYOUT < 16
	.long 3, file_first - FILES_BASE
#else
	.long file_first - FILES_BASE
#endif
	.long file_second - FILES_BASE
files:
file_first:
	.asciz "/src/first.go"
file_second:
	.asciz "/src/second.go"

/* Steps: twice a number to add, or twice what to subtract less 1, and a size. At first it is -1. */
programs:
	.byte 0
#if LAYOUT >= 16
#define FIRST_FILE 0
#else
#define FIRST_FILE 1
#endif
first_files:
	.byte 2 * (FIRST_FILE + 1), 0x20, 0
first_lines:
	.byte 2 * 11, 0x10, 2 * 2, 0x10, 0
second_files:
	.byte 2 * (FIRST_FILE + 2), 0x0c, 2 * 1 - 1, 4, 2 * 1, 0x20, 0
second_lines:
	/* 20; 21 at 4; 30 at 8, 31 at 10; 40 at 12; 22 at 16 */
	.byte 2 * 21, 4, 2 * 1, 4, 2 * 9, 2, 2 * 1, 2, 2 * 9, 4, 2 * 18 - 1, 0x20, 0
second_calls:
	.byte 0, 8, 2 * 1, 4, 2 * 1, 4, 2 * 2 - 1, 0x20, 0
last_lines:
	.byte 2 * 51, 4, 0
	NO_LINES
	TAIL
	.balign 8
infos:
#if LAYOUT >= 18
	.long first - text, info_first - infos, SECOND_AT, info_second - infos
	.long last - text, info_last - infos, end - text
	.balign 8
#elif LAYOUT == 16
	.quad first, info_first - infos, second, info_second - infos, last, info_last - infos, end
#endif
#if LAYOUT >= 20
#define START(start) .long start - text
#define START_LINE(line) .long 0, line
#elif LAYOUT == 18
#define START(start) .long start - text
#define START_LINE(line) .long 0
#else
#define START(start) .balign 8; .quad start
#if LAYOUT == 16
#define START_LINE(line) .long 0
#else
#define START_LINE(line)
#endif
#endif
#define INFO(start, name, files, lines, line, programs, functions) \
	START(start); \
	.long name, 0, 0, 0, files - PROGRAMS_BASE, lines, programs; \
	START_LINE(line); \
	.byte 0, 0, 0, functions
info_first:
	INFO(first, name_first - NAMES_BASE, first_files, first_lines - PROGRAMS_BASE, 10, 0, 0)
	.balign 8
info_second:
	INFO(second, SECOND_NAME, second_files, SECOND_LINES, 20, 3, 4)
	.long 0, 0, second_calls - PROGRAMS_BASE
#if LAYOUT >= 18
	.long -1, -1, -1, calls - calls_base
#else
	.balign 8
	.quad 0, 0, 0, calls
#endif
	.balign 8
info_last:
	INFO(last, name_last - NAMES_BASE, first_files, last_lines - PROGRAMS_BASE, 50, 0, 0)
#if LAYOUT >= 20
#define CALL(name, caller, line) .long 0, name, caller, line
#else
#define CALL(name, caller, line) .long 0, 0, line, name, caller
#endif
#if LAYOUT >= 26
	.balign 8
calls_base:
	.quad 0
calls:
	CALL(name_outer - NAMES_BASE, 4, 30)
	CALL(INNER_NAME, INNER_CALLER, 40)
#endif
table_end:

	.section .rodata, "a", @progbits
	.balign 8
#if LAYOUT < 26
calls_base:
	.quad 0
calls:
	CALL(name_outer - NAMES_BASE, 4, 30)
	CALL(INNER_NAME, INNER_CALLER, 40)
#endif
sections:
	.quad 0, end - text + 16, text

/* struct moduledata */
#if LAYOUT >= 18
	.section .noptrdata, "aw", @progbits
	.balign 32
	.quad 0x0a0b0c0d, 2, 3, 4 /* something else, and for the test */
	.quad MODULE
	.quad names, units - names, units - names
	.quad units, 2, 2
	.quad files, programs - files, programs - files
	.quad programs, infos - programs, infos - programs
	.quad infos, table_end - infos, table_end - infos
	.quad infos, COUNT + 1, COUNT + 1
	.quad 0, first, end, text, end
	.fill 8, 8, 0 /* data */
#if LAYOUT >= 20
	.quad 0, 0
#endif
	.quad 0, 0, 0
#if LAYOUT == 27
	.fill 5, 8, 0
#else
	.quad 0, 0
#endif
	.quad 0, calls_base
#if LAYOUT >= 26
	.quad table_end
#endif
	.quad sections, 1, 1
	.fill 16, 8, 0
	.quad 0x0d0c0b0a /* for the test */
#endif

	.section NOTE, "a", @note
	.long 3, 1, 4
	.asciz "Go"
	.balign 4
	.ascii "none"
