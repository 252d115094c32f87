// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/batch.h"
#include "symbol/elf_file.h"
#include "symbol/file_cache.h"
#include "symbol/jit.h"
#include "symbol/parser.h"
#include "util/pack.h"
#include "util/utf8.h"

/*
 * The parser has a profile of its own with one image: the part that a batch is about. Both messages
 * have the locations of that part with their lines; the functions come first, each once.
 */

/*
 * Names may have this many bytes (batch.c), paths too; `why` and warnings are short.
 * Bound: files: bytes of a text, and number of warnings, in an answer; then: the file is refused.
 */
#define TEXT_MAX     ((size_t)64 * 1024)
#define WHY_MAX	     ((size_t)2 * 1024)
#define WARNINGS_MAX 16

struct request_head {
	uint64_t session, window_ns, string_bytes, file_id, count, mapping_count;
	uint32_t provider, bits, build_id_size;
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	bool is_jit, lines, has_root, is_unopened;
};

struct mapping {
	uint64_t start, limit, offset;
};

struct answer_head {
	uint64_t text_start, text_size, warning_count;
	uint32_t bits, build_id_size;
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	/* Bound: state. */
	bool was_read, is_unread;
};

/* A function's texts follow it, a location's lines too, and a line's file if it has one. */
struct location {
	uint64_t address;
	uint32_t mapping; /* in the request */
	uint32_t line_count;
};

struct line {
	uint32_t function, line, column;
	bool has_file;
};

/* Packs the functions of these locations. numbers: by function, set to their numbers in it. */
static void pack_functions(struct pack *k, const struct profile *p,
			   const struct batch_address *addresses, size_t count, uint32_t *numbers)
{
	uint64_t function_count = 0;
	size_t at = k->size;

	pack_bytes(k, &function_count, sizeof(function_count));
	for (size_t i = 0; i < count; i++) {
		const struct profile_location *l = &p->locations[addresses[i].location];

		for (uint32_t n = 0; n < l->line_count; n++) {
			uint32_t function = p->lines[l->first_line + n].function;
			const struct profile_function *f = &p->functions[function];

			if (numbers[function])
				continue;
			numbers[function] = ++function_count;
			pack_bytes(k, &f->start_line, sizeof(f->start_line));
			pack_text(k, f->name);
			pack_text(k, f->system_name);
			pack_text(k, f->file);
		}
	}
	if (!k->failed)
		memcpy(k->bytes + at, &function_count, sizeof(function_count));
}

/* Packs locations with their lines. mappings: of the request, by address; NULL: the answer. */
static void pack_locations(struct pack *k, const struct profile *p,
			   const struct batch_address *addresses, size_t count,
			   const uint32_t *mappings)
{
	/* Its memory is not touched where locations have no lines, as in a request of a window. */
	uint32_t *numbers = calloc(p->function_count + 1, sizeof(*numbers));

	k->failed |= !numbers;
	if (k->failed) {
		free(numbers);
		return;
	}
	pack_functions(k, p, addresses, count, numbers);
	for (size_t i = 0; i < count; i++) {
		const struct profile_location *l = &p->locations[addresses[i].location];
		struct location location = {
			.address = mappings ? l->address : l->image_address,
			.mapping = mappings ? mappings[i] : 0,
			.line_count = l->line_count,
		};

		pack_bytes(k, &location, sizeof(location));
		for (uint32_t n = 0; n < l->line_count; n++) {
			const struct profile_line *from = &p->lines[l->first_line + n];
			struct line line = {
				.function = numbers[from->function] - 1,
				.line = from->line,
				.column = from->column,
				.has_file = from->file,
			};

			pack_bytes(k, &line, sizeof(line));
			if (from->file)
				pack_text(k, from->file);
		}
	}
	free(numbers);
}

/* Functions as they were packed, by number: their texts stay in the pack. */
struct functions {
	struct profile_function *all;
	uint32_t *numbers; /* in the profile */
	size_t count;
};

static void unpack_functions(struct unpack *u, struct functions *f)
{
	uint64_t count;

	*f = (struct functions){ 0 };
	unpack_bytes(u, &count, sizeof(count));
	/* Each takes more than a byte: so many are not there. */
	u->failed |= count > (uint64_t)(u->end - u->at);
	if (u->failed)
		return;
	f->all = calloc(count + 1, sizeof(*f->all));
	f->numbers = calloc(count + 1, sizeof(*f->numbers));
	for (f->count = 0; f->all && f->numbers && f->count < count && !u->failed; f->count++) {
		struct profile_function *function = &f->all[f->count];

		unpack_bytes(u, &function->start_line, sizeof(function->start_line));
		function->name = unpack_text(u, TEXT_MAX);
		function->system_name = unpack_text(u, TEXT_MAX);
		function->file = unpack_text(u, TEXT_MAX);
		u->failed |= !*function->name;
	}
}

static void free_functions(struct functions *f)
{
	free(f->all);
	free(f->numbers);
}

