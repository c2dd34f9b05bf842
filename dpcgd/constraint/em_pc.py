"""EM-PC: for each variable the exponential mechanism chooses which edges to remove."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Unpack

import numpy as np

from dpcgd.constraint.laplace_pc import TestKeywords, private_search
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.pc_search import Pair, Set, conditioning_sets, neighbours_of
from dpcgd.graphs.release import Release
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import BoundedRangeEvent, PureEvent
from dpcgd.privacy.filters import Account, Filter
from dpcgd.privacy.mechanisms import exponential, permute_and_flip
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import Run, takes_keywords
from dpcgd.statistics.many_tables import values_of
from dpcgd.statistics.statistic import Statistic, distance_below, refusal

__all__ = ["ExponentialOracle", "count_scores", "em_pc", "share_of_the_choices"]

Choice = Callable[..., int]


CHOICES: dict[Choice, tuple[type[BoundedRangeEvent | PureEvent], str]] = {
    exponential: (BoundedRangeEvent, "thm-exponential"),
    permute_and_flip: (PureEvent, "thm-permute-and-flip"),
}
"""The event of each choice mechanism, and the theorem that proves its cost."""


@dataclass
class ExponentialOracle:
    """An oracle that chooses how many pairs of a variable to separate, which pairs, and which sets.

    Parameters
    ----------
    tables, statistic
    price : callable
        Function from turns of variables and pairs separated so far to the epsilon of each choice.
    choose : callable
        :func:`~dpcgd.privacy.mechanisms.exponential` or
        :func:`~dpcgd.privacy.mechanisms.permute_and_flip`.
    margin : float
        The threshold is the statistic's critical value plus this many noise scales.
    account, noise
    """

    tables: Tables
    statistic: Statistic
    price: Callable[[int, int], float]
    choose: Choice
    margin: float
    account: Account
    noise: Noise
    _chosen: dict[Pair, Set] = field(default_factory=dict, init=False)
    _turns: int = field(default=0, init=False)

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Record the pairs to be tested, and their conditioning sets."""
        self._sets_of = partial(conditioning_sets, neighbours=neighbours_of(joined), order=order)
        self._partners = neighbours_of(to_test)
        self._variable, self._decided = -1, False

    def separates(self, x: int, y: int, given: Set) -> bool | None:
        """Whether this set was chosen for the pair; None if public facts do not allow the test."""
        if x != self._variable:
            self._variable, self._decided = x, False
            self._allowed = {other: self._allowed_sets(x, other) for other in self._partners[x]}
        if self._allowed[y] and not self._decided:
            self._decided = True
            self._decide(x, {y: sets for y, sets in self._allowed.items() if sets})
        return self._chosen.get((x, y)) == given if given in self._allowed[y] else None

    def _allowed_sets(self, x, y) -> dict[Set, None]:
        """The sets of a pair whose tests public facts allow."""
        n, shape = self.tables.n, self.tables.shape
        return {s: None for s in self._sets_of(x, y) if not refusal(n, shape((x, y, *s)))}

    def _decide(self, x, sets):
        """Choose a number of pairs; then choose each pair, and a set for it."""
        epsilon = self.price(self._turns, len(self._chosen))
        self._turns += 1
        scores = cache(lambda: self._scores(x, sets, epsilon))
        best = cache(lambda: {y: some.max() for y, some in scores().items()})
        left = list(sets)
        count = self._choose(lambda: count_scores([best()[y] for y in left]), epsilon)
        for _ in range(count):
            y = left.pop(self._choose(lambda: [best()[y] for y in left], epsilon))
            self._chosen[x, y] = self._which_set([*sets[y]], lambda y=y: scores()[y], epsilon)

    def _which_set(self, sets, scores, epsilon) -> Set:
        """Choose a set for a pair; a single set needs no choice and costs nothing."""
        return sets[self._choose(scores, epsilon)] if len(sets) > 1 else sets[0]

    def _choose(self, scores, epsilon) -> int:
        settings = {"sensitivity": 1.0, "account": self.account, "noise": self.noise}
        return self.choose(scores, epsilon=epsilon, **settings)

    def _scores(self, x, sets, epsilon) -> dict[int, np.ndarray]:
        """Distance of each set's statistic below the threshold, in units of its sensitivity."""
        tests = [(x, y, *given) for y, those in sets.items() for given in those]
        values = values_of(self.statistic, self.tables, tests).tolist()
        sensitivity = cache(partial(self.statistic.sensitivity, self.tables.n))
        moves, scale = [sensitivity(self.tables.shape(test)) for test in tests], 2 / epsilon
        below = partial(distance_below, margin=self.margin * scale, reach=self.tables.n + scale)
        critical, both = self.statistic.critical, zip(values, moves, strict=True)
        scores = np.array([below(critical, value, move) for value, move in both])
        ends = np.cumsum([len(those) for those in sets.values()])
        return dict(zip(sets, np.split(scores, ends[:-1]), strict=True))


