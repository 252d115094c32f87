// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bpf/sample.h"
#include "capture/program.h"
#include "capture/snapshot.h"
#include "capture/unwind/unwind_copy.h"
#include "capture/unwind/unwind_space.h"
#include "capture/unwind/unwind_state.h"
#include "bpf/member.h" /* of the skeleton */
#include "sample.skel.h"
#include "util/array.h"
#include "util/clock.h"

/* --- Images --- */

static int reserve_images(struct unwind *u)
{
	return array_reserve(&u->images, &u->image_room, u->processes->image_count,
			     sizeof(*u->images));
}

int unwind_prepare(struct unwind *u, struct sample_bpf *bpf)
{
	struct unwind_sizes need = { 0 }, users = { 0 };
	int err = reserve_images(u), nice = getpriority(PRIO_PROCESS, 0);

	u->begin_ns = now_ns();
	for (; u->image_count < u->processes->image_count && !err; u->image_count++) {
		struct unwind_image_state *state = &u->images[u->image_count];

		err = unwind_read_image(u, u->image_count);
		setpriority(PRIO_PROCESS, 0, nice);
		if (!err && state->rows.count &&
		    !unwind_tables_want(&need, &users, &state->rows, state->root_owned))
			unwind_has_no_room(state);
	}
	for (size_t i = 0; i < u->processes->count && !err; i++)
		need.mappings += process_space(&u->processes->processes[i])->count;
	bpf_program__set_autoload(bpf->progs.list_exec_numbers, true);
	u->spare_mib = u->spare_mib ?: UNWIND_SPARE_MIB;
	err = err ?: unwind_tables_size(&u->tables, &need, &users, u->spare_mib, bpf);
	snprintf(u->no_room_why, sizeof(u->no_room_why),
		 "no room in the unwind tables (%zu MiB): give --unwind-memory more than %u",
		 unwind_tables_bytes(&u->tables.room) >> 20, u->spare_mib);
	return err;
}

enum capture_rows unwind_rows_state(const struct unwind *u, uint32_t image, const char **why)
{
	const struct unwind_image_state *state = &u->images[image];

	*why = NULL;
	if (image >= u->image_count)
		return CAPTURE_ROWS_NONE;
	if (unwind_tables_has_rows(&u->tables, state->number))
		return CAPTURE_ROWS_READ;
	*why = state->why[0] ? state->why : NULL;
	if (state->no_room || state->number != UNWIND_NO_IMAGE) {
		*why = *why ?: u->no_room_why;
		return CAPTURE_ROWS_NO_ROOM;
	}
	return *why ? CAPTURE_ROWS_UNREAD : CAPTURE_ROWS_NONE;
}

/* --- Processes --- */

/* Returns the difference of an address in the mapping and its ELF virtual address. */
static uint64_t find_bias(const struct unwind_image_state *image,
			  const struct capture_mapping *mapping)
{
	uint64_t size = mapping->limit - mapping->start;

	for (size_t i = 0; i < image->rows.segment_count; i++) {
		const struct unwind_segment *segment = &image->rows.segments[i];

		if (segment->offset < mapping->offset + size &&
		    mapping->offset < segment->offset + segment->size)
			return mapping->start - mapping->offset + segment->offset -
			       segment->address;
	}
	return mapping->start - mapping->offset;
}

/* The searches in the tables require addresses below this: see mask_if_not_above(). */
#define USER_LIMIT (1ULL << 63)

/* Mappings of a process, ordered by time. */
struct mapping_list {
	struct unwind_mapping *mappings;
	size_t count, room;
};

/* The rest of a long history is dropped. This is five times that of the largest browsers. */
#define MAPPING_LIST_MAX 16384

/* Appends mappings [from, to) of an address space, as far as there is room. */
static int list_mappings(const struct unwind *u, struct mapping_list *list,
			 const struct address_space *of, size_t from, size_t to)
{
	if (to - from > MAPPING_LIST_MAX - list->count)
		to = from + MAPPING_LIST_MAX - list->count;
	if (array_reserve(&list->mappings, &list->room, list->count + (to - from),
			  sizeof(*list->mappings)))
		return -ENOMEM;
	for (size_t i = from; i < to; i++) {
		const struct capture_mapping *mapping = &of->mappings[i];
		const struct unwind_image_state *image = &u->images[mapping->image];

		if (mapping->start <
		    USER_LIMIT) /* not the vsyscall page: nothing is called there */
			list->mappings[list->count++] = (struct unwind_mapping){
				.start = mapping->start,
				.limit = mapping->limit,
				.bias = find_bias(image, mapping),
				.image = image->number,
			};
	}
	return 0;
}

