#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""on_cpu.py PID <TRACE
Prints for how many nanoseconds a process and all its descendants have been on a CPU, by a trace of their
sched_switch and sched_process_fork events (tests/cli/coverage.sh). That is less than their CPU time: when
another CPU wakes a thread, the kernel charges the time until it runs to it, too, but the ticks in this time
hit whoever still runs. Of a server that is woken often beside other load, that may be a tenth.
"""
import re, sys

# A thread's name is any 15 bytes, line feeds among them: an event is not a line.
WHEN = rb"\s(\d+)\.(\d{6}): "
SWITCH = re.compile(WHEN + rb"sched_switch: prev_comm=.{0,15} prev_pid=(\d+) prev_prio=\d+ prev_state=\S+"
	rb" ==> next_comm=.{0,15} next_pid=(\d+) next_prio=", re.DOTALL)
FORK = re.compile(WHEN + rb"sched_process_fork: comm=.{0,15} pid=(\d+) child_comm=.{0,15} child_pid=(\d+)\n",
	re.DOTALL)

def events(kind):
	"""When each event of this kind was, and the two processes that it names."""
	for event in kind.finditer(trace):
		seconds, us, first, second = map(int, event.groups())
		yield seconds * 10**9 + us * 1000, first, second

trace = sys.stdin.buffer.read()
written = re.search(rb"entries-in-buffer/entries-written: (\d+)/(\d+)", trace)
found = sum(1 for kind in (SWITCH, FORK) for _ in events(kind))
if not written or not int(written[1]) == int(written[2]) == found:
	sys.exit(f"the trace is not complete: {written and written[0].decode()}, {found} found")
family = {int(sys.argv[1])}
for _, parent, child in events(FORK):
	if parent in family:
		family.add(child)
since, total = {}, 0
for when, previous, following in events(SWITCH):
	total += when - since.pop(previous, when)
	if following in family:
		since[following] = when
print(total)
