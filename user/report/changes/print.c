// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/changes/changes.h"
#include "report/chance.h"
#include "report/columns.h"
#include "report/json_writer.h"
#include "report/row_view.h"
#include "report/text.h"
#include "util/clock.h"

#define MEASURE_TEXT_SIZE 128
/*
 * Bound: caller: images that are named of a deploy; then: the report says how many more there are.
 */
#define MOST_IMAGES 4 /* named as text; an upgrade may have replaced many libraries */

static const char *const outcomes[] = {
	[CHANGE_TOO_EARLY] = "too-early", [CHANGE_NONE] = "same",   [CHANGE_MIXTURE] = "mixture",
	[CHANGE_MOVED] = "moved",	  [CHANGE_WAITS] = "waits", [CHANGE_BETTER] = "better",
	[CHANGE_WORSE] = "worse",
};

static const struct measure_text {
	const char *name; /* in JSON */
	const char *title;
	double unit; /* of the title, in that of the value */
} measure_texts[] = {
	[MEASURE_PER_REQUEST] = { "cpu_us_per_request", "us of CPU time for a request", 1e3 },
	[MEASURE_REQUESTS] = { "requests_per_s", "requests in a second", 1 },
	[MEASURE_CPU] = { "cpu_s_per_hour", "s of CPU time in an hour", 1. / 3600 },
	[MEASURE_WAITED] = { "runnable_ms_per_cpu_s", "ms runnable for each s on CPU", 1e-3 },
	[MEASURE_DELAY] = { "delay_ms_per_cpu_s", "ms of delay to others for each s on CPU", 1e-3 },
	[MEASURE_BLOCKED] = { "blocked_threads", "threads that were blocked", 1 },
};

static void print_interval(uint64_t since_ns, uint64_t until_ns, FILE *out)
{
	struct time_text since = time_text(since_ns / NS_PER_S, false, "%F %H:%M");
	struct time_text until = time_text(until_ns / NS_PER_S, false, "%F %H:%M");
	size_t day = strlen("2026-12-01 ");
	bool same_day = strncmp(since.text, until.text, day) == 0;

	fputs(since.text, out);
	if (since_ns != until_ns)
		fprintf(out, " to %s", until.text + (same_day ? day : 0));
}

/*
 * " (postgresql-15 15.15-0+deb12u1, before 15.14-0+deb12u1)"; or as long a part of the build IDs as
 * people compare, if a package is not known, or both builds are of one version of it.
 */
static void print_builds(const struct change_image *image, FILE *out)
{
	const struct archive_package *before = image->packages[BEFORE];
	const struct archive_package *after = image->packages[AFTER];

	if (!change_image_has_versions(image)) {
		fprintf(out, " (%.8s, before %.8s)", image->builds[AFTER], image->builds[BEFORE]);
		return;
	}
	text_printf(out, " (%s %s, before ", after->name, after->version);
	if (strcmp(before->name, after->name) != 0)
		text_printf(out, "%s ", before->name);
	text_printf(out, "%s)", before->version);
}

/* web.service [of user] on host one, 2026-11-27 14:03 to 14:05: a new build of server, restarted */
static void print_head(const struct change *change, FILE *out)
{
	const char *separator = ": ";

	text_printf(out, "%s%s", change->container ? "container " : "", change->service);
	if (change->user)
		text_printf(out, " of %s", change->user);
	text_printf(out, " on host %s, ", change->host);
	print_interval(change->begin_ns, change->end_ns, out);
	for (size_t i = 0; i < change->image_count && i < MOST_IMAGES; i++) {
		const struct change_image *image = &change->images[i];

		text_printf(out, "%s%s", i ? ", " : ": a new build of ", image->name);
		print_builds(image, out);
		separator = ", ";
	}
	if (change->image_count > MOST_IMAGES)
		fprintf(out, ", %zu more", change->image_count - MOST_IMAGES);
	if (change->restarted)
		fprintf(out, "%srestarted", separator);
	fputc('\n', out);
}

