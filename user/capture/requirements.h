/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_REQUIREMENTS_H
#define PROFIL_CAPTURE_REQUIREMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* What recording needs of the machine and of whoever runs it, and what is there of it. */

enum requirement_state {
	REQUIREMENT_OK,
	REQUIREMENT_LIMITED, /* recording works, but something is missing from what it can do */
	REQUIREMENT_NO,	     /* and without it nothing can be recorded */
	REQUIREMENT_ABSENT,  /* and optional */
};

struct requirement {
	const char *name;
	enum requirement_state state;
	struct error told; /* the cause, whatever the state, and how to mend it */
};

#define REQUIREMENTS_MAX 32

struct requirements {
	struct requirement list[REQUIREMENTS_MAX];
	size_t count;
};

/* Adds one. The cause is one sentence in plain words. Returns it, for more to be said. */
struct requirement *requirement_add(struct requirements *r, const char *name,
				    enum requirement_state state, const char *cause, ...)
	__attribute__((format(printf, 4, 5)));

/* A sysctl that is not there, or cannot be read: they may be -1. */
#define SYSCTL_UNKNOWN INT32_MIN

/* What requirements_judge() goes by. */
struct requirement_facts {
	char release[65]; /* as uname(2) has them */
	char machine[65];
	char program[256];     /* the file that runs: setcap(8) takes it */
	int bpf_code;	       /* errno of loading a BPF program for perf events; 0: it works */
	int perf_code;	       /* the same of a perf event of this process */
	bool cycles;	       /* there is a PMU */
	bool btf;	       /* of the kernel */
	bool kernel_addresses; /* shown to this process */
	char lockdown[64];     /* "none [integrity] confidentiality", or empty */
	int paranoid;	       /* kernel.perf_event_paranoid */
	int unprivileged_bpf;  /* kernel.unprivileged_bpf_disabled */
	int kptr_restrict;
	int sample_rate;	      /* kernel.perf_event_max_sample_rate */
	int stack_depth;	      /* kernel.perf_event_max_stack */
	uint64_t effective, bounding; /* capabilities, as bits */
	bool user_namespace;	      /* another one than the machine's: capabilities are of it */
	bool seccomp;		      /* a filter of system calls is on */
	uint64_t open_files;	      /* the hard limit */
};

/* Says how to come by a capability, or what else may be the cause where it is there. */
void requirement_mend(struct error *e, const struct requirement_facts *f, unsigned int capability);

/* Asks the kernel; changes nothing. */
void requirements_gather(struct requirement_facts *f);

/* Adds what recording needs, as far as it can be told without one. */
void requirements_judge(const struct requirement_facts *f, struct requirements *r);

/*
 * The only proof: records this process for a moment, and adds what came of it. Returns 0, or a
 * negative errno with e set, as a recording would have failed.
 */
int requirements_try(const struct requirement_facts *f, struct requirements *r, struct error *e);

/* Adds whether a process can be recorded. Returns as requirements_try(). */
int requirements_of_process(pid_t pid, const struct requirement_facts *f, struct requirements *r,
			    struct error *e);

#endif
