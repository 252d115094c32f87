#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# For whom a program worked: labels with the values of its variables. The program has a function for each,
# so a sample's function says what its labels must be: no row leaves anything to chance.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../postgres.sh
. "$top/tests/postgres.sh"
cd "$work" || exit 1

# record KIND SECONDS OPTION...: records `context KIND SECONDS` into KIND.pb.gz, and what dump has of it in KIND.stacks.
record() {
	local kind=$1 seconds=$2
	shift 2
	begin "$kind" "$progs/context" "$kind" "$seconds" && record_begin "$kind" record -p "$pid" -v --json -o "$kind.pb.gz" "$@" || return
	send_line "$kind" go
	wait "$recorder" || { cat "$kind.err" && return 1; }
	"$profiltool" dump --json "$kind.pb.gz" >"$kind.stacks"
}

# labels KIND EXPRESSION: evaluates it with `found`: for each leaf function the set of its labels, as the names that are
# given print them: of(LABEL, ...); and `samples`, of all.
labels() {
	python3 - "$1.stacks" "$2" <<'EOP'
import json, sys
j = json.load(open(sys.argv[1]))
def of(*labels):
	found = {}
	for s in j["stacks"]:
		leaf = s["functions"][0][0] if s.get("functions") and s["functions"][0] else ""
		leaf = leaf.replace("[idle: ", "[blocked: ")
		text = tuple(str(s["labels"].get("tags", {}).get(l)) for l in labels)
		found.setdefault(leaf, set()).add(text[0] if len(labels) == 1 else text)
	return found
print({k: sorted(v)[:5] for k, v in of("query").items()})
sys.exit(not eval(sys.argv[2]))
EOP
}

# --- Ticks ---

check_recorded "a program's variables as labels" record queries 1.5 -F 999 --label query=current_query \
	--label tenant=current_tenant --label request=context:current_request:u64 --label state=current_state \
	--label hidden=hidden_state:string:9 --label route=current_route:pointer
if [ "$(id -u)" -eq 0 ]; then
	check "a pointer to a text, with constants replaced" labels queries "(lambda q: q['burn_select'] == {
		'SELECT * FROM t1 WHERE id = ? AND name IN (?)'} and q['burn_update'] == {'UPDATE t SET secret = ?'} and
		q['burn_nothing'] == {'None'})(of('query'))"
	check "numbers" labels queries "(lambda t: t['burn_select'] == {('17', '1152921504606846983')} and
		t['burn_update'] == {('0', '1152921504606846983')})(of('tenant', 'request'))"
	check "a text in the variable; an empty one is none" labels queries "(lambda s: s['burn_select'] ==
		{'in a transaction'} and s['burn_update'] == {'None'})(of('state'))"
	check "a static variable, from the symbol table, cut off" labels queries \
		"of('hidden')['burn_select'] == {'hidden ?...'} or of('hidden')['burn_select'] == {'hidden ?', 'hidden ?...'}"
	check "a thread-local variable; terminal escapes are none" labels queries "(lambda r: r['burn_select'] ==
		{'GET /users/?/orders'} and r['burn_update'] == {'?[?<b>&amp;'})(of('route'))"
	check "no constant is in the file" test -z "$(zcat queries.pb.gz | grep -aE "secret = '?s|name IN \('n")"

	check "report --by query" exits 0 "$profiltool" report --by query queries.pb.gz
	check "rows are queries" grep -qE '  SELECT \* FROM t1 WHERE id = \? AND name IN \(\?\)$' out
	check "without a query: said so" grep -qE '  \[no query\]$' out
	check "--by query --json" exits 0 "$profiltool" report --by query --json queries.pb.gz
	check "--by query --json: the key is the label" json "any(f.get('query') == 'UPDATE t SET secret = ?' for f in j['rows'])" out
	check "report --by label:NAME" exits 0 "$profiltool" report --by label:tenant queries.pb.gz
	# In the first milliseconds of a program nothing has a label.
	check "report --by label:NAME: rows" test "$(awk 'NR > 1 && !/\[no label\]$/ { print $NF }' out | sort | tr '\n' ' ')" = "0 17 "
	check "report --query" exits 0 "$profiltool" report --json --query 'UPDATE*' queries.pb.gz
	check "report --query: its samples alone" recorded "ran('burn_update') and not samples('burn_select')" out
	check "--query takes what --by query has printed" exits 0 "$profiltool" report --json \
		--query 'SELECT * FROM t1 WHERE id = ? AND name IN (?)' queries.pb.gz
	check "--query: the query's samples alone" recorded "ran('burn_select') and not samples('burn_update')" out
	check "report --label" exits 0 "$profiltool" report --json --label tenant=17 queries.pb.gz
	check "report --label: its samples alone" recorded "ran('burn_select') and not samples('burn_update')" out
	check "report --by NAME: a label" exits 0 "$profiltool" report --by tenant queries.pb.gz
	check "report --by NAME: its rows" test "$(awk 'NR > 1 && !/\[no label\]$/ { print $NF }' out | sort | tr '\n' ' ')" = "0 17 "
	check "report --by: no view, and no label" exits 2 "$profiltool" report --by size queries.pb.gz
	check "report --by: no view, and no label: said" says 'or a label of the samples, not "size"'
	check "another reader has the labels" test "$(zcat queries.pb.gz | grep -acF 'UPDATE t SET secret = ?')" -gt 0
	check "markup is none in the page" exits 0 "$profiltool" web queries.pb.gz -o page.html
	check "markup is none in the page: not as it was" test -z "$(grep -F '<b>&amp;' page.html)"
