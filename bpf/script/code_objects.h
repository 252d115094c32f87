/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of scripts at a tick, what is common to all languages: the state of a walk, and the
 * records by which user space gets their names. bpf/script/language.h has the words that stand for
 * them in a stack, bpf/script/scripts.h all languages.
 *
 * Included by the BPF program, and by user space for threads that wait. Whoever includes it defines
 * what walk.h asks for, the helpers bpf_probe_read_user() and bpf_ktime_get_ns(), and the functions
 * that are declared below.
 */
#ifndef PROFIL_BPF_CODE_OBJECTS_H
#define PROFIL_BPF_CODE_OBJECTS_H

#include "language.h"
#include "../walk.h"

/*
 * What this CPU has found in language_sent, where a look-up costs some ten times as much.
 * Bound: users: code objects that a CPU remembers as sent; then: a look-up in language_sent, which
 * is slower; again: at the next tick; share: none; the last replaces another; seen: not seen.
 */
#define KNOWN_CODES 128 /* a power of two */

struct known_code {
	__u64 process, code, mark;
	__u64 since_ns; /* of the process */
	__u64 replaced; /* codes_replaced, by then */
};

/*
 * What a program writes into its memory decides how long the walk takes: so many frames are read at
 * a tick, and so many code objects sent. The others are sent at later ticks.
 * Bound: users: frames and code objects of scripts that one tick reads; then: the frames beyond are
 * missing; the code objects are sent later; again: at the next tick; share: each tick's own; seen:
 * not seen.
 */
#define SCRIPT_FRAMES_MAX (2 * LANGUAGE_FRAMES_MAX)
#define SCRIPT_CODES_MAX  64

/* What a language keeps during a walk. Bound: format. */
#define PYTHON_FRAME_BYTES  80
#define PYTHON_WINDOW_BYTES 1024
#define PYTHON_CODE_BYTES   144
#define PYTHON_MARK_WORDS   8
/*
 * Bound: users: interpreters of Python in a thread that are remembered, and threads of all that are
 * searched; then: that thread's functions are missing; again: at the next tick; share: the
 * process's own; seen: as stacks with frames of the interpreter only.
 */
#define PYTHON_LISTS	   8   /* of a thread: one of each interpreter; a power of two */
#define PYTHON_THREADS_MAX 128 /* of all interpreters, as far as read at a tick */

/* A list of frames: from `frame` on, run by the call of the interpreter's function with cframe. */
struct python_list {
	__u64 frame, cframe;
};

struct python_walk {
	__u64 frame; /* the next to be read; 0: no more */
	__u64 last;  /* the one before; 0: none */
	__u64 cframe;
	/* Those of the thread, one of which is this: another interpreter has another one. */
	struct python_list lists[PYTHON_LISTS];
	__u32 list, list_count;
	__u64 interpreter, thread; /* whose list of states is read, and the next of these */
	__u64 file, file_hash;	   /* of the last code object */
	__u64 lines;		   /* the line table that is sent */
	__u64 lines_size;
	/* Memory from window_at on, that has frames. */
	__u64 window_at;
	__u32 window_bytes;
	__u8 window[PYTHON_WINDOW_BYTES];
	__u8 code_bytes[PYTHON_CODE_BYTES];
	__u64 mark_words[PYTHON_MARK_WORDS];
};

/* Bound: format. */
#define PHP_FUNCTION_BYTES 192
/*
 * Bound: users: generators of PHP that wait for each other; then: the outer ones are missing;
 * again: at the next tick; share: each tick's own; seen: not seen.
 */
#define PHP_GENERATORS_MAX 8
/*
 * Bound: users: words of a name or a string of Perl and PHP that tell one code object from another;
 * then: two that differ behind them have one name; again: never; share: the process's own; seen:
 * not seen.
 */
#define PHP_TEXT_WORDS 8

struct php_walk {
	__u64 frame; /* the next to be read; 0: no more */
	/* Frames that come before it: of generators that delegate to a running one. */
	__u64 generators[PHP_GENERATORS_MAX];
	__u32 generator_count;
	__u64 running, opline; /* registers of execute_ex(): its frame, and its instruction */
	__u64 file, file_hash; /* of the last function */
	struct php_frame frame_read;
	__u8 function[PHP_FUNCTION_BYTES];
	__u64 text[PHP_TEXT_WORDS];
};

/* Bound: as PHP_TEXT_WORDS. */
#define PERL_TEXT_WORDS 16

struct perl_walk {
	bool inner;    /* the context that comes next is that of the innermost function */
	bool begins;   /* the innermost function has not come to its first statement */
	bool compiles; /* a frame has had the place that is being compiled */
	bool ran;      /* the walk has come from Perl_runops_standard() */
	bool is_last;  /* the group may go on: its last function was called by the end of a block */
	__u32 group;   /* enum perl_group, of the script's `words` */
	__u32 contexts_left; /* at this tick */
	__u64 interpreter;
	__u64 op; /* the innermost function's operation, and the one after it */
	__u64 next;
	__u64 cop;   /* the statement at which the function is whose context comes next */
	__s64 index; /* of that context in the stack of contexts */
	struct perl_stackinfo stack;
	struct perl_context context;
	struct perl_sv sv;
	struct perl_cv cv;
	struct perl_cop start, statement;
	__u64 text[PERL_TEXT_WORDS];
};

