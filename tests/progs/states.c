// SPDX-License-Identifier: GPL-2.0-only
/*
 * states SECONDS: threads of several kinds of program, which wait as such programs do. Their names
 * say what their authors would say of them: i- is idle most of the time, b- is blocked. Ends after
 * SECONDS.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_US 20000

/* Without a call between it and the caller: where a thread waits is where it is called. */
#define each_time while (true)

static void must(bool done, const char *what)
{
	if (!done) {
		perror(what);
		exit(1);
	}
}

struct start {
	const char *name;
	void (*run)(const void *argument);
	const void *argument;
};

static void *run_thread(void *context)
{
	const struct start *s = context;

	s->run(s->argument);
	return NULL;
}

static void start_thread(const char *name, void (*run)(const void *argument), const void *argument)
{
	struct start *s = malloc(sizeof(*s));
	pthread_t thread;
	char own[16];

	*s = (struct start){ name, run, argument };
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, name); /* which it inherits: it has no other one */
	must(pthread_create(&thread, NULL, run_thread, s) == 0, "pthread_create");
	prctl(PR_SET_NAME, own);
}

/* --- Locks: one holds it, and another one wants it in its main loop --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void hold_locks(const void *unused)
{
	(void)unused;
	each_time
	{
		pthread_mutex_lock(&lock);
		pthread_rwlock_wrlock(&rwlock);
		usleep(PAUSE_US);
		pthread_rwlock_unlock(&rwlock);
		pthread_mutex_unlock(&lock);
		usleep(100);
	}
}

static void want_mutex(const void *unused)
{
	(void)unused;
	each_time
	{
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		usleep(50);
	}
}

static void want_rwlock(const void *unused)
{
	(void)unused;
	each_time
	{
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		usleep(50);
	}
}

/* --- A pool, one of whose threads sleeps once at its start --- */

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_there = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static volatile unsigned int jobs;

__attribute__((noinline)) static void next_job(void)
{
	pthread_mutex_lock(&jobs_lock);
	while (!jobs)
		pthread_cond_wait(&jobs_there, &jobs_lock);
	jobs--;
	pthread_mutex_unlock(&jobs_lock);
}

static void work_in_pool(const void *is_late)
{
	if (is_late)
		usleep(5000);
	each_time next_job();
}

static void work_by_semaphore(const void *unused)
{
	(void)unused;
	each_time sem_wait(&semaphore);
}

static void keep_time(const void *unused)
{
	(void)unused;
	each_time
	{
		usleep(PAUSE_US);
		pthread_mutex_lock(&jobs_lock);
		jobs++;
		pthread_cond_signal(&jobs_there);
		pthread_mutex_unlock(&jobs_lock);
		sem_post(&semaphore);
	}
}

/* --- Servers with a thread for each client, a proxy, and clients --- */

struct server {
	const char *served; /* the name of a thread for a client */
	int family, listener;
	bool slow, forwards; /* it works before it answers; it asks another one */
	union {
		struct sockaddr any;
		struct sockaddr_in ip;
		struct sockaddr_un un;
	};
	socklen_t size;
};

enum {
	FAST,
	SLOW,
	UNIX,
	PROXY
};
static struct server servers[] = {
	[FAST] = { "i-served", AF_INET, .slow = false },
	[SLOW] = { "served", AF_INET, .slow = true },
	[UNIX] = { "i-unix-served", AF_UNIX, .slow = false },
	[PROXY] = { "b-proxy", AF_INET, .forwards = true },
};

static void listen_for_clients(struct server *s)
{
	s->listener = socket(s->family, SOCK_STREAM, 0);
	s->any.sa_family = s->family;
	s->size = s->family == AF_INET ? sizeof(s->ip) : sizeof(sa_family_t); /* any name */
	if (s->family == AF_INET)
		s->ip.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(bind(s->listener, &s->any, s->size) == 0, "bind");
	s->size = sizeof(s->un);
	must(listen(s->listener, 8) == 0 && getsockname(s->listener, &s->any, &s->size) == 0,
	     "listen");
}

static int connect_to(const struct server *s)
{
	int fd = socket(s->family, SOCK_STREAM, 0);

	must(connect(fd, &s->any, s->size) == 0, "connect");
	return fd;
}

struct client {
	const struct server *server;
	int fd;
};

static void serve_client(const void *argument)
{
	const struct client *client = argument;
	int other = client->server->forwards ? connect_to(&servers[SLOW]) : -1;
	char c;

	while (recv(client->fd, &c, 1, 0) == 1) {
		if (client->server->slow)
			usleep(PAUSE_US);
		if (other >= 0)
			must(write(other, &c, 1) == 1 && read(other, &c, 1) == 1, "forward");
		must(send(client->fd, &c, 1, 0) == 1, "send");
	}
}

