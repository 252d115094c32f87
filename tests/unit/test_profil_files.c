// SPDX-License-Identifier: GPL-2.0-only
/* What libprofil reads to write its files: mappings and ELF files, valid and corrupt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/segments.h"
#include "lib/maps.h"
#include "lib/profil.h"
#include "lib/session.h"
#include "lib/sessions.h"

#define PAGE 4096

/* --- Mappings --- */

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ .data = (char *)text, .size = strlen(text) };
}

static void test_maps(void **state)
{
	const struct bytes text =
		bytes_of("00400000-00452000 r-xp 00001000 08:02 173521 /usr/bin/a b (deleted)\n"
			 "no mapping\n"
			 "00451000-00460000 r-xp 00000000 08:02 1 /overlaps\n"
			 "00460000-00460000 r-xp 00000000 08:02 1 /empty\n"
			 "00652000-00653000 rw-p 00052000 08:02 173521 /usr/bin/a b (deleted)\n"
			 "00653000-00654000 rw-p 00000000 00:00 0 \n"
			 "00655000-00656000 rw-p 00000000 08:02 9 /new\\012line\n"
			 "f7fc9000-f7fcb000 r-xp 00000000 00:00 0 [vdso]\n"
			 "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]");
	static const char *const paths[] = { "/usr/bin/a b", "/usr/bin/a b", "",
					     "/new\nline",   "[vdso32]",     "[vsyscall]" };
	static const uint32_t images[] = { 0, 0, 2, 3, 4, 5 };
	struct maps maps;

	(void)state;
	assert_int_equal(profil__maps_parse(&maps, &text), 0);
	assert_int_equal(maps.count, sizeof(images) / sizeof(*images));
	for (size_t i = 0; i < maps.count; i++) {
		assert_string_equal(maps.all[i].path, paths[i]);
		assert_int_equal(maps.images[i], images[i]);
	}
	assert_int_equal(maps.all[0].offset, 0x1000);
	assert_int_equal(maps.all[1].inode, 173521);
	assert_null(profil__maps_find(&maps, 0x3fffff));
	assert_ptr_equal(profil__maps_find(&maps, 0x400000), &maps.all[0]);
	assert_ptr_equal(profil__maps_find(&maps, 0x451fff), &maps.all[0]);
	assert_null(profil__maps_find(&maps, 0x452000));
	assert_ptr_equal(profil__maps_find(&maps, 0xffffffffff600fff), &maps.all[5]);
	assert_null(profil__maps_find(&maps, UINT64_MAX));
	profil__maps_free(&maps);
	assert_int_equal(profil__maps_parse(&maps, &(struct bytes){ 0 }), 0);
	assert_null(profil__maps_find(&maps, 0));
	profil__maps_free(&maps);
}

/* --- ELF files --- */

/* In memory, directly before a page that cannot be read. */
struct file {
	Elf64_Ehdr e;
	Elf64_Phdr p[4];
	struct {
		Elf64_Nhdr n;
		char name[8];
		unsigned char text[4];
	} other;
	struct {
		Elf64_Nhdr n;
		char name[4];
		unsigned char id[20];
	} build_id;
};

static char *page; /* a file ends with this page */

static const struct file good = {
	.e = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_phoff = offsetof(struct file, p),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 4,
	},
	.p = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0, .p_filesz = 0x1000 },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x1000,
		  .p_vaddr = 0x402000, .p_filesz = 0x234 },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x2000,
		  .p_vaddr = 0x403000, .p_filesz = 0x10 },
		{ .p_type = PT_NOTE, .p_offset = offsetof(struct file, other),
		  .p_filesz = sizeof(struct file) - offsetof(struct file, other), .p_align = 4 },
	},
	.other = { { 5, 4, NT_GNU_BUILD_ID }, "else", { 9, 9, 9, 9 } },
	.build_id = { { 4, 20, NT_GNU_BUILD_ID }, "GNU", { 0xab, 1, 2, [19] = 0xcd } },
};

/* Reads the memory as if it were the mapping of a vDSO of `size` bytes. */
static void read_file(const struct file *file, size_t size, struct image *image)
{
	struct proc_map map = { .path = (char *)"[vdso]" };
	struct maps maps = { .all = &map, .images = (uint32_t[]){ 0 }, .count = 1 };
	char *at = page + PAGE - size;

	memcpy(at, file, size);
	map.start = (uintptr_t)at;
	map.limit = map.start + size;
	assert_int_equal(profil__image_read(image, 0, &maps, 0), 0);
}

