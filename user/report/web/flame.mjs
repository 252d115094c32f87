// SPDX-License-Identifier: 0BSD
/*
 * Pictures of trees: the flame graph, and what calls a function and what it calls. Drawn on a
 * canvas, as there may be a million frames; what is chosen is said in a line of text, too.
 */
import { amount, childFirst, childList, childrenOf, data, dimensions, frames, imageOf, KIND_LABEL, KIND_STATE, nameOf,
	nameRanks, nodeCount, outermost, parents, percent, signed, STATES, states, values } from "./profile.mjs";
import { CHANCE_LEVEL } from "./chance.mjs";
import { chances, changeOf, matches, select, selection, sums } from "./selection.mjs";
import { announce, colors, contentWidth, hideNote, make, makeChoice, makeLegend, makeTable, mix, shorten,
	showNote } from "./dom.mjs";
import { tableRow } from "./table.mjs";

const ROW = 18; // pixels
const LEAST = 0.4; // pixels: narrower frames are not drawn

function frameColor(frame, change) {
	const set = colors();

	if (change !== null) {
		const part = Math.min(1, Math.abs(change) ** 0.6);
		return mix(set.same, change > 0 ? set.more : set.less, part);
	}
	if (frame < 0)
		return set.faint;
	const kind = data.kinds[frame];
	return kind > KIND_STATE ? set.states[kind - KIND_STATE] : set.kinds[kind];
}

/** The tree of all stacks, as a Picture takes it. */
export const wholeTree = {
	root: () => selection.zoom,
	frame: (node) => frames[node],
	parent: (node) => parents[node],
	total: (node) => sums.now.total[node],
	before: (node) => sums.before.total[node],
	self: (node) => sums.now.self[node],
	chance: (node) => (sums.chances ||= chances(sums.now.total, sums.before.total))?.[node],
	children: childrenOf,
};

/**
 * The stacks of a function as a tree of its own: what it calls, or what calls it. Nodes are merged
 * by their functions.
 */
export function treeOf(frame, callers) {
	const tree = { frames: [frame], parents: [-1], totals: [0], earlier: [0], selves: [0], kids: [[]] };
	const groups = [[]]; // of each node: call paths, and in which of these its stacks began

	for (let i = 1; i < nodeCount; i++)
		if (frames[i] === frame && outermost[i] && (sums.now.total[i] || (sums.before && sums.before.total[i])))
			groups[0].push([i, i]);
	for (let node = 0; node < groups.length; node++) {
		const next = new Map();
		for (const [path, origin] of groups[node]) {
			const counted = callers ? origin : path;
			tree.totals[node] += sums.now.total[counted];
			if (sums.before)
				tree.earlier[node] += sums.before.total[counted];
			if (!callers)
				tree.selves[node] += sums.now.self[path];
			const from = callers ? [parents[path]] : childList.subarray(childFirst[path], childFirst[path + 1]);
			for (const other of from) {
				if (callers ? other <= 0 : !sums.now.total[other] && !(sums.before && sums.before.total[other]))
					continue;
				if (!next.has(frames[other]))
					next.set(frames[other], []);
				next.get(frames[other]).push([other, origin]);
			}
		}
		groups[node] = null;
		for (const other of [...next.keys()].sort((a, b) => nameRanks[a] - nameRanks[b])) {
			tree.kids[node].push(groups.length);
			tree.frames.push(other);
			tree.parents.push(node);
			tree.totals.push(0);
			tree.earlier.push(0);
			tree.selves.push(0);
			tree.kids.push([]);
			groups.push(next.get(other));
		}
	}
	return {
		root: () => 0,
		frame: (node) => tree.frames[node],
		parent: (node) => tree.parents[node],
		total: (node) => tree.totals[node],
		before: (node) => tree.earlier[node],
		self: (node) => callers ? 0 : tree.selves[node],
		chance: (node) => (tree.chances ||= chances(tree.totals, tree.earlier))?.[node],
		children: (node) => tree.kids[node],
	};
}

