// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/image_name.h"
#include "report/function_search.h"
#include "report/rows.h"
#include "report/text.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/proc.h"
#include "util/proc_maps.h"
#include "util/sum.h"

/* Disassembles the function. Returns 0, or a negative errno with e set. */
static int read_code(struct annotation *a, struct error *e)
{
	const char *name = a->function ?: "the address";
	const struct profile_image *image;
	char path[PATH_MAX];
	int err;

	if (a->image == PROFILE_NONE)
		return error_set(e, 0, "cannot disassemble %s: it is in no known image", name);
	image = &a->p->images[a->image];
	if (image_is_in_kernel(image->path)) {
		error_set(e, 0, "cannot disassemble %s: %s: kernel code is in no file", name,
			  image->path);
		error_hint(e, "profiltool report --by address -d '%s' lists its addresses",
			   text_basename(image->path));
		return -EINVAL;
	}
	if (image_is_bracketed(image->path))
		return error_set(e, 0, "cannot disassemble %s: %s: it is in no file", name,
				 image->path);
	if (image->unnamed) {
		error_set(e, 0, "cannot disassemble %s: %s: %s", name, image->path, image->unnamed);
		error_hint(e, "if it is on another machine or in a container, annotate there or "
			      "put a copy at that path");
		return -EINVAL;
	}
	if (!a->extent.limit) {
		error_set(e, 0, "%s has no symbol %s: its end is unknown", image->path, name);
		error_hint(e, "give an address; profiltool report --by address -d %s lists them",
			   text_basename(image->path));
		return -ENOENT;
	}
	/* The image's file: by its descriptor, else by its path without " (deleted)". */
	if (image->fd >= 0) {
		snprintf(path, PATH_MAX, "/proc/%d/fd/%d", (int)getpid(), image->fd);
	} else {
		snprintf(path, PATH_MAX, "%s", image->path);
		path[proc_path_size(path)] = '\0';
	}
	err = disassemble(&a->code, path, a->extent.start, a->extent.limit, DISASSEMBLY_SECONDS, e);
	if (err)
		disassembly_free(&a->code);
	return err;
}

/* Looks up the lines of all instructions; a->lines gets the lines of those with samples. */
static int find_code_lines(struct annotation *a, const bool *locations,
			   const struct symbol_options *options, struct error *e)
{
	const struct profile_image *image = &a->p->images[a->image];
	bool *used = calloc(a->code.count + 1, sizeof(*used));
	struct profile *places = profile_new();
	uint32_t image_id, mapping, location;
	int err = 0;

	/* A location for each instruction. */
	a->code_places = places;
	if (!used || !places ||
	    profile_add_image(places, image->path, image->build_id, image->build_id_size,
			      &image_id) ||
	    profile_add_mapping(places, a->extent.start, a->extent.limit, 0, image_id, &mapping)) {
		err = -ENOMEM;
	} else {
		places->mappings[mapping].linked = true;
		if (image->fd >= 0)
			places->images[image_id].fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);
		if (image->root >= 0)
			places->images[image_id].root = fcntl(image->root, F_DUPFD_CLOEXEC, 0);
	}
	for (size_t i = 0; i < a->code.count && !err; i++)
		err = profile_add_location(places, a->code.instructions[i].address, mapping,
					   &location);
	for (uint32_t i = 0; !err && i < a->p->location_count; i++) {
		size_t found = SIZE_MAX;

		if (locations[i])
			found = disassembly_find(&a->code, a->p->locations[i].image_address);
		if (found != SIZE_MAX)
			used[found] = true;
	}
	if (err)
		error_no_memory(e);
	err = err ?: symbol_resolve(places, options, e);
	if (!err && source_lines_make(&a->lines, places, used))
		err = error_no_memory(e);
	free(used);
	a->line_places = places;
	return err;
}

/*
 * A script's source may be in a container. Opens the root directory of a process that has run the
 * function, if it still runs on this machine. Returns a descriptor; -1: there is no such process,
 * or it sees the same files as this one.
 */
