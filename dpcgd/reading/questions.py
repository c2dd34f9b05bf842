"""A question to a release about one cause and one effect, and its answer for an adjustment set."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpcgd.datasets.arguments import check_called
from dpcgd.datasets.variable import PARTS, Variable
from dpcgd.moments.scores import LENGTH
from dpcgd.reading.adjustment import COVER, Adjusted, of_known, regressed, standardised
from dpcgd.reading.release import MarginalRelease
from dpcgd.reading.second_moments import LEAST, SQUARE, moments_of

__all__ = ["Question"]

USUAL_ENDS = (-0.5, 0.5)
"""Normal scores from which, and to which, a number is set. Ends on either side of the mean: what a
parabola adds to the line is the same at both, so that the line alone says how far they differ."""


class Question:
    """One cause, one effect, two values of the cause, and an outcome of the effect.

    Parameters
    ----------
    release : MarginalRelease
    cause, effect : str
    ends, outcome
        As for :func:`~dpcgd.reading.effects.effect`.

    Raises
    ------
    ValueError
        If there is no such name or level, or a share is not between 0 and 1.

    Privacy
    -------
    Post-processing.
    """

    def __init__(self, release: MarginalRelease, cause: str, effect: str, ends=None, outcome=None):
        names = [*release.levels]
        for name in (cause, effect):
            check_called(name, names)
            if len(release.levels[name]) == 1:
                raise ValueError(f"{name!r} has one level and no effect; name another variable")
        if cause == effect:
            raise ValueError(f"{cause!r} has no effect on itself; name two variables")
        self.release, self.cause, self.effect = release, cause, effect
        self.marginals: Any = release.marginals
        self.moments: Any = moments_of(release)
        if self.moments:
            work = partial(of_known, self.moments)
            self.moments, self.known = self.marginals.worked_out(("known values",), work)
        self.x, self.y = names.index(cause), names.index(effect)
        self.levels, self.outcomes = release.levels[cause], release.levels[effect]
        last = _first_and_last(release, effect)[1]
        self.outcome = last if outcome is None else _place(effect, self.outcomes, outcome)
        self.ends = self._places(ends)

    def _places(self, ends) -> tuple:
        """The two values of the cause: numbers of levels, or normal scores."""
        if ends is None:
            return _first_and_last(self.release, self.cause) if self.levels else USUAL_ENDS
        if isinstance(ends, str) or np.size(ends) != 2:
            raise ValueError(f"ends are two values of {self.cause!r}, not {ends!r}")
        if self.levels:
            return tuple(_place(self.cause, self.levels, end) for end in ends)
        if not all(isinstance(share, float) and 0 < share < 1 for share in ends):
            cure = "give two shares of records, such as (0.25, 0.75)"
            raise ValueError(f"{self.cause!r} is a number, and its ends are quantiles; {cure}")
        return tuple(ndtri(ends).tolist())

    @property
    def estimand(self) -> str:
        """The quantity that is estimated, in words."""
        what = f"{self.effect}, in deviations of its normal score"
        if self.outcomes:
            what = f"share of {self.effect} = {self.outcomes[self.outcome]}"
        way = "linear in" if self.moments else "standardised over"
        change = f"for one deviation of {self.cause}'s normal score, on average over people"
        if self.levels or self.ends != USUAL_ENDS:
            names = self.levels or {end: f"its {ndtr(end):.0%} quantile" for end in self.ends}
            first, last = (names[end] for end in self.ends)
            change = f"if {self.cause} is set from {first} to {last}"
        return f"change of {what}, {change}; {way} what is adjusted for"

    def adjusted(self, parents: Sequence[int]) -> Adjusted | None:
        """The effect adjusted for these variables; None if it is not identified.

        Its error includes the noise of the deviations that are the units of numbers.
        """
        x, y, moments = self.x, self.y, self.moments
        if moments is None:
            return standardised(self.marginals, (x, *parents), y, self.ends, self.outcome)
        cause = moments.vectors[x][[*self.ends]] if self.levels else self._scores()
        start, error = 0.0, 0.0
        if self.outcomes:
            shares, noise = self.marginals.table(y), self.marginals.moment(y).deviation
            start = shares[self.outcome]
            error = start * (1 - start) / self.marginals.n + noise**2
            held = (np.arange(len(shares)) == self.outcome) - start
            outcome = np.linalg.lstsq(moments.vectors[y], held, rcond=None)[0]
        else:
            outcome = np.eye(1, len(moments.rows[y]))[0] / self.deviation(y)
        answer = regressed(moments, (x, *parents), y, cause, outcome)
        if answer is None:
            return None
        first = [moments.rows[v][0] for v in (x, y, *parents)]
        sampling = answer.sampling / self.known[np.ix_(first, first)].min()
        units = [moments.rows[v][0] for v, own in ((x, self.levels), (y, self.outcomes)) if not own]
        relative = moments.deviations[units, units] / moments.values[units, units]
        error = error + (relative**2).sum() / 2 * np.outer(answer.means, answer.means)
        return Adjusted(answer.means + start, sampling, answer.further + error)

    def _scores(self) -> np.ndarray:
        """Entries of a number at both ends: its score, and the square where noise leaves it."""
        scores, squares = self.moments.vectors[self.x][:PARTS, :2].T
        ends, own = np.array(self.ends)[:, None], self.moments.rows[self.x]
        entries = np.zeros((2, len(own)))
        entries[:, :1], entries[:, 1:2] = ends, np.interp(LENGTH * ends, scores, squares) / SQUARE
        return entries * np.sqrt(np.diag(self.moments.values)[own].clip(LEAST))

    def deviation(self, v: int) -> float:
        """Deviation of a number's score, over known values."""
        row = self.moments.rows[v][0]
        return math.sqrt(max(self.moments.values[row, row], LEAST))

    @property
    def departure(self) -> float:
        """Distance of a number and its effect from a Gaussian copula, beyond noise.

        It is twice that of the pair, or the largest of either and any other variable. The levels of
        a category are set one by one, so a category as a cause has 0.
        """
        if self.levels:
            return 0.0
        apart = self.moments.departures
        return float(max(2 * apart[self.x, self.y], apart[[self.x, self.y]].max()))

    def medians(self, start: float, change: float, low: float, high: float) -> tuple[float, ...]:
        """The change of the effect's median in its own unit, and its interval.

        They follow from those of its normal score. Quantiles of the released histogram have errors
        of their own: from sampling, and from the noise of each halving, half the variance of a
        count, which moves a quantile by the share of its half below it, in squares a third.
        """
        terms, held = self.release.terms, self.marginals.numbers[self.y]
        parts: Any = Variable.from_schema(self.effect, terms.rules[self.effect]).levels
        below = np.cumsum(held.by_part[:PARTS])
        n, noise = self.marginals.n * below[-1], self.marginals.moment(self.y).deviation

        def quantiles(shares):
            return parts.values(np.interp(shares, below / below[-1], np.arange(PARTS)))

        shares = ndtr(start + np.array([0.0, change, low, high]))
        both = shares[:2]
        errors = np.sqrt(both * (1 - both) / n + noise**2 * held.depth / 6)
        wide = (quantiles(both + errors) - quantiles(both - errors)) / 2
        alike = both.min() * (1 - both.max()) / n / errors.prod()
        reach = ndtri((1 + COVER) / 2) * math.sqrt(max(wide @ wide - 2 * alike * wide.prod(), 0))
        first, middle, least, most = quantiles(shares)
        below_it, above_it = np.hypot((middle - least, most - middle), reach)
        return tuple((np.array([middle, middle - below_it, middle + above_it]) - first).tolist())


def _first_and_last(release, name) -> tuple[int, int]:
    """Positions of two levels; that of missing values counts only if there are not two others."""
    levels, rule = release.levels[name], release.terms.rules.get(name)
    missing = Variable.from_schema(name, rule).missing if rule else None
    known = [place for place, level in enumerate(levels) if level != missing]
    return (known[0], known[-1]) if len(known) > 1 else (0, len(levels) - 1)


def _place(name, levels, level) -> int:
    """The position of a level among the levels of a variable."""
    if level not in levels:
        cure = f"take one of {', '.join(levels)}" if levels else "it is a number: leave outcome out"
        raise ValueError(f"{name!r} has no level {level!r}; {cure}")
    return levels.index(level)
