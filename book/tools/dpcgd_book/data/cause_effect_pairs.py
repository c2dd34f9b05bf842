"""Pairs of cause and effect: the Tuebingen collection, and synthetic additive noise models."""

import networkx as nx
import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import check_whole, data_folder, is_whole
from dpcgd.datasets.dataset import Dataset

__all__ = ["PAIRS", "load_pair", "pair_weights", "recorded_pair", "steep_pair", "synthetic_pair"]

PAIRS = tuple(range(1, 100))
"""Numbers of the pairs, as in the cdt package; 51 to 99 differ from the official numbers."""


NAMES = {"x": "cause", "y": "effect"}
"""What the files call the columns."""


def _rows(name: str) -> dict[int, dict[str, float]]:
    """Rows of one of the small tables, by the number of the pair."""
    rows = pd.read_csv(data_folder() / "pairs" / name, dtype=str).astype(float)
    return rows.set_index(rows.pop("pair").astype(int)).to_dict("index")


def pair_weights() -> dict[int, float]:
    """The official weight of each pair: pairs from one source share a weight of about 1.

    Examples
    --------
    >>> weights = pair_weights()
    >>> weights[1], round(sum(weights.values()), 2)
    (0.166, 35.5)
    """
    return {number: row["weight"] for number, row in _rows("weights.csv").items()}


def load_pair(number: int, *, rng: np.random.Generator | None = None) -> Dataset:
    """One of the Tuebingen cause-effect pairs (Mooij et al. 2016).

    Parameters
    ----------
    number : int
        One of `PAIRS`.
    rng : numpy.random.Generator, optional
        Shuffles the two columns. Without it the cause comes first, as in the source: an evaluation
        needs it, for a method may prefer the first column.

    Returns
    -------
    Dataset
        Columns x (the cause) and y, the true arc x -> y, and ranges. The ranges are the ends of the
        data, rounded outward to two significant digits: a stand-in for a public range, which the
        collection does not have.

    Raises
    ------
    ValueError
        If there is no such pair.

    Examples
    --------
    >>> pair = load_pair(1)
    >>> pair, pair.rules["x"]["range"]
    (Dataset('pair 1', n=349, d=2, 1 true edges), [0.0, 3000.0])
    """
    values, row = recorded_pair(number), _rows("ranges.csv")[number]
    ends = {v: (row[f"{end}_low"], row[f"{end}_high"]) for v, end in NAMES.items()}
    return _directed(values, ends, f"pair {number}", rng)


def recorded_pair(number: int) -> np.ndarray:
    """The values of a pair as they are in the collection, the cause first.

    Parameters
    ----------
    number : int
        One of `PAIRS`.

    Raises
    ------
    ValueError
        If there is no such pair.

    Examples
    --------
    >>> recorded_pair(1)[0]
    array([205. ,   9.7])
    """
    if not is_whole(number) or number not in PAIRS:
        raise ValueError(f"no pair has the number {number!r}; take one from 1 to {PAIRS[-1]}")
    file, before = data_folder() / "pairs" / "records.txt.gz", 2 * (number - 1)
    return np.loadtxt(file, skiprows=before, max_rows=2).T


def synthetic_pair(
    n: int, *, lipschitz: float = 3.0, noise: float = 0.3, rng: np.random.Generator
) -> Dataset:
    """Draw n records of y = f(x) + e with a known direction and a known Lipschitz constant.

    Parameters
    ----------
    n : int
    lipschitz : float
        Of f. Below pi / 2 the sine is sometimes, above it never, monotone.
    noise : float
        e is uniform on [-noise, noise]; at most 0.5.
    rng : numpy.random.Generator
        Draws the phase, the records and the order of the columns.

    Returns
    -------
    Dataset
        x is uniform on its range [-1, 1]; the range of y is [-1, 1] too, and nothing is clipped.

    Raises
    ------
    ValueError
        If a parameter is out of range, or n is no whole number.

    Notes
    -----
    f(x) = sin(2 lipschitz x + phase) / 2 with a random phase.

    Examples
    --------
    >>> pair = synthetic_pair(500, rng=np.random.default_rng(0))
    >>> list(pair.truth.edges)
    [('x', 'y')]
    """
    check_whole("n", n, 1)
    if not 0 < noise <= 0.5:
        raise ValueError(f"noise must lie above 0 and be at most 0.5, not {noise}")
    if not 0 < lipschitz < np.inf:
        raise ValueError(f"lipschitz must be positive and finite, not {lipschitz}")
    phase, x = rng.uniform(0, 2 * np.pi), rng.uniform(-1, 1, n)
    y = np.sin(2 * lipschitz * x + phase) / 2 + rng.uniform(-noise, noise, n)
    return _directed(np.column_stack([x, y]), RANGES, "additive noise model", rng)


RANGES = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
"""Public ranges of synthetic pairs."""


STEEP_NOISE = 0.1
"""e of a steep pair is uniform on minus to plus this."""


def steep_pair(n: int, *, rng: np.random.Generator) -> Dataset:
    """Draw n records of y = f(x) + e where the inverse of f is the smoother regression.

    Parameters
    ----------
    n : int
    rng : numpy.random.Generator
        Draws the records and the order of the columns.

    Returns
    -------
    Dataset
        x is uniform on its range [-1, 1]; the range of y is [-1, 1] too, and nothing is clipped.

    Raises
    ------
    ValueError
        If n is no whole number.

    Notes
    -----
    f(x) is nine tenths of the cube root of x, and e is small.

    Examples
    --------
    >>> pair = steep_pair(500, rng=np.random.default_rng(0))
    >>> list(pair.truth.edges)
    [('x', 'y')]
    """
    check_whole("n", n, 1)
    x, noise = rng.uniform(-1, 1, n), rng.uniform(-STEEP_NOISE, STEEP_NOISE, n)
    y = (1 - STEEP_NOISE) * np.cbrt(x) + noise
    return _directed(np.column_stack([x, y]), RANGES, "cube root", rng)


def _directed(values, ranges, name, rng) -> Dataset:
    """With the true arc x -> y, the columns in random order if there is an rng."""
    order = [0, 1] if rng is None else rng.permutation(2).tolist()
    ranges = {"xy"[i]: ranges["xy"[i]] for i in order}
    return Dataset.of_numbers(values[:, order], ranges, nx.freeze(nx.DiGraph(["xy"])), name)
