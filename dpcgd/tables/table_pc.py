"""The PC algorithm on released tables: an oracle of released interactions, and its search.

Tests on released tables cost nothing. The oracle buys triples if two variables separate.
"""

import math
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, Unpack

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.cpdag import CPDAG, consistent_extension
from dpcgd.graphs.knowledge import Knowledge, SearchKeywords
from dpcgd.graphs.pc_search import Ahead, AsksAhead, Found, check_untested, search
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, Subset, paid, pairs_sensitivity
from dpcgd.moments.joined_levels import FIRST_LOOK, MOST_LEVELS, join_levels
from dpcgd.privacy.budget import BudgetSpent, level_of_the_caller
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.filters import Filter, GaussianFilter
from dpcgd.privacy.run import check_settings, open_run, takes_keywords
from dpcgd.reading.association import Association, association, associations, strength
from dpcgd.reading.orientation import arrow_confidence, pointed
from dpcgd.reading.release import MarginalRelease
from dpcgd.reading.repairs import repaired
from dpcgd.tables.private_graph import Measured

__all__ = ["Rules", "TableOracle", "search_again", "search_tables", "shares", "table_pc"]

PAIRS = 0.6
"""The least share of the budget for all pairs together; the rest is for triples."""


TRIPLES = 8
"""Number of triples for each variable that the rest of the budget would pay for."""


LOOKS = (0.4, 0.8)
"""Shares of the remaining budget for two more measurements of the pairs in doubt."""


ALPHA = 0.01
"""Significance level of each test."""


DETERMINED = 0.03
"""A test does not separate if the conditioning variables leave less than this share of a variance
unexplained, because almost nothing is left to test."""


EXPLAINED = 0.03
"""Larger effects count as dependence, and no triples are bought for them."""


LEAST_EFFECT = 1e-4
"""The least squared partial correlation, given others, of an edge. With enough records every
dependence is significant. A very small one may be left only because a test takes no more than two
conditioning variables."""


LEVEL = 0.4
"""An edge gets an arrow that more than this share of the drawn graphs has. It is below one half
because, for F1, a missing arrow costs more than a wrong one."""


LEAST_SHARE = 0.02
"""The least share of a pair's own dependence, given none, that an edge keeps given others. The rest
of a strong dependence can exceed the least effect, and still be almost nothing of it."""


DOUBT = 10
"""A pair whose largest p-value is within this factor of the significance level is in doubt."""


MOST_NOISE = 0.2
"""The largest deviation of a moment's noise, as a share of the records of an average level in an
average stratum, at which tests keep their significance level."""


FEWEST_LEVELS = 4
"""In the rule for noise, variables with fewer levels count as if they had so many. Their tests
would keep the significance level with more noise, but have little power then."""


MOST_UNTESTABLE = 0.5
"""A run warns if more than this share of the pairs is too noisy to be tested given another
variable."""


INTERACTING = -1
"""A mark, the number of no variable, after the variables of a test whose conditioning variables may
interact."""


class Rules(NamedTuple):
    """The settings of a search on tables; :func:`~dpcgd.tables.table_pc.table_pc` explains them."""

    max_order: int = 2
    untested: str = "drop"
    alpha: float = ALPHA
    least_effect: float = LEAST_EFFECT
    least_share: float = LEAST_SHARE


def too_noisy(
    tested: Sequence[int], given: Sequence[int], deviation: float, most_noise: float = MOST_NOISE
) -> bool:
    """Whether public facts refuse a test: too many strata and levels for the noise.

    Parameters
    ----------
    tested, given : sequence of int
        Numbers of levels of the two variables, and of the conditioning variables.
    deviation : float
        Deviation of the noise of a moment, as a share of the records.
    most_noise : float

    Examples
    --------
    >>> too_noisy((2, 3), (), 0.01), too_noisy((2, 3), (8,), 0.01)
    (False, True)
    """
    return max(*tested, FEWEST_LEVELS) * math.prod(given) * deviation > most_noise


