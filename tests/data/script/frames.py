# SPDX-License-Identifier: GPL-2.0-only
# Writes its call stack as Python sees it, the innermost function first, and waits in it.
import posix
import sys


def stack():
    frame, lines = sys._getframe(1), ""
    while frame:
        lines += f"{frame.f_code.co_qualname} {frame.f_code.co_filename} {frame.f_lineno}\n"
        frame = frame.f_back
    return (lines + "\n").encode()


def leaf():
    posix.write(1, stack()) and posix.read(0, 1)


class Shop:
    def sell(self):
        leaf()

    @classmethod
    def open(cls):
        cls().sell()


def each(shops):
    for shop in shops:
        yield shop.open()


# list() and sorted() are no Python functions: they call the interpreter again.
def day():
    return list(each([Shop]))


def größe(value):
    return [day() for _ in range(1)]


def main():
    sorted([1], key=lambda x: größe(x))


main()
