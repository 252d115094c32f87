#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pprof: profiles of Go's runtime and other writers, read and written by profiltool, are the same to
# `go tool pprof`, with all values, labels and lines; --salvage of corrupt ones.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

if ! command -v go >/dev/null; then
	skip "profiles of Go" "go is not installed"
	finish
fi

export HOME=$work GOPROXY=off GOTOOLCHAIN=local GOCACHE=$work/cache

mkdir "$work/src" "$work/real" "$work/back"
cat >"$work/src/main.go" <<'GO'
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"
)

var kept [][]byte

// The CPU time of this process.
func cpu() time.Duration {
	var usage syscall.Rusage

	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

//go:noinline
func burn(d time.Duration) (n int) {
	for end := cpu() + d; cpu() < end; {
		for i := 0; i < 1000; i++ {
			n += i * n
		}
	}
	return n
}

//go:noinline
func allocate(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 4096))
	}
}

func create(name string) *os.File {
	f, err := os.Create(os.Args[1] + "/" + name + ".pb.gz")
	if err != nil {
		panic(err)
	}
	return f
}

func main() {
	runtime.MemProfileRate = 1024
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	cpu := create("cpu")
	pprof.StartCPUProfile(cpu)
	var wait sync.WaitGroup
	var lock sync.Mutex
	for _, who := range []string{"one", "two"} {
		wait.Add(1)
		labels := pprof.Labels("worker", who, "kind", "a test")
		go pprof.Do(context.Background(), labels, func(context.Context) {
			defer wait.Done()
			lock.Lock()
			burn(300 * time.Millisecond)
			allocate(500)
			lock.Unlock()
		})
	}
	wait.Wait()
	pprof.StopCPUProfile()
	cpu.Close()
	for _, name := range []string{"heap", "allocs", "goroutine", "mutex", "block", "threadcreate"} {
		f := create(name)
		pprof.Lookup(name).WriteTo(f, 0)
		f.Close()
	}
}
GO
check "a Go program builds" go build -o "$work/program" "$work/src/main.go"
check "a Go program builds: profiles itself" "$work/program" "$work/real"

# --- Files that no program here writes: made of numbers and texts, by hand ---

# The fields are those of profile.proto.
cat >"$work/make.py" <<'PY'
import gzip, sys

def varint(n):
	n &= 2 ** 64 - 1
	out = b""
	while n > 127:
		out += bytes([n & 127 | 128])
		n >>= 7
	return out + bytes([n])

def field(number, value):
	if isinstance(value, int):
		return varint(number << 3) + varint(value)
	return varint(number << 3 | 2) + varint(len(value)) + value

def message(*fields):
	return b"".join(field(n, v) for n, v in fields)

class File:
	def __init__(self):
		self.strings, self.bytes = [""], b""
	def s(self, text):
		if text not in self.strings:
			self.strings.append(text)
		return self.strings.index(text)
	def add(self, number, *fields):
		self.bytes += field(number, message(*fields))
	def number(self, number, value):
		self.bytes += field(number, value)
	def type(self, number, type, unit):
		self.add(number, (1, self.s(type)), (2, self.s(unit)))
	def label(self, key, text="", number=0, unit=""):
		return 3, message((1, self.s(key)), (2, self.s(text)), (3, number), (4, self.s(unit)))
	def save(self, name):
		for text in self.strings:
			self.bytes += field(6, text.encode())
		with gzip.open(sys.argv[1] + "/" + name + ".pb.gz", "wb") as out:
			out.write(self.bytes)

# Of perf.data: an event's samples and its count; pid and tid without a unit
f = File()
f.type(1, "cycles_sample", "count")
f.type(1, "cycles_event", "count")
f.type(11, "cycles_event", "count")
f.number(12, 1000003)
f.add(3, (1, 1), (2, 0x400000), (3, 0x500000), (5, f.s("/bin/none")), (6, f.s("00ff")))
f.add(3, (1, 2), (2, 0xffffffff81000000), (3, 0xffffffff82000000), (5, f.s("[kernel.kallsyms]_text")))
f.add(4, (1, 1), (2, 1), (3, 0x400100))
f.add(4, (1, 2), (2, 2), (3, 0xffffffff81000100))
for i in range(1, 4):
	f.add(2, (1, 2), (1, 1), (2, i), (2, i * 1000003), f.label("pid", number=i),
	      f.label("tid", number=10 + i), f.label("comm", "worker"), f.label("execution_mode", "Host Kernel"))
