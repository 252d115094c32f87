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
	char **unnamed;	  /* profile_pc_names(), escaped */
};

static int make_names(struct writer *w)
{
	const struct profile *p = w->p;

	w->functions = calloc(p->function_count + 1, sizeof(*w->functions));
	w->unnamed = profile_pc_names(p);
	if (!w->functions || !w->unnamed)
		return -ENOMEM;
	for (size_t i = 0; i < p->function_count; i++)
		if (folded_escape(p->functions[i].name, &w->functions[i]))
			return -ENOMEM;
	for (size_t i = 0; i < p->location_count; i++) {
		char *name = w->unnamed[i], *escaped = NULL;

		if (name && folded_escape(name, &escaped))
			return -ENOMEM;
		if (escaped) {
			w->unnamed[i] = escaped;
			free(name);
		}
	}
	return 0;
}

/* `key` is the text after those of all lines. */
static bool line_equal(const void *array, uint32_t id, const void *key)
{
	const struct writer *w = array;
	const struct line *line = &w->lines[id];

	return line->size == w->written - w->size &&
	       memcmp(w->texts + line->at, key, line->size) == 0;
}

/* Adds a sample to the line of its stack; stacks that differ only in addresses share one. */
static int add_sample(struct writer *w, const struct profile_sample *s, int64_t count)
{
	const char *text;
	uint64_t hash;
	uint32_t id;
	const struct profile *p = w->p;

	if (fseeko(w->out, w->size, SEEK_SET))
		return -ENOMEM;
	if (!s->depth)
		fputs_unlocked(FOLDED_NO_PC, w->out);
	for (uint32_t i = s->depth; i-- > 0;) {
		uint32_t location = p->frames[s->first_frame + i];
		const struct profile_location *l = &p->locations[location];

		if (!l->line_count)
			fputs_unlocked(w->unnamed[location], w->out);
		/* Inlined functions are frames of their own. */
		for (uint32_t j = l->line_count; j-- > 0;) {
			uint32_t function = p->lines[l->first_line + j].function;

			fputs_unlocked(w->functions[function] ?: p->functions[function].name,
				       w->out);
			if (j)
				putc_unlocked(';', w->out);
		}
		if (i)
			putc_unlocked(';', w->out);
	}
	if (fflush(w->out))
		return -ENOMEM;
	text = w->texts + w->size;
	hash = hash_bytes(text, w->written - w->size, 0);
	id = index_find(&w->index, hash, line_equal, w, text);
	if (id != INDEX_NONE) {
		add_i64(&w->lines[id].count, count);
		return 0;
	}
	if (array_add_indexed(w->lines, w->line_count, w->line_room, &w->index, hash,
			      (struct line){ w->size, w->written - w->size, count }))
		return -ENOMEM;
	w->size = w->written;
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

int folded_write(const struct profile *p, const struct format_options *options, FILE *out,
		 struct error *e)
{
	struct writer w = { .p = p };
	bool any = false;
	int err = gather_lines(&w, profile_value(p, options->value));

	for (size_t i = 0; i < w.line_count && !err; i++) {
		const struct line *line = &w.lines[i];

		if (!line->count)
			continue;
		any = true;
		fwrite_unlocked(w.texts + line->at, 1, line->size, out);
		fprintf(out, " %" PRId64 "\n", line->count);
	}
	if (!any && !err)
		fputs(FOLDED_EMPTY, out);
	array_free_texts(w.functions, p->function_count);
	array_free_texts(w.unnamed, p->location_count);
	index_free(&w.index);
	free(w.lines);
	free(w.texts);
	if (err)
		return error_no_memory(e);
	return ferror(out) ? error_set(e, errno, "cannot write") : 0;
}
