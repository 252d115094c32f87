// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/pprof/pprof_reader.h"
#include "util/array.h"

/* Decodes samples and labels itself: unpacking a message for each would take most of the time. */

#define TAG(id, type) ((id) << 3 | (type))

/* Fields of Sample and Label */
enum {
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	LABEL_NUM_UNIT = 4
};

/* Some writers give pid and tid this unit. */
#define ID_UNIT "id"

static int add_frame(struct pprof_reader *r, const uint8_t *at, uint64_t id)
{
	uint32_t location = pprof_find_id(&r->locations, id);

	if (location != PROFILE_NONE)
		r->frames[r->frame_count++] = location;
	else if (!pprof_drops_reference(r))
		return pprof_fail(
			r, at, "the sample has location %" PRIu64 ", which is not in the file", id);
	return 0;
}

static int add_value(struct pprof_reader *r, const uint8_t *at, uint64_t value)
{
	(void)at;
	/* pprof_read_sample() reports a count that differs. */
	if (r->value_count < r->p->value_type_count)
		r->values[r->value_count] = value;
	r->value_count++;
	return 0;
}

/* Calls add() for each number of a repeated field, which may be packed. */
static int each_number(struct pprof_reader *r, const struct wire_field *f,
		       int (*add)(struct pprof_reader *r, const uint8_t *at, uint64_t number))
{
	struct wire w = f->content;
	uint64_t number;
	int err = 0;

	if (f->type == WIRE_VARINT)
		return add(r, f->start, f->number);
	while (wire_left(&w) && !err) {
		const uint8_t *at = w.at;

		if (!wire_take_varint(&w, &number))
			return pprof_fail(r, at, "the sample is corrupt: a number is truncated");
		err = add(r, at, number);
	}
	return err;
}

static int add_frames(struct pprof_reader *r, const struct wire_field *f)
{
	size_t most = f->type == WIRE_VARINT ? 1 : wire_left(&f->content);

	if (array_reserve(&r->frames, &r->frame_room, r->frame_count + most, sizeof(*r->frames)))
		return error_no_memory(r->e);
	return each_number(r, f, add_frame);
}

struct label {
	uint64_t key, text, number, unit;
};

static int parse_label(struct pprof_reader *r, struct wire w, struct label *label)
{
	while (wire_left(&w)) {
		struct wire_field f;
		const char *reason = wire_take_field(&w, &f);

		if (reason)
			return pprof_fail(r, f.start, "the label is corrupt: %s", reason);
		switch (TAG(f.id, f.type)) {
		case TAG(LABEL_KEY, WIRE_VARINT):
			label->key = f.number;
			break;
		case TAG(LABEL_STR, WIRE_VARINT):
			label->text = f.number;
			break;
		case TAG(LABEL_NUM, WIRE_VARINT):
			label->number = f.number;
			break;
		case TAG(LABEL_NUM_UNIT, WIRE_VARINT):
			label->unit = f.number;
			break;
		default:
			if (f.id <= LABEL_NUM_UNIT)
				return pprof_fail(r, f.start, "the label is corrupt");
			r->unknown_inside = true;
		}
	}
	return 0;
}

static int read_tag(struct pprof_reader *r, const uint8_t *at, const struct label *label,
		    struct profile_tag *tag)
{
	int err = pprof_string(r, at, label->key, &tag->key);

	tag->text = NULL;
	tag->number = label->number;
	if (!err && label->text)
		err = pprof_string(r, at, label->text, &tag->text);
	return err ?: pprof_string(r, at, label->unit, &tag->unit);
}

static bool is_id(const struct profile_tag *t)
{
	return !t->text && t->number > 0 && t->number <= UINT32_MAX &&
	       (!*t->unit || strcmp(t->unit, ID_UNIT) == 0);
}

/* Sets the member of `labels` for this tag. False: it has none, or it is set already. */
static bool take_field(const struct pprof_reader *r, struct profile_labels *labels,
		       const struct profile_tag *t)
{
	if (is_id(t) && !labels->pid && strcmp(t->key, "pid") == 0)
		labels->pid = t->number;
	else if (is_id(t) && !labels->tid && strcmp(t->key, "tid") == 0)
		labels->tid = t->number;
	else if (is_id(t) && !labels->generation && strcmp(t->key, PPROF_GENERATION) == 0)
		labels->generation = t->number;
	else if (t->text && !*labels->comm && strcmp(t->key, r->thread_key) == 0)
		labels->comm = t->text;
	else if (t->text && !labels->kernel && strcmp(t->key, "mode") == 0 &&
		 strcmp(t->text, "kernel") == 0)
		labels->kernel = true;
	else
		return false;
	return true;
}

static int add_label(struct pprof_reader *r, const struct wire_field *f,
		     struct profile_labels *labels)
{
	struct label label = { 0 };
	struct profile_tag tag;
	int err = parse_label(r, f->content, &label);

	/* A label with neither text nor number is dropped, as by other readers. */
	if (err || !(label.text || label.number || label.unit))
		return err;
	err = read_tag(r, f->start, &label, &tag);
	if (err || take_field(r, labels, &tag))
		return err;
	if (array_reserve(&r->tags, &r->tag_room, r->tag_count + 1, sizeof(*r->tags)))
		return error_no_memory(r->e);
	r->tags[r->tag_count++] = tag;
	return 0;
}

static int parse_sample(struct pprof_reader *r, struct wire w, struct profile_labels *labels)
{
	int err = 0;

	while (wire_left(&w) && !err) {
		struct wire_field f;
		const char *reason = wire_take_field(&w, &f);

		if (reason)
			return pprof_fail(r, f.start, "the sample is corrupt: %s", reason);
		switch (TAG(f.id, f.type)) {
		case TAG(SAMPLE_LOCATION_ID, WIRE_BYTES):
		case TAG(SAMPLE_LOCATION_ID, WIRE_VARINT):
			err = add_frames(r, &f);
			break;
		case TAG(SAMPLE_VALUE, WIRE_BYTES):
		case TAG(SAMPLE_VALUE, WIRE_VARINT):
			err = each_number(r, &f, add_value);
			break;
		case TAG(SAMPLE_LABEL, WIRE_BYTES):
			err = add_label(r, &f, labels);
			break;
		default:
			if (f.id <= SAMPLE_LABEL)
				return pprof_fail(r, f.start, "the sample is corrupt");
			r->unknown_inside = true;
		}
	}
	return err;
}

int pprof_read_sample(struct pprof_reader *r, const struct wire_field *f)
{
	struct profile_labels labels = { .comm = "" };
	size_t types = r->p->value_type_count;
	uint32_t number;
	int err;

	if (types == 0)
		return pprof_fail(r, f->start, "the file has samples but no sample_type");
	if (array_reserve(&r->values, &r->value_room, types, sizeof(*r->values)))
		return error_no_memory(r->e);
	r->frame_count = r->value_count = r->tag_count = 0;
	err = parse_sample(r, f->content, &labels);
	if (err)
		return err;
	if (r->value_count != types)
		return pprof_fail(r, f->start,
				  "the sample has %zu values, but the file has %zu sample types",
				  r->value_count, types);
	labels.tags = r->tags;
	labels.tag_count = r->tag_count;
	if (profile_add_labels(r->p, &labels, &number) ||
	    profile_add_sample(r->p, r->frames, r->frame_count, number, r->values))
		return error_no_memory(r->e);
	return 0;
}
