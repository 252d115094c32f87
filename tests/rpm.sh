#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 3600 s
# `make rpm`: what is in which package, what rpmlint says, and what is installed from them in an empty root
# works. Its programs run with the libraries of this system.

# shellcheck source=tests/lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/lib.sh"

version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
libdir=$(rpm --eval '%{_libdir}')
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

# `make test-reproducible` runs `make check` of the tarball.
check "the packages are built" \
	env -u MAKEFLAGS -u MAKELEVEL make -C "$top" BUILD="$work/build" RPMBUILD_FLAGS='--without check' rpm
packages=("$work"/build/rpm/RPMS/*/*.rpm)
sources=("$work"/build/rpm/SRPMS/*.src.rpm)
check "the source package too" test -s "${sources[0]}"

# --- What is in them ---

# "PACKAGE FILE" for each file, without licences, documentation and links by build ID, and without suffixes
# that depend on the distribution.
contents() {
	local package

	for package in "${packages[@]}"; do
		rpm -qlp "$package" | sed "s|^|$(rpm -qp --qf '%{NAME}' "$package") |"
	done | grep -vE ' (/usr/lib/\.build-id|/usr/share/(licenses|doc)/)' |
		sed -E 's|(/man[1-8]/.*\.[1-8])(profil)?(\.gz)?$|\1|; s|(bpf\.so)\.1$|\1|' | LC_ALL=C sort
}
manual() {
	local page

	for page in "${@:2}"; do
		echo "$1 /usr/share/man/man${page##*.}/${page#./}"
	done
}
expected() {
	cat <<-END
		libprofil $libdir/libprofil.so.1
		libprofil $libdir/profil
		libprofil $libdir/profil/libprofil-bpf.so
		libprofil-devel /usr/include/profil.h
		libprofil-devel $libdir/libprofil.so
		libprofil-devel $libdir/pkgconfig/profil.pc
		libprofil-gmon $libdir/libprofil-gmon.so
		libprofil-static $libdir/libprofil.a
		profil-continuous /etc/profil
		profil-continuous /etc/profil/continuous.conf
		profil-continuous /usr/lib/systemd/system/profil-continuous.service
		profild /usr/lib/systemd/system/profil-record.service
		profild /usr/lib/systemd/system/profil-record.socket
		profild /usr/lib/systemd/system/profild.service
		profild /usr/lib/systemd/system/profild.socket
		profild-bin $(rpm --eval '%{_sbindir}')/profild
		profiltool /usr/bin/profiltool
		profiltool /usr/share/bash-completion/completions/profiltool
		profiltool /usr/share/fish
		profiltool /usr/share/fish/vendor_completions.d
		profiltool /usr/share/fish/vendor_completions.d/profiltool.fish
		profiltool /usr/share/zsh
		profiltool /usr/share/zsh/site-functions
		profiltool /usr/share/zsh/site-functions/_profiltool
	END
	cd "$top/user/tool" && manual profiltool ./*.[1-8]
	cd "$top/user/lib" && manual libprofil-devel ./*.3 && manual libprofil-gmon ./*.7
	cd "$top/user/daemon" && manual profild-bin ./*.[1-8]
}
each_file_in_its_package() {
	contents >"$work/contents"
	expected | LC_ALL=C sort | diff - "$work/contents"
}
check "each file is in its package, and in no other" each_file_in_its_package
# of PACKAGE: its file
of() {
	printf '%s\n' "${packages[@]}" | grep "/$1-$version-"
}
requires() {
	rpm -qp --requires "$(of "$1")" | grep -qxE "$2"
}
check "libprofil-gmon needs libprofil" requires libprofil-gmon 'libprofil\.so\.1\(\)\(64bit\)'
check "libprofil-devel needs it" requires libprofil-devel "libprofil\(x86-64\) = $version-.*"
check "libprofil-static needs the header" requires libprofil-static "libprofil-devel\(x86-64\) = $version-.*"
each_has_its_licence() {
	local package

	# The others need libprofil, which has theirs.
	for package in profiltool libprofil profild-bin profild profil-continuous; do
		rpm -qp --licensefiles "$(of "$package")" | grep -q '/LICENSE$' || return
	done
}
check "packages have their licences" each_has_its_licence
rpmlint_is_content() {
	rpmlint -c "$top/packaging/rpmlint.toml" "${packages[@]}" "${sources[@]}" "$top/packaging/profil.spec" |
		tee "$work/rpmlint" | tail -n 1 | grep -q ' 0 errors, 0 warnings,' && return
	cat "$work/rpmlint"
	return 1
}
check "rpmlint has nothing to say" rpmlint_is_content

# --- Installed in an empty root ---

root=$work/root
if [ "$(id -u)" -ne 0 ]; then
	skip "installation" "it needs root"
	finish
fi
mkdir "$root" "$work/merged" "$work/copy"
check "they are installed in an empty root" rpm -i --root "$root" --nodeps --noscripts "${packages[@]}"
check "and verified" rpm -V --root "$root" --nodeps --noscripts profiltool libprofil libprofil-devel \
	libprofil-gmon libprofil-static profild-bin profild profil-continuous

# inside COMMAND...: runs it where the root's files lie over this system's, which may not be of the same file
# system. $work/shared is /mnt there.
mkdir "$work/shared"
inside() {
	# shellcheck disable=SC2016 # expanded there
	"${pdeathsig[@]}" unshare --mount sh -euc '
		merged=$1/merged
		mount -t tmpfs tmpfs "$1/copy"
		cp -a "$1/root/." "$1/copy"
		mount -t overlay overlay -o "lowerdir=$1/copy:/" "$merged"
		for directory in proc sys dev; do mount --rbind "/$directory" "$merged/$directory"; done
		mount --bind "$1/shared" "$merged/mnt"
		directory=$2
		shift 2
		exec env LD_LIBRARY_PATH="$directory" PKG_CONFIG_PATH="$directory/pkgconfig" TMPDIR=/mnt \
			chroot "$merged" "$@"' - "$work" "$libdir" "$@"
}
prints() {
	"${@:2}" >"$work/out" && grep -qF -- "$1" "$work/out" && return
	cat "$work/out"
	return 1
}
check "profiltool runs there" prints "profiltool $version" inside profiltool --version
check "profild runs there" prints "profild $version" inside profild --version
cp "$progs/shares" "$progs/run_legacy" "$work/shared"
check "a program runs" start_ready "$progs/shares" 3
check "it is recorded" inside profiltool record -p "$pid" -F 999 -d 0.5 -g -q -o /mnt/out.pb.gz
check "its functions are found" prints burn_sixty inside profiltool report /mnt/out.pb.gz

cat >"$work/shared/use.c" <<-END
	#include <profil.h>
	#include <stdio.h>
	int main(void)
	{
		static unsigned short cells[64];

		if (profil(cells, sizeof(cells), 0, 65536) || profil(NULL, 0, 0, 0))
			return 1;
		printf("version %d\n", profil_version() == PROFIL_VERSION_NUMBER(PROFIL_VERSION_MAJOR,
			PROFIL_VERSION_MINOR, PROFIL_VERSION_PATCH));
	}
END
# shellcheck disable=SC2016 # expanded there
check "a program is built with libprofil-devel" inside sh -c \
	'cc /mnt/use.c -o /mnt/use $(pkg-config --cflags --libs profil)'
# shellcheck disable=SC2016
check "and with libprofil-static" inside sh -c \
	'cc -static /mnt/use.c -o /mnt/use.static $(pkg-config --cflags --libs --static profil)'

# counts OPTION...: an old program gets profil() from the installed library, which counts.
counts() {
	inside profiltool run "$@" -- /mnt/run_legacy >"$work/out" && cat "$work/out" &&
		grep -qx "profil $libdir/libprofil.so.1" "$work/out" && grep -qx 'counts [1-9][0-9]*' "$work/out"
}
check "profiltool run finds libprofil, and that its eBPF module" counts --backend bpf
start inside profild --socket /mnt/socket
serves() {
	[ -S "$work/shared/socket" ]
}
check "profild serves" wait_for serves
for program in use use.static; do
	check "$program counts by it" prints "version 1" inside env PROFIL_SOCKET=/mnt/socket "/mnt/$program"
done
check "so does an old program" counts --backend daemon --socket /mnt/socket
stop "$pid"

check "all are removed" rpm -e --root "$root" --noscripts profiltool libprofil libprofil-devel \
	libprofil-gmon libprofil-static profild-bin profild profil-continuous
nothing_left() {
	! (cd "$root" && find . -path '*profil*') | grep .
}
check "nothing is left" nothing_left

finish
