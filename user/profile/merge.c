// SPDX-License-Identifier: GPL-2.0-only
#include "profile/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/build_id.h"
#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "util/array.h"
#include "util/order.h"
#include "util/sum.h"
#include "util/table.h"

int hosts_add(struct hosts *h, const char *host)
{
	size_t i = 0;

	if (!*host || h->count == HOSTS_MAX)
		return 0;
	while (i < h->count && strcmp(h->names[i], host) != 0)
		i++;
	if (i < h->count)
		return 0;
	h->names[i] = strdup(host);
	if (!h->names[i])
		return -ENOMEM;
	h->count++;
	return 0;
}

bool hosts_are_several(const struct hosts *h, char *text, size_t size)
{
	*text = '\0';
	for (size_t i = 0; i < h->count; i++)
		text_append(text, size, ", ", "%s", h->names[i]);
	if (h->count == HOSTS_MAX)
		text_append(text, size, ", ", "...");
	return h->count > 1;
}

void hosts_free(struct hosts *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->names[i]);
	h->count = 0;
}

/*
 * What a mapping holds. offset: in its file; for memory without a file, and for images in their own
 * numbering, the address.
 */
struct content {
	uint32_t image;
	uint64_t offset;
	uint64_t start;
	uint64_t limit;
	uint32_t mapping;
};

struct merge {
	struct profile *to;
	const struct profile *from;
	struct merge_cache *cache;

	/* The number in `to` of each element of `from` */
	uint32_t *images, *mappings, *functions, *locations, *labels;
	size_t *values; /* of value types */

	struct content *contents; /* of all mappings of `to`, sorted by by_content() */
	size_t content_count;
	struct profile_line *lines; /* of one location */
	size_t line_room;
	int64_t *row;		/* one sample's values, by the types of `to` */
	bool first;		/* `to` is empty */
	bool one_host;		/* both are of one machine: times can be compared */
	bool other_event;	/* the samples of `from` count another event than those of `to` */
	bool different_periods; /* of a value that both have */
};

/* The first image of each build ID, name and provider, and the first of each that may_be_same(). */
struct image_indexes {
	struct index by_build_id;
	struct index by_path;
};

EQUAL(same_build_id, struct profile_image, struct profile_image, build_id_is_copy(a, b))

/*
 * Whether two images of one path may be the same, though they do not share a build ID. Files of
 * other programs have no more than the path, so it is enough if one of the two has neither a build
 * ID nor a file ID, or both have the same file ID; whatever was recorded here has one of these.
 */
static bool may_be_same(const void *array, uint32_t id, const void *key)
{
	const struct profile_image *a = (const struct profile_image *)array + id, *b = key;

	if (a->path != b->path || a->provider != b->provider)
		return false;
	if (a->build_id_size || b->build_id_size)
		return a->build_id_size ? !b->build_id_size && !b->file_id : !a->file_id;
	return a->file_id == b->file_id || !a->file_id || !b->file_id;
}

static uint64_t path_hash(const struct profile_image *image)
{
	return hash_u64((uintptr_t)image->path, image->provider);
}

static int index_image(const struct profile *p, uint32_t id, struct image_indexes *indexes)
{
	const struct profile_image *image = &p->images[id];
	uint64_t hash = build_id_hash(image);

	if (image->build_id_size &&
	    index_find(&indexes->by_build_id, hash, same_build_id, p->images, image) ==
		    INDEX_NONE &&
	    index_add(&indexes->by_build_id, hash, id))
		return -ENOMEM;
	if (index_find(&indexes->by_path, path_hash(image), may_be_same, p->images, image) ==
	    INDEX_NONE)
		return index_add(&indexes->by_path, path_hash(image), id);
	return 0;
}

