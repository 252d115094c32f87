// SPDX-License-Identifier: GPL-2.0-only
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "symbol/batch.h"
#include "symbol/cfi/cfi.h"
#include "symbol/cover.h"
#include "symbol/demangle.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/elf/debug_file.h"
#include "symbol/elf/debuginfod.h"
#include "symbol/elf_file.h"
#include "symbol/file_cache.h"
#include "symbol/go_table.h"
#include "symbol/jit.h"
#include "symbol/parser.h"
#include "symbol/section.h"
#include "symbol/symbol.h"
#include "symbol/symbol_table.h"
#include "util/file.h"
#include "util/order.h"
#include "util/proc_maps.h"

/* --- The PLT --- */

/*
 * Bound: files: sections of PLTs, and bytes of each; then: entries beyond have no names; seen: as
 * code without symbols.
 */
#define SECTIONS_MAX 4 /* .plt, .plt.got, .plt.sec, .plt.bnd */
#define BYTES_MAX    ((size_t)64 * 1024 * 1024)
#define NAME_SIZE    4096 /* longer names are truncated */

/* An address in a stub. */
struct stub {
	uint64_t slot;	   /* the GOT slot that the stub jumps through; 0: unknown */
	uint32_t location; /* PROFILE_NONE: named already */
};

/* A section of stubs. */
struct plt {
	const struct elf_range *range;
	const uint8_t *code;
	size_t size;
	uint64_t entry; /* a stub's size as the section's header has it */
};

/* x86-64: the operand of "jmp *DISTANCE(%rip)", which may follow endbr64. */
static uint64_t x86_slot(const struct plt *plt, uint64_t address)
{
	uint64_t size = plt->entry == 8 ? 8 : 16, start = plt->range->start,
		 at = (address - start) / size * size;
	uint32_t distance;

	for (; at + 6 <= plt->size && size >= 6; at++, size--) {
		const uint8_t *code = plt->code + at;

		if (code[0] != 0xff || code[1] != 0x25)
			continue;
		memcpy(&distance, code + 2, sizeof(distance));
		return start + at + 6 + (int32_t)le32toh(distance);
	}
	return 0;
}

static uint32_t instruction_at(const struct plt *plt, uint64_t at)
{
	uint32_t code;

	if (at > plt->size || plt->size - at < sizeof(code))
		return 0;
	memcpy(&code, plt->code + at, sizeof(code));
	return le32toh(code);
}

#define ARM64_BTI   0xd503245f
#define ARM64_STUB  6 /* instructions at most */
#define ARM64_PAGES 21

/* arm64: the operands of "adrp x16, PAGE; ldr x17, [x16, OFFSET]", which may follow bti. */
static uint64_t arm64_slot(const struct plt *plt, uint64_t address)
{
	uint64_t start = plt->range->start, at = (address - start) & ~UINT64_C(3);

	if (instruction_at(plt, at) == ARM64_BTI)
		at += 4;
	for (int i = 0; i < ARM64_STUB; i++, at -= 4) {
		uint32_t page = instruction_at(plt, at), load = instruction_at(plt, at + 4);
		int64_t pages = (page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3);

		if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
			continue;
		pages -= (pages >> (ARM64_PAGES - 1)) << ARM64_PAGES; /* it is signed */
		return ((start + at) & ~UINT64_C(0xfff)) + (pages << 12) + (load >> 10 & 0xfff) * 8;
	}
	return 0;
}

