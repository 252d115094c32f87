// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/continuous.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/coarsen.h"
#include "archive/user_share.h"
#include "cli/capabilities.h"
#include "daemon/keeper.h"
#include "daemon/log.h"
#include "daemon/look.h"
#include "daemon/state.h"
#include "record/from_capture.h"
#include "record/wait_names.h"
#include "script/language.h"
#include "symbol/file_cache.h"
#include "symbol/parser.h"
#include "symbol/symbol.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/directory.h"
#include "util/file.h"
#include "util/number.h"
#include "util/proc.h"
#include "util/signals.h"

/* Bound: pace. */
#define WAITS_PERCENT 2 /* of the CPUs, for stacks of waits: as record takes */

/* Bound: pace. */
#define LOOK_NS (100 * NS_PER_MS) /* between two calls of capture_handle() */
#define HOUR_NS (3600 * NS_PER_S)

struct recorder {
	const struct continuous_options *o;
	char host[HOST_NAME_MAX + 1];
	int signals;
	struct state *state;
	struct state_hour hour;
	struct state_live live;
	struct keeper keeper;
	struct watcher watcher;
	struct look look;
	struct archive_trigger trigger; /* its seconds are being recorded; kind 0: there is none */
	uint64_t trigger_end_ns;	/* when they end */
	uint64_t begin_ns;		/* of the recording, as now_ns() */
	/* Of those that an hour may have: when each is an hour ago, and its text; NULL: unknown. */
	uint64_t trigger_free_ns[TRIGGERS_HOUR_MAX];
	const char *trigger_texts[TRIGGERS_HOUR_MAX];
	/* Bound: state. */
	bool refuses; /* too many came: it was logged */
	struct capture *capture;
	struct origin_names names;
	struct parser *rows, *symbols; /* each reads files: the one for stacks does not wait */
	size_t unread;		       /* files of this window, because of limits */
	uint64_t next_look_ns;
	uint64_t ping_interval_ns; /* of systemd's watchdog; 0: it has none */
	uint64_t next_ping_ns;
	bool cut, end; /* asked for by signals: to write a window now, and to end */
};

/*
 * Returns the number of a place among those that an hour may have; INDEX_NONE: there is none for
 * this trigger. The last ones are kept for triggers that have none, so that one which comes again
 * and again does not shut out the others; the signal, which a person sends, is one of them.
 */
static size_t find_trigger_place(const struct recorder *r, const char *text)
{
	const struct trigger_options *o = &r->o->triggers;
	size_t left = 0, without = o->count + 1, found = INDEX_NONE;
	bool has_one = false;

	for (unsigned int i = 0; i < o->per_hour; i++) {
		bool other = true;

		if (r->trigger_free_ns[i] <= now_ns()) {
			left++;
			found = i;
			continue;
		}
		has_one |= r->trigger_texts[i] == text;
		for (unsigned int k = 0; k < i && other; k++)
			other = r->trigger_texts[k] != r->trigger_texts[i] ||
				r->trigger_free_ns[k] <= now_ns();
		without -= other && r->trigger_texts[i];
	}
	return has_one && left <= without ? INDEX_NONE : found;
}

/*
 * Has the seconds around a time kept, unless too many were in the last hour. The time is now, or
 * was while the last window was written; before the recording began, there is nothing to keep.
 */
static void take_trigger(struct recorder *r, enum window_trigger kind, const char *text,
			 uint64_t seen_ns)
{
	const struct trigger_options *o = &r->o->triggers;
	uint64_t now = now_ns();
	uint64_t since_ns = MAX(seen_ns, r->begin_ns);
	uint64_t late_ns = now > since_ns ? now - since_ns : 0; /* the watcher is not trusted */
	uint64_t time_ns = time_of_day_ns(now - late_ns);
	size_t place;

	if (!r->o->limits.times_s) {
		log_note("trigger %s: --retain-times 0 keeps no times of ticks", text);
		return;
	}
	if (r->trigger.kind) {
		log_note("trigger %s: in the file of trigger %s, before it", text, r->trigger.what);
		return;
	}
	place = find_trigger_place(r, text);
	if (place == INDEX_NONE) {
		r->state->triggers_refused++;
		/* One that comes again and again is logged once, but a person gets an answer. */
		if (!r->refuses || kind == WINDOW_TRIGGER_SIGNAL)
			log_note("trigger %s: not kept: none of %u in an hour is left for it", text,
				 o->per_hour);
		r->refuses = true;
		return;
	}
	r->trigger_free_ns[place] = now + HOUR_NS;
	r->trigger_texts[place] = text;
	r->refuses = false;
	r->trigger = (struct archive_trigger){
		.kind = kind,
		.what = text,
		.time_ns = time_ns,
		.since_ns = time_ns > o->before_ns ? time_ns - o->before_ns : 0,
		.until_ns = time_ns + o->after_ns,
	};
	r->trigger_end_ns = now + (late_ns < o->after_ns ? o->after_ns - late_ns : 0);
	log_note("trigger %s: keeps %" PRIu64 " seconds before and %" PRIu64 " after it", text,
		 o->before_ns / NS_PER_S, o->after_ns / NS_PER_S);
}

