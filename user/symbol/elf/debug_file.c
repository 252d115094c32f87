// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf/debug_file.h"

#include <libgen.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "util/array.h"

/* Real .gnu_debugdata has up to 10 MB and expands 5 times; xz can expand data 7000 times. */
#define PACKED_MAX   ((size_t)64 * 1024 * 1024)
#define UNPACKED_MAX ((size_t)256 * 1024 * 1024)
#define DECODER_MAX  ((uint64_t)128 * 1024 * 1024)

/* What proves that a debug file belongs to a stripped one. */
struct proof {
	int stripped; /* the stripped file */
	int root;     /* the directory to resolve paths in; -1: the own root */
	const uint8_t *build_id;
	size_t build_id_size;
	uint32_t crc; /* of the whole debug file; when there is no build ID */
	uint64_t *checksum_bytes;
};

static bool checksum_is(int fd, uint32_t expected, uint64_t *checksum_bytes)
{
	uint8_t bytes[64 * 1024];
	uint32_t crc = 0;
	off_t offset = 0;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || (uint64_t)st.st_size > *checksum_bytes)
		return false;
	*checksum_bytes -= st.st_size;
	while (offset < st.st_size && (n = pread(fd, bytes, sizeof(bytes), offset)) > 0) {
		crc = crc32(crc, bytes, n);
		offset += n;
	}
	return offset == st.st_size && crc == expected;
}

static bool is_proven(const struct elf_file *debug, const struct proof *proof)
{
	return proof->build_id_size
		       ? elf_has_build_id(debug->elf, proof->build_id, proof->build_id_size)
		       : checksum_is(debug->fd, proof->crc, proof->checksum_bytes);
}

static bool try_path(const char *path, const struct proof *proof, struct elf_file *debug)
{
	struct error ignored;
	int fd = elf_open_companion(proof->stripped, proof->root, path);
	GElf_Shdr section;

	if (fd < 0 || elf_file_open(debug, fd, &ignored))
		return false;
	if (elf_find_type(debug->elf, SHT_SYMTAB, &section) && is_proven(debug, proof))
		return true;
	elf_file_close(debug);
	return false;
}

static bool find_by_build_id(const struct proof *proof, struct elf_file *debug)
{
	char path[ELF_DEBUG_PATH_SIZE];

	return elf_debug_path(proof->build_id, proof->build_id_size, path) &&
	       try_path(path, proof, debug);
}

/* Reads .gnu_debuglink: the name and, at the next multiple of 4, the checksum. NULL: none. */
static const char *debug_link(Elf *stripped, uint32_t *crc)
{
	Elf_Data *data = elf_section_bytes(stripped, ".gnu_debuglink", PATH_MAX);
	Elf_Data from = { .d_type = ELF_T_WORD, .d_size = 4, .d_version = EV_CURRENT };
	Elf_Data to = from;
	char *name = data ? data->d_buf : NULL;
	size_t at;

	if (!name)
		return NULL;
	at = (strnlen(name, data->d_size) + 4) / 4 * 4;
	if (at + from.d_size > data->d_size || !*name || strchr(name, '/'))
		return NULL;
	from.d_buf = name + at;
	to.d_buf = crc;
	if (!gelf_xlatetom(stripped, &to, &from, elf_getident(stripped, NULL)[EI_DATA]))
		return NULL;
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
		.stripped = stripped->fd,
		.root = root,
		.checksum_bytes = checksum_bytes,
	};
	const char *link = debug_link(stripped->elf, &proof.crc);

	proof.build_id_size = elf_build_id(stripped->elf, &proof.build_id);
	if (find_by_build_id(&proof, debug) || (link && find_beside(link, path, &proof, debug)))
		return true;
	proof.root = -1;
	return root >= 0 && find_by_build_id(&proof, debug);
}

/* Decompresses into *memory, to be free()d in any case. Returns the size; 0: corrupt or large. */
static size_t unpack(lzma_stream *xz, uint8_t **memory)
{
	lzma_ret result = LZMA_OK;
	size_t room = 0;

	while (result == LZMA_OK) {
		if (xz->total_out >= UNPACKED_MAX ||
		    array_reserve(memory, &room, xz->total_out + 64 * 1024, 1))
			return 0;
		xz->next_out = *memory + xz->total_out;
		xz->avail_out = room - xz->total_out;
		result = lzma_code(xz, LZMA_FINISH);
	}
	return result == LZMA_STREAM_END ? xz->total_out : 0;
}

bool debug_data_unpack(Elf *stripped, struct elf_file *debug)
{
	Elf_Data *packed = elf_section_bytes(stripped, ".gnu_debugdata", PACKED_MAX);
	lzma_stream xz = LZMA_STREAM_INIT;
	struct error ignored;
	uint8_t *memory = NULL;
	size_t size;

	if (!packed || !packed->d_buf || lzma_stream_decoder(&xz, DECODER_MAX, 0) != LZMA_OK)
		return false;
	xz.next_in = packed->d_buf;
	xz.avail_in = packed->d_size;
	size = unpack(&xz, &memory);
	lzma_end(&xz);
	if (!size) {
		free(memory);
		return false;
	}
	return elf_file_open_memory(debug, memory, size, &ignored) == 0;
}
