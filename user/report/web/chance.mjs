// SPDX-License-Identifier: 0BSD
/*
 * What differs by more than chance: the rule of report/chance.h, for what is selected here. Names are
 * those of chance.c, whose comments say why, and tests/web compares the numbers of both.
 */
export const CHANCE_LEVEL = 0.05;
const NORMAL_VARIANCE = 1e6, NEGLIGIBLE = 1e-17;

/** The complementary error function, which C's library has: a series near 0, then a continued fraction. */
function erfc(x) {
	if (x < 2) {
		let term = x, sum = x;
		for (let n = 1; n < 60; n++) {
			term *= -x * x / n;
			sum += term / (2 * n + 1);
		}
		return 1 - 2 / Math.sqrt(Math.PI) * sum;
	}
	let fraction = x;
	for (let n = 100; n > 0; n--)
		fraction = x + n / 2 / fraction;
	return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
}

/** The sum of the outcomes beyond [a b; c d], and the last one, as multiples of that. */
function sumBeyond(a, b, c, d) {
	let sum = 0, term = 1;

	for (let i = 0; i < a && i < d; i++) {
		term *= (a - i) * (d - i) / ((b + i + 1) * (c + i + 1));
		sum += term;
		if (term < sum * NEGLIGIBLE || sum === Infinity)
			return [sum, 0];
	}
	return [sum, term];
}

/** The p of two shares, and the least possible one. */
function chanceOfShares(a, all1, c, all2) {
	const b = all1 - a, d = all2 - c, k = a + c, rest = b + d, n = k + rest, part1 = all1 / n;
	const variance = part1 * (all2 / n) * k * (rest / n);

	if (!all1 || !all2 || !k || !rest)
		return [1, 1];
	if (variance >= NORMAL_VARIANCE)
		return [erfc(Math.max(0, Math.abs(a - k * part1) - 0.5) / Math.sqrt(2 * variance)), 0];
	const [down, low] = sumBeyond(a, b, c, d), [up, high] = sumBeyond(b, a, d, c), all = down + 1 + up;
	return [Math.min(1, 2 * (1 + Math.min(down, up)) / all), Math.min(1, 2 * Math.min(low, high) / all)];
}

/**
 * The p of each pair of counts, of so many samples on each side, corrected for all of those that can
 * differ by more than chance; 2: there are too few samples.
 */
export function chancesOf(counts1, all1, counts2, all2) {
	const p = Float64Array.from(counts1, (count, i) => {
		const [one, possible] = chanceOfShares(count, all1, counts2[i], all2);
		return possible <= CHANCE_LEVEL ? one : 2;
	});
	const order = p.filter((one) => one <= 1).sort(), corrected = new Map();
	let least = 1;
	for (let i = order.length; i-- > 0;) {
		least = Math.min(least, order[i] * order.length / (i + 1));
		corrected.set(order[i], least);
	}
	return p.map((one) => corrected.has(one) ? corrected.get(one) : one);
}

/** A corrected p, as in the tables of `profiltool diff`. */
export function chanceText(p) {
	if (p > 1)
		return "~";
	return p < 0.001 ? "<0.001" : (p > CHANCE_LEVEL ? "~" : "") + p.toFixed(3);
}