static void print_span(const char *name, const struct change_span *span, FILE *out)
{
	char text[TEXT_PERCENT_SIZE];

	fprintf(out, "  %s: ", name);
	if (!span->parts) {
		fputs("too little", out);
		return;
	}
	print_interval(span->since_ns, span->until_ns, out);
	text_decimal(text, span->recorded_ns ? span->cpu_ns / (double)span->recorded_ns : 0);
	fprintf(out, ", %s CPUs", text);
}

/* by: the label by which rows are, or NULL. */
static void print_outcome(const struct change *change, const struct row_view *by, FILE *out)
{
	char cost[TEXT_PERCENT_SIZE];

	text_decimal(cost, fabs(change->cost));
	switch (change->outcome) {
	case CHANGE_TOO_EARLY:
		fputs("  nothing is compared: too little was recorded before or after it\n", out);
		return;
	case CHANGE_NONE:
		fprintf(out, "  " CHANCE_NOTHING ", of %zu %s", change->compared,
			by ? by->plural : "functions and callers");
		if (change->waits_compared)
			fprintf(out, ", and of %zu waits", change->waits_compared);
		fputc('\n', out);
		return;
	case CHANGE_WAITS:
		if (change->wait_count)
			fputs("  nothing got worse by itself: what differs is for how long it was "
			      "blocked, which also\n"
			      "  depends on others\n",
			      out);
		else
			fputs("  nothing got worse by itself: what differs is how long it was "
			      "runnable, or its\n"
			      "  delay to others, which also depends on what else runs\n",
			      out);
		return;
	case CHANGE_MIXTURE:
		if (by) {
			fprintf(out,
				"  nothing got worse by itself: of these %s there are more, or "
				"fewer, or each takes\n"
				"  another time\n",
				by->plural);
			return;
		}
		fputs("  nothing got worse by itself: these differ with all that they call, as "
		      "when more is\n"
		      "  asked of them\n",
		      out);
		return;
	case CHANGE_MOVED:
		fputs("  nothing got worse: time has moved from some functions to others\n", out);
		return;
	case CHANGE_BETTER:
	case CHANGE_WORSE:
		fprintf(out, "  %s: %s takes %s %% %s CPU time\n", outcomes[change->outcome],
			change->by_request ? "a request" : "the same work", cost,
			change->cost < 0 ? "less" : "more");
	}
}

static void print_parts(const char *what, const char *of, double before, double after, FILE *out)
{
	char texts[CHANGE_SIDES][TEXT_PERCENT_SIZE];

	text_decimal(texts[BEFORE], before);
	text_decimal(texts[AFTER], after);
	fprintf(out, "  %s not compared: %s %% of %s before, %s %% after\n", what, texts[BEFORE],
		of, texts[AFTER]);
}

/* What is not compared, as one side lacks it. */
static void print_incomplete(const struct change *change, FILE *out)
{
	const struct change_span *before = &change->spans[BEFORE], *after = &change->spans[AFTER];

	if (change->stacks_differ)
		print_parts("callers are", "stacks are complete", before->complete_percent,
			    after->complete_percent, out);
	if (change->all_names_differ)
		print_parts("functions are", "ticks have names", before->named_percent,
			    after->named_percent, out);
	else if (change->names_differ)
		fputs("  functions of some images are not compared: fewer have names before, or "
		      "after\n",
		      out);
	if (change->others_replaced)
		fputs("  functions of images that were deployed meanwhile are not compared\n", out);
	if (change->lost_differ)
		print_parts("CPU time is", "ticks were lost", before->lost_percent,
			    after->lost_percent, out);
}

/* --- The table --- */

struct change_rows {
	const struct change_row *rows;
	size_t count;
	const struct row_view *by; /* the label by which they are, or NULL */
};

static void name_columns(struct columns *c, const struct change_rows *rows, size_t number)
{
	const struct change_row *row = &rows->rows[number];
	const unsigned int names = COLUMN_NAMES | COLUMN_TEXT;

	COLUMN(c, rows->by ? rows->by->name : "function", "name", names,
	       row->function
		       ?: c->json ? NULL
				  : row_unknown);
	if (!rows->by)
		COLUMN(c, "image", "image", names, row->image);
}