f.number(13, f.s("a comment"))
f.save("perf")

# Of an interpreted language: no address, no mapping, columns; threads by name
f = File()
f.type(1, "wall", "milliseconds")
f.type(1, "samples", "count")
f.type(11, "wall", "milliseconds")
f.number(12, 10)
f.number(14, f.s("wall"))
f.number(7, f.s("ignored.*"))
for i in range(1, 6):
	f.add(5, (1, i * 10), (2, f.s("f%d" % i)), (3, f.s("f%d" % i)), (4, f.s("a.py")), (5, i))
	f.add(4, (1, i * 100), (4, message((1, i * 10), (2, 7 + i), (3, 3))),
	      (4, message((1, 10), (2, 99))), (5, i % 2))
for i in range(1, 6):
	f.add(2, (1, i * 100), (1, 100), (2, i * 10), (2, i), f.label("thread", "MainThread"),
	      f.label("request", number=i, unit="id"), f.label("size", number=0, unit="bytes"),
	      f.label("tag", "a"), f.label("tag", "b"), f.label("mode", "async"))
f.save("interpreted")

# All that is known of a stack is inlined at one address, as of Go's mutexes.
f = File()
f.type(1, "contentions", "count")
f.type(1, "delay", "nanoseconds")
f.add(3, (1, 1), (2, 0x400000), (3, 0x500000), (5, f.s("/bin/none")), (7, 1), (8, 1), (9, 1), (10, 1))
for i, name in enumerate(["leaf", "middle", "outer"], 1):
	f.add(5, (1, i), (2, f.s(name)), (3, f.s(name)), (4, f.s("a.go")), (5, i))
f.add(4, (1, 1), (2, 1), (3, 0x400100), *[(4, message((1, i), (2, 10 * i))) for i in (1, 2, 3)])
f.add(4, (1, 2), (2, 1), (3, 0x400200), (4, message((1, 3), (2, 33))))
f.add(2, (1, 1), (2, 3), (2, 300))
f.add(2, (1, 2), (2, 1), (2, 100))
f.save("inlined")

# As .NET's profilers write: all values that could be measured, of which some were; the period is a unit.
for name, cpu, asked in ("dotnet", 10, None), ("dotnet-asked", 10, "exception"), ("dotnet-idle", 0, None):
	f = File()
	for kind, unit in ("wall", "nanoseconds"), ("cpu", "nanoseconds"), ("exception", "count"), ("lock", "nanoseconds"):
		f.type(1, kind, unit)
	f.type(11, "RealTime", "nanoseconds")
	f.number(12, 1)
	if asked:
		f.number(14, f.s(asked))
	for i, function in enumerate(["work", "Main"], 1):
		f.add(5, (1, i), (2, f.s(function)), (3, f.s(function)), (4, f.s("a.cs")))
		f.add(4, (1, i), (4, message((1, i), (2, 7))))
	for i in range(1, 5):
		f.add(2, (1, 1), (1, 2), *[(2, n) for n in (0, i * cpu, 0, 0)], f.label("i", number=i))
	f.save(name)

# Stacks whose frames the file wants dropped: samples of stacks, leaf first, with "a/b": a inlined into b.
stacks = "malloc,tc_new,work,main=7", "compute,work,main=3", "malloc,main=11", "malloc,tc_new=20", \
	"runtime.panic,main=40", "runtime.x,runtime.panic,main=80", "std::vector<int>::grow(int),main=160", \
	"Foo::(anonymous namespace)::Test::Bar(int),Foo::(anonymous namespace)::Test::Baz,main=320", \
	"leaf,tc_new/work,main=640", "leaf,work/tc_new,main=1280", "mallocs,main=2560", "void,malloc/work=5120"
patterns = {"legacy": ("malloc|tc_.*|runtime\\..*|std::vector::grow", "runtime\\.panic"),
	"anonymous": ("Foo::.*::Bar|(?:tc)_[[:alpha:]]+?", ""), "keep-alone": ("", "malloc"),
	"none": ("no_such", ""), "counts": ("m.{3,5}", "malloc"), "class": ("[^a-v]o[]r]?k|[[:alpha:]]eaf", ""),
	"alone": (".*", ""), "bad": ("malloc(", ""), "go": ("(?i)MALLOC", ""), "back": ("(a)\\1", ""),
	"chain": ("(a{1000})*{1000}?{1000}", ""), "huge": ("((((a{1000}){1000}){1000}){1000})", ""), "plus": ("(" * 60 + "a" + "+)" * 60, ""),
	"deep": ("(" * 3000 + "a" + ")" * 3000, "")}
