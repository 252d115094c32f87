// SPDX-License-Identifier: GPL-2.0-only
#include "format/speedscope/speedscope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "util/array.h"
#include "util/index.h"
#include "util/sum.h"
#include "util/utf8.h"

/* What is shown as one name: a function in a file, or an address without a name. */
struct frame {
	const char *name, *file;
	uint32_t line; /* where the function begins; 0: unknown */
};

/* A part of a thread's time: ticks of a sample that follow each other, or all of it. */
struct piece {
	uint64_t thread; /* tid and generation, by which the pieces of a thread are together */
	uint64_t time_ns;
	int64_t value;
	uint32_t sample;
};

struct writer {
	const struct profile *p;
	FILE *out;
	size_t value;
	char **unnamed; /* text for each location without a name; NULL: it has one */
	struct frame *frames;
	size_t frame_count, frame_room;
	struct index index;
	uint32_t *first; /* of each location: its frames are numbers[first[i] .. first[i + 1]) */
	uint32_t *numbers;
	struct piece *pieces;
	size_t piece_count, piece_room;
};

/* A JSON string. What is not UTF-8 becomes U+FFFD. */
static void print_text(const char *text, FILE *out)
{
	putc('"', out);
	for (size_t size; *text; text += size) {
		uint32_t code;

		size = utf8_decode(text, &code);
		if (!size) {
			fputs("\\ufffd", out);
			size = 1;
		} else if (code < 0x20 || code == '"' || code == '\\' || code == 0x7f) {
			fprintf(out, "\\u%04" PRIx32, code);
		} else {
			fwrite(text, 1, size, out);
		}
	}
	putc('"', out);
}

static bool is_frame(const void *frames, uint32_t id, const void *key)
{
	const struct frame *frame = (const struct frame *)frames + id, *wanted = key;

	return strcmp(frame->name, wanted->name) == 0 && strcmp(frame->file, wanted->file) == 0;
}

static int add_frame(struct writer *w, const struct frame *frame, uint32_t *id)
{
	uint64_t hash = hash_bytes(frame->file, strlen(frame->file),
				   hash_bytes(frame->name, strlen(frame->name), 0));

	*id = index_find(&w->index, hash, is_frame, w->frames, frame);
	if (*id != INDEX_NONE)
		return 0;
	if (array_reserve(&w->frames, &w->frame_room, w->frame_count + 1, sizeof(*w->frames)) ||
	    index_add(&w->index, hash, w->frame_count))
		return -ENOMEM;
	*id = w->frame_count;
	w->frames[w->frame_count++] = *frame;
	return 0;
}

