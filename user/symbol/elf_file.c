// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf_file.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/build_id.h"
#include "util/elf_header.h"
#include "util/file.h"

/*
 * The largest browsers' symbol tables, unstripped, are a quarter of this.
 * Bound: files: bytes of symbol tables and of notes; then: the file is refused.
 */
#define TABLES_MAX ((uint64_t)1024 * 1024 * 1024)
#define NOTES_MAX  ((uint64_t)4 * 1024 * 1024)

/*
 * Section names, which libelf reads as a whole: 65,000 of a kilobyte each.
 * Bound: files: bytes of section names; then: the file is refused.
 */
#define NAMES_MAX ((uint64_t)64 * 1024 * 1024)

/*
 * Notes before this in a segment or section are searched for the build ID.
 * Bound: files: bytes of notes in which the build ID is searched; then: it is not found behind
 * them.
 */
#define NOTE_MAX ((size_t)64 * 1024)

size_t elf_source_read(const struct elf_source *source, void *to, size_t size, uint64_t at)
{
	size_t done = 0;
	ssize_t n;

	if (at >= source->size)
		return 0;
	size = MIN(size, source->size - at);
	if (!read_budget_take(source->budget, size))
		return 0;
	if (source->memory) {
		memcpy(to, source->memory + at, size);
		return size;
	}
	while (done < size &&
	       (n = pread(source->fd, (char *)to + done, size - done, at + done)) > 0)
		done += n;
	return done;
}

/*
 * Reads the ELF header and checks it before libelf allocates memory by the number of sections.
 * Numbers above 16 bits, which ELF stores elsewhere, exist only in object files and core dumps.
 */
static int read_header(struct elf_header *h, const uint8_t *head, size_t size, bool object,
		       struct error *e)
{
	if (!elf_header_read(h, head, size))
		return error_set(e, 0, "not an ELF file");
	if (size < elf_header_size(h))
		return error_set(e, 0, "corrupt ELF file: it ends in its header");
	if (h->type != ET_EXEC && h->type != ET_DYN && !(object && h->type == ET_REL))
		return error_set(e, 0, "neither an ELF program nor a shared library");
	if (h->segment_count == PN_XNUM)
		return error_set(e, 0, "corrupt ELF file: too many program headers");
	if (h->sections && !h->section_count)
		return error_set(e, 0, "corrupt ELF file: too many sections");
	return 0;
}

/* How much libelf and libdwelf may read of a file. These are sums, since parts may overlap. */
struct sizes {
	uint64_t tables, notes;
};

/* Linkers do not compress these sections: a compressed one is malicious. */
static bool add_section(struct sizes *sizes, const GElf_Shdr *section)
{
	uint64_t *sum;

	if (section->sh_type == SHT_NOTE)
		sum = &sizes->notes;
	else if (section->sh_type == SHT_STRTAB || section->sh_type == SHT_SYMTAB ||
		 section->sh_type == SHT_DYNSYM)
		sum = &sizes->tables;
	else
		return true;
	return !(section->sh_flags & SHF_COMPRESSED) &&
	       !__builtin_add_overflow(*sum, section->sh_size, sum) && sizes->notes <= NOTES_MAX &&
	       sizes->tables <= TABLES_MAX;
}

static int check_parts(Elf *elf, struct error *e)
{
	struct sizes sizes = { 0 };
	Elf_Scn *scn = NULL;
	Elf_Data *last;
	size_t count, names;

	if (elf_getshdrstrndx(elf, &names))
		names = SHN_UNDEF;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr section;

		if (!gelf_getshdr(scn, &section))
			return error_set(e, 0, "corrupt ELF file: %s", elf_errmsg(-1));
		if (!add_section(&sizes, &section) ||
		    (elf_ndxscn(scn) == names && section.sh_size > NAMES_MAX))
			return error_set(e, 0,
					 "corrupt ELF file: section %zu is too large or compressed",
					 elf_ndxscn(scn));
		if (elf_ndxscn(scn) != names || !section.sh_size)
			continue;
		/*
		 * Without a last NUL, libelf would search one from the table's end, for each name.
		 */
		last = elf_getdata_rawchunk(elf, section.sh_offset + section.sh_size - 1, 1,
					    ELF_T_BYTE);
		if (last && *(const char *)last->d_buf)
			return error_set(
				e, 0, "corrupt ELF file: section %zu, of strings, ends within one",
				elf_ndxscn(scn));
	}
	if (elf_getphdrnum(elf, &count))
		return error_set(e, 0, "corrupt ELF file: %s", elf_errmsg(-1));
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, i, &segment))
			return error_set(e, 0, "corrupt ELF file: %s", elf_errmsg(-1));
		if (segment.p_type == PT_NOTE &&
		    (__builtin_add_overflow(sizes.notes, segment.p_filesz, &sizes.notes) ||
		     sizes.notes > NOTES_MAX))
			return error_set(e, 0, "corrupt ELF file: segment %zu is too large", i);
	}
	return 0;
}

