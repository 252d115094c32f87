# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh sets some, and some is for those who source it
# Fetches Debian's packages for the tests of kernels. Source it after lib.sh. Nothing is installed: packages
# are unpacked below $kernels, where a later run finds them.

kernels=$build/kernels

# newest REGEX: prints the newest package with a matching name in apt's lists.
newest() {
	apt-cache search --names-only "^$1\$" | cut -d' ' -f1 | sort -V | tail -n 1
}

# fetch PACKAGE...: into $work.
fetch() {
	(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$@") >"$work/fetch.out" 2>&1
}

# unpack PACKAGE DIRECTORY [TAR-OPTION...]: unpacks a fetched package.
unpack() {
	local package=$1 directory=$2
	shift 2
	dpkg-deb --fsys-tarfile "$work/$package"_*.deb | tar -x -C "$directory" "$@"
}

# headers_of RELEASE: the packages that a module for it is built with.
headers_of() {
	echo "linux-headers-$1"
	apt-cache depends "linux-headers-$1" |
		sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p'
}

# fetch_headers PACKAGE...: those of headers_of. What runs here is of this machine, whatever apt is for.
fetch_headers() {
	local package

	for package; do
		case $package in
		linux-kbuild-*) (unset APT_CONFIG && fetch "$package") || return ;;
		*) fetch "$package" || return ;;
		esac
	done
}

# get_release RELEASE DIRECTORY: fetches a kernel and its headers, and changes the paths in these to
# their final directory.
get_release() {
	local release=$1 directory=$2 part=$2.part headers package

	headers=$(headers_of "$release")
	rm -rf "$part"
	# shellcheck disable=SC2086 # a list of words
	mkdir -p "$part" && fetch "linux-image-$release" && fetch_headers $headers || return
	# Of its first files; what follows, the modules, would only take time.
	dpkg-deb --fsys-tarfile "$work/linux-image-$release"_*.deb 2>/dev/null | head -c 64M |
		tar -x -C "$part" --wildcards './boot/vmlinuz-*' 2>/dev/null
	[ -s "$part/boot/vmlinuz-$release" ] || return
	for package in $headers; do
		unpack "$package" "$part" || return
	done
	sed -i "s|/usr/src|$directory/usr/src|" "$part/usr/src/linux-headers-$release/Makefile" &&
		rm "$work"/*.deb && mv "$part" "$directory"
}

# unpack_kernel FILE: makes FILE.unpacked of a kernel of x86 that is compressed by xz. qemu starts that, too, and the emulated
# CPU, which takes eight seconds for it, does not unpack it. The fields of the header: Linux's arch/x86/boot.rst.
unpack_kernel() {
	local start length

	start=$((($(od -An -tu1 -j 0x1f1 -N 1 "$1") + 1) * 512 + $(od -An -tu4 -j 0x248 -N 4 "$1")))
	length=$(od -An -tu4 -j 0x24c -N 4 "$1")
	# The last four bytes say how much that becomes.
	tail -c +$((start + 1)) "$1" | head -c $((length - 4)) | xz -dc >"$1.unpacked" && return
	rm "$1.unpacked"
	return 1
}

# taking_turns COMMAND...: two tests may want the same kernel at the same time.
taking_turns() {
	local lock code

	exec {lock}>"$kernels/lock"
	flock "$lock"
	"$@"
	code=$?
	exec {lock}>&-
	return $code
}

# get_kernel SERIES [FLAVOUR]: sets $kernel to the file to boot, and $headers to the directory that a module is
# built with; $why, when there is none. One that an earlier run has fetched will do when the
# archive cannot be reached.
get_kernel() {
	taking_turns find_kernel "$@"
}

find_kernel() {
	local flavour=${2:-amd64} release old

	release=$(newest "linux-image-${1//./\\.}\.[0-9.]+[-+][a-z0-9.]+-$flavour")
	release=${release#linux-image-}
	old=$(find "$kernels" -maxdepth 1 -name "$1.*-$flavour" -printf '%f\n' | sort -V | tail -n 1)
	if [ -n "$release" ] && [ "$release" != "$old" ]; then
		if get_release "$release" "$kernels/$release"; then
			[ -z "$old" ] || rm -r "${kernels:?}/$old"
			old=$release
		fi
	fi
	kernel=$kernels/$old/boot/vmlinuz-$old
	if [ -s "$kernel.unpacked" ] || unpack_kernel "$kernel" 2>/dev/null; then
		kernel=$kernel.unpacked
	fi
	headers=$kernels/$old/usr/src/linux-headers-$old
	[ -n "$old" ] && return
	why="apt offers no kernel $1${release:+: $(tail -n 1 "$work/fetch.out")}"
	return 1
}

# get_checkpatch: sets $checkpatch to the newest that there is; it is in the kernel's sources alone.
get_checkpatch() {
	taking_turns find_checkpatch
}

find_checkpatch() {
	local package

	checkpatch=$kernels/checkpatch/scripts/checkpatch.pl
	[ -s "$checkpatch" ] && return
	package=$(newest 'linux-source-[0-9.]+')
	why="apt offers no linux-source"
	[ -n "$package" ] && fetch "$package" && mkdir -p "$kernels/checkpatch" || return
	unpack "$package" "$work" --wildcards "*/$package.tar.xz" || return
	last_blocks "$work/usr/src/$package.tar.xz" | unpack_checkpatch 2>/dev/null
	[ -s "$checkpatch" ] || unpack_checkpatch -J <"$work/usr/src/$package.tar.xz" &&
		rm -r "$work"/*.deb "${work:?}/usr"
}

# unpack_checkpatch [TAR-OPTION]: with what it reads, of the sources on standard input.
unpack_checkpatch() {
	tar -x "$@" -C "$kernels/checkpatch" --strip-components 1 \
		--wildcards "*/scripts/"{checkpatch.pl,spelling.txt,const_structs.checkpatch}
}

