"""How strong effects are: from one release, with one interval for all that may be off."""

import difflib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import Release
from dpcgd.moments.interactions import NoisyTable
from dpcgd.moments.scores import FARTHEST, LENGTH
from dpcgd.privacy.events import GaussianEvent
from dpcgd.reading.adjustment import Adjusted, regressed, standardised
from dpcgd.reading.graph_posterior import bits_of
from dpcgd.reading.likely_graphs import Graphs, likely_graphs
from dpcgd.reading.orientation import leads
from dpcgd.reading.release import MarginalRelease, check_moments
from dpcgd.reading.second_moments import SecondMoments, second_moments

__all__ = ["Adjustment", "Effect", "Effects", "effect", "effects"]

COVER = 0.9
"""An interval is meant to hold the value of its estimand so often."""

CLEAR_OF_ZERO = 3.0
"""A ratio is formed of shares that are so many of their deviations above zero."""


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
        Mean over the likely graphs in which the cause comes before the effect; 0 if there is none,
        not a number if it is not identified.
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
        Every set, the likeliest first. Where the direction is open these are the values that are
        possible beside zero.
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
    ratio: tuple[float, float, float] | None
    medians: tuple[float, float, float] | None
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
        Best of :func:`~dpcgd.tables.private_graph.private_graph` with ``aim="effects"``.
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
    which the cause does not come before the effect says zero. The interval is of their mixture.
    From moments the adjustment is a linear regression on all entries of the parents; from a whole
    table it is standardisation.

    Examples
    --------
    >>> from dpcgd import load, private_graph
    >>> data = load("cancer", n=100_000, rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> table = effects(release, [("Cancer", "Xray"), ("Smoker", "Cancer")]).frame()
    >>> table[["cause", "effect", "estimate", "low", "high"]].round(2).values.tolist()
    []
    """
    reader = EffectReader(release, graph)
    chosen = reader.pairs() if pairs is None else list(pairs)
    found = [reader.effect(cause, effect) for cause, effect in chosen]
    return Effects(sorted(found, key=lambda own: -own.probability) if pairs is None else found)


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
    >>> found = effect(release, "Cancer", "Xray", outcome="positive", ends=("False", "True"))
    >>> print(found.estimand)
    >>> found.low < 0.7 < found.high
    """
    return EffectReader(release, graph).effect(cause, effect, ends, outcome)


class EffectReader:
    """A release and the graphs that effects are asked under."""

    def __init__(self, release: Release, graph: nx.DiGraph | None):
        self.release: MarginalRelease = check_moments(release)
        self.names = [*self.release.levels]
        self.marginals = self.release.marginals
        self.graphs = self._likely() if graph is None else {self._known(graph): 1.0}
        if not isinstance(self.marginals, NoisyTable):
            gaussian = [own for own in self.release.ledger.events if isinstance(own, GaussianEvent)]
            multiplier = gaussian[-1].noise_multiplier if gaussian else 0.0
            self.moments = second_moments(self.marginals, multiplier)

    def _known(self, graph) -> tuple[int, ...]:
        if {*graph} != {*self.names} or not nx.is_directed_acyclic_graph(graph):
            raise ValueError("graph must have the variables of the release and no cycle")
        return tuple(bits_of(nx.to_numpy_array(graph, self.names) > 0).tolist())

    def _likely(self) -> Graphs:
        knowledge = self.release.terms.settings.get("knowledge") or Knowledge()
        edges = np.zeros((len(self.names),) * 2)
        for pair, likely in self.release.probabilities.items():
            a, b = map(self.names.index, pair)
            edges[a, b] = edges[b, a] = likely
        return likely_graphs(self.marginals, edges, *knowledge.arrays(self.names))

    def pairs(self) -> list[tuple[str, str]]:
        """Arrows, and edges without direction both ways, between variables that vary."""
        graph = self.release.graph
        return [
            (a, b)
            for a, b in permutations(self.names, 2)
            if graph.arcs[self.names.index(a), self.names.index(b)] and min(self._size(a), self._size(b)) > 1
        ]

    def _size(self, name) -> int:
        return self.marginals.levels[self.names.index(name)]

    def effect(self, cause, effect, ends=None, outcome=None) -> Effect:
        x, y = self._column(cause), self._column(effect)
        if x == y:
            raise ValueError(f"{cause!r} has no effect on itself; name two variables")
        question = Question(self, x, y, ends, outcome)
        shares: dict[tuple[int, ...], float] = {}
        for parents, share in self.graphs.items():
            if leads(list(parents), x, y):
                own = tuple(v for v in range(len(self.names)) if parents[x] >> v & 1)
                shares[own] = shares.get(own, 0.0) + share
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        return question.answered([(group, share, question.adjusted(group)) for group, share in ranked])

    def _column(self, name) -> int:
        if name not in self.names:
            near = difflib.get_close_matches(str(name), self.names, n=1) or self.names
            raise ValueError(f"no variable is called {name!r}; did you mean {near[0]!r}?")
        if self._size(name) == 1:
            raise ValueError(f"{name!r} has one level and no effect; name another variable")
        return self.names.index(name)


class Question:
    """One cause, one effect, the two values of the cause, and what is asked of the effect."""

    def __init__(self, asked: EffectReader, x: int, y: int, ends, outcome):
        self.asked, self.x, self.y = asked, x, y
        self.levels_x, self.levels_y = ([*asked.release.levels.values()][v] for v in (x, y))
        self.ends = self._checked_ends(ends)
        if not self.levels_y:
            if outcome is not None:
                raise ValueError(f"{asked.names[y]!r} is a number and has no outcome; leave it out")
        self.level = None if not self.levels_y else _level(self.levels_y, outcome, -1, asked.names[y])

    def _checked_ends(self, ends) -> tuple:
        name = self.asked.names[self.x]
        if self.levels_x:
            first, last = ends if ends is not None else (None, None)
            return _level(self.levels_x, first, 0, name), _level(self.levels_x, last, -1, name)
        if ends is None:
            return 0.0, 1.0
        if not all(isinstance(share, float) and 0 < share < 1 for share in ends):
            raise ValueError(f"{name!r} is a number; ends are two shares of records, as (0.25, 0.75)")
        return tuple(float(ndtri(share)) for share in ends)

    @property
    def estimand(self) -> str:
        names, whole = self.asked.names, isinstance(self.asked.marginals, NoisyTable)
        cause, effect = names[self.x], names[self.y]
        what = f"deviations of the normal score of {effect}"
        if self.levels_y:
            what = f"share of {effect} = {self.levels_y[self.level]}"
        change = f"{cause} from {{}} to {{}}".format(
            *(self.levels_x[end] if self.levels_x else f"score {end:+.2f}" for end in self.ends)
        )
        by = "standardised over" if whole else "linear, given"
        return f"change in the {what} from setting {change}, {by} the parents of {cause}"

    def adjusted(self, parents) -> Adjusted | None:
        marginals = self.asked.marginals
        if isinstance(marginals, NoisyTable):
            return standardised(marginals, self.x, self.y, parents, self.ends, self.level)
        vectors = self.asked.moments.vectors
        if self.levels_x:
            ends = vectors[self.x][[*self.ends]]
        else:
            ends = np.zeros((2, vectors[self.x].shape[1]))
            ends[:, 0] = LENGTH * np.array(self.ends)
        if not self.levels_y:
            outcome = np.zeros(vectors[self.y].shape[1])
            outcome[0] = 1 / LENGTH
            return regressed(self.asked.moments, self.x, self.y, parents, ends, outcome)
        shares = marginals.table(self.y)
        held = np.eye(len(shares))[self.level] - shares[self.level]
        outcome = np.linalg.lstsq(vectors[self.y], held, rcond=None)[0]
        found = regressed(self.asked.moments, self.x, self.y, parents, ends, outcome)
        if found is None:
            return None
        share = shares[self.level]
        deviation = marginals.moment(self.y).deviation
        means = found.means + share
        return found._replace(
            means=means,
            sampling=found.sampling + share * (1 - share) / marginals.n,
            further=found.further + deviation**2,
        )

    def answered(self, adjusted) -> Effect:
        names = self.asked.names
        known = [(group, share, own) for group, share, own in adjusted if own is not None]
        total = sum(share for _, share, _ in adjusted)
        weights = [1 - total, *(share for _, share, _ in adjusted)]
        means = [0.0, *(0.0 if own is None else own.difference for *_, own in adjusted)]
        spread = [0.0, *(math.inf if own is None else own.deviation for *_, own in adjusted)]
        low, high = interval(weights, means, spread)
        if self.levels_y and math.isfinite(low):
            low, high = max(low, -1.0), min(high, 1.0)
        identified = math.isfinite(low) and math.isfinite(high)
        estimate = math.nan
        if identified:
            estimate = sum(s * own.difference for _, s, own in known) / sum(s for _, s, _ in known) if known else 0.0
        named = [tuple(names[v] for v in group) for group, *_ in adjusted]
        adjustments = tuple(
            Adjustment(
                group,
                math.nan if own is None else own.difference,
                math.inf if own is None else own.deviation,
                share,
            )
            for group, (_, share, own) in zip(named, adjusted, strict=True)
        )
        likeliest = adjusted[0][2] if adjusted and identified else None
        robust, of_interval = _robustness(likeliest, self.asked.marginals.n, low, high)
        return Effect(
            names[self.x],
            names[self.y],
            self.estimand,
            estimate,
            low,
            high,
            min(total, 1.0),
            identified,
            named[0] if named else (),
            adjustments,
            self._ratio(weights, adjusted) if identified and self.levels_y else None,
            self._medians(likeliest, low, high) if likeliest and not self.levels_y else None,
            robust,
            of_interval,
            "",
        )

    def _ratio(self, weights, adjusted) -> tuple[float, float, float] | None:
        logs, spread = [0.0], [0.0]
        for *_, own in adjusted:
            if own is None:
                return None
            covariance = own.sampling + own.further
            if (own.means < CLEAR_OF_ZERO * np.sqrt(np.diag(covariance))).any():
                return None
            logs.append(math.log(own.means[1] / own.means[0]))
            turned = np.array([-1, 1]) / own.means
            spread.append(math.sqrt(max(turned @ covariance @ turned, 0.0)))
        if len(logs) == 1:
            return None
        low, high = interval(weights, logs, spread)
        estimate = np.dot(weights[1:], logs[1:]) / sum(weights[1:])
        return math.exp(estimate), math.exp(low), math.exp(high)

    def _medians(self, adjusted, low, high) -> tuple[float, float, float]:
        """In units of the effect: where scores lie in its histogram."""
        name = self.asked.names[self.y]
        terms = self.asked.release.terms
        parts = Parts(*terms.domain[name], scale=terms.rules[name]["scale"])
        histogram = self.asked.marginals.numbers[self.y]
        below = np.cumsum(histogram.by_part[:PARTS])
        start = adjusted.means[0]
        ends = start + np.array([0.0, adjusted.difference, low, high])
        places = np.interp(ndtr(ends), below / below[-1], np.arange(PARTS))
        values = parts.values(places)
        return tuple((values[1:] - values[0]).tolist())


def _level(levels, level, default, name) -> int:
    if level is None:
        return range(len(levels))[default]
    if level not in levels:
        raise ValueError(f"{name!r} has no level {level!r}; its levels are {', '.join(levels)}")
    return levels.index(level)


def interval(
    weights: Sequence[float], means: Sequence[float], deviations: Sequence[float]
) -> tuple[float, float]:
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
    weights, means, deviations = map(np.array, (weights, means, deviations))
    tail, known = (1 - COVER) / 2, np.isfinite(deviations)
    if weights[~known].sum() / 2 > tail:
        return -math.inf, math.inf
    reach = 12 * np.max(deviations[known], initial=0.0) + 1e-9

    def below(value):
        """Of the mixture's mass, values that are lower or as low."""
        sure = np.where(value >= means, 1.0, 0.0)
        parts = np.where(deviations > 0, ndtr((value - means) / np.maximum(deviations, 1e-300)), sure)
        return weights @ np.where(known, parts, 0.5)

    def quantile(share):
        first, last = means[known].min() - reach, means[known].max() + reach
        return brentq(lambda value: below(value) - share, first, last, xtol=1e-10)

    return tuple(0.0 if abs(end) < 1e-8 else end for end in map(quantile, (tail, 1 - tail)))


def _robustness(adjusted, n, low, high) -> tuple[float, float]:
    """Shares that a hidden common cause must explain, for the estimate and for its interval.

    Cinelli and Hazlett (2020): with f squared the share that the cause explains of the effect over
    what it does not, the share r solves r^2 / (1 - r) = f^2.
    """
    if adjusted is None:
        return 0.0, 0.0
    per_unit = abs(adjusted.hidden / adjusted.difference) / math.sqrt(n) if adjusted.difference else 0
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))

    def share(size):
        f = (size * per_unit) ** 2
        return (math.sqrt(f * f + 4 * f) - f) / 2

    return share(abs(adjusted.difference)), share(nearest)
