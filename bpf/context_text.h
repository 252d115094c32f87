/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes texts equal that differ in their constants alone: "WHERE id = 7" is "WHERE id = ?". Or any
 * table of them would be full in seconds, and what a user has typed would leave the process.
 *
 * One table says for each state and class of character what follows, so the loop has no branches
 * but its end.
 *
 * Included by the BPF program and by tests. Whoever includes it defines CONTEXT_FUNCTION, and
 * CONTEXT_COPY(to, size, from).
 */
#ifndef PROFIL_BPF_CONTEXT_TEXT_H
#define PROFIL_BPF_CONTEXT_TEXT_H

#include "context.h"

/* So many bytes are taken by one function, which the verifier goes through once. Bound: size. */
#define CONTEXT_BLOCK_BYTES 16
#define CONTEXT_BLOCKS	    (CONTEXT_TEXT_BYTES / CONTEXT_BLOCK_BYTES)

/* A text as it was read. */
union context_read {
	unsigned char bytes[CONTEXT_TEXT_BYTES];
	unsigned long long words[CONTEXT_TEXT_BYTES / 8];
};

/*
 * A text that was made equal, and how far that was after each of its blocks: one that begins with
 * the same blocks goes on from there, so what a statement costs is what differs in it. Whatever
 * memo a text finds, only what is the same byte by byte is taken from it.
 */
struct context_memo {
	unsigned int rule;
	unsigned int blocks; /* that are known */
	/* The block at which to go on, the state there, and the bytes of made[] until then. */
	unsigned int after[CONTEXT_BLOCKS];
	union context_read read;
	unsigned char made[CONTEXT_TEXT_BYTES];
};

/* Bound: as CONTEXT_MEMOS. */
#define CONTEXT_FIXED_BYTES 128

/* Of a text with its 0 that is compared at once. Bound: format. */
#define CONTEXT_SHORT_WORDS 4

/*
 * Values of a process that do not change any more: see struct context_image. With them that of the
 * next variable, while its text is the same.
 */
struct context_fixed {
	unsigned long long process, start_ns;
	unsigned int image;
	unsigned short used, used_with_next; /* bytes; 0: the text is not short */
	unsigned long long next[CONTEXT_SHORT_WORDS];
	unsigned char bytes[CONTEXT_FIXED_BYTES];
};

/* The number that the values of a process with this hash had: in the window with this bank. */
struct context_found {
	unsigned long long process, hash;
	unsigned int bank, number;
};

/*
 * Powers of two.
 * Bound: users: beginnings of texts, processes, and their values, that a CPU remembers; then: a
 * text is made equal from its beginning, and all values are read and sought; again: at the next
 * tick; share: none; seen: not seen, but as CPU time.
 */
#define CONTEXT_MEMOS 32

/* Shorter texts have no memo. Bound: format. */
#define CONTEXT_MEMO_LEAST (2 * CONTEXT_BLOCK_BYTES)

/* Memory of each CPU for the values of a thread. */
struct context_scratch {
	unsigned int used; /* of bytes[] */
	unsigned int user; /* whose the values are: user_of(); CONTEXT_CURRENT_USER */
	unsigned int
		ids; /* where a trace and a span begin, which are the last; 0: there are none */
	unsigned int cut; /* CONTEXT_HASH_CUT, or 0: all that there is was read */
	/* Of the text that is made equal: as in struct context_memo, where it begins, its first
	 * block that is not known. */
	unsigned int from, state, begin, first, has_memo;
	unsigned int image; /* in `contexts` */
	/* Where the process has the variables that are read. */
	unsigned long long bias, thread_pointer;
	unsigned long long address; /* of a variable */
	unsigned long long next;    /* of the one behind those that are fixed */
	unsigned short label, part; /* of the variable that was read last, the label + 1 */
	struct context_vector vector;
	union {
		unsigned char bytes[CONTEXT_VALUE_BYTES];
		unsigned long long words[CONTEXT_VALUE_WORDS];
	};
	union context_read text;
	/* What leads to it. Bound: format. */
	unsigned long long leads[6];
	struct context_record record, again;
	struct context_memo memos[CONTEXT_MEMOS];  /* by how texts begin */
	struct context_fixed fixed[CONTEXT_MEMOS]; /* by processes */
	struct context_found found[CONTEXT_MEMOS]; /* by values and processes */
	/* The verifier takes a number below CONTEXT_VALUE_BYTES for any of these. */
	unsigned char spare[CONTEXT_VALUE_BYTES];
};

