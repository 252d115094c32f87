// SPDX-License-Identifier: GPL-2.0-only
#include "report/segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "profile/pc_name.h"
#include "profile/tags.h"
#include "record/wait_names.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/index.h"
#include "util/number.h"

/*
 * Between being blocked and being runnable is nothing but what the file's unit cuts off.
 * Bound: pace.
 */
#define ROUNDING_NS 2000

/* So long after the end of a window of an archive the next one has begun. Bound: pace. */
#define CUT_NS 100000000

/* Waits without times that are less of the time between others do not matter. Bound: pace. */
#define CERTAIN_SHARE 0.01

/*
 * The account of a thread's life and the list of waits begin and end at moments that are this far
 * apart. Bound: pace.
 */
#define LIFE_SLACK_NS (10 * NS_PER_MS)

struct making {
	struct segments *s;
	size_t room;
	struct index index;
	size_t place_room;
	struct index place_index;
	/* What is known of images and functions so far. */
	enum answer {
		UNASKED,
		NO,
		YES
	} * is_libc, *waits_for_others;
};

static bool thread_equal(const void *array, uint32_t number, const void *key)
{
	const struct segment_thread *t = (const struct segment_thread *)array + number;
	const struct profile_labels *labels = key;

	return t->tid == labels->tid && t->pid == labels->pid &&
	       t->generation == labels->generation;
}

/* Returns 0 or -ENOMEM. */
static int find_thread(struct making *m, const struct profile_labels *labels, uint32_t *number)
{
	uint64_t hash = hash_u64((uint64_t)labels->pid << 32 | labels->generation, labels->tid);
	const char *process = profile_tag_text(labels, TAG_PROCESS);
	const char *comm = profile_tag_text(labels, TAG_THREAD); /* in windows of an archive */
	struct segments *s = m->s;

	*number = index_find(&m->index, hash, thread_equal, s->threads, labels);
	if (*number == INDEX_NONE) {
		*number = s->thread_count;
		if (array_reserve(&s->threads, &m->room, s->thread_count + 1,
				  sizeof(*s->threads)) ||
		    index_add(&m->index, hash, *number))
			return -ENOMEM;
		s->threads[s->thread_count++] = (struct segment_thread){
			.pid = labels->pid,
			.generation = labels->generation,
			.tid = labels->tid,
			.certain = 1,
		};
	}
	s->threads[*number].comm = comm ?: labels->comm;
	s->threads[*number].process = process ?: labels->comm;
	return 0;
}

/* Whether a frame has a function that is worth a name. */
static bool says_where(struct making *m, const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_image *image = profile_location_image(p, location);
	enum answer *libc = image ? &m->is_libc[image - p->images] : NULL, *others;

	if (!profile_is_named(p, location) || (image && image_is_in_kernel(image->path)))
		return false;
	if (libc && *libc == UNASKED)
		*libc = image_is_libc(image->path) ? YES : NO;
	if (libc && *libc == YES)
		return false;
	others = &m->waits_for_others[p->lines[l->first_line].function];
	if (*others == UNASKED)
		*others = wait_names_for_others(&p->functions[others - m->waits_for_others]) ? YES
											     : NO;
	return *others == NO;
}

static bool place_equal(const void *array, uint32_t number, const void *key)
{
	const struct segment_place *a = (const struct segment_place *)array + number, *b = key;

	return memcmp(a->functions, b->functions, sizeof(a->functions)) == 0;
}

/* Returns 0 or -ENOMEM. */
static int find_place(struct making *m, const struct profile *p, const struct profile_sample *wait,
		      uint32_t *number)
{
	struct segments *s = m->s;
	struct segment_place place;
	uint32_t depth = 0, i = 1;
	uint64_t hash = 0;

	for (uint32_t k = 1; k < wait->depth; k++)
		if (profile_is_script(p, p->frames[wait->first_frame + k])) {
			i = k;
			break;
		}
	for (; i < wait->depth && depth < SEGMENT_PLACE_DEPTH; i++) {
		uint32_t location = p->frames[wait->first_frame + i];

		if (!says_where(m, p, location))
			continue;
		place.locations[depth] = location;
		place.functions[depth++] = segment_function(p, location);
	}
	while (depth < SEGMENT_PLACE_DEPTH)
		place.functions[depth++] = UINT64_MAX;
	for (depth = 0; depth < SEGMENT_PLACE_DEPTH; depth++)
		hash = hash_u64(hash, place.functions[depth]);
	*number = index_find(&m->place_index, hash, place_equal, s->places, &place);
	if (*number != INDEX_NONE)
		return 0;
	*number = s->place_count;
	if (array_reserve(&s->places, &m->place_room, s->place_count + 1, sizeof(*s->places)) ||
	    index_add(&m->place_index, hash, *number))
		return -ENOMEM;
	s->places[s->place_count++] = place;
	return 0;
}

