// SPDX-License-Identifier: 0BSD
/*
 * Over time: what was busy, as areas by a field of labels or by function, and a heat map in which a
 * column is a second (or more) and its rows are parts of it. Dragging selects an interval; with
 * Shift, the one that it is compared with.
 */
import { clockTime, data, dimensions, duration, firstSide, hasStates, hasTimes, sampleTicks, slotFirst, slotOf,
	slotTicks, states, values, waitFirst, waitLength, waitSince } from "./profile.mjs";
import { choice, listeners, select, selection, sums, update, weigh } from "./selection.mjs";
import { announce, colors, contentWidth, hideNote, isDark, make, makeChoice, makeMarked, mix, showNote,
	sized } from "./dom.mjs";
import { rowKey, rowViews } from "./table.mjs";

const AREAS = 8, AREA_HEIGHT = 90, HEAT_ROWS = 50, HEAT_HEIGHT = 150, COLUMN_MAX = 24, COLUMNS_MIN = 5;
const AREA_COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c", "#b8bcc4"];
let areaBy = "", areas, heat; // areaBy "": what fits the value

const areaColor = (number) => AREA_COLORS[number % AREA_COLORS.length];

/** Calls visit(sample, since, until, number) for each slot with ticks, and each wait. */
export function visitTimes(visit, value = selection.value) {
	const weights = timeWeights(value);

	for (let i = 0; i < firstSide; i++) {
		if (!weights[i])
			continue;
		if (waitFirst[i + 1] > waitFirst[i]) {
			for (let at = waitFirst[i]; at < waitFirst[i + 1]; at++)
				visit(i, waitSince[at], waitSince[at] + waitLength[at], waitLength[at]);
		} else if (sampleTicks[i]) {
			const each = weights[i] / sampleTicks[i] / (values[value].unit === "nanoseconds" ? 1e6 : 1);
			for (let at = slotFirst[i]; at < slotFirst[i + 1]; at++)
				visit(i, slotOf[at] * data.slot_ms, (slotOf[at] + 1) * data.slot_ms, slotTicks[at] * each);
		}
	}
}

/** The values of samples in all of the time: the interval is shown in it. */
function timeWeights(value) {
	return selection.since === null && selection.against === null && value === selection.value ? sums.now.weights
		: weigh(sums.keep, 0, firstSide, null, null, value);
}

/** Whether the chosen value has times of threads that did not run. */
export const valueHasStates = (value) => states.some((state, i) => state && values[value].of[i]);
const areasShown = () => areaBy || (hasStates() && valueHasStates(selection.value) ? "state"
	: dimensions.some((one) => one.key === "thread") ? "thread" : "function");

/** Adds a number to the bins that it is spread over. */
export function spread(bins, length, since, until, number) {
	const first = Math.max(0, Math.floor(since / length));
	const last = Math.min(bins.length - 1, Math.floor(Math.max(since, until - 1e-6) / length));

	for (let bin = first; bin <= last; bin++) {
		const part = Math.min(until, (bin + 1) * length) - Math.max(since, bin * length);
		bins[bin] += until > since ? number * part / (until - since) : number;
	}
}

function drawAreas(width) {
	// Of whole slots, so that all bins can have as many ticks.
	const length = Math.ceil(data.slots / Math.max(1, Math.floor(width / 3))) * data.slot_ms;
	const bins = Math.ceil(duration() / length);
	const value = values[selection.value], key = rowKey(areasShown()), series = new Map();

	visitTimes((i, since, until, number) => {
		const name = key(i);
		if (!series.has(name))
			series.set(name, { name, all: 0, bins: new Float64Array(bins) });
		const one = series.get(name);
		one.all += number;
		spread(one.bins, length, since, until, number);
	});
	const sorted = [...series.values()].sort((a, b) => b.all - a.all), shown = sorted.slice(0, AREAS);
	if (sorted.length > AREAS) {
		const other = { name: "others", all: 0, bins: new Float64Array(bins) };
		for (const one of sorted.slice(AREAS)) {
			other.all += one.all;
			one.bins.forEach((number, bin) => { other.bins[bin] += number; });
		}
		shown.push(other);
	}
	const sum = new Float64Array(bins);
	for (const one of shown)
		one.bins.forEach((number, bin) => { sum[bin] += number; });
	// A value in time is a number of CPUs or threads; others are per second.
	const scale = value.unit === "nanoseconds" ? 1 / length : 1000 / length;
	const most = usual(sum) * scale;

	const context = sized(areas, width, AREA_HEIGHT), base = new Float64Array(bins);
	const place = (number) => Math.max(0, AREA_HEIGHT - number * scale / most * (AREA_HEIGHT - 14));
	shown.forEach((one, number) => {
		context.fillStyle = areaColor(number);
		context.beginPath();
		for (let bin = 0; bin < bins; bin++) {
			const low = place(base[bin]);
			base[bin] += one.bins[bin];
			const high = place(base[bin]);
			context.rect(bin * length / duration() * width, high, length / duration() * width + 0.3, low - high);
		}
		context.fill();
	});
	context.fillStyle = colors().text;
	context.font = "11px system-ui, sans-serif";
	context.fillText(most.toFixed(most < 10 ? 2 : 0) + (value.unit === "nanoseconds"
		? value.type === "cpu" ? " CPUs" : " threads" : " " + value.type + "/s"), 2, 10);
	document.getElementById("axis").replaceChildren(...[0, 0.25, 0.5, 0.75, 1]
		.filter((part) => width >= 500 || part * 2 === Math.round(part * 2))
		.map((part) => make("span", clockTime(part * duration()))));

	const legend = document.getElementById("legend");
	legend.replaceChildren(...shown.map((one, number) => makeMarked("li", areaColor(number), one.name)));
}

