// SPDX-License-Identifier: GPL-2.0-only
#include "capture/cgroup.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/array.h"
#include "util/file.h"
#include "util/number.h"

/* The mount points of the hierarchies that the BPF program can read; "": not mounted. */
struct mounts {
	char v1[PATH_MAX]; /* cgroup v1 with the controller perf_event */
	char v2[PATH_MAX];
};

static void find_mounts(struct mounts *mounts)
{
	FILE *table = setmntent("/proc/self/mounts", "re");
	char buffer[2 * PATH_MAX];
	struct mntent entry;

	*mounts = (struct mounts){ 0 };
	while (table && getmntent_r(table, &entry, buffer, sizeof(buffer))) {
		char *mount_point = NULL;

		if (strcmp(entry.mnt_type, "cgroup2") == 0)
			mount_point = mounts->v2;
		else if (strcmp(entry.mnt_type, "cgroup") == 0 && hasmntopt(&entry, "perf_event"))
			mount_point = mounts->v1;
		if (mount_point && !*mount_point)
			snprintf(mount_point, PATH_MAX, "%s", entry.mnt_dir);
	}
	if (table)
		endmntent(table);
}

static bool is_of(int fd, long magic)
{
	struct statfs status;

	return fstatfs(fd, &status) == 0 && status.f_type == magic;
}

/* Opens path below mount_point ("": as it is). -EXDEV: not in a cgroup file system. */
static int open_directory(const char *mount_point, const char *path)
{
	char whole[2 * PATH_MAX];
	int fd;

	snprintf(whole, sizeof(whole), "%s%s%s", mount_point, *mount_point ? "/" : "", path);
	fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (is_of(fd, CGROUP2_SUPER_MAGIC) || is_of(fd, CGROUP_SUPER_MAGIC))
		return fd;
	close(fd);
	return -EXDEV;
}

static int explain_failure(const struct mounts *mounts, const char *path, int code, struct error *e)
{
	const char *mount_point = *mounts->v1 ? mounts->v1 : mounts->v2;

	if (code == ENOENT)
		error_set(e, 0, "there is no control group %s", path);
	else if (code == EXDEV)
		error_set(e, 0, "%s is not a control group: it is in no cgroup file system", path);
	else
		error_set(e, code, "cannot open the control group %s", path);
	if (code == EACCES)
		error_hint(e, "run it as root");
	else if (*mount_point)
		error_hint(e,
			   "list them with: find %s -type d; a path that begins with neither "
			   "\"/\" nor \".\" is relative to that",
			   mount_point);
	else
		error_hint(e, "no cgroup file system is mounted: mount -t cgroup2 none "
			      "/sys/fs/cgroup");
	return -code;
}

static int identify_group(struct cgroup *group, const struct mounts *mounts, struct error *e)
{
	struct stat status, root;

	if (fstat(group->fd, &status))
		return error_set(e, errno, "cannot read the control group %s", group->path);
	group->id = status.st_ino;
	group->is_v1 = is_of(group->fd, CGROUP_SUPER_MAGIC);
	/* In cgroup v1, the BPF program can read the group of a process in one hierarchy only. */
	if (!group->is_v1 ||
	    (*mounts->v1 && stat(mounts->v1, &root) == 0 && root.st_dev == status.st_dev))
		return 0;
	error_set(e, 0,
		  "cannot profile the control group %s: it is of cgroup v1, without the "
		  "controller perf_event",
		  group->path);
	if (*mounts->v1)
		error_hint(e, "give a directory below %s, where perf_event is", mounts->v1);
	else if (*mounts->v2)
		error_hint(e, "give a directory below %s", mounts->v2);
	else
		error_hint(e, "mount -t cgroup2 none DIRECTORY, and give a directory below it");
	return -ENOENT;
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
		const char *mount_point = i ? mounts.v2 : mounts.v1;

		if (*mount_point)
			group->fd = open_directory(mount_point, group->path);
		if (group->fd < 0 && code == ENOENT)
			code = -group->fd;
	}
	return group->fd < 0 ? explain_failure(&mounts, group->path, code, e)
			     : identify_group(group, &mounts, e);
}

struct thread_list {
	pid_t *tids;
	size_t count, room;
};

/* Of one group; of v1 and v2, the file has another name. Closes nothing. */
static int add_threads(int directory, struct thread_list *list)
{
	int fd = openat(directory, "cgroup.threads", O_RDONLY | O_CLOEXEC), err = 0;
	char line[32];
	uint64_t tid;
	FILE *in;

	if (fd < 0 && errno == ENOENT)
		fd = openat(directory, "tasks", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	in = file_stream(fd);
	if (!in)
		return -ENOMEM;
	while (!err && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (number_parse(line, 0, INT32_MAX, &tid))
			continue;
		err = array_add(list->tids, list->count, list->room, tid);
	}
	fclose(in);
	return err;
}

/* Of a group and those below it. Closes fd. */
static int add_tree(int fd, struct thread_list *list)
{
	DIR *directory = file_directory_stream(fd);
	struct dirent *entry;
	int err, below;

	if (!directory)
		return -ENOMEM;
	err = add_threads(fd, list);
	while (!err && (entry = readdir(directory))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below >= 0)
			err = add_tree(below, list);
	}
	closedir(directory);
	return err;
}

