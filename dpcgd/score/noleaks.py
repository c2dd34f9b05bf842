"""NoLeaks and the score-based CURATE: NOTEARS with one noisy gradient a step."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Unpack

import numpy as np

from dpcgd.datasets.counts import cell_numbers
from dpcgd.datasets.dataset import Dataset
from dpcgd.graphs.release import Release
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.mechanisms import gaussian, gaussian_for_rho
from dpcgd.privacy.run import RunKeywords, takes_keywords
from dpcgd.score import notears
from dpcgd.score.schedules import Schedule, uniform

__all__ = ["clipped_gradient", "descend", "noleaks"]

SCALING = 0.1
"""Share of the budget that :func:`noleaks` spends on means and variances."""


AT_ONCE = 1000
"""Number of records whose gradients are computed at once; they fit in the processor's cache."""


Gradient = Callable[[np.ndarray], np.ndarray]


def descend(
    gradient: Gradient, d: int, *, steps: int, l1: float | np.ndarray = notears.L1
) -> np.ndarray:
    """NOTEARS from noisy gradients of the loss only, without values of the loss.

    Parameters
    ----------
    gradient : callable
        Function from weights to the noisy gradient of the loss there. It is called once a step.
    d : int
        Variables.
    steps : int
    l1 : float or array, shape (d, d)

    Returns
    -------
    array, shape (d, d)
        Weights, the mean of the last quarter of the steps.

    Privacy
    -------
    Uses the gradients only, so it is post-processing if they were released.

    Notes
    -----
    A step of size s = 1 / d minimises the loss's model ``<g, W> + |W - W_k|^2 / (2 s)`` plus the
    penalties ``l1 |W|`` and p_k h(W), with p_k growing from 1 to 1000: a proximal gradient method,
    whose proximal part costs no budget. For columns of unit variance, d bounds the largest
    eigenvalue of the Gram matrix, so no line search is needed.

    Examples
    --------
    >>> from dpcgd.score.notears import squared_loss
    >>> gram = np.array([[1.0, 0.8], [0.8, 5.0]]) / 3
    >>> weights = descend(lambda weights: squared_loss(weights, gram)[1], 2, steps=50)
    >>> print(weights.round(1))
    [[0.  0.7]
     [0.  0. ]]
    """

    def near(weights, target, penalty):
        cyclic, away = notears.acyclicity(weights)
        apart = (weights - target) / (1 / d)
        value = 0.5 * float((apart * (weights - target)).sum()) + penalty * cyclic
        return value, apart + penalty * away

    weights, path = np.zeros((d, d)), []
    for penalty in np.geomspace(1, 1000, steps):
        target = weights - 1 / d * gradient(weights)
        np.fill_diagonal(target, 0)
        smooth = functools.partial(near, target=target, penalty=penalty)
        weights = notears.least_from(smooth, weights, l1, iterations=30)
        path.append(weights)
    return np.mean(path[-max(1, steps // 4) :], axis=0)


def clipped_gradient(
    rows: np.ndarray, weights: np.ndarray, *, clip: float, times: np.ndarray | None = None
) -> np.ndarray:
    """Mean over the records of their gradients of the loss, each clipped to a norm.

    Parameters
    ----------
    rows : array, shape (k, d)
    weights : array, shape (d, d)
        Weights at which the gradient is taken.
    clip : float
        Largest norm of one record's gradient, without the diagonal; public.
    times : array, shape (k,), optional
        Number of records that each row represents; 1 unless given.

    Returns
    -------
    array, shape (d, d)
        With a zero diagonal.

    Privacy
    -------
    Replace-one L2 sensitivity 2 clip / n. Chapter 07, :prf:ref:`thm-clipped-gradient`.

    Notes
    -----
    The gradient of one record x with residual r = x - W^T x is -x r^T, so one matrix product sums
    the gradients of all records.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0], [1.0, -1.0]])
    >>> clipped_gradient(rows, np.zeros((2, 2)), clip=10.0)
    array([[ 0. , -0.5],
           [-0.5,  0. ]])
    """
    times = np.ones(len(rows)) if times is None else times
    total = np.zeros_like(weights, dtype=float)
    for start in range(0, len(rows), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        x = rows[some].T
        left = x - weights.T @ x
        norm = np.sqrt((x * x * _sums_of_others(left * left)).sum(axis=0))
        total -= (x * (times[some] * (clip / np.maximum(norm, clip)))) @ left.T
    return without_diagonal(total / times.sum())


def _sums_of_others(squares: np.ndarray) -> np.ndarray:
    """Sums over each column without the row itself; differences would lose all their digits."""
    sums = np.zeros_like(squares)
    sums[1:] = squares[:-1].cumsum(axis=0)
    sums[:-1] += squares[:0:-1].cumsum(axis=0)[::-1]
    return sums


def without_diagonal(square: np.ndarray) -> np.ndarray:
    np.fill_diagonal(square, 0)
    return square


@takes_keywords
def noleaks(
    data: Dataset,
    *,
    steps: int = 30,
    clip: float | None = None,
    schedule: Schedule = uniform,
    l1: float = notears.L1,
    threshold: float = notears.THRESHOLD,
    standardized: bool = True,
    **shared: Unpack[RunKeywords],
) -> Release:
    """NoLeaks and the score-based CURATE: NOTEARS with a noisy gradient in every step.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        The guarantee.
    allow_delta : bool
        Allow a delta of 1/n or more. Delta is the smaller of 1e-6 and 1/(10 n) unless given.
    rng, secure, rows_per_person
        As for :func:`~dpcgd.score.notears.gram_notears`.
    steps : int
        Number of gradients.
    clip : float, optional
        Largest norm of one record's gradient, after columns are scaled to an average variance of 1;
        2 d unless given.
    schedule : callable
        Function from a total epsilon and the number of steps to the epsilon of each step, such as
        those of :mod:`dpcgd.score.schedules`. Public. Shares of rho are proportional to squares of
        epsilons.
    l1, threshold, standardized
        As for :func:`~dpcgd.score.notears.notears`.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        If the data, the budget, the noise source or a setting is unusable; nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: one filter pays for a
    Gaussian mechanism for means and variances, and one for each step. Chapter 07,
    :prf:ref:`thm-noleaks`.

    Notes
    -----
    Ma et al. (2022); Bhattacharjee and Tandon (2024), algorithm 2. Both search a step size on the
    data; :func:`descend` needs none. There is no argument `knowledge`, because a least-squares fit
    cannot require an arc. With knowledge use a search, such as
    :func:`~dpcgd.constraint.priv_pc.priv_pc`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("earthquake", rng=np.random.default_rng(0))
    >>> release = noleaks(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.guarantee, len(release.ledger.events), release.ledger.spent <= (1.0, 1e-6)
    ('proved', 31, True)
    """
    settings: dict[str, Any] = {"steps": steps, "clip": clip, "l1": l1, "threshold": threshold}
    settings |= {"schedule": schedule, "standardized": standardized}
    run = notears.open_gaussian_run(data, by=("noleaks", "thm-noleaks"), **settings, **shared)
    shares = epsilons_of(schedule, shared["epsilon"], steps)
    clip = 2 * data.d if clip is None else clip
    rows, times = distinct_rows(data)
    scale = _released_scale(rows, times, data, run)
    multipliers = _for_shares(run.account.share(1), shares)
    mean = functools.partial(clipped_gradient, clip=clip, times=times)
    look = noisy_gradients(mean, 2 * clip / data.n, multipliers, run)
    weights = descended(look, rows, scale, data, standardized, steps=steps, l1=l1)
    return notears.release_by_weights(weights, threshold, run, data.variables)


def noisy_gradients(mean, moves, multipliers, run):
    """Noisy gradients of scaled rows, as functions of the weights; each has its own noise."""
    answer = functools.partial(gaussian, sensitivity=moves, account=run.account, noise=run.noise)

    def look(rows, weights):
        return answer(lambda: mean(rows, weights), noise_multiplier=next(multipliers))

    return look


def descended(look, rows, scale, data, standardized, *, steps, l1) -> np.ndarray:
    """Weights from noisy gradients of the rows, which are scaled to a mean variance of 1."""
    centre, variances = scale
    divisors = notears.divisors_of(variances, data, standardized)
    mean_variance = np.mean(variances / divisors**2)
    rows = (rows - centre) / (divisors * math.sqrt(mean_variance))
    return descend(lambda weights: look(rows, weights), data.d, steps=steps, l1=l1 / mean_variance)


def epsilons_of(schedule, epsilon, steps) -> np.ndarray:
    """The epsilon of each step by a schedule, checked."""
    shares = np.asarray(schedule(epsilon, steps), float)
    if shares.shape != (steps,) or not (np.isfinite(shares) & (shares > 0)).all():
        raise ValueError(f"a schedule must give each of the {steps} steps an epsilon above 0")
    return shares


def distinct_rows(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Scaled rows and their weights; each distinct row of coded data occurs once."""
    if data.numbers or math.prod(data.cardinalities) >= 2**63:
        return data.scaled, np.ones(data.n)
    cells = cell_numbers(data.codes.T, data.cardinalities, data.n)
    _, first, times = np.unique(cells, return_index=True, return_counts=True)
    return Dataset(data.codes[first], data.levels).scaled, times.astype(float)


def _for_shares(rho: float, shares: np.ndarray) -> Iterator[float]:
    """Noise multipliers of steps that share a rho in proportion to the squares of epsilons."""
    parts = np.square(np.asarray(shares, float) / np.max(shares))
    return map(multiplier_of_rho, rho * parts / parts.sum())


def means_of(rows, times) -> np.ndarray:
    """Means of the columns, then of their squares."""
    return times @ np.concatenate([rows, rows**2], axis=1) / times.sum()


def _released_scale(rows, times, data, run) -> tuple[np.ndarray, np.ndarray]:
    """Noisy means and variances of the columns, of sensitivity 2 sqrt(d) / n (chapter 07)."""
    noisy, deviation = gaussian_for_rho(
        lambda: means_of(rows, times),
        sensitivity=2 * math.sqrt(data.d) / data.n,
        rho=run.account.share(SCALING),
        account=run.account,
        noise=run.noise,
    )
    return scale_of(noisy, data, deviation)


def scale_of(means, data, deviation) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of columns; the means of their squares may be given."""
    mean, square = np.split(means, 2)
    mean, square = mean.clip(-1, 1), np.where(notears.squares_known(data), 1.0, square)
    return mean, np.maximum(square - mean**2, notears.FLOOR * deviation + 1e-12)
