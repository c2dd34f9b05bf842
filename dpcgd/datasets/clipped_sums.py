"""Sums over records of products of vectors that stand for their levels, at a limited norm."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["BATCH", "Rows", "clipped_sums"]

Rows = tuple[Sequence[np.ndarray], np.ndarray | None]
"""Codes of some rows, one array a variable, and how many records each stands for, if not one."""


BATCH = 1 << 12
"""Rows whose vectors are at hand at once, in whole words of bits."""


EXACT = 2.0**52
"""Doubles hold whole numbers up to twice this."""


def clipped_sums(
    parts: Iterable[Rows], vectors: Sequence[np.ndarray], *, bound: float, n: int
) -> np.ndarray:
    """Sum over records of u u^T, where u holds the vectors of its levels, no longer than bound.

    Parameters
    ----------
    parts : iterable of Rows
        All records.
    vectors : sequence of array of shape (levels, width)
        Of each variable, a row for each level.
    bound : float
        A record whose vector is longer is scaled down to this norm.
    n : int
        Records in all, or more.

    Returns
    -------
    array of shape (D, D)
        D is the sum of the widths. Entries of u are cut to multiples of a power of two that leaves
        the sums exact, so that they do not depend on the order or the parts.

    Privacy
    -------
    A record adds u u^T with a norm of u of at most `bound`; what that moves is in
    :func:`dpcgd.moments.clipped_moments.clipped_sensitivity`. Chapter 12,
    :prf:ref:`thm-clipped-moments`.

    Examples
    --------
    >>> vectors = [np.array([[0.0], [3.0]]), np.array([[0.0], [4.0]])]
    >>> codes = np.array([1, 1, 0]), np.array([1, 0, 0])
    >>> clipped_sums([(codes, None)], vectors, bound=3.0, n=3).round(3)
    array([[12.24,  4.32],
           [ 4.32,  5.76]])
    """
    size = sum(of.shape[1] for of in vectors)
    total = np.zeros((size, size))
    if not bound > 0:
        return total
    step = _step(bound, n)
    squares = [(of**2).sum(axis=1) for of in vectors]
    for codes, weights in parts:
        norm = np.sqrt(sum(of[code] for of, code in zip(squares, codes, strict=True)))
        shrunk = bound / np.maximum(norm, bound) / step
        rows = np.hstack([of[code] for of, code in zip(vectors, codes, strict=True)])
        rows *= shrunk[:, None]
        np.trunc(rows, out=rows)
        total += (rows if weights is None else rows * weights[:, None]).T @ rows
    return total * step**2


def _step(bound, n) -> float:
    """The least power of two in whose squares n times bound^2 is a whole number that is exact."""
    return 2.0 ** math.ceil(math.log2(bound) + math.log2(n / EXACT) / 2)
