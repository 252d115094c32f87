// SPDX-License-Identifier: GPL-2.0-only
#include <unistd.h>

#include "tool/recording.h"
#include "tool/tool.h"
#include "tool/top_recorded.h"
#include "tool/top_screen.h"
#include "tool/top_terminal.h"
#include "util/clock.h"

static int parse_kind(const char *value, void *member, struct error *e)
{
	struct recorded *r = member;
	const struct row_view *view = row_view_find(value, &r->label);
	char names[TOOL_LIST_SIZE];

	row_view_list(true, names, sizeof(names));
	if (!view)
		return error_set(e, 0, "--by takes one of %s, or a label, not \"%s\"", names,
				 value);
	/* Slots of time are a view of their own, in which a slot can be zoomed into. */
	r->over_time = view->fields == ROW_OF_TAG(TAG_TIME);
	if (!r->over_time)
		r->view = view;
	return 0;
}

static const struct option_spec options[] = {
	{ "by", 0, "FIELD", "what rows are each at first (function)", parse_kind, 0 },
	RECORDED_SORT_OPTION(0),
	{ "states", 0, NULL, "show first the states of threads: on CPU, runnable, blocked, idle",
	  NULL, offsetof(struct recorded, states) },
	TOOL_VALUE_OPTION(offsetof(struct recorded, value)),
	TOOL_INPUT_OPTION(struct recorded, reading),
	TOOL_QUERY_OPTIONS(struct recorded, reading.query),
	TOOL_FILTER_OPTIONS(struct recorded, filter),
	TOOL_READING_OPTIONS(struct recorded, reading),
	{ 0 },
};

static int run_browse(int argc, char **argv)
{
	struct recorded r = { .view = row_views };
	struct tool_inputs in;
	struct watch w = { 0 };
	struct error e;
	int first, signals, err,
		code = tool_options(&browse_command, &r, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (tool_find_input(&r.reading, argv + first, argc - first, &in, &e))
		return tool_fail(&e);
	if (in.count && !terminal_is_fit())
		return tool_misuse("profiltool report prints tables",
				   "browse shows profiles on a whole terminal, and %s",
				   isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)
					   ? "this one cannot move the cursor"
					   : "standard input or output is none");
	signals = recording_open_signals(&e);
	if (signals < 0)
		return tool_fail(&e);
	err = recorded_open(&r, &w, in.paths, in.count, &e);
	if (!err && w.any)
		err = screen_run(&w, signals, NS_PER_S, r.states ? 'w' : r.over_time ? 'o' : 0, &e);
	recording_release_signals();
	code = err ? tool_fail(&e) : recorded_end(&r, &w, in.paths, in.count);
	watch_free(&w);
	recorded_free(&r);
	close(signals);
	return code;
}

const struct tool_command browse_command = {
	.name = "browse",
	.arguments = "[OPTION...] FILE...",
	.help = "Shows profiles on the screen of top: functions, call trees, callers, code, "
		"threads, units; to search and to zoom into.",
	.purpose = TOOL_LOOK,
	.summary = "files or the archive on the screen of top, to search and zoom into",
	.options = options,
	.run = run_browse,
};
