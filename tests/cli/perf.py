# SPDX-License-Identifier: GPL-2.0-only
# perf.py make DIRECTORY PID: files as perf record writes them, by hand, with what a short recording has not: see FILES.
# perf.py script times|no-times|ended: the text of perf script, by hand.
# perf.py compare stacks|leaves SCRIPT OURS IMAGE: whether what perf script printed is what profiltool wrote.
import collections, functools, json, os, re, struct, sys

KERNEL, USER, GUEST_KERNEL = 1, 2, 4
IP, TID, TIME, CALLCHAIN, ID, CPU, PERIOD, IDENTIFIER, CGROUP = (1, 2, 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 16, 1 << 21)
BRANCH, REGISTERS, STACK, RAW = 1 << 11, 1 << 12, 1 << 13, 1 << 10
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512
S = 10**9


def attr(kind, config, sample_type, period=0, freq=0, branches=0, build_id=0, registers=0):
    flags = 1 << 18 | (1 << 10 if freq else 0) | build_id << 34  # sample_id_all, freq, build_id
    return struct.pack("<IIQQQQQIIQQQQIiQIHHIIQQ", kind, 136, config, freq or period, sample_type, 0, flags, 0, 0, 0, 0,
                       branches, registers, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def record(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(s, size=None):
    s = s if isinstance(s, bytes) else s.encode()
    return s.ljust((len(s) // 8 + 1) * 8 if size is None else size, b"\0")


class Events:
    """Records of one event or of several, which then have IDs from 1 on."""

    def __init__(self, sample_type, ids=1):
        self.sample_type, self.ids = sample_type | (IDENTIFIER if ids > 1 else 0), ids

    def tail(self, pid, tid, time, cpu=0, id=1):
        t = self.sample_type
        return ((struct.pack("<II", pid, tid) if t & TID else b"") + (struct.pack("<Q", time) if t & TIME else b"") +
                (struct.pack("<II", cpu, 0) if t & CPU else b"") + (struct.pack("<Q", id) if t & IDENTIFIER else b""))

    def sample(self, pid, tid, time, ip, chain=(), mode=USER, cpu=0, id=1, period=1, cgroup=0, copied=struct.pack("<Q", 0)):
        t, b = self.sample_type, b""
        b += struct.pack("<Q", id) if t & IDENTIFIER else b""
        b += struct.pack("<Q", ip) + struct.pack("<II", pid, tid)
        b += struct.pack("<Q", time) if t & TIME else b""
        b += struct.pack("<II", cpu, 0) if t & CPU else b""
        b += struct.pack("<Q", period) if t & PERIOD else b""
        b += struct.pack(f"<Q{len(chain)}Q", len(chain), *chain) if t & CALLCHAIN else b""
        b += struct.pack("<I", 4) + b"\1\2\3\4" if t & RAW else b""
        b += struct.pack("<Q", 0) if t & BRANCH else b""
        b += copied if t & STACK else b""
        b += struct.pack("<Q", cgroup) if t & CGROUP else b""
        return record(9, b, mode)

    def comm(self, pid, tid, name, time=0, exec=False):
        return record(3, struct.pack("<II", pid, tid) + text(name) + self.tail(pid, tid, time), 1 << 13 if exec else 0)

    def fork(self, pid, parent, tid, parent_tid, time=0):
        return record(7, struct.pack("<IIIIQ", pid, parent, tid, parent_tid, time) + self.tail(pid, tid, time))

    def mmap(self, pid, start, size, offset, path, time=0, build_id=b"", device=(8, 1), marked=False):
        body = struct.pack("<IIQQQ", pid, pid, start, size, offset)
        body += (struct.pack("<B3x20s", len(build_id), build_id) if build_id else struct.pack("<IIQQ", *device, 7, 0))
        body += struct.pack("<II", 5, 2)
        return record(10, body + text(path) + self.tail(pid, pid, time), USER | (1 << 14 if build_id or marked else 0))

    def lost(self, id, count, time=0):
        return record(2, struct.pack("<QQ", id, count) + self.tail(0, 0, time))

    def ksymbol(self, address, size, name, time=0):
        return record(17, struct.pack("<QIHH", address, size, 1, 0) + text(name) + self.tail(0, 0, time))

    def cgroup(self, id, path, time=0):
        return record(19, struct.pack("<Q", id) + text(path) + self.tail(0, 0, time))


def perf_string(s):
    return struct.pack("<I", len(text(s, 64))) + text(s, 64)


def build_id(path, bytes):
    return record(67, struct.pack("<i", -1) + bytes.ljust(24, b"\0") + text(path), USER)


def perf_file(attrs, records, features=(), data_size=None):
    """attrs: attributes with their IDs; features: number and bytes of each."""
    head, at = b"", 104
    ids = b"".join(struct.pack(f"<{len(i)}Q", *i) for a, i in attrs)
    for a, i in attrs:
        head += a + struct.pack("<QQ", at, 8 * len(i))
        at += 8 * len(i)
    data_at, data = at + len(head), b"".join(records)
    bits, list_at, sections, list_ = 0, data_at + len(data), b"", b""
    for number, content in sorted(features):
        bits |= 1 << number
        list_ += struct.pack("<QQ", list_at + 16 * len(features) + len(sections), len(content))
        sections += content
    return (b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 136 + 16, at, len(head), data_at,
                                      len(data) if data_size is None else data_size, 0, 0) + bits.to_bytes(32, "little") +
            ids + head + data + list_ + sections)


def perf_pipe(attrs, records, features=()):
    out = b"PERFILE2" + struct.pack("<Q", 16)
    for a, ids in attrs:
        out += record(64, a + struct.pack(f"<{len(ids)}Q", *ids))
    for number, content in features:
        out += record(80, struct.pack("<Q", number) + content)
    return out + b"".join(records)


def make():
    files = {}
    # A clock with stacks: a process that becomes another program, its thread, and a second process of the PID.
    e = Events(IP | TID | TIME | CALLCHAIN | PERIOD)
    clock = attr(1, 0, e.sample_type, freq=100)
    path, other = "/nowhere/a", "/nowhere/b"
    start = [
        e.comm(7, 7, "shell"), e.mmap(7, 0x1000, 0x1000, 0, "/nowhere/shell"),
        e.sample(7, 7, 100 * S, 0x1010, (CONTEXT_USER, 0x1010, 0x1801)),
        e.fork(8, 7, 8, 7, 101 * S),
        # Before its exec it has the mappings and the name of its parent.
        e.sample(8, 8, 101 * S + 1, 0x1020),
        e.comm(8, 8, "worker", 102 * S, exec=True), e.mmap(8, 0x1000, 0x2000, 0x4000, path, 102 * S, b"\xab" * 20),
        e.sample(8, 8, 103 * S, 0x1020),
        e.fork(8, 8, 9, 8, 104 * S), e.comm(8, 9, "helper", 104 * S),
        e.sample(8, 9, 105 * S, 0x1030, (CONTEXT_USER, 0x1030, 0x1041, 2**63 - 1)),
        # A library takes the place of a part of the program.
        e.mmap(8, 0x1800, 0x200, 0, other, 106 * S),
        e.sample(8, 8, 107 * S, 0x1810), e.sample(8, 8, 107 * S, 0x17f0), e.sample(8, 8, 107 * S, 0x1a10),
        e.fork(8, 7, 8, 7, 108 * S), e.sample(8, 8, 109 * S, 0x1020),
        # In the kernel, entered by an instruction of the program: no return address
        e.sample(7, 7, 110 * S, 0xffffffff81000010, (CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000021, CONTEXT_USER,
                                                   0x1050), KERNEL),
        e.ksymbol(0xffffffffc0000000, 0x100, "bpf_prog_0123_probe", 110 * S),
        e.sample(7, 7, 111 * S, 0xffffffffc0000020, (), KERNEL),
        e.sample(7, 7, 112 * S, 0xffffffff81000010, (), GUEST_KERNEL),
        e.lost(0, 3, 112 * S),
    ]
    features = [(2, build_id("/nowhere/shell", b"\xcd" * 20)), (3, perf_string("host7")), (4, perf_string("6.1.0")),
                (6, perf_string("x86_64")), (11, struct.pack("<I", 3) + perf_string("perf") + perf_string("record") + perf_string("-g")),
                (29, struct.pack("<IIQQ", 1, 1, 1700000000 * S, 100 * S))]
    files["tasks"] = perf_file([(clock, [1])], start, features)
    # Buffers of CPUs come one after the other: the same records in another order
    files["shuffled"] = perf_file([(clock, [1])], start[9:] + start[:9], features)
    files["pipe"] = perf_pipe([(clock, [1])], start, features)
    files["unfinished"] = perf_file([(clock, [1])], start, data_size=0) + b"\11\0\0"
    files["truncated"] = files["tasks"][:files["tasks"].index(record(17, b"")[:4] + b"\0\0", 500)]
    files["no-event"] = perf_file([], start)
    # Generated code, of this machine and of another
    pid = int(sys.argv[3])
    jit = [e.comm(pid, pid, "jit"), e.mmap(pid, 0x7000, 0x1000, 0, "//anon"), e.sample(pid, pid, S, 0x7010)]
    files["jit"] = perf_file([(clock, [1])], jit, [(3, perf_string(os.uname().nodename))])
    files["jit-elsewhere"] = perf_file([(clock, [1])], jit, [(3, perf_string("elsewhere"))])
    # Copies of stacks: cut, longer than the record, without the stack pointer, and of another kind of machine
    e = Events(IP | TID | TIME | REGISTERS | STACK)
    copy = struct.pack("<QQQ", 2, 0x7000, 0x1010) + struct.pack("<Q", 8) + bytes(8)
    maps = [e.comm(7, 7, "shell"), e.mmap(7, 0x1000, 0x1000, 0, "/nowhere/shell")]
    for name, registers, machine, copied in (
            ("copy-cut", 1 << 7 | 1 << 8, "x86_64", copy + struct.pack("<Q", 2**63)),
            ("copy-long", 1 << 7 | 1 << 8, "x86_64", struct.pack("<QQQ", 2, 0x7000, 0x1010) + struct.pack("<QQ", 2**62, 0)),
            ("copy-no-sp", 3 << 8, "x86_64", copy + struct.pack("<Q", 8)),
            ("copy-elsewhere", 3 << 8, "riscv64", copy + struct.pack("<Q", 8))):
        files[name] = perf_file([(attr(1, 0, e.sample_type, period=10**6, registers=registers), [1])], maps + [
            e.sample(7, 7, S, 0x1010, copied=copied), e.sample(7, 7, 2 * S, 0x1020, copied=copied)], [(6, perf_string(machine))])
    # A thread that had ended: the kernel has no numbers for it.
    files["ended"] = perf_file([(clock, [1])], [
        e.sample(2**32 - 1, 2**32 - 1, S, 0xffffffff81000010, (), KERNEL), e.comm(7, 7, "shell"),
        e.sample(7, 2**32 - 1, S + 1, 0xffffffff81000020, (), KERNEL)])
    # Several events: cycles lead. Its stacks have copies of memory, CPUs and control groups.
    e = Events(IP | TID | TIME | CALLCHAIN | CPU | PERIOD | STACK | CGROUP, ids=3)
    attrs = [(attr(0, 1, e.sample_type, freq=100), [1, 2]), (attr(0, 0, e.sample_type, freq=100), [3]),
             (attr(1, 9, e.sample_type, period=1), [4])]
    files["events"] = perf_file(attrs, [
        e.comm(5, 5, "web"), e.mmap(5, 0x1000, 0x1000, 0, path), e.cgroup(77, "/system.slice/web.service"),
        e.sample(5, 5, S, 0x1010, id=1), e.sample(5, 5, S, 0x1020, id=3, period=5000, cpu=1, cgroup=77),
        e.sample(5, 5, 2 * S, 0x1020, id=3, period=7000, cpu=0, cgroup=77), e.lost(1, 9), e.lost(3, 2),
        e.sample(5, 5, 2 * S, 0x1030, id=2)],
        [(12, struct.pack("<II", 2, 136) + attrs[0][0] + struct.pack("<I", 2) + perf_string("instructions:u") +
          struct.pack("<QQ", 1, 2) + attrs[1][0] + struct.pack("<I", 1) + perf_string("cycles:u") + struct.pack("<Q", 3))])
    e = Events(IP | TID | TIME, ids=70)
    attrs = [(attr(2, i, e.sample_type, period=1), [i + 1]) for i in range(70)]
    files["many-events"] = perf_pipe(attrs, [record(78, struct.pack("<QQ", 2, i + 1) + text("event-%d" % i)) for i in range(70)] +
                                     [e.sample(5, 5, S, 0x1010, id=i + 1) for i in range(70)])
    e = Events(IP | TID | TIME | RAW | BRANCH)
    files["tracepoint"] = perf_file([(attr(2, 99, e.sample_type, period=1), [1])], [e.sample(5, 5, S, 0x1010)])
    # Linux 6.1 marks records as those with build IDs for an event of another recording: they have devices. One asked.
    e = Events(IP | TID | TIME)
    maps = [e.mmap(5, 0x1000, 0x1000, 0, "/nowhere/nvme", marked=True, device=(259, 1)),
            e.mmap(5, 0x2000, 0x1000, 0, "/nowhere/sda", marked=True),
            e.mmap(5, 0x3000, 0x1000, 0, "/nowhere/tape", marked=True, device=(20, 2**20 - 1)),
            e.mmap(5, 0x4000, 0x1000, 0, "/nowhere/id", build_id=b"\1" + bytes(18) + b"\2")]
    samples = [e.sample(5, 5, S + i, 0x1010 + 0x1000 * i) for i in range(4)]
    for name, asks in ("marked", 0), ("asked", 1):
        files[name] = perf_file([(attr(1, 0, e.sample_type, period=10**6, build_id=asks), [1])], maps[3 * asks:] + samples)
    # A stack whose rest the kernel took later, and one that is longer than its record
    e = Events(IP | TID | TIME | CALLCHAIN)
    attrs = [(attr(1, 0, e.sample_type, period=10**6), [1])]
    files["deferred"] = perf_file(attrs, [e.comm(5, 5, "web"), e.sample(5, 5, S, 0xffffffff81000010, (
        CONTEXT_KERNEL, 0xffffffff81000010, 2**64 - 640, 12345), KERNEL)])
    bad = bytearray(e.sample(5, 5, S, 0x1010, (1, 2)))
    struct.pack_into("<Q", bad, 32, 2**61)
    files["bad-stack"] = perf_file(attrs, [e.sample(5, 5, S, 0x1010), bytes(bad), e.sample(5, 5, 2 * S, 0x1010)])
    files["short-record"] = perf_file(attrs, [e.sample(5, 5, S, 0x1010), struct.pack("<IHH", 9, 2, 4)])
    files["of-no-event"] = perf_file([(attr(1, 0, IP | TID | IDENTIFIER, 1), [1]), (attr(1, 1, IP | TID | IDENTIFIER, 1), [2])],
                                     [record(9, struct.pack("<QQII", 8, 0x1010, 5, 5), USER)])
    files["far-section"] = files["tasks"][:24] + struct.pack("<QQ", 2**62, 152) + files["tasks"][40:]
    files["bomb"] = perf_file(attrs, [record(81, b"not zstd")])
    many = [e.mmap(5, 0x1000000 - 0x10 * i, 0x8, 0, path, 1) for i in range(30000)]
    files["many-mappings"] = perf_file(attrs, many + [e.sample(5, 5, S, 0x100000)])
    return files


def other_order():
    """A recording of a machine of the other byte order, where the bits of the attributes' flags begin with the highest."""
    module = {"__name__": "other_order"}
    # The attributes are as long as perf 6.1 has them, which reads no longer ones.
    exec(re.sub(r'(f?")<', r"\1>", open(__file__).read()).replace("136", "128"), module)
    e = module["Events"](IP | TID | TIME)
    clock = bytearray(module["attr"](1, 0, e.sample_type, period=10**6))
    clock[40:48] = bytes(int(f"{byte:08b}"[::-1], 2) for byte in clock[47:39:-1])
    file = module["perf_file"]([(bytes(clock[:128]), [1])], [
        e.comm(5, 5, "web"), e.mmap(5, 0x1000, 0x1000, 0, "/nowhere/app"), e.sample(5, 5, S, 0x1010), e.sample(5, 5, 2 * S, 0x1010)])
    return b"2ELIFREP" + file[8:]


SCRIPT = """# ========
# captured on    : Tue Nov 14 22:13:30 2023
# hostname : host7
# cmdline : /usr/bin/perf record -g ./web server
# ========
#
web server 1 7/8 [001]   100.000000:  250000 cpu-clock:u:\x20
	    55d0 handle(int, char*)+0x10 (/usr/bin/a (deleted))
	    55d0 inner+0x10 (inlined)
	    6000 std::map<int, int>::find (int)+0x5 (/usr/bin/a (deleted))
	ffff [unknown] (/usr/bin/a (deleted))
	1234 [unknown] ([unknown])

web server 1 7/8 [001]   105.000000:  250000 cpu-clock:u:\x20
	ffffffff81000010 do_work+0x10 ([kernel.kallsyms])
	    55d0 handle(int, char*)+0x20 (/usr/bin/a (deleted))

no line of perf
web server 1 7/8 [001] 105.500000: PERF_RECORD_COMM: web:7/8
flat     9 [000]   110.000000:  250000 cpu-clock:u:      55d0 main+0x1 (/usr/bin/b)
flat     9 [000]   110.000000:       1 page-faults:      55d0 main+0x1 (/usr/bin/b)
"""

# Without times: other fields, stacks or an address; and lines that could be any
NO_TIMES = """app 2 100 cpu-clock:\x20
	    55d0 work (/usr/bin/a)
	    6000 main (/usr/bin/a)

app 2 100/101 [001]     250000 cpu-clock:u:\x20
	    55d0 work (/usr/bin/a)

app 2 102\x20
	    55d0 work (/usr/bin/a)

a note that ends with 5

             app   100 cpu-clock:      55d0 flat (/usr/bin/a)
"""

ENDED = """           :-1    -1/-1    [000]    10.010000:   10000000 cpu-clock:
	ffffffff810001 do_exit ([kernel.kallsyms])

               100/101   [000]    10.020000:   10000000 cpu-clock:
	400123 work (/tmp/app)

app            100/-1    [000]    10.030000:   10000000 cpu-clock:
	400123 work (/tmp/app)
"""


def script_stacks(file):
    """The stacks of perf script -F comm,time,ip,sym,dso as (name, image), leaf first."""
    for block in open(file).read().split("\n\n"):
        frames = []
        for line in block.split("\n"):
            m = re.match(r"(\s*\S.*?[0-9]: +)?\s*([0-9a-f]+) (.*) \((.*)\)$", line.replace(" (deleted)", ""))
            if m:
                frames.append((m[3], m[4].rsplit("/", 1)[-1]))
            if m and m[1]:  # without call chains: a line for each sample
                yield frames
                frames = []
        if frames or re.match(r"\s*\S.*[0-9]: *$", block):
            yield frames


@functools.cache
def kernel_names():
    """For each name of the kernel that is of one address, one name of that address."""
    addresses, names = collections.defaultdict(set), {}
    for line in open("/proc/kallsyms"):
        address, kind, name = line.split()[:3]
        addresses[name].add(address)
        names.setdefault(address, name)
    return {name: names[min(where)] for name, where in addresses.items() if len(where) == 1}


def compare(what, script, ours, image):
    """what: stacks: ours is a file of folded stacks, of user space; leaves: the JSON of report. image: the program; of
    others, symbol tables may have several names for a function."""
    counts = [collections.Counter(), collections.Counter()]

    def key(name, place):
        if place == image or name.startswith("bpf_prog_"):
            return name
        if place.startswith("[kernel") and "+0x" not in name and name[0] != "[":
            return kernel_names().get(name, name)
        return "other"  # files of other processes may be gone by now

    empty = 0  # perf script prints no pc if a sample has a stack without a frame
    stacks = list(script_stacks(script))
    # Folded stacks have no images: a name that others have, too, as ld.so has a _start, is nobody's.
    elsewhere = {name for frames in stacks for name, place in frames if place != image}
    for frames in stacks:
        empty += not frames
        if what == "leaves" and frames:
            counts[0][key(*frames[0])] += 1
        elif frames:
            counts[0][tuple("*" if f[0] in elsewhere else key(*f) for f in frames)] += 1
    if what == "leaves":
        for f in json.load(open(ours))["functions"]:
            counts[1][key(f["name"], f["image"].rsplit("/", 1)[-1])] += f["self"]
    else:
        known = {name for stack in counts[0] for name in stack}
        for line in open(ours):
            stack, count = line.rstrip("\n").rsplit(" ", 1)
            counts[1][tuple(f if f in known else "*" for f in stack.split(";")[::-1])] += int(count)
    total = sum(counts[0].values()), sum(counts[1].values())
    print("samples", total, "different", len(counts[0]), len(counts[1]))
    keys = [k for k in set(counts[0]) | set(counts[1]) if counts[0][k] != counts[1][k]]
    for k in sorted(keys, key=lambda k: -counts[0][k])[:20]:
        print("perf %d, profiltool %d: %s" % (counts[0][k], counts[1][k], k))
    return total[0] > 0 and all(counts[0][k] < counts[1][k] for k in keys) and total[1] - total[0] == empty


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for name, content in (make() | {"other-order": other_order()}).items():
            os.makedirs(sys.argv[2], exist_ok=True)
            open(f"{sys.argv[2]}/{name}.perf.data", "wb").write(content)
    elif sys.argv[1] == "script":
        print({"times": SCRIPT, "no-times": NO_TIMES, "ended": ENDED}[sys.argv[2]], end="")
    else:
        sys.exit(not compare(*sys.argv[2:6]))
