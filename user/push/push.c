// SPDX-License-Identifier: GPL-2.0-only
#include "push/push.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/tree.h"
#include "format/format.h"
#include "push/http.h"
#include "push/reply.h"
#include "push/request.h"
#include "util/clock.h"
#include "util/directory.h"
#include "util/number.h"

/* How long a call sends one window after another. Bound: pace. */
#define STEP_NS (5 * NS_PER_S)

/* Bound: pace. */
#define FIRST_DELAY_MS	    UINT64_C(1000)
#define MOST_DELAY_MS	    UINT64_C(300000)
#define MOST_RETRY_AFTER_MS UINT64_C(3600000)

/*
 * A window counts as refused after this number of server errors, which takes ten minutes: it may
 * cause them, and it delays all later windows.
 * Bound: machine: server errors in a row at one window; then: it is given up; again: at the next
 * window; share: the window's own; seen: push_refused.
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

static const struct push_protocol *const protocols[] = { &push_otlp, &push_pyroscope };

/* --- Up to where windows were sent to a URL: DIRECTORY/HOST/.pushed, a line each for both --- */

#define CURSOR	     ".pushed"
#define URL_PREFIX   "url "
#define UNTIL_PREFIX "until_ns "

/* Reads a line that begins with this prefix, and returns what follows in it, or NULL. */
static char *read_line(FILE *in, char **line, size_t *room, const char *prefix)
{
	ssize_t size = getline(line, room, in);

	if (size <= 0 || (*line)[size - 1] != '\n' || strncmp(*line, prefix, strlen(prefix)) != 0)
		return NULL;
	(*line)[size - 1] = '\0';
	return *line + strlen(prefix);
}

/* Returns 0, -ENOENT: nothing was sent to this URL yet, or -EINVAL: it is corrupt. */
static int parse_cursor(FILE *in, const char *url, uint64_t *until_ns)
{
	char *line = NULL, *rest;
	size_t room = 0;
	int err = -EINVAL;

	rest = read_line(in, &line, &room, URL_PREFIX);
	if (rest && strcmp(rest, url) != 0)
		err = -ENOENT;
	else if (rest && (rest = read_line(in, &line, &room, UNTIL_PREFIX)) &&
		 number_parse(rest, 0, UINT64_MAX, until_ns) == 0)
		err = 0;
	free(line);
	return err;
}

/*
 * Sets p->until_ns to the start of the last window that was sent, or dropped. Returns as
 * parse_cursor(), or -errno; with e set.
 */
static int read_cursor(struct push *p, struct error *e)
{
	struct tree t;
	int err = tree_open(&t, p->options.directory, p->options.host, false, e), fd = -1;
	FILE *in = NULL;

	if (err)
		goto out;
	fd = directory_open_file(t.fd, CURSOR);
	in = fd < 0 ? NULL : fdopen(fd, "r");
	if (!in) {
		err = error_set(e, fd < 0 ? -fd : errno, "cannot read %s/" CURSOR, t.path);
		if (fd == -ELOOP) /* somebody put a link there: as if it were corrupt */
			err = -EINVAL;
		goto out;
	}
	err = parse_cursor(in, http_url(p->http), &p->until_ns);
	if (err == -EINVAL) {
		error_set(e, 0, "%s/" CURSOR " is corrupt", t.path);
		error_hint(e, "windows that waited are not sent; it is written anew");
	} else if (err) {
		error_set(e, -err, "%s/" CURSOR, t.path);
	}
out:
	if (in)
		fclose(in);
	else if (fd >= 0)
		close(fd);
	tree_close(&t);
	return err;
}

static int print_cursor(FILE *out, void *context, struct error *e)
{
	const struct push *p = context;

	(void)e;
	fprintf(out, URL_PREFIX "%s\n" UNTIL_PREFIX "%" PRIu64 "\n", http_url(p->http),
		p->until_ns);
	return 0;
}

/* Writes p->until_ns, durably and whole or not at all. Returns 0 or -errno with e set. */
static int write_cursor(struct push *p, struct error *e)
{
	char path[PATH_MAX];
	struct tree t;
	int err = tree_open(&t, p->options.directory, p->options.host, false, e);

	if (!err) {
		snprintf(path, sizeof(path), "%s/" CURSOR, t.path);
		err = directory_write_file(t.fd, CURSOR, path, DIRECTORY_DURABLE, print_cursor, p,
					   e);
	}
	tree_close(&t);
	return err;
}

