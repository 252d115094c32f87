// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "dcpi/header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/sum.h"

static const char *const address_names[] = {
	[DCPI_OWN] = "image",
	[DCPI_FILE] = "file",
	[DCPI_MEMORY] = "memory",
};

bool dcpi_is_clock(const char *event)
{
	static const char *const clocks[] = { "cpu-clock", "task-clock", "tick" };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		if (strcmp(event, clocks[i]) == 0)
			return true;
	return false;
}

static bool take_two(struct text *t, int *value)
{
	struct text two = { t->at, t->at + 2 };
	uint64_t number;

	if (t->end - t->at < 2 || !take_number(&two, 10, &number) || !is_empty(&two))
		return false;
	t->at += 2;
	*value = number;
	return true;
}

/* YYMMDDHHMM or YYYYMMDDHHMMSS, UTC. Of two digits, 69 is 1969 and 68 is 2068, as in POSIX. */
static bool parse_epoch(struct text t, uint64_t *seconds)
{
	size_t size = t.end - t.at;
	struct tm tm = { 0 }, same;
	int century = 0;
	time_t time;

	if ((size != 10 && size != 14) || (size == 14 && !take_two(&t, &century)) ||
	    !take_two(&t, &tm.tm_year) || !take_two(&t, &tm.tm_mon) || !take_two(&t, &tm.tm_mday) ||
	    !take_two(&t, &tm.tm_hour) || !take_two(&t, &tm.tm_min) ||
	    (size == 14 && !take_two(&t, &tm.tm_sec)))
		return false;
	if (size == 14)
		tm.tm_year += 100 * century - 1900;
	else if (tm.tm_year < 69)
		tm.tm_year += 100;
	tm.tm_mon--;
	same = tm;
	time = timegm(&same);
	*seconds = MAX(time, 0);
	/* timegm() turns an invalid date into another one. */
	return same.tm_mon == tm.tm_mon && same.tm_mday == tm.tm_mday &&
	       same.tm_hour == tm.tm_hour && same.tm_min == tm.tm_min && same.tm_sec == tm.tm_sec;
}

void dcpi_epoch_text(uint64_t seconds, char text[static DCPI_EPOCH_SIZE])
{
	time_t time = seconds;
	struct tm tm;

	gmtime_r(&time, &tm);
	snprintf(text, DCPI_EPOCH_SIZE, "%02u%02u%02u%02u%02u", tm.tm_year % 100U,
		 tm.tm_mon % 12U + 1, tm.tm_mday % 100U, tm.tm_hour % 100U, tm.tm_min % 100U);
}

static bool parse_seconds(struct text t, uint64_t *ns)
{
	uint64_t fraction = 0;
	struct text digits;

	if (!take_number(&t, 10, ns) || __builtin_mul_overflow(*ns, NS_PER_S, ns))
		return false;
	if (is_empty(&t))
		return true;
	if (!take(&t, "."))
		return false;
	digits = t;
	if (!take_number(&t, 10, &fraction) || !is_empty(&t) || digits.end - digits.at > 9)
		return false;
	for (size_t i = digits.end - digits.at; i < 9; i++)
		fraction *= 10;
	return !__builtin_add_overflow(*ns, fraction, ns);
}

/* Parses "pdb-MAJOR.MINOR". */
static bool dcpi_version_parse(struct text t, uint64_t *major, uint64_t *minor)
{
	return take(&t, "pdb-") && take_number(&t, 10, major) && take(&t, ".") &&
	       take_number(&t, 10, minor) && is_empty(&t);
}

static bool parse_number(struct text t, int base, uint64_t *number)
{
	return take_number(&t, base, number) && is_empty(&t);
}

