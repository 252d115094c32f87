// SPDX-License-Identifier: GPL-2.0-only
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture.h"
#include "report/text.h"
#include "util/file_open.h"
#include "util/number.h"

/*
 * Bound: caller: letters of a word that a message corrects; then: no correction is suggested; seen:
 * not seen.
 */
#define WORD_MAX 32 /* letters of a word that is compared */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters have to be added, removed, replaced or swapped with the next one to make one
 * word of the other; more than the length of a word that is too long.
 */
static size_t count_mistakes(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], width = strlen(b);

	if (width > WORD_MAX)
		return width;
	for (size_t j = 0; j <= width; j++)
		rows[0][j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		const size_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
		size_t *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]),
				       least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return rows[strlen(a) % 3][width];
}

struct similar similar_to(const char *word)
{
	return (struct similar){ .word = word, .fewest = least(2, strlen(word) / 2) + 1 };
}

bool similar_offer(struct similar *s, const char *candidate)
{
	size_t mistakes = count_mistakes(candidate, s->word);

	if (mistakes >= s->fewest)
		return false;
	s->fewest = mistakes;
	snprintf(s->best, sizeof(s->best), "%s", candidate);
	return true;
}

#define HELP_INDENT 30 /* columns before the help of an option */

/* Bound: size. */
#define MOST_OPTIONS 64
/* Long options without a letter get numbers beyond all letters. */
#define FIRST_NUMBER 256

/* The tables that getopt_long(3) wants. */
struct getopt_tables {
	struct option longs[MOST_OPTIONS + 2];
	char shorts[3 * MOST_OPTIONS + 8];
};

/* As getopt_long(3) has it. */
static int has_value(const struct option_spec *spec)
{
	if (!spec->metavar)
		return no_argument;
	return spec->metavar[0] == '[' ? optional_argument : required_argument;
}

static void make_tables(const struct option_spec *specs, bool stop, struct getopt_tables *tables)
{
	char *shorts = tables->shorts;
	int i;

	if (stop)
		*shorts++ = '+';
	*shorts++ = ':'; /* makes a missing value differ from an unknown option */
	for (i = 0; i < MOST_OPTIONS && specs[i].name; i++) {
		tables->longs[i] = (struct option){
			.name = specs[i].name,
			.has_arg = has_value(&specs[i]),
			.val = FIRST_NUMBER + i,
		};
		if (specs[i].letter)
			*shorts++ = specs[i].letter;
		for (int colons = specs[i].letter ? has_value(&specs[i]) : 0; colons; colons--)
			*shorts++ = ':';
	}
	*shorts++ = 'h';
	*shorts = '\0';
	tables->longs[i++] = (struct option){ .name = "help", .val = 'h' };
	tables->longs[i] = (struct option){ 0 };
}

static int usage_error(struct error *e, const char *what, int letter, const char *word)
{
	if (letter && letter < FIRST_NUMBER)
		return error_set_kind(e, ERROR_USAGE, 0, "%s: -%c", what, letter);
	return error_set_kind(e, ERROR_USAGE, 0, "%s: %s", what, word);
}

/* word: as it was given, perhaps with a value: --NAME=VALUE */
static int unknown_option(const struct option_spec *specs, int letter, const char *word,
			  struct error *e)
{
	bool is_long = strncmp(word, "--", strlen("--")) == 0;
	char *name = is_long ? strndup(word + 2, strcspn(word + 2, "=")) : NULL;
	struct similar similar = similar_to(name ?: "");

	usage_error(e, "unknown option", letter, word);
	for (; name && specs->name; specs++)
		if (specs->help)
			similar_offer(&similar, specs->name);
	if (*similar.best)
		error_hint(e, "did you mean --%s?", similar.best);
	free(name);
	return -EINVAL;
}

/*
 * getopt_long(3) takes any beginning of a name that fits one option alone: a script that relied on
 * it would break when another option comes to begin alike. The abbreviated word, or NULL.
 */
static const char *abbreviated(const struct option_spec *specs, int value, char **argv)
{
	bool apart = optarg && optarg == argv[optind - 1];
	const char *word = argv[optind - 1 - apart], *name;

	if (value < FIRST_NUMBER)
		return NULL;
	name = specs[value - FIRST_NUMBER].name;
	return strncmp(word + strlen("--"), name, strlen(name)) == 0 ? NULL : word;
}

