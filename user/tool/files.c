// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/capabilities.h"
#include "format/gzip.h"
#include "format/loss.h"
#include "format/projection.h"
#include "profile/image_name.h"
#include "profile/merge.h"
#include "profile/pc_name.h"
#include "record/wait_names.h"
#include "symbol/symbol.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/directory.h"
#include "util/file.h"
#include "util/number.h"

/* Extensions of files that are not profiles, and the command that makes them. */
static const struct {
	const char *extension, *what, *hint;
} others[] = {
	{ ".svg", "a picture", "write x.pb.gz, then: profiltool flamegraph x.pb.gz -o x.svg" },
	{ ".html", "a page", "write x.pb.gz, then: profiltool web x.pb.gz -o x.html" },
	{ ".json", "JSON",
	  "write x.pb.gz, then: profiltool report --json x.pb.gz >x.json, or dump --json" },
	{ ".txt", "text", "write x.pb.gz, then: profiltool report x.pb.gz >x.txt, or dump" },
};

static bool can_write(const struct format *format)
{
	return format->write || format->write_directory;
}

static bool writes_directory(const struct format *format)
{
	return format->write_directory;
}

/* Lists the names of the formats that `is_listed` selects: "pprof, gperftools". */
static void list_formats(bool (*is_listed)(const struct format *format), char *text, size_t size)
{
	text[0] = '\0';
	for (const struct format *const *f = format_all; *f; f++)
		if (is_listed(*f))
			text_append(text, size, ", ", "%s", (*f)->name);
}

void tool_list_formats(char *text, size_t size)
{
	list_formats(can_write, text, size);
}

bool tool_is_unnamed(const char *path)
{
	struct stat status;

	if (strcmp(path, "-") == 0 || strncmp(path, "/dev/", strlen("/dev/")) == 0)
		return true;
	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* Sets e if the path has an extension of others[]. Returns 0 or -errno. */
static int refuse_others(const char *path, struct error *e)
{
	size_t size = strlen(path) - (format_is_gzip_path(path) ? strlen(FORMAT_GZIP) : 0);

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		size_t tail = strlen(others[i].extension);

		if (size >= tail &&
		    strncasecmp(path + size - tail, others[i].extension, tail) == 0) {
			error_set_kind(e, ERROR_USAGE, 0, "%s would be %s, not a profile", path,
				       others[i].what);
			return error_hint(e, "%s", others[i].hint);
		}
	}
	return 0;
}

const struct format *tool_output_format(const char *name, const char *path, struct error *e)
{
	const struct format *format;
	struct stat status;
	bool directory;
	char names[TOOL_LIST_SIZE];

	if (path && !*path) {
		error_set_kind(e, ERROR_USAGE, 0, "the name of the file to write is \"\"");
		error_hint(e, "a variable of the shell may be empty");
		return NULL;
	}
	if (!name && (!path || tool_is_unnamed(path)))
		return format_by_name("pprof");
	tool_list_formats(names, sizeof(names));
	if (name) {
		format = format_by_name(name);
		if (!format || !can_write(format)) {
			error_set_kind(e, ERROR_USAGE, 0, "no format \"%s\" can be written", name);
			error_hint(e, "the formats are: %s", names);
			return NULL;
		}
	} else {
		/*
		 * An extension says more than the beginning of a name: callgrind.out.7.svg would be
		 * a picture. A directory may have any name.
		 */
		directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
		format = format_by_extension(path);
		if (!format && !directory && refuse_others(path, e))
			return NULL;
		format = format ?: format_by_path(path);
		if (!format && directory) {
			error_set_kind(e, ERROR_USAGE, 0,
				       "%s is a directory, and no format is named", path);
			list_formats(writes_directory, names, sizeof(names));
			error_hint(e,
				   "name a file in it, as %s%sx.pb.gz; or add -f with one of %s, "
				   "which have a file for each image",
				   path, path[strlen(path) - 1] == '/' ? "" : "/", names);
		} else if (!format) {
			error_set_kind(e, ERROR_USAGE, 0, "the name %s implies no format to write",
				       path);
			error_hint(e,
				   "add -f with one of %s; or end it in .pb.gz, .prof, .folded, "
				   "...",
				   names);
		}
	}
	if (!format || !path || !format->write_directory || !format_is_gzip_path(path))
		return format;
	error_set_kind(e, ERROR_USAGE, 0, "%s: %s is not written compressed", path, format->name);
	error_hint(e, "leave " FORMAT_GZIP " out");
	return NULL;
}

