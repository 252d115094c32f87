// SPDX-License-Identifier: GPL-2.0-only
#include "record/waker.h"

#include <stdio.h>
#include <string.h>

#include "bpf/wait.h"

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

static const char *interrupt_of(const struct capture_sample *waker,
				const struct kernel_frames *frames)
{
	if (!waker->depth)
		return INTERRUPT;
	for (uint32_t i = 0; i < waker->depth; i++) {
		const char *name = kernel_frames_name(frames, waker->frames[i].pc);

		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			if (strncmp(name, kinds[k].function, strlen(kinds[k].function)) == 0)
				return kinds[k].interrupt;
	}
	return INTERRUPT ": other";
}

void waker_name(const struct capture_sample *waker, const struct kernel_frames *frames,
		char name[static WAKER_NAME_SIZE])
{
	uint64_t words[2] = { 0 };

	if (waker->waker.kind == WAKER_INTERRUPT) {
		snprintf(name, WAKER_NAME_SIZE, "%s", interrupt_of(waker, frames));
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
