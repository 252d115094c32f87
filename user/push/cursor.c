// SPDX-License-Identifier: GPL-2.0-only
#include "push/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/tree.h"
#include "util/directory.h"
#include "util/number.h"

#define NAME	     ".pushed"
#define URL_PREFIX   "url "
#define UNTIL_PREFIX "until_ns "

/* Reads a line that begins with this prefix, and returns what follows in it, or NULL. */
static char *read_line(FILE *in, char **line, size_t *room, const char *prefix)
{
	ssize_t size = getline(line, room, in);

	if (size <= 0 || (*line)[size - 1] != '\n' || strncmp(*line, prefix, strlen(prefix)) != 0)
		return NULL;
	(*line)[size - 1] = '\0';
	return *line + strlen(prefix);
}

int cursor_read(const char *directory, const char *host, const char *url, uint64_t *until_ns,
		struct error *e)
{
	struct tree t;
	int err = tree_open(&t, directory, host, false, e), fd;
	FILE *in;

	if (!err) {
		fd = directory_open_file(t.fd, NAME);
		in = fd < 0 ? NULL : fdopen(fd, "r");
		if (!in) {
			err = error_set(e, fd < 0 ? -fd : errno, "cannot read %s/" NAME, t.path);
			if (fd == -ELOOP) /* somebody put a link there: as if it were corrupt */
				err = -EINVAL;
		} else {
			char *line = NULL, *rest;
			size_t room = 0;

			err = -EINVAL;
			rest = read_line(in, &line, &room, URL_PREFIX);
			if (rest && strcmp(rest, url) != 0)
				err = -ENOENT;
			else if (rest)
				rest = read_line(in, &line, &room, UNTIL_PREFIX);
			if (rest && err == -EINVAL &&
			    number_parse(rest, 0, UINT64_MAX, until_ns) == 0)
				err = 0;
			free(line);
			fclose(in);
			if (err == -EINVAL) {
				error_set(e, 0, "%s/" NAME " is corrupt", t.path);
				error_hint(e,
					   "windows that waited are not sent; it is written anew");
			} else if (err) {
				error_set(e, -err, "%s/" NAME, t.path);
			}
		}
		if (!in && fd >= 0)
			close(fd);
	}
	tree_close(&t);
	return err;
}

struct cursor {
	const char *url;
	uint64_t until_ns;
};

static int write_cursor(FILE *out, void *context, struct error *e)
{
	const struct cursor *c = context;

	(void)e;
	fprintf(out, URL_PREFIX "%s\n" UNTIL_PREFIX "%" PRIu64 "\n", c->url, c->until_ns);
	return 0;
}

int cursor_write(const char *directory, const char *host, const char *url, uint64_t until_ns,
		 struct error *e)
{
	struct cursor cursor = { url, until_ns };
	char path[PATH_MAX];
	struct tree t;
	int err = tree_open(&t, directory, host, false, e);

	if (!err) {
		snprintf(path, sizeof(path), "%s/" NAME, t.path);
		err = directory_write_file(t.fd, NAME, path, DIRECTORY_DURABLE, write_cursor,
					   &cursor, e);
	}
	tree_close(&t);
	return err;
}
