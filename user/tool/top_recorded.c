// SPDX-License-Identifier: GPL-2.0-only
#include "tool/top_recorded.h"

#include <string.h>

#include "util/sum.h"

int recorded_option_sort(const char *value, void *member, struct error *e)
{
	struct recorded *r = member;
	const struct row_view *view = tool_view_of_keys(value);

	if (view) {
		r->view = view;
		return 0;
	}
	if (strcmp(value, "wait") == 0) /* its older name */
		value = "runnable";
	for (int i = 0; i < LIVE_SORTS; i++)
		if (strcmp(value, live_sort_names[i]) == 0) {
			r->sort = i;
			return 0;
		}
	return error_set(e, 0,
			 "--sort takes self, total, name, image, runnable, delay, or of perf's "
			 "keys one of " TOOL_SORT_KEYS ", or several as comm,dso,sym, not \"%s\"",
			 value);
}

int recorded_open(struct recorded *r, struct watch *w, char *const *paths, int count,
		  struct error *e)
{
	struct tool_inputs in;
	struct query_interval all = { 0 };
	char name[sizeof(w->name)], when[QUERY_NAME_SIZE] = "";
	struct profile *p;
	int err;

	*w = (struct watch){ 0 };
	tool_find_inputs(paths, count, &r->reading.query, &in);
	if (!in.count)
		return error_usage(e,
				   "profiltool browse FILE...; or an interval of the archive: "
				   "profiltool browse --since -1h",
				   "browse takes a profile");
	/* Every view can be asked for later. */
	query_set_rows(&r->reading.query, r->view, true);
	r->reading.query.fine = true;
	if (r->view->fields & ROW_SOURCE)
		r->reading.naming.lines = true;
	err = tool_read_all(in.paths, in.count, &r->reading, &p, e);
	if (err)
		return err;
	if (p->time_ns) {
		all.asked.since_ns = all.asked.until_ns = p->time_ns;
		add_u64(&all.asked.until_ns, p->duration_ns);
		query_name(&all, when);
	}
	if (in.count > 1)
		snprintf(name, sizeof(name), "%d profiles%s%s", in.count, *when ? ", " : "", when);
	else if (*when && query_is_archive(in.paths[0]))
		snprintf(name, sizeof(name), "%s", when);
	else
		snprintf(name, sizeof(name), "%s%s%s", tool_input_name(in.paths[0]),
			 *when ? ", " : "", when);
	err = tool_check_value(p, r->value, e) ?: tool_check_tag(p, r->view, e);
	if (!err && r->view->fields & ROW_STATE)
		tool_show_wall(p);
	if (!err && r->sort == LIVE_BY_DELAY)
		err = tool_check_value(p, PROFILE_DELAY_TYPE, e);
	if (!err && r->states && !p->wall_count) {
		err = error_set(e, 0, "%s: it has no states of threads", name);
		error_hint(e, "profiltool record --wall records them");
	}
	err = err ?: tool_filter(p, &r->filter, r->value, &r->filtered, e);
	if (err) {
		profile_free(p);
		return err;
	}
	err = watch_recorded(w, p, name, r->value, &r->filtered, e);
	if (err)
		return err;
	w->live.sort = r->sort;
	w->live.lines = r->reading.naming.lines;
	live_show(&w->live, r->view);
	if (live_collect(&w->live))
		return error_no_memory(e);
	w->any = w->live.sum > 0 || (p->wall_count && !(r->view->fields & ROW_STATE));
	return 0;
}

void recorded_free(struct recorded *r)
{
	profile_filtered_free(&r->filtered);
}

int recorded_end(const struct recorded *r, const struct watch *w, char *const *paths, int count)
{
	struct tool_inputs in;

	if (w->any)
		return tool_done(w->live.p);
	tool_find_inputs(paths, count, &r->reading.query, &in);
	return tool_no_samples(w->live.p, r->value, &r->filtered, &r->reading.query, in.paths,
			       in.count);
}
