// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rows of arm64 files against libdw's, at every instruction: frames of all sizes, leaves,
 * signed return addresses, and rules in assembly. clang and lld build them on any machine.
 * PROFIL_ARM64_IMAGES: files of arm64 to compare as well, separated by blanks.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
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

enum {
	X29 = 29,
	X30 = 30,
	SP = 31
};

/* --- A rule, in words --- */

static void say_saved(char *text, size_t size, enum unwind_saved kind, int64_t offset)
{
	if (kind == UNWIND_SAVED_AT_CFA)
		snprintf(text, size, "at %+jd", (intmax_t)offset);
	else
		snprintf(text, size, "%s", kind == UNWIND_SAME ? "same" : "lost");
}

/* "sp+32: x29 at -32, x30 at -24" */
static void say_ours(char *text, size_t size, const struct unwind_rule *rule)
{
	char bp[32], lr[32];

	switch (rule->cfa) {
	case UNWIND_GAP:
		snprintf(text, size, "gap");
		return;
	case UNWIND_END:
		snprintf(text, size, "end");
		return;
	case UNWIND_SIGNAL:
		snprintf(text, size, "signal");
		return;
	case UNWIND_SP:
	case UNWIND_BP:
		say_saved(bp, sizeof(bp), rule->bp, rule->bp_at * 8);
		say_saved(lr, sizeof(lr), rule->bx, (rule->bp_at + rule->bx_at) * 8);
		snprintf(text, size, "%s%+d: x29 %s, x30 %s", rule->cfa == UNWIND_SP ? "sp" : "x29",
			 rule->offset, bp, lr);
		return;
	default:
		snprintf(text, size, "unsupported");
	}
}

/* False: undefined. */
static bool say_register(char *text, size_t size, Dwarf_Frame *frame, int number)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	assert_int_equal(dwarf_frame_register(frame, number, memory, &ops, &count), 0);
	if (!count && ops)
		return false;
	if (!count)
		say_saved(text, size, UNWIND_SAME, 0);
	else if (ops[0].atom == DW_OP_call_frame_cfa && count == 1)
		say_saved(text, size, UNWIND_SAVED_AT_CFA, 0);
	else if (ops[0].atom == DW_OP_call_frame_cfa && count == 2 &&
		 ops[1].atom == DW_OP_plus_uconst)
		say_saved(text, size, UNWIND_SAVED_AT_CFA, ops[1].number);
	else
		say_saved(text, size, UNWIND_LOST, 0);
	return true;
}

static void say_theirs(char *text, size_t size, Dwarf_CFI *cfi, uint64_t address)
{
	char bp[32], lr[32];
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	bool signal, has_caller;
	int64_t base, offset;
	size_t count;

	snprintf(text, size, "gap");
	if (dwarf_cfi_addrframe(cfi, address, &frame))
		return;
	dwarf_frame_info(frame, NULL, NULL, &signal);
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	base = ops[0].atom == DW_OP_bregx ? (int64_t)ops[0].number : ops[0].atom - DW_OP_breg0;
	offset = ops[0].atom == DW_OP_bregx ? ops[0].number2 : ops[0].number;
	has_caller = say_register(lr, sizeof(lr), frame, X30);
	if (!say_register(bp, sizeof(bp), frame, X29))
		say_saved(bp, sizeof(bp), UNWIND_LOST, 0);
	if (signal)
		snprintf(text, size, "signal");
	else if (!has_caller)
		snprintf(text, size, "end");
	else if (strcmp(lr, "lost") == 0 || count != 1)
		snprintf(text, size, "unsupported");
	else if (base == SP || base == X29)
		snprintf(text, size, "%s%+jd: x29 %s, x30 %s", base == SP ? "sp" : "x29",
			 (intmax_t)offset, bp, lr);
	else
		snprintf(text, size, "unsupported");
	free(frame);
}

/* --- Comparing --- */

static const struct unwind_rule *rule_at(const struct unwind_rows *rows, uint64_t address)
{
	static const struct unwind_rule none = { .cfa = UNWIND_GAP };
	const struct unwind_rule *rule = &none;

	for (size_t i = 0; i < rows->count && rows->rows[i].address <= address; i++)
		rule = &rows->rules[rows->rows[i].rule];
	return rule;
}

/* Compares at each `step` bytes of the code. Returns how many rules there are. */
static size_t compare(const char *path, uint64_t step)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_rows rows;
	struct error e = { 0 };
	char ours[128], theirs[128];
	GElf_Phdr segment;
	Dwarf_CFI *cfi;
	size_t count;
	Elf *elf;

	assert_true(fd >= 0);
	if (cfi_read(fd, path, NULL, NULL, &rows, &e))
		fail_msg("%s: %s", path, e.what);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	cfi = dwarf_getcfi_elf(elf);
	assert_non_null(cfi);
	for (int i = 0; gelf_getphdr(elf, i, &segment); i++)
		for (uint64_t at = 0;
		     segment.p_type == PT_LOAD && segment.p_flags & PF_X && at < segment.p_filesz;
		     at += step) {
			say_ours(ours, sizeof(ours), rule_at(&rows, segment.p_vaddr + at));
			say_theirs(theirs, sizeof(theirs), cfi, segment.p_vaddr + at);
			/* The entry point is the outermost frame, whatever is said there. */
			if (strcmp(ours, theirs) != 0 && strcmp(ours, "end") != 0)
				fail_msg("%s: at %#jx: %s, libdw: %s", path,
					 (uintmax_t)(segment.p_vaddr + at), ours, theirs);
		}
	count = rows.rule_count;
	unwind_rows_free(&rows);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	close(fd);
	return count;
}

