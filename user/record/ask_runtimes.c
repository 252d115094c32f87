// SPDX-License-Identifier: GPL-2.0-only
#include "record/ask_runtimes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/target.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/proc.h"
#include "util/proc_maps.h"

/* --- HotSpot --- */

/*
 * HotSpot, the usual Java virtual machine, writes the names of the code that it has compiled to
 * /tmp/perf-PID.map when it gets the request Compiler.perfmap (Java 17 or later). Requests come
 * through its socket, /tmp/.java_pidPID, which it opens at the first SIGQUIT that finds a file
 * .attach_pidPID. PIDs and /tmp are the process's own.
 *
 * SIGQUIT ends a program that does not catch it, may end one that does, and makes a JVM without
 * such a file, or of another kind, print its state. So the signal is sent only to a process that
 * catches it and whose thread for signals is seen to wait for them in HotSpot's code, by a
 * descriptor of the process, which is no other's when the PID is. The process's user can change its
 * /tmp at any time: all there is done with this user's rights alone.
 */
struct hotspot {
	pid_t pid;
	pid_t own_pid; /* in its innermost PID namespace */
	uid_t uid;     /* the effective user and group */
	gid_t gid;
	int process;	       /* pidfd_open(2) */
	int proc;	       /* /proc/PID, of no later process */
	int root;	       /* its root directory */
	const char *no_signal; /* why it may not be sent SIGQUIT; NULL: it may */
};

/*
 * Of a process, how many of each are looked at.
 * Bound: users: mappings, threads and descriptors of a Java process that are looked at; then: it is
 * not asked: its code has no names; again: at the next request; share: the process's own; seen: in
 * a warning.
 */
#define MAPS_MAX    65536
#define THREADS_MAX 16384
#define FILES_MAX   65536

/* Bound: as MAPS_MAX. */
#define WORDS_MAX  ((size_t)128 * 1024) /* of its command line, and its environment */
#define ANSWER_MAX ((size_t)64 * 1024)

/* Bound: pace. */
#define SOCKET_NS (5 * NS_PER_MS) /* between two looks for the socket */

/* Of a stack, how much is searched for the library's code: it calls what waits in libc. */
#define WAIT_WORDS 128

static const char no_attach[] = "-XX:+DisableAttachMechanism";

static bool catches_quit(const struct proc_status *status)
{
	return status->caught >> (SIGQUIT - 1) & 1;
}

/* The code of HotSpot's library in the process. */
struct library {
	struct {
		uint64_t start, limit;
	} parts[8];
	size_t count;
};

/* Whether it has mapped HotSpot's library. OpenJ9 has one of the same name, and libj9*.so. */
static bool find_library(const struct hotspot *h, struct library *library)
{
	FILE *file = file_stream(openat(h->proc, "maps", O_RDONLY | O_CLOEXEC));
	bool other = false;
	struct proc_map map;
	size_t room = 0;
	char *line = NULL;

	library->count = 0;
	for (int i = 0; file && i < MAPS_MAX && getline(&line, &room, file) > 0; i++) {
		const char *name;

		if (!proc_map_parse(line, &map) || !map.inode || !map.executable)
			continue;
		map.path[proc_path_size(map.path)] = '\0';
		name = strrchr(map.path, '/');
		name = name ? name + 1 : map.path;
		if (strcmp(name, "libjvm.so") == 0 &&
		    library->count < sizeof(library->parts) / sizeof(*library->parts)) {
			library->parts[library->count].start = map.start;
			library->parts[library->count++].limit = map.limit;
		}
		other |= strncmp(name, "libj9", strlen("libj9")) == 0;
	}
	free(line);
	file_close_stream(file);
	return library->count && !other;
}

