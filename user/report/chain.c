// SPDX-License-Identifier: GPL-2.0-only
#include "report/chain.h"

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
#include "util/order.h"
#include "util/radix_sort.h"

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
	/* What is known of functions so far. */
	enum answer {
		UNASKED,
		NO,
		YES
	} * waits_for_others;
};

EQUAL(thread_equal, struct segment_thread, struct profile_labels,
      SAME(tid) && SAME(pid) && SAME(generation))

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
	enum answer *others;

	if (!profile_is_named(p, location) ||
	    (image && (m->s->is_libc[image - p->images] || image_is_in_kernel(image->path))))
		return false;
	others = &m->waits_for_others[p->lines[l->first_line].function];
	if (*others == UNASKED)
		*others = wait_names_for_others(&p->functions[others - m->waits_for_others]) ? YES
											     : NO;
	return *others == NO;
}

EQUAL(place_equal, struct segment_place, struct segment_place,
      memcmp(a->functions, b->functions, sizeof(a->functions)) == 0)

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
	return array_add_indexed(s->places, s->place_count, m->place_room, &m->place_index, hash,
				 place);
}

/* The number at the end of "name (123)"; 0: there is none. */
static uint32_t number_in_brackets(const char *text)
{
	const char *bracket = strrchr(text, '(');
	unsigned long number;
	char *end;

	if (!bracket)
		return 0;
	number = strtoul(bracket + 1, &end, 10);
	return strcmp(end, ")") == 0 && number <= UINT32_MAX ? number : 0;
}

static int find_threads(struct making *m, const struct profile *p, const char *label)
{
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);
	struct segments *s = m->s;
	uint32_t number;
	int err = 0;

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_labels *labels = &p->labels[p->samples[i].labels];
		const char *tid = profile_tag_text(labels, TAG_WAKER_TID);
		struct segment_kind *kind = &s->kinds[i];
		const struct profile_tag *tag;
		uint64_t waker;

		err = find_thread(m, labels, &kind->thread);
		kind->state =
			profile_sample_state(p, &p->samples[i], &kind->reason, &kind->reason_size);
		kind->waker = profile_tag_text(labels, TAG_WAKER);
		kind->peer = profile_tag_text(labels, TAG_PEER);
		if (kind->peer && segment_is_for(kind, "lock"))
			kind->holder = number_in_brackets(kind->peer);
		tag = label ? profile_find_tag(labels, label) : NULL;
		kind->label = tag && tag->text && *tag->text ? tag->text : NULL;
		if (kind->label)
			s->label = label;
		if (tid && number_parse(tid, 1, UINT32_MAX, &waker) == 0)
			kind->waker_tid = waker;
		if (!err && (kind->state == THREAD_BLOCKED || kind->state == THREAD_IDLE))
			err = find_place(m, p, &p->samples[i], &kind->place);
		/* The first wait of a thread, for its creator; older files do not say when it was.
		 */
		if (!err && wall < p->value_type_count && kind->state != THREAD_ON_CPU &&
		    !segment_is_for(kind, "start"))
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

ORDER(by_time, struct segment, LEAST(since_ns))

ORDER(by_tick_time, struct segment_tick, LEAST(time_ns))

