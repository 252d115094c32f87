#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs built with gcc -pg, with libprofil-gmon: the histogram has the time of all threads, the call
# graph all calls, and gprof reads the file.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

source=$top/tests/progs
lib=$build/lib
preload=$lib/libprofil-gmon.so
unset GMON_OUT_PREFIX PROFIL_BACKEND PROFIL_HZ
if ! gprof --version >/dev/null 2>&1; then
	skip "gcc -pg" "gprof is not installed"
	finish
fi

# build NAME SOURCE OPTION...: compiles with -pg into a new directory, $work/NAME, where it also runs.
# Functions begin at multiples of 16, for libc's runtime takes callers to be there.
build() {
	local name=$1 file=$2
	shift 2
	mkdir -p "$work/$name"
	"${CC:-gcc}" -pg -O2 -fno-inline -fno-optimize-sibling-calls -falign-functions=16 \
		-D_GNU_SOURCE -w "$file" -o "$work/$name/$name" "$@"
}

# run NAME ARGUMENT...: runs it with libprofil-gmon; its output is `out` and `err` in its directory.
run() {
	local name=$1
	shift
	run_with "$name" env LD_PRELOAD="$preload" "./$name" "$@"
}

# run_with NAME COMMAND...: runs a command in the directory of NAME.
run_with() {
	local directory=$work/$1
	shift
	rm -f "$directory"/*.out* "$directory"/out "$directory"/err
	(cd "$directory" && exec "$@" >out 2>err)
}

# gmon EXPRESSION NAME [FILE]: evaluates a Python expression over what gprof says of the file of the
# program, gmon.out. Names:
#   calls(F), seconds(F)             calls and seconds of a function; 0 if it is not there
#   total                            seconds of all
#   takes(SECONDS, TICKS)            as in recorded() of lib.sh
#   ticks, ticks_of(F)               in the histogram, and those of a function by gprof's percentage
#   said(F)                          how often the program says that it called it
#   said_right                       that these are all as gprof has them
#   cpu                              seconds of CPU time that the program says it took
#   rate                             ticks per second, in the file
gmon() {
	gprof -b -p "$work/$2/$2" "$work/$2/${3:-gmon.out}" >"$work/flat" || return
	python3 -c '
import re, struct, sys
flat, said_calls, cpu = {}, {}, 0
for line in open(sys.argv[2]):
	f = line.split()
	if len(f) >= 4 and re.match(r"[0-9.]+$", f[0]):
		called = len(f) >= 7 and re.match(r"[0-9.]+$", f[4])
		name = " ".join(f[6:] if called else f[3:])
		flat[name] = float(f[0]), float(f[2]), int(f[3]) if called else 0
for line in open(sys.argv[3]):
	f = line.split()
	if f and f[0] == "calls":
		said_calls[f[1]] = int(f[2])
	elif f and f[0] == "cpu_ns":
		cpu = int(f[1]) / 1e9
none = 0, 0, 0
def seconds(name):
	return flat.get(name, none)[1]
def calls(name):
	return flat.get(name, none)[2]
def said(name):
	return said_calls[name]
total = sum(f[1] for f in flat.values())
said_right = said_calls != {} and all(calls(f) == n for f, n in said_calls.items())
data = open(sys.argv[4], "rb").read()
bits = 32 if open(sys.argv[5], "rb").read(5)[4] == 1 else 64
ticks, at = 0, 20
while at < len(data):
	if data[at] == 0: # a histogram; else an arc
		at += 1 + 2 * bits // 8
		cells, rate = struct.unpack_from("<2I", data, at)
		ticks += sum(struct.unpack_from("<%dH" % cells, data, at + 24))
		at += 24 + 2 * cells
	else:
		at += 1 + 2 * bits // 8 + 4
def ticks_of(name):
	return round(flat.get(name, none)[0] * ticks / 100)
def takes(seconds, count=None):
	return seconds / 4 <= (ticks if count is None else count) / rate <= 1.75 * seconds + 3 / rate
value = eval(sys.argv[1])
if not value:
	print(flat, said_calls, cpu, rate)
sys.exit(not value)' "$1" "$work/flat" "$work/$2/out" "$work/$2/${3:-gmon.out}" "$work/$2/$2"
}

shares="min(map(ticks_of, ('burn_sixty', 'burn_thirty', 'burn_ten'))) > 0"

# silent NAME: whether the last run of it had no message, but of ticks that the machine's pauses have made one.
silent() {
	! grep -v ' ticks that were due did not come$' "$work/$1/err"
}

# one_line NAME TEXT: whether its only message is one line with the text.
one_line() {
	cat "$work/$1/err"
	[ "$(wc -l <"$work/$1/err")" -eq 1 ] && grep -qF -- "$2" "$work/$1/err"
}

# graph NAME: the arcs with their counts, as gprof has them: "CALLER CALLEE CALLS".
graph() {
	gprof -b -q "$work/$1/$1" "$work/$1/gmon.out" | python3 -c '
import re, sys
def name(text):
	return re.sub(r" <cycle \d+>", "", text)
above, callee = [], None
for line in sys.stdin:
	f = line.split()
	if line.startswith("---"):
		above, callee = [], None
	elif line.startswith("["):
		callee = name(re.sub(r".*  +(\S.*) \[\d+\]$", r"\1", line.rstrip()))
		for caller, calls in above:
			print(caller, callee, calls)
	elif callee is None and len(f) >= 4 and re.match(r"\d+(/\d+)?$", f[2]):
		above.append((name(" ".join(f[3:-1])), f[2]))' | sort
}

# --- What it counts ---

check "build" build calls "$source/gmon_calls.c"
export PROFIL_HZ=4999
check "one thread" run calls 60000
check "no message" silent calls
check "each call is counted" gmon "said_right" calls
check "the time is where it is burnt" gmon "$shares" calls
check "all of it" gmon "takes(cpu)" calls
check "the rate is the true one" gmon "rate == 4999" calls
cp "$work/calls/gmon.out" "$work/calls/first"

check "8 threads" run calls 8000 8
check "8 threads: each call is counted" gmon "said_right" calls
check "8 threads: all of their time" gmon "$shares" calls

check "a signal handler" run calls 60000 0 signal
check "a signal handler: each call is counted" gmon "said_right and said('in_handler') > 100" calls
check "a signal handler and threads" run calls 8000 4 signal
check "a signal handler and threads: each call is counted" gmon "said_right" calls

unset PROFIL_HZ
check "the rate is 100 by default" run calls 10000
check "the rate is 100 by default: in the file" gmon "rate == 100" calls

# gprof takes the several records of different runs together.
gprof -b -p "$work/calls/calls" "$work/calls/gmon.out" >"$work/flat"
cp "$work/calls/gmon.out" "$work/calls/second"
sums() {
	local once twice

	once=$(gprof -b -p "$work/calls/calls" "$work/calls/first" | awk '$NF == "burn_ten" { print $4 }')
	twice=$(gprof -b -p "$work/calls/calls" "$work/calls/first" "$work/calls/first" |
		awk '$NF == "burn_ten" { print $4 }')
	[ -n "$once" ] && [ "$twice" -eq $((2 * once)) ]
}
check "gprof adds up files" sums

# --- The same call graph as libc's runtime ---

same_graph() {
	local name=$1
	shift
	rm -f "$work/$name/gmon.out"
	run_with "$name" "./$name" "$@" && graph "$name" >"$work/libc.graph" &&
		cp "$work/$name/out" "$work/libc.out" && run "$name" "$@" &&
		graph "$name" >"$work/our.graph" && [ -s "$work/our.graph" ] &&
		diff "$work/libc.graph" "$work/our.graph"
}

check "the call graph is as libc's" same_graph calls 3000

cat >"$work/shapes.cpp" <<'END'
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct shape {
	virtual ~shape() {}
	virtual int area(int) const = 0;
};
struct square : shape {
	int area(int n) const override { return n * n; }
};
struct strip : shape {
	int area(int n) const override { return n; }
};
template <typename T> T twice(T value) { return value + value; }
struct initialised {
	int value;
	initialised() : value(twice(21)) {}
} before_main;

int odd_throws(int n)
{
	if (n % 2)
		throw std::runtime_error("odd");
	return n;
}

int main()
{
	std::vector<std::unique_ptr<shape>> shapes;
	std::map<std::string, int> map;
	int sum = before_main.value, caught = 0;

	for (int i = 0; i < 1000; i++) {
		if (i % 3)
			shapes.emplace_back(new square);
		else
			shapes.emplace_back(new strip);
		sum += shapes.back()->area(i % 10);
		map[std::to_string(i % 50)] += twice(i);
		try {
			sum += odd_throws(i);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	std::sort(shapes.begin(), shapes.end(), [](auto &a, auto &b) { return a->area(3) < b->area(3); });
	std::function<double(double)> f = [](double x) { return twice(x); };
	printf("%d %d %zu %.1f\n", sum, caught, map.size(), f(1.5));
}
END
if g++ --version >/dev/null 2>&1; then
	CC=g++ check "build C++" build shapes "$work/shapes.cpp"
	check "C++: the call graph is as libc's" same_graph shapes
	check "C++: it works as ever" cmp "$work/libc.out" "$work/shapes/out"
	check "C++: no message" silent shapes
else
	skip "C++" "g++ is not installed"
fi

# --- Ways to build ---

# variant NAME OPTION...: builds and runs it; everything is counted.
variant() {
	local name=$1
	shift
	check "$name: build" build "$name" "$source/gmon_calls.c" "$@"
	check "$name: run" run "$name" 20000 2
	check "$name: no message" silent "$name"
	check "$name: each call is counted" gmon "said_right" "$name"
	check "$name: the time is where it is burnt" gmon "$shares" "$name"
}

# registers NAME OPTION...: what functions get in registers arrives.
registers() {
	local name=registers-$1
	shift
	build "$name" "$source/gmon_registers.c" "$@" && run "$name" && cat "$work/$name/out" &&
		grep -qx good "$work/$name/out" && gmon "calls('integers') == 1" "$name"
}

export PROFIL_HZ=4999
variant fentry -mfentry
variant fixed -no-pie
check "what is in registers arrives" registers plain
check "what is in registers arrives: -mfentry" registers fentry -mfentry
check "what is in registers arrives: -O0" registers unoptimised -O0
check "what is in registers arrives: aligned stacks" registers realigned -mstackrealign

# Linked instead of preloaded.
check "linked: build" build linked "$source/gmon_calls.c" -L"$lib" -lprofil-gmon \
	-Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
check "linked: run" run_with linked ./linked 20000 2
check "linked: all is counted" gmon "said_right and $shares" linked
unset PROFIL_HZ

# --- Through profild: ordinary users and static programs ---

daemon=
if [ -x "$build/profild" ]; then
	"${pdeathsig[@]}" "$build/profild" --socket "$work/socket" >"$work/profild.out" 2>&1 &
	daemon=$!
	note_started "$daemon"
	export PROFIL_SOCKET=$work/socket
	check "profild listens" wait_for listens "$work/socket"
fi

# run_in_place ARGUMENT...: runs the program in the directory `user`, as an unprivileged user.
run_in_place() {
	(cd "$work/user" && exec setpriv --reuid=65534 --regid=65534 --clear-groups \
		env LD_PRELOAD="$work/open/libprofil-gmon.so" ./user "$@" >out 2>err)
}

ordinary=
if [ "$(id -u)" -eq 0 ] && setpriv --version >/dev/null 2>&1; then
	ordinary=yes
	mkdir "$work/open" "$work/user"
	cp -L "$lib"/*.so* "$work/open"
	cp "$work/calls/calls" "$work/user/user"
	chmod 755 "$work" "$work/open"
	chown 65534:65534 "$work/user"
fi
if [ "$ordinary" ] && [ -x "$build/profild" ]; then
	export PROFIL_HZ=4999
	check "an ordinary user: run" run_in_place 8000 4
	check "an ordinary user: no message" silent user
	check "an ordinary user: all is counted" gmon "said_right and $shares" user
	unset PROFIL_HZ
else
	skip "an ordinary user" "not root, no setpriv, or no profild"
fi

for option in -static -static-pie; do
	name=${option#-}
	check "$option: build, without a word of the linker" exits 0 build "$name" \
		"$source/gmon_calls.c" "$option" -L"$lib" -lprofil
	check "$option: nothing is said" test ! -s "$work/err"
	check "$option: with profild" run_with "$name" env PROFIL_HZ=4999 "./$name" 20000 2
	check "$option: with profild: no message" silent "$name"
	check "$option: with profild: all is counted" \
		gmon "said_right and $shares" "$name"
	check "$option: without profild" run_with "$name" env PROFIL_SOCKET=/nowhere "./$name" 2000
	check "$option: without profild: it says that there is no histogram" \
		one_line "$name" "no histogram"
	check "$option: without profild: each call is counted" gmon "said_right and total == 0" "$name"
done

# --- 32-bit programs ---

if ! [ -e "$build/lib32/libprofil-gmon.so" ]; then
	skip "-m32" "make lib32 has not been run"
elif runs_32_bit "-m32"; then
	preload=$build/lib32/libprofil-gmon.so
	export PROFIL_HZ=4999
	variant m32 -m32
	variant m32-fixed -m32 -no-pie -fno-pic
	variant m32-fentry -m32 -mfentry -no-pie -fno-pic
	unset PROFIL_HZ
	check "-m32: the call graph is as libc's" same_graph m32 3000
	check "-m32: what is in registers arrives" registers m32 -m32 -msse2
	check "-m32: what is in registers arrives: fixed" registers m32-fixed -m32 -msse2 -no-pie \
		-fno-pic
	check "-m32: libc's ticks" run_with m32 env PROFIL_BACKEND=libc LD_PRELOAD="$preload" ./m32 60000
	check "-m32: libc's ticks: all is counted" \
		gmon "said_right and ticks > 0 and rate == 100" m32
	check "-m32 -static: build" build m32-static "$source/gmon_calls.c" -m32 -static \
		-L"$build/lib32" -lprofil
	check "-m32 -static: run" run_with m32-static env PROFIL_HZ=4999 ./m32-static 20000 2
	check "-m32 -static: all is counted" \
		gmon "said_right and $shares" m32-static
	preload=$lib/libprofil-gmon.so
fi

# --- Processes ---

# files PREFIX: how many there are.
files() {
	set -- "$1".*
	[ -e "$1" ] && echo $# || echo 0
}

export PROFIL_HZ=4999
fork_run() {
	rm -f "$work/calls"/counts.*
	GMON_OUT_PREFIX=counts run calls 20000 0 fork
}
check "fork" fork_run
fork_counts() {
	local file parent='' child=''

	for file in "$work/calls"/counts.*; do
		if gmon "said_right" calls "${file##*/}"; then
			parent=$file
		elif gmon "calls('burn_ten') == 2 * said('burn_ten')" calls "${file##*/}"; then
			child=$file
		fi
	done
	[ -n "$parent" ] && [ -n "$child" ] &&
		gmon "$shares" calls "${parent##*/}" &&
		gmon "$shares" calls "${child##*/}"
}
check "fork: a file for each" test "$(files "$work/calls/counts")" -eq 2
check "fork: no gmon.out" test ! -e "$work/calls/gmon.out"
check "fork: the child goes on from the parent's counts" fork_counts
check "fork: no message" silent calls

