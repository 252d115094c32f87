#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Measures recorders beside users whose files and memory never answer (progs/stalls.c), for stall.sh.

stall.py DIRECTORY FORM CELL...

DIRECTORY has copies of profild, profiltool and stalls, and a program `victim` with the text PROFIL-STALL-00000 in its
build ID. A CELL is MODES:USERS:RECORDER. Half of the users are there before the recorder, half come later, and then a
victim: a program of root's that was never seen before, for which all of it is read while nothing else is answered. Prints
a table, and a row of TAP for each cell. What is asked for:

  on time   windows, tables or the time recorded, of those that were due
  ticks     the victim's, of its CPU time times the rate
  stacks    of the victim that reach its start, with a name for each frame, from a second after it began
  ended     seconds after SIGTERM
  left      processes of ours a minute after the users have ended, at most

FORM is `bars`, where these are 95 %, 95 to 105 %, 99 %, 2 s and none; or `certain`, where the recorder may be as late as
a busy machine makes it: something of each is there, and it ends.
"""
import bisect
import glob
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

from started import beginning, favour

FREQUENCY = 997
SECONDS = float(os.environ.get("PROFIL_STALL_SECONDS", 4))
FIRST_USER, OTHER_USER = 100050, 100099
MODES = ["read", "open", "getattr", "lookup", "tmp", "stack", "uffd"]
ROOTS = {"_start", "clone", "clone3", "__clone", "__clone3"}

directory, form = sys.argv[1:3]
PATIENCE = 120 if form == "certain" else 20  # seconds, for what never happens


def start(*command, user=0, favoured=False, **options):
	return subprocess.Popen(command, preexec_fn=beginning(user, favoured=favoured), stdin=subprocess.DEVNULL, **options)


def wait_until(condition, seconds):
	"""Whether it became true; how busy the machine is decides how soon."""
	end = time.monotonic() + seconds
	while not condition():
		if time.monotonic() > end:
			return False
		time.sleep(0.02)
	return True


def end(process, patience):
	"""Seconds until it ends after SIGTERM; None: not in that time."""
	begin = time.monotonic()
	process.terminate()
	try:
		process.wait(patience)
		return time.monotonic() - begin
	except subprocess.TimeoutExpired:
		process.kill()
		return None


class Victim:
	"""A new program, and its CPU time at each time."""
	number = 0

	def __init__(self, user):
		Victim.number += 1
		path = f"{directory}/victim{Victim.number}"
		with open(f"{directory}/victim", "rb") as f:
			program = f.read()
		with open(path, "wb") as f:
			f.write(program.replace(b"PROFIL-STALL-00000", b"PROFIL-STALL-%05d" % Victim.number))
		os.chmod(path, 0o755)
		self.comm, self.times, self.used = os.path.basename(path), [], []
		self.process = start(path, "1", "0", user=user, stdout=subprocess.DEVNULL)
		self.begin = time.time()
		self.stopped = False
		self.sampler = threading.Thread(target=self.sample, daemon=True)
		self.sampler.start()

	def sample(self):
		clock = ~self.process.pid << 3 | 2  # its CPU time: clock_getcpuclockid(3)
		while not self.stopped:
			self.times.append(time.time())
			self.used.append(time.clock_gettime(clock))
			time.sleep(0.02)

	def cpu(self, begin, end):
		"""CPU time between two times."""
		def at(when):
			i = min(max(bisect.bisect(self.times, when), 1), len(self.times) - 1)
			(t, u), (t1, u1) = ((self.times[k], self.used[k]) for k in (i - 1, i))
			return u + (u1 - u) * min(max((when - t) / (t1 - t), 0), 1)
		return at(end) - at(begin)

	def end(self):
		self.stopped = True
		self.sampler.join()
		self.process.kill()
		self.process.wait()
		os.unlink(f"{directory}/{self.comm}")


class Users:
	"""Each runs one program that stalls, of the modes in turn."""

	def __init__(self, modes):
		self.modes, self.processes, self.children = modes, [], []

	def begin(self, count):
		for _ in range(count):
			number = len(self.processes)
			place = f"{directory}/user{number}"
			os.makedirs(place, exist_ok=True)
			p = start(f"{directory}/stalls", self.modes[number % len(self.modes)], str(FIRST_USER + number), place,
				stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
			self.processes.append(p)
			line = p.stdout.readline()
			if not line.startswith("ready"):
				return p.wait(60)
			self.children.append(int(line.split()[1]))
		return 0

	def end(self):
		for p in self.processes:
			p.terminate()
		for p in self.processes:
			p.wait()


def ours():
	"""Processes that run our copies of the recorders."""
	found = set()
	for link in glob.glob("/proc/[0-9]*/exe"):
		try:
			if os.readlink(link) in (f"{directory}/profild", f"{directory}/profiltool"):
				found.add(link)
		except OSError:
			pass
	return found


def read(path):
	out = subprocess.run([f"{directory}/profiltool", "dump", "--json", path], capture_output=True).stdout
	return json.loads(out)


def of_files(victim, files, seconds):
	"""On time, ticks and stacks in files of a victim, which were due for so long."""
	covered = ticks = cpu = whole = judged = 0
	for file in files:
		begin, length = file["time_ns"] / 1e9, file["duration_ns"] / 1e9
		period = file["period_ns"] / 1e9
		first = max(begin, victim.begin)
		if begin + length <= first:
			continue
		covered += begin + length - first
		cpu += victim.cpu(first, begin + length)
		for stack in file["stacks"]:
			if stack.get("labels", {}).get("comm") != victim.comm:
				continue
			ticks += stack["count"] * period
			late = sum(begin + t / 1e9 >= victim.begin + 1 for t in stack.get("times_ns", []))
			judged += late
			names = [f[0] if f else "" for f in stack.get("functions", [])]
			if names and names[-1] in ROOTS and all(names) and not any("[" in n for n in names if n != "[kernel]"):
				whole += late
	return {"on_time": min(covered / seconds, 1), "ticks": ticks / cpu if cpu else 0,
		"stacks": whole / judged if judged else 0}


# --- Recorders: each begins, and returns what was recorded once it has ended ---

class Record:
	def __init__(self, *options):
		self.options = options

	def begin(self):
		self.path = f"{directory}/recorded.pb.gz"
		if os.path.exists(self.path):
			os.unlink(self.path)
		self.process = start(f"{directory}/profiltool", "record", "-q", "-a", "-g", "-F", str(FREQUENCY), *self.options,
			"-o", self.path, favoured=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

	def begun(self, users):
		return True

	def measure(self, victim):
		time.sleep(SECONDS)
		due = time.time() - victim.begin
		ended = end(self.process, PATIENCE)
		files = [read(self.path)] if ended is not None and os.path.exists(self.path) else []
		return dict(of_files(victim, files, due), ended=ended)


class Continuous:
	def begin(self):
		self.archive = f"{directory}/archive"
		subprocess.run(["rm", "-rf", self.archive])
		self.process = start(f"{directory}/profild", "--continuous", "--directory", self.archive, "--window", "1",
			"-F", str(FREQUENCY), "--watch=0", "--keep-free", "0", favoured=True,
			stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

	def windows(self):
		return sorted(p for p in glob.glob(f"{self.archive}/*/*/*.pb.gz") if not os.path.basename(p).startswith("."))

	def begun(self, users):
		return wait_until(self.windows, PATIENCE)

	def measure(self, victim):
		first = len(self.windows())
		time.sleep(SECONDS)
		if form == "certain":
			wait_until(lambda: len(self.windows()) >= first + 3, PATIENCE)
		else:
			time.sleep(2)  # a window may be under way, and one may be a second old before it is there
		due = time.time() - victim.begin - 2
		before = self.windows()
		ended = end(self.process, PATIENCE)
		found = of_files(victim, [read(p) for p in self.windows()], due)
		# The file of the end has the rest.
		found["on_time"] = of_files(victim, [read(p) for p in before], due)["on_time"]
		return dict(found, ended=ended)


class Top:
	def begin(self):
		self.process = start(f"{directory}/profiltool", "top", "-a", "-g", "-F", str(FREQUENCY), "--json", "--by", "comm",
			"-E", "0", "--delay", "1", "--half-life", "0", "--tables", "1000", favoured=True,
			stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
		self.tables = []
		threading.Thread(target=self.read, daemon=True).start()

	def read(self):
		for line in self.process.stdout:
			self.tables.append((time.time(), json.loads(line)))

	def begun(self, users):
		return wait_until(lambda: self.tables, PATIENCE)

	def measure(self, victim):
		first = len(self.tables)
		time.sleep(SECONDS)
		if form == "certain":
			wait_until(lambda: len(self.tables) >= first + 3, PATIENCE)
		due = time.time() - victim.begin
		ended = end(self.process, PATIENCE)
		tables = self.tables[max(first - 1, 0):]
		ticks = cpu = covered = 0
		for (begin, _), (at, table) in zip(tables, tables[1:]):
			if at - victim.begin < 0:
				continue
			covered += at - max(begin, victim.begin)
			cpu += victim.cpu(begin, at)
			share = sum(r["self_percent"] for r in table["rows"] if r["comm"] == victim.comm) / 100
			ticks += share * table["samples"] / FREQUENCY
		# A table of a second may be under way.
		return {"on_time": min(covered / max(due - 1, 1), 1), "ticks": ticks / cpu if cpu else 0, "stacks": None, "ended": ended}


class Served:
	"""profild --record: the users record what stalls, another one the victim."""
	user = OTHER_USER

	def begin(self):
		self.socket = f"{directory}/socket"
		if os.path.exists(self.socket):
			os.unlink(self.socket)
		self.process = start(f"{directory}/profild", "--record", "--socket", self.socket, "--max-all-recordings", "64",
			favoured=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		wait_until(lambda: os.path.exists(self.socket), PATIENCE)
		self.clients = []

	def record(self, user, target):
		path = f"{directory}/files/{user}.pb.gz"
		if os.path.exists(path):
			os.unlink(path)
		return start(f"{directory}/profiltool", "record", "-q", "--wall", "-g", "-F", str(FREQUENCY), "-p", str(target),
			"-o", path, user=user, favoured=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
			env={**os.environ, "PROFIL_RECORD_SOCKET": self.socket})

	def begun(self, users):
		self.clients = [self.record(FIRST_USER + i, child) for i, child in enumerate(users.children)]
		return True

	def measure(self, victim):
		path = f"{directory}/files/{OTHER_USER}.pb.gz"
		client = self.record(OTHER_USER, victim.process.pid)
		time.sleep(SECONDS + 3)  # to begin takes it some seconds
		ended = [end(client, PATIENCE)]
		files = [read(path)] if ended[0] is not None and os.path.exists(path) else []
		ended.append(end(self.process, PATIENCE))
		for client in self.clients:
			client.kill()
			client.wait()
		return dict(of_files(victim, files, SECONDS), ended=None if None in ended else max(ended))


RECORDERS = {"record": Record(), "wall": Record("--wall"), "top": Top(), "continuous": Continuous(), "self": Served()}


def run(modes, count, name):
	"""The figures of a cell; None if this machine cannot stall so."""
	recorder, users = RECORDERS[name], Users(MODES if modes == "all" else modes.split("+"))
	victim = None
	try:
		# profild is there before; what else is there at the start is looked at by all others.
		early = count // 2 if name in ("continuous", "self") else (count + 1) // 2
		if users.begin(early):
			return None
		recorder.begin()
		if name in ("continuous", "top") and not recorder.begun(users):
			pass  # its figures say so
		if users.begin(count - early):
			return None
		if name in ("record", "wall", "self"):
			recorder.begun(users)
			time.sleep(1)  # that it has begun
		victim = Victim(getattr(recorder, "user", 0))
		figures = recorder.measure(victim)
	finally:
		if victim:
			victim.end()
		while_stalled = len(ours())
		users.end()
	begin = time.monotonic()
	wait_until(lambda: not ours(), 60)
	left = ours()
	for link in left:
		os.kill(int(link.split("/")[2]), signal.SIGKILL)
	return dict(figures, left=len(left), while_stalled=while_stalled, after=time.monotonic() - begin)


def holds(f):
	if f["ended"] is None or f["left"]:
		return False
	if form == "certain":
		return f["on_time"] > 0 and 0.25 <= f["ticks"] <= 1.75 and f["stacks"] != 0
	return (f["on_time"] >= 0.95 and 0.95 <= f["ticks"] <= 1.05 and (f["stacks"] is None or f["stacks"] >= 0.99) and
		f["ended"] <= 2)


def percent(value):
	return "-" if value is None else f"{100 * value:.1f} %"


favour(os.SCHED_RESET_ON_FORK)
print(f"# {'modes':10}{'users':>6} {'recorder':12}{'on time':>9}{'ticks':>9}{'stacks':>9}{'ended':>8}{'left':>6}", flush=True)
for number, cell in enumerate(sys.argv[3:], 1):
	modes, count, name = cell.split(":")
	figures = run(modes, int(count), name)
	title = f"{name} beside {count} users: {modes}"
	if figures is None:
		print(f"ok {number} - {title} # SKIP this kernel lets nobody do that", flush=True)
		continue
	ended = "never" if figures["ended"] is None else f"{figures['ended']:.1f} s"
	left = str(figures["left"]) if figures["left"] else f"0 ({figures['while_stalled']})"
	print(f"# {modes:10}{count:>6} {name:12}{percent(figures['on_time']):>9}{percent(figures['ticks']):>9}"
		f"{percent(figures['stacks']):>9}{ended:>8}{left:>6}")
	print(f"{'ok' if holds(figures) else 'not ok'} {number} - {title}", flush=True)
print(f"1..{len(sys.argv) - 3}")
