// SPDX-License-Identifier: GPL-2.0-only
#include "capture/wall.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/members.h"
#include "capture/program.h"
#include "util/array.h"
#include "util/clock.h"
#include "wall.skel.h"
#include "util/order.h"

_Static_assert(WALL_COMM_SIZE == COMM_SIZE, "names have no room");

/* --- Threads --- */

/*
 * Whether `thread` is the one that was `before`. Another thread that gets the address of its task
 * begins later. After an exec, a thread may have the number and the earlier start of the leader.
 */
EQUAL(is_before, struct wall_thread, struct wall_thread, SAME(task) && b->start_ns <= a->start_ns)

static struct wall_thread *find_thread(const struct wall_threads *threads,
				       const struct wall_thread *thread)
{
	uint32_t number = index_find(&threads->index, hash_u64(thread->task, 0), is_before,
				     threads->list, thread);

	return number == INDEX_NONE ? NULL : &threads->list[number];
}

static int add_thread(struct wall_threads *threads, const struct wall_thread *thread)
{
	return array_add_indexed(threads->list, threads->count, threads->room, &threads->index,
				 hash_u64(thread->task, 0), *thread);
}

static void clear_threads(struct wall_threads *threads)
{
	free(threads->list);
	index_free(&threads->index);
	*threads = (struct wall_threads){ 0 };
}

/* --- The programs --- */

static int take_exit(void *context, void *data, size_t size)
{
	struct wall *wall = context;

	return size < sizeof(struct wall_thread) ? 0 : add_thread(&wall->ended, data);
}

/* Arguments of load_wall(), for program_load(). */
struct loading {
	struct wall *wall;
	const struct wall_settings *settings;
};

static int load_wall(void *object)
{
	const struct loading *loading = object;
	const struct wall_settings *settings = loading->settings;
	LIBBPF_OPTS(bpf_object_open_opts, options,
		    .btf_custom_path = kernel_types_used(settings->types));
	struct wall_bpf *bpf = wall_bpf__open_opts(&options);
	int err = 0;

	if (!bpf)
		return -errno;
	bpf->rodata->everyone = settings->everyone;
	bpf->rodata->one_thread = settings->one_thread;
	bpf->rodata->pid_namespace = members_pid_namespace();
	bpf->rodata->by_user = settings->whom.by_user;
	bpf->rodata->whom_uid = settings->whom.uid;
	bpf->rodata->by_group = settings->whom.group_count;
	bpf->rodata->groups_are_v1 = settings->whom.group_count && settings->whom.groups->is_v1;
	/* A kernel without control groups has no such tracepoints. */
	if (access("/proc/self/cgroup", F_OK)) {
		bpf_program__set_autoload(bpf->progs.note_new_group, false);
		bpf_program__set_autoload(bpf->progs.note_entered_group, false);
	}
	bpf_map__set_autocreate(bpf->maps.members, !settings->everyone);
	if (!settings->everyone)
		err = bpf_map__reuse_fd(bpf->maps.members, bpf_map__fd(bpf_object__find_map_by_name(
								   settings->members, "members")));
	err = err ?: whom_choose_map(&settings->whom, bpf->maps.whom_groups);
	err = err ?: wall_bpf__load(bpf);
	err = err ?: whom_fill_map(&settings->whom, bpf->maps.whom_groups);
	if (err)
		wall_bpf__destroy(bpf);
	else
		loading->wall->bpf = bpf;
	return err;
}

/* Names what the kernel lacks, if it is known, as the cause why the programs cannot be loaded. */
static void explain_lack(struct kernel_types *types, struct error *e)
{
	static const struct {
		const char *type, *member, *option;
	} needed[] = {
		{ "sched_info", "run_delay", "CONFIG_SCHED_INFO" },
		{ "sched_entity", "cfs_rq", "CONFIG_FAIR_GROUP_SCHED" },
	};
	uint32_t offset;

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		if (kernel_member_offset(types, needed[i].type, needed[i].member, &offset) == 0 ||
		    !types->btf)
			continue;
		error_set_kind(e, ERROR_KERNEL_LACKS, ENOTSUP,
			       "this kernel keeps no account of wall time: it was built without %s",
			       needed[i].option);
		error_hint(e, "record without --wall, or use a kernel with %s", needed[i].option);
		break;
	}
}

