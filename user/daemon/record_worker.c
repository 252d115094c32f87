// SPDX-License-Identifier: GPL-2.0-only
/*
 * A recording on behalf of a user. The process that makes it has this user's credentials, and
 * CAP_BPF and CAP_PERFMON, so that the kernel itself decides what it may see: each file of the
 * targets is opened with no more rights than the user has, and whether a process is the user's is
 * asked of the kernel. Other users' processes have no way to it but the socket, and its own user
 * can only end it: a process with more capabilities cannot be traced.
 *
 * What it reads of the user's files (call frame information, the layout of interpreters) is
 * untrusted, as in any recording. Names, which take far more code to find, are left to the client.
 */
#include "daemon/record_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/perf_event.h"
#include "cli/capabilities.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/peer.h"
#include "format/pprof/pprof.h"
#include "record/from_capture.h"
#include "record/service.h"
#include "script/context.h"
#include "script/language.h"
#include "symbol/elf_file.h"
#include "symbol/parser.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/proc.h"

/* Bound: pace. */
#define LOOK_MS 100 /* between two calls of capture_handle() */
/*
 * Bound: users: time for checking a request; then: the recording is refused; again: at the next
 * request; share: the recording's own; seen: in the client's error, and the log.
 */
#define CHECK_NS (10 * NS_PER_S) /* how long checks of the request may take */
/*
 * Bound: users: time after --max-duration in which a recording must end; then: it is ended; again:
 * at the next recording; share: the recording's own; seen: in the client's error.
 */
#define GRACE_NS       (60 * NS_PER_S) /* after the longest recording */
#define LAST_COMMAND_S 10	       /* how long the client may take to read its result */
#define KERNEL_START   0x8000000000000000ULL
/* Bound: format. */
#define NS_PARENTS_MAX 64 /* of user namespaces: the kernel allows 32 */

struct worker {
	int socket, server;
	const struct record_limits *limits;
	struct peer peer;
	timer_t end;
	struct record_request request;
	int pidfds[RECORD_TARGETS_MAX];
	pid_t pids[RECORD_TARGETS_MAX];
	size_t count;
	struct parser *rows;
	struct context_wishes wishes;
	struct capture *capture;
};

