/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_WEB_H
#define PROFIL_REPORT_WEB_H

#include "report/report.h"
#include "util/table.h"

/*
 * One self-contained page, to be looked at with a browser: flame graph, callers and callees, table,
 * time, states. It has the profile whole, in a compressed form, and computes what it shows.
 */

/*
 * A page with more call paths is an error: no browser could show it.
 * Bound: files: call paths of a page; then: it is not written.
 */
#define WEB_PATHS_MAX 4000000

struct web_options {
	const char *title;
	const char *value;	 /* what is shown first: profile_value() */
	double code_percent;	 /* the least share of functions whose code is in the page */
	bool no_code;		 /* none is */
	bool no_sources;	 /* only instructions */
	const char *source_path; /* as in annotation_options, and debuginfod */
	bool debuginfod;
};

/*
 * Prints the page of a profile, whose locations can get lines; earlier: what it is compared with,
 * or NULL. Returns 0 or a negative errno with e set.
 */
int web_print(struct profile *p, const struct profile *earlier, const struct web_options *o,
	      FILE *out, struct error *e);

/* Prints lists as members of an object of JSON, on lines of their own. */
struct web_writer {
	FILE *out;
	bool in_list;	     /* a list is being printed, and has an element */
	int err;	     /* 0 or -ENOMEM: the first error */
	TABLE(char *) texts; /* of the page, each once: lists have their numbers */
};

void web_begin_list(struct web_writer *w, const char *key);
void web_number(struct web_writer *w, int64_t number);

/* Prints the number of a text, which is added to those of the page. */
void web_text_number(struct web_writer *w, const char *text);

/* Characters that would disturb the reader are printed as their numbers. */
void web_text(struct web_writer *w, const char *text);
void web_end_list(struct web_writer *w);

/*
 * A list of an expression for each i from 0 to before count; of those for which a condition holds.
 * print: web_number, web_text_number or web_text.
 */
#define WEB_LIST(w, key, print, i, count, expression) \
	WEB_LIST_IF(w, key, print, i, count, true, expression)
#define WEB_LIST_IF(w, key, print, i, count, condition, expression) \
	do {                                                        \
		web_begin_list(w, key);                             \
		for (size_t i = 0; i < (count) && !(w)->err; i++)   \
			if (condition)                              \
				print(w, expression);               \
		web_end_list(w);                                    \
	} while (0)

/* Sets *id to the number of a text. Returns 0 or -ENOMEM. */
int web_add_text(struct web_writer *w, const char *text, uint32_t *id);

/* web_data.c: prints the data as JSON. Returns 0, -ENOMEM or -E2BIG. */
struct web_code;
int web_print_data(const struct profile *p, const struct profile *earlier,
		   const struct web_code *code, const struct web_options *o, FILE *out);

/*
 * Prints why the slowest turns and waits took so long, as profiltool why says: as a member "why" of
 * the data, if each wait was recorded; else nothing. Returns 0 or
 * -ENOMEM.
 */
int web_why_print(const struct profile *p, struct web_writer *w);

#endif
