// SPDX-License-Identifier: GPL-2.0-only
#include "capture/scripts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sample.h"
#include "util/array.h"

/* Of all processes. A code object takes some 500 bytes; at most 9,216. */
#define SCRIPTS_BYTES_MAX ((size_t)64 << 20)

struct code_key {
	uint64_t process, code;
};

static uint64_t hash_code(uint64_t process, uint64_t code)
{
	return hash_u64(process, code);
}

static bool is_code(const void *codes, uint32_t number, const void *key)
{
	const struct language_code *what = ((const struct script_code *)codes)[number].what;
	const struct code_key *wanted = key;

	return what->process == wanted->process && what->code == wanted->code;
}

static uint32_t find_last(const struct scripts *s, uint64_t process, uint64_t code)
{
	const struct code_key key = { process, code };

	return index_find(&s->index, hash_code(process, code), is_code, s->codes, &key);
}

/* Takes over `what`. Returns 0 or -ENOMEM. */
static int append(struct scripts *s, struct language_code *what, size_t size)
{
	uint32_t number = s->count, before = find_last(s, what->process, what->code);
	uint64_t hash = hash_code(what->process, what->code);

	if (array_reserve(&s->codes, &s->room, s->count + 1, sizeof(*s->codes)))
		return -ENOMEM;
	s->codes[number] = (struct script_code){ what, INDEX_NONE };
	if (before != INDEX_NONE) {
		/* The number in the index stays that of the last one. */
		s->codes[number] = s->codes[before];
		s->codes[before] = (struct script_code){ what, number };
	} else if (index_add(&s->index, hash, number)) {
		return -ENOMEM;
	}
	s->count++;
	s->bytes += size;
	return 0;
}

int scripts_add(struct scripts *s, const void *record, size_t size)
{
	const struct language_code *from = record;
	const size_t head = offsetof(struct language_code, lines);
	struct language_code *what;

	if (size < head || size - head < from->lines_bytes)
		return 0;
	size = head + from->lines_bytes;
	if (s->bytes + size > SCRIPTS_BYTES_MAX) {
		s->lost++;
		return 0;
	}
	what = malloc(size);
	if (!what)
		return -ENOMEM;
	memcpy(what, from, size);
	if (append(s, what, size) == 0)
		return 0;
	free(what);
	return -ENOMEM;
}

const struct language_code *scripts_find(const struct scripts *s, uint64_t process, uint64_t code,
					 uint64_t time_ns, uint64_t *until_ns)
{
	const struct language_code *best = NULL;

	/* The last one before; or the first, whose record is of a later tick if one was lost. */
	for (uint32_t number = find_last(s, process, code); number != INDEX_NONE;
	     number = s->codes[number].before) {
		const struct language_code *what = s->codes[number].what;

		if (!best || (what->time_ns <= time_ns
				      ? best->time_ns > time_ns || what->time_ns > best->time_ns
				      : what->time_ns < best->time_ns))
			best = what;
		if (what->time_ns > time_ns && what->time_ns < *until_ns)
			*until_ns = what->time_ns;
	}
	return best;
}

int scripts_forget(struct scripts *s, struct process_table *processes)
{
	struct scripts kept = { .lost = s->lost };
	int err = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct language_code *what = s->codes[i].what;
		bool keep = !err && process_find(processes, sample_id_tgid(what->process));

		if (keep)
			err = append(&kept, what,
				     offsetof(struct language_code, lines) + what->lines_bytes);
		if (!keep || err)
			free(what);
	}
	free(s->codes);
	index_free(&s->index);
	*s = kept;
	return err;
}

void scripts_free(struct scripts *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->codes[i].what);
	free(s->codes);
	index_free(&s->index);
	*s = (struct scripts){ 0 };
}
