"""PC on released tables: once the tables are out, its tests cost nothing."""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.ahead import Ahead
from dpcgd.graphs.consistent_extension import consistent_extension
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import Found, check_untested, search
from dpcgd.graphs.release import Release
from dpcgd.moments.interactions import (
    Marginals,
    MeasuredMarginals,
    Subset,
    paid,
    pairs_sensitivity,
)
from dpcgd.moments.joined_levels import FIRST_LOOK, MOST_LEVELS, join_levels
from dpcgd.moments.theorems import theorems_of
from dpcgd.privacy.budget import BudgetSpent, level_of_the_caller
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.filters import Filter, GaussianFilter
from dpcgd.privacy.run import Run, open_run
from dpcgd.privacy.settings import check_level
from dpcgd.reading.association import (
    Association,
    association,
    associations,
    effects,
    strength,
)
from dpcgd.reading.orientation import orient
from dpcgd.reading.repairs import repaired

__all__ = [
    "TableOracle",
    "TableRelease",
    "check_tables",
    "open_table_run",
    "planned_rho",
    "search_again",
    "search_tables",
    "shares",
    "table_pc",
    "too_noisy",
]

PAIRS = 0.6
"""Share of the budget that all pairs together get at least; the rest is for triples."""


TRIPLES = 8
"""Triples that the rest would pay for, for each variable."""


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


LOOKS = (0.4, 0.8)
"""Shares of what the search has left for one more look at the pairs in doubt, and for another."""


MOST_NOISE = 0.2
"""Deviation of a moment's noise, as a share of the records of an average level in an average
stratum, up to which tests hold their level."""


FEWEST_LEVELS = 4
"""Variables with fewer levels are taken for ones with so many by that rule: their tests would hold
their level with more noise, but have little power then."""


MOST_UNTESTABLE = 0.5
"""Share of the pairs that may be too noisy to be tested given another variable; beyond, a run
warns."""


