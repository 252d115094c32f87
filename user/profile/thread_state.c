// SPDX-License-Identifier: GPL-2.0-only
#include "profile/thread_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/image_name.h"
#include "util/order.h"

const char *const thread_state_names[THREAD_STATES] = {
	[THREAD_ON_CPU] = "on CPU",
	[THREAD_RUNNABLE] = "runnable",
	[THREAD_BLOCKED] = "blocked",
	[THREAD_IDLE] = "idle",
};

const char *const thread_state_options[THREAD_STATES] = {
	[THREAD_ON_CPU] = "on-cpu",
	[THREAD_RUNNABLE] = "runnable",
	[THREAD_BLOCKED] = "blocked",
	[THREAD_IDLE] = "idle",
};

#define RUNNABLE_FRAME	"[runnable: no free CPU]"
#define UNDECIDED_BEGIN "[undecided: "

/* The begins of frames that have a reason. */
static const struct {
	const char *begin;
	enum thread_state state;
} frames[] = {
	{ "[blocked: ", THREAD_BLOCKED },
	{ "[idle: ", THREAD_IDLE },
	{ UNDECIDED_BEGIN, THREAD_BLOCKED },
};

void thread_state_frame(enum thread_state state, const char *reason,
			char text[static THREAD_STATE_SIZE])
{
	if (state == THREAD_RUNNABLE)
		snprintf(text, THREAD_STATE_SIZE, RUNNABLE_FRAME);
	else
		snprintf(text, THREAD_STATE_SIZE, "[%s: %s]", thread_state_names[state], reason);
}

void thread_state_undecided_frame(const char *reason, char text[static THREAD_STATE_SIZE])
{
	snprintf(text, THREAD_STATE_SIZE, UNDECIDED_BEGIN "%s]", reason);
}

bool thread_state_is_undecided(const char *name)
{
	return strncmp(name, UNDECIDED_BEGIN, strlen(UNDECIDED_BEGIN)) == 0;
}

enum thread_state thread_state_of(const char *name, const char **reason, size_t *size)
{
	size_t all = strlen(name);

	*reason = NULL;
	if (*name != '[')
		return THREAD_ON_CPU;
	if (strcmp(name, RUNNABLE_FRAME) == 0 || strcmp(name, "[waiting for a CPU]") == 0)
		return THREAD_RUNNABLE;
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		size_t length = strlen(frames[i].begin);

		if (strncmp(name, frames[i].begin, length) != 0 || name[all - 1] != ']')
			continue;
		*reason = name + length;
		*size = all - length - 1;
		return frames[i].state;
	}
	return THREAD_ON_CPU;
}

const char *thread_state_text(const char *name, char text[static THREAD_STATE_TEXT_SIZE])
{
	const char *reason;
	size_t size = 0;
	enum thread_state state = thread_state_of(name, &reason, &size);

	snprintf(text, THREAD_STATE_TEXT_SIZE, "%s%s%.*s", thread_state_names[state],
		 reason ? ": " : "", (int)size, reason ?: "");
	return text;
}

uint32_t profile_state_function(const struct profile *p, const struct profile_sample *sample)
{
	const char *reason;
	size_t size;

	if (profile_sample_state(p, sample, &reason, &size) == THREAD_ON_CPU)
		return 0;
	return p->lines[p->locations[p->frames[sample->first_frame]].first_line].function + 1;
}

uint32_t profile_wait_frame(const struct profile *p, const struct profile_sample *sample)
{
	if (!profile_state_function(p, sample))
		return 0;
	for (uint32_t i = 1; i < sample->depth; i++) {
		const struct profile_image *image =
			profile_location_image(p, p->frames[sample->first_frame + i]);

		if (!image || !(image_is_in_kernel(image->path) || image_is_libc(image->path)))
			return i;
	}
	return 0;
}

enum thread_state profile_sample_state(const struct profile *p, const struct profile_sample *sample,
				       const char **reason, size_t *size)
{
	const struct profile_location *leaf =
		sample->depth ? &p->locations[p->frames[sample->first_frame]] : NULL;

	return thread_state_of(leaf && leaf->line_count
				       ? p->functions[p->lines[leaf->first_line].function].name
				       : "",
			       reason, size);
}

bool profile_thread_times(const struct profile *p, struct thread_times *times)
{
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);

	*times = (struct thread_times){ 0 };
	if (wall == p->value_type_count)
		return false;
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t value = p->values[i * p->value_type_count + wall];
		const char *reason;
		size_t size, k = 0;
		enum thread_state state = profile_sample_state(p, &p->samples[i], &reason, &size);

		if (value <= 0)
			continue;
		times->states[state] += value;
		if (!reason)
			continue;
		while (k < times->reason_count &&
		       (times->reasons[k].size != size ||
			strncmp(times->reasons[k].name, reason, size) != 0))
			k++;
		if (k == THREAD_REASONS_MAX) /* a file from elsewhere: the last has the rest */
			k--;
		else if (k == times->reason_count)
			times->reasons[times->reason_count++] =
				(struct thread_reason){ reason, size, { 0 } };
		times->reasons[k].states[state] += value;
	}
	return true;
}

static int compare_reasons(const void *one, const void *other, void *state)
{
	const struct thread_reason *a = one, *b = other;
	enum thread_state number = *(enum thread_state *)state;

	return COMPARE(b->states[number], a->states[number]);
}

void thread_times_sort(struct thread_times *times, enum thread_state state)
{
	qsort_r(times->reasons, times->reason_count, sizeof(*times->reasons), compare_reasons,
		&state);
}
