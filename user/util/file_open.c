// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CONFIGFS_MAGIC	0x62656570 /* not in linux/magic.h */
#define PROC_ROOT_INODE 1

/*
 * Links in one path, as in the kernel, and directories from its beginning to its end.
 * Bound: users: links and directories of one path; then: the file is not opened; again: never;
 * share: the path's own; seen: as images without symbols, with the reason.
 */
#define LINKS_MAX 40
#define DEPTH_MAX 256

/*
 * A path that is walked component by component. Each directory on the way stays open, so that ".."
 * is where the walk came from, wherever others move directories meanwhile.
 */
struct walk {
	bool in_root; /* directories[0] is what "/" means, and ".." does not lead out of it */
	unsigned int rules;
	unsigned int links;
	int directories[DEPTH_MAX]; /* opened with O_PATH; the last one is where the walk is */
	size_t depth;
	char rest[PATH_MAX]; /* not walked yet */
};

/* Returns 0; -errno: the rules exclude what was opened there. */
static int check_component(const struct walk *w, int fd)
{
	struct stat status;
	bool is_own;

	if (fstat(fd, &status))
		return -errno;
	is_own = status.st_uid == 0 || status.st_uid == geteuid();
	if (w->rules & FILE_NO_FOREIGN_LINKS && S_ISLNK(status.st_mode) && !is_own)
		return -ELOOP;
	if (w->rules & FILE_OWN_PATH &&
	    (!is_own || (!S_ISLNK(status.st_mode) && status.st_mode & (S_IWGRP | S_IWOTH) &&
			 !(S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX))))
		return -EACCES;
	if (w->rules & FILE_PUBLIC && ((S_ISDIR(status.st_mode) && !(status.st_mode & S_IXOTH)) ||
				       (S_ISREG(status.st_mode) && !(status.st_mode & S_IROTH))))
		return -EACCES;
	return 0;
}

