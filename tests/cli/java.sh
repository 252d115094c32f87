#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Java's names, which a recording asks the JVM for; and what is not asked: no signal goes to a program that it would
# end, and no file of others is touched.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

left=() # the files that JVMs leave in /tmp
trap '[ "$BASHPID" = $$ ] && { cleanup; rm -f "${left[@]}"; }' EXIT

# leaves PID: has what a JVM leaves in /tmp removed when the test ends.
leaves() {
	left+=("/tmp/perf-$1.map" "/tmp/.java_pid$1" "/tmp/.attach_pid$1")
}

# record OPTION...: the table is in $work/json, the messages are in $work/err.
record() {
	"$profiltool" record -F 999 --json "$@" >"$work/json" 2>"$work/err" || {
		cat "$work/err"
		return 1
	}
}

# record_for MS OPTION...: records $pid until it has used that much CPU time. It is asked for names at the end.
record_for() {
	local ms=$1
	shift
	awake=1 until_used "$pid" "$ms" "$profiltool" record -F 999 --json -p "$pid" "$@" >"$work/json" 2>"$work/err" || {
		cat "$work/err"
		return 1
	}
}

# Of the code made at run time: beside it the JVM's own threads compile, later where others want the CPUs.
named() {
	recorded 'ran("int Hot.multiply*") and mostly(samples("int Hot.multiply*"),
		of=sum(f["self"] for f in j["functions"] if f["image"].startswith(("[jit", "[anon"))))' "$work/json"
}

nameless() {
	recorded 'ran("[anon]*") and not any("multiply" in f["name"] for f in j["functions"])' "$work/json"
}

# no_dump FILE: Java prints the stacks of its threads at a SIGQUIT that begins no request.
no_dump() {
	! grep -q "Full thread dump" "$1"
}

cd "$work" || exit 1

# --- Programs that only seem to be Java ---

if [ -x "$progs/seems_java" ]; then
	mkdir seems
	cp "$progs/seems_java" seems/libjvm.so

	# seems NAME ARGUMENT...: starts it, records it, and succeeds if it still runs.
	seems() {
		local name=$1
		shift
		begin "$name" seems/libjvm.so "$@"
		leaves "$pid"
		timeout 300 "$profiltool" record --json --wall -p "$pid" -d 0.5 -v >json 2>err
		[ $? -lt 124 ] && kill -0 "$pid"
	}

	# quiet NAME: whether it got no SIGQUIT.
	quiet() {
		[ -e "/proc/$pid" ] && ! grep SIGQUIT "$1.out"
	}

	check "a program that has mapped a libjvm.so: it runs on" seems mapped
	check "a program that has mapped a libjvm.so: it is not said to be Java" exits 1 grep Java err
	check "a program that has mapped a libjvm.so, and catches SIGQUIT: it runs on" seems caught catch
	check "a program that has mapped a libjvm.so, and catches SIGQUIT: it gets none" quiet caught
	check "threads like Java's, and SIGQUIT would end it: it runs on" seems deadly threads
	check "threads like Java's, and SIGQUIT would end it: a message says why it is not asked" \
		says "Java (PID $pid) was asked for the names of its code in vain: it is not seen to handle SIGQUIT"
	# Only the library's name and the threads' names are Java's: its handler is its own.
	cp "$progs/seems_java" seems/other
	own_handler() {
		begin own seems/other threads catch map seems/libjvm.so
		leaves "$pid"
		record --wall -p "$pid" -d 0.5
	}
	check "threads like Java's, and a handler of SIGQUIT of its own: recorded" own_handler
	check "threads like Java's, and a handler of SIGQUIT of its own: no signal" quiet own
	check "threads like Java's, and a handler of SIGQUIT of its own: a message says why" \
		says "in vain: it is not seen to handle SIGQUIT"
	stop "$pid"
	check "no socket opens after SIGQUIT: the recording ends" seems deaf threads catch
	check "no socket opens after SIGQUIT: it got one" grep -q SIGQUIT deaf.out
	check "no socket opens after SIGQUIT: a message says so" says "it does not open its socket"
	check "no socket opens after SIGQUIT: no file is left" \
		test ! -e "/tmp/.attach_pid$pid" -a ! -e "/tmp/perf-$pid.map"
	check "a socket that never answers: the recording ends" \
		seems mute threads catch listen /tmp/.java_pid-
	check "a socket that never answers: a message says so" says "in vain: it does not answer"
	check "a socket that never answers: no signal was needed" quiet mute
	check "a socket that never answers: no file is left" test ! -e "/tmp/perf-$pid.map"
	# Else they would keep the recording's events and programs at work after its end.
	asks_apart() {
		local child links
		record_begin apart record --wall -p "$pid"
		asker() {
			pgrep -P "$recorder" | while read -r child; do
				[ "$(cat "/proc/$child/comm")" = profil-template ] || echo "$child"
			done | grep .
		}
		wait_for asker
		child=$(asker)
		while links=$(readlink "/proc/$child/fd/"*) && grep -E "perf_event|bpf" <<<"$links"; do
			sleep 0.01
		done
		record_end
		[ -n "$links" ]
	}
	check "a socket that never answers: who waits for it has no descriptors of the recording" asks_apart
	check "a socket that answers without end: the recording ends" \
		seems babble threads catch babble /tmp/.java_pid-
	check "a socket that answers without end: a message says so" says "more than 65536 bytes"

	# What an answer costs is its CPU time: one that waits for a CPU is no reason not to ask again.
	three_times() {
		[ "$(grep -c asked slow.out)" -ge 3 ]
	}
	asked_again() {
		begin slow seems/libjvm.so threads catch answer /tmp/.java_pid-
		leaves "$pid"
		record_begin slow record --wall -p "$pid"
		wait_for three_times
		local code=$?
		record_end
		return "$code"
	}
	check "answers that take long, but little CPU time: it is asked again and again" asked_again
	stop "$pid"

	begin other seems/libjvm.so listen "$work/socket"
	other=$pid
	foreign_socket() {
		begin foreign seems/libjvm.so threads catch
		leaves "$pid"
		mv "$work/socket" "/tmp/.java_pid$pid"
		record --wall -p "$pid" -d 0.5
	}
	check "another process's socket: recorded" foreign_socket
	check "another process's socket: not used" says "another process listens at its socket"
	check "another process's socket: no signal either" quiet foreign
	stop "$other"

	# planted FILE TARGET: a link of this name, with PID for the process's.
	planted() {
		local link=/tmp/${1/PID/$pid}
		ln -s "$2" "$link" && record --wall -p "$pid" -d 0.5
	}
	begin link seems/libjvm.so threads catch
	leaves "$pid"
	check "a link in place of the file that begins a request: recorded" planted .attach_pidPID "$work/target"
	check "a link in place of the file that begins a request: refused" \
		says "/tmp/.attach_pid$pid is a symbolic link"
	check "a link in place of the file that begins a request: no signal" quiet link
	check "a link in place of the file that begins a request: nothing behind it" test ! -e target
	stop "$pid"
