// SPDX-License-Identifier: GPL-2.0-only
#include "report/report.h"

#include <inttypes.h>

#include "report/json_writer.h"
#include "report/text.h"

static int64_t sample_count(const struct profile *p, size_t sample)
{
	return p->values[sample * p->value_type_count + profile_count_value(p)];
}

static const char *endian(const struct profile *p)
{
	return p->big_endian ? "big" : "little";
}

static void dump_string(const char *key, const char *value, FILE *out)
{
	if (!value || !value[0])
		return;
	fprintf(out, "%s ", key);
	text_print(value, out);
	fputc('\n', out);
}

static void dump_number(const char *key, uint64_t value, FILE *out)
{
	fprintf(out, "%s %" PRIu64 "\n", key, value);
}

static void dump_totals(const struct profile *p, FILE *out)
{
	const struct profile_totals *t = &p->totals;

	if (!t->known)
		return;
	dump_number("ticks", t->ticks, out);
	dump_number("counted", t->counted, out);
	dump_number("out_of_range", t->out_of_range, out);
	dump_number("excluded", t->excluded, out);
	for (size_t i = 0; i < t->lost_count; i++) {
		fputs("lost ", out);
		text_print(t->lost[i].cause, out);
		fprintf(out, " %" PRIu64 "\n", t->lost[i].count);
	}
	dump_number("kernel", t->kernel, out);
	if (t->cpu_ns)
		dump_number("cpu_ns", t->cpu_ns, out);
	if (t->bpf_ns_per_tick)
		dump_number("bpf_ns_per_tick", t->bpf_ns_per_tick, out);
	if (t->interrupt_ns)
		dump_number("interrupt_ns", t->interrupt_ns, out);
}

static void dump_header(const struct profile *p, FILE *out)
{
	dump_string("format", p->format, out);
	if (p->bits) {
		dump_number("bits", p->bits, out);
		dump_string("endian", endian(p), out);
	}
	dump_string("event", p->event, out);
	if (p->period_ns)
		dump_number("period_ns", p->period_ns, out);
	if (p->duration_ns)
		fprintf(out, "duration_s %" PRIu64 ".%09u\n", p->duration_ns / 1000000000,
			(unsigned int)(p->duration_ns % 1000000000));
	dump_totals(p, out);
	dump_number("samples", profile_total(p), out);
	for (size_t i = 0; i < p->comment_count; i++)
		dump_string("comment", p->comments[i], out);
}

static void dump_mapping(const struct profile *p, const struct profile_mapping *m, FILE *out)
{
	const struct profile_image *image = &p->images[m->image];

	fprintf(out, "0x%" PRIx64 "-0x%" PRIx64 " 0x%" PRIx64 " ", m->start, m->limit, m->offset);
	text_print(image->path, out);
	if (image->build_id_size)
		fputs(" build-id=", out);
	for (unsigned int i = 0; i < image->build_id_size; i++)
		fprintf(out, "%02x", image->build_id[i]);
	fputc('\n', out);
}

static void dump_labels(const struct profile_labels *l, FILE *out)
{
	const char *gap = " [";

	if (!l->pid && !l->tid && !l->comm[0] && !l->kernel)
		return;
	if (l->pid || l->tid) {
		fprintf(out, "%s%" PRIu32 "/%" PRIu32, gap, l->pid, l->tid);
		gap = " ";
	}
	if (l->comm[0]) {
		fputs(gap, out);
		text_print(l->comm, out);
		gap = " ";
	}
	if (l->kernel)
		fprintf(out, "%skernel", gap);
	fputc(']', out);
}

static bool has_names(const struct profile *p, const uint32_t *frames, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		if (p->locations[frames[i]].line_count)
			return true;
	return false;
}

static void dump_names(const struct profile *p, const uint32_t *frames, uint32_t depth, FILE *out)
{
	const char *gap = " # ";

	if (!has_names(p, frames, depth))
		return;
	for (uint32_t i = 0; i < depth; i++) {
		const struct profile_location *l = &p->locations[frames[i]];

		if (!l->line_count)
			fprintf(out, "%s?", gap);
		for (uint32_t j = 0; j < l->line_count; j++) {
			uint32_t function = p->lines[l->first_line + j].function;

			fputs(j ? ";" : gap, out);
			text_print(p->functions[function].name, out);
			fputs(j + 1 < l->line_count ? " (inlined)" : "", out);
		}
		gap = ";";
	}
}

static void dump_stack(const struct profile *p, size_t sample, FILE *out)
{
	const struct profile_sample *s = &p->samples[sample];
	const uint32_t *frames = p->frames + s->first_frame;

	fprintf(out, "%" PRId64, sample_count(p, sample));
	for (uint32_t i = 0; i < s->depth; i++)
		fprintf(out, " 0x%" PRIx64, profile_file_pc(p, frames[i], i));
	if (s->labels < p->label_count)
		dump_labels(&p->labels[s->labels], out);
	dump_names(p, frames, s->depth, out);
	fputc('\n', out);
}

int report_dump(const struct profile *p, FILE *out)
{
	dump_header(p, out);
	fputs("mappings:\n", out);
	for (size_t i = 0; i < p->mapping_count; i++)
		dump_mapping(p, &p->mappings[i], out);
	fputs("stacks:\n", out);
	for (size_t i = 0; i < p->sample_count; i++)
		dump_stack(p, i, out);
	return 0;
}

/* By hand: there may be millions, and there is nothing in them to be escaped. */
static void write_stack(struct json_writer *w, const struct profile *p, size_t sample)
{
	const struct profile_sample *s = &p->samples[sample];

	json_next_element(w);
	fprintf(w->out, "{ \"count\": %" PRId64 ", \"pcs\": [", sample_count(p, sample));
	for (uint32_t i = 0; i < s->depth; i++)
		fprintf(w->out, "%s\"0x%" PRIx64 "\"", i ? ", " : " ",
			profile_file_pc(p, p->frames[s->first_frame + i], i));
	fputs(" ] }", w->out);
}

static struct json_object *mapping_object(const struct profile *p, const struct profile_mapping *m)
{
	struct json_object *object = json_object_new_object();

	if (!object)
		return NULL;
	if (json_add(object, "start", json_hex(m->start)) ||
	    json_add(object, "limit", json_hex(m->limit)) ||
	    json_add(object, "offset", json_hex(m->offset)) ||
	    json_add(object, "path", json_text(p->images[m->image].path))) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

static void write_header(struct json_writer *w, const struct profile *p)
{
	if (p->format)
		json_member(w, "format", json_text(p->format));
	if (p->bits) {
		json_member(w, "bits", json_object_new_uint64(p->bits));
		json_member(w, "endian", json_text(endian(p)));
	}
	if (p->period_ns)
		json_member(w, "period_ns", json_object_new_uint64(p->period_ns));
	json_member(w, "samples", json_object_new_uint64(profile_total(p)));
}

int report_dump_json(const struct profile *p, FILE *out)
{
	struct json_writer w;

	json_begin(&w, out);
	write_header(&w, p);
	json_begin_list(&w, "stacks");
	for (size_t i = 0; i < p->sample_count && !w.err; i++)
		write_stack(&w, p, i);
	json_end_list(&w);
	json_begin_list(&w, "mappings");
	for (size_t i = 0; i < p->mapping_count && !w.err; i++)
		json_element(&w, mapping_object(p, &p->mappings[i]));
	json_end_list(&w);
	return json_end(&w);
}
