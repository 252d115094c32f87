/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Python's frames at a tick. Each call of the interpreter's function (_PyEval_EvalFrameDefault)
 * runs one or more Python functions that have called each other. While the native stack is walked,
 * these are written behind the frame of that call, which is known by an object that Python keeps on
 * the native stack: the _PyCFrame up to 3.12, later the entry frame.
 */
#ifndef PROFIL_BPF_PYTHON_H
#define PROFIL_BPF_PYTHON_H

#include "language.h"
#include "unwind_maps.h"
#include "walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as many as unwind_images */
	__type(key, __u32);
	__type(value, struct language_image);
} unwind_languages SEC(".maps");

struct language_code_key {
	__u64 process, code;
};

/* Code objects that were sent, and what then stood in them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LANGUAGE_CODES);
	__type(key, struct language_code_key);
	__type(value, __u64);
} language_sent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LANGUAGE_RING_BYTES);
} language_codes SEC(".maps");

/*
 * What a program writes into its memory decides how long the walk takes: so many frames are read at
 * a tick, and so many code objects sent. The others are sent at later ticks.
 */
#define PYTHON_FRAMES_MAX (2 * LANGUAGE_FRAMES_MAX)
#define PYTHON_CODES_MAX  64

#define PYTHON_FRAME_BYTES 80
#define PYTHON_CODE_BYTES  144
#define PYTHON_MARK_WORDS  8

struct python_walk {
	bool looked; /* for Python's state, at this tick */
	__u32 image; /* of the interpreter */
	__u64 bias;
	__u64 process; /* the key */
	__u64 frame;   /* the next to be read; 0: no more */
	__u64 cframe;
	__u64 entry; /* an address in the native frame that runs `words` */
	__u32 count;
	__u32 frames_left, codes_left; /* at this tick */
	struct python_layout layout;
	__u64 words[LANGUAGE_FRAMES_MAX];
	__u8 frame_bytes[PYTHON_FRAME_BYTES];
	__u8 code_bytes[PYTHON_CODE_BYTES];
	__u64 mark_words[PYTHON_MARK_WORDS];
	struct language_code code;
};

static __always_inline __u64 python_field(const __u8 *bytes, __u32 offset, __u32 size)
{
	asm("" : "+r"(offset)); /* makes the compiler use the register that it checks */
	if (offset > size - 8)
		return 0;
	return *(const __u64 *)(bytes + offset);
}

/* Reads up to `size` bytes of an object that may end at the end of a mapping. Returns how many. */
static __always_inline __u32 read_object(void *to, __u32 size, __u64 from)
{
	for (int i = 0; i < 3; i++, size /= 2)
		if (bpf_probe_read_user(to, size, (void *)from) == 0)
			return size;
	return 0;
}

/* Sends what names a code object: python->code_bytes is of it. */
WALK_FUNCTION int send_code(struct python_walk *python, __u64 address, __u64 mark)
{
	const struct python_layout *layout;
	struct language_code *code;
	const __u8 *bytes;
	__u64 table, size = 0;

	if (!python)
		return -1;
	layout = &python->layout;
	code = &python->code;
	bytes = python->code_bytes;
	table = python_field(bytes, layout->code_table, PYTHON_CODE_BYTES);

	code->time_ns = bpf_ktime_get_ns();
	code->process = python->process;
	code->code = address;
	code->mark = mark;
	code->image = python->image;
	code->version = layout->version;
	code->line = python_field(bytes, layout->code_line, PYTHON_CODE_BYTES);
	code->name_bytes = read_object(code->name, LANGUAGE_NAME_BYTES,
				       python_field(bytes, layout->code_name, PYTHON_CODE_BYTES));
	code->file_bytes = read_object(code->file, LANGUAGE_FILE_BYTES,
				       python_field(bytes, layout->code_file, PYTHON_CODE_BYTES));
	/* A bytes object: its size is after the reference count and the type, its text last. */
	if (bpf_probe_read_user(&size, sizeof(size), (void *)table + 16))
		size = 0;
	code->lines_size = size;
	if (size >= LANGUAGE_LINES_BYTES)
		size = LANGUAGE_LINES_BYTES - 1;
	size &= LANGUAGE_LINES_BYTES - 1;
	if (bpf_probe_read_user(code->lines, size, (void *)table + 32))
		size = 0;
	code->lines_bytes = size;
	size += offsetof(struct language_code, lines);
	return bpf_ringbuf_output(&language_codes, code, size, BPF_RB_NO_WAKEUP);
}

/*
 * Returns a hash of the beginning of a string object: its length, its hash if Python has one, and
 * some of its text.
 */
