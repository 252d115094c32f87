// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "symbol/elf_file.h"
#include "symbol/parser.h"
#include "util/clock.h"
#include "util/order.h"
#include "util/scan.h"

#define BUFFER ((size_t)1024 * 1024)

/*
 * The budgets. Runtimes write maps of 100 MB with a million functions. Dumps also have the code,
 * most of which is skipped. The entries' budget also applies to source lines of functions with
 * samples.
 * Bound: users: bytes of a perf map, of a dump, and entries of both; less where a window's limit is
 * less; then: the end of a map is read; the beginning of a dump; again: at the next window; share:
 * by USERS_PART; seen: in a warning.
 */
#define MAP_MAX	    ((uint64_t)256 * 1024 * 1024)
#define DUMP_MAX    ((uint64_t)1024 * 1024 * 1024)
#define ENTRIES_MAX ((uint64_t)4 * 1024 * 1024)

const char jit_no_names[] =
	"anonymous memory (JIT or generated code): no /tmp/perf-PID.map has its names";

struct jit_file {
	struct elf_source source;
	char *buffer; /* BUFFER bytes */
	uint64_t offset;
	size_t size;
	size_t fill;	/* how much is read at once, at least */
	uint64_t limit; /* nothing is read from this offset on */
	uint64_t begin; /* of a map of which only the end is read */
	uint64_t entries, lines;
	bool large, many_entries, many_lines; /* the budget of bytes, entries, lines is exceeded */
};

/*
 * Sets *bytes to the bytes at `offset`, valid until the next call. wanted: at most JIT_WINDOW.
 * Returns their number, less than `wanted` at the end of the file.
 */
static size_t read_bytes(struct jit_file *f, uint64_t offset, size_t wanted, const char **bytes)
{
	uint64_t there = offset - f->offset, left;
	bool has_all = f->size && f->offset + f->size == f->source.size;

	if (offset < f->offset || there > f->size || (wanted > f->size - there && !has_all)) {
		size_t size = MAX(wanted, f->fill);

		left = offset < f->limit ? f->limit - offset : 0;
		f->offset = offset;
		f->size = elf_source_read(&f->source, f->buffer, MIN(left, size), offset);
		there = 0;
	}
	*bytes = f->buffer + there;
	return MIN(wanted, f->size - there);
}

/*
 * Finds for each address the last entry of the file that covers it: the one with the highest
 * number. Numbers are above 0.
 */
struct jit_cover {
	const struct batch_address *addresses; /* sorted */
	size_t count;
	uint64_t *tree; /* a segment tree over the addresses */
};

static void offer_node(uint64_t *node, uint64_t entry)
{
	if (*node < entry)
		*node = entry;
}

static void offer_entry(struct jit_cover *c, uint64_t start, uint64_t size, uint64_t entry)
{
	uint64_t limit;
	size_t low, high;

	if (__builtin_add_overflow(start, size, &limit))
		limit = UINT64_MAX;
	low = batch_lower_bound(c->addresses, 0, c->count, start);
	if (low == c->count || c->addresses[low].address >= limit)
		return; /* as of almost all entries */
	high = batch_lower_bound(c->addresses, 0, c->count, limit) + c->count;
	for (low += c->count; low < high; low /= 2, high /= 2) {
		if (low % 2)
			offer_node(&c->tree[low++], entry);
		if (high % 2)
			offer_node(&c->tree[--high], entry);
	}
}

/* The entry of address i; 0: none. */
static uint64_t find_entry(const struct jit_cover *c, size_t i)
{
	uint64_t last = 0;

	for (size_t node = i + c->count; node; node /= 2)
		last = MAX(last, c->tree[node]);
	return last;
}

/* The name of an entry, and the source line of an address in it. Zero-initialised: none. */
struct jit_name {
	const char *text; /* valid until f is read, or find() called */
	size_t size;
	char *file; /* of the source line, to be free()d; NULL: unknown */
	uint32_t line;
};

/* Sets *name for an address in an entry. Returns 0 or -ENOMEM. */
typedef int jit_find_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
			  struct jit_name *name);

