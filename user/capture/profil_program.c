// SPDX-License-Identifier: GPL-2.0-only
#include "capture/profil_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profil.skel.h"

/* Threads that can be told apart when some have two events. */
#define CHURNING_THREADS 512

/* Maps are shared in whole pages. */
static size_t cells_size(const struct profil_program *profil)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (profil->cell_count * sizeof(*profil->cells) + page - 1) / page * page;
}

static int set_sizes(const struct profil_program *profil, struct profil_bpf *bpf)
{
	size_t threads = profil->churning ? CHURNING_THREADS : 1;
	int err = bpf_map__set_max_entries(bpf->maps.ranges, profil->range_count);

	err = err ?: bpf_map__set_max_entries(bpf->maps.cells, profil->cell_count);
	return err ?: bpf_map__set_max_entries(bpf->maps.lowest, threads);
}

/* How often so many ranges are halved until none is left; one need not be searched. */
static unsigned int search_steps(size_t range_count)
{
	unsigned int steps = 0;

	if (range_count == 1)
		return 0;
	for (; range_count; range_count /= 2)
		steps++;
	return steps;
}

/* Chooses the program whose settings are compiled in, or the one that is told them. */
static struct bpf_program *choose(const struct profil_program *profil, unsigned int generation,
				  struct profil_bpf *bpf)
{
	bool usual = !profil->all_processes && !profil->timing && !profil->churning &&
		     profil->range_count == 1;

	bpf->rodata->namespace_device = profil->identity.device;
	bpf->rodata->namespace_inode = profil->identity.inode;
	bpf->rodata->tgid = profil->identity.tgid;
	bpf->rodata->all_processes = profil->all_processes;
	bpf->rodata->timing = profil->timing;
	bpf->rodata->churning = profil->churning;
	bpf->rodata->generation = generation;
	bpf->rodata->search_steps = search_steps(profil->range_count);
	bpf_program__set_autoload(bpf->progs.profil, usual);
	bpf_program__set_autoload(bpf->progs.profil_with_settings, !usual);
	return usual ? bpf->progs.profil : bpf->progs.profil_with_settings;
}

/* program.load */
static int load(struct program *program, unsigned int generation)
{
	struct profil_program *profil = (struct profil_program *)program;
	struct profil_bpf *bpf = profil_bpf__open();
	struct bpf_program *chosen;
	int err;

	if (!bpf)
		return -errno;
	chosen = choose(profil, generation, bpf);
	/* Later generations take over the maps of the first. */
	err = profil->loads[0] ? program_share_maps(bpf->obj, profil->loads[0]->obj)
			       : set_sizes(profil, bpf);
	err = err ?: profil_bpf__load(bpf);
	if (err) {
		profil_bpf__destroy(bpf);
		return err;
	}
	if (generation)
		__atomic_store_n(&profil->state->in_doubt, 1, __ATOMIC_SEQ_CST);
	profil->loads[generation] = bpf;
	return bpf_program__fd(chosen);
}

static int fill_ranges(const struct profil_program *profil, const struct profil_range *ranges)
{
	int fd = bpf_map__fd(profil->loads[0]->maps.ranges);
	int err = 0;

	for (uint32_t i = 0; i < profil->range_count && !err; i++)
		err = bpf_map_update_elem(fd, &i, &ranges[i], BPF_ANY);
	return err;
}

static unsigned int dirty_shift(size_t cell_count)
{
	unsigned int shift = 0;

	while ((cell_count - 1) >> shift >= PROFIL_DIRTY_BITS)
		shift++;
	return shift;
}

int profil_program_load(struct profil_program *profil, const struct profil_range *ranges,
			struct error *e)
{
	const struct profil_bpf *bpf;
	int err = pid_identity_read(profil->pid, &profil->identity, e);

	if (err)
		return err;
	profil->program.load = load;
	err = program_fd(&profil->program, 0, e);
	if (err < 0)
		return err;
	bpf = profil->loads[0];
	err = fill_ranges(profil, ranges);
	if (err)
		return error_set(e, -err, "cannot tell the BPF program its ranges");
	profil->state = &bpf->data_state->state;
	profil->cells = mmap(NULL, cells_size(profil), PROT_READ | PROT_WRITE, MAP_SHARED,
			     bpf_map__fd(bpf->maps.cells), 0);
	if (profil->cells == MAP_FAILED) {
		profil->cells = NULL;
		return error_set(e, errno, "cannot map the counts of the BPF program");
	}
	profil->state->range = ranges[0];
	profil->state->dirty_shift = dirty_shift(profil->cell_count);
	return 0;
}

void profil_program_free(struct profil_program *profil)
{
	if (profil->cells)
		munmap(profil->cells, cells_size(profil));
	for (size_t i = 0; i < PROGRAM_GENERATIONS; i++)
		profil_bpf__destroy(profil->loads[i]);
	*profil = (struct profil_program){ 0 };
}

int profil_program_state_fd(const struct profil_program *profil)
{
	return bpf_map__fd(profil->loads[0]->maps.data_state);
}

int profil_program_cells_fd(const struct profil_program *profil)
{
	return bpf_map__fd(profil->loads[0]->maps.cells);
}