static void take_signals(struct recorder *r)
{
	struct signalfd_siginfo info;
	int status;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			look_wait(&r->look, r->state);
			if (r->watcher.pid > 0 &&
			    waitpid(r->watcher.pid, &status, WNOHANG) == r->watcher.pid) {
				log_note("the process that looks for triggers has ended (status "
					 "%#x): it starts again with the next window",
					 status);
				close(r->watcher.fd);
				r->watcher.pid = 0;
			}
			keeper_wait(&r->keeper);
			break;
		case SIGUSR1:
			r->cut = true;
			break;
		case SIGUSR2:
			take_trigger(r, WINDOW_TRIGGER_SIGNAL, "signal", now_ns());
			break;
		case SIGHUP:
			/* The keeper is a copy of this process: a new one reads all files again. */
			log_note("SIGHUP: writes the window, and starts the keeper again");
			keeper_restart(&r->keeper);
			r->cut = true;
			break;
		default:
			r->end = true;
		}
	}
}

/* Sends one assignment to systemd, if it waits for any: sd_notify(3). Errors do not matter here. */
static void notify(const char *assignment)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (!length || length >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@') /* an abstract address */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, assignment, strlen(assignment), MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&address,
		   offsetof(struct sockaddr_un, sun_path) + length) < 0)
		log_detail("cannot send %s to systemd: %s", assignment, strerror(errno));
	close(fd);
}

/* What is to be done again and again, besides recording. Waits for nothing. */
static void look_after(struct recorder *r)
{
	/* Only from where recording goes on: a loop that hangs must not ping. */
	if (r->ping_interval_ns && now_ns() >= r->next_ping_ns) {
		r->next_ping_ns = now_ns() + r->ping_interval_ns;
		notify("WATCHDOG=1");
	}
	keeper_step(&r->keeper);
	r->state->recorder_time_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	state_live_write(&r->live, r->state);
}

/* Called again and again while a window is made, which may take seconds: reads records. */
static void keep_up(void *context)
{
	struct recorder *r = context;
	struct error e;

	if (now_ns() < r->next_look_ns)
		return;
	r->next_look_ns = now_ns() + LOOK_NS;
	look_after(r);
	if (capture_handle(r->capture, &e))
		log_problem(&e);
}

static bool keep_up_and_go_on(void *context)
{
	keep_up(context);
	return false;
}

/* In each window: there may be very many. */
#define UNREAD_LOGGED 5

static void note_unread(const char *path, const char *why, void *context)
{
	struct recorder *r = context;

	r->state->files_unread++;
	if (r->unread++ < UNREAD_LOGGED)
		log_detail("%s: %s", path, why);
}

static void add_memory(pid_t pid, uint64_t *resident, uint64_t *most)
{
	struct proc_status status;

	proc_read_status(AT_FDCWD, proc_path(pid, 0, "status").text, &status);
	*resident += status.resident_kib * 1024;
	*most += status.resident_most_kib * 1024;
}

