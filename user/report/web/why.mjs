// SPDX-License-Identifier: 0BSD
/*
 * Why: the slowest turns and longest waits of a process, the chain of one of them as a tree, with what
 * its threads did meanwhile, and for what all threads of the process were blocked.
 */
import { clockTime, data, dimensions, frames, nameOf, paths, percent, STATES } from "./profile.mjs";
import { chainOf, commandFor, longestLeaf, missing, moments, nodeText, OTHER, pageTime, partText, processName, showChainAt,
	stretchesOf, threadName, threadsOf, UNKNOWN, blockedOf } from "./chain.mjs";
import { labelTest, select, selection } from "./selection.mjs";
import { announce, capital, contentWidth, hideNote, make, makeButton, makeChoice, makeLegend, makeTable,
	showNote } from "./dom.mjs";
import { Picture } from "./flame.mjs";
import { spread } from "./time.mjs";
import { drawLanes, stateColor } from "./states.mjs";

const ROWS = 10, LANES = 16, LANE_HEIGHT = 14;
const closed = new Set(); // parts whose own parts are not shown
let shownMoments = ROWS, shownLanes = LANES;

const ms = (ns) => (ns / 1e6).toFixed(3);

/** A text without whose it is, where that stands beside it. */
const without = (name, text) => text.startsWith(name + " ") ? text.slice(name.length + 1) : text;

/** What the colours mean. */
const stateLegend = () => makeLegend([...STATES, "unknown"].map((text, state) =>
	[stateColor(state), text === "runnable" ? text + " (no free CPU)" : text]));

// --- Which moments there are ---

/** The turns or waits of a process that are in the page, longest first; of the selected interval and label: [number, moment]. */
export function momentsOf(process, isTurn) {
	const { since, until } = selection, test = labelTest(data.why.label);

	return [...moments.entries()].filter(([, one]) => one.isTurn === isTurn &&
		data.why.threads.processes[one.thread] === process && (!test || test(one.label)) &&
		(since === null || (pageTime(one.since) < until && pageTime(one.since + one.length) > since)));
}

/** The turns of a process by the label that they have for most of their time; a click chooses one. */
export function labelRows(process) {
	const { texts, turns, lengths, longest } = data.why.processes.labels[process];

	return texts.map((number, i) => ({ text: data.texts[number], turns: turns[i], ns: lengths[i], longest: longest[i] }));
}

/** What their table is called, and how many it lacks. */
export function labelCaption(process) {
	const { texts, all } = data.why.processes.labels[process];

	return "Turns by " + data.why.label + (texts.length < all ? ": those that took most, " + texts.length.toLocaleString("en") + " of " +
		all.toLocaleString("en") + "; the others are not in the page" : "");
}

function labelTable(process) {
	const { label } = data.why, number = (text) => make("th", text, { scope: "col", class: "number" });
	const table = makeTable(labelCaption(process), [number("Total ms"), number("Turns"), number("Longest ms"), capital(label)]);

	for (const { text, turns, ns, longest } of labelRows(process)) {
		const line = table.tBodies[0].insertRow(), cell = make("td", null);
		cell.append(makeButton(text || "[no " + label + "]", () => select({ labels: { ...selection.labels, [label]: text } }), { class: "name" }));
		line.append(...[ms(ns), turns.toLocaleString("en"), ms(longest)].map((one) => make("td", one, { class: "number" })), cell);
	}
	return table;
}