/* Sets the number from the text; of DCPI_KIND_LOST, the text becomes the rest. False: invalid. */
static bool dcpi_value_parse(enum dcpi_kind kind, struct dcpi_field *f)
{
	struct text t = f->text;
	uint64_t major;

	switch (kind) {
	case DCPI_KIND_VERSION:
		return dcpi_version_parse(f->text, &major, &f->number) && major == 0;
	case DCPI_KIND_HEX_DIGITS:
		while (t.at < t.end && digit_value(*t.at) < 16)
			t.at++;
		return is_empty(&t);
	case DCPI_KIND_TEXT:
		return true;
	case DCPI_KIND_EPOCH:
		return parse_epoch(f->text, &f->number);
	case DCPI_KIND_DECIMAL:
		return parse_number(f->text, 10, &f->number);
	case DCPI_KIND_HEX:
		return parse_number(f->text, 16, &f->number);
	case DCPI_KIND_SECONDS:
		return parse_seconds(f->text, &f->number);
	case DCPI_KIND_ADDRESSES:
		for (f->number = DCPI_OWN; f->number <= DCPI_MEMORY; f->number++)
			if (text_is(&t, address_names[f->number]))
				return true;
		return false;
	case DCPI_KIND_LOST:
		return take_number(&f->text, 10, &f->number) &&
		       (take_blanks(&f->text) || is_empty(&f->text));
	}
	return false;
}

static bool dcpi_value_same(enum dcpi_kind kind, const struct dcpi_field *a,
			    const struct dcpi_field *b)
{
	size_t size = a->text.end - a->text.at;

	switch (kind) {
	case DCPI_KIND_TEXT:
		return text_equal(&a->text, &b->text);
	case DCPI_KIND_HEX_DIGITS:
		return size == (size_t)(b->text.end - b->text.at) &&
		       strncasecmp(a->text.at, b->text.at, size) == 0;
	case DCPI_KIND_EPOCH: /* some have seconds, some minutes */
		return a->number / 60 == b->number / 60;
	default:
		return a->number == b->number;
	}
}

/* Formats a number. Returns the length of the text. */
static int format_value(enum dcpi_kind kind, const struct dcpi_field *f,
			char text[static DCPI_VALUE_SIZE])
{
	int n;

	switch (kind) {
	case DCPI_KIND_VERSION:
		return snprintf(text, DCPI_VALUE_SIZE, "pdb-0.%02" PRIu64, f->number);
	case DCPI_KIND_EPOCH:
		dcpi_epoch_text(f->number, text);
		return strlen(text);
	case DCPI_KIND_HEX:
		return snprintf(text, DCPI_VALUE_SIZE, "%" PRIx64, f->number);
	case DCPI_KIND_SECONDS:
		n = snprintf(text, DCPI_VALUE_SIZE, "%" PRIu64 ".%09" PRIu64, f->number / NS_PER_S,
			     f->number % NS_PER_S);
		while (text[n - 1] == '0')
			n--;
		return n - (text[n - 1] == '.');
	case DCPI_KIND_ADDRESSES:
		return snprintf(text, DCPI_VALUE_SIZE, "%s", address_names[f->number]);
	default:
		return snprintf(text, DCPI_VALUE_SIZE, "%" PRIu64, f->number);
	}
}

/* Returns the value as text, which may be in `buffer`. */
static struct text dcpi_value_text(enum dcpi_kind kind, const struct dcpi_field *f,
				   char buffer[static DCPI_VALUE_SIZE])
{
	if (kind == DCPI_KIND_TEXT || kind == DCPI_KIND_HEX_DIGITS)
		return f->text;
	return (struct text){ buffer, buffer + format_value(kind, f, buffer) };
}

/* The header's last line; blanks may follow. */
#define TERMINATOR "samples"

/* Words are padded to this width, so that values are aligned. */
#define WORD_WIDTH 10

/* Bound: files: causes of lost ticks in one file; then: further ones are kept as other lines. */
#define CAUSES_MAX 1000 /* of lost ticks in one file */
#define QUOTE	   64	/* the most bytes of a line that a message quotes */

/* What becomes of a line when two files are added. */
enum rule {
	RULE_FIRST, /* the first file's, or else the second's */
	RULE_AGREE, /* must be equal */
	RULE_EQUAL, /* dropped unless equal */
	RULE_SUM,   /* the sum of both */
	RULE_OWN,   /* a rule of its own in dcpi_header_add() */
};