static void change_columns(struct columns *c, const void *view, size_t number)
{
	const struct change_rows *rows = view;
	const struct change_row *row = &rows->rows[number];
	const unsigned int decimals = 2 | COLUMN_JSON_DECIMALS(3);

	LOOKS(c, .hot = row->difference > 0);
	if (!rows->by)
		COLUMN(c, "what", NULL, COLUMN_NAMES | COLUMN_TEXT, row->total ? "total" : "self");
	name_columns(c, rows, number);
	COLUMN(c, NULL, "amount", 0, row->total ? "total" : "self");
	COLUMN(c, "before%", "before_percent", decimals, row->percent[BEFORE]);
	COLUMN(c, "after%", "after_percent", decimals, row->percent[AFTER]);
	COLUMN(c, "diff", "difference", decimals | COLUMN_SIGNED | COLUMN_HOT, row->difference);
	COLUMN(c, "+/-", "error", decimals, row->error);
	COLUMN(c, NULL, "p", 6, row->p);
}

/* In ms for each second of CPU time. */
static void wait_columns(struct columns *c, const void *view, size_t number)
{
	const struct change_rows *rows = view;
	const struct change_row *row = &rows->rows[number];
	const unsigned int decimals = 2 | COLUMN_JSON_DECIMALS(3);

	LOOKS(c, .hot = row->difference > 0);
	COLUMN(c, "reason", "reason", COLUMN_NAMES | COLUMN_TEXT, row->reason);
	name_columns(c, rows, number);
	COLUMN(c, "before ms/s", "before_ms_per_cpu_s", decimals, row->percent[BEFORE] * 10);
	COLUMN(c, "after ms/s", "after_ms_per_cpu_s", decimals, row->percent[AFTER] * 10);
	COLUMN(c, "diff", "difference", decimals | COLUMN_SIGNED | COLUMN_HOT,
	       row->difference * 10);
	COLUMN(c, "+/-", "error", decimals, row->error * 10);
	COLUMN(c, NULL, "p", 6, row->p);
}

static int print_rows(const struct change_rows *rows, columns_function *describe,
		      const struct report_table_options *o, FILE *out)
{
	size_t shown = report_rows(o, rows->count);
	int err = shown ? table_print(describe, rows, shown, o->width, o->color, out) : 0;

	if (!err && shown < rows->count)
		fprintf(out, "... %zu more\n", rows->count - shown);
	return err;
}

/* --- The table of measures --- */

struct measure_rows {
	const struct change *change;
	enum change_measure_number numbers[CHANGE_MEASURES];
	char texts[CHANGE_MEASURES][MEASURE_TEXT_SIZE];
	size_t count;
};

static void measure_columns(struct columns *c, const void *view, size_t number)
{
	const struct measure_rows *rows = view;
	const struct change_measure *m = &rows->change->measures[rows->numbers[number]];
	const struct measure_text *text = &measure_texts[rows->numbers[number]];
	const unsigned int decimals = 2 | COLUMN_JSON_DECIMALS(6);
	double percent = m->value[BEFORE] > 0 ? 100 / m->value[BEFORE] : 0;

	LOOKS(c, .hot = rows->numbers[number] == MEASURE_PER_REQUEST && m->differs &&
			m->difference > 0);
	COLUMN(c, "what", NULL, COLUMN_NAMES | COLUMN_TEXT, rows->texts[number]);
	COLUMN(c, NULL, "name", 0, text->name);
	COLUMN(c, "before", "before", decimals, m->value[BEFORE] / text->unit);
	COLUMN(c, "after", "after", decimals, m->value[AFTER] / text->unit);
	COLUMN(c, "diff%", NULL, COLUMN_HOT,
	       percent > 0 ? text_number(c->buffer, m->difference * percent, 2, true) : "");
	COLUMN(c, "+/-", NULL, 0,
	       percent > 0 ? text_number(c->buffer, m->error * percent, 2, false) : "");
	COLUMN(c, NULL, "difference", 6, m->difference / text->unit);
	COLUMN(c, NULL, "error", 6, m->error / text->unit);
	COLUMN(c, NULL, "p", 6, m->p);
	COLUMN(c, NULL, "differs", 0, json_object_new_boolean(m->differs));
	if (m->elsewhere[BEFORE] > 0 || m->elsewhere[AFTER] > 0) {
		COLUMN(c, NULL, "elsewhere_before", 6, m->elsewhere[BEFORE] / text->unit);
		COLUMN(c, NULL, "elsewhere_after", 6, m->elsewhere[AFTER] / text->unit);
	}
}

