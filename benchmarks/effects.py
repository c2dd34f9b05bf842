"""How often the intervals of effects cover, how wide they are, and how often they are marked.

python benchmarks/effects.py [SECONDS]

Random networks of five families, 10,000 and 100,000 records, epsilon .3 and 1. Each effect of a
network's arrow, and of a pair two arrows apart, is held against the value of its own estimand among
a million fresh records, and against an intervention on the network. Given the true graph, and over
graphs drawn by the release. Writes book/stored/19_how_strong_is_the_effect/cover.jsonl, a line a
network, and goes on where it stopped.
"""

import json
import sys
import time
from dataclasses import replace

import networkx as nx
import numpy as np
from dpcgd_book.data.mixed_networks import MixedNetwork, random_mixed_network
from dpcgd_book.results.stored import stored_folder

from dpcgd import private_graph
from dpcgd.datasets.bayesian_networks import Network
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import SHAPES, TABLES, random_network
from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.interactions import NoisyTable
from dpcgd.moments.scores import LENGTH
from dpcgd.reading.adjustment import spread_of
from dpcgd.reading.effects import Reading, effects
from dpcgd.reading.questions import Question, moments_of
from dpcgd.reading.release import MarginalRelease
from dpcgd.reading.second_moments import SecondMoments

SEED, NETWORKS, MANY = 71_919, 500, 4
FAMILIES = ("linear", "categorical", "mixed", "spread", "shapes")
"""What is reported: the last two are heteroscedastic and curved."""

SIZES = (6, 10, 20, 40)
PLANS = [(n, epsilon) for n in (10_000, 100_000) for epsilon in (0.3, 1.0)]
MOST_PAIRS, SET = 8, 20_000
FILE = stored_folder() / "19_how_strong_is_the_effect" / "cover.jsonl"


def network_of(number: int, seed: int = SEED):
    """The network of this number, with its family and its plan."""
    rng = np.random.default_rng([seed, number])
    family = FAMILIES[number % len(FAMILIES)]
    d = int(rng.choice(SIZES))
    n, epsilon = PLANS[number // len(FAMILIES) % len(PLANS)]
    if family == "categorical":
        tables = str(rng.choice([own for own in TABLES if own != "copies"]))
        return random_network(str(rng.choice(SHAPES)), tables, d, rng), family, n, epsilon, rng
    return random_mixed_network(family, d, rng), family, n, epsilon, rng


def records(network, n, rng):
    """A data set of either kind of network."""
    return network.sample(n, rng=rng)


def intervened(network, cause, value):
    """The network in which the cause is set to a value: a number, or the number of a level."""
    if isinstance(network, Network):
        point = np.eye(len(network.levels[cause]))[value]
        parents = {**network.parents, cause: ()}
        return Network("set", network.levels, parents, {**network.tables, cause: point})
    draws = {**network.draws, cause: lambda values, n, rng: np.full(n, value)}
    return replace(network, draws=draws)


def population(release, network, rng) -> tuple[MarginalRelease, SecondMoments | None]:
    """The same release with moments of many more fresh records and no noise."""
    marginals, many = release.marginals, MANY * release.marginals.n
    data = network.sample(many, rng=rng)
    if isinstance(marginals, NoisyTable):
        [counts] = Tables(data).counts_many([tuple(range(data.d))])
        return replace(release, marginals=NoisyTable(many, np.asarray(counts, float), 1e-9)), None
    moments = moments_of(release)
    vectors = moments.vectors
    longest = sum((own**2).sum(axis=1).max() for own in vectors) ** 0.5
    sums = data.clipped_sums(vectors, bound=longest) / many
    means = np.concatenate([data.counts([v]) @ own / many for v, own in enumerate(vectors)])
    values = sums - np.outer(means, means)
    zero = np.zeros_like(values)
    exact = replace(moments, values=values, shortened=values, deviations=zero, n=many)
    return release, exact


def by_intervention(question, network, rng) -> float:
    """The difference of means between two interventions on the network."""
    means = []
    for end in question.ends:
        value = end
        if not question.levels:
            score = question.moments.vectors[question.x][:PARTS, 0]
            place = int(np.searchsorted(score, question._deviation(question.x) * end))
            ends = question.release.terms.domain[question.cause]
            value = float(Parts(*ends).values(place))
        data = intervened(network, question.cause, value).sample(SET, rng=rng)
        shares = data.counts([question.y]) / SET
        if question.outcomes:
            means.append(float(shares[question.outcome]))
        else:
            means.append(
                float(shares @ question.moments.vectors[question.y][:, 0])
                / question._deviation(question.y)
            )
    return means[1] - means[0]


def pairs_of(graph, rng) -> list[tuple[str, str]]:
    """Arrows, and pairs two arrows apart, no more than are told apart in a line."""
    near = [(a, b) for a in graph for b in graph if a != b and nx.has_path(graph, a, b)]
    near = [pair for pair in near if nx.shortest_path_length(graph, *pair) <= 2]
    chosen = rng.permutation(len(near))[:MOST_PAIRS]
    return [near[i] for i in sorted(chosen.tolist())]


def study(number: int, seed: int = SEED) -> dict:
    """All that is kept of a network: what was run, and a row for each effect."""
    network, family, n, epsilon, rng = network_of(number, seed)
    release = private_graph(network.sample(n, rng=rng), epsilon=epsilon, rng=rng)
    given, drawn = Reading(release, network.graph), Reading(release)
    exact, moments = population(release, network, rng)
    rows = []
    for cause, effect in pairs_of(network.graph, rng):
        question = given.question(cause, effect)
        own, over = given.answer(question), drawn.answer(question)
        [parents] = given.shares(question.x, question.y)[0]
        answer = question.adjusted(parents)
        truth = Question(exact, cause, effect, moments=moments).adjusted(parents)
        kinds = [
            "category" if levels else "number" for levels in (question.levels, question.outcomes)
        ]
        rows.append(
            {
                "kind": " ".join(kinds),
                "truth": truth.difference if truth else None,
                "truth_error": spread_of(truth.sampling) if truth else None,
                "set": by_intervention(question, network, rng) if not seed == 2 else 0,
                "given": [own.low, own.estimate, own.high],
                "drawn": [over.low, over.estimate, over.high, over.probability],
                "sampling": spread_of(answer.sampling) if answer else None,
                "departure": question.departure,
                "marked": own.marked,
                "marked_drawn": over.marked,
                "identified": own.identified,
            }
        )
    names = dict(family=family, d=len(given.names), n=n, epsilon=epsilon)
    shown = effects(release)
    wrong = []
    for own in shown:
        if not nx.has_path(network.graph, own.cause, own.effect):
            wrong.append([own.low, own.estimate, own.high, own.probability])
    return {"number": number, **names, "arrows": len(shown), "wrong": wrong, "effects": rows}


if __name__ == "__main__":
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    start = time.time()
    k = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    with open(f"/tmp/dev{seed}.jsonl", "a") as file:
        while time.time() - start < seconds:
            try:
                out = study(k, seed)
            except Exception as error:
                import traceback

                traceback.print_exc()
                print("AT", k)
                k += 1
                continue
            file.write(json.dumps(out) + "\n")
            file.flush()
            k += 1
