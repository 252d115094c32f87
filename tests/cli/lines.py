# SPDX-License-Identifier: GPL-2.0-only
# lines.py compare TOOL PROGRAM [ORIGINAL]: what the tool makes of every address in a program's
# .text, beside what llvm-addr2line (or that of binutils) says of the ORIGINAL, which is the program
# before its debug information was moved or packed.
# lines.py corrupt TOOL PROGRAM FILE COUNT: bytes of FILE's debug information are changed again and
# again; the tool must still name all functions by their symbols.
# lines.py patch FILE SECTION OFFSET SIZE VALUE: writes a number of SIZE bytes into a section.
# lines.py zstd FILE: compresses its debug information so, by libzstd, for not every objcopy can.
# lines.py profile PROGRAM FILE: a profile with a sample at each address, without names.
import ctypes, gzip, os, random, re, shutil, struct, subprocess, sys, tempfile

BASE = 0x7F0000000000


def run(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, **more).stdout


# {name: (address, offset, size)}
def sections(path):
    found = {}
    for line in run("readelf", "-SW", path).splitlines():
        word = line.replace("[ ", "[").split()
        if len(word) > 5 and word[0][0] == "[" and word[0] != "[Nr]":
            try:
                found[word[1]] = tuple(int(number, 16) for number in word[3:6])
            except ValueError:
                pass
    return found


# The executable segments: (offset, address, size)
def segments(path):
    found = []
    for line in run("readelf", "-lW", path).splitlines():
        word = line.split()
        if word and word[0] == "LOAD" and "E" in word[6:-1]:
            found.append((int(word[1], 16), int(word[2], 16), int(word[4], 16)))
    return found


def text_addresses(path, step=1):
    address, _, size = sections(path)[".text"]
    return range(address, address + size, step)


# In gperftools' format, which holds no names.
def write_profile(file, image, addresses):
    slots = [0, 3, 0, 10000, 0]
    for address in addresses:
        slots += [1, 1, BASE + address]
    slots += [0, 1, 0]
    with open(file, "wb") as out:
        out.write(struct.pack("<%dQ" % len(slots), *slots))
        for offset, address, size in segments(image):
            start = (BASE + address) & ~0xFFF
            limit = (BASE + address + size + 0xFFF) & ~0xFFF
            out.write(b"%x-%x r-xp %08x 00:00 1 %s\n"
                      % (start, limit, offset & ~0xFFF, image.encode()))


# The fields of a message: (number, value)
def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size


# {address: [(function, file, line), ...], innermost first} of a pprof file
def read_lines(file):
    strings, functions, locations, table = [], {}, [], {}
    with gzip.open(file) as packed:
        for number, value in fields(packed.read()):
            if number == 6:
                strings.append(value.decode(errors="replace"))
            elif number == 5:
                functions[dict(fields(value))[1]] = dict(fields(value))
            elif number == 4:
                locations.append(list(fields(value)))
    for location in locations:
        lines = table.setdefault(dict(location).get(3, 0) - BASE, [])
        for number, value in location:
            if number == 4:
                line = dict(fields(value))
                f = functions[line[1]]
                lines.append((strings[f.get(2, 0)], strings[f.get(4, 0)], line.get(2, 0)))
    return table


def names(tool, profile, inline=True):
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "named.pb.gz")
        command = [tool, "convert", *(["--inline"] if inline else []), profile, out]
        done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60)
        if done.returncode:
            sys.exit("exit status %d: %s" % (done.returncode, done.stderr.decode()))
        return read_lines(out), done.stderr.decode()


# The same from another tool; where it does not know the line, nothing.
def addr2line(image, addresses):
    tool = next(filter(shutil.which, ("llvm-addr2line", "llvm-addr2line-14", "addr2line")))
    out = run(tool, "-a", "-i", "-f", "-C", "-e", image,
              input="".join("0x%x\n" % address for address in addresses)).splitlines()
    table, at = {}, 0
    while at < len(out):
        if re.match("0x[0-9a-f]+:?$", out[at]):
            chain = table.setdefault(int(out[at].rstrip(":"), 16), [])
            at += 1
        else:
            place, _, line = out[at + 1].split(" (")[0].rpartition(":")
            chain.append((out[at], place, int(line) if line.isdigit() else 0))
            at += 2
    return {a: chain for a, chain in table.items() if any(line for _, _, line in chain)}


# "std::vector<int>::size() const" as "size": tools differ in what stands around a name, for what
# has no linkage name.
def plain(name):
    name = name.replace("operator()", "call").split(" [clone")[0]
    while True:
        shorter = re.sub(r"<[^<>]*>|\([^()]*\)", "", name)
        if shorter == name:
            break
        name = shorter
    return re.split("::|[ .]", name.replace(" const", "").strip())[-1] if name else ""


