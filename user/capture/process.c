// SPDX-License-Identifier: GPL-2.0-only
#include "capture/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/sample.h"
#include "capture/image.h"
#include "capture/jit_file.h"
#include "capture/origin.h"
#include "capture/otel_process.h"
#include "util/array.h"
#include "util/file.h"
#include "util/proc.h"

void process_table_free(struct process_table *table)
{
	opener_end(&table->opener);
	for (size_t i = 0; i < table->count; i++) {
		process_remove_spaces(table, &table->processes[i], table->processes[i].count);
		free(table->processes[i].spaces);
		free(table->processes[i].title);
		otel_free(&table->processes[i]);
	}
	for (size_t i = 0; i < table->image_count; i++) {
		free(table->images[i].path);
		free(table->images[i].why);
		file_close(table->images[i].fd);
	}
	for (size_t i = 0; i < table->root_count; i++)
		close(table->roots[i].fd);
	array_free_texts(table->groups, table->group_count);
	free(table->roots);
	free(table->processes);
	free(table->threads);
	free(table->images);
	free(table->changed);
	index_free(&table->by_pid);
	index_free(&table->by_tid);
	index_free(&table->by_path);
	index_free(&table->by_group);
}

static uint64_t hash_number(pid_t number)
{
	return hash_u64(number, 0);
}

EQUAL(pid_equal, struct process, pid_t, a->pid == *b)

struct process *process_at(const struct process_table *table, pid_t pid, uint64_t time_ns)
{
	uint32_t id =
		index_find(&table->by_pid, hash_number(pid), pid_equal, table->processes, &pid);
	uint32_t next;

	if (id == INDEX_NONE)
		return NULL;
	for (; (next = table->processes[id].next_with_pid) != INDEX_NONE; id = next)
		if (table->processes[next].begin_ns > time_ns)
			break;
	return &table->processes[id];
}

uint64_t process_until(const struct process_table *table, const struct process *process)
{
	return process->next_with_pid == INDEX_NONE
		       ? UINT64_MAX
		       : table->processes[process->next_with_pid].begin_ns;
}

bool process_has_threads(pid_t pid)
{
	struct stat status;

	return stat(proc_path(pid, 0, "task").text, &status) == 0 &&
	       status.st_nlink > 3; /* ".", "..", and the leader */
}

bool process_is_gone(const struct process *process)
{
	if (process->next_with_pid != INDEX_NONE)
		return true;
	if (process->ended)
		return !process_has_threads(process->pid);
	return kill(process->pid, 0) && errno == ESRCH;
}

struct process *process_find(const struct process_table *table, pid_t pid)
{
	return process_at(table, pid, UINT64_MAX);
}

int process_note_change(struct process_table *table, struct process *process)
{
	if (!table->notes_changes || process->changed)
		return 0;
	if (array_add(table->changed, table->changed_count, table->changed_room,
		      process - table->processes))
		return -ENOMEM;
	process->changed = true;
	return 0;
}

int process_add_space(struct process *process, uint64_t since_ns)
{
	uint32_t exec = process->count ? process_space(process)->exec : EXEC_UNKNOWN;
	struct address_space *space;

	if (exec != EXEC_UNKNOWN)
		exec = (exec + 1) % (1 << SAMPLE_EXEC_BITS);
	if (array_reserve(&process->spaces, &process->room, process->count + 1,
			  sizeof(*process->spaces)))
		return -ENOMEM;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->references = 1;
	space->since_ns = space->sure_ns = since_ns;
	space->exec = exec;
	process->spaces[process->count++] = space;
	return 0;
}

void space_put(struct process_table *table, struct address_space *space)
{
	while (space && --space->references == 0) {
		struct address_space *parent = space->parent;

		table->mapping_count -= space->count;
		free(space->mappings);
		free(space);
		space = parent;
	}
}

void process_remove_spaces(struct process_table *table, struct process *process, size_t count)
{
	for (size_t i = 0; i < count; i++)
		space_put(table, process->spaces[i]);
	process->count -= count;
	if (process->count && count)
		memmove(process->spaces, process->spaces + count,
			process->count * sizeof(*process->spaces));
}

