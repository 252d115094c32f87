#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Fuzzes every reader, with seeds from our own writers, and the layer before them; the sources of names, with
# seeds from compilers; and both sides of profild's protocol. Each runs for a second, as `make quick-fuzzers`
# built it; or, as `make fuzz` does, for FUZZ_SECONDS, with optimization. In parallel on all CPUs. Inputs that
# fail are kept in build/fuzz/found.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

found=$build/fuzz/found
seconds=${FUZZ_SECONDS:-1}
# -timeout limits the wall time of one input, during which a busy machine may not run it. Without FUZZ_SECONDS
# the CPU time of all is limited as well.
if [ -n "${FUZZ_SECONDS:-}" ]; then
	fuzzers=$build/fuzz/tests/fuzz
	timeout=10
	cpu_limit=unlimited
else
	fuzzers=$build/fuzz/quick/tests/fuzz
	timeout=100
	cpu_limit=$((seconds + 10))
fi
mkdir -p "$found"

# --- Seeds: a recording in every format, and by hand what no recording has ---

make_seeds() {
	local format

	start_ready "$progs/shares" 2 &&
		"$profiltool" -q -p "$pid" -F 99 -d 0.5 -o "$work/seed.pb.gz" >/dev/null &&
		"$profiltool" record --wall -q -p "$pid" -d 0.5 -o "$work/waits.pb.gz" >/dev/null || return
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
		for seed in "$work"/seed.pb.gz "$work"/waits.pb.gz "$work"/stacks.folded "$work"/calls.callgrind; do
			"$profiltool" convert -f "$format" "$seed" "$work/converted" 2>/dev/null
			# One file, or a directory of them
			find "$work/converted" -type f -size -64k 2>/dev/null | while IFS= read -r file; do
				zcat -f "$file" >"$work/seeds.$format/${seed##*/}.${file##*/}"
			done
			rm -rf "$work/converted"
		done
	done
	# These two are only read.
	python3 "$top/tests/cli/perf.py" make "$work/seeds.perf" 2000000007 || return
	rm "$work/seeds.perf/many-mappings.perf.data"
	for format in times no-times ended; do
		python3 "$top/tests/cli/perf.py" script "$format" >"$work/seeds.perf-script/$format.txt" || return
	done
	mkdir "$work/seeds.input"
	cp "$work"/seed.pb.gz "$work"/waits.pb.gz "$work"/stacks.folded "$work"/calls.callgrind "$work/seeds.input"
	printf 'one\r\ntwo\n\nthree' | gzip >"$work/seeds.input/lines.gz"
	mkdir "$work/seeds.metric"
	printf '%s\n' '# of web' '1795132800 5' '2026-11-20T02:00:30Z,7' '1795132860500; 3' >"$work/seeds.metric/lines"
	printf '%s\n' 'requests{job="a \"}b"} 5 1795132800000' 'requests{job="a \"}b"} 9 1795132860000' \
		'up NaN 1795132800000' >"$work/seeds.metric/prometheus"
	printf '%s' '{"data": {"result": [{"metric": {"job": "a"}, "values": [[1795132800, "5"], [1795132860.5, "9"]]}]}}' \
		>"$work/seeds.metric/query_range.json"
}

# compile NAME OPTION...: a small program as a seed for elf and dwarf.
compile() {
	local name=$1
	shift
	gcc -O1 -nostdlib -static -Wl,-N,-Ttext=0x401000,--build-id "$@" "$work/small.c" \
		-o "$work/$name" && cp "$work/$name" "$work/seeds.elf" &&
		cp "$work/$name" "$work/seeds.dwarf"
}

