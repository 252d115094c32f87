// SPDX-License-Identifier: GPL-2.0-only
#include "record/wait_names.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "profile/tags.h"
#include "profile/thread_state.h"
#include "profile/thread_walls.h"
#include "util/array.h"
#include "util/index.h"
#include "util/sum.h"

/*
 * What a function says of the waits below it. From the leaf on, frames are looked at as long as
 * they have a rule that goes on, or are in the C library; the last rule that says something counts.
 */
enum verdict {
	VERDICT_NONE,
	GOES_ON, /* it waits for others: its caller knows more */
	LOCK,
	JOIN,
	CONDITION, /* and has work */
	SLEEP,	   /* with work or not */
	IDLE,
	POOL,	     /* idle if several threads wait there */
	SCRIPT_LOCK, /* LOCK, if it waits for a condition: the interpreter's functions are folded */
};

struct rule {
	const char *function; /* a pattern */
	enum verdict verdict;
	bool goes_on;
	const char *file; /* the end of its path; NULL: any */
};

static const struct rule rules[] = {
	/* glibc */
	{ "pthread_mutex_timedlock", LOCK, false, NULL },
	{ "pthread_mutex_clocklock", LOCK, false, NULL },
	{ "pthread_rwlock_*", LOCK, false, NULL },
	{ "pthread_once", LOCK, false, NULL },
	{ "pthread_*join*", JOIN, true, NULL },
	{ "pthread_barrier_wait", CONDITION, false, NULL },
	{ "pthread_cond_*", GOES_ON, true, NULL },
	{ "sem_*", GOES_ON, true, NULL },
	/* C++ and Rust */
	{ "std::condition_variable*", GOES_ON, true, NULL },
	{ "std::timed_mutex::*", LOCK, false, NULL },
	{ "*Mutex::lock_contended*", LOCK, false, NULL },
	{ "*RwLock::*_contended*", LOCK, false, NULL },
	/* Event loops */
	{ "uv__io_poll", IDLE, false, NULL },
	{ "epoll_dispatch", IDLE, false, NULL },
	{ "ev_run", IDLE, false, NULL },
	{ "epoll_poll", GOES_ON, true, NULL },
	{ "g_main_context_iterate*", IDLE, false, NULL },
	{ "g_main_context_poll*", IDLE, false, NULL },
	{ "aeApiPoll", IDLE, false, NULL },
	{ "ngx_epoll_process_events", IDLE, false, NULL },
	{ "*asio::detail::epoll_reactor::run*", IDLE, false, NULL },
	{ "*asio::detail::scheduler::do_run_one*", IDLE, false, NULL },
	/* PostgreSQL */
	{ "WaitEventSetWait", GOES_ON, true, NULL },
	{ "WaitLatch*", GOES_ON, true, NULL },
	{ "ProcSleep", LOCK, true, NULL },
	{ "PGSemaphoreLock", GOES_ON, true, NULL },
	{ "LWLockAcquire*", LOCK, true, NULL },
	/* Go */
	{ "runtime.futex*", GOES_ON, true, NULL },
	{ "runtime.note*sleep*", GOES_ON, true, NULL },
	{ "runtime.mPark*", GOES_ON, true, NULL },
	{ "runtime.usleep*", GOES_ON, true, NULL },
	{ "runtime.epollwait*", GOES_ON, true, NULL },
	{ "runtime.lock*", LOCK, false, NULL },
	{ "runtime.stopm", IDLE, false, NULL },
	{ "runtime.stoplockedm", IDLE, false, NULL },
	{ "runtime.netpoll", IDLE, false, NULL },
	{ "runtime.sysmon", IDLE, false, NULL },
	{ "runtime.templateThread", IDLE, false, NULL },
	{ "os/signal.signal_recv", IDLE, false, NULL },
	/* The Java virtual machine */
	{ "os::Platform*", GOES_ON, true, NULL },
	{ "Monitor::wait*", GOES_ON, true, NULL },
	{ "PosixSemaphore::*wait*", GOES_ON, true, NULL },
	{ "Parker::park*", GOES_ON, true, NULL },
	{ "JavaThread::sleep*", SLEEP, false, NULL },
	{ "JVM_Sleep", SLEEP, false, NULL },
	{ "Mutex::lock*", LOCK, false, NULL },
	{ "ObjectMonitor::enter*", LOCK, false, NULL },
	{ "ObjectMonitor::EnterI*", LOCK, false, NULL },
	{ "ObjectMonitor::wait*", GOES_ON, true, NULL },
	{ "ObjectSynchronizer::wait*", GOES_ON, true, NULL },
	{ "JVM_MonitorWait", GOES_ON, true, NULL },
	/* The Java virtual machine's own threads */
	{ "GangWorker::loop*", IDLE, false, NULL },
	{ "WorkerThread::run*", IDLE, false, NULL },
	{ "CompileQueue::get*", IDLE, false, NULL },
	{ "VMThread::wait_for_operation*", IDLE, false, NULL },
	{ "VMThread::loop*", IDLE, false, NULL },
	{ "JVM_WaitForReferencePendingList", IDLE, false, NULL },
	{ "*::run_service*", IDLE, false, NULL },
	{ "*::sleep_before_next_cycle*", IDLE, false, NULL },
	{ "*::wait_for_next_cycle*", IDLE, false, NULL },
	{ "*::service_thread_entry*", IDLE, false, NULL },
	{ "*::monitor_deflation_thread_entry*", IDLE, false, NULL },
	{ "*::notification_thread_entry*", IDLE, false, NULL },
	{ "NMethodSweeper::sweeper_loop*", IDLE, false, NULL },
	{ "WatcherThread::sleep*", IDLE, false, NULL },
	{ "os::signal_wait*", IDLE, false, NULL },
	{ "CallJavaMainInNewThread", IDLE, false, NULL },
	/* Written in Java; a pool's threads may run too little to have names */
	{ "Unsafe_Park", POOL, true, NULL },
	{ "*Unsafe.park*", GOES_ON, true, NULL },
	{ "*LockSupport.park*", GOES_ON, true, NULL },
	{ "*ForkJoinPool.managedBlock*", GOES_ON, true, NULL },
	{ "*ForkJoinPool.unmanagedBlock*", GOES_ON, true, NULL },
	{ "*AbstractQueuedSynchronizer$ConditionNode.block*", GOES_ON, true, NULL },
	{ "*AbstractQueuedSynchronizer$ConditionObject.await*", CONDITION, true, NULL },
	{ "*AbstractQueuedSynchronizer.acquire*", LOCK, false, NULL },
	{ "*FutureTask.awaitDone*", CONDITION, false, NULL },
	{ "*CompletableFuture*", CONDITION, false, NULL },
	{ "*java.lang.Object.wait*", GOES_ON, true, NULL },
	{ "*BlockingQueue.take*", IDLE, false, NULL },
	{ "*BlockingQueue.poll*", IDLE, false, NULL },
	{ "*BlockingDeque.take*", IDLE, false, NULL },
	{ "*BlockingDeque.poll*", IDLE, false, NULL },
	{ "*DelayedWorkQueue.take*", IDLE, false, NULL },
	{ "*DelayedWorkQueue.poll*", IDLE, false, NULL },
	{ "*SynchronousQueue*.transfer*", GOES_ON, true, NULL },
	{ "*SynchronousQueue.take*", IDLE, false, NULL },
	{ "*SynchronousQueue.poll*", IDLE, false, NULL },
	{ "*ThreadPoolExecutor.getTask*", IDLE, false, NULL },
	{ "*ForkJoinPool.awaitWork*", IDLE, false, NULL },
	{ "*ReferenceQueue.remove*", IDLE, false, NULL },
	{ "*EPoll_wait*", IDLE, false, NULL },
	{ "*EPoll.wait*", IDLE, false, NULL },
	/* Python */
	{ "PyThread_acquire_lock_timed*", GOES_ON, true, NULL },
	{ "acquire_timed", GOES_ON, true, NULL },
	{ "take_gil", LOCK, false, NULL },
	{ "lock_PyThread_acquire_lock", LOCK, true, NULL },
	{ "rlock_acquire", LOCK, false, NULL },
	{ "_queue_SimpleQueue_get*", IDLE, false, NULL },
	{ "_queue.cpython-*", IDLE, false, NULL }, /* without symbols: nothing else waits there */
	{ "pysleep", SLEEP, false, NULL },
	{ "time_sleep", SLEEP, false, NULL },
	{ "wait", CONDITION, true, "/threading.py" },
	{ "_wait_for_tstate_lock", JOIN, false, "/threading.py" },
	{ "join", JOIN, false, "/threading.py" },
	{ "get", IDLE, false, "/queue.py" },
	{ "_worker", IDLE, false, "/concurrent/futures/thread.py" },
	{ "select_epoll_poll*", GOES_ON, true, NULL },
	{ "select_poll_poll*", GOES_ON, true, NULL },
	{ "select", GOES_ON, true, "/selectors.py" },
	{ "_run_once", IDLE, false, "/asyncio/base_events.py" },
	{ "serve_forever", IDLE, false, "/socketserver.py" },
	{ "*", SCRIPT_LOCK, false, ".py" },
};

