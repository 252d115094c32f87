// SPDX-License-Identifier: GPL-2.0-only
#include "report/web/web_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/row_view.h"
#include "report/text.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"
#include "util/sum.h"
#include "util/table.h"

#define WHOLE_CODE   2000 /* instructions: of functions with more, those near to samples */
#define WHOLE_SOURCE 1000 /* lines, the same */
#define NEAR	     8	  /* how near */
/* Bound: files: bytes of a line of code in a page; then: it is cut; seen: not seen. */
#define TEXT_MAX 300 /* bytes of a line */

/* --- Choice --- */

struct candidate {
	uint32_t node, location; /* the location: where most of its samples are */
	uint64_t self, total, most;
	uint32_t last_sample;
};

/* By their own samples, then by those in what they call. */
ORDER(compare_candidates, struct candidate, MOST(self) ?: MOST(total) ?: LEAST(node))

/* The outermost function at a location: the one whose symbol it is in. */
static uint32_t function_at(const struct callgraph_places *places, uint32_t location)
{
	return places->nodes[places->first[location + 1] - 1];
}

/*
 * Sums up the samples of each node; candidates[i] is node i. Those that have too few are dropped:
 * *count is the number of what is left, the busiest first. Returns 0 or -ENOMEM.
 */
static int weigh_functions(const struct callgraph *g, const struct callgraph_places *places,
			   const struct web_options *o, struct candidate *candidates, size_t *count)
{
	const struct profile *p = places->p;
	size_t value = profile_value(p, o->value), kept = 0;
	double least = profile_magnitude(p, o->value) * (o->code_percent / 100);
	uint64_t *weights = calloc(p->location_count + 1, sizeof(*weights));

	if (!weights)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->node_count; i++)
		candidates[i].node = i;
	for (size_t i = 0; i < p->sample_count; i++) {
		const uint32_t *frames = p->frames + p->samples[i].first_frame;
		uint64_t weight = magnitude(p->values[i * p->value_type_count + value]);

		for (uint32_t j = 0; j < p->samples[i].depth; j++) {
			struct candidate *c = &candidates[function_at(places, frames[j])];

			if (j == 0)
				add_u64(&c->self, weight);
			if (c->last_sample != i + 1)
				add_u64(&c->total, weight);
			c->last_sample = i + 1;
			add_u64(&weights[frames[j]], weight);
			if (weights[frames[j]] >= c->most) {
				c->most = weights[frames[j]];
				c->location = frames[j];
			}
		}
	}
	free(weights);
	for (uint32_t i = 0; i < g->node_count; i++) {
		const struct profile_location *l = &p->locations[candidates[i].location];
		const char *name = g->nodes[i].key.function, *reason;
		size_t size;

		/*
		 * What has no name is no function; what a thread waited for is none, either; and
		 * where neither a place in an image nor a source file is known there is no code.
		 */
		if (!candidates[i].total || candidates[i].total < least || !name ||
		    ((g->nodes[i].key.image == row_unknown || !l->image_address) &&
		     !*p->functions[p->lines[l->first_line + l->line_count - 1].function].file) ||
		    thread_state_of(name, &reason, &size) != THREAD_ON_CPU)
			continue;
		/* What has few samples of its own comes behind all that have enough. */
		if (candidates[i].self < least)
			candidates[i].self = 0;
		candidates[kept++] = candidates[i];
	}
	qsort(candidates, kept, sizeof(*candidates), compare_candidates);
	*count = kept;
	return 0;
}

/* --- What of it is shown --- */

static int find_source(struct web_code *c, struct annotation *a, const char *name,
		       struct web_source **source)
{
	const struct source_file *file;

	*source = NULL;
	for (size_t i = 0; i < c->source_count; i++)
		if (strcmp(c->sources[i].file->name, name) == 0) {
			*source = &c->sources[i];
			return 0;
		}
	if (!*name)
		return 0;
	if (source_files_find(&a->files, name, &file))
		return -ENOMEM;
	if (!file->text)
		return 0;
	if (array_reserve(&c->sources, &c->source_room, c->source_count + 1, sizeof(**source)))
		return -ENOMEM;
	*source = &c->sources[c->source_count];
	**source = (struct web_source){ file, calloc(file->line_count + 1, sizeof(bool)) };
	if (!(*source)->shown)
		return -ENOMEM;
	c->source_count++;
	return 0;
}

