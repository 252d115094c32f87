// SPDX-License-Identifier: GPL-2.0-only
#include "record/ask_runtimes.h"

#include <errno.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/target.h"
#include "record/hotspot.h"
#include "util/array.h"
#include "util/clock.h"

/*
 * A request must be answered within, and so must all those after the recording.
 * Bound: users: time for a Java process to answer; then: its child is killed: code has no names;
 * again: at the next request, after intervals that double up to 2 s; share: the process's own;
 * seen: in a warning.
 */
#define ANSWER_NS (2 * NS_PER_S)

/*
 * What a child process may need longer, to remove its file, before it is killed.
 * Bound: as ANSWER_NS.
 */
#define CHILD_SLACK_NS (200 * NS_PER_MS)

/*
 * The time until the first request, and between two of them: it doubles, up to a limit, since what
 * is compiled after the last one has no names if the process ends by itself,.
 * Bound: pace.
 */
#define FIRST_NS (250 * NS_PER_MS)
#define MOST_NS	 (2 * NS_PER_S)

/*
 * and is at least this many times the CPU time of an answer. Not of the time that it took: on a
 * busy machine an answer waits for a CPU.
 * Bound: pace.
 */
#define COST_SHARE 100

/*
 * Bound: users: Java processes that are asked in one recording; then: further ones are not asked:
 * their code has no names; again: never in this recording; share: none; seen: as code without
 * symbols.
 */
#define PROCESSES_MAX 512
/*
 * Bound: users: processes that are asked at once; then: the others wait; again: when one has
 * answered; share: none; seen: as code without symbols, at the recording's end.
 */
#define CHILDREN_MAX 16 /* at once */
/* Bound: pace. */
#define LOOK_NS (250 * NS_PER_MS) /* between two looks for new processes */

/* What a child process leaves in memory that it shares with us. */
struct report {
	bool is_runtime; /* else it has ended, too */
	int err;
	uint64_t took_ns;
	uint64_t cpu_ns; /* of that, the JVM's CPU time; 0: unknown */
	char why[sizeof(((struct error *)0)->what)];
};

/* A process with code made at run time. */
struct asked {
	pid_t pid;
	uint32_t generation; /* see struct capture_sample */
	uint64_t start_ns;   /* see target_start_ns() */
	bool is_runtime;
	bool finished; /* it was asked after the recording, or cannot be */
	uint64_t next_ns, interval_ns;
	pid_t child;  /* that asks it; 0: none */
	int child_fd; /* readable once it has ended */
	struct report *report;
	uint64_t began_ns; /* when it began */
	unsigned int answers;
	uint64_t longest_ns; /* until an answer */
	char why[sizeof(((struct error *)0)->what)];
};

struct runtime_asker {
	struct asked *processes;
	size_t count, room;
	size_t children;
	uint64_t next_look_ns;
	uint64_t limit_ns; /* after the recording: until when; else 0 */
};

struct runtime_asker *runtime_asker_new(void)
{
	return calloc(1, sizeof(struct runtime_asker));
}

/* One that has not ended may hang in a file system, and is left behind. */
static void end_child(struct runtime_asker *a, struct asked *p, bool has_ended)
{
	if (!has_ended) {
		kill(p->child, SIGKILL);
		waitpid(p->child, NULL, WNOHANG);
	}
	close(p->child_fd);
	munmap(p->report, sizeof(*p->report));
	p->child = 0;
	a->children--;
}

void runtime_asker_free(struct runtime_asker *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++)
		if (a->processes[i].child)
			end_child(a, &a->processes[i], false);
	free(a->processes);
	free(a);
}

static void fail(struct asked *p, const char *why)
{
	snprintf(p->why, sizeof(p->why), "%s", why);
}

/*
 * Starts a child process that asks: whatever it opens or reads of the process may hang, if that is
 * malicious.
 */
static void ask(struct runtime_asker *a, struct asked *p)
{
	struct report *report;
	struct hotspot h;
	struct error e;

	p->began_ns = now_ns();
	p->next_ns = p->began_ns + p->interval_ns;
	if (p->interval_ns < MOST_NS)
		p->interval_ns *= 2;
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED) {
		fail(p, strerror(errno));
		return;
	}
	/*
	 * Not fork(2): with descriptors of its own of our events and programs, a child would have
	 * ticks counted after the recording. It leaves the table that it shares, without them,
	 * before it opens any.
	 */
	p->child = syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD, NULL, &p->child_fd, NULL,
			   NULL);
	if (p->child == 0) {
		uint64_t begin_ns = now_ns(), until_ns = begin_ns + ANSWER_NS;

		if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE))
			_exit(1);
		if (a->limit_ns && a->limit_ns < until_ns)
			until_ns = a->limit_ns;
		report->err = hotspot_open(p->pid, &h, &e);
		/* The PID may be another process's by now. */
		report->is_runtime =
			report->err != -ENOENT && target_start_ns(p->pid) == p->start_ns;
		if (!report->err && report->is_runtime)
			report->err = hotspot_write_map(&h, until_ns, &report->cpu_ns, &e);
		report->took_ns = now_ns() - begin_ns;
		if (report->err && report->is_runtime)
			snprintf(report->why, sizeof(report->why), "%s", e.what);
		_exit(0);
	}
	if (p->child < 0) {
		fail(p, strerror(errno));
		munmap(report, sizeof(*report));
		p->child = 0;
		return;
	}
	p->report = report;
	a->children++;
}

