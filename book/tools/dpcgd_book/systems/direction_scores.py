"""Scores for the cause among two variables: above 0 the first, below 0 the second."""

import numpy as np

__all__ = ["cds", "igci", "reci"]

BINS_PER_DEVIATION = 2
"""Bins of :func:`cds` in one standard deviation."""


DEVIATIONS = 3
"""Standard deviations from the mean to the outermost bins of :func:`cds`."""


END = BINS_PER_DEVIATION * DEVIATIONS
"""The outermost bins of :func:`cds` are so many bins from the mean."""


FEWEST = 13
"""A bin of the presumed cause with fewer records says nothing in :func:`cds`."""


def rescaled(values: np.ndarray) -> np.ndarray:
    """Columns in units in which their largest number is about one.

    Their squares are then numbers. Units change by powers of two, which changes no digit.
    """
    return np.ldexp(values, -np.frexp(np.abs(values).max(axis=0))[1])


def checked_columns(values: np.ndarray) -> np.ndarray:
    """Reals of shape (n, d) of which no column is constant; anything else is refused."""
    values = np.asarray(values, float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"values must have one row a record, at least two, not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("a value is missing or infinite; drop or impute such records first")
    constant = np.flatnonzero(values.min(axis=0) == values.max(axis=0))
    if len(constant):
        raise ValueError(f"column {constant[0]} is constant; leave it out of the analysis")
    return values


def _checked(x, y) -> np.ndarray:
    """Both columns, in units in which their squares are numbers; no score depends on units."""
    return np.ascontiguousarray(rescaled(checked_columns(np.stack((x, y), axis=1))).T)


def _standardised(values) -> np.ndarray:
    return (values - values.mean()) / values.std()


def reci(x: np.ndarray, y: np.ndarray, *, powers: tuple[int, ...] = (1, 2, 3)) -> float:
    """Regression error based causal inference: the better predicted variable is the effect.

    Parameters
    ----------
    x, y : array, shape (n,)
        Numbers or codes.
    powers : tuple of int
        Powers of the regressor, beside a constant. ``(3,)`` is the one monomial of the Causal
        Discovery Toolbox.

    Returns
    -------
    float
        Mean squared error of x from y less that of y from x, each scaled to [0, 1].

    Raises
    ------
    ValueError
        If the columns do not fit each other, one is constant or not finite, or a power is negative.

    Notes
    -----
    Blöbaum, Janzing, Washio, Shimizu and Schölkopf (2018), with least squares on powers. A variable
    with no more distinct values than powers is fitted through the mean of y at each value.

    Examples
    --------
    >>> x = np.linspace(0, 1, 101)
    >>> reci(x, x**2) > 0, reci(x**2, x) < 0
    (True, True)
    """
    if min(powers, default=0) < 0:
        raise ValueError(f"powers must be 0 or more, not {tuple(powers)}")
    x, y = ((v - v.min()) / (v.max() - v.min()) for v in _checked(x, y))
    return _error(y, x, powers) - _error(x, y, powers)


def _error(cause, effect, powers) -> float:
    """Mean squared error of the effect's polynomial regression on the cause."""
    design = np.column_stack([cause**power for power in (0, *powers)])
    return float(((effect - design @ np.linalg.lstsq(design, effect)[0]) ** 2).mean())


def igci(x: np.ndarray, y: np.ndarray) -> float:
    """Information-geometric causal inference: the variable of larger entropy is the cause.

    Parameters
    ----------
    x, y : array, shape (n,)
        Numbers or codes. Both are brought to mean 0 and variance 1: a Gaussian reference measure.

    Returns
    -------
    float
        1-spacing estimate of the entropy of x less that of y.

    Raises
    ------
    ValueError
        If the columns do not fit each other, or one is constant or not finite.

    Notes
    -----
    Daniušis et al. (2010). Repeated values have no spacing between them and add nothing, as in the
    authors' program and in the Causal Discovery Toolbox. **On coded data the score is therefore a
    comparison of spreads**: of k levels that all occur, at equal distances, only their number and
    the standard deviation matter, and how y varies with x does not matter for any data.

    Examples
    --------
    >>> x = np.linspace(0, 1, 101)
    >>> igci(x, x**3) > 0, igci(x**3, x) < 0
    (True, True)
    """
    x, y = _checked(x, y)
    return _spacings(x) - _spacings(y)  # the digamma terms of the two estimates cancel


def _spacings(values) -> float:
    """Entropy up to a term in n: the mean logarithm of the gaps between standardised values."""
    gaps = np.diff(np.sort(_standardised(values)))
    return float(np.log(gaps[gaps > 0]).sum() / len(gaps))


def cds(x: np.ndarray, y: np.ndarray) -> float:
    """Conditional distribution similarity: the effect's shape varies little with the cause.

    Parameters
    ----------
    x, y : array, shape (n,)
        Numbers or codes.

    Returns
    -------
    float
        How much the shape of x varies over bins of y, less that of y over bins of x. It is 0, and
        says nothing, if no bin of either holds 13 records.

    Raises
    ------
    ValueError
        If the columns do not fit each other, or one is constant or not finite.

    Notes
    -----
    Fonollosa (2019), with the settings of the Causal Discovery Toolbox: 13 bins over three standard
    deviations to each side, after outliers are set aside, or the values themselves if there are no
    more than 13. Within a bin the presumed effect is centred and divided by its standard deviation
    over all records. An effect of at most 13 values is not cut into bins: its distribution is
    shifted to the place where it agrees best with that over all records.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, 2000)
    >>> y = x**3 + rng.normal(size=2000)
    >>> cds(x, y) > 0
    True
    """
    x, y = _checked(x, y)
    return _variation(y, x) - _variation(x, y)


def _variation(cause, effect) -> float:
    """Standard deviation, over bins of the cause, of the effect's distribution about its mean."""
    _, places, sizes = np.unique(_binned(cause), return_inverse=True, return_counts=True)
    bins = np.flatnonzero(sizes >= FEWEST)
    shapes = np.array([_shape(effect[places == b], effect) for b in bins])
    return float((shapes - shapes.mean(axis=0)).std()) if len(bins) else 0.0


def _binned(values) -> np.ndarray:
    """Bin numbers, or the values themselves where they are few."""
    if _few(values):
        return values
    scaled = _standardised(values)
    usual = scaled[np.abs(scaled) < DEVIATIONS]
    return _rounded((scaled - usual.mean()) / (usual.std() or 1.0))  # 0: all others are outliers


def _few(values) -> bool:
    return len(np.unique(values)) <= 2 * END + 1


def _rounded(scaled) -> np.ndarray:
    return np.clip(np.round(scaled * BINS_PER_DEVIATION), -END, END).astype(int)


def _shape(part, whole) -> np.ndarray:
    """Distribution of one part of the effect, brought to a common place."""
    if not _few(whole):
        bins = _rounded((part - part.mean()) / whole.std())
        return np.bincount(bins + END, minlength=2 * END + 1) / len(part)
    levels, count = np.unique(whole, return_counts=True)
    shares = np.bincount(np.searchsorted(levels, part), minlength=len(levels)) / len(part)
    shift = int(np.argmax(np.correlate(shares, count / len(whole), "full")))
    return np.pad(shares, (2 * len(levels) - 2 - shift, shift))
