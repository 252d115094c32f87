/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CHANGES_H
#define PROFIL_REPORT_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/packages.h"
#include "profile/build_id.h"
#include "profile/profile.h"
#include "report/report.h"
#include "report/row_view.h"
#include "util/clock.h"
#include "util/input.h"

/*
 * What became more expensive with a deploy. A service is a unit, or a container, of a host; a
 * deploy is a new build of one of its images, or the start of all its processes anew. Windows are
 * added in the order of their times; then deploys are found, and the service's time before and
 * after each is compared.
 *
 * The load is seldom the same, so neither seconds nor shares tell what a service's work costs: in
 * one in which a function becomes slower, the shares of all others fall. So shares are scaled by
 * the median of their ratios, by which most functions cost the same before and after. Of what is
 * left, chance is judged by how much a service's shares scatter from one part of its time to
 * another (not by the number of ticks alone: loads have hours), with Student's t and Welch's
 * degrees of freedom. What takes the same part of its caller's time as before, scaled like that
 * among all that the caller calls, did not change itself: the mixture of requests did, or the
 * caller. And as many functions are compared, they are corrected like all views: report/chance.h.
 * Step by step: user/doc/judge.md.
 *
 * Services have owners: the system (units that are of no user and run as root), a user, or a
 * container. In a unit of the system, what another user runs is a service of its own. Functions and
 * deploys that are kept, and the correction for being many, are of an owner: what one does changes
 * nothing that is said of another's, but how long it waited for CPUs.
 *
 * Where it is known how many requests there were, the CPU time of each is compared, too, and what
 * became slower as a whole is seen. What a service waited, and made others wait, is compared and
 * reported by the same statistics, and so is where its threads were blocked, in windows that have
 * their waits; but it depends on what else runs on the machine, so it is never called worse.
 */

/* The time of a service before, or after, a deploy. */
enum change_side {
	BEFORE,
	AFTER,
	CHANGE_SIDES
};

/* The service's time in one side that is compared. */
struct change_span {
	uint64_t since_ns, until_ns; /* since the epoch */
	uint64_t recorded_ns;
	size_t parts;	/* whose scatter is known */
	uint64_t ticks; /* of the service */
	double cpu_ns;	/* the same as time */
	/* Of these ticks: whose stack is complete, and whose function has a name of its own. */
	double complete_percent, named_percent;
	double lost_percent; /* of all ticks of the machine */
};

struct change_row {
	const char
		*function;  /* NULL: it has no name; with struct changes's `by`, the label's text */
	const char *image;  /* base name; "" with `by` */
	const char *reason; /* of waits: for what threads were blocked there; NULL: CPU time */
	bool total;	    /* with what it calls */
	/* Of the service's CPU time; after is scaled as above, of waits it is not. */
	double percent[CHANGE_SIDES];
	double difference; /* after - before, in percent of the service's CPU time before */
	double error;	   /* half the width of its 95 % confidence interval */
	double p;	   /* of such a difference by chance; corrected for the number of rows */
};

/* Of the service as a whole. Those of waiting are in ns for each ns of its CPU time. */
enum change_measure_number {
	MEASURE_PER_REQUEST, /* CPU time of a request, in ns */
	MEASURE_REQUESTS,    /* in a second */
	MEASURE_CPU,	     /* CPUs that it used */
	MEASURE_WAITED,	     /* its threads, for a CPU */
	MEASURE_DELAY,	     /* others, for the CPU on which it ran */
	MEASURE_BLOCKED,     /* how many of its threads were blocked, on average */
	CHANGE_MEASURES
};

struct change_measure {
	bool known;   /* on both sides; else the rest is 0 */
	bool differs; /* as rows do */
	double value[CHANGE_SIDES];
	double difference, error, p; /* as of a row, in the unit of the values */
	/* Of the rest of the machine, MEASURE_WAITED and MEASURE_DELAY only; 0: unknown. */
	double elsewhere[CHANGE_SIDES];
};

/* An image whose build is another one. */
struct change_image {
	const char *name;
	char builds[CHANGE_SIDES][BUILD_ID_TEXT_SIZE];
	/* What these are of; the packages' of the options. NULL: unknown. */
	const struct archive_package *packages[CHANGE_SIDES];
	double part; /* of the service's time that has it in its stacks, while it was there */
};

enum change_outcome {
	CHANGE_TOO_EARLY, /* there is too little of one side to compare */
	CHANGE_NONE,	  /* nothing differs */
	CHANGE_MIXTURE,	  /* functions differ, but with all that they call alike */
	CHANGE_MOVED,	  /* functions differ, but what some cost more others cost less */
	CHANGE_WAITS,	  /* none of these, but it waited, or made others wait, differently */
	CHANGE_BETTER,
	CHANGE_WORSE,
};

