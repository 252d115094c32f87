// SPDX-License-Identifier: GPL-2.0-only
#include "tool/query.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "archive/read.h"
#include "report/text.h"
#include "record/container.h"
#include "tool/target.h"
#include "tool/tool.h"
#include "tool/when.h"
#include "util/clock.h"
#include "util/number.h"

/* How many gaps of a host are printed one by one. */
#define GAPS_SHOWN 5

int tool_option_host(const char *value, void *member, struct error *e)
{
	struct tool_query *q = member;

	if (!*value)
		return error_set(e, 0, "an option's value is empty");
	if (q->host_count == QUERY_HOSTS_MAX)
		return error_set(e, 0, "--host was given more than %d times: use a pattern",
				 QUERY_HOSTS_MAX);
	q->hosts[q->host_count++] = value;
	return 0;
}

int tool_option_label(const char *value, void *member, struct error *e)
{
	const char *equals = strchr(value, '=');

	if (!equals || equals == value)
		return error_set(e, 0, "--label takes NAME=PATTERN, not \"%s\"", value);
	*(const char **)member = value;
	return 0;
}

int tool_option_length(const char *value, void *member, struct error *e)
{
	if (when_parse_length(value, member))
		return error_set(e, 0, "--for takes a length of time, as 200ms or 2.5s, not \"%s\"",
				 value);
	return 0;
}

bool query_has_interval(const struct tool_query *q)
{
	return q->since || q->until || q->around || q->for_ns;
}

void query_clear_interval(struct tool_query *q)
{
	q->since = q->until = q->around = NULL;
	q->for_ns = 0;
}

bool query_is_given(const struct tool_query *q)
{
	return query_has_interval(q) || q->host_count || !profile_label_filter_is_empty(&q->labels);
}

void query_set_rows(struct tool_query *q, const struct row_view *view, bool code)
{
	q->no_code = view && !(view->fields & ROW_CODE) && !code;
	q->fine =
		view && view->fields & (ROW_ADDRESS | ROW_LINE | ROW_PROCESS | ROW_OF_TAG(TAG_CPU));
	q->by_time = view && view->fields & ROW_OF_TAG(TAG_TIME);
	q->times |= q->by_time && q->step_ns;
	q->by_host = view && view->fields & ROW_OF_TAG(TAG_HOST);
}

const char *query_archive(void)
{
	const char *directory = getenv(ARCHIVE_ENVIRONMENT);

	return directory && *directory ? directory : ARCHIVE_DIRECTORY;
}

bool query_is_archive(const char *path)
{
	char *directory, *host;
	bool found = archive_find(path, &directory, &host);

	free(directory);
	free(host);
	return found;
}

static int parse_time(const char *option, const char *text, bool later,
		      const struct when_clock *clock, uint64_t *time_ns, struct error *e)
{
	if (when_parse(text, clock, later, time_ns) == 0)
		return 0;
	return error_usage(e, WHEN_FORMS, "%s takes a time, not \"%s\"", option, text);
}

/* Sets *i, which is all that there is, to the times that are asked for. */
static int find_interval(const struct tool_query *q, const struct when_clock *clock,
			 struct time_interval *i, struct error *e)
{
	static const char hint[] = "--around 14:03:02.3 --for 200ms, or --since 14:03 --for 10s";
	uint64_t middle_ns, length_ns = q->for_ns ?: NS_PER_S;
	int err = 0;

	if (q->around && (q->since || q->until))
		return error_usage(e, hint, "--around excludes --since and --until");
	if (q->for_ns && q->since && q->until)
		return error_usage(e, hint, "--for, --since and --until are one too many");
	if (q->for_ns && !q->since && !q->until && !q->around)
		return error_usage(e, hint, "--for needs --around, --since or --until");
	if (q->around) {
		err = parse_time("--around", q->around, false, clock, &middle_ns, e);
		if (err)
			return err;
		i->since_ns = length_ns / 2 < middle_ns ? middle_ns - length_ns / 2 : 0;
		i->until_ns = i->since_ns + length_ns;
		return 0;
	}
	if (q->since)
		err = parse_time("--since", q->since, false, clock, &i->since_ns, e);
	if (q->until && !err)
		err = parse_time("--until", q->until, true, clock, &i->until_ns, e);
	if (q->for_ns && q->since)
		i->until_ns = i->since_ns + length_ns;
	else if (q->for_ns)
		i->since_ns = length_ns < i->until_ns ? i->until_ns - length_ns : 0;
	/* Outside of a recording is nothing, but no mistake. */
	else if (!err && clock->start_ns && !q->until && i->since_ns >= i->until_ns)
		i->until_ns = i->since_ns + NS_PER_S;
	else if (!err && clock->start_ns && !q->since && i->since_ns >= i->until_ns)
		i->since_ns = i->until_ns > NS_PER_S ? i->until_ns - NS_PER_S : 0;
	return err;
}