static int merge_images(struct merge *m)
{
	struct profile *to = m->to;
	struct image_indexes indexes = { 0 };
	int err = 0;

	for (uint32_t i = 0; i < to->image_count && !err; i++)
		err = index_image(to, i, &indexes);
	for (uint32_t i = 0; i < m->from->image_count && !err; i++) {
		struct profile_image theirs = m->from->images[i], *ours;
		uint32_t *id = &m->images[i];

		err = profile_string(to, theirs.path, &theirs.path);
		if (err)
			break;
		*id = INDEX_NONE;
		if (theirs.build_id_size)
			*id = index_find(&indexes.by_build_id, build_id_hash(&theirs),
					 same_build_id, to->images, &theirs);
		if (*id == INDEX_NONE && *theirs.path)
			*id = index_find(&indexes.by_path, path_hash(&theirs), may_be_same,
					 to->images, &theirs);
		if (*id == INDEX_NONE) {
			err = profile_add_image_like(to, &theirs, id);
			err = err ?: index_image(to, *id, &indexes);
			if (err)
				break;
		}
		/* Completes an image that both have. */
		ours = &to->images[*id];
		if (!ours->build_id_size) {
			memcpy(ours->build_id, theirs.build_id, theirs.build_id_size);
			ours->build_id_size = theirs.build_id_size;
			ours->file_id = ours->file_id ?: theirs.file_id;
		}
		if (!ours->text_size) {
			ours->text_start = theirs.text_start;
			ours->text_size = theirs.text_size;
		}
		if (!ours->bits)
			ours->bits = theirs.bits;
		if (!ours->unnamed && theirs.unnamed)
			err = profile_string(to, theirs.unnamed, &ours->unnamed);
	}
	/*
	 * Copies of a file get the shortest of their paths, whatever was merged first. Afterwards,
	 * since the indexes know images by the paths that they had.
	 */
	for (uint32_t i = 0; i < m->from->image_count && !err; i++) {
		const struct profile_image *theirs = &m->from->images[i];
		struct profile_image *ours = &to->images[m->images[i]];
		size_t size = strlen(theirs->path), our_size = strlen(ours->path);

		if (build_id_is_copy(ours, theirs) &&
		    image_kind(ours->path) == image_kind(theirs->path) &&
		    (size < our_size || (size == our_size && strcmp(theirs->path, ours->path) < 0)))
			err = profile_string(to, theirs->path, &ours->path);
	}
	index_free(&indexes.by_build_id);
	index_free(&indexes.by_path);
	return err;
}

static struct content content_of(const struct profile *p, uint32_t mapping)
{
	const struct profile_mapping *m = &p->mappings[mapping];
	enum image_kind kind = image_kind(p->images[m->image].path);
	/* Offsets identify code in files only. The vdso is one image at any address. */
	bool by_offset = !m->linked && (kind == IMAGE_FILE || kind == IMAGE_VDSO);

	return (struct content){ m->image, by_offset ? m->offset : m->start, m->start, m->limit,
				 mapping };
}

ORDER(by_content, struct content, LEAST(image) ?: LEAST(offset) ?: LEAST(mapping))

/* Returns the first content that does not come before this image and offset. */
static size_t lower_bound(const struct merge *m, uint32_t image, uint64_t offset)
{
	struct content key = { .image = image, .offset = offset };
	size_t i;

	FIND_FIRST(i, 0, m->content_count, by_content(&m->contents[i], &key) < 0);
	return i;
}

static bool overlaps(const struct content *a, const struct content *b)
{
	if (a->image != b->image)
		return false;
	if (a->offset <= b->offset)
		return b->offset - a->offset < a->limit - a->start;
	return a->offset - b->offset < b->limit - b->start;
}

/* Returns a mapping of `to` that overlaps it, or NULL; preferably one at the same addresses. */
static struct content *find_content(struct merge *m, const struct content *wanted)
{
	size_t at = lower_bound(m, wanted->image, wanted->offset), first = at;

	for (size_t i = at; i < m->content_count && m->contents[i].image == wanted->image &&
			    m->contents[i].offset == wanted->offset;
	     i++)
		if (m->contents[i].start == wanted->start && m->contents[i].limit == wanted->limit)
			return &m->contents[i];
	if (at < m->content_count && overlaps(&m->contents[at], wanted))
		return &m->contents[at];
	if (at == 0)
		return NULL;
	first = lower_bound(m, m->contents[at - 1].image, m->contents[at - 1].offset);
	return overlaps(&m->contents[first], wanted) ? &m->contents[first] : NULL;
}

/*
 * Extends a mapping of `to` by the content of one that overlaps it: loaders map whole pages, other
 * files know the text only. Returns false if that is impossible.
 */
