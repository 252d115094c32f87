#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run: a program that calls profil(2) gets libprofil and is otherwise unchanged; programs that cannot be
# preloaded are reported before anything runs.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2016,SC2317 # other shells expand; functions are called by check
. "$(dirname "$0")/../lib.sh"

run=("$profiltool" run)
legacy=$progs/run_legacy

# A tree of its own, which every user can read wherever the build is.
tree=$work/tree
chmod 711 "$work"
mkdir "$tree"
cp -r "$profiltool" "$build/lib" "$tree/"
[ ! -d "$build/lib32" ] || cp -r "$build/lib32" "$tree/"
cp "$legacy" "$tree/legacy"
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# script NAME INTERPRETER LINE...: makes an executable script in $work.
script() {
	local name=$1 interpreter=$2
	shift 2
	printf '%s\n' "#!$interpreter" "$@" >"$work/$name"
	chmod 755 "$work/$name"
}

# compile FILE CODE OPTION...: a C program that is this one line.
compile() {
	local file=$1 code=$2
	shift 2
	gcc -x c "$@" -o "$file" - <<<"$code" 2>/dev/null
}

# prints TEXT COMMAND...: whether it prints this and nothing else, and ends well.
prints() {
	local text=$1 code
	shift
	code=$(status "$@")
	[ "$code" = 0 ] && [ "$(cat "$work/out")" = "$text" ] && return
	echo "exit status $code, printed: $(cat "$work/out")"
	cat "$work/err"
	return 1
}

# refuses TEXT HINT COMMAND...: succeeds if it is not run: status 1, this message and hint, no output.
refuses() {
	local text=$1 mend=$2
	shift 2
	exits 1 "${run[@]}" "$@" && says "$text" && says "$mend" && test ! -s "$work/out"
}

# counted LEAST FILE: whether the legacy program counted as much, in ticks for 100 of what was due at
# the rate of 1000 Hz at least, with the libprofil that is FILE. At the C library's 100 Hz it is 10, and where the host
# takes the CPU, a part of what is due.
counted() {
	awk -v least="$1" -v file="$2" '
		{ is[$1] = $2 }
		END {
			due = is["cpu_ns"] / 1e6
			print is["counts"] " of " due " by " is["profil"] ", SIGPROF " is["SIGPROF"]
			exit !(is["counts"] * 100 >= due * least && is["profil"] == file)
		}' "$work/out"
}

# --- A program that calls profil() ---

check "a legacy program: succeeds" exits 0 "${run[@]}" --hz 1000 -- "$legacy" 1
check "a legacy program: counted by libprofil, at the rate asked for" \
	counted 25 "$build/lib/libprofil.so.1"
check "a legacy program: its signals are its own" grep -qx 'SIGPROF default' "$work/out"
check "without --: succeeds" exits 0 "${run[@]}" --hz 1000 "$legacy" 1
check "without --: counted" counted 25 "$build/lib/libprofil.so.1"
check "--backend: succeeds" exits 0 "${run[@]}" --backend bpf -v "$legacy" 0.1
# sum_line BACKEND HZ: whether the last line of its messages is the sum of the run of the legacy program whose output is
# in $work/out: the counts are of these ticks, the ticks roughly of this CPU time, and that includes what it has
# used.
sum_line() {
	tail -n 1 "$work/err" | awk -v backend="$1" -v hz="$2" -v counts="$(sed -n 's/^counts //p' "$work/out")" \
		-v cpu="$(sed -n 's/^cpu_ns //p' "$work/out")" '
		{ print }
		!/^profil: [a-z]+: [0-9]+ ticks at [0-9]+ Hz in [0-9.]+ s of CPU time$/ { exit 1 }
		{
			due = $9 * hz
			exit !($2 == backend ":" && $6 == hz && $3 >= counts && $3 >= due / 4 && $3 <= due * 1.75 + 3 &&
				$9 >= cpu / 2e9)
		}'
}
check "its last line has back end, ticks and CPU time" sum_line bpf 100
check "--verbose: reports what is preloaded" says \
	"LD_PRELOAD=$build/lib/libprofil.so.1:$build/lib/libprofil-gmon.so"
check "libprofil reports its back end" says "back end: bpf"
quietly() {
	exits 0 "${run[@]}" --backend bpf "$@" "$legacy" 0.1 && test ! -s "$work/err"
}
check "--quiet: it does not" quietly --quiet
# The program opens a file of its own in the place of standard error.
compile "$work/reopens" '#include <unistd.h>
#include <fcntl.h>
extern int profil(unsigned short *, size_t, size_t, unsigned int);
static unsigned short cells[64];
int main(int argc, char **argv) { close(2); open(argv[1], O_CREAT | O_WRONLY, 0600);
	return profil(cells, sizeof(cells), 0, 2) || argc != 2; }' -w