def count_scores(scores: Sequence[float]) -> np.ndarray:
    """For each count from none to all: the distance of the scores from having that many above 0.

    Its sensitivity equals that of the scores: the k-th largest moves at most as far as some score.
    Chapter 05, :prf:ref:`thm-em-scores`.

    Examples
    --------
    >>> count_scores([5.0, -2.0, 3.0])
    array([-5., -3.,  2., -2.])
    """
    falling = np.concatenate(([np.inf], np.sort(scores)[::-1], [-np.inf]))
    return np.minimum(falling[:-1], -falling[1:])


def share_of_the_choices(
    account: Filter, choose: Choice, d: int, max_order: int
) -> Callable[[int, int], float]:
    """A price of each choice such that the budget lasts for all possible later choices.

    Notes
    -----
    Later choices are at most a count for each variable at each order, G in all, and for each of the
    L remaining pairs the pair and its set. Each choice may use 1 / (G + 2 L) of the remaining rho.
    A single set is free, so a run leaves some budget unused. Prices depend only on released bits.
    Chapter 05, :prf:ref:`thm-em-pc`.
    """
    event, _ = CHOICES[choose]
    unit = zcdp_rho(event("one choice", 1.0))

    def price(asked: int, separated: int) -> float:
        choices = max(1, d * (max_order + 1) - asked) + 2 * (math.comb(d, 2) - separated)
        return math.sqrt(account.share(1 / choices) / unit)

    return price


@takes_keywords
def em_pc(data: Counts, *, choose: Choice = exponential, **shared: Unpack[TestKeywords]) -> Release:
    """EM-PC: a PC algorithm in which the exponential mechanism deletes the edges.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, statistic, margin
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    max_order, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    choose : callable
        The mechanism of each choice: :func:`~dpcgd.privacy.mechanisms.exponential` or
        :func:`~dpcgd.privacy.mechanisms.permute_and_flip`.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        If `choose` is another mechanism, and as :func:`~dpcgd.constraint.priv_pc.priv_pc`; nothing
        has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours. Chapter 05,
    :prf:ref:`thm-em-pc`, with the choices of chapter 02: :prf:ref:`thm-exponential` or
    :prf:ref:`thm-permute-and-flip`.

    Notes
    -----
    The system of Xu, Yuan and Wu (2017), in the form in which Wang, Pang and Song (2020) compare
    with it. Without noise it removes the same edges as PC-stable if no score is 0:
    :prf:ref:`thm-em-limit`. Copies lose edges as in :func:`~dpcgd.constraint.priv_pc.priv_pc`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = em_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    if choose not in [*CHOICES]:  # a list: what is asked for may have no hash
        raise ValueError("choose must be dpcgd.privacy.mechanisms.exponential or permute_and_flip")

    def oracle(run: Run, statistic: Statistic) -> ExponentialOracle:
        margin, max_order = (run.terms.settings[name] for name in ("margin", "max_order"))
        tables, price = Tables(data), share_of_the_choices(run.account, choose, data.d, max_order)
        return ExponentialOracle(tables, statistic, price, choose, margin, run.account, run.noise)

    by = ("em_pc", "thm-em-pc", CHOICES[choose][1])
    return private_search(data, by, oracle, choose=choose, **shared)
