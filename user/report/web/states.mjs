// SPDX-License-Identifier: 0BSD
/*
 * Threads, or what has another label, and their states.
 */
import { amount, data, dimensions, duration, firstSide, hasTimes, KIND_USER, labelText, STATES, states,
	values, waitFirst, waitLength,
	waitSince } from "./profile.mjs";
import { select, selection, sums, weigh } from "./selection.mjs";
import { capital, colors, make, makeButton, makeChoice, makeMarked, makeTable, sized } from "./dom.mjs";
import { shownRows } from "./table.mjs";
import { spread, valueHasStates, visitTimes } from "./time.mjs";
import { hasChains, showChainAt } from "./chain.mjs";

const CAUSED = [STATES.indexOf("runnable"), STATES.indexOf("blocked")];

/**
 * The states of each thread, query, ...: when and how long it was on a CPU, runnable, blocked or idle. Without times
 * a bar says how long.
 */
export function drawStates(view) {
	const dimension = dimensions.find((other) => other.key === selection.lanes) || dimensions[0];
	// Only some values have waits: the wall time has all.
	const wall = values.findIndex((one) => one.type === "wall");
	const shown = wall < 0 || valueHasStates(selection.value) ? selection.value : wall;
	const value = values[shown], groups = new Map(), width = Math.min(420, Math.floor(innerWidth * 0.4));
	const weights = shown === selection.value ? sums.now.weights
		: weigh(sums.keep, 0, firstSide, selection.since, selection.until, shown);
	const length = hasTimes() ? Math.ceil(data.slots / width) * data.slot_ms : 0;
	const group = (i) => {
		const name = dimension ? labelText(dimension, i) : "all";
		if (!groups.has(name))
			groups.set(name, { name, all: 0, samples: [], states: STATES.map(() => 0),
				lanes: STATES.map(() => new Float64Array(length ? Math.ceil(duration() / length) : 0)) });
		return groups.get(name);
	};

	for (let i = 0; i < firstSide; i++)
		if (weights[i]) {
			group(i).all += weights[i];
			group(i).samples.push(i);
			group(i).states[states[i]] += weights[i];
		}
	if (length)
		visitTimes((i, since, until, number) => spread(group(i).lanes[states[i]], length, since, until, number), shown);
	const rows = [...groups.values()].sort((a, b) => b.all - a.all).slice(0, shownRows);
	const most = Math.max(...rows.map((row) => row.all), 1);
	const of = dimension ? dimension.key : "thread";
	const table = makeTable("States of threads by " + of + ": " + value.type, [capital(of),
		make("th", length ? "Over time" : "Parts", { scope: "col", class: "bars" }), ...STATES.map(stateHead)]);
	for (const row of rows) {
		const line = make("tr", null), cell = make("td", null), bars = make("td", null, { class: "bars" });
		cell.append(makeButton(row.name, () => dimension &&
			select({ labels: { ...selection.labels, [dimension.key]: data.texts[dimension.of[row.samples[0]]] } }), { class: "name" }));
		line.append(cell, bars);
		if (length)
			bars.append(laneOf(row, width));
		row.states.forEach((time, state) => {
			const bar = make("span", null, { class: "bar" });
			bar.style.width = time / most * 100 + "%";
			bar.style.background = stateColor(state);
			bar.title = STATES[state] + ": " + amount(time, value);
			if (!length)
				bars.append(bar);
			line.append(make("td", time ? amount(time, value) : "", { class: "number" }));
		});
		table.tBodies[0].append(line);
	}
	view.replaceChildren(...dimension ? [makeChoice("Rows by ", "lanes", dimensions.map(({ key }) => [key, key]), of,
		(lanes) => select({ lanes }))] : [], table);
}

/** The lane of a thread. If there are chains, a click on a wait shows that of the longest one there. */
function laneOf(row, width) {
	const canvas = make("canvas", null, { "aria-hidden": "true" });

	drawLanes(canvas, row.lanes, width, 14);
	if (!hasChains())
		return canvas;
	canvas.style.cursor = "pointer";
	canvas.addEventListener("click", (event) => {
		const time = event.offsetX / width * duration(), room = duration() / width;
		let longest = null;
		for (const i of row.samples)
			for (let at = waitFirst[i]; at < waitFirst[i + 1] && CAUSED.includes(states[i]); at++)
				if (waitSince[at] < time + room && waitSince[at] + waitLength[at] > time - room &&
					(!longest || waitLength[at] > longest.length))
					longest = { thread: data.why.threads.of_labels[data.sample_labels[i]], since: waitSince[at], length: waitLength[at] };
		if (longest)
			showChainAt(longest.thread, longest.since, longest.since + longest.length);
	});
	return canvas;
}

/** The head of a state's column, with its colour. */
const stateHead = (state, number) => makeMarked("th", stateColor(number), state, { scope: "col" });

export const stateColor = (state) => state ? colors().states[state] : colors().kinds[KIND_USER];

/** A thread over time: in each column, its states as parts of that. Returns the canvas's context. */
export function drawLanes(canvas, bins, width, height) {
	const context = sized(canvas, width, height), count = bins[0].length;

	for (let bin = 0; bin < count; bin++) {
		const all = bins.reduce((sum, state) => sum + state[bin], 0);
		let y = height;
		bins.forEach((state, number) => {
			const high = all ? state[bin] / all * height : 0;
			context.fillStyle = stateColor(number);
			context.fillRect(bin / count * width, y - high, width / count + 0.3, high);
			y -= high;
		});
	}
	return context;
}
