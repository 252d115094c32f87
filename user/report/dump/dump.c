// SPDX-License-Identifier: GPL-2.0-only
#include "report/dump/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "profile/build_id.h"
#include "report/text.h"

/*
 * True if the only values are samples and their CPU time, and the delay of a recording, which is
 * printed as a label: then no `value` lines are printed.
 */
static bool has_one_value(const struct profile *p)
{
	size_t count = profile_value(p, NULL);

	for (size_t i = 0; i < p->value_type_count; i++)
		if (i != count && !profile_is_clock_time(p, i) &&
		    !(profile_has_delay(p) && i == PROFILE_DELAY))
			return false;
	return p->value_type_count == 0 || strcmp(p->value_types[count].type, "samples") == 0;
}

/* Prints all values of a sample or call, "7,0,31", or the count alone. */
static void dump_values(const struct profile *p, const int64_t *row, FILE *out)
{
	if (has_one_value(p)) {
		fprintf(out, "%" PRId64, row[profile_value(p, NULL)]);
		return;
	}
	for (size_t i = 0; i < p->value_type_count; i++)
		fprintf(out, "%s%" PRId64, i ? "," : "", row[i]);
}

static void dump_string(const char *key, const char *value, FILE *out)
{
	if (value && *value)
		text_printf(out, "%s %s\n", key, value);
}

/* Unless it is 0. */
static void dump_known(const char *key, uint64_t value, FILE *out)
{
	if (value)
		fprintf(out, "%s %" PRIu64 "\n", key, value);
}

static void dump_totals(const struct profile *p, FILE *out)
{
	const struct profile_totals *t = &p->totals;

	dump_known("all_samples", p->all_samples, out);
	dump_known("all_cpu_ns", p->all_cpu_ns, out);
	dump_known("all_duration_ns", p->all_duration_ns, out);
	if (!t->known)
		return;
	for (int i = 0; i < ACCOUNT_COUNT; i++)
		if (t->account.values[i] ||
		    (account_counters[i].zero && !account_counters[i].group))
			fprintf(out, "%s %" PRIu64 "\n", account_counters[i].name,
				t->account.values[i]);
	for (size_t i = 0; i < t->lost_count; i++)
		text_printf(out, "lost %s %" PRIu64 "\n", t->lost[i].cause, t->lost[i].count);
	for (size_t i = 0; i < t->stack_end_count; i++)
		text_printf(out, "stack_end %s %" PRIu64 " %s\n", t->stack_ends[i].cause,
			    t->stack_ends[i].count, t->stack_ends[i].image);
	for (size_t i = 0; i < t->throttled_count; i++) {
		const struct profile_throttled *g = &t->throttled[i];

		text_printf(out,
			    "throttled_ns %" PRIu64 " in %" PRIu64 " of %" PRIu64
			    " periods, cpu.max %" PRIu64 " %" PRIu64 " %s\n",
			    g->throttled_ns, g->throttled_periods, g->periods, g->quota_ns / 1000,
			    g->every_ns / 1000, g->cgroup);
	}
}

static void dump_header(const struct profile *p, FILE *out)
{
	bool one_value = has_one_value(p);

	dump_string("format", p->format, out);
	dump_known("bits", p->bits, out);
	dump_string("endian", !p->bits ? "" : p->big_endian ? "big" : "little", out);
	dump_string("host", p->host, out);
	dump_string("command", p->command, out);
	dump_string("event", p->event, out);
	dump_known("period_ns", profile_tick_ns(p), out);
	dump_known("bucket", p->bucket > 1 ? p->bucket : 0, out);
	for (size_t i = 0; i < p->value_type_count && !one_value; i++) {
		const struct profile_value_type *t = &p->value_types[i];

		text_printf(out, "value %s %s", t->type, t->unit);
		if (t->period)
			fprintf(out, " period=%" PRIu64, t->period);
		if (*t->formula)
			text_printf(out, " = %s", t->formula);
		if (*t->title)
			text_printf(out, " : %s", t->title);
		fputc('\n', out);
	}
	dump_known("time_ns", p->time_ns, out);
	if (p->duration_ns)
		fprintf(out, "duration_s %" PRIu64 ".%09u\n", p->duration_ns / 1000000000,
			(unsigned int)(p->duration_ns % 1000000000));
	dump_totals(p, out);
	if (profile_find_sum(p, PROFILE_SUM_DELAY) < p->value_type_count)
		fprintf(out, "delay_ns %" PRId64 "\n", profile_total(p, PROFILE_DELAY_TYPE));
	fprintf(out, "samples %" PRId64 "\n", profile_total(p, NULL));
	for (size_t i = 0; i < p->comment_count; i++)
		dump_string("comment", p->comments[i], out);
}

