// SPDX-License-Identifier: GPL-2.0-only
#include "tool/query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "archive/read.h"
#include "report/text.h"
#include "tool/tool.h"
#include "tool/when.h"
#include "util/clock.h"

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

/* An option that only an archive can answer; NULL: none was given. */
static const char *archive_option(const struct tool_query *q)
{
	if (q->since || q->since_s)
		return "--since";
	if (q->until || q->until_s)
		return "--until";
	return q->host_count ? "--host" : NULL;
}

bool query_is_given(const struct tool_query *q)
{
	return archive_option(q) || !profile_label_filter_is_empty(&q->labels);
}

void query_set_rows(struct tool_query *q, const struct row_view *view, bool stacks)
{
	q->leaves = view && !(view->fields & ROW_CODE) && !stacks;
	q->fine =
		view && view->fields & (ROW_ADDRESS | ROW_LINE | ROW_PROCESS | ROW_OF_TAG(TAG_CPU));
	q->by_time = view && view->fields & ROW_OF_TAG(TAG_TIME);
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

static int parse_time(const char *option, const char *text, bool later, uint64_t now_s,
		      uint64_t *time_s, struct error *e)
{
	if (when_parse(text, now_s, later, time_s) == 0)
		return 0;
	error_set_kind(e, ERROR_USAGE, 0, "%s takes a time, not \"%s\"", option, text);
	error_hint(e, WHEN_FORMS);
	return -EINVAL;
}

int query_interval(const struct tool_query *q, uint64_t *since_s, uint64_t *until_s,
		   struct error *e)
{
	uint64_t now_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	char from[WHEN_SIZE], to[WHEN_SIZE];
	int err = 0;

	*since_s = q->since_s;
	*until_s = q->until_s ?: now_s + 1;
	if (q->since)
		err = parse_time("--since", q->since, false, now_s, since_s, e);
	if (q->until && !err)
		err = parse_time("--until", q->until, true, now_s, until_s, e);
	if (err || *since_s < *until_s)
		return err;
	when_format(*since_s, from);
	when_format(*until_s, to);
	error_set_kind(e, ERROR_USAGE, 0, "the interval is empty: it begins at %s and ends at %s",
		       from, to);
	error_hint(e, "a time of day without a date is the last one that has passed");
	return -EINVAL;
}

void query_name(const struct tool_query *q, char text[static QUERY_NAME_SIZE])
{
	char from[WHEN_SIZE], to[WHEN_SIZE];

	when_format(q->since_s, from);
	when_format(q->until_s, to);
	snprintf(text, QUERY_NAME_SIZE, "%s to %s", from, to);
}

static void print_gap(const char *host, uint64_t from_s, uint64_t to_s)
{
	char from[WHEN_SIZE], length[WHEN_SIZE];

	when_format(from_s, from);
	when_format_length(to_s - from_s, length);
	tool_warn("  %s: no window for %s from %s on: profild did not run, or they were dropped",
		  host, length, from);
}

static void print_gaps(const struct archive_host *host, uint64_t since_s, uint64_t until_s)
{
	const struct coverage *c = &host->coverage;
	uint64_t all_s = 0, end_s = c->spans[c->count - 1].end_ns / NS_PER_S;
	uint64_t slack_s = COVERAGE_SLACK_NS / NS_PER_S,
		 now_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	char length[WHEN_SIZE];

	if (since_s && c->spans[0].start_ns / NS_PER_S > since_s + slack_s)
		print_gap(host->name, since_s, c->spans[0].start_ns / NS_PER_S);
	for (size_t i = 1; i < c->count; i++) {
		uint64_t from_s = c->spans[i - 1].end_ns / NS_PER_S,
			 to_s = c->spans[i].start_ns / NS_PER_S;

		if (i <= GAPS_SHOWN)
			print_gap(host->name, from_s, to_s);
		else
			all_s += to_s - from_s;
	}
	when_format_length(all_s, length);
	if (c->count > GAPS_SHOWN + 1)
		tool_warn("  %s: %zu more gaps, of %s", host->name, c->count - 1 - GAPS_SHOWN,
			  length);
	/* The window that is being recorded is not written yet. */
	if (until_s + 2 * 60 < now_s + 2 && end_s + slack_s < until_s)
		print_gap(host->name, end_s, until_s);
}

static void print_coverage(const struct archive_result *result, bool quiet, uint64_t since_s,
			   uint64_t until_s)
{
	char from[WHEN_SIZE], to[WHEN_SIZE];
	const char *merged;

	for (size_t i = 0; i < result->host_count; i++) {
		const struct archive_host *host = &result->hosts[i];
		const struct coverage *c = &host->coverage;

		if (!c->count)
			continue;
		when_format(c->spans[0].start_ns / NS_PER_S, from);
		when_format((c->spans[c->count - 1].end_ns + NS_PER_S / 2) / NS_PER_S, to);
		merged = "";
		if (host->grain_s == 3600)
			merged = ", some merged to 1 h";
		else if (host->grain_s == 600)
			merged = ", some merged to 10 min";
		if (!quiet)
			tool_warn("%s to %s on host %s: %" PRIu64 " windows%s", from, to,
				  host->name, c->windows, merged);
		if (c->shortened > 0 && !quiet)
			tool_warn("  sums of windows have no callers with less than %.3g %% of "
				  "their samples",
				  c->shortened * 100);
		print_gaps(host, since_s, until_s);
	}
}

static void warn_of_lacking(const char *lacking)
{
	if (lacking)
		tool_warn("no sample has a label \"%s\": profild --continuous writes it", lacking);
}

/* name: NULL: the archive. */
static void print_selected(const char *name, const struct profile *p)
{
	char percent[TEXT_PERCENT_SIZE];

	text_percent(percent, profile_amount(p).samples, p->all_samples);
	tool_warn("%s%sthe labels that are asked for have %s %% of the samples", name ?: "",
		  name ? ": " : "", percent);
}

int query_read(const char *path, const struct tool_query *q, bool quiet, struct profile **p,
	       struct error *e)
{
	struct archive_query query = {
		.hosts = q->hosts,
		.host_count = q->host_count,
		.labels = q->labels,
		.host_tag = q->by_host,
		.time_tag = q->by_time,
		.leaves = q->leaves,
		.fine = q->fine,
	};
	struct archive_result result = { 0 };
	uint64_t since_s, until_s;
	char *directory, *host;
	const char *one[1];
	int err = query_interval(q, &since_s, &until_s, e);

	if (err)
		return err;
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
	query.since_ns = since_s * NS_PER_S;
	query.until_ns = until_s * NS_PER_S;
	if (host) {
		one[0] = host;
		query.hosts = one;
		query.host_count = 1;
	}
	err = archive_read(&query, &result, e);
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
	print_coverage(&result, quiet, since_s, until_s);
	if (!quiet && result.p->all_samples)
		print_selected(NULL, result.p);
	warn_of_lacking(result.lacking);
	*p = result.p;
out:
	archive_result_free(&result);
	free(directory);
	free(host);
	return err;
}

int query_filter(const char *path, const struct tool_query *q, bool quiet, struct profile *p,
		 struct error *e)
{
	const char *lacking, *option = archive_option(q);

	if (option) {
		error_set_kind(e, ERROR_USAGE, 0, "%s is for archives, and %s is a profile", option,
			       tool_input_name(path));
		return -EINVAL;
	}
	if (profile_label_filter_is_empty(&q->labels))
		return 0;
	if (profile_filter_labels(p, &q->labels, &lacking))
		return error_no_memory(e);
	if (!quiet && p->all_samples)
		print_selected(tool_input_name(path), p);
	warn_of_lacking(lacking);
	return 0;
}
