// SPDX-License-Identifier: GPL-2.0-only
#include "capture/owner.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "capture/program.h"

/* Whether a process is dumpable is said by a struct that its task points to; which one varies. */
static int find_dumpable(const struct btf *btf, const char *pointer, const char *type,
			 const char *member, struct member_owner *owner)
{
	int err = program_member_offset(btf, "task_struct", pointer, &owner->task_program);

	return err ? err : program_member_offset(btf, type, member, &owner->program_dumpable);
}

int owner_find(struct member_owner *owner, struct error *e)
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
	struct btf *btf = btf__load_vmlinux_btf();
	const char *type = "BTF", *member = "all types";
	int err = btf ? 0 : -errno;

	*owner = (struct member_owner){ .uid = getuid(), .gid = getgid() };
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted) && !err; i++) {
		type = wanted[i].type;
		member = wanted[i].member;
		err = program_member_offset(btf, type, member, wanted[i].offset);
	}
	for (size_t i = 0; i < sizeof(id_names) / sizeof(*id_names) && !err; i++) {
		uint32_t offset;

		type = "cred";
		member = id_names[i];
		err = program_member_offset(btf, type, member, &offset);
		if (!err && offset != owner->cred_ids + i * sizeof(uint32_t))
			err = -ENOENT;
	}
	if (!err && find_dumpable(btf, "exec_state", "task_exec_state", "dumpable", owner) != 0) {
		type = "mm_struct";
		member = "flags";
		err = find_dumpable(btf, "mm", type, member, owner);
	}
	btf__free(btf);
	if (!err)
		return 0;
	error_set_kind(e, ERROR_KERNEL_LACKS, -err,
		       "cannot tell whose a process is: the kernel's BTF lacks %s of %s", member,
		       type);
	error_hint(e, "it requires CONFIG_DEBUG_INFO_BTF; or let root record it");
	return err;
}
