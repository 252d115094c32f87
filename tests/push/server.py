#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""server.py [OPTION=VALUE...] BEHAVIOUR...: an HTTP server for the tests of pushing, mostly a hostile one. Each
request gets the next behaviour; the last one is repeated. Prints "ready PORT", then a line for each request.

Options: address, port, directory (bodies and headers of requests: N.body, N.headers), certificate, key, and clients, the
authority of clients' certificates.

Behaviours:
  ok             200, empty
  partial:N:TEXT 200, an OTLP server that did not take N profiles
  html           200, a page for people
  STATUS[:TEXT]  that status; 503+9 also has Retry-After: 9
  failed:TEXT    400 with google.rpc.Status
  redirect:URL
  hang           reads the request and never answers
  deaf           accepts and never reads
  drip           a byte of a reply each 0.1 s
  endless        200 with a body that never ends
  headers        200 with headers that never end
  garbage        not HTTP
  close          closes the connection"""
import os
import random
import socket
import ssl
import sys
import threading
import time

options = {"address": "127.0.0.1", "port": "0", "directory": "", "certificate": "", "key": "", "clients": ""}
behaviours = []
for word in sys.argv[1:]:
    name, equals, value = word.partition("=")
    if equals and name in options:
        options[name] = value
    else:
        behaviours.append(word)

lock = threading.Lock()
requests = 0


def field(number, content):
    """A field of a message: of bytes or a number below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def reply(status, body=b"", content_type="text/plain", *headers):
    head = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}", f"Content-Type: {content_type}"]
    return "\r\n".join([*head, *headers, "", ""]).encode() + body


def forever(connection, head, part, pause=0.0):
    connection.sendall(head)
    while True:
        connection.sendall(part)
        time.sleep(pause)


def answer(connection, behaviour):
    name, _, text = behaviour.partition(":")
    status, _, retry_after = name.partition("+")
    if name == "ok":
        connection.sendall(reply(200, b"", "application/x-protobuf"))
    elif name == "partial":
        count, _, text = text.partition(":")
        partial = field(1, field(1, int(count)) + field(2, text.encode()))
        connection.sendall(reply(200, partial, "application/x-protobuf"))
    elif name == "html":
        connection.sendall(reply(200, b"<html>It works!</html>", "text/html"))
    elif name == "failed":
        message = field(1, 3) + field(2, text.encode().decode("unicode_escape").encode("latin-1"))
        connection.sendall(reply(400, message, "application/x-protobuf"))
    elif name == "redirect":
        connection.sendall(reply(307, b"", "text/plain", "Location: " + text))
    elif name == "hang":
        time.sleep(1000)
    elif name == "drip":
        forever(connection, b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.1)
    elif name == "endless":
        forever(connection, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"x" * 10000)
    elif name == "headers":
        forever(connection, b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 10000 + b"\r\n")
    elif name == "garbage":
        connection.sendall(random.Random(1).randbytes(100000))
    elif name != "close":
        extra = ["Retry-After: " + retry_after] if retry_after else []
        connection.sendall(reply(int(status), text.encode(), "text/plain", *extra))
    return name in ("ok", "partial")


def read_request(stream):
    """The headers and the body, or None at the end."""
    headers = []
    while True:
        line = stream.readline()
        if not line:
            return None
        if line == b"\r\n":
            break
        headers.append(line.decode().rstrip())
    size = next((int(h.split(":")[1]) for h in headers if h.lower().startswith("content-length:")), 0)
    return headers, stream.read(size)


def next_behaviour(headers, body):
    global requests
    with lock:
        requests += 1
        number = requests
        behaviour = behaviours[min(number, len(behaviours)) - 1]
        if options["directory"]:
            with open(os.path.join(options["directory"], f"{number}.body"), "wb") as out:
                out.write(body)
            with open(os.path.join(options["directory"], f"{number}.headers"), "w") as out:
                out.write("\n".join(headers) + "\n")
        print(f"request {number} {len(body)} {behaviour}", flush=True)
    return behaviour


def serve(connection, context):
    try:
        if behaviours[0] == "deaf":
            time.sleep(1000)
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        with connection, connection.makefile("rb") as stream:
            while request := read_request(stream):
                if not answer(connection, next_behaviour(*request)):
                    break
    except OSError as e:
        print("lost:", e, flush=True)


def main():
    context = None
    if options["certificate"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options["certificate"], options["key"])
        if options["clients"]:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(options["clients"])
    family = socket.AF_INET6 if ":" in options["address"] else socket.AF_INET
    listener = socket.create_server((options["address"], int(options["port"])), family=family)
    print(f"ready {listener.getsockname()[1]}", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, context), daemon=True).start()


main()
