/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_MOMENT_H
#define PROFIL_REPORT_MOMENT_H

#include "report/diff/comparison.h"
#include "report/report.h"

/*
 * What was different in a moment: which processes, threads and functions (by self, and with what
 * they call) used more or less CPU time than in another part of the same recording, and where
 * threads waited longer or less, by more than chance allows. [OLD] is what the moment, [NEW], is
 * compared with. Of waits that are too few for chance to judge, those are kept that took another
 * tenth of a thread's time.
 */

struct moment_difference {
	const struct row_view *view;
	size_t view_number; /* in the order of moment_make() */
	const struct row *row;
	bool total;	       /* with what it calls */
	bool is_wait;	       /* its samples are waits */
	double percent[SIDES]; /* of a CPU: CPU time by time; of a wait, of a thread */
	struct chance chance; /* p is corrected for all that was tested; least: of unjudged waits */
};

struct moment {
	const struct profile *profiles[SIDES];
	struct moment_difference *differences; /* the largest first */
	size_t count;
	size_t tested;	 /* how many could have differed, by the number of their samples */
	size_t unjudged; /* of the differences: waits that chance cannot judge */

	/* private to moment.c */
	struct rows *rows; /* of each view */
	size_t view_count;
};

/*
 * Compares two parts of a recording by these rows, or if o->view is NULL by process, thread and
 * function; and waits where rows are functions, or by states. Both have samples of a clock of the
 * same period, and a length. Returns 0 or -ENOMEM; call moment_free() in any case.
 */
int moment_make(struct moment *m, const struct profile *other, const struct profile *moment,
		const struct rows_options *o);
void moment_free(struct moment *m);

/*
 * Prints the differences as a table, or that there are none:
 *
 *     other%  moment%  diff  p  what  name  where
 *
 * name_of_other: what the first column is called. Returns 0 or -ENOMEM.
 */
int moment_print(const struct moment *m, const char *name_of_other,
		 const struct report_table_options *o, FILE *out);
int moment_json(const struct moment *m, const struct report_table_options *o, FILE *out);

/* Prints three lines, begun by `prefix`: the two parts by their names, and what was compared. */
void moment_summary(const struct moment *m, const char *const *names, const char *prefix,
		    FILE *out);

#endif