/* Finds the addresses in stubs; `stubs` has room for b->count. Returns their number. */
static size_t find_stubs(const struct batch *b, const struct elf_file *file, struct stub *stubs)
{
	struct dwarf_section code[SECTIONS_MAX] = { 0 };
	struct elf_range ranges[SECTIONS_MAX];
	struct plt plt[SECTIONS_MAX] = { 0 };
	size_t plt_count = elf_plt_ranges(file->elf, ranges, SECTIONS_MAX), count = 0;
	GElf_Ehdr header;
	GElf_Half machine = gelf_getehdr(file->elf, &header) ? header.e_machine : EM_NONE;

	for (size_t i = 0; i < b->count; i++)
		for (size_t j = 0; j < plt_count; j++) {
			const struct batch_address *a = &b->addresses[i];
			uint64_t slot = 0;
			GElf_Shdr section;

			if (a->address < ranges[j].start || a->address >= ranges[j].limit ||
			    batch_is_named(b, i))
				continue;
			if (!plt[j].range &&
			    gelf_getshdr(elf_getscn(file->elf, ranges[j].section), &section) &&
			    section.sh_type != SHT_NOBITS && section.sh_size <= BYTES_MAX) {
				dwarf_section_open_at(&code[j], file, section.sh_offset,
						      section.sh_size);
				plt[j].code = dwarf_section_read(&code[j], 0, section.sh_size,
								 &plt[j].size);
				plt[j].entry = section.sh_entsize;
			}
			plt[j].range = &ranges[j];
			if (plt[j].code && machine == EM_X86_64)
				slot = x86_slot(&plt[j], a->address);
			if (plt[j].code && machine == EM_AARCH64)
				slot = arm64_slot(&plt[j], a->address);
			stubs[count++] = (struct stub){ slot, a->location };
			break;
		}
	for (size_t j = 0; j < plt_count; j++)
		if (plt[j].code)
			dwarf_section_close(&code[j]);
	return count;
}

/* symbol: the stub's target; NULL: unknown. */
static int name_stub(struct batch *b, struct stub *stub, const char *symbol)
{
	char *demangled = symbol ? demangle(symbol) : NULL, name[NAME_SIZE], system_name[NAME_SIZE];
	struct profile_function f = { .name = name, .system_name = system_name, .file = "" };
	struct profile_line line = { 0 };
	int err;

	snprintf(name, sizeof(name), "%.4000s%s", demangled ?: symbol ?: "[plt]",
		 symbol ? "@plt" : "");
	snprintf(system_name, sizeof(system_name), "%.4000s%s", symbol ?: "[plt]",
		 symbol ? "@plt" : "");
	free(demangled);
	err = profile_add_function(b->p, &f, &line.function);
	err = err ?: profile_set_lines(b->p, stub->location, &line, 1);
	stub->location = PROFILE_NONE;
	return err;
}

ORDER(by_slot, struct stub, LEAST(slot))

/* Names a stub by the symbol of this number in the table of symbols that relocations refer to. */
static int name_by_symbol(struct batch *b, struct stub *stub, struct dwarf_section *symbols,
			  struct dwarf_section *strings, bool wide, uint64_t number)
{
	size_t entry = wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const char *name;
	uint64_t offset;

	/* st_name is the first member. */
	if (!dwarf_section_number(symbols, number * entry, 4, &offset))
		return 0;
	name = dwarf_section_string(strings, offset);
	return name && *name ? name_stub(b, stub, name) : 0;
}

/* Names stubs by a section of relocations: these say which symbol the slots point to. */
static int name_by_relocations(struct batch *b, const struct elf_file *file,
			       const GElf_Shdr *section, struct stub *stubs, size_t count)
{
	bool wide = gelf_getclass(file->elf) == ELFCLASS64;
	size_t word = wide ? 8 : 4, entry = 3 * word;
	struct dwarf_section relocations, symbols, strings;
	GElf_Shdr table, names;
	int err = 0;

	if (section->sh_size > BYTES_MAX ||
	    !gelf_getshdr(elf_getscn(file->elf, section->sh_link), &table) ||
	    table.sh_type == SHT_NOBITS ||
	    !gelf_getshdr(elf_getscn(file->elf, table.sh_link), &names))
		return 0;
	dwarf_section_open_at(&relocations, file, section->sh_offset, section->sh_size);
	dwarf_section_open_at(&symbols, file, table.sh_offset, table.sh_size);
	dwarf_section_open_at(&strings, file, names.sh_offset, names.sh_size);
	for (uint64_t at = 0; at + entry <= relocations.size && !err; at += entry) {
		struct dwarf_cursor c = dwarf_section_cursor(&relocations, at, entry);
		uint64_t slot = dwarf_number(&c, word), info = dwarf_number(&c, word),
			 symbol = wide ? ELF64_R_SYM(info) : ELF32_R_SYM(info);
		size_t low = 0;

		if (c.bad)
			break;
		for (size_t high = count; low < high;)
			if (stubs[(low + high) / 2].slot < slot)
				low = (low + high) / 2 + 1;
			else
				high = (low + high) / 2;
		for (; symbol && low < count && stubs[low].slot == slot && !err; low++)
			if (stubs[low].location != PROFILE_NONE)
				err = name_by_symbol(b, &stubs[low], &symbols, &strings, wide,
						     symbol);
	}
	dwarf_section_close(&relocations);
	dwarf_section_close(&symbols);
	dwarf_section_close(&strings);
	return err;
}

