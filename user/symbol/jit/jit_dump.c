// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/jit/jit_file.h"

/* jit-PID.dump, in the machine's byte order: tools/perf/Documentation/jitdump-specification.txt */

#define VERSION 1

enum record_id {
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	CODE_DEBUG_INFO = 2,
	CODE_CLOSE = 3,
};

struct file_header {
	uint32_t magic, version, size, machine, padding, pid;
	uint64_t time, flags;
};

struct record {
	uint32_t id, size;
	uint64_t time;
};

struct load {
	struct record record;
	uint32_t pid, tid;
	uint64_t vma, address, code_size, index; /* the name and the code follow */
};

struct move {
	struct record record;
	uint32_t pid, tid;
	uint64_t vma, old_address, address, code_size, index;
};

struct debug_info {
	struct record record;
	uint64_t address, count; /* the lines follow */
};

struct debug_line {
	uint64_t address;
	uint32_t line, discriminator; /* the file's name follows; "\xff": as before */
};

/* A moved function, whose name is in its load record. */
struct moved {
	uint64_t index; /* the function's number */
	uint64_t load;	/* offset of its load record; 0: not found */
};

struct moves {
	struct moved *moved; /* by index, each once */
	size_t count;
};

/* Bytes of source lines read of a function */
#define LINES_MAX ((uint64_t)1024 * 1024)

/* Records between a function's source lines and its load: unwinding information, other threads'. */
#define RECORDS_BETWEEN 16

static bool read_exactly(struct jit_file *f, uint64_t offset, void *to, size_t size)
{
	const char *bytes;

	if (jit_read(f, offset, size, &bytes) < size)
		return false;
	memcpy(to, bytes, size);
	return true;
}

/* Reads a record's header. False: the file ends, or the process is still writing the record. */
static bool read_record(struct jit_file *f, uint64_t offset, struct record *record)
{
	return read_exactly(f, offset, record, sizeof(*record)) &&
	       record->size >= sizeof(*record) && record->id != CODE_CLOSE;
}

static int by_index(const void *x, const void *y)
{
	const struct moved *a = x, *b = y;

	return (a->index > b->index) - (a->index < b->index);
}

static struct moved *find_moved(const struct moves *moves, uint64_t index)
{
	struct moved key = { .index = index };

	return bsearch(&key, moves->moved, moves->count, sizeof(key), by_index);
}

/* Collects the moves that cover an address, each function once. */
static int collect_moves(struct jit_file *f, const struct jit_cover *c, struct moves *moves)
{
	size_t kept = 0;
	struct move move;

	moves->moved = calloc(c->count + 1, sizeof(*moves->moved));
	if (!moves->moved)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++) {
		uint64_t entry = jit_find(c, i);

		if (entry && read_exactly(f, entry - 1, &move, sizeof(move)) &&
		    move.record.id == CODE_MOVE)
			moves->moved[moves->count++].index = move.index;
	}
	qsort(moves->moved, moves->count, sizeof(*moves->moved), by_index);
	for (size_t i = 0; i < moves->count; i++)
		if (!i || moves->moved[i].index != moves->moved[kept - 1].index)
			moves->moved[kept++] = moves->moved[i];
	moves->count = kept;
	return 0;
}

static void find_loads(struct batch *b, struct jit_file *f, uint64_t first, struct moves *moves)
{
	struct record record;
	struct load load;
	size_t count = 0;

	for (uint64_t at = first; moves->count && at < f->limit && read_record(f, at, &record);
	     at += record.size) {
		struct moved *moved;

		if (++count % 65536 == 0 && batch_stopped(b))
			break;
		if (record.id != CODE_LOAD || !read_exactly(f, at, &load, sizeof(load)))
			continue;
		moved = find_moved(moves, load.index);
		if (moved)
			moved->load = at;
	}
}

/*
 * The function named last. Addresses come sorted, so that its source lines are read once, however
 * many addresses it has.
 */
struct function {
	const struct moves *moves;
	uint64_t entry; /* 0: none yet */
	char *name;	/* NULL: none */
	uint64_t at;	/* offset of the next source line, */
	uint64_t limit; /* of their end, */
	uint64_t left;	/* and their number until there */
	uint32_t line;	/* the line before; 0: none */
	char *file;	/* of that line; NULL: unknown */
};

static void begin_lines(struct jit_file *f, uint64_t offset, struct function *function)
{
	struct debug_info info;

	if (!read_exactly(f, offset, &info, sizeof(info)))
		return;
	function->at = offset + sizeof(info);
	function->limit = offset + (info.record.size < LINES_MAX ? info.record.size : LINES_MAX);
	function->left = info.count;
}

