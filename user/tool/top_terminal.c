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

/* Bound: pace. */
#define ESCAPE_MS 25 /* how long after Esc the rest of a key's sequence may come */

bool terminal_is_fit(void)
{
	int result;

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	       setupterm(NULL, STDOUT_FILENO, &result) == OK && cursor_address;
}

int terminal_open(struct terminal *t, struct error *e)
{
	const char *no_color = getenv("NO_COLOR");
	sigset_t set;

	*t = (struct terminal){ .signals = -1 };
	/*
	 * Signals come through a descriptor, so that the handlers that ncurses would set never run
	 * in the middle of something.
	 */
	sigemptyset(&set);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, &t->before);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->signals < 0)
		return error_set(e, errno, "cannot watch for signals");
	/* What is printed is UTF-8, and so is nearly every terminal, also where LANG says C. */
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
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
	if (!(no_color && *no_color) && has_colors()) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
	}
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

void terminal_take_signals(struct terminal *t)
{
	struct signalfd_siginfo info;
	struct winsize size;

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
		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
			resizeterm(size.ws_row, size.ws_col);
		clearok(curscr, TRUE);
	}
}
