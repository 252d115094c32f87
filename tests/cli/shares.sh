#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs with known shares of functions, built in all ways that programs are built: each function's
# share, and ticks times their period.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

source=$top/tests/progs/shares.c
flags=(-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread)
targets=()

# run NAME COMMAND...: starts the target and its recording; both wait.
run() {
	local name=$1
	shift
	begin "$name" "$@" && record_begin "$name" -p "$pid" -F 2999 --json -o "$work/$name.pb.gz"
	recorders[$name]=$recorder
	targets+=("$name")
}

# go NAME: lets it run.
go() {
	case $1 in
	library)
		send_line library "$work/libshares.so"
		wait_for grep -q loaded "$work/library.out" && rm "$work/libshares.so"
		;;
	*) send_line "$1" go ;;
	esac
}

# functions_of IMAGE FILE: the three functions have samples, all of that image.
functions_of() {
	recorded "whole and ran('burn_sixty', 'burn_thirty', 'burn_ten') and images('burn_*') == {'$1'}" "$2"
}

declare -A recorders

gcc "${flags[@]}" -fPIE -pie "$source" -o "$work/pie" && run pie "$work/pie" 2 1.1 wait
gcc "${flags[@]}" -no-pie "$source" -o "$work/fixed" && run fixed "$work/fixed" 2 1.1 wait stay

if runs_32_bit "a 32-bit program"; then
	gcc "${flags[@]}" -m32 "$source" -o "$work/bits32" && run bits32 "$work/bits32" 2 1.1 wait
fi

gcc "${flags[@]}" "$source" -o "$work/stripped" &&
	objcopy --only-keep-debug "$work/stripped" "$work/stripped.debug" &&
	strip "$work/stripped" &&
	objcopy --add-gnu-debuglink="$work/stripped.debug" "$work/stripped" &&
	run stripped "$work/stripped" 2 1.1 wait

gcc "${flags[@]}" -fPIC -shared "$source" -o "$work/libshares.so" &&
	run library "$progs/plugin" 1.1

cat >"$work/cxx.cc" <<'EOF'
#include <cstdio>
#include <ctime>

namespace work {
static volatile unsigned int sink;

template <class T, int number> struct Burner {
	__attribute__((noinline)) void burn(T turns) const
	{
		unsigned int x = number;

		while (turns--)
			x = x * 1664525 + 1013904223;
		sink = x;
	}
};
}

int main()
{
	work::Burner<unsigned long, 1> sixty;
	work::Burner<unsigned long, 2> thirty;
	work::Burner<unsigned long, 3> ten;
	timespec now;

	puts("ready");
	fflush(stdout);
	getchar();
	do {
		for (int i = 0; i < 32; i++) {
			sixty.burn(6000);
			thirty.burn(3000);
			ten.burn(1000);
		}
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec + now.tv_nsec / 1e9 < 2.2);
	printf("cpu_ns %.0f\n", now.tv_sec * 1e9 + now.tv_nsec);
}
EOF
if g++ -O1 -g "$work/cxx.cc" -o "$work/cxx" 2>/dev/null; then
	run cxx "$work/cxx"
else
	skip "a C++ program" "there is no g++ here"
fi

for name in "${targets[@]}"; do
	go "$name"
done

for name in "${targets[@]}"; do
	wait "${recorders[$name]}"
	code=$?
	file=$work/$name.json
	check "$name: the recording ends with its target, and succeeds" test $code -eq 0
	case $name in
	cxx)
		check "cxx: the functions have names in C++" recorded "whole and \
			ran('work::Burner<unsigned long, 1>::burn*', \
				'work::Burner<unsigned long, 2>::burn*', \
				'work::Burner<unsigned long, 3>::burn*')" "$file"
		;;
	library) check "library: a file that was loaded later and is gone has its functions" functions_of libshares.so "$file" ;;
	*) check "$name: the program has its functions" functions_of "$name" "$file" ;;
	esac
done
# The live rows: how many ticks come, and in which of three functions with 60, 30 and 10 % of the time.
check "the ticks make up the program's CPU time" recorded "takes($(printed_cpu pie))" "$work/pie.json"
check "a function with more of the time has more ticks" recorded "ranks('burn_sixty', 'burn_thirty', 'burn_ten')" \
	"$work/pie.json"

for name in "${targets[@]}"; do
	case $name in
	bits32) check "$name: told to be of 32 bits" test "$(dumped bits "$work/$name.pb.gz")" = 32 ;;
	*) check "$name: told to be of 64 bits" test "$(dumped bits "$work/$name.pb.gz")" = 64 ;;
	esac
done

finish
