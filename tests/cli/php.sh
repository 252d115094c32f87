#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Call stacks of PHP scripts: those that the script itself sees, whole, and between the native frames in their true order.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/chains.sh
. "$top/tests/chains.sh"

export LC_ALL=C.UTF-8
cd "$work" || exit
chmod 755 "$work" # the server's user reads pages here
php=${PROFIL_TEST_PHP:-/usr/bin/php}
script=$top/tests/progs/script.php

if [ "$(id -u)" -ne 0 ]; then
	skip "stacks of PHP scripts" "recording needs root"
	finish
fi
if ! "$php" -n -r 'exit(PHP_VERSION_ID < 80100 || PHP_VERSION_ID >= 80600 || PHP_ZTS);' 2>/dev/null; then
	skip "stacks of PHP scripts" "$php is not PHP 8.1 to 8.5 (Debian: apt-get install php-cli)"
	finish
fi

# record_script NAME KIND...: records the script by record_work; its truth is in NAME.truth.
record_script() {
	record_work "$1" "$php" "${settings[@]}" "$script" "$work/$1.truth" "${@:2}"
}
settings=()

# --- The stacks that PHP sees: functions and the lines of calls ---

record_script all all
check "the functions and lines of a script's stacks are those that PHP sees" agrees chains all
check "about as much of each stack is found as the script used of CPU time" agrees shares all
check "the account of a script's stacks adds up" recorded 'whole and j["counted"] > 0' all.json
# Fibers are switched by assembly without call frame information.
check "the stacks of a script reach the program's start" recorded \
	'nearly_all(j["stacks"]["complete"], of=j["stacks"]["user"]) and j["stacks"]["truncated"] == 0' all.json
check "the interpreter's own functions are not in a script's stacks" chains_are all none \
	'.*;{main}.*;(execute_ex|zend_[^;]*|php[0-9.]*\+0x[^;]*)(;.*)?'
record_script shares shares
check "two functions have the samples of their CPU time" agrees shares shares
check "the stacks of a script without fibers all reach the program's start" recorded \
	'j["stacks"]["complete"] == j["stacks"]["user"] and j["stacks"]["truncated"] == 0' shares.json
options=(--native)
record_script native callbacks
options=()
check "with --native the interpreter's function is between those of the script" chains_are native some \
	'_start;.*;execute_ex;{main};callbacks;usort;.*execute_ex;compare;spin(;.*)?|_start;.*;{main};callbacks;usort;execute_ex;.*;compare;spin;execute_ex(;.*)?'
check "with --native the stacks are the same" agrees chains native
record_script deep deep
check "of a recursion that is too deep for a stack the innermost functions are kept" chains_are deep most \
	'(descend;){80,126}spin(;.*)?'
check "a recursion that is too deep is counted as cut off" recorded 'mostly(j["stacks"]["truncated"])' deep.json

# --- Code that is not PHP ---

record_script inside inside
check "a function that is written in C has its name" chains_are inside some '.*;{main};inside;with_md5;md5'
check "such a function is of the interpreter's image" recorded \
	"images('with_md5') == {'script.php'} and images('md5') == {'$(basename "$(readlink -f "$php")")'}" inside.json
check "such a function has its name where it has no frame" chains_are inside some '.*;{main};inside;with_search;in_array'
check "code that is made at run time is behind the function that runs it" chains_are inside some \
	'.*{main};inside;with_pcre;preg_match_all;[^;]*'
check "no part of a script's functions is without their callers" chains_are inside none \
	'(?!.*{main};).*;(inside|with_[a-z0-9]*|md5|preg_match_all|in_array)(;.*)?'
if "$php" -r 'exit(!extension_loaded("FFI"));'; then
	record_script ffi call_ffi
	check "native code that calls PHP is between its caller and its callee" chains_are ffi some \
		'.*;{main};call_ffi;qsort;.*;ffi_call;.*;({closure}|{closure:[^;]*});spin(;.*)?'
else
	skip "native code that calls PHP" "$php has no FFI"
fi
record_script short short_calls
check "short functions are before the program's start in no stack" chains_are short none \
	'(.*;)?({main}|short_calls|short_generator);(.*;)?__libc_start[^;]*(;.*)?'
