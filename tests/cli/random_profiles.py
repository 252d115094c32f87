#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
usage: random_profiles.py PROFILTOOL DIRECTORY ELF... COUNT SEED

Writes COUNT random profiles as pprof files, has each converted to some formats, and reads the results with readers of
its own. What a file says of each stack, function or address is what the profile says, summed over all that the format
cannot hold; where it has no sign, only sums above 0 are there. Prints a line for each format: its name, how many files
were compared, and how many were wrong; and why, for the first of these.

Values are signed, often cancel each other, and sometimes add up to more than 63 bits.
"""
import collections
import gzip
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

MOST = 2**63 - 1
SIGNED = ('pprof', 'callgrind', 'folded', 'report')
FORMATS = ('pprof', 'callgrind', 'folded', 'gperftools', 'dcpi', 'gmon', 'speedscope', 'firefox', 'otlp', 'report')

# --- protobuf ---


def varint(n):
    out = b''
    n &= 2**64 - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n) if n else b''


def part(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def fields(data):
    """All fields of a message: number -> list of numbers or bytes."""
    out = collections.defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = take(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = take(data, at)
        elif kind == 1:
            value, at = struct.unpack_from('<Q', data, at)[0], at + 8
        else:
            size, at = take(data, at)
            value, at = data[at:at + size], at + size
        out[tag >> 3].append(value)
    return out


def take(data, at):
    n = shift = 0
    while True:
        n |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return n, at


def packed(values):
    out = []
    for v in values:
        if isinstance(v, int):
            out.append(v)
            continue
        at = 0
        while at < len(v):
            n, at = take(v, at)
            out.append(n)
    return out


def signed(n):
    return n - 2**64 if n >> 63 else n


def first(messages, field, default=0):
    return messages[field][0] if messages[field] else default


# --- The profile ---

Mapping = collections.namedtuple('Mapping', 'start limit offset path')
Location = collections.namedtuple('Location', 'address mapping lines')  # lines: ((name, file), line), innermost first
Sample = collections.namedtuple('Sample', 'stack labels values')  # leaf first; labels: sorted ((key, value), ...)


class Profile:
    """Random; named: functions and lines are known, and no image is on this machine."""

    def __init__(self, rng, elves):
        self.named = rng.random() < 0.6
        images = ['/nowhere/app', '/nowhere/lib.so'] if self.named else elves
        self.mappings = []
        for i, path in enumerate(images):
            offset, size = (0x1000, 0x2000) if self.named else text_of(path)
            for copy in range(rng.choice((1, 1, 2))):  # the same code in another process
                start = 0x550000000000 + (i * 2 + copy) * 0x10000000
                self.mappings.append(Mapping(start, start + size, offset, path))
        functions = [(name, file) for name in ('f', 'g', 'main', 'operator new') for file in ('a.c', 'b.c')]
        self.locations = []
        for _ in range(rng.randint(1, 12)):
            m = rng.choice(self.mappings + [None] * (rng.random() < 0.3))
            address = rng.randrange(1, min(40, (m.limit - m.start) // 16) if m else 40) * 16
            address += m.start if m else 0x7000
            lines = ()
            if self.named:
                lines = tuple((rng.choice(functions), rng.randint(1, 3)) for _ in range(rng.choice((1, 1, 1, 2, 3))))
            if all(l.address != address for l in self.locations):
                self.locations.append(Location(address, m, lines))
        self.types = [('samples', 'count')] + [('faults', 'count')] * (rng.random() < 0.4)
        huge = rng.random() < 0.04
        self.samples = []
        stacks = [tuple(rng.choice(self.locations) for _ in range(rng.choice((0, 1, 1, 2, 3, 5)) if rng.random() < 0.98
                                                                  else 300))
                  for _ in range(rng.randint(1, 6))]
        for _ in range(rng.randint(1, 25)):
            labels = {}
            if rng.random() < 0.7:
                labels['tid'] = labels['pid'] = rng.randint(1, 3)
            if rng.random() < 0.3:
                labels['label'] = rng.choice(('x', 'y'))
            if rng.random() < 0.2:
                labels['color'] = rng.choice(('red', 'blue'))
            values = tuple(rng.choice((0, 1, 2, 7, -1, -2, -7, 40, -40, rng.randint(-99, 99))) for _ in self.types)
            if huge:
                values = tuple(v * 2**56 for v in values)
            self.samples.append(Sample(rng.choice(stacks), tuple(sorted(labels.items())), values))

    def encode(self):
        texts = {'': 0}
        out = b''

        def text(t):
            return texts.setdefault(t, len(texts))

        functions = sorted({f for l in self.locations for f, _ in l.lines})
        for kind, unit in self.types:
            out += part(1, number(1, text(kind)) + number(2, text(unit)))
        for s in self.samples:
            body = part(1, b''.join(varint(self.locations.index(l) + 1) for l in s.stack))
            body += part(2, b''.join(varint(v) for v in s.values))
            for key, value in s.labels:
                is_text = isinstance(value, str)
                body += part(3, number(1, text(key)) + number(2 if is_text else 3, text(value) if is_text else value))
            out += part(2, body)
        for i, m in enumerate(self.mappings):
            out += part(3, number(1, i + 1) + number(2, m.start) + number(3, m.limit) + number(4, m.offset) +
                        number(5, text(m.path)) + number(7, self.named))
        for i, l in enumerate(self.locations):
            body = number(1, i + 1) + number(3, l.address)
            body += number(2, self.mappings.index(l.mapping) + 1 if l.mapping else 0)
            for f, line in l.lines:
                body += part(4, number(1, functions.index(f) + 1) + number(2, line))
            out += part(4, body)
        for i, (name, file) in enumerate(functions):
            out += part(5, number(1, i + 1) + number(2, text(name)) + number(3, text(name)) + number(4, text(file)))
        out += number(14, text(self.types[0][0]))
        return gzip.compress(out + b''.join(part(6, t.encode()) for t in texts), 1)


def text_of(path):
    """Offset and size of an ELF file's code."""
    data = open(path, 'rb').read()
    at, = struct.unpack_from('<Q', data, 32)
    for i in range(struct.unpack_from('<H', data, 56)[0]):
        kind, flags, offset, address, _, size = struct.unpack_from('<IIQQQQ', data, at + i * 56)
        if kind == 1 and flags & 1:
            assert address == offset
            return offset, size
    return None


