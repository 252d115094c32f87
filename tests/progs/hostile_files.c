// SPDX-License-Identifier: GPL-2.0-only
/*
 * hostile_files DIRECTORY COUNT MIB [flip]: makes COUNT libraries, whose symbol table has MIB MiB
 * of null symbols, which take no space on disk, prints "ready", and runs their code in turn for ten
 * minutes. With flip a thread changes the first one's number of sections meanwhile between the true
 * one and 0, where the size of section 0 says that there are millions.
 */
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CODE_AT	    0x1000
#define SECTIONS_AT 0x2000
#define SYMBOLS_AT  0x4000
#define MILLIONS    20000000

#ifdef __aarch64__
#define CODE_MACHINE EM_AARCH64
/* 1: subs x0, x0, #1; b.ne 1b; ret */
static const unsigned char code[] = { 0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff,
				      0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6 };
#else
#define CODE_MACHINE EM_X86_64
/* 1: dec %rdi; jnz 1b; ret */
static const unsigned char code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#endif

static const char names[] = "\0.text\0.symtab\0.strtab";

struct sections {
	Elf64_Shdr none, text, symbols, strings;
	char names[sizeof(names)];
};

static int make(const char *path, uint64_t symbols_size)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = CODE_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_shoff = SECTIONS_AT,
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3,
	};
	const Elf64_Phdr segment = { PT_LOAD, PF_R | PF_X, CODE_AT, CODE_AT,
				     CODE_AT, 0x1000,	   0x1000,  0x1000 };
	struct sections s = {
		.text = { 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE_AT, CODE_AT, 0x1000, 0,
			  0, 16, 0 },
		.symbols = { 7, SHT_SYMTAB, 0, 0, SYMBOLS_AT, symbols_size / 24 * 24, 3, 1, 8,
			     sizeof(Elf64_Sym) },
		.strings = { 15, SHT_STRTAB, 0, 0, SECTIONS_AT + offsetof(struct sections, names),
			     sizeof(names), 0, 0, 1, 0 },
	};
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);

	memcpy(s.names, names, sizeof(names));
	if (fd < 0 || pwrite(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    pwrite(fd, &segment, sizeof(segment), sizeof(header)) != sizeof(segment) ||
	    pwrite(fd, code, sizeof(code), CODE_AT) != sizeof(code) ||
	    pwrite(fd, &s, sizeof(s), SECTIONS_AT) != sizeof(s) ||
	    ftruncate(fd, SYMBOLS_AT + symbols_size)) {
		perror(path);
		exit(1);
	}
	return fd;
}

static void *flip(void *file)
{
	char *head = file;
	atomic_ushort *count = (atomic_ushort *)(head + offsetof(Elf64_Ehdr, e_shnum));

	for (;;) {
		*count = 0;
		for (volatile int i = 0; i < 300; i++)
			;
		*count = 4;
		for (volatile int i = 0; i < 300; i++)
			;
	}
	return NULL;
}

static void start_flipping(int fd)
{
	uint64_t millions = MILLIONS;
	pthread_t thread;
	void *head;

	if (pwrite(fd, &millions, sizeof(millions), SECTIONS_AT + offsetof(Elf64_Shdr, sh_size)) !=
		    sizeof(millions) ||
	    ftruncate(fd, SECTIONS_AT + MILLIONS * sizeof(Elf64_Shdr)) ||
	    (head = mmap(NULL, CODE_AT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED ||
	    pthread_create(&thread, NULL, flip, head)) {
		perror("flip");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[2]) : 0;
	void (**run)(long) = calloc(count + 1, sizeof(*run));
	time_t end = time(NULL) + 600;

	for (int i = 0; i < count; i++) {
		char path[4096];
		int fd;

		snprintf(path, sizeof(path), "%s/hostile%d.so", argv[1], i);
		fd = make(path, strtoull(argv[3], NULL, 10) << 20);
		run[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, CODE_AT);
		if (run[i] == MAP_FAILED) {
			perror(path);
			return 1;
		}
		if (!i && argc > 4)
			start_flipping(fd);
		close(fd);
	}
	puts("ready");
	fflush(stdout);
	while (count && time(NULL) < end)
		for (int i = 0; i < count; i++)
			run[i](300000);
	return count ? 0 : 2;
}
