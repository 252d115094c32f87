#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# The page of everything that is bounded, user/doc/bounds.md, from comments in the sources: CONTRIBUTING.md, "Bounds".
# bounds.py [TREE]: prints the page. On standard error: what has no comment, or a wrong one; the status is then 1.

import os
import re
import sys

DIRECTORIES = ("bpf", "kmod", "user")
# What runs for as long as a daemon or a program does: here flags and arrays are looked at, too.
LASTING = tuple(f"{name}/" for name in ("bpf", "kmod", "user/capture", "user/symbol", "user/script", "user/record", "user/archive",
                                        "user/push", "user/daemon", "user/lib"))

# A constant with one of these words in its name bounds something, as far as a name can tell.
WORDS = {"MAX", "MOST", "LIMIT", "ENTRIES", "BUDGET", "SLOTS", "ROOM", "SPARE", "BUCKETS", "CACHE", "MEMORY", "PART",
         "FACTOR", "SHARE", "PROBES", "TRIES", "LEVELS", "BYTES", "NS", "MS", "SECONDS"}
# A flag with one of these may be a decision that nothing takes back.
FLAG_WORDS = {"asked", "crowded", "deferred", "dropped", "exceeded", "failed", "full", "late", "once", "refused", "refuses",
              "reported", "room", "scanned", "stuck", "sure", "tried", "unread", "unreadable", "warned"}
# But for texts, marks (limits of C's types), the number of elements that a table in the source has, and units (NS_PER_S, HOUR_S).
MARK = re.compile(r"U?(INT|LONG|LLONG|INT8|INT16|INT32|INT64)_(MAX|MIN)$|SIZE_MAX$")
ELEMENTS = re.compile(r"\(sizeof\((\w+)\) / sizeof\(\*\1\)\)$")
UNIT = re.compile(r"[A-Z]+_PER_[A-Z]+$|(?:MINUTE|HOUR|DAY)_N?S$")

GROUPS = {
    "users": ("Other users' processes", ["What any process of the machine can fill: these matter most.", "",
                                        "Beside what a window takes until it is written, all users together can have `profild --continuous` keep some 285 MiB,",
                                        "of the 512 MiB that its unit may have: 128 MiB of mappings, 32 MiB of copies of files, 32 MiB of names of scripts, 16",
                                        "MiB of symbols, and 75 MiB of tables for walking stacks, with the usual `--unwind-memory`. What no tick comes to for",
                                        "ten windows is given back, tables after 60, mappings and copies when processes end. `profild --status` has what it is",
                                        "now, and the most that it can be."]),
    "machine": ("The machine",
                ["What grows with the machine and its load, or waits for others: CPUs, threads, time, disks, servers."]),
    "files": ("Files that are read",
              ["Profiles, archives, images and their debug files, which may be damaged or malicious. What is not said: again,",
               "with another file; whose share, each file's own; seen, in an error or a warning, or as code without symbols or",
               "lines."]),
    "caller": ("The caller",
               ["Who runs a command, or calls libprofil. What is not said: again, with another command; whose share, the",
                "caller's own; seen, in an error or a warning."]),
}
FIELDS = ("then", "again", "share", "seen")
FEWER_FIELDS = {"files": ("then",), "caller": ("then",)}
KINDS = {
    "format": "is set by a file format, a protocol, the kernel, a CPU or a runtime",
    "pace": "says how often or how exactly something is done; nothing is refused",
    "size": "is that of a buffer, a step or a fixed list; nothing is refused",
    "state": "is a flag that is set and taken back",
}


class Definition:
    """What may bound something: a constant, an array, a BPF map, a cache or a flag, and the comment with its bound."""

    def __init__(self, path, line, kind, name, value, comment, is_first):
        self.path, self.line, self.kind, self.name, self.value = path, line, kind, name, value
        self.comment = comment  # "" without a bound
        self.is_first = is_first  # directly below its comment
        self.group = self.what = self.like = None
        self.fields = {}


