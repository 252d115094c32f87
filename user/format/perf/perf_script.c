// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/format.h"
#include "format/perf/perf_values.h"
#include "profile/image_name.h"
#include "profile/tags.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/scan.h"
#include "util/table.h"

/*
 * perf script prints a line for each sample, and below it its stack, leaf first, up to an empty
 * line:
 *
 *     comm PID/TID [CPU] SECONDS.FRACTION: PERIOD EVENT:
 *             ADDRESS SYMBOL+OFFSET (IMAGE)
 *
 * Without call chains the address is on the line of the sample. With fewer fields (-F) all but the
 * command and a number may be missing; a line without the time has to have an address or frames.
 */

/*
 * perf prints a period in so many columns at least, with the blank before it: without a time a
 * shorter number may be a TID, behind a name that ends with a number.
 */
#define PERIOD_WIDTH 11

/* What perf prints as the name of a thread that had ended, and for its numbers -1. */
#define ENDED_COMM ":-1"

#define UNKNOWN "[unknown]"

/* A frame, as it is printed but for its address. */
struct name {
	const char *text; /* a string of the profile */
	uint32_t location;
	bool in_kernel;
};

/* The line of a sample. */
struct head {
	struct text comm, event;
	uint64_t pid, tid; /* 0: not printed, or of a thread that had ended */
	uint64_t cpu;	   /* UINT64_MAX: not printed */
	bool has_time;
	uint64_t time_ns;
	uint64_t period; /* 0: not printed */
	struct text rest;
};

struct tick {
	uint32_t sample;
	uint32_t event;
	uint64_t time_ns;
};

struct reader {
	struct input *in;
	struct profile *p;
	struct error *e;
	TABLE(struct name) names;
	struct image_mapping {
		uint32_t image, mapping;
	} * mappings;
	size_t mapping_count, mapping_room;
	struct perf_values values;
	uint64_t kernel_samples[PERF_EVENTS_MAX]; /* of each event */
	uint64_t others;			  /* samples of events that are not read */
	/* The sample whose stack is being read */
	bool is_open;
	uint64_t head_line; /* its number */
	bool needs_frames;  /* else it is no sample: the line could be any */
	uint32_t labels[2]; /* in user and in kernel mode */
	uint32_t event;
	uint64_t time_ns, period;
	bool in_kernel; /* its leaf */
	uint32_t *frames;
	size_t depth, frame_room;
	struct tick *ticks;
	size_t tick_count, tick_room;
	struct time_interval recorded; /* by perf's clock */
	uint64_t captured_ns;	       /* when the recording ended, since the epoch; 0: unknown */
	uint64_t bad_lines, first_bad;
};

static bool take_digits(struct text *t, uint64_t *value)
{
	return !is_empty(t) && isdigit((unsigned char)*t->at) && take_number(t, 10, value);
}

/* "SECONDS.FRACTION:", of micro- or nanoseconds */
static bool take_time(struct text *t, uint64_t *time_ns)
{
	uint64_t seconds, unit = NS_PER_S;

	if (!take_digits(t, &seconds) || !take(t, ".") || seconds > UINT64_MAX / NS_PER_S - 1)
		return false;
	*time_ns = seconds * NS_PER_S;
	for (; !is_empty(t) && isdigit((unsigned char)*t->at); t->at++) {
		unit /= 10;
		*time_ns += unit * (*t->at - '0');
	}
	return unit < NS_PER_S && take(t, ":");
}

/* A PID or TID; 0 for -1. */
static bool take_id(struct text *t, uint64_t *id)
{
	*id = 0;
	return take(t, "-1") || (take_digits(t, id) && *id <= UINT32_MAX);
}

