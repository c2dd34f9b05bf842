"""The Bayesian networks of the papers, by name."""

import difflib
from pathlib import Path

import numpy as np

from dpcgd.datasets.bif import from_bif
from dpcgd.datasets.data_files import data_folder
from dpcgd.datasets.dataset import Dataset

__all__ = ["NETWORKS", "load"]

NETWORKS = ("earthquake", "cancer", "asia", "survey", "sachs", "child", "alarm")
"""The data sets of the papers, small to large."""


def load(name: str, n: int = 100_000, *, rng: np.random.Generator) -> Dataset:
    """Sample records from one of the papers' networks, or from a network of one's own.

    Parameters
    ----------
    name : str
        One of `NETWORKS`, or the path of a file that ends in ``.bif``.
    n : int
        Number of records.
    rng : numpy.random.Generator
        Source of the sample; the same state gives the same records.

    Returns
    -------
    Dataset
        With its public levels and the true graph.

    Raises
    ------
    ValueError
        If there is no such network (the message suggests near names) or file, the file is no
        network, n is no whole number of 1 or more, or rng no Generator.

    Examples
    --------
    >>> load("asia", n=1000, rng=np.random.default_rng(0))
    Dataset('asia', n=1,000, d=8, 8 true edges)
    """
    if str(name).endswith(".bif") and Path(name).is_file():
        return from_bif(name).sample(n, rng=rng)
    if name not in NETWORKS:
        near = difflib.get_close_matches(str(name).lower(), NETWORKS, n=2, cutoff=0.5) or NETWORKS
        raise ValueError(
            f"no data set is called {name!r}; did you mean {' or '.join(near)}? "
            "(a network of your own is named by the path of its .bif file)"
        )
    return from_bif(data_folder() / "networks" / f"{name}.bif").sample(n, rng=rng)
