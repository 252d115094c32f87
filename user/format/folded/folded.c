// SPDX-License-Identifier: GPL-2.0-only
#include "format/folded/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/sum.h"
#include "util/table.h"
#include "util/utf8.h"

/*
 * Fractions of counts are multiples of 1 / FOLDED_ONE, so that sums of decimal numbers are exact.
 */
#define FOLDED_ONE INT64_C(1000000000000000000)

/* whole + fraction / FOLDED_ONE. The two have one sign. */
struct folded_count {
	int64_t whole;
	int64_t fraction; /* its magnitude is less than FOLDED_ONE */
	bool inexact;	  /* further digits were dropped */
};

enum folded_field {
	FOLDED_NO_COUNT,
	FOLDED_COUNT,
	FOLDED_TOO_LARGE
};

/* "\x3b" */
#define ESCAPE_SIZE 4

/* FOLDED_ONE is 10 to this power. */
#define FRACTION_DIGITS 18

/* The character whose escape the text begins with; NUL: it begins with none. */
static char escaped_character(const char *text, size_t size)
{
	static const char visible[] = ";\\# ";
	unsigned char c;

	if (size < ESCAPE_SIZE || text[0] != '\\' || text[1] != 'x' || digit_value(text[2]) > 15 ||
	    digit_value(text[3]) > 15)
		return '\0';
	c = digit_value(text[2]) << 4 | digit_value(text[3]);
	return c < ' ' || c > '~' || strchr(visible, c) ? c : '\0';
}

/* Undoes folded_escape(). `name` has room for `size` bytes. Returns the name's size. */
static size_t folded_unescape(const char *text, size_t size, char *name)
{
	size_t used = 0;

	for (size_t i = 0; i < size;) {
		char c = escaped_character(text + i, size - i);

		name[used++] = c ? c : text[i];
		i += c ? ESCAPE_SIZE : 1;
	}
	return used;
}

static bool take_digits(struct text *t)
{
	const char *from = t->at;

	while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
		t->at++;
	return t->at > from;
}

static bool is_count(struct text t)
{
	bool digits;

	take(&t, "-");
	digits = take_digits(&t);
	if (take(&t, "."))
		digits |= take_digits(&t);
	if (!digits)
		return false;
	if (take(&t, "e") || take(&t, "E")) {
		if (!take(&t, "-"))
			take(&t, "+");
		return take_digits(&t) && is_empty(&t);
	}
	return is_empty(&t);
}

/* The number after an "e", bounded: beyond that all numbers are 0 or too large. */
static long parse_exponent(struct text t)
{
	bool negative = take(&t, "-");
	long exponent = 0;

	take(&t, "+");
	for (; !is_empty(&t) && exponent < INT_MAX; t.at++)
		exponent = exponent * 10 + digit_value(*t.at);
	return negative ? -exponent : exponent;
}

/* Parses a text for which is_count() is true. False: it has more than 63 bits. */
static bool parse_count(struct text t, struct folded_count *count)
{
	bool negative = take(&t, "-");
	unsigned __int128 limit = (uint64_t)INT64_MAX + negative, value = 0;
	const char *exponent = t.at;
	long power = FRACTION_DIGITS; /* of 10: what value is to be multiplied by */

	/* Values below this have a whole part within the limit. */
	limit = (limit + 1) * FOLDED_ONE;
	count->inexact = false;
	while (exponent < t.end && *exponent != 'e' && *exponent != 'E')
		exponent++;
	if (exponent < t.end)
		power += parse_exponent((struct text){ exponent + 1, t.end });
	t.end = exponent;
	for (const char *at = t.at; at < t.end && *at != '.'; at++)
		power++;
	/* Now of what precedes the first digit; each digit that is taken decreases it. */
	for (; !is_empty(&t); t.at++) {
		if (*t.at == '.')
			continue;
		if (power <= 0) {
			count->inexact |= *t.at != '0';
			continue;
		}
		value = value * 10 + (*t.at - '0');
		if (value >= limit)
			return false;
		power--;
	}
	for (; power > 0 && value; power--) {
		value *= 10;
		if (value >= limit)
			return false;
	}
	count->whole = (int64_t)(uint64_t)(value / FOLDED_ONE);
	count->fraction = (int64_t)(value % FOLDED_ONE);
	if (negative) {
		count->whole = (int64_t)(0 - (uint64_t)count->whole);
		count->fraction = -count->fraction;
	}
	return true;
}

