// SPDX-License-Identifier: GPL-2.0-only
#include "tool/top_pane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/thread_state.h"
#include "report/annotate/annotate.h"
#include "report/annotation.h"
#include "report/calls/call_view.h"
#include "report/flat/flat.h"
#include "report/report.h"
#include "report/text.h"
#include "util/array.h"
#include "util/clock.h"

/* The pause before a text is made again, as a multiple of the time that it took. */
#define REST 50

#define CALLERS_PERCENT 0.5 /* of all samples: callers with less get no line */

static const char help_keys[] =
	"Keys\n"
	"\n"
	"  q            back; in the table: quit\n"
	"  Esc          back: out of a zoom, a filter, a view; Backspace too\n"
	"  Up Down PgUp PgDn Home End, or j k b g G\n"
	"               move\n"
	"  /            in the table: only rows that match a regular expression; in the\n"
	"               tree: only stacks with a function that matches; in a text: search\n"
	"  n N          the next match, or the one before; in code: the next hot line\n"
	"  ?            this help\n"
	"\n"
	"In the table\n"
	"\n"
	"  Enter        of a function: its code; else: the functions of the row\n"
	"  a            its code: instructions and source, with samples\n"
	"  T            the tree of calls, from the outermost functions on\n"
	"  c            what calls the function, as a tree; c again: what it calls\n"
	"  Tab          rows: functions, images, addresses, sources, lines, threads,\n"
	"               processes, names; units and others that samples are labelled with\n"
	"  F t P i u    rows: functions, threads, processes, images, units\n"
	"  s            sort by: self, total (with stacks), name, image, wait, delay\n";

static const char help_live[] =
	"  w            states of threads since the last update: on CPU, runnable (no free\n"
	"               CPU), blocked, idle; there, t and P: of each thread, or process\n"
	"  Space, f     freeze, and go on\n"
	"  z            restart from zero\n";

static const char help_recorded[] =
	"  w            states of threads: on CPU, runnable (no free CPU), blocked and by\n"
	"               what, idle; there, t and P: of each thread, or process\n"
	"  o            over time: how many CPUs were busy; Enter there zooms into a slot\n"
	"  v            what is counted: samples, wall, an event\n"
	"  Space, f     a page on\n";

static const char help_tree[] =
	"\n"
	"In a tree\n"
	"\n"
	"  Enter, +     open, or close, what is called here; Right opens, Left and - close\n"
	"  E C          open all below that has 0.5 % of all samples; close all\n"
	"  z            zoom: only stacks that pass here, in all views\n"
	"  a, c         the code of the function; what calls it\n"
	"  F t P i u    rows of the samples that the tree shows\n"
	"\n"
	"Columns\n"
	"\n"
	"  self%        of all samples: those in the function itself; without stacks %\n"
	"  total%       those in what it calls, too\n"
	"  cpu%         CPU time in the function itself, of one CPU: as %CPU in top(1)\n";

static const char help_live_notes[] =
	"\n"
	"Older samples fade: after the half-life (5 s, or --half-life) they count half.\n"
	"Numbers of code do not fade: they are of all samples since the beginning.\n"
	"\n"
	"In the second line: the CPU time of what is profiled, of one CPU, and what of\n"
	"it was spent in the kernel; samples that were lost because a table was full;\n"
	"what one tick costs the profiled program; how much of a CPU this program uses\n"
	"itself.\n";

static int print_code(struct pane *pane, struct live *l, unsigned int width, FILE *out,
		      struct error *e)
{
	struct annotation_options options = {
		.function = pane->function,
		.image = pane->image,
		/* CPU time of a clock is shown as samples. */
		.value = l->recorded && l->value != PROFILE_CPU ? live_value(l) : NULL,
	};
	struct report_listing_options listing = { .width = width, .color = true };
	struct annotation a;
	int err = annotation_make(&a, l->p, &options, e);

	if (!err)
		report_listing_title(&a, "", out);
	if (!err && report_listing(&a, &listing, out))
		err = error_no_memory(e);
	if (!err)
		annotation_notes(&a, "", out);
	annotation_free(&a);
	pane->fixed = 2;
	return err;
}

static int print_calls(struct pane *pane, struct live *l, unsigned int width, FILE *out,
		       struct error *e)
{
	struct call_view_options options = {
		.function = pane->function,
		.image = pane->image,
		.callers = !pane->callees,
		.value = live_value(l),
		.percent = CALLERS_PERCENT,
	};
	struct call_view_style style = { .width = width, .color = true, .utf8 = true };
	struct call_view view;
	int err = call_view_make(&view, l->p, &options, e);

	fprintf(out, "What %s", pane->callees ? "" : "calls ");
	text_print(pane->function, out);
	fputs(pane->callees ? " calls\n" : "\n", out);
	if (!err && call_view_print(&view, &style, out))
		err = error_no_memory(e);
	call_view_free(&view);
	pane->fixed = 2;
	return err;
}

