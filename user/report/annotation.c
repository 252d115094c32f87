// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/image_name.h"
#include "profile/profile.h"
#include "report/rows.h"
#include "report/text.h"
#include "symbol/symbol.h"
#include "util/file.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/number.h"
#include "util/proc.h"
#include "util/proc_maps.h"
#include "util/sum.h"

/*
 * Opens `name` below a directory: as a whole, else without its first component, its first two, and
 * so on. Returns the descriptor or a negative errno.
 */
static int open_below(const char *directory, const char *name, struct stat *status)
{
	char path[PATH_MAX];
	int fd = -ENOENT;

	/* ".." would lead out of the directory. */
	for (const char *dots = name; (dots = strstr(dots, "..")); dots += 2)
		if ((dots == name || dots[-1] == '/') && (dots[2] == '/' || !dots[2]))
			return -EINVAL;
	for (const char *rest = name; rest && fd < 0; rest = strchr(rest, '/')) {
		rest += strspn(rest, "/");
		if (snprintf(path, sizeof(path), "%s/%s", directory, rest) < (int)sizeof(path))
			fd = file_open_regular(-1, path, status);
	}
	return fd;
}

static ssize_t read_whole(int fd, char *text, size_t size)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < size && n > 0) {
		n = pread(fd, text + done, size - done, (off_t)done);
		if (n > 0)
			done += n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	return n < 0 ? -errno : (ssize_t)done;
}

static int read_source(struct source_files *s, struct source_file *f)
{
	/*
	 * A profile, or a user's program, can name any file: run by root, annotate would show all
	 * users files that only root may read.
	 */
	const unsigned int rules = geteuid() == 0 ? FILE_PUBLIC : 0;
	struct stat status;
	int fd = file_open_regular_by_rules(s->has_root ? s->root : -1, f->name, rules, &status);
	size_t room = 0;
	ssize_t size;

	if (fd == -EACCES && s->own_directory && strstr(f->name, s->own_directory) == f->name) {
		int root = file_open_by_rules(-1, s->own_directory, O_PATH | O_DIRECTORY,
					      FILE_OWN_PATH);

		/* Links are resolved as after chroot(2): none leads out. */
		if (root >= 0) {
			fd = file_open_regular(root, f->name + strlen(s->own_directory), &status);
			close(root);
		}
	}
	f->is_private = rules && fd == -EACCES;
	if (fd < 0 && s->directory)
		fd = open_below(s->directory, f->name, &status);
	if (fd < 0)
		return 0;
	f->is_private = false;
	if (status.st_size > (off_t)(SOURCE_FILES_MAX - s->bytes)) {
		f->too_large = true;
		close(fd);
		return 0;
	}
	f->text = calloc(1, status.st_size + 1);
	size = f->text ? read_whole(fd, f->text, status.st_size) : -ENOMEM;
	close(fd);
	if (!f->text)
		return -ENOMEM;
	f->mtime = status.st_mtime;
	s->bytes += status.st_size;
	for (char *line = f->text, *end = f->text + size; line < end;) {
		char *newline = memchr(line, '\n', end - line);

		if (array_add(f->lines, f->line_count, room, line))
			return -ENOMEM;
		if (!newline)
			break;
		*newline = '\0';
		line = newline + 1;
	}
	return 0;
}

EQUAL(name_equal, struct source_file *const, char, strcmp((*a)->name, b) == 0)

int source_files_find(struct source_files *s, const char *name, const struct source_file **file)
{
	uint64_t hash = hash_bytes(name, strlen(name), 0);
	uint32_t id = index_find(&s->index, hash, name_equal, s->files, name);
	struct source_file *f;

	if (id != INDEX_NONE) {
		*file = s->files[id];
		return 0;
	}
	f = calloc(1, sizeof(*f));
	if (!f || array_add_indexed(s->files, s->count, s->room, &s->index, hash, f)) {
		free(f);
		return -ENOMEM;
	}
	f->name = name;
	*file = f;
	return *name ? read_source(s, f) : 0;
}

/*
 * Call this if the names are from the debug information of the image at this path, read from there
 * (fd: a descriptor of what was read, or -1). If only root can change that image, then root reads
 * what lies below the same directory that others may not enter, too.
 */
