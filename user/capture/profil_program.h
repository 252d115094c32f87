/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_PROFIL_PROGRAM_H
#define PROFIL_CAPTURE_PROFIL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/profil.h"
#include "capture/tick.h"
#include "util/error.h"

struct bpf_object;
struct bpf_program;

/*
 * The program `profil`, which many clients may share; processes as well, by the descriptors.
 * Zero-initialised is none.
 */
struct profil_program {
	struct profil_bpf *bpf;
	const struct tick *tick; /* it traces the scheduler's tick; NULL: perf events have it */
	bool inherit;		 /* children of members are members: of the same client */
	bool account;		 /* their CPU time will be asked for */
	unsigned int most;	 /* clients at once; 0: one */
	/* Of its maps: */
	int entries, clients;
};

/* Loads the program; the settings are set before. Members that call exec are none any more. */
int profil_program_load(struct profil_program *profil, struct error *e);
void profil_program_free(struct profil_program *profil);

/* What is to be on the tick, and the object that it is of. */
const struct bpf_program *profil_program_on_tick(const struct profil_program *profil);
struct bpf_object *profil_program_object(const struct profil_program *profil);

/* What a client has: memory that the program counts in. Zero-initialised is none. */
struct profil_client {
	uint32_t number; /* as in struct member */
	size_t range_count, cell_count;
	bool elsewhere;		   /* its cells are looked at in another process alone */
	int map;		   /* struct profil_page, profil_pages() of them; 0: none */
	struct profil_page *pages; /* the same, here, if need be without the cells; NULL: none */
};

/* Makes the memory of a client, for these ranges (bpf/profil.h); the counts are set before. */
int profil_client_make(struct profil_client *client, const struct profil_range *ranges,
		       struct error *e);

/* All that it takes for a client that is alone, and has any process that is a member for it. */
int profil_client_add(const struct profil_program *profil, struct profil_client *client,
		      const struct profil_range *ranges, struct error *e);

/* Only now ticks are counted in it. */
void profil_client_enable(struct profil_client *client);

/* Nothing is counted in it any more when this returns. */
void profil_client_end(struct profil_client *client);
void profil_client_free(struct profil_client *client);

/* Parts of it. */
struct profil_state *profil_client_state(const struct profil_client *client);
uint64_t *profil_client_cells(const struct profil_client *client); /* cell_count of them */

#endif
