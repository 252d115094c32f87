// SPDX-License-Identifier: GPL-2.0-only
/*
 * seccomp bpf|openat2|perf_event_open|perf_odd_cpu ERRNO COMMAND...: runs a command with a filter
 * that refuses this system call; the last is perf_event_open, only for the CPUs 1, 3, ...
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;

	const unsigned int call = strcmp(argv[1], "bpf") == 0	    ? SYS_bpf
				  : strcmp(argv[1], "openat2") == 0 ? SYS_openat2
								    : SYS_perf_event_open;
	const unsigned int code = strtoul(argv[2], NULL, 10);
	const bool odd = strcmp(argv[1], "perf_odd_cpu") == 0;
	/* Of this word one of these bits has to be set: of the number always one is. */
	const unsigned int word =
		odd ? offsetof(struct seccomp_data, args[2]) : offsetof(struct seccomp_data, nr);
	const unsigned int bits = odd ? 1 : ~0U;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		return 99;
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 99;
}
