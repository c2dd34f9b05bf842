"""Train what reads releases on simulated tables of every kind, where the truth is known.

python scripts/training.py [workers]     # make models; writes data/reader.json, data/colliders.json

Tables are drawn, none of which is in the book, and their moments are released at random budgets:
categories, numbers, both; with edges and without; with constant, rare and copied columns among the
others. What is drawn is kept in _build/reader, so that a command that was killed goes on where it
stopped.

- Boosted trees say which pairs are edges. A second model reads further tables, with what the first
  one says of them.
- Trees say which triples of the true skeletons of these, and of those that the first model finds,
  are colliders. Those for tables with numbers are trained on yet other tables, in which half of the
  numbers have effects that are all weak.
"""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from chapters import BUILD, ROOT
from dpcgd_book.data.mixed_networks import (
    FAMILIES,
    GaussianNetwork,
    random_mixed_network,
    standardised,
)
from dpcgd_book.results.digests import digest_of_files
from joblib import Memory, Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.random_networks import (
    MORE_TABLES,
    SHAPES,
    TABLES,
    any_network,
    random_network,
)
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import Variable
from dpcgd.moments.clipped_moments import blocks_of, clips, measure_moments
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import multiplier_of_rho, rho_of_budget
from dpcgd.reading import orientation
from dpcgd.reading.pair_features import PRIOR, pair_features, second_features
from dpcgd.reading.reader import edge_probabilities, most_likely_edges

SEED = 2030


class Drawn(NamedTuple):
    """How tables are drawn: variables, records and epsilons evenly on a logarithmic scale between
    two ends, kinds with their shares, and how many have constant, rare or copied columns."""

    variables: tuple[float, float]
    records: tuple[float, float]
    epsilons: tuple[float, float]
    kinds: dict[str, float]
    more_columns: float = 0.25


KINDS = {"categories": 0.34, "numbers": 0.26, "many levels": 0.08, "nothing": 0.32}
CLEAR_KINDS = {"categories": 0.56, "numbers": 0.2, "many levels": 0.06, "nothing": 0.18}
WIDE = Drawn((3, 450), (30, 1e6), (0.005, 10.0), KINDS)
CLEAR = Drawn((3, 100), (3000, 1e6), (0.1, 10.0), CLEAR_KINDS)
CATEGORIES = CLEAR._replace(kinds={"categories": 1.0})
SMALL = WIDE._replace(variables=(3, 12), records=(30, 1e5), more_columns=0.6)
"""Everything; where more is to be seen; categories alone, for what tells edges from strong paths
takes many tables to learn; few variables, for there are many ways to have little."""
OF_FIRST = [WIDE, CLEAR, CLEAR] * 1000 + [CATEGORIES] * 4000
OF_SECOND = [CLEAR, CATEGORIES, WIDE] * 1000 + [CATEGORIES] * 3000 + [SMALL] * 4500
WITH_ARROWS = {"categories": 0.4, "numbers": 0.3, "weak": 0.3}
MIDDLE = Drawn((4, 60), (3000, 3e5), (0.05, 5.0), WITH_ARROWS)
OF_ARROWS = [MIDDLE] * 1800
DRAWS = OF_FIRST + OF_SECOND + OF_ARROWS
ONCE = range(len(OF_FIRST))
TWICE = range(len(ONCE), len(ONCE) + len(OF_SECOND))
ARROWS = range(TWICE.stop, len(DRAWS))
"""Tables that the first reading is trained on, those of the second, and those of arrows among
numbers."""
MOST_CODES = 1.2e7
"""Records times variables, for time."""
LARGEST_SKELETON = 60
"""Triples are taken from tables of so many variables at most, for time."""
MANY_CAUSES, OFTEN = 0.2, 0.5
"""So many graphs of numbers have variables with many causes, and of those with weak effects."""
UNCLIPPED, WITHOUT_NOISE = 0.08, 0.04
"""Shares of the releases of pairs as they are, and of those with next to no noise."""
MOST_WEIGHT = 10.0
"""The most that a table counts for."""

