/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROFIL_PROGRAM_H
#define PROFIL_CAPTURE_PROFIL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/profil.h"
#include "capture/pid_numbers.h"
#include "capture/program.h"

/* The program `profil` and what it shares with us. Zero-initialised is none. */
struct profil_program {
	struct program program; /* first, so that it is found from there */
	/* One for each generation; the first makes the maps, all share them. */
	struct profil_bpf *loads[PROGRAM_GENERATIONS];
	size_t range_count, cell_count;
	pid_t pid;		      /* the process that is counted */
	bool all_processes;	      /* all that have an event are */
	bool timing;		      /* the program takes its own run time */
	bool churning;		      /* threads may get two events: profil_state.in_doubt */
	struct pid_identity identity; /* of pid */
	struct profil_state *state;
	uint64_t *cells; /* cell_count of them */
};

/*
 * Loads the program for these ranges (bpf/profil.h), range_count of them. range_count, cell_count,
 * pid, all_processes, timing and churning are set before; later generations can be loaded only with
 * `churning`. It counts nothing until state->range_count is set.
 */
int profil_program_load(struct profil_program *profil, const struct profil_range *ranges,
			struct error *e);
void profil_program_free(struct profil_program *profil);

/* The maps of state and cells. */
int profil_program_state_fd(const struct profil_program *profil);
int profil_program_cells_fd(const struct profil_program *profil);

#endif
