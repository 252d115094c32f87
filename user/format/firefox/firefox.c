// SPDX-License-Identifier: GPL-2.0-only
/*
 * JSON of the Firefox Profiler, only written: its "processed profile format" of version 61
 * (docs-developer/CHANGELOG-formats.md and src/types/profile.ts of its sources), whose tables of
 * stacks, frames and functions all threads share. It opens files of older versions, too.
 *
 * A table is an object of columns, which are arrays of the same length. Frames are numbered as the
 * lines of locations are, the outermost of inlined functions first; a location without lines has
 * one frame.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "format/pieces.h"
#include "profile/build_id.h"
#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "profile/thread_state.h"
#include "util/array.h"
#include "util/sum.h"
#include "util/table.h"

#define FORMAT_VERSION 61

/* How long a sample without a time is shown, if the period is unknown. Bound: pace. */
#define UNKNOWN_TICK_NS 1000000

/* Bound: format. */
#define BREAKPAD_ID_BYTES 16

/*
 * More rows than the Firefox Profiler could show.
 * Bound: caller: rows of stacks in a file; then: it is not written.
 */
#define STACKS_MAX 4000000

/* The numbers of categories[]. Those of waits follow as in enum thread_state. */
enum category {
	CATEGORY_OTHER,
	CATEGORY_USER,
	CATEGORY_KERNEL,
	CATEGORY_STATES,
};

/* "transparent" is for threads that have nothing to do. There has to be a grey one. */
static const struct {
	const char *name, *color;
} categories[] = {
	[CATEGORY_OTHER] = { "Other", "grey" },
	[CATEGORY_USER] = { "User", "yellow" },
	[CATEGORY_KERNEL] = { "Kernel", "orange" },
	[CATEGORY_STATES + THREAD_RUNNABLE] = { "Runnable (no free CPU)", "red" },
	[CATEGORY_STATES + THREAD_BLOCKED] = { "Blocked", "purple" },
	[CATEGORY_STATES + THREAD_IDLE] = { "Idle", "transparent" },
	/* No frame has it; THREAD_ON_CPU would else be a hole in the list. */
	[CATEGORY_STATES + THREAD_ON_CPU] = { "On CPU", "green" },
};

#define CATEGORY_COUNT (sizeof(categories) / sizeof(*categories))

struct text {
	const char *text;
	uint32_t source; /* its number among the source files, + 1; 0: it is none */
};

struct function {
	uint32_t name_text, file_text; /* the numbers of texts; "" is an unknown file */
	uint32_t image;		       /* PROFILE_NONE: none that has a name */
	uint32_t line;		       /* where it begins; 0: unknown */
	/* What follows from these: numbers; INDEX_NONE: it has none */
	uint32_t library, source;
};

/* An image with functions */
struct library {
	uint32_t number, image, name_text;
};

struct frame {
	uint32_t function, line, column, depth;
	uint32_t category; /* enum category */
};

struct stack {
	uint32_t prefix; /* the caller's; INDEX_NONE: it is the outermost */
	uint32_t frame;
};

/* Names of processes */
struct process {
	uint64_t id; /* PID and generation */
	const char *name;
};

struct writer {
	const struct profile *p;
	FILE *out;
	size_t value;
	char **unnamed;	 /* profile_pc_names() */
	uint32_t *first; /* of each location: its frames begin with this one */
	struct frame *frames;
	size_t frame_count;
	TABLE(struct function) functions;
	TABLE(struct stack) stacks;
	uint32_t *stack_of; /* each sample's; INDEX_NONE: it has no frames */
	TABLE(struct text) texts;
	TABLE(struct process) processes;
	struct library *libraries;
	uint32_t *library_of; /* the number of each image + 1; 0: no function is in it */
	size_t library_count;
	uint32_t *sources; /* their texts */
	size_t source_count, source_room;
	struct pieces pieces;
};

