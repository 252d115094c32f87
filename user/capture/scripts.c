// SPDX-License-Identifier: GPL-2.0-only
#include "capture/scripts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/sample.h"
#include "util/array.h"
#include "util/order.h"

EQUAL(is_place, struct script_place *const, struct script_place,
      (*a)->process == b->process && (*a)->code == b->code)

static struct script_place *find_place(const struct scripts *s, uint64_t process, uint64_t code)
{
	const struct script_place key = { .process = process, .code = code };
	uint32_t number =
		index_find(&s->by_address, hash_u64(process, code), is_place, s->places, &key);

	return number == INDEX_NONE ? NULL : s->places[number];
}

static size_t size_of(const struct language_code *code)
{
	return offsetof(struct language_code, lines) + (size_t)code->lines_bytes;
}

static void account(struct scripts *s, struct script_user *user, size_t bytes)
{
	user->bytes += bytes;
	s->bytes += bytes;
}

static void count_lost(struct scripts *s, struct script_user *user)
{
	user->lost++;
	s->lost++;
}

/* --- Users --- */

EQUAL(is_user, struct script_user *const, uint32_t, (*a)->uid == *b)

/* Returns NULL for want of memory. */
static struct script_user *find_user(struct scripts *s, uint32_t uid)
{
	uint32_t number = index_find(&s->by_uid, hash_u64(uid, 0), is_user, s->users, &uid);
	struct script_user *user;

	if (number != INDEX_NONE)
		return s->users[number];
	user = calloc(1, sizeof(*user));
	if (!user || array_add_indexed(s->users, s->user_count, s->user_room, &s->by_uid,
				       hash_u64(uid, 0), user)) {
		free(user);
		return NULL;
	}
	user->uid = uid;
	user->number = s->user_count - 1;
	return user;
}

/* --- Texts --- */

static bool is_text(const void *texts, uint32_t number, const void *key)
{
	const struct script_text *text = ((struct script_text *const *)texts)[number];
	const struct script_text *wanted = key;
	size_t size = size_of(&wanted->code);

	return text->hash == wanted->hash && text->user == wanted->user &&
	       size_of(&text->code) == size && memcmp(&text->code, &wanted->code, size) == 0;
}

static size_t text_bytes(const struct script_text *text)
{
	return offsetof(struct script_text, code) + size_of(&text->code);
}

static void put_text(struct scripts *s, struct script_text *text)
{
	struct script_text *last = s->texts[s->text_count - 1];

	if (--text->references)
		return;
	if (text->hash)
		index_remove(&s->by_content, text->hash, text->number);
	if (last != text) {
		if (last->hash)
			index_remove(&s->by_content, last->hash, last->number);
		s->texts[text->number] = last;
		last->number = text->number;
		if (last->hash)
			index_add(&s->by_content, last->hash, last->number);
	}
	s->text_count--;
	account(s, text->user, -text_bytes(text));
	free(text);
}

/* Returns the text of a record, with a reference for the caller; NULL: no memory. */
static struct script_text *get_text(struct scripts *s, struct script_user *user,
				    const struct language_code *from)
{
	struct script_text *text = malloc(offsetof(struct script_text, code) + size_of(from));
	struct language_code *code = text ? &text->code : NULL;
	uint32_t number = INDEX_NONE;

	if (!text)
		return NULL;
	text->user = user;
	text->references = 1;
	text->hash = 0;
	memcpy(code, from, size_of(from));
	code->time_ns = code->process = code->code = code->mark = code->since_ns = 0;
	code->uid = code->image = 0;
	if (s->trim)
		s->trim(code);
	if (code->name_bytes < sizeof(code->name))
		memset(code->name + code->name_bytes, 0, sizeof(code->name) - code->name_bytes);
	if (code->file_bytes < sizeof(code->file))
		memset(code->file + code->file_bytes, 0, sizeof(code->file) - code->file_bytes);
	if (code->lines_bytes < LANGUAGE_LINES_BYTES - 1) {
		text->hash = hash_bytes(code, size_of(code), hash_u64(user->uid, 0)) ?: 1;
		number = index_find(&s->by_content, text->hash, is_text, s->texts, text);
	}
	if (number != INDEX_NONE) {
		free(text);
		s->texts[number]->references++;
		return s->texts[number];
	}
	text->number = s->text_count;
	if (array_reserve(&s->texts, &s->text_room, s->text_count + 1, sizeof(text)) ||
	    (text->hash && index_add(&s->by_content, text->hash, s->text_count))) {
		free(text);
		return NULL;
	}
	s->texts[s->text_count++] = text;
	account(s, user, text_bytes(text));
	return text;
}

/* --- Places --- */

static void unlink_place(struct script_place *place)
{
	*(place->newer ? &place->newer->older : &place->user->newest) = place->older;
	*(place->older ? &place->older->newer : &place->user->oldest) = place->newer;
}

