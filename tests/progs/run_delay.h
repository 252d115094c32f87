/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by run_delay.c and its BPF program. */
struct thread_account {
	unsigned long long tid, pid, start_ns, delay_ns, cpu;
};
