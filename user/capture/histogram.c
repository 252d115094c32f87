// SPDX-License-Identifier: GPL-2.0-only
#include "capture/histogram.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bpf/member.h"
#include "bpf/profil.h"
#include "capture/events.h"
#include "capture/members.h"
#include "capture/perf_event.h"
#include "capture/program.h"
#include "capture/tick.h"
#include "profil.skel.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/error.h"

/* --- The programs --- */

struct bpf_object;
struct bpf_program;

/*
 * The BPF program `profil`. Many clients can share it, and so can processes that receive its
 * descriptors. Zero-initialised is none.
 */
struct profil_program {
	struct profil_bpf *bpf;
	const struct tick *tick; /* runs at the scheduler's tick; NULL: at perf events */
	unsigned int max_clients;
	struct kernel_types types;
	int entries, clients; /* descriptors of its maps */
};

/* A client: a histogram, which the program counts in. Zero-initialised is none. */
struct profil_client {
	uint32_t number; /* as in struct member */
	size_t range_count, cell_count;
	bool elsewhere; /* only another process reads the cells: they are not mapped here */
	int map;	/* of profil_pages() times struct profil_page; 0: none */
	struct profil_page *pages; /* the map in our memory; NULL: none */
};

/*
 * How often to check, at most, whether the last tick has been counted.
 * Bound: machine: looks for the last tick of a histogram that ends; then: it ends without that
 * tick; again: never; share: the histogram's own; seen: not seen.
 */
#define END_CHECKS_MAX 500

/* --- The program --- */

/* The program to run at ticks, and its BPF object. */
static struct bpf_program *profil_program_on_tick(const struct profil_program *profil)
{
	return profil->tick ? profil->bpf->progs.profil_tick : profil->bpf->progs.profil;
}

/* For program_load(). */
static int load_profil(void *object)
{
	struct profil_program *profil = object;
	LIBBPF_OPTS(bpf_object_open_opts, options,
		    .btf_custom_path = kernel_types_used(&profil->types));
	struct profil_bpf *bpf = profil_bpf__open_opts(&options);
	int err;

	if (!bpf)
		return -errno;
	profil->bpf = bpf;
	bpf->rodata->ends_at_exec = true;
	bpf->rodata->pid_namespace = members_pid_namespace();
	if (profil->tick) {
		bpf->rodata->tick_cpu_sched = profil->tick->timer_distance;
		bpf->rodata->irq_regs = profil->tick->regs_distance;
	}
	bpf_map__set_max_entries(bpf->maps.members, profil->max_clients);
	bpf_map__set_max_entries(bpf->maps.entries, profil->max_clients);
	bpf_map__set_max_entries(bpf->maps.clients, profil->max_clients);
	bpf_program__set_autoload(bpf->progs.profil, false);
	bpf_program__set_autoload(profil_program_on_tick(profil), true);
	members_choose(bpf->obj, false);
	kernel_types_forget(&profil->types);
	err = profil_bpf__load(bpf);
	if (err) {
		profil_bpf__destroy(bpf);
		profil->bpf = NULL;
		return err;
	}
	profil->entries = bpf_map__fd(bpf->maps.entries);
	profil->clients = bpf_map__fd(bpf->maps.clients);
	return 0;
}

/* --- Clients --- */

static size_t bytes_of(const struct profil_client *client)
{
	return profil_pages(client->range_count, client->elsewhere ? 0 : client->cell_count) *
	       sizeof(*client->pages);
}

/* The parts of its memory. */
static struct profil_state *profil_client_state(const struct profil_client *client)
{
	return (struct profil_state *)client->pages;
}

static void profil_client_free(struct profil_client *client)
{
	if (client->pages)
		munmap(client->pages, bytes_of(client));
	if (client->map)
		close(client->map);
	client->pages = NULL;
	client->map = 0;
}