function drawInterval(context, width, height, place) {
	const mark = (since, until, color) => {
		if (since === null)
			return;
		context.fillStyle = color;
		context.globalAlpha = 0.25;
		context.fillRect(place(since), 0, Math.max(1, place(until) - place(since)), height);
		context.globalAlpha = 1;
		context.strokeStyle = color;
		context.strokeRect(place(since) + 0.5, 0.5, Math.max(1, place(until) - place(since)), height - 1);
	};

	mark(selection.since, selection.until, isDark() ? "#8ab4f8" : "#0b57d0");
	mark(selection.against, selection.end, "#d55e00");
}

/** What all but a hundredth of the numbers do not exceed: a single peak does not hide the others. */
function usual(numbers) {
	const sorted = Float64Array.from(numbers).sort();

	return sorted[Math.floor((sorted.length - 1) * 0.99)] || sorted[sorted.length - 1] || 1;
}

/** A column of the heat map, in ms, so that there are at most some hundred of them. */
function columnLength(width) {
	for (const length of [1000, 2000, 5000, 10000, 30000, 60000, 300000, 600000, 3600000, 86400000])
		if (duration() / length <= width / 4)
			return length;
	return duration();
}

function drawHeat(room) {
	const column = columnLength(room), columns = Math.max(1, Math.ceil(duration() / column));
	// A few columns say no more than the areas.
	heat.hidden = document.getElementById("heat-says").hidden = duration() < COLUMNS_MIN * column;
	if (heat.hidden)
		return;
	const width = Math.min(room, columns * COLUMN_MAX);
	document.getElementById("heat-says").textContent = "Each column is " + (column < 60000 ? column / 1000 + " s"
		: column < 3600000 ? column / 60000 + " min" : column / 3600000 + " h") + ", from bottom to top; the stronger, the busier.";
	const rows = Math.max(1, Math.min(HEAT_ROWS, Math.round(column / data.slot_ms)));
	const cell = column / rows, bins = new Float64Array(columns * rows), context = sized(heat, width, HEAT_HEIGHT);

	visitTimes((i, since, until, number) => spread(bins, cell, since, until, number));
	const most = usual(bins), wide = width / columns, high = HEAT_HEIGHT / rows;
	heat.geometry = { column, wide, rows, cell, columns };
	for (let bin = 0; bin < bins.length; bin++) {
		const x = Math.floor(bin / rows) * wide, y = HEAT_HEIGHT - (bin % rows + 1) * high;
		const part = Math.min(1, bins[bin] / most);
		if (bin * cell >= duration())
			break;
		context.fillStyle = isDark() ? mix([34, 37, 44], [255, 214, 102], Math.sqrt(part))
			: mix([243, 244, 246], [140, 30, 60], Math.sqrt(part));
		context.fillRect(x, y, wide - (wide > 4 ? 1 : 0), high + 0.2);
	}
}

/** The interval in the heat map. */
function drawHeatInterval(context) {
	const { wide, rows, cell } = heat.geometry, high = HEAT_HEIGHT / rows;

	for (const [since, until, color] of [[selection.since, selection.until, isDark() ? "#8ab4f8" : "#0b57d0"],
		[selection.against, selection.end, "#d55e00"]]) {
		if (since === null)
			continue;
		context.fillStyle = color;
		context.globalAlpha = 0.35;
		for (let at = Math.floor(since / cell); at < Math.ceil(until / cell); at++)
			context.fillRect(Math.floor(at / rows) * wide, HEAT_HEIGHT - (at % rows + 1) * high, wide, high + 0.2);
		context.globalAlpha = 1;
	}
}

function copyOf(canvas) {
	const copy = make("canvas", null);

	copy.width = canvas.width;
	copy.height = canvas.height;
	copy.getContext("2d").drawImage(canvas, 0, 0);
	return copy;
}