static void link_newest(struct script_place *place)
{
	place->newer = NULL;
	place->older = place->user->newest;
	*(place->older ? &place->older->newer : &place->user->oldest) = place;
	place->user->newest = place;
}

static void use_place(const struct scripts *s, struct script_place *place)
{
	if (place->used == s->window)
		return;
	place->used = s->window;
	unlink_place(place);
	link_newest(place);
}

static void remove_versions(struct scripts *s, struct script_place *place, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		put_text(s, place->versions[i].text);
	account(s, place->user, -(count * sizeof(*place->versions)));
	place->count -= count;
	memmove(place->versions, place->versions + count, place->count * sizeof(*place->versions));
}

static void remove_place(struct scripts *s, struct script_place *place)
{
	struct script_place *last = s->places[s->place_count - 1];

	remove_versions(s, place, place->count);
	account(s, place->user, -sizeof(*place));
	unlink_place(place);
	index_remove(&s->by_address, hash_u64(place->process, place->code), place->number);
	if (last != place) {
		index_remove(&s->by_address, hash_u64(last->process, last->code), last->number);
		last->number = place->number;
		s->places[last->number] = last;
		index_add(&s->by_address, hash_u64(last->process, last->code), last->number);
	}
	s->place_count--;
	free(place->versions);
	free(place);
}

static void drop_place(struct scripts *s, struct script_place *place)
{
	if (s->dropped)
		s->dropped(place->process, place->code, s->context);
	remove_place(s, place);
}

/* Without a version, which the caller adds. NULL: no memory. */
static struct script_place *add_place(struct scripts *s, struct script_user *user, uint64_t process,
				      uint64_t code)
{
	struct script_place *place = calloc(1, sizeof(*place));

	if (!place ||
	    array_reserve(&s->places, &s->place_room, s->place_count + 1, sizeof(place)) ||
	    index_add(&s->by_address, hash_u64(process, code), s->place_count)) {
		free(place);
		return NULL;
	}
	*place = (struct script_place){
		.process = process,
		.code = code,
		.number = s->place_count,
		.used = s->window,
		.user = user,
	};
	s->places[s->place_count++] = place;
	link_newest(place);
	account(s, user, sizeof(*place));
	return place;
}

static bool is_within_share(const struct scripts *s, const struct script_user *user, size_t bytes)
{
	return !user->uid || !s->user_max || user->bytes + bytes <= s->user_max;
}

static bool has_room(const struct scripts *s, const struct script_user *user, size_t bytes)
{
	return is_within_share(s, user, bytes) &&
	       s->bytes + bytes <= (s->bytes_max ?: SCRIPTS_BYTES_MAX);
}

/* Whether there is room for so many bytes of a user; makes it from what may be dropped. */
static bool make_room(struct scripts *s, struct script_user *user, size_t bytes)
{
	while (!has_room(s, user, bytes)) {
		struct script_user *richest = user;
		struct script_place *place;
		bool in_use;

		for (size_t i = 0; i < s->user_count && is_within_share(s, user, bytes); i++)
			if (s->users[i]->bytes > richest->bytes)
				richest = s->users[i];
		if (richest->bytes < user->bytes + bytes)
			richest = user;
		place = richest->oldest;
		in_use = place && place->used == s->window;
		if (!place || (richest == user && in_use))
			return false;
		if (in_use)
			count_lost(s, richest);
		drop_place(s, place);
	}
	return true;
}

/* Adds a part of its line table to a code object that has those before. */
static int add_lines(struct scripts *s, struct script_place *place,
		     const struct language_code *part)
{
	struct script_version *version = &place->versions[place->count - 1];
	struct script_text *text = version->text;
	size_t size = text_bytes(text);

	if (version->mark != part->mark || text->code.lines_bytes != part->lines_at || text->hash ||
	    !has_room(s, text->user, part->lines_bytes))
		return 0;
	text = realloc(text, size + part->lines_bytes);
	if (!text)
		return -ENOMEM;
	memcpy((char *)text + size, part->lines, part->lines_bytes);
	text->code.lines_bytes += part->lines_bytes;
	account(s, text->user, part->lines_bytes);
	version->text = s->texts[text->number] = text;
	return 0;
}