/* Takes the reports of children, and ends those that are late. True: one has names. */
static bool take_reports(struct runtime_asker *a)
{
	bool any = false;

	for (size_t i = 0; i < a->count; i++) {
		struct asked *p = &a->processes[i];
		uint64_t now = now_ns();
		struct report report = { p->is_runtime, -EIO, ANSWER_NS, 0, "it does not answer" };
		bool has_ended;
		int status;

		if (!p->child)
			continue;
		has_ended = waitpid(p->child, &status, WNOHANG) == p->child;
		if (!has_ended && now - p->began_ns < ANSWER_NS + CHILD_SLACK_NS)
			continue;
		if (has_ended && status == 0) /* else it hangs, or the user has killed it */
			report = *p->report;
		end_child(a, p, has_ended);
		if (!report.is_runtime)
			continue;
		p->is_runtime = true;
		report.why[sizeof(report.why) - 1] = '\0';
		fail(p, report.why);
		p->answers += !report.err;
		any |= !report.err;
		if (!report.err && report.took_ns > p->longest_ns)
			p->longest_ns = report.took_ns;
		if (report.took_ns > ANSWER_NS + CHILD_SLACK_NS)
			report.took_ns = ANSWER_NS + CHILD_SLACK_NS;
		/* What it writes into memory that we share is no more than a hint. */
		if (!report.cpu_ns || report.cpu_ns > report.took_ns || report.err)
			report.cpu_ns = report.took_ns;
		if (p->next_ns < now + report.cpu_ns * COST_SHARE)
			p->next_ns = now + report.cpu_ns * COST_SHARE;
	}
	return any;
}

/* Adds a process that is new. */
static void note_process(pid_t pid, uint32_t generation, void *context)
{
	struct runtime_asker *a = context;

	for (size_t i = 0; i < a->count; i++)
		if (a->processes[i].pid == pid && a->processes[i].generation == generation)
			return;
	if (a->count == PROCESSES_MAX ||
	    array_reserve(&a->processes, &a->room, a->count + 1, sizeof(*a->processes)))
		return;
	a->processes[a->count++] = (struct asked){
		.pid = pid,
		.generation = generation,
		.start_ns = target_start_ns(pid),
		.next_ns = now_ns() + FIRST_NS,
		.interval_ns = FIRST_NS,
	};
}

bool runtime_asker_poll(struct runtime_asker *a, const struct capture *c)
{
	uint64_t now = now_ns();
	bool any;

	if (now >= a->next_look_ns) {
		capture_each_nameless(c, note_process, a);
		a->next_look_ns = now + LOOK_NS;
	}
	any = take_reports(a);
	for (size_t i = 0; i < a->count && a->children < CHILDREN_MAX; i++)
		if (!a->processes[i].child && a->processes[i].next_ns <= now)
			ask(a, &a->processes[i]);
	return any;
}

void runtime_asker_finish(struct runtime_asker *a, const struct capture *c)
{
	struct pollfd fds[CHILDREN_MAX];

	capture_each_nameless(c, note_process, a);
	a->limit_ns = now_ns() + ANSWER_NS;
	for (;;) {
		uint64_t now;
		nfds_t count = 0;

		take_reports(a);
		now = now_ns();
		for (size_t i = 0; i < a->count; i++) {
			struct asked *p = &a->processes[i];

			if (!p->child && !p->finished && a->children < CHILDREN_MAX &&
			    now < a->limit_ns) {
				p->finished = true;
				ask(a, p);
			}
			if (p->child)
				fds[count++] = (struct pollfd){ p->child_fd, POLLIN, 0 };
		}
		if (!count || now >= a->limit_ns + CHILD_SLACK_NS)
			break;
		poll(fds, count, 20);
	}
	for (size_t i = 0; i < a->count; i++) {
		struct asked *p = &a->processes[i];

		if (p->child)
			end_child(a, p, false);
		else if (p->finished)
			continue;
		fail(p, "there was no time left to ask it");
	}
}

void runtime_asker_each(const struct runtime_asker *a,
			void (*visit)(const struct asked_runtime *runtime, void *context),
			void *context)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct asked *p = &a->processes[i];
		struct asked_runtime runtime = {
			.name = "Java",
			.pid = p->pid,
			.answers = p->answers,
			.longest_ns = p->longest_ns,
			.why = p->why,
		};

		if (p->is_runtime)
			visit(&runtime, context);
	}
}