static int send_all(int socket, const void *bytes, size_t size)
{
	ssize_t n;

	do
		n = send(socket, bytes, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size ? 0 : -EPIPE;
}

static int send_reply(const struct worker *w, struct record_reply *reply)
{
	reply->version = w->request.version;
	return send_all(w->socket, reply, sizeof(*reply));
}

int record_greet(int socket, struct error *e)
{
	const struct record_ready ready = {
		.version = RECORD_READY_VERSION,
		.type = RECORD_READY,
		.oldest = RECORD_OLDEST,
		.newest = RECORD_NEWEST,
	};
	int on = 1;

	/* Messages sent from now on have credentials. The client sends none before this reply. */
	if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return error_set(e, errno, "cannot ask for credentials");
	listener_take_descriptors(socket, true);
	if (send(socket, &ready, sizeof(ready), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return error_set(e, errno, "the client has gone");
	return 0;
}

void record_refuse(int socket, int code, const struct error *e)
{
	struct record_reply reply = {
		.version = RECORD_READY_VERSION,
		.type = RECORD_REFUSED,
		.kind = e->kind,
		.error = code,
	};

	snprintf(reply.message, sizeof(reply.message), "%.480s", e->what);
	send(socket, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* --- The request --- */

static int receive_request(struct worker *w, struct error *e)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(w->pidfds))];
	} control;
	struct record_label labels[CONTEXT_WISHES_MAX];
	struct iovec parts[] = { { &w->request, sizeof(w->request) }, { labels, sizeof(labels) } };
	struct msghdr message = {
		.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	const struct record_request *r = &w->request;
	struct ucred who = { 0 };
	ssize_t size;
	int err = 0;

	size = recvmsg(w->socket, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	if (size <= 0)
		return error_set(e, size ? errno : ECONNRESET, "cannot receive the request");
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(who))) {
			memcpy(&who, CMSG_DATA(c), sizeof(who));
		} else if (c->cmsg_type == SCM_RIGHTS) {
			w->count = count <= RECORD_TARGETS_MAX ? count : 0;
			memcpy(w->pidfds, CMSG_DATA(c), w->count * sizeof(int));
		}
	}
	if (message.msg_flags & MSG_CTRUNC)
		return error_set(e, 0, "more than %d processes, or other data, came with it",
				 RECORD_TARGETS_MAX);
	if (who.pid != w->peer.pid)
		return error_set(e, 0, "process %d cannot ask on the connection of process %d",
				 who.pid, w->peer.pid);
	if (size < (ssize_t)sizeof(*r))
		return error_set(e, 0, "%zd bytes are no request", size);
	if (r->version < RECORD_OLDEST || r->version > RECORD_NEWEST)
		return error_set(e, 0, "unsupported protocol version %u: profild speaks %d to %d",
				 r->version, RECORD_OLDEST, RECORD_NEWEST);
	if (r->label_count > (r->version < 4 ? 0 : CONTEXT_WISHES_MAX) ||
	    size != (ssize_t)(sizeof(*r) + r->label_count * sizeof(*labels)))
		return error_set(e, 0, "%zd bytes are no request with %u labels", size,
				 r->label_count);
	if (r->flags & ~(uint32_t)RECORD_FLAGS || r->event >= CAPTURE_EVENTS ||
	    r->stacks > CAPTURE_STACKS_SCRIPTS || r->waits_percent > 100 ||
	    (r->flags & RECORD_WAITS && r->flags & RECORD_WINDOWS) ||
	    (r->flags & RECORD_WAITS && !(r->flags & RECORD_WALL)) ||
	    (r->flags & RECORD_WAITS && !r->stacks) ||
	    (r->flags & RECORD_EVERY_WAIT && (r->version < 2 || !(r->flags & RECORD_WAITS))) ||
	    (r->flags & (RECORD_CONTEXT | RECORD_LITERAL) && r->version < 3))
		return error_set(e, 0, "a field of the request is invalid");
	for (uint32_t i = 0; i < r->label_count && !err; i++)
		err = memchr(labels[i].text, '\0', sizeof(labels[i].text))
			      ? context_parse(labels[i].text, &w->wishes, e)
			      : error_set(e, 0, "a label of the request has no end");
	if (err)
		return err;
	if (!w->count || w->count != r->target_count)
		return error_set(e, 0, "%zu descriptors came with a request for %u processes",
				 w->count, r->target_count);
	/* At each event of any process a program runs: nobody can limit their rate. */
	if (!capture_is_clock(r->event))
		return error_set(e, 0, "profild records ticks of a clock only, not %s",
				 capture_event_names[r->event]);
	if (capture_has_rate(r->event) && !r->frequency)
		return error_set(e, 0, "the request has no frequency");
	if (r->frequency <= w->limits->frequency)
		return 0;
	error_set(e, 0,
		  "%u Hz are more than the %u that users without privileges may have (profild "
		  "--max-frequency)",
		  r->frequency, w->limits->frequency);
	return -EDQUOT;
}

/* --- Whose a process is --- */

static int open_of(pid_t pid, const char *file)
{
	return open(proc_path(pid, 0, file).text, O_RDONLY | O_CLOEXEC);
}

/* Whether a user namespace is another, or in it. */
static bool is_in_namespace(int space, const struct stat *other)
{
	struct stat status;
	bool found = false;
	int at = space;

	for (int i = 0; i < NS_PARENTS_MAX && at >= 0 && !found; i++) {
		int parent;

		found = fstat(at, &status) == 0 && status.st_dev == other->st_dev &&
			status.st_ino == other->st_ino;
		parent = found ? -1 : ioctl(at, NS_GET_PARENT);
		if (at != space)
			close(at);
		at = parent;
	}
	return found;
}

/*
 * Checks that the user may read the process. The kernel decides: opening these files takes what
 * PTRACE_MODE_READ takes, and no capability is effective now. The client must not be in a user
 * namespace in which the process is not: there it could not read it either.
 */
