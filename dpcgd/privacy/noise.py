"""Where noise comes from, and how wide it is: OpenDP for releases, a seed for experiments.

A source is told what a draw is for before it draws: the query's sensitivity, and the event that is
paid. It answers with a draw that fits both, or refuses before anything is paid.
"""

import math
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import ApproximateEvent, BoundedRangeEvent, GaussianEvent, PureEvent

__all__ = ["Draw", "Noise", "SecureNoise", "SeededNoise", "check_source", "noise_source"]

WIDER = 2.0**-50
"""Secure noise is wider than the price says by this part of itself, so that no rounding of a scale
makes OpenDP's price the larger one."""

WIDEST = 1e300
"""Noise of a larger scale might be too large a number."""

Draw = Callable[[Any], Any]
"""A draw takes an exact answer and gives what may be released."""


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
    epsilon = event.epsilon
    scale = float(sensitivity) / float(epsilon) if epsilon > 0 else math.nan
    return _checked_scale(scale, sensitivity, event)


def selection_scale(sensitivity: float, event: PureEvent | BoundedRangeEvent) -> float:
    """Scale of the noise on scores of which the largest is chosen: twice that of Laplace noise.

    Raises
    ------
    ValueError
        As for :func:`laplace_scale`.
    """
    return laplace_scale(2 * sensitivity, PureEvent(event.mechanism, event.epsilon))


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
        return _checked_scale(event.noise_multiplier * sensitivity, sensitivity, event)


def _checked_scale(scale, sensitivity, event) -> float:
    if not 0 <= scale <= WIDEST:
        cure = "take a smaller sensitivity or a larger budget"
        raise ValueError(
            f"{event!r} and sensitivity {sensitivity!r} give no scale of noise; {cure}"
        )
    return scale


class Noise(Protocol):
    """A source of randomness: each kind of noise for a sensitivity and the event that pays."""

    def laplace(self, sensitivity: float, event: PureEvent | ApproximateEvent) -> Draw:
        """Adds Laplace noise to a number or to each entry of an array, for an L1 sensitivity."""

    def gaussian(self, sensitivity: float, event: GaussianEvent) -> Draw:
        """Adds Gaussian noise to a number or to each entry of an array, for an L2 sensitivity."""

    def gumbel_max(self, sensitivity: float, event: BoundedRangeEvent) -> Draw:
        """Says where scores plus Gumbel noise are largest, for a sensitivity of each score."""

    def exponential_max(self, sensitivity: float, event: PureEvent) -> Draw:
        """Says where scores plus exponential noise are largest, likewise."""

    def choose(self, n: int, m: int) -> np.ndarray:
        """Choose m distinct numbers below n, uniformly."""


class SeededNoise:
    """Reproducible noise, for experiments.

    Double-precision noise can be traced back through its low bits (Mironov 2012), and whoever knows
    the seed knows the noise: use :class:`SecureNoise` for a real release.
    """

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def laplace(self, sensitivity: float, event: PureEvent | ApproximateEvent) -> Draw:
        """Adds Laplace noise, drawn anew for each entry."""
        return partial(_plus_noise, self._rng.laplace, laplace_scale(sensitivity, event))

    def gaussian(self, sensitivity: float, event: GaussianEvent) -> Draw:
        """Adds Gaussian noise, drawn anew for each entry."""
        return partial(_plus_noise, self._rng.normal, gaussian_scale(sensitivity, event))

    def gumbel_max(self, sensitivity: float, event: BoundedRangeEvent) -> Draw:
        """Says where scores plus Gumbel noise are largest."""
        return partial(_largest, self._rng.gumbel, selection_scale(sensitivity, event))

    def exponential_max(self, sensitivity: float, event: PureEvent) -> Draw:
        """Says where scores plus exponential noise are largest."""
        return partial(_largest, self._rng.exponential, selection_scale(sensitivity, event))

    def choose(self, n: int, m: int) -> np.ndarray:
        """Choose m distinct numbers below n, uniformly."""
        return self._rng.choice(n, m, replace=False, shuffle=False)


def _plus_noise(distribution, scale, value):
    return value + distribution(scale=scale, size=np.shape(value) or None)