TREES: dict = {
    "max_iter": 800,
    "learning_rate": 0.08,
    "max_leaf_nodes": 24,
    "min_samples_leaf": 60,
    "l2_regularization": 1.0,
    "early_stopping": False,
    "random_state": 2026,
}
"""The settings of boosted trees, unless a model has others."""
READ_AGAIN = {"max_iter": 200}
OF_COLLIDERS = {"max_iter": 200, "learning_rate": 0.06, "max_leaf_nodes": 16}
WITH_NUMBERS = OF_COLLIDERS | {"min_samples_leaf": 400}

ROOMS = (f"dpcgd/{room}" for room in ("datasets", "moments", "reading"))
CODE = digest_of_files([*ROOMS, __file__], root=ROOT)[:8]
kept = Memory(BUILD / "reader" / CODE, verbose=0).cache
"""What a function returns is kept on file, as long as this code stays as it is."""


def between(bounds, rng) -> float:
    return math.exp(rng.uniform(*map(math.log, bounds)))


# --- tables


def table(number: int, rng) -> tuple[Dataset, float]:
    """One table, with the graph that made it, and the epsilon that is spent on it."""
    variables, records, epsilons, kinds, more = DRAWS[number]
    d, epsilon = round(between(variables, rng)), between(epsilons, rng)
    n = round(min(between(records, rng), MOST_CODES / d))
    kind = str(rng.choice([*kinds], p=[*kinds.values()]))
    nothing = kind == "nothing"
    if nothing:
        kind = str(rng.choice(["categories", "numbers", "many levels"], p=[0.5, 0.3, 0.2]))
    if kind == "categories":
        data = in_order(any_network(d, rng).sample(n, rng=rng), rng)
    elif kind == "many levels":
        data = many_levels(min(d, 12), n, rng)
    elif kind == "weak":
        data = weak_numbers(d, n, rng)
    else:
        data = numbers(min(d, 150), n, rng)
    if nothing:
        codes = np.column_stack([rng.permutation(column) for column in data.codes.T])
        data = replace(data, codes=codes, truth=nx.empty_graph(data.variables, nx.DiGraph))
    return more_columns(data, rng) if rng.random() < more else data, epsilon


def in_order(data, rng) -> Dataset:
    """The same, and the levels of some variables are said to stand in order."""
    share = rng.choice([0.0, 0.0, 0.5, 1.0])
    return replace(data, ordered=[v for v in data.variables if rng.random() < share])


def many_levels(d, n, rng) -> Dataset:
    """Few variables, most of them with tens or hundreds of levels."""
    large = np.exp(rng.uniform(math.log(20), math.log(1000), d)).astype(int)
    sizes = np.where(rng.random(d) < 0.7, large, rng.integers(2, 6, d))
    levels = {f"v{i}": tuple(map(str, range(size))) for i, size in enumerate(sizes.tolist())}
    kind = rng.choice(TABLES + MORE_TABLES)
    return in_order(
        random_network(rng.choice(SHAPES), kind, d, rng, levels=levels).sample(n, rng=rng), rng
    )


def numbers(d, n, rng) -> Dataset:
    """Numbers, or numbers and categories, anywhere in ranges that may be far too wide."""
    graph = converging(d, rng) if rng.random() < MANY_CAUSES else None
    network = random_mixed_network(str(rng.choice(FAMILIES)), d, rng, graph)
    values, entries, codes = network.values(n, rng=rng), {}, []
    skewed, coarse, gaps = rng.random(3) < (0.3, 0.2, 0.15)
    for v, own in values.items():
        if v in network.levels:
            entries[v], column = network.levels[v], own
        else:
            if skewed and rng.random() < 0.5:
                own = np.exp(1.5 * np.clip(own, -6, 6))
            if coarse and rng.random() < 0.5:  # few places, or one for nearly all
                own = np.round(own * rng.choice([0.2, 0.5, 1.0]))
            width = between((6, 2000), rng)
            low = -width * rng.uniform(0.1, 0.9)
            entries[v] = {"range": (low, low + width), "outside": "clip"}
            if gaps and rng.random() < 0.5:
                own = np.where(rng.random(n) < between((0.01, 0.95), rng), np.nan, own)
                entries[v]["missing"] = "unknown"
            column = Variable.from_schema(v, entries[v]).positions_of_numbers(own)
        codes.append(column)
    order = list(network.graph)
    by_name = dict(zip(values, codes, strict=True))
    schema = Schema({v: entries[v] for v in order})
    return Dataset.of_schema(
        np.column_stack([by_name[v] for v in order]), schema, network.graph, network.name
    )