/* Threads of runtimes that only work when something is left to them, and then in interpreted code.
 */
static const char *const own_threads[] = { "Common-Cleaner", "Finalizer" };

/* For these a thread waits by the same system calls for very different things. */
static bool is_open(const char *reason, size_t size)
{
	static const char *const open[] = { "condition", "join",   "sleep", "poll",
					    "event",	 "signal", "other" };

	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++)
		if (strlen(open[i]) == size && strncmp(open[i], reason, size) == 0)
			return true;
	return false;
}

static const struct rule *find_rule(const struct profile_function *f)
{
	size_t size = strlen(f->file);

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		size_t end = rules[i].file ? strlen(rules[i].file) : 0;

		if (fnmatch(rules[i].function, f->name, 0) == 0 &&
		    (!end || (size >= end && strcmp(f->file + size - end, rules[i].file) == 0)))
			return &rules[i];
	}
	return NULL;
}

static const struct rule no_rule = { .verdict = VERDICT_NONE };

bool wait_names_for_others(const struct profile_function *f)
{
	const struct rule *rule = find_rule(f);

	return rule && rule->goes_on;
}

/* For what a thread waits by its system call, before names say more. */
struct reason {
	const char *text; /* size bytes in the profile; NULL: it does not sleep */
	size_t size;
};