int pane_update(struct pane *pane, struct live *l, unsigned int width, struct error *e)
{
	uint64_t start = now_ns(), now;
	struct thread_times times;
	char *text = NULL, *end;
	size_t size;
	FILE *out;
	int err = 0;

	if (pane->kind == PANE_TREE)
		return !pane->tree.builder && (live_select(l) || live_tree_restore(&pane->tree, l))
			       ? error_no_memory(e)
			       : 0;
	if (pane->kind == PANE_TIME)
		return 0;
	if (pane->width == width && (pane->kind == PANE_HELP || start < pane->due_ns))
		return 0;
	pane->width = width;
	out = open_memstream(&text, &size);
	if (!out)
		return error_no_memory(e);
	if (pane->kind == PANE_CODE)
		err = print_code(pane, l, width, out, e);
	else if (pane->kind == PANE_CALLS)
		err = print_calls(pane, l, width, out, e);
	else if (pane->kind == PANE_STATES &&
		 (live_select(l) || live_states(l, pane->view, width, true, SIZE_MAX, out)))
		err = error_no_memory(e);
	else if (pane->kind == PANE_STATES)
		pane->fixed = profile_thread_times(l->p, &times) ? 4 : 3;
	else
		fprintf(out, "%s%s%s%s", help_keys, l->recorded ? help_recorded : help_live,
			help_tree, l->recorded ? "" : help_live_notes);
	if (fclose(out) && !err)
		err = error_no_memory(e);
	if (err) {
		free(text);
		return err;
	}
	free(pane->text);
	pane->text = text;
	now = now_ns();
	/* The states of threads are those of one update: each is shown. */
	pane->due_ns = pane->kind == PANE_STATES ? 0 : now + (now - start) * REST;
	/* The offset of each line, and of the end. */
	pane->count = 0;
	for (;;) {
		if (array_reserve(&pane->lines, &pane->room, pane->count + 1, sizeof(*pane->lines)))
			return error_no_memory(e);
		pane->lines[pane->count] = text - pane->text;
		end = strchr(text, '\n');
		if (!end)
			return 0;
		pane->count++;
		text = end + 1;
	}
}

static int copy_text(char **copy, const char *text)
{
	*copy = text ? strdup(text) : NULL;
	return text && !*copy ? -ENOMEM : 0;
}

int pane_open(struct pane *pane, enum pane_kind kind, struct live *l, const char *function,
	      const char *image, unsigned int width, struct error *e)
{
	int err = 0;

	*pane = (struct pane){ .kind = kind, .zooms = l->zoom_count };
	/* Those of the rows that are shown, if these are threads or processes. */
	pane->view = row_view_by_name(l->view->fields & ROW_THREAD ? "thread" : "process");
	if (kind == PANE_STATES && !l->p->wall_count)
		err = error_set(e, 0, "no wall times: %s",
				l->p->sample_count ? "neither this kernel nor this profile has them"
						   : "nothing was recorded yet");
	else if (kind == PANE_TREE && !profile_stacks(l->p))
		err = error_set(e, 0, "callers are known with call stacks: profiltool %s -g",
				l->recorded ? "record" : "top");
	else if (copy_text(&pane->function, function) || copy_text(&pane->image, image))
		err = error_no_memory(e);
	if (!err && kind == PANE_TREE)
		err = live_select(l) ? error_no_memory(e)
				     : live_tree_make(&pane->tree, l, function, image, function, e);
	if (!err && kind == PANE_TIME)
		err = live_select(l) ? error_no_memory(e) : live_time_make(&pane->time, l, e);
	err = err ?: pane_update(pane, l, width, e);
	if (err)
		pane_close(pane);
	return err;
}

int pane_suspend(struct pane *pane)
{
	return pane->kind == PANE_TREE && pane->tree.builder ? live_tree_save(&pane->tree) : 0;
}

void pane_close(struct pane *pane)
{
	live_tree_free(&pane->tree);
	live_time_free(&pane->time);
	if (pane->has_regex)
		regfree(&pane->regex);
	free(pane->function);
	free(pane->image);
	free(pane->text);
	free(pane->lines);
	*pane = (struct pane){ 0 };
}

int pane_search(struct pane *pane, const char *pattern, struct error *e)
{
	regex_t regex;
	int err = live_compile(&regex, pattern, e);

	if (err)
		return err;
	if (pane->has_regex)
		regfree(&pane->regex);
	pane->regex = regex;
	pane->has_regex = true;
	return 0;
}

size_t pane_next_match(const struct pane *pane, size_t line, bool backwards)
{
	for (size_t i = 1; i <= pane->count; i++) {
		size_t next = (line + (backwards ? pane->count - i : i)) % pane->count;
		regmatch_t part = {
			.rm_so = pane->lines[next],
			.rm_eo = pane->lines[next + 1] - 1,
		};

		if (next >= pane->fixed &&
		    regexec(&pane->regex, pane->text, 1, &part, REG_STARTEND) == 0)
			return next;
	}
	return SIZE_MAX;
}

size_t pane_next_hot(const struct pane *pane, size_t line)
{
	for (size_t i = 1; i <= pane->count; i++) {
		size_t next = (line + i) % pane->count;

		if (memmem(pane->text + pane->lines[next],
			   pane->lines[next + 1] - pane->lines[next], TEXT_RED, strlen(TEXT_RED)))
			return next;
	}
	return SIZE_MAX;
}
