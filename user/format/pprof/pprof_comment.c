// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "format/pprof/pprof.h"
#include "util/scan.h"

#define PREFIX	  "profil:"
#define LOST	  "lost."
#define STACK_END "stack_end."
#define THROTTLED "throttled="

/*
 * Bounds on untrusted input: each new entry is searched for among all.
 * Bound: files: causes, ends of stacks, throttled groups and types in comments; then: further ones
 * stay comments; seen: as comments.
 */
#define LOST_MAX       256
#define STACK_ENDS_MAX 256
#define THROTTLED_MAX  4096
#define TYPES_MAX      1024

/* A member of a structure that is written as KEY=VALUE unless it is "" or 0. */
struct member {
	const char *key;
	enum kind {
		MEMBER_TEXT,
		MEMBER_NUMBER
	} kind;
	size_t offset;
};

#define PROFILE_MEMBER(kind, name)                          \
	{                                                   \
#name, kind, offsetof(struct profile, name) \
	}
#define VALUE_MEMBER(kind, name)                                       \
	{                                                              \
#name, kind, offsetof(struct profile_value_type, name) \
	}

static const struct member profile_members[] = {
	PROFILE_MEMBER(MEMBER_TEXT, event),
	PROFILE_MEMBER(MEMBER_TEXT, stacks),
	PROFILE_MEMBER(MEMBER_TEXT, host),
	PROFILE_MEMBER(MEMBER_TEXT, command),
	PROFILE_MEMBER(MEMBER_NUMBER, frequency),
	PROFILE_MEMBER(MEMBER_NUMBER, bucket),
	PROFILE_MEMBER(MEMBER_NUMBER, all_samples),
	PROFILE_MEMBER(MEMBER_NUMBER, all_cpu_ns),
	PROFILE_MEMBER(MEMBER_NUMBER, all_duration_ns),
};