unset PROFIL_HZ

# A program that is not built with -pg.
check "not for -pg: run" run_with calls env LD_PRELOAD="$preload" /bin/sh -c 'echo well'
check "not for -pg: it notices nothing" \
	test "$(cat "$work/calls/out" "$work/calls/err")$(files "$work/calls/gmon")" = well0

# --- moncontrol(), monstartup(), _mcleanup() ---

export PROFIL_HZ=999
check "control: build" build control "$source/gmon_control.c"
check "paused: run" run control pause
check "paused: neither calls nor time" gmon \
	"calls('off') == seconds('off') == 0 and calls('before') == calls('after') == 1" control
check "paused: what was before and after is there" \
	gmon "ticks_of('before') > 0 and ticks_of('after') > 0" control
check "started anew: run" run control restart
check "started anew: from zero" gmon "calls('dropped') == seconds('dropped') == 0 and \
	calls('kept') == 1 and ticks_of('kept') > 0" control
check "ended twice: run" run control twice
check "ended twice: the first file" gmon "calls('early') == 1 and ticks_of('early') > 0 and \
	calls('late') == seconds('late') == 0" control first.out
check "ended twice: the second" gmon "calls('late') == 1 and ticks_of('late') > 0 and \
	calls('early') == seconds('early') == 0" control
