#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a C program of small functions keeps of its throughput under profilers that are linked to it, preloaded, or run
it, beside profiltool, which attaches to it; as a table in Markdown. As peers.py: in turns, medians over the rounds with
their 95 % confidence interval by bootstrap. Needs root."""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import peers

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = peers.BUILD + "/lib/"


class Words(peers.Lines):
    """The program, by a command and with more of an environment."""

    def __init__(self, directory, command, **environment):
        super().__init__(directory)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, cwd=directory, env={**os.environ, **environment})
        self.pid = self.process.pid
        self.run(0.2)

    def run(self, seconds):
        self.process.stdin.write("%f\n" % seconds)
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        """At the end of its input it writes its profile."""
        self.process.stdin.close()
        self.process.wait()


def compiled(directory, name, *options):
    """The program's path, built with these options of gcc."""
    path = directory + "/" + name
    subprocess.run([peers.need("gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O2", HERE + "/words.c", "-o", path, *options],
        check=True, **peers.QUIET)
    return path


def gperftools():
    return peers.need("/usr/lib/*/libprofiler.so.0")


# Each: its name, and how the program is started for it in a directory; then what is attached to it, if something is.
CONFIGURATIONS = [
    ("profiltool record, 99 Hz", lambda d: Words(d, [compiled(d, "words")]), peers.ours("-F", "99")),
    ("profiltool record -g, 99 Hz", lambda d: Words(d, [compiled(d, "words")]), peers.ours("-g", "-F", "99")),
    ("perf record, 99 Hz", lambda d: Words(d, [compiled(d, "words")]), peers.perf(99)),
    ("profil() of libprofil, 100 Hz", lambda d: Words(d, [compiled(d, "words"), "profil"],
        LD_PRELOAD=LIB + "libprofil.so.1", PROFIL_BACKEND="bpf", PROFIL_HZ="100"), None),
    ("profil() of the C library, 100 Hz", lambda d: Words(d, [compiled(d, "words"), "profil"]), None),
    ("gcc -pg and libprofil-gmon, 100 Hz", lambda d: Words(d, [compiled(d, "words", "-pg", "-L" + LIB, "-Wl,-rpath," + LIB,
        "-lprofil-gmon")], PROFIL_HZ="100"), None),
    ("gprof: gcc -pg, 100 Hz", lambda d: Words(d, [compiled(d, "words", "-pg")]), None),
    ("gperftools, 100 Hz", lambda d: Words(d, [compiled(d, "words")], LD_PRELOAD=gperftools(), CPUPROFILE=d + "/profile.prof"),
        None),
    ("valgrind's callgrind", lambda d: Words(d, [peers.need("valgrind"), "--tool=callgrind", compiled(d, "words")]), None),
]


def measured(configuration, directory, seconds):
    """Its turns in a second. Raises RuntimeError where no profile was written."""
    _, start, attach = configuration
    work = start(directory)
    try:
        if not attach:
            speed = work.run(seconds)
        else:
            profiler = peers.Profiler(attach(work.pid, directory + "/profile"), directory + "/profile")
            speed = work.run(seconds)
            profiler.end()
    finally:
        work.end()
    kinds = ("profile*", "gmon.out*", "callgrind.out*")
    if "profil()" not in configuration[0] and not any(glob.glob(directory + "/" + kind) for kind in kinds):
        raise RuntimeError("it wrote no profile")
    return speed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2, help="of a run")
    options = parser.parse_args()
    kept, why = {}, {}
    for _ in range(options.rounds):
        speeds = {}
        for configuration in [("alone", lambda d: Words(d, [compiled(d, "words")]), None)] + CONFIGURATIONS:
            name = configuration[0]
            with tempfile.TemporaryDirectory(prefix="profil-bench-", dir="/dev/shm") as directory:
                try:
                    if name == "alone":
                        work = configuration[1](directory)
                        speeds[name] = work.run(options.seconds)
                        work.end()
                    elif name not in why:
                        speeds[name] = measured(configuration, directory, options.seconds)
                except (peers.Missing, RuntimeError, ValueError, OSError, subprocess.CalledProcessError) as error:
                    why[name] = str(error) or "it ended"
        for name, speed in speeds.items():
            kept.setdefault(name, []).append(speed / speeds["alone"])
    print("### A C program of small functions that counts and sorts words: turns\n\n%d rounds of %g s.\n" % (
        options.rounds, options.seconds))
    print("| | throughput kept |\n|---|---|")
    for name, _, _ in CONFIGURATIONS:
        print("| %s | %s |" % (name, "not measured: " + why[name].replace("|", "/") if name in why else peers.shown(kept[name])))
    print(flush=True)
    sys.exit(bool(why))


if __name__ == "__main__":
    main()