make_symbol_seeds() {
	local version at

	mkdir -p "$work/seeds.elf" "$work/seeds.dwarf"
	cat >"$work/small.c" <<-'END'
		volatile int sum;
		static inline __attribute__((always_inline)) int twice(int x) { return sum * x; }
		__attribute__((noinline)) int work(int n)
		{
			for (int i = 0; i < n; i++)
				sum += twice(i) + twice(n);
			return sum;
		}
		__attribute__((noinline, cold)) int other(int n) { return twice(work(n)); }
		void _start(void) { work(3); other(4); }
	END
	for version in 3 4 5; do
		compile "dwarf-$version" -g "-gdwarf-$version" || return
	done
	compile sections -g -ffunction-sections || return
	compile frame -g -fno-asynchronous-unwind-tables || return
	readelf -SW "$work/frame" | grep -q debug_frame || return
	compile packed -g -gz=zlib || return
	compile packed-old -g -gz=zlib-gnu || return
	compile wide -g -gdwarf64 || return
	compile types -g -gdwarf-5 -fdebug-types-section || return
	compile split -g -gdwarf-5 -gsplit-dwarf || return
	compile bits32 -g -m32 || return
	cp "$work/dwarf-5" "$work/seeds.dwarf/zstd" &&
		python3 "$top/tests/cli/lines.py" zstd "$work/seeds.dwarf/zstd" || return
	nm "$work/packed" >/dev/null && strip -o "$work/stripped" "$work/dwarf-5" &&
		objcopy --only-keep-debug "$work/dwarf-5" "$work/mini" && strip -g "$work/mini" &&
		xz "$work/mini" && objcopy --add-section .gnu_debugdata="$work/mini.xz" \
		"$work/stripped" "$work/seeds.elf/stripped" || return
	for version in 2 16 18 20 26 27; do
		gcc -nostdlib -static -Wl,-N,-Ttext=0x401000 "-DLAYOUT=$version" -o "$work/seeds.elf/go-$version" \
			"$top/tests/progs/go_table.S" && cp "$work/seeds.elf/go-$version" "$work/seeds.dwarf" || return
	done
	gcc -nostdlib -shared -s -Wl,-Ttext=0x1000 -DLAYOUT=27 -o "$work/seeds.elf/go-shared" \
		"$top/tests/progs/go_table.S" && cp "$work/seeds.elf/go-shared" "$work/seeds.dwarf" || return
	echo 'int far(int); int near(int x) { return far(x) + far(2); }' >"$work/stubs.c"
	gcc -O1 -nostdlib -shared -fPIC -Wl,-z,noseparate-code,-Ttext=0x1000 "$work/stubs.c" \
		-o "$work/seeds.elf/stubs" || return
	mkdir -p "$work/seeds.cfi" && cp "$work"/seeds.elf/* "$work/seeds.cfi" || return
	# A program that begins where the last function with call frame information ends.
	gcc -nostdlib -static -o "$work/seeds.cfi/entry" -x assembler - <<-'END' || return
		.globl _start
		.cfi_startproc
		nop
		.cfi_endproc
		_start: jmp _start
	END
	# Without section headers
	cp "$work/seeds.elf/stubs" "$work/seeds.cfi/headless"
	for at in 40 60; do
		head -c 4 /dev/zero |
			dd of="$work/seeds.cfi/headless" bs=1 seek="$at" conv=notrunc status=none || return
	done
	python3 "$top/tests/fuzz/seeds.py" "$work"
}

seeded() {
	[ -n "$(ls -A "$work/seeds.$1")" ]
}

# fuzz NAME: whether the fuzzer ran for its time and found nothing.
fuzz() {
	mkdir "$work/corpus.$1"
	ulimit -t "$cpu_limit"
	"$fuzzers/fuzz_$1" -max_total_time="$seconds" -timeout="$timeout" -rss_limit_mb=2048 -max_len=65536 \
		-artifact_prefix="$found/$1-" "$work/corpus.$1" "$work/seeds.$1" \
		>"$work/fuzz.$1" 2>&1
	echo $? >"$work/status.$1"
}

nothing_found() {
	[ "$(cat "$work/status.$1")" = 0 ] && grep -q "^Done [0-9]* runs" "$work/fuzz.$1" && return
	grep -vE "^#[0-9]+" "$work/fuzz.$1" | tail -n 40
	[ "$(cat "$work/status.$1")" != 137 ] || echo "killed: more than $cpu_limit s of CPU time?"
	return 1
}

all=()
formats=()
for fuzzer in "$fuzzers"/fuzz_*; do
	name=${fuzzer##*/fuzz_}
	[[ $name != *.d ]] || continue
	all+=("$name")
	case $name in
	input | cfi | dwarf | elf | jitdump | kallsyms | metric | page | perf_map | push | python | requests | replies) ;;
	*) formats+=("$name") ;;
	esac
done

check "there are fuzzers" [ "${#all[@]}" -ge 15 ]
check "seeds are written" make_seeds
check "seeds of names and messages are written" make_symbol_seeds
for name in "${all[@]}"; do
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
