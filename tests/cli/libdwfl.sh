#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Stacks by call frame information are, frame by frame, those that libdwfl finds from the registers and the
# stack of the same tick (tests/unit/compare_stacks.c). No row is statistical: one different frame in one
# stack is a failure.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../postgres.sh
. "$top/tests/postgres.sh"

compare=$build/tests/unit/compare_stacks
if [ "$(id -u)" -ne 0 ] || ! [ -x "$compare" ]; then
	skip "stacks against libdwfl" "it takes root, and $compare"
	finish
fi
cd "$work" || exit 1

# compare NAME TICKS [ARGUMENT...]: of the process $pid, in one row.
compare() {
	local name=$1 ticks=$2 options=()
	shift 2
	while [[ ${1:-} == -* ]]; do
		options+=("$1" "$2")
		shift 2
	done
	check "$name: as libdwfl" compared "$name" "${options[@]}" "$pid" "$ticks" "$@"
	[ ! -s "$work/row" ] || cat "$work/row"
}

compared() {
	local name=$1 status
	shift
	"$compare" "$@" >"$work/compared"
	status=$?
	cat "$work/compared"
	awk -v name="$name" '$1 == "ticks" { printf "# %-24s %6d %8d %8d %6d %6d %9d\n", name, $2, $4,
		$6, $8, $10, $12 }' "$work/compared" >"$work/row"
	return "$status"
}

# run_compare NAME TICKS COMMAND... [-- ARGUMENT...]: of a command that runs until it is stopped.
run_compare() {
	local name=$1 ticks=$2 command=()
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	start "${command[@]}"
	wait_for has_used "$pid" 100
	compare "$name" "$ticks" "${@:2}"
	stop "$pid"
}

printf '# %-24s %6s %8s %8s %6s %6s %9s\n' program ticks complete finished same longer different

# --- C: every kind of frame ---

frames=(recurse use with_alloca with_variable_array with_realigned_array never_returns compare in_child
	with_child on_stack on_other_stack coroutine)
# build_frames NAME OPTION...
build_frames() {
	gcc -std=gnu11 -D_GNU_SOURCE -fomit-frame-pointer -fstack-protector-all "${@:2}" \
		"$top/tests/progs/frames.c" -pthread -o "$1"
}

check "C -O2: built" build_frames frames-O2 -O2
run_compare "C -O2" 1000 ./frames-O2 -- -c 99 "${frames[@]}" __vdso_clock_gettime
check "C -O0, CET: built" build_frames frames-O0 -O0 -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now
run_compare "C -O0, CET, static PLT" 500 ./frames-O0 -- -c 99 "${frames[@]}"

# --- The dynamic linker: each function is called for the first time again and again ---