static void source_files_trust(struct source_files *s, const char *image, int fd)
{
	char *directory = *image == '/' ? strdup(image) : NULL, *slash = directory;
	int opened = -1;
	struct stat status, read;

	if (directory && geteuid() == 0)
		opened = file_open_by_rules(-1, image, O_PATH, FILE_OWN_PATH);
	if (opened < 0 || fstat(opened, &status) || !S_ISREG(status.st_mode) ||
	    (fd >= 0 &&
	     (fstat(fd, &read) || read.st_dev != status.st_dev || read.st_ino != status.st_ino)))
		slash = NULL;
	/* The outermost directory that not all may enter. */
	while (slash && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (stat(directory, &status) == 0 && !(status.st_mode & S_IXOTH))
			break;
		*slash = '/';
	}
	if (slash)
		strcpy(slash, "/");
	else
		free(directory);
	s->own_directory = slash ? directory : NULL;
	if (opened >= 0)
		close(opened);
}

void source_files_free(struct source_files *s)
{
	if (s->has_root)
		close(s->root);
	free(s->own_directory);
	for (size_t i = 0; i < s->count; i++) {
		free(s->files[i]->text);
		free(s->files[i]->lines);
		free(s->files[i]);
	}
	free(s->files);
	index_free(&s->index);
	*s = (struct source_files){ 0 };
}

const char *source_file_line(const struct source_file *f, uint64_t number)
{
	return number && number <= f->line_count ? f->lines[number - 1] : NULL;
}

/* Finds the code that a function's name or an address means. */

/* Bytes of code that are shown where no symbol gives the function's size. */
#define FUNCTION_WINDOW 256

struct found_function {
	uint32_t image;		     /* PROFILE_NONE: in no known image */
	const char *name;	     /* or NULL */
	struct symbol_extent extent; /* 0, 0: unknown; then its locations are found by name */
	int64_t samples;	     /* whose leaf is in it */
	bool *locations;	     /* of each location of the profile: it is in the function */
};

/*
 * Functions of one name that an error message can list; "and more" stands for others.
 * Bound: caller: functions of one name that a message lists; then: "and more".
 */
#define CANDIDATES_MAX 16

struct search {
	struct profile *p;
	const char *function; /* the argument, or the busiest row's */
	const char *image;    /* the argument, the busiest row's, or IMAGE of IMAGE+0xADDRESS */
	const char *value;    /* what is counted */
	bool by_busiest;
	bool by_address;
	uint64_t address;
	bool *reached;	  /* of each location: it is in the stack of a sample */
	int64_t *samples; /* of each location: those whose leaf it is */
	bool *wanted;	  /* of each location: the function may be there */
	struct symbol_extent *extents;
	struct found_function candidates[CANDIDATES_MAX];
	size_t count; /* of candidates */
	bool more;    /* there are more than CANDIDATES_MAX */
};

/*
 * Marks the locations in functions that match; with `inlined`, also where these are inlined.
 * Returns false if there are none.
 */
static bool mark_wanted(struct search *s, bool inlined)
{
	const struct profile *p = s->p;
	bool any = false;

	for (uint32_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct profile_line *lines = &p->lines[l->first_line];
		bool match = s->by_address;

		/* The last line is the function's own, those before it are of inlined ones. */
		for (uint32_t j = 0; j < l->line_count && !match && s->reached[i]; j++)
			if (inlined || j + 1 == l->line_count)
				match = row_function_is(&p->functions[lines[j].function],
							s->function);
		s->wanted[i] =
			match && s->reached[i] && row_image_is(row_image_path(p, i), s->image);
		any |= s->wanted[i];
	}
	return any;
}

static uint32_t image_of(const struct search *s, uint32_t location)
{
	uint32_t mapping = s->p->locations[location].mapping;

	return mapping == PROFILE_NONE ? PROFILE_NONE : s->p->mappings[mapping].image;
}

/* Adds the function at a location to the candidates, unless the wanted address is not in it. */
static void add_candidate(struct search *s, uint32_t location)
{
	const struct profile_location *l = &s->p->locations[location];
	struct symbol_extent extent = s->extents[location];
	uint64_t address = l->image_address;
	uint32_t image = image_of(s, location);
	size_t i = 0;

	if (s->by_address && extent.limit)
		address = s->address;
	else if (s->by_address)
		extent = (struct symbol_extent){ s->address, s->address + FUNCTION_WINDOW };
	if (s->by_address && (address < extent.start || address >= extent.limit))
		return;
	while (i < s->count &&
	       (s->candidates[i].image != image || s->candidates[i].extent.start != extent.start))
		i++;
	if (i == CANDIDATES_MAX) {
		s->more = true;
		return;
	}
	if (i == s->count)
		s->candidates[s->count++] =
			(struct found_function){ .image = image, .extent = extent };
	if (l->line_count) {
		uint32_t outermost = l->first_line + l->line_count - 1;

		s->candidates[i].name = s->p->functions[s->p->lines[outermost].function].name;
	}
	add_i64(&s->candidates[i].samples, s->samples[location]);
}

