// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader of call frame information: its rows against libdw's at random addresses of large
 * images, and at all addresses of code with unusual rules; and malicious files.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory_fixture.h"
#include "symbol/cfi/cfi.h"
#include "symbol/elf_file.h"
#include "util/clock.h"

#define ADDRESSES 30000

/* --- libdw's rules --- */

enum {
	RBX = 3,
	RBP = 6,
	RSP = 7,
	RIP = 16
};

static bool fits_short(int64_t value)
{
	return value == (int16_t)value;
}

static bool is_base(const Dwarf_Op *op, uint64_t *number, int64_t *offset)
{
	if (op->atom == DW_OP_bregx) {
		*number = op->number;
		*offset = op->number2;
	} else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*number = op->atom - DW_OP_breg0;
		*offset = op->number;
	} else {
		return false;
	}
	return true;
}

static bool is_plt(const Dwarf_Op *ops, size_t count)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15,
					 DW_OP_and,   DW_OP_lit0,   DW_OP_ge,
					 DW_OP_lit3,  DW_OP_shl,    DW_OP_plus };

	if (count != sizeof(atoms) || ops[0].number != 8 || ops[1].number != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (ops[i].atom != atoms[i] &&
		    !(i == 4 && ops[i].atom >= DW_OP_lit0 && ops[i].atom <= DW_OP_lit15))
			return false;
	return true;
}

static struct unwind_rule expected_cfa(const Dwarf_Op *ops, size_t count)
{
	struct unwind_rule rule = { .cfa = UNWIND_UNSUPPORTED };
	int64_t offset, add;
	uint64_t number;

	if (!count || !is_base(&ops[0], &number, &offset))
		return rule;
	if (count == 1 && (number == RSP || number == RBP) && offset == (int32_t)offset) {
		rule.cfa = number == RSP ? UNWIND_SP : UNWIND_BP;
		rule.offset = offset;
	} else if (count == 1 && number == RBX && offset == (int32_t)offset) {
		rule.cfa = UNWIND_BX;
		rule.offset = offset;
	} else if (count == 1 && fits_short(offset)) {
		rule.cfa = UNWIND_REGISTER;
		rule.base = number;
		rule.add = offset;
	} else if (is_plt(ops, count)) {
		rule.cfa = UNWIND_PLT;
		rule.offset = ops[4].atom - DW_OP_lit0;
	} else if ((number == RSP || number == RBP) && count <= 3 && ops[1].atom == DW_OP_deref &&
		   (count == 2 || ops[2].atom == DW_OP_plus_uconst)) {
		add = count == 3 ? ops[2].number : 0;
		rule.cfa = number == RSP ? UNWIND_DEREF_SP : UNWIND_DEREF_BP;
		rule.base = offset;
		rule.add = add;
	}
	return rule;
}

/* Whether a register is saved at CFA + *offset; stores the offset. */
static bool is_at_cfa(const Dwarf_Op *ops, size_t count, int64_t *offset)
{
	*offset = count == 2 ? (int64_t)ops[1].number : 0;
	return (count == 1 || (count == 2 && ops[1].atom == DW_OP_plus_uconst)) &&
	       ops[0].atom == DW_OP_call_frame_cfa;
}

/* A rule has 16 bits for where rbp is, and 8 for rbx. */
static bool fits_words(uint64_t regno, int64_t offset)
{
	int64_t words = offset / 8;

	return offset % 8 == 0 && (regno == RBP ? words == (int16_t)words : words == (int8_t)words);
}

/* The rule for a register of the caller, and the word that it uses. */
static enum unwind_saved expected_saved(Dwarf_Frame *frame, uint64_t regno, int *at)
{
	Dwarf_Op memory[3], *ops;
	int64_t offset;
	uint64_t number;
	size_t count;

	*at = 0;
	assert_int_equal(dwarf_frame_register(frame, regno, memory, &ops, &count), 0);
	if (!count)
		/*
		 * By the ABI callees preserve rbx; libdw has it as undefined where there is no
		 * rule.
		 */
		return ops && regno != RBX ? UNWIND_LOST : UNWIND_SAME;
	if (is_at_cfa(ops, count, &offset)) {
		if (!fits_words(regno, offset))
			return UNWIND_LOST;
		*at = offset / 8;
		return UNWIND_SAVED_AT_CFA;
	}
	if (regno == RBP && count == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	    is_base(&ops[1], &number, &offset) && number == RBP && fits_words(regno, offset)) {
		*at = offset / 8;
		return UNWIND_SAVED_AT_BP;
	}
	return UNWIND_LOST;
}

static struct unwind_rule expected(Dwarf_CFI *cfi, uint64_t pc)
{
	struct unwind_rule rule, only = { .cfa = UNWIND_UNSUPPORTED };
	Dwarf_Op memory[3], *ops;
	Dwarf_Frame *frame;
	int64_t offset;
	size_t count;
	bool signal;
	int at;

