/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_TRIGGER_H
#define PROFIL_DAEMON_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "archive/window_name.h"
#include "util/error.h"

/* What has profild --continuous keep the seconds around a moment: --trigger. */

/* Bound: caller: triggers; then: the option is refused. */
#define TRIGGERS_MAX 16
/*
 * Bound: users: files of triggers in an hour; --trigger-limit, 6 by default; then: the trigger has
 * no file; again: after an hour; share: each trigger leaves room to the others; seen:
 * triggers_refused, and the log.
 */
#define TRIGGERS_HOUR_MAX 60

struct trigger {
	enum window_trigger kind;
	const char *text; /* as given */
	/*
	 * Of the text: the resource in /proc/pressure, the control group, or the path of the
	 * command.
	 */
	const char *subject;
	size_t subject_size;
	uint64_t limit; /* percent; of a command the seconds between two runs */
};

struct trigger_options {
	struct trigger list[TRIGGERS_MAX];
	size_t count;
	uint64_t before_ns, after_ns; /* how much is kept, around the moment */
	unsigned int per_hour;	      /* at most */
};

/* Adds the trigger of a value of --trigger. Returns 0 or -EINVAL with e set. */
int trigger_parse(const char *value, void *trigger_options, struct error *e);

/*
 * A process without privileges that looks once a second whether triggers are due. A trigger is due
 * when it is met and was not the second before.
 */
struct watcher {
	pid_t pid; /* 0: there is none */
	int fd;	   /* readable when a trigger is due */
};

/*
 * Checks what the triggers watch, and starts the process if there are any. *commands_ns, in shared
 * memory, becomes the CPU time of the commands that it has run, which are no children of the
 * caller. Returns 0 or -errno with e set.
 */
int watcher_start(struct watcher *w, const struct trigger_options *o, uint64_t *commands_ns,
		  struct error *e);

struct watcher_event {
	uint64_t seen_ns; /* as now_ns() */
	size_t number;	  /* of the trigger */
};

/* Sets *event to the next trigger that is due. False: there is none. Never waits. */
bool watcher_read(const struct watcher *w, struct watcher_event *event);
void watcher_stop(struct watcher *w);

#endif