int wall_open(struct wall *wall, const struct wall_settings *settings, struct error *e)
{
	struct loading loading = { wall, settings };
	int err = program_load(load_wall, &loading, e);

	if (err) {
		if (e->kind == ERROR_KERNEL_LACKS)
			explain_lack(settings->types, e);
		return err;
	}
	wall->ring =
		ring_buffer__new(bpf_map__fd(wall->bpf->maps.wall_exits), take_exit, wall, NULL);
	return wall->ring ? 0 : error_set(e, errno, "cannot map the ends of threads");
}

int wall_fd(const struct wall *wall)
{
	return ring_buffer__epoll_fd(wall->ring);
}

/* --- The scheduler's clock --- */

/* Bound: pace. */
#define CLOCK_TRIES 8

/*
 * Measures the distance of the scheduler's clock from CLOCK_MONOTONIC, which changes slowly. The
 * kernel updates its CPU's clock when a thread reads its own CPU time. Of several readings the one
 * with the least distance is the best: the others were interrupted, and the clock updated again.
 */
static int measure_clock(struct wall *wall, struct error *e)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct wall_shared *shared = &wall->bpf->data_shared->shared;
	int64_t offset = INT64_MAX;

	for (int i = 0; i < CLOCK_TRIES || (offset == INT64_MAX && i < 100 * CLOCK_TRIES); i++) {
		int cpu = sched_getcpu(), err;
		uint64_t before = now_ns();
		int64_t distance;

		clock_ns(CLOCK_THREAD_CPUTIME_ID);
		err = bpf_prog_test_run_opts(bpf_program__fd(wall->bpf->progs.read_clock),
					     &options);
		if (err)
			return error_set(e, -err, "cannot read the scheduler's clock");
		distance = shared->cpu_clock - before;
		if (shared->cpu == (unsigned int)cpu && distance < offset)
			offset = distance;
	}
	if (offset == INT64_MAX)
		return error_set(e, EAGAIN,
				 "cannot read the scheduler's clock: this thread does "
				 "not stay on a CPU");
	shared->clock_offset = offset;
	wall->next_clock_ns = now_ns() + NS_PER_S;
	return 0;
}

int64_t wall_clock_offset(const struct wall *wall)
{
	return wall->bpf->data_shared->shared.clock_offset;
}

/* --- Looks --- */

/* Asks the kernel about all threads. */
static int look_at_threads(struct wall *wall, struct wall_threads *threads, struct error *e)
{
	struct wall_thread buffer[256];
	size_t size = 0; /* of what is in the buffer */
	int fd, err = measure_clock(wall, e);
	ssize_t n = 0;

	if (err)
		return err;
	wall->bpf->data_shared->shared.look++;
	wall->bpf->data_shared->shared.last_group = 0;
	fd = bpf_iter_create(wall->look);
	if (fd < 0)
		return error_set(e, errno, "cannot list the threads");
	do {
		n = read(fd, (char *)buffer + size, sizeof(buffer) - size);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			err = error_set(e, errno, "cannot read the threads' times");
		if (n <= 0)
			continue;
		size += n;
		for (size_t i = 0; i < size / sizeof(*buffer) && !err; i++)
			if (add_thread(threads, &buffer[i]))
				err = error_no_memory(e);
		memmove(buffer, buffer + size / sizeof(*buffer), size % sizeof(*buffer));
		size %= sizeof(*buffer);
	} while (n && !err);
	close(fd);
	return err;
}

