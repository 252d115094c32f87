// SPDX-License-Identifier: GPL-2.0-only
#include "capture/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"
#include "util/file.h"
#include "util/proc.h"

/* How good a line of /proc/PID/cgroup is, the best first. */
enum preference {
	VERSION_2,
	SYSTEMD,
	ANY,
	ROOT,
	NO_LINE
};

/* What the kernel appends to the path of a group that was removed. */
static const char removed[] = " (deleted)";

const char *origin_group(const char *text, size_t *size)
{
	enum preference best = NO_LINE;
	const char *found = NULL, *path = NULL, *end;

	for (; *text; text = *end ? end + 1 : end) {
		const char *controllers, *colon;
		enum preference its = ANY;

		/* A line is HIERARCHY:CONTROLLERS:PATH; a path may contain colons. */
		end = strchrnul(text, '\n');
		controllers = memchr(text, ':', end - text);
		colon = controllers ? memchr(controllers + 1, ':', end - controllers - 1) : NULL;
		if (!colon)
			continue;
		path = colon + 1;
		if (end - path < 2)
			its = ROOT;
		else if (colon == controllers + 1)
			its = VERSION_2;
		else if (strncmp(controllers, ":name=systemd:", strlen(":name=systemd:")) == 0)
			its = SYSTEMD;
		if (its >= best)
			continue;
		best = its;
		found = path;
		*size = end - path;
	}
	if (found && *size > strlen(removed) &&
	    memcmp(found + *size - strlen(removed), removed, strlen(removed)) == 0)
		*size -= strlen(removed);
	return found;
}

struct group_key {
	const char *path;
	size_t size;
};

EQUAL(group_equal, char *const, struct group_key,
      strncmp(*a, b->path, b->size) == 0 && !(*a)[b->size])

/* Sets *number to that of a group's path, which is added if it is new. */
static int find_group(struct process_table *table, const char *path, size_t size, uint32_t *number)
{
	const struct group_key key = { .path = path, .size = size };
	uint64_t hash = hash_bytes(path, size, 0);
	size_t slot = 0;

	*number = index_find(&table->by_group, hash, group_equal, table->groups, &key);
	if (*number != INDEX_NONE)
		return 0;
	while (slot < table->group_count && table->groups[slot])
		slot++;
	if (array_reserve(&table->groups, &table->group_room, slot + 1, sizeof(*table->groups)))
		return -ENOMEM;
	table->groups[slot] = strndup(path, size);
	if (!table->groups[slot])
		return -ENOMEM;
	if (slot == table->group_count)
		table->group_count++;
	*number = slot;
	return index_add(&table->by_group, hash, slot);
}

void origin_remove_group(struct process_table *table, uint32_t number)
{
	char **path = &table->groups[number];

	index_remove(&table->by_group, hash_bytes(*path, strlen(*path), 0), number);
	free(*path);
	*path = NULL;
}

int origin_read(struct process_table *table, struct process *process)
{
	int directory = open(proc_path(process->pid, 0, "").text, O_PATH | O_DIRECTORY | O_CLOEXEC),
	    err = 0;
	const char *group;
	struct stat status;
	char text[8192];
	size_t size;

	if (directory < 0)
		return 0;
	/* Unlike the files in it, the directory belongs to the process's effective user, always. */
	if (fstat(directory, &status) == 0)
		process->uid = status.st_uid;
	if (table->notes_origins && file_read_text(directory, "cgroup", text, sizeof(text)) > 0) {
		group = origin_group(text, &size);
		err = group ? find_group(table, group, size, &process->group) : 0;
	}
	close(directory);
	/* It has become another user's: its title is none of what was counted. */
	if (table->of_user && process->uid != table->uid)
		return err;
	return err ?: origin_read_title(table, process);
}

int origin_read_title(struct process_table *table, struct process *process)
{
	const struct opener_target target = {
		.pid = process->pid,
		.uid = process_user(process),
	};
	char text[PROCESS_TITLE_SIZE];
	size_t size;

	if (!table->notes_titles || process->title_is_sure || process->title || process->ended)
		return 0;
	/* text ends at the NUL behind the first word. */
	opener_read_command(&table->opener, &target, text, sizeof(text));
	size = strlen(text);
	while (size && text[size - 1] == ' ')
		text[--size] = '\0';
	if (text[0] == '/' || !strchr(text, ' '))
		return 0;
	process->title = strdup(text);
	return process->title ? 0 : -ENOMEM;
}
