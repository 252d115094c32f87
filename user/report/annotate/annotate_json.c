// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/annotate.h"

#include "report/json_writer.h"

static void add_counts(struct json_object **object, const struct annotation *a,
		       const struct tallies *t, size_t number)
{
	const int64_t *self = &t->self[number * a->value_count];
	struct json_object *values;

	json_add(object, "self", json_object_new_int64(self[0]));
	if (a->stacks)
		json_add(object, "total", json_object_new_int64(t->total[number]));
	if (a->value_count == 1)
		return;
	values = json_object_new_object();
	for (size_t i = 0; i < a->value_count; i++)
		json_add_named(&values, a->titles[i], json_object_new_int64(self[i]));
	json_add(object, "values", values);
}

static void add_place(struct json_object **object, const struct source_line *s)
{
	json_add_text(object, "file", s->file);
	json_add_number(object, "line", s->number);
	if (!s->inlined)
		return;
	json_add_text(object, "inlined", s->inlined);
	json_add_text(object, "inlined_file", s->inlined_file);
	json_add_number(object, "inlined_line", s->inlined_number);
}

int report_listing_json(struct annotation *a, FILE *out)
{
	const struct source_file *file = NULL;
	struct json_object *object;
	struct json_writer w;

	json_begin(&w, out);
	if (a->function)
		json_member(&w, "function", json_text(a->function));
	if (a->image != PROFILE_NONE)
		json_member(&w, "image", json_text(a->p->images[a->image].path));
	if (a->extent.limit) {
		json_member(&w, "start", json_hex(a->extent.start));
		json_member(&w, "limit", json_hex(a->extent.limit));
	}
	json_member(&w, "self", json_object_new_int64(a->samples));
	if (a->stacks)
		json_member(&w, "total", json_object_new_int64(a->total));
	json_begin_list(&w, "instructions");
	for (size_t i = 0; i < a->code.count && !w.err; i++) {
		const struct instruction *instruction = &a->code.instructions[i];
		bool is_target = instruction->is_target;
		struct source_line s = { .file = "" };

		if (a->code_places)
			s = source_line_inlined(a->code_places, i);
		object = json_object_new_object();
		json_add(&object, "address", json_hex(instruction->address));
		json_add(&object, "target", json_object_new_boolean(is_target));
		json_add(&object, "instruction", json_text(instruction->text));
		add_place(&object, &s);
		add_counts(&object, a, &a->code_counts, i);
		json_element(&w, object);
	}
	json_end_list(&w);
	json_begin_list(&w, "lines");
	for (size_t i = 0; i < a->lines.count && !w.err; i++) {
		const struct source_line *s = &a->lines.lines[i];
		uint32_t number = s->inlined ? s->inlined_number : s->number;

		object = json_object_new_object();
		add_place(&object, s);
		if (source_files_find(&a->files, s->inlined ? s->inlined_file : s->file, &file))
			json_add(&object, "source", NULL);
		else
			json_add_text(&object, "source", source_file_line(file, number));
		add_counts(&object, a, &a->line_counts, i);
		json_element(&w, object);
	}
	json_end_list(&w);
	return json_end(&w);
}
