// SPDX-License-Identifier: GPL-2.0-only
/* Sizes of instructions are those of objdump, in whole libraries; what they do to the stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/cfi/x86_decode.h"

/* Reads bytes in hexadecimal, with blanks between them, up to anything else. */
static size_t read_bytes(const char *text, uint8_t *bytes, size_t max)
{
	size_t count = 0;
	unsigned int byte;
	int length;

	while (count < max && sscanf(text, "%2x%n", &byte, &length) == 1 && length == 2) {
		bytes[count++] = byte;
		text += length;
		text += *text == ' ';
	}
	return count;
}

/* -w: one line for each instruction, however long it is: "ADDRESS:\tBYTES\tTEXT" */
static void compare_library(const char *path)
{
	char command[256], *line = NULL;
	size_t room = 0, compared = 0, differ = 0;
	FILE *f;

	if (snprintf(command, sizeof(command), "objdump -dw -j .text %s 2>/dev/null", path) < 0)
		fail();
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &room, f) > 0) {
		char *bytes_at = strstr(line, ":\t"), *text;
		struct x86_instruction i;
		uint8_t bytes[32];
		size_t size;

		text = bytes_at ? strchr(bytes_at + 2, '\t') : NULL;
		if (!text)
			continue;
		*text++ = '\0';
		size = read_bytes(bytes_at + 2, bytes, 16);
		/* Data among code; and the one instruction that objdump puts together from two. */
		if (strstr(text, "(bad)") || strstr(text, ".byte") ||
		    strncmp(text, "rex", 3) == 0 || bytes[0] == 0x9b)
			continue;
		compared++;
		memset(bytes + size, 0, sizeof(bytes) - size);
		if (x86_decode(bytes, size, &i) && i.size == size)
			continue;
		if (differ++ < 5)
			print_message("%s: %.40s %.40s\n", path, line, text);
	}
	free(line);
	pclose(f);
	assert_int_equal(differ, 0);
	print_message("%s: %zu instructions\n", path, compared);
}

static void test_libraries(void **state)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/lib/ld-musl-x86_64.so.1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		compare_library(paths[i]);
}

