// SPDX-License-Identifier: GPL-2.0-only
#include "record/from_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/script/language.h"
#include "bpf/wait.h"
#include "capture/capture.h"
#include "profile/image_name.h"
#include "profile/profile.h"
#include "profile/tags.h"
#include "profile/thread_walls.h"
#include "record/cgroup_name.h"
#include "record/peer.h"
#include "record/wait_place.h"
#include "script/language.h"
#include "symbol/symbol.h"
#include "util/array.h"
#include "util/file.h"
#include "util/index.h"

/* --- Frames of the kernel --- */

/*
 * Names of the kernel frames of waits. They are read apart from those of the profile: which frames
 * a stack has there depends on them. Zero-initialised is empty.
 */
struct kernel_frames {
	struct profile *p; /* its locations are the frames; NULL: there are none */
	struct index index;
};

#define WAKER_NAME_SIZE 32

/* User addresses end below it, kernel addresses begin at or above it. */
#define KERNEL_START 0x8000000000000000ULL

/* Notes the kernel frames of a stack. Returns 0 or -ENOMEM. */
static int kernel_frames_note(struct kernel_frames *frames, const struct capture_sample *sample)
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

/* When all are noted: finds their names. Returns 0 or -ENOMEM. */
static int kernel_frames_name_all(struct kernel_frames *frames)
{
	struct error why = { 0 };
	int err = frames->p ? symbol_resolve(frames->p, NULL, &why) : 0;

	for (size_t i = 0; frames->p && !err && i < frames->p->location_count; i++)
		err = index_add(&frames->index, hash_u64(frames->p->locations[i].address, 0), i);
	return err ? -ENOMEM : 0;
}

EQUAL(address_equal, struct profile_location, uint64_t, a->address == *b)

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

/*
 * How many frames of a stack, from the leaf on, there are up to the function that calls the BPF
 * program, this included: __schedule for waits. 0: it is not found.
 */
static uint32_t kernel_frames_until(const struct kernel_frames *frames,
				    const struct capture_sample *sample, const char *function)
{
	for (uint32_t i = 0; i < sample->depth - sample->user_depth; i++)
		if (strcmp(kernel_frames_name(frames, sample->frames[i].pc), function) == 0)
			return i + 1;
	return 0;
}

static void kernel_frames_free(struct kernel_frames *frames)
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

/*
 * Writes the name of a waker: of its thread, or "interrupt: KIND", where the kind is network,
 * timer, disk or other, or "interrupt" if its stack was not taken. "": unknown.
 */