def code(l):
    """What a location's code is in all processes."""
    return (l.mapping.path, l.address - l.mapping.start + l.mapping.offset) if l.mapping else ('', l.address)


def functions(s):
    """Its functions and lines, leaf first."""
    return tuple((name, file, line) for l in s.stack for (name, file), line in l.lines)


def held(p, form, s, value):
    """What a format holds of a sample, without the number."""
    labels = dict(s.labels)
    stack = tuple(code(l) for l in s.stack)
    if form == 'pprof':
        return stack, functions(s) if p.named else (), s.labels, value
    if form == 'otlp':
        return stack, s.labels
    if form == 'gperftools':
        return stack[:252] or None  # of 254; copies of the leaf may take the last two places
    if form == 'dcpi':
        path, address = stack[0] if stack and stack[0][0] else ('', 0)
        return path, address, labels.get('label'), p.types[value][0]
    if form == 'gmon':
        return stack[:1] if stack and stack[0][0] else None
    if form == 'folded':
        return ';'.join(name for name, _, _ in reversed(functions(s))) or '[no pc]'
    if form == 'callgrind':
        return functions(s)[0][:2] + (value,) if s.stack else ('[no pc]', '???', value)
    if form == 'report':
        return (functions(s)[0][0], code(s.stack[0])[0] or '[unknown]') if s.stack else '[no pc]'
    thread = labels.get('tid', 0)
    if form == 'speedscope':
        return thread, tuple((name, file) for name, file, _ in functions(s))
    return thread, functions(s)