/* Reads the first line of a thread's file, without its end. Returns false if there is none. */
static bool read_line(const struct hotspot *h, const char *thread, const char *name, char *line,
		      size_t size)
{
	char path[sizeof("task//schedstat") + NAME_MAX];

	snprintf(path, sizeof(path), "task/%s/%s", thread, name);
	if (file_read_text(h->proc, path, line, size) <= 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/*
 * Whether a thread waits in a function that the library has called. Nothing in /proc says what a
 * process does at a signal; but HotSpot's thread for signals, which it starts before it sets the
 * handler of SIGQUIT, does nothing but wait for one. Others may have threads of this name, the
 * library in their memory and a handler of their own, which ends them; but no thread on whose stack
 * the library's code is to go on.
 */
static bool waits_in_library(const struct hotspot *h, const char *thread,
			     const struct library *library)
{
	uint64_t words[WAIT_WORDS], stack = 0;
	char line[256], *end = NULL, *at;
	ssize_t size = 0;
	int memory;

	/* Its last two words are the stack pointer and the pc. */
	if (read_line(h, thread, "syscall", line, sizeof(line)))
		end = strrchr(line, ' ');
	if (end) {
		*end = '\0';
		at = strrchr(line, ' ');
		stack = at ? strtoull(at + 1, NULL, 16) : 0;
	}
	memory = stack ? openat(h->proc, "mem", O_RDONLY | O_CLOEXEC) : -1;
	if (memory >= 0) {
		size = pread(memory, words, sizeof(words), stack);
		close(memory);
	}
	for (ssize_t i = 0; i < size / (ssize_t)sizeof(*words); i++)
		for (size_t k = 0; k < library->count; k++)
			if (words[i] >= library->parts[k].start &&
			    words[i] < library->parts[k].limit)
				return true;
	return false;
}

/*
 * Sets *runs to whether there is HotSpot's own thread: a program may have mapped the library, but
 * not started it; and *dispatches to whether the thread that SIGQUIT is for is there.
 */
static void find_threads(const struct hotspot *h, const struct library *library, bool *runs,
			 bool *dispatches)
{
	DIR *threads =
		file_directory_stream(openat(h->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;

	*runs = *dispatches = false;
	for (int i = 0; threads && i < THREADS_MAX && (entry = readdir(threads)); i++) {
		char name[32];

		if (!read_line(h, entry->d_name, "comm", name, sizeof(name)))
			continue;
		*runs |= strcmp(name, "VM Thread") == 0;
		*dispatches |= strcmp(name, "Signal Dispatch") == 0 && /* cut to 15 bytes */
			       waits_in_library(h, entry->d_name, library);
		if (*runs && *dispatches)
			break;
	}
	if (threads)
		closedir(threads);
}

static bool has_word(const struct hotspot *h, const char *name, const char *word)
{
	char *text = malloc(WORDS_MAX);
	ssize_t size = text ? file_read_text(h->proc, name, text, WORDS_MAX) : 0;
	bool found = size > 0 && memmem(text, size, word, strlen(word));

	free(text);
	return found;
}

/* Whether it has its map open: an agent in it writes one, which a request would destroy. */
static bool writes_map(const struct hotspot *h)
{
	int fd = openat(h->proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *files = file_directory_stream(fd);
	const struct dirent *entry;
	bool found = false;
	char map[64];

	snprintf(map, sizeof(map), "/tmp/perf-%d.map", h->own_pid);
	for (int i = 0; files && !found && i < FILES_MAX && (entry = readdir(files)); i++) {
		char path[128];
		ssize_t size = readlinkat(fd, entry->d_name, path, sizeof(path) - 1);

		path[size > 0 ? size : 0] = '\0';
		found = strcmp(path, map) == 0;
	}
	if (files)
		closedir(files);
	return found;
}

static bool has_ended(const struct hotspot *h, int timeout_ms)
{
	struct pollfd process = { .fd = h->process, .events = POLLIN };

	return poll(&process, 1, timeout_ms) > 0;
}

static int read_process(struct hotspot *h, struct error *e)
{
	struct library library;
	bool runs, dispatches;
	struct proc_status status;

	if (proc_read_status(h->proc, "status", &status) || !status.own_pid ||
	    !find_library(h, &library))
		return -ENOENT;
	h->own_pid = status.own_pid;
	h->uid = status.uid;
	h->gid = status.gid;
	find_threads(h, &library, &runs, &dispatches);
	if (!runs)
		return -ENOENT;
	if (status.state == 'T' || status.state == 't')
		return error_set(e, 0, "it is stopped");
	if (writes_map(h))
		return error_set(e, 0, "an agent in it writes /tmp/perf-%d.map", h->own_pid);
	if (has_word(h, "cmdline", no_attach) || has_word(h, "environ", no_attach))
		h->no_signal = "it was started with -XX:+DisableAttachMechanism";
	else if (!catches_quit(&status) || !dispatches)
		h->no_signal = "it is not seen to handle SIGQUIT as Java does, with which a "
			       "request begins";
	h->root = openat(h->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (h->root < 0)
		return error_set(e, errno, "cannot open its root directory");
	return 0;
}

/*
 * Looks whether a process is HotSpot and can be asked; may hang, if it is malicious. Returns 0,
 * -ENOENT if it is none, or another negative errno with e set. With 0, h's descriptors stay open:
 * its process ends soon.
 */
static int hotspot_open(pid_t pid, struct hotspot *h, struct error *e)
{
	const int *const fds[] = { &h->process, &h->proc, &h->root };
	int err = -ENOENT;

	*h = (struct hotspot){ .pid = pid, .process = target_open(pid), .root = -1 };
	h->proc = open(proc_path(pid, 0, "").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* If it has not ended by now, /proc/PID is this process's. */
	if (h->process >= 0 && h->proc >= 0 && !has_ended(h, 0))
		err = read_process(h, e);
	for (size_t i = 0; i < 3 && err; i++)
		file_close(*fds[i]);
	return err;
}

/*
 * Creates a file in its /tmp, so that no other user can put a link there. One that is there already
 * must be the user's own. *is_new may be NULL. Returns 0 or a negative errno with e set.
 */
static int create_file(const struct hotspot *h, int tmp, const char *name, bool *is_new,
		       struct error *e)
{
	int fd = openat(tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const char *why = NULL;
	struct stat status;

	if (is_new)
		*is_new = fd >= 0;
	if (fd >= 0)
		return close(fd), 0;
	if (errno != EEXIST || fstatat(tmp, name, &status, AT_SYMLINK_NOFOLLOW))
		return error_set(e, errno, "cannot create /tmp/%s", name);
	if (S_ISLNK(status.st_mode))
		why = "is a symbolic link";
	else if (!S_ISREG(status.st_mode))
		why = "is not a regular file";
	else if (status.st_uid != h->uid)
		why = "belongs to another user";
	else if (status.st_nlink != 1)
		why = "has several names";
	return why ? error_set(e, 0, "/tmp/%s %s", name, why) : 0;
}

/* Returns a connection to its socket or a negative errno: -ENOENT if nobody listens there. */
static int connect_to(const struct hotspot *h, int tmp, struct error *e)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), place, err = 0;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct stat status;
	char name[64];

	if (fd < 0)
		return error_set(e, errno, "cannot make a socket");
	snprintf(name, sizeof(name), ".java_pid%d", h->own_pid);
	place = openat(tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0 && errno == ENOENT) {
		close(fd);
		return -ENOENT;
	}
	if (place < 0)
		err = error_set(e, errno, "/tmp/%s is no socket of its user", name);
	else if (fstat(place, &status) || !S_ISSOCK(status.st_mode) || status.st_uid != h->uid)
		err = error_set(e, 0, "/tmp/%s is no socket of its user", name);
	if (!err) {
		/* Not by its name, which may be another's by now. */
		snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place);
		if (connect(fd, (const struct sockaddr *)&address, sizeof(address)))
			/* ECONNREFUSED: of an earlier process */
			err = errno == ECONNREFUSED
				      ? -ENOENT
				      : error_set(e, errno, "cannot connect to /tmp/%s", name);
	}
	file_close(place);
	if (!err && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid != h->pid))
		err = error_set(e, 0, "another process listens at its socket /tmp/%s", name);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Makes it open its socket. Returns a connection or a negative errno with e set. */
static int attach(const struct hotspot *h, int tmp, uint64_t until_ns, struct error *e)
{
	struct proc_status status;
	char name[64];
	bool is_new;
	int fd;

	if (h->no_signal)
		return error_set(e, 0, "%s", h->no_signal);
	snprintf(name, sizeof(name), ".attach_pid%d", h->own_pid);
	fd = create_file(h, tmp, name, &is_new, e);
	if (fd)
		return fd;
	/* Once more, at the last moment: an exec since resets what it does at a signal. */
	if (proc_read_status(h->proc, "status", &status) || !catches_quit(&status))
		fd = error_set(e, 0, "it does not handle SIGQUIT any more");
	else if (syscall(SYS_pidfd_send_signal, h->process, SIGQUIT, NULL, 0))
		fd = error_set(e, errno, "cannot send it SIGQUIT");
	while (!fd && (fd = connect_to(h, tmp, e)) == -ENOENT) {
		if (has_ended(h, SOCKET_NS / NS_PER_MS))
			fd = error_set(e, 0, "it ended before it answered");
		else if (now_ns() >= until_ns)
			fd = error_set(e, 0, "it does not open its socket /tmp/.java_pid%d",
				       h->own_pid);
		else
			fd = 0;
	}
	if (is_new)
		unlinkat(tmp, name, 0);
	return fd;
}

/* Sends the request and reads the answer: a line with a number, 0 for success, and a text. */
static int request_map(const struct hotspot *h, int fd, uint64_t until_ns, struct error *e)
{
	/* The protocol's version, the command and three arguments */
	static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";
	char answer[512] = "", rest[4096], *text;
	size_t sum = 0;
	ssize_t size;

	if (send(fd, request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return error_set(e, errno, "cannot send it a request");
	for (;;) {
		struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
					{ .fd = h->process, .events = POLLIN } };
		uint64_t now = now_ns();

		if (now >= until_ns)
			return error_set(e, 0, "it does not answer");
		if (poll(fds, 2, (until_ns - now) / NS_PER_MS + 1) < 0 && errno != EINTR)
			return error_set(e, errno, "cannot wait for its answer");
		size = sum < sizeof(answer) - 1
			       ? recv(fd, answer + sum, sizeof(answer) - 1 - sum, 0)
			       : recv(fd, rest, sizeof(rest), 0);
		if (size == 0)
			break;
		if (size > 0 && (sum += size) > ANSWER_MAX)
			return error_set(e, 0, "its answer has more than %zu bytes", ANSWER_MAX);
		if (size < 0 && errno != EAGAIN && errno != EINTR)
			return error_set(e, errno, "cannot read its answer");
		if (size < 0 && fds[1].revents)
			return error_set(e, 0, "it ended before it answered");
	}
	if (strncmp(answer, "0\n", 2) == 0)
		return 0;
	text = strchr(answer, '\n');
	text = text ? text + 1 : answer;
	text[strcspn(text, "\n")] = '\0';
	error_set(e, 0, "it refuses Compiler.perfmap, which Java 17 or later has%s%s",
		  *text ? ": " : "", text);
	return -EOPNOTSUPP;
}

/* The CPU time that it has used for requests: that of a thread of its own. */
static uint64_t requests_cpu_ns(const struct hotspot *h)
{
	DIR *threads =
		file_directory_stream(openat(h->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	uint64_t ns = 0;

	for (int i = 0; threads && i < THREADS_MAX && (entry = readdir(threads)); i++) {
		char text[64];

		if (read_line(h, entry->d_name, "comm", text, sizeof(text)) &&
		    strcmp(text, "Attach Listener") == 0 &&
		    read_line(h, entry->d_name, "schedstat", text, sizeof(text)))
			ns += strtoull(text, NULL, 10);
	}
	if (threads)
		closedir(threads);
	return ns;
}

/*
 * Makes the process write its map, until a time by CLOCK_MONOTONIC. The calling process becomes one
 * of the JVM's user and group without capabilities: call it in a child of its own. *cpu_ns: the CPU
 * time that the JVM has used for it; 0: unknown. Returns 0 or a negative errno with e set.
 */
static int hotspot_write_map(const struct hotspot *h, uint64_t until_ns, uint64_t *cpu_ns,
			     struct error *e)
{
	uint64_t before_ns = requests_cpu_ns(h);
	struct stat status;
	char map[64];
	cap_t none = cap_init();
	int tmp, fd, err = 0;

	*cpu_ns = 0;
	if (!none ||
	    ((geteuid() != h->uid || getegid() != h->gid) &&
	     (setgroups(0, NULL) || setresgid(h->gid, h->gid, h->gid) ||
	      setresuid(h->uid, h->uid, h->uid))) ||
	    cap_set_proc(none))
		err = error_set(e, errno, "cannot become its user, uid %u", h->uid);
	cap_free(none);
	if (err)
		return err;
	tmp = file_open_in(h->root, "/tmp", O_PATH | O_DIRECTORY);
	if (tmp < 0)
		return error_set(e, -tmp, "cannot open its /tmp");
	snprintf(map, sizeof(map), "perf-%d.map", h->own_pid);
	fd = connect_to(h, tmp, e);
	if (fd == -ENOENT)
		fd = attach(h, tmp, until_ns, e);
	/* The JVM would follow a link. This file is the user's, so that no other can replace it. */
	err = fd < 0 ? fd : create_file(h, tmp, map, NULL, e);
	err = err ?: request_map(h, fd, until_ns, e);
	if (!err && (fstatat(tmp, map, &status, AT_SYMLINK_NOFOLLOW) || !status.st_size))
		err = error_set(e, 0, "it wrote no /tmp/%s", map);
	if (err && fd >= 0 && fstatat(tmp, map, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(status.st_mode) && !status.st_size)
		unlinkat(tmp, map, 0);
	file_close(fd);
	close(tmp);
	*cpu_ns = requests_cpu_ns(h) - before_ns;
	return err;
}

/*
 * A request must be answered within, and so must all those after the recording.
 * Bound: users: time for a Java process to answer; then: its child is killed: code has no names;
 * again: at the next request, after intervals that double up to 2 s; share: the process's own;
 * seen: in a warning.
 */
#define ANSWER_NS (2 * NS_PER_S)

/*
 * What a child process may need longer, to remove its file, before it is killed.
 * Bound: as ANSWER_NS.
 */
#define CHILD_SLACK_NS (200 * NS_PER_MS)

/*
 * The time until the first request, and between two of them: it doubles, up to a limit, since what
 * is compiled after the last one has no names if the process ends by itself,.
 * Bound: pace.
 */
#define FIRST_NS (250 * NS_PER_MS)
#define MOST_NS	 (2 * NS_PER_S)

/*
 * and is at least this many times the CPU time of an answer. Not of the time that it took: on a
 * busy machine an answer waits for a CPU.
 * Bound: pace.
 */
#define COST_SHARE 100

/*
 * Bound: users: Java processes that are asked in one recording; then: further ones are not asked:
 * their code has no names; again: never in this recording; share: none; seen: as code without
 * symbols.
 */
#define PROCESSES_MAX 512
/*
 * Bound: users: processes that are asked at once; then: the others wait; again: when one has
 * answered; share: none; seen: as code without symbols, at the recording's end.
 */
#define CHILDREN_MAX 16 /* at once */
/* Bound: pace. */
#define LOOK_NS (250 * NS_PER_MS) /* between two looks for new processes */

/* What a child process leaves in memory that it shares with us. */
struct report {
	bool is_runtime; /* else it has ended, too */
	int err;
	uint64_t took_ns;
	uint64_t cpu_ns; /* of that, the JVM's CPU time; 0: unknown */
	char why[sizeof(((struct error *)0)->what)];
};

/* A process with code made at run time. */
struct asked {
	pid_t pid;
	uint32_t generation; /* see struct capture_sample */
	uint64_t start_ns;   /* see target_start_ns() */
	bool is_runtime;
	bool finished; /* it was asked after the recording, or cannot be */
	uint64_t next_ns, interval_ns;
	pid_t child;  /* that asks it; 0: none */
	int child_fd; /* readable once it has ended */
	struct report *report;
	uint64_t began_ns; /* when it began */
	unsigned int answers;
	uint64_t longest_ns; /* until an answer */
	char why[sizeof(((struct error *)0)->what)];
};

struct runtime_asker {
	struct asked *processes;
	size_t count, room;
	size_t children;
	uint64_t next_look_ns;
	uint64_t limit_ns; /* after the recording: until when; else 0 */
};

struct runtime_asker *runtime_asker_new(void)
{
	return calloc(1, sizeof(struct runtime_asker));
}

/* One that has not ended may hang in a file system, and is left behind. */
static void end_child(struct runtime_asker *a, struct asked *p, bool has_ended)
{
	if (!has_ended) {
		kill(p->child, SIGKILL);
		waitpid(p->child, NULL, WNOHANG);
	}
	close(p->child_fd);
	munmap(p->report, sizeof(*p->report));
	p->child = 0;
	a->children--;
}

void runtime_asker_free(struct runtime_asker *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++)
		if (a->processes[i].child)
			end_child(a, &a->processes[i], false);
	free(a->processes);
	free(a);
}

static void fail(struct asked *p, const char *why)
{
	snprintf(p->why, sizeof(p->why), "%s", why);
}

/*
 * Starts a child process that asks: whatever it opens or reads of the process may hang, if that is
 * malicious.
 */
static void ask(struct runtime_asker *a, struct asked *p)
{
	struct report *report;
	struct hotspot h;
	struct error e;

	p->began_ns = now_ns();
	p->next_ns = p->began_ns + p->interval_ns;
	if (p->interval_ns < MOST_NS)
		p->interval_ns *= 2;
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED) {
		fail(p, strerror(errno));
		return;
	}
	/*
	 * Not fork(2): with descriptors of its own of our events and programs, a child would have
	 * ticks counted after the recording. It leaves the table that it shares, without them,
	 * before it opens any.
	 */
	p->child = syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD, NULL, &p->child_fd, NULL,
			   NULL);
	if (p->child == 0) {
		uint64_t begin_ns = now_ns(), until_ns = begin_ns + ANSWER_NS;

		if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE))
			_exit(1);
		if (a->limit_ns && a->limit_ns < until_ns)
			until_ns = a->limit_ns;
		report->err = hotspot_open(p->pid, &h, &e);
		/* The PID may be another process's by now. */
		report->is_runtime =
			report->err != -ENOENT && target_start_ns(p->pid) == p->start_ns;
		if (!report->err && report->is_runtime)
			report->err = hotspot_write_map(&h, until_ns, &report->cpu_ns, &e);
		report->took_ns = now_ns() - begin_ns;
		if (report->err && report->is_runtime)
			snprintf(report->why, sizeof(report->why), "%s", e.what);
		_exit(0);
	}
	if (p->child < 0) {
		fail(p, strerror(errno));
		munmap(report, sizeof(*report));
		p->child = 0;
		return;
	}
	p->report = report;
	a->children++;
}

/* Takes the reports of children, and ends those that are late. True: one has names. */
static bool take_reports(struct runtime_asker *a)
{
	bool any = false;

	for (size_t i = 0; i < a->count; i++) {
		struct asked *p = &a->processes[i];
		uint64_t now = now_ns();
		struct report report = { p->is_runtime, -EIO, ANSWER_NS, 0, "it does not answer" };
		bool has_ended;
		int status;

		if (!p->child)
			continue;
		has_ended = waitpid(p->child, &status, WNOHANG) == p->child;
		if (!has_ended && now - p->began_ns < ANSWER_NS + CHILD_SLACK_NS)
			continue;
		if (has_ended && status == 0) /* else it hangs, or the user has killed it */
			report = *p->report;
		end_child(a, p, has_ended);
		if (!report.is_runtime)
			continue;
		p->is_runtime = true;
		report.why[sizeof(report.why) - 1] = '\0';
		fail(p, report.why);
		p->answers += !report.err;
		any |= !report.err;
		if (!report.err && report.took_ns > p->longest_ns)
			p->longest_ns = report.took_ns;
		report.took_ns = MIN(report.took_ns, ANSWER_NS + CHILD_SLACK_NS);
		/* What it writes into memory that we share is no more than a hint. */
		if (!report.cpu_ns || report.cpu_ns > report.took_ns || report.err)
			report.cpu_ns = report.took_ns;
		p->next_ns = MAX(p->next_ns, now + report.cpu_ns * COST_SHARE);
	}
	return any;
}

/* Adds a process that is new. */
static void note_process(pid_t pid, uint32_t generation, void *context)
{
	struct runtime_asker *a = context;

	for (size_t i = 0; i < a->count; i++)
		if (a->processes[i].pid == pid && a->processes[i].generation == generation)
			return;
	if (a->count == PROCESSES_MAX ||
	    array_reserve(&a->processes, &a->room, a->count + 1, sizeof(*a->processes)))
		return;
	a->processes[a->count++] = (struct asked){
		.pid = pid,
		.generation = generation,
		.start_ns = target_start_ns(pid),
		.next_ns = now_ns() + FIRST_NS,
		.interval_ns = FIRST_NS,
	};
}

bool runtime_asker_poll(struct runtime_asker *a, const struct capture *c)
{
	uint64_t now = now_ns();
	bool any;

	if (now >= a->next_look_ns) {
		capture_each_nameless(c, note_process, a);
		a->next_look_ns = now + LOOK_NS;
	}
	any = take_reports(a);
	for (size_t i = 0; i < a->count && a->children < CHILDREN_MAX; i++)
		if (!a->processes[i].child && a->processes[i].next_ns <= now)
			ask(a, &a->processes[i]);
	return any;
}

void runtime_asker_finish(struct runtime_asker *a, const struct capture *c)
{
	struct pollfd fds[CHILDREN_MAX];

	capture_each_nameless(c, note_process, a);
	a->limit_ns = now_ns() + ANSWER_NS;
	for (;;) {
		uint64_t now;
		nfds_t count = 0;

		take_reports(a);
		now = now_ns();
		for (size_t i = 0; i < a->count; i++) {
			struct asked *p = &a->processes[i];

			if (!p->child && !p->finished && a->children < CHILDREN_MAX &&
			    now < a->limit_ns) {
				p->finished = true;
				ask(a, p);
			}
			if (p->child)
				fds[count++] = (struct pollfd){ p->child_fd, POLLIN, 0 };
		}
		if (!count || now >= a->limit_ns + CHILD_SLACK_NS)
			break;
		poll(fds, count, 20);
	}
	for (size_t i = 0; i < a->count; i++) {
		struct asked *p = &a->processes[i];

		if (p->child)
			end_child(a, p, false);
		else if (p->finished)
			continue;
		fail(p, "there was no time left to ask it");
	}
}

void runtime_asker_each(const struct runtime_asker *a,
			void (*visit)(const struct asked_runtime *runtime, void *context),
			void *context)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct asked *p = &a->processes[i];
		struct asked_runtime runtime = {
			.name = "Java",
			.pid = p->pid,
			.answers = p->answers,
			.longest_ns = p->longest_ns,
			.why = p->why,
		};

		if (p->is_runtime)
			visit(&runtime, context);
	}
}
