// SPDX-License-Identifier: GPL-2.0-only
#include "tool/executable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "util/elf_header.h"

/* The length of a script's interpreter line, as in execve(2). */
#define HEAD_SIZE 256

/* Bound: format. */
#define MOST_SCRIPTS 5 /* execve(2) follows no more interpreters */

#define HOST_DATA (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB)

static int check_runnable(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? -errno : 0;
}

/*
 * Searches PATH as execvp(3) does. Returns 0; -EACCES: a file was found, but may not be run;
 * -ENOENT.
 */
static int search_path(const char *name, char path[PATH_MAX])
{
	const char *directories = getenv("PATH") ?: "/bin:/usr/bin";
	int err = -ENOENT;

	for (size_t length;; directories += length + 1) {
		length = strcspn(directories, ":");
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, directories,
			     length ? "/" : "./", name) < PATH_MAX) {
			int found = check_runnable(path);

			if (!found)
				return 0;
			err = found == -EACCES ? -EACCES : err;
		}
		if (!directories[length])
			return err;
	}
}

int executable_find(const char *name, char path[PATH_MAX], struct error *e)
{
	int err;

	if (!*name)
		err = -ENOENT;
	else if (!strchr(name, '/'))
		err = search_path(name, path);
	else if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
		err = -ENAMETOOLONG;
	else
		err = check_runnable(path);
	if (!err)
		return 0;
	/* A file that is no program is not a matter of privileges: not ERROR_NOT_PERMITTED. */
	error_set_kind(e, ERROR_FAILED, -err, "cannot run %s", name);
	if (err == -ENOENT)
		error_hint(e, "give the command's path, or look at PATH");
	else if (err == -EACCES)
		error_hint(e, "make it executable, with chmod +x");
	return err;
}

/* capabilities(7): a file's capabilities add nothing for root. */
static bool is_privileged(const char *path, const struct stat *status)
{
	mode_t set_gid = S_ISGID | S_IXGRP;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct statvfs system;

	if (statvfs(path, &system) == 0 && !(system.f_flag & ST_NOSUID)) {
		if (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)
			return true;
		if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0) {
			uid = status->st_mode & S_ISUID ? status->st_uid : uid;
			gid = (status->st_mode & set_gid) == set_gid ? status->st_gid : gid;
		}
	}
	return uid != getuid() || gid != getgid();
}

/* Sets kind, class, machine and interpreter from an ELF file's headers. */
static void read_elf(int fd, const struct elf_header *h, struct executable *x)
{
	uint8_t bytes[sizeof(Elf64_Phdr)];
	const ssize_t size = elf_segment_size(h);

	x->kind = EXECUTABLE_ELF;
	x->class = h->class;
	if (h->data != HOST_DATA)
		return; /* x->machine stays 0: not for this machine */
	x->machine = h->machine;
	for (size_t i = 0; i < h->segment_count; i++) {
		struct elf_segment segment;

		if (pread(fd, bytes, size, h->segments + i * size) != size)
			return;
		segment = elf_segment_read(h, bytes, size);
		if (segment.type != PT_INTERP || segment.size >= sizeof(x->interpreter))
			continue;
		if (pread(fd, x->interpreter, segment.size, segment.offset) < 0)
			x->interpreter[0] = '\0';
		return;
	}
}

int executable_read(const char *path, struct executable *x, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int code = fd < 0 ? errno : 0;
	char head[HEAD_SIZE + 1] = { 0 };
	struct elf_header h;
	struct stat status;
	const char *line;

	*x = (struct executable){ .kind = EXECUTABLE_UNREADABLE };
	snprintf(x->path, sizeof(x->path), "%s", path);
	if (stat(path, &status))
		code = errno;
	else
		x->privileged = is_privileged(path, &status);
	if (!code && pread(fd, head, HEAD_SIZE, 0) < 0)
		code = errno;
	if (!code) {
		x->kind = EXECUTABLE_OTHER;
		if (elf_header_read(&h, head, HEAD_SIZE)) {
			read_elf(fd, &h, x);
		} else if (memcmp(head, "#!", strlen("#!")) == 0) {
			line = head + strlen("#!");
			line += strspn(line, " \t");
			snprintf(x->interpreter, sizeof(x->interpreter), "%.*s",
				 (int)strcspn(line, " \t\n"), line);
			if (*x->interpreter)
				x->kind = EXECUTABLE_SCRIPT;
		}
	}
	if (fd >= 0)
		close(fd);
	return code && code != EACCES ? error_set(e, code, "cannot read %s", path) : 0;
}

