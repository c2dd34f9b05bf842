"""PC on released tables: once the tables are out, its tests cost nothing."""

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Unpack

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.cpdag import CPDAG, consistent_extension
from dpcgd.graphs.knowledge import Knowledge, SearchKeywords
from dpcgd.graphs.pc_search import Found, check_untested, search
from dpcgd.moments.interactions import MeasuredMarginals, paid, pairs_sensitivity
from dpcgd.moments.joined_levels import FIRST_LOOK, MOST_LEVELS, join_levels
from dpcgd.privacy.budget import BudgetSpent, level_of_the_caller
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.filters import Filter, GaussianFilter
from dpcgd.privacy.run import open_run, takes_keywords
from dpcgd.reading.orientation import orient
from dpcgd.reading.release import MarginalRelease
from dpcgd.reading.repairs import repaired
from dpcgd.tables.private_graph import Measured
from dpcgd.tables.table_oracle import (
    ALPHA,
    FEWEST_LEVELS,
    LEAST_EFFECT,
    LEAST_SHARE,
    MOST_NOISE,
    Rules,
    TableOracle,
)

__all__ = [
    "measure_all_pairs",
    "search_again",
    "search_tables",
    "shares",
    "table_pc",
]

PAIRS = 0.6
"""Share of the budget that all pairs together get at least; the rest is for triples."""


TRIPLES = 8
"""Triples that the rest would pay for, for each variable."""


LOOKS = (0.4, 0.8)
"""Shares of what the search has left for one more look at the pairs in doubt, and for another."""


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
    Which pairs are in doubt is a function of what has been released. Chapter 14,
    :prf:ref:`thm-table-pc`.
    """
    searched = partial(
        search, oracle, variables, max_order=max_order, knowledge=knowledge, untested=untested
    )
    found = searched()
    for share in looks:
        pairs, marginals = oracle.in_doubt(), oracle.marginals
        if not (pairs and isinstance(marginals, MeasuredMarginals)):
            break  # the same tables would give the same answers
        with suppress(BudgetSpent):  # next to nothing is left
            marginals.measure_again(pairs, account.share(share))
        oracle.largest.clear()
        found = searched()
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
    Post-processing, if the oracle buys nothing. Chapter 14, :prf:ref:`thm-table-pc`.
    """
    found = search(oracle, variables, max_order=max_order, knowledge=knowledge, untested=untested)
    return repaired(found, oracle.free(), max_order=max_order, knowledge=knowledge)


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
    measured, for_triple = measure_all_pairs(data, rules, **shared)
    account, marginals = measured.run.account, measured.marginals
    assert isinstance(marginals, MeasuredMarginals)
    names = tuple(measured.levels)
    knowledge = shared.get("knowledge")
    joined = [names.index(name) for name in measured.joined_levels]
    oracle = TableOracle(
        marginals,
        alpha,
        for_triple,
        joined=joined,
        least_effect=least_effect,
        least_share=least_share,
    )
    found = search_again(
        oracle, account, names, max_order=max_order, knowledge=knowledge, untested=untested
    )
    found = repaired(found, oracle.free(), max_order=max_order, knowledge=knowledge)
    graph = _oriented(found, marginals, knowledge)
    _measure_families(marginals, account, consistent_extension(graph), for_triple)
    released = measured._replace(marginals=marginals.without_data())
    return released.release(graph, found.answers, triples="thm-interactions")


def measure_all_pairs(
    data: Any, rules: Rules, **shared: Unpack[SearchKeywords]
) -> tuple[Measured, float]:
    """Measure all pairs: what public facts refuse is refused here, in runs and plans.

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
    float
        Rho of each triple.

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
    for_pairs, for_triple = (share * run.account.remaining for share in shares(data.d))
    marginals = MeasuredMarginals(Tables(data), measure)
    marginals.measure_pairs(for_pairs)
    return Measured(run, marginals, data.levels, joined_levels), for_triple


def _oriented(found, marginals, knowledge) -> CPDAG:
    """The graph with the arrows that the released pairs tell, rather than those of first sets."""
    names, arcs = found.graph.variables, found.graph.arcs
    forbidden, _ = (knowledge or Knowledge()).arrays(names)
    for x, y in (map(names.index, pair) for pair in found.untested):
        if not (arcs[x, y] or arcs[y, x]):  # apart without a test
            forbidden[x, y] = forbidden[y, x] = True
    return CPDAG(names, orient(marginals, arcs | arcs.T, forbidden))


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
    kept = 1.0 if max(data.cardinalities) <= most else 1 - FIRST_LOOK
    multiplier = multiplier_of_rho(shares(data.d)[0] * kept * rho)
    return pairs_sensitivity(levels) * multiplier / data.n


def _untestable(levels, noise) -> float:
    """Share of the pairs that are too noisy to be tested given a variable of median levels."""
    levels = np.sort(levels)
    larger = np.maximum(levels, FEWEST_LEVELS)[1:]  # of a pair, sorted by that
    pairs = np.arange(1, len(levels))
    refused = larger * np.median(levels) * noise > MOST_NOISE
    return float(pairs @ refused / pairs.sum())


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
