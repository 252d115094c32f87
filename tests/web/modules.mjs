// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the page's modules compute, in node: profiltool writes pages, the modules read them, and each
 * number is that of `profiltool report` of the same file, or follows from stacks that are written here.
 * tests/cli/web_modules.sh runs it, with the path of profiltool, in a directory with its profiles.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import test from "node:test";

import * as profile from "../../user/report/web/profile.mjs";
import { chancesOf, chanceText } from "../../user/report/web/chance.mjs";
import * as selection from "../../user/report/web/selection.mjs";
import { treeOf, wholeTree } from "../../user/report/web/flame.mjs";
import { tableRows } from "../../user/report/web/table.mjs";
import { spread, visitTimes } from "../../user/report/web/time.mjs";
import { loadCode, nearRows } from "../../user/report/web/code.mjs";
import * as chain from "../../user/report/web/chain.mjs";
import { labelCaption, labelRows, momentsOf, openNodes, blockedTree } from "../../user/report/web/why.mjs";
import "../../user/report/web/states.mjs";
import "../../user/report/web/page.mjs";

const MODULES = new URL("../../user/report/web/", import.meta.url);
const selected = selection.selection;
let address = ""; // of a browser
globalThis.location = { get hash() { return address; } };
globalThis.history = { pushState: (state, title, to) => { address = to; }, replaceState: (state, title, to) => { address = to; } };

function profiltool(...options) {
	return execFileSync(process.argv[2], options, { encoding: "utf8", maxBuffer: 1 << 28 });
}

/** The functions that report prints of a file: [name, self, total]. */
function reported(...options) {
	const { functions } = JSON.parse(profiltool("report", "-q", "--json", "--percent", "0", ...options));
	return functions.map((one) => [one.name, one.self, one.total]).sort();
}

/** Opens the page of a file, as page.mjs does in a browser. */
async function open(...options) {
	const page = profiltool("web", "-q", ...options, "-o", "-");
	profile.load(await profile.inflate(/ id="profile">(.*?)<\/script>/s.exec(page)[1]));
	loadCode();
	chain.loadChains();
	selection.begin();
	for (const text of ["label.none=none", ""]) { // the sums that are kept may be another page's
		selection.fromAddress(text);
		selection.update();
	}
}

/** The options that print a moment's chain. */
const optionsFor = (one, file) => chain.commandFor(one.thread, one.since, one.since + one.length).split(" ").slice(2)
	.map((option) => option === "FILE" ? file : option);

/** A moment's chain as lines of `profiltool why`. */
const linesOf = (one) => openNodes(chain.chainOf(one), new Set()).slice(1).map(([node, depth]) => {
	const tree = chain.chainOf(one), text = chain.partText(tree.first + node - 1);
	return `${(tree.lengths[node] / 1e6).toFixed(3)} ${profile.percent(tree.lengths[node], one.length).replace(" %", "")}${"  ".repeat(depth)} ${text}`;
});

/** What `profiltool why` prints of it, without the titles. */
const textOf = (one, file) => profiltool("why", "-q", ...optionsFor(one, file)).trimEnd().split("\n").slice(2)
	.map((line) => line.replace(/^ +(\S+) +(\S+) {2}( *)/, "$1 $2$3 "));

/** Stacks as a file of `profiltool`. */
function folded(file, ...lines) {
	writeFileSync(file, lines.join("\n") + "\n");
	return file;
}

/** Selects, and returns the functions of the page's sums as reported() does. */
function functionsOf(changes, side = "now") {
	selection.select(changes);
	const { functionSelf, functionTotal } = selection.sums[side];
	return profile.data.names.map((name, i) => [name, Math.round(functionSelf[i]), Math.round(functionTotal[i])])
		.filter(([, own, total], i) => (own || total) && profile.data.kinds[i] !== profile.KIND_LABEL).sort();
}