int query_interval(const struct tool_query *q, const struct time_interval *recorded,
		   struct query_interval *i, struct error *e)
{
	uint64_t now_ns = q->now_ns ?: clock_ns(CLOCK_REALTIME), length_ns;
	struct when_clock clock = { .now_ns = now_ns - now_ns % NS_PER_S };
	struct time_interval *asked = &i->asked;
	char from[WHEN_SIZE], to[WHEN_SIZE];
	int err;

	clock.end_ns = clock.now_ns;
	*i = (struct query_interval){ .asked.until_ns = clock.now_ns + NS_PER_S };
	if (recorded) {
		*asked = i->recorded = *recorded;
		clock.start_ns = asked->since_ns;
		clock.end_ns = asked->until_ns;
	}
	err = find_interval(q, &clock, asked, e);
	if (err)
		return err;
	if (asked->since_ns >= asked->until_ns) {
		when_format(asked->since_ns, from);
		when_format(asked->until_ns, to);
		error_set_kind(e, ERROR_USAGE, 0,
			       "the interval is empty: it begins at %s and ends at %s", from, to);
		return error_hint(
			e,
			recorded ? "a time of day without a date is the one nearest to the file"
				 : "a time of day without a date is the last one that has passed");
	}
	i->rest = q->part == QUERY_REST;
	if (q->part == QUERY_BEFORE) {
		length_ns = asked->until_ns - asked->since_ns;
		asked->until_ns = asked->since_ns;
		asked->since_ns = length_ns < asked->since_ns ? asked->since_ns - length_ns : 1;
	}
	return 0;
}

int query_find_other(const struct tool_query *q, const char *text, const char *option,
		     const struct time_interval *recorded, struct query_interval *i,
		     struct error *e)
{
	struct tool_query other = *q;
	char *copy, *dots;
	int err;

	other.part = strcmp(text, "rest") == 0 ? QUERY_REST : QUERY_BEFORE;
	if (other.part == QUERY_REST || strcmp(text, "before") == 0)
		return query_interval(&other, recorded, i, e);
	copy = strdup(text);
	if (!copy)
		return error_no_memory(e);
	dots = strstr(copy, "..");
	err = -EINVAL;
	if (dots) {
		*dots = '\0';
		other = (struct tool_query){ .since = copy,
					     .until = dots + 2,
					     .now_ns = q->now_ns };
		err = query_interval(&other, recorded, i, e);
	}
	free(copy);
	if (err) {
		error_set_kind(e, ERROR_USAGE, 0, "%s takes TIME..TIME, not \"%s\"", option, text);
		error_hint(e, "%s \"yesterday 03:00..yesterday 04:00\", or before, or rest",
			   option);
	}
	return err;
}

void query_name(const struct query_interval *i, char text[static QUERY_NAME_SIZE])
{
	char from[WHEN_SIZE], to[WHEN_SIZE];

	when_format(i->asked.since_ns, from);
	when_format(i->asked.until_ns, to);
	snprintf(text, QUERY_NAME_SIZE, "%s%s to %s", i->rest ? "without " : "", from, to);
}

static void print_gap(const char *host, uint64_t from_ns, uint64_t to_ns)
{
	char from[WHEN_SIZE], length[WHEN_SIZE];

	when_format(from_ns - from_ns % NS_PER_S, from);
	when_format_length(to_ns / NS_PER_S * NS_PER_S - from_ns / NS_PER_S * NS_PER_S, length);
	tool_warn("  %s: no window for %s from %s on: profild did not run, or its windows were "
		  "removed",
		  host, length, from);
}

static void print_gaps(const struct archive_host *host, const struct time_interval *asked)
{
	const struct coverage *c = &host->coverage;
	uint64_t all_ns = 0, end_ns = c->spans[c->count - 1].end_ns;
	uint64_t now_ns = clock_ns(CLOCK_REALTIME);
	char length[WHEN_SIZE];

	if (asked->since_ns && c->spans[0].start_ns > asked->since_ns + COVERAGE_SLACK_NS)
		print_gap(host->name, asked->since_ns, c->spans[0].start_ns);
	for (size_t i = 1; i < c->count; i++) {
		if (i <= GAPS_SHOWN)
			print_gap(host->name, c->spans[i - 1].end_ns, c->spans[i].start_ns);
		else
			all_ns += c->spans[i].start_ns - c->spans[i - 1].end_ns;
	}
	when_format_length(all_ns / NS_PER_S * NS_PER_S, length);
	if (c->count > GAPS_SHOWN + 1)
		tool_warn("  %s: %zu more gaps, of %s", host->name, c->count - 1 - GAPS_SHOWN,
			  length);
	/* The window that is being recorded is not written yet. */
	if (asked->until_ns + 2 * 60 * NS_PER_S < now_ns + 2 * NS_PER_S &&
	    end_ns + COVERAGE_SLACK_NS < asked->until_ns)
		print_gap(host->name, end_ns, asked->until_ns);
}

