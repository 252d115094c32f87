// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "profile/build_id.h"
#include "report/json_writer.h"
#include "report/dump/dump.h"
#include "report/totals.h"
#include "util/array.h"

/* There can be millions of stacks, so names and labels become JSON text once. */
struct json_dump {
	struct json_writer w;
	const struct profile *p;
	char **names;  /* of each function */
	char **labels; /* of each labels, an object; NULL: they are empty */
};

/* Writes a list for each pc: the functions inlined there, then the one that contains it. */
static void write_functions(struct json_dump *d, const uint32_t *frames, uint32_t depth)
{
	const struct profile *p = d->p;
	bool any = false;

	for (uint32_t i = 0; i < depth && !any; i++)
		any = p->locations[frames[i]].line_count;
	if (!any)
		return;
	fputs(", \"functions\": [", d->w.out);
	for (uint32_t i = 0; i < depth; i++) {
		const struct profile_location *l = &p->locations[frames[i]];

		fputs(i ? ", [" : " [", d->w.out);
		for (uint32_t j = 0; j < l->line_count; j++)
			fprintf(d->w.out, "%s%s", j ? ", " : "",
				d->names[p->lines[l->first_line + j].function]);
		fputs("]", d->w.out);
	}
	fputs(" ]", d->w.out);
}

static void write_values(struct json_dump *d, const int64_t *row)
{
	if (d->p->value_type_count < 2)
		return;
	fputs(", \"values\": [", d->w.out);
	for (size_t i = 0; i < d->p->value_type_count; i++)
		fprintf(d->w.out, "%s%" PRId64, i ? ", " : " ", row[i]);
	fputs(" ]", d->w.out);
}

static struct json_object *labels_object(const struct profile_labels *l)
{
	struct json_object *object = json_object_new_object(), *tags;

	if (l->pid || l->tid) {
		json_add(&object, "pid", json_object_new_uint64(l->pid));
		json_add(&object, "tid", json_object_new_uint64(l->tid));
	}
	json_add_number(&object, "generation", l->generation);
	json_add_text(&object, "comm", l->comm);
	if (l->kernel)
		json_add(&object, "kernel", json_object_new_boolean(true));
	if (!l->tag_count)
		return object;
	tags = json_object_new_object();
	for (uint32_t i = 0; i < l->tag_count; i++) {
		const struct profile_tag *tag = &l->tags[i];

		json_add_named(&tags, tag->key,
			       tag->text ? json_text(tag->text)
					 : json_object_new_int64(tag->number));
	}
	json_add(&object, "tags", tags);
	return object;
}

/* Returns 0 or -ENOMEM. */
static int make_texts(struct json_dump *d)
{
	const struct profile *p = d->p;

	d->names = calloc(p->function_count + 1, sizeof(*d->names));
	d->labels = calloc(p->label_count + 1, sizeof(*d->labels));
	if (!d->names || !d->labels)
		return -ENOMEM;
	for (size_t i = 0; i < p->function_count; i++) {
		d->names[i] = json_string(json_text(p->functions[i].name));
		if (!d->names[i])
			return -ENOMEM;
	}
	for (size_t i = 0; i < p->label_count; i++) {
		const struct profile_labels *l = &p->labels[i];

		if (!l->pid && !l->tid && !*l->comm && !l->kernel && !l->tag_count)
			continue;
		d->labels[i] = json_string(labels_object(l));
		if (!d->labels[i])
			return -ENOMEM;
	}
	return 0;
}

static void write_labels(struct json_dump *d, uint32_t labels)
{
	if (labels < d->p->label_count && d->labels[labels])
		fprintf(d->w.out, ", \"labels\": %s", d->labels[labels]);
}