/* Creates a client's map for these ranges (bpf/profil.h); the caller has set the counts above. */
static int profil_client_make(struct profil_client *client, const struct profil_range *ranges,
			      struct error *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "profil_client", sizeof(uint32_t),
				sizeof(struct profil_page),
				profil_pages(client->range_count, client->cell_count), &options);
	void *pages = MAP_FAILED;
	struct profil_state *state;
	int err = fd < 0 ? -fd : 0;

	if (!err) {
		client->map = fd;
		pages = mmap(NULL, bytes_of(client), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		err = pages == MAP_FAILED ? errno : 0;
	}
	if (err) {
		profil_client_free(client);
		return error_set(e, err, "cannot create the map for the counts");
	}
	client->pages = pages;
	state = profil_client_state(client);
	state->range = ranges[0];
	while ((client->cell_count - 1) >> state->dirty_shift >= PROFIL_DIRTY_BITS)
		state->dirty_shift++;
	for (size_t i = 0; i < client->range_count && client->range_count > 1; i++) {
		struct profil_page *page = &client->pages[1 + i / PROFIL_PAGE_RANGES];

		memcpy((struct profil_range *)page + i % PROFIL_PAGE_RANGES, &ranges[i],
		       sizeof(*ranges));
	}
	return 0;
}

/*
 * A tick takes some microseconds. The memory of another process's histogram is not waited for: that
 * process can write anything to it, and waits itself.
 */
static void profil_client_end(struct profil_client *client)
{
	const struct timespec moment = { .tv_nsec = 20000 };
	struct profil_state *state = profil_client_state(client);
	uint64_t done;

	__atomic_store_n(&state->range_count, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; i < END_CHECKS_MAX && !client->elsewhere; i++) {
		done = __atomic_load_n(&state->done, __ATOMIC_SEQ_CST);
		if (done == __atomic_load_n(&state->ticks, __ATOMIC_SEQ_CST))
			break;
		nanosleep(&moment, NULL);
	}
}

/*
 * How long a clock ticks on after its last histogram, so that many short ones, one after the other,
 * do not each wait for the first tick of a clock of their own; and how many ticks per second may
 * come from clocks that are kept so.
 * Bound: users: time for which an unused clock ticks on, and ticks per second of such clocks; then:
 * it is closed; again: at the next histogram of its rate; share: none; seen: not seen: the next
 * histogram waits for a tick.
 */
#define KEEP_NS	    NS_PER_S
#define KEEP_HZ_MAX 2000

/*
 * With threads, a new clock is waited for as long as a period of the usual rates takes.
 * Bound: pace.
 */
#define THREADS_PHASE_NS (11 * NS_PER_MS)

/*
 * Threads at once that wait for the kernel to publish; beyond that the caller waits itself.
 * Bound: users: threads that wait for the kernel to publish a histogram; then: profild itself
 * waits, and with it all clients; again: when the kernel has published; share: none; seen: not
 * seen.
 */
#define PUBLISHERS_MAX 64

/*
 * Threads at once that withdraw, of any number that is queued.
 * Bound: users: threads that withdraw histograms; then: further ones wait in a queue; again: when
 * others are withdrawn; share: none; seen: not seen.
 */
#define WITHDRAWERS_MAX 32

/* Bound: size. */
#define THREAD_STACK_BYTES (64 * 1024)

/* A rate in use. */
struct histogram_clock {
	size_t histograms;  /* of this process, with this clock */
	uint64_t unused_ns; /* since when there are none */
	uint64_t tick_ns;   /* 0: not open */
	uint64_t phase_ns;  /* what clients are still to wait for its first tick; 0: nothing */
	uint64_t opened_ns;
	struct event_set events;
	int kept; /* a map that keeps the events open, to be shared; 0: none */
};

struct histograms {
	struct profil_program profil;
	struct members members;
	int program; /* the descriptor of what runs at ticks */
	unsigned int max_count;
	struct histogram_clock clocks[HISTOGRAM_CLOCKS];
	struct tick tick;
	bool has_tick;			 /* `tick` is the only clock: clocks[0] */
	struct error without;		 /* why: no perf events */
	uint32_t lowest;		 /* all client numbers below are in use */
	bool threads;			 /* see histograms_open() */
	bool is_adopted;		 /* another process loaded the program */
	bool is_shared;			 /* another process has the program, too */
	size_t count;			 /* of histograms */
	_Atomic unsigned int publishers; /* threads that wait for the kernel */
	_Atomic int publish_err;	 /* of a thread that could not publish */
	pthread_mutex_t lock;		 /* of the following */
	struct change *withdrawals;	 /* queued */
	unsigned int withdrawers;	 /* threads that take from the queue until it is empty */
};

/* --- Clocks --- */

static void close_clock(struct histogram_clock *clock)
{
	events_close(&clock->events);
	if (clock->kept)
		close(clock->kept);
	*clock = (struct histogram_clock){ 0 };
}

