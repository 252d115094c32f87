// SPDX-License-Identifier: GPL-2.0-only
#include "capture/scripts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sample.h"
#include "util/array.h"

/*
 * Of all processes. A code object takes some 1,000 bytes.
 * Bound: users: bytes of the names of scripts' functions; then: further functions have the language
 * as their name; again: when processes end and the next window begins; but not those that BPF
 * believes to have sent; share: none: one user can take all; seen: codes_lost in the summary; not
 * in --status.
 */
#define SCRIPTS_BYTES_MAX ((size_t)64 << 20)

static bool is_place(const void *places, uint32_t number, const void *key)
{
	const struct script_place *place = (const struct script_place *)places + number;
	const struct script_place *wanted = key;

	return place->process == wanted->process && place->code == wanted->code;
}

static uint32_t find_place(const struct scripts *s, uint64_t process, uint64_t code)
{
	const struct script_place key = { .process = process, .code = code };

	return index_find(&s->index, hash_u64(process, code), is_place, s->places, &key);
}

static size_t size_of(const struct language_code *code)
{
	return offsetof(struct language_code, lines) + (size_t)code->lines_bytes;
}

/* Adds a part of its line table to a code object that has those before. */
static int add_lines(struct scripts *s, struct language_code **to, const struct language_code *part)
{
	size_t size = size_of(*to);
	struct language_code *code;

	if ((*to)->mark != part->mark || (*to)->lines_bytes != part->lines_at ||
	    s->bytes + part->lines_bytes > SCRIPTS_BYTES_MAX)
		return 0;
	code = realloc(*to, size + part->lines_bytes);
	if (!code)
		return -ENOMEM;
	memcpy((char *)code + size, part->lines, part->lines_bytes);
	code->lines_bytes += part->lines_bytes;
	s->bytes += part->lines_bytes;
	*to = code;
	return 0;
}

int scripts_add(struct scripts *s, const void *record, size_t size)
{
	const struct language_code *from = record;
	struct script_place *place;
	struct language_code *code;
	uint32_t number;
	size_t at;

	if (size < offsetof(struct language_code, lines) || size < size_of(from))
		return 0;
	size = size_of(from);
	number = find_place(s, from->process, from->code);
	if (from->lines_at && number == INDEX_NONE)
		return 0;
	if (number != INDEX_NONE) {
		place = &s->places[number];
		if (from->lines_at)
			return add_lines(s, &place->codes[place->count - 1], from);
		/* The BPF program has no room to remember all that it sent. */
		if (place->codes[place->count - 1]->mark == from->mark)
			return 0;
	}
	if (s->bytes + size + sizeof(*place) > SCRIPTS_BYTES_MAX) {
		s->lost++;
		return 0;
	}
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	memcpy(code, from, size);
	if (number == INDEX_NONE) {
		number = s->count;
		if (array_reserve(&s->places, &s->room, s->count + 1, sizeof(*s->places)))
			goto no_memory;
		s->places[number] = (struct script_place){ code->process, code->code, NULL, 0, 0 };
		/* The last step that can fail: a place is never empty. */
		if (array_reserve(&s->places[number].codes, &s->places[number].room, 1,
				  sizeof(code)))
			goto no_memory;
		if (index_add(&s->index, hash_u64(code->process, code->code), number)) {
			free(s->places[number].codes);
			goto no_memory;
		}
		s->count++;
		s->bytes += sizeof(*place);
	}
	place = &s->places[number];
	if (array_reserve(&place->codes, &place->room, place->count + 1, sizeof(code)))
		goto no_memory;
	/* Records of two CPUs may come in another order. */
	for (at = place->count; at && place->codes[at - 1]->time_ns > code->time_ns; at--)
		place->codes[at] = place->codes[at - 1];
	place->codes[at] = code;
	place->count++;
	s->bytes += size;
	return 0;

no_memory:
	free(code);
	return -ENOMEM;
}

const struct language_code *scripts_find(const struct scripts *s, uint64_t process, uint64_t code,
					 uint64_t time_ns, uint64_t *until_ns)
{
	uint32_t number = find_place(s, process, code);
	const struct script_place *place;
	size_t first = 0, limit;

	if (number == INDEX_NONE)
		return NULL;
	place = &s->places[number];
	/* The last one before; or the first, whose record is of a later tick if one was lost. */
	for (limit = place->count; limit - first > 1;) {
		size_t middle = first + (limit - first) / 2;

		if (place->codes[middle]->time_ns <= time_ns)
			first = middle;
		else
			limit = middle;
	}
	if (limit < place->count && place->codes[limit]->time_ns < *until_ns)
		*until_ns = place->codes[limit]->time_ns;
	return place->codes[first];
}

static void free_place(struct script_place *place)
{
	for (size_t i = 0; i < place->count; i++)
		free(place->codes[i]);
	free(place->codes);
}

int scripts_forget(struct scripts *s, struct process_table *processes)
{
	struct scripts kept = { .places = s->places, .room = s->room, .lost = s->lost };
	int err = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct script_place *place = &s->places[i];
		bool keep = !err && process_find(processes, sample_id_tgid(place->process));

		if (keep)
			err = index_add(&kept.index, hash_u64(place->process, place->code),
					kept.count);
		if (!keep || err) {
			free_place(place);
			continue;
		}
		for (size_t old = 0; old + 1 < place->count; old++)
			free(place->codes[old]);
		place->codes[0] = place->codes[place->count - 1];
		place->count = 1;
		kept.bytes += sizeof(*place) + size_of(place->codes[0]);
		kept.places[kept.count++] = *place;
	}
	index_free(&s->index);
	*s = kept;
	return err;
}

void scripts_free(struct scripts *s)
{
	for (size_t i = 0; i < s->count; i++)
		free_place(&s->places[i]);
	free(s->places);
	index_free(&s->index);
	*s = (struct scripts){ 0 };
}
