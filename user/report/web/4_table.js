// SPDX-License-Identifier: 0BSD
/*
 * The table: functions, images, source lines or fields of labels; and threads with their states.
 */
const LONG = 2000; // characters of a name that are shown
let shownRows = 100, sortedBy = "self", ascending = false;

/** The rows of the table: [{name, image, self, total, before, frame}]. */
function tableRows() {
	const by = selection.by, rows = [];

	if (by === "function") {
		for (let i = 0; i < data.names.length; i++)
			if (data.kinds[i] !== KIND_PROCESS)
				rows.push({
					name: nameOf(i), image: imageOf(i), frame: i,
					self: sums.now.functionSelf[i], total: sums.now.functionTotal[i],
					before: sums.before ? sums.before.functionSelf[i] : 0,
					totalBefore: sums.before ? sums.before.functionTotal[i] : 0,
				});
	} else {
		const groups = new Map(), key = rowKey(by);
		for (let i = 0; i < sampleCount; i++) {
			const now = sums.now.weights[i], before = sums.before ? sums.before.weights[i] : 0;
			if (!now && !before)
				continue;
			const name = key(i);
			if (!groups.has(name))
				groups.set(name, { name, self: 0, before: 0, frame: -1, sample: i });
			groups.get(name).self += now;
			groups.get(name).before += before;
		}
		rows.push(...groups.values());
	}
	return rows.filter((row) => row.self || row.total || row.before || row.totalBefore);
}

/** What names the row of a sample. */
function rowKey(by) {
	const leaf = (i) => paths[i] ? frames[paths[i]] : -1;
	const dimension = dimensions.find((other) => other.key === by);

	if (by === "image")
		return (i) => imageOf(leaf(i)) || "[unknown]";
	if (by === "line")
		return (i) => {
			const frame = leaf(i), file = frame < 0 ? "" : data.texts[data.files[frame]];
			return file && data.lines[i] ? file + ":" + data.lines[i] : nameOf(frame);
		};
	if (by === "state")
		return (i) => states[i] ? nameOf(leaf(i)) : "[ran]";
	if (dimension)
		return (i) => data.texts[dimension.of[i]] || "[none]";
	return (i) => nameOf(leaf(i));
}

const rowViews = () => ["function", "image", "line", ...dimensions.map((dimension) => dimension.key), "state"];

function make(name, text, attributes = {}) {
	const element = document.createElement(name);

	if (text !== null)
		element.textContent = text.length > LONG ? text.slice(0, LONG) + "…" : text;
	for (const [key, value] of Object.entries(attributes))
		element.setAttribute(key, value);
	return element;
}

function drawTable(view) {
	const value = values[selection.value], byFunction = selection.by === "function";
	const choice = make("select", null, { id: "by" }), label = make("label", "Rows by ");

	for (const name of rowViews())
		choice.append(make("option", name, { value: name }));
	choice.value = selection.by;
	choice.addEventListener("change", () => select({ by: choice.value }));
	label.append(choice);

	const columns = [["self", "Self"]];
	if (byFunction)
		columns.push(["total", "Total"]);
	if (sums.before)
		columns.push(["change", "Change, points"]);
	columns.push(["name", selection.by[0].toUpperCase() + selection.by.slice(1)]);
	if (byFunction)
		columns.push(["image", "Image"]);

	let rows = tableRows();
	for (const row of rows)
		row.change = sums.before ? changeOf(row.self, row.before) : 0;
	if (matches)
		rows = byFunction ? rows.filter((row) => matches[row.frame])
			: rows.filter((row) => row.name.toLowerCase().includes(selection.search.toLowerCase()));
	const key = columns.some(([name]) => name === sortedBy) ? sortedBy : "self";
	const size = (row) => key === "change" ? Math.abs(row.change) : row[key];
	rows.sort((a, b) => (typeof a[key] === "string" ? (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0)
		: size(b) - size(a)) * (ascending ? -1 : 1) || b.self - a.self);

	const table = make("table", null), head = make("tr", null), body = make("tbody", null);
	table.append(make("caption", value.type + " by " + selection.by + ", of " + amount(sums.now.all, value)));
	for (const [name, title] of columns) {
		const cell = make("th", null, { scope: "col" }), button = make("button", title);
		if (name !== "name" && name !== "image")
			cell.className = "number";
		if (name === key)
			cell.setAttribute("aria-sort", (typeof (rows[0] || {})[key] === "string") !== ascending ? "ascending" : "descending");
		button.addEventListener("click", () => {
			ascending = name === sortedBy ? !ascending : false;
			sortedBy = name;
			update();
			document.querySelectorAll("th button").forEach((other) => other.textContent === title && other.focus());
		});
		cell.append(button);
		head.append(cell);
	}
	for (const row of rows.slice(0, shownRows))
		body.append(tableRow(row, columns, value));
	table.append(make("thead", null), body);
	table.tHead.append(head);

	const parts = [label, table];
	if (rows.length > shownRows) {
		const more = make("button", "Show more of " + rows.length + " rows");
		more.addEventListener("click", () => {
			shownRows *= 4;
			update();
		});
		parts.push(more);
	} else if (!rows.length) {
		parts.push(make("p", "No rows."));
	}
	view.replaceChildren(...parts);
}

