// SPDX-License-Identifier: 0BSD
/*
 * A function's source lines and instructions with the selected samples of each: self, where samples
 * ended, and total, those with the line anywhere in their stack.
 */
import { amount, baseName, data, firstSide, imageOf, nameOf, percent, sampleCount,
	values } from "./profile.mjs";
import { select, selection, sums, update } from "./selection.mjs";
import { element, LONG, make, makeButton, makeChoice, makeTable } from "./dom.mjs";
import { tableRow } from "./table.mjs";

const CODE_NEAR = 4; // lines without samples that are shown around one that has some
let codesOf; // of a frame: numbers in data.functions, its own first
let stepParents, stepPlaces, sampleSteps; // ways of stacks through code; the first one is empty
let sourceLines; // of a file: its lines by their numbers
let wholeCode = false, codeShown = -1; // codeShown: of several functions of one name, a number in data.functions

export function loadCode() {
	codesOf = new Map();
	const note = (frame, number) => {
		if (!codesOf.has(frame))
			codesOf.set(frame, []);
		if (!codesOf.get(frame).includes(number))
			codesOf.get(frame).push(number);
	};
	data.functions.forEach((one, number) => note(one.frame, number));
	data.functions.forEach((one, number) => one.inlined_frames.forEach((frame) => note(frame, number)));

	const count = data.step_parents.length + 1;
	stepParents = new Int32Array(count);
	stepPlaces = Int32Array.from([0, ...data.step_places]);
	for (let i = 1; i < count; i++)
		stepParents[i] = i - data.step_parents[i - 1];
	sampleSteps = new Int32Array(sampleCount);
	let step = 0;
	data.sample_steps.forEach((distance, sample) => { sampleSteps[sample] = step += distance; });

	sourceLines = new Map();
	for (const source of data.sources) {
		const lines = new Map();
		let number = 0;
		source.steps.forEach((distance, i) => lines.set(number += distance, source.lines[i]));
		sourceLines.set(source.file, lines);
	}
	for (const one of data.functions) {
		let address = BigInt(one.start);
		one.addresses = one.steps.map((distance) => (address += BigInt(distance)).toString(16));
	}
}

/** What the selected samples sum up to in each step. */
function stepSums() {
	if (!sums.steps) {
		const self = new Float64Array(stepParents.length);
		for (let i = 0; i < firstSide; i++)
			self[sampleSteps[i]] += sums.now.weights[i];
		const total = self.slice();
		for (let i = total.length - 1; i > 0; i--)
			total[stepParents[i]] += total[i];
		sums.steps = { self, total };
	}
	return sums.steps;
}

/** Sums up rows: rowOf(place) is the row of a place of the page's code, or undefined. */
function sumRows(rowOf) {
	const { self, total } = stepSums(), rows = new Map(), of = [undefined];

	for (let step = 1; step < stepParents.length; step++) {
		const row = of[step] = stepPlaces[step] ? rowOf(stepPlaces[step] - 1) : undefined;
		if (row === undefined || !total[step])
			continue;
		if (!rows.has(row))
			rows.set(row, { self: 0, total: 0 });
		rows.get(row).self += self[step];
		// A line counts once in a stack, however often it is there.
		let above = stepParents[step];
		while (above && of[above] !== row)
			above = stepParents[above];
		if (!above)
			rows.get(row).total += total[step];
	}
	return rows;
}

const hasLines = (one) => one.lines.length > 0;

/** "x.c:12", or where it is inlined: "x.h:12 (inlined f)". */
function placeName(one, line) {
	return one.inlined[line] ? baseName(one.inlined_files[line]) + ":" + one.inlined_lines[line] +
		" (inlined " + one.inlined[line] + ")" : baseName(one.line_files[line]) + ":" + one.lines[line];
}

function placeText(one, line) {
	const file = one.inlined[line] ? one.inlined_files[line] : one.line_files[line];
	const lines = sourceLines.get(file);

	return (lines && lines.get(one.inlined[line] ? one.inlined_lines[line] : one.lines[line])) || "";
}

