# SPDX-License-Identifier: GPL-2.0-only
"""web.py FOLDER: looks at pages of profiltool web with Chromium, and does what a person does.

FOLDER has the pages and what report prints of the same profiles, as tests/cli/web.sh made them.
Prints a line for each fact, "ok: NAME" or "not ok: NAME: WHY".
"""

import json
import os
import re
import shutil
import sys
import tempfile

from browser import Browser

directory = sys.argv[1]

# Where the frames are that are drawn, from the page's own list of them.
FRAMES = """(() => { const box = %s.canvas.getBoundingClientRect();
return %s.rows.flatMap((row, depth) => row.map(({ node, x, end }) => ({
	name: %s.tree.name?.(node) ?? nameOf(%s.tree.frame(node)), depth, x: box.left + (x + end) / 2,
	y: box.top + %s.top(depth) + 9, width: end - x }))); })()"""
ROWS = """Array.from(document.querySelectorAll('#view tbody tr'), (row) =>
	Array.from(row.cells, (cell) => cell.textContent))"""
NOTE = "document.getElementById('note').hidden ? '' : document.getElementById('note').innerText"
LINE = "document.getElementById('selection').innerText"
TAB = "document.querySelector('#tabs [aria-selected=true]').textContent"


def path(name):
    return os.path.join(directory, name)


def check(name, holds, why=""):
    print("ok: " + name if holds else "not ok: %s: %s" % (name, re.sub(r"\s+", " ", repr(why))[:400]),
          flush=True)


def reported(name):
    """{function: its own samples} of a report."""
    with open(path(name)) as file:
        return {f["name"]: f["self"] for f in json.load(file)["functions"] if f["self"]}


def open_page(b, name, address="", **how):
    b.open(path(name) + address, **how)
    while b.eval("document.documentElement.dataset.ready") != "yes":
        pass


def frames(b, picture="flame"):
    return b.eval(FRAMES % ((picture,) * 5))


def frame(b, name, picture="flame"):
    return next(f for f in frames(b, picture) if f["name"] == name)


def own(b):
    """{function: its own samples} of the table."""
    found = {}
    for row in b.eval(ROWS):
        samples = int(re.match(r"[\d,]+", row[0])[0].replace(",", ""))
        if samples:
            found[row[-2]] = samples
    return found


def own_seconds(b):
    """{row: its own seconds} of the table."""
    found = {row[1] if len(row) == 2 else row[-2]: float(row[0].split(" ")[0]) for row in b.eval(ROWS)}
    return {name: seconds for name, seconds in found.items() if seconds}


def choose(b, name, value):
    """Chooses a value of a list."""
    b.eval("(() => { const list = document.getElementById(%s); list.value = %s; list.dispatchEvent(new Event('change')); })()"
           % (json.dumps(name), json.dumps(value)))


def button(b, text):
    place = b.eval("""(() => { const found = Array.from(document.querySelectorAll('button')).find(
        (one) => one.textContent === %s).getBoundingClientRect();
        return [found.left + found.width / 2, found.top + found.height / 2]; })()""" % json.dumps(text))
    b.click(*place)


def drag(b, canvas, since, until, shift=False):
    """Drags over a part of a canvas: shares of its width, at its middle."""
    left, top, width, height = b.eval("""(() => { const box = %s.getBoundingClientRect();
        return [box.left, box.top, box.width, box.height]; })()""" % canvas)
    for kind, share in ("mousePressed", since), ("mouseMoved", until), ("mouseReleased", until):
        b.call("Input.dispatchMouseEvent", type=kind, x=left + share * width, y=top + height / 2,
               button="left", buttons=0 if kind == "mouseReleased" else 1, clickCount=1,
               modifiers=8 if shift else 0)