static const struct {
	const char *word;
	enum dcpi_kind kind;
	enum rule rule;
} keywords[DCPI_KEYWORDS] = {
	[DCPI_VERSION] = { "version", DCPI_KIND_VERSION, RULE_FIRST },
	[DCPI_IMAGE] = { "image", DCPI_KIND_HEX_DIGITS, RULE_AGREE },
	[DCPI_EPOCH] = { "epoch", DCPI_KIND_EPOCH, RULE_OWN },
	[DCPI_PLATFORM] = { "platform", DCPI_KIND_TEXT, RULE_AGREE },
	[DCPI_EVENT] = { "event", DCPI_KIND_TEXT, RULE_AGREE },
	[DCPI_PERIOD] = { "period", DCPI_KIND_DECIMAL, RULE_AGREE },
	[DCPI_TSTART] = { "tstart", DCPI_KIND_HEX, RULE_OWN },
	[DCPI_TSIZE] = { "tsize", DCPI_KIND_DECIMAL, RULE_OWN },
	[DCPI_CPUSPEED] = { "cpuspeed", DCPI_KIND_DECIMAL, RULE_FIRST },
	[DCPI_CPUAMASK] = { "cpuamask", DCPI_KIND_HEX_DIGITS, RULE_FIRST },
	[DCPI_CPUIMPLV] = { "cpuimplv", DCPI_KIND_DECIMAL, RULE_FIRST },
	[DCPI_CPUCOUNT] = { "cpucount", DCPI_KIND_DECIMAL, RULE_FIRST },
	[DCPI_PATH] = { "path", DCPI_KIND_TEXT, RULE_FIRST },
	[DCPI_LABEL] = { "label", DCPI_KIND_TEXT, RULE_AGREE },
	[DCPI_UNIT] = { "x-unit", DCPI_KIND_TEXT, RULE_AGREE },
	[DCPI_PERIOD_UNIT] = { "x-period-unit", DCPI_KIND_TEXT, RULE_AGREE },
	[DCPI_ADDRESSES] = { "x-addresses", DCPI_KIND_ADDRESSES, RULE_AGREE },
	[DCPI_BUCKET] = { "x-bucket", DCPI_KIND_DECIMAL, RULE_AGREE },
	[DCPI_STRIDE] = { "x-stride", DCPI_KIND_DECIMAL, RULE_OWN },
	[DCPI_COMMAND] = { "x-command", DCPI_KIND_TEXT, RULE_EQUAL },
	[DCPI_START] = { "x-start", DCPI_KIND_SECONDS, RULE_OWN },
	[DCPI_DURATION] = { "x-duration", DCPI_KIND_SECONDS, RULE_SUM },
	[DCPI_TICKS] = { "x-ticks", DCPI_KIND_DECIMAL, RULE_SUM },
	[DCPI_OUT_OF_RANGE] = { "x-out-of-range", DCPI_KIND_DECIMAL, RULE_SUM },
	[DCPI_EXCLUDED] = { "x-excluded", DCPI_KIND_DECIMAL, RULE_SUM },
	[DCPI_LOST] = { "x-lost", DCPI_KIND_LOST, RULE_OWN },
	[DCPI_KERNEL] = { "x-kernel", DCPI_KIND_DECIMAL, RULE_SUM },
	[DCPI_CPU] = { "x-cpu", DCPI_KIND_SECONDS, RULE_SUM },
};

/* --- Lines --- */

struct line {
	struct text all, word, value;
};

/* Splits a line into word and value. False: it is not valid by dcpiformat(4), or the terminator. */
static bool split_line(const struct text *all, struct line *line)
{
	struct text t = *all;

	*line = (struct line){ .all = *all, .word.at = all->at };
	while (t.at < t.end && !is_blank(*t.at))
		t.at++;
	line->word.end = t.at;
	if (is_empty(&line->word) || !take_blanks(&t))
		return false;
	line->value = t;
	return !is_empty(&t) && !memchr(all->at, '\0', all->end - all->at);
}

static bool is_terminator(const struct text *all)
{
	struct text t = *all;

	if (!take(&t, TERMINATOR))
		return false;
	take_blanks(&t);
	return is_empty(&t);
}

/* Returns DCPI_KEYWORDS for a word that is not interpreted here. */
static enum dcpi_keyword find_keyword(const struct line *line)
{
	enum dcpi_keyword k = 0;

	while (k < DCPI_KEYWORDS && !text_is(&line->word, keywords[k].word))
		k++;
	return k;
}

EQUAL(line_equal, struct text, struct text, text_equal(a, b))