/** A tree of a Picture, as text: one line for a node. */
function drawn(tree, node = tree.root(), depth = 0) {
	return [" ".repeat(depth) + profile.nameOf(tree.frame(node)) + " " + tree.total(node) + " " + tree.self(node)]
		.concat(...Array.from(tree.children(node), (child) => drawn(tree, child, depth + 1)));
}

const STACKS = folded("stacks.folded", "main;b;c 5", "main;b 2", "main;a;c;a 3", "main;a;c 4", "other;c 6", "main;b;c;d 1");

test("a function's samples are those of report, also where it calls itself", async () => {
	await open(STACKS);
	assert.deepEqual(functionsOf({}), reported(STACKS));
	assert.equal(selection.sums.now.all, 21);
});

test("an interval's samples are those of report --since --until", async () => {
	for (const file of ["ticks.pb.gz", "waits.pb.gz"]) {
		await open(file);
		for (const [since, until] of [[0, 6000], [1000, 2500], [2310, 2340], [105, 255], [5990, 6000]]) {
			const times = ["--since", `+${since / 1000}s`, "--until", `+${until / 1000}s`];
			for (const [value, { type }] of profile.values.entries())
				assert.deepEqual(functionsOf({ value, since, until }), reported(file, ...times, "--value", type),
					`${file}, ${type} from ${since} to ${until} ms`);
		}
	}
});

test("the interval to compare with has the samples of report, too", async () => {
	await open("ticks.pb.gz");
	const changes = { since: 0, until: 1000, against: 2000, end: 3000 };
	assert.deepEqual(functionsOf(changes, "before"), reported("ticks.pb.gz", "--since", "+2s", "--until", "+3s"));
	assert.deepEqual(functionsOf(changes), reported("ticks.pb.gz", "--since", "+0s", "--until", "+1s"));
});

test("a profile to compare with has its own samples", async () => {
	folded("before.folded", "main;b;c 50", "gone 2");
	await open("--diff", "before.folded", STACKS);
	assert.deepEqual(functionsOf({}, "before"), reported("before.folded"));
	assert.deepEqual(functionsOf({}), reported(STACKS));
	assert.equal(selection.changeOf(21, 26).toFixed(9), "50.000000000");
});

test("what chance says of counts are the numbers of C", () => {
	let seed = 1;
	const random = () => (seed = seed * 48271 % 2147483647) / 2147483647;
	for (const all of [[10, 10], [7, 100], [3000, 1000], [123456, 98765], [4e6, 9e6], [3e9, 1e9], [2 ** 52, 2 ** 52], [5, 0]]) {
		const pairs = [[0, 0], all, [0, all[1]], [all[0], 0]];
		while (pairs.length < 400) { // small shares and large ones, which differ by nothing or by much
			const share = random() ** 4, other = share + (random() - 0.5) * random() * 20 * Math.sqrt(share / all[0]);
			pairs.push([share * all[0], Math.min(1, Math.max(0, other)) * all[1]].map(Math.round));
		}
		const printed = execFileSync(process.argv[3], all, { encoding: "utf8", input: pairs.join("\n").replaceAll(",", " ") });
		const near = (x, y) => assert.ok(x === y || Math.abs(x - y) <= 1e-10 * y, `${x} is not ${y}`);
		const corrected = chancesOf(pairs.map(([one]) => one), all[0], pairs.map(([, one]) => one), all[1]);
		printed.trim().split("\n").forEach((line, i) => {
			const [p, ofAll] = line.split(" ").map(Number), [one, other] = pairs[i];
			near(chancesOf([one], all[0], [other], all[1])[0], p);
			near(corrected[i], ofAll);
		});
		assert.ok(all[1] < 1000 || corrected.some((p) => p > 0.05 && p < 1) && corrected.some((p) => p < 0.05));
	}
	assert.deepEqual([2, 0.0001, 0.0124, 0.345].map(chanceText), ["~", "<0.001", "0.012", "~0.345"]);
});

