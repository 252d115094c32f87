/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TOP_WATCH_H
#define PROFIL_TOOL_TOP_WATCH_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"
#include "record/from_capture.h"
#include "profile/merge.h"
#include "report/live/live.h"
#include "tool/service.h"
#include "tool/target.h"
#include "tool/waits.h"
#include "util/error.h"

/* A capture that may run for days, and the live view of its counts. */
struct watch {
	struct live live;
	struct live_status status;
	bool has_wall;	      /* wall times are recorded */
	bool any;	      /* a sample was counted */
	bool ended;	      /* all targets have ended */
	uint64_t cpu_ns;      /* of the targets */
	struct idleness idle; /* after watch_stop(), if no sample was counted */

	/* private */
	struct tool_target target;
	char name[256];
	struct capture *capture;
	struct capture_profile *growth;
	struct runtime_asker *asker; /* or NULL */
	struct service service;	     /* instead of a capture, if is_served */
	bool is_served;
	struct merge_cache merged;
	size_t images_before; /* of the profile, when their files were opened */
	/* Of the profile, after it was compacted or the capture began. */
	size_t samples_before, labels_before;
	uint64_t own_cpu_ns, own_at_ns; /* own CPU time, and when it was that */
};

/* signals: of recording_open_signals(). */
int watch_start(struct watch *w, const struct tool_target *target, uint64_t half_life_ns,
		int signals, struct error *e);
void watch_free(struct watch *w);

/*
 * Instead of watch_start(): shows a profile, which it takes over in any case, as a watch that has
 * ended. name: what it is; value: what is counted, NULL: the default; filtered: of the profile, or
 * NULL. Its rows are yet to be collected, and `any` is yet to be set. Returns 0 or a negative errno
 * with e set.
 */
int watch_recorded(struct watch *w, struct profile *p, const char *name, const char *value,
		   const struct profile_filtered *filtered, struct error *e);

/*
 * Waits until one of fds is readable, until the time until_ns (of now_ns()), or until all targets
 * have ended; handles the kernel's records meanwhile. fds has room for one more entry.
 */
int watch_wait(struct watch *w, struct pollfd *fds, nfds_t count, uint64_t until_ns,
	       struct error *e);

/* Reads the counts and updates the rows. */
int watch_update(struct watch *w, struct error *e);

/* Ends the capture; if no sample was counted, describes what the targets did in w->idle. */
int watch_stop(struct watch *w, struct error *e);

#endif
