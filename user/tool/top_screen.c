// SPDX-License-Identifier: GPL-2.0-only
#include "tool/top_screen.h"

#include <curses.h>
#include <errno.h>
#include <regex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/thread_state.h"
#include "report/annotate/annotate.h"
#include "report/annotation.h"
#include "report/calls/call_view.h"
#include "report/live/live.h"
#include "report/live/live_tree.h"
#include "report/text.h"
#include "report/time_slot.h"
#include "tool/recording.h"
#include "tool/top_terminal.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/error.h"

/* What is shown instead of the table: lines of text, or a list with a cursor. */
struct pane {
	enum pane_kind {
		PANE_HELP,
		PANE_CODE,   /* a function's instructions with their samples */
		PANE_CALLS,  /* what calls it, or what it calls, by recorded calls */
		PANE_STATES, /* what threads did since the last update, or in all */
		PANE_TREE,   /* of all calls; of a function's callers or callees */
		PANE_TIME,   /* how many CPUs were busy over time */
	} kind;
	const struct row_view *view; /* of states: threads or processes */
	char *function, *image;	     /* image: NULL: any */
	bool callees;		     /* of CALLS: those, not callers */
	size_t zooms;		     /* how many there were when it was opened */
	struct live_tree tree;
	struct live_time time;

	/* The text, of all others. */
	char *text;
	size_t *lines; /* where each begins in the text; one more at its end */
	size_t count, room;
	size_t fixed; /* of them, those at the top that do not scroll */
	size_t top;   /* the first that is shown: of the others, or of the list's */
	unsigned int width;
	uint64_t due_ns; /* when the text may be made again */
	regex_t regex;	 /* what is searched for in it */
	bool has_regex;
};

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
	"  s            sort by: self, total (with stacks), name, image, runnable, delay\n";

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

/*
 * Makes the text again from the present counts: at once for another width, else only after a pause
 * in proportion to the time that it takes. Makes a tree again that suspend_panes() has freed.
 */
static int pane_update(struct pane *pane, struct live *l, unsigned int width, struct error *e)
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

static void pane_close(struct pane *pane)
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

/*
 * Shows a text about a function, or its callers; function: NULL: help, states or all calls. pane is
 * overwritten, and may not be moved while it is open. Returns 0 or -errno with e set.
 */