/* The beginning of the last field; NULL: there is only one. */
static const char *last_field(const struct text *t)
{
	const char *at = t->end;

	while (at > t->at && !is_blank(at[-1]))
		at--;
	return at > t->at ? at : NULL;
}

/*
 * Takes the count, and the blanks before it, off the end of a line: a decimal number as in C, "42",
 * "-3", "0.25" or "1e-10". FOLDED_TOO_LARGE: it has more than 63 bits.
 */
static enum folded_field folded_take_count(struct text *line, struct folded_count *count)
{
	struct text field;

	trim_end(line);
	field = (struct text){ last_field(line), line->end };
	if (!field.at || !is_count(field))
		return FOLDED_NO_COUNT;
	if (!parse_count(field, count))
		return FOLDED_TOO_LARGE;
	line->end = field.at;
	trim_end(line);
	return FOLDED_COUNT;
}

/* A name to be escaped. */
struct plain {
	const char *text;
	size_t size;
	size_t count_at; /* the blank before a count at the end; `size`: there is none */
};

static struct plain plain_name(const char *name)
{
	struct plain n = { name, strlen(name), strlen(name) };
	struct text text = { name, name + n.size }, field = text;

	field.at = last_field(&text);
	if (field.at && is_count(field))
		n.count_at = field.at - 1 - name;
	return n;
}

static bool is_special(const struct plain *n, size_t i)
{
	switch (n->text[i]) {
	case ';':
		return true;
	case '\\':
		return escaped_character(n->text + i, n->size - i);
	case '#': /* a comment */
		return i == 0 && (n->size == 1 || is_blank(n->text[1]));
	case ' ':
		return i == 0 || i == n->size - 1 || i == n->count_at;
	default:
		return utf8_is_hidden_at(n->text, i);
	}
}

int folded_escape(const char *name, char **escaped)
{
	static const char digits[] = "0123456789abcdef";
	struct plain n = plain_name(name);
	size_t special = 0;
	char *end;

	*escaped = NULL;
	for (size_t i = 0; i < n.size; i++)
		special += is_special(&n, i);
	if (!special)
		return 0;
	*escaped = end = malloc(n.size + special * (ESCAPE_SIZE - 1) + 1);
	if (!end)
		return -ENOMEM;
	for (size_t i = 0; i < n.size; i++) {
		if (!is_special(&n, i)) {
			*end++ = name[i];
			continue;
		}
		*end++ = '\\';
		*end++ = 'x';
		*end++ = digits[(unsigned char)name[i] >> 4];
		*end++ = digits[name[i] & 15];
	}
	*end = '\0';
	return 0;
}

/* Detection accepts one malformed line for so many good ones. Bound: pace. */
#define BAD_SHARE 10

/* Rounding may change sums by 1 in so many of all counts. Bound: pace. */
#define ROUNDING_SHARE 100

#define SCALE_STEP 1000

#define NO_COUNT "the line does not end with a count"

/* A frame's name, and its location. */
struct name {
	const char *text; /* a string of the profile */
	uint32_t location;
};

struct reader {
	struct input *in;
	struct profile *p;
	struct error *e;
	bool pairs; /* two counts on each line: before and after */
	uint32_t labels;
	TABLE(struct name) names;
	/* Buffers for one line */
	uint32_t *frames;
	size_t frame_room;
	char *unescaped;
	size_t unescaped_room;
	/* For each of p->values, or shorter: what is to be added to it, in 1 / FOLDED_ONE */
	int64_t *fractions;
	size_t fraction_room;
	/* For warnings */
	bool inexact; /* digits of counts were dropped */
	uint64_t empty_frames;
	uint64_t good_lines, bad_lines;
	uint64_t first_bad; /* number of the line */
	const char *bad_reason;
};

/* The lines at a file's beginning, classified. */
struct look {
	size_t good, bad;
	bool binary;	  /* has a NUL */
	bool long_stacks; /* one line fills the window and has semicolons */
};

