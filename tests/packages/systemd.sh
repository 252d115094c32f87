#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The packages under a real systemd and Debian's own kernel, in qemu without KVM: socket activation, restart,
# limits, journal; profil(2) of a user without privileges, with no other setting. systemd_guest.sh runs inside.
# It takes the packages that debian.sh has built, of PROFIL_TEST_SUITE (trixie): from build/roots/trixie-debs. On a machine
# with that release, `make deb` makes them, too: copy build/deb/*.deb. As root, with the network.
# Time limit: 7200 s

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/roots.sh
. "$top/tests/packages/roots.sh"

suite=${PROFIL_TEST_SUITE:-trixie}
root=$work/root
longest=5400 # seconds: ten times what it takes on an idle host

prepare() {
	make_root "$root" && mkdir "$root/debs" "$root/test" &&
		cp "$roots/$suite-debs/"{profiltool,libprofil1,libprofil-dev,profild-bin,profild,profil-continuous,profil-dkms}_"$version"[-~]*.deb "$root/debs" &&
		cp "$top/debian/tests/busy.c" "$top/tests/packages/systemd_guest.sh" "$top/user/daemon/profild.8" "$root/test" &&
		enter "$root" sh -ec '
			apt-get -q update
			apt-get -qy install systemd-sysv dbus udev procps kmod initramfs-tools gcc libc6-dev python3 curl \
				linux-image-amd64 linux-headers-amd64 /debs/*.deb
			cd /test
			gcc -O1 -fno-pie -no-pie -falign-functions=64 -DLIBPROFIL -o busy busy.c -lprofil
			gcc -O1 -g -static -falign-functions=64 -Wl,--build-id -o busy_static busy.c
			# The module stays: to build it would take long in there.
			apt-get -qy purge libprofil-dev libprofil1 profil-continuous profild profild-bin profiltool
			# It takes the lock of dpkg when the machine has run for a while.
			systemctl mask apt-daily.timer apt-daily-upgrade.timer
			rm /usr/sbin/policy-rc.d'
}

add_service() {
	cat >"$root/etc/systemd/system/profil-test.service" <<-'END'
		[Unit]
		Description=Tests of the packages of profil
		After=multi-user.target
		[Service]
		Type=oneshot
		ExecStart=/test/systemd_guest.sh
		ExecStopPost=systemctl --no-block poweroff
		StandardOutput=file:/dev/ttyS1
		StandardError=inherit
		TimeoutStartSec=infinity
	END
	ln -sf multi-user.target "$root/etc/systemd/system/default.target" &&
		mkdir -p "$root/etc/systemd/system/multi-user.target.wants" &&
		ln -sf ../profil-test.service "$root/etc/systemd/system/multi-user.target.wants/"
}

boot() {
	local end=$((SECONDS + longest))

	add_service && mkfs.ext4 -q -F -d "$root" -E root_owner=0:0 "$work/disk" 3G || return
	start qemu-system-x86_64 -accel tcg -cpu max -m 1536 -no-reboot -nodefaults -display none \
		-serial "file:$work/console" -serial "file:$work/results" -drive "file=$work/disk,if=virtio,format=raw" \
		-kernel "$root"/boot/vmlinuz-* -initrd "$root"/boot/initrd.img-* \
		-append "root=/dev/vda rw console=ttyS0 quiet panic=-1 cryptomgr.notests"
	while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do
		sleep 0.5
	done
	stop "$pid"
	sed -i 's/\r$//' "$work/results" # a serial line is a terminal
	grep -x 'end of the tests' "$work/results" && return
	tail -n 20 "$work/results" "$work/console"
	return 1
}

# row LINE: a line of TAP from inside.
row() {
	[[ $1 == ok* ]] && return
	sed -n "/^${1%% - *}/,/^ok/p" "$work/results"
	return 1
}

needs_roots "systemd"
if ! command -v qemu-system-x86_64 >/dev/null; then
	skip "systemd" "qemu is not installed (Debian: apt-get install qemu-system-x86)"
	finish
fi
if ! [ -e "$roots/$suite-debs" ]; then
	skip "systemd" "there are no packages of $suite: run tests/packages/debian.sh"
	finish
fi
check "$suite: a root with systemd, a kernel, and the module" prepare
check "$suite: it boots, and all tests have run" boot
while read -r line; do
	check "$suite: ${line#*- }" row "$line"
done < <(grep -E '^(not )?ok ' "$work/results")
grep '^#' "$work/results"
finish