#define CONTEXT_CURRENT_USER (~0U)

/* What is appended at once besides texts, at most. Bound: size. */
#define CONTEXT_SPARE 16

enum context_class {
	CLASS_END,
	CLASS_SPACE,
	CLASS_NEWLINE,
	CLASS_DIGIT,
	CLASS_NAME, /* letters, the underscore, and all of UTF-8 beyond ASCII */
	CLASS_E,
	CLASS_QUOTE,
	CLASS_DOUBLE_QUOTE, /* around a name */
	CLASS_PLAIN_QUOTE,  /* around a string that has backslashes */
	CLASS_PLAIN_DOUBLE, /* the same */
	CLASS_DOLLAR,
	CLASS_SLASH,
	CLASS_STAR,
	CLASS_MINUS,
	CLASS_POINT,
	CLASS_COMMA,
	CLASS_BACKSLASH,
	CLASS_DASH,  /* of a path: within a number, it is part of that, as in a date */
	CLASS_CLOSE, /* ends what a minus may follow that is no sign: ) and ] */
	CLASS_OTHER,
	CLASSES = 32
};

enum context_state {
	STATE_BLANK, /* at the beginning, and after a space that was written */
	STATE_OTHER,
	STATE_OPERAND, /* a minus that follows is no sign */
	STATE_OPERAND_BLANK,
	STATE_NAME,
	STATE_E, /* a name that is "e" so far: a quoted string that follows has backslashes */
	STATE_NUMBER,
	STATE_COMMA,	   /* after a constant: one that follows is of the same list */
	STATE_COMMA_SPACE, /* and a space was written */
	STATE_COMMA_SIGN,
	STATE_COMMA_SPACE_SIGN,
	STATE_STRING,
	STATE_STRING_END, /* a quote: another one continues the string */
	STATE_ESCAPED,	  /* a string with backslashes */
	STATE_BACKSLASH,
	STATE_ESCAPED_END,
	STATE_QUOTED_NAME,
	STATE_DOLLAR, /* begins the tag of a string, or is a parameter */
	STATE_TAG,
	STATE_BODY, /* in a string between two tags */
	STATE_BODY_DOLLAR,
	STATE_SLASH,
	STATE_COMMENT,
	STATE_COMMENT_STAR,
	STATE_SIGN,
	STATE_MINUS,
	STATE_LINE_COMMENT,
	STATE_DOUBLE,
	STATE_DOUBLE_BACKSLASH,
	STATE_LITERAL,
	STATE_END,
	STATES = 32
};

/* What is written in a step: so many bytes are taken back before, and one of these follows. */
enum context_write {
	WRITE_NOTHING,
	WRITE_IT,
	WRITE_CONSTANT, /* ? */
	WRITE_SPACE,
};

#define STEP_STATE	0x1f
#define STEP_WRITE(s)	((s) >> 5 & 3)
#define STEP_BACK(s)	((s) >> 7)
#define STEP(to, write) (STATE_##to | WRITE_##write << 5)
#define BACK(n)		((n) << 7)

#define RANGE(range) [range]

