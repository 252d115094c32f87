// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lines "key: value" of a part's header. The value of a "desc:" line is again "Key: value": the
 * keys that callgrind_write.c writes set members of the profile, others are kept as extras.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "format/callgrind/callgrind_read.h"
#include "profile/build_id.h"

static int add_extra(struct callgrind_reader *r, struct text line)
{
	trim_end(&line);
	if (profile_add_extra(r->p, CALLGRIND_NAME, PROFILE_NONE, line.at, line.end - line.at))
		return error_no_memory(r->e);
	return 0;
}

static int read_creator(struct callgrind_reader *r, struct text value)
{
	(void)value;
	r->has_creator = true;
	return 0;
}

static int read_version(struct callgrind_reader *r, struct text value)
{
	uint64_t version;

	if (callgrind_take_number(&value, &version) && version > 1)
		return input_line_error(r->in, r->e,
					"version %" PRIu64 " is unsupported: the only one is 1",
					version);
	return 0;
}

/* An ID that is not a 32-bit number is unknown: 0. */
static int read_id(struct callgrind_reader *r, struct text value, uint32_t *id)
{
	uint64_t number;

	*id = callgrind_take_number(&value, &number) && number <= UINT32_MAX ? number : 0;
	r->labels = PROFILE_NONE;
	return 0;
}

static int read_pid(struct callgrind_reader *r, struct text value)
{
	return read_id(r, value, &r->pid);
}

static int read_thread(struct callgrind_reader *r, struct text value)
{
	return read_id(r, value, &r->tid);
}

static int read_command(struct callgrind_reader *r, struct text value)
{
	trim_end(&value);
	return *r->p->command ? 0 : callgrind_intern(r, value, &r->p->command);
}

/* [instr] [bb] [line], in this order */
static int read_positions(struct callgrind_reader *r, struct text value)
{
	static const char *const words[] = { "instr", "bb", "line" };

	r->position_count = 0;
	while (take_blanks(&value), !is_empty(&value)) {
		struct text word = take_token(&value);
		size_t i = r->position_count ? r->positions[r->position_count - 1] + 1 : 0;

		while (i < POSITION_COUNT && !text_is(&word, words[i]))
			i++;
		if (i == POSITION_COUNT)
			return input_line_error(
				r->in, r->e,
				"positions: has other words than instr, bb and line in this order");
		r->positions[r->position_count++] = i;
	}
	if (!r->position_count)
		return input_line_error(r->in, r->e, "positions: is empty");
	return 0;
}

static void read_claim(struct callgrind_reader *r, struct text value, struct callgrind_claim *claim)
{
	*claim = (struct callgrind_claim){ .line = r->in->line };
	while (claim->count < CALLGRIND_EVENTS_MAX && (take_blanks(&value), !is_empty(&value)) &&
	       callgrind_take_cost(r, &value, &claim->costs[claim->count]))
		claim->count++;
}

static int read_summary(struct callgrind_reader *r, struct text value)
{
	read_claim(r, value, &r->summary);
	return 0;
}

static int read_totals(struct callgrind_reader *r, struct text value)
{
	read_claim(r, value, &r->totals);
	return 0;
}

/* --- desc: --- */

/* NUMBER [ns] */
static bool take_count(struct text t, uint64_t *count)
{
	if (!take_number(&t, 10, count))
		return false;
	take_blanks(&t);
	take(&t, "ns");
	return is_empty(&t);
}

static const struct {
	const char *key;
	size_t offset; /* in struct profile */
} numbers[] = {
	{ "Start", offsetof(struct profile, time_ns) },
	{ "Duration", offsetof(struct profile, duration_ns) },
	{ "All samples", offsetof(struct profile, all_samples) },
	{ "All CPU time", offsetof(struct profile, all_cpu_ns) },
	{ "Ticks", offsetof(struct profile, totals.ticks) },
	{ "Counted", offsetof(struct profile, totals.counted) },
	{ "Out of range", offsetof(struct profile, totals.out_of_range) },
	{ "Excluded", offsetof(struct profile, totals.excluded) },
	{ "Kernel", offsetof(struct profile, totals.kernel) },
	{ "CPU time", offsetof(struct profile, totals.cpu_ns) },
	{ "BPF time per tick", offsetof(struct profile, totals.bpf_ns_per_tick) },
	{ "Interrupt time", offsetof(struct profile, totals.interrupt_ns) },
	{ "Interrupts", offsetof(struct profile, totals.interrupts) },
	{ "Recorder's CPU time", offsetof(struct profile, totals.own_ns) },
	{ "Machine time", offsetof(struct profile, totals.machine_ns) },
};

