#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Files of unsupported formats are recognized, with a hint at the command that converts them. The files are
# those of real programs, and the commands are run, where they are installed.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2016,SC2317 # other programs expand it; functions are called by check
. "$(dirname "$0")/../lib.sh"

cd "$work" || exit 1
export HOME=$work

# named FILE WHAT HINT: whether report refuses it so.
named() {
	check "$1" exits 1 "$profiltool" report "$1"
	check "$1 is $2" says "$1 is $2"
	check "$1: the hint" says "$3"
}

# hinted FILE: the command in the hint that makes x.folded or x.pb.gz of it.
hinted() {
	"$profiltool" report "$1" 2>&1 | sed -n '2s/^profiltool: *//; 2s/;.*//; 2s/.*: //; 2p'
}

# works FILE OUT: runs that, and whether there is a profile.
works() {
	rm -f "$2"
	bash -c "$(hinted "$1")" 2>hint.err || return
	exits 0 "$profiltool" report "$2"
}

has() {
	command -v "$1" >/dev/null && return
	skip "$1" "it is not installed"
	return 1
}

printf 'main;work 3\n' >a.folded

# --- V8 ---

if has node; then
	echo 'let s = 0; for (let i = 0; i < 1e7; i++) s += Math.sqrt(i); console.log(s)' >a.js
	check "node writes a profile" node --cpu-prof --cpu-prof-name=a.cpuprofile a.js
	named a.cpuprofile "a CPU profile of V8" "node --perf-basic-prof"
	check "node writes a trace" node --trace-event-categories v8 a.js
	named node_trace.1.log "a trace for Chrome" "ui.perfetto.dev"
	check "node writes a heap profile" \
		node --heap-prof --heap-prof-interval=1024 --heap-prof-name=a.heapprofile a.js
	named a.heapprofile "a heap profile of V8" "DevTools"
fi

# --- Java ---

if has java && java -XX:StartFlightRecording=filename=a.jfr -version >/dev/null 2>&1; then
	named a.jfr "a recording of Java's Flight Recorder" "jfrconv a.jfr x.pb.gz"
fi
printf 'JAVA PROFILE 1.0.2\0\0\0\0\10' >a.hprof
named a.hprof "a heap dump or profile of Java's hprof" "profiltool record -g -p PID"

# --- Old text of pprof ---

cat >old.go <<'END'
package main

