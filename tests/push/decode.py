#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""decode.py otlp PROTO BODY..., decode.py pyroscope PROFILTOOL BODY...: prints what the servers' own definitions,
and readers of their files, find in requests: a line for each sample, "SERVICE [ATTRIBUTES] COUNT STACK"; other values are
"COUNT ns TYPE".
decode.py leaves|delays PROTO BODY prints the samples, or the delay, of each function of an OTLP request as JSON; ""
has those without a name."""
import collections
import gzip
import json
import subprocess
import sys
import tempfile

import messages


def otlp_request(proto, body):
    """PROTO: the directory with opentelemetry-proto's definitions"""
    name = "opentelemetry/proto/collector/profiles/v1development/profiles_service.proto"
    kinds = messages.load(proto, name)
    request = kinds["opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest"]
    return request.FromString(gzip.decompress(body))


def count(sample):
    """It has a value, or times, of which each counts 1"""
    assert len(sample.values) == (not sample.timestamps_unix_nano)
    return sample.values[0] if sample.values else len(sample.timestamps_unix_nano)


def leaves(proto, body, kind="samples"):
    r = otlp_request(proto, body)
    d = r.dictionary
    counts = collections.Counter()
    for s in (s for rp in r.resource_profiles for sp in rp.scope_profiles for p in sp.profiles for s in p.samples
              if d.string_table[p.sample_type.type_strindex] == kind):
        stack = d.stack_table[s.stack_index].location_indices
        lines = d.location_table[stack[0]].lines if stack else []
        counts[d.string_table[d.function_table[lines[0].function_index].name_strindex] if lines else ""] += count(s)
    print(json.dumps(counts))


def delays(proto, body):
    leaves(proto, body, "delay")


def otlp(proto, body):
    r = otlp_request(proto, body)
    d = r.dictionary
    text = d.string_table
    tables = [d.mapping_table, d.location_table, d.function_table, d.attribute_table, d.stack_table]
    for table in tables:
        # The first element is empty, and no other occurs twice.
        elements = [e.SerializeToString(deterministic=True) for e in table]
        assert elements[0] == b"" and len(set(elements)) == len(elements), table
    assert text[0] == "" and len(set(text)) == len(text)
    links = [(l.trace_id.hex(), l.span_id.hex()) for l in d.link_table]
    assert links[0] == ("0" * 32, "0" * 16) and len(set(links)) == len(links), links

    def value(v):
        assert v.WhichOneof("value"), v
        return str(getattr(v, v.WhichOneof("value")))

    def attributes(indices):
        pairs = [(text[d.attribute_table[i].key_strindex], value(d.attribute_table[i].value)) for i in indices]
        assert len({key for key, _ in pairs}) == len(pairs)
        return ",".join(f"{key}={v}" for key, v in pairs)

    def frame(index):
        l = d.location_table[index]
        m = d.mapping_table[l.mapping_index]
        assert not l.mapping_index or m.memory_start <= l.address < m.memory_limit
        names = "|".join(f"{text[d.function_table[n.function_index].name_strindex]}"
                         f"@{text[d.function_table[n.function_index].filename_strindex]}:{n.line}" for n in l.lines)
        where = f"{text[m.filename_strindex]}+{l.address - m.memory_start + m.file_offset:#x}"
        return f"{names or '?'}({where}{'{' + attributes(m.attribute_indices) + '}'}" \
               f"{attributes(l.attribute_indices)})"

    ids = set()
    for rp in r.resource_profiles:
        resource = ",".join(f"{a.key}={value(a.value)}" for a in rp.resource.attributes)
        for sp in rp.scope_profiles:
            assert sp.scope.name == "profil" and sp.scope.version
            for p in sp.profiles:
                types = [text[i] for t in (p.sample_type, p.period_type)
                         for i in (t.type_strindex, t.unit_strindex)]
                clock = types == ["samples", "count", "cpu", "nanoseconds"]
                # Pyroscope names a profile by the type of its period, and knows off_cpu by there being none.
                assert clock or (types, p.period) in [(["delay", "nanoseconds", "delay", "nanoseconds"], 1),
                                                      (["off_cpu", "nanoseconds", "", ""], 0)], (types, p.period)
                unit = "" if clock else " ns " + types[0]
                assert not clock or p.period >= 10 ** 6
                assert p.duration_nano > 10 ** 9 and p.time_unix_nano > 10 ** 18
                assert len(p.profile_id) == 16 and p.profile_id not in ids
                ids.add(p.profile_id)
                for s in p.samples:
                    stack = ";".join(frame(i) for i in d.stack_table[s.stack_index].location_indices)
                    times = [t - p.time_unix_nano for t in s.timestamps_unix_nano]
                    assert times == sorted(times) and all(0 <= t < p.duration_nano for t in times)
                    when = f" from {times[0] / 1e9} to {times[-1] / 1e9}" if times else ""
                    link = f" of {'/'.join(links[s.link_index])}" if s.link_index else ""
                    print(f"{resource} [{attributes(s.attribute_indices)}] {count(s)}{unit}{when}{link} {stack}")


def pyroscope(profiltool, body):
    kinds = messages.load(messages.TOP + "/user/push", "pyroscope.proto")
    for series in kinds["profil.pyroscope.PushRequest"].FromString(body).series:
        labels = ",".join(f"{l.name}={l.value}" for l in series.labels)
        for sample in series.samples:
            assert len(sample.id) == 36 and sample.id.count("-") == 4
            with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
                file.write(sample.raw_profile)
                file.flush()
                dump = subprocess.run([profiltool, "dump", file.name], check=True, stdout=subprocess.PIPE)
                head = subprocess.run([profiltool, "dump", "--json", file.name], check=True, stdout=subprocess.PIPE)
            types = ",".join(v["type"] for v in json.loads(head.stdout)["values"])
            if types != "samples,cpu":
                labels += ",values=" + types
            stacks = dump.stdout.split(b"stacks:\n")[1].split(b"extras:\n")[0].decode(errors="replace")
            for line in stacks.splitlines():
                print(f"{labels} {line}")


for path in sys.argv[3:]:
    with open(path, "rb") as source:
        {"leaves": leaves, "delays": delays, "otlp": otlp, "pyroscope": pyroscope}[sys.argv[1]](sys.argv[2], source.read())
