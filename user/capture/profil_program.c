// SPDX-License-Identifier: GPL-2.0-only
#include "capture/profil_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bpf/member.h"
#include "capture/members.h"
#include "capture/program.h"
#include "profil.skel.h"

/*
 * How often to check, at most, whether the last tick has been counted.
 * Bound: machine: looks for the last tick of a histogram that ends; then: it ends without that
 * tick; again: never; share: the histogram's own; seen: not seen.
 */
#define END_CHECKS_MAX 500

/* --- The program --- */

struct bpf_program *profil_program_on_tick(const struct profil_program *profil)
{
	return profil->tick ? profil->bpf->progs.profil_tick : profil->bpf->progs.profil;
}

/* For program_load(). */
static int load_profil(void *object)
{
	struct profil_program *profil = object;
	struct profil_bpf *bpf = profil_bpf__open();
	int err;

	if (!bpf)
		return -errno;
	profil->bpf = bpf;
	bpf->rodata->ends_at_exec = true;
	bpf->rodata->pid_namespace = members_pid_namespace();
	if (profil->tick) {
		bpf->rodata->tick_cpu_sched = profil->tick->timer_distance;
		bpf->rodata->irq_regs = profil->tick->regs_distance;
	}
	bpf_map__set_max_entries(bpf->maps.members, profil->max_clients);
	bpf_map__set_max_entries(bpf->maps.entries, profil->max_clients);
	bpf_map__set_max_entries(bpf->maps.clients, profil->max_clients);
	bpf_program__set_autoload(bpf->progs.profil, false);
	bpf_program__set_autoload(profil_program_on_tick(profil), true);
	members_choose(bpf->obj, false);
	err = profil_bpf__load(bpf);
	if (err) {
		profil_bpf__destroy(bpf);
		profil->bpf = NULL;
		return err;
	}
	profil->entries = bpf_map__fd(bpf->maps.entries);
	profil->clients = bpf_map__fd(bpf->maps.clients);
	return 0;
}

int profil_program_load(struct profil_program *profil, struct error *e)
{
	return program_load(load_profil, profil, e);
}

void profil_program_free(struct profil_program *profil)
{
	profil_bpf__destroy(profil->bpf);
	*profil = (struct profil_program){ 0 };
}

struct bpf_object *profil_program_object(const struct profil_program *profil)
{
	return profil->bpf->obj;
}

/* --- Clients --- */

static size_t bytes_of(const struct profil_client *client)
{
	return profil_pages(client->range_count, client->elsewhere ? 0 : client->cell_count) *
	       sizeof(*client->pages);
}

struct profil_state *profil_client_state(const struct profil_client *client)
{
	return (struct profil_state *)client->pages;
}

uint64_t *profil_client_cells(const struct profil_client *client)
{
	return (uint64_t *)&client->pages[profil_first_page(client->range_count)];
}

static unsigned int dirty_shift(size_t cell_count)
{
	unsigned int shift = 0;

	while ((cell_count - 1) >> shift >= PROFIL_DIRTY_BITS)
		shift++;
	return shift;
}

int profil_client_make(struct profil_client *client, const struct profil_range *ranges,
		       struct error *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "profil_client", sizeof(uint32_t),
				sizeof(struct profil_page),
				profil_pages(client->range_count, client->cell_count), &options);
	void *pages = MAP_FAILED;
	struct profil_state *state;
	int err = fd < 0 ? -fd : 0;

	if (!err) {
		client->map = fd;
		pages = mmap(NULL, bytes_of(client), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		err = pages == MAP_FAILED ? errno : 0;
	}
	if (err) {
		profil_client_free(client);
		return error_set(e, err, "cannot create the map for the counts");
	}
	client->pages = pages;
	state = profil_client_state(client);
	state->range = ranges[0];
	state->dirty_shift = dirty_shift(client->cell_count);
	for (size_t i = 0; i < client->range_count && client->range_count > 1; i++) {
		struct profil_page *page = &client->pages[1 + i / PROFIL_PAGE_RANGES];

		memcpy((struct profil_range *)page + i % PROFIL_PAGE_RANGES, &ranges[i],
		       sizeof(*ranges));
	}
	return 0;
}

void profil_client_enable(struct profil_client *client)
{
	__atomic_store_n(&profil_client_state(client)->range_count, client->range_count,
			 __ATOMIC_SEQ_CST);
}

/*
 * A tick takes some microseconds. The memory of another process's histogram is not waited for: that
 * process can write anything to it, and waits itself.
 */
void profil_client_end(struct profil_client *client)
{
	const struct timespec moment = { .tv_nsec = 20000 };
	struct profil_state *state = profil_client_state(client);
	uint64_t done;

	__atomic_store_n(&state->range_count, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; i < END_CHECKS_MAX && !client->elsewhere; i++) {
		done = __atomic_load_n(&state->done, __ATOMIC_SEQ_CST);
		if (done == __atomic_load_n(&state->ticks, __ATOMIC_SEQ_CST))
			break;
		nanosleep(&moment, NULL);
	}
}

void profil_client_free(struct profil_client *client)
{
	if (client->pages)
		munmap(client->pages, bytes_of(client));
	if (client->map)
		close(client->map);
	client->pages = NULL;
	client->map = 0;
}
