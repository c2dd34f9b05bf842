"""NOTEARS from a Gram matrix: exact, or released once with noise."""

import functools
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Unpack

import networkx as nx
import numpy as np
from scipy.linalg import expm
from scipy.optimize import minimize

from dpcgd.datasets.dataset import Dataset
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.release import Release
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.mechanisms import gaussian_for_rho
from dpcgd.privacy.run import Run, RunKeywords, open_run, run_without_privacy, takes_keywords
from dpcgd.statistics.moment_matrices import second_moments, second_moments_sensitivity

__all__ = ["acyclic_graph", "acyclicity", "fit", "gram_notears", "notears", "squared_loss"]

L1, THRESHOLD = 0.02, 0.05
"""Defaults, chosen on networks and linear models that are not in the book."""


TIED = 1e-3
"""Largest relative difference of the weights of two directions that count as tied."""


FLOOR = 3
"""The least variance, in standard deviations of its noise."""


def acyclicity(weights: np.ndarray) -> tuple[float, np.ndarray]:
    """The acyclicity function of a weighted graph, and its gradient.

    Parameters
    ----------
    weights : array, shape (d, d)
        ``weights[a, b]`` is the effect of a on b.

    Returns
    -------
    float
        tr exp(W o W) - d: 0 if and only if there is no cycle (Zheng et al. 2018). Infinite if it is
        too large for doubles.
    array, shape (d, d)
        exp(W o W)^T o 2 W; zeros if the value is infinite.

    Notes
    -----
    Chapter 07, :prf:ref:`thm-acyclicity`.

    Examples
    --------
    >>> acyclicity(np.array([[0.0, 1.0], [0.0, 0.0]]))[0]
    0.0
    >>> round(acyclicity(np.array([[0.0, 1.0], [1.0, 0.0]]))[0], 3)
    1.086
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squares = weights * weights
        grown = expm(squares) if np.isfinite(squares).all() else np.full_like(squares, math.inf)
        value, slope = float(np.trace(grown)) - len(weights), 2 * weights * grown.T
    return (value, slope) if np.isfinite(slope).all() else (math.inf, np.zeros_like(slope))


def squared_loss(weights: np.ndarray, gram: np.ndarray) -> tuple[float, np.ndarray]:
    """Half the mean squared residual of records with this Gram matrix, and its gradient.

    Parameters
    ----------
    weights, gram : array, shape (d, d)

    Returns
    -------
    float
        tr((I - W)^T G (I - W)) / 2.
    array, shape (d, d)
        -G (I - W).

    Notes
    -----
    Chapter 07, :prf:ref:`thm-acyclicity`.

    Examples
    --------
    >>> squared_loss(np.array([[0.0, 0.5], [0.0, 0.0]]), np.array([[1.0, 0.5], [0.5, 1.0]]))[0]
    0.875
    """
    left = np.eye(len(weights)) - weights
    with np.errstate(over="ignore", invalid="ignore"):  # a line search may try any weights
        seen = gram @ left
        return 0.5 * float((left * seen).sum()), -seen


def fit(gram: np.ndarray, *, l1: float | np.ndarray = L1, tolerance: float = 1e-6) -> np.ndarray:
    """NOTEARS on a Gram matrix: least loss plus ``l1 |W|`` without cycles, by augmented Lagrangian.

    Parameters
    ----------
    gram : array, shape (d, d)
        Positive semidefinite: a covariance or correlation matrix, of any number of records.
    l1 : float or array, shape (d, d)
        Penalty of each weight.
    tolerance : float
        Tolerance of the acyclicity.

    Returns
    -------
    array, shape (d, d)
        Weights; their diagonal is 0.

    Raises
    ------
    ValueError
        If the matrix is not square and finite or a penalty is negative.

    Privacy
    -------
    Uses the matrix only, so it is post-processing if the matrix was released.

    Notes
    -----
    Zheng et al. (2018), algorithm 1, with L-BFGS-B on W = W+ - W-. It finds a stationary point.
    Columns of equal variance explain each other equally well. If both directions of a pair have
    equal weights, neither wins, and the penalty shrinks both to 0. So before each step such a pair
    keeps one direction: the one away from the column that is more correlated with all others.

    Examples
    --------
    >>> print(fit(np.array([[1.0, 2.0], [2.0, 5.0]]), l1=0.1).round(1))
    [[0.  1.9]
     [0.  0. ]]
    """
    gram = np.asarray(gram, float)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not np.isfinite(gram).all():
        raise ValueError(f"a Gram matrix is square and finite; this has shape {gram.shape}")
    if np.min(l1) < 0:
        raise ValueError(f"l1 must not be negative, but is {np.min(l1)}")

    def lagrangian(weights, multiplier, penalty):
        (loss, slope), (cyclic, away) = squared_loss(weights, gram), acyclicity(weights)
        value = loss + multiplier * cyclic + penalty / 2 * cyclic * cyclic  # not **, which raises
        with np.errstate(over="ignore", invalid="ignore"):
            return value, slope + (multiplier + penalty * cyclic) * away

    weights, cyclic, multiplier, penalty = np.zeros_like(gram), math.inf, 0.0, 1.0
    if len(gram) < 2:  # no weights to fit
        return weights
    while cyclic > tolerance and penalty < 1e16:
        smooth = functools.partial(lagrangian, multiplier=multiplier, penalty=penalty)
        weights, before = least_from(smooth, _without_ties(weights, gram), l1), cyclic
        cyclic, _ = acyclicity(weights)
        multiplier += penalty * cyclic
        if cyclic > before / 4:
            penalty *= 10
    return weights


def _without_ties(weights, gram) -> np.ndarray:
    """The weights, with one direction of each tied pair set to 0."""
    size, correlated = np.abs(weights), np.abs(gram).sum(axis=0).round(6)
    rank = np.argsort(np.argsort(-correlated, kind="stable"))
    tied = np.abs(size - size.T) <= TIED * size
    return np.where(tied & (rank[:, None] > rank), 0.0, weights)


def least_from(smooth, start, l1, iterations=1000) -> np.ndarray:
    """Minimise smooth(W) + sum of l1 |W| from a start, over W with a zero diagonal."""
    free = ~np.eye(len(start), dtype=bool)
    price = np.broadcast_to(l1, start.shape)[free]
    beyond = 1e100 * max(1.0, abs(smooth(start)[0]))

    def weights_of(parts):
        weights = np.zeros_like(start)
        weights[free] = np.subtract(*parts.reshape(2, -1))
        return weights

    def objective(parts):
        value, slope = smooth(weights_of(parts))
        if not (math.isfinite(value) and np.isfinite(slope).all()):  # a line search went too far
            return beyond, np.zeros_like(parts)
        slope = slope[free]
        paid = price @ np.add(*parts.reshape(2, -1))
        return value + paid, np.concatenate([price + slope, price - slope])

    optimum = minimize(
        objective,
        np.concatenate([start[free], -start[free]]).clip(0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * len(price)),
        # stopped earlier, runs that differ in the last digit end in different optima
        options={"ftol": 1e-9, "gtol": 1e-6, "maxiter": iterations},
    )
    return weights_of(optimum.x)


def acyclic_graph(
    weights: np.ndarray, threshold: float = THRESHOLD, variables: Sequence | None = None
) -> nx.DiGraph:
    """The arcs of at least a threshold; the weakest arc of a cycle is removed until none is left.

    Parameters
    ----------
    weights : array, shape (d, d)
    threshold : float
        Public.
    variables : sequence, optional
        Names; column numbers unless given.

    Examples
    --------
    >>> acyclic_graph(np.array([[0, 0.9, 0.01], [0.3, 0, 0.5], [0, 0, 0]]), 0.1).edges
    OutEdgeView([(0, 1), (1, 2)])
    """
    names = range(len(weights)) if variables is None else variables
    strong = np.where(np.abs(weights) >= threshold, np.abs(weights), 0.0)
    graph = nx.from_numpy_array(strong, create_using=nx.DiGraph)
    graph = nx.relabel_nodes(graph, dict(enumerate(names)))
    for a, b, _ in sorted(graph.edges(data="weight"), key=itemgetter(2)):
        if nx.has_path(graph, b, a):
            graph.remove_edge(a, b)
    return graph


def squares_known(data: Dataset) -> np.ndarray:
    """Which scaled columns are -1 or 1 in all records."""
    return np.array(data.cardinalities) == 2


def divisors_of(variances, data, standardized) -> np.ndarray:
    """Units of scaled columns: each column's deviation, or the smallest one in original units."""
    if standardized:
        return np.sqrt(variances)
    return np.sqrt(np.min(variances * data.half_widths**2)) / data.half_widths