/* Puts ticks and waits into the order of threads and times. */
static int group(struct segments *s, const struct profile *p)
{
	size_t *first = calloc(2 * (s->thread_count + 2), sizeof(*first));
	size_t *first_tick;

	s->all = array_to_fill(p->waits.count + 1, sizeof(*s->all));
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

		if (!segment_is_for(&s->kinds[w->sample], "start"))
			t->untimed_ns -=
				w->length_ns < t->untimed_ns ? w->length_ns : t->untimed_ns;
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
 * How long a thread lived is in the account. One that began in the recording has waited for its
 * creator first, or, in older files, been runnable; after an execve(), or if it got a CPU at once,
 * its last wait is too late for all of that to be at the begin. All others were there when the
 * recording began.
 */
static void find_life(const struct segments *s, struct segment_thread *t)
{
	const struct segment *first = s->all + t->first, *last = first + t->count - 1;
	uint64_t slept_ns = 0, ran_ns;

	t->life = s->recorded;
	if (t->wall_ns) {
		uint64_t since_ns = s->recorded.since_ns;

		if (t->count && segment_is_for(&s->kinds[first->sample], "start"))
			since_ns = first->since_ns;
		else if (t->count && s->kinds[first->sample].state == THREAD_RUNNABLE &&
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

/* A segment, in the order in which all of them end. */
struct end {
	uint64_t time_ns;
	uint32_t segment, thread;
};

static uint64_t end_time(const void *end)
{
	return ((const struct end *)end)->time_ns;
}

static uint64_t run_cpu(const void *run)
{
	return ((const struct segment_run *)run)->cpu;
}

/* Lists who ran on each CPU: a thread does so from the end of a wait to the next one. */
static int list_runs(struct segments *s, const struct end *ends, size_t count)
{
	size_t kept = 0;

	s->runs = array_to_fill(count + 1, sizeof(*s->runs));
	if (!s->runs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct segment_thread *t = &s->threads[ends[i].thread];
		const struct segment *wait = &s->all[ends[i].segment];
		bool is_last = ends[i].segment + 1 == t->first + t->count;
		uint64_t until_ns = is_last ? t->life.until_ns : wait[1].since_ns;

		if (wait->cpu != WAIT_NO_CPU && wait->until_ns < until_ns)
			s->runs[s->run_count++] = (struct segment_run){ wait->until_ns, until_ns,
									wait->cpu, ends[i].thread };
	}
	if (radix_sort(s->runs, s->run_count, sizeof(*s->runs), run_cpu))
		return -ENOMEM;
	for (size_t i = 0; i < s->run_count; i++) {
		struct segment_run run = s->runs[i];

		/* When it got the CPU is known; till when the one before ran may be a guess. */
		if (kept && s->runs[kept - 1].cpu == run.cpu &&
		    s->runs[kept - 1].until_ns > run.since_ns)
			s->runs[kept - 1].until_ns = run.since_ns;
		if (kept && s->runs[kept - 1].since_ns == s->runs[kept - 1].until_ns)
			kept--;
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

static uint64_t wake_tid(const void *wake)
{
	return ((const struct segment_wake *)wake)->tid;
}

static int list_wakes(struct segments *s, const struct end *ends, size_t count)
{
	s->by_tid = malloc((s->thread_count + 1) * sizeof(*s->by_tid));
	s->wakes = array_to_fill(count + 1, sizeof(*s->wakes));
	if (!s->by_tid || !s->wakes)
		return -ENOMEM;
	for (size_t i = 0; i < s->thread_count; i++)
		s->by_tid[i] = i;
	for (size_t i = 0; i < count; i++) {
		uint32_t tid = segment_kind(s, &s->all[ends[i].segment])->waker_tid;

		if (tid)
			s->wakes[s->wake_count++] =
				(struct segment_wake){ ends[i].time_ns, tid, ends[i].segment };
	}
	qsort_r(s->by_tid, s->thread_count, sizeof(*s->by_tid), by_tid, s->threads);
	return radix_sort(s->wakes, s->wake_count, sizeof(*s->wakes), wake_tid);
}

/* Lists what follows from the ends of waits, of all threads in the order of time. */
static int list_ends(struct segments *s)
{
	struct end *ends = array_to_fill(s->count + 1, sizeof(*ends));
	size_t count = 0;
	int err = ends ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->thread_count && !err; i++) {
		const struct segment_thread *t = &s->threads[i];

		for (size_t k = t->first; k < t->first + t->count; k++)
			ends[count++] = (struct end){ s->all[k].until_ns, k, i };
	}
	err = err ?: radix_sort(ends, count, sizeof(*ends), end_time);
	err = err ?: list_runs(s, ends, count) ?: list_wakes(s, ends, count);
	free(ends);
	return err;
}

int segments_make(const struct profile *p, const char *label, struct segments *s)
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
	s->is_libc = calloc(p->image_count + 1, sizeof(*s->is_libc));
	m.waits_for_others = calloc(p->function_count + 1, sizeof(*m.waits_for_others));
	for (size_t i = 0; s->is_libc && i < p->image_count; i++)
		s->is_libc[i] = image_is_libc(p->images[i].path);
	err = s->kinds && s->is_libc && m.waits_for_others && p->waits.count < UINT32_MAX
		      ? find_threads(&m, p, label)
		      : -ENOMEM;
	index_free(&m.index);
	index_free(&m.place_index);
	free(m.waits_for_others);
	err = err ?: group(s, p);
	if (err)
		return err;
	s->count = p->waits.count;
	for (size_t i = 0; i < s->thread_count; i++) {
		clean(s, &s->threads[i]);
		find_life(s, &s->threads[i]);
	}
	return list_ends(s);
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
	free(s->is_libc);
	*s = (struct segments){ 0 };
}

/* The number of the thread with this TID that had begun by then; or PROFILE_NONE. */
static uint32_t segments_thread(const struct segments *s, uint32_t tid, uint64_t time_ns)
{
	const struct segment_thread *all = s->threads;
	size_t i;

	FIND_FIRST(i, 0, s->thread_count,
		   all[s->by_tid[i]].tid < tid || (all[s->by_tid[i]].tid == tid &&
						   all[s->by_tid[i]].life.since_ns <= time_ns));
	if (i && all[s->by_tid[i - 1]].tid == tid)
		return s->by_tid[i - 1];
	return i < s->thread_count && all[s->by_tid[i]].tid == tid ? s->by_tid[i] : PROFILE_NONE;
}

size_t segments_after(const struct segments *s, uint32_t thread, uint64_t time_ns)
{
	const struct segment_thread *t = &s->threads[thread];
	size_t i;

	FIND_FIRST(i, t->first, t->first + t->count, s->all[i].until_ns <= time_ns);
	return i;
}

/* The first of a thread's ticks from a time on, or the end of them. */
static size_t segments_tick_after(const struct segments *s, uint32_t thread, uint64_t time_ns)
{
	const struct segment_thread *t = &s->threads[thread];
	size_t i;

	FIND_FIRST(i, t->first_tick, t->first_tick + t->tick_count, s->ticks[i].time_ns < time_ns);
	return i;
}

const char *segments_run_label(const struct segments *s, uint32_t thread,
			       const struct time_interval *run)
{
	const struct segment_thread *t = &s->threads[thread];
	const char *label = NULL;
	size_t i, next;

	if (!s->label)
		return NULL;
	for (i = segments_tick_after(s, thread, run->since_ns);
	     i < t->first_tick + t->tick_count && s->ticks[i].time_ns < run->until_ns && !label;
	     i++)
		label = s->kinds[s->ticks[i].sample].label;
	/* A wait has the label that the thread had when it left its CPU. */
	next = segments_after(s, thread, run->since_ns);
	if (!label && next < t->first + t->count && s->all[next].since_ns <= run->until_ns)
		label = segment_kind(s, &s->all[next])->label;
	if (!label && next > t->first && s->all[next - 1].until_ns >= run->since_ns)
		label = segment_kind(s, &s->all[next - 1])->label;
	return label;
}

/* The first run on a CPU that ends behind a time; else what follows the CPU's last one. */
static size_t segments_run_after(const struct segments *s, uint32_t cpu, uint64_t time_ns)
{
	size_t i;

	FIND_FIRST(i, 0, s->run_count,
		   s->runs[i].cpu < cpu ||
			   (s->runs[i].cpu == cpu && s->runs[i].until_ns <= time_ns));
	return i;
}

/* The first of a waker's wake-ups from a time on; else what follows its last one. */
static size_t segments_wake_after(const struct segments *s, uint32_t tid, uint64_t time_ns)
{
	size_t i;

	FIND_FIRST(i, 0, s->wake_count,
		   s->wakes[i].tid < tid ||
			   (s->wakes[i].tid == tid && s->wakes[i].time_ns < time_ns));
	return i;
}

/*
 * How many threads wait for each other, one for the next one.
 * Bound: files: links of a chain; then: the rest is unknown.
 */
#define CHAIN_DEPTH_MAX 64

/*
 * Some 40 ns each.
 * Bound: files: segments that all chains together visit; then: the rest is unknown, which is said.
 */
#define CHAIN_STEPS_MAX 20000000

/*
 * Of 100 bytes each.
 * Bound: files: nodes of a tree; then: the rest is unknown, which is said.
 */
#define CHAIN_NODES_MAX 1000000

/* A wait lasts to the end of a recording that ends so soon. Bound: pace. */
#define LASTS_NS 10000000

/* A wait that its time limit ends goes on so soon. Bound: pace. */
#define GOES_ON_NS 10000000

/* Bound: files: time limits of one wait; then: the timer ended it. */
#define TIMERS_MAX 64

/* User addresses end below it. */
#define KERNEL_START (1ULL << 63)

/* One walk down: what is blocked on the way, by the numbers of segments. */
struct walk {
	struct chain *c;
	size_t path[CHAIN_DEPTH_MAX];
	unsigned int depth;
	int err;
};

static void explain(struct walk *w, uint32_t parent, uint32_t thread, uint64_t since_ns,
		    uint64_t until_ns);

/* --- Nodes --- */

struct node_key {
	const struct chain *c;
	struct chain_node node;
};

static bool is_same_thread(const struct chain *c, uint32_t a, uint32_t b)
{
	const struct segment_thread *threads = c->s->threads;

	return a == b || (c->by_name && threads[a].comm == threads[b].comm);
}

static uint64_t function_of(const struct profile *p, uint32_t location)
{
	return location == PROFILE_NONE ? UINT64_MAX : segment_function(p, location);
}

static bool is_same_reason(const struct segment_kind *a, const struct segment_kind *b)
{
	return a->state == b->state && a->reason_size == b->reason_size &&
	       (!a->reason_size || memcmp(a->reason, b->reason, a->reason_size) == 0);
}

const char *chain_peer(const struct chain *c, uint32_t sample)
{
	const struct segment_kind *kind = &c->s->kinds[sample];

	return segment_is_for(kind, "disk") || (!c->by_name && segment_is_for(kind, "lock"))
		       ? kind->peer
		       : NULL;
}

static bool node_equal(const void *array, uint32_t number, const void *key)
{
	const struct chain_node *a = (const struct chain_node *)array + number;
	const struct chain *c = ((const struct node_key *)key)->c;
	const struct chain_node *b = &((const struct node_key *)key)->node;
	const struct segment_kind *kinds = c->s->kinds;

	if (a->parent != b->parent || a->kind != b->kind || a->label != b->label ||
	    !is_same_thread(c, a->thread, b->thread))
		return false;
	if (a->kind == CHAIN_FUNCTION)
		return function_of(c->s->p, a->what) == function_of(c->s->p, b->what);
	if (a->kind != CHAIN_SLEPT)
		return a->what == b->what;
	return is_same_reason(&kinds[a->what], &kinds[b->what]) &&
	       kinds[a->what].waker == kinds[b->what].waker &&
	       kinds[a->what].place == kinds[b->what].place &&
	       chain_peer(c, a->what) == chain_peer(c, b->what) &&
	       !kinds[a->what].waker_tid == !kinds[b->what].waker_tid &&
	       (c->by_name || kinds[a->what].waker_tid == kinds[b->what].waker_tid);
}

static uint64_t node_hash(const struct chain *c, const struct chain_node *n)
{
	uint64_t of_thread = c->by_name ? (uintptr_t)c->s->threads[n->thread].comm : n->thread;
	uint64_t what = n->what;

	if (n->kind == CHAIN_FUNCTION)
		what = function_of(c->s->p, n->what);
	else if (n->kind == CHAIN_SLEPT)
		what = hash_u64((uintptr_t)c->s->kinds[n->what].waker, c->s->kinds[n->what].place);
	of_thread = hash_u64(of_thread, (uintptr_t)n->label);
	return hash_u64(hash_u64((uint64_t)n->parent << 8 | n->kind, of_thread), what);
}

/* Returns the number of a node's child; on failure that of the first node, with w->err set. */
static uint32_t child_of(struct walk *w, uint32_t parent, enum chain_kind kind, uint32_t thread,
			 uint32_t what, const char *label)
{
	struct chain *c = w->c;
	struct node_key key = { c,
				{ .kind = kind,
				  .thread = thread,
				  .what = what,
				  .label = label,
				  .parent = parent,
				  .first_child = CHAIN_NONE } };
	uint64_t hash = node_hash(c, &key.node);
	uint32_t number = index_find(&c->index, hash, node_equal, c->nodes, &key);

	if (number != INDEX_NONE || w->err)
		return w->err ? 0 : number;
	number = c->count;
	w->err = array_add_indexed(c->nodes, c->count, c->room, &c->index, hash, key.node);
	if (w->err)
		return 0;
	c->nodes[number].next = c->nodes[parent].first_child;
	c->nodes[parent].first_child = number;
	return number;
}

static void add_time(struct walk *w, uint32_t number, uint64_t ns)
{
	for (int i = 0; i < CHAIN_SUMS; i++)
		if (w->c->sums & 1U << i)
			add_u64(&w->c->nodes[number].ns[i], ns);
}

static uint32_t add_child(struct walk *w, uint32_t parent, enum chain_kind kind, uint32_t thread,
			  uint32_t what, uint64_t ns)
{
	uint32_t number = child_of(w, parent, kind, thread, what, NULL);

	add_time(w, number, ns);
	return number;
}

/* The same of what a thread ran. */
static uint32_t add_run(struct walk *w, uint32_t parent, enum chain_kind kind, uint32_t thread,
			uint64_t since_ns, uint64_t until_ns, uint64_t ns)
{
	const struct time_interval run = { since_ns, until_ns };
	const char *label = segments_run_label(w->c->s, thread, &run);
	uint32_t number = child_of(w, parent, kind, thread, 0, label);

	add_time(w, number, ns);
	return number;
}

/* The same of a part of a wait with this sample. */
static uint32_t add_wait(struct walk *w, uint32_t parent, enum chain_kind kind, uint32_t thread,
			 uint32_t what, uint32_t sample, uint64_t ns)
{
	uint32_t number = child_of(w, parent, kind, thread, what, w->c->s->kinds[sample].label);

	add_time(w, number, ns);
	for (int i = 0; i < CHAIN_SUMS; i++)
		if (w->c->sums & 1U << i && w->c->within && w->c->within[sample])
			add_u64(&w->c->nodes[number].within_ns[i], ns);
	return number;
}

/* --- What a thread did --- */

/* Whether a thread still waited when the recording ended. */
static bool lasts(const struct segments *s, size_t segment)
{
	const struct segment_kind *kind = segment_kind(s, &s->all[segment]);
	const struct segment_thread *t = &s->threads[kind->thread];

	return !kind->waker && s->all[segment].cpu == WAIT_NO_CPU && !t->ended &&
	       segment + 1 == t->first + t->count &&
	       s->all[segment].until_ns + LASTS_NS > s->recorded.until_ns;
}

/* Whether the walk goes on below a wait; if not, adds the rest as unknown. */
static bool may_go_on(struct walk *w, uint32_t parent, uint32_t thread, size_t segment, uint64_t ns)
{
	enum chain_unknown why = CHAIN_UNKNOWNS;

	for (unsigned int i = 0; i < w->depth; i++)
		if (w->path[i] == segment)
			why = CHAIN_CIRCLE;
	if (w->depth == CHAIN_DEPTH_MAX || w->c->steps > CHAIN_STEPS_MAX ||
	    w->c->count > CHAIN_NODES_MAX) {
		w->c->cut = true;
		why = CHAIN_TOO_LONG;
	}
	if (why != CHAIN_UNKNOWNS)
		add_child(w, parent, CHAIN_UNKNOWN, thread, why, ns);
	return why == CHAIN_UNKNOWNS;
}

static void add_work(struct walk *w, uint32_t parent, uint32_t thread, size_t for_segment,
		     uint64_t since_ns, uint64_t until_ns);

/*
 * Adds what the creator of a thread did before that began, for one that waits for what the thread
 * then does, as a server's client waits for a process of its own. Returns until when that is;
 * since_ns: nobody waits, or the creator is unknown.
 */
static uint64_t add_before_life(struct walk *w, uint32_t parent, uint32_t thread, uint64_t since_ns,
				uint64_t until_ns)
{
	const struct segments *s = w->c->s;
	const struct segment_thread *t = &s->threads[thread];
	const struct segment *first = &s->all[t->first];
	const struct segment_kind *kind = t->count ? segment_kind(s, first) : NULL;
	uint32_t creator = PROFILE_NONE;

	if (kind && kind->waker_tid && segment_is_for(kind, "start"))
		creator = segments_thread(s, kind->waker_tid, first->until_ns);
	if (creator == PROFILE_NONE || !w->depth)
		return since_ns;
	until_ns = until_ns < t->life.since_ns ? until_ns : t->life.since_ns;
	if (may_go_on(w, parent, thread, t->first, until_ns - since_ns)) {
		size_t for_segment = w->path[w->depth - 1];

		w->path[w->depth++] = t->first;
		add_work(w, parent, creator, for_segment, since_ns, until_ns);
		w->depth--;
	}
	return until_ns;
}

/*
 * The innermost function of the program, which may have called the C library and the kernel; else
 * the innermost that is not the kernel's; else the leaf.
 */
static uint32_t function_at(const struct segments *s, const struct profile_sample *sample)
{
	const struct profile *p = s->p;
	const uint32_t *frames = &p->frames[sample->first_frame];
	uint32_t found = sample->depth ? frames[0] : PROFILE_NONE;
	bool is_user = false;

	for (uint32_t i = 0; i < sample->depth; i++) {
		const struct profile_image *image = profile_location_image(p, frames[i]);

		if (p->locations[frames[i]].address >= KERNEL_START)
			continue;
		if (!image || !s->is_libc[image - p->images])
			return frames[i];
		found = is_user ? found : frames[i];
		is_user = true;
	}
	return found;
}

/* Adds the functions in which a thread was at its ticks. */
static void add_ticks(struct walk *w, uint32_t parent, uint32_t thread, uint64_t since_ns,
		      uint64_t until_ns)
{
	const struct segments *s = w->c->s;
	const struct segment_thread *t = &s->threads[thread];

	for (size_t i = segments_tick_after(s, thread, since_ns);
	     i < t->first_tick + t->tick_count && s->ticks[i].time_ns < until_ns; i++) {
		const struct profile_sample *sample = &s->p->samples[s->ticks[i].sample];
		uint32_t number =
			child_of(w, parent, CHAIN_FUNCTION, thread, function_at(s, sample), NULL);

		w->c->steps++;
		for (int k = 0; k < CHAIN_SUMS; k++)
			if (w->c->sums & 1U << k) {
				w->c->nodes[parent].ticks[k]++;
				w->c->nodes[parent].within_ticks[k] +=
					w->c->within && w->c->within[s->ticks[i].sample];
				w->c->nodes[number].ticks[k]++;
			}
	}
}

static void add_ran(struct walk *w, uint32_t parent, uint32_t thread, uint64_t since_ns,
		    uint64_t until_ns)
{
	const struct segment_thread *t = &w->c->s->threads[thread];
	uint64_t from, to, ran_ns, lost_ns = 0;
	uint32_t number;

	if (since_ns < t->life.since_ns)
		since_ns = add_before_life(w, parent, thread, since_ns, until_ns);
	from = since_ns > t->life.since_ns ? since_ns : t->life.since_ns;
	to = until_ns < t->life.until_ns ? until_ns : t->life.until_ns;
	ran_ns = from < to ? to - from : 0;
	if (ran_ns < until_ns - since_ns)
		add_child(w, parent, CHAIN_UNKNOWN, thread, CHAIN_NOT_ALIVE,
			  until_ns - since_ns - ran_ns);
	if (t->certain < 1)
		lost_ns = (uint64_t)((double)ran_ns * (1 - t->certain));
	if (lost_ns)
		add_child(w, parent, CHAIN_UNKNOWN, thread, CHAIN_LOST, lost_ns);
	if (ran_ns == lost_ns)
		return;
	number = add_run(w, parent, CHAIN_RAN, thread, from, to, ran_ns - lost_ns);
	add_ticks(w, number, thread, from, to);
}

/* Adds for how long a thread was runnable, and who ran meanwhile on the CPU that it then got. */
static void add_runnable(struct walk *w, uint32_t parent, uint32_t thread, size_t segment,
			 uint64_t since_ns, uint64_t until_ns)
{
	const struct segments *s = w->c->s;
	uint32_t cpu = s->all[segment].cpu;
	uint32_t number = add_wait(w, parent, CHAIN_RUNNABLE, thread, 0, s->all[segment].sample,
				   until_ns - since_ns);

	if (cpu == WAIT_NO_CPU) {
		add_child(w, number, CHAIN_UNKNOWN, thread, CHAIN_NO_CPU, until_ns - since_ns);
		return;
	}
	for (size_t i = segments_run_after(s, cpu, since_ns);
	     since_ns < until_ns && i < s->run_count && s->runs[i].cpu == cpu &&
	     s->runs[i].since_ns < until_ns && !w->err;
	     i++, w->c->steps++) {
		uint64_t from = s->runs[i].since_ns > since_ns ? s->runs[i].since_ns : since_ns;
		uint64_t to = s->runs[i].until_ns < until_ns ? s->runs[i].until_ns : until_ns;
		uint32_t other;

		if (from > since_ns)
			add_child(w, number, CHAIN_UNRECORDED, thread, 0, from - since_ns);
		other = add_run(w, number, CHAIN_OTHER, s->runs[i].thread, from, to, to - from);
		add_ticks(w, other, s->runs[i].thread, from, to);
		since_ns = to;
	}
	if (since_ns < until_ns)
		add_child(w, number, CHAIN_UNRECORDED, thread, 0, until_ns - since_ns);
}

/* --- Chains --- */

/* Whether both samples are waits for the same at the same place of a program. */
static bool is_same_place(const struct segments *s, uint32_t a, uint32_t b)
{
	const struct profile_sample *x = &s->p->samples[a], *y = &s->p->samples[b];

	return is_same_reason(&s->kinds[a], &s->kinds[b]) && x->depth == y->depth &&
	       memcmp(&s->p->frames[x->first_frame], &s->p->frames[y->first_frame],
		      x->depth * sizeof(*s->p->frames)) == 0;
}

/*
 * Returns the segment whose waker ended a wait: its own, unless a timer did, and the wait then goes
 * on; then the last one.
 */
static size_t find_end(const struct segments *s, size_t segment)
{
	const struct segment_kind *kind = segment_kind(s, &s->all[segment]);
	const struct segment_thread *t = &s->threads[kind->thread];
	size_t last = segment, next = segment + 1;

	if (kind->state == THREAD_IDLE || segment_is_for(kind, "sleep"))
		return segment;
	for (int i = 0; i < TIMERS_MAX; i++) {
		kind = segment_kind(s, &s->all[last]);
		if (kind->waker_tid)
			return last;
		if (!kind->waker || strcmp(kind->waker, "interrupt: timer") != 0)
			return segment;
		while (next < t->first + t->count &&
		       segment_kind(s, &s->all[next])->state == THREAD_RUNNABLE &&
		       s->all[next].since_ns - s->all[last].until_ns < GOES_ON_NS)
			next++;
		if (next == t->first + t->count ||
		    s->all[next].since_ns - s->all[last].until_ns >= GOES_ON_NS ||
		    !is_same_place(s, s->all[next].sample, s->all[last].sample))
			return segment;
		last = next++;
	}
	return segment;
}

/*
 * Whether the thread had been woken by `since_ns`, in its wait, by one of those that wait for it:
 * that one slept from then on. A CPU that is not running, as its host has taken it away, lets the
 * thread run only later, and its wait is as much longer.
 */
static bool was_woken(const struct walk *w, size_t segment, uint64_t since_ns)
{
	const struct segments *s = w->c->s;
	uint32_t waker = segment_kind(s, &s->all[segment])->waker_tid;

	for (unsigned int i = 0; i < w->depth && waker; i++) {
		const struct segment *sleeps = &s->all[w->path[i]];

		if (s->threads[segment_kind(s, sleeps)->thread].tid == waker &&
		    sleeps->since_ns > s->all[segment].since_ns && sleeps->since_ns <= since_ns)
			return true;
	}
	return false;
}

/*
 * Adds a part of a wait, and below it what the thread did meanwhile that ended the wait of number
 * `end`: the wait itself, or another one.
 */
static void add_slept(struct walk *w, uint32_t parent, size_t segment, size_t end,
		      uint64_t since_ns, uint64_t until_ns)
{
	const struct segments *s = w->c->s;
	uint32_t sample = s->all[end].sample, thread = segment_kind(s, &s->all[segment])->thread;
	const struct segment_kind *kind = &s->kinds[sample];
	bool has_ended = !lasts(s, end);
	uint32_t tid = kind->waker_tid ?: has_ended ? 0 : kind->holder;
	uint32_t waker = tid ? segments_thread(s, tid, s->all[end].until_ns) : PROFILE_NONE;
	uint32_t number;

	w->c->steps++;
	if (was_woken(w, segment, since_ns)) {
		const struct segment_thread *t = &s->threads[thread];
		bool follows = segment + 1 < t->first + t->count &&
			       segment_kind(s, &s->all[segment + 1])->state == THREAD_RUNNABLE;

		return add_runnable(w, parent, thread, segment + follows, since_ns, until_ns);
	}
	/* Who stood in line for the same lock before it is no cause. */
	for (int i = 0;
	     i < CHAIN_DEPTH_MAX && waker != PROFILE_NONE && segment_is_for(kind, "lock"); i++) {
		size_t before = segments_after(s, waker, since_ns);
		const struct segment *line = &s->all[before];

		if (before == s->threads[waker].first + s->threads[waker].count ||
		    line->since_ns > since_ns || line->until_ns >= until_ns ||
		    !segment_kind(s, line)->waker_tid || before == segment ||
		    !is_same_place(s, sample, line->sample))
			break;
		/* What it did once it had the lock; then on with who stood before that one. */
		number = add_wait(w, parent, CHAIN_SLEPT, thread, sample, s->all[segment].sample,
				  until_ns - line->until_ns);
		if (may_go_on(w, number, thread, segment, until_ns - line->until_ns)) {
			w->path[w->depth++] = segment;
			explain(w, number, waker, line->until_ns, until_ns);
			w->depth--;
		}
		until_ns = line->until_ns;
		sample = line->sample;
		kind = &s->kinds[sample];
		waker = segments_thread(s, kind->waker_tid, until_ns);
		w->c->steps++;
	}
	number = add_wait(w, parent, CHAIN_SLEPT, thread, sample, s->all[segment].sample,
			  until_ns - since_ns);
	if (waker != PROFILE_NONE && !segment_is_for(kind, "disk")) {
		if (!may_go_on(w, number, thread, segment, until_ns - since_ns))
			return;
		w->path[w->depth++] = segment;
		add_work(w, number, waker, segment, since_ns, until_ns);
		w->depth--;
	} else if (kind->waker_tid && !segment_is_for(kind, "disk")) {
		add_child(w, number, CHAIN_UNKNOWN, thread, CHAIN_NOT_SEEN, until_ns - since_ns);
	} else if (!kind->waker && !segment_is_for(kind, "disk") &&
		   !segment_is_for(kind, "sleep")) {
		add_child(w, number, CHAIN_UNKNOWN, thread,
			  has_ended ? CHAIN_NO_WAKER : CHAIN_NOT_ENDED, until_ns - since_ns);
	}
}

/* Adds what a thread did before it turned to what another one waits for. */
static void add_earlier(struct walk *w, uint32_t parent, uint32_t thread, uint64_t since_ns,
			uint64_t until_ns)
{
	if (since_ns < until_ns)
		explain(w, add_child(w, parent, CHAIN_EARLIER, thread, 0, until_ns - since_ns),
			thread, since_ns, until_ns);
}

/* Whether a thread waits for something that another one has, or is, rather than for its work. */
static bool is_for_holder(const struct segment_kind *kind)
{
	return segment_is_for(kind, "lock") || segment_is_for(kind, "child") ||
	       segment_is_for(kind, "join");
}

/* Adds what a thread did in the part of a wait that it ended. */
static void add_work(struct walk *w, uint32_t parent, uint32_t thread, size_t for_segment,
		     uint64_t since_ns, uint64_t until_ns)
{
	const struct segments *s = w->c->s;
	const struct segment_thread *t = &s->threads[thread];
	const struct segment_kind *waits = segment_kind(s, &s->all[for_segment]);
	const struct segment_thread *waiting = &s->threads[waits->thread];

	if (is_for_holder(waits))
		return explain(w, parent, thread, since_ns, until_ns);
	for (size_t i = segments_after(s, thread, until_ns);
	     i > t->first && s->all[i - 1].until_ns > since_ns; i--) {
		const struct segment *idle = &s->all[i - 1];
		const struct segment_kind *kind = segment_kind(s, idle);
		uint64_t from = since_ns;

		w->c->steps++;
		if (kind->state != THREAD_IDLE || is_for_holder(kind))
			continue;
		/* Without a thread that sent it to work, it was busy with something of its own. */
		if (!kind->waker_tid ||
		    segments_thread(s, kind->waker_tid, idle->until_ns) == PROFILE_NONE) {
			from = idle->since_ns > since_ns ? idle->since_ns : since_ns;
			add_earlier(w, parent, thread, since_ns, from);
		}
		add_slept(w, parent, i - 1, i - 1, from, idle->until_ns);
		return explain(w, parent, thread, idle->until_ns, until_ns);
	}
	for (size_t i = segments_wake_after(s, t->tid, until_ns);
	     i && s->wakes[i - 1].tid == t->tid && s->wakes[i - 1].time_ns > since_ns; i--) {
		const struct segment_kind *other =
			segment_kind(s, &s->all[s->wakes[i - 1].segment]);
		const struct segment_thread *served = &s->threads[other->thread];

		w->c->steps++;
		if (served != waiting && is_same_reason(other, waits) &&
		    (served->comm == waiting->comm || served->pid == waiting->pid)) {
			add_earlier(w, parent, thread, since_ns, s->wakes[i - 1].time_ns);
			since_ns = s->wakes[i - 1].time_ns;
			break;
		}
	}
	explain(w, parent, thread, since_ns, until_ns);
}

static void explain(struct walk *w, uint32_t parent, uint32_t thread, uint64_t since_ns,
		    uint64_t until_ns)
{
	const struct segments *s = w->c->s;
	const struct segment_thread *t = &s->threads[thread];
	size_t i = segments_after(s, thread, since_ns);

	for (; since_ns < until_ns && !w->err; i++, w->c->steps++) {
		bool waits = i < t->first + t->count && s->all[i].since_ns < until_ns;
		uint64_t from = waits ? s->all[i].since_ns : until_ns, to;

		if (from > since_ns)
			add_ran(w, parent, thread, since_ns, from);
		if (!waits)
			break;
		from = from > since_ns ? from : since_ns;
		to = s->all[i].until_ns < until_ns ? s->all[i].until_ns : until_ns;
		if (segment_kind(s, &s->all[i])->state == THREAD_RUNNABLE)
			add_runnable(w, parent, thread, i, from, to);
		else
			add_slept(w, parent, i, find_end(s, i), from, to);
		since_ns = to;
	}
}

int chain_begin(struct chain *c, const struct segments *s, bool by_name)
{
	*c = (struct chain){ .s = s, .by_name = by_name, .sums = 1 };
	if (array_reserve(&c->nodes, &c->room, 1, sizeof(*c->nodes)))
		return -ENOMEM;
	c->nodes[c->count++] =
		(struct chain_node){ .parent = CHAIN_NONE, .first_child = CHAIN_NONE };
	return 0;
}

int chain_add(struct chain *c, uint32_t thread, const struct time_interval *interval)
{
	struct walk w = { .c = c };

	c->nodes[0].thread = thread;
	add_time(&w, 0, interval->until_ns - interval->since_ns);
	explain(&w, 0, thread, interval->since_ns, interval->until_ns);
	return w.err;
}

int chain_add_blocked(struct chain *c, uint32_t thread, const struct time_interval *interval)
{
	const struct segments *s = c->s;
	const struct segment_thread *t = &s->threads[thread];
	int err = 0;

	for (size_t i = segments_after(s, thread, interval->since_ns);
	     i < t->first + t->count && s->all[i].since_ns < interval->until_ns && !err; i++) {
		struct time_interval part = { s->all[i].since_ns, s->all[i].until_ns };

		if (part.since_ns < interval->since_ns)
			part.since_ns = interval->since_ns;
		if (part.until_ns > interval->until_ns)
			part.until_ns = interval->until_ns;
		if (segment_kind(s, &s->all[i])->state == THREAD_BLOCKED)
			err = chain_add(c, thread, &part);
	}
	return err;
}

/* --- The end --- */

/* Splits the time of a node among its functions; what has no tick has no function. */
static int split(struct walk *w, uint32_t number)
{
	struct chain *c = w->c;

	for (int k = 0; k < CHAIN_SUMS; k++) {
		uint64_t ns = c->nodes[number].ns[k], all = c->nodes[number].ticks[k];
		uint64_t ticks = 0, before_ns = 0;
		uint32_t none;

		if (ns && !all) {
			none = child_of(w, number, CHAIN_FUNCTION, c->nodes[number].thread,
					PROFILE_NONE, NULL);
			c->nodes[none].ns[k] = w->err ? c->nodes[none].ns[k] : ns;
		}
		for (uint32_t i = c->nodes[number].first_child; i != CHAIN_NONE && all;
		     i = c->nodes[i].next) {
			uint64_t until_ns;

			ticks += c->nodes[i].ticks[k];
			until_ns = (uint64_t)((unsigned __int128)ns * ticks / all);
			c->nodes[i].ns[k] = until_ns - before_ns;
			before_ns = until_ns;
		}
	}
	return w->err;
}

struct child {
	uint32_t number;
	uint64_t ns, ns_of_other;
};

ORDER(most_first, struct child, MOST(ns) ?: MOST(ns_of_other) ?: LEAST(number))

int chain_end(struct chain *c, int sum)
{
	struct child *children = malloc(c->count * 2 * sizeof(*children));
	struct walk w = { .c = c };
	int err = children ? 0 : -ENOMEM;
	size_t count = c->count;

	for (size_t i = 0; i < count && !err; i++)
		if ((c->nodes[i].kind == CHAIN_RAN || c->nodes[i].kind == CHAIN_OTHER) &&
		    c->nodes[i].first_child != CHAIN_NONE)
			err = split(&w, i);
	for (size_t i = 0; i < c->count && !err; i++) {
		size_t n = 0;

		for (uint32_t k = c->nodes[i].first_child; k != CHAIN_NONE; k = c->nodes[k].next)
			children[n++] =
				(struct child){ k, c->nodes[k].ns[sum], c->nodes[k].ns[!sum] };
		qsort(children, n, sizeof(*children), most_first);
		for (size_t k = 0; k < n; k++)
			c->nodes[children[k].number].next =
				k + 1 < n ? children[k + 1].number : CHAIN_NONE;
		if (n)
			c->nodes[i].first_child = children[0].number;
		c->nodes[i].children = n;
	}
	free(children);
	return err;
}

void chain_free(struct chain *c)
{
	free(c->nodes);
	index_free(&c->index);
	*c = (struct chain){ 0 };
}