static int check_access(const struct worker *w, const struct stat *clients, size_t number,
			struct error *e)
{
	pid_t pid = w->pids[number];
	int maps = open_of(pid, "maps"), space = open_of(pid, "ns/user");
	bool is_ours = maps >= 0 && space >= 0 && is_in_namespace(space, clients);

	file_close(maps);
	file_close(space);
	if (child_has_ended(w->pidfds[number]))
		return error_set(e, ESRCH, "cannot profile the process: it has ended");
	if (is_ours)
		return 0;
	if (maps >= 0 && space >= 0)
		error_set(e, 0,
			  "process %d is not in the client's user namespace, nor in one below it",
			  pid);
	else
		error_set(e, 0,
			  "process %d is closed to user %u: it is another user's or group's, has "
			  "capabilities, or has made itself undumpable",
			  pid, w->peer.uid);
	return -EPERM;
}

static int check_all(const struct worker *w, struct error *e)
{
	int space = open_of(w->peer.pid, "ns/user"), err = 0;
	struct stat clients;

	if (space < 0 || fstat(space, &clients)) {
		err = error_set(e, errno, "the client, process %d, is closed to its user",
				w->peer.pid);
		goto out;
	}
	if (!peer_is_alive(&w->peer)) {
		err = error_set(e, ESRCH, "the client has ended");
		goto out;
	}
	for (size_t i = 0; i < w->count && !err; i++)
		err = check_access(w, &clients, i, e);
out:
	file_close(space);
	return err;
}

/* --- The result --- */

/*
 * Of what was mapped before the recording, the kernel reports no build ID. The client finds names
 * by paths, where there may be another file: one that has replaced it, or in a mount namespace that
 * is not the process's.
 */
static void add_build_ids(struct profile *p)
{
	for (size_t i = 0; i < p->image_count; i++) {
		struct profile_image *image = &p->images[i];
		struct elf_file file;
		struct error ignored;
		int fd = -1;

		if (image->fd >= 0 && !image->build_id_size)
			fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0 || elf_file_open(&file, fd, NULL, &ignored))
			continue;
		memcpy(image->build_id, file.build_id, file.build_id_size);
		image->build_id_size = file.build_id_size;
		elf_file_close(&file);
	}
}

/* Sends what was counted in the last window. */
static int send_result(struct worker *w, enum record_end end, struct error *e)
{
	struct record_reply reply = { .type = RECORD_RESULT, .end = end };
	struct profile *p = NULL;
	char *bytes = NULL;
	size_t size = 0;
	FILE *out = NULL;
	int err = profile_from_capture(w->capture, &p, e);

	if (end != RECORD_GOES_ON) {
		capture_free(w->capture);
		parser_free(w->rows);
		w->capture = NULL;
		w->rows = NULL;
		err = err ?: capabilities_keep(CAPABILITIES_NONE, e);
	}
	if (!err)
		add_build_ids(p);
	/* What nobody but root may get would be a mistake of ours: then there is no result. */
	for (size_t i = 0; !err && i < p->location_count + p->mapping_count; i++)
		if ((i < p->location_count
			     ? p->locations[i].address
			     : p->mappings[i - p->location_count].start) >= KERNEL_START)
			err = error_set(e, 0, "the recording has a kernel address");
	if (!err) {
		out = open_memstream(&bytes, &size);
		err = out ? format_pprof.write(p, &(struct format_options){ 0 }, out, e)
			  : error_no_memory(e);
	}
	if (out && fclose(out) && !err)
		err = error_no_memory(e);
	profile_free(p);
	reply.size = size;
	if (!err && send_reply(w, &reply))
		err = error_set(e, ECONNRESET, "the client has gone");
	for (size_t sent = 0; sent < size && !err; sent += RECORD_CHUNK) {
		size_t part = MIN(size - sent, RECORD_CHUNK);

		if (send_all(w->socket, bytes + sent, part))
			err = error_set(e, ECONNRESET, "the client has gone");
	}
	free(bytes);
	return err;
}

/* --- The recording --- */

/* Has the kernel kill this process then, also if its user has stopped it. */
static int set_end(const struct worker *w, uint64_t ns, struct error *e)
{
	const struct itimerspec end = { .it_value.tv_sec = ns / NS_PER_S };

	return timer_settime(w->end, 0, &end, NULL) ? error_set(e, errno, "cannot set a timer") : 0;
}

