// SPDX-License-Identifier: GPL-2.0-only
#include "capture/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Does not return. */
static void run_child(int go_fd, int failure_fd, char *const *argv, bool to_stderr)
{
	sigset_t none;
	ssize_t n;
	char go;
	int code;

	do
		n = read(go_fd, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
	/* Undoes what the caller has blocked and ignored for itself. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	code = to_stderr && dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? errno : 0;
	if (!code) {
		execvp(argv[0], argv);
		code = errno;
	}
	if (write(failure_fd, &code, sizeof(code)) != sizeof(code))
		_exit(126);
	_exit(127);
}

int command_prepare(struct command *command, char *const *argv, bool to_stderr, struct error *e)
{
	int go[2], failure[2], code;

	if (pipe2(go, O_CLOEXEC))
		return error_set(e, errno, "cannot start %s", argv[0]);
	if (pipe2(failure, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return error_set(e, errno, "cannot start %s", argv[0]);
	}
	command->pid = fork();
	code = errno;
	if (command->pid == 0) {
		close(go[1]);
		run_child(go[0], failure[1], argv, to_stderr);
	}
	close(go[0]);
	close(failure[1]);
	command->go_fd = go[1];
	command->failure_fd = failure[0];
	command->argv = argv;
	if (command->pid < 0) {
		command->pid = 0;
		close(go[1]);
		close(failure[0]);
		return error_set(e, code, "cannot start %s", argv[0]);
	}
	return 0;
}

int command_go(struct command *command, struct error *e)
{
	int code = 0;
	ssize_t n;

	if (write(command->go_fd, "", 1) != 1)
		return error_set(e, errno, "cannot start %s", command->argv[0]);
	close(command->go_fd);
	command->go_fd = -1;
	do
		n = read(command->failure_fd, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	error_set_kind(e, ERROR_FAILED, n == sizeof(code) ? code : EIO, "cannot run %s",
		       command->argv[0]);
	return -ENOEXEC;
}

int command_status(struct command *command)
{
	if (command->pid && !command->ended &&
	    waitpid(command->pid, &command->status, WNOHANG) == command->pid)
		command->ended = true;
	return command->ended ? command->status : -1;
}

void command_release(struct command *command)
{
	if (!command->pid)
		return;
	if (command->go_fd >= 0) {
		close(command->go_fd); /* the child reads the end of file and exits */
		waitpid(command->pid, NULL, 0);
	}
	close(command->failure_fd);
	command->pid = 0;
}