static int add_other(struct dcpi_header *h, const struct text *line)
{
	uint64_t hash = hash_bytes(line->at, line->end - line->at, 0);

	if (index_find(&h->other_index, hash, line_equal, h->others, line) != INDEX_NONE)
		return 0;
	return array_add_indexed(h->others, h->other_count, h->other_room, &h->other_index, hash,
				 *line);
}

int dcpi_header_add_lost(struct dcpi_header *h, const struct text *cause, uint64_t count)
{
	size_t i = 0;

	while (i < h->lost_count && !text_equal(&h->lost[i].cause, cause))
		i++;
	if (i == h->lost_count &&
	    array_add(h->lost, h->lost_count, h->lost_room, (struct dcpi_lost){ .cause = *cause }))
		return -ENOMEM;
	add_u64(&h->lost[i].count, count);
	return 0;
}

void dcpi_header_free(struct dcpi_header *h)
{
	free(h->lost);
	free(h->others);
	index_free(&h->other_index);
	*h = (struct dcpi_header){ 0 };
}

/* --- Reading --- */

/* Reads the next line of the header. False: it does not end within the input. */
static bool next_line(const struct input *in, size_t *at, struct text *line)
{
	const char *start = (const char *)in->bytes + *at;
	size_t limit = MIN(in->size, DCPI_HEADER_MAX);
	const char *newline = memchr(start, '\n', limit - *at);

	if (!newline)
		return false;
	*line = (struct text){ start, newline };
	*at += newline + 1 - start;
	return true;
}

/*
 * A valid version is enough. Without one, four required lines are: reading reports what is missing.
 */
bool dcpi_header_detect(const struct input *in)
{
	unsigned int seen = 0;
	struct text all;
	struct line line;

	for (size_t at = 0; next_line(in, &at, &all) && !is_terminator(&all);) {
		enum dcpi_keyword k;

		if (!split_line(&all, &line))
			return false;
		k = find_keyword(&line);
		if (k == DCPI_VERSION && take(&line.value, "pdb-"))
			return true;
		if (k <= DCPI_CPUSPEED)
			seen |= 1U << k;
	}
	return __builtin_popcount(seen) >= 4;
}

static int quoted(const struct text *t)
{
	return MIN(t->end - t->at, QUOTE);
}

static int bad_line(const struct input *in, const struct line *line, struct error *e)
{
	const struct text *all = &line->all;

	if (is_empty(all))
		return input_line_error(in, e, "an empty line in the header");
	if (is_blank(*all->at))
		return input_line_error(in, e, "a line of the header begins with a blank");
	if (memchr(all->at, '\0', all->end - all->at))
		return input_line_error(in, e, "a NUL byte in the header");
	return input_line_error(in, e, "no value follows \"%.*s\"", quoted(&line->word),
				line->word.at);
}

static int read_line(struct dcpi_header *h, const struct input *in, const struct line *line,
		     struct error *e)
{
	enum dcpi_keyword k = find_keyword(line);
	struct dcpi_field field = { .given = true, .text = line->value, .line = line->all };
	int err = 0;

	if (k == DCPI_KEYWORDS)
		return add_other(h, &line->all) ? error_no_memory(e) : 0;
	if (k <= DCPI_CPUSPEED && h->fields[k].given)
		return input_line_error(in, e, "a second line \"%s\"", keywords[k].word);
	if (!dcpi_value_parse(keywords[k].kind, &field)) {
		if (k <= DCPI_CPUSPEED) {
			uint64_t major, minor;

			if (k == DCPI_VERSION && dcpi_version_parse(line->value, &major, &minor)) {
				input_line_error(in, e,
						 "version %.*s of the format: only major version 0 "
						 "is documented",
						 quoted(&line->value), line->value.at);
				return error_hint(e, "print it by its own tool, dcpicat(1)");
			}
			return input_line_error(in, e, "\"%.*s\" is no value for %.*s",
						quoted(&line->value), line->value.at,
						quoted(&line->word), line->word.at);
		}
		h->malformed = line->all;
		err = add_other(h, &line->all);
	} else if (k == DCPI_LOST && h->lost_count < CAUSES_MAX) {
		err = dcpi_header_add_lost(h, &field.text, field.number);
	} else if (h->fields[k].given || k == DCPI_LOST) {
		err = add_other(h, &line->all);
	} else {
		h->fields[k] = field;
	}
	return err ? error_no_memory(e) : 0;
}

