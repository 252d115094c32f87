/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the values of a thread's process that bpf/context.h describes, and finds or adds their
 * entry in the table of values. Its number is that of the stack's context, so equal values are one.
 *
 * The variables are found by the mapped images, as interpreters are: a process without any has no
 * number of a mapping in what the walk has looked up already, and nothing is done for it.
 */
#ifndef PROFIL_BPF_CONTEXT_READ_H
#define PROFIL_BPF_CONTEXT_READ_H

#include "count.h"
#include "owner.h"
#include "unwind_maps.h"
#include "walk.h"

#define CONTEXT_FUNCTION	     __noinline
#define CONTEXT_COPY(to, size, from) bpf_probe_read_kernel(to, size, from)
#include "context_text.h"

/* By the number that struct unwind_image has. */
MAPPED_ARRAY(contexts, CONTEXT_IMAGES, struct context_image);

/*
 * Without an image that has variables, the table of values has one element. With the first one that
 * is mapped later, user space puts a whole table into context_values_in_use. Without types, as
 * parts in unwind_maps.h.
 */
struct context_values_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP); /* of any size */
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct context_value));
};
struct context_values_table context_values SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct context_values_table);
} context_values_in_use SEC(".maps") = { .values = { &context_values } };

static __always_inline struct context_value *context_value_at(__u32 number)
{
	void *table = bpf_map_lookup_elem(&context_values_in_use, (void *)&only_key);

	return table ? bpf_map_lookup_elem(table, &number) : NULL;
}

/*
 * Written by user space at any time: its last bits are the bank of `context_values` to which values
 * are added. The numbers of the other bank's are of the last window.
 */
volatile __u32 context_bank SEC(".data.banks");
const volatile __u32 context_banks = 1; /* how many there are */

/* The first is of all; one half of the rest is of users, the other of processes. */
MAPPED_ARRAY(context_shares, CONTEXT_SHARES, __u64);

/* A thread-local variable was not read: where the C library keeps those is unknown. */
volatile bool lacks_context_vector = false;

static __always_inline __u64 *context_share(__u64 of, bool is_process)
{
	__u32 half = CONTEXT_SHARES / 2;
	__u32 key = 1 + (of * 0x9e3779b97f4a7c15 >> 32) % (half - 1) + (is_process ? half : 0);

	return bpf_map_lookup_elem(&context_shares, &key);
}

/* Adds a value, if there is room for its user and process, to this free entry. */
__noinline int add_context(struct context_scratch *c, __u32 number, __u64 hash, __u64 process,
			   __u32 image)
{
	struct context_value *value = context_value_at(number);
	__u64 *of_process = context_share(process, true), *of_user, *all, free;
	__u32 zero = 0;

	all = bpf_map_lookup_elem(&context_shares, &zero);
	if (c && c->user == CONTEXT_CURRENT_USER)
		c->user = user_of(bpf_get_current_task_btf());
	of_user = c ? context_share(c->user, false) : NULL;
	if (!c || !value || !of_user || !of_process || !all)
		return false;
	free = context_bank_values(context_banks) - *all;
	/* Each request has another trace: those leave room for what else is said of them. */
	if (c->ids)
		free /= 2;
	/* What came while user space cleared the counts may be more than fits. */
	if (*all > context_bank_values(context_banks) || *of_user >= free || *of_process >= free ||
	    __sync_val_compare_and_swap(&value->hash, 0, hash))
		return false;
	__sync_fetch_and_add(all, 1);
	__sync_fetch_and_add(of_user, 1);
	__sync_fetch_and_add(of_process, 1);
	bpf_probe_read_kernel(value->bytes, sizeof(value->bytes), c->words);
	value->image = image;
	write_in_order(&value->words, (c->used + 7) / 8);
	return true;
}