static void test_image(void **state)
{
	struct image image;
	uint64_t address;

	(void)state;
	read_file(&good, sizeof(good), &image);
	assert_string_equal(image.id, "ab010200000000000000000000000000000000cd");
	assert_int_equal(image.segment_count, 3);
	assert_int_equal(image.text_start, 0x402000);
	assert_int_equal(image.text_size, 0x1010);
	assert_true(profil__image_address(&image, 0x1233, &address));
	assert_int_equal(address, 0x402233);
	assert_false(profil__image_address(&image, 0x1234, &address));
	assert_true(profil__image_address(&image, 0xfff, &address));
	assert_int_equal(address, 0xfff);
	assert_false(profil__image_address(&image, UINT64_MAX, &address));
	profil__image_free(&image);
}

static void reads_nothing(const struct file *file, size_t size)
{
	struct image image;

	read_file(file, size, &image);
	assert_int_equal(image.segment_count, 0);
	assert_string_equal(image.id, "");
	profil__image_free(&image);
}

static void test_no_image(void **state)
{
	struct file file;

	(void)state;
	for (size_t size = 0; size < offsetof(struct file, other); size++)
		reads_nothing(&good, size);
	file = good;
	file.e.e_ident[EI_DATA] = ELFDATA2MSB;
	reads_nothing(&file, sizeof(file));
	file = good;
	file.e.e_phnum = 0xffff;
	reads_nothing(&file, sizeof(file));
	file = good;
	file.e.e_phentsize = 1;
	reads_nothing(&file, sizeof(file));
	file = good;
	file.e.e_phoff = -8;
	reads_nothing(&file, sizeof(file));
}

/* Valid segments, and no build ID. */
static void has_no_id(const struct file *file)
{
	struct image image;

	read_file(file, sizeof(*file), &image);
	assert_int_equal(image.segment_count, 3);
	assert_string_equal(image.id, "");
	profil__image_free(&image);
}

static void test_no_id(void **state)
{
	static const uint32_t sizes[] = { UINT32_MAX, UINT32_MAX - 3, 1 << 16, 25, 0x7fffffff };
	struct file file;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		file = good;
		file.build_id.n.n_descsz = sizes[i];
		has_no_id(&file);
		file = good;
		file.other.n.n_namesz = sizes[i];
		has_no_id(&file);
		file = good;
		file.other.n.n_descsz = sizes[i];
		has_no_id(&file);
	}
	file = good;
	file.p[3].p_filesz = UINT64_MAX;
	has_no_id(&file);
	file = good;
	file.p[3].p_offset = UINT64_MAX - 7;
	has_no_id(&file);
	file = good;
	file.build_id.n.n_type = NT_GNU_ABI_TAG;
	has_no_id(&file);
}

static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Whatever the contents, the reader ends and stays within bounds. */
static void test_damaged_images(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct file file = good;
		struct image image;
		uint64_t address;

		for (uint64_t n = random_u64() % 8; n; n--)
			((unsigned char *)&file)[random_u64() % sizeof(file)] = random_u64();
		read_file(&file, sizeof(file) - random_u64() % 32, &image);
		assert_true(image.segment_count <= 1024);
		assert_true(strlen(image.id) < sizeof(image.id));
		profil__image_address(&image, random_u64() >> random_u64() % 64, &address);
		profil__image_free(&image);
	}
}

/* --- Databases --- */

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
	(void)status;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int found;

static int count_one(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
	(void)path;
	(void)status;
	(void)ftw;
	found += flag == FTW_F;
	return 0;
}

static int files_in(const char *directory)
{
	found = 0;
	nftw(directory, count_one, 16, FTW_PHYS);
	return found;
}

/* DCPI files have 32 bits: if one count is too large, nothing is written. */
static void test_overflow(void **state)
{
	const struct region regions[] = { { .offset = 0x10000, .bufsiz = 8, .scale = 0x10000 } };
	char directory[] = "/tmp/profil-unit.XXXXXX";
	struct profil_session *s;

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(profil__session_make(&s, regions, 1, false), 0);
	s->counting.tick_ns = 10000000;
	s->counts[0] = UINT32_MAX;
	s->counts[2] = 1;
	assert_int_equal(profil_write_dcpi(s, directory), -EOVERFLOW);
	assert_non_null(strstr(profil_error(), "4294967296 samples"));
	assert_int_equal(files_in(directory), 0);
	s->counts[2] = 0;
	assert_int_equal(profil_write_dcpi(s, directory), 0);
	assert_string_equal(profil_error(), "");
	assert_int_equal(files_in(directory), 1);
	/* The sum would be too large. */
	assert_int_equal(profil_write_dcpi(s, directory), -EOVERFLOW);
	assert_int_equal(files_in(directory), 1);
	profil_session_free(s);
	assert_int_equal(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int make_page(void **state)
{
	(void)state;
	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED || mprotect(page + PAGE, PAGE, PROT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps),	       cmocka_unit_test(test_image),
		cmocka_unit_test(test_no_image),       cmocka_unit_test(test_no_id),
		cmocka_unit_test(test_damaged_images), cmocka_unit_test(test_overflow),
	};

	return cmocka_run_group_tests(tests, make_page, NULL);
}