check "a range of its own: run" run control part
check "a range of its own: its time alone" gmon "ticks_of('kept') == ticks" control
check "a range of its own: calls from it alone" \
	gmon "calls('kept') == 0 and calls('cpu_seconds') > 1" control
check "paused often: run" run control often
check "paused often: each call is counted" \
	gmon "calls('kept') == 1000 and calls('off') == 0" control
check "paused often: the time too, though each stretch is shorter than a tick's period" \
	gmon "seconds('kept') > 0.05 and seconds('off') == 0" control
check "no message" silent control
mkdir "$work/own"
cp "$progs/gmon_control" "$work/own/own"
check "started without -pg: run" run own own
check "a program that was started without -pg counts" gmon "ticks_of('kept') > 0" own
gcc -shared -fPIC -O1 -o "$work/forbid_malloc.so" "$top/tests/forbid_malloc.c" || exit
check "started, paused and continued in a signal handler: run" \
	run_with own env LD_PRELOAD="$work/forbid_malloc.so:$preload" ./own handler
check "started, paused and continued in a signal handler: it counts" \
	gmon "ticks_of('kept') > 0" own
unset PROFIL_HZ

# --- Back ends ---

check "libc's ticks: run" run_with calls env PROFIL_BACKEND=libc LD_PRELOAD="$preload" ./calls 100000
check "libc's ticks: a histogram, too" gmon "said_right and ticks > 0 and rate == 100" calls
check "libc's ticks: no message" silent calls
check "no ticks: run" run_with calls env PROFIL_BACKEND=kmod LD_PRELOAD="$preload" ./calls 1000
if [ ! -e /dev/profil ]; then
	check "no ticks: it says why" one_line calls "libprofil-gmon: no histogram: "
	check "no ticks: each call is counted" gmon "said_right and total == 0" calls
