// SPDX-License-Identifier: GPL-2.0-only
#include "push/push.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "archive/archive.h"
#include "format/format.h"
#include "push/cursor.h"
#include "push/http.h"
#include "push/reply.h"
#include "push/request.h"
#include "util/clock.h"
#include "util/directory.h"

/* How long a call sends one window after another. */
#define STEP_NS (5 * NS_PER_S)

#define FIRST_DELAY_MS	    UINT64_C(1000)
#define MOST_DELAY_MS	    UINT64_C(300000)
#define MOST_RETRY_AFTER_MS UINT64_C(3600000)

/*
 * After so many replies that the server failed, in ten minutes, a window counts as refused. It may
 * be the reason, and others wait behind it.
 */
#define MOST_FAILURES 10

struct push {
	struct push_options options;
	const struct push_protocol *protocol;
	struct http *http;
	struct http_reply *reply;
	struct push_counters counters;

	char *host_pattern;
	uint64_t until_ns; /* windows that began up to then are done; .pushed has it */

	uint64_t due_ns;	      /* CLOCK_MONOTONIC: no attempt before */
	unsigned int failures;	      /* attempts since the last reply that was not one */
	unsigned int server_failures; /* of these, for the same window: replies that it failed */
	uint64_t failing_since_ns;
	int problem;  /* what was reported last about failures: a status, or http_reply.problem; 0:
			 none */
	long refusal; /* the same about refused windows */
	bool dropping, rejecting;
};

/* --- Reports --- */

static void report(struct push *p, enum push_report kind, const struct error *e)
{
	if (p->options.report)
		p->options.report(kind, e, p->options.context);
}

static void note(struct push *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct push *p, const char *format, ...)
{
	struct error e = { 0 };
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(e.what, sizeof(e.what), format, arguments);
	va_end(arguments);
	report(p, PUSH_NOTE, &e);
}

/* --- The options --- */

static const struct push_protocol *const protocols[] = { &push_otlp, &push_pyroscope };

#define PROTOCOLS (sizeof(protocols) / sizeof(*protocols))

static int find_protocol(const char *name, const struct push_protocol **protocol, struct error *e)
{
	for (size_t i = 0; i < PROTOCOLS; i++) {
		*protocol = protocols[i];
		if (!name || strcmp(name, protocols[i]->name) == 0)
			return 0;
	}
	error_set_kind(e, ERROR_USAGE, 0, "unknown protocol to push by: %s", name);
	error_hint(e, "%s or %s", push_otlp.name, push_pyroscope.name);
	return -EINVAL;
}

/* archive_list() takes a pattern. */
static char *escape_pattern(const char *text)
{
	char *pattern = malloc(2 * strlen(text) + 1), *to = pattern;

	if (!pattern)
		return NULL;
	for (; *text; text++) {
		if (strchr("*?[\\", *text))
			*to++ = '\\';
		*to++ = *text;
	}
	*to = '\0';
	return pattern;
}

static char *pattern_of_host(const char *host)
{
	char *name = strdup(*host ? host : "unknown"), *pattern;

	if (!name)
		return NULL;
	directory_clean_name(name);
	pattern = escape_pattern(name);
	free(name);
	return pattern;
}

/*
 * Where to begin. Windows are named by whole seconds: one that began at 12:00:00.7 is not before
 * 12:00:00.5.
 */
static int read_cursor(struct push *p, struct error *e)
{
	uint64_t since_s = p->options.since_ns / NS_PER_S;
	int err = cursor_read(p->options.directory, p->options.host, http_url(p->http),
			      &p->until_ns, e);

	if (!err)
		return 0;
	p->until_ns = since_s ? since_s * NS_PER_S - 1 : 0;
	if (err == -EINVAL)
		report(p, PUSH_PROBLEM, e);
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

static int start(struct push *p, struct error *e)
{
	int err = find_protocol(p->options.protocol, &p->protocol, e)
			  ?: http_new(&p->options, p->protocol, &p->http, e);

	if (err)
		return err;
	p->reply = calloc(1, sizeof(*p->reply));
	p->host_pattern = pattern_of_host(p->options.host);
	if (!p->reply || !p->host_pattern)
		return error_no_memory(e);
	return read_cursor(p, e);
}

int push_new(const struct push_options *options, struct push **result, struct error *e)
{
	struct push *p;
	int err;

	*result = NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_no_memory(e);
	p->options = *options;
	p->options.queue_bytes = options->queue_bytes ?: PUSH_QUEUE_BYTES;
	err = start(p, e);
	if (err)
		push_free(p);
	else
		*result = p;
	return err;
}

void push_free(struct push *p)
{
	if (!p)
		return;
	http_free(p->http);
	free(p->reply);
	free(p->host_pattern);
	free(p);
}

const struct push_counters *push_counters(const struct push *p)
{
	return &p->counters;
}

uint64_t push_sent_until(const struct push *p)
{
	return p->until_ns;
}

/* --- The queue --- */

struct queue {
	struct archive_window *windows;
	size_t count, at; /* the next one to send */
	uint64_t bytes;	  /* of those from `at` on */
};

/*
 * After the clock was set back, windows of the new time are sent. Those that were sent already are
 * sent a second time when the clock reaches their times again: their profiles have the same IDs.
 */
static void follow_clock(struct push *p, uint64_t now)
{
	if (p->until_ns <= now)
		return;
	p->until_ns = now;
	note(p, "the clock was set back: windows that begin from now on are sent");
}

static int list(struct push *p, struct queue *q, struct error *e)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);
	int err;

	follow_clock(p, now);
	err = archive_list(p->options.directory, p->host_pattern, p->until_ns, now + 1, &q->windows,
			   &q->count, e);
	if (err)
		return err;
	while (q->at < q->count && q->windows[q->at].start_ns <= p->until_ns)
		q->at++;
	for (size_t i = q->at; i < q->count; i++)
		q->bytes += q->windows[i].bytes;
	return 0;
}

