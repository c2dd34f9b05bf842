"""EM-PC: the exponential mechanism decides, variable by variable, how many edges go and which."""

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpcgd.constraint._flips import greedy_removals
from dpcgd.constraint.laplace_pc import check_margin, release_of
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.dataset import Dataset
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import Release
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import BoundedRangeEvent, PureEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import Account, exponential, permute_and_flip
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import open_run
from dpcgd.statistics.categorical_statistics import GTest
from dpcgd.statistics.rank_statistics import KendallZ
from dpcgd.statistics.statistic import Statistic, check_level, in_sensitivities, refusal

__all__ = [
    "ExponentialOracle",
    "PublishedFlips",
    "PublishedOracle",
    "count_scores",
    "em_pc",
    "share_of_the_choices",
]

Set = tuple[int, ...]


Choice = Callable[..., int]


EVENTS = {exponential: BoundedRangeEvent, permute_and_flip: PureEvent}


@dataclass
class ExponentialOracle:
    """Chooses how many pairs of a variable to separate, which, and by which sets.

    Parameters
    ----------
    tables, statistic
    price : callable
        From (variables asked about so far, pairs separated so far) to the epsilon of each choice.
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
    _by: dict[tuple[int, int], Set] = field(default_factory=dict)
    _asked: int = 0

    def separates(self, x: int, y: int, given: Set) -> bool:
        """Is this the set that was chosen for the pair?"""
        return self._by.get((x, y)) == given

    def prepare(self, x: int, questions: dict[int, Sequence[Set]]):
        """Decide about all pairs of x at one order."""
        n, shape = self.tables.n, self.tables.shape
        allowed = {
            y: [given for given in sets if not refusal(n, shape((x, y, *given)))]
            for y, sets in questions.items()
        }
        allowed = {y: sets for y, sets in allowed.items() if sets}
        if allowed:
            self._decide(x, allowed)

    def _decide(self, x, allowed):
        """One choice of how many, then for each of them a choice of the pair and of its set."""
        epsilon = self.price(self._asked, len(self._by))
        self._asked += 1
        scores = functools.cache(lambda y: self._scores(x, y, allowed[y], epsilon))
        left = list(allowed)
        count = self._choose(lambda: count_scores([scores(y).max() for y in left]), epsilon)
        for _ in range(count):
            y = left.pop(self._choose(lambda: [scores(y).max() for y in left], epsilon))
            self._by[x, y] = self._which_set(allowed[y], functools.partial(scores, y), epsilon)

    def _which_set(self, sets, scores, epsilon) -> Set:
        """An only set is no choice and costs nothing."""
        return sets[self._choose(scores, epsilon)] if len(sets) > 1 else sets[0]

    def _choose(self, scores, epsilon) -> int:
        settings = {"sensitivity": 1.0, "account": self.account, "noise": self.noise}
        return self.choose(scores, epsilon=epsilon, **settings)

    def _scores(self, x, y, sets, epsilon) -> np.ndarray:
        """How far each set's statistic is below the threshold, in units of its sensitivity."""
        found = np.empty(len(sets))
        for i, given in enumerate(sets):
            tested = (x, y, *given)
            sensitivity = self.statistic.sensitivity(self.tables.n, self.tables.shape(tested))
            value = self.statistic.value(self.tables.counts(tested))
            found[i] = in_sensitivities(self.statistic.critical - value, sensitivity)
        return found + self.margin * 2 / epsilon


def count_scores(scores: Sequence[float]) -> np.ndarray:
    """For each number of scores, none to all: how far they are from having that many above 0.

    Its sensitivity is that of the scores: the k-th largest moves no more than the largest move.

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
    keeps something back. Prices follow from released bits.
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
    None proved: the true distance has sensitivity 1, what greed finds need not. Chapter 05.

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

    def _which_set(self, sets, scores, epsilon) -> Set:
        return sets[int(np.argmax(scores()))]


def em_pc(
    data: Dataset,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    statistic: Statistic | None = None,
    choose: Choice = exponential,
    margin: float = 1.0,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
    published: bool = False,
) -> Release:
    """EM-PC: the PC algorithm whose edges are deleted by the exponential mechanism.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        The guarantee of the whole run. With ``published=True``, every choice costs half of epsilon,
        and delta is that of the reading afterwards.
    statistic : Statistic, optional
        ``KendallZ()`` unless given; ``PublishedFlips()`` for the published version.
    choose : callable
        The mechanism of each choice: :func:`dpcgd.privacy.mechanisms.exponential` or
        :func:`dpcgd.privacy.mechanisms.permute_and_flip`.
    published : bool
        Run the published version instead: greedy distances of a G-test, the best set told without
        noise, an odometer.
    rng, secure, margin, max_order, knowledge
        As for :func:`dpcgd.priv_pc`.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        If the budget, the noise source, `choose` or the margin is unusable; nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours. Chapter 05. None with
    ``published=True``.

    Notes
    -----
    Xu, Yuan and Wu (2017), as Wang, Pang and Song (2020) compare with it.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = em_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    started = time.perf_counter()
    if choose not in EVENTS:
        raise ValueError("choose must be dpcgd.privacy.mechanisms.exponential or permute_and_flip")
    check_margin(margin)
    account, noise = open_run(data, epsilon, delta, rng, secure, published)
    if published:
        kind, statistic, margin = PublishedOracle, statistic or PublishedFlips(), 0.0
        price = lambda asked, separated: epsilon / 2  # noqa: E731
    else:
        kind, statistic = ExponentialOracle, statistic or KendallZ()
        price = share_of_the_choices(account, choose, data.d, max_order)
    oracle = kind(Tables(data), statistic, price, choose, margin, account, noise)
    return release_of(oracle, data, max_order, knowledge, started, secure)
