// SPDX-License-Identifier: GPL-2.0-only
#include "profile/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/build_id.h"
#include "profile/merge_code.h"
#include "util/array.h"
#include "util/sum.h"

struct merge {
	struct profile *to;
	const struct profile *from;
	struct merged_code code;
	uint32_t *labels;	/* the number in `to` of each of `from` */
	size_t *values;		/* the same of value types */
	int64_t *row;		/* one sample's values, by the types of `to` */
	bool first;		/* `to` is empty */
	bool other_event;	/* the samples of `from` count another event than those of `to` */
	bool different_periods; /* where they count the same */
};

static bool is_count(const struct profile_value_type *t, const char *type)
{
	return strcmp(t->type, type) == 0 && strcmp(t->unit, "count") == 0;
}

static size_t find_value_type(const struct profile *p, const char *type, const char *unit)
{
	size_t i = 0;

	while (i < p->value_type_count && (strcmp(p->value_types[i].type, type) != 0 ||
					   strcmp(p->value_types[i].unit, unit) != 0))
		i++;
	return i;
}

/*
 * Whether the samples of `from` count another event than those of `to`. An unknown event is no
 * other one.
 */
static bool is_other_event(const struct merge *m)
{
	const struct profile *to = m->to, *from = m->from;

	if (!*from->event)
		return false;
	if (*to->event)
		return strcmp(to->event, from->event) != 0;
	return find_value_type(to, "samples", "count") == to->value_type_count ||
	       find_value_type(to, from->event, "count") < to->value_type_count;
}

static int name_samples_by_event(struct profile *p)
{
	size_t samples = find_value_type(p, "samples", "count");

	if (samples == p->value_type_count || !*p->event)
		return 0;
	return profile_string(p, p->event, &p->value_types[samples].type);
}

static int add_value_type(struct profile *p, const struct profile_value_type *t, const char *type)
{
	struct profile_value_type *added;

	if (profile_add_value_type(p, type, t->unit))
		return -ENOMEM;
	added = &p->value_types[p->value_type_count - 1];
	added->period = t->period;
	if (profile_string(p, t->title, &added->title))
		return -ENOMEM;
	return profile_string(p, t->formula, &added->formula);
}

static int merge_value_type(struct merge *m, size_t number)
{
	const struct profile_value_type *t = &m->from->value_types[number];
	bool renamed = m->other_event && is_count(t, "samples");
	const char *type = renamed ? m->from->event : t->type;
	size_t *id = &m->values[number];
	struct profile_value_type *same;

	*id = find_value_type(m->to, type, t->unit);
	if (*id == m->to->value_type_count)
		return add_value_type(m->to, t, type);
	same = &m->to->value_types[*id];
	if (same->period != t->period) {
		m->different_periods = true;
		same->period = 0;
	}
	return 0;
}

static int merge_value_types(struct merge *m)
{
	size_t width = m->to->value_type_count;

	m->values = calloc(m->from->value_type_count + 1, sizeof(*m->values));
	if (!m->values || (m->other_event && name_samples_by_event(m->to)))
		return -ENOMEM;
	for (size_t i = 0; i < m->from->value_type_count; i++)
		if (merge_value_type(m, i))
			return -ENOMEM;
	if (m->first && m->from->default_value) {
		m->to->default_value = m->values[m->from->default_value - 1] + 1;
		m->to->names_default = m->from->names_default;
	}
	m->row = calloc(m->to->value_type_count + 1, sizeof(*m->row));
	return m->row ? profile_widen_values(m->to, width) : -ENOMEM;
}

static int merge_labels(struct merge *m)
{
	m->labels = calloc(m->from->label_count + 1, sizeof(*m->labels));
	if (!m->labels)
		return -ENOMEM;
	for (size_t i = 0; i < m->from->label_count; i++)
		if (profile_add_labels(m->to, &m->from->labels[i], &m->labels[i]))
			return -ENOMEM;
	return 0;
}

/* Translates a row of values of `from` into m->row. */
static void translate_row(struct merge *m, const int64_t *values)
{
	memset(m->row, 0, m->to->value_type_count * sizeof(*m->row));
	for (size_t i = 0; i < m->from->value_type_count; i++)
		m->row[m->values[i]] = values[i];
}

