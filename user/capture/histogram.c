// SPDX-License-Identifier: GPL-2.0-only
#include "capture/histogram.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/histograms.h"
#include "capture/perf_event.h"
#include "util/clock.h"

/* Threads that wait for the kernel at once; then the caller waits. */
#define MOST_WAITS 64

#define THREAD_STACK_BYTES (64 * 1024)

/* --- Clocks --- */

/* Whether an event of a CPU can be had at all, and why not. */
static bool has_events(struct error *why)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};
	int fd = perf_event_open(&attr, -1, sched_getcpu());

	if (fd >= 0)
		return close(fd) == 0;
	perf_event_error(why, -fd, "all processes");
	return false;
}

static int open_events(struct histograms *all, unsigned int frequency, struct histogram_clock **out,
		       struct error *e)
{
	struct histogram_clock *unused = NULL;
	struct event_set events = { 0 };
	int err = events_prepare(&events, CAPTURE_CPU_CLOCK, frequency, e);

	if (err)
		return err;
	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++) {
		struct histogram_clock *clock = &all->clocks[i];

		if (clock->period_ns == events.period_ns) {
			*out = clock;
			return 0;
		}
		if (!clock->period_ns && !unused)
			unused = clock;
	}
	if (!unused)
		return error_set(e, EAGAIN, "%d other rates are in use already, %u Hz is one more",
				 HISTOGRAM_CLOCKS, frequency);
	err = events_open(&events, NULL, all->program, e);
	if (err) {
		events_close(&events);
		return err;
	}
	*unused = (struct histogram_clock){ .period_ns = events.period_ns, .events = events };
	*out = unused;
	return 0;
}

static int open_clock(struct histograms *all, unsigned int frequency, struct histogram_clock **out,
		      struct error *e)
{
	int err = 0;

	if (all->has_tick)
		*out = &all->clocks[0];
	else
		err = open_events(all, frequency, out, e);
	if (!err)
		(*out)->histograms++;
	return err;
}

void histograms_close_clock(struct histogram_clock *clock)
{
	events_close(&clock->events);
	if (clock->kept)
		close(clock->kept);
	*clock = (struct histogram_clock){ 0 };
}

/* --- All of them --- */

static int load(struct histograms *all, struct error *e)
{
	int err;

	if (all->has_tick) {
		err = tick_prepare(&all->tick, 0, e);
		if (err) {
			*e = all->without; /* that there is no other clock is the news */
			return err;
		}
		all->profil.tick = &all->tick;
		all->clocks[0].period_ns = all->tick.period_ns;
	}
	all->profil.most = all->most;
	err = profil_program_load(&all->profil, e);
	err = err ?: members_begin(&all->members, profil_program_object(&all->profil), false, e);
	if (err)
		return err;
	all->program = bpf_program__fd(profil_program_on_tick(&all->profil));
	return all->has_tick ? tick_begin(&all->tick, profil_program_on_tick(&all->profil), e) : 0;
}

int histograms_open(unsigned int most, bool threads, struct histograms **out, struct error *e)
{
	struct histograms *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return error_no_memory(e);
	all->most = most;
	all->lowest = 1;
	all->threads = threads;
	all->has_tick = !has_events(&all->without);
	err = load(all, e);
	if (err)
		histograms_close(all);
	else
		*out = all;
	return err;
}

int histograms_look_at_cpus(struct histograms *all, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < HISTOGRAM_CLOCKS && !all->has_tick && !err; i++)
		if (all->clocks[i].period_ns)
			err = events_open(&all->clocks[i].events, NULL, all->program, e);
	return err;
}

const char *histograms_without_events(const struct histograms *all)
{
	return all->without.what;
}

static void sleep_a_moment(void)
{
	const struct timespec moment = { .tv_nsec = 10000 };

	nanosleep(&moment, NULL);
}

void histograms_close(struct histograms *all)
{
	if (!all)
		return;
	while (all->waits)
		sleep_a_moment();
	for (size_t i = 0; i < HISTOGRAM_CLOCKS; i++)
		histograms_close_clock(&all->clocks[i]);
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
	profil_program_free(&all->profil);
	free(all);
}

/*
 * --- What the kernel waits for: an update or a deletion in the map of maps takes some 10 ms, until
 * no program runs that may have seen what was there before. ---
 */

struct change {
	struct histograms *all;
	uint32_t number;
	int map; /* to be published; -1: the one that is there is to be withdrawn */
};

static int make_change(const struct change *change)
{
	const struct profil_program *profil = &change->all->profil;

	if (change->map >= 0)
		return bpf_map_update_elem(profil->clients, &change->number, &change->map, BPF_ANY);
	bpf_map_delete_elem(profil->clients, &change->number);
	return bpf_map_delete_elem(profil->entries, &change->number); /* now it can be another's */
}

static void *wait_for_kernel(void *argument)
{
	struct change *change = argument;
	struct histograms *all = change->all;
	int err = make_change(change);

	if (err && change->map >= 0)
		all->publish_err = err;
	free(change);
	all->waits--;
	return NULL;
}

/* In a thread of its own, which inherits that all signals are blocked. Returns whether it is. */
static bool begin_thread(struct change *change)
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
	change->all->waits++;
	begun = pthread_create(&thread, &attr, wait_for_kernel, change) == 0;
	if (!begun)
		change->all->waits--;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return begun;
}