static void print_coverage(const struct archive_result *result, bool quiet,
			   const struct query_interval *interval)
{
	char from[WHEN_SIZE], to[WHEN_SIZE];
	const char *merged;

	for (size_t i = 0; i < result->host_count; i++) {
		const struct archive_host *host = &result->hosts[i];
		const struct coverage *c = &host->coverage;
		uint64_t start_ns, end_ns;

		if (!c->count)
			continue;
		start_ns = c->spans[0].start_ns;
		end_ns = c->spans[c->count - 1].end_ns;
		/* Nobody asks for the fractions of whole windows. */
		if (end_ns - start_ns >= 59 * NS_PER_S) {
			start_ns -= start_ns % NS_PER_S;
			end_ns += NS_PER_S / 2;
			end_ns -= end_ns % NS_PER_S;
		}
		when_format(start_ns, from);
		when_format(end_ns, to);
		merged = "";
		if (host->grain_s == 3600)
			merged = ", some merged to 1 h";
		else if (host->grain_s == 600)
			merged = ", some merged to 10 min";
		if (!quiet)
			tool_warn("%s to %s on host %s: %" PRIu64 " window%s%s", from, to,
				  host->name, c->windows, c->windows == 1 ? "" : "s", merged);
		if (host->uncut && !quiet)
			tool_warn("  %s: %zu at the ends of the interval %s no times of ticks, and "
				  "count%s as a whole",
				  host->name, host->uncut, host->uncut == 1 ? "has" : "have",
				  host->uncut == 1 ? "s" : "");
		if (c->shortened > 0 && !quiet)
			tool_warn("  in sums of windows, up to about %.3g %% of the samples lack "
				  "callers",
				  c->shortened * 100);
		if (!interval->rest)
			print_gaps(host, &interval->asked);
	}
}

static void warn_of_lacking(const char *lacking)
{
	if (lacking && strcmp(lacking, tag_kinds[TAG_WAKER].key) == 0)
		tool_warn("the profile has no wakers: profiltool record --wall records them");
	else if (lacking &&
		 (strcmp(lacking, tag_kinds[TAG_QUERY].key) == 0 || strchr(lacking, '=')))
		tool_warn("no sample has a label \"%.*s\": " TOOL_LABEL_HINT,
			  (int)strcspn(lacking, "="), lacking, (int)strcspn(lacking, "="), lacking);
	else if (lacking)
		tool_warn("no sample has a label \"%s\": profild --continuous writes it", lacking);
}

/* name: NULL: the archive. */
/*
 * all_wall_ns: the sum of PROFILE_SUM_WALL before; 0: it has none. Threads that only waited have
 * no samples.
 */
static void print_selected(const char *name, const struct profile *p, int64_t all_wall_ns)
{
	char percent[TEXT_PERCENT_SIZE], wall[TEXT_PERCENT_SIZE + 32] = "";

	text_percent(percent, profile_amount(p).samples, p->all_samples);
	if (all_wall_ns > 0) {
		text_percent(wall, profile_total(p, PROFILE_WALL_TYPE), all_wall_ns);
		strcat(wall, " % of the wall time and ");
	}
	tool_warn("%s%sthe labels that are asked for have %s%s %% of the samples", name ?: "",
		  name ? ": " : "", wall, percent);
}

/* The wall time of all samples; 0: the profile has no such value. */
static int64_t all_wall_ns(const struct profile *p)
{
	bool has_wall = profile_find_sum(p, PROFILE_SUM_WALL) < p->value_type_count;

	return has_wall ? profile_total(p, PROFILE_WALL_TYPE) : 0;
}

/*
 * Adds to the labels that a query asks for what they are called otherwise: a user's name for the
 * number, a container's ID for its name. `containers` has the memory of these. Returns 0 or
 * -ENOMEM.
 */
static int find_other_names(struct profile_label_filter *labels, struct container_list *containers,
			    struct error *e)
{
	const char *user = labels->tags[TAG_USER];
	uint64_t uid;
	int err = 0;

