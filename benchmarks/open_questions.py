"""What the papers leave open, measured: book/stored/open_questions.json.

python benchmarks/open_questions.py              # all of them, some five minutes of a free core
python benchmarks/open_questions.py clipping     # one of them; the others stay as they are

Each function answers one question of the page book/open_questions.md, which says what its numbers
mean. Runs are seeded, and settings are the same for all data.
"""

import itertools
import json
import math
import sys
from collections.abc import Callable

import numpy as np
from dpcgd_book.data.cause_effect_pairs import PAIRS, load_pair, pair_weights, synthetic_pair
from dpcgd_book.results.stored import stored_folder
from dpcgd_book.systems.direction_scores import igci
from scipy import optimize, stats

from dpcgd import CPDAG, Budget, Dataset, load
from dpcgd.constraint import curate_pc
from dpcgd.constraint.laplace_pc import private_search
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import Geometric
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.pairwise.anm import confidence
from dpcgd.pairwise.dependence_scores import Hsic
from dpcgd.pairwise.kernel_ridge import Ridge
from dpcgd.privacy.conversions import rho_of_budget
from dpcgd.score import noleaks, notears

FILE = stored_folder() / "open_questions.json"
SEED, EPSILON, DELTA, RUNS = 4923, 1.0, 1e-6, 10
NETWORKS = ("cancer", "earthquake", "survey", "asia", "sachs")
KINDS = {"krr": RandomizedResponse, "geo": Geometric}
"""Randomised response and geometric noise."""


def gain(f1: Callable[..., float], usual, other) -> list[float]:
    """Mean of F1 with another setting less that with the usual one, and its standard error.

    Over ten samples of 100,000 records of each network, on which both run from the same seed.
    """
    gaps = []
    for name, run in itertools.product(NETWORKS, range(RUNS)):
        data = load(name, n=100_000, rng=np.random.default_rng([SEED, run]))
        both = (f1(data, np.random.default_rng([SEED, run, 1]), s) for s in (other, usual))
        gaps.append(next(both) - next(both))
    return [np.mean(gaps), stats.sem(gaps)]


def noleaks_f1(data: Dataset, rng: np.random.Generator, clipped: float | None) -> float:
    """NoLeaks with a clip of 2 d, or with one that goes to where this share is clipped.

    A tenth of each step's budget then pays for the noisy share of records beyond the clip.
    """
    rho, (rows, times) = rho_of_budget(Budget(EPSILON, DELTA)), noleaks.distinct_rows(data)
    deviation = 2 * math.sqrt(data.d) / data.n / math.sqrt(2 * noleaks.SCALING * rho)
    means = noleaks.means_of(rows, times) + deviation * rng.normal(size=2 * data.d)
    share, clip = (1 - noleaks.SCALING) * rho / 30, 2.0 * data.d
    counted = 0.1 * share if clipped else 0.0

    def look(scaled, weights):
        nonlocal clip
        gradient = noleaks.clipped_gradient(scaled, weights, clip=clip, times=times)
        noise = 2 * clip / data.n / math.sqrt(2 * (share - counted))
        if clipped:
            squares, left = scaled**2, (scaled - scaled @ weights) ** 2
            norms = squares.sum(1) * left.sum(1) - (squares * left).sum(1)
            beyond = times[norms > clip**2].sum() + rng.normal() / math.sqrt(2 * counted)
            clip *= math.exp(0.2 * (beyond / data.n - clipped))
        return noleaks.without_diagonal(gradient + noise * rng.normal(size=gradient.shape))

    scale = noleaks.scale_of(means, data, deviation)
    weights = noleaks.descended(look, rows, scale, data, True, steps=30, l1=notears.L1)
    graph = notears.acyclic_graph(weights, notears.THRESHOLD, data.variables)
    return CPDAG.from_dag(graph).skeleton_f1(data.truth)


class Foreseeing(curate_pc.CurateOracle):
    """CURATE whose threshold moves by the log odds that earlier orders left a pair joined."""

    def begin_order(self, order, joined, to_test):
        super().begin_order(order, joined, to_test)
        kept, pairs = int(np.triu(joined).sum()), len(joined) * (len(joined) - 1) // 2
        self._lowered += math.log((kept + 1) / (pairs - kept + 1)) if order else 0


