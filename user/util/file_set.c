// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/file_set.h"
#include "util/array.h"
#include "util/signals.h"

/* How often a directory is created again after another writer, which failed, has removed it. */
#define ATTEMPTS 100

struct output {
	char *target;
	char *temporary; /* in the same directory */
	enum {
		ABSENT,
		FILLED,	   /* under its temporary name */
		CREATED,   /* under its own name */
		EXCHANGED, /* under its own name; the file before it has the temporary name */
		REPLACED   /* the file system cannot exchange: the file before it is gone */
	} state;
};

struct job {
	int (*write)(FILE *out, size_t number, void *context, struct error *e);
	void *context;
	struct output *outputs;
	size_t count;
	int lock;    /* the first file's directory */
	bool locked; /* false: the file system has no locks */
	char **made; /* the directories created, outer ones first */
	size_t made_count, made_room;
};

static int cannot_write(struct error *e, int code, const char *path)
{
	error_set(e, code, "cannot write %s", path);
	if (code == EROFS || code == EACCES || code == EPERM || code == ENOSPC || code == EDQUOT)
		error_hint(e, "give another directory");
	return -code;
}

void directory_clean_name(char *name)
{
	if (*name == '.')
		*name = '_';
	for (; *name; name++)
		if (*name == '/' || (unsigned char)*name < ' ' || *name == 0x7f)
			*name = '_';
}

/* --- Directories --- */

static int make_directory(struct job *j, const char *path, struct error *e)
{
	if (array_reserve(&j->made, &j->made_room, j->made_count + 1, sizeof(*j->made)))
		return error_no_memory(e);
	if (mkdir(path, 0700))
		return errno == EEXIST ? 0 : cannot_write(e, errno, path);
	j->made[j->made_count] = strdup(path);
	return j->made[j->made_count++] ? 0 : error_no_memory(e);
}

/* Creates the missing directories of a file's path. */
static int make_directories(struct job *j, char *file, struct error *e)
{
	int err = 0;

	for (char *slash = strchr(file + 1, '/'); slash && !err; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		err = make_directory(j, file, e);
		*slash = '/';
	}
	return err;
}

/*
 * A writer that fails removes the directories it has created: a writer that waited for the lock
 * then holds the lock of a removed directory.
 */
static bool is_removed(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_nlink == 0;
}

