// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/cfi/cfi.h"

#include <assert.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/unwind/unwind_rows.h"
#include "script/context.h"
#include "script/language.h"
#include "symbol/cfi/x86_decode.h"
#include "symbol/elf_file.h"
#include "symbol/go_table.h"
#include "symbol/section.h"
#include "symbol/symbol_table.h"
#include "util/array.h"
#include "util/error.h"
#include "util/order.h"
#include "util/radix_sort.h"
#include "util/table.h"

/* --- The sections --- */

/*
 * The records of an ELF file's call frame information (DWARF 5, 6.4; LSB, Exception Frames): one
 * FDE per function, and CIEs with what FDEs have in common. Files are untrusted: each byte is read
 * once, for records cannot overlap, and the size of sections and the number of records are limited.
 */

/* .eh_frame or .debug_frame, as a whole. */
struct cfi_section {
	struct dwarf_section file;
	const uint8_t *bytes;
	size_t size;
	uint64_t address; /* ELF virtual address of its first byte */
	bool eh;	  /* in the format of .eh_frame */
	bool headless;	  /* no section header gives its size: */
	uint64_t fdes;	  /* it ends after that many FDEs; 0: see terminated */
	bool terminated;  /* it ends at the first terminator */
};

struct cfi_cie {
	const struct cfi_section *section;
	uint32_t offset; /* in the section */
	uint32_t instructions, size;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t encoding; /* of addresses */
	uint8_t address_size;
	bool sized;  /* its FDEs have augmentation data, preceded by its size */
	bool signal; /* its FDEs describe signal frames */
};

struct cfi_fde {
	uint64_t start, limit; /* ELF virtual addresses, in an executable segment; never empty */
	uint32_t cie;
	uint32_t instructions, size; /* in the section */
};

/*
 * Linkers make one or two executable segments.
 * Bound: files: executable segments; then: functions in others are ignored; seen: not seen.
 */
#define CFI_CODE_MAX 64

struct cfi_frames {
	struct cfi_fde *fdes; /* sorted by start, then by position in the file; they may overlap */
	size_t fde_count, fde_room;
	struct cfi_cie *cies;
	size_t cie_count, cie_room;

	struct cfi_section sections[2];
	uint64_t room; /* for compressed sections */
	struct elf_range code[CFI_CODE_MAX];
	size_t code_count, last_code;
	size_t first_cie; /* of the section being read */
	bool big_endian, wide;
};

/*
 * The largest browsers have a tenth of each limit.
 * Bound: files: bytes, FDEs and CIEs of call frame information, and of the code that it spans;
 * then: the image has no rows: stacks end in its code; seen: as images without call frame
 * information, with the reason.
 */
#define SECTION_MAX ((uint64_t)128 * 1024 * 1024)
#define FDES_MAX    2000000
#define CIES_MAX    250000
#define SPAN_MAX    ((uint64_t)16 * 1024 * 1024 * 1024)

/*
 * How often the size of a section its records and their rows take in memory, at most.
 * Bound: files: how often its size a section takes in memory; then: less of it is read, or none;
 * seen: as images without call frame information, with the reason.
 */
#define MEMORY_FACTOR 8

/* A cursor over `size` bytes of a section. */
static struct dwarf_cursor cfi_cursor(const struct cfi_frames *f, const struct cfi_section *s,
				      uint32_t offset, uint32_t size)
{
	return (struct dwarf_cursor){
		.at = s->bytes + offset,
		.end = s->bytes + offset + size,
		.big_endian = f->big_endian,
	};
}

/* Reads a number by the format in an encoding. False: unknown format, or DW_EH_PE_omit. */
static bool read_encoded(struct dwarf_cursor *c, uint8_t encoding, uint8_t address_size,
			 uint64_t *value)
{
	static const uint8_t sizes[8] = {
		[DW_EH_PE_udata2] = 2,
		[DW_EH_PE_udata4] = 4,
		[DW_EH_PE_udata8] = 8,
	};
	uint8_t format = encoding & 0x0f, size = sizes[format & 7];

	if (format == DW_EH_PE_absptr)
		size = address_size;
	if (format == DW_EH_PE_uleb128)
		*value = dwarf_uleb(c);
	else if (format == DW_EH_PE_sleb128)
		*value = dwarf_sleb(c);
	else if (size)
		*value = dwarf_number(c, size);
	else
		return false;
	if (size && format & DW_EH_PE_signed)
		*value = (int64_t)(*value << (64 - 8 * size)) >> (64 - 8 * size);
	return true;
}

/* Reads an address, which may be relative to its place in section s. 0 stays 0: no address. */
static bool read_address(const struct cfi_section *s, struct dwarf_cursor *c, uint8_t encoding,
			 uint8_t address_size, uint64_t *address)
{
	uint64_t at = s->address + (c->at - s->bytes);

	if (!read_encoded(c, encoding, address_size, address) || c->bad)
		return false;
	switch (encoding & 0xf0) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		if (*address)
			*address += at;
		break;
	default:
		return false;
	}
	if (address_size == 4)
		*address &= UINT32_MAX;
	return true;
}

/* Reads an address of an FDE. False: the encoding is invalid for an FDE. */
static bool cfi_address(const struct cfi_cie *cie, struct dwarf_cursor *c, uint64_t *address)
{
	return read_address(cie->section, c, cie->encoding, cie->address_size, address);
}