else
	skip "programs that only seem to be Java" "no tests/progs/seems_java"
fi

# --- Java ---

if ! command -v javac >/dev/null; then
	skip "Java" "no javac"
	finish
fi

cat >Hot.java <<'EOF_JAVA'
import java.io.File;
import java.nio.file.Files;

public class Hot {
	static int multiply(int n) {
		int s = 1;
		for (int i = 1; i < n; i++)
			s = (int) ((long) s * i % 1000003);
		return s;
	}
	/* Runs until it is killed, or with an argument, until the method's name is written. */
	public static void main(String[] args) throws Exception {
		File map = new File("/tmp/perf-" + ProcessHandle.current().pid() + ".map");
		int sum = 0;
		for (int round = 0; ; round++) {
			if (args.length > 0 && round % 100 == 0 && map.length() > 0 &&
			    Files.readString(map.toPath()).contains("Hot.multiply"))
				break;
			sum += multiply(100000);
			if (round == 300)
				System.err.println("ready");
		}
		System.err.println(sum);
	}
}
EOF_JAVA
chmod 755 .
java=(java -XX:+UseSerialGC -XX:-UsePerfData)

# start_java PREFIX... -- OPTION...
start_java() {
	local prefix=()
	while [ "$1" != -- ]; do
		prefix+=("$1")
		shift
	done
	shift
	start_ready "${prefix[@]}" "${mapless[@]}" "${java[@]}" "$@" Hot
	leaves "$pid"
}

check "Java: compiled" javac -J-XX:-UsePerfData Hot.java

start_java --
# top_names: top shows the method's name once it has asked.
top_names() {
	"${pdeathsig[@]}" "$profiltool" top -p "$pid" -d 0.5 --plain >top.out 2>err &
	recorder=$!
	note_started "$recorder"
	wait_for grep -q "int Hot.multiply" top.out
	local code=$?
	stop "$recorder"
	return "$code"
}