def _largest(distribution, scale, scores) -> int:
    return int(np.argmax(scores + distribution(scale=scale, size=len(scores))))


class SecureNoise:
    """Floating-point-safe noise from OpenDP and the operating system's randomness; has no seed.

    What a draw answers is what OpenDP's measurement answered to the exact value, of any size; there
    is no other source to fall back on.

    Raises
    ------
    ImportError
        If OpenDP is not installed.
    RuntimeError
        When noise is asked for, before anything is paid, if OpenDP's own account of that noise
        costs more than the event.

    Privacy
    -------
    OpenDP's proofs, and its map from the sensitivity to a price, hold for what is drawn.
    """

    def __init__(self):
        try:
            import opendp.prelude as dp
        except ImportError:
            raise ImportError(
                "secure noise needs OpenDP; install it with: pip install 'dpcgd[secure]'; or give "
                "rng=np.random.default_rng(seed) for an experiment, which is no release"
            ) from None
        dp.enable_features("contrib")
        self._dp = dp
        self._vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False))

    def laplace(self, sensitivity: float, event: PureEvent | ApproximateEvent) -> Draw:
        """Adds Laplace noise, drawn anew for each entry."""
        make, distance = self._dp.m.make_laplace, self._dp.l1_distance(T=float)
        scale = laplace_scale(sensitivity, event)
        return self._adding(make, distance, scale, sensitivity, event.epsilon)

    def gaussian(self, sensitivity: float, event: GaussianEvent) -> Draw:
        """Adds Gaussian noise, drawn anew for each entry."""
        make, distance = self._dp.m.make_gaussian, self._dp.l2_distance(T=float)
        scale = gaussian_scale(sensitivity, event)
        return self._adding(make, distance, scale, sensitivity, zcdp_rho(event))

    def _adding(self, make, distance, scale, sensitivity, price) -> Draw:
        measurement = make(self._vectors, distance, scale=_wider(scale))
        _check_price(measurement, sensitivity, price)
        return partial(_entry_by_entry, measurement)

    def gumbel_max(self, sensitivity: float, event: BoundedRangeEvent) -> Draw:
        """Says where scores plus Gumbel noise are largest."""
        concentrated = self._dp.zero_concentrated_divergence()
        return self._largest(sensitivity, event, concentrated, zcdp_rho(event))

    def exponential_max(self, sensitivity: float, event: PureEvent) -> Draw:
        """Says where scores plus exponential noise are largest."""
        return self._largest(sensitivity, event, self._dp.max_divergence(), event.epsilon)

    def _largest(self, sensitivity, event, measure, price) -> Draw:
        space = self._vectors, self._dp.linf_distance(T=float), measure
        scale = _wider(selection_scale(sensitivity, event))
        measurement = self._dp.m.make_noisy_max(*space, scale=scale)
        _check_price(measurement, sensitivity, price)
        return lambda scores: measurement(_as_doubles(scores))

    def choose(self, n: int, m: int) -> np.ndarray:
        """Choose m distinct numbers below n, uniformly."""
        return np.array(secrets.SystemRandom().sample(range(n), m))


def _wider(scale: float) -> float:
    return math.nextafter(scale * (1 + WIDER), math.inf) if scale else 0.0


def _check_price(measurement, sensitivity, price):
    cost = measurement.map(float(sensitivity))
    if not cost <= price:
        cure = "nothing was spent; report this, or take another epsilon"
        raise RuntimeError(f"OpenDP prices this noise at {cost!r}, not at {price!r}; {cure}")


def _entry_by_entry(measurement, value):
    noisy = measurement(_as_doubles(value))
    return np.reshape(noisy, np.shape(value)) if np.shape(value) else noisy[0]


def _as_doubles(values) -> list[float]:
    return np.ravel(values).astype(float).tolist()


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
    """Refuse a seed where secure noise is asked for, and what is no seed.

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
        raise ValueError(
            f"rng must be a numpy Generator, not {type(rng).__name__}; say where the noise comes "
            "from: rng=np.random.default_rng(seed) for an experiment, no rng for a release"
        )
