// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes archives for tests and benches, as profild --continuous writes them:
 *
 *     archive_make write DIRECTORY HOST START COUNT EACH PROFILE...
 *
 * writes COUNT windows from START on (seconds since the epoch), 60 s apart. Each is the sum of EACH
 * of the profiles, which follow each other in a circle; samples get the labels "unit", "user" and
 * "cpu", by their commands and stacks. Prints the path of each. A PROFILE may be NAME=PROFILE: all
 * its samples are of the command NAME.
 *
 *     archive_make place DIRECTORY HOST START COUNT GRAIN PROFILE...
 *
 * writes COUNT windows of GRAIN seconds from START on, each with a copy of one of the profiles.
 *
 *     archive_make tidy DIRECTORY HOST NOW CALLS [BYTES DAYS FREE_BYTES [TIMES_HOURS]]
 *
 * tidies so many times, and prints what was dropped. Times of ticks stay for 6 hours by default.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/tree.h"
#include "format/format.h"
#include "profile/merge.h"
#include "util/clock.h"
#include "profile/tags.h"

static void check(int err, const struct error *e)
{
	if (!err)
		return;
	fprintf(stderr, "archive_make: %s\n", e->what);
	exit(1);
}

/* --- write --- */

static unsigned int sum_of(const char *text)
{
	unsigned int sum = 0;

	while (*text)
		sum += (unsigned char)*text++;
	return sum;
}

/* Adds a sample with the labels of a window. */
static int relabel(struct profile *p, size_t sample)
{
	static const char *const users[] = { "root", "build", "www-data" };
	struct profile_sample *s = &p->samples[sample];
	struct profile_labels labels = p->labels[s->labels];
	unsigned int sum = sum_of(labels.comm);
	char unit[64];
	struct profile_tag tags[4] = { { "cpu", NULL, sample % 2, "id" } };

	if (profile_find_tag(&labels, "cpu")) /* which recordings have not */
		return 0;
	snprintf(unit, sizeof(unit), "%s.service", labels.comm);
	tags[1] = (struct profile_tag){ "unit", unit, 0, "" };
	tags[2] = (struct profile_tag){ "user", users[sum % 3], 0, "" };
	labels.tags = tags;
	labels.tag_count = 3;
	labels.tid = 0;
	/* Most processes are short. */
	if (labels.pid % 8)
		labels.pid = labels.generation = 0;
	return profile_add_labels(p, &labels, &s->labels);
}

/* Moves a profile to a minute, or more, with the times of its ticks, which must fit in there. */
static void move(struct profile *p, uint64_t time_s, unsigned int seconds)
{
	for (size_t i = 0; i < p->ticks.count; i++)
		p->ticks.times[i] += time_s * NS_PER_S - p->time_ns;
	p->time_ns = time_s * NS_PER_S;
	p->duration_ns = seconds * NS_PER_S;
}

/* Windows have a period, and totals of the machine. */
static void add_account(struct profile *p)
{
	struct profile_totals *t = &p->totals;

	if (!profile_tick_ns(p))
		profile_set_tick_ns(p, NS_PER_S / 100);
	if (t->known)
		return;
	t->known = true;
	t->ticks = t->counted = profile_total(p, "samples");
	t->cpu_ns = profile_ticks_ns(p, t->ticks);
}

/* Reads PROFILE or NAME=PROFILE. */
static struct profile *read_profile(const char *argument)
{
	const char *path = strchr(argument, '=');
	struct profile *p;
	struct error e;
	uint32_t id;

	check(format_read(path ? path + 1 : argument, NULL, &p, &e), &e);
	for (size_t i = 0; i < p->sample_count && path; i++) {
		struct profile_labels labels = p->labels[p->samples[i].labels];

		if (profile_string_n(p, argument, path - argument, &labels.comm) ||
		    profile_add_labels(p, &labels, &id))
			check(error_no_memory(&e), &e);
		p->samples[i].labels = id;
	}
	return p;
}

