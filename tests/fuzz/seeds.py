# SPDX-License-Identifier: GPL-2.0-only
# seeds.py DIRECTORY: what the fuzzers of names and of profild's protocol begin with, as far as no
# compiler makes it: DIRECTORY/seeds.NAME/ for each fuzzer.
import os, struct, sys


def write(name, file, data):
    directory = os.path.join(sys.argv[1], "seeds." + name)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, file), "wb") as out:
        out.write(data)


write("perf_map", "map", b"10000 100 first\n0x10100 0x80 with blanks\n10200 200 _ZN3foo3barEv\n"
      b"10000 ffffffffffffffff over all\n\nno line\n10300 10 later\n10310 10 half writ")
write("kallsyms", "kallsyms", b"ffffffff81000000 T core\nffffffff81000080 t local\n"
      b"ffffffff81000100 d data\nffffffff81000200 t in_module\t[nf_tables]\n"
      b"ffffffff81000300 w weak\nffffffff81000380 t program\t[bpf]\n0000000000000000 a none\n")

# --- Code objects of Python and PHP: struct language_code of bpf/script/language.h ---


def string(version, text, kind, ascii):
    state = kind << 2 | 1 << 5 | ascii << 6
    head = struct.pack("<QQQqQ", 1, 0, len(text), -1, state) + b"\0" * (8 if version == 0x30b else 0)
    encoded = text.encode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind])
    return head + b"\0" * (0 if ascii else 16) + encoded + b"\0" * kind


for version in (0x30b, 0x30c, 0x30d, 0x30e):
    for text, kind in (("main", 1), ("f\xfcr", 1), ("\u8a08", 2), ("\U0001d51f", 4)):
        name, file = string(version, text, kind, text.isascii()), string(version, "/a.py", 1, True)
        # All kinds of entries: short, of one line, with columns, without, with a line alone, of none
        table = bytes.fromhex("800081" "10d81011e1" "0203f0" "02040506e8" "04f8ff")
        write("python", f"{version:x}.{kind}.{len(text)}", struct.pack(
            "<QQQQIIHHHHHHI", 1, 2, 3, 4, 5, 6, 1, version, len(name), len(file), len(table), 0, len(table)) +
            name.ljust(320, b"\0") + file.ljust(512, b"\0") + table)

# Of PHP, in the same records: the last string is the class.


def php_string(text):
    return struct.pack("<QQQ", 2 << 32 | 6, 0x8000000000000001, len(text)) + text + b"\0"


for kind, name, file, scope in ((0, b"f\xc3\xbcr", b"/a.php", b"A\0/a.php:1$0"), (0, b"{closure:A::f():1}", b"/a.php", b"A"),
                                (1, b"", b"/a.php", b""), (2, b"", b"b.php", b""), (3, b"", b"/a.php(1) : eval()'d code", b"")):
    name, file, scope = (php_string(text) if text else b"" for text in (name, file, scope))
    write("python", f"php.{kind}.{len(name)}", struct.pack(
        "<QQQQIIHHHHHHI", 1, 2, 3, 4, 5, 6, 2, 0x802, len(name), len(file), len(scope), kind, len(scope)) +
        name.ljust(320, b"\0") + file.ljust(512, b"\0") + scope)

# --- jitdump: jitdump-specification.txt of the kernel's tools/perf ---


def record(kind, body):
    return struct.pack("<IIQ", kind, 16 + len(body), 1) + body


def load(address, size, index, name):
    return record(0, struct.pack("<IIQQQQ", 1, 1, address, address, size, index) + name + b"\0code")


def move(old, new, size, index):
    return record(1, struct.pack("<IIQQQQQ", 1, 1, new, old, new, size, index))


def lines(address, rows):
    return record(2, struct.pack("<QQ", address, len(rows)) + b"".join(
        struct.pack("<QII", at, line, 0) + file + b"\0" for at, line, file in rows))


header = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 1, 0)
write("jitdump", "dump", header + load(0x10000, 256, 0, b"first") +
      lines(0x10100, [(0x10100, 7, b"a.js"), (0x10140, 8, b"\xff"), (0x10180, 9, b"b.js")]) +
      record(4, b"unwinding") + load(0x10100, 256, 1, b"with lines") +
      move(0x10000, 0x10200, 256, 0) + load(0x10300, 64, 2, b"last") + record(3, b""))

