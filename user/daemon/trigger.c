// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <mntent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/capabilities.h"
#include "daemon/log.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"

/* Bound: caller: percent of a trigger; then: the option is refused. */
#define PERCENT_MAX 1000000
/* Bound: pace. */
#define COMMAND_SECONDS 10 /* between two runs, if the text has none */
#define COMMAND_STEP_NS (100 * NS_PER_MS)
/*
 * How long watcher_stop() waits.
 * Bound: machine: time for which the end waits for commands of triggers; then: they are killed;
 * again: at the next start; share: none; seen: not seen.
 */
#define STOP_MS		   300
#define PRESSURE_DIRECTORY "/proc/pressure"

/* --- Texts --- */

int trigger_parse(const char *value, void *trigger_options, struct error *e)
{
	struct trigger_options *o = trigger_options;
	struct trigger t = { .text = value };
	const char *colon = strchr(value, ':'), *last = strrchr(value, ':');

	for (int i = 1; i < WINDOW_TRIGGERS && colon; i++)
		if (strlen(window_triggers[i]) == (size_t)(colon - value) &&
		    strncmp(value, window_triggers[i], colon - value) == 0)
			t.kind = i;
	if (!t.kind || t.kind == WINDOW_TRIGGER_SIGNAL)
		goto invalid;
	t.subject = colon + 1;
	t.subject_size = last > colon ? (size_t)(last - t.subject) : strlen(t.subject);
	if (t.kind == WINDOW_TRIGGER_COMMAND) {
		t.limit = COMMAND_SECONDS;
		if (last > colon && number_parse(last + 1, 1, 3600, &t.limit))
			t.subject_size = strlen(t.subject); /* a path with a colon */
	} else if (last == colon || number_parse(last + 1, 1, PERCENT_MAX, &t.limit)) {
		goto invalid;
	}
	if (!t.subject_size || t.subject_size >= PATH_MAX)
		goto invalid;
	if (o->count == TRIGGERS_MAX)
		return error_set(e, 0, "can be given %d times", TRIGGERS_MAX);
	o->list[o->count++] = t;
	return 0;
invalid:
	return error_set(e, 0,
			 "takes pressure:RESOURCE:PERCENT, load:GROUP:PERCENT or "
			 "command:FILE[:SECONDS], not \"%s\"",
			 value);
}

/* --- What is watched --- */

/* The state of a trigger, in the watcher. */
struct watch {
	const struct trigger *trigger;
	uint64_t *
		commands_ns; /* what all commands that have ended took: as watcher_start() has it */
	char subject[PATH_MAX];
	uint64_t used_ns, read_ns; /* what was waited or used up to read_ns; 0: unknown */
	pid_t pid;		   /* of the command that is running; 0: none is */
	uint64_t started_ns;
	bool met;
};

