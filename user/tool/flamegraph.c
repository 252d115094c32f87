// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "report/flame_graph/flame_graph.h"
#include "tool/tool.h"
#include "util/file.h"

#define LEAST_PERCENT 0.1

enum form {
	FORM_BY_NAME,
	FORM_SVG,
	FORM_HTML,
};

enum roots {
	ROOTS_BY_PROFILE, /* processes when there are several */
	ROOTS_FUNCTIONS,
	ROOTS_PROCESSES,
	ROOTS_THREADS,
};

struct flamegraph_options {
	const char *output;
	enum form form;
	enum roots by;
	const char *title;
	char *earlier; /* path of the profile to compare with, or an interval of this one */
	const char *value;
	double percent;
	bool icicle;
	bool inverted;
	struct profile_filter filter;
	struct tool_reading reading;
};

static int parse_format(const char *value, void *member, struct error *e)
{
	static const char *const words[] = { [FORM_SVG] = "svg", [FORM_HTML] = "html" };
	int form = tool_find_word("--format", value, words, sizeof(words) / sizeof(*words), e);

	*(enum form *)member = form < 0 ? FORM_BY_NAME : (enum form)form;
	return form < 0 ? form : 0;
}

static int parse_by(const char *value, void *member, struct error *e)
{
	static const char *const words[] = { [ROOTS_FUNCTIONS] = "function",
					     [ROOTS_PROCESSES] = "process",
					     [ROOTS_THREADS] = "thread" };
	int by = tool_find_word("--by", value, words, sizeof(words) / sizeof(*words), e);

	*(enum roots *)member = by < 0 ? ROOTS_BY_PROFILE : (enum roots)by;
	return by < 0 ? by : 0;
}

/* clang-format off */
static const struct option_spec options[] = {
	{ "output", 'o', "OUT", "write it to OUT, .svg or .html; - is standard output",
	  option_text, offsetof(struct flamegraph_options, output) },
	{ "format", 'f', "svg|html", "what to write; else by OUT's extension; of - and pipes, svg",
	  parse_format, offsetof(struct flamegraph_options, form) },
	{ "diff", 0, "OLD", "colour it by what has changed since this profile, or interval: before",
	  option_text, offsetof(struct flamegraph_options, earlier) },
	{ "icicle", 0, NULL, "the root on top", NULL,
	  offsetof(struct flamegraph_options, icicle) },
	{ "inverted", 0, NULL, "from the functions that ran to their callers", NULL,
	  offsetof(struct flamegraph_options, inverted) },
	{ "by", 0, "function|process|thread", "what the lowest frames are (processes, when"
	  " there are several)", parse_by, offsetof(struct flamegraph_options, by) },
	{ "percent", 0, "P", "fold frames under P % of all samples (0.1)",
	  tool_option_percent, offsetof(struct flamegraph_options, percent) },
	{ "title", 0, "TEXT", "what stands above it", option_text,
	  offsetof(struct flamegraph_options, title) },
	TOOL_VALUE_OPTION(offsetof(struct flamegraph_options, value)),
	TOOL_QUERY_OPTIONS(struct flamegraph_options, reading.query),
	TOOL_FILTER_OPTIONS(struct flamegraph_options, filter),
	TOOL_READING_OPTIONS(struct flamegraph_options, reading),
	{ 0 },
};
/* clang-format on */

struct graph {
	struct profile *p;
	struct profile *earlier;	     /* NULL: none */
	struct profile_filtered filtered[2]; /* of both */
	struct flame_graph_options options;
};

static int read_checked(char *const *paths, int count, const struct tool_reading *reading,
			const struct flamegraph_options *o, struct profile **p, struct error *e)
{
	int err = tool_read_all(paths, count, reading, p, e);

	return err ?: tool_check_value(*p, o->value, e);
}

/* True if --diff names no file, but an interval. */
static bool is_interval(const char *text)
{
	if (access(text, F_OK) == 0)
		return false;
	return strcmp(text, "before") == 0 || strcmp(text, "rest") == 0 || strstr(text, "..");
}

/* Reads the profiles, and what they are compared with. */
static int read_profiles(char *const *paths, int count, const struct flamegraph_options *o,
			 struct graph *g, struct tool_two *two, struct error *e)
{
	struct tool_reading of[2] = { o->reading, o->reading };
	bool archives[2] = { o->earlier && query_is_archive(o->earlier),
			     count == 1 && query_is_archive(paths[0]) };
	int err;

	if (o->earlier && is_interval(o->earlier)) {
		if (count > 1)
			return error_usage(e, "profiltool merge makes one of several",
					   "--diff %s is for one profile", o->earlier);
		err = tool_read_two(paths[0], &o->reading, o->earlier, "--diff", two, e);
		g->p = two->p[1];
		g->earlier = two->p[0];
		err = err ?: tool_check_value(g->p, o->value, e);
		return err ?: tool_check_value(g->earlier, o->value, e);
	}
	/* Of an archive and a file, the interval is the archive's. */
	for (int i = 0; i < 2 && o->earlier; i++)
		if (!archives[i] && archives[!i])
			query_clear_interval(&of[i].query);
	err = read_checked(paths, count, &of[1], o, &g->p, e);
	return err || !o->earlier ? err : read_checked(&o->earlier, 1, &of[0], o, &g->earlier, e);
}

static enum call_tree_roots roots_of(const struct flamegraph_options *o, const struct graph *g)
{
	const struct profile *p = g->p;