/* --- Quotas --- */

ORDER(compare_quotas, struct wall_quota, LEAST(id))

static const struct wall_group *find_quota(const struct wall_quotas *quotas, uint64_t id)
{
	const struct wall_quota key = { .id = id }, *found = NULL;

	if (quotas->count)
		found = bsearch(&key, quotas->list, quotas->count, sizeof(key), compare_quotas);
	return found ? &found->group : NULL;
}

/*
 * Reads what the programs have noted of control groups, after the threads were read. Removes from
 * the map those that none of them is in: no thread of the target is left there.
 */
static int read_quotas(struct wall *wall, struct error *e)
{
	const struct wall_shared *shared = &wall->bpf->data_shared->shared;
	struct wall_quotas *quotas = &wall->quotas;
	int map = bpf_map__fd(wall->bpf->maps.wall_groups);
	struct wall_quota quota;
	const void *before = NULL;

	quotas->count = 0;
	for (; bpf_map_get_next_key(map, before, &quota.id) == 0;
	     before = &quotas->list[quotas->count - 1].id) {
		if (bpf_map_lookup_elem(map, &quota.id, &quota.group))
			return error_set(e, errno, "cannot read the quotas of control groups");
		if (array_add(quotas->list, quotas->count, quotas->room, quota))
			return error_no_memory(e);
	}
	for (size_t i = 0; i < quotas->count; i++)
		if (quotas->list[i].group.look != shared->look)
			bpf_map_delete_elem(map, &quotas->list[i].id);
	if (quotas->count)
		qsort(quotas->list, quotas->count, sizeof(quota), compare_quotas);
	return 0;
}

/* Its path, from the names of the groups above it. Returns NULL if memory ran out. */
static char *quota_path(const struct wall_quotas *quotas, const struct wall_group *group)
{
	char path[WALL_GROUP_LEVELS * WALL_GROUP_NAME_SIZE + 1], *begin = path + sizeof(path) - 1;

	*begin = '\0';
	for (int level = 0; group && level < WALL_GROUP_LEVELS; level++) {
		size_t size = strnlen(group->name, sizeof(group->name) - 1);

		begin -= size + 1;
		*begin = '/';
		memcpy(begin + 1, group->name, size);
		group = group->parent ? find_quota(quotas, group->parent) : NULL;
	}
	return strdup(begin);
}

static void clear_throttled(struct wall *wall)
{
	for (size_t i = 0; i < wall->throttled_count; i++)
		free(wall->throttled[i].cgroup);
	wall->throttled_count = 0;
}

/*
 * What quotas did in the window. Of a group in which the target had no thread when it began, that
 * begins when the group was made, or a thread entered it.
 */
static int cut_quotas(struct wall *wall)
{
	const struct wall_quotas *quotas = &wall->quotas;
	struct wall_quotas last = wall->last_quotas;

	clear_throttled(wall);
	for (size_t i = 0; i < quotas->count; i++) {
		const struct wall_group *group = &quotas->list[i].group;
		const struct wall_group *seen = find_quota(&last, quotas->list[i].id);
		const struct wall_throttled *now = &group->last,
					    *before = seen ? &seen->last : &group->first;
		struct capture_throttled *row;

		if (!*group->name ||
		    (now->ns == before->ns && now->throttled_periods == before->throttled_periods))
			continue;
		if (array_reserve(&wall->throttled, &wall->throttled_room,
				  wall->throttled_count + 1, sizeof(*row)))
			return -ENOMEM;
		row = &wall->throttled[wall->throttled_count];
		*row = (struct capture_throttled){
			.cgroup = quota_path(quotas, group),
			.quota_ns = group->quota_ns == WALL_NO_QUOTA ? 0 : group->quota_ns,
			.every_ns = group->every_ns,
			.periods = now->periods - before->periods,
			.throttled_periods = now->throttled_periods - before->throttled_periods,
			.throttled_ns = now->ns - before->ns,
		};
		if (!row->cgroup)
			return -ENOMEM;
		wall->throttled_count++;
	}
	wall->last_quotas = wall->quotas;
	wall->quotas = last; /* its memory is used again */
	return 0;
}