/* Whether the entry with this number has the value. */
__noinline int is_context_at(struct context_scratch *c, __u32 number)
{
	struct context_value *value = context_value_at(number);
	struct stack_block *blocks, *there;
	__u32 count;

	if (!c || !value)
		return 0;
	count = (c->used + 7) / 8;
	if (value->words != count)
		return 0;
	blocks = (struct stack_block *)c->words;
	there = (struct stack_block *)value->bytes;
	for (__u32 i = 0; i < CONTEXT_VALUE_WORDS / STACK_BLOCK_WORDS; i++)
		if (i * STACK_BLOCK_WORDS < count &&
		    !blocks_are_equal(&blocks[i], &there[i], count - i * STACK_BLOCK_WORDS))
			return 0;
	return 1;
}

/*
 * The number of the value's entry; `image`, which has the variables: there is no room for it. What
 * is remembered is not compared: a process that has two values with one hash harms its own labels.
 */
__noinline int find_context(struct context_scratch *c, __u64 process, __u32 image)
{
	__u32 bank = context_bank, count;
	__u32 first = context_bank_first(bank & (context_banks - 1), context_banks);
	struct context_found *found;
	struct stack_block *blocks;
	__u64 hash = 0, index;

	if (!c)
		return 0;
	count = context_end(c);
	blocks = (struct stack_block *)c->words;
	for (__u32 i = 0; i < CONTEXT_VALUE_WORDS / STACK_BLOCK_WORDS; i++)
		if (i * STACK_BLOCK_WORDS < count)
			hash = hash_block(&blocks[i], count - i * STACK_BLOCK_WORDS, hash);
	hash = (hash & ~(__u64)CONTEXT_HASH_CUT) | c->cut | CONTEXT_HASH_USED;
	index = (hash >> 32) ^ sample_id_tgid(process);
	barrier_var(index); /* as in fixed_of() */
	found = &c->found[index & (CONTEXT_MEMOS - 1)];
	if (found->hash == hash && found->process == process && found->bank == bank)
		return found->number;
	for (__u32 i = 0; i < CONTEXT_PROBES; i++) {
		__u32 number = first + ((hash >> 32) + i * probe_step(hash)) %
					       context_bank_values(context_banks);
		struct context_value *value = context_value_at(number);

		if (!value)
			break;
		if (value->hash == hash ? !is_context_at(c, number) : value->hash)
			continue;
		if (!value->hash && !add_context(c, number, hash, process, image))
			return image;
		found->process = process;
		found->hash = hash;
		found->bank = bank;
		found->number = number;
		return number;
	}
	return image;
}

/* Appends a number to the values. */
static __always_inline void put_number(struct context_scratch *c, __u64 number)
{
	for (int i = 0; i < CONTEXT_NUMBER_BYTES; i++, number >>= 7)
		context_put(c, 0x80 | (number & 0x7f));
}

/*
 * Sets c->address to where the current thread has a thread-local variable. Returns 0 if it has none
 * yet: the C library makes those of a library that was opened at run time when they are first used.
 */
