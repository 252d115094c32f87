// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "archive/packages.h"
#include "archive/read.h"
#include "archive/window_sum.h"
#include "report/changes/changes.h"
#include "tool/metric.h"
#include "tool/tool.h"

/* Its exit code when something got worse: what a script asks. */
#define EXIT_WORSE 3

/* Bound: caller: --per of one command; then: it is refused. */
#define METRICS_MAX 64

/* The values of --per. */
struct metric_arguments {
	const char *texts[METRICS_MAX];
	size_t count;
};

struct changes_arguments {
	struct tool_view view;
	struct metric_arguments metrics;
	bool rates; /* they are */
	struct tool_query query;
	struct changes_options options;
	const char *at;
	struct {
		const struct row_view *view; /* NULL: functions */
		struct row_view label;	     /* what it may point to */
	} by;
	bool quiet;
};

static int parse_least(const char *value, void *member, struct error *e)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || (*end && strcmp(end, "%") != 0) || !(percent > 0 && percent <= 100))
		return error_set(e, 0, "--min takes a percentage above 0, not \"%s\"", value);
	*(double *)member = percent;
	return 0;
}

static int parse_metric(const char *value, void *member, struct error *e)
{
	struct metric_arguments *m = member;

	if (m->count == METRICS_MAX)
		return error_set(e, 0, "--per was given more than %d times", METRICS_MAX);
	m->texts[m->count++] = value;
	return 0;
}

static int parse_by(const char *value, void *member, struct error *e)
{
	struct changes_arguments *a = member;
	const struct row_view *view = row_view_find(value, &a->by.label);

	/* The rest is of code, or the same in all of a service. */
	a->by.view = view && view != row_views ? view : NULL;
	if (view == row_views || (view && view->fields & ROW_TAGS & ~ROW_OF_TAG(TAG_TIME)))
		return 0;
	return error_set(e, 0,
			 "--by takes function, query, route, application or another label, not "
			 "\"%s\"",
			 value);
}

static const struct option_spec options[] = {
	{ "min", 0, "PERCENT", "the least difference, of a service's CPU time: 1", parse_least,
	  offsetof(struct changes_arguments, options.least_percent) },
	{ "at", 0, "TIME", "compare before and after TIME, whatever was deployed", option_text,
	  offsetof(struct changes_arguments, at) },
	{ "per", 0, "UNIT=FILE", "compare the CPU time of a request: FILE counts UNIT's requests",
	  parse_metric, offsetof(struct changes_arguments, metrics) },
	{ "per-rate", 0, NULL, "FILE has requests in a second, not a counter", NULL,
	  offsetof(struct changes_arguments, rates) },
	{ "by", 0, "LABEL", "compare queries, routes, or another label, not functions", parse_by,
	  0 },
	TOOL_INTERVAL_OPTIONS(struct changes_arguments, query),
	{ "limit", 'E', "ROWS", "print the first ROWS rows of each; 0: all", tool_option_limit,
	  offsetof(struct changes_arguments, view.limit) },
	{ "json", 0, NULL, "print it as JSON", NULL,
	  offsetof(struct changes_arguments, view.json) },
	{ "quiet", 'q', NULL, "print no summary", NULL, offsetof(struct changes_arguments, quiet) },
	{ 0 },
};

/* Adds one window, or skips it if it is damaged or gone. */
static int add_window(struct changes *c, const struct changes_arguments *a,
		      const struct archive_window *w, bool *damaged, struct error *e)
{
	const char *lacking;
	struct profile *p;
	int err = window_read_stacks(w->path, changes_choice(c), &p, e);

	if (err == -ENOENT) /* dropped meanwhile */
		return 0;
	if (err == -EINVAL) {
		tool_warn("not read: %s", e->what);
		*damaged = true;
		return 0;
	}
	if (err)
		return err;
	err = profile_filter_labels(p, &a->query.labels, &lacking)
		      ?: changes_add(c, w->host, w->start_ns, w->limit_ns, p);
	profile_free(p);
	return err ? error_no_memory(e) : 0;
}

