// SPDX-License-Identifier: 0BSD
/*
 * Shows a flame graph in a browser. flame_graph.c embeds this script, flame_graph.css and the tree
 * as JSON (print_data() there) in each HTML or SVG file that it writes. An SVG file also has a
 * picture for viewers that run no scripts, which this script replaces.
 *
 * Names come from untrusted files and processes: they become text, never markup.
 */
"use strict";
(() => {
const XHTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";
const ROW = 18, FONT = 12; // pixels, as in .frame of the style sheet
const LEAST = 0.5; // pixels: narrower frames are not drawn
const LEAST_ELEMENT = 3; // pixels: narrower frames are drawn as part of a path with others
const LEAST_TEXT = 24; // pixels: narrower frames have no text
const LEAST_BOTH = 12; // characters: a name with room for fewer is cut at its end
const LEGEND = 8; // images in the legend at most

const data = JSON.parse(document.getElementById("profile").textContent);
const compared = "oldAll" in data;

// --- The tree: nodes in depth-first order; the descendants of node i are i + 1 .. end[i] - 1 ---

// depth, frame, total, self; heat, old total; weight, where values are negative, too
const FIELDS = 4 + (compared ? 2 : 0) + (data.negative ? 1 : 0);
const heated = compared || data.negative;
const size = data.nodes.length / FIELDS;
const depth = new Int32Array(size), frame = new Int32Array(size);
const total = new Float64Array(size), self = new Float64Array(size);
const heat = new Float64Array(size), old = new Float64Array(size);
const weight = data.negative ? new Float64Array(size) : total; // what a frame is as wide as
const parent = new Int32Array(size), end = new Int32Array(size).fill(size);
const start = new Float64Array(size); // the samples of all nodes to the left of it

function load() {
	const path = []; // the last node of each depth
	const next = []; // where the next child of each starts

	for (let i = 0; i < size; i++) {
		const fields = data.nodes.slice(i * FIELDS, (i + 1) * FIELDS);
		[depth[i], frame[i], total[i], self[i]] = fields;
		if (compared)
			[heat[i], old[i]] = fields.slice(4);
		if (data.negative)
			weight[i] = fields[FIELDS - 1];
		if (data.negative && !compared)
			heat[i] = total[i] / (weight[i] || 1);
		const d = depth[i];
		while (path.length > d)
			end[path.pop()] = i;
		parent[i] = d ? path[d - 1] : -1;
		start[i] = d ? next[d - 1] : 0;
		if (d)
			next[d - 1] += weight[i];
		next[d] = start[i];
		path.push(i);
	}
}

const frameOf = (i) => data.frames[frame[i]];
const nameOf = (i) => frameOf(i)[0];
const imageOf = (i) => frameOf(i)[1];

// --- Numbers and names for people ---

function count(samples) {
	if (data.unit === "nanoseconds")
		return (samples / 1e9).toLocaleString("en", { minimumFractionDigits: 3 }) + " s";
	return samples.toLocaleString("en") + " " + data.unit;
}

const percent = (part, whole) => (whole ? part * 100 / whole : 0).toFixed(2) + " %";

function signed(points) {
	const rounded = Math.round(points * 100) / 100 || 0; // and never -0

	return (rounded > 0 ? "+" : "") + rounded.toFixed(2);
}

function change(i) {
	const before = data.oldAll ? old[i] * 100 / data.oldAll : 0;
	const after = data.all ? total[i] * 100 / data.all : 0;

	return `old ${before.toFixed(2)} %, new ${after.toFixed(2)} %, change ` +
		`${signed(after - before)} percentage points`;
}

// What the footer says about a node after its name.
function details(i) {
	const parts = imageOf(i) ? [imageOf(i)] : [];

	if (frameOf(i)[3] === "inlined")
		parts.push("inlined");
	parts.push(`${count(total[i])}, ${percent(total[i], data.all)} of all`);
	if (zoomed)
		parts.push(`${percent(total[i], weight[zoomed])} of the zoomed frame`);
	parts.push(`self ${count(self[i])}, ${percent(self[i], data.all)}`);
	if (compared)
		parts.push(change(i));
	return parts.join(" \u00b7 ");
}

const pen = document.createElementNS(XHTML, "canvas").getContext("2d");
const textWidths = []; // in pixels, of each frame's name; measured when first needed

// Shortens a name to a number of pixels. A long one loses its middle: ends distinguish neighbours.
function shorten(f, pixels) {
	const name = data.frames[f][0];

	textWidths[f] ??= pen.measureText(name).width;
	if (textWidths[f] <= pixels)
		return name;
	const characters = Array.from(name);
	for (let kept = Math.floor(characters.length * pixels / textWidths[f]); kept > 1; kept--) {
		const tail = kept < LEAST_BOTH ? 0 : kept >> 1;
		const text = characters.slice(0, kept - tail).join("") + "\u2026" +
			characters.slice(characters.length - tail).join("");
		if (pen.measureText(text).width <= pixels)
			return text;
	}
	return "";
}

// --- The page ---

function make(into, tag, attributes, text) {
	const made = document.createElementNS(XHTML, tag);

	for (const [name, value] of Object.entries(attributes ?? {}))
		made.setAttribute(name, value);
	if (text !== undefined)
		made.textContent = text;
	into.append(made);
	return made;
}

// The body of this document. An SVG document becomes XHTML, to scroll, wrap text and print.
function makeBody() {
	if (document.body)
		return document.body;
	const style = document.querySelector("style").textContent;
	const page = document.createElementNS(XHTML, "html");
	const head = make(page, "head");
	make(head, "title", {}, data.title);
	make(head, "meta", { name: "viewport", content: "width=device-width" });
	make(head, "style", {}, style);
	make(page, "body");
	page.setAttribute("lang", "en");
	document.replaceChild(page, document.documentElement);
	return page.lastChild;
}

const body = makeBody();
pen.font = `${FONT}px ${getComputedStyle(body).fontFamily}`;
const header = make(body, "header");
const heading = make(header, "h1", {}, data.title + " ");
make(heading, "small", {}, count(data.all));
const matched = make(header, "output", { "aria-live": "polite" });
const search = make(header, "input", { type: "search", placeholder: "Search: any part  /",
	"aria-label": "search functions", spellcheck: "false", autocomplete: "off" });
const resetButton = make(header, "button", { type: "button", disabled: "" }, "Reset zoom");
const helpButton = make(header, "button", { type: "button", "aria-label": "help" }, "?");
const notes = make(header, "div", { class: "notes" });
const graph = make(body, "main", { class: data.icicle ? "graph icicle" : "graph", role: "tree",
	"aria-label": "flame graph" });
const footer = make(body, "footer", { role: "status" });
const help = make(body, "dialog", { "aria-label": "help" });

function paint(element, i) {
	element.style.setProperty("--hue", heated ? (heat[i] > 0 ? 12 : 215) : frameOf(i)[2]);
	if (heated)
		element.style.setProperty("--heat", Math.abs(heat[i]));
}

// The images with the largest self, and their colours.
function makeLegend(into) {
	const selves = new Map(), example = new Map();

	for (let i = 1; i < size; i++) {
		const image = imageOf(i).replace(/^.*\//, "");
		if (!image)
			continue;
		selves.set(image, (selves.get(image) ?? 0) + self[i]);
		if (!example.has(image) || frameOf(example.get(image))[3])
			example.set(image, i);
	}
	const images = Array.from(selves.keys()).sort((a, b) => selves.get(b) - selves.get(a));
	for (const image of images.slice(0, LEGEND)) {
		const entry = make(into, "span");
		paint(make(entry, "i"), example.get(image));
		entry.append(image);
	}
	if (images.length > LEGEND)
		make(into, "span", {}, `and ${images.length - LEGEND} more`);
}

// The colours from the largest loss of share to the largest gain.
function makeScale(into) {
	for (const step of [-1, -0.5, 0, 0.5, 1]) {
		const entry = make(into, "span");
		const swatch = make(entry, "i", { class: "changed" });
		swatch.style.setProperty("--hue", step > 0 ? 12 : 215);
		swatch.style.setProperty("--heat", Math.abs(step));
		// The square root makes small changes visible.
		entry.append(signed(Math.sign(step) * step * step * data.scale));
	}
	make(into, "span", {}, "percentage points of all samples, against the old profile");
}

// The colours of growth and reduction.
function makeSigns(into) {
	for (const [hue, what] of [[12, "above 0"], [215, "below 0"]]) {
		const entry = make(into, "span");
		const swatch = make(entry, "i", { class: "changed" });
		swatch.style.setProperty("--hue", hue);
		swatch.style.setProperty("--heat", 1);
		entry.append(what);
	}
	make(into, "span", {}, "widths are of magnitudes; pale: both cancel out");
}

function makeNotes() {
	const legend = make(notes, "p", { class: "legend" });

	if (compared)
		makeScale(legend);
	else if (data.negative)
		makeSigns(legend);
	else
		makeLegend(legend);
	for (const note of data.notes)
		make(notes, "p", {}, note);
	if (!data.gone?.length)
		return;
	const list = make(notes, "details");
	make(list, "summary", {}, "Frames that are gone, the largest first");
	const items = make(list, "ol");
	for (const [f, before] of data.gone)
		make(items, "li", {}, `${data.frames[f][0]}: ${percent(before, data.oldAll)} of the old`);
}

function makeHelp() {
	const table = make(help, "table");
	const keys = [
		["click, Enter", "zoom to a frame; on the root: back to all"],
		["Escape", "back to all"],
		["arrows", "go from frame to frame"],
		["/, Ctrl-F", "search for functions: any part of the name; * stands for anything, " +
			"^ and $ for the name's ends, | for or; lower case also matches upper case. " +
			"The sum counts each sample once."],
		["n, N", "go to the next or previous match"],
		["?", "this help"],
	];

	for (const [key, meaning] of keys) {
		const row = make(table, "tr");
		make(make(row, "td"), "kbd", {}, key);
		make(row, "td", {}, meaning);
	}
	make(help, "p", {}, "The width of a frame is its share of the samples. Next to it, away from " +
		`the root, is ${data.inverted ? "what it was called from" : "what it called"}. ` +
		"The order is by size, not by time.");
	make(make(help, "form", { method: "dialog" }), "button", {}, "Close");
}

// --- Drawing ---

let zoomed = 0;
let rows = 1; // number of rows drawn
let current = 0; // the node that has the focus, or gets it next
let matches = null; // of each frame: whether the search found it
const drawn = new Map(); // node: element, in the order of nodes

const look = (i) => (heated ? "changed" : frameOf(i)[3]) + (i < zoomed ? " above" : "") +
	(matches?.[frame[i]] ? " match" : "");

// left and width are percentages.
function drawFrame(i, left, width, pixels) {
	const element = document.createElementNS(XHTML, "div");

	element.className = `frame ${look(i)}`;
	element.style.cssText = `left:${left}%;width:${width}%;${data.icicle ? "top" : "bottom"}:` +
		`${depth[i] * ROW}px`;
	paint(element, i);
	element.dataset.node = i;
	element.setAttribute("role", "treeitem");
	element.setAttribute("aria-level", depth[i] + 1);
	element.setAttribute("aria-label", nameOf(i));
	element.tabIndex = i === current ? 0 : -1;
	if (pixels >= LEAST_TEXT)
		element.textContent = shorten(frame[i], pixels - 8);
	drawn.set(i, element);
}

/*
 * Tens of thousands of elements would take browsers too long. So narrow frames that look the same
 * become one path. left and width are pixels; a seam stays free.
 */
function drawNarrow(picture, paths, i, left, width) {
	const key = `${look(i)} ${heated ? heat[i] : frameOf(i)[2]}`;
	const top = data.icicle ? depth[i] * ROW : -(depth[i] + 1) * ROW;

	if (!paths.has(key)) {
		const path = document.createElementNS(SVG, "path");
		path.setAttribute("class", look(i));
		paint(path, i);
		picture.append(path);
		paths.set(key, { path, rectangles: "" });
	}
	const rounded = Math.round(width * 80) / 100;
	paths.get(key).rectangles += `M${Math.round(left * 100) / 100} ${top + 1}h${rounded}v` +
		`${ROW - 1}h-${rounded}z`;
}

// Draws the visible descendants of the zoomed frame. Returns the largest depth.
function drawDescendants(picture, pixels) {
	const scale = 1 / (weight[zoomed] || 1);
	const paths = new Map();
	let deepest = depth[zoomed];

	for (let i = zoomed + 1; i < end[zoomed];) {
		const left = (start[i] - start[zoomed]) * scale, width = weight[i] * scale;

		if (width * pixels < LEAST) {
			i = end[i];
			continue;
		}
		if (width * pixels < LEAST_ELEMENT)
			drawNarrow(picture, paths, i, left * pixels, width * pixels);
		else
			drawFrame(i, left * 100, width * 100, width * pixels);
		deepest = Math.max(deepest, depth[i]);
		i++;
	}
	for (const { path, rectangles } of paths.values())
		path.setAttribute("d", rectangles);
	return deepest;
}

// Draws the zoomed frame and its ancestors over the whole width, and its descendants.
function draw() {
	const pixels = graph.clientWidth;
	const picture = document.createElementNS(SVG, "svg");
	const path = [];

	drawn.clear();
	for (let i = zoomed; i >= 0; i = parent[i])
		path.push(i);
	for (const i of path.reverse())
		drawFrame(i, 0, 100, pixels);
	rows = drawDescendants(picture, pixels) + 1;
	picture.setAttribute("viewBox",
		`0 ${data.icicle ? 0 : -rows * ROW} ${pixels} ${rows * ROW}`);
	picture.setAttribute("preserveAspectRatio", "none");
	picture.setAttribute("aria-hidden", "true");
	if (!drawn.has(current))
		setCurrent(zoomed);
	graph.style.height = `${rows * ROW}px`;
	graph.replaceChildren(picture, ...drawn.values());
	resetButton.disabled = !zoomed;
}

function describe(i) {
	footer.replaceChildren();
	make(footer, "b", {}, nameOf(i));
	footer.append(details(i));
}

function setCurrent(i) {
	if (drawn.has(current))
		drawn.get(current).setAttribute("tabindex", -1);
	current = i;
	if (drawn.has(i))
		drawn.get(i).setAttribute("tabindex", 0);
}

function focus(i) {
	if (!drawn.has(i))
		return;
	setCurrent(i);
	drawn.get(i).focus({ preventScroll: true });
	drawn.get(i).scrollIntoView({ block: "nearest" });
}

function zoom(i) {
	zoomed = i;
	current = i;
	draw();
	focus(i);
	describe(i);
}

// --- Search ---

// Whether a name contains the pieces in this order.
function hasPieces(name, { pieces, first, last }) {
	let from = 0;

	for (const [i, piece] of pieces.entries()) {
		const atEnd = last && i === pieces.length - 1;
		const at = atEnd ? name.length - piece.length : name.indexOf(piece, from);
		if (at < from || (first && i === 0 && at > 0) || !name.startsWith(piece, at))
			return false;
		from = at + piece.length;
	}
	return true;
}

function parsePattern(text) {
	const first = text.startsWith("^"), last = text.endsWith("$");

	return { first, last, pieces: text.slice(first ? 1 : 0, last ? -1 : undefined).split(/\.?\*/) };
}

/*
 * Returns a function that says whether a name contains the text, or matches it as a pattern: *
 * (or .*) for anything, ^ and $ for the ends of the name, | for or. A regular expression of a few
 * characters could take for ever.
 */
function matcher(text) {
	const ignoreCase = text === text.toLowerCase();
	const patterns = text.split("|").filter((part) => part).map(parsePattern);

	return (name) => {
		const searched = ignoreCase ? name.toLowerCase() : name;
		return searched.includes(text) || patterns.some((p) => hasPieces(searched, p));
	};
}

// Counts a sample once, however many of its frames match.
function sumMatches() {
	let sum = 0;

	for (let i = 0; i < size;) {
		if (matches[frame[i]]) {
			sum += total[i];
			i = end[i];
		} else {
			i++;
		}
	}
	return sum;
}

function find() {
	const matchesName = matcher(search.value);

	matches = search.value ? data.frames.map((f) => matchesName(f[0])) : null;
	if (matches)
		matches[frame[0]] = false; // the root is not a function
	graph.classList.toggle("searching", matches !== null);
	draw();
	if (!matches)
		matched.textContent = "";
	else if (!matches.includes(true))
		matched.textContent = "no match";
	else
		matched.textContent = `${percent(sumMatches(), data.all)} match`;
}

// --- Mouse and keyboard ---

// The neighbour at the same depth: step -1 left, 1 right.
function beside(step) {
	const level = Array.from(drawn.keys()).filter((i) => depth[i] === depth[current]);

	return level[level.indexOf(current) + step] ?? current;
}

function child() {
	return drawn.has(current + 1) && parent[current + 1] === current ? current + 1 : current;
}

function nextMatch(step) {
	const found = Array.from(drawn.keys()).filter((i) => matches?.[frame[i]]);
	const after = found.findIndex((i) => step > 0 ? i > current : i >= current);

	if (!found.length)
		return current;
	if (step > 0)
		return found[after < 0 ? 0 : after];
	return found.at((after < 0 ? found.length : after) - 1);
}

const commands = {
	__proto__: null,
	"/": () => search.select(),
	"?": () => help.showModal(),
	Escape: () => zoom(0),
	Enter: () => zoom(current),
	" ": () => zoom(current),
	ArrowLeft: () => focus(beside(-1)),
	ArrowRight: () => focus(beside(1)),
	[data.icicle ? "ArrowDown" : "ArrowUp"]: () => focus(child()),
	[data.icicle ? "ArrowUp" : "ArrowDown"]: () => focus(parent[current]),
	n: () => focus(nextMatch(1)),
	N: () => focus(nextMatch(-1)),
};

const searchCommands = {
	__proto__: null,
	Enter: () => focus(current),
	Escape: () => {
		search.value = "";
		find();
		focus(current);
	},
};

function press(event) {
	const control = event.ctrlKey || event.metaKey;
	const onButton = ["button", "summary"].includes(event.target.localName);
	const known = event.target === search ? searchCommands : commands;
	let act = control || event.altKey ? undefined : known[event.key];

	// In the search field, Ctrl-F is the browser's search.
	if (event.key === "f" && control && event.target !== search)
		act = commands["/"];
	if (!act || help.open || (onButton && [" ", "Enter"].includes(event.key)))
		return;
	event.preventDefault();
	act();
}

// The node at an event, also one drawn in a path; undefined: none.
function nodeAt(event) {
	if (event.target.dataset.node)
		return Number(event.target.dataset.node);
	const box = graph.getBoundingClientRect();
	const at = start[zoomed] + (event.clientX - box.left) / box.width * total[zoomed];
	const row = Math.floor((event.clientY - box.top) / ROW);
	const level = data.icicle ? row : rows - 1 - row;
	let i = zoomed;

	while (depth[i] < level) {
		const above = end[i];
		for (i++; i < above && start[i] + total[i] <= at; i = end[i])
			;
		if (i >= above || start[i] > at)
			return undefined;
	}
	return i;
}

function listen() {
	const onNode = (type, act) => graph.addEventListener(type, (event) => {
		const i = nodeAt(event);
		if (i !== undefined)
			act(i);
	});

	onNode("click", zoom);
	onNode("pointermove", describe);
	onNode("focusin", (i) => {
		setCurrent(i);
		describe(i);
	});
	search.addEventListener("input", find);
	resetButton.addEventListener("click", () => zoom(0));
	helpButton.addEventListener("click", () => help.showModal());
	document.addEventListener("keydown", press);
	window.addEventListener("resize", draw);
}

load();
makeNotes();
makeHelp();
draw();
describe(0);
listen();
// The root is at the bottom of a graph that grows upward.
if (!data.icicle)
	window.scrollTo(0, document.documentElement.scrollHeight);
})();
