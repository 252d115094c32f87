#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A month of profild --continuous, compressed: for month.sh.

month.py DIRECTORY MINUTES FORM

DIRECTORY has copies of the programs, and `service`, with the text PROFIL-MONTH-00000 in its build ID. Beside the recorder
are, for so many minutes: services of root's, of which one is deployed anew all the time, a pool of Python workers that
reuse process numbers, a program whose perf map and a container whose name come late; builds, each by a compiler with
another build ID; from the second to the ninth tenth users that fill each table and stall each path, of which some keep
what they took until the end; a SIGHUP in each tenth, one restart, and a clock that is set forward and back; and then a
tenth more, without users. What is measured is printed for each tenth of the time, and compared:

  whole, named   of the ticks of each service in user mode, those whose stack reaches the start, or has the right names
  states         of their time, for how much it is known whether they ran, waited for a CPU or slept
  windows        of those that were due
  MiB, CPU       of all processes of profild together; MiB in the second half of a tenth, when what is kept for some
                 windows is there
  users          MiB that are kept of users' programs, as --status has it

FORM is `bars`: the last tenth is no worse than the first by more than a point, or a tenth of memory and CPU. Memory does
not grow while users fill it, either: from the first tenth in which they do so to the last one by a tenth at most, and
what is kept of users' programs not when they do so a second time; and it is back when all of them have ended. Or
`certain`, which asks for nothing that depends on how busy the machine is: in the last tenth each service has a window in
which all of it is whole and named.
"""
import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from started import beginning, favour

directory, minutes, form = sys.argv[1], float(sys.argv[2]), sys.argv[3]
TENTH = minutes * 6
TENTHS = 10 if form == "certain" else 11  # with a quiet one
ROUNDS = 1 if minutes < 10 else 2  # in which users fill
WINDOW = min(max(round(TENTH / 18), 1), 20)
DEPLOYS, BUILDS = max(round(minutes * 500 / 60), 20), max(round(minutes * 1000 / 60), 40)
FIRST_USER = 100050
CONTAINER = "c0ffee%058d" % os.getpid()
NAME = "the-web-shop"
ROOTS = {"_start", "clone", "clone3", "__clone", "__clone3", "<module>"}
BURNERS = {"burn_sixty", "burn_thirty", "burn_ten", "burn_cpu"}
# The victims' names, and what is right for one of their stacks.
VICTIMS = {"steady": BURNERS, "shop": BURNERS, "boxed": BURNERS, "poolworker": {"leaf_work", "handle_request"},
	"late_map": {"early_code", "late_code"}}
NO_STACK = {"late_map"}  # what the stack's end is there, is not asked

archive, log = f"{directory}/archive", open(f"{directory}/profild.log", "ab")
ended = threading.Event()
started = []
# Whoever forks while another thread writes a program has it open for a moment, and it cannot be run.
forks = threading.Lock()


class Work(threading.Thread):
	"""A thread that stays when its work is done: processes end with the thread that has started them."""
	all_done = threading.Event()

	def __init__(self, work):
		super().__init__(daemon=True)
		self.work, self.done = work, threading.Event()
		self.start()

	def run(self):
		try:
			self.work()
		finally:
			self.done.set()
			self.all_done.wait()


def start(*command, user=0, cgroup=None, favoured=False, **options):
	options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
	with forks:
		process = subprocess.Popen(list(map(str, command)), preexec_fn=beginning(user, cgroup, favoured),
			stdin=subprocess.DEVNULL, cwd="/", **options)
	started.append(process)
	return process


def stop(process, patience):
	"""Whether it ended in time after SIGTERM. One that waits for a file system may not end by SIGKILL, either."""
	process.terminate()
	try:
		process.wait(patience)
		return True
	except subprocess.TimeoutExpired:
		process.kill()
		return False


def build(source, text, path, number):
	"""A copy of a program with another build ID."""
	with open(source, "rb") as f:
		program = f.read()
	with forks:
		with open(path + ".new", "wb") as f:
			f.write(program.replace(text, text[:-5] + b"%05d" % number))
		os.chmod(path + ".new", 0o755)
	os.rename(path + ".new", path)
	return path


# --- The recorder ---

class Recorder:
	def __init__(self):
		self.cpu_before, self.cpu_now, self.process, self.restarted = 0, 0, None, 0
		self.users_mib, self.next_status = 0, 0
		self.offset = f"{directory}/clock"  # seconds by which its clock is wrong
		self.set_clock(0)

	def set_clock(self, seconds):
		with open(self.offset + ".new", "w", encoding="ascii") as f:
			f.write("%d" % seconds)
		os.rename(self.offset + ".new", self.offset)

	def begin(self):
		# In a mount namespace with a /var/lib of its own: there containers get their names.
		self.process = start("unshare", "-m", "--propagation", "private", "sh", "-c",
			f"mount -t tmpfs none /var/lib && LD_PRELOAD={directory}/wrong_clock.so PROFIL_TEST_CLOCK={self.offset} exec "
			f"{directory}/profild --continuous --verbose --directory {archive} --window {WINDOW} --watch=0 --keep-free 0",
			stdout=log, stderr=log, favoured=True)

	def name_container(self):
		place = f"/var/lib/docker/containers/{CONTAINER}"
		config = json.dumps({"Name": "/" + NAME, "Config": {"Labels": {}}})
		return subprocess.run(["nsenter", "-t", str(self.process.pid), "-m", "sh", "-c",
			f"mkdir -p {place}; echo '{config}' >{place}/config.v2.json"], check=False).returncode == 0

	def restart(self):
		began = time.monotonic()
		if not stop(self.process, 20):
			print("# it did not end within 20 s of SIGTERM", flush=True)
		self.restarted = time.monotonic() - began
		self.begin()
		self.cpu_before, self.cpu_now = self.cpu_before + self.cpu_now, 0

	def measure(self):
		"""CPU time so far in seconds, and MiB now, of all its processes; and MiB that are kept of users' programs."""
		cpu = kib = 0
		for link in glob.glob("/proc/[0-9]*/exe"):
			place = os.path.dirname(link)
			try:
				if os.readlink(link) != f"{directory}/profild":
					continue
				with open(f"{place}/stat", encoding="ascii", errors="replace") as f:
					fields = f.read().rpartition(")")[2].split()
				cpu += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
				with open(f"{place}/smaps_rollup", encoding="ascii") as f:
					kib += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
			except (OSError, StopIteration):
				continue  # it has ended
		self.cpu_now = max(self.cpu_now, cpu)
		if time.monotonic() >= self.next_status:
			self.next_status = time.monotonic() + WINDOW
			status = subprocess.run([f"{directory}/profild", "--status", "--json", "--directory", archive],
				capture_output=True, check=False).stdout
			self.users_mib = json.loads(status)["users_bytes"] / 2**20 if status else 0
		return self.cpu_before + self.cpu_now, kib / 1024, self.users_mib