static int explain_ambiguous(const struct search *s, struct error *e)
{
	char list[800] = "";
	size_t used = 0, i;
	bool same_image = true;

	for (i = 0; i < s->count; i++) {
		const struct found_function *c = &s->candidates[i];
		const char *path =
			c->image == PROFILE_NONE ? row_unknown : s->p->images[c->image].path;
		size_t size = snprintf(list + used, sizeof(list) - used,
				       "%s0x%" PRIx64 " in %s, %" PRId64 " sample%s",
				       used ? "; " : "", c->extent.start, text_basename(path),
				       c->samples, c->samples == 1 ? "" : "s");

		same_image &= c->image == s->candidates[0].image;
		if (size >= sizeof(list) - used)
			break;
		used += size;
	}
	error_set(e, 0, "%s is ambiguous: %.*s%s", s->function, (int)used, list,
		  i < s->count || s->more ? "; and more" : "");
	return error_hint(e, "%sgive one of these addresses",
			  same_image ? "" : "name the image with --image, or ");
}

static int explain_none(const struct search *s, struct error *e)
{
	if (s->by_busiest)
		error_set(e, 0, "no sample is in a function of a file");
	else
		error_set(e, 0, "no sample is in %s%s%s", s->function, s->image ? " of " : "",
			  s->image ?: "");
	error_hint(e, "profiltool report lists the functions that have samples, "
		      "report --by address the addresses");
	return -ENOENT;
}

/* 0xADDRESS, or IMAGE+0xADDRESS, which report prints for code without a name; else a name. */
static void parse_function(struct search *s)
{
	const char *text = s->function, *plus = strrchr(text, '+');

	for (size_t i = 0; plus && i < s->p->image_count; i++) {
		const char *image = text_basename(s->p->images[i].path);
		size_t size = strlen(image);

		if (size != (size_t)(plus - s->function) || memcmp(image, s->function, size) != 0)
			continue;
		s->image = image;
		text = plus + 1;
	}
	s->by_address = strncmp(text, "0x", 2) == 0 &&
			number_parse_hex(text, 0, UINT64_MAX - FUNCTION_WINDOW, &s->address) == 0;
}

/* Searches for the busiest function that is in a file. Returns 0 or -ENOMEM. */
static int take_busiest(struct search *s)
{
	const struct rows_options o = { .image = s->image, .value = s->value };
	struct rows rows;
	int err = rows_collect(&rows, s->p, &o);

	for (size_t i = 0; !err && i < rows.count && !s->function; i++) {
		const struct callgraph_key *key = rows.rows[i].key;
		enum image_kind kind = image_kind(key->image);

		if (!key->function || key->image == row_unknown ||
		    (kind != IMAGE_FILE && kind != IMAGE_SHARED) || !rows.rows[i].counts->self)
			continue;
		s->function = key->function;
		s->image = key->image;
	}
	rows_free(&rows);
	return err;
}

static int search_function(struct search *s, struct found_function *found, struct error *e)
{
	const struct profile *p = s->p;
	size_t value = profile_value(p, s->value);
	bool *locations = found->locations;

	for (size_t i = 0; i < p->sample_count; i++) {
		const uint32_t *frames = p->frames + p->samples[i].first_frame;
		int64_t count = p->values[i * p->value_type_count + value];

		if (p->samples[i].depth)
			add_i64(&s->samples[frames[0]], count);
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			s->reached[frames[j]] |= count != 0;
	}
	if (s->by_busiest && take_busiest(s))
		return error_no_memory(e);
	if (!s->function)
		return explain_none(s, e);
	if (!s->by_busiest)
		parse_function(s);
	if (!mark_wanted(s, false) && !mark_wanted(s, true))
		return explain_none(s, e);
	/*
	 * It held why addresses have no names; symbol_extents() stores why the file cannot be read.
	 */
	for (size_t i = 0; i < p->image_count; i++)
		p->images[i].unnamed = NULL;
	if (symbol_extents(s->p, s->wanted, s->extents, e))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->location_count; i++)
		if (s->wanted[i])
			add_candidate(s, i);
	if (!s->count)
		return explain_none(s, e);
	if (s->count > 1 && !s->by_busiest)
		return explain_ambiguous(s, e);
	*found = s->candidates[0];
	for (size_t i = 1; i < s->count; i++)
		if (magnitude(s->candidates[i].samples) > magnitude(found->samples))
			*found = s->candidates[i];

	/* Mark its locations, those of functions inlined into it included. */
	found->locations = locations;
	for (uint32_t i = 0; i < p->location_count; i++) {
		uint64_t address = p->locations[i].image_address;

		if (image_of(s, i) != found->image)
			continue;
		if (found->extent.limit)
			locations[i] =
				address >= found->extent.start && address < found->extent.limit;
		else
			locations[i] = s->wanted[i] && !s->extents[i].limit;
	}
	return 0;
}