/*
 * Names the addresses in the procedure linkage table, which has no symbols, by the targets of its
 * stubs: "memcmp@plt"; "[plt]" if the target is unknown, as on machines other than x86-64 and
 * arm64. Returns 0 or -ENOMEM.
 */
static int plt_name_all(struct batch *b, const struct elf_file *file)
{
	struct stub *stubs = calloc(b->count + 1, sizeof(*stubs));
	size_t count = stubs ? find_stubs(b, file, stubs) : 0;
	int err = stubs ? 0 : -ENOMEM, tables = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr section;

	if (count)
		qsort(stubs, count, sizeof(*stubs), by_slot);
	/* .rela.dyn and .rela.plt */
	while (count && !err && tables < 2 && (scn = elf_nextscn(file->elf, scn)))
		if (gelf_getshdr(scn, &section) && section.sh_type == SHT_RELA) {
			err = name_by_relocations(b, file, &section, stubs, count);
			tables++;
		}
	for (size_t i = 0; i < count && !err; i++)
		if (stubs[i].location != PROFILE_NONE)
			err = name_stub(b, &stubs[i], NULL);
	free(stubs);
	return err;
}

/*
 * Linkers make less than ten.
 * Bound: files: segments of a file; then: further ones are ignored: code there has no names; seen:
 * as code without symbols.
 */
#define SEGMENTS_MAX 256

/*
 * The sources of symbols: the image's file, its separate debug file, its mini debuginfo, and the
 * table that a Go program has for itself.
 */
struct sources {
	struct elf_file main;
	struct elf_file debug;
	struct elf_file mini;
	struct go_table go;
};

/* Why an image of this kind has no file; NULL: it has one. */
static const char *no_file_reason(const char *path)
{
	switch (image_kind(path)) {
	case IMAGE_FILE:
		return NULL;
	case IMAGE_VDSO:
		return "vdso of another process";
	case IMAGE_VSYSCALL:
		return "the vsyscall page has no symbol table";
	default:
		return jit_no_names;
	}
}

/* Returns another descriptor of a regular file, or a negative errno. */
static int duplicate_fd(int fd)
{
	struct stat st;
	int copy;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return copy < 0 ? -errno : copy;
}

/*
 * Opens the file at an image's path. In another root directory than ours only root, the caller and
 * the image's provider may own it. Returns a descriptor or a negative errno.
 */
static int open_by_path(const struct batch *b, const struct profile_image *image, const char *path)
{
	struct stat status;
	int fd = batch_open(b, image->provider, image->root, path, &status);

	if (fd < 0 || image->root < 0 || file_is_of(&status, image->provider))
		return fd;
	close(fd);
	return -EACCES;
}

/*
 * Opens the file of another image that is a copy: this one may have been removed with its
 * container, while the same program runs in others. Returns a descriptor or a negative number.
 */
static int same_code_fd(const struct batch *b)
{
	int fd = -1, tries = 8; /* there may be thousands, all removed */
	uint32_t i = b->image;

	while (b->same_code && fd < 0 && (i = b->same_code[i]) != b->image) {
		const struct profile_image *other = &b->p->images[i];

		if (other->fd >= 0)
			fd = duplicate_fd(other->fd);
		else if (tries-- > 0)
			fd = open_by_path(b, other, other->path);
	}
	return fd;
}