const char *tool_output_place(const char *name, const char *path)
{
	const struct format *format = !path && name ? format_by_name(name) : NULL;
	const char *place =
		format && format->directory_variable ? getenv(format->directory_variable) : NULL;

	return place && *place ? place : path;
}

/* Bound: pace. */
#define SILENT_NS NS_PER_S	    /* shorter work shows no progress */
#define REDRAW_NS (100 * NS_PER_MS) /* between two updates of the line */

struct naming {
	bool (*stop)(void *context);
	void *context;
	bool terminal; /* where a line of progress goes */
	uint64_t next_ns;
	bool shown;
	size_t done, count;
	char what[64];
};

static void show_progress(struct naming *n)
{
	uint64_t now = now_ns();

	if (!n->terminal || now < n->next_ns || !*n->what)
		return;
	n->next_ns = now + REDRAW_NS;
	n->shown = true;
	tool_progress(TOOL_PREFIX "names: %zu of %zu, %s", n->done, n->count, n->what);
}

static void clear_progress(struct naming *n)
{
	if (n->shown)
		tool_progress("%s", "");
	n->shown = false;
}

static void take_progress(size_t done, size_t count, const char *what, void *context)
{
	struct naming *n = context;

	n->done = done;
	n->count = count;
	snprintf(n->what, sizeof(n->what), "%s", what);
	show_progress(n);
}

/* Called more often than take_progress(). */
static bool take_stop(void *context)
{
	struct naming *n = context;

	show_progress(n);
	if (!n->stop || !n->stop(n->context))
		return false;
	clear_progress(n);
	return true;
}

int tool_check_naming(const struct tool_naming *naming, struct error *e)
{
	return symbol_check(&(struct symbol_options){ .debuginfod = naming->debuginfod }, e);
}

/* Has the paths of images without a root directory looked up below this one. */
static int set_roots(struct profile *p, const char *path, struct error *e)
{
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (root < 0)
		return error_set(e, errno, "--symfs: cannot open %s", path);
	for (size_t i = 0; i < p->image_count && !err; i++) {
		struct profile_image *image = &p->images[i];

		if (image->fd >= 0 || image->root >= 0 || image_kind(image->path) != IMAGE_FILE)
			continue;
		image->root = fcntl(root, F_DUPFD_CLOEXEC, 0);
		if (image->root < 0)
			err = error_set(e, errno, "--symfs: cannot open %s", path);
	}
	close(root);
	return err;
}

int tool_name(struct profile *p, const struct tool_naming *naming, bool (*stop)(void *context),
	      void *context, struct error *e)
{
	struct naming n = {
		.stop = stop,
		.context = context,
		.terminal = !naming->quiet && isatty(STDERR_FILENO),
		.next_ns = now_ns() + SILENT_NS,
	};
	struct symbol_options o = {
		.lines = naming->lines,
		.debuginfod = naming->debuginfod,
		.stop = take_stop,
		.progress = take_progress,
		.context = &n,
	};
	size_t known = p->warning_count;
	int err = naming->symfs ? set_roots(p, naming->symfs, e) : 0;

	if (err)
		return err;
	capabilities_raise_for_names();
	err = symbol_resolve(p, &o, e);
	if (!err && wait_names_apply(p))
		err = error_no_memory(e);
	capabilities_lower();
	clear_progress(&n);
	for (size_t i = known; !err && i < p->warning_count; i++)
		tool_warn("%s", p->warnings[i]);
	return err;
}