/** The table has the rows of diff, with the same p, as far as that is printed. Returns how many differ. */
function compareChance(...options) {
	const { rows } = JSON.parse(profiltool("diff", "-q", "--json", "--normalize", "share", ...options));
	const shown = new Map(tableRows().filter((row) => row.self || row.before).map((row) => [row.name, row.p]));
	assert.deepEqual([...shown.keys()].sort(), rows.map((row) => row.name).sort());
	for (const { name, p, significant } of rows) {
		assert.ok(Math.abs(shown.get(name) - (p ?? 2)) < 0.6e-6, `${name}: ${shown.get(name)} is not ${p}`);
		assert.equal(shown.get(name) <= 0.05, significant, name);
	}
	return rows.filter((row) => row.significant).length;
}

test("two profiles differ by more than chance as diff says", async () => {
	const rows = Array.from({ length: 60 }, (none, i) => [i, i + i * i % 13, i % 4 ? i + i * i % 7 : 3 * i]);
	folded("then.folded", ...rows.map(([name, number]) => `main;f${name} ${number}`), "main;gone 3");
	folded("now.folded", ...rows.map(([name, , number]) => `main;f${name} ${number}`), "main;new 40");
	await open("--diff", "then.folded", "now.folded");
	selection.select({ by: "function" });
	const differ = compareChance("then.folded", "now.folded");
	assert.ok(differ > 5 && differ < 50, differ);
	const path = (name) => profile.frames.indexOf(profile.data.names.indexOf(name));
	assert.deepEqual(["f40", "f41", "new", "gone"].map((name) => wholeTree.chance(path(name)) <= 0.05), [true, false, true, false]);
});

test("CPU time is judged by its ticks, also of two intervals; waits are not", async () => {
	await open("--diff", "ticks.pb.gz", "waits.pb.gz");
	for (const [value, { type }] of profile.values.entries()) {
		selection.select({ value });
		if (type === "wall")
			assert.ok(tableRows().every((row) => row.p === undefined));
		else
			compareChance("--value", type, "ticks.pb.gz", "waits.pb.gz");
	}
	await open("ticks.pb.gz");
	selection.select({ since: 2300, until: 2450, against: 2000, end: 2300 });
	assert.equal(compareChance("--since", "+2.3s", "--until", "+2.45s", "--before", "+2s..+2.3s", "ticks.pb.gz"), 3);
});

test("labels select the samples of report --comm", async () => {
	await open("ticks.pb.gz");
	const { of } = profile.dimensions.find(({ key }) => key === "process");
	const [burst] = [...new Set(of)].map((text) => profile.data.texts[text]).filter((text) => text.startsWith("burst"));
	assert.deepEqual(functionsOf({ labels: { process: burst } }), reported("ticks.pb.gz", "--comm", "burst"));
	assert.deepEqual(functionsOf({ labels: { process: "none" } }), []);
});

