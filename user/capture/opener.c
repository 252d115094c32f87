// SPDX-License-Identifier: GPL-2.0-only
#include "capture/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "capture/sideband.h"
#include "util/clock.h"
#include "util/elf_header.h"
#include "util/file_open.h"
#include "util/order.h"
#include "util/proc.h"
#include "util/proc_maps.h"

/*
 * How long the recorder waits for an answer: what is in memory takes some 20 us, a busy disk up to
 * a second. Users wait shorter: nothing of theirs is worth a gap in what others have.
 * Bound: users: time to wait for the answer to a file or memory of root's, and of a user's; then:
 * it is missing, and nothing of that user, or device of root's, is asked for; again: as AGAIN_NS;
 * share: the user's own, or the device's; seen: refusals, no_answer.
 */
#define ROOT_NS (1 * NS_PER_S)
#define USER_NS (100 * NS_PER_MS)
/* For an opener that does not wait for a file, but for a CPU. Bound: as ROOT_NS. */
#define CPU_NS (2 * NS_PER_S)

/*
 * Answers that come later than that are slow: 1 / SLOW_PART of the time may be spent on them.
 * Bound: users: time of an answer, and the part of the time that slower ones may take; then:
 * nothing of that user, or device of root's, is asked for; again: when so much time has passed;
 * share: the user's own, or the device's; seen: refusals, no_answer.
 */
#define SLOW_NS	  (20 * NS_PER_MS)
#define SLOW_PART 50

/*
 * Bound: users: time after which one that did not answer is asked again: it doubles within these;
 * then: what is missing stays so; again: after that time, when the opener that was left has ended;
 * share: the user's own, or the device's; seen: refusals, no_answer.
 */
#define AGAIN_NS     (5 * NS_PER_S)
#define AGAIN_NS_MAX (600 * NS_PER_S)

enum opener_action {
	OPEN_MAPPED,
	OPEN_PATH,
	READ_MEMORY,
	READ_COMMAND,
};

struct opener_request {
	enum opener_action action;
	bool links;
	uint32_t size;
	pid_t pid, tid;
	uint64_t from;
	uint64_t start, limit, device, inode, time_ns;
	char name[PATH_MAX]; /* as much as there is; longer ones are no paths */
};

struct opener_answer {
	int64_t result;	  /* bytes of memory, which follow; or a negative errno */
	uint64_t took_ns; /* without the time in which it ran or waited for a CPU; if it is long */
	struct opened_file file;
};

struct memory_answer {
	struct opener_answer head;
	char bytes[OPENER_MEMORY_MAX];
};

/* --- In the opener's process --- */

/*
 * Whether a link in /proc/PID/map_files is to the file of the record, and not to one that was
 * mapped there since. Last parts of paths are compared, as the rest depends on whose root directory
 * it is.
 */
static bool is_of_record(const char *link, const struct opener_request *r)
{
	char path[PATH_MAX];
	ssize_t size = readlink(link, path, sizeof(path) - 1);
	const char *name, *wanted = strrchr(r->name, '/');

	if (size < 0 || !wanted)
		return true;
	path[size] = '\0';
	name = strrchr(path, '/');
	return !name || (proc_path_size(name) == proc_path_size(wanted) &&
			 strncmp(name, wanted, proc_path_size(name)) == 0);
}

/*
 * Opens the record's file for a process that has ended, if the path leads there in our root
 * directory, too. Returns a descriptor or -ESRCH. A file that was changed since is not the one:
 * file systems give inode numbers again. btrfs and overlayfs give files other devices than their
 * mappings have.
 */
static int open_by_path(const struct opener_request *r, struct stat *status)
{
	struct statfs fs;
	int fd = r->inode ? file_open_regular(-1, r->name, status) : -ESRCH;

	if (fd < 0)
		return -ESRCH;
	if (status->st_ino == r->inode &&
	    status->st_ctim.tv_sec * NS_PER_S + status->st_ctim.tv_nsec <=
		    time_of_day_ns(r->time_ns) &&
	    (status->st_dev == r->device ||
	     (fstatfs(fd, &fs) == 0 &&
	      (fs.f_type == BTRFS_SUPER_MAGIC || fs.f_type == OVERLAYFS_SUPER_MAGIC))))
		return fd;
	close(fd);
	return -ESRCH;
}

