// SPDX-License-Identifier: GPL-2.0-only
#include "profile/thread_walls.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/thread_state.h"
#include "util/index.h"
#include "util/sum.h"

static uint64_t thread_hash(const struct profile_labels *l)
{
	return hash_u64((uint64_t)l->pid << 32 | l->generation, l->tid);
}

struct thread_walls {
	const struct profile *p;
	const struct profile_labels *labels; /* of the thread that is looked for */
};

static bool is_of_thread(const void *array, uint32_t number, const void *key)
{
	const struct thread_walls *w = key;
	const struct profile_labels *a =
		&w->p->labels[((const struct profile_wall *)array)[number].labels];

	return a->tid == w->labels->tid && a->pid == w->labels->pid &&
	       a->generation == w->labels->generation;
}

/*
 * Adds up the samples of each thread that has a row in the account. *out: a row for each of those,
 * to be free()d; NULL: the profile has no value of wall time, or memory ran out.
 */
static int sum_samples(const struct profile *p, struct profile_wall **out)
{
	size_t width = p->value_type_count, wall = profile_find_sum(p, PROFILE_SUM_WALL);
	struct profile_wall *sums = NULL;
	struct index threads = { 0 };
	int err = 0;

	*out = NULL;
	if (wall == width)
		return 0;
	sums = calloc(p->wall_count + 1, sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < p->wall_count && !err; i++) {
		sums[i].labels = p->walls[i].labels;
		sums[i].threads = p->walls[i].threads;
		err = index_add(&threads, thread_hash(&p->labels[p->walls[i].labels]), i);
	}
	for (size_t i = 0; i < p->sample_count && p->wall_count && !err; i++) {
		const struct thread_walls key = { p, &p->labels[p->samples[i].labels] };
		uint32_t number =
			index_find(&threads, thread_hash(key.labels), is_of_thread, p->walls, &key);
		uint64_t ns = magnitude(p->values[i * width + wall]), *to;
		const char *reason;
		size_t size;

		if (number == INDEX_NONE)
			continue;
		switch (profile_sample_state(p, &p->samples[i], &reason, &size)) {
		case THREAD_ON_CPU:
			to = &sums[number].on_cpu_ns;
			break;
		case THREAD_RUNNABLE:
			to = &sums[number].runnable_ns;
			break;
		case THREAD_IDLE:
			to = &sums[number].idle_ns;
			break;
		default:
			to = &sums[number].blocked_ns;
			break;
		}
		add_u64(to, ns);
		add_u64(&sums[number].wall_ns, ns);
	}
	index_free(&threads);
	if (err)
		free(sums);
	else
		*out = sums;
	return err;
}

int profile_split_idle(struct profile *p)
{
	struct profile_wall *sums;
	int err = sum_samples(p, &sums);

	for (size_t i = 0; sums && i < p->wall_count; i++) {
		struct profile_wall *wall = &p->walls[i];
		uint64_t slept_ns = wall->blocked_ns;

		add_u64(&slept_ns, wall->idle_ns);
		wall->idle_ns = MIN(sums[i].idle_ns, slept_ns);
		wall->blocked_ns = slept_ns - wall->idle_ns;
	}
	free(sums);
	return err;
}

int profile_cut_walls(struct profile *p)
{
	size_t kept = 0, count = p->wall_count;
	struct profile_wall *sums;
	int err = sum_samples(p, &sums);

	for (size_t i = 0; sums && i < count; i++)
		if (sums[i].wall_ns)
			p->walls[kept++] = sums[i];
	p->wall_count = kept;
	index_free(&p->wall_index);
	free(sums);
	return err;
}