/* Reads augmentation data by its letters. False: an unknown letter has data of unknown size. */
static bool read_augmentation(struct cfi_cie *cie, struct dwarf_cursor *c, const char *letters)
{
	struct dwarf_cursor data = *c;
	uint64_t unused;

	if (*letters == 'z') {
		uint64_t size = dwarf_uleb(c);

		cie->sized = true;
		data = *c;
		dwarf_skip(c, size);
		data.end = c->at;
		letters++;
	}
	for (; *letters; letters++)
		switch (*letters) {
		case 'P': {
			uint8_t encoding = dwarf_number(&data, 1);

			if (encoding != DW_EH_PE_omit &&
			    ((encoding & 0x70) == DW_EH_PE_aligned ||
			     !read_encoded(&data, encoding, cie->address_size, &unused)))
				return false;
			break;
		}
		case 'L':
			dwarf_skip(&data, 1);
			break;
		case 'R':
			cie->encoding = dwarf_number(&data, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* ARM: return addresses are signed with another key */
		case 'G': /* ARM: the stack has memory tags */
			break;
		default:
			return cie->sized && !data.bad;
		}
	if (!cie->sized)
		*c = data;
	return !data.bad;
}

/* Reads a CIE. Skips one of an unknown format, and so its FDEs. */
static int read_cie(struct cfi_frames *f, const struct cfi_section *s, uint32_t offset,
		    struct dwarf_cursor *c, struct error *e)
{
	struct cfi_cie cie = { .section = s, .offset = offset };
	uint8_t version = dwarf_number(c, 1);
	const char *letters = (const char *)c->at;
	const uint8_t *end = memchr(letters, '\0', c->end - c->at);

	if (!end || (version != 1 && version != 3 && version != 4))
		return 0;
	c->at = end + 1;
	cie.address_size = f->wide ? 8 : 4;
	if (version == 4) {
		cie.address_size = dwarf_number(c, 1);
		if (dwarf_number(c, 1)) /* segments */
			return 0;
	}
	if (cie.address_size != 4 && cie.address_size != 8)
		return 0;
	if (strncmp(letters, "eh", 2) == 0) { /* GCC 2: the address of exception tables */
		dwarf_skip(c, cie.address_size);
		letters += 2;
	}
	cie.code_align = dwarf_uleb(c);
	cie.data_align = dwarf_sleb(c);
	cie.return_register = version == 1 ? dwarf_number(c, 1) : dwarf_uleb(c);
	if (!read_augmentation(&cie, c, letters) || c->bad)
		return 0;
	if (f->cie_count == CIES_MAX)
		return error_set(e, 0, "it has more than %d CIEs of call frame information",
				 CIES_MAX);
	cie.instructions = c->at - s->bytes;
	cie.size = c->end - c->at;
	if (array_add(f->cies, f->cie_count, f->cie_room, cie))
		return error_no_memory(e);
	return 0;
}

ORDER_OF_KEY(compare_cie, uint64_t, struct cfi_cie, COMPARE(*a, b->offset))

/* The section's CIE at an offset; NULL: there is none before its FDE. */
static const struct cfi_cie *find_cie(const struct cfi_frames *f, uint64_t offset)
{
	size_t count = f->cie_count - f->first_cie;
	const struct cfi_cie *last;

	if (!count)
		return NULL;
	last = &f->cies[f->cie_count - 1];
	if (last->offset == offset) /* as for nearly all FDEs */
		return last;
	return bsearch(&offset, last + 1 - count, count, sizeof(*last), compare_cie);
}

/*
 * Clips an FDE to its executable segment. False: it is in none. A linker that drops a function
 * keeps its FDE, at 0 or the highest address.
 */
static bool clip_to_code(struct cfi_frames *f, struct cfi_fde *fde)
{
	const struct elf_range *code;

	for (size_t i = 0; fde->start && i < f->code_count; i++) {
		code = &f->code[(f->last_code + i) % f->code_count];
		if (fde->start < code->start || fde->start >= code->limit)
			continue;
		f->last_code = code - f->code;
		fde->limit = MIN(fde->limit, code->limit);
		return true;
	}
	return false;
}

static int read_fde(struct cfi_frames *f, const struct cfi_section *s, uint64_t cie_offset,
		    struct dwarf_cursor *c, struct error *e)
{
	const struct cfi_cie *cie = find_cie(f, cie_offset);
	struct cfi_fde fde = { 0 };
	uint64_t size;

	if (!cie)
		return 0;
	fde.cie = cie - f->cies;
	if (!cfi_address(cie, c, &fde.start) ||
	    !read_encoded(c, cie->encoding, cie->address_size, &size))
		return 0;
	if (cie->sized)
		dwarf_skip(c, dwarf_uleb(c));
	if (c->bad || !size || __builtin_add_overflow(fde.start, size, &fde.limit) ||
	    !clip_to_code(f, &fde))
		return 0;
	if (f->fde_count == FDES_MAX)
		return error_set(e, 0, "it has more than %d FDEs of call frame information",
				 FDES_MAX);
	fde.instructions = c->at - s->bytes;
	fde.size = c->end - c->at;
	if (array_add(f->fdes, f->fde_count, f->fde_room, fde))
		return error_no_memory(e);
	return 0;
}

static int read_records(struct cfi_frames *f, struct cfi_section *s, struct error *e)
{
	struct dwarf_cursor c = cfi_cursor(f, s, 0, s->size);
	bool counted = s->fdes > 0;
	int err = 0;

	f->first_cie = f->cie_count;
	while (!err && c.end - c.at >= 4 && (!counted || s->fdes)) {
		uint32_t offset = c.at - s->bytes;
		struct dwarf_cursor record = c;
		unsigned int offset_size, id_size;
		uint64_t size = dwarf_length(&c, &offset_size), id, id_at;

		if (!size && s->terminated)
			break;
		record.at = c.at;
		dwarf_skip(&c, size);
		if (c.bad && !s->headless)
			return error_set(e, 0,
					 "corrupt %s: its record at 0x%" PRIx32 " is truncated",
					 s->eh ? ".eh_frame" : ".debug_frame", offset);
		record.end = c.at;
		if (!size || c.bad)
			continue;
		id_size = s->eh ? 4 : offset_size; /* of the field that names an FDE's CIE */
		id_at = record.at - s->bytes;
		id = dwarf_number(&record, id_size);
		if (record.bad)
			continue;
		if (id == (s->eh ? 0 : UINT64_MAX >> (64 - 8 * id_size))) {
			err = read_cie(f, s, offset, &record, e);
		} else {
			if (s->fdes)
				s->fdes--;
			err = read_fde(f, s, s->eh ? id_at - id : id, &record, e);
		}
	}
	return err;
}

/* Reads the whole section. */
static int load_section(struct cfi_section *s, const char *name, struct error *e)
{
	struct read_budget *budget = s->file.source.budget;
	uint64_t size = s->file.size, most = SECTION_MAX;

	if (budget && budget->memory / MEMORY_FACTOR < most)
		most = budget->memory / MEMORY_FACTOR;
	if (s->headless && size > most)
		size = most;
	if (size > most)
		return error_set(e, 0, "its %s is larger than %" PRIu64 " MiB", name, most >> 20);
	if (!size)
		return 0;
	s->bytes = dwarf_section_read(&s->file, 0, size, &s->size);
	if (s->bytes && s->size >= size)
		return 0;
	if (budget && budget->exceeded)
		return error_set(e, 0, "its %s is not read: there is too much to read in it", name);
	return error_set(e, 0, "corrupt %s: cannot read it", name);
}

static int open_section(struct cfi_frames *f, struct cfi_section *s, const struct elf_file *file,
			const char *name, struct error *e)
{
	GElf_Shdr section;
	int err;

	if (elf_find_section(file->elf, name, &section))
		s->address = section.sh_addr;
	err = dwarf_section_open(&s->file, file, name, &f->room);
	if (err == -ENOTSUP)
		return error_set(e, 0, "its %s is compressed with zstd, and there is no libzstd",
				 name);
	if (err == -EFBIG)
		return error_set(e, 0, "its %s is larger than %" PRIu64 " MiB", name,
				 SECTION_MAX >> 20);
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (err)
		return error_set(e, 0, "corrupt %s: unknown compression or implausible size", name);
	return load_section(s, name, e);
}

/*
 * Finds .eh_frame in a file without section headers, by .eh_frame_hdr, which has its own segment:
 * that has the address of .eh_frame and the number of its FDEs.
 */
static int open_headless(struct cfi_frames *f, struct cfi_section *s, const struct elf_file *file,
			 struct error *e)
{
	uint8_t bytes[4 + 2 * 8], address_size = f->wide ? 8 : 4;
	struct cfi_section header = { .bytes = bytes };
	struct dwarf_cursor c = { .at = bytes + 4, .big_endian = f->big_endian };
	GElf_Phdr segment;
	size_t first = 0, size;
	uint64_t at;

	if (!elf_next_segment(file->elf, &first, PT_GNU_EH_FRAME, &segment))
		return 0;
	size = elf_source_read(&file->source, bytes, sizeof(bytes), segment.p_offset);
	header.address = segment.p_vaddr;
	c.end = bytes + size;
	if (size < 4 || bytes[0] != 1 ||
	    !read_address(&header, &c, bytes[1], address_size, &s->address))
		return 0;
	if (bytes[2] != DW_EH_PE_omit &&
	    (!read_encoded(&c, bytes[2], address_size, &s->fdes) || c.bad))
		s->fdes = 0;
	s->terminated = !s->fdes;
	size = elf_address_bytes(file->elf, s->address, &at);
	if (!size)
		return 0;
	s->headless = true;
	dwarf_section_open_at(&s->file, file, at, size);
	return load_section(s, ".eh_frame", e);
}

/* Finds the executable segments. */
static int find_code(struct cfi_frames *f, Elf *elf, struct error *e)
{
	uint64_t start = UINT64_MAX, limit = 0;
	GElf_Phdr segment;

	for (size_t i = 0;
	     f->code_count < CFI_CODE_MAX && elf_next_segment(elf, &i, PT_LOAD, &segment);) {
		struct elf_range *code = &f->code[f->code_count];

		if (!(segment.p_flags & PF_X) ||
		    __builtin_add_overflow(segment.p_vaddr, segment.p_filesz, &code->limit))
			continue;
		code->start = segment.p_vaddr;
		f->code_count++;
		start = MIN(code->start, start);
		limit = MAX(code->limit, limit);
	}
	if (limit > start && limit - start > SPAN_MAX)
		return error_set(e, 0, "its code spans more than %" PRIu64 " GiB", SPAN_MAX >> 30);
	return 0;
}

static uint64_t start_of_fde(const void *fde)
{
	return ((const struct cfi_fde *)fde)->start;
}

/*
 * Reads .eh_frame, also of a file without section headers, and .debug_frame. Until
 * cfi_frames_free(), which must be called in any case, the caller keeps the file open and f in
 * place. Returns 0, also if there are no records, or a negative errno, and sets e.
 */
static int cfi_frames_read(struct cfi_frames *f, const struct elf_file *file, struct error *e)
{
	struct cfi_section *eh = &f->sections[0], *debug = &f->sections[1];
	size_t size, eh_count;
	const char *ident = elf_getident(file->elf, &size);
	int err;

	*f = (struct cfi_frames){ .room = SECTION_MAX };
	eh->file.source.fd = debug->file.source.fd = -1;
	eh->eh = true;
	f->wide = ident[EI_CLASS] == ELFCLASS64;
	f->big_endian = ident[EI_DATA] == ELFDATA2MSB;
	err = find_code(f, file->elf, e);
	if (err || !f->code_count)
		return err;
	err = open_section(f, eh, file, ".eh_frame", e);
	if (!err && !eh->size)
		err = open_headless(f, eh, file, e);
	if (!err && eh->size)
		err = read_records(f, eh, e);
	if (err)
		return err;
	eh_count = f->fde_count;
	/* Go programs with C parts have both sections. A corrupt second one leaves the first. */
	err = open_section(f, debug, file, ".debug_frame", e);
	if (!err && debug->size)
		err = read_records(f, debug, e);
	if (err && err != -ENOMEM && eh_count) {
		f->fde_count = eh_count;
		err = 0;
	}
	if (!err && radix_sort(f->fdes, f->fde_count, sizeof(*f->fdes), start_of_fde))
		err = error_no_memory(e);
	return err;
}

static void cfi_frames_free(struct cfi_frames *f)
{
	dwarf_section_close(&f->sections[0].file);
	dwarf_section_close(&f->sections[1].file);
	free(f->fdes);
	free(f->cies);
	*f = (struct cfi_frames){ 0 };
}

/* --- Frames of code without call frame information --- */

/*
 * Functions of x86-64 code that no call frame information describes (musl's C library, assembly),
 * and how to find callers in it, from the instructions themselves: each path through a function is
 * followed, and what it pushes and pops is added up.
 *
 * A function begins at a symbol, where a call or an address in other code leads, or behind the end
 * of another function. Its rows are used only if they prove themselves: each return finds the stack
 * as the call left it, and two paths to an instruction agree.
 */

struct code_row {
	uint64_t address;
	struct unwind_rule rule; /* UNWIND_GAP: from here on it is unknown */
};

/* Both are sorted by address, without overlaps. Zero-initialised: none. */
struct code_frames {
	struct code_row *rows;
	size_t row_count, row_room;
	struct cfi_function *functions;
	size_t function_count, function_room;
};

/*
 * Of a file: C libraries have half a megabyte, static programs some.
 * Bound: files: bytes of code, sections, functions and bytes of each whose frames are found from
 * the code itself; then: none of the code, or not that function, has rows; seen: stack end gap.
 */
#define CODE_MAX     ((uint64_t)64 * 1024 * 1024)
#define RANGES_MAX   64
#define FUNCTION_MAX ((uint64_t)256 * 1024)
#define FRAME_MAX    (1 << 20)
#define STARTS_MAX   ((size_t)1 << 20)
/*
 * Of symbols, and of their names: a program of gigabytes has as many.
 * Bound: files: bytes of a symbol table, and of its names, that say where functions begin; then:
 * it is not used; seen: stack end gap.
 */
#define SYMBOLS_MAX ((uint64_t)32 * 1024 * 1024)

/*
 * What no FDE describes is read if it is this part of the code at least. A few functions are so in
 * each file: what compilers and linkers add, which the walk leaves by other means. Between
 * functions is padding.
 * Bound: pace.
 */
#define LEAST_PART  32
#define MOST_PART   4 /* from here on calls from other code are searched, too */
#define PADDING_MAX 32

/*
 * Before an instruction. Where paths meet, it only becomes less: sp is lost, bp is no frame
 * pointer. So each path is followed a few times at most.
 */
struct code_state {
	bool known;
	bool sp_lost;
	bool outermost; /* there is no caller: the function has cleared rbp, as the ABI asks for */
	bool unused;	/* no padding: states are compared as bytes */
	int32_t cfa;	/* the CFA less sp */
	int32_t bp_cfa; /* the CFA less bp, where bp is a frame pointer; else 0 */
	int32_t bp_at;	/* where the caller's bp is saved, from the CFA; 0: in bp */
	int32_t bx_at;	/* the same of rbx */
};

/* A section of code, in memory. */
struct range {
	uint64_t start, limit, offset;
	uint8_t *bytes;
};

/* Code that no FDE describes. */
struct gap {
	const struct range *range;
	uint64_t start, limit;
};

/* Where a function begins, and what says so. */
struct start {
	uint64_t address;
	enum evidence {
		BY_CALL,    /* or a symbol: surely */
		BY_ADDRESS, /* code takes its address: it may be a label */
		BY_PLACE,   /* behind a function's end, or a jump leads there: it may be anything */
		NONE,	    /* a label */
	} evidence;
};

struct analysis {
	struct code_frames *result;
	struct range ranges[RANGES_MAX];
	size_t range_count;
	struct gap *gaps; /* sorted */
	size_t gap_count, gap_room;
	uint64_t entry;
	struct start *starts; /* of functions: those that are sorted, then new ones */
	size_t sorted_count, start_count, start_room;
	size_t next_start; /* the first one that is above what was analysed */
	/* of the function that is analysed */
	const struct gap *gap;
	uint64_t start, limit;
	struct code_state
		*states; /* by byte, FUNCTION_MAX; cleared up to `touched` between functions */
	uint64_t touched;
	struct code_state at_table; /* where it jumps through a table */
	enum evidence evidence;
	bool is_proven;	      /* it returns, or goes to another function, and the stack is right */
	bool leads_elsewhere; /* to what is not known to be a function */
	uint32_t *pending;    /* offsets of instructions whose state has changed */
	size_t pending_count, pending_room;
	bool is_odd;	/* no rows can be given for it */
	bool is_listed; /* its starts are known: functions and rows are wanted */
	struct error *e;
};

static int add_start(struct analysis *a, uint64_t address, enum evidence evidence)
{
	if (a->start_count == STARTS_MAX)
		return 0;
	if (array_add(a->starts, a->start_count, a->start_room,
		      (struct start){ address, evidence }))
		return error_no_memory(a->e);
	return 0;
}

/* Of those of one address the surest is the first. */
ORDER(compare_starts, struct start, LEAST(address) ?: (int)a->evidence - (int)b->evidence)

ORDER_OF_KEY(compare_start, uint64_t, struct start, COMPARE(*a, b->address))

static struct start *find_start(const struct analysis *a, uint64_t address)
{
	return bsearch(&address, a->starts, a->sorted_count, sizeof(*a->starts), compare_start);
}

ORDER(compare_ranges, struct range, LEAST(start))

static int add_code_gap(struct analysis *a, const struct range *r, uint64_t start, uint64_t limit)
{
	if (start + PADDING_MAX > limit)
		return 0;
	if (array_add(a->gaps, a->gap_count, a->gap_room, (struct gap){ r, start, limit }))
		return error_no_memory(a->e);
	return 0;
}

/* Finds the sections of code and the gaps. There are none if it is too much code. */
static int find_gaps(struct analysis *a, Elf *elf, const struct cfi_frames *f)
{
	uint64_t all = 0, end = 0, start, limit;
	Elf_Scn *scn = NULL;
	GElf_Shdr section;
	size_t fde = 0;
	int err = 0;

	while (a->range_count < RANGES_MAX && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_EXECINSTR) ||
		    section.sh_type != SHT_PROGBITS || !section.sh_size)
			continue;
		if (section.sh_size > CODE_MAX || section.sh_addr > INT64_MAX)
			return 0;
		all += section.sh_size;
		a->ranges[a->range_count++] = (struct range){
			.start = section.sh_addr,
			.limit = section.sh_addr + section.sh_size,
			.offset = section.sh_offset,
		};
	}
	if (all > CODE_MAX)
		return 0;
	qsort(a->ranges, a->range_count, sizeof(*a->ranges), compare_ranges);
	for (size_t i = 0; i < a->range_count && !err; i++) {
		const struct range *r = &a->ranges[i];

		end = MAX(end, r->start);
		for (; fde < f->fde_count && f->fdes[fde].start < r->limit && !err; fde++) {
			start = f->fdes[fde].start;
			limit = f->fdes[fde].limit;
			if (start > end)
				err = add_code_gap(a, r, end, start);
			end = MAX(limit, end);
		}
		if (end < r->limit && !err)
			err = add_code_gap(a, r, end, r->limit);
		end = MAX(r->limit, end); /* malicious sections overlap */
	}
	return err;
}