import (
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var keep [][]byte

func main() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	for i := 0; i < 100; i++ {
		keep = append(keep, make([]byte, 10000))
	}
	var m sync.Mutex
	m.Lock()
	done := make(chan bool)
	go func() {
		m.Lock()
		done <- true
	}()
	// Waits for the lock by the name of Go 1.19 or of later ones.
	for waits := regexp.MustCompile(`\[(semacquire|sync\.Mutex\.Lock)`); ; {
		stacks := make([]byte, 65536)
		if waits.Match(stacks[:runtime.Stack(stacks, true)]) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	m.Unlock()
	<-done
	for _, name := range []string{"heap", "goroutine", "mutex", "threadcreate"} {
		f, _ := os.Create("go." + name)
		pprof.Lookup(name).WriteTo(f, 1)
		f.Close()
	}
}
END
if has go && check "go writes old text" eval "go build -o old old.go && ./old"; then
	for name in heap goroutine mutex threadcreate; do
		named "go.$name" "a profile in pprof's old text format" "go tool pprof -proto"
		# Of threads that have no stack it makes nothing.
		[ $name = threadcreate ] || check "the command of go.$name works" works "go.$name" x.pb.gz
	done
fi
printf -- '--- contentionz 1 ---\ncycles/second = 2000\n  8 1 @ 0x10\n' >a.contention
named a.contention "a profile in pprof's old text format" "go tool pprof -proto"

# --- gprof ---

if has gprof; then
	cat >counted.c <<-'END'
		static volatile int n;
		__attribute__((noinline)) void work(void) { for (int i = 0; i < 100000; i++) n++; }
		int main(void) { for (int i = 0; i < 1000; i++) work(); }
	END
	gcc -pg -o counted counted.c && ./counted
	gprof -b ./counted gmon.out >flat.txt
	gprof -b -q ./counted gmon.out >graph.txt
	named flat.txt "the text that gprof prints" "gmon.out, with --executable"
	named graph.txt "the text that gprof prints" "gmon.out, with --executable"
	gprof ./counted gmon.out | sed '1d; s/$/\r/' | sed '/./,$!d' >no_banner.txt
	named no_banner.txt "the text that gprof prints" "gmon.out, with --executable"
	gprof -b -p ./counted gmon.out | sed -n '/cumulative/,$p' >columns.txt
	named columns.txt "the text that gprof prints" "gmon.out, with --executable"
	sed -n '/^granularity/,$p' graph.txt >granularity.txt
	named granularity.txt "the text that gprof prints" "gmon.out, with --executable"
	sed -n '/^index/,$p' graph.txt >index.txt
	named index.txt "the text that gprof prints" "gmon.out, with --executable"
	gcc -g -pg -o counted counted.c
	gprof -b -C ./counted gmon.out >executions.txt
	named executions.txt "the text that gprof prints" "gmon.out, with --executable"
	gprof -b -A ./counted gmon.out >sources.txt
	named sources.txt "the text that gprof prints" "gmon.out, with --executable"
fi

# --- jemalloc ---

cat >jeprof.1.0.f.heap <<-'END'
	heap_v2/524288
	  t*: 28106: 56637512 [0: 0]
	  t3: 352: 16777344 [0: 0]
	@ 0x5f86da8 0x5f5a1dc 0x29e4d4e 0x0
	  t*: 13: 6688 [0: 0]

	MAPPED_LIBRARIES:
	00400000-00500000 r-xp 00000000 08:01 1 /usr/bin/x
END
named jeprof.1.0.f.heap "a heap profile of jemalloc" "jeprof --collapsed PROGRAM jeprof.1.0.f.heap >x.folded"

# --- JSON ---

printf '{"exporter":"x","$schema":"https://www.speedscope.app/file-format-schema.json",
"shared":{"frames":[]}}' >a.speedscope.json
named a.speedscope.json "a profile for speedscope" "py-spy record -f raw"
printf '{ "meta": { "interval": 1, "processType": 0, "version": 27 }, "threads": [] }' >firefox.json
named firefox.json "a profile for the Firefox Profiler" "profiler.firefox.com"
printf '[{"name":"a","ph":"B","ts":1,"pid":1,"tid":1}]' >array.json
named array.json "a trace for Chrome" "ui.perfetto.dev"
"$profiltool" report --json a.folded >report.json
"$profiltool" dump --json a.folded >dump.json
named report.json "what profiltool report --json prints" "the profile that it was printed from"
named dump.json "what profiltool dump --json prints" "the profile that it was printed from"

for view in --tree "--callers work" "--by image"; do
	# shellcheck disable=SC2086 # an option and its value
	"$profiltool" report --json $view a.folded >rows.json
	named rows.json "what profiltool report --json prints" "the profile that it was printed from"
done
"$profiltool" diff --json a.folded a.folded >diff.json 2>/dev/null
named diff.json "what profiltool diff --json prints" "the profile that it was printed from"
printf '{"dhatFileVersion":2,"mode":"heap","verb":"Allocated"}' >dhat.out.1
named dhat.out.1 "a heap profile of Valgrind's DHAT" "dh_view.html"

python3 - <<'END'
metadata = '"metadata":{"x":"%s"},' % ("y" * 400000)
open("late.json", "w").write("{" + metadata + '"traceEvents":[]}')
open("late.speedscope.json", "w").write(
	"{" + metadata + '"$schema":"https://www.speedscope.app/file-format-schema.json"}')
END
named late.json "a trace for Chrome" "ui.perfetto.dev"
named late.speedscope.json "a profile for speedscope" "py-spy record -f raw"
printf '{"nodes":[{"id":1,"callFrame":{"functionName":"f"},"children":[]}],"samples":[1]}' >hitless.cpuprofile
named hitless.cpuprofile "a CPU profile of V8" "node --perf-basic-prof"
printf 'goroutine 7 [chan receive, 2 minutes]:\nmain.main()\n\t/x/main.go:9 +0x1d\n' >debug2
named debug2 "the text of Go's goroutines" "without debug=2"

# --- What profiltool writes, and does not read ---