# --- Work ---

def shop():
	"""A service that is deployed again and again."""
	old = None
	for number in range(1, DEPLOYS + 1):
		new = start(build(f"{directory}/service", b"PROFIL-MONTH-00000", f"{directory}/shop", number), 1, 0, "lazier")
		if old:
			old.kill()
			old.wait()
		old = new
		if ended.wait(minutes * 60 / DEPLOYS):
			return


def builds():
	"""A compiler that no other is like, for each file."""
	compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False).stdout.strip()
	if form == "certain" or not os.path.exists(compiler):
		compiler = f"{directory}/profild"
	with open(compiler, "rb") as f:
		program = f.read()
	note = program.find(b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0")
	if note < 0:
		return
	text = program[note + 16 : note + 36]
	del program
	source = f"{directory}/source.c"
	with open(source, "w", encoding="ascii") as f:
		f.write("int main(void) { return 0; }\n")
	for number in range(BUILDS):
		path = build(compiler, text, f"{directory}/cc{number % 8}", number)
		start(path, *(["-quiet", source, "-o", "/dev/null"] if compiler.endswith("cc1") else ["--help"])).wait()
		os.unlink(path)
		if ended.wait(minutes * 60 / BUILDS):
			return


def fillers():
	"""What users do in turn; (keeps, command): what keeps what it took stays."""
	python = shutil.which("python3", path="/usr/bin:/bin")
	bare = f"{directory}/bare"
	return [
		(True, [python, f"{directory}/many_codes.py", "30000", TENTH / 5]),
		(False, [f"{directory}/late_map", "20"]),
		(False, ["sh", "-c", f"while :; do {bare} 1 0.02; done"]),  # without a build ID
		(False, [f"{directory}/brief", "storm"]),
		(False, [f"{directory}/churn", "4", "2"]),
		(False, [f"{directory}/renames"]),
		(False, [f"{directory}/spread", "1000000"]),
		(False, [f"{directory}/crowded", f"{directory}/libservice.so"]),
		(True, [f"{directory}/mapper", f"{directory}/open/mapped", "3000"]),
	] + [(True, [f"{directory}/stalls", mode]) for mode in ("read", "open", "getattr", "lookup", "tmp", "stack", "uffd")]


keepers = []


def end_keepers():
	for process in keepers:
		stop(process, 20)


def users():
	"""From the second to the ninth tenth; all at once where there is little time."""
	if ended.wait(TENTH):
		return
	running, user = [], FIRST_USER
	todo = fillers()
	slices = len(todo) * ROUNDS
	for number in range(slices):
		keeps, command = todo[number % len(todo)]
		user += 1
		if command[0].endswith("/stalls"):
			place = f"{directory}/open/{user}"
			os.makedirs(place)
			process = start(*command, user, place)
		else:
			process = start(*command, user=user, start_new_session=True)
		(keepers if keeps else running).append(process)
		if ended.wait(8 * TENTH / slices):
			return
		if not keeps:
			running.remove(process)
			try:
				os.killpg(process.pid, signal.SIGKILL)
			except ProcessLookupError:
				pass
			process.wait()


# --- What was recorded ---

windows = {}  # path: when it was written, by a clock that is right


def keep_windows():
	"""Keeps what was written: the archive merges it and removes it."""
	for path in glob.glob(f"{archive}/*/*/[0-9]*.pb.gz"):
		try:
			stat = os.stat(path)
			kept = f"{directory}/windows/{stat.st_ino}-{stat.st_mtime_ns}"
			if kept not in windows and time.time() < stat.st_mtime + 5 * WINDOW:
				os.link(path, kept)
				windows[kept] = stat.st_mtime
		except OSError:
			continue


def read_windows(first, last):
	"""The windows that were written between two times."""
	for path, at in sorted(windows.items(), key=lambda item: item[1]):
		if first <= at < last:
			out = subprocess.run([f"{directory}/profiltool", "dump", "--json", path], capture_output=True, check=False)
			yield json.loads(out.stdout)


class Counts:
	def __init__(self):
		self.ticks = self.whole = self.named = self.in_container = 0

	def add(self, other):
		for key, value in vars(other).items():
			setattr(self, key, getattr(self, key) + value)


def count(window):
	"""Of each victim in a window; and (known, all) of their time."""
	counts, known, wall = collections.defaultdict(Counts), 0, 0
	for stack in window["stacks"]:
		labels = stack.get("labels", {})
		comm = labels.get("comm")
		if comm not in VICTIMS or labels.get("kernel"):
			continue
		names = [f[0] if f else "" for f in stack.get("functions", [])]
		c, n = counts[comm], stack["count"]
		c.ticks += n
		c.whole += n * (comm in NO_STACK or bool(names) and names[-1] in ROOTS)
		c.named += n * bool(VICTIMS[comm].intersection(names))
		c.in_container += n * (labels.get("tags", {}).get("container_name") == NAME)
	for row in window.get("walls", []):
		if row.get("labels", {}).get("comm") in VICTIMS:
			known += row["wall_ns"] - row["unknown_ns"]
			wall += row["wall_ns"]
	return counts, known, wall


def mean(values):
	values = list(values)
	return sum(values) / max(len(values), 1)


def share(part, of):
	return 100 * part / of if of else None


def text(value, form=".1f"):
	return "-" if value is None else format(value, form)


rows = 0
failed = False


def row(passed, name, why=""):
	global rows, failed
	rows += 1
	failed = failed or not passed
	print(f"{'ok' if passed else 'not ok'} {rows} - {name}", flush=True)
	if not passed and why:
		print(f"# {why}", flush=True)


def main():
	favour(os.SCHED_RESET_ON_FORK)
	recorder = Recorder()
	recorder.begin()
	end_of_first = time.monotonic() + 120
	while not glob.glob(f"{archive}/*/*/*.pb.gz"):
		if time.monotonic() > end_of_first:
			row(False, "profild records")
			return
		time.sleep(0.05)

	unified = "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
	cgroup = f"{unified}/docker-{CONTAINER}.scope"
	try:
		os.mkdir(cgroup)
	except OSError:
		cgroup = None
	start(f"{directory}/steady", 1, 0, "lazier")
	start(f"{directory}/boxed", 1, 0, "lazier", cgroup=cgroup)
	start(shutil.which("python3"), f"{directory}/pool.py", min(max(TENTH / 4, 1), 30))
	late = start(f"{directory}/late_map")
	work = [Work(shop), Work(builds), Work(users)]

	begin = time.time()
	samples = []  # time, CPU, memory, and that of users
	done = set()

	def once(at, what):
		"""What happens at a tenth."""
		if time.time() >= begin + at * TENTH and (at, what) not in done:
			done.add((at, what))
			return True
		return False

	while time.time() < begin + TENTHS * TENTH:
		samples.append((time.time(), *recorder.measure()))
		keep_windows()
		if once(2, "restart"):
			work.append(Work(recorder.restart))
		if once(3, "names"):
			late.send_signal(signal.SIGUSR1)
			recorder.name_container()
		for tenth in range(10):
			if tenth != 2 and once(tenth + 0.5, "again"):
				recorder.process.send_signal(signal.SIGHUP)
		if once(4, "forward"):
			recorder.set_clock(3600)
		if once(6, "back"):
			recorder.set_clock(0)
		if once(10, "quiet"):
			work.append(Work(end_keepers))
		time.sleep(0.2)
	if form == "certain":  # however late it is, it is not a tenth late
		time.sleep(2 * WINDOW)
		keep_windows()
	ended.set()
	for thread in work:
		thread.done.wait(120)
	died = recorder.process.poll() is not None
	recorder_seconds = time.monotonic()
	in_time = stop(recorder.process, 120)
	recorder_seconds = time.monotonic() - recorder_seconds
	for process in started:
		if process.poll() is None:
			process.terminate() if "stalls" in process.args[0] else process.kill()
	for process in started:
		process.wait()
	if cgroup:
		os.rmdir(cgroup)

	names = list(VICTIMS)
	print(f"# {DEPLOYS} deploys, {BUILDS} builds in {minutes:g} minutes; windows of {WINDOW} s")
	print("# tenth | whole % " + " ".join(f"{n:>10}" for n in names) + " | named % " + " ".join(f"{n:>10}" for n in names) +
		" | states % windows %    MiB  users  CPU %")
	table, all_right = [], collections.defaultdict(bool)
	for tenth in range(TENTHS):
		first, last = begin + tenth * TENTH, begin + (tenth + 1) * TENTH
		if tenth == 9 and form == "certain":
			last += 1000
		total, known, wall, written = collections.defaultdict(Counts), 0, 0, 0
		for window in read_windows(first, last):
			counts, k, w = count(window)
			known, wall, written = known + k, wall + w, written + 1
			for name, c in counts.items():
				total[name].add(c)
				if tenth == 9 and c.ticks == c.whole == c.named:
					all_right[name] = True
				if tenth == 9 and c.ticks == c.in_container:
					all_right["container"] = True
		now = [s for s in samples if first <= s[0] < last]
		later = now[len(now) // 2 :]
		r = {"states": share(known, wall), "windows": 100 * written * WINDOW / TENTH,
			"MiB": mean(s[2] for s in later), "users": mean(s[3] for s in later),
			"CPU": share(now[-1][1] - now[0][1], now[-1][0] - now[0][0]) if len(now) > 1 else 0}
		for name in names:
			c = total[name]
			r["whole " + name], r["named " + name] = share(c.whole, c.ticks), share(c.named, c.ticks)
			r["container " + name] = share(c.in_container, c.ticks)
		table.append(r)
		print(f"# {tenth + 1:5} |         " + " ".join(f"{text(r['whole ' + n]):>10}" for n in names) + " |         " +
			" ".join(f"{text(r['named ' + n]):>10}" for n in names) +
			f" | {text(r['states'], '.2f'):>8} {r['windows']:9.1f} {r['MiB']:6.1f} {r['users']:6.1f} {r['CPU']:6.2f}", flush=True)

	first, last = table[0], table[9]
	row(not died, "profild records until the end")
	row(in_time, f"profild ends after SIGTERM: in {text(recorder_seconds)} s")
	if form == "certain":
		for name in names:
			row(all_right[name], f"{name}: a window of the last tenth has all of it, whole and named")
		if cgroup:
			row(all_right["container"], "a window of the last tenth has the name of a container that was named late")
	else:
		for key in [f"{what} {n}" for what in ("whole", "named") for n in names if n not in NO_STACK or what == "named"] + \
				["states", "windows"]:
			# What got its name late has more of it.
			row(first[key] is not None and last[key] is not None and last[key] >= first[key] - 1,
				f"{key}: {text(first[key])} -> {text(last[key])} %")
		for key in "MiB", "CPU":
			row(last[key] <= 1.1 * first[key], f"{key}: {text(first[key], '.2f')} -> {text(last[key], '.2f')}")
		most = [max(s[3] for s in samples if begin + (1 + 4 * i) * TENTH <= s[0] < begin + (5 + 4 * i) * TENTH)
			for i in range(ROUNDS)]
		row(most[-1] <= 1.1 * most[0], f"MiB at most that are kept of users' programs: {text(most[0])}, again {text(most[-1])}")
		row(table[8]["MiB"] <= 1.1 * table[1]["MiB"],
			f"MiB while users fill it: {text(table[1]['MiB'])} -> {text(table[8]['MiB'])}")
		row(table[10]["MiB"] <= 1.1 * first["MiB"],
			f"MiB when users have ended: {text(first['MiB'])} -> {text(table[10]['MiB'])}")
		row(table[10]["users"] < 1, f"MiB that are kept of users' programs then: {text(table[10]['users'], '.2f')}")
		row((last["named late_map"] or 0) >= 99, f"code whose perf map came late: {text(last['named late_map'])} % by name")
		row(0 < recorder.restarted <= 2, f"it ends within 2 s of SIGTERM: {text(recorder.restarted)} s")
		if cgroup:
			row(text(last["container boxed"]) == "100.0", f"the container named late: {text(last['container boxed'])} % by name")
	with open(f"{directory}/profild.log", encoding="utf-8", errors="replace") as f:
		for line in [l for l in f if "samples" not in l][-20:]:
			print("# log: " + line[:150].rstrip())


main()
print(f"1..{rows}")
sys.exit(failed)