fi

# --- With files of the C library's runtime ---

check "glibc's file: run" run_with calls ./calls 100000
mv "$work/calls/gmon.out" "$work/calls/glibc.gmon"
check "ours: run" run calls 100000
summed() {
	cd "$work/calls" && gprof -s calls gmon.out glibc.gmon &&
		gprof -b -p calls gmon.sum >"$work/calls/sum"
	local code=$?
	cd - >/dev/null && return "$code"
}
check "gprof -s adds up both" summed
check "gprof -s adds up both: the calls of both" \
	gmon "said_calls and all(calls(f) == 2 * n for f, n in said_calls.items())" calls gmon.sum
rm -f "$work/calls/gmon.sum" "$work/calls/glibc.gmon"

# --- The file ---

mode_of() {
	(umask "$2" && run calls 10) && [ "$(stat -c %a "$work/calls/gmon.out")" = "$1" ]
}
check "the file's mode" mode_of 644 022
check "the file's mode: another umask" mode_of 600 077
check "nothing else is left" test "$(files "$work/calls/gmon")" -eq 1

check "a prefix without a directory: run" run_with calls env GMON_OUT_PREFIX=nowhere/counts \
	LD_PRELOAD="$preload" ./calls 10
check "a prefix without a directory: reported" one_line calls \
	": No such file or directory; writing gmon.out"