static bool is_kept(const struct histogram_clock *clock)
{
	return clock->tick_ns && !clock->histograms;
}

/* The open clock with this period; NULL: none. */
static struct histogram_clock *find_clock(struct histograms *all, uint64_t tick_ns)
{
	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++)
		if (all->clocks[i].tick_ns == tick_ns)
			return &all->clocks[i];
	return NULL;
}

/* Finds the clock of a frequency, or opens it. Returns 0 and *out, or a negative errno. */
static int open_clock(struct histograms *all, unsigned int frequency, struct histogram_clock **out,
		      struct error *e)
{
	/* Number 0 is reserved, so that profil(2)'s own rate can always be had. */
	size_t first = frequency == HISTOGRAM_USUAL_HZ ? 0 : 1;
	struct histogram_clock *unused = NULL, clock;
	struct event_set events = { 0 };
	int err = events_prepare(&events, CAPTURE_CPU_CLOCK, NULL, frequency, e);

	if (err)
		return err;
	*out = find_clock(all, events.tick_ns);
	if (*out)
		return 0;
	/* One that is not open, or that has not been used for the longest time. */
	for (size_t i = first; i < HISTOGRAM_CLOCKS; i++) {
		struct histogram_clock *its = &all->clocks[i];

		if ((!its->tick_ns || is_kept(its)) &&
		    (!unused || its->unused_ns < unused->unused_ns))
			unused = its;
	}
	if (unused)
		close_clock(unused);
	else
		return error_set(e, EAGAIN,
				 "cannot count at %u Hz: %d other rates are in use already",
				 frequency, HISTOGRAM_CLOCKS - 1);
	clock = (struct histogram_clock){ .tick_ns = events.tick_ns };
	if (all->threads && events.phase_ns > THREADS_PHASE_NS) {
		clock.phase_ns = events.phase_ns;
		events.phase_ns = THREADS_PHASE_NS;
	}
	err = events_open(&events, NULL, all->program, e);
	if (err) {
		events_close(&events);
		return err;
	}
	clock.opened_ns = now_ns();
	clock.events = events;
	*unused = clock;
	*out = unused;
	return 0;
}

/* --- All histograms --- */

static int load_program(struct histograms *all, struct error *e)
{
	int err;

	if (all->has_tick) {
		struct kernel_types types = { 0 };

		err = tick_prepare(&all->tick, 0, &types, e);
		kernel_types_close(&types);
		if (err) {
			*e = all->without; /* the cause: perf events are refused */
			return err;
		}
		all->profil.tick = &all->tick;
		all->clocks[0].tick_ns = all->tick.tick_ns;
	}
	all->profil.max_clients = all->max_count;
	err = program_load(load_profil, &all->profil, e);
	err = err ?: members_begin(&all->members, all->profil.bpf->obj, false, e);
	if (err)
		return err;
	all->program = bpf_program__fd(profil_program_on_tick(&all->profil));
	return all->has_tick ? tick_begin(&all->tick, profil_program_on_tick(&all->profil), e) : 0;
}