function momentTable(process, isTurn) {
	const found = momentsOf(process, isTurn), { turns, waits } = data.why.processes, all = (isTurn ? turns : waits)[process];
	const { label } = data.why, heads = label && isTurn ? [capital(label)] : []; // waits' texts have it
	const chosen = [selection.since === null ? "" : "in the interval", labelTest(label) ? "of that " + label : ""]
		.filter((text) => text).join(" and ");
	const caption = (isTurn ? "Slowest turns" : "Longest waits") + ": " + found.length.toLocaleString("en") + " of " +
		all.toLocaleString("en") + (chosen ? ", those " + chosen
		: found.length < all ? "; the others' chains are not in the page" : "");
	const table = makeTable(caption, [make("th", "ms", { scope: "col", class: "number" }), "From", "Thread",
		isTurn ? "Its longest part" : "Wait", ...heads]);

	for (const [number, one] of found.slice(0, shownMoments)) {
		const tree = chainOf(one), node = isTurn ? longestLeaf(tree) : 1, line = table.tBodies[0].insertRow(), cell = make("td", null, { class: "time" });
		const open = makeButton(clockTime(pageTime(one.since)), () => select({ moment: number }), { class: "name" });
		open.setAttribute("aria-label", (isTurn ? "chain of the turn of " : "chain of the wait of ") + ms(one.length) + " ms from " +
			open.textContent);
		cell.append(open);
		line.append(make("td", ms(one.length), { class: "number" }), cell, make("td", threadName(one.thread)),
			make("td", tree.kids[node] && node ? (isTurn ? ms(tree.lengths[node]) + " ms: " : "") + without(threadName(one.thread), nodeText(tree, node)) : ""),
			...heads.map(() => make("td", one.label)));
	}
	if (!found.length)
		table.tBodies[0].insertRow().append(make("td", "none", { colspan: String(4 + heads.length) }));
	return table;
}

// --- One of them ---

/** What a stretch of a lane is, as lines of text. */
function stretchText(thread, { since, until, state, sample }) {
	const waker = dimensions.find(({ key }) => key === "waker"), by = sample >= 0 && waker && data.texts[waker.of[sample]];

	return [threadName(thread) + ": " + (sample < 0 ? data.why.threads.certain[thread] < 1e6 ? "on CPU, or unknown" : STATES[state]
		: nameOf(frames[paths[sample]])), (until - since).toFixed(3) + " ms from " + clockTime(since),
	...(by ? ["woken by " + by] : [])];
}

/** A lane: what a thread did over the time of a chain. */
function makeLane(thread, stretches, since, until, width) {
	const length = (until - since) / width, certain = data.why.threads.certain[thread] / 1e6;
	const bins = [...STATES, "unknown"].map(() => new Float64Array(width));
	const canvas = make("canvas", null, { tabindex: "0", role: "application", "aria-label": threadName(thread) +
		": arrows go from stretch to stretch, Enter shows the chain of one" });
	let at = -1;

	for (const one of stretches) {
		const from = one.since - since, to = one.until - since, whole = to - from;
		spread(bins[one.state], length, from, to, one.sample < 0 ? whole * certain : whole);
		if (one.sample < 0 && certain < 1)
			spread(bins[UNKNOWN], length, from, to, whole * (1 - certain));
	}
	const draw = () => {
		const context = drawLanes(canvas, bins, width, LANE_HEIGHT), one = stretches[at];
		if (!one || document.activeElement !== canvas)
			return;
		context.lineWidth = 2;
		context.strokeStyle = getComputedStyle(canvas).color;
		context.strokeRect((one.since - since) / length + 1, 1, Math.max(1, (one.until - one.since) / length - 2), LANE_HEIGHT - 2);
	};
	const say = (x, y) => showNote(stretchText(thread, stretches[at]), x, y);
	const open = () => stretches[at] && stretches[at].state && showChainAt(thread, stretches[at].since, stretches[at].until);
	const point = (event) => {
		const time = since + event.offsetX * length;
		at = stretches.findIndex((one) => time >= one.since && time < one.until);
		canvas.style.cursor = at >= 0 && stretches[at].state ? "pointer" : "default";
		if (at >= 0)
			say(event.clientX, event.clientY);
		else
			hideNote();
	};

	canvas.addEventListener("mousemove", point);
	canvas.addEventListener("mouseleave", hideNote);
	canvas.addEventListener("blur", () => {
		hideNote();
		draw();
	});
	canvas.addEventListener("click", (event) => {
		point(event);
		open();
	});
	canvas.addEventListener("keydown", (event) => {
		const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		if (event.ctrlKey || event.altKey || event.metaKey || !(step || event.key === "Enter" || event.key === " "))
			return;
		event.preventDefault();
		if (!step) {
			open();
			return;
		}
		at = Math.max(0, Math.min(stretches.length - 1, at + step));
		draw();
		if (!stretches[at])
			return;
		const box = canvas.getBoundingClientRect();
		say(box.left + ((stretches[at].since + stretches[at].until) / 2 - since) / length, box.bottom);
		announce(stretchText(thread, stretches[at]).join(", "));
	});
	draw();
	return canvas;
}

