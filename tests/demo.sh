#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# demo.sh PROFILTOOL: profiles a running program that nobody here wrote, Debian's perl, by its PID.

set -eu
profiltool=$1
work=$(mktemp -d)
pid=""
cleanup() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

# Counts words for ever: hashes, sorting and regular expressions.
perl -e 'while (1) {
	my %count;
	$count{$_ * 7 % 1013}++ for 1 .. 20000;
	my $text = join " ", sort { $count{$a} <=> $count{$b} } keys %count;
	1 while $text =~ /\b(\d)\d*\1\b/g;
}' &
pid=$!

run() {
	printf '\n$ %s\n' "$*" | sed "s|$profiltool|profiltool|; s|$work/||"
	"$@"
}

echo "A perl program runs as process $pid. Where does it spend its CPU time?"
run "$profiltool" -p "$pid" -F 999 -d 3 -E 10 -o "$work/perl.pb.gz"
printf '\nThe profile is a file that go tool pprof and our own commands read:\n'
run "$profiltool" report -E 3 "$work/perl.pb.gz"
printf '\nNow a program of yours: profiltool -p PID   (%s; or: make install)\n' "$profiltool"
printf 'Problems solved with it, step by step: man -l user/tool/profil-tutorial.7\n'