int tool_option_stride(const char *value, void *member, struct error *e)
{
	uint64_t stride;

	if (number_parse(value, 1, 4, &stride) || (stride != 1 && stride != 4))
		return error_set(e, 0, "--dcpi-stride takes 1 or 4, not \"%s\"", value);
	*(unsigned int *)member = stride;
	return 0;
}

/*
 * --executable: sets the path of images without a name, and of images that have its base name only.
 * The single image of a gmon.out may have any base name.
 */
static int name_executable(struct profile *p, const char *path, struct error *e)
{
	char *whole = realpath(path, NULL);
	const char *executable;
	int err;

	if (!whole)
		return error_set(e, errno, "--executable %s", path);
	err = profile_string(p, whole, &executable);
	free(whole);
	if (err)
		return error_no_memory(e);
	for (size_t i = 0; i < p->image_count; i++) {
		const char *name = p->images[i].path;

		if (!*name ||
		    (image_has_no_directory(name) &&
		     (p->image_count == 1 || strcmp(name, profile_basename(executable)) == 0)))
			p->images[i].path = executable;
	}
	return 0;
}

static void set_input(struct tool_inputs *in, const char *path)
{
	in->one[0] = (char *)path;
	in->paths = in->one;
	in->count = 1;
}

/* The directory that the environment names for files of a format, or NULL. Sets *variable. */
static const char *directory_from_environment(const char **variable)
{
	for (const struct format *const *f = format_all; *f; f++) {
		const char *place =
			(*f)->directory_variable ? getenv((*f)->directory_variable) : NULL;

		*variable = (*f)->directory_variable;
		if (place && *place)
			return place;
	}
	return NULL;
}

bool tool_has_default_input(const struct tool_query *query)
{
	const char *variable;

	return query_is_given(query) || directory_from_environment(&variable);
}

void tool_find_inputs(char *const *paths, int count, const struct tool_query *query,
		      struct tool_inputs *in)
{
	const char *variable, *place;

	*in = (struct tool_inputs){ .paths = paths, .count = count };
	if (count)
		return;
	if (query && query_is_given(query)) {
		set_input(in, query_archive());
		return;
	}
	place = directory_from_environment(&variable);
	if (!place)
		return;
	set_input(in, place);
	if (access(place, F_OK))
		tool_warn("no file was named, and %s is %s", variable, place);
}

int tool_find_input(const struct tool_reading *reading, char *const *paths, int count,
		    struct tool_inputs *in, struct error *e)
{
	if (!reading->file) {
		tool_find_inputs(paths, count, &reading->query, in);
		return 0;
	}
	if (count)
		return error_usage(e, "name all files without -i", "-i %s, and %s besides",
				   reading->file, paths[0]);
	set_input(in, reading->file);
	return 0;
}

const char *tool_input_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

int tool_read_selected(const char *path, const struct tool_reading *reading, struct profile **p,
		       struct error *e)
{
	struct tool_reading selected = *reading;
	struct query_choice choice = { 0 };
	int err;

	/* The caller may have another choice. */
	if (query_has_interval(&reading->query))
		selected.input.ticks = query_choose(&choice, &reading->query, NULL, NULL);
	err = format_read(path, &selected.input, p, e);
	if (err)
		return err;
	if (reading->strict && (*p)->warning_count) {
		err = error_set(e, 0, "%s: %s", path, (*p)->warnings[0]);
		error_hint(e, "without --strict it is read nevertheless");
	}
	for (size_t i = 0; i < (*p)->warning_count && !err; i++)
		tool_warn("%s: %s", path, (*p)->warnings[i]);
	if (!err && reading->executable)
		err = name_executable(*p, reading->executable, e);
	err = err ?: query_filter(path, &reading->query, &choice, reading->naming.quiet, *p, e);
	if (err) {
		profile_free(*p);
		*p = NULL;
	}
	return err;
}

