"""Noisy interactions of small sets of variables, and the tables that follow from them.

A contingency table is a sum of interactions, one for each subset of its variables. An interaction
is a sum over records of products of contrasts. Releasing each interaction once gives every table
among the released subsets. These tables have margins that agree, and less noise than tables that
are released separately. For few variables the whole table can be released, with noise in every
cell.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial, reduce
from itertools import chain, combinations, product
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import helmert

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.privacy.budget import BudgetSpent
from dpcgd.privacy.filters import Account
from dpcgd.privacy.mechanisms import gaussian_for_rho, laplace
from dpcgd.privacy.noise import Noise

__all__ = ["Marginals", "MeasuredMarginals", "Measurement", "Moment", "NoisyTable", "Subset"]
__all__ += ["contrasts", "covariance_of_contrasts", "exactly", "interaction_of"]
__all__ += ["interaction_sensitivity", "least_variance", "measure_table", "paid"]
__all__ += ["pairs_sensitivity", "subsets_of"]

LARGEST = 1e100
"""The largest moment or deviation, so that its powers are finite numbers."""

LEAST_RHO = 1e-150
"""The least rho of a measurement; a smaller rho would give only noise."""

SENSITIVITY = 2.0
"""L1 sensitivity of all cells of a whole table: a record that is replaced leaves one cell and joins
another."""

WIDEST = 1e90
"""The largest scale of noise at which the moments of a whole table are still usable."""

Subset = tuple[int, ...]
"""The numbers of some variables, in increasing order."""


@cache
def contrasts(levels: int) -> np.ndarray:
    """Orthonormal columns over the levels; each column sums to zero.

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
    columns = np.ascontiguousarray(helmert(levels).T)
    columns.flags.writeable = False
    return columns


def interaction_sensitivity(levels: Sequence[int]) -> float:
    """Replace-one L2 sensitivity of one interaction of variables with these levels.

    Notes
    -----
    A record adds a product of contrast vectors; that of v has squared norm r_v = 1 - 1/L_v. Two
    records have the inner product r_v - 1 at v if their levels differ there, else r_v. With t_v for
    this inner product, the squared distance is 2 (prod r - prod t), and the sensitivity is its
    largest value over all t. Chapter 11, :prf:ref:`thm-interactions`.

    Examples
    --------
    >>> interaction_sensitivity((2, 2)), round(interaction_sensitivity((3, 3, 3)), 3)
    (1.0, 0.943)
    """
    if min(levels) == 1:
        return 0.0  # such a variable has no contrasts
    norms = [1 - 1 / size for size in levels]
    same = math.prod(norms)
    least = min(math.prod(t) for t in product(*((r, r - 1) for r in norms)))
    return math.sqrt(2 * (same - least))


def pairs_sensitivity(levels: Sequence[int]) -> float:
    """Replace-one L2 sensitivity of the interactions of all pairs and all single variables.

    Notes
    -----
    If k variables change, those with the fewest levels move most. The squared sensitivity is the
    max over k of 2 (R + 1) k - k^2 - 2 (sum of the k smallest r) + k, with r = 1 - 1/L and R the
    sum of all r. Chapter 11, :prf:ref:`thm-pairs`. Separate tables would cost sqrt(d (d - 1)):
    twice as much for many binary variables, as much for variables with many levels.

    Examples
    --------
    >>> pairs_sensitivity([2] * 8)
    5.0
    """
    norms = np.sort([1 - 1 / size for size in levels if size > 1])
    changed = np.arange(1, len(norms) + 1)
    moved = 2 * (norms.sum() + 1) * changed - changed**2 - 2 * np.cumsum(norms) + changed
    return math.sqrt(moved.max(initial=0.0))


