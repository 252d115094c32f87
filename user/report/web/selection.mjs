// SPDX-License-Identifier: 0BSD
/*
 * What is selected, which all views share: a value, labels, an interval or two, a function, a part
 * of the tree. It is in the page's address, so that a colleague sees the same.
 */
import { data, dimensions, firstSide, frames, groupPaths, hasTimes, imageOf, isCompared, nodeCount, outermost, parents,
	paths, sampleCount, sampleTicks, slotFirst, slotOf, slotTicks, states, values, waitFirst, waitLength,
	waitSince } from "./profile.mjs";
import { chancesOf } from "./chance.mjs";

export const selection = {
	view: "flame",
	value: 0,
	search: "",
	since: null, until: null, // an interval, in ms from the beginning
	against: null, end: null, // another one, with which it is compared
	zoom: 0, // a call path
	function: -1, // a frame
	by: "function", // rows of the table
	lanes: "", // rows of the states: a label
	first: "", // the label whose values are the frames below the root
	code: "source", // or "instructions"
	states: "", // numbers of states that are shown; "": all
	process: 0, // whose turns and waits are listed
	moment: -1, // one of these, whose chain is shown
	part: 0, // of what its process was blocked for
	labels: {}, // key of a dimension: text
	where: "", has: "", // a label, and what its text contains
};
export const initial = structuredClone(selection);

export let sums; // what compute() makes
export const listeners = [];

/**
 * Recorded calls instead of stacks: what was spent in a function and what it calls is the sum of the
 * calls of it; or its own and the calls that it made, when none of it were counted.
 */
function totalByCalls(calls, functionSelf, all) {
	const called = new Float64Array(data.names.length), calling = new Float64Array(data.names.length);
	const counted = new Uint8Array(data.names.length), costs = calls.values[selection.value];

	calls.from.forEach((from, i) => {
		if (from === calls.to[i])
			return;
		calling[from] += Math.abs(costs[i]);
		called[calls.to[i]] += Math.abs(costs[i]);
		if (calls.counts[i])
			counted[calls.to[i]] = 1;
	});
	return called.map((cost, frame) =>
		Math.min(all, counted[frame] && cost ? cost : functionSelf[frame] + calling[frame]));
}

const callsOf = (side) => data.calls.find((calls) => calls.side === side);

/** What the selected samples sum up to, for each side: of call paths and functions. */
function sumUp(weights, side = 0) {
	const self = new Float64Array(nodeCount), total = new Float64Array(nodeCount);
	const functionSelf = new Float64Array(data.names.length);
	const functionTotal = new Float64Array(data.names.length);

	for (let i = 0; i < sampleCount; i++)
		self[paths[i]] += weights[i];
	total.set(self);
	for (let i = nodeCount - 1; i > 0; i--)
		total[parents[i]] += total[i];
	for (let i = 1; i < nodeCount; i++) {
		functionSelf[frames[i]] += self[i];
		if (outermost[i])
			functionTotal[frames[i]] += total[i];
	}
	const calls = callsOf(side);
	return { weights, self, total, functionSelf, all: total[0],
		functionTotal: calls ? totalByCalls(calls, functionSelf, total[0]) : functionTotal };
}

/** Which part of a sample is in an interval. */
function partWithin(sample, since, until) {
	const first = since / data.slot_ms, last = until / data.slot_ms;
	let part = 0, whole = 0;

	if (waitFirst[sample + 1] > waitFirst[sample]) {
		for (let at = waitFirst[sample]; at < waitFirst[sample + 1]; at++) {
			const end = waitSince[at] + waitLength[at];
			whole += waitLength[at];
			part += Math.max(0, Math.min(end, until) - Math.max(waitSince[at], since));
		}
	} else {
		whole = sampleTicks[sample];
		for (let at = slotFirst[sample]; at < slotFirst[sample + 1]; at++)
			if (slotOf[at] >= first && slotOf[at] < last)
				part += slotTicks[at];
	}
	return whole ? part / whole : 0;
}

/** What is to be set once, when a profile was loaded. */
export function begin() {
	const of = (key) => dimensions.find((dimension) => dimension.key === key), process = of("process");

	initial.value = data.value;
	// Several processes are divided from the start; labels of requests only when they are asked for.
	initial.first = process && process.of.some((text) => text !== process.of[0]) ? "process" : "";
	initial.lanes = (of("thread") || dimensions[0] || { key: "" }).key;
	initial.where = (of("query") || of("route") || dimensions[0] || { key: "" }).key;
	Object.assign(selection, structuredClone(initial));
}

/** What tests whether a text has what was typed: a part of it, or /a regular expression/. Throws if that is none. */
function matcherOf(typed) {
	if (typed.length > 2 && typed.startsWith("/") && typed.endsWith("/")) {
		const pattern = new RegExp(typed.slice(1, -1), "i");
		return (text) => pattern.test(text);
	}
	const small = typed.toLowerCase();
	return (text) => text.toLowerCase().includes(small);
}

/** What is wrong with what was typed, or "". */
function complaintOf(typed) {
	try {
		matcherOf(typed);
		return "";
	} catch (error) {
		return error.message;
	}
}

/** What tests whether the selection keeps a text of this label; null: it keeps all. */
export function labelTest(key) {
	const tests = [];

	if (Object.hasOwn(selection.labels, key))
		tests.push((text) => text === selection.labels[key]);
	if (selection.has && selection.where === key && !complaintOf(selection.has))
		tests.push(matcherOf(selection.has));
	return tests.length ? (text) => tests.every((test) => test(text)) : null;
}

