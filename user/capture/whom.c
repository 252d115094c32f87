// SPDX-License-Identifier: GPL-2.0-only
#include "capture/whom.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int whom_choose_map(const struct whom *whom, struct bpf_map *map)
{
	int err = bpf_map__set_autocreate(map, whom->group_count > 0);

	if (!err && whom->group_count)
		err = bpf_map__set_max_entries(map, whom->group_count);
	return err;
}

int whom_fill_map(const struct whom *whom, struct bpf_map *map)
{
	const uint8_t wanted = 1;
	int err = 0;

	for (size_t i = 0; i < whom->group_count && !err; i++)
		err = bpf_map_update_elem(bpf_map__fd(map), &whom->groups[i].id, &wanted, BPF_ANY);
	return err;
}

int whom_open_groups(struct whom *whom, const char *const *paths, size_t count, struct error *e)
{
	int err = 0;

	whom->groups = calloc(count, sizeof(*whom->groups));
	if (!whom->groups)
		return error_no_memory(e);
	for (size_t i = 0; i < count && !err; i++) {
		struct cgroup *group = &whom->groups[i];

		group->path = paths[i];
		err = cgroup_open(group, e);
		whom->group_count += !err;
		if (!err && cgroup_has_all(group)) {
			whom_close(whom);
			return 0;
		}
	}
	return err;
}

void whom_close(struct whom *whom)
{
	while (whom->group_count)
		close(whom->groups[--whom->group_count].fd);
	free(whom->groups);
	whom->groups = NULL;
}

int whom_cpu_ns(const struct whom *whom, uint64_t *ns)
{
	int err = whom->group_count ? 0 : -ENOENT;

	*ns = 0;
	for (size_t i = 0; i < whom->group_count && !err; i++) {
		uint64_t of_group = 0;

		err = cgroup_cpu_ns(&whom->groups[i], &of_group);
		*ns += of_group;
	}
	return err;
}

bool whom_is_gone(const struct whom *whom)
{
	for (size_t i = 0; i < whom->group_count; i++)
		if (!cgroup_is_gone(&whom->groups[i]))
			return false;
	return whom->group_count > 0;
}
