#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
deploys.py DIRECTORY SEED HOURS [SERVICE:HOUR:WHAT]...: writes an archive of a host with three services, as
profild --continuous does at 97 Hz, from 2026-11-20 00:00 on, and deploys in it:

    build         a new build of the service's program
    restart       new processes
    halfway       the same within a minute, which has ticks of the old ones, too
    slower=F,X    a new build, in which the function F costs X percent of the service's time more
    moved=F,G,X   a new build, in which so much of F's time has become G's
    added=K,X     a new build, in which requests of kind K also log, in many small functions: X percent of the service's time
    whole=X       a new build, in which all functions cost X percent more
    waits=X       a restart, after which threads wait X times as long for a CPU
    blocked=X     a restart, after which threads are blocked X times as long for a lock
    more=K,X      a restart, after which there are so many percent more requests of kind K
    load=X        no deploy: so many percent more requests
    disturbed=F,X no deploy: from then on what else runs takes the function F's cache at times: X percent of its time more
    beside        no deploy: from then on another build is used every other minute

DIRECTORY.SERVICE.requests has the requests of each, as "TIME VALUE" of a counter that restarts begin anew.
Windows have wall times and delay, as those of a machine in which services wait for a CPU; with DEPLOYS_WAITS they have
where threads are blocked, too: for a lock in get(), and for a disk in save(). Requests of kind K have the label query "select K".
DEPLOYS_HOST and DEPLOYS_START, in seconds since the epoch, are another host and time; DEPLOYS_SERVICES, as JSON, other
services with the CPUs that each uses; DEPLOYS_COSTS, as JSON, what the functions of each kind of requests cost, in place
of 40 functions; DEPLOYS_PERIOD, in ns, what a tick stands for in these windows. DEPLOYS_ONCE
services more run, every five minutes, a thousand functions each that never run again, as programs that are built to be
tested do. DEPLOYS_HOSTILE is a user who has so many functions in each window, in a session and in the units of the
services, with builds, processes and waits of his own choice. DEPLOYS_IDS is what ids of locations and functions are
multiplied by: profild numbers them from 1 on, others as they like.