/* Reads the lines of a location. p: they are set there; NULL: they are checked alone. */
static int unpack_lines(struct unpack *u, const struct functions *f, uint32_t count,
			struct profile *p, uint32_t location)
{
	struct profile_line *lines;
	int err = 0;

	if (!count)
		return 0;
	/* Each takes the bytes of a struct line. */
	u->failed |= count > (size_t)(u->end - u->at) / sizeof(struct line);
	lines = u->failed ? NULL : calloc(count, sizeof(*lines));
	if (!lines)
		return u->failed ? -EBADMSG : -ENOMEM;
	for (uint32_t i = 0; i < count && !u->failed && !err; i++) {
		const char *file;
		struct line line;

		unpack_bytes(u, &line, sizeof(line));
		u->failed |= line.function >= f->count;
		file = line.has_file ? unpack_text(u, TEXT_MAX) : NULL;
		if (u->failed || !p)
			continue;
		lines[i] = (struct profile_line){
			.function = f->numbers[line.function],
			.line = line.line,
			.column = line.column,
		};
		if (file)
			err = profile_string(p, file, &lines[i].file);
	}
	if (!err && p && !u->failed)
		err = profile_set_lines(p, location, lines, count);
	free(lines);
	return err ?: u->failed ? -EBADMSG : 0;
}

static int add_functions(struct functions *f, struct profile *p)
{
	int err = f->all && f->numbers ? 0 : -ENOMEM;

	for (size_t i = 0; i < f->count && !err; i++)
		err = profile_add_function(p, &f->all[i], &f->numbers[i]);
	return err;
}

void names_pack_request(struct pack *k, const struct batch *b, uint64_t session, uint64_t window_ns,
			bool is_jit)
{
	const struct profile *p = b->p;
	const struct profile_image *image = &p->images[b->image];
	uint32_t *mappings = calloc(b->count + 1, sizeof(*mappings));
	struct request_head head;
	struct pack list = { 0 };
	uint32_t last = PROFILE_NONE;

	memset(&head, 0, sizeof(head)); /* with its padding */
	head.session = session;
	head.window_ns = window_ns;
	head.string_bytes = p->string_bytes;
	head.file_id = image->file_id;
	head.count = b->count;
	head.provider = image->provider;
	head.bits = image->bits;
	head.build_id_size = image->build_id_size;
	memcpy(head.build_id, image->build_id, image->build_id_size);
	head.is_jit = is_jit;
	head.lines = b->o.lines;
	head.has_root = image->root >= 0;
	head.is_unopened = image->unopened;
	k->failed |= !mappings;
	for (size_t i = 0; i < b->count && !k->failed; i++) {
		uint32_t number = p->locations[b->addresses[i].location].mapping;
		const struct profile_mapping *m = &p->mappings[number];

		if (number != last) {
			const struct mapping mapping = { m->start, m->limit, m->offset };

			pack_bytes(&list, &mapping, sizeof(mapping));
			head.mapping_count++;
			last = number;
		}
		mappings[i] = head.mapping_count - 1;
	}
	k->failed |= list.failed;
	pack_bytes(k, &head, sizeof(head));
	pack_text(k, image->path);
	pack_bytes(k, list.bytes, list.size);
	pack_locations(k, p, b->addresses, b->count, mappings);
	free(list.bytes);
	free(mappings);
}

/* Makes the part of the profile that a request has. */
static int unpack_part(struct unpack *u, const struct request_head *head, struct profile *p,
		       struct batch_address *addresses)
{
	struct profile_image *image;
	struct functions functions;
	uint32_t number;
	int err = profile_add_image(p, unpack_text(u, TEXT_MAX), head->build_id,
				    head->build_id_size, &number);

	if (err)
		return err;
	image = &p->images[number];
	image->provider = head->provider;
	image->bits = head->bits;
	image->file_id = head->file_id;
	image->unopened = head->is_unopened ? "" : NULL;
	/* A number alone: whom the parser asks for files has the descriptor. */
	image->root = head->has_root ? INT32_MAX : -1;
	for (uint64_t i = 0; i < head->mapping_count && !err; i++) {
		struct mapping m;

		unpack_bytes(u, &m, sizeof(m));
		err = profile_add_mapping(p, m.start, m.limit, m.offset, 0, &number);
	}
	unpack_functions(u, &functions);
	err = err ?: u->failed ? -EBADMSG : add_functions(&functions, p);
	for (uint64_t i = 0; i < head->count && !err; i++) {
		struct location location;

		unpack_bytes(u, &location, sizeof(location));
		if (u->failed || location.mapping >= head->mapping_count)
			err = -EBADMSG;
		err = err ?: profile_add_location(p, location.address, location.mapping, &number);
		if (!err && number != i)
			err = -EBADMSG;
		err = err ?: unpack_lines(u, &functions, location.line_count, p, number);
		addresses[i] = (struct batch_address){ location.address, i, 0 };
	}
	free_functions(&functions);
	return err;
}

static void pack_answer(struct pack *k, const struct batch *b, uint64_t count,
			struct batch_address *addresses)
{
	const struct profile *p = b->p;
	const struct profile_image *image = &p->images[0];
	struct answer_head head;

