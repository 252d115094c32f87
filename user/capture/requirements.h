/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_REQUIREMENTS_H
#define PROFIL_CAPTURE_REQUIREMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* What recording requires of the machine and of the process, and whether that is met. */

enum requirement_state {
	REQUIREMENT_OK,
	REQUIREMENT_LIMITED, /* not fully met: recording works, but less can be done */
	REQUIREMENT_NO,	     /* not met: nothing can be recorded */
	REQUIREMENT_ABSENT,  /* optional, and not there */
};

struct requirement {
	const char *name;
	enum requirement_state state;
	struct error finding; /* the finding, in every state, and a hint how to fix it */
	const char *better;   /* what would be better if it were met; NULL: the finding says it */
};

/* Bound: size. */
#define REQUIREMENTS_MAX 32

struct requirements {
	struct requirement list[REQUIREMENTS_MAX];
	size_t count;
};

/* Adds a requirement; the cause is one sentence. Returns it, to add a hint. */
struct requirement *requirement_add(struct requirements *r, const char *name,
				    enum requirement_state state, const char *cause, ...)
	__attribute__((format(printf, 4, 5)));

/* How to get a kernel that describes its types. */
#define REQUIREMENT_BTF_HINT                                                                \
	"boot a kernel of a distribution, or one built with CONFIG_DEBUG_INFO_BTF=y; in a " \
	"container, mount /sys"

/* A sysctl that is missing or unreadable; -1 is a valid value. */
#define SYSCTL_UNKNOWN INT32_MIN

/* What is known of the machine and the process: the input of requirements_judge(). */
struct requirement_facts {
	char release[65]; /* from uname(2) */
	char machine[65];
	char program[256];     /* the path of the executable, for setcap(8) */
	int bpf_code;	       /* errno of loading a perf_event program; 0: it works */
	int perf_code;	       /* errno of opening a perf event; 0: it works */
	bool cycles;	       /* the PMU counts cycles */
	bool btf;	       /* the kernel has BTF */
	bool kernel_addresses; /* visible to this process */
	char lockdown[64];     /* "none [integrity] confidentiality", or empty */
	int paranoid;	       /* kernel.perf_event_paranoid */
	int unprivileged_bpf;  /* kernel.unprivileged_bpf_disabled */
	int kptr_restrict;
	int sample_rate;	      /* kernel.perf_event_max_sample_rate */
	int stack_depth;	      /* kernel.perf_event_max_stack */
	uint64_t effective, bounding; /* capabilities, as bits */
	bool user_namespace; /* not the initial one: the capabilities are valid in it only */
	bool seccomp;	     /* system calls are filtered */
	uint64_t open_files; /* the hard limit */
};

/* Sets the hint: how to get a capability or, if the process has it, how to find the cause. */
void requirement_hint(struct error *e, const struct requirement_facts *f, unsigned int capability);

/* Reads the facts from the kernel; changes nothing. */
void requirements_gather(struct requirement_facts *f);

/* Adds the requirements that can be judged without a recording. */
void requirements_judge(const struct requirement_facts *f, struct requirements *r);

/*
 * Records this process for a moment, which is the only proof, and adds the result. Returns 0, or
 * the negative errno of the recording with *e set.
 */
int requirements_try(const struct requirement_facts *f, struct requirements *r, struct error *e);

/* Adds whether a process can be recorded. Returns 0, or a negative errno with *e set. */
int requirements_of_process(pid_t pid, const struct requirement_facts *f, struct requirements *r,
			    struct error *e);

#endif
