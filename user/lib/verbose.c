// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/verbose.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/last_error.h"
#include "util/clock.h"

static struct {
	bool noted, known;
	dev_t device;
	ino_t inode;
} standard_error; /* when the library was loaded, if PROFIL_VERBOSE is 1 */

/* Bound: state. */
static bool failed;	/* and that was printed */
static bool named_here; /* PROFIL_RUN names this process */

/*
 * When the library is loaded. Before its constructors those of other libraries may call it: the
 * compiler's has each start what gcc -pg links into the program.
 */
__attribute__((constructor)) static void note_standard_error(void)
{
	const char *verbose = secure_getenv("PROFIL_VERBOSE"), *named = secure_getenv("PROFIL_RUN");
	int code = errno;
	struct stat status;

	if (standard_error.noted)
		return;
	if (verbose && strcmp(verbose, "1") == 0 && fstat(STDERR_FILENO, &status) == 0) {
		named_here = named && atoi(named) == getpid();
		standard_error.known = true;
		standard_error.device = status.st_dev;
		standard_error.inode = status.st_ino;
	}
	standard_error.noted = true;
	errno = code;
}

void profil__verbose_forked(void)
{
	named_here = false;
}

bool profil__is_verbose(void)
{
	note_standard_error();
	return standard_error.known;
}

__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...)
{
	char line[ERROR_SIZE + 64];
	struct stat status;
	va_list arguments;
	size_t length;

	if (!profil__is_verbose() || fstat(STDERR_FILENO, &status) ||
	    status.st_dev != standard_error.device || status.st_ino != standard_error.inode)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	length = strlen(line);
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, length) < 0)
		return; /* it is a diagnostic, and not worth a failure */
}

void profil__print_backend(const char *name, const char *skipped)
{
	failed |= !name;
	print_line("profil: back end: %s%s%s%s", name ? name : "none", *skipped ? " (" : "",
		   skipped, *skipped ? ")" : "");
}

void profil__print_failure(void)
{
	int code = errno;

	if (!__atomic_exchange_n(&failed, true, __ATOMIC_RELAXED))
		print_line("profil: profil() failed: %s", profil__error_text());
	errno = code;
}

void profil__print_sum(const struct profil_sum *sum, bool used)
{
	char ticks[64] = "an unknown number of", lost[64] = "";

	if (!sum->no_ticks)
		snprintf(ticks, sizeof(ticks), "%" PRIu64, sum->ticks);
	if (sum->lost)
		snprintf(lost, sizeof(lost), ", %" PRIu64 " of them lost", sum->lost);
	if (sum->backend)
		print_line("profil: %s: %s ticks at %" PRIu64 " Hz in %.3f s of CPU time%s",
			   sum->backend, ticks, (NS_PER_S + sum->tick_ns / 2) / sum->tick_ns,
			   (double)sum->cpu_ns / NS_PER_S, lost);
	else if (named_here && failed)
		print_line("profil: no ticks were counted: profil() failed");
	else if (named_here && !used)
		print_line("profil: no ticks were counted in %s itself: it did not call profil(), "
			   "and was not built with gcc -pg",
			   program_invocation_short_name);
}