/* True if a path is to be read as an archive, which it may be by mistake. */
static bool is_of_archive(const char *path, const struct tool_query *q)
{
	return query_is_archive(path) || (query_is_given(q) && strcmp(path, query_archive()) == 0);
}

/* Names of windows were resolved when they were written. */
static int name_windows(struct profile *p, const struct tool_reading *reading, struct error *e)
{
	const struct tool_naming *naming = &reading->naming;

	return naming->lines || naming->debuginfod ? tool_name(p, naming, NULL, NULL, e) : 0;
}

/* True if it is a script: the profile has the names of its functions. */
static bool is_script(const struct profile *p, uint32_t image)
{
	for (uint32_t i = 0; i < p->location_count; i++)
		if (profile_is_script(p, i) && p->mappings[p->locations[i].mapping].image == image)
			return true;
	return false;
}

/* Reads one profile and resolves names. Adds the aspects that the file itself holds to *aspects. */
static int read_named(const char *path, const struct tool_reading *reading, struct profile **p,
		      unsigned int *aspects, struct error *e)
{
	const struct tool_naming *naming = &reading->naming;
	bool archive = is_of_archive(path, &reading->query);
	struct stat profile, image;
	bool dated; /* the profile is a file, with a modification time */
	int err;

	if (archive)
		err = query_read(path, &reading->query, naming->quiet, p, e);
	else
		err = tool_read_selected(path, reading, p, e);
	if (err)
		return err;
	*aspects |= loss_aspects(*p);
	if (archive) {
		err = name_windows(*p, reading, e);
	} else {
		/*
		 * Without a build ID, only the modification time shows that an image was rebuilt.
		 * Asked first: resolving names fills in build IDs from the images.
		 */
		dated = stat(path, &profile) == 0;
		for (size_t i = 0; dated && i < (*p)->image_count; i++) {
			const struct profile_image *g = &(*p)->images[i];

			if (!g->build_id_size && g->path[0] == '/' && stat(g->path, &image) == 0 &&
			    image.st_mtime > profile.st_mtime && !is_script(*p, i))
				tool_warn("%s has changed since %s was written: its names may be "
					  "wrong",
					  g->path, path);
		}
		err = tool_name(*p, naming, NULL, NULL, e);
		if (!err && !reading->no_drop_frames) {
			err = profile_drop_frames(*p, e);
			if (err == -EINVAL && !reading->strict) {
				tool_warn("%s: no frames are excluded: %s", path, e->what);
				err = 0;
			} else if (err == -EINVAL) {
				error_hint(e, "--no-drop-frames reads the file without it");
			}
		}
	}
	if (err) {
		profile_free(*p);
		*p = NULL;
	}
	return err;
}

/* tool_read_all(); also adds the aspects (format/loss.h) that the files hold to *aspects. */
static int read_and_merge(char *const *paths, int count, const struct tool_reading *reading,
			  struct profile **p, unsigned int *aspects, struct error *e)
{
	struct merge_cache cache = { 0 };
	struct hosts hosts = { 0 };
	struct profile *sum = NULL;
	char names[512];
	int err = 0;

	for (int i = 0; i < count && !err; i++) {
		struct profile *next = NULL;
		size_t known;

		err = read_named(paths[i], reading, &next, aspects, e);
		if (!err && hosts_add(&hosts, next->host))
			err = error_no_memory(e);
		if (!err && !sum) {
			sum = next;
			continue;
		}
		if (!err) {
			/* The files' own warnings are printed already. */
			next->warning_count = 0;
			known = sum->warning_count;
			err = profile_merge(sum, next, &cache, e);
			for (size_t j = known; !err && j < sum->warning_count; j++)
				tool_warn("%s", sum->warnings[j]);
		}
		profile_free(next);
	}
	if (!err && hosts_are_several(&hosts, names, sizeof(names)))
		tool_warn("the profiles are of several machines, which are added up: %s", names);
	for (size_t i = 0; !err && i < sum->value_type_count; i++)
		/* A sum that was cut off is INT64_MAX itself. */
		if (profile_magnitude(sum, sum->value_types[i].type) >= INT64_MAX)
			tool_warn("the values of \"%s\" add up to more than 2^63 - 1: sums are "
				  "cut off there",
				  sum->value_types[i].type);
	merge_cache_free(&cache);
	hosts_free(&hosts);
	if (err) {
		profile_free(sum);
		sum = NULL;
	}
	*p = sum;
	return err;
}

