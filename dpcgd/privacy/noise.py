"""Sources of noise, and its scale: OpenDP for releases, a seed for experiments.

Before it draws, a source gets the query's sensitivity and the event that pays. It returns a draw
that fits both, or refuses before anything is paid.
"""

import math
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import ApproximateEvent, BoundedRangeEvent, GaussianEvent, PureEvent

__all__ = ["Draw", "Noise", "SecureNoise", "SeededNoise", "check_source", "noise_source"]

WIDER = 2.0**-50
"""Relative excess of the scale of secure noise: rounding must not raise OpenDP's price."""

WIDEST = 1e300
"""The largest scale whose noise surely is a finite double."""

Draw = Callable[[Any], Any]
"""A function from an exact answer to its release with noise."""


def laplace_scale(sensitivity: float, event: PureEvent | ApproximateEvent) -> float:
    """Scale of Laplace noise: sensitivity over epsilon.

    Raises
    ------
    ValueError
        If that is no scale of noise.

    Examples
    --------
    >>> laplace_scale(1.0, PureEvent("Laplace", 0.5))
    2.0
    """
    scale = float(sensitivity) / event.epsilon if event.epsilon > 0 else math.nan
    return _checked_scale(scale, sensitivity, event)


def selection_scale(sensitivity: float, event: PureEvent | BoundedRangeEvent) -> float:
    """Scale of the noise on scores before the largest is chosen: twice that of Laplace noise.

    Raises
    ------
    ValueError
        As for :func:`laplace_scale`.
    """
    return laplace_scale(2 * float(sensitivity), PureEvent(event.mechanism, event.epsilon))


def gaussian_scale(sensitivity: float, event: GaussianEvent) -> float:
    """Deviation of Gaussian noise: sensitivity times noise multiplier.

    Raises
    ------
    ValueError
        If that is no deviation of noise.

    Examples
    --------
    >>> gaussian_scale(2.0, GaussianEvent("Gaussian", 3.0))
    6.0
    """
    with np.errstate(all="ignore"):
        return _checked_scale(event.noise_multiplier * float(sensitivity), sensitivity, event)


def _checked_scale(scale, sensitivity, event) -> float:
    if not 0 <= scale <= WIDEST or scale == 0 < sensitivity:
        given = f"{event!r} and sensitivity {sensitivity!r}"
        raise ValueError(f"{given} give no scale of noise; take a less extreme budget")
    return scale


class SeededNoise:
    """Reproducible noise, for experiments.

    The low bits of double-precision noise can reveal the value (Mironov 2012), and whoever knows
    the seed knows the noise. Use :class:`SecureNoise` for a real release.
    """

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def laplace(self, sensitivity: float, event: PureEvent | ApproximateEvent) -> Draw:
        """Adds Laplace noise, independent for each entry, for an L1 sensitivity."""
        return partial(_plus_noise, self._rng.laplace, laplace_scale(sensitivity, event))

    def gaussian(self, sensitivity: float, event: GaussianEvent) -> Draw:
        """Adds Gaussian noise, independent for each entry, for an L2 sensitivity."""
        return partial(_plus_noise, self._rng.normal, gaussian_scale(sensitivity, event))

    def gumbel_max(self, sensitivity: float, event: BoundedRangeEvent) -> Draw:
        """Says where scores plus Gumbel noise are largest, for a sensitivity of each score."""
        return partial(_largest, self._rng.gumbel, selection_scale(sensitivity, event))

    def exponential_max(self, sensitivity: float, event: PureEvent) -> Draw:
        """Says where scores plus exponential noise are largest, likewise."""
        return partial(_largest, self._rng.exponential, selection_scale(sensitivity, event))

    def choose(self, n: int, m: int) -> np.ndarray:
        """Choose m distinct numbers below n, uniformly."""
        return self._rng.choice(n, m, replace=False, shuffle=False)


def _plus_noise(distribution, scale, value):
    return value + distribution(scale=scale, size=np.shape(value) or None)


def _largest(distribution, scale, scores) -> int:
    return int(np.argmax(scores + distribution(scale=scale, size=len(scores))))


