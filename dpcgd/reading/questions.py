"""What is asked of a release about one cause and one effect, and its answer for one adjustment."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.interactions import NoisyTable
from dpcgd.privacy.events import GaussianEvent
from dpcgd.reading.adjustment import Adjusted, regressed, standardised
from dpcgd.reading.release import MarginalRelease
from dpcgd.reading.second_moments import LEAST, SecondMoments, second_moments

__all__ = ["Question", "moments_of"]


def moments_of(release: MarginalRelease) -> SecondMoments | None:
    """Second moments of a release, with their noise; None of a whole table, which needs none."""
    if isinstance(release.marginals, NoisyTable):
        return None
    last = [own.noise_multiplier for own in release.ledger.events if isinstance(own, GaussianEvent)]
    return second_moments(release.marginals, last[-1] if last else 0.0)


class Question:
    """One cause, one effect, the two values of the cause, and what is asked of the effect.

    Parameters
    ----------
    release : MarginalRelease
    cause, effect : str
    ends, outcome
        As for :func:`~dpcgd.reading.effects.effect`.
    moments : SecondMoments or None, optional
        Those of the release unless given.

    Raises
    ------
    ValueError
        If a level or a share is none.

    Privacy
    -------
    Post-processing.
    """

    def __init__(
        self,
        release: MarginalRelease,
        cause: str,
        effect: str,
        ends: Sequence[Any] | None = None,
        outcome: str | None = None,
        *,
        moments: SecondMoments | None = None,
    ):
        names = [*release.levels]
        self.release = release
        self.marginals: Any = release.marginals
        self.moments: Any = moments_of(release) if moments is None else moments
        self.cause, self.effect = cause, effect
        self.x, self.y = names.index(cause), names.index(effect)
        self.levels, self.outcomes = release.levels[cause], release.levels[effect]
        if outcome is not None and not self.outcomes:
            raise ValueError(f"{effect!r} is a number and has no levels; leave outcome out")
        self.outcome = _level(effect, self.outcomes, outcome, -1)
        self.ends = self._places(ends)

    def _places(self, ends) -> tuple:
        """The numbers of two levels, or two normal scores."""
        if ends is not None and (isinstance(ends, str) or len(ends) != 2):
            raise ValueError(f"ends are two values of {self.cause!r}, not {ends!r}")
        if self.levels:
            first, last = (None, None) if ends is None else ends
            places = [(first, 0), (last, -1)]
            return tuple(_level(self.cause, self.levels, *place) for place in places)
        if ends is None:
            return 0.0, 1.0
        if not all(isinstance(share, float) and 0 < share < 1 for share in ends):
            cure = "give two shares of records, such as (0.25, 0.75)"
            raise ValueError(f"{self.cause!r} is a number, and its ends are quantiles; {cure}")
        return tuple(ndtri(ends).tolist())

    @property
    def estimand(self) -> str:
        """What the estimate is an estimate of, in words."""
        shown = [self.levels[end] if self.levels else f"score {end:.3g}" for end in self.ends]
        what = f"{self.effect}, in deviations of its normal score"
        if self.outcomes:
            what = f"share of {self.effect} = {self.outcomes[self.outcome]}"
        way = "linear in" if self.moments else "standardised over"
        change = f"{self.cause} is set from {shown[0]} to {shown[1]}"
        return f"change of {what}, if {change}; {way} what is adjusted for"

    def adjusted(self, parents: Sequence[int]) -> Adjusted | None:
        """The answer if these variables are adjusted for; None if it is not identified."""
        x, y = self.x, self.y
        if self.moments is None:
            return standardised(self.marginals, x, y, parents, self.ends, self.outcome)
        vectors, cause = self.moments.vectors[y], self._entries()
        if not self.outcomes:
            outcome = _first(vectors) / self.deviation(y)
            answer = regressed(self.moments, x, y, parents, cause, outcome)
            return answer and self._in_deviations(answer)
        shares, noise = self.marginals.table(y), self.marginals.moment(y).deviation
        held = np.eye(len(shares))[self.outcome] - shares[self.outcome]
        outcome = np.linalg.lstsq(vectors, held, rcond=None)[0]
        answer = regressed(self.moments, x, y, parents, cause, outcome)
        share = shares[self.outcome]
        error = share * (1 - share) / self.marginals.n + noise**2
        return answer and self._in_deviations(answer).moved(share, error)

    def _entries(self) -> np.ndarray:
        """The cause's entries at either end."""
        vectors = self.moments.vectors[self.x]
        if self.levels:
            return vectors[[*self.ends]]
        return np.outer(self.ends, _first(vectors) * self.deviation(self.x))

    def deviation(self, v: int) -> float:
        """Of a number's score, as it was released."""
        place = self.moments.rows[v].start
        return math.sqrt(max(self.moments.values[place, place], LEAST))

    def _in_deviations(self, answer) -> Adjusted:
        """The same with the noise of the deviations that are its units."""
        noise = sum(
            (self.moments.deviations[row, row] / self.moments.values[row, row]) ** 2 / 2
            for v in (self.x, self.y)
            if v in self.moments.squares
            for row in [self.moments.rows[v].start]
        )
        return answer._replace(further=answer.further + noise * np.outer(*[answer.means] * 2))

    @property
    def departure(self) -> float:
        """How far two numbers are from a Gaussian copula, beyond noise; 0 of a category."""
        if self.levels or self.outcomes:
            return 0.0
        return self.moments.departure(self.x, self.y)

    def medians(self, start: float, changes: Sequence[float]) -> tuple[float, ...]:
        """Changes from a score of the effect in its own unit."""
        terms = self.release.terms
        low, high = terms.domain[self.effect]
        parts = Parts(low, high, terms.rules[self.effect]["scale"])
        below = np.cumsum(self.marginals.numbers[self.y].by_part[:PARTS])
        places = np.interp(
            ndtr(start + np.array([0.0, *changes])), below / below[-1], np.arange(PARTS)
        )
        values = parts.values(places)
        return tuple((values[1:] - values[0]).tolist())


def _first(vectors) -> np.ndarray:
    """The entry that is a number's score."""
    return np.eye(1, vectors.shape[1])[0]


def _level(name, levels, level, usual) -> int:
    """The place of a level, or the usual one; of a number there is none."""
    if level is None or not levels:
        return range(len(levels))[usual] if levels else 0
    if level not in levels:
        raise ValueError(f"{name!r} has no level {level!r}; take one of {', '.join(levels)}")
    return levels.index(level)