check "Java, --no-ask-runtimes: recorded" record_for 300 --no-ask-runtimes
check "Java, --no-ask-runtimes: no names" nameless
check "Java, --no-ask-runtimes: no request has begun" test ! -e "/tmp/.java_pid$pid"
check "the whole machine, by default: recorded" record -a -d 0.5
check "the whole machine, by default: no request has begun" test ! -e "/tmp/.java_pid$pid"
check "Java: recorded with stacks" record_for 300 -g -v
check "Java: the method has its name" named
check "Java: a message says what was asked" says "Java (PID $pid) wrote the names of its code on request"
check "Java: no thread dump" no_dump start.out
check "Java: the file that began the request is gone" test ! -e "/tmp/.attach_pid$pid"
check "Java: other users cannot read its map" [ "$(stat -c %a "/tmp/perf-$pid.map")" = 600 ]
rm "/tmp/perf-$pid.map"
check "Java: top has its names" top_names
rm "/tmp/perf-$pid.map"
check "Java, again: recorded" record_for 300
check "Java, again: the method has its name" named
check "--ask-runtimes and --no-ask-runtimes" exits 2 \
	"$profiltool" record --ask-runtimes --no-ask-runtimes -p "$pid"
rm "/tmp/perf-$pid.map"
ln -s "$work/target" "/tmp/perf-$pid.map"
check "a link in place of the map: recorded" record_for 300
check "a link in place of the map: refused" says "/tmp/perf-$pid.map is a symbolic link"
check "a link in place of the map: nothing behind it" test ! -e target
rm "/tmp/perf-$pid.map"
stop "$pid"

check "Java that ends while it is recorded: recorded" record -- "${java[@]}" Hot until-named
left+=("/tmp/perf-$(sed -n 's/.*\[jit \([0-9]*\)\].*/\1/p' json | head -n 1).map")
check "Java that ends while it is recorded: the method has its name" \
	recorded 'ran("int Hot.multiply*")' json

cat >Deep.java <<'EOF_JAVA'
import java.util.HashMap;

public class Deep {
	static int fill(HashMap<Integer, String> map) {
		for (int i = 0; i < 20000; i++)
			map.put(i, "x" + i);
		return map.size();
	}
	static int descend(int depth, HashMap<Integer, String> map) {
		return depth == 0 ? fill(map) : descend(depth - 1, map) + 1;
	}
	public static void main(String[] args) {
		int sum = 0;
		for (int round = 0;; round++) {
			sum += descend(5, new HashMap<>());
			if (round == 100)
				System.err.println("ready " + sum);
		}
	}
}
EOF_JAVA
check "Java, deep stacks: compiled" javac -J-XX:-UsePerfData Deep.java

# deep OPTION...: records stacks of it.
deep() {
	start_ready "${mapless[@]}" "${java[@]}" "$@" Deep
	leaves "$pid"
	record_for 500 -g
	local code=$?
	stop "$pid"
	return "$code"
}

check "Java without frame pointers: recorded" deep
check "Java without frame pointers: the option that keeps them" \
	says "Java keeps them with -XX:+PreserveFramePointer"
check "Java with that option: recorded" deep -XX:+PreserveFramePointer
check "Java with that option: stacks are whole" recorded 'nearly_all(j["stacks"]["complete"], j["stacks"]["user"])' json

start_java -- -Xrs
check "Java -Xrs, which SIGQUIT would end: recorded" record_for 300
check "Java -Xrs: the method has its name" named
stop "$pid"

start_java -- -XX:+DisableAttachMechanism
check "Java that takes no requests: recorded" record_for 300
check "Java that takes no requests: a message says why" \
	says "in vain: it was started with -XX:+DisableAttachMechanism"
check "Java that takes no requests: no thread dump" no_dump start.out
stop "$pid"

start_java setpriv --reuid 65534 --regid 65534 --clear-groups --
check "Java of another user: recorded" record_for 300
check "Java of another user: the method has its name" named
check "Java of another user: so is its map" [ "$(stat -c %u "/tmp/perf-$pid.map")" = 65534 ]
stop "$pid"

# The JVM is a process with another number there, with a /tmp of its own.
cat >contain <<'EOF_CONTAIN'
mount --make-rprivate / && mkdir -p "$1" && mount --bind "$1" /tmp && mount -t proc proc /proc && shift && exec "$@"
EOF_CONTAIN

contained() {
	local child
	mkdir "$work/tmp"
	cp Hot.class "$work/tmp" # what is below the real /tmp is out of sight
	start_ready unshare -m -p -f --kill-child sh contain "$work/tmp" "${java[@]}" -cp /tmp Hot
	child=$(cat "/proc/$pid/task/$pid/children")
	pid=${child%% *}
	record_for 300
}

if unshare -m -p --fork true 2>/dev/null; then
	check "Java in a container: recorded" contained
	check "Java in a container: the method has its name" named
	check "Java in a container: its map is there" test -s tmp/perf-1.map
else
	skip "Java in a container" "unshare is not permitted"
fi

finish
