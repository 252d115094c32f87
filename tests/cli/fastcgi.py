# SPDX-License-Identifier: GPL-2.0-only
"""
fastcgi.py SOCKET FILE [QUERY]: asks a FastCGI server for a page, as a web server would, and prints it. Fails if the
server reports an error.
"""
import socket
import struct
import sys

BEGIN, END, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7


def record(kind, content):
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


def pair(name, value):
    sizes = b"".join(struct.pack(">I", len(text) | 1 << 31) for text in (name, value))
    return sizes + name.encode() + value.encode()


path, file, query = sys.argv[1:3] + (sys.argv[3:] or [""])
fields = {"SCRIPT_FILENAME": file, "SCRIPT_NAME": "/page", "REQUEST_METHOD": "GET", "QUERY_STRING": query,
          "REQUEST_URI": f"/pages{file}?{query}",
          "SERVER_PROTOCOL": "HTTP/1.1", "GATEWAY_INTERFACE": "CGI/1.1"}
with socket.socket(socket.AF_UNIX) as s:
    s.connect(path)
    s.sendall(record(BEGIN, struct.pack(">HB5x", 1, 0)) +
              record(PARAMS, b"".join(pair(*field) for field in fields.items())) + record(PARAMS, b"") +
              record(STDIN, b""))
    stream, failed = s.makefile("rb"), False
    while header := stream.read(8):
        _, kind, _, size, padding = struct.unpack(">BBHHBx", header)
        content = stream.read(size + padding)[:size]
        if kind == END:
            failed |= struct.unpack(">IB3x", content) != (0, 0)
            break
        failed |= kind == STDERR or content.startswith(b"Status:")
        sys.stdout.buffer.write(content)
sys.exit(failed)