check "short functions are not on their own in a stack" chains_are short none '(?!.*{main};).*short_.*'

# --- opcache ---

settings=(-d opcache.enable_cli=1 -d opcache.jit_buffer_size=0)
record_script opcache all
check "with opcache the stacks are the same" agrees chains opcache
settings=(-d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=tracing)
record_script compiled all
check "with opcache's JIT the functions are those that PHP sees" agrees chains compiled
record_script compiled_c inside
check "with opcache's JIT a function in C is below what calls it" chains_are compiled_c some '.*{main};inside;with_md5;md5'
# But for a tick in the few instructions between the function's frame and its call.
# shellcheck disable=SC2016 # awk's fields
check "with opcache's JIT what it has made is not below a function in C" \
	awk '/;with_md5;md5/ { all += $NF } /;with_md5;md5;\[(anon|jit)/ { below += $NF } END { exit !(all > 5 * below) }' compiled_c.folded
settings=()

# --- Processes, and ways to start a script ---

if "$php" -r 'exit(!extension_loaded("pcntl"));'; then
	record_script fork fork
	check "a forked child's stacks have its functions" chains_are fork some '.*;{main};fork;child_work;spin(;.*)?'
else
	skip "a forked child" "$php has no pcntl"
fi
record_script freed freed
check "code has its own lines, where other code was in memory before it" agrees chains freed
record_work command "$php" -r "\$argv = ['', '$work/command.truth', 'recursion']; include '$script';"
check "a program on the command line" chains_are command some \
	'.*;{main};include script.php;recursion;(recurse;){7}spin(;.*)?'
# shellcheck disable=SC2016 # PHP's variables
"$php" -d phar.readonly=0 -r '
	$phar = new Phar("known.phar");
	$phar["script.php"] = file_get_contents($argv[1]);
	$phar->setStub("<?php Phar::mapPhar(\"k\"); include \"phar://k/script.php\"; __HALT_COMPILER();");' "$script"
record_work phar "$php" known.phar phar.truth recursion
check "a script in an archive" chains_are phar some \
	'.*;{main};include script.php;recursion;(recurse;){7}spin(;.*)?'

# --- Files and lines ---

first=$(grep -n "^function share_30" "$script" | cut -d: -f1)
"$profiltool" report --by line --json shares.pb.gz >lines.json 2>lines.err
check "report --by line has the lines of a script" json "{(f['function'], f.get('line')) for f in j['rows']} >= {
	('share_30', $((first + 2))), ('share_70', $((first + 7)))}" lines.json
check "annotate shows a script's source" exits 0 "$profiltool" annotate -s share_70 shares.pb.gz
check "annotate has the samples of a script's line" grep -qE "^ *[0-9]+ +[1-9][0-9]* +(100.00|9[0-9]\.[0-9]+) +$((first + 7)) +spin\(7\);$" out
check "nothing is said of a script's image" [ "$(grep -c script.php all.err)" = 0 ]
check "a flame graph has a script's functions" \
	grep -q "<title>share_70" <("$profiltool" flamegraph -o - shares.pb.gz 2>/dev/null)

# --- Waits ---

options=(--wall)
record_script waits waits
options=()
check "waits have a script's functions" grep -qE '\[(blocked|idle): sleep\];.*;usleep;sleep_here [^;]*;waits [^;]*;{main} ' \
	<("$profiltool" dump waits.pb.gz)

# --- A page of a server ---

server=$(command -v php-fpm "/usr/sbin/php-fpm$("$php" -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')" | head -n 1)

# serve NAME SETTING...: starts a server with one worker, $worker.
serve() {
	mkdir -m 777 "$1"
	cat >"$1.conf" <<-END
		[global]
		error_log = $work/$1.log
		daemonize = no
		[pages]
		user = nobody
		group = $(id -gn nobody)
		listen = $work/$1.socket
		pm = static
		pm.max_children = 1
	END
	start "$server" -F -y "$1.conf" "${@:2}" >"$1.out" 2>&1
	wait_for [ -S "$1.socket" ] && wait_for pgrep -P "$pid"
	worker=$(pgrep -P "$pid")
	note_started "$worker" # a server that is killed leaves it
}

