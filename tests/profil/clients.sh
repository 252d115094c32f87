#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs of the distribution that call profil() and monstartup(): GNU Common Lisp and GDB.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

hz=1000
check "profild" start_profild

# told BACKEND FILE: succeeds if libprofil has printed that it uses this back end.
told() {
	case $1 in
	user) set -- daemon "$2" ;;
	esac
	grep -q "^profil: .*$1" "$2"
}

rate_of() {
	[ "$1" = libc ] && echo 100 || echo "$hz"
}

# --- gcl: (si::profile START SCALE) calls profil(array, its size, START, SCALE << 8) ---

# Its code begins low in memory. Times are in hundredths of a second: a second of the kernel's account, as Lisp's
# own has user time alone.
cat >"$tree/work.lisp" <<'END'
(setq si::*profile-array*
      (make-array 4000000 :element-type 'string-char :static t :initial-element (code-char 0)))
(defun work (n) (let ((x 0)) (dotimes (i n) (setq x (mod (+ x (* i i)) 1009))) x))
(defun cell (i)
  (let ((a si::*profile-array*))
    (+ (char-code (aref a (* 2 i))) (* 256 (char-code (aref a (1+ (* 2 i))))))))
(defun cpu-time () (with-open-file (times "/proc/self/schedstat") (floor (read times) 10000000)))
(defvar start (cpu-time))
(si::profile #x1000 90)
(do () ((>= (- (cpu-time) start) 100)) (work 100000))
(si::profile 0 0)
(defvar used (- (cpu-time) start))
(let ((ticks 0) (cells 0))
  (dotimes (i 2000000)
    (when (> (cell i) 0) (incf ticks (cell i)) (incf cells)))
  (format t "~%counted ~a in ~a cells, used ~a~%" ticks cells used))
(si::bye)
END

# Nearly all of it is in its own code.
gcl_counts() {
	local backend=$1 ticks used due
	with "$backend" env PROFIL_VERBOSE=1 gcl -batch -load "$tree/work.lisp" \
		>"$work/gcl" 2>&1
	cat "$work/gcl"
	read -r ticks used < <(sed -n 's/^counted \([0-9]*\) in .* used \([0-9]*\)$/\1 \2/p' "$work/gcl")
	due=$((used * $(rate_of "$backend") / 100))
	[ "$due" -gt 0 ] && told "$backend" "$work/gcl" &&
		[ $((ticks * 4)) -ge "$due" ] && [ $((ticks * 4)) -le $((due * 7)) ] # as `takes` of lib.sh
}

# --- GDB: "maintenance set profile on" calls monstartup() and writes gmon.out ---

# All ticks that the histograms of a gmon.out have.
cat >"$work/gmon.py" <<'END'
import struct, sys

data = open(sys.argv[1], "rb").read()
assert data[:4] == b"gmon"
at, ticks = 20, 0
while at < len(data):
	kind = data[at]
	at += 1
	if kind == 0:
		low, high, cells, rate = struct.unpack_from("<QQII", data, at)
		ticks += sum(struct.unpack_from("<%dH" % cells, data, at + 40))
		at += 40 + 2 * cells
	elif kind == 1:
		at += 20
	else:
		at += 4 + 16 * struct.unpack_from("<I", data, at)[0]
print("ticks", ticks, "rate", rate)
END

cat >"$tree/loop.gdb" <<'END'
maintenance set profile on
set $i = 0
while $i < 60000
set $i = $i + 1
end
maintenance set profile off
END

gdb_counts() {
	local backend=$1 ticks
	rm -f "$work/tmp/gmon.out"
	(
		cd "$work/tmp" &&
			lib=$tree/lib/libprofil-gmon.so with "$backend" env HOME="$work/tmp" \
				PROFIL_VERBOSE=1 gdb -nx -batch -x "$tree/loop.gdb"
	) >"$work/gdb" 2>&1
	tail -n 5 "$work/gdb"
	python3 "$work/gmon.py" "$work/tmp/gmon.out" | tee "$work/gmon"
	read -r _ ticks _ <"$work/gmon"
	told "$backend" "$work/gdb" && [ "$ticks" -ge $(($(rate_of "$backend") / 20)) ]
}

# clients NAME BACKEND...
clients() {
	local name=$1 backend
	shift
	if ! command -v "$name" >/dev/null; then
		skip "$name" "it is not there"
		return
	fi
	for backend in "$@"; do
		check "$name: counts, $backend" "${name}_counts" "$backend"
	done
}

# shellcheck disable=SC2086 # several words
{
	clients gcl $backends libc
	clients gdb $backends
}
finish
