#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Hints for names of code made at run time: each is that of the runtime in the process, and with real
# runtimes, following it gives the names.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

maps=()
trap '[ "$BASHPID" = $$ ] && { cleanup; [ ${#maps[@]} = 0 ] || rm -f "${maps[@]}"; }' EXIT

# record OPTION...: the table is in $work/json, the messages are in $work/err.
record() {
	"$profiltool" record -F 999 --json "$@" >"$work/json" 2>"$work/err" || {
		cat "$work/err"
		return 1
	}
	local jit
	jit=$(sed -n 's/.*\[jit \([0-9]*\)\].*/\1/p' "$work/json" | head -n 1)
	[ -z "$jit" ] || maps+=("/tmp/perf-$jit.map")
}

# hinted REGEX: what a message says that matches this.
hinted() {
	grep -oE -- "$1" "$work/err" | head -n 1
}

# no_name: whether there are samples in memory without a file, and none of them has a name.
no_name() {
	recorded 'ran("[anon]*") and not any(f["image"].startswith("[jit") for f in j["functions"])' "$work/json"
}

# has NAME: whether the process's own code has samples in this function.
has() {
	recorded "any('$1' in f['name'] and f['image'].startswith('[jit') for f in j['functions'])" "$work/json"
}

if ! [ -x "$progs/jitter" ] || ! [ -x "$progs/shares" ]; then
	skip "runtimes" "no tests/progs/jitter"
	finish
fi
cd "$work" || exit 1

# --- By their programs' names ---

mkdir bin

# named PROGRAM NAME...: runs a program of ours under another name.
# Without stacks: perl, which starts it, is an interpreter whose stacks are recorded by themselves.
named() {
	cp "$progs/$1" "bin/$2"
	shift
	record --call-graph=none -o named.pb.gz -- "${mapless[@]}" "bin/$1" "${@:2}"
}

check "no runtime: recorded" record -- "${mapless[@]}" "$progs/jitter" anon 0.1
check "no runtime: no hint" grep -q 'perf-PID.map has its names$' err
while read -r name hint; do
	check "$name: recorded" named jitter "$name" anon 0.1
	check "$name: $hint" says "$hint"
	check "$name: no other" exits 1 grep "without symbols.*;.*;.*:" err
