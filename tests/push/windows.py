#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""windows.py ARCHIVE HOST COUNT [SERVICES | waits]: writes windows of an archive, a minute each, of which the
last began two minutes ago. Each has the same 101 samples, of each kind that there is. Of the first two stacks, 60
and 15 of 20 ticks have times: one each second, and one every other from 0.5 s on. With SERVICES, each has so many
services of names that processes chose, of 1, 2, ... samples. "waits": as of profild --continuous --wall."""
import gzip
import os
import sys
import time

import messages

PERIOD_NS = 10309278  # 97 Hz
CONTAINER = "0123456789abcdef" * 4
PPROF = messages.load(os.path.join(messages.TOP, "user/format/pprof"), "profile.proto",
                      texts_are_bytes=True)


class Window:
    def __init__(self, start_s, host, more_values=()):
        self.p = PPROF["profil.pprof.Profile"]()
        self.texts = {}
        self.functions = {}
        self.text(b"")
        for name, unit in (b"samples", b"count"), (b"cpu", b"nanoseconds"):
            self.p.sample_type.add(type=self.text(name), unit=self.text(unit))
        for name in more_values:
            self.p.sample_type.add(type=self.text(name), unit=self.text(b"nanoseconds"))
        if more_values:
            self.p.default_sample_type = self.text(b"samples")
        self.p.period_type.type = self.text(b"cpu")
        self.p.period_type.unit = self.text(b"nanoseconds")
        self.p.period = PERIOD_NS
        self.p.time_nanos = start_s * 10 ** 9
        self.p.duration_nanos = 60 * 10 ** 9
        self.p.comment.append(self.text(b"profil:host=" + host.encode()))

    def text(self, text):
        if text not in self.texts:
            self.texts[text] = len(self.texts)
            self.p.string_table.append(text)
        return self.texts[text]

    def mapping(self, start, path, build_id=b""):
        self.p.mapping.add(id=len(self.p.mapping) + 1, memory_start=start, memory_limit=start + 0x10000,
                           file_offset=0x1000, filename=self.text(path), build_id=self.text(build_id),
                           has_functions=True)
        return len(self.p.mapping)

    def location(self, mapping, offset, *lines):
        """lines: (function, file, line), innermost first"""
        address = self.p.mapping[mapping - 1].memory_start + offset
        l = self.p.location.add(id=len(self.p.location) + 1, mapping_id=mapping, address=address)
        for function, file, line in lines:
            if function not in self.functions:
                self.functions[function] = len(self.functions) + 1
                self.p.function.add(id=len(self.functions), name=self.text(function),
                                    system_name=self.text(b"_Z" + function), filename=self.text(file),
                                    start_line=line)
            l.line.add(function_id=self.functions[function], line=line)
        return l.id

    def sample(self, stack, count, *more_values, **labels):
        s = self.p.sample.add(location_id=stack, value=[count, count * PERIOD_NS, *more_values])
        for key, value in labels.items():
            if isinstance(value, int):
                s.label.add(key=self.text(key.encode()), num=value)
            else:
                s.label.add(key=self.text(key.encode()), str=self.text(value))

    def write(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(gzip.compress(self.p.SerializeToString()))


def fill(w):
    binary = w.mapping(0x400000, b"/usr/sbin/nginx", b"00112233445566778899aabbccddeeff00112233")
    kernel = w.mapping(0xffffffff81000000, b"[kernel.kallsyms]", b"ffeeddcc")
    jit = w.mapping(0x7f0000000000, b"[jit 200]")
    main = w.location(binary, 0x100, (b"main", b"nginx.c", 10))
    handle = w.location(binary, 0x200, (b"copy_inlined", b"copy.h", 7), (b"handle", b"handle.c", 42))
    unnamed = w.location(binary, 0x300)
    read = w.location(kernel, 0x400, (b"sys_read", b"", 0))
    worker = w.location(kernel, 0x500, (b"process_one_work", b"", 0))
    thread = w.location(kernel, 0x600, (b"kthread", b"", 0))
    compiled = w.location(jit, 0x700, (b"Foo.bar", b"", 0))

    # In ms; see profile.proto.
    ticks = sorted([(1000 * i, 1) for i in range(60)] + [(500 + 2000 * i, 2) for i in range(15)])
    times = [time for time, _ in ticks]
    numbers = [number for _, number in ticks]
    first = [numbers.index(1), numbers.index(2)]
    w.p.ticks.extend([10 ** 6, times[-1], len(ticks)] + [time - before for time, before in zip(times, [0] + times)])
    w.p.ticks.extend(0 if i in first else number for i, number in enumerate(numbers))
    nginx = dict(pid=100, comm=b"nginx", cpu=1, unit=b"nginx.service", user=b"www-data")
    w.sample([handle, main], 60, **nginx)
    w.sample([read, handle, main], 20, **nginx)
    w.sample([unnamed], 10, **nginx)
    w.sample([compiled], 5, pid=200, comm=b"java", thread=b"GC Thread#0", cpu=0, user=b"1000",
             unit=b"docker-" + CONTAINER.encode() + b".scope", container=CONTAINER.encode())
    w.sample([worker, thread], 3, comm=b"kworker/0:1", cpu=0)
    w.sample([main], 2, comm=b"bash", unit=b"session-3.scope", user=b"ann")
    # As of another process that has the same file at the same address.
    same = w.mapping(0x400000, b"/usr/sbin/nginx", b"00112233445566778899aabbccddeeff00112233")
    main = w.location(same, 0x100, (b"main", b"nginx.c", 10))
    w.sample([main], 1, comm=b"ev\xffil", unit=b"user@1000.service", user=b"ann")


def fill_many(w, services):
    binary = w.mapping(0x400000, b"/bin/many")
    main = w.location(binary, 0x100, (b"main", b"many.c", 1))
    for i in range(services):
        w.sample([main], i + 1, comm=b"name%d" % i)


def fill_waits(w):
    """The values delay, wall and woke are in use: on CPU and asleep, one that waits only, and one that ended a wait."""
    binary = w.mapping(0x400000, b"/usr/sbin/nginx")
    state = w.mapping(0x10000, b"[off CPU]")
    main = w.location(binary, 0x100, (b"main", b"nginx.c", 10))
    read = w.location(binary, 0x200, (b"take", b"nginx.c", 20))
    asleep = w.location(state, 0x1, (b"[blocked: futex]", b"", 0))
    nginx = dict(comm=b"nginx", unit=b"nginx.service")
    w.sample([read, main], 3, 7000, 3 * PERIOD_NS, 0, **nginx)
    w.sample([asleep, read, main], 0, 0, 5000000, 0, **nginx)
    w.sample([main], 0, 0, 0, 9000, **nginx)
    w.sample([asleep, main], 0, 0, 60000000, 0, comm=b"cron", unit=b"cron.service")


def main():
    archive, host, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    more = sys.argv[4] if len(sys.argv) > 4 else "0"
    last = int(time.time()) // 60 * 60 - 120
    for i in range(count):
        start = last - 60 * (count - 1 - i)
        w = Window(start, host, [b"delay", b"wall", b"woke"] if more == "waits" else [])
        if more == "waits":
            fill_waits(w)
        elif int(more):
            fill_many(w, int(more))
        else:
            fill(w)
        w.write(time.strftime(f"{archive}/{host}/%Y-%m-%d/%H%M%S.pb.gz", time.gmtime(start)))


if __name__ == "__main__":
    main()
