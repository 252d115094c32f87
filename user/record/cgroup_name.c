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

/* Takes the next directory of a path, and moves *path behind it. Returns false at the end. */
static bool next_part(const char **path, struct part *part)
{
	*path += strspn(*path, "/");
	part->text = *path;
	part->size = strcspn(*path, "/");
	*path += part->size;
	return part->size > 0;
}

static bool part_begins(const struct part *part, const char *text)
{
	return part->size > strlen(text) && strncmp(part->text, text, strlen(text)) == 0;
}

static bool part_ends(const struct part *part, const char *text)
{
	size_t size = strlen(text);

	return part->size > size && strncmp(part->text + part->size - size, text, size) == 0;
}

static bool part_is(const struct part *part, const char *text)
{
	return part->size == strlen(text) && strncmp(part->text, text, part->size) == 0;
}

/* OWNER/NAME, or the name alone, if no one but root can have given it. */
static void copy_name(char name[static CGROUP_NAME_SIZE], const struct part *owner,
		      const struct part *part)
{
	snprintf(name, CGROUP_NAME_SIZE, "%.*s%s%.*s", (int)owner->size, owner->text ?: "",
		 owner->size ? "/" : "", (int)part->size, part->text);
}

#define ID_SIZE 64 /* of a container, in hexadecimal digits */

/* ENGINE-ID.scope, libpod-payload-ID, or ID alone */
static bool find_id(const struct part *part, struct part *id)
{
	size_t size = part_ends(part, ".scope") ? part->size - strlen(".scope") : part->size;
	bool conmon = part_begins(part, "libpod-conmon-") || part_begins(part, "crio-conmon-");

	if (size < ID_SIZE || conmon) /* conmon watches a container from outside */
		return false;
	*id = (struct part){ part->text + size - ID_SIZE, ID_SIZE };
	for (size_t i = 0; i < ID_SIZE; i++)
		if (!isxdigit((unsigned char)id->text[i]))
			return false;
	return size == ID_SIZE || id->text[-1] == '-';
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

		if (!part_begins(part, forms[i].before) || part->size <= before + after ||
		    (after && !part_ends(part, forms[i].after)))
			continue;
		*name = (struct part){ part->text + before, part->size - before - after };
		return true;
	}
	return false;
}

/*
 * Sets *user to the slice of a user: /user.slice/user-UID.slice, which the system's manager makes.
 * Deeper groups of this name can be made by anyone. Returns false if there is none.
 */
static bool find_user(const char *path, struct part *user)
{
	struct part part;

	return next_part(&path, &part) && part_is(&part, "user.slice") && next_part(&path, user) &&
	       part_begins(user, "user-") && part_ends(user, ".slice");
}

bool cgroup_unit(const char *path, char unit[static CGROUP_NAME_SIZE])
{
	struct part part, owner = { 0 }, found = { 0 }, user = { 0 }, ignored;
	bool is_users = find_user(path, &user);

	/*
	 * The system names the outermost unit or container. Groups in it can be named by whoever it
	 * was delegated to.
	 */
	while (next_part(&path, &part)) {
		struct part name = part;
		bool is_unit;

		/* systemd puts a _ before names that could be mistaken for files of the kernel. */
		if (name.size > 1 && name.text[0] == '_')
			name = (struct part){ name.text + 1, name.size - 1 };
		is_unit = part_ends(&name, ".service") || part_ends(&name, ".scope");
		if (is_unit && !(found.size && part_is(&name, "init.scope"))) {
			owner = owner.size ? owner : found;
			found = name;
		} else if (!found.size && !owner.size &&
			   (find_id(&part, &ignored) || find_name(&part, &ignored))) {
			owner = part;
		}
	}
	if (!found.size)
		return false;
	/* The name of user@UID.service has the user already. */
	if (is_users && !owner.size && !part_begins(&found, "user@"))
		owner = user;
	copy_name(unit, &owner, &found);
	return true;
}

bool cgroup_container(const char *path, char container[static CGROUP_NAME_SIZE])
{
	struct part part, name, owner = { 0 }, found = { 0 };

	find_user(path, &owner);
	/* The innermost container. If it runs in another one, root of that chooses its name. */
	while (next_part(&path, &part))
		if (find_id(&part, &name) || find_name(&part, &name)) {
			if (found.size && !owner.size)
				owner = found;
			found = name;
		}
	if (found.size)
		copy_name(container, &owner, &found);
	return found.size;
}
