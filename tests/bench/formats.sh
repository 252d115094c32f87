#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# formats.sh [MEASURE...]: the time to read and write files, compared with other tools: gperftools,
# callgrind, pprof, perf, writers; all by default. Numbers are of one run: compare only ratios.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# timed COMMAND...: "SECONDS MIB" of a command: CPU time and the most memory.
timed() {
	python3 - "$@" <<-'END'
		import resource, subprocess, sys
		with open("/dev/null", "w") as null:
		    if subprocess.run(sys.argv[1:], stdout=null, stderr=null).returncode:
		        sys.exit(1)
		used = resource.getrusage(resource.RUSAGE_CHILDREN)
		print("%.3f %.1f" % (used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
	END
}

# compare NAME FILE SIZE DISTINCT THEIR-NAME THEIR-FILE THEIR-SIZE COMMAND...: reading of FILE by us,
# and of a smaller one by another tool, both in MB per second.
compare() {
	local name=$1 file=$2 size=$3 distinct=$4 their_name=$5 their_file=$6 their_size=$7
	local ours theirs seconds mib ratio
	shift 7
	ours=$(timed "$profiltool" report -E 10 "$file") || not_measured "$name" profiltool || return
	theirs=$(timed "$@" "$their_file") || not_measured "$name" "$their_name" || return
	read -r seconds mib <<<"$ours"
	ratio=$(calculate "(${theirs% *} / $their_size) / ($seconds / $size)")
	row "$name" "$(printf '%.2f s: %.0f times as fast as %s' "$seconds" "$ratio" "$their_name")" \
		">= 5 times" "$(awk -v r="$ratio" 'BEGIN { print (r >= 5 ? "met" : "not") }')"
	judge "$name, memory by distinct data" "$(calculate "$mib / $distinct")" \
		"$(printf '%.0f MiB for %.0f MiB' "$mib" "$distinct")" 3 times
}

# make_gperftools FILE RECORDS: 64-bit, of 100,000 distinct stacks of 20 frames, again and again.
make_gperftools() {
	python3 - "$@" <<-'END'
		import random, struct, sys
		random.seed(1)
		code = [0x401000 + random.randrange(1 << 20) for _ in range(20000)]
		stacks = []
		for i in range(100000):
		    pcs = [random.choice(code) for _ in range(4)]
		    pcs += [code[(i % 300 * 31 + d * 977) % len(code)] for d in range(16)]
		    stacks.append(struct.pack("<22Q", 1, 20, *pcs))
		with open(sys.argv[1], "wb") as f:
		    f.write(struct.pack("<5Q", 0, 3, 0, 10000, 0))
		    for i in range(int(sys.argv[2])):
		        f.write(stacks[i % len(stacks)])
		    f.write(struct.pack("<3Q", 0, 1, 0))
		    f.write(b"00400000-00600000 r-xp 00000000 00:00 0 /bin/nothing\n")
	END
}

measure_gperftools() {
	make_gperftools "$work/large.prof" 568181 # 100 MB
	make_gperftools "$work/small.prof" 56818
	# A distinct stack is its 22 slots.
	compare "100 MB of gperftools" "$work/large.prof" 100 16.8 google-pprof \
		"$work/small.prof" 10 google-pprof --text /bin/true
	rm -f "$work"/*.prof
}

# make_callgrind FILE FUNCTIONS: each with 40 lines and 10 calls, as callgrind writes them.
make_callgrind() {
	python3 - "$@" <<-'END'
		import random, sys
		random.seed(1)
		count = int(sys.argv[2])
		seen = set()
		def function(key, i):
		    if i in seen:
		        return "%s=(%d)\n" % (key, i)
		    seen.add(i)
		    return "%s=(%d) library::module::function_%d(int, char const*)\n" % (key, i, i)
		with open(sys.argv[1], "w") as f:
		    f.write("# callgrind format\nversion: 1\ncreator: bench\npositions: line\n"
		            "events: Ir Dr Dw\n\nob=(1) /usr/lib/libbench.so\n")
		    for i in range(1, count + 1):
		        f.write("\nfl=(%d)%s\n" % (i % 999 + 1,
		                " /usr/src/file%d.cc" % (i % 999 + 1) if i < 1000 else ""))
		        f.write(function("fn", i))
		        for line in range(40):
		            f.write("+%d %d %d %d\n" % (random.randrange(1, 9), random.randrange(99999),
		                    random.randrange(9999), random.randrange(999)))
		        for call in range(10):
		            callee = random.randrange(1, count + 1)
		            f.write("cfi=(%d)%s\n" % (callee % 999 + 1, "" if i >= 1000 else
		                    " /usr/src/file%d.cc" % (callee % 999 + 1)))
		            f.write(function("cfn", callee))
		            f.write("calls=%d %d\n* %d %d %d\n" % (random.randrange(1, 999),
		                    random.randrange(999), random.randrange(999999),
		                    random.randrange(99999), random.randrange(9999)))
	END
}

measure_callgrind() {
	make_callgrind "$work/large.callgrind" 76000
	make_callgrind "$work/small.callgrind" 7600
	local size
	size=$(calculate "$(stat -c %s "$work/large.callgrind") / 1e6")
	# Nearly all of it is distinct: 40 costs and 10 calls of each function, with 3 values, at
	# about 64 and 88 bytes when packed well.
	compare "$(printf '%.0f MB of Callgrind' "$size")" "$work/large.callgrind" "$size" \
		"$(calculate "76000 * (40 * 64 + 10 * 88) / 1048576")" callgrind_annotate \
		"$work/small.callgrind" \
		"$(calculate "$(stat -c %s "$work/small.callgrind") / 1e6")" callgrind_annotate
	rm -f "$work"/*.callgrind
}

# beside NAME FILE THEIR-NAME COMMAND...: reading of FILE by us, and by another tool.
beside() {
	local name=$1 file=$2 their_name=$3 ours theirs
	shift 3
	ours=$(timed "$profiltool" report -E 10 "$file") || not_measured "$name" profiltool || return
	theirs=$(timed "$@") || not_measured "$name" "$their_name" || return
	row "$name" "$(awk -v ours="$ours" -v theirs="$theirs" -v name="$their_name" 'BEGIN {
		split(ours, o); split(theirs, t)
		printf "%.2f s, %.0f MiB; %s %.2f s, %.0f MiB", o[1], o[2], name, t[1], t[2] }')" \
		">= 5 times" "$(awk -v o="${ours% *}" -v t="${theirs% *}" 'BEGIN { printf "%.1f: %s", t / o, (t >= 5 * o ? "met" : "not") }')"
}

measure_pprof() {
	local go=${GO:-go}
	# A million stacks of ten million samples.
	python3 -c '
import random
random.seed(1)
for i in range(1000000):
    print("main;" + ";".join("f%d" % (random.randrange(99) * 100 + d) for d in range(15)) + ";leaf%d" % i, 1 + i % 19)' |
		"$profiltool" convert -q -f pprof - "$work/large.pb.gz" || not_measured pprof "the file" || return
	beside "10^6 stacks of pprof" "$work/large.pb.gz" "go tool pprof" "$go" tool pprof -top -nodecount=10 "$work/large.pb.gz"
	rm -f "$work/large.pb.gz"
}

measure_perf() {
	build_helper depth || not_measured perf "the program" || return
	start "$helpers/depth" 100
	perf record -q -e cpu-clock -F 20000 -g -p "$pid" -o "$work/large.data" sleep 6 >"$work/perf.err" 2>&1 ||
		not_measured perf "perf record" || return
	end_target
	beside "$(($(stat -c %s "$work/large.data") / 1000000)) MB of perf.data" "$work/large.data" "perf report" \
		perf report --stdio --no-inline -g none -i "$work/large.data"
	rm -f "$work/large.data"
}

measure_writers() {
	local name seconds mib
	build_writers && mkdir -p "$work/written" && "$helpers/writers" "$work/written" \
		>"$work/writers" 2>"$work/writers.err" || not_measured writers "see below" || return
	while read -r name seconds mib; do
		judge "writing 10^6 stacks: $name" "$seconds" "$seconds s, $mib MiB more memory" 2 s
	done <"$work/writers"
	rm -rf "$work/written"
}

measures=(gperftools callgrind pprof perf writers)
bench "$@"
