"""Release the tables, not the tests: noisy interactions, tests that know their noise, PC on them.

A contingency table is a sum of interactions, one for each subset of its variables, and an
interaction is a sum over records of products of contrasts. Releasing each interaction once gives
every table among the released subsets, with margins that agree and with less noise than the tables
one by one.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, product
from typing import NamedTuple

import numpy as np

from dpcgd.dags import consistent_extension
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
    "MeasuredMarginals",
    "Moment",
    "TableOracle",
    "TableRelease",
    "association",
    "contrasts",
    "interaction_sensitivity",
    "pairs_sensitivity",
    "shares",
    "table_pc",
]

Subset = tuple[int, ...]

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

MOST_CELLS = 600
"""Of a pair's table: beyond, its test takes too long."""

MOST_NOISE = 0.05
"""Deviation of a moment's noise, as a share of the records of an average stratum, up to which tests
hold their level."""


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
    if min(levels) == 1:
        return 0.0  # such a variable has no contrasts
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
    sum. Chapter 11. The tables one by one would cost sqrt(d (d - 1)): twice as much for many binary
    variables, as much for variables with many levels.

    Examples
    --------
    >>> pairs_sensitivity([2] * 8)
    5.0
    """
    norms = np.sort([1 - 1 / of for of in levels if of > 1])
    changed = np.arange(1, len(norms) + 1)
    moved = 2 * (norms.sum() + 1) * changed - changed**2 - 2 * np.cumsum(norms) + changed
    return math.sqrt(moved.max(initial=0.0))


class Moment(NamedTuple):
    """A released interaction as a mean over records, and the deviation of its noise."""

    values: np.ndarray
    deviation: float


class Marginals:
    """What has been released about small sets of variables, and what follows from that.

    Parameters
    ----------
    n : int
        Records.
    levels : sequence of int
        Public levels of each variable.
    released : mapping, optional
        From each subset of variables (in increasing order) to its :class:`Moment`.

    Attributes
    ----------
    n, levels, released

    Privacy
    -------
    All post-processing; it holds no data.
    """

    def __init__(
        self, n: int, levels: Sequence[int], released: Mapping[Subset, Moment] | None = None
    ):
        self.n, self.levels = n, tuple(levels)
        self.released = {(): Moment(np.ones(()), 0.0), **(released or {})}
        self._tables_known: dict[Subset, np.ndarray] = {}
        self._designs_known: dict[tuple[Subset, bool], _Design] = {}

    def measure(self, subset: Subset, rho: float):
        """Refuse: only a run that still has data and budget can measure more."""
        raise BudgetSpent("a release holds no data to measure; measure it in the run")

    def moment(self, *variables: int) -> Moment:
        """The released interaction of these variables, axes in this order.

        Raises
        ------
        KeyError
            If it has not been released.
        """
        subset = tuple(sorted(variables))
        values, deviation = self.released[subset]
        if variables == subset:
            return Moment(values, deviation)
        return Moment(np.transpose(values, [subset.index(v) for v in variables]), deviation)

    def variance(self, x: int) -> np.ndarray:
        """Covariance matrix of the contrasts of one variable."""
        return _covariance_of(self.table(x), self.levels[x])

    def table(self, *variables: int) -> np.ndarray:
        """Probabilities of the levels of these variables, axes in this order; none is zero.

        Interactions that have not been released count as zero.

        Raises
        ------
        KeyError
            If one of their single or pair interactions has not been released.
        """
        if variables not in self._tables_known:
            raw = sum(self._part(s, variables) for s in _subsets(variables) if self._has(s))
            least = max([1 / self.n, *(self.released[(v,)].deviation for v in variables)])
            raw = np.maximum(raw, least / raw.size)
            self._tables_known[variables] = raw / raw.sum()
        return self._tables_known[variables]

    def _has(self, subset) -> bool:
        return len(subset) < 3 or tuple(sorted(subset)) in self.released

    def _part(self, subset, variables) -> np.ndarray:
        """What one interaction adds to each cell."""
        values = self.moment(*subset).values
        values = _along_axes(values, [contrasts(self.levels[v]) for v in subset])
        shape = [self.levels[v] if v in subset else 1 for v in variables]
        left = math.prod(self.levels[v] for v in variables if v not in subset)
        return values.reshape(shape) / left

    def redrawn(self, rng: np.random.Generator) -> "Marginals":
        """The same with fresh noise of the same deviations on top, and deviations to match."""
        fresh = {
            subset: Moment(
                moment.values + moment.deviation * rng.standard_normal(moment.values.shape),
                moment.deviation * math.sqrt(2),
            )
            for subset, moment in self.released.items()
        }
        return Marginals(self.n, self.levels, fresh)


class MeasuredMarginals(Marginals):
    """Marginals that a run measures as it goes.

    Parameters
    ----------
    tables : Tables
    account, noise
        What pays and where the noise comes from.

    Privacy
    -------
    Every release is one Gaussian mechanism, paid before the tables are counted. Chapter 11.
    """

    def __init__(self, tables: Tables, account: Account, noise: Noise):
        super().__init__(tables.n, tables.levels)
        self._tables, self._account, self._noise = tables, account, noise

    def measure_pairs(self, rho: float):
        """Release every single variable's and every pair's interaction, for rho in all."""
        variables = range(len(self.levels))
        subsets = [*combinations(variables, 1), *combinations(variables, 2)]
        self._release(subsets, pairs_sensitivity(self.levels), rho)

    def measure(self, subset: Subset, rho: float):
        """Release one interaction for rho.

        Raises
        ------
        BudgetSpent
            Before the data is touched, if the account cannot pay.
        """
        sensitivity = interaction_sensitivity([self.levels[v] for v in subset])
        self._release([tuple(sorted(subset))], sensitivity, rho)

    def _release(self, subsets, sensitivity, rho):
        if sensitivity == 0:  # no contrasts, nothing to tell
            return self._keep(subsets, np.empty(0), 0.0)
        multiplier = 1 / math.sqrt(2 * rho)
        noisy = gaussian(
            lambda: self._exactly(subsets),
            sensitivity=sensitivity,
            noise_multiplier=multiplier,
            account=self._account,
            noise=self._noise,
        )
        return self._keep(subsets, noisy, multiplier * sensitivity)

    def _exactly(self, subsets) -> np.ndarray:
        """Sums over records of the products of their contrasts, one subset after the other."""
        return np.concatenate([self._interaction(subset).ravel() for subset in subsets])

    def _interaction(self, subset) -> np.ndarray:
        table = self._tables.counts(subset).astype(float)
        return _along_axes(table, [contrasts(self.levels[v]).T for v in subset])

    def _keep(self, subsets, values, deviation):
        shapes = [tuple(self.levels[v] - 1 for v in subset) for subset in subsets]
        parts = np.split(values, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        for subset, shape, part in zip(subsets, shapes, parts, strict=True):
            self.released[subset] = Moment(part.reshape(shape) / self.n, deviation / self.n)

    def without_data(self) -> Marginals:
        """What has been released, and nothing else."""
        return Marginals(self.n, self.levels, self.released)


class ExactMarginals(MeasuredMarginals):
    """The same without noise, at no cost. Not private."""

    def __init__(self, tables: Tables):
        super().__init__(tables, None, None)

    def _release(self, subsets, sensitivity, rho):
        self._keep(subsets, self._exactly(subsets), 0.0)


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
    design = _design(marginals, given, interacting)
    to_x, to_y = design.regress(x), design.regress(y)
    pair = marginals.moment(x, y)
    q = design.average(to_x, to_y, pair.values).ravel()
    spread = design.spread(to_x, to_y) / marginals.n + design.noise(to_x, to_y, pair.deviation)
    return Association(
        statistic=_quadratic(spread, q, 1e-14),
        freedom=len(q),
        effect=_quadratic(_kron(to_x.residual, to_y.residual), q, 1e-6),
        undetermined=min(to_x.undetermined, to_y.undetermined),
    )


@dataclass(frozen=True)
class _Slope:
    """A variable's contrasts regressed on the features of the conditioning variables.

    ``fitted`` and ``within`` have a row for each cell of these: what the regression gives there,
    and the covariance of the variable there (``within`` only where the regression is exact).
    """

    mean: np.ndarray
    cross: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray
    undetermined: float
    fitted: np.ndarray
    within: np.ndarray | None
    deviation: float
    deviations: np.ndarray


class _Design:
    """The features of the conditioning variables: their contrasts, and products if interacting."""

    def __init__(self, marginals, given, interacting):
        self.marginals, self.given = marginals, given
        self.subsets = [(v,) for v in given]
        if interacting and len(given) == 2:
            self.subsets.append(given)
        self.exact = len(given) < 2 or len(self.subsets) == 3
        self.weight = marginals.table(*given).ravel() if given else np.ones(1)
        self.features = self._features(self.subsets)
        self.mean = self._flat([marginals.moment(*subset).values for subset in self.subsets])
        centred = self.features - self.weight @ self.features
        self.covariance = (centred * self.weight[:, None]).T @ centred
        self.eigen = np.linalg.eigh(self.covariance)
        self.known = self._what_is_known()
        self._slopes: dict[int, _Slope] = {}

    def _features(self, subsets) -> np.ndarray:
        """Products of contrasts, a row for each cell of the conditioning variables."""
        levels = [self.marginals.levels[v] for v in self.given]
        cells = np.indices(levels).reshape(len(levels), len(self.weight))
        of = {v: contrasts(k)[at] for v, k, at in zip(self.given, levels, cells, strict=True)}
        columns = [np.ones((len(self.weight), 0))]
        for subset in subsets:
            both = of[subset[0]]
            for v in subset[1:]:
                both = np.einsum("ca,cb->cab", both, of[v]).reshape(len(both), -1)
            columns.append(both)
        return np.hstack(columns)

    def _what_is_known(self) -> np.ndarray:
        """What the noise of the conditioning variables' own moments does to each of their cells."""
        levels = self.marginals.levels
        cells, columns = len(self.weight), [np.empty((len(self.weight), 0))]
        for subset in _subsets(self.given):
            if subset:
                share = math.prod(levels[v] for v in subset) / cells
                deviation = self.marginals.moment(*subset).deviation
                columns.append(self._features([subset]) * share * deviation)
        return np.hstack(columns)

    @staticmethod
    def _flat(arrays) -> np.ndarray:
        return np.concatenate([np.empty(0), *(np.ravel(a) for a in arrays)])

    def regress(self, x) -> _Slope:
        if x not in self._slopes:
            self._slopes[x] = self._regress(x)
        return self._slopes[x]

    def _regress(self, x) -> _Slope:
        own = self.marginals.moment(x)
        size = len(own.values)
        moments = [self.marginals.moment(x, *subset) for subset in self.subsets]
        cross = np.hstack([np.empty((size, 0)), *(m.values.reshape(size, -1) for m in moments)])
        cross = cross - np.outer(own.values, self.mean)
        deviations = self._flat(
            [np.full(math.prod(m.values.shape[1:]), m.deviation) for m in moments]
        )
        slope = cross @ self._inverse(deviations.max(initial=1e-9))
        variance = self.marginals.variance(x)
        residual = _positive_part(variance - cross @ slope.T)
        intercept = own.values - slope @ self.mean
        return _Slope(
            mean=own.values,
            cross=cross,
            slope=slope,
            intercept=intercept,
            residual=residual,
            undetermined=np.trace(residual) / np.trace(variance) if size else 1.0,
            fitted=intercept + self.features @ slope.T,
            within=self._within(x) if self.exact else None,
            deviation=own.deviation,
            deviations=deviations,
        )

    def _inverse(self, floor) -> np.ndarray:
        """Of the covariance, its eigenvalues no less than the noise they are known with."""
        values, vectors = self.eigen
        return (vectors / np.maximum(values, floor)) @ vectors.T

    def _within(self, x) -> np.ndarray:
        table = self.marginals.table(x, *self.given).reshape(self.marginals.levels[x], -1)
        table = table / table.sum(axis=0)
        return np.stack([_covariance_of(p, self.marginals.levels[x]) for p in table.T])

    def average(self, to_x, to_y, products) -> np.ndarray:
        """Average conditional covariance; the mean products are those of the two variables."""
        left = products - np.outer(to_x.mean, to_y.mean) - to_x.cross @ to_y.slope.T
        return left - to_x.slope @ (to_y.cross - to_y.slope @ self.covariance).T

    def spread(self, to_x, to_y) -> np.ndarray:
        """n times the sampling variance of the average conditional covariance."""
        if not self.exact:
            return _kron(to_x.residual, to_y.residual)
        products = np.einsum("s,sab,scd->acbd", self.weight, to_x.within, to_y.within)
        size = to_x.within.shape[1] * to_y.within.shape[1]
        return products.reshape(size, size)

    def noise(self, to_x, to_y, deviation) -> np.ndarray:
        """Privacy variance of the average conditional covariance, to first order."""
        through_x = (to_x.slope * to_y.deviations**2) @ to_x.slope.T
        through_x = through_x + to_y.deviation**2 * np.outer(to_x.intercept, to_x.intercept)
        through_y = (to_y.slope * to_x.deviations**2) @ to_y.slope.T
        through_y = through_y + to_x.deviation**2 * np.outer(to_y.intercept, to_y.intercept)
        one_x, one_y = np.eye(len(through_x)), np.eye(len(through_y))
        fitted = np.einsum("sa,sb->sab", to_x.fitted, to_y.fitted).reshape(len(self.weight), -1)
        of_given = self.known.T @ fitted
        return (
            _kron(one_x, deviation**2 * one_y + through_y)
            + _kron(through_x, one_y)
            + of_given.T @ of_given
        )


