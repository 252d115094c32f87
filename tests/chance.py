# SPDX-License-Identifier: GPL-2.0-only
"""
Whether a number of ticks can be chance. A row fails when what was counted, or anything less likely,
has a probability below 1e-9 by the exact binomial distribution: that is red by chance once in a
million runs of a thousand rows. tests/progs/chance.h is the same for C programs.

A clock of each CPU ticks at moments that have nothing to do with what runs: each of its ticks falls
into a target with the share of time that the target has. Of a target that has the CPU for itself it
is exact, but for the ticks at both ends.
"""

import os
from math import exp, lgamma, log, log1p

LIMIT = 1e-9


def _log_binomial(k, n, p):
    if p in (0, 1):
        return 0.0 if k == n * p else float("-inf")
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p)


def _log_poisson(k, mean):
    return k * log(mean) - mean - lgamma(k + 1)


def _tail(first, ratios):
    """A probability and all those beyond it, of which each has a ratio to the one before it."""
    total = term = 1.0
    for ratio in ratios:
        term *= ratio
        total += term
        if term < total * 1e-17:
            break
    return first * total


def share_p(k, n, p):
    """Two-sided: of at least such a distance from n * p when k of n have a probability of p each."""
    first = exp(_log_binomial(k, n, p))
    if not 0 < p < 1 or k == n * p:
        return min(1.0, first)
    odds = p / (1 - p)
    if k < n * p:
        return min(1.0, 2 * _tail(first, (i / ((n - i + 1) * odds) for i in range(k, 0, -1))))
    return min(1.0, 2 * _tail(first, ((n - i) * odds / (i + 1) for i in range(k, n))))


def rate_p(k, mean):
    """The same for k ticks when `mean` are due: the limit of the binomial for short periods."""
    if mean <= 0:
        return float(k == 0)
    first = exp(_log_poisson(k, mean))
    if k < mean:
        return min(1.0, 2 * _tail(first, (i / mean for i in range(k, 0, -1))))
    return min(1.0, 2 * _tail(first, (mean / (i + 1) for i in range(k, 10 * k + 1000))))


def is_share(k, n, low, high=None):
    """Whether k of n ticks can be a share of `low`, or one between `low` and `high`; not of none."""
    high = low if high is None else high
    if n <= 0 or not 0 <= k <= n:
        return False
    if k < n * low:
        return share_p(k, n, low) >= LIMIT
    return k <= n * high or share_p(k, n, high) >= LIMIT


def is_rate(k, low, high=None):
    """Whether there can be k ticks when `low`, or between `low` and `high`, are due."""
    high = low if high is None else high
    if k < low:
        return rate_p(k, low) >= LIMIT
    return k <= high or rate_p(k, high) >= LIMIT


def is_cpu(ticks, ns, period_ns, tasks=1, least=1, most=1, **disturbed):
    """Whether there can be so many ticks of that period in so much CPU time as the kernel accounts, or
    between `least` and `most` times as much, of so many threads and processes that begin or end
    meanwhile. The environment or further arguments have what the machine lets it differ by: stolen_ns
    and uncharged_ns, which tests/lib.sh explains."""
    stolen, uncharged = (int(disturbed.get(name, os.environ.get(name)))
                         for name in ("stolen_ns", "uncharged_ns"))
    return is_rate(ticks, (ns * least - stolen) / period_ns - tasks,
                   (ns * most + stolen + uncharged) / period_ns + 1)


if __name__ == "__main__":  # share K N P, or rate K MEAN: prints the probability
    import sys

    numbers = [float(word) if "." in word else int(word) for word in sys.argv[2:]]
    print("%.6e" % {"share": share_p, "rate": rate_p}[sys.argv[1]](*numbers))