reopens() {
	exits 0 "${run[@]}" "$work/reopens" "$work/reopened" && test ! -s "$work/reopened"
}
check "a file of the program in the place of standard error gets no line" reopens
# The compiler's own runtime starts gcc -pg before the constructors of libraries that are preloaded.
compile "$work/initial.so" 'int initial(void) { return 0; }' -shared -fPIC -pg
compile "$work/pg-library" 'int initial(void); int main(void) { return initial(); }' -pg "-Wl,--no-as-needed,$work/initial.so"
mkdir "$work/gmon"
in_gmon() {
	(cd "$work/gmon" && exits 0 "$@")
}
check "gcc -pg with a library: succeeds" in_gmon "${run[@]}" --backend bpf ../pg-library
check "gcc -pg with a library: its first line" says "profil: back end: bpf"
check "gcc -pg with a library: its last line" grep -q '^profil: bpf: [0-9]* ticks at 100 Hz in ' "$work/err"

# A child has what the parent counted before, and reports what it has counted itself.
compile "$work/forks" '#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>
static unsigned short cells[64];
int main(void) { int status;
	if (profil(cells, sizeof(cells), 0, 2)) return 1;
	while (clock() < CLOCKS_PER_SEC / 5);
	if (fork() == 0) return 0;
	return wait(&status) < 0 || status; }' -w
child_sum() {
	exits 0 "${run[@]}" --hz 1000 --backend bpf "$work/forks" && awk '
		/^profil: bpf: [0-9]+ ticks/ { ticks[++n] = $3; cpu[n] = $9 }
		END { print "child:", ticks[1], cpu[1], "parent:", ticks[2], cpu[2]
			exit !(n == 2 && ticks[1] < ticks[2] / 2 && cpu[1] < cpu[2] / 2 && ticks[2] > 20) }' "$work/err"
}
check "a forked child reports its own ticks" child_sum

# A program whose calls fail, or that makes none.
compile "$work/fails" 'extern int sprofil(void *, int, void *, unsigned int);
int main(void) { return sprofil(0, 0, 0, 8) != -1; }' -w
check "a call that fails: the program goes on" exits 0 "${run[@]}" "$work/fails"
check "a call that fails: why" says "profil: profil() failed: unknown flags of sprofil(): 0x8"
check "a call that fails: nothing was counted" says "profil: no ticks were counted: profil() failed"
check "a program that makes no call: succeeds" exits 0 "${run[@]}" true
check "a program that makes no call: says so" says "profil: no ticks were counted in true itself: it did not call profil()"
check "its children do not" test "$(status "${run[@]}" bash -c 'bash -c "exit 0"; exit 0'),$(grep -c 'bash itself' \
	"$work/err")" = 0,1
quiet_call() {
	exits 0 "${run[@]}" -q true && test ! -s "$work/err"
}
check "--quiet: it does not, either" quiet_call
check "a filter of seccomp(2) that a program has at its end does not end it" exits 0 "${run[@]}" "$progs/profil_exit" strict
check "nor where it was profiled" exits 0 "${run[@]}" "$progs/profil_exit" off

if compile "$work/asan" 'int main(int argc, char **argv) { char *volatile c = argv[0]; for (long i = 0; i < 20000000; i++) c[0]++;
	return 0; }' -fsanitize=address -pg; then
	check "a program of the address sanitizer: succeeds" in_gmon "${run[@]}" --backend bpf ../asan
	check "a program of the address sanitizer: is counted" grep -qE '^profil: bpf: [1-9][0-9]* ticks' "$work/err"
else
	skip "a program of the address sanitizer" "gcc -fsanitize=address does not work here"
fi

check "as nobody, without profild: succeeds" exits 0 "${as_nobody[@]}" "$tree/profiltool" run \
	--socket "$work/none" "$tree/legacy" 0.1
check "as nobody, without profild: libprofil reports libc, and why" \
	says "back end: libc (kmod: "
check "as nobody, without profild: libc does not say how many ticks" says \
	"profil: libc: an unknown number of ticks at 100 Hz in 0."
check "--strict: libc is an error of the program" exits 1 "${as_nobody[@]}" \
	"$tree/profiltool" run --strict --socket "$work/none" "$tree/legacy" 0.1
