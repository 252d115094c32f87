/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Context: values of variables of a process that say for whom its threads work, such as the query
 * that a PostgreSQL backend runs. The BPF program reads them at a tick, and when a thread leaves
 * its CPU. Shared by it and user space. Both include it, so it includes nothing.
 */
#ifndef PROFIL_BPF_CONTEXT_H
#define PROFIL_BPF_CONTEXT_H

/*
 * Bound: users: variables that are read of one image, and images of a process that have some; then:
 * the others have no labels; again: never; share: the process's own; seen: not seen.
 */
#define CONTEXT_VARIABLES      8
#define CONTEXT_PROCESS_IMAGES 2

enum context_kind {
	CONTEXT_NONE,
	CONTEXT_STRING,	 /* the variable is the text */
	CONTEXT_POINTER, /* the variable points to the text; NULL: there is none */
	CONTEXT_U32,
	CONTEXT_U64,
	CONTEXT_RECORD,	  /* the variable points to a struct context_record; NULL: there is none */
	CONTEXT_MEMBER,	  /* it points to a structure, which points to the text there: within */
	CONTEXT_FASTCGI,  /* it points to a request of PHP's FastCGI, with parameters within */
	CONTEXT_GO_SLICE, /* it points to a goroutine with pprof's labels: since Go 1.24 */
	CONTEXT_GO_MAP,	  /* before */
	CONTEXT_KINDS
};

/* How a text becomes one that others share: bpf/context_text.h. */
enum context_rule {
	CONTEXT_PLAIN,	     /* numbers and quoted strings are replaced by ? */
	CONTEXT_SQL,	     /* so are dollar quotes; comments are removed, quoted names stay */
	CONTEXT_PATH,	     /* as PLAIN, up to a ? or #, which begins what is no path */
	CONTEXT_LITERAL = 4, /* with one of these: nothing is replaced */
	CONTEXT_RULES = 8
};

/*
 * Where a variable is. A thread-local one is found as the image's own code finds it: from what the
 * dynamic linker has written into the image's memory, at `address`.
 */
enum context_place {
	CONTEXT_OF_IMAGE,    /* at `address` */
	CONTEXT_OF_THREAD,   /* so many bytes, `offset`, from the thread pointer */
	CONTEXT_BY_DISTANCE, /* as far from it as `address` says, and `offset` more */
	CONTEXT_BY_MODULE,   /* `address` has the number of a module, in which it is at `offset` */
	CONTEXT_BY_INDEX,    /* `address` has the module, and where it is there */
	CONTEXT_BY_DESCRIPTOR, /* `address` has a TLS descriptor, `offset` more */
	CONTEXT_PLACES
};

struct context_variable {
	unsigned long long address; /* ELF virtual */
	unsigned long long offset;
	unsigned short length; /* of a text, in bytes */
	unsigned char kind;    /* enum context_kind */
	unsigned char rule;    /* enum context_rule */
	unsigned char label;   /* the number of its label, below CONTEXT_LABELS */
	unsigned char place;   /* enum context_place */
	/*
	 * Of variables with one label, which follow each other, the first that has a value is read,
	 * and then the first of part 1, whose text is appended behind a blank.
	 */
	unsigned char part;
	unsigned char unused;
	short gate;		/* distance of a byte that is 0 while there is no value; 0: none */
	unsigned short within;	/* of MEMBER and FASTCGI; of the labels in a goroutine */
	unsigned short current; /* of the current goroutine in a thread of Go */
	unsigned short unused_2;
};

/*
 * What a thread works for, as OpenTelemetry's libraries publish it for readers outside (OTEP 4947,
 * "Thread-Local Context Record"). `size` bytes follow: attributes of a key, a length and as many
 * bytes of text. Only the thread itself changes it, so whoever interrupts the thread can read it.
 */
struct context_record {
	unsigned char trace[16], span[8]; /* 0: none */
	unsigned char valid;		  /* 1, or it is none */
	unsigned char flags;
	unsigned short size;
};

/* Bytes of a trace and a span. Bound: format. */
#define CONTEXT_ID_BYTES 24

/*
 * Bytes of attributes.
 * Bound: users: bytes of a record's attributes; then: those behind are missing; again: when it has
 * another record; share: each thread's own; seen: context_cut.
 */