static void accept_clients(const void *server)
{
	each_time
	{
		struct client *client = malloc(sizeof(*client));

		client->server = server;
		client->fd = accept(client->server->listener, NULL, NULL);
		start_thread(client->server->served, serve_client, client);
	}
}

static void ask_at_once(const void *server)
{
	int fd = connect_to(server);
	char c = 'c';

	each_time must(write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1, "ask");
}

static void ask_and_poll(const void *server)
{
	struct pollfd answer = { .fd = connect_to(server), .events = POLLIN };
	char c = 'c';

	each_time must(write(answer.fd, &c, 1) == 1 && poll(&answer, 1, -1) == 1 &&
			       read(answer.fd, &c, 1) == 1,
		       "ask");
}

static void ask_now_and_then(const void *server)
{
	int fd = connect_to(server);
	char c = 'c';

	each_time
	{
		must(write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1, "ask");
		usleep(PAUSE_US);
	}
}

static void serve_datagrams(const void *unused)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(19999) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char c;

	(void)unused;
	/* Any port, which it chooses itself, as servers do. */
	for (int port = 20000; bind(fd, (struct sockaddr *)&own, sizeof(own)); port++)
		own.sin_port = htons(port);
	recv(fd, &c, 1, 0);
}

/* --- A loop of events, of which none comes; a pipeline; a child --- */

static void wait_for_events(const void *unused)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0), ends[2];

	(void)unused;
	must(pipe(ends) == 0 && epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll");
	each_time epoll_wait(set, &event, 1, -1);
}

static int slow_pipe[2], quick_pipe[2];

static void read_slowly(const void *unused)
{
	char bytes[4096];

	(void)unused;
	each_time
	{
		must(read(slow_pipe[0], bytes, sizeof(bytes)) > 0, "read");
		usleep(PAUSE_US);
		must(write(quick_pipe[1], bytes, 1) == 1, "write");
	}
}

static void write_much(const void *unused)
{
	static const char bytes[4096];

	(void)unused;
	each_time must(write(slow_pipe[1], bytes, sizeof(bytes)) > 0, "write");
}

static void read_next(const void *unused)
{
	char c;

	(void)unused;
	each_time must(read(quick_pipe[0], &c, 1) == 1, "read");
}

static void wait_for_child(const void *unused)
{
	pid_t child = fork();

	(void)unused;
	if (child == 0) {
		prctl(PR_SET_NAME, "child");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void *sleep_for_good(void *unused)
{
	prctl(PR_SET_NAME, "sleeper");
	pause();
	return unused;
}

static void wait_for_thread(const void *unused)
{
	pthread_t thread;

	(void)unused;
	must(pthread_create(&thread, NULL, sleep_for_good, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static const struct start kinds[] = {
		{ "holder", hold_locks, NULL },
		{ "b-mutex", want_mutex, NULL },
		{ "b-rwlock", want_rwlock, NULL },
		{ "i-pool", work_in_pool, NULL },
		{ "i-pool-late", work_in_pool, "late" },
		{ "i-semaphore", work_by_semaphore, NULL },
		{ "i-timer", keep_time, NULL },
		{ "i-accept", accept_clients, &servers[FAST] },
		{ "i-accept-slow", accept_clients, &servers[SLOW] },
		{ "i-accept-unix", accept_clients, &servers[UNIX] },
		{ "i-accept-proxy", accept_clients, &servers[PROXY] },
		{ "client", ask_now_and_then, &servers[FAST] },
		{ "unix-client", ask_now_and_then, &servers[UNIX] },
		{ "b-client", ask_at_once, &servers[SLOW] },
		{ "b-client-polls", ask_and_poll, &servers[SLOW] },
		{ "b-client-proxy", ask_at_once, &servers[PROXY] },
		{ "i-datagrams", serve_datagrams, NULL },
		{ "i-events", wait_for_events, NULL },
		{ "b-writer", write_much, NULL },
		{ "reader", read_slowly, NULL },
		{ "i-stage", read_next, NULL },
		{ "b-child", wait_for_child, NULL },
		{ "b-join", wait_for_thread, NULL },
	};

	must(argc == 2, "usage: states SECONDS");
	must(pipe(slow_pipe) == 0 && pipe(quick_pipe) == 0, "pipe");
	for (size_t i = 0; i < sizeof(servers) / sizeof(*servers); i++)
		listen_for_clients(&servers[i]);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		start_thread(kinds[i].name, kinds[i].run, kinds[i].argument);
	usleep(atof(argv[1]) * 1e6);
	_exit(0);
}