def curate_f1(data: Dataset, rng: np.random.Generator, kind: type) -> float:
    """CURATE with this oracle."""

    def oracle(opened, statistic):
        account, last = opened.account, min(3, data.d - 2)
        plan = curate_pc.proved_plan(account, statistic, data.n, last=last)
        return kind(Tables(data), statistic, math.nan, 1.0, account, opened.noise, plan=plan)

    by, budget = ("foreseeing", "thm-curate-filter"), {"epsilon": EPSILON, "delta": DELTA}
    return private_search(data, by, oracle, rng=rng, **budget).graph.skeleton_f1(data.truth)


def sub_sampling(n: int = 100_000, tau: float = 0.02) -> dict:
    """Error of a noisy Kendall test by the sub-sample's rate, at equal amplified epsilon."""

    def error(rate, epsilon):
        inside = math.log1p(math.expm1(epsilon) / rate)  # hidden by sampling, it is epsilon
        noise = stats.laplace.ppf((np.arange(20_000) + 0.5) / 20_000, scale=4 / (rate * n * inside))
        return stats.norm.sf((tau / 2 - noise) * 1.5 * math.sqrt(rate * n)).mean()

    cases = itertools.product((0.1, 0.3, 0.5, 0.9), (0.003, 0.01, 0.1, 1.0))
    least = min(error(rate, epsilon) / error(1.0, epsilon) for rate, epsilon in cases)
    return {"least": least, "whole": error(1.0, 0.01), "tenth": error(0.1, 0.01)}


def private_igci(bins: int = 64) -> dict:
    """Weighted accuracy on the Tuebingen pairs, from two noisy histograms at epsilon 1."""

    def entropies(counts):
        shares = np.maximum(counts, 0) / np.maximum(counts, 0).sum()
        spread = np.cov(np.arange(bins), aweights=shares, bias=True)
        return stats.entropy(shares) - np.array([0, math.log(max(spread, 1e-9)) / 2])

    right = []
    for number in PAIRS:
        x, y = load_pair(number).scaled.T
        tables = [np.histogram(column, bins, (-1, 1))[0] for column in (x, y)]
        rng = np.random.default_rng([SEED, number])  # a record moves two cells of each table
        noisy = tables + rng.laplace(scale=4 / EPSILON, size=(RUNS, 2, bins))
        found = [np.greater(*map(entropies, pair)) for pair in (tables, *noisy)]
        right.append([*np.mean(found[1:], axis=0), *found[0], igci(x, y) > 0])
    shares = np.average(right, axis=0, weights=[pair_weights()[number] for number in PAIRS])
    names = "uniform", "gaussian", "uniform_without", "gaussian_without", "spacings_without"
    return dict(zip(names, shares, strict=True))


def hsic_order(pair: Dataset, test: slice, train: slice, move: float) -> tuple[bool, float]:
    """Whether HSIC's order is right, and the chance that it is with noise for this move."""
    x, y = (pair.scaled[:, pair.variables.index(name)] for name in "xy")
    fits = ((a, b, Ridge(0.03).fit(a[train], b[train])) for a, b in ((x, y), (y, x)))
    scores = [Hsic().value(a[test], b[test] - fit.predict(a[test])) for a, b, fit in fits]
    kept = confidence(abs(scores[1] - scores[0]), move / (EPSILON / 2))
    return scores[0] < scores[1], kept if scores[0] < scores[1] else 1 - kept