int process_add(struct process_table *table, pid_t pid, uint64_t time_ns)
{
	struct process *process, *older;
	size_t number = table->next_process;

	while (number < table->count && table->processes[number].count)
		number++;
	if (array_reserve(&table->processes, &table->room, number + 1, sizeof(*process)))
		return -ENOMEM;
	process = &table->processes[number];
	*process = (struct process){
		.pid = pid,
		.next_with_pid = INDEX_NONE,
		.begin_ns = time_ns,
		.group = INDEX_NONE,
		.uid = UINT32_MAX,
	};
	process->jit = (struct jit){
		.image = INDEX_NONE,
		.dump = INDEX_NONE,
		.pid = pid,
		.uid = geteuid(),
	};
	table->next_process = number + 1;
	table->added++;
	if (number == table->count)
		table->count++;
	if (process_add_space(process, time_ns))
		return -ENOMEM;
	older = process_find(table, pid);
	if (!older)
		return index_add(&table->by_pid, hash_number(pid), number);
	process->generation = older->generation + 1;
	older->next_with_pid = number;
	return 0;
}

void process_remove(struct process_table *table, struct process *process)
{
	uint32_t number = process - table->processes, older;
	uint64_t hash = hash_number(process->pid);

	older = index_find(&table->by_pid, hash, pid_equal, table->processes, &process->pid);
	if (older == number) {
		index_remove(&table->by_pid, hash, number);
		if (process->next_with_pid != INDEX_NONE) /* this needs no memory */
			index_add(&table->by_pid, hash, process->next_with_pid);
	} else {
		while (table->processes[older].next_with_pid != number)
			older = table->processes[older].next_with_pid;
		table->processes[older].next_with_pid = process->next_with_pid;
	}
	process_remove_spaces(table, process, process->count);
	free(process->spaces);
	free(process->title);
	otel_free(process);
	*process = (struct process){
		.ended = true,
		.next_with_pid = INDEX_NONE,
		.group = INDEX_NONE,
		.jit = { .image = INDEX_NONE, .dump = INDEX_NONE },
	};
	table->next_process = MIN(table->next_process, number);
}

struct address_space *process_space(struct process *process)
{
	return process->spaces[process->count - 1];
}

struct address_space *process_space_at(struct process *process, uint64_t time_ns)
{
	size_t i = process->count - 1;

	while (i > 0 && process->spaces[i]->since_ns > time_ns)
		i--;
	return process->spaces[i];
}

struct mapping_answer space_mapping_at(const struct address_space *space, uint64_t pc,
				       uint64_t time_ns)
{
	struct mapping_answer answer = { .until_ns = UINT64_MAX };
	struct space_walk walk = { space, space->count };
	const struct capture_mapping *mapping;

	while ((mapping = space_next(&walk))) {
		if (pc < mapping->start || pc >= mapping->limit)
			continue;
		answer.mapping = mapping;
		if (mapping->time_ns <= time_ns) {
			answer.since_ns = MAX(answer.since_ns, mapping->time_ns);
			break;
		}
		/* Newer ones limit the time. From maybe_ns on this may have been the mapping. */
		answer.until_ns = mapping->time_ns;
		if (mapping->maybe_ns > time_ns) {
			answer.until_ns = mapping->maybe_ns;
		} else if (mapping->maybe_ns < mapping->time_ns) {
			answer.in_doubt = true;
			answer.since_ns = MAX(answer.since_ns, mapping->maybe_ns);
		}
	}
	return answer;
}

bool space_is_contested(const struct address_space *space, uint64_t pc, uint32_t image)
{
	struct space_walk walk = { space, space->count };
	const struct capture_mapping *mapping;

	while ((mapping = space_next(&walk)))
		if (pc >= mapping->start && pc < mapping->limit && mapping->image != image)
			return true;
	return false;
}

struct gap_answer process_gaps_at(const struct process_table *table, struct process *process,
				  uint64_t time_ns)
{
	uint64_t began_ns = process ? process_space_at(process, time_ns)->since_ns : 0;
	uint64_t shown_ns = process ? process->shown_ns : 0;
	uint64_t since_ns = MAX(began_ns, shown_ns);
	const uint64_t limits[] = { began_ns, shown_ns };
	struct gap_answer answer = { .until_ns = UINT64_MAX };

	for (size_t i = 0; i < table->gap_count; i++) {
		const struct gap *gap = &table->gaps[i];

		if (time_ns < gap->from_ns) {
			/* Of a program that is known only from later on */
			answer.doubtful |= time_ns < began_ns && gap->from_ns < began_ns;
			answer.until_ns = MIN(answer.until_ns, gap->from_ns);
			continue;
		}
		if (time_ns < gap->to_ns) {
			answer.in_gap = true;
			answer.until_ns = MIN(answer.until_ns, gap->to_ns);
		}
		answer.doubtful |= time_ns < began_ns
					   ? time_ns < gap->to_ns
					   : time_ns >= shown_ns && gap->to_ns > since_ns;
	}
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (time_ns < limits[i] && limits[i] < answer.until_ns)
			answer.until_ns = limits[i];
	return answer;
}

