// SPDX-License-Identifier: 0BSD
/*
 * Why turns and waits took so long: the chains that web_why.c has written, as `profiltool why` prints
 * them. A turn is the time of a thread from one idle wait to the next.
 */
import { data, states, STATES, waitFirst, waitLength, waitSince } from "./profile.mjs";
import { select } from "./selection.mjs";

// Of parts, behind the states: as in web_why.c.
export const UNKNOWN = STATES.length, OTHER = UNKNOWN + 1;

export let moments = []; // turns, then waits: { isTurn, thread, label, since, length, first, size }, in ns
export let missing = null; // a stretch of a thread that was chosen, but whose chain is not in the page: { thread, since, until }
let sumFirst = []; // of each process: the first part of what it was blocked for

export const hasChains = () => Boolean(data.why);

export function loadChains() {
	let first = 0;

	moments = [];
	missing = null;
	sumFirst = [];
	if (!hasChains())
		return;
	for (const size of data.why.processes.sizes) {
		sumFirst.push(first);
		first += size;
	}
	for (const list of [data.why.turns, data.why.waits])
		for (const [i, size] of list.sizes.entries()) {
			moments.push({ isTurn: list === data.why.turns, thread: list.threads[i], label: data.texts[list.labels[i]],
				since: list.since[i], length: list.lengths[i], first, size });
			first += size;
		}
}

export const partText = (part) => data.texts[data.why.parts.texts[part]];
export const threadName = (thread) => data.texts[data.why.threads.names[thread]] + " (" + data.why.threads.tids[thread] + ")";
export const processName = (process) => data.texts[data.why.processes.names[process]];

/** A time of a chain, in ns, as ms from the beginning of the page's times. */
export const pageTime = (ns) => data.why.begin_s * 1000 - data.begin_ms + (data.why.begin_ns + ns) / 1e6;
const chainTime = (ms) => Math.round((ms - pageTime(0)) * 1e6);

/** A time of a chain as an option of profiltool takes it. */
function timeOption(ns) {
	const { begin_s: seconds, begin_ns: rest } = data.why, from = Math.floor((rest + ns) / 1e9);

	return "@" + (seconds + from) + "." + String(rest + ns - from * 1e9).padStart(9, "0");
}

/** The command that prints the chain of an interval of a thread, in ns. */
export const commandFor = (thread, since, until) => "profiltool why --thread " + data.why.threads.tids[thread] +
	" --since " + timeOption(since) + " --until " + timeOption(until) + " FILE";

/** A chain as a tree: node 0 is the whole, each other one a part; of each its parent and children. */
function treeFrom(first, size, length) {
	const { depths, lengths } = data.why.parts, path = [0];
	const tree = { first, parents: [-1], kids: [[]], lengths: [length] };

	for (let node = 1; node <= size; node++) {
		const depth = depths[first + node - 1];
		path[depth + 1] = node;
		tree.parents.push(path[depth]);
		tree.kids[path[depth]].push(node);
		tree.kids.push([]);
		tree.lengths.push(lengths[first + node - 1]);
	}
	return tree;
}

export const chainOf = ({ first, size, length }) => treeFrom(first, size, length);

/** For what all threads of a process were blocked. */
export const blockedOf = (process) => treeFrom(sumFirst[process], data.why.processes.sizes[process],
	data.why.processes.blocked[process]);

/** The node without parts of its own that took most of a chain. */
export const longestLeaf = (tree) => tree.kids.reduce((most, kids, node) => !kids.length &&
	data.why.parts.kinds[tree.first + node - 1] !== OTHER && (!most || tree.lengths[node] > tree.lengths[most]) ? node : most, 0);

/** What a node of a chain is; of a function, whose. */
export function nodeText(tree, node) {
	const part = (number) => tree.first + number - 1, { kinds } = data.why.parts, parent = tree.parents[node];

	return (parent > 0 && !kinds[part(node)] && !kinds[part(parent)] ? partText(part(parent)) + ": " : "") + partText(part(node));
}

/** The threads of a chain, in the order in which they come in it. */
export function threadsOf({ thread, first, size }) {
	return [...new Set([thread, ...data.why.parts.threads.slice(first, first + size)])];
}

/**
 * What threads did from one time to another, in ms: of each [{ since, until, state, sample }], without what
 * was before or after its life. Between its waits a thread ran, as far as that is certain.
 */
export function stretchesOf(threads, since, until) {
	const found = new Map(threads.map((thread) => [thread, []])), { of_labels: of, since: born, lengths } = data.why.threads;

	for (let i = 0; i < data.counts[0]; i++) {
		const list = found.get(of[data.sample_labels[i]]);
		for (let at = waitFirst[i]; list && at < waitFirst[i + 1]; at++)
			if (waitSince[at] < until && waitSince[at] + waitLength[at] > since)
				list.push({ since: waitSince[at], until: waitSince[at] + waitLength[at], state: states[i], sample: i });
	}
	return threads.map((thread) => {
		const all = [], end = Math.min(until, pageTime(born[thread] + lengths[thread]));
		let now = Math.max(since, pageTime(born[thread]));
		const add = (to, state, sample) => {
			if (to > now)
				all.push({ since: now, until: to, state, sample });
			now = Math.max(now, to);
		};

		for (const wait of found.get(thread).sort((a, b) => a.since - b.since)) {
			add(Math.min(wait.since, end), 0, -1);
			add(Math.min(wait.until, end), wait.state, wait.sample);
		}
		add(end, 0, -1);
		return all;
	});
}

/** The number of the moment whose chain explains a stretch of a thread, in ms: the wait itself, else the shortest turn; or -1. */
function momentAt(thread, since, until) {
	const from = chainTime(since), to = chainTime(until), middle = (from + to) / 2;
	let best = -1;

	moments.forEach((one, number) => {
		if (one.thread !== thread || one.since > middle || one.since + one.length < middle)
			return;
		if (best < 0 || (moments[best].isTurn && !one.isTurn) ||
			(moments[best].isTurn === one.isTurn && one.length < moments[best].length))
			best = number;
	});
	return best;
}

/** Shows the chain of a stretch of a thread, in ms. */
export function showChainAt(thread, since, until) {
	const moment = momentAt(thread, since, until);

	missing = moment < 0 ? { thread, since: chainTime(since), until: chainTime(until) } : null;
	select({ view: "why", moment, process: data.why.threads.processes[thread], part: 0 });
}