static int merge_samples(struct merge *m)
{
	const struct profile *from = m->from;
	uint32_t *frames = NULL;
	size_t room = 0;
	int err = 0;

	for (size_t i = 0; i < from->sample_count && !err; i++) {
		const struct profile_sample *s = &from->samples[i];

		err = array_reserve(&frames, &room, s->depth, sizeof(*frames));
		if (err)
			break;
		for (uint32_t j = 0; j < s->depth; j++)
			frames[j] = m->code.locations[from->frames[s->first_frame + j]];
		translate_row(m, from->values + i * from->value_type_count);
		err = profile_add_sample(m->to, frames, s->depth, m->labels[s->labels], m->row);
	}
	free(frames);
	return err;
}

static int merge_arcs(struct merge *m)
{
	const struct profile *from = m->from;

	for (size_t i = 0; i < from->arc_count; i++) {
		struct profile_arc arc = from->arcs[i];

		arc.from = m->code.locations[arc.from];
		arc.to = m->code.locations[arc.to];
		arc.labels = m->labels[arc.labels];
		translate_row(m, from->arc_values + i * from->value_type_count);
		if (profile_add_arc(m->to, &arc, m->row))
			return -ENOMEM;
	}
	return 0;
}

/* The mean of two measurements, weighted by ticks; 0: not measured. */
static uint64_t mean(uint64_t a, uint64_t a_ticks, uint64_t b, uint64_t b_ticks)
{
	if (!a || !b)
		return a ?: b;
	if (!a_ticks && !b_ticks)
		return (a + b) / 2;
	return ((double)a * a_ticks + (double)b * b_ticks) / ((double)a_ticks + b_ticks);
}

static int most_first(const void *one, const void *other)
{
	const struct profile_stack_end *a = one, *b = other;

	return compare_u64(b->count, a->count);
}

static int merge_totals(struct profile *p, const struct profile_totals *from, bool first)
{
	struct profile_totals *t = &p->totals;

	if (!from->known || !(t->known || first)) {
		free(t->lost);
		free(t->stack_ends);
		*t = (struct profile_totals){ 0 };
		return 0;
	}
	t->known = true;
	t->bpf_ns_per_tick = mean(t->bpf_ns_per_tick, t->ticks, from->bpf_ns_per_tick, from->ticks);
	t->interrupt_ns = mean(t->interrupt_ns, t->ticks, from->interrupt_ns, from->ticks);
	add_u64(&t->ticks, from->ticks);
	add_u64(&t->counted, from->counted);
	add_u64(&t->out_of_range, from->out_of_range);
	add_u64(&t->excluded, from->excluded);
	add_u64(&t->kernel, from->kernel);
	add_u64(&t->cpu_ns, from->cpu_ns);
	add_u64(&t->interrupts, from->interrupts);
	add_u64(&t->own_ns, from->own_ns);
	add_u64(&t->machine_ns, from->machine_ns);
	if (from->stack_limit > t->stack_limit)
		t->stack_limit = from->stack_limit;
	add_u64(&t->stacks_truncated, from->stacks_truncated);
	add_u64(&t->stacks_user, from->stacks_user);
	add_u64(&t->stacks_complete, from->stacks_complete);
	for (size_t i = 0; i < from->stack_end_count; i++)
		if (profile_add_stack_end(p, from->stack_ends[i].cause, from->stack_ends[i].image,
					  from->stack_ends[i].count))
			return -ENOMEM;
	if (t->stack_end_count)
		qsort(t->stack_ends, t->stack_end_count, sizeof(*t->stack_ends), most_first);
	for (size_t i = 0; i < from->lost_count; i++)
		if (profile_add_lost(p, from->lost[i].cause, from->lost[i].count))
			return -ENOMEM;
	return 0;
}

/* Takes over the text of the first profile; clears one that differs. */
static int merge_text(struct merge *m, const char **text, const char *from)
{
	if (strcmp(*text, from) == 0)
		return 0;
	return profile_string(m->to, m->first ? from : "", text);
}

/* The method of the stack walk: a profile without stacks does not count, two methods are none. */
static int merge_stacks(struct merge *m)
{
	if (!m->from->totals.stack_limit && !m->first)
		return 0;
	if (!m->to->totals.stack_limit)
		return profile_string(m->to, m->from->stacks, &m->to->stacks);
	return merge_text(m, &m->to->stacks, m->from->stacks);
}