static int text_number(struct writer *w, const char *text, uint32_t *number)
{
	return table_add(&w->texts, &(struct text){ .text = text }, TABLE_TEXT, number);
}

/* name, file, and the image and line of `f`: sets *number to that of the function. */
static int add_function(struct writer *w, const char *name, const char *file, struct function f,
			uint32_t *number)
{
	struct text *text;

	if (text_number(w, name, &f.name_text) || text_number(w, file, &f.file_text))
		return -ENOMEM;
	text = &w->texts.all[f.file_text];
	if (*file && !text->source) {
		if (array_add(w->sources, w->source_count, w->source_room, f.file_text))
			return -ENOMEM;
		text->source = w->source_count;
	}
	f.source = *file ? text->source - 1 : INDEX_NONE;
	f.library = INDEX_NONE;
	if (f.image != PROFILE_NONE) {
		struct library *l = &w->libraries[w->library_count];

		if (!w->library_of[f.image]) {
			l->number = w->library_count++;
			l->image = f.image;
			w->library_of[f.image] = w->library_count;
			if (text_number(w, profile_basename(w->p->images[f.image].path),
					&l->name_text))
				return -ENOMEM;
		}
		f.library = w->library_of[f.image] - 1;
	}
	return table_add(&w->functions, &f, offsetof(struct function, library), number);
}

static enum category category_of(const struct profile *p, const struct profile_location *l,
				 const char *name)
{
	const char *reason;
	size_t size;
	enum thread_state state = thread_state_of(name, &reason, &size);

	if (state != THREAD_ON_CPU)
		return CATEGORY_STATES + state;
	if (l->mapping == PROFILE_NONE)
		return CATEGORY_OTHER;
	/* Of images in brackets, the kernel's modules are in its half of the addresses. */
	if (image_is_in_kernel(p->images[p->mappings[l->mapping].image].path) || l->address >> 63)
		return CATEGORY_KERNEL;
	return CATEGORY_USER;
}

static int find_frames(struct writer *w)
{
	const struct profile *p = w->p;
	size_t count = 0;

	for (size_t i = 0; i < p->location_count; i++)
		count += p->locations[i].line_count ?: 1;
	w->unnamed = profile_pc_names(p);
	w->first = calloc(p->location_count + 1, sizeof(*w->first));
	w->libraries = calloc(p->image_count + 1, sizeof(*w->libraries));
	w->library_of = calloc(p->image_count + 1, sizeof(*w->library_of));
	w->frames = calloc(count + 1, sizeof(*w->frames));
	if (!w->unnamed || !w->first || !w->libraries || !w->library_of || !w->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct profile_image *image = profile_location_image(p, i);
		struct function f = {
			.image = image && *image->path ? (uint32_t)(image - p->images)
						       : PROFILE_NONE,
		};
		struct frame *frame = &w->frames[w->frame_count];

		w->first[i] = w->frame_count;
		w->frame_count += l->line_count ?: 1;
		if (!l->line_count) {
			if (add_function(w, w->unnamed[i], "", f, &frame->function))
				return -ENOMEM;
			frame->category = category_of(p, l, w->unnamed[i]);
		}
		for (uint32_t j = l->line_count; j-- > 0; frame++) {
			const struct profile_line *line = &p->lines[l->first_line + j];
			const struct profile_function *function = &p->functions[line->function];

			f.line = line->file ? 0 : function->start_line;
			frame->line = line->line;
			frame->column = line->column;
			frame->depth = l->line_count - 1 - j;
			frame->category = category_of(p, l, function->name);
			if (add_function(w, function->name, line->file ?: function->file, f,
					 &frame->function))
				return -ENOMEM;
		}
	}
	w->first[p->location_count] = w->frame_count;
	return 0;
}

/*
 * Finds the stack of each sample; a caller's number is below its callees'. Returns 0, -ENOMEM or
 * -E2BIG.
 */
