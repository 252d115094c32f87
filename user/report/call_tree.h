/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CALL_TREE_H
#define PROFIL_REPORT_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "report/rows.h"

/*
 * The stacks of one or several profiles as one tree: a node for each call path from the root. Call
 * trees, callers, callees and flame graphs are made of it.
 */

#define CALL_TREE_NONE UINT32_MAX

/*
 * More nodes, which a hostile profile may have, are not made.
 * Bound: files: nodes of a call tree; then: small ones are hidden; seen: in a note of the view.
 */
#define CALL_TREE_NODES_MAX 2000000

/* A function in an image, a process or a thread. Several nodes can have the same frame. */
struct call_frame {
	/*
	 * The function's name; "[IMAGE]" for all code of an image that has no name, whose addresses
	 * would be meaningless leaves. Of a process or thread its name and number: "node 1234".
	 */
	const char *name;
	const char *image; /* its path; row_unknown; "" of threads and processes */
	bool kernel;	   /* kernel code */
	bool inlined;	   /* into its caller, at every place */
	bool named;	   /* false: name is "[IMAGE]" */
};

struct call_node {
	uint32_t frame;	       /* root (node 0): CALL_TREE_NONE, or that of `function` below */
	uint32_t parent;       /* root: CALL_TREE_NONE */
	uint32_t first_child;  /* the one with the largest weight in the first column; or NONE */
	uint32_t next_sibling; /* the one with the next largest, the next in `nodes`; or NONE */
	uint32_t folded;       /* number of its children that were too small and have no node */
	uint32_t depth;	       /* root: 0 */
};

struct call_tree {
	struct call_node *nodes; /* a parent before its children */
	size_t count, room;
	struct call_frame *frames;
	size_t frame_count, frame_room;
	struct callgraph_cost *counts; /* node i's are counts[i * column_count .. + column_count] */
	size_t column_count;
	/* Of each column the magnitudes of all samples, whether they are in the tree or not */
	magnitude_sum *samples;
	size_t folded;	  /* sum of all nodes' */
	size_t cut;	  /* nodes without their children, as options->depth_max is reached */
	double min_share; /* options->min_share; more where there were more than CALL_TREE_NODES_MAX
			   */
	/* Only of call_tree_of_calls(): */
	uint64_t *calls;   /* of each node but the root; NULL: the tree is made of stacks */
	bool counts_calls; /* counts and samples are calls, because their costs are unknown */

	/* private to call_tree.c */
	size_t count_room;
	char **names; /* that the tree has made, and frees */
	size_t name_count, name_room;
};

/* What the children of the root are. */
enum call_tree_roots {
	CALL_TREE_FUNCTIONS, /* the outermost functions of stacks */
	CALL_TREE_PROCESSES, /* processes; their children are functions */
	CALL_TREE_THREADS,   /* processes; their children are threads */
};

struct call_tree_options {
	enum call_tree_roots roots; /* without effect if `function` is set */
	bool inverted;		    /* from leaves to their callers */
	/*
	 * Not NULL: the root is this function, with only what it calls (from its outermost call in
	 * each stack), or inverted, what calls it (from its innermost). The name is as report
	 * prints it, of C++ with or without parameters. If several functions match, the root stands
	 * for all, and its frame is the first found; CALL_TREE_NONE if there is none.
	 */
	const char *function;
	const char *image; /* that holds the function: its path or base name; NULL: any */
	const char *value; /* what is counted: profile_value() */
	/* Nodes with less than this share of all samples in every column are folded; 0: none. */
	double min_share;
	uint32_t depth_max; /* nodes at this depth get no children; 0: all do */
	const struct profile_filtered *filtered; /* of each profile; NULL: of none */
	/*
	 * What each sample of the only profile counts, instead of its value: 0 for those that are
	 * not in the tree. The magnitudes of all samples stay those of the values. NULL: its value.
	 */
	const int64_t *weights;
};

/*
 * Makes a tree with a column for each profile. The root's total is all samples that are in the
 * tree. A node's self is the samples that end there, its total those that pass through it too.
 * Functions are the same when their names and the base names of their images are; in several
 * profiles "[jit 612]" and "[jit 845]" are the same image. Each level of recursion is a node. Names
 * and paths belong to the profiles. Of too large a tree, nodes with a small share are folded, and
 * those that are too deep are cut: t->min_share, t->cut. Returns 0 or -ENOMEM; call
 * call_tree_free() in any case.
 */
int call_tree_make(struct call_tree *t, const struct profile *const *profiles, size_t count,
		   const struct call_tree_options *options);

/*
 * The same of one profile, step by step, for a tree of which only a part is looked at. Options and
 * profile must stay as they are meanwhile.
 */
struct call_tree_builder;

/*
 * Makes the root alone, whose self is unknown as yet. The builder is freed before the tree. Returns
 * 0 or -ENOMEM; call call_tree_builder_free() and call_tree_free() in any case.
 */
int call_tree_begin(struct call_tree *t, struct call_tree_builder **b, const struct profile *p,
		    const struct call_tree_options *options);

/*
 * Makes the children of a node, unless it has been called for it before: then its first_child and
 * self are known. Returns 0, or -ENOMEM: the tree can only be freed.
 */
int call_tree_expand(struct call_tree_builder *b, uint32_t node);

/* Stores what each sample counts in a node, 0: it does not pass through it. */
void call_tree_weights(const struct call_tree_builder *b, uint32_t node, int64_t *weights);
void call_tree_builder_free(struct call_tree_builder *b);

/* The child of a node with this name, in an image with the same base name; or CALL_TREE_NONE. */
uint32_t call_tree_child(const struct call_tree *t, uint32_t node, const char *name,
			 const char *image);

/*
 * Makes a tree of recorded calls (Callgrind, gmon.out): options->function, which must be set, and
 * its callers or callees, one level. Their totals are the costs of the calls, or the number of
 * calls when costs are unknown. The root's total is its inclusive cost: see callgraph.h. Returns 0
 * or -ENOMEM; call call_tree_free() in any case.
 */
int call_tree_of_calls(struct call_tree *t, const struct profile *p,
		       const struct call_tree_options *options);
void call_tree_free(struct call_tree *t);

#endif
