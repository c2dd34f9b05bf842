"""Dependence of two variables given others, tested on noisy interactions.

Many tests are computed together. Intermediate results that several tests need are computed once,
and arrays are padded with zeros to the largest number of levels among the tests.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial, reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from dpcgd.moments.interactions import Marginals, Subset, contrasts, subsets_of

__all__ = ["Association", "association", "associations", "strength"]

CLEAR = 20
"""The least variance of contrasts, in deviations of its noise. Contrasts that vary less, such as
those of rare levels, count with this variance, because their correlations are mostly noise."""


ROUNDING = 1e-14
"""An eigenvalue that is a smaller share of the largest one counts as a rounding error."""


MOST_NUMBERS = 1 << 21
"""The largest number of entries of an array that are computed at once."""


SIZES = np.sort(np.outer([2, 3], 2 ** np.arange(24)), axis=None)
"""Numbers of levels are rounded up to one of 2, 3, 4, 6, 8, 12, 16 and so on."""


class Association(NamedTuple):
    """The result of a test: dependence of two variables given others, compared with noise.

    Attributes
    ----------
    statistic : float
        Squared distance from independence in units of sampling and privacy noise together.
    freedom : int
        Degrees of freedom of the chi-squared distribution of the statistic under independence.
    effect : float
        Squared partial correlation, summed over contrasts.
    undetermined : float
        Share of the variance of x or of y, whichever is less, that the others do not explain.
    p_value : float
        Probability of a statistic at least as large under independence.
    """

    statistic: float
    freedom: int
    effect: float
    undetermined: float
    p_value: float


def association(
    marginals: Marginals, x: int, y: int, given: Subset = (), *, interacting: bool = False
) -> Association:
    """Test x and y given others, from released moments.

    Parameters
    ----------
    marginals : Marginals
    x, y : int
    given : tuple of int
        At most two variables.
    interacting : bool
        Whether the two conditioning variables may interact, which needs the triples of x and of y
        with them. Otherwise their effects add up, and pairs are enough. With one conditioning
        variable or none there is no difference.

    Returns
    -------
    Association
        All fields are numbers. If the noise is so large that its products overflow, the statistic
        and the effect are 0.

    Raises
    ------
    KeyError
        If an interaction that the test needs has not been released.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Let f be the contrasts of the conditioning variables. The average conditional covariance
    Q = C_xy - C_xf C_ff^-1 C_fy of the contrasts is 0 under independence; exactly so with one
    conditioning variable or with interacting ones. Sampling gives it the variance
    ``E[Cov(x|s) x Cov(y|s)] / n``. The noise of each moment adds its variance times the square of
    its coefficient. Chapter 11, :prf:ref:`thm-average`.
    """
    [row] = associations(marginals, [(x, y, *given)], interacting=interacting)
    return Association(*row)


def associations(
    marginals: Marginals, tests: Sequence[Sequence[int]], *, interacting: bool = False
) -> list[tuple]:
    """The results of :func:`association` for many tests given equally many variables.

    Parameters
    ----------
    marginals : Marginals
    tests : sequence of sequences of int
        x, y and at most two conditioning variables.
    interacting : bool

    Returns
    -------
    list of tuple
        The fields of an :class:`Association`. Thousands of plain tuples of numbers cost Python's
        garbage collector nothing; objects would cost time.

    Raises
    ------
    KeyError
        If an interaction that a test needs has not been released.

    Privacy
    -------
    Post-processing.
    """
    asked = np.array(tests, np.int64)
    moments = marginals.worked_out(("pair moments",), lambda: _Moments(marginals))
    moments.check(asked)
    statistic, effect, undetermined = np.empty((3, len(asked)))
    with np.errstate(over="ignore", invalid="ignore"):
        for some, most, of_given in _alike(moments.levels[asked]):
            tested = _Tested(moments, asked[some], most, of_given, interacting)
            statistic[some], effect[some], undetermined[some] = tested.results()
    freedom = np.prod(moments.levels[asked[:, :2]] - 1, axis=1)
    p_values = np.where(freedom, chdtrc(freedom, np.maximum(0.0, statistic)), 1.0)
    columns = statistic, freedom, effect, undetermined, p_values
    return [*zip(*(column.tolist() for column in columns), strict=True)]


def _alike(levels) -> Iterator[tuple[list[int], int, int]]:
    """Groups of tests with about equally many levels, tested and given; no group is too large.

    A call costs as much as some hundred small tests. So the numbers of levels are rounded up. Tests
    with other levels of the conditioning variables are separated only if there are two such
    variables, because these have many cells.
    """
    tested, given = levels[:, :2].max(axis=1), levels[:, 2:].max(axis=1, initial=2)
    if levels.shape[1] < 4:
        tested = given = np.maximum(tested, given)
    alike = defaultdict(list)
    for test, size in enumerate(SIZES[np.searchsorted(SIZES, [tested, given])].T.tolist()):
        alike[*size].append(test)
    for (most, of_given), some in alike.items():
        at_once = max(1, MOST_NUMBERS // (max(most, of_given) ** max(4, 2 * (levels.shape[1] - 2))))
        for start in range(0, len(some), at_once):
            yield some[start : start + at_once], most, of_given


def strength(marginals: Marginals, x: int, y: int) -> float:
    """Dependence of two variables: squared correlations, summed over contrasts.

    Without noise this is Pearson's mean square contingency. If three variables form a chain, the
    outer two are no more dependent than either is with the middle one.

    Parameters
    ----------
    marginals : Marginals
    x, y : int

    Returns
    -------
    float

    Raises
    ------
    KeyError
        If their interactions have not been released.

    Privacy
    -------
    Post-processing.
    """
    means = np.outer(marginals.moment(x).values, marginals.moment(y).values)
    floors = (max(CLEAR * marginals.moment(v).deviation, 1e-9) for v in (x, y))
    of_x, of_y = map(marginals.uncorrelated, (x, y), floors)
    with np.errstate(over="ignore", invalid="ignore"):
        correlations = of_x.T @ (marginals.moment(x, y).values - means) @ of_y
        total = float((correlations**2).sum())
    return total if math.isfinite(total) else 0.0


class _Moments:
    """Released moments of single variables and pairs, as arrays.

    The contrasts of each variable have rows of their own in `mean` and in `second`. `second` holds
    mean products, with covariance matrices on the diagonal. The last row is zero: no contrast.
    """

    def __init__(self, marginals):
        self.marginals, self.n = marginals, marginals.n
        self.levels = np.array(marginals.levels, np.int64)
        self.starts = np.cumsum(self.levels - 1) - self.levels + 1
        spans = [slice(s, s + k - 1) for s, k in zip(self.starts, self.levels, strict=True)]
        d, size = len(spans), int(np.sum(self.levels - 1)) + 1
        self.mean, self.second = np.zeros(size), np.zeros((size, size))
        self.deviations = np.full((d, d), np.nan)
        for subset, (values, deviation) in marginals.released.items():
            if len(subset) in (1, 2):
                u, v = subset[0], subset[-1]
                self.deviations[u, v] = self.deviations[v, u] = deviation
            if len(subset) == 1:
                self.mean[spans[u]] = values
                self.second[spans[u], spans[u]] = marginals.variance(u)
            elif len(subset) == 2:
                self.second[spans[u], spans[v]] = values
                self.second[spans[v], spans[u]] = values.T
        self.padded = cache(partial(_Padded, self))

    def check(self, asked):
        """Refuse tests that need a single variable or a pair which has not been released."""
        if np.isnan(self.deviations).any():
            for test in asked.tolist():
                for subset in [*combinations(test, 1), *combinations(test, 2)]:
                    self.marginals.moment(*subset)

    def tables(self, variables, sizes) -> np.ndarray:
        """Probabilities of levels of some variables, a row for each choice, padded to sizes."""
        if len(variables) == 2:
            return self._pairs(*variables, *map(self.padded, sizes))
        tables = np.zeros((variables.shape[1], *sizes))
        for row, of_row in enumerate(variables.T.tolist()):
            table = self.marginals.table(*of_row)
            cells: tuple = (row, *map(slice, table.shape))
            tables[cells] = table
        return tables

    def _pairs(self, u, v, first, second) -> np.ndarray:
        """Probabilities of all pairs at once; one by one they take a quarter of a search's time."""
        sizes = self.levels[u] * self.levels[v]
        cells = first.contrasts[u] @ first.products(u, second, v)
        cells = cells @ second.contrasts[v].swapaxes(1, 2)
        cells += first.half[u][:, :, None] / self.levels[v][:, None, None]
        cells += second.half[v][:, None] / self.levels[u][:, None, None]
        least = np.maximum(1 / self.n, np.maximum(self.deviations[u, u], self.deviations[v, v]))
        cells = np.maximum(cells, (least / sizes)[:, None, None])
        cells *= first.real[u][:, :, None] & second.real[v][:, None]
        return cells / cells.sum(axis=(1, 2), keepdims=True)