check "--strict: says why" says "libc: PROFIL_STRICT is 1)"
[ -e /dev/profil ] || check "a back end that is not there is an error of the program" exits 1 \
	"${run[@]}" --backend kmod "$legacy" 0.1
check "as nobody: succeeds" exits 0 "${as_nobody[@]}" "$tree/profiltool" run "$tree/legacy" 1
check "as nobody: counted by whatever back end there is" counted 5 "$tree/lib/libprofil.so.1"

if command -v gprof >/dev/null && gcc -pg -D_GNU_SOURCE -O1 "$top/tests/progs/run_legacy.c" -o "$work/pg" -ldl; then
	cd "$work" || exit
	check "gcc -pg: succeeds" exits 0 env GMON_OUT_PREFIX="$work/gmon" "${run[@]}" --hz 1000 ./pg 0.3
	# Or 999 Hz, which do not keep step with the scheduler's tick.
	check "gcc -pg: gmon.out is libprofil's, at the rate asked for" grep -q \
		'Each sample counts as 0.00100[01]* seconds' <(gprof -b -p "$work/pg" "$work"/gmon.* 2>&1)
	cd / || exit
else
	skip "gcc -pg" "gcc -pg or gprof does not work here"
fi

if ! [ -e "$build/lib32/libprofil.so.1" ]; then
	skip "a 32-bit program" "build/lib32 is missing"
elif runs_32_bit "a 32-bit program"; then
	gcc -m32 -D_GNU_SOURCE -O1 "$top/tests/progs/run_legacy.c" -o "$work/legacy32" -ldl
	check "a 32-bit program: succeeds" exits 0 "${run[@]}" "$work/legacy32" 1
	check "a 32-bit program: counted, by the libprofil of 32 bits" \
		counted 5 "$build/lib32/libprofil.so.1"
	check "a 32-bit program: the loader has no complaint" test "$(grep -vc "^profil: " "$work/err")" = 0
	check "a 32-bit program: why it has no eBPF of its own" says "bpf: not in a 32-bit program"
	mv "$tree/lib32" "$tree/lib32.away"
	run=("$tree/profiltool" run)
	check "a 32-bit program without it" refuses \
		"$work/legacy32 is a 32-bit program, and there is no libprofil of 32 bits" \
		"make lib32" "$work/legacy32"
	run=("$profiltool" run)
	mv "$tree/lib32.away" "$tree/lib32"
fi

# --- It is the command ---

check "its status is the command's" exits 7 "${run[@]}" -- sh -c 'exit 7'
check "a signal that ends the command is its end" exits $((128 + 15)) "${run[@]}" -- \
	sh -c 'kill -TERM $$'
check "arguments are passed on as they are" prints 'a b||--hz|*|-v|' "${run[@]}" -- \
	printf '%s|' 'a b' '' --hz '*' -v
check "options behind the command are its own" prints '-v|--help|' "${run[@]}" printf '%s|' -v --help
"${run[@]}" sh -c 'echo $$' >"$work/out" &
note_started $!
wait $!
check "it has the number of the process that was started" test "$(cat "$work/out")" = $!
"${run[@]}" sleep 1000 &
pid=$!
note_started "$pid"
is_sleep() {
	[ "$(cat "/proc/$pid/comm")" = sleep ]
}
wait_for is_sleep
kill -INT "$pid"
kill -USR1 "$pid"
{ wait "$pid"; } 2>/dev/null
check "it gets signals itself" test $? -eq $((128 + 10))
check "its standard input is what it was" prints hello "${run[@]}" cat <<<hello

# as_it_was COMMAND: whether it prints the same with and without.
as_it_was() {
	"$1" >"$work/without"
	"${run[@]}" "$1" >"$work/with"
	diff "$work/without" "$work/with"
}
script signals /bin/sh 'grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status'
script descriptors /bin/sh 'ls /proc/self/fd 2>&1' 'true'
check "signals are as they were" as_it_was "$work/signals"
trap '' PIPE USR2
check "ignored signals are ignored" as_it_was "$work/signals"
trap - PIPE USR2
check "descriptors are as they were" as_it_was "$work/descriptors"
without_input() {
	as_it_was "$work/descriptors" <&-
}
check "standard input that is closed stays closed" without_input
"${run[@]}" sh -c 'echo said >&2' >&- 2>"$work/err"
check "standard output that is closed: succeeds" test $? -eq 0
check "standard output that is closed: the rest is there" says said
"${run[@]}" printf printed >"$work/out" 2>&-
check "standard error that is closed: succeeds" test "$?,$(cat "$work/out")" = 0,printed

