// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a profile with the times of its ticks, of a clock of 1 ms:
 *
 *     times_make FILE START_NS DURATION_MS HOST
 *
 * Each line on standard input adds COUNT ticks of one sample, the first FIRST ms after the start,
 * each other one STEP ms after the one before; STEP "-": they have no times; "10~": each comes up
 * to a step later, by chance; "=10": they are no ticks but waits of 10 ms, one after the other;
 * "=10>17:web": which thread 17, "web", ended; "=10#1": with CPU 1 the thread got next.
 *
 *     FIRST STEP COUNT PID TID NAME[,LABEL=TEXT|,LABEL=#NUMBER]... FUNCTION;FUNCTION...
 *
 * Lines that are empty or begin with # are not read. The first function is the outermost. With
 * "values" as a fifth argument, each sample also has a value that is no time; with "wall", the time
 * of all states of its thread, which waits need; with "chains", too, and no wait is missing.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "util/clock.h"

#define DEPTH_MAX 16
#define TAGS_MAX  16

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "times_make: %s\n", what);
	exit(1);
}

static uint32_t function_frame(struct profile *p, const char *name, uint32_t mapping)
{
	struct profile_function f = { name, name, "", 0 };
	struct profile_line line = { 0 };
	uint32_t location;

	check(profile_add_function(p, &f, &line.function), "no memory");
	check(profile_add_line_location(p, 0x1000 + 16 * line.function, mapping, &line, 1,
					&location),
	      "no memory");
	return location;
}

static void add_line(struct profile *p, uint32_t mapping, char *text, bool wall)
{
	double first_ms, step_ms;
	uint64_t count;
	struct profile_tag tags[TAGS_MAX + 2];
	struct profile_labels labels = { .tags = tags };
	char step[64], tid[16], waker[32], name[256], stack[1024], *rest = stack, *function,
								   *tag = name, *label_text;
	uint32_t frames[DEPTH_MAX], leaf_first[DEPTH_MAX], depth = 0, label, sample;
	int64_t values[3] = { 0 };

	check(sscanf(text, "%lf %63s %" SCNu64 " %" SCNu32 " %" SCNu32 " %255s %1023[^\n]",
		     &first_ms, step, &count, &labels.pid, &labels.tid, name, stack) != 7,
	      text);
	labels.comm = strsep(&tag, ",");
	while ((label_text = strsep(&tag, ",")) && labels.tag_count < TAGS_MAX) {
		const char *key = strsep(&label_text, "=");

		check(!label_text, key);
		tags[labels.tag_count] = (struct profile_tag){ key, label_text, 0, "" };
		if (*label_text == '#')
			tags[labels.tag_count] =
				(struct profile_tag){ key, NULL, atoi(label_text + 1), "" };
		labels.tag_count++;
	}
	while ((function = strsep(&rest, ";")) && depth < DEPTH_MAX)
		frames[depth++] = function_frame(p, function, mapping);
	for (uint32_t i = 0; i < depth; i++)
		leaf_first[i] = frames[depth - 1 - i];
	if (*step == '=' && sscanf(step, "%*[^>]>%15[0-9]:%31s", tid, waker) == 2) {
		tags[labels.tag_count++] = (struct profile_tag){ "waker", waker, 0, "" };
		tags[labels.tag_count++] = (struct profile_tag){ "waker_tid", tid, 0, "" };
	}
	check(profile_add_labels(p, &labels, &label), "no memory");
	check(profile_sample(p, leaf_first, depth, label, &sample), "no memory");
	if (*step == '=') {
		uint64_t length_ns = (uint64_t)(strtod(step + 1, &rest) * NS_PER_MS);
		uint32_t cpu = *rest == '#' ? (uint32_t)atoi(rest + 1) : WAIT_NO_CPU;

		values[2] = (int64_t)(count * length_ns);
		profile_add_values(p, sample, values);
		for (uint64_t i = 0; i < count; i++)
			check(wait_list_add(&p->waits, sample,
					    p->time_ns + (uint64_t)(first_ms * NS_PER_MS) +
						    i * length_ns,
					    length_ns, cpu),
			      "no memory");
		return;
	}
	profile_set_ticks(p, count, values);
	values[2] = wall ? (int64_t)(count * NS_PER_MS) : 7;
	profile_add_values(p, sample, values);
	step_ms = strtod(step, &rest);
	for (uint64_t i = 0; i < count && *step != '-'; i++) {
		double later_ms = (double)i * step_ms + (*rest == '~' ? drand48() * step_ms : 0);

		check(tick_list_add(&p->ticks, sample,
				    p->time_ns + (uint64_t)((first_ms + later_ms) * NS_PER_MS)),
		      "no memory");
	}
	p->totals.ticks = p->totals.counted += count;
	p->totals.cpu_ns += count * NS_PER_MS;
}

int main(int argc, char **argv)
{
	struct profile *p = profile_new();
	uint32_t image, mapping;
	char text[2048];
	bool wall;
	struct error e;
	FILE *out;

	if (argc < 5)
		return 2;
	p->time_ns = strtoull(argv[2], NULL, 10);
	p->duration_ns = strtoull(argv[3], NULL, 10) * NS_PER_MS;
	p->totals.known = true;
	check(profile_string(p, argv[4], &p->host) || profile_string(p, "cpu-clock", &p->event) ||
		      profile_add_clock(p, NS_PER_MS),
	      "no memory");
	p->waits.complete = argc > 5 && strcmp(argv[5], "chains") == 0;
	wall = p->waits.complete || (argc > 5 && strcmp(argv[5], "wall") == 0);
	if (argc > 5)
		check(wall ? profile_add_sum(p, PROFILE_SUM_WALL)
			   : profile_add_value_type(p, "faults", "count"),
		      "no memory");
	check(profile_add_image(p, "/usr/bin/server", NULL, 0, &image) ||
		      profile_add_mapping(p, 0x1000, 0x100000, 0, image, &mapping),
	      "no memory");
	while (fgets(text, sizeof(text), stdin))
		if (*text != '#' && *text != '\n')
			add_line(p, mapping, text, wall);
	out = fopen(argv[1], "w");
	check(!out, argv[1]);
	check(format_by_name("pprof")->write(p, &(struct format_options){ 0 }, out, &e), e.what);
	check(fclose(out), argv[1]);
	profile_free(p);
	return 0;
}
