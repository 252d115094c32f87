// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "report/text.h"
#include "util/clock.h"

/* How many problems are printed per interval. */
#define MAX_PROBLEMS 3
#define INTERVAL_NS  (60 * NS_PER_S)

static bool verbose;

void log_set_verbose(bool on)
{
	verbose = on;
}

static void print(const char *format, va_list arguments)
{
	fputs("profild: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

void log_detail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (verbose)
		print(format, arguments);
	va_end(arguments);
}

void log_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments);
	va_end(arguments);
}

/* The text may hold paths of other users' programs, which are untrusted. */
static void print_line(const char *indent, const char *text)
{
	fprintf(stderr, "profild: %s", indent);
	text_print(text, stderr);
	fputc('\n', stderr);
}

void log_error(const struct error *e)
{
	print_line("", e->what);
	if (e->hint[0])
		print_line("  ", e->hint);
}

void log_problem(const struct error *e)
{
	static uint64_t interval_start_ns;
	static unsigned long printed, dropped;
	uint64_t now = now_ns();

	if (now - interval_start_ns >= INTERVAL_NS) {
		if (dropped)
			fprintf(stderr, "profild: %lu more problems were not printed\n", dropped);
		interval_start_ns = now;
		printed = dropped = 0;
	}
	if (printed < MAX_PROBLEMS) {
		printed++;
		log_error(e);
	} else {
		dropped++;
	}
}
