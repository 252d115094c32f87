# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # shared variables: of lib.sh, and for scripts that source this
# A control group for a test. Source it after lib.sh.

groups=()

# mount_of TYPE OPTION: where such a hierarchy is mounted; without an option its name is the type's.
mount_of() {
	awk -v type="$1" -v option="$2" '$3 == type && "," $4 "," ~ "," option "," { print $2; exit }' \
		/proc/self/mounts
}

# make_control_group: makes $group in $place, the hierarchy that --cgroup is documented to take. Fails if it
# cannot. The groups in $groups are removed at the end, and what still runs in them is killed.
make_control_group() {
	place=$(mount_of cgroup perf_event)
	place=${place:-$(mount_of cgroup2 '.*')}
	group=
	[ -n "$place" ] && group=$(mktemp -d "$place/profil-test.XXXXXX" 2>/dev/null) || return
	groups=("$group")
	trap '[ "$BASHPID" = $$ ] && { remove_control_groups; cleanup; }' EXIT
}

# make_quota_group: makes $group where the controller cpu is, so that it can have a quota. Fails if it cannot.
make_quota_group() {
	place=$(mount_of cgroup cpu)
	place=${place:-$(mount_of cgroup2 '.*')}
	group=
	[ -n "$place" ] && group=$(mktemp -d "$place/profil-test.XXXXXX" 2>/dev/null) || return
	groups=("$group")
	trap '[ "$BASHPID" = $$ ] && { remove_control_groups; cleanup; }' EXIT
	[ -e "$group/cpu.cfs_quota_us" ] || [ -e "$group/cpu.max" ] && [ -e "$group/cpu.stat" ]
}

# set_quota GROUP QUOTA PERIOD: in microseconds.
set_quota() {
	if [ -e "$1/cpu.max" ]; then
		echo "$2 $3" >"$1/cpu.max"
	else
		echo "$3" >"$1/cpu.cfs_period_us" && echo "$2" >"$1/cpu.cfs_quota_us"
	fi
}

remove_control_groups() {
	local directory

	find "${groups[@]}" -depth -type d 2>/dev/null | while read -r directory; do
		xargs -r kill -KILL <"$directory/cgroup.procs" 2>/dev/null
		wait_for rmdir "$directory"
	done
}
