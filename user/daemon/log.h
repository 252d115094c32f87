/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_LOG_H
#define PROFIL_DAEMON_LOG_H

#include <stdbool.h>

#include "util/error.h"

/* What profild prints on standard error. */

void log_set_verbose(bool verbose);

enum log_kind {
	LOG_DETAIL, /* only with --verbose */
	LOG_NOTE,   /* always; for what happens once at most */
	/* As LOG_DETAIL: what a client is refused, with its process, user and the reason. Limited.
	 */
	LOG_REFUSAL,
};

void log_message(enum log_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_detail(...)	 log_message(LOG_DETAIL, __VA_ARGS__)
#define log_note(...)	 log_message(LOG_NOTE, __VA_ARGS__)
#define log_refusal(...) log_message(LOG_REFUSAL, __VA_ARGS__)

/* What failed, why, and the hint. */
void log_error(const struct error *e);

/* The same for errors that clients can cause again and again: a few per minute. */
void log_problem(const struct error *e);

#endif