static int show_lines(struct web_code *c, struct annotation *a, const char *name, uint64_t first,
		      uint64_t last)
{
	struct web_source *source;

	if (!first)
		return 0;
	if (find_source(c, a, name, &source))
		return -ENOMEM;
	for (uint64_t i = first; source && i <= last && i <= source->file->line_count; i++) {
		if (!source->shown[i - 1])
			c->bytes += strnlen(source->file->lines[i - 1], TEXT_MAX);
		source->shown[i - 1] = true;
	}
	return 0;
}

static int show_near(struct web_code *c, struct annotation *a, const char *name, uint32_t number)
{
	if (!number)
		return 0;
	return show_lines(c, a, name, number > NEAR ? number - NEAR : 1, (uint64_t)number + NEAR);
}

/* The line of location `number` of a->line_places: that of an instruction, or of the profile. */
static struct source_line line_at(const struct annotation *a, uint32_t number)
{
	if (a->line_places)
		return source_line_inlined(a->line_places, number);
	return (struct source_line){ .file = "" };
}

static int show_function(struct web_code *c, struct web_function *f)
{
	struct annotation *a = &f->a;
	size_t count = a->code.count;
	const char *own = a->lines.count ? a->lines.lines[0].file : "";
	uint32_t number = 0, first = 0, last = 0;
	int err = 0;

	f->shown = calloc(count + 1, sizeof(*f->shown));
	if (!f->shown)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		bool shown = count <= WHOLE_CODE;

		for (size_t near = i > NEAR ? i - NEAR : 0; near <= i + NEAR && near < count;
		     near++)
			shown |= !annotation_is_quiet(a, &a->code_counts, near);
		/* There is room for twice as many where samples are. */
		if (!shown || number == 2 * WHOLE_CODE)
			continue;
		f->shown[i] = ++number;
		c->bytes += strnlen(a->code.instructions[i].text, TEXT_MAX);
	}
	for (size_t i = 0; i < count && a->code_places; i++) {
		struct source_line line = source_line_of(a->code_places, i);

		if (!line.number || strcmp(line.file, own) != 0)
			continue;
		if (!first || line.number < first)
			first = line.number;
		last = MAX(last, line.number);
	}
	if (first && last - first <= WHOLE_SOURCE)
		err = show_lines(c, a, own, first > 2 ? first - 2 : 1, last + 1);
	for (size_t i = 0; i < a->lines.count && !err; i++) {
		const struct source_line *line = &a->lines.lines[i];

		err = show_near(c, a, line->file, line->number);
		if (!err && line->inlined)
			err = show_near(c, a, line->inlined_file, line->inlined_number);
	}
	return err;
}

/* Finds the code of a function. Returns 0, also if there is none, or -ENOMEM. */
static int make_function(struct web_code *c, struct profile *p, const struct web_options *o,
			 const struct callgraph_key *key, const struct candidate *chosen)
{
	struct web_function *f = &c->functions[c->count++];
	const struct profile_location *l = &p->locations[chosen->location];
	const char *path = row_image_path(p, chosen->location);
	struct annotation_options options = {
		.function = key->function,
		.image = *path ? path : NULL,
		.value = o->value,
		.source_path = o->source_path,
		.no_sources = o->no_sources,
		.debuginfod = o->debuginfod,
	};
	char address[32];
	int err;

	f->location = chosen->location;
	err = annotation_make(&f->a, p, &options, &f->why);
	/* Several functions of a file can have one name: the busiest address is of the one that is
	 * meant. */
	if (err && err != -ENOMEM && l->image_address) {
		struct error other;

		annotation_free(&f->a);
		snprintf(address, sizeof(address), "0x%" PRIx64, l->image_address);
		options.function = address;
		err = annotation_make(&f->a, p, &options, &other);
	}
	if (err) {
		annotation_free(&f->a);
		return err == -ENOMEM ? err : 0;
	}
	f->has_code = true;
	return show_function(c, f);
}