# --- The environment ---

# environment NAME VALUE COMMAND...: what `env` shows of a variable.
environment() {
	local name=$1 value=$2
	shift 2
	exits 0 "$@" env && diff <(sed -n "s/^$name=//p" "$work/out") <(echo "$value")
}
ours=$build/lib/libprofil.so.1:$build/lib/libprofil-gmon.so
compile "$work/other.so" '#include <unistd.h>
__attribute__((constructor)) static void say(void) { if (write(2, "other\n", 6)) return; }' \
	-shared -fPIC
check "libprofil is preloaded" environment LD_PRELOAD "$ours" "${run[@]}"
check "behind what is there already" environment LD_PRELOAD "$ours:$work/other.so" \
	env LD_PRELOAD="$work/other.so" "${run[@]}"
check "behind what is there already: which is still loaded: by profiltool, and by env" \
	test "$(grep -cx other "$work/err")" -eq 2
check "an empty LD_PRELOAD is none" environment LD_PRELOAD "$ours" env LD_PRELOAD= "${run[@]}"
check "--hz" environment PROFIL_HZ 250 "${run[@]}" --hz 250
check "without --hz: what is set stays" environment PROFIL_HZ 77 env PROFIL_HZ=77 "${run[@]}"
check "--hz goes before what is set" environment PROFIL_HZ 250 env PROFIL_HZ=77 "${run[@]}" --hz=250
for backend in kmod bpf daemon libc; do
	check "--backend $backend" environment PROFIL_BACKEND $backend "${run[@]}" --backend $backend
done
check "--socket" environment PROFIL_SOCKET "/a b" "${run[@]}" --socket "/a b"
check "back ends are printed" environment PROFIL_VERBOSE 1 "${run[@]}"
check "-q" environment PROFIL_VERBOSE 0 "${run[@]}" -q
check "--strict" environment PROFIL_STRICT 1 "${run[@]}" --strict
check "the address sanitizer is to accept libraries before its own" environment ASAN_OPTIONS verify_asan_link_order=0 \
	"${run[@]}"
check "unless the user has it check them" environment ASAN_OPTIONS \
	verify_asan_link_order=0:verify_asan_link_order=1 env ASAN_OPTIONS=verify_asan_link_order=1 "${run[@]}"
same_environment() {
	diff <(env -i A=1 PATH="$PATH" env) <(env -i A=1 PATH="$PATH" "${run[@]}" env | grep -v -e ^LD_PRELOAD= -e ^PROFIL_VERBOSE= -e ^PROFIL_RUN= -e ^ASAN_OPTIONS=)
}
check "nothing else is set" same_environment

# --- Where the command is ---

mkdir -p "$work/one/tool" "$work/two"
script two/tool /bin/sh 'echo two "$0"'
script two/only /bin/sh 'echo only'
: >"$work/one/only"
# found TEXT PATH: what `tool` prints with this PATH.
found() {
	prints "$1" env PATH="$2" "${run[@]}" "${3:-tool}"
}
check "PATH: a directory of that name is skipped" found "two $work/two/tool" "$work/one:$work/two:$PATH"
check "PATH: a file that is not executable is skipped" found only "$work/one:$work/two" only
cd "$work/two" || exit
check "PATH: an empty part is the current directory" found "two ./tool" "/nowhere::$PATH"
check "PATH: an empty part at the end" found "two ./tool" "/nowhere:"
check "a name with a slash is no matter of PATH" found "two ./tool" "$work/one" ./tool
cd / || exit
check "a command that does not exist" refuses "cannot run no-such-program: No such file" "PATH" \
	no-such-program
check "a file that does not exist" refuses "cannot run $work/none: No such file" "PATH" "$work/none"
check "an empty name" refuses "cannot run : No such file" "PATH" ""
check "a file that is not executable" refuses "cannot run $work/one/only: Permission denied" \
	"chmod +x" "$work/one/only"
not_executable() {
	exits 1 env PATH="$work/one" "${run[@]}" only && says "cannot run only: Permission denied"
}
check "one in PATH" not_executable
check "a directory" refuses "cannot run $work/one: Is a directory" "" "$work/one"
check "no command" exits 2 "${run[@]}"
check "no command: how" says "profiltool run -- COMMAND"
check "nothing behind --" exits 2 "${run[@]}" --