# --- profild: user/lib/protocol.h ---


def request(kind, frequency=0, excepted=0, cells=0, ranges=()):
    return struct.pack("<IIIIIIQ", 3, kind, frequency, excepted, len(ranges), 0, cells) + b"".join(
        struct.pack("<QQQIIII", *r) for r in ranges)


def messages(*all_of_them):
    return b"".join(struct.pack("<H", len(m)) + m for m in all_of_them)


one = [(0x401000, 0x401FFF, 0x401000, 0x10000, 0, 0, 0)]
two = one + [(0x500000, 0x5000FF, 0x4FFF00, 0x20000, 2048, 1, 0)]
START, STOP = 1, 2
write("requests", "one", messages(request(START, 100, 0, 2048, one), request(STOP)))
write("requests", "two", messages(request(START, 1000, 0, 4096, two),
                                  request(START, 1, 0, 2048, one), request(STOP)))
# One cell more than there are: refused, and by chance it takes long to find.
write("requests", "beyond", messages(request(START, 100, 0, 2048, [one[0][:4] + (1, 0, 0)])))
write("requests", "refused", messages(request(STOP), request(START, 99, 0, 2048, one),
                                      request(START, 0, 1, 9, one[::-1] * 3), b"short"))


def replies(*all_of_them):
    return b"".join(
        struct.pack("<HB", 256, fds) + struct.pack("<IiQ240s", 2, error, period, message)
        for error, message, fds, period in all_of_them)


plain = (0, b"", 0, 0)
counts = (0, b"", 1, 10000350)
write("replies", "counts", replies(plain, counts, plain, plain))
write("replies", "refused", replies((11, b"too many connections", 0, 0)))
write("replies", "error", replies(plain, (1, b"not \x1b[31mpermitted\n", 0, 0)))
# 2: another descriptor as well; 6: a map that is too small; 11: a file; 16: a pipe
write("replies", "descriptors", replies(plain, (0, b"", 2, 10000350)))
for name, fds in ("small", 6), ("file", 11), ("pipe", 16):
    write("replies", name, replies(plain, (0, b"", fds, 10000350)))
write("replies", "no period", replies(plain, (0, b"", 1, 0)))
write("replies", "others", replies(counts, counts))


def pushed(status, kind, body=b"", cut=False):
    return struct.pack("<HB", status, kind | cut << 7) + body


write("push", "empty", pushed(200, 0))
write("push", "partial", pushed(200, 1, b"\x0a\x0b\x08\x02\x12\x07no room"))
write("push", "refused", pushed(400, 1, b"\x08\x03\x12\x0bnot \x1b[31mit\n"))
write("push", "page", pushed(200, 2, b"<html>It works!</html>"))
write("push", "cut", pushed(503, 3, b'{"code":"unavailable","message":"\xe2\x80\xae"}' * 9, True))
write("push", "redirect", pushed(307, 4, b"https://example.com/"))


def asked(part, *lines):
    return bytes([part]) + "".join(line + "\r\n" for line in lines + ("",)).encode()


page = "/0123456789abcdef0123456789abcdef/"
write("page", "get", asked(255, "GET %s HTTP/1.1" % page, "Host: localhost:8080", "Accept: */*"))
write("page", "slow", asked(1, "GET %s HTTP/1.1" % page, "Host: 127.0.0.1:8080"))
write("page", "head", asked(255, "HEAD %s HTTP/1.0" % page, "Host: localhost", "Origin: http://localhost"))
write("page", "post", asked(255, "POST %s HTTP/1.1" % page, "Host: localhost"))
write("page", "other site", asked(9, "GET %s HTTP/1.1" % page, "Host: localhost", "Origin: http://example.com"))
write("page", "other host", asked(9, "GET %s HTTP/1.1" % page, "Host: example.com"))
write("page", "no token", asked(255, "GET / HTTP/1.1", "Host: localhost"))
write("page", "too long", asked(255, "GET %s HTTP/1.1" % page, "X: " + "x" * 9000))