int executable_read_program(const char *path, struct executable *x, struct error *e)
{
	char next[PATH_MAX];
	int err = executable_read(path, x, e);

	for (int i = 0; !err && (x->kind == EXECUTABLE_SCRIPT || x->kind == EXECUTABLE_OTHER);
	     i++) {
		/* execvp(3) passes files of unknown formats to the shell. */
		snprintf(next, sizeof(next), "%s",
			 x->kind == EXECUTABLE_SCRIPT ? x->interpreter : "/bin/sh");
		if (i == MOST_SCRIPTS || access(next, F_OK)) {
			err = i == MOST_SCRIPTS ? -ELOOP : -errno;
			error_set_kind(e, ERROR_FAILED, -err, "cannot run %s: its interpreter %s",
				       x->path, next);
			error_hint(e, "its first line, after #!, must name a program");
			return err;
		}
		err = executable_read(next, x, e);
	}
	if (err || x->kind != EXECUTABLE_ELF || !*x->interpreter ||
	    access(x->interpreter, F_OK) == 0)
		return err;
	error_set(e, errno, "cannot run %s: its loader %s", x->path, x->interpreter);
	error_hint(e, "install the C library that it is made for");
	return -ENOEXEC;
}

static bool is_interpreter_at(const char *path, bool (*is_interpreter)(int fd))
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool found = fd >= 0 && is_interpreter(fd);

	if (fd >= 0)
		close(fd);
	return found;
}

/* The same of the libraries that the program's loader finds, as ldd(1) lists them. */
static bool is_interpreter_in(const struct executable *x, bool (*is_interpreter)(int fd))
{
	char *const arguments[] = { (char *)x->interpreter, "--list", (char *)x->path, NULL };
	posix_spawn_file_actions_t actions;
	char *line = NULL, *path;
	bool found = false;
	size_t size = 0;
	FILE *list;
	int ends[2];
	pid_t pid;
	int err;

	if (!*x->interpreter || x->privileged || pipe2(ends, O_CLOEXEC))
		return false;
	err = posix_spawn_file_actions_init(&actions);
	if (!err) {
		err = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
		err = err
			      ?: posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
								  "/dev/null", O_WRONLY, 0);
		err = err ?: posix_spawn(&pid, arguments[0], &actions, NULL, arguments, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	list = err ? NULL : fdopen(ends[0], "r");
	if (!list)
		close(ends[0]);
	/* "	libc.so.6 => /lib/libc.so.6 (0x00007f0000000000)" */
	while (list && getline(&line, &size, list) > 0) {
		path = strstr(line, " => /");
		if (!path || !strrchr(path, '('))
			continue;
		path += strlen(" => ");
		strrchr(path, '(')[-1] = '\0';
		found = found || is_interpreter_at(path, is_interpreter);
	}
	free(line);
	if (list)
		fclose(list);
	if (!err)
		waitpid(pid, NULL, 0);
	return found;
}

/*
 * Bound: caller: words of a script's interpreter line, and programs looked up for them; then: it is
 * run as it is; seen: not seen.
 */
#define MOST_WORDS   16 /* of a script's interpreter line */
#define MOST_LOOKUPS 64 /* of words that may be a program's name */

/* lookups: how many are left. */
static bool runs_scripts(char *const *words, bool (*is_interpreter)(int fd), int *lookups)
{
	/* They run the program that their arguments name. */
	static const char *const launchers[] = { "chrt",  "env",     "ionice", "nice",
						 "nohup", "numactl", "setsid", "stdbuf",
						 "sudo",  "taskset", "time",   "timeout" };
	char path[PATH_MAX], line[HEAD_SIZE + 1] = "", *next[MOST_WORDS + 1] = { NULL };
	char *rest = line + strlen("#!");
	struct executable x;
	struct error ignored;
	const char *name;
	int fd;

	if (!*words || --*lookups < 0 || executable_find(words[0], path, &ignored) ||
	    executable_read(path, &x, &ignored))
		return false;
	if (x.kind == EXECUTABLE_SCRIPT) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			return false;
		if (read(fd, line, HEAD_SIZE) > 0)
			line[strcspn(line, "\n")] = '\0';
		close(fd);
		for (int i = 0; i < MOST_WORDS && rest;) {
			next[i] = strsep(&rest, " \t");
			if (*next[i])
				i++;
			else
				next[i] = NULL;
		}
		return runs_scripts(next, is_interpreter, lookups);
	}
	if (x.kind != EXECUTABLE_ELF)
		return false;
	if (is_interpreter_at(x.path, is_interpreter) || is_interpreter_in(&x, is_interpreter))
		return true;
	name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
		if (strcmp(name, launchers[i]) == 0) {
			while (*lookups > 0 && *words && *++words)
				if (runs_scripts(words, is_interpreter, lookups))
					return true;
			return false;
		}
	return false;
}

bool executable_runs_scripts(char *const *command, bool (*is_interpreter)(int fd))
{
	int lookups = MOST_LOOKUPS;

	return runs_scripts(command, is_interpreter, &lookups);
}
