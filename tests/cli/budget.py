#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
usage: budget.py PROFILTOOL DIRECTORY PART

Writes small files that become as large as they may, or larger: inlined functions times frames, deep stacks, many paths,
long names, many texts, values and labels; a PART of the largest sizes, 1: all. Runs the commands on each, and prints a line for each command:
its name, the most memory that it took in MiB, the most CPU time in seconds, the largest output in MiB, and the file.
"""
import gzip
import os
import resource
import shutil
import sys


def varint(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def part(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def profile(names, samples, lines=1, locations=None, types=1):
    """A file with a function and a location for each name, and these samples: stacks as bytes, and what follows."""
    out = b''.join(part(6, text) for text in [b'', b'samples', b'count'] + names)
    out += part(1, number(1, 1) + number(2, 2)) * types
    for i in range(len(names) if locations is None else locations):
        out += part(4, number(1, i + 1) + number(3, i + 1) + part(4, number(1, i + 1)) * lines)
        out += part(5, number(1, i + 1) + number(2, i + 3))
    return gzip.compress(out + b''.join(part(2, part(1, stack) + rest) for stack, rest in samples), 1)


ONE = part(2, b'\1')
PART = int(sys.argv[3])
COUNT = 60000 // PART
FILES = {
    'far-too-many-frames': lambda: profile([b'f'], [(b'\1' * 1000, ONE)], lines=100000),
    'inlined-functions': lambda: profile([b'f'], [(b'\1' * (4000 // PART), ONE)], lines=4000),
    'deep-stack': lambda: profile([b'f'], [(b'\1' * (15000000 // PART), ONE)]),
    'many-paths': lambda: profile([b'f%d' % i for i in range(COUNT)],
                                  [(bytes(range(1, 121)) + varint(i + 1), ONE) for i in range(COUNT)]),
    'long-names': lambda: profile([b'%03d' % i + b'x' * 500000 for i in range(100 // PART)],
                                  [(varint(i + 1), ONE) for i in range(100 // PART)]),
    'texts': lambda: profile([b'f'] + [b''] * (20000000 // PART), [(b'\1', ONE)], locations=1),
    'values': lambda: profile([b'f%d' % i for i in range(6000 // PART)],
                              [(varint(i + 1), part(2, b'\1' * (6000 // PART))) for i in range(6000 // PART)], types=6000 // PART),
    'labels': lambda: profile([b'f'], [(b'\1', ONE + part(3, number(1, 3) + number(3, i))) for i in range(300000 // PART)]),
}

COMMANDS = [['report'], ['report', '--json'], ['report', '--tree'], ['report', '--by', 'line'], ['report', '--callers', 'f'],
            ['annotate', 'f'], ['diff', 'FILE'], ['merge', '-o', 'OUT.pb.gz'], ['dump'], ['dump', '--json'],
            ['flamegraph', '-o', 'OUT.svg'], ['flamegraph', '-o', 'OUT.html'], ['flamegraph', '--percent', '0', '-o', 'OUT.svg'],
            ['web', '-o', 'OUT.html']]
COMMANDS += [['convert', '-q', '-f', f, 'FILE', 'OUT.' + f] for f in
             ('pprof', 'callgrind', 'folded', 'gperftools', 'dcpi', 'speedscope', 'firefox', 'otlp')]


def size_of(path):
    if os.path.isdir(path):
        return sum(size_of(os.path.join(path, name)) for name in os.listdir(path))
    return os.path.getsize(path)


def run(tool, command, path):
    """Returns memory in MiB, CPU time in s, and the size of what it wrote in MiB."""
    arguments = [path if a == 'FILE' else a for a in command]
    if command[0] != 'convert':
        arguments.append(path)
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 30, 2 << 30))
        out = os.open('OUT.stdout', os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        os.dup2(out, 1)
        os.dup2(os.open('/dev/null', os.O_WRONLY), 2)
        os.execv(tool, [tool] + arguments)
    _, status, used = os.wait4(pid, 0)
    written = 0
    for name in os.listdir('.'):
        if name.startswith('OUT.'):
            written += size_of(name)
            shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)
    if os.WIFSIGNALED(status):
        return float('inf'), float('inf'), written / 2**20
    return used.ru_maxrss / 1024, used.ru_utime + used.ru_stime, written / 2**20


def main():
    tool, directory = sys.argv[1:3]
    os.chdir(directory)
    most = {}
    for name, make in FILES.items():
        with open(name + '.pb.gz', 'wb') as out:
            out.write(make())
        for command in COMMANDS:
            used = run(tool, command, name + '.pb.gz')
            key = '-'.join(w.strip('-') for w in command if w != 'FILE' and not w.startswith('-o'))
            worst = most.get(key, (0, 0, 0, ''))
            file = name if used[0] > worst[0] else worst[3]
            most[key] = tuple(map(max, used, worst[:3])) + (file,)
        os.unlink(name + '.pb.gz')
    for key, (memory, seconds, written, file) in most.items():
        print('%s %.0f %.1f %.1f %s' % (key, memory, seconds, written, file))


main()
