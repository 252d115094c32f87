// SPDX-License-Identifier: GPL-2.0-only
#include "capture/jit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/image.h"
#include "capture/target.h"
#include "util/clock.h"
#include "util/file_open.h"
#include "util/proc.h"

/* In seconds: a file system has its own clock, and the machine's may be adjusted. */
#define CLOCK_SLACK 2

/* A program that ends soon may have written its file by then. Bound: pace. */
#define LOOK_AGAIN_NS (100 * NS_PER_MS)

bool jit_is_memory(const char *name)
{
	static const char *const prefixes[] = { "//anon", "[anon", "/anon_hugepage", "/dev/zero",
						"/SYSV" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return !*name;
}

/*
 * Reads the process's own PID and its user. If it has ended, the earlier values stay.
 */
static void read_status(struct jit *jit, pid_t pid)
{
	struct proc_status status;

	if (proc_read_status(AT_FDCWD, proc_path(pid, 0, "status").text, &status))
		return;
	jit->uid = status.uid;
	jit->pid = status.own_process ?: jit->pid;
}

static struct capture_image *image_of(struct process_table *table, const struct process *process)
{
	return &table->images[process->jit.image];
}

static uint64_t changed_ns(const struct stat *status)
{
	return status->st_mtim.tv_sec * NS_PER_S + status->st_mtim.tv_nsec;
}

/* Returns why a file is refused; NULL: it is not. */
static const char *why_refused(const struct jit *jit, uint64_t until_ns, const struct stat *status,
			       char *why, size_t size)
{
	if (S_ISLNK(status->st_mode))
		return "is a symbolic link";
	if (!S_ISREG(status->st_mode))
		return "is not a regular file";
	if (status->st_mode & S_IWOTH)
		return "may be written by every user";
	if (status->st_mtime + CLOCK_SLACK < jit->start)
		return "is older than the process";
	if (changed_ns(status) < jit->exec_ns)
		return "is of the program before";
	if (until_ns && changed_ns(status) >= until_ns)
		return "is of the program after it";
	if (status->st_uid == jit->uid || status->st_uid == 0)
		return NULL;
	snprintf(why, size, "belongs to uid %u, not to the process's user", status->st_uid);
	return why;
}

/* Makes a file the source of names, or sets why it is not. fd: it, or a negative errno. */
static int take_file(struct process_table *table, struct process *process, int fd,
		     const struct stat *status, const char *path)
{
	struct capture_image *image = image_of(table, process);
	char text[128];
	const char *why = why_refused(&process->jit, image->until_ns, status, text, sizeof(text));
	unsigned int programs = process->jit.programs;
	char *name;

	if (!why && fd < 0)
		why = strerror(-fd);
	if (why && fd >= 0)
		close(fd);
	free(image->why);
	image->why = NULL;
	if (why) {
		if (asprintf(&image->why, "%s %s: refused", path, why) < 0) {
			image->why = NULL;
			return -ENOMEM;
		}
	} else {
		file_close(image->fd);
		image->fd = image_keep(fd);
		/* Whoever owns it: in its own mount namespace, a user has any file at this path. */
		image->provider = process->jit.uid == geteuid() ? 0 : process->jit.uid;
	}
	if (programs ? asprintf(&name, "[jit %d:%u]", process->pid, programs + 1) < 0
		     : asprintf(&name, "[jit %d]", process->pid) < 0)
		return -ENOMEM;
	table->image_bytes += strlen(name) - strlen(image->path);
	free(image->path);
	image->path = name;
	return 0;
}

static void plan_look(struct process_table *table, const struct jit *jit)
{
	table->next_jit_ns = MIN(table->next_jit_ns, jit->next_look_ns);
}

static int look_for_map(struct process_table *table, struct process *process)
{
	struct jit *jit = &process->jit;
	bool has_names = image_of(table, process)->fd >= 0;
	const struct opener_target target = {
		.pid = process->pid,
		.uid = jit->uid == geteuid() ? 0 : jit->uid,
	};
	struct opened_file file;
	char path[64];
	int fd, err;

	/* A dump is better; after the end, the file may be of the next process with this number. */
	if (!jit->has_root || (has_names && (!jit->map_inode || process->ended)))
		return 0;
	jit->look_again_ns = jit->look_again_ns ? 2 * jit->look_again_ns : LOOK_AGAIN_NS;
	jit->next_look_ns = now_ns() + jit->look_again_ns;
	plan_look(table, jit);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", jit->pid);
	fd = opener_open_path(&table->opener, &target, jit->root, path, false, &file);
	if (fd < 0 && !file.status.st_mode)
		return 0;
	if (has_names && file.status.st_dev == jit->map_device &&
	    file.status.st_ino == jit->map_inode) {
		file_close(fd);
		return 0;
	}
	err = take_file(table, process, fd, &file.status, path);
	if (!err && !image_of(table, process)->why) {
		jit->map_device = file.status.st_dev;
		jit->map_inode = file.status.st_ino;
	}
	return err;
}

int jit_image(struct process_table *table, struct process *process,
	      const struct sideband_record *record, uint32_t *image)
{
	uint64_t start_ns = 0, boot_ns = clock_ns(CLOCK_BOOTTIME);
	struct capture_image added = { .fd = -1, .root = -1 };
	const struct process *earlier;
	struct jit *jit = &process->jit;

	*image = jit->image;
	if (*image != INDEX_NONE)
		return 0; /* the usual case: JIT compilers map memory all the time */
	added.path = strdup("[anon]");
	if (!added.path || image_add(table, &added, &jit->image)) {
		free(added.path);
		return -ENOMEM;
	}
	*image = jit->image;
	if (process->generation && !jit->exec_ns) {
		/* The file of an earlier process with this number is not this one's, and what comes
		 * is not its. */
		earlier = process_at(table, process->pid,
				     process->begin_ns ? process->begin_ns - 1 : 0);
		jit->exec_ns = time_of_day_ns(process->begin_ns);
		if (earlier && earlier != process && earlier->jit.image != INDEX_NONE) {
			jit->programs = earlier->jit.programs + 1;
			if (!table->images[earlier->jit.image].until_ns)
				table->images[earlier->jit.image].until_ns = jit->exec_ns;
		}
	}
	read_status(jit, record->tid);
	start_ns = target_start_ns(process->pid);
	if (start_ns && start_ns <= boot_ns)
		jit->start = (clock_ns(CLOCK_REALTIME) - (boot_ns - start_ns)) / NS_PER_S;
	jit->has_root = image_root(table, record->tid, &jit->root) == 0;
	return look_for_map(table, process);
}

void jit_note_file(const struct process_table *table, struct process *process,
		   const struct sideband_record *record, uint32_t image)
{
	const char *path = table->images[image].path, *name = strrchr(path, '/');
	struct jit *jit = &process->jit;
	char dump[64];

	if (!strstr(record->name, "/jit-") || table->images[image].fd < 0)
		return;
	read_status(jit, record->tid);
	snprintf(dump, sizeof(dump), "/jit-%d.dump", jit->pid);
	if (name && strcmp(name, dump) == 0)
		jit->dump = image;
}

int jit_look_soon(struct process_table *table)
{
	uint64_t now = now_ns();
	int err = 0;

	if (now < table->next_jit_ns)
		return 0;
	table->next_jit_ns = UINT64_MAX;
	for (size_t i = 0; i < table->count && !err; i++) {
		struct process *process = &table->processes[i];

		if (process->jit.image == INDEX_NONE || process->ended)
			continue;
		if (now < process->jit.next_look_ns)
			plan_look(table, &process->jit);
		else
			err = look_for_map(table, process);
	}
	return err;
}

int jit_end_program(struct process_table *table, struct process *process, uint64_t time_ns)
{
	struct jit *jit = &process->jit;
	uint64_t exec_ns = time_of_day_ns(time_ns);
	int err = 0;

	if (jit->image == INDEX_NONE)
		return 0;
	err = look_for_map(table, process);
	image_of(table, process)->until_ns = exec_ns;
	*jit = (struct jit){
		.image = INDEX_NONE,
		.dump = INDEX_NONE,
		.pid = jit->pid,
		.uid = jit->uid,
		.exec_ns = exec_ns,
		.programs = jit->programs + 1,
	};
	return err;
}

/*
 * The file of a program that has ended may have been written by the one after it, since it has the
 * same name.
 */
static int refuse_later(struct process_table *table)
{
	for (size_t i = 0; i < table->image_count; i++) {
		struct capture_image *image = &table->images[i];
		struct stat status;

		if (!image->until_ns || image->fd < 0 ||
		    opener_stat_known(image->fd, "", &status) ||
		    changed_ns(&status) < image->until_ns)
			continue;
		close(image->fd);
		image->fd = -1;
		free(image->why);
		image->why = strdup(
			"the program after it in this process has written its file of names");
		if (!image->why)
			return -ENOMEM;
	}
	return 0;
}

int jit_look_again(struct process_table *table)
{
	int err = refuse_later(table);

	for (size_t i = 0; i < table->count && !err; i++) {
		struct process *process = &table->processes[i];
		struct jit *jit = &process->jit;
		const char *path;
		struct stat status;
		int fd;

		if (jit->image == INDEX_NONE)
			continue;
		if (!process->ended)
			read_status(jit, process->pid);
		/* A dump is better than a map: it has source lines, and which code replaced which.
		 */
		if (jit->dump != INDEX_NONE) {
			path = table->images[jit->dump].path;
			fd = fcntl(table->images[jit->dump].fd, F_DUPFD_CLOEXEC, 0);
			jit->dump = INDEX_NONE;
			jit->map_inode = 0;
			if (fd >= 0 && opener_stat_known(fd, "", &status) == 0)
				err = take_file(table, process, fd, &status, path);
			else if (fd >= 0)
				close(fd);
		}
		err = err ?: look_for_map(table, process);
	}
	return err;
}