printf 'int lazy%d(int n) { return n + 1; }\n' {1..100} >lazy_library.c
{
	cat <<'EOF_C'
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
EOF_C
	printf 'int lazy%d(int n);\n' {1..100}
	cat <<'EOF_C'
static void *unbound[512];

int main(void)
{
	size_t size = 0;
	char *slots = NULL;
	int sum = 0;

	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_PLTGOT)
			slots = (char *)d->d_un.d_ptr + 3 * sizeof(void *);
		else if (d->d_tag == DT_PLTRELSZ)
			size = d->d_un.d_val / sizeof(ElfW(Rela)) * sizeof(void *);
	memcpy(unbound, slots, size);
	for (;;) {
		memcpy(slots, unbound, size);
EOF_C
	printf '\t\tsum += lazy%d(sum);\n' {1..100}
	printf '\t}\n}\n'
} >lazy.c
build_lazy() {
	gcc -O2 -fPIC -shared lazy_library.c -o liblazy.so &&
		gcc -D_GNU_SOURCE -O2 -fplt lazy.c -Wl,-z,lazy -Wl,-rpath,"$work" -L. -llazy -o lazy
}
check "first calls: built" build_lazy
run_compare "first calls" 600 ./lazy -- -c 98 main ld-linux-x86-64.so.2

# --- C++: exceptions ---

cat >throws.cpp <<'EOF_CXX'
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

struct Guard {
	std::string text;
	explicit Guard(int n) : text(n % 40 + 20, 'x') {}
	~Guard() { asm volatile("" : : "r"(text.c_str())); }
};

__attribute__((noinline)) static int descend(int depth)
{
	Guard guard(depth);

	if (depth == 0)
		throw std::runtime_error(guard.text);
	return descend(depth - 1) + 1;
}

__attribute__((noinline)) static int catches(int depth)
{
	try {
		return descend(depth);
	} catch (const std::exception &e) {
		return e.what()[0];
	}
}

int main()
{
	std::map<std::string, std::shared_ptr<Guard>> all;
	unsigned int sum = 0;

	for (unsigned int i = 0;; i++) {
		sum += catches(i % 10);
		for (int k = 0; k < 20; k++)
			all[std::to_string(i * 7919 % 1000 + k)] = std::make_shared<Guard>(i + k + sum % 3);
	}
}
EOF_CXX
if command -v g++ >/dev/null; then
	check "C++: built" g++ -O2 throws.cpp -o throws
	run_compare "C++" 600 ./throws -- -c 98 libgcc_s.so.1 "$(basename "$(realpath "$(g++ -print-file-name=libstdc++.so.6)")")"
else
	skip "C++" "no g++"
fi

# --- What people have ---

run_compare "python3" 600 /usr/bin/python3 -c '
import json, re
while True:
	text = json.dumps({str(i): sorted(str(k) for k in range(i % 50)) for i in range(100)})
	re.sub("[0-9]+", lambda m: str(int(m[0]) + 1), text)'
# shellcheck disable=SC2016 # the variables are perl's
run_compare "perl" 600 perl -e '
while (1) {
	my @a = sort { $a <=> $b } map { $_ * 7919 % 1000 } 1 .. 500;
	my %h = map { $_ => "x" x ($_ % 10) } @a;
	my $s = join ",", map { "$_=$h{$_}" } sort keys %h;
	$s =~ s/(\d)(\d)/$2$1/g;
}'

for i in {1..2000}; do
	echo "struct s$i { int n; struct s$i *next; };
int f$i(struct s$i *s, int *a, int n)
{
	int sum = $i;
	for (int i = 0; i < n; i++)
		for (struct s$i *p = s; p; p = p->next)
			sum += p->n > i ? a[i] * p->n : a[(i + $i) % (n + 1)] / (p->n | 1);
	switch (sum & 7) {
	case 1: return f$i(s->next, a + 1, n - 1);
	case 2: a[0] = sum; break;
	case 5: a[n] ^= sum; /* fallthrough */
	default: sum = (sum << 3) - n;
	}
	return sum;
}"
done >large.c
run_compare "cc1 -O2" 600 "$(gcc -print-prog-name=cc1)" -quiet -O2 large.c -o /dev/null

if command -v gdb >/dev/null; then
	cat >gdb.commands <<'EOF_GDB'
set height 0
while 1
  info functions e
  info line main
  ptype main
end
EOF_GDB
	run_compare "gdb" 400 gdb -q -nx -batch -x gdb.commands ./frames-O2
else
	skip "gdb" "no gdb"
fi

if command -v openssl >/dev/null; then
	run_compare "openssl speed" 600 openssl speed -seconds 1 -bytes 4096 sha1 sha256 aes-128-cbc rsa2048 \
		ecdsap256 ecdhx25519
fi

# As many distributions start a server of their own when PostgreSQL is installed, it is not asked for.
if find_postgres && make_postgres; then
	start "${postmaster[@]}"
	postmaster_pid=$pid
	wait_for pgbench -i -q
	find_backend() {
		pid=$(pgrep -P "$postmaster_pid" -f 'test postgres \[local\]')
	}
	no_backend() {
		! find_backend
	}
	wait_for no_backend # of pgbench -i
	start pgbench -S -n -c 1 -T 600
	client=$pid
	# Not that of the connection that pgbench has first, and ends.
	busy_backend() {
		find_backend && [ "$(cpu_ms "$pid")" -ge 100 ]
	}
	if wait_for busy_backend; then
		compare "postgres" 500
	else
		check "postgres: has a backend" false
	fi
	stop "$client"
	kill -INT "$postmaster_pid"
	wait "$postmaster_pid" 2>/dev/null
else
	echo "# PostgreSQL is left out: it is not here, nor does PGBINDIR name its directory"
fi

# --- Rust ---

cat >rusty.rs <<'EOF_RUST'
use std::collections::{BTreeMap, HashMap};
use std::panic;

#[inline(never)]
fn descend(depth: u32, words: &[String]) -> usize {
    let own: Vec<String> = words.iter().map(|w| format!("{}{}", w, depth)).collect();
    if depth == 0 {
        panic!("at the end of {}", own.len());
    }
    descend(depth - 1, &own[1..]) + own.len()
}

#[inline(never)]
fn count(words: &[String]) -> usize {
    let mut sorted: Vec<&String> = words.iter().collect();
    sorted.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    let mut map = HashMap::new();
    for word in sorted {
        *map.entry(word.clone()).or_insert(0usize) += word.len();
    }
    let tree: BTreeMap<_, _> = map.into_iter().collect();
    tree.values().sum()
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let words: Vec<String> = (0..200).map(|i| format!("{:x}", i * 7919)).collect();
    let mut sum = 0;
    loop {
        sum += count(&words);
        sum += panic::catch_unwind(|| descend(5, &words[..20])).unwrap_or(1);
        if sum == 0 {
            return;
        }
    }
}
EOF_RUST
if command -v rustc >/dev/null; then
	check "Rust: built" rustc -O rusty.rs -o rusty
	run_compare "Rust" 600 ./rusty
else
	skip "Rust" "no rustc"
fi

# --- Go: by .debug_frame ---

cat >going.go <<'EOF_GO'
package main

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

//go:noinline
func descend(depth int, words []string) int {
	if depth == 0 {
		own := append([]string(nil), words...)
		sort.Slice(own, func(i, k int) bool { return own[i] > own[k] })
		return len(strings.Join(own, ","))
	}
	return descend(depth-1, words[1:]) + 1
}

type tree struct{ left, right *tree }

func plant(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{plant(depth - 1), plant(depth - 1)}
}

func work(results chan<- int) {
	words := []string{}
	start, sum := time.Now(), time.Duration(0)
	for i := 0; i < 200; i++ {
		words = append(words, fmt.Sprintf("%x", i*7919))
	}
	for {
		counts := map[string]int{}
		for _, word := range words {
			counts[word[:1]] += len(word)
		}
		plant(10) /* for the collector, which runs on the threads' own stacks */
		for i := 0; i < 100; i++ {
			sum += time.Since(start)
		}
		results <- descend(10, words) + len(counts)
	}
}

func main() {
	results := make(chan int)
	for i := 0; i < 4; i++ {
		go work(results)
	}
	for sum := 0; ; sum += <-results {
	}
}
EOF_GO
if command -v go >/dev/null; then
	check "Go: built" env HOME="$work" GOCACHE="$work/go-cache" GO111MODULE=off CGO_ENABLED=0 \
		go build -o going going.go
	run_compare "Go" 1000 ./going -- -c 99 -l 99 runtime.systemstack.abi0 runtime.nanotime1.abi0
else
	skip "Go" "no go"
fi

finish
