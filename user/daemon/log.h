/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_LOG_H
#define PROFIL_DAEMON_LOG_H

#include <stdbool.h>

#include "util/error.h"

/* What profild prints on standard error. */

/* Only with --verbose. */
void log_set_verbose(bool verbose);
void log_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Always; for what happens once at most. */
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What failed, why, and the hint. */
void log_error(const struct error *e);

/* The same for errors that clients can cause again and again: a few per minute. */
void log_problem(const struct error *e);

/*
 * Only with --verbose: what a client is refused, with its process, user and the reason. Limited,
 * too.
 */
void log_refusal(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
