// SPDX-License-Identifier: GPL-2.0-only
/*
 * What perf record writes: perf.data, as a file or to a pipe. Described by the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/format.h"
#include "format/perf/perf_file.h"
#include "format/perf/perf_tasks.h"
#include "format/perf/perf_values.h"
#include "profile/image_name.h"
#include "profile/tags.h"
#include "symbol/cfi/copied_stack.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file_open.h"
#include "util/sum.h"
#include "util/table.h"

static const char magic[] = "PERFILE2";

/* Kernels before 6.0 and 6.8 do not have these. */
#define READ_FORMAT_LOST	 (1U << 4)
#define BRANCH_SAMPLE_COUNTERS	 (UINT64_C(1) << 19)
#define BRANCH_SAMPLE_CALL_STACK (UINT64_C(1) << 11)
/* Of later ones: the rest of the stack is in another record. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)

/*
 * How many mappings are prepared for walks of copied stacks, which is done again where samples of
 * processes alternate: some seconds, of malicious files.
 * Bound: files: mappings that are prepared for walks of copied stacks; then: the file is refused.
 */
#define WALK_MAPS_MAX	   ((uint64_t)1 << 27)
#define WALK_MAPS_FOR_EACH 1024 /* so many more for each sample */

#define MINOR_BITS 20 /* of a device's number, in the kernel */

/* Powers of 2 */
#define CACHED_PCS_MIN 256
/*
 * Bound: files: pcs whose locations are remembered; then: one replaces another, and is searched
 * again; again: at once; seen: not seen, but as CPU time.
 */
#define CACHED_PCS_MAX 65536

/* The location of a pc in an address space of this stamp. Bound: as CACHED_PCS_MAX. */
struct cached_pc {
	uint64_t pc, stamp;
	uint32_t location; /* its number + 1 */
};

/* The path of a control group by its ID. */
struct cgroup {
	uint64_t id;
	const char *path;
};

struct reader {
	struct perf_file file;
	struct perf_tasks tasks;
	struct profile *p;
	struct error *e;
	struct perf_values values;
	uint32_t *events;  /* by attribute: its number in values; PROFILE_NONE: it is not read */
	uint32_t lead;	   /* in values */
	uint64_t others;   /* samples of events that are not read */
	uint64_t shift_ns; /* from perf's clock to the time since the epoch; may wrap */
	struct tick_choice *choice;
	struct cached_pc *pcs;
	size_t pc_count; /* a power of 2 */
	uint32_t *frames;
	size_t frame_room;
	struct index mapping_index;
	/* Of the kernel, made when the first of its addresses is met */
	uint32_t kernel_image;
	struct perf_map kernel;	 /* as recorded; limit 0: it was not */
	uint64_t kernel_text;	 /* where its symbol _text was: the offset of its mapping */
	uint32_t kernel_mapping; /* of the profile; PROFILE_NONE: not made yet */
	TABLE(struct cgroup) cgroups;
	uint32_t unknown; /* location "[unknown]"; PROFILE_NONE: not met yet */
	uint64_t guests, kernel_samples;
	bool has_deferred, has_unwalked;
	/* Of copied stacks; NULL: there was none yet */
	struct copied_stacks *walks;
	uint64_t walk_stamp;		/* of the address space whose mappings they have */
	uint64_t walk_count, walk_maps; /* so far */
};

/* --- Images and mappings --- */

static bool mapping_equal(const void *array, uint32_t id, const void *key)
{
	const struct profile_mapping *a = (const struct profile_mapping *)array + id, *b = key;

	return a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->image == b->image;
}

static int mapping_id(struct reader *r, uint64_t start, uint64_t limit, uint64_t offset,
		      uint32_t image, uint32_t *id)
{
	const struct profile_mapping key = {
		.start = start, .limit = limit, .offset = offset, .image = image
	};
	uint64_t hash = hash_u64(start, hash_u64(offset, image));

	*id = index_find(&r->mapping_index, hash, mapping_equal, r->p->mappings, &key);
	if (*id != INDEX_NONE)
		return 0;
	if (profile_add_mapping(r->p, start, limit, offset, image, id))
		return -ENOMEM;
	return index_add(&r->mapping_index, hash, *id);
}

/* "/lib/modules/6.1/kernel/net/nf-tables.ko.xz" is [nf_tables], as in our recordings. */
static int module_name(struct profile *p, const char **path)
{
	const char *slash = strrchr(*path, '/'), *base = slash ? slash + 1 : *path;
	const char *end = strstr(base, ".ko");
	char name[128];
	int size;

	if (!slash || !end)
		return 0;
	size = snprintf(name, sizeof(name), "[%.*s]", (int)(end - base), base);
	if (size >= (int)sizeof(name))
		return 0;
	for (char *at = name; *at; at++)
		if (*at == '-')
			*at = '_';
	return profile_string(p, name, path);
}