static bool widen_mapping(struct merge *m, struct content *have, const struct content *wanted)
{
	struct profile_mapping *mapping = &m->to->mappings[have->mapping];
	uint64_t less = have->offset > wanted->offset ? have->offset - wanted->offset : 0;
	uint64_t size = wanted->offset - (have->offset - less) + (wanted->limit - wanted->start);
	uint64_t limit;

	if (less > mapping->start || (!mapping->linked && less > mapping->offset) ||
	    __builtin_add_overflow(mapping->start - less, size, &limit))
		return false;
	mapping->start -= less;
	mapping->offset -= mapping->linked ? 0 : less;
	mapping->limit = MAX(mapping->limit, limit);
	*have = content_of(m->to, have->mapping);
	return true;
}

static int merge_mappings(struct merge *m)
{
	m->content_count = m->to->mapping_count;
	m->contents = calloc(m->content_count + 1, sizeof(*m->contents));
	if (!m->contents)
		return -ENOMEM;
	for (size_t i = 0; i < m->content_count; i++)
		m->contents[i] = content_of(m->to, i);
	qsort(m->contents, m->content_count, sizeof(*m->contents), by_content);

	for (uint32_t i = 0; i < m->from->mapping_count; i++) {
		const struct profile_mapping *mapping = &m->from->mappings[i];
		struct content wanted = content_of(m->from, i), *have;
		uint32_t *id = &m->mappings[i];

		wanted.image = m->images[wanted.image];
		have = find_content(m, &wanted);
		if (have && m->to->mappings[have->mapping].linked == mapping->linked &&
		    widen_mapping(m, have, &wanted)) {
			*id = have->mapping;
			continue;
		}
		if (profile_add_mapping(m->to, mapping->start, mapping->limit, mapping->offset,
					wanted.image, id))
			return -ENOMEM;
		m->to->mappings[*id].linked = mapping->linked;
	}
	return 0;
}

EQUAL(same_place, struct profile_location, struct profile_location, SAME(address) && SAME(mapping))

static uint64_t place_hash(const struct profile_location *l)
{
	return hash_u64(l->address, l->mapping);
}

/* Returns the first location of m->to at the address and mapping of this one, or INDEX_NONE. */
static uint32_t find_place(const struct merge *m, const struct profile_location *l)
{
	return index_find(&m->cache->locations, place_hash(l), same_place, m->to->locations, l);
}