class Moment(NamedTuple):
    """A released interaction as a mean over records, and the deviation of its noise."""

    values: np.ndarray
    deviation: float

    @property
    def measured(self) -> bool:
        """Whether values and deviation are numbers, and small enough to be more than noise."""
        return bool((np.abs(self.values) <= LARGEST).all()) and 0 <= self.deviation <= LARGEST

    def combined(self, other: "Moment") -> "Moment":
        """The mean of two measurements of one interaction, weighted by their precision."""
        if other.deviation**2 == 0:  # exact in double precision
            return other
        weight = other.deviation**2 / (self.deviation**2 + other.deviation**2)
        values = weight * self.values + (1 - weight) * other.values
        return Moment(values, math.sqrt(weight) * self.deviation)


class Marginals:
    """Released interactions of small sets of variables, and the tables that follow from them.

    Parameters
    ----------
    n : int
        Number of records.
    levels : sequence of int
        Public levels of each variable.
    released : mapping, optional
        Map from each subset of variables (in increasing order) to its :class:`Moment`.

    Raises
    ------
    ValueError
        If n is below 1, or a moment or the deviation of its noise is larger than 1e100 or not a
        number.

    Attributes
    ----------
    n, levels, released

    Privacy
    -------
    All post-processing; it holds no data. Tables follow from interactions as in chapter 11,
    :prf:ref:`thm-interactions`.
    """

    def __init__(
        self, n: int, levels: Sequence[int], released: Mapping[Subset, Moment] | None = None
    ):
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        for subset, moment in (released or {}).items():
            if not moment.measured:
                what = f"the moment of {subset} or the deviation of its noise"
                problem = f"{what} is larger than {LARGEST:g} or no number: that is noise only"
                raise ValueError(f"{problem}; measure it for a larger rho")
        self.n, self.levels = n, tuple(levels)
        self.released = {(): Moment(np.ones(()), 0.0), **(released or {})}
        self._known: dict[tuple, Any] = {}

    def __eq__(self, other):
        """Whether the same numbers were released, with the same noise."""
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self._parts(), other._parts()
        return len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]  # mutable: a run adds moments

    def _parts(self) -> list:
        """All released numbers, in a fixed order."""
        moments = sorted(self.released.items())
        return [self.n, self.levels, *(part for kept in moments for part in (kept[0], *kept[1]))]

    @property
    def widths(self) -> list[int]:
        """Number of contrasts of each variable."""
        return [size - 1 for size in self.levels]

    def worked_out(self, what: tuple, work: Callable[[], Any]) -> Any:
        """The result of a computation on the releases; it is computed only once."""
        if what not in self._known:
            self._known[what] = work()
        return self._known[what]

    def moment(self, *variables: int) -> Moment:
        """The released interaction of these variables, axes in this order.

        Raises
        ------
        KeyError
            If this interaction has not been released.
        """
        if (known := self.released.get(variables)) is not None:
            return known
        subset = tuple(sorted(variables))
        if subset not in self.released:
            cure = "ask for one in `released`, or for clipped pairs by blocks_of"
            raise KeyError(f"{subset} was not released by itself; {cure}")
        values, deviation = self.released[subset]
        return Moment(np.transpose(values, [subset.index(v) for v in variables]), deviation)

    def variance(self, x: int) -> np.ndarray:
        """Covariance matrix of the contrasts of one variable."""
        return covariance_of_contrasts(self.table(x), self.levels[x])

    def distance(self, subset: Subset) -> float:
        """How far one replaced record moves the interaction of some variables, in records."""
        return interaction_sensitivity([self.levels[v] for v in subset])

    def least_variance(self, x: int) -> float:
        """The variance of a variable's contrasts below which there is hardly anything but noise."""
        return least_variance(self.moment(x).deviation, self.n)

    def uncorrelated(self, x: int, floor: float) -> np.ndarray:
        """Uncorrelated combinations of the contrasts of one variable, one in each column.

        Their variance is one; it is less if the variance before scaling was below `floor`.
        """
        values, vectors = np.linalg.eigh(self.variance(x))
        return vectors / np.sqrt(np.maximum(values, floor))

    def table(self, *variables: int) -> np.ndarray:
        """Probabilities of the levels of these variables, axes in this order; none is zero.

        Interactions that have not been released count as zero.

        Raises
        ------
        KeyError
            If one of the single or pair interactions has not been released.
        """
        released = self.released
        parts = [s for s in subsets_of(variables) if len(s) < 3 or tuple(sorted(s)) in released]

        def work():
            raw = sum((self._part(subset, variables) for subset in parts), np.zeros(()))
            least = max([1 / self.n, *(self.released[(v,)].deviation for v in variables)])
            raw = np.maximum(raw, least / raw.size)
            return raw / raw.sum()

        return self.worked_out(("table", variables, len(parts)), work)

    def _part(self, subset, variables) -> np.ndarray:
        """The contribution of one interaction to each cell of a table."""
        values = self.worked_out(("part", subset), lambda: self._cells(subset))
        shape = [self.levels[v] if v in subset else 1 for v in variables]
        left = math.prod(self.levels[v] for v in variables if v not in subset)
        return values.reshape(shape) / left

    def _cells(self, subset) -> np.ndarray:
        """The contribution of one interaction to each cell of its own variables."""
        cells = self.moment(*subset).values
        for v in subset:  # rotate the axes, because tensordot takes ten times as long
            rest = cells.shape[1:]
            product = contrasts(self.levels[v]) @ cells.reshape(len(cells), math.prod(rest))
            cells = np.moveaxis(product.reshape(self.levels[v], *rest), 0, -1)
        return cells

    def as_of(self, n: int) -> "Marginals":
        """The same moments, treated as moments of n records."""
        other = copy.copy(self)
        other.n, other._known = n, {}
        return other

    def to_receipt(self) -> dict[str, Any]:
        """The content for a receipt: every moment, in types of JSON."""
        moments = [
            {"variables": list(subset), "values": values.tolist(), "deviation": deviation}
            for subset, (values, deviation) in self.released.items()
            if subset
        ]
        return {"n": self.n, "levels": list(self.levels), "moments": moments}

    def theorems(self) -> tuple[str, ...]:
        """Labels of the theorems behind the sensitivities of the released moments.

        Examples
        --------
        >>> pair = {(0,): Moment(np.zeros(1), 1.0), (0, 1): Moment(np.zeros((1, 1)), 1.0)}
        >>> Marginals(100, [2, 2], pair).theorems()
        ('thm-pairs',)
        """
        sizes = set(map(len, self.released))
        precisions = {kept.deviation for subset, kept in self.released.items() if len(subset) == 2}
        ran = {"thm-pairs": 2 in sizes, "thm-interactions": 3 in sizes}
        ran["thm-look-again"] = len(precisions) > 1
        return tuple(label for label, used in ran.items() if used)


