"""Samples with a known graph for local privacy: two recorded, and two from linear models."""

import csv
from dataclasses import replace

import networkx as nx
import numpy as np

from dpcgd import Dataset, from_bif
from dpcgd.datasets.arguments import data_folder
from dpcgd_book.data.mixed_networks import GaussianNetwork, random_sem

__all__ = ["SAMPLES", "load_sample", "synthetic_model"]

SYNTHETIC = {"synth5": (5, 50_000), "synth10": (10, 5_000)}
"""Variables and records of the linear models; the number of variables is the seed too."""


SAMPLES = ("galton", "sachs", "sachs_icam2", *SYNTHETIC)
"""What can be loaded."""


def load_sample(name: str) -> Dataset:
    """Load a sample; every call gives the same records.

    Parameters
    ----------
    name : str
        One of `SAMPLES`. ``galton``: heights of 898 children and their parents, in inches.
        ``sachs``: natural logarithms of eleven proteins' levels in 853 cells, condition 1 of Sachs
        et al. (2005). ``sachs_icam2``: the same in the 902 cells of condition 2, which Binkyte et
        al. (2024) use. ``synth5``, ``synth10``: one draw from :func:`synthetic_model`.

    Returns
    -------
    Dataset
        Of numbers, with the true graph: the one agreed on for the proteins, both parents for a
        child's height.

    Raises
    ------
    ValueError
        If there is no such sample.

    Notes
    -----
    **The ranges of recorded samples are a stand-in for public ones.** They are the ends of the
    records at hand, rounded outward, for nobody published others. Data of your own need ranges from
    metadata.

    Examples
    --------
    >>> load_sample("galton")
    Dataset('galton', n=898, d=3, 2 true edges)
    >>> load_sample("galton").rules["mother"]["range"]
    [58.0, 71.0]
    """
    if name not in SAMPLES:
        raise ValueError(f"no sample is called {name!r}; take one of {', '.join(SAMPLES)}")
    if name in SYNTHETIC:
        d, n = SYNTHETIC[name]
        drawn = synthetic_model(name).sample(n, rng=np.random.default_rng([d, n]))
        return replace(drawn, name=name)
    folder = data_folder() / "samples"
    values = np.loadtxt(folder / f"{name}.csv", delimiter=",", skiprows=1)
    rows = csv.DictReader((folder / "ranges.csv").read_text().splitlines())
    ends = {r["variable"]: (float(r["low"]), float(r["high"])) for r in rows if r["sample"] == name}
    if name == "galton":
        truth = nx.DiGraph([("father", "child"), ("mother", "child")])
    else:
        truth, values = from_bif(data_folder() / "networks" / "sachs.bif").graph, np.log(values)
    return Dataset.of_numbers(values, ends, nx.freeze(truth), name)


def synthetic_model(name: str) -> GaussianNetwork:
    """The linear Gaussian model behind ``synth5`` or ``synth10``.

    Parameters
    ----------
    name : {"synth5", "synth10"}

    Returns
    -------
    GaussianNetwork
        A random graph with three arcs for every two variables. Binkyte et al. (2024) tell neither
        their graphs nor their weights, so only the sizes are theirs.

    Raises
    ------
    ValueError
        If the name is neither of the two.

    Examples
    --------
    >>> synthetic_model("synth10").graph.number_of_edges()
    15
    """
    if name not in SYNTHETIC:
        raise ValueError(f"the models are called {' and '.join(SYNTHETIC)}, not {name!r}")
    d, _ = SYNTHETIC[name]
    return random_sem(d, 3 * d // 2, rng=np.random.default_rng(d))
