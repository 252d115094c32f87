#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which back end a program gets, the messages about it, and what happens when profild ends, the program
# closes descriptors, or gives up privileges.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
rows profil_backends


# answers PATTERN WRAPPER...: whether it answers so: RESULT ERRNO BACKEND TICKS # REASON.
answers() {
	local pattern=$1 got
	shift
	got=$(timeout -s KILL 60 env PROFIL_SOCKET="$sock" "$@" \
		env LD_PRELOAD="${preload:-$lib}" "$tree/progs/profil_backends" "${how[@]}" 2>&1)
	echo "$got"
	[[ $got =~ ^$pattern ]]
}

how=(which)
ticks="[1-9][0-9]*"
none=(env PROFIL_SOCKET="$work/nowhere")
no_rights=(setpriv --bounding-set=-all --inh-caps=-all)
some_rights=("${nobody[@]}" "--inh-caps=-all,+bpf,+perfmon" "--ambient-caps=-all,+bpf,+perfmon")
first=daemon alone=bpf # where profild is, and where it is not
[ -e /dev/profil ] && first=kmod alone=kmod

# --- The order ---

check "root: $first" answers "0 0 $first $ticks" env
check "root where no profild is: $alone" answers "0 0 $alone $ticks" "${none[@]}"
check "a user with the two rights where no profild is: $alone" \
	answers "0 0 $alone $ticks" "${none[@]}" "${some_rights[@]}"
if [ "$first" = daemon ]; then
	check "root without rights: daemon" answers "0 0 daemon $ticks" "${no_rights[@]}"
	check "a user: daemon" answers "0 0 daemon $ticks" "${nobody[@]}"
	check "a user where no profild is: libc" \
		answers "0 0 libc $ticks" "${none[@]}" "${nobody[@]}"
	mkdir -p "$work/tree/alone"
	cp "$lib" "$tree/alone/"
	preload=$tree/alone/libprofil.so.1
	check "root, without profild and the module: libc" \
		answers "0 0 libc $ticks" "${none[@]}"
	check "without the module bpf cannot be forced" \
		answers "-1 ENOTSUP - 0 # .+" env PROFIL_BACKEND=bpf
	unset preload
fi

# --- Forced ---

for backend in bpf daemon libc; do
	check "forced: $backend" answers "0 0 $backend $ticks" env PROFIL_BACKEND=$backend
done
[ -e /dev/profil ] ||
	check "forced and not there: kmod" answers "-1 ENOTSUP - 0 # .+" env PROFIL_BACKEND=kmod
check "forced and not allowed: bpf" \
	answers "-1 ENOTSUP - 0 # .+" env PROFIL_BACKEND=bpf "${nobody[@]}"
check "forced and not there: daemon" \
	answers "-1 ENOTSUP - 0 # .+" env PROFIL_BACKEND=daemon "${none[@]}"
check "strict: any but libc" answers "0 0 $first $ticks" env PROFIL_STRICT=1
check "strict: libc is an error" answers "-1 ENOTSUP - 0 # .*libc: PROFIL_STRICT" \
	env PROFIL_STRICT=1 "${none[@]}" "${nobody[@]}"
check "strict, but forced: libc" answers "0 0 libc $ticks" env PROFIL_STRICT=1 PROFIL_BACKEND=libc
check "forced, and refuses the rate" answers "-1 EINVAL - 0 # daemon: the frequency is 10001 Hz" \
	env PROFIL_HZ=10001 PROFIL_BACKEND=daemon
check "strict, and the rate is refused" answers "-1 EINVAL - 0 # .*daemon: the frequency is 10001 Hz" \
	env PROFIL_HZ=10001 PROFIL_STRICT=1 "${nobody[@]}"
check "forced: a name that there is not" \
	answers "-1 ENOTSUP - 0 # .+" env PROFIL_BACKEND=nonsense

# --- A filter of seccomp(2) lets a system call fail: it counts all the same, or is an error ---

reason="-1 [^ ]+ - 0 # .+"
for call in $("$tree/progs/profil_backends" without); do
	how=(without "$call")
	check "without $call: bpf, or an error" \
		answers "(0 0 bpf $ticks|$reason)" env PROFIL_BACKEND=bpf PROFIL_HZ=1000
	check "without $call: daemon, or an error" \
		answers "(0 0 daemon $ticks|$reason)" env PROFIL_BACKEND=daemon PROFIL_HZ=1000 "${nobody[@]}"
done
how=(without process_vm_writev)
check "without process_vm_writev: libc, and the reason" \
	answers "profil: back end: libc \(.*daemon: process_vm_writev\(2\).*bpf: process_vm_writev" \
	env PROFIL_VERBOSE=1
how=(which)

# --- The kernel module: tests/kernels has it, wherever that is run ---