# --- The sources ---

DEFINE = re.compile(r"\s*#\s*define\s+([A-Z]\w*)\s+(\S.*)$")
ANY_DEFINE = re.compile(r"\s*#\s*define\s+\w+")
ENUMERATOR = re.compile(r"\s+([A-Z]\w*_(?:MAX|MOST|LIMIT)) = ([^,]+),")
FLAG = re.compile(r"\s*(?:static |__thread |volatile )*(?:atomic_)?bool ([a-z_0-9, ]+);")
CACHE = re.compile(r"struct (\w*cache\w*) \{$")
STRUCT = re.compile(r"(?:static |const )*(?:struct|union)[^;(=]*\{$")
ARRAY = re.compile(r"\t+(?!(?:unsigned )?char\b|uint8_t|__u8)[a-z_0-9 ]+ \**(?!unused)(\w+)\[([^\]]+)\];")
MAP = re.compile(r"\} (\w+) SEC\(\"\.maps\"\);")
MAP_LINE = re.compile(r"(?:MAP\(\w+, |MAPPED_ARRAY\(|RING\(|(TASK_STORAGE)\()(\w+), ([^,)]+)[,)]")
MAP_ENTRIES = re.compile(r"__uint\(max_entries, (.*?)\);")


class Source:
    def __init__(self, tree, path):
        self.path = path
        with open(os.path.join(tree, path), encoding="utf-8") as source:
            self.lines = source.read().split("\n")
        self.used = set()  # lines of comments that belong to a definition

    def comment_before(self, at):
        """The comment with a bound that ends in the line before this one."""
        begin = at - 1
        if begin < 0 or not self.lines[begin].endswith("*/"):
            return ""
        while begin > 0 and "/*" not in self.lines[begin]:
            begin -= 1
        if not re.match(r"\s*/\*", self.lines[begin]):
            return ""  # it belongs to the line in which it begins
        self.used.update(range(begin, at))
        words = " ".join(re.sub(r"^\s*(/\*|\*(?!/))|\*/$", "", line) for line in self.lines[begin:at]).split()
        return " ".join(words[words.index("Bound:") + 1:]) if "Bound:" in words else ""

    def define(self, at, kind, name, value, first=None):
        """first: the first of the lines that this one follows without a gap, with which it shares a comment."""
        first = at if first is None else first
        return Definition(self.path, at + 1, kind, name, value, self.comment_before(first), at == first)

    def definitions(self):
        opened, in_struct = 0, False
        for at, line in enumerate(self.lines):
            in_struct = bool(STRUCT.match(line)) or (in_struct and not line.startswith("}"))
            if line == "struct {":
                opened = at
            if found := DEFINE.match(line):
                first = at
                while first > 0 and ANY_DEFINE.match(self.lines[first - 1]):
                    first -= 1
                yield self.define(at, "constant", found[1], re.sub(r"\s*/\*.*", "", found[2]), first)
            elif found := ENUMERATOR.match(line):
                yield self.define(at, "constant", found[1], found[2])
            elif found := MAP.match(line):
                entries = MAP_ENTRIES.findall("\n".join(self.lines[opened:at]))
                yield self.define(opened, "map", found[1], " x ".join(entries))
            elif found := MAP_LINE.match(line):
                yield self.define(at, "map", found[2], "" if found[1] else found[3])
            elif found := FLAG.match(line):
                yield self.define(at, "flag", found[1], "")
            elif found := CACHE.match(line):
                yield self.define(at, "cache", found[1], "")
            elif in_struct and (found := ARRAY.match(line)):
                yield self.define(at, "array", found[1], found[2])

    def lost_comments(self):
        return [at + 1 for at, line in enumerate(self.lines)
                if at not in self.used and re.search(r"(/\*|^\s*\*).*\bBound: ", line)]