/* True if a line is empty or a comment, which begins with "# " or is "#" alone. */
static bool is_ignored(const struct text *line)
{
	return is_empty(line) ||
	       (*line->at == '#' && (line->end - line->at == 1 || is_blank(line->at[1])));
}

static struct look look_at_window(const struct input *in)
{
	struct text t = { (const char *)in->bytes, (const char *)in->bytes + in->size }, line;
	struct look l = { .binary = memchr(in->bytes, '\0', in->size) };
	struct folded_count count;

	while (take_line(&t, &line)) {
		/* The line may continue after the window. */
		if (line.end == t.end && in->size >= INPUT_WINDOW) {
			l.long_stacks = !l.good && !l.bad && last_of(&line, ';');
			break;
		}
		line.end -= line.end > line.at && line.end[-1] == '\r';
		take_blanks(&line);
		trim_end(&line);
		if (is_ignored(&line))
			continue;
		if (folded_take_count(&line, &count) != FOLDED_COUNT || is_empty(&line))
			l.bad++;
		else
			l.good++;
	}
	return l;
}

/* Any text could be names, so nearly all lines have to end with a count. */
static bool folded_detect(const struct input *in)
{
	struct look l = look_at_window(in);

	if (in->size == strlen(FOLDED_EMPTY) && memcmp(in->bytes, FOLDED_EMPTY, in->size) == 0)
		return true;
	return !l.binary && (l.long_stacks || (l.good && l.bad <= l.good / BAD_SHARE));
}

static int read_frame(struct reader *r, const struct text *frame, uint32_t *depth)
{
	const char *name = frame->at;
	size_t size = frame->end - frame->at;
	struct name key = { 0 };
	uint32_t id;

	if (!size) {
		r->empty_frames++;
		return 0;
	}
	if (array_reserve(&r->frames, &r->frame_room, *depth + 1, sizeof(*r->frames)))
		return -ENOMEM;
	if (memchr(name, '\\', size)) {
		if (array_reserve(&r->unescaped, &r->unescaped_room, size, 1))
			return -ENOMEM;
		size = folded_unescape(frame->at, size, r->unescaped);
		name = r->unescaped;
	}
	if (profile_string_n(r->p, name, size, &key.text))
		return -ENOMEM;
	id = table_find(&r->names, &key.text, sizeof(key.text));
	if (id == INDEX_NONE &&
	    (profile_add_named_location(r->p, key.text, PROFILE_NONE, &key.location) ||
	     table_add(&r->names, &key, sizeof(key.text), &id)))
		return -ENOMEM;
	r->frames[(*depth)++] = r->names.all[id].location;
	return 0;
}

/* Adds to a value, the whole part of a sum; the fractions of the sum are kept beside it. */
static int add_count(struct reader *r, size_t value, const struct folded_count *count)
{
	int64_t sum;

	r->inexact |= count->inexact;
	add_i64(&r->p->values[value], count->whole);
	if (!count->fraction)
		return 0;
	if (array_reserve(&r->fractions, &r->fraction_room, value + 1, sizeof(*r->fractions)))
		return -ENOMEM;
	sum = r->fractions[value] + count->fraction;
	add_i64(&r->p->values[value], sum / FOLDED_ONE);
	r->fractions[value] = sum % FOLDED_ONE;
	return 0;
}

static void skip_line(struct reader *r, const char *reason)
{
	if (!r->bad_lines++) {
		r->first_bad = r->in->line;
		r->bad_reason = reason;
	}
}

/* A line that is damaged, or has a count that is lost without it. */
static int corrupt_line(struct reader *r, const char *reason)
{
	if (!r->in->options.salvage) {
		input_line_error(r->in, r->e, "%s", reason);
		return error_hint(r->e, "--salvage reads the other lines");
	}
	r->p->salvaged = true;
	skip_line(r, reason);
	return 0;
}

