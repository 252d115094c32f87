// SPDX-License-Identifier: GPL-2.0-only
#include "profile/filter.h"

#include "report/text.h"
#include "tool/tool.h"
#include "util/number.h"

static void describe(const struct profile_filter *f, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s%s%s", f->focus ? "--focus " : "", f->focus ?: "",
		 f->focus && f->ignore ? " " : "", f->ignore ? "--ignore " : "", f->ignore ?: "");
}

int tool_filter(struct profile *p, const struct profile_filter *filter, const char *value,
		struct profile_filtered *filtered, struct error *e)
{
	uint64_t all = profile_total(p, value);
	char percent[TEXT_PERCENT_SIZE], what[512];
	int err = profile_filter(p, filter, filtered, e);

	if (err || (!filter->focus && !filter->ignore))
		return err;
	describe(filter, what, sizeof(what));
	text_percent(percent, profile_total(p, value), all);
	tool_warn("%s keeps %s %% of the samples", what, percent);
	return 0;
}

int tool_option_percent(const char *value, void *member, struct error *e)
{
	uint64_t billionths;

	/* As seconds: a decimal number, fractions allowed, whatever the locale. */
	if (number_parse_seconds(value, &billionths) || billionths > UINT64_C(100000000000))
		return error_set(e, 0, "--percent takes a number from 0 to 100, not \"%s\"", value);
	*(double *)member = (double)billionths / 1e9;
	return 0;
}