static void write_windows(char **argv, int argc)
{
	uint64_t start_s = strtoull(argv[4], NULL, 10);
	int count = atoi(argv[5]), each = atoi(argv[6]), files = argc - 7, next = 0, fd;
	struct archive *a;
	char path[4096];
	struct error e;

	check(archive_open(argv[2], argv[3], getpid(), &a, &e), &e);
	for (int i = 0; i < count; i++) {
		struct profile *sum = profile_new(), *window = profile_new();

		for (int j = 0; j < each; j++) {
			struct profile *p = read_profile(argv[7 + next++ % files]);

			check(profile_merge(sum, p, NULL, &e), &e);
			profile_free(p);
		}
		for (size_t j = 0; j < sum->sample_count; j++)
			if (relabel(sum, j))
				check(error_no_memory(&e), &e);
		check(profile_merge(window, sum, NULL, &e), &e);
		profile_free(sum);
		move(window, start_s + i * 60, 60);
		add_account(window);
		if (profile_string(window, argv[3], &window->host))
			check(error_no_memory(&e), &e);
		check(archive_encode(window, NULL, NULL, &fd, &e), &e);
		check(archive_write(a, fd, window->time_ns, path, sizeof(path), &e), &e);
		close(fd);
		puts(path);
		profile_free(window);
	}
	archive_close(a);
}

/* --- place --- */

static void place_windows(char **argv, int argc)
{
	uint64_t start_s = strtoull(argv[4], NULL, 10);
	int count = atoi(argv[5]), files = argc - 7;
	unsigned int grain_s = atoi(argv[6]);
	struct tree tree;
	struct error e;

	check(tree_open(&tree, argv[2], argv[3], true, &e), &e);
	for (int i = 0; i < count; i++) {
		struct window_name name = { .start_s = start_s + (uint64_t)i * grain_s,
					    .grain_s = grain_s };
		struct profile *p;

		check(format_read(argv[7 + i % files], NULL, &p, &e), &e);
		move(p, name.start_s, grain_s);
		check(tree_write(&tree, p, &name, true, &e), &e);
		profile_free(p);
	}
	tree_close(&tree);
}

/* --- tidy --- */

static void print_dropped(const struct archive_dropped *d, void *context)
{
	static const char *const reasons[] = {
		"bytes", "days", "space", "damaged", "clock", "most"
	};

	(void)context;
	printf("%s: %" PRIu64 " windows, %" PRIu64 " bytes, from %" PRIu64 " to %" PRIu64 "%s%s\n",
	       reasons[d->reason], d->count, d->bytes, d->first_ns / NS_PER_S,
	       d->limit_ns / NS_PER_S, d->path ? " " : "", d->path ?: "");
}

static void tidy(char **argv, int argc)
{
	struct archive_limits limits = { .times_s = 6 * 3600 };
	struct archive_tidied tidied = { 0 };
	struct error e;

	if (argc > 8) {
		limits.bytes = strtoull(argv[6], NULL, 10);
		limits.days = strtoull(argv[7], NULL, 10);
		limits.free_bytes = strtoull(argv[8], NULL, 10);
	}
	if (argc > 9)
		limits.times_s = strtoull(argv[9], NULL, 10) * 3600;
	for (int i = 0; i < atoi(argv[5]); i++)
		check(archive_tidy(argv[2], argv[3], &limits, NULL,
				   strtoull(argv[4], NULL, 10) * NS_PER_S, UINT64_MAX,
				   print_dropped, NULL, &tidied, &e),
		      &e);
}

int main(int argc, char **argv)
{
	if (argc > 7 && strcmp(argv[1], "write") == 0)
		write_windows(argv, argc);
	else if (argc > 7 && strcmp(argv[1], "place") == 0)
		place_windows(argv, argc);
	else if (argc > 5 && strcmp(argv[1], "tidy") == 0)
		tidy(argv, argc);
	else
		return 2;
	return 0;
}