/**
 * A picture of a tree. One with color(node) has name(node) and describe(node), too; others' nodes are frames.
 * options: up (the root is below), choose (called with a node), name.
 */
export class Picture {
	constructor(options) {
		this.options = options;
		this.canvas = make("canvas", null, { tabindex: "0", role: "application",
			"aria-label": options.name + ": arrows go from frame to frame, Enter chooses one" });
		this.rows = []; // of each row: the frames that are drawn, from left to right
		this.at = null; // the node that the keyboard is at
		this.canvas.addEventListener("mousemove", (event) => this.point(event));
		this.canvas.addEventListener("mouseleave", hideNote);
		this.canvas.addEventListener("click", (event) => {
			const node = this.find(event.offsetX, event.offsetY);
			if (node !== null)
				options.choose(this.tree, node, event);
		});
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		this.canvas.addEventListener("blur", hideNote);
	}

	draw(tree) {
		const width = contentWidth(this.canvas.parentElement), ratio = devicePixelRatio || 1;
		const set = colors(), context = this.canvas.getContext("2d");
		const root = tree.root(), above = [];

		this.tree = tree;
		for (let node = tree.parent(root); node >= 0; node = tree.parent(node))
			above.unshift(node);
		this.rows = above.map((node) => [{ node, x: 0, end: width }]);
		// Of two profiles the mean of both shares: what is gone is seen, too, and parts add up.
		const weight = (node) => tree.total(node) + (sums.before ? scaled(tree.before(node)) : 0);
		const stack = [[root, 0, width, above.length]];
		while (stack.length) {
			const [node, x, end, depth] = stack.pop();
			(this.rows[depth] ||= []).push({ node, x, end });
			const all = weight(node);
			let left = x;
			const next = [];
			for (const child of tree.children(node)) {
				const right = left + (all ? weight(child) / all * (end - x) : 0);
				if (right - left >= LEAST)
					next.push([child, left, Math.min(right, end), depth + 1]);
				left = right;
			}
			stack.push(...next.reverse());
		}
		this.height = this.rows.length * ROW;
		this.canvas.width = Math.max(1, Math.round(width * ratio));
		this.canvas.height = Math.max(1, Math.min(32000, Math.round(this.height * ratio)));
		this.canvas.style.width = width + "px";
		this.canvas.style.height = this.height + "px";
		context.scale(ratio, this.canvas.height / this.height);
		context.font = "12px system-ui, \"Liberation Sans\", \"DejaVu Sans\", sans-serif";
		context.textBaseline = "middle";
		this.rows.forEach((row, depth) => {
			const y = this.top(depth);
			for (const { node, x, end } of row) {
				const frame = tree.frame(node);
				let change = null;
				if (sums.before && !tree.color) {
					const points = changeOf(tree.total(node), tree.before(node));
					change = points / largest();
				}
				context.fillStyle = matches && frame >= 0 && matches[frame] ? set.match
					: tree.color ? tree.color(node) : frameColor(frame, change);
				context.globalAlpha = depth < above.length ? 0.5 : 1;
				context.fillRect(x, y, Math.max(end - x - (end - x > 2 ? 1 : 0), LEAST), ROW - 1);
				context.globalAlpha = 1;
				if (end - x > 24) {
					context.fillStyle = matches && frame >= 0 && matches[frame] ? set.edge : set.text;
					context.fillText(shorten(context, tree.name ? tree.name(node) : nameOf(frame), end - x - 8), x + 4, y + ROW / 2);
				}
				if (this.at === node && document.activeElement === this.canvas) {
					context.strokeStyle = set.chosen;
					context.lineWidth = 2;
					context.strokeRect(x + 1, y + 1, Math.max(end - x - 2, 1), ROW - 3);
				}
			}
		});
	}

	top(depth) {
		return this.options.up ? this.height - (depth + 1) * ROW : depth * ROW;
	}

	find(x, y) {
		const depth = this.options.up ? Math.floor((this.height - y) / ROW) : Math.floor(y / ROW);
		const found = (this.rows[depth] || []).find((place) => x >= place.x && x < place.end);

		return found ? found.node : null;
	}

