// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/image_name.h"
#include "symbol/batch.h"
#include "symbol/cover.h"
#include "symbol/file_cache.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/elf_header.h"
#include "util/file.h"

/*
 * The kernel's symbols have no sizes: without this limit, the last function of a module would cover
 * the addresses after it, such as those of an unloaded module.
 * Bound: format.
 */
#define FUNCTION_MAX (1024 * 1024)

#define PAGE 4096ULL

/*
 * 500,000 symbols take 25 MB.
 * Bound: machine: bytes of /proc/kallsyms; then: the command fails for want of memory; again:
 * never; share: none; seen: in an error.
 */
#define KALLSYMS_MAX ((size_t)1024 * 1024 * 1024)

/*
 * Modules are loaded and unloaded.
 * Bound: machine: time that the kernel's symbols are kept; then: they are read again; again: at
 * once; share: none; seen: not seen, but as CPU time.
 */
#define KEEP_NS (60 * NS_PER_S)

/* Bound: as KEEP_NS. */
struct symbol_cache {
	char *text;
	struct cover_symbol *symbols;
	size_t count, room;
	bool readable;	/* some address is not 0 */
	uint64_t start; /* of _text */
	uint64_t read_ns;
	struct file_cache *files; /* read_symbols() leaves it */
};

/*
 * Reads the whole file into *text, to be free()d, and appends two '\0'. It is read at once, because
 * the kernel generates it while it is read, and modules may be loaded meanwhile.
 */
static int read_all(int fd, char **text, size_t *size)
{
	size_t room = 0;

	*text = NULL;
	*size = 0;
	for (;;) {
		ssize_t n;

		if (*size > KALLSYMS_MAX || array_reserve(text, &room, *size + 128 * 1024, 1))
			return -ENOMEM;
		n = read(fd, *text + *size, room - *size - 2);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*size += n;
	}
	(*text)[*size] = (*text)[*size + 1] = '\0';
	return 0;
}

/*
 * Parses "ADDRESS TYPE NAME\t[MODULE]" and terminates NAME with a '\0'; see module_of(). Data
 * symbols are kept, with function == false: they end the function before them.
 */
static bool parse_line(char *line, struct cover_symbol *symbol)
{
	char *end, *name, type;

	*symbol = (struct cover_symbol){ .start = strtoull(line, &end, 16) };
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return false;
	type = end[1];
	name = end + 3;
	name[strcspn(name, " \t")] = '\0';
	if (!*name || *name == '$' || type == 'a' || type == 'A')
		return false;
	if (__builtin_add_overflow(symbol->start, FUNCTION_MAX, &symbol->limit))
		symbol->limit = UINT64_MAX;
	symbol->name = name;
	symbol->function = strchr("tTwW", type) != NULL;
	symbol->binding = type == 'T' ? COVER_GLOBAL : type == 't' ? COVER_LOCAL : COVER_WEAK;
	return true;
}

static void forget_symbols(struct symbol_cache *k)
{
	free(k->text);
	free(k->symbols);
	*k = (struct symbol_cache){ .files = k->files };
}

/* Returns 0 or -ENOMEM. Without symbols b->why says why. */
static int read_symbols(struct symbol_cache *k, struct batch *b, const char *path)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : file_open_kallsyms();
	size_t size;
	int err;

	forget_symbols(k);
	if (fd < 0) {
		error_set(&b->why, -fd, "cannot open /proc/kallsyms");
		return 0;
	}
	err = read_all(fd, &k->text, &size);
	close(fd);
	k->read_ns = now_ns();
	if (err == -ENOMEM)
		return err;
	if (err) {
		error_set(&b->why, -err, "cannot read /proc/kallsyms");
		return 0;
	}
	for (char *line = k->text, *next; line && *line; line = next) {
		struct cover_symbol symbol;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!parse_line(line, &symbol))
			continue;
		if (array_add(k->symbols, k->count, k->room, symbol))
			return -ENOMEM;
		k->readable |= symbol.start != 0;
		if (strcmp(symbol.name, "_text") == 0)
			k->start = symbol.start;
	}
	if (!k->readable)
		error_set(&b->why, 0,
			  "not permitted to read kernel addresses: needs CAP_SYSLOG, and "
			  "`sysctl kernel.kptr_restrict` below 2");
	return 0;
}

struct symbol_cache *symbol_cache_new(void)
{
	struct symbol_cache *cache = calloc(1, sizeof(*cache));

	if (cache)
		cache->files = file_cache_new();
	if (cache && !cache->files) {
		free(cache);
		return NULL;
	}
	return cache;
}

void symbol_cache_free(struct symbol_cache *cache)
{
	if (!cache)
		return;
	forget_symbols(cache);
	file_cache_free(cache->files);
	free(cache);
}

struct file_cache *symbol_cache_files(struct symbol_cache *cache)
{
	return cache->files;
}