int tool_read_all(char *const *paths, int count, const struct tool_reading *reading,
		  struct profile **p, struct error *e)
{
	unsigned int aspects = 0;

	return read_and_merge(paths, count, reading, p, &aspects, e);
}

int tool_read_two(char *path, const struct tool_reading *reading, const char *other,
		  const char *option, struct tool_two *two, struct error *e)
{
	struct tool_query q = reading->query;
	struct tool_reading whole = *reading;
	struct query_interval intervals[2];
	struct query_choice choice;
	const char *name = tool_input_name(path);
	int err = 0;

	*two = (struct tool_two){ 0 };
	q.now_ns = clock_ns(CLOCK_REALTIME); /* for both */
	if (!is_of_archive(path, &q)) {
		/* Read once, for it may be standard input, and cut to both intervals. */
		whole.input.ticks = query_choose(&choice, &q, other, option);
		query_clear_interval(&whole.query);
		err = tool_read_all(&path, 1, &whole, &two->p[1], e);
		err = err ?: query_settle(name, &choice, two->p[1], e);
		if (!err) {
			two->p[0] = profile_new();
			err = two->p[0] ? profile_merge(two->p[0], two->p[1], NULL, e)
					: error_no_memory(e);
			query_name(&choice.compared, two->names[0]);
			query_name(&choice.interval, two->names[1]);
		}
		err = err ?: query_cut(name, &choice.compared, two->p[0], e);
		err = err ?: query_cut(name, &choice.interval, two->p[1], e);
	} else {
		err = query_interval(&q, NULL, &intervals[1], e);
		err = err ?: query_find_other(&q, other, option, NULL, &intervals[0], e);
		for (int i = 0; i < 2 && !err; i++) {
			query_name(&intervals[i], two->names[i]);
			err = query_read_interval(path, &q, &intervals[i], reading->naming.quiet,
						  &two->p[i], e);
			err = err ?: name_windows(two->p[i], reading, e);
		}
	}
	for (int i = 0; i < 2 && err; i++) {
		profile_free(two->p[i]);
		two->p[i] = NULL;
	}
	return err;
}

int tool_check_output(const struct format *format, const char *path, struct error *e)
{
	bool to_stdout = strcmp(path, "-") == 0;
	struct stat st;

	if (format->write_directory) {
		/* One file per image, and no single file. */
		if (format_names_file(format, path))
			return file_check_writable(path, e);
		if (!to_stdout && (stat(path, &st) || S_ISDIR(st.st_mode)))
			return directory_check_writable(path, e);
		error_set_kind(e, ERROR_USAGE, 0,
			       "%s is no directory: %s has one file for each image",
			       to_stdout ? "standard output" : path, format->name);
		error_hint(e, "name a directory; it is made when it is not there");
		return -ENOTDIR;
	}
	if (!to_stdout)
		return file_check_writable(path, e);
	if (format->is_text || !isatty(STDOUT_FILENO))
		return 0;
	return error_usage(e, "give a file, or pipe it to a program",
			   "a profile is binary: it does not go to a terminal");
}