	point(event) {
		const node = this.find(event.offsetX, event.offsetY);

		if (node === null)
			hideNote();
		else
			showNote(describe(this.tree, node), event.clientX, event.clientY);
		this.canvas.style.cursor = node === null ? "default" : "pointer";
	}

	/** Goes to a node by the keyboard, and says what it is. */
	go(node) {
		const depth = this.rows.findIndex((row) => row.some((place) => place.node === node));

		this.at = node;
		this.draw(this.tree);
		if (depth < 0)
			return;
		const place = this.rows[depth].find((other) => other.node === node);
		const box = this.canvas.getBoundingClientRect();
		window.scrollBy(0, Math.min(0, box.top + this.top(depth) - 120) ||
			Math.max(0, box.top + this.top(depth) + 2 * ROW - innerHeight));
		const moved = this.canvas.getBoundingClientRect();
		showNote(describe(this.tree, node), moved.left + (place.x + place.end) / 2, moved.top + this.top(depth) + ROW);
		announce(describe(this.tree, node).join(", "));
	}

	key(event) {
		const tree = this.tree, toLeaf = this.options.up ? "ArrowUp" : "ArrowDown";
		const toRoot = this.options.up ? "ArrowDown" : "ArrowUp";
		let node = this.at;

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (node === null || !this.rows.some((row) => row.some((place) => place.node === node)))
			node = tree.root();
		const parent = tree.parent(node);
		const row = this.rows.find((places) => places.some((place) => place.node === node)) || [];
		const number = row.findIndex((place) => place.node === node);
		if (event.key === toLeaf) {
			const kids = [...tree.children(node)].filter((child) =>
				this.rows.some((places) => places.some((place) => place.node === child)));
			kids.sort((a, b) => tree.total(b) - tree.total(a));
			this.go(kids.length && this.at !== null ? kids[0] : node);
		} else if (event.key === toRoot) {
			this.go(parent >= 0 ? parent : node);
		} else if (event.key === "ArrowLeft" && number > 0) {
			this.go(row[number - 1].node);
		} else if (event.key === "ArrowRight" && number + 1 < row.length) {
			this.go(row[number + 1].node);
		} else if (event.key === "Enter" || event.key === " ") {
			this.options.choose(tree, node, event);
		} else {
			return;
		}
		event.preventDefault();
	}
}

/** A value of what is compared with, in the measure of this profile: shares are compared. */
const scaled = (before) => sums.before.all ? before * (sums.now.all / sums.before.all || 1) : before;

/** The largest change of a function's share, in points of percent: it has the full colour. */
function largest() {
	if (sums.largest === undefined) {
		sums.largest = 1;
		for (let i = 0; i < data.names.length; i++)
			sums.largest = Math.max(sums.largest,
				Math.abs(changeOf(sums.now.functionTotal[i], sums.before.functionTotal[i])));
	}
	return sums.largest;
}

/** What is known of a node, as lines of text. */
function describe(tree, node) {
	if (tree.describe)
		return tree.describe(node);
	const frame = tree.frame(node), value = values[selection.value], lines = [nameOf(frame)];

	if (frame >= 0 && data.kinds[frame] !== KIND_LABEL) {
		const file = data.texts[data.files[frame]];
		lines.push(imageOf(frame) + (file ? ", " + file : "") + (data.inlined[frame] ? ", inlined" : ""));
	}
	lines.push("total " + amount(tree.total(node), value) + " (" + percent(tree.total(node), sums.now.all) +
		"), self " + amount(tree.self(node), value) + " (" + percent(tree.self(node), sums.now.all) + ")");
	if (sums.before)
		lines.push("was " + percent(tree.before(node), sums.before.all) + ": " +
			signed(changeOf(tree.total(node), tree.before(node))) + " points" +
			(tree.chance(node) > CHANCE_LEVEL ? " (not more than chance)" : ""));
	return lines;
}

// --- Views ---

let flame, callersPicture, calleesPicture; // made when they are first shown

