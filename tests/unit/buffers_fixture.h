/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock of tests/lib.sh for the kernel's buffers of records of all processes, which each
 * recording of the machine has.
 */
#ifndef PROFIL_TESTS_BUFFERS_FIXTURE_H
#define PROFIL_TESTS_BUFFERS_FIXTURE_H

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/*
 * LOCK_SH: no other test makes more records than the buffers hold; LOCK_EX: nor does another test
 * rely on having its records. Until free_buffers() of what is returned.
 */
static inline int lock_buffers(int how)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);

	flock(fd, how);
	return fd;
}

/* Children that were forked meanwhile have the descriptor, too. */
static inline void free_buffers(int fd)
{
	flock(fd, LOCK_UN);
	close(fd);
}

#endif
