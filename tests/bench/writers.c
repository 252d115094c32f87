// SPDX-License-Identifier: GPL-2.0-only
/*
 * writers DIRECTORY [FORMAT]: times every writer, or that of one format, with a profile of a
 * million distinct stacks of 16 frames. Prints "NAME SECONDS MIB" for each: SECONDS of CPU time;
 * MIB is what memory grew by while writing. Each runs in a process of its own, so that none
 * inherits what another one left.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/format.h"
#include "util/clock.h"

#define STACKS	  1000000
#define DEPTH	  16
#define IMAGES	  5
#define FUNCTIONS 20000
#define LOCATIONS 200000

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "out of memory\n");
	exit(1);
}

/* Where a function is called from: each from five places, as the graphs of real programs are. */
static uint32_t caller(uint32_t location, uint32_t which)
{
	uint64_t hash =
		(location % FUNCTIONS * UINT64_C(5) + which + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (hash >> 32) % LOCATIONS;
}

/*
 * Every function has ten lines, in five images of 40 MB of code. One location in a hundred has no
 * name: a writer that needs one makes it.
 */
static void add_code(struct profile *p)
{
	for (uint32_t i = 0; i < IMAGES; i++) {
		uint32_t image, mapping;
		char path[32];

		snprintf(path, sizeof(path), "/usr/lib/image%" PRIu32 ".so", i);
		must(profile_add_image(p, path, (const uint8_t *)path, 20, &image));
		must(profile_add_mapping(p, (i + 1) * UINT64_C(0x10000000),
					 (i + 1) * UINT64_C(0x10000000) + 0x4000000, 0, image,
					 &mapping));
		p->images[image].text_size = 0x4000000;
	}
	for (uint32_t i = 0; i < LOCATIONS; i++) {
		char name[64], file[64];
		struct profile_function f = { name, name, file, i / 10 % 1000 };
		struct profile_line line = { .line = i % 5000 };
		uint32_t location, mapping = i % IMAGES;

		snprintf(name, sizeof(name), "library::module::function_%" PRIu32, i % FUNCTIONS);
		snprintf(file, sizeof(file), "/usr/src/module%" PRIu32 ".cc", i % FUNCTIONS / 50);
		must(profile_add_function(p, &f, &line.function));
		must(profile_add_location(p, p->mappings[mapping].start + i * 64, mapping,
					  &location));
		if (i % 100)
			must(profile_set_lines(p, location, &line, 1));
	}
}

static struct profile *make_profile(void)
{
	const struct profile_labels none = { .comm = "" };
	struct profile *p = profile_new();
	uint32_t labels, frames[DEPTH];

	if (!p)
		must(-1);
	p->bits = 64;
	must(profile_string(p, "cpu-clock", &p->event));
	must(profile_add_clock(p, 10101010));
	must(profile_add_labels(p, &none, &labels));
	add_code(p);
	for (uint32_t i = 0; i < STACKS; i++) {
		int64_t values[] = { 1 + i % 7, (1 + i % 7) * 10101010 };

		frames[0] = i % LOCATIONS;
		frames[1] = caller(frames[0], i / LOCATIONS);
		for (uint32_t depth = 2; depth < DEPTH; depth++)
			frames[depth] = caller(frames[depth - 1], 0);
		must(profile_add_sample(p, frames, DEPTH, labels, values));
	}
	return p;
}

/* A line of /proc/self/status, in KiB. */
static long status_kib(const char *key)
{
	char line[256];
	long kib = 0;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = strtol(line + strlen(key), NULL, 10);
	if (status)
		fclose(status);
	return kib;
}

static int write_one(const struct profile *p, const struct format *format, const char *directory)
{
	static const struct format_options options;
	uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	long before = status_kib("VmRSS:");
	char path[4096];
	struct error e = { 0 };
	FILE *out;
	int err;

	snprintf(path, sizeof(path), "%s/%s", directory, format->name);
	if (format->write_directory) {
		err = format->write_directory(p, &options, path, &e);
	} else {
		out = fopen(path, "w");
		err = out ? format->write(p, &options, out, &e) : -1;
		if (out && fclose(out))
			err = -1;
	}
	if (err) {
		fprintf(stderr, "%s: %s\n", format->name, e.what);
		return 1;
	}
	printf("%s %.2f %ld\n", format->name, (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / 1e9,
	       (status_kib("VmHWM:") - before) / 1024);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	struct profile *p = make_profile();
	int failed = 0;

	if (argc != 2 && argc != 3)
		return 2;
	for (const struct format *const *f = format_all; *f; f++) {
		int status = 1;
		pid_t pid;

		if (argc == 3 && strcmp(argv[2], (*f)->name) != 0)
			continue;
		pid = fork();
		if (pid == 0)
			_exit(write_one(p, *f, argv[1]));
		waitpid(pid, &status, 0);
		failed |= status != 0;
	}
	profile_free(p);
	return failed;
}
