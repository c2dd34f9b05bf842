"""The association of two variables given others, one test after the other, by its definition."""

import math
from types import SimpleNamespace

import numpy as np
from scipy.special import chdtrc

from dpcgd.moments.interactions import contrasts, covariance_of_contrasts, subsets_of
from dpcgd.reading.association import Association


def plain_association(marginals, x, y, given=(), *, interacting=False):
    """What :func:`dpcgd.reading.association.association` says."""
    design = Design(marginals, given, interacting)
    to_x, to_y = design.regress(x), design.regress(y)
    pair = marginals.moment(x, y)
    q = design.average(to_x, to_y, pair.values).ravel()
    spread = design.spread(to_x, to_y) / marginals.n + design.noise(to_x, to_y, pair.deviation)
    statistic = _quadratic(spread, q, 1e-14)
    effect = _quadratic(np.kron(to_x.residual, to_y.residual), q, 1e-6)
    p_value = chdtrc(len(q), max(0.0, statistic)) if len(q) else 1.0
    undetermined = min(to_x.undetermined, to_y.undetermined)
    return Association(statistic, len(q), effect, undetermined, p_value)


class Design:
    """The features of the conditioning variables: their contrasts, and products if interacting."""

    def __init__(self, marginals, given, interacting):
        self.marginals, self.given = marginals, given
        self.subsets = [(v,) for v in given]
        if interacting and len(given) == 2:
            self.subsets.append(given)
        self.exact = len(given) < 2 or len(self.subsets) == 3
        self.p = marginals.table(*given).ravel()
        self.features = self._features(self.subsets)
        self.mean = _flat([marginals.moment(*subset).values for subset in self.subsets])
        centred = self.features - self.p @ self.features
        self.covariance = (centred * self.p[:, None]).T @ centred
        self.h = self._h()

    def _features(self, subsets) -> np.ndarray:
        """Products of contrasts, a row for each cell of the conditioning variables."""
        levels = [self.marginals.levels[v] for v in self.given]
        cells = np.indices(levels).reshape(len(levels), len(self.p))
        of = {v: contrasts(k)[at] for v, k, at in zip(self.given, levels, cells, strict=True)}
        columns = [np.ones((len(self.p), 0))]
        for first, *rest in subsets:
            both = of[first]
            for v in rest:
                both = np.einsum("ca,cb->cab", both, of[v]).reshape(len(both), -1)
            columns.append(both)
        return np.hstack(columns)

    def _h(self) -> np.ndarray:
        """What the noise of the conditioning variables' own moments does to each of their cells."""
        columns = [np.empty((len(self.p), 0))]
        for subset in [*subsets_of(self.given)][1:]:
            share = math.prod(self.marginals.levels[v] for v in subset) / len(self.p)
            deviation = self.marginals.moment(*subset).deviation
            columns.append(self._features([subset]) * share * deviation)
        return np.hstack(columns)

    def regress(self, x):
        """A variable's contrasts regressed on the features.

        ``mu`` and ``covariances`` have a row for each cell of the conditioning variables: what the
        regression gives there, and the covariance of the variable there, if that is exact.
        """
        own, variance = self.marginals.moment(x), self.marginals.variance(x)
        size, levels = len(own.values), self.marginals.levels[x]
        moments = [self.marginals.moment(x, *subset) for subset in self.subsets]
        parts = [m.values.reshape(size, math.prod(m.values.shape[1:])) for m in moments]
        products = np.hstack([np.empty((size, 0)), *parts])
        noises = zip(moments, parts, strict=True)
        deviations = _flat([np.full(part.shape[1], m.deviation) for m, part in noises])
        cross = products - np.outer(own.values, self.mean)
        values, vectors = np.linalg.eigh(self.covariance)
        values = np.maximum(values, deviations.max(initial=1e-9))  # known with this noise
        slope = cross @ (vectors / values) @ vectors.T
        residual = _positive_part(variance - cross @ slope.T)
        intercept, whole = own.values - slope @ self.mean, np.trace(variance)
        table = self.marginals.table(x, *self.given).reshape(levels, -1) if self.exact else None
        covariances = self.exact and covariance_of_contrasts((table / table.sum(0)).T, levels)
        known = {"mean": own.values, "deviation": own.deviation, "deviations": deviations}
        known |= {"cross": cross, "slope": slope, "intercept": intercept, "residual": residual}
        known |= {"mu": intercept + self.features @ slope.T, "covariances": covariances}
        undetermined = np.trace(residual) / whole if whole > 0 else 1.0
        return SimpleNamespace(undetermined=undetermined, **known)

    def average(self, to_x, to_y, products) -> np.ndarray:
        """Average conditional covariance; the mean products are those of the two variables."""
        left = products - np.outer(to_x.mean, to_y.mean) - to_x.cross @ to_y.slope.T
        return left - to_x.slope @ (to_y.cross - to_y.slope @ self.covariance).T

    def spread(self, to_x, to_y) -> np.ndarray:
        """n times the sampling variance of the average conditional covariance."""
        if not self.exact:
            return np.kron(to_x.residual, to_y.residual)
        products = np.einsum("s,sab,scd->acbd", self.p, to_x.covariances, to_y.covariances)
        size = to_x.covariances.shape[1] * to_y.covariances.shape[1]
        return products.reshape(size, size)

    def noise(self, to_x, to_y, deviation) -> np.ndarray:
        """Privacy variance of the average conditional covariance, to first order."""
        through_x, through_y = _passed_on(to_x, to_y), _passed_on(to_y, to_x)
        one_x, one_y = np.eye(len(through_x)), np.eye(len(through_y))
        mu = np.einsum("sa,sb->sab", to_x.mu, to_y.mu).reshape(len(self.p), -1)
        of_given = self.h.T @ mu
        own = np.kron(one_x, deviation**2 * one_y + through_y)
        return own + np.kron(through_x, one_y) + of_given.T @ of_given


def _passed_on(to_one, to_other) -> np.ndarray:
    """What slope and intercept of one variable make of the other's noise."""
    through = (to_one.slope * to_other.deviations**2) @ to_one.slope.T
    return through + to_other.deviation**2 * np.outer(to_one.intercept, to_one.intercept)


def _flat(arrays) -> np.ndarray:
    return np.concatenate([np.empty(0), *map(np.ravel, arrays)])


def _positive_part(matrix) -> np.ndarray:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def _quadratic(matrix, vector, ridge) -> float:
    """vector' matrix^-1 vector with a ridge."""
    return vector @ np.linalg.solve(matrix + ridge * np.eye(len(vector)), vector)