/* Reads notes into `room` and searches them for the build ID. Returns whether it is there. */
static bool read_notes(struct elf_file *f, const struct elf_header *h, uint8_t *room,
		       uint64_t offset, uint64_t size, uint64_t align)
{
	size_t got = elf_source_read(&f->source, room, MIN(size, NOTE_MAX), offset);
	size_t id_size;
	const uint8_t *id = elf_find_build_id(h, room, got, align, &id_size);

	if (!id)
		return false;
	f->build_id_size = MIN(id_size, PROFILE_BUILD_ID_MAX);
	memcpy(f->build_id, id, f->build_id_size);
	return true;
}

/* The sections first: a debug file's segments are those of the stripped one. */
static int read_build_id(struct elf_file *f, const struct elf_header *h, struct error *e)
{
	uint8_t *room = malloc(NOTE_MAX);
	Elf_Scn *scn = NULL;
	bool found = false;
	GElf_Shdr section;
	GElf_Phdr segment;

	if (!room)
		return error_no_memory(e);
	while (!found && (scn = elf_nextscn(f->elf, scn)))
		if (gelf_getshdr(scn, &section) && section.sh_type == SHT_NOTE)
			found = read_notes(f, h, room, section.sh_offset, section.sh_size,
					   section.sh_addralign);
	for (size_t i = 0; !found && elf_next_segment(f->elf, &i, PT_NOTE, &segment);)
		found = read_notes(f, h, room, segment.p_offset, segment.p_filesz, segment.p_align);
	free(room);
	return 0;
}

bool elf_has_build_id(const struct elf_file *f, const uint8_t *id, size_t size)
{
	return f->build_id_size == size && size && memcmp(f->build_id, id, size) == 0;
}

/*
 * Copies a part of the file to its place in f->headers, where nothing but such parts takes memory.
 * A part that reaches beyond the file's end is cut off.
 */
static int load_part(struct elf_file *f, uint64_t offset, uint64_t size, struct error *e)
{
	uint64_t page = sysconf(_SC_PAGESIZE), start = offset / page * page;

	if (offset >= f->source.size || !size)
		return 0;
	size = MIN(size, f->source.size - offset);
	if (!read_budget_has_memory(f->source.budget, size))
		return error_set(e, 0, "its headers are too large");
	if (mprotect((char *)f->headers + start, offset + size - start, PROT_READ | PROT_WRITE))
		return error_set(e, errno, "cannot make room for its headers");
	if (elf_source_read(&f->source, (char *)f->headers + offset, size, offset) != size)
		return error_set(e, 0, "cannot read its headers");
	return 0;
}

/*
 * Reads all that libelf is to see, once, into memory that looks like the file: ELF header, program
 * headers, section headers and their names. A file that changes while it is read cannot make libelf
 * see something else than was checked. Only read-only memory of the file's size is mapped, so none
 * is reserved (not even with vm.overcommit_memory=2), and only what is filled is taken.
 */