def check_page(b):
    open_page(b, "spike.html")
    check("the page asks the network for nothing", len(b.requests) == 1, b.requests)
    check("it has no error", not b.complaints, b.complaints)
    check("its scripts are those that its policy names", b.eval("""(() => {
        const script = document.createElement('script');
        script.textContent = 'window.pwned = 1';
        document.body.append(script);
        return window.pwned === undefined; })()"""))
    b.complaints.clear()  # the policy complains of that
    everything = reported("spike.json")
    check("it says how much there is", "samples: %d" % sum(everything.values()) in b.eval(LINE).replace(",", ""),
          b.eval(LINE))

    b.press("3")
    check("3 shows the table", b.eval(TAB) == "Table", b.eval(TAB))
    check("its numbers are those of report", own(b) == everything, own(b))

    b.press("1")
    found = {f["name"]: f["width"] for f in frames(b) if f["depth"] > 1}
    check("the flame graph's widths are the samples",
          abs(found["parse"] / found["send"] - everything["parse"] / everything["send"]) < 0.05, found)
    place = frame(b, "parse")
    b.move(place["x"], place["y"])
    check("a frame below the pointer is explained", "self %d" % everything["parse"] in b.eval(NOTE), b.eval(NOTE))
    b.click(place["x"], place["y"])
    widths = {f["name"]: f["width"] for f in frames(b)}
    check("a click makes a frame as wide as the page", widths["parse"] > 1000 and "send" not in widths, widths)
    b.press("2")
    names = [f["name"] for f in frames(b, "callersPicture")]
    check("and 2 shows what calls it", names[:3] == ["parse", "serve", "main"], names)
    b.press("1")
    b.press("Escape")
    widths = {f["name"]: f["width"] for f in frames(b)}
    check("Escape shows all again", widths["parse"] < 1000 and "send" in widths, widths)

    b.press("/")
    b.type("compress")
    share = "%.2f %%" % (everything["compress"] * 100 / sum(everything.values()))
    check("what is searched is summed up", "found: " + share in b.eval(LINE), b.eval(LINE))
    b.press("Escape")
    check("Escape ends the search", "found" not in b.eval(LINE), b.eval(LINE))

    b.eval("flame.canvas.focus()")
    for key in "ArrowDown", "ArrowDown", "ArrowDown":
        b.press(key)
    said = b.eval("document.getElementById('said').textContent")
    check("arrows go from frame to frame, and say where they are", said.startswith("serve,") or said.startswith("main,")
          or said.startswith("web 17"), said)
    b.press("?")
    check("? lists the keys", b.eval("document.getElementById('keys').open"))
    b.press("Escape")
    b.eval("document.getElementById('keys').close()")
    dark = b.eval("document.documentElement.dataset.theme")
    b.press("d")
    check("d makes it dark", dark == "light" and b.eval("document.documentElement.dataset.theme") == "dark", dark)
    check("and there is no error", not b.complaints, b.complaints)


def check_times(b):
    open_page(b, "spike.html", "#view=table")
    drag(b, "areas", 2 / 6, 3 / 6)
    seconds = b.eval("[selection.since, selection.until]")
    check("dragging selects an interval", abs(seconds[0] - 2000) < 20 and abs(seconds[1] - 3000) < 20, seconds)
    b.eval("select({ since: 2000, until: 3000 })")
    check("the table is then of that", own(b) == reported("second.json"), own(b))
    address = b.eval("location.href")
    open_page(b, "spike.html", address[address.index("#"):])
    check("the address shows a colleague the same", own(b) == reported("second.json"), own(b))
    drag(b, "areas", 4 / 6, 5 / 6, shift=True)
    check("with Shift it compares", "against" in b.eval(LINE) and any("+" in row[2] for row in b.eval(ROWS)), b.eval(LINE))
    b.press("Escape")
    drag(b, "heat", 0.5, 0.6)
    seconds = b.eval("[selection.since, selection.until]")
    check("in the heat map, too", seconds[0] is not None and 3000 <= seconds[0] < seconds[1] <= 4000, seconds)
    b.press("Escape")
    b.eval("select({ by: 'process' })")
    button(b, "burst 20")
    b.eval("select({ by: 'function' })")
    check("a process is chosen by its row", own(b) == reported("burst.json"), own(b))
    button(b, "process burst 20 ×")
    check("and taken back by its button", own(b) == reported("spike.json"), own(b))
    check("nothing of it was an error", not b.complaints, b.complaints)
    open_page(b, "archive.html", "#view=table")
    check("a page of the archive has its times", b.eval("hasTimes()") and own(b) == reported("spike.json"), own(b))
    drag(b, "areas", 0.02, 0.06)  # of a minute, of which six seconds have ticks
    check("of which an interval can be chosen", 0 < sum(own(b).values()) < sum(reported("spike.json").values()), own(b))
    open_page(b, "part.html", "#view=table")
    check("a page of an interval has that alone", own(b) == {"compress": 50, "parse": 5, "send": 2}, own(b))
    open_page(b, "spike.html", "#since=9e9&until=x&zoom=-7&function=999999&value=77&view=none&label.unit=none")
    check("an address that is wrong does no harm", not b.complaints and b.eval(TAB) == "Flame graph", b.complaints)


