// SPDX-License-Identifier: GPL-2.0-only
/*
 * Follows the "Callgrind Format Specification" in valgrind's manual, and real writers and readers
 * where they differ from it. callgrind_header.c and callgrind_body.c read the lines.
 */
#include "format/callgrind/callgrind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "format/callgrind/callgrind_read.h"

#define PAGE_SIZE UINT64_C(4096)

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* Takes "KEY:" or "KEY=", with blanks before the sign. Returns the sign; '\0': neither. */
static char take_key(struct text *t, struct text *key)
{
	key->at = t->at;
	while (!is_empty(t) && is_word(*t->at))
		t->at++;
	key->end = t->at;
	take_blanks(t);
	if (is_empty(key) || is_empty(t) || (*t->at != ':' && *t->at != '='))
		return '\0';
	return *t->at++;
}

/* --- detection --- */

static bool begins_costs(const struct text *t)
{
	const char *at = t->at;

	if (at < t->end && (*at == '+' || *at == '-'))
		at++;
	return at < t->end && *at >= '0' && *at <= '9';
}

enum line_kind {
	LINE_NOTHING, /* decides nothing: may stand anywhere */
	LINE_MAGIC,
	LINE_EVENTS,
	LINE_HEADER,
	LINE_BODY,
	LINE_OTHER
};

static enum line_kind classify(struct text t)
{
	struct text key;
	char sign;

	take_blanks(&t);
	if (take(&t, "# callgrind format"))
		return LINE_MAGIC;
	/* Xdebug and valgrind write such lines anywhere. */
	if (is_empty(&t) || *t.at == '#' || take(&t, "=="))
		return LINE_NOTHING;
	if (begins_costs(&t))
		return LINE_BODY;
	sign = take_key(&t, &key);
	if (sign == '=')
		return callgrind_is_body(key) ? LINE_BODY : LINE_OTHER;
	if (sign != ':')
		return LINE_OTHER;
	take_blanks(&t);
	if (text_is(&key, "events") && !is_empty(&t))
		return LINE_EVENTS;
	return callgrind_is_header(key) ? LINE_HEADER : LINE_NOTHING;
}

/*
 * New files begin with a magic line. Older files, and other writers, have a header with "events:",
 * then a body, which a long "cmd:" line may push out of the window.
 */
static bool callgrind_detect(const struct input *in)
{
	struct text rest = { (const char *)in->bytes, (const char *)in->bytes + in->size }, line;
	bool events = false;
	unsigned int headers = 0;

	while (take_line(&rest, &line)) {
		bool whole = line.end < rest.end;
		enum line_kind kind;

		if (line.end > line.at && line.end[-1] == '\r')
			line.end--;
		kind = classify(line);
		if (kind == LINE_MAGIC || (kind == LINE_BODY && events))
			return true;
		if (kind == LINE_OTHER || (kind == LINE_BODY && !whole))
			return false;
		events |= kind == LINE_EVENTS;
		headers += kind == LINE_HEADER;
	}
	return headers >= 2 && (events || in->size >= INPUT_WINDOW);
}

/* --- reading --- */

static int read_line(struct callgrind_reader *r, struct text t)
{
	struct text line, key;
	char sign;

	if (take_blanks(&t) && !is_empty(&t))
		callgrind_overlook(r, OVERSIGHT_BLANKS);
	if (is_empty(&t) || *t.at == '#')
		return 0;
	if (begins_costs(&t) || *t.at == '*')
		return callgrind_read_costs(r, t);
	line = t;
	sign = take_key(&t, &key);
	if (sign == '=')
		return callgrind_read_body(r, key, t);
	if (sign == ':')
		return callgrind_read_header(r, key, t, line);
	callgrind_overlook(r, OVERSIGHT_LINE);
	return 0;
}

static int read_lines(struct callgrind_reader *r)
{
	const char *line;
	size_t size;
	int more, err = 0;

	while (!err && (more = input_line(r->in, &line, &size, r->e)) != 0)
		err = more < 0 ? more : read_line(r, (struct text){ line, line + size });
	if (!err && !r->events.column_count)
		err = input_line_error(r->in, r->e, "the file has no \"events:\" line");
	return err ?: callgrind_end_part(r);
}

