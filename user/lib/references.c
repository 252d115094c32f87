// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/references.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/backend.h"

/* The tables of a loaded image, by its dynamic section. */
struct tables {
	const ElfW(Sym) * symbols;
	const char *names;
	const uint32_t *gnu_hash, *hash; /* NULL: none */
	const char *soname;
};

/* glibc relocates the section's pointers in place, except in the vDSO; other loaders do not. */
static const void *pointer(const struct dl_phdr_info *info, const ElfW(Dyn) * entry)
{
	uintptr_t value = entry->d_un.d_ptr;

	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static bool find_tables(const struct dl_phdr_info *info, struct tables *t)
{
	const ElfW(Dyn) *entry = NULL;
	size_t soname = 0;

	*t = (struct tables){ 0 };
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_SYMTAB:
			t->symbols = pointer(info, entry);
			break;
		case DT_STRTAB:
			t->names = pointer(info, entry);
			break;
		case DT_GNU_HASH:
			t->gnu_hash = pointer(info, entry);
			break;
		case DT_HASH:
			t->hash = pointer(info, entry);
			break;
		case DT_SONAME:
			soname = entry->d_un.d_val;
			break;
		}
	}
	if (!t->symbols || !t->names)
		return false;
	t->soname = t->names + soname;
	return true;
}

static bool has_malloc(const struct dl_phdr_info *info)
{
	uintptr_t at = (uintptr_t)&malloc - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && at - part->p_vaddr < part->p_memsz)
			return true;
	}
	return false;
}

enum found {
	FOUND_NONE,
	FOUND_REFERENCE,
	FOUND_MALLOC, /* the program's own */
};

/* The GNU hash table has the number of the first symbol that is defined; the other kind, of all. */
static int find_reference(struct dl_phdr_info *info, size_t size, void *context)
{
	static const char *const ours[] = { "profil", "sprofil", "monstartup", "moncontrol" };
	bool *is_library = context; /* the first image is the program */
	struct tables t;
	uint32_t end;

	(void)size;
	if (!*is_library && has_malloc(info))
		return FOUND_MALLOC;
	*is_library = true;
	/* libprofil-gmon refers to profil() in whatever program it is preloaded. */
	if (!find_tables(info, &t) || strcmp(t.soname, "libprofil-gmon.so") == 0)
		return FOUND_NONE;
	end = t.gnu_hash ? t.gnu_hash[1] : t.hash ? t.hash[1] : 0;
	for (uint32_t i = 1; i < end; i++)
		for (size_t k = 0; k < sizeof(ours) / sizeof(*ours); k++)
			if (t.symbols[i].st_shndx == SHN_UNDEF &&
			    strcmp(t.names + t.symbols[i].st_name, ours[k]) == 0)
				return FOUND_REFERENCE;
	return FOUND_NONE;
}

bool profil__is_referenced(void)
{
	bool is_library = false;

	/* A static program has the library because it refers to it. */
	return !&profil__backend_libc ||
	       dl_iterate_phdr(find_reference, &is_library) == FOUND_REFERENCE;
}
