"""How strong effects are: from one release, with one interval for all that may be off."""

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr

from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import Release
from dpcgd.reading.graph_posterior import bits_of
from dpcgd.reading.likely_graphs import Graphs, likely_graphs
from dpcgd.reading.orientation import leads
from dpcgd.reading.questions import Question
from dpcgd.reading.release import MarginalRelease, check_moments

__all__ = ["Adjustment", "Effect", "Effects", "Reading", "effect", "effects", "interval"]

COVER = 0.9
"""An interval is meant to hold the value of its estimand so often."""

BENT = 0.1
"""Two numbers whose squares go along so much otherwise than under a Gaussian copula are marked."""

CURVED = "the effect is no straight line, or its spread differs with the cause"
"""Why they are."""


class Adjustment(NamedTuple):
    """What an effect is if these variables are adjusted for, and how likely the graph says so."""

    adjusted_for: tuple[str, ...]
    estimate: float
    deviation: float
    share: float


@dataclass(frozen=True)
class Effect:
    """A total effect: what changes in one variable if another one is set.

    Attributes
    ----------
    cause, effect : str
    estimand : str
        What the estimate is an estimate of, and in which unit.
    estimate : float
        Mean over the likely graphs in which the effect does not come before the cause; 0 if there
        is none, not a number if it is not identified.
    low, high : float
        Ends of a 90 % interval over all likely graphs: sampling, noise, shortened records and the
        graph in one. Minus and plus infinity where the release cannot tell.
    probability : float
        Of the graphs in which the cause comes before the effect.
    identified : bool
        Whether the release tells anything about the size.
    adjusted_for : tuple of str
        The likeliest set.
    adjustments : tuple of Adjustment
        Every set, the likeliest first. What their shares lack to one are graphs in which the
        effect comes before the cause: where the direction is open, zero is possible, too.
    ratio : tuple of float or None
        Share after over share before, and its 90 % interval; where both shares are clear of zero.
    medians : tuple of float or None
        The same change as a difference of medians in the unit of the effect, and its ends, if both
        scores together are normal (a Gaussian copula).
    robustness, robustness_of_interval : float
        A hidden common cause that explains a smaller share of what is left of the cause, and of
        what is left of the effect, takes the estimate not down to zero; and the interval not.
    marked : str
        Why the interval may cover less often than it says; empty if nothing is known against it.
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
    ratio: tuple[float, ...] | None
    medians: tuple[float, ...] | None
    robustness: float
    robustness_of_interval: float
    marked: str


class Effects(tuple[Effect, ...]):
    """Effects, the surest direction first."""

    def frame(self) -> pd.DataFrame:
        """A row for each effect, with the attributes of :class:`Effect` as columns."""
        left_out = ("adjustments",)
        rows = [{k: v for k, v in asdict(own).items() if k not in left_out} for own in self]
        return pd.DataFrame(rows)


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
        Of :func:`~dpcgd.tables.private_graph.private_graph`, for instance; with ``aim="effects"``
        fewer records are shortened, which leaves less to be corrected, but noise is wider.
    pairs : iterable of (str, str), optional
        Cause and effect. Otherwise each arrow of the graph, and each edge without direction both
        ways.
    graph : networkx.DiGraph, optional
        Known beforehand, without cycles. Otherwise graphs are weighed as the release does.

    Returns
    -------
    Effects
        A tuple of :class:`Effect`, and a table by its method ``frame``.

    Raises
    ------
    ValueError
        If the release holds no moments, or a name or the graph is not one of its variables.

    Privacy
    -------
    Post-processing of the release: no budget, no records. Chapter 19, :prf:ref:`thm-effects`.

    Notes
    -----
    In each graph, adjustment for the parents of the cause identifies its total effect, if there is
    no hidden common cause (Pearl 1993). Over graphs this is IDA with weights (Maathuis, Kalisch and
    Buehlmann 2009). Each adjustment has a normal error, from sampling and from noise; a graph in
    which the effect comes before the cause says zero. The interval is of their mixture.
    From moments the adjustment is a linear regression on all entries of the parents; from a whole
    table it is standardisation.

    Examples
    --------
    >>> from dpcgd import load, private_graph
    >>> data = load("cancer", n=100_000, rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> table = effects(release, data.truth.edges, graph=data.truth).frame().set_index("cause")
    >>> table.loc["Smoker", ["estimate", "low", "high"]].astype(float).round(3).tolist()
    [0.03, 0.028, 0.032]
    """
    reading = Reading(release, graph)
    chosen = reading.pairs() if pairs is None else pairs
    answers = [reading.answer(reading.question(cause, effect)) for cause, effect in chosen]
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
        From which level of the cause to which; from the first to the last unless given. Of a number
        two shares between 0 and 1: from which quantile to which; otherwise from the mean of its
        normal score to one deviation above.
    outcome : str, optional
        A level of the effect whose share is asked for; the last one unless given.

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
    reading = Reading(release, graph)
    return reading.answer(reading.question(cause, effect, ends, outcome))


