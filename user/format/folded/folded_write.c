// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/folded/folded.h"
#include "profile/pc_name.h"
#include "util/array.h"
#include "util/index.h"
#include "util/sum.h"

/* A line: one for all samples whose stacks have the same text. */
struct line {
	size_t at, size; /* in texts */
	int64_t count;
};

struct writer {
	const struct profile *p;
	FILE *out;	/* a stream that writes to `texts` */
	char *texts;	/* the stacks of all lines, concatenated */
	size_t written; /* bytes in texts at the last fflush() */
	size_t size;	/* bytes in texts that belong to lines */
	struct line *lines;
	size_t line_count, line_room;
	struct index index;
	char **functions; /* escaped name of each function; NULL: needs no escapes */
	char **unnamed;	  /* text for each location without a name; NULL: it has one */
};

static int escape_functions(struct writer *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < p->function_count; i++)
		if (folded_escape(p->functions[i].name, &w->functions[i]))
			return -ENOMEM;
	return 0;
}

static int name_location(struct writer *w, uint32_t location)
{
	const struct profile_image *image = profile_location_image(w->p, location);
	char *name =
		profile_pc_name(image ? image->path : "", w->p->locations[location].image_address);

	if (!name || folded_escape(name, &w->unnamed[location])) {
		free(name);
		return -ENOMEM;
	}
	if (w->unnamed[location])
		free(name);
	else
		w->unnamed[location] = name;
	return 0;
}

static int make_names(struct writer *w)
{
	const struct profile *p = w->p;
	int err;

	w->functions = calloc(p->function_count + 1, sizeof(*w->functions));
	w->unnamed = calloc(p->location_count + 1, sizeof(*w->unnamed));
	if (!w->functions || !w->unnamed)
		return -ENOMEM;
	err = escape_functions(w);
	for (uint32_t i = 0; i < p->location_count && !err; i++)
		if (!p->locations[i].line_count)
			err = name_location(w, i);
	return err;
}

static void free_names(struct writer *w)
{
	for (size_t i = 0; w->functions && i < w->p->function_count; i++)
		free(w->functions[i]);
	for (size_t i = 0; w->unnamed && i < w->p->location_count; i++)
		free(w->unnamed[i]);
	free(w->functions);
	free(w->unnamed);
}

/* Inlined functions are frames of their own. */
static void put_location(const struct writer *w, uint32_t location)
{
	const struct profile *p = w->p;
	const struct profile_location *l = &p->locations[location];

	if (!l->line_count)
		fputs_unlocked(w->unnamed[location], w->out);
	for (uint32_t i = l->line_count; i-- > 0;) {
		uint32_t function = p->lines[l->first_line + i].function;

		fputs_unlocked(w->functions[function] ?: p->functions[function].name, w->out);
		if (i)
			putc_unlocked(';', w->out);
	}
}

static void put_stack(const struct writer *w, const struct profile_sample *s)
{
	const uint32_t *frames = w->p->frames + s->first_frame;

	if (!s->depth)
		fputs_unlocked(FOLDED_NO_PC, w->out);
	for (uint32_t i = s->depth; i-- > 0;) {
		put_location(w, frames[i]);
		if (i)
			putc_unlocked(';', w->out);
	}
}

/* `key` is the text after those of all lines. */
static bool line_equal(const void *array, uint32_t id, const void *key)
{
	const struct writer *w = array;
	const struct line *line = &w->lines[id];

	return line->size == w->written - w->size &&
	       memcmp(w->texts + line->at, key, line->size) == 0;
}

static int add_line(struct writer *w, uint64_t hash, int64_t count)
{
	if (array_reserve(&w->lines, &w->line_room, w->line_count + 1, sizeof(*w->lines)) ||
	    index_add(&w->index, hash, w->line_count))
		return -ENOMEM;
	w->lines[w->line_count++] = (struct line){ w->size, w->written - w->size, count };
	w->size = w->written;
	return 0;
}

/* Adds a sample to the line of its stack; stacks that differ only in addresses share one. */
static int add_sample(struct writer *w, const struct profile_sample *s, int64_t count)
{
	const char *text;
	uint64_t hash;
	uint32_t id;

	if (fseeko(w->out, w->size, SEEK_SET))
		return -ENOMEM;
	put_stack(w, s);
	if (fflush(w->out))
		return -ENOMEM;
	text = w->texts + w->size;
	hash = hash_bytes(text, w->written - w->size, 0);
	id = index_find(&w->index, hash, line_equal, w, text);
	if (id == INDEX_NONE)
		return add_line(w, hash, count);
	add_i64(&w->lines[id].count, count);
	return 0;
}

static int gather_lines(struct writer *w, size_t value)
{
	const struct profile *p = w->p;
	int err = make_names(w);

	w->out = open_memstream(&w->texts, &w->written);
	if (!w->out)
		return -ENOMEM;
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		int64_t count = p->values[i * p->value_type_count + value];

		err = count ? add_sample(w, &p->samples[i], count) : 0;
	}
	fclose(w->out);
	return err;
}

static void put_lines(const struct writer *w, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < w->line_count; i++) {
		const struct line *line = &w->lines[i];

		any |= line->count;
		if (!line->count)
			continue;
		fwrite_unlocked(w->texts + line->at, 1, line->size, out);
		fprintf(out, " %" PRId64 "\n", line->count);
	}
	if (!any)
		fputs(FOLDED_EMPTY, out);
}

int folded_write(const struct profile *p, const struct format_options *options, FILE *out,
		 struct error *e)
{
	struct writer w = { .p = p };
	int err = gather_lines(&w, profile_value(p, options->value));

	if (!err)
		put_lines(&w, out);
	free_names(&w);
	index_free(&w.index);
	free(w.lines);
	free(w.texts);
	if (err)
		return error_no_memory(e);
	return ferror(out) ? error_set(e, errno, "cannot write") : 0;
}