/* Extends each mapping to the pages of all its locations. */
static void measure_mappings(struct profile *p)
{
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		uint64_t start = l->address - l->address % PAGE_SIZE, limit;
		struct profile_mapping *m;

		if (l->mapping == PROFILE_NONE || !l->address)
			continue;
		m = &p->mappings[l->mapping];
		if (__builtin_add_overflow(start, PAGE_SIZE, &limit))
			limit = UINT64_MAX;
		if (!m->limit || start < m->start)
			m->start = start;
		if (limit > m->limit)
			m->limit = limit;
	}
}

static const char *const oversights[OVERSIGHT_COUNT] = {
	[OVERSIGHT_BLANKS] = "the line begins with a blank",
	[OVERSIGHT_LINE] = "the line is not in the format and is ignored",
	[OVERSIGHT_UNDEFINED] = "the number of a name is not defined",
	[OVERSIGHT_REDEFINED] = "the number of a name is defined again",
	[OVERSIGHT_DUPLICATE_EVENT] = "an event is listed twice: its second costs are ignored",
	[OVERSIGHT_COSTS] = "the line has more costs than there are events",
	[OVERSIGHT_NEGATIVE] = "a number of calls is negative: counted as 0",
	[OVERSIGHT_FRACTION] = "a cost has a fraction, which is ignored",
	[OVERSIGHT_RELATIVE] = "a cost is relative to the previous line's",
	[OVERSIGHT_OVERFLOW] = "a cost has more than 63 bits: counted as 2^63 - 1",
	[OVERSIGHT_POSITION] = "a relative position is below 0, or has more than 64 bits",
	[OVERSIGHT_NO_FUNCTION] = "costs come before any function",
	[OVERSIGHT_NO_CALLEE] = "a call does not name its callee",
	[OVERSIGHT_NO_COSTS] = "no cost line follows the call or jump, which is dropped",
};

static int warn(struct callgrind_reader *r)
{
	if (*r->mismatch && profile_warn(r->p, "%s", r->mismatch))
		return error_no_memory(r->e);
	for (size_t i = 0; i < OVERSIGHT_COUNT; i++) {
		uint64_t count = r->oversights[i].count, first = r->oversights[i].first;

		if (!count)
			continue;
		if (count == 1 ? profile_warn(r->p, "line %" PRIu64 ": %s", first, oversights[i])
			       : profile_warn(r->p, "line %" PRIu64 ": %s (and %" PRIu64 " more)",
					      first, oversights[i], count - 1))
			return error_no_memory(r->e);
	}
	return 0;
}

static int callgrind_read(struct input *in, struct profile *p, struct error *e)
{
	struct callgrind_reader *r = calloc(1, sizeof(*r));
	int err, finish_err;

	if (!r)
		return error_no_memory(e);
	r->in = in;
	r->p = p;
	r->e = e;
	r->positions[0] = POSITION_LINE;
	r->position_count = 1;
	r->labels = PROFILE_NONE;
	r->here = r->callee =
		(struct callgrind_place){ .mapping = PROFILE_NONE, .id = PROFILE_NONE };
	err = callgrind_intern(r, (struct text){ "", "" }, &r->here.file);
	err = err ?: read_lines(r);
	/* After an error, too: what was read before must be a valid profile. */
	finish_err = callgrind_finish_events(r) ?: warn(r);
	measure_mappings(p);
	callgrind_names_free(&r->objects);
	callgrind_names_free(&r->files);
	callgrind_names_free(&r->functions);
	index_free(&r->mapping_index);
	index_free(&r->function_index);
	free(r);
	return err ?: finish_err;
}

static const char *const extensions[] = { ".callgrind", NULL };
static const char *const files[] = { "callgrind.out", "cachegrind.out", NULL };

const struct format format_callgrind = {
	.name = CALLGRIND_NAME,
	.extensions = extensions,
	.files = files,
	.is_signed = true,
	.keeps = KEEPS(NAMES) | KEEPS(LINES) | KEEPS(IMAGES) | KEEPS(BUILD_IDS) | KEEPS(VALUES) |
		 KEEPS(CALLS) | KEEPS(COSTS) | KEEPS(JUMPS) | KEEPS(EVENT) | KEEPS(PERIOD) |
		 KEEPS(EVENT_PERIOD) | KEEPS(TIME) | KEEPS(DURATION) | KEEPS(HOST) |
		 KEEPS(COMMAND) | KEEPS(ACCOUNT) | KEEPS(COMMENTS),
	.is_text = true,
	.streams = true,
	.detect = callgrind_detect,
	.read = callgrind_read,
	.write = callgrind_write,
};
