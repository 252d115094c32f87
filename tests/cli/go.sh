#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Go: a stripped program has the names, lines and inlined functions of its own table, which are those of the
# unstripped one, of Go's tools and of Go's runtime.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

if ! command -v go >/dev/null; then
	skip "Go" "no go"
	finish
fi
lines=$top/tests/cli/lines.py
cd "$work" || exit 1
export GOCACHE=$work/cache GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off HOME=$work GO111MODULE=on

mkdir module
cat >module/go.mod <<'EOF_GO'
module example.com/a.b/served

go 1.18
EOF_GO
cat >module/main.go <<'EOF_GO'
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"time"
)

type number interface{ int | float64 }

//go:noinline
func sum[T number](all []T) T {
	var s T
	for _, x := range all {
		s = s*3 + x
	}
	return s
}

func remainder(x int) int { return x*7%1000003 + 1 }

func mixed(x int) int { return remainder(x)/3 + remainder(x+1) }

//go:noinline
func hot(n int) int {
	x := 1
	for i := 0; i < n; i++ {
		x = mixed(x) + i
	}
	return x
}

// What the runtime says of the caller's stack, beside the address that it is about.
//
//go:noinline
func where() {
	var pcs [16]uintptr

	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	fmt.Printf("%x", pcs[0]-1)
	for {
		frame, more := frames.Next()
		fmt.Printf(" %s:%d", frame.Function, frame.Line)
		if !more {
			break
		}
	}
	fmt.Println()
}

func inner(n int) {
	if n > 0 {
		where()
	}
}

func outer(n int) {
	inner(n)
	inner(n + 1)
}

//go:noinline
func chains(n int) {
	outer(n)
	outer(n + 1)
}

func main() {
	if len(os.Args) > 1 {
		chains(1)
		return
	}
	fmt.Println("ready")
	values := make([]int, 500)
	for start, s := time.Now(), 0; time.Since(start) < time.Minute; {
		s += hot(50000)
		for i := range values {
			values[i] = i * 7919 % 1009
		}
		sort.Slice(values, func(i, j int) bool { return values[i] < values[j] })
		for range values[:20] {
			values[0] = s + sum(values)
		}
	}
}
EOF_GO

build() {
	(cd module && go build -o "../$1" "${@:2}" .)
}
check "Go: built" build full
check "Go: built without symbols and DWARF" build bare -ldflags="-s -w"
check "Go: built without DWARF" build symbols -ldflags=-w
check "Go: built, position-independent, without paths" build pie -buildmode=pie -trimpath
check "Go: stripped" strip -o stripped full
check "Go: stripped, position-independent, without paths" strip -o stripped-pie pie

# --- All addresses: an image's file takes the place of the unstripped one ---

compare() {
	python3 "$top/tests/cli/go.py" "$profiltool" "$@"
}
for pair in full:bare full:stripped full:symbols pie:stripped-pie; do
	check "Go, $pair: each address has the same name" compare names "${pair%:*}" "${pair#*:}"
	check "Go, $pair: the same lines and inlined functions" compare lines "${pair%:*}" "${pair#*:}"
done
# That tool knows no position-independent programs.
check "Go, full:stripped: names, files and lines are those of go tool addr2line" compare addr2line full stripped

# What the program itself prints of stacks with inlined functions
same_chains() {
	"./$1" chains >printed && compare printed printed "$1"
}
check "Go: inlined functions are those that the runtime prints" same_chains stripped
check "Go: of a build without symbols, too" same_chains bare

# --- A recording ---

record() {
	exits 0 until_used "$pid" 500 "$profiltool" record -g -p "$pid" -F 1999 --json -o "$1.pb.gz" && mv out "$1.json"
}
start_ready ./bare
check "Go, stripped: recorded" record bare
stop "$pid"
check "Go, stripped: its functions have names" recorded "ran('main.hot', 'main.main.func1')" bare.json
check "Go, stripped: generic functions, too" grep -q '"main.sum\[' bare.json
check "Go, stripped: all have" exits 1 grep "bare: .*without symbols" err
check "Go, stripped: callers have names" recorded "total('main.main') and total('sort.Slice')" bare.json
check "Go, stripped: lines" exits 0 "$profiltool" report --by line bare.pb.gz
check "Go, stripped: lines of inlined functions" grep -qE "module/main\.go +22 +main\.remainder " out
check "Go, stripped: inlined functions are in stacks" exits 0 "$profiltool" convert --inline -f folded bare.pb.gz bare.folded
check "Go, stripped: inlined functions are in stacks: in order" \
	grep -qE ";main\.hot;main\.mixed;main\.remainder " bare.folded
check "Go, stripped: annotate" exits 0 "$profiltool" annotate main.hot bare.pb.gz
check "Go, stripped: annotate has the source" grep -q "x = mixed(x) + i" out
check "Go, stripped: go tool pprof has lines" bash -c \
	"'$profiltool' convert --inline bare.pb.gz lines.pb.gz && go tool pprof -list main.hot lines.pb.gz | grep -q 'mixed(x)'"

# --- Labels of runtime/pprof ---

# In C's part, a thread-local variable is beside Go's own, and a symbol says where that is.
mkdir labels
cp module/go.mod labels
cat >labels/main.go <<'EOF_GO'
package main

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var sink uint32

//go:noinline
func burnOrders() {
	for i := uint32(0); i < 300000; i++ {
		sink = sink*1664525 + i
	}
}

//go:noinline
func burnNothing() {
	for i := uint32(0); i < 300000; i++ {
		sink = sink*1664525 + i
	}
}

//go:noinline
func burnTooMuch() {
	for i := uint32(0); i < 300000; i++ {
		sink = sink*1664525 + i
	}
}