static int find_stacks(struct writer *w)
{
	const struct profile *p = w->p;

	w->stack_of = calloc(p->sample_count + 1, sizeof(*w->stack_of));
	if (!w->stack_of)
		return -ENOMEM;
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		uint32_t number = INDEX_NONE;

		for (uint32_t depth = s->depth; depth-- > 0;) {
			uint32_t location = p->frames[s->first_frame + depth];

			for (uint32_t frame = w->first[location]; frame < w->first[location + 1];
			     frame++) {
				const struct stack stack = { number, frame };

				if (table_add(&w->stacks, &stack, sizeof(stack), &number))
					return -ENOMEM;
				if (number >= STACKS_MAX)
					return -E2BIG;
			}
		}
		w->stack_of[i] = number;
	}
	return 0;
}

static uint64_t process_id(const struct profile_labels *l)
{
	return (uint64_t)l->generation << 32 | l->pid;
}

/* Nanoseconds as milliseconds, with a point in every locale. */
static void put_ms(uint64_t ns, FILE *out)
{
	unsigned int rest = ns % 1000000;

	fprintf(out, "%" PRIu64, ns / 1000000);
	if (rest)
		fprintf(out, ".%06u", rest);
}

/* Begins a column of a table; then put_comma() precedes each element but the first. */
static void put_column(const char *name, FILE *out)
{
	fprintf(out, ",\n\"%s\":[", name);
}

static void put_comma(size_t number, FILE *out)
{
	if (number)
		putc(',', out);
}

/* The ID of a debug file as Breakpad writes it: the build ID's first bytes as a GUID, and an age.
 */
static void put_breakpad_id(const struct profile_image *image, FILE *out)
{
	static const uint8_t order[BREAKPAD_ID_BYTES] = { 3, 2, 1,  0,	5,  4,	7,  6,
							  8, 9, 10, 11, 12, 13, 14, 15 };

	putc('"', out);
	for (size_t i = 0; i < BREAKPAD_ID_BYTES && image->build_id_size; i++)
		fprintf(out, "%02X",
			order[i] < image->build_id_size ? image->build_id[order[i]] : 0);
	fputs(image->build_id_size ? "0\"" : "\"", out);
}

static void put_libraries(const struct writer *w)
{
	FILE *out = w->out;

	fputs(",\n\"libs\":[", out);
	for (size_t i = 0; i < w->library_count; i++) {
		const struct profile_image *image = &w->p->images[w->libraries[i].image];
		const char *name = profile_basename(image->path);
		char build_id[BUILD_ID_TEXT_SIZE];

		fputs(i ? ",\n{\"arch\":\"\",\"name\":" : "\n{\"arch\":\"\",\"name\":", out);
		json_text_put(name, out);
		fputs(",\"path\":", out);
		json_text_put(image->path, out);
		fputs(",\"debugName\":", out);
		json_text_put(name, out);
		fputs(",\"debugPath\":", out);
		json_text_put(image->path, out);
		fputs(",\"breakpadId\":", out);
		put_breakpad_id(image, out);
		fputs(",\"codeId\":", out);
		build_id_format(image->build_id, image->build_id_size, build_id);
		if (*build_id)
			json_text_put(build_id, out);
		else
			fputs("null", out);
		putc('}', out);
	}
	putc(']', out);
}