def _design(marginals, given, interacting) -> _Design:
    """Kept, for tests of the same conditioning variables share it."""
    kept, key = marginals._designs_known, (given, interacting)
    if key not in kept:
        kept[key] = _Design(marginals, given, interacting)
    return kept[key]


def _kron(a, b) -> np.ndarray:
    """Kronecker product of square matrices."""
    size = len(a) * len(b)
    return (a[:, None, :, None] * b[None, :, None, :]).reshape(size, size)


def _covariance_of(probabilities, levels) -> np.ndarray:
    """Of the contrasts of a variable with these level probabilities."""
    columns = contrasts(levels)
    mean = probabilities @ columns
    return (columns * probabilities[:, None]).T @ columns - np.outer(mean, mean)


def _positive_part(matrix) -> np.ndarray:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def _quadratic(matrix, vector, ridge) -> float:
    return float(vector @ np.linalg.solve(matrix + ridge * np.eye(len(vector)), vector))


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
    return pairs * (1 - 1e-9), triple  # rounding never in our favour


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
    determined, explained, most_noise : float
        See :data:`DETERMINED`, :data:`EXPLAINED` and :data:`MOST_NOISE`.
    """

    marginals: Marginals
    alpha: float = ALPHA
    price: float = 0.0
    determined: float = DETERMINED
    explained: float = EXPLAINED
    most_noise: float = MOST_NOISE

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Can what was released not tell x and y given these from independent ones?"""
        if self._too_noisy(given):
            return False
        found = association(self.marginals, x, y, given)
        if len(given) == 2 and self._in_doubt(found) and self._has_triples(x, y, given):
            found = association(self.marginals, x, y, given, interacting=True)
        return found.undetermined >= self.determined and found.p_value > self.alpha

    def _too_noisy(self, given) -> bool:
        """By public facts: too many strata for the noise."""
        strata = math.prod(self.marginals.levels[v] for v in given)
        return strata * self.marginals.moment(0).deviation > self.most_noise

    def _in_doubt(self, found) -> bool:
        """Independent, or so little dependent that interacting conditions might explain it."""
        clear = found.p_value <= self.alpha and found.effect > self.explained
        return found.undetermined >= self.determined and not clear

    def _has_triples(self, x, y, given) -> bool:
        return all(self._has(tuple(sorted((v, *given)))) for v in (x, y))

    def _has(self, triple) -> bool:
        if triple not in self.marginals.released:
            try:
                self.marginals.measure(triple, self.price)
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
    alpha: float = ALPHA,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
) -> TableRelease:
    """The PC algorithm on released tables: pairs for orders 0 and 1, triples on demand for order 2.

    Parameters
    ----------
    data, epsilon, delta, rng, secure, knowledge
        As for :func:`dpcgd.priv_pc`.
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
        If the budget or the noise source is unusable, if there are too few records for so much
        noise, or if a pair of variables has too many levels; nothing has run then.

    Warns
    -----
    UserWarning
        If delta is not below 1/n.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: Gaussian releases paid
    through one filter, the rest post-processing. What the search does not need buys triples that
    sharpen the fit of a Bayesian network (:func:`dpcgd.fitting.fit`). Chapter 11.

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
    for_pairs, for_triple = shares(data.d)
    _check(data, max_order, for_pairs * account.rho)
    marginals = MeasuredMarginals(Tables(data), account, noise)
    marginals.measure_pairs(for_pairs * account.rho)
    oracle = TableOracle(marginals, alpha, for_triple * account.rho)
    found = search(oracle, data.variables, max_order=max_order, knowledge=knowledge)
    _measure_families(marginals, consistent_extension(found.graph), account, oracle.price)
    seconds = None if secure else time.perf_counter() - started
    return TableRelease(
        **vars(found),
        ledger=account.ledger,
        guarantee="proved",
        seconds=seconds,
        marginals=marginals.without_data(),
    )


def _measure_families(marginals, dag, account, price):
    """Spend what the search has left on the triples of a variable and its only two parents.

    As many as can be had for the usual price, and all of it for them.
    """
    at = {name: i for i, name in enumerate(dag)}
    families = [(name, *dag.predecessors(name)) for name in dag if dag.in_degree(name) == 2]
    triples = {tuple(sorted(at[name] for name in family)) for family in families}
    wanted = sorted(triples - set(marginals.released))[: int(account.remaining / price)]
    for left, triple in zip(range(len(wanted), 0, -1), wanted, strict=True):
        marginals.measure(triple, account.remaining * (1 - 1e-9) / left)


def _check(data, max_order, rho):
    """Refuse by public facts alone what the tests are not made for."""
    if max_order not in (0, 1, 2):
        raise ValueError(f"max_order must be 0, 1 or 2, not {max_order}")
    most = sorted(data.cardinalities)[-2:]
    if math.prod(most) > MOST_CELLS:
        raise ValueError(
            f"two variables have {' and '.join(map(str, most))} levels, a table of more than "
            f"{MOST_CELLS} cells; join levels first"
        )
    noise = pairs_sensitivity(data.cardinalities) / math.sqrt(2 * rho)
    if noise > MOST_NOISE * data.n:
        raise ValueError(
            f"for {data.n} records noise of deviation {noise:.0f} is too much for a test "
            "to hold its level; take a larger epsilon, fewer variables or more records"
        )
