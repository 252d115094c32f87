// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for call frame information. For any file, its rows are as unwind_rows.h
 * promises, functions are sorted and do not overlap, and no descriptor is left open.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/cfi/cfi.h"
#include "whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_rows(int fd)
{
	struct unwind_rows rows;
	struct error e;

	if (cfi_read(fd, "input", NULL, NULL, &rows, &e)) {
		require(!rows.rows && !rows.rules && !rows.count, "no rows after an error");
		return;
	}
	for (size_t i = 0; i < rows.count; i++) {
		require(rows.rows[i].rule < rows.rule_count, "a row's rule");
		if (!i)
			continue;
		require(rows.rows[i].address > rows.rows[i - 1].address, "the order of rows");
		require(rows.rows[i].rule != rows.rows[i - 1].rule, "rows that are all needed");
	}
	require(!rows.count || rows.rules[rows.rows[rows.count - 1].rule].cfa == UNWIND_GAP,
		"a gap at the end");
	for (size_t i = 0; i < rows.rule_count; i++)
		require(rows.rules[i].cfa <= UNWIND_UNSUPPORTED &&
				rows.rules[i].bx != UNWIND_SAVED_AT_BP,
			"a rule's kinds");
	unwind_rows_free(&rows);
}

static void check_functions(int fd)
{
	struct cfi_functions functions;
	struct elf_file file;
	struct error e;

	if (elf_file_open(&file, dup(fd), NULL, &e))
		return;
	if (!cfi_functions_read(&functions, &file, &e))
		for (size_t i = 0; i < functions.count; i++) {
			const struct cfi_function *f = &functions.all[i];

			require(f->start < f->limit && (!i || f[-1].limit <= f->start),
				"the order of functions");
			require(cfi_functions_find(&functions, f->start) == f, "a function found");
		}
	cfi_functions_free(&functions);
	elf_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int lowest = dup(0), fd, again;

	close(lowest);
	fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	check_rows(fd);
	check_functions(fd);
	close(fd);
	again = dup(0);
	require(again == lowest, "descriptors: one is left open");
	close(again);
	return 0;
}