/* Returns the pattern by which archive_list() finds the host, or NULL. The caller frees it. */
static char *pattern_of_host(const char *host)
{
	char *name = strdup(*host ? host : "unknown"), *pattern, *to;

	if (!name)
		return NULL;
	directory_clean_name(name);
	pattern = to = calloc(2 * strlen(name) + 1, 1);
	if (pattern) {
		for (const char *from = name; *from; from++) {
			if (strchr("*?[\\", *from))
				*to++ = '\\';
			*to++ = *from;
		}
	}
	free(name);
	return pattern;
}

int push_new(const struct push_options *options, struct push **result, struct error *e)
{
	uint64_t since_s = options->since_ns / NS_PER_S;
	struct push *p = calloc(1, sizeof(*p));
	int err;

	*result = NULL;
	if (!p)
		return error_no_memory(e);
	p->options = *options;
	p->options.queue_bytes = options->queue_bytes ?: PUSH_QUEUE_BYTES;
	for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols) && !p->protocol; i++)
		if (!options->protocol || strcmp(options->protocol, protocols[i]->name) == 0)
			p->protocol = protocols[i];
	if (!p->protocol) {
		error_set_kind(e, ERROR_USAGE, 0, "unknown protocol to push by: %s",
			       options->protocol);
		error_hint(e, "%s or %s", push_otlp.name, push_pyroscope.name);
		err = -EINVAL;
		goto out;
	}
	err = http_new(&p->options, p->protocol, &p->http, e);
	if (err)
		goto out;
	p->reply = calloc(1, sizeof(*p->reply));
	p->host_pattern = pattern_of_host(options->host);
	if (!p->reply || !p->host_pattern) {
		err = error_no_memory(e);
		goto out;
	}
	err = read_cursor(p, e);
	if (err) {
		/*
		 * Windows are named by whole seconds: one that began at 12:00:00.7 is not before
		 * 12:00:00.5.
		 */
		p->until_ns = since_s ? since_s * NS_PER_S - 1 : 0;
		if (err == -EINVAL)
			report(p, PUSH_PROBLEM, e);
		if (err == -EINVAL || err == -ENOENT)
			err = 0;
	}
out:
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

struct queue {
	struct archive_window *windows;
	size_t count, at; /* the next one to send */
	uint64_t bytes;	  /* of the windows from `at` on */
};

/* Lists the windows that wait. */
static int list_queue(struct push *p, struct queue *q, struct error *e)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);
	int err;

	/*
	 * After the clock was set back, windows of the new time are sent. Those that were sent
	 * already are sent a second time when the clock reaches their times again: their profiles
	 * have the same IDs.
	 */
	if (p->until_ns > now) {
		p->until_ns = now;
		note(p, "the clock was set back: windows that begin from now on are sent");
	}
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

/* Drops the oldest windows if too many bytes wait, but never the last one. */
static int drop_oldest(struct push *p, struct queue *q, struct error *e)
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
	err = write_cursor(p, e);
	if (!p->dropping) {
		p->dropping = true;
		note(p, "more than %" PRIu64 " bytes wait for %s: the oldest windows are not sent",
		     p->options.queue_bytes, http_url(p->http));
	}
	return err;
}