/* delay_ns: of the sample; 0: none. */
static void dump_labels(const struct profile_labels *l, int64_t delay_ns, FILE *out)
{
	const char *gap = " [";

	if (!l->pid && !l->tid && !l->comm[0] && !l->kernel && !l->tag_count && !delay_ns)
		return;
	if (l->pid || l->tid) {
		fprintf(out, "%s%" PRIu32 "/%" PRIu32, gap, l->pid, l->tid);
		gap = " ";
	}
	if (l->generation)
		fprintf(out, " generation %" PRIu32, l->generation);
	if (l->comm[0]) {
		text_printf(out, "%s%s", gap, l->comm);
		gap = " ";
	}
	if (l->kernel) {
		fprintf(out, "%skernel", gap);
		gap = " ";
	}
	for (uint32_t i = 0; i < l->tag_count; i++) {
		const struct profile_tag *tag = &l->tags[i];

		if (tag->text)
			text_printf(out, "%s%s=%s", gap, tag->key, tag->text);
		else
			text_printf(out, "%s%s=%" PRId64 "%s", gap, tag->key, tag->number,
				    tag->unit);
		gap = " ";
	}
	if (delay_ns)
		fprintf(out, "%sdelay=%" PRId64 "ns", gap, delay_ns);
	fputc(']', out);
}

static void dump_names(const struct profile *p, const uint32_t *frames, uint32_t depth, FILE *out)
{
	const char *gap = " # ";
	bool any = false;

	for (uint32_t i = 0; i < depth && !any; i++)
		any = p->locations[frames[i]].line_count;
	if (!any)
		return;
	for (uint32_t i = 0; i < depth; i++) {
		const struct profile_location *l = &p->locations[frames[i]];

		if (!l->line_count)
			fprintf(out, "%s?", gap);
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_line *line = &p->lines[l->first_line + j];
			const struct profile_function *f = &p->functions[line->function];
			const char *file = line->file ?: f->file;

			text_printf(out, "%s%s", j ? ";" : gap, f->name);
			if (*file || line->line) {
				text_printf(out, " (%s", *file ? file : "?");
				if (line->line)
					fprintf(out, ":%" PRIu32, line->line);
				if (line->column)
					fprintf(out, ":%" PRIu32, line->column);
				fputc(')', out);
			}
			fputs(j + 1 < l->line_count ? " (inlined)" : "", out);
		}
		gap = ";";
	}
}

static void dump_arcs(const struct profile *p, bool calls, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < p->arc_count; i++) {
		const struct profile_arc *a = &p->arcs[i];
		const uint32_t ends[] = { a->from, a->to };

		if ((a->kind == PROFILE_CALL) != calls)
			continue;
		if (!any)
			fputs(calls ? "calls:\n" : "jumps:\n", out);
		any = true;
		fprintf(out, "%" PRIu64, a->count);
		if (a->kind == PROFILE_CONDITIONAL_JUMP)
			fprintf(out, "/%" PRIu64, a->executed);
		if (calls) {
			fputc(' ', out);
			dump_values(p, p->arc_values + i * p->value_type_count, out);
		}
		fprintf(out, " 0x%" PRIx64 " 0x%" PRIx64, p->locations[a->from].address,
			p->locations[a->to].address);
		dump_labels(&p->labels[a->labels], 0, out);
		dump_names(p, ends, 2, out);
		fputc('\n', out);
	}
}

static int dump_times(const struct profile *p, FILE *out)
{
	struct tick_groups groups;

	if (!p->ticks.count)
		return 0;
	if (tick_list_group(&p->ticks, p->sample_count, &groups))
		return -ENOMEM;
	fputs("times:\n", out);
	for (size_t i = 0; i < p->sample_count; i++) {
		if (groups.first[i] == groups.first[i + 1])
			continue;
		fprintf(out, "%zu", i + 1);
		for (size_t k = groups.first[i]; k < groups.first[i + 1]; k++)
			fprintf(out, " %.4f", (groups.times[k] - p->time_ns) / 1e9);
		fputc('\n', out);
	}
	tick_groups_free(&groups);
	return 0;
}

