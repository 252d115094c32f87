// SPDX-License-Identifier: GPL-2.0-only
#include "archive/packages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/tree.h"
#include "util/array.h"

#define PACKAGES_FILE ".packages" /* in the host's directory of the archive */

/*
 * Of one host: some megabytes at most, whatever others write there.
 * Bound: machine: packages whose versions are remembered of a host; then: the oldest are forgotten;
 * again: when they are asked for again; share: none; seen: not seen.
 */
#define PACKAGES_MOST 10000
#define LINE_SIZE     512

static bool package_equal(const void *array, uint32_t id, const void *key)
{
	return strcmp(((const struct archive_package *)array)[id].build, key) == 0;
}

const struct archive_package *packages_find(const struct archive_packages *p, const char *build)
{
	uint64_t hash = hash_bytes(build, strlen(build), 0);
	uint32_t id = index_find(&p->index, hash, package_equal, p->list, build);

	return id == INDEX_NONE ? NULL : &p->list[id];
}

int packages_add(struct archive_packages *p, const char *build, const char *name,
		 const char *version)
{
	uint64_t hash = hash_bytes(build, strlen(build), 0);
	struct archive_package *new;

	if (array_reserve(&p->list, &p->room, p->count + 1, sizeof(*p->list)))
		return -ENOMEM;
	new = &p->list[p->count];
	*new = (struct archive_package){ .name = strdup(name), .version = strdup(version) };
	snprintf(new->build, sizeof(new->build), "%s", build);
	if (!new->name || !new->version || index_add(&p->index, hash, p->count)) {
		free(new->name);
		free(new->version);
		return -ENOMEM;
	}
	p->count++;
	return 0;
}

int packages_read(struct archive_packages *p, const char *directory, const char *host)
{
	FILE *in = tree_read_list(directory, host, PACKAGES_FILE);
	int err = 0;

	for (size_t i = 0; in && !err && i < PACKAGES_MOST; i++) {
		char line[LINE_SIZE], *rest = line, *words[3];
		uint8_t bytes[PROFILE_BUILD_ID_MAX];

		if (!fgets(line, sizeof(line), in))
			break;
		rest[strcspn(rest, "\n")] = '\0';
		for (size_t k = 0; k < 3; k++)
			words[k] = strsep(&rest, " ");
		if (words[2] && !rest && *words[1] && *words[2] &&
		    build_id_parse(words[0], strlen(words[0]), bytes) &&
		    !packages_find(p, words[0]))
			err = packages_add(p, words[0], words[1], words[2]);
	}
	if (in)
		fclose(in);
	return err;
}

static int write_packages(FILE *out, void *context, struct error *e)
{
	const struct archive_packages *p = context;

	(void)e;
	for (size_t i = p->count > PACKAGES_MOST ? p->count - PACKAGES_MOST : 0; i < p->count; i++)
		fprintf(out, "%s %s %s\n", p->list[i].build, p->list[i].name, p->list[i].version);
	return 0;
}

int packages_write(struct archive_packages *p, const char *directory, const char *host,
		   struct error *e)
{
	return tree_write_list(directory, host, PACKAGES_FILE, write_packages, p, e);
}

void packages_free(struct archive_packages *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->list[i].name);
		free(p->list[i].version);
	}
	free(p->list);
	index_free(&p->index);
	*p = (struct archive_packages){ 0 };
}