/* " PID/TID [CPU] TIME:", or with a TID alone. Without has_time no time is there. */
static bool take_numbers(struct text *t, struct head *h)
{
	h->pid = 0;
	h->cpu = UINT64_MAX;
	if (!take_blanks(t) || !take_id(t, &h->tid))
		return false;
	if (take(t, "/")) {
		h->pid = h->tid;
		if (!take_id(t, &h->tid))
			return false;
	}
	if (!take_blanks(t) && !is_empty(t))
		return false;
	if (take(t, "[") && (!take_digits(t, &h->cpu) || !take(t, "]") || !take_blanks(t)))
		return false;
	return !h->has_time || take_time(t, &h->time_ns);
}

/* "ADDRESS SYMBOL+OFFSET (IMAGE)": moves behind the address. False: it is no frame. */
static bool take_address(struct text *t)
{
	uint64_t address;

	take_blanks(t);
	return take_number(t, 16, &address) && (is_empty(t) || take_blanks(t));
}

/* What follows the numbers: "PERIOD EVENT: ADDRESS ...", or a part of it. */
static bool parse_event(struct head *h)
{
	struct text rest = h->rest, event;
	const char *from;
	bool has_event;

	take_blanks(&rest);
	h->rest = rest;
	for (from = rest.at; is_blank(from[-1]); from--)
		; /* to the number before it */
	if (take_digits(&rest, &h->period) && (h->has_time || rest.at - from >= PERIOD_WIDTH) &&
	    take_blanks(&rest))
		h->rest = rest;
	else
		h->period = 0;
	rest = h->rest;
	event = take_token(&rest);
	has_event = !is_empty(&event) && event.end[-1] == ':';
	h->event = (struct text){ event.at, has_event ? event.end - 1 : event.at };
	if (has_event) {
		take_blanks(&rest);
		h->rest = rest;
	}
	trim_end(&h->rest);
	rest = h->rest;
	return h->has_time || is_empty(&rest) || take(&rest, "PERF_RECORD_") ||
	       (has_event && take_address(&rest) && !is_empty(&rest) && rest.end[-1] == ')');
}

/*
 * The line of a sample, with the time or without: the name of a command may have blanks and digits,
 * and be empty. False: it is none.
 */
static bool parse_head(struct text line, bool has_time, struct head *h)
{
	*h = (struct head){ .has_time = has_time };
	for (const char *at = line.at; at < line.end; at++) {
		h->comm = (struct text){ line.at, at };
		h->rest = (struct text){ at, line.end };
		take_blanks(&h->comm);
		/* An address of a frame is not followed by numbers. */
		if (!is_blank(*at) || is_empty(&h->comm) || is_blank(at[-1]) ||
		    !take_numbers(&h->rest, h) || !parse_event(h))
			continue;
		return !memchr(h->comm.at, ';', h->comm.end - h->comm.at);
	}
	h->comm = (struct text){ line.at, line.at };
	h->rest = line;
	return has_time && take_numbers(&h->rest, h) && parse_event(h);
}

static bool is_frame(struct text line)
{
	return !is_empty(&line) && is_blank(*line.at) && take_address(&line);
}

/* --- Frames --- */

/* A mapping of all of an image: its addresses in memory are not known. */
static int image_mapping(struct reader *r, struct text path, uint32_t *mapping)
{
	struct image_mapping *known;
	const char *text;
	uint32_t image;

	*mapping = PROFILE_NONE;
	if (is_empty(&path) || text_is(&path, UNKNOWN) || text_is(&path, "inlined"))
		return 0;
	if (profile_string_n(r->p, path.at, path.end - path.at, &text) ||
	    profile_add_image(r->p, image_is_kernel(text) ? IMAGE_KERNEL : text, NULL, 0, &image) ||
	    array_reserve(&r->mappings, &r->mapping_room, image + 1, sizeof(*r->mappings)))
		return -ENOMEM;
	known = &r->mappings[image];
	if (image >= r->mapping_count)
		r->mapping_count = image + 1;
	if (!known->image) { /* its number + 1 */
		if (profile_add_mapping(r->p, 0, 0, 0, image, &known->mapping))
			return -ENOMEM;
		r->p->mappings[known->mapping].linked = true;
		known->image = image + 1;
	}
	*mapping = known->mapping;
	return 0;
}

