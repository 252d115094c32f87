// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/runtime.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "script/language.h"
#include "util/proc_maps.h"
#include "util/sum.h"
#include "util/table.h"

/*
 * A function that interprets gets a hint if such functions have 1/this of all samples.
 * Bound: pace.
 */
#define INTERPRETER_SHARE 10

/* In a hint: stands for the process */
#define PID "%PID"

/* An image with 1/IMAGE_SHARE of all samples gets hints,. Bound: pace. */
#define IMAGE_SHARE 100

/* for runtimes with 1/HINT_SHARE of its unnamed samples. Bound: pace. */
#define HINT_SHARE 10

/*
 * Each hint was tested with the runtime, Debian 12's if that has it, or is from the documentation:
 * Ruby's yjit.md, .NET's "Debugging and profiling", wasmtime's "Using perf", OpenJ9's
 * -XX:+PerfTool, mono(1).
 */
static const struct runtime {
	const char *name;
	/* Bound: size. */
	const char *images[5]; /* file name patterns, for fnmatch(3), up to a NULL */
	const char *hint;      /* how to make its processes write names */
	bool snapshot;	       /* it writes them on request, so that asking again adds names */
	const char *frames;    /* how to make its code keep frame pointers; NULL: it does */
} runtimes[] = {
	/* Before Java, for it also has a libjvm.so. */
	{ .name = "OpenJ9",
	  .images = { "libj9vm*.so", "libj9jit*.so" },
	  .hint = "start it with java -XX:+PerfTool" },
	{ .name = "Java",
	  .images = { "libjvm.so", "java" },
	  .hint = "run jcmd " PID " Compiler.perfmap while it is recorded, or record it with "
		  "--ask-runtimes (both: Java 17 or later), or start it with "
		  "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
	  .snapshot = true,
	  .frames = "code made at run time needs frame pointers: Java keeps them with "
		    "-XX:+PreserveFramePointer" },
	{ .name = "Node.js",
	  .images = { "node", "nodejs", "libnode.so*" },
	  .hint = "start it with node --perf-basic-prof, or NODE_OPTIONS=--perf-basic-prof" },
	{ .name = ".NET",
	  .images = { "libcoreclr.so", "libclrjit.so", "dotnet" },
	  .hint = "start it with DOTNET_PerfMapEnabled=1 in its environment" },
	{ .name = "Mono",
	  .images = { "mono", "mono-sgen", "libmonosgen-*.so*", "libmono-*.so*" },
	  .hint = "start it with mono --jitmap" },
	{ .name = "PHP",
	  .images = { "php", "php[0-9]*", "php-*", "libphp*.so" },
	  .hint = "start it with -d opcache.jit_debug=16 (regular expressions: their code gets no "
		  "names, -d pcre.jit=0 interprets them)" },
	{ .name = "Ruby",
	  .images = { "ruby", "ruby[0-9]*", "libruby*.so*" },
	  .hint = "start it with ruby --yjit --yjit-perf (Ruby 3.3 or later, before it writes no "
		  "names)" },
	{ .name = "Erlang", .images = { "beam.smp" }, .hint = "start it with erl +JPperf true" },
	{ .name = "wasmtime",
	  .images = { "wasmtime" },
	  .hint = "start it with wasmtime --profile=perfmap" },
	{ .name = "PostgreSQL",
	  .images = { "postgres", "llvmjit.so" },
	  .hint = "start the session with PGOPTIONS='-c jit_profiling_support=on', as a "
		  "superuser" },
	{ .name = "LuaJIT",
	  .images = { "luajit", "luajit-*", "libluajit*.so*" },
	  .hint = "it writes names only when built with -DLUAJIT_USE_PERFTOOLS; luajit -jp is its "
		  "own profiler" },
};

#define RUNTIME_COUNT (sizeof(runtimes) / sizeof(*runtimes))

/* Sets of runtimes: runtimes[i] is the bit 1 << i. */
typedef uint32_t runtime_set;

_Static_assert(RUNTIME_COUNT <= 32, "a runtime_set has 32 bits");

static bool matches_pattern(const char *const patterns[], const char *name)
{
	for (; *patterns; patterns++)
		if (fnmatch(*patterns, name, 0) == 0)
			return true;
	return false;
}

