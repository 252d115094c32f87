# SPDX-License-Identifier: GPL-2.0-only
"""
script.py TRUTH KIND...: known work in known functions. Prints "ready", waits for a line, works, and writes to the file
TRUTH what its call stacks were, as Python itself sees them, and the CPU time in each: JSON, {"CHAIN": SECONDS}, where
CHAIN is FUNCTION:LINE;... from the outermost one on, without the line of the innermost function, which is spin().
"""
import asyncio
import ctypes
import functools
import json
import multiprocessing
import os
import re
import sys
import threading
import time

truth = {}


def spin(ms):
    chain, frame = ["spin"], sys._getframe(1)
    while frame:
        chain.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    chain, used, now = ";".join(reversed(chain)), 0, time.thread_time()
    while used < ms / 1000:
        for _ in range(500):
            pass
        before, now = now, time.thread_time()
        used += min(now - before, 1e-3)  # where the machine stands still, all ticks that are due may be one
    truth[chain] = truth.get(chain, 0) + used


def write_truth(file):
    with open(file, "w", encoding="utf-8") as out:
        json.dump(truth, out)


# --- Methods, and what has a name of its own ---


class Shop:
    def sell(self):
        spin(20)

    @classmethod
    def open(cls):
        spin(20)

    @staticmethod
    def close():
        spin(20)

    @property
    def price(self):
        spin(20)
        return 1

    class Till:
        def __call__(self):
            spin(20)


def methods():
    shop = Shop()
    shop.sell()
    shop.open()
    shop.close()
    assert shop.price
    Shop.Till()()


def unnamed():
    (lambda: spin(20))()
    return [spin(10) for _ in range(2)], {spin(10): 1 for _ in range(2)}


def überweisen():
    spin(20)


def 計算():
    spin(20)


def 𝔟𝔦𝔤():
    spin(20)


def names():
    überweisen()
    計算()
    𝔟𝔦𝔤()
    made = {"spin": spin}
    exec(f"def {'long' * 60}(): spin(20)", made)
    made["long" * 60]()


# --- One function in another ---


def recurse(n):
    if n:
        recurse(n - 1)
    else:
        spin(30)


def recursion():
    recurse(6)


def descend(n):
    if n:
        return descend(n - 1)
    return spin(100)


def inner_generator():
    for _ in range(2):
        spin(10)
        yield 1


def outer_generator():
    yield from inner_generator()
    spin(10)


def generators():
    for _ in outer_generator():
        spin(10)
    sum(spin(10) or 1 for _ in range(2))


async def fetch():
    await asyncio.sleep(0)
    spin(20)


async def agen():
    for _ in range(2):
        spin(10)
        yield 1


async def handle():
    await fetch()
    async for _ in agen():
        spin(10)


async def serve():
    await asyncio.gather(handle(), handle())


def coroutines():
    asyncio.run(serve())


# --- Native code that calls back ---


def key(x):
    spin(10)
    return x


def replace(_):
    spin(10)
    return "x"


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@COMPARE
def compare(_a, _b):
    spin(10)
    return 0


def call_json():
    json.dumps([object()], default=lambda o: spin(20))


def call_ctypes():
    ctypes.CDLL(None).qsort((ctypes.c_int * 3)(1, 2, 3), 3, 4, compare)


class Compared:
    def __lt__(self, other):
        spin(10)
        return False


def callbacks():
    sorted([3, 1, 2], key=key)
    sorted([Compared(), Compared(), Compared()])
    functools.reduce(lambda a, b: spin(10), [1, 2, 3])
    list(map(key, [1, 2]))
    re.sub("a", replace, "aa")
    call_json()
    call_ctypes()


def fails():
    spin(10)
    raise ValueError


def exceptions():
    try:
        fails()
    except ValueError:
        spin(10)
    finally:
        spin(10)
    try:
        try:
            fails()
        finally:
            spin(10)
    except ValueError as error:
        spin(10)
        del error


def compiled():
    exec("def made():\n\n    spin(20)\nmade()", {"spin": spin})
    eval("spin(20)")
    exec(compile("spin(20)", "/no/such/fil\xe9.py", "exec"))


# --- Threads and processes ---


def share_30():
    spin(3)


def share_70():
    spin(7)


def shares():
    for _ in range(150):
        share_30()
        share_70()


def thread_a():
    for _ in range(10):
        spin(10)


def thread_b():
    for _ in range(10):
        spin(10)


def threads():
    both = [threading.Thread(target=thread_a), threading.Thread(target=thread_b)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()


def child_work(file):
    truth.clear()
    spin(500)
    write_truth(f"{file}.child")


def child(method):
    process = multiprocessing.get_context(method).Process(target=child_work, args=(sys.argv[1],))
    process.start()
    process.join()


def fork():
    spin(50)
    child("fork")


def spawn():
    spin(50)
    child("spawn")


# --- Code that is freed, whose memory is used again ---


def make_stands(count):
    stands = {}
    for i in range(count):
        exec(f"def stand_{i}(f):\n    f()\n", stands)
    return [stands[f"stand_{i}"] for i in range(count)]


def freed():
    """Each function is made for one call; what calls it stays."""
    for _ in range(2):
        for i, stand in enumerate(STANDS):
            made = {"spin": spin}
            exec(f"def made_{i}():\n    spin(5)\n", made)
            stand(made.pop(f"made_{i}"))


def moved():
    """Two functions are made in turns at one address, each on a CPU of its own."""
    cpus = sorted(os.sched_getaffinity(0))
    for turn in range(60):
        i = turn % 2
        os.sched_setaffinity(0, {cpus[i % len(cpus)]})
        made = {"spin": spin}
        exec(f"def made_{i}():\n    spin(5)\n", made)
        STANDS[i](made.pop(f"made_{i}"))
    os.sched_setaffinity(0, cpus)


STANDS = make_stands(50)
ALL = (methods, unnamed, names, recursion, generators, coroutines, callbacks, exceptions, compiled)


def by_map(n):
    if n:
        return list(map(by_map, [n - 1]))
    return spin(100)


def nested():
    by_map(30)


def main():
    kinds = sys.argv[2:]
    print("ready", flush=True)
    sys.stdin.readline()
    for kind in kinds:
        if kind == "all":
            for _ in range(3):
                for function in ALL:
                    function()
        elif kind == "deep":
            descend(200)
        else:
            globals()[kind]()
    write_truth(sys.argv[1])
    os._exit(0)  # the interpreter's own work at its end is no script's


if __name__ == "__main__":
    main()
