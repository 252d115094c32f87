/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_COMMAND_H
#define PROFIL_CAPTURE_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/error.h"

/* A program to run, started as a child that waits before its exec. */
struct command {
	pid_t pid; /* 0: none */
	char *const *argv;
	int go_fd;	/* a byte lets the child exec; closed without one, the child ends */
	int failure_fd; /* the child's errno when exec fails; end of file when it succeeds */
	bool ended;
	int status; /* as wait(2) gives it, once ended */
};

/*
 * Forks the child. argv must stay valid until command_release(). to_stderr: the child's standard
 * output is standard error. Returns 0 or a negative errno.
 */
int command_prepare(struct command *command, char *const *argv, bool to_stderr, struct error *e);

/* Lets the child exec. Returns 0, or a negative errno: it could not. */
int command_go(struct command *command, struct error *e);

/* Returns its status as from wait(2); -1: it has not ended. Does not wait. */
int command_status(struct command *command);

/* Ends a child that still waits for its exec. A command that runs keeps running. */
void command_release(struct command *command);

#endif