static void put_meta(const struct writer *w)
{
	const struct profile *p = w->p;
	FILE *out = w->out;

	fputs("{\"meta\":{\"interval\":", out);
	put_ms(profile_tick_ns(p) ?: UNKNOWN_TICK_NS, out);
	fputs(",\"startTime\":", out);
	put_ms(p->time_ns, out);
	if (p->duration_ns) {
		fputs(",\"profilingStartTime\":0,\"profilingEndTime\":", out);
		put_ms(p->duration_ns, out);
	}
	fputs(",\"product\":", out);
	json_text_put(*p->command ? p->command : "profil", out);
	if (*p->host) {
		fputs(",\"device\":", out);
		json_text_put(p->host, out);
	}
	fputs(",\"importedFrom\":\"profil " PROFIL_VERSION "\",\n\"processType\":0,\"stackwalk\":1,"
	      "\"debug\":false,\"version\":24,\"symbolicated\":true,"
	      "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
	      "\"markerSchema\":[],\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
	      "\"threadCPUDelta\":\"ns\"},"
	      "\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]},\n",
	      out);
	fprintf(out, "\"preprocessedProfileVersion\":%d,\"categories\":[", FORMAT_VERSION);
	for (size_t i = 0; i < CATEGORY_COUNT; i++) {
		put_comma(i, out);
		fprintf(out, "\n{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
			categories[i].name, categories[i].color);
	}
	fputs("]}", out);
}

/* A column of a table: a number for each row, or the same text for all. */
struct column {
	const char *name;
	size_t number;	  /* where a row has it, a uint32_t; CONSTANT: it has none */
	const char *text; /* instead of `none`, and of no number; NULL: all numbers are some */
	uint32_t none;
};

#define CONSTANT	SIZE_MAX
#define AT(row, member) offsetof(struct row, member)

/* clang-format off */
static const struct column function_columns[] = {
	{ "name", AT(function, name_text), NULL, 0 },
	{ "isJS", CONSTANT, "false", 0 },
	{ "relevantForJS", CONSTANT, "false", 0 },
	{ "resource", AT(function, library), "-1", INDEX_NONE },
	{ "source", AT(function, source), "null", INDEX_NONE },
	{ "lineNumber", AT(function, line), "null", 0 },
	{ "columnNumber", CONSTANT, "null", 0 },
	{ 0 },
};

/* A resource for each library, with its number. 1: it is a library. */
static const struct column resource_columns[] = {
	{ "lib", AT(library, number), NULL, 0 },
	{ "name", AT(library, name_text), NULL, 0 },
	{ "host", CONSTANT, "null", 0 },
	{ "type", CONSTANT, "1", 0 },
	{ 0 },
};

static const struct column source_columns[] = {
	{ "id", CONSTANT, "null", 0 },
	{ "filename", 0, NULL, 0 },
	{ "startLine", CONSTANT, "1", 0 },
	{ "startColumn", CONSTANT, "1", 0 },
	{ "sourceMapURL", CONSTANT, "null", 0 },
	{ 0 },
};

/* Addresses would be those of native symbols, which are for looking up names. */
static const struct column frame_columns[] = {
	{ "address", CONSTANT, "-1", 0 },
	{ "inlineDepth", AT(frame, depth), NULL, 0 },
	{ "category", AT(frame, category), NULL, 0 },
	{ "subcategory", CONSTANT, "0", 0 },
	{ "func", AT(frame, function), NULL, 0 },
	{ "nativeSymbol", CONSTANT, "null", 0 },
	{ "innerWindowID", CONSTANT, "0", 0 },
	{ "line", AT(frame, line), "null", 0 },
	{ "column", AT(frame, column), "null", 0 },
	{ 0 },
};

static const struct column stack_columns[] = {
	{ "frame", AT(stack, frame), NULL, 0 },
	{ "prefix", AT(stack, prefix), "null", INDEX_NONE },
	{ 0 },
};
/* clang-format on */

/* Writes a table of `count` rows, each `size` bytes. */
static void put_table(const char *name, const struct column *c, const void *rows, size_t size,
		      size_t count, FILE *out)
{
	fprintf(out, ",\n\"%s\":{\"length\":%zu", name, count);
	for (; c->name; c++) {
		put_column(c->name, out);
		for (size_t i = 0; i < count; i++) {
			uint32_t number = c->none;

			if (c->number != CONSTANT)
				memcpy(&number, (const char *)rows + i * size + c->number,
				       sizeof(number));
			put_comma(i, out);
			if (c->text && number == c->none)
				fputs(c->text, out);
			else
				fprintf(out, "%" PRIu32, number);
		}
		putc(']', out);
	}
	putc('}', out);
}