int wall_begin(struct wall *wall, struct error *e)
{
	struct wall_threads ended;
	uint64_t begin_ns = now_ns();
	int fd, err = measure_clock(wall, e);

	if (err)
		return err;
	fd = program_attach(wall->bpf->progs.send_exit);
	if (fd < 0)
		return error_set_kind(e, ERROR_KERNEL_LACKS, -fd,
				      "cannot follow the ends of threads (%s)",
				      bpf_program__section_name(wall->bpf->progs.send_exit));
	wall->exits = fd;
	for (size_t i = 0; i < WALL_GROUP_PROGRAMS; i++) {
		const struct bpf_program *program =
			i ? wall->bpf->progs.note_new_group : wall->bpf->progs.note_entered_group;

		fd = bpf_program__autoload(program) ? program_attach(program) : 0;
		if (fd < 0)
			return error_set_kind(e, ERROR_KERNEL_LACKS, -fd,
					      "cannot follow control groups (%s)",
					      bpf_program__section_name(program));
		wall->group_fds[i] = fd;
	}
	fd = bpf_link_create(bpf_program__fd(wall->bpf->progs.read_threads), 0, BPF_TRACE_ITER,
			     NULL);
	if (fd < 0)
		return error_set_kind(e, ERROR_KERNEL_LACKS, errno, "cannot list the threads");
	wall->look = fd;
	err = look_at_threads(wall, &wall->last, e) ?: wall_handle(wall, e);
	err = err ?: read_quotas(wall, e);
	if (err)
		return err;
	wall->last_quotas = wall->quotas;
	wall->quotas = (struct wall_quotas){ 0 };
	/* Threads that ended before the look came to them are not in the account. */
	ended = wall->ended;
	wall->ended = (struct wall_threads){ 0 };
	for (size_t i = 0; i < ended.count && !err; i++)
		if (find_thread(&wall->last, &ended.list[i]) || ended.list[i].start_ns > begin_ns)
			err = add_thread(&wall->ended, &ended.list[i]);
	clear_threads(&ended);
	wall->begin_ns = begin_ns;
	wall->begin_offset = wall->bpf->data_shared->shared.clock_offset;
	return err ? error_no_memory(e) : 0;
}

int wall_handle(struct wall *wall, struct error *e)
{
	/* Threads that end use it: it drifts by 0.5 ms a second at most, and mostly by far less. */
	int err = now_ns() < wall->next_clock_ns ? 0 : measure_clock(wall, e);

	if (err)
		return err;
	err = ring_buffer__consume(wall->ring);
	return err < 0 ? error_set(e, -err, "cannot read the ends of threads") : 0;
}

/* --- Windows --- */

/* In wall_thread.flags, of `last`: the thread has a row of the window. */
#define HAS_ROW (1U << 31)

/* Whom the thread belongs to, as capture_sample has it. */
static int name_row(struct wall *wall, struct process_table *table,
		    const struct wall_thread *thread, struct capture_wall *row)
{
	uint64_t time_ns = thread->now_ns - wall->bpf->data_shared->shared.clock_offset;
	const struct process *process = process_at(table, thread->pid, time_ns);

	row->pid = thread->pid;
	row->tid = thread->tid;
	row->uid = table->of_user ? table->uid : UINT32_MAX;
	memcpy(row->comm, thread->comm, sizeof(row->comm));
	memcpy(row->process_comm, thread->process_comm, sizeof(row->process_comm));
	if (!process)
		return 0;
	row->generation = process->generation;
	row->is_older = process->begin_ns <= wall->begin_ns;
	row->uid = table->of_user ? table->uid : process->uid;
	if (process->title)
		snprintf(row->title, sizeof(row->title), "%s", process->title);
	if (process->group == INDEX_NONE)
		return 0;
	if (!wall->groups[process->group])
		wall->groups[process->group] = strdup(table->groups[process->group]);
	row->cgroup = wall->groups[process->group];
	return row->cgroup ? 0 : -ENOMEM;
}

