"""Total effects from one release, with intervals that cover all sources of error."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr

from dpcgd.graphs.release import Release
from dpcgd.reading.adjustment import COVER, UNKNOWN
from dpcgd.reading.likely_graphs import Graphs, likely_graphs, shares_of_sets
from dpcgd.reading.orientation import bits_of
from dpcgd.reading.questions import Question
from dpcgd.reading.release import MarginalRelease, check_moments

__all__ = ["Adjustment", "Effect", "Effects", "effect", "effects", "graphs_of", "interval", "reply"]

BENT = 0.5
"""The effect of a number on a number is marked if either of them and any number are farther than
this from a Gaussian copula, in correlations; or both of them farther than half of it."""

CURVED = "an effect is not linear here, or a spread differs with its cause"
"""The reason that is given for numbers far from a Gaussian copula."""


class Adjustment(NamedTuple):
    """An effect adjusted for a set of variables, and the probability that this set is right."""

    adjusted_for: tuple[str, ...]
    estimate: float
    deviation: float
    share: float


@dataclass(frozen=True)
class Effect:
    """A total effect: the change of one variable if another one is set.

    Attributes
    ----------
    cause, effect : str
    estimand : str
        The quantity that is estimated, and its unit.
    estimate : float
        Mean over the likely graphs in which the effect does not come before the cause; 0 if there
        is no such graph, not a number if the effect is not identified.
    low, high : float
        Ends of a 90 % interval over all likely graphs. It covers sampling, noise, shortened records
        and the uncertainty of the graph. Minus and plus infinity if the release cannot tell.
    probability : float
        Probability of the graphs in which a path leads from the cause to the effect. Where records
        show no direction it only counts graphs.
    identified : bool
        Whether the release says anything about the size.
    adjusted_for : tuple of str
        The likeliest adjustment set.
    adjustments : tuple of Adjustment
        All adjustment sets, the likeliest first. The shares may sum to less than one: in the other
        graphs the effect comes before the cause, and so zero is possible too.
    ratio : tuple of float or None
        Share after the change over the share before, and its 90 % interval; None unless both
        shares are clearly above zero.
    medians : tuple of float or None
        The change as a difference of medians in the unit of the effect, and the ends of its
        interval, if both scores together are normal (a Gaussian copula); where the spread of the
        effect changes with the cause, it covers too rarely.
    robustness, robustness_of_interval : float
        A hidden common cause that explains a smaller share of the unexplained variance of the
        cause, and of the effect, cannot reduce the estimate, or the interval, to zero.
    marked : str
        The reason why the interval may cover too rarely; empty if none is known.
    """

    cause: str
    effect: str
    estimand: str
    estimate: float
    low: float
    high: float
    probability: float
    identified: bool
    adjusted_for: tuple[str, ...]
    adjustments: tuple[Adjustment, ...] = field(repr=False)
    ratio: tuple[float, ...] | None = None
    medians: tuple[float, ...] | None = None
    robustness: float = 0.0
    robustness_of_interval: float = 0.0
    marked: str = ""


class Effects(tuple[Effect, ...]):
    """A tuple of effects, which can be shown as a table."""

    def frame(self) -> pd.DataFrame:
        """A row for each effect, with the attributes of :class:`Effect` but `adjustments`."""
        return pd.DataFrame([*self], columns=[*Effect.__annotations__]).drop(columns="adjustments")


def effects(
    release: Release,
    pairs: Iterable[tuple[str, str]] | None = None,
    *,
    graph: nx.DiGraph | None = None,
) -> Effects:
    """Total effects of causes on effects, from a release alone.

    Parameters
    ----------
    release : MarginalRelease
        For instance of :func:`~dpcgd.tables.private_graph.private_graph`. With ``aim="effects"``
        fewer records are shortened, so less has to be corrected, but noise is wider.
    pairs : iterable of (str, str), optional
        Pairs of cause and effect. By default each arrow of the graph, and each undirected edge in
        both directions; the most probable directions come first.
    graph : networkx.DiGraph, optional
        A known graph, without cycles. By default likely graphs are weighted by the release.

    Returns
    -------
    Effects
        A tuple of :class:`Effect`, and a table by its method ``frame``.

    Raises
    ------
    ValueError
        If the release holds no moments, or if a name or the graph does not fit its variables.

    Privacy
    -------
    Post-processing of the release: no budget, no records. Chapter 19, :prf:ref:`thm-effects`.

    Notes
    -----
    In each graph, adjustment for the parents of the cause identifies its total effect, if there is
    no hidden common cause (Pearl 1993). Over graphs this is IDA with weights (Maathuis, Kalisch and
    Buehlmann 2009). Each adjustment has a normal error, from sampling and from noise. In a graph in
    which the effect comes before the cause, the effect is zero. The interval is that of the
    mixture. Moments are adjusted by a linear regression on all entries of the cause and its
    parents, a whole table by standardisation. A number has its score and the square of it. Numbers
    are taken to be missing at random: their moments are those of the records in which both values
    are known.

    Examples
    --------
    >>> from dpcgd import load, private_graph
    >>> data = load("cancer", n=100_000, rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> table = effects(release, data.truth.edges, graph=data.truth).frame().set_index("cause")
    >>> table.loc["Smoker", ["estimate", "low", "high"]].astype(float).round(3).tolist()
    [0.03, 0.028, 0.032]
    """
    measured = check_moments(release)
    graphs, names = graphs_of(measured, graph), [*measured.levels]
    arcs = [(names[a], names[b]) for a, b in np.argwhere(measured.graph.arcs)]
    asked = arcs if pairs is None else [*pairs] if isinstance(pairs, Iterable) else [pairs]
    if odd := [pair for pair in asked if isinstance(pair, str) or np.size(pair) != 2]:
        raise ValueError(f"{odd[0]!r} is no pair; give a list of pairs, such as [('a', 'b')]")
    answers = [reply(Question(measured, *pair), graphs) for pair in asked]
    return Effects(sorted(answers, key=lambda own: -own.probability) if pairs is None else answers)


def effect(
    release: Release,
    cause: str,
    effect: str,
    *,
    ends: Sequence[Any] | None = None,
    outcome: str | None = None,
    graph: nx.DiGraph | None = None,
) -> Effect:
    """The total effect of one variable on another, from a release alone.

    Parameters
    ----------
    release, graph
        As for :func:`effects`.
    cause, effect : str
    ends : (str, str) or (float, float), optional
        Two levels of the cause; by default the first and the last, apart from that of missing
        values. For a number two shares between 0 and 1, which stand for quantiles; by default the
        effect is the mean slope for one deviation of its normal score.
    outcome : str, optional
        The level of the effect whose share is estimated; by default the last, apart from that of
        missing values.

    Returns
    -------
    Effect

    Raises
    ------
    ValueError
        As for :func:`effects`, or if there is no such level.

    Privacy
    -------
    As for :func:`effects`.

    Examples
    --------
    >>> from dpcgd import load, private_graph
    >>> data = load("cancer", n=100_000, rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> answer = effect(release, "Smoker", "Cancer", ends=("False", "True"), outcome="True")
    >>> print(answer.estimand.split(";")[0])
    change of share of Cancer = True, if Smoker is set from False to True
    >>> answer.low < 0.029 < answer.high, answer.adjusted_for
    (True, ())
    """
    measured = check_moments(release)
    return reply(Question(measured, cause, effect, ends, outcome), graphs_of(measured, graph))


def graphs_of(release: MarginalRelease, graph: nx.DiGraph | None = None) -> Graphs:
    """The graphs over which effects are averaged, and their probabilities.

    Parameters
    ----------
    release, graph
        As for :func:`effects`.

    Privacy
    -------
    Post-processing.
    """
    names = [*release.levels]
    if graph is None:
        likely = release.probabilities
        edges = [[likely.get(frozenset((a, b)), 0.0) for b in names] for a in names]
        return likely_graphs(release.marginals, np.array(edges), *release.knowledge.arrays(names))
    usable = isinstance(graph, nx.DiGraph) and {*graph} == {*names}
    if not usable or not nx.is_directed_acyclic_graph(graph):
        raise ValueError("graph must be a DiGraph of the release's variables without cycles")
    return {tuple(bits_of(nx.to_numpy_array(graph, names) > 0)): 1.0}


def reply(question: Question, graphs: Graphs) -> Effect:
    """The effect that a question asks for, over these graphs."""
    sets, before = shares_of_sets(graphs, question.x, question.y)
    shares, answers = [*sets.values()], [question.adjusted(group) or UNKNOWN for group in sets]
    names, n = [*question.release.levels], question.marginals.n
    ways = tuple(
        Adjustment(tuple(names[v] for v in group), own.difference, own.deviation, share)
        for (group, share), own in zip(sets.items(), answers, strict=True)
    )
    estimate, low, high = _over_graphs(shares, [way[1:3] for way in ways])
    identified = math.isfinite(estimate)
    first = next((own for own in answers if own is not UNKNOWN and identified), None)
    more: dict[str, Any] = {}
    if first and question.outcomes:
        estimate, low, high = np.clip((estimate, low, high), -1.0, 1.0).tolist()
        logs = [own.log_ratio for own in answers]
        if None not in logs:
            more["ratio"] = tuple(map(math.exp, _over_graphs(shares, logs)))
    elif first:
        more["medians"] = question.medians(first.means[0], estimate, low, high)
    if first:
        more["robustness"] = first.robustness(first.difference, n)
        more["robustness_of_interval"] = first.robustness(max(low, -high, 0.0), n)
        more["marked"] = CURVED if question.departure > BENT else ""
    words = question.cause, question.effect, question.estimand
    numbers = estimate, low, high, min(before, 1.0)
    return Effect(*words, *numbers, identified, ways[0].adjusted_for if ways else (), ways, **more)


def _over_graphs(shares, numbers) -> tuple[float, float, float]:
    """The mean over graphs with a normal number, and the interval over all; other graphs say zero.

    `shares` are the probabilities of the graphs, `numbers` the mean and deviation of each.
    """
    means, deviations = np.nan_to_num(np.array([*numbers, (0.0, 0.0)]).T, posinf=np.inf)
    low, high = interval([*shares, max(0.0, 1 - sum(shares))], means, deviations)
    weights = np.array(shares) * np.isfinite(deviations[:-1])
    mean = weights @ means[:-1] / (weights.sum() or 1.0)
    return float(mean) if math.isfinite(low) else math.nan, low, high


def interval(
    weights: Sequence[float], means: Sequence[float], deviations: Sequence[float]
) -> tuple[float, ...]:
    """Ends of the central 90 % of a mixture of normal distributions.

    Parameters
    ----------
    weights, means, deviations : sequence of float
        A deviation may be 0, or infinite if nothing is known.

    Examples
    --------
    >>> low, high = interval([0.5, 0.5], [0.0, 3.0], [0.0, 1.0])
    >>> low, round(high, 2)
    (0.0, 4.28)
    """
    shares, centres, spread = map(np.array, (weights, means, deviations))
    tail, known = (1 - COVER) / 2, np.isfinite(spread)
    if shares[~known].sum() / 2 > tail:
        return -math.inf, math.inf
    reach = 12 * np.max(spread[known], initial=0.0) + 1e-9

    def lacks(value, share):
        return shares @ ndtr((value - centres) / np.maximum(spread, 1e-200)) - share

    first, last = centres.min() - reach, centres.max() + reach
    low, high = (brentq(lacks, first, last, (share,), xtol=1e-10) for share in (tail, 1 - tail))
    return tuple(0.0 if abs(end) < 1e-8 else float(end) for end in (low, high))