/* Advances to the last source line at or before the address. */
static int find_line(struct jit_file *f, uint64_t address, struct function *function)
{
	struct debug_line line;
	const char *bytes;
	size_t size;

	while (function->left && function->at < function->limit &&
	       read_exactly(f, function->at, &line, sizeof(line)) && line.address <= address &&
	       jit_count_line(f)) {
		size = jit_read(f, function->at + sizeof(line), JIT_WINDOW, &bytes);
		size = strnlen(bytes, size);
		if (size != 1 || (unsigned char)*bytes != 0xff) {
			free(function->file);
			function->file = strndup(bytes, size);
			if (!function->file)
				return -ENOMEM;
		}
		function->line = line.line;
		function->at += sizeof(line) + size + 1;
		function->left--;
	}
	return 0;
}

/* The offset of the load record for the entry at `at`; 0: none. */
static uint64_t find_load(struct jit_file *f, uint64_t at, const struct moves *moves)
{
	const struct moved *moved;
	struct record record;
	struct move move;

	for (int i = 0; i < RECORDS_BETWEEN && read_record(f, at, &record); i++) {
		if (record.id == CODE_LOAD)
			return at;
		if (record.id == CODE_MOVE) {
			moved = read_exactly(f, at, &move, sizeof(move))
					? find_moved(moves, move.index)
					: NULL;
			return moved ? moved->load : 0;
		}
		at += record.size;
	}
	return 0;
}

static void end_function(struct function *function)
{
	free(function->name);
	free(function->file);
	*function = (struct function){ .moves = function->moves };
}

/* An entry is a load, a move, or the source lines before a load. */
static int begin_function(struct jit_file *f, uint64_t entry, struct function *function)
{
	uint64_t at = find_load(f, entry - 1, function->moves);
	struct record record;
	const char *text;
	size_t size;

	end_function(function);
	function->entry = entry;
	if (at > entry - 1)
		begin_lines(f, entry - 1, function);
	if (!at || !read_record(f, at, &record) || record.id != CODE_LOAD ||
	    record.size < sizeof(struct load))
		return 0;
	size = record.size - sizeof(struct load);
	size = jit_read(f, at + sizeof(struct load), size < JIT_WINDOW ? size : JIT_WINDOW, &text);
	function->name = strndup(text, size);
	return function->name ? 0 : -ENOMEM;
}

static int find_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
		     struct jit_name *name)
{
	struct function *function = context;
	int err = entry == function->entry ? 0 : begin_function(f, entry, function);

	err = err ?: find_line(f, address, function);
	if (err || !function->name)
		return err;
	name->text = function->name;
	name->size = strlen(function->name);
	if (!function->file || !function->line)
		return 0;
	name->line = function->line;
	name->file = strdup(function->file);
	return name->file ? 0 : -ENOMEM;
}

/* Offers a record's addresses. *lines: the entry of source lines for the next load, or 0. */
static void offer_record(struct jit_file *f, uint64_t at, const struct record *record,
			 struct jit_cover *c, uint64_t *lines)
{
	struct debug_info info;
	struct load load;
	struct move move;

	if (record->id == CODE_DEBUG_INFO) {
		*lines = at + 1;
	} else if (record->id == CODE_LOAD && read_exactly(f, at, &load, sizeof(load))) {
		if (*lines && read_exactly(f, *lines - 1, &info, sizeof(info)) &&
		    info.address != load.address)
			*lines = 0;
		jit_offer(c, load.address, load.code_size, *lines ?: at + 1);
		*lines = 0;
	} else if (record->id == CODE_MOVE && read_exactly(f, at, &move, sizeof(move))) {
		jit_offer(c, move.address, move.code_size, at + 1);
	}
}

int jit_dump_resolve(struct batch *b, struct jit_file *f, struct jit_cover *c)
{
	struct file_header header;
	struct moves moves = { 0 };
	struct function function = { .moves = &moves };
	struct record record;
	uint64_t lines = 0;
	int err;

	if (!read_exactly(f, 0, &header, sizeof(header)) || header.version != VERSION ||
	    header.size < sizeof(header)) {
		error_set(&b->why, 0, "its jit-PID.dump has no header of version %d", VERSION);
		return 0;
	}
	for (uint64_t at = header.size; read_record(f, at, &record); at += record.size) {
		if (!jit_count_entry(f, at) || (f->entries % 65536 == 0 && batch_stopped(b)))
			break;
		offer_record(f, at, &record, c, &lines);
	}
	err = collect_moves(f, c, &moves);
	if (!err) {
		find_loads(b, f, header.size, &moves);
		err = jit_name_all(b, f, c, find_name, &function);
	}
	end_function(&function);
	free(moves.moved);
	return err;
}