	if (o->by == ROOTS_PROCESSES)
		return CALL_TREE_PROCESSES;
	if (o->by == ROOTS_THREADS)
		return CALL_TREE_THREADS;
	/* PIDs of two recordings have nothing in common. */
	if (o->by == ROOTS_FUNCTIONS || g->earlier || o->inverted)
		return CALL_TREE_FUNCTIONS;
	for (size_t i = 1; i < p->sample_count; i++)
		if (p->labels[p->samples[i].labels].pid != p->labels[p->samples[0].labels].pid)
			return CALL_TREE_PROCESSES;
	return CALL_TREE_FUNCTIONS;
}

static int write_graph(FILE *out, void *context, struct error *e)
{
	const struct graph *g = context;

	return flame_graph_print(g->p, g->earlier, &g->options, out) ? error_no_memory(e) : 0;
}

/*
 * Refuses to overwrite a profile that is read, which a graph cannot replace. Sets the form by the
 * name of the output, unless --format did. Returns 0 or -errno with e set.
 */
static int check_output(char *const *paths, int count, struct flamegraph_options *o,
			struct error *e)
{
	const char *dot = strrchr(o->output, '.');
	char *earlier = o->earlier && !is_interval(o->earlier) ? o->earlier : NULL;
	int err = 0;

	if (tool_find_in_output(paths, count, o->output) ||
	    (earlier && tool_find_in_output(&earlier, 1, o->output)))
		return error_usage(e, "write the graph to another file: -o graph.svg",
				   "-o %s is one of the profiles to read", o->output);
	if (strcmp(o->output, "-") != 0)
		err = file_check_writable(o->output, e);
	if (err || o->form != FORM_BY_NAME)
		return err;
	if (tool_is_unnamed(o->output) || (dot && strcasecmp(dot, ".svg") == 0)) {
		o->form = FORM_SVG;
	} else if (dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0)) {
		o->form = FORM_HTML;
	} else {
		err = error_set_kind(e, ERROR_USAGE, 0, "the name %s is not that of a graph",
				     o->output);
		error_hint(e, "end it in .svg or .html; or add -f svg or -f html");
	}
	return err;
}

static int run_flamegraph(int argc, char **argv)
{
	struct flamegraph_options o = { .percent = LEAST_PERCENT };
	struct tool_two two = { 0 };
	struct graph g = { 0 };
	enum profile_stacks stacks;
	struct tool_inputs in;
	char title[1024];
	struct error e;
	int first, err, code = tool_options(&flamegraph_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	tool_find_inputs(argv + first, argc - first, &o.reading.query, &in);
	if (!in.count || !o.output)
		return tool_misuse("profiltool flamegraph FILE... -o OUT.svg",
				   "flamegraph takes a profile, and -o OUT");
	err = check_output(in.paths, in.count, &o, &e);
	err = err ?: read_profiles(in.paths, in.count, &o, &g, &two, &e);
	err = err ?: tool_filter(g.p, &o.filter, o.value, &g.filtered[0], &e);
	/* The filter may remove all of it, if it lacks functions that are new. */
	if (!err && g.earlier)
		err = profile_filter(g.earlier, &o.filter, &g.filtered[1], &e);
	if (err) {
		code = tool_fail(&e);
		goto out;
	}
	if (!profile_magnitude(g.p, o.value)) {
		tool_warn("%s: there are no samples to draw", in.paths[0]);
		code = EXIT_NO_SAMPLES;
		goto out;
	}
	if (*two.names[0])
		snprintf(title, sizeof(title), "%s against %s", two.names[1], two.names[0]);
	else if (o.earlier)
		snprintf(title, sizeof(title), "%s against %s", in.paths[0], o.earlier);
	else
		snprintf(title, sizeof(title), "%s", *g.p->command ? g.p->command : in.paths[0]);
	g.options = (struct flame_graph_options){
		.html = o.form == FORM_HTML,
		.icicle = o.icicle,
		.title = o.title ?: title,
		.tree.roots = roots_of(&o, &g),
		.tree.inverted = o.inverted,
		.tree.value = o.value,
		.tree.min_share = o.percent / 100,
		.tree.depth_max = FLAME_GRAPH_DEPTH_MAX,
		.tree.filtered = g.filtered,
	};
	stacks = profile_stacks_unfiltered(g.p, &g.filtered[0]);
	if (stacks != PROFILE_CALL_STACKS)
		tool_warn("%s has no call stacks%s: record with -g", in.paths[0],
			  stacks ? " but of inlined functions" : "");
	if (strcmp(o.output, "-") != 0)
		err = file_write(o.output, FILE_LIKE_SHELL, write_graph, &g, &e);
	else
		err = write_graph(stdout, &g, &e); /* main() checks for errors of writing */
	code = err ? tool_fail(&e) : tool_done(g.p);
out:
	profile_filtered_free(&g.filtered[0]);
	profile_filtered_free(&g.filtered[1]);
	profile_free(g.p);
	profile_free(g.earlier);
	return code;
}

const struct tool_command flamegraph_command = {
	.name = "flamegraph",
	.arguments = "[OPTION...] FILE... -o OUT",
	.help = "Draws the call stacks of profiles: a file to be looked at with a browser.",
	.purpose = TOOL_LOOK,
	.summary = "the call stacks as a flame graph, for a browser",
	.options = options,
	.run = run_flamegraph,
};
