// SPDX-License-Identifier: GPL-2.0-only
#include "tool/service.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/target.h"
#include "cli/capabilities.h"
#include "format/format.h"
#include "script/context.h"
#include "tool/recording.h"
#include "util/child.h"

/*
 * The most that is taken of a result.
 * Bound: caller: bytes of a result of profild --record; then: it is refused.
 */
#define RESULT_MAX (UINT64_C(1) << 30)

const char *service_path(void)
{
	const char *path = secure_getenv("PROFIL_RECORD_SOCKET") ?: RECORD_SOCKET;

	return *path && !capabilities_can_record() && access(path, F_OK) == 0 ? path : NULL;
}

int service_check(const struct tool_target *t, bool command, struct error *e)
{
	const char *what = NULL;

	if (t->ask_runtimes)
		what = "--ask-runtimes";
	else if (t->children)
		what = "--children";
	else if (t->kernel)
		what = "--kernel";
	else if (t->unwind_mib)
		what = "--unwind-memory";
	if (!what && (command || t->pid_count))
		return 0;
	error_set_kind(e, ERROR_NOT_PERMITTED, 0,
		       "you may not record: profild records your own processes for you, but not "
		       "with %s",
		       what ?: "other targets than -p and COMMAND");
	error_hint(e, "profiltool top -p PID, profiltool record -p PID, or profiltool record -- "
		      "COMMAND");
	return -ENOTSUP;
}

/*
 * Waits for a message of profild, which may never come: its process may wait for a file of the
 * target, or be stopped. Returns its size; 0: profild has gone; or a negative errno with e set.
 */
static ssize_t receive(const struct service *s, void *to, size_t size, struct error *e)
{
	struct pollfd fds[] = {
		{ .fd = s->socket, .events = POLLIN },
		{ .fd = s->signals, .events = POLLIN },
	};
	ssize_t n;

	do
		n = poll(fds, 2, -1);
	while (n < 0 && errno == EINTR);
	if (n > 0 && !fds[0].revents)
		return error_set(e, EINTR, "waited for profild");
	if (n > 0)
		n = recv(s->socket, to, size, 0);
	return n < 0 ? error_set(e, errno, "cannot receive from profild") : n;
}

/*
 * Waits for a reply in the version that was chosen. Returns 0 or a negative errno: what profild has
 * refused, too.
 */
static int receive_reply(const struct service *s, enum record_type type, struct record_reply *reply,
			 struct error *e)
{
	ssize_t size = receive(s, reply, sizeof(*reply), e);

	if (size < 0)
		return (int)size;
	if (!size)
		return error_set(e, ECONNRESET, "profild has gone");
	if (size != sizeof(*reply) ||
	    reply->version != (reply->type == RECORD_REFUSED ? RECORD_READY_VERSION : s->version)) {
		error_set(e, 0, "profild answers in another version of the protocol, not in %u",
			  s->version);
		error_hint(e, "restart it after an upgrade: systemctl restart profil-record");
		return -EPROTO;
	}
	reply->message[sizeof(reply->message) - 1] = '\0';
	if (reply->type == RECORD_REFUSED) {
		error_set_kind(e,
			       reply->error == EPERM || reply->error == EACCES ? ERROR_NOT_PERMITTED
									       : ERROR_FAILED,
			       0, "profild: %s", reply->message);
		return reply->error > 0 ? -reply->error : -EINVAL;
	}
	if (reply->type != type)
		return error_set(e, EPROTO, "unexpected message from profild");
	return 0;
}

static int connect_to(struct service *s, const char *path, struct error *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct record_reply reply;
	struct record_ready ready;
	int err;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(e, ENAMETOOLONG, "cannot connect to profild at %s", path);
	strcpy(address.sun_path, path);
	s->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->socket < 0)
		return error_set(e, errno, "cannot create a socket");
	if (connect(s->socket, (const struct sockaddr *)&address, sizeof(address))) {
		error_set(e, errno, "cannot connect to profild at %s", path);
		error_hint(e, "is it running? systemctl status profil-record.socket");
		return -EPERM;
	}
	s->version = RECORD_READY_VERSION;
	err = receive_reply(s, RECORD_READY, &reply, e);
	if (err)
		return err;
	memcpy(&ready, &reply, sizeof(ready));
	ready.oldest = ready.oldest ?: RECORD_READY_VERSION;
	ready.newest = ready.newest ?: RECORD_READY_VERSION;
	s->version = MIN(ready.newest, RECORD_NEWEST);
	if (s->version >= ready.oldest && s->version >= RECORD_OLDEST)
		return 0;
	error_set(e, 0,
		  "profild speaks versions %u to %u of the protocol, and this profiltool %d to %d",
		  ready.oldest, ready.newest, RECORD_OLDEST, RECORD_NEWEST);
	error_hint(e, "%s",
		   ready.oldest > RECORD_NEWEST ? "update profiltool"
						: "update profild, and restart it: systemctl "
						  "restart profil-record");
	return -EPROTO;
}

