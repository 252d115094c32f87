// SPDX-License-Identifier: 0BSD
/*
 * The page: what is around the views, and the keys.
 */
import { amount, clockTime, data, dimensions, frames, hasStates, inflate, isTooMuch, load, nameOf, percent, STATES,
	values } from "./profile.mjs";
import { begin, fromAddress, initial, listeners, matched, matches, search, select, selection, sums,
	update } from "./selection.mjs";
import { element, hideNote, isDark, make, makeButton, makeChoice } from "./dom.mjs";
import { drawTable } from "./table.mjs";
import { drawFlame, drawSandwich } from "./flame.mjs";
import { prepareTime } from "./time.mjs";
import { drawStates } from "./states.mjs";
import { drawCode, loadCode } from "./code.mjs";
import { hasChains, loadChains } from "./chain.mjs";
import { drawWhy } from "./why.mjs";

const views = {
	flame: ["Flame graph", drawFlame],
	sandwich: ["Callers and callees", drawSandwich],
	table: ["Table", drawTable],
	states: ["States", drawStates],
	code: ["Source", drawCode],
	why: ["Why", drawWhy],
};
const isShown = (view) => view === "states" ? hasStates() : view !== "why" || hasChains();
const KEYS = [
	[Object.keys(views).map((view, i) => i + 1).join(" "), Object.values(views).map(([title]) => title.toLowerCase()).join(", ")],
	["s", "the source and instructions of the selected function; the same as 5"],
	["/", "search: text, or /a regular expression/"],
	["arrows, Enter", "in a picture: from frame to frame, and to choose one; in a lane of a chain: from stretch to stretch"],
	["drag", "over time: an interval; with Shift, the one to compare with"],
	["arrows, Shift", "over time: move the interval, and its end; c compares with it"],
	["v", "the next value: samples, CPU time, delay, ..."],
	["Backspace", "back: undo the last step"],
	["Escape", "show everything"],
	["d", "dark or light"],
	["?", "this list"],
];

/** One line: what is selected, how much that is, and buttons that take parts of it back. */
function drawSelection(complaint) {
	const value = values[selection.value], line = element("selection"), parts = [];
	const chip = (text, changes) => parts.push(makeButton(text + " ×", () => select(changes),
		{ class: "chip", "aria-label": "remove " + text }));

	parts.push(make("span", value.type + ": " + amount(sums.now.all, value)));
	parts.push(make("span", [data.duration_s ? data.duration_s.toFixed(1) + " s" : "", data.host ? "on " + data.host : "",
		data.event].filter((text) => text).join(", "), { class: "faint" }));
	if (data.lacks_labels)
		parts.push(make("span", "not all labels of programs are in the page", { class: "faint" }));
	if (matches)
		parts.push(make("span", "found: " + percent(matched(), sums.now.all)));
	if (complaint)
		parts.push(make("span", complaint, { class: "error" }));
	if (selection.since !== null)
		chip(clockTime(selection.since) + " to " + clockTime(selection.until), { since: null, until: null });
	if (selection.against !== null)
		chip("against " + clockTime(selection.against) + " to " + clockTime(selection.end), { against: null, end: null });
	for (const [label, text] of Object.entries(selection.labels)) {
		const labels = { ...selection.labels };
		delete labels[label];
		chip(label + " " + (text || "[none]"), { labels });
	}
	if (selection.has)
		chip(selection.where + " has " + selection.has, { has: "" });
	if (selection.states !== "")
		chip([...selection.states].map((state) => STATES[state]).join(", "), { states: "" });
	if (selection.zoom)
		chip("below " + nameOf(frames[selection.zoom]), { zoom: 0 });
	if (selection.function >= 0) {
		chip(nameOf(selection.function), { function: -1 });
		for (const view of ["sandwich", "code"])
			if (view !== selection.view)
				parts.push(makeButton(views[view][0], () => select({ view })));
	}
	line.replaceChildren(...parts);
}