/*
 * function: a name, of C++ with or without parameters; 0xADDRESS or IMAGE+0xADDRESS, in the image's
 * own numbering; NULL: the busiest function that is in a file. image: that holds it, its path or
 * base name; NULL: any. value: what is counted, as in profile_value(). The profile must have been
 * resolved; each of its images' `unnamed` becomes the reason why its file cannot be read. Returns
 * 0, or a negative errno with e set: -ENOENT, or -EINVAL if several functions match. The caller
 * frees found->locations, also after an error.
 */
static int function_search(struct profile *p, const char *function, const char *image,
			   const char *value, struct found_function *found, struct error *e)
{
	struct search s = {
		.p = p,
		.function = function,
		.image = image,
		.value = value,
		.by_busiest = !function,
	};
	size_t count = p->location_count + 1;
	int err;

	s.reached = calloc(count, sizeof(*s.reached));
	s.samples = calloc(count, sizeof(*s.samples));
	s.wanted = calloc(count, sizeof(*s.wanted));
	s.extents = calloc(count, sizeof(*s.extents));
	*found = (struct found_function){ .locations = calloc(count, sizeof(*found->locations)) };
	if (s.reached && s.samples && s.wanted && s.extents && found->locations)
		err = search_function(&s, found, e);
	else
		err = error_no_memory(e);
	free(s.reached);
	free(s.samples);
	free(s.wanted);
	free(s.extents);
	return err;
}

/* A line of a location, for sorting. */
struct entry {
	struct source_line line;
	uint32_t *number; /* where to store its number after sorting */
};

static const char *file_of(const struct profile *p, const struct profile_line *line)
{
	return line->file ?: p->functions[line->function].file;
}

struct source_line source_line_of(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_line *own;

	if (!l->line_count)
		return (struct source_line){ .file = "" };
	own = &p->lines[l->first_line + l->line_count - 1];
	return (struct source_line){ .file = file_of(p, own), .number = own->line };
}

struct source_line source_line_inlined(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];
	struct source_line line = source_line_of(p, location);

	if (l->line_count > 1) {
		const struct profile_line *innermost = &p->lines[l->first_line];

		line.inlined = p->functions[innermost->function].name;
		line.inlined_file = file_of(p, innermost);
		line.inlined_number = innermost->line;
	}
	return line;
}

static int compare_lines(const struct source_line *a, const struct source_line *b,
			 const char *first)
{
	int order = (a->file != first) - (b->file != first);

	order = order ?: strcmp(a->file, b->file);
	order = order ?: compare_u64(a->number, b->number);
	order = order ?: (a->inlined != NULL) - (b->inlined != NULL);
	if (order || !a->inlined)
		return order;
	order = strcmp(a->inlined_file, b->inlined_file);
	order = order ?: compare_u64(a->inlined_number, b->inlined_number);
	return order ?: strcmp(a->inlined, b->inlined);
}

static int compare_entries(const void *one, const void *other, void *first)
{
	return compare_lines(&((const struct entry *)one)->line,
			     &((const struct entry *)other)->line, first);
}

/*
 * Collects the lines of the locations for which locations[] is true. Returns 0 or -ENOMEM; call
 * source_lines_free() in any case.
 */