static int load_headers(struct elf_file *f, const struct elf_header *h, const uint8_t *head,
			size_t head_size, struct error *e)
{
	size_t entry = elf_section_size(h);
	uint64_t names_at = h->sections + h->names * entry, offset, size;
	int err;

	f->headers = mmap(NULL, f->source.size, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->headers == MAP_FAILED) {
		f->headers = NULL;
		return error_set(e, errno, "cannot map memory of its size");
	}
	err = load_part(f, h->segments, h->segment_count * elf_segment_size(h), e);
	err = err ?: load_part(f, h->sections, h->section_count * entry, e);
	if (!err && h->names != SHN_UNDEF && h->names < h->section_count &&
	    h->sections < f->source.size &&
	    f->source.size - h->sections >= (h->names + 1) * entry) {
		elf_section_read(h, (const uint8_t *)f->headers + names_at, entry, &offset, &size);
		err = load_part(f, offset, MIN(size, NAMES_MAX), e);
	}
	if (!err && mprotect(f->headers, head_size, PROT_READ | PROT_WRITE))
		err = error_set(e, errno, "cannot make room for its headers");
	if (!err)
		memcpy(f->headers, head, head_size); /* last: parts may overlap */
	return err;
}

static int open_source(struct elf_file *f, bool object, struct error *e)
{
	uint8_t head[sizeof(Elf64_Ehdr)];
	size_t size = elf_source_read(&f->source, head, sizeof(head), 0);
	struct elf_header h;
	int err;

	if (!size && f->source.size)
		err = error_set(e, 0, "cannot read it");
	else
		err = read_header(&h, head, size, object, e);
	if (!err && !f->memory)
		err = load_headers(f, &h, head, size, e);
	if (!err) {
		elf_version(EV_CURRENT);
		f->elf = elf_memory(f->memory ?: f->headers, f->source.size);
		if (!f->elf || elf_kind(f->elf) != ELF_K_ELF)
			err = error_set(e, 0, "corrupt ELF file: %s", elf_errmsg(-1));
	}
	err = err ?: check_parts(f->elf, e);
	err = err ?: read_build_id(f, &h, e);
	if (err)
		elf_file_close(f);
	return err;
}

static int open_file(struct elf_file *f, int fd, struct read_budget *budget, bool object,
		     struct error *e)
{
	struct stat status;

	*f = (struct elf_file){ .source = { .fd = fd, .budget = budget } };
	if (fstat(fd, &status)) {
		int err = error_set(e, errno, "cannot read it");

		elf_file_close(f);
		return err;
	}
	f->source.size = status.st_size;
	return open_source(f, object, e);
}

int elf_file_open(struct elf_file *f, int fd, struct read_budget *budget, struct error *e)
{
	return open_file(f, fd, budget, false, e);
}

int elf_object_open(struct elf_file *f, int fd, struct read_budget *budget, struct error *e)
{
	return open_file(f, fd, budget, true, e);
}

int elf_file_open_memory(struct elf_file *f, void *memory, size_t size, struct read_budget *budget,
			 struct error *e)
{
	*f = (struct elf_file){
		.source = { .fd = -1, .memory = memory, .size = size, .budget = budget },
		.memory = memory,
	};
	return open_source(f, false, e);
}

void elf_file_close(struct elf_file *f)
{
	if (f->elf)
		elf_end(f->elf);
	if (f->headers)
		munmap(f->headers, f->source.size);
	file_close(f->source.fd);
	for (size_t i = 0; i < ELF_STRING_TABLES; i++)
		free(f->strings[i]);
	free(f->memory);
	*f = (struct elf_file){ .source.fd = -1 };
}

int elf_open_cached(const uint8_t *id, size_t size)
{
	const char *home = secure_getenv("HOME");
	char text[BUILD_ID_TEXT_SIZE], path[PATH_MAX];
	struct stat status;
	int fd;

	if (!home || size < 2)
		return -ENOENT;
	build_id_format(id, size, text);
	if (snprintf(path, sizeof(path), "%s/.debug/.build-id/%.2s/%s/elf", home, text, text + 2) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = file_open_regular_by_rules(-1, path, FILE_NO_FOREIGN_LINKS, &status);
	if (fd < 0 || file_is_of(&status, 0))
		return fd;
	close(fd);
	return -EACCES;
}

/* Of the process: it has, or has not, a file system. */
static struct {
	elf_opener *open;
	void *context;
} opener;

void elf_open_companions_by(elf_opener *open, void *context)
{
	opener.open = open;
	opener.context = context;
}

int elf_open_companion(int fd, int root, const char *path)
{
	struct stat status, other;
	int found;

	if (opener.open)
		return opener.open(opener.context, root, path);
	found = file_open_regular(root, path, &status);
	if (found < 0 || file_is_of(&status, fd >= 0 && !fstat(fd, &other) ? other.st_uid : 0))
		return found;
	close(found);
	return -EACCES;
}

int elf_open_vdso(void)
{
	const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t size;
	int fd;

	if (!header)
		return -ENOENT;
	/* The section headers are at its end. */
	size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, header, size) != (ssize_t)size) {
		close(fd);
		return -EIO;
	}
	return fd;
}