/* Enters a directory; fd is closed on an error. */
static int enter_directory(struct walk *w, int fd)
{
	int err = fd < 0 ? -errno : check_component(w, fd);

	if (!err && w->depth == DEPTH_MAX)
		err = -ENAMETOOLONG;
	if (!err)
		w->directories[w->depth++] = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

static void leave_to(struct walk *w, size_t depth)
{
	while (w->depth > depth)
		close(w->directories[--w->depth]);
}

static int go_up(struct walk *w)
{
	int fd;

	if (w->depth > 1 || w->in_root) {
		leave_to(w, w->depth > 1 ? w->depth - 1 : 1);
		return 0;
	}
	fd = openat(w->directories[0], "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	leave_to(w, 0);
	return enter_directory(w, fd);
}

/* Puts the target of a link, which is closed, before the rest of the path. */
static int follow_link(struct walk *w, int fd, const char *rest)
{
	char target[PATH_MAX];
	ssize_t size = readlinkat(fd, "", target, sizeof(target));
	int err = size < 0 ? -errno : 0;
	struct statfs system;
	struct stat status;

	/* In /proc, links to anything that a process has open lead out of every root. */
	if (!err && w->in_root && fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
	    (fstat(w->directories[w->depth - 1], &status) || status.st_ino != PROC_ROOT_INODE))
		err = -EXDEV;
	else if (!err && ++w->links > LINKS_MAX)
		err = -ELOOP;
	err = err ?: check_component(w, fd);
	close(fd);
	if (err)
		return err;
	if (!size)
		return -ENOENT;
	if (size + strlen(rest) >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + size, rest, strlen(rest) + 1);
	memcpy(w->rest, target, size);
	if (*w->rest != '/')
		return 0;
	if (w->in_root) {
		leave_to(w, 1);
		return 0;
	}
	leave_to(w, 0);
	return enter_directory(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Opens the last component, which is no link: fd has it open with O_PATH, and is closed. */
static int open_last(const struct walk *w, int fd, const char *name, int flags)
{
	int err = check_component(w, fd), opened = -1;

	if (!err) {
		opened = openat(w->directories[w->depth - 1], name, flags | O_NOFOLLOW | O_CLOEXEC);
		err = opened < 0 ? -errno : check_component(w, opened);
	}
	close(fd);
	if (err && opened >= 0)
		close(opened);
	return err ?: opened;
}

static int walk_path(struct walk *w, int flags)
{
	for (;;) {
		char name[NAME_MAX + 1], *at = w->rest + strspn(w->rest, "/");
		size_t size = strcspn(at, "/");
		bool is_last = !at[size + strspn(at + size, "/")], is_directory = at[size] == '/';
		struct stat status;
		int fd, err;

		if (size > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, at, size);
		name[size] = '\0';
		if (!size || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
			err = strcmp(name, "..") == 0 ? go_up(w) : 0;
			if (err)
				return err;
			if (is_last) {
				fd = openat(w->directories[w->depth - 1], ".", flags | O_CLOEXEC);
				return fd < 0 ? -errno : fd;
			}
			memmove(w->rest, at + size, strlen(at + size) + 1);
			continue;
		}
		fd = openat(w->directories[w->depth - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &status)) {
			err = -errno;
			if (fd >= 0)
				close(fd);
			return err;
		}
		if (S_ISLNK(status.st_mode) &&
		    (!is_last || is_directory || !(flags & O_NOFOLLOW))) {
			err = follow_link(w, fd, at + size);
		} else if (is_last) {
			return open_last(w, fd, name, flags | (is_directory ? O_DIRECTORY : 0));
		} else {
			/* Opened as a directory, an automounted one is mounted. */
			close(fd);
			memmove(w->rest, at + size, strlen(at + size) + 1);
			err = enter_directory(
				w, openat(w->directories[w->depth - 1], name,
					  O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
		}
		if (err)
			return err;
	}
}

static int open_walking(int root, const char *path, int flags, unsigned int rules)
{
	struct walk w = { .in_root = root >= 0 || *path == '/', .rules = rules };
	size_t length = 0;
	int fd;

	if (!*path)
		return -ENOENT;
	/* The path of the working directory must follow the rules, too. */
	if (!w.in_root && rules & (FILE_PUBLIC | FILE_OWN_PATH)) {
		if (!getcwd(w.rest, sizeof(w.rest)))
			return -errno;
		w.in_root = true;
		length = strlen(w.rest);
		w.rest[length++] = '/';
	}
	if (length + strlen(path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	strcpy(w.rest + length, path);
	if (root >= 0)
		fd = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	else
		fd = open(w.in_root ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = enter_directory(&w, fd) ?: walk_path(&w, flags);
	leave_to(&w, 0);
	return fd;
}

int file_open_by_rules(int root, const char *path, int flags, unsigned int rules)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int fd;

	if (rules)
		return open_walking(root, path, flags, rules);
	if (root < 0) {
		fd = open(path, flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	/*
	 * Filters of system calls refuse it, systemd's for RestrictSUIDSGID= among them. EAGAIN:
	 * directories were moved meanwhile.
	 */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
		return open_walking(root, path, flags, 0);
	return fd < 0 ? -errno : fd;
}

int file_open_in(int root, const char *path, int flags)
{
	return file_open_by_rules(root, path, flags, 0);
}

/* File systems whose files are the kernel's answers: reading one can wait, act, or tell secrets. */
static bool is_on_disk(int fd)
{
	static const unsigned int answers[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,	      DEBUGFS_MAGIC,	   TRACEFS_MAGIC,
		SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
		PSTOREFS_MAGIC,	  EFIVARFS_MAGIC,     SELINUX_MAGIC,	   SMACK_MAGIC,
		NSFS_MAGIC,	  BINFMTFS_MAGIC,     CONFIGFS_MAGIC,
	};
	struct statfs system;

	if (fstatfs(fd, &system))
		return false;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if ((unsigned int)system.f_type == answers[i])
			return false;
	return true;
}

int file_reopen_regular(int opened, struct stat *status)
{
	struct stat ignored = { 0 };
	char path[64];
	int fd = -EINVAL;

	status = status ?: &ignored;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", opened);
	if (fstat(opened, status) == 0 && S_ISREG(status->st_mode) && is_on_disk(opened)) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(opened);
	return fd;
}

int file_open_regular(int root, const char *path, struct stat *status)
{
	return file_open_regular_by_rules(root, path, 0, status);
}

bool file_is_of(const struct stat *status, uid_t user)
{
	if (status->st_uid == 0 || status->st_uid == geteuid())
		return !(status->st_mode & S_IWOTH);
	return status->st_uid == user;
}

int file_open_regular_by_rules(int root, const char *path, unsigned int rules, struct stat *status)
{
	int fd = file_open_by_rules(root, path, O_PATH, rules);

	return fd < 0 ? fd : file_reopen_regular(fd, status);
}
