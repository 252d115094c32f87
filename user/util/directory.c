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

/*
 * How often a name that another writer has taken, or a directory that it has removed, is retried.
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

/* --- Temporary files: how each file is written and renamed --- */

struct temporary {
	char name[TEMPORARY_SIZE];
	enum {
		ABSENT,
		WRITTEN,   /* under its temporary name */
		CREATED,   /* under its own name */
		EXCHANGED, /* under its own name; the file before it has the temporary name */
		REPLACED   /* the file before it is gone */
	} state;
};

/* Creates a file with a name that nobody has, and nobody can guess. Returns it open, or -errno. */
static int temporary_create(struct temporary *t, int directory)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		uint64_t number;
		int fd;

		/*
		 * Where a filter of system calls refuses it, names can be guessed: O_EXCL remains.
		 */
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
			number = clock_ns(CLOCK_MONOTONIC) << 16 ^ (uint64_t)getpid() << 40;
		snprintf(t->name, sizeof(t->name), TEMPORARY "%016jx", (uintmax_t)number);
		fd = openat(directory, t->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    FILE_MODE);
		if (fd >= 0) {
			t->state = WRITTEN;
			return fd;
		}
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

/*
 * Renames a complete file. flag: RENAME_NOREPLACE, for -EEXIST if the name is taken;
 * RENAME_EXCHANGE, so that temporary_end() can restore what it replaces; 0: neither. Some file
 * systems know no flags: a lock must exclude other writers there. Returns 0 or -errno.
 */
