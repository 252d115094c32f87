// SPDX-License-Identifier: GPL-2.0-only
#include "push/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"
#include "util/file_set.h"
#include "util/number.h"

#define NAME	     ".pushed"
#define URL_PREFIX   "url "
#define UNTIL_PREFIX "until_ns "

char *cursor_path(const char *directory, const char *host)
{
	char *name = strdup(*host ? host : "unknown"), *path = NULL;

	if (name) {
		directory_clean_name(name);
		if (asprintf(&path, "%s/%s/%s", directory, name, NAME) < 0)
			path = NULL;
	}
	free(name);
	return path;
}

/* Reads a line that begins with this prefix, and returns what follows in it, or NULL. */
static char *read_line(FILE *in, char **line, size_t *room, const char *prefix)
{
	ssize_t size = getline(line, room, in);

	if (size <= 0 || (*line)[size - 1] != '\n' || strncmp(*line, prefix, strlen(prefix)) != 0)
		return NULL;
	(*line)[size - 1] = '\0';
	return *line + strlen(prefix);
}

static int parse(FILE *in, const char *url, uint64_t *until_ns)
{
	char *line = NULL, *rest;
	size_t room = 0;
	int err = -EINVAL;

	rest = read_line(in, &line, &room, URL_PREFIX);
	if (rest && strcmp(rest, url) != 0)
		err = -ENOENT;
	else if (rest)
		rest = read_line(in, &line, &room, UNTIL_PREFIX);
	if (rest && err == -EINVAL && number_parse(rest, 0, UINT64_MAX, until_ns) == 0)
		err = 0;
	free(line);
	return err;
}

int cursor_read(const char *path, const char *url, uint64_t *until_ns, struct error *e)
{
	FILE *in = fopen(path, "re");
	int err;

	if (!in)
		return error_set(e, errno, "cannot read %s", path);
	err = parse(in, url, until_ns);
	fclose(in);
	if (err == -EINVAL) {
		error_set(e, 0, "%s is corrupt", path);
		error_hint(e, "windows that waited are not sent; it is written anew");
	} else if (err) {
		error_set(e, -err, "%s", path);
	}
	return err;
}

struct cursor {
	const char *url;
	uint64_t until_ns;
};

static int write_cursor(FILE *out, void *context, struct error *e)
{
	const struct cursor *c = context;

	fprintf(out, URL_PREFIX "%s\n" UNTIL_PREFIX "%" PRIu64 "\n", c->url, c->until_ns);
	return fflush(out) || fsync(fileno(out)) ? error_set(e, errno, "cannot write") : 0;
}

int cursor_write(const char *path, const char *url, uint64_t until_ns, struct error *e)
{
	return file_write(path, write_cursor, &(struct cursor){ url, until_ns }, e);
}
