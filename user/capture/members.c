// SPDX-License-Identifier: GPL-2.0-only
#include "capture/members.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "capture/program.h"
#include "util/clock.h"
#include "util/proc.h"

/*
 * How long to wait at the end for exiting threads to leave their CPU.
 * Bound: machine: time for which the end of a recording waits for threads that exit; then: their
 * last CPU time is missing; again: never; share: none; seen: not seen.
 */
#define EXIT_NS (100 * NS_PER_MS)

/* Attached in this order: an exit before the first fork is followed does no harm. */
static const char *const programs[] = { "note_exit", "follow", "change_at_exec" };
_Static_assert(sizeof(programs) / sizeof(programs[0]) == MEMBERS_PROGRAMS, "a link for each");

static const char look_program[] = "take_times";

uint32_t members_pid_namespace(void)
{
	return proc_own_namespace("ns/pid");
}

static struct bpf_program *find_program(struct bpf_object *object, const char *name)
{
	return bpf_object__find_program_by_name(object, name);
}

void members_choose(struct bpf_object *object, bool account)
{
	program_let_grow(bpf_object__find_map_by_name(object, "members"));
	if (account)
		program_let_grow(bpf_object__find_map_by_name(object, "member_tasks"));
	for (size_t i = 0; i < MEMBERS_PROGRAMS; i++)
		bpf_program__set_autoload(find_program(object, programs[i]), true);
	bpf_program__set_autoload(find_program(object, look_program), account);
	bpf_map__set_autocreate(bpf_object__find_map_by_name(object, "member_tasks"), account);
	bpf_map__set_autocreate(bpf_object__find_map_by_name(object, "member_records"), account);
}

static int take_record(void *context, void *data, size_t size)
{
	const struct members *members = context;

	return size < sizeof(struct member_record) ? 0 : members->visit(data, members->context);
}

int members_map_numbers(struct members *members)
{
	void *numbers = mmap(NULL, MEMBER_NUMBERS / 8, PROT_READ | PROT_WRITE, MAP_SHARED,
			     members->number_map, 0);

	if (numbers == MAP_FAILED)
		return -errno;
	members->numbers = numbers;
	madvise(numbers, MEMBER_NUMBERS / 8, MADV_DONTFORK); /* not for our children */
	return 0;
}

int members_begin(struct members *members, struct bpf_object *object, bool account, struct error *e)
{
	size_t size;
	int err;

	members->map = bpf_map__fd(bpf_object__find_map_by_name(object, "members"));
	members->number_map = bpf_map__fd(bpf_object__find_map_by_name(object, "member_numbers"));
	err = members_map_numbers(members);
	if (err)
		return error_set(e, -err, "cannot map the numbers of processes");
	if (members->one_thread || members_pid_namespace())
		memset(members->numbers, 0xff, MEMBER_NUMBERS / 8);
	members->account = (struct member_account *)bpf_map__initial_value(
		bpf_object__find_map_by_name(object, ".data.account"), &size);
	if (account) {
		int ring = bpf_map__fd(bpf_object__find_map_by_name(object, "member_records"));

		members->records = ring_buffer__new(ring, take_record, members, NULL);
		if (!members->records)
			return error_set(e, errno, "cannot map the fork and exit records");
	}
	for (size_t i = 0; i < MEMBERS_PROGRAMS; i++) {
		const struct bpf_program *program = find_program(object, programs[i]);
		int fd = program_attach(program);

		if (fd == -EPERM || fd == -EACCES)
			return program_not_permitted(e, -fd, "cannot follow processes");
		if (fd < 0)
			return error_set_kind(e, ERROR_KERNEL_LACKS, -fd,
					      "cannot follow processes (%s)",
					      bpf_program__section_name(program));
		members->links[members->link_count++] = fd;
	}
	if (!account)
		return 0;
	members->look = bpf_link_create(bpf_program__fd(find_program(object, look_program)), 0,
					BPF_TRACE_ITER, NULL);
	if (members->look >= 0)
		return 0;
	err = -errno;
	members->look = 0;
	return error_set_kind(e, ERROR_KERNEL_LACKS, -err, "cannot list all threads");
}

int members_add(struct members *members, pid_t pid, const struct member *member, struct error *e)
{
	uint32_t number = pid;
	int err;

	/* Its bit first: see member_numbers in bpf/members.h. */
	if (number < MEMBER_NUMBERS)
		__atomic_fetch_or(&members->numbers[number / 64], 1ULL << number % 64,
				  __ATOMIC_SEQ_CST);
	err = bpf_map_update_elem(members->map, &number, member, BPF_NOEXIST);
	if (!err || err == -EEXIST)
		return 0;
	return error_set(e, -err, "cannot count the ticks of process %d", pid);
}

static bool find_member(const struct members *members, pid_t pid, struct member *member)
{
	uint32_t number = pid;

	return bpf_map_lookup_elem(members->map, &number, member) == 0;
}

int members_change(struct members *members, pid_t pid, const struct member *to)
{
	uint32_t number = pid;
	struct member member;

	if (!find_member(members, pid, &member))
		return -ESRCH;
	member.state = to->state;
	member.client = to->client;
	return bpf_map_update_elem(members->map, &number, &member, BPF_EXIST) ? -ESRCH : 0;
}

bool members_has(const struct members *members, pid_t pid)
{
	struct member member;

	return find_member(members, pid, &member);
}

void members_remove(struct members *members, pid_t pid)
{
	uint32_t number = pid;

	bpf_map_delete_elem(members->map, &number);
}

uint32_t members_cpu_words(void)
{
	int cpus = libbpf_num_possible_cpus();

	return cpus < 0 || cpus > 64 * MEMBER_CPU_WORDS ? MEMBER_CPU_WORDS : (cpus + 63) / 64;
}

