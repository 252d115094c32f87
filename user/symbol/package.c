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

/*
 * Bound: machine: time for dpkg or rpm: to name packages, to find versions; then: they are left out
 * of hints and reports; again: at the next command; share: none; seen: not seen.
 */
#define ANSWER_SIZE 65536
#define COMMAND_NS  (2 * NS_PER_S)
#define VERSIONS_NS (20 * NS_PER_S)
/*
 * Bound: caller: packages in the hint of a command; then: further ones are left out; seen: not
 * seen.
 */
#define PACKAGES_MAX 6 /* in a command */

/* By absolute paths: root's search path may be another user's choice. */
#define DPKG_QUERY "/usr/bin/dpkg-query"
#define RPM	   "/usr/bin/rpm"

struct question {
	const struct profile_image *const *images;
	size_t count;
	uint64_t deadline_ns;
	struct package *packages; /* count of them: the answer */
	char *text;		  /* ANSWER_SIZE: what was printed */
};

static bool ask_dpkg(const struct question *q);
static bool ask_rpm(const struct question *q);

static const struct manager {
	const char *query;
	bool (*ask)(const struct question *q); /* false: it did not answer */
	const char *installer; /* it is there where these packages are installed by it */
	const char *install;
	const char *suffix;
} managers[] = {
	{ DPKG_QUERY, ask_dpkg, "/usr/bin/apt", "apt install", "-dbgsym" },
	{ RPM, ask_rpm, "/usr/bin/dnf", "dnf debuginfo-install", "" },
	{ RPM, ask_rpm, "/usr/bin/zypper", "zypper install", "-debuginfo" },
};

/* True if the file at an image's path is the image's. */
static bool is_here(const struct profile_image *image)
{
	struct elf_file file;
	struct error ignored;
	struct stat status;
	bool same;
	int fd;

	/* dpkg-query would expand a pattern. */
	if (image_kind(image->path) != IMAGE_FILE || *image->path != '/' ||
	    strpbrk(image->path, "*?[\\\n") || !image->build_id_size)
		return false;
	fd = file_open_regular(-1, image->path, &status);
	/* What a user has there is of no package. */
	if (fd >= 0 && status.st_uid) {
		close(fd);
		return false;
	}
	if (fd < 0 || elf_file_open(&file, fd, NULL, &ignored))
		return false;
	same = elf_has_build_id(&file, image->build_id, image->build_id_size);
	elf_file_close(&file);
	return same;
}

/*
 * Runs a query and stores what it prints. Returns false if it could not be run, or had not ended at
 * the deadline.
 */
static bool run_query(const char *const *arguments, const struct question *q)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	struct pollfd out;
	sigset_t signals;
	size_t size = 0;
	int ends[2];
	ssize_t n = -1;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return false;
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

		if (now >= q->deadline_ns)
			break;
		if (poll(&out, 1, (int)((q->deadline_ns - now) / NS_PER_MS + 1)) <= 0)
			continue;
		n = read(ends[0], q->text + size, ANSWER_SIZE - 1 - size);
		if (n <= 0)
			break;
		size += n;
	}
	close(ends[0]);
	if (!pid)
		return false;
	if (n != 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	q->text[size] = '\0';
	return n == 0;
}

/* Copies a name or a version, if it is one. Returns whether it is. */
static bool copy_word(char to[PACKAGE_WORD_SIZE], const char *word)
{
	size_t size = strlen(word);

	if (!size || size >= PACKAGE_WORD_SIZE ||
	    word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "0123456789+-._~^:")])
		return false;
	memcpy(to, word, size + 1);
	return true;
}

/* Takes "zlib1g:amd64: /lib/..."; messages have blanks before the path. */
static void take_owner(const struct question *q, char *line, char *const *others)
{
	char *path = strstr(line, ": /"), *architecture;

	if (!path)
		return;
	*path = '\0';
	path += strlen(": ");
	/* What is of this architecture needs no name of one. */
	architecture = strchr(line, ':');
	if (architecture && strcmp(architecture, ":amd64") != 0 &&
	    strcmp(architecture, ":arm64") != 0)
		return;
	if (architecture)
		*architecture = '\0';
	for (size_t i = 0; i < q->count; i++)
		if (others[i] &&
		    (strcmp(path, q->images[i]->path) == 0 || strcmp(path, others[i]) == 0))
			copy_word(q->packages[i].name, line);
}