def weak_numbers(d, n, rng) -> Dataset:
    """Numbers whose linear effects are all of about one size, which may be small."""
    graph = random_mixed_network("linear", d, rng).graph
    if rng.random() < OFTEN:
        graph = converging(d, rng)
    effects = rng.choice([0.1, 0.2, 0.4]) * np.exp(rng.normal(0, 0.5, (d, d)))
    weights = nx.to_numpy_array(graph) * rng.choice([-1, 1], (d, d)) * effects
    return standardised(GaussianNetwork("weak", graph, weights, np.ones(d))).sample(n, rng=rng)


def converging(d, rng) -> nx.DiGraph:
    """A graph in which some variables have many causes, as a trait has genes."""
    graph, order = nx.empty_graph([f"v{i}" for i in range(d)], nx.DiGraph), rng.permutation(d)
    for place in rng.choice(np.arange(2, d), max(1, d // 6), replace=False):
        causes = rng.choice(place, min(place, rng.integers(2, 10)), replace=False)
        graph.add_edges_from((f"v{order[cause]}", f"v{order[place]}") for cause in causes)
    return graph


def more_columns(data, rng) -> Dataset:
    """The same with constant and rare columns, or copies, each joined to what it is like."""
    columns, levels, graph = list(data.codes.T), dict(data.levels), nx.DiGraph(data.truth)
    empty = not graph.edges
    of_few = data.variables[: 2 if empty else None]
    for i in range(1 + rng.geometric(0.4)):
        kind = rng.choice(["constant", "rare", *["copy"] * (3 if empty else 2)])
        name = f"more{i}"
        graph.add_node(name)
        if kind == "copy":
            like = data.variables[rng.integers(len(of_few))]
            if rng.random() < 0.25:
                like = data.variables[rng.integers(data.d)]
            columns.append(columns[data.variables.index(like)])
            levels[name] = levels[like]
            graph.add_edge(like, name)
        else:
            levels[name] = tuple("abcdef"[: rng.integers(2, 6)])
            share = 0.0 if kind == "constant" else between((1 / data.n, max(0.03, 1 / data.n)), rng)
            columns.append((rng.random(data.n) < share).astype(int))
    order = rng.permutation(len(columns)).tolist()
    names = [[*levels][i] for i in order]
    ordered = [v for v in data.ordered if not v.startswith("more")]
    return Dataset(
        np.column_stack([columns[i] for i in order]),
        {v: levels[v] for v in names},
        graph,
        data.name,
        ordered,
    )


# --- releases


def simulated(rng):
    """Answer with Gaussian noise that nobody pays for: the records are nobody's."""

    def measure(query, *, sensitivity, rho):
        deviation = sensitivity * multiplier_of_rho(rho)
        values = query()
        return values + deviation * rng.standard_normal(values.shape), deviation

    return measure


@kept
def release(number: int):
    """The release of one table's moments, and its arcs: ``arcs[a, b]`` where a is a parent of b."""
    rng = np.random.default_rng([SEED, number])
    data, epsilon = table(number, rng)
    rho = 1e6 if rng.random() < WITHOUT_NOISE else rho_of_budget(Budget(epsilon, 1e-6))
    as_they_are = rng.random() < UNCLIPPED and sum(data.cardinalities) < 500
    clipped = clips(data, rho) and (bool(data.numbers) or not as_they_are)
    arcs = np.zeros((data.d, data.d), bool)
    for edge in data.truth.edges:
        arcs[tuple(map(data.variables.index, edge))] = True
    return measure_moments(data, simulated(rng), rho, clipped=clipped), arcs


@kept
def read_once(number: int):
    """Features and labels of the pairs of one release, and the pairs."""
    moments, arcs = release(number)
    pairs, rows = pair_features(moments)
    return pd.DataFrame(rows), (arcs | arcs.T)[tuple(pairs.T)], pairs


@kept
def read_again(number: int, likely: np.ndarray):
    """Features for the second reading, and which rows of the first they continue.

    The probabilities are those of a first reading that has not seen the table.
    """
    moments, pairs = release(number)[0], read_once(number)[2]
    square, place = np.zeros((2, len(moments.levels), len(moments.levels)))
    square[tuple(pairs.T)], place[tuple(pairs.T)] = likely, np.arange(len(pairs))
    again, rows = second_features(blocks_of(moments), square + square.T)
    return pd.DataFrame(rows), place[tuple(again.T)].astype(int)


@kept
def triples(number: int, likely: np.ndarray | None = None):
    """Features of the triples of one skeleton, true and found, and whether they meet.

    `likely` are the probabilities of pairs, or else those of both readings in the package.
    """
    moments, arcs = release(number)
    square = edge_probabilities(moments) if likely is None else np.zeros(arcs.shape)
    if likely is not None:
        x, y = read_once(number)[2].T
        square[x, y] = square[y, x] = likely
    rows, meet = [pd.DataFrame()], []
    for joined in (arcs | arcs.T, most_likely_edges(square)):
        some = orientation.open_triples(joined)
        if len(joined) <= LARGEST_SKELETON and some:
            rows.append(pd.DataFrame(orientation.triple_features(moments, joined, some)))
            meet += [arcs[x, c] and arcs[y, c] for x, c, y in some]
    return pd.concat(rows), np.array(meet, bool)


# --- models


def in_parallel(task, workers: str, *cases) -> list:
    """The task of every case, on so many processes; -1 takes all cores."""
    return Parallel(int(workers))(delayed(task)(*case) for case in zip(*cases, strict=True))


def trees(rows, labels, weights=None, **other) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**TREES | other).fit(rows, labels, weights)


def said_by(model, rows) -> np.ndarray:
    return model.predict_proba(rows)[:, 1]


def checked(what, rows, labels, groups, weights, **settings):
    """Print how good trees are on a tenth of the tables if they have not seen it."""
    held = groups % 10 == 0
    model = trees(rows[~held], labels[~held], weights[~held], **settings)
    loss = log_loss(labels[held], said_by(model, rows[held]), sample_weight=weights[held])
    alone = np.full(len(labels), np.average(labels, weights=weights))
    by_share = log_loss(labels, alone, sample_weight=weights)
    print(f"{what}: {len(labels):,} examples; log loss {loss:.4f} on a tenth of the tables, which")
    print(f"trees have not seen; {by_share:.4f} by the share alone", flush=True)


def as_arrays(model) -> dict:
    """The trees as lists of plain numbers."""
    arrays: dict = {part: [] for part in ("roots", "feature", "number", "right")}
    for (tree,) in model._predictors:
        nodes = tree.nodes
        leaf = nodes["is_leaf"].astype(bool)
        place, inner = np.arange(len(nodes)), ~leaf
        assert (nodes["left"] - place == 1)[inner].all(), "what is on the left comes next"
        thresholds = [float(f"{t:.4g}") for t in nodes["num_threshold"]]
        values = [float(f"{v:.3g}") for v in nodes["value"]]
        arrays["roots"].append(len(arrays["feature"]))
        arrays["feature"] += np.where(leaf, -1, nodes["feature_idx"]).tolist()
        arrays["number"] += np.where(leaf, values, thresholds).tolist()
        arrays["right"] += np.where(leaf, 0, nodes["right"] - place).tolist()
    return {"bias": float(np.ravel(model._baseline_prediction)[0]), **arrays}


def write(name: str, **models):
    """Put trained models, and what they were trained on, into a file of data/."""
    facts = {"tables": ARROWS.start, **WIDE._asdict(), "script": digest_of_files([__file__])[:16]}
    del facts["kinds"], facts["more_columns"]
    (ROOT / "data" / f"{name}.json").write_text(
        json.dumps({"trained": facts, **models}, separators=(",", ":")) + "\n"
    )


class Examples(NamedTuple):
    """Pairs of many tables: features, labels, the place of each one's table, and its weight."""

    rows: pd.DataFrame
    labels: np.ndarray
    groups: np.ndarray
    weights: np.ndarray

    def of_each(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of pairs, a table at a time."""
        return np.split(values, np.searchsorted(self.groups, range(1, self.groups[-1] + 1)))


def examples(workers: str, numbers: Sequence[int]) -> Examples:
    """What is known of the pairs of these tables from a first reading."""
    rows, labels, pairs = zip(*in_parallel(read_once, workers, numbers), strict=True)
    sizes = np.array([1 + own.max(initial=1) for own in pairs])
    of_categories = np.array([DRAWS[k] is CATEGORIES for k in numbers])
    groups = np.repeat(range(len(rows)), [*map(len, labels)])
    weights = weights_of(labels, sizes, of_categories)[groups]
    return Examples(pd.concat(rows, ignore_index=True), np.hstack(labels), groups, weights)


def weights_of(
    labels: Sequence[np.ndarray], sizes: np.ndarray, of_categories: np.ndarray
) -> np.ndarray:
    """Of each table: of all pairs of tables of a size, the prior share are edges.

    Small networks have edges between most variables; so tables of few variables in which there is
    nothing weigh more. Tables of categories alone do not count.
    """
    pairs, edges = np.array([(len(own), own.sum()) for own in labels]).T
    weights, band = np.ones(len(labels)), np.floor(2 * np.log2(sizes))
    band[of_categories] = np.nan
    for alike in (band == one for one in np.unique(band[~of_categories])):
        nothing, something = alike & (edges == 0), alike & (edges > 0)
        wanted = edges[alike].sum() / PRIOR - pairs[something].sum()
        weights[nothing] = np.clip(wanted / max(1, pairs[nothing].sum()), 1.0, MOST_WEIGHT)
    return weights


def colliders(what: str, cases, evenly: bool, **settings) -> tuple[list[str], dict]:
    """Names of features, and trees trained on the triples of some tables.

    Triples of one table are alike: unless each counts the same, they count less where it has many.
    """
    rows, meet = zip(*cases, strict=True)
    of_each = np.repeat(range(len(meet)), [*map(len, meet)])
    weights = np.bincount(of_each)[of_each] ** (0.0 if evenly else -0.5)
    every, meets = pd.concat(rows, ignore_index=True), np.hstack(meet)
    checked(what, every, meets, of_each, weights, **settings)
    return [*every], as_arrays(trees(every, meets, weights, **settings))


def main(workers: str = "-1"):
    once = examples(workers, ONCE)
    checked("first reading", *once)
    first = trees(once.rows, once.labels, once.weights)
    later = examples(workers, TWICE)
    likely = later.of_each(said_by(first, later.rows))
    again, places = zip(*in_parallel(read_again, workers, TWICE, likely), strict=True)
    starts = np.searchsorted(later.groups, range(len(TWICE)))
    kept_rows = np.hstack([start + own for start, own in zip(starts, places, strict=True)])
    both = later.rows.iloc[kept_rows].reset_index(drop=True)
    both = both.join(pd.concat(again, ignore_index=True))
    second = Examples(both, *(own[kept_rows] for own in later[1:]))
    checked("second reading", *second, **READ_AGAIN)
    models = {
        "first": as_arrays(first),
        "second": as_arrays(trees(both, second.labels, second.weights, **READ_AGAIN)),
    }
    write("reader", features=[*both], **models)
    some = in_parallel(triples, workers, TWICE, likely)
    features, categories = colliders("colliders", some, True, **OF_COLLIDERS)
    some = in_parallel(triples, workers, ARROWS)
    _, numbers = colliders("colliders of numbers", some, False, **WITH_NUMBERS)
    write("colliders", features=features, categories=categories, numbers=numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
