#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The name of a file selects its format: names that programs use, also compressed ones. Any other name is
# an error; there is no silent default.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

cd "$work" || exit 1
printf '# stacks\nmain;work;leaf 3\nmain;work 2\n' >a.folded
check "a profile" exits 0 "$profiltool" convert a.folded a.pb.gz

convert() {
	"$profiltool" convert "$@"
}

# --- Names that say a format ---

while read -r name format; do
	check "$name" exits 0 convert a.folded "$name"
	check "$name is $format" test "$(dumped format "$name")" = "$format"
done <<'END'
x.pb.gz pprof
x.pprof pprof
callgrind.out callgrind
callgrind.out.123 callgrind
callgrind.out.123-02 callgrind
cachegrind.out.7 callgrind
x.callgrind callgrind
x.collapsed folded
x.folded.gz folded
x.callgrind.gz callgrind
callgrind.out.9.gz callgrind
callgrind.out.1.folded folded
callgrind.out.1.folded.gz folded
callgrind.out.1.collapsed folded
callgrind.out.1.pb.gz pprof
gmon.out.folded folded
gmon.out.pb.gz pprof
gmon.out.callgrind callgrind
END
for name in x.folded.gz x.callgrind.gz callgrind.out.9.gz; do
	check "$name is compressed" gzip -t "$name"
done
check "once" grep -q '^main;work;leaf 3$' <(gzip -dc x.folded.gz)
check "pprof is compressed once" test "$(gzip -dc x.pb.gz | head -c 2 | od -An -tx1)" != " 1f 8b"
check "-f with such a name" exits 0 convert -f folded a.pb.gz named.gz
check "-f with such a name: is compressed, too" grep -q '^main;work 2$' <(gzip -dc named.gz)
ln -s /dev/full full.folded.gz
check_rows <<'EOF'
NAME convert fails if the disk is full
RUN convert -f folded a.pb.gz /dev/full
STATUS 1
EXPECT No space left on device

NAME convert to a compressed file fails if the disk is full
RUN convert a.pb.gz full.folded.gz
STATUS 1
EXPECT No space left on device

NAME convert does not compress a format that is a directory
RUN convert a.pb.gz x.dcpi.gz
STATUS 2
EXPECT dcpi is not written compressed
EOF

# --- gmon.out ---

cat >one.c <<'END'
int main(void)
{
	for (volatile unsigned long i = 0; i < 1000000000; i++)
		;
	return 0;
}
END
gcc -O1 -static -o one one.c
check "a program of one image" exits 0 "$profiltool" record --user -F 999 -q -o one.pb.gz -- ./one
check "gmon.out" exits 0 convert one.pb.gz gmon.out
check "gmon.out: is a file" test -f gmon.out
check "that gprof reads" grep -q ' main$' <(gprof -p -b ./one gmon.out)
check "gmon.out.5 over one that is there" exits 0 convert one.pb.gz gmon.out
check "of two images" exits 0 "$profiltool" record --user -F 999 -q -o two.pb.gz -- \
	sh -c './one; head -c 300000000 /dev/zero | sha1sum'
check "of two images: refused" exits 1 convert two.pb.gz gmon.out.6
check "of two images: with the way out" says "-f gmon DIRECTORY"
check "of two images: nothing is written" test ! -e gmon.out.6

# --- Names that say none ---

while IFS='|' read -r name words; do
	for command in "convert a.folded" "merge a.folded -o" "record -q -o"; do
		tail=()
		[[ $command != record* ]] || tail=(-- touch began)
		# shellcheck disable=SC2086 # words
		check "${command%% *} refuses the name $name" exits 2 "$profiltool" $command "$name" "${tail[@]}"
		check "${command%% *} says what is wrong with the name $name" says "$words"
	done
done <<'END'
x.cg|add -f with one of gmon, gperftools, dcpi
x|the name x implies no format to write
x.gz|add -f
x.pb.bz2|add -f
x.cpuprofile|add -f
x.svg|profiltool flamegraph x.pb.gz -o x.svg
x.HTML|profiltool web
x.json|profiltool report --json x.pb.gz >x.json, or dump --json
callgrind.out.1.svg|would be a picture
callgrind.out.1.svg.gz|would be a picture
callgrind.out.1.html|would be a page
callgrind.out.1.txt|would be text
gmon.out.json|would be JSON
END
check "nothing is written under a name of no format" test -z "$(find . -name 'x' -o -name 'x.[csj][vgs]*' -o -name '*.out.*[lnt]' ! -name '*.callgrind')"
check "no command is run whose profile has no format" test ! -e began
mkdir directory
check "a directory" exits 2 convert a.folded directory
check "-f makes any name good" exits 0 convert -f folded a.pb.gz x.cg
check "it is what was asked for" grep -q '^main;work 2$' x.cg

# --- Places without a name ---

check "standard output" test "$(convert a.folded - 2>/dev/null | "$profiltool" dump - |
	head -n 1)" = "format pprof"
mkfifo fifo
exec 3<>fifo # a reader that is there at once
with_pdeathsig cat <fifo >from_fifo 3>&- &
check "a pipe" exits 0 convert a.folded fifo
exec 3>&-
wait $!
check "gets pprof" test "$(dumped format from_fifo)" = pprof
check "/dev/stdout" test "$(convert a.folded /dev/stdout 2>/dev/null | "$profiltool" dump - |
	head -n 1)" = "format pprof"

# --- DCPIDB ---

check "without DCPIDB report wants a file" exits 2 "$profiltool" report
check "without DCPIDB convert wants OUT" exits 2 convert -f dcpi one.pb.gz
export DCPIDB=$work/db
check "record -f dcpi" exits 0 "$profiltool" record --user -F 999 -q -f dcpi -- ./one
check "writes to DCPIDB" test -d db
check "report reads it" exits 0 "$profiltool" report
check "report reads it: with the program's samples" grep -q ' main  *one$' out
total() {
	"$profiltool" report --json "$@" 2>/dev/null >report.json
	python3 -c 'import json
print(sum(f["self"] for f in json.load(open("report.json"))["functions"]))'
}
first=$(total)
check "convert -f dcpi IN" exits 0 convert -f dcpi one.pb.gz
check "adds to it" test "$(total)" -eq $((first + $(total one.pb.gz)))
check "dump" exits 0 "$profiltool" dump
check "annotate a function of it" exits 0 "$profiltool" annotate main
check "flamegraph" exits 0 "$profiltool" flamegraph -o db.svg
check "merge" exits 0 "$profiltool" merge -o db.pb.gz
check "has all" test "$(total db.pb.gz)" -eq "$(total)"
check "-o is stronger" exits 0 convert -f dcpi one.pb.gz other
check "it was written there" test -d other
check "a file is stronger" test "$(total one.pb.gz)" -lt "$(total)"
DCPIDB=$work/gone
check "a database that is not there" exits 1 "$profiltool" report
check "says where its name is from" says "no file was named, and DCPIDB is $work/gone"
check "annotate FUNCTION without FILE warns of it once" exits 1 "$profiltool" annotate main
check "annotate FUNCTION: one warning" test "$(grep -c "no file was named" err)" -eq 1
check "annotate FILE does not need the database" exits 0 "$profiltool" annotate one.pb.gz
check "annotate FILE does not warn of it" test "$(grep -c "no file was named" err)" -eq 0
check "annotate takes a missing profile for no function" exits 1 "$profiltool" annotate gone.pb.gz
check "annotate names the missing profile" says "gone.pb.gz: No such file"
DCPIDB=
check "empty is none" exits 2 "$profiltool" report

finish