for name, (drop, keep) in patterns.items():
	f = File()
	f.type(1, "samples", "count")
	f.number(7, f.s(drop))
	f.number(8, f.s(keep))
	functions, locations = {}, {}
	for stack in stacks:
		stack, count = stack.split("=")
		for location in stack.split(","):
			for function in location.split("/"):
				if function not in functions:
					functions[function] = len(functions) + 1
					f.add(5, (1, len(functions)), (2, f.s(function)), (3, f.s(function)))
			if location not in locations:
				locations[location] = len(locations) + 1
				f.add(4, (1, len(locations)), (3, 0x1000 + len(locations)),
				      *[(4, message((1, functions[x]), (2, 1))) for x in location.split("/")])
		f.add(2, *[(1, locations[x]) for x in stack.split(",")], (2, int(count)))
	f.save("drop-" + name)
PY
check "profiles of others are made" python3 "$work/make.py" "$work/real"
# What Go makes of a file of gperftools, from a program that is not here.
check "Go's pprof converts a file of gperftools" exits 0 go tool pprof -proto \
	-output "$work/real/gperftools.pb.gz" "$data/gperftools/build-libs.prof"

# --- There and back ---

# shown OPTION FILE: as pprof shows the file merged with itself: of a single file newer versions
# print equal samples, samples of zero and unused mappings as they stand there, which says nothing
# about the profile. The flags of a mapping say which names its locations have: Go's runtime does not
# say all that they have.
shown() {
	go tool pprof -symbolize=none "$1" "$2" "$2" 2>/dev/null |
		sed 's/ *\(\[[FLI]N\]\|\[FL\]\)*$//'
}

same() {
	shown "$1" "$2" >"$work/before.txt"
	shown "$1" "$3" >"$work/after.txt"
	[ "$1" = -tags ] || [ -s "$work/before.txt" ] && diff "$work/before.txt" "$work/after.txt"
}

for file in "$work"/real/*.pb.gz; do
	case $file in */drop-*) continue ;; esac
	name=$(basename "$file" .pb.gz)
	back=$work/back/$name.pb.gz
	check "$name: is converted" exits 0 "$profiltool" convert -f pprof "$file" "$back"
	for option in -raw -tags -top -traces; do
		check "$name: pprof $option shows the same" same $option "$file" "$back"
	done
done
check "perf: the period is the event's" grep -q '^PeriodType: cycles_event count' \
	<(shown -raw "$work/back/perf.pb.gz")
check "interpreted: columns stay" cmp <("$profiltool" convert -f pprof "$work/real/interpreted.pb.gz" - |
	zcat) <("$profiltool" convert -f pprof "$work/back/interpreted.pb.gz" - | zcat)
check "cpu: source lines are the same" diff \
	<(go tool pprof -list main.burn "$work/real/cpu.pb.gz" 2>/dev/null) \
	<(go tool pprof -list main.burn "$work/back/cpu.pb.gz" 2>/dev/null)

# ours FILE [OPTION...]: "SELF TOTAL FUNCTION" of all functions; theirs FILE [OPTION...] as pprof has
# them
ours() {
	"$profiltool" report --json "$@" 2>/dev/null | python3 -c '
import json, sys
for f in json.load(sys.stdin)["functions"]:
	if f["total"]:
		print(f["self"], f["total"], f["name"])' | sort
}
# For awk: more than 2^31 nanoseconds are printed whole, too.
whole=(-v OFMT=%.0f -v CONVFMT=%.0f)
theirs() {
	local file=$1
	shift
	go tool pprof -symbolize=none -unit=ns "$@" -top -nodecount=1000 -nodefraction=0 "$file" 2>/dev/null |
		awk "${whole[@]}" 'table { n = $1 + 0 " " $4 + 0; $1 = $2 = $3 = $4 = $5 = ""; sub(/^ */, "")
			sub(/ \(inline\)$/, ""); print n, $0 } / flat% / { table = 1 }' | sort
}

# Percentages of a difference are of what was subtracted.
printf 'main;x 100\nmain;y 50\nmain;z 30\n' >"$work/old.folded"
printf 'main;x 140\nmain;y 20\nmain;w 10\n' >"$work/new.folded"
for side in old new; do
	"$profiltool" convert "$work/$side.folded" "$work/$side.pb.gz" 2>/dev/null