/** Rows of source lines: [{ key, head, number, text, part }]; part: what is inlined in the line above. */
function sourceRows(number) {
	const one = data.functions[number], files = [...new Set(one.line_files)], rows = [];
	const lineKey = (line) => one.line_files[line] + ":" + one.lines[line];
	const partKey = (line) => one.inlined[line] ? lineKey(line) + ">" + placeName(one, line) : undefined;
	const inPlace = (key) => (place) => data.place_functions[place] === number && data.place_lines[place]
		? key(data.place_lines[place] - 1) : undefined;
	const lineSums = sumRows(inPlace(lineKey)), partSums = sumRows(inPlace(partKey));

	for (const file of files) {
		const text = sourceLines.get(file) || new Map(), parts = new Map(), numbers = new Set();
		one.lines.forEach((line, i) => {
			if (one.line_files[i] !== file)
				return;
			numbers.add(line);
			if (one.inlined[i])
				parts.set(partKey(i), i);
		});
		const first = Math.min(...numbers), last = Math.max(...numbers);
		for (const line of text.keys())
			if (line >= first - 2 && line <= last + 2)
				numbers.add(line);
		const sorted = [...numbers].sort((a, b) => a - b);
		rows.push({ head: file + (text.size ? "" : " (its text is not in this page)") });
		sorted.forEach((line, i) => {
			if (i && line - sorted[i - 1] > 1 && text.size)
				rows.push({ omitted: line - sorted[i - 1] - 1 });
			rows.push({ number: line, text: text.get(line) || "", ...lineSums.get(file + ":" + line) });
			for (const [key, part] of parts)
				if (one.lines[part] === line && partSums.has(key))
					rows.push({ number: "", part: true, ...partSums.get(key),
						text: "> " + placeName(one, part) + "  " + placeText(one, part).trim() });
		});
	}
	return rows;
}

function instructionRows(number) {
	const one = data.functions[number], rows = [];
	const found = sumRows((place) => data.place_functions[place] === number ? data.place_instructions[place] : undefined);
	let line = 0;

	one.instructions.forEach((text, i) => {
		if (one.omitted[i])
			rows.push({ omitted: one.omitted[i] });
		if (one.line_of[i] && one.line_of[i] !== line) {
			line = one.line_of[i];
			rows.push({ text: placeName(one, line - 1) + "  " + placeText(one, line - 1).trim(), source: true });
		}
		rows.push({ number: one.addresses[i], text, target: one.targets[i], id: i + 1, ...found.get(i + 1) });
	});
	if (one.omitted[one.instructions.length])
		rows.push({ omitted: one.omitted[one.instructions.length] });
	if (found.has(0))
		rows.push({ text: "instructions that are not in this page", ...found.get(0) });
	return rows;
}

/** Keeps rows near to those with samples; a number stands for the others. */
export function nearRows(rows) {
	const keep = new Uint8Array(rows.length), kept = [];

	rows.forEach((row, i) => {
		if (row.head)
			keep[i] = 1;
		else if (row.total)
			keep.fill(1, Math.max(0, i - CODE_NEAR), i + CODE_NEAR + 1);
	});
	rows.forEach((row, i) => {
		const last = kept[kept.length - 1];
		if (!keep[i] && (row.part || row.source))
			return;
		if (keep[i] && !row.omitted)
			kept.push(row);
		else if (last && last.omitted)
			last.omitted += row.omitted || 1;
		else
			kept.push({ omitted: row.omitted || 1 });
	});
	return kept;
}

function codeRow(row, most) {
	const line = make("tr", null), value = values[selection.value];

	if (row.head) {
		line.append(make("th", row.head, { colspan: "4", scope: "rowgroup" }));
		return line;
	}
	if (row.omitted) {
		line.className = "faint";
		line.append(make("td", ""), make("td", ""), make("td", "…", { class: "number" }), make("td", row.omitted + " more"));
		return line;
	}
	for (const name of ["self", "total"]) {
		const cell = make("td", row[name] ? amount(row[name], value) : "", { class: "number" });
		if (row[name])
			cell.style.background = shade(row[name] / most);
		line.append(cell);
	}
	line.append(make("td", String(row.number ?? ""), { class: "number faint" }));
	const text = make("td", row.text, { class: row.part || row.source ? "code part" : "code" });
	if (row.target)
		text.append(makeButton("→", () => goToInstruction(row.target),
			{ class: "jump", title: "to where it jumps", "aria-label": "to where it jumps" }));
	line.append(text);
	if (row.id) {
		line.dataset.instruction = row.id;
		line.tabIndex = -1;
	}
	return line;
}

/** The colour behind a number, by its part of the largest one. */
const shade = (part) => "rgba(213, 94, 0, " + (0.55 * Math.min(1, part)).toFixed(3) + ")";