test("the frames below the root are the values of any label, each with its own functions", async () => {
	await open("labels.pb.gz");
	assert.equal(selected.first, "process");
	const wall = profile.values.findIndex(({ type }) => type === "wall"), whole = reported("labels.pb.gz", "--value", "wall");
	for (const [first, names] of [["query", ["SELECT", "UPDATE", "[no query]"]], ["route", ["/buy", "/list", "[no route]"]],
		["process", ["cache 20", "db 17"]], ["", ["main"]]]) {
		assert.deepEqual(functionsOf({ value: wall, first, zoom: 0 }), whole);
		const tops = [...profile.childrenOf(0)];
		assert.deepEqual(tops.map((top) => profile.nameOf(profile.frames[top])), names);
		if (!first)
			continue;
		const { rows } = JSON.parse(profiltool("report", "-q", "--json", "--value", "wall", "--by", first, "labels.pb.gz"));
		assert.deepEqual(new Map(tops.map((top, i) => [names[i], selection.sums.now.total[top]])),
			new Map(names.map((name) => [name, rows.find((row) => name === (first === "process" ? row.comm + " " + row.pid
				: row[first] ?? "[no " + first + "]")).self])));
	}
	selection.select({ first: "query", by: "query" });
	const [top] = profile.childrenOf(0);
	assert.deepEqual(drawn(wholeTree, top).map((line) => line.replace(/(\d+)0{6}\b/g, "$1")), ["SELECT 150 0", " main 150 0",
		"  [blocked: lock] 50 50", "  execute 100 0", "   scan 100 100"]);
	const before = address;
	selection.fromAddress("");
	assert.equal(selected.first, "process");
	selection.fromAddress(before + "&zoom=" + top);
	assert.equal(profile.nameOf(profile.frames[selected.zoom]), "SELECT");
	selection.fromAddress("#first=nothing&zoom=7");
	selection.update();
	assert.deepEqual([...profile.childrenOf(0)].map((one) => profile.nameOf(profile.frames[one])), ["main"]);
});

test("a part of a label's text selects the samples of report --query, of ticks and of waits", async () => {
	await open("labels.pb.gz");
	assert.equal(selected.where, "query");
	for (const [value, { type }] of profile.values.entries())
		for (const [changes, ...options] of [[{ has: "date" }, "--query", "*DATE*"], [{ has: "/^S.L/" }, "--query", "S?L*"],
			[{ where: "route", has: "/B" }, "--label", "route=/b*"], [{ where: "process", has: "cache" }, "--comm", "cache"]])
			assert.deepEqual(functionsOf({ value, where: "query", ...changes }), reported("labels.pb.gz", "--value", type, ...options));
	selection.select({ value: 0, where: "query", has: "/^$/" });
	assert.equal(selection.sums.now.all, 70); // of no query
	selection.select({ has: "/(/" });
	assert.match(selection.sums.complaint, /Invalid regular expression/);
	selection.select({ has: "", labels: { query: "" } });
	assert.equal(selection.sums.now.all, 70);
});

test("a label with more call paths than there is room for leaves the graph as it is", async () => {
	const few = await import(`${process.cwd()}/small/profile.mjs`), chosen = await import(`${process.cwd()}/small/selection.mjs`);
	few.load(await few.inflate(/ id="profile">(.*?)<\/script>/s.exec(profiltool("web", "-q", "labels.pb.gz", "-o", "-"))[1]));
	const tops = (first) => {
		chosen.select({ first });
		return [...few.childrenOf(0)].map((top) => few.nameOf(few.frames[top]));
	};
	chosen.begin();
	assert.deepEqual(tops("query"), ["main"]);
	assert.ok(few.isTooMuch);
	assert.equal(chosen.sums.now.all, 470);
	assert.deepEqual(tops("nothing"), ["main"]);
	assert.ok(!few.isTooMuch);
});

test("labels may have any name", async () => {
	await open("labels.pb.gz");
	assert.equal(selection.sums.now.all, 470);
	for (const [key, text] of [["constructor", "one"], ["__proto__", "two"]]) {
		selection.select({ labels: { [key]: text }, where: "", has: "" });
		assert.equal(selection.sums.now.all, 20);
		selection.fromAddress(address);
		selection.update();
		assert.equal(selection.sums.now.all, 20);
	}
});

test("labels of programs are at most 64, and profil's own are there in any case", async () => {
	await open("many.pb.gz");
	assert.equal(profile.dimensions.length, 64 + 3);
	assert.ok(profile.data.lacks_labels && profile.dimensions.some(({ key }) => key === "unit"));
	assert.equal(selection.sums.now.all, 70);
	await open("labels.pb.gz");
	assert.ok(!profile.data.lacks_labels);
});

