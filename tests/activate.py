# SPDX-License-Identifier: GPL-2.0-only
"""activate.py TYPE PATH COMMAND...: becomes the command with a socket passed on, as sd_listen_fds(3) says."""
import os
import socket
import sys

kind, path, command = sys.argv[1], sys.argv[2], sys.argv[3:]
s = socket.socket(socket.AF_UNIX, getattr(socket, kind))
s.bind(path)
os.chmod(path, 0o666)
if kind != "SOCK_DGRAM":
	s.listen()
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execvp(command[0], command)
