// SPDX-License-Identifier: 0BSD
/*
 * What differs by more than chance: the rule of report/chance.h, for what is selected here. Names are
 * those of chance.c, whose comments say why, and tests/web compares the numbers of both.
 */
export const CHANCE_LEVEL = 0.05;
const NORMAL_VARIANCE = 1e6, NEGLIGIBLE = 1e-17;

/** log(n!) less Stirling's formula. */
function stirlingRest(n) {
	const square = n * n;

	if (n < 16) {
		let factorial = 1;
		for (let i = 2; i <= n; i++)
			factorial *= i;
		return Math.log(factorial) - (n + 0.5) * Math.log(n) + n - 0.5 * Math.log(2 * Math.PI);
	}
	return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / n;
}

/** x log(x / mean) + mean - x. */
function deviance(x, mean) {
	const distance = x - mean, v = distance / (x + mean);

	if (Math.abs(v) > 0.1)
		return x * Math.log(x / mean) - distance;
	let sum = distance * v, power = 2 * x * v;
	for (let i = 3; i < 40; i += 2) {
		power *= v * v;
		sum += power / i;
	}
	return sum;
}

function logBinomial(x, y, p, q) {
	const n = x + y;

	if (x === 0 || y === 0)
		return n === 0 ? 0 : n * (x === 0 ? Math.log1p(-p) : Math.log1p(-q));
	return stirlingRest(n) - stirlingRest(x) - stirlingRest(y) - deviance(x, n * p) - deviance(y, n * q) +
		0.5 * Math.log(n / (2 * Math.PI * x * y));
}

/** The probability of [a b; c d] among all outcomes with the same sums. */
function probability(a, b, c, d) {
	const k = a + c, rest = b + d, n = k + rest;

	return Math.exp(logBinomial(a, b, k / n, rest / n) + logBinomial(c, d, k / n, rest / n) -
		logBinomial(k, rest, k / n, rest / n));
}

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

/** The least p of two counts with this sum, of so many samples on each side. */
function leastChance(sum, all1, all2) {
	const low = Math.max(0, sum - all2), high = Math.min(all1, sum);
	const of = (count) => probability(count, all1 - count, sum - count, all2 - sum + count);

	return all1 && all2 && sum && sum < all1 + all2 ? Math.min(1, 2 * Math.min(of(low), of(high))) : 1;
}

/** The p of two shares. */
function chanceOfShares(count1, all1, count2, all2) {
	let a = count1, b = all1 - count1, c = count2, d = all2 - count2;
	const k = a + c, rest = b + d, n = k + rest, part1 = all1 / n, expected = k * part1;
	const variance = part1 * (all2 / n) * k * (rest / n);

	if (!all1 || !all2 || !k || !rest)
		return 1;
	if (variance >= NORMAL_VARIANCE)
		return erfc(Math.max(0, Math.abs(a - expected) - 0.5) / Math.sqrt(2 * variance));
	const first = probability(a, b, c, d), by = a < expected ? -1 : 1;
	let sum = 1;
	for (let term = 1; term > sum * NEGLIGIBLE; a += by, b -= by, c -= by, d += by) {
		term *= by < 0 ? a * d / ((b + 1) * (c + 1)) : b * c / ((a + 1) * (d + 1));
		sum += term;
	}
	return Math.min(1, 2 * first * sum);
}

/**
 * The p of each pair of counts, of so many samples on each side, corrected for all of those that can
 * differ by more than chance; 2: there are too few samples.
 */
export function chancesOf(counts1, all1, counts2, all2) {
	const leasts = new Map(); // by the sum of two counts
	const p = Float64Array.from(counts1, (count, i) => {
		const sum = count + counts2[i];
		if (!leasts.has(sum))
			leasts.set(sum, leastChance(sum, all1, all2));
		return leasts.get(sum) <= CHANCE_LEVEL ? chanceOfShares(count, all1, counts2[i], all2) : 2;
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