/* Splits "SYMBOL+0xOFFSET (IMAGE)" into the symbol's name and the image, either of which may miss.
 */
static void split_frame(struct text frame, struct text *symbol, struct text *image)
{
	static const char deleted[] = " (deleted))";
	size_t size = frame.end - frame.at, tail = strlen(deleted);
	struct text before = frame;
	const char *at;

	*image = (struct text){ frame.end, frame.end };
	if (size && frame.end[-1] == ')') {
		if (size > tail && memcmp(frame.end - tail, deleted, tail) == 0)
			before.end -= tail;
		do {
			at = last_of(&before, '(');
			before.end = at ?: frame.at;
		} while (at && at > frame.at && !is_blank(at[-1]));
		if (at)
			*image = (struct text){ at + 1, frame.end - 1 };
		frame.end = at ?: frame.end;
	}
	trim_end(&frame);
	at = last_of(&frame, '+');
	if (at && frame.end - at > 3 && at[1] == '0' && at[2] == 'x') {
		struct text offset = { at + 1, frame.end };
		uint64_t ignored;

		if (take_hex(&offset, &ignored) && is_empty(&offset))
			frame.end = at;
	}
	*symbol = frame;
}

/* Adds the frame's location to the stack. */
static int add_frame(struct reader *r, struct text frame)
{
	size_t size = frame.end - frame.at;
	struct name key = { 0 };
	struct text symbol, image;
	const char *function;
	uint32_t id, mapping;

	if (profile_string_n(r->p, frame.at, size, &key.text) ||
	    array_reserve(&r->frames, &r->frame_room, r->depth + 1, sizeof(*r->frames)))
		return -ENOMEM;
	id = table_find(&r->names, &key.text, sizeof(key.text));
	if (id == INDEX_NONE) {
		split_frame(frame, &symbol, &image);
		if (is_empty(&symbol))
			symbol = text_of(UNKNOWN);
		if (profile_string_n(r->p, symbol.at, symbol.end - symbol.at, &function) ||
		    image_mapping(r, image, &mapping))
			return -ENOMEM;
		key.in_kernel =
			mapping != PROFILE_NONE &&
			(image_is_in_kernel(r->p->images[r->p->mappings[mapping].image].path) ||
			 memmem(frame.at, size, ".ko)", 4));
		if (profile_add_named_location(r->p, function, mapping, &key.location) ||
		    table_add(&r->names, &key, sizeof(key.text), &id))
			return -ENOMEM;
	}
	if (!r->depth)
		r->in_kernel = r->names.all[id].in_kernel;
	r->frames[r->depth++] = r->names.all[id].location;
	return 0;
}

/* --- Samples --- */

static int end_sample(struct reader *r)
{
	uint32_t number;

	if (!r->is_open)
		return 0;
	r->is_open = false;
	if (r->needs_frames && !r->depth) {
		r->values.events[r->event].samples--;
		r->first_bad = r->bad_lines++ ? r->first_bad : r->head_line;
		return 0;
	}
	if (profile_sample(r->p, r->frames, r->depth, r->labels[r->in_kernel], &number) ||
	    array_add(r->ticks, r->tick_count, r->tick_room,
		      (struct tick){ number, r->event, r->time_ns }))
		return -ENOMEM;
	perf_values_add(r->p, number, r->event, r->period);
	if (r->time_ns)
		interval_extend(&r->recorded, r->time_ns);
	r->kernel_samples[r->event] += r->in_kernel;
	return 0;
}

