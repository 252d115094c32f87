// SPDX-License-Identifier: GPL-2.0-only
#include "format/folded/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/index.h"

/* Detection accepts one malformed line for so many good ones. */
#define BAD_SHARE 10

/* A frame's name, and its location. */
struct name {
	const char *text; /* a string of the profile */
	size_t size;
	uint32_t location;
};

struct reader {
	struct input *in;
	struct profile *p;
	struct error *e;
	bool pairs; /* two counts on each line: before and after */
	uint32_t labels;
	struct name *names;
	size_t name_count, name_room;
	struct index name_index;
	/* Buffers for one line */
	uint32_t *frames;
	size_t frame_room;
	char *unescaped;
	size_t unescaped_room;
	/* For warnings */
	bool rounded;
	uint64_t empty_frames;
};

/* The lines at a file's beginning, classified. */
struct look {
	size_t good, bad;
	size_t pairs;	  /* good ones with two counts */
	bool binary;	  /* has a NUL */
	bool long_stacks; /* one line fills the window and has semicolons */
};

/* Whether a line is empty or a comment, which begins with "# " or is "#" alone. */
static bool is_ignored(const struct text *line)
{
	return is_empty(line) ||
	       (*line->at == '#' && (line->end - line->at == 1 || is_blank(line->at[1])));
}

static void look_at_line(struct look *l, struct text line)
{
	bool rounded = false;
	int64_t count;

	take_blanks(&line);
	trim_end(&line);
	if (is_ignored(&line))
		return;
	if (folded_take_count(&line, &count, &rounded) <= 0 || is_empty(&line)) {
		l->bad++;
		return;
	}
	l->good++;
	l->pairs += folded_take_count(&line, &count, &rounded) > 0 && !is_empty(&line);
}

static struct look look(const struct input *in)
{
	size_t size = in->size < INPUT_WINDOW ? in->size : INPUT_WINDOW;
	struct text t = { (const char *)in->bytes, (const char *)in->bytes + size }, line;
	struct look l = { .binary = memchr(in->bytes, '\0', size) };

	while (take_line(&t, &line)) {
		/* The line may continue after the window. */
		if (line.end == t.end && size == INPUT_WINDOW) {
			l.long_stacks = line.at == (const char *)in->bytes && last_of(&line, ';');
			break;
		}
		line.end -= line.end > line.at && line.end[-1] == '\r';
		look_at_line(&l, line);
	}
	return l;
}

static bool is_written_empty(const struct input *in)
{
	return in->size == strlen(FOLDED_EMPTY) && memcmp(in->bytes, FOLDED_EMPTY, in->size) == 0;
}

/* Any text could be names, so nearly all lines have to end with a count. */
static bool folded_detect(const struct input *in)
{
	struct look l = look(in);

	if (is_written_empty(in))
		return true;
	return !l.binary && (l.long_stacks || (l.good && l.bad <= l.good / BAD_SHARE));
}