def check_hostile(b):
    open_page(b, "hostile.html", "#view=table")
    check("names are text", b.eval("window.pwned === undefined") and not b.eval(
        "document.querySelectorAll('b, img').length"))
    names = [row[-2] for row in b.eval(ROWS)]
    check("and are shown as they are", "</script><script>window.pwned=1</script>" in names and
          "bell\\x07 escape\\x1b[31m" in names and "bytes \\xff\\xfe" in names and
          "reversed \\xe2\\x80\\xae line\\xe2\\x80\\xa8" in names, names)
    check("a megabyte of a name is cut", max(map(len, names)) < 3000, max(map(len, names)))
    totals = {row[-2]: row[1] for row in b.eval(ROWS)}
    check("recursion counts once", totals["recursive"].startswith("5") and totals["main"].startswith("100 "), totals.get("recursive"))
    b.press("1")
    check("and drawn", len(frames(b)) > 8 and not b.complaints, b.complaints)


def check_labels(b):
    open_page(b, "labels.html", "#value=2")
    shown = ["[no query]", "<img/src=x/onerror=window.pwned=1>", "SELECT\\xe2\\x80\\xaex\\x1b[31m"]
    check("the graph begins with processes", [f["name"] for f in frames(b) if f["depth"] == 1] == ["cache 20", "db 17"], frames(b))
    b.eval("document.getElementById('first').focus()")
    choose(b, "first", "query")
    check("or with another label", [f["name"] for f in frames(b) if f["depth"] == 1] == sorted(shown), frames(b))
    check("whose choice keeps the focus", b.eval("document.activeElement.id") == "first", b.eval("document.activeElement.id"))
    place = frame(b, shown[2])
    b.move(place["x"], place["y"])
    check("a frame of it is explained", b.eval(NOTE).startswith(shown[2]) and "total 0.400 s" in b.eval(NOTE), b.eval(NOTE))
    b.click(place["x"], place["y"])
    check("and is as wide as the page after a click", {f["name"] for f in frames(b)} == {"all", shown[2], "main", "scan", "[blocked: lock]"}, frames(b))
    address = b.eval("location.hash")
    open_page(b, "labels.html", address)
    check("the address shows a colleague the same frames", {f["name"] for f in frames(b)} ==
          {"all", shown[2], "main", "scan", "[blocked: lock]"}, frames(b))
    b.press("Escape")
    b.press("4")
    choose(b, "lanes", "query")
    rows = b.eval(ROWS)
    check("states are those of a label, too", [row[0] for row in rows] == [shown[2], shown[1], shown[0]] and
          rows[0][2:] == ["0.100 s", "", "0.300 s", ""], rows)
    b.press("3")
    b.eval("document.getElementById('has').focus()")
    b.type("select")
    check("a part of a label's text chooses samples", set(own_seconds(b)) == {"scan", "[blocked: lock]"} and "query has select" in b.eval(LINE),
          (own_seconds(b), b.eval(LINE)))
    b.type("/x")
    check("of none, there are no rows", not b.eval(ROWS) and "No rows." in b.eval("document.getElementById('view').innerText"))
    button(b, "query has select/x ×")
    check("and it is taken back by its button", "find" in own_seconds(b) and b.eval("document.getElementById('has').value") == "")
    choose(b, "where", "</script><b>")
    choose(b, "by", "</script><b>")
    check("a label's name is text, as its values are", "<b>b</b>" in own_seconds(b) and not b.eval("document.querySelectorAll('b, img').length") and
          b.eval("window.pwned === undefined"), own_seconds(b))
    check("and none of that was an error", not b.complaints, b.complaints)


def check_diff(b):
    open_page(b, "diff.html", "#view=table")
    rows = {row[-2]: row[-3] for row in b.eval(ROWS)}
    check("changes of shares", rows["read"] == "-10.00" and rows["solve"] == "+25.00" and rows["new"] == "+1.00", rows)
    check("what does not differ is faint", b.eval("""Array.from(document.querySelectorAll('td.faint'),
        (cell) => cell.parentElement.cells[cell.cellIndex + 1].textContent).sort()""") == ["main", "parse", "same"], rows)
    check("and how many rows differ is said", "4 of 6 differ by more than chance" in b.eval("document.querySelector('caption').textContent"),
          b.eval("document.querySelector('caption').textContent"))
    b.press("1")
    widths = {f["name"]: f["width"] for f in frames(b)}
    check("a frame is as wide as the mean of both shares", all(
        abs(widths[name] / widths["all"] - share) < 0.005 for name, share in
        (("solve", 0.225), ("legacy", 0.079), ("parse", 0.48), ("same", 0.211))), widths)


