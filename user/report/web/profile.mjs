// SPDX-License-Identifier: 0BSD
/*
 * The profile: what web_data.c has written, as arrays.
 *
 * Names come from untrusted files and processes: they become text, never markup.
 */

// Kinds of frames, as in web_data.c, between which are kernel, script and unnamed. States are KIND_STATE + RUNNABLE ...
export const KIND_USER = 0, KIND_LABEL = 4, KIND_STATE = 5;
const PATHS_MAX = 4000000; // as WEB_PATHS_MAX
export const STATES = ["on CPU", "runnable", "blocked", "idle"];

export let data; // as parsed
export let nodeCount, parents, frames; // call paths; the first is that of all stacks
export let outermost; // of each call path: 1 if its function is not in it before
let childrenSorted; // of each call path: 1 if childrenOf() has sorted them
let stored; // the call paths as the file has them
let grouped; // the label whose values they begin with here; "": of none
export let isTooMuch; // of that label there would be more call paths than a browser has room for: they are as stored
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
}

/** Makes what follows from the call paths: their children, and which of their functions are the outermost ones. */
function indexPaths() {
	const count = data.names.length, order = data.names.map((name, i) => i);

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

/** Takes over a profile, which changes. groupPaths() is to follow. */
export function load(profile) {
	data = profile;
	loadPaths();
	loadSamples();
	stored = { nodeCount, parents, frames, paths, names: data.names.length };
	grouped = null;
}

export const labelText = (dimension, sample) => data.texts[dimension.of[sample]] || "[no " + dimension.key + "]";

/** Makes the values of a label the frames below the root, each with the call paths of its samples; "": of none. */
export function groupPaths(key) {
	if (key === grouped)
		return;
	const dimension = dimensions.find((other) => other.key === key), groups = new Map();
	const above = [-1], own = [-1], within = new Uint32Array(stored.nodeCount), renamed = new Uint32Array(stored.nodeCount);

	({ nodeCount, parents, frames, paths } = stored);
	for (const list of [data.names, data.kinds, data.images, data.files, data.inlined])
		list.length = stored.names;
	for (let i = 0; dimension && i < sampleCount; i++) {
		if (!groups.has(dimension.of[i]))
			groups.set(dimension.of[i], []);
		groups.get(dimension.of[i]).push(i);
	}
	if (groups.size)
		paths = new Int32Array(sampleCount);
	for (const samples of groups.values()) {
		const found = [], group = data.names.push(labelText(dimension, samples[0])) - stored.names;
		data.kinds.push(KIND_LABEL);
		for (const list of [data.images, data.files, data.inlined])
			list.push(0);
		for (const i of samples)
			for (let path = stored.paths[i]; path && within[path] !== group; path = stored.parents[path]) {
				within[path] = group;
				found.push(path);
			}
		renamed[0] = own.push(stored.names + group - 1) - 1;
		above.push(0);
		for (const path of Int32Array.from(found).sort()) { // parents come before their children
			above.push(renamed[stored.parents[path]]);
			renamed[path] = own.push(stored.frames[path]) - 1;
		}
		for (const i of samples)
			paths[i] = renamed[stored.paths[i]];
		if (own.length > PATHS_MAX) {
			groupPaths("");
			grouped = key;
			isTooMuch = true;
			return;
		}
	}
	if (groups.size) {
		nodeCount = own.length;
		parents = Int32Array.from(above);
		frames = Int32Array.from(own);
	}
	indexPaths();
	grouped = key;
	isTooMuch = false;
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