/*
 * Writes the thread of the pieces from `first` on, before `end`. What has no time is shown behind
 * the rest, one after the other, for as long as it would have taken.
 */
static void put_thread(const struct writer *w, size_t first, size_t end)
{
	const struct profile *p = w->p;
	const struct profile_value_type *type = &p->value_types[w->value];
	const struct piece *pieces = w->pieces.list;
	const struct profile_labels *l;
	uint64_t id, at_ns = 0, tick_ns = profile_tick_ns(p) ?: UNKNOWN_TICK_NS;
	uint32_t process;
	bool is_time = strcmp(type->unit, "nanoseconds") == 0;
	bool is_bytes = strcmp(type->unit, "bytes") == 0;
	bool is_wall = profile_sum(p, w->value) == PROFILE_SUM_WALL;
	bool is_clock = profile_tick_ns(p) && profile_sum(p, w->value) == PROFILE_SUM_SAMPLES;
	size_t last = end - 1;
	FILE *out = w->out;

	/* A thread is called as it was at last: its process may have become another program. */
	while (last > first && pieces[last].time_ns == PIECE_UNTIMED)
		last--;
	l = &p->labels[p->samples[pieces[last].sample].labels];
	id = process_id(l);
	process = table_find(&w->processes, &id, sizeof(id));
	fputs("{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
	      "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\"name\":",
	      out);
	json_text_put(*l->comm ? l->comm : type->type, out);
	fprintf(out, ",\"isMainThread\":%s,\"processName\":",
		!l->pid || l->tid == l->pid ? "true" : "false");
	json_text_put(process == INDEX_NONE ? l->comm : w->processes.all[process].name, out);
	fprintf(out, ",\"pid\":\"%" PRIu32, l->pid);
	if (l->generation)
		fprintf(out, ".%" PRIu32, l->generation);
	fprintf(out, "\",\"tid\":%" PRIu32, l->tid ?: l->pid);
	fputs(",\n\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],"
	      "\"endTime\":[],\"phase\":[],\"category\":[]}",
	      out);
	fprintf(out, ",\n\"samples\":{\"length\":%zu,\"weightType\":\"%s\"", end - first,
		is_time	   ? "tracing-ms"
		: is_bytes ? "bytes"
			   : "samples");
	put_column("stack", out);
	for (size_t i = first; i < end; i++) {
		uint32_t stack = w->stack_of[pieces[i].sample];

		put_comma(i - first, out);
		if (stack == INDEX_NONE)
			fputs("null", out);
		else
			fprintf(out, "%" PRIu32, stack);
	}
	putc(']', out);
	put_column("time", out);
	for (size_t i = first; i < end; i++) {
		uint64_t value = pieces[i].value, length_ns = value;

		if (!is_time && __builtin_mul_overflow(value, tick_ns, &length_ns))
			length_ns = UINT64_MAX;
		if (pieces[i].time_ns != PIECE_UNTIMED)
			at_ns = pieces[i].time_ns > p->time_ns ? pieces[i].time_ns - p->time_ns : 0;
		put_comma(i - first, out);
		put_ms(at_ns, out);
		add_u64(&at_ns, length_ns);
	}
	putc(']', out);
	put_column("weight", out);
	for (size_t i = first; i < end; i++) {
		put_comma(i - first, out);
		if (is_time)
			put_ms(pieces[i].value, out);
		else
			fprintf(out, "%" PRId64, pieces[i].value);
	}
	putc(']', out);
	if (is_wall || is_clock || profile_is_clock_time(p, w->value)) {
		put_column("threadCPUDelta", out);
		for (size_t i = first; i < end; i++) {
			uint64_t ns = pieces[i].value;
			const char *reason;
			size_t size;

			if (is_clock)
				ns = profile_ticks_ns(p, ns);
			if (is_wall && profile_sample_state(p, &p->samples[pieces[i].sample],
							    &reason, &size) != THREAD_ON_CPU)
				ns = 0;
			put_comma(i - first, out);
			fprintf(out, "%" PRIu64, ns);
		}
		putc(']', out);
	}
	fputs("}}", out);
}

