/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_DAEMON_COMMAND_LINE_H
#define PROFIL_DAEMON_COMMAND_LINE_H

#include <stdbool.h>

#include "daemon/account.h"
#include "daemon/continuous_options.h"
#include "daemon/record_worker.h"
#include "util/error.h"

/* What profild is to do. */
struct command_line {
	/* At most one of these; none: serve clients that call profil(2). */
	bool is_continuous; /* record the machine into an archive */
	bool is_record;	    /* record processes on behalf of their users */
	bool is_status;	    /* print what the process that records does */
	bool is_printed;    /* help or version is printed, and no more to be done */
	const char *socket;
	struct limits limits;
	const char *record_socket;
	struct record_limits record;
	struct continuous_options continuous;
	bool json;	   /* of the status */
	char *config_text; /* what texts of --config point into; the caller frees it */
};

/*
 * Reads the arguments, which *c refers to afterwards, and the file of --config, and prints help and
 * version. Returns 0, or a negative errno with e set. c->config_text is to be freed in any case.
 */
int command_line_read(int argc, char **argv, struct command_line *c, struct error *e);

#endif
