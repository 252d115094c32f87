#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Whom to record, without numbers: programs by their names and command lines.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# Names that no other process has, one of them longer than the kernel keeps.
name=pw$$
long=profil-whom-of-$$-long
cp "$progs/shares" "$work/$name"
cp "$progs/shares" "$work/$long"
start_ready "$work/$name" 1 0 stay lazy
one=$pid
start_ready "$work/$name" 1 0 stay lazy one-of-a-kind
two=$pid
start_ready "$work/$long" 1 0 stay lazy
three=$pid

# finds TEXT OPTION...: a recording that these options begin reports TEXT.
finds() {
	local text=$1
	shift
	exits 0 timeout 60 "$profiltool" record -F 999 -d 1 "$@" && says "$text"
}

check "-p NAME: all that run it" finds "\"$name\" is 2 processes: $one, $two" -p "$name"
check "-p NAME: they are the target" says "$name (PID $one) and 1 more: "
check "-p of a name that the kernel cuts" finds "\"$long\" is process $three" -p "$long"
check "-p of that name as ps shows it" finds "\"${long:0:15}\" is process $three" -p "${long:0:15}"
check "-p NAME,PID" finds "and 2 more" -p "$name,$three"
check "-p NAME -q reports nothing" exits 0 "$profiltool" record -q -F 999 -d 1 -p "$name"
check "-p NAME -q reports nothing: it does not" test ! -s "$work/err"
check "--pgrep: command lines" finds "\"whom-of-$$.*lazy\" is process $three" --pgrep "whom-of-$$.*lazy"
check "--pgrep: a word of it" finds "is process $two" --pgrep "^[^ ]*/$name .*one-of-a[-]kind"
check "--pgrep with -p: both" finds "and 1 more" --pgrep "$work/$name .*kin[d]" -p "$three"
check "--pgrep: not the shell that starts profiltool" exits 0 \
	sh -c "'$profiltool' record -F 999 -d 1 --pgrep '$work/$name .*kind' ; true"
check "--pgrep: not the shell that starts profiltool: one process" says "is process $two"
check "top -p NAME" exits 0 "$profiltool" top -p "$name" --tables 1 -d 2
check "top -p NAME: reported" says "\"$name\" is 2 processes: $one, $two"

# --- What is not there ---

check_rows <<EOF
NAME -p: nothing has this name, but one has a similar one
RUN "$profiltool" record -p "$name"x -d 1
STATUS 1
EXPECT no process has the name "${name}x"
EXPECT one has the name $name

NAME -p: nothing has this name, nor a similar one
RUN "$profiltool" record -p "$one",no-such-program-here -d 1
STATUS 1
EXPECT no process has the name "no-such-program-here"
EXPECT list the names with: ps -e

NAME --pgrep: nothing matches
RUN "$profiltool" top --pgrep 'no-such-program-her[e]' --tables 1
STATUS 1
EXPECT no process has a command line that matches "no-such-program-her[e]"

NAME --pgrep: no regular expression
RUN "$profiltool" record --pgrep '(' -d 1
STATUS 2
EXPECT --pgrep takes a regular expression, not "("

NAME --pgrep excludes other kinds of targets
RUN "$profiltool" record --pgrep x -a -d 1
STATUS 2
EXPECT exclude each other
EOF

# A program whose name is a number that no process has.
ln "$work/$name" "$work/2100000000"
start_ready "$work/2100000000" 1 0 stay lazy
check "-p of a number that is a program's name" exits 1 "$profiltool" record -p 2100000000 -d 1
check "-p of a number that is a program's name: reported" \
	says "there is no process 2100000000, but a program of that name"
hint=$(sed -n "s/.*--pgrep '\(.*\)' takes it.*/\1/p" "$work/err")
check "-p of a number that is a program's name: the way that is printed" finds "is process $pid" --pgrep "$hint"

finish