/* Whether it is memory without a file: offsets mean nothing, adjacent mappings are joined. */
static bool is_anonymous(const struct process *process, uint32_t image)
{
	return image == process->jit.image;
}

/*
 * Whether the newest mapping at this address already covers this one, or could be extended to do
 * so: a JIT compiler often maps new memory next to the old. Then there is nothing to add.
 */
static bool is_known(struct process *process, const struct capture_mapping *mapping)
{
	struct address_space *space = process_space(process);
	const struct capture_mapping *there =
		space_mapping_at(space, mapping->start, UINT64_MAX).mapping;
	struct capture_mapping *last = space->count ? &space->mappings[space->count - 1] : NULL;

	if (there && there->limit >= mapping->limit && there->image == mapping->image &&
	    there->offset - there->start == mapping->offset - mapping->start)
		return true;
	if (!last || last->image != mapping->image || !is_anonymous(process, mapping->image) ||
	    mapping->start > last->limit || mapping->limit < last->start)
		return false;
	last->start = MIN(last->start, mapping->start);
	last->limit = MAX(last->limit, mapping->limit);
	last->offset = last->start;
	return true;
}

uid_t process_user(const struct process *process)
{
	return process->uid == UINT32_MAX || process->uid == geteuid() ? 0 : process->uid;
}

size_t process_users_bytes(const struct process_table *table)
{
	size_t bytes = 0;

	for (size_t i = 0; i < table->count; i++)
		for (size_t k = 0;
		     process_user(&table->processes[i]) && k < table->processes[i].count; k++)
			bytes += table->processes[i].spaces[k]->bytes;
	for (size_t i = 0; i < table->image_count; i++)
		if (table->images[i].path && table->images[i].copied)
			bytes += table->images[i].size;
	return bytes;
}

size_t process_budget(const struct process_table *table)
{
	size_t used = table->mapping_count * sizeof(struct capture_mapping) + table->image_bytes +
		      table->copied_bytes;
	size_t share;

	if (!table->bytes_max)
		return SPACE_BYTES_MAX;
	share = used < table->bytes_max ? (table->bytes_max - used) / SPACE_SHARE : 0;
	return MIN(share, SPACE_BYTES_MAX);
}

bool process_is_crowded(const struct process_table *table, struct process *process)
{
	return process_space(process)->bytes >= process_budget(table);
}

void process_note_crowded(struct process_table *table, const struct process *process,
			  struct address_space *space)
{
	space->crowded = table->lacks_room = true;
	table->crowded = table->crowded ?: process->pid;
}

int process_map(struct process_table *table, struct process *process,
		const struct sideband_record *record)
{
	struct address_space *space = process_space(process);
	bool of_file = !jit_is_memory(record->name);
	struct capture_mapping mapping = {
		.start = record->start,
		.limit = record->limit,
		.offset = record->offset,
		.time_ns = record->time_ns,
		.maybe_ns = record->maybe_ns ?: record->time_ns,
		/* The kernel maps the program before its interpreter and libraries. */
		.executable = space->count == 0 && !space->parent,
	};

	if (process_is_crowded(table, process)) {
		process_note_crowded(table, process, space);
		return 0;
	}
	if (of_file && image_of_mapping(table, process, record, &mapping.image))
		return -ENOMEM;
	if (of_file && !image_is_plain_memory(&table->images[mapping.image]))
		jit_note_file(table, process, record, mapping.image);
	else if (jit_image(table, process, record, &mapping.image))
		return -ENOMEM;
	/* Address as offset: then adjacent anonymous mappings can be joined. */
	if (is_anonymous(process, mapping.image))
		mapping.offset = mapping.start;
	else if (table->images[mapping.image].path[0] == '[')
		mapping.offset = 0;
	if (is_known(process, &mapping))
		return is_anonymous(process, mapping.image) ? process_note_change(table, process)
							    : 0;
	if (array_add(space->mappings, space->count, space->room, mapping))
		return -ENOMEM;
	table->mapping_count++;
	space->bytes += sizeof(mapping) + strlen(record->name);
	return process_note_change(table, process);
}

