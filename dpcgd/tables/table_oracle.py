"""Answers to a search from released interactions; triples are bought where a pair separates."""

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from dpcgd.graphs.ahead import Ahead
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, Moment, Subset
from dpcgd.privacy.budget import BudgetSpent
from dpcgd.privacy.run import check_level
from dpcgd.reading.association import (
    Association,
    association,
    associations,
    strength,
)

__all__ = ["Rules", "TableOracle", "too_noisy"]

ALPHA = 0.01
"""Level of each test."""


DETERMINED = 0.03
"""Where the conditioning variables leave less than this share of a variance open, a test has next
to nothing to go by, and does not separate."""


EXPLAINED = 0.03
"""Effects above this are taken for dependence without a look at triples."""


LEAST_EFFECT = 1e-4
"""Squared partial correlation, given others, below which a dependence is no edge. With enough
records everything is significant, and so little may be left only because a test takes no more
than two others."""


LEAST_SHARE = 0.02
"""The same as a share of the pair's own dependence, given none: what is left of a strong one may be
more than the least effect, and still next to nothing of it."""


DOUBT = 10
"""A pair whose largest p-value is within this factor of the level is in doubt."""


MOST_NOISE = 0.2
"""Deviation of a moment's noise, as a share of the records of an average level in an average
stratum, up to which tests hold their level."""


FEWEST_LEVELS = 4
"""Variables with fewer levels are taken for ones with so many by that rule: their tests would hold
their level with more noise, but have little power then."""


class Rules(NamedTuple):
    """The settings of a search of tables; :func:`~dpcgd.tables.table_pc.table_pc` explains them."""

    max_order: int = 2
    untested: str = "drop"
    alpha: float = ALPHA
    least_effect: float = LEAST_EFFECT
    least_share: float = LEAST_SHARE


def too_noisy(
    tested: Sequence[int], given: Sequence[int], deviation: float, most_noise: float = MOST_NOISE
) -> bool:
    """Whether a test is refused by public facts: too many strata and levels for the noise.

    Parameters
    ----------
    tested, given : sequence of int
        Levels of the two variables, and of those they are tested given.
    deviation : float
        Of the noise of a moment: of a released number, as a share of the records.
    most_noise : float

    Examples
    --------
    >>> too_noisy((2, 3), (), 0.01), too_noisy((2, 3), (8,), 0.01)
    (False, True)
    """
    return max(*tested, FEWEST_LEVELS) * math.prod(given) * deviation > most_noise


class _Associations:
    """Associations by test, kept for as long as the pairs they rest on are not measured again."""

    def __init__(self, marginals):
        self.marginals, self.as_measured = marginals, None
        self.rows: dict[Subset, tuple] = {}
        self.interacting: dict[Subset, Association] = {}
        self.moments: dict[Subset, Moment] = {}

    def of(self, tests) -> list[tuple]:
        """What an association is made of, of tests given any numbers of variables."""
        self._forget()
        left = [test for test in tests if test not in self.rows]
        for size in {len(test) for test in left}:
            alike = [test for test in left if len(test) == size]
            self.rows |= zip(alike, associations(self.marginals, alike), strict=True)
        return [self.rows[test] for test in tests]

    def given_interacting(self, x, y, given) -> Association:
        """The association given two variables whose effects need not add up."""
        self._forget()
        test = x, y, *given
        if test not in self.interacting:
            found = association(self.marginals, x, y, given, interacting=True)
            self.interacting[test] = found
        return self.interacting[test]

    def _forget(self):
        """Let go of tests that rest on what has been measured again, if anything has."""
        as_measured = self.marginals.worked_out(("as measured",), object)
        if as_measured is self.as_measured:
            return
        levels, released = self.marginals.levels, self.marginals.released
        again = np.zeros((len(levels), len(levels)), bool)
        for subset, moment in self.moments.items():
            again[subset[0], subset[-1]] = released[subset] is not moment
        again |= again.T
        self.rows, self.interacting = _resting(self.rows, again), _resting(self.interacting, again)
        self.moments = {s: moment for s, moment in released.items() if len(s) in (1, 2)}
        self.as_measured = as_measured


def _resting(rows, again) -> dict:
    """Rows of tests that rest on no pair which has been measured again."""
    left: dict = {}
    for size in {len(test) for test in rows}:
        tests = [test for test in rows if len(test) == size]
        variables = np.array(tests)
        stale = again[variables[:, :, None], variables[:, None]].any(axis=(1, 2)).tolist()
        left |= {t: rows[t] for t, is_stale in zip(tests, stale, strict=True) if not is_stale}
    return left