/* Finds the frames of all locations, the outermost of inlined functions first. */
static int find_frames(struct writer *w)
{
	const struct profile *p = w->p;
	size_t count = 0, at = 0;

	for (size_t i = 0; i < p->location_count; i++)
		count += p->locations[i].line_count ?: 1;
	w->unnamed = calloc(p->location_count + 1, sizeof(*w->unnamed));
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
			w->unnamed[i] = profile_pc_name(frame.file, l->image_address);
			frame.name = w->unnamed[i];
			if (!frame.name || add_frame(w, &frame, &w->numbers[at++]))
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

static int add_piece(struct writer *w, uint32_t sample, uint64_t time_ns, int64_t value)
{
	const struct profile_labels *l = &w->p->labels[w->p->samples[sample].labels];

	if (array_reserve(&w->pieces, &w->piece_room, w->piece_count + 1, sizeof(*w->pieces)))
		return -ENOMEM;
	w->pieces[w->piece_count++] = (struct piece){
		.thread = (uint64_t)l->generation << 32 | (l->tid ?: l->pid),
		.time_ns = time_ns,
		.value = value,
		.sample = sample,
	};
	return 0;
}

/*
 * Each tick is a part of its sample's value, waits are by their lengths; what has no time comes
 * last. Returns 0 or -ENOMEM.
 */
static int find_pieces(struct writer *w)
{
	const struct profile *p = w->p;
	struct tick_groups ticks;
	struct wait_groups waits;
	int err = tick_list_group(&p->ticks, p->sample_count, &ticks);

	if (err)
		return err;
	err = wait_list_group(&p->waits, p->sample_count, &waits);
	if (err) {
		tick_groups_free(&ticks);
		return err;
	}
	for (uint32_t i = 0; i < p->sample_count && !err; i++) {
		const int64_t *values = &p->values[i * p->value_type_count];
		int64_t left = values[w->value];
		uint64_t count = magnitude(values[0]);

		if (left <= 0)
			continue;
		for (size_t at = waits.first[i]; at < waits.first[i + 1] && left && !err; at++) {
			int64_t length = waits.waits[at].length_ns < (uint64_t)left
						 ? (int64_t)waits.waits[at].length_ns
						 : left;

			err = add_piece(w, i, waits.waits[at].since_ns, length);
			left -= length;
		}
		if (waits.first[i + 1] == waits.first[i])
			for (size_t at = ticks.first[i]; at < ticks.first[i + 1] && !err;
			     at++, count--) {
				int64_t part = left / (int64_t)(count ?: 1);

				err = part ? add_piece(w, i, ticks.times[at], part) : 0;
				left -= part;
			}
		if (left && !err)
			err = add_piece(w, i, UINT64_MAX, left);
	}
	tick_groups_free(&ticks);
	wait_groups_free(&waits);
	return err;
}

static int compare_pieces(const void *one, const void *other)
{
	const struct piece *a = one, *b = other;
	int order = compare_u64(a->thread, b->thread) ?: compare_u64(a->time_ns, b->time_ns);

	return order ?: compare_u64(a->sample, b->sample);
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
	const struct profile_labels *l = &p->labels[p->samples[w->pieces[first].sample].labels];
	char name[128];
	int64_t all = 0;

	for (size_t i = first; i < end; i++)
		add_i64(&all, w->pieces[i].value);
	if (l->tid || l->pid)
		snprintf(name, sizeof(name), "%.96s %" PRIu32, l->comm, l->tid ?: l->pid);
	else
		snprintf(name, sizeof(name), "%.96s",
			 *l->comm ? l->comm : p->value_types[w->value].type);
	fputs("{\"type\":\"sampled\",\"name\":", w->out);
	print_text(name, w->out);
	fprintf(w->out,
		",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64 ",\n\"samples\":[",
		unit_of(&p->value_types[w->value]), all);
	for (size_t i = first; i < end; i++) {
		if (i > first && same_stack(p, w->pieces[i - 1].sample, w->pieces[i].sample))
			continue;
		if (i > first)
			fputs(",\n", w->out);
		print_stack(w, w->pieces[i].sample);
	}
	fputs("],\n\"weights\":[", w->out);
	for (size_t i = first; i < end;) {
		int64_t sum = 0;
		size_t at = i;

		for (; at < end && same_stack(p, w->pieces[i].sample, w->pieces[at].sample); at++)
			add_i64(&sum, w->pieces[at].value);
		fprintf(w->out, i > first ? ",%" PRId64 : "%" PRId64, sum);
		i = at;
	}
	fputs("]}", w->out);
}

static int print_file(struct writer *w)
{
	const struct profile *p = w->p;
	int err = find_frames(w) ?: find_pieces(w);

	if (err)
		return err;
	if (w->piece_count)
		qsort(w->pieces, w->piece_count, sizeof(*w->pieces), compare_pieces);
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"profil " PROFIL_VERSION "\",\n\"name\":",
	      w->out);
	print_text(*p->command ? p->command : "profile", w->out);
	fputs(",\n\"shared\":{\"frames\":[", w->out);
	for (size_t i = 0; i < w->frame_count; i++) {
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", w->out);
		print_text(w->frames[i].name, w->out);
		if (*w->frames[i].file) {
			fputs(",\"file\":", w->out);
			print_text(w->frames[i].file, w->out);
		}
		if (w->frames[i].line)
			fprintf(w->out, ",\"line\":%" PRIu32, w->frames[i].line);
		putc('}', w->out);
	}
	fputs("]},\n\"profiles\":[", w->out);
	for (size_t i = 0, end; i < w->piece_count; i = end) {
		for (end = i; end < w->piece_count && w->pieces[end].thread == w->pieces[i].thread;)
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

	for (size_t i = 0; i < p->location_count && w.unnamed; i++)
		free(w.unnamed[i]);
	free(w.unnamed);
	free(w.frames);
	free(w.first);
	free(w.numbers);
	free(w.pieces);
	index_free(&w.index);
	return err ? error_no_memory(e) : 0;
}

static const char *const extensions[] = { ".speedscope.json", ".speedscope", NULL };

const struct format format_speedscope = {
	.name = "speedscope",
	.extensions = extensions,
	.keeps = KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(INLINED) | KEEPS(THREADS) | KEEPS(COMMAND),
	.is_text = true,
	.write = speedscope_write,
};