/* Names all addresses that have an entry, by find(). Returns 0 or -ENOMEM. */
static int name_addresses(struct batch *b, struct jit_file *f, const struct jit_cover *c,
			  jit_find_name *find, void *context)
{
	/* batch_name() takes the same pointer for the same name: names alternate between these. */
	char *memory = calloc(2, JIT_WINDOW + 1), *last = memory, *other = memory + JIT_WINDOW + 1;
	int err = memory ? 0 : -ENOMEM;

	for (size_t i = 0; i < b->count && !err && !batch_stopped(b); i++) {
		uint32_t location = b->addresses[i].location;
		uint64_t entry = find_entry(c, i);
		struct jit_name name = { 0 };
		struct profile_line line;

		if (b->budget && b->budget->exceeded)
			break; /* entries that were not read may be newer */
		if (!entry)
			continue;
		err = find(f, entry, b->addresses[i].address, context, &name);
		if (err || !name.size) {
			free(name.file);
			continue;
		}
		if (strlen(last) != name.size || memcmp(last, name.text, name.size) != 0) {
			char *swap = last;

			last = other;
			other = swap;
			memcpy(last, name.text, name.size);
			last[name.size] = '\0';
		}
		if (*last)
			err = batch_name(b, i, last);
		if (!err && *last && name.file) {
			line = (struct profile_line){ .function = b->last_function,
						      .line = name.line };
			err = profile_string(b->p, name.file, &line.file)
				      ?: profile_set_lines(b->p, location, &line, 1);
		}
		free(name.file);
	}
	free(memory);
	return err;
}

/* perf-PID.map: a line "START SIZE NAME" for each function, the numbers hexadecimal. */

/* Moves *line to the name. */
static bool parse_map_line(struct text *line, uint64_t *start, uint64_t *size)
{
	return take_hex(line, start) && take(line, " ") && take_hex(line, size) && take(line, " ");
}

/*
 * The line at `offset`, without its newline. A line longer than a window comes in parts; *ends is
 * true for the last one. Returns its size in the file; 0: there is none, or it is half written.
 */
static size_t read_map_line(struct jit_file *f, uint64_t offset, struct text *line, bool *ends)
{
	size_t wanted = MIN(f->fill, JIT_WINDOW);
	const char *bytes;
	size_t size = read_bytes(f, offset, wanted, &bytes);
	const char *end = memchr(bytes, '\n', size);

	if (!end && size == wanted && wanted < JIT_WINDOW) {
		size = read_bytes(f, offset, JIT_WINDOW, &bytes);
		end = memchr(bytes, '\n', size);
	}
	*line = (struct text){ bytes, end ?: bytes + size };
	*ends = end;
	if (end)
		return end + 1 - bytes;
	return size < JIT_WINDOW ? 0 : size;
}

static int find_map_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
			 struct jit_name *name)
{
	uint64_t start, size;
	struct text line;
	bool ends;

	(void)address;
	(void)context;
	if (!read_map_line(f, entry - 1, &line, &ends) || !ends ||
	    !parse_map_line(&line, &start, &size))
		return 0; /* the file has changed meanwhile */
	name->text = line.at;
	name->size = strnlen(line.at, line.end - line.at);
	return 0;
}

/* Offers the lines that begin at [begin, end). */
static void offer_map_lines(struct jit_file *f, struct jit_cover *c, uint64_t begin, uint64_t end)
{
	bool begins = !begin, ends; /* else the first one is the end of one that begins before */
	uint64_t start, size;
	struct text line;
	size_t length;

	for (uint64_t at = begin ? begin - 1 : 0;
	     at < end && (length = read_map_line(f, at, &line, &ends)); at += length) {
		f->entries++;
		if (begins && ends && parse_map_line(&line, &start, &size))
			offer_entry(c, start, size, at + 1);
		begins = ends;
	}
}

/*
 * Bytes of a map that are read at once, with a line that ends behind them; and for a name, if it is
 * not longer. Bound: pace.
 */
#define MAP_PART (BUFFER - JIT_WINDOW)
#define MAP_NAME ((size_t)4096)

/*
 * From the end on: later lines are right where they contradict earlier ones, and what runs now was
 * more likely compiled lately. So where the budget ends, what was read is right. Half of it is for
 * the names.
 */
static int resolve_map(struct batch *b, struct jit_file *f, struct jit_cover *c)
{
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID), most = MAP_MAX, until_ns = UINT64_MAX;

	if (b->budget && b->budget->bytes / 2 < most)
		most = b->budget->bytes / 2;
	if (b->budget)
		until_ns = b->budget->until_ns > now ? now + (b->budget->until_ns - now) / 2 : now;
	f->limit = f->begin = f->source.size;
	most = f->limit > most ? f->limit - most : 0;
	do {
		uint64_t end = f->begin;

		f->begin = end - most > MAP_PART ? end - MAP_PART : most;
		offer_map_lines(f, c, f->begin, end);
	} while (f->begin > most && f->entries < ENTRIES_MAX && !batch_stopped(b) &&
		 clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns);
	f->fill = MAP_NAME;
	return name_addresses(b, f, c, find_map_name, NULL);
}

/* jit-PID.dump, in the machine's byte order: tools/perf/Documentation/jitdump-specification.txt */

#define DUMP_MAGIC   "DTiJ" /* 0x4A695444 as little-endian machines write it */
#define DUMP_VERSION 1

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

