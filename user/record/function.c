// SPDX-License-Identifier: GPL-2.0-only
#include "record/function.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/snapshot.h"
#include "symbol/entry.h"
#include "util/file_open.h"

/* The colon between image and function: not one of "::". NULL: there is none. */
static const char *find_colon(const char *text)
{
	for (; *text; text++)
		if (text[0] == ':' && text[1] == ':')
			text++;
		else if (*text == ':')
			return text;
	return NULL;
}

/* Whether a path is what IMAGE names. */
static bool is_image(const char *path, const char *image)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t size = strlen(image);

	if (strchr(image, '/'))
		return strcmp(path, image) == 0;
	return strncmp(name, image, size) == 0 &&
	       (!name[size] || strncmp(name + size, ".so", 3) == 0);
}

/* Opens what a process has mapped: an image of this name, or the program. */
static int open_mapped(pid_t pid, const char *image, char path[PATH_MAX],
		       struct capture_function *function, int *root, struct error *e)
{
	struct process_table table = { 0 };
	const struct address_space *space;
	int err = snapshot_process(&table, pid, 0);

	space = !err && table.count ? process_space(&table.processes[0]) : NULL;
	for (size_t i = 0; space && i < space->count && function->file < 0; i++) {
		const struct capture_mapping *m = &space->mappings[i];
		const struct capture_image *mapped = &table.images[m->image];

		if (image ? !is_image(mapped->path, image) : !m->executable)
			continue;
		snprintf(path, PATH_MAX, "%s", mapped->path);
		function->file = mapped->fd < 0 ? -1 : fcntl(mapped->fd, F_DUPFD_CLOEXEC, 0);
		*root = mapped->root < 0 ? -1 : fcntl(mapped->root, F_DUPFD_CLOEXEC, 0);
	}
	process_table_free(&table);
	return err ? error_no_memory(e) : 0;
}

int function_find(const char *text, pid_t pid, const char *program, bool returns,
		  struct capture_function *function, struct error *e)
{
	const char *colon = find_colon(text), *name = colon ? colon + 1 : text;
	char path[PATH_MAX] = "", image[PATH_MAX] = "";
	struct symbol_entry entry = { .returns = returns ? function->returns : NULL,
				      .max = CAPTURE_RETURNS_MAX };
	int root = -1, err = 0;

	function->file = -1;
	if (colon)
		snprintf(image, sizeof(image), "%.*s", (int)(colon - text), text);
	if (!*name || (colon && colon == text))
		return error_usage(e, "as main, or libc:malloc", "\"%s\" is no [IMAGE:]FUNCTION",
				   text);
	if (pid)
		err = open_mapped(pid, colon ? image : NULL, path, function, &root, e);
	else if (program && (!colon || is_image(program, image)))
		snprintf(path, sizeof(path), "%s", program);
	if (!err && !*path && strchr(image, '/'))
		snprintf(path, sizeof(path), "%s", image);
	if (!err && !*path) {
		if (pid)
			err = error_set(e, 0, "process %d has not mapped %s", pid,
					colon ? image : "its program");
		else
			err = error_set(e, 0, "which program or library has \"%s\" is not known",
					name);
		error_hint(e, "give its path: /usr/bin/x:%s", name);
	}
	if (!err && function->file < 0) {
		function->file = file_open_regular(-1, path, NULL);
		if (function->file < 0)
			err = error_set(e, -function->file, "cannot open %s", path);
	}
	err = err ?: symbol_find_entry(function->file, root, path, name, &entry, e);
	function->offset = entry.offset;
	function->return_count = entry.count;
	file_close(root);
	if (err && function->file >= 0) {
		close(function->file);
		function->file = -1;
	}
	return err;
}