fi
check_recorded "--literal" record queries 0.3 -F 999 --literal --label query=current_query
check_recorded "--literal: texts stay" labels queries "any(\"secret = 's\" in q and '/*' in q for q in of('query')['burn_update'])"

# top_of NAME OPTION...: what top prints of `context queries` until that ends, in NAME.json.
top_of() {
	local name=$1
	shift
	begin "$name" "$progs/context" queries 0.7 && record_begin "$name" top -p "$pid" -F 999 -d 0.2 --tables 1000 "$@" || return
	send_line "$name" go
	wait "$recorder"
	test $? -eq 3
}

# top_rows NAME: the last words of top's rows that have samples, each once.
top_rows() {
	awk '$1 ~ /^[0-9]+$/ && $1 > 0 && !/\[no label\]$/ { print $NF }' "$1.json" | sort -u | tr '\n' ' '
}
check_recorded "top --by a label" top_of by_tenant --label tenant=current_tenant --by tenant
check_recorded "top --by a label: its values" test "$(top_rows by_tenant)" = "0 17 "
check_recorded "top --query" top_of of_query --label query=current_query --query 'UPDATE*' --json
check_recorded "top --query: the function that has it alone" test "$(python3 -c '
import json
for line in open("of_query.json"):
	for row in json.loads(line)["rows"]:
		if row["self_percent"] and row["name"].startswith("burn_"):
			print(row["name"])' | sort -u)" = burn_update

# --- Waits ---

check_recorded "waits have labels" record waits 1 --wall --max-overhead 0 --label query=current_query
check_recorded "waits have the label of their time" labels waits "(lambda q:
	{k: v for k, v in q.items() if k.endswith(': sleep]')} == {'[blocked: sleep]': {'SLEEP ?'}} and
	{k: v for k, v in q.items() if k.endswith(': poll]')} == {'[blocked: poll]': {'POLL ?'}})(of('query'))"

# --- Bounds ---

# One process has half of 8128 at most.
check_recorded "more texts than there is room for" record many 6000 --wall --max-overhead 0 --label query=current_query
check_recorded "the rest is [others]" labels many "(lambda q: '[others]' in q and
	100 < len(q) <= 4065)(of('query')['[blocked: sleep]'])"
check_recorded "and counted" json "j['context_others'] >= 6000 - 4064 - j['wall']['waits_lost']" many.json
check_recorded "and said" grep -q 'labelled \[others\]' many.err
check_recorded "hostile pointers and texts" record hostile 0.5 -F 4999 --label query=current_query
check_recorded "what cannot be read has no label" labels hostile "'None' in of('query')['burn_nothing']"

# --- What is refused ---

check_rows <<'EOR'
NAME --label needs a name
RUN "$profiltool" record --label x -p $$ -d 0.1
STATUS 2
EXPECT --label takes NAME=[IMAGE:]SYMBOL[:KIND[:LENGTH]], not "x"

NAME --label gives a name one variable
RUN "$profiltool" record --label x=a --label x=b -p $$ -d 0.1
STATUS 2
EXPECT --label gives "x" two variables

