// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/tree.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"

struct lister {
	const char *directory, *pattern;
	uint64_t since_ns, until_ns;
	unsigned int most_grain_s; /* of sums that are taken */
	char **hosts;
	size_t host_count, host_room;
	struct archive_window *windows;
	size_t count, room;
};

static int add_window(struct lister *l, const struct tree *t, const struct tree_window *found)
{
	const struct window_name *w = &found->name;
	struct archive_window *added;
	char path[4096];

	if (array_reserve(&l->windows, &l->room, l->count + 1, sizeof(*l->windows)))
		return -ENOMEM;
	tree_path(t, w, path, sizeof(path));
	added = &l->windows[l->count];
	*added = (struct archive_window){
		.path = malloc(strlen(path) + strlen(t->path) + 2),
		.start_ns = w->start_s * NS_PER_S,
		.limit_ns = (w->start_s + w->grain_s) * NS_PER_S,
		.grain_s = w->grain_s,
		.sum = w->sum,
		.bytes = found->bytes,
	};
	if (!added->path)
		return -ENOMEM;
	strcpy(added->path, path);
	added->host = strcpy(added->path + strlen(path) + 1, strrchr(t->path, '/') + 1);
	l->count++;
	return 0;
}

static int list_host(struct lister *l, const char *host, struct error *e)
{
	uint64_t since_s = l->since_ns / NS_PER_S;
	/* The window before midnight may reach into the day. */
	uint64_t first_s = since_s > WINDOW_HOUR_S ? since_s - WINDOW_HOUR_S : 0;
	bool *chosen = NULL;
	struct tree t;
	int err = tree_open(&t, l->directory, host, false, e);

	err = err ?: tree_scan(&t, first_s, l->until_ns / NS_PER_S, false, e);
	if (err)
		goto out;
	chosen = calloc(t.count + 1, sizeof(*chosen));
	if (!chosen) {
		err = error_no_memory(e);
		goto out;
	}
	tree_choose(&t, since_s, (l->until_ns + NS_PER_S - 1) / NS_PER_S, l->most_grain_s, chosen);
	for (size_t i = 0; i < t.count && !err; i++)
		if (chosen[i] && add_window(l, &t, &t.windows[i]))
			err = error_no_memory(e);
out:
	free(chosen);
	tree_close(&t);
	return err;
}

static int visit_host(int fd, const char *name, void *context)
{
	struct lister *l = context;

	(void)fd;
	if (*name == '.' || (l->pattern && fnmatch(l->pattern, name, 0) != 0))
		return 0;
	if (array_reserve(&l->hosts, &l->host_room, l->host_count + 1, sizeof(*l->hosts)))
		return -ENOMEM;
	l->hosts[l->host_count] = strdup(name);
	return l->hosts[l->host_count++] ? 0 : -ENOMEM;
}

ORDER(by_name, char *const, strcmp(*a, *b))

int archive_list_sums(const char *directory, const char *host, uint64_t since_ns, uint64_t until_ns,
		      unsigned int most_grain_s, struct archive_window **windows, size_t *count,
		      struct error *e)
{
	struct lister l = {
		.directory = directory,
		.pattern = host,
		.since_ns = since_ns,
		.until_ns = MIN(until_ns, UINT64_MAX - NS_PER_S),
		.most_grain_s = most_grain_s,
	};
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 ? -errno : tree_visit(fd, visit_host, &l);

	if (err == -ENOMEM)
		error_no_memory(e);
	else if (err)
		error_set(e, -err, "cannot read %s", directory);
	if (l.host_count)
		qsort(l.hosts, l.host_count, sizeof(*l.hosts), by_name);
	for (size_t i = 0; i < l.host_count && !err; i++) {
		char path[4096];

		/* Files, and symbolic links, are no hosts. */
		snprintf(path, sizeof(path), "%s/%s", directory, l.hosts[i]);
		fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		close(fd);
		err = list_host(&l, l.hosts[i], e);
	}
	array_free_texts(l.hosts, l.host_count);
	if (err) {
		archive_list_free(l.windows, l.count);
		l = (struct lister){ 0 };
	}
	*windows = l.windows;
	*count = l.count;
	return err;
}

int archive_list(const char *directory, const char *host, uint64_t since_ns, uint64_t until_ns,
		 struct archive_window **windows, size_t *count, struct error *e)
{
	return archive_list_sums(directory, host, since_ns, until_ns, 0, windows, count, e);
}

void archive_list_free(struct archive_window *windows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(windows[i].path);
	free(windows);
}