	if (user && number_parse(user, 0, UINT32_MAX, &uid) == 0) {
		const struct passwd *entry = getpwuid(uid);

		labels->user = entry ? entry->pw_name : NULL; /* until the next call */
	}
	if (labels->tags[TAG_CONTAINER])
		err = containers_find(labels->tags[TAG_CONTAINER], containers, e);
	labels->containers = containers->texts;
	labels->container_count = containers->count;
	return err;
}

/* Slots of time can be no shorter than windows without times, and ticks of one host. */
static int check_times(const struct tool_query *q, const struct archive_result *result,
		       struct error *e)
{
	char length[WHEN_SIZE];
	unsigned int grain_s = 0;

	for (size_t i = 0; i < result->host_count; i++)
		grain_s = MAX(grain_s, result->hosts[i].untimed_s);
	if (!q->step_ns || (q->step_ns >= grain_s * NS_PER_S && result->host_count == 1))
		return 0;
	if (result->host_count > 1) {
		error_set(e, 0, "times of ticks of several hosts are not added up");
		return error_hint(e, "choose one: --host %s", result->hosts[0].name);
	}
	when_format_length(grain_s * NS_PER_S, length);
	error_set(e, 0, "some windows have no times of ticks, and are %s long", length);
	return error_hint(e, "choose rows as long, --by time:%um, or a later interval",
			  grain_s / 60);
}

int query_read_interval(const char *path, const struct tool_query *q,
			const struct query_interval *interval, bool quiet, struct profile **p,
			struct error *e)
{
	struct archive_query query = {
		.hosts = q->hosts,
		.host_count = q->host_count,
		.labels = q->labels,
		.host_tag = q->by_host,
		.time_tag = q->by_time,
		.step_ns = q->step_ns,
		.times = q->times,
		.no_code = q->no_code,
		.fine = q->fine,
	};
	struct archive_result result = { 0 };
	struct container_list containers = { 0 };
	char *directory, *host;
	const char *one[1];
	int err;

	if (!archive_find(path, &directory, &host)) {
		if (access(path, R_OK | X_OK))
			err = error_set(e, errno, "cannot read the archive %s", path);
		else
			err = error_set(e, 0, "%s is no archive of profild --continuous", path);
		error_hint(e, "an argument, or " ARCHIVE_ENVIRONMENT ", names another directory");
		return err;
	}
	if (host && q->host_count) {
		err = error_set_kind(e, ERROR_USAGE, 0, "--host, and %s is one host's", path);
		goto out;
	}
	query.directory = directory;
	query.since_ns = interval->asked.since_ns;
	query.since_ns -= MIN(q->before_ns, query.since_ns);
	query.until_ns = interval->asked.until_ns;
	query.rest = interval->rest;
	if (host) {
		one[0] = host;
		query.hosts = one;
		query.host_count = 1;
	}
	err = find_other_names(&query.labels, &containers, e);
	err = err ?: archive_read(&query, &result, e);
	err = err ?: check_times(q, &result, e);
	/* The sum of a host's windows gets a comment with its interval. */
	if (!err && result.host_count == 1 &&
	    coverage_describe(&result.hosts[0].coverage, result.p))
		err = error_no_memory(e);
	if (err) {
		profile_free(result.p);
		goto out;
	}
	for (size_t i = 0; i < result.p->warning_count; i++)
		tool_warn("%s", result.p->warnings[i]);
	print_coverage(&result, quiet, interval);
	if (!quiet && result.p->all_samples && !profile_label_filter_is_empty(&q->labels))
		print_selected(NULL, result.p, 0); /* windows have no waits */
	warn_of_lacking(result.lacking);
	*p = result.p;
out:
	container_list_free(&containers);
	archive_result_free(&result);
	free(directory);
	free(host);
	return err;
}

int query_read(const char *path, const struct tool_query *q, bool quiet, struct profile **p,
	       struct error *e)
{
	struct query_interval interval;
	int err = query_interval(q, NULL, &interval, e);

	return err ?: query_read_interval(path, q, &interval, quiet, p, e);
}

