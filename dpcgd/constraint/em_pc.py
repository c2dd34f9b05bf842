"""EM-PC: the exponential mechanism decides, variable by variable, how many edges go and which."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Unpack

import numpy as np

from dpcgd.constraint._flips import greedy_removals
from dpcgd.constraint.laplace_pc import released_by
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.graphs.pc_search import Answer, Pair, Set, conditioning_array
from dpcgd.graphs.release import Release
from dpcgd.privacy.account import Account
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import BoundedRangeEvent, PureEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import exponential, permute_and_flip
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.odometer import Odometer
from dpcgd.privacy.run import open_run, takes_keywords
from dpcgd.privacy.settings import check_level
from dpcgd.statistics.categorical_statistics import GTest
from dpcgd.statistics.many_tables import are_allowed, sensitivities_of, values_of
from dpcgd.statistics.rank_statistics import KendallZ
from dpcgd.statistics.statistic import Statistic, all_in_sensitivities, refusal

__all__ = [
    "ExponentialOracle",
    "PublishedFlips",
    "PublishedOracle",
    "count_scores",
    "em_pc",
    "published_em_pc",
    "share_of_the_choices",
]

Choice = Callable[..., int]


EVENTS: dict[Choice, type[BoundedRangeEvent | PureEvent]] = {
    exponential: BoundedRangeEvent,
    permute_and_flip: PureEvent,
}

THEOREMS: dict[Choice, str] = {
    exponential: "thm-exponential",
    permute_and_flip: "thm-permute-and-flip",
}


@dataclass
class ExponentialOracle:
    """Chooses how many pairs of a variable to separate, which, and by which sets.

    Parameters
    ----------
    tables, statistic
    price : callable
        From (turns of variables so far, pairs separated so far) to the epsilon of each choice.
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
    _by: dict[Pair, Set] = field(default_factory=dict)
    _decided: set[int] = field(default_factory=set)
    _turns: int = 0

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note which pairs will be asked about, and given what."""
        self._order, self._joined = order, joined
        self._partners = [np.flatnonzero(row).tolist() for row in to_test]
        self._decided = set()

    def answers(self, sets: Mapping[Pair, Iterable[Set]]) -> Iterator[tuple[Pair, Answer]]:
        """Whether one of its sets was chosen for each pair, all pairs of x at the first of them."""
        of, about = None, {}
        for x, y in sets:
            if x != of:
                of, about = x, self._sets_of(x)
            those, allowed = about[y]
            if len(allowed):
                self._decide_once(x, about)
            by, asked = self._by.get((x, y)), len(those)
            if by is not None:
                asked = int((those == by).all(axis=1).argmax()) + 1
            yield (x, y), Answer(by, asked, bool(len(allowed) and allowed[0] < asked))

    def separates(self, x: int, y: int, given: Set) -> bool | None:
        """Whether this set was chosen for the pair; None if public facts rule it out."""
        if refusal(self.tables.n, self.tables.shape((x, y, *given))):
            return None
        if x not in self._decided:
            self._decide_once(x, self._sets_of(x))
        return self._by.get((x, y)) == given

    def _sets_of(self, x) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """For each partner the sets that may separate it, and which rows public facts allow."""
        sets = {y: conditioning_array(x, y, self._joined, self._order) for y in self._partners[x]}
        allowed = _split(are_allowed(self.tables, _tests(x, sets)), sets)
        return {y: (sets[y], np.flatnonzero(of)) for y, of in allowed.items()}

    def _decide_once(self, x, about):
        if x not in self._decided:
            self._decided.add(x)
            self._decide(x, {y: s[allowed] for y, (s, allowed) in about.items() if len(allowed)})

    def _decide(self, x, sets):
        """One choice of how many, then for each of them a choice of the pair and of its set."""
        epsilon = self.price(self._turns, len(self._by))
        self._turns += 1
        scores = functools.cache(lambda: self._scores(x, sets, epsilon))
        best = functools.cache(lambda: {y: of.max() for y, of in scores().items()})
        left = list(sets)
        count = self._choose(lambda: count_scores([best()[y] for y in left]), epsilon)
        for _ in range(count):
            y = left.pop(self._choose(lambda: [best()[y] for y in left], epsilon))
            chosen = self._which_set(sets[y], lambda y=y: scores()[y], epsilon)
            self._by[x, y] = tuple(chosen.tolist())

    def _which_set(self, sets, scores, epsilon) -> np.ndarray:
        """An only set is no choice and costs nothing."""
        return sets[self._choose(scores, epsilon)] if len(sets) > 1 else sets[0]

    def _choose(self, scores, epsilon) -> int:
        settings = {"sensitivity": 1.0, "account": self.account, "noise": self.noise}
        return self.choose(scores, epsilon=epsilon, **settings)

    def _scores(self, x, sets, epsilon) -> dict[int, np.ndarray]:
        """How far each set's statistic is below the threshold, in units of its sensitivity."""
        tests = _tests(x, sets)
        distances = self.statistic.critical - values_of(self.statistic, self.tables, tests)
        sensitivities = sensitivities_of(self.statistic, self.tables, tests)
        scores = all_in_sensitivities(distances, sensitivities) + self.margin * 2 / epsilon
        return _split(scores, sets)


def _tests(x, sets) -> np.ndarray:
    """A row for each set that may separate x from a partner, one partner after the other."""
    sizes = [len(of) for of in sets.values()]
    order = next(iter(sets.values())).shape[1]
    tests = np.empty((sum(sizes), 2 + order), np.int64)
    tests[:, 0], tests[:, 1] = x, np.repeat([*sets], sizes)
    np.concatenate([*sets.values()], out=tests[:, 2:])
    return tests


