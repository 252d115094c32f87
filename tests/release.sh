#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a release is made of: the tarball, its notes, and objects that do not name the directory they were
# built in. tests/reproducible.sh builds the tarball twice, which takes minutes.

# shellcheck source=tests/lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/lib.sh"

version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
release=profil-$version
unset MAKEFLAGS MAKELEVEL BUILD SOURCE_DATE_EPOCH

# --- Objects ---

# unnamed FILE...: none contains the directory of the sources, or that of the build.
unnamed() {
	local file

	for file; do
		[ -s "$file" ] || { echo "$file is missing"; return 1; }
		! grep -aqF -e "$top/" -e "$build/" "$file" || { echo "$file names $top"; return 1; }
		! grep -aqzxF -e "$top" "$file" || { echo "$file names $top as a directory"; return 1; }
	done
}

built=("$build"/lib/lib*.so.1 "$build"/lib/lib*.a "$build"/lib/lib*-gmon.so "$build"/lib/profil/lib*
	"$build"/bpf/*.bpf.o "$profiltool")
[ ! -x "$build/profild" ] || built+=("$build/profild")
[ ! -d "$build/lib32" ] || built+=("$build"/lib32/lib*)
check "programs, libraries and BPF objects do not name the directory of the build" unnamed "${built[@]}"
printf '/usr/src\0%s\0' "$top" >"$work/named"
fails() {
	! "$@"
}
check "a file that does is noticed" fails unnamed "$work/named"

# --- Release notes ---

notes() {
	make -s -C "$1" release-notes
}
mkdir -p "$work/notes"
(cd "$top" && cp --parents Makefile tests/Makefile tests/lint.mk packaging/Makefile "$work/notes")
cat >"$work/notes/CHANGELOG.md" <<-END
	# Changelog

	## Unreleased

	- not yet

	## $version, 2020-02-29

	### Added

	- a first thing,
	  and more

	## ${version}0, 2020-02-28

	- another version
END
cat >"$work/notes/expected" <<-END
	profil $version, 2020-02-29

	Added

	- a first thing,
	  and more

END
same_notes() {
	notes "$work/notes" | diff "$work/notes/expected" -
}
check "the release notes are the version's part of CHANGELOG.md" same_notes
sed -i "s/^## $version,/## Unreleased/" "$work/notes/CHANGELOG.md"
check "a version that is not in it is an error" exits 2 notes "$work/notes"
check "with what is missing" says "CHANGELOG.md has no section \"## $version, DATE\""

# --- The tarball ---

check "no tarball can be packed from what is not a repository" exits 2 make -s -C "$work/notes" dist
check "with the reason" says "this is no git repository"

clone() {
	git clone -q --depth 1 "file://$top" "$work/$1"
}
if [ ! -e "$top/.git" ] || ! command -v git >/dev/null; then
	skip "tarballs" "this is no git repository, or git is not installed"
	finish
fi
# Only to clone: a repository may belong to another user than the tests' root.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
check "the repository is cloned" clone one
check "and again" clone another/directory

dist() {
	(umask "$2" && TZ=$3 exec make -s -C "$work/$1" dist)
}
check "a tarball is packed" exits 0 dist one 022 UTC
check "a commit without the version's tag is a snapshot" says "no tag v$version"
git -C "$work/another/directory" tag "v$version"
echo 'more' >>"$work/another/directory/README.md"
touch -d 2001-01-01 "$work"/another/directory/*
check "another is packed, from a changed tree" exits 0 dist another/directory 077 Asia/Tokyo
check "changes that are not committed are warned of" says "uncommitted changes are not in the tarball"
says_not() {
	! says "$1" >/dev/null
}
check "a tagged commit is the release" says_not "no tag"
tarball=$work/one/build/$release.tar.gz
check "both have the same bytes" cmp "$tarball" "$work/another/directory/build/$release.tar.gz"

same_files() {
	tar -tzf "$tarball" | grep -v '/$' | LC_ALL=C sort >"$work/packed"
	git -C "$work/one" ls-tree -r --name-only HEAD | sed "/^debian\//d; s|^|$release/|" | LC_ALL=C sort |
		diff - "$work/packed"
}
check "it has the files of the commit, but for debian, in a directory of its name" same_files
one_owner_and_time() {
	local found

	found=$(tar -tvzf "$tarball" --numeric-owner --utc --full-time | awk '{ print $2, $4, $5 }' | sort -u)
	[ "$found" = "0/0 $(TZ=UTC git -C "$work/one" log -1 --date=format-local:'%F %T' --format=%cd)" ] && return
	echo "$found"
	return 1
}
check "all are root's, of the time of the commit" one_owner_and_time
# Flags, without that of a name, and the time.
gzip_header() {
	[ "$(od -An -tu1 -j3 -N5 "$tarball" | tr -d ' ')" = 00000 ]
}
check "gzip's header has no name and no time" gzip_header
check "the tarball names its commit" test "$(gzip -dc "$tarball" | git get-tar-commit-id)" = \
	"$(git -C "$work/one" rev-parse HEAD)"

# --- What Debian's packages are called ---

# deb_version CLONE: the version and the commit's date that its packages get.
deb_version() {
	make -s -C "$work/$1" deb-version && dpkg-parsechangelog -l "$work/$1/build/deb/$release/debian/changelog" |
		sed -n 's/^\(Version\|Date\): //p'
}
if [ -e "$top/debian" ] && command -v dpkg-parsechangelog >/dev/null; then
	commit=$(TZ=UTC git -C "$work/one" log -1 --abbrev=12 --date=format-local:%Y%m%d --format=%cd.%h)
	date=$(TZ=UTC git -C "$work/one" log -1 --format=%cD)
	check "a package of a commit that is no release has its date and name" diff <(deb_version one) - \
		<<<"$version~git$commit-0upstream1"$'\n'"$date"
	check "which is a version below the release's" dpkg --compare-versions "$version~git$commit-0upstream1" lt "$version-0upstream1"
	check "it has what libprofil's other packages of that commit ask for" dpkg --compare-versions \
		"$version~git$commit-0upstream1" ge "$(sed -n 's/^ profil@Base //p' "$top/debian/libprofil1.symbols")"
	echo more >>"$work/one/README.md"
	check "not the same with a change" diff <(deb_version one | head -n 1) - <<<"$version~git$commit.changed-0upstream1"
	git -C "$work/one" checkout -q README.md
	check "one of the tagged commit has the release's" diff <(deb_version another/directory) \
		<(dpkg-parsechangelog -l "$top/debian/changelog" | sed -n 's/^\(Version\|Date\): //p')
else
	skip "versions of Debian's packages" "debian/ or dpkg-parsechangelog is missing"
fi

# --- What building needs ---

# lacks TEXT VARIABLE=VALUE...: make says so, and nothing else but that it ends.
lacks() {
	local text=$1
	shift
	exits 2 make -s --no-print-directory -C "$top" BUILD="$work/lacking" all "$@" && says "$text" &&
		[ "$(grep -c 'is missing' "$work/err")" -eq 1 ] && [ ! -s "$work/out" ]
}
check "without pkg-config, make says so, and how to get it" lacks \
	"nowhere/pkg-config is missing (Debian: apt-get install pkg-config)" PKG_CONFIG=nowhere/pkg-config
check "without bpftool" lacks "nowhere/bpftool is missing (Debian: apt-get install bpftool)" BPFTOOL=nowhere/bpftool
check "without clang" lacks "nowhere/clang is missing (Debian: apt-get install clang)" CLANG=nowhere/clang
check "without a compiler" lacks "nowhere/gcc is missing (Debian: apt-get install gcc)" CC=nowhere/gcc
mkdir "$work/libraries"
for library in libbpf libdw libelf zlib libprotobuf-c json-c ncursesw libcurl; do
	printf 'Name: %s\nDescription: a library\nVersion: 9\n' $library >"$work/libraries/$library.pc"
done
check "without a library" lacks "the library liblzma is missing (Debian: apt-get install liblzma-dev)" \
	PKG_CONFIG_LIBDIR="$work/libraries"
# All of these packages are those that tests/packages.sh installs.
named_packages() {
	make -s -n -C "$top" tools | grep -oE "'[^ ']+ [a-z0-9.+-]+'" | sed "s/.* //; s/'//" | sort >"$work/named"
	[ "$(wc -l <"$work/named")" -gt 10 ] || return
	sed -n '/^build="/,/"$/p' "$top/tests/packages.sh" | sed 's/build=//; s/"//g' | tr -s '\t ' '\n' | sort >"$work/installed"
	! comm -23 "$work/named" "$work/installed" | grep .
}
check "what make names is what make demo installs" named_packages
mkdir "$work/a directory"
(cd "$top" && cp --parents Makefile tests/Makefile tests/lint.mk packaging/Makefile "$work/a directory")
check "a directory whose name has a space is an error" exits 2 make -C "$work/a directory" all
check "which says so" says "make cannot build in a directory whose name has a space, \"$work/a directory\""

finish
