"""Release the tables, not the tests: noisy interactions, tests that know their noise, PC on them.

A contingency table is a sum of interactions, one for each subset of its variables, and an
interaction is a sum over records of products of contrasts. Releasing each interaction once gives
every table among the released subsets, with margins that agree, at half the noise or less.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, product
from typing import NamedTuple

import numpy as np

from dpcgd.datasets import Dataset
from dpcgd.mechanisms import Account, Noise, gaussian
from dpcgd.privacy import BudgetSpent
from dpcgd.search import Knowledge, Release, search
from dpcgd.sieve import open_run
from dpcgd.tables import Tables

__all__ = [
    "Association",
    "ExactMarginals",
    "Marginals",
    "TableOracle",
    "contrasts",
    "interaction_sensitivity",
    "pairs_sensitivity",
    "table_pc",
]

Subset = tuple[int, ...]

PAIRS = 0.6
"""Share of the budget that all pairs together get; the rest is for triples."""

TRIPLES = 8
"""Triples that the rest would pay for, for each variable."""

DETERMINED = 0.03
"""Where the conditioning variables leave less than this share of a variance open, a test has next
to nothing to go by, and does not separate."""

EXPLAINED = 0.03
"""Effects above this are taken for dependence without a look at triples."""

MOST_CELLS = 600
"""Of a pair's table: beyond, its test takes too long."""

MOST_NOISE = 0.1
"""Deviation of a moment's noise, as a share of the records, up to which tests hold their level."""


@cache
def contrasts(levels: int) -> np.ndarray:
    """Orthonormal vectors over the levels that sum to zero, one column each.

    Returns
    -------
    array of shape (levels, levels - 1)

    Examples
    --------
    >>> contrasts(3).round(3)
    array([[ 0.707,  0.408],
           [-0.707,  0.408],
           [ 0.   , -0.816]])
    """
    columns = np.zeros((levels, levels - 1))
    for j in range(1, levels):
        columns[:j, j - 1], columns[j, j - 1] = 1, -j
        columns[:, j - 1] /= math.sqrt(j * (j + 1))
    columns.flags.writeable = False
    return columns


def interaction_sensitivity(levels: Sequence[int]) -> float:
    """Replace-one L2 sensitivity of one interaction of variables with these levels.

    Notes
    -----
    A record adds a product of contrast vectors of norm r_v = 1 - 1/L_v squared; two records whose
    levels differ at v have inner product r_v - 1 there, else r_v. The squared distance is
    2 (prod r - prod t), largest over the choices of t. Chapter 11.

    Examples
    --------
    >>> interaction_sensitivity((2, 2)), round(interaction_sensitivity((3, 3, 3)), 3)
    (1.0, 0.943)
    """
    norms = [1 - 1 / of for of in levels]
    same = math.prod(norms)
    least = min(math.prod(t) for t in product(*((r, r - 1) for r in norms)))
    return math.sqrt(2 * (same - least))


def pairs_sensitivity(levels: Sequence[int]) -> float:
    """Replace-one L2 sensitivity of the interactions of all pairs and all single variables.

    Notes
    -----
    When k variables change, those with the fewest levels move most:
    max over k of 2 (R + 1) k - k^2 - 2 (sum of the k smallest r) + k, with r = 1 - 1/L and R their
    sum. Chapter 11. Below sqrt(2) times the root of the number of tables.

    Examples
    --------
    >>> pairs_sensitivity([2] * 8)
    5.0
    """
    norms = np.sort(1 - 1 / np.asarray(levels, float))
    changed = np.arange(1, len(norms) + 1)
    moved = 2 * (norms.sum() + 1) * changed - changed**2 - 2 * np.cumsum(norms) + changed
    return math.sqrt(moved.max())


class Moment(NamedTuple):
    """A released interaction as a mean over records, and the deviation of its noise."""

    values: np.ndarray
    deviation: float


