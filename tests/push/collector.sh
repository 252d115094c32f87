#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# collector.sh DIRECTORY: makes DIRECTORY/collector, of collector.go, and DIRECTORY/proto, the definitions of OTLP's
# messages, from packages of Debian sid. Does nothing if they are there already. Nothing is installed: the packages,
# 140 MB, are unpacked in a temporary directory. The compiler takes 40 seconds of CPU.
#
# PROFIL_TEST_MIRROR is where the packages come from.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
directory=$1
mirror=${PROFIL_TEST_MIRROR:-http://deb.debian.org/debian}

# Packages that others depend on, but of which nothing is compiled: half of all bytes.
unused='cloudflare-circl|golang-x-(tools_|image)|aws-sdk|golang-google-(cloud|api)|gonum-v1-plot|mongo|apache-arrow'

# use_sid DIRECTORY: makes apt work on sid's packages, without any that are installed.
use_sid() {
	mkdir -p "$1/lists/partial" "$1/archives/partial" "$1/none"
	touch "$1/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$1/sources.list"
	# A mirror may be a snapshot.
	cat >"$1/apt.conf" <<-END
		Dir::Etc::sourcelist "$1/sources.list";
		Dir::Etc::sourceparts "$1/none";
		Dir::Etc::parts "$1/none";
		Dir::State::Lists "$1/lists";
		Dir::State::status "$1/status";
		Dir::Cache "$1";
		APT::Architectures { "$(dpkg --print-architecture)"; };
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Check-Valid-Until "false";
	END
	export APT_CONFIG=$1/apt.conf
	apt-get -qq update
}

# wanted: prints the names of the packages to unpack.
wanted() {
	apt-get install --print-uris -qq -y golang-opentelemetry-collector-dev golang-go |
		awk '{ print $2 }' | grep '^golang-' | grep -vE "$unused" | cut -d_ -f1
	echo opentelemetry-proto
}

build() {
	local part=$1 go

	mkdir -p "$part/debs" "$part/root" "$part/main"
	use_sid "$part/apt"
	# shellcheck disable=SC2046 # a list of words
	(cd "$part/debs" && apt-get -qq download $(wanted))
	for package in "$part"/debs/*.deb; do
		dpkg-deb -x "$package" "$part/root"
	done
	go=$(echo "$part"/root/usr/lib/go-*/bin/go)
	cp "$here/collector.go" "$part/main/main.go"
	(
		cd "$part/main"
		export GO111MODULE=off GOPATH=$part/root/usr/share/gocode GOROOT=${go%/bin/go} GOTOOLCHAIN=local
		export GOCACHE=$part/cache GOFLAGS=-buildvcs=false CGO_ENABLED=0 HOME=$part
		# It compiles faster without optimization and lines, and with fewer collections of garbage.
		GOGC=400 "$go" build -gcflags='all=-N -l -dwarf=false' -ldflags='-s -w' -o ../collector .
	)
	mv "$part/root/usr/include" "$part/proto"
}

mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
exec 9>"$directory/lock"
flock 9
[ ! "$directory/collector" -nt "$here/collector.go" ] || exit 0
part=$directory/part
rm -rf "$part"
trap 'chmod -R u+w "$part" 2>/dev/null; rm -rf "$part"' EXIT
build "$part"
rm -rf "$directory/proto"
mv "$part/proto" "$directory/proto"
mv "$part/collector" "$directory/collector"