/* Returns whether it is left to a thread. */
static bool change_later(const struct change *change)
{
	struct change *copy = NULL;

	if (change->all->threads && change->all->waits < MOST_WAITS)
		copy = malloc(sizeof(*copy));
	if (!copy)
		return false;
	*copy = *change;
	if (begin_thread(copy))
		return true;
	free(copy);
	return false;
}

/* What the kernel has taken is to be seen at once, before it has waited. */
static int publish(struct histograms *all, const struct profil_client *client)
{
	const struct change change = { all, client->number, client->map };
	uint32_t id;

	all->publish_err = 0;
	if (!change_later(&change))
		return make_change(&change);
	while (!all->publish_err && bpf_map_lookup_elem(all->profil.clients, &client->number, &id))
		sleep_a_moment();
	return all->publish_err;
}

/* In processes that share the program, a map stays until another histogram has its number. */
static void withdraw(struct histograms *all, uint32_t number)
{
	const struct change change = { all, number, -1 };

	if (!all->threads)
		bpf_map_delete_elem(all->profil.entries, &number);
	else if (!change_later(&change))
		make_change(&change);
	if (number < all->lowest)
		all->lowest = number;
}

/* --- The clients of a process: the member knows the first, and each the next --- */

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

/* 0: none, as the process is no member. */
static uint32_t first_client(const struct histograms *all, pid_t pid)
{
	uint32_t key = pid;
	struct member member;

	return bpf_map_lookup_elem(all->members.map, &key, &member) ? 0 : member.client;
}

/*
 * Whether the process has this client; *before is the one before it, 0: it is the first. *count:
 * how many it has up to there.
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
		/* Unless it has become another program meanwhile. */
		if (set_next(all, number, first) == 0 &&
		    members_change(&all->members, pid, &member) == 0)
			return 0;
		set_next(all, number, 0);
	}
	return members_add(&all->members, pid, &member, e);
}

static void unlink_client(struct histograms *all, pid_t pid, uint32_t number)
{
	struct member member = { .state = MEMBER_COUNTS };
	struct profil_client_entry entry;
	unsigned int count;
	uint32_t before;

	if (!find_client(all, pid, number, &before, &count) || get_entry(all, number, &entry))
		return;
	member.client = entry.next;
	if (before)
		set_next(all, before, entry.next);
	else if (entry.next)
		members_change(&all->members, pid, &member);
	else
		members_remove(&all->members, pid);
}

/* --- Numbers --- */

/* One whose process has ended without giving it back: other processes may share the program. */
static bool is_stale(const struct histograms *all, uint32_t number)
{
	struct profil_client_entry entry;

	return get_entry(all, number, &entry) == 0 && kill(entry.process, 0) && errno == ESRCH;
}

/* Returns a number that nobody else has, or 0. */
static uint32_t take_number(struct histograms *all, const struct profil_client_entry *entry)
{
	for (uint32_t number = all->lowest; number <= all->most; number++) {
		int entries = all->profil.entries;
		int err = bpf_map_update_elem(entries, &number, entry, BPF_NOEXIST);

		/* Of several that see that it is stale, one can delete it. */
		if (err == -EEXIST && !all->threads && is_stale(all, number) &&
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
	struct histogram_clock *clock; /* NULL: it has none */
	struct profil_client client;
	pid_t pid;
	bool linked; /* to the process */
};

static int start(struct histogram *h, const struct histogram_options *options, struct error *e)
{
	struct histograms *all = h->all;
	struct profil_client_entry entry = { .process = options->pid, .except = options->except };
	int err = open_clock(all, options->frequency, &h->clock, e);

	if (err)
		return err;
	h->pid = options->pid;
	h->client.range_count = options->range_count;
	h->client.cell_count = options->cell_count;
	h->client.elsewhere = options->elsewhere;
	err = profil_client_make(&h->client, options->ranges, e);
	if (err)
		return err;
	entry.clock = all->has_tick ? PROFIL_SCHEDULER_TICK : h->clock->period_ns;
	h->client.number = take_number(all, &entry);
	if (!h->client.number)
		return error_set(e, EAGAIN, "there are %u histograms already", all->most);
	err = publish(all, &h->client);
	if (err)
		return error_set(e, -err, "cannot have the counts made in memory");
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
	err = start(h, options, e);
	if (err)
		histogram_free(h);
	else
		*out = h;
	return err;
}

int histogram_enable(struct histogram *h)
{
	unsigned int count;
	uint32_t before;

	profil_client_enable(&h->client);
	return find_client(h->all, h->pid, h->client.number, &before, &count) ? 0 : -ESRCH;
}

void histogram_stop(struct histogram *h)
{
	if (!h->linked)
		return;
	unlink_client(h->all, h->pid, h->client.number);
	profil_client_end(&h->client);
	h->linked = false;
}

void histogram_free(struct histogram *h)
{
	if (!h)
		return;
	histogram_stop(h);
	if (h->client.number)
		withdraw(h->all, h->client.number);
	profil_client_free(&h->client);
	if (h->clock && --h->clock->histograms == 0 && !h->all->has_tick)
		histograms_close_clock(h->clock);
	free(h);
}

uint64_t histogram_period_ns(const struct histogram *h)
{
	return h->clock->period_ns;
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
	return profil_client_cells(&h->client);
}

int histogram_fd(const struct histogram *h)
{
	return h->client.map;
}