static int start_recording(struct worker *w, struct error *e)
{
	const struct record_request *r = &w->request;
	struct capture_options options = {
		.target = CAPTURE_PROCESSES,
		.pids = w->pids,
		.pid_count = w->count,
		.event = r->event,
		.frequency = r->frequency,
		.inherit = r->flags & RECORD_INHERIT,
		.user = r->flags & RECORD_USER,
		.stacks = r->stacks,
		.trim_code = language_trim,
		.read_rows = parser_read_rows,
		.is_interpreter = language_is_interpreter,
		.wishes = r->flags & RECORD_CONTEXT || w->wishes.count ? &w->wishes : NULL,
		.native = r->flags & RECORD_NATIVE,
		.windows = r->flags & RECORD_WINDOWS,
		.wall = r->flags & RECORD_WALL,
		.waits = r->flags & RECORD_WAITS,
		.every_wait = r->flags & RECORD_EVERY_WAIT,
		.waits_percent = r->waits_percent,
		.origins = true,
		.cpus = r->flags & RECORD_CPUS,
		.owned = true,
		.from_exec = r->flags & RECORD_FROM_EXEC,
	};
	struct record_reply reply = { .type = RECORD_STARTED };
	struct record_verdict verdict = { 0 };
	const char *no_waits;
	char path[64];
	int err;

	w->wishes.knows_programs = r->flags & RECORD_CONTEXT;
	w->wishes.literal = r->flags & RECORD_LITERAL;
	if (r->flags & RECORD_CONTEXT)
		options.is_interpreter = context_takes_stacks;
	for (size_t i = 0; i < w->count; i++) {
		uint64_t pid;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", w->pidfds[i]);
		/* In profild's namespace; 0 or below: it has none there. */
		if (file_find_number(path, "\nPid:\t", &pid) && pid <= INT32_MAX)
			w->pids[i] = pid;
		if (!w->pids[i])
			return error_set(e, EBADF,
					 "a descriptor is none of a process that runs and that "
					 "profild can see");
	}
	err = check_all(w, e);
	if (err)
		return err;
	/* Asks for a place among the recordings, now that the request has passed. */
	if (send(w->server, &verdict, sizeof(verdict), MSG_NOSIGNAL) < 0 ||
	    recv(w->server, &verdict, sizeof(verdict), 0) != sizeof(verdict))
		return error_set(e, ECONNRESET, "profild has ended");
	if (verdict.err) {
		*e = verdict.why;
		return verdict.err;
	}
	err = set_end(w, w->limits->duration_ns + GRACE_NS, e) ?: parser_new(&w->rows, e);
	options.parser = w->rows;
	err = err ?: capabilities_use_for_user(true, e);
	if (err)
		return err;
	err = capture_start(&options, &w->capture, e);
	if (err && r->event == CAPTURE_AUTO && e->kind == ERROR_NOT_PERMITTED) {
		/* Where perf events take more than CAP_PERFMON. */
		struct error other;

		options.event = CAPTURE_TICK;
		options.frequency = 0;
		if (capture_start(&options, &w->capture, &other) == 0)
			err = 0;
	}
	if (err)
		return err;
	/*
	 * Now, too: until here a process could execute a program that is closed to the user, or
	 * end, and another one get its PID. From here on the programs of bpf/members.h see both.
	 */
	err = capabilities_use_for_user(false, e) ?: check_all(w, e);
	err = err ?: capabilities_use_for_user(true, e);
	if (err)
		return err;
	no_waits = capture_no_waits(w->capture);
	reply.waits = capture_options(w->capture)->waits;
	snprintf(reply.message, sizeof(reply.message), "%s", no_waits ?: "");
	return send_reply(w, &reply) ? error_set(e, ECONNRESET, "the client has gone") : 0;
}