function goToInstruction(id) {
	const find = () => document.querySelector("[data-instruction='" + id + "']");

	if (!find() && !wholeCode) {
		wholeCode = true;
		update();
	}
	if (find()) {
		find().scrollIntoView({ block: "center" });
		find().focus();
	}
}

/** Without a function: those whose code is in the page. */
function drawCodeList(view) {
	const value = values[selection.value];
	const table = makeTable("Functions whose code is in this page, with what is inlined into them: " + value.type,
		["Self", "Total", "Function", "Image"]);
	const found = sumRows((place) => data.place_functions[place]);
	data.functions.forEach(({ frame }, number) => {
		const row = { frame, name: nameOf(frame), image: imageOf(frame), self: 0, total: 0, ...found.get(number) };
		table.tBodies[0].append(tableRow(row, [["self"], ["total"], ["name"], ["image"]], value, "code"));
	});
	const parts = [table];
	const reasons = ["there are as many as it may have", "its code is as large as it may be", "finding it would have taken too long"];
	data.functions_left.forEach((count, i) => {
		if (count)
			parts.push(make("p", count + " more functions are busy enough, but are not here: " + reasons[i] + "."));
	});
	view.replaceChildren(...parts);
}

export function drawCode(view) {
	const frame = selection.function, numbers = codesOf.get(frame) || [];

	if (!data.functions.length) {
		view.replaceChildren(make("p", "No function's code is in this page: it was written without (--no-code), or no function is busy enough."));
		return;
	}
	if (frame < 0) {
		drawCodeList(view);
		return;
	}
	if (!numbers.length) {
		view.replaceChildren(make("h2", nameOf(frame)),
			make("p", "Its code is not in this page, which has that of the busiest functions; --code 0 puts more into it. " +
				"Where the profile is, this prints it:"),
			make("pre", "profiltool annotate '" + nameOf(frame).slice(0, LONG) + "' FILE"),
			makeButton("Functions whose code is here", () => select({ function: -1 })));
		return;
	}

	const controls = make("p", null, { class: "controls" }), parts = [controls];
	let number = numbers[0];
	if (numbers.length > 1) {
		number = numbers.includes(codeShown) ? codeShown : number;
		controls.append(makeChoice("Code of ", "code-of", numbers.map((other) =>
			[other, nameOf(data.functions[other].frame) + " at " + data.functions[other].start]), number, (other) => {
			codeShown = Number(other);
			update();
		}));
	}
	const one = data.functions[number];
	const kind = !one.instructions.length || (hasLines(one) && selection.code !== "instructions") ? "source" : "instructions";
	if (hasLines(one) && one.instructions.length)
		controls.append(makeChoice("Show ", "code-kind", [["source", "source"], ["instructions", "instructions"]], kind,
			(code) => select({ code })));
	if (one.instructions.length || hasLines(one)) {
		const label = make("label", null), box = make("input", null, { type: "checkbox", id: "code-whole" });
		box.checked = wholeCode;
		box.addEventListener("change", () => {
			wholeCode = box.checked;
			update();
			element("code-whole").focus();
		});
		label.append(box, "also what is far from samples");
		controls.append(label);

		const value = values[selection.value];
		let rows = kind === "source" ? sourceRows(number) : instructionRows(number);
		const most = rows.reduce((high, row) => Math.max(high, row.total || 0), 1);
		if (!wholeCode)
			rows = nearRows(rows);
		const all = sumRows((place) => data.place_functions[place] === number ? 0 : undefined).get(0) || { self: 0, total: 0 };
		const table = makeTable(nameOf(one.frame) + " in " + imageOf(one.frame) + ": " + value.type +
			" in it " + amount(all.self, value) + " (" + percent(all.self, sums.now.all) + "), with what it calls " +
			amount(all.total, value) + " (" + percent(all.total, sums.now.all) + ")",
		["Self", "Total", ...(kind === "source" ? ["Line", "Source"] : ["Address", "Instruction"])]);
		table.className = "listing";
		table.tBodies[0].append(...rows.map((row) => codeRow(row, most)));
		parts.push(table);
	} else {
		parts.push(make("h2", nameOf(one.frame)));
	}
	for (const note of one.notes)
		parts.push(make("p", note, { class: "faint" }));
	if (data.steps_left)
		parts.push(make("p", "The profile has too many stacks to have all of them here: totals lack some.", { class: "faint" }));
	if (sums.before)
		parts.push(make("p", "These are the samples of now; what it is compared with is not in them.", { class: "faint" }));
	view.replaceChildren(...parts);
}