static const struct option_spec *find_spec(const struct option_spec *specs, int value)
{
	if (value >= FIRST_NUMBER)
		return specs + value - FIRST_NUMBER;
	while (specs->letter != value)
		specs++;
	return specs;
}

static int take_option(const struct option_spec *spec, void *values, const char *value,
		       struct error *e)
{
	void *member = (char *)values + spec->offset;
	char what[sizeof(e->what)];
	int err;

	if (!spec->parse) {
		*(bool *)member = true;
		return 0;
	}
	err = spec->parse(value, member, e);
	if (!err)
		return 0;
	e->kind = ERROR_USAGE;
	/* Most messages begin with the option's letter, or have its name. */
	if (!strstr(e->what, spec->name) &&
	    !(spec->letter && e->what[0] == '-' && e->what[1] == spec->letter)) {
		snprintf(what, sizeof(what), "%s", e->what);
		snprintf(e->what, sizeof(e->what), "--%s: %.900s", spec->name, what);
	}
	return err;
}

int options_parse(const struct option_spec *specs, void *values, int argc, char **argv, bool stop,
		  int *first, bool *help, struct error *e)
{
	struct getopt_tables tables;
	int value, err;

	make_tables(specs, stop, &tables);
	opterr = 0;
	optind = 1;
	while ((value = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		if (value == 'h') {
			*help = true;
			return 0;
		}
		if (value == '?' && optopt >= FIRST_NUMBER)
			return usage_error(e, "this option takes no value", optopt,
					   argv[optind - 1]);
		if (value == '?')
			return unknown_option(specs, optopt, argv[optind - 1], e);
		if (value == ':')
			return usage_error(e, "a value is missing after", optopt, argv[optind - 1]);
		if (abbreviated(specs, value, argv))
			return unknown_option(specs, 0, abbreviated(specs, value, argv), e);
		err = take_option(find_spec(specs, value), values, optarg, e);
		if (err)
			return err;
	}
	*first = optind;
	return 0;
}

const char *options_given(const struct option_spec *specs, const char *names, int first,
			  char **argv)
{
	struct getopt_tables tables;
	int value;

	make_tables(specs, true, &tables);
	optind = 0; /* getopt(3) begins anew */
	while ((value = getopt_long(first, argv, tables.shorts, tables.longs, NULL)) != -1) {
		const char *name = find_spec(specs, value)->name;
		size_t length = strlen(name);

		for (const char *at = names; *at; at += strcspn(at, " "), at += strspn(at, " "))
			if (strncmp(at, name, length) == 0 && (!at[length] || at[length] == ' '))
				return name;
	}
	return NULL;
}

#define BLANKS " \t\r\f\v"
/* Bound: caller: bytes of an option file; then: it is refused. */
#define FILE_MOST (1 << 20)

static int read_text(const char *path, char **text, struct error *e)
{
	struct stat status;
	ssize_t size = 0, part;
	int fd = file_open_regular(-1, path, &status);

	if (fd < 0)
		return error_set_kind(e, ERROR_USAGE, -fd, "cannot read the configuration file %s",
				      path);
	*text = status.st_size > FILE_MOST ? NULL : calloc(status.st_size + 1, 1);
	if (!*text) {
		close(fd);
		return error_set_kind(e, ERROR_USAGE, EFBIG,
				      "cannot read the configuration file %s", path);
	}
	while ((part = read(fd, *text + size, status.st_size - size)) > 0)
		size += part;
	close(fd);
	if (part < 0)
		return error_set_kind(e, ERROR_USAGE, errno,
				      "cannot read the configuration file %s", path);
	if (memchr(*text, '\0', size))
		return error_set_kind(e, ERROR_USAGE, 0,
				      "the configuration file %s has a NUL byte: it is no text",
				      path);
	return 0;
}

/* Returns the value behind the option's name, or NULL. */
static char *cut_value(char *rest)
{
	size_t size;

	if (*rest == '=') {
		*rest++ = '\0';
	} else {
		while (*rest && strchr(BLANKS, *rest))
			*rest++ = '\0';
		if (!*rest)
			return NULL;
	}
	size = strlen(rest);
	if (size > 1 && (*rest == '"' || *rest == '\'') && rest[size - 1] == *rest) {
		rest[size - 1] = '\0';
		rest++;
	}
	return rest;
}

static int read_line(const struct option_spec *specs, const char *const *refused, void *values,
		     char *line, struct error *e)
{
	const struct option_spec *spec = specs;
	bool is_long = strncmp(line, "--", 2) == 0;
	char *value, letter;

	if (*line != '-') {
		error_set_kind(e, ERROR_USAGE, 0, "not an option: %s", line);
		return error_hint(e, "options are written as on the command line: --NAME VALUE");
	}
	if (strstr(line + 1, " --"))
		return error_set_kind(e, ERROR_USAGE, 0, "more than one option in a line: %s",
				      line);
	if (!is_long) {
		letter = line[1];
		value = letter ? cut_value(line + 2) : NULL; /* -F 97 or -F97 */
		for (; spec->name && (!letter || spec->letter != letter); spec++)
			;
	} else {
		value = cut_value(line + strcspn(line, "=" BLANKS));
		for (; spec->name && strcmp(spec->name, line + 2) != 0; spec++)
			;
	}
	if (!spec->name)
		return unknown_option(specs, 0, line, e);
	while (*refused && strcmp(*refused, spec->name) != 0)
		refused++;
	if (*refused)
		return usage_error(e, "only for the command line", 0, line);
	if (value && !spec->metavar)
		return usage_error(e, "this option takes no value", 0, line);
	if (!value && has_value(spec) == required_argument)
		return usage_error(e, "a value is missing after", 0, line);
	return take_option(spec, values, value, e);
}

int options_read(const struct option_spec *specs, const char *const *refused, void *values,
		 const char *path, char **text, struct error *e)
{
	char what[sizeof(e->what)], *next, *line, *end;
	unsigned long number = 1;
	int err;

	*text = NULL;
	err = read_text(path, text, e);
	if (err)
		return err;
	for (next = *text; (line = strsep(&next, "\n")); number++) {
		/* End the line before a comment, and without blanks. */
		line += strspn(line, BLANKS);
		end = line;
		while (*end && (*end != '#' || (end > line && !strchr(BLANKS, end[-1]))))
			end++;
		while (end > line && strchr(BLANKS, end[-1]))
			end--;
		*end = '\0';
		if (!*line)
			continue;
		err = read_line(specs, refused, values, line, e);
		if (err) {
			snprintf(what, sizeof(what), "%s", e->what);
			snprintf(e->what, sizeof(e->what), "%.300s:%lu: %.600s", path, number,
				 what);
			return err;
		}
	}
	return 0;
}

void options_print(const struct option_spec *specs, const struct option_group *groups, FILE *out)
{
	for (; specs->name; specs++) {
		char left[64];
		size_t column;

		if (!specs->help)
			continue;
		for (const struct option_group *g = groups; g && g->title; g++)
			if (strcmp(g->first, specs->name) == 0)
				fprintf(out, "\n%s:\n", g->title);
		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", specs->letter ? '-' : ' ',
			 specs->letter ?: ' ', specs->letter ? ',' : ' ', specs->name,
			 has_value(specs) == required_argument ? " " : "", specs->metavar ?: "");
		column = fprintf(out, "  %-*s  ", HELP_INDENT - 4, left);
		text_wrap(specs->help, column, HELP_INDENT, HELP_WIDTH, out);
		fputc('\n', out);
	}
}

int option_text(const char *value, void *member, struct error *e)
{
	if (!*value)
		return error_set(e, 0, "an option's value is empty");
	*(const char **)member = value;
	return 0;
}

int option_unwind_memory(const char *value, void *member, struct error *e)
{
	uint64_t mib;

	if (number_parse(value, 1, CAPTURE_UNWIND_MIB_MAX, &mib))
		return error_set(e, 0,
				 "--unwind-memory takes a number of MiB from 1 to %u, not \"%s\"",
				 CAPTURE_UNWIND_MIB_MAX, value);
	*(unsigned int *)member = mib;
	return 0;
}