	if (dwarf_cfi_addrframe(cfi, pc, &frame)) {
		if (strcmp(dwarf_errmsg(-1), "no matching address range") == 0)
			only.cfa = UNWIND_GAP;
		return only;
	}
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	rule = expected_cfa(ops, count);
	rule.bp = expected_saved(frame, RBP, &at);
	rule.bp_at = at;
	rule.bx = expected_saved(frame, RBX, &at);
	rule.bx_at = at;
	dwarf_frame_info(frame, NULL, NULL, &signal);
	assert_int_equal(dwarf_frame_register(frame, RIP, memory, &ops, &count), 0);
	if (signal)
		only.cfa = rule.cfa == UNWIND_DEREF_SP && rule.base == 160 && !rule.add
				   ? UNWIND_SIGNAL
				   : UNWIND_UNSUPPORTED;
	else if (!count && ops)
		only.cfa = UNWIND_END;
	else if (rule.cfa == UNWIND_SP && count == 1 && ops[0].atom == DW_OP_regx &&
		 fits_short(rule.offset))
		only = (struct unwind_rule){
			.cfa = UNWIND_RETURN,
			.base = ops[0].number,
			.add = rule.offset,
		};
	else if (rule.cfa != UNWIND_UNSUPPORTED && is_at_cfa(ops, count, &offset) && offset == -8)
		only = rule;
	free(frame);
	return only;
}

/* --- Comparing --- */

static const struct unwind_rule *rule_at(const struct unwind_rows *rows, uint64_t address)
{
	static const struct unwind_rule none = { .cfa = UNWIND_GAP };
	size_t low = 0, high = rows->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows->rows[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &rows->rules[rows->rows[low - 1].rule] : &none;
}

static uint64_t entry; /* of the compared file */

static void check_rule(const struct unwind_rows *rows, Dwarf_CFI *cfi, uint64_t address)
{
	const struct unwind_rule *ours = rule_at(rows, address);
	struct unwind_rule theirs = expected(cfi, address);

	if (memcmp(ours, &theirs, sizeof(theirs)) == 0)
		return;
	/* The code itself says it. */
	if (theirs.cfa == UNWIND_GAP && ours->cfa <= UNWIND_BP)
		return;
	/* Go's runtime goes to another stack there, which its call frame information leaves out. */
	if (ours->cfa == UNWIND_SWITCH && theirs.cfa == UNWIND_SP && ours->base == theirs.offset)
		return;
	/* At the program's start there is no caller, even if no rule states that: in ld.so. */
	if (ours->cfa == UNWIND_END && theirs.cfa == UNWIND_GAP && address >= entry &&
	    address - entry < 128)
		return;
	fail_msg("at %#jx: cfa %d offset %d bp %d %d bx %d %d, "
		 "libdw: cfa %d offset %d bp %d %d bx %d %d",
		 (uintmax_t)address, ours->cfa, ours->offset, ours->bp, ours->bp_at, ours->bx,
		 ours->bx_at, theirs.cfa, theirs.offset, theirs.bp, theirs.bp_at, theirs.bx,
		 theirs.bx_at);
}

/* Checks the contract of unwind_rows.h. */
static void check_rows(const struct unwind_rows *rows)
{
	assert_true(rows->count > 1);
	assert_true(rows->rule_count <= 65536);
	for (size_t i = 0; i < rows->count; i++) {
		assert_true(rows->rows[i].rule < rows->rule_count);
		assert_false(i && rows->rows[i].address <= rows->rows[i - 1].address);
		assert_false(i && rows->rows[i].rule == rows->rows[i - 1].rule);
	}
	assert_int_equal(rows->rules[rows->rows[rows->count - 1].rule].cfa, UNWIND_GAP);
	for (size_t i = 0; i < rows->rule_count; i++)
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(&rows->rules[i], &rows->rules[j],
						sizeof(*rows->rules));
}

/* A random number below `bound`; each run has the same ones. */
static uint64_t next_random(uint64_t bound)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 20) % bound;
}

/* Compares at all addresses of small executable segments, and at random ones of large segments. */
static void compare(const struct unwind_rows *rows, Elf *elf, Dwarf_CFI *cfi)
{
	GElf_Phdr segment;
	size_t count = 0;

	assert_non_null(cfi);
	for (int i = 0; gelf_getphdr(elf, i, &segment); i++) {
		bool small = segment.p_filesz < ADDRESSES;

		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		assert_true(count < rows->segment_count);
		assert_int_equal(rows->segments[count].offset, segment.p_offset);
		assert_int_equal(rows->segments[count].size, segment.p_filesz);
		assert_int_equal(rows->segments[count++].address, segment.p_vaddr);
		for (uint64_t k = 0; k < (small ? segment.p_filesz : ADDRESSES); k++)
			check_rule(rows, cfi,
				   segment.p_vaddr + (small ? k : next_random(segment.p_filesz)));
	}
	assert_true(count && count == rows->segment_count);
}

/* Rows of a file, which must be readable. */
static struct unwind_rows read_rows(const char *path)
{
	struct unwind_rows rows;
	struct error e = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	if (cfi_read(fd, path, NULL, NULL, &rows, &e))
		fail_msg("%s: %s", path, e.what);
	assert_int_equal(close(fd), 0);
	return rows;
}

/* Compares the rows of a file by the section that it must have. */
static void compare_file(int fd, const struct unwind_rows *rows, bool debug)
{
	Dwarf *dwarf = NULL;
	Dwarf_CFI *cfi;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	entry = elf64_getehdr(elf)->e_entry;
	if (debug)
		dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	cfi = debug ? dwarf_getcfi(dwarf) : dwarf_getcfi_elf(elf);
	compare(rows, elf, cfi);
	if (debug)
		dwarf_end(dwarf);
	else
		dwarf_cfi_end(cfi);
	elf_end(elf);
}