/* Creates and locks the first file's directory: no other writer changes what write() reads. */
static int lock_directory(struct job *j, struct error *e)
{
	char *file = j->outputs[0].target, *slash = strrchr(file, '/');
	int err = 0;

	for (int attempt = 0; !err && attempt < ATTEMPTS; attempt++) {
		err = make_directories(j, file, e);
		if (err)
			break;
		*slash = '\0';
		j->lock = open(file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (j->lock < 0 && errno != ENOENT)
			err = cannot_write(e, errno, file);
		*slash = '/';
		do {
			j->locked = j->lock >= 0 && flock(j->lock, LOCK_EX) == 0;
		} while (j->lock >= 0 && !j->locked && errno == EINTR);
		if (j->lock >= 0 && !is_removed(j->lock))
			return 0;
		if (j->lock >= 0)
			close(j->lock);
		j->lock = -1;
	}
	return err ?: cannot_write(e, ENOENT, file);
}

/* --- One file --- */

/* Temporary names are hidden, and short however long the file's name is. */
#define TEMPORARY "profil-"

/* Removes what killed writers have left. The lock shows that no other writer is running. */
static void remove_temporaries(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (fd >= 0 && !stream)
		close(fd);
	while (stream && (entry = readdir(stream)))
		if (strncmp(entry->d_name, "." TEMPORARY, sizeof(TEMPORARY)) == 0)
			unlinkat(directory, entry->d_name, 0);
	if (stream)
		closedir(stream);
}

static int name_temporary(struct output *o, struct error *e)
{
	int length = strrchr(o->target, '/') + 1 - o->target;

	free(o->temporary);
	if (asprintf(&o->temporary, "%.*s." TEMPORARY "XXXXXX", length, o->target) >= 0)
		return 0;
	o->temporary = NULL;
	return error_no_memory(e);
}

static int open_temporary(struct job *j, struct output *o, struct error *e)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int err = name_temporary(o, e), fd;

		if (err)
			return err;
		fd = mkostemp(o->temporary, O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			break;
		err = make_directories(j, o->target, e);
		if (err)
			return err;
	}
	return cannot_write(e, errno, o->target);
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

/* A file that replaces another must be on the disk before the other is removed. */
static int write_content(int fd, const char *target, const char *bytes, size_t size)
{
	if (write_all_bytes(fd, bytes, size))
		return -1;
	return access(target, F_OK) ? 0 : fsync(fd);
}

/*
 * Has write() make the content in memory; the caller free()s *bytes. With a stream on the file, a
 * child forked meanwhile would write the stream's buffer a second time when it exits.
 */
static int make_content(struct job *j, size_t number, char **bytes, size_t *size, struct error *e)
{
	FILE *out = open_memstream(bytes, size);
	bool failed;
	int err;

	if (!out)
		return error_no_memory(e);
	err = j->write(out, number, j->context, e);
	failed = ferror(out);
	failed |= fclose(out) != 0;
	return err ?: failed ? error_no_memory(e) : 0;
}

static int fill(struct job *j, size_t number, struct error *e)
{
	struct output *o = &j->outputs[number];
	char *bytes = NULL;
	size_t size;
	int err = make_content(j, number, &bytes, &size, e), fd = -1;

	if (!err) {
		fd = open_temporary(j, o, e);
		err = fd < 0 ? fd : 0;
	}
	if (!err) {
		o->state = FILLED;
		if (write_content(fd, o->target, bytes, size))
			err = cannot_write(e, errno, o->target);
	}
	free(bytes);
	if (fd >= 0 && close(fd) && !err)
		err = cannot_write(e, errno, o->target);
	return err;
}

/* Gives a file its own name. Returns 0 or -errno. */
static int place(struct output *o)
{
	struct stat status;
	bool is_new;

	if (lstat(o->target, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST;
	if (renameat2(AT_FDCWD, o->temporary, AT_FDCWD, o->target, RENAME_EXCHANGE) == 0) {
		o->state = EXCHANGED;
		return 0;
	}
	is_new = errno == ENOENT;
	if (!is_new && errno != EINVAL)
		return -errno;
	if (rename(o->temporary, o->target))
		return -errno;
	o->state = is_new ? CREATED : REPLACED;
	return 0;
}

static void take_back(struct output *o)
{
	if (o->state == CREATED)
		unlink(o->target);
	else if (o->state == EXCHANGED)
		renameat2(AT_FDCWD, o->temporary, AT_FDCWD, o->target, RENAME_EXCHANGE);
}

/* --- All of them --- */

static int write_files(struct job *j, struct error *e)
{
	int err = 0;

	if (j->locked)
		remove_temporaries(j->lock);
	for (size_t i = 0; i < j->count && !err; i++)
		err = fill(j, i, e);
	for (size_t i = 0; i < j->count && !err; i++) {
		err = place(&j->outputs[i]);
		if (err)
			cannot_write(e, -err, j->outputs[i].target);
	}
	return err;
}

static int name_targets(struct job *j, const char *path, char *const *names, struct error *e)
{
	j->outputs = calloc(j->count ?: 1, sizeof(*j->outputs));
	if (!j->outputs)
		return error_no_memory(e);
	for (size_t i = 0; i < j->count; i++) {
		if (asprintf(&j->outputs[i].target, "%s/%s", path, names[i]) >= 0)
			continue;
		j->outputs[i].target = NULL;
		return error_no_memory(e);
	}
	return 0;
}

/* Removes temporary files; after a failure also new files and directories. */
static void remove_rest(struct job *j, bool failed)
{
	for (size_t i = 0; i < j->count; i++) {
		struct output *o = &j->outputs[i];

		if (failed)
			take_back(o);
		if (o->state == FILLED || o->state == EXCHANGED)
			unlink(o->temporary);
	}
	for (size_t i = j->made_count; failed && i-- > 0;)
		if (j->made[i])
			rmdir(j->made[i]);
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
	for (size_t i = 0; j->outputs && i < j->count; i++) {
		free(j->outputs[i].temporary);
		free(j->outputs[i].target);
	}
	for (size_t i = 0; i < j->made_count; i++)
		free(j->made[i]);
	/* A child forked meanwhile has the descriptor too: close() would leave the lock to it. */
	if (j->locked)
		flock(j->lock, LOCK_UN);
	if (j->lock >= 0)
		close(j->lock);
	free(j->made);
	free(j->outputs);
}

int directory_write(const char *path, char *const *names, size_t count,
		    int (*write)(FILE *out, size_t number, void *context, struct error *e),
		    void *context, struct error *e)
{
	struct job j = { .write = write, .context = context, .count = count, .lock = -1 };
	int err = name_targets(&j, path, names, e);

	if (!err && count)
		err = write_all(&j, e);
	free_job(&j);
	return err;
}