/* Opens the image's file. Returns a descriptor, or a negative number and sets b->why. */
static int image_fd(struct batch *b, const struct profile_image *image, const char *on_disk)
{
	const char *reason = no_file_reason(image->path);
	const uint32_t mapping = b->p->locations[b->addresses[0].location].mapping;
	/* Path or directory are unknown, as they are in a gmon.out. */
	bool is_unknown = image_has_no_directory(image->path) && b->p->mappings[mapping].linked;
	bool is_deleted = on_disk != image->path;
	int fd;

	if (image->fd >= 0) {
		fd = duplicate_fd(image->fd);
	} else if (strcmp(image->path, "[vdso]") == 0 && (!b->p->format || image->build_id_size)) {
		/* It is our own while recording, later only if a build ID proves it. */
		fd = elf_open_vdso();
	} else if (reason && !is_unknown) {
		b->unwritten = reason == jit_no_names;
		return error_set(&b->why, 0, "%s", reason);
	} else {
		fd = b->limits ? -ENOENT : elf_open_cached(image->build_id, image->build_id_size);
		/* After a deleted file only the build ID proves a file of the same name. */
		if (fd < 0)
			fd = is_deleted && !image->build_id_size ? -ENOENT
								 : open_by_path(b, image, on_disk);
		if (fd < 0) {
			int other = same_code_fd(b);

			fd = other >= 0 ? other : fd;
		}
		if (is_deleted && fd == -ENOENT)
			return error_set(&b->why, 0, "file deleted");
	}
	if (fd >= 0)
		return fd;
	if (fd == -ENOENT && is_unknown)
		error_set(&b->why, 0,
			  "the profile does not name its program: give it with --executable FILE");
	else if (fd == -ENOENT || fd == -ENOTDIR)
		error_set(&b->why, 0, "no such file");
	else if (fd == -EINVAL)
		error_set(&b->why, 0, "not a regular file");
	else if (fd == -EACCES || fd == -EPERM)
		error_set(&b->why, 0, "not permitted");
	else
		error_set(&b->why, -fd, "cannot open it");
	return fd;
}

/*
 * Reads the headers of the image's file, whose descriptor it takes over. It must have the image's
 * build ID; sets an unknown one. On failure sets b->why.
 */
static bool open_image(struct batch *b, struct profile_image *image, int fd, struct elf_file *file)
{
	const char *reason = no_file_reason(image->path);

	if (!batch_begin_reading(b, fd)) {
		close(fd);
		return false;
	}
	if (elf_file_open(file, fd, b->budget, &b->why)) {
		if (reason)
			error_set(&b->why, 0, "%s", reason);
		return false;
	}
	if (!image->build_id_size) {
		memcpy(image->build_id, file->build_id, file->build_id_size);
		image->build_id_size = file->build_id_size;
		return true;
	}
	if (elf_has_build_id(file, image->build_id, image->build_id_size))
		return true;
	elf_file_close(file);
	if (!reason)
		reason = image->unopened ? "another build ID"
					 : "another file has its path here (build ID differs)";
	error_set(&b->why, 0, "%s", reason);
	return false;
}

/*
 * Translates addresses in memory to ELF virtual addresses, by the offset in the file: that is right
 * for position-independent, prelinked and fixed files. Drops addresses outside all segments, and
 * those that need no more. Sets the image's class and text.
 */
static void translate_addresses(struct batch *b, Elf *elf)
{
	struct profile_image *image = &b->p->images[b->image];
	uint64_t text_start = UINT64_MAX, text_limit = 0;
	GElf_Phdr segments[SEGMENTS_MAX] = { 0 }; /* PT_LOAD, executable ones first */
	size_t segment_count = 0, kept = 0;
	GElf_Phdr header;

	for (int executable = 1; executable >= 0; executable--)
		for (size_t i = 0;
		     segment_count < SEGMENTS_MAX && elf_next_segment(elf, &i, PT_LOAD, &header);)
			if (!!(header.p_flags & PF_X) == executable)
				segments[segment_count++] = header;
	image->bits = gelf_getclass(elf) == ELFCLASS32 ? 32 : 64;
	for (size_t i = 0; i < segment_count && segments[i].p_flags & PF_X; i++) {
		uint64_t start = segments[i].p_vaddr, limit = start + segments[i].p_filesz;

		text_start = MIN(start, text_start);
		text_limit = MAX(limit, text_limit);
	}
	if (text_start < text_limit) {
		image->text_start = text_start;
		image->text_size = text_limit - text_start;
	}
	/*
	 * A linked mapping has ELF virtual addresses: sets its offset in the file, so that it is
	 * like any other. It may span several segments; the first one that it meets decides.
	 */
	for (size_t i = 0; i < b->p->mapping_count; i++) {
		struct profile_mapping *m = &b->p->mappings[i];

		for (size_t j = 0; j < segment_count && m->linked && m->image == b->image; j++) {
			const GElf_Phdr *s = &segments[j];

			if (s->p_vaddr >= m->limit || s->p_vaddr + s->p_filesz <= m->start)
				continue;
			if (s->p_vaddr > s->p_offset && m->start < s->p_vaddr - s->p_offset)
				m->start = s->p_vaddr - s->p_offset; /* the file's beginning */
			m->offset = m->start - (s->p_vaddr - s->p_offset);
			m->linked = false;
		}
	}
	for (size_t i = 0; i < b->count; i++) {
		struct batch_address swap = b->addresses[i];
		struct profile_location *l = &b->p->locations[swap.location];
		const struct profile_mapping *m = &b->p->mappings[l->mapping];
		uint64_t offset = l->address - m->start + m->offset;
		const GElf_Phdr *s = segments, *end = segments + segment_count;

		while (s < end && (offset < s->p_offset || offset - s->p_offset >= s->p_filesz))
			s++;
		if (s == end)
			continue;
		l->image_address = offset - s->p_offset + s->p_vaddr;
		/* It has a name, and its lines if they are wanted. */
		if (!b->extents && profile_is_named(b->p, swap.location) &&
		    (!b->o.lines || l->line_count > 1 || b->p->lines[l->first_line].line))
			continue;
		b->addresses[i] = b->addresses[kept];
		b->addresses[kept] = swap;
		b->addresses[kept++].address = l->image_address;
	}
	b->count = kept;
}