static void compare_path(const char *path, bool debug)
{
	struct unwind_rows rows = read_rows(path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	check_rows(&rows);
	compare_file(fd, &rows, debug);
	close(fd);
	unwind_rows_free(&rows);
}

/* --- Images of this system --- */

/* Compares the first file that has such a path. Returns whether there is one. */
static bool compare_first(const char *one, const char *other)
{
	glob_t found = { 0 };

	if (glob(one, GLOB_NOMAGIC, NULL, &found) || access(found.gl_pathv[0], R_OK)) {
		globfree(&found);
		if (glob(other, GLOB_NOMAGIC, NULL, &found) || access(found.gl_pathv[0], R_OK)) {
			globfree(&found);
			return false;
		}
	}
	compare_path(found.gl_pathv[0], false);
	globfree(&found);
	return true;
}

#define IMAGE(name, one, other)                         \
	static void test_##name(void **state)           \
	{                                               \
		(void)state;                            \
		if (!compare_first("/usr/" one, other)) \
			skip();                         \
	}

IMAGE(libc, "lib/x86_64-linux-gnu/libc.so.6", "/usr/lib64/libc.so.6")
IMAGE(libcrypto, "lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib64/libcrypto.so.3")
IMAGE(libstdcxx, "lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6")
IMAGE(gdb, "bin/gdb", "/usr/local/bin/gdb")
IMAGE(python, "bin/python3.[0-9]*[0-9]", "/usr/local/bin/python3")
IMAGE(ld_so, "lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2")

/* Not asked for: many distributions start a server of their own when it is installed. */
static void test_postgres(void **state)
{
	(void)state;
	if (!compare_first("/usr/lib/postgresql/*/bin/postgres", "/usr/bin/postgres"))
		print_message("# PostgreSQL is left out: it is not here\n");
}

static void test_vdso(void **state)
{
	struct unwind_rows rows;
	struct error e;
	int fd = elf_open_vdso();

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(cfi_read(-1, "[vdso]", NULL, NULL, &rows, &e), 0);
	check_rows(&rows);
	compare_file(fd, &rows, false);
	close(fd);
	unwind_rows_free(&rows);
	assert_int_equal(cfi_read(-1, "[vsyscall]", NULL, NULL, &rows, &e), 0);
	assert_int_equal(rows.count, 0);
}

static void test_go(void **state)
{
	struct unwind_rows full, stripped;

	(void)state;
	if (system("command -v go >/dev/null"))
		skip();
	assert_int_equal(
		shell("echo 'package main; func main() { println(1) }' >main.go && HOME=$PWD "
		      "GOCACHE=${GOCACHE:-$PWD/cache} GO111MODULE=off CGO_ENABLED=0 "
		      "go build -o go main.go"),
		0);
	compare_path(in_directory("go"), true);

	/* A stripped one has the same rows by Go's own table. */
	assert_int_equal(shell("strip -o stripped go"), 0);
	full = read_rows(in_directory("go"));
	stripped = read_rows(in_directory("stripped"));
	assert_true(full.count > 1000);
	assert_int_equal(stripped.count, full.count);
	assert_int_equal(stripped.rule_count, full.rule_count);
	for (size_t i = 0; i < full.count; i++) {
		assert_int_equal(stripped.rows[i].address, full.rows[i].address);
		assert_memory_equal(&stripped.rules[stripped.rows[i].rule],
				    &full.rules[full.rows[i].rule], sizeof(*full.rules));
	}
	unwind_rows_free(&full);
	unwind_rows_free(&stripped);
}

/* --- Code without call frame information --- */

static const char code_source[] =
	"#include <stdarg.h>\n"
	"#define NOINLINE __attribute__((noinline))\n"
	"void other(void *, ...); int number(int); __attribute__((noreturn)) void fail(void);\n"
	"NOINLINE static int leaf(int a) { return a * 7 + 1; }\n"
	"int tail(int a) { return leaf(a + 1); }\n"
	"int saved(int a, int b, int c, int d) { int s = 0; for (int i = 0; i < a; i++)\n"
	"	s += number(b + i) * number(c) - number(d); return s; }\n"
	"int on_stack(int a) { char room[4000]; other(room, a); return room[a]; }\n"
	"int of_size(int a) { char room[a]; other(room); if (a > 5) return number(a);\n"
	"	return room[a / 2]; }\n"
	"int fails(int a) { char c[80]; if (a > 5) fail(); other(c, a); return c[2]; }\n"
	"int last(int a) { if (a) fail(); return number(a) + 1; }\n"
	"int many(int a) { other(&a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, a); return a + number(a); }\n"
	"int switches(int a, int b) { char c[90]; other(c, 1); switch (a) {\n"
	"	case 1: return number(b); case 2: return c[b]; case 3: other(c, 5); break;\n"
	"	case 4: b += number(c[1]); break; case 5: return 77 + number(1); case 6: b++;\n"
	"	case 7: other(c, b); } return c[b] + number(b); }\n"
	"int aligned(int a) { __attribute__((aligned(64))) char room[100]; other(room);\n"
	"	return room[a]; }\n"
	"int variable(int a, ...) { va_list l; va_start(l, a); int s = 0;\n"
	"	while (a--) s += va_arg(l, int) + number(a); va_end(l); return s; }\n"
	"__int128 wide(__int128 a, double b) { return a * number(b) / (number(3) | 1); }\n"
	"void *table[] = { tail, saved, switches };\n";

/*
 * The instructions of compilers' code say what its call frame information does. After a register
 * was restored, that may still have it in the stack.
 */
static void test_code(void **state)
{
	static const char *const flags[] = { "-O2",
					     "-Os",
					     "-O0",
					     "-O2 -fno-omit-frame-pointer",
					     "-O3 -fcf-protection",
					     "-O1 -fstack-protector-all" };
	struct unwind_rows full, bare;
	FILE *f;

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	f = fopen(in_directory("code.c"), "w");
	assert_non_null(f);
	assert_true(fputs(code_source, f) >= 0 && fclose(f) == 0);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		size_t compared = 0, unknown = 0;

		if (shell("gcc -shared -fPIC -nostdlib -Wl,--no-eh-frame-hdr "
			  "-fasynchronous-unwind-tables %s code.c -o full && "
			  "objcopy -R .eh_frame full bare && strip bare",
			  flags[i]))
			fail_msg("cannot build with %s", flags[i]);
		full = read_rows(in_directory("full"));
		bare = read_rows(in_directory("bare"));
		check_rows(&bare);
		for (size_t row = 0; row + 1 < full.count; row++) {
			const struct unwind_rule *right = &full.rules[full.rows[row].rule];

			if (right->cfa != UNWIND_SP && right->cfa != UNWIND_BP)
				continue;
			for (uint64_t at = full.rows[row].address; at < full.rows[row + 1].address;
			     at++) {
				const struct unwind_rule *found = rule_at(&bare, at);

				compared++;
				if (found->cfa == UNWIND_GAP) {
					unknown++;
					continue;
				}
				if ((found->cfa == right->cfa && found->offset != right->offset) ||
				    (found->bp &&
				     (found->bp != right->bp || found->bp_at != right->bp_at)))
					fail_msg("%s, at %#jx: cfa %d offset %d bp %d at %d, not "
						 "%d, %d, %d, %d",
						 flags[i], (uintmax_t)at, found->cfa, found->offset,
						 found->bp, found->bp_at, right->cfa, right->offset,
						 right->bp, right->bp_at);
			}
		}
		print_message("%s: %zu of %zu bytes unknown\n", flags[i], unknown, compared);
		assert_true(compared > 500 && unknown < compared / 4);
		unwind_rows_free(&full);
		unwind_rows_free(&bare);
	}
}