/* Appends the mappings of the processes that it was forked from, the oldest first. */
static int list_ancestors(const struct unwind *u, struct mapping_list *list,
			  const struct address_space *of)
{
	struct {
		const struct address_space *space;
		size_t count;
	} ancestors[UNWIND_ANCESTORS_MAX];
	size_t count = 0;
	int err = 0;

	for (; of->parent != INDEX_NONE && count < UNWIND_ANCESTORS_MAX; count++) {
		ancestors[count].count = of->parent_count;
		of = &u->processes->processes[of->parent].spaces[of->parent_space];
		ancestors[count].space = of;
	}
	while (count-- > 0 && !err)
		err = list_mappings(u, list, ancestors[count].space, 0, ancestors[count].count);
	return err;
}

/* Adds the mappings of an address space from number `from` on; 0: also its ancestors'. */
static int take_mappings(const struct unwind *u, struct unwind_space *space,
			 const struct address_space *of, size_t from)
{
	struct mapping_list list = { 0 };
	int err = from ? 0 : list_ancestors(u, &list, of);

	err = err ?: list_mappings(u, &list, of, from, of->count);
	err = err ?: unwind_space_map(space, list.mappings, list.count);
	free(list.mappings);
	return err == -ENOSPC ? 0 : err;
}

/*
 * Whether there is no room for an address space's mappings in the budget of all processes: a child
 * that maps one more has a copy of its parent's. Then its stacks are walked one by one.
 */
static bool is_over_budget(const struct unwind *u, const struct address_space *of)
{
	size_t count = of->count;

	for (int i = 0; of->parent != INDEX_NONE && i < UNWIND_ANCESTORS_MAX; i++) {
		count += of->parent_count;
		of = &u->processes->processes[of->parent].spaces[of->parent_space];
	}
	if (count > UNWIND_PROCESS_MAPPINGS_MAX)
		count = UNWIND_PROCESS_MAPPINGS_MAX;
	return count * sizeof(struct unwind_mapping) > process_budget(u->processes);
}

/* Another process may have the PID by now, and may be published with the same key. */
static int withdraw_block(struct unwind *u, size_t number)
{
	struct unwind_process_state *state = &u->states[number];
	const struct process *last =
		process_find(u->processes, u->processes->processes[number].pid);
	size_t other = last - u->processes->processes;
	bool shared = other != number && other < u->state_count && u->states[other].block.size &&
		      u->states[other].key == state->key;

	if (state->position) {
		uint32_t moved = u->published[--u->published_count];

		u->published[state->position - 1] = moved;
		u->states[moved].position = state->position;
		state->position = 0;
	}
	return unwind_tables_withdraw(&u->tables, shared ? 0 : state->key, &state->block);
}

int unwind_withdraw(struct unwind *u, size_t number)
{
	struct unwind_process_state *state = &u->states[number];

	u->processes->copied_bytes -= state->space.count * sizeof(struct unwind_mapping);
	free(state->space.mappings);
	state->space = (struct unwind_space){ 0 };
	state->taken = 0;
	state->begun = false;
	return withdraw_block(u, number);
}

static int publish_space(struct unwind *u, size_t number, uint64_t key)
{
	struct unwind_process_state *state = &u->states[number];
	int err = 0;

	if (state->block.size && state->key != key)
		err = withdraw_block(u, number);
	if (!err && !state->position) {
		if (array_reserve(&u->published, &u->published_room, u->published_count + 1,
				  sizeof(*u->published)))
			return -ENOMEM;
		u->published[u->published_count++] = number;
		state->position = u->published_count;
	}
	state->key = key;
	err = err
		      ?: unwind_tables_publish(&u->tables, key, state->space.mappings,
					       state->space.count, &state->block);
	if (!err || err == -EAGAIN || err == -ENOMEM)
		return err;
	/* No room: better unpublished, so that its ticks send copies, than outdated. */
	return withdraw_block(u, number);
}

