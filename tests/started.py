# SPDX-License-Identifier: GPL-2.0-only
"""How month.py and stall.py start what they measure, and what runs beside it."""
import ctypes
import os
import signal

libc = ctypes.CDLL(None)


def favour(flags):
	"""Recorders, and this: what they wait for is measured, not how busy the machine is. Nice values do not do it: they
	count among the processes of a session alone (autogroup of sched(7))."""
	try:
		os.sched_setscheduler(0, os.SCHED_RR | flags, os.sched_param(1))
	except PermissionError:
		pass


def beginning(user=0, cgroup=None, favoured=False):
	"""For preexec_fn of Popen: the user it is to be, and where it is to run; it ends with this process."""
	def begin():
		if favoured:
			favour(0)
		if cgroup:
			with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as f:
				f.write("0")
		if user:
			os.setgroups([])
			os.setresgid(user, user, user)
			os.setresuid(user, user, user)
		libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
	return begin