bool elf_debug_path(const uint8_t *id, size_t size, char path[ELF_DEBUG_PATH_SIZE])
{
	char text[BUILD_ID_TEXT_SIZE];

	if (size < 2)
		return false;
	build_id_format(id, size, text);
	sprintf(path, ELF_DEBUG_ROOT "/.build-id/%.2s/%s.debug", text, text + 2);
	return true;
}

static const char *section_name(Elf *elf, const GElf_Shdr *section)
{
	size_t names;

	return elf_getshdrstrndx(elf, &names) ? NULL : elf_strptr(elf, names, section->sh_name);
}

Elf_Scn *elf_find_section(Elf *elf, const char *name, GElf_Shdr *section)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		const char *found;

		if (!gelf_getshdr(scn, section) || section->sh_type == SHT_NOBITS)
			continue;
		found = section_name(elf, section);
		if (found && strcmp(found, name) == 0)
			return scn;
	}
	return NULL;
}

void *elf_section_bytes(const struct elf_file *f, const char *name, size_t size_max, size_t *size)
{
	GElf_Shdr section;
	Elf_Scn *scn = elf_find_section(f->elf, name, &section);
	void *bytes;

	if (!scn || !section.sh_size || section.sh_size > size_max ||
	    section.sh_size > f->source.size ||
	    !read_budget_has_memory(f->source.budget, section.sh_size))
		return NULL;
	*size = section.sh_size;
	bytes = malloc(*size);
	if (bytes && elf_source_read(&f->source, bytes, *size, section.sh_offset) == *size)
		return bytes;
	free(bytes);
	return NULL;
}

Elf_Scn *elf_find_type(Elf *elf, GElf_Word type, GElf_Shdr *section)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, section) && section->sh_type == type)
			break;
	return scn;
}

bool elf_next_segment(Elf *elf, size_t *i, GElf_Word type, GElf_Phdr *segment)
{
	size_t count;

	if (elf_getphdrnum(elf, &count))
		return false;
	while (*i < count)
		if (gelf_getphdr(elf, (*i)++, segment) && segment->p_type == type)
			return true;
	return false;
}

uint64_t elf_address_bytes(Elf *elf, uint64_t address, uint64_t *offset)
{
	GElf_Phdr segment;

	*offset = 0;
	for (size_t i = 0; elf_next_segment(elf, &i, PT_LOAD, &segment);)
		if (address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
			*offset = segment.p_offset + (address - segment.p_vaddr);
			return segment.p_filesz - (address - segment.p_vaddr);
		}
	return 0;
}

uint64_t elf_code_start(Elf *elf)
{
	uint64_t start = UINT64_MAX;
	Elf_Scn *scn = NULL;
	GElf_Shdr section;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &section) && (section.sh_flags & SHF_EXECINSTR) &&
		    section.sh_addr < start)
			start = section.sh_addr;
	return start;
}

size_t elf_plt_ranges(Elf *elf, struct elf_range *ranges, size_t max)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr section;
	size_t count = 0;

	while (count < max && (scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_ALLOC))
			continue;
		name = section_name(elf, &section);
		if (!name || strncmp(name, ".plt", strlen(".plt")) != 0)
			continue;
		ranges[count].section = elf_ndxscn(scn);
		ranges[count].start = section.sh_addr;
		if (__builtin_add_overflow(section.sh_addr, section.sh_size, &ranges[count].limit))
			ranges[count].limit = UINT64_MAX;
		count++;
	}
	return count;
}