# --- Scripts ---

script script "$work/two/inner -x" 'echo never'
script two/inner /bin/sh 'echo inner "$@"'
check "a script of a script" prints "inner -x $work/script a" "${run[@]}" "$work/script" a
script env "/usr/bin/env sh" 'echo "$LD_PRELOAD"'
check "a script of env" prints "$ours" "${run[@]}" "$work/env"
printf 'echo plain "$1"\n' >"$work/plain"
chmod 755 "$work/plain"
check "a script without #! goes to the shell, as ever" prints "plain a" "${run[@]}" "$work/plain" a
script lost /no/such/shell 'echo never'
check "a script without its interpreter" refuses \
	"cannot run $work/lost: its interpreter /no/such/shell: No such file" "first line" "$work/lost"
script circle "$work/circle" 'echo never'
check "a script of itself" refuses "$work/circle: Too many levels" "first line" "$work/circle"

# --- What cannot work ---

if compile "$work/static" 'int main(void) { return 0; }' -static; then
	check "a static program" refuses "$work/static is statically linked" "libprofil.a" "$work/static"
	script of-static "$work/static" 'echo never'
	check "a script of one" refuses "$work/static is statically linked" "libprofil.a" "$work/of-static"
else
	skip "a static program" "gcc -static does not work here"
fi
if compile "$work/static-pie" 'int main(void) { return 0; }' -static-pie; then
	check "a static PIE" refuses "$work/static-pie is statically linked" "libprofil.a" \
		"$work/static-pie"
fi

# With libprofil.a, it is run as it is.
if gcc -D_GNU_SOURCE -O1 -s -static "$top/tests/progs/run_legacy.c" "$build/lib/libprofil.a" \
	-o "$work/static-legacy" -ldl 2>/dev/null; then
	check "a static program with libprofil.a" exits 1 "${run[@]}" --hz 777 --backend daemon \
		--socket "$work/none" "$work/static-legacy" 0.1
	check "a static program with libprofil.a: libprofil reports" says \
		"back end: none (daemon: cannot connect to $work/none"
else
	skip "a static program with libprofil.a" "gcc -static does not work here"
fi

# Of another C library: the loader's name is what says so.
cp /bin/true "$work/ld-musl-x86_64.so.1"
compile "$work/musl" 'int main(void) { return 0; }' -Wl,--dynamic-linker="$work/ld-musl-x86_64.so.1"
check "a program of musl" refuses "$work/musl has another C library" "profiltool record" "$work/musl"

# A program of another machine: the number of the machine is at byte 18.
cp "$legacy" "$work/foreign"
printf '\xb7' | dd of="$work/foreign" bs=1 seek=18 conv=notrunc 2>/dev/null
check "a program of another architecture" refuses \
	"$work/foreign is made for another architecture" "profiltool" "$work/foreign"
cp "$legacy" "$work/big-endian"
printf '\2' | dd of="$work/big-endian" bs=1 seek=5 conv=notrunc 2>/dev/null
check "a program of another byte order" refuses \
	"$work/big-endian is made for another architecture" "profiltool" "$work/big-endian"
compile "$work/loaderless" 'int main(void) { return 0; }' -Wl,--dynamic-linker=/no/such/loader
check "a program whose loader is missing" refuses \
	"cannot run $work/loaderless: its loader /no/such/loader: No such file" "C library" \
	"$work/loaderless"
head -c 100 "$legacy" >"$work/cut"
chmod 755 "$work/cut"
check "a program that is cut off" test "$(status "${run[@]}" "$work/cut")" -eq 1

# With privileges of their own, where the file system honours that.
cp "$(command -v id)" "$tree/id"
chmod 4755 "$tree/id"
run=("${as_nobody[@]}" "$tree/profiltool" run)
if [ "$("${as_nobody[@]}" "$tree/id" -un 2>/dev/null)" = root ]; then
	check "a set-user-ID program" refuses "$tree/id gives privileges to who runs it" "-lprofil" \
		"$tree/id"
	check "the same as its owner" exits 0 "$tree/profiltool" run "$tree/id"
	check "the same where nobody can gain privileges" exits 0 setpriv --no-new-privs "${run[@]}" "$tree/id"
	# For root it is another user, too.
	chown 65534 "$tree/id"
	chmod 4755 "$tree/id"
	check "as root, one of another user" exits 1 "$tree/profiltool" run "$tree/id"
	check "as root, one of another user: says why" says "gives privileges"
	check "for that user it is a program like any other" exits 0 "${run[@]}" "$tree/id"
	chown 0:0 "$tree/id"
	chmod 2755 "$tree/id"
	check "a set-group-ID program" refuses "$tree/id gives privileges" "-lprofil" "$tree/id"
	chmod 755 "$tree/id"
	check "a copy without the bit, as the message says" exits 0 "${run[@]}" "$tree/id"
	if setcap cap_net_raw=ep "$tree/id" 2>/dev/null; then
		check "a program with capabilities" refuses "$tree/id gives privileges" "-lprofil" \
			"$tree/id"
		check "for root they are nothing" exits 0 "$tree/profiltool" run "$tree/id"
	else
		skip "a program with capabilities" "setcap does not work here"
	fi
