// SPDX-License-Identifier: GPL-2.0-only
/*
 * JSON of www.speedscope.app (file-format-schema.json of its sources), only written: a profile of
 * the kind "sampled" for each thread, its stacks in the order of time where that is known.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "format/pieces.h"
#include "profile/pc_name.h"
#include "util/array.h"
#include "util/index.h"
#include "util/sum.h"

/* What is shown as one name: a function in a file, or an address without a name. */
struct frame {
	const char *name, *file;
	uint32_t line; /* where the function begins; 0: unknown */
};

struct writer {
	const struct profile *p;
	FILE *out;
	size_t value;
	char **unnamed; /* profile_pc_names() */
	struct frame *frames;
	size_t frame_count, frame_room;
	struct index index;
	uint32_t *first; /* of each location: its frames are numbers[first[i] .. first[i + 1]) */
	uint32_t *numbers;
	struct pieces pieces;
};

EQUAL(is_frame, struct frame, struct frame,
      strcmp(a->name, b->name) == 0 && strcmp(a->file, b->file) == 0)

static int add_frame(struct writer *w, const struct frame *frame, uint32_t *id)
{
	uint64_t hash = hash_bytes(frame->file, strlen(frame->file),
				   hash_bytes(frame->name, strlen(frame->name), 0));

	*id = index_find(&w->index, hash, is_frame, w->frames, frame);
	if (*id != INDEX_NONE)
		return 0;
	*id = w->frame_count;
	return array_add_indexed(w->frames, w->frame_count, w->frame_room, &w->index, hash, *frame);
}

/* Finds the frames of all locations, the outermost of inlined functions first. */
static int find_frames(struct writer *w)
{
	const struct profile *p = w->p;
	size_t count = 0, at = 0;

	for (size_t i = 0; i < p->location_count; i++)
		count += p->locations[i].line_count ?: 1;
	w->unnamed = profile_pc_names(p);
	w->first = calloc(p->location_count + 1, sizeof(*w->first));
	w->numbers = calloc(count + 1, sizeof(*w->numbers));
	if (!w->unnamed || !w->first || !w->numbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct profile_image *image = profile_location_image(p, i);
		struct frame frame = { .file = image ? image->path : "" };

		w->first[i] = at;
		if (!l->line_count) {
			frame.name = w->unnamed[i];
			if (add_frame(w, &frame, &w->numbers[at++]))
				return -ENOMEM;
		}
		for (uint32_t j = l->line_count; j-- > 0;) {
			const struct profile_function *f =
				&p->functions[p->lines[l->first_line + j].function];

			frame.name = f->name;
			if (*f->file) {
				frame.file = f->file;
				frame.line = f->start_line;
			}
			if (add_frame(w, &frame, &w->numbers[at++]))
				return -ENOMEM;
		}
	}
	w->first[p->location_count] = at;
	return 0;
}

/* Whether two samples have the same stack. */
static bool same_stack(const struct profile *p, uint32_t one, uint32_t other)
{
	const struct profile_sample *a = &p->samples[one], *b = &p->samples[other];

	return a->depth == b->depth &&
	       memcmp(p->frames + a->first_frame, p->frames + b->first_frame,
		      a->depth * sizeof(*p->frames)) == 0;
}

static void print_stack(struct writer *w, uint32_t sample)
{
	const struct profile_sample *s = &w->p->samples[sample];
	bool any = false;

	putc('[', w->out);
	for (uint32_t i = s->depth; i-- > 0;) {
		uint32_t location = w->p->frames[s->first_frame + i];

		for (uint32_t at = w->first[location]; at < w->first[location + 1]; at++) {
			fprintf(w->out, any ? ",%" PRIu32 : "%" PRIu32, w->numbers[at]);
			any = true;
		}
	}
	putc(']', w->out);
}

