/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code objects of scripts that the BPF program sends to user space, each once: what
 * code_objects.h asks of whoever includes it.
 */
#ifndef PROFIL_BPF_CODE_MAPS_H
#define PROFIL_BPF_CODE_MAPS_H

#include "../owner.h"
#include "../unwind_maps.h"
/* After what it asks for. */
#include "code_objects.h"

/* As many as unwind_images. */
UNWIND_TABLE(unwind_languages, language_image, UNWIND_PART_IMAGES)

struct language_sent {
	__u64 mark; /* what stood in it */
	__u64 time_ns;
};

/*
 * Code objects that were sent. An entry is true if it is not older than its process, for a later
 * one may have the same key, and not older than codes_since_ns. User space deletes the entries of
 * those that it drops.
 */
MAP(LRU_HASH, language_sent, LANGUAGE_CODES, struct language_code_key, struct language_sent);

/* Set by user space: all that was sent before is to be sent again, as some had no room there. */
volatile __u64 codes_since_ns = 0;

/*
 * How often an entry of language_sent ceased to be true: user space has dropped it, it found no
 * room in the ring, or other code has its address. What a CPU knows from before may be wrong.
 */
volatile __u64 codes_replaced = 0;

GROWING_RING(language_codes)

static __always_inline void find_script_owner(struct script_walk *script)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 since_ns = BPF_CORE_READ(task, group_leader, start_time);

	script->uid = user_of(task);
	script->since_ns = since_ns > codes_since_ns ? since_ns : codes_since_ns;
}

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
	       known->since_ns == script->since_ns && known->replaced == codes_replaced;
}

static __always_inline bool is_code_wanted(struct script_walk *script, __u64 address, __u64 mark)
{
	struct language_code_key key = { .process = script->process, .code = address };
	const struct language_sent *sent;
	struct known_code *known;
	__u64 replaced = codes_replaced; /* before the look-up: it may change at any time */

	if (is_code_known(script, address, mark))
		return false;
	sent = bpf_map_lookup_elem(&language_sent, &key);
	if (sent && sent->mark == mark && sent->time_ns >= script->since_ns) {
		known = known_code(script, address);
		known->process = script->process;
		known->code = address;
		known->mark = mark;
		known->since_ns = script->since_ns;
		known->replaced = replaced;
		return false;
	}
	if (!script->codes_left)
		return false;
	script->codes_left--;
	if (sent)
		__sync_fetch_and_add(&codes_replaced, 1);
	return true;
}

/* Noted before it is sent: user space, which may drop it at once, deletes the entry after that. */
static __always_inline bool put_code(struct script_walk *unused, struct language_code *code,
				     __u64 size, bool last)
{
	struct language_code_key key = { .process = code->process, .code = code->code };
	/* Linux 6.1 takes a map's value from the stack alone. */
	struct language_sent sent = { .mark = code->mark, .time_ns = code->time_ns };

	(void)unused;
	if (last)
		bpf_map_update_elem(&language_sent, &key, &sent, BPF_ANY);
	if (send_to_language_codes(code, size, BPF_RB_NO_WAKEUP))
		return true;
	if (last) {
		bpf_map_delete_elem(&language_sent, &key);
		__sync_fetch_and_add(&codes_replaced, 1);
	}
	return false;
}

#endif