__noinline int find_thread_local(struct context_scratch *c, __u64 address, __u64 offset,
				 __u32 place)
{
	/* A module and an offset; in glibc's descriptors, at which change the module came. */
	__u64 index[3] = {}, vector = 0, changes = 0, modules = 0, begin = 0;
	__u32 shift;

	if (!c)
		return 0;
	if (!c->thread_pointer)
		c->thread_pointer = thread_pointer_of(bpf_get_current_task_btf());
	if (!c->thread_pointer)
		return 0;
	c->address = c->thread_pointer + offset;
	if (place == CONTEXT_OF_THREAD)
		return 1;
	shift = c->vector.shift;
	address += c->bias;
	if (bpf_probe_read_user(index, 8, (void *)address))
		return 0;
	if (place == CONTEXT_BY_DESCRIPTOR) {
		/* A function, and what that makes an address of. */
		if (bpf_probe_read_user(index, 8, (void *)(address + 8)))
			return 0;
		/* Distances are negative on x86-64, and small on arm64, where no memory is. */
		if ((__s64)index[0] < 65536)
			place = CONTEXT_BY_DISTANCE;
		else if (bpf_probe_read_user(index, shift == CONTEXT_GLIBC ? 24 : 16,
					     (void *)index[0]))
			return 0;
	}
	if (place == CONTEXT_BY_DISTANCE) {
		c->address += index[0];
		return 1;
	}
	if (place == CONTEXT_BY_INDEX && bpf_probe_read_user(&index[1], 8, (void *)(address + 8)))
		return 0;
	if (place == CONTEXT_BY_MODULE)
		index[1] = 0;
	if (!shift)
		lacks_context_vector = true;
	if (!shift || !index[0] ||
	    bpf_probe_read_user(&vector, 8, (void *)(c->thread_pointer + c->vector.word * 8)) ||
	    !vector || bpf_probe_read_user(&changes, 8, (void *)vector))
		return 0;
	modules = changes;
	if (shift == CONTEXT_GLIBC &&
	    (index[2] > changes || bpf_probe_read_user(&modules, 8, (void *)(vector - 16))))
		return 0;
	/* -1: it is not made yet. */
	if (index[0] > modules || index[0] >> 32 ||
	    bpf_probe_read_user(&begin, 8, (void *)(vector + (index[0] << (shift & 7)))) ||
	    !begin || begin == -1ULL)
		return 0;
	c->address = begin + index[1] + offset;
	return 1;
}

/* Appends so many bytes at an address, of the process. Returns 0 if they cannot be read. */
static __always_inline int put_bytes(struct context_scratch *c, __u32 label, __u64 size,
				     const void *from, bool is_user)
{
	__u32 to = c->used;

	/* The verifier is to see the check of what is used, not of another copy of it. */
	barrier_var(size);
	if (size > CONTEXT_RECORD_BYTES || to + size >= CONTEXT_VALUE_BYTES - CONTEXT_SPARE)
		return 0;
	to &= CONTEXT_VALUE_BYTES - 1;
	if (is_user ? bpf_probe_read_user(c->bytes + to + 3, size, from)
		    : bpf_probe_read_kernel(c->bytes + to + 3, size, from))
		return 0;
	context_put(c, CONTEXT_BLOB | (label + 1));
	context_put(c, 0x80 | (size & 0x7f));
	context_put(c, 0x80 | size >> 7);
	c->used += size;
	context_put(c, 0);
	return 1;
}

/*
 * Appends the record at c->address, attributes before the ids. What another thread changes
 * meanwhile, which none may, is no value.
 */
__noinline int read_record(struct context_scratch *c, __u32 label)
{
	__u32 begin, size;
	__u64 address, *ids, *again;

	if (!c)
		return 0;
	address = c->address;
	begin = c->used;
	if (bpf_probe_read_user(&c->record, sizeof(c->record), (void *)address) ||
	    c->record.valid != 1)
		return 0;
	/* A second one has room for nothing. */
	if (c->ids || begin >= CONTEXT_VALUE_BYTES - 4 * CONTEXT_SPARE) {
		c->cut = CONTEXT_HASH_CUT;
		return 0;
	}
	size = c->record.size;
	if (size > CONTEXT_RECORD_BYTES)
		size = CONTEXT_RECORD_BYTES;
	if (size > CONTEXT_VALUE_BYTES - 4 * CONTEXT_SPARE - begin)
		size = CONTEXT_VALUE_BYTES - 4 * CONTEXT_SPARE - begin;
	if (size != c->record.size)
		c->cut = CONTEXT_HASH_CUT;
	if (size && !put_bytes(c, label, size, (void *)(address + sizeof(c->record)), true))
		return 0;
	ids = (__u64 *)&c->record;
	again = (__u64 *)&c->again;
	if (bpf_probe_read_user(&c->again, sizeof(c->again), (void *)address) ||
	    ids[0] != again[0] || ids[1] != again[1] || ids[2] != again[2] || c->again.valid != 1 ||
	    c->record.size != c->again.size) {
		c->used = begin;
		return 0;
	}
	if (ids[0] | ids[1] | ids[2]) {
		c->ids = c->used;
		put_bytes(c, label + 1, CONTEXT_ID_BYTES, &c->record, false);
	}
	return 1;
}

