/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_FILTER_H
#define PROFIL_PROFILE_FILTER_H

#include "profile/profile.h"
#include "profile/tags.h"
#include "profile/thread_state.h"

/*
 * Zero-initialised: keep everything. Patterns are extended regular expressions, regex(7), without
 * back-references. Only the first 4 KiB of a name are matched.
 */
struct profile_filter {
	const char *focus;  /* keep only samples with a matching function in their stack */
	const char *ignore; /* remove samples with a matching function in their stack */
	/* Keep only samples in one of these states: bits 1 << enum thread_state; 0: in any. */
	unsigned int states;
	bool hide_idle;	    /* remove waits for work */
	const char *reason; /* keep only waits for this */
};

/*
 * What was removed from a profile, so that percentages can stay those of all samples.
 * Zero-initialised: nothing.
 */
struct profile_filtered {
	magnitude_sum *values;	    /* of each value; NULL: nothing was removed */
	enum profile_stacks stacks; /* the deepest of the removed samples */
	bool calls;		    /* counted calls were removed, too */
};

/*
 * Removes the samples that the filter excludes, and all arcs; p->all_samples becomes the number of
 * samples before that. A frame is matched by the names of its functions, inlined ones included, and
 * by its image's path if it has no name. Adds what it removes to *filtered, which the caller frees
 * with profile_filtered_free(). Afterwards, no sample or profile may be added to p. Returns 0, or a
 * negative errno with e set: -EINVAL: invalid pattern (ERROR_USAGE), the profile is unchanged.
 */
int profile_filter(struct profile *p, const struct profile_filter *filter,
		   struct profile_filtered *filtered, struct error *e);

/* Whether the states and the reason of a filter keep a sample. */
bool profile_is_in_state(const struct profile *p, const struct profile_sample *sample,
			 const struct profile_filter *filter);

/*
 * Removes the frames of a pprof file's drop_frames, as pprof does: in each stack, of the functions
 * whose whole name matches drop_frames and not keep_frames, the one nearest to the root, with all
 * that it called; but nothing if it has no caller that stays. Names are matched without parameters,
 * and with or without template arguments. Both patterns are untrusted. Returns 0, or a negative
 * errno with e set: -EINVAL for a pattern that is invalid, or too large, or would take too long, or
 * has syntax of Go alone; the profile is then as it was. After -ENOMEM it can only be freed.
 */
int profile_drop_frames(struct profile *p, struct error *e);
void profile_filtered_free(struct profile_filtered *filtered);

/*
 * Which samples to keep by their labels; zero-initialised: all. Each is a name or shell pattern,
 * fnmatch(3); of a unit, as below.
 */
struct profile_label_filter {
	const char *tags[TAG_COUNT]; /* the text of each */
	const char *label;	     /* NAME=PATTERN: the text of the tag NAME; NULL: any */
	const char *comm;	     /* of the process or the thread: TAG_PROCESS, TAG_THREAD */
	/* Other names for what tags[] asks for: */
	const char *user;	 /* NULL: none */
	char *const *containers; /* if there are any, no ID that begins with the pattern is meant */
	size_t container_count;
};

/* True if a pattern matches a systemd unit, or what is before its ".service". */
bool profile_unit_matches(const char *pattern, const char *unit);

/*
 * True if a pattern matches a container, or is the beginning of its ID: 4 digits or more, with
 * which its engine lists it.
 */
bool profile_container_matches(const char *pattern, const char *container);

/* True if it keeps everything. */
bool profile_label_filter_is_empty(const struct profile_label_filter *filter);

/*
 * Sets kept[], one for each of p's labels, to whether the filter keeps it. Returns the name of a
 * label that the filter asks for and no sample has, or NULL.
 */
const char *profile_match_labels(const struct profile *p, const struct profile_label_filter *filter,
				 bool *kept);

/*
 * Removes the samples, arcs and wall times that the filter excludes; p->all_samples becomes the
 * number of samples before that. Afterwards, no sample may be added. Sets *lacking (may be NULL) to
 * the name of a label that the filter asks for and no sample has, or to NULL. Returns 0 or -ENOMEM.
 */
int profile_filter_labels(struct profile *p, const struct profile_label_filter *filter,
			  const char **lacking);

/*
 * The interval in which a profile was recorded: all its ticks are in it. Both are 0 if it is
 * unknown.
 */
struct time_interval profile_recorded(const struct profile *p);

/*
 * Keeps the ticks whose times lie in an interval, or outside of it, the parts of waits that do, and
 * the samples that have some. These then count what is left: p has the values of its clock alone,
 * delay, and wall if waits have times; no arcs; and of threads the wall time that the samples have.
 * Ticks and waits without a time are removed. time_ns and duration_ns become those of the part of
 * the recording that is left, where a hole does not count; all_samples and all_duration_ns are set
 * as by the other filters. Afterwards, no sample may be added. Returns 0 or -ENOMEM; p must have
 * times.
 */
int profile_filter_times(struct profile *p, const struct time_interval *interval, bool outside);

/* The magnitudes of a value that were removed; filtered may be NULL. */
magnitude_sum profile_filtered_sum(const struct profile_filtered *filtered, size_t value);

/* What stacks the profile had before; filtered may be NULL. */
enum profile_stacks profile_stacks_unfiltered(const struct profile *p,
					      const struct profile_filtered *filtered);

#endif
