// SPDX-License-Identifier: GPL-2.0-only
#include "capture/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "capture/origin.h"
#include "capture/target.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/index.h"
#include "util/proc.h"
#include "util/proc_maps.h"

/* Parses a line of /proc/PID/maps. Returns false if the mapping is not executable. */
static bool parse_maps_line(char *line, struct sideband_record *record)
{
	struct proc_map map;

	if (!proc_map_parse(line, &map) || !map.executable)
		return false;
	record->start = map.start;
	record->limit = map.limit;
	record->offset = map.offset;
	record->device = map.device;
	record->inode = map.inode;
	record->name = map.path;
	return true;
}

/* Marks the mappings of the program itself, /proc/PID/exe: it is not always mapped first. */
static void mark_executable(struct process_table *table, struct process *process)
{
	struct address_space *space = process_space(process);
	struct stat status;

	if (opener_stat_known(-1, proc_path(process->pid, 0, "exe").text, &status))
		return;
	for (size_t i = 0; i < space->count; i++) {
		const struct capture_image *image = &table->images[space->mappings[i].image];
		struct stat its = { .st_dev = image->device, .st_ino = image->inode };

		/* For file systems of several devices, as Btrfs and overlayfs, maps has another. */
		if (image->fd >= 0)
			opener_stat_known(image->fd, "", &its);
		space->mappings[i].executable =
			its.st_ino == status.st_ino && its.st_dev == status.st_dev;
	}
}

/*
 * A process may have tens of thousands of mappings of few files, or of none. So that they do not
 * use up the budget, the first mappings of each file are read before the rest. Files are compared
 * by hash only: two files with the same hash share the number of first mappings.
 */
#define FIRST_OF_FILE 8
/*
 * Bound: users: mappings of one file that are read before those of others; then: the rest is read
 * last; again: at once; share: the process's own; seen: as SPACE_BYTES_MAX.
 */
#define FILE_SLOTS 4096

struct maps_reader {
	struct process_table *table;
	struct process *process;
	struct sideband_record record;
	uint8_t read[FILE_SLOTS]; /* by hash: mappings that were read, up to FIRST_OF_FILE */
	bool found;		  /* the thread still had an address space */
	bool has_code;		  /* executable mappings of a file */
	/* Bound: state. */
	bool deferred; /* some mappings were not read yet */
};

/* all: read all mappings, else the first ones of each file */
static int read_lines(struct maps_reader *r, FILE *maps, bool all)
{
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	while (!err && getline(&line, &size, maps) > 0) {
		r->found = true;
		if (!parse_maps_line(line, &r->record))
			continue;
		r->has_code |= *r->record.name == '/';
		if (!all) {
			const struct sideband_record *m = &r->record;
			uint64_t hash =
				hash_bytes(m->name, strlen(m->name), hash_u64(m->inode, m->device));
			uint8_t *read = &r->read[hash % FILE_SLOTS];

			if (*read == FIRST_OF_FILE) {
				r->deferred = true;
				continue;
			}
			++*read;
		}
		err = process_map(r->table, r->process, &r->record);
		if (process_is_crowded(r->table, r->process) && process_space(r->process)->crowded)
			break; /* no more will be added */
	}
	free(line);
	return err;
}

/*
 * Whether a process has called exec since its mappings were read or recorded: none of them is there
 * any more. The kernel's own may be where they were.
 */
static bool is_another_program(struct process *process, FILE *maps)
{
	struct address_space *space = process_space(process);
	struct sideband_record record;
	bool found = false, known = false;
	char *line = NULL;
	size_t size = 0;

	if (!space->count && !space->parent)
		return false; /* nothing is known */
	while (!known && getline(&line, &size, maps) > 0) {
		const struct capture_mapping *there;

		if (!parse_maps_line(line, &record) || *record.name == '[')
			continue;
		found = true;
		there = space_mapping_at(space, record.start, UINT64_MAX).mapping;
		known = there && there->start == record.start && there->limit == record.limit;
	}
	free(line);
	rewind(maps);
	return found && !known;
}

