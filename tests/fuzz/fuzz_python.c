// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for what the sample program copies from a process that seems to run a script:
 * records of code objects. For any, texts are UTF-8 that a terminal can show, lines are numbers of
 * lines, and a record that was added is found.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/scripts.h"
#include "script/language.h"
#include "whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The fuzzer's own: no process is known. */
struct process *process_at(const struct process_table *table, pid_t pid, uint64_t time_ns)
{
	(void)table;
	(void)pid;
	(void)time_ns;
	return NULL;
}

static void check_text(const char text[static LANGUAGE_TEXT_SIZE])
{
	size_t more = 0;

	require(memchr(text, '\0', LANGUAGE_TEXT_SIZE), "the end of a text");
	for (const char *c = text; *c; c++) {
		uint8_t byte = *c;

		require(byte >= 0x20 && byte != 0x7f, "a text without control characters");
		require((byte & 0xc0) == 0x80 ? more-- : !more, "a text in UTF-8");
		if (byte >= 0xc0)
			more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
	}
	require(!more, "a whole text in UTF-8");
}

/* The record is as long as the input: what is read behind it is found by the sanitizer. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const size_t head = offsetof(struct language_code, lines);
	char name[LANGUAGE_TEXT_SIZE], file[LANGUAGE_TEXT_SIZE];
	const struct language_code *found;
	struct language_code *code;
	const size_t begin = offsetof(struct language_code, line);
	struct scripts s = { .trim = language_trim };
	struct process_table none = { 0 };
	uint64_t until = UINT64_MAX;

	code = malloc(size + 1);
	if (!code)
		return 0;
	memcpy(code, bytes, size);
	if (size >= head) {
		/* As the program in the kernel sees to it. */
		code->language %= LANGUAGES;
		code->name_bytes %= LANGUAGE_NAME_BYTES + 1;
		code->file_bytes %= LANGUAGE_FILE_BYTES + 1;
		code->lines_bytes %= LANGUAGE_LINES_BYTES;
		code->lines_at = 0;
		code->time_ns &= INT64_MAX; /* a clock that does not reach the end */
		code->language %= LANGUAGES;
	}
	require(scripts_add(&s, code, size) == 0, "a record that is added or ignored");
	if (size >= head && size - head >= code->lines_bytes) {
		found = scripts_find(&s, code->process, code->code, 0, 0, &until);
		require(found && memcmp((const char *)found + begin, (const char *)code + begin,
					offsetof(struct language_code, name_bytes) - begin) == 0,
			"the record that was added");
		language_name(found, name, file);
		check_text(name);
		check_text(file);
		for (uint32_t i = 0; i < 300; i++)
			require(language_line(found, i) <= INT32_MAX, "the number of a line");
		require(!scripts_forget(&s, &none, 0) && !s.place_count && !s.bytes,
			"that all is forgotten");
	}
	scripts_free(&s);
	free(code);
	return 0;
}
