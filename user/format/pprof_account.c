// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/pprof.h"

#define PREFIX	    "profil:"
#define LOST_PREFIX "lost."

static const struct {
	const char *key;
	size_t offset; /* in struct profile_totals */
} numbers[] = {
	{ "ticks", offsetof(struct profile_totals, ticks) },
	{ "counted", offsetof(struct profile_totals, counted) },
	{ "out_of_range", offsetof(struct profile_totals, out_of_range) },
	{ "excluded", offsetof(struct profile_totals, excluded) },
	{ "kernel", offsetof(struct profile_totals, kernel) },
	{ "cpu_ns", offsetof(struct profile_totals, cpu_ns) },
	{ "bpf_ns_per_tick", offsetof(struct profile_totals, bpf_ns_per_tick) },
	{ "interrupt_ns", offsetof(struct profile_totals, interrupt_ns) },
};

#define NUMBER_COUNT (sizeof(numbers) / sizeof(*numbers))

static int write_number(pprof_comment *comment, void *context, const char *key_prefix,
			const char *key, uint64_t value)
{
	char text[256];
	int size = snprintf(text, sizeof(text), PREFIX "%s%s=%" PRIu64, key_prefix, key, value);

	return size < (int)sizeof(text) ? comment(context, text) : 0;
}

static int write_totals(const struct profile_totals *t, pprof_comment *comment, void *context)
{
	int err = 0;

	for (size_t i = 0; i < NUMBER_COUNT && !err; i++) {
		uint64_t value;

		memcpy(&value, (const char *)t + numbers[i].offset, sizeof(value));
		/* Zeros go without saying, but ticks says that there is an account. */
		if (value || numbers[i].offset == offsetof(struct profile_totals, ticks))
			err = write_number(comment, context, "", numbers[i].key, value);
	}
	for (size_t i = 0; i < t->lost_count && !err; i++)
		err = write_number(comment, context, LOST_PREFIX, t->lost[i].cause,
				   t->lost[i].count);
	return err;
}

int pprof_account_write(const struct profile *p, pprof_comment *comment, void *context)
{
	char text[256];
	int err = 0;

	if (*p->event &&
	    snprintf(text, sizeof(text), PREFIX "event=%s", p->event) < (int)sizeof(text))
		err = comment(context, text);
	/* The target's kind of address, when not the usual: formats with slots of it need it. */
	if (!err && p->bits == 32)
		err = comment(context, PREFIX "bits=32");
	if (!err && p->big_endian)
		err = comment(context, PREFIX "endian=big");
	if (!err && p->totals.known)
		err = write_totals(&p->totals, comment, context);
	return err;
}

/* A decimal number, all of it, and nothing around it. */
static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return *end == '\0' && errno == 0;
}

static int read_lost(struct profile *p, const char *cause, size_t size, uint64_t count)
{
	const char *name;

	if (size == 0)
		return 0;
	if (profile_string_n(p, cause, size, &name) || profile_add_lost(p, name, count))
		return -ENOMEM;
	p->totals.known = true;
	return 1;
}

static bool key_is(const char *key, size_t size, const char *name)
{
	return strlen(name) == size && memcmp(key, name, size) == 0;
}

static int read_number(struct profile *p, const char *key, size_t size, uint64_t value)
{
	size_t lost = strlen(LOST_PREFIX);

	if (size >= lost && memcmp(key, LOST_PREFIX, lost) == 0)
		return read_lost(p, key + lost, size - lost, value);
	if (key_is(key, size, "bits") && value == 32) {
		p->bits = 32;
		return 1;
	}
	for (size_t i = 0; i < NUMBER_COUNT; i++) {
		if (!key_is(key, size, numbers[i].key))
			continue;
		memcpy((char *)&p->totals + numbers[i].offset, &value, sizeof(value));
		p->totals.known = true;
		return 1;
	}
	return 0;
}

int pprof_account_read(struct profile *p, const char *text)
{
	static const char event[] = "event=";
	const char *key = text + strlen(PREFIX), *equals;
	uint64_t value;

	if (strncmp(text, PREFIX, strlen(PREFIX)) != 0)
		return 0;
	if (strncmp(key, event, strlen(event)) == 0 && key[strlen(event)])
		return profile_string(p, key + strlen(event), &p->event) ? -ENOMEM : 1;
	if (strcmp(key, "endian=big") == 0) {
		p->big_endian = true;
		return 1;
	}
	/* A cause may have a "=" of its own. */
	equals = strrchr(key, '=');
	if (!equals || !parse_number(equals + 1, &value))
		return 0;
	return read_number(p, key, equals - key, value);
}