static void account_window(struct recorder *r, struct profile *p)
{
	struct state *s = r->state;
	const struct profile_wall wall = profile_wall_sum(p);
	const struct refusals *refusals = capture_refusals(r->capture);
	struct capture_tables tables;
	struct capture_totals t;
	uint64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	const pid_t children[] = { r->keeper.pid, r->watcher.pid, r->look.pid };
	pid_t readers[CHILDREN_MAX]; /* of files: the opener and the parsers */
	struct rusage ended;
	clockid_t child;

	s->resident_bytes = s->resident_most_bytes = 0;
	add_memory(getpid(), &s->resident_bytes, &s->resident_most_bytes);
	/* The CPU time of all children there have been belongs to profild, too. */
	for (size_t i = 0; i < sizeof(children) / sizeof(*children); i++) {
		if (children[i] <= 0)
			continue;
		if (clock_getcpuclockid(children[i], &child) == 0)
			own_ns += clock_ns(child);
		add_memory(children[i], &s->resident_bytes, &s->resident_most_bytes);
	}
	own_ns += children_cpu_ns();
	for (size_t i = 0, count = children_list(readers); i < count; i++)
		add_memory(readers[i], &s->resident_bytes, &s->resident_most_bytes);
	if (r->watcher.pid > 0)
		own_ns += __atomic_load_n(&s->commands_ns, __ATOMIC_RELAXED);
	if (getrusage(RUSAGE_CHILDREN, &ended) == 0)
		own_ns += rusage_ns(&ended);
	/* That of a child is in microseconds when it has ended: a little less. */
	if (own_ns > s->cpu_ns) {
		p->totals.own_ns = own_ns - s->cpu_ns;
		s->cpu_ns = own_ns;
	} else {
		p->totals.own_ns = 0;
	}
	capture_totals(r->capture, &t);
	capture_tables(r->capture, &tables);
	account_merge(&s->account, &t.account);
	s->ring_full += t.ring_full;
	if (t.crowded) {
		s->crowded++;
		log_detail("process %d has more mappings of code than are kept: addresses in the "
			   "others have no name until they are read again",
			   (int)t.crowded);
	}
	for (size_t i = 0; i < refusals->count; i++) {
		const struct refusal *refusal = &refusals->all[i];

		log_detail("user %d: %" PRIu64 " %s", (int)refusal->uid, refusal->count,
			   account_counters[refusal_counters[refusal->cause]].what);
		refusals_add(&s->refusals, refusal->uid, refusal->cause, refusal->count,
			     clock_ns(CLOCK_REALTIME) / NS_PER_S);
	}
	s->unknown_images += profile_count_unmapped(p);
	s->wall_threads = wall.threads;
	s->on_cpu_ns += wall.on_cpu_ns;
	s->runnable_ns += wall.runnable_ns;
	s->blocked_ns += wall.blocked_ns;
	s->unknown_ns += wall.unknown_ns;
	for (size_t i = 0; i < p->totals.throttled_count; i++)
		s->throttled_ns += p->totals.throttled[i].throttled_ns;
	s->unwind_bytes = tables.bytes;
	s->unwind_size_bytes = tables.size_bytes;
	s->unwind_room_bytes = tables.room_bytes;
	s->unwind_no_room = tables.no_room;
	s->unwind_too_large = tables.too_large;
	s->unwind_deferred = tables.deferred;
	s->unwind_evicted = tables.evicted;
	s->users_bytes = tables.users_bytes + parser_users_bytes(r->symbols);
	s->users_room_bytes = tables.users_room_bytes + FILE_CACHE_GROUP_MAX;
	s->bpf_ns += t.ticks * t.bpf_ns_per_tick;
	s->interrupt_ns += t.interrupts * t.interrupt_ns;
	state_note_hour(&r->hour, s, clock_ns(CLOCK_REALTIME) / NS_PER_S);
}

static int open_for(uid_t user, int root, const char *path, struct stat *status, void *context)
{
	struct recorder *r = context;

	return capture_open(r->capture, user, root, path, status);
}

/* Ends the window, and writes it. An error is one of the recording itself. */
static int finish_window(struct recorder *r, struct error *e)
{
	const struct symbol_options names = {
		.parser = r->symbols,
		.window_ns = r->o->window_ns,
		.unread = note_unread,
		.stop = keep_up_and_go_on,
		.open = open_for,
		.context = r,
	};
	struct profile *p = NULL;
	struct user_share share;
	struct error problem;
	int err = capture_cut(r->capture, e), fd;

	err = err ?: profile_from_window(r->capture, &r->names, &p, e);
	if (err)
		return err;
	account_window(r, p);
	r->unread = 0;
	err = symbol_resolve(p, &names, e);
	if (!err && wait_names_apply(p))
		err = error_no_memory(e);
	if (r->unread > UNREAD_LOGGED)
		log_detail("%zu more files were not read", r->unread - UNREAD_LOGGED);
	share = user_share_of(&r->o->limits, WINDOW_FINE_S, p->duration_ns);
	if (!r->o->limits.times_s && coarsen_drop_times(p))
		err = error_no_memory(e);
	if (!err && (user_share_limit(&p, &share, &problem) ||
		     archive_encode(p, keep_up, r, &fd, &problem))) {
		r->state->windows_lost++;
		log_problem(&problem);
	} else if (!err) {
		/* The keeper writes it: a disk that hangs does not stop the recording. */
		keeper_write_window(&r->keeper, fd, p->time_ns, p->totals.counted);
	}
	profile_free(p);
	malloc_trim(0); /* as continuous_run() has set it */
	if (r->watcher.pid <= 0 &&
	    watcher_start(&r->watcher, &r->o->triggers, &r->state->commands_ns, &problem))
		log_problem(&problem);
	/* Windows have all of a trigger's seconds, or the recording ends. */
	if (r->trigger.kind && (r->end || now_ns() >= r->trigger_end_ns)) {
		keeper_write_trigger(&r->keeper, &r->trigger);
		r->trigger.kind = WINDOW_NO_TRIGGER;
	}
	if (!r->end)
		look_if_due(&r->look, r->o, r->host, r->state);
	return err;
}

