#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# --inline: source lines and inlined functions of every address of small programs, compared with addr2line,
# for all variants of DWARF that compilers and packagers write; and corrupt DWARF.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
export CCACHE_DISABLE=1 # it may give a file the directory of an earlier run

lines=$top/tests/cli/lines.py
cd "$work" || exit 1

# --- Programs: C in two files, C++ with what it has for names ---

cat >chain.h <<'EOF_C'
static inline __attribute__((always_inline)) int leaf(int x)
{
	volatile int y = x;
	y += x * 3;
	return y;
}
EOF_C
cat >chain.c <<'EOF_C'
#include "chain.h"
static inline __attribute__((always_inline)) int middle(int x)
{
	int s = 0;
	for (int i = 0; i < 10; i++)
		s += leaf(x + i);
	return s;
}
__attribute__((noinline)) int outer(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += middle(i) + leaf(i);
	return s;
}
int main(int argc, char **argv)
{
	unsigned t = argc > 5;
	for (int i = 0; i < (argc > 1 ? 3000 : 1); i++)
		t += outer(10000);
	return t == 42 && argv;
}
EOF_C
cat >names.cc <<'EOF_CXX'
#include <algorithm>
#include <string>
#include <vector>
namespace shape {
template <class T> struct Box {
	T w, h;
	Box(T a, T b) : w(a), h(b) {}
	T area() const { return w * h; }
	template <class U> U scale(U by) const { return area() * by; }
};
namespace {
struct Hidden { int v; Hidden(int x) : v(x * 3) {} int twice() { return v * 2; } };
inline int secret(int x) { return Hidden(x).twice() + 1; }
}
extern "C" inline int plain_c(int x) { return x * 17; }
}
int sum(const std::vector<int> &v)
{
	int s = 0;
	std::for_each(v.begin(), v.end(), [&](int x) { s += shape::Box<int>(x, 2).scale<long>(3); });
	return s;
}
int main(int argc, char **argv)
{
	std::vector<int> v;
	for (int i = 0; i < 1000; i++)
		v.push_back(shape::secret(i * argc) + shape::plain_c(i));
	std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
	return sum(v) + std::string(argv[0]).size();
}
EOF_CXX

# What a window of 64 kB cannot hold: names in front, and the program that refers to them.
{
	echo 'volatile int g;'
	echo 'static inline __attribute__((always_inline)) int twice(int x) { return x * 2; }'
	echo 'int main(void) {'
	yes 'g += twice(g) * twice(g + 1);' | head -n 10
	for i in {1..1500}; do
		printf '#line %d "%0100d.c"\ng++;\n' "$i" "$i"
	done
	echo 'return 0; }'
} >long.c
cat >local.cc <<'EOF_LOCAL'
static inline __attribute__((always_inline)) int both(volatile int *p, int q) { return *p * q; }
int main(int argc, char **)
{
	volatile int g = argc;
	auto far = [&](auto x) __attribute__((noinline)) {
		return both(&g, x) + both(&g, argc) * both(&g, 5) - both(&g, 6) * both(&g, 7);
	};
	struct Own {
		static __attribute__((noinline)) int add(volatile int *p) { return both(p, 2); }
	};
	return far(1) + far(2L) + far(char(3)) + far(short(4)) + Own::add(&g);
}
EOF_LOCAL
{
	echo 'volatile int g;'
	echo '#line 1 "dead.c"'
	echo 'int dead(int x) {'
	yes 'g += x;' | head -n 3000
	echo 'return g; }'
	echo '#line 1 "used.c"'
	echo 'int main(void) { g = 3; return g; }'
} >left_out.c

same() {
	python3 "$lines" compare "$profiltool" "$@"
}

# made NAME COMMAND...: whether a program could be made; a skipped test when not.
made() {
	local name=$1
	shift
	"$@" >make.out 2>&1 && return
	skip "$name" "$(head -n 1 make.out)"
	return 1
}

# program NAME SOURCE COMPILER FLAG...: compares all addresses of such a program.
program() {
	local name=$1 source=$2
	shift 2
	made "$name" "$@" -o "$name" "$source" &&
		check "$name: as addr2line says" same "$work/$name" ${original:+"$original"}
}

