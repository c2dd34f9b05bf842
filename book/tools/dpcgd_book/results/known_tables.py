"""Tables of known counts, and noise of a chosen width: for experiments on tests."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.random import Generator

from dpcgd.moments.interactions import MeasuredMarginals, Measurement

__all__ = ["Counts", "blurred", "blurred_marginals", "independent_model"]


class Counts:
    """A contingency table, asked for counts like the tables of a data set.

    Parameters
    ----------
    table : integer array
        One axis a variable.

    Examples
    --------
    >>> Counts(np.array([[3, 1], [0, 2]])).counts([1])
    array([3, 3])
    """

    def __init__(self, table: np.ndarray):
        self.table, self.n, self.levels = table, int(table.sum()), table.shape

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Of these variables, axes in this order."""
        return np.einsum(self.table, [*range(self.table.ndim)], [*variables])

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Of several tables."""
        return [self.counts(variables) for variables in questions]


def blurred(deviation: float, rng: Generator) -> Measurement:
    """Answer with noise of this deviation, whatever the price. Not private: nothing is paid."""

    def measure(query, *, sensitivity, rho):
        answer = query()
        return answer + deviation * rng.standard_normal(len(answer)), deviation

    return measure


def blurred_marginals(table: np.ndarray, deviation: float, rng: Generator) -> MeasuredMarginals:
    """Interactions of a table's variables with noise of this deviation. Not private.

    Parameters
    ----------
    table : integer array
        One axis a variable: two that are tested, and up to two that are given.
    deviation : float
        Of the noise, in records.
    rng : numpy.random.Generator

    Returns
    -------
    MeasuredMarginals
        All singles and pairs; with two given variables also their triple with each tested one.

    Examples
    --------
    >>> counts = np.array([[3, 1], [0, 2]])
    >>> marginals = blurred_marginals(counts, 0.0, np.random.default_rng(0))
    >>> (marginals.n * marginals.table(0, 1)).round().astype(int).tolist()
    [[3, 1], [0, 2]]
    """
    # marginals ask a table for counts only
    marginals = MeasuredMarginals(Counts(table), blurred(deviation, rng))  # type: ignore[arg-type]
    marginals.measure_pairs(1.0)
    for triple in [(0, 2, 3), (1, 2, 3)] if table.ndim == 4 else []:
        marginals.measure(triple, 1.0)
    return marginals


def independent_model(
    shape: Sequence[int], even: bool, rng: Generator, spread: float = 1.0
) -> np.ndarray:
    """Random probabilities of a table whose first two variables are independent given the rest.

    Parameters
    ----------
    shape : sequence of int
        Levels of each variable.
    even : bool
        Margins all but uniform, instead of drawn from Dirichlet distributions.
    rng : numpy.random.Generator
    spread : float
        The parameter of these distributions; they are flat unless it is given.

    Returns
    -------
    array of this shape, sums to one

    Examples
    --------
    >>> model = independent_model((2, 3), False, np.random.default_rng(0))
    >>> bool(np.allclose(model, np.outer(model.sum(1), model.sum(0))))
    True
    """
    spread = 1e9 if even else spread
    cells = math.prod(shape[2:])
    weight = rng.dirichlet(np.full(cells, spread))
    x, y = (rng.dirichlet(np.full(k, spread), cells) for k in shape[:2])
    return np.einsum("s,sa,sb->abs", weight, x, y).reshape(shape)
