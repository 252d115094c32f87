/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_LOG_H
#define PROFIL_DAEMON_LOG_H

#include <stdbool.h>

#include "util/error.h"

/* What profild says on standard error. */

/* With --verbose. */
void log_set_verbose(bool verbose);
void log_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Without it, too: not more often than once. */
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Why something failed and how to mend it. */
void log_error(const struct error *e);

/* The same for what clients can bring about again and again: not more than a few in a minute. */
void log_problem(const struct error *e);

#endif