/* KEY.TYPE=VALUE */
static const struct member value_members[] = {
	VALUE_MEMBER(MEMBER_TEXT, title),
	VALUE_MEMBER(MEMBER_TEXT, formula),
	VALUE_MEMBER(MEMBER_NUMBER, period),
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* --- Writing --- */

struct output {
	pprof_comment *comment;
	void *context;
};

__attribute__((format(printf, 2, 3))) static int emit(const struct output *o, const char *format,
						      ...)
{
	va_list arguments;
	char *text;
	int size, err;

	va_start(arguments, format);
	size = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (size < 0)
		return -ENOMEM;
	err = o->comment(o->context, text);
	free(text);
	return err;
}

/* Writes a member; gap and type follow the key. */
static int write_member(const struct output *o, const void *base, const struct member *m,
			const char *gap, const char *type)
{
	const char *from = (const char *)base + m->offset, *text = NULL;
	uint64_t number = 0;

	if (m->kind == MEMBER_TEXT)
		memcpy(&text, from, sizeof(text));
	else
		memcpy(&number, from, sizeof(number));
	if (text && *text)
		return emit(o, PREFIX "%s%s%s=%s", m->key, gap, type, text);
	if (number)
		return emit(o, PREFIX "%s%s%s=%" PRIu64, m->key, gap, type, number);
	return 0;
}

int pprof_comment_write(const struct profile *p, size_t period_type, pprof_comment *comment,
			void *context)
{
	const struct output o = { comment, context };
	const struct profile_totals *t = &p->totals;
	int err = 0;

	for (size_t i = 0; i < COUNT(profile_members) && !err; i++)
		err = write_member(&o, p, &profile_members[i], "", "");
	/* Zeros are omitted, except for ticks, which shows that there is an account. */
	for (int i = 0; t->known && i < ACCOUNT_COUNT && !err; i++)
		if (t->account.values[i] || i == ACCOUNT_ticks)
			err = emit(&o, PREFIX "%s=%" PRIu64, account_counters[i].name,
				   t->account.values[i]);
	for (size_t i = 0; t->known && i < t->lost_count && !err; i++)
		err = emit(&o, PREFIX LOST "%s=%" PRIu64, t->lost[i].cause, t->lost[i].count);
	for (size_t i = 0; t->known && i < t->stack_end_count && i < STACK_ENDS_MAX && !err; i++)
		err = emit(&o, PREFIX STACK_END "%s=%" PRIu64 " %s", t->stack_ends[i].cause,
			   t->stack_ends[i].count, t->stack_ends[i].image);
	for (size_t i = 0; t->known && i < t->throttled_count && i < THROTTLED_MAX && !err; i++) {
		const struct profile_throttled *g = &t->throttled[i];

		err = emit(&o,
			   PREFIX THROTTLED "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
					    " %" PRIu64 " %s",
			   g->throttled_ns, g->throttled_periods, g->periods, g->quota_ns,
			   g->every_ns, g->cgroup);
	}
	/* For formats whose slots have the target's width and byte order. */
	if (!err && p->bits == 32)
		err = emit(&o, PREFIX "bits=32");
	if (!err && p->big_endian)
		err = emit(&o, PREFIX "endian=big");
	for (size_t i = 0; i < p->value_type_count; i++)
		for (size_t j = 0; j < COUNT(value_members) && !err; j++)
			if (i != period_type || strcmp(value_members[j].key, "period") != 0)
				err = write_member(&o, &p->value_types[i], &value_members[j], ".",
						   p->value_types[i].type);
	return err;
}

/* --- Reading --- */

/* Sets the member to VALUE; *taken: whether that is valid. Returns 0 or -ENOMEM. */
static int read_member(struct profile *p, void *base, const struct member *m, struct text value,
		       bool *taken)
{
	char *to = (char *)base + m->offset;
	const char *text;
	uint64_t number;

	if (m->kind == MEMBER_TEXT) {
		*taken = !is_empty(&value);
		if (!*taken)
			return 0;
		if (profile_string_n(p, value.at, value.end - value.at, &text))
			return -ENOMEM;
		memcpy(to, &text, sizeof(text));
		return 0;
	}
	*taken = take_number(&value, 10, &number) && is_empty(&value);
	if (!*taken)
		return 0;
	memcpy(to, &number, sizeof(number));
	return 0;
}

/* CAUSE=COUNT, where the cause may contain a "="; or, of a stack's end, CAUSE=COUNT IMAGE. */
static int read_cause(struct profile *p, struct text rest, bool is_end, bool *taken)
{
	const char *equals =
		is_end ? memchr(rest.at, '=', rest.end - rest.at) : last_of(&rest, '=');
	struct text number = { equals ? equals + 1 : rest.end, rest.end };
	const char *cause, *image;
	uint64_t count;

	*taken = equals && equals > rest.at && take_number(&number, 10, &count) &&
		 (is_end ? p->totals.stack_end_count < STACK_ENDS_MAX && take(&number, " ")
			 : p->totals.lost_count < LOST_MAX && is_empty(&number));
	if (!*taken)
		return 0;
	if (profile_string_n(p, rest.at, equals - rest.at, &cause))
		return -ENOMEM;
	if (is_end)
		return profile_string_n(p, number.at, number.end - number.at, &image)
			       ?: profile_add_stack_end(p, cause, image, count);
	p->totals.known = true;
	return profile_add_lost(p, cause, count);
}

/* NS THROTTLED_PERIODS PERIODS QUOTA PERIOD PATH */
static int read_throttled(struct profile *p, struct text rest, bool *taken)
{
	uint64_t numbers[5];
	struct profile_throttled group;

	*taken = p->totals.throttled_count < THROTTLED_MAX;
	for (size_t i = 0; i < COUNT(numbers) && *taken; i++)
		*taken = take_number(&rest, 10, &numbers[i]) && take(&rest, " ");
	*taken = *taken && !is_empty(&rest);
	if (!*taken)
		return 0;
	group = (struct profile_throttled){ .throttled_ns = numbers[0],
					    .throttled_periods = numbers[1],
					    .periods = numbers[2],
					    .quota_ns = numbers[3],
					    .every_ns = numbers[4] };
	if (profile_string_n(p, rest.at, rest.end - rest.at, &group.cgroup) ||
	    profile_add_throttled(p, &group))
		return -ENOMEM;
	return 0;
}

int pprof_comment_read(struct profile *p, const char *text, bool *taken)
{
	struct text rest = text_of(text), after;
	uint64_t number;

	*taken = take(&rest, PREFIX);
	if (!*taken)
		return 0;
	if (take(&rest, LOST))
		return read_cause(p, rest, false, taken);
	if (take(&rest, STACK_END))
		return read_cause(p, rest, true, taken);
	if (take(&rest, THROTTLED))
		return read_throttled(p, rest, taken);
	if (strcmp(rest.at, "bits=32") == 0) {
		p->bits = 32;
		return 0;
	}
	if (strcmp(rest.at, "endian=big") == 0) {
		p->big_endian = true;
		return 0;
	}
	for (size_t i = 0; i < COUNT(profile_members); i++) {
		after = rest;
		if (take(&after, profile_members[i].key) && take(&after, "="))
			return read_member(p, p, &profile_members[i], after, taken);
	}
	*taken = false;
	for (int i = 0; i < ACCOUNT_COUNT; i++) {
		after = rest;
		if (!take(&after, account_counters[i].name) || !take(&after, "="))
			continue;
		*taken = take_number(&after, 10, &number) && is_empty(&after);
		if (*taken)
			p->totals.account.values[i] = number;
		p->totals.known |= *taken;
		return 0;
	}
	for (size_t i = 0; i < COUNT(value_members); i++) {
		struct text type = rest;

		if (!take(&type, value_members[i].key) || !take(&type, "."))
			continue;
		for (size_t j = 0; j < p->value_type_count && j < TYPES_MAX; j++) {
			after = type;
			if (take(&after, p->value_types[j].type) && take(&after, "="))
				return read_member(p, &p->value_types[j], &value_members[i], after,
						   taken);
		}
		break;
	}
	return 0;
}
