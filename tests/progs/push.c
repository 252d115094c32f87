// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pushes the windows of an archive: `push OPTION=VALUE... [for SECONDS]`, until none waits, or for
 * so long. Options are the members of struct push_options. Prints what is reported and, at the end,
 * the counters and how long the longest step took. As a real user would, it waits as long as
 * push_step() says; "hurry=1" asks at once for windows that come meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "push/push.h"
#include "util/clock.h"

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static bool stopped(void *context)
{
	(void)context;
	return ended;
}

static void print_report(enum push_report kind, const struct error *e, void *context)
{
	(void)context;
	printf("%s: %s\n", kind == PUSH_NOTE ? "note" : "problem", e->what);
	if (kind == PUSH_PROBLEM && e->hint[0])
		printf("hint: %s\n", e->hint);
	fflush(stdout);
}

static void set_option(struct push_options *o, const char *word)
{
	const struct {
		const char *name;
		const char **text;
		uint64_t *number;
	} options[] = {
		{ "url=", &o->url, NULL },
		{ "protocol=", &o->protocol, NULL },
		{ "token_file=", &o->token_file, NULL },
		{ "tenant=", &o->tenant, NULL },
		{ "ca=", &o->ca, NULL },
		{ "certificate=", &o->certificate, NULL },
		{ "key=", &o->key, NULL },
		{ "directory=", &o->directory, NULL },
		{ "host=", &o->host, NULL },
		{ "queue_bytes=", NULL, &o->queue_bytes },
		{ "timeout_ms=", NULL, &o->timeout_ms },
		{ "since_ns=", NULL, &o->since_ns },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		size_t size = strlen(options[i].name);

		if (strncmp(word, options[i].name, size) != 0)
			continue;
		if (options[i].text)
			*options[i].text = word + size;
		else
			*options[i].number = strtoull(word + size, NULL, 10);
		return;
	}
	fprintf(stderr, "push: no option: %s\n", word);
	exit(2);
}

static int fail(const struct error *e)
{
	fprintf(stderr, "push: %s\n", e->what);
	if (e->hint[0])
		fprintf(stderr, "push:   %s\n", e->hint);
	return e->kind == ERROR_USAGE ? 2 : 1;
}

static int push_until(struct push *p, uint64_t seconds)
{
	uint64_t end_ns = seconds ? now_ns() + seconds * NS_PER_S : UINT64_MAX, next_ms = 0;
	struct error e;

	while (!ended && now_ns() < end_ns) {
		if (push_step(p, &next_ms, &e)) {
			printf("error: %s\n", e.what);
			fflush(stdout);
			return 1;
		}
		if (next_ms == UINT64_MAX) {
			if (!seconds)
				break;
			next_ms = 100;
		}
		while (next_ms && !ended && now_ns() < end_ns) {
			uint64_t ms = next_ms < 50 ? next_ms : 50;

			usleep(ms * 1000);
			next_ms -= ms;
		}
	}
	return 0;
}

static void print_counters(const struct push *p)
{
	const struct push_counters *c = push_counters(p);

	printf("sent %" PRIu64 " refused %" PRIu64 " unreadable %" PRIu64 " dropped %" PRIu64
	       " rejected %" PRIu64 " retried %" PRIu64 " waiting %" PRIu64 "\n",
	       c->sent, c->refused, c->unreadable, c->dropped, c->rejected, c->retried, c->waiting);
	printf("bytes %" PRIu64 "\nwaiting_bytes %" PRIu64 "\nuntil %" PRIu64 "\n", c->bytes,
	       c->waiting_bytes, push_sent_until(p));
}

int main(int argc, char **argv)
{
	struct push_options options = { .report = print_report, .stopped = stopped, .host = "" };
	uint64_t seconds = 0;
	struct push *p;
	struct error e;
	int status;

	signal(SIGTERM, end);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "for") == 0 && argv[i + 1])
			seconds = strtoull(argv[++i], NULL, 10);
		else
			set_option(&options, argv[i]);
	}
	if (push_new(&options, &p, &e))
		return fail(&e);
	puts("ready");
	fflush(stdout);
	status = push_until(p, seconds);
	print_counters(p);
	push_free(p);
	return status;
}