/* These return 1 when they have read the line, 0 when it is another kind of line, or -errno. */

static int read_number(struct callgrind_reader *r, struct text key, struct text value)
{
	uint64_t number;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!text_is(&key, numbers[i].key) || !take_count(value, &number))
			continue;
		memcpy((char *)r->p + numbers[i].offset, &number, sizeof(number));
		if (numbers[i].offset == offsetof(struct profile, totals.ticks))
			r->p->totals.known = true;
		return 1;
	}
	return 0;
}

static int read_text(struct callgrind_reader *r, struct text value, const char **text)
{
	int err = callgrind_intern(r, value, text);

	return err ?: 1;
}

static int read_clock(struct callgrind_reader *r, struct text value)
{
	return read_text(r, value, &r->p->event);
}

static int read_host(struct callgrind_reader *r, struct text value)
{
	return read_text(r, value, &r->p->host);
}

static int read_comment(struct callgrind_reader *r, struct text value)
{
	const char *comment;
	int err = callgrind_intern(r, value, &comment);

	if (!err && profile_add_comment(r->p, comment))
		err = error_no_memory(r->e);
	return err ?: 1;
}

/* NUMBER ns, or NUMBER EVENT */
static int read_period(struct callgrind_reader *r, struct text value)
{
	struct callgrind_event *event;
	uint64_t period;
	int err;

	if (!take_number(&value, 10, &period) || !take_blanks(&value) || is_empty(&value))
		return 0;
	if (text_is(&value, "ns")) {
		r->p->period_ns = period;
		return 1;
	}
	err = callgrind_find_event(r, value, &event);
	if (!err)
		event->period = period;
	return err ?: 1;
}

/* EVENT UNIT */
static int read_unit(struct callgrind_reader *r, struct text value)
{
	struct text name = take_token(&value);
	struct callgrind_event *event;
	int err;

	take_blanks(&value);
	if (is_empty(&value))
		return 0;
	err = callgrind_find_event(r, name, &event);
	if (!err)
		err = callgrind_intern(r, value, &event->unit);
	return err ?: 1;
}

/* NUMBER CAUSE */
static int read_lost(struct callgrind_reader *r, struct text value)
{
	const char *cause;
	uint64_t count;
	int err;

	if (!take_number(&value, 10, &count) || !take_blanks(&value) || is_empty(&value))
		return 0;
	err = callgrind_intern(r, value, &cause);
	if (!err && profile_add_lost(r->p, cause, count))
		err = error_no_memory(r->e);
	return err ?: 1;
}

/* HEX PATH */
static int read_build_id(struct callgrind_reader *r, struct text value)
{
	struct text hex = take_token(&value);
	uint8_t id[PROFILE_BUILD_ID_MAX];
	size_t size = build_id_parse(hex.at, hex.end - hex.at, id);
	const char *path;
	uint32_t mapping;
	int err;

	take_blanks(&value);
	if (!size || is_empty(&value))
		return 0;
	err = callgrind_intern(r, value, &path);
	if (!err)
		err = callgrind_object(r, path, id, size, &mapping);
	return err ?: 1;
}

static const struct {
	const char *key;
	int (*read)(struct callgrind_reader *r, struct text value);
} descriptions[] = {
	{ "Event", read_clock },       { "Host", read_host }, { "Comment", read_comment },
	{ "Period", read_period },     { "Unit", read_unit }, { "Lost", read_lost },
	{ "Build ID", read_build_id },
};

static int read_description(struct callgrind_reader *r, struct text value, struct text line)
{
	struct text key = value;
	const char *colon = memchr(value.at, ':', value.end - value.at);
	int taken;

	if (!colon)
		return add_extra(r, line);
	key.end = colon;
	value.at = colon + 1;
	take_blanks(&value);
	trim_end(&value);
	taken = read_number(r, key, value);
	for (size_t i = 0; i < sizeof(descriptions) / sizeof(*descriptions) && !taken; i++)
		if (text_is(&key, descriptions[i].key))
			taken = descriptions[i].read(r, value);
	if (taken < 0)
		return taken;
	return taken ? 0 : add_extra(r, line);
}