def check_calls(b):
    open_page(b, "calls.html", "#view=table")
    with open(path("calls.json")) as file:
        totals = {f["name"]: f["total"] for f in json.load(file)["functions"]}
    shown = {row[-2]: int(row[1].split()[0].replace(",", "")) for row in b.eval(ROWS)}
    check("without stacks, totals are those of report", shown == totals, (shown, totals))
    button(b, "right")
    tables = b.eval("""Array.from(document.querySelectorAll('#view table'), (table) =>
        [table.caption.textContent, Array.from(table.tBodies[0].rows, (row) =>
            Array.from(row.cells, (cell) => cell.textContent.trim().split(/\\s/)[0]).slice(0, 3))])""")
    check("callers are those whose calls were counted", tables[0][0].startswith("Callers of right") and
          tables[0][1] == [["5", "500", "main"], ["3", "50", "right"]], tables)
    check("and callees", tables[1][1] == [["7", "100", "leaf"], ["3", "50", "right"]], tables)
    button(b, "leaf")
    check("from which one goes on", "Callers of leaf" in b.eval("document.getElementById('view').innerText"))
    b.press("1")
    check("the flame graph says what it lacks", "no stacks" in b.eval("document.getElementById('view').innerText"))
    open_page(b, "calls_diff.html", "#view=sandwich&function=%d" % b.eval("data.names.indexOf('right')"))
    check("two of these are compared", all(row[2] == "0.00" for row in b.eval(ROWS)), b.eval(ROWS))
    check("and nothing of it was an error", not b.complaints, b.complaints)


def counted(rows):
    """{(address or line, text): (self, total)} of a listing's rows that have samples."""
    return {(row[2], row[3].replace("→", "").strip()): (row[0].replace(",", ""), row[1].replace(",", ""))
            for row in rows if len(row) == 4 and row[1]}


def check_code(b):
    hot = json.load(open(path("hot.json")))
    open_page(b, "code.html", "#view=table")
    button(b, "hot")
    button(b, "Source")
    shown = counted(b.eval(ROWS))
    lines = {(str(l["line"]) if "inlined" not in l else "", l["source"].strip() if "inlined" not in l else
              "> code.c:%d (inlined mix)  %s" % (l["inlined_line"], l["source"].strip())):
             (str(l["self"] or ""), str(l["total"])) for l in hot["lines"]}
    check("source lines have the samples that annotate prints", shown == lines, (shown, lines))
    check("source is text", b.eval("window.pwned === undefined && !document.querySelector('td b')") and
          any("<b>bold</b>" in text for _, text in shown), shown)
    b.eval("document.getElementById('code-kind').focus()")
    b.eval("select({ code: 'instructions' })")
    shown = {"0x" + place: (int(own), int(total)) for (place, _), (own, total) in counted(b.eval(ROWS)).items() if place}
    instructions = {i["address"]: (i["self"], i["total"]) for i in hot["instructions"] if i["total"]}
    check("and so have instructions", shown == instructions, (shown, instructions))
    address = b.eval("location.href")
    open_page(b, "code.html", address[address.index("#"):])
    check("the address shows a colleague the same code", b.eval(TAB) == "Source" and len(counted(b.eval(ROWS))) >= len(shown))
    b.press("Escape")
    names = [row[2] for row in b.eval(ROWS)]
    check("without a function, those that have code are listed", names[:1] == ["hot"] and "main" in names, names)
    button(b, "main")
    b.eval("select({ code: 'source' })")
    main = {line: int(total) for (line, _), (own, total) in counted(b.eval(ROWS)).items()}
    calls = {str(l["line"]): l["total"] for l in json.load(open(path("main.json")))["lines"] if l["total"]}
    check("a line that calls has what that cost", main == calls, (main, calls))
    check("none of that was an error", not b.complaints, b.complaints)

    open_page(b, "no_source.html", "#view=code")
    button(b, "hot")
    rows = b.eval(ROWS)
    check("--no-source: instructions alone", len(rows) >= len(instructions) and "bold" not in str(rows) and
          not b.eval("data.sources.length"), rows)
    open_page(b, "no_code.html", "#view=code")
    check("--no-code: the page says so", "--no-code" in b.eval("document.getElementById('view').innerText"))
    open_page(b, "half.html", "#view=table")
    button(b, "cold")
    b.press("s")
    text = b.eval("document.getElementById('view').innerText")
    check("code that is not there: how to see it", "profiltool annotate 'cold'" in text, text)


