// SPDX-License-Identifier: 0BSD
/*
 * The table: functions, images, source lines or fields of labels.
 */
import { amount, baseName, data, dimensions, frames, imageOf, KIND_LABEL, labelText, nameOf, paths, percent, sampleCount,
	signed, states, values } from "./profile.mjs";
import { CHANCE_LEVEL, chanceText } from "./chance.mjs";
import { chances, changeOf, isSearched, matches, select, selection, sums, update } from "./selection.mjs";
import { capital, make, makeButton, makeChoice, makeTable } from "./dom.mjs";

export let shownRows = 100, sortedBy = "self", ascending = false;

/** The rows of the table: [{name, image, self, total, before, frame, p}]. */
export function tableRows() {
	const by = selection.by, rows = [];

	if (by === "function") {
		for (let i = 0; i < data.names.length; i++)
			if (data.kinds[i] !== KIND_LABEL)
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
	const found = rows.filter((row) => row.self || row.total || row.before || row.totalBefore);
	const p = sums.before && chances(found.map((row) => row.self), found.map((row) => row.before));
	found.forEach((row, i) => { row.p = p?.[i]; });
	return found;
}

/** What names the row of a sample. */
export function rowKey(by) {
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
		return (i) => states[i] ? nameOf(leaf(i)) : "[on CPU]";
	if (dimension)
		return (i) => labelText(dimension, i);
	return (i) => nameOf(leaf(i));
}

export const rowViews = () => ["function", "image", "line", ...dimensions.map((dimension) => dimension.key), "state"];

export function drawTable(view) {
	const value = values[selection.value], byFunction = selection.by === "function";
	const label = makeChoice("Rows by ", "by", rowViews().map((name) => [name, name]), selection.by, (by) => select({ by }));
	const columns = [["self", "Self"]];

	if (byFunction)
		columns.push(["total", "Total"]);
	if (sums.before)
		columns.push(["change", "Change, points"]);
	columns.push(["name", capital(selection.by)]);
	if (byFunction)
		columns.push(["image", "Image"]);

	let rows = tableRows();
	const compared = rows.filter((row) => row.p !== undefined && (row.self || row.before)).length;
	const differ = rows.filter((row) => row.p <= CHANCE_LEVEL).length;
	for (const row of rows)
		row.change = sums.before ? changeOf(row.self, row.before) : 0;
	if (matches)
		rows = byFunction ? rows.filter((row) => matches[row.frame])
			: rows.filter((row) => isSearched(row.name));
	const key = columns.some(([name]) => name === sortedBy) ? sortedBy : "self";
	const size = (row) => key === "change" ? Math.abs(row.change) : row[key];
	rows.sort((a, b) => (typeof a[key] === "string" ? (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0)
		: size(b) - size(a)) * (ascending ? -1 : 1) || b.self - a.self);

	const heads = columns.map(([name, title]) => {
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
		return cell;
	});
	const table = makeTable(value.type + " by " + selection.by + ", of " + amount(sums.now.all, value) +
		(compared ? `; ${differ} of ${compared} differ by more than chance` : ""), heads);
	table.tBodies[0].append(...rows.slice(0, shownRows).map((row) => tableRow(row, columns, value)));

	const parts = [label, table];
	if (rows.length > shownRows)
		parts.push(makeButton("Show more of " + rows.length + " rows", () => {
			shownRows *= 4;
			update();
		}));
	else if (!rows.length)
		parts.push(make("p", "No rows."));
	view.replaceChildren(...parts);
}

/** view: which shows a function that is chosen here. */
export function tableRow(row, columns, value, view = "sandwich") {
	const line = make("tr", null), chosen = row.frame >= 0 && row.frame === selection.function;

	for (const [name] of columns) {
		const cell = make("td", null);
		if (name === "self" || name === "total") {
			cell.className = "number";
			cell.append(amount(row[name], value) + " ", make("span", percent(row[name], sums.now.all)));
		} else if (name === "change") {
			cell.className = "number";
			cell.textContent = signed(row.change);
			if (row.p > CHANCE_LEVEL)
				cell.classList.add("faint");
			cell.title = row.p === undefined ? "" : "p " + chanceText(row.p);
		} else if (name === "name") {
			const button = makeButton(row.name, () => chooseRow(row, view), { class: "name" });
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
