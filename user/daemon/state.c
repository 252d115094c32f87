// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/state.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/tree.h"
#include "report/text.h"
#include "util/directory.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/proc.h"

#define STATE_FILE ".state" /* in the host's directory of the archive */
#define STATE_SIZE 4096	    /* its size, at least */

#define METRIC_PREFIX "profil_"

static const struct field {
	const char *name;
	const char *help;
	size_t offset;
	bool gauge;    /* it can fall */
	bool internal; /* not a metric */
} fields[] = {
#define COUNTER(member, name, help) { name, help, offsetof(struct state, member), false, false },
#define GAUGE(member, name, help)   { name, help, offsetof(struct state, member), true, false },
#define RECENT(number, name, help)  GAUGE(recent[number], name, help)
#define INTERNAL(member, name)	    { name, NULL, offsetof(struct state, member), true, true },
	STATE_NUMBERS(COUNTER, GAUGE, RECENT, INTERNAL)
};

#define TRIGGER_PATH_SIZE (WINDOW_DAY_SIZE + WINDOW_NAME_SIZE)

#define FIELDS	    (sizeof(fields) / sizeof(*fields))
#define FIELD_COUNT (FIELDS + ACCOUNT_COUNT)

/* Number i of FIELD_COUNT. False: it is one of the account that is no metric. */
static bool get_field(size_t i, struct field *field)
{
	if (i < FIELDS) {
		*field = fields[i];
		return true;
	}
	i -= FIELDS;
	*field = (struct field){
		.name = account_counters[i].metric,
		.help = account_counters[i].what,
		.offset = offsetof(struct state, account.values) + i * sizeof(uint64_t),
	};
	return field->name;
}

static uint64_t value_of(const struct state *s, const struct field *field)
{
	return __atomic_load_n((const uint64_t *)((const char *)s + field->offset),
			       __ATOMIC_RELAXED);
}

struct state *state_new(struct error *e)
{
	void *memory = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	error_set(e, errno, "cannot share memory between profild's processes");
	return NULL;
}

/* The place of all services that have none; one that is called so has it, too. */
#define OTHERS "other"

/*
 * The place of a service: its own, or one for it if it has none; the first one, of all others, if
 * there is none. One of the system's may take that of another owner's, and any that of one that has
 * not changed for long; the oldest is taken.
 */
static struct state_unit *unit_place(struct state *s, const char *name, bool of_system,
				     uint64_t now_s)
{
	struct state_unit *place = NULL;

	for (size_t i = 0; i < s->unit_count; i++)
		if (strcmp(s->units[i].name, name) == 0)
			return &s->units[i];
	if (s->unit_count < STATE_UNITS)
		return &s->units[s->unit_count];
	for (size_t i = 1; i < STATE_UNITS; i++) {
		struct state_unit *unit = &s->units[i];
		bool is_old = now_s > unit->last_s + STATE_UNIT_S;

		if (!is_old && (!of_system || unit->of_system))
			continue;
		if (!place || (place->of_system != unit->of_system ? place->of_system
								   : unit->last_s < place->last_s))
			place = unit;
	}
	__atomic_add_fetch(&s->units_refused, !place, __ATOMIC_RELAXED);
	return place ?: &s->units[0];
}