static int merge_header(struct merge *m)
{
	struct profile *to = m->to;
	const struct profile *from = m->from;
	struct profile_amount all, more;

	if (to->all_samples || from->all_samples) {
		all = profile_amount_before(to);
		more = profile_amount_before(from);
		add_u64(&all.samples, more.samples);
		add_u64(&all.cpu_ns, more.cpu_ns);
		to->all_samples = all.samples;
		to->all_cpu_ns = all.cpu_ns;
	}

	if (m->first) {
		to->period_ns = from->period_ns;
		to->frequency = from->frequency;
		to->format = from->format;
		to->big_endian = from->big_endian;
		to->return_addresses = from->return_addresses;
	}
	if (to->period_ns != from->period_ns) {
		m->different_periods |= !m->other_event;
		to->period_ns = to->frequency = 0;
	}
	if (!to->time_ns || (from->time_ns && from->time_ns < to->time_ns))
		to->time_ns = from->time_ns;
	add_u64(&to->duration_ns, from->duration_ns);
	to->salvaged |= from->salvaged;
	if (from->bits > to->bits)
		to->bits = from->bits;
	if (from->bucket > to->bucket)
		to->bucket = from->bucket;
	if (merge_text(m, &to->event, from->event) || merge_text(m, &to->host, from->host) ||
	    merge_text(m, &to->command, from->command) || merge_stacks(m) ||
	    merge_text(m, &to->drop_frames, from->drop_frames) ||
	    merge_text(m, &to->keep_frames, from->keep_frames))
		return -ENOMEM;
	return merge_totals(to, &from->totals, m->first);
}

static bool same_text(const void *array, uint32_t id, const void *text)
{
	const char *const *texts = array;

	return texts[id] == text;
}

static uint64_t text_hash(const char *text)
{
	return hash_u64((uintptr_t)text, 0);
}

static int merge_comments(struct profile *to, const struct profile *from)
{
	struct index index = { 0 };
	int err = 0;

	for (size_t i = 0; i < to->comment_count && !err; i++)
		err = index_add(&index, text_hash(to->comments[i]), i);
	for (size_t i = 0; i < from->comment_count && !err; i++) {
		const char *text;

		err = profile_string(to, from->comments[i], &text);
		if (err || index_find(&index, text_hash(text), same_text, to->comments, text) !=
				   INDEX_NONE)
			continue;
		err = profile_add_comment(to, text)
			      ?: index_add(&index, text_hash(text), to->comment_count - 1);
	}
	index_free(&index);
	return err;
}

static int merge_texts(struct merge *m)
{
	struct profile *to = m->to;
	const struct profile *from = m->from;

	for (size_t i = 0; i < from->extra_count; i++) {
		const struct profile_extra *x = &from->extras[i];
		uint32_t image = x->image == PROFILE_NONE ? PROFILE_NONE : m->code.images[x->image];

		if (profile_add_extra(to, x->format, image, x->bytes, x->size))
			return -ENOMEM;
	}
	for (size_t i = 0; i < from->warning_count; i++)
		if (profile_warn(to, "%s", from->warnings[i]))
			return -ENOMEM;
	if (m->different_periods &&
	    profile_warn(to, "the merged profiles have different periods: their samples stand "
			     "for different times"))
		return -ENOMEM;
	return merge_comments(to, from);
}

/*
 * Makes one image of those that have one build ID, as a recording has of copies of a program. Else
 * what is added of any of them would be counted for the first.
 */
static int join_copies(struct profile *p, struct error *e)
{
	uint32_t *next = build_id_circles(p), i = 0;
	struct profile *joined, separate = *p;
	int err;

	while (next && i < p->image_count && next[i] == i)
		i++;
	free(next);
	if (next && i == p->image_count)
		return 0;
	joined = next ? profile_new() : NULL;
	if (!joined)
		return error_no_memory(e);
	err = profile_merge(joined, p, NULL, e);
	if (!err) {
		*p = *joined;
		*joined = separate;
	}
	profile_free(joined);
	return err;
}

int profile_merge(struct profile *to, const struct profile *from, struct merge_cache *cache,
		  struct error *e)
{
	struct merge_cache own = { 0 };
	struct merge m = { .to = to, .from = from, .first = !to->value_type_count };
	bool merged_before = cache && cache->indexed;
	int err = m.first || merged_before ? 0 : join_copies(to, e);

	if (err)
		return err;
	m.other_event = !m.first && is_other_event(&m);
	err = merge_value_types(&m);
	err = err ?: merge_header(&m);
	err = err ?: merge_code(to, from, cache ?: &own, &m.code);
	err = err ?: merge_labels(&m);
	err = err ?: merge_samples(&m);
	err = err ?: merge_arcs(&m);
	err = err ?: merge_texts(&m);
	merged_code_free(&m.code);
	merge_cache_free(&own);
	free(m.labels);
	free(m.values);
	free(m.row);
	return err ? error_no_memory(e) : 0;
}

void merge_cache_free(struct merge_cache *cache)
{
	index_free(&cache->locations);
	*cache = (struct merge_cache){ 0 };
}
