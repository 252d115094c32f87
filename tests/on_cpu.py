#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""on_cpu.py PID <TRACE
Prints for how many nanoseconds a process and all its descendants have been on a CPU, by a trace of their
sched_switch and sched_process_fork events (tests/cli/coverage.sh). That is less than their CPU time: when
another CPU wakes a thread, the kernel charges the time until it runs to it, too, but the ticks in this time
hit whoever still runs. Of a server that is woken often beside other load, that may be a tenth.
"""
import re, sys

EVENT = re.compile(r"\s(\d+)\.(\d{6}): (sched_\w+): (.*)")
PIDS = re.compile(r"\b(?:child_|prev_|next_)?pid=(\d+)")

events = []
for line in sys.stdin:
	event = EVENT.search(line)
	if event:
		seconds, us, name, text = event.groups()
		first, second = map(int, PIDS.findall(text)[-2:])
		events.append((int(seconds) * 10**9 + int(us) * 1000, name, first, second))
	elif re.search(r"entries-written: (\d+)/(?!\1\b)", line) or "LOST" in line:
		sys.exit("the trace is not complete: " + line)
family = {int(sys.argv[1])}
for when, name, parent, child in events:
	if name == "sched_process_fork" and parent in family:
		family.add(child)
since, total = {}, 0
for when, name, previous, following in events:
	if name == "sched_switch":
		total += when - since.pop(previous, when)
		if following in family:
			since[following] = when
print(total)
