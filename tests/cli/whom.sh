#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Whom to record, without numbers: programs by their names and command lines, users, units, and containers by the
# names that their engines' state files have.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for another shell
. "$(dirname "$0")/../lib.sh"

# shellcheck source=SCRIPTDIR/../control_group.sh
. "$top/tests/control_group.sh"

# Names that no other process has, one of them longer than the kernel keeps, of which it keeps the PID.
name=pw$$
long=p$$-whom-of-$$-long
cp "$progs/shares" "$work/$name"
cp "$progs/shares" "$work/$long"
start_ready "$work/$name" 1 0 stay lazier
one=$pid
start_ready "$work/$name" 1 0 stay lazier one-of-a-kind
two=$pid
start_ready "$work/$long" 1 0 stay lazier
three=$pid

# records_use PID COMMAND...: a recording of 999 Hz that has ticks of a process, which uses some CPU time meanwhile.
records_use() {
	local of=$1
	shift
	awake=1 until_used "$of" 20 "$@" -F 999 -d 600
}
# finds TEXT OPTION...: a recording that these options begin reports TEXT, which has a PID, or else is of $three, too.
finds() {
	local text=$1 of
	of=$(sed -nE 's/.*(is process|processes:) ([0-9]+).*/\2/p' <<<"$1")
	shift
	exits 0 records_use "${of:-$three}" "$profiltool" record "$@" && says "$text"
}

check "-p NAME: all that run it" finds "\"$name\" is 2 processes: $one, $two" -p "$name"
check "-p NAME: they are the target" says "$name (PID $one) and 1 more: "
check "-p of a name that the kernel cuts" finds "\"$long\" is process $three" -p "$long"
check "-p of that name as ps shows it" finds "\"${long:0:15}\" is process $three" -p "${long:0:15}"
check "-p NAME,PID" finds "and 2 more" -p "$name,$three"
check "-p NAME -q reports nothing" exits 0 records_use "$one" "$profiltool" record -q -p "$name"
# What a busy machine is a reason for is said with -q, too.
check "-p NAME -q reports nothing: it does not" bash -c '! grep -F "$1" "$2"' - "$name" "$work/err"
# Debian's php-fpm is php-fpm8.2: the version is taken if only one is there.
version=v$$of
cp "$work/$name" "$work/${version}8.2"
start_ready "$work/${version}8.2" 1 0 stay lazier
older=$pid
check "-p NAME without its version" finds "\"${version}8.2\" is process $pid" -p "$version"
cp "$work/$name" "$work/$version-9"
start_ready "$work/$version-9" 1 0 stay lazier
check "-p NAME without its version: two are there" exits 1 "$profiltool" record -p "$version" -d 1
check "-p NAME without its version: two are there: the hint is an option" says "-p $version"
stop "$older"
stop "$pid"
check "--pgrep: command lines" finds "\"whom-of-$$.*lazier\" is process $three" --pgrep "whom-of-$$.*lazier"
check "--pgrep: a word of it" finds "is process $two" --pgrep "^[^ ]*/$name .*one-of-a[-]kind"
check "--pgrep with -p: both" finds "and 1 more" --pgrep "$work/$name .*kin[d]" -p "$three"
check "--pgrep: not the shell that starts profiltool" exits 0 \
	sh -c "'$profiltool' record -F 999 -d 0.3 --pgrep '$work/$name .*kind' ; true"
check "--pgrep: not the shell that starts profiltool: one process" says "is process $two"
check "top -p NAME" exits 0 "$profiltool" top -p "$name" -F 999 --tables 1 -d 1
check "top -p NAME: reported" says "\"$name\" is 2 processes: $one, $two"

# --- Titles ---

# A server with two workers, which it calls otherwise than itself.
cat >"$work/server" <<'EOF_PERL'
use POSIX;
$SIG{TERM} = "DEFAULT";
my @titles = ("whom: worker $$ one", "whom: worker $$ two");
for my $title (@titles) {
	next if fork;
	$0 = $title;
	while (1) {
		1 for 1 .. 100000;
		select undef, undef, undef, 0.02;
	}
}
$0 = "whom: main";
print "ready\n";
close STDOUT;
pause();
EOF_PERL
start_ready "${mapless[@]}" perl "$work/server"
server=$pid
have_titles() {
	[ "$(pgrep -cf "^whom: worker $server (one|two)")" -eq 2 ]
}
wait_for have_titles
mapfile -t workers < <(pgrep -f "^whom: worker $server" | sort -n)
note_started "${workers[@]}"
record_begin titles --children -p "$server" -F 999 --call-graph=none --json -o "$work/titles.pb.gz"
for worker in "${workers[@]}"; do
	wait_for_use "$worker" 100