/* When the thread began, by the scheduler's clock. */
static uint64_t born_ns(const struct wall *wall, const struct wall_thread *thread, uint64_t now)
{
	int64_t drift = wall->bpf->data_shared->shared.clock_offset - wall->begin_offset;
	double part = (double)(thread->start_ns - wall->begin_ns) / (double)(now - wall->begin_ns);

	return thread->start_ns + wall->begin_offset + (int64_t)((double)drift * part);
}

/*
 * When a thread that was no leader called exec, if it was born in the window: exec has given it the
 * leader's number and start, and its own are gone. The leader had ended just before. 0: unknown.
 */
static uint64_t exec_ns(const struct wall *wall, const struct wall_thread *thread)
{
	for (size_t i = wall->ended.count; i-- > 0;) {
		const struct wall_thread *leader = &wall->ended.list[i];

		if (leader->tid == thread->tid && leader->start_ns == thread->start_ns &&
		    leader->task != thread->task)
			return leader->now_ns;
	}
	return 0;
}

/* By how much the readings of several clocks may differ. Bound: pace. */
#define CLOCKS_NS 10000

/*
 * Adds a row: from `before`, or the thread's start, to `after`. `is_lost`: it ended at some time
 * between them, which is all that is known.
 */
static int add_row(struct wall *wall, struct process_table *table, struct wall_thread *before,
		   struct wall_thread *after, bool is_lost)
{
	uint64_t now = now_ns(), since_ns;
	struct capture_wall *row;
	bool may_have_blocked;
	int64_t rest;

	if (before)
		before->flags |= HAS_ROW;
	if (after->flags & WALL_OUTSIDE)
		return 0;
	if (array_add(wall->rows, wall->row_count, wall->row_room, (struct capture_wall){ 0 }))
		return -ENOMEM;
	row = &wall->rows[wall->row_count - 1];
	if (before)
		since_ns = before->now_ns;
	else if (after->start_ns < wall->begin_ns)
		since_ns = exec_ns(wall, after);
	else
		since_ns = born_ns(wall, after, now);
	is_lost |= !since_ns;
	if (!since_ns)
		since_ns = wall->begin_ns + wall->begin_offset;
	row->wall_ns = after->now_ns > since_ns ? after->now_ns - since_ns : 0;
	if (is_lost) {
		row->unknown_ns = row->wall_ns;
		return name_row(wall, table, after, row);
	}
	/*
	 * What was added for a thread that ran or waited at the last look may be more, by a
	 * microsecond or what the host took just then, than what the kernel has added up since.
	 *
	 * CPU time is without what interrupts and the host of a virtual machine took meanwhile, as
	 * far as the kernel accounts for these, and that time is not kept for each thread. But of a
	 * thread that did not block it is known not to be blocked.
	 */
	if (before && after->ran_ns < before->ran_ns)
		after->ran_ns = before->ran_ns;
	if (before && after->waited_ns < before->waited_ns)
		after->waited_ns = before->waited_ns;
	may_have_blocked = !before || before->blocks != after->blocks ||
			   before->state == WALL_BLOCKED || after->state == WALL_BLOCKED;
	row->on_cpu_ns = after->ran_ns - (before ? before->ran_ns : 0);
	row->runnable_ns = after->waited_ns - (before ? before->waited_ns : 0);
	rest = row->wall_ns - row->on_cpu_ns - row->runnable_ns;
	if (rest < CLOCKS_NS && (rest < 0 || !may_have_blocked))
		row->wall_ns = row->on_cpu_ns + row->runnable_ns;
	else if (may_have_blocked)
		row->blocked_ns = rest;
	else
		row->unknown_ns = rest;
	return name_row(wall, table, after, row);
}