@dataclass
class TableOracle(AsksAhead):
    """An oracle that answers from released interactions; it buys triples if variables separate.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released. The oracle may measure more of them.
    alpha : float
        Significance level of each test.
    price : float
        Rho of a triple. At 0 nothing more is measured, except by marginals without noise, which
        need no price.
    determined, most_noise : float
        See ``DETERMINED`` and ``MOST_NOISE`` in the source.
    joined : collection of int
        Variables whose levels were joined; conditioning on joined levels is incomplete.
    least_effect : float
        The least squared partial correlation of a pair; other variables that leave less separate
        the pair.
    least_share : float
        The least share of a pair's dependence given none; variables that leave less separate it.

    Raises
    ------
    ValueError
        If alpha or the price is not a valid number.

    Attributes
    ----------
    largest : dict
        The largest p-value of each pair that was tested; 1 if less than the least effect or the
        least share was left.
    """

    marginals: Marginals
    alpha: float = ALPHA
    price: float = 0.0
    determined: float = DETERMINED
    most_noise: float = MOST_NOISE
    joined: Collection[int] = ()
    least_effect: float = LEAST_EFFECT
    least_share: float = LEAST_SHARE
    largest: dict[Subset, float] = field(default_factory=dict, init=False)
    _conditional: bool = field(default=False, init=False)
    _known: dict[Subset, tuple] = field(default_factory=dict, init=False)

    def __post_init__(self):
        check_settings(None, alpha=self.alpha)
        if not 0 <= self.price < math.inf:
            raise ValueError(f"price must be finite and not negative, not {self.price!r}")
        self._ahead = Ahead(self._associations, lambda row: row[-1] > self.alpha)

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool | None:
        """Whether the releases agree with independence of x and y given these variables.

        None if public facts say that the noise is too large for this test.
        """
        self._conditional |= bool(given)
        if self._too_noisy(x, y, given):
            return None
        known = self._association(x, y, given)
        if known.undetermined < self.determined:
            return False
        pair = min(x, y), max(x, y)
        p_value = 1.0 if given and known.effect < self._least(pair) else known.p_value
        self.largest[pair] = max(p_value, self.largest.get(pair, 0.0))
        return p_value > self.alpha

    def _association(self, x, y, given) -> Association:
        """The association from pairs, and from triples too if it matters and they can be had.

        It matters if two conditioning variables that interact might explain what is left.
        """
        known = Association._make(self._ahead.of((x, y, *given)))
        clear = known.effect > EXPLAINED and known.p_value <= self.alpha
        open_still = len(given) == 2 and known.undetermined >= self.determined and not clear
        if open_still and all(self._has(tuple(sorted((v, *given)))) for v in (x, y)):
            return self._given_interacting(x, y, given)
        return known

    def rests_on_nothing(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether a test sees no dependence, and keeps the pair only for lack of variance."""
        if self._too_noisy(x, y, given):
            return False
        known = self._association(x, y, given)
        return known.undetermined < self.determined and known.p_value > self.alpha

    def _least(self, pair) -> float:
        """The least effect of a pair given others that counts as dependence."""
        own = Association._make(*self._associations([pair]))
        return max(self.least_effect, self.least_share * own.effect)

    def begin(self, sets: dict[Subset, Iterator[Subset]]) -> None:
        """Record the sets that each pair will be tested given, to compute the tests together."""
        self._ahead.begin(sets)

    def _associations(self, tests) -> list[tuple]:
        """The fields of associations, for tests given any numbers of variables."""
        left = [test for test in tests if test not in self._known]
        for size in {len(test) for test in left}:
            alike = [test for test in left if len(test) == size]
            self._known |= zip(alike, associations(self.marginals, alike), strict=True)
        return [self._known[test] for test in tests]

    def _given_interacting(self, x, y, given) -> Association:
        """The association given two variables whose effects need not add up."""
        test = x, y, *given, INTERACTING
        if test not in self._known:
            self._known[test] = association(self.marginals, x, y, given, interacting=True)
        return Association._make(self._known[test])

    def free(self) -> "TableOracle":
        """A copy that knows the same of each pair; it buys nothing, and any set may be tested."""
        other = replace(self, price=0.0)
        other.largest.update(self.largest)
        other._known = self._known
        return other

    def in_doubt(self) -> list[Subset]:
        """Pairs that a more precise measurement might join or separate."""
        low, high = self.alpha / DOUBT, self.alpha * DOUBT
        return sorted(pair for pair, p in self.largest.items() if low < p < high)

    def measure_again(self, pairs: Sequence[Subset], rho: float) -> None:
        """Measure some pairs once more, and forget the tests that depend on them.

        Raises
        ------
        BudgetSpent
            Before the data is touched, if the account cannot pay.
        """
        assert isinstance(self.marginals, MeasuredMarginals)
        self.marginals.measure_again(pairs, rho)
        self.begin({})
        measured = set(pairs)
        kept = (t for t in self._known if measured.isdisjoint(combinations(sorted(t), 2)))
        self._known = {test: self._known[test] for test in kept}

    def unconfirmed(self, joined: np.ndarray) -> np.ndarray:
        """Joined pairs that a common neighbour may explain, although no test can condition on it.

        Either public facts refuse the test for its noise, or levels of the neighbour were joined:
        given such a variable its neighbours stay dependent. A pair is confirmed nevertheless if it
        is more dependent than one of the two is with that neighbour, because a path through a
        variable is no stronger than its links.
        """
        open_pairs = np.zeros_like(joined)
        if self._conditional:
            for x, y in np.argwhere(np.triu(joined)).tolist():
                open_pairs[x, y] = not self.unexplained(x, y, joined)
        return open_pairs | open_pairs.T

    def unexplained(self, x: int, y: int, joined: np.ndarray) -> bool:
        """Whether no common neighbour may explain this pair."""
        return not any(
            self.strength(x, y) < min(self.strength(x, z), self.strength(y, z))
            for z in np.flatnonzero(joined[x] & joined[y]).tolist()
            if z in self.joined or self._too_noisy(x, y, (z,))
        )

    def strength(self, x: int, y: int) -> float:
        """Dependence of two variables, given none."""
        return strength(self.marginals, min(x, y), max(x, y))

    def _too_noisy(self, x, y, given) -> bool:
        levels, deviation = self.marginals.levels, self.marginals.moment(0).deviation
        strata = [levels[v] for v in given]
        return too_noisy((levels[x], levels[y]), strata, deviation, self.most_noise)

    def _has(self, triple) -> bool:
        if triple not in self.marginals.released and isinstance(self.marginals, MeasuredMarginals):
            with suppress(BudgetSpent):
                self.marginals.measure(triple, self.price)
        return triple in self.marginals.released


def shares(d: int) -> tuple[float, float]:
    """Shares of rho for all pairs of d variables, and for each triple.

    If there are fewer triples than the rest would pay for, the pairs get what is left.

    Examples
    --------
    >>> [round(share, 4) for share in shares(5)]
    [0.9, 0.01]
    >>> [round(share, 4) for share in shares(20)]
    [0.6, 0.0025]
    """
    triple = (1 - PAIRS) / (TRIPLES * d)
    return 1 - triple * min(TRIPLES * d, math.comb(d, 3)), triple


def search_again(
    oracle: TableOracle,
    account: Filter,
    variables: Sequence[str],
    *,
    looks: Sequence[float] = LOOKS,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
    untested: str = "drop",
) -> Found:
    """Search, measure the pairs in doubt once more, and search again.

    Parameters
    ----------
    oracle : TableOracle
        An oracle with marginals that a run measures.
    account : Filter
        The account of that run.
    variables : sequence of str
    looks : sequence of float
        For each further measurement, its share of the budget that is left by then.
    max_order, knowledge, untested
        As for :func:`table_pc`.

    Returns
    -------
    Found
        The result of the last search.

    Privacy
    -------
    Which pairs are in doubt is a function of what has been released. Chapter 14,
    :prf:ref:`thm-table-pc`.
    """
    searched = partial(
        search, oracle, variables, max_order=max_order, knowledge=knowledge, untested=untested
    )
    result = searched()
    for share in looks:
        if not (pairs := oracle.in_doubt()):
            break  # the same tables would give the same answers
        with suppress(BudgetSpent):  # almost nothing is left
            oracle.measure_again(pairs, account.share(share))
        oracle.largest.clear()
        result = searched()
    return result


def search_tables(
    oracle: TableOracle,
    variables: Sequence[str],
    *,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
    untested: str = "keep",
) -> Found:
    """Search once on released tables, and repair the result.

    Parameters
    ----------
    oracle : TableOracle
    variables : sequence of str
    max_order, knowledge, untested
        As for :func:`table_pc`.

    Returns
    -------
    Found

    Privacy
    -------
    Post-processing, if the oracle buys nothing. Chapter 14, :prf:ref:`thm-table-pc`.
    """
    result = search(oracle, variables, max_order=max_order, knowledge=knowledge, untested=untested)
    return repaired(result, oracle.free(), max_order=max_order, knowledge=knowledge)


@takes_keywords
def table_pc(
    data: Counts,
    *,
    alpha: float = ALPHA,
    max_order: int = 2,
    untested: str = "drop",
    least_effect: float = LEAST_EFFECT,
    least_share: float = LEAST_SHARE,
    **shared: Unpack[SearchKeywords],
) -> MarginalRelease:
    """The PC algorithm on released tables: pairs for orders 0 and 1, triples on demand for order 2.

    If a variable has so many levels that tests would drown in noise, counts of single variables
    decide which of them are joined: neighbouring ones of an ordered variable, the rarest of
    another. The budget that the search leaves measures the pairs in doubt again, up to twice. The
    search decides which pairs are joined, and its contradictions are repaired
    (:func:`~dpcgd.reading.repairs.repaired`). The directions of edges follow from all released
    pairs together, by :func:`~dpcgd.reading.orientation.arrow_confidence`.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    alpha : float
        Significance level of each test.
    max_order : int
        Largest conditioning set: 0, 1 or 2.
    untested : str
        Whether pairs that no test has confirmed are to "drop" their edge or to "keep" it. A common
        neighbour may explain such a pair, but no test can condition on it: it is too noisy by
        public facts, or its levels were joined. Edges that knowledge requires stay.
    least_effect : float
        A pair has no edge if other variables leave less than this of its dependence, as a squared
        partial correlation: 0.0001 is a partial correlation of .01. At 0 every significant
        dependence counts.
    least_share : float
        A pair also has no edge if other variables leave less than this share of its squared
        correlation given none. Both bounds are compared with released numbers only.

    Returns
    -------
    MarginalRelease
        Its ``answers.untested`` holds the pairs that no test has confirmed, in the graph or not.

    Raises
    ------
    ValueError
        If the budget, the noise source, alpha or another setting is unusable, or if there are too
        few records for so much noise; nothing has run then.

    Warns
    -----
    UserWarning
        If too few pairs can be tested given another variable; nothing has run by then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: Gaussian releases paid
    through one filter, the rest post-processing. The last of the budget buys triples that sharpen
    the fit of a Bayesian network (:func:`dpcgd.reading.fit_network.fit_network`). Chapter 14,
    :prf:ref:`thm-table-pc`; its sensitivities are those of chapter 11, :prf:ref:`thm-pairs` and,
    for triples, :prf:ref:`thm-interactions`, of chapter 14, :prf:ref:`thm-look-again`, and of
    chapter 18, :prf:ref:`thm-joined-levels`, where levels are joined.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=0.3, rng=np.random.default_rng(1))
    >>> release.graph.skeleton_f1(data.truth), release.ledger.spent.epsilon <= 0.3
    (1.0, True)
    """
    rules = Rules(max_order, untested, alpha, least_effect, least_share)
    measured = measure_all_pairs(data, rules, **shared)
    account, marginals, price = measured.run.account, measured.marginals, measured.price
    assert isinstance(marginals, MeasuredMarginals)
    names, knowledge = tuple(measured.levels), shared.get("knowledge")
    joined = [names.index(name) for name in measured.joined_levels]
    oracle = TableOracle(
        marginals, alpha, price, joined=joined, least_effect=least_effect, least_share=least_share
    )
    settings: dict[str, Any] = {"max_order": max_order, "knowledge": knowledge}
    result = search_again(oracle, account, names, untested=untested, **settings)
    result = repaired(result, oracle.free(), **settings)
    graph = _oriented(result, marginals, knowledge)
    _measure_families(marginals, account, consistent_extension(graph), price)
    return measured._replace(marginals=marginals.without_data()).release(graph, result.answers)


def measure_all_pairs(data: Any, rules: Rules, **shared: Unpack[SearchKeywords]) -> Measured:
    """Measure all pairs, in runs and in plans; what public facts refuse is refused here.

    Parameters
    ----------
    data : Counts
    rules : Rules
    shared
        As for :func:`table_pc`.

    Returns
    -------
    Measured
        Its marginals can measure more.

    Raises
    ------
    ValueError
        As :func:`table_pc`.

    Warns
    -----
    UserWarning
        As :func:`table_pc`.
    """
    by = ("table_pc", "thm-table-pc")
    run = open_run(data, account=GaussianFilter, by=by, **rules._asdict(), **shared)
    if rules.max_order not in (0, 1, 2):
        raise ValueError(f"max_order must be 0, 1 or 2, not {rules.max_order}")
    check_untested(rules.untested)
    most = _planned_levels(data, run.account.rho)
    _check_noise(data, run.account.rho, most, rules.max_order)
    measure = paid(run.account, run.noise)
    data, joined_levels = join_levels(data, measure, FIRST_LOOK * run.account.rho, most=most)
    for_pairs, price = (share * run.account.remaining for share in shares(data.d))
    marginals = MeasuredMarginals(Tables(data), measure)
    marginals.measure_pairs(for_pairs)
    return Measured(run, marginals, data.levels, joined_levels, price=price)


def _oriented(result, marginals, knowledge) -> CPDAG:
    """The graph with arrows from all released pairs, instead of those from separating sets."""
    names, arcs = result.graph.variables, result.graph.arcs
    forbidden, _ = (knowledge or Knowledge()).arrays(names)
    for x, y in (map(names.index, pair) for pair in result.untested):
        if not (arcs[x, y] or arcs[y, x]):  # separated without a test
            forbidden[x, y] = forbidden[y, x] = True
    joined = arcs | arcs.T
    sure = arrow_confidence(marginals, joined, forbidden)
    return CPDAG(names, pointed(sure, joined, forbidden, LEVEL))


def _measure_families(marginals, account, dag, price):
    """Spend the remaining budget on triples of a variable and its only two parents.

    Their number is what the usual price allows; then all of the budget is spent on them.
    """
    numbers = {name: i for i, name in enumerate(dag)}
    families = [(name, *dag.predecessors(name)) for name in dag if dag.in_degree(name) == 2]
    triples = {tuple(sorted(numbers[name] for name in family)) for family in families}
    affordable = int(min(max(account.remaining / price, 0.0), len(triples)))
    wanted = sorted(triples - set(marginals.released))[:affordable]
    for left, triple in zip(range(len(wanted), 0, -1), wanted, strict=True):
        marginals.measure(triple, account.share(1 / left))


def _planned_levels(data, rho) -> int:
    """The largest number of levels that a variable may keep, by public facts.

    It is ``MOST_LEVELS``, unless a variable has more levels than this. Then it may be smaller, so
    that pairs of variables with so many levels can be tested.
    """
    most = MOST_LEVELS
    if max(data.cardinalities) > MOST_LEVELS:
        while most > FEWEST_LEVELS and most * _noise(data, rho, most) > MOST_NOISE:
            most -= 1
    return most


def _noise(data, rho, most) -> float:
    """Deviation of a pair's moment if no variable has more than so many levels."""
    levels = np.minimum(data.cardinalities, most).tolist()
    kept = 1.0 if max(data.cardinalities) <= most else 1 - FIRST_LOOK
    return pairs_sensitivity(levels) * multiplier_of_rho(shares(data.d)[0] * kept * rho) / data.n


def _check_noise(data, rho, most, max_order):
    """Refuse tables on which no test can be made, by public facts; warn if few can be made."""
    levels = np.minimum(data.cardinalities, most)
    noise, largest = _noise(data, rho, most), int(levels.max())
    if noise * max(largest, FEWEST_LEVELS) > MOST_NOISE:
        table = f"{data.n} records and a variable with {largest} levels"
        problem = f"noise of deviation {noise * data.n:.4g} is too much for {table}"
        cure = f"a larger epsilon, fewer variables{' or levels' * (largest > 2)}, or more records"
        raise ValueError(f"{problem}, no test would keep its significance level; take {cure}")
    larger = np.array([*map(max, combinations(np.maximum(levels, FEWEST_LEVELS).tolist(), 2))])
    untestable = np.mean(larger * np.median(levels) * noise > MOST_NOISE)
    if max_order and untestable > MOST_UNTESTABLE:
        problem = f"{untestable:.0%} of the pairs are too noisy to be tested given another variable"
        effect = "they are edges only where no neighbour can explain them"
        cure = "take a larger epsilon, fewer variables, or more records"
        warnings.warn(f"{problem}; {effect}; {cure}", stacklevel=level_of_the_caller())
