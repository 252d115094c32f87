// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/backend.h"
#include "lib/count.h"
#include "lib/last_error.h"
#include "lib/fold.h"
#include "lib/service_thread.h"

#define NS_PER_S UINT64_C(1000000000)

/* The live thread has the lock while it tries to be counted again: not longer than 1/30 of the
 * time. */
#define RETRY_SHARE 30

static struct profil_session *sessions; /* those that are on; changed with the lock held */

/* --- One session --- */

static size_t counts_size(const struct profil_session *s)
{
	return s->plan.cell_count * sizeof(*s->counts);
}

/* What is not counted takes no memory. */
static int make_counts(struct profil_session *s)
{
	void *memory;

	if (s->plan.regions[0].buffer || !s->plan.cell_count)
		return 0;
	memory = mmap(NULL, counts_size(s), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return profil__error(ENOMEM, "out of memory for %u cells", s->plan.cell_count);
	s->counts = memory;
	return 0;
}

int profil__session_make(struct profil_session **session, const struct region *regions,
			 size_t count, bool wide)
{
	struct profil_session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return profil__error(ENOMEM, "out of memory");
	s->fd = -1;
	err = profil__plan_make(&s->plan, regions, count, wide);
	err = err ?: make_counts(s);
	if (err)
		profil__session_free(s);
	else
		*session = s;
	return err;
}

void profil__session_free(struct profil_session *s)
{
	if (s->counts)
		munmap(s->counts, counts_size(s));
	profil__plan_free(&s->plan);
	free(s->maps.data);
	free(s);
}

uint64_t profil__wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* --- The account --- */

/* The CPU time of the process, without the thread that is not counted. */
static uint64_t read_cpu_clock(const struct profil_session *s)
{
	clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
	struct timespec now;

	if (s->pid && clock_getcpuclockid(s->pid, &clock))
		return s->cpu_at;
	if (clock_gettime(clock, &now))
		return s->cpu_at; /* it has ended */
	return now.tv_sec * NS_PER_S + now.tv_nsec - (s->pid ? 0 : profil__live_cpu_ns());
}

void profil__session_account(struct profil_session *s)
{
	uint64_t now, due;

	if (!s->on)
		return;
	now = read_cpu_clock(s);
	if (now > s->cpu_at)
		s->cpu_ns += now - s->cpu_at;
	s->cpu_at = now;
	if (s->attached || s->backend->direct)
		return;
	due = (s->cpu_ns - s->seen_cpu_ns + s->period_ns / 2) / s->period_ns;
	s->latest_lost = due > s->seen_ticks ? due - s->seen_ticks : 0;
}

/* The back end was seen to count. */
static void take_seen(struct profil_session *s)
{
	profil__session_account(s);
	s->seen_cpu_ns = s->cpu_ns;
	s->seen_ticks = s->state ? count_load(&s->state->ticks) : 0;
}

/* What the back end tells from now on begins at 0. */
static void keep_totals(struct profil_session *s)
{
	s->out_of_range += s->latest_out_of_range;
	s->lost += s->latest_lost;
	s->latest_out_of_range = s->latest_lost = 0;
}

/* The counts are in maps that are let go of, or were another process's. */
static void end_maps(struct profil_session *s)
{
	keep_totals(s);
	s->state = NULL;
	s->cells = NULL;
	s->attached = false;
}

/* A buffer that cannot be written is the end of it, which this is anyway. */
static int detach(struct profil_session *s)
{
	s->backend->stop(s);
	profil__fold(s);
	if (s->backend->release)
		s->backend->release(s);
	end_maps(s);
	return 0;
}

static void begin_to_watch(struct profil_session *s)
{
	s->attached = true;
	s->watch_ns = profil__now_ns() + NS_PER_S;
	take_seen(s);
}

/* The thread is for sessions that are not counted by the back end itself. */
static void end_idle_thread(void)
{
	for (const struct profil_session *s = sessions; s; s = s->next)
		if (!s->backend->direct)
			return;
	profil__live_end();
}

int profil__session_start(struct profil_session *s)
{
	int err = profil__backend_start(s);

	if (!err) {
		s->cpu_at = read_cpu_clock(s);
		s->on = true;
		begin_to_watch(s);
		s->start_ns = profil__wall_ns();
		s->next = sessions;
		sessions = s;
	}
	end_idle_thread();
	return err;
}

void profil__session_stop(struct profil_session *s)
{
	struct profil_session **link = &sessions;

	if (!s->on)
		return;
	profil__session_account(s);
	if (s->attached && s->backend->direct)
		detach(s);
	else if (s->attached)
		profil__live_call(detach, s);
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	s->on = false;
	end_idle_thread();
}

/* Off without a word, when a buffer cannot be written. */
static int fold_or_stop(struct profil_session *s)
{
	if (profil__fold(s))
		profil__session_stop(s);
	return 0;
}

/* --- All sessions that are on --- */

bool profil__sessions_any(void)
{
	return __atomic_load_n(&sessions, __ATOMIC_RELAXED);
}

void profil__sessions_fold(void)
{
	struct profil_session *next;

	for (struct profil_session *s = sessions; s; s = next) {
		next = s->next;
		if (s->attached && !s->backend->direct && profil__fold_pending(s))
			profil__live_call(fold_or_stop, s); /* it has no seccomp(2) filter */
	}
	end_idle_thread();
}

void profil__sessions_before_fork(void)
{
	for (struct profil_session *s = sessions; s; s = s->next) {
		profil__session_account(s);
		if (s->attached && s->backend->before_fork)
			s->backend->before_fork(s);
	}
	profil__sessions_fold();
}

void profil__sessions_after_fork(void)
{
	profil__backend_after_fork();
}

void profil__sessions_stop(void)
{
	while (sessions)
		profil__session_stop(sessions);
}

/* The kernel's memory was not inherited (backend.h), nor were the descriptors. */
static void forget(struct profil_session *s)
{
	end_maps(s);
	s->fd = -1;
	s->handle = NULL;
}

/* In the live thread: what was not counted meanwhile is lost. */
static int attach_again(struct profil_session *s)
{
	int err = s->backend->start(s);

	if (!err) {
		profil__session_account(s);
		keep_totals(s);
		begin_to_watch(s);
	}
	return err;
}

/* Returns whether it is on. If nobody counts for it now, the live thread tries it again. */
static bool go_on(struct profil_session *s)
{
	if (profil__backend_go_on(s) == 0) {
		begin_to_watch(s);
		return true;
	}
	return !s->backend->direct && profil__live_begin() == 0;
}

/* In a child: whether it is on there without help. If not, nothing of it is there. */
static bool stays_on(struct profil_session *s)
{
	if (s->attached && s->backend->inherited) {
		keep_totals(s);
		return true;
	}
	forget(s);
	return false;
}

/* In a child; `again`: those that are off there are to go on. */
static void begin_child(bool again)
{
	struct profil_session *all = sessions, *next;

	sessions = NULL;
	profil__live_forget();
	for (struct profil_session *s = all; s; s = next) {
		next = s->next;
		s->cpu_at = read_cpu_clock(s);
		s->seen_cpu_ns = s->cpu_ns;
		s->seen_ticks = 0;
		s->on = stays_on(s) || (again && !s->pid && go_on(s));
		if (s->on) {
			s->next = sessions;
			sessions = s;
		}
	}
}

void profil__sessions_forked(void)
{
	begin_child(true);
}

void profil__sessions_forget(void)
{
	begin_child(false);
}

/* --- In the live thread --- */

static void watch(struct profil_session *s, uint64_t now)
{
	s->watch_ns = now + NS_PER_S;
	if (s->attached && s->backend->lives && !s->backend->lives(s)) {
		s->seen_ticks = count_load(&s->state->ticks) - s->seen_ticks;
		detach(s);
	}
	if (s->attached)
		take_seen(s);
	else if (attach_again(s))
		s->watch_ns += (profil__now_ns() - now) * RETRY_SHARE;
}

struct look profil__sessions_look(void)
{
	uint64_t now = profil__now_ns();
	struct profil_session *next;
	struct look look = { 0 };

	for (struct profil_session *s = sessions; s; s = next) {
		next = s->next;
		if (!s->counts)
			fold_or_stop(s);
		if (!s->on || s->backend->direct)
			continue;
		if (now >= s->watch_ns)
			watch(s, now);
		look.any = true;
		look.soon |= !s->counts;
		if (s->state)
			look.ticks += count_load(&s->state->ticks);
	}
	return look;
}
