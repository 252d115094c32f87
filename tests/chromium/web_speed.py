# SPDX-License-Identifier: GPL-2.0-only
"""web_speed.py PAGE: how fast Chromium shows a page of profiltool web, and answers what one does in it.

Prints a line for each act: its name, the median of its times in milliseconds from the act until what it has changed was
drawn, the longest, and the median of the page's own CPU time, which others that want the CPUs change less.
"""

import os
import shutil
import statistics
import sys
import tempfile

from browser import Browser

# The time from an act until what it has changed was drawn.
TIMED = """(act) => new Promise((done) => {
	const start = performance.now();
	act();
	requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
ACTS = {
    "search": "() => select({ search: '%s' }, true)",
    "group": "() => select({ first: dimensions[%d %% dimensions.length].key, zoom: 0 })",
    "zoom": "() => select({ zoom: flame.rows.flat()[%d %% flame.rows.flat().length].node })",
    "sandwich": "() => select({ view: 'sandwich', function: %d %% data.names.length })",
    "table": "() => select({ view: 'table', by: ['function', 'image', 'line'][%d %% 3] })",
    "source": "() => select({ view: 'code', function: data.functions[%d %% data.functions.length].frame })",
    "brush": "() => select({ since: duration() * %d / 40, until: duration() * (%d / 40 + 0.2) }, true)",
}


def cpu_ms(b):
    metrics = {m["name"]: m["value"] for m in b.call("Performance.getMetrics")["metrics"]}
    return metrics["TaskDuration"] * 1000


def show(name, times, cpu):
    print("%-9s %8.0f %8.0f %8.0f" % (name, statistics.median(times), max(times), statistics.median(cpu)), flush=True)


def measure(b, page):
    b.call("Performance.enable", timeDomain="threadTicks")
    times, cpu = [], []
    for _ in range(5):
        b.navigate("about:blank")
        before = cpu_ms(b)
        b.navigate("file://" + page)
        times.append(b.eval("""new Promise((done) => { const look = () =>
            document.documentElement.dataset.ready === 'yes'
                ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(look, 5);
            look(); })"""))
        cpu.append(cpu_ms(b) - before)
    show("open", times, cpu)
    for name, act in ACTS.items():
        if (name == "source" and not b.eval("data.functions.length")) or (name == "brush" and not b.eval("hasTimes()")) or \
                (name == "group" and not b.eval("dimensions.length")):
            continue
        b.eval("select({ ...structuredClone(initial) })")
        times, cpu = [], []
        for i in range(15):
            before = cpu_ms(b)
            number = "e.a_s"[i % 5] if name == "search" else i * 7
            times.append(b.eval("(%s)(%s)" % (TIMED, act % ((number,) * act.count("%d") or number))))
            cpu.append(cpu_ms(b) - before)
        show(name, times, cpu)


profile = tempfile.mkdtemp()
browser = Browser(profile)
try:
    print("%-9s %8s %8s %8s" % ("ms", "median", "most", "CPU"))
    measure(browser, os.path.abspath(sys.argv[1]))
    print("%d call paths, %d samples" % tuple(browser.eval("[nodeCount, sampleCount]")))
finally:
    browser.close()
    shutil.rmtree(profile, ignore_errors=True)
