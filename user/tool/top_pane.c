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

static const char help[] =
	"Keys\n"
	"\n"
	"  q            quit; in another view: back\n"
	"  Esc          back; out of a process, thread or image; end of the filter\n"
	"  Up Down PgUp PgDn Home End, or j k g G\n"
	"               move\n"
	"  Enter        of a function: its code; else: the functions of the row\n"
	"  c            what calls the function; needs stacks: profiltool top -g\n"
	"  n            in code: the next hot line\n"
	"  w            what threads did since the last update: ran, waited for a CPU,\n"
	"               or were blocked; there, t and P: of each thread, or process\n"
	"  Space, f     freeze, and go on\n"
	"  s            sort by: self, total (with stacks), name, image, delay\n"
	"  Tab          rows: functions, images, addresses, sources, lines, threads,\n"
	"               processes\n"
	"  t P i F      rows: threads, processes, images, functions\n"
	"  /            only rows that match a regular expression; none: all rows\n"
	"  z            restart from zero\n"
	"  ?            this help\n"
	"\n"
	"Columns\n"
	"\n"
	"  self%        of all samples: those in the function itself; without stacks %\n"
	"  total%       those in what it calls, too\n"
	"  cpu%         CPU time in the function itself, of one CPU: as %CPU in top(1)\n"
	"\n"
	"Older samples fade: after the half-life (5 s, or --half-life) they count half.\n"
	"Numbers of code and of callers do not fade: they are of all samples since the\n"
	"beginning.\n"
	"\n"
	"In the second line: the CPU time of what is profiled, of one CPU, and what of\n"
	"it was spent in the kernel; samples that were lost because a table was full;\n"
	"what one tick costs the profiled program; how much of a CPU this program uses\n"
	"itself.\n";

static int print_code(struct pane *pane, struct live *l, unsigned int width, FILE *out,
		      struct error *e)
{
	struct annotation_options options = { .function = pane->function, .image = pane->image };
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

static int print_callers(struct pane *pane, struct live *l, unsigned int width, FILE *out,
			 struct error *e)
{
	struct call_view_options options = {
		.function = pane->function,
		.image = pane->image,
		.callers = true,
		.percent = CALLERS_PERCENT,
	};
	struct call_view_style style = { .width = width, .color = true, .utf8 = true };
	struct call_view view;
	int err = call_view_make(&view, l->p, &options, e);

	fputs("What calls ", out);
	text_print(pane->function, out);
	fputs(", each below what it calls\n", out);
	if (!err && call_view_print(&view, &style, out))
		err = error_no_memory(e);
	call_view_free(&view);
	pane->fixed = 2;
	return err;
}

static int print_states(struct pane *pane, struct live *l, unsigned int width, FILE *out,
			struct error *e)
{
	struct thread_times times;

	pane->fixed = profile_thread_times(l->p, &times) ? 4 : 3;
	return live_states(l, pane->view, width, true, SIZE_MAX, out) ? error_no_memory(e) : 0;
}

int pane_update(struct pane *pane, struct live *l, unsigned int width, struct error *e)
{
	uint64_t start = now_ns(), now;
	char *text = NULL, *end;
	size_t size;
	FILE *out;
	int err = 0;

	if (pane->width == width && (pane->kind == PANE_HELP || start < pane->due_ns))
		return 0;
	pane->width = width;
	out = open_memstream(&text, &size);
	if (!out)
		return error_no_memory(e);
	if (pane->kind == PANE_CODE)
		err = print_code(pane, l, width, out, e);
	else if (pane->kind == PANE_CALLERS)
		err = print_callers(pane, l, width, out, e);
	else if (pane->kind == PANE_STATES)
		err = print_states(pane, l, width, out, e);
	else
		fputs(help, out);
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

int pane_open(struct pane *pane, enum pane_kind kind, struct live *l, const struct row *row,
	      unsigned int width, struct error *e)
{
	int err = 0;

	*pane = (struct pane){ .kind = kind };
	/* Those of the rows that are shown, if these are threads or processes. */
	pane->view = row_view_by_name(l->view->fields & ROW_THREAD ? "thread" : "process");
	if (kind == PANE_STATES && !l->p->wall_count)
		err = error_set(e, 0, "no wall times: %s",
				l->p->sample_count ? "neither this kernel nor this profile has them"
						   : "nothing was recorded yet");
	else if (kind == PANE_CALLERS && !l->rows.stacks)
		err = error_set(e, 0, "callers are known with call stacks: profiltool top -g");
	else if (row && (copy_text(&pane->function, row->key->function ?: row->name) ||
			 copy_text(&pane->image, row->key->image)))
		err = error_no_memory(e);
	err = err ?: pane_update(pane, l, width, e);
	if (err)
		pane_close(pane);
	return err;
}

void pane_close(struct pane *pane)
{
	free(pane->function);
	free(pane->image);
	free(pane->text);
	free(pane->lines);
	*pane = (struct pane){ 0 };
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
