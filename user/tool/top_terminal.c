// SPDX-License-Identifier: GPL-2.0-only
#include "tool/top_terminal.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <term.h> /* the last: it has macros of common names */
#include <unistd.h>

#define ESCAPE_MS 25 /* how long after Esc the rest of a key's sequence may come */

bool terminal_is_fit(void)
{
	int result;

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	       setupterm(NULL, STDOUT_FILENO, &result) == OK && cursor_address;
}

/*
 * They come through a descriptor, so that the handlers that ncurses would set never run in the
 * middle of something.
 */
static int open_signals(struct terminal *t, struct error *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, &t->before);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return t->signals < 0 ? error_set(e, errno, "cannot watch for signals") : 0;
}

/* What is printed is UTF-8, and so is nearly every terminal, also where LANG says C. */
static void choose_characters(void)
{
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
}

static void choose_colors(void)
{
	const char *no_color = getenv("NO_COLOR");

	if ((no_color && *no_color) || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(1, COLOR_RED, -1);
}

int terminal_open(struct terminal *t, struct error *e)
{
	*t = (struct terminal){ .signals = -1 };
	if (open_signals(t, e))
		return -EINVAL;
	choose_characters();
	if (!newterm(NULL, stdout, stdin))
		return error_set(e, 0, "cannot use this terminal");
	t->open = true;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	choose_colors();
	return 0;
}

void terminal_close(struct terminal *t)
{
	if (t->open)
		endwin();
	if (t->signals >= 0)
		close(t->signals);
	sigprocmask(SIG_SETMASK, &t->before, NULL);
}

static void resize(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

void terminal_take_signals(struct terminal *t)
{
	struct signalfd_siginfo info;

	while (read(t->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGQUIT) {
			terminal_close(t);
			signal(SIGQUIT, SIG_DFL);
			raise(SIGQUIT);
		}
		if (info.ssi_signo == SIGTSTP) {
			endwin();
			raise(SIGSTOP);
		}
		if (info.ssi_signo == SIGCONT)
			reset_prog_mode();
		resize();
	}
}