/* What most states do; a table has behind it what it does instead. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define STEPS_OUTSIDE                                                                         \
	[CLASS_END] = STEP(END, NOTHING), [CLASS_SPACE] = STEP(BLANK, SPACE),                 \
	[CLASS_NEWLINE] = STEP(BLANK, SPACE), [CLASS_DIGIT] = STEP(NUMBER, CONSTANT),         \
	[CLASS_NAME] = STEP(NAME, IT), [CLASS_E] = STEP(E, IT),                               \
	[CLASS_QUOTE] = STEP(STRING, CONSTANT), [CLASS_DOUBLE_QUOTE] = STEP(QUOTED_NAME, IT), \
	[CLASS_PLAIN_QUOTE] = STEP(ESCAPED, CONSTANT),                                        \
	[CLASS_PLAIN_DOUBLE] = STEP(DOUBLE, CONSTANT), [CLASS_DOLLAR] = STEP(DOLLAR, IT),     \
	[CLASS_SLASH] = STEP(SLASH, IT), [CLASS_STAR] = STEP(OTHER, IT),                      \
	[CLASS_MINUS] = STEP(SIGN, IT), [CLASS_POINT] = STEP(OTHER, IT),                      \
	[CLASS_COMMA] = STEP(OTHER, IT), [CLASS_BACKSLASH] = STEP(OTHER, IT),                 \
	[CLASS_DASH] = STEP(OTHER, IT), [CLASS_CLOSE] = STEP(OPERAND, IT),                    \
	[CLASS_OTHER] = STEP(OTHER, IT)
#define STEPS_AFTER_OPERAND                                          \
	STEPS_OUTSIDE, [CLASS_SPACE] = STEP(OPERAND_BLANK, SPACE),   \
		       [CLASS_NEWLINE] = STEP(OPERAND_BLANK, SPACE), \
		       [CLASS_MINUS] = STEP(MINUS, IT)
#define STEPS_OF_NAME                                                                    \
	STEPS_AFTER_OPERAND, [CLASS_DIGIT] = STEP(NAME, IT), [CLASS_E] = STEP(NAME, IT), \
			     [CLASS_DOLLAR] = STEP(NAME, IT)
/* A constant that follows another one in a list is left out, with what is between them. */
#define STEPS_OF_LIST(n)                                        \
	[CLASS_DIGIT] = STEP(NUMBER, NOTHING) | BACK(n),        \
	[CLASS_QUOTE] = STEP(STRING, NOTHING) | BACK(n),        \
	[CLASS_PLAIN_QUOTE] = STEP(ESCAPED, NOTHING) | BACK(n), \
	[CLASS_PLAIN_DOUBLE] = STEP(DOUBLE, NOTHING) | BACK(n)
#define STEPS_ALL(step) RANGE(CLASS_SPACE... CLASS_OTHER) = step, [CLASS_END] = STEP(END, NOTHING)

