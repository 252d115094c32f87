# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # shared variables: of lib.sh, and for scripts that source this
# Boots kernels in qemu without KVM. Source it after lib.sh. guest.sh runs inside and sends back its results:
# each run has a NAME there, and writes NAME.json and others.

# The time limit of a machine in seconds: ten times what it takes on an idle host. guest.sh itself ends a row
# that hangs.
longest=2400
# Additional words for the kernel's command line, where NAME=VALUE is a variable of guest.sh:
# times=1000 fuzz_seconds=300
append=${PROFIL_KERNEL_APPEND:-}
declare -A machines=() # their processes, by $series-MACHINE
declare -A two_cpus=() # and what they were started with, if they have two CPUs
declare -A appended=() # and which of these words they have

# What depends on the machine's architecture; arm64.sh has another set.
built=$build # what we have built
root=$work/root
initramfs=$work/initramfs
compiler=${CC:-gcc}
busybox=$(command -v busybox)
setpriv=$(command -v setpriv)
libgcc=$(gcc -print-file-name=libgcc_s.so.1)
gprof=gprof
system_call=__x64_sys_ # how the kernel's functions for system calls begin
qemu=(qemu-system-x86_64 -cpu max)
console=ttyS0
port=ttyS1 # where the results come out: the second of these
ports=(-serial file:RESULTS/tar.gz)

# --- User space ---

# copy_program FILE...: into the initramfs, each with the libraries that it takes.
copy_program() {
	cp "$@" "$root/bin" && copy_libraries "$@"
}

copy_libraries() {
	local library

	ldd "$@" | grep -o '/lib[^ :]*' | sort -u | while read -r library; do
		install -D "$library" "$root$library" || return
	done
}

# GNU Common Lisp as Debian has it, where it is installed, and its profiler.
copy_gcl() {
	local lisp

	lisp=$(echo /usr/lib/gcl-*[0-9]/unixport/saved_gcl)
	[ -e "$lisp" ] || return 0
	install -D "$lisp" "$root$lisp" && copy_libraries "$lisp" &&
		install -D /etc/default/gcl "$root/etc/default/gcl" &&
		cp /usr/bin/gcl "$root/bin" &&
		cp /usr/lib/gcl-*[0-9]/lsp/gcl_profile.lsp "$top/tests/kernels/work.lisp" "$root/lib"
}

# The C library's, but for what libprofil-gmon has in its place.
make_pg_program() {
	# shellcheck disable=SC2086 # a list of words
	mkdir -p "$root.pg" && $compiler -pg -O2 -fno-inline -D_GNU_SOURCE -w "$top/tests/progs/shares.c" \
		-o "$root.pg/shares-pg" && copy_program "$root.pg/shares-pg"
}

# 32-bit programs, of x86; static, as the libraries that they would take are not those of this machine.
make_32_bit_programs() {
	local options=(-m32 -static -O1 -fno-inline -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -w -pthread)

	mkdir -p "$root/bin" &&
		$compiler "${options[@]}" "$top/tests/progs/shares.c" -o "$root/bin/shares-32" &&
		$compiler "${options[@]}" -I"$top/user" "$top/tests/progs/profil_calls.c" \
			"$built/lib32/libprofil.a" -lm -o "$root/bin/profil_calls-32"
}