/* Adds the symbols of a table that can be starts of functions. */
static int add_symbols(struct analysis *a, const struct elf_file *file, GElf_Word type)
{
	struct elf_file own = *file; /* others use the names that the file has read */
	struct symbol_reader reader;
	GElf_Shdr table, strings;
	struct error ignored;
	const char *name;
	GElf_Sym symbol;
	int err = 0;

	if (elf_find_type(file->elf, type, &table) &&
	    (table.sh_size > SYMBOLS_MAX ||
	     !gelf_getshdr(elf_getscn(file->elf, table.sh_link), &strings) ||
	     strings.sh_size > SYMBOLS_MAX))
		return -EFBIG;
	memset(own.strings, 0, sizeof(own.strings));
	if (symbol_reader_open(&reader, &own, type, &ignored) == 0)
		while (!err && symbol_reader_next(&reader, &symbol, &name))
			if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE &&
			    (GELF_ST_TYPE(symbol.st_info) == STT_FUNC ||
			     (GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE &&
			      GELF_ST_BIND(symbol.st_info) != STB_LOCAL)))
				err = add_start(a, symbol.st_value, BY_CALL);
	symbol_reader_close(&reader);
	for (size_t i = 0; i < ELF_STRING_TABLES; i++)
		free(own.strings[i]);
	return err;
}

/* Adds the targets of calls, and the addresses that code takes, of some code. */
static int add_targets(struct analysis *a, const struct range *r, uint64_t start, uint64_t limit)
{
	struct x86_instruction i;
	int err = 0;

	for (uint64_t at = start; at < limit && !err; at += i.size) {
		if (!x86_decode(r->bytes + (at - r->start), limit - at, &i)) {
			i.size = 1;
			continue;
		}
		if (i.has_target && (i.flow == X86_CALL || i.flow == X86_NEXT))
			err = add_start(a, at + i.target,
					i.flow == X86_CALL ? BY_CALL : BY_ADDRESS);
	}
	return err;
}

/* Reads code, and finds where functions start. -EIO: it cannot be read. */
static int find_starts(struct analysis *a, const struct elf_file *file)
{
	uint64_t all = 0, described = 0;
	int err = 0;

	for (size_t i = 0; i < a->range_count; i++)
		described += a->ranges[i].limit - a->ranges[i].start;
	for (size_t i = 0; i < a->gap_count; i++)
		all += a->gaps[i].limit - a->gaps[i].start;
	if (!all || all < described / LEAST_PART)
		return -EIO;
	/* What is not read takes no memory. */
	for (size_t i = 0; i < a->range_count && !err; i++) {
		struct range *r = &a->ranges[i];

		r->bytes = calloc(1, r->limit - r->start);
		err = r->bytes ? 0 : error_no_memory(a->e);
	}
	for (size_t i = 0;
	     i < (all < described / MOST_PART ? a->gap_count : a->range_count) && !err; i++) {
		const struct range *r = &a->ranges[i];
		uint64_t start = r->start, limit = r->limit;

		if (all < described / MOST_PART) {
			r = a->gaps[i].range;
			start = a->gaps[i].start;
			limit = a->gaps[i].limit;
		}
		if (!read_budget_has_memory(file->source.budget, limit - start) ||
		    elf_source_read(&file->source, r->bytes + (start - r->start), limit - start,
				    r->offset + (start - r->start)) != limit - start)
			return -EIO;
		err = add_targets(a, r, start, limit);
	}
	err = err ?: add_start(a, a->entry, BY_CALL);
	err = err ?: add_symbols(a, file, SHT_SYMTAB);
	return err ?: add_symbols(a, file, SHT_DYNSYM);
}