/*
 * Offers the image's symbols. .symtab has all; strip(1) may have moved it to a debug file. Without
 * it, .dynsym has the exported functions, and mini debuginfo those that are not in .dynsym.
 */
static int offer_symbols(struct batch *b, struct cover *c, struct sources *s, const char *path)
{
	const struct profile_image *image = &b->p->images[b->image];
	const char *hint = "";
	size_t functions = 0, exported = 0;
	int err;

	if (image_kind(image->path) == IMAGE_FILE)
		hint = SYMBOL_DEBUG_HINT;
	err = symbol_table_offer(b, c, &s->main, SHT_SYMTAB, &functions);
	if (functions && b->kept)
		b->kept->of_itself = true;
	if (!err && !functions &&
	    debug_file_find(&s->main, image->root, path, b->checksum_bytes, &s->debug))
		err = symbol_table_offer(b, c, &s->debug, SHT_SYMTAB, &functions);
	if (!err && !functions && debug_data_unpack(&s->main, &s->mini))
		err = symbol_table_offer(b, c, &s->mini, SHT_SYMTAB, &functions);
	if (!err && !functions && debuginfod_find(b, &s->debug))
		err = symbol_table_offer(b, c, &s->debug, SHT_SYMTAB, &functions);
	if (!err && !s->debug.elf && (!functions || s->mini.elf))
		err = symbol_table_offer(b, c, &s->main, SHT_DYNSYM, &exported);
	b->exports_only = !functions;
	if (*b->why.what)
		return err;
	if (functions)
		error_set(&b->why, 0, "no symbol covers it");
	else if (s->go.is_unreadable) /* a debug package is rare */
		error_set(&b->why, 0, "stripped, and %s", s->go.why.what);
	else if (s->go.limit)
		error_set(&b->why, 0, "stripped: only functions in Go have names");
	else if (exported)
		error_set(&b->why, 0, "stripped: only exported functions have names%s", hint);
	else
		error_set(&b->why, 0, "stripped: no symbol table%s", hint);
	return err;
}

/* Offers the image's symbols as they were kept, or reads and keeps them. */
static int offer_kept(struct batch *b, struct cover *c, struct sources *s, const char *path)
{
	struct kept_symbols symbols = { 0 };
	int err;

	/* Servers may have better ones. */
	if (b->kept && b->kept->has_symbols && (b->kept->of_itself || !b->debuginfod)) {
		file_cache_offer(b->kept, c);
		b->exports_only = b->kept->exports_only;
		error_set(&b->why, 0, "%s", b->kept->why);
		return 0;
	}
	b->recording = b->kept && !b->kept->has_symbols ? &symbols : NULL;
	err = offer_symbols(b, c, s, path);
	if (!err && b->recording && !b->stopped && !(b->budget && b->budget->exceeded)) {
		file_cache_keep_symbols(symbol_cache_files(b->o.cache), b->kept, &symbols);
		b->kept->exports_only = b->exports_only;
		snprintf(b->kept->why, sizeof(b->kept->why), "%.255s", b->why.what);
	}
	b->recording = NULL;
	kept_symbols_free(&symbols);
	return err;
}

/* The functions that a file's call frame information describes, read when first needed. */
struct described {
	const struct elf_file *file;
	struct cfi_functions functions;
	bool were_read;
};