/* Waits with stacks for one reason. */
struct known_waits {
	uint32_t pid, generation;
	uint32_t tid;	   /* 0: of the whole process */
	const char *waker; /* the TID of who ended them, in the profile; NULL: anybody */
	struct reason reason;
	uint64_t idle_ns, blocked_ns;
};

struct names {
	struct profile *p;
	const struct rule **rules; /* of each function; NULL: not looked for */
	struct index stacks;	   /* of samples whose verdict is POOL */
	struct known_waits *known;
	size_t known_count, known_room;
	struct index known_index;
};

/* What the functions of a wait say; its first frame is its state. */
static enum verdict judge(const struct names *n, const struct profile_sample *s)
{
	const struct profile *p = n->p;
	const char *thread = p->labels[s->labels].comm;
	enum verdict verdict = VERDICT_NONE;

	for (size_t i = 0; i < sizeof(own_threads) / sizeof(*own_threads); i++)
		if (strcmp(thread, own_threads[i]) == 0)
			return IDLE;
	for (uint32_t i = 1; i < s->depth; i++) {
		const struct profile_location *l = &p->locations[p->frames[s->first_frame + i]];
		const struct profile_image *image = profile_location_image(p, l - p->locations);
		bool goes_on = image && image_is_libc(image->path);

		for (uint32_t k = 0; k < l->line_count; k++) {
			uint32_t function = p->lines[l->first_line + k].function;
			const struct rule *rule = n->rules[function];

			if (!rule)
				rule = n->rules[function] =
					find_rule(&p->functions[function]) ?: &no_rule;
			if (rule == &no_rule)
				continue;
			goes_on = rule->goes_on;
			if (rule->verdict != GOES_ON)
				verdict = rule->verdict;
			if (!goes_on)
				return verdict;
		}
		if (!goes_on)
			break;
	}
	return verdict;
}

