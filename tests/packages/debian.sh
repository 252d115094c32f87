#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Debian's packages: built by their own rules in roots of three releases, lintian is content, installed, tried by
# their autopkgtests on this machine's kernel, upgraded, removed and purged without a trace; the module is
# built by dkms for each release's kernel. As root, with the network: minutes for each release.
#
# PROFIL_TEST_SUITES="trixie" takes other releases; roots.sh has more such variables.
# Time limit: 7200 s

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/roots.sh
. "$top/tests/packages/roots.sh"

next=${version%.*}.$((${version##*.} + 1))
packages='profiltool libprofil1 libprofil-dev libprofil-gmon profild-bin profild profil-continuous profil-dkms'

# --- Building ---

# as_builder ROOT COMMAND: as a user without privileges, in the sources, which others may not enter, and in a PID
# namespace, where few processes are to be seen: as sbuild does.
as_builder() {
	enter "$1" unshare --pid --fork --kill-child sh -c 'mount -t proc proc /proc && exec "$@"' - \
		setpriv --reuid 1000 --regid 1000 --clear-groups sh -c "cd /src/profil-* && HOME=/nonexistent $2"
}

prepare_build() {
	local root=$roots/$suite-build

	if ! [ -e "$root/ready" ]; then
		make_root "$root" && enter "$root" sh -c '
			apt-get -q update && apt-get -qy install build-essential lintian &&
			useradd --uid 1000 builder' && touch "$root/ready" || return
	fi
	rm -rf "$root/src" && mkdir "$root/src" &&
		make -C "$top" --no-print-directory -s BUILD="$work/source" deb-source &&
		mv "$work/source/deb/"* "$root/src" &&
		tar -C "$root/src" --exclude="profil-$version/debian" -cJf "$root/src/profil_$version.orig.tar.xz" "profil-$version" &&
		chown -R 1000:1000 "$root/src" && chmod 700 "$root/src" &&
		enter "$root" sh -c 'apt-get -q update && cd /src/profil-* && apt-get -qy build-dep .'
}

# With its tests; the source package, too.
build_packages() {
	as_builder "$roots/$suite-build" \
		"DEB_BUILD_OPTIONS=parallel=$(nproc) dpkg-buildpackage -us -uc" >"$work/$suite.build" 2>&1 && return
	grep -A 10 -E '^not ok|[Ee]rror' "$work/$suite.build" | tail -n 30
	tail -n 10 "$work/$suite.build"
	return 1
}

# For another machine, in a root of its own: the libraries for both machines may not be installable together.
build_for_arm64() {
	local root=$roots/$suite-arm64

	make_root "$root" && cp -a "$roots/$suite-build/src" "$root" && rm -f "$root"/src/*.deb || return
	if ! enter "$root" sh -ec '
		dpkg --add-architecture arm64
		apt-get -q update
		apt-get -qy install build-essential crossbuild-essential-arm64
		useradd --uid 1000 builder
		cd /src/profil-*
		apt-get -qy build-dep -a arm64 -P nocheck .' >"$work/$suite.arm64" 2>&1 ||
		! as_builder "$root" "DEB_BUILD_OPTIONS='parallel=$(nproc) nocheck' \
			dpkg-buildpackage -us -uc -b -a arm64 -Pnocheck" >>"$work/$suite.arm64" 2>&1; then
		tail -n 20 "$work/$suite.arm64"
		return 1
	fi
	dpkg-deb -x "$root"/src/profiltool_*_arm64.deb "$work/arm64" &&
		readelf -h "$work/arm64/usr/bin/profiltool" | grep -w AArch64 || return
	rm -rf "$root"
}

# The next version, for upgrades, by `make deb`.
build_next() {
	local source=$roots/$suite-build/src/profil-$version

	sed -i "s/^VERSION := .*/VERSION := $next/" "$source/Makefile" &&
		sed -i "s/\(#define PROFIL_VERSION_PATCH\) .*/\1 ${next##*.}/" "$source/user/lib/profil.h" &&
		sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$next\"/" "$source/dkms.conf" &&
		sed -i "1s/(.*)/($next-0upstream1)/" "$source/debian/changelog" &&
		as_builder "$roots/$suite-build" \
			"DEB_BUILD_OPTIONS=nocheck make deb && mv build/deb/*.deb .." >"$work/$suite.next" 2>&1 && return
	tail -n 20 "$work/$suite.next"
	return 1
}

# Not about the packages: how old this lintian is, and overrides that only another one needs.
not_ours=newer-standards-version,unused-override,mismatched-override

lintian_is_content() {
	local tags=$not_ours

	# Of bookworm's lintian alone: later ones do not know the tag, and refuse overrides of it. The sandbox, the
	# user and the socket are systemd's; without it, profild(8) shows how root starts it by hand.
	[ "$suite" != bookworm ] || tags+=,package-supports-alternative-init-but-no-init.d-script
	# Of sid's alone: the same sources build on Debian 12, whose debhelper has 13, whose dpkg has other defaults,
	# and whose lintian refuses overrides of tags that it does not know.
	[ "$suite" != sid ] || tags+=,package-uses-old-debhelper-compat-version,redundant-priority-optional-field,redundant-rules-requires-root-no-field
	as_builder "$roots/$suite-build" "lintian -EIL +pedantic --suppress-tags $tags ../profil_${version}-*.changes" >"$work/$suite.lintian" 2>&1
	cat "$work/$suite.lintian"
	! grep -E '^[EWIPXC]: |^lintian: error|rror:' "$work/$suite.lintian"
}

is_hardened() {
	# The flags are in all commands that compile C for a package.
	! grep -E -- '-gcc .* -c user/.*\.c ' "$work/$suite.build" | grep -v -e -fstack-protector-strong -e ' -o build/tests/' &&
		! grep -E -- '-gcc .* -o build/(profiltool|profild|lib/.*)$' "$work/$suite.build" | grep -v -e '-z,now'
}

# --- A life in a root ---

# debs VERSION: prints the files of the packages, as the root of the tests has them.
debs() {
	local package

	for package in $packages; do
		(cd "$root" && ls "debs/${package}_$1"-*.deb) | sed 's|^|/|'
	done
}

# All that apt installs for them, but for them: what they bring is to be seen alone.
install_dependencies() {
	local needed

	# shellcheck disable=SC2046,SC2086 # words
	needed=$(enter "$root" apt-get -s install $(debs "$version") $tools |
		sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vxE "${packages// /|}") || return
	# shellcheck disable=SC2086 # words
	enter "$root" apt-get -qy install $needed
}

prepare_root() {
	# shellcheck disable=SC2016 # the variable of the inner shell
	rm -rf "$roots/$suite-debs" && mkdir "$roots/$suite-debs" && # for systemd.sh, too
		cp "$roots/$suite-build/src/"*.deb "$roots/$suite-debs" &&
		make_root "$root" && cp -r "$roots/$suite-debs" "$root/debs" &&
		cp -a "$roots/$suite-build/src/profil-$version" "$root/debs/source" &&
		enter "$root" apt-get -q update && install_dependencies &&
		# As a kernel's own package does.
		enter "$root" sh -c 'for kernel in /lib/modules/*; do depmod "${kernel##*/}"; done'
}

# Every file, but for what dpkg, apt and depmod note of all packages, and for caches and logs; and every user.
list_files() {
	(cd "$root" && find . -xdev \( -path ./debs -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache \
		-o -path ./var/log -o -path ./proc -o -path ./sys -o -path ./dev -o -path '*/lib/modules/*/modules.*' \) -prune -o \
		-printf '%y %m %u:%g %p -> %l\n' && cat etc/passwd etc/group) | sort
}

apt() {
	enter "$root" apt-get -qy "$@"
}

is_installed() {
	# shellcheck disable=SC2016,SC2086 # dpkg-query's variables; words
	enter "$root" dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' $packages |
		awk -v version="$1-0upstream1" '{ print } $2 != version || $3 != "installed" { wrong = 1 }
			END { exit wrong || NR != 8 }' || return
	enter "$root" sh -c 'profiltool --version; profild --version' | tee "$work/versions"
	[ "$(grep -c " $1\$" "$work/versions")" -eq 2 ]
}

# is_enabled UNIT...: these are enabled alone. The socket starts profild.service.
is_enabled() {
	(cd "$root/etc/systemd/system" && find . -name 'profil*' -printf '%f\n') | sort | tee "$work/enabled"
	printf '%s\n' "$@" | sort | cmp - "$work/enabled"
}

has_module() {
	enter "$root" dkms status | tee "$work/dkms"
	grep -E "^profil/$1, [^ ]+, x86_64: installed" "$work/dkms" && ! grep -v "/$1," "$work/dkms"
}

is_as_before() {
	list_files >"$work/after"
	diff "$work/before" "$work/after"
}

# autopkgtest's own way: it installs what debian/tests/control names.
autopkgtests() {
	# shellcheck disable=SC2046 # words
	enter "$root" autopkgtest --no-built-binaries $(debs "$version") /debs/source -- null >"$work/$suite.tests" 2>&1
	case $? in
	0 | 2) ;; # 2: a test was skipped
	*)
		grep -vE '^(Reading|Unpacking|Selecting|Preparing|Setting up)|^\(Reading' "$work/$suite.tests" | tail -n 30
		return 1
		;;
	esac
}

# test_passed NAME: in autopkgtest's summary.
test_passed() {
	grep -E "^$1 +PASS" "$work/$suite.tests" && return
	grep -E "^$1 " "$work/$suite.tests"
	return 1
}

# --- The tests ---

needs_roots "Debian's packages"
own_tests='profile unprivileged own-processes continuous' # debian/tests, but for module
tools='autopkgtest linux-headers-amd64 gcc libc6-dev pkgconf binutils'

for suite in ${PROFIL_TEST_SUITES:-bookworm trixie sid}; do
	root=$roots/$suite-test
	check "$suite: a root, and what building needs" prepare_build
	check "$suite: the packages are built, by a user without privileges, and make check passes" build_packages
	check "$suite: they are hardened" is_hardened
	check "$suite: lintian -EIL +pedantic is content" lintian_is_content
	check "$suite: the packages are built for arm64" build_for_arm64
	check "$suite: the next version is built" build_next

	check "$suite: a root, and all that the packages need" prepare_root
	list_files >"$work/before"
	# shellcheck disable=SC2046 # words
	check "$suite: installed" apt install $(debs "$version")
	check "$suite: all are installed and run" is_installed "$version"
	check "$suite: the socket and the recorder are enabled" is_enabled profild.socket profil-continuous.service
	check "$suite: dkms has built the module: $(cd "$root/lib/modules" && echo *)" has_module "$version"
	# shellcheck disable=SC2046 # words
	check "$suite: upgraded" apt install $(debs "$next")
	check "$suite: all are of the next version and run" is_installed "$next"
	check "$suite: both are still enabled" is_enabled profild.socket profil-continuous.service
	check "$suite: dkms has built the next module, and removed the other" has_module "$next"
	# shellcheck disable=SC2086 # words
	check "$suite: removed" apt remove $packages
	# shellcheck disable=SC2086 # words
	check "$suite: purged" enter "$root" dpkg --purge $packages
	check "$suite: no file and no user is left" is_as_before
	# shellcheck disable=SC2046 # words
	check "$suite: profil-continuous is installed alone" apt install $(packages='profild-bin profil-continuous' debs "$version")
	check "$suite: it does not bring the socket" is_enabled profil-continuous.service
	check "$suite: it is purged" enter "$root" dpkg --purge profil-continuous profild-bin
	# shellcheck disable=SC2046,SC2086 # words
	check "$suite: purged at once" eval "apt install $(debs "$version" | tr '\n' ' ') && apt purge $packages && is_as_before"

	check "$suite: autopkgtest" autopkgtests
	# "module" wants a machine of its own, which systemd.sh is.
	for name in $own_tests; do
		check "$suite: autopkgtest: $name" test_passed "$name"
	done
	sed -n 's/^autopkgtest.*summary/&/p; /^\('"${own_tests// /\\|}"'\|module\) /p' "$work/$suite.tests" | sed 's/^/# /'
	rm -rf "$root"
done

finish