/** What chooses samples, but for time. */
export const choice = () => JSON.stringify([selection.states, selection.labels, selection.has && selection.where, selection.has]);

/** Which samples the labels and states keep. */
function chosen() {
	const keep = new Uint8Array(sampleCount).fill(1);

	for (const { key, of } of dimensions) {
		const test = labelTest(key), known = new Map();
		for (let i = 0; test && i < sampleCount; i++) {
			if (!known.has(of[i]))
				known.set(of[i], test(data.texts[of[i]]));
			if (!known.get(of[i]))
				keep[i] = 0;
		}
	}
	if (selection.states !== "")
		for (let i = 0; i < sampleCount; i++)
			if (!selection.states.includes(states[i]))
				keep[i] = 0;
	return keep;
}

/** The values of the chosen samples from `first` on and before `end`, in an interval or in all. */
export function weigh(keep, first, end, since, until, value = selection.value) {
	const of = values[value].of, weights = new Float64Array(sampleCount);

	for (let i = first; i < end; i++)
		if (keep[i] && of[i])
			weights[i] = Math.abs(of[i]) * (since === null ? 1 : partWithin(i, since, until));
	return weights;
}

/** Makes the sums, unless those are of the same samples and values. */
function compute() {
	const { value, since, until, against, end, first } = selection;
	const of = JSON.stringify([value, since, until, against, end, first, choice()]);

	if (sums && sums.of === of)
		return;
	groupPaths(first);
	const keep = chosen();
	sums = { of, keep, complaint: complaintOf(selection.has),
		now: sumUp(weigh(keep, 0, firstSide, selection.since, selection.until)) };
	if (selection.against !== null)
		sums.before = sumUp(weigh(keep, 0, firstSide, selection.against, selection.end));
	else if (isCompared())
		sums.before = sumUp(weigh(keep, firstSide, sampleCount, null, null), 1);
}

/**
 * What chance says of all these amounts beside those before: chancesOf(). Undefined if the value counts no
 * samples, so that nobody knows.
 */
export function chances(now, before) {
	const { samples } = values[selection.value], scales = [samples[0], samples[selection.against === null ? 1 : 0]];
	const count = (number, side) => Math.round(number * scales[side]);
	const counts = (numbers, side) => numbers.map((number) => count(number, side));

	return scales[0] && scales[1] ? chancesOf(counts(now, 0), count(sums.now.all, 0), counts(before, 1), count(sums.before.all, 1))
		: undefined;
}

/** The change of a share, in points of percent. */
export const changeOf = (now, before) =>
	((sums.now.all ? now / sums.now.all : 0) - (sums.before.all ? before / sums.before.all : 0)) * 100;

// --- Search ---

export let matches = null; // of each frame: 1 if it is searched; NULL: nothing is

export let isSearched = null; // whether a text is

export function search() {
	const complaint = complaintOf(selection.search);

	matches = isSearched = null;
	if (!selection.search || complaint)
		return complaint;
	isSearched = matcherOf(selection.search);
	matches = Uint8Array.from(data.names, (name, frame) => isSearched(name) || isSearched(imageOf(frame)) ? 1 : 0);
	return "";
}

/** The sum of all stacks that have a function that is searched. */
export function matched() {
	const found = new Uint8Array(nodeCount);
	let sum = 0;

	for (let i = 1; i < nodeCount; i++) {
		if (matches[frames[i]] && !found[parents[i]])
			sum += sums.now.total[i];
		found[i] = found[parents[i]] || matches[frames[i]];
	}
	return sum;
}

// --- The address ---

function toAddress() {
	const parts = new URLSearchParams();

	for (const key of Object.keys(initial)) {
		if (key === "labels") {
			for (const [label, text] of Object.entries(selection.labels))
				parts.append("label." + label, text);
		} else if (selection[key] !== initial[key]) {
			parts.append(key, selection[key]);
		}
	}
	return "#" + parts;
}

/** Takes over what an address has that is possible here. */
export function fromAddress(address) {
	Object.assign(selection, structuredClone(initial));
	for (const [key, text] of new URLSearchParams(address.replace(/^#/, ""))) {
		if (key.startsWith("label."))
			selection.labels = { ...selection.labels, [key.slice(6)]: text }; // also of the name __proto__
		else if (typeof initial[key] === "string")
			selection[key] = text;
		else if (Object.hasOwn(initial, key) && key !== "labels" && Number.isFinite(Number(text)))
			selection[key] = Number(text);
	}
	if (!values[selection.value])
		selection.value = initial.value;
	groupPaths(selection.first);
	if (selection.zoom < 0 || selection.zoom >= nodeCount)
		selection.zoom = 0;
	if (selection.function >= data.names.length)
		selection.function = -1;
	if (selection.until === null || selection.until <= selection.since || !hasTimes())
		selection.since = selection.until = null;
	if (selection.end === null || selection.end <= selection.against || !hasTimes())
		selection.against = selection.end = null;
}

/** Changes the selection; the browser's "back" undoes it, unless it is a small step. */
export function select(changes, small = false) {
	Object.assign(selection, changes);
	const address = toAddress();
	if (address !== (location.hash || "#"))
		history[small ? "replaceState" : "pushState"](null, "", address);
	update();
}

export function update() {
	compute();
	for (const listener of listeners)
		listener();
}
