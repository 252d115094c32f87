#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""How much of its throughput work that people run keeps while a profiler looks at it: profiltool beside perf, bcc,
bpftrace and libbpf-tools, as a table in Markdown.

Each round measures the work alone three times and under each profiler once, in an order of its own. What is kept is
the throughput under a profiler to the median of the same round's runs alone. Printed are medians over the rounds and
their 95 % confidence interval by bootstrap. Needs root. A profiler or work that is not installed is said to be missing.
"""
import argparse
import glob
import os
import random
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PROFIL_BUILD", os.path.join(TOP, "build"))
PROFILTOOL = os.path.join(BUILD, "profiltool")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PATIENCE = 60 # seconds, with a profiler that is to end
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Missing(Exception):
    """A program that is not installed here."""


def need(*names):
    """The path of the first of these programs that is there."""
    for name in names:
        for path in [shutil.which(name)] + sorted(glob.glob(name)):
            if path:
                return path
    raise Missing(names[0] + " is not installed")


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(what + ": not within %d s" % seconds)
        time.sleep(0.02)


def output(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options).stdout


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise RuntimeError("no throughput in: " + text[-300:])
    return float(found.group(1))


# --- Work ---

class Work:
    """Work in a directory of its own. `pid` is its process; None: it has many, and the machine is recorded."""
    pid = None

    def __init__(self, directory):
        self.directory = directory
        self.process = None

    def run(self, seconds):
        """Its throughput, in units of its own, over about so many seconds."""
        raise NotImplementedError

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


class PostgreSQL(Work):
    what = "pgbench -S, 4 clients, scale 10, PostgreSQL: transactions"

    def __init__(self, directory):
        super().__init__(directory)
        self.programs = os.path.dirname(need("/usr/lib/postgresql/*/bin/postgres", "postgres"))
        os.chown(directory, 65534, 65534)
        data = directory + "/data"
        user = NOBODY + ["env", "-C", directory]
        subprocess.run(user + [self.programs + "/initdb", "-A", "trust", "-U", "test", "-N", "-D", data], check=True, **QUIET)
        self.process = subprocess.Popen(user + [self.programs + "/postgres", "-D", data, "-c", "listen_addresses=", "-c",
            "unix_socket_directories=" + directory, "-c", "autovacuum=off"], **QUIET)
        wait_until(lambda: subprocess.run([self.programs + "/pg_isready", "-h", directory], **QUIET).returncode == 0, "postgres")
        self.pgbench("-i", "-s", "10", "-q")

    def pgbench(self, *options):
        return output([self.programs + "/pgbench", "-h", self.directory, "-U", "test", *options, "postgres"])

    def run(self, seconds):
        return number(r"tps = ([0-9.]+)", self.pgbench("-n", "-S", "-c", "4", "-T", str(seconds)))

    def end(self):
        self.process.send_signal(signal.SIGINT) # a fast shutdown
        self.process.wait()


class Redis(Work):
    what = "redis-benchmark -t get, 50 clients: requests"

    def __init__(self, directory):
        super().__init__(directory)
        self.socket = directory + "/redis"
        self.process = subprocess.Popen([need("redis-server"), "--port", "0", "--unixsocket", self.socket, "--save", ""],
            cwd=directory, **QUIET)
        self.pid = self.process.pid
        need("redis-benchmark")
        wait_until(lambda: os.path.exists(self.socket), "redis")
        self.rate = self.get(20000)

    def get(self, requests):
        return number(r'"GET","([0-9.]+)"', output(["redis-benchmark", "-s", self.socket, "-t", "get", "--csv", "-n",
            str(requests)]))

    def run(self, seconds):
        return self.get(int(self.rate * seconds))


class Nginx(Work):
    what = "ab -k, 8 clients, 10 kB, nginx: requests"

    def __init__(self, directory):
        super().__init__(directory)
        need("ab")
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        with open(directory + "/index.html", "w") as page:
            page.write("profil " * 1463)
        os.chmod(directory, 0o755)
        with open(directory + "/conf", "w") as conf:
            conf.write("""daemon off; worker_processes 2; pid %s/pid; error_log /dev/null; events {}
                http { access_log off; server { listen 127.0.0.1:%d; root %s; } }""" % (directory, port, directory))
        self.url = "http://127.0.0.1:%d/index.html" % port
        self.process = subprocess.Popen([need("nginx", "/usr/sbin/nginx"), "-c", directory + "/conf"], **QUIET)
        wait_until(lambda: subprocess.run(["ab", "-n", "1", self.url], **QUIET).returncode == 0, "nginx")

    def run(self, seconds):
        return number(r"Requests per second: +([0-9.]+)", output(["ab", "-k", "-q", "-c", "8", "-t", str(seconds), "-n",
            "100000000", self.url]))


class Compile(Work):
    what = "gcc -O2 of this project's files, one after the other: files"

    def __init__(self, directory):
        super().__init__(directory)
        self.command = [need("gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-I" + TOP, "-I" + TOP + "/user", "-c", "-o",
            directory + "/object"]
        self.files = sorted(glob.glob(TOP + "/user/util/*.c"))

    def run(self, seconds):
        done, begin = 0, time.monotonic()
        while time.monotonic() < begin + seconds:
            subprocess.run(self.command + [self.files[done % len(self.files)]], check=True)
            done += 1
        return done / (time.monotonic() - begin)


class Lines(Work):
    """A program that, for each line with a number of seconds, works so long and answers with its turns per second."""

    def begin(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)
        self.pid = self.process.pid
        self.run(2) # a JVM compiles meanwhile

    def run(self, seconds):
        self.process.stdin.write("%d\n" % seconds)
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Python(Lines):
    what = "json, re and classes in Python: turns"
    text = """