static const unsigned short context_steps[STATES][CLASSES] = {
	[STATE_BLANK] = { STEPS_OUTSIDE, [CLASS_SPACE] = STEP(BLANK, NOTHING),
			  [CLASS_NEWLINE] = STEP(BLANK, NOTHING) },
	[STATE_OTHER] = { STEPS_OUTSIDE },
	[STATE_OPERAND] = { STEPS_AFTER_OPERAND },
	[STATE_OPERAND_BLANK] = { STEPS_AFTER_OPERAND, [CLASS_SPACE] = STEP(OPERAND_BLANK, NOTHING),
				  [CLASS_NEWLINE] = STEP(OPERAND_BLANK, NOTHING) },
	[STATE_NAME] = { STEPS_OF_NAME },
	[STATE_E] = { STEPS_OF_NAME, [CLASS_QUOTE] = STEP(ESCAPED, CONSTANT) | BACK(1) },
	[STATE_NUMBER] = { STEPS_AFTER_OPERAND, [CLASS_DIGIT] = STEP(NUMBER, NOTHING),
			   [CLASS_NAME] = STEP(NUMBER, NOTHING), [CLASS_E] = STEP(NUMBER, NOTHING),
			   [CLASS_POINT] = STEP(NUMBER, NOTHING), [CLASS_COMMA] = STEP(COMMA, IT),
			   [CLASS_DASH] = STEP(NUMBER, NOTHING) },
	[STATE_COMMA] = { STEPS_OUTSIDE, STEPS_OF_LIST(1), [CLASS_SPACE] = STEP(COMMA_SPACE, SPACE),
			  [CLASS_NEWLINE] = STEP(COMMA_SPACE, SPACE),
			  [CLASS_MINUS] = STEP(COMMA_SIGN, IT) },
	[STATE_COMMA_SPACE] = { STEPS_OUTSIDE,
				STEPS_OF_LIST(2), [CLASS_SPACE] = STEP(COMMA_SPACE, NOTHING),
				[CLASS_NEWLINE] = STEP(COMMA_SPACE, NOTHING),
				[CLASS_MINUS] = STEP(COMMA_SPACE_SIGN, IT) },
	[STATE_COMMA_SIGN] = { STEPS_OUTSIDE, [CLASS_DIGIT] = STEP(NUMBER, NOTHING) | BACK(2),
			       [CLASS_MINUS] = STEP(LINE_COMMENT, NOTHING) | BACK(1) },
	[STATE_COMMA_SPACE_SIGN] = { STEPS_OUTSIDE, [CLASS_DIGIT] = STEP(NUMBER, NOTHING) | BACK(3),
				     [CLASS_MINUS] = STEP(LINE_COMMENT, NOTHING) | BACK(1) },
	[STATE_STRING] = { STEPS_ALL(STEP(STRING, NOTHING)), [CLASS_QUOTE] =
								     STEP(STRING_END, NOTHING) },
	[STATE_STRING_END] = { STEPS_AFTER_OPERAND, [CLASS_QUOTE] = STEP(STRING, NOTHING),
			       [CLASS_COMMA] = STEP(COMMA, IT) },
	[STATE_ESCAPED] = { STEPS_ALL(STEP(ESCAPED, NOTHING)),
			    [CLASS_BACKSLASH] = STEP(BACKSLASH, NOTHING),
			    [CLASS_QUOTE] = STEP(ESCAPED_END, NOTHING),
			    [CLASS_PLAIN_QUOTE] = STEP(ESCAPED_END, NOTHING) },
	[STATE_BACKSLASH] = { STEPS_ALL(STEP(ESCAPED, NOTHING)) },
	[STATE_ESCAPED_END] = { STEPS_AFTER_OPERAND, [CLASS_QUOTE] = STEP(ESCAPED, NOTHING),
				[CLASS_PLAIN_QUOTE] = STEP(ESCAPED, NOTHING),
				[CLASS_COMMA] = STEP(COMMA, IT) },
	[STATE_QUOTED_NAME] = { STEPS_ALL(STEP(QUOTED_NAME, IT)), [CLASS_DOUBLE_QUOTE] =
									  STEP(OPERAND, IT) },
	[STATE_DOLLAR] = { STEPS_OUTSIDE, [CLASS_DIGIT] = STEP(NAME, IT),
			   [CLASS_NAME] = STEP(TAG, IT), [CLASS_E] = STEP(TAG, IT),
			   [CLASS_DOLLAR] = STEP(BODY, CONSTANT) | BACK(1) },
	[STATE_TAG] = { STEPS_OUTSIDE, [CLASS_DIGIT] = STEP(TAG, IT), [CLASS_NAME] = STEP(TAG, IT),
			[CLASS_E] = STEP(TAG, IT), [CLASS_DOLLAR] = STEP(BODY, IT) },
	[STATE_BODY] = { STEPS_ALL(STEP(BODY, NOTHING)), [CLASS_DOLLAR] =
								 STEP(BODY_DOLLAR, NOTHING) },
	[STATE_BODY_DOLLAR] = { STEPS_ALL(STEP(BODY, NOTHING)),
				[CLASS_DIGIT] = STEP(BODY_DOLLAR, NOTHING),
				[CLASS_NAME] = STEP(BODY_DOLLAR, NOTHING),
				[CLASS_E] = STEP(BODY_DOLLAR, NOTHING),
				[CLASS_DOLLAR] = STEP(OPERAND, NOTHING) },
	[STATE_SLASH] = { STEPS_OUTSIDE, [CLASS_STAR] = STEP(COMMENT, NOTHING) | BACK(1) },
	[STATE_COMMENT] = { STEPS_ALL(STEP(COMMENT, NOTHING)), [CLASS_STAR] = STEP(COMMENT_STAR,
										   NOTHING) },
	[STATE_COMMENT_STAR] = { STEPS_ALL(STEP(COMMENT, NOTHING)),
				 [CLASS_STAR] = STEP(COMMENT_STAR, NOTHING),
				 [CLASS_SLASH] = STEP(BLANK, SPACE) },
	[STATE_SIGN] = { STEPS_OUTSIDE, [CLASS_DIGIT] = STEP(NUMBER, CONSTANT) | BACK(1),
			 [CLASS_MINUS] = STEP(LINE_COMMENT, NOTHING) | BACK(1) },
	[STATE_MINUS] = { STEPS_OUTSIDE, [CLASS_MINUS] = STEP(LINE_COMMENT, NOTHING) | BACK(1) },
	[STATE_LINE_COMMENT] = { STEPS_ALL(STEP(LINE_COMMENT, NOTHING)), [CLASS_NEWLINE] = STEP(
										 BLANK, SPACE) },
	[STATE_DOUBLE] = { STEPS_ALL(STEP(DOUBLE, NOTHING)),
			   [CLASS_BACKSLASH] = STEP(DOUBLE_BACKSLASH, NOTHING),
			   [CLASS_PLAIN_DOUBLE] = STEP(ESCAPED_END, NOTHING) },
	[STATE_DOUBLE_BACKSLASH] = { STEPS_ALL(STEP(DOUBLE, NOTHING)) },
	[STATE_LITERAL] = { STEPS_ALL(STEP(LITERAL, IT)) },
	[STATE_END] = { RANGE(CLASS_END... CLASS_OTHER) = STEP(END, NOTHING) },
};

