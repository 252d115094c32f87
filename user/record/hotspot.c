// SPDX-License-Identifier: GPL-2.0-only
#include "record/hotspot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/target.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/proc.h"
#include "util/proc_maps.h"

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
#define LOOK_NS (5 * NS_PER_MS) /* between two looks for the socket */

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
	if (file)
		fclose(file);
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

int hotspot_open(pid_t pid, struct hotspot *h, struct error *e)
{
	const int *const fds[] = { &h->process, &h->proc, &h->root };
	int err = -ENOENT;

	*h = (struct hotspot){ .pid = pid, .process = target_open(pid), .root = -1 };
	h->proc = open(proc_path(pid, 0, "").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* If it has not ended by now, /proc/PID is this process's. */
	if (h->process >= 0 && h->proc >= 0 && !has_ended(h, 0))
		err = read_process(h, e);
	for (size_t i = 0; i < 3 && err; i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
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
	if (place >= 0)
		close(place);
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
		if (has_ended(h, LOOK_NS / NS_PER_MS))
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

int hotspot_write_map(const struct hotspot *h, uint64_t until_ns, uint64_t *cpu_ns, struct error *e)
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
	if (fd >= 0)
		close(fd);
	close(tmp);
	*cpu_ns = requests_cpu_ns(h) - before_ns;
	return err;
}