class Marginals:
    """What a run has released about small sets of variables, and what it knows from that.

    Parameters
    ----------
    tables : Tables
    account, noise
        What pays and where the noise comes from.

    Attributes
    ----------
    released : dict
        From each subset of variables (in increasing order) to its :class:`Moment`.

    Privacy
    -------
    Every release is one Gaussian mechanism, paid before the tables are counted; all else is
    post-processing. Chapter 11.
    """

    def __init__(self, tables: Tables, account: Account, noise: Noise):
        self._tables, self._account, self._noise = tables, account, noise
        self.n, self.levels = tables.n, tables.levels
        self.released: dict[Subset, Moment] = {(): Moment(np.ones(()), 0.0)}
        self._known: dict[Subset, np.ndarray] = {}

    def measure_pairs(self, rho: float):
        """Release every single variable's and every pair's interaction, for rho in all."""
        subsets = [
            *combinations(range(len(self.levels)), 1),
            *combinations(range(len(self.levels)), 2),
        ]
        self._release(subsets, pairs_sensitivity(self.levels), rho)

    def measure(self, subset: Subset, rho: float):
        """Release one interaction for rho."""
        sensitivity = interaction_sensitivity([self.levels[v] for v in subset])
        self._release([tuple(sorted(subset))], sensitivity, rho)

    def _release(self, subsets, sensitivity, rho):
        multiplier = 1 / math.sqrt(2 * rho)
        noisy = gaussian(
            lambda: np.concatenate([self._interaction(s).ravel() for s in subsets]),
            sensitivity=sensitivity,
            noise_multiplier=multiplier,
            account=self._account,
            noise=self._noise,
        )
        self._keep(subsets, noisy, multiplier * sensitivity)

    def _keep(self, subsets, values, deviation):
        sizes = [math.prod(self._shape(s)) for s in subsets]
        for subset, part in zip(subsets, np.split(values, np.cumsum(sizes)[:-1]), strict=True):
            moment = Moment(part.reshape(self._shape(subset)) / self.n, deviation / self.n)
            self.released[subset] = moment

    def _shape(self, subset):
        return tuple(self.levels[v] - 1 for v in subset)

    def _interaction(self, subset) -> np.ndarray:
        """Exactly: the sum over records of the products of their contrasts."""
        table = self._tables.counts(subset).astype(float)
        return _along_axes(table, [contrasts(self.levels[v]).T for v in subset])

    def moment(self, *variables: int) -> Moment:
        """The released interaction of these variables, axes in this order.

        Raises
        ------
        KeyError
            If it has not been released.
        """
        subset = tuple(sorted(variables))
        values, deviation = self.released[subset]
        return Moment(np.transpose(values, [subset.index(v) for v in variables]), deviation)

    def table(self, *variables: int) -> np.ndarray:
        """Probabilities of the levels of these variables, axes in this order; none is zero.

        Raises
        ------
        KeyError
            If one of their interactions has not been released.
        """
        if variables not in self._known:
            raw = sum(self._part(subset, variables) for subset in _subsets(variables))
            least = max(1 / self.n, *(self.released[(v,)].deviation for v in variables), 0.0)
            raw = np.maximum(raw, least / raw.size)
            self._known[variables] = raw / raw.sum()
        return self._known[variables]

    def _part(self, subset, variables) -> np.ndarray:
        """What one interaction adds to each cell."""
        values = self.moment(*subset).values
        values = _along_axes(values, [contrasts(self.levels[v]) for v in subset])
        shape = [self.levels[v] if v in subset else 1 for v in variables]
        left = math.prod(self.levels[v] for v in variables if v not in subset)
        return values.reshape(shape) / left


class ExactMarginals(Marginals):
    """The same without noise, at no cost. Not private."""

    def __init__(self, tables: Tables):
        super().__init__(tables, None, None)

    def _release(self, subsets, sensitivity, rho):
        exact = np.concatenate([self._interaction(s).ravel() for s in subsets])
        self._keep(subsets, exact, 0.0)


def _subsets(variables) -> Iterator[Subset]:
    return chain.from_iterable(combinations(variables, k) for k in range(len(variables) + 1))


def _along_axes(array, matrices) -> np.ndarray:
    """Multiply each axis by its matrix."""
    for axis, matrix in enumerate(matrices):
        array = np.moveaxis(np.tensordot(matrix, array, (1, axis)), 0, axis)
    return array


@dataclass(frozen=True)
class Association:
    """How far two variables are from independence given others, beside what noise alone would do.

    Attributes
    ----------
    statistic : float
        Squared distance from independence in units of sampling and privacy noise together.
    freedom : int
        Of the chi-squared distribution that the statistic has under independence.
    effect : float
        Squared partial correlation, summed over contrasts.
    undetermined : float
        Share of the variance of x or of y, whichever is less, that the others leave open.
    """

    statistic: float
    freedom: int
    effect: float
    undetermined: float

    @property
    def p_value(self) -> float:
        """Chance of so large a statistic under independence."""
        from scipy.special import chdtrc  # heavy, and only needed here

        return float(chdtrc(self.freedom, self.statistic)) if self.freedom else 1.0


