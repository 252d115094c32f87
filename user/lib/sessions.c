// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/sessions.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/backend.h"
#include "lib/backends.h"
#include "lib/count.h"
#include "lib/fold.h"
#include "lib/last_error.h"
#include "lib/memory.h"
#include "lib/profil.h"
#include "lib/service_thread.h"
#include "lib/session.h"
#include "lib/verbose.h"
#include "util/clock.h"

/*
 * The service thread holds the lock while it tries to attach again: at most 1/30 of the time.
 * Bound: pace.
 */
#define RETRY_SHARE 30

static struct profil_session *sessions; /* those that are on */
static struct profil_sum stopped;	/* the sum of those that were */

int profil__session_make(struct profil_session **session, const struct region *regions,
			 size_t count, bool wide)
{
	struct profil_session *s = profil__memory_make(sizeof(*s));
	void *memory;
	int err;

	if (!s)
		return profil__error(ENOMEM, "out of memory");
	s->fd = -1;
	err = profil__plan_make(&s->plan, regions, count, wide);
	if (!err && !s->plan.regions[0].buffer && s->plan.cell_count) {
		/* Pages of cells that never count take no memory. */
		memory = mmap(NULL, s->plan.cell_count * sizeof(*s->counts), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			err = profil__error(ENOMEM, "out of memory for %u cells",
					    s->plan.cell_count);
		else
			s->counts = memory;
	}
	if (err)
		profil__session_free(s);
	else
		*session = s;
	return err;
}

void profil__session_free(struct profil_session *s)
{
	if (s->counts)
		munmap(s->counts, s->plan.cell_count * sizeof(*s->counts));
	profil__plan_free(&s->plan);
	free(s->maps.data);
	profil__memory_free(s);
}

/* --- Totals --- */

/* The CPU time of the process, without the service thread, which is not counted. */
static uint64_t read_cpu_clock(const struct profil_session *s)
{
	clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
	struct timespec now;

	if (s->pid && clock_getcpuclockid(s->pid, &clock))
		return s->cpu_at;
	if (clock_gettime(clock, &now))
		return s->cpu_at; /* the process has ended */
	return now.tv_sec * NS_PER_S + now.tv_nsec - (s->pid ? 0 : profil__service_cpu_ns());
}

void profil__session_account(struct profil_session *s)
{
	uint64_t now, due;

	if (!s->on || s->target)
		return;
	now = read_cpu_clock(s);
	if (now > s->cpu_at)
		s->cpu_ns += now - s->cpu_at;
	s->cpu_at = now;
	if (s->attached || s->backend->direct)
		return;
	due = (s->cpu_ns - s->alive_cpu_ns + s->counting.tick_ns / 2) / s->counting.tick_ns;
	s->latest_lost = due > s->alive_ticks ? due - s->alive_ticks : 0;
}

/* The back end is known to count. */
static void note_alive(struct profil_session *s)
{
	profil__session_account(s);
	s->alive_cpu_ns = s->cpu_ns;
	s->alive_ticks = s->state ? count_load(&s->state->ticks) : 0;
}

/*
 * In the service thread: sets s->target if the other process has ended or executed another program.
 * Its CPU clock goes on with that program, or is gone. So the CPU time since the last look is what
 * the ticks since then stand for.
 */
static int look_at_target(struct profil_session *s)
{
	bool ended;

	if (!s->pid || !s->attached || s->target)
		return 0;
	ended = kill(s->pid, 0) && errno == ESRCH;
	if (!ended && s->backend->has_target(s)) {
		note_alive(s);
		return 0;
	}
	s->target = ended ? PROFIL_TARGET_ENDED : PROFIL_TARGET_EXECUTED;
	s->cpu_ns = s->alive_cpu_ns +
		    (count_load(&s->state->ticks) - s->alive_ticks) * s->counting.tick_ns;
	return 0;
}

void profil__session_look_at_target(struct profil_session *s)
{
	if (s->pid && s->attached && !s->target)
		profil__service_call(look_at_target, s);
}

/* Adds the back end's totals to the session's: they are about to start at 0 again. */
static void keep_totals(struct profil_session *s)
{
	s->out_of_range += s->latest_out_of_range;
	s->lost += s->latest_lost;
	s->latest_out_of_range = s->latest_lost = 0;
}

/* The kernel's memory is not there any more: released, or only the parent has it. */
static void drop_kernel_memory(struct profil_session *s)
{
	keep_totals(s);
	s->state = NULL;
	s->cells = NULL;
	s->attached = false;
}

int profil__session_update(struct profil_session *s)
{
	if (s->attached && s->backend->update)
		s->backend->update(s);
	return profil__fold(s);
}

/* --- One session --- */

/* If a buffer cannot be written, the session ends all the same. */
static int detach_session(struct profil_session *s)
{
	s->backend->stop(s);
	profil__session_update(s);
	if (s->backend->release)
		s->backend->release(s);
	drop_kernel_memory(s);
	return 0;
}

/* The back end has started. */
static void note_attached(struct profil_session *s)
{
	s->attached = true;
	s->check_ns = now_ns() + NS_PER_S;
	note_alive(s);
}

void profil__sessions_end_idle_thread(void)
{
	for (const struct profil_session *s = sessions; s; s = s->next)
		if (!s->backend->direct)
			return;
	if (profil__service_runs() && !profil__may_be_in_handler())
		profil__service_end();
}

static void end_idle_thread(void)
{
	if (!profil__backends_open())
		profil__sessions_end_idle_thread();
}

static struct look look_at_all(void);

static const struct service_duty duty = {
	.look = look_at_all,
	.stop = profil__sessions_stop,
	.end = profil__backends_release_kept,
};

int profil__session_start(struct profil_session *s)
{
	int err;

	profil__service_set_duty(&duty);
	err = profil__backends_start(s);
	if (!err) {
		s->cpu_at = read_cpu_clock(s);
		s->on = true;
		note_attached(s);
		s->counting.start_ns = clock_ns(CLOCK_REALTIME);
		s->next = sessions;
		sessions = s;
	}
	end_idle_thread();
	return err;
}

static uint64_t session_ticks(const struct profil_session *s)
{
	return s->in_range + s->out_of_range + s->latest_out_of_range + s->lost + s->latest_lost;
}

void profil__session_stop(struct profil_session *s)
{
	struct profil_session **link = &sessions;

	if (!s->on)
		return;
	profil__session_look_at_target(s);
	profil__session_account(s);
	if (s->attached && s->backend->direct)
		detach_session(s);
	else if (s->attached)
		profil__service_call(detach_session, s);
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	s->on = false;
	if (!s->pid && !s->trial) {
		stopped.backend = s->backend->name;
		stopped.no_ticks |= s->no_ticks;
		stopped.ticks += session_ticks(s) - s->parents_ticks;
		stopped.lost += s->lost + s->latest_lost - s->parents_lost;
		stopped.cpu_ns += s->cpu_ns - s->parents_cpu_ns;
		stopped.tick_ns = s->counting.tick_ns;
	}
	end_idle_thread();
}

/* A session whose buffer cannot be written goes off, as profil(3) has it. */
static int update_or_stop(struct profil_session *s)
{
	if (profil__session_update(s))
		profil__session_stop(s);
	return 0;
}

/* --- All sessions that are on --- */

bool profil__sessions_any(void)
{
	return __atomic_load_n(&sessions, __ATOMIC_RELAXED);
}

void profil__sessions_update(void)
{
	struct profil_session *next;

	for (struct profil_session *s = sessions; s; s = next) {
		next = s->next;
		if (s->attached && !s->backend->direct && profil__fold_pending(s))
			profil__service_call(update_or_stop, s); /* no seccomp(2) filter there */
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
	profil__sessions_update();
}

void profil__sessions_after_fork(void)
{
	profil__backends_after_fork();
}

void profil__sessions_stop(void)
{
	while (sessions)
		profil__session_stop(sessions);
}

static int stop_session(struct profil_session *s)
{
	profil__session_stop(s);
	return 0;
}

void profil__sessions_end(void)
{
	while (sessions) {
		if (sessions->backend->direct)
			profil__session_stop(sessions);
		else /* no seccomp(2) filter there */
			profil__service_call(stop_session, sessions);
	}
}

const struct profil_sum *profil__sessions_sum(void)
{
	return &stopped;
}

/* In a child; with `again`, sessions about this process that are not inherited are restarted. */
static void begin_child(bool again)
{
	struct profil_session *all = sessions, *next;
	bool service = profil__service_runs();

	sessions = NULL;
	stopped = (struct profil_sum){ 0 };
	profil__verbose_forked();
	profil__service_forget();
	for (struct profil_session *s = all; s; s = next) {
		next = s->next;
		s->cpu_at = read_cpu_clock(s);
		s->alive_cpu_ns = s->cpu_ns;
		s->alive_ticks = 0;
		s->on = s->attached && s->backend->inherited;
		if (s->on) {
			keep_totals(s);
		} else { /* only the parent has the kernel's memory (backend.h) and descriptors */
			drop_kernel_memory(s);
			s->fd = -1;
			s->handle = NULL;
		}
		s->parents_ticks = session_ticks(s);
		s->parents_lost = s->lost;
		s->parents_cpu_ns = s->cpu_ns;
		if (!s->on && again && !s->pid) {
			s->on = profil__backends_restart(s) == 0;
			if (s->on)
				note_attached(s);
			else if (!s->backend->direct) /* the service thread tries again */
				s->on = profil__service_start() == 0;
		}
		if (s->on) {
			s->next = sessions;
			sessions = s;
		}
	}
	if (again && service) {
		if (profil__may_be_in_handler()) /* it was idle: so is the child's */
			profil__service_start();
		end_idle_thread();
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

/* --- In the service thread --- */

static struct look look_at_all(void)
{
	uint64_t now = now_ns();
	struct profil_session *next;
	struct look found = { 0 };

	for (struct profil_session *s = sessions; s; s = next) {
		next = s->next;
		if (!s->counts)
			update_or_stop(s);
		if (!s->on || s->backend->direct)
			continue;
		if (now >= s->check_ns) {
			/* Checks the back end once a second, or starts it again. */
			s->check_ns = now + NS_PER_S;
			if (s->attached && s->backend->is_alive && !s->backend->is_alive(s)) {
				s->alive_ticks = count_load(&s->state->ticks) - s->alive_ticks;
				detach_session(s);
			}
			if (s->attached && s->pid) {
				look_at_target(s);
			} else if (s->attached) {
				note_alive(s);
			} else if (s->backend->start(s)) {
				s->check_ns += (now_ns() - now) * RETRY_SHARE;
			} else { /* ticks that were due meanwhile are lost */
				profil__session_account(s);
				keep_totals(s);
				note_attached(s);
			}
		}
		found.any = true;
		found.soon |= !s->counts;
		if (s->state)
			found.ticks += count_load(&s->state->ticks);
	}
	profil__backends_look();
	found.kept = profil__backends_open();
	return found;
}