/* Sets *function to the one around an address, or NULL. Returns 0 or -ENOMEM. */
static int find_described(const struct batch *b, struct described *d, uint64_t address,
			  const struct cfi_function **function)
{
	struct error unused; /* corrupt call frame information is not why symbols are missing */
	int err = 0;

	if (b->kept && b->kept->functions) {
		*function = cfi_functions_find(b->kept->functions, address);
		return 0;
	}
	if (!d->were_read)
		err = cfi_functions_read(&d->functions, d->file, &unused);
	d->were_read = true;
	*function = cfi_functions_find(&d->functions, address);
	return err == -ENOMEM ? err : 0;
}

/* Keeps the functions if they were read to the end, else frees them. */
static void end_described(const struct batch *b, struct described *d)
{
	if (b->kept && d->were_read && !(b->budget && b->budget->exceeded))
		file_cache_keep_functions(symbol_cache_files(b->o.cache), b->kept, &d->functions);
	cfi_functions_free(&d->functions);
}

/*
 * True if the profile has a name for an address: by a start, or a doubtful one. To find these again
 * would take the call frame information of the whole file.
 */
static bool has_some_name(const struct batch *b, size_t i)
{
	return b->p->locations[b->addresses[i].location].line_count;
}

/*
 * Sets the names of all addresses: by symbols, else by the starts of their functions. A symbol
 * without a size, of assembly, names its own function, and not those without a symbol that follow.
 * An address that is in no known function gets the name of such an exported symbol before it with
 * PROFILE_PERHAPS.
 */
static int name_addresses(struct batch *b, const struct cover *c, const struct elf_file *file)
{
	struct described d = { .file = file };
	int err = 0;

	for (size_t i = 0; !err && i < b->count; i++) {
		const struct cover_symbol *symbol = cover_find(c, i);
		const struct cfi_function *function = NULL;
		const char *name;
		bool named;
		char *text;

		if (!symbol || batch_is_named(b, i))
			continue;
		named = symbol->sized || b->addresses[i].address == symbol->start;
		if (!named && b->exports_only && has_some_name(b, i))
			continue;
		if (!named)
			err = find_described(b, &d, b->addresses[i].address, &function);
		/* Only a table of all symbols says that there is a label within a function. */
		if (!named && function)
			named = symbol->start == function->start ||
				(!b->exports_only && symbol->start > function->start);
		else if (!named)
			named = !b->exports_only;
		if (!err && named) {
			err = batch_name(b, i, symbol->name);
		} else if (!err && !function) {
			if (asprintf(&text, "%s" PROFILE_PERHAPS, symbol->name) < 0) {
				err = -ENOMEM;
				break;
			}
			err = profile_string(b->p, text, &name) ?: batch_name(b, i, name);
			free(text);
		}
	}
	err = err ?: plt_name_all(b, file);
	for (size_t i = 0; !err && i < b->count; i++) {
		const struct cfi_function *function = NULL;

		if (!batch_is_named(b, i) && !has_some_name(b, i))
			err = find_described(b, &d, b->addresses[i].address, &function);
		if (function && !err)
			err = batch_name_by_start(b, i, function->start);
	}
	end_described(b, &d);
	return err;
}

/*
 * A program without a build ID (Go's have none of GNU's) may have been rebuilt after the recording:
 * drops addresses whose names have changed, so that they get no wrong lines. Returns 0 or -ENOMEM.
 */
static int drop_unproven(struct batch *b, const struct cover *c)
{
	size_t kept = 0, count = b->count;

	if (!b->o.lines || b->proven)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const struct profile_location *l = &b->p->locations[b->addresses[i].location];
		const struct cover_symbol *symbol = cover_find(c, i);
		const struct profile_function *named = NULL;

		if (symbol && batch_is_named(b, i))
			named = &b->p->functions[b->p->lines[l->first_line].function];
		if (!named || batch_is_name(named->system_name, symbol->name))
			b->addresses[kept++] = b->addresses[i];
	}
	b->count = kept;
	if (kept == count)
		return 0;
	return profile_warn(b->p,
			    "%s: without a build ID only function names show that it is the "
			    "profiled file, and some differ: some source lines are missing",
			    b->p->images[b->image].path);
}

/*
 * Sets all names, or extents: of Go's functions by Go's own table, of others by symbol tables, else
 * by frame description entries.
 */