static int find_threads(struct making *m, const struct profile *p)
{
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);
	struct segments *s = m->s;
	uint32_t number;
	int err = 0;

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_labels *labels = &p->labels[p->samples[i].labels];
		const char *tid = profile_tag_text(labels, TAG_WAKER_TID);
		struct segment_kind *kind = &s->kinds[i];
		uint64_t waker;

		err = find_thread(m, labels, &kind->thread);
		kind->state =
			profile_sample_state(p, &p->samples[i], &kind->reason, &kind->reason_size);
		kind->waker = profile_tag_text(labels, TAG_WAKER);
		kind->peer = profile_tag_text(labels, TAG_PEER);
		if (tid && number_parse(tid, 1, UINT32_MAX, &waker) == 0)
			kind->waker_tid = waker;
		if (!err && (kind->state == THREAD_BLOCKED || kind->state == THREAD_IDLE))
			err = find_place(m, p, &p->samples[i], &kind->place);
		/* The first wait of a thread, for its creator, is before its life. */
		if (!err && wall < p->value_type_count && kind->state != THREAD_ON_CPU &&
		    !(kind->reason_size == 5 && memcmp(kind->reason, "start", 5) == 0))
			add_u64(labels->tid ? &s->threads[kind->thread].untimed_ns
					    : &s->unattributed_ns,
				magnitude(p->values[i * p->value_type_count + wall]));
	}
	for (size_t i = 0; i < p->wall_count && !err; i++) {
		err = find_thread(m, &p->labels[p->walls[i].labels], &number);
		if (err)
			break;
		add_u64(&s->threads[number].wall_ns, p->walls[i].wall_ns);
		add_u64(&s->threads[number].ran_ns, p->walls[i].on_cpu_ns);
	}
	return err;
}