/* --- One function --- */

/* Sets the state before an instruction: adds it to what is known. */
static int merge(struct analysis *a, uint64_t address, const struct code_state *from)
{
	uint32_t offset = address - a->start;
	struct code_state *to = &a->states[offset], before = *to;

	if (!to->known) {
		*to = *from;
	} else if (!to->outermost || !from->outermost) {
		to->sp_lost = to->sp_lost || from->sp_lost;
		if (to->bp_cfa != from->bp_cfa)
			to->bp_cfa = 0;
		if (to->outermost != from->outermost || to->bp_at != from->bp_at ||
		    to->bx_at != from->bx_at || (!to->sp_lost && to->cfa != from->cfa))
			a->is_odd = true;
		if (to->sp_lost)
			to->cfa = 0;
	}
	if (to->sp_lost && !to->bp_cfa)
		a->is_odd = true;
	if (memcmp(to, &before, sizeof(before)) == 0)
		return 0;
	if (a->touched <= offset)
		a->touched = offset + 1;
	if (array_add(a->pending, a->pending_count, a->pending_room, offset))
		return error_no_memory(a->e);
	return 0;
}

/* What an instruction does to a state. */
static void apply(struct analysis *a, const struct x86_instruction *i, struct code_state *s)
{
	int32_t *saved = i->reg == 5 ? &s->bp_at : i->reg == 3 ? &s->bx_at : NULL;

	if (s->outermost)
		return;
	switch (i->stack) {
	case X86_PUSH:
		s->cfa += 8;
		if (saved && !*saved && !s->sp_lost && !(i->reg == 5 && s->bp_cfa))
			*saved = -s->cfa;
		break;
	case X86_POP:
		if (saved && (*saved == -s->cfa || s->sp_lost))
			*saved = 0;
		if (i->reg == 5)
			s->bp_cfa = 0;
		s->cfa -= 8;
		break;
	case X86_ADD:
		s->cfa -= i->value;
		break;
	case X86_BP_FROM_SP:
		s->bp_cfa = s->sp_lost || !s->bp_at ? 0 : s->cfa - i->value;
		break;
	case X86_SP_FROM_BP:
		if (s->bp_cfa) {
			s->cfa = s->bp_cfa - i->value;
			s->sp_lost = false;
		} else {
			s->sp_lost = true;
		}
		break;
	case X86_LEAVE:
		s->sp_lost = !s->bp_cfa;
		s->cfa = s->bp_cfa - 8;
		s->bp_cfa = s->bp_at = 0;
		break;
	case X86_CLEAR_BP:
		s->outermost = !s->bp_at;
		s->bp_cfa = 0;
		break;
	case X86_SP_LOST:
		s->sp_lost = true;
		break;
	}
	/* Below the return address, or of no real frame */
	if (s->outermost)
		return;
	if (s->sp_lost)
		s->cfa = 0;
	else if (s->cfa < 8 || s->cfa > FRAME_MAX)
		a->is_odd = true;
}

/* Whether it is as at a function's start. rbx may have been loaded from where it is saved. */
static bool is_at_start(const struct code_state *s)
{
	return s->outermost || (!s->sp_lost && s->cfa == 8 && !s->bp_at);
}

static const uint8_t *code_at(const struct analysis *a, uint64_t address)
{
	return a->gap->range->bytes + (address - a->gap->range->start);
}

/* Executes an instruction, and sets the state before those that may be the next one. */
static int follow(struct analysis *a, uint64_t address)
{
	struct code_state s = a->states[address - a->start];
	struct x86_instruction i;
	struct start *start;
	uint64_t next, target;
	int err = 0;

	if (!x86_decode(code_at(a, address), a->limit - address, &i)) {
		a->is_odd = true;
		return 0;
	}
	next = address + i.size;
	target = address + i.target;
	a->touched = MAX(a->touched, next - a->start);
	if (i.flow == X86_RETURN) {
		a->is_odd = a->is_odd || !is_at_start(&s);
		a->is_proven = true;
	}
	apply(a, &i, &s);
	if ((i.flow == X86_JUMP || i.flow == X86_BRANCH) && target >= a->start &&
	    target < a->limit) {
		err = merge(a, target, &s);
	} else if (i.flow == X86_JUMP || i.flow == X86_BRANCH) {
		/* A call in place of a return, or to a part of the function that is elsewhere */
		if (i.flow == X86_JUMP && is_at_start(&s) && a->evidence == BY_CALL &&
		    !a->is_listed)
			err = add_start(a, target, BY_PLACE);
		if (!find_start(a, target) && target >= a->gap->start && target < a->gap->limit)
			a->leads_elsewhere = true;
		else
			a->is_proven = a->is_proven || is_at_start(&s);
	}
	if (i.flow == X86_JUMP_INDIRECT && !is_at_start(&s)) {
		if (a->at_table.known && memcmp(&a->at_table, &s, sizeof(s)) != 0)
			a->is_odd = true;
		a->at_table = s;
	}
	if (err || i.flow == X86_RETURN || i.flow == X86_JUMP || i.flow == X86_STOP ||
	    i.flow == X86_JUMP_INDIRECT)
		return err;
	if (next < a->limit)
		return merge(a, next, &s);
	/* A call that does not return may be the last instruction before padding. */
	if (i.flow == X86_CALL || i.flow == X86_CALL_INDIRECT || i.is_padding)
		return 0;
	start = find_start(a, next);
	if (start && start->evidence == BY_ADDRESS)
		start->evidence = NONE;
	if (!is_at_start(&s))
		a->is_odd = true;
	return 0;
}

static struct unwind_rule code_rule(const struct code_state *s)
{
	struct unwind_rule rule = { .cfa = UNWIND_SP, .offset = s->cfa };

	if (s->outermost)
		return (struct unwind_rule){ .cfa = UNWIND_END };
	if (s->sp_lost) {
		rule.cfa = UNWIND_BP;
		rule.offset = s->bp_cfa;
	}
	if (s->bp_at) {
		rule.bp = UNWIND_SAVED_AT_CFA;
		rule.bp_at = s->bp_at / 8;
	}
	if (s->bx_at / 8 < SCHAR_MIN) {
		rule.bx = UNWIND_LOST;
	} else if (s->bx_at) {
		rule.bx = UNWIND_SAVED_AT_CFA;
		rule.bx_at = s->bx_at / 8;
	}
	if (s->bp_at / 8 < SHRT_MIN)
		rule = (struct unwind_rule){ .cfa = UNWIND_GAP };
	return rule;
}

static int add_code_row(struct analysis *a, uint64_t address, struct unwind_rule rule)
{
	struct code_frames *c = a->result;

	/* Where a function ends, another one may begin. */
	if (c->row_count && c->rows[c->row_count - 1].address == address)
		c->row_count--;
	if (c->row_count && !memcmp(&c->rows[c->row_count - 1].rule, &rule, sizeof(rule)))
		return 0;
	if (array_add(c->rows, c->row_count, c->row_room, (struct code_row){ address, rule }))
		return error_no_memory(a->e);
	return 0;
}

/* Adds the function, which ends at `end`, and its rows. */
static int add_function(struct analysis *a, uint64_t end)
{
	static const struct unwind_rule gap = { .cfa = UNWIND_GAP };
	struct code_frames *c = a->result;
	struct x86_instruction i;
	int err = 0;

	for (uint64_t at = a->start; at < end && !err && !a->is_odd; at += i.size) {
		const struct code_state *s = &a->states[at - a->start];
		struct unwind_rule rule = s->known ? code_rule(s) : gap;

		i.size = 1;
		if (a->start == a->entry)
			rule = (struct unwind_rule){ .cfa = UNWIND_END };
		if (s->known)
			x86_decode(code_at(a, at), a->limit - at, &i);
		err = add_code_row(a, at, rule);
	}
	if (!a->is_odd)
		err = err ?: add_code_row(a, end, gap);
	if (!err && array_add(c->functions, c->function_count, c->function_room,
			      (struct cfi_function){ a->start, end }))
		err = error_no_memory(a->e);
	return err;
}

/* Follows all paths. */
static int follow_pending(struct analysis *a)
{
	int err = 0;

	while (!err && a->pending_count)
		err = follow(a, a->start + a->pending[--a->pending_count]);
	return err;
}