/* *found: whether the thread still had an address space. */
static int read_maps(struct process_table *table, struct process *process, pid_t tid,
		     uint64_t time_ns, bool *found)
{
	struct maps_reader reader = {
		.table = table,
		.process = process,
		.record = { .pid = process->pid, .tid = tid, .time_ns = time_ns },
	};
	uint64_t read_ns = now_ns();
	FILE *maps = fopen(proc_path(tid, 0, "maps").text, "re");
	uint64_t since_ns = process_space(process)->since_ns;
	char comm[COMM_SIZE] = "";
	/* An exec whose record was lost: after known_ns and after the exec before it. */
	struct sideband_record exec = {
		.type = SIDEBAND_EXEC,
		.pid = process->pid,
		.tid = process->pid,
		.time_ns = time_ns,
		.maybe_ns = MAX(table->known_ns, since_ns) ?: 1,
		.name = comm,
	};
	bool execed;
	int err = 0;

	if (!maps)
		return 0; /* it has ended, or may not be read: its pcs will have no image */
	/* What is new was mapped since records were lost. */
	if (time_ns)
		reader.record.maybe_ns = table->known_ns ?: 1;
	execed = time_ns && is_another_program(process, maps);
	if (execed) {
		file_read_line(proc_path(process->pid, 0, "comm").text, comm, sizeof(comm));
		err = process_record(table, &exec);
	}
	err = err ?: read_lines(&reader, maps, false);
	if (!err && reader.deferred) {
		rewind(maps);
		err = read_lines(&reader, maps, true);
	}
	fclose(maps);
	*found = reader.found;
	if (time_ns && reader.has_code)
		process_space(process)->read_ns = read_ns;
	if (time_ns == 0 || execed)
		mark_executable(table, process);
	return err;
}

/*
 * Reads the names of all threads, and the mappings from the first thread that shows them: a thread
 * that has ended shows none, and the leader may end long before its process.
 */
static int read_threads(struct process_table *table, struct process *process, uint64_t time_ns)
{
	DIR *directory = opendir(proc_path(process->pid, 0, "task").text);
	uint64_t shown_ns = now_ns();
	char comm[COMM_SIZE];
	bool found = false;
	pid_t tid;
	int err = 0;

	if (!directory)
		return 0; /* it has ended */
	while (!err && (tid = proc_next(directory))) {
		if (file_read_line(proc_path(process->pid, tid, "comm").text, comm, sizeof(comm)) ==
		    0)
			err = process_name_thread(table, process, tid, comm, table->known_ns,
						  time_ns);
		if (!err && !found)
			err = read_maps(table, process, tid, time_ns, &found);
	}
	closedir(directory);
	/* A thread of the kernel has no mappings. */
	if (found || (!process_space(process)->count && !process_space(process)->parent))
		process->shown_ns = shown_ns;
	return err;
}

int snapshot_process(struct process_table *table, pid_t pid, uint64_t time_ns)
{
	/* As /proc shows it; begin_ns: the same by CLOCK_MONOTONIC, or before. */
	uint64_t start_ns = target_start_ns(pid), begin_ns = 0;
	uint64_t monotonic_ns = now_ns(), ahead_ns = clock_ns(CLOCK_BOOTTIME) - monotonic_ns;
	struct process *process = process_find(table, pid);
	struct sideband_record end = { .type = SIDEBAND_EXIT, .pid = pid, .tid = pid };
	bool another = false; /* the process that is known has ended: another has its number */
	bool unsure;
	int err = 0;

	if (start_ns > ahead_ns)
		begin_ns = start_ns - ahead_ns;
	if (process && process->start_ns && start_ns)
		another = start_ns != process->start_ns;
	else if (process)
		another = process->begin_ns && begin_ns > process->begin_ns;
	if (time_ns && begin_ns > time_ns)
		return 0; /* it was forked since: records of it are to come */
	if (another && !table->everyone)
		return 0; /* nobody asked for it */
	if (process && process->ended && !another)
		return 0; /* its mappings are gone */
	unsure = another && !process->ended;
	if (another) {
		/*
		 * The records of its fork, and maybe of the end of the one before, were lost: it
		 * has begun as soon as it can have. If both were, ticks of the clock tick in which
		 * it began may be of either.
		 */
		end.time_ns = process->ended ? process->ended_ns : process->begin_ns;
		end.time_ns = MAX(end.time_ns, begin_ns);
		if (unsure)
			err = process_record(table, &end);
	}
	if (another || !process)
		err = err ?: process_add(table, pid, another ? end.time_ns : time_ns);
	if (err)
		return err;
	process = process_find(table, pid);
	if (unsure)
		process->sure_ns = end.time_ns + NS_PER_S / sysconf(_SC_CLK_TCK);
	process->start_ns = start_ns ?: process->start_ns;
	return origin_read(table, process) ?: read_threads(table, process, time_ns);
}

int snapshot_all(struct process_table *table, uint64_t time_ns)
{
	DIR *directory = opendir("/proc");
	pid_t pid;
	int err = 0;

	while (directory && !err && (pid = proc_next(directory)))
		err = snapshot_process(table, pid, time_ns);
	if (directory)
		closedir(directory);
	return err;
}