int histograms_open(unsigned int max_count, bool threads, struct histograms **out, struct error *e)
{
	struct histograms *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return error_no_memory(e);
	all->max_count = max_count;
	all->lowest = 1;
	all->threads = threads;
	pthread_mutex_init(&all->lock, NULL);
	err = perf_event_try(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	all->has_tick = err;
	if (err)
		perf_event_error(&all->without, -err, "all processes");
	err = load_program(all, e);
	if (err)
		histograms_close(all);
	else
		*out = all;
	return err;
}

bool histograms_may_start(struct histograms *all, unsigned int frequency)
{
	struct event_set events = { 0 };
	struct error ignored = { 0 };

	return !all->is_shared || all->has_tick ||
	       events_prepare(&events, CAPTURE_CPU_CLOCK, NULL, frequency, &ignored) ||
	       find_clock(all, events.tick_ns);
}

size_t histograms_count(const struct histograms *all)
{
	return all->count;
}

int histograms_look(struct histograms *all, struct error *e)
{
	uint64_t now = now_ns();
	int err = 0;

	for (size_t i = 0; i < HISTOGRAM_CLOCKS && !all->has_tick && !err; i++) {
		struct histogram_clock *clock = &all->clocks[i];

		if (is_kept(clock) && now - clock->unused_ns >= KEEP_NS)
			close_clock(clock);
		else if (clock->events.tick_ns) /* not those of another process */
			err = events_open(&clock->events, NULL, all->program, e);
	}
	return err;
}

bool histograms_need_look(const struct histograms *all)
{
	bool any = false;

	for (size_t i = 0; i < HISTOGRAM_CLOCKS && !all->has_tick; i++)
		any |= all->clocks[i].tick_ns;
	return any;
}

const char *histograms_without_events(const struct histograms *all)
{
	return all->without.what;
}

static void sleep_10_us(void)
{
	const struct timespec pause = { .tv_nsec = 10000 };

	nanosleep(&pause, NULL);
}

void histograms_close(struct histograms *all)
{
	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	while (all->publishers || all->withdrawers) {
		pthread_mutex_unlock(&all->lock);
		sleep_10_us();
		pthread_mutex_lock(&all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++)
		close_clock(&all->clocks[i]);
	if (all->tick.link)
		close(all->tick.link);
	members_free(&all->members);
	if (all->is_adopted) {
		close(all->profil.entries);
		close(all->profil.clients);
		close(all->members.map);
		close(all->members.number_map);
		close(all->program);
	}
	profil_bpf__destroy(all->profil.bpf);
	kernel_types_close(&all->profil.types);
	free(all);
}

/*
 * --- Updates and deletions in the map of maps: in these the kernel waits some 10 ms, until no
 * program runs that may use the previous value. ---
 */

struct change {
	struct histograms *all;
	uint32_t number;
	int map;	     /* to publish; -1: withdraw the current one */
	struct change *next; /* in the queue of withdrawals */
};

static int make_change(const struct change *change)
{
	const struct profil_program *profil = &change->all->profil;

	if (change->map >= 0)
		return bpf_map_update_elem(profil->clients, &change->number, &change->map, BPF_ANY);
	bpf_map_delete_elem(profil->clients, &change->number);
	return bpf_map_delete_elem(profil->entries, &change->number); /* frees the number */
}

static void *publish_in_thread(void *argument)
{
	struct change *change = argument;
	struct histograms *all = change->all;
	int err = make_change(change);

	if (err)
		all->publish_err = err;
	free(change);
	all->publishers--;
	return NULL;
}

static void *withdraw_in_thread(void *argument)
{
	struct histograms *all = argument;
	struct change *change;

	pthread_mutex_lock(&all->lock);
	while ((change = all->withdrawals)) {
		all->withdrawals = change->next;
		pthread_mutex_unlock(&all->lock);
		make_change(change);
		free(change);
		pthread_mutex_lock(&all->lock);
	}
	all->withdrawers--;
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Starts a detached thread, which blocks all signals. Returns false if there is none. */
static bool begin_thread(void *(*function)(void *), void *argument)
{
	sigset_t signals, before;
	pthread_attr_t attr;
	pthread_t thread;
	bool begun;

	sigfillset(&signals);
	pthread_sigmask(SIG_SETMASK, &signals, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	begun = pthread_create(&thread, &attr, function, argument) == 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return begun;
}

static struct change *copy_of(const struct change *change)
{
	struct change *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = *change;
	return copy;
}

/* With a thread, returns as soon as the map has the new value, while the kernel still waits. */
static int publish(struct histograms *all, const struct profil_client *client)
{
	const struct change change = { all, client->number, client->map, NULL };
	struct change *copy = NULL;
	uint32_t id;

	if (all->threads && all->publishers < PUBLISHERS_MAX)
		copy = copy_of(&change);
	all->publish_err = 0;
	all->publishers += copy != NULL;
	if (!copy || !begin_thread(publish_in_thread, copy)) {
		all->publishers -= copy != NULL;
		free(copy);
		return make_change(&change);
	}
	while (!all->publish_err && bpf_map_lookup_elem(all->profil.clients, &client->number, &id))
		sleep_10_us();
	return all->publish_err;
}

/* Queues a withdrawal, so that any number of them can be made at once without waiting for them. */
static void withdraw_later(struct histograms *all, const struct change *change)
{
	struct change *copy = copy_of(change);
	bool left = copy != NULL;

	pthread_mutex_lock(&all->lock);
	if (copy) {
		copy->next = all->withdrawals;
		all->withdrawals = copy;
	}
	if (copy && all->withdrawers < WITHDRAWERS_MAX &&
	    begin_thread(withdraw_in_thread, all)) /* it waits for the lock */
		all->withdrawers++;
	if (copy && !all->withdrawers) { /* no thread can be had */
		all->withdrawals = copy->next;
		free(copy);
		left = false;
	}
	pthread_mutex_unlock(&all->lock);
	if (!left)
		make_change(change);
}

/* --- The clients of a process, a linked list: struct member has the first --- */

static int get_entry(const struct histograms *all, uint32_t number,
		     struct profil_client_entry *entry)
{
	return bpf_map_lookup_elem(all->profil.entries, &number, entry);
}

static int set_next(const struct histograms *all, uint32_t number, uint32_t next)
{
	struct profil_client_entry entry;
	int err = get_entry(all, number, &entry);

	entry.next = next;
	return err ?: bpf_map_update_elem(all->profil.entries, &number, &entry, BPF_EXIST);
}

/* Returns the process's first client; 0: none. */
static uint32_t first_client(const struct histograms *all, pid_t pid)
{
	uint32_t key = pid;
	struct member member;

	return bpf_map_lookup_elem(all->members.map, &key, &member) ? 0 : member.client;
}

/*
 * Returns whether the process has this client. *before: the previous one in the list, 0: it is the
 * first. *count: how many clients precede it.
 */
static bool find_client(const struct histograms *all, pid_t pid, uint32_t number, uint32_t *before,
			unsigned int *count)
{
	uint32_t at = first_client(all, pid);
	struct profil_client_entry entry;

	*before = 0;
	for (*count = 0; at && *count < PROFIL_CLIENTS_OF_PROCESS; ++*count) {
		if (at == number)
			return true;
		*before = at;
		if (get_entry(all, at, &entry) || entry.process != (uint32_t)pid)
			break;
		at = entry.next;
	}
	return false;
}

static int link_client(struct histograms *all, pid_t pid, uint32_t number, struct error *e)
{
	const struct member member = { .state = MEMBER_COUNTS, .client = number };
	unsigned int count;
	uint32_t last, first = first_client(all, pid);

	if (first) {
		find_client(all, pid, 0, &last, &count);
		if (count >= PROFIL_CLIENTS_OF_PROCESS)
			return error_set(e, EAGAIN, "process %d has %d histograms already", pid,
					 PROFIL_CLIENTS_OF_PROCESS);
		/* Fails if the process has called exec meanwhile. */
		if (set_next(all, number, first) == 0 &&
		    members_change(&all->members, pid, &member) == 0)
			return 0;
		set_next(all, number, 0);
	}
	return members_add(&all->members, pid, &member, e);
}

/* --- Numbers --- */

/* Takes a free client number for the entry, and returns it; 0: there is none. */
static uint32_t take_number(struct histograms *all, const struct profil_client_entry *entry)
{
	for (uint32_t number = all->lowest; number <= all->max_count; number++) {
		int entries = all->profil.entries;
		int err = bpf_map_update_elem(entries, &number, entry, BPF_NOEXIST);
		struct profil_client_entry stale;

		/*
		 * Its process may have ended without freeing it. If several processes find that,
		 * one of them succeeds in deleting it.
		 */
		if (err == -EEXIST && !all->threads && get_entry(all, number, &stale) == 0 &&
		    kill(stale.process, 0) && errno == ESRCH &&
		    bpf_map_delete_elem(entries, &number) == 0)
			err = bpf_map_update_elem(entries, &number, entry, BPF_NOEXIST);
		if (!err) {
			if (number == all->lowest)
				all->lowest++;
			return number;
		}
	}
	return 0;
}

/* --- The histogram --- */

struct histogram {
	struct histograms *all;
	struct histogram_clock *clock; /* NULL: none yet */
	struct profil_client client;
	pid_t pid;
	bool linked; /* in the process's list of clients */
};

static int add_histogram(struct histogram *h, const struct histogram_options *options,
			 struct error *e)
{
	struct histograms *all = h->all;
	struct profil_client_entry entry = { .process = options->pid, .except = options->except };
	int err = 0;

	if (all->has_tick)
		h->clock = &all->clocks[0];
	else
		err = open_clock(all, options->frequency, &h->clock, e);
	if (err)
		return err;
	h->clock->histograms++;
	h->pid = options->pid;
	h->client.range_count = options->range_count;
	h->client.cell_count = options->cell_count;
	h->client.elsewhere = options->elsewhere;
	err = profil_client_make(&h->client, options->ranges, e);
	if (err)
		return err;
	entry.clock = all->has_tick ? PROFIL_SCHEDULER_TICK : h->clock->tick_ns;
	h->client.number = take_number(all, &entry);
	if (!h->client.number)
		return error_set(e, EAGAIN, "there are %u histograms already", all->max_count);
	err = publish(all, &h->client);
	if (err)
		return error_set(e, -err, "cannot publish the map for the counts");
	err = link_client(all, h->pid, h->client.number, e);
	h->linked = !err;
	return err;
}

int histogram_start(const struct histogram_options *options, struct histogram **out,
		    struct error *e)
{
	struct histogram *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return error_no_memory(e);
	h->all = options->all;
	h->all->count++;
	err = add_histogram(h, options, e);
	if (err)
		histogram_free(h);
	else
		*out = h;
	return err;
}

bool histogram_counts(const struct histogram *h)
{
	unsigned int count;
	uint32_t before;

	return find_client(h->all, h->pid, h->client.number, &before, &count);
}

int histogram_enable(struct histogram *h)
{
	__atomic_store_n(&profil_client_state(&h->client)->range_count, h->client.range_count,
			 __ATOMIC_SEQ_CST);
	return histogram_counts(h) ? 0 : -ESRCH;
}

void histogram_stop(struct histogram *h)
{
	struct histograms *all = h->all;
	struct member member = { .state = MEMBER_COUNTS };
	struct profil_client_entry entry;
	unsigned int count;
	uint32_t before;

	if (!h->linked)
		return;
	if (find_client(all, h->pid, h->client.number, &before, &count) &&
	    get_entry(all, h->client.number, &entry) == 0) {
		member.client = entry.next;
		if (before)
			set_next(all, before, entry.next);
		else if (entry.next)
			members_change(&all->members, h->pid, &member);
		else
			members_remove(&all->members, h->pid);
	}
	profil_client_end(&h->client);
	h->linked = false;
}

void histogram_free(struct histogram *h)
{
	if (!h)
		return;
	histogram_stop(h);
	/* In processes that received the program, the map stays until its number is used again. */
	if (h->client.number && !h->all->threads)
		bpf_map_delete_elem(h->all->profil.entries, &h->client.number);
	else if (h->client.number)
		withdraw_later(h->all, &(struct change){ h->all, h->client.number, -1, NULL });
	if (h->client.number && h->client.number < h->all->lowest)
		h->all->lowest = h->client.number;
	profil_client_free(&h->client);
	if (h->clock && --h->clock->histograms == 0 && !h->all->has_tick) {
		double hz = 0;

		h->clock->unused_ns = now_ns();
		for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++)
			if (is_kept(&h->all->clocks[i]))
				hz += (double)NS_PER_S / h->all->clocks[i].tick_ns;
		if (hz > KEEP_HZ_MAX)
			close_clock(h->clock);
	}
	h->all->count--;
	free(h);
}

uint64_t histogram_tick_ns(const struct histogram *h)
{
	return h->clock->tick_ns;
}

uint64_t histogram_wait_ns(const struct histogram *h)
{
	uint64_t now = now_ns();
	/* Fibonacci hashing: for this, the time is random enough. */
	uint32_t random = (now * 0x9e3779b97f4a7c15) >> 32;

	if (now - h->clock->opened_ns >= h->clock->phase_ns)
		return 0;
	return h->clock->phase_ns / 65536 * (random >> 16);
}

unsigned int histogram_clock(const struct histogram *h)
{
	return h->clock - h->all->clocks;
}

struct profil_state *histogram_state(const struct histogram *h)
{
	return profil_client_state(&h->client);
}

uint64_t *histogram_cells(const struct histogram *h)
{
	return (uint64_t *)&h->client.pages[profil_first_page(h->client.range_count)];
}

int histogram_fd(const struct histogram *h)
{
	return h->client.map;
}

/* --- Sharing the program and the clocks with another process --- */

/* The descriptors in a message: these, then the links of struct members, then each clock. */
enum {
	ENTRIES,
	CLIENTS,
	MEMBERS,
	NUMBERS,
	PROGRAM,
	FIRST_LINK,
};

/* Bound: size. */
#define FDS_MAX (FIRST_LINK + MEMBERS_PROGRAMS + HISTOGRAM_CLOCKS)

struct shared {
	uint32_t max_count, clock_count;
	uint32_t pid_namespace; /* that of the PIDs in the maps */
	bool has_tick;
	uint64_t ticks_ns[HISTOGRAM_CLOCKS];
};

/*
 * Puts the events of all CPUs into one map, which keeps them open as long as any process has it
 * open.
 */
static int keep_events(struct histogram_clock *clock)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_PRESERVE_ELEMS);
	int err = 0,
	    map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "profil_clock", sizeof(uint32_t),
				 sizeof(uint32_t), clock->events.count, &options);

	if (map < 0)
		return map;
	for (uint32_t i = 0; i < clock->events.count && !err; i++)
		err = bpf_map_update_elem(map, &i, &clock->events.events[i].fd, BPF_ANY);
	if (err)
		close(map);
	else
		clock->kept = map;
	return err;
}

