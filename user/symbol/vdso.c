// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/vdso.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

int vdso_open(void)
{
	const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t size;
	int fd;

	if (!header)
		return -ENOENT;
	/* Its section headers are the last of it. */
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
