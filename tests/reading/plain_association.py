"""The association of two variables given others, one test after the other, by its definition."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from dpcgd.moments.interactions import contrasts, covariance_of_contrasts, subsets_of
from dpcgd.reading.association import Association


def plain_association(marginals, x, y, given=(), *, interacting=False):
    """What :func:`dpcgd.reading.association.association` says."""
    with np.errstate(over="ignore", invalid="ignore"):
        design = Design(marginals, given, interacting)
        to_x, to_y = design.regress(x), design.regress(y)
        pair = marginals.moment(x, y)
        q = design.average(to_x, to_y, pair.values).ravel()
        spread = design.spread(to_x, to_y) / marginals.n + design.noise(to_x, to_y, pair.deviation)
        statistic = _quadratic(spread, q, 1e-14)
        return Association(
            statistic=statistic,
            freedom=len(q),
            effect=_quadratic(_kron(to_x.residual, to_y.residual), q, 1e-6),
            undetermined=min(to_x.undetermined, to_y.undetermined),
            p_value=float(chdtrc(len(q), max(0.0, statistic))) if len(q) else 1.0,
        )


@dataclass(frozen=True)
class _Slope:
    """A variable's contrasts regressed on the features of the conditioning variables.

    ``mu`` and ``covariances`` have a row for each cell of these: what the regression gives there,
    and the covariance of the variable there (``covariances`` only where the regression is exact).
    """

    mean: np.ndarray
    cross: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray
    undetermined: float
    mu: np.ndarray
    covariances: np.ndarray | None
    deviation: float
    deviations: np.ndarray


class Design:
    """The features of the conditioning variables: their contrasts, and products if interacting."""

    def __init__(self, marginals, given, interacting):
        self.marginals, self.given = marginals, given
        self.subsets = [(v,) for v in given]
        if interacting and len(given) == 2:
            self.subsets.append(given)
        self.exact = len(given) < 2 or len(self.subsets) == 3
        self.p = marginals.table(*given).ravel() if given else np.ones(1)
        self.features = self._features(self.subsets)
        self.mean = self._flat([marginals.moment(*subset).values for subset in self.subsets])
        centred = self.features - self.p @ self.features
        self.covariance = (centred * self.p[:, None]).T @ centred
        self.eigen = np.linalg.eigh(self.covariance)
        self.h = self._h()
        self._slopes: dict[int, _Slope] = {}

    def _features(self, subsets) -> np.ndarray:
        """Products of contrasts, a row for each cell of the conditioning variables."""
        levels = [self.marginals.levels[v] for v in self.given]
        cells = np.indices(levels).reshape(len(levels), len(self.p))
        of = {v: contrasts(k)[at] for v, k, at in zip(self.given, levels, cells, strict=True)}
        columns = [np.ones((len(self.p), 0))]
        for subset in subsets:
            both = of[subset[0]]
            for v in subset[1:]:
                both = np.einsum("ca,cb->cab", both, of[v]).reshape(len(both), -1)
            columns.append(both)
        return np.hstack(columns)

    def _h(self) -> np.ndarray:
        """What the noise of the conditioning variables' own moments does to each of their cells."""
        levels = self.marginals.levels
        cells, columns = len(self.p), [np.empty((len(self.p), 0))]
        for subset in subsets_of(self.given):
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
        widths = [math.prod(m.values.shape[1:]) for m in moments]
        parts = (m.values.reshape(size, w) for m, w in zip(moments, widths, strict=True))
        cross = np.hstack([np.empty((size, 0)), *parts]) - np.outer(own.values, self.mean)
        deviations = self._flat(
            [np.full(w, m.deviation) for m, w in zip(moments, widths, strict=True)]
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
            undetermined=_share(np.trace(residual), np.trace(variance)),
            mu=intercept + self.features @ slope.T,
            covariances=self._covariances(x) if self.exact else None,
            deviation=own.deviation,
            deviations=deviations,
        )

    def _inverse(self, floor) -> np.ndarray:
        """Of the covariance, its eigenvalues no less than the noise they are known with."""
        values, vectors = self.eigen
        return (vectors / np.maximum(values, floor)) @ vectors.T

    def _covariances(self, x) -> np.ndarray:
        table = self.marginals.table(x, *self.given).reshape(self.marginals.levels[x], -1)
        table = table / table.sum(axis=0)
        return covariance_of_contrasts(table.T, self.marginals.levels[x])

    def average(self, to_x, to_y, products) -> np.ndarray:
        """Average conditional covariance; the mean products are those of the two variables."""
        left = products - np.outer(to_x.mean, to_y.mean) - to_x.cross @ to_y.slope.T
        return left - to_x.slope @ (to_y.cross - to_y.slope @ self.covariance).T

    def spread(self, to_x, to_y) -> np.ndarray:
        """n times the sampling variance of the average conditional covariance."""
        if not self.exact:
            return _kron(to_x.residual, to_y.residual)
        products = np.einsum("s,sab,scd->acbd", self.p, to_x.covariances, to_y.covariances)
        size = to_x.covariances.shape[1] * to_y.covariances.shape[1]
        return products.reshape(size, size)

    def noise(self, to_x, to_y, deviation) -> np.ndarray:
        """Privacy variance of the average conditional covariance, to first order."""
        through_x = (to_x.slope * to_y.deviations**2) @ to_x.slope.T
        through_x = through_x + to_y.deviation**2 * np.outer(to_x.intercept, to_x.intercept)
        through_y = (to_y.slope * to_x.deviations**2) @ to_y.slope.T
        through_y = through_y + to_x.deviation**2 * np.outer(to_y.intercept, to_y.intercept)
        one_x, one_y = np.eye(len(through_x)), np.eye(len(through_y))
        mu = np.einsum("sa,sb->sab", to_x.mu, to_y.mu).reshape(len(self.p), -1)
        of_given = self.h.T @ mu
        return (
            _kron(one_x, deviation**2 * one_y + through_y)
            + _kron(through_x, one_y)
            + of_given.T @ of_given
        )


def _kron(a, b) -> np.ndarray:
    """Kronecker product of square matrices."""
    size = len(a) * len(b)
    return (a[:, None, :, None] * b[None, :, None, :]).reshape(size, size)


def _share(part, whole) -> float:
    """All of nothing is all."""
    return part / whole if whole > 0 else 1.0


def _positive_part(matrix) -> np.ndarray:
    symmetric = (matrix + matrix.T) / 2
    if not np.isfinite(symmetric).all():
        return np.zeros_like(matrix)
    values, vectors = np.linalg.eigh(symmetric)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def _quadratic(matrix, vector, ridge) -> float:
    """vector' matrix^-1 vector with a ridge; 0 where the matrix holds what is no number."""
    matrix = matrix + ridge * np.eye(len(vector))
    if not (np.isfinite(matrix).all() and np.isfinite(vector).all()):
        return 0.0
    try:
        solved = np.linalg.solve(matrix, vector)
    except np.linalg.LinAlgError:  # the ridge is lost beside large entries
        solved = np.linalg.lstsq(matrix, vector)[0]
    found = float(vector @ solved)
    return found if math.isfinite(found) else 0.0
