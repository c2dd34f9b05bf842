"""Tables of known counts, and noise of a chosen width: for experiments on tests."""

from collections.abc import Iterable, Sequence

import numpy as np

from dpcgd.marginals.interactions import Measurement

__all__ = ["Counts", "blurred"]


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
        kept = sorted(variables)
        others = tuple(v for v in range(self.table.ndim) if v not in kept)
        return self.table.sum(axis=others).transpose([kept.index(v) for v in variables])

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Of several tables."""
        return [self.counts(variables) for variables in questions]


def blurred(deviation: float, rng: np.random.Generator) -> Measurement:
    """Answer with noise of this deviation, whatever the price. Not private: nothing is paid."""

    def measure(query, *, sensitivity, rho):
        answer = query()
        return answer + deviation * rng.standard_normal(len(answer)), deviation

    return measure