/*
 * Moves a location from the kernel's mapping to its module's. A module's extent in memory is not
 * known: its mapping covers the pages with samples. Addresses come sorted; *mapping: that of the
 * address before, or PROFILE_NONE if that is in no module.
 */
static int place_in_module(struct batch *b, size_t i, const char *module, uint32_t *mapping)
{
	uint64_t address = b->addresses[i].address, page = address / PAGE * PAGE;
	uint32_t image;
	int err = profile_add_image(b->p, module, NULL, 0, &image);

	if (err)
		return err;
	if (*mapping == PROFILE_NONE || b->p->mappings[*mapping].image != image) {
		*mapping = PROFILE_NONE;
		for (uint32_t m = 0; m < b->p->mapping_count && *mapping == PROFILE_NONE; m++)
			if (b->p->mappings[m].image == image &&
			    address >= b->p->mappings[m].start && address < b->p->mappings[m].limit)
				*mapping = m;
	}
	if (*mapping == PROFILE_NONE)
		err = profile_add_mapping(b->p, page, page + PAGE, page, image, mapping);
	if (err)
		return err;
	b->p->mappings[*mapping].limit = MAX(b->p->mappings[*mapping].limit, page + PAGE);
	return profile_place_location(b->p, b->addresses[i].location, *mapping);
}

/* The module of a symbol, "[nf_tables]" or "[bpf]"; NULL: it is the kernel's own. */
static const char *module_of(const struct cover_symbol *symbol)
{
	const char *next = symbol->name + strlen(symbol->name) + 1;

	return *next == '[' ? next : NULL;
}

/*
 * Whether a symbol of today is that of address i of an earlier recording. Programs of BPF and
 * modules come and go: theirs must be where the recording had the same module.
 */
static bool is_of_recording(const struct batch *b, size_t i, const char *module)
{
	const struct profile_image *image = profile_location_image(b->p, b->addresses[i].location);

	if (!module)
		return image && image_is_kernel(image->path);
	return image && strcmp(image->path, module) == 0 && strcmp(module, "[bpf]") != 0;
}

static int name_addresses(struct batch *b, const struct symbol_cache *k)
{
	uint64_t shift = b->kernel_text ? b->kernel_text - k->start : 0;
	uint32_t mapping = PROFILE_NONE;
	struct cover c;
	int err;

	batch_sort(b);
	err = cover_init(&c, b->addresses, b->count);
	if (err)
		return err;
	for (size_t i = 0; i < k->count && (i % 65536 || !batch_stopped(b)); i++) {
		struct cover_symbol symbol = k->symbols[i];

		/* In another boot the kernel is elsewhere as a whole; modules are anywhere. */
		if (shift && module_of(&symbol))
			continue;
		symbol.start += shift;
		symbol.limit += shift;
		cover_offer(&c, &symbol);
	}
	if (!b->stopped) {
		error_set(&b->why, 0, "no kernel symbol covers it");
		cover_settle(&c);
	}
	for (size_t i = 0; !b->stopped && !err && i < b->count; i++) {
		const struct cover_symbol *symbol = cover_find(&c, i);
		const char *module = symbol ? module_of(symbol) : NULL;

		if (symbol && b->kernel_text && !is_of_recording(b, i, module))
			continue;
		if (symbol && symbol->function)
			err = batch_name(b, i, symbol->name);
		else
			module = NULL;
		if (!module)
			mapping = PROFILE_NONE;
		else if (!err)
			err = place_in_module(b, i, module, &mapping);
	}
	cover_free(&c);
	return err;
}

int kallsyms_resolve_from(struct batch *b, const char *path)
{
	/*
	 * Windows do not share them: they would be too old, and take 20 MB until the next window.
	 */
	struct symbol_cache own = { 0 }, *k = b->o.cache && !b->limits ? b->o.cache : &own;
	int err = 0;

	if (!k->readable || now_ns() - k->read_ns > KEEP_NS)
		err = read_symbols(k, b, path);
	if (!err && k->readable)
		err = name_addresses(b, k);
	forget_symbols(&own);
	return err;
}

size_t kallsyms_build_id(uint8_t bytes[static PROFILE_BUILD_ID_MAX])
{
	/* The notes are as in an ELF file of this machine. */
	struct elf_header h = { .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };
	const uint8_t *id = NULL;
	char notes[4096];
	size_t size = 0;
	ssize_t n = file_read_text(AT_FDCWD, "/sys/kernel/notes", notes, sizeof(notes));

	if (n > 0)
		id = elf_find_build_id(&h, notes, n, 4, &size);
	if (!id || size > PROFILE_BUILD_ID_MAX)
		return 0;
	memcpy(bytes, id, size);
	return size;
}

int kallsyms_resolve(struct batch *b)
{
	return kallsyms_resolve_from(b, NULL);
}