test("rows of the table add up to all samples, whatever they are by", async () => {
	await open("waits.pb.gz");
	for (const by of ["function", "image", "line", "thread", "process", "state"]) {
		selection.select({ by });
		assert.equal(tableRows().reduce((sum, row) => sum + row.self, 0), selection.sums.now.all, by);
	}
});

test("counted calls give the totals of report", async () => {
	writeFileSync("calls.callgrind", "events: Ir\nfl=x.c\nfn=main\n1 10\ncfn=left\ncalls=2 1\n3 300\ncfn=right\ncalls=5 1\n" +
		"4 500\nfn=left\n1 300\nfn=right\n1 400\ncfn=leaf\ncalls=7 1\n2 100\ncfn=right\ncalls=3 1\n2 50\nfn=leaf\n1 100\n");
	await open("calls.callgrind");
	assert.deepEqual(functionsOf({}), reported("calls.callgrind"));
});

test("the tree of all stacks has its children by name", async () => {
	await open(STACKS);
	assert.deepEqual(drawn(wholeTree), ["all 21 0", " main 15 0", "  a 7 0", "   c 7 4", "    a 3 3", "  b 8 2", "   c 6 5",
		"    d 1 1", " other 6 0", "  c 6 6"]);
});

test("callers and callees of a function are trees of its outermost calls", async () => {
	await open(STACKS);
	const frame = (name) => profile.data.names.indexOf(name);
	assert.deepEqual(drawn(treeOf(frame("c"), true)), ["c 19 0", " a 7 0", "  main 7 0", " b 6 0", "  main 6 0", " other 6 0"]);
	assert.deepEqual(drawn(treeOf(frame("a"), false)), ["a 7 0", " c 7 4", "  a 3 3"]);
});

test("a search finds a text or an expression, and counts a stack once", async () => {
	await open(STACKS);
	for (const [text, sum] of [["C", 19], ["/^[ad]$/", 8], ["ain", 15], ["nowhere", 0], ["/^.$/", 21]]) {
		selection.select({ search: text });
		assert.equal(selection.search(), "");
		assert.equal(selection.matched(), sum, text);
	}
	selection.select({ search: "/(/" });
	assert.match(selection.search(), /Invalid regular expression/);
	assert.equal(selection.matches, null);
});

test("the address has the selection, and what is wrong in it does no harm", async () => {
	await open("ticks.pb.gz");
	selection.select({ view: "table", search: "a&b=c", since: 10, until: 20.5, states: "02", labels: { thread: "x #1", process: "p" } });
	const before = structuredClone(selected);
	selection.fromAddress("");
	assert.deepEqual(selected, selection.initial);
	selection.fromAddress(address);
	assert.deepEqual(selected, before);
	selection.fromAddress("#since=9e9&until=x&zoom=-7&function=999999&value=77&against=5&end=5&unknown=1&labels=2&toString=1");
	assert.deepEqual(selected, selection.initial);
});

test("what is spread over bins adds up", async () => {
	const bins = new Float64Array(10);
	spread(bins, 100, 50, 450, 8);
	assert.deepEqual([...bins], [1, 2, 2, 2, 1, 0, 0, 0, 0, 0]);
	spread(bins, 100, 900, 1000, 3);
	spread(bins, 100, 700, 700, 4);
	assert.deepEqual([...bins.subarray(5)], [0, 0, 4, 0, 3]);

	await open("waits.pb.gz");
	for (const [value, { of, unit }] of profile.values.entries()) {
		let sum = 0;
		visitTimes((i, since, until, number) => { sum += number; }, value);
		assert.equal(Math.round(sum), of.reduce((all, one) => all + one) / (unit === "nanoseconds" ? 1e6 : 1));
	}
});

test("lines of code far from samples become a number", () => {
	const rows = Array.from({ length: 30 }, (none, number) => ({ number }));
	rows[10].total = 1;
	assert.deepEqual(nearRows([{ head: "x.c" }, ...rows]).map((row) => row.head ?? row.number ?? -row.omitted),
		["x.c", -6, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15]);
});