/* Sets *image to that of a mapping's path; the build ID is of size 0 if the record has none. */
static int image_id(struct reader *r, const char *path, bool in_kernel, const uint8_t *build_id,
		    uint32_t size, uint32_t *image)
{
	const struct perf_build_id *known = perf_find_build_id(&r->file, path);

	if (in_kernel && image_is_kernel(path)) {
		/* The feature section names it without the symbol. */
		if (profile_string(r->p, IMAGE_KERNEL, &path))
			return -ENOMEM;
		known = known ?: perf_find_build_id(&r->file, path);
	}
	if (in_kernel && module_name(r->p, &path))
		return -ENOMEM;
	if (!size && known) {
		build_id = known->bytes;
		size = known->size;
	}
	return profile_add_image(r->p, path, build_id, size, image);
}

/*
 * Sets *image to that of the code that a process generated, if it wrote their names to a map and
 * that is still there; else leaves it. The process was of this machine, and root or the caller
 * wrote the file, as perf itself wants it.
 */
static int generated_code(struct reader *r, uint32_t pid, const char *path, uint32_t *image)
{
	char map[64], name[32], host[HOST_NAME_MAX + 1] = "";
	enum image_kind kind = image_kind(path);
	struct stat status;
	int fd, err;

	if ((kind != IMAGE_ANON && kind != IMAGE_SHARED && kind != IMAGE_UNNAMED) ||
	    (*r->p->host && (gethostname(host, HOST_NAME_MAX) || strcmp(host, r->p->host) != 0)))
		return 0;
	snprintf(name, sizeof(name), "[jit %" PRIu32 "]", pid);
	snprintf(map, sizeof(map), "/tmp/perf-%" PRIu32 ".map", pid);
	fd = file_open_regular_by_rules(-1, map, FILE_NO_FOREIGN_LINKS, &status);
	if (fd < 0)
		return 0;
	err = file_is_of(&status, 0) ? profile_add_image(r->p, name, NULL, 0, image) : -EACCES;
	if (!err && r->p->images[*image].fd < 0)
		r->p->images[*image].fd = fd;
	else
		close(fd);
	return err == -ENOMEM ? err : 0;
}

/*
 * The size of the build ID in the record of a mapping, at its union with the device and the inode;
 * 0: it has these. Linux 6.1 marks a record as one with a build ID when an event of another
 * recording asked for it, though it has the device: an event of this file has to have asked, or
 * what would be the device's minor number is none.
 */
static uint32_t mapped_build_id(const struct perf_file *f, const struct perf_event_header *h,
				struct perf_bytes b)
{
	uint32_t size = perf_take_u32(&b), minor = perf_take_u32(&b);