/** view: which shows a function that is chosen here. */
function tableRow(row, columns, value, view = "sandwich") {
	const line = make("tr", null), chosen = row.frame >= 0 && row.frame === selection.function;

	for (const [name] of columns) {
		const cell = make("td", null);
		if (name === "self" || name === "total") {
			cell.className = "number";
			cell.append(amount(row[name], value) + " ", make("span", percent(row[name], sums.now.all)));
		} else if (name === "change") {
			const sigma = deviations(row.self, row.before);
			cell.className = "number";
			cell.textContent = signed(row.change);
			if (sigma && Math.abs(sigma) < 3)
				cell.classList.add("faint");
			cell.title = sigma ? Math.abs(sigma).toFixed(1) + " standard deviations" : "";
		} else if (name === "name") {
			const button = make("button", row.name, { class: "name" });
			button.addEventListener("click", () => chooseRow(row, view));
			if (chosen)
				button.setAttribute("aria-current", "true");
			cell.append(button);
		} else {
			cell.textContent = baseName(row[name]);
			cell.title = row[name];
		}
		line.append(cell);
	}
	return line;
}

/** A function: it is shown in that view. A field of labels: only its samples are. */
function chooseRow(row, view) {
	const dimension = dimensions.find((other) => other.key === selection.by);

	if (row.frame >= 0)
		select({ function: row.frame, view });
	else if (dimension)
		select({ labels: { ...selection.labels, [dimension.key]: data.texts[dimension.of[row.sample]] } });
	else if (selection.by === "state")
		select({ states: String(states[row.sample]) });
	else if (paths[row.sample])
		select({ function: frames[paths[row.sample]], view });
}

// --- Threads and their states ---

const hasStates = () => states.some((state) => state);

/**
 * The states of each thread: when and how long it ran, waited for a CPU, was blocked. Without times
 * a bar says how long.
 */
function drawStates(view) {
	const dimension = dimensions.find((other) => other.key === "thread") || dimensions[0];
	// Only some values have waits: the wall time has all.
	const wall = values.findIndex((one) => one.type === "wall");
	const shown = wall < 0 || valueHasStates(selection.value) ? selection.value : wall;
	const value = values[shown], groups = new Map(), width = Math.min(420, Math.floor(innerWidth * 0.4));
	const weights = shown === selection.value ? sums.now.weights
		: weigh(sums.keep, 0, firstSide, selection.since, selection.until, shown);
	const length = hasTimes() ? Math.ceil(data.slots / width) * data.slot_ms : 0;
	const group = (i) => {
		const name = dimension ? data.texts[dimension.of[i]] || "[none]" : "all";
		if (!groups.has(name))
			groups.set(name, { name, all: 0, states: STATES.map(() => 0),
				lanes: STATES.map(() => new Float64Array(length ? Math.ceil(duration() / length) : 0)) });
		return groups.get(name);
	};

	for (let i = 0; i < firstSide; i++)
		if (weights[i]) {
			group(i).all += weights[i];
			group(i).states[states[i]] += weights[i];
		}
	if (length)
		visitTimes((i, since, until, number) => spread(group(i).lanes[states[i]], length, since, until, number), shown);
	const rows = [...groups.values()].sort((a, b) => b.all - a.all).slice(0, shownRows);
	const most = Math.max(...rows.map((row) => row.all), 1);
	const table = make("table", null), head = make("tr", null), body = make("tbody", null);
	table.append(make("caption", "States of threads: " + value.type), make("thead", null), body);
	head.append(make("th", "Thread", { scope: "col" }), make("th", length ? "Over time" : "Parts", { scope: "col", class: "bars" }));
	for (const state of STATES)
		head.append(stateHead(state));
	table.tHead.append(head);
	for (const row of rows) {
		const line = make("tr", null), cell = make("td", null), bars = make("td", null, { class: "bars" });
		const button = make("button", row.name, { class: "name" });
		button.addEventListener("click", () => dimension &&
			select({ labels: { ...selection.labels, [dimension.key]: row.name } }));
		cell.append(button);
		line.append(cell, bars);
		if (length)
			bars.append(lanes(row.lanes, width));
		row.states.forEach((time, state) => {
			const bar = make("span", null, { class: "bar" });
			bar.style.width = time / most * 100 + "%";
			bar.style.background = stateColor(state);
			bar.title = STATES[state] + ": " + amount(time, value);
			if (!length)
				bars.append(bar);
			line.append(make("td", time ? amount(time, value) : "", { class: "number" }));
		});
		body.append(line);
	}
	view.replaceChildren(table);
}

/** The head of a state's column, with its colour. */
function stateHead(state) {
	const head = make("th", null, { scope: "col" }), mark = make("span", null, { class: "mark" });

	mark.style.background = stateColor(STATES.indexOf(state));
	head.append(mark, state);
	return head;
}

const stateColor = (state) => state ? colors().states[state] : colors().kinds[KIND_USER];

/** A thread over time: in each column, its states as parts of that. */
function lanes(bins, width) {
	const canvas = make("canvas", null, { "aria-hidden": "true" }), height = 14;
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
	return canvas;
}
