// SPDX-License-Identifier: GPL-2.0-only
#include "capture/program.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/requirements.h"
#include "util/memory.h"

/* libbpf's first warning, and why the verifier refused. The callback has no context. */
static __thread char libbpf_message[256], verifier_message[256];

static void copy_line(char *to, size_t size, const char *line)
{
	snprintf(to, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static int keep_libbpf_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	bool is_log = strstr(format, "PROG LOAD LOG");
	char *text, *end, *line;

	/* The first one names the cause. */
	if (level != LIBBPF_WARN || (libbpf_message[0] && !is_log) ||
	    vasprintf(&text, format, arguments) < 0)
		return 0;
	if (!libbpf_message[0])
		copy_line(libbpf_message, sizeof(libbpf_message), text);
	/* The verifier's log says so in its last line but one: after it come statistics. */
	end = is_log && !verifier_message[0] ? strstr(text, "\nprocessed ") : NULL;
	if (end) {
		*end = '\0';
		line = strrchr(text, '\n');
		if (line)
			copy_line(verifier_message, sizeof(verifier_message), line + 1);
	}
	free(text);
	return 0;
}

int program_not_permitted(struct error *e, int code, const char *what)
{
	error_set_kind(e, ERROR_NOT_PERMITTED, code, "%s", what);
	error_hint(e, "run it as root, or give the program capabilities: profiltool check has "
		      "the command");
	return -code;
}

static bool is_limited(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int program_out_of(struct error *e, int code, const char *what)
{
	error_set(e, code, "%s", what);
	if (code == EMFILE)
		error_hint(e, "raise the limit of open files: ulimit -n 65536");
	else if (code == ENOMEM && (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)))
		error_hint(e, "raise this process's memory limits: ulimit -v unlimited -d "
			      "unlimited; in systemd, LimitAS= and LimitDATA=");
	return -code;
}

/* Fewer than this may be too few for the maps and programs of an object. */
#define ENOUGH_FILES 64

static int load_error(struct error *e, int code)
{
	struct rlimit limit;

	/* Where libbpf cannot open the kernel's BTF once more, it may be refused with EINVAL. */
	if (code == EMFILE || (code == EINVAL && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
			       limit.rlim_cur < ENOUGH_FILES))
		return program_out_of(e, EMFILE, "cannot load the BPF program");
	/* Out of memory for the kernel's BTF, libbpf reports ESRCH: that there is none. */
	if (code == ENOMEM || (code == ESRCH && access(KERNEL_BTF, R_OK) == 0))
		return program_out_of(e, ENOMEM, "cannot load the BPF program");
	if (code == ESRCH) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0,
			       "this kernel has no BTF: there is no " KERNEL_BTF);
		error_hint(e, REQUIREMENT_BTF_HINT);
		return -code;
	}
	if (code == EPERM) /* EACCES comes from the verifier */
		return program_not_permitted(e, code, "cannot load the BPF program");
	if (verifier_message[0]) {
		error_set_kind(e, ERROR_KERNEL_LACKS, 0, "cannot load the BPF program (%s: %s)",
			       libbpf_message, verifier_message);
		error_hint(e,
			   "this kernel is not as expected: a newer version of profil may know it; "
			   "else report this, with the kernel's version (uname -a)");
		return -code;
	}
	error_set_kind(e, ERROR_KERNEL_LACKS, code, "cannot load the BPF program (%s)",
		       libbpf_message);
	error_hint(e, "it requires Linux 5.15 or later with CONFIG_BPF_SYSCALL, CONFIG_PERF_EVENTS "
		      "and CONFIG_DEBUG_INFO_BTF");
	return -code;
}

int program_load(int (*load)(void *object), void *object, struct error *e)
{
	libbpf_print_fn_t before;
	int err;

	libbpf_message[0] = verifier_message[0] = '\0';
	/* Restored below: the host program of libprofil may use libbpf, too. */
	before = libbpf_set_print(keep_libbpf_message);
	err = load(object);
	libbpf_set_print(before);
	return err ? load_error(e, -err) : 0;
}

bool program_has_loops(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;
}

void program_let_grow(struct bpf_map *map)
{
	unsigned int major, minor;
	struct utsname kernel;

	if (uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 6 || (major == 6 && minor >= 1)))
		bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_NO_PREALLOC);
}

int program_attach(const struct bpf_program *program)
{
	/* No name: the program itself has that of its tracepoint. */
	return bpf_raw_tracepoint_open(NULL, bpf_program__fd(program));
}

int program_barrier_open(struct program_barrier *barrier)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", sizeof(uint32_t), sizeof(uint32_t), 1,
				NULL);

	if (fd < 0)
		return fd;
	barrier->inner = options.inner_map_fd = fd;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", sizeof(uint32_t), sizeof(uint32_t),
			    1, &options);
	if (fd < 0) {
		program_barrier_close(barrier);
		return fd;
	}
	barrier->outer = fd;
	return 0;
}

/*
 * A program may use the map that an element of a map of maps had, so the kernel waits for a grace
 * period of RCU when user space changes such an element. membarrier(2) does so only where no CPU is
 * nohz_full.
 */
int program_barrier_wait(const struct program_barrier *barrier)
{
	uint32_t key = 0;

	return bpf_map_update_elem(barrier->outer, &key, &barrier->inner, BPF_ANY);
}

void program_barrier_close(struct program_barrier *barrier)
{
	if (barrier->outer)
		close(barrier->outer);
	if (barrier->inner)
		close(barrier->inner);
	*barrier = (struct program_barrier){ 0 };
}

