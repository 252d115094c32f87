// SPDX-License-Identifier: GPL-2.0-only
/*
 * compare_stacks [-c PERCENT] [-l PERCENT] PID TICKS [NAME...]: compares three walks of the same
 * stacks of a process: that of the eBPF program on the tick, by call frame information; and, from a
 * record with the registers and a copy of the stack that the perf event of the same tick writes,
 * that of libdwfl, and that of user space. All three must find the same frames. Prints a line of
 * numbers. Exits with 1, and prints the differing stacks, if not all (-l: PERCENT) of the stacks
 * that libdwfl can finish are equal, or if libdwfl found other frames before it ended. -c: PERCENT
 * of the stacks must reach the outermost frame. Each NAME, of a function or a file, must be in some
 * of the stacks.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <asm/perf_regs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/cpus.h"
#include "capture/perf_event.h"
#include "capture/events.h"
#include "capture/process.h"
#include "capture/sample_program.h"
#include "capture/snapshot.h"
#include "capture/unwind/unwind_copy.h"
#include "symbol/parser.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/index.h"
#include "util/number.h"

#define FREQUENCY	 2999
#define COPY_BYTES	 49152 /* a record ends below 64 KiB */
#define RING_BYTES	 (1 << 23)
#define SECONDS_MAX	 100
#define FINISHED_PERCENT 70 /* of the stacks, by libdwfl; with fewer, too little was compared */
#define EACH_AT_LEAST	 5  /* stacks that have a NAME */
#define SHOWN_MAX	 5  /* stacks that differ */

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	exit(2);
}

/* --- The two results of each tick --- */

/* The general registers by their numbers in DWARF, and the pc. */
static const int dwarf_registers[] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,	PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,	PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
};

#define REGISTERS (sizeof(dwarf_registers) / sizeof(*dwarf_registers))
#define SP	  7
#define PC	  16

/* What the perf event has written. */
struct record {
	uint64_t time_ns;
	uint32_t tid;
	uint64_t registers[REGISTERS];
	unsigned char *bytes; /* from the stack pointer on */
	size_t size;
	const struct stack *stack; /* of the same tick; NULL: a copy was sent instead */
};

static struct record *records;
static size_t record_count, record_room;
static uint64_t records_lost;

/* What the eBPF program has sent. */
static struct stack_sample *stacks;
static size_t stack_count, stack_room;

static int take_stack(void *context, void *data, size_t size)
{
	(void)context;
	if (array_reserve(&stacks, &stack_room, stack_count + 1, sizeof(*stacks)))
		return -ENOMEM;
	memcpy(&stacks[stack_count++], data, size);
	return 0;
}

static uint64_t register_mask(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < REGISTERS; i++)
		mask |= 1ULL << dwarf_registers[i];
	return mask;
}

/* The value of a register in a record, which has those of the mask in the order of its bits. */
static uint64_t register_value(const uint64_t *values, int number)
{
	return values[__builtin_popcountll(register_mask() & ((1ULL << number) - 1))];
}

struct sample_body {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t abi; /* if the size of the stack is 0, nothing follows it */
	uint64_t values[REGISTERS];
	uint64_t size;
	unsigned char bytes[];
};

static void take_sample(const struct sample_body *body)
{
	struct record *record;
	uint64_t copied;

	if (body->abi != PERF_SAMPLE_REGS_ABI_64 || !body->size)
		return;
	if (array_reserve(&records, &record_room, record_count + 1, sizeof(*records)))
		fail("no memory");
	memcpy(&copied, body->bytes + body->size, sizeof(copied));
	record = &records[record_count++];
	*record = (struct record){ .time_ns = body->time_ns, .tid = body->tid, .size = copied };
	for (size_t i = 0; i < REGISTERS; i++)
		record->registers[i] = register_value(body->values, dwarf_registers[i]);
	record->bytes = malloc(copied + 1);
	if (!record->bytes)
		fail("no memory");
	memcpy(record->bytes, body->bytes, copied);
}

/* --- Perf events --- */

struct ring {
	struct perf_event_mmap_page *control;
	int cpu, fd;
};

static struct ring *rings;
static size_t ring_count, ring_room;
static int *events;
static size_t event_count, event_room;