class Reading:
    """A release, and the graphs under which effects are asked for.

    Parameters
    ----------
    release, graph
        As for :func:`effects`.

    Privacy
    -------
    Post-processing.
    """

    def __init__(self, release: Release, graph: nx.DiGraph | None = None):
        self.release: MarginalRelease = check_moments(release)
        self.names = [*self.release.levels]
        self.graphs = self._likely() if graph is None else {self._known(graph): 1.0}

    def _known(self, graph) -> tuple[int, ...]:
        usable = isinstance(graph, nx.DiGraph) and {*graph} == {*self.names}
        if not usable or not nx.is_directed_acyclic_graph(graph):
            raise ValueError("graph must be a DiGraph of the release's variables without cycles")
        return tuple(bits_of(nx.to_numpy_array(graph, self.names) > 0).tolist())

    def _likely(self) -> Graphs:
        knowledge = self.release.terms.settings.get("knowledge") or Knowledge()
        edges = np.zeros((len(self.names),) * 2)
        for pair, likely in self.release.probabilities.items():
            a, b = map(self.names.index, pair)
            edges[a, b] = edges[b, a] = likely
        marginals = self.release.marginals
        return likely_graphs(marginals, edges, *knowledge.arrays(tuple(self.names)))

    def pairs(self) -> list[tuple[str, str]]:
        """Arrows, and edges without direction both ways."""
        arcs = np.argwhere(self.release.graph.arcs).tolist()
        return [(self.names[a], self.names[b]) for a, b in arcs]

    def question(self, cause: str, effect: str, ends=None, outcome=None) -> Question:
        """The question about a pair, if there is such a pair."""
        for name in (cause, effect):
            if name not in self.names:
                near = difflib.get_close_matches(str(name), self.names, n=1) or self.names
                raise ValueError(f"no variable is called {name!r}; did you mean {near[0]!r}?")
            if len(self.release.levels[name]) == 1:
                raise ValueError(f"{name!r} has one level and no effect; name another variable")
        if cause == effect:
            raise ValueError(f"{cause!r} has no effect on itself; name two variables")
        return Question(self.release, cause, effect, ends, outcome)

    def shares(self, x: int, y: int) -> tuple[dict[tuple[int, ...], float], float]:
        """How likely each set is to adjust for, and how likely x comes before y.

        Graphs in which y comes before x have no such set.
        """
        sets: dict[tuple[int, ...], float] = {}
        before = 0.0
        for parents, share in self.graphs.items():
            before += share * leads(list(parents), x, y)
            if not leads(list(parents), y, x):
                group = tuple(v for v in range(len(self.names)) if parents[x] >> v & 1)
                sets[group] = sets.get(group, 0.0) + share
        return dict(sorted(sets.items(), key=lambda item: (-item[1], item[0]))), before

    def answer(self, question: Question) -> Effect:
        """The effect that a question asks for."""
        sets, before = self.shares(question.x, question.y)
        answers = [question.adjusted(group) for group in sets]
        weights = [max(0.0, 1 - sum(sets.values())), *sets.values()]
        low, high = interval(weights, *_parts(answers))
        identified = math.isfinite(high - low)
        if question.outcomes and identified:
            low, high = max(low, -1.0), min(high, 1.0)
        first = next((own for own in answers if own is not None and identified), None)
        ratio, medians = _ratio(weights, answers) if question.outcomes and first else None, None
        if not question.outcomes and first:
            medians = question.medians(first.means[0], (first.difference, low, high))
        nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        n, sizes = self.release.marginals.n, (first.difference, nearest) if first else ()
        robustness = [first.robustness(size, n) for size in sizes] if first else [0.0, 0.0]
        ways = [
            Adjustment(tuple(self.names[v] for v in group), *_normal(own), share)
            for (group, share), own in zip(sets.items(), answers, strict=True)
        ]
        return Effect(
            cause=question.cause,
            effect=question.effect,
            estimand=question.estimand,
            estimate=_mean(sets, answers) if identified else math.nan,
            low=low,
            high=high,
            probability=min(before, 1.0),
            identified=identified,
            adjusted_for=ways[0].adjusted_for if ways else (),
            adjustments=tuple(ways),
            ratio=ratio,
            medians=medians,
            robustness=robustness[0],
            robustness_of_interval=robustness[1],
            marked=CURVED if first and question.departure > BENT else "",
        )


def _parts(answers) -> tuple[list[float], list[float]]:
    """Means and deviations of a mixture, first of graphs that say zero."""
    means, deviations = zip((0.0, 0.0), *map(_normal, answers), strict=True)
    return [*np.nan_to_num(means)], [*deviations]


def _normal(answer) -> tuple[float, float]:
    """Mean and deviation of one adjustment; nothing is known where it is not identified."""
    return (math.nan, math.inf) if answer is None else (answer.difference, answer.deviation)


def _mean(sets, answers) -> float:
    """Over graphs with an answer; 0 if the effect comes before the cause in all."""
    known = [(s, own.difference) for s, own in zip(sets.values(), answers, strict=True) if own]
    return sum(s * value for s, value in known) / sum(s for s, _ in known) if known else 0.0


def _ratio(weights, answers) -> tuple[float, ...] | None:
    """Of shares that are all clear of zero."""
    if not all(own is not None and own.is_clear for own in answers):
        return None
    logs, deviations = zip((0.0, 0.0), *(own.log_ratio for own in answers), strict=True)
    low, high = interval(weights, logs, deviations)
    return math.exp(np.dot(weights[1:], logs[1:]) / sum(weights[1:])), math.exp(low), math.exp(high)


def interval(
    weights: Sequence[float], means: Sequence[float], deviations: Sequence[float]
) -> tuple[float, ...]:
    """Ends of the central 90 % of a mixture of normal numbers.

    Parameters
    ----------
    weights, means, deviations : sequence of float
        A deviation may be 0, or infinite where nothing is known.

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
    first, last = centres[known].min() - reach, centres[known].max() + reach

    def lacks(value, share):
        z = (value - centres) / np.maximum(spread, 1e-300)
        below = np.where(spread > 0, ndtr(z), value >= centres)
        return shares @ np.where(known, below, 0.5) - share

    low, high = (brentq(lacks, first, last, (share,), xtol=1e-10) for share in (tail, 1 - tail))
    return tuple(0.0 if abs(end) < 1e-8 else float(end) for end in (low, high))