/* Sets the name of an image's file, without " (deleted)". False: not a file, or too long. */
static bool file_name(const char *path, char *name, size_t room)
{
	const char *base = profile_basename(path);
	size_t size = proc_path_size(base);

	if (image_kind(path) != IMAGE_FILE || size >= room)
		return false;
	memcpy(name, base, size);
	name[size] = '\0';
	return true;
}

struct process {
	uint32_t pid;
	runtime_set runtimes; /* whose code is in its stacks */
	uint64_t unnamed;     /* samples in the image being explained */
};

struct runtimes {
	const struct profile *p;
	size_t value;	    /* which of a sample's values counts */
	runtime_set mapped; /* by any process */
	TABLE(struct process) processes;
	uint32_t *process_of; /* by number of labels */
	uint64_t *leaves;     /* by image: samples with their leaf there */
	size_t image_count;
	uint64_t sum;
};

/* The image of a location, or PROFILE_NONE. */
static uint32_t image_at(const struct profile *p, const struct profile_location *l)
{
	return l->mapping == PROFILE_NONE ? PROFILE_NONE : p->mappings[l->mapping].image;
}

static uint64_t value_of(const struct runtimes *r, size_t sample)
{
	int64_t value = r->p->values[sample * r->p->value_type_count + r->value];

	return MAX(value, 0);
}

/* Sets the runtimes of processes and images. of_image: the image's own, by image; all zero. */
static void add_samples(struct runtimes *r, runtime_set *of_image)
{
	const struct profile *p = r->p;

	for (size_t i = 0; i < p->image_count; i++) {
		char name[64];

		if (!file_name(p->images[i].path, name, sizeof(name)))
			continue;
		for (size_t j = 0; j < RUNTIME_COUNT && !of_image[i]; j++)
			if (matches_pattern(runtimes[j].images, name))
				of_image[i] = (runtime_set)1 << j;
		r->mapped |= of_image[i];
	}
	for (size_t i = 0; i < p->sample_count && r->mapped; i++) {
		const struct profile_sample *sample = &p->samples[i];
		struct process *process = &r->processes.all[r->process_of[sample->labels]];
		const uint32_t *frames = p->frames + sample->first_frame;

		for (uint32_t depth = 0; depth < sample->depth; depth++) {
			uint32_t image = image_at(p, &p->locations[frames[depth]]);

			if (image == PROFILE_NONE)
				continue;
			process->runtimes |= of_image[image];
			if (!depth)
				r->leaves[image] += value_of(r, i);
		}
		r->sum += value_of(r, i);
	}
}

struct runtimes *runtimes_new(const struct profile *p)
{
	runtime_set *of_image = calloc(p->image_count + 1, sizeof(*of_image));
	struct runtimes *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r || !of_image)
		goto out;
	r->p = p;
	r->value = profile_value(p, NULL);
	r->image_count = p->image_count;
	r->process_of = calloc(p->label_count + 1, sizeof(*r->process_of));
	r->leaves = calloc(p->image_count + 1, sizeof(*r->leaves));
	err = r->process_of && r->leaves ? 0 : -ENOMEM;
	/* One process for all labels with one PID: each thread and mode has its own labels. */
	for (size_t i = 0; i < p->label_count && !err; i++) {
		const struct process process = { .pid = p->labels[i].pid };

		err = table_add(&r->processes, &process, sizeof(process.pid), &r->process_of[i]);
	}
	if (!err)
		add_samples(r, of_image);
out:
	free(of_image);
	if (!err)
		return r;
	runtimes_free(r);
	return NULL;
}

void runtimes_free(struct runtimes *r)
{
	if (!r)
		return;
	table_free(&r->processes);
	free(r->process_of);
	free(r->leaves);
	free(r);
}

/* A runtime's share of an image's unnamed samples. */
struct share {
	uint64_t unnamed;
	uint64_t most;	  /* samples of the process with most of them */
	uint32_t pid;	  /* that process; 0: unknown */
	size_t processes; /* how many have unnamed samples */
};

