#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Files that libprofil writes: gperftools and DCPI, of sessions and of buffers. profiltool reads the same
# counts from both, and writes the same DCPI files.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

unset PROFIL_BACKEND PROFIL_HZ PROFIL_SOCKET PROFIL_VERBOSE

# compile NAME OPTION...: tests/profil/files.c as $work/NAME.
compile() {
	local name=$1
	shift
	gcc -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wno-nonnull -I"$top/user/lib" \
		-o "$work/$name" "$top/tests/profil/files.c" "$@"
}

shared=(-L"$build/lib" -lprofil "-Wl,-rpath,$build/lib")

# run NAME HOW: with its files in $work/HOW, which is new, and what it prints in $work/HOW.out. What
# limits its files must not limit that.
run() {
	rm -rf "${work:?}/$2" && mkdir "$work/$2" &&
		"$work/$1" "$2" "$work/$2" 2>&1 | cat >"$work/$2.out"
	local status=${PIPESTATUS[0]}
	cat "$work/$2.out"
	return "$status"
}

printed() {
	awk -v name="$2" '$1 == name { sum += $2 } END { print sum + 0 }' "$work/$1.out"
}

# reported PATH [IMAGE]: the samples that profiltool reads there.
reported() {
	"$profiltool" report --json "$1" 2>/dev/null | python3 -c 'import json, sys
print(sum(f["self"] for f in json.load(sys.stdin)["functions"]
	if len(sys.argv) < 2 or f["image"].split("/")[-1].startswith(sys.argv[1])))' "${@:2}"
}

fails() {
	! "$@"
}

same() {
	echo "$1 and $2"
	[ "$1" = "$2" ]
}

# The lines that say when and by what was counted, which a gperftools file does not, are only in the
# library's; and it has the mappings of its own process. All else must be the same.
same_files() {
	python3 - "$@" <<'END'
import os, re, sys

def read(top):
	files = {}
	for directory, _, names in os.walk(top):
		for name in names:
			data = open(os.path.join(directory, name), "rb").read()
			end = re.search(rb"^samples *\n", data, re.M).end()
			assert end % 4 == 0
			words = ("epoch", "platform", "event", "period", "cpuspeed", "x-bucket", "x-start",
				"x-ticks", "x-out-of-range", "x-lost", "x-period-unit", "samples")
			lines = [line for line in data[:end].decode().splitlines()
				if line.split()[0] not in words]
			files[re.sub("_[a-z-]*$", "", name)] = lines, data[end:]
	return files

ours, its = read(sys.argv[1]), read(sys.argv[2])
for name in sorted(ours.keys() | its.keys()):
	print(name, *ours.get(name, ([], 0))[0], sep="\n  ")
	if ours.get(name) != its.get(name):
		print("differs:", *its.get(name, ([], 0))[0], sep="\n  ")
sys.exit(ours != its or len(ours) < int(sys.argv[3]))
END
}

# as_profiltool HOW COUNT: the database and the gperftools file are the same counts, in at least so
# many DCPI files.
as_profiltool() {
	"$profiltool" convert -f dcpi "$work/$1/prof" "$work/$1/converted" &&
		same_files "$work/$1/dcpi" "$work/$1/converted" "$2"
}

# headers PATH: all lines of the headers there.
headers() {
	find "$1" -type f -exec sed '/^samples *$/q' {} ';'
}

# has_line PATH PATTERN: whether a header there has such a line.
has_line() {
	headers "$1" >"$work/headers"
	grep -x "$2" "$work/headers"
}

# field PATH WORD: the sum of the values.
field() {
	headers "$1" | awk -v word="$2" '$1 == word { sum += $2 } END { print sum + 0 }'
}

modes() {
	find "$1" -mindepth 1 -printf '%y %m\n' | sort -u
}

# nothing_in DIRECTORY: not even a hidden file.
nothing_in() {
	find "$1" -mindepth 1
	[ -z "$(find "$1" -mindepth 1)" ]
}

build_id() {
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}

check "the program" compile files "${shared[@]}"

# --- A session ---