/* Appends the open clocks to *shared and fds. Returns the new count of fds, or a negative errno. */
static int add_clocks(struct histograms *all, struct shared *shared, int *fds, int count)
{
	if (all->has_tick) {
		shared->ticks_ns[shared->clock_count++] = all->clocks[0].tick_ns;
		fds[count++] = all->tick.link;
		return count;
	}
	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++) {
		struct histogram_clock *clock = &all->clocks[i];
		int err = clock->tick_ns && !clock->kept ? keep_events(clock) : 0;

		if (err)
			return err;
		if (!clock->tick_ns)
			continue;
		shared->ticks_ns[shared->clock_count++] = clock->tick_ns;
		fds[count++] = clock->kept;
	}
	return count;
}

int histograms_send(struct histograms *all, int socket)
{
	struct shared shared = {
		.max_count = all->max_count,
		.pid_namespace = members_pid_namespace(),
		.has_tick = all->has_tick,
	};
	int fds[FDS_MAX], count = FIRST_LINK;

	fds[ENTRIES] = all->profil.entries;
	fds[CLIENTS] = all->profil.clients;
	fds[MEMBERS] = all->members.map;
	fds[NUMBERS] = all->members.number_map;
	fds[PROGRAM] = all->program;
	for (size_t i = 0; i < MEMBERS_PROGRAMS; i++)
		fds[count++] = all->members.links[i];
	count = add_clocks(all, &shared, fds, count);
	if (count < 0)
		return count;
	all->is_shared = true;
	return message_send(socket, &shared, sizeof(shared), fds, count, MSG_DONTWAIT);
}