static void read_ring(const struct ring *ring)
{
	static unsigned char copy[1 << 16];
	const unsigned char *data = (unsigned char *)ring->control + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->control->data_tail;

	while (tail < head) {
		struct perf_event_header *header = (void *)copy;
		uint16_t size;

		/* A record is a whole number of words. */
		memcpy(header, data + tail % RING_BYTES, sizeof(*header));
		size = header->size;
		for (size_t i = 0; i < size; i += 8)
			memcpy(copy + i, data + (tail + i) % RING_BYTES, 8);
		if (header->type == PERF_RECORD_SAMPLE)
			take_sample((const void *)(header + 1));
		else if (header->type == PERF_RECORD_LOST)
			records_lost += ((const uint64_t *)(header + 1))[1];
		tail += size;
	}
	__atomic_store_n(&ring->control->data_tail, tail, __ATOMIC_RELEASE);
}

/* The ring of a CPU, which this event creates if the CPU has none. */
static struct ring *find_ring(int cpu, int fd)
{
	struct ring *ring;

	for (size_t i = 0; i < ring_count; i++)
		if (rings[i].cpu == cpu)
			return &rings[i];
	if (array_reserve(&rings, &ring_room, ring_count + 1, sizeof(*rings)))
		fail("no memory");
	ring = &rings[ring_count++];
	ring->cpu = cpu;
	ring->fd = fd;
	ring->control = mmap(NULL, sysconf(_SC_PAGESIZE) + RING_BYTES, PROT_READ | PROT_WRITE,
			     MAP_SHARED, fd, 0);
	if (ring->control == MAP_FAILED)
		fail("cannot map a ring of records: %s", strerror(errno));
	return ring;
}

struct open_context {
	pid_t tid;
	int program;
};

/* The event of a thread on one CPU, and of its children there. */
static int open_event(int cpu, void *context)
{
	const struct open_context *c = context;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_choose(FREQUENCY, events_tick_ns()),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.sample_regs_user = register_mask(),
		.sample_stack_user = COPY_BYTES,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.inherit = 1,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = RING_BYTES / 8,
	};
	int fd = perf_event_open(&attr, c->tid, cpu);
	const struct ring *ring;

	if (fd == -ESRCH)
		return 0;
	if (fd < 0)
		fail("cannot open a perf event: %s", strerror(-fd));
	ring = find_ring(cpu, fd);
	if (ring->fd != fd && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
		fail("cannot share a ring of records: %s", strerror(errno));
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, c->program))
		fail("cannot attach the program: %s", strerror(errno));
	if (array_reserve(&events, &event_room, event_count + 1, sizeof(*events)))
		fail("no memory");
	events[event_count++] = fd;
	return 0;
}

static bool is_stopped(pid_t tid)
{
	char path[64], text[256];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (file_read_line(path, text, sizeof(text)))
		return true; /* it has ended */
	state = strrchr(text, ')');
	return state && strspn(state + 2, "TtDZX"); /* D: until its child has ended, after vfork */
}

/*
 * A child that starts after an event was opened and before the program was attached to it would not
 * have the program.
 */
static void stop(const struct process_table *processes, pid_t pid)
{
	kill(pid, SIGSTOP);
	for (size_t i = 0; i < processes->thread_count; i++)
		while (!is_stopped(processes->threads[i].tid))
			usleep(1000);
}

static void open_events(const struct process_table *processes, int program)
{
	struct error e;

	for (size_t i = 0; i < processes->thread_count; i++) {
		struct open_context context = { processes->threads[i].tid, program };

		if (cpus_each_online(open_event, &context, &e))
			fail("%s", e.what);
	}
}

static void set_events(unsigned long request)
{
	for (size_t i = 0; i < event_count; i++)
		if (ioctl(events[i], request, 0))
			fail("cannot switch a perf event: %s", strerror(errno));
}

/* --- Recording --- */

static struct process_table processes = { .notes_changes = true };
static struct counts counts;
static struct unwind unwind = {
	.read = parser_read_rows,
	.processes = &processes,
	.counts = &counts,
	.native = true, /* interpreters' frames, too */
};
static struct sample_program sample = { .arena_words = 1, .keeps_records = true };

static void load(pid_t pid)
{
	const struct sample_settings settings = {
		.sides = SAMPLE_USER | SAMPLE_KERNEL,
		.stacks = true,
		.unwind = &unwind,
		.everyone = true,
	};
	struct error e = { 0 };

	if (snapshot_process(&processes, pid, 0))
		fail("no memory");
	if (sample_program_load(&sample, &settings, &counts, &e))
		fail("%s", e.what);
}