/* --- Unusual rules: a function of 48 bytes every 64 bytes, from 0x1000 on --- */

#define END	       "\n.fill 48 - (. - 0b), 1, 0x90\n.cfi_endproc\n"
#define STEP	       "\n.fill 8, 1, 0x90\n"
#define FUNCTION(text) ".balign 64\n0: .cfi_startproc\n" text END

static const char odd_source[] =
	/* 0: a realigned frame */
	FUNCTION(".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n.cfi_escape 0x10, 6, 2, 0x76, 0")
	/* 1: CFA in memory, and more added */
	FUNCTION(".cfi_escape 0x0f, 5, 0x77, 0x10, 0x06, 0x23, 0x08")
	/* 2: CFA in other registers */
	FUNCTION(".cfi_def_cfa rax, 16" STEP ".cfi_def_cfa_register r11")
	/* 3: unusual rules for rbp */
	FUNCTION(".cfi_register rbp, rbx" STEP ".cfi_restore rbp" STEP ".cfi_undefined rbp" STEP
		 ".cfi_same_value rbp" STEP ".cfi_val_offset rbp, -16")
	/* 4: the outermost */
	FUNCTION(".cfi_undefined rip")
	/* 5, 6: signal frames, of the kernel's form and of another */
	FUNCTION(".cfi_signal_frame\n.cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06")
		FUNCTION(".cfi_signal_frame")
	/* 7: unusual rules for the return address */
	FUNCTION(".cfi_register rip, rdi" STEP ".cfi_offset rip, -16" STEP ".cfi_offset rip, -8")
	/* 8: stubs */
	FUNCTION(".cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, "
		 "0x22")
	/* 9: GNU's own instructions */
	FUNCTION(".cfi_remember_state\n.cfi_def_cfa_offset 64\n.cfi_escape 0x2e, 16\n"
		 ".cfi_escape 0x2f, 6, 2" STEP ".cfi_restore_state")
	/* 10, 11: large offsets */
	FUNCTION(".cfi_offset rbp, -262152" STEP ".cfi_offset rbp, -262144")
		FUNCTION(".cfi_def_cfa_offset 100000" STEP ".cfi_def_cfa rax, 100000")
	/* 12, 13: an unknown instruction, one without its counterpart */
	FUNCTION(STEP ".cfi_escape 0x3f" STEP ".cfi_def_cfa_offset 16" STEP)
		FUNCTION(STEP ".cfi_escape 0x0b" STEP)
	/* 14: exception tables */
	FUNCTION(".cfi_personality 0x1b, _start\n.cfi_lsda 0x1b, _start\n.cfi_def_cfa_offset 24")
	/* 15: no call frame information */
	".balign 64\n.fill 48, 1, 0x90\n"
	/* 16, 17: expressions: a usual one, an unusual one */
	FUNCTION(".cfi_escape 0x0f, 2, 0x77, 16") FUNCTION(".cfi_escape 0x0f, 3, 0x77, 16, 0x20")
	/* 18: from the register's own value back to the usual rule */
	FUNCTION(".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16" STEP ".cfi_def_cfa rsp, 8");