	memset(&head, 0, sizeof(head));
	head.text_start = image->text_start;
	head.text_size = image->text_size;
	head.bits = image->bits;
	head.build_id_size = image->build_id_size;
	memcpy(head.build_id, image->build_id, image->build_id_size);
	head.warning_count = MIN(p->warning_count, WARNINGS_MAX);
	head.was_read = b->was_read;
	head.is_unread = b->is_unread;
	pack_bytes(k, &head, sizeof(head));
	pack_text(k, b->why.what);
	for (uint64_t i = 0; i < head.warning_count; i++)
		pack_text(k, p->warnings[i]);
	for (uint64_t i = 0; i < count; i++) /* the reader has sorted them */
		addresses[i].location = i;
	pack_locations(k, p, addresses, count, NULL);
}

int names_answer(struct unpack *u, struct names_session *session, int fd, struct pack *answer)
{
	struct profile *p = profile_new();
	struct request_head head;
	struct batch b = { .p = p, .checksum_bytes = &session->checksum_bytes };
	int err;

	unpack_bytes(u, &head, sizeof(head));
	u->failed |= head.count > (uint64_t)(u->end - u->at) ||
		     head.build_id_size > sizeof(head.build_id);
	if (!u->failed && p)
		b.addresses = calloc(head.count + 1, sizeof(*b.addresses));
	if (!b.addresses) {
		profile_free(p);
		close(fd);
		return u->failed ? -EBADMSG : -ENOMEM;
	}
	if (head.session != session->number) {
		session->number = head.session;
		session->checksum_bytes = SYMBOL_CHECKSUM_BYTES;
		file_limits_free(&session->limits);
		session->limits = (struct file_limits){ 0 };
		file_limits_init(&session->limits, head.window_ns);
		if (head.window_ns)
			file_cache_begin_window(symbol_cache_files(session->cache));
	}
	b.count = head.count;
	b.o.lines = head.lines;
	b.o.cache = head.window_ns ? session->cache : NULL;
	b.limits = head.window_ns ? &session->limits : NULL;
	err = unpack_part(u, &head, p, b.addresses);
	p->string_bytes += head.string_bytes;
	if (!err && !head.is_jit)
		err = elf_resolve_from(&b, fcntl(fd, F_DUPFD_CLOEXEC, 0));
	else if (!err)
		err = jit_resolve_from(&b, fd);
	close(fd);
	if (!err)
		pack_answer(answer, &b, head.count, b.addresses);
	if (p->image_count)
		p->images[0].root = -1;
	free(b.addresses);
	profile_free(p);
	return err;
}

/* Reads the locations of an answer. p: they are set there; NULL: they are checked alone. */
static int unpack_locations(struct unpack *u, const struct functions *f, const struct batch *b,
			    struct profile *p)
{
	int err = 0;

	for (size_t i = 0; i < b->count && !err; i++) {
		struct location location;

		unpack_bytes(u, &location, sizeof(location));
		err = u->failed ? -EBADMSG : 0;
		if (!err && p)
			p->locations[b->addresses[i].location].image_address = location.address;
		err = err ?: unpack_lines(u, f, location.line_count, p, b->addresses[i].location);
	}
	return err;
}

int names_unpack_answer(struct unpack *u, struct batch *b)
{
	struct profile_image *image = &b->p->images[b->image];
	const char *why, *warnings[WARNINGS_MAX];
	struct functions functions;
	struct answer_head head;
	struct unpack checked;
	int err;

	unpack_bytes(u, &head, sizeof(head));
	why = unpack_text(u, WHY_MAX);
	u->failed |= head.warning_count > WARNINGS_MAX ||
		     head.build_id_size > sizeof(head.build_id) ||
		     (head.bits != 0 && head.bits != 32 && head.bits != 64) ||
		     head.text_start + head.text_size < head.text_start;
	for (size_t i = 0; why[i]; i++) /* one line, without what acts on a terminal */
		u->failed |= utf8_is_hidden_at(why, i);
	for (uint64_t i = 0; i < head.warning_count && !u->failed; i++)
		warnings[i] = unpack_text(u, TEXT_MAX);
	unpack_functions(u, &functions);
	checked = *u;
	err = unpack_locations(&checked, &functions, b, NULL);
	if (!err && (checked.failed || checked.at != checked.end))
		err = -EBADMSG;
	/* It is whole: from here on it is taken. */
	err = err ?: add_functions(&functions, b->p);
	err = err ?: unpack_locations(u, &functions, b, b->p);
	free_functions(&functions);
	for (uint64_t i = 0; i < head.warning_count && !err; i++)
		err = profile_warn(b->p, "%s", warnings[i]);
	if (err)
		return err;
	if (!image->build_id_size) {
		memcpy(image->build_id, head.build_id, head.build_id_size);
		image->build_id_size = head.build_id_size;
	}
	image->bits = head.bits;
	image->text_start = head.text_start;
	image->text_size = head.text_size;
	b->was_read = head.was_read;
	b->is_unread = head.is_unread;
	if (*why)
		error_set(&b->why, 0, "%s", why);
	return 0;
}