	if (!(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || size > 20)
		return 0;
	return f->asks_build_ids || minor >> MINOR_BITS ? size : 0;
}

static int read_mapping(struct reader *r, const struct perf_event_header *h, struct perf_bytes b)
{
	uint32_t pid = perf_take_u32(&b), image, mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct perf_map map = { .function = PROFILE_NONE };
	uint64_t offset, size;
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	uint32_t build_id_size = 0;
	const char *path;

	perf_skip(&b, sizeof(uint32_t));
	map.start = perf_take_u64(&b);
	size = perf_take_u64(&b);
	offset = perf_take_u64(&b);
	if (__builtin_add_overflow(map.start, size, &map.limit))
		map.limit = UINT64_MAX;
	if (h->type == PERF_RECORD_MMAP2 && perf_left(&b) >= 32) {
		build_id_size = mapped_build_id(&r->file, h, b);
		memcpy(build_id, b.at + 4, build_id_size);
		perf_skip(&b, 32);
	}
	if (map.start >= map.limit || mode == PERF_RECORD_MISC_GUEST_KERNEL ||
	    mode == PERF_RECORD_MISC_GUEST_USER)
		return 0;
	if (perf_string(r->p, &b, &path) ||
	    image_id(r, path, pid == UINT32_MAX, build_id, build_id_size, &image))
		return -ENOMEM;
	if (pid != UINT32_MAX && generated_code(r, pid, path, &image))
		return -ENOMEM;
	if (pid == UINT32_MAX && image_is_kernel(path)) {
		/* Its mapping is made with its first sample: images of programs come before it. */
		r->kernel_image = image;
		if (!r->kernel.limit)
			r->kernel_text = offset;
		if (!r->kernel.limit)
			r->kernel = map;
		return 0;
	}
	return mapping_id(r, map.start, map.limit, offset, image, &map.mapping)
		       ?: perf_map(&r->tasks, pid, &map);
}

/* Programs of BPF, and what the kernel generates else: each is a function. */
static int read_kernel_symbol(struct reader *r, struct perf_bytes b)
{
	struct profile_function function = { .file = "" };
	struct perf_map map = { .start = perf_take_u64(&b) };
	uint32_t size = perf_take_u32(&b), types = perf_take_u32(&b), image;
	bool is_removed = types >> 16 & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;

	if (__builtin_add_overflow(map.start, size, &map.limit) || !size)
		return 0;
	if (perf_string(r->p, &b, &function.name) ||
	    profile_add_image(r->p, "[bpf]", NULL, 0, &image))
		return -ENOMEM;
	function.system_name = function.name;
	map.function = PROFILE_NONE;
	if (*function.name && !is_removed && profile_add_function(r->p, &function, &map.function))
		return -ENOMEM;
	return mapping_id(r, map.start, map.limit, map.start, image, &map.mapping)
		       ?: perf_map(&r->tasks, UINT32_MAX, &map);
}

/* --- Locations --- */

/* The mapping of the kernel's own code; addresses that perf has in none are taken to be there. */
static int kernel_mapping(struct reader *r, uint64_t address, uint32_t *mapping)
{
	struct profile *p = r->p;

	if (r->kernel_mapping == PROFILE_NONE) {
		if ((!r->kernel.limit &&
		     profile_add_image(p, IMAGE_KERNEL, NULL, 0, &r->kernel_image)) ||
		    mapping_id(r, r->kernel.start, UINT64_MAX, r->kernel_text, r->kernel_image,
			       &r->kernel_mapping))
			return -ENOMEM;
	}
	*mapping = r->kernel_mapping;
	if (address >= r->kernel.start)
		return 0;
	return mapping_id(r, 0, r->kernel.start, 0, r->kernel_image, mapping);
}

/* mode: PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, ... */
static int find_location(struct reader *r, const struct perf_space *space, uint64_t mode,
			 uint64_t pc, uint32_t *location)
{
	bool in_kernel = mode == PERF_CONTEXT_KERNEL;
	uint64_t stamp = in_kernel ? r->tasks.kernel.stamp : space ? space->stamp : 0;
	struct cached_pc *cached = &r->pcs[hash_u64(pc, stamp) & (r->pc_count - 1)];
	const struct perf_map *map;
	struct profile_line line = { 0 };
	uint32_t mapping = PROFILE_NONE;

	switch (mode) {
	case PERF_CONTEXT_KERNEL:
	case PERF_CONTEXT_USER:
		break;
	case PERF_CONTEXT_GUEST:
	case PERF_CONTEXT_GUEST_KERNEL:
		return profile_add_named_location(r->p, "[guest kernel]", PROFILE_NONE, location);
	case PERF_CONTEXT_GUEST_USER:
		return profile_add_named_location(r->p, "[guest]", PROFILE_NONE, location);
	default:
		return profile_add_named_location(r->p, "[hypervisor]", PROFILE_NONE, location);
	}
	if (cached->pc == pc && cached->stamp == stamp && cached->location) {
		*location = cached->location - 1;
		return 0;
	}
	map = perf_find_map(in_kernel ? &r->tasks.kernel : space, pc);
	if (map)
		mapping = map->mapping;
	else if (in_kernel && kernel_mapping(r, pc, &mapping))
		return -ENOMEM;
	/*
	 * Walks along frame pointers go astray in code without them: what they find there is no
	 * code, and different in each stack.
	 */
	if (mapping == PROFILE_NONE) {
		if (r->unknown == PROFILE_NONE &&
		    profile_add_named_location(r->p, "[unknown]", PROFILE_NONE, &r->unknown))
			return -ENOMEM;
		*location = r->unknown;
		return 0;
	}
	if (profile_add_location(r->p, pc, mapping, location))
		return -ENOMEM;
	if (map && map->function != PROFILE_NONE && !r->p->locations[*location].line_count) {
		line.function = map->function;
		if (profile_set_lines(r->p, *location, &line, 1))
			return -ENOMEM;
	}
	*cached = (struct cached_pc){ pc, stamp, *location + 1 };
	return 0;
}

static uint64_t context_of_mode(unsigned int mode)
{
	switch (mode) {
	case PERF_RECORD_MISC_KERNEL:
		return PERF_CONTEXT_KERNEL;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return PERF_CONTEXT_GUEST_KERNEL;
	case PERF_RECORD_MISC_GUEST_USER:
		return PERF_CONTEXT_GUEST_USER;
	case PERF_RECORD_MISC_HYPERVISOR:
		return PERF_CONTEXT_HV;
	default:
		return PERF_CONTEXT_USER;
	}
}

/*
 * Writes the locations of a sample's stack to r->frames. chain: addresses, leaf first, with a
 * marker before those of each context. The leaf's is the sample's own; one after a marker is where
 * its context was left; the others are return addresses.
 */
static int read_stack(struct reader *r, const struct perf_space *space, unsigned int mode,
		      uint64_t ip, bool has_ip, struct perf_bytes chain, uint32_t *depth)
{
	uint64_t leaf = context_of_mode(mode), context = leaf;
	bool after_marker = true, is_first = true;
	int err = 0;

	*depth = 0;
	if (array_reserve(&r->frames, &r->frame_room, perf_left(&chain) / sizeof(uint64_t) + 1,
			  sizeof(*r->frames)))
		return -ENOMEM;
	while (!err && perf_left(&chain)) {
		uint64_t address = perf_take_u64(&chain);

		if (address == CONTEXT_USER_DEFERRED) {
			r->has_deferred = true;
			break;
		}
		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			context = address;
			after_marker = true;
			continue;
		}
		/* A precise sample's pc is not where its stack was taken. */
		if (is_first && has_ip) {
			err = find_location(r, space, leaf, ip, &r->frames[(*depth)++]);
			is_first = false;
			if (context == leaf) {
				after_marker = false;
				continue;
			}
		}
		is_first = false;
		if (!err)
			err = find_location(r, space, context, address - (!after_marker && address),
					    &r->frames[(*depth)++]);
		after_marker = false;
	}
	if (!err && is_first && has_ip)
		err = find_location(r, space, leaf, ip, &r->frames[(*depth)++]);
	return err;
}