static int pane_open(struct pane *pane, enum pane_kind kind, struct live *l, const char *function,
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

/* Searches the text for an extended regular expression. Returns 0 or -EINVAL with e set. */
static int pane_search(struct pane *pane, const char *pattern, struct error *e)
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

/* The next line that matches, or the last before; the same. */
static size_t pane_next_match(const struct pane *pane, size_t line, bool backwards)
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

/* The next hot line after `line`, wrapping around at the end; SIZE_MAX: none. */
static size_t pane_next_hot(const struct pane *pane, size_t line)
{
	for (size_t i = 1; i <= pane->count; i++) {
		size_t next = (line + i) % pane->count;

		if (memmem(pane->text + pane->lines[next],
			   pane->lines[next + 1] - pane->lines[next], TEXT_RED, strlen(TEXT_RED)))
			return next;
	}
	return SIZE_MAX;
}

#define SMALL_HEIGHT 12 /* where lines are few, one is enough for a header */
#define ESCAPE	     27
/*
 * Bound: caller: letters of a search, and views one over the other; then: further ones are ignored;
 * seen: in the message line.
 */
#define PATTERN_MAX 128
/* Bound: pace. */
#define FIRST_NS (300 * NS_PER_MS) /* delay of the first update, at most */
/* Bound: as PATTERN_MAX. */
#define PANES_MAX    32
#define OPEN_PERCENT 0.5 /* of all samples: what E opens in a tree */
#define CTRL(key)    ((key)&0x1f)

struct screen {
	struct watch *w;
	int signals; /* that end it */
	struct terminal terminal;
	bool frozen, quit;
	size_t first;		       /* of the shown rows: the one at the top */
	struct pane *panes[PANES_MAX]; /* the last one is shown; none: the table */
	size_t pane_count;
	char message[1024]; /* at the bottom, until the next key */
	bool asking;	    /* for a pattern, which is typed there */
	char pattern[PATTERN_MAX];
};

/*
 * Draws a line of a report, whose only escape sequences are those of colours. basic: the line's own
 * attribute.
 */
static void draw_line(int y, const char *text, size_t size, attr_t basic)
{
	const char *end = text + size, *escape;
	attr_t now = A_NORMAL;

	move(y, 0);
	clrtoeol();
	while (text < end) {
		escape = memchr(text, '\033', end - text);
		attrset(now | basic);
		addnstr(text, (escape ?: end) - text);
		if (!escape)
			break;
		switch (strtol(escape + 2, NULL, 10)) {
		case 0:
			now = A_NORMAL;
			break;
		case 1:
			now |= A_BOLD;
			break;
		case 2:
			now |= A_DIM;
			break;
		case 31:
			now |= COLOR_PAIRS > 1 ? COLOR_PAIR(1) : A_BOLD;
			break;
		}
		text = memchr(escape, 'm', end - escape);
		text = text ? text + 1 : end;
	}
	attrset(A_NORMAL);
	if (basic)
		mvchgat(y, 0, -1, basic, 0, NULL);
}

static int header_lines(void)
{
	return LINES < SMALL_HEIGHT ? 1 : LIVE_HEADER_LINES;
}

/* Rows of the table that fit between header, title and bottom line. */
static size_t room_for_rows(void)
{
	int room = LINES - header_lines() - 2;

	return MAX(room, 0);
}

/* Sets the first line that is shown so that the one at the cursor is. */
static void scroll_to(size_t *first, size_t cursor, size_t room)
{
	if (cursor < *first)
		*first = cursor;
	if (cursor >= *first + room)
		*first = room ? cursor - room + 1 : cursor;
}

/*
 * Draws the lines of a text, which it free()s, and the chosen one in reverse. out: its stream; err:
 * of printing to that; title: the attribute of the first line. Returns err or -ENOMEM.
 */
static int draw_text(FILE *out, char **text, int err, int chosen, attr_t title)
{
	int y = 0;

	err = fclose(out) ? -ENOMEM : err;
	for (char *line = *text, *end; !err && (end = strchr(line, '\n')) && y < LINES - 1;
	     line = end + 1, y++)
		draw_line(y, line, end - line, y == chosen ? A_REVERSE : y == 0 ? title : A_NORMAL);
	move(y, 0);
	clrtobot();
	free(*text);
	return err;
}

/* Returns 0 or -ENOMEM. */
static int draw_table(struct screen *s)
{
	struct live *l = &s->w->live;
	size_t room = room_for_rows(), size;
	struct live_table_options o = { .width = COLS, .color = true, .count = room };
	int header = header_lines(), err;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	scroll_to(&s->first, l->cursor, room);
	o.first = s->first;
	s->w->status.frozen = s->frozen;
	err = live_header(l, &s->w->status, header, COLS, out);
	err = err ?: live_table(l, &o, out);
	return draw_text(out, &text, err, header + 1 + (int)(l->cursor - s->first), A_NORMAL);
}

/* What is shown instead of the table, or NULL. */
static struct pane *shown_pane(const struct screen *s)
{
	return s->pane_count ? s->panes[s->pane_count - 1] : NULL;
}

/* True if it is a list of which one line is chosen, not a text. */
static bool has_cursor(const struct pane *pane)
{
	return pane->kind == PANE_TREE || pane->kind == PANE_TIME;
}

static size_t pane_room(const struct pane *pane)
{
	int room = LINES - 1 - (has_cursor(pane) ? 2 : (int)pane->fixed);

	return MAX(room, 0);
}

/* What is searched for in a tree: the pattern of its last zoom. */
static void set_pattern(const struct screen *s, struct live_tree *t)
{
	const struct live *l = &s->w->live;
	const struct live_zoom *last = l->zoom_count ? &l->zooms[l->zoom_count - 1] : NULL;

	t->regex = last && last->has_regex ? &last->regex : NULL;
}

static int draw_list(struct screen *s, struct pane *pane)
{
	struct live *l = &s->w->live;
	size_t cursor = pane->kind == PANE_TREE ? pane->tree.cursor : pane->time.cursor;
	size_t room = pane_room(pane), size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	scroll_to(&pane->top, cursor, room);
	set_pattern(s, &pane->tree);
	if (pane->kind == PANE_TREE)
		err = live_tree_print(&pane->tree, l, pane->top, room, COLS, out);
	else
		err = live_time_print(&pane->time, l, pane->top, room, COLS, out);
	return draw_text(out, &text, err, 2 + (int)(cursor - pane->top), A_BOLD);
}

static int draw_pane(struct screen *s, struct pane *pane)
{
	size_t lines = pane->count - pane->fixed, room = pane_room(pane);

	if (has_cursor(pane))
		return draw_list(s, pane);
	if (pane->top + room > lines)
		pane->top = lines > room ? lines - room : 0;
	for (int y = 0; y < LINES - 1; y++) {
		size_t i = (size_t)y < pane->fixed ? (size_t)y : y + pane->top;

		if (i < pane->count)
			draw_line(y, pane->text + pane->lines[i],
				  pane->lines[i + 1] - pane->lines[i] - 1,
				  i == 0 ? A_BOLD : A_NORMAL);
		else
			draw_line(y, "", 0, A_NORMAL);
	}
	return 0;
}

static void draw_bottom(const struct screen *s)
{
	static const char *const table_keys[] = { "? help",   "q quit",	   "Enter code",
						  "Tab rows", "s sort",	   "Space freeze",
						  "/ filter", "c callers", "T tree",
						  "w states", NULL };
	static const char *const browse_keys[] = { "? help",   "q quit",   "Enter code", "Tab rows",
						   "s sort",   "/ filter", "c callers",	 "T tree",
						   "w states", "v value",  "Esc back",	 NULL };
	static const char *const pane_keys[] = { "q back", "n next hot line", "/ search", NULL };
	static const char *const tree_keys[] = { "q back", "Enter open", "/ search",   "z zoom",
						 "a code", "c callers",	 "E all open", NULL };
	static const char *const time_keys[] = { "q back", "Enter zoom", "T tree", "F functions",
						 NULL };
	const struct live *l = &s->w->live;
	const char *const states_keys[] = { "q back", "t threads", "P processes",
					    l->recorded ? NULL : "Space freeze", NULL };
	const struct pane *pane = shown_pane(s);
	const struct row *row = live_row(l);
	const char *const *keys = l->recorded ? browse_keys : table_keys;
	const char *why = row && !pane ? live_unnamed(l, row) : NULL;
	size_t used = 0;
	char text[1280] = "", *visible;

	if (pane)
		keys = pane->kind == PANE_STATES ? states_keys
		       : pane->kind == PANE_TREE ? tree_keys
		       : pane->kind == PANE_TIME ? time_keys
						 : pane_keys;
	if (s->asking)
		snprintf(text, sizeof(text), "%s: %s_",
			 !pane			   ? "only rows that match"
			 : pane->kind == PANE_TREE ? "only stacks with"
						   : "search",
			 s->pattern);
	else if (s->message[0])
		snprintf(text, sizeof(text), "%s", s->message);
	else if (s->w->ended && !l->recorded)
		snprintf(text, sizeof(text), "%s has ended; q quits", s->w->status.target);
	else if (why)
		snprintf(text, sizeof(text), "no name: %s", why);
	else /* the keys, as many as fit */
		for (; *keys && used + strlen(*keys) + 2 < (size_t)COLS && used < sizeof(text);
		     keys++)
			used += snprintf(text + used, sizeof(text) - used, "%s%s", used ? "  " : "",
					 *keys);
	visible = text_visible(text);
	if (!visible)
		return;
	if (COLS > 4)
		text_shorten(visible, COLS - 1);
	draw_line(LINES - 1, visible, strlen(visible), A_REVERSE);
	free(visible);
}

static void show_error(struct screen *s, const struct error *e)
{
	snprintf(s->message, sizeof(s->message), "%s", e->what);
}

static void close_pane(struct screen *s)
{
	struct pane *pane = s->panes[--s->pane_count];

	pane_close(pane);
	free(pane);
}

/* Makes what is shown again; a pane that cannot be is closed. */
static void update_pane(struct screen *s)
{
	struct pane *pane = shown_pane(s);
	struct error e;

	if (pane && pane_update(pane, &s->w->live, COLS, &e)) {
		show_error(s, &e);
		if (pane->kind == PANE_TREE)
			close_pane(s);
	}
}

/* Is due before what is shown of the profile changes. */
static int suspend_panes(struct screen *s)
{
	int err = 0;

	for (size_t i = 0; i < s->pane_count && !err; i++)
		if (s->panes[i]->kind == PANE_TREE && s->panes[i]->tree.builder)
			err = live_tree_save(&s->panes[i]->tree);
	return err;
}

static int open_pane(struct screen *s, enum pane_kind kind, const char *function, const char *image)
{
	struct live *l = &s->w->live;
	struct pane *pane = NULL;
	struct error e;
	size_t hot;

	if (s->pane_count == PANES_MAX) {
		snprintf(s->message, sizeof(s->message), "too many views: q goes back");
		return 0;
	}
	if (kind == PANE_CODE) {
		snprintf(s->message, sizeof(s->message), "reading the code ...");
		draw_bottom(s);
		refresh();
		s->message[0] = '\0';
	}
	pane = calloc(1, sizeof(*pane));
	if (!pane)
		return -ENOMEM;
	if (pane_open(pane, kind, l, function, image, COLS, &e)) {
		show_error(s, &e);
		free(pane);
		return 0;
	}
	s->panes[s->pane_count++] = pane;
	hot = pane_next_hot(pane, 0);
	if (kind == PANE_CODE && hot != SIZE_MAX && hot > pane_room(pane) / 2)
		pane->top = hot - pane_room(pane) / 2;
	return 0;
}

/* Opens the code or the callers of a function. */
static int open_function(struct screen *s, enum pane_kind kind, const char *function,
			 const char *image)
{
	const struct live *l = &s->w->live;
	bool calls = false;

	if (!function)
		return 0;
	for (size_t i = 0; i < l->p->arc_count && !calls; i++)
		calls = l->p->arcs[i].kind == PROFILE_CALL;
	if (kind == PANE_TREE && calls && !profile_stacks(l->p))
		kind = PANE_CALLS;
	return open_pane(s, kind, function, image);
}

static int open_of_row(struct screen *s, enum pane_kind kind)
{
	const struct row *row = live_row(&s->w->live);

	if (!row || !row->name)
		return 0;
	return open_function(s, kind, row->key->function ?: row->name, row->key->image);
}

/* Shows rows of a view, of the same samples as before. */
static int show_rows(struct screen *s, const struct row_view *view)
{
	while (s->pane_count)
		close_pane(s);
	live_show(&s->w->live, view);
	s->first = 0;
	return live_collect(&s->w->live);
}

/* Shows the view of this name; if it is shown, functions. Returns 0 or -ENOMEM. */
static int toggle_view(struct screen *s, const char *name)
{
	const struct row_view *view = row_view_by_name(name);

	if (!row_view_has_tag(view, s->w->live.p)) {
		snprintf(s->message, sizeof(s->message), "no sample is labelled with a %s", name);
		return 0;
	}
	return show_rows(s, s->w->live.view == view && !s->pane_count ? row_views : view);
}

/* The view after the present one: those of code, threads and processes, then of tags. */
static const struct row_view *next_view(const struct screen *s)
{
	const struct live *l = &s->w->live;
	const struct row_view *view;
	size_t tag = 0;

	for (view = row_views; view->name; view++)
		if (view == l->view && view[1].name)
			return view + 1;
	if (row_view_tag(l->view))
		tag = row_view_tag(l->view) - tag_kinds + 1;
	for (; tag < TAG_COUNT; tag++) {
		view = tag_kinds[tag].plural ? row_view_by_name(tag_kinds[tag].key) : NULL;
		if (view && row_view_has_tag(view, l->p))
			return view;
	}
	return row_views;
}

/* Ends the last zoom; shows rows again if it began in them. Returns 0 or -ENOMEM. */
static int end_zoom(struct screen *s)
{
	int err = suspend_panes(s);

	if (!live_leave(&s->w->live))
		return err;
	s->first = 0;
	return err ?: live_collect(&s->w->live);
}

/* Closes a pane, and ends the zooms that began in it. */
static int go_back(struct screen *s)
{
	size_t zooms = shown_pane(s)->zooms;
	int err = 0;

	close_pane(s);
	while (s->w->live.zoom_count > zooms && !err)
		err = end_zoom(s);
	update_pane(s);
	return err;
}

/* Counts another value: the next one of a recorded profile. */
static int next_value(struct screen *s)
{
	struct live *l = &s->w->live;
	size_t count = l->p->value_type_count;

	if (!l->recorded || count < 2)
		return 0;
	l->value = (l->value + 1) % count;
	/* CPU time of a clock is shown as samples, too. */
	if (l->value == PROFILE_SAMPLES && profile_is_clock_time(l->p, PROFILE_CPU))
		l->value = PROFILE_CPU;
	l->selected = false;
	return suspend_panes(s) ?: live_collect(l);
}

/*
 * Keys for views, and those that move *at, of `count` lines of which `room` are shown. Returns 0 or
 * -ENOMEM.
 */
static int take_view_key(struct screen *s, int key, size_t *at, size_t count, size_t room)
{
	size_t last = count ? count - 1 : 0, page = room > 1 ? room - 1 : 1;

	switch (key) {
	case '\t':
		return show_rows(s, shown_pane(s) ? row_views : next_view(s));
	case 't':
		return toggle_view(s, "thread");
	case 'P':
		return toggle_view(s, "process");
	case 'i':
		return toggle_view(s, "image");
	case 'u':
		return toggle_view(s, "unit");
	case 'F':
		return show_rows(s, row_views);
	case 'T':
		return open_pane(s, PANE_TREE, NULL, NULL);
	case 'w':
		return open_pane(s, PANE_STATES, NULL, NULL);
	case 'o':
		return s->w->live.recorded ? open_pane(s, PANE_TIME, NULL, NULL) : 0;
	case 'v':
		return next_value(s);
	case '/':
		s->asking = true;
		s->pattern[0] = '\0';
		return 0;
	case KEY_UP:
	case 'k':
		*at -= *at > 0;
		return 0;
	case KEY_DOWN:
	case 'j':
		*at = *at < last ? *at + 1 : last;
		return 0;
	case KEY_PPAGE:
		*at = *at > page ? *at - page : 0;
		return 0;
	case KEY_NPAGE:
		*at = *at + page < last ? *at + page : last;
		return 0;
	case KEY_HOME:
	case 'g':
		*at = 0;
		return 0;
	case KEY_END:
	case 'G':
		*at = last;
		return 0;
	default:
		return 0;
	}
}

/* Returns 0 or -ENOMEM. */
static int take_table_key(struct screen *s, int key)
{
	struct live *l = &s->w->live;
	const struct row *row = live_row(l);
	struct error e;
	int err;

	switch (key) {
	case 'q':
		s->quit = true;
		return 0;
	case ESCAPE:
		if (l->pattern)
			return live_match(l, NULL, &e) ?: live_list(l);
		return l->zoom_count ? end_zoom(s) : 0;
	case KEY_ENTER:
	case KEY_RIGHT:
		if (!row)
			return 0;
		if (row->name)
			return open_of_row(s, PANE_CODE);
		err = live_enter(l, row, &e);
		if (err)
			return err;
		live_match(l, NULL, &e);
		return show_rows(s, row_views);
	case 'a':
		return open_of_row(s, PANE_CODE);
	case 'c':
		return open_of_row(s, PANE_TREE);
	case 's':
		l->sort = (l->sort + 1) % LIVE_SORTS;
		if (l->sort == LIVE_BY_TOTAL && !l->rows.stacks)
			l->sort++;
		if (l->sort == LIVE_BY_RUNNABLE && !l->rows.walls)
			l->sort++;
		if (l->sort == LIVE_BY_DELAY && !l->rows.delay)
			l->sort = LIVE_BY_SELF;
		return live_list(l);
	case 'z': /* from zero */
		if (l->recorded)
			return 0;
		live_fade(l, UINT64_MAX, 0);
		l->elapsed_ns = 0;
		return live_collect(l);
	default:
		return take_view_key(s, key, &l->cursor, l->shown_count, room_for_rows());
	}
}

/* Zooms into the node at the cursor. Returns 0 or -ENOMEM. */
static int zoom_tree(struct screen *s, struct live_tree *t)
{
	struct live *l = &s->w->live;
	struct live_path path = { 0 };
	const char *name;
	struct error e;
	char *text;
	int err;

	if (!t->line_count)
		return 0;
	err = live_tree_path(t, &path);
	name = path.depth ? path.frames[path.depth - 1].name : path.function;
	if (err || asprintf(&text, "%s %s", path.depth ? "below" : "with", name ?: "") < 0) {
		live_path_free(&path);
		return -ENOMEM;
	}
	err = live_enter_path(l, &path, text, &e) ?: suspend_panes(s);
	free(text);
	return err ?: live_collect(l);
}

/* Returns 0 or -ENOMEM. */
static int take_tree_key(struct screen *s, struct pane *pane, int key)
{
	struct live_tree *t = &pane->tree;
	const struct call_frame *frame = live_tree_frame(t);
	const char *image = frame ? text_basename(frame->image) : NULL;
	bool found, callees;
	struct error e;
	int err;

	if (image && strcmp(image, row_unknown) == 0)
		image = NULL;
	switch (key) {
	case ESCAPE:
		return s->w->live.zoom_count > pane->zooms ? end_zoom(s) : go_back(s);
	case KEY_ENTER:
	case '+':
		return live_tree_is_open(t) ? live_tree_close(t) : live_tree_open(t);
	case KEY_RIGHT:
	case 'l':
		if (!live_tree_is_open(t))
			return live_tree_open(t);
		t->cursor += t->cursor + 1 < t->line_count;
		return 0;
	case KEY_LEFT:
	case '-':
		return live_tree_close(t);
	case 'E':
		return live_tree_open_all(t, OPEN_PERCENT);
	case 'C':
		return live_tree_close_all(t);
	case 'a':
		return frame ? open_function(s, PANE_CODE, frame->name, image) : 0;
	case 'c':
		/* At the root of a function's tree: the other direction. */
		if (t->path.function && t->cursor == 0) {
			callees = t->path.inverted;
			live_tree_free(t);
			err = live_tree_make(t, &s->w->live, pane->function, pane->image, !callees,
					     &e);
			if (err)
				show_error(s, &e);
			return err == -ENOMEM ? err : 0;
		}
		return frame ? open_function(s, PANE_TREE, frame->name, image) : 0;
	case 'z':
		return zoom_tree(s, t);
	case 'n':
	case 'N':
		set_pattern(s, t);
		if (!t->regex) {
			snprintf(s->message, sizeof(s->message), "nothing is searched for: use /");
			return 0;
		}
		err = live_tree_find(t, key == 'N', &found);
		if (!err && !found)
			snprintf(s->message, sizeof(s->message), "no more matches");
		return err;
	default:
		return take_view_key(s, key, &t->cursor, t->line_count, pane_room(pane));
	}
}

/* Returns 0 or -ENOMEM. */
static int take_time_key(struct screen *s, struct pane *pane, int key)
{
	struct live_time *t = &pane->time;
	struct live *l = &s->w->live;
	struct time_interval slot;
	char buffer[TABLE_CELL_SIZE], text[TABLE_CELL_SIZE + 16];
	size_t zooms = pane->zooms;
	struct error e;
	int err;

	switch (key) {
	case ESCAPE:
		if (l->zoom_count == zooms)
			return go_back(s);
		err = end_zoom(s);
		break;
	case KEY_ENTER:
	case KEY_RIGHT:
	case '+':
		slot = live_time_slot(t);
		if (slot.since_ns == t->all.since_ns && slot.until_ns == t->all.until_ns)
			return 0;
		snprintf(text, sizeof(text), "from %s",
			 time_slot_text(slot.since_ns, t->step_ns, false, buffer));
		err = suspend_panes(s) ?: live_enter_time(l, &slot, text, &e) ?: live_collect(l);
		break;
	case KEY_LEFT:
	case '-':
		return go_back(s);
	case '/':
		return 0;
	default:
		return take_view_key(s, key, &t->cursor, t->count, pane_room(pane));
	}
	if (err)
		return err;
	/* The slots of the part that is shown now; the cursor is where the last one was. */
	slot = t->all;
	live_time_free(t);
	if (live_select(l) || live_time_make(t, l, &e))
		return -ENOMEM;
	if (slot.since_ns > t->all.since_ns && slot.since_ns < t->all.until_ns)
		t->cursor = slot.since_ns / t->step_ns - t->all.since_ns / t->step_ns;
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int take_text_key(struct screen *s, struct pane *pane, int key)
{
	size_t room = pane_room(pane), middle = room / 2, line;

	switch (key) {
	case 't':
	case 'P':
		if (pane->kind != PANE_STATES)
			break;
		pane->view = row_view_by_name(key == 't' ? "thread" : "process");
		pane->width = 0; /* the text is out of date */
		return 0;
	case 'c':
		if (pane->kind == PANE_CALLS) {
			pane->callees = !pane->callees;
			pane->width = 0;
		}
		return 0;
	case 'n':
	case 'N':
		if (pane->has_regex) {
			line = pane_next_match(pane, pane->top + pane->fixed, key == 'N');
			if (line != SIZE_MAX)
				pane->top = line - pane->fixed;
			else
				snprintf(s->message, sizeof(s->message), "no line matches");
			return 0;
		}
		middle += pane->fixed;
		line = pane_next_hot(pane, pane->top + middle);
		if (line != SIZE_MAX)
			pane->top = line > middle ? line - middle : 0;
		return 0;
	}
	return take_view_key(s, key, &pane->top, pane->count - pane->fixed, room);
}

/* The pattern that was asked for is complete. */
static int take_pattern(struct screen *s)
{
	struct live *l = &s->w->live;
	struct pane *pane = shown_pane(s);
	const struct live_zoom *last = l->zoom_count ? &l->zooms[l->zoom_count - 1] : NULL;
	bool found;
	struct error e;
	int err = 0;

	if (!pane) {
		if (live_match(l, s->pattern, &e)) {
			show_error(s, &e);
			return 0;
		}
		l->cursor = 0;
		return live_list(l);
	}
	if (pane->kind != PANE_TREE) {
		if (*s->pattern && pane_search(pane, s->pattern, &e))
			show_error(s, &e);
		else if (*s->pattern)
			return take_text_key(s, pane, 'n');
		return 0;
	}
	/* Another pattern replaces the one that was searched for here. */
	if (last && last->has_regex && l->zoom_count > pane->zooms)
		err = end_zoom(s);
	if (!err && *s->pattern) {
		err = suspend_panes(s);
		if (!err && live_enter_stack(l, s->pattern, &e))
			show_error(s, &e);
	}
	err = err ?: live_collect(l);
	if (err || pane_update(pane, l, COLS, &e))
		return err ?: -ENOMEM;
	pane->tree.cursor = 0;
	set_pattern(s, &pane->tree);
	if (pane->tree.regex && pane->tree.line_count)
		err = live_tree_find(&pane->tree, false, &found);
	return err;
}

/* A key of the pattern that is asked for. */
static int take_pattern_key(struct screen *s, int key)
{
	size_t size = strlen(s->pattern);

	if (key == ESCAPE) {
		s->asking = false;
	} else if (key == KEY_ENTER) {
		s->asking = false;
		return take_pattern(s);
	} else if (key == KEY_BACKSPACE) {
		/* All bytes of a UTF-8 character. */
		while (size && ((unsigned char)s->pattern[--size] & 0xc0) == 0x80)
			;
		s->pattern[size] = '\0';
	} else if (key >= ' ' && key < 0x100 && size + 1 < sizeof(s->pattern)) {
		s->pattern[size] = key;
		s->pattern[size + 1] = '\0';
	}
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int take_key(struct screen *s, int key)
{
	struct pane *pane = shown_pane(s);
	int err = 0;

	s->message[0] = '\0';
	if (key == '\r')
		key = KEY_ENTER;
	else if (key == 127 || key == '\b')
		key = KEY_BACKSPACE;
	if (s->asking)
		return take_pattern_key(s, key);
	if (key == KEY_BACKSPACE)
		key = ESCAPE;
	if (key == ' ' || key == 'f') {
		if (!s->w->live.recorded) {
			s->frozen = !s->frozen;
			return 0;
		}
		key = KEY_NPAGE;
	} else if (key == CTRL('f') || key == CTRL('b') || key == 'b') {
		key = key == CTRL('f') ? KEY_NPAGE : KEY_PPAGE;
	}
	if (key == '?' || key == 'h' || key == KEY_F(1)) {
		if (!pane || pane->kind != PANE_HELP)
			err = open_pane(s, PANE_HELP, NULL, NULL);
	} else if (!pane) {
		err = take_table_key(s, key);
	} else if (key == 'q') {
		err = go_back(s);
	} else if (pane->kind == PANE_TREE) {
		err = take_tree_key(s, pane, key);
	} else if (pane->kind == PANE_TIME) {
		err = take_time_key(s, pane, key);
	} else if (key == ESCAPE || key == KEY_LEFT) {
		err = go_back(s);
	} else {
		err = take_text_key(s, pane, key);
	}
	update_pane(s);
	return err;
}

int screen_run(struct watch *w, int signals, uint64_t delay_ns, int first_key, struct error *e)
{
	struct screen s = {
		.w = w,
		.signals = signals,
	};
	uint64_t next = now_ns() + MIN(delay_ns, FIRST_NS);
	int err = terminal_open(&s.terminal, e), key;

	while (!err && !s.quit) {
		struct pollfd fds[4] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = s.signals, .events = POLLIN },
			{ .fd = s.terminal.signals, .events = POLLIN },
		};

		if (first_key && (first_key != 'w' || w->live.p->wall_count)) {
			err = take_key(&s, first_key);
			first_key = 0;
		}
		if (shown_pane(&s) && shown_pane(&s)->width != (unsigned int)COLS)
			update_pane(&s);
		if (err || (shown_pane(&s) ? draw_pane(&s, shown_pane(&s)) : draw_table(&s)))
			err = error_no_memory(e);
		if (!err) {
			draw_bottom(&s);
			refresh();
			err = watch_wait(w, fds, 3, next, e);
		}
		if (err || recording_signal_came(&s.signals))
			break;
		terminal_take_signals(&s.terminal);
		/* Another size is no key: a message stays. */
		while (!err && !s.quit && (key = getch()) != ERR)
			if (key != KEY_RESIZE && take_key(&s, key))
				err = error_no_memory(e);
		if (fds[0].revents & (POLLHUP | POLLERR))
			s.quit = true;
		if (!err && now_ns() >= next) {
			if (!s.frozen && !w->ended) {
				err = suspend_panes(&s) ? error_no_memory(e) : watch_update(w, e);
				if (!err)
					update_pane(&s);
			}
			next = now_ns() + delay_ns;
		}
	}
	terminal_close(&s.terminal);
	while (s.pane_count)
		close_pane(&s);
	return err;
}