struct change {
	const char *host, *service;
	const char
		*user;	/* whose processes these are, in a unit of the system; NULL: root's, all */
	bool container; /* the service is one, not a unit */
	bool of_system; /* root alone makes it, and runs it */
	/* Since the epoch: the end of the last window with the old, the start of the first after
	 * it. */
	uint64_t begin_ns, end_ns;
	bool asked; /* by the caller, not found */
	bool restarted;
	struct change_image *images;
	size_t image_count, image_room;
	struct change_span spans[CHANGE_SIDES];
	/*
	 * What is not compared, as it is not as complete on both sides: callers and all that is
	 * called; functions, all or those of some images; CPU time.
	 */
	bool stacks_differ, all_names_differ, names_differ, lost_differ;
	/* Functions of other images, which were deployed meanwhile, are not compared either. */
	bool others_replaced;
	enum change_outcome outcome;
	/*
	 * How much more the service's work costs, in percent: by the functions that differ; or
	 * by_request: by the CPU time of a request.
	 */
	double cost;
	bool by_request;
	struct change_measure measures[CHANGE_MEASURES];
	struct change_row *rows; /* those that differ, the most expensive first */
	size_t row_count;
	size_t compared; /* functions, by self and by total each */
	/* The same of its waits: where it was blocked for longer, or less, for what. */
	struct change_row *waits;
	size_t wait_count, waits_compared;

	const struct changes_metric *metric; /* the service's requests; NULL: not given */

	/* private */
	uint32_t number; /* of the service */
};

/* How many requests came in a time. */
struct changes_increase {
	uint64_t since_ns, until_ns; /* since the epoch; at most INCREASE_NS long */
	double count;
};

/* When requests came in a longer time is not known well enough. Bound: pace. */
#define INCREASE_NS (15 * 60 * NS_PER_S)

/* The requests of a service, by the times since which; these may overlap. */
struct changes_metric {
	char *unit; /* name or pattern, as of --unit and --container; NULL: of all */
	struct changes_increase *list;
	size_t count;
};

struct changes_options {
	double least_percent; /* of the service's CPU time that a difference has to be */
	uint64_t at_ns;	      /* compare all services before and after this time; 0: deploys */
	const struct changes_metric *metrics; /* the first that matches a service is its own */
	size_t metric_count;
	const struct archive_packages *packages; /* of the builds; NULL: none is known */
};

struct changes {
	struct change *changes; /* by host, service and time; the system's first */
	size_t count, room;
	const struct row_view *by; /* rows are by this label; NULL: functions */
	bool has_label;		   /* any tick had it */

	/* private to user/report/changes/ */
	struct changes_data *data;
};

/*
 * Prepares for windows. by: the label by which rows are, which must outlive c; NULL: functions.
 * Returns 0 or -ENOMEM; changes_free() is due in any case.
 */
int changes_begin(struct changes *c, const struct row_view *by);

/*
 * Which stacks of the next window to read, as of changes_add(): users' may be too many. Valid until
 * the next call.
 */
const struct stack_choice *changes_choice(struct changes *c);

/*
 * Adds a window of a host, which lasted from start_ns to limit_ns. Those of one host come one after
 * another, in the order of time. Copies what it keeps. Returns 0 or -ENOMEM.
 */
int changes_add(struct changes *c, const char *host, uint64_t start_ns, uint64_t limit_ns,
		const struct profile *p);

/*
 * Finds deploys in what was added, and compares: first of the system's services, and then of all
 * others. Once each. Returns 0 or -ENOMEM.
 */
int changes_find(struct changes *c, const struct changes_options *o, bool of_system);

/* The owner with most of which not all is compared, as it has too much; NULL: none. */
const char *changes_omitted(const struct changes *c, bool of_system);
void changes_free(struct changes *c);

/* Whether the packages of both builds are known and differ: then these name the deploy. */
bool change_image_has_versions(const struct change_image *image);

/* The worst outcome of all; CHANGE_NONE if there is no change. */
enum change_outcome changes_outcome(const struct changes *c);

/*
 * Prints each change: what was deployed, and as a table the functions that differ:
 *
 *     before%  after%  diff  +/-  what  function  image
 *
 * and one of where it was blocked for longer, or less:
 *
 *     before ms/s  after ms/s  diff  +/-  reason  function  image
 */
int changes_print(const struct changes *c, const struct report_table_options *o, FILE *out);
int changes_json(const struct changes *c, const struct report_table_options *o, FILE *out);

#endif
