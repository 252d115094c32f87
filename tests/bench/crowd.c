// SPDX-License-Identifier: GPL-2.0-only
/*
 * crowd CLIENTS BUSY: so many processes that turn profil() on, one after the other. The last BUSY
 * of them run then, the others sleep. Prints "ready" when all are there; they end when it does.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "legacy.h"

static void run_client(bool busy, int done)
{
	unsigned short *cells;
	size_t size;

	require(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "prctl");
	cells = make_cells(&size);
	profil_on(cells, size);
	require(write(done, "", 1) == 1, "write");
	close(done);
	while (!busy)
		pause();
	for (;;)
		;
}

/* Returns when it is on. */
static void start_client(bool busy)
{
	int done[2];
	pid_t pid;
	char byte;

	require(pipe(done) == 0, "pipe");
	pid = fork();
	require(pid >= 0, "fork");
	if (pid == 0)
		run_client(busy, done[1]);
	close(done[1]);
	require(read(done[0], &byte, 1) == 1, "a client's profil");
	close(done[0]);
}

int main(int argc, char **argv)
{
	unsigned long clients, busy;

	if (argc != 3) {
		fprintf(stderr, "usage: crowd CLIENTS BUSY\n");
		return 2;
	}
	clients = strtoul(argv[1], NULL, 10);
	busy = strtoul(argv[2], NULL, 10);
	require_backend();
	for (unsigned long i = 0; i < clients; i++)
		start_client(clients - i <= busy);
	say_ready();
	for (;;)
		pause();
}