import json, re, sys, time
class Node:
    def __init__(self, left, right):
        self.left, self.right = left, right
    def count(self):
        return 1 + sum(n.count() for n in (self.left, self.right) if n)
def tree(depth):
    return Node(tree(depth - 1), tree(depth - 1)) if depth else None
def turn(n):
    text = json.dumps([{"id": i, "name": "n%d" % i, "tags": ["a", "b"]} for i in range(20)])
    return len(json.loads(text)) + len(re.findall(r"n(\\d+)", text)) + tree(5).count()
for line in sys.stdin:
    end, begin, turns = time.monotonic() + int(line), time.monotonic(), 0
    while time.monotonic() < end:
        turn(turns)
        turns += 1
    print(turns / (time.monotonic() - begin), flush=True)
"""

    def __init__(self, directory):
        super().__init__(directory)
        with open(directory + "/work.py", "w") as program:
            program.write(self.text)
        self.begin([need("/usr/bin/python3"), directory + "/work.py"])


class Java(Lines):
    what = "sorting and hashing of strings in a JVM: turns"
    text = """
import java.util.*;
public class Work {
    static int turn(int n) {
        Map<String, Integer> map = new HashMap<>();
        List<String> list = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            String s = Integer.toString((i * 7919 + n) % 1000);
            list.add(s);
            map.merge(s, 1, Integer::sum);
        }
        Collections.sort(list);
        return map.size() + list.get(0).hashCode();
    }
    public static void main(String[] arguments) {
        Scanner in = new Scanner(System.in);
        while (in.hasNextInt()) {
            long begin = System.nanoTime(), end = begin + in.nextInt() * 1000000000L, turns = 0;
            while (System.nanoTime() < end)
                turn((int) turns++);
            System.out.println(turns * 1e9 / (System.nanoTime() - begin));
        }
    }
}
"""

    def __init__(self, directory):
        super().__init__(directory)
        with open(directory + "/Work.java", "w") as program:
            program.write(self.text)
        self.begin([need("java"), "-XX:+PreserveFramePointer", directory + "/Work.java"])


class Threads(Python):
    what = "the same beside 10,000 threads of its process that sleep: turns"
    text = """
import threading
threading.stack_size(65536)
rest = threading.Event()
for _ in range(10000):
    threading.Thread(target=rest.wait, daemon=True).start()
""" + Python.text


class Processes(Python):
    what = "the same beside 1,000 processes that sleep: turns"
    text = """
import os
end, kept = os.pipe()
for _ in range(1000):
    if not os.fork():
        os.close(kept)
        os.read(end, 1) # until their parent ends
        os._exit(0)