/* --- Samples --- */

struct sample {
	uint64_t ip, time, period, cgroup;
	uint32_t pid, tid, cpu;
	struct perf_bytes chain;
	struct perf_bytes registers, stack; /* of user space; empty: none */
};

/* The size of what PERF_SAMPLE_READ adds, at b. */
static uint64_t read_size(const struct perf_event_attr *a, struct perf_bytes b)
{
	uint64_t format = a->read_format, count = 1, fields = 1;

	fields += !!(format & PERF_FORMAT_ID) + !!(format & READ_FORMAT_LOST);
	if (format & PERF_FORMAT_GROUP)
		count = perf_take_u64(&b);
	if (count > UINT16_MAX)
		return UINT64_MAX;
	return 8 * (count * fields + !!(format & PERF_FORMAT_GROUP) +
		    !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		    !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING));
}

/* Returns false if the record is shorter than its fields. */
static bool take_sample(const struct perf_event_attr *a, struct perf_bytes b, struct sample *s)
{
	uint64_t type = a->sample_type, count, branches = a->branch_sample_type;
	uint64_t last = PERF_SAMPLE_IP;

	*s = (struct sample){ .period = a->sample_period, .cpu = UINT32_MAX };
	/* An event that is counted by frequency has no fixed period. */
	if (a->freq)
		s->period = 1;
	if (perf_left(&b) <
	    8 * (size_t)__builtin_popcountll(
			type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)))
		return false;
	if (type & PERF_SAMPLE_IDENTIFIER)
		perf_take_u64(&b);
	if (type & last)
		s->ip = perf_take_u64(&b);
	if (type & PERF_SAMPLE_TID) {
		s->pid = perf_take_u32(&b);
		s->tid = perf_take_u32(&b);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = perf_take_u64(&b);
	perf_skip(&b, 8 * __builtin_popcountll(type & (PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
						       PERF_SAMPLE_STREAM_ID)));
	if (type & PERF_SAMPLE_CPU)
		s->cpu = (uint32_t)perf_take_u64(&b);
	if (type & PERF_SAMPLE_PERIOD)
		s->period = perf_take_u64(&b);
	if (type & PERF_SAMPLE_READ && !perf_skip(&b, read_size(a, b)))
		return false;
	if (type & PERF_SAMPLE_CALLCHAIN) {
		count = perf_take_u64(&b);
		if (count > perf_left(&b) / 8)
			return false;
		s->chain = (struct perf_bytes){ b.at, b.at + count * 8 };
		perf_skip(&b, count * 8);
	}
	if (type & PERF_SAMPLE_RAW)
		perf_skip(&b, perf_take_u32(&b));
	if (type & PERF_SAMPLE_BRANCH_STACK) {
		count = perf_take_u64(&b);
		if (count > UINT16_MAX)
			return false;
		perf_skip(&b, branches & PERF_SAMPLE_BRANCH_HW_INDEX ? 8 : 0);
		perf_skip(&b, count * (branches & BRANCH_SAMPLE_COUNTERS ? 32 : 24));
	}
	if (type & PERF_SAMPLE_REGS_USER) {
		uint64_t abi = perf_take_u64(&b);

		s->registers = (struct perf_bytes){ b.at, b.at };
		if (abi && perf_skip(&b, 8 * __builtin_popcountll(a->sample_regs_user)) &&
		    abi == PERF_SAMPLE_REGS_ABI_64)
			s->registers.end = b.at;
	}
	if (type & PERF_SAMPLE_STACK_USER) {
		count = perf_take_u64(&b);
		s->stack = (struct perf_bytes){ b.at, b.at };
		if (count && perf_skip(&b, count)) {
			uint64_t used = perf_take_u64(&b);

			s->stack.end = s->stack.at + (used < count ? used : count);
		}
	}
	perf_skip(&b, 8 * (!!(type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) +
			   !!(type & PERF_SAMPLE_DATA_SRC) + !!(type & PERF_SAMPLE_TRANSACTION)));
	if (type & PERF_SAMPLE_REGS_INTR && perf_take_u64(&b))
		perf_skip(&b, 8 * __builtin_popcountll(a->sample_regs_intr));
	perf_skip(&b, type & PERF_SAMPLE_PHYS_ADDR ? 8 : 0);
	s->cgroup = perf_take_u64(&b);
	return true;
}