static void record(pid_t pid, size_t ticks)
{
	const struct bpf_map *map =
		bpf_object__find_map_by_name(sample_program_object(&sample), "ring");
	struct ring_buffer *ring = ring_buffer__new(bpf_map__fd(map), take_stack, NULL, NULL);
	uint64_t end_ns = now_ns() + SECONDS_MAX * NS_PER_S;

	if (!ring)
		fail("cannot map the stacks: %s", strerror(errno));
	stop(&processes, pid);
	open_events(&processes, bpf_program__fd(sample_program_on_tick(&sample)));
	set_events(PERF_EVENT_IOC_ENABLE);
	kill(pid, SIGCONT);
	while (record_count < ticks && now_ns() < end_ns) {
		usleep(5000);
		/*
		 * Stacks first: where both rings are full, as this process had no CPU for a while,
		 * no tick finds room for its record alone.
		 */
		if (ring_buffer__consume(ring) < 0)
			fail("cannot read the stacks");
		for (size_t i = 0; i < ring_count; i++)
			read_ring(&rings[i]);
		if (unwind_update(&unwind, now_ns()))
			fail("cannot read the stacks");
	}
	set_events(PERF_EVENT_IOC_DISABLE);
	for (size_t i = 0; i < ring_count; i++)
		read_ring(&rings[i]);
	if (ring_buffer__consume(ring) < 0)
		fail("cannot read the stacks");
	ring_buffer__free(ring);
}

/* --- Pairs --- */

static int by_thread_and_time(uint32_t a_tid, uint64_t a_ns, uint32_t b_tid, uint64_t b_ns)
{
	if (a_tid != b_tid)
		return a_tid < b_tid ? -1 : 1;
	return a_ns < b_ns ? -1 : a_ns > b_ns;
}

static int compare_records(const void *left, const void *right)
{
	const struct record *a = left, *b = right;

	return by_thread_and_time(a->tid, a->time_ns, b->tid, b->time_ns);
}

static int compare_samples(const void *left, const void *right)
{
	const struct stack_sample *a = left, *b = right;

	return by_thread_and_time(sample_id_tid(a->stack.id), a->time_ns,
				  sample_id_tid(b->stack.id), b->time_ns);
}

static int compare_record_to_stack(size_t record, size_t stack)
{
	return by_thread_and_time(records[record].tid, records[record].time_ns,
				  sample_id_tid(stacks[stack].stack.id), stacks[stack].time_ns);
}

/* The user's leaf; 1 was added if it was interrupted in the kernel, but not by a system call. */
static bool has_leaf(const struct stack *stack, uint64_t pc)
{
	uint64_t leaf = stack->pcs[stack->kernel_depth];

	return leaf == pc || (stack->kernel_depth && leaf == pc + 1);
}

/*
 * Finds for each record the stack of the same tick: of those of its thread the first that is not
 * older than the record, but than the next; stack_first: the last that is not younger than the
 * record, but than the one before. Returns how many have the record's pc.
 */
static size_t find_pairs(bool stack_first)
{
	size_t at = 0, right = 0;

	for (size_t i = 0; i < record_count; i++) {
		struct record *record = &records[i];
		const struct stack *found = NULL;
		size_t begin;

		while (!stack_first && at < stack_count && compare_record_to_stack(i, at) > 0)
			at++;
		begin = at;
		while (at < stack_count &&
		       (stack_first
				? compare_record_to_stack(i, at) >= 0
				: i + 1 == record_count || compare_record_to_stack(i + 1, at) > 0))
			at++;
		if (at > begin)
			found = &stacks[stack_first ? at - 1 : begin].stack;
		if (found && sample_id_tid(found->id) != record->tid)
			found = NULL;
		record->stack = found;
		right += found && has_leaf(found, record->registers[PC]);
	}
	return right;
}

/* Kernels take the record's time before they run the program, or afterwards. */
static void pair(void)
{
	qsort(records, record_count, sizeof(*records), compare_records);
	qsort(stacks, stack_count, sizeof(*stacks), compare_samples);
	if (find_pairs(true) < find_pairs(false))
		return;
	find_pairs(true);
}

/* --- Walks --- */

/* The frames of a walk: of callers, an address within the call. */
struct frames {
	uint64_t pcs[STACK_DEPTH_MAX];
	bool flagged[STACK_DEPTH_MAX]; /* libdwfl's: a signal's frame, or the one that it
					  interrupted */
	size_t depth;
	bool finished;
	bool guessed; /* libdwfl's: the next frame would be a guess */
};

