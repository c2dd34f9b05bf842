"""What some systems ask of data beyond counts: sums over its records."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from dpcgd.datasets.counts import Counts

__all__ = ["Records"]


@runtime_checkable
class Records(Counts, Protocol):
    """Data whose records can be gone through: in memory, in files, on a cluster.

    Notes
    -----
    A class of your own needs :meth:`clipped_sums` beside what
    :class:`~dpcgd.datasets.counts.Counts` needs; :func:`~dpcgd.datasets.clipped_sums.clipped_sums`
    works it out from batches of codes, and sums of parts may be added.

    Privacy
    -------
    Where the records lie changes neither what a run gives nor its guarantee: chapter 14,
    :prf:ref:`thm-counts-of-parts`.
    """

    def clipped_sums(
        self, vectors: Sequence[np.ndarray], *, bound: float, n: int | None = None
    ) -> np.ndarray:
        """Sum over records of u u^T, as :func:`~dpcgd.datasets.clipped_sums.clipped_sums` has it.

        Parameters
        ----------
        vectors : sequence of array of shape (levels, width)
            Of each variable, a row for each level.
        bound : float
            Largest norm of u.
        n : int, optional
            Records in all, if these are a part: then sums of parts are exact.

        Returns
        -------
        array of shape (D, D)
        """
        ...
