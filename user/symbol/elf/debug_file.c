// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf/debug_file.h"

#include <libgen.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "symbol/section.h"
#include "util/array.h"

/*
 * Real .gnu_debugdata has up to 10 MB and expands 5 times; xz can expand data 7000 times.
 * Bound: files: bytes of .gnu_debugdata, packed and unpacked, and what unpacking takes; then: it is
 * not used.
 */
#define PACKED_MAX    ((size_t)64 * 1024 * 1024)
#define UNPACKED_MAX  ((size_t)256 * 1024 * 1024)
#define UNPACKED_STEP ((size_t)64 * 1024)
/* Bound: as PACKED_MAX. */
#define DECODER_MAX ((uint64_t)128 * 1024 * 1024)

/* What proves that a debug file belongs to a stripped one. */
struct proof {
	const struct elf_file *stripped;
	int root;     /* the directory to resolve paths in; -1: the own root */
	uint32_t crc; /* of the whole debug file; when there is no build ID */
	uint64_t *checksum_bytes;
};

static bool checksum_is(const struct elf_source *source, uint32_t expected,
			uint64_t *checksum_bytes)
{
	uint8_t bytes[64 * 1024];
	uint64_t offset = 0;
	uint32_t crc = 0;
	size_t n;

	if (source->size > *checksum_bytes)
		return false;
	*checksum_bytes -= source->size;
	while ((n = elf_source_read(source, bytes, sizeof(bytes), offset))) {
		crc = crc32(crc, bytes, n);
		offset += n;
	}
	return offset == source->size && crc == expected;
}

static bool try_path(const char *path, const struct proof *proof, struct elf_file *debug)
{
	struct error ignored;
	int fd = elf_open_companion(proof->stripped->source.fd, proof->root, path);
	GElf_Shdr section;
	bool is_proven = false;

	if (fd < 0 || elf_file_open(debug, fd, proof->stripped->source.budget, &ignored))
		return false;
	if (elf_find_type(debug->elf, SHT_SYMTAB, &section)) {
		if (proof->stripped->build_id_size)
			is_proven = elf_has_build_id(debug, proof->stripped->build_id,
						     proof->stripped->build_id_size);
		else
			is_proven = checksum_is(&debug->source, proof->crc, proof->checksum_bytes);
	}
	if (!is_proven)
		elf_file_close(debug);
	return is_proven;
}

static bool find_by_build_id(const struct proof *proof, struct elf_file *debug)
{
	char path[ELF_DEBUG_PATH_SIZE];

	return elf_debug_path(proof->stripped->build_id, proof->stripped->build_id_size, path) &&
	       try_path(path, proof, debug);
}

/*
 * Reads .gnu_debuglink: the name, to be free()d, and, at the next multiple of 4, the checksum.
 * NULL: none.
 */
static char *debug_link(const struct elf_file *stripped, uint32_t *crc)
{
	size_t size, at;
	char *name = elf_section_bytes(stripped, ".gnu_debuglink", PATH_MAX, &size);
	struct dwarf_cursor c;

	if (!name)
		return NULL;
	at = (strnlen(name, size) + 4) / 4 * 4;
	if (at + 4 > size || !*name || strchr(name, '/')) {
		free(name);
		return NULL;
	}
	c = (struct dwarf_cursor){
		.at = (const uint8_t *)name + at,
		.end = (const uint8_t *)name + size,
		.big_endian = elf_getident(stripped->elf, NULL)[EI_DATA] == ELFDATA2MSB,
	};
	*crc = dwarf_number(&c, 4);
	return name;
}

static bool find_by_link(const char *link, const char *directory, const struct proof *proof,
			 struct elf_file *debug)
{
	static const char *const formats[] = { "%s/%s", "%s/.debug/%s", ELF_DEBUG_ROOT "%s/%s" };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		int n = snprintf(path, sizeof(path), formats[i], directory, link);

		if (n > 0 && (size_t)n < sizeof(path) && try_path(path, proof, debug))
			return true;
	}
	return false;
}

/* Searches next to the path that was mapped; if that is a link, also next to the file itself. */
static bool find_beside(const char *link, const char *path, const struct proof *proof,
			struct elf_file *debug)
{
	char directory[PATH_MAX], canonical[PATH_MAX];

	if (strlen(path) >= sizeof(directory))
		return false;
	strcpy(directory, path);
	if (find_by_link(link, dirname(directory), proof, debug))
		return true;
	if (proof->root >= 0 || !realpath(path, canonical) || strcmp(path, canonical) == 0)
		return false;
	return find_by_link(link, dirname(canonical), proof, debug);
}

bool debug_file_find(const struct elf_file *stripped, int root, const char *path,
		     uint64_t *checksum_bytes, struct elf_file *debug)
{
	struct proof proof = {
		.stripped = stripped,
		.root = root,
		.checksum_bytes = checksum_bytes,
	};
	char *link = debug_link(stripped, &proof.crc);
	bool found;

	found = find_by_build_id(&proof, debug) || (link && find_beside(link, path, &proof, debug));
	free(link);
	proof.root = -1;
	return found || (root >= 0 && find_by_build_id(&proof, debug));
}

/* Decompresses into *memory, to be free()d in any case. Returns the size; 0: corrupt or large. */
static size_t unpack_xz(lzma_stream *xz, struct read_budget *budget, uint8_t **memory)
{
	lzma_ret result = LZMA_OK;
	size_t room = 0;

	while (result == LZMA_OK) {
		if (xz->total_out >= UNPACKED_MAX || !read_budget_take(budget, 0) ||
		    !read_budget_has_memory(budget, xz->total_out + UNPACKED_STEP) ||
		    array_reserve(memory, &room, xz->total_out + UNPACKED_STEP, 1))
			return 0;
		xz->next_out = *memory + xz->total_out;
		xz->avail_out = room - xz->total_out;
		xz->avail_out = MIN(xz->avail_out, UNPACKED_STEP);
		result = lzma_code(xz, LZMA_FINISH);
	}
	return result == LZMA_STREAM_END ? xz->total_out : 0;
}

bool debug_data_unpack(const struct elf_file *stripped, struct elf_file *debug)
{
	struct read_budget *budget = stripped->source.budget;
	uint64_t decoder = budget && budget->memory < DECODER_MAX ? budget->memory : DECODER_MAX;
	lzma_stream xz = LZMA_STREAM_INIT;
	struct error ignored;
	uint8_t *memory = NULL, *packed;
	size_t packed_size, size = 0;

	packed = elf_section_bytes(stripped, ".gnu_debugdata", PACKED_MAX, &packed_size);
	if (!packed)
		return false;
	if (lzma_stream_decoder(&xz, decoder, 0) == LZMA_OK) {
		xz.next_in = packed;
		xz.avail_in = packed_size;
		size = unpack_xz(&xz, budget, &memory);
	}
	lzma_end(&xz);
	free(packed);
	if (!size) {
		free(memory);
		return false;
	}
	return elf_file_open_memory(debug, memory, size, budget, &ignored) == 0;
}
