// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recorded processes that run scripts, replayed through the walk: registers, stack, rows and memory
 * are of a real interpreter (tests/data/script/, by record_script.c), the code is the BPF
 * program's. Expected is what the language itself says its stack was. Needs no kernel. x86-64.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sample.h"
#include "capture/opener.h"
#include "capture/unwind/unwind_copy.h"
#include "script/language.h"
#include "script/python_layouts.h"

#define LINES_MAX 256

static struct piece {
	uint64_t at;
	unsigned char *bytes;
	size_t size;
} memory[LINES_MAX];
static char *frames[LINES_MAX]; /* "NAME FILE LINE", the innermost first */
static size_t memory_count, frame_count;
static struct unwind_tables tables;
static struct unwind_mapping mappings[8];
static struct unwind_space space = { .mappings = mappings };
static struct unwind_copy copy;
static uint64_t thread_pointer;
static struct scripts scripts;
static struct unwind_found found;

/* What the walk calls instead of opener_read_memory(): see tests/Makefile. */
ssize_t __wrap_opener_read_memory(const struct opener_memory *m, uint64_t from, void *to,
				  size_t size);
ssize_t __wrap_opener_read_memory(const struct opener_memory *m, uint64_t from, void *to,
				  size_t size)
{
	(void)m;
	for (size_t i = 0; i < memory_count; i++)
		if (from >= memory[i].at && from - memory[i].at <= memory[i].size &&
		    size <= memory[i].size - (from - memory[i].at)) {
			memcpy(to, memory[i].bytes + (from - memory[i].at), size);
			return size;
		}
	return -1;
}

/* "ADDRESS BYTES", in hexadecimal. */
static struct piece read_piece(const char *text)
{
	struct piece piece = { 0 };
	int at;

	assert_int_equal(sscanf(text, "%" SCNx64 " %n", &piece.at, &at), 1);
	text += at;
	piece.bytes = malloc(strlen(text) / 2 + 1);
	assert_non_null(piece.bytes);
	for (unsigned int byte; sscanf(text, "%2x", &byte) == 1; text += 2)
		piece.bytes[piece.size++] = byte;
	return piece;
}

static void read_into(const char *text, uint64_t *at, void *to, size_t room, size_t *size)
{
	struct piece piece = read_piece(text);

	assert_in_range(piece.size, 1, room);
	memcpy(to, piece.bytes, piece.size);
	*at = piece.at;
	*size = piece.size;
	free(piece.bytes);
}

/* The image that is being read: it is added to the tables when the next one begins. */
static struct unwind_rows rows;
static size_t mappings_of_image;

static void end_image(void)
{
	uint32_t number;

	if (!mappings_of_image)
		return;
	assert_int_equal(unwind_tables_add(&tables, &rows, 0, &number), 0);
	for (; mappings_of_image; mappings_of_image--)
		mappings[space.count - mappings_of_image].image = number;
	unwind_rows_free(&rows);
	rows = (struct unwind_rows){ 0 };
}

static void begin_image(const char *text)
{
	unsigned int version, specific;
	uint64_t runtime, code_type;

	end_image();
	rows.rows = calloc(LINES_MAX, sizeof(*rows.rows));
	rows.rules = calloc(LINES_MAX, sizeof(*rows.rules));
	assert_true(rows.rows && rows.rules);
	rows.rules[rows.rule_count++] = (struct unwind_rule){ .cfa = UNWIND_GAP };
	assert_int_equal(sscanf(text, "%u %x %" SCNx64 " %" SCNx64, &specific, &version, &runtime,
				&code_type),
			 4);
	for (size_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++)
		if (python_layouts[i].version == version) {
			rows.language = python_layouts[i];
			rows.language.python.runtime = runtime;
			rows.language.python.code_type = code_type;
		}
	rows.language.thread_specific = specific;
}

static void add_mapping(const char *text)
{
	struct unwind_mapping *m = &mappings[space.count++];

	assert_true(space.count <= sizeof(mappings) / sizeof(*mappings));
	assert_int_equal(sscanf(text, "%llx %llx %llx", &m->start, &m->limit, &m->bias), 3);
	mappings_of_image++;
}

/* A row, with a gap before it unless the last one ends there, and behind it. */
static void add_row(const char *text)
{
	struct unwind_rule *rule = &rows.rules[rows.rule_count];
	unsigned int cfa, bp, bx;
	int bx_at, bp_at, offset;
	uint64_t from, limit;

	assert_int_equal(sscanf(text, "%" SCNx64 " %" SCNx64 " %u %u %u %d %d %d", &from, &limit,
				&cfa, &bp, &bx, &bx_at, &bp_at, &offset),
			 8);
	*rule = (struct unwind_rule){
		.cfa = cfa, .bp = bp, .bx = bx, .bx_at = bx_at, .bp_at = bp_at, .offset = offset
	};
	assert_true(rows.count + 2 < LINES_MAX);
	if (rows.count && rows.rows[rows.count - 1].address == from)
		rows.count--;
	rows.rows[rows.count++] = (struct unwind_address){ from, rows.rule_count++ };
	rows.rows[rows.count++] = (struct unwind_address){ limit, 0 };
}