program gcc-4 names.cc g++ -O2 -g -gdwarf-4
program gcc-5 names.cc g++ -O2 -g -gdwarf-5
program gcc-3 chain.c gcc -O2 -g -gdwarf-3 -gstrict-dwarf
program gcc-fixed chain.c gcc -O2 -g -no-pie
program gcc-sections names.cc g++ -O2 -g -ffunction-sections -Wl,--gc-sections
program gcc-long-4 long.c gcc -g -gdwarf-4
program gcc-local local.cc g++ -O2 -g
program gcc-types names.cc g++ -O2 -g -fdebug-types-section
program gcc-64 chain.c gcc -O2 -g -gdwarf64
program gcc-packed names.cc g++ -O2 -g -gz=zlib
program gcc-packed-old names.cc g++ -O2 -g -gz=zlib-gnu
program gcc-lto names.cc g++ -O2 -g -flto=1
program gcc-split-4 names.cc g++ -O2 -g -gsplit-dwarf -gdwarf-4
program gcc-split-5 names.cc g++ -O2 -g -gsplit-dwarf -gdwarf-5
program clang-4 names.cc clang++ -O2 -g -gdwarf-4
program clang-5 names.cc clang++ -O2 -g -gdwarf-5
# LLVM 14 misses functions with several ranges in a .dwo file; the code is the same as unsplit.
original=$work/clang-5 program clang-split names.cc clang++ -O2 -g -gsplit-dwarf -gdwarf-5

# addr2line takes what the linker has left out, which then begins at 0, for what is there.
left_out() {
	python3 "$lines" profile "$work/left_out" left_out.prof &&
		"$profiltool" report --by line -E 0 left_out.prof >left_out.txt &&
		grep -q 'used\.c  *1 ' left_out.txt && ! grep dead left_out.txt
}
for version in 4 5; do
	made "left out by the linker" gcc -O2 -g "-gdwarf-$version" -ffunction-sections \
		-Wl,--gc-sections -o left_out left_out.c &&
		check "DWARF $version: what the linker left out is not reported" left_out
done

cat >main.rs <<'EOF_RUST'
mod shapes {
    pub struct Square(pub u64);
    impl Square {
        #[inline(always)]
        pub fn area(&self) -> u64 { self.0.wrapping_mul(self.0) }
    }
}
#[inline(never)]
fn total(n: u64) -> u64 { (0..n).map(|i| shapes::Square(i ^ 5).area()).filter(|a| a % 3 == 0).sum() }
fn main() { println!("{}", total(std::env::args().count() as u64 * 1000)); }
EOF_RUST
rust() {
	made rust rustc -O -g -o rust main.rs || return
	check "rust: a closure and a method have their names" rust_names
}
rust_names() {
	python3 "$lines" profile "$work/rust" rust.prof &&
		"$profiltool" convert --inline rust.prof rust.folded &&
		grep -q 'main::total;.*main::shapes::Square::area' rust.folded
}
rust

# --- Debug information that is elsewhere ---

separate() {
	cp gcc-5 whole && objcopy --only-keep-debug whole apart.debug &&
		objcopy --strip-all --add-gnu-debuglink=apart.debug whole apart
}
made "a separate file" separate && check "in a separate file" same "$work/apart" "$work/whole"

multifile() {
	cp gcc-4 dwz-1 && cp gcc-4 dwz-2 && dwz -m dwz.common dwz-1 dwz-2
}
if made "by dwz" multifile; then
	check "common parts moved by dwz" same "$work/dwz-1" "$work/gcc-4"
	cp dwz.common dwz.kept
	python3 "$lines" patch dwz.common .note.gnu.build-id 16 8 42
	python3 "$lines" profile "$work/dwz-1" dwz.prof
	check "a common file of another build: no error" exits 0 "$profiltool" convert --inline \
		dwz.prof dwz.folded
	check "it is not taken" says "file of dwz(1)"
	mv dwz.kept dwz.common
fi