else
	skip "a set-user-ID program" "the file system of $work does not honour it"
fi
chmod 711 "$tree/legacy"
check "a program that may be run but not read" exits 0 "${run[@]}" "$tree/legacy" 0.1

# Where libprofil is not.
mkdir "$work/alone"
cp "$profiltool" "$work/alone/"
run=("$work/alone/profiltool" run)
if [ ! -e /usr/local/lib/libprofil.so.1 ]; then
	check "without libprofil" refuses "there is no libprofil" "make install" true
	mkdir "$work/alone/lib"
	cp "$build/lib/libprofil.so.1" "$work/alone/lib/"
	check "with half of it" refuses "there is no libprofil" "make install" true
	: >"$work/alone/lib/libprofil-gmon.so"
	: >"$work/alone/lib/libprofil.so.1"
	check "with files that are none" refuses "there is no libprofil" "make install" true
fi
cp -r "$tree" "$work/a b"
run=("$work/a b/profiltool" run)
check "in a directory whose name the loader would split" refuses "takes apart at blanks, colons and dollars" \
	"install" true
run=("$profiltool" run)

# --- Installed ---

# installed PREFIX LIBDIR: installs so below $work/root, from a copy: the build remembers what was installed last.
mkdir "$work/built"
cp -r "$build"/{profiltool,profild,lib} "$work/built"
installed() {
	rm -rf "$work/root"
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -C "$top" BUILD="$work/built" DESTDIR="$work/root" \
		PREFIX="$1" LIBDIR="$2" -o all install
}
for libdir in /usr/local/lib /usr/local/lib64 /usr/local/lib/x86_64-linux-gnu; do
	check "installed below DESTDIR with $libdir" installed /usr/local $libdir
	check "it runs where it stands" exits 0 "$work/root/usr/local/bin/profiltool" run --hz 1000 -- \
		"$legacy" 1
	check "its own library counts" counted 25 "$work/root$libdir/libprofil.so.1"
done

# --- Bad options ---

# usage TEXT OPTION...: status 2, this said, nothing run.
usage() {
	local text=$1
	shift
	exits 2 "${run[@]}" "$@" echo run && says "$text" && says "see profiltool run --help" &&
		test ! -s "$work/out"
}
# refuses_variable TEXT NAME=VALUE: status 1, this said, nothing run.
refuses_variable() {
	exits 1 env "$2" "${run[@]}" echo run && says "$1" && says "unset it, or use the options" && test ! -s "$work/out"
}
for value in 0 -1 abc "" 100001 99.5 1e3; do
	check "--hz \"$value\"" usage "--hz takes a frequency from 1 to 100000 Hz" --hz "$value"
done
for value in auto "" BPF; do
	check "--backend \"$value\"" usage "--backend takes kmod, bpf, daemon or libc" --backend "$value"
done
check "--socket \"\"" usage "empty" --socket ""
for value in 0 abc 100001; do
	check "PROFIL_HZ=$value" refuses_variable "PROFIL_HZ takes a frequency from 1 to 100000 Hz, not \"$value\"" \
		PROFIL_HZ=$value
done
check "PROFIL_BACKEND=BPF" refuses_variable 'PROFIL_BACKEND takes kmod, bpf, daemon or libc, not "BPF"' PROFIL_BACKEND=BPF
check "options go before these" exits 0 env PROFIL_HZ=abc PROFIL_BACKEND=BPF "${run[@]}" --hz 100 --backend libc true
check "without a value they are none" exits 0 env PROFIL_HZ= PROFIL_BACKEND= "${run[@]}" true
check "an unknown option" usage "unknown option: --nonsense" --nonsense
check "--help" exits 0 "${run[@]}" --help
check "--help is on standard output" grep -q -- --backend "$work/out"

finish