/* --- All lines --- */

static int read_part(struct callgrind_reader *r, struct text value)
{
	(void)r;
	(void)value;
	return 0;
}

static const struct {
	const char *key;
	int (*read)(struct callgrind_reader *r, struct text value);
	bool anywhere; /* valid in the body, too */
} headers[] = {
	{ "version", read_version, false },
	{ "creator", read_creator, false },
	{ "pid", read_pid, false },
	{ "cmd", read_command, false },
	{ "part", read_part, false },
	{ "thread", read_thread, false },
	{ "positions", read_positions, false },
	{ "event", callgrind_read_event, false },
	{ "events", callgrind_read_events, false },
	{ "summary", read_summary, true },
	{ "totals", read_totals, true },
};

static const char description[] = "desc";

bool callgrind_is_header(struct text key)
{
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		if (text_is(&key, headers[i].key))
			return true;
	return text_is(&key, description);
}

/* Keeps the line as an extra. */
static int keep_claim(struct callgrind_reader *r, const char *key,
		      const struct callgrind_claim *claim)
{
	char line[16 + CALLGRIND_EVENTS_MAX * 20];
	int size = snprintf(line, sizeof(line), "%s:", key);

	for (size_t i = 0; i < claim->count; i++)
		size += snprintf(line + size, sizeof(line) - size, " %" PRId64, claim->costs[i]);
	return add_extra(r, (struct text){ line, line + size });
}

static void note_mismatch(struct callgrind_reader *r, const char *key, uint64_t line, int64_t said,
			  uint32_t value)
{
	if (!*r->mismatch)
		snprintf(r->mismatch, sizeof(r->mismatch),
			 "line %" PRIu64 ": %s says %" PRId64
			 " %.64s, but the sum of the costs is %" PRId64,
			 line, key, said, r->p->value_types[value].type, r->sums[value]);
}

/* Keeps a line that differs from the sums of the costs; with is_sum, that gets a warning. */
static int check_claim(struct callgrind_reader *r, const char *key, struct callgrind_claim *claim,
		       bool is_sum)
{
	const struct callgrind_events *events = &r->events;
	uint64_t line = claim->line;

	claim->line = 0;
	for (size_t i = 0; line && i < claim->count && i < events->column_count; i++) {
		uint32_t value = events->columns[i];

		if (value == PROFILE_NONE || claim->costs[i] == r->sums[value])
			continue;
		if (is_sum)
			note_mismatch(r, key, line, claim->costs[i], value);
		return keep_claim(r, key, claim);
	}
	return 0;
}

int callgrind_end_part(struct callgrind_reader *r)
{
	/* Where callgrind writes both, its "summary:" has costs that are in no cost line. */
	bool has_totals = r->totals.line;
	int err = callgrind_end_association(r);

	if (!err)
		err = check_claim(r, "summary", &r->summary, !has_totals);
	if (!err)
		err = check_claim(r, "totals", &r->totals, true);
	memset(r->sums, 0, sizeof(r->sums));
	return err;
}

/* A header line in a body begins the next part, which inherits what it does not set. */
static int begin_part(struct callgrind_reader *r)
{
	int err = callgrind_end_part(r);

	r->part++;
	r->in_body = false;
	r->positions[0] = POSITION_LINE;
	r->position_count = 1;
	r->last = (struct callgrind_position){ 0 };
	r->here.function = NULL;
	r->here.id = PROFILE_NONE;
	return err;
}

int callgrind_read_header(struct callgrind_reader *r, struct text key, struct text value,
			  struct text line)
{
	bool is_description = text_is(&key, description);
	size_t i = 0;
	int err = 0;

	while (i < sizeof(headers) / sizeof(*headers) && !text_is(&key, headers[i].key))
		i++;
	if (i == sizeof(headers) / sizeof(*headers) && !is_description) {
		callgrind_overlook(r, OVERSIGHT_LINE);
		return 0;
	}
	if (r->in_body && (is_description || !headers[i].anywhere))
		err = begin_part(r);
	take_blanks(&value);
	if (err)
		return err;
	return is_description ? read_description(r, value, line) : headers[i].read(r, value);
}
