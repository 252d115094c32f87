# SPDX-License-Identifier: GPL-2.0-only
"""flame_graph_speed.py FILE: how fast Chromium shows a flame graph.

Prints "FRAMES OPEN ZOOM RESET SEARCH", the last four in milliseconds: from the start of loading to
the first picture; from a click to the picture of what is zoomed to, the median of many frames; the
same for what shows all again, and for a search for one letter.
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
# A click in the graph, at parts of its width and height.
CLICK = """() => {
	const box = document.getElementById('frames').getBoundingClientRect();
	const at = { clientX: box.left + box.width * %f, clientY: box.top + box.height * %f };
	document.elementFromPoint(at.clientX, Math.min(Math.max(at.clientY, 150), 700))
		.dispatchEvent(new MouseEvent('click', { bubbles: true, ...at }));
}"""
RESET = "() => document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))"
SEARCH = """() => {
	const search = document.querySelector('input');
	search.value = %r;
	search.dispatchEvent(new Event('input'));
}"""


def timed(b, act):
    return b.eval("(%s)(%s)" % (TIMED, act))


def measure(b, file):
    b.open(file)
    shown = b.eval("(%s)(() => {}).then(() => performance.now())" % TIMED)
    count = b.eval("document.querySelectorAll('#frames > g').length")
    zooms, resets = [], []
    for i in range(20):
        zooms.append(timed(b, CLICK % (i / 20 + 0.01, i * 7 % 20 / 20 + 0.01)))
        resets.append(timed(b, RESET))
    search = timed(b, SEARCH % "e")
    print("%d %.0f %.0f %.0f %.0f" % (count, shown, statistics.median(zooms),
                                     statistics.median(resets), search))


profile = tempfile.mkdtemp()
browser = Browser(profile)
try:
    measure(browser, os.path.abspath(sys.argv[1]))
finally:
    browser.close()
    shutil.rmtree(profile, ignore_errors=True)