make_initramfs() {
	local progs=$built/tests/progs applet

	mkdir -p "$root"/{bin,dev,etc,lib/profil,proc,results,run,sys,tmp} || return
	chmod 1777 "$root"/{results,tmp}
	copy_program "$built/profiltool" "$built/profild" "$setpriv" || return
	copy_program "$progs"/{shares,family,halves,churn,chains,neighbour} || return
	# shellcheck disable=SC2046 # a list of words
	(cd "$progs" && copy_program $(basename -s .c "$top"/tests/progs/profil_*.c)) || return
	# shellcheck disable=SC2046 # a list of words
	(cd "$built/tests/kmod" && copy_program $(basename -s .c "$top"/tests/kmod/*.c)) || return
	copy_libraries "$built/lib/profil/libprofil-bpf.so.1" || return
	cp -r "$built"/lib/{libprofil.so.1,libprofil-gmon.so,profil} "$root/lib/profil" || return
	# libc loads it by name when a thread ends itself.
	install -D "$libgcc" "$root/lib/libgcc_s.so.1" || return
	copy_gcl && make_pg_program || return
	install -D "$top/tests/kernels/guest.sh" "$root/init" || return
	cp "$busybox" "$root/bin/busybox" || return
	for applet in $(busybox --list); do
		[ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet" || return
	done
	(cd "$root" && find . | cpio --quiet -o -H newc) >"$initramfs"
}

# --- The machine ---

# power_on MACHINE QEMU-OPTION...: starts $kernel with what guest.sh's functions MACHINE ("one+other") do;
# the module $module, if that is set, is /lib/profil.ko there.
power_on() {
	local machine=$1
	shift

	results=$work/$series-$machine
	mkdir -p "$results/lib" && cp "$initramfs" "$results/initramfs" || return
	if [ -n "${module:-}" ]; then
		# The kernel unpacks one archive after the other.
		cp "$module" "$results/lib/profil.ko" &&
			(cd "$results" && echo lib/profil.ko | cpio --quiet -o -H newc) \
				>>"$results/initramfs" || return
	fi
	start "${qemu[@]}" -accel tcg -m 1024 -no-reboot -nodefaults \
		-display none -serial "file:$results/console" "${ports[@]/RESULTS/$results}" \
		-kernel "$kernel" -initrd "$results/initramfs" -append "console=$console quiet panic=-1 \
		oops=panic softlockup_panic=1 cryptomgr.notests port=$port machine=$machine $append" "$@"
	machines[$series-$machine]=$pid
	appended[$series-$machine]=$append
	two_cpus[$series-$machine]=
	[ "$1 $2" != "-smp 2" ] || two_cpus[$series-$machine]=$*
}

# has_ended MACHINE: waits for its end. Whether its results are in $results then.
has_ended() {
	local pid=${machines[$series-$1]} end=$((SECONDS + longest))

	results=$work/$series-$1
	while kill -0 "$pid" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || echo "ended by force after $longest seconds"
		[ "$SECONDS" -lt "$end" ] || break
		sleep 0.1
	done
	stop "$pid"
	rm "$results/initramfs"
	tar -C "$results" -xzf "$results/tar.gz" && [ -s "$results/dmesg" ]
}

# ends MACHINE: the same; without results, says what the machine said. Two CPUs of qemu's may trip
# over code that the kernel patches while it boots: if nothing of ours has run, it is tried again.
ends() {
	has_ended "$1" && return
	if [ -n "${two_cpus[$series-$1]:-}" ] && ! grep -q 'exit status' "$results/console"; then
		tail -n 30 "$results/console" | grep -E 'RIP|panic'
		rm -r "$results"
		# shellcheck disable=SC2086 # a list of words
		append=${appended[$series-$1]} power_on "$1" ${two_cpus[$series-$1]} && has_ended "$1" && return
	fi
	tail -n 30 "$results/console"
	return 1
}

# boot MACHINE QEMU-OPTION...: from its start to its end.
boot() {
	power_on "$@" && ends "$1"
}

complains_of_nothing() {
	! grep -E -A 20 'WARNING:|BUG:|Oops|UBSAN:|INFO: (task|trying|rcu)|blocked for more than|soft lockup' \
		"$results/dmesg"
}

# --- What was run in it ---

# ran RUN [CODE]: whether it ended with that exit code, 0.
ran() {
	local got

	got=$(cat "$results/$1.status" 2>/dev/null)
	[ "$got" = "${2:-0}" ] && return
	echo "exit status ${got:-unknown, as it was not reached}, not ${2:-0}"
	cat "$results/$1.err"
	tail -n 5 "$results/console"
	return 1
}

# complains RUN CODE TEXT: whether it ended so, and had the text in its messages.
complains() {
	ran "$1" "$2" && grep -F "$3" "$results/$1.err"
}

# rows_hold NAME N: every row that was run by that name, of which there are N or more.
rows_hold() {
	ran "$1.rows" || grep -A 5 '^[1-9]' "$results/$1.rows"
	[ "$(grep -c '^0 ' "$results/$1.rows")" -ge $(($2 / ${every:-1})) ] && ! grep -q '^[1-9]' "$results/$1.rows"
}

# --- profil.ko ---

# gmon_shares FILE: how the ticks of make_pg_program's are shared, as gprof has it: in this order, and by roughly these shares.
gmon_shares() {
	"$gprof" -b -p "$root.pg/shares-pg" "$1" | tee "$work/gprof.out"
	python3 -c '
import re, sys
text = sys.stdin.read()
each = float(re.search("Each sample counts as ([0-9.e-]+) seconds", text)[1])
rows = [line.split() for line in text.splitlines()]
ticks = {row[-1]: round(float(row[2]) / each) for row in rows if row and row[-1].startswith("burn_")}
total = sum(ticks.values())
print(ticks)
sys.exit(not (total > 500 and all(abs(ticks.get("burn_" + name, 0) / total - share) < .1
	for name, share in (("sixty", .6), ("thirty", .3), ("ten", .1)))))' <"$work/gprof.out"
}

# gcl_counts: whether work.lisp found most ticks where the eBPF program finds them, and so many as
# its own clock says, which counts hundredths of a second. To load the eBPF program takes CPU time
# here that is the process's, too. Where instructions are the clock, a tick keeps step with a loop for a while.
gcl_counts() {
	ran gcl && ran gcl-bpf && grep -q 'back end: kmod' "$results/gcl.err" &&
		grep -q '^profil: kmod: [1-9][0-9]* ticks at 733 Hz' "$results/gcl.err" || return
	grep -E 'eval|used|Total' "$results"/gcl{,-bpf}.json
	awk '
		$3 == "eval" || $4 == "eval" { share[FILENAME] = $1 + 0 }
		$1 == "used" { due[FILENAME] = 7.33 * $2 }
		$1 == "Total" { ticks[FILENAME] = $3 }
		END {
			for (f in ticks)
				if (ticks[f] < 100 || ticks[f] < (f ~ /bpf/ ? 0.8 : 0.9) * due[f] || ticks[f] > 1.1 * due[f])
					exit 1
			off = share[ARGV[1]] - share[ARGV[2]]
			exit !(share[ARGV[1]] > 20 && off > -8 && off < 8)
		}' "$results/gcl.json" "$results/gcl-bpf.json"
}

# growth: "NAME MORE...", how much more of it guest.sh found in use after each leg, for pages and all of
# which there is more at the end. "LEAK" where every leg has left some, one for nearly each turn in all.
growth() {
	awk '
		$1 == "times" { times = $2; next }
		$1 in last {
			more = $2 - last[$1]
			legs[$1] = legs[$1] " " (more < 0 ? "" : "+") more
			count[$1]++
			sum[$1] += more
			rises[$1] += more > 0
		}
		{ last[$1] = $2 }
		END {
			for (name in sum)
				if (sum[name] > 0 || name == "pages")
					print name legs[name] (rises[name] == count[name] && \
						sum[name] >= 0.8 * times * count[name] ? " LEAK" : "")
		}' "$results/left" | sort
}

# leaves_no_memory: a leak grows with every leg; what the kernel keeps for a while, does not.
leaves_no_memory() {
	growth
	[ "$(grep -c "^pages " "$results/left")" -ge 5 ] && ! growth | grep -q LEAK
}

# What guest.sh's `module` did, on a machine whose clock counts instructions.
check_module() {
	local k="$series, profil.ko"

	check "$k: it is loaded, for everyone" grep -x 666 "$results/device.json"
	check "$k: profiltool check reports it" grep -E \
		'^ok +/dev/profil +version 1 of .* up to 10000 Hz, 2048 regions' "$results/check.json"
	check "$k: libprofil through it, as nobody: every row" rows_hold kmod 90
	check "$k: its own tests: every row" rows_hold module 60
	check "$k: it cannot be unloaded while a process is on" complains busy 1 "unavailable"
	check "$k: a program of gcc -pg, as nobody: the shares of its functions" \
		gmon_shares "$results/gmon.pg"
	check "$k: it is unloaded" ran rmmod
}

check_module_gcl() {
	local k="$series, profil.ko"

	if [ -e "$root/bin/gcl" ]; then
		check "$k: gcl, as nobody: its own table of its functions" gcl_counts
	else
		skip "$k: gcl" "it is not installed"
	fi
	check "$k: it is unloaded after gcl" ran rmmod-gcl
}

check_module_again() {
	local k="$series, profil.ko"

	check "$k: loaded, used and unloaded again and again" ran again
	check "$k: that leaves no memory: objects, pages" leaves_no_memory
	growth | sed 's/^/# more after each leg: /'
}

# What its `module_parallel` did, with two CPUs.
check_module_parallel() {
	local k="$series, profil.ko, two CPUs"

	check "$k: its own tests: every row" \
		rows_hold parallel "$([ -n "${brief:-}" ] && echo 45 || echo 80)"
	check "$k: whatever a program may ask" ran fuzz
	check "$k: loaded and unloaded while programs use it" ran races
	check "$k: it is unloaded" ran rmmod
}
