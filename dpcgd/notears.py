"""NOTEARS over means of the data: exact, from one noisy Gram matrix, or a noisy gradient a step."""

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from dpcgd.datasets import Dataset
from dpcgd.graphs import CPDAG
from dpcgd.measurements import Measurements
from dpcgd.mechanisms import gaussian
from dpcgd.privacy import Budget, Event, Ledger, Spent, gaussian_multiplier
from dpcgd.search import Release
from dpcgd.sieve import open_run
from dpcgd.statistics import second_moments, second_moments_sensitivity

__all__ = [
    "acyclic_graph",
    "acyclicity",
    "additive",
    "clipped_gradient",
    "descend",
    "exponential",
    "fit",
    "gram_notears",
    "multiplicative",
    "noleaks",
    "notears",
    "published_gradient",
    "rising",
    "squared_loss",
    "uniform",
]

L1, THRESHOLD = 0.02, 0.05
"""Chosen on parts of networks, and on linear models, that are not in the book: chapter 07."""

FLOOR = 3
"""No variance is taken for less than this many deviations of its noise."""

SCALING = 0.1
"""Share of the budget that :func:`noleaks` spends on means and variances."""

Schedule = Callable[[float, int], np.ndarray]
Gradient = Callable[[np.ndarray], np.ndarray]


def acyclicity(weights: np.ndarray) -> tuple[float, np.ndarray]:
    """How cyclic a weighted graph is, and the gradient of that.

    Parameters
    ----------
    weights : array, shape (d, d)
        ``weights[a, b]`` is the effect of a on b.

    Returns
    -------
    float
        tr exp(W o W) - d: 0 if and only if there is no cycle (Zheng et al. 2018).
    array, shape (d, d)
        exp(W o W)^T o 2 W.

    Examples
    --------
    >>> acyclicity(np.array([[0.0, 1.0], [0.0, 0.0]]))[0]
    0.0
    >>> round(acyclicity(np.array([[0.0, 1.0], [1.0, 0.0]]))[0], 3)
    1.086
    """
    from scipy.linalg import expm  # heavy, and only needed here

    with np.errstate(over="ignore", invalid="ignore"):
        grown = expm(weights * weights)
        return float(np.trace(grown)) - len(weights), 2 * weights * grown.T


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

    Examples
    --------
    >>> squared_loss(np.array([[0.0, 0.5], [0.0, 0.0]]), np.array([[1.0, 0.5], [0.5, 1.0]]))[0]
    0.875
    """
    left = np.eye(len(weights)) - weights
    seen = gram @ left
    return 0.5 * float((left * seen).sum()), -seen


def fit(gram: np.ndarray, *, l1: float | np.ndarray = L1, tolerance: float = 1e-6) -> np.ndarray:
    """NOTEARS on a Gram matrix: the least loss plus l1 |W| without cycles, by augmented Lagrangian.

    Parameters
    ----------
    gram : array, shape (d, d)
        Positive semidefinite: a covariance or correlation matrix. How many records are behind it
        does not matter.
    l1 : float or array, shape (d, d)
        Penalty of each weight.
    tolerance : float
        Of the acyclicity.

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
    Sees the matrix alone: post-processing if that was released.

    Notes
    -----
    Zheng et al. (2018), algorithm 1, with L-BFGS-B on W = W+ - W-. It finds a stationary point.

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
        value = loss + multiplier * cyclic + penalty / 2 * cyclic**2
        return value, slope + (multiplier + penalty * cyclic) * away

    weights, cyclic, multiplier, penalty = np.zeros_like(gram), math.inf, 0.0, 1.0
    while cyclic > tolerance and penalty < 1e16:
        smooth = functools.partial(lagrangian, multiplier=multiplier, penalty=penalty)
        weights, before = _least(smooth, weights, l1), cyclic
        cyclic, _ = acyclicity(weights)
        multiplier += penalty * cyclic
        if cyclic > before / 4:
            penalty *= 10
    return weights