int query_check_times(const char *path, uint64_t timed, const struct profile *p, struct error *e)
{
	uint64_t samples = profile_amount(p).samples, waits_ns = 0, untimed_ns = 0;
	size_t width = p->value_type_count, wall = profile_find_sum(p, PROFILE_SUM_WALL);

	if (!timed && !p->waits.count) {
		error_set(e, 0, "%s has no times of ticks", path);
		return error_hint(
			e, "profiltool record writes them to pprof files, without --no-times");
	}
	if (timed < samples)
		tool_warn("%s: %" PRIu64 " of %" PRIu64 " samples have no time, and are missing",
			  path, samples - timed, samples);
	for (size_t i = 0; i < p->sample_count && p->waits.count && wall < width; i++)
		if (!p->values[i * width + PROFILE_SAMPLES])
			add_u64(&waits_ns, magnitude(p->values[i * width + wall]));
	untimed_ns = waits_ns;
	for (size_t i = 0; i < p->waits.count; i++)
		untimed_ns -= MIN(p->waits.waits[i].length_ns, untimed_ns);
	/* Files hold them in units of 10 us. */
	if (untimed_ns >= NS_PER_MS && untimed_ns / p->sample_count >= 10000)
		tool_warn("%s: %.3f of %.3f s of waits have no time, and are missing", path,
			  (double)untimed_ns / 1e9, (double)waits_ns / 1e9);
	return 0;
}

int query_cut(const char *path, const struct query_interval *i, struct profile *p, struct error *e)
{
	const struct query_interval all = { .asked = i->recorded };
	char asked[QUERY_NAME_SIZE], recorded[QUERY_NAME_SIZE];

	if (profile_filter_times(p, &i->asked, i->rest))
		return error_no_memory(e);
	query_name(i, asked);
	query_name(&all, recorded);
	if (!p->sample_count)
		tool_warn("%s: no tick from %s; it was recorded from %s", path, asked, recorded);
	return 0;
}

static int find_both(struct query_choice *c, const struct time_interval *recorded, struct error *e)
{
	int err = query_interval(c->q, recorded, &c->interval, e);

	if (!err && c->other)
		err = query_find_other(c->q, c->other, c->option, recorded, &c->compared, e);
	return err;
}

static void choose_ticks(struct tick_choice *ticks, const struct time_interval *recorded)
{
	struct query_choice *c = (struct query_choice *)ticks; /* its first member */
	const struct time_interval *other = &c->compared.asked;

	c->chosen = true;
	c->err = find_both(c, recorded, &c->e);
	ticks->keep = c->interval.asked;
	ticks->outside = c->interval.rest;
	if (!c->other)
		return;
	if (c->compared.rest)
		ticks->keep = (struct time_interval){ 0, UINT64_MAX };
	ticks->keep.since_ns = MIN(ticks->keep.since_ns, other->since_ns);
	ticks->keep.until_ns = MAX(ticks->keep.until_ns, other->until_ns);
}

struct tick_choice *query_choose(struct query_choice *choice, const struct tool_query *q,
				 const char *other, const char *option)
{
	*choice = (struct query_choice){
		.ticks.choose = choose_ticks, .q = q, .other = other, .option = option
	};
	return &choice->ticks;
}

int query_settle(const char *path, struct query_choice *choice, const struct profile *p,
		 struct error *e)
{
	uint64_t timed = choice->chosen ? choice->ticks.count : p->ticks.count;
	struct time_interval recorded;
	int err = query_check_times(path, timed, p, e);

	if (err)
		return err;
	if (!choice->chosen) {
		recorded = profile_recorded(p);
		return find_both(choice, &recorded, e);
	}
	if (choice->err)
		*e = choice->e;
	return choice->err;
}

int query_filter(const char *path, const struct tool_query *q, struct query_choice *choice,
		 bool quiet, struct profile *p, struct error *e)
{
	struct profile_label_filter labels = q->labels;
	struct container_list containers = { 0 };
	const char *lacking;
	int64_t wall_ns;
	int err = 0;

	path = tool_input_name(path);
	if (q->host_count) {
		error_set_kind(e, ERROR_USAGE, 0, "--host is for archives, and %s is a profile",
			       path);
		return -EINVAL;
	}
	if (query_has_interval(q) && (choice->chosen || p->sample_count)) {
		err = query_settle(path, choice, p, e);
		err = err ?: query_cut(path, &choice->interval, p, e);
	}
	if (err || profile_label_filter_is_empty(&q->labels))
		return err;
	if (q->labels.tags[TAG_WAKER])
		tool_show_wall(p);
	wall_ns = all_wall_ns(p);
	err = find_other_names(&labels, &containers, e);
	if (!err && profile_filter_labels(p, &labels, &lacking))
		err = error_no_memory(e);
	container_list_free(&containers);
	if (err)
		return err;
	if (!quiet && p->all_samples && !q->labels.tags[TAG_WAKER]) /* waits are no samples */
		print_selected(path, p, wall_ns);
	warn_of_lacking(lacking);
	return 0;
}
