"""Audits: the privacy a mechanism really has, and the receipt of a run.

Nothing here is private. It takes data apart that was made up for the purpose.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import beta

from dpcgd.privacy.events import Event
from dpcgd.privacy.mechanisms import Account
from dpcgd.privacy.noise import Draw, Noise
from dpcgd.privacy.scales import gaussian_scale, laplace_scale, selection_scale

__all__ = ["Witness", "empirical_epsilon"]

Output = float | int | tuple | None
"""What an audited mechanism may return: a number, or anything that is one of few."""


BINS = 100


DRAWS = {
    "Laplace": "Laplace",
    "Gaussian": "Gaussian",
    "exponential": "Gumbel",
    "permute and flip": "exponential",
    "distance test": "Laplace",
    "tested release": "Laplace",
}
"""The one draw of noise that paying for a mechanism covers."""


def empirical_epsilon(
    mechanism: Callable[[object], Output],
    data: object,
    neighbour: object,
    *,
    delta: float = 0.0,
    confidence: float = 1 - 1e-9,
    trials: int = 10_000,
) -> float:
    """Lower bound on the epsilon of a mechanism, from watching it on two neighbours.

    Parameters
    ----------
    mechanism : callable
        From a data set to a random output. Real numbers are sorted into bins; other outputs should
        take few values.
    data, neighbour
        Two data sets that differ in one record.
    delta : float
        Of the claim.
    confidence : float
        A mechanism that is (epsilon, delta)-private gets a bound above its epsilon with probability
        at most 1 - confidence.
    trials : int
        Runs on each data set.

    Returns
    -------
    float
        At least 0. The true epsilon may be larger: other neighbours or events may tell more.

    Notes
    -----
    The first half of the runs chooses one event, outputs with the largest estimated likelihood
    ratios; the second half bounds its two probabilities by Clopper and Pearson, so nothing is
    tested twice. Chapter 02, :prf:ref:`thm-audit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> halved = empirical_epsilon(lambda x: x + rng.laplace(scale=0.5), 0.0, 1.0)
    >>> honest = empirical_epsilon(lambda x: x + rng.laplace(scale=1.0), 0.0, 1.0)
    >>> honest < 1 < halved < 2
    True
    """
    both = [[mechanism(case) for _ in range(trials)] for case in (data, neighbour)]
    first = trials // 2
    kinds = _kinds(both, first)
    explored, kept = (
        np.array([np.bincount(row, minlength=kinds.max() + 1) for row in half])
        for half in (kinds[:, :first], kinds[:, first:])
    )
    level = (1 - confidence) / 2
    side, event = _most_telling(explored, delta, level)
    often, rare = kept[side, event].sum(), kept[1 - side, event].sum()
    return float(_epsilon_at_least(often, rare, trials - first, delta, level))


def _kinds(both: list[list[Output]], first: int) -> np.ndarray:
    """Number the kinds of output, real ones by bins; one row a data set.

    Bins and kinds follow from the first runs alone; what is new later is of a kind of its own.
    """
    reals: list[Any] = [x for row in both for x in row[:first] if isinstance(x, Real)]
    if len(set(reals)) > BINS:
        edges = np.unique(np.quantile(reals, np.linspace(0, 1, BINS + 1)[1:-1]))
        both = [[_bin(x, edges) if isinstance(x, Real) else x for x in row] for row in both]
    known = dict.fromkeys(x for row in both for x in row[:first])
    number = {kind: i for i, kind in enumerate(known)}
    return np.array([[number.get(x, len(number)) for x in row] for row in both])


def _bin(x: float, edges: np.ndarray) -> tuple[str, int]:
    return "bin", int(np.searchsorted(edges, x))


def _most_telling(counts: np.ndarray, delta: float, level: float) -> tuple[int, np.ndarray]:
    """Which data set makes which event more likely: the best set of kinds with the top ratios."""
    trials, best = counts[0].sum(), (-math.inf, 0, np.zeros(1, int))
    for side in (0, 1):
        order = np.argsort(-(counts[side] + 1) / (counts[1 - side] + 1), kind="stable")
        often, rare = counts[side, order].cumsum(), counts[1 - side, order].cumsum()
        bounds = _epsilon_at_least(often, rare, trials, delta, level)
        last = int(bounds.argmax())
        if bounds[last] > best[0]:
            best = bounds[last], side, order[: last + 1]
    return best[1:]


def _epsilon_at_least(often, rare, trials, delta, level) -> np.ndarray:
    """Bound from counts of one event, each of its two probabilities wrong with chance `level`."""
    often, rare = np.asarray(often, float), np.asarray(rare, float)
    low = np.where(often > 0, beta.ppf(level, often, trials - often + 1), 0.0)
    high = np.where(rare < trials, beta.isf(level, rare + 1, trials - rare), 1.0)
    return np.maximum(0.0, np.log(np.maximum(low - delta, 1e-300) / high))


class Witness:
    """An account and a noise source in one, which notes all noise that nobody paid for.

    Hand it to a run in place of both; a run that pays for all it does leaves `unpaid` empty. Once a
    run draws sub-samples, each sieve has to have its own, for that is what its price is about. How
    wide the noise is, it does not judge: that is for :func:`empirical_epsilon`.

    Parameters
    ----------
    account : Filter or Odometer
        Who really pays.
    noise : Noise
        Who really draws.

    Attributes
    ----------
    unpaid : list of str
        What was used without a payment that covers it.

    Examples
    --------
    >>> from dpcgd.privacy.events import PureEvent
    >>> from dpcgd.privacy.noise import SeededNoise
    >>> from dpcgd.privacy.mechanisms import laplace
    >>> from dpcgd.privacy.budget import Budget
    >>> from dpcgd.privacy.filters import Filter
    >>> seeded = SeededNoise(np.random.default_rng(0))
    >>> witness = Witness(Filter(Budget(1.0, 1e-6)), seeded)
    >>> answer = laplace(lambda: 3.0, sensitivity=1, epsilon=0.1, account=witness, noise=witness)
    >>> witness.unpaid
    []
    >>> again = witness.laplace(1.0, PureEvent("Laplace", 0.1))(3.0)
    >>> witness.unpaid
    ['Laplace noise of scale 10']
    """

    def __init__(self, account: Account, noise: Noise):
        self._account, self._noise = account, noise
        self.unpaid: list[str] = []
        self._paid: list[str | None] = []
        self._sieve: _Sieve | None = None
        self._fresh: bool | None = None  # is the sub-sample unused? None while there is none

    def __getattr__(self, name):
        return getattr(self._account, name)

    def spend(self, *events: Event):
        """Pay, and remember what may now be drawn; what was paid for earlier has had its time."""
        self._account.spend(*events)
        names = [event.mechanism for event in events]
        self._paid = [DRAWS.get(name) for name in names]
        if "above threshold" in names:
            self._sieve = _Sieve()

    def _use(self, kind: str, scale: float):
        if kind in self._paid:
            self._paid.remove(kind)
        else:
            self.unpaid.append(f"{kind} noise of scale {scale:g}")

    def laplace(self, sensitivity, event) -> Draw:
        """Laplace noise, paid for by itself or as part of a sieve."""
        draw, scale = self._noise.laplace(sensitivity, event), laplace_scale(sensitivity, event)
        return lambda value: self._laplace(draw(value), scale)

    def _laplace(self, noisy, scale):
        sieve = self._sieve
        if "Laplace" in self._paid or sieve is None:
            self._use("Laplace", scale)
        elif sieve.threshold is None:
            self._sieve = _Sieve(noisy, scale)
        elif not math.isclose(scale, 2 * sieve.scale):
            self._use("Laplace", scale)
        else:
            self._ask(sieve, noisy >= sieve.threshold)
        return noisy

    def _ask(self, sieve: "_Sieve", hit: bool):
        """A query of the sieve: its first needs a sub-sample of its own, a hit ends it."""
        if not sieve.asked and self._fresh is False:
            self.unpaid.append("the sub-sample of an earlier sieve")
        if self._fresh:
            self._fresh = False
        self._sieve = None if hit else replace(sieve, asked=True)

    def gaussian(self, sensitivity, event) -> Draw:
        """Gaussian noise."""
        scale = gaussian_scale(sensitivity, event)
        return self._used("Gaussian", scale, self._noise.gaussian(sensitivity, event))

    def gumbel_max(self, sensitivity, event) -> Draw:
        """Where scores plus Gumbel noise are largest."""
        scale = selection_scale(sensitivity, event)
        return self._used("Gumbel", scale, self._noise.gumbel_max(sensitivity, event))

    def exponential_max(self, sensitivity, event) -> Draw:
        """Where scores plus exponential noise are largest."""
        scale = selection_scale(sensitivity, event)
        return self._used("exponential", scale, self._noise.exponential_max(sensitivity, event))

    def _used(self, kind, scale, draw):
        def drawn(value):
            self._use(kind, scale)
            return draw(value)

        return drawn

    def choose(self, n: int, m: int) -> np.ndarray:
        """m distinct numbers below n; free, for a sub-sample shows nothing by itself."""
        self._fresh = True
        return self._noise.choose(n, m)


@dataclass(frozen=True)
class _Sieve:
    """An above-threshold that has been paid for: its noisy threshold and that noise's scale."""

    threshold: float | None = None
    scale: float = math.nan
    asked: bool = False