if [ -e /dev/profil ]; then
	while read -r _ row; do
		check "kmod: $row" holds kmod profil_kmod "$row"
	done < <("$tree/progs/profil_kmod" list)
fi

# --- profild's limits ---

stop "$profild"
check "profild with a limit" start_profild --max-ticks 150
check "below the limit: daemon" answers "0 0 daemon $ticks" PROFIL_HZ=150 "${nobody[@]}"
check "above the limit: libc" answers "0 0 libc $ticks" PROFIL_HZ=151 "${nobody[@]}"
check "above the limit, forced: which one" \
	answers "-1 ENOTSUP - 0 # .*has 0 ticks.*151 more.*limit of 150: profild --max-ticks" \
	PROFIL_BACKEND=daemon PROFIL_HZ=151 "${nobody[@]}"
stop "$profild"
check "profild again" start_profild

# --- What is said ---

said() {
	local backend=$1
	shift
	answers ".*" env PROFIL_VERBOSE=1 "$@" >"$work/said"
	cat "$work/said"
	[ "$(grep -c "^profil: back end: $backend" "$work/said")" = 1 ] &&
		[ "$(grep -cE "^profil: $backend: ([0-9]+|an unknown number of) ticks at " "$work/said")" = 1 ] &&
		[ "$(grep -c "^profil: " "$work/said")" = 2 ]
}

silent() {
	answers "0 0 libc $ticks # *$" "${none[@]}" "${nobody[@]}"
}

check "verbose: names $first" said $first
check "verbose: names libc, and why" said libc "${none[@]}" "${nobody[@]}"
check "else nothing is said" silent

# --- Linked, in C and C++; set-user-ID ---

cat >"$work/linked.c" <<'END'
#include <unistd.h>
#include <profil.h>
#include <stdio.h>

int main(void)
{
	static unsigned short cells[4096];
	int on = profil(cells, sizeof(cells), (size_t)&main & ~4095UL, 0x8000);

	printf("%d %s\n", on, profil_backend() ? profil_backend() : "-");
	profil(cells, 0, 0, 0);
	return 0;
}
END

linked() {
	local compiler=$1 language=$2
	"$compiler" -x "$language" "$work/linked.c" -I"$top/user/lib" -Wall -Wextra -Werror \
		-L"$tree/lib" -lprofil -Wl,-rpath,"$tree/lib" -o "$tree/linked" &&
		[ "$(PROFIL_SOCKET=$sock "$tree/linked")" = "0 $first" ]
}

check "linked by a C program" linked gcc c
check "linked by a C++ program" linked g++ c++

# Its own rights are not its caller's: whatever the environment says, it answers the same.
set_user_id() {
	local usual got
	usual=$("${nobody[@]}" "$tree/linked")
	got=$(PROFIL_BACKEND=$1 PROFIL_SOCKET="$work/nowhere" PROFIL_VERBOSE=1 "${nobody[@]}" \
		"$tree/linked" 2>&1)
	echo "$usual, with PROFIL_BACKEND=$1: $got"
	[ "${usual%% *}" = 0 ] && [ "$got" = "$usual" ]
}

if findmnt -nT "$work" -o OPTIONS | grep -q nosuid; then
	skip "set-user-ID" "$work does not allow it"
else
	chmod u+s "$tree/linked"
	check "set-user-ID: PROFIL_BACKEND is not looked at" set_user_id daemon
	check "set-user-ID: whatever it is" set_user_id nonsense
fi

# --- profild ends and comes again, while a program is on ---

# asked LINE WORD: the number behind WORD in the answer to a line.
asked() {
	local before
	before=$(wc -l <"$work/client.out")
	send_line client "$1"
	wait_for answered "$before"
	tail -n 1 "$work/client.out" | sed -n "s/.*\<$2 \([^ ]*\).*/\1/p"
}

answered() {
	[ "$(wc -l <"$work/client.out")" -gt "$1" ]
}

counts() {
	asked burn counted >/dev/null
	tail -n 1 "$work/client.out" | tee /dev/stderr | grep -q " as due$"
}

begin client with user "$tree/progs/profil_backends" asked
client=$pid
asked on on >/dev/null
check "a client of profild: counts" counts
stop "$profild"
check "profild has ended: the client lives" test "$(asked burn burnt)" -ge 100
check "profild" start_profild
check "profild is there again: the client counts again" wait_for counts
stop "$profild"
check "profild has ended: off is no error" test "$(asked off off)" = 0
check "profild has ended: on is one" test "$(asked on on)" = -1
check "profild" start_profild
check "profild is there again: on" test "$(asked on on)" = 0
check "profild is there again: counts" wait_for counts
send_line client end
check "the client has lived all the time" wait "$client"
finish
