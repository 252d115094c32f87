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

/* Forks the child. argv must live until command_release(). */
int command_prepare(struct command *command, char *const *argv, struct error *e);

/* Lets it exec; says why when it cannot. */
int command_go(struct command *command, struct error *e);

/* Its status as wait(2) gives it, or -1: it has not ended. Does not wait. */
int command_status(struct command *command);

/* Ends a child that has not been let go. One that runs goes on. */
void command_release(struct command *command);

#endif