static bool ask_dpkg(const struct question *q)
{
	const char *arguments[3 + 2 * PACKAGE_IMAGES_MAX + 1] = { DPKG_QUERY, "-S" };
	char *others[PACKAGE_IMAGES_MAX] = { NULL }, *line, *rest = q->text;
	size_t count = 2;
	bool answered = true;

	for (size_t i = 0; i < q->count; i++) {
		const char *path = q->images[i]->path;

		if (!is_here(q->images[i]))
			continue;
		/* dpkg has files of /usr where packages had them: in /lib or /bin. */
		if (strncmp(path, "/usr/", strlen("/usr/")) == 0)
			others[i] = strdup(path + strlen("/usr"));
		else if (asprintf(&others[i], "/usr%s", path) < 0)
			others[i] = NULL;
		if (!others[i])
			continue;
		arguments[count++] = path;
		arguments[count++] = others[i];
	}
	arguments[count] = NULL;
	if (count > 2)
		answered = run_query(arguments, q);
	while (count > 2 && answered && (line = strsep(&rest, "\n")))
		take_owner(q, line, others);
	for (size_t i = 0; i < q->count; i++)
		free(others[i]);
	arguments[1] = "-W";
	arguments[2] = "--showformat=${db:Status-Abbrev}${Package} ${Version}\\n";
	count = 3;
	for (size_t i = 0; i < q->count; i++)
		if (*q->packages[i].name)
			arguments[count++] = q->packages[i].name;
	arguments[count] = NULL;
	if (count == 3 || !answered)
		return answered;
	answered = run_query(arguments, q);
	rest = q->text;
	while (answered && (line = strsep(&rest, "\n"))) {
		const char *name;

		/* During an upgrade, the file and the version may not be of each other. */
		if (strncmp(line, "ii ", strlen("ii ")) != 0)
			continue;
		line += strlen("ii ");
		name = strsep(&line, " ");
		for (size_t i = 0; i < q->count && line; i++)
			if (strcmp(q->packages[i].name, name) == 0 && is_here(q->images[i]))
				copy_word(q->packages[i].version, line);
	}
	return answered;
}

/* One at a time: rpm does not say which package is which file's. */
static bool ask_rpm(const struct question *q)
{
	const char *arguments[] = {
		RPM, "-qf", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\\n", NULL, NULL
	};

	for (size_t i = 0; i < q->count; i++) {
		struct package p = { 0 };
		char *rest = q->text, *line, *name;

		if (!is_here(q->images[i]))
			continue;
		arguments[4] = q->images[i]->path;
		if (!run_query(arguments, q))
			return false;
		line = strsep(&rest, "\n");
		name = strsep(&line, " ");
		/* A message has more than two words. */
		if (line && copy_word(p.name, name) && copy_word(p.version, line))
			q->packages[i] = p;
	}
	return true;
}

/* Returns who answered; NULL: nobody. */
static const struct manager *find_packages(const struct profile_image *const *images, size_t count,
					   uint64_t wait_ns, struct package *packages)
{
	struct question q = {
		.images = images,
		.count = count,
		.deadline_ns = now_ns() + wait_ns,
		.packages = packages,
		.text = malloc(ANSWER_SIZE),
	};
	const struct manager *manager = managers,
			     *end = manager + sizeof(managers) / sizeof(*managers);

	memset(packages, 0, count * sizeof(*packages));
	while (manager < end && (access(manager->query, X_OK) || access(manager->installer, X_OK)))
		manager++;
	if (!q.text || manager == end || !manager->ask(&q))
		manager = NULL;
	free(q.text);
	return manager;
}

bool package_versions(const struct profile_image *const *images, size_t count,
		      struct package *packages)
{
	return find_packages(images, count, VERSIONS_NS, packages);
}

void package_command(const struct profile_image *const *images, size_t count,
		     char command[PACKAGE_COMMAND_SIZE])
{
	struct package packages[PACKAGE_IMAGES_MAX];
	const struct manager *manager = find_packages(images, count, COMMAND_NS, packages);
	size_t used = 0, named = 0;

	*command = '\0';
	for (size_t i = 0; manager && i < count && named < PACKAGES_MAX; i++) {
		const char *name = packages[i].name;
		size_t k = 0;
		int size;

		while (k < i && strcmp(packages[k].name, name) != 0)
			k++;
		if (!*name || k < i)
			continue;
		if (!named++)
			used = snprintf(command, PACKAGE_COMMAND_SIZE, "%s", manager->install);
		/* The C library's has an older name in Debian. */
		size = snprintf(command + used, PACKAGE_COMMAND_SIZE - used, " %s%s", name,
				strcmp(name, "libc6") == 0 ? "-dbg" : manager->suffix);
		if ((size_t)size >= PACKAGE_COMMAND_SIZE - used) {
			command[used] = '\0';
			return;
		}
		used += size;
	}
}