def shares(d: int) -> tuple[float, float]:
    """Shares of rho for all pairs of d variables, and for each triple.

    What would pay for more triples than there are goes to the pairs.

    Examples
    --------
    >>> [round(share, 4) for share in shares(5)]
    [0.9, 0.01]
    >>> [round(share, 4) for share in shares(20)]
    [0.6, 0.0025]
    """
    triple = (1 - PAIRS) / (TRIPLES * d)
    pairs = 1 - triple * min(TRIPLES * d, math.comb(d, 3))
    return pairs, triple


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

    def __post_init__(self):
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
            found = association(self.marginals, x, y, given, interacting=True)
        return found

    def rests_on_nothing(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether a test sees no dependence, and keeps the pair for want of variance alone."""
        if self._too_noisy(x, y, given):
            return False
        found = self._association(x, y, given)
        return found.undetermined < self.determined and found.p_value > self.alpha

    def _least(self, pair) -> float:
        """The effect that others have to leave of a pair."""
        own = self.marginals.worked_out(("effects",), lambda: effects(self.marginals))
        return max(self.least_effect, self.least_share * own[pair])

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, to work it out together."""
        self._ahead.begin_order(order, joined, to_test)

    @property
    def _ahead(self) -> Ahead[tuple]:
        """Associations by what has been released by now."""
        marginals, alpha = self.marginals, self.alpha
        return marginals.worked_out(
            ("ahead",),
            lambda: Ahead(partial(associations, marginals), lambda told: told[-1] > alpha),
        )

    def free(self) -> "TableOracle":
        """The same, with what it knows of each pair; but it buys nothing, and any set may come."""
        other = replace(self, price=0.0)
        other.largest.update(self.largest)
        none = np.zeros((len(self.marginals.levels),) * 2, bool)
        other.begin_order(0, none, none)
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
        between = np.flatnonzero(joined[x] & joined[y]).tolist()
        return not any(self._may_explain(z, x, y) for z in between)

    def _may_explain(self, z, x, y) -> bool:
        if z not in self.joined and not self._too_noisy(x, y, (z,)):
            return False
        return self.strength(x, y) < min(self.strength(x, z), self.strength(y, z))

    def strength(self, x: int, y: int) -> float:
        """How dependent two variables are, given none."""
        pair = min(x, y), max(x, y)
        return self.marginals.worked_out(
            ("strength", pair), lambda: strength(self.marginals, *pair)
        )

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
        if triple in self.marginals.released:
            return True
        if not isinstance(self.marginals, MeasuredMarginals):
            return False
        try:
            self.marginals.measure(triple, self.price)
        except BudgetSpent:
            return False
        return True


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
    """Search, measure the pairs in doubt once more, search again.

    Parameters
    ----------
    oracle : TableOracle
        On marginals that a run measures.
    account : Filter
        Of that run.
    variables : sequence of str
    looks : sequence of float
        For each look, its share of what is left by then.
    max_order, knowledge, untested
        As for :func:`table_pc`.

    Returns
    -------
    Found
        By the last search.

    Privacy
    -------
    Which pairs are in doubt is a function of what has been released. Chapter 16,
    :prf:ref:`thm-table-pc`.
    """
    how: dict[str, Any] = {"max_order": max_order, "knowledge": knowledge, "untested": untested}
    found = search(oracle, variables, **how)
    for share in looks:
        pairs, marginals = oracle.in_doubt(), oracle.marginals
        if not (pairs and isinstance(marginals, MeasuredMarginals)):
            break  # the same tables would give the same answers
        with suppress(BudgetSpent):  # next to nothing is left
            marginals.measure_again(pairs, account.share(share))
        oracle.largest.clear()
        found = search(oracle, variables, **how)
    return found


def search_tables(
    oracle: TableOracle,
    variables: Sequence[str],
    *,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
    untested: str = "keep",
) -> Found:
    """Search what has been released, once, and repair what was found.

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
    Post-processing, if the oracle buys nothing. Chapter 16, :prf:ref:`thm-table-pc`.
    """
    settings: dict[str, Any] = {"max_order": max_order, "knowledge": knowledge}
    found = search(oracle, variables, untested=untested, **settings)
    return repaired(found, oracle.free(), **settings)


@dataclass(frozen=True, repr=False, eq=False)
class TableRelease(Release):
    """A release that also holds the tables it was made from, and how it was made.

    Attributes
    ----------
    marginals : Marginals
        Whatever is computed from it is post-processing: other tests, other searches, parameters.
    levels : mapping of str to tuple of str
        Public, those of the tables: where levels were joined, the new ones.
    joined_levels : dict
        From each variable whose levels were joined to what has become of each of them.
    alpha, max_order, knowledge, least_effect, least_share
        Of the run.
    keeps_untested : bool
        Whether pairs that no test has confirmed kept their edge.
    """

    marginals: Marginals
    levels: Mapping[str, tuple[str, ...]]
    joined_levels: dict[str, dict[str, str]]
    alpha: float
    max_order: int
    knowledge: Knowledge | None
    keeps_untested: bool
    least_effect: float
    least_share: float

    @property
    def search_settings(self) -> dict[str, Any]:
        """How the run searched, for other searches of its tables."""
        return {
            "max_order": self.max_order,
            "knowledge": self.knowledge,
            "untested": "keep" if self.keeps_untested else "drop",
        }

    @property
    def joined_variables(self) -> list[int]:
        """Numbers of the variables whose levels were joined."""
        return [i for i, name in enumerate(self.levels) if name in self.joined_levels]


def check_tables(release: Release) -> None:
    """Refuse a release that holds no tables.

    Raises
    ------
    ValueError
        With the system that makes one that does.
    """
    if not isinstance(release, TableRelease):
        raise ValueError(
            f"this needs a release that holds its tables, not a {type(release).__name__}; make "
            "one with table_pc"
        )


def table_pc(
    data: Counts,
    *,
    epsilon: float,
    delta: float | None = None,
    allow_delta: bool = False,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    alpha: float = ALPHA,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
    untested: str = "drop",
    least_effect: float = LEAST_EFFECT,
    least_share: float = LEAST_SHARE,
    rows_per_person: int = 1,
) -> TableRelease:
    """The PC algorithm on released tables: pairs for orders 0 and 1, triples on demand for order 2.

    Where a variable has so many levels that tests would drown in noise, a first look at single
    variables decides which of them are joined: neighbouring ones of an ordered variable, the rarest
    of another. What the search leaves of the budget measures the pairs in doubt once more, twice
    over. The search decides what is joined, and what contradicts itself in it is repaired
    (:func:`~dpcgd.reading.repairs.repaired`); which way the edges point is read off all released
    pairs together, by :func:`~dpcgd.reading.orientation.orient`.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    alpha : float
        Level of each test.
    max_order : int
        Largest conditioning set: 0, 1 or 2.
    untested : str
        Whether pairs that no test has confirmed are to "drop" their edge or to "keep" it: pairs
        that a neighbour of both may explain which no test can take as given, for that is too noisy
        by public facts, or the neighbour's levels were joined. Edges that knowledge requires stay.
    least_effect : float
        A pair has no edge where other variables leave less than this of its dependence, as a
        squared partial correlation: at 0.0001 that is a partial correlation of .01. At 0 whatever
        is significant counts.
    least_share : float
        Nor has it one where they leave less than this share of the squared correlation that it has
        given none. Both bounds are compared with released numbers only.

    Returns
    -------
    TableRelease
        Its ``untested`` holds the pairs that no test has confirmed, in the graph or not.

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
    the fit of a Bayesian network (:func:`dpcgd.reading.fit_network.fit_network`). Chapter 16,
    :prf:ref:`thm-table-pc`; its sensitivities are those of chapter 11, :prf:ref:`thm-pairs` and,
    for triples, :prf:ref:`thm-interactions`, of chapter 16, :prf:ref:`thm-look-again`, and of
    chapter 13, :prf:ref:`thm-joined-levels`, where levels are joined.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=0.3, rng=np.random.default_rng(1))
    >>> release.graph.skeleton_f1(data.truth), release.ledger.spent.epsilon <= 0.3
    (1.0, True)
    """
    settings: dict[str, Any] = {"max_order": max_order, "knowledge": knowledge}
    how: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rng": rng, "secure": secure}
    how |= {"allow_delta": allow_delta, "rows_per_person": rows_per_person, "untested": untested}
    least: dict[str, Any] = {"least_effect": least_effect, "least_share": least_share}
    run, most = open_table_run(data, alpha=alpha, **how, **least, **settings)
    measure = paid(run.account, run.noise)
    data, joined_levels = join_levels(data, measure, FIRST_LOOK * run.account.rho, most=most)
    for_pairs, for_triple = (share * run.account.remaining for share in shares(data.d))
    marginals = MeasuredMarginals(Tables(data), measure)
    marginals.measure_pairs(for_pairs)
    joined = [data.variables.index(name) for name in joined_levels]
    oracle = TableOracle(marginals, alpha, for_triple, joined=joined, **least)
    found = search_again(oracle, run.account, data.variables, **settings, untested=untested)
    found = repaired(found, oracle.free(), **settings)
    found = replace(found, graph=_oriented(found, marginals, knowledge))
    _measure_families(marginals, run.account, consistent_extension(found.graph), for_triple)
    return TableRelease(
        **vars(found),
        **run.receipt(*theorems_of(marginals, joined_levels, triples="thm-interactions")),
        **settings,
        **least,
        marginals=marginals.without_data(),
        levels={name: tuple(levels) for name, levels in data.levels.items()},
        joined_levels=joined_levels,
        alpha=alpha,
        keeps_untested=untested == "keep",
    )


def _oriented(found, marginals, knowledge) -> CPDAG:
    """The graph with the arrows that the released pairs tell, rather than those of first sets."""
    names, arcs = found.graph.variables, found.graph.arcs
    forbidden, _ = (knowledge or Knowledge()).arrays(names)
    for x, y in (map(names.index, pair) for pair in found.untested):
        if not (arcs[x, y] or arcs[y, x]):  # apart without a test
            forbidden[x, y] = forbidden[y, x] = True
    return CPDAG(names, orient(marginals, arcs | arcs.T, forbidden))


def open_table_run(
    data: Any, *, max_order: int = 2, untested: str = "drop", **how: Any
) -> tuple[Run, int]:
    """Open a run of :func:`table_pc`: what public facts refuse is refused here, in runs and plans.

    Parameters
    ----------
    data : Counts, or what has its public facts
        ``n``, ``d``, ``variables`` and ``cardinalities``: no record is looked at.
    max_order, untested
        As for :func:`table_pc`.
    how
        As for :func:`~dpcgd.privacy.run.open_run`.

    Returns
    -------
    Run
    int
        Levels that a variable may keep.

    Raises
    ------
    ValueError
        As :func:`table_pc`.

    Warns
    -----
    UserWarning
        As :func:`table_pc`.
    """
    how |= {"account": GaussianFilter, "by": ("table_pc", "thm-table-pc")}
    run = open_run(data, max_order=max_order, untested=untested, **how)
    _check(max_order, untested)
    most = _planned_levels(data, run.account.rho)
    _check_noise(data, run.account.rho, most, max_order)
    return run, most


def planned_rho(data: Any, rho: float, most: int) -> tuple[float, float]:
    """Of rho in all, what is for all pairs together and for each triple, by public facts."""
    kept = 1.0 if max(data.cardinalities) <= most else 1 - FIRST_LOOK
    for_pairs, for_triple = shares(data.d)
    return for_pairs * kept * rho, for_triple * kept * rho


def _measure_families(marginals, account, dag, price):
    """Spend what the search has left on the triples of a variable and its only two parents.

    As many as can be had for the usual price, and all of it for them.
    """
    at = {name: i for i, name in enumerate(dag)}
    families = [(name, *dag.predecessors(name)) for name in dag if dag.in_degree(name) == 2]
    triples = {tuple(sorted(at[name] for name in family)) for family in families}
    affordable = int(min(max(account.remaining / price, 0.0), len(triples)))
    wanted = sorted(triples - set(marginals.released))[:affordable]
    for left, triple in zip(range(len(wanted), 0, -1), wanted, strict=True):
        marginals.measure(triple, account.share(1 / left))


def _planned_levels(data, rho) -> int:
    """The most levels that a variable may keep, by public facts.

    All keep theirs if none has more than ``MOST_LEVELS``. Else fewer, if pairs of variables with so
    many could not be tested at all.
    """
    most = MOST_LEVELS
    if max(data.cardinalities) > MOST_LEVELS:
        while most > FEWEST_LEVELS and most * _noise(data, rho, most) > MOST_NOISE:
            most -= 1
    return most


def _noise(data, rho, most) -> float:
    """Deviation of a pair's moment once no variable has more than so many levels."""
    levels = np.minimum(data.cardinalities, most).tolist()
    multiplier = multiplier_of_rho(planned_rho(data, rho, most)[0])
    return pairs_sensitivity(levels) * multiplier / data.n


def _untestable(levels, noise) -> float:
    """Share of the pairs that are too noisy to be tested given a variable of median levels."""
    levels = np.sort(levels)
    larger = np.maximum(levels, FEWEST_LEVELS)[1:]  # of a pair, sorted by that
    pairs = np.arange(1, len(levels))
    refused = larger * np.median(levels) * noise > MOST_NOISE
    return float(pairs @ refused / pairs.sum())


def _check(max_order, untested):
    """Refuse settings that are none."""
    if max_order not in (0, 1, 2):
        raise ValueError(f"max_order must be 0, 1 or 2, not {max_order}")
    check_untested(untested)


def _check_noise(data, rho, most, max_order):
    """Refuse by public facts alone what no test is made for, and warn of what few are."""
    levels = np.minimum(data.cardinalities, most)
    noise, largest = _noise(data, rho, most), int(levels.max())
    if noise * max(largest, FEWEST_LEVELS) > MOST_NOISE:
        raise ValueError(
            f"noise of deviation {noise * data.n:.4g} is too much for {data.n} records and a "
            f"variable with {largest} levels, no test would hold its level; take a larger epsilon, "
            f"fewer variables{' or levels' * (largest > 2)}, or more records"
        )
    untestable = _untestable(levels, noise)
    if max_order and untestable > MOST_UNTESTABLE:
        warnings.warn(
            f"{untestable:.0%} of the pairs are too noisy to be tested given another variable; "
            "they are edges only where no neighbour can explain them; take a larger epsilon, "
            "fewer variables, or more records",
            stacklevel=level_of_the_caller(),
        )