/* Sets *number to that of the sample's event; PROFILE_NONE: it is not read. */
static int find_event(struct reader *r, const struct head *h, uint32_t *number)
{
	enum perf_event_kind kind = PERF_EVENT_OTHER;
	struct text event = h->event;
	const char *name;

	if (is_empty(&event) || take(&event, "cpu-clock") || take(&event, "task-clock"))
		kind = PERF_EVENT_CLOCK;
	else if (take(&event, "cycles") || take(&event, "cpu_core/cycles") ||
		 take(&event, "cpu_atom/cycles"))
		kind = PERF_EVENT_CYCLES;
	if (profile_string_n(r->p, h->event.at, h->event.end - h->event.at, &name) ||
	    perf_values_find(&r->values, r->p, name, kind, number))
		return -ENOMEM;
	if (*number != PROFILE_NONE) {
		struct perf_event *e = &r->values.events[*number];

		/* Of a clock, the first period is that of all. */
		if (!e->samples++ && kind == PERF_EVENT_CLOCK)
			e->period = h->period;
		e->has_periods |= h->period > 0;
	}
	return 0;
}

static int begin_sample(struct reader *r, const struct head *h)
{
	struct profile_tag tag = { .key = tag_kinds[TAG_CPU].key, .unit = "" };
	struct profile_labels labels = { .pid = h->pid, .tid = h->tid, .tags = &tag };
	struct text inlined = h->rest, comm = h->comm;
	char cpu[24];

	if (text_is(&comm, ENDED_COMM))
		comm = text_of(PERF_ENDED);

	r->depth = 0;
	r->in_kernel = false;
	if (find_event(r, h, &r->event))
		return -ENOMEM;
	if (r->event == PROFILE_NONE) {
		r->others++;
		return 0;
	}
	snprintf(cpu, sizeof(cpu), "%" PRIu64, h->cpu);
	tag.text = cpu;
	labels.tag_count = h->cpu != UINT64_MAX;
	if (profile_string_n(r->p, comm.at, comm.end - comm.at, &labels.comm) ||
	    profile_add_labels(r->p, &labels, &r->labels[0]))
		return -ENOMEM;
	labels.kernel = true;
	if (profile_add_labels(r->p, &labels, &r->labels[1]))
		return -ENOMEM;
	r->is_open = true;
	r->head_line = r->in->line;
	r->needs_frames = !h->has_time;
	r->time_ns = h->time_ns;
	r->period = h->period ?: 1;
	/* Without call chains; what follows a tracepoint's name looks different. */
	if (take_address(&inlined) && !is_empty(&inlined) && inlined.end[-1] == ')')
		return add_frame(r, inlined);
	return 0;
}

/* "# hostname : NAME", of perf script --header */
static int read_comment(struct reader *r, struct text line)
{
	struct profile *p = r->p;
	struct tm captured = { .tm_isdst = -1 };
	const char *text;

	take(&line, "#");
	take_blanks(&line);
	if (take(&line, "hostname :") && take_blanks(&line))
		return profile_string_n(p, line.at, line.end - line.at, &p->host);
	if (take(&line, "cmdline :") && take_blanks(&line))
		return profile_string_n(p, line.at, line.end - line.at, &p->command);
	if (take(&line, "captured on") && (take_blanks(&line), take(&line, ":"))) {
		take_blanks(&line);
		if (profile_string_n(p, line.at, line.end - line.at, &text))
			return -ENOMEM;
		if (strptime(text, "%a %b %d %H:%M:%S %Y", &captured) && mktime(&captured) > 0)
			r->captured_ns = mktime(&captured) * NS_PER_S;
	}
	return 0;
}

static int read_line(struct reader *r, struct text line)
{
	struct text frame, blank = line;
	struct head h;

	take_blanks(&blank);
	trim_end(&line);
	frame = line;
	if (is_empty(&blank) || is_empty(&line))
		return end_sample(r);
	if (memchr(line.at, '\0', line.end - line.at)) {
		r->first_bad = r->bad_lines++ ? r->first_bad : r->in->line;
		return 0;
	}
	if (*line.at == '#')
		return read_comment(r, line);
	/* Without a time, a line is a frame first. */
	if (parse_head(line, true, &h) || (!is_frame(line) && parse_head(line, false, &h))) {
		int err = end_sample(r);

		/* Other records, as of mappings, are printed on request. */
		return err || take(&h.event, "PERF_RECORD_") || take(&h.rest, "PERF_RECORD_")
			       ? err
			       : begin_sample(r, &h);
	}
	if (is_frame(line) && take_address(&frame))
		return r->is_open ? add_frame(r, frame) : 0;
	if (!r->bad_lines++)
		r->first_bad = r->in->line;
	return 0;
}