done
record_end
check "--children of a server with titles: succeeds" test $? -eq 0
"$profiltool" report --by title --json "$work/titles.pb.gz" >"$work/titles.by" 2>"$work/err"
check "report --by title tells workers apart" json \
	"{r['title'] for r in j['rows']} - {'whom: main'} == {'whom: worker $server one', 'whom: worker $server two'}" \
	"$work/titles.by"
start_ready perl -e '$0 = "[title$$: main] (two words)"; $| = 1; print "ready\n"; 1 while 1'
check "-p NAME: the first word of a title, which others write with brackets" finds "\"title$pid\" is process $pid" -p "title$pid"
stop "$pid"
start_ready perl -e '$0 = "title$$: main [app]"; $| = 1; print "ready\n"; 1 while 1'
check "-p NAME: the first word of a title" finds "\"title$pid\" is process $pid" -p "title$pid"
stop "$pid"
check "--pgrep: titles" finds "is 2 processes: ${workers[0]}, ${workers[1]}" --pgrep "^whom: worker $server"
for pid in "$server" "${workers[@]}"; do
	end_started "$pid"
done

# --- A user ---

# Users that have no other processes. A process with a name becomes the user's, or ends to be.
mine=$((2000000000 + $$))
others=$((mine + 5000000))
chmod 755 "$work"
for program in before joins; do
	cp "$progs/family" "$work/$program"
done
for program in own others late after left; do
	cp "$progs/shares" "$work/$program"
done
start_ready setpriv --reuid="$others" --clear-groups "$work/others" 1 0 stay lazier
alien=$pid
begin own setpriv --reuid=$mine --clear-groups "$work/own" 1 0.4 wait stay
targets=("$pid")
begin leaves setpriv --euid=$mine "$work/before" exec 0.4 setpriv --euid=0 "$work/left" 1 0.4 stay
targets+=("$pid")
begin joins "$work/joins" exec 0.4 setpriv --reuid=$mine --clear-groups "$work/after" 1 0.4 stay
targets+=("$pid")
share_buffers # whose they are is said by records that must not be lost
record_begin user -u $mine -F 999 --wall --json -o "$work/user.pb.gz"
for program in own leaves joins; do
	send_line $program go
done
begin late setpriv --reuid=$mine --clear-groups "$work/late" 1 0.4 stay
for pid in "${targets[@]}" "$pid"; do
	wait "$pid"
done
record_end
free_buffers
check "-u: succeeds" test $? -eq 0
# user_has EXPRESSION: about of(NAME): the samples in the image of this name.
user_has() {
	json "(lambda of: $1)(lambda n: sum(f['self'] for f in j['functions'] if f['image'].endswith('/' + n)))" "$work/user.json"
}
check "-u: a process of this user, and no other's" user_has "of('own') > 0 and of('others') == 0"
check "-u: one that starts later" user_has "of('late') > 0"
check "-u: one that becomes this user's: from then on" user_has "of('after') > 0 and of('joins') == 0"
check "-u: one that becomes another's: until then" user_has "of('before') > 0 and of('left') == 0"
check "-u: the summary names it" grep -qF "user $mine: " "$work/user.err"
"$profiltool" report -u $mine --by user --json "$work/user.pb.gz" >"$work/user.by" 2>"$work/err"
check "-u: all samples and the wall time are this user's" json \
	"[r['user'] for r in j['rows']] == ['$mine'] and j['rows'][0]['wall']['wall_ns'] > 0" "$work/user.by"
check "report -u: all of them" says "have 100.00 % of the"
check "report -u of another" exits 4 "$profiltool" report -u $others "$work/user.pb.gz"
check "top -u" exits 0 "$profiltool" top -u $others -F 999 --tables 1 -d 1
check "top -u: its name" grep -qF "user $others" "$work/out"
check "top -u FILE" exits 0 "$profiltool" top -u $mine --by user --tables 1 "$work/user.pb.gz"
stop "$alien"
check "-u: a user without processes" exits 4 "$profiltool" record -u $others -d 0.1
check "-u: a user without processes: the reason" says ": it has no processes"

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