The noise is that of real services: loads that have hours, bursts, and requests whose mixture drifts.
"""
import gzip
import json
import math
import os
import random
import sys
import time

HZ = 97
START = int(os.environ.get("DEPLOYS_START", 1795132800))  # 2026-11-20 00:00 UTC
HOST = os.environ.get("DEPLOYS_HOST", "one")
SERVICES = json.loads(os.environ.get("DEPLOYS_SERVICES", '{"web.service": 0.9, "db.service": 0.6, "jobs.service": 0.3}'))
PERIOD = int(os.environ.get("DEPLOYS_PERIOD", round(1e9 / HZ)))
FUNCTIONS = 40
COSTS = json.loads(os.environ.get("DEPLOYS_COSTS", "null"))
LOG_FUNCTIONS = 60
ONCE = int(os.environ.get("DEPLOYS_ONCE", 0))
IDS = int(os.environ.get("DEPLOYS_IDS", 1))
WAITS = bool(os.environ.get("DEPLOYS_WAITS"))
HOSTILE = int(os.environ.get("DEPLOYS_HOSTILE", 0))


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


class Pprof:
    """One window."""

    def __init__(self):
        self.strings = {"": 0}
        self.body = []
        self.locations = {}
        self.mappings = {}
        self.delay = 0.05  # how long others wait, for each second

    def text(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def mapping(self, path, build):
        if (path, build) not in self.mappings:
            known = self.mappings[path, build] = len(self.mappings) + 1
            start = 0x400000 + known * 0x1000000
            self.body.append(message(3, number(1, known) + number(2, start) + number(3, start + 0x100000)
                                     + number(5, self.text(path)) + number(6, self.text(build)) + number(7, 1)))
        return self.mappings[path, build]

    def location(self, name, path, build):
        mapping = self.mapping(path, build)
        if (name, mapping) not in self.locations:
            known = self.locations[name, mapping] = (len(self.locations) + 1) * IDS
            self.body.append(message(5, number(1, known) + number(2, self.text(name)) + number(3, self.text(name))))
            address = 0x400000 + mapping * 0x1000000 + known * 16
            self.body.append(message(4, number(1, known) + number(2, mapping) + number(3, address)
                                     + message(4, number(1, known))))
        return self.locations[name, mapping]

    def label(self, key, text="", value=0):
        return message(3, number(1, self.text(key)) + (number(2, self.text(text)) if text else number(3, value)))

    def sample(self, stack, ticks, labels, wall=0):
        self.body.append(message(2, message(1, b"".join(varint(i) for i in stack))
                                 + message(2, varint(ticks) + varint(ticks * round(1e9 / HZ))
                                           + varint(round(ticks * 1e9 / HZ * self.delay))
                                           + (varint(wall) if WAITS else b""))
                                 + b"".join(labels)))

    def wall(self, ran, waited, blocked, labels):
        self.body.append(message(1002, number(1, 4) + number(2, ran) + number(4, waited) + number(5, blocked)
                                 + b"".join(labels)))

    def write(self, path, begin):
        types = b"".join(message(1, number(1, self.text(kind)) + number(2, self.text(unit)))
                         for kind, unit in (("samples", "count"), ("cpu", "nanoseconds"), ("delay", "nanoseconds"),
                                            ("wall", "nanoseconds"))[:4 if WAITS else 3])
        rest = (number(9, begin * 10**9) + number(10, 60 * 10**9)
                + message(11, number(1, self.text("cpu")) + number(2, self.text("nanoseconds")))
                + number(12, PERIOD))
        texts = b"".join(message(6, text.encode()) for text in self.strings)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with gzip.open(path, "wb", compresslevel=1) as out:
            out.write(types + b"".join(self.body) + texts + rest)


def poisson(rng, mean):
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        count += 1
        product *= rng.random()
    return count


class Service:
    """What a service does: requests of four kinds, each with its own functions."""

    def __init__(self, name, cpus, rng):
        self.name, self.cpus, self.rng = name, cpus, rng
        self.program = "/usr/bin/" + name.split(".")[0]
        self.build, self.pid = 1, 1000 + 1000 * len(name)
        weights = [rng.paretovariate(1.2) for _ in range(FUNCTIONS)]
        self.costs = {f"f{i}": weight / sum(weights) for i, weight in enumerate(weights)}
        self.kind = {f"f{i}": i % 4 for i in range(FUNCTIONS)}
        if COSTS:
            pairs = [(cost, kind) for kind, costs in enumerate(COSTS) for cost in costs]
            self.costs, self.kind = ({f"f{i}": pair[k] for i, pair in enumerate(pairs)} for k in (0, 1))
        self.load, self.beside, self.waits, self.blocked = 1.0, False, 1.0, 1.0
        self.requests, self.counter = 0, []
        self.old = 0  # a process that ends in the next minute
        self.added = None  # a kind of request, and what its log costs
        self.drift = [0.0] * 5  # of the load, and of each kind of request
        self.disturbed, self.factor, self.disturbs = None, 1.0, False  # a function, how much more it costs, and when

    def deploy(self, what):
        name, _, argument = what.partition("=")
        if name == "load":
            self.load *= 1 + float(argument) / 100
            return
        if name == "beside":
            self.beside = True
            return
        if name == "disturbed":
            self.disturbed, percent = argument.split(",")
            self.factor = 1 + float(percent) / 100
            return
        self.old = self.pid if name == "halfway" else 0
        self.pid += 100
        self.requests = 0
        if name in ("restart", "halfway"):
            return
        if name == "waits":
            self.waits *= float(argument)
            return
        if name == "blocked":
            self.blocked *= float(argument)
            return
        if name == "more":
            kind, percent = argument.split(",")
            for function in self.costs:
                if self.kind[function] == int(kind):
                    self.costs[function] *= 1 + float(percent) / 100
            return
        self.build += 1
        if name == "added":
            kind, percent = argument.split(",")
            self.added = int(kind), float(percent) / 100
        elif name == "whole":
            for function in self.costs:
                self.costs[function] *= 1 + float(argument) / 100
        elif name == "slower":
            function, percent = argument.split(",")
            self.costs[function] += float(percent) / 100 * sum(self.costs.values())
        elif name == "moved":
            old, new, percent = argument.split(",")
            part = min(float(percent) / 100 * sum(self.costs.values()), self.costs[old])
            self.costs[old] -= part
            self.costs[new] = self.costs.get(new, 0) + part
            self.kind.setdefault(new, self.kind[old])

    def minute(self, window, hour):
        for i in range(5):
            self.drift[i] = 0.97 * self.drift[i] + self.rng.gauss(0, 0.01 if i else 0.04)
        load = self.load * (1 + 0.3 * math.sin(hour / 24 * 2 * math.pi)) * math.exp(self.drift[0])
        if self.rng.random() < 0.03:
            load *= 1.5
        for quarter in range(4):
            self.requests += poisson(self.rng, 1500 * self.cpus * load)
            self.counter.append((START + 3600 * hour + 15 * (quarter + 1), self.requests))
        labels = [window.label("pid", value=self.pid), window.label("comm", self.name.split(".", maxsplit=1)[0]),
                  window.label("unit", self.name)]
        ran = 0
        build = f"{self.build + (100 if self.beside and round(hour * 60) % 2 else 0):02x}" * 20
        if self.disturbed and self.rng.random() < 0.1:
            self.disturbs = not self.disturbs
        for name, cost in self.costs.items():
            if self.disturbs and name == self.disturbed:
                cost *= self.factor
            ticks = poisson(self.rng, HZ * 60 * self.cpus * load * cost * math.exp(self.drift[1 + self.kind[name]]))
            if not ticks:
                continue
            stack = [window.location(frame, self.program, build)
                     for frame in (name, f"request_{self.kind[name]}", "serve", "main")]
            if self.old:
                window.sample(stack, ticks, [window.label("pid", value=self.old), *labels[1:]])
                self.old = 0
            window.sample(stack, ticks, [*labels, window.label("query", f"select {self.kind[name]}")])
            ran += round(ticks * 1e9 / HZ)
        for i in range(LOG_FUNCTIONS if self.added else 0):
            kind, cost = self.added
            ticks = poisson(self.rng, HZ * 60 * self.cpus * load * cost / LOG_FUNCTIONS * math.exp(self.drift[1 + kind]))
            if ticks:
                window.sample([window.location(frame, self.program, build)
                               for frame in (f"log{i}", "log", f"request_{kind}", "serve", "main")], ticks, labels)
                ran += round(ticks * 1e9 / HZ)
        for reason, function, factor in (("lock", "get", 0.1 * self.blocked), ("disk", "save", 0.2)) if WAITS else ():
            stack = [window.location(frame, self.program, build)
                     for frame in (f"[blocked: {reason}]", function, "serve", "main")]
            window.sample(stack, 0, labels, round(ran * factor * math.exp(self.rng.gauss(0, 0.2))))
        waited = round(ran * 0.04 * self.waits * math.exp(self.rng.gauss(0, 0.2)))
        window.wall(ran, waited, 4 * 60 * 10**9 - ran - waited, labels)

    def write_requests(self, path):
        with open(path, "w", encoding="ascii") as out:
            for when, count in self.counter:
                print(round(when), count, file=out)


def run_once(window, minute):
    for deep in range(5):
        stack = [window.location(f"once{minute}_{deep}_{i}", "/usr/bin/once", "0c" * 20) for i in range(200)]
        for service in range(ONCE):
            window.sample(stack, 1, [window.label("comm", "once"), window.label("unit", f"once{service}.service")])


def run_hostile(window, minute, late):
    """What mallory does to hide, and to make up, changes of others' services."""
    def labels(*where):
        return [window.label("pid", value=70000 + late), window.label("comm", "x"), *where, window.label("user", "mallory")]

    rng = random.Random(minute)
    session = labels(window.label("unit", "user-1000.slice/session-3.scope"))
    for at in range(0, HOSTILE, 100):  # half of them the same ones as before, the others never seen again
        names = [f"a{at + i}" if at < HOSTILE // 2 else f"a{minute}_{at + i}" for i in range(100)]
        window.sample([window.location(name, "/home/mallory/x", "aa" * 20) for name in names], rng.randrange(1, 9), session)
    for i in range(100):  # each of these differs since half of the time
        window.sample([window.location(f"r{i + 100 * late}", "/home/mallory/x", "aa" * 20)], 30, session)
    for name in SERVICES:
        program = name.split(".", maxsplit=1)[0]
        own = labels(window.label("unit", name))
        for path in (f"/home/mallory/{program}", "/home/mallory/y"):
            window.sample([window.location("m", path, f"{minute // 12 + 16:02x}" * 20)], 1, own)
        for i in range(40):  # functions of the same names, for a part of the unit's time
            window.sample([window.location(frame, f"/home/mallory/{program}", "ab" * 20)
                           for frame in (f"f{i}", f"request_{i % 4}", "serve", "main")], rng.randrange(1, 80), own)
        window.sample([], 500, own)
        window.wall(10**9, rng.randrange(10**12), 10**12, own)
        container = labels(window.label("container", f"user-1000.slice/{program}"))
        window.sample([window.location("f3", f"/usr/bin/{program}", "01" * 20)], 300 if late else 1, container)
    for i in range(20):
        window.sample([window.location("u", "/home/mallory/x", "aa" * 20)], 1,
                      labels(window.label("unit", f"user-1000.slice/u{minute}_{i}.service")))


def main():
    directory, seed, hours = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    services = {name: Service(name, cpus, random.Random(f"{seed} {name}")) for name, cpus in SERVICES.items()}
    deploys = sorted((float(hour), name, what) for name, hour, what in (text.split(":", 2) for text in sys.argv[4:]))
    for minute in range(round(hours * 60)):
        while deploys and deploys[0][0] * 60 <= minute:
            _, name, what = deploys.pop(0)
            services[name].deploy(what)
        window = Pprof()
        if HOSTILE:
            run_hostile(window, minute, minute >= hours * 30)
        for service in services.values():
            service.minute(window, minute / 60)
        if ONCE and minute % 5 == 0:
            run_once(window, minute)
        begin = START + 60 * minute
        day, second = time.strftime("%Y-%m-%d %H%M%S", time.gmtime(begin)).split()
        window.write(f"{directory}/{HOST}/{day}/{second}.pb.gz", begin)
    for service in services.values():
        service.write_requests(f"{directory}.{service.name}.requests")


main()
