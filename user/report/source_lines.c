// SPDX-License-Identifier: GPL-2.0-only
#include "report/source_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/sum.h"

/* A line of a location, for sorting. */
struct entry {
	struct source_line line;
	uint32_t *number; /* where to store its number after sorting */
};

static const char *file_of(const struct profile *p, const struct profile_line *line)
{
	return line->file ?: p->functions[line->function].file;
}

struct source_line source_line_of(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_line *own;

	if (!l->line_count)
		return (struct source_line){ .file = "" };
	own = &p->lines[l->first_line + l->line_count - 1];
	return (struct source_line){ .file = file_of(p, own), .number = own->line };
}

struct source_line source_line_inlined(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];
	struct source_line line = source_line_of(p, location);

	if (l->line_count > 1) {
		const struct profile_line *innermost = &p->lines[l->first_line];

		line.inlined = p->functions[innermost->function].name;
		line.inlined_file = file_of(p, innermost);
		line.inlined_number = innermost->line;
	}
	return line;
}

static int compare_lines(const struct source_line *a, const struct source_line *b,
			 const char *first)
{
	int order = (a->file != first) - (b->file != first);

	order = order ?: strcmp(a->file, b->file);
	order = order ?: compare_u64(a->number, b->number);
	order = order ?: (a->inlined != NULL) - (b->inlined != NULL);
	if (order || !a->inlined)
		return order;
	order = strcmp(a->inlined_file, b->inlined_file);
	order = order ?: compare_u64(a->inlined_number, b->inlined_number);
	return order ?: strcmp(a->inlined, b->inlined);
}

static int compare_entries(const void *one, const void *other, void *first)
{
	return compare_lines(&((const struct entry *)one)->line,
			     &((const struct entry *)other)->line, first);
}

int source_lines_make(struct source_lines *s, const struct profile *p, const bool *locations)
{
	size_t room = p->location_count + 1, count = 0;
	const char *first = ""; /* the file that defines the function, which may include others */
	struct entry *entries = calloc(2 * room, sizeof(*entries));
	const struct profile_line *line;

	*s = (struct source_lines){
		.own = calloc(room, sizeof(*s->own)),
		.inlined = calloc(room, sizeof(*s->inlined)),
		.lines = calloc(2 * room, sizeof(*s->lines)),
	};
	if (!entries || !s->own || !s->inlined || !s->lines) {
		free(entries);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->location_count; i++)
		if (locations[i] && p->locations[i].line_count) {
			const struct profile_location *l = &p->locations[i];

			line = &p->lines[l->first_line + l->line_count - 1];
			first = p->functions[line->function].file;
			break;
		}
	for (uint32_t i = 0; i < p->location_count; i++) {
		struct source_line inlined;

		s->own[i] = s->inlined[i] = PROFILE_NONE;
		if (!locations[i])
			continue;
		entries[count++] = (struct entry){ source_line_of(p, i), &s->own[i] };
		inlined = source_line_inlined(p, i);
		if (inlined.inlined)
			entries[count++] = (struct entry){ inlined, &s->inlined[i] };
	}
	if (count)
		qsort_r(entries, count, sizeof(*entries), compare_entries, (void *)first);
	for (size_t i = 0; i < count; i++) {
		if (!s->count ||
		    compare_lines(&s->lines[s->count - 1], &entries[i].line, first) != 0)
			s->lines[s->count++] = entries[i].line;
		*entries[i].number = s->count - 1;
	}
	free(entries);
	return 0;
}

void source_lines_free(struct source_lines *s)
{
	free(s->lines);
	free(s->own);
	free(s->inlined);
	*s = (struct source_lines){ 0 };
}
