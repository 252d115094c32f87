// SPDX-License-Identifier: GPL-2.0-only
#include "tool/top_screen.h"

#include <errno.h>
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/text.h"
#include "tool/recording.h"
#include "tool/top_pane.h"
#include "tool/top_terminal.h"
#include "util/clock.h"

#define SMALL_HEIGHT 12 /* where lines are few, one is enough for a header */
#define ESCAPE	     27
#define PATTERN_MAX  128
#define FIRST_NS     (300 * NS_PER_MS) /* delay of the first update, at most */

struct screen {
	struct watch *w;
	int signals; /* that end it */
	struct terminal terminal;
	bool frozen, quit;
	size_t first;		     /* of the shown rows: the one at the top */
	const struct row_view *view; /* from where a row was entered */
	struct pane pane;
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

	return room > 0 ? room : 0;
}

/* Returns 0 or -ENOMEM. */
static int draw_table(struct screen *s)
{
	struct live *l = &s->w->live;
	size_t room = room_for_rows(), size;
	struct live_table_options o = { .width = COLS, .color = true, .count = room };
	int header = header_lines(), err, y = 0, chosen;
	char *text = NULL, *line, *end;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	/* Scroll to the cursor. */
	if (l->cursor < s->first)
		s->first = l->cursor;
	if (l->cursor >= s->first + room)
		s->first = l->cursor - room + 1;
	o.first = s->first;
	s->w->status.frozen = s->frozen;
	err = live_header(l, &s->w->status, header, COLS, out);
	err = err ?: live_table(l, &o, out);
	err = fclose(out) ? -ENOMEM : err;
	if (!err) {
		chosen = header + 1 + (int)(l->cursor - s->first);
		for (line = text; (end = strchr(line, '\n')) && y < LINES - 1; line = end + 1, y++)
			draw_line(y, line, end - line, y == chosen ? A_REVERSE : A_NORMAL);
		move(y, 0);
		clrtobot();
	}
	free(text);
	return err;
}

static size_t pane_room(const struct screen *s)
{
	int room = LINES - 1 - (int)s->pane.fixed;

	return room > 0 ? room : 0;
}

static void draw_pane(struct screen *s)
{
	struct pane *pane = &s->pane;
	size_t lines = pane->count - pane->fixed, room = pane_room(s);

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
}

static void draw_bottom(const struct screen *s)
{
	static const char *const table_keys[] = { "? help",   "q quit",	   "Enter code",
						  "Tab rows", "s sort",	   "Space freeze",
						  "/ filter", "c callers", "w states",
						  NULL };
	static const char *const pane_keys[] = { "q back", "n next hot line", "Space freeze",
						 NULL };
	static const char *const states_keys[] = { "q back", "t threads", "P processes",
						   "Space freeze", NULL };
	const char *const *keys = s->pane.kind == PANE_STATES ? states_keys
				  : s->pane.kind	      ? pane_keys
							      : table_keys;
	size_t used = 0;
	const struct row *row = live_row(&s->w->live);
	const char *why = row && !s->pane.kind ? live_unnamed(&s->w->live, row) : NULL;
	char text[1280] = "", *visible;

	if (s->asking)
		snprintf(text, sizeof(text), "only rows that match: %s_", s->pattern);
	else if (s->message[0])
		snprintf(text, sizeof(text), "%s", s->message);
	else if (s->w->status.recorded)
		snprintf(text, sizeof(text), "an interval of the archive; q quits, ? helps");
	else if (s->w->ended)
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

static void update_pane(struct screen *s)
{
	struct error e;

	if (s->pane.kind && pane_update(&s->pane, &s->w->live, COLS, &e))
		show_error(s, &e);
}

static void open_pane(struct screen *s, enum pane_kind kind)
{
	struct live *l = &s->w->live;
	const bool of_row = kind == PANE_CODE || kind == PANE_CALLERS;
	const struct row *row = of_row ? live_row(l) : NULL;
	struct error e;
	size_t hot;

	if (of_row && (!row || !row->name))
		return;
	if (kind == PANE_CODE) {
		snprintf(s->message, sizeof(s->message), "reading the code ...");
		draw_bottom(s);
		refresh();
		s->message[0] = '\0';
	}
	if (pane_open(&s->pane, kind, l, row, COLS, &e)) {
		show_error(s, &e);
		return;
	}
	hot = pane_next_hot(&s->pane, 0);
	if (kind == PANE_CODE && hot != SIZE_MAX && hot > pane_room(s) / 2)
		s->pane.top = hot - pane_room(s) / 2;
}

static int show_rows(struct screen *s, const struct row_view *view)
{
	live_show(&s->w->live, view);
	s->first = 0;
	return live_collect(&s->w->live);
}

/* Shows the view of this name; if it is shown, functions. Returns 0 or -ENOMEM. */
static int toggle_view(struct screen *s, const char *name)
{
	const struct row_view *view = row_view_by_name(name);

	return show_rows(s, s->w->live.view == view ? row_views : view);
}

/* Where a key moves to, of `count` lines of which `room` are shown. */
static size_t move_to(int key, size_t at, size_t count, size_t room)
{
	size_t last = count ? count - 1 : 0, page = room > 1 ? room - 1 : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		return at ? at - 1 : 0;
	case KEY_DOWN:
	case 'j':
		return at < last ? at + 1 : last;
	case KEY_PPAGE:
		return at > page ? at - page : 0;
	case KEY_NPAGE:
		return at + page < last ? at + page : last;
	case KEY_HOME:
	case 'g':
		return 0;
	case KEY_END:
	case 'G':
		return last;
	default:
		return at;
	}
}