def association(
    marginals: Marginals, x: int, y: int, given: Subset = (), *, interacting: bool = False
) -> Association:
    """Compare x and y given others, from what has been released.

    Parameters
    ----------
    marginals : Marginals
    x, y : int
    given : tuple of int
        At most two variables.
    interacting : bool
        Let the two conditioning variables interact, which takes the triples of each of x and y with
        them. Otherwise their effects add up, and pairs are enough; with one variable or none there
        is no difference.

    Returns
    -------
    Association

    Raises
    ------
    KeyError
        If an interaction it takes has not been released.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    With f the contrasts of the conditioning variables, the average conditional covariance
    Q = C_xy - C_xf C_ff^-1 C_fy of the contrasts is 0 under independence (with one conditioning
    variable, or interacting ones, exactly). Its variance is E[Cov(x|s) x Cov(y|s)] / n from
    sampling, and from the noise of each moment what its coefficient makes of it. Chapter 11.
    """
    design = _Design(marginals, given, interacting)
    to_x, to_y = design.regress(x), design.regress(y)
    pair = marginals.moment(x, y)
    covariance = pair.values - np.outer(marginals.moment(x).values, marginals.moment(y).values)
    left = (
        covariance
        - to_x.cross @ to_y.slope.T
        - to_x.slope @ (to_y.cross - to_y.slope @ design.covariance).T
    )
    spread = design.spread(to_x, to_y) / marginals.n + _noise(to_x, to_y, pair.deviation)
    q = left.ravel()
    weight = np.kron(to_x.residual, to_y.residual)
    return Association(
        statistic=_quadratic(spread, q, 1e-14),
        freedom=len(q),
        effect=_quadratic(weight, q, 1e-6),
        undetermined=min(to_x.undetermined, to_y.undetermined),
    )


class _Slope(NamedTuple):
    """A variable's contrasts regressed on the features."""

    variable: int
    cross: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray
    undetermined: float
    noise: np.ndarray


class _Design:
    """The features of the conditioning variables: their contrasts, and products if interacting."""

    def __init__(self, marginals, given, interacting):
        self.marginals, self.given = marginals, given
        self.subsets = [(v,) for v in given]
        if interacting and len(given) == 2:
            self.subsets.append(given)
        self.exact = len(given) < 2 or len(self.subsets) == 3
        moments = [marginals.moment(*subset) for subset in self.subsets]
        self.mean = np.concatenate([[], *(m.values.ravel() for m in moments)])
        weight = marginals.table(*given).ravel() if given else np.ones(1)
        features = self._features(weight)
        self.covariance = (features * weight[:, None]).T @ features

    def _features(self, weight) -> np.ndarray:
        """Of each cell of the conditioning variables, less their mean."""
        columns = np.ones((1, 0))
        if self.given:
            levels = [self.marginals.levels[v] for v in self.given]
            cells = np.indices(levels).reshape(len(levels), -1)
            main = [contrasts(of)[at] for of, at in zip(levels, cells, strict=True)]
            columns = np.hstack(main)
            if len(self.subsets) > len(main):
                both = np.einsum("ca,cb->cab", *main).reshape(len(columns), -1)
                columns = np.hstack([columns, both])
        return columns - weight @ columns

    def regress(self, x) -> _Slope:
        moments = [self.marginals.moment(x, *subset) for subset in self.subsets]
        mean = self.marginals.moment(x).values
        variance = _covariance_of(self.marginals.table(x), self.marginals.levels[x])
        cross = np.hstack(
            [np.empty((len(mean), 0)), *(m.values.reshape(len(mean), -1) for m in moments)]
        )
        cross = cross - np.outer(mean, self.mean)
        noise = np.concatenate([[], *(np.full(m.values[0].size, m.deviation**2) for m in moments)])
        slope = cross @ _floored_inverse(self.covariance, math.sqrt(noise.max(initial=0.0)))
        residual = _positive_part(variance - cross @ slope.T)
        share = np.trace(residual) / np.trace(variance) if len(mean) else 1.0
        return _Slope(x, cross, slope, mean - slope @ self.mean, residual, share, noise)

    def spread(self, to_x, to_y) -> np.ndarray:
        """n times the sampling variance of the average conditional covariance."""
        if not self.exact:
            return np.kron(to_x.residual, to_y.residual)
        weight, of_x = self._conditional(to_x.variable)
        _, of_y = self._conditional(to_y.variable)
        size = of_x.shape[1] * of_y.shape[1]
        return np.einsum("s,sab,scd->acbd", weight, of_x, of_y).reshape(size, size)

    def _conditional(self, x):
        """Weights of the cells of the conditioning variables, and in each the covariance of x."""
        table = self.marginals.table(x, *self.given).reshape(self.marginals.levels[x], -1)
        weight = table.sum(axis=0)
        of = self.marginals.levels[x]
        return weight, np.stack([_covariance_of(p, of) for p in (table / weight).T])


def _covariance_of(probabilities, levels) -> np.ndarray:
    """Of the contrasts of a variable with these level probabilities."""
    columns = contrasts(levels)
    mean = probabilities @ columns
    return (columns * probabilities[:, None]).T @ columns - np.outer(mean, mean)


