"""The whole table of a few variables, with noise in every cell."""

import math
from typing import Any

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.moments.interactions import Marginals, Moment, Subset, interaction_of, subsets_of
from dpcgd.privacy.filters import Account
from dpcgd.privacy.mechanisms import laplace
from dpcgd.privacy.noise import Noise

__all__ = ["NoisyTable", "measure_table"]

SENSITIVITY = 2.0
"""Of all cells together, in L1 norm: a record that is replaced leaves one and joins another."""


WIDEST = 1e90
"""Scale of the noise up to which moments of the table are numbers that the reader can take."""


class NoisyTable(Marginals):
    """Counts of every combination of levels, with Laplace noise.

    It holds the interactions of all sets of its variables, and their noise's deviations. A cell of
    a margin is a sum of cells, and so is its noise; interactions are orthonormal combinations.

    Parameters
    ----------
    n : int
        Records.
    counts : array
        An axis a variable; with noise, so below zero here and there.
    scale : float
        Of the noise in each cell.
    """

    def __init__(self, n: int, counts: np.ndarray, scale: float):
        self.counts, self.scale = counts, scale
        subsets = [*subsets_of(tuple(range(counts.ndim)))][1:]
        super().__init__(n, counts.shape, {subset: self._moment(n, subset) for subset in subsets})

    def _moment(self, n: int, subset: Subset) -> Moment:
        others = tuple(v for v in range(self.counts.ndim) if v not in subset)
        margin = self.counts.sum(axis=others)
        deviation = math.sqrt(2 * self.counts.size / margin.size) * self.scale
        return Moment(interaction_of(margin) / n, deviation / n)

    def theorems(self, triples: str = "thm-triples") -> tuple[str, ...]:
        """None beside the theorem of the system, which is that of the whole table."""
        return ()

    def to_receipt(self) -> dict[str, Any]:
        """What a receipt holds of it: the counts and the scale of their noise."""
        return {"n": self.n, "counts": self.counts.tolist(), "scale": self.scale}


def measure_table(data: Counts, *, epsilon: float, account: Account, noise: Noise) -> NoisyTable:
    """Release the count of every combination of levels.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon : float
    account, noise
        Who pays and where randomness comes from.

    Returns
    -------
    NoisyTable

    Raises
    ------
    BudgetSpent
        Before the data is touched, if the account cannot pay.
    ValueError
        Before anything is paid, if epsilon buys nothing but noise.

    Privacy
    -------
    (epsilon, 0) for replace-one neighbours: one record moves two cells by one each. Chapter 15,
    :prf:ref:`thm-whole-table`.
    """
    if not SENSITIVITY / epsilon <= WIDEST:
        raise ValueError(f"epsilon = {epsilon:g} buys nothing but noise; take a larger one")
    tables = Tables(data)
    everyone = tuple(range(len(tables.levels)))
    counts = laplace(
        lambda: np.asarray(tables.counts_many([everyone])[0], float),
        sensitivity=SENSITIVITY,
        epsilon=epsilon,
        account=account,
        noise=noise,
    )
    return NoisyTable(tables.n, counts, SENSITIVITY / epsilon)