static uint64_t stack_hash(const struct profile *p, const struct profile_sample *s)
{
	uint64_t hash = p->labels[s->labels].pid;

	for (uint32_t i = 1; i < s->depth; i++)
		hash = hash_u64(hash, p->frames[s->first_frame + i]);
	return hash;
}

/* Whether another thread of the process waits with the same stack. */
static bool is_stack_of_another(const void *array, uint32_t number, const void *key)
{
	const struct names *n = array;
	const struct profile *p = n->p;
	const struct profile_sample *a = &p->samples[number], *b = key;

	return a->depth == b->depth && p->labels[a->labels].pid == p->labels[b->labels].pid &&
	       p->labels[a->labels].tid != p->labels[b->labels].tid &&
	       memcmp(&p->frames[a->first_frame + 1], &p->frames[b->first_frame + 1],
		      (a->depth - 1) * sizeof(*p->frames)) == 0;
}

/* Sets the sample's first frame. Returns 0 or -ENOMEM. */
static int set_state(struct profile *p, const struct profile_sample *s, enum thread_state state,
		     const char *reason)
{
	const struct profile_location *old = &p->locations[p->frames[s->first_frame]];
	char text[THREAD_STATE_SIZE];
	struct profile_function function = { text, text, "", 0 };
	struct profile_line line = { 0 };

	thread_state_frame(state, reason, text);
	return profile_add_function(p, &function, &line.function)
		       ?: profile_add_line_location(p, 0, old->mapping, &line, 1,
						    &p->frames[s->first_frame]);
}

static int apply(struct names *n, const struct profile_sample *s, enum verdict verdict,
		 enum thread_state state, const char *reason, size_t size)
{
	char kept[THREAD_STATE_SIZE];

	snprintf(kept, sizeof(kept), "%.*s", (int)size, reason);
	switch (verdict) {
	case LOCK:
		return set_state(n->p, s, THREAD_BLOCKED, "lock");
	case JOIN:
		return set_state(n->p, s, THREAD_BLOCKED, "join");
	case CONDITION:
		return set_state(n->p, s, THREAD_BLOCKED, "condition");
	case SCRIPT_LOCK:
		return strcmp(kept, "condition") == 0 ? set_state(n->p, s, THREAD_BLOCKED, "lock")
						      : 0;
	case SLEEP:
		return set_state(n->p, s, state, "sleep");
	case IDLE:
		return set_state(n->p, s, THREAD_IDLE, kept);
	case POOL:
		return index_find(&n->stacks, stack_hash(n->p, s), is_stack_of_another, n, s) ==
				       INDEX_NONE
			       ? 0
			       : set_state(n->p, s, THREAD_IDLE, kept);
	default:
		return 0;
	}
}

static bool is_known(const void *array, uint32_t number, const void *key)
{
	const struct known_waits *a = (const struct known_waits *)array + number, *b = key;

	return a->tid == b->tid && a->pid == b->pid && a->generation == b->generation &&
	       !a->waker == !b->waker && (!a->waker || strcmp(a->waker, b->waker) == 0) &&
	       a->reason.size == b->reason.size &&
	       memcmp(a->reason.text, b->reason.text, b->reason.size) == 0;
}

static uint64_t known_hash(const struct known_waits *w)
{
	uint64_t hash = hash_u64((uint64_t)w->pid << 32 | w->generation, w->tid);

	if (w->waker)
		hash = hash_bytes(w->waker, strlen(w->waker), hash);
	return hash_bytes(w->reason.text, w->reason.size, hash);
}

#define KNOWN_KINDS 4

/*
 * Sets *key to the waits that a wait is one of, of which those of the lowest kind decide. Returns
 * false if it is of none.
 */
static bool is_of_kind(const struct profile *p, const struct profile_sample *s,
		       const struct reason *reason, int kind, struct known_waits *key)
{
	const struct profile_labels *labels = &p->labels[s->labels];

	*key = (struct known_waits){ .pid = labels->pid,
				     .generation = labels->generation,
				     .tid = kind < 2 ? labels->tid : 0,
				     .waker = kind % 2 ? NULL
						       : profile_tag_text(labels, TAG_WAKER_TID),
				     .reason = *reason };
	return key->pid && (kind >= 2 || key->tid) && (kind % 2 || key->waker);
}