done
go tool pprof -proto -output "$work/difference.pb.gz" -diff_base "$work/old.pb.gz" "$work/new.pb.gz" 2>/dev/null
# percentages OPTION...: of self, by function, as profiltool and as pprof print them, without signs.
percentages() {
	"$profiltool" report --json "$@" "$work/difference.pb.gz" 2>/dev/null | python3 -c '
import json, sys
for f in json.load(sys.stdin)["functions"]:
	print(f["name"], "%.2f" % abs(f["self_percent"]))' | sort >"$work/ours"
	go tool pprof -symbolize=none "${@/#--/-}" -top -nodefraction=0 "$work/difference.pb.gz" 2>/dev/null |
		awk 'table { print $6, sprintf("%.2f", $2) } / flat% / { table = 1 }' | sort >"$work/theirs"
	[ -s "$work/ours" ] && diff "$work/ours" "$work/theirs"
}
check "a difference: percentages of the base" percentages
check "a difference: the same with a filter" percentages --focus=x
check "a difference: the tree's" grep -qE '^ *22.22 .* x' <("$profiltool" report --tree "$work/difference.pb.gz" 2>/dev/null)

# What every command shows unasked is what pprof does; of a clock, its samples in place of its time.
pprof_type() {
	go tool pprof -symbolize=none -top "$1" 2>/dev/null | sed -n 's/^Type: //p'
}
sum() {
	awk "${whole[@]}" '{ n += $NF } END { print n + 0 }' "$@"
}
values="heap=inuse_space/bytes allocs=alloc_space/bytes mutex=delay/nanoseconds
	block=delay/nanoseconds goroutine=goroutine inlined=delay/nanoseconds cpu=samples"
for pair in $values; do
	name=${pair%=*} value=${pair#*=} type=${value%/*}
	file=$work/real/$name.pb.gz back=$work/back/$name.pb.gz
	[ "$type" = samples ] || check "$name: pprof shows $type" test "$(pprof_type "$file")" = "$type"
	"$profiltool" report --json "$file" >"$work/report.json" 2>"$work/report.err"
	check "$name: it is named" json "j['value'] == '$value'" "$work/report.json"
	check "$name: our numbers are pprof's" diff <(ours "$file") \
		<(theirs "$file" -sample_index="$type")
	check "$name: the same once it is rewritten" diff <(ours "$file") <(ours "$back")
	"$profiltool" convert "$file" "$work/$name.folded" 2>/dev/null
	total=$(sum "$work/$name.folded")
	check "$name: folded" test "$total" -eq "$("$profiltool" report --json "$file" 2>/dev/null |
		json 'print(sum(f["self"] for f in j["functions"])) or True' /dev/stdin | head -n 1)"
	"$profiltool" report --tree --json "$file" >"$work/tree.json" 2>/dev/null
	check "$name: the tree" json "j['value'] == '$value' and j['samples'] == $total" "$work/tree.json"
	"$profiltool" diff "$file" "$back" >/dev/null 2>"$work/diff.err"
	told="$total $value" # times are in seconds
	[ "${value#*/}" != nanoseconds ] || told=$(LC_ALL=C awk -v ns="$total" -v type="$type" \
		'BEGIN { printf "%.3f s of %s", ns / 1e9, type }')
	"$profiltool" flamegraph "$file" -o "$work/$name.html" 2>/dev/null
	check "$name: the flame graph" grep -q "^${told%% *} .*, 100.00 %; self" "$work/$name.html"
	check "$name: diff" grep -q "^profiltool: old: .*: $told\b" "$work/diff.err"
	[ "$name" = goroutine ] || check "$name: gperftools" test "$total" -eq \
		"$("$profiltool" convert -f gperftools "$file" "$work/$name.prof" 2>/dev/null
		"$profiltool" dump "$work/$name.prof" | sed -n 's/^samples //p')"
done
# --- A value that is 0 everywhere was not measured ---

check "of several values, the last that was measured is shown" \
	json "j['value'] == 'cpu/nanoseconds' and j['functions'][0]['self'] == 100" \
	<("$profiltool" report --json "$work/real/dotnet.pb.gz" 2>"$work/dotnet.err")
check "a period of one nanosecond is no clock's" exits 1 grep "Hz" "$work/dotnet.err"
check "of a rewritten file, the same is shown" \
	json "j['value'] == 'cpu/nanoseconds' and j['functions'][0]['self'] == 100" \
	<("$profiltool" report --json "$work/back/dotnet.pb.gz" 2>/dev/null)