/* They end at whole minutes of the wall clock, if they are a minute long. */
static uint64_t next_end_ns(const struct recorder *r)
{
	uint64_t length = r->o->window_ns;

	return now_ns() + length - clock_ns(CLOCK_REALTIME) % length;
}

static int record_windows(struct recorder *r, struct error *e)
{
	uint64_t end_ns = next_end_ns(r);
	/* Not capture_fd(): where many programs begin, it would wake this again and again. */
	struct pollfd fds[] = { { .fd = r->signals, .events = POLLIN },
				{ .events = POLLIN },
				{ .events = POLLIN } };
	struct watcher_event event;
	int err = 0;

	while (!err && !r->end) {
		bool ends;
		uint64_t now = now_ns(), left = end_ns > now ? end_ns - now : 0;

		look_after(r);
		left = MIN(left, LOOK_NS);
		fds[1].fd = r->watcher.pid > 0 ? r->watcher.fd : -1;
		fds[2].fd = r->keeper.sent ? r->keeper.socket : -1;
		if (poll(fds, 3, left / NS_PER_MS + (left > 0)) < 0 && errno != EINTR)
			return error_set(e, errno, "cannot wait for signals");
		while (watcher_read(&r->watcher, &event))
			/* The watcher has no privileges, and no power over this process. */
			if (event.number < r->o->triggers.count)
				take_trigger(r, r->o->triggers.list[event.number].kind,
					     r->o->triggers.list[event.number].text, event.seen_ns);
		take_signals(r);
		if (r->trigger.kind && now_ns() >= r->trigger_end_ns)
			r->cut = true;
		err = capture_handle(r->capture, e);
		if (err)
			return err;
		ends = r->end || r->cut || now_ns() >= end_ns;
		if (!ends && capture_is_full(r->capture)) {
			r->state->windows_full++;
			ends = true;
		}
		if (!ends && capture_clock_moved(r->capture)) {
			log_note("the clock was set, or the machine was suspended: another window "
				 "begins");
			ends = true;
		}
		if (!ends)
			continue;
		r->cut = false;
		err = finish_window(r, e);
		end_ns = next_end_ns(r);
	}
	return err;
}

/* Checks what only the keeper does, and would fail at in each window: before anything is begun. */
static int check_keeping(const struct recorder *r, struct error *e)
{
	struct push_options options = r->o->push;
	const struct {
		const char *option;
		bool given;
	} how_to_push[] = {
		{ "--push-protocol", options.protocol },
		{ "--push-token-file", options.token_file },
		{ "--push-tenant", options.tenant },
		{ "--push-ca", options.ca },
		{ "--push-certificate", options.certificate },
		{ "--push-key", options.key },
		{ "--push-queue-bytes", options.queue_bytes },
	};
	struct push *p = NULL;
	int err = r->o->metrics ? file_check_writable(r->o->metrics, e) : 0, fd;

	if (!err && r->o->triggers.count && !r->o->limits.times_s)
		return error_set_kind(e, ERROR_USAGE, 0,
				      "--trigger keeps the times of ticks, --retain-times 0 not");
	if (!err && r->o->dcpi)
		err = directory_check_writable(r->o->dcpi, e);
	if (err)
		return err;
	/* Whoever says how to send wants it sent. */
	for (size_t i = 0; i < sizeof(how_to_push) / sizeof(*how_to_push) && !options.url; i++)
		if (how_to_push[i].given)
			return error_set_kind(e, ERROR_USAGE, 0, "%s needs --push",
					      how_to_push[i].option);
	if (!options.url)
		return 0;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EAFNOSUPPORT) {
		error_set_kind(e, ERROR_NOT_PERMITTED, errno, "cannot send windows");
		error_hint(e, "the unit has no network: see \"Sending\" in profild(8) for what "
			      "gives it some");
		return -EAFNOSUPPORT;
	}
	file_close(fd);
	options.directory = r->o->directory;
	options.host = r->host;
	err = push_new(&options, &p, e);
	push_free(p);
	return err;
}