static bool has_rule(const char *path, const char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_rows rows;
	struct error e;
	char ours[128];
	bool found = false;

	assert_int_equal(cfi_read(fd, path, NULL, NULL, &rows, &e), 0);
	for (size_t i = 0; i < rows.rule_count && !found; i++) {
		say_ours(ours, sizeof(ours), &rows.rules[i]);
		found = strcmp(ours, text) == 0;
	}
	unwind_rows_free(&rows);
	close(fd);
	return found;
}

static const char program_source[] =
	"void use(void *); int more(int);\n"
	"int leaf(int a) { return a * 3; }\n"
	"int calls(int a) { return more(a) + 1; }\n"
	"int small(int a) { int x[8]; use(x); return x[a]; }\n"
	"int large(int a) { int x[1000]; use(x); return x[a]; }\n"
	"int larger(int a) { int x[60000]; use(x); return x[a]; }\n"
	"int varies(int a) { int x[a]; use(x); return x[a - 1]; }\n"
	"int keeps(int a, int b, int c, int d) { return more(a) + more(b) + more(c) * more(d); }\n";

static void build(const char *flags)
{
	FILE *f = fopen(in_directory("program.c"), "w");

	assert_non_null(f);
	fputs(program_source, f);
	fclose(f);
	if (shell("clang --target=aarch64-linux-gnu -w -O2 -fPIC -shared -nostdlib -fuse-ld=lld "
		  "-funwind-tables program.c %s -o image",
		  flags))
		skip();
}

static void test_compiled(void **state)
{
	(void)state;
	build("");
	assert_true(compare(in_directory("image"), 4) > 4);
	assert_true(has_rule(in_directory("image"), "sp+0: x29 same, x30 same"));
}

static void test_frame_pointers(void **state)
{
	(void)state;
	build("-fno-omit-frame-pointer");
	assert_true(compare(in_directory("image"), 4) > 4);
	assert_true(has_rule(in_directory("image"), "x29+16: x29 at -16, x30 at -8"));
}

static void test_signed(void **state)
{
	(void)state;
	build("-mbranch-protection=standard");
	assert_true(compare(in_directory("image"), 4) > 4);
}

#define FUNCTION(text) "0: .cfi_startproc\n" text "\nnop\n.cfi_endproc\n"
#define STEP	       "\nnop\n"

static const char odd_source[] = ".text\n.globl start\nstart:\n"
	/* where gcc saves them: below all else */
	FUNCTION(".cfi_def_cfa_offset 2064\n.cfi_offset 29, -2064\n.cfi_offset 30, -2056")
	/* one of them alone, near and far */
	FUNCTION(".cfi_def_cfa_offset 32\n.cfi_offset 30, -32" STEP ".cfi_restore 30")
		FUNCTION(".cfi_def_cfa_offset 4096\n.cfi_offset 30, -4096")
			FUNCTION(".cfi_def_cfa_offset 32\n.cfi_offset 29, -32")
	/* above the CFA, as in glibc's lazy binding */
	FUNCTION(".cfi_offset 30, 8" STEP ".cfi_adjust_cfa_offset 208")
	/* the outermost, and not */
	FUNCTION(".cfi_undefined 30" STEP ".cfi_restore 30" STEP ".cfi_undefined 30" STEP
		 ".cfi_offset 30, -8")
	/* lost */
	FUNCTION(".cfi_def_cfa_offset 16\n.cfi_offset 30, -8\n.cfi_undefined 29" STEP
		 ".cfi_escape 0x14, 30, 1") /* val_offset */
	/* signed, remembered */
	FUNCTION(".cfi_negate_ra_state" STEP ".cfi_remember_state\n.cfi_def_cfa_offset 16\n"
		 ".cfi_offset 29, -16\n.cfi_offset 30, -8" STEP ".cfi_restore_state");

static void test_odd(void **state)
{
	FILE *f = fopen(in_directory("odd.s"), "w");
	const char *path;

	(void)state;
	assert_non_null(f);
	fputs(odd_source, f);
	fclose(f);
	if (shell("clang --target=aarch64-linux-gnu -shared -nostdlib -fuse-ld=lld odd.s -o odd"))
		skip();
	path = in_directory("odd");
	assert_true(compare(path, 4) > 10);
	assert_true(has_rule(path, "sp+2064: x29 at -2064, x30 at -2056"));
	assert_true(has_rule(path, "sp+32: x29 same, x30 at -32"));
	assert_true(has_rule(path, "sp+4096: x29 same, x30 at -4096"));
	assert_true(has_rule(path, "sp+32: x29 at -32, x30 same"));
	assert_true(has_rule(path, "sp+208: x29 same, x30 at +8"));
	assert_true(has_rule(path, "end"));
	assert_true(has_rule(path, "sp+16: x29 lost, x30 at -8"));
	assert_true(has_rule(path, "unsupported"));
}

static void test_images(void **state)
{
	char *names = getenv("PROFIL_ARM64_IMAGES"), *copy = names ? strdup(names) : NULL, *rest;

	(void)state;
	for (char *name = copy ? strtok_r(copy, " ", &rest) : NULL; name;
	     name = strtok_r(NULL, " ", &rest))
		assert_true(compare(name, 76) > 8);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled), cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_signed),	 cmocka_unit_test(test_odd),
		cmocka_unit_test(test_images),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