/* Analyses the function at an address, which ends at `limit` at the latest. Sets *end. */
static int analyse(struct analysis *a, uint64_t start, uint64_t limit, enum evidence evidence,
		   uint64_t *end)
{
	const struct code_state first = { .known = true, .cfa = 8 };
	struct x86_instruction i;
	int err;

	a->start = start;
	a->limit = limit - start < FUNCTION_MAX ? limit : start + FUNCTION_MAX;
	a->evidence = evidence;
	a->is_odd = a->is_proven = a->leads_elsewhere = false;
	a->at_table.known = false;
	a->touched = a->pending_count = 0;
	err = merge(a, start, &first);
	err = err ?: follow_pending(a);
	/* What is not reached yet are cases of a table, and up to the next function they are its.
	 */
	for (uint64_t at = start; !err && a->at_table.known && at < a->limit; at += i.size) {
		if (!x86_decode(code_at(a, at), a->limit - at, &i) && !a->states[at - start].known)
			a->is_odd = true;
		if (a->is_odd)
			break;
		if (a->states[at - start].known || i.is_padding)
			continue;
		err = merge(a, at, &a->at_table);
		err = err ?: follow_pending(a);
	}
	*end = start + a->touched;
	/* Without proof this may be a part of another function, with a frame that is not known. */
	if (!err && a->is_listed &&
	    (evidence == BY_CALL ||
	     (!a->is_odd && !a->leads_elsewhere && (a->is_proven || evidence == BY_ADDRESS))))
		err = add_function(a, *end);
	memset(a->states, 0, a->touched * sizeof(*a->states));
	return err;
}

static int analyse_gap(struct analysis *a, struct read_budget *budget)
{
	uint64_t end = a->gap->start, limit;
	int err = 0;

	for (uint64_t at = end; at < a->gap->limit && !err; at = end > at ? end : at + 1) {
		const uint8_t *bytes = code_at(a, at);
		enum evidence evidence = BY_PLACE;
		struct x86_instruction i;

		while (a->next_start < a->sorted_count && a->starts[a->next_start].address < at)
			a->next_start++;
		end = at + 1;
		if (!x86_decode(bytes, a->gap->limit - at, &i))
			continue;
		end = at + i.size;
		/* Two zero bytes are an instruction, too. */
		if (i.is_padding || !*bytes)
			continue;
		if (!read_budget_take(budget, 0))
			return 0;
		if (a->next_start < a->sorted_count && a->starts[a->next_start].address == at)
			evidence = a->starts[a->next_start++].evidence;
		limit = a->gap->limit;
		if (a->next_start < a->sorted_count && a->starts[a->next_start].address < limit)
			limit = a->starts[a->next_start].address;
		err = analyse(a, at, limit, evidence, &end);
	}
	return err;
}

static void code_frames_free(struct code_frames *c)
{
	free(c->rows);
	free(c->functions);
	*c = (struct code_frames){ 0 };
}

/*
 * Reads the code of an x86-64 file that no FDE describes; other files have no functions. Returns 0,
 * also if there is no such code, or it is too much to read, or -ENOMEM and sets e.
 */
