// SPDX-License-Identifier: GPL-2.0-only
#include "tool/check_module.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmod/device.h"
#include "util/file.h"

#define OPTIONAL "optional, for programs that call profil(2)"

/* --- There is no device --- */

/* Whether depmod(8) knows the module. */
static bool is_installed(const char *release)
{
	char path[256], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *list;

	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", release);
	list = fopen(path, "re");
	if (!list)
		return false;
	while (!found && getline(&line, &size, list) > 0) {
		line[strcspn(line, ":")] = '\0'; /* what it depends on */
		found = strstr(line, "/profil.ko") != NULL;
	}
	free(line);
	fclose(list);
	return found;
}

static bool must_be_signed(const struct requirement_facts *f)
{
	char enforced[8] = "";

	file_read_line("/sys/module/module/parameters/sig_enforce", enforced, sizeof(enforced));
	return enforced[0] == 'Y' || strstr(f->lockdown, "[integrity]") ||
	       strstr(f->lockdown, "[confidentiality]");
}

static void tell_absent(const struct requirement_facts *f, struct requirements *r)
{
	const char *rule = must_be_signed(f) ? "; this kernel takes it only if it is signed" : "";
	struct requirement *q;
	char disabled[8] = "";

	if (access("/sys/module/profil", F_OK) == 0) {
		q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				    "the kernel module is loaded, but its device is not in this "
				    "/dev, as in a container: " OPTIONAL);
		error_hint(&q->finding,
			   "outside of the container: run it with --device " PROFIL_DEVICE);
		return;
	}
	if (file_read_line("/proc/sys/kernel/modules_disabled", disabled, sizeof(disabled)) ==
	    -ENOENT) {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				"this kernel was built without modules: " OPTIONAL);
		return;
	}
	if (!is_installed(f->release)) {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				"the kernel module is not installed: " OPTIONAL "%s", rule);
		return;
	}
	q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
			    "the kernel module is installed, but not loaded: " OPTIONAL "%s", rule);
	if (disabled[0] == '1')
		error_hint(&q->finding, "boot with profil in /etc/modules-load.d: "
					"kernel.modules_disabled is 1 until then");
	else
		error_hint(&q->finding, "modprobe profil");
}

/* --- There is one --- */

static void tell_closed(int code, struct requirements *r)
{
	struct stat status = { 0 };
	struct requirement *q;
	struct group *group;

	stat(PROFIL_DEVICE, &status);
	group = getgrgid(status.st_gid);
	q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_LIMITED,
			    "cannot be opened: %s: its mode is %04o, its group %s (%u)",
			    strerror(code), status.st_mode & 07777,
			    group ? group->gr_name : "unknown", status.st_gid);
	if (code == EPERM)
		error_hint(&q->finding,
			   "outside of the container: run it with --device " PROFIL_DEVICE);
	else if (code != EACCES)
		error_hint(&q->finding, "modprobe profil");
	else if (group && status.st_mode & 0040)
		error_hint(&q->finding, "as root: usermod -aG %s USER, who then logs in again",
			   group->gr_name);
	else
		error_hint(&q->finding, "as root: chmod 0666 " PROFIL_DEVICE);
}

static void tell_answer(int fd, struct requirements *r)
{
	struct profil_device_query answer = { .size = sizeof(answer) };
	struct requirement *q;

	if (ioctl(fd, PROFIL_IOC_QUERY, &answer)) {
		q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_LIMITED,
				    "does not answer as the kernel module does: %s",
				    strerror(errno));
		error_hint(&q->finding, "as root: rm " PROFIL_DEVICE " && modprobe profil");
	} else if (answer.version != PROFIL_DEVICE_VERSION) {
		q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_LIMITED,
				    "the kernel module speaks version %u, this program version %d",
				    answer.version, PROFIL_DEVICE_VERSION);
		error_hint(&q->finding, "modprobe -r profil && modprobe profil");
	} else {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_OK,
				"version %u of the kernel module: up to %u Hz, %u regions",
				answer.version, answer.max_hz, answer.max_regions);
	}
}

void check_module(const struct requirement_facts *f, struct requirements *r)
{
	int fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		tell_answer(fd, r);
		close(fd);
	} else if (errno == ENOENT) {
		tell_absent(f, r);
	} else {
		tell_closed(errno, r);
	}
}