moved() {
	mkdir -p objects && cp names.cc objects && (
		cd objects && "$1" -O2 -g -gsplit-dwarf "-gdwarf-$2" -c names.cc &&
			"$1" names.o -o ../packed && "$3" -e ../packed -o ../packed.dwp
	)
}
# package WHOSE COMPILER VERSION DWP: the same code without all that is gcc-VERSION or clang-VERSION.
package() {
	made "$1 .dwp" moved "$2" "$3" "$4" || return
	mv objects/names.dwo moved.dwo
	check "$1 .dwp" same "$work/packed" "$work/${2%++}-$3"
	rm -f packed.dwp
	python3 "$lines" profile "$work/packed" packed.prof
	cp moved.dwo names.dwo
	"$profiltool" convert --inline packed.prof beside.folded 2>/dev/null
	check "$1 .dwo beside the program" grep -q 'sum(.*;.*scale' beside.folded
	{ cat names.cc && echo 'int another;'; } >objects/other.cc
	(cd objects && "$2" -O2 -g -gsplit-dwarf "-gdwarf-$3" -c other.cc)
	cp objects/other.dwo names.dwo
	"$profiltool" convert --inline packed.prof other.folded 2>/dev/null
	check "$1 .dwo of another build is not taken" test "$(grep -c scale other.folded)" -eq 0
	echo >names.dwo
	check "$1 .dwo that cannot be read: no error" exits 0 "$profiltool" convert --inline \
		packed.prof unread.folded
	cp moved.dwo names.dwo && python3 "$lines" zstd names.dwo
	"$profiltool" convert --inline packed.prof zstd.folded 2>/dev/null
	check "$1 .dwo compressed with zstd" grep -q 'sum(.*;.*scale' zstd.folded
	rm names.dwo
	check "$1 .dwo that is missing: no error" exits 0 "$profiltool" convert --inline packed.prof \
		missing.folded
	check "names are those of symbols" grep -q '^sum(' missing.folded
	check "names are those of symbols: not of what is inlined" \
		test "$(grep -c scale missing.folded)" -eq 0
}
ln -s gcc-4 g-4
package "GNU's" g++ 4 dwp
package "LLVM's" clang++ 5 "$(command -v llvm-dwp || echo llvm-dwp-14)"

# --- What is printed ---

gcc -O2 -g chain.c -o chain
"$profiltool" record --no-inline -F 999 -o chain.pb.gz -- "$work/chain" many >/dev/null 2>&1
check "record --no-inline: none in the file" test \
	"$("$profiltool" report --json chain.pb.gz 2>/dev/null | grep -c '"leaf"')" -eq 0
"$profiltool" convert chain.pb.gz bare.prof 2>/dev/null
check "report: functions by symbols" grep -qE ' outer +chain$' <("$profiltool" report bare.prof 2>&1)
check "no inlined ones" test "$("$profiltool" report bare.prof | grep -c 'leaf')" -eq 0
check "--inline: those that are inlined" grep -qE ' leaf +chain$' \
	<("$profiltool" report --inline bare.prof 2>&1)
check "--by line implies it" grep -qE 'chain\.h +4 +leaf +chain$' \
	<("$profiltool" report --by line bare.prof 2>&1)
check "--by source implies it" grep -qE 'chain\.h +chain$' <("$profiltool" report --by source bare.prof 2>&1)
check "a file with functions alone gets its lines" grep -qE 'chain\.h +4 +leaf +chain$' \
	<("$profiltool" report --by line chain.pb.gz 2>&1)
check "diff --by line" grep -q 'chain\.h' <("$profiltool" diff --by line bare.prof chain.pb.gz 2>&1)
"$profiltool" record -F 999 -o inline.pb.gz -- "$work/chain" many >recorded.txt 2>/dev/null
check "record -o: the file holds them" grep -q '"leaf"' \
	<("$profiltool" report --json inline.pb.gz 2>&1)
check "record -o: the file holds them: so does the table" grep -qE ' leaf +chain$' recorded.txt
check "as report prints it" diff <(grep -v '^ready' recorded.txt) <("$profiltool" report inline.pb.gz 2>/dev/null)
"$profiltool" record -F 999 -f callgrind -o inline.callgrind -- "$work/chain" many >/dev/null 2>&1
check "of callgrind, too" grep -q 'fl=.*chain\.h' inline.callgrind
"$profiltool" record -F 999 -- "$work/chain" many >recorded.txt 2>/dev/null
check "without a file, functions are those of symbols" test "$(grep -cE ' leaf +chain$' recorded.txt)" -eq 0
"$profiltool" record --inline -F 999 -- "$work/chain" many >recorded.txt 2>/dev/null
check "unless --inline asks for more" grep -qE ' leaf +chain$' recorded.txt
check "--inline --no-inline is refused" exits 2 "$profiltool" record --inline --no-inline -- true