/* Indexes the locations that were added to m->to. Returns 0 or -ENOMEM. */
static int index_places(struct merge *m)
{
	struct merge_cache *cache = m->cache;

	for (; cache->indexed < m->to->location_count; cache->indexed++) {
		const struct profile_location *l = &m->to->locations[cache->indexed];

		if (find_place(m, l) == INDEX_NONE &&
		    index_add(&cache->locations, place_hash(l), cache->indexed))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Finds or adds location `number` of `from` in `to`: by its address if it has one and the names
 * there agree; else by its lines. A name is added to a location that has none. Returns 0 or
 * -ENOMEM.
 */
static int merge_location(struct merge *m, uint32_t number)
{
	struct profile_location l = m->from->locations[number], *same;
	bool named = profile_is_named(m->from, number), same_named, agree = true;
	const struct profile_line *ours, *theirs;
	uint32_t *id = &m->locations[number];
	int err;

	if (l.mapping != PROFILE_NONE) {
		struct content old = content_of(m->from, l.mapping);
		struct content place = content_of(m->to, m->mappings[l.mapping]);

		l.mapping = place.mapping;
		if (l.address)
			l.address += old.offset - old.start + place.start - place.offset;
	}
	if (array_reserve(&m->lines, &m->line_room, l.line_count, sizeof(*m->lines)))
		return -ENOMEM;
	for (uint32_t i = 0; i < l.line_count; i++) {
		m->lines[i] = m->from->lines[l.first_line + i];
		m->lines[i].function = m->functions[m->lines[i].function];
	}
	*id = l.address ? find_place(m, &l) : INDEX_NONE;
	same_named = *id != INDEX_NONE && profile_is_named(m->to, *id);
	if (named && same_named) {
		/* One of the files may lack inlined functions or the line number. */
		same = &m->to->locations[*id];
		ours = &m->to->lines[same->first_line + same->line_count - 1];
		theirs = &m->lines[l.line_count - 1];
		agree = m->to->functions[ours->function].name ==
				m->to->functions[theirs->function].name &&
			(ours->line == theirs->line || !ours->line || !theirs->line);
	}
	if (*id == INDEX_NONE || !agree) {
		if (l.line_count)
			err = profile_add_line_location(m->to, l.address, l.mapping, m->lines,
							l.line_count, id);
		else
			err = profile_add_location(m->to, l.address, l.mapping, id);
		if (err)
			return err;
		m->to->locations[*id].image_address = l.image_address;
		m->to->locations[*id].folded |= l.folded;
		return index_places(m);
	}
	same = &m->to->locations[*id];
	if (!l.line_count || (same->line_count && (same_named || !named)))
		return 0;
	same->image_address = l.image_address;
	return profile_set_lines(m->to, *id, m->lines, l.line_count);
}

/* Merges the locations that samples and arcs refer to. Returns 0 or -ENOMEM. */
static int merge_locations(struct merge *m)
{
	const struct profile *p = m->from;
	bool *used = calloc(p->location_count + 1, sizeof(*used));
	int err = used ? index_places(m) : -ENOMEM;

	for (size_t i = 0; !err && i < p->sample_count; i++)
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			used[p->frames[p->samples[i].first_frame + j]] = true;
	for (size_t i = 0; !err && i < p->arc_count; i++)
		used[p->arcs[i].from] = used[p->arcs[i].to] = true;
	for (uint32_t i = 0; i < p->location_count && !err; i++)
		if (used[i])
			err = merge_location(m, i);
	free(used);
	return err;
}

static size_t find_value_type(const struct profile *p, const char *type, const char *unit)
{
	size_t i = 0;

	while (i < p->value_type_count && (strcmp(p->value_types[i].type, type) != 0 ||
					   strcmp(p->value_types[i].unit, unit) != 0))
		i++;
	return i;
}

static int merge_value_types(struct merge *m)
{
	struct profile *to = m->to;
	const struct profile *from = m->from;
	size_t width = to->value_type_count, samples;

	m->values = calloc(from->value_type_count + 1, sizeof(*m->values));
	if (!m->values)
		return -ENOMEM;
	samples = profile_find_sum(to, PROFILE_SUM_SAMPLES);
	if (m->other_event && samples < to->value_type_count && *to->event &&
	    profile_string(to, to->event, &to->value_types[samples].type))
		return -ENOMEM;
	for (size_t i = 0; i < from->value_type_count; i++) {
		const struct profile_value_type *theirs = &from->value_types[i];
		bool renamed = m->other_event && profile_sum(from, i) == PROFILE_SUM_SAMPLES;
		const char *type = renamed ? from->event : theirs->type;
		size_t id = find_value_type(to, type, theirs->unit);
		struct profile_value_type *ours;

		m->values[i] = id;
		if (id < to->value_type_count) {
			ours = &to->value_types[id];
			if (ours->tick_ns != theirs->tick_ns || ours->period != theirs->period) {
				/* Of time, 1 is as long in both. */
				m->different_periods |= !profile_is_clock_time(to, id);
				ours->tick_ns = ours->period = 0;
			}
			continue;
		}
		if (profile_add_value_like(to, theirs) ||
		    profile_string(to, type, &to->value_types[id].type))
			return -ENOMEM;
	}
	if (m->first && from->default_value) {
		to->default_value = m->values[from->default_value - 1] + 1;
		to->names_default = from->names_default;
	}
	m->row = calloc(to->value_type_count + 1, sizeof(*m->row));
	return m->row ? profile_widen_values(to, width) : -ENOMEM;
}

/* Translates a row of values of `from` into m->row. */
static void translate_row(struct merge *m, const int64_t *values)
{
	memset(m->row, 0, m->to->value_type_count * sizeof(*m->row));
	for (size_t i = 0; i < m->from->value_type_count; i++)
		m->row[m->values[i]] = values[i];
}

/* Merges labels, samples, arcs and wall times. */
static int merge_samples(struct merge *m)
{
	const struct profile *from = m->from;
	uint32_t *frames = NULL, *numbers = calloc(from->sample_count + 1, sizeof(*numbers));
	size_t room = 0;
	int err = numbers ? 0 : -ENOMEM;

	for (size_t i = 0; i < from->label_count && !err; i++)
		err = profile_add_labels(m->to, &from->labels[i], &m->labels[i]);
	for (size_t i = 0; i < from->sample_count && !err; i++) {
		const struct profile_sample *s = &from->samples[i];

		err = array_reserve(&frames, &room, s->depth, sizeof(*frames));
		if (err)
			break;
		for (uint32_t j = 0; j < s->depth; j++)
			frames[j] = m->locations[from->frames[s->first_frame + j]];
		translate_row(m, from->values + i * from->value_type_count);
		err = profile_sample(m->to, frames, s->depth, m->labels[s->labels], &numbers[i]);
		if (!err)
			profile_add_values(m->to, numbers[i], m->row);
	}
	for (size_t i = 0; i < from->ticks.count && m->one_host && !err; i++)
		err = tick_list_add(&m->to->ticks, numbers[from->ticks.numbers[i]],
				    from->ticks.times[i]);
	if (m->one_host && !err)
		err = wait_list_append(&m->to->waits, &from->waits, numbers)
			      ?: wait_list_append(&m->to->calls, &from->calls, numbers);
	free(numbers);
	free(frames);
	for (size_t i = 0; i < from->arc_count && !err; i++) {
		struct profile_arc arc = from->arcs[i];

		arc.from = m->locations[arc.from];
		arc.to = m->locations[arc.to];
		arc.labels = m->labels[arc.labels];
		translate_row(m, from->arc_values + i * from->value_type_count);
		err = profile_add_arc(m->to, &arc, m->row);
	}
	for (size_t i = 0; i < from->wall_count && !err; i++) {
		struct profile_wall wall = from->walls[i];

		wall.labels = m->labels[wall.labels];
		err = profile_add_wall(m->to, &wall);
	}
	return err;
}

ORDER(compare_stack_ends, struct profile_stack_end, MOST(count))

static int merge_totals(struct profile *p, const struct profile_totals *from, bool first)
{
	struct profile_totals *t = &p->totals;

	if (!from->known || !(t->known || first)) {
		free(t->lost);
		free(t->stack_ends);
		free(t->throttled);
		*t = (struct profile_totals){ 0 };
		return 0;
	}
	t->known = true;
	account_merge(&t->account, &from->account);
	for (size_t i = 0; i < from->stack_end_count; i++)
		if (profile_add_stack_end(p, from->stack_ends[i].cause, from->stack_ends[i].image,
					  from->stack_ends[i].count))
			return -ENOMEM;
	if (t->stack_end_count)
		qsort(t->stack_ends, t->stack_end_count, sizeof(*t->stack_ends),
		      compare_stack_ends);
	for (size_t i = 0; i < from->throttled_count; i++)
		if (profile_add_throttled(p, &from->throttled[i]))
			return -ENOMEM;
	for (size_t i = 0; i < from->lost_count; i++)
		if (profile_add_lost(p, from->lost[i].cause, from->lost[i].count))
			return -ENOMEM;
	return 0;
}

/* Copies the text of the first profile; clears it if that of a later one differs. */
static int merge_text(struct merge *m, const char **text, const char *from)
{
	if (strcmp(*text, from) == 0)
		return 0;
	return profile_string(m->to, m->first ? from : "", text);
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
	if (to->all_duration_ns || from->all_duration_ns) {
		to->all_duration_ns = to->all_duration_ns ?: to->duration_ns;
		add_u64(&to->all_duration_ns, from->all_duration_ns ?: from->duration_ns);
	}

	m->one_host = m->first || (*to->host && strcmp(to->host, from->host) == 0);
	if (!m->one_host)
		to->ticks.count = to->waits.count = to->calls.count = 0;
	to->waits.complete = from->waits.complete && (m->first || to->waits.complete);
	if (m->first) {
		to->frequency = from->frequency;
		to->format = from->format;
		to->big_endian = from->big_endian;
		to->return_addresses = from->return_addresses;
	}
	if (profile_tick_ns(to) != profile_tick_ns(from))
		to->frequency = 0;
	if (!to->time_ns || (from->time_ns && from->time_ns < to->time_ns))
		to->time_ns = from->time_ns;
	add_u64(&to->duration_ns, from->duration_ns);
	to->salvaged |= from->salvaged;
	to->bits = MAX(to->bits, from->bits);
	to->bucket = MAX(to->bucket, from->bucket);
	if (merge_text(m, &to->event, from->event) || merge_text(m, &to->host, from->host) ||
	    merge_text(m, &to->command, from->command) ||
	    merge_text(m, &to->drop_frames, from->drop_frames) ||
	    merge_text(m, &to->keep_frames, from->keep_frames))
		return -ENOMEM;
	/* The method of the stack walk: a profile without stacks does not count. */
	if (!to->totals.stack_limit && (m->first || from->totals.stack_limit)) {
		if (profile_string(to, from->stacks, &to->stacks))
			return -ENOMEM;
	} else if (m->first || from->totals.stack_limit) {
		if (merge_text(m, &to->stacks, from->stacks))
			return -ENOMEM;
	}
	return merge_totals(to, &from->totals, m->first);
}

/* Merges extras, warnings and comments: each text once. */
static int merge_texts(struct merge *m)
{
	struct profile *to = m->to;
	const struct profile *from = m->from;
	TABLE(const char *) comments = { 0 }; /* by pointer: they are interned */
	uint32_t id;
	int err = 0;

	for (size_t i = 0; i < from->extra_count; i++) {
		const struct profile_extra *x = &from->extras[i];
		uint32_t image = x->image == PROFILE_NONE ? PROFILE_NONE : m->images[x->image];

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
	for (size_t i = 0; i < to->comment_count && !err; i++)
		err = table_add(&comments, &to->comments[i], sizeof(*to->comments), &id);
	for (size_t i = 0; i < from->comment_count && !err; i++) {
		size_t before = comments.count;
		const char *text;

		err = profile_string(to, from->comments[i], &text)
			      ?: table_add(&comments, &text, sizeof(text), &id);
		if (!err && comments.count > before)
			err = profile_add_comment(to, text);
	}
	table_free(&comments);
	return err;
}

/*
 * Joins the images of one build ID, of which a recording has several if the program was copied:
 * else the samples of later profiles would all go to the first of them. Returns 0 or -ENOMEM with e
 * set.
 */
static int join_copies(struct profile *p, struct error *e)
{
	uint32_t *firsts = build_id_firsts(p), i = 0;
	struct profile *joined, separate = *p;
	int err;

	while (firsts && i < p->image_count && firsts[i] == i)
		i++;
	free(firsts);
	if (firsts && i == p->image_count)
		return 0;
	joined = firsts ? profile_new() : NULL;
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
	struct merge m = {
		.to = to,
		.from = from,
		.cache = cache ?: &own,
		.first = !to->value_type_count,
	};
	bool merged_before = cache && cache->indexed;
	int err = m.first || merged_before ? 0 : join_copies(to, e);

	if (err)
		return err;
	/* If both are known. */
	m.other_event =
		!m.first && *from->event &&
		(*to->event ? strcmp(to->event, from->event) != 0
			    : find_value_type(to, "samples", "count") == to->value_type_count ||
				      find_value_type(to, from->event, "count") <
					      to->value_type_count);
	m.images = calloc(from->image_count + 1, sizeof(*m.images));
	m.mappings = calloc(from->mapping_count + 1, sizeof(*m.mappings));
	m.functions = calloc(from->function_count + 1, sizeof(*m.functions));
	m.locations = calloc(from->location_count + 1, sizeof(*m.locations));
	m.labels = calloc(from->label_count + 1, sizeof(*m.labels));
	if (!m.images || !m.mappings || !m.functions || !m.locations || !m.labels)
		err = -ENOMEM;
	err = err ?: merge_value_types(&m);
	err = err ?: merge_header(&m);
	err = err ?: merge_images(&m);
	err = err ?: merge_mappings(&m);
	for (uint32_t i = 0; i < from->function_count && !err; i++)
		err = profile_add_function(to, &from->functions[i], &m.functions[i]);
	err = err ?: merge_locations(&m);
	err = err ?: merge_samples(&m);
	err = err ?: merge_texts(&m);
	merge_cache_free(&own);
	free(m.images);
	free(m.mappings);
	free(m.functions);
	free(m.locations);
	free(m.contents);
	free(m.lines);
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
