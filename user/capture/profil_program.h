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
 * The BPF program `profil`. Many clients can share it, and so can processes that receive its
 * descriptors. Zero-initialised is none.
 */
struct profil_program {
	struct profil_bpf *bpf;
	const struct tick *tick; /* runs at the scheduler's tick; NULL: at perf events */
	unsigned int max_clients;
	int entries, clients; /* descriptors of its maps */
};

/* Loads the program with the settings above; at exec, a member is removed. Returns 0 or -errno. */
int profil_program_load(struct profil_program *profil, struct error *e);
void profil_program_free(struct profil_program *profil);

/* The program to run at ticks, and its BPF object. */
struct bpf_program *profil_program_on_tick(const struct profil_program *profil);
struct bpf_object *profil_program_object(const struct profil_program *profil);

/* A client: a histogram, which the program counts in. Zero-initialised is none. */
struct profil_client {
	uint32_t number; /* as in struct member */
	size_t range_count, cell_count;
	bool elsewhere; /* only another process reads the cells: they are not mapped here */
	int map;	/* of profil_pages() times struct profil_page; 0: none */
	struct profil_page *pages; /* the map in our memory; NULL: none */
};

/* Creates a client's map for these ranges (bpf/profil.h); the caller has set the counts above. */
int profil_client_make(struct profil_client *client, const struct profil_range *ranges,
		       struct error *e);

/* Starts to count. */
void profil_client_enable(struct profil_client *client);

/*
 * Stops counting. The counts are final when this returns; with `elsewhere`, when `done` equals
 * `ticks` in the client's memory.
 */
void profil_client_end(struct profil_client *client);
void profil_client_free(struct profil_client *client);

/* The parts of its memory. */
struct profil_state *profil_client_state(const struct profil_client *client);
uint64_t *profil_client_cells(const struct profil_client *client); /* cell_count of them */

#endif