check "what the file names is shown, though it is 0" exits 4 "$profiltool" report "$work/real/dotnet-asked.pb.gz"
check "what the file names is shown, though it is 0: its name" says "value: exception"
check "of values that are all 0, the last is shown" exits 4 "$profiltool" report "$work/real/dotnet-idle.pb.gz"
check "of values that are all 0, the last is shown: its name" says "value: lock/nanoseconds"

# --- drop_frames ---

# Names of C++ as pprof prints them
plain() {
	sed 's/ (partial-inline)$//; s/([a-z]*)$//; s/<int>//; s/(anonymous namespace)//' | sort
}
for name in legacy anonymous keep-alone none counts class alone; do
	file=$work/real/drop-$name.pb.gz
	check "drop_frames, $name: our numbers are pprof's" diff <(ours "$file" | plain) \
		<(theirs "$file" -symbolize=local | plain)
	check "drop_frames, $name: there are some" test "$(ours "$file" | wc -l)" -gt 3
	"$profiltool" convert "$file" "$work/back/drop-$name.pb.gz" 2>/dev/null
	check "drop_frames, $name: the file written again has the same" \
		diff <(ours "$file") <(ours "$work/back/drop-$name.pb.gz")
done
check "drop_frames are dropped" test -z "$(ours "$work/real/drop-legacy.pb.gz" | grep 'vector')"
check "--no-drop-frames keeps all frames" diff <(ours "$work/real/drop-legacy.pb.gz" --no-drop-frames) \
	<(ours "$work/real/drop-none.pb.gz")
check "a file written again has the stacks whole" diff <(ours "$work/back/drop-legacy.pb.gz" --no-drop-frames) \
	<(ours "$work/real/drop-none.pb.gz")
zcat "$work/back/drop-legacy.pb.gz" >"$work/back.pb"
check "a file written again keeps drop_frames" grep -qaF 'malloc|tc_.*|runtime\..*|std::vector::grow' "$work/back.pb"
for name in bad go back chain huge plus deep; do
	file=$work/real/drop-$name.pb.gz
	check "drop_frames, $name: an unusable pattern drops nothing" diff <(ours "$file") \
		<(ours "$work/real/drop-none.pb.gz")
	"$profiltool" report "$file" 2>"$work/drop.err" >/dev/null
	check "drop_frames, $name: one warning" test "$(grep -c "no frames are excluded: " "$work/drop.err")" -eq 1
	check "drop_frames, $name: --strict refuses it" exits 1 "$profiltool" report --strict "$file"
done

# --- What is inlined at one address is a stack ---

file=$work/real/inlined.pb.gz
check "inlined: our numbers are pprof's" diff <(ours "$file") <(theirs "$file")
check "inlined: callers have a total" grep -qx '100 400 outer' <(ours "$file")
# stacks: as pprof has them, root first
stacks() {
	go tool pprof -symbolize=none -unit=ns -traces "$1" 2>/dev/null | sed '1,/-----/d' | awk "${whole[@]}" '
		/-----/ { if (stack) print stack, n; stack = ""; next }
		stack { sub(/^ */, ""); sub(/ \(inline\)$/, ""); stack = $0 ";" stack; next }
		{ n = $1 + 0; sub(/^ *[^ ]* */, ""); sub(/ \(inline\)$/, ""); stack = $0 }' | sort
}
check "inlined: folded has pprof's stacks" diff <(stacks "$file") <(sort "$work/inlined.folded")
check "inlined: the tree" json "j['tree'][0]['total'] == 400 and [(n['depth'], n['name'])
	for n in j['tree'][:3]] == [(0, 'outer'), (1, 'middle'), (2, 'leaf')]" \
	<("$profiltool" report --tree --json "$file" 2>/dev/null)
check "inlined: callers" json "(j['callers'][1]['depth'], j['callers'][1]['name']) == (1, 'middle')" \
	<("$profiltool" report --callers leaf --json "$file" 2>/dev/null)
check "inlined: the flame graph draws them" test \
	"$(grep -c '>outer<\|>middle<\|>leaf<' <("$profiltool" flamegraph "$file" -o "$work/inlined.svg" \
		2>/dev/null && tr -d '\n' <"$work/inlined.svg" | sed 's/<text/\n<text/g'))" -ge 3
"$profiltool" convert "$file" "$work/inlined.callgrind" 2>/dev/null
check "inlined: callgrind has the calls, with what was spent in them" diff \
	<(ours "$work/inlined.callgrind" --value delay | grep -v '\[root\]') <(ours "$file")
