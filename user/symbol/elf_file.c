// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/file.h"

/* The largest browsers' symbol tables, unstripped, are a quarter of this. */
#define TABLES_MAX ((uint64_t)1024 * 1024 * 1024)
#define NOTES_MAX  ((uint64_t)4 * 1024 * 1024)

/* Section names, which libelf reads as a whole: 65,000 of a kilobyte each. */
#define NAMES_MAX ((uint64_t)64 * 1024 * 1024)

static uint64_t field(const uint8_t *bytes, size_t size, bool big_endian)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)bytes[i] << 8 * (big_endian ? size - 1 - i : i);
	return value;
}

/*
 * Checks the ELF header before libelf allocates memory by the number of sections. Numbers above 16
 * bits, which ELF stores elsewhere, exist only in object files and core dumps.
 */
static int check_header(const uint8_t *head, size_t size, bool object, struct error *e)
{
	bool big_endian, wide;
	uint64_t type, sections_at;

	if (size < SELFMAG || memcmp(head, ELFMAG, SELFMAG) != 0)
		return error_set(e, 0, "not an ELF file");
	if (size < sizeof(Elf32_Ehdr))
		return error_set(e, 0, "corrupt ELF file: it ends in its header");
	wide = head[EI_CLASS] == ELFCLASS64;
	if (size < sizeof(Elf64_Ehdr) && wide)
		return error_set(e, 0, "corrupt ELF file: it ends in its header");
	big_endian = head[EI_DATA] == ELFDATA2MSB;
	type = field(head + offsetof(Elf64_Ehdr, e_type), 2, big_endian);
	if (type != ET_EXEC && type != ET_DYN && !(object && type == ET_REL))
		return error_set(e, 0, "neither an ELF program nor a shared library");
	sections_at = wide ? field(head + offsetof(Elf64_Ehdr, e_shoff), 8, big_endian)
			   : field(head + offsetof(Elf32_Ehdr, e_shoff), 4, big_endian);
	head += wide ? offsetof(Elf64_Ehdr, e_phnum) : offsetof(Elf32_Ehdr, e_phnum);
	if (field(head, 2, big_endian) == PN_XNUM)
		return error_set(e, 0, "corrupt ELF file: too many program headers");
	head += offsetof(Elf64_Ehdr, e_shnum) - offsetof(Elf64_Ehdr, e_phnum);
	if (sections_at && !field(head, 2, big_endian))
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

static bool add_segment(struct sizes *sizes, const GElf_Phdr *segment)
{
	return segment->p_type != PT_NOTE ||
	       (!__builtin_add_overflow(sizes->notes, segment->p_filesz, &sizes->notes) &&
		sizes->notes <= NOTES_MAX);
}

/*
 * Whether a table of strings ends with a NUL, as all do. In one that does not, libelf searches the
 * last NUL from the table's end, for each string. A table beyond the file's end is not read.
 */
static bool is_terminated(Elf *elf, const GElf_Shdr *section)
{
	Elf_Data *last;

	if (section->sh_type != SHT_STRTAB || !section->sh_size)
		return true;
	last = elf_getdata_rawchunk(elf, section->sh_offset + section->sh_size - 1, 1, ELF_T_BYTE);
	return !last || !*(const char *)last->d_buf;
}

static int check_parts(Elf *elf, struct error *e)
{
	struct sizes sizes = { 0 };
	Elf_Scn *scn = NULL;
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
		if (!is_terminated(elf, &section))
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
		if (!add_segment(&sizes, &segment))
			return error_set(e, 0, "corrupt ELF file: segment %zu is too large", i);
	}
	return 0;
}

static int adopt(struct elf_file *f, struct error *e)
{
	int err;

	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF)
		err = error_set(e, 0, "corrupt ELF file: %s", elf_errmsg(-1));
	else
		err = check_parts(f->elf, e);
	if (err)
		elf_file_close(f);
	return err;
}

static int open_file(struct elf_file *f, int fd, bool object, struct error *e)
{
	uint8_t head[sizeof(Elf64_Ehdr)];
	ssize_t size;
	int err;

	*f = (struct elf_file){ .fd = fd };
	size = pread(fd, head, sizeof(head), 0);
	if (size < 0)
		err = error_set(e, errno, "cannot read it");
	else
		err = check_header(head, size, object, e);
	if (err) {
		elf_file_close(f);
		return err;
	}
	elf_version(EV_CURRENT);
	f->elf = elf_begin(fd, ELF_C_READ, NULL);
	return adopt(f, e);
}

int elf_file_open(struct elf_file *f, int fd, struct error *e)
{
	return open_file(f, fd, false, e);
}

int elf_object_open(struct elf_file *f, int fd, struct error *e)
{
	return open_file(f, fd, true, e);
}

int elf_file_open_memory(struct elf_file *f, void *memory, size_t size, struct error *e)
{
	int err;

	*f = (struct elf_file){ .fd = -1, .memory = memory };
	err = check_header(memory, size, false, e);
	if (err) {
		elf_file_close(f);
		return err;
	}
	elf_version(EV_CURRENT);
	f->elf = elf_memory(memory, size);
	return adopt(f, e);
}

void elf_file_close(struct elf_file *f)
{
	if (f->elf)
		elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->memory);
	*f = (struct elf_file){ .fd = -1 };
}

int elf_open_companion(int fd, int root, const char *path)
{
	struct stat status, other;
	int found = file_open_regular(root, path, &status);

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

size_t elf_build_id(Elf *elf, const uint8_t **id)
{
	const void *bytes;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);

	if (size <= 0)
		return 0;
	*id = bytes;
	return size < PROFILE_BUILD_ID_MAX ? size : PROFILE_BUILD_ID_MAX;
}

bool elf_has_build_id(Elf *elf, const uint8_t *id, size_t size)
{
	const uint8_t *own;

	return elf_build_id(elf, &own) == size && size && memcmp(own, id, size) == 0;
}

bool elf_debug_path(const uint8_t *id, size_t size, char path[ELF_DEBUG_PATH_SIZE])
{
	char *end = stpcpy(path, ELF_DEBUG_ROOT "/.build-id/");

	for (size_t i = 0; i < size; i++)
		end += sprintf(end, i == 1 ? "/%02x" : "%02x", id[i]);
	strcpy(end, ".debug");
	return size > 1;
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

Elf_Data *elf_section_bytes(Elf *elf, const char *name, size_t size_max)
{
	GElf_Shdr section;
	Elf_Scn *scn = elf_find_section(elf, name, &section);

	return scn && section.sh_size <= size_max ? elf_rawdata(scn, NULL) : NULL;
}

Elf_Scn *elf_find_type(Elf *elf, GElf_Word type, GElf_Shdr *section)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, section) && section->sh_type == type)
			break;
	return scn;
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

size_t elf_section_ranges(Elf *elf, const char *prefix, struct elf_range *ranges, size_t max)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr section;
	size_t count = 0;

	while (count < max && (scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_ALLOC))
			continue;
		name = section_name(elf, &section);
		if (!name || strncmp(name, prefix, strlen(prefix)) != 0)
			continue;
		ranges[count].section = elf_ndxscn(scn);
		ranges[count].start = section.sh_addr;
		if (__builtin_add_overflow(section.sh_addr, section.sh_size, &ranges[count].limit))
			ranges[count].limit = UINT64_MAX;
		count++;
	}
	return count;
}
