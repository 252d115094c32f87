// SPDX-License-Identifier: GPL-2.0-only
#include "push/token.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"

int token_read(const char *path, char token[static TOKEN_MAX + 1], bool *exposed, struct error *e)
{
	struct stat status;
	int fd = file_open_regular(-1, path, &status);
	ssize_t size;

	if (fd < 0)
		return error_set(e, -fd, "cannot read the token file %s", path);
	size = read(fd, token, TOKEN_MAX + 1);
	close(fd);
	if (size < 0)
		return error_set(e, errno, "cannot read the token file %s", path);
	if (size > TOKEN_MAX)
		return error_set(e, EFBIG, "the token file %s has more than %d bytes", path,
				 TOKEN_MAX);
	while (size && (token[size - 1] == '\n' || token[size - 1] == '\r'))
		size--;
	token[size] = '\0';
	*exposed = status.st_mode & S_IROTH;
	if (memchr(token, '\0', size))
		return error_set(e, EINVAL, "the token file %s has a NUL", path);
	if (!size) {
		error_set(e, 0, "the token file %s is empty", path);
		return -EINVAL;
	}
	for (const char *c = token; *c; c++) {
		if (*c > ' ' && *c <= '~')
			continue;
		error_set(e, 0, "the token file %s has a character that no token has, at byte %zu",
			  path, (size_t)(c - token) + 1);
		error_hint(e, "it holds only the token: printable ASCII characters, in one line");
		return -EINVAL;
	}
	return 0;
}
