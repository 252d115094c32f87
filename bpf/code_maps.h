/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code objects of scripts that the BPF program sends to user space, each once: what
 * code_objects.h asks of whoever includes it.
 */
#ifndef PROFIL_BPF_CODE_MAPS_H
#define PROFIL_BPF_CODE_MAPS_H

#include "unwind_maps.h"
/* After what it asks for. */
#include "code_objects.h"

/* As many as unwind_images. */
UNWIND_TABLE(unwind_languages, language_image, UNWIND_PART_IMAGES)

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

/*
 * How often a code object was sent whose address another one had had before. What a CPU knows from
 * before that may no longer be what user space got last.
 */
volatile __u64 codes_replaced = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LANGUAGE_RING_BYTES);
} language_codes SEC(".maps");

static const struct language_image *language_image(const struct script_walk *unused, __u32 number)
{
	(void)unused;
	return find_in_unwind_languages(number);
}

static __always_inline struct known_code *known_code(struct script_walk *script, __u64 address)
{
	return &script->known[(address >> 4 ^ address >> 11) & (KNOWN_CODES - 1)];
}

static __always_inline bool is_code_known(struct script_walk *script, __u64 address, __u64 mark)
{
	const struct known_code *known = known_code(script, address);

	return known->code == address && known->mark == mark && known->process == script->process &&
	       known->replaced == codes_replaced;
}

static __always_inline bool is_code_wanted(struct script_walk *script, __u64 address, __u64 mark)
{
	struct language_code_key key = { .process = script->process, .code = address };
	struct known_code *known;
	const __u64 *sent;

	if (is_code_known(script, address, mark))
		return false;
	sent = bpf_map_lookup_elem(&language_sent, &key);
	if (sent && *sent == mark) {
		known = known_code(script, address);
		known->process = script->process;
		known->code = address;
		known->mark = mark;
		known->replaced = codes_replaced;
		return false;
	}
	if (!script->codes_left)
		return false;
	script->codes_left--;
	if (sent)
		__sync_fetch_and_add(&codes_replaced, 1);
	return true;
}

static __always_inline bool put_code(struct script_walk *unused, struct language_code *code,
				     __u64 size, bool last)
{
	struct language_code_key key = { .process = code->process, .code = code->code };
	__u64 mark = code->mark; /* Linux 6.1 takes a map's value from the stack alone */

	(void)unused;
	if (bpf_ringbuf_output(&language_codes, code, size, BPF_RB_NO_WAKEUP))
		return false;
	if (last)
		bpf_map_update_elem(&language_sent, &key, &mark, BPF_ANY);
	return true;
}

#endif