/* Returns 0, -ENOMEM, or -EAGAIN: try again later. */
static int publish(struct unwind *u, size_t number)
{
	struct process *process = &u->processes->processes[number];
	struct address_space *space = process_space(process);
	struct unwind_process_state *state = &u->states[number];
	/* Its leader may end before the others: withdraw_ended() sees them end. */
	bool ended = process_is_gone(process);
	bool over = !ended && is_over_budget(u, space);
	size_t count;
	int err = 0;

	if (ended || over || state->number != process->count - 1)
		err = unwind_withdraw(u, number);
	state->number = process->count - 1;
	if (err || ended || over || space->exec == EXEC_UNKNOWN)
		return err;
	count = state->space.count;
	/* The last one again: process_map() may have extended it. */
	err = take_mappings(u, &state->space, space,
			    state->begun ? state->taken - !!state->taken : 0);
	u->processes->copied_bytes += (state->space.count - count) * sizeof(struct unwind_mapping);
	if (err)
		return err;
	state->begun = true;
	state->taken = space->count;
	return publish_space(u, number, sample_id_make(space->exec, process->pid, 0));
}

static int publish_changed(struct unwind *u)
{
	struct process_table *table = u->processes;
	size_t count = table->count, again = 0;
	int err = 0;

	if (array_reserve(&u->states, &u->state_room, count, sizeof(*u->states)))
		return -ENOMEM;
	u->state_count = count;
	for (size_t i = 0; i < table->changed_count && !err; i++) {
		uint32_t number = table->changed[i];

		err = publish(u, number);
		table->processes[number].changed = err == -EAGAIN;
		if (err == -EAGAIN) {
			table->changed[again++] = number;
			err = 0;
		}
	}
	table->changed_count = again;
	return err;
}

/*
 * Withdraws processes whose end was not seen: exit records may be lost, or come while the last
 * thread still exists. Checks some of the published processes at a time.
 */
#define CHECK_NS    (50 * NS_PER_MS)
#define CHECK_COUNT 64

static int withdraw_ended(struct unwind *u)
{
	uint64_t now = now_ns();
	int err = 0;

	if (now < u->next_check_ns)
		return 0;
	u->next_check_ns = now + CHECK_NS;
	for (size_t i = 0; i < CHECK_COUNT && i < u->published_count && !err; i++) {
		uint32_t number = u->published[u->next_check++ % u->published_count];

		if (process_is_gone(&u->processes->processes[number]))
			err = unwind_withdraw(u, number);
	}
	return err;
}

/* --- Stacks that the BPF program could not walk --- */

/* Of later copies only the head is kept: their walk ends after one frame. */
#define COPIES_BYTES_MAX ((size_t)256 << 20)

static int take_copy(void *context, void *data, size_t size)
{
	struct unwind *u = context;
	const struct unwind_copy *from = data;
	struct unwind_copy *copy;
	bool keep;

	if (size < offsetof(struct unwind_copy, bytes) ||
	    size - offsetof(struct unwind_copy, bytes) < from->size)
		return 0;
	if (array_reserve(&u->copies, &u->copy_room, u->copy_count + 1, sizeof(*u->copies)))
		return -ENOMEM;
	keep = u->copies_bytes + size <= COPIES_BYTES_MAX;
	if (!keep)
		size = offsetof(struct unwind_copy, bytes);
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, size);
	copy->size = keep ? copy->size : 0;
	u->copies_bytes += copy->size;
	u->copies[u->copy_count++] = copy;
	return 0;
}

/* While rows are read, which may take seconds, a thread takes the copies, so that the ring has
 * room. */
#define TAKE_INTERVAL_NS (5 * NS_PER_MS)

struct taker {
	struct unwind *u;
	pthread_t thread;
	pthread_mutex_t lock; /* of the rest, and of the copies */
	pthread_cond_t stop;
	bool stopped;
	int err;
};