int dcpi_header_read(struct input *in, struct dcpi_header *h, struct error *e)
{
	const struct dcpi_field *f = h->fields;
	uint64_t last, size;
	struct text all;
	struct line line;
	size_t at = 0;
	int err = 0;

	*h = (struct dcpi_header){ 0 };
	while (!err) {
		in->line++;
		if (!next_line(in, &at, &all))
			return input_line_error(in, e,
						"the header does not end: no line \"samples\"");
		if (is_terminator(&all))
			break;
		err = split_line(&all, &line) ? read_line(h, in, &line, e) : bad_line(in, &line, e);
	}
	if (err)
		return err;
	for (enum dcpi_keyword k = 0; k <= DCPI_CPUSPEED; k++)
		if (!f[k].given)
			return input_line_error(in, e, "the header has no line \"%s\"",
						keywords[k].word);
	size = f[DCPI_TSIZE].number;
	if (size && __builtin_add_overflow(f[DCPI_TSTART].number, size - 1, &last))
		return input_line_error(in, e, "tstart and tsize exceed the highest address");
	input_skip(in, at);
	return 0;
}

uint64_t dcpi_header_time(const struct dcpi_header *h)
{
	uint64_t ns;

	if (h->fields[DCPI_START].given)
		return h->fields[DCPI_START].number;
	return __builtin_mul_overflow(h->fields[DCPI_EPOCH].number, NS_PER_S, &ns) ? 0 : ns;
}

/* --- Writing --- */

int dcpi_header_keep(struct dcpi_header *h, const struct text *all)
{
	struct dcpi_field field = { .given = true, .line = *all };
	struct dcpi_field *f;
	struct line line;
	enum dcpi_keyword k;

	if (!split_line(all, &line))
		return 0;
	field.text = line.value;
	k = find_keyword(&line);
	if (k == DCPI_KEYWORDS || !dcpi_value_parse(keywords[k].kind, &field))
		return add_other(h, all);
	f = &h->fields[k];
	if (!f->given && (keywords[k].rule == RULE_FIRST || k == DCPI_IMAGE))
		*f = field;
	else if (f->given && !f->line.at && dcpi_value_same(keywords[k].kind, f, &field))
		*f = field;
	else if (k > DCPI_CPUSPEED && k <= DCPI_PATH && !text_equal(&f->line, all))
		return add_other(h, all);
	return 0;
}

/* Returns the number of blanks behind a word. */
static int gap(enum dcpi_keyword k)
{
	int size = strlen(keywords[k].word);

	return size < WORD_WIDTH ? WORD_WIDTH - size + 1 : 1;
}

bool dcpi_header_is_canonical(const struct dcpi_header *h, enum dcpi_keyword k)
{
	const struct dcpi_field *f = &h->fields[k];
	char buffer[DCPI_VALUE_SIZE];
	struct text value = dcpi_value_text(keywords[k].kind, f, buffer), rest = f->line;

	take(&rest, keywords[k].word);
	return rest.end - rest.at - (value.end - value.at) == gap(k) &&
	       memchr(rest.at, '\t', gap(k)) == NULL &&
	       memcmp(rest.end - (value.end - value.at), value.at, value.end - value.at) == 0;
}

static size_t write_line(const struct text *line, FILE *out)
{
	return fwrite(line->at, 1, line->end - line->at, out) + (fputc('\n', out) != EOF);
}

/* True if a reader gets the exact start from the epoch's line alone. */
static bool epoch_suffices(const struct dcpi_header *h)
{
	const struct dcpi_field *epoch = &h->fields[DCPI_EPOCH];
	struct dcpi_field read = *epoch;
	char text[DCPI_VALUE_SIZE];
	uint64_t ns;

	read.text = dcpi_value_text(DCPI_KIND_EPOCH, epoch, text);
	if (!epoch->line.at)
		dcpi_value_parse(DCPI_KIND_EPOCH, &read);
	return !__builtin_mul_overflow(read.number, NS_PER_S, &ns) && ns == dcpi_header_time(h);
}