int web_code_make(struct web_code *c, struct profile *p, const struct web_options *options,
		  struct error *e)
{
	const struct callgraph_options fields = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE | CALLGRAPH_NO_ADDRESS,
		.unknown = row_unknown,
	};
	uint64_t until = now_ns() + WEB_CODE_NS;
	struct candidate *candidates = NULL;
	struct callgraph_places places = { 0 };
	struct callgraph g;
	size_t count = 0;
	int err = callgraph_init(&g, &fields) ?: callgraph_place(&g, p, &places);

	*c = (struct web_code){ .functions = calloc(WEB_CODE_FUNCTIONS, sizeof(*c->functions)) };
	candidates = calloc(g.node_count + 1, sizeof(*candidates));
	if (!candidates || !c->functions)
		err = -ENOMEM;
	err = err ?: weigh_functions(&g, &places, options, candidates, &count);
	for (size_t i = 0; i < count && !err; i++) {
		if (c->count == WEB_CODE_FUNCTIONS)
			c->left_by_number++;
		else if (c->bytes >= WEB_CODE_BYTES)
			c->left_by_bytes++;
		else if (now_ns() > until)
			c->left_by_time++;
		else
			err = make_function(c, p, options, &g.nodes[candidates[i].node].key,
					    &candidates[i]);
	}
	free(candidates);
	callgraph_places_free(&places);
	callgraph_free(&g);
	return err ? error_no_memory(e) : 0;
}

void web_code_free(struct web_code *c)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->functions[i].has_code)
			annotation_free(&c->functions[i].a);
		free(c->functions[i].shown);
	}
	for (size_t i = 0; i < c->source_count; i++)
		free(c->sources[i].shown);
	free(c->functions);
	free(c->sources);
	*c = (struct web_code){ 0 };
}

/* --- Printing --- */

/* A line of text as it is shown: cut, without tabs. */
static void print_line(struct web_writer *w, const char *text)
{
	char *expanded = text_expand_tabs(text);
	size_t size = expanded ? strlen(expanded) : 0;

	if (!expanded) {
		w->err = -ENOMEM;
		return;
	}
	if (size > TEXT_MAX) {
		size = TEXT_MAX;
		/* Not in a character. */
		while (size && ((unsigned char)expanded[size] & 0xc0) == 0x80)
			size--;
		strcpy(expanded + size, "...");
	}
	web_text(w, expanded);
	free(expanded);
}

static int print_notes(const struct web_function *f, struct web_writer *w)
{
	char *text = NULL, *next, *line;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	if (f->has_code)
		annotation_notes(&f->a, "", out);
	else
		fprintf(out, "%s\n%s", f->why.what, f->why.hint);
	err = fclose(out) ? -ENOMEM : 0;
	next = text;
	web_begin_list(w, "notes");
	while (!err && (line = strsep(&next, "\n")))
		if (*line)
			web_text(w, line);
	web_end_list(w);
	free(text);
	return err;
}

static bool line_equal(const struct source_line *a, const struct source_line *b)
{
	return a->number == b->number && strcmp(a->file, b->file) == 0 &&
	       !a->inlined == !b->inlined && a->inlined_number == b->inlined_number &&
	       (!a->inlined || (strcmp(a->inlined, b->inlined) == 0 &&
				strcmp(a->inlined_file, b->inlined_file) == 0));
}

/* Where in the page's code a location is. */
struct place {
	uint32_t function;    /* number + 1; 0: its code is not in the page */
	uint32_t instruction; /* number + 1; 0: not in the page */
	uint32_t line;	      /* the same */
};

struct printer {
	const struct web_code *c;
	const struct profile *p;
	const struct callgraph_places *places;
	const uint32_t *order;
	struct web_writer *w;
	struct place *of; /* of each location */
};

/*
 * Finds the line of instruction or location `number` among those before it, or adds it. Returns its
 * number + 1; 0: it has none.
 */
static uint32_t find_line(const struct annotation *a, uint32_t *numbers, size_t *count,
			  uint32_t before, uint32_t number)
{
	const struct source_line line = line_at(a, number);
	struct source_line other;

	if (!line.number)
		return 0;
	/* The lines of neighbours are often the same. */
	if (before) {
		other = line_at(a, numbers[before - 1]);
		if (line_equal(&line, &other))
			return before;
	}
	for (size_t i = 0; i < *count; i++) {
		other = line_at(a, numbers[i]);
		if (line_equal(&line, &other))
			return i + 1;
	}
	numbers[(*count)++] = number;
	return *count;
}

