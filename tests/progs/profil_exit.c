// SPDX-License-Identifier: GPL-2.0-only
/*
 * profil_exit HOW: exits, or ends its first thread, after something that costs nothing at exit or
 * must not be done there. It gets libprofil preloaded and includes the C library's headers alone.
 *   strict       a filter of seccomp(2) ends who makes a call that a program without libprofil does
 *                not make at its end; profil() was never called
 *   strict-last  the same; the first thread ends by pthread_exit(3)
 *   off          the same as strict, but profil() was on and has been turned off
 *   handlers N   profil() is on, and N functions are registered by atexit(3), which print how many
 *                were called
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned short cells[4096];

int main(int argc, char **argv);

static void turn_on(void)
{
	if (profil(cells, sizeof(cells), (size_t)main & -4096UL, 0x10000)) {
		perror("profil");
		exit(1);
	}
}

/* What the C library needs for output and for its own end of a process or thread. */
static void allow_little(void)
{
	static const int calls[] = {
		SYS_write,   SYS_exit_group, SYS_exit,	       SYS_futex,
		SYS_madvise, SYS_munmap,     SYS_rt_sigreturn, SYS_newfstatat
	};
	struct sock_filter filter[2 * sizeof(calls) / sizeof(*calls) + 2];
	struct sock_fprog program = { .filter = filter };

	filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							     offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		filter[program.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		filter[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[program.len++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		exit(1);
	}
}

static int called;

static void handler(void)
{
	called++;
}

static void print_called(void)
{
	printf("%d handlers\n", called);
}

static void register_handlers(int count)
{
	atexit(print_called);
	while (count--)
		atexit(handler);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (strcmp(how, "handlers") == 0) {
		turn_on();
		register_handlers(argc > 2 ? atoi(argv[2]) : 1);
		return 0;
	}
	if (strcmp(how, "off") == 0) {
		turn_on();
		profil(cells, 0, 0, 0);
	} else if (strncmp(how, "strict", 6) != 0) {
		return 2;
	}
	puts("well");
	dlopen("libgcc_s.so.1", RTLD_NOW); /* which pthread_exit(3) would do */
	allow_little();
	if (strcmp(how, "strict-last") == 0)
		pthread_exit(NULL);
	return 0;
}