check "cpu: its time can be had" diff <(ours "$work/real/cpu.pb.gz" --value cpu) \
	<(theirs "$work/real/cpu.pb.gz")
check "the summary names the value, and the others" grep -qxF \
	"profiltool: value: inuse_space/bytes; --value takes alloc_objects, alloc_space, inuse_objects, too" \
	<("$profiltool" report "$work/real/heap.pb.gz" 2>&1 >/dev/null)
check "the summary names a lone value" grep -qxF "profiltool: value: goroutine" \
	<("$profiltool" report "$work/real/goroutine.pb.gz" 2>&1 >/dev/null)
check "to Callgrind" exits 0 "$profiltool" convert "$work/real/heap.pb.gz" "$work/heap.callgrind"
check "to Callgrind: the value that pprof shows is the first event" \
	grep -q '^events: inuse_space alloc_objects ' "$work/heap.callgrind"
check "convert --value: another one" exits 0 "$profiltool" convert --value alloc_objects \
	"$work/real/heap.pb.gz" "$work/objects.folded"
check "convert --value: another one: is what is written" test "$(sum "$work/objects.folded")" -eq \
	"$(theirs "$work/real/heap.pb.gz" -sample_index=alloc_objects | awk '{ n += $1 } END { print n }')"
check "convert --value: another one: what pprof shows of a profile" \
	exits 0 "$profiltool" convert --value alloc_objects \
	"$work/real/heap.pb.gz" "$work/objects.pb.gz"
check "unasked" test "$(pprof_type "$work/objects.pb.gz")" = alloc_objects
check "as we do" json "j['value'] == 'alloc_objects'" \
	<("$profiltool" report --json "$work/objects.pb.gz" 2>/dev/null)
check "one that does not exist is refused" exits 2 "$profiltool" convert --value none \
	"$work/real/heap.pb.gz" "$work/none.folded"
check "one that does not exist is refused: nothing written" test ! -e "$work/none.folded"

# --- Broken files ---

zcat "$work/real/heap.pb.gz" >"$work/heap.pb"
size=$(stat -c %s "$work/heap.pb")
head -c $((size * 2 / 3)) "$work/heap.pb" >"$work/cut.pb"
head -c $(($(stat -c %s "$work/real/heap.pb.gz") * 2 / 3)) "$work/real/heap.pb.gz" >"$work/cut.pb.gz"
check "a cut file is refused" exits 1 "$profiltool" convert -f pprof "$work/cut.pb" "$work/saved.pb.gz"
check "a cut file is refused: with the byte" says "at byte"
check "a cut file is refused: what to do" says "--salvage"
check "a cut compressed file is refused" exits 1 "$profiltool" convert -f pprof "$work/cut.pb.gz" "$work/saved.pb.gz"
check "a cut compressed file is refused: what to do" says "--salvage"
for file in cut.pb cut.pb.gz; do
	check "$file: --salvage takes what is there" \
		exits 3 "$profiltool" convert --salvage -f pprof "$work/$file" "$work/saved.pb.gz"
	check "$file: and says so" says "lost references"
	check "$file: pprof reads it" go tool pprof -symbolize=none -raw "$work/saved.pb.gz"
done
# Two value types, a sample of 5 and 7, its location, which is in mapping 9, and the beginning of the strings.
printf '\012\004\010\001\020\002\012\004\010\003\020\004\022\007\012\001\001\022\002\005\007\042\011\010\001\020\011\030\200\200\200\002\062\000\062\007sam' \
	>"$work/nameless.pb"
check "cut before its strings: columns have names" exits 3 "$profiltool" report --salvage --value value2 "$work/nameless.pb"
check "cut before its strings: the file is named once" says "profiltool: $work/nameless.pb: lost what is corrupt: at byte"
check "cut before its strings: by each warning" says "profiltool: $work/nameless.pb: locations are in mappings"
check "a whole file needs none" exits 0 "$profiltool" convert --salvage -f pprof "$work/heap.pb" \
	"$work/saved.pb.gz"
check "a whole file needs none: is the same" cmp "$work/saved.pb.gz" "$work/back/heap.pb.gz"
cat "$work/real/cpu.pb.gz" "$work/real/heap.pb.gz" >"$work/two.pb.gz"
check "two in one are refused" exits 1 "$profiltool" dump "$work/two.pb.gz"
check "two in one are refused: with the reason" says "several profiles are concatenated"

finish