NAME -u: there is no such user
RUN "$profiltool" record -u nobodi -d 1
STATUS 1
EXPECT there is no user "nobodi"
EXPECT one has the name nobody

NAME -u excludes -a
RUN "$profiltool" record -u 0 -a -d 1
STATUS 2
EXPECT exclude each other

NAME -u excludes -p, in top
RUN "$profiltool" top -u 0 -p 1 --tables 1
STATUS 2
EXPECT exclude each other

NAME --pgrep excludes other kinds of targets
RUN "$profiltool" record --pgrep x -a -d 1
STATUS 2
EXPECT exclude each other
EOF

# A program whose name is a number that no process has.
number=$((2100000000 + $$)) # above all PIDs
ln "$work/$name" "$work/$number"
start_ready "$work/$number" 1 0 stay lazier
check "-p of a number that is a program's name" exits 1 "$profiltool" record -p "$number" -d 1
check "-p of a number that is a program's name: reported" \
	says "there is no process $number, but a program of that name"
hint=$(sed -n "s/.*--pgrep '\(.*\)' takes it.*/\1/p" "$work/err")
check "-p of a number that is a program's name: the way that is printed" finds "is process $pid" --pgrep "$hint"
stop "$pid"

# --- Units and containers ---

if ! make_control_group || ! unshare -m true 2>/dev/null; then
	skip "units and containers" "no control group, or no mount namespace, can be made here"
	finish
fi

# An ID for each engine; the last has no name.
for engine in docker podman containerd kubernetes nameless; do
	declare "$engine=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"
done
unit=whom-$$
# shellcheck disable=SC2154 # declared above
mkdir "$group/$unit.service" "$group/docker-$docker.scope" "$group/libpod-$podman.scope" \
	"$group/cri-containerd-$containerd.scope" "$group/$kubernetes" "$group/libpod-$nameless.scope"
echo "$one" >"$group/docker-$docker.scope/cgroup.procs"
echo "$three" >"$group/$unit.service/cgroup.procs"

# state DIRECTORY NAME TEXT: makes a state file.
state() {
	mkdir -p "$work/state/$1" && echo "$3" >"$work/state/$1/$2"
}
mkdir -p "$work/state"/{lib,run,log/containers}
state "lib/docker/containers/$docker" config.v2.json \
	"{\"ID\": \"$docker\", \"Name\": \"/shop\", \"Config\": {\"Labels\": {}}, \"State\": {\"Running\": true}}"
state lib/containers/storage/overlay-containers containers.json \
	"[{\"id\": \"$podman\", \"names\": [\"mail\"], \"image\": \"\"}, {\"id\": 7, \"names\": 7}, 7]"