void state_add_change(struct state *s, const char *service, bool of_system, bool worse,
		      uint64_t now_s)
{
	char name[STATE_UNIT_SIZE], *text = text_visible(service);
	size_t size = text ? strlen(text) : 0;
	struct state_unit *unit;

	/* Units are named by whoever may make control groups. Whole characters: what has room. */
	if (size >= STATE_UNIT_SIZE)
		for (size = STATE_UNIT_SIZE - 1; size && (text[size] & 0xc0) == 0x80;)
			size--;
	snprintf(name, STATE_UNIT_SIZE, "%.*s", (int)size, text ?: "");
	free(text);
	if (!s->unit_count) {
		strcpy(s->units[0].name, OTHERS);
		__atomic_store_n(&s->unit_count, 1, __ATOMIC_RELEASE);
	}
	/* By the label: who reads the metrics rejects all of them if two have the same. */
	unit = unit_place(s, name, of_system, now_s);
	if (unit != s->units && strcmp(unit->name, name) != 0) {
		__atomic_add_fetch(&unit->version, 1, __ATOMIC_ACQ_REL);
		__atomic_add_fetch(&s->units_replaced, *unit->name != '\0', __ATOMIC_RELAXED);
		__atomic_add_fetch(&s->units[0].worse, unit->worse, __ATOMIC_RELAXED);
		__atomic_add_fetch(&s->units[0].better, unit->better, __ATOMIC_RELAXED);
		unit->worse = unit->better = 0;
		strcpy(unit->name, name);
		unit->of_system = of_system;
		__atomic_add_fetch(&unit->version, 1, __ATOMIC_ACQ_REL);
	}
	unit->last_s = now_s;
	__atomic_add_fetch(worse ? &unit->worse : &unit->better, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(worse ? &s->worse : &s->better, 1, __ATOMIC_RELAXED);
	if (unit == &s->units[s->unit_count])
		__atomic_store_n(&s->unit_count, s->unit_count + 1, __ATOMIC_RELEASE);
}

/* -1: those of all users for whom there was no place. */
static int64_t refusal_uid(const struct refusal *refusal)
{
	return refusal->uid == REFUSAL_OTHERS ? -1 : (int64_t)refusal->uid;
}

static int write_json(FILE *out, void *context, struct error *e)
{
	const struct refusals *refusals = &((const struct state *)context)->refusals;
	struct field f;

	(void)e;
	fputs("{", out);
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (get_field(i, &f))
			fprintf(out, "%s\n\"%s\": %" PRIu64, i ? "," : "", f.name,
				value_of(context, &f));
	fputs(",\n\"refusals\": [", out);
	for (size_t i = 0; i < refusals->count && i < REFUSALS_MAX; i++) {
		const struct refusal *refusal = &refusals->all[i];

		fprintf(out,
			"%s\n{\"uid\": %" PRId64 ", \"cause\": \"%s\", \"count\": %" PRIu64
			", \"last_time_seconds\": %" PRIu64 "}",
			i ? "," : "", refusal_uid(refusal), refusal_names[refusal->cause],
			refusal->count, refusal->last_s);
	}
	fputs("]\n}\n", out);
	return 0;
}

/* Writes the path of the last file of a trigger, below the host's directory. False: there is none.
 */
static bool trigger_path(const struct state *s, char path[static TRIGGER_PATH_SIZE])
{
	struct window_name w = { .start_s = s->last_trigger_s,
				 .grain_s = WINDOW_FINE_S,
				 .trigger = s->last_trigger_kind };
	char day[WINDOW_DAY_SIZE], name[WINDOW_NAME_SIZE];

	if (!s->last_trigger_s || !w.trigger || w.trigger >= WINDOW_TRIGGERS ||
	    !window_day_name(w.start_s, day))
		return false;
	window_file_name(&w, name);
	snprintf(path, TRIGGER_PATH_SIZE, "%s/%s", day, name);
	return true;
}

static void write_changes(const struct state *s, FILE *out)
{
	uint64_t count = __atomic_load_n(&s->unit_count, __ATOMIC_ACQUIRE);

	if (count)
		fputs("# HELP " METRIC_PREFIX "changes_total Deploys since which a service costs "
		      "more, or less.\n"
		      "# TYPE " METRIC_PREFIX "changes_total counter\n",
		      out);
	for (uint64_t i = 0; i < count && i < STATE_UNITS; i++) {
		uint64_t version = __atomic_load_n(&s->units[i].version, __ATOMIC_ACQUIRE);
		const struct state_unit unit = s->units[i];

		/* It is being replaced: the next time. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (version % 2 ||
		    version != __atomic_load_n(&s->units[i].version, __ATOMIC_RELAXED) ||
		    !(unit.worse + unit.better))
			continue;
		for (int worse = 0; worse <= 1; worse++) {
			fputs(METRIC_PREFIX "changes_total{unit=\"", out);
			for (const char *at = unit.name; *at; at++)
				fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
			fprintf(out, "\",direction=\"%s\"} %" PRIu64 "\n",
				worse ? "worse" : "better", worse ? unit.worse : unit.better);
		}
	}
}

static int write_metrics(FILE *out, void *context, struct error *e)
{
	const struct refusals *refusals = &((const struct state *)context)->refusals;
	char path[TRIGGER_PATH_SIZE];
	struct field f;

	if (fchmod(fileno(out), 0644)) /* node_exporter has a user of its own */
		return error_set(e, errno, "cannot let others read the metrics");
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (get_field(i, &f) && !f.internal)
			fprintf(out,
				"# HELP " METRIC_PREFIX "%s %c%s.\n"
				"# TYPE " METRIC_PREFIX "%s %s\n" METRIC_PREFIX "%s %" PRIu64 "\n",
				f.name, toupper(*f.help), f.help + 1, f.name,
				f.gauge ? "gauge" : "counter", f.name, value_of(context, &f));
	if (refusals->count)
		fputs("# HELP " METRIC_PREFIX
		      "refused_total What was refused to a user, by cause.\n"
		      "# TYPE " METRIC_PREFIX "refused_total counter\n",
		      out);
	for (size_t i = 0; i < refusals->count && i < REFUSALS_MAX; i++)
		fprintf(out,
			METRIC_PREFIX "refused_total{uid=\"%" PRId64 "\",cause=\"%s\"} %" PRIu64
				      "\n",
			refusal_uid(&refusals->all[i]), refusal_names[refusals->all[i].cause],
			refusals->all[i].count);
	write_changes(context, out);
	if (trigger_path(context, path))
		fprintf(out,
			"# HELP " METRIC_PREFIX "last_trigger_info The last file of a trigger.\n"
			"# TYPE " METRIC_PREFIX "last_trigger_info gauge\n" METRIC_PREFIX
			"last_trigger_info{file=\"%s\",trigger=\"%s\"} 1\n",
			path, window_triggers[((const struct state *)context)->last_trigger_kind]);
	return 0;
}

/* The same size each time, with newlines: a disk that is full has room for the next one. */
static int write_padded(FILE *out, void *context, struct error *e)
{
	write_json(out, context, e);
	for (long at = ftell(out); at >= 0 && at < STATE_SIZE; at++)
		putc('\n', out);
	return 0;
}

int state_write(const struct state *s, const char *directory, const char *host, struct error *e)
{
	char path[PATH_MAX], *text = NULL;
	struct error ignored;
	struct tree t;
	size_t size;
	FILE *out;
	int err = tree_open(&t, directory, host, false, e);

	if (!err) {
		snprintf(path, sizeof(path), "%s/" STATE_FILE, t.path);
		err = directory_write_file(t.fd, STATE_FILE, path, 0, write_padded, (void *)s, e);
		/* A full disk must not hide how many windows failed for it: overwrites the file. */
		if (err == -ENOSPC || err == -EDQUOT) {
			out = open_memstream(&text, &size);
			if (out)
				write_padded(out, (void *)s, &ignored);
			if (out && fclose(out) == 0 &&
			    directory_overwrite_file(t.fd, STATE_FILE, text, size) == 0)
				err = 0;
			free(text);
		}
	}
	tree_close(&t);
	return err;
}

int state_write_metrics(const struct state *s, const char *path, struct error *e)
{
	/* The directory may belong to the user that node_exporter runs as. */
	return file_write(path, FILE_SAFE_DIRECTORY, write_metrics, (void *)s, e);
}

static void print_time(const char *what, uint64_t seconds)
{
	struct time_text time = time_text(seconds, false, "%Y-%m-%d %H:%M:%S %z");

	printf("%-16s %s\n", what, seconds && *time.text ? time.text : "never");
}

void state_note_hour(struct state_hour *h, struct state *s, uint64_t now_s)
{
	const uint64_t minute = now_s / 60;
	const uint64_t totals[RECENT_COUNT] = {
		[RECENT_TICKS] = s->account.ticks,
		[RECENT_RING_FULL] = s->ring_full,
		[RECENT_STACKS_USER] = s->account.stacks_user,
		[RECENT_STACKS_COMPLETE] = s->account.stacks_complete,
		[RECENT_CPU_NS] = s->bpf_ns + s->interrupt_ns + s->cpu_ns,
		[RECENT_MACHINE_NS] = s->start_machine_ns + s->account.machine_ns,
	};
	uint64_t *sums = h->minutes[minute % 60].sums;

	if (h->minutes[minute % 60].minute != minute)
		memset(&h->minutes[minute % 60], 0, sizeof(*h->minutes));
	h->minutes[minute % 60].minute = minute;
	for (int i = 0; i < RECENT_COUNT; i++) {
		sums[i] += totals[i] - h->before[i];
		h->before[i] = totals[i];
		s->recent[i] = 0;
		/* A clock may have been set back: later minutes are of no hour then. */
		for (int k = 0; k < 60; k++)
			if (h->minutes[k].minute <= minute && minute - h->minutes[k].minute < 60)
				s->recent[i] += h->minutes[k].sums[i];
	}
}

#define MIB (1024.0 * 1024)

static void print_state(const struct state *s, enum state_health health, const char *path)
{
	char file[TRIGGER_PATH_SIZE];

	if (health == STATE_ENDED)
		printf("%-16s does not run\n", "profild");
	else if (health == STATE_RECORDS)
		printf("%-16s records (PID %" PRIu64 ")\n", "profild", s->recorder_pid);
	else if (s->keeper_away_s)
		printf("%-16s writes nothing (PID %" PRIu64 "): the process that keeps the files "
		       "has not answered for %" PRIu64 " s\n",
		       "profild", s->recorder_pid, s->keeper_away_s);
	else
		printf("%-16s does not answer (PID %" PRIu64 ")\n", "profild", s->recorder_pid);
	print_time("seen", s->recorder_time_s);
	printf("%-16s %s\n", "files in", path);
	print_time("since", s->start_s);
	print_time("last window", s->last_window_s);
	printf("%-16s %" PRIu64 " written, %.1f MiB; %" PRIu64 " failed\n", "windows", s->windows,
	       s->window_bytes / MIB, s->windows_failed);
	if (s->windows_waiting || s->windows_lost)
		printf("%-16s %" PRIu64 " wait in memory, %.1f MiB; %" PRIu64
		       " lost before they were written\n",
		       "", s->windows_waiting, s->waiting_bytes / MIB, s->windows_lost);
	if (s->windows_full)
		printf("%-16s %" PRIu64 " ended early: they had too many processes or stacks\n", "",
		       s->windows_full);
	printf("%-16s %" PRIu64 " removed because of limits, %.1f MiB; %" PRIu64 " damaged\n", "",
	       s->dropped, s->dropped_bytes / MIB, s->damaged);
	if (s->triggers + s->triggers_failed + s->triggers_refused)
		printf("%-16s %" PRIu64 " files written, %" PRIu64 " failed, %" PRIu64
		       " refused: too many in an hour\n",
		       "triggers", s->triggers, s->triggers_failed, s->triggers_refused);
	if (trigger_path(s, file))
		printf("%-16s the last is %s\n", "", file);
	if (s->looks) {
		printf("%-16s %" PRIu64 " worse, %" PRIu64 " better, in %" PRIu64 " looks; %" PRIu64
		       " failed\n",
		       "changes", s->worse, s->better, s->looks, s->looks_failed);
		print_time("last look", s->last_look_s);
		if (s->units_refused + s->units_replaced)
			printf("%-16s %" PRIu64
			       " changes in no unit of their own in metrics, %" PRIu64
			       " units replaced\n",
			       "", s->units_refused, s->units_replaced);
	}
	printf("%-16s %" PRIu64 "\n", "samples", s->account.counted);
	printf("%-16s %" PRIu64 " of %" PRIu64 " ticks, no room in the ring buffer; %" PRIu64
	       " of %" PRIu64 " in the last hour\n",
	       "lost", s->ring_full, s->account.ticks, s->recent[RECENT_RING_FULL],
	       s->recent[RECENT_TICKS]);
	if (s->account.mapping_records_lost)
		printf("%-16s %" PRIu64 " records of mappings, lost by the kernel\n", "",
		       s->account.mapping_records_lost);
	account_say(&s->account, false, "                 ", stdout);
	if (s->crowded)
		printf("%-16s mappings of processes with too many, in %" PRIu64 " windows\n", "",
		       s->crowded);
	if (s->unwind_room_bytes)
		printf("%-16s %.1f of %.1f MiB used, %.1f at most; %" PRIu64
		       " images made room for others\n",
		       "unwind tables", s->unwind_bytes / MIB, s->unwind_size_bytes / MIB,
		       s->unwind_room_bytes / MIB, s->unwind_evicted);
	if (s->unwind_no_room)
		printf("%-16s no room for %" PRIu64 " images, %" PRIu64
		       " of them too large: give --unwind-memory a larger size\n",
		       "", s->unwind_no_room, s->unwind_too_large);
	if (s->unwind_deferred)
		printf("%-16s %" PRIu64
		       " images are read when their code has run for longer: too many at once\n",
		       "", s->unwind_deferred);
	for (size_t i = 0; i < s->refusals.count; i++) {
		const struct refusal *refusal = &s->refusals.all[i];
		char user[32] = "other users";

		if (refusal->uid != REFUSAL_OTHERS)
			snprintf(user, sizeof(user), "uid %" PRIu32, refusal->uid);
		printf("%-16s %s: %" PRIu64 " %s; last at %s\n", i ? "" : "refused", user,
		       refusal->count, account_counters[refusal_counters[refusal->cause]].what,
		       time_text(refusal->last_s, false, "%H:%M:%S").text);
	}
	if (s->files_unread)
		printf("%-16s %" PRIu64 " files, all windows together, took too much: see -v\n",
		       "symbols unread", s->files_unread);
	printf("%-16s %" PRIu64 " (%.2f %%)\n", "in no image", s->unknown_images,
	       s->account.counted ? 100.0 * s->unknown_images / s->account.counted : 0);
	if (s->account.stacks_complete)
		printf("%-16s %.1f %% of those in user space; %.1f %% in the last hour\n",
		       "whole stacks", 100.0 * s->account.stacks_complete / s->account.stacks_user,
		       s->recent[RECENT_STACKS_USER] ? 100.0 * s->recent[RECENT_STACKS_COMPLETE] /
							       s->recent[RECENT_STACKS_USER]
						     : 0);
	if (s->wall_threads)
		printf("%-16s %" PRIu64 " in the last window\n"
		       "%-16s on CPU %.2f s, runnable %.2f s, since the start\n",
		       "threads", s->wall_threads, "", s->on_cpu_ns / 1e9, s->runnable_ns / 1e9);
	if (s->throttled_ns)
		printf("%-16s %.2f s, by quotas of control groups\n", "throttled",
		       s->throttled_ns / 1e9);
	printf("%-16s %.2f s in ticks, %.2f s in interrupts, %.2f s in profild", "CPU time",
	       s->bpf_ns / 1e9, s->interrupt_ns / 1e9, s->cpu_ns / 1e9);
	if (s->account.machine_ns)
		printf(": %.2f %% of the machine's",
		       100.0 * (s->bpf_ns + s->interrupt_ns + s->cpu_ns) /
			       (s->start_machine_ns + s->account.machine_ns));
	if (s->recent[RECENT_MACHINE_NS])
		printf("; %.2f %% in the last hour",
		       100.0 * s->recent[RECENT_CPU_NS] / s->recent[RECENT_MACHINE_NS]);
	printf("\n%-16s %.1f MiB, %.1f MiB at most\n", "memory", s->resident_bytes / MIB,
	       s->resident_most_bytes / MIB);
	if (s->users_room_bytes)
		printf("%-16s %.1f MiB for what is kept of users' programs, %.1f at most\n", "",
		       s->users_bytes / MIB, s->users_room_bytes / MIB);
	if (s->pushed + s->refused + s->retried + s->push_dropped + s->push_waiting)
		printf("%-16s %" PRIu64 " sent, %.1f MiB; %" PRIu64 " refused, %" PRIu64
		       " given up, %" PRIu64 " wait; %" PRIu64 " attempts failed\n",
		       "push", s->pushed, s->pushed_bytes / MIB, s->refused, s->push_dropped,
		       s->push_waiting, s->retried);
}

/* --- In /run --- */

#define LIVE_DIRECTORY "/run/profil"
/* Bound: pace. */
#define LIVE_NS (5 * NS_PER_S)

/* So long after it was written, one in /run, or in the archive, is not current. Bound: pace. */
#define LIVE_CURRENT_S 30
/* Bound: pace. */
#define ARCHIVE_CURRENT_S 180

/* Archives have names in /run, without a look at where their paths lead. */
static void name_live(const char *directory, const char *host, char name[static 32])
{
	const char *parts[] = { "", "/", directory, "/", host };
	char here[PATH_MAX];
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a: the same in all processes */

	if (*directory != '/' && getcwd(here, sizeof(here)))
		parts[0] = here;
	else
		parts[1] = "";
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		for (const char *at = parts[i]; *at; at++)
			/* As in "/var/lib/profil/" */
			if (*at != '/' || (at[1] && at[1] != '/'))
				hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	snprintf(name, 32, "%016" PRIx64 ".json", hash);
}

void state_live_begin(struct state_live *l, const char *directory, const char *host)
{
	name_live(directory, host, l->name);
	l->fd = directory_make(LIVE_DIRECTORY);
}

void state_live_write(struct state_live *l, const struct state *s)
{
	struct error ignored;

	if (l->fd < 0 || now_ns() < l->next_ns)
		return;
	l->next_ns = now_ns() + LIVE_NS;
	directory_write_file(l->fd, l->name, l->name, 0, write_json, (void *)s, &ignored);
}

void state_live_end(struct state_live *l)
{
	if (l->fd < 0)
		return;
	unlinkat(l->fd, l->name, 0);
	close(l->fd);
	l->fd = -1;
}

/* Reads the lines that write_json() writes; others may own the directory. Closes fd. */
static int read_state(int fd, struct state *s)
{
	FILE *in = file_stream(fd);
	uint64_t number, last_s;
	char line[256], name[64];
	struct field f;
	int64_t uid;
	int known = 0;

	if (!in)
		return -ENOMEM;
	for (size_t lines = 0; lines < 2 * STATE_SIZE && fgets(line, sizeof(line), in); lines++) {
		if (sscanf(line,
			   "{\"uid\": %" SCNd64 ", \"cause\": \"%63[^\"]\", \"count\": %" SCNu64
			   ", \"last_time_seconds\": %" SCNu64,
			   &uid, name, &number, &last_s) == 4) {
			for (enum refusal_cause cause = 0; cause < REFUSAL_CAUSES; cause++)
				if (strcmp(name, refusal_names[cause]) == 0)
					refusals_add(&s->refusals,
						     uid < 0 ? REFUSAL_OTHERS : (uint32_t)uid,
						     cause, number, last_s);
			continue;
		}
		if (sscanf(line, "\"%63[^\"]\": %" SCNu64, name, &number) != 2)
			continue;
		for (size_t i = 0; i < FIELD_COUNT; i++)
			if (get_field(i, &f) && strcmp(name, f.name) == 0) {
				memcpy((char *)s + f.offset, &number, sizeof(number));
				known++;
			}
	}
	fclose(in);
	return known ? 0 : -EINVAL;
}

void state_continue_hour(struct state_hour *h, const char *directory, const char *host,
			 uint64_t now_s)
{
	uint64_t first, last;
	struct state s = { 0 };
	struct error ignored;
	struct tree t;
	int fd = -ENOENT;

	if (tree_open(&t, directory, host, false, &ignored) == 0)
		fd = directory_open_file(t.fd, STATE_FILE);
	tree_close(&t);
	if (fd < 0 || read_state(fd, &s) || s.recorder_time_s > now_s)
		return;
	last = s.recorder_time_s / 60;
	first = s.start_s > s.recorder_time_s ? last : s.start_s / 60;
	if (last - first >= 60)
		first = last - 59;
	for (uint64_t minute = first; minute <= last; minute++) {
		h->minutes[minute % 60].minute = minute;
		for (int i = 0; i < RECENT_COUNT; i++)
			h->minutes[minute % 60].sums[i] = s.recent[i] / (last - first + 1);
	}
}

int state_print(const char *directory, bool json, enum state_health *health, struct error *e)
{
	uint64_t now_s = clock_ns(CLOCK_REALTIME) / NS_PER_S, current_s = LIVE_CURRENT_S;
	char host[HOST_NAME_MAX + 1], path[PATH_MAX], name[32], comm[64];
	struct state s = { 0 };
	struct tree t;
	int err, fd, live;

	if (gethostname(host, sizeof(host)))
		return error_set(e, errno, "cannot get the name of this machine");
	*health = STATE_RECORDS;
	live = directory_open(LIVE_DIRECTORY);
	name_live(directory, host, name);
	fd = live < 0 ? -1 : directory_open_file(live, name);
	file_close(live);
	/*
	 * While it records, nothing on the archive's disk is asked for. It may have been killed,
	 * and its number be another's.
	 */
	if (fd >= 0 && read_state(fd, &s) == 0 &&
	    file_read_line(proc_path(s.recorder_pid, 0, "comm").text, comm, sizeof(comm)) == 0 &&
	    strncmp(comm, "profild", strlen("profild")) == 0) {
		snprintf(path, sizeof(path), "%s/%s", directory, host);
	} else {
		s = (struct state){ 0 };
		current_s = ARCHIVE_CURRENT_S;
		err = tree_open(&t, directory, host, false, e);
		if (!err) {
			snprintf(path, sizeof(path), "%s/" STATE_FILE, t.path);
			fd = directory_open_file(t.fd, STATE_FILE);
			err = fd < 0 ? error_set(e, -fd, "cannot read %s", path) : 0;
		}
		tree_close(&t);
		if (err) {
			error_hint(e, err == -ENOENT
					      ? "profild --continuous has not recorded there; "
						"--directory names another directory"
					      : "run it as the user that records");
			return err;
		}
		if (read_state(fd, &s))
			return error_set(e, 0, "%s is not what profild --continuous writes", path);
		*strrchr(path, '/') = '\0';
		if (!archive_has_writer(directory, host))
			*health = STATE_ENDED;
	}
	if (*health == STATE_RECORDS && (s.recorder_time_s + current_s < now_s || s.keeper_away_s))
		*health = STATE_STUCK;
	if (json)
		return write_json(stdout, &s, e);
	print_state(&s, *health, path);
	return 0;
}
