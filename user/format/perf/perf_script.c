// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/perf/perf.h"
#include "format/perf/perf_values.h"
#include "profile/image_name.h"
#include "profile/tags.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/index.h"
#include "util/scan.h"
#include "util/sum.h"

/*
 * perf script prints a line for each sample, and below it its stack, leaf first, up to an empty
 * line:
 *
 *     comm PID/TID [CPU] SECONDS.FRACTION: PERIOD EVENT:
 *             ADDRESS SYMBOL+OFFSET (IMAGE)
 *
 * Without call chains the address is on the line of the sample. With fewer fields (-F) all but the
 * command, a number and the time may be missing.
 */

#define UNKNOWN "[unknown]"

/* A frame, as it is printed but for its address. */
struct name {
	const char *text; /* a string of the profile */
	size_t size;
	uint32_t location;
	bool in_kernel;
};

/* The line of a sample. */
struct head {
	struct text comm, event;
	uint64_t pid, tid; /* pid 0: not printed */
	uint64_t cpu;	   /* UINT64_MAX: not printed */
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
	struct name *names;
	size_t name_count, name_room;
	struct index name_index;
	struct image_mapping {
		uint32_t image, mapping;
	} * mappings;
	size_t mapping_count, mapping_room;
	struct perf_values values;
	uint64_t kernel_samples[PERF_EVENTS_MAX]; /* of each event */
	uint64_t others;			  /* samples of events that are not read */
	/* The sample whose stack is being read */
	bool is_open;
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

/* " PID/TID [CPU] TIME:", or with a TID alone */
static bool take_numbers(struct text *t, struct head *h)
{
	h->pid = 0;
	h->cpu = UINT64_MAX;
	if (!take_blanks(t) || !take_digits(t, &h->tid))
		return false;
	if (take(t, "/")) {
		h->pid = h->tid;
		if (!take_digits(t, &h->tid))
			return false;
	}
	if (h->pid > UINT32_MAX || h->tid > UINT32_MAX || !take_blanks(t))
		return false;
	if (take(t, "[") && (!take_digits(t, &h->cpu) || !take(t, "]") || !take_blanks(t)))
		return false;
	return take_time(t, &h->time_ns);
}

/* The line of a sample: the name of a command may have blanks and digits. False: it is none. */
static bool parse_head(struct text line, struct head *h)
{
	struct text rest = line, event;

	*h = (struct head){ .period = 0 };
	take_blanks(&line);
	/* An address of a frame is not followed by numbers. */
	for (rest = line; rest.at < rest.end; rest.at++) {
		h->comm = (struct text){ line.at, rest.at };
		h->rest = rest;
		if (is_blank(*rest.at) && rest.at > line.at && !is_blank(rest.at[-1]) &&
		    take_numbers(&h->rest, h))
			break;
	}
	if (rest.at == rest.end || memchr(h->comm.at, ';', h->comm.end - h->comm.at))
		return false;
	take_blanks(&h->rest);
	rest = h->rest;
	if (take_digits(&rest, &h->period) && take_blanks(&rest))
		h->rest = rest;
	else
		h->period = 0;
	rest = h->rest;
	event = take_token(&rest);
	h->event = (struct text){ event.at, event.at };
	if (!is_empty(&event) && event.end[-1] == ':') {
		h->event = (struct text){ event.at, event.end - 1 };
		take_blanks(&rest);
		h->rest = rest;
	}
	trim_end(&h->rest);
	return true;
}

/* --- Frames --- */

static bool name_equal(const void *array, uint32_t id, const void *key)
{
	const struct name *a = (const struct name *)array + id, *b = key;

	return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

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
	struct name key = { frame.at, frame.end - frame.at, 0, false };
	struct profile_function function = { .file = "" };
	struct profile_line line = { 0 };
	uint64_t hash = hash_bytes(key.text, key.size, 0);
	uint32_t id = index_find(&r->name_index, hash, name_equal, r->names, &key), mapping;
	struct text symbol, image;

	if (array_reserve(&r->frames, &r->frame_room, r->depth + 1, sizeof(*r->frames)))
		return -ENOMEM;
	if (id == INDEX_NONE) {
		split_frame(frame, &symbol, &image);
		if (is_empty(&symbol))
			symbol = text_of(UNKNOWN);
		if (profile_string_n(r->p, frame.at, key.size, &key.text) ||
		    profile_string_n(r->p, symbol.at, symbol.end - symbol.at, &function.name) ||
		    image_mapping(r, image, &mapping))
			return -ENOMEM;
		function.system_name = function.name;
		key.in_kernel =
			mapping != PROFILE_NONE &&
			(image_is_in_kernel(r->p->images[r->p->mappings[mapping].image].path) ||
			 memmem(frame.at, key.size, ".ko)", 4));
		if (profile_add_function(r->p, &function, &line.function) ||
		    profile_add_line_location(r->p, 0, mapping, &line, 1, &key.location) ||
		    array_reserve(&r->names, &r->name_room, r->name_count + 1, sizeof(*r->names)) ||
		    index_add(&r->name_index, hash, r->name_count))
			return -ENOMEM;
		id = r->name_count;
		r->names[r->name_count++] = key;
	}
	if (!r->depth)
		r->in_kernel = r->names[id].in_kernel;
	r->frames[r->depth++] = r->names[id].location;
	return 0;
}

/* "ADDRESS SYMBOL+OFFSET (IMAGE)": moves behind the address. False: it is no frame. */
static bool take_address(struct text *t)
{
	uint64_t address;

	take_blanks(t);
	return take_number(t, 16, &address) && (is_empty(t) || take_blanks(t));
}

/* --- Samples --- */

static int end_sample(struct reader *r)
{
	uint32_t number;

	if (!r->is_open)
		return 0;
	r->is_open = false;
	if (profile_sample(r->p, r->frames, r->depth, r->labels[r->in_kernel], &number) ||
	    array_reserve(&r->ticks, &r->tick_room, r->tick_count + 1, sizeof(*r->ticks)))
		return -ENOMEM;
	perf_values_add(r->p, number, r->event, r->period);
	r->ticks[r->tick_count++] = (struct tick){ number, r->event, r->time_ns };
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

		/* Of a clock, the first tells it for all. */
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
	struct text inlined = h->rest;
	char cpu[24];

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
	if (profile_string_n(r->p, h->comm.at, h->comm.end - h->comm.at, &labels.comm) ||
	    profile_add_labels(r->p, &labels, &r->labels[0]))
		return -ENOMEM;
	labels.kernel = true;
	if (profile_add_labels(r->p, &labels, &r->labels[1]))
		return -ENOMEM;
	r->is_open = true;
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
	struct text frame = line, blank = line;
	struct head h;

	take_blanks(&blank);
	trim_end(&line);
	if (is_empty(&blank) || is_empty(&line))
		return end_sample(r);
	if (memchr(line.at, '\0', line.end - line.at)) {
		r->first_bad = r->bad_lines++ ? r->first_bad : r->in->line;
		return 0;
	}
	if (*line.at == '#')
		return read_comment(r, line);
	if (parse_head(line, &h)) {
		int err = end_sample(r);

		/* Other records, as of mappings, are printed on request. */
		return err || take(&h.event, "PERF_RECORD_") || take(&h.rest, "PERF_RECORD_")
			       ? err
			       : begin_sample(r, &h);
	}
	frame.end = line.end;
	if (is_blank(*line.at) && take_address(&frame))
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

	if (!r->tick_count)
		return 0;
	p->time_ns = r->recorded.since_ns + shift_ns;
	p->duration_ns = last_ns - r->recorded.since_ns;
	interval_extend(&recorded, p->time_ns);
	interval_extend(&recorded, last_ns + shift_ns);
	if (choice)
		choice->choose(choice, &recorded);
	for (size_t i = 0; i < r->tick_count; i++) {
		uint64_t time_ns = r->ticks[i].time_ns + shift_ns;

		if (r->ticks[i].event != lead)
			continue;
		if (choice)
			choice->count++;
		if ((!choice || tick_is_chosen(choice, time_ns)) &&
		    tick_list_add(&p->ticks, r->ticks[i].sample, time_ns))
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

		p->period_ns = e->kind == PERF_EVENT_CLOCK ? e->period : 0;
		t->ticks = t->counted = e->samples;
		t->kernel = r->kernel_samples[lead];
	}
	if (add_ticks(r, lead) || perf_values_end(&r->values, p))
		return -ENOMEM;
	if (r->others && profile_warn(p, PERF_OTHERS_WARNING, r->others))
		return -ENOMEM;
	if (r->bad_lines &&
	    profile_warn(p,
			 "%" PRIu64 " line(s) were skipped, the first is line %" PRIu64 ": it is "
			 "neither a sample nor a frame",
			 r->bad_lines, r->first_bad))
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
		if (read_line(&r, (struct text){ line, line + size }))
			err = error_no_memory(e);
	if (err != -ENOMEM && end_profile(&r))
		err = error_no_memory(e);
	free(r.names);
	index_free(&r.name_index);
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
		if (!is_empty(&line) && *line.at != '#')
			return !memchr(line.at, '\0', line.end - line.at) && parse_head(line, &h);
	}
	return false;
}

static const char *const extensions[] = { NULL };

const struct format format_perf_script = {
	.name = "perf-script",
	.extensions = extensions,
	.is_text = true,
	.streams = true,
	.detect = perf_script_detect,
	.read = perf_script_read,
};