static void *take_copies(void *argument)
{
	struct taker *taker = argument;

	pthread_mutex_lock(&taker->lock);
	while (!taker->stopped && taker->err >= 0) {
		uint64_t next = now_ns() + TAKE_INTERVAL_NS;
		struct timespec until = { next / NS_PER_S, next % NS_PER_S };

		taker->err = ring_buffer__consume(taker->u->ring);
		pthread_cond_clockwait(&taker->stop, &taker->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&taker->lock);
	return NULL;
}

static int stop_taker(struct taker *taker)
{
	pthread_mutex_lock(&taker->lock);
	taker->stopped = true;
	pthread_cond_signal(&taker->stop);
	pthread_mutex_unlock(&taker->lock);
	pthread_join(taker->thread, NULL);
	return taker->err < 0 ? taker->err : 0;
}

/* Adds an image while a thread takes copies; making room for it may walk them. */
static int add_image(struct unwind *u, size_t number, uint64_t until_ns, struct taker *taker)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	int err = unwind_read_image(u, number);

	pthread_mutex_lock(&taker->lock);
	err = err ?: unwind_add_image(u, number, until_ns);
	pthread_mutex_unlock(&taker->lock);
	setpriority(PRIO_PROCESS, 0, nice);
	return err;
}

/* Adds to u->wanted the images whose files could be opened now, unlike before. */
static int want_reopened(struct unwind *u)
{
	for (size_t i = 0; i < u->image_count; i++) {
		struct unwind_image_state *state = &u->images[i];

		if (!u->processes->images[i].is_reopened)
			continue;
		u->processes->images[i].is_reopened = false;
		/* It was found by its name, or by its build ID. */
		if (state->number != UNWIND_NO_IMAGE || state->wanted)
			continue;
		if (array_reserve(&u->wanted, &u->wanted_room, u->wanted_count + 1,
				  sizeof(*u->wanted)))
			return -ENOMEM;
		u->wanted[u->wanted_count++] = i;
		state->wanted = state->again = true;
	}
	return 0;
}

static bool has_moved_image(const struct unwind *u, const struct address_space *space)
{
	size_t count = space->count;

	for (int depth = 0;; depth++) {
		for (size_t i = 0; i < count; i++)
			if (space->mappings[i].image < u->image_count &&
			    u->images[space->mappings[i].image].moved)
				return true;
		if (space->parent == INDEX_NONE || depth == UNWIND_ANCESTORS_MAX)
			return false;
		count = space->parent_count;
		space = &u->processes->processes[space->parent].spaces[space->parent_space];
	}
}

/*
 * Makes and publishes anew the mappings of all processes that map an image which has rows now and
 * had none when they were published.
 */
static int remap(struct unwind *u)
{
	bool moved = false;
	int err = 0;

	for (size_t i = 0; i < u->image_count && !moved; i++)
		moved = u->images[i].moved;
	for (size_t i = 0; moved && i < u->state_count && !err; i++) {
		struct unwind_process_state *state = &u->states[i];
		struct process *process = &u->processes->processes[i];

		if (!state->begun || !has_moved_image(u, &process->spaces[state->number]))
			continue;
		u->processes->copied_bytes -= state->space.count * sizeof(struct unwind_mapping);
		free(state->space.mappings);
		state->space = (struct unwind_space){ 0 };
		state->taken = 0;
		state->begun = false;
		err = process_note_change(u->processes, process);
	}
	for (size_t i = 0; moved && i < u->image_count; i++)
		u->images[i].moved = false;
	u->past.known &= !moved;
	return err;
}

static int add_images(struct unwind *u, uint64_t until_ns)
{
	struct taker taker = {
		.u = u,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.stop = PTHREAD_COND_INITIALIZER,
	};
	int err = reserve_images(u) ?: unwind_want_images(u) ?: want_reopened(u), stop_err;
	bool taking;

	if (err || (u->image_count == u->processes->image_count && !u->wanted_count))
		return err;
	*u->is_reading_rows = 1;
	/* Without the thread, copies may be lost: no reason to fail. */
	taking = pthread_create(&taker.thread, NULL, take_copies, &taker) == 0;
	while (u->wanted_count && !err) {
		uint32_t number = u->wanted[--u->wanted_count];
		uint32_t before = u->images[number].number;

		err = add_image(u, number, until_ns, &taker);
		u->images[number].moved = u->images[number].number != before;
	}
	for (; u->image_count < u->processes->image_count && !err; u->image_count++)
		err = add_image(u, u->image_count, until_ns, &taker);
	stop_err = taking ? stop_taker(&taker) : 0;
	return err ?: stop_err ?: remap(u);
}

/*
 * Returns the process of a copy, added if it is new; NULL: out of memory. If nothing is known of
 * its current address space, records may have been lost: its mappings are read from /proc, once.
 */