NAME --label needs stacks
RUN "$profiltool" record --label x=a --call-graph=fp -p $$ -d 0.1
STATUS 2
EXPECT --label is not for --call-graph=fp

NAME --context takes auto or none
RUN "$profiltool" record --context=all -p $$ -d 0.1
STATUS 2
EXPECT --context takes auto or none, not "all"

NAME report --label needs a pattern
RUN "$profiltool" report --label x
STATUS 2
EXPECT --label takes NAME=PATTERN, not "x"
EOR
start sleep 1000
check_recorded "a variable that nobody has" exits 4 "$profiltool" record -p "$pid" -d 0.1 --label x=no_such_variable
check_recorded "a variable that nobody has: said" says "--label x: no image of what was recorded has a variable no_such_variable"
stop "$pid"

# --- PHP ---

if [ "$(id -u)" -eq 0 ] && command -v php >/dev/null; then
	# shellcheck disable=SC2016
	printf '<?php\nfunction burn_%s() { for ($i = 0; $i < 300000; $i++); }\n' orders >page.php
	# shellcheck disable=SC2016
	printf 'function burn_other() { for ($i = 0; $i < 300000; $i++); }\n
		$_SERVER["REQUEST_METHOD"] == "GET" ? burn_orders() : burn_other(); usleep(2000);' >>page.php
	# ask PORT TIMES: asks the server for pages, as soon as it listens.
	ask() {
		python3 - "$@" <<'EOP'
import sys, urllib.request
for i in range(int(sys.argv[2])):
    address = f"http://127.0.0.1:{sys.argv[1]}/orders/{i}/no-{i}?secret=s{i}"
    for body in None, b"x":
        urllib.request.urlopen(address, body).read()
EOP
	}
	port=$((20000 + $$ % 10000))
	start php -n -S "127.0.0.1:$port" page.php
	check "PHP's server: answers" wait_for ask "$port" 1
	record_begin php record -p "$pid" --wall -F 999 --max-overhead 0 --json -o php.pb.gz
	ask "$port" 20
	check "PHP's server: recorded" record_end
	"$profiltool" dump --json php.pb.gz >php.stacks
	check "PHP's server: method and path, no query string" labels php "(lambda r: r['burn_orders'] == {
		'GET /orders/?/no-?'} and r['burn_other'] == {'POST /orders/?/no-?'})(of('route'))"
	check "PHP's server: a wait in a page has its route, one for a page none" labels php "(lambda r:
		r['[blocked: sleep]'] == {'GET /orders/?/no-?', 'POST /orders/?/no-?'} and r['[blocked: poll]'] == {'None'})(of('route'))"
	check "PHP's server: no query string is in the file" test -z "$(zcat php.pb.gz | grep -a secret)"
	stop "$pid"
else
	skip "PHP's requests" "it is not installed, or there is no root"
fi

# --- PostgreSQL ---

# queries_of FILE: prints the queries that have samples.
queries_of() {
	"$profiltool" report -q --by query "$1" | sed -n '2,$s/^\( *[0-9.]*\)\{5\}  //p'
}