static void clear_rows(struct wall *wall)
{
	array_free_texts(wall->groups, wall->group_count);
	wall->groups = NULL;
	array_trim(&wall->rows, &wall->row_room, wall->row_count, sizeof(*wall->rows));
	wall->group_count = wall->row_count = 0;
}

int wall_look(struct wall *wall, struct error *e)
{
	/* No later than the look: who is not found in it was born since then. */
	wall->look_ns = now_ns();
	return look_at_threads(wall, &wall->now, e) ?: wall_handle(wall, e) ?: read_quotas(wall, e);
}

int wall_cut(struct wall *wall, struct process_table *table, struct error *e)
{
	const struct wall_shared *shared = &wall->bpf->data_shared->shared;
	struct wall_threads *threads = &wall->now;
	uint64_t lost = shared->exits_lost;
	int err = 0;

	clear_rows(wall);
	wall->groups = calloc(table->group_count + 1, sizeof(*wall->groups));
	if (!err && !wall->groups)
		err = error_no_memory(e);
	wall->group_count = table->group_count;
	for (size_t i = 0; i < wall->ended.count && !err; i++) {
		struct wall_thread *thread = &wall->ended.list[i];

		if (add_row(wall, table, find_thread(&wall->last, thread), thread, false))
			err = error_no_memory(e);
	}
	for (size_t i = 0; i < threads->count && !err; i++) {
		struct wall_thread *thread = &threads->list[i];
		struct wall_thread *before = find_thread(&wall->last, thread);

		/* It has sent its last values, but the kernel has not released it. */
		if ((before && before->flags & WALL_EXITED) || find_thread(&wall->ended, thread)) {
			thread->flags |= WALL_EXITED;
			if (before)
				before->flags |= HAS_ROW;
		} else if (add_row(wall, table, before, thread, false)) {
			err = error_no_memory(e);
		}
	}
	for (size_t i = 0; i < wall->last.count && !err; i++) {
		struct wall_thread *thread = &wall->last.list[i], end = *thread;

		/* One that was exiting already may have done so before the account began. */
		if (thread->flags & (HAS_ROW | WALL_EXITED | WALL_EXITING))
			continue;
		end.now_ns = wall->look_ns + shared->clock_offset;
		if (add_row(wall, table, thread, &end, true))
			err = error_no_memory(e);
	}
	if (!err && cut_quotas(wall))
		err = error_no_memory(e);
	wall->exits_lost = lost - wall->exits_lost_before;
	wall->exits_lost_before = lost;
	lost = shared->groups_lost;
	wall->quotas_lost = lost - wall->quotas_lost_before;
	wall->quotas_lost_before = lost;
	clear_threads(&wall->last);
	clear_threads(&wall->ended);
	wall->last = wall->now;
	wall->now = (struct wall_threads){ 0 };
	wall->begin_ns = wall->look_ns;
	wall->begin_offset = shared->clock_offset;
	return err;
}

void wall_free(struct wall *wall)
{
	ring_buffer__free(wall->ring);
	if (wall->look)
		close(wall->look);
	if (wall->exits)
		close(wall->exits);
	for (size_t i = 0; i < WALL_GROUP_PROGRAMS; i++)
		if (wall->group_fds[i])
			close(wall->group_fds[i]);
	wall_bpf__destroy(wall->bpf);
	clear_threads(&wall->last);
	clear_threads(&wall->now);
	clear_threads(&wall->ended);
	clear_rows(wall);
	free(wall->rows);
	clear_throttled(wall);
	free(wall->throttled);
	free(wall->last_quotas.list);
	free(wall->quotas.list);
	*wall = (struct wall){ 0 };
}