"$profiltool" flamegraph a.folded -o a.svg
named a.svg "a picture (SVG)" "the profile that it was drawn from"
"$profiltool" flamegraph a.folded -o graph.html
named graph.html "a page for a browser (HTML)" "the profile that it was made from"
"$profiltool" web a.folded -o web.html 2>/dev/null
named web.html "a page for a browser (HTML)" "the profile that it was made from"
"$profiltool" convert a.folded a.otlp
named a.otlp "by its name a file of the format otlp" "the profile that it was written from"

# --- Other programs ---

printf 'Attaching 1 probe...\n\n\n@[\n    main+10\n    _start+5\n]: 42\n' >bpftrace.txt
named bpftrace.txt "what bpftrace prints" "stackcollapse-bpftrace.pl bpftrace.txt >x.folded"
printf '@stacks[\n    main+10\n]: 42\n' >map.txt
named map.txt "what bpftrace prints" "stackcollapse-bpftrace.pl map.txt >x.folded"
printf 'desc: (none)\ncmd: ./a\ntime_unit: i\n#-----------\nsnapshot=0\n' >massif.out.1
named massif.out.1 "a heap profile of Valgrind's Massif" "ms_print massif.out.1"
if has heaptrack; then
	printf 'int main(void) { for (int i = 0; i < 9; i++) free(malloc(i)); }\n' |
		gcc -include stdlib.h -O0 -xc - -o mallocs
	check "heaptrack writes a file" eval "heaptrack -o heap ./mallocs >heap.log 2>&1"
	for file in heap.*z*; do
		case $file in
		*.gz) gzip -dc "$file" >heap.text ;;
		*) zstd -qdc "$file" >heap.text ;;
		esac
	done
	named heap.text "a heap profile of heaptrack" "heaptrack_print -f heap.text -F x.folded"
	check "the command of heap.text works" works heap.text x.folded
fi
printf '\027\010Dtracing6\0\0\0\0' >trace.dat
named trace.dat "a trace of ftrace" "trace-cmd report -i trace.dat"
printf 'Nettrace\024\0\0\0!FastSerialization.1' >a.nettrace
named a.nettrace "a trace of .NET's runtime" "DOTNET_PerfMapEnabled=1"

# --- Compressed, and programs ---

printf 'PK\3\4\n\0' >a.zip
named a.zip "a zip archive" "unzip -p a.zip | profiltool report -"
for program in zstd xz bzip2 lz4; do
	has $program || continue
	$program -c a.folded >a.$program 2>/dev/null
	named a.$program "compressed with $program" "$program -dc a.$program | profiltool report -"
	check "the command of $program works" test "$($program -dc a.$program |
		"$profiltool" report - 2>/dev/null | grep -c work)" -eq 1
done
cp "$profiltool" program
named program "an ELF file (a program)" "profiltool record -- ./program"
mkdir 'a b'
cp program "a b/it's"
named "a b/it's" "an ELF file (a program)" "profiltool record -- 'a b/it'\\''s';"
# unhinted FILE WHAT: whether report refuses it so, without a command.
unhinted() {
	check "$1" exits 1 "$profiltool" report "$1"
	check "$1 is $2" says "$1 is $2"
	check "$1: no hint" test "$(wc -l <err)" -eq 1
}
echo 'int x;' >x.c
gcc -c x.c && gcc -shared -nostdlib -fPIC -o x.so x.c
unhinted x.o "an ELF file (an object file), not a profile"
unhinted x.so "an ELF file (a shared object or a static-pie program), not a profile"
echo 'int main(void) {}' >static.c
gcc -static-pie -o static static.c
unhinted static "an ELF file (a shared object or a static-pie program), not a profile"
printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\4\0' >core
unhinted core "an ELF file (a core dump), not a profile"
printf '\177ELF\1\2\1\0\0\0\0\0\0\0\0\0\0\1' >big.o
unhinted big.o "an ELF file (an object file), not a profile"

# --- Files that gzip has compressed: other programs do not inflate them ---

printf '2ELIFREP\0\0' >packed.data
gzip -k packed.data
named packed.data.gz "a recording of perf" \
	"gzip -dc packed.data.gz >packed.data, then: perf script -i packed.data | profiltool report -"
cp packed.data.gz unnamed
named unnamed "a recording of perf" "gzip -dc unnamed >FILE, then: perf script -i FILE | profiltool report -"

# --- Text that is no profile ---

