"""PC on released tables: once the tables are out, its tests cost nothing."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.dataset import Dataset
from dpcgd.graphs.consistent_extension import consistent_extension
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import Found, search
from dpcgd.graphs.release import Release
from dpcgd.marginals.association import association
from dpcgd.marginals.interactions import (
    Marginals,
    MeasuredMarginals,
    Subset,
    paid,
    pairs_sensitivity,
)
from dpcgd.privacy.budget import BudgetSpent
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.filters import Filter, GaussianFilter
from dpcgd.privacy.run import Run, open_run
from dpcgd.privacy.settings import check_level

__all__ = [
    "TableOracle",
    "TableRelease",
    "check_tables",
    "open_table_run",
    "search_again",
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


DOUBT = 10
"""A pair whose largest p-value is within this factor of the level is in doubt."""


LOOKS = (0.4, 0.8)
"""Shares of what the search has left for one more look at the pairs in doubt, and for another."""


MOST_PAIR_CELLS = 600
"""Of a pair's table: beyond, its test takes too long."""


MOST_NOISE = 0.2
"""Deviation of a moment's noise, as a share of the records of an average level in an average
stratum, up to which tests hold their level."""


FEWEST_LEVELS = 4
"""Variables with fewer levels are taken for ones with so many by that rule: their tests would hold
their level with more noise, but have little power then."""


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

    Raises
    ------
    ValueError
        If alpha is no level, the price no price or doubt below 1.

    Attributes
    ----------
    largest : dict
        Of each pair that was tested, its largest p-value.
    """

    marginals: Marginals
    alpha: float = ALPHA
    price: float = 0.0
    determined: float = DETERMINED
    explained: float = EXPLAINED
    most_noise: float = MOST_NOISE
    doubt: float = DOUBT
    largest: dict[Subset, float] = field(default_factory=dict, init=False)

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
        if self._too_noisy(x, y, given):
            return None
        found = association(self.marginals, x, y, given)
        if len(given) == 2 and self._needs_triples(found) and self._has_triples(x, y, given):
            found = association(self.marginals, x, y, given, interacting=True)
        if found.undetermined < self.determined:
            return False
        pair = min(x, y), max(x, y)
        self.largest[pair] = max(found.p_value, self.largest.get(pair, 0.0))
        return found.p_value > self.alpha

    def in_doubt(self) -> list[Subset]:
        """Pairs that a more precise measurement may well join or part."""
        low, high = self.alpha / self.doubt, self.alpha * self.doubt
        return sorted(pair for pair, p in self.largest.items() if low < p < high)

    def _too_noisy(self, x, y, given) -> bool:
        levels, deviation = self.marginals.levels, self.marginals.moment(0).deviation
        strata = [levels[v] for v in given]
        return too_noisy((levels[x], levels[y]), strata, deviation, self.most_noise)

    def _needs_triples(self, found) -> bool:
        """Independent, or so little dependent that interacting conditions might explain it."""
        clear = found.p_value <= self.alpha and found.effect > self.explained
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
    max_order, knowledge
        As for :func:`table_pc`.

    Returns
    -------
    Found
        By the last search.

    Privacy
    -------
    Which pairs are in doubt is a function of what has been released. Chapter 11,
    :prf:ref:`thm-table-pc`.
    """
    found = search(oracle, variables, max_order=max_order, knowledge=knowledge)
    for share in looks:
        pairs, marginals = oracle.in_doubt(), oracle.marginals
        if not (pairs and isinstance(marginals, MeasuredMarginals)):
            break  # the same tables would give the same answers
        with suppress(BudgetSpent):  # next to nothing is left
            marginals.measure_again(pairs, account.share(share))
        oracle.largest.clear()
        found = search(oracle, variables, max_order=max_order, knowledge=knowledge)
    return found