static bool is_undecided(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_location *leaf =
		s->depth ? &p->locations[p->frames[s->first_frame]] : NULL;

	return leaf && leaf->line_count &&
	       thread_state_is_undecided(p->functions[p->lines[leaf->first_line].function].name);
}

/* Adds up the times of waits that have a stack. Returns 0 or -ENOMEM. */
static int sum_known(struct names *n, const struct reason *reasons)
{
	const struct profile *p = n->p;
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);
	int err = 0;

	for (size_t i = 0; i < KNOWN_KINDS * p->sample_count && !err; i++) {
		size_t sample = i / KNOWN_KINDS;
		const struct profile_sample *s = &p->samples[sample];
		uint64_t hash, ns = magnitude(p->values[sample * p->value_type_count + wall]);
		struct known_waits key;
		struct reason now;
		uint32_t number;

		if (!reasons[sample].text || is_undecided(p, s) ||
		    !is_of_kind(p, s, &reasons[sample], i % KNOWN_KINDS, &key))
			continue;
		hash = known_hash(&key);
		number = index_find(&n->known_index, hash, is_known, n->known, &key);
		if (number == INDEX_NONE) {
			number = n->known_count;
			if (array_add_indexed(n->known, n->known_count, n->known_room,
					      &n->known_index, hash, key))
				return -ENOMEM;
		}
		add_u64(profile_sample_state(p, s, &now.text, &now.size) == THREAD_IDLE
				? &n->known[number].idle_ns
				: &n->known[number].blocked_ns,
			ns);
	}
	return err;
}

int wait_names_apply(struct profile *p)
{
	enum verdict *verdicts = calloc(p->sample_count + 1, sizeof(*verdicts));
	struct reason *reasons = calloc(p->sample_count + 1, sizeof(*reasons));
	struct names n = { .p = p, .rules = calloc(p->function_count + 1, sizeof(*n.rules)) };
	int err = verdicts && reasons && n.rules ? 0 : -ENOMEM;
	bool any = false, any_undecided = false;

	if (profile_find_sum(p, PROFILE_SUM_WALL) == p->value_type_count)
		goto out;
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		struct reason *reason = &reasons[i];

		profile_sample_state(p, &p->samples[i], &reason->text, &reason->size);
		any_undecided |= is_undecided(p, &p->samples[i]);
		if (!reason->text || !is_open(reason->text, reason->size))
			continue;
		verdicts[i] = judge(&n, &p->samples[i]);
		any |= verdicts[i] != VERDICT_NONE;
		if (verdicts[i] == POOL)
			err = index_add(&n.stacks, stack_hash(p, &p->samples[i]), i);
	}
	for (size_t i = 0; any && i < p->sample_count && !err; i++) {
		struct reason *reason = &reasons[i];
		enum thread_state state =
			profile_sample_state(p, &p->samples[i], &reason->text, &reason->size);

		err = apply(&n, &p->samples[i], verdicts[i], state, reason->text, reason->size);
	}
	if (any_undecided)
		err = err ?: sum_known(&n, reasons);
	for (size_t i = 0; any_undecided && i < p->sample_count && !err; i++) {
		uint32_t number = INDEX_NONE;
		char text[THREAD_STATE_SIZE];
		struct known_waits key;

		if (!is_undecided(p, &p->samples[i]))
			continue;
		for (int kind = 0; kind < KNOWN_KINDS && number == INDEX_NONE; kind++)
			if (is_of_kind(p, &p->samples[i], &reasons[i], kind, &key))
				number = index_find(&n.known_index, known_hash(&key), is_known,
						    n.known, &key);
		snprintf(text, sizeof(text), "%.*s", (int)reasons[i].size, reasons[i].text);
		err = set_state(p, &p->samples[i],
				number != INDEX_NONE &&
						n.known[number].idle_ns > n.known[number].blocked_ns
					? THREAD_IDLE
					: THREAD_BLOCKED,
				text);
	}
	if (any || any_undecided)
		index_free(&p->sample_index);
	err = err ?: profile_split_idle(p);
out:
	index_free(&n.stacks);
	index_free(&n.known_index);
	free(n.known);
	free(n.rules);
	free(reasons);
	free(verdicts);
	return err;
}
