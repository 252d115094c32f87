# SPDX-License-Identifier: GPL-2.0-only
"""web_serve.py PROFILTOOL PROFILE PAGE: does what browsers, other sites and strangers do to web --serve.

PAGE is what web has written of the PROFILE. Prints a line for each fact, "ok: NAME" or "not ok: NAME: WHY".
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys

profiltool, profile, page = sys.argv[1:]


def check(name, holds, why=""):
    print("ok: " + name if holds else "not ok: %s: %s" % (name, re.sub(r"\s+", " ", repr(why))[:400]), flush=True)


def start(*options, **environment):
    env = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
    return subprocess.Popen([profiltool, "web", "--serve", *options, profile], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**env, **environment})


def ask(port, request):
    """Sends these bytes; returns the answer's status and its body."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(request)
        answer = b""
        while piece := s.recv(1 << 16):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b" ")[1].decode(), body


def get(port, path, *headers, method="GET", host="127.0.0.1:%d"):
    lines = ["%s %s HTTP/1.1" % (method, path), *(["Host: " + host.replace("%d", str(port))] if host else []), *headers]
    return ask(port, ("\r\n".join(lines) + "\r\n\r\n").encode())


server = start(SSH_CONNECTION="192.0.2.1 5555 192.0.2.2 2222")
address = server.stdout.readline()
found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/)\n", address)
check("--serve prints an address with a token", found, address)
port, path = int(found[1]), found[2]
with open(page, "rb") as file:
    whole = file.read()

status, body = get(port, path)
check("the page is there, as it would be written", (status, body) == ("200", whole), (status, len(body), len(whole)))
check("and by the name localhost, and another port of ssh -L", get(port, path, host="localhost:8080")[0] == "200")
check("HEAD has no body", get(port, path, method="HEAD") == ("200", b""))
for name, asked in {
        "without the token": get(port, "/"),
        "with another token": get(port, "/" + "0" * 32 + "/"),
        "with a part of the token": get(port, path[:-2] + "/"),
        "with more than the token": get(port, path + "x"),
        "by a name that another site has made mean 127.0.0.1": get(port, path, host="rebound.example:%d"),
        "by such a name that begins as localhost": get(port, path, host="localhost.example"),
        "from another origin": get(port, path, "Origin: http://other.example"),
        "from another port's origin": get(port, path, "Origin: http://127.0.0.1:1"),
        "from a page without an origin": get(port, path, "Origin: null"),
        "that do not say to whom": get(port, path, host=None)}.items():
    check("requests %s are refused" % name, asked[0] == "403" and b"<html" not in asked[1], asked)
check("a form is refused", get(port, path, method="POST")[0] == "405")
for name, request, status in (
        ("what is no request", b"hello\r\n\r\n", "400"),
        ("another version", b"GET %s HTTP/2\r\n\r\n" % path.encode(), "400"),
        ("bytes of 0", b"GET \0 HTTP/1.1\r\n\r\n", "400"),
        ("two hosts", b"GET %s HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n" % path.encode(), "400"),
        ("a header in two lines", b"GET %s HTTP/1.1\r\nHost: localhost\r\n x\r\n\r\n" % path.encode(), "400"),
        ("a request that does not end", b"GET / HTTP/1.1\r\nX: ".ljust(8192, b"x"), "431")):
    got = ask(port, request)
    check(name + " is refused", got[0] == status, got)
idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
check("a hundred who say nothing keep no one away", get(port, path)[0] == "200")
for one in idle:
    one.close()

if shutil.which("chromium"):
    import tempfile
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "chromium"))
    from browser import Browser
    directory = tempfile.mkdtemp(dir=os.path.dirname(os.path.abspath(page)))
    browser = Browser(directory)
    try:
        browser.navigate(address.strip())
        while browser.eval("document.documentElement.dataset.ready") != "yes":
            pass
        check("a browser shows it", browser.eval("data.names.length") > 1 and not browser.complaints, browser.complaints)
    finally:
        browser.close()
        shutil.rmtree(directory, ignore_errors=True)

taken = start("--serve=%d" % port)
hint = taken.communicate()[1]
check("a port that is taken is an error", taken.returncode == 1 and "a port that is free" in hint, hint)
server.send_signal(signal.SIGINT)
hint = server.communicate()[1]
check("over ssh, it says how to get there", "ssh -N -L %d:127.0.0.1:%d -p 2222 " % (port, port) in hint and
      "@192.0.2.2\n" in hint, hint)
check("Ctrl-C ends it", server.returncode == 0, server.returncode)

server = start("--serve=%d" % port, "-o", page + ".too.html", SSH_CONNECTION="$(reboot) 1 `reboot` 22")
address = server.stdout.readline()
check("the port can be chosen, and has another token", address.startswith("http://127.0.0.1:%d/" % port) and
      path not in address, address)
server.send_signal(signal.SIGTERM)
hint = server.communicate()[1]
check("nothing is taken from an environment that is wrong", "ssh" not in hint and server.returncode == 0, hint)
with open(page + ".too.html", "rb") as file:
    check("-o writes it, too", file.read() == whole)