function laneTable(one, room) {
	const threads = threadsOf(one), shown = threads.slice(0, shownLanes), since = pageTime(one.since), until = pageTime(one.since + one.length);
	const width = Math.max(120, Math.min(900, Math.floor(room) - 200)), all = stretchesOf(shown, since, until);
	const times = make("th", null, { scope: "col", class: "times" });
	const table = makeTable("Threads of the chain meanwhile: " + threads.length +
		(threads.length > shown.length ? ", the first " + shown.length + " of them" : ""), ["Thread", times]);

	times.append(make("span", clockTime(since)), make("span", "+" + ms(one.length) + " ms"));
	shown.forEach((thread, i) => {
		const line = table.tBodies[0].insertRow(), cell = make("td", null);
		cell.append(makeLane(thread, all[i], since, until, width));
		line.append(make("td", threadName(thread)), cell);
	});
	return table;
}

/** The chain as `profiltool why` prints it: [node, depth] of each line that is shown. */
export function openNodes(tree, isClosed = closed) {
	const lines = [], stack = [[0, 0]];

	while (stack.length) {
		const [node, depth] = stack.pop();
		lines.push([node, depth]);
		if (!node || !isClosed.has(tree.first + node - 1))
			stack.push(...tree.kids[node].map((kid) => [kid, depth + 1]).reverse());
	}
	return lines;
}

function chainTable(one) {
	const tree = chainOf(one), table = makeTable("The chain: each line is a part of the one above it that is less indented",
		[make("th", "ms", { scope: "col", class: "number" }), make("th", "%", { scope: "col", class: "number" }), "Part"]);
	const body = table.tBodies[0];
	const fill = () => body.replaceChildren(...openNodes(tree).map(([node, depth]) => {
		const line = make("tr", null), cell = make("td", null, { class: "chain-part" }), part = tree.first + node - 1;
		const text = node ? partText(part) : threadName(one.thread), bar = make("span", null, { class: "mark", "aria-hidden": "true" });
		cell.style.paddingLeft = depth * 1.4 + "em";
		if (node && tree.kids[node].length) {
			const toggle = makeButton(closed.has(part) ? "▸" : "▾", () => {
				closed[closed.has(part) ? "delete" : "add"](part);
				fill();
				body.querySelector("#part-" + part).focus();
			}, { class: "toggle", id: "part-" + part, "aria-expanded": String(!closed.has(part)), "aria-label": "parts of " + text });
			cell.append(toggle);
		}
		bar.style.background = node ? stateColor(data.why.parts.kinds[part]) : "transparent";
		cell.append(bar, text);
		line.append(make("td", ms(tree.lengths[node]), { class: "number" }),
			make("td", percent(tree.lengths[node], one.length).replace(" %", ""), { class: "number" }), cell);
		return line;
	}));

	fill();
	return table;
}