/* Adds all windows of the interval, as fine as they are, and the packages of their hosts. */
static int add_windows(struct changes *c, const struct changes_arguments *a, const char *directory,
		       const char *host, struct archive_packages *packages, bool *damaged,
		       struct error *e)
{
	struct query_interval interval;
	struct archive_window *windows;
	const char *host_added = NULL;
	size_t count, added = 0;
	int err = query_interval(&a->query, NULL, &interval, e);

	err = err
		      ?: archive_list(directory, host, interval.asked.since_ns,
				      interval.asked.until_ns, &windows, &count, e);
	if (err)
		return err;
	for (size_t i = 0; i < count && !err; i++) {
		bool is_wanted = !a->query.host_count;

		for (size_t k = 0; k < a->query.host_count && !is_wanted; k++)
			is_wanted = fnmatch(a->query.hosts[k], windows[i].host, 0) == 0;
		if (!is_wanted)
			continue;
		if ((!host_added || strcmp(host_added, windows[i].host) != 0) &&
		    packages_read(packages, directory, windows[i].host))
			err = error_no_memory(e);
		host_added = windows[i].host;
		added++;
		err = err ?: add_window(c, a, &windows[i], damaged, e);
	}
	archive_list_free(windows, count);
	if (!err && !added) {
		err = error_set(e, 0, "%s has no windows of this time", directory);
		error_hint(e, "profiltool report --since @0 --by time prints what there is");
	}
	return err;
}

/*
 * Reads the metrics, of which each belongs to a unit or container. metrics: METRICS_MAX; their
 * lists, and units if not NULL, are the caller's to free, in any case.
 */
static int read_metrics(const struct changes_arguments *a, struct changes_metric *metrics,
			struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < a->metrics.count && !err; i++) {
		const char *path = a->metrics.texts[i], *end = strchr(path, '=');

		if (end == path)
			return error_set_kind(e, ERROR_USAGE, 0, "--per %s names no unit", path);
		if (end && !memchr(path, '/', end - path)) {
			metrics[i].unit = strndup(path, end - path);
			if (!metrics[i].unit)
				return error_no_memory(e);
			path = end + 1;
		}
		err = metric_read(path, a->rates, &metrics[i], e);
	}
	return err;
}

/* A metric is of one service: fails if it was taken for those of several. Warns if of none. */
static int check_metrics(const struct changes *c, const struct changes_arguments *a,
			 struct error *e)
{
	for (size_t i = 0; i < a->metrics.count; i++) {
		const struct changes_metric *m = &a->options.metrics[i];
		const struct change *first = NULL;

		for (size_t k = 0; k < c->count; k++) {
			const struct change *change = &c->changes[k];

			if (change->metric != m)
				continue;
			first = first ?: change;
			if (strcmp(first->service, change->service) == 0 &&
			    strcmp(first->host, change->host) == 0)
				continue;
			return error_usage(
				e, "--per UNIT=FILE, --unit and --host choose one",
				"--per %s would be of %s on host %s and of %s on host %s",
				a->metrics.texts[i], first->service, first->host, change->service,
				change->host);
		}
		if (!first)
			tool_warn("--per %s: nothing was deployed of what it counts",
				  a->metrics.texts[i]);
	}
	return 0;
}

static void print_summary(const struct changes *c)
{
	size_t counts[CHANGE_WORSE + 1] = { 0 };

	for (size_t i = 0; i < c->count; i++)
		counts[c->changes[i].outcome]++;
	fprintf(stderr,
		TOOL_PREFIX "%zu change%s: %zu worse, %zu better, %zu moved, "
			    "%zu of another mixture, %zu of other waits, %zu the same, "
			    "%zu too early to tell\n",
		c->count, c->count == 1 ? "" : "s", counts[CHANGE_WORSE], counts[CHANGE_BETTER],
		counts[CHANGE_MOVED], counts[CHANGE_MIXTURE], counts[CHANGE_WAITS],
		counts[CHANGE_NONE], counts[CHANGE_TOO_EARLY]);
}