/* --- PHP's FastCGI --- */

/*
 * The parameters of a request are in a table by their hash; those of this bucket in a list.
 * sapi fpm and cgi (main/fastcgi.c), since PHP 7.
 */
struct fastcgi_parameter {
	__u32 hash, name_size;
	__u64 name;
	__u32 value_size;
	__u64 value, next;
};

#define FASTCGI_URI_HASH 1955 /* of "REQUEST_URI" */
#define FASTCGI_URI_SIZE 11
/* Bound: users: parameters of a request with one hash; then: further ones are not found; again: at
 * the next request; share: the process's own; seen: not seen. */
#define FASTCGI_DEPTH 4

/* The address of the URI of a request, whose parameters with its hash begin at `first`; 0: none. */
static __always_inline __u64 find_fastcgi_uri(struct context_scratch *c, __u64 first)
{
	struct fastcgi_parameter *parameter = (struct fastcgi_parameter *)c->leads;

	if (READ_USER(first, first))
		return 0;
	for (int i = 0; i < FASTCGI_DEPTH && first; i++) {
		if (READ_USER(*parameter, first))
			return 0;
		if (parameter->hash == FASTCGI_URI_HASH && parameter->name_size == FASTCGI_URI_SIZE)
			return parameter->value;
		first = parameter->next;
	}
	return 0;
}

/* --- Go's pprof labels --- */

struct go_string {
	__u64 text, size;
};

struct go_label {
	struct go_string name, text;
};

/*
 * Labels of a goroutine: since Go 1.24 a slice; before, a map, which has one bucket up to so many.
 * Bound: users: labels of a goroutine; then: further ones are not read, and of a map none is;
 * again: when it has other labels; share: each thread's own; seen: context_cut.
 */
#define GO_LABELS 8
#define GO_M	  48 /* of the thread, in a goroutine */

/*
 * All bits of it are set. Bound: users: bytes of a label's name; then: the rest is cut off; again:
 * never; share: each thread's own; seen: context_cut.
 */
#define GO_NAME_BYTES 63

/* Appends the label in c->leads. Returns 0 if it has no name or text, or there is no room. */
__noinline int put_go_label(struct context_scratch *c, __u32 rule)
{
	const struct go_label *label;
	__u32 begin, size, length;

	if (!c)
		return 0;
	label = (const struct go_label *)c->leads;
	begin = c->used;
	size = label->name.size < GO_NAME_BYTES ? label->name.size : GO_NAME_BYTES;
	if (begin >= CONTEXT_VALUE_BYTES - 2 * CONTEXT_SPARE - GO_NAME_BYTES) {
		c->cut |= label->text.size ? CONTEXT_HASH_CUT : 0;
		return 0;
	}
	c->cut |= label->name.size > size && label->text.size ? CONTEXT_HASH_CUT : 0;
	barrier_var(size); /* as in fixed_of() */
	if (!size ||
	    bpf_probe_read_user(c->text.bytes, size & GO_NAME_BYTES, (void *)label->name.text))
		return 0;
	context_put(c, CONTEXT_NAMED);
	context_put_text(c, CONTEXT_LITERAL, size, false);
	context_put(c, 0);
	length = c->used;
	size = label->text.size < CONTEXT_LENGTH ? label->text.size : CONTEXT_LENGTH;
	if (size && !bpf_probe_read_user(c->text.bytes, size, (void *)label->text.text))
		context_put_text(c, rule, size, label->text.size > size);
	/* What is one number is no constant in a text, but what the label is for. */
	if (c->used == length + 1 && c->bytes[length & (CONTEXT_VALUE_BYTES - 1)] == '?') {
		c->used = length;
		context_put_text(c, rule | CONTEXT_LITERAL, size, label->text.size > size);
	}
	if (c->used == length) {
		c->used = begin;
		return 0;
	}
	context_put(c, 0);
	return 1;
}