static void print_instructions(const struct web_function *f, struct web_writer *w)
{
	const struct disassembly *code = &f->a.code;
	uint64_t address = f->a.extent.start;
	size_t omitted = 0;

	web_begin_list(w, "steps"); /* from address to address */
	for (size_t i = 0; i < code->count; i++)
		if (f->shown[i]) {
			web_number(w, code->instructions[i].address - address);
			address = code->instructions[i].address;
		}
	web_end_list(w);
	/* The number + 1 of the instruction that it jumps to. */
	WEB_LIST_IF(w, "targets", web_number, i, code->count, f->shown[i],
		    disassembly_target(code, i) == SIZE_MAX
			    ? 0
			    : f->shown[disassembly_target(code, i)]);
	web_begin_list(w, "omitted"); /* instructions before this one, and at the end */
	for (size_t i = 0; i < code->count; i++, omitted++)
		if (f->shown[i]) {
			web_number(w, omitted);
			omitted = -1;
		}
	web_number(w, omitted);
	web_end_list(w);
}

/* Prints a function, and notes where its locations are. Returns 0 or -ENOMEM. */
static int print_function(struct printer *r, uint32_t number)
{
	const struct web_function *f = &r->c->functions[number];
	const struct annotation *a = &f->a;
	struct web_writer *w = r->w;
	size_t count = f->has_code ? a->code.count : 0, line_count = 0;
	size_t room = MAX(count, r->p->location_count) + 1;
	uint32_t *lines = calloc(room, sizeof(*lines)), *line_of = calloc(room, sizeof(*line_of));
	uint32_t before = 0;
	int err = lines && line_of ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && a->line_places != r->p && !err; i++)
		if (f->shown[i])
			line_of[i] = before = find_line(a, lines, &line_count, before, i);
	for (uint32_t i = 0; i < r->p->location_count && !err; i++) {
		uint64_t address = r->p->locations[i].image_address;
		struct place *place = &r->of[i];
		size_t at = SIZE_MAX;

		if (!f->has_code ||
		    function_at(r->places, i) != function_at(r->places, f->location) ||
		    (a->extent.limit && (address < a->extent.start || address >= a->extent.limit)))
			continue;
		if (count)
			at = disassembly_find(&a->code, address);
		*place = (struct place){ .function = number + 1 };
		if (at != SIZE_MAX) {
			place->instruction = f->shown[at];
			place->line = line_of[at];
		}
		if (a->line_places == r->p)
			place->line = find_line(a, lines, &line_count, 0, i);
	}
	if (err)
		goto out;

	fprintf(w->out, "%s{\"frame\":%" PRIu32 ",\"start\":\"0x%" PRIx64 "\"", number ? ",\n" : "",
		function_at(r->places, f->location), a->extent.start);
	err = print_notes(f, w);
	web_begin_list(w, "inlined_frames");
	for (uint32_t i = 0; i < r->p->location_count; i++)
		for (uint32_t place = r->places->first[i];
		     f->has_code && r->of[i].function == number + 1 &&
		     place + 1 < r->places->first[i + 1];
		     place++)
			web_number(w, r->places->nodes[place]);
	web_end_list(w);
	print_instructions(f, w);
	WEB_LIST_IF(w, "instructions", print_line, i, count, f->shown[i],
		    a->code.instructions[i].text);
	/* Of each instruction the number + 1 of its line; 0: none. */
	WEB_LIST_IF(w, "line_of", web_number, i, count, f->shown[i], line_of[i]);
	/* Of each line in which samples of the function can be. */
	WEB_LIST(w, "line_files", web_text, i, line_count, line_at(a, lines[i]).file);
	WEB_LIST(w, "lines", web_number, i, line_count, line_at(a, lines[i]).number);
	WEB_LIST(w, "inlined", web_text, i, line_count, line_at(a, lines[i]).inlined ?: "");
	WEB_LIST(w, "inlined_files", web_text, i, line_count,
		 line_at(a, lines[i]).inlined_file ?: "");
	WEB_LIST(w, "inlined_lines", web_number, i, line_count,
		 line_at(a, lines[i]).inlined_number);
	putc('}', w->out);