static void test_stack(void **state)
{
	static const struct {
		const char *bytes, *text;
		struct x86_instruction right;
	} rows[] = {
		{ "55", "push %rbp", { .stack = X86_PUSH, .reg = 5 } },
		{ "41 55", "push %r13", { .stack = X86_PUSH, .reg = 13 } },
		{ "ff 73 08", "push 8(%rbx)", { .stack = X86_PUSH } },
		{ "6a 00", "push $0", { .stack = X86_PUSH } },
		{ "5b", "pop %rbx", { .stack = X86_POP, .reg = 3 } },
		{ "5c", "pop %rsp", { .stack = X86_SP_LOST, .reg = 4 } },
		{ "66 50", "push %ax", { .stack = X86_SP_LOST, .reg = 0 } },
		{ "48 83 ec 18", "sub $24,%rsp", { .stack = X86_ADD, .value = -24 } },
		{ "48 81 c4 00 01 00 00", "add $256,%rsp", { .stack = X86_ADD, .value = 256 } },
		{ "83 ec 18", "sub $24,%esp", { .stack = X86_SP_LOST } },
		{ "48 83 e4 f0", "and $-16,%rsp", { .stack = X86_SP_LOST } },
		{ "48 83 fc 10", "cmp $16,%rsp", { .stack = X86_SAME } },
		{ "48 8d 64 24 80", "lea -128(%rsp),%rsp", { .stack = X86_ADD, .value = -128 } },
		{ "48 8d 65 f0", "lea -16(%rbp),%rsp", { .stack = X86_SP_FROM_BP, .value = -16 } },
		{ "48 89 ec", "mov %rbp,%rsp", { .stack = X86_SP_FROM_BP } },
		{ "48 89 e5", "mov %rsp,%rbp", { .stack = X86_BP_FROM_SP } },
		{ "48 8b ec", "mov %rsp,%rbp", { .stack = X86_BP_FROM_SP } },
		{ "48 8d 6c 24 10", "lea 16(%rsp),%rbp", { .stack = X86_BP_FROM_SP, .value = 16 } },
		{ "48 89 dc", "mov %rbx,%rsp", { .stack = X86_SP_LOST } },
		{ "48 8b 64 24 08", "mov 8(%rsp),%rsp", { .stack = X86_SP_LOST } },
		{ "48 89 24 24", "mov %rsp,(%rsp)", { .stack = X86_SAME } },
		{ "48 29 c4", "sub %rax,%rsp", { .stack = X86_SP_LOST } },
		{ "48 87 e0", "xchg %rsp,%rax", { .stack = X86_SP_LOST } },
		{ "48 94", "xchg %rsp,%rax", { .stack = X86_SP_LOST } },
		{ "c9", "leave", { .stack = X86_LEAVE } },
		{ "31 ed", "xor %ebp,%ebp", { .stack = X86_CLEAR_BP } },
		{ "45 31 ed", "xor %r13d,%r13d", { .stack = X86_SAME } },
		{ "f3 c3", "rep ret", { .flow = X86_RETURN } },
		{ "f2 ff e0", "bnd jmp *%rax", { .flow = X86_JUMP_INDIRECT } },
		{ "ff d0", "call *%rax", { .flow = X86_CALL_INDIRECT } },
		{ "e8 10 00 00 00",
		  "call .+21",
		  { .flow = X86_CALL, .has_target = true, .target = 21 } },
		{ "eb fe", "jmp .", { .flow = X86_JUMP, .has_target = true, .target = 0 } },
		{ "0f 84 fa ff ff ff",
		  "je .",
		  { .flow = X86_BRANCH, .has_target = true, .target = 0 } },
		{ "48 8d 05 09 00 00 00",
		  "lea 9(%rip),%rax",
		  { .has_target = true, .target = 16 } },
		{ "0f 0b", "ud2", { .flow = X86_STOP } },
		{ "f4", "hlt", { .flow = X86_STOP } },
		{ "0f 05", "syscall", { .flow = X86_NEXT } },
		{ "66 0f 1f 44 00 00", "nopw", { .is_padding = true } },
		{ "66 90", "xchg %ax,%ax", { .is_padding = true } },
		{ "f3 90", "pause", { .is_padding = false } },
		{ "f3 0f 1e fa", "endbr64", { .flow = X86_NEXT } },
		{ "c4 e2 7d 18 04 24", "vbroadcastss (%rsp),%ymm0", { .flow = X86_NEXT } },
		{ "62 f1 7c 48 10 04 24", "vmovups (%rsp),%zmm0", { .flow = X86_NEXT } },
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(*rows); n++) {
		const struct x86_instruction *right = &rows[n].right;
		struct x86_instruction i;
		uint8_t bytes[16];
		size_t size = read_bytes(rows[n].bytes, bytes, sizeof(bytes));

		if (!x86_decode(bytes, size, &i) || i.size != size || i.flow != right->flow ||
		    i.stack != right->stack || i.value != right->value ||
		    i.has_target != right->has_target || i.target != right->target ||
		    i.is_padding != right->is_padding || (right->reg && i.reg != right->reg))
			fail_msg("%s: size %u flow %u stack %u register %u value %d target %jd",
				 rows[n].text, i.size, i.flow, i.stack, i.reg, i.value,
				 (intmax_t)i.target);
		/* It ends within the bytes, or is no instruction. */
		assert_false(size > 1 && x86_decode(bytes, size - 1, &i) && i.size > size - 1);
	}
}

static void test_invalid(void **state)
{
	static const char *const rows[] = {
		"06",	 "0f 04", "82 00 00",
		"66",	 "0f",	  "c5",
		"62 00", "e8 00", "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(*rows); n++) {
		struct x86_instruction i;
		uint8_t bytes[16];

		if (x86_decode(bytes, read_bytes(rows[n], bytes, sizeof(bytes)), &i))
			fail_msg("%s is decoded", rows[n]);
	}
	assert_false(x86_decode(NULL, 0, &(struct x86_instruction){ 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