/* Returns how long to wait: twice as long each time, and not in step with other hosts. */
static uint64_t backoff_ms(unsigned int failures, uint64_t retry_after_s)
{
	uint64_t most = FIRST_DELAY_MS, random = 0;

	for (unsigned int i = 1; i < failures && most < MOST_DELAY_MS; i++)
		most *= 2;
	most = MIN(most, MOST_DELAY_MS);
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = now_ns();
	if (retry_after_s) {
		/* Not before, and up to a tenth later. */
		most = MOST_RETRY_AFTER_MS;
		if (retry_after_s < MOST_RETRY_AFTER_MS / 1000)
			most = retry_after_s * 1000;
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
	p->due_ns = now_ns() + backoff_ms(p->failures, retry_after_s) * NS_PER_MS;
	if (problem == p->problem)
		return;
	p->problem = problem;
	report(p, PUSH_PROBLEM, e);
}

/* Sets e to the URL, `what` it does, and its reply. */
static void describe_reply(const struct push *p, const struct reply *r, const char *what,
			   struct error *e)
{
	const char *name = reply_status_name(p->reply->status);

	error_set(e, 0, "%s %s: %ld%s%s%s%s", http_url(p->http), what, p->reply->status,
		  *name ? " " : "", name, *r->message ? ": " : "", r->message);
	if (p->reply->status == 401 || p->reply->status == 403)
		error_hint(e, "--push-token-file, --push-certificate");
	else if (p->reply->status == 404)
		error_hint(e,
			   "is the URL right, and does the server take profiles by %s? A URL that "
			   "ends in %s is used as it is",
			   p->protocol->name, strrchr(p->protocol->path, '/'));
	else if (p->reply->status == 400 && p->protocol->bad_request)
		error_hint(e, "%s", p->protocol->bad_request);
}

/* Counts and reports the reply. False: the window waits for another attempt. */
static bool take_reply(struct push *p, const struct archive_window *w)
{
	long status = p->reply->status;
	struct reply r;
	struct error e;

	reply_read(p->reply, &r);
	if (r.outcome == REPLY_FAILED && ++p->server_failures >= MOST_FAILURES)
		r.outcome = REPLY_REFUSED;
	if (r.outcome == REPLY_BUSY || r.outcome == REPLY_FAILED) {
		describe_reply(p, &r, "cannot take windows, which wait", &e);
		wait_after_failure(p, status, p->reply->retry_after_s, &e);
		return false;
	}
	if (p->failures)
		note(p, "%s answers again, after %" PRIu64 " s", http_url(p->http),
		     (now_ns() - p->failing_since_ns) / NS_PER_S);
	p->failures = 0;
	p->problem = 0;
	if (r.outcome == REPLY_REFUSED) {
		p->counters.refused++;
		/* Reported once, until another reply than this comes. */
		if (p->refusal != status) {
			char what[128];

			p->refusal = status;
			snprintf(what, sizeof(what), "refuses the window of %s UTC",
				 time_text(w->start_ns / NS_PER_S, true, "%F %T").text);
			describe_reply(p, &r, what, &e);
			report(p, PUSH_PROBLEM, &e);
		}
		return true;
	}
	p->refusal = 0;
	p->counters.sent++;
	p->counters.rejected += r.rejected;
	if (!r.rejected && !*r.message) {
		p->rejecting = false;
	} else if (!p->rejecting) {
		p->rejecting = true;
		error_set(&e, 0, "%s did not take %" PRIu64 " profiles of a window%s%s",
			  http_url(p->http), r.rejected, *r.message ? ": " : "", r.message);
		report(p, PUSH_PROBLEM, &e);
	}
	return true;
}

/*
 * Sends a window. *done: it was sent or refused, or cannot be read. Returns 0, or -errno with e set
 * when the window cannot be read now.
 */
static int send_window(struct push *p, const struct archive_window *w, bool *done, struct error *e)
{
	struct message_bytes body = { 0 };
	struct profile *profile;
	struct error http_e;
	int err = format_read(w->path, &(struct input_options){ .foreign = true }, &profile, e);

	*done = false;
	if (!err) {
		err = p->protocol->encode(profile, &body, e);
		profile_free(profile);
	}
	if (!err) {
		int http_err = http_post(p->http, &body, p->reply, &http_e);

		if (http_err != -ECANCELED)
			p->counters.bytes += body.size;
		if (!http_err)
			*done = take_reply(p, w);
		else if (http_err != -ECANCELED)
			wait_after_failure(p, p->reply->problem, 0, &http_e);
	} else if (err != -ENOMEM && err != -EMFILE && err != -ENFILE) {
		/* The window's fault: no other attempt would read it. */
		p->counters.unreadable++;
		report(p, PUSH_PROBLEM, e);
		*done = true;
		err = 0;
	}
	message_bytes_free(&body);
	return err;
}

int push_step(struct push *p, uint64_t *next_ms, struct error *e)
{
	uint64_t now, end_ns;
	struct queue q = { 0 };
	bool done = true;
	int err = list_queue(p, &q, e) ?: drop_oldest(p, &q, e);

	now = now_ns();
	end_ns = now + STEP_NS;
	if (now < p->due_ns)
		done = false;
	while (!err && done && q.at < q.count && now_ns() < end_ns &&
	       !(p->options.stopped && p->options.stopped(p->options.context))) {
		const struct archive_window *w = &q.windows[q.at];

		err = send_window(p, w, &done, e);
		if (err || !done)
			break;
		q.at++;
		q.bytes -= w->bytes;
		p->until_ns = w->start_ns;
		p->server_failures = 0;
		err = write_cursor(p, e);
	}
	p->counters.waiting = q.count - q.at;
	p->counters.waiting_bytes = q.bytes;
	if (!p->counters.waiting && p->dropping) {
		p->dropping = false;
		note(p, "no windows wait any more; %" PRIu64 " were not sent", p->counters.dropped);
	}
	now = now_ns();
	/* A local error is not retried at once. */
	if (err)
		p->due_ns = now + FIRST_DELAY_MS * NS_PER_MS;
	if (!p->counters.waiting)
		*next_ms = UINT64_MAX;
	else
		*next_ms = p->due_ns > now ? (p->due_ns - now) / NS_PER_MS + 1 : 0;
	archive_list_free(q.windows, q.count);
	return err;
}