/* Of each sample: when its waits began, and for how long they were. */
static int dump_waits(const struct profile *p, FILE *out)
{
	struct wait_groups groups;

	if (!p->waits.count)
		return 0;
	if (wait_list_group(&p->waits, p->sample_count, &groups))
		return -ENOMEM;
	fputs("waits:\n", out);
	for (size_t i = 0; i < p->sample_count; i++) {
		if (groups.first[i] == groups.first[i + 1])
			continue;
		fprintf(out, "%zu", i + 1);
		for (size_t k = groups.first[i]; k < groups.first[i + 1]; k++)
			fprintf(out, " %.5f+%.5f", (groups.waits[k].since_ns - p->time_ns) / 1e9,
				groups.waits[k].length_ns / 1e9);
		fputc('\n', out);
	}
	wait_groups_free(&groups);
	return 0;
}

int report_dump(const struct profile *p, FILE *out)
{
	bool has_delay = profile_has_delay(p) && has_one_value(p);
	char build_id[BUILD_ID_TEXT_SIZE];

	dump_header(p, out);
	fputs("mappings:\n", out);
	for (size_t i = 0; i < p->mapping_count; i++) {
		const struct profile_mapping *m = &p->mappings[i];
		const struct profile_image *image = &p->images[m->image];

		text_printf(out, "0x%" PRIx64 "-0x%" PRIx64 " 0x%" PRIx64 " %s", m->start, m->limit,
			    m->offset, image->path);
		build_id_format(image->build_id, image->build_id_size, build_id);
		if (*build_id)
			fprintf(out, " build-id=%s", build_id);
		if (image->text_size)
			fprintf(out, " text_start=0x%" PRIx64 " text_size=0x%" PRIx64,
				image->text_start, image->text_size);
		if (image->provider)
			fprintf(out, " provider=%" PRIu32, image->provider);
		if (image->file_id && !image->build_id_size)
			fprintf(out, " file=0x%" PRIx64, image->file_id);
		fputs(m->linked ? " linked\n" : "\n", out);
	}
	fputs("stacks:\n", out);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		const uint32_t *frames = p->frames + s->first_frame;
		const int64_t *values = p->values + i * p->value_type_count;

		dump_values(p, values, out);
		for (uint32_t j = 0; j < s->depth; j++)
			fprintf(out, " 0x%" PRIx64, profile_file_pc(p, frames[j], j));
		if (s->labels < p->label_count)
			dump_labels(&p->labels[s->labels], has_delay ? values[PROFILE_DELAY] : 0,
				    out);
		dump_names(p, frames, s->depth, out);
		fputc('\n', out);
	}
	if (dump_times(p, out) || dump_waits(p, out))
		return -ENOMEM;
	/* THREADS, then nanoseconds: of wall time = on CPU + runnable + blocked + idle + unknown.
	 */
	fputs(p->wall_count ? "walls:\n" : "", out);
	for (size_t i = 0; i < p->wall_count; i++) {
		const struct profile_wall *w = &p->walls[i];

		fprintf(out,
			"%" PRIu64 " %" PRIu64 " = %" PRIu64 " + %" PRIu64 " + %" PRIu64
			" + %" PRIu64 " + %" PRIu64,
			w->threads, w->wall_ns, w->on_cpu_ns, w->runnable_ns, w->blocked_ns,
			w->idle_ns, w->unknown_ns);
		dump_labels(&p->labels[w->labels], 0, out);
		fputc('\n', out);
	}
	dump_arcs(p, true, out);
	dump_arcs(p, false, out);
	if (p->extra_count)
		fputs("extras:\n", out);
	for (size_t i = 0; i < p->extra_count; i++) {
		const struct profile_extra *x = &p->extras[i];

		text_print(x->format, out);
		if (x->image != PROFILE_NONE)
			text_printf(out, " %s", p->images[x->image].path);
		fputs(": ", out);
		/* Mostly texts. In binary ones each NUL is printed as \x00. */
		for (size_t at = 0; at < x->size;) {
			text_print(x->bytes + at, out);
			at += strlen(x->bytes + at);
			for (; at < x->size && !x->bytes[at]; at++)
				fputs("\\x00", out);
		}
		fputc('\n', out);
	}
	return 0;
}