/* Appends the labels of the goroutine that this thread runs. g: the one that its stack is of. */
static __always_inline int read_go_labels(struct context_scratch *c,
					  const struct context_variable *variable, __u64 g)
{
	struct go_label *label = (struct go_label *)c->leads;
	bool is_map = variable->kind == CONTEXT_GO_MAP;
	__u64 first, count = GO_LABELS;
	__u8 buckets = 0;

	if (READ_USER(g, g + GO_M) || READ_USER(g, g + variable->current) || !g ||
	    READ_USER(g, g + variable->within) || !g || (is_map && READ_USER(g, g)))
		return 0;
	if (is_map ? READ_USER(buckets, g + 9) || READ_USER(first, g + 16)
		   : READ_USER(first, g) || READ_USER(count, g + 8))
		return 0;
	if (buckets || count > GO_LABELS)
		c->cut = CONTEXT_HASH_CUT;
	if (buckets)
		return 0;
	if (is_map)
		first += 8; /* hashes; behind the names are the texts */
	for (__u32 i = 0; i < GO_LABELS && i < count; i++) {
		if (is_map ? READ_USER(label->name, first + i * sizeof(label->name)) ||
				     READ_USER(label->text,
					       first + (GO_LABELS + i) * sizeof(label->name))
			   : READ_USER(*label, first + i * sizeof(*label)))
			break;
		put_go_label(c, variable->rule);
	}
	return 0;
}

/*
 * Appends the value of a variable. What cannot be read is no value. Returns whether there is one;
 * below 0: there is no such variable.
 */
__noinline int read_variable(struct context_scratch *c, __u32 index)
{
	const struct context_image *image;
	const struct context_variable *variable;
	__u64 address, number = 0;
	__u32 key, begin, length;
	__u16 label;
	__u8 open = 0;
	long size;

	if (!c)
		return 0;
	key = c->image;
	image = bpf_map_lookup_elem(&contexts, &key);
	if (!image || index >= CONTEXT_VARIABLES || index >= image->count)
		return -1;
	if (c->used >= CONTEXT_VALUE_BYTES - 2 * CONTEXT_SPARE) {
		c->cut = CONTEXT_HASH_CUT;
		return 0;
	}
	variable = &image->variables[index];
	c->address = c->bias + variable->address;
	if (variable->place != CONTEXT_OF_IMAGE &&
	    !find_thread_local(c, variable->address, variable->offset, variable->place))
		return 0;
	address = c->address;
	label = variable->label + 1;
	if (label == c->label ? variable->part <= c->part : variable->part)
		return 0;
	if (variable->gate && (READ_USER(open, address + variable->gate) || !open))
		return 0;
	begin = c->used;
	switch (variable->kind) {
	case CONTEXT_RECORD:
		if (bpf_probe_read_user(&c->address, sizeof(c->address), (void *)address) ||
		    !c->address)
			return 0;
		return read_record(c, variable->label);
	case CONTEXT_U32:
	case CONTEXT_U64:
		if (bpf_probe_read_user(&number, variable->kind == CONTEXT_U32 ? 4 : 8,
					(void *)address))
			return 0;
		context_put(c, CONTEXT_NUMBER | label);
		put_number(c, number);
		break;
	case CONTEXT_GO_SLICE:
	case CONTEXT_GO_MAP:
		return READ_USER(address, address) ? 0 : read_go_labels(c, variable, address);
	case CONTEXT_FASTCGI:
	case CONTEXT_MEMBER:
	case CONTEXT_POINTER:
		if (READ_USER(address, address) || !address)
			return 0;
		if (variable->kind == CONTEXT_MEMBER &&
		    (READ_USER(address, address + variable->within) || !address))
			return 0;
		if (variable->kind == CONTEXT_FASTCGI)
			address = find_fastcgi_uri(c, address + variable->within);
	/* fallthrough */
	case CONTEXT_STRING:
		length = variable->length;
		if (length >= CONTEXT_TEXT_BYTES)
			length = CONTEXT_TEXT_BYTES - 1;
		/* With the 0: where that was not reached, it stands for the last byte. */
		size = bpf_probe_read_user_str(c->text.bytes, length + 1, (void *)address);
		if (size <= 1) /* empty, or unreadable */
			return 0;
		if (variable->part)
			c->bytes[(c->used - 1) & (CONTEXT_VALUE_BYTES - 1)] = ' ';
		else
			context_put(c, label);
		if (!context_put_text(c, variable->rule, size > length ? length : size,
				      size > length)) { /* nothing but blanks and comments */
			c->bytes[(begin - 1) & (CONTEXT_VALUE_BYTES - 1)] = 0;
			c->used = begin;
			return 0;
		}
		break;
	default:
		return 0;
	}
	c->label = label;
	c->part = variable->part;
	context_put(c, 0);
	return 1;
}

