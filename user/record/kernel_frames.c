// SPDX-License-Identifier: GPL-2.0-only
#include "record/kernel_frames.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/wait.h"
#include "profile/image_name.h"
#include "symbol/symbol.h"

/* Kernel addresses begin at or above it. */
#define KERNEL_START 0x8000000000000000ULL

int kernel_frames_note(struct kernel_frames *frames, const struct capture_sample *sample)
{
	uint32_t image, location, count = sample->depth - sample->user_depth;

	if (!count)
		return 0;
	if (!frames->p) {
		frames->p = profile_new();
		if (!frames->p || profile_add_image(frames->p, IMAGE_KERNEL, NULL, 0, &image) ||
		    profile_add_mapping(frames->p, KERNEL_START, UINT64_MAX, KERNEL_START, image,
					&image))
			return -ENOMEM;
	}
	/* All are return addresses. */
	for (uint32_t i = 0; i < count; i++)
		if (profile_add_location(frames->p, sample->frames[i].pc - 1, 0, &location))
			return -ENOMEM;
	return 0;
}

int kernel_frames_name_all(struct kernel_frames *frames)
{
	struct error why = { 0 };
	int err = frames->p ? symbol_resolve(frames->p, NULL, &why) : 0;

	for (size_t i = 0; frames->p && !err && i < frames->p->location_count; i++)
		err = index_add(&frames->index, hash_u64(frames->p->locations[i].address, 0), i);
	return err ? -ENOMEM : 0;
}

static bool address_equal(const void *array, uint32_t number, const void *address)
{
	return ((const struct profile_location *)array)[number].address ==
	       *(const uint64_t *)address;
}

/* The function of a frame; "": its name cannot be found. */
static const char *kernel_frames_name(const struct kernel_frames *frames, uint64_t pc)
{
	const struct profile *p = frames->p;
	uint64_t address = pc - 1;
	uint32_t number = p ? index_find(&frames->index, hash_u64(address, 0), address_equal,
					 p->locations, &address)
			    : INDEX_NONE;

	if (number == INDEX_NONE || !p->locations[number].line_count)
		return "";
	return p->functions[p->lines[p->locations[number].first_line].function].name;
}

uint32_t kernel_frames_until(const struct kernel_frames *frames,
			     const struct capture_sample *sample, const char *function)
{
	for (uint32_t i = 0; i < sample->depth - sample->user_depth; i++)
		if (strcmp(kernel_frames_name(frames, sample->frames[i].pc), function) == 0)
			return i + 1;
	return 0;
}

void kernel_frames_free(struct kernel_frames *frames)
{
	profile_free(frames->p);
	index_free(&frames->index);
	*frames = (struct kernel_frames){ 0 };
}

/* --- Names of wakers --- */

#define INTERRUPT "interrupt"
#define NETWORK	  INTERRUPT ": network"
#define TIMER	  INTERRUPT ": timer"
#define DISK	  INTERRUPT ": disk"

/*
 * Functions by whose names, or beginnings of them, an interrupt is known. The one nearest to the
 * leaf decides: softirqs of one kind are served at the end of interrupts of any.
 */
static const struct {
	const char *function, *interrupt;
} kinds[] = {
	{ "net_rx_action", NETWORK },
	{ "net_tx_action", NETWORK },
	{ "napi_", NETWORK },
	{ "__napi_", NETWORK },
	{ "__netif_receive_skb", NETWORK },
	{ "__hrtimer_run_queues", TIMER },
	{ "hrtimer_interrupt", TIMER },
	{ "run_timer_softirq", TIMER },
	{ "__run_timers", TIMER },
	{ "expire_timers", TIMER },
	{ "call_timer_fn", TIMER },
	{ "blk_", DISK },
	{ "__blk_", DISK },
	{ "bio_endio", DISK },
	{ "nvme_", DISK },
	{ "scsi_", DISK },
	{ "virtblk_", DISK },
	{ "ata_", DISK },
};

void waker_name(const struct capture_sample *waker, const struct kernel_frames *frames,
		char name[static WAKER_NAME_SIZE])
{
	uint64_t words[2] = { 0 };

	if (waker->waker.kind == WAKER_INTERRUPT) {
		const char *interrupt = waker->depth ? INTERRUPT ": other" : INTERRUPT;

		/* From the outermost frame on: the last that is found is nearest to the leaf. */
		for (uint32_t i = waker->depth; i-- > 0;) {
			const char *function = kernel_frames_name(frames, waker->frames[i].pc);

			for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
				if (strncmp(function, kinds[k].function,
					    strlen(kinds[k].function)) == 0) {
					interrupt = kinds[k].interrupt;
					break;
				}
		}
		snprintf(name, WAKER_NAME_SIZE, "%s", interrupt);
	} else if (waker->waker.kind == WAKER_OTHER_THREAD) {
		for (uint32_t i = 0; i < waker->depth && i < 2; i++)
			words[i] = waker->frames[i].pc;
		snprintf(name, WAKER_NAME_SIZE, "%.16s", (const char *)words);
	} else {
		snprintf(name, WAKER_NAME_SIZE, "%s",
			 *waker->comm ? waker->comm : waker->process_comm);
	}
}

const char *waker_interrupt_of(enum wait_reason reason)
{
	return reason == WAIT_SLEEP ? TIMER : reason == WAIT_DISK ? DISK : INTERRUPT;
}