printf 'Dear all,\n\tr\303\251sum\303\251 attached.\r\n' >letter.txt
named letter.txt "a text file that is no profile" "profiltool record -g"
printf 'a;b\nc;d\n' >uncounted.txt
named uncounted.txt "a text file that is no profile" "lines such as main;work 3"
python3 -c 'open("long.txt", "w").write("The quick brown fox. " * 200000)'
named long.txt "a text file that is no profile" "profiltool record -g"
gzip -k letter.txt
named letter.txt.gz "a text file that is no profile" "profiltool record -g"
printf 'a letter\n\1\2 end\n' >binary
check "bytes that no text has" exits 1 "$profiltool" report binary
check "are not called text" says "binary is not a profile in any supported format"

# --- What only looks so ---

printf 'PERFILE;a 2\n{closure};"traceEvent" 1\n[heap];Flat profile: 3\n' >like.folded
check "folded stacks are no foreign file" exits 0 "$profiltool" report like.folded
printf '<html::Node as Clone>::clone;a 2\n<svg::Path as Debug>::fmt;<svg 1\n' >rust.folded
check "folded stacks of Rust are no page" exits 0 "$profiltool" report rust.folded
printf '@[a];b 2\nv 10400 3\n' >map.folded
check "folded stacks are no map of bpftrace" exits 0 "$profiltool" report map.folded
printf 'desc: x\nevents: e\nfn=f\n1 3\n' >desc.callgrind
check "a Callgrind file may begin with a description" exits 0 "$profiltool" report desc.callgrind
for line in 'heap_v2/5 3' 'Flat profile: 3' 'Call graph;f 3' '*** File /a.c: 7'; do
	echo "$line" >banner.folded
	check "nor is \"$line\"" exits 0 "$profiltool" report banner.folded
done
printf 'sh 12 3.5: x 3\na;b 2\n' >time.folded
check "nor with a time in a name" exits 0 "$profiltool" report time.folded
head -c 3000 /dev/urandom | tr '\n' x >unknown
check "what is nothing of this" exits 1 "$profiltool" report unknown
mkdir directory
cp a.folded a.hprof directory/
check "in a directory" exits 0 "$profiltool" report directory
check "in a directory: they are left out" says "directory/a.hprof is not a profile"
printf '2ELIFREP\0\0' >perf.magic
"$profiltool" report - <a.hprof 2>err
check "from standard input" says "standard input is a heap dump"
"$profiltool" report - <perf.magic 2>err
check "with a command that a file can be put into" says "perf script -i FILE | profiltool report -"

# --- Others, by how they begin ---

printf 'PERFFILE\x68\0\0\0' >v1.data
named v1.data "a recording of perf in the format of Linux 2.6" "perf script -i v1.data"
printf 'SIMPLEPERF\1\0' >simpleperf.trace
named simpleperf.trace "a report of Android's simpleperf" "pprof_proto_generator.py of simpleperf"
printf '\x5e\x97\xca\xfd\1\1\0' >a.syscap
named a.syscap "a recording of Sysprof" "Sysprof shows it"
printf '\4\10{\n:\x0cversionf\x08' >a.dump
named a.dump "data that Ruby has dumped" "stackprof --stackcollapse a.dump >x.folded"
printf '0 strlen <internal>:-1\n1 main /srv/a.php:3\n\n0 main /srv/a.php:4\n' >phpspy.txt
named phpspy.txt "traces of phpspy" "stackcollapse-phpspy.pl phpspy.txt >x.folded"
printf '\tMon Jan  1 10:00 2024 Time and Allocation Profiling Report  (Final)\n\nCOST CENTRE MODULE\n' >ghc.prof
named ghc.prof "a profile of a program by GHC (Haskell), as text" "+RTS -pj"
printf '{"program": "a", "rts_arguments": [], "cost_centres": []}' >ghc.json
named ghc.json "a profile of a program by GHC (Haskell)" "speedscope"
printf 'Profiling information for ::main\n==========================\n' >tcl.txt
named tcl.txt "a report of Tcl's profiler" "no samples"
printf '\t# gawk profile, created Mon Jan  1 10:00:00 2024\n\n\t# Rule(s)\n\n     3  {\n     3\tprint\n\t}\n' >awkprof.out
named awkprof.out "a program with gawk's counts" "profiltool record -g -- gawk"

finish