class SecureNoise:
    """Floating-point-safe noise from OpenDP and the operating system's randomness, without a seed.

    Each draw is the output of an OpenDP measurement of the exact value; no other source is used.

    Raises
    ------
    ImportError
        If OpenDP is not installed.
    RuntimeError
        Before anything is paid, if OpenDP's price of the noise is above the event's price.

    Privacy
    -------
    OpenDP's proofs, and its map from a sensitivity to a price, hold for the drawn values.
    """

    def __init__(self):
        try:
            import opendp.prelude as dp
        except ImportError:
            cure = "pip install 'dpcgd[secure]'; or give rng=np.random.default_rng(seed)"
            raise ImportError(f"secure noise needs OpenDP: {cure} for an experiment") from None
        dp.enable_features("contrib")
        self._dp = dp
        self._vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False))

    def laplace(self, sensitivity: float, event: PureEvent | ApproximateEvent) -> Draw:
        """Adds Laplace noise, independent for each entry, for an L1 sensitivity."""
        spaces = (self._dp.l1_distance(T=float),)
        scale = laplace_scale(sensitivity, event)
        return self._draw(self._dp.m.make_laplace, spaces, scale, sensitivity, event.epsilon)

    def gaussian(self, sensitivity: float, event: GaussianEvent) -> Draw:
        """Adds Gaussian noise, independent for each entry, for an L2 sensitivity."""
        spaces = (self._dp.l2_distance(T=float),)
        scale = gaussian_scale(sensitivity, event)
        return self._draw(self._dp.m.make_gaussian, spaces, scale, sensitivity, zcdp_rho(event))

    def gumbel_max(self, sensitivity: float, event: BoundedRangeEvent) -> Draw:
        """Says where scores plus Gumbel noise are largest, for a sensitivity of each score."""
        spaces = self._dp.linf_distance(T=float), self._dp.zero_concentrated_divergence()
        scale = selection_scale(sensitivity, event)
        return self._draw(self._dp.m.make_noisy_max, spaces, scale, sensitivity, zcdp_rho(event))

    def exponential_max(self, sensitivity: float, event: PureEvent) -> Draw:
        """Says where scores plus exponential noise are largest, likewise."""
        spaces = self._dp.linf_distance(T=float), self._dp.max_divergence()
        scale = selection_scale(sensitivity, event)
        return self._draw(self._dp.m.make_noisy_max, spaces, scale, sensitivity, event.epsilon)

    def _draw(self, make, spaces, scale, sensitivity, price) -> Draw:
        """A draw of noise slightly wider than the scale, if OpenDP's price is at most this one."""
        wider = math.nextafter(scale * (1 + WIDER), math.inf) if scale else 0.0
        measurement = make(self._vectors, *spaces, scale=wider)
        _check_price(measurement, sensitivity, price)
        return partial(_answer, measurement)

    def choose(self, n: int, m: int) -> np.ndarray:
        """Choose m distinct numbers below n, uniformly."""
        return np.array(secrets.SystemRandom().sample(range(n), m))


def _check_price(measurement, sensitivity, price):
    cost = measurement.map(float(sensitivity))
    if not cost <= price:
        cure = "nothing was spent; report this, or take another epsilon"
        raise RuntimeError(f"OpenDP prices this noise at {cost!r}, not at {price!r}; {cure}")


def _answer(measurement, value):
    """The output of an OpenDP measurement: an index, or a number or array of the same shape."""
    answer = measurement(_as_doubles(value))
    if not isinstance(answer, list):
        return answer
    return np.reshape(answer, np.shape(value)) if np.shape(value) else answer[0]


def _as_doubles(values) -> list[float]:
    return np.ravel(values).astype(float).tolist()


Noise = SeededNoise | SecureNoise
"""A source of randomness has each kind of noise, for a sensitivity and the event that pays."""


def noise_source(rng: np.random.Generator | None, secure: bool) -> Noise:
    """Secure noise for a release, or seeded noise for an experiment if a seed is asked for.

    Parameters
    ----------
    rng : numpy.random.Generator or None
        None is secure noise.
    secure : bool
        Refuses a seed.

    Raises
    ------
    ValueError
        If both are asked for, or `rng` is not a Generator.
    ImportError
        If secure noise is asked for and OpenDP is not installed.
    """
    check_source(rng, secure)
    return SecureNoise() if rng is None else SeededNoise(rng)


def check_source(rng: np.random.Generator | None, secure: bool) -> None:
    """Refuse an unusable seed, and any seed if secure noise is asked for.

    Raises
    ------
    ValueError
        With the cure.
    """
    if rng is None:
        return
    if secure:
        raise ValueError("secure noise has no seed; leave out rng when secure=True")
    if not isinstance(rng, np.random.Generator):
        ways = "rng=np.random.default_rng(seed) for an experiment, no rng for a release"
        raise ValueError(f"rng is a {type(rng).__name__}; say where the noise comes from: {ways}")