# listed LINE COMMAND...: whether what the command lists has samples in this source line or what it calls.
listed() {
	local text=$1
	shift
	"$@" 2>/dev/null >listed.txt
	awk -v text="$text" 'index($0, text) && $2 + 0 > 0 { found = 1 } END { exit !found }' listed.txt && return
	cat listed.txt
	return 1
}
if command -v go >/dev/null; then
	list=(env HOME="$work" go tool pprof -list)
	check "go tool pprof -list: lines of a function" listed "s += leaf(x + i)" \
		"${list[@]}" '^middle$' inline.pb.gz
	check "of an inlined one" listed "y += x * 3" "${list[@]}" '^leaf$' inline.pb.gz
	check "of an inlined one: of who calls it" grep -q 'chain\.c$' <("${list[@]}" '^outer$' inline.pb.gz 2>/dev/null)
	mkdir away && mv chain away
	check "without the program" listed "y += x * 3" "${list[@]}" '^leaf$' inline.pb.gz
	mv away/chain .
else
	skip "go tool pprof -list" "go is not installed"
fi
if command -v google-pprof >/dev/null; then
	# It does not know of inlined functions.
	cat >plain.c <<'EOF_C'
__attribute__((noinline)) unsigned long work(unsigned long n)
{
	unsigned long sum = 0;
	for (unsigned long i = 1; i < n; i++)
		sum += n / i;
	return sum;
}
int main(void)
{
	return work(50000000) == 1;
}
EOF_C
	gcc -O1 -g plain.c -o plain
	"$profiltool" record -F 999 -q -o list.prof -- "$work/plain" >/dev/null 2>&1
	check "google-pprof --list: lines of a recording in its format" listed "sum += n / i" \
		google-pprof --list=work plain list.prof
else
	skip "google-pprof --list" "google-pprof is not installed"
fi
mv chain chain.away
check "and needs no program" grep -qE 'chain\.h +4 +leaf +chain$' \
	<("$profiltool" report --by line inline.pb.gz 2>&1)
gcc -O1 -g chain.c -o chain -Wl,--build-id=0x1234
check "another build gives no lines" test \
	"$("$profiltool" report --by line chain.pb.gz 2>/dev/null | grep -c 'chain\.h')" -eq 0

# --- Broken debug information ---

broken() {
	cp "$1" broken && python3 "$lines" corrupt "$profiltool" "$work/broken" "${2:-$work/broken}" "$3"
}
check "broken: DWARF 4" broken gcc-4 "" 40
check "broken: DWARF 5" broken gcc-5 "" 40
check "broken: packed" broken gcc-packed "" 20
[ -e clang-5 ] && check "broken: clang's" broken clang-5 "" 40
[ -e dwz-1 ] && check "broken: dwz's common file" broken dwz-1 "$work/dwz.common" 20

# A table of 1 GB that is said to be in a few bytes.
cp gcc-packed bomb
python3 "$lines" patch bomb .debug_info 8 8 $((1 << 40))
python3 "$lines" profile "$work/bomb" bomb.prof
check "a bomb: names by symbols" exits 0 "$profiltool" convert --inline bomb.prof bomb.folded
check "a bomb: the reason is reported" says "debug information is corrupt"
check "a bomb: the names are there" grep -q '^main ' bomb.folded

# --- zstd, whose library is loaded when it is wanted ---

for version in 4 5; do
	cp "gcc-$version" "zstd-$version" && python3 "$lines" zstd "zstd-$version"
	check "zstd, DWARF $version" same "$work/zstd-$version" "$work/gcc-$version"
done
check "broken: zstd" broken zstd-5 "" 20
# Not where profiltool itself does not start without it: libelf of elfutils 0.192, in Debian 13, needs it.
if ! ldd "$profiltool" | grep -q libzstd; then
	mkdir -p no_zstd && echo none >no_zstd/libzstd.so.1
	python3 "$lines" profile "$work/zstd-5" zstd.prof
	check "no libzstd: names by symbols" exits 0 env LD_LIBRARY_PATH="$work/no_zstd" \
		"$profiltool" convert --inline zstd.prof zstd.folded
	check "no libzstd: the reason is reported" says "compressed with zstd, and there is no libzstd.so.1"
	check "no libzstd: the hint names the package" says "install libzstd1 (Debian)"
	check "no libzstd: no other reason is reported" test "$(grep -c corrupt "$work/err")" -eq 0
	check "no libzstd: the names are there" grep -q '^main ' zstd.folded
fi

finish