int cgroup_list_threads(const char *const *paths, size_t path_count, pid_t **tids, size_t *count)
{
	struct thread_list list = { 0 };
	struct error ignored;
	int err = 0;

	for (size_t i = 0; i < path_count && !err; i++) {
		struct cgroup group = { .path = paths[i] };

		err = cgroup_open(&group, &ignored) ?: add_tree(group.fd, &list);
	}
	if (err)
		free(list.tids);
	*tids = err ? NULL : list.tids;
	*count = err ? 0 : list.count;
	return err;
}

struct cgroup_walk {
	int (*visit)(const char *path, size_t below, void *context);
	void *context;
	char path[PATH_MAX];
	size_t mount_size; /* of the mount point in path */
};

/* Visits the groups below the one at walk->path, which is `size` long. Closes fd. */
static int walk_groups(struct cgroup_walk *walk, int fd, size_t size)
{
	DIR *directory = file_directory_stream(fd);
	struct dirent *entry;
	int err = 0, below;

	if (!directory)
		return -ENOMEM;
	while (err >= 0 && (entry = readdir(directory))) {
		size_t all = size + 1 + strlen(entry->d_name);

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || all >= sizeof(walk->path))
			continue;
		snprintf(walk->path + size, sizeof(walk->path) - size, "/%s", entry->d_name);
		err = walk->visit(walk->path, walk->mount_size, walk->context);
		below = err ? -1 : openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below >= 0)
			err = walk_groups(walk, below, all);
	}
	closedir(directory);
	return err < 0 ? err : 0;
}

int cgroup_each(bool v1, int (*visit)(const char *path, size_t below, void *context), void *context)
{
	struct cgroup_walk walk = { .visit = visit, .context = context };
	struct mounts mounts;
	const char *mount_point;
	int fd;

	find_mounts(&mounts);
	mount_point = v1 ? mounts.v1 : mounts.v2;
	if (!*mount_point)
		return 0;
	walk.mount_size = snprintf(walk.path, sizeof(walk.path), "%s", mount_point);
	fd = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : walk_groups(&walk, fd, walk.mount_size);
}

/* --- Whose threads are recorded --- */

int whom_choose_map(const struct whom *whom, struct bpf_map *map)
{
	int err = bpf_map__set_autocreate(map, whom->group_count > 0);

	if (!err && whom->group_count)
		err = bpf_map__set_max_entries(map, whom->group_count);
	return err;
}

int whom_fill_map(const struct whom *whom, struct bpf_map *map)
{
	const uint8_t wanted = 1;
	int err = 0;

	for (size_t i = 0; i < whom->group_count && !err; i++)
		err = bpf_map_update_elem(bpf_map__fd(map), &whom->groups[i].id, &wanted, BPF_ANY);
	return err;
}

int whom_open_groups(struct whom *whom, const char *const *paths, size_t count, struct error *e)
{
	int err = 0;

	whom->groups = calloc(count, sizeof(*whom->groups));
	if (!whom->groups)
		return error_no_memory(e);
	for (size_t i = 0; i < count && !err; i++) {
		struct cgroup *group = &whom->groups[i];

		group->path = paths[i];
		err = cgroup_open(group, e);
		whom->group_count += !err;
		/* The root group has all processes: kernfs numbers a hierarchy's nodes from 1 on.
		 */
		if (!err && group->id == 1) {
			whom_close(whom);
			return 0;
		}
	}
	return err;
}

void whom_close(struct whom *whom)
{
	while (whom->group_count)
		close(whom->groups[--whom->group_count].fd);
	free(whom->groups);
	whom->groups = NULL;
}

int whom_cpu_ns(const struct whom *whom, uint64_t *ns)
{
	int err = whom->group_count ? 0 : -ENOENT;
	unsigned long long usec;
	char line[256];

	*ns = 0;
	for (size_t i = 0; i < whom->group_count && !err; i++) {
		FILE *stat =
			file_stream(openat(whom->groups[i].fd, "cpu.stat", O_RDONLY | O_CLOEXEC));

		err = stat ? -ENOENT : -errno; /* cgroup v1 does not report it */
		while (err && stat && fgets(line, sizeof(line), stat))
			if (sscanf(line, "usage_usec %llu", &usec) == 1) {
				*ns += usec * 1000;
				err = 0;
			}
		file_close_stream(stat);
	}
	return err;
}

bool whom_is_gone(const struct whom *whom)
{
	for (size_t i = 0; i < whom->group_count; i++)
		if (!faccessat(whom->groups[i].fd, "cgroup.procs", F_OK, 0) || errno != ENOENT)
			return false;
	return whom->group_count > 0;
}