class Measurement(Protocol):
    """A function that answers a query of a given L2 sensitivity for rho, and reports the noise."""

    def __call__(
        self, query: Callable[[], np.ndarray], *, sensitivity: float, rho: float
    ) -> tuple[np.ndarray, float]:
        """The answer and the deviation of its noise; may raise BudgetSpent."""


def paid(account: Account, noise: Noise) -> Measurement:
    """A measurement with Gaussian noise that an account pays for; it refuses a rho near 0."""
    charged = partial(gaussian_for_rho, account=account, noise=noise)

    def measure(query, *, sensitivity, rho):
        if 0 <= rho < LEAST_RHO:
            raise BudgetSpent(f"a rho of {rho:g} pays for no measurement")
        return charged(query, sensitivity=sensitivity, rho=rho)

    return measure


def exactly(query, *, sensitivity, rho) -> tuple[np.ndarray, float]:
    """Answer a query without noise, at no cost. Not private."""
    return query(), 0.0


class MeasuredMarginals(Marginals):
    """Marginals to which a run adds further measurements.

    Parameters
    ----------
    tables : Tables
    measure : callable
        The measurement: :func:`paid` by an account, or :func:`exactly`, which is not private.

    Privacy
    -------
    Every release is one Gaussian mechanism, paid before the tables are counted. Chapter 11,
    :prf:ref:`thm-interactions` and :prf:ref:`thm-pairs`, and chapter 14,
    :prf:ref:`thm-look-again`. What rounding adds is proved to be less than what a run
    keeps for it, :func:`~dpcgd.privacy.budget.kept_for_rounding`.
    """

    def __init__(self, tables: Tables, measure: Measurement):
        super().__init__(tables.n, tables.levels)
        self._tables, self._measure = tables, measure

    def measure_pairs(self, rho: float):
        """Release the interactions of all single variables and all pairs, for rho in total."""
        variables = range(len(self.levels))
        subsets = [*combinations(variables, 1), *combinations(variables, 2)]
        self._release(subsets, pairs_sensitivity(self.levels), rho)

    def measure(self, subset: Subset, rho: float):
        """Release one interaction for rho.

        Raises
        ------
        BudgetSpent
            Before the data is touched, if the account cannot pay, or if rho is 0 or too small to
            pay for anything.
        ValueError
            Before the data is touched, if rho is negative or not finite.
        """
        self._release([tuple(sorted(subset))], self.distance(subset), rho)

    def measure_again(self, pairs: Sequence[Subset], rho: float):
        """Release the interactions of some pairs once more, for rho in total.

        Each pair then has the mean of all its measurements, weighted by their precision.

        Raises
        ------
        BudgetSpent
            Before the data is touched, if the account cannot pay.
        """
        one_by_one = math.hypot(*map(self.distance, pairs))
        self._release(pairs, min(one_by_one, pairs_sensitivity(self.levels)), rho)

    def _release(self, subsets, sensitivity, rho):
        if sensitivity == 0:  # there are no contrasts
            return self._keep(subsets, np.empty(0), 0.0)
        answer = self._measure(lambda: self.exact(subsets), sensitivity=sensitivity, rho=rho)
        return self._keep(subsets, *answer)

    def exact(self, subsets: Sequence[Subset]) -> np.ndarray:
        """Sums over records of the products of contrasts, one subset after the other."""
        tables = self._tables.counts_many(subsets)
        return np.concatenate([interaction_of(table).ravel() for table in tables])

    def _keep(self, subsets, values, deviation):
        shapes = [tuple(self.levels[v] - 1 for v in subset) for subset in subsets]
        parts = np.split(values, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        for subset, shape, part in zip(subsets, shapes, parts, strict=True):
            moment = Moment(part.reshape(shape) / self.n, deviation / self.n)
            if subset in self.released:
                moment = self.released[subset].combined(moment)
                self._known.clear()
            self.released[subset] = moment

    def without_data(self) -> Marginals:
        """The released marginals, without the data."""
        return Marginals(self.n, self.levels, self.released)


class NoisyTable(Marginals):
    """Noisy counts of every combination of levels, with Laplace noise.

    It holds the interactions of all sets of its variables, and the deviations of their noise. A
    cell of a margin is a sum of cells, and interactions are orthonormal combinations of cells; so
    the noise of both is known.

    Parameters
    ----------
    n : int
        Number of records.
    counts : array
        Counts with one axis for each variable; noise can make a count negative.
    scale : float
        Scale of the noise in each cell.
    """

    def __init__(self, n: int, counts: np.ndarray, scale: float):
        self.counts, self.scale = counts, scale
        subsets = [*subsets_of(tuple(range(counts.ndim)))][1:]
        super().__init__(n, counts.shape, {subset: self._moment(n, subset) for subset in subsets})

    def _moment(self, n: int, subset: Subset) -> Moment:
        margin = self.counts.sum(axis=tuple(v for v in range(self.counts.ndim) if v not in subset))
        deviation = math.sqrt(2 * self.counts.size / margin.size) * self.scale
        return Moment(interaction_of(margin) / n, deviation / n)

    def theorems(self) -> tuple[str, ...]:
        """No further theorem: the theorem of the system covers the whole table."""
        return ()

    def to_receipt(self) -> dict[str, Any]:
        """The content for a receipt: the counts and the scale of their noise."""
        return {"n": self.n, "counts": self.counts.tolist(), "scale": self.scale}


def measure_table(data: Counts, *, epsilon: float, account: Account, noise: Noise) -> NoisyTable:
    """Release the count of every combination of levels.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon : float
    account, noise
        The account that pays, and the source of randomness.

    Returns
    -------
    NoisyTable

    Raises
    ------
    BudgetSpent
        Before the data is touched, if the account cannot pay.
    ValueError
        Before anything is paid, if epsilon is so small that only noise would be released.

    Privacy
    -------
    (epsilon, 0) for replace-one neighbours: one record moves two cells by one each. Chapter 15,
    :prf:ref:`thm-whole-table`.
    """
    if not SENSITIVITY / epsilon <= WIDEST:
        raise ValueError(f"epsilon = {epsilon:g} buys nothing but noise; take a larger one")
    tables = Tables(data)
    everyone = tuple(range(len(tables.levels)))
    answer = partial(laplace, sensitivity=SENSITIVITY, account=account, noise=noise)
    counts = answer(lambda: tables.counts_many([everyone])[0], epsilon=epsilon)
    return NoisyTable(tables.n, counts, SENSITIVITY / epsilon)


def interaction_of(table: np.ndarray) -> np.ndarray:
    """The interaction of all variables of a table: sums of products of their contrasts.

    A contrast is a vector of whole numbers divided by its length. So sums of counts are exact, and
    the division by the length changes an entry by at most 2^-52 of itself.

    Examples
    --------
    >>> interaction_of(np.array([[10**12, 1], [0, 10**12]]))
    array([[1.e+12]])
    """
    kind: type = float
    if table.dtype.kind != "f":  # holds every sum of products of counts and whole contrasts exactly
        largest = int(table.sum()) * math.prod(levels - 1 for levels in table.shape)
        kind = np.int64 if largest <= np.iinfo(np.int64).max else object
    sums: np.ndarray = table.astype(kind)
    for levels in table.shape:
        rising = np.arange(1, levels).reshape(-1, *[1] * (sums.ndim - 1))
        sums = np.cumsum(sums, axis=0)[:-1] - rising * sums[1:]
        sums = sums.transpose(*range(1, sums.ndim), 0)
    return (sums / _lengths(table.shape)).astype(float)


@lru_cache(maxsize=16)
def _lengths(shape) -> np.ndarray:
    """The lengths of the products of whole contrasts."""
    squares = [np.arange(1.0, levels) * np.arange(2.0, levels + 1) for levels in shape]
    return np.sqrt(reduce(np.multiply.outer, squares, np.ones(())))


def subsets_of(variables: Subset) -> Iterator[Subset]:
    """Every subset of some variables, the empty one first."""
    return chain.from_iterable(combinations(variables, k) for k in range(len(variables) + 1))


def least_variance(deviation: float, n: int) -> float:
    """The variance below which an eigenvalue of moments is mostly noise.

    Parameters
    ----------
    deviation : float
        Deviation of the noise of each moment.
    n : int
        Number of records.
    """
    return max(3 * deviation, 1 / n)


def covariance_of_contrasts(probabilities: np.ndarray, levels: int) -> np.ndarray:
    """Covariance matrix of a variable's contrasts, for each row of level probabilities."""
    columns = contrasts(levels)
    mean = probabilities @ columns
    squares = (columns.T * probabilities[..., None, :]) @ columns
    return squares - mean[..., :, None] * mean[..., None, :]
