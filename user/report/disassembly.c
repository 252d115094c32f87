// SPDX-License-Identifier: GPL-2.0-only
#include "report/disassembly.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/text.h"
#include "util/array.h"

/* Stands in front of source lines, which could be taken for anything else. */
#define SOURCE_MARK "|"

#define TAB 8

/* A running objdump. */
struct objdump {
	pid_t pid;
	FILE *out;
	int messages; /* a file in memory */
};

/* What the lines of its output have told so far. */
struct parser {
	struct disassembly *d;
	char *place;	       /* the "FILE:LINE" that what follows belongs to; or NULL */
	size_t first_pending;  /* sources from here on have no instruction yet */
	bool place_is_pending; /* neither has the place, and it has no source text */
};

/* Without debuginfod: nothing is fetched from the network. To be free()d, without the strings. */
static char **environment(void)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < count; i++)
		if (strncmp(environ[i], "DEBUGINFOD_URLS=", strlen("DEBUGINFOD_URLS=")) != 0)
			copy[kept++] = environ[i];
	return copy;
}

static int spawn(struct objdump *o, char *const *arguments, int out)
{
	posix_spawn_file_actions_t actions;
	char **variables = environment();
	int err = variables ? posix_spawn_file_actions_init(&actions) : ENOMEM;

	if (err) {
		free(variables);
		return err;
	}
	err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	err = err ?: posix_spawn_file_actions_adddup2(&actions, o->messages, STDERR_FILENO);
	err = err ?: posix_spawnp(&o->pid, arguments[0], &actions, NULL, arguments, variables);
	posix_spawn_file_actions_destroy(&actions);
	free(variables);
	return err;
}

static int explain_start(int code, struct error *e)
{
	error_set(e, code, "cannot run objdump");
	if (code == ENOENT)
		error_mend(e, "install the package binutils");
	return -code;
}

static int start(struct objdump *o, char *const *arguments, struct error *e)
{
	int ends[2], err;

	o->messages = memfd_create("objdump", MFD_CLOEXEC);
	if (o->messages < 0)
		return explain_start(errno, e);
	if (pipe2(ends, O_CLOEXEC)) {
		err = errno;
		close(o->messages);
		return explain_start(err, e);
	}
	err = spawn(o, arguments, ends[1]);
	close(ends[1]);
	o->out = err ? NULL : fdopen(ends[0], "r");
	if (o->out)
		return 0;
	close(ends[0]);
	close(o->messages);
	return explain_start(err ?: ENOMEM, e);
}

