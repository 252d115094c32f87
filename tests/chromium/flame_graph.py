# SPDX-License-Identifier: GPL-2.0-only
"""flame_graph.py FOLDER: looks at flame graphs with Chromium, and does what a person does.

FOLDER has new.folded and old.folded, and what tests/cli/flamegraph.sh drew of them. Prints a line
for each fact, "ok: NAME" or "not ok: NAME: WHY". What a graph must show is computed here, from the
stacks.
"""

import collections
import os
import re
import shutil
import sys
import tempfile
import time

from browser import Browser

FRAMES = """Array.from(document.querySelectorAll('#frames > g'), (g) => {
	const [title, rect, text] = g.children, r = rect.getBoundingClientRect();
	return { name: title.textContent.split('\\n')[0], left: r.left, top: r.top, width: r.width,
		 text: text ? text.textContent : '', fits: !text || text.getBoundingClientRect().width <= r.width - 3,
		 match: rect.getAttribute('fill') === '#c026d3', back: getComputedStyle(rect).fill };
}).filter((frame) => frame.width > 0.3)"""
STATUS = "document.querySelector('[role=status]').textContent"

directory = sys.argv[1]


def path(name):
    return os.path.join(directory, name)


def check(name, holds, why=""):
    print("ok: " + name if holds else "not ok: %s: %s" % (name, re.sub(r"\s+", " ", repr(why))[:400]),
          flush=True)


# --- What there is to be seen ---

def stacks_of(file):
    """[(names from the root, count)]; control characters and wrong bytes as profiltool shows them."""
    found = []
    with open(path(file), "rb") as lines:
        for line in lines:
            names, count = line.rstrip(b"\n").rsplit(b" ", 1)
            found.append(([visible(n) for n in names.split(b";")], int(count)))
    return found


def visible(name):
    text = name.decode("utf-8", "surrogateescape")
    text = re.sub("[\x00-\x1f\x7f-\x9f\u2028-\u202e]",
                  lambda m: "".join("\\x%02x" % b for b in m[0].encode()), text)
    text = re.sub("[\udc80-\udcff]", lambda m: "\\x%02x" % (ord(m[0]) - 0xdc00), text)
    return re.sub("[\ufffe\uffff]", "\ufffd", text)


def tree_of(stacks, inverted=False):
    """[(level, name, total)] of all frames, from the root on, the largest first."""
    totals = collections.Counter()
    for names, count in stacks:
        steps = ["all"] + (names[::-1] if inverted else names)
        for i in range(len(steps)):
            totals[tuple(steps[:i + 1])] += count
    children = collections.defaultdict(list)
    for node in totals:
        children[node[:-1]].append(node)

    def walk(node):
        yield len(node), node[-1], totals[node]
        for child in sorted(children[node], key=lambda c: (-totals[c], os.fsencode(c[-1]))):
            yield from walk(child)
    return list(walk(("all",)))


NEW, OLD = stacks_of("new.folded"), stacks_of("old.folded")
ALL = sum(count for _, count in NEW)


def share(matches):
    """Of the samples that have a frame that matches."""
    found = sum(count for names, count in NEW if any(matches(n) for n in names))
    return "%.2f %%" % (found * 100 / ALL)


# --- What a person does ---

def frames(b):
    return b.eval(FRAMES)


def frame(b, name):
    return next(f for f in frames(b) if f["name"] == name)


def click(b, name, act=None):
    f = frame(b, name)
    (act or b.click)(f["left"] + f["width"] / 2, f["top"] + 8)


def search(b, text):
    b.press("/")
    b.type(text)
    return b.eval(STATUS)


# --- The facts ---

def check_quiet(b, name):
    check(name + ": asks the network for nothing", len(b.requests) == 1, b.requests)
    check(name + ": has no error and opens no dialog", not b.complaints, b.complaints)


