#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# demo.sh PROFILTOOL: profiles a small service while it runs: a shop in Python, and its service of prices in C.

set -eu
profiltool=$1
sources=${0%/*}
work=$(mktemp -d)
page=${profiltool%/*}/demo.html
pids=() # the last first

# Ends who asks before who answers: else the shop would print that nobody did.
stop() {
	local pid

	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	pids=()
}

cleanup() {
	stop
	rm -rf "$work"
}
trap cleanup EXIT

say() {
	printf '\n--- %s ---\n' "$*"
}

run() {
	printf '$ %s\n' "$*" | sed "s|$profiltool|profiltool|; s|$work/||g"
	"$@"
}

# start NAME COMMAND...: starts a process of the service, and waits for the socket $work/NAME.
start() {
	local name=$1

	shift
	rm -f "$work/$name"
	"$@" &
	pids=($! "${pids[@]}")
	until [ -S "$work/$name" ]; do
		kill -0 $! || exit 1
		sleep 0.05
	done
}

# serve PRICES: the service, with this build of its prices.
serve() {
	start prices.socket "$1" "$work/prices.socket"
	prices=$!
	start shop.socket python3 "$sources/shop.py" "$work/shop.socket" "$work/prices.socket"
	shop=$!
	python3 "$sources/customers.py" "$work/shop.socket" &
	pids=($! "${pids[@]}")
}

gcc -O2 -g -fno-inline -pthread -o "$work/prices" "$sources/prices.c" -lm
gcc -O2 -g -fno-inline -pthread -DDISCOUNT_STEPS=15000 -o "$work/prices.new" "$sources/prices.c" -lm

serve "$work/prices"
say "A shop runs: Python (PID $shop), and C for its prices (PID $prices). Where is its CPU time spent?"
run "$profiltool" -p "$prices,$shop" -F 999 -d 4 -E 12

say "Most requests take 2 ms, some 50. Why? Record the shop and its prices with their waits"
run "$profiltool" record -q --chains -F 999 -p "$shop,$prices" -d 8 -E 1 -o "$work/shop.pb.gz" >"$work/table"
run "$profiltool" why -q -p "$shop" "$work/shop.pb.gz" -E 3
stop

say "Other prices are installed. What became slower?"
mv "$work/prices.new" "$work/prices"
serve "$work/prices"
run "$profiltool" record -q --chains -F 999 -p "$shop,$prices" -d 8 -E 1 -o "$work/new.pb.gz" >"$work/table"
run "$profiltool" diff -q -E 6 "$work/shop.pb.gz" "$work/new.pb.gz"

say "All of it as a page: over time, as a flame graph, with the states of each thread"
run "$profiltool" web -q "$work/new.pb.gz" -o "$page"
echo "Open it: $page"

say "Now a program of yours: $profiltool -p PID, or after make install: profiltool -p PID"
echo 'Problems solved with it, step by step: man -l user/tool/profil-tutorial.7'