EQUAL(thread_equal, struct thread, pid_t, a->tid == *b)

struct thread *thread_at(const struct process_table *table, pid_t tid, uint64_t time_ns)
{
	uint32_t id =
		index_find(&table->by_tid, hash_number(tid), thread_equal, table->threads, &tid);
	uint32_t younger;

	if (id == INDEX_NONE)
		return NULL;
	for (; (younger = table->threads[id].younger) != INDEX_NONE; id = younger)
		if (table->threads[younger].since_ns > time_ns)
			break;
	return &table->threads[id];
}

static int add_thread(struct process_table *table, pid_t tid, uint64_t maybe_ns, uint64_t time_ns,
		      const char *comm)
{
	struct thread *older = thread_at(table, tid, UINT64_MAX), *thread;
	uint32_t older_count = older ? older->older + 1 : 0;
	char copy[COMM_SIZE];

	/* comm may point into the table, which moves below. */
	snprintf(copy, sizeof(copy), "%s", comm);
	if (array_reserve(&table->threads, &table->thread_room, table->thread_count + 1,
			  sizeof(*thread)) ||
	    (!older && index_add(&table->by_tid, hash_number(tid), table->thread_count)))
		return -ENOMEM;
	if (older)
		thread_at(table, tid, UINT64_MAX)->younger = table->thread_count;
	thread = &table->threads[table->thread_count++];
	table->added++;
	*thread = (struct thread){
		.tid = tid,
		.younger = INDEX_NONE,
		.since_ns = time_ns,
		.maybe_ns = maybe_ns,
		.older = older_count,
	};
	memcpy(thread->comm, copy, sizeof(thread->comm));
	return 0;
}

int process_name_thread(struct process_table *table, const struct process *process, pid_t tid,
			const char *comm, uint64_t maybe_ns, uint64_t time_ns)
{
	uint64_t begin_ns = process ? process->begin_ns : 0;
	/* That of its user; users whose numbers collide have one together. */
	uint8_t share = 1 + (process ? process->uid : 0) % (THREAD_SHARES - 1);
	struct thread *thread = thread_at(table, tid, UINT64_MAX);

	/* The fork of this one was not recorded, nor maybe the end of another with its number. */
	if (!thread || thread->ended_ns || thread->since_ns < begin_ns) {
		if (thread && thread->ended_ns > begin_ns)
			begin_ns = thread->ended_ns;
		return add_thread(table, tid, begin_ns, begin_ns, comm);
	}
	if (strncmp(thread->comm, comm, sizeof(thread->comm) - 1) == 0)
		return 0;
	maybe_ns = MAX(maybe_ns, thread->since_ns);
	if (time_ns > thread->since_ns && thread->older < THREAD_NAMES_MAX &&
	    table->renamed[share] + table->thread_count < THREADS_MAX) {
		if (add_thread(table, tid, maybe_ns, time_ns, comm))
			return -ENOMEM;
		table->threads[table->thread_count - 1].share = share;
		table->renamed[share]++;
		return 0;
	}
	thread->in_doubt |= time_ns > thread->since_ns;
	snprintf(thread->comm, sizeof(thread->comm), "%s", comm);
	return 0;
}

struct name_answer thread_name_at(struct process_table *table, pid_t pid, pid_t tid,
				  uint64_t time_ns)
{
	struct name_answer answer = { "", UINT64_MAX, false };
	const struct thread *thread, *younger;
	char comm[COMM_SIZE];

	/* In a PID namespace, threads that exit have no number, as those outside. */
	if (!tid)
		tid = pid;
	thread = thread_at(table, tid, time_ns);
	if (!thread) {
		const struct process *process = process_at(table, pid, time_ns);

		if (file_read_line(proc_path(pid, tid, "comm").text, comm, sizeof(comm)) == 0 &&
		    process_name_thread(table, process, tid, comm, 0, 0) == 0)
			thread = thread_at(table, tid, time_ns);
	}
	if (!thread)
		thread = thread_at(table, pid, time_ns);
	if (!thread)
		return answer;
	answer.comm = thread->comm;
	answer.in_doubt = thread->in_doubt;
	if (thread->younger == INDEX_NONE)
		return answer;
	younger = &table->threads[thread->younger];
	answer.in_doubt |= younger->maybe_ns <= time_ns && time_ns < younger->since_ns;
	answer.until_ns = younger->maybe_ns > time_ns ? younger->maybe_ns : younger->since_ns;
	return answer;
}