def check_shape(b, file, inverted=False, icicle=False):
    b.open(path(file))
    found, expected = frames(b), tree_of(NEW, inverted)
    whole = found[0]["width"]
    check(file + ": names and levels are those of the stacks",
          [(abs(round((f["top"] - found[0]["top"]) / 18)) + 1, f["name"]) for f in found] == [e[:2] for e in expected],
          [(f, e) for f, e in zip(found, expected) if f["name"] != e[1]])
    check(file + ": widths are the totals",
          all(abs(f["width"] + 0.7 - (whole + 0.7) * e[2] / ALL) < 0.3 for f, e in zip(found, expected)) and whole > 1000,
          [f["width"] for f in found])
    check(file + ": the root is " + ("above" if icicle else "below"), (found[0]["top"] < found[-1]["top"]) == icicle)
    ends = collections.defaultdict(float)
    apart = True
    for f in found:
        apart &= f["left"] > ends[f["top"]]
        ends[f["top"]] = f["left"] + f["width"]
    check(file + ": no frame lies over another", apart)
    check_quiet(b, file)


def check_zoom(b, file):
    b.open(path(file))
    before = frames(b)
    click(b, "compute")
    after = {f["name"]: f for f in frames(b)}
    check(file + ": a click zooms to the whole width",
          abs(after["compute"]["width"] - before[0]["width"]) < 0.1, after["compute"])
    check(file + ": what the frame stands on stays, what is beside it goes",
          abs(after["main"]["width"] - before[0]["width"]) < 0.1 and "parse" not in after, list(after))
    check(file + ": what stands on it grows as much",
          abs(after["solve"]["width"] / after["compute"]["width"] - 20 / 35) < 0.01)
    check(file + ": names are as long as there is room", after["solve"]["text"] == "solve" and all(
        f["fits"] for f in after.values()), after)
    check(file + ": the status has percent of all and of the zoomed frame",
          "35 samples, 35.00 %" in b.eval(STATUS) and
          "100.00 % of the zoomed frame" in b.eval(STATUS), b.eval(STATUS))
    b.press("Escape")
    check(file + ": Escape shows all again", frames(b) == before)
    click(b, "parse")
    click(b, "all")
    check(file + ": a click on the root shows all again", frames(b) == before)
    check_quiet(b, file + " zoomed")


def check_status(b, file):
    b.open(path(file))
    f = frame(b, "solve")
    b.move(f["left"] + 5, f["top"] + 5)
    status = b.eval(STATUS)
    check(file + ": the status tells the frame under the pointer",
          status.startswith("solve · ") and "20 samples, 20.00 %; self 17 samples, 17.00 %" in status, status)


def check_search(b, file):
    b.open(path(file))
    found = search(b, "read")
    check(file + ": / and a text: each sample counts once",
          found == share(lambda n: "read" in n.lower()) + " match", found)
    check(file + ": what matches is marked",
          {f["name"] for f in frames(b) if f["match"]} == {"read", "Read_all"},
          [f["name"] for f in frames(b) if f["match"]])
    click(b, "main")
    check(file + ": it stays marked when zoomed",
          sum(f["match"] for f in frames(b)) == sum(e[1] in ("read", "Read_all") for e in tree_of(NEW)))
    b.press("/")
    b.press("Escape")
    check(file + ": Escape there takes it back",
          b.eval(STATUS) == "" and not any(f["match"] for f in frames(b)))
    b.press("Escape")
    for text, matches in (("Read", lambda n: "read" in n.lower()),
                          ("push_back(int", lambda n: "push_back(int" in n),
                          ("[", lambda n: "[" in n),
                          ("/^read$/", lambda n: n.lower() == "read"),
                          ("/re.*all|^parse/", lambda n: re.search("re.*all|^parse", n.lower())),
                          ("<script>", lambda n: "<script>" in n)):
        found = search(b, text)
        check("%s: search for %s" % (file, text), found == share(matches) + " match", found)
        b.press("Escape")
    for text in "nowhere", "/(/", "/^all$/":
        check("%s: %s is nowhere" % (file, text), search(b, text) == "no match", b.eval(STATUS))
        b.press("Escape")
    b.press("f", control=True)
    check(file + ": Ctrl-F searches", b.eval("document.activeElement.localName") == "input")
    check_quiet(b, file + " searched")