static int start_recorder(struct recorder *r, struct error *e)
{
	struct capture_options options = {
		.target = CAPTURE_SYSTEM,
		.event = r->o->event,
		.frequency = r->o->frequency,
		.inherit = true,
		.stacks = CAPTURE_STACKS_AUTO,
		.trim_code = language_trim,
		.read_rows = parser_read_rows,
		.unwind_mib = r->o->unwind_mib,
		.windows = true,
		.always_on = true,
		.wall = true,
		.waits = r->o->chains,
		.every_wait = r->o->chains,
		.wishes = r->o->wishes.knows_programs ? &r->o->wishes : NULL,
		.waits_percent = WAITS_PERCENT,
	};
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, 0 };
	const char *ping_pid = getenv("WATCHDOG_PID"), *ping_usec = getenv("WATCHDOG_USEC");
	const uint64_t hour_s = HOUR_NS / NS_PER_S;
	uint64_t now_s, times_s[TRIGGERS_HOUR_MAX], number, start_ns = now_ns();
	struct error problem;
	int err;

	/*
	 * What a window, or the rows of a large program, took for a moment goes back to the
	 * kernel: malloc() would adapt to it, and keep it.
	 */
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 128 * 1024);
	if (gethostname(r->host, sizeof(r->host)))
		return error_set(e, errno, "cannot get the name of this machine");
	r->state = state_new(e);
	if (!r->state)
		return -ENOMEM;
	r->state->recorder_pid = getpid();
	r->state->start_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	state_continue_hour(&r->hour, r->o->directory, r->host, r->state->start_s);
	r->signals = signals_open(signals, e);
	if (r->signals < 0)
		return r->signals;
	err = check_keeping(r, e);
	r->keeper.o = r->o;
	r->keeper.host = r->host;
	r->keeper.state = r->state;
	err = err ?: descriptor_limit_raise(e);
	err = err ?: keeper_start(&r->keeper, e);
	/* Triggers of the last hour count, whoever recorded them: profild may start again. */
	now_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	err = err
		      ?: archive_find_triggers(r->o->directory, r->host,
					       now_s > hour_s ? now_s - hour_s : 0, now_s, times_s,
					       r->o->triggers.per_hour, e);
	for (unsigned int i = 0; i < r->o->triggers.per_hour && !err; i++)
		if (times_s[i])
			r->trigger_free_ns[i] =
				now_ns() + HOUR_NS - (now_s - times_s[i]) * NS_PER_S;
	err = err ?: watcher_start(&r->watcher, &r->o->triggers, &r->state->commands_ns, e);
	if (!err) {
		look_begin(&r->look, r->o, r->host);
		state_live_begin(&r->live, r->o->directory, r->host);
	}
	err = err ?: parser_new(&r->rows, e) ?: parser_new(&r->symbols, e);
	options.parser = r->rows;
	err = err ?: capabilities_keep(CAPABILITIES_RECORDING, e);
	err = err ?: capture_start(&options, &r->capture, e);
	if (err && e->kind == ERROR_KERNEL_LACKS) {
		/* If that was for the account of wall time, the rest is recorded without it. */
		options.wall = options.waits = options.every_wait = false;
		problem = *e;
		err = capture_start(&options, &r->capture, e);
		if (!err)
			log_problem(&problem);
	}
	if (err)
		return err;
	if (capture_no_waits(r->capture))
		log_note("--chains: waits are not recorded, which needs Linux 5.18: %s",
			 capture_no_waits(r->capture));
	r->begin_ns = now_ns();
	r->state->start_machine_ns = (r->begin_ns - start_ns) * sysconf(_SC_NPROCESSORS_ONLN);
	log_note("records %s into %s/%s", capture_event_name(r->capture), r->o->directory, r->host);
	/* Twice as often as the watchdog of the unit expects it. */
	if (ping_usec && number_parse(ping_usec, 1, UINT64_MAX / 1000, &number) == 0)
		r->ping_interval_ns = number * 1000 / 2;
	if (ping_pid &&
	    (number_parse(ping_pid, 1, INT32_MAX, &number) || number != (uint64_t)getpid()))
		r->ping_interval_ns = 0;
	notify("READY=1");
	return 0;
}

int continuous_run(const struct continuous_options *o, struct error *e)
{
	struct recorder r = { .o = o, .signals = -1, .live = { .fd = -1 } };
	int err = start_recorder(&r, e) ?: record_windows(&r, e);

	capture_free(r.capture);
	origin_names_free(&r.names);
	parser_free(r.rows);
	parser_free(r.symbols);
	children_end();
	watcher_stop(&r.watcher);
	look_stop(&r.look);
	keeper_stop(&r.keeper);
	state_live_end(&r.live);
	file_close(r.signals);
	return err;
}
