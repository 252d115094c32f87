// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "util/clock.h"

#define MOST_PROBLEMS 3 /* in so long: */
#define INTERVAL_NS   (60 * NS_PER_S)

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

void log_error(const struct error *e)
{
	fprintf(stderr, "profild: %s\n", e->what);
	if (e->mend[0])
		fprintf(stderr, "profild:   %s\n", e->mend);
}

void log_problem(const struct error *e)
{
	static uint64_t interval_start_ns;
	static unsigned long said, unsaid;
	uint64_t now = now_ns();

	if (now - interval_start_ns >= INTERVAL_NS) {
		if (unsaid)
			fprintf(stderr, "profild: %lu more problems were not told\n", unsaid);
		interval_start_ns = now;
		said = unsaid = 0;
	}
	if (said < MOST_PROBLEMS) {
		said++;
		log_error(e);
	} else {
		unsaid++;
	}
}