stop_server() {
	stop "$pid"
	stop "$worker"
}

# page SOCKET FILE [QUERY]
page() {
	python3 "$top/tests/cli/fastcgi.py" "$1.socket" "$2" "${3:-}" >>"$1.pages"
}

# record_page NAME COMMAND...: records the worker while a command asks it for pages.
record_page() {
	local name=$1
	shift
	share_buffers
	record_begin "$name" record -g "${clock[@]}" --json -o "$name.pb.gz" -p "$worker"
	"$@"
	record_end
	free_buffers
	"$profiltool" convert "$name.pb.gz" "$name.folded" 2>/dev/null
}

# Both define functions of other names, of the same size.
two_pages() {
	for _ in $(seq 10); do
		page plain "$work/pages/one.php" && page plain "$work/pages/two.php" || return
	done
}

if [ -n "$server" ]; then
	mkdir pages
	for page in one two; do
		# shellcheck disable=SC2016
		printf '<?php\nfunction %s_outer() { %s_inner(); }\nfunction %s_inner() { for ($i = 0; $i < 500000; $i++); }\n%s_outer();\n' \
			$page $page $page $page >pages/$page.php
	done
	serve plain -d opcache.enable=0
	record_page plain page plain "$script" "truth=$work/plain/truth&kinds=recursion,callbacks,generators,fibers,errors"
	check "a page of php-fpm has the stacks that PHP sees" agrees chains plain plain/truth
	record_page pages two_pages
	check "pages in turns: the first" chains_are pages some '.*;{main};one_outer;one_inner'
	check "pages in turns: the second" chains_are pages some '.*;{main};two_outer;two_inner'
	check "pages in turns: a function has no name of the other page's" chains_are pages none \
		'.*(one_outer;two_inner|two_outer;one_inner).*'
	"$profiltool" report --by route pages.pb.gz >out 2>/dev/null
	for page in one two; do
		check "pages in turns: $page has the path that the client has asked for" grep -qE "  GET /pages.*/pages/$page.php$" out
	done
	"$profiltool" report --json --label "route=*/one.php" pages.pb.gz >out 2>/dev/null
	check "pages in turns: the route's samples alone" recorded "ran('one_inner') and not samples('two_inner')" out
	stop_server
	serve cached -d opcache.enable=1
	check "opcache has the page" page cached "$script" "truth=$work/cached/first&kinds=recursion"
	record_page cached page cached "$script" "truth=$work/cached/truth&kinds=recursion,callbacks,generators,fibers,errors"
	check "a page out of opcache has the stacks that PHP sees" agrees chains cached cached/truth
	stop_server
else
	skip "a page of php-fpm" "it is not installed (Debian: apt-get install php-fpm)"
fi

# --- A process that pretends to be PHP, and has anything for frames, functions and texts ---

start_ready "$progs/seems_php"
record hostile -p "$pid"
stop "$pid"
check "a process that pretends to be PHP: the account adds up" recorded 'whole and accounted and j["counted"] > 0' hostile.json
check "a process that pretends to be PHP: what it says is read" [ "$("$profiltool" dump hostile.pb.gz | grep -c ' 0x0 .*# ')" -gt 0 ]
"$profiltool" report hostile.pb.gz >raw 2>&1
check "a process that pretends to be PHP: nothing raw is printed" exits 1 grep -aqP '[\x00-\x08\x0b-\x1f\x7f]' raw

# --- What has no names ---

# A version that is not known: the program says that it is another one.
sed 's,X-Powered-By: PHP/8\.[1-5],X-Powered-By: PHP/8.9,' "$(readlink -f "$php")" >php8.9
chmod 755 php8.9
record_work unknown "$work/php8.9" "$script" "$work/unknown.truth" recursion
check "a version that is not known has no functions of scripts" chains_are unknown none '.*{main}.*'
check "a version that is not known has the interpreter's own" chains_are unknown some '.*execute_ex.*'
check "a version that is not known is said" \
	grep -qE "php8.9: .*: PHP 8\.9\.[0-9]+ is not supported: run it by PHP 8.1 to 8.5 without threads" unknown.err

finish
