#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Files of OTLP profiles, decoded with the definitions of their messages: what windows that are pushed consist of.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../push/lib.sh
. "$top/tests/push/lib.sh"
needs_protobuf
cd "$work" || exit

# The outer messages, which the writer writes field by field; as OpenTelemetry calls them.
service=proto/opentelemetry/proto/collector/profiles/v1development/profiles_service.proto
mkdir -p "${service%/*}"
cp "$top/user/format/otlp/otlp.proto" proto
cat >"$service" <<'EOF_PROTO'
syntax = "proto3";
package opentelemetry.proto.collector.profiles.v1development;
import "otlp.proto";
message ExportProfilesServiceRequest {
	repeated ResourceProfiles resource_profiles = 1;
	Dictionary dictionary = 2;
}
message ResourceProfiles {
	profil.otlp.Resource resource = 1;
	repeated ScopeProfiles scope_profiles = 2;
}
message ScopeProfiles {
	profil.otlp.Scope scope = 1;
	repeated Profile profiles = 2;
}
message Profile {
	profil.otlp.ValueType sample_type = 1;
	repeated profil.otlp.Sample samples = 2;
	fixed64 time_unix_nano = 3;
	uint64 duration_nano = 4;
	profil.otlp.ValueType period_type = 5;
	int64 period = 6;
	bytes profile_id = 7;
}
message Dictionary {
	repeated profil.otlp.Mapping mapping_table = 1;
	repeated profil.otlp.Location location_table = 2;
	repeated profil.otlp.Function function_table = 3;
	repeated profil.otlp.Link link_table = 4;
	repeated string string_table = 5;
	repeated profil.otlp.Attribute attribute_table = 6;
	repeated profil.otlp.Stack stack_table = 7;
}
EOF_PROTO

# Six seconds. Two threads of "web" are busy for 10 and 4 of 100 ms; "burst" for 150 ms from 2.3 s on.
printf '%s\n' '0 10 600 17 17 web main;serve;parse' '5 25 240 17 18 web main;serve;send' \
	'2300 1 150 17 17 web main;work;compress' '0 - 7 17 18 web main;lost' |
	"$build/tests/unit/times_make" times.pb.gz 1795000000000000000 6000 one
printf 'main;freed -3\nmain;kept 5\n' >signed.folded

check "written" exits 0 "$profiltool" convert times.pb.gz times.otlp
check "compressed" exits 0 "$profiltool" convert -q times.pb.gz times.otlp.gz
check "to what it is uncompressed" cmp times.otlp <(gzip -dc times.otlp.gz)
check "by -f, to standard output" cmp times.otlp <("$profiltool" convert -q -f otlp times.pb.gz -)
check "values below 0 are lost, and it is said" exits 3 "$profiltool" convert -q signed.folded signed.otlp
check "it is not read" exits 1 "$profiltool" report times.otlp

# Without addresses, which are made up: "main(+0x0)" is "main".
decoded() {
	python3 "$top/tests/push/decode.py" otlp proto times.otlp.gz | sed 's/@[^;]*([^;]*)//g; s/host.name=[^, ]*/host.name=H/'
}
check "each sample has its thread, its times and its stack" diff - <(decoded | sort) <<'EOF_SAMPLES'
service.name=web,host.name=H [process.executable.name=web,process.pid=17,thread.id=17] 150 from 2.3 to 2.449 compress;work;main
service.name=web,host.name=H [process.executable.name=web,process.pid=17,thread.id=17] 600 from 0.0 to 5.99 parse;serve;main
service.name=web,host.name=H [process.executable.name=web,process.pid=17,thread.id=18] 240 from 0.005 to 5.98 send;serve;main
service.name=web,host.name=H [process.executable.name=web,process.pid=17,thread.id=18] 7 lost;main
EOF_SAMPLES

# What a tracer has published; [others]: there was no room for it.
trace=0af7651916cd43dd8448eb211c80319c
printf '%s\n' "0 10 5 17 17 web,route=/buy,span_id=b7ad6b7169203331,trace_id=$trace main;serve" \
	"1 10 4 17 17 web,span_id=b7ad6b7169203332,trace_id=$trace main;serve" \
	"2 10 3 17 17 web,span_id=b7ad6b7169203331,trace_id=$trace main;log" "3 10 2 17 17 web,route=/buy,trace_id=[others] main" \
	'4 10 1 17 17 web,span_id=0000000000000000,trace_id=00000000000000000000000000000000 main' |
	"$build/tests/unit/times_make" traces.pb.gz 1795000000000000000 6000 one
"$profiltool" convert -q traces.pb.gz traces.otlp.gz
check "samples have links to their spans, and other labels as attributes" diff - <(
	python3 "$top/tests/push/decode.py" otlp proto traces.otlp.gz |
		sed 's/@[^;]*([^;]*)//g; s/^[^ ]* //; s/process[^ ]*thread.id=17,*//; s/ from [^ ]* to [^ ]*//' | sort -rnk2
) <<EOF_LINKS
[route=/buy] 5 of $trace/b7ad6b7169203331 serve;main
[] 4 of $trace/b7ad6b7169203332 serve;main
[] 3 of $trace/b7ad6b7169203331 log;main
[route=/buy,trace_id=[others]] 2 main
[span_id=0000000000000000,trace_id=00000000000000000000000000000000] 1 main
EOF_LINKS

# A window of profild --continuous --wall: what waits is off_cpu, as engines know it.
"$top/tests/push/windows.py" archive h 1 waits
"$profiltool" convert -q archive/h/*/*.pb.gz waits.otlp
gzip waits.otlp
check "waits are off_cpu, and the delay is no CPU time" diff - <(
	python3 "$top/tests/push/decode.py" otlp proto waits.otlp.gz | sed 's/@[^;]*([^;]*)[a-z.=]*//g; s/host.name=[^, ]*/host.name=H/; s/\[process[^ ]*//'
) <<'EOF_WAITS'
service.name=nginx,host.name=H  3 take;main
service.name=nginx,host.name=H  7000 ns delay take;main
service.name=nginx,host.name=H  5000000 ns off_cpu [blocked: futex];take;main
service.name=cron,host.name=H  60000000 ns off_cpu [blocked: futex];main
EOF_WAITS

finish