static int label_id(struct reader *r, uint32_t number, const struct sample *s, bool in_kernel,
		    uint32_t *id)
{
	struct perf_thread *thread = &r->tasks.threads[number];
	const struct perf_process *process = &r->tasks.processes[thread->process];
	struct perf_labels *known = &thread->labels[in_kernel];
	struct profile_tag tags[3];
	struct profile_labels labels = {
		.pid = process->pid,
		.tid = thread->tid,
		.generation = process->generation,
		.comm = thread->comm,
		.kernel = in_kernel,
		.tags = tags,
	};
	uint32_t group;
	char cpu[16];

	if (known->comm == thread->comm && known->process_comm == process->comm &&
	    known->cpu == s->cpu && known->cgroup == s->cgroup) {
		*id = known->labels;
		return 0;
	}
	/* In the order of their keys */
	group = table_find(&r->cgroups, &s->cgroup, sizeof(s->cgroup));
	if (s->cgroup && group != INDEX_NONE)
		tags[labels.tag_count++] =
			(struct profile_tag){ tag_kinds[TAG_CGROUP].key, r->cgroups.all[group].path,
					      0, "" };
	snprintf(cpu, sizeof(cpu), "%" PRIu32, s->cpu);
	if (s->cpu != UINT32_MAX)
		tags[labels.tag_count++] =
			(struct profile_tag){ tag_kinds[TAG_CPU].key, cpu, 0, "" };
	if (strcmp(thread->comm, process->comm) != 0)
		tags[labels.tag_count++] =
			(struct profile_tag){ tag_kinds[TAG_PROCESS].key, process->comm, 0, "" };
	if (!labels.pid && !labels.tid && !*labels.comm)
		labels.comm = "swapper"; /* perf's name of the idle task */
	if (labels.pid == UINT32_MAX)
		labels.comm = PERF_ENDED;
	labels.pid = labels.pid == UINT32_MAX ? 0 : labels.pid;
	labels.tid = labels.tid == UINT32_MAX ? 0 : labels.tid;
	if (profile_add_labels(r->p, &labels, id))
		return -ENOMEM;
	*known = (struct perf_labels){ thread->comm, process->comm, s->cpu, s->cgroup, *id };
	return 0;
}

/*
 * Appends the callers in user space that are found in the sample's copy of the stack, and its leaf
 * there if the sample came in the kernel.
 */
