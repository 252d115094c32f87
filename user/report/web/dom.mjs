// SPDX-License-Identifier: 0BSD
/*
 * What the views are made of: elements, canvases, colours, the note at the pointer.
 */

export const LONG = 2000; // characters of a name that are shown

export const element = (id) => document.getElementById(id);

export function make(name, text, attributes = {}) {
	const made = document.createElement(name);

	if (text !== null)
		made.textContent = text.length > LONG ? text.slice(0, LONG) + "…" : text;
	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	return made;
}

export const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** An empty table: a caption and the heads of its columns, which are texts or cells. Returns it; its rows go to tBodies[0]. */
export function makeTable(caption, heads) {
	const table = make("table", null), row = make("tr", null);

	row.append(...heads.map((head) => typeof head === "string" ? make("th", head, { scope: "col" }) : head));
	table.append(make("caption", caption), make("thead", null), make("tbody", null));
	table.tHead.append(row);
	return table;
}

/** A button, which calls pressed(). */
export function makeButton(text, pressed, attributes = {}) {
	const made = make("button", text, attributes);

	made.addEventListener("click", pressed);
	return made;
}

/** A label with a choice of [value, text], which shows the value `now` and calls chosen(value). */
export function makeChoice(text, id, options, now, chosen) {
	const label = make("label", text), choice = make("select", null, { id });

	choice.append(...options.map(([value, name]) => make("option", name, { value })));
	choice.value = now;
	choice.addEventListener("change", () => chosen(choice.value));
	label.append(choice);
	return label;
}

/** Sets the size of a canvas, in pixels of the page. Returns its context. */
export function sized(canvas, width, height) {
	const ratio = devicePixelRatio || 1, context = canvas.getContext("2d");

	canvas.width = Math.max(1, Math.round(width * ratio));
	canvas.height = Math.round(height * ratio);
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
	context.scale(ratio, ratio);
	return context;
}

export const contentWidth = (block) => {
	const style = getComputedStyle(block);

	return block.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
};

export function shorten(context, name, width) {
	const text = name.slice(0, 500); // more than any screen has room for
	if (context.measureText(text).width <= width)
		return text;
	let low = 0, high = text.length;
	while (low < high) {
		const middle = Math.ceil((low + high) / 2);
		if (context.measureText(text.slice(0, middle) + "…").width <= width)
			low = middle;
		else
			high = middle - 1;
	}
	return low ? text.slice(0, low) + "…" : "";
}

// Colours that those who do not see red or green tell apart, too; of a light and a dark page.
const COLORS = {
	light: {
		kinds: ["#8fb8de", "#e3a857", "#7fc8a9", "#c4c7cc", "#ececf0"],
		states: ["", "#f0e05a", "#d98cb3", "#dfe3e8", "#9aa0a8", "#ececf0"],
		text: "#000", edge: "#fff", match: "#c026d3", chosen: "#000", faint: "#ececf0",
		more: [213, 94, 0], less: [0, 114, 178], same: [236, 236, 240],
	},
	dark: {
		kinds: ["#2f5b87", "#8a5a12", "#24705a", "#4a4e57", "#2b2e36"],
		states: ["", "#7d7212", "#84375c", "#353943", "#6b7280", "#2b2e36"],
		text: "#fff", edge: "#16181d", match: "#e879f9", chosen: "#fff", faint: "#2b2e36",
		more: [213, 94, 0], less: [30, 130, 200], same: [52, 55, 64],
	},
};
export const isDark = () => document.documentElement.dataset.theme === "dark";
export const colors = () => COLORS[isDark() ? "dark" : "light"];

/** An element with a mark of a colour before its text. */
export function makeMarked(name, color, text, attributes = {}) {
	const made = make(name, null, attributes), mark = make("span", null, { class: "mark" });

	mark.style.background = color;
	made.append(mark, text);
	return made;
}

/** What colours mean: a list of [colour, text]. */
export function makeLegend(meanings) {
	const list = make("ul", null, { class: "legend", "aria-label": "Colours" });

	list.append(...meanings.map(([color, text]) => makeMarked("li", color, text)));
	return list;
}

export function mix(from, to, part) {
	return "rgb(" + from.map((c, i) => Math.round(c + (to[i] - c) * part)).join(",") + ")";
}

export function showNote(lines, x, y) {
	const note = element("note");

	note.replaceChildren(...lines.map((line, i) => make(i ? "div" : "strong", line)));
	note.hidden = false;
	const box = note.getBoundingClientRect();
	note.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 8)) + "px";
	note.style.top = (y + 16 + box.height < innerHeight ? y + 16 : Math.max(4, y - box.height - 8)) + "px";
}

export function hideNote() {
	element("note").hidden = true;
}

/** Says something to those who hear the page; the line of the selection is heard as well. */
export function announce(text) {
	element("said").textContent = text;
}
