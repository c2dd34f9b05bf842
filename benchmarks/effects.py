"""How often the intervals of effects cover, how wide they are, and how often they are marked.

python benchmarks/effects.py [seconds]

Random networks of five families, 10,000 and 100,000 records, epsilon .3 and 1. Each effect of a
variable on one that it reaches by at most two arrows is held against the value of its own estimand
among four times as many fresh records without noise, and against an intervention on the network:
given the true graph, and over graphs drawn by the release. Keeps a row an effect in
book/stored/19_how_strong_is_the_effect/cover.parquet, and what they come to in cover.json beside
it; goes on where it stopped. 500 networks take some forty minutes of one core.
"""

import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
from dpcgd_book.data.mixed_networks import random_mixed_network
from dpcgd_book.results.stored import keep, rows_on_file, stored_folder
from joblib import Parallel, delayed
from scipy.special import ndtri

from benchmarks.kept import in_time
from dpcgd import Network, private_graph
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import SHAPES, random_network
from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.interactions import NoisyTable
from dpcgd.reading.adjustment import spread_of
from dpcgd.reading.effects import graphs_of, reply
from dpcgd.reading.likely_graphs import shares_of_sets
from dpcgd.reading.questions import Question
from dpcgd.reading.second_moments import moments_of

SEED, NETWORKS, AT_ONCE, MORE, SET, MOST_PAIRS = 71_919, 500, 50, 4, 50_000, 8
FAMILIES = ("linear", "categorical", "mixed", "spread", "shapes")
"""In the last two errors grow with a cause, and effects are curves of any shape."""

SIZES, TABLES = (6, 10, 20, 40), ("strong", "mixed", "weak", "rare")
PLANS = [(n, epsilon) for n in (10_000, 100_000) for epsilon in (0.3, 1.0)]
FOLDER = stored_folder() / "19_how_strong_is_the_effect"


def network_of(number: int, rng):
    """A network of this number's family, of some size."""
    family, d = FAMILIES[number % len(FAMILIES)], int(rng.choice(SIZES))
    if family == "categorical":
        return random_network(str(rng.choice(SHAPES)), str(rng.choice(TABLES)), d, rng)
    return random_mixed_network(family, d, rng)


def intervened(network, cause, value):
    """The network in which the cause is set to a value: a number, or the number of a level."""
    if isinstance(network, Network):
        parents = {**network.parents, cause: ()}
        point = np.eye(len(network.levels[cause]))[value]
        return Network("set", network.levels, parents, {**network.tables, cause: point})
    draws = {**network.draws, cause: lambda values, n, rng: np.full(n, value)}
    return network._replace(draws=draws)


def population(release, network, rng) -> tuple:
    """The same release with moments of more fresh records and no noise."""
    marginals, many = release.marginals, MORE * release.marginals.n
    data = network.sample(many, rng=rng)
    if isinstance(marginals, NoisyTable):
        [counts] = Tables(data).counts_many([tuple(range(data.d))])
        return replace(release, marginals=NoisyTable(many, np.asarray(counts, float), 1e-9)), None
    moments = moments_of(release)
    longest = sum((own**2).sum(axis=1).max() for own in moments.vectors) ** 0.5
    values = data.clipped_sums(moments.vectors, bound=longest) / many
    means = [data.counts([v]) @ own / many for v, own in enumerate(moments.vectors)]
    values = values - np.outer(*[np.concatenate(means)] * 2)
    exact = {"values": values, "shortened": values, "deviations": np.zeros_like(values)}
    return release, replace(moments, **exact, n=many)


def by_intervention(question, network, rng) -> float:
    """The difference of means between two interventions on the network, with the same errors."""
    means, errors = [], int(rng.integers(2**63))
    for end in question.ends:
        value = end
        if not question.levels:
            score = question.moments.vectors[question.x][:PARTS, 0]
            place = int(np.searchsorted(score, end * question.deviation(question.x)))
            low, high = question.release.terms.domain[question.cause]
            value = float(Parts(low, high).values(place))
        same = np.random.default_rng(errors)
        data = intervened(network, question.cause, value).sample(SET, rng=same)
        shares = data.counts([question.y]) / SET
        if question.outcomes:
            means.append(float(shares[question.outcome]))
        else:
            score = question.moments.vectors[question.y][:, 0]
            means.append(float(shares @ score) / question.deviation(question.y))
    return means[1] - means[0]


