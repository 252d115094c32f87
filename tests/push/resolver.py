#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""resolver.py ADDRESS...: a DNS server on 127.0.0.1, for the tests of pushing. All names have the first IPv4
address, then the next one: each question for an address gets another answer, and the last one is repeated, as the
owner of a name would do to move a client elsewhere. Prints "ready"."""
import socket
import struct
import sys

addresses = sys.argv[1:]
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    query, client = listener.recvfrom(512)
    end = query.index(b"\0", 12) + 5
    answers = b""
    if query[end - 4 : end - 2] == b"\0\1":  # A
        address = addresses.pop(0) if len(addresses) > 1 else addresses[0]
        answers = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(address)
    header = query[:2] + struct.pack(">HHHHH", 0x8180, 1, bool(answers), 0, 0)
    listener.sendto(header + query[12:end] + answers, client)