static int read_line(struct reader *r, struct text line)
{
	struct folded_count counts[2] = { { 0 }, { 0 } };
	enum folded_field taken;
	uint32_t depth = 0, id;

	take_blanks(&line);
	trim_end(&line);
	if (is_ignored(&line))
		return 0;
	if (memchr(line.at, '\0', line.end - line.at))
		return corrupt_line(r, "the line has a NUL");
	taken = folded_take_count(&line, &counts[r->pairs]);
	if (taken == FOLDED_NO_COUNT) {
		skip_line(r, NO_COUNT);
		return 0;
	}
	if (taken == FOLDED_COUNT && r->pairs)
		taken = folded_take_count(&line, &counts[0]);
	if (taken == FOLDED_TOO_LARGE)
		return corrupt_line(r, "the count has more than 63 bits");
	r->good_lines++;
	/* From the end of the line, where the leaf is. */
	for (bool more = !text_is(&line, FOLDED_NO_PC); more;) {
		const char *semicolon = last_of(&line, ';');
		const struct text frame = { semicolon ? semicolon + 1 : line.at, line.end };

		if (read_frame(r, &frame, &depth))
			return -ENOMEM;
		more = semicolon;
		line.end = semicolon;
	}
	if (profile_sample(r->p, r->frames, depth, r->labels, &id))
		return -ENOMEM;
	for (size_t i = 0; i < r->p->value_type_count; i++)
		if (add_count(r, id * r->p->value_type_count + i, &counts[i]))
			return -ENOMEM;
	return 0;
}

static int read_lines(struct reader *r)
{
	const char *line;
	size_t size;
	int err = 0;

	while (!err && !(err = input_line(r->in, &line, &size, r->e)) && line)
		err = read_line(r, (struct text){ line, line + size });
	if (err || r->bad_lines <= r->good_lines)
		return err;
	r->in->line = r->first_bad;
	input_line_error(r->in, r->e, "%s", r->bad_reason);
	return error_hint(
		r->e, "%" PRIu64 " of %" PRIu64 " lines are bad: this is no file of folded stacks",
		r->bad_lines, r->bad_lines + r->good_lines);
}

/* Stacks of the window, by where they are in it. */
struct place {
	size_t at, size;
	const struct input *in;
};

EQUAL(place_equal, struct place, struct place,
      SAME(size) && memcmp(b->in->bytes + a->at, b->in->bytes + b->at, a->size) == 0)

/*
 * Sets r->pairs: whether all lines with a count have two. A comparison has each stack once. Where
 * one is repeated, it is because names end with a number, as those of threads do:
 * "java;GC Thread 3 17". So the window is extended up to the first line that decides it: of a
 * comparison, whose stacks are all different, to the end.
 */
static int find_pairs(struct reader *r)
{
	struct input *in = r->in;
	struct place *stacks = NULL;
	size_t count = 0, room = 0, at = 0, size;
	struct folded_count ignored;
	struct index index = { 0 };
	struct error unused;
	int err = 0;

	for (r->pairs = true; r->pairs && !err;) {
		const char *start = (const char *)in->bytes + at, *newline;
		struct text line;

		newline = memchr(start, '\n', in->size - at);
		size = in->size;
		/* Errors are met again, and reported, where the lines are read. */
		if (!newline && size - at <= INPUT_LINE_MAX && !input_need(in, size + 1, &unused) &&
		    in->size > size)
			continue;
		start = (const char *)in->bytes + at;
		if (!newline && start == (const char *)in->bytes + in->size)
			break;
		line = (struct text){ start, newline ?: (const char *)in->bytes + in->size };
		at = line.end - (const char *)in->bytes + !!newline;
		line.end -= line.end > line.at && line.end[-1] == '\r';
		take_blanks(&line);
		trim_end(&line);
		if (is_ignored(&line) || folded_take_count(&line, &ignored) != FOLDED_COUNT)
			continue;
		if (folded_take_count(&line, &ignored) != FOLDED_COUNT || is_empty(&line)) {
			r->pairs = false;
		} else {
			struct place key = { line.at - (const char *)in->bytes, line.end - line.at,
					     in };
			uint64_t hash = hash_bytes(line.at, key.size, 0);

			r->pairs =
				index_find(&index, hash, place_equal, stacks, &key) == INDEX_NONE;
			err = array_add_indexed(stacks, count, room, &index, hash, key);
		}
		if (!newline)
			break;
	}
	r->pairs &= count > 0;
	free(stacks);
	index_free(&index);
	return err;
}

