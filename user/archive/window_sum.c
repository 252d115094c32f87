// SPDX-License-Identifier: GPL-2.0-only
#include "archive/window_sum.h"

#include <errno.h>
#include <sys/stat.h>

#include "archive/coarsen.h"
#include "format/format.h"
#include "profile/merge.h"

/* A sum is made smaller when it has this multiple of what it may have in the end. */
#define GROWTH 4

/*
 * As a window may have: CONTEXT_VALUES of two banks.
 * Bound: users: different texts of labels in a sum of windows; then: samples with others are
 * labelled [others]; again: at the next sum; share: services have evenly what others leave; seen:
 * context_others.
 */
#define LABELS_MAX 4064

static int read_window(const char *path, const struct input_options *options, struct profile **p,
		       struct error *e)
{
	struct stat status;

	if (lstat(path, &status))
		return error_set(e, errno, "cannot read %s", path);
	if (!S_ISREG(status.st_mode))
		return error_set(e, 0, "%s is not a regular file", path);
	if (!status.st_size)
		return error_set(e, 0, "%s is empty", path);
	return format_read(path, options, p, e);
}

int window_read_part(const char *path, struct tick_choice *ticks, bool no_code, struct profile **p,
		     struct error *e)
{
	const struct input_options options = { .foreign = true,
					       .ticks = ticks,
					       .no_code = no_code };

	return read_window(path, &options, p, e);
}

int window_read_stacks(const char *path, const struct stack_choice *stacks, struct profile **p,
		       struct error *e)
{
	const struct input_options options = { .foreign = true, .stacks = stacks };

	return read_window(path, &options, p, e);
}

int window_read(const char *path, struct profile **p, struct error *e)
{
	return window_read_part(path, NULL, false, p, e);
}

/*
 * Replaces the sum by one with at most this multiple of LABELS_MAX and, if it has more than that of
 * s->most stacks, at most s->most.
 */
static int shorten_sum(struct window_sum *s, unsigned int multiple, struct error *e)
{
	struct profile *shorter;
	double share = 0;
	bool over;
	int err = coarsen_limit_labels(s->p, (size_t)LABELS_MAX * multiple, &over);

	if (!err && !over && s->p->sample_count <= multiple * s->most)
		return 0;
	shorter = profile_new();
	if (err || !shorter ||
	    (s->p->sample_count > multiple * s->most && coarsen_shorten(s->p, s->most, &share)))
		err = error_no_memory(e);
	err = err ?: profile_merge(shorter, s->p, NULL, e);
	if (err) {
		profile_free(shorter);
		return err;
	}
	profile_free(s->p);
	s->p = shorter;
	/* Of what is added up in parts, about this share, as each part is shortened alike. */
	s->coverage.shortened = MAX(s->coverage.shortened, share);
	return 0;
}

/* Limits users to this multiple of their share. */
static int limit_users(struct window_sum *s, unsigned int multiple, struct error *e)
{
	const struct user_share share = { s->share.bytes * multiple, s->share.walls * multiple };

	return share.bytes ? user_share_limit(&s->p, &share, e) : 0;
}

int window_sum_add(struct window_sum *s, struct profile *p, struct error *e)
{
	int err;

	s->p = s->p ?: profile_new();
	if (s->p && s->p->ticks.count + p->ticks.count > s->most_ticks) {
		s->p->ticks.count = p->ticks.count = 0;
		s->most_ticks = 0;
	}
	/* Chains are of windows as they were recorded. */
	if (s->p && p->waits.count && coarsen_drop_times(p)) {
		profile_free(p);
		return error_no_memory(e);
	}
	if (!s->p || coverage_add(&s->coverage, p) || coarsen_simplify(p, s->tasks))
		err = error_no_memory(e);
	else
		err = profile_merge(s->p, p, NULL, e);
	err = err ?: shorten_sum(s, GROWTH, e);
	if (!err)
		err = limit_users(s, GROWTH, e);
	profile_free(p);
	return err;
}

int window_sum_finish(struct window_sum *s, const struct profile **p, struct error *e)
{
	int err = shorten_sum(s, 1, e);

	err = err ?: limit_users(s, 1, e);
	coverage_join(&s->coverage);
	if (!err && coverage_describe(&s->coverage, s->p))
		err = error_no_memory(e);
	*p = s->p;
	return err;
}

void window_sum_free(struct window_sum *s)
{
	profile_free(s->p);
	coverage_free(&s->coverage);
	*s = (struct window_sum){ 0 };
}