static const struct record *walked; /* of which libdwfl asks registers and memory */
static Dwarf_Word last_word;	    /* that it has read of it */
static int memory;		    /* of the thread's process */

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_context)
{
	(void)dwfl, (void)context;
	if (*thread_context)
		return 0;
	*thread_context = &walked;
	return walked->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread_context)
{
	(void)dwfl, (void)context;
	*thread_context = &walked;
	return tid == (pid_t)walked->tid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *value, void *context)
{
	uint64_t at = address - walked->registers[SP];

	(void)dwfl, (void)context;
	last_word = 1;
	if (at >= walked->size || sizeof(*value) > walked->size - at)
		return false;
	memcpy(value, walked->bytes + at, sizeof(*value));
	last_word = *value;
	return true;
}

/* The pc is after the last instruction of a function if that is a system call. */
static bool returns_from_system_call(const struct record *record)
{
	unsigned char code[2];

	if (record->stack && !record->stack->kernel_depth)
		return false;
	return pread(memory, code, sizeof(code), record->registers[PC] - 2) == sizeof(code) &&
	       code[0] == 0x0f && code[1] == 0x05;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	Dwarf_Word registers[REGISTERS];

	(void)context;
	memcpy(registers, walked->registers, sizeof(registers));
	registers[PC] -= returns_from_system_call(walked);
	return dwfl_thread_state_registers(thread, 0, REGISTERS, registers);
}

static int take_frame(Dwfl_Frame *frame, void *context)
{
	struct frames *frames = context;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	frames->pcs[frames->depth] = pc;
	frames->flagged[frames->depth++] = exact;
	return frames->depth < STACK_DEPTH_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/*
 * Turns pcs into addresses within calls. The pc of a signal's frame is a return address, that of
 * the frame that it interrupted is not; the leaf's can be either.
 */
static void turn_into_call_addresses(struct frames *frames)
{
	size_t begin = 1, end;

	for (; begin < frames->depth; begin = end + 1) {
		for (end = begin; end < frames->depth && frames->flagged[end]; end++) {
			bool interrupted = (end - begin) % 2 == 1;

			frames->pcs[end] -= !interrupted;
		}
		/* The leaf was a signal's frame. */
		if (begin == 1 && (end - begin) % 2 == 1)
			for (size_t i = begin; i < end; i++)
				frames->pcs[i] += (i - begin) % 2 == 0 ? 1 : -1;
		if (end < frames->depth)
			frames->pcs[end]--;
	}
}

static Dwfl *attach_dwfl(pid_t pid)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	static const Dwfl_Thread_Callbacks thread_callbacks = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_memory,
		.set_initial_registers = set_registers,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	if (!dwfl || dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL) ||
	    !dwfl_attach_state(dwfl, NULL, pid, &thread_callbacks, NULL))
		fail("libdwfl cannot attach: %s", dwfl_errmsg(-1));
	return dwfl;
}

/*
 * Returns the call frame information for an address, of .eh_frame or .debug_frame; NULL: there is
 * none.
 */
static Dwarf_Frame *find_rules(Dwfl *dwfl, Dwarf_Addr address)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;

	if (cfi && dwarf_cfi_addrframe(cfi, address - bias, &frame) == 0)
		return frame;
	cfi = module ? dwfl_module_dwarf_cfi(module, &bias) : NULL;
	return cfi && dwarf_cfi_addrframe(cfi, address - bias, &frame) == 0 ? frame : NULL;
}

/* Whether the rules state that there is no return address. */
static bool has_no_caller(Dwarf_Frame *frame)
{
	Dwarf_Op room[3], *ops;
	size_t count;

	return dwarf_frame_register(frame, PC, room, &ops, &count) == 0 && !count && ops;
}

/*
 * Functions of Go's runtime that call others on another stack: their call frame information finds
 * their caller there, where it is not. And those that are the outermost frame, or have left their
 * caller for ever, of which it does not say so.
 */
static const char *const go_switches[] = {
	"runtime.systemstack.abi0",
	"runtime.asmcgocall.abi0",
	"runtime.morestack.abi0",
	"runtime.nanotime1.abi0",
	"runtime.cgocallback.abi0",
	"time.now",
	NULL,
};
static const char *const go_ends[] = {
	"runtime.goexit.abi0",
	"runtime.mstart.abi0",
	"runtime.mcall",
	NULL,
};

