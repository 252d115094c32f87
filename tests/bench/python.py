# SPDX-License-Identifier: GPL-2.0-only
"""
python.py work SECONDS
        Works in functions of known kinds: loops, calls, comprehensions, generators, recursion, the standard library.
python.py compare PROFILTOOL PROFILE STACKS
        Compares a recording of that with the stacks that another profiler has found at the same time: lines
        "FRAME;...;FRAME NUMBER" with the outermost frame first, as py-spy (NUMBER: of samples) and austin (a line for
        each sample) write them. Prints for each function with 2 % of either: its shares by itself, and by how many
        standard deviations they differ; then those in whose stacks it is.
"""
import json
import math
import re
import subprocess
import sys
import time


def add(n):
    s = 0
    for i in range(n):
        s += i
    return s


def multiply(n):
    s = 1
    for _ in range(n):
        s = s * 3 & 0xFFFF
    return s


def leaf(x):
    return x + 1


def call(n):
    for i in range(n):
        leaf(i)


def write(n):
    text = []
    for i in range(n):
        text.append(f"{i}:{i * 2}")
    return text


def generate(n):
    for i in range(n):
        yield i


def consume(n):
    s = 0
    for i in generate(n):
        s += i
    return s


def parse(n):
    for _ in range(n):
        json.loads('{"a": [1, 2, 3], "b": "text"}')


def recurse(n):
    return recurse(n - 1) + 1 if n else 0


def recursion(n):
    for _ in range(n):
        recurse(20)


def match(n):
    for i in range(n):
        re.search("b+c", "ab" * 40)


def work(seconds):
    end = time.monotonic() + seconds
    print("ready", flush=True)
    while time.monotonic() < end:
        add(3000)
        multiply(2000)
        call(1500)
        write(300)
        consume(1500)
        parse(60)
        recursion(30)
        match(40)


def own_stacks(profiltool, profile):
    text = subprocess.run([profiltool, "dump", profile], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        if stack := re.match(r"(\d+) 0x.* # (.*)", line):
            frames = [re.fullmatch(r"(.*) \((.*?)(?::\d+)?\)", frame) for frame in stack[2].split(";")]
            script = [f[1] for f in frames if f and re.search(r"\.py$|^<", f[2])]
            if script:
                yield script, int(stack[1])


def other_stacks(path):
    for line in open(path, encoding="utf-8"):
        stack, _, number = line.rstrip("\n").rpartition(" ")
        frames = stack.split(";")
        if re.match(r"P\d+$", frames[0]):  # austin: PROCESS;THREAD;FILE:FUNCTION:LINE;... MICROSECONDS
            script = [f.rsplit(":", 2)[1] for f in frames[2:] if f.count(":") >= 2]
            number = 1
        elif re.search(r" \(.*\)$", frames[-1]):  # py-spy: FUNCTION (FILE:LINE);... SAMPLES
            script = [re.sub(r" \(.*\)$", "", f) for f in frames]
        else:
            continue
        # What is read while the program goes on may be wrong: such stacks do not reach its beginning.
        if script and script[0] == "<module>":
            yield script[::-1], int(number)


def count(stacks):
    own, total, samples = {}, {}, 0
    for script, number in stacks:
        names = [name.rsplit(".", 1)[-1] for name in script]  # not all have qualified names
        samples += number
        own[names[0]] = own.get(names[0], 0) + number
        for name in set(names):
            total[name] = total.get(name, 0) + number
    return own, total, samples


BLOCKS = 25


def variance(stacks, which, name, share):
    """Of a share that austin has found. It takes samples by the wall clock: where others want the CPU, it sees one stack
    many times while the program waits, so that its samples depend on each other; how much is seen in parts of them."""
    size = len(stacks) // BLOCKS if all(number == 1 for _, number in stacks) else 0
    blocks = [count(stacks[i * size : (i + 1) * size]) for i in range(BLOCKS)] if size > 10 else []
    shares = [block[which].get(name, 0) / block[2] for block in blocks]
    between = sum((s - share) ** 2 for s in shares) / (BLOCKS - 1) / BLOCKS if shares else 0
    return max(between, share * (1 - share) / sum(number for _, number in stacks))


def compare(profiltool, profile, stacks):
    others = list(other_stacks(stacks))
    ours, theirs = count(own_stacks(profiltool, profile)), count(others)
    n, m = ours[2], theirs[2]
    worst = 0
    if min(n, m) < 100:
        sys.exit(f"too few samples: {n} and {m}")
    for which, title in enumerate(("self", "total")):
        here, there = ours[which], theirs[which]
        for name in sorted(here.keys() | there.keys(), key=lambda name: -here.get(name, 0)):
            p, q = here.get(name, 0) / n, there.get(name, 0) / m
            if max(p, q) < 0.02:
                continue
            deviation = math.sqrt(p * (1 - p) / n + variance(others, which, name, q))
            off = abs(p - q) / deviation if deviation else 0
            worst = max(worst, off)
            print(f"# {title:5} {name:14} {100 * p:6.2f} % {100 * q:6.2f} % {off:5.1f}")
    print(f"{worst:.2f} {worst:.1f} of {n} and {m} samples")


if sys.argv[1] == "work":
    work(float(sys.argv[2]))
else:
    compare(*sys.argv[2:])