/* certain: the process has these runtimes. */
static void add_shares(const struct runtimes *r, runtime_set all, bool certain,
		       const struct process *process, struct share *shares)
{
	for (size_t i = 0; i < RUNTIME_COUNT; i++) {
		if (!(all & (runtime_set)1 << i))
			continue;
		shares[i].unnamed += process->unnamed;
		shares[i].processes++;
		if (process->unnamed <= shares[i].most)
			continue;
		shares[i].most = process->unnamed;
		shares[i].pid = certain || r->processes.count == 1 ? process->pid : 0;
	}
}

/*
 * Attributes the unnamed samples to runtimes. A profile does not say which process has which
 * mapping: code in its stacks proves a process's runtime. A process without such code may have any
 * mapped runtime that is not proven for another process. Returns the number of unnamed samples.
 */
static uint64_t attribute_samples(const struct runtimes *r, struct share *shares)
{
	runtime_set known = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < r->processes.count; i++) {
		const struct process *process = &r->processes.all[i];
		runtime_set first = process->runtimes & -process->runtimes;

		sum += process->unnamed;
		if (!process->unnamed || !first)
			continue;
		known |= first;
		add_shares(r, first, true, process, shares);
	}
	for (size_t i = 0; i < r->processes.count; i++)
		if (r->processes.all[i].unnamed && !r->processes.all[i].runtimes)
			add_shares(r, r->mapped & ~known, false, &r->processes.all[i], shares);
	return sum;
}

static void print_hint(const struct runtime *runtime, const struct share *share, FILE *out)
{
	const char *rest = strstr(runtime->hint, PID);
	size_t size = rest ? (size_t)(rest - runtime->hint) : strlen(runtime->hint);

	fprintf(out, "; %s", runtime->name);
	if (share->pid)
		fprintf(out, " (PID %" PRIu32, share->pid);
	if (share->pid && share->processes > 1)
		fprintf(out, " and %zu more", share->processes - 1);
	fprintf(out, "%s: %.*s", share->pid ? ")" : "", (int)size, runtime->hint);
	if (!rest)
		return;
	if (share->pid)
		fprintf(out, "%" PRIu32, share->pid);
	else
		fputs("PID", out);
	fputs(rest + strlen(PID), out);
}

char *runtimes_hints(struct runtimes *r, uint32_t image, const char *why)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs(why, out);
	/* Malicious files have many images: at most IMAGE_SHARE of them scan the samples again. */
	if (image < r->image_count && r->leaves[image] >= r->sum / IMAGE_SHARE) {
		const struct profile *p = r->p;
		bool has_file = image_kind(p->images[image].path) == IMAGE_JIT;
		struct share shares[RUNTIME_COUNT] = { 0 };
		uint64_t sum;

		for (size_t i = 0; i < r->processes.count; i++)
			r->processes.all[i].unnamed = 0;
		for (size_t i = 0; i < p->sample_count; i++) {
			const struct profile_sample *sample = &p->samples[i];
			const struct profile_location *leaf;

			if (!sample->depth)
				continue;
			leaf = &p->locations[p->frames[sample->first_frame]];
			if (!leaf->line_count && image_at(p, leaf) == image)
				r->processes.all[r->process_of[sample->labels]].unnamed +=
					value_of(r, i);
		}
		sum = attribute_samples(r, shares);
		/* A process that has written a file of names needs no hint how to write one. */
		for (size_t i = 0; i < RUNTIME_COUNT; i++)
			if (shares[i].unnamed && shares[i].unnamed >= sum / HINT_SHARE &&
			    (!has_file || runtimes[i].snapshot))
				print_hint(&runtimes[i], &shares[i], out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

const char *runtime_frame_hint(const struct profile *p, const char *image)
{
	enum image_kind kind = image_kind(image);
	char name[64];

	if (kind != IMAGE_JIT && kind != IMAGE_ANON && kind != IMAGE_BRACKETED)
		return NULL;
	/* In the table's order: OpenJ9 has a libjvm.so, too. */
	for (size_t i = 0; i < RUNTIME_COUNT; i++)
		for (size_t j = 0; j < p->image_count; j++)
			if (file_name(p->images[j].path, name, sizeof(name)) &&
			    matches_pattern(runtimes[i].images, name))
				return runtimes[i].frames;
	return NULL;
}

/* Those of no language that has a description (script/language.h). */
static const struct interpreter interpreters[] = {
	{ .images = { "ruby", "ruby[0-9]*", "libruby*.so*" },
	  .hint = "functions that Ruby interprets are not read; rbspy or stackprof names them" },
	{ .images = { "lua", "lua5*", "liblua5*.so*", "liblua.so*" },
	  .hint = "functions of Lua are not read" },
	{ .images = { "luajit", "luajit-*", "libluajit*.so*" },
	  .hint = "functions that LuaJIT interprets are not read; luajit -jp "
		  "is its own profiler" },
	{ .images = { "node", "nodejs", "libnode.so*" },
	  .names = "JS:~",
	  .functions = { "Builtins_", "Handler" },
	  .hint = "node --perf-basic-prof --interpreted-frames-native-stack, recorded with -g, has "
		  "the script's functions in the call stacks" },
};

/* Whether much of the profile is in functions with this prefix and suffix. */
static bool has_many(const struct profile *p, const char *const functions[2])
{
	size_t value = profile_value(p, NULL), tail = strlen(functions[1]);
	uint64_t sum = 0, found = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];
		int64_t count = p->values[i * p->value_type_count + value];
		const struct profile_location *leaf;
		const char *name;

		if (count <= 0 || !sample->depth)
			continue;
		add_u64(&sum, count);
		leaf = &p->locations[p->frames[sample->first_frame]];
		if (!leaf->line_count)
			continue;
		name = p->functions[p->lines[leaf->first_line].function].name;
		if (strncmp(name, functions[0], strlen(functions[0])) == 0 && strlen(name) > tail &&
		    strcmp(name + strlen(name) - tail, functions[1]) == 0)
			add_u64(&found, count);
	}
	return found && found >= sum / INTERPRETER_SHARE;
}