/** The time at a place in the areas; in the heat map, the beginning of a cell, or its end. */
function timeAt(canvas, x, y, end) {
	const width = canvas.clientWidth;

	if (canvas === areas)
		return Math.max(0, Math.min(duration(), x / width * duration()));
	const { column, wide, rows, cell, columns } = heat.geometry;
	const at = Math.max(0, Math.min(columns - 1, Math.floor(x / wide)));
	const row = Math.max(0, Math.min(rows - 1, Math.floor((HEAT_HEIGHT - y) / (HEAT_HEIGHT / rows))));
	return Math.min(duration(), at * column + (row + (end ? 1 : 0)) * cell);
}

/** Selects from one time to another; a click alone ends the selection. */
function brush(canvas, begin, event, done) {
	const from = timeAt(canvas, begin.offsetX, begin.offsetY, false);
	const to = timeAt(canvas, event.offsetX, event.offsetY, false);
	const since = Math.min(from, to);
	const until = canvas === heat ? Math.min(duration(), Math.max(from, to) + heat.geometry.cell) : Math.max(from, to);
	const moved = Math.abs(event.offsetX - begin.offsetX) + Math.abs(event.offsetY - begin.offsetY) > 3;

	if (!moved && done)
		select(begin.shiftKey ? { against: null, end: null } : { since: null, until: null });
	else if (moved && begin.shiftKey)
		select({ against: since, end: until }, !done);
	else if (moved)
		select({ since, until }, !done);
}

/** Moves the interval by the keyboard: a step is a fiftieth of the time. */
function timeKey(event) {
	const step = duration() / 50, length = selection.since === null ? step : selection.until - selection.since;
	let since = selection.since === null ? 0 : selection.since, until = since + length;

	if (event.ctrlKey || event.altKey || event.metaKey)
		return;
	if (event.key === "c" && selection.since !== null) {
		select({ against: selection.since, end: selection.until, since: null, until: null });
		return;
	}
	if (event.key === "ArrowRight" && event.shiftKey)
		until += step;
	else if (event.key === "ArrowLeft" && event.shiftKey)
		until = Math.max(since + step, until - step);
	else if (event.key === "ArrowRight")
		[since, until] = selection.since === null ? [0, step] : [since + step, until + step];
	else if (event.key === "ArrowLeft")
		[since, until] = [since - step, until - step];
	else
		return;
	event.preventDefault();
	event.stopPropagation();
	since = Math.max(0, Math.min(since, duration() - length));
	select({ since, until: Math.min(duration(), Math.max(until, since + step)) }, true);
	announce("from " + clockTime(selection.since) + " to " + clockTime(selection.until));
}

export function prepareTime(section) {
	if (!hasTimes())
		return;
	const label = makeChoice("Over time by ", "areas-by", rowViews().map((name) => [name, name]), areasShown(), (name) => {
		areaBy = name;
		update();
	});
	areas = make("canvas", null, { tabindex: "0", role: "application",
		"aria-label": "Over time: arrows move an interval, with Shift they change its length, c compares with it" });
	heat = make("canvas", null, { tabindex: "0", role: "application",
		"aria-label": "Heat map of parts of seconds: arrows move an interval, with Shift they change its length" });
	section.append(label, make("ul", null, { id: "legend", "aria-label": "Colours" }), areas, make("div", null, { id: "axis" }),
		make("p", "", { id: "heat-says", class: "faint" }), heat);
	for (const canvas of [areas, heat]) {
		let begin = null;
		canvas.addEventListener("pointerdown", (event) => {
			begin = event;
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener("pointermove", (event) => {
			showNote([clockTime(timeAt(canvas, event.offsetX, event.offsetY, false))], event.clientX, event.clientY);
			if (begin)
				brush(canvas, begin, event, false);
		});
		canvas.addEventListener("pointerup", (event) => {
			if (begin)
				brush(canvas, begin, event, true);
			begin = null;
		});
		canvas.addEventListener("pointerleave", hideNote);
		canvas.addEventListener("keydown", timeKey);
	}
	// Only what is around the interval takes long to draw: it is kept as long as it is the same.
	let drawn = "", pictures = [];
	listeners.push(() => {
		const width = contentWidth(section);
		const of = JSON.stringify([selection.value, choice(), width, areasShown(), isDark(), devicePixelRatio]);
		label.control.value = areasShown();
		if (of !== drawn) {
			drawAreas(width);
			drawHeat(width);
			pictures = [areas, heat].map(copyOf);
		}
		drawn = of;
		[areas, heat].forEach((canvas, number) => {
			const context = canvas.getContext("2d");
			context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
			context.drawImage(pictures[number], 0, 0, canvas.clientWidth, canvas.clientHeight);
			if (canvas === areas)
				drawInterval(context, width, AREA_HEIGHT, (ms) => ms / duration() * width);
			else if (!heat.hidden)
				drawHeatInterval(context);
		});
	});
}