check "a prefix without a directory: gmon.out instead" gmon "said_right" calls

# A file with a name and a link to it.
link_stays() {
	echo kept >"$work/calls/target" && ln -s target "$work/calls/gmon.out" &&
		(cd "$work/calls" && LD_PRELOAD="$preload" ./calls 10 >out 2>err) &&
		grep -qx kept "$work/calls/target" && gmon "said_right" calls
}
rm -f "$work/calls/gmon.out"
check "what a symbolic link leads to is not written over" link_stays
check "no message" silent calls

# Runs it in a directory that is a file system without a free block; prints the exit status and the directory's files.
in_small_folder() {
	# shellcheck disable=SC2016 # the inner shell expands it
	unshare -m sh -c 'mount -t tmpfs -o size=4k tmpfs "$1" && cd "$1" && shift || exit
		head -c 4096 /dev/zero >full
		"$@" >/dev/null; echo $?; ls -A -I full' sh "$work/small" \
		env LD_PRELOAD="$preload" "$work/calls/calls" 10 2>"$work/calls/err"
}
if unshare -m true 2>/dev/null; then
	mkdir "$work/small"
	check "a full disk: the program does not notice, and no half of a file is left" \
		test "$(in_small_folder)" = 0
	check "a full disk: reported" one_line calls "cannot write gmon.out: No space left on device"
else
	skip "a full disk" "mounts cannot be kept apart"
fi

# Directories in which an unprivileged program cannot create a file.
if [ "$ordinary" ]; then
	chown 0:0 "$work/user"
	rm -f "$work/user"/gmon.out*
	touch "$work/user"/{out,err}
	chmod 666 "$work/user"/{out,err}
	check "a directory of others: the program does not notice" run_in_place 10
	check "a directory of others: reported" one_line user "cannot write gmon.out: Permission denied"
	touch "$work/user/gmon.out"
	chmod 666 "$work/user/gmon.out"
	check "a directory of others, with a file for it: run" run_in_place 10
	check "a directory of others, with a file for it: it is written" gmon "said_right" user
	check "a directory of others, with a file for it: no message" silent user
else
	skip "a directory of others" "not root, or no setpriv"
fi

[ -z "$daemon" ] || stop "$daemon"
finish