/*
 * Bytes of source lines read of a function.
 * Bound: users: bytes of a function's source lines in a dump; then: later addresses have none;
 * again: never; share: the function's own; seen: not seen.
 */
#define LINES_MAX ((uint64_t)1024 * 1024)

/* Records between a function's source lines and its load: unwinding information, other threads'. */
#define RECORDS_BETWEEN 16

static bool read_exactly(struct jit_file *f, uint64_t offset, void *to, size_t size)
{
	const char *bytes;

	if (read_bytes(f, offset, size, &bytes) < size)
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

ORDER(by_index, struct moved, LEAST(index))

static struct moved *find_moved(const struct moves *moves, uint64_t index)
{
	struct moved key = { .index = index };

	return bsearch(&key, moves->moved, moves->count, sizeof(key), by_index);
}

/*
 * Collects the moves that cover an address, each function once, and finds the load records of
 * these, from the first record on.
 */
static int collect_moves(struct batch *b, struct jit_file *f, const struct jit_cover *c,
			 uint64_t first, struct moves *moves)
{
	struct record record;
	struct load load;
	struct move move;
	size_t kept = 0;

	moves->moved = calloc(c->count + 1, sizeof(*moves->moved));
	if (!moves->moved)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++) {
		uint64_t entry = find_entry(c, i);

		if (entry && read_exactly(f, entry - 1, &move, sizeof(move)) &&
		    move.record.id == CODE_MOVE)
			moves->moved[moves->count++].index = move.index;
	}
	qsort(moves->moved, moves->count, sizeof(*moves->moved), by_index);
	for (size_t i = 0; i < moves->count; i++)
		if (!i || moves->moved[i].index != moves->moved[kept - 1].index)
			moves->moved[kept++] = moves->moved[i];
	moves->count = kept;
	for (uint64_t at = first, count = 1; kept && at < f->limit && read_record(f, at, &record) &&
					     (count % 65536 || !batch_stopped(b));
	     at += record.size, count++) {
		struct moved *moved = NULL;

		if (record.id == CODE_LOAD && read_exactly(f, at, &load, sizeof(load)))
			moved = find_moved(moves, load.index);
		if (moved)
			moved->load = at;
	}
	return 0;
}

/*
 * The function named last. Addresses come sorted, so that its source lines are read once, however
 * many addresses it has.
 */
struct function {
	const struct moves *moves;
	uint64_t entry; /* 0: none yet */
	char *name;	/* NULL: none */
	uint64_t at;	/* offset of the next source line */
	uint64_t limit; /* offset of the end of the lines */
	uint64_t left;	/* how many lines are left until there */
	uint32_t line;	/* the line before; 0: none */
	char *file;	/* of that line; NULL: unknown */
};