static int code_frames_read(struct code_frames *c, const struct elf_file *file,
			    const struct cfi_frames *frames, struct error *e)
{
	struct analysis a = { .result = c, .e = e };
	GElf_Ehdr header;
	int err;

	*c = (struct code_frames){ 0 };
	if (!gelf_getehdr(file->elf, &header) || header.e_machine != EM_X86_64 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	a.entry = header.e_entry;
	err = find_gaps(&a, file->elf, frames);
	err = err ?: find_starts(&a, file);
	if (!err)
		a.states = calloc(FUNCTION_MAX, sizeof(*a.states));
	if (!err && !a.states)
		err = error_no_memory(e);
	/* Some functions are only jumped to, in place of a return: found by the first time. */
	for (int i = 0; i < 2 && !err; i++) {
		size_t kept = 0;

		qsort(a.starts, a.start_count, sizeof(*a.starts), compare_starts);
		for (size_t j = 0; j < a.start_count; j++)
			if (a.starts[j].evidence != NONE &&
			    (!kept || a.starts[j].address != a.starts[kept - 1].address))
				a.starts[kept++] = a.starts[j];
		a.start_count = a.sorted_count = kept;
		a.next_start = 0;
		a.is_listed = i;
		for (size_t j = 0; j < a.gap_count && !err; j++) {
			a.gap = &a.gaps[j];
			err = analyse_gap(&a, file->source.budget);
		}
	}
	for (size_t i = 0; i < a.range_count; i++)
		free(a.ranges[i].bytes);
	free(a.gaps);
	free(a.starts);
	free(a.states);
	free(a.pending);
	if (err)
		code_frames_free(c);
	return err == -ENOMEM ? err : 0;
}

/* --- Rows --- */

/*
 * The largest libraries have a tenth of the first limit, and a hundredth of the second.
 * Bound: files: rows and rules of an image; then: it has none: stacks end in its code; seen: as
 * images without call frame information, with the reason.
 */
#define ROWS_MAX  8000000
#define RULES_MAX 65536

/*
 * DW_CFA_remember_state: compilers nest one.
 * Bound: files: states that are remembered at once; then: the function has no rows from there on;
 * seen: stack end gap.
 */
#define REMEMBERED_MAX 64

/*
 * Bound: files: rules that were used last, as a power of two; then: one replaces another, and is
 * searched again; again: at once; seen: not seen, but as CPU time.
 */
#define RULE_CACHE_BITS 12

/* DWARF's numbers of a machine's registers that unwinding needs; bx, too, is the rules' name. */
struct machine {
	GElf_Half machine;
	unsigned char class;
	uint8_t sp, bp, bx, return_address;
	int return_at; /* where a call saves the return address, relative to the CFA; 0: nowhere */
	int signal_sp; /* the saved sp, relative to sp in a signal frame; 0: rows need not say it */
};

static const struct machine machines[] = {
	{ EM_X86_64, ELFCLASS64, 7, 6, 3, 16, -8, 160 },
	{ EM_AARCH64, ELFCLASS64, 31, 29, 30, 30, 0, 0 },
};

/* Whether calls leave the return address in a register, the one that rules call bx. */
static bool links(const struct machine *m)
{
	return m->bx == m->return_address;
}

/*
 * The functions of Go's runtime on x86-64 that call others on another stack. Since Go 1.17 a symbol
 * of assembly ends with ".abi0", unless it has the ABI of compiled code. Then the name alone is
 * that of compiled code, which calls the assembly.
 */
static const struct {
	const char *name;
	enum unwind_switch kind;
} switches[] = {
	{ "runtime.systemstack", UNWIND_SWITCH_CALLED },
	{ "runtime.asmcgocall", UNWIND_SWITCH_CALLED },
	{ "runtime.morestack", UNWIND_SWITCH_INTERRUPTED },
	{ "runtime.mcall", UNWIND_SWITCH_ENDS },
	{ "runtime.goexit", UNWIND_SWITCH_ENDS }, /* what a goroutine returns to */
	{ "runtime.cgocallback", UNWIND_SWITCH_BACK },
	{ "runtime.mstart", UNWIND_SWITCH_ENDS }, /* a thread's first function */
	{ "runtime.rt0_go", UNWIND_SWITCH_ENDS }, /* the program's */
	{ "runtime.nanotime1", UNWIND_SWITCH_BP },
	{ "runtime.walltime", UNWIND_SWITCH_BP },
	{ "time.now", UNWIND_SWITCH_BP },
};

#define SWITCH_COUNT (sizeof(switches) / sizeof(*switches))

enum caller {
	CALLER_UNKNOWN,
	CALLER_SAVED, /* the return address is where a call stores it */
	CALLER_IN_REGISTER,
	CALLER_NONE, /* the outermost frame */
};

/* How to find the caller from one instruction. */
struct state {
	enum {
		CFA_NONE,
		CFA_REGISTER,
		CFA_RULE
	} cfa;
	enum caller caller;
	uint64_t caller_register;
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct unwind_rule cfa_rule; /* of an expression */
	struct saved {
		enum unwind_saved kind;
		int16_t at;
	} bp, bx;
};

/* The execution of an FDE's or CIE's instructions. */
struct run {
	const struct cfi_cie *cie;
	const struct machine *machine;
	struct dwarf_cursor c;
	const struct state *initial; /* the CIE's; NULL: these are the CIE's instructions */
	struct state now;
	struct state remembered[REMEMBERED_MAX];
	size_t remembered_count;
	uint64_t location;
};

struct builder {
	const struct cfi_frames *frames;
	const struct code_frames *code;
	const struct machine *machine;
	struct state *initial; /* by CIE */
	struct unwind_rows *rows;
	struct index index;		      /* of rules */
	uint64_t end;			      /* end of the last row added */
	uint64_t entry;			      /* the program's entry point */
	size_t next_fde, next_code;	      /* the first ones that are not added */
	uint64_t switch_starts[SWITCH_COUNT]; /* of Go's functions; 0: not found */
	int switching;			      /* the function, one of these; -1: none */
	struct {
		struct unwind_rule rule;
		uint32_t number; /* + 1; 0: unused */
	} cache[1 << RULE_CACHE_BITS];
	struct run run;
	struct error *e;
};

static bool fits_short(int64_t value)
{
	return value >= SHRT_MIN && value <= SHRT_MAX;
}

/* Reads "register + offset". False: it is something else. */
static bool read_base(struct dwarf_cursor *c, uint64_t *number, int64_t *offset)
{
	uint8_t op = dwarf_number(c, 1);

	if (op == DW_OP_bregx)
		*number = dwarf_uleb(c);
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		*number = op - DW_OP_breg0;
	else
		return false;
	*offset = dwarf_sleb(c);
	return !c->bad;
}

/*
 * Whether an expression is what linkers write for PLT stubs, in which a word is pushed after N of
 * 16 bytes: sp + 8 + ((pc & 15) >= N) << 3. Sets *threshold to N.
 */
static bool is_plt(const struct machine *m, struct dwarf_cursor c, uint64_t number, int64_t offset,
		   int *threshold)
{
	uint8_t head[] = { DW_OP_breg0 + m->return_address, 0, DW_OP_lit15, DW_OP_and };
	uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	size_t size = c.end - c.at;

	if (number != m->sp || offset != 8 || size != sizeof(head) + 1 + sizeof(tail) ||
	    memcmp(c.at, head, sizeof(head)) != 0 ||
	    memcmp(c.at + sizeof(head) + 1, tail, sizeof(tail)) != 0)
		return false;
	*threshold = c.at[sizeof(head)] - DW_OP_lit0;
	return *threshold >= 0 && *threshold <= 15;
}

/* Reads a block: its size and its bytes. */
static struct dwarf_cursor read_block(struct dwarf_cursor *c)
{
	struct dwarf_cursor block = *c;
	uint64_t size = dwarf_uleb(c);

	block.at = c->at;
	dwarf_skip(c, size);
	block.end = c->at;
	return block;
}

static void define_cfa_by_expression(struct run *r)
{
	const struct machine *m = r->machine;
	struct dwarf_cursor c = read_block(&r->c);
	struct state *s = &r->now;
	uint64_t number, add = 0;
	int64_t offset;
	int threshold;

	s->cfa = CFA_RULE;
	s->cfa_rule = (struct unwind_rule){ .cfa = UNWIND_UNSUPPORTED };
	if (!read_base(&c, &number, &offset))
		return;
	if (c.at == c.end) {
		s->cfa = CFA_REGISTER;
		s->cfa_register = number;
		s->cfa_offset = offset;
		return;
	}
	if (is_plt(m, c, number, offset, &threshold)) {
		s->cfa_rule = (struct unwind_rule){ .cfa = UNWIND_PLT, .offset = threshold };
		return;
	}
	/* *(register + offset) + add */
	if (dwarf_number(&c, 1) != DW_OP_deref)
		return;
	if (c.at < c.end && dwarf_number(&c, 1) == DW_OP_plus_uconst)
		add = dwarf_uleb(&c);
	if (!c.bad && c.at == c.end && (number == m->sp || number == m->bp) && fits_short(offset) &&
	    add <= SHRT_MAX) {
		s->cfa_rule.cfa = number == m->sp ? UNWIND_DEREF_SP : UNWIND_DEREF_BP;
		s->cfa_rule.base = offset;
		s->cfa_rule.add = add;
	}
}

/* Where a state says that a register is saved; NULL: that register is not tracked. */
static struct saved *saved_of(const struct run *r, struct state *s, uint64_t number)
{
	if (number == r->machine->bp)
		return &s->bp;
	return number == r->machine->bx ? &s->bx : NULL;
}

/* Sets where a register is saved, if a rule can express it. */
static void set_saved(struct saved *saved, enum unwind_saved kind, int64_t offset)
{
	if (offset % 8 || !fits_short(offset / 8))
		return;
	saved->kind = kind;
	saved->at = offset / 8;
}

static void lose_register(struct run *r, uint64_t number)
{
	struct saved *saved = saved_of(r, &r->now, number);

	if (saved)
		*saved = (struct saved){ UNWIND_LOST, 0 };
	if (number == r->machine->return_address)
		r->now.caller = CALLER_UNKNOWN;
}

static void save_register(struct run *r, uint64_t number, int64_t factored)
{
	struct saved *saved = saved_of(r, &r->now, number);
	int64_t offset;

	lose_register(r, number);
	if (__builtin_mul_overflow(factored, r->cie->data_align, &offset))
		return;
	if (saved)
		set_saved(saved, UNWIND_SAVED_AT_CFA, offset);
	else if (number == r->machine->return_address && offset == r->machine->return_at)
		r->now.caller = CALLER_SAVED;
}

static void save_register_by_expression(struct run *r)
{
	uint64_t number = dwarf_uleb(&r->c), base;
	struct dwarf_cursor c = read_block(&r->c);
	int64_t offset;

	lose_register(r, number);
	if (number != r->machine->bp || !read_base(&c, &base, &offset) || c.at < c.end ||
	    base != r->machine->bp)
		return;
	set_saved(&r->now.bp, UNWIND_SAVED_AT_BP, offset);
}

/* Returns false in a CIE's instructions, where it is invalid. */
static bool restore_register(struct run *r, uint64_t number)
{
	if (!r->initial)
		return false;
	if (number == r->machine->bp)
		r->now.bp = r->initial->bp;
	else if (number == r->machine->bx)
		r->now.bx = r->initial->bx;
	if (number == r->machine->return_address)
		r->now.caller = r->initial->caller; /* never CALLER_IN_REGISTER */
	return true;
}

static bool define_cfa(struct run *r, uint64_t number, int64_t offset)
{
	r->now.cfa = CFA_REGISTER;
	r->now.cfa_register = number;
	r->now.cfa_offset = offset;
	return true;
}

static int64_t data_offset(struct run *r)
{
	int64_t offset;

	if (__builtin_mul_overflow(dwarf_sleb(&r->c), r->cie->data_align, &offset))
		return INT64_MAX;
	return offset;
}

/* Advances the location, at most to UINT64_MAX: all addresses after the FDE's end are equal. */
static bool advance(struct run *r, uint64_t delta)
{
	if (__builtin_mul_overflow(delta, r->cie->code_align, &delta) ||
	    __builtin_add_overflow(r->location, delta, &r->location))
		r->location = UINT64_MAX;
	return true;
}

/* Executes an instruction without an operand in its first byte. False: it is invalid. */
static bool execute_extended(struct run *r, uint8_t op)
{
	struct dwarf_cursor *c = &r->c;
	struct saved *saved;
	uint64_t number, other, address;

	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* on other machines; arm64: the return address is signed */
		return true;
	case DW_CFA_set_loc:
		if (!cfi_address(r->cie, c, &address) || address < r->location)
			return false;
		r->location = address;
		return true;
	case DW_CFA_advance_loc1:
		return advance(r, dwarf_number(c, 1));
	case DW_CFA_advance_loc2:
		return advance(r, dwarf_number(c, 2));
	case DW_CFA_advance_loc4:
		return advance(r, dwarf_number(c, 4));
	case DW_CFA_MIPS_advance_loc8:
		return advance(r, dwarf_number(c, 8));
	case DW_CFA_offset_extended:
		number = dwarf_uleb(c);
		save_register(r, number, dwarf_uleb(c));
		return true;
	case DW_CFA_offset_extended_sf:
		number = dwarf_uleb(c);
		save_register(r, number, dwarf_sleb(c));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		number = dwarf_uleb(c);
		save_register(r, number, -dwarf_uleb(c));
		return true;
	case DW_CFA_restore_extended:
		return restore_register(r, dwarf_uleb(c));
	case DW_CFA_undefined:
		number = dwarf_uleb(c);
		lose_register(r, number);
		if (number == r->machine->return_address)
			r->now.caller = CALLER_NONE;
		return true;
	case DW_CFA_same_value:
		number = dwarf_uleb(c);
		lose_register(r, number);
		saved = saved_of(r, &r->now, number);
		if (saved)
			saved->kind = UNWIND_SAME;
		return true;
	case DW_CFA_register:
		number = dwarf_uleb(c);
		other = dwarf_uleb(c);
		lose_register(r, number);
		if (number == r->machine->return_address) {
			r->now.caller = CALLER_IN_REGISTER;
			r->now.caller_register = other;
		}
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		lose_register(r, dwarf_uleb(c));
		dwarf_uleb(c);
		return true;
	case DW_CFA_remember_state:
		if (r->remembered_count == REMEMBERED_MAX)
			return false;
		r->remembered[r->remembered_count++] = r->now;
		return true;
	case DW_CFA_restore_state:
		if (!r->remembered_count)
			return false;
		r->now = r->remembered[--r->remembered_count];
		return true;
	case DW_CFA_def_cfa:
		number = dwarf_uleb(c);
		return define_cfa(r, number, dwarf_uleb(c));
	case DW_CFA_def_cfa_sf:
		number = dwarf_uleb(c);
		return define_cfa(r, number, data_offset(r));
	case DW_CFA_def_cfa_register:
		return define_cfa(r, dwarf_uleb(c), r->now.cfa_offset) && r->now.cfa != CFA_RULE;
	case DW_CFA_def_cfa_offset:
		r->now.cfa_offset = dwarf_uleb(c);
		return r->now.cfa == CFA_REGISTER;
	case DW_CFA_def_cfa_offset_sf:
		r->now.cfa_offset = data_offset(r);
		return r->now.cfa == CFA_REGISTER;
	case DW_CFA_def_cfa_expression:
		define_cfa_by_expression(r);
		return true;
	case DW_CFA_expression:
		save_register_by_expression(r);
		return true;
	case DW_CFA_val_expression:
		lose_register(r, dwarf_uleb(c));
		read_block(c);
		return true;
	case DW_CFA_GNU_args_size:
		dwarf_uleb(c);
		return true;
	default:
		return false;
	}
}

