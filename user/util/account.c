// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/account.h"

#include <inttypes.h>
#include <string.h>

#include "util/sum.h"

#define COUNTER(name, what, ...) { #name, what, __VA_ARGS__ },

const struct account_counter account_counters[ACCOUNT_COUNT] = { ACCOUNT_COUNTERS(COUNTER) };

void account_merge(struct account *to, const struct account *from)
{
	const uint64_t ticks = to->ticks;

	for (int i = 0; i < ACCOUNT_COUNT; i++) {
		uint64_t *sum = &to->values[i], value = from->values[i];

		switch (account_counters[i].merge) {
		case ACCOUNT_SUM:
			add_u64(sum, value);
			break;
		case ACCOUNT_MAX:
			*sum = *sum > value ? *sum : value;
			break;
		case ACCOUNT_MEAN:
			if (!*sum || !value) /* it was not measured */
				*sum = *sum ?: value;
			else if (!ticks && !from->ticks)
				*sum = (*sum + value) / 2;
			else
				*sum = ((double)*sum * ticks + (double)value * from->ticks) /
				       ((double)ticks + from->ticks);
			break;
		case ACCOUNT_FIRST:
			*sum = *sum ?: value;
			break;
		}
	}
}

void account_say(const struct account *a, bool losses, const char *prefix, FILE *out)
{
	for (int i = 0; i < ACCOUNT_COUNT; i++) {
		const struct account_counter *c = &account_counters[i];
		const char *number = strchr(c->what, '#');

		if (!a->values[i] || !c->said || (losses && !c->loss))
			continue;
		if (number)
			fprintf(out, "%s%.*s%" PRIu64 "%s\n", prefix, (int)(number - c->what),
				c->what, a->values[i], number + 1);
		else
			fprintf(out, "%s%" PRIu64 " %s\n", prefix, a->values[i], c->what);
	}
}
