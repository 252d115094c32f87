// SPDX-License-Identifier: 0BSD
/*
 * The profile: what web_data.c has written, as arrays.
 *
 * Names come from untrusted files and processes: they become text, never markup.
 */

// Kinds of frames, as in web_data.c, between which are kernel, script and unnamed. States are KIND_STATE + RUNNABLE ...
export const KIND_USER = 0, KIND_PROCESS = 4, KIND_STATE = 5;
export const STATES = ["on CPU", "runnable", "blocked", "idle"];

export let data; // as parsed
export let nodeCount, parents, frames; // call paths; the first is that of all stacks
export let outermost; // of each call path: 1 if its function is not in it before
let childrenSorted; // of each call path: 1 if childrenOf() has sorted them
export let childFirst, childList; // the children of path i: childList[childFirst[i] .. childFirst[i + 1]]
export let sampleCount, firstSide; // samples, and how many are of the profile itself
export let paths, states; // of each sample: its call path, and what the thread did
export let values; // values[v].of[sample]
export let dimensions; // fields of labels: key, and of each sample the number of a text
export let slotFirst, slotOf, slotTicks; // of each sample: slots of time with ticks, and how many
export let sampleTicks; // of each sample: all of these
export let waitFirst, waitSince, waitLength; // of each sample: its waits, in ms from the beginning
export let nameRanks; // of each frame: its place in the order of names

export async function inflate(base64) {
	const packed = atob(base64), bytes = new Uint8Array(packed.length);

	for (let i = 0; i < packed.length; i++)
		bytes[i] = packed.charCodeAt(i);
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return JSON.parse(await new Response(stream).text());
}

/** Returns where each group begins, of groups of these sizes, and the end of the last. */
function beginnings(sizes, count) {
	const first = new Uint32Array(count + 1);

	for (let i = 0; i < count; i++)
		first[i + 1] = first[i] + (sizes ? sizes[i] || 0 : 0);
	return first;
}

function loadPaths() {
	nodeCount = data.parents.length + 1;
	parents = new Int32Array(nodeCount);
	frames = new Int32Array(nodeCount);
	parents[0] = frames[0] = -1;
	const count = data.names.length, distances = data.parents, numbers = data.frames;
	const followers = Array.from({ length: count + 1 }, () => []); // of each frame, and of the root
	let at = 0;
	for (let i = 1; i < nodeCount; i++) {
		const parent = parents[i] = i - distances[i - 1];
		const found = followers[parent ? frames[parent] : count], number = numbers[at++];
		if (number === found.length)
			found.push(numbers[at++]);
		frames[i] = found[number];
	}
	data.parents = data.frames = null;

	const order = data.names.map((name, i) => i);
	order.sort((a, b) => data.names[a] < data.names[b] ? -1 : data.names[a] > data.names[b] ? 1 : a - b);
	nameRanks = new Int32Array(count);
	order.forEach((frame, rank) => { nameRanks[frame] = rank; });

	const sizes = new Uint32Array(nodeCount);
	for (let i = 1; i < nodeCount; i++)
		sizes[parents[i]]++;
	childFirst = beginnings(sizes, nodeCount);
	childList = new Int32Array(nodeCount - 1);
	childrenSorted = new Uint8Array(nodeCount);
	const free = childFirst.slice();
	for (let i = 1; i < nodeCount; i++)
		childList[free[parents[i]]++] = i;

	// From each path to the next one in the order of their numbers, which is nearly the shortest way
	// through the tree, with the number of times that each function is on the path.
	outermost = new Uint8Array(nodeCount);
	const within = new Int32Array(count), below = new Int32Array(nodeCount);
	let here = 0;
	for (let i = 1; i < nodeCount; i++) {
		let depth = 0;
		for (let there = parents[i]; there !== here;) {
			if (there > here) {
				below[depth++] = there;
				there = parents[there];
			} else {
				within[frames[here]]--;
				here = parents[here];
			}
		}
		while (depth)
			within[frames[below[--depth]]]++;
		outermost[i] = within[frames[i]]++ ? 0 : 1;
		here = i;
	}
}