struct script_walk {
	bool native; /* the interpreter's own frames are written, too */
	bool looked; /* for the interpreter's state, at this tick */
	bool found;  /* the state, at this tick */
	bool wrote;  /* functions of the script, at this tick */
	/* The native frame before this one has run functions of it, or is any one of PHP. */
	bool ran;
	bool cut;		  /* some had no room */
	bool follows_interpreter; /* the last native frame that was written is the interpreter's */
	bool is_first;		  /* the thread is the process's first */
	/*
	 * The list is this thread's, and all in it run. PHP has one list for all threads, that of
	 * the first; in Perl's are functions that no call of the interpreter runs.
	 */
	bool is_threads;
	__u64 begin;	   /* the stack pointer of the leaf */
	__u64 interpreter; /* a pc in the interpreter: of its last frame, or any */
	__u32 image_number;
	struct language_image image; /* of the interpreter */
	__u64 bias;
	__u64 process; /* the key */
	/*
	 * Code objects that were sent before are of an earlier process with this key, or user space
	 * has dropped them. uid: the process's user. Set when the stack has an interpreter.
	 */
	__u64 since_ns;
	__u32 uid;
	/*
	 * The native frame that runs `words`: has this address in it; or, if function_size is not
	 * 0, is a call of that function.
	 */
	__u64 entry;
	__u64 function, function_size;
	__u64 cold, cold_size; /* a part of it that is elsewhere */
	__u32 count;
	__u32 frames_left, codes_left; /* at this tick */
	__u64 words[LANGUAGE_FRAMES_MAX];
	union {
#define LANGUAGE_WALK(number, name) struct name##_walk name;
		LANGUAGE_LIST(LANGUAGE_WALK)
#undef LANGUAGE_WALK
	};
	struct language_code code;
	struct known_code known[KNOWN_CODES];
};

/* Sets script->since_ns and script->uid. */
static __always_inline void find_script_owner(struct script_walk *script);
/* What is known of an image, by its number in the tables of the unwinder; NULL: no such image. */
static const struct language_image *language_image(const struct script_walk *script, __u32 number);
/* Whether it is known, at little cost, that user space has a code object as `mark` says. */
static __always_inline bool is_code_known(struct script_walk *script, __u64 address, __u64 mark);
/*
 * Whether what names a code object is to be sent: user space has not got it as it is now, which
 * `mark` says, and there is room for it at this tick.
 */
static __always_inline bool is_code_wanted(struct script_walk *script, __u64 address, __u64 mark);
/*
 * Gives a record of this size to user space; `last` of those for the code object. Returns false if
 * there is no room, so that all are to be sent again.
 */
static __always_inline bool put_code(struct script_walk *script, struct language_code *code,
				     __u64 size, bool last);

/* Reads up to `size` bytes of an object that may end at the end of a mapping. Returns how many. */
static __always_inline __u32 read_object(void *to, __u32 size, __u64 from)
{
	for (int i = 0; i < 3; i++, size /= 2)
		if (bpf_probe_read_user(to, size, (void *)from) == 0)
			return size;
	return 0;
}

/* Sends script->code, whose texts and `line` are set. Returns as put_code(). */
static __always_inline bool send_code(struct script_walk *script, __u64 address, __u64 mark,
				      bool last)
{
	struct language_code *code = &script->code;
	__u64 size = code->lines_bytes & (LANGUAGE_LINES_BYTES - 1);

	code->time_ns = bpf_ktime_get_ns();
	code->process = script->process;
	code->code = address;
	code->mark = mark;
	code->since_ns = script->since_ns;
	code->uid = script->uid;
	code->image = script->image_number;
	code->language = script->image.language;
	code->version = script->image.version;
	size += offsetof(struct language_code, lines);
	return put_code(script, code, size, last);
}

/* Adds a function to those that the native frame runs. Returns false if there is no room. */
static __always_inline bool add_script_frame(struct script_walk *script, __u64 code,
					     __u64 instruction)
{
	__u32 count = script->count;

	if (count >= LANGUAGE_FRAMES_MAX)
		return false;
	script->words[count] =
		language_word((enum language)script->image.language, code, instruction);
	script->count = count + 1;
	return true;
}

/*
 * Returns the thread-specific data (pthread_getspecific(3)) of a key whose number is at an address
 * of the process; 0: none.
 */
static __always_inline __u64 thread_specific_data(const struct walk *walk, __u64 key_address)
{
	__u64 at, block = 0, data = 0;
	__u32 key = 0;

	if (!walk->process.thread_specific || READ_USER(key, key_address))
		return 0;
	/*
	 * Blocks of 32 pairs, of a sequence number and a value. A key that is not made yet is 0,
	 * and has no value.
	 */
	at = walk_thread_pointer(walk) + walk->process.thread_specific + key / 32 * 8ULL;
	if (READ_USER(block, at) || !block || READ_USER(data, block + key % 32 * 16ULL + 8))
		return 0;
	return data;
}

#endif