check "a session is written" run files session
check "it leaves all else alone" fails grep -qE 'signal|errno' "$work/session.out"
total=$(($(printed session own) + $(printed session made) + $(printed session library)))
check "it has counts" [ "$total" -ge 60 ]
check "profiltool reads the same counts" same "$total" "$(reported "$work/session/dcpi")"
check "of the program" same "$(printed session own)" "$(reported "$work/session/dcpi" files)"
check "of the C library" same "$(printed session library)" "$(reported "$work/session/dcpi" libc)"
check "as of the gperftools file" same "$total" "$(reported "$work/session/prof")"
check "all ticks are accounted for" same "$(printed session ticks)" \
	"$(field "$work/session/dcpi" x-ticks)"
check "profiltool would write the same" as_profiltool session 3
check "the program's file has its build ID" \
	has_line "$work/session/dcpi" "image *$(build_id "$work/files")"
check "files and directories are the user's alone" \
	same $'d 700\nf 600' "$(modes "$work/session/dcpi")"
check "with whole names only" same 3 "$(find "$work/session/dcpi" -type f -name '[!.]*' | wc -l)"

check "a process that has ended is written" run files other
check "a process that has ended is written: with the same counts" \
	same "$(printed other own)" "$(reported "$work/other/dcpi" files)"
check "a process that has ended is written: as profiltool would" as_profiltool other 1

# --- A buffer ---

mkdir "$work/buffer"
run_buffer() {
	mkdir -p "$work/buffer/on" && "$work/files" buffer "$work/buffer" >"$work/buffer.out"
	local status=$?
	cat "$work/buffer.out"
	return "$status"
}

for backend in bpf libc; do
	export PROFIL_BACKEND=$backend
	rm -r "$work/buffer"
	check "$backend: a buffer of profil() is written" run_buffer
	check "$backend: with the same counts" same "$(printed buffer buffer)" \
		"$(reported "$work/buffer/dcpi")"
	check "$backend: and as profiltool would" as_profiltool buffer 1
	check "$backend: buckets of 8 bytes" has_line "$work/buffer/dcpi" 'x-bucket *8'
	check "$backend: it can be written while it counts" \
		[ "$(reported "$work/buffer/on/dcpi")" -ge 50 ]
done
unset PROFIL_BACKEND

check "known counts are written" run files made-up
check "known counts are written: read" same 55 "$(reported "$work/made-up/dcpi")"
check "known counts are written: are what profiltool would write" as_profiltool made-up 1
check "once more" "$work/files" made-up "$work/made-up"
check "makes the sum" same 110 "$(reported "$work/made-up/dcpi")"
check "in a gperftools file it does not" same 55 "$(reported "$work/made-up/prof")"

# --- Other images ---

check "a program without a build ID" compile plain "${shared[@]}" -Wl,--build-id=none
check "a program without a build ID: is written" run plain made-up
check "a program without a build ID: with the id that profiltool makes" as_profiltool made-up 1
check "which has the file's time" \
	has_line "$work/made-up/dcpi" "image *$(date -u -r "$work/plain" +%Y%m%d%H%M%S)[0-9a-f]*"

cp "$work/files" "$work/deleted"
deleted() {
	FILES_DELETE=1 run deleted made-up && [ ! -e "$work/deleted" ]
}
check "a program that was deleted is written" deleted
check "as the one that it was" \
	has_line "$work/made-up/dcpi" "image *$(build_id "$work/files")"
check "at its own addresses" fails has_line "$work/made-up/dcpi" "x-addresses.*"

# --- Beside others ---

mkdir "$work/many"
write_at_once() {
	local pids=() i
	for i in 1 2 3 4 5 6 7 8; do
		mkdir -p "$work/many/$i"
		ln -sfn ../dcpi "$work/many/$i/dcpi"
		"$work/files" made-up "$work/many/$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || return
	done
}
mkdir "$work/many/dcpi"
check "eight write to one database at once" write_at_once
check "eight write to one database at once: none is lost" \
	same $((8 * 55)) "$(reported "$work/many/dcpi")"
check "nothing temporary is left" same 0 "$(find "$work/many" -name '.*' | wc -l)"

# profiltool adds to what the library wrote, and the other way round.
mkdir "$work/both"
check "profiltool converts a database" \
	"$profiltool" convert -f dcpi "$work/many/dcpi" "$work/both/dcpi"
epoch=$(ls "$work/both/dcpi")
check "profiltool converts a database: adds it to another one" \
	"$profiltool" convert -f dcpi "$work/many/dcpi" "$work/both/dcpi"
