// SPDX-License-Identifier: GPL-2.0-only
#include "tool/metric.h"

#include <ctype.h>
#include <errno.h>
#include <json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/input_file.h"
#include "tool/when.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/index.h"
#include "util/order.h"

/* A number from here on is in milliseconds, as Prometheus' text has them: in 1973, or later. */
#define MILLISECONDS 1e11
/* Bound: format. */
#define LATEST_S 1e10 /* the year 2286: times fit into 64 bits */

/* A counter that falls in more than one of so many steps is none. */
#define STEPS_A_FALL 4
#define LEAST_STEPS  8

/* A counter has at most 64 bits; sums of these are numbers, too. */
#define LARGEST 1.9e19

#define JSON_DEPTH 16

/* One counter, or rate. */
struct series {
	char *name;
	uint64_t last_ns; /* 0: it has no value yet */
	double last;
};

struct reader {
	struct changes_metric *m;
	size_t room;
	bool rate;
	struct series *series;
	size_t series_count, series_room;
	struct index series_index;
	size_t steps, falls;
};

EQUAL(series_equal, struct series, char, strcmp(a->name, b) == 0)

static struct series *find_series(struct reader *r, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name), 0);
	uint32_t number = index_find(&r->series_index, hash, series_equal, r->series, name);

	if (number != INDEX_NONE)
		return &r->series[number];
	if (array_reserve(&r->series, &r->series_room, r->series_count + 1, sizeof(*r->series)))
		return NULL;
	number = r->series_count++;
	r->series[number] = (struct series){ .name = strdup(name) };
	if (!r->series[number].name || index_add(&r->series_index, hash, number))
		return NULL;
	return &r->series[number];
}

/* Adds a value. Returns NULL, or why it cannot be: *err is then negative. */
static const char *add_value(struct reader *r, const char *name, uint64_t time_ns, double value,
			     int *err)
{
	struct series *s;
	double count;

	*err = -EINVAL;
	if (isnan(value)) { /* Prometheus has these where a series ends */
		*err = 0;
		return NULL;
	}
	if (value < 0 || value > LARGEST)
		return "a value is no number of requests";
	s = find_series(r, name);
	if (!s || array_reserve(&r->m->list, &r->room, r->m->count + 1, sizeof(*r->m->list))) {
		*err = -ENOMEM;
		return NULL;
	}
	if (s->last_ns && time_ns <= s->last_ns)
		return "its time is not later than that of the value before";
	/* A counter that is less than before began at 0 meanwhile. */
	count = r->rate		   ? value * (double)(time_ns - s->last_ns) / NS_PER_S
		: value >= s->last ? value - s->last
				   : value;
	if (s->last_ns) {
		r->steps++;
		r->falls += value < s->last;
		if (time_ns - s->last_ns <= INCREASE_NS)
			r->m->list[r->m->count++] =
				(struct changes_increase){ s->last_ns, time_ns, count };
	}
	s->last_ns = time_ns;
	s->last = value;
	*err = 0;
	return NULL;
}

/* Parses seconds since the epoch, or milliseconds: these are known by their size. */
static bool parse_epoch(double time, uint64_t *time_ns)
{
	if (time >= MILLISECONDS)
		time /= 1000;
	if (!(time > 0 && time < LATEST_S))
		return false;
	*time_ns = (uint64_t)(time * 1000) * NS_PER_MS;
	return true;
}

static bool parse_number(const char *text, double *number)
{
	char *end;

	*number = strtod(text, &end);
	return end != text && !*end;
}

/* The end of a series' name with its labels, in which quotes may have anything; NULL: none. */
static char *series_end(char *text)
{
	bool quoted = false;

	text += strcspn(text, "{ \t");
	if (*text != '{')
		return text;
	for (; *text; text++) {
		if (quoted && *text == '\\' && text[1])
			text++;
		else if (*text == '"')
			quoted = !quoted;
		else if (*text == '}' && !quoted)
			return text + 1;
	}
	return NULL;
}

/* Parses a line, which it changes. Returns NULL, or what is wrong with it. */
static const char *add_line(struct reader *r, char *line, int *err)
{
	static const char blanks[] = " \t";
	struct when_clock clock = { .now_ns = clock_ns(CLOCK_REALTIME) };
	const char *series = "";
	char *end = line + strlen(line), *last;
	double value, time;
	uint64_t time_ns;

	*err = -EINVAL;
	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	line += strspn(line, blanks);
	if (!*line || *line == '#') {
		*err = 0;
		return NULL;
	}
	if (isalpha((unsigned char)*line) || strchr("_:{", *line)) {
		char *rest = series_end(line);

		if (!rest || !*rest)
			return "it has no value behind the name of a series";
		if (strchr(blanks, *rest))
			*rest++ = '\0';
		else if (rest > line && rest[-1] == '}')
			return "it has no blank behind the labels of a series";
		rest += strspn(rest, blanks);
		series = line;
		last = rest + strcspn(rest, blanks);
		if (!*last)
			return "its value has no time: a scrape has none, a dump or query_range "
			       "has";
		*last++ = '\0';
		last += strspn(last, blanks);
		if (!parse_number(rest, &value))
			return "its value is no number";
		if (!parse_number(last, &time) || !parse_epoch(time, &time_ns))
			return "its time is no number of seconds or milliseconds since the epoch";
		return add_value(r, series, time_ns, value, err);
	}
	last = end;
	while (last > line && !strchr(" \t,;", last[-1]))
		last--;
	if (last == line)
		return "it is no TIME VALUE";
	if (!parse_number(last, &value))
		return "its value is no number";
	while (last > line && strchr(" \t,;", last[-1]))
		*--last = '\0';
	if (parse_number(line, &time) ? !parse_epoch(time, &time_ns)
				      : when_parse(line, &clock, false, &time_ns) != 0)
		return "its time is none: seconds since the epoch, or as 2026-11-21T03:00:00Z";
	return add_value(r, series, time_ns, value, err);
}