/*
 * What the process has that does not change any more. The masks of both functions are there for the
 * verifier of Linux 6.1, right before they are needed, where the compiler may not remove them.
 */
static __always_inline struct context_fixed *fixed_of(struct context_scratch *c, __u64 process)
{
	__u64 index = sample_id_tgid(process);

	barrier_var(index);
	return &c->fixed[index & (CONTEXT_MEMOS - 1)];
}

/* Reads the text into c->leads to which c->next points. Returns 0 if it is longer, or none. */
static __always_inline int read_next(struct context_scratch *c)
{
	__u64 address, ends = 0;

	if (READ_USER(address, c->bias + c->next) || !address || READ_USER(c->leads, address))
		return 0;
	for (int i = 0; i < CONTEXT_SHORT_WORDS; i++) /* one of its bytes is 0 */
		ends |= (c->leads[i] - 0x0101010101010101) & ~c->leads[i] & 0x8080808080808080;
	return ends != 0;
}

/*
 * Appends what is remembered of the process and c->image. Returns of how many variables: `count`,
 * and perhaps of c->next; 0: nothing is.
 */
__noinline int take_fixed(struct context_scratch *c, __u64 process, __u32 count)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct context_fixed *known;
	__u64 used, begin;

	if (!c)
		return 0;
	known = fixed_of(c, process);
	if (known->process != process || known->image != c->image ||
	    known->start_ns != task->group_leader->start_time)
		return 0;
	used = known->used;
	if (known->used_with_next && read_next(c) && known->next[0] == c->leads[0] &&
	    known->next[1] == c->leads[1] && known->next[2] == c->leads[2] &&
	    known->next[3] == c->leads[3]) {
		used = known->used_with_next;
		count++;
	}
	begin = c->used;
	c->used += used;
	barrier_var(used);
	barrier_var(begin);
	bpf_probe_read_kernel(c->bytes + (begin & (CONTEXT_VALUE_BYTES - 1)),
			      used & (CONTEXT_FIXED_BYTES - 1), known->bytes);
	return count;
}

/* Remembers so many bytes of the values, if they have room: without and with that of c->next. */
__noinline int keep_fixed(struct context_scratch *c, __u64 process, __u32 from, __u32 used,
			  __u32 with_next)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct context_fixed *known;
	__u64 begin = from, size;

	if (!c || !used || used >= CONTEXT_FIXED_BYTES)
		return 0;
	if (with_next >= CONTEXT_FIXED_BYTES || !read_next(c))
		with_next = 0;
	known = fixed_of(c, process);
	known->used = used;
	known->used_with_next = with_next;
	known->process = process;
	known->image = c->image;
	known->start_ns = task->group_leader->start_time;
	for (int i = 0; i < CONTEXT_SHORT_WORDS; i++)
		known->next[i] = c->leads[i];
	size = with_next ?: used;
	barrier_var(size);
	barrier_var(begin);
	bpf_probe_read_kernel(known->bytes, size & (CONTEXT_FIXED_BYTES - 1),
			      c->bytes + (begin & (CONTEXT_VALUE_BYTES - 1)));
	return 0;
}

