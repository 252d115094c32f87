// SPDX-License-Identifier: GPL-2.0-only
#include "archive/packages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/tree.h"

#define PACKAGES_FILE ".packages" /* in the host's directory of the archive */

/*
 * Of one host: some megabytes at most, whatever others write there.
 * Bound: machine: packages whose versions are remembered of a host; then: the oldest are forgotten;
 * again: when they are asked for again; share: none; seen: not seen.
 */
#define PACKAGES_MOST 10000
#define LINE_SIZE     512

const struct archive_package *packages_find(const struct archive_packages *p, const char *build)
{
	struct archive_package key = { .build = "" };
	uint32_t id;

	snprintf(key.build, sizeof(key.build), "%s", build);
	id = table_find(&p->table, key.build, sizeof(key.build));
	return id == INDEX_NONE ? NULL : &p->table.all[id];
}

int packages_add(struct archive_packages *p, const char *build, const char *name,
		 const char *version)
{
	struct archive_package new = { .name = strdup(name), .version = strdup(version) };
	uint32_t id;

	snprintf(new.build, sizeof(new.build), "%s", build);
	if (new.name &&new.version && !table_add(&p->table, &new, sizeof(new.build), &id))
		return 0;
	free(new.name);
	free(new.version);
	return -ENOMEM;
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
	for (size_t i = p->table.count > PACKAGES_MOST ? p->table.count - PACKAGES_MOST : 0;
	     i < p->table.count; i++)
		fprintf(out, "%s %s %s\n", p->table.all[i].build, p->table.all[i].name,
			p->table.all[i].version);
	return 0;
}

int packages_write(struct archive_packages *p, const char *directory, const char *host,
		   struct error *e)
{
	return tree_write_list(directory, host, PACKAGES_FILE, write_packages, p, e);
}

void packages_free(struct archive_packages *p)
{
	for (size_t i = 0; i < p->table.count; i++) {
		free(p->table.all[i].name);
		free(p->table.all[i].version);
	}
	table_free(&p->table);
	*p = (struct archive_packages){ 0 };
}