static void waker_name(const struct capture_sample *waker, const struct kernel_frames *frames,
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

/* Which interrupt ends waits for this reason, if the waker's stack is unknown. */
static const char *waker_interrupt_of(enum wait_reason reason)
{
	return reason == WAIT_SLEEP ? TIMER : reason == WAIT_DISK ? DISK : INTERRUPT;
}

/* Values of a sample: of a clock, and the sums of waits. Bound: size. */
#define VALUES_MAX 6

struct capture_profile {
	struct profile *p;
	struct capture *c;
	/* Numbers of the capture's images in the profile, where they may have another build ID */
	struct known_image {
		uint64_t serial;
		uint32_t id;
	} * images;
	size_t image_count, image_room;
	struct index image_index; /* by serial */
	struct index mapping_index;
	struct origin_names *names; /* own_names, or of a window's caller */
	struct origin_names own_names;
	bool is_window;	  /* of an archive */
	bool keeps_times; /* of ticks */
	size_t wall;	  /* number of the value of wall times; 0: waits were not recorded */
	size_t woke;	  /* number of the value of wakers */
	size_t span;	  /* number of the value of calls; 0: they were not recorded */
	struct wait_places places;   /* with waits */
	struct peers peers;	     /* whom waits are for */
	struct kernel_frames kernel; /* with waits: kernel frames of theirs */
	struct known_waker {
		const char *name;
		uint32_t tid;		  /* 0: of an interrupt, or secret */
		struct peer_task task;	  /* likewise */
	} * wakers;			  /* with waits: who ended them, by their numbers */
	uint64_t start_ns, start_time_ns; /* of the window: CLOCK_MONOTONIC, and since the epoch */
	uint32_t *modules; /* mappings of kernel modules, made when names were resolved */
	size_t module_count, module_room;
};

static int duplicate_fd(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

EQUAL(serial_equal, struct known_image, uint64_t, a->serial == *b)

static int image_id(struct capture_profile *b, uint32_t number, uint32_t *id)
{
	size_t count;
	const struct capture_image *image = &capture_images(b->c, &count)[number];
	uint64_t hash = hash_u64(image->serial, 0);
	uint32_t entry = index_find(&b->image_index, hash, serial_equal, b->images, &image->serial);
	struct profile_image key = { 0 }, *added;

	*id = entry == INDEX_NONE ? PROFILE_NONE : b->images[entry].id;
	added = entry == INDEX_NONE ? NULL : &b->p->images[*id];
	/*
	 * Memory without a file is renamed when the file with its functions' names is found. A file
	 * that could not be opened may be open by now.
	 */
	if (added && (*image->path != '[' || strcmp(added->path, image->path) == 0) &&
	    (added->fd >= 0 || image->fd < 0))
		return 0;
	key.path = image->path;
	key.provider = image->provider;
	key.build_id_size = image->build_id_size;
	memcpy(key.build_id, image->build_id, image->build_id_size);
	if (image->inode)
		key.file_id =
			profile_file_id(image->device, image->inode, image->size, image->modified);
	/* The same image, though by now its build ID or last change is known. */
	if ((!added || strcmp(added->path, image->path) != 0 ||
	     added->provider != image->provider) &&
	    profile_add_image_like(b->p, &key, id))
		return -ENOMEM;
	added = &b->p->images[*id];
	if (added->fd < 0)
		added->fd = duplicate_fd(image->fd);
	if (added->root < 0)
		added->root = duplicate_fd(image->root);
	if (entry == INDEX_NONE) {
		entry = b->image_count;
		if (array_add_indexed(b->images, b->image_count, b->image_room, &b->image_index,
				      hash, (struct known_image){ .serial = image->serial }))
			return -ENOMEM;
	}
	b->images[entry].id = *id;
	if (!image->why)
		return 0;
	return profile_string(b->p, image->why,
			      image->path[0] == '/' ? &added->unopened : &added->unnamed);
}

EQUAL(mapping_equal, struct profile_mapping, struct profile_mapping,
      SAME(start) && SAME(limit) && SAME(offset) && SAME(image))

/* True if both map the same part of a file, at any address. */
EQUAL(part_equal, struct profile_mapping, struct profile_mapping,
      a->limit - a->start == b->limit - b->start && SAME(offset) && SAME(image))

static uint64_t mapping_hash(const struct capture_profile *b, const struct profile_mapping *m)
{
	return hash_u64(b->is_window ? 0 : m->start, m->limit - m->start) ^
	       hash_u64(m->offset, m->image);
}

/*
 * Equal mappings of several processes are one. In a window the same part of a file is one mapping
 * wherever it was mapped: it has thousands of short processes, all with other addresses.
 */
static int place_id(struct capture_profile *b, const struct profile_mapping *place, uint32_t *id)
{
	uint64_t hash = mapping_hash(b, place);

	*id = index_find(&b->mapping_index, hash, b->is_window ? part_equal : mapping_equal,
			 b->p->mappings, place);
	if (*id != INDEX_NONE)
		return 0;
	if (profile_add_mapping(b->p, place->start, place->limit, place->offset, place->image, id))
		return -ENOMEM;
	return index_add(&b->mapping_index, hash, *id);
}

static int mapping_id(struct capture_profile *b, const struct capture_mapping *mapping,
		      uint32_t *id)
{
	struct profile_mapping place = {
		.start = mapping->start,
		.limit = mapping->limit,
		.offset = mapping->offset,
	};

	return image_id(b, mapping->image, &place.image) ?: place_id(b, &place, id);
}

static int add_mapping(const struct capture_mapping *mapping, void *context)
{
	uint32_t id;

	return mapping_id(context, mapping, &id);
}

/* caller: the pc is a return address. Returns 0 or -ENOMEM. */
static int location_id(struct capture_profile *b, const struct capture_frame *frame, bool caller,
		       uint32_t *id)
{
	/* The kernel's half of memory is one mapping: kallsyms has modules and BPF programs. */
	struct profile_mapping half = {
		.start = KERNEL_START,
		.limit = UINT64_MAX,
		.offset = KERNEL_START,
	};
	uint64_t address = frame->pc - caller;
	uint32_t mapping = PROFILE_NONE;
	const uint32_t *module = b->modules;

	if (frame->mapping) {
		if (mapping_id(b, frame->mapping, &mapping))
			return -ENOMEM;
		address += b->p->mappings[mapping].start - frame->mapping->start;
	} else if (frame->pc >= KERNEL_START) {
		/* An address of a kernel module may have a location in the module's mapping. */
		for (; module < b->modules + b->module_count; module++) {
			const struct profile_mapping *m = &b->p->mappings[*module];

			if (address < m->start || address >= m->limit)
				continue;
			*id = profile_find_location(b->p, address, *module);
			if (*id != PROFILE_NONE)
				return 0;
		}
		if (profile_add_image(b->p, IMAGE_KERNEL, NULL, 0, &half.image) ||
		    place_id(b, &half, &mapping))
			return -ENOMEM;
	}
	return profile_add_location(b->p, address, mapping, id);
}

/*
 * Sets *id to the location of a frame of this user's script: a line of a function. One without a
 * file is of the interpreter itself, if that is known.
 */
static int script_location(struct capture_profile *b, const struct capture_frame *frame,
			   const struct capture_mapping *interpreter, uint32_t uid, uint32_t *id)
{
	const struct language_code *code = frame->code;
	char name[LANGUAGE_TEXT_SIZE] = "", file[LANGUAGE_TEXT_SIZE] = "";
	const struct profile_image image = {
		.path = file,
		.provider = uid == UINT32_MAX || uid == geteuid() ? 0 : uid,
	};
	struct profile_function function = { .name = name, .system_name = name, .file = file };
	struct profile_mapping place = { 0 };
	struct profile_line line = { 0 };
	uint32_t mapping = PROFILE_NONE;

	if (code) {
		language_name(code, name, file);
		function.start_line = code->line;
		line.line = language_line(code, language_instruction(frame->pc));
	}
	if (!*name)
		snprintf(name, sizeof(name), "[%s]", language_label(language_of_word(frame->pc)));
	/* The process chose the name: it may be that of the kernel, in brackets. */
	if (*file && !image_is_bracketed(file) &&
	    (profile_add_image_like(b->p, &image, &place.image) || place_id(b, &place, &mapping)))
		return -ENOMEM;
	if (!*file && interpreter &&
	    (image_id(b, interpreter->image, &place.image) || place_id(b, &place, &mapping)))
		return -ENOMEM;
	return profile_add_function(b->p, &function, &line.function)
		       ?: profile_add_line_location(b->p, 0, mapping, &line, 1, id);
}

/* Sets *id to the location of a function without an address. image: "": unknown. */
static int named_location(struct capture_profile *b, const char *name, const char *image,
			  uint32_t *id)
{
	struct profile_function function = { .name = name, .system_name = name, .file = "" };
	struct profile_mapping place = { 0 };
	struct profile_line line = { 0 };
	uint32_t mapping = PROFILE_NONE;

	if (*image && (profile_add_image(b->p, image, NULL, 0, &place.image) ||
		       place_id(b, &place, &mapping)))
		return -ENOMEM;
	return profile_add_function(b->p, &function, &line.function)
		       ?: profile_add_line_location(b->p, 0, mapping, &line, 1, id);
}

/*
 * Writes the locations of a sample's frames from number `from` on; unless they are asked for,
 * without those of an interpreter, which are folded into the frames of its script. exact: number of
 * the frame whose pc is no return address, or UINT32_MAX. Sets *depth.
 */
static int stack_locations(struct capture_profile *b, const struct capture_sample *sample,
			   uint32_t from, uint32_t exact, uint32_t *locations, uint32_t *depth)
{
	const struct capture_mapping *interpreter = capture_interpreter(sample);
	uint32_t user = sample->depth - sample->user_depth;
	int err = 0;

	*depth = 0;
	/* Whom an owned recording is for may know that the kernel ran, but not where. */
	if (capture_options(b->c)->owned && from < user) {
		err = named_location(b, "[kernel]", IMAGE_KERNEL, &locations[(*depth)++]);
		from = user;
	}
	for (uint32_t i = from; i < sample->depth && !err; i++) {
		const struct capture_frame *frame = &sample->frames[i];

		if (i >= user && language_of_word(frame->pc))
			err = script_location(b, frame, interpreter, sample->uid,
					      &locations[(*depth)++]);
		else if (capture_options(b->c)->owned && frame->pc >= KERNEL_START)
			/* What a walk by frame pointers took for a return address. */
			err = named_location(b, "[unknown]", "", &locations[(*depth)++]);
		else if (capture_options(b->c)->native || !interpreter || !frame->mapping ||
			 frame->mapping->image != interpreter->image)
			err = location_id(b, frame, i != exact, &locations[(*depth)++]);
	}
	return err;
}

void origin_names_free(struct origin_names *names)
{
	user_names_free(&names->users);
	container_names_free(&names->containers);
}

/* As text: readers of pprof files drop a label whose number is 0. */
static const char *number_text(uint32_t number, char text[static CGROUP_NAME_SIZE])
{
	if (number == UINT32_MAX)
		return NULL;
	snprintf(text, CGROUP_NAME_SIZE, "%" PRIu32, number);
	return text;
}

/* Writes whom a wait was for. Returns whether it is known. */
static bool peer_text(struct capture_profile *b, const struct capture_sample *sample,
		      char text[static CGROUP_NAME_SIZE])
{
	const struct capture_waits *wait = &sample->waits;
	const struct peer_task *waker;

	if (sample->kind != CAPTURE_WAITS || wait->reason == WAIT_CPU ||
	    capture_options(b->c)->owned)
		return false;
	waker = wait->whom && b->wakers[wait->whom].task.pid ? &b->wakers[wait->whom].task : NULL;
	/* The numbers of a window's processes would be too many, as in label_id(). */
	if (!peers_name(&b->peers, capture_peer(b->c, wait), sample, waker, !b->is_window, text))
		return false;
	if (!peers_has_room(&b->peers, text)) {
		snprintf(text, CGROUP_NAME_SIZE, "[others]");
		b->p->totals.peers_lost += wait->count;
	}
	return true;
}

/* The text of a tag of a sample, perhaps in `text`; NULL: it has no such tag. waker: label_id()'s.
 */
static const char *tag_text(struct capture_profile *b, const struct capture_sample *sample,
			    enum profile_tag_number tag, struct known_waker waker,
			    char text[static CGROUP_NAME_SIZE])
{
	bool is_main = strcmp(sample->comm, sample->process_comm) == 0;
	const char *name;

	switch (tag) {
	case TAG_CONTAINER:
		return sample->cgroup && cgroup_container(sample->cgroup, text) ? text : NULL;
	case TAG_CONTAINER_NAME:
		if (!sample->cgroup || !cgroup_container(sample->cgroup, text))
			return NULL;
		name = container_name(&b->names->containers, text);
		if (name)
			snprintf(text, CGROUP_NAME_SIZE, "%s", name);
		return name ? text : NULL;
	case TAG_CPU:
		return sample->kind == CAPTURE_TICKS && capture_options(b->c)->cpus
			       ? number_text(sample->ticks.cpu, text)
			       : NULL;
	case TAG_IN_DOUBT:
		return sample->in_doubt ? "yes" : NULL;
	case TAG_INCOMPLETE:
		/* That callers are missing, for those who compare windows: it may decide. */
		return b->is_window && sample->user_depth && sample->end != UNWIND_BY_KERNEL &&
				       sample->end != UNWIND_COMPLETE &&
				       sample->end != UNWIND_NO_STACK
			       ? "yes"
			       : NULL;
	case TAG_PEER:
		return peer_text(b, sample, text) ? text : NULL;
	case TAG_PROCESS:
		return b->is_window || is_main ? NULL : sample->process_comm;
	case TAG_THREAD:
		return b->is_window && !is_main ? sample->comm : NULL;
	case TAG_TITLE:
		return sample->title;
	case TAG_UNIT:
		return sample->cgroup && cgroup_unit(sample->cgroup, text) ? text : NULL;
	case TAG_USER:
		return user_name(&b->names->users, sample->uid) ?: number_text(sample->uid, text);
	case TAG_WAKER:
		return waker.name && *waker.name ? waker.name : NULL;
	case TAG_WAKER_TID:
		return waker.tid && capture_options(b->c)->every_wait ? number_text(waker.tid, text)
								      : NULL;
	default:
		return NULL;
	}
}

/* Whether a label is not for a process to choose: it says what profil knows, not for whom it
 * worked. */
static bool is_own_label(const char *label)
{
	static const char *const others[] = { "mode",	 "comm",     "pid",
					      "tid",	 "service",  "service_version",
					      "span_id", "trace_id", PROFILE_LABEL_KEY };

	for (int i = CONTEXT_BEFORE_PROGRAMS + 1; i < CONTEXT_LABEL_COUNT; i++)
		if (strcmp(label, context_label_name(NULL, i)) == 0)
			return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strcmp(label, others[i]) == 0)
			return true;
	for (int i = 0; i < TAG_COUNT; i++)
		if (strcmp(label, tag_kinds[i].key) == 0)
			return true;
	return false;
}

/*
 * Whether an archive has a label: traces, and what else may be another one for each request, would
 * make each sample one of its own.
 */
static bool is_for_archive(const struct context_text *text)
{
	return text->is_foreign ? strcmp(text->label, "route") == 0
				: strcmp(text->label, "trace_id") != 0 &&
					  strcmp(text->label, "span_id") != 0;
}

/* waker: of a wait, or the sample's own name as one. Returns 0 or -ENOMEM. */
static int label_id(struct capture_profile *b, const struct capture_sample *sample,
		    struct known_waker waker, uint32_t *id)
{
	char texts[TAG_COUNT][CGROUP_NAME_SIZE];
	struct profile_tag tags[TAG_COUNT + CONTEXT_TEXTS_MAX];
	struct context_text context[CONTEXT_TEXTS_MAX];
	size_t context_count = capture_context(b->c, sample, context);
	bool every_wait = capture_options(b->c)->every_wait;
	struct profile_labels labels = { .kernel = sample->kernel && !capture_options(b->c)->scale,
					 .tags = tags };

	if (b->is_window) {
		/*
		 * Processes that began in it get no PID, so that many short ones share a label;
		 * but chains are of threads.
		 */
		labels.pid = sample->is_older || every_wait ? sample->pid : 0;
		labels.tid = every_wait ? sample->tid : 0;
		labels.generation = every_wait ? sample->generation : 0;
		labels.comm = sample->process_comm;
	} else {
		labels.pid = sample->pid;
		labels.tid = sample->tid;
		labels.generation = sample->generation;
		labels.comm = sample->comm;
	}
	for (int i = 0; i < TAG_COUNT; i++) {
		const char *text = tag_text(b, sample, i, waker, texts[i]);

		if (text)
			tags[labels.tag_count++] =
				(struct profile_tag){ tag_kinds[i].key, text, 0, "" };
	}
	/* A variable that a program has copied from a library is in both: the first is its own. */
	for (size_t i = 0; i < context_count; i++)
		if (!profile_find_tag(&labels, context[i].label) &&
		    !(context[i].is_foreign && is_own_label(context[i].label)) &&
		    (!capture_options(b->c)->always_on || is_for_archive(&context[i])))
			tags[labels.tag_count++] =
				(struct profile_tag){ context[i].label, context[i].text, 0, "" };
	return profile_add_labels(b->p, &labels, id);
}

static int add_walls(struct capture_profile *b)
{
	size_t count;
	const struct capture_wall *walls = capture_wall(b->c, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const struct capture_wall *from = &walls[i];
		/* Its labels are those of a sample. */
		const struct capture_sample thread = {
			.pid = from->pid,
			.tid = from->tid,
			.generation = from->generation,
			.comm = from->comm,
			.process_comm = from->process_comm,
			.cgroup = from->cgroup,
			.title = *from->title ? from->title : NULL,
			.uid = from->uid,
			.ticks.cpu = UINT32_MAX,
			.is_older = from->is_older,
		};
		struct profile_wall wall = {
			.threads = 1,
			.wall_ns = from->wall_ns,
			.on_cpu_ns = from->on_cpu_ns,
			.runnable_ns = from->runnable_ns,
			.blocked_ns = from->blocked_ns,
			.unknown_ns = from->unknown_ns,
		};

		err = label_id(b, &thread, (struct known_waker){ 0 }, &wall.labels);
		err = err ?: profile_add_wall(b->p, &wall);
		err = err
			      ?: peers_note_task(&b->peers,
						 &(struct peer_task){ from->pid, from->tid,
								      from->comm,
								      from->process_comm });
	}
	return err;
}

/* Adds when waits were, or calls, to a list, as those of a sample. */
static int add_times(const struct capture_profile *b, struct wait_list *list, uint32_t number,
		     const struct capture_waits *waits)
{
	int err = 0;

	for (size_t i = 0; i < waits->timed_count && !err; i++) {
		const struct timed_wait *from = &waits->timed[i];
		uint64_t since_ns = from->since_ns > b->start_ns ? from->since_ns - b->start_ns : 0;

		err = wait_list_add(list, number, b->start_time_ns + since_ns, from->length_ns,
				    from->cpu);
	}
	return err;
}

static int add_wait(const struct capture_sample *sample, void *context)
{
	const struct capture_waits *wait = &sample->waits;
	struct capture_sample labelled = *sample;
	struct capture_profile *b = context;
	enum wait_reason reason = wait->reason;
	int64_t values[VALUES_MAX] = { 0 };
	/* The leaf is the state. */
	uint32_t locations[2 * CAPTURE_DEPTH_MAX + 1], label, number, depth;
	uint32_t kernel_depth = sample->depth - sample->user_depth;
	char state[THREAD_STATE_SIZE];
	struct known_waker waker = { 0 };
	int err;

	wait_places_frame(&b->places, sample, state);
	err = named_location(b, state, IMAGE_OFF_CPU, &locations[0]);
	/* At a fault the pc is that of the instruction; in a system call it is after it. */
	err = err
		      ?: stack_locations(
				 b, sample,
				 capture_options(b->c)->owned
					 ? kernel_depth
					 : kernel_frames_until(&b->kernel, sample, "__schedule"),
				 reason == WAIT_FAULT ? kernel_depth : UINT32_MAX, locations + 1,
				 &depth);
	if (wait->waker && reason != WAIT_CPU)
		waker = b->wakers[wait->waker];
	/* An interrupt whose stack was not taken. */
	if (wait->waker == WAKER_INTERRUPT)
		waker = (struct known_waker){ .name = waker_interrupt_of(reason) };
	/* Waits that are summed up have the time of the first: too little to doubt all of them. */
	labelled.in_doubt = false;
	err = err ?: label_id(b, &labelled, waker, &label);
	err = err ?: profile_sample(b->p, locations, depth + 1, label, &number);
	if (err)
		return err;
	/* What has not run yet has no stack. */
	if (reason != WAIT_CPU && reason != WAIT_KERNEL && reason != WAIT_START &&
	    capture_options(b->c)->stacks == CAPTURE_STACKS_CFI) {
		b->p->totals.waits_user_ns += wait->length_ns;
		if (sample->end == UNWIND_COMPLETE)
			b->p->totals.waits_complete_ns += wait->length_ns;
	}
	values[b->wall] = saturate_i64(wait->length_ns);
	profile_add_values(b->p, number, values);
	return add_times(b, &b->p->waits, number, wait);
}

static int add_call(const struct capture_sample *sample, void *context)
{
	struct capture_profile *b = context;
	int64_t values[VALUES_MAX] = { 0 };
	uint32_t locations[2 * CAPTURE_DEPTH_MAX], depth, label, number;
	int err = stack_locations(b, sample, 0, 0, locations, &depth);

	err = err ?: label_id(b, sample, (struct known_waker){ 0 }, &label);
	err = err ?: profile_sample(b->p, locations, depth, label, &number);
	if (err)
		return err;
	values[b->span] = saturate_i64(sample->waits.length_ns);
	profile_add_values(b->p, number, values);
	return add_times(b, &b->p->calls, number, &sample->waits);
}

static int note_waker(const struct capture_sample *waker, void *context)
{
	struct capture_profile *b = context;

	return waker->waker.kind == WAKER_OTHER_THREAD || capture_options(b->c)->owned
		       ? 0
		       : kernel_frames_note(&b->kernel, waker);
}

/* Before the waits, whose labels have its name. */
static int add_waker(const struct capture_sample *from, void *context)
{
	struct capture_profile *b = context;
	enum waker_kind kind = from->waker.kind;
	struct capture_sample waker = *from;
	int64_t values[VALUES_MAX] = { 0 };
	uint32_t locations[2 * CAPTURE_DEPTH_MAX + 1], label, number, depth = 0;
	char name[WAKER_NAME_SIZE], root[WAKER_NAME_SIZE + 2];
	int err;

	if (capture_options(b->c)->owned && kind != WAKER_THREAD)
		waker.depth = waker.user_depth = 0;
	waker.in_doubt = false; /* as of waits */
	waker_name(&waker, &b->kernel, name);
	if (capture_options(b->c)->owned && kind == WAKER_OTHER_THREAD) {
		snprintf(name, sizeof(name), "another process");
		waker.pid = waker.tid = 0;
		waker.generation = 0;
		waker.uid = UINT32_MAX;
		waker.cgroup = waker.title = NULL;
	}
	err = profile_string(b->p, name, &b->wakers[from->waker.number].name);
	if (kind != WAKER_INTERRUPT) {
		struct known_waker *known = &b->wakers[from->waker.number];

		known->tid = waker.tid;
		known->task = (struct peer_task){ .pid = waker.pid, .tid = waker.tid };
		err = err ?: profile_string(b->p, name, &known->task.comm);
		err = err ?: profile_string(b->p, from->process_comm, &known->task.process_comm);
	}
	if (kind == WAKER_OTHER_THREAD)
		waker.depth = waker.user_depth = 0;
	if (kind != WAKER_THREAD)
		waker.comm = waker.process_comm = name;
	err = err
		      ?: stack_locations(b, &waker,
					 capture_options(b->c)->owned
						 ? waker.depth - waker.user_depth
						 : kernel_frames_until(&b->kernel, &waker,
								       "try_to_wake_up"),
					 UINT32_MAX, locations, &depth);
	snprintf(root, sizeof(root), "[%s]", name);
	if (kind == WAKER_INTERRUPT || !depth)
		err = err
			      ?: named_location(b, kind == WAKER_INTERRUPT ? root : "[no stack]",
						"", &locations[depth++]);
	err = err ?: label_id(b, &waker, (struct known_waker){ .name = name }, &label);
	err = err ?: profile_sample(b->p, locations, depth, label, &number);
	if (err)
		return err;
	values[b->woke] = saturate_i64(from->waker.waits_ns);
	profile_add_values(b->p, number, values);
	return 0;
}

static int note_wait(const struct capture_sample *wait, void *context)
{
	struct capture_profile *b = context;
	const struct wait_peer *peer = capture_peer(b->c, &wait->waits);

	if (peer && peers_note(&b->peers, peer, wait))
		return -ENOMEM;
	return wait_places_note(&b->places, wait)
		       ?: capture_options(b->c)->owned ? 0
						       : kernel_frames_note(&b->kernel, wait);
}

static int add_sample(const struct capture_sample *sample, void *context)
{
	const struct capture_ticks *ticks = &sample->ticks;
	struct capture_profile *b = context;
	int64_t values[VALUES_MAX] = { 0 };
	uint32_t locations[2 * CAPTURE_DEPTH_MAX], depth, label, number;
	int err;

	profile_set_ticks(b->p, ticks->count, values);
	values[PROFILE_DELAY] = saturate_i64(profile_ticks_ns(b->p, ticks->runnable));
	if (b->wall)
		values[b->wall] = values[PROFILE_CPU];
	err = stack_locations(b, sample, 0, 0, locations, &depth);
	err = err ?: label_id(b, sample, (struct known_waker){ 0 }, &label);
	err = err ?: profile_sample(b->p, locations, depth, label, &number);
	if (err)
		return err;
	profile_add_values(b->p, number, values);
	for (uint64_t i = 0; i < ticks->count && ticks->times && b->keeps_times && !err; i++) {
		/* A tick may have come to a ring buffer before the window. */
		uint64_t since_ns =
			ticks->times[i] > b->start_ns ? ticks->times[i] - b->start_ns : 0;

		err = tick_list_add(&b->p->ticks, number, b->start_time_ns + since_ns);
	}
	return err;
}

/* Copies the account of a capture to the profile. Returns 0 or -ENOMEM. */
static int add_account(struct profile *p, const struct capture *c)
{
	static const char *const causes[UNWIND_ENDS] = {
		[UNWIND_NO_PROCESS] = "process_unknown",
		[UNWIND_NO_MAPPING] = "mapping_unknown",
		[UNWIND_IN_GAP] = "gap",
		[UNWIND_ODD_RULE] = "unsupported",
		[UNWIND_UNREADABLE] = "unreadable",
		[UNWIND_BAD_FRAME] = "bad_frame",
		[UNWIND_32_BIT] = "32_bit",
		[UNWIND_TOO_LONG] = "walk_too_long",
	};
	static const char *const no_rows[] = {
		[CAPTURE_ROWS_NONE] = "no_frame_information",
		[CAPTURE_ROWS_READ] = "late_frame_information",
		[CAPTURE_ROWS_UNREAD] = "unread_frame_information",
		[CAPTURE_ROWS_NO_ROOM] = "no_room",
	};
	struct profile_totals *t = &p->totals;
	const struct capture_stack_end *ends;
	const struct capture_throttled *throttled;
	const struct capture_image *images;
	struct capture_totals from;
	size_t count, image_count;

	capture_totals(c, &from);
	t->known = true;
	t->account = from.account;
	p->time_ns = from.start_time_ns;
	p->duration_ns = from.duration_ns;
	if (profile_add_lost(p, "ring_full", from.ring_full) ||
	    profile_add_lost(p, "nested", from.nested))
		return -ENOMEM;
	throttled = capture_throttled(c, &count);
	for (size_t i = 0; i < count; i++) {
		const struct profile_throttled group = {
			.cgroup = throttled[i].cgroup,
			.quota_ns = throttled[i].quota_ns,
			.every_ns = throttled[i].every_ns,
			.periods = throttled[i].periods,
			.throttled_periods = throttled[i].throttled_periods,
			.throttled_ns = throttled[i].throttled_ns,
		};

		if (profile_add_throttled(p, &group))
			return -ENOMEM;
	}
	images = capture_images(c, &image_count);
	ends = capture_stack_ends(c, &count);
	for (size_t i = 0; i < count; i++) {
		uint32_t image = ends[i].image;
		const char *cause = causes[ends[i].end], *why;

		if (ends[i].end == UNWIND_NO_ROWS)
			cause = no_rows[capture_rows(c, image, &why)];
		if (profile_add_stack_end(p, cause, image < image_count ? images[image].path : "",
					  ends[i].count))
			return -ENOMEM;
	}
	return 0;
}

int capture_profile_begin(struct capture_profile **out, struct profile *p, struct capture *c,
			  struct error *e)
{
	struct capture_profile *b = calloc(1, sizeof(*b));
	enum capture_stacks stacks = capture_options(c)->stacks;
	struct utsname machine;
	int err;

	if (!b)
		return error_no_memory(e);
	b->p = p;
	b->c = c;
	b->names = &b->own_names;
	/* The header, which is known as soon as the capture has begun. */
	uname(&machine); /* fails for a bad pointer only */
	p->frequency = capture_options(c)->frequency;
	p->bits = capture_bits(c);
	if (stacks != CAPTURE_NO_STACKS)
		p->stacks = stacks == CAPTURE_STACKS_CFI ? "cfi" : "fp";
	err = profile_string(p, capture_event_name(c), &p->event);
	err = err ?: profile_string(p, machine.nodename, &p->host);
	if (!err && !p->value_type_count) {
		err = capture_tick_ns(c) ? profile_add_clock(p, capture_tick_ns(c))
					 : profile_add_events(p, 1);
		if (!err && profile_tick_ns(p) && capture_knows_waiting(c))
			err = profile_add_sum(p, PROFILE_SUM_DELAY);
	}
	if (!err && capture_options(c)->waits) {
		b->wall = p->value_type_count;
		b->woke = b->wall + 1;
		b->wakers = calloc(CAPTURE_WAKERS_MAX, sizeof(*b->wakers));
		err = b->wakers ? profile_add_sum(p, PROFILE_SUM_WALL) : -ENOMEM;
		err = err ?: profile_add_sum(p, PROFILE_SUM_WOKE);
		if (capture_options(c)->calls) {
			b->span = b->woke + 1;
			err = err ?: profile_add_sum(p, PROFILE_SUM_SPAN);
		}
	}
	for (uint32_t i = 0; i < p->mapping_count && !err; i++)
		err = index_add(&b->mapping_index, mapping_hash(b, &p->mappings[i]), i);
	if (err) {
		capture_profile_end(b);
		return error_no_memory(e);
	}
	*out = b;
	return 0;
}

int capture_profile_add(struct capture_profile *b, struct error *e)
{
	const struct profile *p = b->p;
	struct capture_totals totals;

	if (user_names_update(&b->names->users))
		return error_no_memory(e);
	capture_totals(b->c, &totals);
	b->start_ns = totals.start_ns;
	b->start_time_ns = totals.start_time_ns;
	b->module_count = 0;
	for (uint32_t i = 0; i < p->mapping_count; i++) {
		if (p->mappings[i].start <= KERNEL_START)
			continue;
		if (array_add(b->modules, b->module_count, b->module_room, i))
			return error_no_memory(e);
	}
	/*
	 * An owned recording has only those mappings in which it has samples: the others may be of
	 * a program that a target executed with other credentials.
	 */
	if ((!capture_options(b->c)->owned && capture_each_mapping(b->c, add_mapping, b)) ||
	    capture_each_sample(b->c, CAPTURE_TICKS, add_sample, b) || add_walls(b))
		return error_no_memory(e);
	b->p->waits.complete = capture_options(b->c)->every_wait;
	if (b->wall &&
	    (capture_each_sample(b->c, CAPTURE_WAITS, note_wait, b) ||
	     capture_each_sample(b->c, CAPTURE_WAKERS, note_waker, b) ||
	     kernel_frames_name_all(&b->kernel) ||
	     capture_each_sample(b->c, CAPTURE_WAKERS, add_waker, b) ||
	     capture_each_sample(b->c, CAPTURE_WAITS, add_wait, b) || profile_split_idle(b->p) ||
	     (b->span && capture_each_sample(b->c, CAPTURE_CALLS, add_call, b))))
		return error_no_memory(e);
	return 0;
}

void capture_profile_end(struct capture_profile *b)
{
	if (!b)
		return;
	free(b->images);
	index_free(&b->image_index);
	free(b->modules);
	index_free(&b->mapping_index);
	wait_places_free(&b->places);
	peers_free(&b->peers);
	kernel_frames_free(&b->kernel);
	free(b->wakers);
	origin_names_free(&b->own_names);
	free(b);
}

static int from_capture(struct capture *c, struct origin_names *names, struct profile **out,
			struct error *e)
{
	struct capture_profile *b = NULL;
	struct profile *p = profile_new();
	int err = p ? capture_profile_begin(&b, p, c, e) : error_no_memory(e);

	if (!err && add_account(p, c))
		err = error_no_memory(e);
	if (!err) {
		b->names = names ?: b->names;
		b->is_window = names;
		b->keeps_times = true;
	}
	err = err ?: capture_profile_add(b, e);
	capture_profile_end(b);
	if (err)
		profile_free(p);
	else
		*out = p;
	return err;
}

int profile_from_capture(struct capture *c, struct profile **p, struct error *e)
{
	return from_capture(c, NULL, p, e);
}

int profile_from_window(struct capture *c, struct origin_names *names, struct profile **p,
			struct error *e)
{
	const struct context_wishes *wishes = capture_options(c)->wishes;
	char boot_id[64], boot[128] = "", kernel[128];
	struct utsname machine;
	int err = user_names_update(&names->users) ? error_no_memory(e)
						   : from_capture(c, names, p, e);

	if (err)
		return err;
	uname(&machine); /* fails for a bad pointer only */
	if (file_read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) == 0)
		snprintf(boot, sizeof(boot), "boot_id=%s", boot_id);
	snprintf(kernel, sizeof(kernel), "kernel=%s", machine.release);
	if ((*boot && profile_add_comment(*p, boot)) || profile_add_comment(*p, kernel) ||
	    (wishes &&
	     profile_add_comment(*p, wishes->literal ? "context=literal" : "context=normalised"))) {
		profile_free(*p);
		return error_no_memory(e);
	}
	return 0;
}

uint64_t profile_count_unmapped(const struct profile *p)
{
	uint64_t count = 0;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *sample = &p->samples[i];

		if (!sample->depth ||
		    p->locations[p->frames[sample->first_frame]].mapping == PROFILE_NONE)
			count += p->values[i * p->value_type_count];
	}
	return count;
}