/* Executes the next instruction, which has at least one byte. False: it is invalid. */
static bool execute(struct run *r)
{
	uint8_t byte = *r->c.at++, operand = byte & 0x3f;

	switch (byte & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(r, operand);
	case DW_CFA_offset:
		save_register(r, operand, dwarf_uleb(&r->c));
		return !r->c.bad;
	case DW_CFA_restore:
		return restore_register(r, operand);
	default:
		return execute_extended(r, operand) && !r->c.bad;
	}
}

/* The rule for the CFA only. */
static struct unwind_rule cfa_rule_of(const struct machine *m, const struct state *s)
{
	struct unwind_rule rule = { .cfa = UNWIND_UNSUPPORTED };

	if (s->cfa == CFA_RULE)
		return s->cfa_rule;
	if (s->cfa == CFA_NONE || s->cfa_offset < INT_MIN || s->cfa_offset > INT_MAX)
		return rule;
	if (s->cfa_register == m->sp || s->cfa_register == m->bp) {
		rule.cfa = s->cfa_register == m->sp ? UNWIND_SP : UNWIND_BP;
		rule.offset = s->cfa_offset;
	} else if (s->cfa_register == m->bx && !links(m)) {
		rule.cfa = UNWIND_BX;
		rule.offset = s->cfa_offset;
	} else if (s->cfa_register <= SHRT_MAX && fits_short(s->cfa_offset)) {
		rule.cfa = UNWIND_REGISTER;
		rule.base = s->cfa_register;
		rule.add = s->cfa_offset;
	}
	return rule;
}

/* Sets where a rule finds the caller's registers. False: no rule can express it. */
static bool set_registers(const struct machine *m, const struct state *s, struct unwind_rule *rule)
{
	int bx_at = s->bx.at;

	rule->bp = s->bp.kind;
	rule->bp_at = s->bp.at;
	rule->bx = s->bx.kind;
	if (links(m) ? s->bx.kind == UNWIND_LOST : s->caller != CALLER_SAVED)
		return false;
	if (links(m) && s->bx.kind == UNWIND_SAVED_AT_CFA) {
		if (s->bp.kind != UNWIND_SAVED_AT_CFA)
			rule->bp_at = s->bx.at;
		bx_at -= rule->bp_at;
	}
	if (bx_at < SCHAR_MIN || bx_at > SCHAR_MAX) {
		rule->bx = UNWIND_LOST;
		bx_at = 0;
	}
	rule->bx_at = bx_at;
	return true;
}

static struct unwind_rule rule_of(const struct run *r, const struct state *s)
{
	struct unwind_rule rule = cfa_rule_of(r->machine, s);

	if (r->cie->signal) {
		bool known =
			!r->machine->signal_sp || (rule.cfa == UNWIND_DEREF_SP &&
						   rule.base == r->machine->signal_sp && !rule.add);

		return (struct unwind_rule){ .cfa = known ? UNWIND_SIGNAL : UNWIND_UNSUPPORTED };
	}
	if (r->cie->return_register != r->machine->return_address)
		return (struct unwind_rule){ .cfa = UNWIND_UNSUPPORTED };
	if (s->caller == CALLER_NONE)
		return (struct unwind_rule){ .cfa = UNWIND_END };
	if (s->caller == CALLER_IN_REGISTER && rule.cfa == UNWIND_SP && fits_short(rule.offset) &&
	    s->caller_register <= SHRT_MAX)
		return (struct unwind_rule){
			.cfa = UNWIND_RETURN,
			.base = s->caller_register,
			.add = rule.offset,
		};
	if (rule.cfa == UNWIND_UNSUPPORTED || !set_registers(r->machine, s, &rule))
		return (struct unwind_rule){ .cfa = UNWIND_UNSUPPORTED };
	return rule;
}

/* Sets *number to a rule's number, and adds the rule if it is new. The cache finds most. */
static int number_rule(struct builder *b, const struct unwind_rule *rule, uint32_t *number)
{
	struct unwind_rows *rows = b->rows;
	uint64_t bits;
	size_t slot;

	static_assert(sizeof(*rule) == sizeof(bits), "a rule is a word");
	memcpy(&bits, rule, sizeof(bits));
	slot = bits * 0x9e3779b97f4a7c15 >> (64 - RULE_CACHE_BITS);
	if (!b->cache[slot].number || memcmp(&b->cache[slot].rule, rule, sizeof(*rule)) != 0) {
		if (table_add_element(&rows->rules, &rows->rule_count, &rows->rule_room, &b->index,
				      sizeof(*rule), rule, sizeof(*rule), number))
			return error_no_memory(b->e);
		if (rows->rule_count > RULES_MAX)
			return error_set(b->e, 0,
					 "its call frame information has more than %d rules",
					 RULES_MAX);
		b->cache[slot].rule = *rule;
		b->cache[slot].number = *number + 1;
	}
	*number = b->cache[slot].number - 1;
	return 0;
}

/* Adds a row: the rule holds from this address on. */
static int add_row(struct builder *b, uint64_t address, const struct unwind_rule *rule)
{
	struct unwind_rows *rows = b->rows;
	uint32_t number;
	int err = number_rule(b, rule, &number);

	if (err || (rows->count && rows->rows[rows->count - 1].rule == number))
		return err;
	if (rows->count == ROWS_MAX)
		return error_set(b->e, 0, "it has more than %d rows of call frame information",
				 ROWS_MAX);
	return array_add(rows->rows, rows->count, rows->room,
			 (struct unwind_address){ .address = address, .rule = number })
		       ? error_no_memory(b->e)
		       : 0;
}

/*
 * Adds rows for the addresses from b->end to `limit`, which no FDE describes: those that the code
 * itself gives, if any. The entry point is the outermost frame: the dynamic linker has no FDE that
 * says so.
 */
static int add_gap(struct builder *b, uint64_t limit)
{
	static const struct unwind_rule gap = { .cfa = UNWIND_GAP }, end = { .cfa = UNWIND_END };
	const struct code_row *rows = b->code->rows;
	size_t count = b->code->row_count, at = b->next_code;
	bool has_entry;
	int err;

	while (at < count && rows[at].address < b->end)
		at++;
	b->next_code = at;
	if (at < count && rows[at].address < limit) {
		err = b->rows->count && rows[at].address > b->end ? add_row(b, b->end, &gap) : 0;
		for (; !err && at < count && rows[at].address < limit; at++)
			err = add_row(b, rows[at].address, &rows[at].rule);
		return err;
	}
	if (!b->rows->count)
		return 0;
	has_entry = b->entry >= b->end && b->entry < limit;
	err = has_entry && b->entry == b->end ? 0 : add_row(b, b->end, &gap);
	if (err || !has_entry)
		return err;
	err = add_row(b, b->entry, &end);
	return err || limit < UINT64_MAX ? err : add_row(b, b->entry + 1, &gap);
}

/* Adds a row for the current state from b->end to `limit`, if that is higher. */
static int add_state(struct builder *b, uint64_t limit)
{
	struct unwind_rule rule;
	int err;

	if (limit <= b->end)
		return 0;
	rule = rule_of(&b->run, &b->run.now);
	if (b->switching >= 0 && rule.cfa == UNWIND_SP && fits_short(rule.offset))
		rule = (struct unwind_rule){
			.cfa = UNWIND_SWITCH,
			.base = rule.offset,
			.add = switches[b->switching].kind,
		};
	err = add_row(b, b->end, &rule);
	b->end = limit;
	return err;
}

/* initial: the CIE's state; NULL for the CIE's instructions. */
static void start_run(struct builder *b, const struct cfi_cie *cie, const struct state *initial)
{
	struct run *r = &b->run;

	r->cie = cie;
	r->machine = b->machine;
	r->initial = initial;
	r->now = initial ? *initial : (struct state){ 0 };
	r->remembered_count = 0;
	r->location = 0;
}

/* Adds the rows of an FDE for addresses after b->end. */
static int add_fde(struct builder *b, const struct cfi_fde *fde)
{
	struct run *r = &b->run;
	int err = 0;

	if (fde->limit <= b->end)
		return 0;
	if (fde->start > b->end)
		err = add_gap(b, fde->start);
	b->end = MAX(b->end, fde->start);
	start_run(b, &b->frames->cies[fde->cie], &b->initial[fde->cie]);
	b->switching = -1;
	for (size_t i = 0; i < SWITCH_COUNT && b->switching < 0; i++)
		if (b->switch_starts[i] && b->switch_starts[i] == fde->start)
			b->switching = i;
	r->location = fde->start;
	r->c = cfi_cursor(b->frames, r->cie->section, fde->instructions, fde->size);
	while (!err && r->c.at < r->c.end && r->location < fde->limit) {
		uint64_t location = r->location;

		if (!execute(r)) {
			r->now = (struct state){ 0 };
			break;
		}
		if (r->location > location)
			err = add_state(b, MIN(r->location, fde->limit));
	}
	return err ?: add_state(b, fde->limit);
}