static void write_arcs(struct json_dump *d, const char *key, bool calls)
{
	const struct profile *p = d->p;

	json_begin_list(&d->w, key);
	for (size_t i = 0; i < p->arc_count; i++) {
		const struct profile_arc *a = &p->arcs[i];
		const int64_t *row = p->arc_values + i * p->value_type_count;
		const uint32_t ends[] = { a->from, a->to };

		if ((a->kind == PROFILE_CALL) != calls)
			continue;
		json_next_element(&d->w);
		fprintf(d->w.out, "{ \"count\": %" PRIu64, a->count);
		if (a->kind == PROFILE_CONDITIONAL_JUMP)
			fprintf(d->w.out, ", \"executed\": %" PRIu64, a->executed);
		fprintf(d->w.out, ", \"from\": \"0x%" PRIx64 "\", \"to\": \"0x%" PRIx64 "\"",
			p->locations[a->from].address, p->locations[a->to].address);
		write_functions(d, ends, 2);
		if (calls) {
			fprintf(d->w.out, ", \"cost\": %" PRId64, row[profile_value(p, NULL)]);
			write_values(d, row);
		}
		write_labels(d, a->labels);
		fputs(" }", d->w.out);
	}
	json_end_list(&d->w);
}

static struct json_object *mapping_object(const struct profile *p, const struct profile_mapping *m)
{
	const struct profile_image *image = &p->images[m->image];
	struct json_object *object = json_object_new_object();
	char build_id[BUILD_ID_TEXT_SIZE];

	json_add(&object, "start", json_hex(m->start));
	json_add(&object, "limit", json_hex(m->limit));
	json_add(&object, "offset", json_hex(m->offset));
	json_add(&object, "path", json_text(image->path));
	build_id_format(image->build_id, image->build_id_size, build_id);
	json_add_text(&object, "build_id", build_id);
	if (image->text_size) {
		json_add(&object, "text_start", json_hex(image->text_start));
		json_add(&object, "text_size", json_hex(image->text_size));
	}
	json_add_number(&object, "provider", image->provider);
	if (image->file_id && !image->build_id_size)
		json_add(&object, "file", json_hex(image->file_id));
	if (m->linked)
		json_add(&object, "linked", json_object_new_boolean(true));
	return object;
}

/* Of a sample: in ns since time_ns. */
static void write_times(struct json_dump *d, const struct tick_groups *groups, size_t sample)
{
	const char *gap = ", \"times_ns\": [ ";

	if (!groups->first || groups->first[sample] == groups->first[sample + 1])
		return;
	for (size_t k = groups->first[sample]; k < groups->first[sample + 1]; k++) {
		fprintf(d->w.out, "%s%" PRIu64, gap, groups->times[k] - d->p->time_ns);
		gap = ", ";
	}
	fputs(" ]", d->w.out);
}

/* Of a sample: when its waits began, in ns since time_ns, and for how long they were. */
static void write_waits(struct json_dump *d, const struct wait_groups *groups, size_t sample)
{
	const char *gap = ", \"waits_ns\": [ ";

	if (!groups->first || groups->first[sample] == groups->first[sample + 1])
		return;
	for (size_t k = groups->first[sample]; k < groups->first[sample + 1]; k++) {
		fprintf(d->w.out, "%s[%" PRIu64 ", %" PRIu64 "]", gap,
			groups->waits[k].since_ns - d->p->time_ns, groups->waits[k].length_ns);
		gap = ", ";
	}
	fputs(" ]", d->w.out);
}

