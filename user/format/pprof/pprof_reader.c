// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/pprof/pprof_reader.h"
#include "util/array.h"

int pprof_fail(struct pprof_reader *r, const uint8_t *at, const char *format, ...)
{
	char reason[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return input_error(r->in, r->in->offset + (at - r->in->bytes), r->e, "%s", reason);
}

static bool same_id(const void *array, uint32_t entry, const void *key)
{
	const struct pprof_id *ids = array;
	const uint64_t *id = key;

	return ids[entry].id == *id;
}

uint32_t pprof_find_id(const struct pprof_ids *ids, uint64_t id)
{
	uint32_t entry;

	if (id - 1 < ids->dense)
		return ids->ids[id - 1].number;
	entry = index_find(&ids->index, hash_u64(id, 0), same_id, ids->ids, &id);
	return entry == INDEX_NONE ? PROFILE_NONE : ids->ids[entry].number;
}

int pprof_add_id(struct pprof_reader *r, struct pprof_ids *ids, uint64_t id, uint32_t number)
{
	bool dense = ids->dense == ids->count && id == ids->count + 1;

	if (array_reserve(&ids->ids, &ids->room, ids->count + 1, sizeof(*ids->ids)) ||
	    (!dense && index_add(&ids->index, hash_u64(id, 0), ids->count)))
		return error_no_memory(r->e);
	ids->ids[ids->count++] = (struct pprof_id){ id, number };
	ids->dense += dense;
	return 0;
}

void pprof_free_ids(struct pprof_ids *ids)
{
	free(ids->ids);
	index_free(&ids->index);
}

int pprof_string(struct pprof_reader *r, const uint8_t *at, uint64_t number, const char **text)
{
	struct pprof_text *entry;

	if (number >= r->string_count) {
		*text = "";
		if (pprof_drops_reference(r))
			return 0;
		return pprof_fail(r, at, "string number %" PRId64 ", but the file has %zu strings",
				  (int64_t)number, r->string_count);
	}
	entry = &r->strings[number];
	if (!entry->interned && profile_string_n(r->p, (const char *)entry->bytes.at,
						 wire_left(&entry->bytes), &entry->interned))
		return error_no_memory(r->e);
	*text = entry->interned;
	return 0;
}