# last_blocks FILE: what the last of 62 blocks of the sources hold, scripts/ among it. To unpack all of them
# takes ten times as long. A block needs none of those before it, but the header of the file.
last_blocks() {
	local offset

	offset=$(xz --robot --list -vv "$1" | awk '$1 == "block" { print $5 }' | tail -n 8 | head -n 1)
	{ head -c 12 "$1" && tail -c +$((offset + 1)) "$1"; } | xz -dc 2>/dev/null
}

# build_module HEADERS DIRECTORY OPTION...: builds profil.ko by `make kmod`, in DIRECTORY/kmod.
build_module() {
	local headers=$1 directory=$2
	shift 2
	env -u MAKEFLAGS -u MAKELEVEL make -C "$top" kmod KDIR="$headers" BUILD="$directory" "$@"
}

# build_without_warning HEADERS DIRECTORY OPTION...: the same, from nothing and at W=1, where there is no warning
# but that of another compiler's name.
build_without_warning() {
	rm -rf "$2"
	build_module "$@" W=1 >"$2.out" 2>&1
	[ -s "$2/kmod/profil.ko" ] && ! grep -v 'the compiler differs' "$2.out" | grep -qE 'warning|error' && return
	cat "$2.out"
	return 1
}

mkdir -p "$kernels"

# get_archive_kernel NAME ARCHIVE SUITE PACKAGE: the same for the newest kernel whose package, in a suite of an archive, has a
# name like this regular expression, without headers. Needs curl.
get_archive_kernel() {
	taking_turns find_archive_kernel "$@"
}

find_archive_kernel() {
	local archive=$2 directory=$kernels/$1 list=$work/packages path sum

	why="$archive offers no kernel $1"
	if curl -sf "$archive/dists/$3/main/binary-amd64/Packages.xz" | xz -dc >"$list"; then
		read -r path sum < <(awk -v name="$4" '
			/^Package: / { on = $2 ~ "^" name "$"; path = "" }
			on && /^Filename: / { path = $2 }
			on && /^SHA256: / { print path, $2 }' "$list" | sort -V | tail -n 1)
		if [ -n "$path" ] && [ ! -e "$directory/${path##*/}" ]; then
			rm -rf "$directory" && mkdir -p "$directory" &&
				curl -sf "$archive/$path" -o "$directory/part" &&
				sha256sum --quiet -c - <<<"$sum  $directory/part" &&
				dpkg-deb --fsys-tarfile "$directory/part" |
				tar -x -C "$directory" --transform 's|.*/||' --wildcards '*/vmlinuz*' &&
				rm "$directory/part" && : >"$directory/${path##*/}"
		fi
	fi
	kernel=$(find "$directory" -name 'vmlinuz*' 2>/dev/null)
	[ -n "$kernel" ]
}