static const struct {
	uint64_t function, byte;
	struct unwind_rule rule;
} odd_rules[] = {
	{ 0, 0, { .cfa = UNWIND_DEREF_BP, .bp = UNWIND_SAVED_AT_BP, .base = -8, .add = 0 } },
	{ 1, 0, { .cfa = UNWIND_DEREF_SP, .base = 16, .add = 8 } },
	{ 2, 7, { .cfa = UNWIND_REGISTER, .base = 0, .add = 16 } },
	{ 2, 8, { .cfa = UNWIND_REGISTER, .base = 11, .add = 16 } },
	{ 3, 0, { .cfa = UNWIND_SP, .bp = UNWIND_LOST, .offset = 8 } },
	{ 3, 8, { .cfa = UNWIND_SP, .offset = 8 } },
	{ 3, 16, { .cfa = UNWIND_SP, .bp = UNWIND_LOST, .offset = 8 } },
	{ 3, 24, { .cfa = UNWIND_SP, .offset = 8 } },
	{ 3, 32, { .cfa = UNWIND_SP, .bp = UNWIND_LOST, .offset = 8 } },
	{ 4, 0, { .cfa = UNWIND_END } },
	{ 5, 0, { .cfa = UNWIND_SIGNAL } },
	{ 6, 0, { .cfa = UNWIND_UNSUPPORTED } },
	{ 7, 0, { .cfa = UNWIND_RETURN, .base = 5, .add = 8 } },
	{ 7, 8, { .cfa = UNWIND_UNSUPPORTED } },
	{ 7, 16, { .cfa = UNWIND_SP, .offset = 8 } },
	{ 8, 0, { .cfa = UNWIND_PLT, .offset = 11 } },
	{ 9, 0, { .cfa = UNWIND_SP, .bp = UNWIND_SAVED_AT_CFA, .bp_at = 2, .offset = 64 } },
	{ 9, 8, { .cfa = UNWIND_SP, .offset = 8 } },
	{ 10, 0, { .cfa = UNWIND_SP, .bp = UNWIND_LOST, .offset = 8 } },
	{ 10, 8, { .cfa = UNWIND_SP, .bp = UNWIND_SAVED_AT_CFA, .bp_at = -32768, .offset = 8 } },
	{ 11, 0, { .cfa = UNWIND_SP, .offset = 100000 } },
	{ 11, 8, { .cfa = UNWIND_UNSUPPORTED } },
	{ 12, 0, { .cfa = UNWIND_SP, .offset = 8 } },
	{ 12, 8, { .cfa = UNWIND_UNSUPPORTED } },
	{ 12, 47, { .cfa = UNWIND_UNSUPPORTED } },
	{ 12, 48, { .cfa = UNWIND_GAP } },
	{ 13, 7, { .cfa = UNWIND_SP, .offset = 8 } },
	{ 13, 8, { .cfa = UNWIND_UNSUPPORTED } },
	{ 14, 0, { .cfa = UNWIND_SP, .offset = 24 } },
	{ 15, 0, { .cfa = UNWIND_GAP } },
	{ 16, 0, { .cfa = UNWIND_SP, .offset = 16 } },
	{ 17, 0, { .cfa = UNWIND_UNSUPPORTED } },
	{ 18, 0, { .cfa = UNWIND_BP, .bp = UNWIND_SAVED_AT_CFA, .bp_at = -2, .offset = 16 } },
	{ 18, 8, { .cfa = UNWIND_SP, .bp = UNWIND_SAVED_AT_CFA, .bp_at = -2, .offset = 8 } },
};

/* Builds the library `odd` from odd_source, with its call frame information in `sections`. */
static void make_odd(const char *name, const char *sections)
{
	char text[sizeof(odd_source) + 256];
	int size = snprintf(text, sizeof(text), ".cfi_sections %s\n.text\n_start:\n%s", sections,
			    odd_source);

	write_file("odd.s", text, size);
	assert_int_equal(shell("gcc -shared -nostdlib -Wl,-Ttext=0x1000,-z,noseparate-code odd.s "
			       "-o '%s'",
			       name),
			 0);
}

static void check_odd(const char *name)
{
	struct unwind_rows rows = read_rows(in_directory(name));

	check_rows(&rows);
	for (size_t i = 0; i < sizeof(odd_rules) / sizeof(*odd_rules); i++) {
		const struct unwind_rule *found =
			rule_at(&rows, 0x1000 + 64 * odd_rules[i].function + odd_rules[i].byte);

		if (memcmp(found, &odd_rules[i].rule, sizeof(*found)) != 0)
			fail_msg("%s: function %d at %d: cfa %d offset %d bp %d %d", name,
				 (int)odd_rules[i].function, (int)odd_rules[i].byte, found->cfa,
				 found->offset, found->bp, found->bp_at);
	}
	unwind_rows_free(&rows);
}

