/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CALL_TREE_H
#define PROFIL_REPORT_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "report/rows.h"

/*
 * The stacks of one or several profiles put together by what they begin with: a node for each
 * distinct beginning. What call trees, callers, callees and flame graphs are made of.
 */

#define CALL_TREE_NONE UINT32_MAX

/* What a node stands for: one function of an image, or who ran. */
struct call_frame {
	/*
	 * The function's name. Where it has none, "[IMAGE]" for all such code of an image:
	 * its addresses one by one would be leaves without a meaning. Of a process or thread its
	 * name and number: "node 1234".
	 */
	const char *name;
	const char *image; /* its path; row_unknown; "" of threads and processes */
	bool kernel;	   /* code of the kernel */
	bool inlined;	   /* in its caller, wherever it is */
	bool named;	   /* false: name is "[IMAGE]" */
};

struct call_node {
	uint32_t frame;	       /* CALL_TREE_NONE of the root, which is node 0; see `function` */
	uint32_t parent;       /* CALL_TREE_NONE of the root */
	uint32_t first_child;  /* the one with the largest total in the first column; or NONE */
	uint32_t next_sibling; /* the one with the next largest: always the next node; or NONE */
	uint32_t folded;       /* children that were too small, and are not there */
	uint32_t depth;	       /* of the root: 0 */
};

struct call_tree {
	struct call_node *nodes; /* a parent before its children */
	size_t count, room;
	struct call_frame *frames;
	size_t frame_count, frame_room;
	struct callgraph_cost *counts; /* node i's are counts[i * column_count .. + column_count] */
	size_t column_count;
	uint64_t *samples; /* of each column: all, also those that are not in the tree */
	size_t folded;	   /* children that were too small, of all nodes */
	/* Of call_tree_of_calls(): */
	uint64_t *calls;   /* of each node but the root; NULL: made of stacks */
	bool counts_calls; /* so do counts and samples: what was spent in calls is not known */

	/* private to call_tree.c */
	size_t count_room;
	char **made; /* names */
	size_t made_count, made_room;
};

enum call_tree_roots {
	CALL_TREE_FUNCTIONS, /* below the root stand the outermost functions of stacks */
	CALL_TREE_PROCESSES, /* processes, by name and number, and the functions below them */
	CALL_TREE_THREADS,   /* threads below these */
};

struct call_tree_options {
	enum call_tree_roots roots; /* functions, when `function` is given */
	bool inverted;		    /* from leaves to their callers */
	/*
	 * Not NULL: only what is called below this function (its outermost call in each stack), or
	 * inverted, what calls it (from its innermost). The root is then the function. Names as
	 * report prints them, of C++ with or without parameters. When several are called so, the
	 * root stands for them all, and its frame is the one that was met first; its frame is
	 * CALL_TREE_NONE when there is none.
	 */
	const char *function;
	const char *image; /* that holds the function: its path or base name; NULL: any */
	/* Nodes below this share of all samples, in every column, are folded; 0: none. */
	double min_share;
};

/*
 * A tree with a column for each profile, each by the value that it shows; negative values count as
 * 0. The root's total is all samples that are in the tree. In a node, `self` are the samples that
 * end there, `total` those that pass through, too. Functions are the same when their names and
 * images' base names are; of several profiles, so are those of "[jit 612]" and "[jit 845]".
 * Recursion makes a node for each level. Names and paths are the profiles'. Returns 0 or -ENOMEM;
 * call_tree_free() is due in any case.
 */
int call_tree_make(struct call_tree *t, const struct profile *const *profiles, size_t count,
		   const struct call_tree_options *options);

/*
 * The same from calls that were recorded apart, as Callgrind and gmon.out have them: the function
 * that the options name and its callers or callees, one level. The totals of these are what was
 * spent in the calls, or how many they were when that is not known. The root's is its inclusive
 * cost: see callgraph.h. Returns 0 or -ENOMEM; call_tree_free() is due in any case.
 */
int call_tree_of_calls(struct call_tree *t, const struct profile *p,
		       const struct call_tree_options *options);
void call_tree_free(struct call_tree *t);

#endif