def _split(values, sets) -> dict[int, np.ndarray]:
    """What there is of each of these tests, by partner."""
    ends = np.cumsum([len(of) for of in sets.values()])
    return dict(zip(sets, np.split(values, ends[:-1]), strict=True))


def count_scores(scores: Sequence[float]) -> np.ndarray:
    """For each number of scores, none to all: how far they are from having that many above 0.

    Its sensitivity is that of the scores: the k-th largest moves no more than the largest move.
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
    """Price each choice so that the budget lasts for all that may still come.

    Notes
    -----
    That is a count for each variable at each order, G in all, and for each of the L pairs left
    itself and its set: 1 / (G + 2 L) of the remaining rho each. An only set is free, so that a run
    keeps something back. Prices follow from released bits. Chapter 05, :prf:ref:`thm-em-pc`.
    """
    unit = zcdp_rho(EVENTS[choose]("one choice", 1.0))

    def price(asked: int, separated: int) -> float:
        counts = max(1, d * (max_order + 1) - asked)
        choices = counts + 2 * (math.comb(d, 2) - separated)
        return math.sqrt(account.share(1 / choices) / unit)

    return price


@dataclass(frozen=True)
class PublishedFlips:
    """How many records a greedy hand removes until a G-test decides otherwise; dependent is plus.

    Parameters
    ----------
    alpha : float
        Level of the test.

    Privacy
    -------
    None proved: the true signed distance moves by up to 2, by 1 after a correction of half a step,
    and what greed finds by far more. Chapter 05, :prf:ref:`thm-em-greedy`.

    Notes
    -----
    Distance scores: Johnson and Shmatikov (2013); greedy in the code of Xu et al. (2017).
    """

    alpha: float = 0.05
    critical: ClassVar[float] = 0.0
    name: ClassVar[str] = "G flips"
    proved: ClassVar[bool] = False

    def __post_init__(self):
        check_level(self.alpha)

    def value(self, table: np.ndarray) -> float:
        """Removals until independent, or minus those until dependent."""
        table = np.ascontiguousarray(table, np.int64)
        return _flips(table.tobytes(), table.shape, self.alpha)

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """1, as claimed."""
        return 1.0


@functools.lru_cache(50_000)
def _flips(content: bytes, shape: tuple[int, ...], alpha: float) -> float:
    table = np.frombuffer(content, np.int64).reshape(*shape[:2], -1).copy()
    critical = GTest(alpha).threshold(shape)
    return float(greedy_removals(table, _gains(int(table.sum())), critical))


@functools.lru_cache(4)
def _gains(n: int) -> np.ndarray:
    """(t + 1) ln(t + 1) - t ln t for t below n."""
    t = np.arange(1, n + 1, dtype=float)
    return np.diff(t * np.log(t), prepend=0.0)


class PublishedOracle(ExponentialOracle):
    """As published: the set is the best one, which is told without noise."""

    def _which_set(self, sets, scores, epsilon) -> np.ndarray:
        return sets[int(np.argmax(scores()))]


@takes_keywords
def em_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    choose: Choice = exponential,
    margin: float = 1.0,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """EM-PC: the PC algorithm whose edges are deleted by the exponential mechanism.

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
    Xu, Yuan and Wu (2017), as Wang, Pang and Song (2020) compare with it. Without noise it removes
    the edges that PC-stable removes, where no score is 0: :prf:ref:`thm-em-limit`.
    Copies lose edges as in :func:`~dpcgd.constraint.priv_pc.priv_pc`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = em_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    _check_choice(choose)
    statistic = KendallZ() if statistic is None else statistic
    run = open_run(
        data,
        by=("em_pc", "thm-em-pc", THEOREMS[choose]),
        statistic=statistic,
        choose=choose,
        margin=margin,
        max_order=max_order,
        **shared,
    )
    price = share_of_the_choices(run.account, choose, data.d, max_order)
    oracle = ExponentialOracle(
        Tables(data), statistic, price, choose, margin, run.account, run.noise
    )
    return released_by(oracle, run, data.variables, max_order, shared.get("knowledge"))


@takes_keywords
def published_em_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    choose: Choice = exponential,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """EM-PC as published: greedy distances of a G-test, the best set told without noise.

    Parameters
    ----------
    epsilon : float
        Every choice costs half of it.
    delta : float
        Of the odometer's reading afterwards.
    allow_delta : bool
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    statistic : Statistic, optional
        ``PublishedFlips()`` unless given.
    data, rng, choose, max_order, knowledge
        As for :func:`em_pc`.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Privacy
    -------
    None proved: chapter 05.
    """
    _check_choice(choose)
    run = open_run(
        data,
        account=Odometer.for_budget,
        statistic=statistic,
        choose=choose,
        max_order=max_order,
        **shared,
    )
    statistic = statistic or PublishedFlips()
    oracle = PublishedOracle(
        Tables(data),
        statistic,
        lambda *_: shared["epsilon"] / 2,
        choose,
        0.0,
        run.account,
        run.noise,
    )
    return released_by(oracle, run, data.variables, max_order, shared.get("knowledge"))


def _check_choice(choose):
    if choose not in EVENTS:
        raise ValueError("choose must be dpcgd.privacy.mechanisms.exponential or permute_and_flip")