/*
 * Appends the values of the image's variables. Those that do not change any more, once its last
 * variable has a value, are remembered with the process that has them, and with the next one's.
 */
__noinline int read_image(struct context_scratch *c, __u64 process)
{
	const struct context_image *image;
	__u32 key, begin, ends[2] = {}, first = 0, count;
	int value = 0, next;

	if (!c)
		return 0;
	key = c->image;
	image = bpf_map_lookup_elem(&contexts, &key);
	if (!image)
		return 0;
	count = image->fixed;
	c->next = image->variables[count & (CONTEXT_VARIABLES - 1)].address;
	begin = c->used;
	if (count)
		first = take_fixed(c, process, count);
	for (__u32 i = 0; i < CONTEXT_VARIABLES; i++) {
		if (i < first)
			continue;
		if (i == count)
			ends[0] = c->used;
		if (i == count + 1)
			ends[1] = c->used;
		next = read_variable(c, i);
		if (next < 0)
			break;
		value = next;
	}
	if (first <= count && value && ends[0] > begin)
		keep_fixed(c, process, begin, ends[0] - begin, ends[1] - begin);
	return 0;
}

/*
 * Returns the number of the values that the current thread's process has now: walk->process was
 * looked up. 0: it has none.
 */
__noinline int read_context(struct walk *walk, struct context_scratch *c, __u64 process)
{
	__u32 first = 0, found;

	if (!walk || !c)
		return 0;
	c->thread_pointer = 0; /* until a variable needs it */
	c->vector = walk->process.vector;
	c->used = c->ids = c->label = c->cut = 0;
	c->user = CONTEXT_CURRENT_USER;
	for (__u32 i = 0; i < CONTEXT_PROCESS_IMAGES; i++) {
		__u32 number = walk->process.contexts[i];
		const struct unwind_mapping *mapping;
		const struct unwind_image *image;

		if (!number)
			break;
		mapping = walk_mapping(walk, walk->process.first + number - 1);
		image = mapping ? walk_image(walk, mapping->image) : NULL;
		if (!image || !image->context)
			continue;
		c->bias = mapping->bias;
		c->image = image->context;
		first = first ?: image->context;
		read_image(c, process);
	}
	if (c->cut && !c->used)
		context_put(c, 0); /* no labels; but it has some */
	found = c->used ? find_context(c, process, first) : 0;
	if (!c->ids || found != first)
		return found;
	/* What else it says, with [others] for the trace. */
	c->used = c->ids;
	c->ids = 0;
	put_bytes(c, CONTEXT_LABELS, 0, c->text.bytes, false);
	return find_context(c, process, first);
}

/*
 * The number that a value of the last window has in this one, for a wait that has gone on, as
 * find_context() returns it. c->user: whose it is.
 */
__noinline int carry_context(struct context_scratch *c, __u32 number, __u64 process)
{
	struct context_value *value = context_value_at(number);

	if (!c || !value)
		return 0;
	if (number < CONTEXT_IMAGES)
		return number;
	c->used = (value->words & (CONTEXT_VALUE_WORDS - 1)) * 8 ?: CONTEXT_VALUE_BYTES;
	c->ids = 0;
	c->cut = value->hash & CONTEXT_HASH_CUT;
	bpf_probe_read_kernel(c->words, sizeof(c->words), value->bytes);
	return find_context(c, process, value->image);
}

#endif