static int source_lines_make(struct source_lines *s, const struct profile *p, const bool *locations)
{
	size_t room = p->location_count + 1, count = 0;
	const char *first = ""; /* the file that defines the function, which may include others */
	struct entry *entries = calloc(2 * room, sizeof(*entries));
	const struct profile_line *line;

	*s = (struct source_lines){
		.own = calloc(room, sizeof(*s->own)),
		.inlined = calloc(room, sizeof(*s->inlined)),
		.lines = calloc(2 * room, sizeof(*s->lines)),
	};
	if (!entries || !s->own || !s->inlined || !s->lines) {
		free(entries);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->location_count; i++)
		if (locations[i] && p->locations[i].line_count) {
			const struct profile_location *l = &p->locations[i];

			line = &p->lines[l->first_line + l->line_count - 1];
			first = p->functions[line->function].file;
			break;
		}
	for (uint32_t i = 0; i < p->location_count; i++) {
		struct source_line inlined;

		s->own[i] = s->inlined[i] = PROFILE_NONE;
		if (!locations[i])
			continue;
		entries[count++] = (struct entry){ source_line_of(p, i), &s->own[i] };
		inlined = source_line_inlined(p, i);
		if (inlined.inlined)
			entries[count++] = (struct entry){ inlined, &s->inlined[i] };
	}
	if (count)
		qsort_r(entries, count, sizeof(*entries), compare_entries, (void *)first);
	for (size_t i = 0; i < count; i++) {
		if (!s->count ||
		    compare_lines(&s->lines[s->count - 1], &entries[i].line, first) != 0)
			s->lines[s->count++] = entries[i].line;
		*entries[i].number = s->count - 1;
	}
	free(entries);
	return 0;
}

static void source_lines_free(struct source_lines *s)
{
	free(s->lines);
	free(s->own);
	free(s->inlined);
	*s = (struct source_lines){ 0 };
}

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
		return error_hint(e, "profiltool report --by address -d '%s' lists its addresses",
				  text_basename(image->path));
	}
	if (image_is_bracketed(image->path))
		return error_set(e, 0, "cannot disassemble %s: %s: it is in no file", name,
				 image->path);
	if (image->unnamed) {
		error_set(e, 0, "cannot disassemble %s: %s: %s", name, image->path, image->unnamed);
		return error_hint(
			e, "if it is on another machine or in a container, annotate there or "
			   "put a copy at that path");
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
	c->a->total_weight = MIN(c->a->total_weight, c->a->all_samples);
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
	text_printf(out, "%s%s%s%s\n", prefix, before, name, after);
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
	enum {
		NONE,
		MISSING,
		PRIVATE,
		LARGE,
		OTHER,
		EDITED,
		CHANGED,
		NOTES
	};
	static const char *const texts[NOTES][2] = {
		[MISSING] = { "source file not found: ", "; --source-path names its directory" },
		[PRIVATE] = { "source file not read: ", ": not all may read it; if it is meant, "
							"--source-path names its directory" },
		[LARGE] = { "source file not read: ", ": all together are limited to 64 MiB" },
		[OTHER] = { "the function does not begin where it did: ",
			    "; it is another file, or was changed" },
		[EDITED] = { "changed since the recording began: ", "; line numbers may be wrong" },
		[CHANGED] = { "changed since the program was built: ",
			      "; line numbers may be wrong" },
	};
	const char *firsts[NOTES]; /* the name of one file that a note is about */
	size_t counts[NOTES] = { 0 };
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
		int note = NONE;

		if (f->too_large)
			note = LARGE;
		else if (f->is_private)
			note = PRIVATE;
		else if (!f->text)
			note = *f->name ? MISSING : NONE;
		else if (!a->script)
			note = has_image && f->mtime > status.st_mtime ? CHANGED : NONE;
		else if (!has_function_line(a, f))
			note = OTHER;
		else if (a->p->time_ns && (uint64_t)f->mtime > a->p->time_ns / NS_PER_S)
			note = EDITED;
		if (!counts[note]++)
			firsts[note] = f->name;
	}
	for (int i = NONE + 1; i < NOTES; i++) {
		char more[160];

		snprintf(more, sizeof(more), " and %zu more%s", counts[i] - 1, texts[i][1]);
		if (counts[i])
			print_note(prefix, texts[i][0], firsts[i],
				   counts[i] > 1 ? more : texts[i][1], out);
	}
}

void annotation_free(struct annotation *a)
{
	disassembly_free(&a->code);
	free_tallies(&a->code_counts);
	free_tallies(&a->line_counts);
	profile_free(a->code_places);
	source_lines_free(&a->lines);
	source_files_free(&a->files);
	array_free_texts(a->titles, a->value_count);
	free(a->values);
	*a = (struct annotation){ 0 };
}