function draw() {
	const complaint = search() || sums.complaint || (isTooMuch &&
		"by " + selection.first + " there would be more frames than a browser has room for: the graph is not divided");

	if (!views[selection.view] || !isShown(selection.view))
		selection.view = "flame";
	for (const tab of element("tabs").children) {
		const chosen = tab.dataset.view === selection.view;
		tab.setAttribute("aria-selected", chosen);
		tab.tabIndex = chosen ? 0 : -1;
		if (chosen)
			element("view").setAttribute("aria-labelledby", tab.id);
	}
	element("value").value = selection.value;
	for (const name of ["search", "has"])
		if (element(name) && document.activeElement !== element(name))
			element(name).value = selection[name];
	if (element("where"))
		element("where").value = selection.where;
	hideNote();
	drawSelection(complaint);

	// What had the focus is made anew: its successor gets it.
	const view = element("view"), held = view.contains(document.activeElement) ? document.activeElement : null;
	views[selection.view][1](view);
	if (held) {
		const again = document.contains(held) ? held : (held.id && element(held.id)) ||
			[...view.querySelectorAll(held.tagName)].find((one) => one.textContent === held.textContent);
		(again || view).focus({ preventScroll: true });
	}
}

/** Shows everything, as it is looked at now. */
function reset() {
	const { view, value, first, lanes, where } = selection;

	select({ ...structuredClone(initial), view, value, first, lanes, where });
}

function setTheme(theme) {
	document.documentElement.dataset.theme = theme;
}

function key(event) {
	const target = event.target, typing = target.matches("input, select, textarea");

	if (event.ctrlKey || event.altKey || event.metaKey || element("keys").open)
		return;
	if (event.key === "Escape") {
		if (typing)
			target.blur();
		reset();
		element("search").value = "";
	} else if (typing) {
		return;
	} else if (Object.keys(views)[event.key - 1]) {
		const view = Object.keys(views)[event.key - 1];
		if (isShown(view))
			select({ view });
	} else if (event.key === "s") {
		select({ view: "code" });
	} else if (event.key === "/") {
		element("search").focus();
	} else if (event.key === "?") {
		element("keys").showModal();
	} else if (event.key === "d") {
		element("theme").click();
	} else if (event.key === "v") {
		select({ value: (selection.value + 1) % values.length });
	} else if (event.key === "Backspace") {
		history.back();
	} else {
		return;
	}
	event.preventDefault();
}

function prepare() {
	const list = make("dl", null);

	document.title = data.title + " - profil";
	element("title").textContent = data.title;
	values.forEach((value, number) =>
		element("value").append(make("option", value.type, { value: number })));
	for (const [name, [title]] of Object.entries(views)) {
		if (!isShown(name))
			continue;
		const tab = makeButton(title, () => select({ view: name }),
			{ role: "tab", "data-view": name, id: "tab-" + name, "aria-controls": "view" });
		tab.addEventListener("keydown", (event) => {
			const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], tabs = [...element("tabs").children];
			if (!step || event.ctrlKey || event.altKey || event.metaKey)
				return;
			const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
			select({ view: next.dataset.view });
			next.focus();
			event.preventDefault();
		});
		element("tabs").append(tab);
	}
	for (const [keys, text] of KEYS)
		list.append(make("dt", keys), make("dd", text));
	element("keys").append(make("h2", "Keys"), list, makeButton("Close", () => element("keys").close()));

	element("value").addEventListener("change", () => select({ value: Number(element("value").value) }));
	element("search").addEventListener("input", () => select({ search: element("search").value }, true));
	if (dimensions.length) {
		const has = make("input", null, { id: "has", type: "search", autocomplete: "off", spellcheck: "false",
			placeholder: "text or /regex/", "aria-label": "what this label of the samples has" });
		has.addEventListener("input", () => select({ has: has.value }, true));
		element("back").before(makeChoice("Only where ", "where", dimensions.map(({ key: name }) => [name, name]),
			selection.where, (where) => select({ where })), has);
	}
	element("back").addEventListener("click", () => history.back());
	element("reset").addEventListener("click", reset);
	element("theme").addEventListener("click", () => {
		setTheme(isDark() ? "light" : "dark");
		update();
	});
	element("help").addEventListener("click", () => element("keys").showModal());
	document.addEventListener("keydown", key);
	addEventListener("popstate", () => {
		fromAddress(location.hash);
		update();
	});
	addEventListener("resize", () => requestAnimationFrame(update));
}

export async function main() {
	setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
	try {
		const packed = element("profile");
		load(await inflate(packed.textContent));
		loadCode();
		loadChains();
		packed.remove(); // a megabyte of text less in the page
	} catch (error) {
		document.body.replaceChildren(make("p", "This page cannot be read: " + error.message));
		return;
	}
	begin();
	prepare();
	prepareTime(element("time"));
	listeners.push(draw);
	fromAddress(location.hash);
	update();
	document.documentElement.dataset.ready = "yes";
}