enum go_function {
	GO_OTHER,
	GO_SWITCHES,
	GO_ENDS
};

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names) != 0)
		names++;
	return *names;
}

/* libdwfl looks through all symbols of a module for a name: what was found of an address is kept.
 */
static enum go_function go_function_at(Dwfl *dwfl, Dwarf_Addr address)
{
	static struct found {
		const Dwfl_Module *module;
		Dwarf_Addr address;
		enum go_function function;
	} all[4096];
	Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
	struct found *found = &all[hash_u64(0, address) % (sizeof(all) / sizeof(*all))];
	const char *name;

	if (!module)
		return GO_OTHER;
	if (found->module != module || found->address != address) {
		name = dwfl_module_addrname(module, address);
		*found = (struct found){ module, address, GO_OTHER };
		if (name && is_one_of(name, go_switches))
			found->function = GO_SWITCHES;
		else if (name && is_one_of(name, go_ends))
			found->function = GO_ENDS;
	}
	return found->function;
}

/*
 * Without call frame information libdwfl guesses the caller by the frame pointer: its walk is used
 * up to there. It accepts any word as a return address: an address in no image is none. It also
 * reports an end where it has not found the caller: it reads the return address last.
 */
static void walk_by_dwfl(Dwfl *dwfl, const struct record *record, struct frames *frames)
{
	bool is_outermost = false;

	walked = record;
	last_word = 1;
	frames->depth = 0;
	frames->finished = dwfl_getthread_frames(dwfl, record->tid, take_frame, frames) == 0;
	frames->pcs[0] = record->registers[PC];
	turn_into_call_addresses(frames);
	for (size_t i = 0; i < frames->depth; i++) {
		enum go_function function = i ? go_function_at(dwfl, frames->pcs[i]) : GO_OTHER;
		bool returns = i == 0 && returns_from_system_call(record);
		Dwarf_Frame *rules = find_rules(dwfl, frames->pcs[i] - returns);

		if (!rules)
			frames->depth = i + (!i || dwfl_addrmodule(dwfl, frames->pcs[i]));
		frames->guessed = !rules;
		is_outermost = rules && has_no_caller(rules);
		free(rules);
		if (function == GO_SWITCHES) {
			frames->depth = i + 1;
			frames->guessed = true;
		} else if (function == GO_ENDS) {
			frames->depth = i + 1;
			is_outermost = frames->finished = true;
		}
	}
	if (frames->guessed || (last_word && !is_outermost))
		frames->finished = false;
}

static void take_pcs(struct frames *frames, const void *from, size_t depth, uint8_t end)
{
	const uint64_t *pcs = from;

	frames->depth = 0;
	frames->finished = end == UNWIND_COMPLETE;
	for (size_t i = 0; i < depth; i++)
		if (!i || language_of_word(pcs[i]) == LANGUAGE_NONE) /* frames of scripts */
			frames->pcs[frames->depth++] = pcs[i] - !!i;
}

/* The mappings that the eBPF program finds; children have the same. */
static void find_space(uint64_t id, struct unwind_space *space)
{
	uint64_t key = sample_id_make(sample_id_exec(id), sample_id_tgid(id), 0);
	struct unwind_process process;

	if (bpf_map_lookup_elem(unwind.tables.processes, &key, &process))
		return;
	space->mappings = unwind.tables.mappings + process.first;
	space->count = process.count;
}

/* The frames that user space's own walk of the record finds. */
static void walk_copy(const struct record *record, const struct unwind_space *space,
		      struct frames *frames)
{
	static struct unwind_copy copy;
	struct unwind_found found;

	memcpy(copy.registers, record->registers, sizeof(copy.registers));
	copy.begin = record->registers[SP];
	copy.size = record->size < UNWIND_COPY_BYTES ? record->size : UNWIND_COPY_BYTES;
	memcpy(copy.bytes, record->bytes, copy.size);
	unwind_copy_walk(&copy, &unwind.tables, space, NULL, &found);
	take_pcs(frames, found.pcs, found.user_depth, found.end);
}

/* --- Judging --- */

static bool begins_with(const struct frames *frames, const struct frames *first)
{
	return frames->depth >= first->depth &&
	       memcmp(frames->pcs, first->pcs, first->depth * sizeof(*first->pcs)) == 0;
}