const char *tool_find_in_output(char *const *paths, int count, const char *out)
{
	struct stat output, st;
	bool found = false;
	char *at;

	if (strcmp(out, "-") == 0 || stat(out, &output) ||
	    !(S_ISREG(output.st_mode) || S_ISDIR(output.st_mode)))
		return NULL;
	for (int i = 0; i < count; i++) {
		/* The input itself, then each directory above it. */
		at = realpath(strcmp(paths[i], "-") == 0 ? "/dev/stdin" : paths[i], NULL);
		while (at && !found && stat(at, &st) == 0) {
			found = st.st_dev == output.st_dev && st.st_ino == output.st_ino;
			if (strcmp(dirname(at), "/") == 0)
				break;
		}
		free(at);
		if (found)
			return paths[i];
	}
	return NULL;
}

struct write_context {
	const struct profile *p;
	const struct format *format;
	const struct format_options *options;
	bool gzip;
};

static int write_profile(FILE *out, void *context, struct error *e)
{
	const struct write_context *w = context;
	struct gzip_writer gzip;
	FILE *stream;
	int err;

	if (!w->gzip)
		return w->format->write(w->p, w->options, out, e);
	err = gzip_open(&gzip, out, e);
	if (err)
		return err;
	stream = gzip_stream(&gzip);
	err = stream ? w->format->write(w->p, w->options, stream, e) : error_no_memory(e);
	if (stream && fclose(stream) && !err)
		err = error_set(e, errno, "cannot write");
	return gzip_close(&gzip, err, e);
}

bool tool_warn_of_loss(const struct profile *p, unsigned int aspects, const struct format *format,
		       const struct format_options *options, const char *path, bool quiet)
{
	uint64_t calls = format->dropped_calls ? format->dropped_calls(p) : 0, samples = 0;
	struct format_dropped images = { 0 };
	magnitude_sum below = 0;
	struct profile view;
	char losses[1024];
	struct error e;

	if (projection_make(p, format, options, &view, &below, &e) == 0) {
		if (format->dropped_samples)
			samples = format->dropped_samples(&view, options);
		if (format->dropped_images)
			format->dropped_images(&view, &images);
		projection_free(p, &view);
	}
	if (!quiet && loss_list(p, aspects, format, options, losses, sizeof(losses)))
		tool_warn("%s: the %s format does not hold %s", path, format->name, losses);
	if (samples)
		tool_warn("%s: %" PRIu64 " of %" PRIu64 " samples are lost: the %s format cannot "
			  "hold %s",
			  path, samples, magnitude_u64(profile_magnitude(p, options->value)),
			  format->name, format->cannot_hold);
	if (below)
		tool_warn("%s: values below 0 are lost, %" PRIu64 " in all: the %s format "
			  "cannot hold them; pprof, callgrind and folded can",
			  path, magnitude_u64(below), format->name);
	if (calls)
		tool_warn("%s: %" PRIu64 " call(s) are lost: the %s format cannot hold %s", path,
			  calls, format->name, format->cannot_hold_calls);
	if (images.samples)
		tool_warn("%s: %" PRIu64 " samples of %s%s are lost: the %s format cannot hold %s",
			  path, images.samples, images.image, images.others ? " and others" : "",
			  format->name, format->cannot_hold_in_image);
	return below;
}

int tool_write(const struct profile *p, const struct format *format,
	       const struct format_options *options, const char *path, struct error *e)
{
	bool to_stdout = strcmp(path, "-") == 0;
	const char *name = to_stdout ? "standard output" : path;
	struct profile view;
	struct write_context w = {
		.p = &view,
		.format = format,
		.options = options,
		.gzip = format_is_gzip_path(path) && !format->is_gzip,
	};
	char what[sizeof(e->what)];
	int err = projection_make(p, format, options, &view, &(magnitude_sum){ 0 }, e), flush_err;
	bool projected = !err;

	if (err) {
		/* It has nothing that could be written. */
	} else if (format->write_directory) {
		err = format->write_directory(&view, options, path, e);
	} else if (!to_stdout) {
		err = file_write(path, FILE_LIKE_SHELL, write_profile, &w, e);
	} else {
		err = write_profile(stdout, &w, e);
		flush_err = tool_flush();
		/* A reader of text may have closed the pipe early. */
		if (flush_err == -EPIPE && format->is_text)
			err = 0;
		else if (flush_err && !err)
			err = error_set(e, -flush_err, "cannot write to standard output");
	}
	if (projected)
		projection_free(p, &view);
	/* Errors of formats do not name the output. */
	if (err && !strstr(e->what, name)) {
		snprintf(what, sizeof(what), "%s", e->what);
		snprintf(e->what, sizeof(e->what), "%.500s: %.500s", name, what);
	}
	return err;
}