def read_sources(tree):
    for top in DIRECTORIES:
        for directory, subdirectories, files in os.walk(os.path.join(tree, top)):
            subdirectories.sort()
            for name in sorted(files):
                # vmlinux.h has the kernel's own structures.
                if name.endswith((".c", ".h")) and name != "vmlinux.h":
                    yield Source(tree, os.path.relpath(os.path.join(directory, name), tree))


def needs_bound(d, bounded, sizes):
    """bounded: names of constants that have one; sizes: of arrays in what lasts."""
    lasts = d.path.startswith(LASTING)
    if d.kind == "constant":
        named = WORDS & set(d.name.split("_")) or d.name.endswith("_S")
        return ((named or (lasts and d.name in sizes)) and not UNIT.match(d.name) and
                not (d.value.startswith('"') or MARK.match(d.value) or ELEMENTS.match(d.value)))
    if d.kind == "array":  # others are as large as a constant says
        return lasts and d.value.isdigit() and int(d.value) > 2
    if d.kind == "flag":
        return lasts and FLAG_WORDS & set(re.split(r"\W+|_", d.name))
    return d.kind == "cache" or d.value not in bounded


# --- Comments ---

def parse(d):
    """Sets the members of a definition by its comment. Returns what is wrong, or None."""
    text = d.comment.removesuffix(".")
    if text in KINDS:
        d.group = text
        return None
    if text.startswith("as "):
        d.like = text[len("as "):]
        return None
    first, *parts = re.split(r"; (?=(?:" + "|".join(FIELDS) + "): )", text)
    d.group, _, d.what = first.partition(": ")
    if d.group not in GROUPS:
        return f'"{d.group}" is none of ' + ", ".join([*GROUPS, *KINDS, "as NAME"])
    d.fields = dict(part.split(": ", 1) for part in parts)
    missing = [field for field in FEWER_FIELDS.get(d.group, FIELDS) if not d.fields.get(field)]
    return "its comment lacks " + ", ".join(missing) if missing else None