test("a moment's chain is line by line what profiltool why prints", async () => {
	await open("chains.pb.gz");
	assert.equal(chain.moments.length, 16);
	for (const one of chain.moments) {
		assert.deepEqual(linesOf(one), textOf(one, "chains.pb.gz"));
		const tree = chain.chainOf(one);
		tree.kids.forEach((kids, node) => assert.ok(!kids.length ||
			kids.reduce((sum, kid) => sum + tree.lengths[kid], 0) === tree.lengths[node]));
	}
});

test("the turns of a process are those of profiltool why, and an interval chooses among them", async () => {
	await open("chains.pb.gz");
	const { processes } = profile.data.why, front = processes.names.findIndex((name, i) => chain.processName(i) === "front");
	const { slowest, ...whole } = JSON.parse(profiltool("why", "-q", "--json", "-p", "front", "chains.pb.gz"));
	assert.deepEqual(momentsOf(front, true).map(([, one]) => one.length), slowest.map((one) => one.ns));
	assert.equal(processes.turns[front], whole.turns);
	assert.deepEqual(processes.quantiles.slice(5 * front, 5 * front + 5),
		["median_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"].map((key) => whole[key]));
	const [, slow] = momentsOf(front, true)[0], tree = chain.chainOf(slow);
	assert.equal(chain.nodeText(tree, chain.longestLeaf(tree)), "meanwhile on that CPU: batch (21): compress");
	selection.select({ since: 5, until: 45 });
	assert.deepEqual(momentsOf(front, true).map(([, one]) => one.since), [10e6, 40e6]);
	assert.deepEqual(momentsOf(front, false).map(([, one]) => one.since), [12e6, 42e6]);
});

test("turns of a query are those of profiltool why --query, with the label of each", async () => {
	await open("queries.pb.gz");
	const front = profile.data.why.processes.names.findIndex((name, i) => chain.processName(i) === "front");
	assert.deepEqual(momentsOf(front, true).map(([, one]) => one.label), ["UPDATE", "SELECT", "UPDATE"]);
	const { groups } = JSON.parse(profiltool("why", "-q", "--json", "-p", "front", "--by", "query", "queries.pb.gz"));
	assert.deepEqual(labelRows(front), groups.map((one) => ({ text: one.label, turns: one.turns, ns: one.turns_ns, longest: one.max_ns })));
	for (const [has, pattern] of [["update", "UPDATE"], ["/^S/", "S*"]]) {
		selection.select({ has });
		const { slowest } = JSON.parse(profiltool("why", "-q", "--json", "-p", "front", "--query", pattern, "queries.pb.gz"));
		assert.deepEqual(momentsOf(front, true).map(([, one]) => one.length), slowest.map((one) => one.ns));
	}
	assert.deepEqual(momentsOf(front, false).map(([, one]) => [one.label, one.length]), [["SELECT", 16e6]]);
	for (const one of chain.moments)
		assert.deepEqual(linesOf(one), textOf(one, "queries.pb.gz"));
});

test("a page says how many labels of turns are not in it", async () => {
	await open("queries.pb.gz");
	assert.equal(labelCaption(profile.data.why.processes.names.findIndex((name, i) => chain.processName(i) === "front")), "Turns by query");
	await open("turns.pb.gz");
	assert.equal(labelRows(0).length, 100);
	assert.match(labelCaption(0), /^Turns by query: those that took most, 100 of 109; the others are not in the page$/);
});