#define CONTEXT_RECORD_BYTES 384

/*
 * Where a C library keeps the addresses of modules' thread-local variables: a vector, whose address
 * is so many words behind the thread pointer, with elements of 1 << shift bytes.
 */
struct context_vector {
	signed char word;
	unsigned char shift; /* 0: it is no C library; else enum context_vector_shift */
};

enum context_vector_shift {
	CONTEXT_MUSL = 3,  /* the first element is their number */
	CONTEXT_GLIBC = 4, /* the first one counts changes; the one before it is their number */
};

/* What is read of the processes that map an image. */
struct context_image {
	unsigned int count;
	struct context_vector vector;
	/*
	 * So many of its first variables do not change any more once the last one has a value. One
	 * of the image follows that is a CONTEXT_POINTER.
	 */
	unsigned char fixed;
	unsigned char unused;
	struct context_variable variables[CONTEXT_VARIABLES];
};

/*
 * Images with variables; 0 is none.
 * Bound: users: different images of a recording whose variables are read; then: processes of
 * further ones have no labels; again: when the image is read again; share: a quarter for the files
 * of a user; seen: not seen.
 */
#define CONTEXT_IMAGES 64
/* Bound: as CONTEXT_IMAGES. */
#define CONTEXT_USER_IMAGES (CONTEXT_IMAGES / 4)

/* Bound: caller: labels of a recording; then: the option is refused. */
#define CONTEXT_LABELS 24

/*
 * Bytes of one text, and of all values of a thread together.
 * Bound: users: bytes of texts; then: the rest is cut off, and "..." follows; again: never; share:
 * each thread's own; seen: by the dots.
 */
#define CONTEXT_TEXT_BYTES  256
#define CONTEXT_LENGTH	    (CONTEXT_TEXT_BYTES - 1)
#define CONTEXT_VALUE_BYTES 512
#define CONTEXT_VALUE_WORDS (CONTEXT_VALUE_BYTES / 8)

/*
 * The values of a thread: for each variable a byte that says its label, its bytes, which are never
 * 0, and a 0. A number has CONTEXT_NUMBER_BYTES, each with 7 bits of it, the lowest first, and the
 * uppermost bit set. Of a record, any bytes: two more say how many, as a number does. Stored once
 * for all threads that have the same.
 */
struct context_value {
	unsigned long long hash; /* 0: the entry is free */
	unsigned int words;	 /* in use; written last: until then the entry is none */
	unsigned int image;	 /* which has the variables, or some of them */
	unsigned long long bytes[CONTEXT_VALUE_WORDS];
};

/* In the hash: 1, and whether the thread has more than was read: there was no room. */
#define CONTEXT_HASH_USED 1
#define CONTEXT_HASH_CUT  2

#define CONTEXT_NUMBER 0x40 /* in the first byte: a number follows */
#define CONTEXT_BLOB   0x80 /* in the first byte: bytes of a record */
#define CONTEXT_NAMED  0x3f /* instead of a label: its name, a 0 and the text follow */
/* Bound: format. */
#define CONTEXT_NUMBER_BYTES 10

/*
 * The table of values. Those below CONTEXT_IMAGES have no text: of a process with the variables of
 * the image with this number, what found no room.
 * With windows there are two banks of the rest: one for values from now on, and one of the last
 * window, which user space clears before it is the next one's.
 * Bound: users: different values of a recording, or of a window, which may have half of them; then:
 * samples with others are labelled [others]; again: at the next window; without windows never;
 * share: a process and a user have as many as are still free, so half of all; seen: context_others.
 */
#define CONTEXT_VALUES 8192
#define CONTEXT_PROBES 16

static inline unsigned int context_bank_values(unsigned int banks)
{
	return (CONTEXT_VALUES - CONTEXT_IMAGES) / banks;
}

/* The number of the first value of a bank. */
static inline unsigned int context_bank_first(unsigned int bank, unsigned int banks)
{
	return CONTEXT_IMAGES + bank * context_bank_values(banks);
}

/* Counts of values: of all, of users by their hash, and of processes by theirs. Bound: state. */
#define CONTEXT_SHARES 1024

#endif
