#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""protocol.py client SOCKET VERSION: counts its own ticks by profild, as programs do that were linked with the
libprofil.a of this version, and prints "counted" or the reason.

protocol.py server SOCKET OLDEST NEWEST: a profild that speaks these versions, and refuses each request with its version;
protocol.py old SOCKET OLDEST NEWEST: one before version 3, whose first message is 8 bytes shorter;
protocol.py record SOCKET OLDEST NEWEST: a profild --record that speaks these versions of its protocol.

The bytes of each version that was released are below, for ever: user/lib/protocol.h says how versions change. This file
uses nothing of the sources, so a change there that old programs do not survive is seen here.
"""
import array
import mmap
import os
import socket
import struct
import sys
import time

HELLO = "=IiIIQ240s"  # version (3 for ever), error, oldest, newest, 0, message
START, STOP = 1, 2
# What may come after the first two fields of requests and replies.
VERSIONS = {
    3: {
        "request": "=IIIIIIQ",  # version, type, frequency, except, ranges, 0, cells
        "range": "=QQQIIII",  # first, last, offset, scale, base, wide, 0
        "reply": "=IiQQ240s",  # version, error, period_ns, wait_ns, message
        "state": (0, 8, 16),  # where the map has the ticks that began and ended, and the number of ranges
        "cells": 4096,  # where the cells of a client with one range begin
    },
}


def receive(connection, form):
    size = struct.calcsize(form)
    data, control, flags, _ = connection.recvmsg(size, socket.CMSG_SPACE(4))
    assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) and len(data) in (0, size), (flags, len(data))
    if not data:
        sys.exit("hung up")
    fds = array.array("i")
    for _, _, rights in control:
        fds.frombytes(rights)
    fields = struct.unpack(form, data)
    if fields[1]:
        print(fields[0], os.strerror(fields[1]), fields[-1].split(b"\0")[0].decode(), flush=True)
    return fields, list(fds)


def executable():
    """The addresses of the interpreter's code."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            words = line.split()
            if words[1] == "r-xp" and "python" in words[-1]:
                return [int(word, 16) for word in words[0].split("-")]
    sys.exit("the interpreter has no code")


def client(path, version):
    how = VERSIONS.get(version, VERSIONS[max(VERSIONS)])
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    hello, _ = receive(connection, HELLO)
    assert hello[0] == 3, hello
    first, limit = executable()
    scale = 0x1000  # a cell for 32 bytes
    cells = (limit - first) * scale // (1 << 17) + 1
    connection.send(struct.pack(how["request"], version, START, 1000, 0, 1, 0, cells) +
                    struct.pack(how["range"], first, limit - 1, first, scale, 0, 0, 0))
    reply, fds = receive(connection, how["reply"])
    if reply[1]:
        return
    assert reply[0] == version and 9 * 10 ** 5 < reply[2] < 11 * 10 ** 5 and reply[3] <= 10 ** 8 and len(fds) == 1, (reply, fds)
    memory = mmap.mmap(fds[0], -(-(how["cells"] + 8 * cells) // 4096) * 4096)
    ticks = 0
    while not ticks:
        sum(range(100000))
        ticks = struct.unpack_from("=Q", memory, how["state"][0])[0]
    connection.send(struct.pack(how["request"], version, STOP, 0, 0, 0, 0, 0))
    reply, fds = receive(connection, how["reply"])
    assert reply[:2] == (version, 0) and not fds, (reply, fds)
    begun, ended = -1, 0
    while begun != ended:
        begun, ended = (struct.unpack_from("=Q", memory, at)[0] for at in how["state"][:2])
    counted = sum(struct.unpack_from("=%dQ" % cells, memory, how["cells"]))
    assert 0 < counted <= ended, (counted, ended)
    print("counted", flush=True)


def server(kind, path, oldest, newest):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen()
    while True:
        connection, _ = listener.accept()
        connection.send({
            "server": struct.pack(HELLO, 3, 0, oldest, newest, 0, b""),
            "old": struct.pack("=IiQ240s", newest, 0, 0, b""),
            "record": struct.pack("=IIII528x", 1, 1, oldest, newest),
        }[kind])
        data = connection.recv(1 << 16)
        if data:
            version = struct.unpack_from("=I", data)[0]
            message = b"asked in version %d" % version
            if kind == "record":
                connection.send(struct.pack("=IIIiIIQ512s", 1, 4, 0, 1, 0, 0, 0, message))
            else:
                connection.send(struct.pack("=IiQQ240s", version, 1, 0, 0, message))
        connection.close()


if sys.argv[1] == "client":
    client(sys.argv[2], int(sys.argv[3]))
else:
    server(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
