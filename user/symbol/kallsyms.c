// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/batch.h"
#include "symbol/cover.h"
#include "util/array.h"

/*
 * The kernel's symbols have no sizes. Past the last one of a module there may be nothing, or the
 * code of one that has been unloaded: no function is as large as this.
 */
#define FUNCTION_MAX (1024 * 1024)

/* A generous bound: 500,000 symbols are some 25 MB. */
#define KALLSYMS_MAX ((size_t)1024 * 1024 * 1024)

/*
 * The whole file, to be free()d, with a '\0' behind it. It is read at once, because the kernel
 * makes it up while it is read and modules come and go.
 */
static int read_all(int fd, char **text, size_t *size)
{
	size_t room = 0;

	*text = NULL;
	*size = 0;
	for (;;) {
		ssize_t n;

		if (*size > KALLSYMS_MAX || array_reserve(text, &room, *size + 128 * 1024, 1))
			return -ENOMEM;
		n = read(fd, *text + *size, room - *size - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*size += n;
	}
	(*text)[*size] = '\0';
	return 0;
}

/*
 * Takes "ADDRESS TYPE NAME\t[MODULE]" apart; ends NAME with a '\0'. Data symbols come out as no
 * function: they only say where the one before them ends.
 */
static bool parse_line(char *line, struct cover_symbol *symbol)
{
	char *end, *name, type;

	*symbol = (struct cover_symbol){ .start = strtoull(line, &end, 16) };
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return false;
	type = end[1];
	name = end + 3;
	name[strcspn(name, " \t")] = '\0';
	if (!*name || *name == '$' || type == 'a' || type == 'A')
		return false;
	if (__builtin_add_overflow(symbol->start, FUNCTION_MAX, &symbol->limit))
		symbol->limit = UINT64_MAX;
	symbol->name = name;
	symbol->function = strchr("tTwW", type) != NULL;
	symbol->binding = type == 'T' ? COVER_GLOBAL : type == 't' ? COVER_LOCAL : COVER_WEAK;
	return true;
}

/* Returns whether some address was not zero. */
static bool offer_lines(struct batch *b, struct cover *c, char *text)
{
	bool readable = false;
	size_t count = 0;

	for (char *line = text, *next; line && *line; line = next) {
		struct cover_symbol symbol;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (++count % 65536 == 0 && batch_stopped(b))
			break;
		if (!parse_line(line, &symbol))
			continue;
		readable |= symbol.start != 0;
		cover_offer(c, &symbol);
	}
	return readable;
}

static int name_all(struct batch *b, const struct cover *c)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct cover_symbol *symbol = cover_find(c, i);
		int err = 0;

		if (symbol && symbol->function)
			err = batch_name(b, i, symbol->name);
		if (err)
			return err;
	}
	return 0;
}

static int resolve_text(struct batch *b, char *text)
{
	struct cover c;
	int err;

	batch_sort(b);
	err = cover_init(&c, b->addresses, b->count);
	if (err)
		return err;
	if (!offer_lines(b, &c, text) && !b->stopped) {
		error_set(&b->why, 0,
			  "not permitted to read kernel addresses: needs CAP_SYSLOG, and "
			  "`sysctl kernel.kptr_restrict` below 2");
	} else if (!b->stopped) {
		error_set(&b->why, 0, "no kernel symbol covers it");
		cover_settle(&c);
		err = name_all(b, &c);
	}
	cover_free(&c);
	return err;
}

int kallsyms_resolve_from(struct batch *b, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	size_t size;
	int err;

	if (fd < 0) {
		error_set(&b->why, errno, "cannot open %s", path);
		return 0;
	}
	err = read_all(fd, &text, &size);
	close(fd);
	if (!err)
		err = resolve_text(b, text);
	else if (err != -ENOMEM)
		err = (error_set(&b->why, -err, "cannot read %s", path), 0);
	free(text);
	return err;
}

int kallsyms_resolve(struct batch *b)
{
	return kallsyms_resolve_from(b, "/proc/kallsyms");
}