def read_aloud(b):
    """What a screen reader is given: [(role, name, {property: value})]."""
    return [(n["role"]["value"], n.get("name", {}).get("value", ""),
             {p["name"]: p["value"].get("value") for p in n.get("properties", [])})
            for n in b.call("Accessibility.getFullAXTree")["nodes"] if not n["ignored"] and "role" in n]


def check_accessible(b):
    open_page(b, "spike.html")
    b.call("Accessibility.enable")
    for view in "flame", "sandwich", "table", "code":
        b.eval("select({ view: '%s', function: data.names.indexOf('parse') })" % view)
        nodes = read_aloud(b)
        unnamed = [n for n in nodes if n[2].get("focusable") and not n[1].strip() and n[0] not in ("RootWebArea", "scrollable")]
        check("%s: what can be reached has a name" % view, not unnamed, unnamed)
        chosen = [n[1] for n in nodes if n[0] == "tab" and n[2].get("selected")]
        panels = [n[1] for n in nodes if n[0] == "tabpanel"]
        check("%s: its tab is the selected one, and names the view" % view, len(chosen) == 1 and panels == chosen, (chosen, panels))
    open_page(b, "chains.html")
    for moment in -1, 0:
        b.eval("select({ view: 'why', moment: %d })" % moment)
        unnamed = [n for n in read_aloud(b) if n[2].get("focusable") and not n[1].strip() and n[0] not in ("RootWebArea", "scrollable")]
        check("why, %s: what can be reached has a name" % ("a list" if moment < 0 else "a chain"), not unnamed, unnamed)
    open_page(b, "spike.html", "#view=table")
    nodes = read_aloud(b)
    heads = [n[1] for n in nodes if n[0] == "columnheader"]
    check("a table has a name, and heads of its columns", any(n[0] == "table" and n[1].startswith("samples by function")
          for n in nodes) and heads == ["Self", "Total", "Function", "Image"], [n for n in nodes if "able" in n[0]] + heads)
    cells = [n[1] for n in nodes if n[0] == "cell"]
    check("and cells", len(cells) == 4 * len(b.eval(ROWS)) and "compress" in cells, cells)
    check("what is said of steps is a live region", any(n[0] == "status" for n in nodes))

    b.eval("document.activeElement.blur()")
    order = []
    for _ in range(16):
        b.press("Tab")
        order.append(b.eval("document.activeElement.id || document.activeElement.textContent"))
    check("Tab goes through the page as it is read", [name for name in order if name] == [
        "value", "search", "where", "has", "back", "reset", "theme", "help", "areas-by", "tab-table", "by", "Self", "Total", "Function"], order)
    b.eval("document.getElementById('tab-table').focus()")
    b.press("ArrowLeft")
    check("arrows go from tab to tab", b.eval(TAB) == "Callers and callees" and
          b.eval("document.activeElement.id") == "tab-sandwich", b.eval("document.activeElement.id"))
    b.press("1")
    b.eval("flame.canvas.focus()")
    for key in "ArrowDown", "ArrowDown", "Enter":
        b.press(key)
    check("what is chosen by a key keeps the focus", b.eval("document.activeElement === flame.canvas && selection.zoom > 0"))
    b.press("s")
    check("and s shows its source, or why there is none", b.eval(TAB) == "Source")
    b.press("3")
    b.eval("document.querySelector('#view td button').focus()")
    b.eval("select({ search: '/./' })")
    check("a row that is made anew keeps the focus", b.eval("document.activeElement.matches('td button')"))
    check("and none of that was an error", not b.complaints, b.complaints)


