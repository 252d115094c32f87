// SPDX-License-Identifier: GPL-2.0-only
#include "report/objdump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"

#define BUFFER_SIZE   65536
#define MESSAGES_SIZE 65536
/* Bound: files: bytes of address space for objdump; then: the code is not shown. */
#define MEMORY_MAX ((rlim_t)4 << 30)

/* Lowers a resource limit, unless it is lower already. */
static void lower_limit(pid_t pid, int resource, rlim_t most)
{
	struct rlimit l;

	if (prlimit(pid, resource, NULL, &l))
		return;
	l.rlim_max = l.rlim_max < most ? l.rlim_max : most;
	l.rlim_cur = l.rlim_cur < most ? l.rlim_cur : most;
	prlimit(pid, resource, &l, NULL);
}

/*
 * Starts objdump with its output to `out` and its messages to o->messages. Returns 0 or an errno.
 */
static int spawn_objdump(struct objdump *o, char *const *arguments, int out)
{
	static const char servers[] = "DEBUGINFOD_URLS=";
	posix_spawn_file_actions_t actions;
	size_t count = 0, kept = 0;
	char **variables;
	int err;

	/* The environment but for debuginfod: no network access. */
	while (environ[count])
		count++;
	variables = calloc(count + 1, sizeof(*variables));
	for (size_t i = 0; variables && i < count; i++)
		if (strncmp(environ[i], servers, strlen(servers)) != 0)
			variables[kept++] = environ[i];
	err = variables ? posix_spawn_file_actions_init(&actions) : ENOMEM;
	if (err) {
		free(variables);
		return err;
	}
	err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	err = err ?: posix_spawn_file_actions_adddup2(&actions, o->messages, STDERR_FILENO);
	err = err ?: posix_spawnp(&o->pid, arguments[0], &actions, NULL, arguments, variables);
	posix_spawn_file_actions_destroy(&actions);
	free(variables);
	if (err)
		return err;
	lower_limit(o->pid, RLIMIT_FSIZE,
		    MESSAGES_SIZE); /* messages is the only file that it writes */
	lower_limit(o->pid, RLIMIT_AS, MEMORY_MAX);
	return 0;
}

static void free_parts(struct objdump *o)
{
	free(o->buffer);
	if (o->messages >= 0)
		close(o->messages);
	if (o->out >= 0)
		close(o->out);
}

int objdump_start(struct objdump *o, char *const *arguments, unsigned int seconds, struct error *e)
{
	int ends[2], code;

	*o = (struct objdump){
		.buffer = malloc(BUFFER_SIZE + 1),
		.messages = memfd_create("objdump", MFD_CLOEXEC),
		.out = -1,
		.deadline = now_ns() + seconds * NS_PER_S,
	};
	if (!o->buffer || o->messages < 0 || pipe2(ends, O_CLOEXEC)) {
		code = errno;
	} else {
		o->out = ends[0];
		if (fcntl(o->out, F_SETFL, O_NONBLOCK))
			code = errno;
		else
			code = spawn_objdump(o, arguments, ends[1]);
		close(ends[1]);
	}
	if (!code)
		return 0;
	free_parts(o);
	error_set(e, code, "cannot run objdump");
	if (code == ENOENT)
		error_hint(e, "install the package binutils");
	return -code;
}

/*
 * Reads more into the buffer. Returns the number of bytes, 0 at the end of the output, or a
 * negative errno: -ETIMEDOUT after the deadline.
 */
static ssize_t read_more(struct objdump *o)
{
	struct pollfd poll_out = { .fd = o->out, .events = POLLIN };
	ssize_t n;

	memmove(o->buffer, o->buffer + o->begin, o->end - o->begin);
	o->end -= o->begin;
	o->begin = 0;
	for (;;) {
		uint64_t now = now_ns();

		if (now >= o->deadline)
			return -ETIMEDOUT;
		n = poll(&poll_out, 1, (int)((o->deadline - now) / NS_PER_MS + 1));
		if (n == 0)
			continue;
		if (n > 0)
			n = read(o->out, o->buffer + o->end, BUFFER_SIZE - o->end);
		if (n >= 0)
			break;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	o->end += n;
	return n;
}

char *objdump_read_line(struct objdump *o, int *err)
{
	size_t seen = 0;
	ssize_t n = 1;
	char *line, *newline = NULL;

	*err = 0;
	while (n > 0 && o->end - o->begin < BUFFER_SIZE) {
		newline = memchr(o->buffer + o->begin + seen, '\n', o->end - o->begin - seen);
		if (newline)
			break;
		seen = o->end - o->begin;
		n = read_more(o);
	}
	if (n < 0)
		*err = (int)n;
	if (n < 0 || o->begin == o->end)
		return NULL;
	line = o->buffer + o->begin;
	if (newline) {
		*newline = '\0';
		o->begin = newline + 1 - o->buffer;
	} else {
		o->buffer[o->end] = '\0';
		o->begin = o->end;
	}
	return line;
}

int objdump_finish(struct objdump *o, const char *path, int err, struct error *e)
{
	char message[256];
	int status = 0;
	ssize_t n;

	if (err)
		kill(o->pid, SIGKILL);
	while (waitpid(o->pid, &status, 0) < 0 && errno == EINTR)
		;
	/* The first line of its messages, which begins with its name. */
	n = pread(o->messages, message, sizeof(message) - 1, 0);
	message[n > 0 ? n : 0] = '\0';
	message[strcspn(message, "\n")] = '\0';
	free_parts(o);
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (err == -ETIMEDOUT)
		return error_set(e, 0, "cannot disassemble %s: objdump took too long", path);
	if (err)
		return error_set(e, -err, "cannot disassemble %s", path);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (strstr(message, "out of memory") || strstr(message, "memory exhausted"))
		return error_set(e, 0,
				 "cannot disassemble %s: objdump took more than 4 GiB of memory",
				 path);
	if (!*message && WIFSIGNALED(status))
		return error_set(e, 0, "cannot disassemble %s: objdump was ended by signal %d (%s)",
				 path, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return error_set(e, 0, "cannot disassemble %s: %s", path,
			 *message ? message : "objdump failed");
}
