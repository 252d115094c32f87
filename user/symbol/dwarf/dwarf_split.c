// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/dwarf/dwarf_split.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* .gnu_debugaltlink: a name, a '\0', and a build ID. */
struct link {
	const char *name;
	const uint8_t *build_id;
	size_t build_id_size;
};

/* of: the file with the link */
static bool open_link(const struct link *link, const struct elf_source *of, int root,
		      const char *path, struct elf_file *elf)
{
	int fd = elf_open_companion(of->fd, root, path);
	struct error ignored;

	if (fd < 0 || elf_object_open(elf, fd, of->budget, &ignored))
		return false;
	if (elf_has_build_id(elf, link->build_id, link->build_id_size))
		return true;
	elf_file_close(elf);
	return false;
}

int dwarf_open_alternate(struct dwarf_file *file, int root)
{
	const struct elf_source *source = &file->elf.source;
	char self[32], from[PATH_MAX], path[2 * PATH_MAX + 2];
	struct elf_file elf;
	size_t size, length;
	char *bytes = elf_section_bytes(&file->elf, ".gnu_debugaltlink",
					PATH_MAX + PROFILE_BUILD_ID_MAX, &size);
	struct link link = { .name = bytes };
	bool found;
	ssize_t n;

	length = bytes ? strnlen(bytes, size) : 0;
	if (!length || length >= PATH_MAX || size < length + 3 ||
	    size - length - 1 > PROFILE_BUILD_ID_MAX) {
		free(bytes);
		return 0;
	}
	link.build_id = (const uint8_t *)bytes + length + 1;
	link.build_id_size = size - length - 1;
	found = elf_debug_path(link.build_id, link.build_id_size, path) &&
		open_link(&link, source, root, path, &elf);
	if (!found && link.name[0] == '/') {
		found = open_link(&link, source, root, link.name, &elf);
	} else if (!found && root < 0) {
		/* A relative name is relative to the directory of the file with the link. */
		snprintf(self, sizeof(self), "/proc/self/fd/%d", source->fd);
		n = readlink(self, from, sizeof(from) - 1);
		if (n > 0) {
			from[n] = '\0';
			snprintf(path, sizeof(path), "%s/%s", dirname(from), link.name);
			found = open_link(&link, source, root, path, &elf);
		}
	}
	free(bytes);
	if (!found)
		return -ENOENT;
	file->alternate = calloc(1, sizeof(*file->alternate));
	if (!file->alternate) {
		elf_file_close(&elf);
		return -ENOMEM;
	}
	file->alternate->elf = elf;
	file->alternate->owned = true;
	file->alternate->room = file->room;
	return dwarf_file_open(file->alternate);
}

/* The sections of an index's columns, by their numbers, where it is another one than DWARF_INFO. */
static const enum dwarf_section_kind columns[] = {
	[3] = DWARF_ABBREV,
	[4] = DWARF_LINE,
	[6] = DWARF_STR_OFFSETS,
	[8] = DWARF_RNGLISTS, /* in version 5; version 2 is GNU's, for DWARF 4 */
};

/* The index of a .dwp file, which is many .dwo files in one, by their IDs. */
struct package_index {
	struct dwarf_section section;
	uint64_t version, columns, units, slots;
};

/* The row of a unit, from 1 on; 0: not found. */
static uint64_t find_row(struct package_index *x, uint64_t id)
{
	uint64_t mask = x->slots - 1, slot = id & mask, step = ((id >> 32) & mask) | 1;

	for (uint64_t tried = 0; tried < x->slots && tried < 65536; tried++) {
		uint64_t found, row;

		if (!dwarf_section_number(&x->section, 16 + 8 * slot, 8, &found) ||
		    !dwarf_section_number(&x->section, 16 + 8 * x->slots + 4 * slot, 4, &row) ||
		    !row)
			return 0;
		if (found == id)
			return row <= x->units ? row : 0;
		slot = (slot + step) & mask;
	}
	return 0;
}

