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
 * Every number but those of the account: its member, its name in the state file and, with a prefix,
 * in metrics, and what it says there. Counters only grow. Times are seconds since the epoch. They
 * are written in this order.
 */
/* clang-format off */
#define STATE_NUMBERS(COUNTER, GAUGE, RECENT, INTERNAL) \
	INTERNAL(recorder_pid, "recorder_pid") \
	GAUGE(start_s, "start_time_seconds", "When recording began") \
	GAUGE(recorder_time_s, "recorder_time_seconds", "When the recorder was seen to run last") \
	GAUGE(keeper_away_s, "keeper_away_seconds", \
	  "For how long the process that keeps the files has not answered") \
	COUNTER(keeper_stuck, "keeper_stuck_total", \
	  "Processes that kept the files, did not answer, and were ended") \
	GAUGE(windows_waiting, "windows_waiting", "Windows that wait in memory to be written") \
	GAUGE(waiting_bytes, "windows_waiting_bytes", "Bytes of these") \
	COUNTER(windows_lost, "windows_lost_total", \
	  "Windows lost before they were written: too much waited, or no memory") \
	GAUGE(last_window_s, "last_window_time_seconds", "When the last window was written") \
	COUNTER(windows, "windows_total", "Windows written") \
	COUNTER(windows_failed, "windows_failed_total", "Windows that could not be written") \
	COUNTER(windows_full, "windows_full_total", \
	  "Windows that ended early, as they had too many processes or stacks") \
	COUNTER(window_bytes, "window_bytes_total", "Bytes of the windows written") \
	COUNTER(ring_full, "lost_ring_full_total", "Ticks lost: no room in the ring buffer") \
	COUNTER(crowded, "crowded_windows_total", \
	  "Windows in which a process had more mappings than are kept") \
	COUNTER(unknown_images, "unknown_image_samples_total", "Ticks at a pc in no known image") \
	COUNTER(files_unread, "symbol_files_unread_total", \
	  "Files, in each window, whose symbols were not read because of limits") \
	GAUGE(unwind_bytes, "unwind_table_bytes", "Used of the tables for walking stacks") \
	GAUGE(unwind_size_bytes, "unwind_table_size_bytes", "Size of these tables") \
	GAUGE(unwind_room_bytes, "unwind_table_limit_bytes", "Size that they may grow to") \
	GAUGE(unwind_no_room, "unwind_no_room_images", \
	  "Images whose call frame information has no room there") \
	GAUGE(unwind_too_large, "unwind_too_large_images", \
	  "Of these, images that are larger than all that their owner may have there") \
	GAUGE(unwind_deferred, "unwind_deferred_images", \
	  "Images whose call frame information is read later, for lack of time") \
	COUNTER(unwind_evicted, "unwind_evicted_total", \
	  "Images whose call frame information made room for that of others") \
	RECENT(RECENT_TICKS, "hour_ticks", "Ticks of the last hour") \
	RECENT(RECENT_RING_FULL, "hour_lost_ring_full", "Of these, lost: no room in the ring") \
	RECENT(RECENT_STACKS_USER, "hour_user_stacks", \
	  "Samples of the last hour with call stacks in user space") \
	RECENT(RECENT_STACKS_COMPLETE, "hour_whole_user_stacks", \
	  "Of these, those up to the start of the program") \
	RECENT(RECENT_CPU_NS, "hour_cpu_nanoseconds", \
	  "Time of the last hour in profild, its ticks and interrupts") \
	RECENT(RECENT_MACHINE_NS, "hour_machine_nanoseconds", \
	  "Time of all CPUs in the last hour, idle or not") \
	COUNTER(bpf_ns, "bpf_nanoseconds_total", "Time in the eBPF program") \
	COUNTER(interrupt_ns, "interrupt_nanoseconds_total", "Time in the clock's interrupts") \
	COUNTER(cpu_ns, "cpu_nanoseconds_total", "CPU time of profild's own processes") \
	INTERNAL(start_machine_ns, "start_machine_nanoseconds") \
	GAUGE(wall_threads, "wall_threads", "Threads that there were in the last window") \
	COUNTER(on_cpu_ns, "wall_on_cpu_nanoseconds_total", "CPU time of all threads") \
	COUNTER(runnable_ns, "wall_runnable_nanoseconds_total", \
	  "Time in which threads were runnable (no free CPU)") \
	COUNTER(blocked_ns, "wall_blocked_nanoseconds_total", \
	  "Time in which threads were blocked, or idle") \
	COUNTER(unknown_ns, "wall_unknown_nanoseconds_total", \
	  "Time of threads of which neither is known") \
	COUNTER(throttled_ns, "wall_throttled_nanoseconds_total", \
	  "Time in which quotas stopped control groups, on all CPUs") \
	GAUGE(resident_bytes, "resident_bytes", "Memory of profild's own processes") \
	GAUGE(resident_most_bytes, "resident_most_bytes", "The most that it was") \
	GAUGE(users_bytes, "users_bytes", \
	  "Memory for what is kept of programs of users other than root") \
	GAUGE(users_room_bytes, "users_limit_bytes", "The most that this can be") \
	COUNTER(dcpi_failed, "dcpi_failed_total", "Windows not added to the DCPI database") \
	COUNTER(dcpi_dropped, "dcpi_dropped_samples_total", \
	  "Samples that the DCPI database cannot hold") \
	COUNTER(keeper_starts, "keeper_starts_total", \
	  "Starts of the process that keeps the files") \
	COUNTER(dropped, "windows_dropped_total", "Windows removed because of limits") \
	COUNTER(dropped_bytes, "dropped_bytes_total", "Bytes of these") \
	COUNTER(damaged, "windows_damaged_total", "Windows that could not be read again") \
	COUNTER(triggers, "triggers_total", "Files written because of triggers") \
	COUNTER(triggers_failed, "triggers_failed_total", "Those that could not be written") \
	COUNTER(triggers_refused, "triggers_refused_total", \
	  "Triggers without a file: too many in an hour") \
	GAUGE(last_trigger_s, "last_trigger_time_seconds", \
	  "The time of the last file of a trigger") \
	INTERNAL(last_trigger_kind, "last_trigger_kind") \
	COUNTER(looks, "change_looks_total", "Looks for changes since deploys") \
	COUNTER(looks_failed, "change_looks_failed_total", "Those that failed") \
	GAUGE(last_look_s, "last_change_look_time_seconds", "When the last one ended") \
	COUNTER(worse, "changes_worse_total", "Deploys since which a service costs more") \
	COUNTER(better, "changes_better_total", "Deploys since which it costs less") \
	COUNTER(units_refused, "changes_refused_units_total", \
	  "Of these, in no unit of their own in changes_total: too many have changed") \
	COUNTER(units_replaced, "changes_replaced_units_total", \
	  "Units whose changes became those of others in changes_total, to make room") \
	COUNTER(pushed, "pushed_total", "Windows sent") \
	COUNTER(refused, "push_refused_total", "Windows that the server refused") \
	COUNTER(rejected, "push_rejected_total", "Profiles in windows sent that it did not take") \
	COUNTER(retried, "push_retried_total", "Attempts to send that failed") \
	COUNTER(push_dropped, "push_dropped_total", "Windows given up: too many waited") \
	COUNTER(pushed_bytes, "pushed_bytes_total", "Bytes sent") \
	GAUGE(push_waiting, "push_waiting", "Windows that wait to be sent")