if [ "$(id -u)" -eq 0 ] && find_postgres && make_postgres; then
	start "${postmaster[@]}"
	psql() {
		"$postgres/psql" -X -q -h "$pgdata" -U test postgres "$@"
	}
	check "PostgreSQL: starts" wait_for psql -c "SELECT 1"
	# Each in a loop of its own, until its backend is ended.
	for constant in 11 22; do
		start "$postgres/psql" -X -q -h "$pgdata" -U test postgres -c "DO \$\$ BEGIN LOOP PERFORM sqrt($constant); END LOOP; END \$\$"
	done
	find_backends() {
		mapfile -t backends < <(psql -At -c "SELECT pid FROM pg_stat_activity WHERE query LIKE 'DO %'" 2>/dev/null)
		[ ${#backends[@]} -eq "$1" ]
	}
	wait_for find_backends 2
	note_started "${backends[@]}"
	backend=${backends[0]}
	check "PostgreSQL: its query is found by itself" exits 0 until_used "$backend" 300 "$profiltool" record -p "$backend" -o postgres.pb.gz
	check "PostgreSQL: all samples have the query" test "$(queries_of postgres.pb.gz)" = "DO ?"
	"$profiltool" report --by application postgres.pb.gz >out 2>/dev/null
	check "PostgreSQL: and the application" grep -qE '  psql$' out
	"$profiltool" report --by database postgres.pb.gz >out 2>/dev/null
	check "PostgreSQL: and the database by its name" grep -qE '  postgres$' out
	"$profiltool" report --by role postgres.pb.gz >out 2>/dev/null
	check "PostgreSQL: and its user" grep -qE '  test$' out
	start "$postgres/psql" -X -q -h "$pgdata" -U test postgres -c "DO \$\$ BEGIN LOOP PERFORM set_config('application_name', name, false),
		(SELECT count(*) FROM generate_series(1, 9999 + length(name))) FROM unnest(ARRAY['first', 'other', repeat('long', 12)]) name; END LOOP; END \$\$"
	wait_for find_backends 3
	renamed=$(psql -At -c "SELECT pid FROM pg_stat_activity WHERE query LIKE '%set_config%' AND query LIKE 'DO %'")
	note_started "$renamed"
	check "PostgreSQL: a session with changing names" exits 0 until_used "$renamed" 600 "$profiltool" record -p "$renamed" -F 999 -o renamed.pb.gz
	"$profiltool" report --by application renamed.pb.gz >out 2>/dev/null
	check "PostgreSQL: a session with changing names: each of them" test "$(grep -cE '  (first|other|(long){12})$' out)" -eq 3
	kill -CONT "$renamed" # until_used has stopped it
	check "PostgreSQL: top" exits 0 until_used "$backend" 300 "$profiltool" top -p "$backend" --by query --tables 1000 -d 0.2
	check "PostgreSQL: top has the query" grep -qE '  DO \?$' out
	its_user=(setpriv --reuid=65534 --regid=65534 --clear-groups env PROFIL_RECORD_SOCKET="$work/socket")
	another=(setpriv --reuid=65533 --regid=65533 --clear-groups env PROFIL_RECORD_SOCKET="$work/socket")
	cp "$profiltool" "$work" && chmod 755 "$work/profiltool"
	start "$build/profild" --record --socket "$work/socket"
	wait_for test -S "$work/socket"
	kill -CONT "$backend" # until_used has stopped it
	check "profild --record: its user gets the query" exits 0 "${its_user[@]}" "$work/profiltool" record -p "$backend" -d 1 \
		-f pprof -o -
	mv out served.pb.gz
	check "profild --record: its user gets the query: all samples" test "$(queries_of served.pb.gz)" = "DO ?"
	cp "$progs/context" "$work" && chmod 755 "$work/context"
	begin served "${its_user[@]}" "$work/context" queries 300
	send_line served go
	check "profild --record: a user's --label" exits 0 "${its_user[@]}" "$work/profiltool" record -q -p "$pid" -d 2 -F 999 \
		--no-context --label query=current_query --label tenant=current_tenant:u32 -f pprof -o -
	mv out served.pb.gz
	stop "$pid"
	"$profiltool" dump --json served.pb.gz >served.stacks
	check "profild --record: a user's --label: values are those of the moment" labels served "(lambda t: t['burn_select'] ==
		{('SELECT * FROM t1 WHERE id = ? AND name IN (?)', '17')})(of('query', 'tenant'))"
	check "profild --record: another user gets nothing" exits 5 "${another[@]}" "$work/profiltool" record -p "$backend" -d 0.2
	start "$build/profild" --continuous --window 1 --watch=0 --directory "$work/archive"
	in_archive() {
		"$profiltool" report -q --since -10m --by query "$work/archive" 2>/dev/null | grep -qE '  DO \?$'
	}
	check "profild --continuous: the archive has the query" wait_for in_archive
	stop "$pid"
	find "$work/archive" -name '*.pb.gz' -exec zcat {} + >windows
	check "profild --continuous: its files say that they have no constants" grep -qa context=normalised windows
	check "--no-context" exits 0 until_used "$backend" 300 "$profiltool" record -g -p "$backend" --no-context -o without.pb.gz
	check "--no-context: no label" exits 1 "$profiltool" report --by query without.pb.gz
	check "--no-context: said" says "--by query: no sample has a query"
	kill -CONT "$backend" # until_used has stopped it
	psql -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'" >out 2>&1
	wait_for find_backends 0
	stop "$(head -n 1 "$pgdata/data/postmaster.pid")"
else
	skip "PostgreSQL's queries" "it is not installed, or there is no root"
fi

finish
