// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "archive/read.h"
#include "archive/window_sum.h"
#include "report/changes/changes.h"
#include "tool/tool.h"

/* Its exit code when something got worse: what a script asks. */
#define EXIT_WORSE 3

struct changes_arguments {
	struct tool_view view;
	struct tool_query query;
	struct changes_options options;
	const char *at;
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

static const struct option_spec options[] = {
	{ "min", 0, "PERCENT", "the least difference, of a service's CPU time: 1", parse_least,
	  offsetof(struct changes_arguments, options.least_percent) },
	{ "at", 0, "TIME", "compare before and after TIME, whatever was deployed", option_text,
	  offsetof(struct changes_arguments, at) },
	TOOL_INTERVAL_OPTIONS(struct changes_arguments, query),
	{ "limit", 'E', "ROWS", "print the first ROWS rows of each; 0: all", tool_option_limit,
	  offsetof(struct changes_arguments, view.limit) },
	{ "json", 0, NULL, "print it as JSON", NULL,
	  offsetof(struct changes_arguments, view.json) },
	{ "quiet", 'q', NULL, "print no summary", NULL, offsetof(struct changes_arguments, quiet) },
	{ 0 },
};

static bool is_wanted_host(const struct changes_arguments *a, const char *host)
{
	for (size_t i = 0; i < a->query.host_count; i++)
		if (fnmatch(a->query.hosts[i], host, 0) == 0)
			return true;
	return !a->query.host_count;
}

/* Adds one window, or skips it if it is damaged or gone. */
static int add_window(struct changes *c, const struct changes_arguments *a,
		      const struct archive_window *w, bool *damaged, struct error *e)
{
	const char *lacking;
	struct profile *p;
	int err = window_read(w->path, &p, e);

	if (err == -ENOENT) /* dropped meanwhile */
		return 0;
	if (err == -EINVAL) {
		tool_warn("skipped: %s", e->what);
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

/* Adds all windows of the interval, as fine as they are. */
static int add_windows(struct changes *c, const struct changes_arguments *a, const char *directory,
		       const char *host, bool *damaged, struct error *e)
{
	struct query_interval interval;
	struct archive_window *windows;
	size_t count, added = 0;
	int err = query_interval(&a->query, NULL, &interval, e);

	err = err
		      ?: archive_list(directory, host, interval.asked.since_ns,
				      interval.asked.until_ns, &windows, &count, e);
	if (err)
		return err;
	for (size_t i = 0; i < count && !err; i++) {
		if (!is_wanted_host(a, windows[i].host))
			continue;
		added++;
		err = add_window(c, a, &windows[i], damaged, e);
	}
	archive_list_free(windows, count);
	if (!err && !added) {
		err = error_set(e, 0, "%s has no windows of this time", directory);
		error_hint(e, "profiltool report --since @0 --by time prints what there is");
	}
	return err;
}

static void print_summary(const struct changes *c, bool damaged)
{
	size_t counts[CHANGE_WORSE + 1] = { 0 };

	for (size_t i = 0; i < c->count; i++)
		counts[c->changes[i].outcome]++;
	if (c->left_out)
		tool_warn("too many functions: some are not compared");
	if (damaged)
		tool_warn("some windows are damaged, and were not compared");
	fprintf(stderr,
		TOOL_PREFIX "%zu change%s: %zu worse, %zu better, %zu moved, "
			    "%zu of another mixture, %zu the same, %zu too early to tell\n",
		c->count, c->count == 1 ? "" : "s", counts[CHANGE_WORSE], counts[CHANGE_BETTER],
		counts[CHANGE_MOVED], counts[CHANGE_MIXTURE], counts[CHANGE_NONE],
		counts[CHANGE_TOO_EARLY]);
}

static int run_changes(int argc, char **argv)
{
	struct changes_arguments a = { .view.limit = -1, .options.least_percent = 1 };
	struct report_table_options table;
	struct changes c = { 0 };
	char *directory = NULL, *host = NULL;
	const char *path;
	bool damaged = false;
	struct error e;
	int first, err, code = tool_options(&changes_command, &a, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (argc - first > 1) {
		error_set_kind(&e, ERROR_USAGE, 0, "changes takes one archive");
		error_hint(&e, "profiltool changes --since TIME [ARCHIVE]");
		return tool_fail(&e);
	}
	path = argc > first ? argv[first] : query_archive();
	if (a.at) {
		struct tool_query at = { .since = a.at };
		struct query_interval interval;

		if (query_interval(&at, NULL, &interval, &e))
			return tool_fail(&e);
		a.options.at_ns = interval.asked.since_ns;
	}
	if (!archive_find(path, &directory, &host)) {
		error_set(&e, 0, "%s is no archive of profild --continuous", path);
		error_hint(&e, "an argument, or " ARCHIVE_ENVIRONMENT ", names another directory");
		return tool_fail(&e);
	}
	table = tool_table_options(&a.view);
	err = changes_begin(&c) ? error_no_memory(&e) : 0;
	err = err ?: add_windows(&c, &a, directory, host, &damaged, &e);
	if (!err &&
	    (changes_find(&c, &a.options) ||
	     (a.view.json ? changes_json(&c, &table, stdout) : changes_print(&c, &table, stdout))))
		err = error_no_memory(&e);
	tool_flush();
	if (err)
		code = tool_fail(&e);
	else
		code = changes_outcome(&c) == CHANGE_WORSE ? EXIT_WORSE : EXIT_DONE;
	if (!err && !a.quiet)
		print_summary(&c, damaged);
	changes_free(&c);
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