def notears(
    data: Dataset, *, l1: float = L1, threshold: float = THRESHOLD, standardized: bool = True
) -> Release:
    """NOTEARS without privacy.

    Parameters
    ----------
    data : Dataset
        Data set of numbers; the level numbers of categories are used as numbers.
    l1 : float
        Penalty of a weight, after scaling to variances of 1, or to a smallest variance of 1.
    threshold : float
        Weaker arcs are dropped.
    standardized : bool
        Scale every column to variance 1. Otherwise the ratios of variances are kept, which is right
        if all noise variances are equal, because variances then reveal directions.

    Returns
    -------
    Release
        The CPDAG of the acyclic graph. Its guarantee is "none".

    Raises
    ------
    ValueError
        If a setting is negative.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("earthquake", rng=np.random.default_rng(0))
    >>> round(notears(data).graph.skeleton_f1(data.truth), 2)
    0.89
    """
    run = run_without_privacy(data, numbers=True, records=True, l1=l1, threshold=threshold)
    moments = second_moments(data.scaled, bound=math.sqrt(data.d))
    weights = _fitted(moments, 0.0, data, l1, standardized)
    return release_by_weights(weights, threshold, run, data.variables)


def open_gaussian_run(data: Dataset, **settings: Any) -> Run:
    """Open a run on numbers with a Gaussian filter."""
    return open_run(data, account=GaussianFilter, numbers=True, records=True, **settings)


