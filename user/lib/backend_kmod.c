// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The place of the kernel module, which counts into the caller's buffer. It is not written yet. */
#include "lib/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/error.h"

#define DEVICE "/dev/profil"

static int kmod_start(struct profil_session *s)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	(void)s;
	if (fd < 0)
		return profil__system_error("cannot open " DEVICE);
	close(fd);
	return profil__error(ENOTSUP, "this libprofil does not know " DEVICE " yet");
}

const struct backend profil__backend_kmod = {
	.name = "kmod",
	.direct = true,
	.start = kmod_start,
};