class _Padded:
    """Rows, contrasts and means of all variables, padded to a number of levels."""

    def __init__(self, moments, most):
        self.second, self.most, number = moments.second, most, np.arange(most - 1)
        kept = np.minimum(moments.levels, most)  # variables with more levels are not used
        self.rows = np.where(number < kept[:, None] - 1, moments.starts[:, None] + number, -1)
        self.mean = moments.mean[self.rows]
        by_levels = np.zeros((most + 1, most, most - 1))
        for k in set(kept.tolist()):
            by_levels[k, :k, : k - 1] = contrasts(k)
        self.contrasts = by_levels[kept]
        products = self.contrasts[:, :, :, None] * self.contrasts[:, :, None]
        self.squares = products.reshape(len(kept), most, -1)
        self.real = np.arange(most) < moments.levels[:, None]
        self.half = (self.contrasts @ self.mean[:, :, None])[:, :, 0] + 0.5 / kept[:, None]

    def products(self, u, other, v) -> np.ndarray:
        """Mean products of the contrasts of variables u and v; `other` pads those of v."""
        return self.second[self.rows[u][:, :, None], other.rows[v][:, None]]


class _Tested:
    """Tests given equally many variables, with at most `most` or `of_given` levels.

    Arrays about conditioning variables have a row for each choice of them. Arrays about x or y have
    a row for each variable and choice.
    """

    def __init__(self, moments, asked, most, of_given, interacting):
        self.moments, self.asked, self.most = moments, asked, most
        self.padded, self.beside = moments.padded(most), moments.padded(of_given)
        self.order = asked.shape[1] - 2
        self.exact = self.order < 2 or interacting
        self._share()
        self._describe()
        self._regress()

    def _share(self):
        """Number the different choices of conditioning variables, and of x or y with them."""
        choices, self.choice = _numbered(map(tuple, self.asked[:, 2:].tolist()))
        choice, asked = self.choice.tolist(), self.asked[:, :2].T.tolist()
        sides, places = _numbered(pair for side in asked for pair in zip(choice, side, strict=True))
        self.given, (self.choice_of, self.variable) = choices.T, sides.T
        self.x, self.y = np.split(places, 2)

    def _describe(self):
        """Cells of the conditioning variables, their features, and the noise of each cell."""
        moments, beside, given = self.moments, self.beside, self.given
        self.p = moments.tables(given, [beside.most] * self.order).reshape(given.shape[1], -1)
        levels = moments.levels[given]
        none, strata = np.zeros((*self.p.shape, 0)), levels.prod(axis=0)
        features, noises, means = [none], [none], [none[:, 0]]
        ones = np.ones((len(none), beside.most, 1))
        for chosen in [*subsets_of(tuple(range(self.order)))][1:]:
            parts = [beside.contrasts[v] if i in chosen else ones for i, v in enumerate(given)]
            feature, ends = reduce(_outer, parts), given[[chosen[0], chosen[-1]]]
            cells = strata // levels[[*chosen]].prod(axis=0)
            deviation = (moments.deviations[*ends] / cells)[:, None, None]
            noises.append(feature * deviation * (self.p > 0)[:, :, None])
            if len(chosen) == 1:
                means.append(beside.mean[ends[0]])
            elif self.exact:
                means.append(beside.products(ends[0], beside, ends[1]).reshape(len(none), -1))
            if len(chosen) == 1 or self.exact:
                features.append(feature)
        self.h, self.features = np.concatenate(noises, axis=2), np.concatenate(features, axis=2)
        self.feature_mean = np.concatenate(means, axis=1)
        centred = self.features - self.p[:, None] @ self.features
        self.covariance = (centred * self.p[:, :, None]).swapaxes(1, 2) @ centred

    def _regress(self):
        """Regress the contrasts of each variable on the features of its tests."""
        padded, choice, v = self.padded, self.choice_of, self.variable
        self.mean, variance = padded.mean[v], padded.products(v, padded, v)
        products, self.through = self._with_features()
        self.cross = products - self.mean[:, :, None] * self.feature_mean[choice][:, None]
        values, vectors = (part[choice] for part in np.linalg.eigh(self.covariance))
        values = np.maximum(values, self.through.max(axis=1, initial=1e-9)[:, None])
        self.slope = self.cross @ (vectors / values[:, None]) @ vectors.swapaxes(1, 2)
        slope = self.slope.swapaxes(1, 2)
        self.intercept = self.mean - (self.feature_mean[choice][:, None] @ slope)[:, 0]
        self.mu = self.intercept[:, None] + self.features[choice] @ slope
        self.residual = _positive_part(variance - self.cross @ slope)
        part, whole = self.residual[0].sum(axis=1), np.trace(variance, axis1=1, axis2=2)
        self.undetermined = np.divide(part, whole, out=np.ones_like(part), where=whole > 0)

    def _with_features(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean products of each variable with the features, and deviations of their noise."""
        moments, beside, width = self.moments, self.beside, self.most - 1
        v, given = self.variable, self.given[:, self.choice_of]
        products, through = [np.zeros((len(v), width, 0))], [np.zeros((len(v), 0))]
        for other in given:
            products.append(self.padded.products(v, beside, other))
            deviation = moments.deviations[v, other][:, None]
            through.append(np.where(beside.rows[other] >= 0, deviation, 0.0))
        if self.exact and self.order == 2:
            values, deviations = np.zeros((2, len(v), width, beside.most - 1, beside.most - 1))
            triples = zip(v.tolist(), *given.tolist(), strict=True)
            for row, noise, triple in zip(values, deviations, triples, strict=True):
                moment = moments.marginals.moment(*triple)
                here = tuple([slice(k) for k in moment.values.shape])
                row[here], noise[here] = moment
            products.append(values.reshape(len(v), width, -1))
            through.append(deviations.max(axis=1, initial=0.0).reshape(len(v), -1))
        return np.concatenate(products, axis=2), np.concatenate(through, axis=1)

    def _within(self) -> np.ndarray:
        """Covariance of contrasts of each variable in each cell of its conditioning variables."""
        padded, v, given = self.padded, self.variable, self.given[:, self.choice_of]
        sizes = self.most, *[self.beside.most] * self.order
        table = self.moments.tables(np.vstack([v, given]), sizes).reshape(len(v), self.most, -1)
        total = table.sum(axis=1, keepdims=True)
        table = np.divide(table, total, out=np.zeros_like(table), where=total > 0).swapaxes(1, 2)
        mean, squares = table @ padded.contrasts[v], table @ padded.squares[v]
        return squares - (mean[:, :, :, None] * mean[:, :, None]).reshape(squares.shape)

    def results(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Statistic, effect and unexplained share of each test."""
        x, y = self.x, self.y
        q = self._average()
        variance = self._sampled() / self.moments.n + self._noise()
        statistic = _quadratic(variance, q.reshape(len(x), -1), 1e-14)
        values_x, vectors_x = (part[x] for part in self.residual)
        values_y, vectors_y = (part[y] for part in self.residual)
        turned = vectors_x.swapaxes(1, 2) @ q @ vectors_y
        effect = turned**2 / (values_x[:, :, None] * values_y[:, None] + 1e-6)
        effect = effect.sum(axis=(1, 2))
        undetermined = np.minimum(self.undetermined[x], self.undetermined[y])
        return statistic, np.where(np.isfinite(effect), effect, 0.0), undetermined

    def _average(self) -> np.ndarray:
        """Average conditional covariance of x and y."""
        x, y = self.x, self.y
        slope = self.slope[y]
        beyond = self.cross[y] - slope @ self.covariance[self.choice]
        u, v = self.asked[:, :2].T
        products = self.padded.products(u, self.padded, v)
        left = products - self.mean[x][:, :, None] * self.mean[y][:, None]
        left -= self.cross[x] @ slope.swapaxes(1, 2)
        return left - self.slope[x] @ beyond.swapaxes(1, 2)

    def _sampled(self) -> np.ndarray:
        """n times the sampling variance of the average conditional covariance."""
        width = self.most - 1
        if self.exact:
            within = self._within()
            weighted = within[self.x] * self.p[self.choice][:, :, None]
            both = weighted.swapaxes(1, 2) @ within[self.y]
        else:
            values, vectors = self.residual
            left = (vectors * values[:, None]) @ vectors.swapaxes(1, 2)
            both = left[self.x].reshape(-1, width**2, 1) * left[self.y].reshape(-1, 1, width**2)
        both = both.reshape(-1, width, width, width, width).swapaxes(2, 3)
        return both.reshape(-1, width**2, width**2)

    def _noise(self) -> np.ndarray:
        """Variance that noise gives the average conditional covariance, to first order."""
        x, y, width = self.x, self.y, self.most - 1
        deviation = self.moments.deviations[self.asked[:, 0], self.asked[:, 1]][:, None, None]
        mu = self.mu[x][:, :, :, None] * self.mu[y][:, :, None]
        of_given = self.h[self.choice].swapaxes(1, 2) @ mu.reshape(*mu.shape[:2], width**2)
        total = of_given.swapaxes(1, 2) @ of_given
        entries = total.reshape(-1, width, width, width, width)
        same_x, same_y = np.einsum("tabac->tabc", entries), np.einsum("tabcb->tacb", entries)
        same_x += (self._passed_on(y, x) + deviation**2 * np.eye(width))[:, None]
        same_y += self._passed_on(x, y)[:, :, :, None]
        return total

    def _passed_on(self, side, other) -> np.ndarray:
        """Variance from noise that slope and intercept of one side pass on from the other side."""
        slope, intercept = self.slope[side], self.intercept[side]
        through = (slope * self.through[other][:, None] ** 2) @ slope.swapaxes(1, 2)
        v = self.variable[other]
        own = self.moments.deviations[v, v][:, None, None] ** 2
        return through + own * intercept[:, :, None] * intercept[:, None]


def _numbered(keys) -> tuple[np.ndarray, np.ndarray]:
    """The different keys among some keys, a row each, and the row of each key."""
    numbers: dict[tuple, int] = {}
    which = [numbers.setdefault(key, len(numbers)) for key in keys]
    return np.array([*numbers], np.int64), np.array(which)


def _outer(a, b) -> np.ndarray:
    """Products of two variables' columns, for all of their cells."""
    products = a[:, :, None, :, None] * b[:, None, :, None]
    return products.reshape(len(a), a.shape[1] * b.shape[1], -1)


def _positive_part(matrices) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, none negative, and eigenvectors of symmetric matrices; of 0 if not finite."""
    symmetric = (matrices + matrices.swapaxes(1, 2)) / 2
    symmetric[~np.isfinite(symmetric).all(axis=(1, 2))] = 0.0
    values, vectors = np.linalg.eigh(symmetric)
    values *= values > ROUNDING * np.abs(values).max(axis=1, initial=0.0, keepdims=True)
    return values, vectors


def _quadratic(matrices, vectors, ridge) -> np.ndarray:
    """vector' matrix^-1 vector for each pair, with a ridge; 0 if an entry is not finite."""
    matrices = matrices + ridge * np.eye(vectors.shape[1])
    usable = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(vectors).all(axis=1)
    matrices[~usable], vectors = np.eye(vectors.shape[1]), np.where(usable[:, None], vectors, 0.0)
    try:
        solved = np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # the ridge is too small beside large entries
        systems = zip(matrices, vectors, strict=True)
        solved = np.array([np.linalg.lstsq(*system)[0] for system in systems])
    totals = (vectors * solved).sum(axis=1)
    return np.where(np.isfinite(totals), totals, 0.0)
