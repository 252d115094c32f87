# SPDX-License-Identifier: GPL-2.0-only
"""
pool.py SECONDS: a server that forks workers, which all get one of two process numbers again and again, as on a machine
that has been up for a month: each lives for that long, and burns a tenth of the CPU in leaf_work(), which
handle_request() calls. Prints "ready" with the first worker.
"""
import ctypes
import os
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
CLONE3, SIGCHLD = 435, 17


def fork_as(pid):
    """fork(2) with this number; None while another process has it."""
    numbers = (ctypes.c_int * 1)(pid)
    # struct clone_args: exit_signal, set_tid and set_tid_size are its members 4, 8 and 9
    arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, SIGCHLD, 0, 0, 0, ctypes.addressof(numbers), 1, 0)
    child = libc.syscall(CLONE3, arguments, ctypes.sizeof(arguments))
    return None if child < 0 else child


def leaf_work(ms):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        for _ in range(2000):
            pass


def handle_request(end):
    while time.time() < end:
        leaf_work(5)
        time.sleep(0.045)


def work(seconds):
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write("poolworker")
    handle_request(time.time() + seconds)
    os._exit(0)


def serve(seconds):
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as limit:
        highest = int(limit.read()) - 50 - os.getpid() % 1000
    while True:
        children = []
        for number in highest, highest - 1:
            child = fork_as(number)
            if child == 0:
                work(seconds)
            if child:
                children.append(child)
        print("ready", *children, flush=True)
        for child in children:
            os.waitpid(child, 0)
        if not children:
            highest -= 2


serve(float(sys.argv[1]))