static bool are_same(const struct frames *a, const struct frames *b)
{
	return a->depth == b->depth && begins_with(a, b);
}

/* A walk of the copy may be shorter if the copy ended before the stack. */
static bool agrees(const struct frames *ours, const struct frames *of_copy)
{
	return of_copy->finished ? are_same(ours, of_copy) && ours->finished
				 : begins_with(ours, of_copy);
}

static void print_frames(Dwfl *dwfl, const char *name, const struct frames *frames)
{
	printf("%s%s:\n", name, frames->finished ? "" : " (not finished)");
	for (size_t i = 0; i < frames->depth; i++) {
		Dwarf_Addr pc = frames->pcs[i], start = 0, bias;
		Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
		const char *path = "-", *symbol = NULL;

		if (module) {
			dwfl_module_getelf(module, &bias);
			path = dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
			symbol = dwfl_module_addrname(module, pc);
		}
		printf("  %2zu %#14jx %s %s+%#jx\n", i, (uintmax_t)pc, symbol ? symbol : "?", path,
		       (uintmax_t)(pc - start));
	}
}

/* The number of each kind. */
struct numbers {
	size_t ticks;
	size_t copied; /* those whose stacks user space has walked */
	/* Our stacks, and libdwfl's, that end at the outermost frame or at STACK_DEPTH_MAX. */
	size_t complete, finished;
	size_t same, longer;
	size_t different, different_copies;
};

/* A function, or an image, that must be in some stacks. */
struct wanted {
	const char *name;
	uint64_t begin, limit;
	size_t stacks;
};

static struct wanted wanted[64];
static size_t wanted_count;

static int find_wanted(Dwfl_Module *module, void **data, const char *path, Dwarf_Addr start,
		       void *wanted_one)
{
	struct wanted *w = wanted_one;
	const char *file = strrchr(path, '/');
	int count = dwfl_module_getsymtab(module);

	(void)data;
	if (file && strcmp(file + 1, w->name) == 0) {
		w->begin = start;
		dwfl_module_info(module, NULL, NULL, &w->limit, NULL, NULL, NULL, NULL);
		return DWARF_CB_ABORT;
	}
	for (int i = 0; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name =
			dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);

		if (name && strcmp(name, w->name) == 0 && symbol.st_size) {
			w->begin = address;
			w->limit = address + symbol.st_size;
			return DWARF_CB_ABORT;
		}
	}
	return DWARF_CB_OK;
}

static void take_wanted(Dwfl *dwfl, char **names)
{
	for (; *names; names++) {
		struct wanted *w = &wanted[wanted_count++];

		w->name = *names;
		dwfl_getmodules(dwfl, find_wanted, w, 0);
		if (!w->limit)
			fail("there is no %s", w->name);
	}
}

static void note_wanted(const struct frames *frames)
{
	for (struct wanted *w = wanted; w < wanted + wanted_count; w++)
		for (size_t i = 0; i < frames->depth; i++)
			if (frames->pcs[i] >= w->begin && frames->pcs[i] < w->limit) {
				w->stacks++;
				break;
			}
}

static void print_tick(Dwfl *dwfl, const struct record *record, const struct frames *ours,
		       const struct frames *theirs, const struct frames *of_copy)
{
	printf("bx %#jx bp %#jx sp %#jx, %zu bytes of the stack, %s\n",
	       (uintmax_t)record->registers[3], (uintmax_t)record->registers[6],
	       (uintmax_t)record->registers[SP], record->size,
	       record->stack ? "walked on the tick" : "not walked on the tick");
	if (record->stack)
		printf("end %d, by frame pointer %d, %d frames of the kernel\n", record->stack->end,
		       record->stack->by_frame_pointer, record->stack->kernel_depth);
	print_frames(dwfl, "ours", ours);
	print_frames(dwfl, "libdwfl's", theirs);
	print_frames(dwfl, "of the copy", of_copy);
}

static void judge(Dwfl *dwfl, const struct record *record, const struct unwind_space *space,
		  struct numbers *numbers)
{
	const struct stack *stack = record->stack;
	struct frames ours, theirs, of_copy;
	bool good;

