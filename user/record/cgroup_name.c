// SPDX-License-Identifier: GPL-2.0-only
#include "record/cgroup_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A directory of the path. */
struct part {
	const char *text;
	size_t size;
};

/* The directory that begins at *path, which moves behind it. Returns false at the end. */
static bool next_part(const char **path, struct part *part)
{
	*path += strspn(*path, "/");
	part->text = *path;
	part->size = strcspn(*path, "/");
	*path += part->size;
	return part->size > 0;
}

static bool begins(const struct part *part, const char *text)
{
	return part->size > strlen(text) && strncmp(part->text, text, strlen(text)) == 0;
}

static bool ends(const struct part *part, const char *text)
{
	size_t size = strlen(text);

	return part->size > size && strncmp(part->text + part->size - size, text, size) == 0;
}

static bool is(const struct part *part, const char *text)
{
	return part->size == strlen(text) && strncmp(part->text, text, part->size) == 0;
}

static void copy(char name[static CGROUP_NAME_SIZE], const char *text, size_t size)
{
	snprintf(name, CGROUP_NAME_SIZE, "%.*s", (int)size, text);
}

/* systemd puts a _ before names that could be mistaken for files of the kernel. */
static void skip_escape(struct part *part)
{
	if (part->size > 1 && part->text[0] == '_') {
		part->text++;
		part->size--;
	}
}

bool cgroup_unit(const char *path, char unit[static CGROUP_NAME_SIZE])
{
	struct part part;
	bool found = false;

	while (next_part(&path, &part)) {
		skip_escape(&part);
		if (!ends(&part, ".service") && !ends(&part, ".scope"))
			continue;
		if (found && is(&part, "init.scope"))
			continue;
		copy(unit, part.text, part.size);
		found = true;
	}
	return found;
}

#define ID_SIZE 64 /* of a container, in hexadecimal digits */

static bool is_id(const char *text, size_t size)
{
	if (size != ID_SIZE)
		return false;
	for (size_t i = 0; i < size; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* ENGINE-ID.scope, libpod-payload-ID, or ID alone */
static bool find_id(const struct part *part, struct part *id)
{
	size_t size = ends(part, ".scope") ? part->size - strlen(".scope") : part->size;
	bool conmon = begins(part, "libpod-conmon-") || begins(part, "crio-conmon-");

	if (size < ID_SIZE || conmon) /* conmon watches a container from outside */
		return false;
	*id = (struct part){ part->text + size - ID_SIZE, ID_SIZE };
	return is_id(id->text, id->size) && (size == ID_SIZE || id->text[-1] == '-');
}

/* A container that has a name: lxc.payload.NAME, machine-NAME.scope, systemd-nspawn@NAME.service */
static bool find_name(const struct part *part, struct part *name)
{
	static const struct {
		const char *before, *after;
	} forms[] = {
		{ "lxc.payload.", "" },
		{ "machine-", ".scope" },
		{ "systemd-nspawn@", ".service" },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		size_t before = strlen(forms[i].before), after = strlen(forms[i].after);

		if (!begins(part, forms[i].before) || part->size <= before + after ||
		    (after && !ends(part, forms[i].after)))
			continue;
		*name = (struct part){ part->text + before, part->size - before - after };
		return true;
	}
	return false;
}

bool cgroup_container(const char *path, char container[static CGROUP_NAME_SIZE])
{
	struct part part, name;
	bool found = false;

	/* The deepest: a container may run in another one. */
	while (next_part(&path, &part))
		if (find_id(&part, &name) || find_name(&part, &name)) {
			copy(container, name.text, name.size);
			found = true;
		}
	return found;
}
