"""Mechanisms: each pays first, then looks at the data, then answers with noise."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcgd.privacy.budget import growth
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.events import ApproximateEvent, BoundedRangeEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import PAYING, Account, Filter
from dpcgd.privacy.noise import Draw, Noise, laplace_scale

__all__ = ["AboveThreshold", "exponential", "gaussian", "gaussian_for_rho", "laplace"]
__all__ += ["amplified", "before_amplification", "permute_and_flip", "propose_test_release"]

Query = Callable[[], Any]
"""A function that computes an exact answer from the data: a number or an array."""


def _paid_answer(query: Query, draw: Draw, event: Any, account: Account) -> Any:
    """Pay first, then look at the data, then answer with noise."""
    account.spend(event)
    exact = np.asarray(query(), float)
    return draw(exact if exact.ndim else float(exact))


def laplace(
    query: Query,
    *,
    sensitivity: float,
    epsilon: float,
    account: Account,
    noise: Noise,
    label: str = "",
) -> Any:
    """Answer a numeric query with Laplace noise of scale sensitivity / epsilon.

    Parameters
    ----------
    query : callable
        Returns a number, or an array of any shape.
    sensitivity : float
        The L1 sensitivity of the whole answer.
    epsilon : float
    account, noise
        The account that pays, and the source of randomness.
    label : str
        The label of the event in the ledger.

    Returns
    -------
    float or array
        An array or number of the answer's shape.

    Raises
    ------
    BudgetSpent
        Before the query is evaluated, if the account cannot pay.
    ValueError
        Before that, if sensitivity / epsilon is no scale of noise.
    RuntimeError
        Before anything is paid, if OpenDP prices secure noise higher than this event.

    Privacy
    -------
    (epsilon, 0) for neighbours between which the query moves by at most `sensitivity`. Chapter 02,
    :prf:ref:`thm-laplace`.

    Examples
    --------
    >>> from dpcgd.privacy.budget import Budget
    >>> from dpcgd.privacy.noise import SeededNoise
    >>> account = Filter(Budget(1.0, 1e-6))
    >>> rng = np.random.default_rng(0)
    >>> answer = laplace(lambda: 10.0, sensitivity=1, epsilon=0.2, account=account,
    ...                  noise=SeededNoise(rng))
    >>> round(answer, 2), round(account.remaining, 4)
    (11.6, 0.0044)
    """
    event = PureEvent("Laplace", epsilon, label=label)
    return _paid_answer(query, noise.laplace(sensitivity, event), event, account)


def gaussian(
    query: Query, *, sensitivity: float, noise_multiplier: float, account: Account, noise: Noise
) -> float | np.ndarray:
    """Answer a query with Gaussian noise of deviation noise_multiplier * sensitivity.

    Parameters
    ----------
    query : callable
        Returns a number, or an array of any shape.
    sensitivity : float
        The L2 sensitivity of the whole answer.
    noise_multiplier : float
    account, noise

    Returns
    -------
    float or array
        An array or number of the answer's shape.

    Raises
    ------
    BudgetSpent
        Before the query is evaluated, if the account cannot pay.
    ValueError
        Before that, if noise_multiplier * sensitivity is no deviation of noise.

    Privacy
    -------
    1 / (2 noise_multiplier^2)-zCDP for queries that move by at most `sensitivity` between
    neighbours (Bun and Steinke 2016). Chapter 02, :prf:ref:`thm-gaussian`.
    """
    event = GaussianEvent("Gaussian", noise_multiplier)
    return _paid_answer(query, noise.gaussian(sensitivity, event), event, account)


def gaussian_for_rho(
    query: Query, *, sensitivity: float, rho: float, account: Account, noise: Noise
) -> tuple[float | np.ndarray, float]:
    """Answer a query with the Gaussian noise that a rho pays for, and give its deviation.

    Parameters
    ----------
    query, sensitivity, account, noise
        As for :func:`gaussian`.
    rho : float

    Returns
    -------
    float or array
        An array or number of the answer's shape.
    float
        The standard deviation of the noise, which is public.

    Raises
    ------
    BudgetSpent, ValueError
        As :func:`gaussian`.

    Privacy
    -------
    rho-zCDP, as :func:`gaussian`. Chapter 02, :prf:ref:`thm-gaussian`.
    """
    multiplier = multiplier_of_rho(rho)
    answer = gaussian(
        query, sensitivity=sensitivity, noise_multiplier=multiplier, account=account, noise=noise
    )
    return answer, multiplier * sensitivity


def exponential(
    scores: Query, *, sensitivity: float, epsilon: float, account: Account, noise: Noise
) -> int:
    """Choose an index whose score is high: probability proportional to e^(epsilon score / (2 D)).

    Parameters
    ----------
    scores : callable
        Returns one score for each public candidate.
    sensitivity : float
        D, of every score.
    epsilon : float
    account, noise

    Returns
    -------
    int
        Index of the chosen candidate.

    Raises
    ------
    BudgetSpent
        Before the scores are evaluated, if the account cannot pay.
    ValueError
        Before that, if sensitivity / epsilon is no scale of noise.

    Privacy
    -------
    (epsilon, 0), and epsilon^2 / 8-zCDP because the range of its privacy loss is epsilon (McSherry
    and Talwar 2007; Cesar and Rogers 2021). Chapter 02, :prf:ref:`thm-exponential`.
    """
    event = BoundedRangeEvent("exponential", epsilon)
    return _paid_answer(scores, noise.gumbel_max(sensitivity, event), event, account)


def permute_and_flip(
    scores: Query, *, sensitivity: float, epsilon: float, account: Account, noise: Noise
) -> int:
    """Choose an index with a high score; the expected score is at least that of `exponential`.

    Parameters, result and errors are as for :func:`exponential`.

    Privacy
    -------
    (epsilon, 0) (McKenna and Sheldon 2020). It is the index of the largest score with exponential
    noise (Ding et al. 2021). Its zCDP cost is that of any pure mechanism, epsilon^2 / 2. Chapter
    02, :prf:ref:`thm-permute-and-flip`; against the exponential mechanism, chapter 25,
    :prf:ref:`thm-selection-order`.
    """
    event = PureEvent("permute and flip", epsilon)
    return _paid_answer(scores, noise.exponential_max(sensitivity, event), event, account)


def propose_test_release(
    query: Query,
    distance: Query,
    *,
    proposed: float,
    epsilon: float,
    delta: float,
    account: Filter,
    noise: Noise,
) -> float | None:
    """Answer with noise for a proposed sensitivity, if the data are far from exceeding it.

    Parameters
    ----------
    query : callable
        Returns the number to release.
    distance : callable
        Returns a number of sensitivity 1: the replacements before one more could move the query by
        more than `proposed`; 0 if the first one could.
    proposed : float
        Public.
    epsilon : float
        The test costs this epsilon, and the release costs it once more.
    delta : float
        The probability of a wrong release, at most 1/2; it is paid once.
    account : Filter
        A filter with a reserved part of delta.
    noise

    Returns
    -------
    float or None
        None if the data may be too near to such data.

    Raises
    ------
    BudgetSpent
        Before the data is touched, if the account cannot pay.
    ValueError
        Before that, if proposed / epsilon is no scale of noise, or delta is not above 0.

    Privacy
    -------
    For a delta of at most 1/2: (2 epsilon, delta); in zCDP epsilon^2, except with probability delta
    (Dwork and Lei 2009). Chapter 02, :prf:ref:`thm-tested-release`.
    """
    if not delta > 0:
        cure = "take fewer rows a person, a smaller epsilon or a score without a test"
        raise ValueError(f"a tested release needs a delta above 0, not {delta!r}; {cure}")
    test = PureEvent("distance test", epsilon)
    release = ApproximateEvent("tested release", epsilon, delta)
    tested, released = noise.laplace(1.0, test), noise.laplace(proposed, release)
    account.spend(test, release)
    if tested(float(distance())) <= math.log(0.5 / delta) / epsilon:
        return None
    return released(float(query()))


class AboveThreshold:
    """Answers whether each query in turn is above a threshold, until the first that is.

    Parameters
    ----------
    threshold : float
        Public.
    sensitivity : float
        Sensitivity of every query that will be asked.
    epsilon : float
        Paid once, on construction, for a sequence of any length.
    rate : float, optional
        m / n if the queries look at a fresh uniform sub-sample of m of the n records: the noise
        then shrinks to that of `before_amplification(epsilon, rate)`.
    account, noise
        Who pays and where randomness comes from.

    Attributes
    ----------
    scale : float
        Noise scale of the threshold; the noise of each query is twice as wide.

    Raises
    ------
    BudgetSpent
        On construction, if the account cannot pay.
    ValueError
        Before that, if the rate is not above 0 and at most 1, or the scale is unusable.

    Privacy
    -------
    (epsilon, 0): threshold noise 2 sensitivity / epsilon, query noise twice that, and no answer
    after the first positive one (Dwork and Roth 2014, theorem 3.23; Balle et al. 2018 for the
    sub-sample). Chapter 02, :prf:ref:`thm-above-threshold` and :prf:ref:`thm-subsampling`.
    """

    def __init__(
        self,
        threshold: float,
        *,
        sensitivity: float,
        epsilon: float,
        account: Account,
        noise: Noise,
        rate: float = 1.0,
    ):
        half = PureEvent("above threshold", before_amplification(epsilon, rate) / 2)
        self.scale, noisy = laplace_scale(sensitivity, half), noise.laplace(sensitivity, half)
        self._noisy = noise.laplace(2 * float(sensitivity), half)
        account.spend(PureEvent("above threshold", epsilon))
        self._threshold = noisy(threshold)
        self._fired = False

    __reduce__ = Filter.__reduce__  # each copy would fire once more

    def above(self, query: Query) -> bool:
        """Whether the query is above the threshold.

        Raises
        ------
        RuntimeError
            If an earlier query was above it: the guarantee covers no further answer.
        """
        with PAYING:
            if self._fired:
                raise RuntimeError("this above-threshold has fired; pay for a new one")
            self._fired = self._noisy(query()) >= self._threshold
        return self._fired


def amplified(epsilon: float, rate: float) -> float:
    """Epsilon on all records of a mechanism that is epsilon-private on a uniform sub-sample.

    Raises
    ------
    ValueError
        If epsilon is negative, or the rate is not above 0 and at most 1.

    Notes
    -----
    ln(1 + rate (e^epsilon - 1)) for sampling without replacement and replace-one neighbours (Balle,
    Barthe and Gaboardi 2018, theorem 9). Chapter 02, :prf:ref:`thm-subsampling`.

    Examples
    --------
    >>> round(amplified(1.0, 0.1), 4)
    0.1586
    """
    _check_rate(epsilon, rate)
    if (grown := growth(epsilon)) < math.inf:
        return math.log1p(rate * grown)
    return max(0.0, epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon)))


def before_amplification(epsilon: float, rate: float) -> float:
    """Inverse of :func:`amplified`: the epsilon on a sub-sample that costs epsilon in all.

    Raises
    ------
    ValueError
        If epsilon is negative, or the rate is not above 0 and at most 1.

    Notes
    -----
    Chapter 02, :prf:ref:`thm-subsampling`.

    Examples
    --------
    >>> round(before_amplification(amplified(1.0, 0.1), 0.1), 12)
    1.0
    """
    _check_rate(epsilon, rate)
    odds = growth(epsilon) / rate
    return math.log1p(odds) if odds < math.inf else epsilon - math.log(rate)


def _check_rate(epsilon, rate):
    if not (epsilon >= 0 and 0 < rate <= 1):
        raise ValueError(f"epsilon must be at least 0 and rate in (0, 1], not {epsilon}, {rate}")