/* clang-format on */

#define STATE_MEMBER(member, ...) uint64_t member;
#define STATE_NOTHING(...)

/*
 * What profild --continuous has done since it started, in memory that the recorder and the keeper
 * share. Each member has one writer; a reader may see some of them before others. The keeper writes
 * what files and sending come to (windows, dropped, damaged, triggers, pushed), the process that
 * looks for changes what it has found, the recorder the rest.
 */
struct state {
	STATE_NUMBERS(STATE_MEMBER, STATE_MEMBER, STATE_NOTHING, STATE_MEMBER)
	uint64_t recent[RECENT_COUNT]; /* of the last hour */
	struct account account;	       /* of all windows */
	struct refusals refusals;      /* of which each has its last time */
	/* The watcher's: CPU time of the commands that it has run */
	uint64_t commands_ns;
	struct state_unit units[STATE_UNITS]; /* the first: others */
	uint64_t unit_count;
	uint64_t dcpi_epoch_ns; /* when the epoch began that windows are added to; 0: none did */
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

/*
 * When recording begins: goes on with what an earlier recorder of this archive has had in the last
 * hour. In which of its minutes is not known: the same in each.
 */
void state_continue_hour(struct state_hour *h, const char *directory, const char *host,
			 uint64_t now_s);

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