const char *runtime_interpreter(const struct profile *p, uint32_t image,
				char text[static RUNTIME_HINT_SIZE])
{
	const struct interpreter *found = NULL;
	char name[64], version[LANGUAGE_VERSION_SIZE] = "", next = '\0';
	unsigned int major, minor;
	int known, fd = p->images[image].fd;

	if (!file_name(p->images[image].path, name, sizeof(name)))
		return NULL;
	for (int l = LANGUAGE_NONE + 1; l < LANGUAGES && !found; l++)
		if (matches_pattern(language_interpreter(l)->images, name))
			found = language_interpreter(l);
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters) && !found; i++)
		if (matches_pattern(interpreters[i].images, name))
			found = &interpreters[i];
	if (!found || (found->functions[0] && !has_many(p, found->functions)))
		return NULL;
	for (size_t i = 0; i < p->function_count && found->names; i++)
		if (strncmp(p->functions[i].name, found->names, strlen(found->names)) == 0)
			return NULL;
	if (!found->language)
		return found->hint;
	for (uint32_t i = 0; i < p->location_count; i++)
		if (profile_is_script(p, i))
			return NULL;
	/* By the file itself, which is open after a recording, else by its name: libperl.so.5.36 */
	if (fd >= 0 && !language_is_interpreter(fd))
		language_version(fd, version);
	known = sscanf(name + strcspn(name, "0123456789"), "%u.%u%c", &major, &minor, &next);
	if (!*version && known >= 2 &&
	    (major != found->major || minor < found->minor_least || minor > found->minor_most ||
	     next == 't'))
		snprintf(version, sizeof(version), "%s%s %u.%u",
			 next == 't' ? "free-threaded " : "", found->language, major, minor);
	if (!*version && strcmp(p->stacks, "cfi") == 0)
		return found->hint;
	if (*version)
		snprintf(text, RUNTIME_HINT_SIZE,
			 "%s is not supported: run it by %s %u.%u to %u.%u%s", version,
			 found->language, found->major, found->minor_least, found->major,
			 found->minor_most, found->builds);
	else
		snprintf(text, RUNTIME_HINT_SIZE,
			 "recorded with -g, %s %u.%u to %u.%u has its functions in the call stacks",
			 found->language, found->major, found->minor_least, found->major,
			 found->minor_most);
	return text;
}