int service_start(struct service *s, const char *path, const struct capture_options *o,
		  pid_t command, int signals, struct error *e)
{
	const pid_t *pids = command ? &command : o->pids;
	struct {
		struct record_request request;
		struct record_label labels[CONTEXT_WISHES_MAX];
	} message = { 0 };
	struct record_request request = {
		.flags = (command ? RECORD_FROM_EXEC : 0) | (o->inherit ? RECORD_INHERIT : 0) |
			 (o->user ? RECORD_USER : 0) | (o->native ? RECORD_NATIVE : 0) |
			 (o->cpus ? RECORD_CPUS : 0) | (o->wall ? RECORD_WALL : 0) |
			 (o->waits ? RECORD_WAITS : 0) | (o->windows ? RECORD_WINDOWS : 0) |
			 (o->every_wait ? RECORD_EVERY_WAIT : 0),
		.event = o->event,
		.stacks = o->stacks,
		.frequency = o->frequency,
		.waits_percent = o->waits_percent,
		.target_count = command ? 1 : o->pid_count,
	};
	int pidfds[RECORD_TARGETS_MAX], err = 0;
	struct record_reply reply;
	size_t opened = 0;

	*s = (struct service){ .socket = -1, .signals = signals };
	if (request.target_count > RECORD_TARGETS_MAX)
		return error_set(e, 0, "profild records %d processes at most at once",
				 RECORD_TARGETS_MAX);
	for (; opened < request.target_count && !err; opened += !err) {
		if (!command)
			err = target_check(pids[opened], false, false, e);
		if (err)
			break;
		pidfds[opened] = target_open(pids[opened]);
		if (pidfds[opened] < 0)
			err = error_set(e, errno, "cannot watch process %d", pids[opened]);
	}
	err = err ?: connect_to(s, path, e);
	request.version = s->version;
	/* Older versions of profild record without labels. */
	if (o->wishes && s->version >= 3)
		request.flags |= (o->wishes->knows_programs ? RECORD_CONTEXT : 0) |
				 (o->wishes->literal ? RECORD_LITERAL : 0);
	request.label_count = o->wishes ? o->wishes->count : 0;
	for (uint32_t i = 0; i < request.label_count; i++)
		context_format(&o->wishes->wishes[i], message.labels[i].text, RECORD_LABEL_SIZE);
	message.request = request;
	if (!err && o->every_wait && s->version < 2) {
		err = error_set(e, 0, "this profild keeps no times of short waits");
		error_hint(e, "update it, and restart it: systemctl restart profil-record");
	}
	if (!err && request.label_count && s->version < 4) {
		err = error_set(e, 0, "this profild reads no variables for --label");
		error_hint(e, "update it, and restart it: systemctl restart profil-record");
	}
	if (!err && message_send(s->socket, &message,
				 sizeof(request) + request.label_count * sizeof(*message.labels),
				 pidfds, opened, 0))
		err = error_set(e, errno, "cannot send to profild");
	while (opened)
		close(pidfds[--opened]);
	err = err ?: receive_reply(s, RECORD_STARTED, &reply, e);
	if (err)
		service_close(s);
	else if (o->waits && !reply.waits)
		snprintf(s->no_waits, sizeof(s->no_waits), "%s",
			 *reply.message ? reply.message : "unknown reason");
	return err;
}

bool service_has_ended(const struct service *s)
{
	struct pollfd ready = { .fd = s->socket, .events = POLLIN };

	return poll(&ready, 1, 0) > 0;
}

int service_take(struct service *s, bool last, struct profile **p, struct error *e)
{
	const char command = last ? RECORD_STOP : RECORD_CUT;
	int file = memfd_create("profile", MFD_CLOEXEC), err = 0;
	struct record_reply reply;
	char path[64], chunk[RECORD_CHUNK];
	ssize_t size;

	if (file < 0)
		return error_set(e, errno, "cannot create a file in memory");
	while (last && recording_signal_came(&s->signals))
		;
	/* If that fails, it has ended by itself: its result has come. */
	send(s->socket, &command, 1, MSG_NOSIGNAL);
	err = receive_reply(s, RECORD_RESULT, &reply, e);
	if (!err && reply.size > RESULT_MAX)
		err = error_set(e, EFBIG, "the result");
	for (uint64_t left = err ? 0 : reply.size; left && !err; left -= size) {
		size = receive(s, chunk, sizeof(chunk), e);
		if (size < 0)
			err = (int)size;
		else if (!size || (uint64_t)size > left)
			err = error_set(e, EPROTO,
					"profild has gone before the result was complete");
		else if (write(file, chunk, size) != size)
			err = error_set(e, errno, "cannot keep the result");
		if (err)
			break;
	}
	s->end = err ? RECORD_ENDED : reply.end;
	/* By its path, which begins at the start of the file. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	err = err ?: format_read(path, NULL, p, e);
	close(file);
	return err;
}

void service_close(struct service *s)
{
	if (s->socket >= 0)
		close(s->socket);
	s->socket = -1;
}