/* Returns 0 or -ENOMEM. */
static int take_table_key(struct screen *s, int key)
{
	struct live *l = &s->w->live;
	const struct row *row = live_row(l);
	struct error e;

	switch (key) {
	case 'q':
		s->quit = true;
		return 0;
	case ESCAPE:
		if (l->pattern)
			return live_match(l, NULL, &e) ?: live_collect(l);
		return live_leave(l) ? show_rows(s, s->view) : 0;
	case '\r':
	case KEY_ENTER:
	case KEY_RIGHT:
		if (!row)
			return 0;
		if (row->name) {
			open_pane(s, PANE_CODE);
			return 0;
		}
		s->view = l->view;
		return live_enter(l, row) ?: show_rows(s, row_views);
	case 'c':
		open_pane(s, PANE_CALLERS);
		return 0;
	case 'w':
		open_pane(s, PANE_STATES);
		return 0;
	case 's':
		l->sort = (l->sort + 1) % LIVE_SORTS;
		if (l->sort == LIVE_BY_TOTAL && !l->rows.stacks)
			l->sort++;
		if (l->sort == LIVE_BY_WAIT && !l->rows.walls)
			l->sort++;
		if (l->sort == LIVE_BY_DELAY && !l->rows.delay)
			l->sort = LIVE_BY_SELF;
		return live_collect(l);
	case '\t':
		return show_rows(s, l->view[1].name ? l->view + 1 : row_views);
	case 't':
		return toggle_view(s, "thread");
	case 'P':
		return toggle_view(s, "process");
	case 'i':
		return toggle_view(s, "image");
	case 'F':
		return show_rows(s, row_views);
	case 'z': /* from zero */
		live_fade(l, UINT64_MAX);
		l->elapsed_ns = 0;
		return live_collect(l);
	case '/':
		s->asking = true;
		s->pattern[0] = '\0';
		return 0;
	default:
		l->cursor = move_to(key, l->cursor, l->shown_count, room_for_rows());
		return 0;
	}
}

/* A key of the pattern that is asked for. */
static int take_pattern_key(struct screen *s, int key)
{
	size_t size = strlen(s->pattern);
	struct error e;

	if (key == ESCAPE) {
		s->asking = false;
	} else if (key == '\r' || key == KEY_ENTER) {
		s->asking = false;
		if (live_match(&s->w->live, s->pattern, &e)) {
			show_error(s, &e);
			return 0;
		}
		s->w->live.cursor = 0;
		return live_collect(&s->w->live);
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
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

static int take_key(struct screen *s, int key)
{
	struct pane *pane = &s->pane;
	size_t hot, middle;

	s->message[0] = '\0';
	if (s->asking)
		return take_pattern_key(s, key);
	if (key == ' ' || key == 'f') {
		s->frozen = !s->frozen;
		return 0;
	}
	if (key == '?' || key == 'h') {
		pane_close(pane);
		open_pane(s, PANE_HELP);
		return 0;
	}
	if (!pane->kind)
		return take_table_key(s, key);
	switch (key) {
	case 'q':
	case ESCAPE:
	case KEY_LEFT:
		pane_close(pane);
		return 0;
	case 't':
	case 'P':
		pane->view = row_view_by_name(key == 't' ? "thread" : "process");
		if (pane->kind == PANE_STATES) {
			pane->width = 0; /* the text is out of date */
			update_pane(s);
		}
		return 0;
	case 'n':
		middle = pane_room(s) / 2 + pane->fixed;
		hot = pane_next_hot(pane, pane->top + middle);
		if (hot != SIZE_MAX)
			pane->top = hot > middle ? hot - middle : 0;
		return 0;
	default:
		pane->top = move_to(key, pane->top, pane->count - pane->fixed, pane_room(s));
		return 0;
	}
}

int screen_run(struct watch *w, int signals, uint64_t delay_ns, bool states, struct error *e)
{
	struct screen s = {
		.w = w,
		.signals = signals,
		.view = row_views,
	};
	uint64_t next = now_ns() + (delay_ns < FIRST_NS ? delay_ns : FIRST_NS);
	int err = terminal_open(&s.terminal, e), key;

	while (!err && !s.quit) {
		struct pollfd fds[4] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = s.signals, .events = POLLIN },
			{ .fd = s.terminal.signals, .events = POLLIN },
		};

		if (states && w->live.p->wall_count) {
			open_pane(&s, PANE_STATES);
			states = false;
		}
		if (s.pane.kind && s.pane.width != (unsigned int)COLS)
			update_pane(&s);
		if (s.pane.kind)
			draw_pane(&s);
		else if (draw_table(&s))
			err = error_no_memory(e);
		if (!err) {
			draw_bottom(&s);
			refresh();
			err = watch_wait(w, fds, 3, next, e);
		}
		if (err || recording_signal_came(&s.signals))
			break;
		terminal_take_signals(&s.terminal);
		while (!err && !s.quit && (key = getch()) != ERR)
			if (take_key(&s, key))
				err = error_no_memory(e);
		if (fds[0].revents & (POLLHUP | POLLERR))
			s.quit = true;
		if (!err && now_ns() >= next) {
			if (!s.frozen && !w->ended) {
				err = watch_update(w, e);
				if (!err)
					update_pane(&s);
			}
			next = now_ns() + delay_ns;
		}
	}
	terminal_close(&s.terminal);
	pane_close(&s.pane);
	return err;
}