/* speedscope knows these units; of others it shows numbers alone. */
static const char *unit_of(const struct profile_value_type *type)
{
	static const char *const units[] = { "nanoseconds", "microseconds", "milliseconds",
					     "seconds", "bytes" };

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(type->unit, units[i]) == 0)
			return units[i];
	return "none";
}

/* Prints the profile of a thread: pieces from `first` on, before `end`. */
static void print_thread(struct writer *w, size_t first, size_t end)
{
	const struct profile *p = w->p;
	const struct profile_labels *l =
		&p->labels[p->samples[w->pieces.list[first].sample].labels];
	char name[128];
	int64_t all = 0;

	for (size_t i = first; i < end; i++)
		add_i64(&all, w->pieces.list[i].value);
	if (l->tid || l->pid)
		snprintf(name, sizeof(name), "%.96s %" PRIu32, l->comm, l->tid ?: l->pid);
	else
		snprintf(name, sizeof(name), "%.96s",
			 *l->comm ? l->comm : p->value_types[w->value].type);
	fputs("{\"type\":\"sampled\",\"name\":", w->out);
	json_text_put(name, w->out);
	fprintf(w->out,
		",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64 ",\n\"samples\":[",
		unit_of(&p->value_types[w->value]), all);
	for (size_t i = first; i < end; i++) {
		if (i > first &&
		    same_stack(p, w->pieces.list[i - 1].sample, w->pieces.list[i].sample))
			continue;
		if (i > first)
			fputs(",\n", w->out);
		print_stack(w, w->pieces.list[i].sample);
	}
	fputs("],\n\"weights\":[", w->out);
	for (size_t i = first; i < end;) {
		int64_t sum = 0;
		size_t at = i;

		for (;
		     at < end && same_stack(p, w->pieces.list[i].sample, w->pieces.list[at].sample);
		     at++)
			add_i64(&sum, w->pieces.list[at].value);
		fprintf(w->out, i > first ? ",%" PRId64 : "%" PRId64, sum);
		i = at;
	}
	fputs("]}", w->out);
}

static int print_file(struct writer *w)
{
	const struct profile *p = w->p;
	int err = find_frames(w) ?: pieces_find(p, w->value, &w->pieces);

	if (err)
		return err;
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"profil " PROFIL_VERSION "\",\n\"name\":",
	      w->out);
	json_text_put(*p->command ? p->command : "profile", w->out);
	fputs(",\n\"shared\":{\"frames\":[", w->out);
	for (size_t i = 0; i < w->frame_count; i++) {
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", w->out);
		json_text_put(w->frames[i].name, w->out);
		if (*w->frames[i].file) {
			fputs(",\"file\":", w->out);
			json_text_put(w->frames[i].file, w->out);
		}
		if (w->frames[i].line)
			fprintf(w->out, ",\"line\":%" PRIu32, w->frames[i].line);
		putc('}', w->out);
	}
	fputs("]},\n\"profiles\":[", w->out);
	for (size_t i = 0, end; i < w->pieces.count; i = end) {
		for (end = i; end < w->pieces.count &&
			      w->pieces.list[end].thread == w->pieces.list[i].thread;)
			end++;
		fputs(i ? ",\n" : "\n", w->out);
		print_thread(w, i, end);
	}
	fputs("]}\n", w->out);
	return 0;
}

static int speedscope_write(const struct profile *p, const struct format_options *options,
			    FILE *out, struct error *e)
{
	struct writer w = { .p = p, .out = out, .value = profile_value(p, options->value) };
	int err = print_file(&w);

	array_free_texts(w.unnamed, p->location_count);
	free(w.frames);
	free(w.first);
	free(w.numbers);
	pieces_free(&w.pieces);
	index_free(&w.index);
	return err ? error_no_memory(e) : 0;
}

const struct format format_speedscope = {
	.name = "speedscope",
	.extensions = (const char *const[]){ ".speedscope.json", ".speedscope", NULL },
	.keeps = KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(INLINED) | KEEPS(THREADS) | KEEPS(COMMAND),
	.is_text = true,
	.write = speedscope_write,
};
