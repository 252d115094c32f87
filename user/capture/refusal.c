// SPDX-License-Identifier: GPL-2.0-only
#include "capture/refusal.h"

#define HOUR_S 3600

const char *const refusal_names[REFUSAL_CAUSES] = {
	[REFUSAL_NO_ANSWER] = "no_answer",	 [REFUSAL_UNWIND_TIME] = "unwind_time",
	[REFUSAL_UNWIND_ROOM] = "unwind_room",	 [REFUSAL_UNWIND_PROCESS] = "unwind_process",
	[REFUSAL_SCRIPT_NAMES] = "script_names",
};

const enum account_number refusal_counters[REFUSAL_CAUSES] = {
	[REFUSAL_NO_ANSWER] = ACCOUNT_no_answer,
	[REFUSAL_UNWIND_TIME] = ACCOUNT_unwind_time,
	[REFUSAL_UNWIND_ROOM] = ACCOUNT_unwind_room,
	[REFUSAL_UNWIND_PROCESS] = ACCOUNT_unwind_process,
	[REFUSAL_SCRIPT_NAMES] = ACCOUNT_codes_lost,
};

void refusals_add(struct refusals *r, uint32_t uid, enum refusal_cause cause, uint64_t count,
		  uint64_t now_s)
{
	/* The last ones are for all others. */
	const size_t most = REFUSALS_MAX - (uid == REFUSAL_OTHERS ? 0 : REFUSAL_CAUSES);
	struct refusal *its = NULL, *oldest = NULL;

	if (!count)
		return;
	for (size_t i = 0; i < r->count && !its; i++)
		if (r->all[i].uid == uid && r->all[i].cause == cause)
			its = &r->all[i];
	if (!its && r->count < most) {
		its = &r->all[r->count++];
		*its = (struct refusal){ .uid = uid, .cause = cause };
	}
	for (size_t i = 0; i < r->count && !its; i++)
		if (r->all[i].uid != REFUSAL_OTHERS &&
		    (!oldest || r->all[i].last_s < oldest->last_s))
			oldest = &r->all[i];
	if (!its && oldest && oldest->last_s + HOUR_S <= now_s) {
		its = oldest;
		*its = (struct refusal){ .uid = uid, .cause = cause };
	}
	if (its) {
		its->count += count;
		its->last_s = now_s;
	} else if (uid != REFUSAL_OTHERS) {
		refusals_add(r, REFUSAL_OTHERS, cause, count, now_s);
	}
}