int tool_no_samples(const struct profile *p, const char *value,
		    const struct profile_filtered *filtered, const struct tool_query *query,
		    char *const *paths, int count)
{
	if (profile_filtered_sum(filtered, profile_value(p, value)))
		return EXIT_NO_SAMPLES;
	if (!profile_label_filter_is_empty(&query->labels))
		tool_warn("no sample is selected: profiltool report --by comm (or unit, container, "
			  "user) lists the names there are");
	else if (count > 1)
		tool_warn("the %d profiles have no samples", count);
	else if (!query_has_interval(query) ||
		 query_is_archive(paths[0])) /* else query_cut() did */
		tool_warn("%s has no samples", tool_input_name(paths[0]));
	return EXIT_NO_SAMPLES;
}

int tool_done(const struct profile *p)
{
	return p->salvaged ? EXIT_INCOMPLETE : EXIT_DONE;
}

int tool_check_no_times(const struct format *format, struct error *e)
{
	if (strcmp(format->name, "pprof") == 0)
		return 0;
	return error_usage(e, "leave it out, or add -f pprof",
			   "--no-times is for pprof, not for %s", format->name);
}

int tool_rewrite(const struct tool_rewrite *r)
{
	struct error e;
	const struct format *format = tool_output_format(r->format, r->out, &e);
	struct tool_reading reading = *r->reading;
	char *out = (char *)r->out;
	const char *input = NULL; /* that is the output, too */
	struct profile *p;
	unsigned int aspects = 0;
	int code;

	if (!format)
		return tool_fail(&e);
	if (r->writing.no_times && tool_check_no_times(format, &e))
		return tool_fail(&e);
	/* Formats with a directory variable add to files that exist. */
	if (format->directory_variable) {
		input = tool_find_in_output(r->in, r->count, out);
		for (int i = 0; i < r->count && !input; i++)
			if (tool_find_in_output(&out, 1, r->in[i]))
				input = r->in[i];
	}
	if (input) {
		error_set_kind(&e, ERROR_USAGE, 0,
			       "%s is read and written: its samples would be doubled",
			       strcmp(input, "-") == 0 ? out : input);
		error_hint(&e,
			   "%s adds to what is there; name only what is new: profiltool merge -f "
			   "%s NEW -o %s",
			   format->name, format->name, out);
		return tool_fail(&e);
	}
	/* The written file keeps whole stacks, and its own list of frames to drop. */
	if (r->count == 1 && strcmp(format->name, "pprof") == 0)
		reading.no_drop_frames = true;
	if (tool_check_output(format, out, &e) ||
	    read_and_merge(r->in, r->count, &reading, &p, &aspects, &e))
		return tool_fail(&e);
	if (tool_check_value(p, r->writing.value, &e)) {
		profile_free(p);
		return tool_fail(&e);
	}
	/* Names that were looked up now were not in the files: they are not lost. */
	if (r->writing.instr_positions)
		aspects &= ~KEEPS(ADDRESSES);
	if (tool_write(p, format, &r->writing, r->out, &e)) {
		code = tool_fail(&e);
	} else {
		code = tool_warn_of_loss(p, aspects, format, &r->writing, r->out,
					 r->reading->naming.quiet)
			       ? EXIT_INCOMPLETE
			       : tool_done(p);
	}
	profile_free(p);
	return code;
}