def without_halves(n: int = 4000, runs: int = 30) -> dict:
    """HSIC where all records train and test: its sensitivity is the sum of both moves."""

    def moves(k):
        return Hsic().sensitivity(k), Hsic().residual_sensitivity(k, Ridge(0.03).change(k))

    half, whole = max(moves(n // 2)), sum(moves(n))
    cases = (slice(n // 2), slice(n // 2, n), half), (slice(n), slice(n), whole)
    pairs = [synthetic_pair(n, rng=np.random.default_rng([SEED, run])) for run in range(runs)]
    of_half, of_whole = (np.mean([hsic_order(p, *case) for p in pairs], axis=0) for case in cases)
    names = "halves_without", "halves", "whole_without", "whole", "noise"
    return dict(zip(names, [*of_half, *of_whole, whole / half], strict=True))


def chi_squared_on_reports(n: int = 20_000, runs: int = 500) -> dict:
    """Rejections at .05 on combined randomised response: Gaboardi and Rogers' test, and naively."""
    mechanism, margin = RandomizedResponse.from_epsilon((4, 4), 2.0), np.array([0.6, 0.2, 0.1, 0.1])
    rng, rates = np.random.default_rng([SEED, 8]), {}

    def least_distance(counts):
        def distance(logs):
            x, y = (np.exp(np.append(part, 0)) for part in np.split(logs, 2))
            fitted = n * mechanism.forward(np.outer(x / x.sum(), y / y.sum()))
            return ((counts - fitted) ** 2 / fitted).sum()

        return optimize.minimize(distance, np.tile(np.log(margin[:3] / margin[3]), 2)).fun

    for case, bond in (("level", 0.0), ("power", 0.1)):
        joint = mechanism.forward((1 - bond) * np.outer(margin, margin) + bond * np.diag(margin))
        tables = rng.multinomial(n, joint.ravel(), runs).reshape(runs, 4, 4)
        rates[case] = np.mean([least_distance(t) > stats.chi2.isf(0.05, 9) for t in tables])
        rates[f"naive_{case}"] = np.mean([stats.chi2_contingency(t)[1] < 0.05 for t in tables])
    return rates


def cubic(table: np.ndarray) -> np.ndarray:
    """The least-squares cubic of the second variable on the first, at the middle levels."""
    levels = np.arange(len(table)) / len(table)
    powers = levels[:, None] ** np.arange(4)
    normal = (powers.T * table.sum(1)) @ powers
    return (powers @ np.linalg.solve(normal, powers.T @ (table @ levels)))[2:-2]


def local_parameters(n: int = 100_000, p_max: float = 0.5, k: int = 10) -> dict:
    """An adjusted effect, and a cubic regression, from reports in bins, plain and corrected."""
    edges, found = np.linspace(-4, 4, k + 1)[1:-1], {}
    for name, run in itertools.product(KINDS, range(RUNS)):
        rng = np.random.default_rng([SEED, run])
        z, e, f = rng.normal(size=(3, n))
        x = 0.7 * z + math.sqrt(0.51) * e
        three = np.digitize(np.column_stack([x, 0.5 * x + 0.3 * z + 0.6 * f, z]), edges)
        two = np.digitize(np.column_stack([x, (x**3 - 2 * x) / 3 + 0.6 * f]), edges)
        by_three, by_two = (ComponentWise.from_p_max(KINDS[name], (k,) * d, p_max) for d in (3, 2))
        seen = by_three.sample(three, rng=rng)
        covariances = np.cov(three.T), np.cov(seen.T), by_three.moments(seen).covariance
        slopes = [np.linalg.solve(c[::2, ::2], c[::2, 1])[0] for c in covariances]
        both = two.T, by_two.sample(two, rng=rng).T
        tables = [np.histogram2d(*t, k, [(-0.5, k - 0.5)] * 2)[0] / n for t in both]
        fits = [cubic(table) for table in (*tables, by_two.inverse(tables[1]))]
        away = [np.std(fit - fits[0]) / np.std(fits[0]) for fit in fits[1:]]
        found.setdefault(name, []).append([slope / slopes[0] for slope in slopes[1:]] + away)
    names = "slope", "slope_corrected", "curve", "curve_corrected"
    means = {kind: np.mean(rows, axis=0) for kind, rows in found.items()}
    return {f"{kind}_{n}": v for kind in means for n, v in zip(names, means[kind], strict=True)}


QUESTIONS = {
    "clipping": lambda: {s: gain(noleaks_f1, None, v) for s, v in (("median", 0.5), ("most", 0.1))},
    "thresholds": lambda: {"gain": gain(curate_f1, curate_pc.CurateOracle, Foreseeing)},
    "sub_sampling": sub_sampling,
    "igci": private_igci,
    "halves": without_halves,
    "chi_squared": chi_squared_on_reports,
    "parameters": lambda: {"mild": local_parameters(), "strict": local_parameters(p_max=0.1)},
}


def main(*names: str) -> None:
    """Answer these questions, or all, and keep the numbers."""
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in names or QUESTIONS:
        kept[name] = QUESTIONS[name]()
        print(name, kept[name], flush=True)
        FILE.write_text(json.dumps(kept, indent=1, sort_keys=True, default=float) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