def pairs_of(graph, rng) -> list[tuple[str, str]]:
    """Some pairs that are at most two arrows apart."""
    near = dict(nx.all_pairs_shortest_path_length(graph, cutoff=2))
    pairs = [(a, b) for a in graph for b in near[a] if a != b]
    return [pairs[i] for i in rng.permutation(len(pairs))[:MOST_PAIRS]]


def study(number: int) -> list[dict]:
    """A row for each effect of a network."""
    rng = np.random.default_rng([SEED, number])
    n, epsilon = PLANS[number // len(FAMILIES) % len(PLANS)]
    network = network_of(number, rng)
    release = private_graph(network.sample(n, rng=rng), epsilon=epsilon, rng=rng)
    given, drawn = graphs_of(release, network.graph), graphs_of(release)
    exact, moments = population(release, network, rng)
    rows = []
    for cause, effect in pairs_of(network.graph, rng):
        question, wanted = Question(release, cause, effect), Question(exact, cause, effect)
        own, over = reply(question, given), reply(question, drawn)
        [parents] = shares_of_sets(given, question.x, question.y)[0]
        wanted.moments = moments
        truth, adjusted = wanted.adjusted(parents), question.adjusted(parents)
        row = {"run": number, "family": FAMILIES[number % len(FAMILIES)], "n": n}
        row |= {"epsilon": epsilon, "d": len(release.levels)}
        row |= {"low": own.low, "high": own.high, "estimate": own.estimate}
        row |= {"drawn_low": over.low, "drawn_high": over.high, "marked": bool(own.marked)}
        row |= {"truth": truth.difference if truth else None}
        row |= {"truth_error": spread_of(truth.sampling) if truth else None}
        row |= {"without_noise": spread_of(adjusted.sampling) if adjusted else None}
        rows.append(row | {"set": by_intervention(question, network, rng)})
    return rows


def table_of(rows: pd.DataFrame) -> pd.DataFrame:
    """By family, records and epsilon: cover, width beside that without noise, and what is marked.

    The truth is known from a sample; the interval given the graph is widened by its error.
    """
    found = rows.dropna(subset=["truth"])
    known, reach = np.isfinite(found.high - found.low), ndtri(0.95)
    half = np.hypot((found.high - found.low) / 2, reach * found.truth_error)
    middle = (found.high + found.low) / 2
    found["cover given graph"] = ((found.truth - middle).abs() <= half).where(known)
    found["cover intervention"] = ((found.set - middle).abs() <= half).where(known)
    found["cover"] = (found.drawn_low <= found.truth) & (found.truth <= found.drawn_high)
    found["width"] = ((found.high - found.low) / 2 / reach / found.without_noise).where(known)
    found["not identified"], found["gap to intervention"] = ~known, (found.set - found.truth).abs()
    means = ["cover given graph", "cover intervention", "cover", "marked", "not identified"]
    groups = found.groupby(["family", "n", "epsilon"])
    medians = groups[["width", "gap to intervention"]].median()
    return groups[means].mean().join(medians).join(groups.size().rename("effects")).round(3)


def write(rows: pd.DataFrame):
    """All rows, and a line for each family, number of records and epsilon."""
    cases = rows[["family", "n", "epsilon", "run"]].to_dict("records")
    keep(FOLDER, "cover", rows, cases, "estimate", made_by="python benchmarks/effects.py")
    lines = table_of(rows).reset_index().to_dict("records")
    (FOLDER / "cover.json").write_text(json.dumps(lines, indent=1) + "\n")


def main(seconds: str = "inf"):
    kept = (FOLDER / "cover.parquet").exists()
    rows = rows_on_file(FOLDER, "cover") if kept else pd.DataFrame(columns=["run"])
    left = [run for run in range(NETWORKS) if run not in {*rows.run}]
    for some in in_time(left, float(seconds), AT_ONCE):
        found = Parallel(-1)(delayed(study)(run) for run in some)
        more = pd.DataFrame([row for network in found for row in network])
        rows = pd.concat([rows, more]) if len(rows) else more
        write(rows)
        print(f"{some[-1] + 1} of {NETWORKS} networks", flush=True)
    print(table_of(rows).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