/* Returns NULL with errno set if it cannot be read. */
static const struct btf *read_types(struct kernel_types *types)
{
	return types->btf = types->btf ?: btf__parse_raw(KERNEL_BTF);
}

void kernel_types_forget(struct kernel_types *types)
{
	btf__free(types->btf);
	types->btf = NULL;
}

void kernel_types_close(struct kernel_types *types)
{
	kernel_types_forget(types);
	if (types->used)
		close(types->used);
	*types = (struct kernel_types){ 0 };
}

static int compare_names(const void *name, const void *other)
{
	return strcmp(name, *(const char *const *)other);
}

/* Whether our programs use a type of this name. */
static bool is_used(const char *name)
{
	static const char *const used[] = {
#include "type_names.h"
	};

	return bsearch(name, used, sizeof(used) / sizeof(*used), sizeof(*used), compare_names);
}

/* The i-th type of which a value has a part; NULL: there are no more. */
static __u32 *part_of(struct btf_type *type, int i)
{
	switch (btf_kind(type)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return i < btf_vlen(type) ? &btf_members(type)[i].type : NULL;
	case BTF_KIND_ARRAY:
		return i == 0	? &btf_array(type)->type
		       : i == 1 ? &btf_array(type)->index_type
				: NULL;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_TYPE_TAG:
		return i == 0 ? &type->type : NULL;
	default:
		return NULL;
	}
}

/*
 * Copies a type and its parts, unless taken[] has the number of the copy. What a pointer points to
 * is no part: for relocations any pointer is as good. Returns that number or a negative errno.
 */
static int take_type(struct btf *to, const struct btf *from, int *taken, __u32 id)
{
	struct btf_type *type = (struct btf_type *)btf__type_by_id(from, id), *copy;
	int number, part;

	if (taken[id] || !id)
		return taken[id];
	number = taken[id] = btf__add_type(to, from, type);
	for (int i = 0; number > 0 && part_of(type, i); i++) {
		part = take_type(to, from, taken, *part_of(type, i));
		if (part < 0)
			return part;
		copy = (struct btf_type *)btf__type_by_id(to, number);
		*part_of(copy, i) = part;
	}
	if (number > 0 && btf_is_ptr(type)) {
		copy = (struct btf_type *)btf__type_by_id(to, number);
		copy->type = 0; /* void */
	}
	return number;
}

const char *kernel_types_used(struct kernel_types *types)
{
	const struct btf *from = types->used ? NULL : read_types(types);
	struct btf *to = from ? btf__new_empty() : NULL;
	int *taken = from ? calloc(btf__type_cnt(from), sizeof(*taken)) : NULL;
	bool complete = to && taken;
	const void *bytes;
	__u32 size;

	for (__u32 id = 1; complete && id < btf__type_cnt(from); id++) {
		const struct btf_type *type = btf__type_by_id(from, id);

		if ((btf_is_struct(type) || btf_is_any_enum(type)) &&
		    is_used(btf__name_by_offset(from, type->name_off)))
			complete = take_type(to, from, taken, id) > 0;
	}
	bytes = complete ? btf__raw_data(to, &size) : NULL;
	if (bytes) {
		int fd = memfd_create("kernel types", MFD_CLOEXEC);

		/* The thread of libprofil has descriptors of its own. */
		snprintf(types->used_path, sizeof(types->used_path), "/proc/thread-self/fd/%d", fd);
		if (fd > 0 && write(fd, bytes, size) == (ssize_t)size &&
		    access(types->used_path, R_OK) == 0)
			types->used = fd;
		else if (fd > 0)
			close(fd);
	}
	free(taken);
	btf__free(to);
	return types->used > 0 ? types->used_path : NULL;
}

int kernel_variable_offset(struct kernel_types *types, const char *name, int64_t *offset)
{
	const struct btf *btf = read_types(types);
	int section = btf ? btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC) : -errno;
	int variable = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_VAR) : section;
	const struct btf_type *type = section > 0 ? btf__type_by_id(btf, section) : NULL;

	for (int i = 0; type && variable > 0 && i < btf_vlen(type); i++)
		if (btf_var_secinfos(type)[i].type == (uint32_t)variable) {
			*offset = btf_var_secinfos(type)[i].offset;
			return 0;
		}
	return btf ? -ENOENT : section;
}

/* Sets *offset to that of a member, which may be in an unnamed part of the struct. */
static int find_offset(const struct btf *btf, uint32_t id, const char *name, uint32_t *offset)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	uint32_t inner;

	if (!type || !btf_is_composite(type))
		return -ENOENT;
	for (int i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *its = btf__name_by_offset(btf, member->name_off);
		uint32_t bits = btf_member_bit_offset(type, i);

		if (its && strcmp(its, name) == 0) {
			*offset = bits / 8;
			return bits % 8 ? -ENOENT : 0;
		}
		if (its && !*its && find_offset(btf, member->type, name, &inner) == 0) {
			*offset = bits / 8 + inner;
			return 0;
		}
	}
	return -ENOENT;
}

int kernel_member_offset(struct kernel_types *types, const char *type, const char *member,
			 uint32_t *offset)
{
	const struct btf *btf = read_types(types);
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT) : -errno;

	if (id <= 0)
		return btf ? -ENOENT : id;
	return find_offset(btf, id, member, offset);
}

static size_t mapped_size(const struct bpf_map *map)
{
	return whole_pages((size_t)bpf_map__max_entries(map) * bpf_map__value_size(map));
}

void *program_map(const struct bpf_map *map)
{
	void *memory = mmap(NULL, mapped_size(map), PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void program_unmap(const struct bpf_map *map, void *memory)
{
	if (memory)
		munmap(memory, mapped_size(map));
}