static int put_file(struct writer *w)
{
	const struct piece *pieces;
	FILE *out = w->out;
	int err = find_frames(w) ?: find_stacks(w);

	/* A process is called as its main thread is. */
	for (size_t i = 0; i < w->p->label_count && !err; i++) {
		const struct profile_labels *l = &w->p->labels[i];
		const struct process process = { process_id(l), l->comm };
		uint32_t number;

		if (l->pid && l->tid == l->pid)
			err = table_add(&w->processes, &process, sizeof(process.id), &number);
	}
	err = err ?: pieces_find(w->p, w->value, &w->pieces);
	if (err)
		return err;
	put_meta(w);
	put_libraries(w);
	fputs(",\n\"shared\":{\"stringArray\":[", out);
	for (size_t i = 0; i < w->texts.count; i++) {
		fputs(i ? ",\n" : "\n", out);
		json_text_put(w->texts.all[i].text, out);
	}
	putc(']', out);
	put_table("funcTable", function_columns, w->functions.all, sizeof(*w->functions.all),
		  w->functions.count, out);
	put_table("resourceTable", resource_columns, w->libraries, sizeof(*w->libraries),
		  w->library_count, out);
	put_table("sources", source_columns, w->sources, sizeof(*w->sources), w->source_count, out);
	fputs(",\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
	      "\"functionSize\":[]}",
	      out);
	put_table("frameTable", frame_columns, w->frames, sizeof(*w->frames), w->frame_count, out);
	put_table("stackTable", stack_columns, w->stacks.all, sizeof(*w->stacks.all),
		  w->stacks.count, out);
	fputs("},\n\"threads\":[", out);
	pieces = w->pieces.list;
	for (size_t i = 0, end; i < w->pieces.count; i = end) {
		for (end = i; end < w->pieces.count && pieces[end].thread == pieces[i].thread;)
			end++;
		fputs(i ? ",\n" : "\n", out);
		put_thread(w, i, end);
	}
	fputs("]}\n", out);
	return 0;
}

static int firefox_write(const struct profile *p, const struct format_options *options, FILE *out,
			 struct error *e)
{
	struct writer w = { .p = p, .out = out, .value = profile_value(p, options->value) };
	int err = put_file(&w);

	array_free_texts(w.unnamed, p->location_count);
	free(w.first);
	free(w.frames);
	table_free(&w.functions);
	table_free(&w.stacks);
	free(w.stack_of);
	table_free(&w.texts);
	table_free(&w.processes);
	free(w.libraries);
	free(w.library_of);
	free(w.sources);
	pieces_free(&w.pieces);
	if (err != -E2BIG)
		return err ? error_no_memory(e) : 0;
	error_set(e, 0, "more than %d call paths, which the Firefox Profiler could not show",
		  STACKS_MAX);
	error_hint(e, "write pprof, or a part of the profile");
	return err;
}

const struct format format_firefox = {
	.name = "firefox",
	.extensions = (const char *const[]){ ".firefox.json", NULL },
	.keeps = KEEPS(STACKS) | KEEPS(NAMES) | KEEPS(LINES) | KEEPS(INLINED) | KEEPS(IMAGES) |
		 KEEPS(BUILD_IDS) | KEEPS(THREADS) | KEEPS(PERIOD) | KEEPS(TIME) |
		 KEEPS(TICK_TIMES) | KEEPS(DURATION) | KEEPS(HOST) | KEEPS(COMMAND),
	.is_text = true,
	.write = firefox_write,
};