/** The children of a call path in the order of their names, so that two pictures of a program are alike. */
export function childrenOf(node) {
	const children = childList.subarray(childFirst[node], childFirst[node + 1]);

	if (!childrenSorted[node] && children.length > 1)
		children.sort((a, b) => nameRanks[frames[a]] - nameRanks[frames[b]]);
	childrenSorted[node] = 1; // they are where they were
	return children;
}

function loadSamples() {
	sampleCount = data.paths.length;
	firstSide = data.counts[0];
	paths = new Int32Array(sampleCount);
	states = new Uint8Array(sampleCount);
	let path = 0;
	for (let i = 0; i < sampleCount; i++) {
		path += data.paths[i];
		paths[i] = path;
		const kind = path ? data.kinds[frames[path]] : KIND_USER;
		states[i] = kind > KIND_STATE ? kind - KIND_STATE : 0;
	}
	values = data.values.map((value) => ({ ...value, of: Float64Array.from(value.of, (number) => number * value.step) }));
	dimensions = data.labels.map((label) => ({
		key: label.key,
		of: Int32Array.from(data.sample_labels, (labels) => label.texts[labels]),
	}));

	slotFirst = beginnings(data.tick_slots, sampleCount);
	slotOf = new Int32Array(slotFirst[sampleCount]);
	slotTicks = Int32Array.from(data.tick_counts || []);
	sampleTicks = new Float64Array(sampleCount);
	waitFirst = beginnings(data.wait_counts, sampleCount);
	waitSince = new Float64Array(waitFirst[sampleCount]);
	waitLength = Float64Array.from(data.wait_lengths || [], (us) => us / 1000);
	for (let i = 0; i < sampleCount; i++) {
		let slot = 0, since = 0;
		for (let at = slotFirst[i]; at < slotFirst[i + 1]; at++) {
			slot += data.tick_steps[at];
			slotOf[at] = slot;
			sampleTicks[i] += slotTicks[at];
		}
		for (let at = waitFirst[i]; at < waitFirst[i + 1]; at++) {
			since += data.wait_steps[at];
			waitSince[at] = since / 1000;
		}
	}
}

/** Takes over a profile, which changes. */
export function load(profile) {
	data = profile;
	loadPaths();
	loadSamples();
}

export const duration = () => data.slots * data.slot_ms;
export const hasTimes = () => data.slots > 1 && (slotOf.length > 0 || waitSince.length > 0);
export const hasStates = () => states.some((state) => state);
export const isCompared = () => sampleCount > firstSide;
export const nameOf = (frame) => frame < 0 ? "all" : data.names[frame];
export const imageOf = (frame) => frame < 0 ? "" : data.texts[data.images[frame]];
export const baseName = (path) => path.slice(path.lastIndexOf("/") + 1) || path;

// --- Numbers for people ---

export function amount(number, value) {
	if (value.unit === "nanoseconds")
		return (number / 1e9).toLocaleString("en", { minimumFractionDigits: 3,
			maximumFractionDigits: 3 }) + " s";
	if (value.unit === "bytes")
		return (number / 1024).toLocaleString("en", { maximumFractionDigits: 0 }) + " KiB";
	return Math.round(number).toLocaleString("en");
}

export const percent = (part, whole) => (whole ? part * 100 / whole : 0).toFixed(2) + " %";

export function signed(points) {
	const rounded = Math.round(points * 100) / 100 || 0; // never -0

	return (rounded > 0 ? "+" : "") + rounded.toFixed(2);
}

/** A time of the recording, in ms from its beginning. */
export function clockTime(ms) {
	const date = new Date(data.begin_ms + ms), length = data.slots * data.slot_ms;
	const text = date.toTimeString().slice(0, 8);

	return length > 6e5 ? text : text + "." + String(date.getMilliseconds()).padStart(3, "0");
}
