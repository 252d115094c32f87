// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for a source of names, FUZZ_FORMAT: "elf" (symbol tables, Go's, build IDs,
 * stubs, compressed symbols), "dwarf" (the same with source lines), "perf_map", "jitdump" and
 * "kallsyms". For any file, the profile remains consistent, and a second look-up finds the same
 * names.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/batch.h"
#include "symbol/jit.h"
#include "symbol/symbol.h"
#include "util/index.h"
#include "whole.h"

#define ADDRESSES 64
#define MEMORY	  0x10000ULL
#define KERNEL	  0xffffffff81000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool is(const char *format)
{
	return strcmp(FUZZ_FORMAT, format) == 0;
}

/* Most of the time goes into new memory when what is freed is kept from use for long. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=16";
}

/*
 * A profile with addresses 16 bytes apart, of which every fourth is a sample's. Those of a program
 * are the file's own: small ones begin at 0x401000 or 0x1000.
 */
static struct profile *new_profile(bool elf)
{
	bool kernel = is("kallsyms");
	const char *path = elf ? "/nowhere/program" : kernel ? "[kernel.kallsyms]" : "[jit 1]";
	uint64_t start = elf ? 0 : kernel ? KERNEL : MEMORY, limit = start + (1 << 24);
	struct profile *p = profile_new();
	struct profile_labels none = { .comm = "" };
	uint32_t image, mapping, location, labels;
	int64_t one = 1;

	if (!p || profile_add_value_type(p, "samples", "count") ||
	    profile_add_image(p, path, NULL, 0, &image) ||
	    profile_add_mapping(p, start, limit, start, image, &mapping) ||
	    profile_add_labels(p, &none, &labels))
		abort();
	p->mappings[mapping].linked = elf;
	for (uint64_t i = 0; i < ADDRESSES; i++) {
		uint64_t address = start + 16 * i + (elf ? (i % 2 ? 0x1000 : 0x401000) : 0);

		if (profile_add_location(p, address, mapping, &location) ||
		    (i % 4 == 0 && profile_add_sample(p, &location, 1, labels, &one)))
			abort();
	}
	return p;
}

/* By a mapping at the file's own addresses. */
static void resolve_elf(struct profile *p, int fd)
{
	struct symbol_options o = { .lines = is("dwarf") };
	struct symbol_extent extents[ADDRESSES] = { 0 };
	struct error e;

	p->images[0].fd = dup(fd);
	if (symbol_resolve(p, &o, &e) || symbol_extents(p, NULL, extents, &e))
		abort();
	for (size_t i = 0; i < ADDRESSES; i++)
		require(extents[i].start <= extents[i].limit, "a function's extent");
}

static void resolve_batch(struct profile *p, int fd)
{
	struct batch_address addresses[ADDRESSES];
	struct batch b = { .p = p, .addresses = addresses, .count = ADDRESSES };
	char path[64];

	for (uint32_t i = 0; i < ADDRESSES; i++)
		addresses[i] = (struct batch_address){ p->locations[i].address, i, 0 };
	if (is("kallsyms")) {
		b.image = PROFILE_NONE;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (kallsyms_resolve_from(&b, path))
			abort();
	} else if (jit_resolve_from(&b, fd)) {
		abort();
	}
}

static uint64_t hash_text(const char *text, uint64_t hash)
{
	return hash_bytes(text, strlen(text), hash);
}

/* Of all names and lines. */
static uint64_t resolve(int fd)
{
	bool elf = is("elf") || is("dwarf");
	struct profile *p = new_profile(elf);
	uint64_t hash = p->warning_count;

	if (elf)
		resolve_elf(p, fd);
	else
		resolve_batch(p, fd);
	check_locations(p);
	check_samples(p);
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		for (uint32_t k = 0; k < l->line_count; k++) {
			const struct profile_line *line = &p->lines[l->first_line + k];

			hash = hash_text(p->functions[line->function].name, hash);
			hash = hash_u64(line->line, hash);
		}
	}
	profile_free(p);
	return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int lowest = dup(0), fd, again;
	uint64_t hash;

	close(lowest);
	fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	hash = resolve(fd);
	if (size % 4 == 0)
		require(resolve(fd) == hash, "names that are the same again");
	close(fd);
	again = dup(0);
	require(again == lowest, "descriptors: one is left open");
	close(again);
	return 0;
}