/* Returns a descriptor or a negative errno; -ESRCH: the process has ended. */
static int open_mapped(const struct opener_request *r, struct stat *status)
{
	char path[128];
	int fd, root;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, r->tid, r->start,
		 r->limit);
	fd = file_open_regular(-1, path, status);
	if (fd >= 0 && !is_of_record(path, r)) {
		close(fd);
		fd = -ESTALE;
	}
	/*
	 * The program itself can be opened without privileges where it was deleted, or is not in
	 * our mount namespace.
	 */
	if (fd < 0 && r->name[0] == '/') {
		const struct proc_path exe = proc_path(r->tid, 0, "exe");

		fd = file_open_regular(-1, exe.text, status);
		if (fd >= 0 &&
		    (!is_of_record(exe.text, r) || (r->inode && r->inode != status->st_ino))) {
			close(fd);
			fd = -ESTALE;
		}
	}
	if (fd < 0 && r->name[0] == '/') {
		root = open(proc_path(r->tid, 0, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0 && errno != ENOENT)
			return -errno;
		if (root < 0) { /* a zombie still has its directory, but no root in it */
			fd = open_by_path(r, status);
		} else {
			fd = file_open_regular(root, r->name, status);
			close(root);
			if (fd >= 0 && r->inode && r->inode != status->st_ino) {
				close(fd);
				return -ESTALE;
			}
		}
	}
	return fd;
}

static ssize_t read_memory(pid_t pid, uint64_t from, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };
	ssize_t count = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return count < 0 ? -errno : count;
}

static ssize_t read_command(pid_t pid, char *to, size_t size)
{
	int fd = open(proc_path(pid, 0, "cmdline").text, O_RDONLY | O_CLOEXEC);
	ssize_t count;

	if (fd < 0)
		return -errno;
	count = read(fd, to, size);
	if (count < 0)
		count = -errno;
	close(fd);
	return count;
}

/*
 * A file in a FUSE file system stays here: whoever closes one asks its server, and waits. Returns
 * the descriptor to send.
 */
static int replace_by_copy(int fd, struct opened_file *file)
{
	char bytes[16384];
	struct stat status;
	struct statfs fs;
	ssize_t n = 1;
	int copy;

	if (fstatfs(fd, &fs) || fs.f_type != FUSE_SUPER_MAGIC)
		return fd;
	copy = file->status.st_size > (off_t)OPENER_COPY_MAX ? -EFBIG
							     : memfd_create("copy", MFD_CLOEXEC);
	for (size_t done = 0; copy >= 0 && n > 0 && done <= OPENER_COPY_MAX; done += n) {
		n = pread(fd, bytes, sizeof(bytes), done);
		if (n > 0 && write(copy, bytes, n) != n)
			n = -1;
	}
	close(fd);
	if (n < 0) {
		close(copy);
		return -EIO;
	}
	file->is_copy = copy >= 0;
	/* By these, later, is_wanted_image() in image.c compares. */
	if (copy >= 0 && fstat(copy, &status) == 0) {
		file->status.st_size = status.st_size;
		file->status.st_mtim = status.st_mtim;
	}
	return copy;
}

