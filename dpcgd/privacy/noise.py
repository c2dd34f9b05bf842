"""Where noise comes from: OpenDP for releases, a seed for experiments."""

import secrets
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

__all__ = ["Noise", "SecureNoise", "SeededNoise", "check_source", "noise_source"]


class Noise(Protocol):
    """Where randomness comes from."""

    def laplace(self, value: Any, scale: float) -> Any:
        """`value`, a number or an array, plus Laplace noise, drawn anew for each entry."""

    def gaussian(self, value: float | np.ndarray, scale: float) -> float | np.ndarray:
        """`value` plus Gaussian noise of this deviation, drawn anew for each entry."""

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus Gumbel noise are largest."""

    def exponential_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus exponential noise are largest."""

    def choose(self, n: int, m: int) -> np.ndarray:
        """m distinct numbers below n, uniformly."""


class SeededNoise:
    """Reproducible noise, for experiments.

    Double-precision noise can be traced back through its low bits (Mironov 2012), and whoever knows
    the seed knows the noise: use :class:`SecureNoise` for a real release.
    """

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def laplace(self, value: Any, scale: float) -> Any:
        """`value`, a number or an array, plus Laplace noise, drawn anew for each entry."""
        return value + self._rng.laplace(scale=scale, size=np.shape(value) or None)

    def gaussian(self, value: float | np.ndarray, scale: float) -> float | np.ndarray:
        """`value` plus Gaussian noise of this deviation, drawn anew for each entry."""
        return value + self._rng.normal(scale=scale, size=np.shape(value) or None)

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus Gumbel noise are largest."""
        return int(np.argmax(scores + self._rng.gumbel(scale=scale, size=len(scores))))

    def exponential_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus exponential noise are largest."""
        return int(np.argmax(scores + self._rng.exponential(scale=scale, size=len(scores))))

    def choose(self, n: int, m: int) -> np.ndarray:
        """m distinct numbers below n, uniformly."""
        return self._rng.choice(n, m, replace=False, shuffle=False)


class SecureNoise:
    """Floating-point-safe noise from OpenDP and the operating system's randomness; has no seed.

    Raises
    ------
    ImportError
        If OpenDP is not installed.
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
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        sums = dp.vector_domain(space[0]), dp.l1_distance(T=float)
        self._laplace = lru_cache(lambda scale: dp.m.make_laplace(*sums, scale=scale))
        vectors = dp.vector_domain(space[0]), dp.l2_distance(T=float)
        self._gaussian = lru_cache(lambda scale: dp.m.make_gaussian(*vectors, scale=scale))
        scores = dp.vector_domain(space[0]), dp.linf_distance(T=float)
        gumbel, exponential = dp.zero_concentrated_divergence(), dp.max_divergence()
        self._gumbel = lru_cache(lambda scale: dp.m.make_noisy_max(*scores, gumbel, scale=scale))
        self._exponential = lru_cache(
            lambda scale: dp.m.make_noisy_max(*scores, exponential, scale=scale)
        )

    def laplace(self, value: Any, scale: float) -> Any:
        """`value`, a number or an array, plus Laplace noise, drawn anew for each entry."""
        noisy = self._laplace(scale)(np.ravel(value).astype(float).tolist())
        return np.reshape(noisy, np.shape(value)) if np.shape(value) else noisy[0]

    def gaussian(self, value: float | np.ndarray, scale: float) -> float | np.ndarray:
        """`value` plus Gaussian noise of this deviation, drawn anew for each entry."""
        noisy = self._gaussian(scale)(np.ravel(value).astype(float).tolist())
        return np.reshape(noisy, np.shape(value)) if np.shape(value) else noisy[0]

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus Gumbel noise are largest."""
        return self._gumbel(scale)([float(score) for score in scores])

    def exponential_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus exponential noise are largest."""
        return self._exponential(scale)([float(score) for score in scores])

    def choose(self, n: int, m: int) -> np.ndarray:
        """m distinct numbers below n, uniformly."""
        return np.array(secrets.SystemRandom().sample(range(n), m))


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