def expect(p, form):
    """The sums that the file is to have, and whether they are too large for it."""
    sums = collections.Counter()
    count = len(p.types) if form in ('pprof', 'callgrind', 'dcpi') else 1
    size = [0] * count
    for s in p.samples:
        for v in range(count):
            sums[held(p, form, s, v)] += s.values[v]
            size[v] += abs(s.values[v])
    if form not in SIGNED:
        size = [sum(n for n in sums.values() if n > 0)]
    return {k: n for k, n in sums.items() if k is not None and (n if form in SIGNED else n > 0)}, max(size) > MOST


# --- Readers: each returns the sums of a file ---


def read_pprof(path, p):
    m = fields(gzip.decompress(open(path, 'rb').read()))
    texts = [t.decode() for t in m[6]]
    mappings = {}
    for f in map(fields, m[3]):
        mappings[first(f, 1)] = Mapping(first(f, 2), first(f, 3), first(f, 4), texts[first(f, 5)])
    names = {first(f, 1): (texts[first(f, 2)], texts[first(f, 4)]) for f in map(fields, m[5])}
    locations = {}
    for f in map(fields, m[4]):
        lines = tuple((names[first(l, 1)], first(l, 2)) for l in map(fields, f[4]))
        locations[first(f, 1)] = Location(first(f, 3), mappings.get(first(f, 2)), lines)
    sums = collections.Counter()
    for f in map(fields, m[2]):
        stack = tuple(locations[i] for i in packed(f[1]))
        labels = tuple(sorted((texts[first(l, 1)], texts[first(l, 2)] if l[2] else first(l, 3))
                              for l in map(fields, f[3])))
        for i, v in enumerate(packed(f[2])):
            s = Sample(stack, labels, ())
            sums[held(p, 'pprof', s, i)] += signed(v)
    return sums


def read_otlp(path):
    request = fields(open(path, 'rb').read())
    d = fields(first(request, 2, b''))
    texts = [t.decode() for t in d[5]]
    mappings = [Mapping(first(f, 1), first(f, 2), first(f, 3), texts[first(f, 4)]) for f in map(fields, d[1])]
    locations = []
    for f in map(fields, d[2]):
        m = mappings[first(f, 1)] if first(f, 1) else None
        locations.append(code(Location(first(f, 2), m, ())))
    stacks = [packed(fields(f)[1]) for f in d[7]]
    keys = {'process.pid': 'pid', 'thread.id': 'tid'}
    attributes = []
    for f in map(fields, d[6]):
        key, value = texts[first(f, 1)], fields(first(f, 2, b''))
        attributes.append((keys.get(key, key), first(value, 1).decode() if value[1] else first(value, 3)))
    sums = collections.Counter()
    for resource in map(fields, request[1]):
        for scope in map(fields, resource[2]):
            for f in (fields(s) for profile in scope[2] for s in fields(profile)[2]):
                labels = tuple(sorted(attributes[i] for i in packed(f[2])))
                values = [signed(v) for v in packed(f[4])]
                assert values and values[0] > 0
                sums[tuple(locations[i] for i in stacks[first(f, 1)]), labels] += sum(values)
    return sums


