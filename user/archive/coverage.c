// SPDX-License-Identifier: GPL-2.0-only
#include "archive/coverage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"
#include "util/sum.h"

static int add_span(struct coverage *c, uint64_t start_ns, uint64_t end_ns)
{
	return array_add(c->spans, c->count, c->room, (struct coverage_span){ start_ns, end_ns });
}

/* Returns the text that follows `name` in a comment, or NULL. */
static const char *value_of(const char *comment, const char *name)
{
	size_t size = strlen(name);

	return strncmp(comment, name, size) == 0 ? comment + size : NULL;
}

int coverage_add(struct coverage *c, const struct profile *p)
{
	uint64_t start_ns = p->time_ns, left_ns = p->duration_ns, windows = 1;

	for (size_t i = 0; i < p->comment_count; i++) {
		const char *count = value_of(p->comments[i], COVERAGE_WINDOWS);
		const char *share = value_of(p->comments[i], COVERAGE_SHORTENED);

		if (count)
			windows = strtoull(count, NULL, 10);
		if (share && strtod(share, NULL) > c->shortened)
			c->shortened = strtod(share, NULL);
	}
	add_u64(&c->windows, windows);
	/* The gaps of a sum are in order. */
	for (size_t i = 0; i < p->comment_count; i++) {
		const char *gap = value_of(p->comments[i], COVERAGE_GAP);
		uint64_t at_s, size_s, at_ns;

		if (!gap || sscanf(gap, "%" SCNu64 "+%" SCNu64, &at_s, &size_s) != 2 ||
		    at_s > UINT64_MAX / NS_PER_S / 2 || size_s > UINT64_MAX / NS_PER_S / 2)
			continue;
		at_ns = at_s * NS_PER_S;
		if (at_ns <= start_ns || at_ns - start_ns > left_ns)
			continue;
		if (add_span(c, start_ns, at_ns))
			return -ENOMEM;
		left_ns -= at_ns - start_ns;
		start_ns = at_ns + size_s * NS_PER_S;
	}
	return add_span(c, start_ns, start_ns + left_ns);
}

ORDER(by_start, struct coverage_span, LEAST(start_ns) ?: LEAST(end_ns))

void coverage_join(struct coverage *c)
{
	size_t kept = 0;

	if (!c->count)
		return;
	qsort(c->spans, c->count, sizeof(*c->spans), by_start);
	for (size_t i = 1; i < c->count; i++) {
		struct coverage_span *last = &c->spans[kept], *next = &c->spans[i];

		if (next->start_ns > last->end_ns &&
		    next->start_ns - last->end_ns >= COVERAGE_SLACK_NS)
			c->spans[++kept] = *next;
		else if (next->end_ns > last->end_ns)
			last->end_ns = next->end_ns;
	}
	c->count = kept + 1;
}

void coverage_free(struct coverage *c)
{
	free(c->spans);
	*c = (struct coverage){ 0 };
}

__attribute__((format(printf, 2, 3))) static int add_comment(struct profile *p, const char *format,
							     ...)
{
	va_list arguments;
	char text[128];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return profile_add_comment(p, text);
}

int coverage_describe(const struct coverage *c, struct profile *sum)
{
	size_t kept = 0;
	int err;

	for (size_t i = 0; i < sum->comment_count; i++)
		if (!value_of(sum->comments[i], COVERAGE_WINDOWS) &&
		    !value_of(sum->comments[i], COVERAGE_GAP) &&
		    !value_of(sum->comments[i], COVERAGE_SHORTENED))
			sum->comments[kept++] = sum->comments[i];
	sum->comment_count = kept;
	err = add_comment(sum, COVERAGE_WINDOWS "%" PRIu64, c->windows);
	if (c->shortened > 0)
		err = err ?: add_comment(sum, COVERAGE_SHORTENED "%.6f", c->shortened);
	for (size_t i = 1; i < c->count && !err; i++) {
		uint64_t from = c->spans[i - 1].end_ns, to = c->spans[i].start_ns;

		err = add_comment(sum, COVERAGE_GAP "%" PRIu64 "+%" PRIu64,
				  (from + NS_PER_S / 2) / NS_PER_S, (to - from) / NS_PER_S);
	}
	if (c->count)
		sum->time_ns = c->spans[0].start_ns;
	return err;
}
