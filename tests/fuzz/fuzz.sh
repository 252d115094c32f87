#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Fuzzes every reader, with what our own writers make to begin with, and the layer before them.
# FUZZ_SECONDS for each (5), as many at once as there are CPUs. What a fuzzer finds stays in
# build/fuzz/found.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

fuzzers=$build/fuzz/tests/fuzz
found=$build/fuzz/found
seconds=${FUZZ_SECONDS:-5}
mkdir -p "$found"

# --- Seeds: a recording in every format, and by hand what no recording has ---

make_seeds() {
	local format

	start_ready "$progs/shares" 2 &&
		"$profiltool" -q -p "$pid" -F 99 -d 0.5 -o "$work/seed.pb.gz" >/dev/null || return
	stop "$pid"
	printf '%s\n' 'main;work;leaf 3' 'main;work 2' 'main;leaf 1' >"$work/stacks.folded"
	cat >"$work/calls.callgrind" <<-END
		# callgrind format
		version: 1
		creator: by hand
		pid: 12
		positions: instr line
		event: Ir : Instruction Fetches
		event: Sum = Ir + 2 Dr
		events: Ir Dr
		summary: 21 4
		ob=(1) /bin/a
		fl=(1) a.c
		fn=(1) main
		0x1000 5 1 1
		cob=(1)
		cfi=(1)
		cfn=(2) work
		calls=3 0x1010 9
		+4 +1 20 3
		jcnd=2/3 +2 -1
		+2 *
		jump=2 0x1000 5
		* * 2
		fi=(2) a.h
		+1 7 1
		fe=(1)
		fn=(2)
		0x1010 9 17 3
		totals: 21 4
	END
	for format in "${formats[@]}"; do
		mkdir -p "$work/seeds.$format"
		for seed in "$work"/seed.pb.gz "$work"/stacks.folded "$work"/calls.callgrind; do
			"$profiltool" convert -f "$format" "$seed" "$work/converted" 2>/dev/null
			# One file, or a directory of them
			find "$work/converted" -type f -size -64k 2>/dev/null | while IFS= read -r file; do
				zcat -f "$file" >"$work/seeds.$format/${seed##*/}.${file##*/}"
			done
			rm -rf "$work/converted"
		done
	done
	mkdir "$work/seeds.input"
	cp "$work"/seed.pb.gz "$work"/stacks.folded "$work"/calls.callgrind "$work/seeds.input"
	printf 'one\r\ntwo\n\nthree' | gzip >"$work/seeds.input/lines.gz"
}

seeded() {
	[ -n "$(ls -A "$work/seeds.$1")" ]
}

# fuzz NAME: whether the fuzzer ran for its time and found nothing.
fuzz() {
	mkdir "$work/corpus.$1"
	"$fuzzers/fuzz_$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		-artifact_prefix="$found/$1-" "$work/corpus.$1" "$work/seeds.$1" \
		>"$work/fuzz.$1" 2>&1
	echo $? >"$work/status.$1"
}

nothing_found() {
	[ "$(cat "$work/status.$1")" = 0 ] && grep -q "^Done [0-9]* runs" "$work/fuzz.$1" && return
	grep -vE "^#[0-9]+" "$work/fuzz.$1" | tail -n 40
	return 1
}

all=()
for fuzzer in "$fuzzers"/fuzz_*; do
	[[ $fuzzer != *.d ]] && all+=("${fuzzer##*/fuzz_}")
done
formats=("${all[@]/input/}")
read -ra formats <<<"${formats[*]}"

check "there are fuzzers" [ ${#formats[@]} -ge 6 ]
check "seeds are written" make_seeds
for name in "${formats[@]}"; do
	check "there is a seed for $name" seeded "$name"
done
running=0
for name in "${all[@]}"; do
	fuzz "$name" &
	running=$((running + 1))
	[ $running -lt "$(nproc)" ] || { wait -n && running=$((running - 1)); }
done
wait
for name in "${all[@]}"; do
	check "$name: $(grep -o '^Done [0-9]* runs' "$work/fuzz.$name") without a finding" \
		nothing_found "$name"
done
finish
