// SPDX-License-Identifier: GPL-2.0-only
#include "capture/owner.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

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