static void close_fds(const int *fds)
{
	for (size_t i = 0; i < CHILD_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void serve(int socket)
{
	struct opener_request r;
	struct memory_answer answer;
	int fds[CHILD_FDS_MAX];
	const struct child ours = { .pid = getpid() };
	uint64_t cpu_ns = 0, before_ns, took_ns;
	ssize_t n;

	while ((n = child_receive(socket, &r, sizeof(r) - 1, fds, UINT64_MAX)) > 0) {
		size_t size = sizeof(answer.head);
		uint64_t begin_ns = now_ns();
		int fd = -1, err;

		((char *)&r)[n] = '\0'; /* ends the name */
		answer.head = (struct opener_answer){ 0 };
		if (r.action == READ_MEMORY || r.action == READ_COMMAND) {
			answer.head.result =
				r.action == READ_MEMORY
					? read_memory(r.pid, r.from, answer.bytes, r.size)
					: read_command(r.pid, answer.bytes, r.size);
			size += MAX(answer.head.result, 0);
		} else {
			struct opened_file *file = &answer.head.file;
			int flags = O_PATH | (r.links ? 0 : O_NOFOLLOW);

			if (r.action == OPEN_MAPPED)
				fd = open_mapped(&r, &file->status);
			else
				fd = file_open_in(fds[0], r.name, flags);
			if (fd >= 0 && r.action != OPEN_MAPPED)
				fd = file_reopen_regular(fd, &file->status);
			fd = fd < 0 ? fd : replace_by_copy(fd, file);
			answer.head.result = fd < 0 ? fd : 0;
			/* Whoever serves a FUSE file system may give a file any build ID. */
			if (fd >= 0 && !file->is_copy)
				file->build_id_size = elf_read_build_id(fd, file->build_id,
									sizeof(file->build_id));
			file->bits = elf_bits(fd);
		}
		/* If it was long: what it waited for a CPU is no fault of a user's. */
		took_ns = now_ns() - begin_ns;
		if (took_ns >= SLOW_NS) {
			before_ns = cpu_ns;
			cpu_ns = child_cpu_ns(&ours);
			if (took_ns > cpu_ns - before_ns)
				answer.head.took_ns = took_ns - (cpu_ns - before_ns);
		}
		err = child_send(socket, &answer, size, &fd, fd >= 0);
		if (fd >= 0)
			close(fd);
		close_fds(fds);
		if (err)
			return;
	}
}

/* --- In the recorder's --- */

#define DEVICE_OF_ROOT ((uint64_t)1 << 63)

/* For whom the answer may have to wait: all users of a user namespace are its owner. */
static uint64_t who_of(const struct opener_target *target)
{
	uid_t owner = 0;
	int users;

	if (!target->uid)
		return DEVICE_OF_ROOT | (target->device ?: (uint64_t)target->pid << 32);
	users = open(proc_path(target->pid, 0, "ns/user").text, O_RDONLY | O_CLOEXEC);
	if (users >= 0) {
		if (ioctl(users, NS_GET_OWNER_UID, &owner))
			owner = 0;
		close(users);
	}
	return owner ?: target->uid;
}

static void close_stall(struct opener_stall *stall)
{
	if (stall->pid_fd >= 0)
		close(stall->pid_fd);
	stall->pid_fd = -1;
}

static struct opener_stall *find_stall(struct opener *o, uint64_t who)
{
	for (size_t i = 0; i < o->stall_count; i++)
		if (o->stalls[i].who == who)
			return &o->stalls[i];
	return NULL;
}

/* Whether something of this one may be asked for now. */
static bool may_ask(struct opener *o, const struct opener_target *target)
{
	const struct opener_stall *stall;
	uint64_t now = now_ns();

	/* Forgets those that have been well for as long as they were to be left alone. */
	for (size_t i = o->stall_count; i-- > 0;) {
		struct opener_stall *its = &o->stalls[i];

		if (its->pid_fd >= 0 && child_has_ended(its->pid_fd))
			close_stall(its);
		if (its->pid_fd < 0 && now >= its->next_ns + its->wait_ns)
			*its = o->stalls[--o->stall_count];
	}
	if (!o->stall_count)
		return true;
	stall = find_stall(o, who_of(target));
	if (!stall)
		return !target->uid || o->stall_count < OPENER_STALLS_MAX / 2;
	return stall->pid_fd < 0 && now >= stall->next_ns;
}

/*
 * Leaves this one alone for a time. pid_fd: the opener that was left behind, or -1. What users take
 * is half of the places; of root's devices, the one that is next to be asked for makes room.
 */
static void note_stall(struct opener *o, const struct opener_target *target, uint64_t took_ns,
		       int pid_fd)
{
	uint64_t who = who_of(target), wait_ns = SLOW_PART * took_ns;
	struct opener_stall *stall = find_stall(o, who);

	if (pid_fd >= 0 && wait_ns < AGAIN_NS)
		wait_ns = AGAIN_NS;
	if (stall) {
		close_stall(stall);
		wait_ns = MAX(wait_ns, 2 * stall->wait_ns);
	} else if (o->stall_count < OPENER_STALLS_MAX) {
		stall = &o->stalls[o->stall_count++];
	} else {
		for (size_t i = 0; i < o->stall_count; i++)
			if (o->stalls[i].who & DEVICE_OF_ROOT &&
			    (!stall || o->stalls[i].next_ns < stall->next_ns))
				stall = &o->stalls[i];
		close_stall(stall);
	}
	wait_ns = MIN(wait_ns, AGAIN_NS_MAX);
	*stall = (struct opener_stall){
		.who = who,
		.pid_fd = pid_fd,
		.next_ns = now_ns() + wait_ns,
		.wait_ns = wait_ns,
	};
}

/*
 * Returns the answer's size, or a negative errno. fds: as child_receive() sets them. An opener that
 * has ended was killed by others: the next one is asked, once.
 */
static ssize_t ask(struct opener *o, const struct opener_target *target,
		   const struct opener_request *request, size_t request_size, int root,
		   struct opener_answer *answer, size_t size, int *fds)
{
	ssize_t n = may_ask(o, target) ? -EPIPE : -ETIMEDOUT;
	uint64_t begin_ns = now_ns(), sent_ns;
	bool was_asked = n == -EPIPE;

	for (int try = 0; try < 2 && n == -EPIPE; try++) {
		n = o->child.pid ? 0 : child_start(&o->child, "profil-opener", serve);
		if (n)
			return n;
		n = child_send(o->child.fd, request, request_size, &root, root >= 0);
		sent_ns = now_ns();
		if (!n)
			do {
				n = child_receive(o->child.fd, answer, size, fds,
						  now_ns() + (target->uid ? USER_NS : ROOT_NS));
			} while (n == -ETIMEDOUT && now_ns() - sent_ns < CPU_NS &&
				 child_is_running(&o->child));
		if (n < 0 && n != -ETIMEDOUT) {
			int pid_fd = child_end(&o->child);

			if (pid_fd >= 0)
				close(pid_fd);
		}
	}
	if (n == -ETIMEDOUT && was_asked)
		note_stall(o, target, now_ns() - begin_ns, child_end(&o->child));
	else if (n >= (ssize_t)sizeof(*answer) && target->uid && answer->took_ns >= SLOW_NS)
		note_stall(o, target, answer->took_ns, -1);
	if (n == -ETIMEDOUT && o->refusals)
		refusals_add(o->refusals, target->uid, REFUSAL_NO_ANSWER, 1, 0);
	return n;
}

static int ask_for_file(struct opener *o, const struct opener_target *target,
			struct opener_request *request, const char *path, int root,
			struct opened_file *file)
{
	size_t length = strlen(path);
	int fds[CHILD_FDS_MAX] = { -1, -1, -1, -1 };
	struct opener_answer answer;
	ssize_t n;

	*file = (struct opened_file){ 0 };
	if (length >= sizeof(request->name))
		return -ENAMETOOLONG;
	memcpy(request->name, path, length + 1);
	n = ask(o, target, request, offsetof(struct opener_request, name) + length, root, &answer,
		sizeof(answer), fds);
	if (n == sizeof(answer)) {
		*file = answer.file;
		if (answer.result == 0 && fds[0] >= 0)
			return fds[0];
		n = answer.result < 0 ? answer.result : -EIO;
	}
	close_fds(fds);
	return n < 0 ? (int)n : -EIO;
}

int opener_open_mapped(struct opener *o, const struct opener_target *target,
		       const struct sideband_record *record, struct opened_file *file)
{
	struct opener_request request = {
		.action = OPEN_MAPPED,
		.pid = record->pid,
		.tid = record->tid,
		.start = record->start,
		.limit = record->limit,
		.device = record->device,
		.inode = record->inode,
		.time_ns = record->time_ns,
	};

	return ask_for_file(o, target, &request, record->name, -1, file);
}

int opener_open_path(struct opener *o, const struct opener_target *target, int root,
		     const char *path, bool links, struct opened_file *file)
{
	struct opener_request request = { .action = OPEN_PATH, .links = links };

	return ask_for_file(o, target, &request, path, root, file);
}

/* Reads bytes that the process has in its memory, by READ_MEMORY or READ_COMMAND. */
static ssize_t ask_for_bytes(struct opener *o, const struct opener_target *target,
			     enum opener_action action, uint64_t from, void *to, size_t size)
{
	const struct opener_request request = {
		.action = action,
		.pid = target->pid,
		.from = from,
		.size = MIN(size, OPENER_MEMORY_MAX),
	};
	struct memory_answer answer;
	ssize_t n = ask(o, target, &request, offsetof(struct opener_request, name), -1,
			&answer.head, sizeof(answer), NULL);

	if (n < (ssize_t)sizeof(answer.head))
		return n < 0 ? n : -EIO;
	n -= sizeof(answer.head);
	if (answer.head.result < 0 || answer.head.result != n || n > request.size)
		return answer.head.result < 0 ? answer.head.result : -EIO;
	memcpy(to, answer.bytes, n);
	return n;
}

ssize_t opener_read_memory(const struct opener_memory *m, uint64_t from, void *to, size_t size)
{
	/* Its memory waits for nobody but root. */
	if (!m->target.uid)
		return read_memory(m->target.pid, from, to, size);
	return ask_for_bytes(m->opener, &m->target, READ_MEMORY, from, to, size);
}

ssize_t opener_read_command(struct opener *o, const struct opener_target *target, char *text,
			    size_t size)
{
	ssize_t n = target->uid ? ask_for_bytes(o, target, READ_COMMAND, 0, text, size - 1)
				: read_command(target->pid, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return n;
}

void opener_end(struct opener *o)
{
	int pid_fd = child_end(&o->child);

	if (pid_fd >= 0)
		close(pid_fd);
	for (size_t i = 0; i < o->stall_count; i++)
		close_stall(&o->stalls[i]);
	o->stall_count = 0;
}

int opener_stat_known(int directory, const char *path, struct stat *status)
{
	const int flags = AT_STATX_DONT_SYNC | (*path ? 0 : AT_EMPTY_PATH);
	struct statx known;

	if (statx(directory, path, flags, STATX_BASIC_STATS, &known))
		return -errno;
	*status = (struct stat){
		.st_dev = makedev(known.stx_dev_major, known.stx_dev_minor),
		.st_ino = known.stx_ino,
		.st_mode = known.stx_mode,
		.st_uid = known.stx_uid,
		.st_size = known.stx_size,
		.st_mtim = { known.stx_mtime.tv_sec, known.stx_mtime.tv_nsec },
		.st_ctim = { known.stx_ctime.tv_sec, known.stx_ctime.tv_nsec },
	};
	return 0;
}
