"""Numbers as numbers: published Gaussian networks and random mixed ones, beside bins.

python benchmarks/numbers_too.py [seconds]
python benchmarks/numbers_too.py case numbers ecoli70 100000 1 0  # its rows, beside those on file

Keeps a row a run in book/stored/16_numbers_too/runs.parquet and writes what they come to beside it:
numbers.json (private_graph by epsilon, the same without noise, and what others find without
privacy), beside_bins.json and mixed.json. Goes on where it stopped; of bound.json see
effects_of_numbers.py. Some half an hour of one core.

Bins of equal frequency are cut at the exact quantiles of the model, or at those of the sample,
which no analyst has in private: they flatter bins.
"""

import functools
import json
import random
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pandas as pd
from dpcgd_book.data import mixed_networks as networks
from dpcgd_book.results.stored import keep, rows_on_file, stored_folder
from scipy.special import ndtri

from benchmarks.entries import attempted
from benchmarks.kept import in_time
from dpcgd import CPDAG, Budget, Dataset, pc, private_graph
from dpcgd.moments.clipped_moments import Aim, measure_moments
from dpcgd.moments.interactions import exactly
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.reading.release import MarginalRelease, read_moments

SEED, RUNS, NETWORKS, RECORDS, FEWER = 46, 20, 40, 100_000, 20_000
EPSILONS, MIXED_EPSILONS, DELTA = (3.0, 1.0, 0.3, 0.1), (1.0, 0.1), 1e-6
FEWEST, MOST = 8, 60
"""Variables of a random network."""

RANGES = {"": None, ", exponentials to 200": 200.0, ", exponentials to 8000": 8000.0}
"""What is done to a Gaussian network, and where the ranges end then."""

BINS = (3, 5, 8)
KEYS = ["part", "network", "n", "epsilon", "run"]
FOLDER = stored_folder() / "16_numbers_too"
Graphs = Iterator[tuple[str, CPDAG]]
"""Names of systems, and their graphs."""


def rng_of(*what) -> np.random.Generator:
    """A generator for this, and for nothing else."""
    return np.random.default_rng([SEED, *(zlib.crc32(str(part).encode()) for part in what)])


@functools.lru_cache(maxsize=1)
def records(network: str, n: int, run: int) -> Dataset:
    """The records of a run; a random network is the same for every n."""
    if network in networks.FAMILIES:
        rng = rng_of(network, run)
        d = int(rng.integers(FEWEST, MOST + 1))
        return networks.random_mixed_network(network, d, rng).sample(n, rng=rng_of(network, n, run))
    name, comma, scale = network.partition(",")
    model, end = networks.gaussian_network(name), RANGES[comma + scale]
    return model.sample(n, rng=rng_of(name, run), exponentials_to=end)


def cut(data: Dataset, bins: int, *, exact: bool) -> Dataset:
    """Numbers in bins of equal frequency, by a standard normal model or by the sample."""
    codes, levels, shares = data.codes.copy(), dict(data.levels), np.arange(1, bins) / bins
    for name in data.numbers:
        v, variable = data.variables.index(name), data.schema.variables[name]
        edges = np.quantile(data.codes[:, v], shares)
        if exact:
            edges = variable.positions_of_numbers(ndtri(shares))
        codes[:, v] = np.searchsorted(edges, data.codes[:, v], side="right")
        levels[name] = tuple(f"bin {k}" for k in range(bins))
    return Dataset(codes, levels, data.truth, data.name)


def private(data, epsilon, *seed, aim: Aim = "edges") -> MarginalRelease:
    rng = rng_of("noise", epsilon, *seed)
    return private_graph(data, epsilon=epsilon, delta=DELTA, rng=rng, precision="f1", aim=aim)


def numbers(data, network, epsilon, run) -> Graphs:
    """Numbers as numbers, by two readings of one release, and the same without noise."""
    release = private(data, epsilon, network, run)
    yield "private_graph", release.graph
    yield "default reading", read_moments(release.marginals, data.variables, None, None, "")
    if network in networks.GAUSSIAN_NETWORKS:
        yield "aim='effects'", private(data, epsilon, network, run, aim="effects").graph
    if epsilon == 1.0:  # without noise epsilon only moves the bound
        rho = GaussianFilter(Budget(epsilon, DELTA)).rho
        moments = measure_moments(data, exactly, rho, clipped=True)
        yield "without noise", read_moments(moments, data.variables, None, "f1", "")


def beside_bins(data, network, epsilon, run) -> Graphs:
    """Bins of equal frequency, which exponentials leave as they are, and equally wide ones."""
    if network in networks.GAUSSIAN_NETWORKS:
        for bins in BINS:
            binned = cut(data, bins, exact=True)
            yield f"{bins} of equal frequency", private(binned, epsilon, network, run, bins).graph
    yield "5 equally wide", private(data.binned(5), epsilon, network, run, "wide").graph


def mixed(data, network, epsilon, run) -> Graphs:
    """A random network with its numbers as numbers, and in five bins of the sample."""
    binned = cut(data, 5, exact=False)
    yield "numbers", private(data, epsilon, network, data.n, run).graph
    yield "five bins", private(binned, epsilon, network, data.n, run, "bins").graph


