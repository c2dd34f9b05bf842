"""How wide noise has to be for a sensitivity and the price of an event."""

import math

import numpy as np

from dpcgd.privacy.events import ApproximateEvent, BoundedRangeEvent, GaussianEvent, PureEvent

__all__ = ["gaussian_scale", "laplace_scale", "selection_scale"]

WIDEST = 1e300
"""Noise of a larger scale might be too large a number."""


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
    if not 0 <= scale <= WIDEST:
        raise ValueError(
            f"a sensitivity of {sensitivity!r} over an epsilon of {epsilon!r} is no scale of noise "
            f"between 0 and {WIDEST:g}; take a smaller sensitivity or a larger epsilon"
        )
    return scale


def selection_scale(sensitivity: float, event: PureEvent | BoundedRangeEvent) -> float:
    """Scale of the noise on scores of which the largest is chosen: twice that of Laplace noise.

    Raises
    ------
    ValueError
        As there.
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
        deviation = event.noise_multiplier * sensitivity
    if not 0 <= deviation <= WIDEST:
        raise ValueError(
            f"a sensitivity of {sensitivity!r} times a noise multiplier of "
            f"{event.noise_multiplier!r} is no deviation of noise between 0 and {WIDEST:g}; take "
            "smaller ones"
        )
    return deviation
