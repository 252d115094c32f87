#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What threads work for, as OpenTelemetry's libraries publish it, and thread-local variables: of the program, of a library
# that is there from the start, and of one that is opened later, as each of them may find it, with glibc and musl. The
# programs change it at random, and write down what was true: a sample's function, its ids and the rest must agree.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit 1
if [ "$(uname -m)" != x86_64 ]; then
	skip "thread-local variables" "not tried but on x86-64"
	finish
fi

# writer NAME COMPILER OPTION...: builds the program, and starts it with $library, if that is not empty. The recorder goes
# before all of them: else they may end before it has read what they have published.
targets=()
writer() {
	local name=$1 compiler=$2
	shift 2
	"$compiler" -O2 -w -rdynamic -o "$name" "$top/tests/progs/otel_writer.c" "$@" -pthread -ldl || return
	begin "$name" nice -n 10 "./$name" 400 "$name.log" ${library:+"$library"} && targets+=(-p "$pid") && echo "$pid" >"$name.pid"
}

check "a writer of glibc" writer glibc gcc
compilers=(gcc)
command -v musl-gcc >/dev/null && compilers+=(musl-gcc) && check "a writer of musl" writer musl musl-gcc
for compiler in "${compilers[@]}"; do
	for model in module:-mtls-dialect=gnu descriptor:-mtls-dialect=gnu2 distance:-ftls-model=initial-exec; do
		name=$compiler-${model%%:*}
		check "a library of $name" "$compiler" -O2 -w -fPIC -shared -DLIBRARY "${model#*:}" -o "./$name.so" \
			"$top/tests/progs/otel_writer.c"
		library=
		check "$name: there from the start" writer "$name-1" "$compiler" -DLINKED -Wl,--no-as-needed "./$name.so" "-Wl,-rpath,$work"
		[ "$name" = musl-gcc-distance ] && continue # musl refuses to open it later
		library=./$name.so
		check "$name: opened later" writer "$name-2" "$compiler" -DLINKED
	done
done

check_recorded "all of them are recorded" record_begin otel record "${targets[@]}" -F 1999 -v --json -o otel.pb.gz --label number=own_number:u32
if [ "$(id -u)" -eq 0 ]; then
	start "$build/profild" --continuous --watch=0 --window 1 --directory "$work/archive"
	daemon=$pid
	check "an archive is begun" wait_for grep -q "records cpu-clock into" start.out
	# The others may have ended before it knows what they have mapped.
	begin lasting nice -n 10 ./glibc 1000000000 lasting.log
	send_line lasting go
fi
for name in *.pid; do
	send_line "${name%.pid}" go
done
check_recorded "they end" wait "$recorder"
"$profiltool" dump --json otel.pb.gz >otel.stacks
if [ "$(id -u)" -eq 0 ]; then
	has_routes() {
		find archive -name '*.pb.gz' -exec "$profiltool" dump --json {} + >archive.stacks
		grep -qE '"route": "/[0-9]/' archive.stacks
	}
	check "the archive has routes and services" wait_for has_routes
	stop "$pid"
	kill "$daemon"
	check "the archive ends with its window" wait "$daemon"
	has_routes
	check "but no traces, nor what else differs for each request" test -z "$(grep -E '"(trace_id|span_id|check|late)":' archive.stacks)"
fi

# Samples before the recorder has seen a library have no labels, and before it has read the process's names no route.
cat >compare.py <<'EOP'
import glob, json, sys
stacks = json.load(open("otel.stacks"))["stacks"]
samples, wrong = 0, []
for name in glob.glob("*.pid"):
	name = name[:-4]
	pid = int(open(name + ".pid").read())
	own = [(s, s["labels"].get("tags", {}), s["functions"][0][0]) for s in stacks if s["labels"]["pid"] == pid]
	truth = {}
	for line in open(name + ".log"):
		trace, span, route, check = line.rstrip("\n").split("\t")
		truth[trace] = truth[check] = (span, route, check)
	first = min([t for s, tags, leaf in own for t in s["times_ns"] if "route" in tags], default=None)
	if first is None:
		wrong.append((name, "no labels"))
	for s, tags, leaf in own:
		if first is None or min(s["times_ns"]) < first or not leaf.startswith("burn_"):
			continue
		samples += 1
		trace = tags.get("trace_id")
		if leaf.startswith("burn_nothing"):
			ok = trace is None and "route" not in tags
		elif trace == "[others]":
			span, route, check = truth.get(tags.get("check"), (None, None, None))
			ok = "check" not in tags or tags["route"] == route and route.startswith("/%s/" % leaf[5])
		else:
			span, route, check = truth.get(trace, (None, "", None))
			ok = (tags["span_id"], tags["route"], tags["check"], tags["tenant"]) == (span, route, check, "t17") and \
				route.startswith("/%s/" % leaf[5])
		if not ok or tags.get("service") != "shop" or tags.get("service_version") != "1.2.3" or "unit" in tags and \
			tags["unit"] == "not a unit" or trace != "[others]" and tags.get("number") != str(pid):
			wrong.append((name, leaf, tags))
cut = sum(s["count"] for s in stacks if s["labels"]["tid"] != s["labels"]["pid"] and "check" in s["labels"].get("tags", {}))
counted = json.load(open("otel.json"))["context_cut"]
later = any(s["labels"].get("tags", {}).get("late") == "later" for s in stacks)
print(samples, "samples", len(wrong), "wrong", wrong[:3], "later:", later, "longer than is read:", cut, "counted:", counted)
sys.exit(samples < 300 or bool(wrong) or not later or not cut or cut != counted)
EOP
check_recorded "labels are those of the moment, in each place; records that are too long are counted" python3 compare.py
check_recorded "records that are too long: said" grep -q 'without some of their labels' otel.err
if [ "$(id -u)" -eq 0 ]; then
	check "report --by label:service" exits 0 "$profiltool" report --by label:service otel.pb.gz
	check "report --by label:service: its rows" grep -qE '  shop$' out
	check "report --label: the samples of a route" exits 0 "$profiltool" report --json --label route='/2/*' otel.pb.gz
	check "report --label: no others" recorded "ran('burn_2') and not samples('burn_1')" out
fi
finish