@takes_keywords
def gram_notears(
    data: Dataset,
    *,
    l1: float = L1,
    threshold: float = THRESHOLD,
    standardized: bool = True,
    row_norm: float | None = None,
    **shared: Unpack[RunKeywords],
) -> Release:
    """NOTEARS on means and mean products, which are released once with Gaussian noise.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        The guarantee.
    allow_delta : bool
        Allow a delta of 1/n or more. Delta is the smaller of 1e-6 and 1/(10 n) unless given.
    rng : numpy.random.Generator, optional
        Seeded noise, for experiments. Unless given, noise is safe in floating point and has no
        seed, as a real release needs it.
    secure : bool
        Refuse a seed.
    l1 : float
        Penalty of a weight. It is raised to the deviation of the noise in the weight's correlation
        where it is smaller.
    threshold, standardized
        As for :func:`notears`.
    row_norm : float, optional
        Rows, scaled to [-1, 1], are clipped to this norm. No clipping unless given.
    rows_per_person : int
        Rows that one person may have: a public bound, such as
        :func:`~dpcgd.datasets.columns.check_rows_per_person` checks. The guarantee is for
        all of them together.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        If the budget, the noise source or a setting is unusable; nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: one Gaussian mechanism on
    numbers of L2 sensitivity :func:`~dpcgd.statistics.moment_matrices.second_moments_sensitivity`;
    the rest is post-processing. Chapter 07, :prf:ref:`thm-gram-notears` and
    :prf:ref:`thm-second-moments`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("earthquake", rng=np.random.default_rng(0))
    >>> release = gram_notears(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.guarantee, len(release.ledger.events), release.ledger.spent <= (1.0, 1e-6)
    ('proved', 1, True)
    """
    settings: dict[str, Any] = {"l1": l1, "threshold": threshold, "row_norm": row_norm}
    settings["standardized"] = standardized
    by = ("gram_notears", "thm-gram-notears", "thm-second-moments")
    run = open_gaussian_run(data, by=by, **settings, **shared)
    full = math.sqrt(data.d)
    bound = full if row_norm is None else row_norm
    moments, deviation = released_moments(data, bound, run.account, run.noise)
    if bound >= full:  # no row was shortened
        known = 1 + np.flatnonzero(squares_known(data))
        moments[known, known] = 1
    weights = _fitted(moments, deviation, data, l1, standardized)
    return release_by_weights(weights, threshold, run, data.variables)


def released_moments(data, bound, account, noise) -> tuple[np.ndarray, float]:
    """Noisy second moments for the whole budget, symmetric, and the deviation of their noise."""
    upper = tuple(part[1:] for part in np.triu_indices(data.d + 1))  # the corner is 1
    noisy, deviation = gaussian_for_rho(
        lambda: second_moments(data.scaled, bound=bound)[upper],
        sensitivity=second_moments_sensitivity(data.n, data.d, bound=bound),
        rho=account.rho,
        account=account,
        noise=noise,
    )
    moments = np.ones((data.d + 1, data.d + 1))
    moments[upper] = noisy
    moments.T[upper] = noisy
    return moments, deviation


def _fitted(moments, deviation, data, l1, standardized) -> np.ndarray:
    """NOTEARS on second moments with noise of this deviation."""
    covariance, spread = _covariance(moments, deviation)
    divisors = divisors_of(np.diag(covariance), data, standardized)
    units = np.outer(divisors, divisors)
    spread = spread / units
    return fit(_positive(covariance / units, spread.mean()), l1=np.maximum(l1, spread))


def _covariance(moments, deviation) -> tuple[np.ndarray, np.ndarray]:
    """Covariance with a minimum for variances, and the deviation of the noise in its entries."""
    mean = moments[0, 1:].clip(-1, 1)
    covariance = moments[1:, 1:] - np.outer(mean, mean)
    variances = np.maximum(np.diag(covariance), FLOOR * deviation + 1e-12)
    np.fill_diagonal(covariance, variances)
    most = np.sqrt(np.outer(variances, variances))
    return covariance.clip(-most, most), deviation * np.sqrt(1 + mean[:, None] ** 2 + mean**2)


def _positive(gram: np.ndarray, least: float) -> np.ndarray:
    """The matrix with eigenvalues raised to a minimum, and with its old diagonal."""
    values, vectors = np.linalg.eigh(gram)
    raised = (vectors * np.maximum(values, least)) @ vectors.T
    back = np.sqrt(np.diag(gram) / np.diag(raised))
    return raised * np.outer(back, back)


def release_by_weights(weights, threshold: float, run: Run, variables: Sequence[str]) -> Release:
    """A release: the CPDAG of these weights, with the receipt of its run."""
    return Release(CPDAG.from_dag(acyclic_graph(weights, threshold, variables)), **run.receipt())