WALK_FUNCTION __u64 hash_string(struct python_walk *python, __u64 address, __u64 hash)
{
	__u32 words;

	if (!python)
		return hash;
	/* After the reference count and the type. */
	words = read_object(python->mark_words, sizeof(python->mark_words), address + 16) / 8;
	for (__u32 i = 0; i < PYTHON_MARK_WORDS && i < words; i++)
		hash = (hash ^ python->mark_words[i]) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

/* Returns false if the object is no code. */
WALK_FUNCTION int note_code(struct python_walk *python, __u64 address)
{
	struct language_code_key key = { .code = address };
	const struct python_layout *layout;
	__u64 mark, *sent;
	__u32 version = 0;

	if (!python)
		return false;
	layout = &python->layout;
	key.process = python->process;
	if (bpf_probe_read_user(python->code_bytes, PYTHON_CODE_BYTES, (void *)address) ||
	    python_field(python->code_bytes, 8, PYTHON_CODE_BYTES) !=
		    python->bias + layout->code_type)
		return false;
	/*
	 * What is compiled and freed in a loop, as templates are, has all its objects at the same
	 * addresses each time: only its version differs, and before 3.12 only the texts.
	 */
	mark = python_field(python->code_bytes, layout->code_table, PYTHON_CODE_BYTES) << 32 ^
	       (__u32)python_field(python->code_bytes, layout->code_line, PYTHON_CODE_BYTES);
	if (layout->code_version)
		version = python_field(python->code_bytes, layout->code_version, PYTHON_CODE_BYTES);
	if (version) {
		mark = mark * 0x9e3779b97f4a7c15 ^ version;
	} else {
		mark = hash_string(
			python,
			python_field(python->code_bytes, layout->code_name, PYTHON_CODE_BYTES),
			mark);
		mark = hash_string(
			python,
			python_field(python->code_bytes, layout->code_file, PYTHON_CODE_BYTES),
			mark);
	}
	sent = bpf_map_lookup_elem(&language_sent, &key);
	if (sent && *sent == mark)
		return true;
	if (!python->codes_left)
		return true;
	python->codes_left--;
	if (send_code(python, address, mark) == 0)
		bpf_map_update_elem(&language_sent, &key, &mark, BPF_ANY);
	return true;
}

/*
 * Reads the frame that is next, of a Python function or of a call of the interpreter's function,
 * which ends those that it runs. Returns whether it goes on. For the verifier, all state is in
 * *python.
 */
WALK_FUNCTION int read_python_frame(struct python_walk *python)
{
	__u64 code, instruction, owner, first;
	const struct python_layout *layout;
	const __u8 *bytes;
	__u32 count;

	if (!python || !python->frame || !python->frames_left)
		return false;
	python->frames_left--;
	layout = &python->layout;
	bytes = python->frame_bytes;
	if (bpf_probe_read_user(python->frame_bytes, PYTHON_FRAME_BYTES, (void *)python->frame)) {
		python->frame = 0;
		return false;
	}
	/* A byte: python_field() reads 8. */
	owner = python_field(bytes, layout->frame_entry & ~7U, PYTHON_FRAME_BYTES) >>
			(layout->frame_entry & 7) * 8 &
		0xff;
	if (layout->entry_owner && owner >= layout->entry_owner) {
		if (!layout->cframe)
			python->entry = python->frame;
		python->frame = python_field(bytes, layout->frame_previous, PYTHON_FRAME_BYTES);
		return false;
	}
	code = python_field(bytes, layout->frame_code, PYTHON_FRAME_BYTES) &
	       ~7ULL; /* 3.14: a mark */
	instruction = python_field(bytes, layout->frame_instruction, PYTHON_FRAME_BYTES);
	python->frame = python_field(bytes, layout->frame_previous, PYTHON_FRAME_BYTES);
	if (note_code(python, code)) {
		first = code + layout->code_first;
		instruction = instruction > first ? (instruction - first) / 2 : 0;
		count = python->count;
		if (count >= LANGUAGE_FRAMES_MAX)
			return false;
		python->words[count] = language_word(LANGUAGE_PYTHON, code, instruction);
		python->count = count + 1;
	}
	return layout->entry_owner || !owner;
}

/* Reads the Python functions that one call of the interpreter's function runs. */
WALK_FUNCTION int read_python_frames(struct python_walk *python)
{
	if (!python)
		return 0;
	python->count = 0;
	python->entry = 0;
	for (int i = 0; i < LANGUAGE_FRAMES_MAX && read_python_frame(python); i++)
		;
	if (python->layout.cframe) {
		python->entry = python->cframe;
		if (bpf_probe_read_user(&python->cframe, sizeof(python->cframe),
					(void *)python->cframe + python->layout.cframe_previous))
			python->cframe = 0;
	}
	return python->count;
}

/* The walk came to the interpreter: finds the state of this thread. */
WALK_FUNCTION int begin_python(struct walk *walk, struct python_walk *python)
{
	const struct language_image *image;
	__u64 thread_pointer, specific = 0, thread = 0, id = 0, at;
	__u32 number, key = 0;

	if (!walk || !python)
		return 0;
	python->looked = true;
	python->frames_left = PYTHON_FRAMES_MAX;
	python->codes_left = PYTHON_CODES_MAX;
	python->frame = python->entry = 0;
	number = walk->at.image;
	image = bpf_map_lookup_elem(&unwind_languages, &number);
	thread_pointer = walk_thread_pointer(walk);
	if (!image || image->language != LANGUAGE_PYTHON || !walk->process.thread_specific)
		return 0;
	python->layout = image->python;
	python->image = number;
	python->bias = walk->at.bias;
	/*
	 * The thread-specific data of the C library: blocks of 32 pairs, of a sequence number and a
	 * value. A key that Python has not made yet is 0, and has no value.
	 */
	if (bpf_probe_read_user(&key, sizeof(key),
				(void *)python->bias + image->python.runtime + image->python.key))
		return 0;
	at = thread_pointer + walk->process.thread_specific + key / 32 * 8ULL;
	if (bpf_probe_read_user(&specific, sizeof(specific), (void *)at) || !specific ||
	    bpf_probe_read_user(&thread, sizeof(thread), (void *)specific + key % 32 * 16ULL + 8) ||
	    !thread)
		return 0; /* no Python thread */
	bpf_probe_read_user(&id, sizeof(id), (void *)thread + image->python.thread_id);
	if (id != thread_pointer)
		return 0;
	if (image->python.cframe) {
		bpf_probe_read_user(&python->cframe, sizeof(python->cframe),
				    (void *)thread + image->python.cframe);
		bpf_probe_read_user(&python->frame, sizeof(python->frame),
				    (void *)python->cframe + image->python.cframe_frame);
	} else {
		bpf_probe_read_user(&python->frame, sizeof(python->frame),
				    (void *)thread + image->python.frame);
	}
	return 1;
}

#endif