/** What the colours mean: those that are there. */
function colorLegend() {
	const set = colors(), meanings = [];

	if (sums.before) {
		meanings.push([mix(set.same, set.more, 1), "a larger share"], [mix(set.same, set.less, 1), "a smaller share"]);
	} else {
		const kinds = ["code", "kernel", "script", "without a name", selection.first];
		kinds.forEach((text, kind) => data.kinds.includes(kind) && meanings.push([set.kinds[kind], text]));
		STATES.forEach((text, state) => state && states.some((one, i) => one === state && sums.now.weights[i]) &&
			meanings.push([set.states[state], text]));
	}
	return makeLegend(meanings);
}

export function drawFlame(view) {
	flame ||= new Picture({
		name: "Flame graph",
		choose(tree, node) {
			const frame = frames[node];
			select({ zoom: node, function: frame >= 0 && data.kinds[frame] !== KIND_LABEL ? frame : -1 });
		},
	});
	view.replaceChildren(colorLegend(), flame.canvas);
	if (dimensions.length)
		view.prepend(makeChoice("Below the root ", "first", [["", "functions"], ...dimensions.map(({ key }) => [key, key])],
			selection.first, (first) => select({ first, zoom: 0 })));
	flame.draw(wholeTree);
	if (data.calls.length)
		view.prepend(make("p", "This profile has counted calls, but no stacks: the graph has functions alone. " +
			"Choose one, and see its callers and callees."));
}

function chooseFunction(tree, node) {
	if (data.kinds[tree.frame(node)] !== KIND_LABEL)
		select({ function: tree.frame(node) });
}

export function drawSandwich(view) {
	const frame = selection.function;

	if (frame < 0) {
		view.replaceChildren(make("p", "Choose a function in the table or the flame graph: here is then what calls it, and what it calls."));
		return;
	}
	if (data.calls.length) {
		view.replaceChildren(callTable(frame, true), callTable(frame, false));
		return;
	}
	callersPicture ||= new Picture({ name: "Callers", up: true, choose: chooseFunction });
	calleesPicture ||= new Picture({ name: "Callees", choose: chooseFunction });
	view.replaceChildren(make("h2", "Callers of " + nameOf(frame)), callersPicture.canvas,
		make("h2", "Callees of " + nameOf(frame)), calleesPicture.canvas);
	callersPicture.draw(treeOf(frame, true));
	calleesPicture.draw(treeOf(frame, false));
}

/** Without stacks: who calls a function, or whom it calls, by the calls that were counted. */
function callTable(frame, callers) {
	const value = values[selection.value], found = new Map();
	const heads = ["Calls", "Cost", callers ? "Caller" : "Callee", "Image"];

	data.calls.forEach((calls) => calls.from.forEach((from, i) => {
		const other = callers ? from : calls.to[i];
		if ((callers ? calls.to[i] : from) !== frame)
			return;
		if (!found.has(other))
			found.set(other, { frame: other, name: nameOf(other), image: imageOf(other), calls: [0, 0], cost: [0, 0] });
		found.get(other).calls[calls.side] += calls.counts[i];
		found.get(other).cost[calls.side] += Math.abs(calls.values[selection.value][i]);
	}));
	if (sums.before)
		heads.splice(2, 0, "Change, points");
	const table = makeTable((callers ? "Callers of " : "Callees of ") + nameOf(frame) + ": " + value.type +
		" spent in the calls", heads), body = table.tBodies[0];
	const rows = [...found.values()].sort((a, b) => b.cost[0] - a.cost[0] || b.calls[0] - a.calls[0]);
	for (const row of rows) {
		const line = tableRow({ ...row, total: row.cost[0], change: sums.before ? changeOf(...row.cost) : 0,
			self: row.cost[0], before: row.cost[1] }, [["total"], ...(sums.before ? [["change"]] : []), ["name"], ["image"]], value);
		line.prepend(make("td", row.calls[0] ? row.calls[0].toLocaleString("en") : "", { class: "number" }));
		body.append(line);
	}
	if (!rows.length)
		body.insertRow().append(make("td", "none", { colspan: String(heads.length) }));
	return table;
}