/* --- The file --- */

/*
 * The times of the leading event's samples: since the epoch if the file says when it was recorded,
 * else perf's own.
 */
static int add_ticks(struct reader *r, uint32_t lead)
{
	struct tick_choice *choice = r->in->options.ticks;
	uint64_t last_ns = r->recorded.until_ns - 1;
	uint64_t shift_ns = r->captured_ns ? r->captured_ns - last_ns : 0;
	struct profile *p = r->p;
	struct time_interval recorded = { 0 };

	if (!r->recorded.until_ns)
		return 0; /* none has a time */
	p->time_ns = r->recorded.since_ns + shift_ns;
	p->duration_ns = last_ns - r->recorded.since_ns;
	interval_extend(&recorded, p->time_ns);
	interval_extend(&recorded, last_ns + shift_ns);
	if (choice)
		choice->choose(choice, &recorded);
	for (size_t i = 0; i < r->tick_count; i++) {
		const struct tick *tick = &r->ticks[i];

		if (tick->event == lead && tick->time_ns &&
		    tick_list_choose(&p->ticks, choice, tick->sample, tick->time_ns + shift_ns))
			return -ENOMEM;
	}
	return 0;
}

static int end_profile(struct reader *r)
{
	struct profile_totals *t = &r->p->totals;
	struct profile *p = r->p;
	uint32_t lead;

	if (end_sample(r))
		return -ENOMEM;
	lead = perf_values_lead(&r->values);
	t->known = true;
	if (lead != PROFILE_NONE) {
		const struct perf_event *e = &r->values.events[lead];

		t->ticks = t->counted = e->samples;
		t->kernel = r->kernel_samples[lead];
	}
	if (add_ticks(r, lead) || perf_values_end(&r->values, p) ||
	    (r->others && profile_warn(p, PERF_OTHERS_WARNING, r->others)) ||
	    (r->bad_lines &&
	     profile_warn(p,
			  "%" PRIu64 " line(s) were not read, the first is line %" PRIu64 ": it is "
			  "neither a sample nor a frame",
			  r->bad_lines, r->first_bad)))
		return -ENOMEM;
	return 0;
}

static int perf_script_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = { .in = in, .p = p, .e = e };
	const char *line;
	size_t size;
	int err = 0;

	while (!err && !(err = input_line(in, &line, &size, e)) && line)
		err = read_line(&r, (struct text){ line, line + size });
	if (err != -ENOMEM && end_profile(&r))
		err = -ENOMEM;
	table_free(&r.names);
	free(r.mappings);
	free(r.frames);
	free(r.ticks);
	return err;
}

/* The first line that is neither empty nor a comment is that of a sample. */
static bool perf_script_detect(const struct input *in)
{
	struct text t = { (const char *)in->bytes, (const char *)in->bytes + in->size }, line;
	struct head h;

	while (take_line(&t, &line)) {
		trim_end(&line);
		if (is_empty(&line) || *line.at == '#')
			continue;
		if (memchr(line.at, '\0', line.end - line.at))
			return false;
		if (parse_head(line, true, &h))
			return true;
		/* Without a time, only what follows shows that it is no folded stack. */
		return parse_head(line, false, &h) &&
		       (!is_empty(&h.rest) || (take_line(&t, &line) && is_frame(line)));
	}
	return false;
}

const struct format format_perf_script = {
	.name = "perf-script",
	.extensions = (const char *const[]){ NULL },
	.is_text = true,
	.streams = true,
	.detect = perf_script_detect,
	.read = perf_script_read,
};
