# SPDX-License-Identifier: GPL-2.0-only
"""For self_service.sh: a client of profild --record that keeps to no rule.

self_service.py SOCKET STEP...

connect        connect and read profild's first message
idle=N         connect N times, with one user ID after the other of eight
size=N         the next request has N bytes
version=N, flags=N, frequency=N, count=N, waits=N, stacks=N, labels=N    fields of the next request
label=TEXT     one more label of it; may be repeated
pid=N          one more pidfd for it; may be repeated
ended          likewise, of a process that has ended
file, fds=N    likewise, but descriptors of a file
request        send it, and read the reply
stop           end the recording, and read the result
receive        read one more message
bytes=N        send so many bytes that are no request, nor a command that ends a recording
closed         undumpable from here on
hold           print "ready" and wait for a line
close          close the connection

Prints a line for each message of profild: ready, started, "result END" or its reason.
"""
import array
import ctypes
import os
import socket
import struct
import subprocess
import sys

REPLY = "=IIIiIIQ512s"
TYPES = {1: "ready", 2: "started", 3: "result"}
FROM_EXEC, INHERIT = 1, 2


def receive(client):
	data = client.recv(65536)
	if not data:
		return print("gone", flush=True)
	_, kind, _, error, end, _, size, message = struct.unpack(REPLY, data)
	text = TYPES.get(kind, "")
	if kind == 3:
		text += " %d" % end
		while size > 0:
			size -= len(client.recv(65536))
	elif not text:
		text = "%d %s" % (error, message.split(b"\0")[0].decode())
	return print(text, flush=True)


def main():
	idle = []
	client, fields, fds, size, labels = None, {}, array.array("i"), 32, []
	for step in sys.argv[2:]:
		name, _, value = step.partition("=")
		number = int(value) if value and name != "label" else 0
		if name == "connect":
			client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
			client.connect(sys.argv[1])
			receive(client)
		elif name == "idle":
			for i in range(number):
				os.seteuid(i % 8)
				idle.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
				idle[-1].connect(sys.argv[1])
				os.seteuid(0)
				receive(idle[-1])
		elif name == "pid":
			fds.append(os.pidfd_open(number))
		elif name == "ended":
			with subprocess.Popen(["sleep", "1000"]) as child:
				fds.append(os.pidfd_open(child.pid))
				child.kill()
		elif name in ("file", "fds"):
			for _ in range(number or 1):
				fds.append(os.open("/dev/null", os.O_RDONLY))
		elif name == "label":
			labels.append(value.encode().ljust(320, b"\0")[:320])
		elif name == "size":
			size = number
		elif name == "request":
			data = struct.pack("=8I", fields.get("version", 1), fields.get("flags", INHERIT), 1,
					   fields.get("stacks", 3), fields.get("frequency", 99),
					   fields.get("waits", 0), fields.get("count", len(fds)), fields.get("labels", len(labels)))
			data = (data + bytes(max(0, size - len(data))))[:size] + b"".join(labels)
			rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else []
			client.sendmsg([data], rights)
			receive(client)
			fields, fds, size, labels = {}, array.array("i"), 32, []
		elif name == "stop":
			client.send(b"S")
			receive(client)
		elif name == "receive":
			receive(client)
		elif name == "bytes":
			client.send(os.urandom(number).replace(b"S", b"s"))
			receive(client)
		elif name == "closed":
			ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
		elif name == "hold":
			print("ready", flush=True)
			sys.stdin.readline()
		elif name == "close":
			client.close()
		else:
			fields[name] = number


main()