/* The CPU time of the control group in this directory. */
static bool read_group(const char *directory, uint64_t *ns)
{
	char path[4 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/cpu.stat", directory);
	if (file_find_number(path, "usage_usec ", ns)) {
		*ns *= 1000;
		return true;
	}
	snprintf(path, sizeof(path), "%s/cpuacct.usage", directory);
	return file_find_number(path, "", ns);
}

/*
 * Reads how long tasks have waited for a resource, or what a group has used. The group's path may
 * be that below the hierarchy's.
 */
static bool read_used(const struct watch *w, uint64_t *ns)
{
	const char *path = w->subject;
	char directory[3 * PATH_MAX], buffer[2 * PATH_MAX];
	struct mntent entry;
	FILE *mounts;
	bool found;

	if (w->trigger->kind != WINDOW_TRIGGER_LOAD) {
		snprintf(directory, sizeof(directory), PRESSURE_DIRECTORY "/%s", path);
		found = file_find_number(directory, "total=", ns);
		*ns *= 1000;
		return found;
	}
	mounts = setmntent("/proc/self/mounts", "re");
	found = *path == '/' && read_group(path, ns);
	while (!found && mounts && getmntent_r(mounts, &entry, buffer, sizeof(buffer))) {
		if (strcmp(entry.mnt_type, "cgroup2") != 0 && strcmp(entry.mnt_type, "cgroup") != 0)
			continue;
		snprintf(directory, sizeof(directory), "%s/%s", entry.mnt_dir, path);
		found = read_group(directory, ns);
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

/* Whether more than the limit was waited or used since the last call. */
static bool is_above(struct watch *w)
{
	uint64_t used = 0, now = now_ns(), before = w->used_ns, since = w->read_ns;

	w->read_ns = 0;
	if (!read_used(w, &used))
		return false; /* the group may come yet */
	w->used_ns = used;
	w->read_ns = now;
	return since && now > since && used >= before &&
	       (double)(used - before) * 100 > (double)w->trigger->limit * (now - since);
}

/* --- Commands --- */

/*
 * Checks that nobody but root and the user of profild decides what a path leads to: they alone own
 * it and each directory and link on the way, and others may write to none, but to directories where
 * they can replace only what is theirs (sticky ones).
 */
static int check_path(const char *path, const char *command, struct error *e)
{
	char part[PATH_MAX];
	struct stat status;

	for (size_t size = 1; path[size - 1]; size++) {
		bool whole = !path[size];

		if (!whole && path[size] != '/' && size > 1)
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)size, path);
		if (lstat(part, &status))
			return error_set(e, errno, "cannot run %s", command);
		if ((status.st_uid && status.st_uid != geteuid()) ||
		    (!S_ISLNK(status.st_mode) && status.st_mode & 022 &&
		     !(S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX))) {
			error_set_kind(e, ERROR_NOT_PERMITTED, 0,
				       "cannot run %s: other users can change %s", command, part);
			error_hint(e, "chown root '%s', and chmod go-w it", part);
			return -EPERM;
		}
		if (whole)
			break;
	}
	return 0;
}

static int check_command(const char *path, struct error *e)
{
	char real[PATH_MAX];
	struct stat status;
	int err;

	if (*path != '/')
		return error_set_kind(e, ERROR_USAGE, 0,
				      "cannot run %s: it is not an absolute path", path);
	err = check_path(path, path, e);
	if (!err && !realpath(path, real))
		err = error_set(e, errno, "cannot run %s", path);
	err = err ?: check_path(real, path, e);
	if (!err && (stat(real, &status) || !S_ISREG(status.st_mode) || access(real, X_OK)))
		err = error_set(e, EACCES, "cannot run %s", path);
	return err;
}

/* In the command's process: runs it with nothing of profild's but its user. Does not return. */
static void run_command(const char *path)
{
	char *const argv[] = { (char *)path, NULL };
	const struct rlimit descriptors = { 1024, 1024 };
	char *const environment[] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		close(fd);
		if (open("/dev/null", O_RDWR) != fd) /* NOLINT(android-cloexec-open) */
			_exit(127);
	}
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
	setrlimit(RLIMIT_NOFILE, &descriptors); /* profild has many */
	if (chdir("/") == 0)
		execve(path, argv, environment);
	_exit(127);
}

/*
 * Starts the command when it is time, and sees to its end, which it may delay for as long as it
 * takes until the next run. Returns whether its last run has failed, or was ended so.
 */
static bool has_failed(struct watch *w)
{
	uint64_t now = now_ns(), limit_ns = w->trigger->limit * NS_PER_S;
	siginfo_t info = { 0 };
	struct rusage ended;
	struct error e;

	if (w->pid) {
		if (now - w->started_ns >= limit_ns)
			kill(-w->pid, SIGKILL);
		if (waitid(P_PID, w->pid, &info, WEXITED | WNOWAIT | WNOHANG) || !info.si_pid)
			return w->met;
		kill(-w->pid, SIGKILL); /* what it has left; nobody else can have this number yet */
		waitid(P_PID, w->pid, &info, WEXITED);
		w->pid = 0;
		if (getrusage(RUSAGE_CHILDREN, &ended) == 0)
			__atomic_store_n(w->commands_ns, rusage_ns(&ended), __ATOMIC_RELAXED);
		return info.si_code != CLD_EXITED || info.si_status;
	}
	if (w->started_ns && now - w->started_ns < limit_ns)
		return w->met;
	w->started_ns = now;
	if (check_command(w->subject, &e)) {
		log_problem(&e);
		return false;
	}
	w->pid = fork();
	if (w->pid == 0)
		run_command(w->subject);
	if (w->pid < 0)
		w->pid = 0;
	return w->met;
}

/* --- The process --- */