// Nine labels; and a name that is too long.
var tooMuch = [][]string{
	{"a", "1", "b", "1", "c", "1", "d", "1", "e", "1", "f", "1", "g", "1", "h", "1", "i", "1"},
	{"a", "1", strings.Repeat("n", 64), "1"},
}

func main() {
	fmt.Println("ready")
	for round, start := 0, time.Now(); time.Since(start) < time.Minute; round++ {
		labels := pprof.Labels("route", "GET /orders/"+strconv.Itoa(round), "tenant", "17", "thread", "other", "empty", "")
		pprof.Do(context.Background(), labels, func(context.Context) {
			burnOrders()
			pause := syscall.Timespec{Nsec: 1000000}
			syscall.Nanosleep(&pause, nil)
		})
		burnNothing()
		for _, names := range tooMuch {
			pprof.Do(context.Background(), pprof.Labels(names...), func(context.Context) { burnTooMuch() })
		}
	}
}
EOF_GO
cat >labels.c.go <<'EOF_GO'
package main

// static __thread int variable[40];
// static int next(void) { return ++variable[7]; }
import "C"

func init() { C.next() }
EOF_GO
build_labels() {
	(cd labels && CGO_ENABLED=0 go build -ldflags="-s -w" -o ../labelled . && cp ../labels.c.go c.go &&
		CGO_ENABLED=1 go build -o ../labelled.c .)
}
# labels_are FILE: each function's samples and waits have the labels that it was called with.
labels_are() {
	"$profiltool" dump --json "$1" >stacks.json && python3 - <<'EOP'
import json, sys
found, burnt = {}, {}
j = json.load(open("stacks.json"))
for s in j["stacks"]:
    names = [f[0] for f in s.get("functions") or [] if f]
    tags = s["labels"].get("tags", {})
    leaf = names[0] if names else ""
    if leaf.startswith("[") and leaf.endswith(": sleep]") and "main.main.func1" in names:
        leaf = "a sleep"
    found.setdefault(leaf, set()).add(tuple(tags.get(l) for l in ("route", "tenant", "thread", "empty")))
    burnt[leaf] = burnt.get(leaf, 0) + s["count"]
own = {("GET /orders/?", "17", None, None)}
print({k: v for k, v in found.items() if k in ("main.burnOrders", "main.burnNothing", "a sleep")})
cut = j.get("context_cut", 0)
print(burnt, cut)
# Its beginning and end have the labels, too, and so have waits.
sys.exit(not (found["main.burnOrders"] == found["a sleep"] == own and found["main.burnNothing"] == {(None,) * 4} and
    burnt["main.burnTooMuch"] <= cut < sum(burnt.values()) + j["wall"]["waits"] - burnt["main.burnOrders"] - burnt["main.burnNothing"]))
EOP
}
check "Go's labels: built" build_labels
for program in labelled labelled.c; do
	start_ready "./$program"
	check "Go's labels, $program: recorded" exits 0 until_used "$pid" 300 "$profiltool" record --wall \
		--max-overhead 0 -p "$pid" -F 999 -o "$program.pb.gz"
	stop "$pid"
	check "Go's labels, $program: samples and waits have those of pprof.Do; what is too much is counted" labels_are "$program.pb.gz"
done

# A version that is not known yet; the program itself does not mind.
sed 's/go1\.19\.8/go1.98.8/g' labelled >future && chmod 755 future
if cmp -s labelled future; then
	skip "Go's labels of an unknown version" "this go is not 1.19.8"
else
	start_ready ./future
	check "Go's labels of an unknown version: recorded" exits 0 until_used "$pid" 100 "$profiltool" record -g -p "$pid" -F 999
	check "Go's labels of an unknown version: said" says "future: the labels of this version of Go are not read"
	stop "$pid"
fi

# --- C in a Go program ---

mkdir mixed
cp module/go.mod mixed
cat >mixed/main.go <<'EOF_GO'
package main

// static __attribute__((noinline)) int in_c(int n) { int x = 1; while (n--) x = (x * 7) / (n | 3); return x; }
import "C"

//go:noinline
func inGo(n int) int { return int(C.in_c(C.int(n))) }

func main() { inGo(1000) }
EOF_GO
build_mixed() {
	(cd mixed && CGO_ENABLED=1 go build -o ../mixed.full .) && strip -g -o mixed.symbols mixed.full &&
		strip -o mixed.stripped mixed.full
}
# said FILE: what is reported of a sample at each address.
said() {
	python3 "$lines" profile "$1" said.prof && exits 0 "$profiltool" report --by line said.prof
}
check "cgo: built" build_mixed
check "cgo, with symbols: read" said mixed.symbols
check "cgo, with symbols: C's function has its name" grep -q " in_c " out
check "cgo, with symbols: Go's has its line" grep -qE "mixed/main.go +7 +main.inGo " out
check "cgo, stripped: read" said mixed.stripped
check "cgo, stripped: Go's function has its line" grep -qE "mixed/main.go +7 +main.inGo " out
check "cgo, stripped: C's has no name, and the reason is said" \
	grep -q "mixed.stripped: .*without symbols: stripped: only functions in Go have names$" err

# --- Hints ---

check "Go, unknown: patched" python3 "$lines" patch bare .gopclntab 0 4 $((0xfffffff2))
check "Go, unknown: its addresses" python3 "$lines" profile bare unknown.prof
check "Go, unknown: read" exits 0 "$profiltool" report unknown.prof
check "Go, unknown: the layout is said, and no debug package" \
	grep -q "without symbols: stripped, and its .gopclntab is of an unknown layout (0xfffffff2)$" err

finish
