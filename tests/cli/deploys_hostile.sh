#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# changes: what a hostile user does beside the system's services (DEPLOYS_HOSTILE of tests/deploys.py) does not change
# anything that is said of these, byte for byte.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"

export TZ=UTC
functions=${PROFIL_TEST_HOSTILE_FUNCTIONS:-300} # of the user's in each window; make release-check: many more

# run NAME [OPTION]...: writes what changes says of an archive as text and as JSON: NAME.text and NAME.json.
run() {
	local status=0
	"$profiltool" changes --since @0 -q "${@:2}" "$work/$1" >"$work/$1.text" 2>"$work/err" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || return
	"$profiltool" changes --since @0 -q --json "${@:2}" "$work/$1" >"$work/$1.json" 2>"$work/err" || [ $? -eq 3 ]
}

# same_beginning ONE OTHER: other begins with all of one, which is not empty.
same_beginning() {
	[ -s "$1" ] && cmp -n "$(stat -c %s "$1")" "$1" "$2"
}

# same_changes: in JSON, those without a user, and of no user's slice.
same_changes() {
	python3 -c '
import json, sys
one, other = (json.load(open(path))["changes"] for path in sys.argv[1:])
systems = [c for c in other if "user" not in c and "/" not in c.get("unit", c.get("container"))]
sys.exit(not one or json.dumps(one) != json.dumps(systems) or len(other) == len(one))' "$work/alone.json" "$work/beside.json"
}

# beside WHAT SEED HOURS [DEPLOY]... [-- OPTION]...
beside() {
	local what=$1 deploys=() options=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		deploys+=("$1")
		shift
	done
	options=("${@:2}")
	rm -rf "$work/alone" "$work/beside"
	python3 "$top/tests/deploys.py" "$work/alone" "${deploys[@]}"
	DEPLOYS_HOSTILE=$functions python3 "$top/tests/deploys.py" "$work/beside" "${deploys[@]}"
	check "$what" run alone "${options[@]}"
	check "$what: beside a hostile user" run beside "${options[@]}"
	check "$what: the same is printed of the system's services, first" same_beginning "$work/alone.text" "$work/beside.text"
	check "$what: and in JSON" same_changes
}

beside "2 % slower, moved, the same code and a restart" 1 3 web.service:1.5:slower=f3,2 db.service:2:build \
	jobs.service:1:restart jobs.service:2:moved=f0,g,3
check "the first is found" grep -q '^  worse: the same work takes' "$work/beside.text"
check "what the user runs in a unit of the system is his" grep -q '^web.service of mallory on host one' "$work/beside.text"
beside "another mixture, and a larger load" 5 2 web.service:1:more=1,30 db.service:1:restart db.service:1:load=60
beside "what is done since a deploy, and waits" 3 0.8 jobs.service:0.4:added=1,4 db.service:0.4:waits=3
beside "one deploy after another, and builds side by side" 2 2 web.service:0.5:build web.service:1:restart \
	web.service:1.5:build db.service:0:beside
beside "requests" 6 1.5 web.service:0.7:whole=30 -- --per "web=$work/alone.web.service.requests"
beside "a time that was asked for" 7 1.5 web.service:0.7:slower=f2,5 -- --at '2026-11-20 00:42'

# Windows with so many functions of the user's that reading all of them would take more memory.
DEPLOYS_HOSTILE=$((functions > 2000 ? 200000 : functions * 60)) python3 "$top/tests/deploys.py" "$work/many" 1 0.6 web.service:0.3:slower=f3,6
# bounded COMMAND...: in 100 MB of memory.
bounded() {
	(ulimit -d 100000 && "$@")
}
check "with many functions of a user's in each window, in 100 MB" bounded run many --unit 'web*'
check "what is slower is found" grep -qE ' self +f3 +web$' "$work/many.text"
check "all services are read in that" bounded run many
check "and the user is named, of whom not all is compared" grep -q '^profiltool: not all of user-1000.slice' "$work/err"

finish