static int open_script_root(const struct profile *p, const bool *locations)
{
	uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
	struct proc_stat process;
	char mounts[64], own_mounts[64], host[HOST_NAME_MAX + 1] = "";
	struct stat root, own;
	uint32_t pid, last = 0;
	ssize_t size, own_size;
	int fd;

	if (gethostname(host, sizeof(host) - 1) || strcmp(host, p->host) != 0 || stat("/", &own))
		return -1;
	own_size = readlink("/proc/self/ns/mnt", own_mounts, sizeof(own_mounts));
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		bool found = false;

		pid = p->labels[sample->labels].pid;
		if (!pid || pid == last)
			continue;
		for (uint32_t j = 0; j < sample->depth && !found; j++)
			found = locations[p->frames[sample->first_frame + j]];
		if (!found)
			continue;
		last = pid;
		fd = open(proc_path(pid, 0, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
		/* Another process may have the number by now. */
		if (fd >= 0 && proc_read_stat(pid, &process) == 0 &&
		    boot_ns + process.start_ns / NS_PER_S * NS_PER_S <
			    p->time_ns + p->duration_ns &&
		    fstat(fd, &root) == 0) {
			size = readlink(proc_path(pid, 0, "ns/mnt").text, mounts, sizeof(mounts));
			if (root.st_dev != own.st_dev || root.st_ino != own.st_ino ||
			    size != own_size || memcmp(mounts, own_mounts, size) != 0)
				return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

/* Takes lines from the file's debug information, or if it has none, from the profile. */
static int find_lines(struct annotation *a, struct profile *p, const bool *locations,
		      const struct annotation_options *o, struct error *e)
{
	struct symbol_options options = { .lines = true, .debuginfod = o->debuginfod };
	int err;

	if (o->no_sources)
		return 0;
	a->files.directory = o->source_path;
	if (a->script) {
		a->files.root = open_script_root(p, locations);
		a->files.has_root = a->files.root >= 0;
	}
	if (a->code.count) {
		err = find_code_lines(a, locations, &options, e);
		if (!err && annotation_has_lines(a))
			source_files_trust(&a->files, p->images[a->image].path,
					   p->images[a->image].fd);
		if (err || annotation_has_lines(a))
			return err;
		source_lines_free(&a->lines);
	}
	options.wanted = locations;
	err = symbol_resolve(p, &options, e);
	if (!err && source_lines_make(&a->lines, p, locations))
		err = error_no_memory(e);
	a->line_places = p;
	return err;
}

bool annotation_has_lines(const struct annotation *a)
{
	const struct profile *places = a->code_places;

	for (size_t i = 0; i < a->lines.count; i++)
		if (a->lines.lines[i].number)
			return true;
	for (uint32_t i = 0; places && i < places->location_count; i++)
		if (source_line_of(places, i).number)
			return true;
	return false;
}

bool annotation_is_quiet(const struct annotation *a, const struct tallies *t, size_t number)
{
	for (size_t i = 0; i < a->value_count; i++)
		if (t->self[number * a->value_count + i])
			return false;
	return !t->total[number];
}

/* The instruction and lines that samples of a location are counted for. */
struct place {
	size_t instruction; /* or SIZE_MAX */
	uint32_t line, inlined;
};

struct counter {
	struct annotation *a;
	const bool *locations;
	struct place *places;
	uint64_t stack;	     /* number of the stack that is being counted */
	uint64_t last_stack; /* number of the last one that was in the function */
};

static int make_tallies(struct tallies *t, size_t count, size_t value_count)
{
	t->self = calloc(count + 1, value_count * sizeof(*t->self));
	t->total = calloc(count + 1, sizeof(*t->total));
	t->last_stack = calloc(count + 1, sizeof(*t->last_stack));
	return t->self && t->total && t->last_stack ? 0 : -ENOMEM;
}

static void free_tallies(struct tallies *t)
{
	free(t->self);
	free(t->total);
	free(t->last_stack);
}

/* Adds a stack once, however often the function recurs in it. */
static void add_total(int64_t *total, uint64_t *last_stack, uint64_t stack, int64_t value)
{
	if (*last_stack != stack)
		add_i64(total, value);
	*last_stack = stack;
}

static void tally_samples(const struct counter *c, struct tallies *t, size_t number,
			  const int64_t *values, bool leaf)
{
	const struct annotation *a = c->a;

	for (size_t i = 0; i < a->value_count && leaf; i++)
		add_i64(&t->self[number * a->value_count + i], values[a->values[i]]);
	add_total(&t->total[number], &t->last_stack[number], c->stack, values[a->values[0]]);
}

static void count_frame(struct counter *c, uint32_t location, const int64_t *values, bool leaf)
{
	const struct place *place = &c->places[location];
	int64_t value = values[c->a->values[0]];

	if (!c->locations[location])
		return;
	if (leaf) {
		add_i64(&c->a->samples, value);
		add_u64(&c->a->samples_weight, magnitude(value));
	}
	if (c->last_stack != c->stack)
		add_u64(&c->a->total_weight, magnitude(value));
	add_total(&c->a->total, &c->last_stack, c->stack, value);
	if (place->instruction != SIZE_MAX)
		tally_samples(c, &c->a->code_counts, place->instruction, values, leaf);
	if (place->line != PROFILE_NONE)
		tally_samples(c, &c->a->line_counts, place->line, values, leaf);
	if (place->inlined != PROFILE_NONE)
		tally_samples(c, &c->a->line_counts, place->inlined, values, leaf);
}

/* Without stacks: adds the costs of recorded calls to the totals of their instructions. */
static void count_recorded_calls(struct counter *c)
{
	const struct profile *p = c->a->p;
	bool any = false;

	for (size_t i = 0; i < p->arc_count && !c->a->stacks; i++) {
		const int64_t *values = &p->arc_values[i * p->value_type_count];

		if (p->arcs[i].kind != PROFILE_CALL || !c->locations[p->arcs[i].from])
			continue;
		c->stack++;
		any |= values[c->a->values[0]] != 0;
		count_frame(c, p->arcs[i].from, values, false);
	}
	c->a->stacks |= any;
	/* Recursion counts calls several times. */
	if (c->a->total_weight > c->a->all_samples)
		c->a->total_weight = c->a->all_samples;
	if (magnitude(c->a->total) > c->a->total_weight)
		c->a->total = (c->a->total < 0 ? -1 : 1) * (int64_t)c->a->total_weight;
}

/* Counts the samples of instructions and lines. Returns 0, or -ENOMEM with e set. */
static int count_function(struct annotation *a, const char *value, const bool *locations,
			  struct error *e)
{
	const struct profile *p = a->p;
	struct counter c = { .a = a, .locations = locations };
	bool failed;

	a->all_samples = profile_magnitude(p, value);
	a->values = calloc(p->value_type_count + 1, sizeof(*a->values));
	a->titles = calloc(p->value_type_count + 1, sizeof(*a->titles));
	c.places = calloc(p->location_count + 1, sizeof(*c.places));
	failed = !a->values || !a->titles || !c.places;
	if (!failed)
		a->value_count = rows_values(p, value, a->values);
	for (size_t i = 0; i < a->value_count && !failed; i++) {
		a->titles[i] = rows_title(p, a->values[i]);
		failed = !a->titles[i];
	}
	if (failed || make_tallies(&a->code_counts, a->code.count, a->value_count) ||
	    make_tallies(&a->line_counts, a->lines.count, a->value_count)) {
		free(c.places);
		return error_no_memory(e);
	}
	for (uint32_t i = 0; i < p->location_count; i++) {
		struct place *place = &c.places[i];
		size_t line = i;

		*place = (struct place){ SIZE_MAX, PROFILE_NONE, PROFILE_NONE };
		if (!locations[i])
			continue;
		if (a->code.count)
			place->instruction =
				disassembly_find(&a->code, p->locations[i].image_address);
		if (a->line_places != p)
			line = place->instruction;
		if (!a->line_places || line == SIZE_MAX)
			continue;
		place->line = a->lines.own[line];
		place->inlined = a->lines.inlined[line];
	}
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];

		c.stack++;
		a->stacks |= sample->depth > 1;
		for (uint32_t j = 0; j < sample->depth; j++)
			count_frame(&c, p->frames[sample->first_frame + j],
				    &p->values[i * p->value_type_count], j == 0);
	}
	count_recorded_calls(&c);
	free(c.places);
	return 0;
}

int annotation_make(struct annotation *a, struct profile *p, const struct annotation_options *o,
		    struct error *e)
{
	struct found_function found;
	int err = function_search(p, o->function, o->image, o->value, &found, e);

	*a = (struct annotation){ .p = p };
	for (uint32_t i = 0; !err && i < p->location_count; i++)
		a->script |= found.locations[i] && profile_is_script(p, i);
	if (!err) {
		a->image = found.image;
		a->function = found.name;
		a->extent = found.extent;
		if (a->script)
			error_set(&a->no_code, 0, "%s is a function of a script or its interpreter",
				  a->function);
		else
			read_code(a, &a->no_code);
		err = find_lines(a, p, found.locations, o, e);
	}
	if (!err && !a->code.count && !annotation_has_lines(a)) {
		*e = a->no_code;
		err = -EINVAL;
	}
	err = err ?: count_function(a, o->value, found.locations, e);
	free(found.locations);
	return err;
}

/* Prints a line: prefix, before, the name in its visible form, after. */
static void print_note(const char *prefix, const char *before, const char *name, const char *after,
		       FILE *out)
{
	fprintf(out, "%s%s", prefix, before);
	text_print(name, out);
	fprintf(out, "%s\n", after);
}

/* The source files that one note is about. */
struct noted_files {
	const char *first; /* the name of one */
	size_t count;
};

static void add_file(struct noted_files *files, const struct source_file *f)
{
	files->first = files->first ?: f->name;
	files->count++;
}

static void print_files(const char *prefix, const char *before, const struct noted_files *files,
			const char *after, FILE *out)
{
	char more[128];

	if (!files->count)
		return;
	snprintf(more, sizeof(more), " and %zu more%s", files->count - 1, after);
	print_note(prefix, before, files->first, files->count > 1 ? more : after, out);
}

/*
 * Whether the source of a script has the function's name where it begins. A container that is gone
 * may have had another file of this path. True if that cannot be known.
 */
static bool has_function_line(const struct annotation *a, const struct source_file *f)
{
	const char *name = a->function, *line;
	size_t size;

	/* The last part of "Class.method", "f.<locals>.g", "Package::f" and "Class->method". */
	for (const char *at = name; *at; at++)
		if (strchr(".:>\\", *at))
			name = at + 1;
	size = strcspn(name, "<>({[ ");
	if (!size || name[size])
		return true;
	for (uint32_t i = 0; i < a->p->function_count; i++) {
		const struct profile_function *function = &a->p->functions[i];

		if (!function->start_line || strcmp(function->name, a->function) != 0 ||
		    strcmp(function->file, f->name) != 0)
			continue;
		line = source_file_line(f, function->start_line);
		line = line ? line + strspn(line, " \t") : "";
		/* A decorator is before the name. */
		return strstr(line, name) || *line == '@' || strncmp(line, "#[", 2) == 0;
	}
	return true;
}

void annotation_notes(const struct annotation *a, const char *prefix, FILE *out)
{
	const char *image = a->image == PROFILE_NONE ? "" : a->p->images[a->image].path;
	struct noted_files missing = { 0 }, changed = { 0 }, edited = { 0 }, large = { 0 },
			   private = { 0 }, other = { 0 };
	struct stat status;
	bool has_image = *image == '/' && stat(image, &status) == 0;

	if (!a->code.count && !a->script)
		print_note(prefix, "no instructions: ", a->no_code.what, "", out);
	if (!a->code.count && !a->script && a->no_code.hint[0])
		print_note(prefix, "  ", a->no_code.hint, "", out);
	if (a->code_places && !annotation_has_lines(a))
		print_note(prefix, "no source lines: ", image,
			   " has no debug information for it; install its -dbgsym package, or "
			   "build it with -g",
			   out);
	for (size_t i = 0; a->code_places && i < a->code_places->warning_count; i++)
		print_note(prefix, "", a->code_places->warnings[i], "", out);
	for (size_t i = 0; i < a->files.count; i++) {
		const struct source_file *f = a->files.files[i];

		if (f->too_large)
			add_file(&large, f);
		else if (f->is_private)
			add_file(&private, f);
		else if (*f->name && !f->text)
			add_file(&missing, f);
		else if (f->text && a->script && !has_function_line(a, f))
			add_file(&other, f);
		else if (f->text && a->script && (uint64_t)f->mtime > a->p->time_ns / 1000000000 &&
			 a->p->time_ns)
			add_file(&edited, f);
		else if (f->text && !a->script && has_image && f->mtime > status.st_mtime)
			add_file(&changed, f);
	}
	print_files(prefix, "source file not found: ", &missing,
		    "; --source-path names its directory", out);
	print_files(prefix, "source file not read: ", &private,
		    ": not all may read it; if it is meant, --source-path names its directory",
		    out);
	print_files(prefix, "source file not read: ", &large,
		    ": all together are limited to 64 MiB", out);
	print_files(prefix, "the function does not begin where it did: ", &other,
		    "; it is another file, or was changed", out);
	print_files(prefix, "changed since the recording began: ", &edited,
		    "; line numbers may be wrong", out);
	print_files(prefix, "changed since the program was built: ", &changed,
		    "; line numbers may be wrong", out);
}

void annotation_free(struct annotation *a)
{
	disassembly_free(&a->code);
	free_tallies(&a->code_counts);
	free_tallies(&a->line_counts);
	profile_free(a->code_places);
	source_lines_free(&a->lines);
	source_files_free(&a->files);
	for (size_t i = 0; i < a->value_count; i++)
		free(a->titles[i]);
	free(a->titles);
	free(a->values);
	*a = (struct annotation){ 0 };
}