#define CLASSES_OF_ALL                                                               \
	RANGE(1 ... 255) = CLASS_OTHER, ['\t'] = CLASS_SPACE, ['\v'] = CLASS_SPACE,  \
		    ['\f'] = CLASS_SPACE, ['\r'] = CLASS_SPACE, [' '] = CLASS_SPACE, \
		    ['\n'] = CLASS_NEWLINE, RANGE('0' ... '9') = CLASS_DIGIT,        \
		    RANGE('a' ... 'z') = CLASS_NAME,                                 \
		    RANGE('A' ... 'Z') = CLASS_NAME, ['_'] = CLASS_NAME,             \
		    RANGE(128 ... 255) = CLASS_NAME, ['.'] = CLASS_POINT, [','] = CLASS_COMMA

/* By the rule; of a text that stays as it is, only its end matters. */
static const unsigned char context_classes[4][256] = {
	[CONTEXT_PLAIN] = { CLASSES_OF_ALL, ['\''] = CLASS_PLAIN_QUOTE, ['"'] = CLASS_PLAIN_DOUBLE,
			    ['\\'] = CLASS_BACKSLASH },
	[CONTEXT_SQL] = { CLASSES_OF_ALL, ['e'] = CLASS_E, ['E'] = CLASS_E, ['\''] = CLASS_QUOTE,
			  ['"'] = CLASS_DOUBLE_QUOTE, ['$'] = CLASS_DOLLAR, ['/'] = CLASS_SLASH,
			  ['*'] = CLASS_STAR, ['-'] = CLASS_MINUS, ['\\'] = CLASS_BACKSLASH,
			  [')'] = CLASS_CLOSE, [']'] = CLASS_CLOSE },
	[CONTEXT_PATH] = { CLASSES_OF_ALL, ['\''] = CLASS_PLAIN_QUOTE, ['"'] = CLASS_PLAIN_DOUBLE,
			   ['\\'] = CLASS_BACKSLASH, ['-'] = CLASS_DASH, ['?'] = CLASS_END,
			   ['#'] = CLASS_END },
};