static void read_line(const char *line)
{
	char what[16];
	int at = 0;
	size_t size;

	assert_int_equal(sscanf(line, "%15s %n", what, &at), 1);
	line += at;
	if (strcmp(what, "frame") == 0) {
		assert_true(frame_count < LINES_MAX);
		frames[frame_count++] = strndup(line, strcspn(line, "\n"));
	} else if (strcmp(what, "memory") == 0) {
		assert_true(memory_count < LINES_MAX);
		memory[memory_count++] = read_piece(line);
	} else if (strcmp(what, "stack") == 0) {
		uint64_t begin;

		read_into(line, &begin, copy.bytes, sizeof(copy.bytes), &size);
		copy.begin = begin;
		copy.size = size;
	} else if (strcmp(what, "registers") == 0) {
		read_into(line, &thread_pointer, copy.registers, sizeof(copy.registers), &size);
		assert_int_equal(size, sizeof(copy.registers));
	} else if (strcmp(what, "image") == 0) {
		begin_image(line);
	} else if (strcmp(what, "layout") == 0) {
		uint64_t language;

		read_into(line, &language, &rows.language, sizeof(rows.language), &size);
		assert_int_equal(rows.language.language, language);
	} else if (strcmp(what, "mapping") == 0) {
		add_mapping(line);
	} else if (strcmp(what, "row") == 0) {
		add_row(line);
	} else {
		fail_msg("%s", what);
	}
}

/* *state: its name. */
static int read_recording(void **state)
{
	char path[256];
	FILE *file;
	char *line = NULL;
	size_t room = 0;

	snprintf(path, sizeof(path), PROFIL_TESTS "/data/script/%s", (const char *)*state);
	file = fopen(path, "r");
	if (!file || unwind_tables_private(&tables))
		return -1;
	while (getline(&line, &room, file) > 0)
		if (*line != '#')
			read_line(line);
	end_image();
	free(line);
	fclose(file);
	copy.id = sample_id_make(1, 1, 1);
	return 0;
}

static int free_recording(void **state)
{
	(void)state;
	for (size_t i = 0; i < memory_count; i++)
		free(memory[i].bytes);
	for (size_t i = 0; i < frame_count; i++)
		free(frames[i]);
	unwind_tables_free(&tables);
	memory_count = frame_count = space.count = 0;
	return 0;
}

static void walk(bool native)
{
	const struct opener_memory unused = { 0 };
	const struct unwind_live live = {
		.memory = &unused,
		.thread_pointer = thread_pointer,
		.scripts = &scripts,
		.native = native,
	};

	assert_int_equal(unwind_copy_walk(&copy, &tables, &space, &live, &found), 0);
}

/* Compares the functions of the script in what was found, by name, file and line, in their order.
 */
static void assert_frames(void)
{
	char name[LANGUAGE_TEXT_SIZE], file[LANGUAGE_TEXT_SIZE], text[3 * LANGUAGE_TEXT_SIZE];
	size_t count = 0;

	for (uint32_t i = 0; i < found.user_depth; i++) {
		const struct language_code *code;
		uint64_t until_ns = UINT64_MAX;

		if (!language_of_word(found.pcs[i]))
			continue;
		code = scripts_find(&scripts, sample_id_process(copy.id),
				    language_code(found.pcs[i]), 0, UINT64_MAX, &until_ns);
		assert_non_null(code);
		language_name(code, name, file);
		snprintf(text, sizeof(text), "%s %s %u", name, file,
			 language_line(code, language_instruction(found.pcs[i])));
		assert_true(count < frame_count);
		assert_string_equal(text, frames[count++]);
	}
	assert_int_equal(count, frame_count);
	scripts_free(&scripts);
}

static void test_functions_of_the_script(void **state)
{
	(void)state;
	walk(false);
	assert_int_equal(found.end, UNWIND_COMPLETE);
	assert_frames();
}

/* The script's functions stand in groups, each behind the call of the interpreter that runs them.
 */
static void test_native_frames_between(void **state)
{
	uint32_t groups = 0;

	(void)state;
	walk(true);
	assert_int_equal(found.end, UNWIND_COMPLETE);
	for (uint32_t i = 1; i < found.user_depth; i++)
		groups += language_of_word(found.pcs[i]) && !language_of_word(found.pcs[i - 1]);
	/* The program, sorted()'s function, and list()'s, which calls a generator. */
	assert_int_equal(groups, 3);
	assert_frames();
}

/* A stack that is cut off has the functions all the same, as Python's list of frames is whole. */
static void test_cut_off_stack(void **state)
{
	const uint32_t size = copy.size;

	(void)state;
	copy.size = size / 2;
	walk(false);
	assert_int_not_equal(found.end, UNWIND_COMPLETE);
	assert_frames();
	copy.size = size;
}

/* Memory that cannot be read, piece by piece: functions are missing, or their lines, and no
 * function is made up. */
static void test_memory_that_is_missing(void **state)
{
	struct unwind_found whole;

	(void)state;
	walk(false);
	whole = found;
	scripts_free(&scripts);
	for (size_t i = 0; i < memory_count; i++) {
		const size_t size = memory[i].size;
		uint32_t at = 0;

		memory[i].size = 0;
		walk(false);
		memory[i].size = size;
		for (uint32_t f = 0; f < found.user_depth; f++) {
			if (!language_of_word(found.pcs[f]))
				continue;
			while (at < whole.user_depth &&
			       language_code(whole.pcs[at]) != language_code(found.pcs[f]))
				at++;
			assert_in_range(at++, 0, whole.user_depth - 1);
		}
		scripts_free(&scripts);
	}
}

int main(void)
{
#define REPLAY(function, name)                                                                \
	{                                                                                     \
		name ": " #function, function, read_recording, free_recording, (void *)(name) \
	}
	const struct CMUnitTest tests[] = {
		REPLAY(test_functions_of_the_script, "python"),
		REPLAY(test_native_frames_between, "python"),
		REPLAY(test_cut_off_stack, "python"),
		REPLAY(test_memory_that_is_missing, "python"),
		REPLAY(test_functions_of_the_script, "php"),
		REPLAY(test_memory_that_is_missing, "php"),
		REPLAY(test_functions_of_the_script, "perl"),
		REPLAY(test_memory_that_is_missing, "perl"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
