// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dcpi/value.h"
#include "format/dcpi/dcpi.h"
#include "util/directory.h"

/* Opens the stream of a directory. fd: or -errno. Returns NULL with errno set. */
static DIR *open_stream(int fd)
{
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		errno = -fd;
	else if (!directory)
		close(fd);
	return directory;
}

/*
 * Removes the host's files in the epoch. *dropped: whether there were any and all of them are
 * removed. Returns 0, or -errno: not all of them could be removed.
 */
static int drop_epoch(int database, const char *epoch, const char *host, bool *dropped)
{
	DIR *directory = open_stream(directory_open_in(database, epoch, false)), *files;
	const struct dirent *entry;
	int err = 0;

	*dropped = false;
	if (!directory)
		return 0;
	files = open_stream(directory_open_in(dirfd(directory), host, false));
	if (files) {
		while ((entry = readdir(files)))
			unlinkat(dirfd(files), entry->d_name, 0); /* not directories */
		closedir(files);
		err = unlinkat(dirfd(directory), host, AT_REMOVEDIR) ? -errno : 0;
		*dropped = !err;
	}
	closedir(directory);
	if (*dropped)
		unlinkat(database, epoch, AT_REMOVEDIR); /* others may have files in it */
	return err;
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
		const char *epoch = entry->d_name;
		size_t digits = strspn(epoch, "0123456789");
		bool removed;
		int remove_err;

		if (epoch[digits] || digits != strlen(oldest) || strcmp(epoch, oldest) >= 0)
			continue;
		remove_err = drop_epoch(dirfd(database), epoch, name, &removed);
		*dropped += removed;
		if (remove_err)
			err = error_set(e, -remove_err, "cannot remove the old epoch %s/%s/%s",
					path, epoch, name);
	}
	closedir(database);
	return err;
}

/* Adds what the host has in the epoch. Returns whether it has anything. */
static bool measure_epoch(int database, const char *epoch, const char *host, uint64_t *bytes)
{
	DIR *directory = open_stream(directory_open_in(database, epoch, false)), *files;
	const struct dirent *entry;
	struct stat status;

	if (!directory)
		return false;
	files = open_stream(directory_open_in(dirfd(directory), host, false));
	while (files && (entry = readdir(files)))
		if (!fstatat(dirfd(files), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(status.st_mode))
			*bytes += (uint64_t)status.st_blocks * 512;
	if (files)
		closedir(files);
	closedir(directory);
	return files;
}

int dcpi_measure_epochs(const char *path, const char *host, uint64_t *bytes, uint64_t *oldest_end_s,
			struct error *e)
{
	char first[DCPI_EPOCH_SIZE] = "", second[DCPI_EPOCH_SIZE] = "", name[NAME_MAX + 1];
	DIR *database = open_stream(directory_open(path));
	const struct dirent *entry;
	struct tm tm = { 0 };

	*bytes = 0;
	*oldest_end_s = UINT64_MAX;
	if (!database)
		return errno == ENOENT ? 0 : error_set(e, errno, "cannot read %s", path);
	snprintf(name, sizeof(name), "%s", host);
	directory_clean_name(name);
	while ((entry = readdir(database))) {
		const char *epoch = entry->d_name;

		if (strlen(epoch) != strlen("YYMMDDhhmm") || epoch[strspn(epoch, "0123456789")] ||
		    !measure_epoch(dirfd(database), epoch, name, bytes))
			continue;
		if (!*first || strcmp(epoch, first) < 0) {
			strcpy(second, first);
			strcpy(first, epoch);
		} else if (!*second || strcmp(epoch, second) < 0) {
			strcpy(second, epoch);
		}
	}
	closedir(database);
	if (*second && strptime(second, "%y%m%d%H%M", &tm))
		*oldest_end_s = timegm(&tm);
	return 0;
}