static struct process *find_or_scan(struct unwind *u, const struct unwind_copy *copy)
{
	struct process_table *table = u->processes;
	pid_t pid = sample_id_tgid(copy->process);
	struct process *process = process_at(table, pid, copy->time_ns);
	const struct address_space *space;
	size_t number;

	if (!process) {
		if (process_add(table, pid, copy->time_ns))
			return NULL;
		process = process_find(table, pid);
	}
	number = process - table->processes;
	if (number >= u->state_count) {
		if (array_reserve(&u->states, &u->state_room, number + 1, sizeof(*u->states)))
			return NULL;
		u->state_count = number + 1;
	}
	space = process_space(process);
	if (space->count || space->parent != INDEX_NONE || process->ended ||
	    process->next_with_pid != INDEX_NONE || u->states[number].scanned >= process->count)
		return process;
	u->states[number].scanned = process->count;
	return snapshot_process(table, pid, copy->time_ns) ? NULL : &table->processes[number];
}

/* Sets the exec number of the process to that of the copy. */
static int update_exec(struct unwind *u, const struct unwind_copy *copy)
{
	struct process *process = find_or_scan(u, copy);
	uint32_t exec = sample_id_exec(copy->process);
	struct address_space *space;

	if (!process)
		return -ENOMEM;
	space = process_space_at(process, copy->time_ns);
	if (space->exec == exec && u->states[process - u->processes->processes].block.size)
		return 0; /* no change */
	space->exec = exec;
	return process_note_change(u->processes, process);
}

/* The process's mappings at the copy's time, valid until the next call; NULL: out of memory. */
static const struct unwind_space *find_space(struct unwind *u, const struct unwind_copy *copy)
{
	static const struct unwind_space none;
	struct process *process =
		process_at(u->processes, sample_id_tgid(copy->process), copy->time_ns);
	const struct address_space *of;
	const struct unwind_process_state *state;
	size_t number;

	if (!process)
		return &none;
	of = process_space_at(process, copy->time_ns);
	number = process - u->processes->processes;
	state = &u->states[number];
	if (number < u->state_count && state->begun && state->taken == of->count &&
	    &process->spaces[state->number] == of)
		return &state->space;
	/* It has ended, or called exec. Kept, as there may be many copies of one process. */
	if (u->past.process != number || u->past.number != (size_t)(of - process->spaces) ||
	    u->past.taken != of->count || !u->past.known) {
		free(u->past.space.mappings);
		u->past.space = (struct unwind_space){ 0 };
		u->past.known = take_mappings(u, &u->past.space, of, 0) == 0;
		u->past.process = number;
		u->past.number = of - process->spaces;
		u->past.taken = of->count;
	}
	return u->past.known ? &u->past.space : NULL;
}

static int walk_copy(struct unwind *u, const struct unwind_copy *copy)
{
	const struct unwind_space *space = find_space(u, copy);
	struct unwind_found found;
	struct counted sample = {
		.id = copy->id,
		.first_ns = copy->time_ns,
		.count = 1,
		.kernel_depth = copy->kernel_depth,
		.cpu = copy->cpu,
	};

	if (!space)
		return -ENOMEM;
	unwind_copy_walk(copy, &u->tables, space, &found);
	sample.user_depth = found.user_depth;
	sample.end =
		found.end == UNWIND_NO_MAPPING && !space->count ? UNWIND_NO_PROCESS : found.end;
	sample.by_frame_pointer = found.by_frame_pointer;
	return counts_add(u->counts, &sample, found.pcs);
}

/* The copies of different CPUs are not ordered by time: those to keep may be anywhere. */
int unwind_walk_copies(struct unwind *u, unwind_copy_filter *is_kept, void *context)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < u->copy_count; i++) {
		struct unwind_copy *copy = u->copies[i];

		if (err || is_kept(copy, context)) {
			u->copies[kept++] = copy;
			continue;
		}
		err = walk_copy(u, copy);
		u->copies_bytes -= copy->size;
		free(copy);
	}
	u->copy_count = kept;
	return err;
}

static bool is_later(const struct unwind_copy *copy, void *until_ns)
{
	return copy->time_ns >= *(uint64_t *)until_ns;
}

