// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The kernel module, which counts in the memory of the process itself: kmod/device.h. It counts in
 * the caller's buffers; for a session, in memory of the library, whose 32-bit cells are the low
 * halves of the session's counts.
 *
 * No descriptor is kept open, as the program might close it and open something else under its
 * number. Profiling can be turned off even if the device cannot be opened any more: the module
 * stops when memory is unmapped that it was given as a buffer.
 */
#include "lib/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kmod/device.h"
#include "lib/device_regions.h"
#include "lib/last_error.h"
#include "lib/memory.h"
#include "lib/session.h"
#include "lib/verbose.h"

#define PARAMETERS "/sys/module/profil/parameters/"

/* The session that started last: the module has one request for each process. */
static const struct profil_session *counting;

/* Returns 0, or -1 with errno. */
static int ask_device(unsigned long request, void *argument)
{
	int fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC | O_NOCTTY), result, code;

	if (fd < 0)
		return -1;
	result = ioctl(fd, request, argument);
	code = errno;
	close(fd);
	errno = code;
	return result;
}

static int query_device(struct profil_device_query *answer)
{
	*answer = (struct profil_device_query){ .size = sizeof(*answer) };
	return ask_device(PROFIL_IOC_QUERY, answer);
}

/* Sets profil__error() for an errno of the device. Returns a negative errno. */
static int device_error(void)
{
	switch (errno) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return profil__error(errno, "there is no " PROFIL_DEVICE
					    ": has root loaded profil.ko (modprobe profil)?");
	case EACCES:
		return profil__error(errno, PROFIL_DEVICE
				     ": permission denied: its mode is 0666 by default");
	case EPERM:
		return profil__error(EPERM, PROFIL_DEVICE
				     ": not permitted: a container needs --device " PROFIL_DEVICE);
	case EDQUOT:
		return profil__error(EDQUOT, "your user has as many profiled processes as root "
					     "allows in " PARAMETERS "max_processes");
	case ENOTTY:
	case EINVAL:
	case E2BIG:
		return profil__error(ENOTSUP,
				     PROFIL_DEVICE " is of another version than libprofil: "
						   "install both from one release");
	default:
		return profil__system_error("cannot use " PROFIL_DEVICE);
	}
}

/* Whether the module is loaded and can count for the session. Returns 0 or a negative errno. */
static int check_device(const struct profil_session *s)
{
	struct profil_device_query answer;

	if (query_device(&answer))
		return device_error();
	if (answer.version != PROFIL_DEVICE_VERSION)
		return profil__error(ENOTSUP,
				     PROFIL_DEVICE " has version %u, libprofil needs %u: install "
						   "both from one release",
				     answer.version, PROFIL_DEVICE_VERSION);
	if (answer.flags & PROFIL_ON)
		return profil__error(EBUSY, "profil.ko counts for the process already: one "
					    "session or profil() at a time");
	if (s->hz > answer.max_hz)
		return profil__error(EINVAL,
				     "%u ticks per second: root allows %u in " PARAMETERS "max_hz",
				     s->hz, answer.max_hz);
	if (s->plan.range_count >= answer.max_regions)
		return profil__error(EINVAL,
				     "%zu regions, and one of libprofil: root allows %u "
				     "in " PARAMETERS "max_regions",
				     s->plan.range_count, answer.max_regions);
	return 0;
}

/* The module stops here at the latest. */
static void kmod_release(struct profil_session *s)
{
	if (s->handle)
		munmap(s->handle, profil__device_memory_size(&s->plan));
	s->handle = NULL;
}

static void take_totals(struct profil_session *s)
{
	struct profil_device_query answer;

	if (query_device(&answer) || !(answer.flags & PROFIL_ON))
		return;
	s->latest_out_of_range = answer.out_of_range;
	s->latest_lost = answer.lost;
	if (!s->counts) /* in the caller's buffers */
		s->in_range = answer.counted;
}

static void kmod_update(struct profil_session *s)
{
	const uint32_t *cells = s->handle;

	if (!s->counts)
		return;
	take_totals(s);
	for (uint32_t i = 0; i < s->plan.cell_count; i++) {
		uint32_t low = __atomic_load_n(&cells[i], __ATOMIC_RELAXED);
		uint32_t more = low - (uint32_t)s->counts[i];

		if (more) {
			s->counts[i] += more;
			s->in_range += more;
		}
	}
}

/* The child inherits a copy of the cells, but not the module's totals. */
static void kmod_before_fork(struct profil_session *s)
{
	if (s->counts)
		take_totals(s);
}

static int kmod_start(struct profil_session *s)
{
	struct profil_device_set request = { .size = sizeof(request), .hz = s->hz };
	struct device_regions made;
	int err = check_device(s);

	if (err || s->trial)
		return err;
	s->handle = mmap(NULL, profil__device_memory_size(&s->plan), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->handle == MAP_FAILED) {
		s->handle = NULL;
		return profil__error(ENOMEM, "out of memory for %u cells", s->plan.cell_count);
	}
	err = profil__device_regions_make(&made, &s->plan, s->handle);
	if (!err) {
		request.flags = made.wide ? PROFIL_WIDE : 0;
		request.region_count = made.count;
		request.regions = (uintptr_t)made.regions;
		/* EFAULT: a buffer outside of user space, which turns profiling off silently. */
		if (ask_device(PROFIL_IOC_SET, &request) && errno != EFAULT)
			err = device_error();
		profil__memory_free(made.regions);
	}
	if (err)
		kmod_release(s);
	else
		counting = s;
	return err;
}

/* The totals can be read while it is on. If it went off by itself, another session may be on. */
static void kmod_stop(struct profil_session *s)
{
	if (counting != s)
		return;
	if (profil__is_verbose()) /* else nobody asks for the ticks in the caller's buffers */
		take_totals(s);
	kmod_update(s);
	ask_device(PROFIL_IOC_OFF, NULL);
	counting = NULL;
}

const struct backend profil__backend_kmod = {
	.name = "kmod",
	.direct = true,
	.inherited = true,
	.single = true,
	.start = kmod_start,
	.update = kmod_update,
	.before_fork = kmod_before_fork,
	.stop = kmod_stop,
	.release = kmod_release,
};
