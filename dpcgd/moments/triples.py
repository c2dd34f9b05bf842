"""Pairs and triples of a few variables, where the noise is small beside what sampling does."""

import math
from collections.abc import Sequence

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.moments.interactions import (
    Marginals,
    MeasuredMarginals,
    Measurement,
    pairs_sensitivity,
)
from dpcgd.privacy.conversions import multiplier_of_rho

__all__ = ["affords_triples", "measure_triples"]

FEWEST, MOST, MOST_LEVELS = 6, 12, 8
"""Of fewer variables a pair hardly has two others to be given; of more the triples are many, and of
more levels each of them is wide."""


NOISE_OVER_SAMPLING = 0.2
"""Deviation of a pair's noise, over that of sampling, up to which triples are worth their share."""


SHARE = 0.25
"""Of rho, for the triples."""


def affords_triples(levels: Sequence[int], n: int, rho: float) -> bool:
    """Whether triples are worth their share, by public facts.

    Parameters
    ----------
    levels : sequence of int
        Of each variable; where levels were joined, what has been released says how many are left.
    n : int
        Records.
    rho : float
        For pairs and triples together.

    Examples
    --------
    >>> affords_triples([3] * 11, 100_000, 0.02), affords_triples([3] * 11, 1000, 0.02)
    (True, False)
    """
    varying = sum(of > 1 for of in levels)
    if varying < FEWEST or len(levels) > MOST or max(levels) > MOST_LEVELS:
        return False
    noise = pairs_sensitivity(levels) * multiplier_of_rho(rho)
    return noise <= NOISE_OVER_SAMPLING * math.sqrt(n)


def measure_triples(data: Counts, measure: Measurement, rho: float) -> Marginals:
    """Release single variables, pairs and triples, for rho in all.

    Parameters
    ----------
    data : Dataset or Counts
    measure : callable
        Who measures: :func:`~dpcgd.moments.interactions.paid` by an account, for instance.
    rho : float

    Returns
    -------
    Marginals

    Raises
    ------
    BudgetSpent
        Before the data is touched, if the account cannot pay.

    Privacy
    -------
    rho-zCDP for replace-one neighbours: a Gaussian release of all pairs and one of all triples.
    Chapter 11, :prf:ref:`thm-pairs`, and chapter 15, :prf:ref:`thm-triples`.
    """
    marginals = MeasuredMarginals(Tables(data), measure)
    marginals.measure_pairs(rho - SHARE * rho)
    marginals.measure_triples(SHARE * rho)
    return marginals.without_data()