/* Returns the sum of value i, times scale, as a whole number. Adds the lost part to *lost. */
static int64_t round_sum(const struct reader *r, size_t i, int64_t scale, double *lost)
{
	__int128 sum = ((__int128)r->p->values[i] * FOLDED_ONE + r->fractions[i]) * scale;
	__int128 whole = (sum + (sum < 0 ? -FOLDED_ONE : FOLDED_ONE) / 2) / FOLDED_ONE;

	*lost += fabs((double)(sum - whole * FOLDED_ONE) / FOLDED_ONE);
	return whole > INT64_MAX ? INT64_MAX : whole < INT64_MIN ? INT64_MIN : (int64_t)whole;
}

/*
 * Profiles hold whole numbers. The sums are rounded once, after the last line; where that would
 * lose more than 1 in ROUNDING_SHARE of them, as with stacks in seconds, they are multiplied by a
 * power of 1000 before.
 */
static int round_sums(struct reader *r)
{
	struct profile *p = r->p;
	size_t count = p->sample_count * p->value_type_count;
	double total = 0, lost = 0;
	int64_t scale = 1;

	if (!r->fractions)
		return r->inexact ? profile_warn(p, "fractions of counts were rounded") : 0;
	if (array_reserve(&r->fractions, &r->fraction_room, count, sizeof(*r->fractions)))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		total += fabs((double)p->values[i] + (double)r->fractions[i] / FOLDED_ONE);
		round_sum(r, i, scale, &lost);
	}
	while (lost * ROUNDING_SHARE > total * (double)scale &&
	       total * (double)scale * SCALE_STEP < (double)INT64_MAX / 2 && scale < FOLDED_ONE) {
		lost = 0;
		scale *= SCALE_STEP;
		for (size_t i = 0; i < count; i++)
			round_sum(r, i, scale, &lost);
	}
	for (size_t i = 0; i < count; i++)
		p->values[i] = round_sum(r, i, scale, &total);
	/* Values that are added up or compared must have one unit: "samples" is "samples/1000". */
	for (size_t i = 0; i < p->value_type_count && scale > 1; i++) {
		char type[64];

		snprintf(type, sizeof(type), "%s/%" PRId64, p->value_types[i].type, scale);
		if (profile_string(p, type, &p->value_types[i].type))
			return -ENOMEM;
	}
	if (scale > 1) {
		p->default_value = p->value_type_count; /* the last one is "samples" */
		if (profile_warn(p, "the counts are small fractions: 1 is shown as %" PRId64,
				 scale))
			return -ENOMEM;
	}
	return lost > 0 || r->inexact ? profile_warn(p, "fractions of counts were rounded") : 0;
}

static int folded_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	const struct profile_labels none = { .comm = "" };
	int err = find_pairs(&r), warn_err;

	/* Lines of a comparison have two counts; the second is shown, as flamegraph.pl does. */
	if (!err && r.pairs)
		err = profile_add_value_type(p, "before", "count");
	err = err ?: profile_add_sum(p, PROFILE_SUM_SAMPLES);
	err = err ?: profile_add_labels(p, &none, &r.labels);
	err = err ?: read_lines(&r);

	/* After an error, too: what was read may be salvaged. */
	if (err != -ENOMEM) {
		warn_err = round_sums(&r);
		if (!warn_err && r.bad_lines)
			warn_err = profile_warn(p,
						"%" PRIu64 " line(s) were not read, the first is "
						"line %" PRIu64 ": %s",
						r.bad_lines, r.first_bad, r.bad_reason);
		if (!warn_err && r.empty_frames)
			warn_err = profile_warn(p, "%" PRIu64 " empty frame(s) were lost",
						r.empty_frames);
		err = warn_err ?: err;
	}
	table_free(&r.names);
	free(r.frames);
	free(r.unescaped);
	free(r.fractions);
	return err;
}

const struct format format_folded = {
	.name = "folded",
	.extensions = (const char *const[]){ ".folded", ".collapsed", NULL },
	.is_signed = true,
	.keeps = KEEPS(STACKS) | KEEPS(NAMES),
	.is_text = true,
	.streams = true,
	.detect = folded_detect,
	.read = folded_read,
	.write = folded_write,
};
