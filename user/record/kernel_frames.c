// SPDX-License-Identifier: GPL-2.0-only
#include "record/kernel_frames.h"

#include <errno.h>
#include <string.h>

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

const char *kernel_frames_name(const struct kernel_frames *frames, uint64_t pc)
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