static bool name_equal(const void *array, uint32_t id, const void *key)
{
	const struct name *a = (const struct name *)array + id, *b = key;

	return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

static int new_location(struct reader *r, struct name *name)
{
	struct profile_function function = { .file = "" };
	struct profile_line line = { 0 };

	if (profile_string_n(r->p, name->text, name->size, &name->text))
		return -ENOMEM;
	function.name = function.system_name = name->text;
	if (profile_add_function(r->p, &function, &line.function))
		return -ENOMEM;
	return profile_add_line_location(r->p, 0, PROFILE_NONE, &line, 1, &name->location);
}

static int find_location(struct reader *r, const char *text, size_t size, uint32_t *location)
{
	struct name key = { text, size, 0 };
	uint64_t hash = hash_bytes(text, size, 0);
	uint32_t id = index_find(&r->name_index, hash, name_equal, r->names, &key);

	if (id == INDEX_NONE) {
		id = r->name_count;
		if (new_location(r, &key) ||
		    array_reserve(&r->names, &r->name_room, id + 1, sizeof(*r->names)) ||
		    index_add(&r->name_index, hash, id))
			return -ENOMEM;
		r->names[r->name_count++] = key;
	}
	*location = r->names[id].location;
	return 0;
}

static int add_frame(struct reader *r, const struct text *frame, uint32_t *location)
{
	size_t size = frame->end - frame->at;

	if (!memchr(frame->at, '\\', size))
		return find_location(r, frame->at, size, location);
	if (array_reserve(&r->unescaped, &r->unescaped_room, size, 1))
		return -ENOMEM;
	size = folded_unescape(frame->at, size, r->unescaped);
	return find_location(r, r->unescaped, size, location);
}

static int read_frame(struct reader *r, const struct text *frame, uint32_t *depth)
{
	if (is_empty(frame)) {
		r->empty_frames++;
		return 0;
	}
	if (array_reserve(&r->frames, &r->frame_room, *depth + 1, sizeof(*r->frames)))
		return -ENOMEM;
	return add_frame(r, frame, &r->frames[(*depth)++]);
}

/* Reads the frames from the end of the line, where the leaf is. */
static int read_stack(struct reader *r, struct text stack, uint32_t *depth)
{
	const char *semicolon;
	int err = 0;

	while (!err && (semicolon = last_of(&stack, ';'))) {
		err = read_frame(r, &(struct text){ semicolon + 1, stack.end }, depth);
		stack.end = semicolon;
	}
	return err ?: read_frame(r, &stack, depth);
}

static int add_sample(struct reader *r, const struct text *stack, const int64_t *counts)
{
	uint32_t depth = 0;

	if (!text_is(stack, FOLDED_NO_PC) && read_stack(r, *stack, &depth))
		return error_no_memory(r->e);
	if (profile_add_sample(r->p, r->frames, depth, r->labels, counts))
		return error_no_memory(r->e);
	return 0;
}

static int read_count(struct reader *r, struct text *line, int64_t *count)
{
	int taken = folded_take_count(line, count, &r->rounded);

	if (taken == -ERANGE)
		return input_line_error(r->in, r->e, "the count has more than 63 bits");
	if (!taken)
		return input_line_error(r->in, r->e, "the line does not end with a count");
	return 0;
}

static int read_line(struct reader *r, struct text line)
{
	int64_t counts[2];
	int err;

	take_blanks(&line);
	trim_end(&line);
	if (is_ignored(&line))
		return 0;
	if (memchr(line.at, '\0', line.end - line.at))
		return input_line_error(r->in, r->e, "the line has a NUL");
	err = read_count(r, &line, &counts[r->pairs]);
	if (!err && r->pairs)
		err = read_count(r, &line, &counts[0]);
	return err ?: add_sample(r, &line, counts);
}

static int read_lines(struct reader *r)
{
	const char *line;
	size_t size;
	int more, err = 0;

	while (!err && (more = input_line(r->in, &line, &size, r->e)) != 0)
		err = more < 0 ? more : read_line(r, (struct text){ line, line + size });
	return err;
}

/* Lines of a comparison have two counts; the second is shown, as flamegraph.pl does. */
static int begin(struct reader *r)
{
	const struct profile_labels none = { .comm = "" };
	struct look l = look(r->in);

	r->pairs = l.good && l.pairs == l.good;
	if ((r->pairs && profile_add_value_type(r->p, "before", "count")) ||
	    profile_add_value_type(r->p, "samples", "count"))
		return -ENOMEM;
	return profile_add_labels(r->p, &none, &r->labels);
}

static int warn(struct reader *r)
{
	if ((r->rounded && profile_warn(r->p, "fractions of counts were rounded")) ||
	    (r->empty_frames &&
	     profile_warn(r->p, "%" PRIu64 " empty frame(s) were dropped", r->empty_frames)))
		return error_no_memory(r->e);
	return 0;
}

static int folded_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	int err = begin(&r) ? error_no_memory(e) : read_lines(&r);

	err = err ?: warn(&r);
	index_free(&r.name_index);
	free(r.names);
	free(r.frames);
	free(r.unescaped);
	return err;
}

static const char *const extensions[] = { ".folded", ".collapsed", NULL };

const struct format format_folded = {
	.name = "folded",
	.extensions = extensions,
	.is_signed = true,
	.keeps = KEEPS(STACKS) | KEEPS(NAMES),
	.is_text = true,
	.streams = true,
	.detect = folded_detect,
	.read = folded_read,
	.write = folded_write,
};
