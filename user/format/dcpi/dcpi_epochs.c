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
#include "util/directory.h"

static bool is_epoch(const char *name, const char *as)
{
	size_t digits = strspn(name, "0123456789");

	return !name[digits] && digits == strlen(as);
}

/* fd: or -errno, for which errno is set. */
static DIR *open_stream(int fd)
{
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		errno = -fd;
	else if (!directory)
		close(fd);
	return directory;
}

static void remove_files(DIR *directory)
{
	const struct dirent *entry;

	while ((entry = readdir(directory)))
		unlinkat(dirfd(directory), entry->d_name, 0); /* not what is a directory */
}

/*
 * Removes what the host has in the epoch. Returns 1; 0: it has nothing there; or a negative errno:
 * not all of it could be removed.
 */
static int drop_epoch(int database, const char *epoch, const char *host)
{
	DIR *directory = open_stream(directory_open_in(database, epoch, false)), *files;
	int result = 0;

	if (!directory)
		return 0;
	files = open_stream(directory_open_in(dirfd(directory), host, false));
	if (files) {
		remove_files(files);
		closedir(files);
		result = unlinkat(dirfd(directory), host, AT_REMOVEDIR) ? -errno : 1;
	}
	closedir(directory);
	if (result > 0)
		unlinkat(database, epoch, AT_REMOVEDIR); /* others may have files in it */
	return result;
}

int dcpi_drop_epochs(const char *path, const char *host, uint64_t before_s, size_t *dropped,
		     struct error *e)
{
	char oldest[DCPI_EPOCH_SIZE], name[NAME_MAX + 1];
	DIR *database = open_stream(directory_open(path));
	const struct dirent *entry;
	int err = 0;

	*dropped = 0;
	if (!database)
		return errno == ENOENT ? 0 : error_set(e, errno, "cannot read %s", path);
	dcpi_epoch_text(before_s, oldest);
	snprintf(name, sizeof(name), "%s", host);
	directory_clean_name(name);
	while ((entry = readdir(database))) {
		int result;

		if (!is_epoch(entry->d_name, oldest) || strcmp(entry->d_name, oldest) >= 0)
			continue;
		result = drop_epoch(dirfd(database), entry->d_name, name);
		*dropped += result > 0;
		if (result < 0)
			err = error_set(e, -result, "cannot remove the old epoch %s/%s/%s", path,
					entry->d_name, name);
	}
	closedir(database);
	return err;
}