/* Those that differ, and those of requests: who gave these wants to see them. */
static int print_measures(const struct change *change, const struct report_table_options *o,
			  FILE *out)
{
	struct measure_rows rows = { .change = change };

	for (int i = 0; i < CHANGE_MEASURES; i++) {
		const struct change_measure *m = &change->measures[i];
		char others[CHANGE_SIDES][TEXT_PERCENT_SIZE], *text = rows.texts[rows.count];

		if (!m->known || (!m->differs && i != MEASURE_PER_REQUEST && i != MEASURE_REQUESTS))
			continue;
		rows.numbers[rows.count++] = i;
		snprintf(text, MEASURE_TEXT_SIZE, "%s", measure_texts[i].title);
		/* Unknown when only this service's samples were read. */
		if (!(m->elsewhere[BEFORE] > 0) && !(m->elsewhere[AFTER] > 0))
			continue;
		for (int k = 0; k < CHANGE_SIDES; k++)
			text_decimal(others[k], m->elsewhere[k] / measure_texts[i].unit);
		snprintf(text, MEASURE_TEXT_SIZE, "%s; elsewhere %s, then %s",
			 measure_texts[i].title, others[BEFORE], others[AFTER]);
	}
	if (change->metric && change->outcome != CHANGE_TOO_EARLY &&
	    !change->measures[MEASURE_PER_REQUEST].known)
		fputs("  requests are not compared: the metric covers too little of this time\n",
		      out);
	return rows.count ? table_print(measure_columns, &rows, rows.count, o->width, o->color, out)
			  : 0;
}

int changes_print(const struct changes *c, const struct report_table_options *o, FILE *out)
{
	int err = 0;

	for (size_t i = 0; i < c->count && !err; i++) {
		const struct change *change = &c->changes[i];
		const struct change_rows rows = { change->rows, change->row_count, c->by };
		const struct change_rows waits = { change->waits, change->wait_count, c->by };

		if (i)
			fputc('\n', out);
		print_head(change, out);
		print_span("before", &change->spans[BEFORE], out);
		print_span("after", &change->spans[AFTER], out);
		fputc('\n', out);
		print_outcome(change, c->by, out);
		print_incomplete(change, out);
		err = print_measures(change, o, out);
		err = err ?: print_rows(&rows, change_columns, o, out);
		err = err ?: print_rows(&waits, wait_columns, o, out);
	}
	return err;
}

/* --- JSON --- */

static struct json_object *json_time(uint64_t time_ns)
{
	return json_object_new_string(
		time_text(time_ns / NS_PER_S, true, "%Y-%m-%dT%H:%M:%SZ").text);
}

static struct json_object *span_object(const struct change_span *span)
{
	struct json_object *object = json_object_new_object();

	if (!span->parts)
		return object;
	json_add(&object, "since", json_time(span->since_ns));
	json_add(&object, "until", json_time(span->until_ns));
	json_add(&object, "recorded_s", json_decimal((double)span->recorded_ns / 1e9, 3));
	json_add(&object, "cpu_s", json_decimal(span->cpu_ns / 1e9, 3));
	json_add(&object, "samples", json_object_new_uint64(span->ticks));
	return object;
}