/* The first line that it said, which begins with its name. */
static void read_message(const struct objdump *o, char *text, size_t size)
{
	ssize_t n = pread(o->messages, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* Waits for its end, to which it has come if all was read. */
static int finish(struct objdump *o, const char *path, struct error *e)
{
	char message[256];
	int status = 0;

	fclose(o->out);
	while (waitpid(o->pid, &status, 0) < 0 && errno == EINTR)
		;
	read_message(o, message, sizeof(message));
	close(o->messages);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return error_set(e, 0, "cannot disassemble %s: %s", path,
			 *message ? message : "objdump failed");
}

/* A copy of a line, tabs as blanks, and none at its end. */
static char *copy_line(const char *line)
{
	char *copy = calloc(strlen(line) + 1, TAB), *end = copy;

	for (; copy && *line; line++) {
		if (*line != '\t') {
			*end++ = *line;
			continue;
		}
		do
			*end++ = ' ';
		while ((end - copy) % TAB);
	}
	while (end > copy && end[-1] == ' ')
		*--end = '\0';
	return copy;
}

/* Takes over `text`, which may be NULL for want of memory. */
static int add_source(struct disassembly *d, char *text)
{
	if (!text ||
	    array_reserve(&d->sources, &d->source_room, d->source_count + 1, sizeof(*d->sources))) {
		free(text);
		return -ENOMEM;
	}
	d->sources[d->source_count++] = text;
	return 0;
}

/* "/path/FILE:LINE", perhaps with more behind it: the place without its folder. */
static int take_place(struct parser *s, char *line)
{
	char *more = strstr(line, " (discriminator "), *colon, *place;

	if (more)
		*more = '\0';
	colon = strrchr(line, ':');
	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return 0; /* the name of the function, or a heading */
	place = strdup(text_basename(line));
	if (!place)
		return -ENOMEM;
	s->place_is_pending = !s->place || strcmp(place, s->place) != 0;
	free(s->place);
	s->place = place;
	return 0;
}

static int take_source(struct parser *s, const char *line)
{
	s->place_is_pending = false;
	return add_source(s->d, copy_line(line));
}

/* Of the pending source lines, the last is the one that the place tells. */
static int number_sources(struct parser *s)
{
	struct disassembly *d = s->d;
	const char *colon = s->place ? strrchr(s->place, ':') : NULL;
	unsigned long line = colon ? strtoul(colon + 1, NULL, 10) : 0;

	for (size_t i = s->first_pending; colon && i < d->source_count; i++) {
		unsigned long after = d->source_count - 1 - i;
		char *text;

		if (asprintf(&text, "%.*s:%lu%s%s", (int)(colon - s->place), s->place,
			     line > after ? line - after : 0, *d->sources[i] ? "  " : "",
			     d->sources[i]) < 0)
			return -ENOMEM;
		free(d->sources[i]);
		d->sources[i] = text;
	}
	return 0;
}

/*
 * Where an instruction jumps to: "jne    129b <burn+0x2a>". What stands behind # is data, and a
 * call comes back.
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

static int take_instruction(struct parser *s, uint64_t address, const char *text)
{
	struct disassembly *d = s->d;
	struct instruction *i;
	int err = number_sources(s);

	if (!err && s->place_is_pending)
		err = add_source(d, strdup(s->place));
	s->place_is_pending = false;
	if (err || array_reserve(&d->instructions, &d->room, d->count + 1, sizeof(*i)))
		return -ENOMEM;
	i = &d->instructions[d->count];
	*i = (struct instruction){
		.address = address,
		.text = copy_line(text),
		.new_source = s->first_pending,
		.source = d->source_count ? d->source_count - 1 : NO_SOURCE,
	};
	if (!i->text)
		return -ENOMEM;
	i->target = jump_target(i->text);
	d->count++;
	s->first_pending = d->source_count;
	return 0;
}

static int take_line(struct parser *s, char *line)
{
	const struct disassembly *d = s->d;
	char *end;
	uint64_t address;

	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, SOURCE_MARK, strlen(SOURCE_MARK)) == 0)
		return take_source(s, line + strlen(SOURCE_MARK));
	if (*line != ' ')
		return *line ? take_place(s, line) : 0;
	address = strtoull(line, &end, 16);
	if (end[0] != ':' || end[1] != '\t' ||
	    (d->count && address <= d->instructions[d->count - 1].address))
		return 0;
	return take_instruction(s, address, end + 2);
}

static void mark_targets(struct disassembly *d)
{
	for (size_t i = 0; i < d->count; i++) {
		uint64_t target = d->instructions[i].target;
		size_t found = target ? disassembly_find(d, target) : SIZE_MAX;

		if (found != SIZE_MAX && d->instructions[found].address == target)
			d->instructions[found].is_target = true;
	}
}

static int parse(struct disassembly *d, FILE *in)
{
	struct parser s = { .d = d };
	char *line = NULL;
	size_t room = 0;
	int err = 0;

	while (!err && getline(&line, &room, in) >= 0)
		err = take_line(&s, line);
	free(line);
	free(s.place);
	mark_targets(d);
	return err;
}

static int run(struct disassembly *d, char *const *arguments, const char *path, struct error *e)
{
	struct objdump o;
	int err = start(&o, arguments, e), parsed;

	if (err)
		return err;
	parsed = parse(d, o.out);
	err = finish(&o, path, e);
	if (parsed)
		return error_no_memory(e);
	if (!err && !d->count)
		return error_set(e, 0, "%s has no code there", path);
	return err;
}

int disassemble(struct disassembly *d, const char *path, uint64_t from, uint64_t limit,
		bool sources, struct error *e)
{
	char first[64], last[64];
	char *arguments[12] = { "objdump", "-d", "-C", "--no-show-raw-insn", first, last };
	size_t count = 6;

	*d = (struct disassembly){ 0 };
	snprintf(first, sizeof(first), "--start-address=0x%" PRIx64, from);
	snprintf(last, sizeof(last), "--stop-address=0x%" PRIx64, limit);
	if (sources) {
		arguments[count++] = "-l";
		arguments[count++] = "-S";
		arguments[count++] = "--source-comment=" SOURCE_MARK;
	}
	arguments[count++] = "--"; /* a name may begin with "-" */
	arguments[count++] = (char *)path;
	return run(d, arguments, path, e);
}

void disassembly_free(struct disassembly *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->instructions[i].text);
	for (size_t i = 0; i < d->source_count; i++)
		free(d->sources[i]);
	free(d->instructions);
	free(d->sources);
	*d = (struct disassembly){ 0 };
}

size_t disassembly_find(const struct disassembly *d, uint64_t address)
{
	size_t from = 0, to = d->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (d->instructions[middle].address <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? from - 1 : SIZE_MAX;
}
