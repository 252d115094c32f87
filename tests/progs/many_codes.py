# SPDX-License-Identifier: GPL-2.0-only
"""
many_codes.py COUNT SECONDS: calls so many different functions, with long names and line tables, for so long, and then
keeps them asleep: what a profiler keeps of scripts by user is used up.
"""
import sys
import time
import types

count, seconds = int(sys.argv[1]), float(sys.argv[2])
CHAIN = 100


def call_next(rest):
    if rest:
        rest[-1](rest[:-1])
    for _ in range(3000):
        pass


functions = [
    types.FunctionType(
        call_next.__code__.replace(
            co_name=f"{number:08}" + "x" * 250,
            co_filename=f"/tmp/{number:08}" + "y" * 400,
            co_linetable=call_next.__code__.co_linetable + b"\xf8\x00" * 4090,
        ),
        {"range": range},
    )
    for number in range(count)
]
end = time.time() + seconds
while time.time() < end:
    for begin in range(0, count, CHAIN):
        chain = functions[begin : begin + CHAIN]
        chain[-1](chain[:-1])
while True:
    time.sleep(1000)