def _least(smooth, start, l1, iterations=1000) -> np.ndarray:
    """Minimise smooth(W) + sum of l1 |W| from a start, over W with a zero diagonal."""
    from scipy.optimize import minimize  # heavy, and only needed here

    free = ~np.eye(len(start), dtype=bool)
    price = np.broadcast_to(l1, start.shape)[free]

    def objective(parts):
        up, down = np.split(parts, 2)
        weights = np.zeros_like(start)
        weights[free] = up - down
        value, slope = smooth(weights)
        if not math.isfinite(value):  # a line search went too far
            return 1e100, np.zeros_like(parts)
        slope = slope[free]
        return value + price @ (up + down), np.concatenate([price + slope, price - slope])

    found = minimize(
        objective,
        np.concatenate([start[free], -start[free]]).clip(0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * len(price)),
        options={"ftol": 1e-7, "maxiter": iterations},
    )
    weights = np.zeros_like(start)
    weights[free] = np.subtract(*np.split(found.x, 2))
    return weights


def descend(
    gradient: Gradient,
    d: int,
    *,
    steps: int,
    step_size: float | None = None,
    l1: float | np.ndarray = L1,
) -> np.ndarray:
    """The same problem where only noisy gradients of the loss can be had, and no values.

    Parameters
    ----------
    gradient : callable
        From weights to the gradient of the loss there, plus noise. It is called once a step.
    d : int
        Variables.
    steps : int
    step_size : float, optional
        1 / d unless given: for columns of unit variance d bounds the largest eigenvalue of the Gram
        matrix, so that no line search is needed.
    l1 : float or array, shape (d, d)

    Returns
    -------
    array, shape (d, d)
        Weights, the mean of the last quarter of the steps.

    Privacy
    -------
    Sees the gradients alone: post-processing if those were released.

    Notes
    -----
    A step minimises the loss's model <g, W> + |W - W_k|^2 / (2 step_size) plus the penalties l1 |W|
    and p_k h(W), with p_k growing from 1 to 1000: a proximal gradient method whose proximal part is
    free.

    Examples
    --------
    >>> gram = np.array([[1.0, 0.8], [0.8, 5.0]]) / 3
    >>> found = descend(lambda weights: squared_loss(weights, gram)[1], 2, steps=50)
    >>> print(found.round(1))
    [[0.  0.7]
     [0.  0. ]]
    """
    step_size = 1 / d if step_size is None else step_size

    def near(weights, target, penalty):
        cyclic, away = acyclicity(weights)
        apart = (weights - target) / step_size
        value = 0.5 * float((apart * (weights - target)).sum()) + penalty * cyclic
        return value, apart + penalty * away

    weights, path = np.zeros((d, d)), []
    for penalty in np.geomspace(1, 1000, steps):
        target = weights - step_size * gradient(weights)
        np.fill_diagonal(target, 0)
        smooth = functools.partial(near, target=target, penalty=penalty)
        weights = _least(smooth, weights, l1, iterations=30)
        path.append(weights)
    return np.mean(path[-max(1, steps // 4) :], axis=0)


def acyclic_graph(
    weights: np.ndarray, threshold: float = THRESHOLD, variables: Sequence | None = None
) -> nx.DiGraph:
    """The arcs of at least a threshold, less the weakest on a cycle until none is left.

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
    strength = np.abs(weights)
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    arcs = [(a, b) for a, b in np.argwhere(strength >= threshold) if strength[a, b] > 0]
    graph.add_edges_from((names[a], names[b]) for a, b in arcs)
    for a, b in sorted(arcs, key=lambda arc: strength[tuple(arc)]):
        if nx.is_directed_acyclic_graph(graph):
            break
        if nx.has_path(graph, names[b], names[a]):
            graph.remove_edge(names[a], names[b])
    return graph


def _measured(data: Dataset | Measurements) -> Measurements:
    return data if isinstance(data, Measurements) else Measurements.from_codes(data)


def _squares_known(data: Dataset | Measurements) -> np.ndarray:
    """Which scaled columns are -1 or 1 for everybody."""
    coded = isinstance(data, Dataset)
    return np.array(data.cardinalities) == 2 if coded else np.zeros(data.d, bool)


def _divisors(variances, half_widths, standardized) -> np.ndarray:
    """Of scaled columns: each one's deviation, or in original units the smallest of all."""
    if standardized:
        return np.sqrt(variances)
    return np.sqrt(np.min(variances * half_widths**2)) / half_widths


def notears(
    data: Dataset | Measurements,
    *,
    l1: float = L1,
    threshold: float = THRESHOLD,
    standardized: bool = True,
) -> Release:
    """NOTEARS without privacy.

    Parameters
    ----------
    data : Dataset or Measurements
        Codes of a Dataset are taken for numbers.
    l1 : float
        Penalty of a weight, where variances are 1, or the smallest of them is.
    threshold : float
        Weaker arcs are dropped.
    standardized : bool
        Give every column variance 1. Otherwise the ratios of variances stay: right where all
        noise variances are equal, for then they tell directions.

    Returns
    -------
    Release
        The class of the acyclic graph found. Its guarantee is "none".

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
    started = time.perf_counter()
    _check(l1=l1, threshold=threshold)
    moments = second_moments(_measured(data).scaled, bound=math.sqrt(data.d))
    weights = _fitted(moments, 0.0, data, l1, standardized)
    nothing = Ledger((), Spent(math.inf, 1.0), None, "no privacy")
    return _release(weights, threshold, data, nothing, "none", started)


def gram_notears(
    data: Dataset | Measurements,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    l1: float = L1,
    threshold: float = THRESHOLD,
    standardized: bool = True,
    row_norm: float | None = None,
) -> Release:
    """NOTEARS on means and mean products that are released once, with Gaussian noise.

    Parameters
    ----------
    data : Dataset or Measurements
    epsilon, delta : float
        The guarantee.
    rng : numpy.random.Generator
        Seeded noise, for experiments.
    secure : bool
        Floating-point-safe noise without a seed, for real releases.
    l1 : float
        Penalty of a weight; at least the deviation of the noise in the weight's correlation.
    threshold, standardized
        As for :func:`notears`.
    row_norm : float, optional
        Rows, scaled to [-1, 1], are shortened to this norm. Not at all unless given.

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
    numbers of L2 sensitivity :func:`dpcgd.statistics.second_moments_sensitivity`; the rest is
    post-processing. Chapter 07.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("earthquake", rng=np.random.default_rng(0))
    >>> release = gram_notears(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.guarantee, len(release.ledger.events), release.ledger.spent <= (1.0, 1e-6)
    ('proved', 1, True)
    """
    started = time.perf_counter()
    _check(l1=l1, threshold=threshold)
    full = math.sqrt(data.d)
    bound = full if row_norm is None else row_norm
    if not bound > 0:
        raise ValueError(f"row_norm must be above 0, not {row_norm}")
    account, noise = open_run(data, epsilon, delta, rng, secure)
    moments, deviation = _released_moments(data, bound, account, noise)
    if bound >= full:  # no row was shortened
        known = 1 + np.flatnonzero(_squares_known(data))
        moments[known, known] = 1
    weights = _fitted(moments, deviation, data, l1, standardized)
    return _release(weights, threshold, data, account.ledger, "proved", started, secure)


def _released_moments(data, bound, account, noise) -> tuple[np.ndarray, float]:
    """Noisy second moments, symmetric, and the deviation of their noise."""
    upper = tuple(part[1:] for part in np.triu_indices(data.d + 1))  # the corner is 1
    sensitivity = second_moments_sensitivity(data.n, data.d, bound=bound)
    multiplier = _multiplier(account.rho)
    noisy = gaussian(
        lambda: second_moments(_measured(data).scaled, bound=bound)[upper],
        sensitivity=sensitivity,
        noise_multiplier=multiplier,
        account=account,
        noise=noise,
    )
    moments = np.ones((data.d + 1, data.d + 1))
    moments[upper] = noisy
    moments.T[upper] = noisy
    return moments, multiplier * sensitivity


def _multiplier(rho: float) -> float:
    """Of a Gaussian mechanism that costs a rho, or just less, for rounding."""
    return math.sqrt(0.5 / rho) * (1 + 1e-9)


def _fitted(moments, deviation, data, l1, standardized) -> np.ndarray:
    """NOTEARS on second moments whose noise has this deviation."""
    covariance, spread = _covariance(moments, deviation)
    divisors = _divisors(np.diag(covariance), _measured(data).half_widths, standardized)
    units = np.outer(divisors, divisors)
    spread = spread / units
    return fit(_positive(covariance / units, spread.mean()), l1=np.maximum(l1, spread))


def _covariance(moments, deviation) -> tuple[np.ndarray, np.ndarray]:
    """Covariance with floors under its variances, and the deviation of the noise in its entries."""
    mean = moments[0, 1:].clip(-1, 1)
    covariance = moments[1:, 1:] - np.outer(mean, mean)
    variances = np.maximum(np.diag(covariance), FLOOR * deviation + 1e-12)
    np.fill_diagonal(covariance, variances)
    most = np.sqrt(np.outer(variances, variances))
    spread = deviation * np.sqrt(1 + mean[:, None] ** 2 + mean**2)
    return covariance.clip(-most, most), spread


def _positive(gram: np.ndarray, least: float) -> np.ndarray:
    """The matrix with its eigenvalues raised to at least this, and its diagonal as it was."""
    values, vectors = np.linalg.eigh(gram)
    raised = (vectors * np.maximum(values, least)) @ vectors.T
    back = np.sqrt(np.diag(gram) / np.diag(raised))
    return raised * np.outer(back, back)


def clipped_gradient(
    rows: np.ndarray, at: np.ndarray, *, clip: float, times: np.ndarray | None = None
) -> np.ndarray:
    """Mean over the records of their gradients of the loss, each shortened to a norm.

    Parameters
    ----------
    rows : array, shape (k, d)
    at : array, shape (d, d)
        Where: weights of a graph.
    clip : float
        Largest norm of one record's gradient off the diagonal; public.
    times : array, shape (k,), optional
        How many records each row stands for; 1 unless given.

    Returns
    -------
    array, shape (d, d)
        With a zero diagonal.

    Privacy
    -------
    Replace-one L2 sensitivity 2 clip / n. Chapter 07.

    Notes
    -----
    The gradient of one record x with residual r = x - W^T x is -x r^T, so that one matrix product
    sums them all.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0], [1.0, -1.0]])
    >>> clipped_gradient(rows, np.zeros((2, 2)), clip=10.0)
    array([[ 0. , -0.5],
           [-0.5,  0. ]])
    """
    times = np.ones(len(rows)) if times is None else times
    left = rows - rows @ at
    squares, left_squares = rows * rows, left * left
    norm = squares.sum(1) * left_squares.sum(1) - (squares * left_squares).sum(1)
    shorter = clip / np.maximum(np.sqrt(norm.clip(0)), clip)
    return _without_diagonal(-(rows.T * (times * shorter)) @ left / times.sum())


def published_gradient(
    rows: np.ndarray, at: np.ndarray, *, clip: float, times: np.ndarray | None = None
) -> np.ndarray:
    """The mean gradient with its entries clipped, as published.

    Parameters
    ----------
    rows, at, clip, times
        As for :func:`clipped_gradient`; `clip` is the largest entry of the mean.

    Privacy
    -------
    None proved: claimed is a sensitivity of sqrt(d (d - 1)) clip / n, and one record can move the
    mean by more. Chapter 07.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0], [1.0, -1.0]])
    >>> published_gradient(rows, np.zeros((2, 2)), clip=0.2)
    array([[ 0. , -0.2],
           [-0.2,  0. ]])
    """
    times = np.ones(len(rows)) if times is None else times
    mean = -(rows.T * times) @ (rows - rows @ at) / times.sum()
    return _without_diagonal(mean.clip(-clip, clip))


def _without_diagonal(square: np.ndarray) -> np.ndarray:
    np.fill_diagonal(square, 0)
    return square


def uniform(total: float, steps: int) -> np.ndarray:
    """The same epsilon for every step.

    Examples
    --------
    >>> uniform(1.0, 4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    return np.full(steps, total / steps)


def additive(total: float, steps: int) -> np.ndarray:
    """Epsilons that grow linearly, to almost twice the first.

    Examples
    --------
    >>> additive(1.1, 2)
    array([0.44, 0.66])
    """
    return _in_all(total, 1 + np.arange(steps) / steps)


def exponential(total: float, steps: int) -> np.ndarray:
    """Epsilons that grow geometrically, to almost e times the first.

    Examples
    --------
    >>> exponential(1.0, 2).round(3)
    array([0.378, 0.622])
    """
    return _in_all(total, np.exp(np.arange(steps) / steps))


def _in_all(total, shape) -> np.ndarray:
    return total * shape / shape.sum()


def multiplicative(total: float, steps: int) -> np.ndarray:
    """CURATE's choice, e^(1 + k / steps) from a first epsilon e: it falls where that is below 1.

    Examples
    --------
    >>> multiplicative(0.75, 2).round(3)
    array([0.449, 0.301])
    """
    from scipy.optimize import brentq  # heavy, and only needed here

    exponents = 1 + np.arange(steps) / steps
    low, high = min(1.0, total / steps), max(1.0, total)
    first = brentq(lambda e: (e**exponents).sum() - total, low, high, xtol=1e-300)
    return _in_all(total, first**exponents)


def rising(total: float, steps: int) -> np.ndarray:
    """The epsilons of :func:`multiplicative` from the smallest to the largest.

    Examples
    --------
    >>> rising(0.75, 2).round(3)
    array([0.301, 0.449])
    """
    return np.sort(multiplicative(total, steps))


@dataclass
class _PairsAddedUp:
    """An account as published: (epsilon, delta) of every step, summed, whatever was drawn."""

    claimed: Spent
    events: list[Event] = field(default_factory=list)

    def spend(self, *events: Event):
        self.events.extend(events)

    @property
    def ledger(self) -> Ledger:
        accountant = "pairs added up: claimed, not proved"
        return Ledger(tuple(self.events), self.claimed, None, accountant)


def noleaks(
    data: Dataset | Measurements,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    steps: int = 30,
    clip: float | None = None,
    schedule: Schedule = uniform,
    l1: float = L1,
    threshold: float = THRESHOLD,
    standardized: bool = True,
    published: bool = False,
) -> Release:
    """NoLeaks and the score-based CURATE: NOTEARS that sees a noisy gradient in every step.

    Parameters
    ----------
    data : Dataset or Measurements
    epsilon, delta : float
        The guarantee; claimed for the published version.
    rng, secure
        As for :func:`gram_notears`.
    steps : int
        Gradients.
    clip : float, optional
        Largest norm of one record's gradient, where columns have a variance of 1 on average; 2 d
        unless given. In the published version the largest entry of the mean gradient; 1 unless
        given.
    schedule : callable
        From a total epsilon and the number of steps to the epsilon of each: :func:`uniform`,
        :func:`additive`, :func:`exponential`, :func:`multiplicative`, :func:`rising`. Public. A
        step's share of the concentrated budget is in proportion to the square.
    l1, threshold, standardized
        As for :func:`notears`.
    published : bool
        Run the published version instead: the mean is clipped, the data's own means and
        variances scale the columns, pairs are added up.

    Returns
    -------
    Release
        Its guarantee is "proved", or "claimed, not proved" for the published version.

    Raises
    ------
    ValueError
        If the budget, the noise source or a setting is unusable; nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: Gaussian mechanisms through
    a zCDP filter, a first one for means and variances and one a step. Chapter 07. None with
    ``published=True``.

    Notes
    -----
    Ma et al. (2022); Bhattacharjee and Tandon (2024), algorithm 2. Both search a step size on the
    data; :func:`descend` needs none.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("earthquake", rng=np.random.default_rng(0))
    >>> release = noleaks(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.guarantee, len(release.ledger.events), release.ledger.spent <= (1.0, 1e-6)
    ('proved', 31, True)
    """
    started = time.perf_counter()
    _check(l1=l1, threshold=threshold)
    clip = (1.0 if published else 2 * data.d) if clip is None else clip
    if steps < 1 or not clip > 0:
        raise ValueError(f"steps must be at least 1 and clip above 0, not {steps} and {clip}")
    account, noise = open_run(data, epsilon, delta, rng, secure, published)
    shares = np.asarray(schedule(epsilon, steps), float)
    if shares.shape != (steps,) or not (np.isfinite(shares) & (shares > 0)).all():
        raise ValueError(f"a schedule must give each of the {steps} steps an epsilon above 0")
    rows, times = _distinct(data)
    if published:
        account = _PairsAddedUp(Spent(float(shares.sum()), delta))
        centre, variances = _scale(_means(rows, times), data, 0.0)
        multipliers = _for_pairs(shares, delta / steps)
        mean, moves = published_gradient, math.sqrt(data.d * (data.d - 1)) * clip / data.n
    else:
        centre, variances = _released_scale(rows, times, data, account, noise)
        multipliers = _for_shares(account.share(1), shares)
        mean, moves = clipped_gradient, 2 * clip / data.n
    divisors = _divisors(variances, _measured(data).half_widths, standardized)
    mean_variance = np.mean(variances / divisors**2)  # brought to 1, for steps and clip
    rows = (rows - centre) / (divisors * math.sqrt(mean_variance))

    def gradient(at):
        return gaussian(
            lambda: mean(rows, at, clip=clip, times=times),
            sensitivity=moves,
            noise_multiplier=next(multipliers),
            account=account,
            noise=noise,
        )

    weights = descend(gradient, data.d, steps=steps, l1=l1 / mean_variance)
    guarantee = "claimed, not proved" if published else "proved"
    return _release(weights, threshold, data, account.ledger, guarantee, started, secure)


def _distinct(data: Dataset | Measurements) -> tuple[np.ndarray, np.ndarray]:
    """Scaled rows and how many records each stands for; of coded data each row but once."""
    if isinstance(data, Measurements) or math.prod(data.cardinalities) >= 2**63:
        return _measured(data).scaled, np.ones(data.n)
    cells = np.ravel_multi_index(data.codes.T, data.cardinalities)
    _, first, times = np.unique(cells, return_index=True, return_counts=True)
    rows = Dataset(data.codes[first], data.levels)
    return _measured(rows).scaled, times.astype(float)


def _for_shares(rho: float, shares: np.ndarray) -> Iterator[float]:
    """Noise multipliers of steps that share a rho in proportion to the squares of their shares."""
    parts = np.square(np.asarray(shares, float) / np.max(shares))
    return map(_multiplier, rho * parts / parts.sum())


def _for_pairs(epsilons: np.ndarray, delta: float) -> Iterator[float]:
    """Noise multipliers of steps that are each (epsilon, delta)-private."""
    return (gaussian_multiplier(Budget(float(epsilon), delta)) for epsilon in epsilons)


def _means(rows, times) -> np.ndarray:
    """Of the columns, then of their squares."""
    return times @ np.concatenate([rows, rows**2], axis=1) / times.sum()


def _released_scale(rows, times, data, account, noise) -> tuple[np.ndarray, np.ndarray]:
    """Noisy means and variances of the columns; they move by at most 2 sqrt(d) / n (chapter 07)."""
    sensitivity = 2 * math.sqrt(data.d) / data.n
    multiplier = _multiplier(account.share(SCALING))
    noisy = gaussian(
        lambda: _means(rows, times),
        sensitivity=sensitivity,
        noise_multiplier=multiplier,
        account=account,
        noise=noise,
    )
    return _scale(noisy, data, multiplier * sensitivity)


def _scale(means, data, deviation) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of columns, where the means of their squares may be known."""
    mean, square = np.split(means, 2)
    mean, square = mean.clip(-1, 1), np.where(_squares_known(data), 1.0, square)
    return mean, np.maximum(square - mean**2, FLOOR * deviation + 1e-12)


def _check(**settings):
    for name, value in settings.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and not negative, but is {value}")


def _release(weights, threshold, data, ledger, guarantee, started, secure=False) -> Release:
    graph = acyclic_graph(weights, threshold, data.variables)
    return Release(
        graph=CPDAG.from_dag(graph),
        ledger=ledger,
        guarantee=guarantee,
        separating_sets={},
        tests=len(ledger.events),
        stopped_early=False,
        seconds=None if secure else time.perf_counter() - started,
    )