static int walk_stack(struct reader *r, const struct perf_space *space, unsigned int mode,
		      const struct perf_event_attr *a, const struct sample *s, uint32_t *depth)
{
	uint64_t pcs[COPIED_FRAMES_MAX];
	uint32_t count;
	int err = 0;

	if (!perf_left(&s->registers) || !perf_left(&s->stack) || !space || r->file.is_foreign) {
		r->has_unwalked |= perf_left(&s->registers) && r->file.is_foreign;
		return 0;
	}
	r->walks = r->walks ?: copied_stacks_new(r->p);
	if (!r->walks)
		return -ENOMEM;
	r->walk_count++;
	if (space->stamp != r->walk_stamp) {
		r->walk_stamp = space->stamp;
		r->walk_maps += space->count;
		if (r->walk_maps > WALK_MAPS_MAX + r->walk_count * WALK_MAPS_FOR_EACH)
			return -E2BIG;
		copied_stacks_unmap(r->walks);
		for (size_t i = 0; i < space->count && !err; i++)
			err = copied_stacks_map(r->walks, space->maps[i].start,
						space->maps[i].limit, space->maps[i].mapping);
	}
	if (err || array_reserve(&r->frames, &r->frame_room, *depth + COPIED_FRAMES_MAX,
				 sizeof(*r->frames)))
		return -ENOMEM;
	count = copied_stacks_walk(r->walks, a->sample_regs_user, s->registers.at, s->stack.at,
				   perf_left(&s->stack), pcs);
	for (uint32_t i = mode == PERF_RECORD_MISC_USER && *depth; i < count && !err; i++)
		err = find_location(r, space, PERF_CONTEXT_USER, pcs[i] - (i && pcs[i]),
				    &r->frames[(*depth)++]);
	return err;
}

static int read_sample(struct reader *r, const struct perf_entry *entry,
		       const struct perf_event_header *h, struct perf_bytes b)
{
	unsigned int mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const struct perf_event_attr *a = &r->file.attrs[entry->attr].attr;
	uint32_t thread, labels, depth, number, event = r->events[entry->attr];
	const struct perf_space *space;
	struct profile *p = r->p;
	struct sample s;
	int err;

	if (event == PROFILE_NONE) {
		r->others++;
		return 0;
	}
	if (!take_sample(a, b, &s))
		return -EINVAL;
	err = perf_find_thread(&r->tasks, s.pid, s.tid, &thread);
	err = err ?: label_id(r, thread, &s, mode == PERF_RECORD_MISC_KERNEL, &labels);
	if (err)
		return err;
	space = r->tasks.processes[r->tasks.threads[thread].process].space;
	err = read_stack(r, space, mode, s.ip, a->sample_type & PERF_SAMPLE_IP, s.chain, &depth);
	err = err ?: walk_stack(r, space, mode, a, &s, &depth);
	err = err ?: profile_sample(p, r->frames, depth, labels, &number);
	if (err)
		return err;
	r->guests += mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
	perf_values_add(p, number, event, s.period);
	if (event != r->lead)
		return 0;
	r->kernel_samples += mode == PERF_RECORD_MISC_KERNEL;
	if (!s.time)
		return 0;
	return tick_list_choose(&p->ticks, r->choice, number, s.time + r->shift_ns);
}

static int read_entry(struct reader *r, const struct perf_entry *entry)
{
	struct perf_event_header h;
	struct perf_bytes b = perf_record(&r->file, entry->at, &h);
	uint32_t pid, tid, parent, parent_tid, number;
	struct cgroup group;
	const char *text;

	switch (h.type) {
	case PERF_RECORD_SAMPLE:
		return read_sample(r, entry, &h, b);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return read_mapping(r, &h, b);
	case PERF_RECORD_KSYMBOL:
		return read_kernel_symbol(r, b);
	case PERF_RECORD_CGROUP:
		group.id = perf_take_u64(&b);
		return perf_string(r->p, &b, &group.path)
			       ?: table_add(&r->cgroups, &group, sizeof(group.id), &number);
	case PERF_RECORD_COMM:
		pid = perf_take_u32(&b);
		tid = perf_take_u32(&b);
		return perf_string(r->p, &b, &text)
			       ?: perf_comm(&r->tasks, pid, tid, text,
					    h.misc & PERF_RECORD_MISC_COMM_EXEC);
	case PERF_RECORD_FORK:
		pid = perf_take_u32(&b);
		parent = perf_take_u32(&b);
		tid = perf_take_u32(&b);
		parent_tid = perf_take_u32(&b);
		return perf_fork(&r->tasks, pid, tid, parent, parent_tid, !entry->time);
	default:
		return 0;
	}
}

/* --- The file --- */