int scripts_add(struct scripts *s, const void *record, size_t size)
{
	const struct language_code *from = record;
	struct script_version version, *versions;
	struct script_place *place;
	struct script_user *user;
	uint32_t at;

	if (size < offsetof(struct language_code, lines) || size < size_of(from))
		return 0;
	place = find_place(s, from->process, from->code);
	if (from->lines_at)
		return place ? add_lines(s, place, from) : 0;
	if (place) {
		const struct script_version *last = &place->versions[place->count - 1];

		use_place(s, place);
		/* The BPF program has no room to remember all that it sent. */
		if (last->mark == from->mark && last->time_ns >= from->since_ns)
			return 0;
	}
	user = place ? place->user : find_user(s, from->uid);
	if (!user)
		return -ENOMEM;
	if (!make_room(s, user,
		       sizeof(*place) + sizeof(version) + offsetof(struct script_text, code) +
			       size_of(from))) {
		count_lost(s, user);
		s->refused = true;
		return 0;
	}
	version = (struct script_version){ from->time_ns, from->mark, get_text(s, user, from) };
	if (!version.text)
		return -ENOMEM;
	place = find_place(s, from->process, from->code); /* it may have been dropped */
	if (!place)
		place = add_place(s, user, from->process, from->code);
	versions = place ? reallocarray(place->versions, place->count + 1, sizeof(version)) : NULL;
	if (!versions) {
		put_text(s, version.text);
		if (place && !place->count)
			remove_place(s, place);
		return -ENOMEM;
	}
	place->versions = versions;
	/* Records of two CPUs may come in another order. */
	for (at = place->count; at && place->versions[at - 1].time_ns > version.time_ns; at--)
		place->versions[at] = place->versions[at - 1];
	place->versions[at] = version;
	place->count++;
	account(s, user, sizeof(version));
	return 0;
}

const struct language_code *scripts_find(struct scripts *s, uint64_t process, uint64_t code,
					 uint64_t since_ns, uint64_t time_ns, uint64_t *until_ns)
{
	struct script_place *place = find_place(s, process, code);
	uint32_t first = 0, limit, after;

	if (!place)
		return NULL;
	/* Before: of an earlier process that had this key; after: of a later one. */
	while (first < place->count && place->versions[first].time_ns < since_ns)
		first++;
	after = place->count;
	while (after > first && place->versions[after - 1].time_ns >= *until_ns)
		after--;
	if (first == after)
		return NULL;
	use_place(s, place);
	/* The last one before; or the first, whose record is of a later tick if one was lost. */
	FIND_FIRST(limit, first + 1, after, place->versions[limit].time_ns <= time_ns);
	if (limit < after)
		*until_ns = place->versions[limit].time_ns;
	return &place->versions[limit - 1].text->code;
}

bool scripts_forget(struct scripts *s, const struct process_table *processes, uint64_t begin_ns)
{
	bool refused = s->refused;

	for (size_t i = s->place_count; i-- > 0;) {
		struct script_place *place = s->places[i];
		uint64_t last_ns = place->versions[place->count - 1].time_ns;
		const struct process *process =
			process_at(processes, sample_id_tgid(place->process), last_ns);
		uint32_t old = 0;

		/* It is forgotten, and another has its number; or no tick comes to it. */
		if (!process || (process->generation && process->begin_ns > last_ns) ||
		    s->window - place->used >= CAPTURE_KEEP_WINDOWS) {
			drop_place(s, place);
			continue;
		}
		while (old + 1 < place->count && place->versions[old + 1].time_ns < begin_ns)
			old++;
		remove_versions(s, place, old);
	}
	/* Keeps users whose losses are to be reported. */
	for (size_t i = s->user_count; i-- > 0;) {
		struct script_user *user = s->users[i], *last = s->users[s->user_count - 1];

		if (user->newest || user->lost)
			continue;
		index_remove(&s->by_uid, hash_u64(user->uid, 0), i);
		if (last != user) {
			index_remove(&s->by_uid, hash_u64(last->uid, 0), last->number);
			last->number = i;
			s->users[i] = last;
			index_add(&s->by_uid, hash_u64(last->uid, 0), i);
		}
		s->user_count--;
		free(user);
	}
	array_trim(&s->places, &s->place_room, s->place_count, sizeof(*s->places));
	array_trim(&s->texts, &s->text_room, s->text_count, sizeof(*s->texts));
	s->refused = false;
	s->window++;
	return refused;
}

size_t scripts_users_bytes(const struct scripts *s)
{
	size_t bytes = 0;

	for (size_t i = 0; i < s->user_count; i++)
		bytes += s->users[i]->uid ? s->users[i]->bytes : 0;
	return bytes;
}

uint64_t scripts_take_losses(struct scripts *s, struct refusals *refusals)
{
	uint64_t lost = s->lost;

	for (size_t i = 0; i < s->user_count; i++) {
		refusals_add(refusals, s->users[i]->uid, REFUSAL_SCRIPT_NAMES, s->users[i]->lost,
			     0);
		s->users[i]->lost = 0;
	}
	s->lost = 0;
	return lost;
}

void scripts_free(struct scripts *s)
{
	while (s->place_count)
		remove_place(s, s->places[s->place_count - 1]);
	for (size_t i = 0; i < s->user_count; i++)
		free(s->users[i]);
	free(s->places);
	free(s->texts);
	free(s->users);
	index_free(&s->by_address);
	index_free(&s->by_content);
	index_free(&s->by_uid);
	*s = (struct scripts){ 0 };
}