static int run_recording(struct worker *w, struct error *e)
{
	uint64_t end_ns = now_ns() + w->limits->duration_ns;
	struct pollfd rest = { .fd = w->socket, .events = POLLIN };
	enum record_end end = RECORD_GOES_ON;
	int err = 0;
	char byte;

	while (!err && end == RECORD_GOES_ON) {
		struct pollfd fds[] = {
			{ .fd = capture_fd(w->capture), .events = POLLIN },
			{ .fd = w->socket, .events = POLLIN },
			{ .fd = w->server },
		};
		char command = 0;
		ssize_t size;

		if (poll(fds, 3, LOOK_MS) < 0 && errno != EINTR)
			return error_set(e, errno, "cannot wait for samples");
		if (fds[2].revents)
			return error_set(e, ECONNRESET, "profild has ended");
		err = capture_handle(w->capture, e);
		if (err)
			return err;
		size = recv(w->socket, &command, 1, MSG_DONTWAIT);
		if (size < 0 ? errno != EAGAIN && errno != EINTR
			     : !size || (command != RECORD_STOP &&
					 (command != RECORD_CUT ||
					  !(w->request.flags & RECORD_WINDOWS))))
			return error_set(e, ECONNRESET, "the client has gone");
		if (command == RECORD_STOP)
			end = RECORD_ENDED;
		else if (capture_ended(w->capture))
			end = RECORD_TARGETS_ENDED;
		else if (now_ns() >= end_ns)
			end = RECORD_TIME_IS_OVER;
		else if (command == RECORD_CUT) {
			err = capture_cut(w->capture, e) ?: send_result(w, RECORD_GOES_ON, e);
			poll(NULL, 0, LOOK_MS); /* whoever asks for more than ten in a second */
		}
	}
	err = err ?: capture_stop(w->capture, e);
	err = err ?: send_result(w, end, e);
	if (err)
		return err;
	/* A last command may be on its way. To close before it is read would lose the result. */
	while (poll(&rest, 1, LAST_COMMAND_S * 1000) > 0 && recv(w->socket, &byte, 1, 0) > 0)
		;
	return 0;
}

/* Becomes the user of the process that connected. */
static int become_user(struct worker *w, struct error *e)
{
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const struct rlimit memory = { w->limits->memory, w->limits->memory }, none = { 0 };
	struct ucred who;
	gid_t groups[NGROUPS_MAX];
	socklen_t size = sizeof(who), groups_size = sizeof(groups);
	struct rlimit locked;
	sigset_t set;

	if (getsockopt(w->socket, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return error_set(e, errno, "cannot get the credentials of the client");
	if (getsockopt(w->socket, SOL_SOCKET, SO_PEERGROUPS, groups, &groups_size))
		groups_size = 0;
	memory_offer(); /* before the kernel ends profild itself, and so all recordings */
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_CORE, &none);
	if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0) {
		locked.rlim_cur = locked.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &locked);
	}
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	if (timer_create(CLOCK_MONOTONIC, &kill, &w->end))
		return error_set(e, errno, "cannot create a timer");
	return set_end(w, CHECK_NS, e)
		       ?: capabilities_keep_for_user(who.uid, who.gid, groups,
						     groups_size / sizeof(*groups), e);
}

int record_worker_run(int socket, int server, const struct peer *peer,
		      const struct record_limits *limits)
{
	struct worker w = { .socket = socket, .server = server, .limits = limits, .peer = *peer };
	struct error e;
	int err;

	err = become_user(&w, &e) ?: receive_request(&w, &e);
	err = err ?: start_recording(&w, &e);
	if (!err)
		log_detail("records %zu process%s of user %u, the first %d, for process %d",
			   w.count, w.count == 1 ? "" : "es", w.peer.uid, w.pids[0], w.peer.pid);
	err = err ?: run_recording(&w, &e);
	capture_free(w.capture);
	parser_free(w.rows);
	if (err == -EACCES && perf_event_needs_root())
		error_set_kind(
			&e, ERROR_NOT_PERMITTED, 0,
			"this kernel opens perf events for root alone: the administrator has "
			"to set kernel.perf_event_paranoid to 2");
	if (err) {
		const struct record_verdict verdict = { err, e };

		send(server, &verdict, sizeof(verdict), MSG_NOSIGNAL);
		record_refuse(socket, -err, &e);
	}
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