static const char *event_name(const struct perf_attr *a)
{
	static const char *const hardware[] = { "cycles",
						"instructions",
						"cache-references",
						"cache-misses",
						"branches",
						"branch-misses",
						"bus-cycles",
						"stalled-cycles-frontend",
						"stalled-cycles-backend",
						"ref-cycles" };
	static const char *const software[] = {
		"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches"
	};
	uint64_t config = a->attr.config & UINT32_MAX;

	if (a->name && *a->name)
		return a->name;
	if (a->attr.type == PERF_TYPE_HARDWARE && config < sizeof(hardware) / sizeof(*hardware))
		return hardware[config];
	if (a->attr.type == PERF_TYPE_SOFTWARE && config < sizeof(software) / sizeof(*software))
		return software[config];
	return a->attr.type == PERF_TYPE_TRACEPOINT ? "tracepoint" : "raw event";
}

static enum perf_event_kind kind_of(const struct perf_event_attr *a)
{
	if (a->type == PERF_TYPE_SOFTWARE &&
	    (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK))
		return PERF_EVENT_CLOCK;
	/* Machines with two kinds of CPU have the kind in the upper half. */
	if (a->type == PERF_TYPE_HARDWARE && (a->config & UINT32_MAX) == PERF_COUNT_HW_CPU_CYCLES)
		return PERF_EVENT_CYCLES;
	return PERF_EVENT_OTHER;
}

/* Finds the events of the file, and what it says of the recording: of the event that leads. */
static int begin_profile(struct reader *r)
{
	const struct perf_event_attr *attr = NULL;
	struct perf_file *f = &r->file;
	struct profile *p = r->p;

	for (uint32_t i = 0; i < f->attr_count; i++) {
		const struct perf_attr *a = &f->attrs[i];
		struct perf_event *e;

		r->events[i] = PROFILE_NONE;
		if (!a->samples && i)
			continue;
		if (perf_values_find(&r->values, p, event_name(a), kind_of(&a->attr),
				     &r->events[i]))
			return -ENOMEM;
		if (r->events[i] == PROFILE_NONE)
			continue;
		e = &r->values.events[r->events[i]];
		e->has_periods = true;
		e->period = !a->attr.freq ? a->attr.sample_period
			    : e->kind == PERF_EVENT_CLOCK && a->attr.sample_freq
				    ? NS_PER_S / a->attr.sample_freq
				    : 0;
		e->samples += a->samples;
	}
	r->lead = perf_values_lead(&r->values);
	for (uint32_t i = 0; i < f->attr_count && !attr; i++)
		if (r->events[i] == r->lead)
			attr = &f->attrs[i].attr;
	p->bits = p->bits ?: 64;
	if (attr->freq)
		p->frequency = attr->sample_freq;
	if (attr->sample_type & PERF_SAMPLE_STACK_USER && attr->sample_regs_user)
		p->stacks = "cfi";
	else if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && !attr->exclude_callchain_user)
		p->stacks = "fp";
	if (!f->last_ns)
		return 0;
	if (f->has_clock)
		r->shift_ns = f->wall_ns - f->clock_ns;
	else if (f->in->written_ns)
		r->shift_ns = f->in->written_ns - f->last_ns;
	p->time_ns = f->first_ns + r->shift_ns;
	p->duration_ns = f->last_ns - f->first_ns;
	if (r->choice) {
		struct time_interval recorded = { 0 };

		interval_extend(&recorded, p->time_ns);
		interval_extend(&recorded, f->last_ns + r->shift_ns);
		r->choice->choose(r->choice, &recorded);
	}
	return 0;
}

