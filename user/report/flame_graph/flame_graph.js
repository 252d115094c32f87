// SPDX-License-Identifier: 0BSD
/*
 * Zoom and search in a flame graph: flame_graph.c embeds this script in each SVG or HTML file that it
 * writes, behind the picture, which viewers that run no scripts show as it is. Of each frame, the picture
 * has a group: its title (name, image, samples), its rectangle and, if there is room, its name.
 *
 * Names come from untrusted files and processes: they become text, never markup.
 */
"use strict";
(() => {
const SVG = "http://www.w3.org/2000/svg", XHTML = "http://www.w3.org/1999/xhtml";
const MARGIN = 10, ROW = 18, SEAM = 0.7, GLYPH = 6.7, LEAST_GLYPHS = 7; // pixels, as in the picture
const LEAST = 0.5; // pixels: narrower frames are not shown
const BAR = 32; // pixels: height of the line with the search, which stays on top of the window
const MATCH = "#c026d3", MATCH_TEXT = "#fff";

const svg = document.querySelector("svg"), height = svg.viewBox.baseVal.height;
const frames = Array.from(document.querySelectorAll("#frames > g"), (group) => {
	const [title, rect, text] = group.children, part = Number(rect.getAttribute("width"));

	return {
		group, rect, text, name: title.textContent.split("\n")[0], says: title.textContent.replaceAll("\n", " · "),
		x: Number(rect.getAttribute("x")), width: part < SEAM * 4 ? part * 1.25 : part + SEAM,
		y: Number(rect.getAttribute("y")), fill: rect.getAttribute("fill"), matches: false,
	};
});
const [root] = frames, numbers = new Map(frames.map((frame, i) => [frame.group, i]));
frames.forEach((frame) => { frame.level = Math.abs(frame.y - root.y) / ROW; });
const whole = Number((/(-?[\d.]+) %/).exec(root.says)[1]); // percent of all samples that the picture has
let zoomed = root;

function add(into, name, attributes, namespace = SVG) {
	const made = document.createElementNS(namespace, name);

	for (const [attribute, value] of Object.entries(attributes))
		made.setAttribute(attribute, value);
	into.append(made);
	return made;
}

const bar = add(svg, "g", { "font-size": 12 });
add(bar, "rect", { width: "100%", height: BAR, fill: "#f3f4f6" });
const said = add(bar, "text", { x: 2 * MARGIN + 260, y: 20, role: "status" });
const box = add(bar, "foreignObject", { x: MARGIN, y: 4, width: 250, height: BAR - 4 });
const search = add(box, "input", { type: "search", placeholder: "Search: text or /regex/   (/, Ctrl-F)", "aria-label": "Search",
	spellcheck: "false", autocomplete: "off" }, XHTML);
search.style.cssText = "box-sizing: border-box; width: 250px; height: 24px; font: 12px sans-serif";
let found = ""; // what the search says

function say(frame) {
	const part = zoomed === root || !frame ? "" : ` · ${(frame.width * 100 / zoomed.width).toFixed(2)} % of the zoomed frame`;

	said.textContent = found + (found && frame ? " · " : "") + (frame ? frame.says + part : "");
}

/** A long name loses its middle: ends distinguish neighbours. */
function shorten(name, glyphs) {
	const letters = Array.from(name);

	if (letters.length <= glyphs)
		return name;
	return glyphs < LEAST_GLYPHS ? "" : letters.slice(0, glyphs >> 1).join("") + "…" +
		letters.slice(letters.length - ((glyphs - 1) >> 1)).join("");
}

/** Shows the zoomed frame and those that it stands on as wide as the window, and the others in proportion. */
function draw() {
	const room = svg.getBoundingClientRect().width - 2 * MARGIN, scale = room / zoomed.width;

	svg.setAttribute("viewBox", `0 ${-BAR} ${room + 2 * MARGIN} ${height + BAR}`);
	for (const frame of frames) {
		const left = Math.max(0, (frame.x - zoomed.x) * scale);
		const width = Math.min(room, (frame.x + frame.width - zoomed.x) * scale) - left;
		const shown = width < LEAST ? 0 : width, name = shorten(frame.name, Math.floor(shown / GLYPH) - 1);
		set(frame.rect, "x", left + MARGIN);
		set(frame.rect, "width", shown - Math.min(SEAM, shown / 5));
		set(frame.rect, "fill", frame.matches ? MATCH : frame.fill);
		set(frame.rect, "opacity", frame.level < zoomed.level ? 0.6 : 1);
		if (!frame.text && !name)
			continue;
		frame.text ??= add(frame.group, "text", { y: frame.y + 13 });
		set(frame.text, "x", left + MARGIN + 4);
		set(frame.text, "fill", frame.matches ? MATCH_TEXT : "#000");
		frame.text.textContent = name;
	}
}

/** Browsers take long for attributes that are set, even to what they are. */
function set(element, name, value) {
	if (element.getAttribute(name) !== String(value))
		element.setAttribute(name, value);
}

function zoom(frame) {
	zoomed = frame;
	draw();
	say(frame);
}

/** Marks what has the text in its name, or matches the expression. A stack counts once. */
function find() {
	const text = search.value, expression = (/^\/(.+)\/$/).exec(text), small = text.toLowerCase();
	let matcher = (name) => text && name.toLowerCase().includes(small), sum = 0, below = null;

	try {
		const pattern = expression && new RegExp(expression[1], "i");
		matcher = pattern ? (name) => pattern.test(name) : matcher;
	} catch (error) {
		matcher = () => false;
	}
	for (const frame of frames) {
		frame.matches = frame !== root && Boolean(matcher(frame.name));
		if (below && frame.level <= below.level)
			below = null;
		if (frame.matches && !below) {
			sum += frame.width;
			below = frame;
		}
	}
	found = !text ? "" : sum ? `${(sum / root.width * whole).toFixed(2)} % match` : "no match";
	draw();
	say(null);
}

const frameOf = (event) => frames[numbers.get(event.target.closest("#frames > g"))];

function key(event) {
	const control = event.ctrlKey || event.metaKey, typing = event.target === search;

	if (event.key === "Escape") {
		search.blur();
		if (typing && search.value) {
			search.value = "";
			find();
		} else {
			zoom(root);
		}
	} else if (!typing && (event.key === "/" || (control && event.key === "f"))) {
		search.select();
	} else {
		return;
	}
	event.preventDefault();
}

const place = () => bar.setAttribute("transform", `translate(0 ${Math.max(0, -svg.getBoundingClientRect().top) - BAR})`);
const group = document.getElementById("frames");
group.setAttribute("cursor", "pointer");
group.addEventListener("click", (event) => zoom(frameOf(event)));
group.addEventListener("pointermove", (event) => say(frameOf(event)));
search.addEventListener("input", find);
document.addEventListener("keydown", key);
addEventListener("scroll", place);
addEventListener("resize", draw);
if (document.body)
	document.body.style.margin = 0;
svg.setAttribute("width", "100%");
svg.setAttribute("height", height + BAR);
draw();
// The root is below in a graph that grows upward.
if (root.y > frames[frames.length - 1].y)
	scrollTo(0, document.documentElement.scrollHeight);
place();
})();