def check_names(b, file):
    b.open(path(file))
    hostile = [n for names, _ in NEW for n in names if not n.replace("_", "").isalnum()]
    there = [f["name"] for f in frames(b)]
    check(file + ": hostile names stand there literally",
          len(hostile) > 8 and all(n in there for n in hostile), set(hostile) - set(there))
    check(file + ": and are no markup",
          b.eval("document.querySelectorAll('#frames *:not(g, title, rect, text), img, iframe').length") == 0 and
          b.eval("document.scripts.length" if file.endswith(".html") else "1") == 1 and not b.eval("window.pwned"))
    check(file + ": text fits its frame", all(f["fits"] for f in frames(b)) and
          any("\u2026" in f["text"] for f in frames(b)), [f for f in frames(b) if not f["fits"]])


def check_looks(b, file):
    b.call("Emulation.setTouchEmulationEnabled", enabled=True)
    b.open(path(file), width=400)
    check(file + ": fits a narrow window",
          b.eval("document.documentElement.scrollWidth <= 400"),
          b.eval("document.documentElement.scrollWidth"))
    click(b, "compute", b.tap)
    end = time.monotonic() + 5  # it becomes a click once it is no other gesture
    while frame(b, "compute")["width"] < frames(b)[0]["width"] - 0.1 and time.monotonic() < end:
        b.eval("new Promise(requestAnimationFrame)")
    check(file + ": a tap zooms", abs(frame(b, "compute")["width"] - frames(b)[0]["width"]) < 0.1)
    b.call("Emulation.setTouchEmulationEnabled", enabled=False)
    b.open(path(file), height=120)
    check(file + ": a high graph begins at its root, below the search", b.eval("scrollY") > 0 and
          b.eval("document.querySelector('input').getBoundingClientRect().top") < 8 and
          frame(b, "all")["top"] < 120, (b.eval("scrollY"), frame(b, "all")))


def check_without_scripts(b):
    for file in "flame.svg", "flame.html":
        b.open(path(file), scripts=False)
        # No scripts: what is there is read from the document's nodes.
        node = b.call("DOM.getDocument", depth=-1)["root"]
        text = b.call("DOM.getOuterHTML", nodeId=node["nodeId"])["outerHTML"]
        check(file + ": a frame for each without scripts",
              text.count("<rect") == len(tree_of(NEW)) + 1, text.count("<rect"))
        check(file + ": names without scripts",
              ">compute</text>" in text and "<title>solve\n" in text and ">&lt;/script&gt;" in text)


def check_diff(b, file):
    b.open(path(file))
    old = {(level, name): total for level, name, total in tree_of(OLD)}
    old_all = sum(count for _, count in OLD)
    wrong = []
    for (level, name, total), f in zip(tree_of(NEW), frames(b)):
        more = total / ALL - old.get((level, name), 0) / old_all
        red, _, blue = [int(c) for c in re.findall(r"\d+", f["back"])[:3]]
        if name != f["name"] or (more > 0.003) != (red > blue + 3) or (more < -0.003) != (blue > red + 3):
            wrong.append((name, more, f["back"]))
    check(file + ": red where the share grew, blue where it shrank", not wrong, wrong)
    f = frame(b, "solve")
    b.move(f["left"] + 5, f["top"] + 5)
    status = b.eval(STATUS)
    check(file + ": the status tells both shares", "20 samples, 20.00 %; old 20 samples, 10.00 %;" in status, status)
    notes = b.eval("document.querySelector('svg').textContent")
    check(file + ": tells what is gone",
          "1 frame of the old profile is gone; the largest had 15.00 %: legacy" in notes, notes)
    check_quiet(b, file)


def check_all(b):
    check_shape(b, "flame.html")
    check_shape(b, "flame.svg")
    check_shape(b, "icicle.html", icicle=True)
    check_shape(b, "inverted.svg", inverted=True)
    check_shape(b, "both.svg", inverted=True, icicle=True)
    for file in "flame.html", "flame.svg":
        check_zoom(b, file)
        check_status(b, file)
        check_search(b, file)
        check_names(b, file)
        check_looks(b, file)
    check_without_scripts(b)
    check_diff(b, "diff.html")
    check_diff(b, "diff.svg")


profile = tempfile.mkdtemp()
browser = Browser(profile)
try:
    check_all(browser)
finally:
    browser.close()
    shutil.rmtree(profile, ignore_errors=True)
