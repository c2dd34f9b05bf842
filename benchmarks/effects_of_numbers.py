"""Adjusted coefficients from shortened moments: how far they are off, in standard errors.

python benchmarks/effects_of_numbers.py

Of every arc between numbers of a network, the coefficient of the cause, given the other numbers
that are parents, from moments of all records and of records that were shortened as for edges and
as for effects. Vectors and bounds are those of one release at (1, 1e-6) of
100,000 records; bias is the mean difference over batches of fresh records, on the same records, and
the error is that of one release: sampling by the spread over batches, noise by draws and their
mirror images. Writes book/stored/16_numbers_too/bound.json, network by network, and goes on where
it stopped; some ten minutes.
"""

import json
import math
from functools import partial

import numpy as np
from dpcgd_book.data import mixed_networks as networks
from dpcgd_book.results.stored import stored_folder

from dpcgd.moments import clipped_moments
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.filters import GaussianFilter

SEED, RECORDS, EPSILON, DELTA, DRAWS = 4617, 100_000, 1.0, 1e-6, 4
LINEAR, OTHERS = (5, 10, 20, 40, 60), (40,)
"""Variables of random networks, of the linear family and of the others."""

FEW_BATCHES, MANY_BATCHES = 10, 40
"""The latter for few variables, where errors are small."""

COLUMNS = ["median", "nine in ten below", "below a quarter", "root mean square"]
COLUMNS += ["median error", "bias known to"]
"""Of bias over error; the error itself, and what the bias is known to, over the error."""

FILE = stored_folder() / "16_numbers_too" / "bound.json"


def released(data, rng) -> tuple[clipped_moments.ClippedMoments, float]:
    """What a release measures, and the norm from which on it shortens records."""
    sensitivities = []

    def measure(query, *, sensitivity, rho):
        sensitivities.append(sensitivity)
        values, deviation = query(), sensitivity * multiplier_of_rho(rho)
        return values + rng.normal(size=len(values)) * deviation, deviation

    rho = GaussianFilter(Budget(EPSILON, DELTA)).rho
    moments = clipped_moments.measure_moments(data, measure, rho, clipped=True)
    return moments, math.sqrt(sensitivities[-1])


def tests_of(data, rows) -> list[tuple[list[int], int]]:
    """For each arc between numbers, the rows of the cause and of other parents, and of the effect.

    A number's row is that of its score.
    """
    row = {v: rows[data.variables.index(v)].start for v in data.numbers}
    parents = {v: [p for p in data.truth.predecessors(v) if p in row] for v in row}
    arcs = [(a, b) for b in row for a in parents[b]]
    return [([row[a], *(row[p] for p in parents[b] if p != a)], row[b]) for a, b in arcs]


def coefficients(tests, moments) -> np.ndarray:
    return np.array([np.linalg.solve(moments[np.ix_(x, x)], moments[x, y])[0] for x, y in tests])


def noise_of(rng, size) -> np.ndarray:
    upper = np.triu(rng.normal(size=(size, size)), 1)
    return upper + upper.T + np.diag(rng.normal(size=size)) * math.sqrt(2)


def study(network, batches: int, rng) -> dict[str, dict]:
    """By aim what the bias of all coefficients comes to."""
    clipped, usual = released(data := network.sample(RECORDS, rng=rng), rng)
    vectors = clipped_moments.level_vectors(clipped)
    longest = math.sqrt(sum((own**2).sum(axis=1).max() for own in vectors))
    longer = clipped_moments.LONGER
    bounds = {aim: min(usual * math.sqrt(times), longest) for aim, times in longer.items()}
    bounds |= {"all": longest}
    fresh = (network.sample(RECORDS, rng=rng) for _ in range(batches))
    rows = [[s.clipped_sums(vectors, bound=b) / RECORDS for b in bounds.values()] for s in fresh]
    sums = dict(zip(bounds, zip(*rows, strict=True), strict=True))
    values = partial(coefficients, tests_of(data, clipped_moments.rows_of(clipped.widths)))
    truth, found = np.array([*map(values, sums["all"])]), {}
    for aim in longer:
        batch, mean = np.array([*map(values, sums[aim])]), np.mean(sums[aim], axis=0)
        deviation = clipped.deviation * (bounds[aim] / usual) ** 2
        draws = [noise_of(rng, len(mean)) * deviation for _ in range(DRAWS)]
        ends = np.array([[values(mean + e), values(mean - e)] for e in draws])
        noise = np.sqrt((np.diff(ends, axis=1) ** 2 / 4).mean(axis=(0, 1)))
        error = np.hypot(noise, batch.std(axis=0, ddof=1))
        bias = np.abs(ends.mean(axis=(0, 1)) - truth.mean(axis=0)) / error
        unsure = (batch - truth).std(axis=0, ddof=1) / math.sqrt(batches) / error
        said = np.median(bias), np.quantile(bias, 0.9), (bias < 0.25).mean()
        said = (*said, np.sqrt((bias**2).mean()), np.median(error), np.median(unsure))
        found[aim] = dict(zip(COLUMNS, (round(float(value), 4) for value in said), strict=True))
        found[aim] |= {"squared norm": round(bounds[aim] ** 2, 1), "coefficients": len(truth[0])}
    return found


def main():
    plan = [(name, networks.gaussian_network(name)) for name in networks.GAUSSIAN_NETWORKS]
    for family in networks.FAMILIES:
        for d in LINEAR if family == "linear" else OTHERS:
            rng = np.random.default_rng([SEED, networks.FAMILIES.index(family), d])
            network = networks.random_mixed_network(family, d, rng)
            plan.append((f"{family}, {d} variables", network))
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for number, (name, network) in enumerate(plan):
        if name not in found:
            batches = FEW_BATCHES if len(network.graph) > 10 else MANY_BATCHES
            found[name] = study(network, batches, np.random.default_rng([SEED, number]))
            FILE.parent.mkdir(parents=True, exist_ok=True)
            FILE.write_text(json.dumps(found, indent=1) + "\n")
            print(name, found[name], flush=True)


if __name__ == "__main__":
    main()