def read_gperftools(path):
    data = open(path, 'rb').read()
    slots = struct.unpack_from('<%dQ' % (len(data) // 8), data)
    at, records, sums = 2 + slots[1], [], collections.Counter()
    while slots[at:at + 3] != (0, 1, 0):
        assert slots[at] > 0
        records.append((slots[at], slots[at + 2:at + 2 + slots[at + 1]]))
        at += 2 + slots[at + 1]
    mappings = []
    for line in data[(at + 3) * 8:].decode().splitlines():
        words = line.split()
        start, limit = (int(w, 16) for w in words[0].split('-'))
        mappings.append(Mapping(start, limit, int(words[2], 16), words[-1]))
    for count, pcs in records:
        while len(pcs) > 1 and pcs[0] == pcs[1]:  # what stands twice is for readers that strip a frame
            pcs = pcs[1:]
        stack = []
        for i, pc in enumerate(pcs):
            pc = (pc - (i > 0)) & ~(1 << 62)
            m = next((m for m in mappings if m.start <= pc < m.limit), None)
            stack.append(code(Location(pc, m, ())))
        sums[tuple(stack[:252])] += count
    return sums


def read_dcpi(path):
    sums = collections.Counter()
    for directory, _, names in os.walk(path):
        for name in names:
            data = open(os.path.join(directory, name), 'rb').read()
            head, body = re.split(rb'\nsamples *\n', data, maxsplit=1)
            h = dict((line + b' ').decode().split(' ', 1) for line in head.split(b'\n'))
            h = {k: v.strip() for k, v in h.items()}
            words = struct.unpack('<%dI' % (len(body) // 4), body)
            addresses, total, at = words[-2], words[-1], 0
            while at < len(words) - 2:
                for i in range(words[at + 1]):
                    n = words[at + 2 + i]
                    if n:
                        image = h.get('path', '')
                        address = int(h['tstart'], 16) + words[at] + i if image.startswith('/') else 0
                        sums[image if image.startswith('/') else '', address, h.get('label'), h['event']] += n
                        addresses, total = addresses - 1, total - n
                at += 2 + words[at + 1]
            assert (addresses, total) == (0, 0)
    return sums


def read_gmon(path, p):
    sums = collections.Counter()
    paths = {os.path.basename(m.path): m.path for m in p.mappings}
    for name in os.listdir(path):
        data = open(os.path.join(path, name), 'rb').read()
        at = 20
        while at < len(data):
            kind, low, high, bins = struct.unpack_from('<BQQI', data, at)
            assert kind == 0
            for i, n in enumerate(struct.unpack_from('<%dH' % bins, data, at + 41)):
                if n:
                    sums[((paths[name[:-len('.gmon')]], low + i * (high - low) // bins),)] += n
            at += 41 + 2 * bins
    return sums


def read_folded(path):
    sums = collections.Counter()
    for line in open(path):
        if not line.startswith('#'):
            stack, n = line.rsplit(' ', 1)
            assert stack not in sums
            sums[stack] = int(n)
    return sums


def read_callgrind(path):
    sums, names, now, skip = collections.Counter(), {}, {}, False
    total = None
    for line in open(path).read().splitlines():
        key, _, value = line.partition('=')
        if key in ('ob', 'fl', 'fi', 'fe', 'fn', 'cob', 'cfl', 'cfi', 'cfn'):
            space = {'c': key[1:]}.get(key[0], key)
            number_of, _, name = value.partition(' ')
            kind = {'ob': 'ob', 'fn': 'fn'}.get(space, 'fl')
            if name:
                names[kind, number_of] = name
            if key in ('fl', 'fn'):
                now[key] = names[kind, number_of]
        elif key == 'calls':
            skip = True
        elif line.startswith('totals:'):
            total = [int(n) for n in line.split()[1:]]
        elif line[:1].isdigit() or line[:1] in '+*-' and line:
            for i, n in enumerate(line.split()[1:]):
                if not skip:
                    sums[now['fn'], now['fl'], i] += int(n)
            skip = False
    for i, n in enumerate(total):
        assert n == sum(v for k, v in sums.items() if k[2] == i)
    return sums


def read_speedscope(path):
    j, sums = json.load(open(path)), collections.Counter()
    frames = [(f['name'], f.get('file', '')) for f in j['shared']['frames']]
    for t in j['profiles']:
        last = t['name'].split()[-1]
        assert sum(t['weights']) == t['endValue']
        for stack, n in zip(t['samples'], t['weights']):
            assert n > 0
            sums[int(last) if last.isdigit() else 0, tuple(frames[f] for f in reversed(stack))] += n
    return sums


def read_firefox(path):
    j, sums = json.load(open(path)), collections.Counter()
    shared = j['shared']
    texts, frame, func, stacks = (shared[k] for k in ('stringArray', 'frameTable', 'funcTable', 'stackTable'))
    for t in j['threads']:
        for stack, n in zip(t['samples']['stack'], t['samples']['weight']):
            found = []
            while stack is not None:
                f = frame['func'][stacks['frame'][stack]]
                file = texts[shared['sources']['filename'][func['source'][f]]]
                found.append((texts[func['name'][f]], file, frame['line'][stacks['frame'][stack]]))
                stack = stacks['prefix'][stack]
            assert n > 0
            sums[t['tid'], tuple(found)] += n
    return sums


def read_report(path):
    sums = collections.Counter()
    for f in json.load(open(path))['functions']:
        sums['[no pc]' if f['name'] == '[no pc]' else (f['name'], f['image'])] += f['self']
    return sums


def compare(profiltool, source, p, form):
    """None; or what is wrong with the file of this format."""
    out = source + '.' + form
    if form == 'report':
        command = [profiltool, 'report', '--json', source]
        done = subprocess.run(command, stdout=open(out, 'w'), stderr=subprocess.PIPE, text=True)
    else:
        command = [profiltool, 'convert', '-f', form, source, out]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    right, too_large = expect(p, form)
    try:
        if too_large and form == 'report':
            return None if '2^63' in done.stderr else 'no warning of sums above 2^63'
        if too_large and form != 'pprof':
            return None if done.returncode == 1 and not os.path.exists(out) else 'sums above 2^63 are written'
        if max(map(abs, right.values()), default=0) > MOST:
            return None if '2^63' in done.stderr else 'no warning of sums above 2^63'
        if done.returncode == 1 and not right and form in ('gmon', 'gperftools'):
            return None  # there is nothing that it could hold
        if done.returncode == 1 and form in ('gmon', 'dcpi') and max(right.values()) >= 2**31:
            return None  # it has no room for such counts, and says so
        if done.returncode not in (0, 3, 4):
            return 'status %d: %s' % (done.returncode, done.stderr)
        read = globals()['read_' + form]
        found = {k: n for k, n in (read(out, p) if form in ('gmon', 'pprof') else read(out)).items() if n}
    finally:
        if os.path.isdir(out):
            shutil.rmtree(out)
        elif os.path.exists(out):
            os.unlink(out)
    if found == right:
        return None
    return 'missing %r, wrong %r' % (sorted(set(right.items()) - set(found.items()), key=repr),
                                     sorted(set(found.items()) - set(right.items()), key=repr))


def main():
    profiltool, directory, *elves = sys.argv[1:-2]
    count, seed = int(sys.argv[-2]), int(sys.argv[-1])
    compared, wrong = collections.Counter(), collections.Counter()
    for i in range(count):
        rng = random.Random(seed + i)
        p = Profile(rng, elves)
        source = os.path.join(directory, '%d.pb.gz' % (seed + i))
        with open(source, 'wb') as out:
            out.write(p.encode())
        # Names of unnamed code are the reader's affair, and gmon.out has only files that are there.
        by_name = ('callgrind', 'folded', 'speedscope', 'firefox', 'report')
        possible = [f for f in FORMATS if f != 'gmon'] if p.named else [f for f in FORMATS if f not in by_name]
        for form in rng.sample(possible, 3):
            reason = compare(profiltool, source, p, form)
            compared[form] += 1
            if reason and not wrong[form]:
                print('# seed %d, %s: %s' % (seed + i, form, reason))
            wrong[form] += bool(reason)
        os.unlink(source)
    for form in FORMATS:
        print(form, compared[form], wrong[form])


main()
