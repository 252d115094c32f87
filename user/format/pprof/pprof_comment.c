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

/* Bounds on untrusted input: each new entry is searched for among all. */
#define LOST_MAX       256
#define STACK_ENDS_MAX 256
#define TYPES_MAX      1024

/* A member of a structure that is written as KEY=VALUE unless it is "" or 0. */
struct member {
	const char *key;
	enum kind {
		MEMBER_TEXT,
		MEMBER_NUMBER,
		MEMBER_ACCOUNT /* a number; sets totals.known */
	} kind;
	size_t offset;
};

#define PROFILE_MEMBER(kind, name)                          \
	{                                                   \
#name, kind, offsetof(struct profile, name) \
	}
#define ACCOUNT_MEMBER(name)                                                 \
	{                                                                    \
#name, MEMBER_ACCOUNT, offsetof(struct profile, totals.name) \
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
	ACCOUNT_MEMBER(ticks),
	ACCOUNT_MEMBER(counted),
	ACCOUNT_MEMBER(out_of_range),
	ACCOUNT_MEMBER(excluded),
	ACCOUNT_MEMBER(kernel),
	ACCOUNT_MEMBER(cpu_ns),
	ACCOUNT_MEMBER(bpf_ns_per_tick),
	ACCOUNT_MEMBER(interrupt_ns),
	ACCOUNT_MEMBER(interrupts),
	ACCOUNT_MEMBER(own_ns),
	ACCOUNT_MEMBER(machine_ns),
	ACCOUNT_MEMBER(stack_limit),
	ACCOUNT_MEMBER(stacks_truncated),
	ACCOUNT_MEMBER(stacks_user),
	ACCOUNT_MEMBER(stacks_complete),
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
	/* Zeros are omitted, except for ticks, which shows that there is an account. */
	if (number || (m->kind == MEMBER_ACCOUNT && strcmp(m->key, "ticks") == 0))
		return emit(o, PREFIX "%s%s%s=%" PRIu64, m->key, gap, type, number);
	return 0;
}

static int write_value_type(const struct output *o, const struct profile_value_type *t,
			    bool has_period)
{
	int err = 0;

	for (size_t i = 0; i < COUNT(value_members) && !err; i++)
		if (!has_period || strcmp(value_members[i].key, "period") != 0)
			err = write_member(o, t, &value_members[i], ".", t->type);
	return err;
}

static int write_lost(const struct output *o, const struct profile_totals *t)
{
	int err = 0;

	for (size_t i = 0; i < t->lost_count && !err; i++)
		err = emit(o, PREFIX LOST "%s=%" PRIu64, t->lost[i].cause, t->lost[i].count);
	return err;
}

static int write_stack_ends(const struct output *o, const struct profile_totals *t)
{
	int err = 0;

	for (size_t i = 0; i < t->stack_end_count && i < STACK_ENDS_MAX && !err; i++)
		err = emit(o, PREFIX STACK_END "%s=%" PRIu64 " %s", t->stack_ends[i].cause,
			   t->stack_ends[i].count, t->stack_ends[i].image);
	return err;
}

int pprof_comment_write(const struct profile *p, size_t period_type, pprof_comment *comment,
			void *context)
{
	const struct output o = { comment, context };
	int err = 0;

	for (size_t i = 0; i < COUNT(profile_members) && !err; i++)
		if (profile_members[i].kind != MEMBER_ACCOUNT || p->totals.known)
			err = write_member(&o, p, &profile_members[i], "", "");
	if (!err && p->totals.known)
		err = write_lost(&o, &p->totals) ?: write_stack_ends(&o, &p->totals);
	/* For formats whose slots have the target's width and byte order. */
	if (!err && p->bits == 32)
		err = emit(&o, PREFIX "bits=32");
	if (!err && p->big_endian)
		err = emit(&o, PREFIX "endian=big");
	for (size_t i = 0; i < p->value_type_count && !err; i++)
		err = write_value_type(&o, &p->value_types[i], i == period_type);
	return err;
}

/* --- Reading --- */

/* Sets the member to VALUE. Returns 1; 0: VALUE is invalid; or -ENOMEM. */
static int read_member(struct profile *p, void *base, const struct member *m, struct text value)
{
	char *to = (char *)base + m->offset;
	const char *text;
	uint64_t number;

	if (m->kind == MEMBER_TEXT) {
		if (is_empty(&value))
			return 0;
		if (profile_string_n(p, value.at, value.end - value.at, &text))
			return -ENOMEM;
		memcpy(to, &text, sizeof(text));
		return 1;
	}
	if (!take_number(&value, 10, &number) || !is_empty(&value))
		return 0;
	memcpy(to, &number, sizeof(number));
	if (m->kind == MEMBER_ACCOUNT)
		p->totals.known = true;
	return 1;
}

static int read_value_type(struct profile *p, const struct member *m, struct text rest)
{
	for (size_t i = 0; i < p->value_type_count && i < TYPES_MAX; i++) {
		struct text value = rest;

		if (take(&value, p->value_types[i].type) && take(&value, "="))
			return read_member(p, &p->value_types[i], m, value);
	}
	return 0;
}

/* CAUSE=COUNT; the cause may contain a "=". */
static int read_lost(struct profile *p, struct text rest)
{
	const char *equals = last_of(&rest, '='), *cause;
	struct text number = { equals ? equals + 1 : rest.end, rest.end };
	uint64_t count;

	if (!equals || equals == rest.at || p->totals.lost_count >= LOST_MAX ||
	    !take_number(&number, 10, &count) || !is_empty(&number))
		return 0;
	if (profile_string_n(p, rest.at, equals - rest.at, &cause) ||
	    profile_add_lost(p, cause, count))
		return -ENOMEM;
	p->totals.known = true;
	return 1;
}

/* CAUSE=COUNT IMAGE */
static int read_stack_end(struct profile *p, struct text rest)
{
	const char *equals = memchr(rest.at, '=', rest.end - rest.at), *cause, *image;
	struct text number = { equals ? equals + 1 : rest.end, rest.end };
	uint64_t count;

	if (!equals || equals == rest.at || p->totals.stack_end_count >= STACK_ENDS_MAX ||
	    !take_number(&number, 10, &count) || !take(&number, " "))
		return 0;
	if (profile_string_n(p, rest.at, equals - rest.at, &cause) ||
	    profile_string_n(p, number.at, number.end - number.at, &image) ||
	    profile_add_stack_end(p, cause, image, count))
		return -ENOMEM;
	return 1;
}

static int read_members(struct profile *p, struct text rest)
{
	for (size_t i = 0; i < COUNT(profile_members); i++) {
		struct text value = rest;

		if (take(&value, profile_members[i].key) && take(&value, "="))
			return read_member(p, p, &profile_members[i], value);
	}
	for (size_t i = 0; i < COUNT(value_members); i++) {
		struct text type = rest;

		if (take(&type, value_members[i].key) && take(&type, "."))
			return read_value_type(p, &value_members[i], type);
	}
	return 0;
}

int pprof_comment_read(struct profile *p, const char *text)
{
	struct text rest = text_of(text);

	if (!take(&rest, PREFIX))
		return 0;
	if (take(&rest, LOST))
		return read_lost(p, rest);
	if (take(&rest, STACK_END))
		return read_stack_end(p, rest);
	if (strcmp(rest.at, "bits=32") == 0)
		p->bits = 32;
	else if (strcmp(rest.at, "endian=big") == 0)
		p->big_endian = true;
	else
		return read_members(p, rest);
	return 1;
}