state "run/containerd/io.containerd.runtime.v2.task/k8s.io/$containerd" config.json "{\"annotations\":
	{\"io.kubernetes.cri.container-name\": \"search\", \"io.kubernetes.cri.sandbox-name\": \"web-0\",
	 \"io.kubernetes.cri.sandbox-namespace\": \"prod\"}}"
ln -s /nowhere "$work/state/log/containers/batch-1_prod_indexer-$kubernetes.log"
# What is no state file hides no other one.
ln -s /dev/zero "$work/state/lib/docker/containers/$nameless"
for bad in '{' '[[[[' 7 '{"Name": 7}' "$(printf '[%.0s' {1..3000})"; do
	state "lib/docker/containers/$(printf '%s' "$bad" | sha256sum | cut -c 1-64)" config.v2.json "$bad"
done
state "lib/docker/containers/${podman:32}${docker:32}" config.v2.json '{"Name": "/shop"}'
truncate -s 20M "$work/state/lib/docker/containers/${podman:32}${docker:32}/config.v2.json"

# engines COMMAND...: runs a command where these are the state files.
engines=(unshare -m sh -c 'mount --make-rprivate / && mount --bind "$0/lib" /var/lib && mount --bind "$0/run" /run &&
	mount --bind "$0/log" /var/log && exec "$@"' "$work/state")
engines() {
	"${engines[@]}" "$@"
}

# is_container NAME ID: --container NAME records this container, in which nothing runs.
is_container() {
	exits 4 engines "$profiltool" record -d 0.1 --container "$1" && says "no tick fell into container $1 (${2:0:12})"
}
check "--container: podman's" is_container mail "$podman"
for pod in search web-0 web-0/search prod/web-0/search; do
	check "--container: containerd's and kubernetes': $pod" is_container $pod "$containerd"
done
check "--container: kubernetes', with another engine" is_container indexer "$kubernetes"
check "--container: the beginning of an ID" exits 4 "$profiltool" record -d 0.1 --container "${nameless:0:12}"
check "--container: the beginning of an ID: the whole" says "no tick fell into container $nameless"
check "record --container: docker's" exits 0 records_use "$one" "${engines[@]}" "$profiltool" record \
	--container shop -o "$work/shop.pb.gz"
check "record --container: docker's: its ID" says "container shop (${docker:0:12}): "
check "report --container" exits 0 engines "$profiltool" report --container shop "$work/shop.pb.gz"
check "report --container: all samples" says "have 100.00 % of the samples"
check "report --container: another one" exits 4 engines "$profiltool" report --container mail "$work/shop.pb.gz"
check "report --container: the beginning of an ID" exits 0 "$profiltool" report --container "${docker:0:12}" "$work/shop.pb.gz"
check "report --container, where there is no state file" exits 0 "$profiltool" report --container shop "$work/shop.pb.gz"
"$profiltool" report --by container "$work/shop.pb.gz" >"$work/out" 2>"$work/err"
check "report --by container: name and ID" grep -qE " shop \(${docker:0:12}\)\$" "$work/out"
"$profiltool" report --by container --json "$work/shop.pb.gz" >"$work/shop.json" 2>"$work/err"
check "report --by container: JSON has both" json \
	"[(r['container'], r['container_name']) for r in j['rows']] == [('$docker', 'shop')]" "$work/shop.json"
check "top --container" exits 0 engines "$profiltool" top --container shop -F 999 --tables 1 -d 1 --by container
check "top --container: its name and ID" grep -qF "shop (${docker:0:12})" "$work/out"
check "record --unit, without .service" exits 0 records_use "$three" "$profiltool" record --unit "$unit"
check "record --unit, without .service: its name" says "unit $unit.service: "
check "top --unit" exits 0 "$profiltool" top --unit "whom-$$.s*" -F 999 --tables 1 -d 1
check "top --unit: its name" grep -qF "unit $unit.service" "$work/out"

mkdir "$group/$unit-x.service"
echo "$two" >"$group/$unit-x.service/cgroup.procs"
record_begin units --unit "whom-$$*" --call-graph=none -F 999 --json -o "$work/units.pb.gz"
for program in "$two" "$three"; do
	wait_for_use "$program" 100
done
record_end
check "--unit: all that match: succeeds" test $? -eq 0
check "--unit: all that match: reported" grep -qE "is 2 units: $unit(-x)?.service, $unit(-x)?.service\$" "$work/units.err"
"$profiltool" report --by unit --json "$work/units.pb.gz" >"$work/units.by" 2>"$work/err"
check "--unit: all that match" json "{r['unit'] for r in j['rows']} == {'$unit.service', '$unit-x.service'}" "$work/units.by"
check_rows <<EOF
NAME --unit: there is none, but one has a similar name
RUN "$profiltool" record --unit "$unit.y" -d 1
STATUS 1
EXPECT no unit "$unit.y" runs
EXPECT one has the name $unit

NAME --container: there is none
RUN engines "$profiltool" record --container no-such-container -d 1
STATUS 1
EXPECT no container "no-such-container" runs

NAME --container excludes other targets
RUN "$profiltool" record --container x --unit y -d 1
STATUS 2
EXPECT exclude each other

NAME --container excludes -p in top
RUN "$profiltool" top --container x -p 1 --tables 1
STATUS 2
EXPECT exclude each other
EOF

# A container that gets its name after profild has recorded it has the name from then on.
late=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
mkdir "$group/docker-$late.scope"
start_ready "$work/$name" 1 0 stay # not lazier: on a busy machine that has a tick in many windows
echo "$pid" >"$group/docker-$late.scope/cgroup.procs"
start "${engines[@]}" "$build/profild" --continuous --directory "$work/archive" --window 1 --watch=0
# has_late NAME: a window has the container by this name.
has_late() {
	"$profiltool" report --by container --json "$work/archive" >"$work/late.json" 2>"$work/err" &&
		json "('$late', $1) in [(r.get('container'), r.get('container_name')) for r in j['rows']]" "$work/late.json"
}
check "profild: a container without a name" wait_for has_late None
state "lib/docker/containers/$late" config.v2.json '{"Name": "/late"}'
check "profild: a container that is named later" wait_for has_late "'late'"

finish