/* Adds a row of Go's own table, and before it those of the FDEs that begin before: C's. */
static int add_go_frame(void *context, const struct go_frame *frame)
{
	const struct cfi_frames *f;
	struct builder *b = context;
	const struct machine *m = b->machine;
	const struct cfi_cie cie = { .return_register = m->return_address };
	uint64_t start = frame->start;
	struct state *s = &b->run.now;
	int err = 0;

	for (f = b->frames; !err && frame->is_first && b->next_fde < f->fde_count &&
			    f->fdes[b->next_fde].start <= start;)
		err = add_fde(b, &f->fdes[b->next_fde++]);
	if (err || start < b->end)
		return err;
	if (start > b->end)
		err = add_gap(b, start);
	b->end = start;
	if (frame->is_first) {
		b->switching = -1;
		for (size_t i = 0; frame->name && i < SWITCH_COUNT; i++)
			if (m->machine == EM_X86_64 && strcmp(switches[i].name, frame->name) == 0)
				b->switching = i;
	}
	/* As Go's linker writes it in .debug_frame: that a function has no caller, for arm64 only
	 */
	start_run(b, &cie, NULL);
	s->cfa = CFA_REGISTER;
	s->cfa_register = m->sp;
	s->cfa_offset = (int64_t)frame->size - m->return_at;
	s->caller = links(m) && frame->is_outermost ? CALLER_NONE : CALLER_SAVED;
	if (links(m) && frame->size > 0) {
		s->bx.kind = UNWIND_LOST;
		set_saved(&s->bx, UNWIND_SAVED_AT_CFA, -(int64_t)frame->size);
	}
	err = err ?: add_state(b, frame->limit);
	b->run.cie = NULL;
	return err;
}

/* table: Go's, which may have no code. */
static int build_rows(struct builder *b, struct go_table *table)
{
	const struct cfi_frames *f = b->frames;
	/*
	 * Compilers write some six rows a function, twice that in C with many saved registers. A
	 * file may have millions of functions without any. Unused room takes no memory.
	 */
	const size_t most = 1 << 20, rows = f->fde_count < most / 12 ? 12 * f->fde_count : most;
	struct run *r = &b->run;
	bool valid, is_described = false;
	int err = 0;

	if (!f->fde_count && !table->limit && !b->code->row_count)
		return 0;
	b->initial = calloc(f->cie_count + 1, sizeof(*b->initial));
	if (!b->initial ||
	    array_reserve(&b->rows->rows, &b->rows->room, rows, sizeof(*b->rows->rows))) {
		free(b->initial);
		return error_no_memory(b->e);
	}
	for (size_t i = 0; i < f->cie_count; i++) {
		const struct cfi_cie *cie = &f->cies[i];

		start_run(b, cie, NULL);
		r->c = cfi_cursor(f, cie->section, cie->instructions, cie->size);
		for (valid = true; valid && r->c.at < r->c.end;)
			valid = execute(r);
		if (valid)
			b->initial[i] = r->now;
	}
	/* If there is call frame information of Go's code, it is that of its own table. */
	for (size_t i = 0; i < f->fde_count && !is_described; i++)
		is_described = f->fdes[i].start >= table->start &&
			       f->fdes[i].start < table->limit &&
			       !f->cies[f->fdes[i].cie].section->eh;
	if (!is_described)
		err = go_table_frames(table, add_go_frame, b);
	while (!err && b->next_fde < f->fde_count)
		err = add_fde(b, &f->fdes[b->next_fde++]);
	free(b->initial);
	return err ?: add_gap(b, UINT64_MAX);
}

/* Finds Go's functions that switch stacks, if the file is Go's and has a symbol table. */
static void find_switches(struct builder *b, struct elf_file *file)
{
	bool assembly[SWITCH_COUNT] = { 0 }; /* found by the name with ".abi0" */
	struct symbol_reader reader;
	struct error ignored;
	GElf_Shdr section;
	const char *name;
	GElf_Sym symbol;

	if (!elf_find_section(file->elf, ".note.go.buildid", &section))
		return;
	if (symbol_reader_open(&reader, file, SHT_SYMTAB, &ignored) == 0)
		while (symbol_reader_next(&reader, &symbol, &name)) {
			if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
			    symbol.st_shndx == SHN_UNDEF || (*name != 'r' && *name != 't'))
				continue; /* as nearly all */
			for (size_t i = 0; i < SWITCH_COUNT; i++) {
				size_t length = strlen(switches[i].name);
				bool is_assembly;

				if (strncmp(name, switches[i].name, length) != 0)
					continue;
				is_assembly = strcmp(name + length, ".abi0") == 0;
				if (!is_assembly && (name[length] || assembly[i]))
					continue;
				b->switch_starts[i] = symbol.st_value;
				assembly[i] = is_assembly;
			}
		}
	symbol_reader_close(&reader);
}

static int read_rows(struct elf_file *file, struct unwind_rows *rows, struct error *e)
{
	const struct machine *machine = NULL;
	struct code_frames code = { 0 };
	struct cfi_frames frames;
	struct go_table table;
	struct builder *b;
	GElf_Ehdr header;
	int err;

	if (!gelf_getehdr(file->elf, &header))
		return 0;
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (machines[i].machine == header.e_machine &&
		    machines[i].class == header.e_ident[EI_CLASS])
			machine = &machines[i];
	if (!machine)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_no_memory(e);
	b->frames = &frames;
	b->code = &code;
	b->machine = machine;
	b->entry = header.e_entry;
	b->rows = rows;
	b->e = e;
	err = cfi_frames_read(&frames, file, e);
	if (!err && machine->machine == EM_X86_64)
		find_switches(b, file);
	go_table_open(&table, file, false);
	if (!err && !table.limit)
		err = code_frames_read(&code, file, &frames, e);
	err = err ?: build_rows(b, &table);
	go_table_close(&table);
	code_frames_free(&code);
	cfi_frames_free(&frames);
	index_free(&b->index);
	free(b);
	return err;
}

int cfi_read(int fd, const char *path, const struct context_wishes *wishes,
	     struct read_budget *budget, struct unwind_rows *rows, struct error *e)
{
	struct elf_file file;
	GElf_Phdr segment;
	int err, own;

	*rows = (struct unwind_rows){ 0 };
	if (fd >= 0)
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	else if (strcmp(path, "[vdso]") == 0)
		own = elf_open_vdso();
	else
		return 0;
	if (own < 0)
		return error_set(e, fd >= 0 ? errno : -own, "cannot read it");
	err = elf_file_open(&file, own, budget, e);
	if (err)
		return err;
	for (size_t i = 0; rows->segment_count < UNWIND_SEGMENTS_MAX &&
			   elf_next_segment(file.elf, &i, PT_LOAD, &segment);)
		if (segment.p_flags & PF_X)
			rows->segments[rows->segment_count++] = (struct unwind_segment){
				.offset = segment.p_offset,
				.size = segment.p_filesz,
				.address = segment.p_vaddr,
			};
	err = read_rows(&file, rows, e);
	language_find(&file, &rows->language);
	context_find(&file, path, wishes, &rows->context);
	rows->build_id_size = file.build_id_size;
	rows->build_id_size = MIN(rows->build_id_size, sizeof(rows->build_id));
	memcpy(rows->build_id, file.build_id, rows->build_id_size);
	elf_file_close(&file);
	if (err)
		unwind_rows_free(rows);
	return err;
}

ORDER(compare_functions, struct cfi_function, LEAST(start))

int cfi_functions_read(struct cfi_functions *functions, const struct elf_file *file,
		       struct error *e)
{
	struct code_frames code = { 0 };
	struct cfi_frames frames;
	int err = cfi_frames_read(&frames, file, e);
	uint64_t end = 0;

	*functions = (struct cfi_functions){ 0 };
	err = err ?: code_frames_read(&code, file, &frames, e);
	if (!err && frames.fde_count + code.function_count) {
		functions->all =
			calloc(frames.fde_count + code.function_count, sizeof(*functions->all));
		err = functions->all ? 0 : error_no_memory(e);
	}
	for (size_t i = 0; i < frames.fde_count && !err; i++) {
		const struct cfi_fde *fde = &frames.fdes[i];

		if (fde->limit <= end)
			continue;
		functions->all[functions->count].start = MAX(fde->start, end);
		functions->all[functions->count++].limit = fde->limit;
		end = fde->limit;
	}
	/* These are between those. */
	for (size_t i = 0; i < code.function_count && !err; i++)
		functions->all[functions->count++] = code.functions[i];
	if (!err && code.function_count)
		qsort(functions->all, functions->count, sizeof(*functions->all), compare_functions);
	code_frames_free(&code);
	cfi_frames_free(&frames);
	return err;
}

void cfi_functions_free(struct cfi_functions *functions)
{
	free(functions->all);
	*functions = (struct cfi_functions){ 0 };
}

ORDER_OF_KEY(compare_function, uint64_t, struct cfi_function, *a < b->start ? -1 : *a >= b->limit)

const struct cfi_function *cfi_functions_find(const struct cfi_functions *functions,
					      uint64_t address)
{
	if (!functions->count)
		return NULL;
	return bsearch(&address, functions->all, functions->count, sizeof(*functions->all),
		       compare_function);
}
