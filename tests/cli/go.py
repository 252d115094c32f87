# SPDX-License-Identifier: GPL-2.0-only
# go.py TOOL names|lines FULL STRIPPED: whether the tool finds the same in both programs, whose code is the same, at
# every 13th byte of it.
# go.py TOOL addr2line FULL STRIPPED: the same of `go tool addr2line` for the one and of the tool for the other.
# go.py TOOL printed FILE PROGRAM: whether the stacks of addresses in the file are those of the tool.
import os, re, sys, tempfile

from lines import names, run, text_addresses, write_profile


def fail(*why):
    print(*why)
    sys.exit(1)


def found(image, addresses, inline=True):
    with tempfile.NamedTemporaryFile() as profile:
        write_profile(profile.name, os.path.abspath(image), addresses)
        return names(tool, profile.name, inline=inline)[0]


def same_names(full, stripped):
    addresses = text_addresses(full, 13)
    a, b = found(full, addresses, False), found(stripped, addresses, False)
    # Behind the last function is a label.
    bad = [(hex(x), a[x], b[x]) for x in addresses
           if a[x] != b[x] and (b[x] or a[x][0][0] != "runtime.etext")]
    named = sum(1 for x in addresses if b[x])
    print(len(addresses), "addresses,", named, "named,", len(bad), "differ", bad[:3])
    return not bad and named > len(addresses) * .99


# All lines of the program's own functions are equal, and of others all but the few of which Go's DWARF lacks something.
def same_lines(full, stripped):
    addresses = text_addresses(full, 13)
    a, b = found(full, addresses), found(stripped, addresses)
    bad = [x for x in addresses if a[x] != b[x]]
    own = [x for x in bad if b[x] and b[x][-1][0].startswith("main.")]
    inlined = sum(1 for x in addresses if len(b[x]) > 1)
    print(len(addresses), "addresses,", inlined, "with inlined functions,", len(bad), "differ",
          [(hex(x), a[x], b[x]) for x in own[:3] + bad[:3]])
    return not own and len(bad) < len(addresses) / 1000 and inlined > 100


# Go's tool has the innermost line, and the function around it: by its symbol, which for assembly may end with ".abi0",
# and for a generic function of Go 1.18 to 1.20 has types where its name has "[...]".
def plain(name):
    return re.sub(r"\[.*\]", "[...]", name.removesuffix(".abi0"))


def same_as_go(full, stripped):
    addresses = text_addresses(full, 13)
    ours, compared = found(stripped, addresses), 0
    out = run("go", "tool", "addr2line", full,
              input="".join("%#x\n" % x for x in addresses)).splitlines()
    for x, function, place in zip(addresses, out[::2], out[1::2]):
        if function == "?" or place.startswith("?") or int(place.split(":")[-1]) <= 0:
            continue
        if (not ours[x] or plain(ours[x][-1][0]) != plain(function) or
                "%s:%d" % ours[x][0][1:] != place):
            fail(hex(x), ours[x], function, place)
        compared += 1
    print(compared, "compared")
    return compared > 1000


def same_as_printed(file, program):
    with open(file) as f:
        printed = {int(word[0], 16): word[1:] for word in map(str.split, f)}
    ours = found(program, printed)
    for pc, frames in printed.items():
        chain = ["%s:%d" % (name, line) for name, _, line in ours[pc]]
        if len(chain) < 2 or chain != frames[:len(chain)]:
            fail(hex(pc), chain, frames)
    return len(printed) >= 2


tool, what, one, other = sys.argv[1:]
checks = {"names": same_names, "lines": same_lines, "addr2line": same_as_go,
          "printed": same_as_printed}
sys.exit(not checks[what](one, other))