static void write_profile(struct json_dump *d)
{
	const struct profile *p = d->p;
	struct json_writer *w = &d->w;
	struct json_object *object;
	struct tick_groups groups = { 0 };
	struct wait_groups waits = { 0 };

	if ((p->ticks.count && tick_list_group(&p->ticks, p->sample_count, &groups)) ||
	    (p->waits.count && wait_list_group(&p->waits, p->sample_count, &waits)))
		w->err = -ENOMEM;
	json_member_text(w, "format", p->format);
	if (p->bits) {
		json_member_number(w, "bits", p->bits);
		json_member_text(w, "endian", p->big_endian ? "big" : "little");
	}
	json_member_text(w, "host", p->host);
	json_member_text(w, "command", p->command);
	json_member_text(w, "event", p->event);
	json_member_number(w, "period_ns", profile_tick_ns(p));
	json_member_number(w, "bucket", p->bucket > 1 ? p->bucket : 0);
	json_member_number(w, "time_ns", p->time_ns);
	json_member_number(w, "duration_ns", p->duration_ns);
	totals_json(w, p, "stack_account"); /* "stacks" are the stacks */
	json_member(w, "samples", json_object_new_int64(profile_total(p, NULL)));

	json_begin_list(w, "values");
	for (size_t i = 0; i < p->value_type_count && !w->err; i++) {
		const struct profile_value_type *t = &p->value_types[i];

		object = json_object_new_object();
		json_add(&object, "type", json_text(t->type));
		json_add(&object, "unit", json_text(t->unit));
		json_add_number(&object, "period", t->period);
		json_add_text(&object, "title", t->title);
		json_add_text(&object, "formula", t->formula);
		json_element(w, object);
	}
	json_end_list(w);
	json_begin_list(w, "stacks");
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		const int64_t *row = p->values + i * p->value_type_count;
		const uint32_t *frames = p->frames + s->first_frame;

		json_next_element(w);
		fprintf(w->out, "{ \"count\": %" PRId64 ", \"pcs\": [",
			row[profile_value(p, NULL)]);
		for (uint32_t j = 0; j < s->depth; j++)
			fprintf(w->out, "%s\"0x%" PRIx64 "\"", j ? ", " : " ",
				profile_file_pc(p, frames[j], j));
		fputs(" ]", w->out);
		write_functions(d, frames, s->depth);
		write_values(d, row);
		write_labels(d, s->labels);
		write_times(d, &groups, i);
		write_waits(d, &waits, i);
		fputs(" }", w->out);
	}
	tick_groups_free(&groups);
	wait_groups_free(&waits);
	json_end_list(w);
	json_begin_list(w, "mappings");
	for (size_t i = 0; i < p->mapping_count && !w->err; i++)
		json_element(w, mapping_object(p, &p->mappings[i]));
	json_end_list(w);
	if (p->wall_count) {
		json_begin_list(w, "walls");
		for (size_t i = 0; i < p->wall_count; i++) {
			const struct profile_wall *wall = &p->walls[i];

			json_next_element(w);
			fprintf(w->out,
				"{ \"threads\": %" PRIu64 ", \"wall_ns\": %" PRIu64
				", \"on_cpu_ns\": %" PRIu64 ", \"runnable_ns\": %" PRIu64
				", \"blocked_ns\": %" PRIu64 ", \"idle_ns\": %" PRIu64
				", \"unknown_ns\": %" PRIu64,
				wall->threads, wall->wall_ns, wall->on_cpu_ns, wall->runnable_ns,
				wall->blocked_ns, wall->idle_ns, wall->unknown_ns);
			write_labels(d, wall->labels);
			fputs(" }", w->out);
		}
		json_end_list(w);
	}
	if (p->arc_count) {
		write_arcs(d, "calls", true);
		write_arcs(d, "jumps", false);
	}
	if (p->comment_count) {
		json_begin_list(w, "comments");
		for (size_t i = 0; i < p->comment_count && !w->err; i++)
			json_element(w, json_text(p->comments[i]));
		json_end_list(w);
	}
	if (!p->extra_count)
		return;
	json_begin_list(w, "extras");
	for (size_t i = 0; i < p->extra_count && !w->err; i++) {
		const struct profile_extra *x = &p->extras[i];

		object = json_object_new_object();
		json_add(&object, "format", json_text(x->format));
		if (x->image != PROFILE_NONE)
			json_add(&object, "path", json_text(p->images[x->image].path));
		json_add(&object, "text", json_text(x->bytes));
		json_element(w, object);
	}
	json_end_list(w);
}

int report_dump_json(const struct profile *p, FILE *out)
{
	struct json_dump d = { .p = p };
	int err = make_texts(&d);

	if (!err) {
		json_begin(&d.w, out);
		write_profile(&d);
		err = json_end(&d.w);
	}
	array_free_texts(d.names, p->function_count);
	array_free_texts(d.labels, p->label_count);
	return err;
}