/* Whether what a trigger watches is there, and may be. */
static int check_trigger(const struct watch *w, struct error *e)
{
	static const char resources[][8] = { "cpu", "memory", "io" };
	size_t i = 0;
	uint64_t ns = 0;

	if (w->trigger->kind == WINDOW_TRIGGER_COMMAND)
		return check_command(w->subject, e);
	if (w->trigger->kind == WINDOW_TRIGGER_LOAD) {
		if (!read_used(w, &ns))
			log_note("there is no control group %s yet", w->subject);
		return 0;
	}
	while (i < sizeof(resources) / sizeof(*resources) && strcmp(w->subject, resources[i]) != 0)
		i++;
	if (i == sizeof(resources) / sizeof(*resources))
		return error_set_kind(e, ERROR_USAGE, 0,
				      "--trigger: resources are cpu, memory and io, not \"%s\"",
				      w->subject);
	if (read_used(w, &ns))
		return 0;
	error_set_kind(e, ERROR_KERNEL_LACKS, 0, "cannot read " PRESSURE_DIRECTORY "/%s",
		       w->subject);
	error_hint(e, "some kernels have it with the parameter psi=1");
	return -ENOTSUP;
}

/* Does not return. */
static void run_watcher(struct watch *watches, size_t count, int out, pid_t recorder)
{
	uint64_t next_ns = now_ns();
	struct watcher_event event;
	sigset_t term;
	struct error e;

	/* SIGTERM is waited for below: it ends the commands, too, with what they have started. */
	child_enter("profild-watcher", recorder, SIGTERM, out);
	out = STDERR_FILENO + 1;
	/* Its commands have its user ID: by /proc they could write to the pipe, or change it. */
	prctl(PR_SET_DUMPABLE, 0);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (capabilities_keep(CAPABILITIES_NONE, &e)) {
		log_error(&e);
		_exit(1);
	}
	for (;;) {
		bool runs = false;
		struct timespec until;

		for (size_t i = 0; i < count; i++) {
			struct watch *w = &watches[i];
			bool of_command = w->trigger->kind == WINDOW_TRIGGER_COMMAND, met;

			if (!of_command && now_ns() < next_ns)
				continue;
			met = of_command ? has_failed(w) : is_above(w);
			runs |= w->pid > 0;
			event = (struct watcher_event){ now_ns(), i };
			/* A pipe that is full has more than the recorder can do. */
			if (met && !w->met && write(out, &event, sizeof(event)) < 0 &&
			    errno == EPIPE)
				_exit(0);
			w->met = met;
		}
		if (now_ns() >= next_ns)
			next_ns = now_ns() + NS_PER_S;
		until.tv_sec = 0;
		until.tv_nsec = COMMAND_STEP_NS;
		if (!runs) {
			uint64_t left = next_ns > now_ns() ? next_ns - now_ns() : 0;

			until.tv_sec = left / NS_PER_S;
			until.tv_nsec = left % NS_PER_S;
		}
		if (sigtimedwait(&term, NULL, &until) == SIGTERM) {
			for (size_t i = 0; i < count; i++)
				if (watches[i].pid) /* not waited for: nobody else has its number */
					kill(-watches[i].pid, SIGKILL);
			_exit(0);
		}
	}
}

int watcher_start(struct watcher *w, const struct trigger_options *o, uint64_t *commands_ns,
		  struct error *e)
{
	struct watch *watches = calloc(o->count + 1, sizeof(*watches));
	pid_t recorder = getpid();
	int ends[2], err = watches ? 0 : error_no_memory(e);

	*commands_ns = 0;
	for (size_t i = 0; i < o->count && !err; i++) {
		const struct trigger *t = &o->list[i];

		watches[i].trigger = t;
		watches[i].commands_ns = commands_ns;
		snprintf(watches[i].subject, sizeof(watches->subject), "%.*s", (int)t->subject_size,
			 t->subject);
		err = check_trigger(&watches[i], e);
	}
	if (!err && o->count && pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		err = error_set(e, errno, "cannot make a pipe");
	if (!err && o->count) {
		w->pid = fork();
		if (w->pid == 0)
			run_watcher(watches, o->count, ends[1], recorder);
		if (w->pid < 0)
			err = error_set(e, errno, "cannot start the process that watches");
		close(ends[1]);
		w->fd = ends[0];
		if (err) {
			close(ends[0]);
			w->pid = 0;
		}
	}
	free(watches);
	return err;
}

bool watcher_read(const struct watcher *w, struct watcher_event *event)
{
	return w->pid > 0 && read(w->fd, event, sizeof(*event)) == sizeof(*event);
}

void watcher_stop(struct watcher *w)
{
	if (w->pid <= 0)
		return;
	kill(w->pid, SIGTERM);		  /* its child, not waited for yet */
	kill(w->pid, SIGCONT);		  /* if somebody has stopped it */
	if (!child_reap(w->pid, STOP_MS)) /* it waits for the file system that a command is in */
		kill(w->pid, SIGKILL);
	close(w->fd);
	w->pid = 0;
}
