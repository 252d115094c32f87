// SPDX-License-Identifier: GPL-2.0-only
#include "capture/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "capture/perf_event.h"

/* Where the hierarchies are mounted whose groups may have perf events; empty: nowhere. */
struct mounts {
	char v1[PATH_MAX]; /* of cgroup v1 with the controller perf_event: then v2 is without it */
	char v2[PATH_MAX];
};

static void find_mounts(struct mounts *mounts)
{
	FILE *table = setmntent("/proc/self/mounts", "re");
	char buffer[2 * PATH_MAX];
	struct mntent entry;

	*mounts = (struct mounts){ 0 };
	while (table && getmntent_r(table, &entry, buffer, sizeof(buffer))) {
		char *place = NULL;

		if (strcmp(entry.mnt_type, "cgroup2") == 0)
			place = mounts->v2;
		else if (strcmp(entry.mnt_type, "cgroup") == 0 && hasmntopt(&entry, "perf_event"))
			place = mounts->v1;
		if (place && !*place)
			snprintf(place, PATH_MAX, "%s", entry.mnt_dir);
	}
	if (table)
		endmntent(table);
}

static bool is_of(int fd, long magic)
{
	struct statfs status;

	return fstatfs(fd, &status) == 0 && status.f_type == magic;
}

/* Below a place, or as it stands when that is empty. -EXDEV: not in a cgroup file system. */
static int open_directory(const char *place, const char *path)
{
	char whole[2 * PATH_MAX];
	int fd;

	snprintf(whole, sizeof(whole), "%s%s%s", place, *place ? "/" : "", path);
	fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (is_of(fd, CGROUP2_SUPER_MAGIC) || is_of(fd, CGROUP_SUPER_MAGIC))
		return fd;
	close(fd);
	return -EXDEV;
}

static int explain(const struct mounts *mounts, const char *path, int code, struct error *e)
{
	const char *place = *mounts->v1 ? mounts->v1 : mounts->v2;
	enum error_kind kind = code == EACCES ? ERROR_NOT_PERMITTED : ERROR_FAILED;

	if (code == ENOENT)
		error_set(e, 0, "there is no control group %s", path);
	else if (code == EXDEV)
		error_set(e, 0, "%s is not a control group: it is in no cgroup file system", path);
	else
		error_set_kind(e, kind, code, "cannot open the control group %s", path);
	if (code == EACCES)
		error_mend(e, "run it as root");
	else if (*place)
		error_mend(e,
			   "list them with: find %s -type d; a path that begins with neither "
			   "\"/\" nor \".\" is looked for there",
			   place);
	else
		error_mend(e, "no hierarchy of them is mounted here: mount -t cgroup2 none "
			      "/sys/fs/cgroup");
	return -code;
}

int cgroup_open(struct cgroup *group, struct error *e)
{
	bool as_it_stands = *group->path == '/' || *group->path == '.';
	struct mounts mounts;
	int code = ENOENT;

	group->fd = as_it_stands ? open_directory("", group->path) : -ENOENT;
	if (group->fd < 0)
		code = -group->fd;
	find_mounts(&mounts);
	for (int i = 0; i < 2 && group->fd < 0 && *group->path != '.'; i++) {
		const char *place = i ? mounts.v2 : mounts.v1;

		if (*place)
			group->fd = open_directory(place, group->path);
		if (group->fd < 0 && code == ENOENT)
			code = -group->fd;
	}
	return group->fd < 0 ? explain(&mounts, group->path, code, e) : 0;
}

bool cgroup_has_all(const struct cgroup *group)
{
	struct stat status;

	/* The kernel counts the nodes of a hierarchy from 1 on (cgroup_setup_root()). */
	return fstat(group->fd, &status) == 0 && status.st_ino == 1;
}

int cgroup_cpu_ns(const struct cgroup *group, uint64_t *ns)
{
	int fd = openat(group->fd, "cpu.stat", O_RDONLY | O_CLOEXEC), err = -ENOENT;
	unsigned long long usec;
	char line[256];
	FILE *stat;

	if (fd < 0)
		return -errno;
	stat = fdopen(fd, "r");
	if (!stat) {
		close(fd);
		return -ENOMEM;
	}
	while (err && fgets(line, sizeof(line), stat))
		if (sscanf(line, "usage_usec %llu", &usec) == 1) {
			*ns = usec * 1000;
			err = 0;
		}
	fclose(stat);
	return err;
}

bool cgroup_is_gone(const struct cgroup *group)
{
	return faccessat(group->fd, "cgroup.procs", F_OK, 0) && errno == ENOENT;
}

/* Whether a hierarchy of cgroup v1 has the controller, mounted here or not: see cgroups(7). */
static bool is_in_v1(void)
{
	FILE *groups = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX], names[256];
	bool found = false;

	while (groups && !found && fgets(line, sizeof(line), groups))
		found = sscanf(line, "%*d:%255[^:]:", names) == 1 && strstr(names, "perf_event");
	if (groups)
		fclose(groups);
	return found;
}

/*
 * The group is there, but without the controller. A kernel that has just booted gives cgroup2's
 * groups even this one, which nobody has to ask for, only once it gives them some other.
 */
static int explain_hierarchy(const struct cgroup *group, struct error *e)
{
	struct mounts mounts;

	find_mounts(&mounts);
	error_set(e, 0, "cannot profile the control group %s: it is without perf_event",
		  group->path);
	if (*mounts.v1)
		error_mend(e, "give a directory below %s, where perf_event is", mounts.v1);
	else if (is_of(group->fd, CGROUP_SUPER_MAGIC) && *mounts.v2)
		error_mend(e, "give a directory below %s: cgroup2 has perf_event", mounts.v2);
	else if (is_of(group->fd, CGROUP2_SUPER_MAGIC) && !is_in_v1())
		error_mend(e,
			   "the kernel gives it to groups along with any other controller: "
			   "echo +pids >%s/cgroup.subtree_control",
			   mounts.v2);
	else
		error_mend(e, "another hierarchy has it, which is not mounted here: "
			      "mount -t cgroup -o perf_event none DIRECTORY");
	return -ENOENT;
}

/* Whether the kernel would take the event if it were about all processes. */
static bool is_taken_for_all(struct perf_event_attr *attr, int cpu)
{
	int fd = perf_event_open(attr, -1, cpu);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int cgroup_open_event(const struct cgroup *group, struct perf_event_attr *attr, int cpu,
		      struct error *e)
{
	int fd = perf_event_open_cgroup(attr, group->fd, cpu);

	if (fd >= 0)
		return fd;
	if (fd == -ENOENT && cgroup_is_gone(group))
		return error_set(e, ENOENT, "the control group %s was removed just now",
				 group->path);
	if (fd == -ENOENT)
		return explain_hierarchy(group, e);
	if (fd == -EINVAL && is_taken_for_all(attr, cpu)) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "this kernel has no perf events of control groups");
		error_mend(e, "use a kernel with CONFIG_CGROUP_PERF; or -p with the processes, or "
			      "-a");
		return -EOPNOTSUPP;
	}
	return perf_event_error(e, -fd, group->path);
}
