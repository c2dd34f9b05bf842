"""Distributions and tables of the records, estimated from their reports."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcgd.datasets.dataset import Dataset
from dpcgd.local.channels import checked_codes
from dpcgd.local.component_wise import ComponentWise, LocalMechanism
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.privacy.budget import LEAST

__all__ = ["CorrectedTables", "Reconstruction", "reconstruct"]

MOST_COUNTS = 1 << 20
"""Largest domain over which a joint distribution is reconstructed."""


class Reconstruction(NamedTuple):
    """A joint distribution that explains reports.

    Attributes
    ----------
    joint : array
        One axis for each variable; adds up to one.
    n : int
        Number of reports.
    log_likelihoods : array
        Of the reports, in nats, before the first update and after each.
    gap : float
        The log-likelihood is at most so many nats below that of the best joint distribution.
    """

    joint: np.ndarray
    n: int
    log_likelihoods: np.ndarray
    gap: float

    def records(self) -> np.ndarray:
        """n records whose shares of the cells are those of the joint distribution, to within one.

        Returns
        -------
        integer array, shape (n, d)
        """
        expected = self.n * self.joint.ravel()
        whole = np.floor(expected).astype(np.int64)
        more = np.argsort(whole - expected, kind="stable")[: self.n - whole.sum()]
        whole[more] += 1
        return np.repeat(np.argwhere(self.joint >= 0), whole, axis=0)


def reconstruct(
    reports: np.ndarray, mechanism: LocalMechanism, *, gap: float = 1.0, most: int = 10_000
) -> Reconstruction:
    """Iterative Bayesian update: the joint distribution of the records, from their reports.

    Parameters
    ----------
    reports : integer array, shape (n, d)
    mechanism : LocalMechanism
        The one that made them.
    gap : float
        Stop when the log-likelihood is proved to be within so many nats of its maximum.
    most : int
        Stop after so many updates in any case.

    Returns
    -------
    Reconstruction

    Raises
    ------
    ValueError
        If there is no report, a report is outside the domain or one that the mechanism never makes,
        or the domain is too large.

    Privacy
    -------
    Post-processing of the reports: it costs nothing.

    Notes
    -----
    Agrawal and Aggarwal (2001); the update is an EM step, so the likelihood never falls. It is
    concave in the joint distribution, and an update's largest factor bounds what is left to gain
    (chapter 10, :prf:ref:`thm-local-ibu`). Component-wise mechanisms are applied one axis at a
    time.

    Examples
    --------
    >>> from dpcgd.local.component_wise import ComponentWise
    >>> from dpcgd.local.randomized_response import RandomizedResponse
    >>> mechanism = ComponentWise.from_epsilon(RandomizedResponse, (2, 2), 3.0)
    >>> rng = np.random.default_rng(0)
    >>> reports = mechanism.sample(np.repeat([[0, 0], [1, 1]], [3000, 1000], axis=0), rng=rng)
    >>> reconstruct(reports, mechanism).joint.round(2)
    array([[0.74, 0.01],
           [0.01, 0.24]])
    """
    shape, codes = mechanism.shape, checked_codes(reports, mechanism.levels)
    if math.prod(shape) > MOST_COUNTS or len(codes) == 0:
        raise ValueError(f"no report, or above {MOST_COUNTS:,} cells; leave variables out")
    cells = np.ravel_multi_index(tuple(codes.T), shape)
    seen = np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(codes)
    occurs = seen > 0
    joint = np.full(shape, 1 / math.prod(shape))
    path: list[float] = []
    for _ in range(most + 1):
        expected = mechanism.forward(joint)
        if not path and (expected[occurs] <= 0).any():
            raise ValueError("a report that the mechanism never makes; give the one that made it")
        expected = np.maximum(expected, LEAST)
        path.append(len(codes) * float(seen[occurs] @ np.log(expected[occurs])))
        factor = mechanism.backward(seen / expected)
        left = len(codes) * (float(factor.max()) - 1)
        if left <= gap or len(path) > most:
            break
        joint = joint * factor
        joint /= joint.sum()  # it is one before rounding
    return Reconstruction(joint, len(codes), np.array(path), left)


class CorrectedTables:
    """Tables of the records, estimated from reports; asked for counts like a data set's ``Tables``.

    Parameters
    ----------
    reports : Dataset
    mechanism : ComponentWise or RandomizedResponse
        The one that made them: component-wise, or randomised response over the whole record.

    Notes
    -----
    A table of reports is multiplied by the inverse of the tested variables' channels. That is
    unbiased but noisier than a table of as many records: tests that take it for one reject too
    often. Negative counts become 0 and the rest is scaled to n.
    """

    def __init__(self, reports: Dataset, mechanism: ComponentWise | RandomizedResponse):
        self.reports, self.mechanism, self.n = reports, mechanism, reports.n

    def shape(self, variables: Sequence[int]) -> tuple[int, ...]:
        """Public levels of these variables."""
        return tuple(self.reports.cardinalities[v] for v in variables)

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Estimated counts of these variables, rounded."""
        seen = self.reports.counts(variables).astype(float)
        corrected = np.maximum(self.mechanism.of(variables).inverse(seen), 0)
        return np.rint(corrected * (self.n / corrected.sum())).astype(np.int64)
