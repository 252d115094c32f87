// SPDX-License-Identifier: GPL-2.0-only
#include "report/disassembly.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/text.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"

#define BUFFER_SIZE   65536
#define MESSAGES_SIZE 65536
/* Bound: files: bytes of address space for objdump; then: the code is not shown. */
#define MEMORY_MAX ((rlim_t)4 << 30)

/*
 * A running objdump(1) of binutils. It reads untrusted files, so its time, its memory (4 GiB) and
 * its output are limited.
 */
struct objdump {
	pid_t pid;
	int out;
	int messages;	   /* its stderr: a file in memory, of limited size */
	uint64_t deadline; /* of now_ns() */
	char *buffer;
	size_t begin, end; /* of what was read into it but not returned */
};

/* Lowers a resource limit, unless it is lower already. */
static void lower_limit(pid_t pid, int resource, rlim_t most)
{
	struct rlimit l;

	if (prlimit(pid, resource, NULL, &l))
		return;
	l.rlim_max = MIN(l.rlim_max, most);
	l.rlim_cur = MIN(l.rlim_cur, most);
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

/* arguments[0]: "objdump". Returns 0, or a negative errno with e set. */
static int objdump_start(struct objdump *o, char *const *arguments, unsigned int seconds,
			 struct error *e)
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

/*
 * Returns the next line without its newline, valid until the next call. Lines longer than 64 KiB
 * are split. Returns NULL at the end, with *err 0, and on errors: -ETIMEDOUT after the deadline.
 */
static char *objdump_read_line(struct objdump *o, int *err)
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

/*
 * Waits for its end, or kills it if err, an error that reading returned, is not 0. Returns 0, or a
 * negative errno with e set to the reason why `path` could not be disassembled.
 */
static int objdump_finish(struct objdump *o, const char *path, int err, struct error *e)
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

/* --- Its output --- */

/*
 * The address that an instruction jumps to: "jne    129b <burn+0x2a>". 0: none; an address after #
 * is data, and calls are no jumps.
 */
static uint64_t jump_target(const char *text)
{
	const char *name = strstr(text, " <"), *digits = name;

	if (!name || memchr(text, '#', name - text) || strncmp(text, "call", 4) == 0 ||
	    strncmp(text, "bl ", 3) == 0)
		return 0;
	while (digits > text && strchr("0123456789abcdef", digits[-1]))
		digits--;
	return strtoull(digits, NULL, 16);
}

/*
 * Adds the instruction of "    11f9:\tmov    %edi,%eax"; ignores other lines, which are names.
 * Returns 0, -ENOMEM, or -E2BIG: there are DISASSEMBLY_MAX already.
 */
static int take_line(struct disassembly *d, const char *line)
{
	struct instruction *i;
	char *end;
	uint64_t address;

	if (*line != ' ')
		return 0;
	address = strtoull(line, &end, 16);
	if (end[0] != ':' || end[1] != '\t' ||
	    (d->count && address <= d->instructions[d->count - 1].address))
		return 0;
	if (d->count == DISASSEMBLY_MAX)
		return -E2BIG;
	if (array_reserve(&d->instructions, &d->room, d->count + 1, sizeof(*i)))
		return -ENOMEM;
	i = &d->instructions[d->count];
	*i = (struct instruction){ .address = address, .text = text_expand_tabs(end + 2) };
	if (!i->text)
		return -ENOMEM;
	i->target = jump_target(i->text);
	d->count++;
	return 0;
}

int disassemble(struct disassembly *d, const char *path, uint64_t start, uint64_t limit,
		unsigned int seconds, struct error *e)
{
	char first[64], last[64];
	/* "--" because a path can begin with "-". */
	char *const arguments[] = { "objdump", "-d", "-C", "--no-show-raw-insn",
				    first,     last, "--", (char *)path,
				    NULL };
	struct objdump o;
	int err, parse_err = 0;
	char *line;

	*d = (struct disassembly){ 0 };
	snprintf(first, sizeof(first), "--start-address=0x%" PRIx64, start);
	snprintf(last, sizeof(last), "--stop-address=0x%" PRIx64, limit);
	err = objdump_start(&o, arguments, seconds, e);
	if (err)
		return err;
	while (!parse_err && (line = objdump_read_line(&o, &parse_err)))
		parse_err = take_line(d, line);
	for (size_t i = 0; i < d->count; i++) {
		size_t target = disassembly_target(d, i);

		if (target != SIZE_MAX)
			d->instructions[target].is_target = true;
	}
	err = objdump_finish(&o, path, parse_err, e);
	if (parse_err == -E2BIG)
		return error_set(e, 0,
				 "cannot disassemble %s: more than %d instructions: the "
				 "symbol's size is wrong",
				 path, DISASSEMBLY_MAX);
	if (!err && !d->count)
		return error_set(e, 0, "%s has no code there", path);
	return err;
}

void disassembly_free(struct disassembly *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->instructions[i].text);
	free(d->instructions);
	*d = (struct disassembly){ 0 };
}

size_t disassembly_find(const struct disassembly *d, uint64_t address)
{
	size_t behind;

	FIND_FIRST(behind, 0, d->count, d->instructions[behind].address <= address);
	return behind ? behind - 1 : SIZE_MAX;
}

size_t disassembly_target(const struct disassembly *d, size_t number)
{
	uint64_t target = d->instructions[number].target;
	size_t found = target ? disassembly_find(d, target) : SIZE_MAX;

	return found != SIZE_MAX && d->instructions[found].address == target ? found : SIZE_MAX;
}