static int resolve_symbols(struct batch *b, struct sources *s, const char *path)
{
	struct cover c;
	bool all;
	int err = cover_init(&c, b->addresses, b->count);

	if (err)
		return err;
	go_table_open(&s->go, &s->main, b->o.lines);
	err = go_table_offer(&s->go, b, &c, &all);
	b->excluded_start = s->go.start;
	b->excluded_limit = s->go.limit;
	if (!err && !all)
		err = offer_kept(b, &c, s, path);
	cover_settle(&c);
	if (b->budget && b->budget->exceeded) {
		cover_free(&c); /* symbols that were not read could be the right ones */
		return err;
	}
	if (!err && b->extents) {
		struct described d = { .file = &s->main };

		for (size_t i = 0; !err && i < b->count; i++) {
			struct symbol_extent *extent = &b->extents[b->addresses[i].location];
			const struct cover_symbol *symbol = cover_find(&c, i);
			const struct cfi_function *function = NULL;

			if (symbol)
				*extent = (struct symbol_extent){ symbol->start, symbol->limit };
			if (!symbol || !symbol->sized)
				err = find_described(b, &d, b->addresses[i].address, &function);
			if (function && (!symbol || symbol->start <= function->start))
				*extent =
					(struct symbol_extent){ function->start, function->limit };
		}
		end_described(b, &d);
	} else if (!err && !b->stopped) {
		err = name_addresses(b, &c, &s->main) ?: drop_unproven(b, &c);
	}
	cover_free(&c);
	return err;
}

static int resolve_from(struct batch *b, struct sources *s, const char *path)
{
	int root = b->p->images[b->image].root, err;

	translate_addresses(b, s->main.elf);
	if (!b->count) {
		error_set(&b->why, 0, "no symbol covers it");
		return 0;
	}
	batch_sort(b);
	err = resolve_symbols(b, s, path);
	if (err || !b->o.lines || b->stopped)
		return err;
	if (dwarf_is_in(&s->main))
		err = dwarf_resolve(b, &s->main, root, path);
	else if (s->debug.elf ||
		 debug_file_find(&s->main, root, path, b->checksum_bytes, &s->debug) ||
		 debuginfod_find(b, &s->debug))
		err = dwarf_resolve(b, &s->debug, root, path);
	if (!err && !b->stopped)
		err = go_table_lines(&s->go, b);
	return err;
}

int elf_resolve_from(struct batch *b, int fd)
{
	struct profile_image *image = &b->p->images[b->image];
	struct sources s = { .main.source.fd = -1, .debug.source.fd = -1, .mini.source.fd = -1 };
	const char *on_disk; /* its path without " (deleted)" */
	int err = profile_string_n(b->p, image->path, proc_path_size(image->path), &on_disk);

	b->proven = image->build_id_size > 0;
	b->was_read = open_image(b, image, fd, &s.main);
	if (b->was_read && !err)
		err = resolve_from(b, &s, on_disk);
	err = err ?: batch_end_reading(b);
	go_table_close(&s.go);
	elf_file_close(&s.mini);
	elf_file_close(&s.debug);
	elf_file_close(&s.main);
	return err;
}

int elf_resolve(struct batch *b)
{
	const struct profile_image *image = &b->p->images[b->image];
	bool is_known = image->build_id_size > 0;
	const char *on_disk;
	int fd, err = profile_string_n(b->p, image->path, proc_path_size(image->path), &on_disk);

	if (err)
		return err;
	if (image->fd < 0 && image->unopened && !is_known) {
		/* What its path leads to now may be another file. */
		error_set(&b->why, 0, "%s", image->unopened);
		return 0;
	}
	fd = image_fd(b, image, on_disk);
	/* Only this process asks servers. Recordings, alone, have no linked mapping. */
	if (fd >= 0 && b->o.parser && !b->debuginfod && !b->extents &&
	    !b->p->mappings[b->p->locations[b->addresses[0].location].mapping].linked) {
		err = parser_resolve(b, fd, false);
		close(fd);
	} else if (fd >= 0) {
		err = elf_resolve_from(b, fd);
	}
	/* Its path was looked up in our root directory, as its own is unknown. */
	if (!b->was_read && image->fd < 0 && image->unopened && is_known && !b->is_unread) {
		struct error here = b->why;

		error_set(&b->why, 0, "%s; by its path, now: %s", image->unopened, here.what);
	}
	return err;
}