static void test_odd(void **state)
{
	(void)state;
	make_odd("odd", ".eh_frame");
	check_odd("odd");
	compare_path(in_directory("odd"), false);
}

/* The same in .debug_frame, compressed in every supported way. */
static void test_debug_frame(void **state)
{
	(void)state;
	make_odd("debug", ".debug_frame");
	check_odd("debug");
	compare_path(in_directory("debug"), true);
	assert_int_equal(shell("objcopy --compress-debug-sections=zlib debug packed && "
			       "objcopy --compress-debug-sections=zlib-gnu debug packed-old && "
			       "readelf -SW packed-old | grep zdebug_frame"),
			 0);
	check_odd("packed");
	check_odd("packed-old");
}

/* Overwrites a file's bytes in place. */
static void patch(const char *name, uint64_t offset, const void *bytes, size_t size)
{
	int fd = open(in_directory(name), O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, offset), size);
	close(fd);
}

static void drop_section_headers(const char *name)
{
	Elf64_Ehdr none = { 0 };

	patch(name, offsetof(Elf64_Ehdr, e_shoff), &none.e_shoff, sizeof(none.e_shoff));
	patch(name, offsetof(Elf64_Ehdr, e_shnum), &none.e_shnum, sizeof(none.e_shnum));
	patch(name, offsetof(Elf64_Ehdr, e_shstrndx), &none.e_shstrndx, sizeof(none.e_shstrndx));
}

static void test_no_section_headers(void **state)
{
	struct unwind_rows with = read_rows("/proc/self/exe"), without;

	(void)state;
	assert_int_equal(shell("cp /proc/%d/exe headless", getpid()), 0);
	drop_section_headers("headless");
	without = read_rows(in_directory("headless"));
	assert_int_equal(with.count, without.count);
	for (size_t i = 0; i < with.count; i++) {
		assert_int_equal(with.rows[i].address, without.rows[i].address);
		assert_int_equal(with.rows[i].rule, without.rows[i].rule);
	}
	unwind_rows_free(&with);
	unwind_rows_free(&without);
	make_odd("odd", ".eh_frame");
	drop_section_headers("odd");
	check_odd("odd");
}

