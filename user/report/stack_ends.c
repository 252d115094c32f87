// SPDX-License-Identifier: GPL-2.0-only
#include "report/stack_ends.h"

#include <string.h>

#include "report/json_writer.h"
#include "report/text.h"
#include "symbol/runtime.h"
#include "util/sum.h"

struct cause {
	const char *name; /* as in profile_stack_end */
	const char *text; /* printed before " in IMAGE" */
	const char *hint; /* or "" */
};

static const struct cause causes[] = {
	{ "no_frame_information", "no call frame information",
	  "build it with -fasynchronous-unwind-tables or -fno-omit-frame-pointer; code that is "
	  "made at run time needs frame pointers" },
	{ "unread_frame_information", "call frame information that could not be read",
	  "a warning of the recording says why" },
	{ "late_frame_information", "call frame information that was not read yet", "" },
	{ "no_room", "no room in the unwind tables for the call frame information",
	  "record with a larger --unwind-memory" },
	{ "gap", "code without call frame information",
	  "C code needs -fasynchronous-unwind-tables, assembly .cfi directives" },
	{ "unsupported", "unsupported call frame information", "" },
	{ "bad_frame", "wrong call frame information", "" },
	{ "unreadable", "the stack could not be read", "" },
	{ "process_unknown", "the process is so new that its mappings were unknown", "" },
	{ "mapping_unknown", "return addresses outside all known mappings", "" },
	{ "walk_too_long", "the walks of the process's stacks took more than a tenth of its time",
	  "record with a lower --frequency" },
	{ "32_bit", "32-bit processes are walked by frame pointers",
	  "build them with -fno-omit-frame-pointer" },
};

#define CAUSES (sizeof(causes) / sizeof(*causes))

static const struct cause *find_cause(const char *name)
{
	for (size_t i = 0; i < CAUSES; i++)
		if (strcmp(causes[i].name, name) == 0)
			return &causes[i];
	return NULL;
}

/* How to make such stacks whole; or "". */
static const char *hint_of(const struct profile *p, const struct cause *cause, const char *image)
{
	const char *hint = NULL;

	if (cause == causes) /* code made at run time, if no runtime is found */
		hint = runtime_frame_hint(p, image);
	return hint ?: cause ? cause->hint : "";
}

/* The count of all entries with the cause of entry `first`; 0 if an earlier one has it. */
static uint64_t count_cause(const struct profile_totals *t, size_t first)
{
	uint64_t all = 0;

	for (size_t i = 0; i < t->stack_end_count; i++) {
		if (strcmp(t->stack_ends[i].cause, t->stack_ends[first].cause) != 0)
			continue;
		if (i < first)
			return 0;
		add_u64(&all, t->stack_ends[i].count);
	}
	return all;
}

void stack_ends_print(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_totals *t = &p->totals;
	char percent[TEXT_PERCENT_SIZE];
	const struct cause *cause;

	if (!t->stacks_user || strcmp(p->stacks, "cfi"))
		return;
	text_percent(percent, t->stacks_complete, t->stacks_user);
	fprintf(out, "%s%s %% of the user stacks reach the program's start\n", prefix, percent);
	for (size_t i = 0; i < t->stack_end_count; i++) {
		const char *name = t->stack_ends[i].cause, *first = NULL, *hint;
		uint64_t count = count_cause(t, i);
		size_t others = 0;

		if (!count || (double)count * 200 < t->stacks_user) /* half a percent */
			continue;
		text_percent(percent, count, t->stacks_user);
		/* "CAUSE in A and 2 others: HINT", where A is the most frequent image. */
		for (size_t j = 0; j < t->stack_end_count; j++) {
			const struct profile_stack_end *end = &t->stack_ends[j];

			if (strcmp(end->cause, name) != 0 || !*end->image)
				continue;
			others += first != NULL;
			first = first ?: end->image;
		}
		fprintf(out, "%s  %s %%: ", prefix, percent);
		/* Later versions can record further causes: print their names. */
		cause = find_cause(name);
		text_print(cause ? cause->text : name, out);
		if (first) {
			fputs(" in ", out);
			text_print(text_basename(first), out);
		}
		if (others)
			fprintf(out, " and %zu other%s", others, others == 1 ? "" : "s");
		hint = hint_of(p, cause, first ?: "");
		if (*hint)
			fprintf(out, ": %s", hint);
		fputc('\n', out);
	}
}

struct json_object *stack_ends_json(const struct profile *p)
{
	const struct profile_totals *t = &p->totals;
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < t->stack_end_count; i++) {
		const struct profile_stack_end *end = &t->stack_ends[i];
		const struct cause *cause = find_cause(end->cause);
		struct json_object *object = json_object_new_object();

		json_add(&object, "cause", json_text(end->cause));
		json_add(&object, "image", json_text(end->image));
		json_add(&object, "count", json_object_new_uint64(end->count));
		json_add(&object, "hint", json_text(hint_of(p, cause, end->image)));
		json_append(&array, object);
	}
	return array;
}