int snapshot_replace(struct process_table *table, struct process *process, uint64_t time_ns)
{
	uint32_t exec = process_space(process)->exec;

	if (process_add_space(process, time_ns) || process_note_change(table, process))
		return -ENOMEM;
	process_space(process)->exec = exec;
	return snapshot_process(table, process->pid, time_ns);
}

int snapshot_again(struct process_table *table, uint64_t time_ns)
{
	size_t count = table->count;
	int err = 0;

	if (table->everyone)
		return snapshot_all(table, time_ns);
	for (size_t i = 0; i < count && !err; i++) {
		const struct process *process = &table->processes[i];

		if (process->count && process->next_with_pid == INDEX_NONE)
			err = snapshot_process(table, process->pid, time_ns);
	}
	return err;
}

static void note_gap(struct process_table *table, uint64_t from_ns, uint64_t to_ns)
{
	struct gap *last = table->gap_count ? &table->gaps[table->gap_count - 1] : NULL;

	if (last && from_ns <= last->to_ns) {
		last->to_ns = to_ns;
		return;
	}
	if (table->gap_count == GAPS_MAX) {
		size_t closest = 0;

		for (size_t i = 1; i + 1 < GAPS_MAX; i++)
			if (table->gaps[i + 1].from_ns - table->gaps[i].to_ns <
			    table->gaps[closest + 1].from_ns - table->gaps[closest].to_ns)
				closest = i;
		table->gaps[closest].to_ns = table->gaps[closest + 1].to_ns;
		table->gap_count--;
		memmove(table->gaps + closest + 1, table->gaps + closest + 2,
			(table->gap_count - closest - 1) * sizeof(*table->gaps));
	}
	table->gaps[table->gap_count++] = (struct gap){ from_ns, to_ns };
}

/*
 * Reading mappings of those that had too many may take 1 / this of the time. A process is read at
 * most once in so long; later, if it has too many at once.
 * Bound: users: the part of the time in which the mappings of processes over their budget are read
 * again; then: they are read later; again: as time goes on; share: users take turns; seen:
 * crowded_windows.
 */
#define CROWDED_PART	500
#define CROWDED_NS	(5 * NS_PER_S)
#define CROWDED_FULL_NS (60 * NS_PER_S)

int snapshot_if_crowded(struct process_table *table, uint64_t until_ns, unsigned int most)
{
	struct process *next = NULL;
	uint64_t begin_ns;
	int err;

	if (!table->lacks_room || until_ns < table->next_room_ns)
		return 0;
	table->lacks_room = false;
	table->next_room_ns = until_ns + CROWDED_NS / 10;
	for (size_t i = 0; i < table->count; i++) {
		struct process *process = &table->processes[(table->next_room + i) % table->count];
		const struct address_space *space = process->count ? process_space(process) : NULL;

		if (process->ended || !space->crowded || process->crowded_count >= most)
			continue;
		table->lacks_room = true;
		/* Others may use up the budget of all: then it would have less than now. */
		if (until_ns < process->crowded_ns ||
		    (space->bytes < SPACE_BYTES_MAX && space->bytes >= process_budget(table)))
			continue;
		if (!next || process->uid != table->room_uid)
			next = process;
		if (next->uid != table->room_uid)
			break;
	}
	if (!next)
		return 0;
	table->next_room = next - table->processes + 1;
	table->room_uid = next->uid;
	next->crowded_count++;
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	err = snapshot_replace(table, next, until_ns);
	table->next_room_ns =
		until_ns + CROWDED_PART * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
	next = &table->processes[table->next_room - 1];
	next->crowded_ns = until_ns + (process_space(next)->crowded ? CROWDED_FULL_NS : CROWDED_NS);
	return err;
}

/* Bound: as LOST_PART. */
#define AGAIN_NS (20 * NS_PER_MS)

int snapshot_if_lost(struct process_table *table, uint64_t lost, uint64_t complete_ns,
		     uint64_t until_ns, unsigned int part)
{
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	if (!table->lacks_records && lost == table->records_lost)
		table->known_ns = complete_ns;
	table->lacks_records |= lost != table->records_lost || complete_ns < until_ns;
	if (table->lacks_records)
		note_gap(table, table->known_ns, until_ns);
	if (!table->lacks_records || until_ns < table->next_again_ns)
		return 0;
	table->records_lost = lost;
	table->lacks_records = false;
	err = snapshot_again(table, until_ns);
	table->next_again_ns =
		until_ns + AGAIN_NS + part * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
	return err;
}