/* Sets file->part. Returns whether the package has the unit. */
static bool find_parts(struct dwarf_file *file, uint64_t id)
{
	struct package_index x;
	uint64_t row = 0;
	bool found;

	if (dwarf_section_open(&x.section, &file->elf, ".debug_cu_index", file->room))
		return false;
	if (dwarf_section_number(&x.section, 0, 4, &x.version) &&
	    dwarf_section_number(&x.section, 4, 4, &x.columns) &&
	    dwarf_section_number(&x.section, 8, 4, &x.units) &&
	    dwarf_section_number(&x.section, 12, 4, &x.slots)) {
		/* In DWARF 5 the version has two bytes, and two bytes of padding follow. */
		if (x.version != 2)
			x.version = x.section.big_endian ? x.version >> 16 : x.version & 0xffff;
		if ((x.version == 2 || x.version == 5) && x.slots && !(x.slots & (x.slots - 1)) &&
		    x.columns <= 16)
			row = find_row(&x, id);
	}
	found = row > 0;
	for (uint64_t i = 0; found && i < x.columns; i++) {
		uint64_t table = 16 + 12 * x.slots, number, offset;
		found = dwarf_section_number(&x.section, table + 4 * i, 4, &number) &&
			dwarf_section_number(&x.section, table + 4 * (row * x.columns + i), 4,
					     &offset);
		if (found && number < sizeof(columns) / sizeof(*columns) &&
		    (number == 1 || columns[number]) && (number != 8 || x.version == 5))
			file->part[columns[number]] = offset;
	}
	dwarf_section_close(&x.section);
	return found;
}

/*
 * Opens a .dwo file, or a package of them, and reads the skeleton's unit in it. Returns 0, or
 * closes the file and returns -ENOENT or an error of dwarf_section_open().
 */
static int open_split_file(const struct dwarf_unit *skeleton, int root, const char *path,
			   bool package, struct dwarf_file *file, struct dwarf_unit *unit)
{
	const struct elf_source *source = &skeleton->file->elf.source;
	int fd = elf_open_companion(source->fd, root, path), err;
	struct error ignored;

	*file = (struct dwarf_file){ .split = true, .owned = true, .room = skeleton->file->room };
	if (fd < 0 || elf_object_open(&file->elf, fd, source->budget, &ignored)) {
		*file = (struct dwarf_file){ 0 };
		return -ENOENT;
	}
	file->skeleton = skeleton;
	err = dwarf_file_open(file);
	if (!err && package && !find_parts(file, skeleton->id))
		err = -ENOENT;
	if (!err) {
		err = dwarf_unit_read(file, file->part[DWARF_INFO], unit);
		if (err != -ENOMEM && (err || unit->id != skeleton->id))
			err = -ENOENT;
	}
	if (err)
		dwarf_file_close(file);
	return err;
}

static bool copy_text(const struct dwarf_text *text, char *copy, size_t size)
{
	const char *string =
		text->section ? dwarf_section_string(text->section, text->offset) : NULL;

	if (!string || strlen(string) >= size)
		return false;
	strcpy(copy, string);
	return true;
}

int dwarf_open_split(const struct dwarf_unit *skeleton, int root, const char *image,
		     struct dwarf_file *file, struct dwarf_unit *unit)
{
	char name[PATH_MAX], directory[PATH_MAX], beside[PATH_MAX], path[2 * PATH_MAX + 2];
	int err;

	snprintf(path, sizeof(path), "%s.dwp", image);
	err = open_split_file(skeleton, root, path, true, file, unit);
	if (err != -ENOENT)
		return err;
	if (!copy_text(&skeleton->dwo_name, name, sizeof(name)) || strlen(image) >= sizeof(beside))
		return -ENOENT;
	if (*name == '/' || !copy_text(&skeleton->directory, directory, sizeof(directory)))
		strcpy(path, name);
	else
		snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (*path == '/')
		err = open_split_file(skeleton, root, path, false, file, unit);
	if (err != -ENOENT)
		return err;
	strcpy(beside, image);
	snprintf(path, sizeof(path), "%s/%s", dirname(beside), basename(name));
	return open_split_file(skeleton, root, path, false, file, unit);
}
