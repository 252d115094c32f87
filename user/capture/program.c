// SPDX-License-Identifier: GPL-2.0-only
#include "capture/program.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/privilege.h"

/* libbpf's first complaint, for the error that follows it. Its callback carries no context. */
static __thread char libbpf_message[256];

static int keep_libbpf_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN && !libbpf_message[0]) { /* the first tells the cause */
		vsnprintf(libbpf_message, sizeof(libbpf_message), format, arguments);
		libbpf_message[strcspn(libbpf_message, "\n")] = '\0';
	}
	return 0;
}

static int load_error(struct error *e, int code)
{
	if (code == ENOMEM)
		return error_no_memory(e);
	if (code == EPERM) /* EACCES is the verifier's */
		return privilege_error(e, code, "cannot load the BPF program");
	error_set_kind(e, ERROR_KERNEL_LACKS, code, "cannot load the BPF program (%s)",
		       libbpf_message);
	error_mend(e, "it takes Linux 5.15 or later, with CONFIG_BPF_SYSCALL, CONFIG_PERF_EVENTS "
		      "and CONFIG_DEBUG_INFO_BTF");
	return -code;
}

int program_share_maps(struct bpf_object *object, struct bpf_object *first)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, object) {
		const char *name = bpf_map__name(map);
		const struct bpf_map *other = bpf_object__find_map_by_name(first, name);

		if (err || !other || strstr(name, ".rodata"))
			continue;
		err = bpf_map__autocreate(other) ? bpf_map__reuse_fd(map, bpf_map__fd(other))
						 : bpf_map__set_autocreate(map, false);
	}
	return err;
}

int program_fd(struct program *program, unsigned int generation, struct error *e)
{
	libbpf_print_fn_t before;
	int fd;

	if (program->fds[generation])
		return program->fds[generation];
	libbpf_message[0] = '\0';
	/* Put back afterwards: in libprofil, libbpf may be the host program's as well. */
	before = libbpf_set_print(keep_libbpf_message);
	fd = program->load(program, generation);
	libbpf_set_print(before);
	if (fd < 0)
		return load_error(e, -fd);
	program->fds[generation] = fd;
	return fd;
}
