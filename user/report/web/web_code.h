/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_WEB_CODE_H
#define PROFIL_REPORT_WEB_CODE_H

#include "profile/callgraph.h"
#include "report/annotation.h"
#include "report/web/web.h"

/* The instructions and source lines of the busiest functions, as far as the page has room. */

#define WEB_CODE_FUNCTIONS 50
/*
 * Bound: files: bytes of code in a page, and time to find it; then: further functions have none;
 * seen: in a note of the page.
 */
#define WEB_CODE_BYTES (2 << 20) /* of text: about a fifth of that in the page */
#define WEB_CODE_STEPS 500000	 /* of the ways that stacks take through it */
/* Bound: as WEB_CODE_BYTES. */
#define WEB_CODE_NS (15 * NS_PER_S) /* for disassembling and reading debug information */

/* A function, or why it is shown without code. */
struct web_function {
	uint32_t location; /* one that is in it */
	bool has_code;	   /* `a` is set; else `why` */
	struct annotation a;
	struct error why;
	uint32_t *shown; /* of each instruction: its number in the page + 1; 0: not in it */
};

/* Of a source file, the lines that the page has. */
struct web_source {
	const struct source_file *file;
	bool *shown; /* of each line */
};

struct web_code {
	struct web_function *functions;
	size_t count;
	struct web_source *sources;
	size_t source_count, source_room;
	size_t bytes;
	/* Functions that have their share of samples, but are not in the page: because of limits */
	size_t left_by_number, left_by_bytes, left_by_time;
};

/*
 * Finds the code of functions with at least options->code_percent of the shown value, in themselves
 * or in what they call, the busiest first. Locations of p can get lines; see annotation_make().
 * Returns 0, or -ENOMEM with e set; call web_code_free() in any case.
 */
int web_code_make(struct web_code *c, struct profile *p, const struct web_options *options,
		  struct error *e);
void web_code_free(struct web_code *c);

/*
 * Prints it as members of the data. places: those of the page's graph; order: the numbers of the
 * samples as they are printed. Returns 0 or -ENOMEM.
 */
int web_code_print(const struct web_code *c, const struct profile *p,
		   const struct callgraph_places *places, const uint32_t *order,
		   struct web_writer *w);

#endif