/* Says once what the file has and is not read. */
static int warn_of_unread(struct reader *r)
{
	bool has_call_branches = false, has_branches = false, has_fields = false;
	struct profile *p = r->p;

	for (uint32_t i = 0; i < r->file.attr_count; i++) {
		const struct perf_event_attr *a = &r->file.attrs[i].attr;
		bool branches = a->sample_type & PERF_SAMPLE_BRANCH_STACK;
		bool calls = a->branch_sample_type & BRANCH_SAMPLE_CALL_STACK;

		if (r->events[i] == PROFILE_NONE)
			continue;
		has_call_branches |= branches && calls;
		has_branches |= branches && !calls;
		has_fields |= a->type == PERF_TYPE_TRACEPOINT && a->sample_type & PERF_SAMPLE_RAW;
	}
	const struct {
		bool is_there;
		const char *text;
	} notes[] = {
		{ r->has_unwalked,
		  "callers in user space are not read: the copies of stacks (--call-graph "
		  "dwarf) are of another kind of machine" },
		{ r->walks && copied_stacks_gave_up(r->walks),
		  "some callers in user space are not read: call frame information of all "
		  "images takes too long to read" },
		{ r->has_deferred,
		  "callers in user space are not read: they are in records of their "
		  "own, as the kernel took them later" },
		{ has_call_branches, "callers in user space are not read: they are in branch "
				     "records (--call-graph lbr)" },
		{ has_branches, "branch stacks are not read" },
		{ has_fields, "fields of tracepoints are not read" },
		{ r->file.has_aux, "traces of the hardware (AUX) are not read" },
		{ r->file.has_throttled, "the kernel throttled the event: samples are missing" },
		{ r->guests, "addresses in guests are not read: [guest], [guest kernel]" },
		{ r->file.is_unfinished, "perf record did not finish the file: build IDs and the "
					 "machine's name are missing" },
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
		if (notes[i].is_there && profile_warn(p, "%s", notes[i].text))
			return -ENOMEM;
	return r->others ? profile_warn(p, PERF_OTHERS_WARNING, r->others) : 0;
}

/* The account of the event that leads: of lost records both kinds may be there, which then count
 * the same. */
static int add_account(struct reader *r)
{
	struct profile_totals *t = &r->p->totals;
	uint64_t lost = 0, lost_samples = 0;

	for (uint32_t i = 0; i < r->file.attr_count; i++)
		if (r->events[i] == r->lead) {
			t->counted += r->file.attrs[i].samples;
			add_u64(&lost, r->file.attrs[i].lost);
			add_u64(&lost_samples, r->file.attrs[i].lost_samples);
		}
	lost = lost > lost_samples ? lost : lost_samples;
	t->known = true;
	t->ticks = t->counted;
	add_u64(&t->ticks, lost);
	t->kernel = r->kernel_samples;
	return lost ? profile_add_lost(r->p, "ring_full", lost) : 0;
}

static int perf_read(struct input *in, struct profile *p, struct error *e)
{
	struct reader r = {
		.file = { .in = in, .p = p, .e = e },
		.tasks = { .p = p, .kernel.stamp = 1, .stamp = 1 },
		.p = p,
		.e = e,
		.choice = in->options.ticks,
		.unknown = PROFILE_NONE,
		.kernel_mapping = PROFILE_NONE,
	};
	int err = perf_file_read(&r.file), read_err = 0;
	struct error ignored;

	/* Of a corrupt file, what comes before that can be salvaged. */
	if (err == -ENOMEM || (err && !r.file.entry_count))
		goto out;
	if (!r.file.attr_count) {
		read_err = input_error(in, 0, e, "the recording has no event");
		goto out;
	}
	r.events = calloc(r.file.attr_count, sizeof(*r.events));
	r.pc_count = CACHED_PCS_MIN;
	while (r.pc_count < CACHED_PCS_MAX && r.pc_count < r.file.entry_count)
		r.pc_count *= 2;
	r.pcs = calloc(r.pc_count, sizeof(*r.pcs));
	if (!r.events || !r.pcs || begin_profile(&r)) {
		read_err = -ENOMEM;
		goto out;
	}
	if (err)
		r.e = &ignored; /* the first error is the one to report */
	for (size_t i = 0; i < r.file.entry_count && !read_err; i++) {
		read_err = read_entry(&r, &r.file.entries[i]);
		if (read_err != -EINVAL && read_err != -E2BIG)
			continue;
		r.file.at = r.file.entries[i].at < in->size ? r.file.entries[i].at : in->size;
		input_error(in, r.file.at, r.e, "%s",
			    read_err == -EINVAL ? "a sample is truncated"
						: "too many changes of mappings");
		read_err = -EINVAL;
	}
	read_err = read_err ?: warn_of_unread(&r) ?: add_account(&r);
	if (read_err != -ENOMEM && perf_values_end(&r.values, p))
		read_err = -ENOMEM;
out:
	perf_file_free(&r.file);
	perf_tasks_free(&r.tasks);
	free(r.events);
	free(r.pcs);
	free(r.frames);
	index_free(&r.mapping_index);
	copied_stacks_free(r.walks);
	table_free(&r.cgroups);
	return err ?: read_err;
}

static bool perf_detect(const struct input *in)
{
	return in->size >= 16 && memcmp(in->bytes, magic, strlen(magic)) == 0;
}

const struct format format_perf = {
	.name = "perf",
	.extensions = (const char *const[]){ ".perf.data", NULL },
	.files = (const char *const[]){ "perf.data", NULL },
	.detect = perf_detect,
	.read = perf_read,
};