static int run_changes(int argc, char **argv)
{
	struct tool_ignored ignored = {
		.what = "changes without --per",
		.options = "per-rate",
		.hint = "--per UNIT=FILE names the file with its requests",
	};
	struct changes_arguments a = { .view.limit = -1, .options.least_percent = 1 };
	struct changes_metric metrics[METRICS_MAX] = { 0 };
	struct report_table_options table;
	struct archive_packages packages = { 0 };
	struct changes c = { 0 };
	char *directory = NULL, *host = NULL;
	const char *path;
	bool damaged = false;
	struct error e;
	int first, err, code = tool_options(&changes_command, &a, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (argc - first > 1)
		return tool_misuse("profiltool changes --since TIME [ARCHIVE]",
				   "changes takes one archive");
	ignored.applies = !a.metrics.count;
	if (tool_check_ignored(&changes_command, &ignored, 1, first, argv, &e))
		return tool_fail(&e);
	path = argc > first ? argv[first] : query_archive();
	if (a.at) {
		struct tool_query at = { .since = a.at };
		struct query_interval interval;

		if (query_interval(&at, NULL, &interval, &e))
			return tool_fail(&e);
		a.options.at_ns = interval.asked.since_ns ?: 1; /* 0: none */
	}
	if (!archive_find(path, &directory, &host)) {
		error_set(&e, 0, "%s is no archive of profild --continuous", path);
		error_hint(&e, "an argument, or " ARCHIVE_ENVIRONMENT ", names another directory");
		return tool_fail(&e);
	}
	table = tool_table_options(&a.view);
	a.options.packages = &packages;
	a.options.metrics = metrics;
	a.options.metric_count = a.metrics.count;
	err = read_metrics(&a, metrics, &e);
	err = err ?: (changes_begin(&c, a.by.view) ? error_no_memory(&e) : 0);
	err = err ?: add_windows(&c, &a, directory, host, &packages, &damaged, &e);
	err = err
		      ?: (changes_find(&c, &a.options, true) || changes_find(&c, &a.options, false)
				  ? error_no_memory(&e)
				  : 0);
	err = err ?: check_metrics(&c, &a, &e);
	if (!err &&
	    (a.view.json ? changes_json(&c, &table, stdout) : changes_print(&c, &table, stdout)))
		err = error_no_memory(&e);
	tool_flush();
	if (err)
		code = tool_fail(&e);
	else
		code = changes_outcome(&c) == CHANGE_WORSE ? EXIT_WORSE : EXIT_DONE;
	for (int of_system = 1; of_system >= 0 && !err; of_system--)
		if (changes_omitted(&c, of_system))
			tool_warn("not all of %s%s is compared: too many functions, services or "
				  "deploys",
				  changes_omitted(&c, of_system),
				  of_system ? "" : ", and perhaps other users,");
	if (!err && a.by.view && !c.has_label)
		tool_warn("--by %s: no sample has a label %s", a.by.view->name, a.by.view->name);
	if (!err && damaged)
		tool_warn("some windows are damaged, and were not compared");
	if (!err && !a.quiet)
		print_summary(&c);
	changes_free(&c);
	packages_free(&packages);
	for (size_t i = 0; i < a.metrics.count; i++) {
		free(metrics[i].unit);
		free(metrics[i].list);
	}
	free(directory);
	free(host);
	return code;
}

const struct tool_command changes_command = {
	.name = "changes",
	.arguments = "[--since TIME] [OPTION...] [ARCHIVE]",
	.help = "Finds what services were deployed or restarted in the archive of profild "
		"--continuous, and what costs more CPU time since then.",
	.purpose = TOOL_COMPARE,
	.summary = "what costs more since a deploy, in the archive",
	.options = options,
	.run = run_changes,
};