static int temporary_place(struct temporary *t, int directory, const char *name, unsigned int flag)
{
	struct stat status;
	bool is_new = fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0;

	if (!is_new && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST;
	if (flag && renameat2(directory, t->name, directory, name, flag) == 0) {
		t->state = flag == RENAME_EXCHANGE ? EXCHANGED : CREATED;
		return 0;
	}
	if (flag == RENAME_EXCHANGE && errno == ENOENT)
		is_new = true;
	else if (flag && errno != EINVAL && errno != ENOSYS)
		return -errno;
	else if (flag == RENAME_NOREPLACE && !is_new)
		return -EEXIST;
	if (renameat(directory, t->name, directory, name))
		return -errno;
	t->state = is_new ? CREATED : REPLACED;
	return 0;
}

/* Removes what has the temporary name. failed: restores what had the file's name. */
static void temporary_end(const struct temporary *t, int directory, const char *name, bool failed)
{
	if (failed && t->state == CREATED)
		unlinkat(directory, name, 0);
	else if (failed && t->state == EXCHANGED)
		renameat2(directory, t->name, directory, name, RENAME_EXCHANGE);
	if (t->state == WRITTEN || t->state == EXCHANGED)
		unlinkat(directory, t->name, 0);
}

/* --- A file --- */

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

int directory_write_file(int directory, const char *name, const char *path, unsigned int flags,
			 int (*write)(FILE *out, void *context, struct error *e), void *context,
			 struct error *e)
{
	struct temporary t = { .state = ABSENT };
	struct held_signals held;
	int fd, err;

	signals_hold(&held);
	fd = temporary_create(&t, directory);
	if (fd < 0)
		err = error_set(e, -fd, "cannot write %s", path);
	else
		err = directory_fill_file(fd, path, flags & DIRECTORY_DURABLE, write, context, e);
	if (!err) {
		err = temporary_place(&t, directory, name,
				      flags & DIRECTORY_NEW ? RENAME_NOREPLACE : 0);
		if (!err && flags & DIRECTORY_DURABLE && fsync(directory))
			err = -errno;
		if (err)
			error_set(e, -err, "cannot write %s", path);
	}
	temporary_end(&t, directory, name, err);
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
	char *path;    /* for messages; up to the set's own path also to open it */
	size_t parent; /* NONE: it was there, and was opened by its path */
	int fd;
	bool made;
};

#define NONE SIZE_MAX

struct output {
	char *path; /* for messages */
	const char *name;
	size_t directory;
	struct temporary temporary;
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

/* Returns the directory of a path; the caller frees it. NULL: out of memory. */
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

/*
 * Who may open the directory can lock it for ever. Writers hold the lock for milliseconds.
 * Bound: users: time to wait for the lock of a directory; then: the file is not written; again: at
 * the next attempt; share: none: who may open it can lock it; seen: in an error, and
 * windows_failed.
 */
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

/*
 * Has write() make the content in memory, and writes that to a temporary file. With a stream on the
 * file, a child forked meanwhile would write the stream's buffer a second time when it exits.
 */
static int write_temporary(struct job *j, size_t number, struct error *e)
{
	struct output *o = &j->outputs[number];
	int err = open_again(j, o->directory), fd = -1, old;
	char *bytes = NULL;
	size_t size;
	bool failed;
	FILE *out;

	if (err && err != -ENOENT)
		return cannot_write(e, -err, o->path);
	old = err ?: directory_open_file(j->directories[o->directory].fd, o->name);
	out = open_memstream(&bytes, &size);
	if (out) {
		err = j->write(out, number, old, j->context, e);
		failed = ferror(out);
		failed |= fclose(out) != 0;
		if (!err && failed)
			err = error_no_memory(e);
	} else {
		err = error_no_memory(e);
	}
	/* A directory that another writer removes meanwhile is made again. */
	for (int attempt = 0; !err && fd < 0; attempt++) {
		fd = open_again(j, o->directory)
			     ?: temporary_create(&o->temporary, j->directories[o->directory].fd);
		if (fd < 0 && (fd != -ENOENT || attempt == ATTEMPTS))
			err = cannot_write(e, -fd, o->path);
	}
	/* A file that replaces another must be on the disk before the other is removed. */
	if (!err && (write_all_bytes(fd, bytes, size) || (old != -ENOENT && fsync(fd))))
		err = cannot_write(e, errno, o->path);
	free(bytes);
	if (old >= 0)
		close(old);
	if (fd >= 0 && close(fd) && !err)
		err = cannot_write(e, errno, o->path);
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

/*
 * Writes all files, or none. Signals may end the process while it waits for the lock, but not while
 * it writes files.
 */
static int write_all(struct job *j, struct error *e)
{
	struct held_signals held;
	int err = lock_directory(j, e);

	signals_hold(&held);
	if (!err && j->locked)
		directory_remove_temporaries(j->directories[j->outputs[0].directory].fd);
	for (size_t i = 0; i < j->count && !err; i++)
		err = write_temporary(j, i, e);
	for (size_t i = 0; i < j->count && !err; i++) {
		struct output *o = &j->outputs[i];

		err = temporary_place(&o->temporary, j->directories[o->directory].fd, o->name,
				      RENAME_EXCHANGE);
		if (err)
			cannot_write(e, -err, o->path);
	}
	for (size_t i = 0; i < j->count; i++) {
		struct output *o = &j->outputs[i];

		temporary_end(&o->temporary, j->directories[o->directory].fd, o->name, err);
	}
	for (size_t i = j->directory_count; err && i-- > 0;) {
		const struct opened *d = &j->directories[i];

		if (d->made)
			unlinkat(j->directories[d->parent].fd, name_of(d->path), AT_REMOVEDIR);
	}
	signals_release(&held);
	return err;
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
	for (size_t i = 0; j.outputs && i < count; i++)
		free(j.outputs[i].path);
	/* A child forked meanwhile has the descriptor too: close() would leave the lock to it. */
	if (j.locked)
		flock(j.directories[j.outputs[0].directory].fd, LOCK_UN);
	for (size_t i = 0; i < j.directory_count; i++) {
		if (j.directories[i].fd >= 0)
			close(j.directories[i].fd);
		free(j.directories[i].path);
	}
	free(j.directories);
	free(j.outputs);
	free(base);
	return err;
}