done <<'EOF_NAMES'
node Node.js (PID
php-fpm8.2 start it with -d opcache.jit_debug=16 (regular expressions: their code gets no names, -d pcre.jit=0
ruby3.3 start it with ruby --yjit --yjit-perf (Ruby 3.3 or later
dotnet start it with DOTNET_PerfMapEnabled=1
wasmtime start it with wasmtime --profile=perfmap
EOF_NAMES
rm -r bin
check "a file, the program is gone: read" exits 0 "$profiltool" report named.pb.gz
check "a file: the same hint" says "start it with wasmtime --profile=perfmap"

# --- Java, without asking it: that is in java.sh ---

cat >Hot.java <<'EOF_JAVA'
public class Hot {
	static int multiply(int n) {
		int s = 1;
		for (int i = 1; i < n; i++)
			s = (int) ((long) s * i % 1000003);
		return s;
	}
	public static void main(String[] args) {
		long start = System.nanoTime(), end = start + Long.parseLong(args[0]) * 1000000L;
		int sum = 0;
		for (int round = 0; System.nanoTime() < end; round++) {
			sum += multiply(100000);
			if (round == 300)
				System.err.println("ready");
		}
		System.err.println(sum);
	}
}
EOF_JAVA
java=(java -XX:+UseSerialGC -XX:-UsePerfData)

# Runs the command of the hint during a recording, as a user would.
java_asked() {
	local command

	command=$(hinted "jcmd $pid Compiler.perfmap")
	[ -n "$command" ] || return 1
	record_begin asked record --no-ask-runtimes -p "$pid" -F 999 --json
	JAVA_TOOL_OPTIONS=-XX:-UsePerfData $command || return 1
	kill -INT "$recorder"
	wait "$recorder"
	cp asked.json json
	cp asked.err err
}

# Its map lacks what is compiled later.
java_old_map() {
	echo "1 1 old" >"/tmp/perf-$pid.map"
	record --no-ask-runtimes -p "$pid" -d 1
}

java_at_exit() {
	local options

	options=$(hinted '-XX:\+Unlock.*AtExit')
	[ -n "$options" ] || return 1
	# shellcheck disable=SC2086 # a list of options
	record --no-ask-runtimes -- "${java[@]}" $options Hot 2000
}

if command -v javac jcmd >/dev/null; then
	check "Java: compiled" javac -J-XX:-UsePerfData Hot.java
	start_ready "${mapless[@]}" "${java[@]}" Hot 600000
	maps+=("/tmp/perf-$pid.map")
	check "Java: recorded" record --no-ask-runtimes -p "$pid" -d 1 -o java.pb.gz
	check "Java: no names" no_name
	check "Java: the command" says "Java (PID $pid): run jcmd $pid Compiler.perfmap"
	check "Java: asked, as hinted" java_asked
	check "Java: names" has "Hot.multiply"
	check "Java: no hint" exits 1 grep jcmd err
	check "Java, a map that lacks what is hot: recorded" java_old_map
	kill -STOP "$pid"
	check "Java, such a map: the command" says "has none for it; Java (PID $pid): run jcmd $pid"
	check "Java: without the option that unlocks it, it does not start" \
		exits 1 "${java[@]}" -XX:+DumpPerfMapAtExit -version
	check "Java: a file" exits 0 "$profiltool" report java.pb.gz
	check "Java: a file: the command" says "Java (PID $pid): run jcmd $pid Compiler.perfmap"
	check "Java: from its start, as hinted" java_at_exit
	check "Java: from its start: names" has "Hot.multiply"
	stop "$pid"
else
	skip "Java" "no javac or jcmd"
fi

# --- Node.js: --perf-basic-prof is in jit.sh ---

cat >hot.js <<'EOF_JS'
function multiply(n) { let s = 1; for (let i = 1; i < n; i++) s = (s * i) % 1000003; return s; }
const end = process.cpuUsage().user / 1000 + 300;
while (process.cpuUsage().user / 1000 < end) multiply(100000);
EOF_JS

node_by_environment() {
	local variable

	variable=$(hinted 'NODE_OPTIONS=[^ ;]*')
	[ -n "$variable" ] || return 1
	export "${variable?}"
	record -- node hot.js
	local code=$?
	unset NODE_OPTIONS
	return "$code"
}

if command -v node >/dev/null; then
	check "Node.js: recorded" record -- "${mapless[@]}" node hot.js
	check "Node.js: no names" no_name
	check "Node.js: the option" says "start it with node --perf-basic-prof"
	check "Node.js: started as hinted" node_by_environment
	check "Node.js: names" has "*multiply "
else
	skip "Node.js" "no node"
fi

# --- LuaJIT, as distributions build it ---

cat >hot.lua <<'EOF_LUA'
local function multiply(n) local s = 1 for i = 1, n do s = s * i % 1000003 end return s end
local stop = os.clock() + 0.3
while os.clock() < stop do multiply(100000) end
EOF_LUA

if command -v luajit >/dev/null; then
	check "LuaJIT: recorded" record -- "${mapless[@]}" luajit hot.lua
	check "LuaJIT: no names" no_name
	check "LuaJIT: why" says "it writes names only when built with -DLUAJIT_USE_PERFTOOLS"
	check "LuaJIT: it was not" bash -c "! grep -q 'tmp/perf-' \"\$(command -v luajit)\""
	check "LuaJIT that interprets: recorded" record -- luajit -joff hot.lua
	check "LuaJIT that interprets: why" \
		says "functions that LuaJIT interprets are not read"
	check "LuaJIT: its own profiler, as hinted" bash -c "$(hinted 'luajit -jp') hot.lua | grep multiply"
else
	skip "LuaJIT" "no luajit"
fi

# --- Interpreters ---

mkdir bin
while read -r name hint; do
	check "$name: recorded" named shares "$name" 1 0.1
	check "$name: $hint" says "in C functions of the interpreter: $hint"
done <<'EOF_NAMES'
perl5.36 recorded with -g, Perl 5.36 to 5.42 has its functions in the call stacks
libperl.so.5.30 Perl 5.30 is not supported: run it by Perl 5.36 to 5.42, built with threads
ruby3.1 functions that Ruby interprets are not read; rbspy or stackprof names them
php8.0 PHP 8.0 is not supported: run it by PHP 8.1 to 8.5 without threads (NTS)
php8.2 recorded with -g, PHP 8.1 to 8.5 has its functions in the call stacks
php-fpm8.6 PHP 8.6 is not supported: run it by PHP 8.1 to 8.5 without threads (NTS)
lua5.4 functions of Lua are not read
EOF_NAMES
check "node, whose own functions are another's: recorded" named shares node 1 0.1
check "node, whose own functions are another's: no hint" exits 1 grep "C functions of the interpreter" err

# Some distributions' Node.js has its handlers of bytecodes without names.
node_interpreted() {
	local options=(--no-opt --no-sparkplug)
	record -- node "${options[@]}" hot.js || return
	grep -q 'Builtins_.*Handler' json || return 0
	says "in C functions of the interpreter: node --perf-basic-prof --interpreted-frames-native-stack" || return
	record -g -- node "${options[@]}" --perf-basic-prof --interpreted-frames-native-stack hot.js || return
	recorded 'total("JS:~multiply*") > 0' json || return
	! grep "C functions of the interpreter" err
}
if command -v node >/dev/null; then
	check "Node.js that interprets: as hinted, its stacks have names" node_interpreted
else
	skip "Node.js that interprets" "no node"
fi

# --- Python ---

new="recorded with -g, Python 3.11 to 3.14 has its functions in the call stacks"

for name in python2.7 python3.10; do
	check "$name: recorded" named shares "$name" 1 0.1
	check "$name: has no names to tell" says \
		"in C functions of the interpreter: Python ${name#python} is not supported: run it by Python 3.11 to 3.14"
done
for name in python3.11 python3; do
	check "$name: recorded" named shares "$name" 1 0.1
	check "$name: the option -g" says "in C functions of the interpreter: $new"
done
rm -r bin

if [ -x /usr/bin/python3 ]; then
	check "Python: recorded" record --call-graph=none -- /usr/bin/python3 -c '
import time
while time.process_time() < 0.3: sum(i * i for i in range(1000))'
	check "Python: the option -g" says "$new"
else
	skip "Python" "no /usr/bin/python3"
fi

finish
