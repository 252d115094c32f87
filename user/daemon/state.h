/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_STATE_H
#define PROFIL_DAEMON_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/refusal.h"
#include "util/account.h"
#include "util/error.h"

/*
 * Services whose changes are counted apart; those of all others are together, as "other". One of
 * the system's takes the place of another owner's, and any that of one that has not changed for
 * STATE_UNIT_S: the one that is replaced is one of the others then.
 * Bound: users: services whose changes are counted apart; then: further ones count as "other";
 * again: when one has not changed for a day; share: the system's services take the places of
 * others; seen: changes_refused_units, changes_replaced_units.
 */
#define STATE_UNITS	64
#define STATE_UNIT_SIZE 256
#define STATE_UNIT_S	(24 * 3600)

struct state_unit {
	uint64_t version;	    /* odd while it is replaced */
	char name[STATE_UNIT_SIZE]; /* no two have the same; visible characters */
	uint64_t worse, better;
	uint64_t last_s; /* when it changed last */
	bool of_system;
};

/* What is also kept of the last hour: a mean since the start hides a bad one. */
enum state_recent {
	RECENT_TICKS,
	RECENT_RING_FULL,
	RECENT_STACKS_USER,
	RECENT_STACKS_COMPLETE,
	RECENT_CPU_NS, /* profild's own, with ticks and interrupts */
	RECENT_MACHINE_NS,
	RECENT_COUNT
};

/*
 * What profild --continuous has done since it started, in memory that the recorder and the keeper
 * share. Each member has one writer; a reader may see some of them before others.
 */
struct state {
	/* The recorder's */
	uint64_t recorder_pid;
	uint64_t start_s;	  /* times are seconds since the epoch */
	uint64_t recorder_time_s; /* when it was seen to run last */
	uint64_t keeper_away_s;	  /* for how long no keeper has answered; 0: one does */
	uint64_t keeper_stuck;	  /* how many did not, and were ended */
	uint64_t windows_waiting, waiting_bytes; /* for the keeper, in memory */
	uint64_t windows_lost;			 /* too many waited, or there was no memory */
	uint64_t windows_full;			 /* ended early: there was no memory for more */
	struct account account;			 /* of all windows */
	uint64_t ring_full;			 /* ticks lost */
	uint64_t crowded;	 /* windows in which a process had more mappings than are kept */
	uint64_t unknown_images; /* samples, of which no image is known */
	uint64_t recent[RECENT_COUNT]; /* of the last hour */
	uint64_t files_unread; /* files whose symbols were not read, in each window, for limits */
	uint64_t bpf_ns, interrupt_ns;
	uint64_t cpu_ns;			      /* of all its processes */
	uint64_t resident_bytes, resident_most_bytes; /* of these; the sum of the most of each */
	/* Of the tables for walking stacks, as in struct capture_tables */
	uint64_t unwind_bytes, unwind_size_bytes, unwind_room_bytes;
	uint64_t unwind_no_room, unwind_too_large, unwind_deferred, unwind_evicted;
	struct refusals refusals; /* of which each has its last time */
	/* Wall time of all threads, as in struct capture_wall; threads of the last window. */
	uint64_t wall_threads, on_cpu_ns, runnable_ns, blocked_ns, unknown_ns;
	uint64_t throttled_ns;			   /* that quotas stopped control groups */
	uint64_t triggers_refused;		   /* too many in an hour */
	uint64_t looks, looks_failed, last_look_s; /* for changes, that have ended */
	/* The watcher's: CPU time of the commands that it has run */
	uint64_t commands_ns;
	/* The process's that looks for changes */
	uint64_t worse, better;		      /* how many it has found */
	struct state_unit units[STATE_UNITS]; /* the first: others */
	uint64_t unit_count;
	uint64_t units_refused, units_replaced; /* changes without a place; places given up */
	/* The keeper's */
	uint64_t keeper_starts;
	uint64_t last_window_s;
	uint64_t windows, windows_failed, window_bytes;
	uint64_t dcpi_failed, dcpi_dropped;
	uint64_t dcpi_epoch_ns; /* when the epoch began that windows are added to; 0: none did */
	uint64_t dropped, dropped_bytes;
	uint64_t triggers, triggers_failed; /* files of triggers that were written, or not */
	uint64_t last_trigger_s, last_trigger_kind; /* of the last: enum window_trigger */
	uint64_t damaged;			    /* windows that could not be read again */
	uint64_t pushed, refused, rejected, retried, push_dropped, pushed_bytes, push_waiting;
};

/* Memory for it that forked children share; NULL with e set: there is none. */
struct state *state_new(struct error *e);

/* Counts a change of a service: of the system's, or of another owner's. */
void state_add_change(struct state *s, const char *service, bool of_system, bool worse,
		      uint64_t now_s);

/* Write it whole or not at all: as JSON to the archive, and as metrics. Return 0 or -errno. */
int state_write(const struct state *s, const char *directory, const char *host, struct error *e);
int state_write_metrics(const struct state *s, const char *path, struct error *e);

/* The minutes that an hour has had. Zero-initialised: none. */
struct state_hour {
	uint64_t before[RECENT_COUNT]; /* the totals at the last call */
	struct {
		uint64_t minute; /* since the epoch */
		uint64_t sums[RECENT_COUNT];
	} minutes[60];
};

/* After each window: sets s->recent by its totals, which are those of now_s. */
void state_note_hour(struct state_hour *h, struct state *s, uint64_t now_s);

/*
 * The same as JSON in /run, for --status alone, where no disk hangs. The recorder writes it itself,
 * every few seconds. Without privileges there is none: fd is -1.
 */
struct state_live {
	int fd; /* of the directory */
	char name[32];
	uint64_t next_ns;
};

void state_live_begin(struct state_live *l, const char *directory, const char *host);
void state_live_write(struct state_live *l, const struct state *s);
void state_live_end(struct state_live *l);

enum state_health {
	STATE_ENDED,
	STATE_RECORDS,
	STATE_STUCK, /* the recorder, or its keeper, does not answer */
};

/*
 * Prints what the recorder of this machine into this directory has written to /run while it
 * records, or the keeper to the archive. *health: of that recorder. Returns 0, or a negative errno
 * with e set.
 */
int state_print(const char *directory, bool json, enum state_health *health, struct error *e);

#endif