def check_chains(b):
    with open(path("turns.json")) as file:
        slowest = json.load(file)["slowest"][0]
    open_page(b, "spike.html")
    check("without chains there is no such tab", "Why" not in b.eval("document.getElementById('tabs').innerText"))
    open_page(b, "chains.html", "#view=why")
    b.eval("select({ process: data.why.processes.names.findIndex((name) => data.texts[name] === 'front') })")
    check("the slowest turn of a process is its first row", b.eval(ROWS)[0][0] == "%.3f" % (slowest["ns"] / 1e6), b.eval(ROWS)[:1])
    b.eval("document.querySelector('#view td button').focus()")
    b.press("Enter")
    rows = [row for row in b.eval(ROWS) if len(row) == 3]
    check("Enter opens its chain, which is a tree", [row[0] for row in rows[:4]] == ["400.000", "380.000", "300.000", "130.000"], rows[:4])
    lanes = b.eval("Array.from(document.querySelectorAll('#view canvas'), (lane) => lane.ariaLabel.split(':')[0])")
    check("with a lane for each of its threads", sorted(lanes) == ["back (18)", "batch (21)", "front (17)", "holder (19)"], lanes)
    b.eval("document.querySelector('#view .toggle').focus()")
    b.press("Enter")
    check("a part is closed by its button", len([row for row in b.eval(ROWS) if len(row) == 3]) < len(rows) and
          b.eval("document.activeElement.ariaExpanded") == "false")
    b.press("Enter")
    check("and opened again", [row for row in b.eval(ROWS) if len(row) == 3] == rows, b.eval(ROWS))
    b.eval("document.querySelector('#view canvas').focus()")
    for key in "ArrowRight", "ArrowRight":
        b.press(key)
    said = b.eval("document.getElementById('said').textContent")
    check("arrows go from stretch to stretch of a lane, and say what it is", "blocked: socket" in said and "380.000 ms" in said and
          "woken by back" in said, said)
    b.press("Enter")
    check("and Enter shows its chain", b.eval("document.querySelector('#view h2').textContent").startswith("A wait of 380.000 ms of front"),
          b.eval("document.querySelector('#view h2').textContent"))
    button(b, "All turns and waits")
    place = frame(b, "holder on CPU", "blocking")
    b.move(place["x"], place["y"])
    check("the picture of what blocked it has what the holder did", "130.000 ms" in b.eval(NOTE), b.eval(NOTE))
    b.click(place["x"], place["y"])
    check("and can be chosen from", b.eval("selection.part > 0") and "front" in [f["name"] for f in frames(b, "blocking")])
    b.press("Escape")
    b.press("4")
    x, y = b.eval("""(() => { const row = [...document.querySelectorAll('#view tbody tr')].find((one) => one.textContent.startsWith('holder'));
        const box = row.querySelector('canvas').getBoundingClientRect();
        return [box.left + box.width * 0.2, box.top + box.height / 2]; })()""")
    b.click(x, y)
    check("a click on a wait among the states shows its chain", b.eval(TAB) == "Why" and
          b.eval("document.querySelector('#view h2').textContent").startswith("A wait of 120.000 ms of holder"),
          b.eval("document.getElementById('view').innerText")[:200])
    open_page(b, "chains.html", "#view=why&process=9999&moment=0.5&part=-3")
    check("a wrong address does no harm to it, either", b.eval(TAB) == "Why" and not b.complaints, b.complaints)


def check_short(b):
    open_page(b, "short.html")
    check("less than five seconds have no heat map", b.eval("heat.hidden"))


def check_small(b):
    for moment in -1, 0:
        open_page(b, "chains.html", "#view=why&moment=%d" % moment, width=400, height=700)
        check("400 pixels, why, %s: nothing is beside the window" % ("a list" if moment < 0 else "a chain"),
              b.eval("document.documentElement.scrollWidth") <= 400, b.eval("document.documentElement.scrollWidth"))
    for scheme in "light", "dark":
        open_page(b, "spike.html", width=400, height=700, scheme=scheme)
        for view in "flame", "sandwich", "table", "code":
            b.eval("select({ view: '%s', function: 1 })" % view)
            check("400 pixels, %s, %s: nothing is beside the window" % (scheme, view),
                  b.eval("document.documentElement.scrollWidth") <= 400,
                  b.eval("document.documentElement.scrollWidth"))


profile = tempfile.mkdtemp(dir=directory)
browser = Browser(profile)
try:
    for part in check_page, check_times, check_hostile, check_labels, check_diff, check_calls, check_code, check_chains, check_accessible, check_short, check_small:
        part(browser)
finally:
    browser.close()
    shutil.rmtree(profile, ignore_errors=True)