def without_privacy(data, network, epsilon, run) -> Graphs:
    """PC by Fisher's z, and causal-learn's searches with BIC on the covariance."""
    from causallearn.search.PermutationBased.BOSS import boss
    from causallearn.search.PermutationBased.GRaSP import grasp
    from causallearn.search.ScoreBased.GES import ges

    values, usual = data.scaled * data.half_widths, {"lambda_value": 0.5}
    bic = {"score_func": "local_score_BIC_from_cov", **usual}
    yield "PC, Fisher's z", pc(data).graph
    searches: dict[str, Callable] = {
        "GES, BIC": lambda: ges(cov=np.cov(values.T, ddof=0), n=data.n, **bic)["G"],
        "GRaSP, BIC": lambda: grasp(values, parameters=usual, verbose=False),
        "BOSS, BIC": lambda: boss(values, parameters=usual, verbose=False),
        "GRaSP, four times BIC's penalty": lambda: grasp(values, verbose=False),
        "BOSS, four times BIC's penalty": lambda: boss(values, verbose=False),
    }
    for name, search in searches.items():
        random.seed(run)  # both permute by Python's own generator
        graph, _ = attempted(search)
        if graph is not None:
            yield name, CPDAG.from_amat(graph.graph, data.variables, "causal-learn")


PARTS = {part.__name__: part for part in (numbers, beside_bins, mixed, without_privacy)}


def cases() -> list[tuple]:
    """All, in rounds."""
    tables = [name + scale for name, scale in product(networks.GAUSSIAN_NETWORKS, RANGES)]
    plan = [("mixed", networks.FAMILIES, RECORDS, MIXED_EPSILONS, NETWORKS)]
    plan += [("mixed", networks.FAMILIES, FEWER, (1.0,), NETWORKS // 2)]
    plan += [("numbers", tables, RECORDS, EPSILONS, RUNS)]
    plan += [("beside_bins", tables, RECORDS, EPSILONS, RUNS // 2)]
    plan += [("without_privacy", networks.GAUSSIAN_NETWORKS, RECORDS, (np.inf,), 3)]
    return [
        (part, network, n, epsilon, run)
        for run in range(NETWORKS)
        for part, names, n, epsilons, runs in plan
        if run < runs
        for network, epsilon in product(names, epsilons)
    ]


def means(rows: pd.DataFrame) -> list[float]:
    """Mean and standard error of F1, then those of arrowheads' F1."""
    scores = rows[["F1", "arrowhead F1"]]
    by_score = zip(scores.mean(), scores.sem(), strict=True)
    return [round(float(value), 4) for pair in by_score for value in pair]


def by(rows: pd.DataFrame, *keys: str, say: Callable = means):
    """What is said of the rows by these columns, one mapping in the other."""
    if not keys:
        return say(rows)
    parts = rows.groupby(keys[0], sort=False)
    named = ((k if isinstance(k, str) else f"{k:g}", part) for k, part in parts)
    return {name: by(part, *keys[1:], say=say) for name, part in named}


def beside_five_bins(rows: pd.DataFrame) -> dict:
    """By family the F1 of numbers less that of five bins: mean, error, networks, and both."""
    wide = rows.pivot(index=["network", "run"], columns="system", values="F1")
    gain = wide["numbers"] - wide["five bins"]
    found = {
        family: [*map(float, (own.mean(), own.sem(), own.size, *wide.loc[own.index].mean()))]
        for family, own in gain.groupby(level="network", sort=False)
    }
    least = min(found, key=lambda family: found[family][0] / max(found[family][1], 1e-9))
    found["all"] = [*map(float, (gain.mean(), gain.sem(), gain.size, *wide.mean()))]
    rounded = {family: [round(value, 4) for value in values] for family, values in found.items()}
    return rounded | {"columns": ["gain", "error", "networks", *wide], "least": least}


def write(rows: pd.DataFrame):
    """All files from the rows."""
    about = rows[[*KEYS, "system"]].to_dict("records")
    keep(FOLDER, "runs", rows, about, "F1", made_by="python benchmarks/numbers_too.py")
    parts = dict(iter(rows.groupby("part", sort=False)))
    of_mixed = parts.pop("mixed").sort_values(["n", "epsilon"], kind="stable")
    found = {"mixed": by(of_mixed, "n", "epsilon", say=beside_five_bins)}
    if {*parts} == {*PARTS} - {"mixed"}:
        found["numbers"] = by(parts["numbers"], "system", "network", "epsilon")
        found["numbers"]["yardsticks"] = by(parts["without_privacy"], "network", "system")
        found["beside_bins"] = by(parts["beside_bins"], "network", "system", "epsilon")
    for name, content in found.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def rows_of(case: tuple) -> pd.DataFrame:
    """The scores of a case, a system a row."""
    part, network, n, epsilon, run = case
    data = records(network, n, run)
    graphs, truth = PARTS[part](data, network, epsilon, run), data.truth
    scored = [(*case, s, g.skeleton_f1(truth), g.arrowhead_f1(truth)) for s, g in graphs]
    return pd.DataFrame(scored, columns=[*KEYS, "system", "F1", "arrowhead F1"])


def main(asked: str = "inf", *again: str):
    warnings.simplefilter("ignore")
    kept = (FOLDER / "runs.parquet").exists()
    rows = rows_on_file(FOLDER, "runs") if kept else rows_of(cases()[0])
    if again:
        part, network, n, epsilon, run = again
        now = rows_of((part, network, int(n), float(epsilon), int(run)))
        now = now.merge(rows, "left", [*KEYS, "system"], suffixes=(" now", " on file"))
        return print(now.to_string(index=False))
    done = {*rows[KEYS].itertuples(index=False, name=None)}
    left = [case for case in cases() if case not in done]
    for some in in_time(left, float(asked)):
        rows = pd.concat([rows, *map(rows_of, some)])
        write(rows)
        print(f"{left.index(some[-1]) + 1} of {len(left)}: {some[-1]}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