@dataclass
class TableOracle:
    """Answers from released interactions; buys triples where two variables separate.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    alpha : float
        Level of each test.
    price : float
        Rho of a triple. At 0 nothing new is measured (but by marginals without noise, which take
        no price).
    determined, explained, most_noise, doubt : float
        See ``DETERMINED``, ``EXPLAINED``, ``MOST_NOISE`` and ``DOUBT`` in the source.
    joined : collection of int
        Variables whose levels were joined: what is given is then less than the variable.
    least_effect : float
        What others leave of a pair's dependence, as a squared partial correlation, below which they
        separate it.
    least_share : float
        The same as a share of what the pair has given none.

    Raises
    ------
    ValueError
        If alpha is no level, the price no price or doubt below 1.

    Attributes
    ----------
    largest : dict
        Of each pair that was tested, its largest p-value; 1 where less than the least effect or
        the least share was left.
    """

    marginals: Marginals
    alpha: float = ALPHA
    price: float = 0.0
    determined: float = DETERMINED
    explained: float = EXPLAINED
    most_noise: float = MOST_NOISE
    doubt: float = DOUBT
    joined: Collection[int] = ()
    least_effect: float = LEAST_EFFECT
    least_share: float = LEAST_SHARE
    largest: dict[Subset, float] = field(default_factory=dict, init=False)
    _conditional: bool = field(default=False, init=False)
    _associations: _Associations = field(init=False)

    def __post_init__(self):
        self._associations = _Associations(self.marginals)
        check_level(self.alpha)
        if not 0 <= self.price < math.inf:
            raise ValueError(f"price must be finite and not negative, not {self.price!r}")
        if not self.doubt >= 1:
            raise ValueError(f"doubt must be at least 1, not {self.doubt!r}")

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool | None:
        """Whether the releases cannot tell x and y given these from independent ones.

        None where public facts say that they are too noisy to tell.
        """
        self._conditional |= bool(given)
        if self._too_noisy(x, y, given):
            return None
        found = self._association(x, y, given)
        if found.undetermined < self.determined:
            return False
        pair = min(x, y), max(x, y)
        p_value = 1.0 if given and found.effect < self._least(pair) else found.p_value
        self.largest[pair] = max(p_value, self.largest.get(pair, 0.0))
        return p_value > self.alpha

    def _association(self, x, y, given) -> Association:
        """From pairs, and from triples too where it matters and they can be had."""
        found = Association._make(self._ahead.of((x, y, *given)))
        if len(given) == 2 and self._needs_triples(found) and self._has_triples(x, y, given):
            found = self._associations.given_interacting(x, y, given)
        return found

    def rests_on_nothing(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether a test sees no dependence, and keeps the pair for want of variance alone."""
        if self._too_noisy(x, y, given):
            return False
        found = self._association(x, y, given)
        return found.undetermined < self.determined and found.p_value > self.alpha

    def _least(self, pair) -> float:
        """The effect that others have to leave of a pair."""
        own = Association._make(*self._associations.of([pair]))
        return max(self.least_effect, self.least_share * own.effect)

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, to work it out together."""
        self._ahead.begin_order(order, joined, to_test)

    def begin(self, sets: dict[Subset, Iterator[Subset]]) -> None:
        """Note the sets that each pair will be asked about, to work them out together."""
        self._ahead.begin(sets)

    @property
    def _ahead(self) -> Ahead[tuple]:
        """Associations by what has been released by now."""
        work, alpha = self._associations.of, self.alpha
        return self.marginals.worked_out(
            ("ahead",), lambda: Ahead(work, lambda row: row[-1] > alpha)
        )

    def free(self) -> "TableOracle":
        """The same, with what it knows of each pair; but it buys nothing, and any set may come."""
        other = replace(self, price=0.0)
        other.largest.update(self.largest)
        other._associations = self._associations
        other.begin({})
        return other

    def in_doubt(self) -> list[Subset]:
        """Pairs that a more precise measurement may well join or part."""
        low, high = self.alpha / self.doubt, self.alpha * self.doubt
        return sorted(pair for pair, p in self.largest.items() if low < p < high)

    def unconfirmed(self, joined: np.ndarray) -> np.ndarray:
        """Pairs that a neighbour of both may explain which no test can take as given.

        For the test is refused for noise, by public facts, or the neighbour's levels were joined:
        given such a variable its neighbours stay dependent. A pair is confirmed all the same if it
        is more dependent than one of the two is with that neighbour, for what runs through a
        variable is no stronger than its links.
        """
        found = np.zeros_like(joined)
        if self._conditional:
            for x, y in np.argwhere(np.triu(joined)).tolist():
                found[x, y] = not self.unexplained(x, y, joined)
        return found | found.T

    def unexplained(self, x: int, y: int, joined: np.ndarray) -> bool:
        """Whether no neighbour of both may explain this pair."""
        return not any(
            self.strength(x, y) < min(self.strength(x, z), self.strength(y, z))
            for z in np.flatnonzero(joined[x] & joined[y]).tolist()
            if z in self.joined or self._too_noisy(x, y, (z,))
        )

    def strength(self, x: int, y: int) -> float:
        """How dependent two variables are, given none."""
        pair = min(x, y), max(x, y)
        work = partial(strength, self.marginals, *pair)
        return self.marginals.worked_out(("strength", pair), work)

    def _too_noisy(self, x, y, given) -> bool:
        levels, deviation = self.marginals.levels, self.marginals.moment(0).deviation
        strata = [levels[v] for v in given]
        return too_noisy((levels[x], levels[y]), strata, deviation, self.most_noise)

    def _needs_triples(self, found) -> bool:
        """Independent, or so little dependent that interacting conditions might explain it."""
        clear = found.effect > self.explained and found.p_value <= self.alpha
        return found.undetermined >= self.determined and not clear

    def _has_triples(self, x, y, given) -> bool:
        return all(self._has(tuple(sorted((v, *given)))) for v in (x, y))

    def _has(self, triple) -> bool:
        if triple not in self.marginals.released and isinstance(self.marginals, MeasuredMarginals):
            with suppress(BudgetSpent):
                self.marginals.measure(triple, self.price)
        return triple in self.marginals.released