int unwind_update(struct unwind *u, uint64_t until_ns)
{
	int err = ring_buffer__consume(u->ring);

	err = err < 0 ? err : 0;
	for (size_t i = 0; i < u->copy_count && !err; i++)
		if (u->copies[i]->time_ns < until_ns)
			err = update_exec(u, u->copies[i]);
	err = err ?: unwind_balance(u);
	err = err ?: add_images(u, until_ns);
	err = err ?: publish_changed(u);
	*u->is_reading_rows = 0;
	err = err ?: unwind_walk_copies(u, is_later, &until_ns);
	return err ?: withdraw_ended(u);
}

/* --- The exec numbers of processes --- */

static int take_exec_numbers(struct unwind *u)
{
	struct unwind_exec_number numbers[256];
	int fd = bpf_iter_create(u->iterator);
	ssize_t size;

	if (fd < 0)
		return -errno;
	while ((size = read(fd, numbers, sizeof(numbers))) > 0 || (size < 0 && errno == EAGAIN))
		for (ssize_t i = 0; i < size / (ssize_t)sizeof(*numbers); i++) {
			struct process *process = process_find(u->processes, numbers[i].tgid);

			if (process)
				process_space(process)->exec = numbers[i].exec;
		}
	close(fd);
	return size < 0 ? -errno : 0;
}

int unwind_begin(struct unwind *u, const struct sample_bpf *bpf, struct error *e)
{
	int err = unwind_tables_map(&u->tables, bpf);

	if (err)
		return program_out_of(e, -err, "cannot map the tables for call stacks");
	u->ring = ring_buffer__new(bpf_map__fd(bpf->maps.unwind_copies), take_copy, u, NULL);
	if (!u->ring)
		return program_out_of(e, errno, "cannot map the copies of stacks");
	u->iterator = bpf_link_create(bpf_program__fd(bpf->progs.list_exec_numbers), 0,
				      BPF_TRACE_ITER, NULL);
	if (u->iterator < 0) {
		u->iterator = 0;
		return error_set_kind(e, ERROR_KERNEL_LACKS, errno, "cannot list all processes");
	}
	u->is_reading_rows = &bpf->bss->is_reading_rows;
	err = take_exec_numbers(u);
	if (err)
		return error_set(e, -err, "cannot list all processes");
	for (size_t i = 0; i < u->image_count && !err; i++)
		err = unwind_add_image(u, i, 0);
	for (size_t i = 0; i < u->processes->count && !err; i++)
		err = process_note_change(u->processes, &u->processes->processes[i]);
	err = err ?: publish_changed(u);
	return err ? error_no_memory(e) : 0;
}

int unwind_fd(const struct unwind *u)
{
	return ring_buffer__epoll_fd(u->ring);
}

void unwind_used(const struct unwind *u, struct capture_tables *tables)
{
	struct unwind_sizes sizes = u->tables.used, free;

	*tables = (struct capture_tables){ .room_bytes = unwind_tables_bytes(&u->tables.room) };
	for (uint32_t i = 1; i < sizes.images; i++) /* without UNWIND_NO_IMAGE */
		tables->images += unwind_tables_has_rows(&u->tables, i);
	for (size_t i = 0; i < u->image_count; i++) {
		const char *why;

		tables->no_room += unwind_rows_state(u, i, &why) == CAPTURE_ROWS_NO_ROOM;
	}
	unwind_tables_free_sizes(&u->tables, &free);
	sizes.pages = u->tables.room.pages - free.pages;
	sizes.rules = u->tables.room.rules - free.rules;
	sizes.rows = tables->rows = u->tables.room.rows - free.rows;
	tables->bytes = unwind_tables_bytes(&sizes);
}

void unwind_free(struct unwind *u)
{
	for (size_t i = 0; i < u->image_count; i++)
		unwind_rows_free(&u->images[i].rows);
	for (size_t i = 0; i < u->state_count; i++)
		free(u->states[i].space.mappings);
	for (size_t i = 0; i < u->copy_count; i++)
		free(u->copies[i]);
	free(u->past.space.mappings);
	free(u->copies);
	free(u->published);
	index_free(&u->builds);
	free(u->idle);
	free(u->wanted);
	free(u->demands);
	free(u->images);
	free(u->states);
	ring_buffer__free(u->ring);
	if (u->iterator > 0)
		close(u->iterator);
	unwind_tables_free(&u->tables);
	*u = (struct unwind){ 0 };
}