static int record_fork(struct process_table *table, const struct sideband_record *record)
{
	struct process *parent = process_find(table, record->parent), *child;
	struct address_space *space;

	if (parent &&
	    add_thread(table, record->tid, record->time_ns, record->time_ns,
		       thread_name_at(table, record->parent, record->parent_tid, record->time_ns)
			       .comm))
		return -ENOMEM;
	if (record->pid == record->parent || (!table->everyone && !(table->inherit && parent)))
		return 0;
	if (process_add(table, record->pid, record->time_ns))
		return -ENOMEM;
	parent = process_find(table, record->parent); /* again: the table may have moved */
	child = process_find(table, record->pid);
	if (!parent)
		return origin_read(table, child);
	child->group = parent->group;
	child->uid = parent->uid;
	space = process_space(child);
	space->parent = process_space(parent);
	space->parent->references++;
	space->inherited = space->parent->count - space->parent->absorbed;
	space->exec = space->parent->exec;
	return 0;
}

static int record_exec(struct process_table *table, struct process *process,
		       const struct sideband_record *record)
{
	struct address_space *space = process_space(process);
	uint64_t since_ns = record->maybe_ns ?: record->time_ns;

	if (!record->maybe_ns && record->time_ns <= space->read_ns) {
		/* After a loss, /proc has shown the mappings of this program before its record. */
		if (space->since_ns < space->sure_ns)
			space->since_ns = space->sure_ns = record->time_ns;
	} else {
		free(process->title);
		process->title = NULL;
		process->title_is_sure = false;
		otel_free(process);
		if (process_add_space(process, since_ns) || process_note_change(table, process) ||
		    origin_read(table, process) || jit_end_program(table, process, since_ns))
			return -ENOMEM;
		process_space(process)->sure_ns = record->time_ns;
	}
	return process_name_thread(table, process, record->tid, record->name, since_ns, since_ns);
}

int process_record(struct process_table *table, const struct sideband_record *record)
{
	struct process *process;
	struct thread *thread;

	if (record->type == SIDEBAND_FORK)
		return record_fork(table, record);
	thread = record->type == SIDEBAND_EXIT ? thread_at(table, record->tid, UINT64_MAX) : NULL;
	if (thread)
		thread->ended_ns = record->time_ns;
	process = process_find(table, record->pid);
	if (!process) {
		if (!table->everyone || record->type == SIDEBAND_EXIT)
			return 0;
		if (process_add(table, record->pid, record->time_ns))
			return -ENOMEM;
		process = process_find(table, record->pid);
		if (origin_read(table, process))
			return -ENOMEM;
	}
	switch (record->type) {
	case SIDEBAND_MMAP:
		return process_map(table, process, record);
	case SIDEBAND_EXEC:
		return record_exec(table, process, record);
	case SIDEBAND_COMM:
		return process_name_thread(table, process, record->tid, record->name,
					   record->time_ns, record->time_ns);
	case SIDEBAND_EXIT:
		/*
		 * When the leader exits, other threads may go on, but later exec and mapping
		 * records of this PID belong to another process.
		 */
		if (record->tid == record->pid) {
			process->ended = true;
			process->ended_ns = record->time_ns;
		}
		return process->ended ? process_note_change(table, process) : 0;
	default:
		return 0;
	}
}

int process_keep_threads(struct process_table *table)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < table->thread_count; i++)
		if (table->threads[i].sampled)
			table->threads[kept++] = table->threads[i];
	table->thread_count = kept;
	array_trim(&table->threads, &table->thread_room, kept, sizeof(*table->threads));
	memset(table->renamed, 0, sizeof(table->renamed));
	index_free(&table->by_tid);
	for (size_t i = 0; i < kept && !err; i++) {
		struct thread *thread = &table->threads[i];
		struct thread *older = thread_at(table, thread->tid, UINT64_MAX);

		thread->younger = INDEX_NONE;
		thread->older = older ? older->older + 1 : 0;
		if (thread->share)
			table->renamed[thread->share]++;
		if (older)
			older->younger = i;
		else
			err = index_add(&table->by_tid, hash_number(thread->tid), i);
	}
	return err;
}