	walk_by_dwfl(dwfl, record, &theirs);
	walk_copy(record, space, &of_copy);
	if (stack)
		take_pcs(&ours, stack->pcs + stack->kernel_depth, stack->user_depth, stack->end);
	else
		ours = of_copy;
	if (theirs.guessed && of_copy.depth > theirs.depth) {
		/* The walk on the tick reads the code, which is not copied. */
		of_copy.depth = theirs.depth;
		of_copy.finished = false;
	}
	if (stack && has_leaf(stack, record->registers[PC]))
		ours.pcs[0] = record->registers[PC];
	numbers->ticks++;
	numbers->copied += !stack;
	numbers->complete += ours.finished || ours.depth == STACK_DEPTH_MAX;
	numbers->finished += theirs.finished || theirs.depth == STACK_DEPTH_MAX;
	if (theirs.finished)
		good = are_same(&ours, &theirs) && ours.finished;
	else
		good = begins_with(&ours, &theirs);
	if (!good)
		numbers->different++;
	else if (ours.depth > theirs.depth)
		numbers->longer++;
	else
		numbers->same++;
	if (!agrees(&ours, &of_copy))
		numbers->different_copies++;
	if ((!good && numbers->different <= SHOWN_MAX) ||
	    (!agrees(&ours, &of_copy) && numbers->different_copies <= SHOWN_MAX))
		print_tick(dwfl, record, &ours, &theirs, &of_copy);
	note_wanted(&ours);
}

static void judge_all(Dwfl *dwfl, struct numbers *numbers)
{
	struct unwind_space space = { 0 };

	for (size_t i = 0; i < stack_count && !space.count; i++)
		find_space(stacks[i].stack.id, &space);
	for (size_t i = 0; i < record_count; i++)
		judge(dwfl, &records[i], &space, numbers);
}

/* Returns whether all conditions hold; prints those that do not. */
static bool conditions_hold(const struct numbers *n, size_t ticks, unsigned int percent,
			    unsigned int complete_percent)
{
	bool well = true;

	if (n->complete * 100 < n->ticks * complete_percent) {
		printf("%zu of %zu stacks are complete only\n", n->complete, n->ticks);
		well = false;
	}
	if (n->finished * 100 < n->ticks * FINISHED_PERCENT) {
		printf("libdwfl has finished %zu of %zu stacks only\n", n->finished, n->ticks);
		well = false;
	}
	if (n->different * 100 > n->finished * (100 - percent)) {
		printf("%zu of %zu stacks differ from libdwfl's\n", n->different, n->ticks);
		well = false;
	}
	if (n->different_copies) {
		printf("%zu of %zu walks of copies differ\n", n->different_copies, n->ticks);
		well = false;
	}
	if (n->ticks < ticks / 2) {
		printf("only %zu ticks came; %ju records were lost\n", n->ticks,
		       (uintmax_t)records_lost);
		well = false;
	}
	if (n->copied * 20 > n->ticks) {
		printf("%zu ticks were not walked when they came\n", n->copied);
		well = false;
	}
	for (size_t i = 0; i < wanted_count; i++)
		if (wanted[i].stacks < EACH_AT_LEAST) {
			printf("%s is in %zu stacks only\n", wanted[i].name, wanted[i].stacks);
			well = false;
		}
	return well;
}

int main(int argc, char **argv)
{
	uint64_t percent = 100, complete = 0, pid, ticks;
	struct numbers numbers = { 0 };
	Dwfl *dwfl;
	int option;

	while ((option = getopt(argc, argv, "c:l:")) == 'c' || option == 'l')
		if (number_parse(optarg, 1, 100, option == 'c' ? &complete : &percent))
			return 2;
	if (option != -1 || argc - optind < 2 || number_parse(argv[optind], 1, INT32_MAX, &pid) ||
	    number_parse(argv[optind + 1], 1, 100000, &ticks) ||
	    argc - optind - 2 > (int)(sizeof(wanted) / sizeof(*wanted)))
		fail("usage: compare_stacks [-c PERCENT] [-l PERCENT] PID TICKS [NAME...]");
	load(pid);
	dwfl = attach_dwfl(pid);
	take_wanted(dwfl, argv + optind + 2);
	record(pid, ticks);
	kill(pid, SIGSTOP); /* nobody looks at what it does meanwhile */
	pair();
	judge_all(dwfl, &numbers);
	kill(pid, SIGCONT);
	printf("ticks %zu complete %zu finished %zu same %zu longer %zu different %zu\n",
	       numbers.ticks, numbers.complete, numbers.finished, numbers.same, numbers.longer,
	       numbers.different);
	return !conditions_hold(&numbers, ticks, percent, complete);
}