def _floored_inverse(matrix, floor) -> np.ndarray:
    """Inverse of a covariance, its eigenvalues no less than the noise they are known with."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / np.maximum(values, max(floor, 1e-9))) @ vectors.T


def _positive_part(matrix) -> np.ndarray:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def _noise(to_x, to_y, deviation) -> np.ndarray:
    """Privacy variance of the average conditional covariance, to first order."""
    of_x = (to_x.slope * to_x.noise) @ to_x.slope.T
    of_y = (to_y.slope * to_y.noise) @ to_y.slope.T
    one_x, one_y = np.eye(len(of_x)), np.eye(len(of_y))
    mean_x, mean_y = (np.outer(t.intercept, t.intercept) for t in (to_x, to_y))
    pairs = np.kron(one_x, one_y + mean_y) + np.kron(mean_x, one_y)
    return deviation**2 * pairs + np.kron(one_x, of_y) + np.kron(of_x, one_y)


def _quadratic(matrix, vector, ridge) -> float:
    return float(vector @ np.linalg.solve(matrix + ridge * np.eye(len(vector)), vector))


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
        Rho of a triple.
    """

    marginals: Marginals
    alpha: float
    price: float

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Can what was released not tell x and y given these from independent ones?"""
        found = association(self.marginals, x, y, given)
        if len(given) < 2 or found.undetermined < DETERMINED or self._clear(found):
            return self._independent(found)
        if not all(self._has((v, *given)) for v in (x, y)):
            return self._independent(found)
        return self._independent(association(self.marginals, x, y, given, interacting=True))

    def _independent(self, found) -> bool:
        return found.undetermined >= DETERMINED and found.p_value > self.alpha

    def _clear(self, found) -> bool:
        """Dependence that no interaction of the conditioning variables would explain."""
        return found.p_value <= self.alpha and found.effect > EXPLAINED

    def _has(self, triple) -> bool:
        subset = tuple(sorted(triple))
        if subset not in self.marginals.released:
            try:
                self.marginals.measure(subset, self.price)
            except BudgetSpent:
                return False
        return True


@dataclass(frozen=True)
class TableRelease(Release):
    """A release that also holds the tables it was made from.

    Attributes
    ----------
    marginals : Marginals
        Whatever is computed from it is post-processing: other tests, other searches, parameters.
    """

    marginals: Marginals


def table_pc(
    data: Dataset,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    alpha: float = 0.01,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
) -> TableRelease:
    """The PC algorithm on released tables: pairs for orders 0 and 1, triples on demand for order 2.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        The guarantee of the whole run.
    rng : numpy.random.Generator
        Seeded noise, for experiments.
    secure : bool
        Floating-point-safe noise without a seed, for real releases.
    alpha : float
        Level of each test.
    max_order : int
        Largest conditioning set: 0, 1 or 2.
    knowledge : Knowledge, optional
        Forbidden and required arcs.

    Returns
    -------
    TableRelease

    Raises
    ------
    ValueError
        If the budget or the noise source is unusable, if there are too few records for so much
        noise, or if a pair of variables has too many levels; nothing has run then.

    Warns
    -----
    UserWarning
        If delta is not below 1/n.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: Gaussian releases paid
    through one filter, the rest post-processing. Chapter 11.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=0.3, rng=np.random.default_rng(1))
    >>> release.graph.skeleton_f1(data.truth), release.ledger.spent.epsilon <= 0.3
    (1.0, True)
    """
    started = time.perf_counter()
    account, noise = open_run(data, epsilon, delta, rng, secure)
    _check(data, max_order, PAIRS * account.rho)
    marginals = Marginals(Tables(data), account, noise)
    marginals.measure_pairs(PAIRS * account.rho)
    price = (1 - PAIRS) * account.rho / (TRIPLES * data.d)
    found = search(
        TableOracle(marginals, alpha, price),
        data.variables,
        max_order=max_order,
        knowledge=knowledge,
    )
    seconds = None if secure else time.perf_counter() - started
    return TableRelease(
        **vars(found),
        ledger=account.ledger,
        guarantee="proved",
        seconds=seconds,
        marginals=marginals,
    )


def _check(data, max_order, rho):
    """Refuse by public facts alone what the tests are not made for."""
    if max_order not in (0, 1, 2):
        raise ValueError(f"max_order must be 0, 1 or 2, not {max_order}")
    first, second = sorted(data.cardinalities)[-2:]
    if first * second > MOST_CELLS:
        raise ValueError(
            f"two variables have {first} and {second} levels, a table of more than {MOST_CELLS} "
            "cells; join levels first"
        )
    noise = pairs_sensitivity(data.cardinalities) / math.sqrt(2 * rho)
    if noise > MOST_NOISE * data.n:
        raise ValueError(
            f"for {data.n} records noise of deviation {noise:.0f} is too much for a test "
            "to hold its level; take a larger epsilon, fewer variables or more records"
        )
