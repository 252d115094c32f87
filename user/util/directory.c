// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/file_open.h"
#include "util/signals.h"

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define DIRECTORY_MODE	0700
#define FILE_MODE	0600

/* How often a name that another writer has taken, or a directory that it has removed, is retried.
 */
#define ATTEMPTS 100

/* Temporary names are hidden, and short however long the file's name is. */
#define TEMPORARY      ".profil-"
#define TEMPORARY_SIZE sizeof(TEMPORARY "0123456789abcdef")

void directory_clean_name(char *name)
{
	if (*name == '.')
		*name = '_';
	for (; *name; name++)
		if (*name == '/' || (unsigned char)*name < ' ' || *name == 0x7f)
			*name = '_';
}

/* --- Directories --- */

int directory_open(const char *path)
{
	return file_open_by_rules(-1, path, O_RDONLY | O_DIRECTORY, FILE_NO_FOREIGN_LINKS);
}

int directory_open_in(int directory, const char *name, bool make)
{
	int fd = openat(directory, name, DIRECTORY_FLAGS | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT || !make)
		return fd < 0 ? -errno : fd;
	if ((mkdirat(directory, name, DIRECTORY_MODE) && errno != EEXIST) || fsync(directory))
		return -errno;
	fd = openat(directory, name, DIRECTORY_FLAGS | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int directory_make(const char *path)
{
	int fd = directory_open(path), parent;
	char *of_parent, *of_name;

	if (fd != -ENOENT)
		return fd;
	of_parent = strdup(path);
	of_name = strdup(path);
	parent = of_parent && of_name ? directory_open(dirname(of_parent)) : -ENOMEM;
	fd = parent < 0 ? parent : directory_open_in(parent, basename(of_name), true);
	if (parent >= 0)
		close(parent);
	free(of_parent);
	free(of_name);
	return fd;
}

int directory_open_file(int directory, const char *name)
{
	/* O_NONBLOCK: does not wait for a device or FIFO. */
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

void directory_remove_temporaries(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (fd >= 0 && !stream)
		close(fd);
	while (stream && (entry = readdir(stream)))
		if (strncmp(entry->d_name, TEMPORARY, sizeof(TEMPORARY) - 1) == 0)
			unlinkat(directory, entry->d_name, 0);
	if (stream)
		closedir(stream);
}

/* --- A file --- */

/* Creates a file with a name that nobody has, and nobody can guess. Returns as open(2). */
static int create_temporary(int directory, char name[static TEMPORARY_SIZE])
{
	int fd = -1;

	for (int attempt = 0; fd < 0 && attempt < ATTEMPTS; attempt++) {
		uint64_t number;

		/* Where a filter of system calls refuses it, names can be guessed: O_EXCL remains.
		 */
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
			number = clock_ns(CLOCK_MONOTONIC) << 16 ^ (uint64_t)getpid() << 40;
		snprintf(name, TEMPORARY_SIZE, TEMPORARY "%016jx", (uintmax_t)number);
		fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    FILE_MODE);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

int directory_fill_file(int fd, const char *path, bool durable,
			int (*write)(FILE *out, void *context, struct error *e), void *context,
			struct error *e)
{
	FILE *out = fdopen(fd, "w");
	int err;

	if (!out) {
		err = error_set(e, errno, "cannot write %s", path);
		close(fd);
		return err;
	}
	errno = 0;
	err = write(out, context, e);
	/* A writer that finds the disk full does not know the path. */
	if (err && ferror(out))
		err = error_set(e, -err, "cannot write %s", path);
	if (!err && (ferror(out) || fflush(out) || (durable && fsync(fd))))
		err = error_set(e, errno ?: EIO, "cannot write %s", path);
	if (fclose(out) && !err)
		err = error_set(e, errno, "cannot write %s", path);
	return err;
}

/* Some file systems cannot rename so: a lock must exclude other writers there. Returns -errno. */
static int rename_new(int directory, const char *temporary, const char *name)
{
	struct stat status;

	if (renameat2(directory, temporary, directory, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(directory, temporary, directory, name) ? -errno : 0;
}

/* What the entry is that a file is to replace. Returns 0 or -errno. */
static int check_replaced(int directory, const char *name)
{
	struct stat status;

	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) || S_ISREG(status.st_mode) ||
	    S_ISLNK(status.st_mode))
		return 0;
	return S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST;
}

int directory_write_file(int directory, const char *name, const char *path, unsigned int flags,
			 int (*write)(FILE *out, void *context, struct error *e), void *context,
			 struct error *e)
{
	char temporary[TEMPORARY_SIZE];
	struct held_signals held;
	int err = check_replaced(directory, name), fd;

	if (err)
		return error_set(e, -err, "cannot write %s", path);
	signals_hold(&held);
	fd = create_temporary(directory, temporary);
	if (fd < 0) {
		err = error_set(e, errno, "cannot write %s", path);
	} else {
		err = directory_fill_file(fd, path, flags & DIRECTORY_DURABLE, write, context, e);
		if (!err) {
			if (flags & DIRECTORY_NEW)
				err = rename_new(directory, temporary, name);
			else if (renameat(directory, temporary, directory, name))
				err = -errno;
			if (!err && flags & DIRECTORY_DURABLE && fsync(directory))
				err = -errno;
			if (err)
				error_set(e, -err, "cannot write %s", path);
		}
		if (err)
			unlinkat(directory, temporary, 0);
	}
	signals_release(&held);
	return err;
}

static int write_all_bytes(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(fd, bytes, size);

		if (written == 0)
			errno = EIO;
		if (written <= 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -1;
		bytes += written;
		size -= written;
	}
	return 0;
}

int directory_overwrite_file(int directory, const char *name, const char *bytes, size_t size)
{
	int fd = openat(directory, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;
	int err = 0;

	if (fd < 0)
		return errno == ENOENT ? -ENOSPC : -errno;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_nlink > 1 ||
	    status.st_uid != geteuid() || (uint64_t)status.st_size < size)
		err = -ENOSPC;
	else if (write_all_bytes(fd, bytes, size))
		err = -errno;
	close(fd);
	return err;
}

/* --- A set of files --- */

/* A directory that files of a set are in, or that such a directory is in. */
struct opened {
	char *path;    /* for messages; and, of what `path` of the set consists of, to open it */
	size_t parent; /* NONE: it was there, and was opened by its path */
	int fd;
	bool made;
};

#define NONE SIZE_MAX

struct output {
	char *path; /* for messages */
	const char *name;
	size_t directory;
	char temporary[TEMPORARY_SIZE];
	enum {
		ABSENT,
		FILLED,	   /* under its temporary name */
		CREATED,   /* under its own name */
		EXCHANGED, /* under its own name; the file before it has the temporary name */
		REPLACED   /* the file system cannot exchange: the file before it is gone */
	} state;
};

struct job {
	int (*write)(FILE *out, size_t number, int old, void *context, struct error *e);
	void *context;
	size_t base_length; /* of the set's own path, in all paths */
	struct output *outputs;
	size_t count;
	bool locked;		    /* false: the file system has no locks */
	struct opened *directories; /* parents first; outputs[0].directory is the one to lock */
	size_t directory_count, directory_room;
};

/* The last component. */
static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What a path lies in; the caller free()s it. NULL: out of memory. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	while (slash && slash > path && slash[-1] == '/')
		slash--;
	return slash ? strndup(path, slash == path ? 1 : slash - path) : strdup(".");
}

void directory_hint(struct error *e, int code, const char *directory)
{
	char line[256] = "", *unit;
	FILE *in;

	if (code == EROFS && getenv("INVOCATION_ID")) {
		/* 0::/system.slice/profil-continuous.service */
		in = fopen("/proc/self/cgroup", "re");
		if (in && fgets(line, sizeof(line), in))
			line[strcspn(line, "\n")] = '\0';
		if (in)
			fclose(in);
		unit = strrchr(line, '/');
		unit = unit && strstr(unit, ".service") ? unit + 1 : "UNIT";
		error_hint(e,
			   "systemd made it read-only for this service: mkdir -p %.150s; systemctl "
			   "edit %.60s, with the lines [Service] and ReadWritePaths=%.150s",
			   directory, unit, directory);
	} else if (code == EROFS || code == EACCES || code == EPERM || code == ENOSPC ||
		   code == EDQUOT) {
		error_hint(e, "give another directory");
	}
}

int directory_check_writable(const char *path, struct error *e)
{
	char *copy = strdup(path);
	const char *ancestor = copy;
	struct stat st;
	int code;

	if (!copy)
		return error_no_memory(e);
	while ((code = stat(ancestor, &st) ? errno : 0) == ENOENT)
		ancestor = dirname(copy);
	if (!code && !S_ISDIR(st.st_mode))
		code = ENOTDIR;
	if (!code && access(ancestor, W_OK))
		code = errno;
	free(copy);
	if (!code)
		return 0;
	error_set(e, code, "cannot write %s", path);
	error_hint(e, "give another directory");
	directory_hint(e, code, path);
	return -code;
}

static int cannot_write(struct error *e, int code, const char *path)
{
	error_set(e, code, "cannot write %s", path);
	directory_hint(e, code, path);
	if (code == ELOOP || code == ENOTDIR)
		error_hint(e, "no symbolic link is followed in there, and to there none of "
			      "another user: give another directory");
	return -code;
}

/*
 * Opens a directory again that is not open, or that another writer, which failed, has removed since
 * it was opened. Makes it, and its parents, if need be. Returns 0 or -errno.
 */
static int open_again(struct job *j, size_t number)
{
	struct opened *d = &j->directories[number];
	struct stat status;
	int err;

	if (d->fd >= 0) {
		if (fstat(d->fd, &status) || status.st_nlink)
			return 0;
		close(d->fd);
		d->fd = -1;
	}
	if (d->parent == NONE) {
		d->fd = directory_open(d->path);
		return d->fd < 0 ? d->fd : 0;
	}
	err = open_again(j, d->parent);
	if (err)
		return err;
	if (mkdirat(j->directories[d->parent].fd, name_of(d->path), DIRECTORY_MODE) == 0)
		d->made = true;
	else if (errno != EEXIST)
		return -errno;
	d->fd = directory_open_in(j->directories[d->parent].fd, name_of(d->path), false);
	return d->fd < 0 ? d->fd : 0;
}

/*
 * Finds a directory in the job's list, or adds it, and its parents as far as they may be missing.
 * Up to the set's own path, directories that exist are opened by their paths; below, each is opened
 * in its parent. Sets *number. Returns 0 or -errno.
 */
static int find_directory(struct job *j, const char *path, size_t *number)
{
	struct opened d = { .parent = NONE, .fd = -1 };
	size_t length = strlen(path);
	int err = 0;

	for (*number = 0; *number < j->directory_count; ++*number)
		if (strcmp(j->directories[*number].path, path) == 0)
			return 0;
	if (length <= j->base_length)
		d.fd = directory_open(path);
	if (length > j->base_length ||
	    (d.fd == -ENOENT && strcmp(path, ".") != 0 && strcmp(path, "/") != 0)) {
		char *parent = parent_of(path);

		err = parent ? find_directory(j, parent, &d.parent) : -ENOMEM;
		free(parent);
		d.fd = -1;
	}
	if (!err && d.parent == NONE && d.fd < 0)
		err = d.fd;
	d.path = err ? NULL : strdup(path);
	if (!err && (!d.path || array_reserve(&j->directories, &j->directory_room,
					      j->directory_count + 1, sizeof(d))))
		err = -ENOMEM;
	if (err) {
		free(d.path);
		if (d.fd >= 0)
			close(d.fd);
		return err;
	}
	*number = j->directory_count++;
	j->directories[*number] = d;
	return 0;
}

/* Who may open the directory can lock it for ever. Writers hold the lock for milliseconds. */
#define LOCK_WAIT_NS (10 * NS_PER_S)
#define LOCK_STEP_NS (5 * NS_PER_MS)

/* Creates and locks the first file's directory: no other writer changes what write() reads. */
static int lock_directory(struct job *j, struct error *e)
{
	struct opened *d = &j->directories[j->outputs[0].directory];
	const struct timespec step = { .tv_nsec = LOCK_STEP_NS };
	uint64_t until_ns = now_ns() + LOCK_WAIT_NS;
	int err = 0;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		struct stat status;

		err = open_again(j, j->outputs[0].directory);
		if (err == -ENOENT) /* another writer removes it */
			continue;
		if (err)
			break;
		while (!(j->locked = flock(d->fd, LOCK_EX | LOCK_NB) == 0) &&
		       errno == EWOULDBLOCK) {
			if (now_ns() > until_ns) {
				error_set(e, 0, "cannot write %s: another process has locked it",
					  d->path);
				error_hint(e, "lslocks shows which");
				return -EWOULDBLOCK;
			}
			nanosleep(&step, NULL);
		}
		/* A writer that waited for the lock may hold that of a removed directory. */
		if (fstat(d->fd, &status) || status.st_nlink)
			return 0;
	}
	return cannot_write(e, -err ?: ENOENT, d->path);
}

static int open_temporary(struct job *j, struct output *o, struct error *e)
{
	int err = 0, fd;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		err = open_again(j, o->directory);
		if (err == -ENOENT)
			continue;
		if (err)
			break;
		fd = create_temporary(j->directories[o->directory].fd, o->temporary);
		if (fd >= 0)
			return fd;
		err = -errno;
		if (err != -ENOENT)
			break;
	}
	return cannot_write(e, -err, o->path);
}

/*
 * Has write() make the content in memory; the caller free()s *bytes. With a stream on the file, a
 * child forked meanwhile would write the stream's buffer a second time when it exits.
 */
static int make_content(struct job *j, size_t number, int old, char **bytes, size_t *size,
			struct error *e)
{
	FILE *out = open_memstream(bytes, size);
	bool failed;
	int err;

	if (!out)
		return error_no_memory(e);
	err = j->write(out, number, old, j->context, e);
	failed = ferror(out);
	failed |= fclose(out) != 0;
	return err ?: failed ? error_no_memory(e) : 0;
}

static int fill(struct job *j, size_t number, struct error *e)
{
	struct output *o = &j->outputs[number];
	int err = open_again(j, o->directory), fd = -1, old;
	char *bytes = NULL;
	size_t size;

	if (err && err != -ENOENT)
		return cannot_write(e, -err, o->path);
	old = err ?: directory_open_file(j->directories[o->directory].fd, o->name);
	err = make_content(j, number, old, &bytes, &size, e);
	if (!err) {
		fd = open_temporary(j, o, e);
		err = fd < 0 ? fd : 0;
	}
	if (!err) {
		o->state = FILLED;
		/* A file that replaces another must be on the disk before the other is removed. */
		if (write_all_bytes(fd, bytes, size) || (old != -ENOENT && fsync(fd)))
			err = cannot_write(e, errno, o->path);
	}
	free(bytes);
	if (old >= 0)
		close(old);
	if (fd >= 0 && close(fd) && !err)
		err = cannot_write(e, errno, o->path);
	return err;
}

/* Gives a file its own name. Returns 0 or -errno. */
static int place(const struct job *j, struct output *o)
{
	int directory = j->directories[o->directory].fd, err = check_replaced(directory, o->name);
	bool is_new;

	if (err)
		return err;
	if (renameat2(directory, o->temporary, directory, o->name, RENAME_EXCHANGE) == 0) {
		o->state = EXCHANGED;
		return 0;
	}
	is_new = errno == ENOENT;
	if (!is_new && errno != EINVAL)
		return -errno;
	if (renameat(directory, o->temporary, directory, o->name))
		return -errno;
	o->state = is_new ? CREATED : REPLACED;
	return 0;
}

static int write_files(struct job *j, struct error *e)
{
	int err = 0;

	if (j->locked)
		directory_remove_temporaries(j->directories[j->outputs[0].directory].fd);
	for (size_t i = 0; i < j->count && !err; i++)
		err = fill(j, i, e);
	for (size_t i = 0; i < j->count && !err; i++) {
		err = place(j, &j->outputs[i]);
		if (err)
			cannot_write(e, -err, j->outputs[i].path);
	}
	return err;
}

/* path: of the set, without a slash at its end. */
static int name_outputs(struct job *j, const char *path, char *const *names, struct error *e)
{
	j->outputs = calloc(j->count ?: 1, sizeof(*j->outputs));
	if (!j->outputs)
		return error_no_memory(e);
	for (size_t i = 0; i < j->count; i++) {
		struct output *o = &j->outputs[i];
		char *directory;
		int err;

		if (asprintf(&o->path, "%s/%s", path, names[i]) < 0) {
			o->path = NULL;
			return error_no_memory(e);
		}
		o->name = name_of(o->path);
		directory = parent_of(o->path);
		err = directory ? find_directory(j, directory, &o->directory) : -ENOMEM;
		if (err && directory)
			cannot_write(e, -err, directory);
		else if (err)
			error_no_memory(e);
		free(directory);
		if (err)
			return err;
	}
	return 0;
}

/* Removes temporary files; after a failure also new files and directories. */
static void remove_rest(struct job *j, bool failed)
{
	for (size_t i = 0; i < j->count; i++) {
		struct output *o = &j->outputs[i];
		int directory = j->directories[o->directory].fd;

		if (failed && o->state == CREATED)
			unlinkat(directory, o->name, 0);
		else if (failed && o->state == EXCHANGED)
			renameat2(directory, o->temporary, directory, o->name, RENAME_EXCHANGE);
		if (o->state == FILLED || o->state == EXCHANGED)
			unlinkat(directory, o->temporary, 0);
	}
	for (size_t i = j->directory_count; failed && i-- > 0;) {
		const struct opened *d = &j->directories[i];

		if (d->made)
			unlinkat(j->directories[d->parent].fd, name_of(d->path), AT_REMOVEDIR);
	}
}

/* Signals may end the process while it waits for the lock, but not while it writes files. */
static int write_all(struct job *j, struct error *e)
{
	struct held_signals held;
	int err = lock_directory(j, e);

	signals_hold(&held);
	err = err ?: write_files(j, e);
	remove_rest(j, err);
	signals_release(&held);
	return err;
}

static void free_job(struct job *j)
{
	for (size_t i = 0; j->outputs && i < j->count; i++)
		free(j->outputs[i].path);
	/* A child forked meanwhile has the descriptor too: close() would leave the lock to it. */
	if (j->locked)
		flock(j->directories[j->outputs[0].directory].fd, LOCK_UN);
	for (size_t i = 0; i < j->directory_count; i++) {
		if (j->directories[i].fd >= 0)
			close(j->directories[i].fd);
		free(j->directories[i].path);
	}
	free(j->directories);
	free(j->outputs);
}

int directory_write(const char *path, char *const *names, size_t count,
		    int (*write)(FILE *out, size_t number, int old, void *context, struct error *e),
		    void *context, struct error *e)
{
	struct job j = { .write = write, .context = context, .count = count };
	char *base = strdup(path);
	int err = base ? 0 : error_no_memory(e);

	if (base) {
		j.base_length = strlen(base);
		while (j.base_length > 1 && base[j.base_length - 1] == '/')
			base[--j.base_length] = '\0';
		err = name_outputs(&j, base, names, e);
	}
	if (!err && count)
		err = write_all(&j, e);
	free_job(&j);
	free(base);
	return err;
}