static int by_time(const void *left, const void *right)
{
	const struct segment *a = left, *b = right;

	return (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
}

static int by_tick_time(const void *left, const void *right)
{
	const struct segment_tick *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Puts ticks and waits into the order of threads and times. */
static int group(struct segments *s, const struct profile *p)
{
	size_t *first = calloc(2 * (s->thread_count + 2), sizeof(*first));
	size_t *first_tick;

	s->all = malloc((p->waits.count + 1) * sizeof(*s->all));
	s->ticks = malloc((p->ticks.count + 1) * sizeof(*s->ticks));
	if (!first || !s->all || !s->ticks) {
		free(first);
		return -ENOMEM;
	}
	first_tick = first + s->thread_count + 2;
	/* Counted two places behind, these are the begins once all have been put in place. */
	for (size_t i = 0; i < p->waits.count; i++)
		first[s->kinds[p->waits.waits[i].sample].thread + 2]++;
	for (size_t i = 0; i < p->ticks.count; i++)
		first_tick[s->kinds[p->ticks.numbers[i]].thread + 2]++;
	for (size_t i = 3; i < s->thread_count + 2; i++) {
		first[i] += first[i - 1];
		first_tick[i] += first_tick[i - 1];
	}
	for (size_t i = 0; i < p->waits.count; i++) {
		const struct timed_wait *w = &p->waits.waits[i];
		struct segment_thread *t = &s->threads[s->kinds[w->sample].thread];

		t->untimed_ns -= w->length_ns < t->untimed_ns ? w->length_ns : t->untimed_ns;
		s->all[first[s->kinds[w->sample].thread + 1]++] =
			(struct segment){ w->since_ns, w->since_ns + w->length_ns, w->sample,
					  w->cpu };
	}
	for (size_t i = 0; i < p->ticks.count; i++)
		s->ticks[first_tick[s->kinds[p->ticks.numbers[i]].thread + 1]++] =
			(struct segment_tick){ p->ticks.times[i], p->ticks.numbers[i] };
	for (size_t i = 0; i < s->thread_count; i++) {
		struct segment_thread *t = &s->threads[i];

		t->first = first[i];
		t->count = first[i + 1] - first[i];
		t->first_tick = first_tick[i];
		t->tick_count = first_tick[i + 1] - first_tick[i];
	}
	free(first);
	return 0;
}

/*
 * Whether the end of a window of an archive cut a wait in two: between them the thread is not
 * known to have run.
 */
static bool goes_on(const struct segments *s, const struct segment *a, const struct segment *b)
{
	const struct profile_sample *x = &s->p->samples[a->sample], *y = &s->p->samples[b->sample];

	return a->cpu == WAIT_NO_CPU && !s->kinds[a->sample].waker &&
	       b->since_ns - a->until_ns < CUT_NS && x->depth == y->depth &&
	       memcmp(&s->p->frames[x->first_frame], &s->p->frames[y->first_frame],
		      x->depth * sizeof(*s->p->frames)) == 0;
}

/* Sorts a thread's waits, if they are not, and cuts those that overlap. */
static void clean(struct segments *s, struct segment_thread *t)
{
	struct segment *all = s->all + t->first;
	struct segment_tick *ticks = s->ticks + t->first_tick;
	uint64_t end_ns = 0;
	size_t kept = 0;

	for (size_t i = 1; i < t->count; i++)
		if (all[i].since_ns < all[i - 1].since_ns) {
			qsort(all, t->count, sizeof(*all), by_time);
			break;
		}
	for (size_t i = 1; i < t->tick_count; i++)
		if (ticks[i].time_ns < ticks[i - 1].time_ns) {
			qsort(ticks, t->tick_count, sizeof(*ticks), by_tick_time);
			break;
		}
	for (size_t i = 0; i < t->count; i++) {
		struct segment segment = all[i];
		bool follows = kept && s->kinds[segment.sample].state == THREAD_RUNNABLE &&
			       s->kinds[all[kept - 1].sample].state != THREAD_RUNNABLE;

		if (segment.since_ns < end_ns ||
		    (follows && segment.since_ns - end_ns <= ROUNDING_NS))
			segment.since_ns = end_ns;
		if (segment.since_ns >= segment.until_ns)
			continue;
		end_ns = segment.until_ns;
		if (kept && goes_on(s, &all[kept - 1], &segment))
			segment.since_ns = all[--kept].since_ns;
		all[kept++] = segment;
	}
	t->count = kept;
}

/*
 * How long a thread lived is in the account. One that began in the recording has been runnable
 * first; after an execve(), or if it got a CPU at once, its last wait is too late for all of that
 * to be at the begin. All others were there when the recording began.
 */
static void find_life(const struct segments *s, struct segment_thread *t)
{
	const struct segment *first = s->all + t->first, *last = first + t->count - 1;
	uint64_t slept_ns = 0, ran_ns;

	t->life = s->recorded;
	if (t->wall_ns) {
		uint64_t since_ns = s->recorded.since_ns;

		if (t->count && s->kinds[first->sample].state == THREAD_RUNNABLE &&
		    t->wall_ns <= s->recorded.until_ns - first->since_ns)
			since_ns = first->since_ns;
		else if (t->count && last->until_ns > since_ns + LIFE_SLACK_NS &&
			 t->wall_ns < last->until_ns - LIFE_SLACK_NS - since_ns)
			since_ns = last->until_ns - t->wall_ns < first->since_ns
					   ? last->until_ns - t->wall_ns
					   : first->since_ns;
		if (t->wall_ns < s->recorded.until_ns - since_ns)
			t->life = (struct time_interval){ since_ns, since_ns + t->wall_ns };
	}
	if (!t->count)
		return;
	if (first->since_ns < t->life.since_ns)
		t->life.since_ns = first->since_ns;
	if (last->until_ns > t->life.until_ns)
		t->life.until_ns = last->until_ns;
	t->began = t->life.since_ns > s->recorded.since_ns + LIFE_SLACK_NS;
	t->ended = t->life.until_ns < s->recorded.until_ns - LIFE_SLACK_NS;
	for (const struct segment *segment = first; segment <= last; segment++)
		slept_ns += segment->until_ns - segment->since_ns;
	ran_ns = t->life.until_ns - t->life.since_ns - slept_ns;
	/* The account of a thread has all its waits, but also what interrupts and the host took. */
	if (s->unattributed_ns && t->wall_ns > t->ran_ns + slept_ns + t->untimed_ns) {
		uint64_t missing_ns = t->wall_ns - t->ran_ns - slept_ns - t->untimed_ns;

		t->untimed_ns += missing_ns < s->unattributed_ns ? missing_ns : s->unattributed_ns;
	}
	if (t->untimed_ns > CERTAIN_SHARE * (double)ran_ns)
		t->certain =
			t->untimed_ns < ran_ns ? 1 - (double)t->untimed_ns / (double)ran_ns : 0;
}

static int by_cpu(const void *left, const void *right)
{
	const struct segment_run *a = left, *b = right;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
}

/* Lists who ran on each CPU: a thread does so from the end of a wait to the next one. */
static int list_runs(struct segments *s)
{
	size_t kept = 0;

	s->runs = malloc((s->count + 1) * sizeof(*s->runs));
	if (!s->runs)
		return -ENOMEM;
	for (size_t i = 0; i < s->thread_count; i++) {
		const struct segment_thread *t = &s->threads[i];

		for (size_t k = t->first; k < t->first + t->count; k++) {
			uint64_t until_ns = k + 1 < t->first + t->count ? s->all[k + 1].since_ns
									: t->life.until_ns;

			if (s->all[k].cpu != WAIT_NO_CPU && s->all[k].until_ns < until_ns)
				s->runs[s->run_count++] =
					(struct segment_run){ s->all[k].until_ns, until_ns,
							      s->all[k].cpu, i };
		}
	}
	qsort(s->runs, s->run_count, sizeof(*s->runs), by_cpu);
	for (size_t i = 0; i < s->run_count; i++) {
		struct segment_run run = s->runs[i];

		if (kept && s->runs[kept - 1].cpu == run.cpu &&
		    s->runs[kept - 1].until_ns > run.since_ns)
			run.since_ns = s->runs[kept - 1].until_ns;
		if (run.since_ns < run.until_ns)
			s->runs[kept++] = run;
	}
	s->run_count = kept;
	return 0;
}

static int by_tid(const void *left, const void *right, void *context)
{
	const struct segment_thread *threads = context;
	const struct segment_thread *a = &threads[*(const uint32_t *)left];
	const struct segment_thread *b = &threads[*(const uint32_t *)right];

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->life.since_ns > b->life.since_ns) - (a->life.since_ns < b->life.since_ns);
}

static int by_waker(const void *left, const void *right)
{
	const struct segment_wake *a = left, *b = right;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int list_wakes(struct segments *s)
{
	s->by_tid = malloc((s->thread_count + 1) * sizeof(*s->by_tid));
	s->wakes = malloc((s->count + 1) * sizeof(*s->wakes));
	if (!s->by_tid || !s->wakes)
		return -ENOMEM;
	for (size_t i = 0; i < s->thread_count; i++) {
		const struct segment_thread *t = &s->threads[i];

		s->by_tid[i] = i;
		for (size_t k = t->first; k < t->first + t->count; k++) {
			uint32_t tid = segment_kind(s, &s->all[k])->waker_tid;

			if (tid)
				s->wakes[s->wake_count++] =
					(struct segment_wake){ s->all[k].until_ns, tid, k };
		}
	}
	qsort(s->wakes, s->wake_count, sizeof(*s->wakes), by_waker);
	qsort_r(s->by_tid, s->thread_count, sizeof(*s->by_tid), by_tid, s->threads);
	return 0;
}

int segments_make(const struct profile *p, struct segments *s)
{
	struct making m = { .s = s };
	int err;

	*s = (struct segments){ .p = p };
	s->recorded = (struct time_interval){ p->time_ns, p->time_ns };
	add_u64(&s->recorded.until_ns, p->duration_ns);
	for (size_t i = 0; i < p->waits.count; i++) {
		const struct timed_wait *wait = &p->waits.waits[i];

		if (wait->since_ns + wait->length_ns > s->recorded.until_ns)
			s->recorded.until_ns = wait->since_ns + wait->length_ns;
	}
	s->kinds = calloc(p->sample_count + 1, sizeof(*s->kinds));
	m.is_libc = calloc(p->image_count + 1, sizeof(*m.is_libc));
	m.waits_for_others = calloc(p->function_count + 1, sizeof(*m.waits_for_others));
	err = s->kinds && m.is_libc && m.waits_for_others && p->waits.count < UINT32_MAX
		      ? find_threads(&m, p)
		      : -ENOMEM;
	index_free(&m.index);
	index_free(&m.place_index);
	free(m.is_libc);
	free(m.waits_for_others);
	err = err ?: group(s, p);
	if (err)
		return err;
	s->count = p->waits.count;
	for (size_t i = 0; i < s->thread_count; i++) {
		clean(s, &s->threads[i]);
		find_life(s, &s->threads[i]);
	}
	return list_runs(s) ?: list_wakes(s);
}

void segments_free(struct segments *s)
{
	free(s->threads);
	free(s->all);
	free(s->kinds);
	free(s->places);
	free(s->ticks);
	free(s->runs);
	free(s->wakes);
	free(s->by_tid);
	*s = (struct segments){ 0 };
}

/* Whether element i of a sorted array is before a time, and of the same or a lower key. */
typedef bool is_before(const struct segments *s, size_t i, uint32_t key, uint64_t time_ns);

/* The first element of [low, high) that is not, or high. */
static size_t find_first(const struct segments *s, size_t low, size_t high, is_before *before,
			 uint32_t key, uint64_t time_ns)
{
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (before(s, middle, key, time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool began(const struct segments *s, size_t i, uint32_t tid, uint64_t time_ns)
{
	const struct segment_thread *t = &s->threads[s->by_tid[i]];

	return t->tid < tid || (t->tid == tid && t->life.since_ns <= time_ns);
}

static bool segment_ended(const struct segments *s, size_t i, uint32_t unused, uint64_t time_ns)
{
	(void)unused;
	return s->all[i].until_ns <= time_ns;
}

static bool tick_came(const struct segments *s, size_t i, uint32_t unused, uint64_t time_ns)
{
	(void)unused;
	return s->ticks[i].time_ns < time_ns;
}

static bool run_ended(const struct segments *s, size_t i, uint32_t cpu, uint64_t time_ns)
{
	return s->runs[i].cpu < cpu || (s->runs[i].cpu == cpu && s->runs[i].until_ns <= time_ns);
}

static bool woke(const struct segments *s, size_t i, uint32_t tid, uint64_t time_ns)
{
	return s->wakes[i].tid < tid || (s->wakes[i].tid == tid && s->wakes[i].time_ns < time_ns);
}

uint32_t segments_thread(const struct segments *s, uint32_t tid, uint64_t time_ns)
{
	size_t i = find_first(s, 0, s->thread_count, began, tid, time_ns);

	if (i && s->threads[s->by_tid[i - 1]].tid == tid)
		return s->by_tid[i - 1];
	return i < s->thread_count && s->threads[s->by_tid[i]].tid == tid ? s->by_tid[i]
									  : PROFILE_NONE;
}

size_t segments_after(const struct segments *s, uint32_t thread, uint64_t time_ns)
{
	const struct segment_thread *t = &s->threads[thread];

	return find_first(s, t->first, t->first + t->count, segment_ended, 0, time_ns);
}

size_t segments_tick_after(const struct segments *s, uint32_t thread, uint64_t time_ns)
{
	const struct segment_thread *t = &s->threads[thread];

	return find_first(s, t->first_tick, t->first_tick + t->tick_count, tick_came, 0, time_ns);
}

size_t segments_run_after(const struct segments *s, uint32_t cpu, uint64_t time_ns)
{
	return find_first(s, 0, s->run_count, run_ended, cpu, time_ns);
}

size_t segments_wake_after(const struct segments *s, uint32_t tid, uint64_t time_ns)
{
	return find_first(s, 0, s->wake_count, woke, tid, time_ns);
}
