#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# GNU Common Lisp's image for profiling, which is built with gcc -pg: (si::gprof-start) calls
# monstartup(), and (si::gprof-quit) calls _mcleanup(), and then gprof with symbols that gcl wrote.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

image=$(compgen -G '/usr/lib/gcl-*-prof/unixport/saved_gcl' | head -n 1)
if [ -z "$image" ] || ! gprof --version >/dev/null 2>&1; then
	skip "gcl's profiling image" "gcl or gprof is not installed"
	finish
fi
hz=1000
check "profild" start_profild

# A C function of gcl's has nearly all of the time, which gcl prints in hundredths of a second.
cat >"$tree/work.lisp" <<'END_OF_LISP'
(defvar long nil)
(dotimes (i 100000) (setq long (cons i long)))
(defun work (n) (dotimes (i n) (length long)))
(si::gprof-start)
(defvar start (get-internal-run-time))
(work 2000)
(format t "~%used ~a~%" (- (get-internal-run-time) start))
(si::gprof-quit)
(si::bye)
END_OF_LISP

# gcl NAME COMMAND...: what it prints, with gprof's tables, is $work/NAME then; its files are removed.
gcl() {
	local name=$1 status

	shift
	mkdir "$work/tmp/gcl" && chmod 777 "$work/tmp/gcl" || return
	(
		cd "$work/tmp/gcl" && "$@" "$image" -dir "${image%/*}/" -libdir "${image%/unixport/*}/" \
			-batch -load "$tree/work.lisp"
	) >"$work/$name" 2>&1
	status=$?
	rm -r "$work/tmp/gcl"
	return "$status"
}

# column N NAME: of the busy function in gprof's flat profile.
column() {
	awk -v n="$1" '$NF == "length" && NF == 7 { print $n; exit }' "$work/$2"
}

# right NAME RATE: a quarter of the time at least, as `takes` of lib.sh, and no more than twice; the function that has
# it, its calls, and the rate: 1000 Hz, or 999, which do not keep step with the scheduler's tick.
right() {
	local used seconds share

	head -n 12 "$work/$1"
	used=$(awk '$1 == "used" { print $2; exit }' "$work/$1")
	seconds=$(column 3 "$1")
	share=$(column 1 "$1")
	echo "used $used hundredths, counted $seconds s, $share %, $(column 4 "$1") calls"
	[ "$(column 4 "$1")" = "$(column 4 libc)" ] &&
		grep -q "^Each sample counts as $2 seconds" "$work/$1" &&
		awk "BEGIN { exit !($share > 80 && $seconds > $used * .0025 && $seconds < $used * .02) }"
}

check "gcl without libprofil" gcl libc timeout -s KILL 120 env
check "gcl without libprofil: it counts" test "$(column 4 libc)" -ge 2000
lib=$tree/lib/libprofil-gmon.so
for backend in $backends; do
	check "$backend: gcl" gcl "$backend" with "$backend"
	check "$backend: gcl's gprof is right" right "$backend" '0.00100[01]*'
done
finish
