// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/cfi.h"

#include <stdlib.h>

#include "symbol/cfi/cfi_frames.h"

int cfi_functions_read(struct cfi_functions *functions, const struct elf_file *file,
		       struct error *e)
{
	struct cfi_frames frames;
	int err = cfi_frames_read(&frames, file, e);
	uint64_t end = 0;

	*functions = (struct cfi_functions){ 0 };
	if (!err && frames.fde_count) {
		functions->all = calloc(frames.fde_count, sizeof(*functions->all));
		err = functions->all ? 0 : error_no_memory(e);
	}
	for (size_t i = 0; i < frames.fde_count && !err; i++) {
		const struct cfi_fde *fde = &frames.fdes[i];

		if (fde->limit <= end)
			continue;
		functions->all[functions->count].start = fde->start > end ? fde->start : end;
		functions->all[functions->count++].limit = fde->limit;
		end = fde->limit;
	}
	cfi_frames_free(&frames);
	return err;
}

void cfi_functions_free(struct cfi_functions *functions)
{
	free(functions->all);
	*functions = (struct cfi_functions){ 0 };
}

static int compare_function(const void *address, const void *function)
{
	const struct cfi_function *f = function;
	uint64_t at = *(const uint64_t *)address;

	return at < f->start ? -1 : at >= f->limit;
}

const struct cfi_function *cfi_functions_find(const struct cfi_functions *functions,
					      uint64_t address)
{
	if (!functions->count)
		return NULL;
	return bsearch(&address, functions->all, functions->count, sizeof(*functions->all),
		       compare_function);
}