def is_same(ours, theirs, path):
    return (len(ours) == len(theirs) and
            all(a[2] == b[2] and path(a[1]) == path(b[1]) for a, b in zip(ours, theirs)) and
            all(plain(a[0]) == plain(b[0]) or b[0].startswith("_Z")
                for a, b in zip(ours, theirs)))


def compare(tool, program, original):
    addresses = text_addresses(original)
    with tempfile.NamedTemporaryFile() as profile:
        write_profile(profile.name, program, addresses)
        ours, said = names(tool, profile.name)
        symbols, _ = names(tool, profile.name, inline=False)
    theirs = addr2line(original, addresses)
    # What was compiled elsewhere has other directories.
    path = os.path.normpath if program == original else os.path.basename
    bad = [a for a in theirs if symbols[a] and not is_same(ours[a], theirs[a], path)]
    # Between functions, where no symbol is, lines alone have no row to stand in.
    compared = [a for a in theirs if symbols[a]]
    inlined = sum(len(ours[a]) > 1 for a in compared)
    outer = [a for a in ours if symbols[a] and ours[a][-1][0] != symbols[a][0][0]]
    for a in bad[:3] + outer[:3]:
        print(hex(a), "ours:", ours[a], "theirs:", theirs.get(a), "symbol:", symbols[a])
    print("%d addresses, %d compared, %d with inlined functions, %d differ, %d renamed; %s"
          % (len(addresses), len(compared), inlined, len(bad), len(outer), said))
    return len(compared) > 100 and inlined > 50 and not bad and not outer


# Most bytes of DWARF are small numbers: what hurts are large ones, and other small ones.
def damage(data, places, count):
    for _ in range(count):
        offset, size = random.choice(places)
        near = random.random() < 0.3
        at = offset + random.randrange(min(size, 64) if near else size)
        data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1 << random.randrange(8)))


def corrupt(tool, program, file, count):
    random.seed(count)
    with open(file, "rb") as f:
        original = f.read()
    places = [(offset, size) for name, (_, offset, size) in sections(file).items()
              if name.startswith(".debug_") and size]
    with tempfile.NamedTemporaryFile() as profile:
        write_profile(profile.name, program, text_addresses(program, 13))
        symbols, _ = names(tool, profile.name, inline=False)
        for i in range(count):
            data = bytearray(original)
            damage(data, places, random.choice((1, 4, 32, 256)))
            with open(file, "wb") as f:
                f.write(data)
            lines, _ = names(tool, profile.name)
            for a in symbols:
                if symbols[a] and lines[a][-1][0] != symbols[a][0][0]:
                    sys.exit("%d: %x was %s: %s" % (i, a, symbols[a], lines[a]))
    return True


def patch(file, section, at, size, value):
    offset = sections(file)[section][1] + int(at)
    with open(file, "r+b") as f:
        f.seek(offset)
        f.write(int(value).to_bytes(int(size), "little"))
    return True


# Of a 64-bit file. Compressed sections go behind its end.
def compress_zstd(file):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = ctypes.c_size_t
    zstd.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    zstd.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                   ctypes.c_size_t, ctypes.c_int]
    with open(file, "rb") as f:
        data = bytearray(f.read())
    headers, = struct.unpack_from("<Q", data, 40)
    names = sections(file)
    for i in range(struct.unpack_from("<H", data, 60)[0]):
        at = headers + 64 * i
        header = list(struct.unpack_from("<IIQQQQIIQQ", data, at))
        if not any(name.startswith(".debug_") and offset == header[4] and header[5]
                   for name, (_, offset, _) in names.items()) or header[1] == 8:
            continue
        plain = bytes(data[header[4]:header[4] + header[5]])
        packed = ctypes.create_string_buffer(zstd.ZSTD_compressBound(len(plain)))
        size = zstd.ZSTD_compress(packed, len(packed), plain, len(plain), 3)
        data += b"\0" * (-len(data) % 8)
        header[2] |= 0x800  # SHF_COMPRESSED
        header[4], header[5] = len(data), 24 + size
        struct.pack_into("<IIQQQQIIQQ", data, at, *header)
        data += struct.pack("<IIQQ", 2, 0, len(plain), header[8]) + packed.raw[:size]
    with open(file, "wb") as f:
        f.write(data)
    return True


if __name__ == "__main__":
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "compare":
        done = compare(arguments[0], arguments[1], arguments[-1])
    elif what == "corrupt":
        done = corrupt(*arguments[:3], int(arguments[3]))
    elif what == "zstd":
        done = compress_zstd(*arguments)
    elif what == "patch":
        done = patch(*arguments)
    else:
        done = write_profile(arguments[1], arguments[0], text_addresses(arguments[0])) is None
    sys.exit(not done)