test("what a process was blocked for is what profiltool why writes of it", async () => {
	await open("chains.pb.gz");
	for (const [number, blocked] of profile.data.why.processes.blocked.entries()) {
		const tree = chain.blockedOf(number), name = (node) => chain.partText(tree.first + node - 1), lines = [];
		for (const [node] of openNodes(tree, new Set())) {
			const path = [], own = tree.lengths[node] - tree.kids[node].reduce((sum, kid) => sum + tree.lengths[kid], 0);
			for (let at = node; at; at = tree.parents[at])
				path.unshift(name(at));
			if (own)
				lines.push(path.join(";") + " " + own);
		}
		assert.equal(blockedTree(number).total(0), blocked);
		const written = blocked ? profiltool("why", "-q", "-p", chain.processName(number), "-f", "folded", "-o", "-", "chains.pb.gz") : "";
		assert.deepEqual(lines.sort(), written.split("\n").filter((line) => line).sort());
		assert.ok(chain.processName(number) !== "front" || lines.some((line) => line.includes(";holder on CPU;update ")));
	}
});

test("a lane has what its thread did, and a stretch of it leads to a chain", async () => {
	await open("chains.pb.gz");
	const { tids } = profile.data.why.threads, thread = (tid) => tids.indexOf(tid);
	const [holder, batch] = chain.stretchesOf([thread(19), thread(21)], 90, 360).map((all) =>
		all.map(({ since, until, state }) => [since, until, profile.STATES[state]]));
	assert.deepEqual(holder, [[90, 100, "blocked"], [100, 150, "on CPU"], [150, 270, "runnable"], [270, 300, "on CPU"],
		[300, 350, "blocked"], [350, 360, "on CPU"]]);
	assert.deepEqual(batch, [[90, 150, "runnable"], [150, 270, "on CPU"], [270, 360, "runnable"]]);
	const slow = chain.moments.findIndex((one) => one.isTurn && one.length === 400e6);
	assert.deepEqual(chain.threadsOf(chain.moments[slow]).map((number) => tids[number]).sort(), [17, 18, 19, 21]);
	for (const [tid, since, until, length] of [[17, 105, 485, 380e6], [17, 100, 105, 400e6], [19, 150, 270, 120e6]]) {
		chain.showChainAt(thread(tid), since, until);
		assert.equal(chain.moments[selected.moment].length, length);
		assert.equal(chain.missing, null);
	}
	chain.showChainAt(thread(21), 150, 270); // it computed, and waited for nobody
	assert.equal(selected.moment, -1);
	assert.deepEqual({ ...chain.missing }, { thread: thread(21), since: 150e6, until: 270e6 });
	assert.equal(chain.commandFor(thread(21), 150e6, 270e6),
		"profiltool why --thread 21 --since @1795000020.150000000 --until @1795000020.270000000 FILE");
	await open("waits.pb.gz");
	assert.ok(!chain.hasChains() && !chain.moments.length);
});

test("numbers are for people", () => {
	assert.equal(profile.amount(1234567, { unit: "count" }), "1,234,567");
	assert.equal(profile.amount(1234567890, { unit: "nanoseconds" }), "1.235 s");
	assert.equal(profile.amount(2048, { unit: "bytes" }), "2 KiB");
	assert.equal(profile.percent(1, 3), "33.33 %");
	assert.equal(profile.percent(1, 0), "0.00 %");
	assert.deepEqual([1.234, -0.001, -2].map(profile.signed), ["+1.23", "0.00", "-2.00"]);
});

test("a module exports only what another one needs", () => {
	const texts = readdirSync(MODULES).filter((name) => name.endsWith(".mjs")).map((name) => readFileSync(new URL(name, MODULES), "utf8"));
	const imports = [...texts, readFileSync(new URL(import.meta.url), "utf8")].flatMap((text) => [...text.matchAll(/^import \{(.*?)\}/gms)]);
	const named = new Set(["main", ...imports.flatMap((found) => found[1].trim().split(/,\s*/))]);
	const exported = texts.flatMap((text) => [...text.matchAll(/^export (?:async )?(?:const|let|function|class) ([^;({=]*)/gm)]
		.flatMap((found) => found[1].trim().split(", ")));
	assert.ok(exported.length > 50);
	assert.deepEqual(exported.filter((name) => !named.has(name)), []);
});