class Values:
    """What constants are, as a person writes it."""

    def __init__(self, found):
        self.of_file = {(d.path, d.name): d.value for d in found if d.kind == "constant"}
        self.of_all = {d.name: d.value for d in found if d.kind == "constant"}

    def number(self, path, text, depth=0):
        """None: it is none, or made of what has no value here."""
        text = re.sub(r"\((?:u?int\d+_t|size_t|off_t|rlim_t)\)|\b(?:U|)INT64_C\b", "", text)
        text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
        for name in set(re.findall(r"\b[A-Za-z_]\w*", text)):
            value = self.of_file.get((path, name)) or self.of_all.get(name)
            value = self.number(path, value, depth + 1) if value and depth < 8 else None
            if value is None:
                return None
            text = re.sub(rf"\b{name}\b", str(value), text)
        if not re.fullmatch(r"[\dxa-fA-F.\s()*/+<>-]+", text):
            return None
        try:
            return eval(text.replace("/", "//"), {"__builtins__": {}})
        except (SyntaxError, TypeError, ArithmeticError):
            return None

    def shown(self, d, is_bytes):
        number = self.number(d.path, d.value)
        if number is None:
            return f"`{d.value}`" if d.value else ""
        words = set(d.name.split("_"))
        if words & {"PART", "SHARE"} and "MAX" not in words:
            return f"1 / {number:,}"
        if (words & {"NS", "MS", "SECONDS"} or d.name.endswith("_S")) and "PER" not in words:
            seconds = number / (10**9 if "NS" in words else 1000 if "MS" in words else 1)
            for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
                if seconds >= size:
                    return f"{seconds / size:,.10g} {unit}"
        if "BYTES" in words or is_bytes or re.search(r"\bMIB\b", d.value):
            for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
                if number >= size and number % (size // 4) == 0:
                    return f"{number / size:,.10g} {unit}"
        return f"{number:,}"


# --- The page ---

def rows_of(group, found, values, sizes_set):
    """The definitions that share a comment, and those that are "as" them, are a row."""
    rows = {}
    for d in found:
        if d.group == group:
            rows.setdefault((d.path, d.comment), []).append(d)
    for (path, _), members in rows.items():
        like = [d for d in found if d.like in members]
        names = [f"`{d.name}`" if d.path == path else f"`{d.name}` ({d.path})" for d in members + like]
        # What is counted in bytes says so first, and is the first.
        limits = [values.shown(d, d is members[0] and d.what.startswith("bytes")) +
                  (", set at the start" if d.name in sizes_set else "")
                  for d in members + like if d.kind != "map" or d not in like]
        yield ["<br>".join([members[0].what, ", ".join(names), path]), "; ".join(filter(None, limits)) or "-",
               *(members[0].fields.get(field, "") for field in FIELDS)]


def print_page(found, values, sizes_set):
    print("<!-- SPDX-License-Identifier: GPL-2.0-only -->")
    print("<!-- Made by `make bounds` from comments in the sources: change those. -->")
    print("# Everything that is bounded\n")
    print("Each limit, table, cache, budget and decision that is taken once: how much it is, what happens then, when it is tried")
    print("again, whose share it is, and where that is seen: counters of `profild --status` and of its metrics, causes in a")
    print("recording's summary. *never*, *none* and *not seen* mean what they say. What a user meets first is in")
    print("[Limits](limits.md).")
    for group, (title, text) in GROUPS.items():
        print(f"\n## {title}\n")
        print(*text, sep="\n")
        print("\n| what, and where | limit | then | again | whose share | seen |\n|---|---|---|---|---|---|")
        for row in rows_of(group, found, values, sizes_set):
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    print("\n## No bounds\n\nConstants and flags with such names that bound nothing, by what each is.\n")
    for kind, text in KINDS.items():
        by_path = {}
        for d in found:
            if d.group == kind:
                by_path.setdefault(d.path, []).append(d.name)
        print(f"- {kind}: {text}.", *(f"  {path}: {', '.join(names)}." for path, names in by_path.items()), sep="\n")


def main():
    tree = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found, problems, sizes_set = [], [], set()
    for source in read_sources(tree):
        found += source.definitions()
        sizes_set |= set(re.findall(r"set_max_entries\(bpf->maps\.(\w+)", "\n".join(source.lines)))
        problems += [f'{source.path}:{line}: "Bound:" stands above no definition' for line in source.lost_comments()]
    sizes = {d.value for d in found if d.kind == "array" and d.path.startswith(LASTING)}
    bounded = {d.name: d for d in found if d.comment and d.kind == "constant"}
    kept = []
    for d in found:
        needs = needs_bound(d, bounded, sizes)
        wrong = None
        if not d.comment and needs:
            wrong = ('needs a comment above it, "Bound: WHO: WHAT; then: ...; again: ...; share: ...; seen: ..." or '
                     '"Bound: KIND." (CONTRIBUTING.md, Bounds)')
        elif d.comment and (needs or d.is_first):
            wrong = parse(d)
            kept.append(d)
        elif d.kind == "map" and d.value in bounded:
            d.like = d.value
            kept.append(d)
        if wrong:
            problems.append(f"{d.path}:{d.line}: {d.kind} {d.name}: {wrong}")
    for d in kept:
        named = [other for other in kept if other.name == d.like and (other.group or other.like)] if d.like else []
        named = [other for other in named if other.path == d.path] or named
        if d.like and (len(named) != 1 or not named[0].group):
            problems.append(f"{d.path}:{d.line}: {d.kind} {d.name}: there is no bound of one {d.like}")
        d.like = named[0] if len(named) == 1 else None
    for d in kept:
        d.group = d.group or (d.like.group if d.like and d.like.group in KINDS else None)
    print_page(kept, Values(found), sizes_set)
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    return bool(problems)


sys.exit(main())