static struct histograms *adopt(const struct shared *shared, const int *fds)
{
	struct histograms *all = calloc(1, sizeof(*all));
	const int *clock_fds = fds + FIRST_LINK + MEMBERS_PROGRAMS;

	if (!all)
		return NULL;
	pthread_mutex_init(&all->lock, NULL);
	all->members.number_map = fds[NUMBERS];
	if (members_map_numbers(&all->members)) {
		free(all);
		return NULL;
	}
	all->max_count = shared->max_count;
	all->lowest = 1;
	all->profil.entries = fds[ENTRIES];
	all->profil.clients = fds[CLIENTS];
	all->members.map = fds[MEMBERS];
	all->program = fds[PROGRAM];
	all->members.link_count = MEMBERS_PROGRAMS;
	memcpy(all->members.links, fds + FIRST_LINK, sizeof(all->members.links));
	all->is_adopted = all->is_shared = true;
	all->has_tick = shared->has_tick;
	for (uint32_t i = 0; i < shared->clock_count; i++) {
		all->clocks[i].tick_ns = shared->ticks_ns[i];
		if (shared->has_tick)
			all->tick.link = clock_fds[i];
		else
			all->clocks[i].kept = clock_fds[i];
	}
	return all;
}

int histograms_receive(int socket, struct histograms **all, struct error *e)
{
	struct shared shared;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec part = { &shared, sizeof(shared) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *header;
	int fds[FDS_MAX];
	size_t count = 0;

	if (size < 0)
		return error_set(e, errno, "cannot receive the shared histograms");
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(*fds);
		memcpy(fds, CMSG_DATA(header), count * sizeof(*fds));
	}
	*all = NULL;
	if (size == sizeof(shared) && shared.pid_namespace == members_pid_namespace() &&
	    shared.clock_count <= HISTOGRAM_CLOCKS &&
	    count == FIRST_LINK + MEMBERS_PROGRAMS + shared.clock_count)
		*all = adopt(&shared, fds);
	if (*all)
		return 0;
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	return error_set(e, EPROTO, "the message with the shared histograms is incomplete");
}