function drawMoment(view, one) {
	const title = (one.isTurn ? "A turn of " : "A wait of ") + ms(one.length) + " ms of " + threadName(one.thread) + ", from " +
		clockTime(pageTime(one.since)), lanes = laneTable(one, contentWidth(view));
	const more = threadsOf(one).length > shownLanes ? [makeButton("Show all lanes", () => {
		shownLanes = Infinity;
		drawWhy(view);
	})] : [];

	view.replaceChildren(makeButton("All turns and waits", () => {
		shownLanes = LANES;
		select({ moment: -1 });
	}), make("h2", title), stateLegend(), lanes, ...more, chainTable(one),
		make("p", "The same as text: " + commandFor(one.thread, one.since, one.since + one.length), { class: "faint" }));
}

// --- What a process was blocked for ---

let blocking; // the picture, made when it is first shown

/** For what all threads of a process were blocked, as a Picture takes it. */
export function blockedTree(process) {
	const tree = blockedOf(process), kind = (node) => node ? data.why.parts.kinds[tree.first + node - 1] : OTHER;
	const name = (node) => node ? partText(tree.first + node - 1) : processName(process);
	const label = (node) => tree.parents[node] ? name(node) : without(processName(process), name(node));
	const own = (node) => tree.lengths[node] - tree.kids[node].reduce((sum, kid) => sum + tree.lengths[kid], 0);

	return {
		root: () => tree.kids[selection.part] ? selection.part : 0,
		frame: () => -1,
		parent: (node) => tree.parents[node],
		total: (node) => tree.lengths[node],
		before: () => 0,
		self: own,
		children: (node) => tree.kids[node],
		name: label,
		color: (node) => stateColor(kind(node)),
		describe: (node) => [name(node), ms(tree.lengths[node]) + " ms (" + percent(tree.lengths[node], tree.lengths[0]) + ")"],
	};
}

export function drawWhy(view) {
	const { names, sizes, turns, blocked, quantiles, quantile_names: titles } = data.why.processes;
	const process = names[selection.process] === undefined ? 0 : selection.process;

	if (moments[selection.moment]) {
		drawMoment(view, moments[selection.moment]);
		return;
	}
	const parts = [makeChoice("Process ", "why-process",
		names.map((name, i) => [i, processName(i) + ": blocked " + ms(blocked[i]) + " ms"]), process, (chosen) => {
			shownMoments = ROWS;
			select({ process: Number(chosen), part: 0 });
		})];
	if (missing)
		parts.push(make("p", "The chain of " + threadName(missing.thread) + " from " + clockTime(pageTime(missing.since)) + ", " +
			ms(missing.until - missing.since) + " ms, is not in the page, which has the longest ones. This prints it: " +
			commandFor(missing.thread, missing.since, missing.until), { role: "status" }));
	if (turns[process])
		parts.push(make("p", turns[process].toLocaleString("en") + (turns[process] === 1 ? " turn: " : " turns: ") + titles.map((title, i) =>
			title + " " + ms(quantiles[process * titles.length + i]) + " ms").join(", ") +
			". A turn is what a thread does from the end of an idle wait to the begin of the next."));
	if (data.why.label && turns[process])
		parts.push(labelTable(process));
	parts.push(momentTable(process, true), momentTable(process, false));
	if (Math.max(momentsOf(process, true).length, momentsOf(process, false).length) > shownMoments)
		parts.push(makeButton("Show more of them", () => {
			shownMoments *= 4;
			drawWhy(view);
		}));
	blocking ||= new Picture({ name: "For what it was blocked", choose: (tree, node) => select({ part: node }) });
	if (blocked[process] && !sizes[process])
		parts.push(make("p", "For what " + processName(process) + " was blocked is more than the page has. This writes it: " +
			"profiltool why -p " + processName(process) + " -o why.folded FILE"));
	if (!sizes[process]) {
		view.replaceChildren(...parts);
		return;
	}
	parts.push(make("h2", "For what " + processName(process) + " was blocked, in all of the recording"),
		make("p", "Below a wait is what the thread did meanwhile that ended it, and so on: a lock's wait consists of what its holder did.",
			{ class: "faint" }), stateLegend(), blocking.canvas);
	view.replaceChildren(...parts);
	blocking.draw(blockedTree(process));
}
