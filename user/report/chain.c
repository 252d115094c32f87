// SPDX-License-Identifier: GPL-2.0-only
#include "report/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/clock.h"

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

/* Whether a wait has this reason. */
static bool is_for(const struct segment_kind *kind, const char *reason)
{
	return kind->reason_size == strlen(reason) &&
	       memcmp(kind->reason, reason, kind->reason_size) == 0;
}

const char *chain_peer(const struct chain *c, uint32_t sample)
{
	const struct segment_kind *kind = &c->s->kinds[sample];

	return is_for(kind, "disk") || (!c->by_name && is_for(kind, "lock")) ? kind->peer : NULL;
}

static bool node_equal(const void *array, uint32_t number, const void *key)
{
	const struct chain_node *a = (const struct chain_node *)array + number;
	const struct chain *c = ((const struct node_key *)key)->c;
	const struct chain_node *b = &((const struct node_key *)key)->node;
	const struct segment_kind *kinds = c->s->kinds;

	if (a->parent != b->parent || a->kind != b->kind ||
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
	return hash_u64(hash_u64((uint64_t)n->parent << 8 | n->kind, of_thread), what);
}

/* Returns the number of a node's child; on failure that of the first node, with w->err set. */
static uint32_t child_of(struct walk *w, uint32_t parent, enum chain_kind kind, uint32_t thread,
			 uint32_t what)
{
	struct chain *c = w->c;
	struct node_key key = { c,
				{ .kind = kind,
				  .thread = thread,
				  .what = what,
				  .parent = parent,
				  .first_child = CHAIN_NONE } };
	uint64_t hash = node_hash(c, &key.node);
	uint32_t number = index_find(&c->index, hash, node_equal, c->nodes, &key);

	if (number != INDEX_NONE || w->err)
		return w->err ? 0 : number;
	number = c->count;
	if (array_reserve(&c->nodes, &c->room, c->count + 1, sizeof(*c->nodes)) ||
	    index_add(&c->index, hash, number)) {
		w->err = -ENOMEM;
		return 0;
	}
	c->nodes[c->count++] = key.node;
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
	uint32_t number = child_of(w, parent, kind, thread, what);

	add_time(w, number, ns);
	return number;
}

/* The same of a part of a wait with this sample. */
static uint32_t add_wait(struct walk *w, uint32_t parent, enum chain_kind kind, uint32_t thread,
			 uint32_t what, uint32_t sample, uint64_t ns)
{
	uint32_t number = add_child(w, parent, kind, thread, what, ns);

	for (int i = 0; i < CHAIN_SUMS; i++)
		if (w->c->sums & 1U << i && w->c->within && w->c->within[sample])
			add_u64(&w->c->nodes[number].within_ns[i], ns);
	return number;
}

/* --- What a thread did --- */

/* The innermost function of the program, which may have called the kernel; else the leaf. */
static uint32_t function_at(const struct profile *p, const struct profile_sample *sample)
{
	const uint32_t *frames = &p->frames[sample->first_frame];

	for (uint32_t i = 0; i < sample->depth; i++)
		if (p->locations[frames[i]].address < KERNEL_START)
			return frames[i];
	return sample->depth ? frames[0] : PROFILE_NONE;
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
			child_of(w, parent, CHAIN_FUNCTION, thread, function_at(s->p, sample));

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
	uint64_t from = since_ns > t->life.since_ns ? since_ns : t->life.since_ns;
	uint64_t to = until_ns < t->life.until_ns ? until_ns : t->life.until_ns;
	uint64_t ran_ns = from < to ? to - from : 0, lost_ns = 0;
	uint32_t number;

	if (ran_ns < until_ns - since_ns)
		add_child(w, parent, CHAIN_UNKNOWN, thread, CHAIN_NOT_ALIVE,
			  until_ns - since_ns - ran_ns);
	if (t->certain < 1)
		lost_ns = (uint64_t)((double)ran_ns * (1 - t->certain));
	if (lost_ns)
		add_child(w, parent, CHAIN_UNKNOWN, thread, CHAIN_LOST, lost_ns);
	if (ran_ns == lost_ns)
		return;
	number = add_child(w, parent, CHAIN_RAN, thread, 0, ran_ns - lost_ns);
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
		other = add_child(w, number, CHAIN_OTHER, s->runs[i].thread, 0, to - from);
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

	if (kind->state == THREAD_IDLE || is_for(kind, "sleep"))
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
 * Adds a part of a wait, and below it what the thread did meanwhile that ended the wait of number
 * `end`: the wait itself, or another one.
 */
static void add_slept(struct walk *w, uint32_t parent, size_t segment, size_t end,
		      uint64_t since_ns, uint64_t until_ns)
{
	const struct segments *s = w->c->s;
	uint32_t sample = s->all[end].sample, thread = segment_kind(s, &s->all[segment])->thread;
	const struct segment_kind *kind = &s->kinds[sample];
	uint32_t waker = kind->waker_tid ? segments_thread(s, kind->waker_tid, s->all[end].until_ns)
					 : PROFILE_NONE;
	uint32_t number;

	w->c->steps++;
	/* Who stood in line for the same lock before it is no cause. */
	for (int i = 0; i < CHAIN_DEPTH_MAX && waker != PROFILE_NONE && is_for(kind, "lock"); i++) {
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
	if (waker != PROFILE_NONE && !is_for(kind, "disk")) {
		if (!may_go_on(w, number, thread, segment, until_ns - since_ns))
			return;
		w->path[w->depth++] = segment;
		add_work(w, number, waker, segment, since_ns, until_ns);
		w->depth--;
	} else if (kind->waker_tid && !is_for(kind, "disk")) {
		add_child(w, number, CHAIN_UNKNOWN, thread, CHAIN_NOT_SEEN, until_ns - since_ns);
	} else if (!kind->waker && !is_for(kind, "disk") && !is_for(kind, "sleep")) {
		add_child(w, number, CHAIN_UNKNOWN, thread, CHAIN_NO_WAKER, until_ns - since_ns);
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
	return is_for(kind, "lock") || is_for(kind, "child") || is_for(kind, "join");
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
					PROFILE_NONE);
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

static int most_first(const void *left, const void *right)
{
	const struct child *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->ns_of_other != b->ns_of_other)
		return a->ns_of_other > b->ns_of_other ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

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
