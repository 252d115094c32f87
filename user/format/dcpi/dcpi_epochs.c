// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dcpi/value.h"
#include "format/dcpi/dcpi.h"
#include "util/file_set.h"

static bool is_epoch(const char *name, const char *as)
{
	size_t digits = strspn(name, "0123456789");

	return !name[digits] && digits == strlen(as);
}

/* Nothing below a symbolic link is removed. */
static DIR *open_directory(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (!directory && fd >= 0)
		close(fd);
	return directory;
}

static void remove_files(DIR *directory)
{
	const struct dirent *entry;

	while ((entry = readdir(directory)))
		unlinkat(dirfd(directory), entry->d_name, 0); /* not what is a directory */
}

/* Returns whether the host has nothing in the epoch any more, but had. */
static bool drop_epoch(int database, const char *epoch, const char *host)
{
	DIR *directory = open_directory(database, epoch), *files;
	bool dropped = false;

	if (!directory)
		return false;
	files = open_directory(dirfd(directory), host);
	if (files) {
		remove_files(files);
		closedir(files);
		dropped = unlinkat(dirfd(directory), host, AT_REMOVEDIR) == 0;
	}
	closedir(directory);
	if (dropped)
		unlinkat(database, epoch, AT_REMOVEDIR); /* others may have files in it */
	return dropped;
}

int dcpi_drop_epochs(const char *path, const char *host, uint64_t before_s, size_t *dropped,
		     struct error *e)
{
	char oldest[DCPI_EPOCH_SIZE], name[NAME_MAX + 1];
	DIR *database = opendir(path);
	const struct dirent *entry;

	*dropped = 0;
	if (!database)
		return errno == ENOENT ? 0 : error_set(e, errno, "cannot read %s", path);
	dcpi_epoch_text(before_s, oldest);
	snprintf(name, sizeof(name), "%s", host);
	directory_clean_name(name);
	while ((entry = readdir(database)))
		if (is_epoch(entry->d_name, oldest) && strcmp(entry->d_name, oldest) < 0)
			*dropped += drop_epoch(dirfd(database), entry->d_name, name);
	closedir(database);
	return 0;
}