@dataclass(frozen=True, repr=False)
class TableRelease(Release):
    """A release that also holds the tables it was made from, and how it was made.

    Attributes
    ----------
    marginals : Marginals
        Whatever is computed from it is post-processing: other tests, other searches, parameters.
    levels : mapping of str to tuple of str
        Public.
    alpha, max_order, knowledge
        Of the run.
    """

    marginals: Marginals
    levels: Mapping[str, tuple[str, ...]]
    alpha: float
    max_order: int
    knowledge: Knowledge | None


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
    data: Dataset,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    alpha: float = ALPHA,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
    rows_per_person: int = 1,
) -> TableRelease:
    """The PC algorithm on released tables: pairs for orders 0 and 1, triples on demand for order 2.

    What the search leaves of the budget measures the pairs in doubt once more, twice over.

    Parameters
    ----------
    data, epsilon, delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    alpha : float
        Level of each test.
    max_order : int
        Largest conditioning set: 0, 1 or 2.

    Returns
    -------
    TableRelease

    Raises
    ------
    ValueError
        If the budget, the noise source or alpha is unusable, if there are too few records for so
        much noise, or if a pair of variables has too many levels; nothing has run then.

    Warns
    -----
    UserWarning
        If delta is not below 1/n.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: Gaussian releases paid
    through one filter, the rest post-processing. The last of the budget buys triples that sharpen
    the fit of a Bayesian network (:func:`dpcgd.marginals.fit_network.fit_network`). Chapter 11,
    :prf:ref:`thm-table-pc`.

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
    ours = {"alpha": alpha, "rows_per_person": rows_per_person, **settings}
    run, for_pairs, for_triple = open_table_run(data, **how, **ours)
    marginals = MeasuredMarginals(Tables(data), paid(run.account, run.noise))
    marginals.measure_pairs(for_pairs)
    oracle = TableOracle(marginals, alpha, for_triple)
    found = search_again(oracle, run.account, data.variables, **settings)
    _measure_families(marginals, run.account, consistent_extension(found.graph), for_triple)
    return TableRelease(
        **vars(found),
        **run.receipt(),
        **settings,
        marginals=marginals.without_data(),
        levels={name: tuple(levels) for name, levels in data.levels.items()},
        alpha=alpha,
    )


def open_table_run(data: Any, *, max_order: int = 2, **how: Any) -> tuple[Run, float, float]:
    """Open a run of :func:`table_pc`: what public facts refuse is refused here, in runs and plans.

    Parameters
    ----------
    data : Dataset, or what has its public facts
        ``n``, ``d``, ``variables`` and ``cardinalities``: no record is looked at.
    max_order
        As for :func:`table_pc`.
    how
        As for :func:`~dpcgd.privacy.run.open_run`.

    Returns
    -------
    Run
    float
        Rho for all pairs together.
    float
        Rho for each triple.

    Raises
    ------
    ValueError
        As :func:`table_pc`.
    """
    by = ("table_pc", "thm-table-pc")
    run = open_run(data, account=GaussianFilter, by=by, max_order=max_order, **how)
    for_pairs, for_triple = (share * run.account.rho for share in shares(data.d))
    _check(data, max_order, for_pairs)
    return run, for_pairs, for_triple


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


def _check(data, max_order, rho):
    """Refuse by public facts alone what the tests are not made for."""
    if max_order not in (0, 1, 2):
        raise ValueError(f"max_order must be 0, 1 or 2, not {max_order}")
    most = sorted(data.cardinalities)[-2:]
    if math.prod(most) > MOST_PAIR_CELLS:
        raise ValueError(
            f"two variables have {' and '.join(map(str, most))} levels, a table of more than "
            f"{MOST_PAIR_CELLS} cells; join levels first"
        )
    noise = pairs_sensitivity(data.cardinalities) * multiplier_of_rho(rho)
    if noise * max(most[-1], FEWEST_LEVELS) > MOST_NOISE * data.n:
        raise ValueError(
            f"noise of deviation {noise:.0f} is too much for {data.n} records and a variable with "
            f"{most[-1]} levels, no test would hold its level; take a larger epsilon, fewer "
            "variables or levels, or more records"
        )