void dcpi_header_write(const struct dcpi_header *h, FILE *out)
{
	size_t size = 0;

	for (enum dcpi_keyword k = 0; k < DCPI_KEYWORDS; k++) {
		const struct dcpi_field *f = &h->fields[k];
		bool is_written = f->given && k != DCPI_STRIDE;
		char buffer[DCPI_VALUE_SIZE];

		if (k == DCPI_START && epoch_suffices(h))
			is_written = false;
		if (is_written && f->line.at) {
			size += write_line(&f->line, out);
		} else if (is_written) {
			struct text value = dcpi_value_text(keywords[k].kind, f, buffer);

			size += fprintf(out, "%s%*s", keywords[k].word, gap(k), "");
			size += write_line(&value, out);
		}
		for (size_t i = 0; k == DCPI_LOST && i < h->lost_count; i++) {
			const struct dcpi_lost *lost = &h->lost[i];

			size += fprintf(out, "%s%*s%" PRIu64 "%s", keywords[k].word, gap(k), "",
					lost->count, is_empty(&lost->cause) ? "" : " ");
			size += write_line(&lost->cause, out);
		}
	}
	for (size_t i = 0; i < h->other_count; i++)
		size += write_line(&h->others[i], out);
	size += strlen(TERMINATOR "\n");
	fprintf(out, TERMINATOR "%*s\n", (int)(-size % 4), "");
}

/* --- The sum of two files --- */

static void set_number(struct dcpi_field *f, uint64_t number)
{
	if (f->given && f->number == number)
		return;
	*f = (struct dcpi_field){ .given = true, .number = number };
}

/* Returns false if the files cannot be added. */
static bool add_field(enum dcpi_keyword k, struct dcpi_field *f, const struct dcpi_field *other)
{
	uint64_t sum = f->number;
	bool same = f->given == other->given &&
		    (!f->given || dcpi_value_same(keywords[k].kind, f, other));

	switch (keywords[k].rule) {
	case RULE_FIRST:
		if (!f->given)
			*f = *other;
		return true;
	case RULE_AGREE:
		return same;
	case RULE_EQUAL:
		f->given = same && f->given;
		return true;
	case RULE_SUM:
		add_u64(&sum, other->number);
		if (other->given)
			set_number(f, sum);
		return true;
	case RULE_OWN:
		break;
	}
	return true;
}

/* The start of an image's own text is fixed by its file; other ranges only cover the samples. */
static bool add_range(struct dcpi_header *h, const struct dcpi_header *other)
{
	struct dcpi_field *start = &h->fields[DCPI_TSTART], *size = &h->fields[DCPI_TSIZE];
	uint64_t other_start = other->fields[DCPI_TSTART].number;
	uint64_t first = MIN(start->number, other_start);
	uint64_t reach = start->number - first + size->number;
	uint64_t other_reach = other_start - first + other->fields[DCPI_TSIZE].number;

	if (start->number != other_start && !h->fields[DCPI_ADDRESSES].number)
		return false;
	set_number(size, MAX(reach, other_reach));
	set_number(start, first);
	return true;
}

int dcpi_header_add(struct dcpi_header *h, const struct dcpi_header *other, const char **differs)
{
	static const enum dcpi_keyword totals[] = { DCPI_TICKS, DCPI_OUT_OF_RANGE, DCPI_EXCLUDED,
						    DCPI_KERNEL, DCPI_CPU };
	uint64_t start = dcpi_header_time(h), other_start = dcpi_header_time(other);
	bool accounted = h->fields[DCPI_TICKS].given && other->fields[DCPI_TICKS].given;
	int err = 0;

	for (enum dcpi_keyword k = 0; k < DCPI_KEYWORDS; k++) {
		*differs = keywords[k].word;
		if (!add_field(k, &h->fields[k], &other->fields[k]))
			return -EINVAL;
	}
	*differs = keywords[DCPI_TSTART].word;
	if (!add_range(h, other))
		return -EINVAL;
	set_number(&h->fields[DCPI_START], MIN(start, other_start));
	/* Totals are known only if both files have them. */
	for (size_t i = 0; i < sizeof(totals) / sizeof(*totals) && !accounted; i++)
		h->fields[totals[i]].given = false;
	for (size_t i = 0; i < other->other_count && !err; i++)
		err = add_other(h, &other->others[i]);
	for (size_t i = 0; i < other->lost_count && !err; i++)
		err = dcpi_header_add_lost(h, &other->lost[i].cause, other->lost[i].count);
	return err;
}