/* Advances to the last source line at or before the address. */
static int find_line(struct jit_file *f, uint64_t address, struct function *function)
{
	struct debug_line line;
	const char *bytes;
	size_t size;

	while (function->left && function->at < function->limit &&
	       read_exactly(f, function->at, &line, sizeof(line)) && line.address <= address) {
		if (f->lines++ >= ENTRIES_MAX) {
			f->many_lines = true;
			break;
		}
		size = read_bytes(f, function->at + sizeof(line), JIT_WINDOW, &bytes);
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
			moved = NULL;
			if (read_exactly(f, at, &move, sizeof(move)))
				moved = find_moved(moves, move.index);
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
	struct debug_info lines;
	struct record record;
	const char *text;
	size_t size;

	end_function(function);
	function->entry = entry;
	if (at > entry - 1 && read_exactly(f, entry - 1, &lines, sizeof(lines))) {
		size = MIN(lines.record.size, LINES_MAX);
		function->at = entry - 1 + sizeof(lines);
		function->limit = entry - 1 + size;
		function->left = lines.count;
	}
	if (!at || !read_record(f, at, &record) || record.id != CODE_LOAD ||
	    record.size < sizeof(struct load))
		return 0;
	size = record.size - sizeof(struct load);
	size = read_bytes(f, at + sizeof(struct load), MIN(size, JIT_WINDOW), &text);
	function->name = strndup(text, size);
	return function->name ? 0 : -ENOMEM;
}

static int find_dump_name(struct jit_file *f, uint64_t entry, uint64_t address, void *context,
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

static int resolve_dump(struct batch *b, struct jit_file *f, struct jit_cover *c)
{
	struct file_header header;
	struct moves moves = { 0 };
	struct function function = { .moves = &moves };
	struct debug_info info;
	struct record record;
	struct load load;
	struct move move;
	uint64_t lines = 0; /* the entry of source lines for the next load; 0: none */
	int err;

	if (!read_exactly(f, 0, &header, sizeof(header)) || header.version != DUMP_VERSION ||
	    header.size < sizeof(header)) {
		error_set(&b->why, 0, "its jit-PID.dump has no header of version %d", DUMP_VERSION);
		return 0;
	}
	for (uint64_t at = header.size; read_record(f, at, &record); at += record.size) {
		if (at >= f->limit)
			break;
		if (f->entries++ >= ENTRIES_MAX) {
			f->many_entries = true;
			f->limit = at;
			break;
		}
		if (f->entries % 65536 == 0 && batch_stopped(b))
			break;
		if (record.id == CODE_DEBUG_INFO) {
			lines = at + 1;
		} else if (record.id == CODE_LOAD && read_exactly(f, at, &load, sizeof(load))) {
			if (lines && read_exactly(f, lines - 1, &info, sizeof(info)) &&
			    info.address != load.address)
				lines = 0;
			offer_entry(c, load.address, load.code_size, lines ?: at + 1);
			lines = 0;
		} else if (record.id == CODE_MOVE && read_exactly(f, at, &move, sizeof(move))) {
			offer_entry(c, move.address, move.code_size, at + 1);
		}
	}
	err = collect_moves(b, f, c, header.size, &moves)
		      ?: name_addresses(b, f, c, find_dump_name, &function);
	end_function(&function);
	free(moves.moved);
	return err;
}

/* Warns of what was not read of the file. */
static int warn_of_budgets(const struct batch *b, const struct jit_file *f)
{
	const struct profile_image *image = &b->p->images[b->image];
	int err = 0;

	if (f->begin)
		err = profile_warn(
			b->p,
			"%s: its file of names has %" PRIu64 " MiB, of which the last %" PRIu64
			" were read: functions that were compiled before have no name",
			image->path, f->source.size >> 20, (f->source.size - f->begin) >> 20);
	if (!err && f->many_entries)
		err = profile_warn(
			b->p,
			"%s: its file of names has more than %" PRIu64
			" entries: the rest was not read, and functions may have no name "
			"or an outdated one",
			image->path, ENTRIES_MAX);
	else if (!err && f->large)
		err = profile_warn(b->p,
				   "%s: its file of names is larger than %" PRIu64
				   " MiB: the rest was not read, and functions may have no name or "
				   "an outdated one",
				   image->path, f->limit >> 20);
	if (!err && f->many_lines)
		err = profile_warn(b->p,
				   "%s: its file of names has more than %" PRIu64
				   " source lines for the samples: some were not read",
				   image->path, ENTRIES_MAX);
	return err;
}

int jit_resolve_from(struct batch *b, int fd)
{
	struct jit_file f = { .source = { .fd = fd }, .fill = BUFFER, .limit = DUMP_MAX };
	struct jit_cover c = { .addresses = b->addresses, .count = b->count };
	size_t size = strlen(DUMP_MAGIC);
	struct stat status;
	const char *magic;
	bool is_dump;
	int err = -ENOMEM;

	if (fstat(fd, &status))
		return 0;
	if (!batch_begin_reading(b, fd))
		return batch_end_reading(b);
	f.source.size = status.st_size;
	f.source.budget = b->budget;
	batch_sort(b);
	f.buffer = malloc(BUFFER);
	c.tree = calloc(b->count + 1, 2 * sizeof(*c.tree));
	if (f.buffer && c.tree) {
		is_dump = read_bytes(&f, 0, size, &magic) == size &&
			  memcmp(magic, DUMP_MAGIC, size) == 0;
		f.large = is_dump && f.source.size > f.limit;
		err = is_dump ? resolve_dump(b, &f, &c) : resolve_map(b, &f, &c);
		err = err ?: warn_of_budgets(b, &f) ?: batch_end_reading(b);
	}
	free(f.buffer);
	free(c.tree);
	return err;
}

int jit_resolve(struct batch *b)
{
	const struct profile_image *image = &b->p->images[b->image];
	size_t kept = 0;

	/* image->unnamed: why the file was refused when it was opened. */
	b->unwritten = !image->unnamed;
	error_set(&b->why, 0, "%s", image->unnamed ?: jit_no_names);
	if (b->extents)
		return 0;
	for (size_t i = 0; i < b->count; i++) /* those without a name */
		if (!b->p->locations[b->addresses[i].location].line_count)
			b->addresses[kept++] = b->addresses[i];
	b->count = kept;
	if (image->fd < 0 || !b->count)
		return 0;
	b->unwritten = true;
	error_set(&b->why, 0, "its file of names, perf-PID.map or jit-PID.dump, has none for it");
	return b->o.parser ? parser_resolve(b, image->fd, true) : jit_resolve_from(b, image->fd);
}
