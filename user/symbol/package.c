// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/package.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile/image_name.h"
#include "symbol/elf_file.h"
#include "util/clock.h"
#include "util/file_open.h"

#define ANSWER_SIZE   16384
#define ANSWER_NS     (2 * NS_PER_S)
#define PACKAGES_MAX  6
#define ARGUMENTS_MAX 4 /* before the paths */

/* By absolute paths: root's search path may be another user's choice. */
static const struct manager {
	const char *query[ARGUMENTS_MAX + 1];
	const char *installer; /* it is there where these packages are installed by it */
	const char *install;
	const char *suffix;
} managers[] = {
	{ { "/usr/bin/dpkg-query", "-S" }, "/usr/bin/apt", "apt install", "-dbgsym" },
	{ { "/usr/bin/rpm", "-qf", "--queryformat", "%{NAME}\\n" },
	  "/usr/bin/dnf",
	  "dnf debuginfo-install",
	  "" },
	{ { "/usr/bin/rpm", "-qf", "--queryformat", "%{NAME}\\n" },
	  "/usr/bin/zypper",
	  "zypper install",
	  "-debuginfo" },
};

/* True if the file at an image's path is the image's. */
static bool is_here(const struct profile_image *image)
{
	struct elf_file file;
	struct error ignored;
	bool same;
	int fd;

	/* dpkg-query would expand a pattern. */
	if (image_kind(image->path) != IMAGE_FILE || *image->path != '/' ||
	    strpbrk(image->path, "*?[\\\n") || !image->build_id_size)
		return false;
	fd = file_open_regular(-1, image->path, NULL);
	if (fd < 0 || elf_file_open(&file, fd, NULL, &ignored))
		return false;
	same = elf_has_build_id(&file, image->build_id, image->build_id_size);
	elf_file_close(&file);
	return same;
}

/* Runs a query and stores what it prints: "" if it failed or took too long. */
static void ask(const char *const *arguments, char answer[ANSWER_SIZE])
{
	const uint64_t deadline = now_ns() + ANSWER_NS;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	struct pollfd out;
	sigset_t signals;
	size_t size = 0;
	int ends[2];
	ssize_t n = -1;
	pid_t pid;

	*answer = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigaddset(&signals, SIGPIPE); /* which the tool ignores */
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (posix_spawn(&pid, arguments[0], &actions, &attributes, (char *const *)arguments,
			environ))
		pid = 0;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	out = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	while (pid && size + 1 < ANSWER_SIZE) {
		const uint64_t now = now_ns();

		if (now >= deadline)
			break;
		if (poll(&out, 1, (int)((deadline - now) / NS_PER_MS + 1)) <= 0)
			continue;
		n = read(ends[0], answer + size, ANSWER_SIZE - 1 - size);
		if (n <= 0)
			break;
		size += n;
	}
	close(ends[0]);
	if (!pid)
		return;
	if (n != 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	answer[n == 0 ? size : 0] = '\0';
}

/*
 * Appends the packages of an answer, each once: "zlib1g:amd64: /lib/..." or "zlib". Lines of other
 * kinds are messages, such as of files without an owner, and have blanks.
 */
static void append_packages(const struct manager *manager, char *answer,
			    char command[PACKAGE_COMMAND_SIZE])
{
	char *line, *packages[PACKAGES_MAX];
	size_t count = 0, used;

	while ((line = strsep(&answer, "\n")) && count < PACKAGES_MAX) {
		size_t i = 0, size;
		char *end = strstr(line, ": /");

		if (end)
			*end = '\0';
		size = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789+-._");
		/* What is of this architecture needs no name of one. */
		if (size &&
		    (strcmp(line + size, ":amd64") == 0 || strcmp(line + size, ":arm64") == 0))
			line[size] = '\0';
		if (!size || line[size])
			continue;
		while (i < count && strcmp(packages[i], line) != 0)
			i++;
		if (i == count)
			packages[count++] = line;
	}
	if (!count)
		return;
	used = snprintf(command, PACKAGE_COMMAND_SIZE, "%s", manager->install);
	for (size_t i = 0; i < count && used < PACKAGE_COMMAND_SIZE; i++) {
		/* The C library's has an older name in Debian. */
		const char *suffix = strcmp(packages[i], "libc6") == 0 ? "-dbg" : manager->suffix;
		int size = snprintf(command + used, PACKAGE_COMMAND_SIZE - used, " %s%s",
				    packages[i], suffix);

		if ((size_t)size >= PACKAGE_COMMAND_SIZE - used)
			command[used] = '\0';
		used += size;
	}
}

void package_command(const struct profile_image *const *images, size_t count,
		     char command[PACKAGE_COMMAND_SIZE])
{
	const char *arguments[ARGUMENTS_MAX + 2 * PACKAGE_IMAGES_MAX + 1];
	char *answer = malloc(ANSWER_SIZE), *aliases[PACKAGE_IMAGES_MAX];
	const struct manager *manager = managers;
	const size_t manager_count = sizeof(managers) / sizeof(*managers);
	size_t argument_count = 0, alias_count = 0, given;

	*command = '\0';
	while (manager < managers + manager_count &&
	       (access(manager->query[0], X_OK) || access(manager->installer, X_OK)))
		manager++;
	if (!answer || manager == managers + manager_count)
		goto out;
	while (manager->query[argument_count]) {
		arguments[argument_count] = manager->query[argument_count];
		argument_count++;
	}
	given = argument_count;
	for (size_t i = 0; i < count && i < PACKAGE_IMAGES_MAX; i++) {
		const char *path = images[i]->path;
		char *alias;

		if (!is_here(images[i]))
			continue;
		arguments[argument_count++] = path;
		/* dpkg has files of /usr where packages had them: in /lib or /bin. */
		if (manager != managers)
			continue;
		if (strncmp(path, "/usr/", strlen("/usr/")) == 0)
			alias = strdup(path + strlen("/usr"));
		else if (asprintf(&alias, "/usr%s", path) < 0)
			alias = NULL;
		if (!alias)
			break;
		aliases[alias_count++] = alias;
		arguments[argument_count++] = alias;
	}
	arguments[argument_count] = NULL;
	if (argument_count > given) {
		ask(arguments, answer);
		append_packages(manager, answer, command);
	}
out:
	while (alias_count)
		free(aliases[--alias_count]);
	free(answer);
}