/* package: NULL: unknown. */
static void add_package(struct json_object **object, const char *key,
			const struct archive_package *package)
{
	struct json_object *one;

	if (!package)
		return;
	one = json_object_new_object();
	json_add_text(&one, "name", package->name);
	json_add_text(&one, "version", package->version);
	json_add(object, key, one);
}

static struct json_object *not_compared_object(const struct change *change)
{
	const struct {
		bool is;
		const char *name;
	} parts[] = {
		{ change->stacks_differ, "callers" },
		{ change->all_names_differ, "functions" },
		{ change->names_differ && !change->all_names_differ, "functions_without_names" },
		{ change->others_replaced, "functions_deployed_meanwhile" },
		{ change->lost_differ, "cpu_time" },
	};
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].is)
			json_append(&list, json_text(parts[i].name));
	return list;
}

/* Adds rows as a list, and how many are left out. */
static void add_rows(struct json_object **object, const char *name, const char *omitted,
		     const struct change_rows *rows, columns_function *describe,
		     const struct report_table_options *o)
{
	struct json_object *list = json_object_new_array();
	size_t shown = report_rows(o, rows->count);

	for (size_t i = 0; i < shown; i++)
		json_append(&list, columns_json(describe, rows, i));
	json_add(object, name, list);
	json_add_number(object, omitted, rows->count - shown);
}

static struct json_object *change_object(const struct change *change, const struct row_view *by,
					 const struct report_table_options *o)
{
	struct json_object *object = json_object_new_object();
	struct json_object *images = json_object_new_array(), *measures = json_object_new_array();
	const struct change_rows rows = { change->rows, change->row_count, by };
	const struct change_rows waits = { change->waits, change->wait_count, by };

	json_add_text(&object, "host", change->host);
	json_add_text(&object, change->container ? "container" : "unit", change->service);
	json_add_text(&object, "user", change->user);
	json_add(&object, "begin", json_time(change->begin_ns));
	json_add(&object, "end", json_time(change->end_ns));
	json_add(&object, "restarted", json_object_new_boolean(change->restarted));
	for (size_t i = 0; i < change->image_count; i++) {
		const struct change_image *image = &change->images[i];
		struct json_object *one = json_object_new_object();

		json_add_text(&one, "image", image->name);
		json_add_text(&one, "before", image->builds[BEFORE]);
		json_add_text(&one, "after", image->builds[AFTER]);
		add_package(&one, "package_before", image->packages[BEFORE]);
		add_package(&one, "package_after", image->packages[AFTER]);
		json_append(&images, one);
	}
	json_add(&object, "builds", images);
	json_add(&object, "before", span_object(&change->spans[BEFORE]));
	json_add(&object, "after", span_object(&change->spans[AFTER]));
	json_add_text(&object, "outcome", outcomes[change->outcome]);
	if (change->outcome != CHANGE_TOO_EARLY)
		json_add(&object, "cost_percent", json_decimal(change->cost, 3));
	json_add(&object, "not_compared", not_compared_object(change));
	for (int i = 0; i < CHANGE_MEASURES; i++) {
		const struct measure_rows one = { .change = change, .numbers = { i } };

		if (change->measures[i].known)
			json_append(&measures, columns_json(measure_columns, &one, 0));
	}
	json_add(&object, "measures", measures);
	json_add(&object, "compared", json_object_new_uint64(change->compared));
	add_rows(&object, "rows", "omitted", &rows, change_columns, o);
	json_add(&object, "waits_compared", json_object_new_uint64(change->waits_compared));
	add_rows(&object, "waits", "waits_omitted", &waits, wait_columns, o);
	return object;
}

int changes_json(const struct changes *c, const struct report_table_options *o, FILE *out)
{
	struct json_writer w;

	json_begin(&w, out);
	json_member(&w, "outcome", json_text(outcomes[changes_outcome(c)]));
	if (c->by)
		json_member(&w, "by", json_text(c->by->name));
	json_begin_list(&w, "changes");
	for (size_t i = 0; i < c->count && !w.err; i++)
		json_element(&w, change_object(&c->changes[i], c->by, o));
	json_end_list(&w);
	return json_end(&w);
}