check "with all counts" same $((16 * 55)) "$(reported "$work/both/dcpi")"
check "in the same epoch" same "$epoch" "$(ls "$work/both/dcpi")"

# --- What cannot be written ---

check "wrong arguments are refused" run files wrong

check "a size limit is an error" fails run files limited
check "which names it" grep -q "^dcpi: EFBIG: cannot write .*: File too large" "$work/limited.out"
check "for gperftools, too" grep -q "^gperftools: EFBIG: cannot write" "$work/limited.out"
check "no signal remains" fails grep -qE '^(signal|errno)' "$work/limited.out"
check "no signal remains: nothing is left behind" nothing_in "$work/limited"

# profiltool writes by the same code.
limited_profiltool() {
	mkdir "$work/limit"
	(
		ulimit -f 0
		"$profiltool" convert -f dcpi "$work/session/dcpi" "$work/limit/dcpi" 2>&1
	) | cat >"$work/limit.out"
	[ "${PIPESTATUS[0]}" = 1 ] && cat "$work/limit.out" &&
		grep "cannot write .*: File too large" "$work/limit.out" && nothing_in "$work/limit"
}
check "profiltool does the same" limited_profiltool

full_disk() {
	# shellcheck disable=SC2016 # for that bash
	unshare -m bash -c '
		mount -t tmpfs -o size=4k,nr_inodes=20 none "$2" || exit
		mkdir "$2/x" && head -c 4000 /dev/zero >"$2/x/filler" || exit
		"$1" made-up "$2/x"
		[ $? = 1 ] && [ "$(find "$2/x" -mindepth 1)" = "$2/x/filler" ]' - "$work/files" "$1" \
		>"$work/full.out" 2>&1
	local status=$?
	cat "$work/full.out"
	return "$status"
}
mkdir "$work/full"
check "a full disk is an error, and nothing is left behind" full_disk "$work/full"
check "that is named" grep -q "^dcpi: ENOSPC: cannot write .*: No space left on device" \
	"$work/full.out"

damaged() {
	local file epoch now
	run files made-up >/dev/null
	file=$(find "$work/made-up/dcpi" -type f)
	echo tail >>"$file"
	cp "$file" "$work/damaged"
	# Each minute is another epoch: this one may not be that of the file any more, and the next may come.
	now=$(date +%s)
	for epoch in $(date -u -d "@$now" +%y%m%d%H%M) $(date -u -d "@$((now + 60))" +%y%m%d%H%M); do
		[ -e "$work/made-up/dcpi/$epoch" ] || cp -r "${file%/*/*}" "$work/made-up/dcpi/$epoch"
	done
	! "$work/files" made-up "$work/made-up" >"$work/damaged.out"
	cat "$work/damaged.out"
	cmp "$file" "$work/damaged" &&
		grep -q "^dcpi: EINVAL: .*/${file##*/}: at byte" "$work/damaged.out"
}
check "a damaged file is refused and stays" damaged

# --- Other programs ---

check "profild" start_profild

# other_build NAME OPTION...: what the same program does in another build.
other_build() {
	local name=$1
	shift
	check "$name" compile "${name// /-}" "$@"
	check "$name: known counts" run "${name// /-}" made-up
	check "$name: are what profiltool would write" as_profiltool made-up 1
	export PROFIL_SOCKET=$sock PROFIL_BACKEND=daemon
	check "$name: a session" run "${name// /-}" session
	unset PROFIL_SOCKET PROFIL_BACKEND
	total=$(($(printed session own) + $(printed session made) + $(printed session library)))
	check "$name: with the same counts" same "$total" "$(reported "$work/session/dcpi")"
	check "$name: is what profiltool would write" as_profiltool session 2
}

other_build "a static program" -static "$build/lib/libprofil.a"
# Its names are in nobody's way.
check "the static library has no names but its own" same "" "$(nm -g --defined-only \
	"$build/lib/libprofil.a" 2>/dev/null | awk 'NF == 3 { print $3 }' |
	grep -vE '^(profil|sprofil|profil_.*)$|mcount|_mcleanup|moncontrol|monstartup|__fentry__')"
if runs_32_bit "32-bit programs"; then
	other_build "a 32-bit program" -m32 -D_FILE_OFFSET_BITS=64 -L"$build/lib32" -lprofil \
		"-Wl,-rpath,$build/lib32"
fi
finish