#pragma GCC diagnostic pop

static inline void context_put(struct context_scratch *c, unsigned char byte)
{
	c->bytes[c->used++ & (CONTEXT_VALUE_BYTES - 1)] = byte;
}

/* In these states a step may take back what was written before. */
#define STATES_UNSETTLED                                                                        \
	(1U << STATE_E | 1U << STATE_COMMA | 1U << STATE_COMMA_SPACE | 1U << STATE_COMMA_SIGN | \
	 1U << STATE_COMMA_SPACE_SIGN | 1U << STATE_DOLLAR | 1U << STATE_SLASH |                \
	 1U << STATE_SIGN | 1U << STATE_MINUS)

#define FROM(block, state, used) ((block) | (state) << 8 | (used) << 16)
#define FROM_BLOCK(from)	 ((from)&0xff)
#define FROM_STATE(from)	 ((from) >> 8 & STEP_STATE)
#define FROM_USED(from)		 ((from) >> 16)

static inline struct context_memo *context_memo(struct context_scratch *c)
{
	const unsigned long long *words = c->text.words;
	unsigned long long hash = words[0];

	for (int i = 1; i < CONTEXT_MEMO_LEAST / 8; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15;
	return &c->memos[hash >> 32 & (CONTEXT_MEMOS - 1)];
}

/* Appends a block of c->text, in c->state. */
CONTEXT_FUNCTION int context_put_block(struct context_scratch *c, unsigned int rule,
				       unsigned int block, unsigned int size)
{
	unsigned int used, state, first = block * CONTEXT_BLOCK_BYTES;

	if (!c)
		return 0;
	used = c->used;
	state = c->state;
	for (unsigned int i = 0; i < CONTEXT_BLOCK_BYTES && first + i < size; i++) {
		unsigned char byte = c->text.bytes[(first + i) & (CONTEXT_TEXT_BYTES - 1)];
		unsigned int step = context_steps[state & STEP_STATE]
						 [context_classes[rule & 3][byte] & (CLASSES - 1)];
		/* The first of these is written, too, but not counted. */
		unsigned int written = STEP_WRITE(step), bytes = byte << 8 | '?' << 16 | ' ' << 24;

		used -= STEP_BACK(step);
		c->bytes[used & (CONTEXT_VALUE_BYTES - 1)] = bytes >> (written * 8);
		/* 1 if something is written, and there is room: without a branch, as above. */
		used += (written | written >> 1) &
			(used - (CONTEXT_VALUE_BYTES - CONTEXT_SPARE)) >> 31;
		state = step & STEP_STATE;
	}
	c->used = used;
	c->state = state;
	return 0;
}

/* Notes a block that was appended, for context_resume(). */
CONTEXT_FUNCTION int context_note_block(struct context_scratch *c, unsigned int block)
{
	struct context_memo *memo;

	if (!c || block >= CONTEXT_BLOCKS)
		return 0;
	memo = context_memo(c);
	if (!(STATES_UNSETTLED >> (c->state & STEP_STATE) & 1))
		c->from = FROM(block + 1, c->state, c->used - c->begin);
	memo->read.words[2 * block] = c->text.words[2 * block];
	memo->read.words[2 * block + 1] = c->text.words[2 * block + 1];
	memo->after[block] = c->from;
	return 0;
}

/*
 * Appends what is known of the blocks with which c->text begins. Sets c->from, whose bytes those
 * are, to where to go on. Returns whether all whole blocks are known.
 */
CONTEXT_FUNCTION int context_resume(struct context_scratch *c, unsigned int rule, unsigned int size)
{
	unsigned int same = 0, count;
	struct context_memo *memo;

	if (!c)
		return 0;
	memo = context_memo(c);
	if (memo->rule != rule)
		memo->blocks = 0;
	memo->rule = rule;
	count = size / CONTEXT_BLOCK_BYTES < memo->blocks ? size / CONTEXT_BLOCK_BYTES
							  : memo->blocks;
	while (same < CONTEXT_BLOCKS && same < count &&
	       memo->read.words[2 * same] == c->text.words[2 * same] &&
	       memo->read.words[2 * same + 1] == c->text.words[2 * same + 1])
		c->from = memo->after[same++];
	memo->blocks = same;
	count = FROM_USED(c->from) & (CONTEXT_VALUE_BYTES - 1);
	CONTEXT_COPY(c->bytes + (c->used & (CONTEXT_VALUE_BYTES - 1)), count, memo->made);
	c->used += count;
	return same == size / CONTEXT_BLOCK_BYTES;
}

/* Keeps what was made of c->text, so that others can go on from there. */
CONTEXT_FUNCTION int context_keep(struct context_scratch *c, unsigned int size)
{
	struct context_memo *memo;

	if (!c)
		return 0;
	memo = context_memo(c);
	memo->blocks = size / CONTEXT_BLOCK_BYTES;
	CONTEXT_COPY(memo->made, (c->used - c->begin) & (CONTEXT_VALUE_BYTES - 1),
		     c->bytes + (c->begin & (CONTEXT_VALUE_BYTES - 1)));
	return 0;
}

/*
 * Appends c->text, which has `size` bytes, as the rule has it. Returns how many bytes it has now.
 * is_cut: it is the beginning of a longer one.
 */
CONTEXT_FUNCTION int context_put_text(struct context_scratch *c, unsigned int rule,
				      unsigned int size, bool is_cut)
{
	unsigned int used, last;

	if (!c)
		return 0;
	c->begin = c->used;
	c->from = FROM(0, rule & CONTEXT_LITERAL ? STATE_LITERAL : STATE_BLANK, 0);
	/* Where there may be no room for all of it, that has a part in what it becomes. */
	c->has_memo = size >= CONTEXT_MEMO_LEAST &&
		      c->begin <= CONTEXT_VALUE_BYTES - CONTEXT_SPARE - CONTEXT_TEXT_BYTES;
	if (c->has_memo && context_resume(c, rule, size))
		c->has_memo = 0; /* there is nothing to be noted */
	c->state = FROM_STATE(c->from);
	c->first = FROM_BLOCK(c->from);
	for (unsigned int i = 0; i < CONTEXT_BLOCKS && i * CONTEXT_BLOCK_BYTES < size; i++) {
		if (i < c->first)
			continue;
		context_put_block(c, rule, i, size);
		if (c->has_memo && (i + 1) * CONTEXT_BLOCK_BYTES <= size)
			context_note_block(c, i);
	}
	if (c->has_memo)
		context_keep(c, size);
	used = c->used;
	last = (used - 1) & (CONTEXT_VALUE_BYTES - 1);
	if (used > c->begin && !(rule & CONTEXT_LITERAL) && c->bytes[last] == ' ')
		c->used--;
	if ((is_cut && c->state != STATE_END) || used >= CONTEXT_VALUE_BYTES - CONTEXT_SPARE) {
		context_put(c, '.');
		context_put(c, '.');
		context_put(c, '.');
	}
	return c->used - c->begin;
}

/* Clears what is behind the values, up to a whole word. Returns how many words they have. */
static inline unsigned int context_end(struct context_scratch *c)
{
	unsigned int words = (c->used + 7) / 8;

	for (int i = 0; i < 8; i++) {
		unsigned int at = c->used + i;

		if (at < words * 8)
			c->bytes[at & (CONTEXT_VALUE_BYTES - 1)] = 0;
	}
	return words;
}

#endif