static void test_functions(void **state)
{
	struct cfi_functions functions;
	struct elf_file file;
	struct error e;
	int fd;

	(void)state;
	make_odd("odd", ".eh_frame");
	fd = open(in_directory("odd"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open(&file, fd, NULL, &e), 0);
	assert_int_equal(cfi_functions_read(&functions, &file, &e), 0);
	assert_int_equal(functions.count, 18);
	assert_null(cfi_functions_find(&functions, 0xfff));
	for (size_t i = 0; i < 19; i++) {
		uint64_t start = 0x1000 + 64 * i;
		const struct cfi_function *found = cfi_functions_find(&functions, start);

		assert_null(cfi_functions_find(&functions, start + 48));
		if (i == 15) {
			assert_null(found);
			continue;
		}
		assert_non_null(found);
		assert_int_equal(found->start, start);
		assert_int_equal(found->limit, start + 48);
		assert_ptr_equal(cfi_functions_find(&functions, start + 47), found);
	}
	cfi_functions_free(&functions);
	elf_file_close(&file);
}

/* --- .debug_frame by hand --- */

struct bytes {
	uint8_t *at;
	size_t size, room;
};

static void put(struct bytes *b, uint64_t value, size_t size)
{
	if (b->size + size > b->room) {
		b->room = 2 * b->room + 4096;
		b->at = realloc(b->at, b->room);
		assert_non_null(b->at);
	}
	for (size_t i = 0; i < size; i++)
		b->at[b->size++] = value >> 8 * i;
}

static void put_leb(struct bytes *b, uint64_t value)
{
	for (; value > 127; value >>= 7)
		put(b, (value & 127) | 128, 1);
	put(b, value, 1);
}

static void put_all(struct bytes *b, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		put(b, (uint8_t)text[i], 1);
}
#define PUT(b, text) put_all(b, text, sizeof(text) - 1)

/* Returns the offset of its beginning, for end_record(). */
static size_t begin_record(struct bytes *b, uint64_t id)
{
	put(b, 0, 4);
	put(b, id, 4);
	return b->size - 8;
}

static void end_record(struct bytes *b, size_t begin)
{
	uint32_t size = b->size - begin - 4;

	memcpy(b->at + begin, &size, sizeof(size));
}

/*
 * Puts a CIE with the rules at a function's entry: CFA = rsp + 8, the return address below it.
 * Returns the offset of its beginning.
 */
static size_t put_cie(struct bytes *b, int version)
{
	size_t begin = begin_record(b, UINT32_MAX);

	put(b, version, 1);
	PUT(b, "\0");
	if (version == 4)
		PUT(b, "\x08\0");
	PUT(b, "\x01\x78\x10\x0c\x07\x08\x90\x01");
	end_record(b, begin);
	return begin;
}

static size_t begin_fde(struct bytes *b, size_t cie, uint64_t start, uint64_t size)
{
	size_t begin = begin_record(b, cie);

	put(b, start, 8);
	put(b, size, 8);
	return begin;
}

static void put_fde(struct bytes *b, size_t cie, uint64_t start, uint64_t size, uint64_t offset)
{
	size_t begin = begin_fde(b, cie, start, size);

	put(b, DW_CFA_def_cfa_offset, 1);
	put_leb(b, offset);
	end_record(b, begin);
}

/* Builds the library `made` with this .debug_frame, and so much code from 0x1000 on. */
static void make(struct bytes *b, uint64_t code)
{
	write_file("frame", b->at, b->size);
	free(b->at);
	*b = (struct bytes){ 0 };
	assert_int_equal(shell("printf '.globl _start\\n_start: .fill %ju, 1, 0x90\\n' >made.s && "
			       "gcc -shared -nostdlib -Wl,-Ttext=0x1000 made.s -o bare && "
			       "objcopy -R .eh_frame --add-section .debug_frame=frame bare made",
			       (uintmax_t)code),
			 0);
}

static int offset_at(const struct unwind_rows *rows, uint64_t address)
{
	const struct unwind_rule *rule = rule_at(rows, address);

	return rule->cfa == UNWIND_SP ? rule->offset : -rule->cfa;
}

static void test_records(void **state)
{
	struct unwind_rows rows;
	struct bytes b = { 0 };
	size_t one = put_cie(&b, 1), three = put_cie(&b, 3), four = put_cie(&b, 4), begin;
	size_t unknown = put_cie(&b, 2);

	(void)state;
	put_fde(&b, four, 0x1020, 16, 24);
	put_fde(&b, one, 0x1000, 16, 8);
	put(&b, 0, 4); /* a terminator */
	put_fde(&b, three, 0x1010, 16, 16);
	put_fde(&b, three, 0x1010, 16, 99);   /* again */
	put_fde(&b, three, 0x1018, 24, 99);   /* overlaps two */
	put_fde(&b, unknown, 0x1040, 8, 99);  /* of an unknown form */
	put_fde(&b, 7, 0x1040, 8, 99);	      /* of no CIE */
	put_fde(&b, one, 0, 0x4000, 99);      /* dropped */
	put_fde(&b, one, UINT64_MAX, 1, 99);  /* dropped */
	put_fde(&b, one, 0x1050, 0, 99);      /* empty */
	put_fde(&b, one, 0x1060, -16ULL, 99); /* of the largest size */
	begin = begin_fde(&b, one, 0x1048, 4);
	PUT(&b, "\x0e\x20\x01\x4a\x10\0\0\0\0\0\0\x0e\x28"); /* an entry that sets its location */
	end_record(&b, begin);
	make(&b, 0x100);
	rows = read_rows(in_directory("made"));
	check_rows(&rows);
	assert_int_equal(offset_at(&rows, 0x1000), 8);
	assert_int_equal(offset_at(&rows, 0x1010), 16);
	assert_int_equal(offset_at(&rows, 0x101f), 16);
	assert_int_equal(offset_at(&rows, 0x1020), 99); /* the first in address order */
	assert_int_equal(offset_at(&rows, 0x1030), UNWIND_GAP);
	assert_int_equal(offset_at(&rows, 0x1040), UNWIND_GAP);
	assert_int_equal(offset_at(&rows, 0x1048), 32);
	assert_int_equal(offset_at(&rows, 0x104a), 40);
	assert_int_equal(offset_at(&rows, 0x104c), UNWIND_GAP);
	assert_int_equal(offset_at(&rows, 0x1050), UNWIND_GAP);
	assert_int_equal(offset_at(&rows, 0x1060), UNWIND_GAP);
	unwind_rows_free(&rows);
}

/* --- Malicious files --- */

/* A file without rows: the reader must return soon, with an error that contains `why`. */
static void check_refused(const char *name, const char *why)
{
	int fd = open(in_directory(name), O_RDONLY | O_CLOEXEC);
	uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct unwind_rows rows;
	struct error e = { 0 };

	assert_true(fd >= 0);
	assert_int_equal(cfi_read(fd, name, NULL, NULL, &rows, &e), -EINVAL);
	assert_non_null(strstr(e.what, why));
	assert_int_equal(rows.count, 0);
	assert_null(rows.rows);
	assert_true(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin < 20 * NS_PER_S);
	assert_int_equal(close(fd), 0);
}

static void test_no_elf(void **state)
{
	(void)state;
	write_file("text", "#!/bin/sh\n", 10);
	check_refused("text", "not an ELF file");
}

static void test_truncated(void **state)
{
	struct bytes b = { 0 };
	size_t cie;

	(void)state;
	make_odd("odd", ".eh_frame");
	assert_int_equal(shell("objcopy --dump-section .eh_frame=whole odd && "
			       "head -c 110 whole >part && "
			       "objcopy --update-section .eh_frame=part odd cut"),
			 0);
	check_refused("cut", "corrupt .eh_frame: its record at 0x");
	cie = put_cie(&b, 4);
	put_fde(&b, cie, 0x1000, 16, 8);
	b.size -= 2;
	make(&b, 16);
	check_refused("made", "corrupt .debug_frame: its record at 0x");
}

static void test_huge_section(void **state)
{
	struct bytes b = { 0 };
	Elf64_Shdr section;
	Elf64_Ehdr header;
	FILE *f;

	(void)state;
	put_cie(&b, 4);
	make(&b, 16);
	f = fopen(in_directory("made"), "r+b");
	assert_int_equal(fread(&header, sizeof(header), 1, f), 1);
	for (size_t i = 0; i < header.e_shnum; i++) {
		fseek(f, header.e_shoff + i * sizeof(section), SEEK_SET);
		assert_int_equal(fread(&section, sizeof(section), 1, f), 1);
		if (section.sh_size != 20)
			continue;
		section.sh_size = 8ULL << 30;
		fseek(f, -(long)sizeof(section), SEEK_CUR);
		assert_int_equal(fwrite(&section, sizeof(section), 1, f), 1);
	}
	fclose(f);
	assert_int_equal(truncate(in_directory("made"), 9LL << 30), 0);
	check_refused("made", "its .debug_frame is larger than 128 MiB");
}

#define MANY_ROWS 8000010

static void test_many_rows(void **state)
{
	struct bytes b = { 0 };
	size_t cie = put_cie(&b, 4), begin = begin_fde(&b, cie, 0x1000, MANY_ROWS);

	(void)state;
	for (size_t i = 0; i < MANY_ROWS; i++) {
		PUT(&b, "\x41\x0e");
		put(&b, i % 2 ? 8 : 16, 1);
	}
	end_record(&b, begin);
	make(&b, MANY_ROWS);
	check_refused("made", "it has more than 8000000 rows");
}

static void test_many_rules(void **state)
{
	struct bytes b = { 0 };
	size_t cie = put_cie(&b, 4), begin = begin_fde(&b, cie, 0x1000, 70000);

	(void)state;
	for (size_t i = 0; i < 70000; i++) {
		PUT(&b, "\x41\x0e");
		put_leb(&b, i);
	}
	end_record(&b, begin);
	make(&b, 70000);
	check_refused("made", "more than 65536 rules");
}

static void test_many_records(void **state)
{
	struct bytes b = { 0 };
	size_t cie = put_cie(&b, 4);

	(void)state;
	for (size_t i = 0; i < 2000010; i++)
		end_record(&b, begin_fde(&b, cie, 0x1000 + i % 256, 1));
	make(&b, 256);
	check_refused("made", "it has more than 2000000 FDEs");
	for (size_t i = 0; i < 250010; i++)
		put_cie(&b, 1);
	make(&b, 256);
	check_refused("made", "it has more than 250000 CIEs");
}

/* The most work that is accepted: each FDE must do again what the one before did. */
static void test_work_is_bounded(void **state)
{
	struct bytes b = { 0 };
	size_t cie = begin_record(&b, UINT32_MAX), begin;
	struct unwind_rows rows;
	uint64_t start;

	(void)state;
	PUT(&b, "\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01");
	for (size_t i = 0; i < 1000000; i++)
		PUT(&b, "\x0e\x10\x0e\x08");
	end_record(&b, cie);
	for (size_t i = 0; i < 1000000; i++)
		put_fde(&b, cie, 0x1000 + i, 1000000, 16);
	begin = begin_fde(&b, cie, 0x1000 + 3000000, 16);
	for (size_t i = 0; i < 1000000; i++)
		put(&b, DW_CFA_remember_state, 1);
	end_record(&b, begin);
	make(&b, 4000000);
	start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	rows = read_rows(in_directory("made"));
	assert_true(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start < 20 * NS_PER_S);
	check_rows(&rows);
	assert_int_equal(offset_at(&rows, 0x1000 + 1999998), 16);
	assert_int_equal(offset_at(&rows, 0x1000 + 1999999), UNWIND_GAP);
	assert_int_equal(offset_at(&rows, 0x1000 + 3000000), -UNWIND_UNSUPPORTED);
	unwind_rows_free(&rows);
}

/* Files of other architectures have functions, but no rows. */
static void test_other_machine(void **state)
{
	struct cfi_functions functions;
	struct unwind_rows rows;
	struct elf_file file;
	struct error e;

	(void)state;
	if (shell("echo 'int f(int n) { return n; }' >m.c && gcc -m32 -O1 -shared -nostdlib "
		  "-fPIC m.c -o bits32"))
		skip();
	rows = read_rows(in_directory("bits32"));
	assert_int_equal(rows.count, 0);
	assert_int_equal(
		elf_file_open(&file, open(in_directory("bits32"), O_RDONLY | O_CLOEXEC), NULL, &e),
		0);
	assert_int_equal(cfi_functions_read(&functions, &file, &e), 0);
	assert_true(functions.count > 0);
	cfi_functions_free(&functions);
	elf_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_libcrypto),
		cmocka_unit_test(test_libstdcxx),
		cmocka_unit_test(test_postgres),
		cmocka_unit_test(test_gdb),
		cmocka_unit_test(test_python),
		cmocka_unit_test(test_ld_so),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_no_elf),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_huge_section),
		cmocka_unit_test(test_many_rows),
		cmocka_unit_test(test_many_rules),
		cmocka_unit_test(test_many_records),
		cmocka_unit_test(test_work_is_bounded),
		cmocka_unit_test(test_other_machine),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
