/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_WEB_H
#define PROFIL_REPORT_WEB_H

#include "report/report.h"

/*
 * One self-contained page, to be looked at with a browser: flame graph, callers and callees, table,
 * time, states. It has the profile whole, in a compressed form, and computes what it shows.
 */

struct web_options {
	const char *title;
	const char *value; /* what is shown first: profile_value() */
};

/*
 * Prints the page of a profile; earlier: what it is compared with, or NULL. Returns 0 or a negative
 * errno with e set.
 */
int web_print(const struct profile *p, const struct profile *earlier, const struct web_options *o,
	      FILE *out, struct error *e);

/* web_data.c: prints the data as JSON. Returns 0 or -ENOMEM. */
int web_print_data(const struct profile *p, const struct profile *earlier,
		   const struct web_options *o, FILE *out);

#endif