static void count_waiting(struct push *p, const struct queue *q)
{
	p->counters.waiting = q->count - q->at;
	p->counters.waiting_bytes = q->bytes;
}

/* The next window is sent, refused or dropped. */
static int advance(struct push *p, struct queue *q, struct error *e)
{
	const struct archive_window *w = &q->windows[q->at++];

	q->bytes -= w->bytes;
	p->until_ns = w->start_ns;
	p->server_failures = 0;
	return cursor_write(p->options.directory, p->options.host, http_url(p->http), p->until_ns,
			    e);
}

/* Drops the oldest windows that are too many, but never the last one. */
static int drop(struct push *p, struct queue *q, struct error *e)
{
	uint64_t dropped = 0;
	int err = 0;

	while (q->bytes > p->options.queue_bytes && q->count - q->at > 1) {
		q->bytes -= q->windows[q->at].bytes;
		p->until_ns = q->windows[q->at++].start_ns;
		dropped++;
	}
	if (!dropped)
		return 0;
	p->counters.dropped += dropped;
	p->server_failures = 0;
	err = cursor_write(p->options.directory, p->options.host, http_url(p->http), p->until_ns,
			   e);
	if (!p->dropping) {
		p->dropping = true;
		note(p, "more than %" PRIu64 " bytes wait for %s: the oldest windows are not sent",
		     p->options.queue_bytes, http_url(p->http));
	}
	return err;
}

/* --- One window --- */

/* How long to wait: twice as long each time, and not in step with other hosts. */
static uint64_t delay_ms(unsigned int failures, uint64_t retry_after_s)
{
	uint64_t most = FIRST_DELAY_MS, random = 0;

	for (unsigned int i = 1; i < failures && most < MOST_DELAY_MS; i++)
		most *= 2;
	most = most < MOST_DELAY_MS ? most : MOST_DELAY_MS;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = now_ns();
	if (retry_after_s) {
		/* Not before, and up to a tenth later. */
		most = retry_after_s < MOST_RETRY_AFTER_MS / 1000 ? retry_after_s * 1000
								  : MOST_RETRY_AFTER_MS;
		return most + random % (most / 10 + 1);
	}
	return most / 2 + random % (most / 2 + 1);
}

static void wait_after_failure(struct push *p, int problem, uint64_t retry_after_s,
			       const struct error *e)
{
	if (!p->failures)
		p->failing_since_ns = now_ns();
	p->failures++;
	p->counters.retried++;
	p->due_ns = now_ns() + delay_ms(p->failures, retry_after_s) * NS_PER_MS;
	if (problem == p->problem)
		return;
	p->problem = problem;
	report(p, PUSH_PROBLEM, e);
}

/* The server has taken care of a window. */
static void end_failure(struct push *p)
{
	if (p->failures)
		note(p, "%s answers again, after %" PRIu64 " s", http_url(p->http),
		     (now_ns() - p->failing_since_ns) / NS_PER_S);
	p->failures = 0;
	p->problem = 0;
}

static void format_time(uint64_t time_ns, char *text, size_t size)
{
	time_t seconds = time_ns / NS_PER_S;
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, size, "%" PRIu64, time_ns);
}

static void describe(const struct push *p, const struct reply *r, const char *what, struct error *e)
{
	const char *name = reply_status_name(p->reply->status);

	error_set(e, 0, "%s %s: %ld%s%s%s%s", http_url(p->http), what, p->reply->status,
		  *name ? " " : "", name, *r->message ? ": " : "", r->message);
	if (p->reply->status == 401 || p->reply->status == 403)
		error_hint(e, "--push-token-file, --push-certificate");
	else if (p->reply->status == 404)
		error_hint(e, "is the URL right, and does the server take profiles by %s?",
			   p->protocol->name);
}