""" + Python.text

    def __init__(self, directory):
        super().__init__(directory)
        self.pid = None


class Short(Work):
    what = "processes of /bin/true, one after the other: processes"

    def run(self, seconds):
        done, begin = 0, time.monotonic()
        while time.monotonic() < begin + seconds:
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
            done += 1
        return done / (time.monotonic() - begin)


WORKS = {"postgresql": PostgreSQL, "redis": Redis, "nginx": Nginx, "compile": Compile, "python": Python, "java": Java,
    "threads": Threads, "processes": Processes, "short": Short}


# --- Profilers ---

def ours(*options):
    return lambda pid, file: [PROFILTOOL, "record", "-q", *options, "-o", file + ".pb.gz"] + (["-p", str(pid)] if pid else ["-a"])


def perf(rate, *options):
    return lambda pid, file: [need("perf"), "record", "-q", "-e", "cpu-clock", "-F", str(rate), *options, "-o", file] + (
        ["-p", str(pid)] if pid else ["-a"])


def bcc(name, *options):
    return lambda pid, file: [need(name), *options] + (["-p", str(pid)] if pid else [])


def bpftrace(rate):
    return lambda pid, file: [need("bpftrace"), "-e", "profile:hz:%d %s{ @[kstack, ustack] = count(); }" % (rate,
        "/pid == %d/ " % pid if pid else "")]


# What is asked for, and who answers: the first of each is ours, and the others are compared with it.
QUESTIONS = [(question % {"rate": rate}, [(name, command(rate)) for name, command in answers])
    for question, answers in [
        ("functions, %(rate)d Hz", [
            ("profiltool record", lambda rate: ours("-F", str(rate))),
            ("perf record", perf)]),
        ("call stacks, %(rate)d Hz", [
            ("profiltool record -g", lambda rate: ours("-g", "-F", str(rate))),
            ("perf record --call-graph dwarf", lambda rate: perf(rate, "--call-graph", "dwarf")),
            ("perf record -g, frame pointers", lambda rate: perf(rate, "-g")),
            ("bcc's profile, frame pointers", lambda rate: bcc("profile-bpfcc", "-f", "-F", str(rate))),
            ("bpftrace, frame pointers", bpftrace)])]
    for rate in (99, 999, 4999)] + [
    ("waits", [
        ("profiltool record --wall", ours("--wall")),
        ("bcc's offcputime, frame pointers", bcc("offcputime-bpfcc", "-f")),
        ("libbpf-tools' offcputime, frame pointers", bcc("offcputime"))])]


def attached(pid):
    """How many perf events and BPF objects a process has open: its children have none of their own that matter."""
    count = 0
    try:
        for link in os.listdir("/proc/%d/fd" % pid):
            try:
                count += bool(re.match(r"anon_inode:(\[perf_event\]|bpf)", os.readlink("/proc/%d/fd/%s" % (pid, link))))
            except OSError:
                pass
    except OSError:
        pass
    return count


class Profiler:
    """A profiler while it runs, and then what it took: CPU seconds, most memory (MB), seconds to end, bytes written."""

    def __init__(self, command, file):
        self.file = file
        for old in glob.glob(file + "*"):
            os.remove(old)
        self.before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.out = open(file + ".out", "w")
        self.err = open(file + ".err", "w")
        self.process = subprocess.Popen(command, stdout=self.out, stderr=self.err)
        # Ready when it has opened something and no more follows.
        last = [0, time.monotonic()]

        def settled():
            now = attached(self.process.pid)
            if now != last[0]:
                last[:] = [now, time.monotonic()]
            if self.process.poll() is not None:
                raise RuntimeError(open(file + ".err").read().strip().split("\n")[-1] or "it ended at once")
            return now and time.monotonic() - last[1] > 0.5
        wait_until(settled, "attached")

    def end(self):
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        pid = 0
        while not pid:
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            self.seconds_to_end = time.monotonic() - began
            if not pid and self.seconds_to_end > PATIENCE:
                self.process.kill()
                self.process.wait()
                raise RuntimeError("it had not ended after %d s" % PATIENCE)
            if not pid:
                time.sleep(0.002)
        self.process.returncode = status
        self.out.close()
        self.err.close()
        self.cpu = used.ru_utime + used.ru_stime
        self.memory = used.ru_maxrss / 1024
        self.bytes = sum(os.path.getsize(f) for f in glob.glob(self.file + "*") if not f.endswith(".err"))


# --- Numbers ---

def interval(values):
    """A median and its 95 % confidence interval, by bootstrap."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), medians[49], medians[1949]


def shown(values):
    return "%.3f (%.3f to %.3f)" % interval(values)


def beside(theirs, own):
    """What a peer keeps to what ours keeps, round by round."""
    middle, low, high = interval([t / o for t, o in zip(theirs, own)])
    if low <= 1 <= high:
        return "no difference seen"
    return "%.3f (%.3f to %.3f)" % (middle, low, high)


def steal():
    with open("/proc/stat") as stat:
        fields = [int(n) for n in stat.readline().split()[1:]]
    return fields[7], sum(fields[:8])


def measure(name, options):
    """The table of one kind of work."""
    print("### %s\n" % WORKS[name].what, flush=True)
    with tempfile.TemporaryDirectory(prefix="profil-bench-", dir="/dev/shm") as directory:
        os.chmod(directory, 0o711)
        os.mkdir(directory + "/work")
        work = WORKS[name](directory + "/work")
        try:
            rows(work, directory, options)
        finally:
            work.end()