out:
	free(lines);
	free(line_of);
	return err;
}

/* A path of places of the page's code, as the stacks go through it. The first one is empty. */
struct step {
	uint32_t parent, place; /* place: a location + 1; 0: the sample is elsewhere */
};

/* Prints where in the code each sample's stack is. Returns 0 or -ENOMEM. */
static int print_steps(struct printer *r)
{
	const struct profile *p = r->p;
	struct web_writer *w = r->w;
	TABLE(struct step) s = { 0 };
	uint32_t before = 0, *ids = calloc(p->location_count + 1, sizeof(*ids)), count = 0,
		 first = 0;
	int err = ids ? table_add(&s, &(struct step){ 0 }, sizeof(struct step), &first)
		      : -ENOMEM; /* the empty one */

	web_begin_list(w, "sample_steps");
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *sample = &p->samples[r->order[i]];
		const uint32_t *frames = p->frames + sample->first_frame;
		bool full = s.count > WEB_CODE_STEPS;
		uint32_t at = 0;

		for (uint32_t j = sample->depth; j-- && !err;)
			if (r->of[frames[j]].function && (!full || !j))
				err = table_add(&s, &((struct step){ at, frames[j] + 1 }),
						sizeof(struct step), &at);
		if (at && !r->of[*frames].function)
			err = table_add(&s, &((struct step){ at, 0 }), sizeof(struct step), &at);
		web_number(w, (int64_t)at - before);
		before = at;
	}
	web_end_list(w);
	fprintf(w->out, ",\n\"steps_left\":%s", s.count > WEB_CODE_STEPS ? "true" : "false");
	WEB_LIST_IF(w, "step_parents", web_number, i, s.count, i, i - s.all[i].parent);
	for (uint32_t i = 0; i < p->location_count && !err; i++)
		if (r->of[i].function)
			ids[i] = ++count;
	/* The number + 1; 0: elsewhere. */
	WEB_LIST_IF(w, "step_places", web_number, i, s.count, i && !err,
		    s.all[i].place ? ids[s.all[i].place - 1] : 0);
	table_free(&s);
	free(ids);
	return err;
}

int web_code_print(const struct web_code *c, const struct profile *p,
		   const struct callgraph_places *places, const uint32_t *order,
		   struct web_writer *w)
{
	struct printer r = { c, p, places, order, w, calloc(p->location_count + 1, sizeof(*r.of)) };
	int err = 0;

	if (!r.of)
		return -ENOMEM;
	fputs(",\n\"functions\":[", w->out);
	for (uint32_t i = 0; i < c->count && !err; i++)
		err = print_function(&r, i);
	fputs("],\n\"sources\":[", w->out);
	for (size_t i = 0; i < c->source_count && !err; i++) {
		const struct web_source *source = &c->sources[i];
		size_t last = 0;

		fputs(i ? ",\n{\"file\":" : "{\"file\":", w->out);
		w->in_list = false;
		web_text(w, source->file->name);
		web_begin_list(w, "steps"); /* from line number to line number */
		for (size_t j = 0; j < source->file->line_count; j++)
			if (source->shown[j]) {
				web_number(w, j + 1 - last);
				last = j + 1;
			}
		web_end_list(w);
		WEB_LIST_IF(w, "lines", print_line, j, source->file->line_count, source->shown[j],
			    source->file->lines[j]);
		putc('}', w->out);
	}
	putc(']', w->out);
	web_begin_list(w, "functions_left");
	web_number(w, c->left_by_number);
	web_number(w, c->left_by_bytes);
	web_number(w, c->left_by_time);
	web_end_list(w);
	WEB_LIST_IF(w, "place_functions", web_number, i, p->location_count, r.of[i].function,
		    r.of[i].function - 1);
	WEB_LIST_IF(w, "place_instructions", web_number, i, p->location_count, r.of[i].function,
		    r.of[i].instruction);
	WEB_LIST_IF(w, "place_lines", web_number, i, p->location_count, r.of[i].function,
		    r.of[i].line);
	err = err ?: print_steps(&r);
	free(r.of);
	return err ?: w->err;
}