/* Reported once, until another reply than this comes. */
static void report_refused(struct push *p, const struct reply *r, uint64_t start_ns)
{
	char what[128], time[64];
	struct error e;

	if (p->refusal == p->reply->status)
		return;
	p->refusal = p->reply->status;
	format_time(start_ns, time, sizeof(time));
	snprintf(what, sizeof(what), "refuses the window of %s UTC", time);
	describe(p, r, what, &e);
	report(p, PUSH_PROBLEM, &e);
}

static void count_rejected(struct push *p, const struct reply *r)
{
	struct error e;

	p->counters.rejected += r->rejected;
	if (!r->rejected && !*r->message) {
		p->rejecting = false;
		return;
	}
	if (p->rejecting)
		return;
	p->rejecting = true;
	error_set(&e, 0, "%s did not take %" PRIu64 " profiles of a window%s%s", http_url(p->http),
		  r->rejected, *r->message ? ": " : "", r->message);
	report(p, PUSH_PROBLEM, &e);
}

enum sent {
	SENT_DONE, /* the window is done with, one way or another */
	SENT_LATER,
};

static enum sent take_reply(struct push *p, const struct archive_window *w)
{
	struct reply r;
	struct error e;

	reply_read(p->reply, &r);
	if (r.outcome == REPLY_FAILED && ++p->server_failures >= MOST_FAILURES)
		r.outcome = REPLY_REFUSED;
	if (r.outcome == REPLY_BUSY || r.outcome == REPLY_FAILED) {
		describe(p, &r, "cannot take windows, which wait", &e);
		wait_after_failure(p, p->reply->status, p->reply->retry_after_s, &e);
		return SENT_LATER;
	}
	end_failure(p);
	if (r.outcome == REPLY_REFUSED) {
		p->counters.refused++;
		report_refused(p, &r, w->start_ns);
		return SENT_DONE;
	}
	p->refusal = 0;
	p->counters.sent++;
	p->counters.sent_ns = clock_ns(CLOCK_REALTIME);
	count_rejected(p, &r);
	return SENT_DONE;
}

static enum sent post(struct push *p, const struct archive_window *w,
		      const struct request_bytes *body)
{
	struct error e;
	int err = http_post(p->http, body, p->reply, &e);

	if (err == -ECANCELED)
		return SENT_LATER;
	p->counters.bytes += body->size;
	if (!err)
		return take_reply(p, w);
	wait_after_failure(p, p->reply->problem, 0, &e);
	return SENT_LATER;
}

/* Whether it is the file's fault that it cannot be sent. */
static bool is_unreadable(int err)
{
	return err != -ENOMEM && err != -EMFILE && err != -ENFILE;
}

static int read_window(struct push *p, const struct archive_window *w, struct request_bytes *body,
		       struct error *e)
{
	struct profile *profile;
	int err = format_read(w->path, &(struct input_options){ .foreign = true }, &profile, e);

	if (err)
		return err;
	err = p->protocol->encode(profile, body, e);
	profile_free(profile);
	return err;
}

static int send_window(struct push *p, const struct archive_window *w, enum sent *sent,
		       struct error *e)
{
	struct request_bytes body = { 0 };
	int err = read_window(p, w, &body, e);

	*sent = SENT_LATER;
	if (!err) {
		*sent = post(p, w, &body);
	} else if (is_unreadable(err)) {
		p->counters.unreadable++;
		report(p, PUSH_PROBLEM, e);
		*sent = SENT_DONE;
		err = 0;
	}
	request_bytes_free(&body);
	return err;
}

/* --- All of them --- */

static bool is_stopped(const struct push *p)
{
	return p->options.stopped && p->options.stopped(p->options.context);
}

static int send_all(struct push *p, struct queue *q, struct error *e)
{
	uint64_t end_ns = now_ns() + STEP_NS;
	enum sent sent;
	int err = 0;

	while (!err && q->at < q->count && now_ns() < end_ns && !is_stopped(p)) {
		err = send_window(p, &q->windows[q->at], &sent, e);
		if (err || sent == SENT_LATER)
			break;
		err = advance(p, q, e);
	}
	return err;
}

static uint64_t next_ms(const struct push *p)
{
	uint64_t now = now_ns();

	if (!p->counters.waiting)
		return UINT64_MAX;
	return p->due_ns > now ? (p->due_ns - now) / NS_PER_MS + 1 : 0;
}

int push_step(struct push *p, uint64_t *next, struct error *e)
{
	struct queue q = { 0 };
	int err = list(p, &q, e) ?: drop(p, &q, e);

	if (!err && now_ns() >= p->due_ns)
		err = send_all(p, &q, e);
	count_waiting(p, &q);
	if (!p->counters.waiting && p->dropping) {
		p->dropping = false;
		note(p, "no windows wait any more; %" PRIu64 " were not sent", p->counters.dropped);
	}
	/* What is wrong here is not tried again at once. */
	if (err)
		p->due_ns = now_ns() + FIRST_DELAY_MS * NS_PER_MS;
	*next = next_ms(p);
	archive_list_free(q.windows, q.count);
	return err;
}