def rows(work, directory, options):
    questions = [(q, answers) for q, answers in QUESTIONS if re.search(options.question, q)]
    configurations = [(q, who, command) for q, answers in questions for who, command in answers]
    kept, took, why, alone, noise = {}, {}, {}, [], []
    stolen = steal()
    for turn in range(options.rounds):
        order = configurations + [None] * 3
        random.Random(turn).shuffle(order)
        speeds, bases = {}, []
        for entry in order:
            if entry is None:
                bases.append(work.run(options.seconds))
                continue
            question, who, command = entry
            if (question, who) in why:
                continue
            try:
                profiler = Profiler(command(work.pid, directory + "/profile"), directory + "/profile")
                speeds[question, who] = work.run(options.seconds)
                profiler.end()
                took.setdefault((question, who), []).append(profiler)
            except (Missing, RuntimeError) as error:
                why[question, who] = str(error)
        base = statistics.median(bases)
        alone.append(base)
        noise += [b / base for b in bases if b != base]
        for key, speed in speeds.items():
            kept.setdefault(key, []).append(speed / base)
    now = steal()
    print("Alone %.6g a second, a round's runs within %.3f to %.3f of each other; %d rounds of %d s; the host took %.1f %%.\n" % (
        statistics.median(alone), min(noise), max(noise), options.rounds, options.seconds,
        100 * (now[0] - stolen[0]) / (now[1] - stolen[1])))
    print("| | throughput kept | beside profiltool | own CPU, ms | memory, MB | to end, ms | file, kB |\n|---|---|---|---|---|---|---|")
    for question, answers in questions:
        print("| **%s** | | | | | | |" % question)
        own = kept.get((question, answers[0][0]))
        for who, _ in answers:
            key = question, who
            if key in why or key not in kept:
                print("| %s | not measured: %s | | | | | |" % (who, why.get(key, "").replace("|", "/")))
                continue
            used = took[key]
            print("| %s | %s | %s | %.0f | %.0f | %.0f | %.0f |" % (who, shown(kept[key]),
                beside(kept[key], own) if who != answers[0][0] and own and len(own) == len(kept[key]) else "",
                1000 * statistics.median(u.cpu for u in used), statistics.median(u.memory for u in used),
                1000 * statistics.median(u.seconds_to_end for u in used), statistics.median(u.bytes for u in used) / 1000))
    print(flush=True)


def first_sample(options):
    """The table of the time from exec to the first sample of a busy process, each by the profiler's own clock."""
    def by_ours(pid, file):
        return [PROFILTOOL, "record", "-v", "-F", "999", "-d", "0.3", "-p", pid, "-o", file], lambda begin, out, err: number(
            r"first tick came ([0-9.]+) ms", err)

    def by_perf(pid, file):
        return [need("perf"), "record", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", "999", "-p", pid, "-o", file, "sleep",
            "0.3"], lambda begin, out, err: 1000 * (number(r"([0-9.]+):", output(["perf", "script", "-F", "time", "-i", file]))
            - begin)

    def by_bpftrace(pid, file):
        return [need("bpftrace"), "-e", "profile:hz:999 /pid == %s/ { printf(\"%%lld\\n\", nsecs); exit(); }" % pid], (
            lambda begin, out, err: number(r"([0-9]{6,})", out) / 1e6 - 1000 * begin)

    took = {}
    busy = subprocess.Popen([need("/usr/bin/python3"), "-c", "while True: pass"])
    try:
        with tempfile.TemporaryDirectory(prefix="profil-bench-", dir="/dev/shm") as directory:
            for _ in range(options.rounds):
                for who, by in (("profiltool record", by_ours), ("perf record", by_perf), ("bpftrace", by_bpftrace)):
                    try:
                        command, read = by(str(busy.pid), directory + "/profile")
                        begin = time.monotonic()
                        ran = subprocess.run(command, capture_output=True, text=True, check=True)
                        took.setdefault(who, []).append(read(begin, ran.stdout, ran.stderr))
                    except Missing as error:
                        took[who] = str(error)
    finally:
        busy.kill()
        busy.wait()
    print("### From exec to the first sample of a busy process, 999 Hz\n\n| | ms |\n|---|---|")
    for who, values in took.items():
        print("| %s | %s |" % (who, values if isinstance(values, str) else "%.0f (%.0f to %.0f)" % interval(values)))
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4, help="of a run")
    parser.add_argument("--question", default="", help="a regular expression: only these questions")
    parser.add_argument("work", nargs="*", help="of start, " + ", ".join(WORKS) + "; all by default")
    options = parser.parse_args()
    for name in options.work:
        if name not in WORKS and name != "start":
            parser.error('no work "%s": start, %s' % (name, ", ".join(WORKS)))
    # perf has a descriptor for each thread on each CPU.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    failed = False
    for name in options.work or ["start"] + list(WORKS):
        try:
            first_sample(options) if name == "start" else measure(name, options)
        except (Missing, RuntimeError, subprocess.CalledProcessError) as error:
            print("Not measured: %s\n" % error)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
