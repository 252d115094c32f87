// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/text.h"
#include "util/clock.h"

/*
 * How many problems and refusals are printed per interval.
 * Bound: users: lines of problems in the log, in INTERVAL_NS; then: further ones are counted;
 * again: at the next minute; share: none: one user can hide another's; seen: the log says how many
 * were not printed.
 */
#define MAX_PROBLEMS 3
/*
 * Bound: users: lines of refusals in the log, in INTERVAL_NS, with --verbose; then: further ones
 * are counted; again: at the next minute; share: none: one user can hide another's; seen: the log
 * says how many were not printed.
 */
#define MAX_REFUSALS 30
#define INTERVAL_NS  (60 * NS_PER_S)

static bool verbose;

void log_set_verbose(bool on)
{
	verbose = on;
}

/* The text may hold paths of other users' programs, which are untrusted. */
static void print_line(const char *indent, const char *text)
{
	text_printf(stderr, "profild: %s%s\n", indent, text);
}

void log_error(const struct error *e)
{
	print_line("", e->what);
	if (e->hint[0])
		print_line("  ", e->hint);
}

/* Messages that clients can cause again and again. */
struct flow {
	const char *what;
	unsigned long limit; /* printed per interval */
	uint64_t interval_start_ns;
	unsigned long printed, dropped; /* in this interval */
};

/* Returns whether one more may be printed now; if not, counts it. */
static bool flow_allows(struct flow *flow)
{
	uint64_t now = now_ns();

	if (now - flow->interval_start_ns >= INTERVAL_NS) {
		if (flow->dropped)
			fprintf(stderr, "profild: %lu more %s were not printed\n", flow->dropped,
				flow->what);
		flow->interval_start_ns = now;
		flow->printed = flow->dropped = 0;
	}
	if (flow->printed == flow->limit) {
		flow->dropped++;
		return false;
	}
	flow->printed++;
	return true;
}

void log_problem(const struct error *e)
{
	static struct flow problems = { "problems", MAX_PROBLEMS, 0, 0, 0 };

	if (flow_allows(&problems))
		log_error(e);
}

void log_message(enum log_kind kind, const char *format, ...)
{
	static struct flow refusals = { "refusals", MAX_REFUSALS, 0, 0, 0 };
	va_list arguments;
	char *text;

	if ((kind != LOG_NOTE && !verbose) || (kind == LOG_REFUSAL && !flow_allows(&refusals)))
		return;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (text)
		print_line("", text);
	free(text);
}