static int read_lines(struct reader *r, struct input *in, struct error *e)
{
	const char *line, *reason;
	size_t size;
	int err;

	while (!(err = input_line(in, &line, &size, e)) && line) {
		char *copy = strndup(line, size);

		if (!copy)
			return error_no_memory(e);
		reason = add_line(r, copy, &err);
		free(copy);
		if (reason)
			return input_line_error(in, e, "%s", reason);
		if (err)
			return error_no_memory(e);
	}
	return err;
}

/* Adds the values of a series of query_range: [[TIME, "VALUE"], ...]. */
static const char *add_json_series(struct reader *r, struct json_object *result, int *err)
{
	struct json_object *metric, *values;
	const char *name = "", *reason = NULL;

	*err = -EINVAL;
	if (json_object_object_get_ex(result, "metric", &metric))
		name = json_object_to_json_string(metric);
	if (!json_object_object_get_ex(result, "values", &values) ||
	    !json_object_is_type(values, json_type_array))
		return "a result has no values: it is the answer of /api/v1/query_range that is "
		       "read";
	*err = 0;
	for (size_t i = 0; i < json_object_array_length(values) && !reason && !*err; i++) {
		struct json_object *pair = json_object_array_get_idx(values, i);
		double value;
		uint64_t time_ns;

		*err = -EINVAL;
		if (!json_object_is_type(pair, json_type_array) ||
		    json_object_array_length(pair) != 2 ||
		    !parse_epoch(json_object_get_double(json_object_array_get_idx(pair, 0)),
				 &time_ns) ||
		    !parse_number(json_object_get_string(json_object_array_get_idx(pair, 1)) ?: "",
				  &value))
			return "a value is no pair of a time and a number";
		reason = add_value(r, name, time_ns, value, err);
	}
	return reason;
}

static int read_json(struct reader *r, struct input *in, struct error *e)
{
	struct json_object *json = NULL, *data, *results;
	const char *reason = NULL;
	struct json_tokener *tokener;
	int err = input_need_all(in, e);

	if (err)
		return err;
	tokener = json_tokener_new_ex(JSON_DEPTH);
	if (!tokener)
		return error_no_memory(e);
	if (in->size <= INT32_MAX)
		json = json_tokener_parse_ex(tokener, (const char *)in->bytes, (int)in->size);
	if (!json)
		err = input_error(in, json_tokener_get_parse_end(tokener), e, "%s",
				  in->size > INT32_MAX ? "it is too large"
						       : json_tokener_error_desc(
								 json_tokener_get_error(tokener)));
	else if (!json_object_object_get_ex(json, "data", &data) ||
		 !json_object_object_get_ex(data, "result", &results) ||
		 !json_object_is_type(results, json_type_array))
		reason = "its JSON has no data.result: it is the answer of /api/v1/query_range "
			 "that is read";
	else
		for (size_t i = 0; i < json_object_array_length(results) && !reason && !err; i++)
			reason = add_json_series(r, json_object_array_get_idx(results, i), &err);
	if (reason)
		err = error_set(e, 0, "%s: %s", in->path, reason);
	else if (err == -ENOMEM)
		error_no_memory(e);
	json_object_put(json);
	json_tokener_free(tokener);
	return err;
}

ORDER(compare_increases, struct changes_increase, LEAST(since_ns))

/* True if the content is JSON: labels of a series begin with {, too. */
static bool is_json(const struct input *in)
{
	size_t i = 0;

	while (i < in->size && isspace(in->bytes[i]))
		i++;
	if (i == in->size || in->bytes[i] != '{')
		return false;
	for (i++; i < in->size && isspace(in->bytes[i]); i++)
		;
	return i < in->size && (in->bytes[i] == '"' || in->bytes[i] == '}');
}

int metric_read(const char *path, bool rate, struct changes_metric *m, struct error *e)
{
	struct reader r = { .m = m, .rate = rate };
	struct input in;
	int err = input_open(path, NULL, &in, e);

	if (err)
		return err;
	err = is_json(&in) ? read_json(&r, &in, e) : read_lines(&r, &in, e);
	input_close(&in);
	if (!err && !rate && r.steps >= LEAST_STEPS && r.falls * STEPS_A_FALL > r.steps) {
		err = error_set(e, 0, "%s is no counter: it falls in %zu of %zu steps", path,
				r.falls, r.steps);
		error_hint(e, "--per-rate reads values that are requests in a second");
	} else if (!err && !m->count) {
		err = error_set(e, 0, "%s has no two values within %d minutes", path,
				(int)(INCREASE_NS / NS_PER_S / 60));
	}
	if (m->count)
		qsort(m->list, m->count, sizeof(*m->list), compare_increases);
	for (size_t i = 0; i < r.series_count; i++)
		free(r.series[i].name);
	free(r.series);
	index_free(&r.series_index);
	return err;
}
