// SPDX-License-Identifier: GPL-2.0-only
#include "report/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"
#include "util/file.h"

/*
 * Opens `name` below a directory: as a whole, else without its first component, its first two, and
 * so on. Returns the descriptor or a negative errno.
 */
static int open_below(const char *directory, const char *name, struct stat *status)
{
	char path[PATH_MAX];
	int fd = -ENOENT;

	/* ".." would lead out of the directory. */
	for (const char *dots = name; (dots = strstr(dots, "..")); dots += 2)
		if ((dots == name || dots[-1] == '/') && (dots[2] == '/' || !dots[2]))
			return -EINVAL;
	for (const char *rest = name; rest && fd < 0; rest = strchr(rest, '/')) {
		rest += strspn(rest, "/");
		if (snprintf(path, sizeof(path), "%s/%s", directory, rest) < (int)sizeof(path))
			fd = file_open_regular(-1, path, status);
	}
	return fd;
}

static ssize_t read_whole(int fd, char *text, size_t size)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < size && n > 0) {
		n = pread(fd, text + done, size - done, (off_t)done);
		if (n > 0)
			done += n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	return n < 0 ? -errno : (ssize_t)done;
}

static int read_source(struct source_files *s, struct source_file *f)
{
	/*
	 * A profile, or a user's program, can name any file: run by root, annotate would show all
	 * users files that only root may read.
	 */
	const unsigned int rules = geteuid() == 0 ? FILE_PUBLIC : 0;
	struct stat status;
	int fd = file_open_regular_by_rules(s->has_root ? s->root : -1, f->name, rules, &status);
	size_t room = 0;
	ssize_t size;

	if (fd == -EACCES && s->own_directory && strstr(f->name, s->own_directory) == f->name) {
		int root = file_open_by_rules(-1, s->own_directory, O_PATH | O_DIRECTORY,
					      FILE_OWN_PATH);

		/* Links are resolved as after chroot(2): none leads out. */
		if (root >= 0) {
			fd = file_open_regular(root, f->name + strlen(s->own_directory), &status);
			close(root);
		}
	}
	f->is_private = rules && fd == -EACCES;
	if (fd < 0 && s->directory)
		fd = open_below(s->directory, f->name, &status);
	if (fd < 0)
		return 0;
	f->is_private = false;
	if (status.st_size > (off_t)(SOURCE_FILES_MAX - s->bytes)) {
		f->too_large = true;
		close(fd);
		return 0;
	}
	f->text = calloc(1, status.st_size + 1);
	size = f->text ? read_whole(fd, f->text, status.st_size) : -ENOMEM;
	close(fd);
	if (!f->text)
		return -ENOMEM;
	f->mtime = status.st_mtime;
	s->bytes += status.st_size;
	for (char *line = f->text, *end = f->text + size; line < end;) {
		char *newline = memchr(line, '\n', end - line);

		if (array_reserve(&f->lines, &room, f->line_count + 1, sizeof(*f->lines)))
			return -ENOMEM;
		f->lines[f->line_count++] = line;
		if (!newline)
			break;
		*newline = '\0';
		line = newline + 1;
	}
	return 0;
}

static bool name_equal(const void *array, uint32_t id, const void *key)
{
	return strcmp(((struct source_file *const *)array)[id]->name, key) == 0;
}

int source_files_find(struct source_files *s, const char *name, const struct source_file **file)
{
	uint64_t hash = hash_bytes(name, strlen(name), 0);
	uint32_t id = index_find(&s->index, hash, name_equal, s->files, name);
	struct source_file *f;

	if (id != INDEX_NONE) {
		*file = s->files[id];
		return 0;
	}
	f = calloc(1, sizeof(*f));
	if (!f || array_reserve(&s->files, &s->room, s->count + 1, sizeof(*s->files)) ||
	    index_add(&s->index, hash, s->count)) {
		free(f);
		return -ENOMEM;
	}
	f->name = name;
	s->files[s->count++] = f;
	*file = f;
	return *name ? read_source(s, f) : 0;
}

void source_files_trust(struct source_files *s, const char *image, int fd)
{
	char *directory = *image == '/' ? strdup(image) : NULL, *slash = directory;
	int opened = -1;
	struct stat status, read;

	if (directory && geteuid() == 0)
		opened = file_open_by_rules(-1, image, O_PATH, FILE_OWN_PATH);
	if (opened < 0 || fstat(opened, &status) || !S_ISREG(status.st_mode) ||
	    (fd >= 0 &&
	     (fstat(fd, &read) || read.st_dev != status.st_dev || read.st_ino != status.st_ino)))
		slash = NULL;
	/* The outermost directory that not all may enter. */
	while (slash && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (stat(directory, &status) == 0 && !(status.st_mode & S_IXOTH))
			break;
		*slash = '/';
	}
	if (slash)
		strcpy(slash, "/");
	else
		free(directory);
	s->own_directory = slash ? directory : NULL;
	if (opened >= 0)
		close(opened);
}

void source_files_free(struct source_files *s)
{
	if (s->has_root)
		close(s->root);
	free(s->own_directory);
	for (size_t i = 0; i < s->count; i++) {
		free(s->files[i]->text);
		free(s->files[i]->lines);
		free(s->files[i]);
	}
	free(s->files);
	index_free(&s->index);
	*s = (struct source_files){ 0 };
}

const char *source_file_line(const struct source_file *f, uint64_t number)
{
	return number && number <= f->line_count ? f->lines[number - 1] : NULL;
}