bool members_may_run_on(const struct members *members, int cpu)
{
	return cpu >= 64 * MEMBER_CPU_WORDS || members->account->cpus[cpu / 64] & 1ULL << cpu % 64;
}

int members_look(struct members *members, struct error *e)
{
	int fd = bpf_iter_create(members->look), err = fd < 0 ? errno : 0;
	ssize_t n = 0;
	char nothing[64]; /* the iterator over all threads writes nothing */

	while (!err && (n = read(fd, nothing, sizeof(nothing))))
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			err = errno;
	if (fd >= 0)
		close(fd);
	return err ? error_set(e, err, "cannot read the times of the processes") : 0;
}

/* The iterator first sets what all threads have used before. */
int members_begin_account(struct members *members, struct error *e)
{
	int err = members_look(members, e);

	members->account->begin_ns = now_ns();
	__atomic_store_n(&members->account->state, ACCOUNT_RUNS, __ATOMIC_SEQ_CST);
	return err;
}

int members_read_account(struct members *members, struct member_times *times, struct error *e)
{
	const struct member_account *account = members->account;
	int err = members_look(members, e);

	*times = (struct member_times){
		.cpu_ns = __atomic_load_n(&account->cpu_ns, __ATOMIC_SEQ_CST),
		.runnable_ns = __atomic_load_n(&account->runnable_ns, __ATOMIC_SEQ_CST),
		.wall_ns = __atomic_load_n(&account->wall_ns, __ATOMIC_SEQ_CST),
		.threads = __atomic_load_n(&account->threads, __ATOMIC_SEQ_CST),
	};
	return err;
}

int members_end_account(struct members *members, struct member_times *times, struct error *e)
{
	const struct timespec moment = { .tv_nsec = NS_PER_MS };
	struct member_account *account = members->account;
	int err = members_read_account(members, times, e);
	uint64_t end_ns;

	__atomic_store_n(&account->state, ACCOUNT_ENDS, __ATOMIC_SEQ_CST);
	end_ns = now_ns() + EXIT_NS;
	while (!err && __atomic_load_n(&account->exiting, __ATOMIC_SEQ_CST) && now_ns() < end_ns) {
		nanosleep(&moment, NULL);
		err = members_look(members, e);
	}
	times->cpu_ns = __atomic_load_n(&account->cpu_ns, __ATOMIC_SEQ_CST);
	return err;
}

int members_read(struct members *members,
		 int (*visit)(const struct member_record *record, void *context), void *context)
{
	int n;

	if (!members->records)
		return 0;
	members->visit = visit;
	members->context = context;
	n = ring_buffer__consume(members->records);
	return n < 0 ? n : 0;
}

int members_fd(const struct members *members)
{
	return ring_buffer__epoll_fd(members->records);
}

uint64_t members_lost(const struct members *members)
{
	const struct member_account *account = members->account;

	return account ? account->no_record + account->no_task : 0;
}

uint64_t members_dropped(const struct members *members)
{
	return members->account ? members->account->no_member : 0;
}

void members_free(struct members *members)
{
	while (members->link_count)
		close(members->links[--members->link_count]);
	if (members->look)
		close(members->look);
	members->look = 0;
	ring_buffer__free(members->records);
	members->records = NULL;
	if (members->numbers)
		munmap(members->numbers, MEMBER_NUMBERS / 8);
	members->numbers = NULL;
}

/* --- On behalf of a user --- */

/* Whether a process is dumpable is said by a struct that its task points to; which one varies. */
static int find_dumpable(struct kernel_types *types, const char *pointer, const char *type,
			 const char *member, struct member_owner *owner)
{
	int err = kernel_member_offset(types, "task_struct", pointer, &owner->task_program);

	return err ? err : kernel_member_offset(types, type, member, &owner->program_dumpable);
}

int owner_find(struct member_owner *owner, struct kernel_types *types, struct error *e)
{
	/* In the order of struct owner_ids. */
	static const char *const id_names[] = { "uid", "gid", "suid", "sgid", "euid", "egid" };
	const struct {
		const char *type, *member;
		uint32_t *offset;
	} wanted[] = {
		{ "task_struct", "real_cred", &owner->task_cred },
		{ "cred", "uid", &owner->cred_ids },
		{ "cred", "cap_permitted", &owner->cred_permitted },
		{ "cred", "user_ns", &owner->cred_user_ns },
		{ "user_namespace", "level", &owner->user_ns_level },
	};
	const char *type = NULL, *member = NULL;
	int err = 0;

	*owner = (struct member_owner){ .uid = getuid(), .gid = getgid() };
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted) && !err; i++) {
		type = wanted[i].type;
		member = wanted[i].member;
		err = kernel_member_offset(types, type, member, wanted[i].offset);
	}
	for (size_t i = 0; i < sizeof(id_names) / sizeof(*id_names) && !err; i++) {
		uint32_t offset;

		type = "cred";
		member = id_names[i];
		err = kernel_member_offset(types, type, member, &offset);
		if (!err && offset != owner->cred_ids + i * sizeof(uint32_t))
			err = -ENOENT;
	}
	if (!err && find_dumpable(types, "exec_state", "task_exec_state", "dumpable", owner) != 0) {
		type = "mm_struct";
		member = "flags";
		err = find_dumpable(types, "mm", type, member, owner);
	}
	if (!err)
		return 0;
	error_set_kind(e, ERROR_KERNEL_LACKS, -err,
		       "cannot tell whose a process is: the kernel's BTF lacks %s of %s", member,
		       type);
	error_hint(e, "it requires CONFIG_DEBUG_INFO_BTF; or let root record it");
	return err;
}
